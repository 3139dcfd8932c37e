// Encode and decode: the specification, for every format, rounding and overflow mode.
//
// One rounding from binary64 to a code. binary32, binary16 and bfloat16 sources widen exactly, so
// callers pass them as double. Special values first, the main path last. C and CUDA.
// Sources: IEEE 754-2019 4.3 and 7.4; P3109 interim report v4.0, 4.7.4 to 4.7.6; OCP MX v1.0 5.3.
#ifndef QG_CODEC_H
#define QG_CODEC_H

#include <qg_format.h>

enum {
    QG_ROUND_RNE, // nearest, ties to even code
    QG_ROUND_RNA, // nearest, ties away from zero
    QG_ROUND_RTZ, // toward zero
    QG_ROUND_RTP, // toward +infinity
    QG_ROUND_RTN, // toward -infinity
    QG_ROUND_RTO, // to odd: inexact results get the odd neighbour
    QG_ROUND_STOCHASTIC_A, // up when floor(v 2^N) + R >= 2^N, v the discarded fraction
    QG_ROUND_STOCHASTIC_B, // up when floor(v 2^(N+1)) + 2 R + 1 >= 2^(N+1)
    QG_ROUND_STOCHASTIC_C, // up when rne(v 2^N) + R >= 2^N
    QG_ROUND_COUNT
};

// How to round: a mode, and for the stochastic ones N, the number of random bits (1 .. 32).
typedef struct qg_rounding {
    uint8_t mode;
    uint8_t bits;
} qg_rounding;

// Beyond the largest value F: F (infinity too), or what the format says (infinity or NaN).
enum { QG_OVERFLOW_SATURATE, QG_OVERFLOW_FORMAT };

// NaN in a format without one: the largest value (CUDA), or zero (ml_dtypes: -0 where it exists).
enum { QG_NAN_TO_MAX, QG_NAN_TO_ZERO };

// A complete conversion.
typedef struct qg_conversion {
    qg_rounding rounding;
    uint8_t overflow;
    uint8_t nan;
} qg_conversion;

QG_HD int qg_rounding_is_stochastic(qg_rounding rounding) {
    return rounding.mode >= QG_ROUND_STOCHASTIC_A;
}

// ---------------------------------------------------------------------------------------- decode

QG_HD double qg_decode_nan(void) { return qg_double_of_bits(0x7ff8000000000000ull); }

QG_HD double qg_decode_int(const qg_format_info *info, uint64_t code) {
    uint64_t top = 1ull << (info->bits - 1);
    int64_t value = (int64_t)((code & (2 * top - 1)) ^ top) - (int64_t)top;
    return (double)value * qg_double_pow2(-info->bias);
}

// The finite value of a magnitude code at most max_code.
QG_HD double qg_decode_magnitude(const qg_format_info *info, uint64_t magnitude) {
    if (!info->zero)
        return qg_double_pow2((int)magnitude - info->bias);
    uint64_t mantissa = magnitude & ((1ull << info->mbits) - 1);
    int exponent = (int)(magnitude >> info->mbits);
    if (exponent == 0)
        return (double)mantissa * qg_double_pow2(1 - info->bias - info->mbits);
    return (double)(mantissa + (1ull << info->mbits)) *
           qg_double_pow2(exponent - info->bias - info->mbits);
}

// The exact value of a code; NaN codes and codes that the format does not define give NaN.
QG_HD double qg_decode(const qg_format_info *info, uint64_t code) {
    if (info->kind == QG_KIND_INT)
        return qg_decode_int(info, code);
    code >>= info->shift;
    uint64_t sign_bit = qg_format_sign_bit(info);
    if (info->nan == QG_NAN_SLOT && code == sign_bit)
        return qg_decode_nan();
    uint64_t magnitude = sign_bit ? code & ~sign_bit : code;
    double value;
    if (magnitude <= info->max_code)
        value = qg_decode_magnitude(info, magnitude);
    else if (info->inf_code != QG_NO_INF && magnitude == info->inf_code)
        value = qg_double_of_bits(0x7ff0000000000000ull);
    else
        return qg_decode_nan();
    return code & sign_bit ? -value : value;
}

// The largest finite value F.
QG_HD double qg_format_max(const qg_format_info *info) {
    if (info->kind == QG_KIND_INT)
        return (double)info->max_code * qg_double_pow2(-info->bias);
    return qg_decode_magnitude(info, info->max_code);
}

// floor(log2 F).
QG_HD int qg_format_emax(const qg_format_info *info) {
    return qg_double_exponent(qg_format_max(info));
}

// The smallest value with a full significand: 2^(1 - bias). Integers: one unit.
QG_HD double qg_format_min_normal(const qg_format_info *info) {
    if (info->kind == QG_KIND_INT)
        return qg_double_pow2(-info->bias);
    return info->zero ? qg_double_pow2(1 - info->bias) : qg_double_pow2(-info->bias);
}

// The smallest positive value.
QG_HD double qg_format_min_positive(const qg_format_info *info) {
    if (info->kind == QG_KIND_INT)
        return qg_double_pow2(-info->bias);
    return info->zero ? qg_decode_magnitude(info, 1) : qg_double_pow2(-info->bias);
}

// ---------------------------------------------------------------------------------------- encode

// A magnitude between two neighbouring codes: `floor` and the discarded fraction v in [0, 1).
typedef struct qg_unrounded {
    uint64_t floor;
    uint64_t fraction; // floor(v 2^64)
    int sticky;        // v has bits below 2^-64
} qg_unrounded;

// significand / 2^drop, split at the binary point. significand < 2^53.
QG_HD qg_unrounded qg_split(uint64_t significand, int drop) {
    qg_unrounded u = QG_ZEROED;
    if (drop <= 0) {
        u.floor = significand << -drop;
    } else if (drop < 64) {
        u.floor = significand >> drop;
        u.fraction = significand << (64 - drop);
    } else if (drop < 128) {
        u.fraction = significand >> (drop - 64);
        u.sticky = drop > 64 && significand << (128 - drop) != 0;
    } else {
        u.sticky = significand != 0;
    }
    return u;
}

// Whether the magnitude rounds up to the next code. `negative` matters to the directed modes,
// `word` (its top bits) to the stochastic ones.
QG_HD int qg_rounds_up(qg_unrounded u, qg_rounding rounding, int negative, uint32_t word) {
    const uint64_t half = 1ull << 63;
    int inexact = u.fraction != 0 || u.sticky;
    int odd = (int)(u.floor & 1);
    int n = rounding.bits;
    uint64_t r = n > 0 && n <= 32 ? word >> (32 - n) : 0;
    switch (rounding.mode) {
    case QG_ROUND_RNE:
        return u.fraction > half || (u.fraction == half && (u.sticky || odd));
    case QG_ROUND_RNA: return u.fraction >= half;
    case QG_ROUND_RTZ: return 0;
    case QG_ROUND_RTP: return inexact && !negative;
    case QG_ROUND_RTN: return inexact && negative;
    case QG_ROUND_RTO: return inexact && !odd;
    case QG_ROUND_STOCHASTIC_A: return (u.fraction >> (64 - n)) + r >= 1ull << n;
    case QG_ROUND_STOCHASTIC_B:
        return (u.fraction >> (63 - n)) + 2 * r + 1 >= 1ull << (n + 1);
    case QG_ROUND_STOCHASTIC_C: {
        uint64_t kept = u.fraction >> (64 - n), rest = u.fraction << n;
        int up = rest > half || (rest == half && (u.sticky || (kept & 1)));
        return kept + (uint64_t)up + r >= 1ull << n;
    }
    default: return 0;
    }
}

QG_HD uint64_t qg_encode_signed(const qg_format_info *info, uint64_t magnitude, int negative) {
    if (info->kind == QG_KIND_INT) {
        uint64_t mask = (1ull << info->bits) - 1;
        return (negative ? 0 - magnitude : magnitude) & mask;
    }
    if (magnitude == 0 && !qg_format_has_negative_zero(info))
        negative = 0;
    return (negative ? magnitude | qg_format_sign_bit(info) : magnitude) << info->shift;
}

// The canonical NaN, with the sign where that NaN can carry one.
QG_HD uint64_t qg_encode_nan_code(const qg_format_info *info, int negative) {
    if (info->nan == QG_NAN_SLOT)
        return qg_format_sign_bit(info);
    uint64_t ones = (1ull << (info->ebits + info->mbits)) - 1;
    return qg_encode_signed(info, ones, negative && info->sign);
}

QG_HD uint64_t qg_encode_nan(const qg_format_info *info, const qg_conversion *conversion) {
    if (info->nan != QG_NAN_NONE)
        return qg_encode_nan_code(info, 0);
    if (conversion->nan == QG_NAN_TO_MAX)
        return qg_encode_signed(info, info->max_code, 0);
    return qg_encode_signed(info, 0, 1);
}

QG_HD uint64_t qg_encode_max(const qg_format_info *info, int negative) {
    return qg_encode_signed(info, negative ? info->min_code : info->max_code, negative);
}

// Whether overflow in this mode stays at the largest value although the conversion does not
// saturate.
QG_HD int qg_overflow_stays_finite(const qg_format_info *info, int mode, int negative) {
    // P3109 4.7.5: to odd goes to infinity where infinity's code is the odd one (signed extended).
    int infinity_is_odd = info->nan == QG_NAN_SLOT && info->inf_code != QG_NO_INF;
    switch (mode) {
    case QG_ROUND_RTZ: return 1;
    case QG_ROUND_RTO: return !infinity_is_odd;
    case QG_ROUND_RTP: return negative;
    case QG_ROUND_RTN: return !negative;
    default: return 0;
    }
}

QG_HD uint64_t qg_encode_overflow(const qg_format_info *info, const qg_conversion *conversion,
                                  int negative, int is_infinite) {
    if (conversion->overflow == QG_OVERFLOW_SATURATE || info->overflow == QG_OVERFLOWS_TO_MAX)
        return qg_encode_max(info, negative);
    if (!is_infinite && qg_overflow_stays_finite(info, conversion->rounding.mode, negative))
        return qg_encode_max(info, negative);
    if (info->overflow == QG_OVERFLOWS_TO_INF)
        return qg_encode_signed(info, info->inf_code, negative);
    return qg_encode_nan_code(info, negative);
}

// A negative result in a format without sign: 0 when it saturates and in the modes that stop there;
// otherwise, and for -Inf, NaN (P3109 4.7.5: also where the domain is finite).
QG_HD uint64_t qg_encode_below_zero(const qg_format_info *info, const qg_conversion *conversion,
                                    int is_infinite) {
    int mode = conversion->rounding.mode;
    int stops_at_zero = !is_infinite && (mode == QG_ROUND_RTZ || mode == QG_ROUND_RTP);
    if (conversion->overflow == QG_OVERFLOW_SATURATE || stops_at_zero)
        return 0;
    return qg_encode_nan_code(info, 0);
}

// The code of x, rounded once. `word` is the random word of a stochastic mode (its top bits count).
QG_HD uint64_t qg_encode(const qg_format_info *info, double x, const qg_conversion *conversion,
                         uint32_t word) {
    uint64_t bits = qg_bits_of_double(x);
    int negative = (int)(bits >> 63);
    uint64_t significand = bits & 0x000fffffffffffffull;
    int field = (int)(bits >> 52 & 0x7ff);

    if (field == 0x7ff && significand != 0)
        return qg_encode_nan(info, conversion);
    if (!info->zero)
        negative = 0; // E8M0 takes the magnitude
    int below_zero = negative && !info->sign;
    if (field == 0x7ff)
        return below_zero ? qg_encode_below_zero(info, conversion, 1)
                          : qg_encode_overflow(info, conversion, negative, 1);
    if (field == 0 && significand == 0)
        return qg_encode_signed(info, 0, negative);

    int exponent = qg_double_exponent(x); // |x| = significand * 2^(exponent - 52)
    if (field != 0)
        significand |= 1ull << 52;
    else
        significand <<= -1022 - exponent;

    qg_unrounded u;
    int64_t magnitude;
    if (info->kind == QG_KIND_INT) {
        if (exponent > 62 - info->bias) // far above every integer format, and past 64-bit shifts
            return qg_encode_overflow(info, conversion, negative, 0);
        u = qg_split(significand, 52 - exponent - info->bias);
        magnitude = (int64_t)u.floor;
    } else {
        // Below the smallest normal exponent the grid stays: subnormals. E8M0 has none.
        int emin = info->zero ? 1 - info->bias : -info->bias;
        int grid = info->zero && exponent < emin ? emin : exponent;
        u = qg_split(significand, 52 - info->mbits + (grid - exponent));
        // Consecutive exponents are 2^mbits codes apart. A normal's floor holds its hidden bit,
        // which is the 2^mbits that exponent field 1 stands for; E8M0's field starts at 0.
        magnitude = (int64_t)(grid - emin) * (1ll << info->mbits) + (int64_t)u.floor;
        if (!info->zero)
            magnitude -= 1;
        u.floor = (uint64_t)magnitude; // parity is the code's
    }
    magnitude += qg_rounds_up(u, conversion->rounding, negative, word);

    if (magnitude < 0) // E8M0 below 2^-127
        return 0;
    if (below_zero && magnitude > 0)
        return qg_encode_below_zero(info, conversion, 0);
    if ((uint64_t)magnitude > (negative ? info->min_code : info->max_code))
        return qg_encode_overflow(info, conversion, negative, 0);
    return qg_encode_signed(info, (uint64_t)magnitude, negative);
}

#endif
