// Verdicts on a backend's results: equal to the emulator's bytes, or within a bound of an exact
// product. Each sets PASSED or FAILED, and says where it failed first or worst.
#ifndef OP_COMPARE_H
#define OP_COMPARE_H

#include <qg_case.h>

// A quantized tensor and its dequantized values.
typedef struct op_quantized {
    qg_shape shape;
    uint8_t *codes, *scales;
    float tensor_scale;
    float *q; // (m, k)
} op_quantized;

// Bytes are compared: codes, scales, the tensor scale, and last the values, which only differ where
// dequantize is wrong. The mismatches of codes and scales are counted, a tensor scale as one.
void op_compare_quantized(const qg_case *c, const op_quantized *wanted, const op_quantized *got,
                          qg_case_result *result);

// (count) outputs beside their exact product and its |a| |b|^T, bias included:
// |out - exact| <= bound |a| |b|^T + underflow.
// What overflows the output type because it may is no failure, and where the product is not finite
// the output must not be either.
typedef struct op_product {
    int64_t count;
    const float *out;
    const double *exact, *size;
    double bound, underflow;
} op_product;
void op_hold_bound(const qg_case *c, const op_product *p, qg_case_result *result);

#endif
