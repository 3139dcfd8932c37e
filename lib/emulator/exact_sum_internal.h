// An exact sum of products of binary32 numbers: fixed point, wide enough for every product and for
// 2^63 of them. Used by the unit `exact` and by the units that add exactly.
// Exact: nothing is rounded before exact_sum_value.
#ifndef EXACT_SUM_INTERNAL_H
#define EXACT_SUM_INTERNAL_H

#include <qg_bits.h>
#include <stdbool.h>

// Digit i holds multiples of 2^(32 i + EXACT_SUM_LEAST). Products reach from 2^-298, in binary64 a
// significand of 53 bits whose last one is 2^-350, to 2^256.
enum { EXACT_SUM_DIGITS = 23, EXACT_SUM_LEAST = -352 };
enum { EXACT_SUM_CARRY_EVERY = 1 << 28 }; // digits then stay below 2^62

typedef struct exact_sum {
    int64_t digit[EXACT_SUM_DIGITS]; // signed, carries pending
    int64_t pending;
    bool nan, plus_infinity, minus_infinity;
} exact_sum;

// Digits to 0 .. 2^32 - 1, except the last, which keeps the sign.
static inline void exact_sum_carry(exact_sum *s) {
    int64_t carry = 0;
    for (int i = 0; i < EXACT_SUM_DIGITS - 1; i++) {
        int64_t digit = s->digit[i] + carry;
        int64_t low = digit & 0xffffffff;
        carry = (digit - low) / 0x100000000;
        s->digit[i] = low;
    }
    s->digit[EXACT_SUM_DIGITS - 1] += carry;
    s->pending = 0;
}

// += +-magnitude * 2^exponent.
static inline void exact_sum_add(exact_sum *s, bool negative, uint64_t magnitude, int exponent) {
    int at = exponent - EXACT_SUM_LEAST, place = at / 32, shift = at % 32;
    uint64_t low = magnitude << shift, high = magnitude >> 1 >> (63 - shift);
    int64_t sign = negative ? -1 : 1;
    s->digit[place] += sign * (int64_t)(low & 0xffffffffu);
    s->digit[place + 1] += sign * (int64_t)(low >> 32);
    s->digit[place + 2] += sign * (int64_t)high;
    if (++s->pending == EXACT_SUM_CARRY_EVERY)
        exact_sum_carry(s);
}

// += x, a binary32 number or a product of two of them (exact in binary64 and normal there).
static inline void exact_sum_add_value(exact_sum *s, double x) {
    uint64_t bits = qg_bits_of_double(x);
    int field = (int)(bits >> 52 & 0x7ff);
    bool negative = bits >> 63;
    uint64_t fraction = bits & 0xfffffffffffffu;
    if (field == 0x7ff) {
        s->nan |= fraction != 0;
        s->minus_infinity |= fraction == 0 && negative;
        s->plus_infinity |= fraction == 0 && !negative;
    } else if (field != 0) {
        exact_sum_add(s, negative, fraction | 1ull << 52, field - 1075);
    }
}

// The sum, rounded to odd: rounding it again to at most 51 bits, in any mode, is rounding the sum
// once. An exact zero is +0.
static inline double exact_sum_value(exact_sum *s) {
    if (s->nan || (s->plus_infinity && s->minus_infinity))
        return qg_double_of_bits(0x7ff8000000000000u);
    if (s->plus_infinity || s->minus_infinity)
        return qg_double_of_bits(s->minus_infinity ? 0xfff0000000000000u : 0x7ff0000000000000u);
    exact_sum magnitude = *s;
    exact_sum_carry(&magnitude);
    bool negative = magnitude.digit[EXACT_SUM_DIGITS - 1] < 0;
    if (negative) {
        for (int i = 0; i < EXACT_SUM_DIGITS; i++)
            magnitude.digit[i] = -magnitude.digit[i];
        exact_sum_carry(&magnitude);
    }
    int top = EXACT_SUM_DIGITS - 1;
    while (top > 2 && magnitude.digit[top] == 0)
        top--;
    // 64 bits from the first that is set, and whether any below is.
    uint64_t leading = (uint64_t)magnitude.digit[top] << 32 | (uint64_t)magnitude.digit[top - 1];
    uint64_t rest = (uint64_t)magnitude.digit[top - 2] << 32;
    if (leading == 0 && rest == 0)
        return 0.0;
    int shift = 0;
    for (; leading >> 63 == 0; shift++) {
        leading = leading << 1 | rest >> 63;
        rest <<= 1;
    }
    bool inexact = rest != 0 || (leading & 0x7ff) != 0;
    for (int i = 0; i < top - 2; i++)
        inexact |= magnitude.digit[i] != 0;
    double kept = (double)(leading >> 11 | inexact);
    double value = kept * qg_double_pow2(EXACT_SUM_LEAST + 32 * (top - 1) - shift + 11);
    return negative ? -value : value;
}

#endif
