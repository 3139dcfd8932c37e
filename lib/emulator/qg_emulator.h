// The specification of quantize and dequantize, for every recipe: scalar, and reading like it.
//
// Buffers are the caller's, in logical order: codes row-major (m, k), one per qg_shape.code_bytes
// bytes, unpacked; scales row-major over blocks, unpadded; qg_pack.h and qg_scale_order.h make the
// packed and padded forms. Bytes do not depend on threads. No I/O, no allocation.
#ifndef QG_EMULATOR_H
#define QG_EMULATOR_H

#include <qg_recipe.h>
#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// What the buffers of a quantized (m, k) tensor must hold.
typedef struct qg_shape {
    qg_blocks blocks;
    int32_t planes;      // 2 for residual recipes, else 1: planes follow one another in `codes`
    int32_t code_bytes;  // of one code, little endian
    int32_t scale_bytes; // of one block's scale field: 4, 1, 2 (pair shifts) or 8 (residual)
    int32_t has_tensor_scale;
    int64_t codes_size;  // bytes: planes * m * k * code_bytes
    int64_t scales_size; // bytes: blocks * scale_bytes
} qg_shape;

// QG_ERROR_ARGUMENT (m or k below 1, a recipe whose fields do not fit), QG_ERROR_OVERFLOW.
qg_status qg_shape_of(const qg_recipe *recipe, int64_t m, int64_t k, qg_shape *out);

// What a quantization needs beside the data.
typedef struct qg_quantize_options {
    qg_format input_type;      // QG_FORMAT_FP32, _BF16 or _FP16: the type whose values x holds
    uint64_t seed;             // of stochastic rounding
    uint32_t stream;           // QG_STREAM_ROUNDING, + QG_STREAM_OPERAND_B for operand b
    int threads;               // 0: all
    const float *amax_history; // rule `delayed`: (history_length) amaxes of the steps before
    int64_t history_length;
} qg_quantize_options;

// Element counts of one quantization; v = x / X as the encoder sees it, F the largest value.
typedef struct qg_counts {
    int64_t n;
    int64_t nan, inf;    // of the input
    int64_t saturated;   // |v| > F
    int64_t clipped;     // |v| >= F + half the last step
    int64_t underflowed; // x != 0, dequantized value 0 (NaN is not counted)
    int64_t subnormal;   // non-zero code below the smallest normal (floats)
    int64_t exact;       // dequantized value equals x
    int64_t blocks, zero_blocks, nan_scales;
} qg_counts;

// codes: qg_shape.codes_size bytes; scales: scales_size bytes; tensor_scale: one binary32, may be
// NULL where has_tensor_scale is 0, and is set to 1 there; counts may be NULL. x: (m, k) row-major.
// Residual recipes: v, `subnormal` and `nan_scales` are those of the first plane.
// QG_ERROR_ARGUMENT: as qg_shape_of; rule `delayed` without a history.
qg_status qg_emulator_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                               int64_t m, int64_t k, const float *x, uint8_t *codes,
                               uint8_t *scales, float *tensor_scale, qg_counts *counts);

// codes of x under scales (and a tensor scale, read where has_tensor_scale is 1) that are given, of
// this tensor or another: what qg_emulator_quantize does once it has its scales. Scales of its own
// give its codes, except under rules `amax_mul` and `delayed`: they multiply by an s of which the
// stored fl(1/s) does not say all, here by the inverse of what is stored. Rule `fixed` reads the
// given scales, too. QG_ERROR_ARGUMENT: as qg_shape_of; another input type.
qg_status qg_emulator_encode(const qg_recipe *recipe, const qg_quantize_options *options, int64_t m,
                             int64_t k, const float *x, const uint8_t *scales, float tensor_scale,
                             uint8_t *codes);

// q: (m, k) row-major: binary32 RNE of the exact code * X, overflow to infinity; two-level recipes
// as the system that they name decodes. NaN scales give NaN; every NaN is 7fffffff.
qg_status qg_emulator_dequantize(const qg_recipe *recipe, int64_t m, int64_t k,
                                 const uint8_t *codes, const uint8_t *scales, float tensor_scale,
                                 int threads, float *q);

// r: (count) binary32 whose values are bf16: qg_silu_times_up (qg_silu.h) of gate and up, both
// (count) of input_type: float, or uint16_t of bf16 and fp16. What is quantized after it has input
// type bf16. QG_ERROR_ARGUMENT: another input type.
qg_status qg_emulator_silu_times_up(int64_t count, qg_format input_type, const void *gate,
                                    const void *up, float *r);

QG_EXTERN_C_END

#endif
