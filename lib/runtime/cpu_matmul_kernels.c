// The scalar kernels of products, and the choice. See cpu_matmul_kernels_internal.h.
#include <cpu_kernels_internal.h>
#include <cpu_matmul_rows_internal.h>

static void narrow(const matmul_table *t, const uint8_t *codes, int64_t stride, int64_t rows,
                   int64_t count, uint16_t *out, int64_t out_stride) {
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++)
            out[row * out_stride + i] = t->narrow[codes[row * stride + i]];
}

static void narrow_scaled(const matmul_table *t, const uint8_t *codes, int64_t count,
                          const float *scales, uint16_t *out) {
    for (int64_t i = 0; i < count; i++) {
        float value = t->wide[codes[i]] * scales[i / MATMUL_SCALED];
        out[i] = (uint16_t)(qg_bits_of_float(value) >> 16);
    }
}

static void interleave(const uint16_t *rows, int64_t length, int64_t column, uint16_t *strip) {
    for (int64_t row = 0; row < 16; row++)
        for (int64_t l = 0; l < length; l++)
            strip[(l / 2 * MATMUL_STRIP + column + row) * 2 + l % 2] = rows[row * length + l];
}

const matmul_kernels qg_matmul_kernels_scalar = {
    "scalar", narrow, narrow_scaled, interleave, matmul_add_scaled, matmul_finish_row,
};

const matmul_kernels *qg_matmul_kernels_choose(int scalar) {
#ifdef QG_HAVE_AVX512
    if (!scalar && cpu_kernels_isa() == QG_ISA_AVX512)
        return &qg_matmul_kernels_avx512;
#endif
    (void)scalar;
    return &qg_matmul_kernels_scalar;
}
