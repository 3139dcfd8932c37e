// The inner loops of products: codes to BF16, the interleaved panels of b, sums to outputs.
// A table of scalar kernels, and one for AVX-512 with VBMI; both give the same bytes.
#ifndef CPU_MATMUL_KERNELS_INTERNAL_H
#define CPU_MATMUL_KERNELS_INTERNAL_H

#include <qg_format.h>

#include <stddef.h>
#include <stdint.h>

enum {
    MATMUL_CODES = 256,
    MATMUL_SCALED = 16, // elements that share a scale of narrow_scaled
    MATMUL_STRIP = 64,  // columns of a strip of b
    MATMUL_GRAIN = 32   // BF16 panels are padded with zeros to a multiple of this along k
};

// What the codes of a format of at most 8 bits stand for.
typedef struct matmul_table {
    float wide[MATMUL_CODES];
    uint16_t narrow[MATMUL_CODES];                 // BF16
    uint8_t low[MATMUL_CODES], high[MATMUL_CODES]; // its bytes
} matmul_table;

// A row of sums on its way out: value = fl(fl(sum * fl(factor * factors[j])) + bias[j]), then one
// rounding to `type`. Without factors the sum is taken as it is.
typedef struct matmul_finish {
    qg_format type;
    float factor;
    const float *factors; // NULL: none
    const float *bias;    // NULL: none
} matmul_finish;

typedef struct matmul_kernels {
    const char *name;
    // out[i] = the BF16 of codes[i], of each row of codes.
    void (*narrow)(const matmul_table *t, const uint8_t *codes, int64_t stride, int64_t rows,
                   int64_t count, uint16_t *out, int64_t out_stride);
    // One row, times scales[i / MATMUL_SCALED]; the products must be BF16 numbers.
    void (*narrow_scaled)(const matmul_table *t, const uint8_t *codes, int64_t count,
                          const float *scales, uint16_t *out);
    // rows: 16 rows of `length` elements, a multiple of MATMUL_GRAIN; strip: pairs of elements of
    // k, (length / 2, MATMUL_STRIP, 2); `column`: where the first row goes.
    void (*interleave)(const uint16_t *rows, int64_t length, int64_t column, uint16_t *strip);
    // sum[j] = (first ? 0 : sum[j]) + fl(fl(factor * factors[j]) * part[j])
    void (*add_scaled)(const float *part, float factor, const float *factors, int64_t count,
                       int first, float *sum);
    void (*finish)(const matmul_finish *f, const float *sum, int64_t count, void *out);
} matmul_kernels;

extern const matmul_kernels qg_matmul_kernels_scalar;
extern const matmul_kernels qg_matmul_kernels_avx512;

// Those of the set of cpu_kernels_isa, or the next lower; scalar where `scalar` is set.
const matmul_kernels *qg_matmul_kernels_choose(int scalar);

#endif
