// The branch-free encoder: from the bits of a binary32 value to a code of at most 8 bits, in 32-bit
// integer operations. The same text serves one lane (C and CUDA) and vectors of lanes (GCC, clang).
// Takes floats and integers, every rounding, overflow and NaN policy of qg_codec.h; a format whose
// range is wider than qg_encoder32_takes allows needs qg_encode.
// Exact: equal to qg_encode for every input (tests/formats/test_encode32*.c).
//
// Integers are floats whose codes all lie on the grid of the smallest normal: 7 mantissa bits below
// it hold every magnitude up to 255, and what exceeds that overflows anyway.
#ifndef QG_ENCODE32_H
#define QG_ENCODE32_H

#include <qg_codec.h>

typedef struct qg_encoder32 {
    uint32_t grid;          // binary32 exponent field of the smallest normal: below, spacing stays
    uint32_t drop;          // bits of a 24-bit significand beyond the mantissa, at a normal
    uint32_t mbits;         // log2 of the codes per binade
    uint32_t limit[2];      // largest magnitude code of a number >= 0, < 0
    uint32_t overflow[2];   // code of finite numbers beyond it
    uint32_t infinity[2];   // code of infinity
    uint32_t nan;           // code of NaN
    uint32_t flip, add;     // code of a negative magnitude: ((magnitude ^ flip) + add) & mask
    uint32_t mask;          // the code's bits
    uint32_t keeps_no_sign; // all ones: the zero has no sign
    uint32_t random_bits;   // N of stochastic rounding
    int32_t mode;
} qg_encoder32;

// Binary32 subnormals must lie so far below the smallest positive value that 32 random bits do not
// reach them, and every binary32 exponent must stay one.
QG_HD int qg_encoder32_takes(const qg_format_info *info) {
    if (info->bits > 8 || !info->zero || info->shift)
        return 0;
    if (info->kind == QG_KIND_INT)
        return info->bias >= -32 && info->bias <= 32;
    return qg_double_exponent(qg_format_min_positive(info)) >= -64 && qg_format_emax(info) <= 96;
}

QG_HD qg_encoder32 qg_encoder32_of(const qg_format_info *info, const qg_conversion *conversion) {
    const double inf = qg_double_of_bits(0x7ff0000000000000ull);
    qg_encoder32 e;
    int is_int = info->kind == QG_KIND_INT, mbits = is_int ? 7 : info->mbits;
    int emin = is_int ? 7 - info->bias : 1 - info->bias;
    e.grid = (uint32_t)(emin + 127);
    e.mbits = (uint32_t)mbits;
    e.drop = (uint32_t)(23 - mbits);
    e.limit[0] = (uint32_t)info->max_code;
    e.limit[1] = info->sign ? (uint32_t)info->min_code : 0;
    e.overflow[0] = (uint32_t)qg_encode_overflow(info, conversion, 0, 0);
    e.overflow[1] = (uint32_t)(info->sign ? qg_encode_overflow(info, conversion, 1, 0)
                                          : qg_encode_below_zero(info, conversion, 0));
    e.infinity[0] = (uint32_t)qg_encode(info, inf, conversion, 0);
    e.infinity[1] = (uint32_t)qg_encode(info, -inf, conversion, 0);
    e.nan = (uint32_t)qg_encode_nan(info, conversion);
    e.flip = is_int ? 0xffffffffu : (uint32_t)qg_format_sign_bit(info);
    e.add = is_int ? 1 : 0;
    e.mask = (1u << info->bits) - 1;
    e.keeps_no_sign = is_int || qg_format_has_negative_zero(info) ? 0 : 0xffffffffu;
    e.random_bits = conversion->rounding.bits;
    e.mode = conversion->rounding.mode;
    return e;
}

// The text. LANES: uint32_t or a vector of them; MASK(condition): all ones where it holds. `mode`
// is e->mode, apart so that a loop may know it as a constant. A count of bits to drop beyond 31 (63
// for the stochastic modes) leaves nothing but the fact that something was dropped.
// clang-format off
#define QG_ENCODE32_DEFINE(QUALIFIER, NAME, LANES, MASK)                                           \
    QUALIFIER LANES NAME##_addend(int mode, LANES negative, LANES odd, LANES drop) {               \
        LANES one = odd - odd + 1u;                                                                \
        LANES half = one << (drop - 1u), below_one = (one << drop) - 1u;                           \
        switch (mode) {                                                                            \
        case QG_ROUND_RNE: return half - 1u + odd;                                                 \
        case QG_ROUND_RNA: return half;                                                            \
        case QG_ROUND_RTP: return below_one & ~negative;                                           \
        case QG_ROUND_RTN: return below_one & negative;                                            \
        case QG_ROUND_RTO: return below_one & (odd - 1u);                                          \
        default: return one - one;                                                                 \
        }                                                                                          \
    }                                                                                              \
    /* 1 where a stochastic mode rounds significand / 2^drop up. */                                \
    QUALIFIER LANES NAME##_stochastic(int mode, uint32_t n, LANES significand, LANES drop,         \
                                      LANES word) {                                                \
        LANES beyond = (drop - 32u) & MASK(drop > 32u);                                            \
        LANES top = significand << (32u - drop + beyond);                                          \
        LANES high = top >> beyond, low = (top << (31u - beyond)) << 1;                            \
        uint32_t place = 32u - n, kept_bits = 0xffffffffu << place;                                \
        LANES kept = high & kept_bits, random = word & kept_bits;                                  \
        LANES rest = n < 32 ? high << (n & 31u) : low, next = rest >> 31;                          \
        LANES lower = (rest << 1) | (n < 32 ? low : low - low);                                    \
        LANES up = next & ((MASK(lower != 0u) & 1u) | (kept >> place));                            \
        LANES extra = (mode == QG_ROUND_STOCHASTIC_A   ? next - next                               \
                       : mode == QG_ROUND_STOCHASTIC_B ? next                                      \
                                                       : up) << place;                             \
        LANES sum = kept + random, all = sum + extra;                                              \
        return (MASK(sum < random) | MASK(all < sum)) & 1u;                                        \
    }                                                                                              \
    QUALIFIER LANES NAME(const qg_encoder32 *e, int mode, LANES bits, LANES word) {                \
        int is_stochastic = mode >= QG_ROUND_STOCHASTIC_A;                                         \
        uint32_t most = is_stochastic ? 63u : 31u;                                                 \
        LANES negative = 0u - (bits >> 31), magnitude = bits & 0x7fffffffu;                        \
        LANES field = magnitude >> 23;                                                             \
        LANES significand = (magnitude & 0x007fffffu) | (MASK(field != 0u) & 0x00800000u);         \
        LANES below = MASK(field < e->grid);                                                       \
        LANES base = ((field - e->grid) & ~below) << e->mbits;                                     \
        LANES drop = ((e->grid - field) & below) + e->drop, far = MASK(drop > most);               \
        drop = (drop & ~far) | (far & most);                                                       \
        LANES shift = is_stochastic ? drop - ((drop - 31u) & MASK(drop > 31u)) : drop;             \
        LANES code;                                                                                \
        if (is_stochastic) {                                                                       \
            code = base + (significand >> shift) +                                                 \
                   NAME##_stochastic(mode, e->random_bits, significand, drop, word);               \
        } else {                                                                                   \
            LANES odd = (base + (significand >> shift)) & 1u;                                      \
            code = base + ((significand + NAME##_addend(mode, negative, odd, shift)) >> shift);    \
        }                                                                                          \
        LANES over = MASK(code > ((negative & (e->limit[0] ^ e->limit[1])) ^ e->limit[0]));        \
        LANES beyond = (negative & (e->overflow[0] ^ e->overflow[1])) ^ e->overflow[0];            \
        LANES infinite = (negative & (e->infinity[0] ^ e->infinity[1])) ^ e->infinity[0];          \
        LANES sign = negative & ~(MASK(code == 0u) & e->keeps_no_sign);                            \
        code = ((code ^ (sign & e->flip)) + (sign & e->add)) & e->mask;                            \
        code = (code & ~over) | (beyond & over);                                                   \
        over = MASK(magnitude >= 0x7f800000u);                                                     \
        code = (code & ~over) | (infinite & over);                                                 \
        over = MASK(magnitude > 0x7f800000u);                                                      \
        return (code & ~over) | (over & e->nan);                                                   \
    }
// clang-format on

#define QG_ENCODE32_MASK(condition) (0u - (uint32_t)(condition))
QG_ENCODE32_DEFINE(QG_HD, qg_encode32_lane, uint32_t, QG_ENCODE32_MASK)

// The code of the binary32 value with these bits. `word`: as qg_encode.
QG_HD uint32_t qg_encode32(const qg_encoder32 *e, uint32_t bits, uint32_t word) {
    return qg_encode32_lane(e, e->mode, bits, word);
}

#endif
