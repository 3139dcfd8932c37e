// The last rounding of a product: to nearest, ties to even, in 32-bit integers. A NaN is all ones
// but the sign. Exact: what qg_encode gives for binary32, bfloat16 and binary16.
#ifndef PRODUCT_STORE_INTERNAL_H
#define PRODUCT_STORE_INTERNAL_H

#include <qg_bits.h>
#include <qg_format.h>

static inline uint32_t store_binary32(float x) {
    return qg_float_is_nan(x) ? 0x7fffffffu : qg_bits_of_float(x);
}

static inline uint16_t store_bfloat16(float x) {
    uint32_t bits = qg_bits_of_float(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(qg_float_is_nan(x) ? 0x7fffu : rounded);
}

static inline uint16_t store_binary16(float x) {
    uint32_t bits = qg_bits_of_float(x), magnitude = bits & 0x7fffffffu;
    // Below 2^-14 the last place is 2^-24, as that of 0.5 is.
    uint32_t small = qg_bits_of_float(qg_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    uint32_t code = magnitude < 0x38800000u ? small : normal;
    code = magnitude >= 0x477ff000u ? 0x7c00u : code; // 65520, half a step above the largest
    code |= bits >> 16 & 0x8000u;
    return (uint16_t)(magnitude > 0x7f800000u ? 0x7fffu : code);
}

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
