// Reading floating-point numbers as bits. Exponents come from here, never from a logarithm.
// C and CUDA. Every function is exact.
#ifndef QG_BITS_H
#define QG_BITS_H

#include <qg_hd.h>
#include <stdint.h>
#include <string.h>

QG_HD uint32_t qg_bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

QG_HD float qg_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

QG_HD uint64_t qg_bits_of_double(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

QG_HD double qg_double_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

QG_HD int qg_float_is_nan(float x) { return (qg_bits_of_float(x) & 0x7fffffffu) > 0x7f800000u; }
QG_HD int qg_float_is_inf(float x) { return (qg_bits_of_float(x) & 0x7fffffffu) == 0x7f800000u; }
QG_HD int qg_float_is_finite(float x) { return (qg_bits_of_float(x) & 0x7f800000u) != 0x7f800000u; }
QG_HD float qg_float_abs(float x) { return qg_float_of_bits(qg_bits_of_float(x) & 0x7fffffffu); }

// floor(log2 |x|) of a finite non-zero x, subnormals normalised: -149 .. 127.
QG_HD int qg_float_exponent(float x) {
    uint32_t magnitude = qg_bits_of_float(x) & 0x7fffffffu;
    if (magnitude >= 0x00800000u)
        return (int)(magnitude >> 23) - 127;
    int exponent = -127;
    for (magnitude <<= 1; magnitude < 0x00800000u; magnitude <<= 1)
        exponent--;
    return exponent;
}

// The 23 fraction bits of a finite non-zero x, normalised (those of a subnormal shifted up).
QG_HD uint32_t qg_float_fraction(float x) {
    uint32_t magnitude = qg_bits_of_float(x) & 0x7fffffffu;
    if (magnitude >= 0x00800000u)
        return magnitude & 0x007fffffu;
    while (magnitude < 0x00800000u)
        magnitude <<= 1;
    return magnitude & 0x007fffffu;
}

// floor(log2 |x|) of a finite non-zero x, subnormals normalised: -1074 .. 1023.
QG_HD int qg_double_exponent(double x) {
    uint64_t magnitude = qg_bits_of_double(x) & 0x7fffffffffffffffull;
    if (magnitude >= 0x0010000000000000ull)
        return (int)(magnitude >> 52) - 1023;
    int exponent = -1023;
    for (magnitude <<= 1; magnitude < 0x0010000000000000ull; magnitude <<= 1)
        exponent--;
    return exponent;
}

// 2^e as binary32, for e in -149 .. 127 (subnormals included); below 0, above infinity.
QG_HD float qg_float_pow2(int e) {
    if (e < -149)
        return 0.0f;
    if (e < -126)
        return qg_float_of_bits(1u << (e + 149));
    if (e > 127)
        return qg_float_of_bits(0x7f800000u);
    return qg_float_of_bits((uint32_t)(e + 127) << 23);
}

// 2^e as binary64, for e in -1074 .. 1023; below 0, above infinity.
QG_HD double qg_double_pow2(int e) {
    if (e < -1074)
        return 0.0;
    if (e < -1022)
        return qg_double_of_bits(1ull << (e + 1074));
    if (e > 1023)
        return qg_double_of_bits(0x7ff0000000000000ull);
    return qg_double_of_bits((uint64_t)(e + 1023) << 52);
}

#endif
