// The last rounding of a product: to nearest, ties to even, in 32-bit integers. A NaN is all ones
// but the sign. Exact: what qg_encode gives for binary32, bfloat16 and binary16.
#ifndef PRODUCT_STORE_INTERNAL_H
#define PRODUCT_STORE_INTERNAL_H

#include <qg_format.h>
#include <qg_input.h>

static inline uint32_t store_binary32(float x) { return qg_bits_of_float(qg_canonical_sum(x)); }
static inline uint16_t store_bfloat16(float x) { return qg_bf16_of_sum(x); }
static inline uint16_t store_binary16(float x) { return qg_fp16_of_sum(x); }

// x to binary32, inexact results to the odd neighbour: rounding those to nearest in 22 bits or
// fewer rounds x once.
static inline float store_to_odd(double x) {
    float nearest = (float)x;
    double back = nearest;
    if (back == x || x != x)
        return nearest;
    uint32_t bits = qg_bits_of_float(nearest), sign = bits & 0x80000000u;
    sign |= (uint32_t)(qg_bits_of_double(x) >> 63) << 31;
    uint32_t away = (back < 0 ? -back : back) > (x < 0 ? -x : x);
    return qg_float_of_bits(sign | (((bits & 0x7fffffffu) - away) | 1));
}

// out[at + i] = values[i]; type: QG_FORMAT_FP32, _BF16 or _FP16.
static inline void store_floats(qg_format type, int64_t count, const float *values, void *out,
                                int64_t at) {
    uint16_t *narrow = (uint16_t *)out + at;
    if (type == QG_FORMAT_FP32)
        for (int64_t i = 0; i < count; i++)
            ((float *)out)[at + i] = qg_float_of_bits(store_binary32(values[i]));
    else if (type == QG_FORMAT_BF16)
        for (int64_t i = 0; i < count; i++)
            narrow[i] = store_bfloat16(values[i]);
    else
        for (int64_t i = 0; i < count; i++)
            narrow[i] = store_binary16(values[i]);
}

// The code of x, rounded once.
static inline uint32_t store_code(qg_format type, double x) {
    if (type == QG_FORMAT_FP32)
        return store_binary32((float)x);
    return type == QG_FORMAT_BF16 ? store_bfloat16(store_to_odd(x))
                                  : store_binary16(store_to_odd(x));
}

static inline void store_double(qg_format type, double x, void *out, int64_t at) {
    if (type == QG_FORMAT_FP32)
        ((float *)out)[at] = qg_float_of_bits(store_code(type, x));
    else
        ((uint16_t *)out)[at] = (uint16_t)store_code(type, x);
}

#endif
