// The types in which data come, widened to binary32: bf16 and binary16, by bits. NaN keeps its
// payload, so that magnitudes stay in the order of their bits. C and CUDA. Exact.
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

#endif
