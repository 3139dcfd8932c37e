// Products of a device check: operands made on the host, multiplied by the module or, in its place,
// by a unit of the emulator, and what a unit says the product is.
#ifndef DEVICE_PRODUCT_H
#define DEVICE_PRODUCT_H

#include <device_run.h>
#include <qg_unit.h>

// A quantized operand in the emulator's storage. Free with device_operand_free.
typedef struct device_operand {
    qg_recipe recipe;
    const char *format;
    int64_t rows, k;
    qg_shape shape;
    uint8_t *codes, *scales;
    float tensor_scale;
} device_operand;

qg_status device_operand_open(const qg_recipe *recipe, const char *format, int64_t rows, int64_t k,
                              device_operand *out);
// Quantizes the law `normal`; `operand` 0 or 1 chooses the random numbers.
qg_status device_operand_fill(device_operand *operand, uint64_t seed, int which);
void device_operand_free(device_operand *operand);

typedef struct device_product {
    device_operand a, b;
    qg_format out_type;
    int accumulates_fast;
    const float *bias; // (n), or NULL
    const void *c;     // (m, n) of out_type, or NULL
    qg_cuda_algorithm algorithm;
} device_product;

// out: (m, n) of out_type, on the host. QG_ERROR_UNSUPPORTED: not taken, with the reason.
qg_status device_multiply(device_check *c, device_product *p, void *out);

// What the unit of that name says, C added last in binary32. Fits the promotion to the layouts.
qg_status device_expect(const device_product *p, const char *unit, void *out);
// The unit's name with the promotion that the layouts need; "" where none takes the product.
void device_unit_fitted(const device_product *p, const char *unit, char name[DEVICE_UNIT_NAME]);

#endif
