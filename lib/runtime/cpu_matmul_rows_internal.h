// Loops over a row of sums, compiled once for each instruction set: plain C that vectorizes, one
// IEEE operation per step, so that the bytes are the same.
#ifndef CPU_MATMUL_ROWS_INTERNAL_H
#define CPU_MATMUL_ROWS_INTERNAL_H

#include <cpu_matmul_kernels_internal.h>
#include <qg_bits.h>

// A product and a sum, each rounded: not FMA, which not every processor has.
static void matmul_add_scaled(const float *part, float factor, const float *factors, int64_t count,
                              int first, float *sum) {
    if (first)
        for (int64_t j = 0; j < count; j++)
            sum[j] = factor * factors[j] * part[j];
    else
        for (int64_t j = 0; j < count; j++)
            sum[j] = sum[j] + factor * factors[j] * part[j];
}

static inline float matmul_finished(float value, float scale, float bias, int scaled, int biased) {
    if (scaled)
        value = value * scale;
    if (biased)
        value = value + bias;
    return value;
}

static inline uint32_t matmul_fp32_bits(float x) {
    return x == x ? qg_bits_of_float(x) : 0x7fffffffu;
}

// RNE in the integers: adding half an ulp less the parity carries into the exponent where it must.
static inline uint16_t matmul_bf16_bits(float x) {
    uint32_t bits = qg_bits_of_float(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)(x == x ? rounded : 0x7fffu);
}

// RNE. Normal results as BF16 above; below 2^-14, adding 0.5, whose ulp is the spacing of FP16's
// subnormals, rounds. From 65520 on: infinity.
static inline uint16_t matmul_fp16_bits(float x) {
    uint32_t bits = qg_bits_of_float(x), sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t tiny = qg_bits_of_float(qg_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t code = magnitude < 0x38800000u ? tiny : normal;
    code = magnitude >= 0x477ff000u ? 0x7c00u : code;
    return (uint16_t)(magnitude > 0x7f800000u ? 0x7fffu : sign | code);
}

// One loop per output type, and per kind of epilogue once `scaled` and `biased` are constants.
#define MATMUL_FINISH_LOOP(TYPE, convert)                                                          \
    for (int64_t j = 0; j < count; j++)                                                            \
    ((TYPE *)out)[j] = convert(matmul_finished(sum[j], scaled ? f->factor * f->factors[j] : 1.0f,  \
                                               biased ? f->bias[j] : 0.0f, scaled, biased))

static inline void matmul_finish_kind(const matmul_finish *f, const float *sum, int64_t count,
                                      void *out, int scaled, int biased) {
    switch (f->type) {
    case QG_FORMAT_BF16: MATMUL_FINISH_LOOP(uint16_t, matmul_bf16_bits); break;
    case QG_FORMAT_FP16: MATMUL_FINISH_LOOP(uint16_t, matmul_fp16_bits); break;
    default: MATMUL_FINISH_LOOP(uint32_t, matmul_fp32_bits); break;
    }
}

static void matmul_finish_row(const matmul_finish *f, const float *sum, int64_t count, void *out) {
    if (f->factors && f->bias)
        matmul_finish_kind(f, sum, count, out, 1, 1);
    else if (f->factors)
        matmul_finish_kind(f, sum, count, out, 1, 0);
    else if (f->bias)
        matmul_finish_kind(f, sum, count, out, 0, 1);
    else
        matmul_finish_kind(f, sum, count, out, 0, 0);
}

#endif
