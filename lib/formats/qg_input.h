// The types in which data come, widened to binary32: bf16 and binary16, by bits. NaN keeps its
// payload, so that magnitudes stay in the order of their bits. And the types in which sums leave.
// C and CUDA. Exact.
#ifndef QG_INPUT_H
#define QG_INPUT_H

#include <qg_bits.h>

QG_HD float qg_float_of_bf16(uint16_t bits) { return qg_float_of_bits((uint32_t)bits << 16); }

// The bits of a binary16's magnitude as binary32.
QG_HD uint32_t qg_magnitude_of_fp16(uint16_t bits) {
    uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00)
        return 0x7f800000u | (magnitude & 0x3ff) << 13;
    if (magnitude >= 0x0400)
        return (magnitude << 13) + (112u << 23);
    return qg_bits_of_float((float)magnitude * 0x1p-24f);
}

QG_HD float qg_float_of_fp16(uint16_t bits) {
    return qg_float_of_bits((uint32_t)(bits & 0x8000u) << 16 | qg_magnitude_of_fp16(bits));
}

// RNE; overflow to infinity; NaN is 7fc0 with the sign dropped.
QG_HD uint16_t qg_bf16_of_float(float x) {
    uint32_t bits = qg_bits_of_float(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

// ----------------------------------------------------------------------------------------- results

// Sums of products as they are stored: RNE, overflow to infinity; a NaN is all ones but the sign.
// What qg_encode gives for binary32, bfloat16 and binary16.
QG_HD float qg_canonical_sum(float x) { return x == x ? x : qg_float_of_bits(0x7fffffffu); }

QG_HD uint16_t qg_bf16_of_sum(float x) {
    uint32_t bits = qg_bits_of_float(x);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(qg_float_is_nan(x) ? 0x7fffu : rounded);
}

QG_HD uint16_t qg_fp16_of_sum(float x) {
    uint32_t bits = qg_bits_of_float(x), magnitude = bits & 0x7fffffffu;
    // Below 2^-14 the last place is 2^-24, as that of 0.5 is.
    uint32_t small = qg_bits_of_float(qg_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    uint32_t code = magnitude < 0x38800000u ? small : normal;
    code = magnitude >= 0x477ff000u ? 0x7c00u : code; // 65520, half a step above the largest
    code |= bits >> 16 & 0x8000u;
    return (uint16_t)(magnitude > 0x7f800000u ? 0x7fffu : code);
}

#endif
