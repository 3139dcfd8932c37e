// The fused dot-product-add chain, one element at a time, in integers.
//
// Owns the scalar meaning of qg_fused_problem; must not know any SIMD kernel.
// Written from the models' definitions, apart from lib/emulator. Exact: no floating-point operation
// except the promotion's binary32 addition or FMA, which IEEE 754 defines.
#include <fused_reference.h>

#include <math.h>
#include <string.h>

enum { CANONICAL_NAN = 0x7FFFFFFF, POSITIVE_INF = 0x7F800000 };

// A decoded operand: (-1)^negative * significand * 2^(exponent - fraction bits of its format).
// Subnormals keep the format's smallest exponent: they are never normalised.
typedef struct term {
    uint64_t significand;
    int exponent;
    int negative, nan, inf;
} term;

static term decode(const qg_format_info *info, uint64_t code) {
    term t = {0};
    uint64_t sign_bit = qg_format_sign_bit(info);
    uint64_t raw = code;
    code >>= info->shift;
    t.negative = (code & sign_bit) != 0;
    uint64_t magnitude = code & ((1ull << (info->ebits + info->mbits)) - 1);
    t.inf = info->inf_code != QG_NO_INF && magnitude == info->inf_code;
    t.nan = !t.inf && magnitude > info->max_code;
    // A TF32 operand whose NaN payload lies only in the bits that truncation drops is still a NaN.
    if (info->shift && t.inf && (raw & ((1ull << info->shift) - 1)))
        t.inf = 0, t.nan = 1;
    uint64_t field = magnitude >> info->mbits;
    t.significand = (magnitude & ((1ull << info->mbits) - 1)) | (uint64_t)(field != 0)
                                                                    << info->mbits;
    t.exponent = (field ? (int)field : 1) - info->bias;
    return t;
}

static uint64_t code_at(const qg_fused_operand *x, const qg_format_info *info, int64_t row,
                        int64_t index) {
    const void *codes = (const uint8_t *)x->codes + row * x->stride;
    switch (qg_format_code_bytes(info)) {
    case 1: return ((const uint8_t *)codes)[index];
    case 2: return ((const uint16_t *)codes)[index];
    default: return ((const uint32_t *)codes)[index];
    }
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static term decode_float(uint32_t bits) {
    term t = {0};
    uint32_t field = bits >> 23 & 0xFF;
    t.negative = (int)(bits >> 31);
    t.inf = (bits & 0x7FFFFFFF) == POSITIVE_INF;
    t.nan = (bits & 0x7FFFFFFF) > POSITIVE_INF;
    t.significand = (bits & 0x7FFFFF) | (uint32_t)(field != 0) << 23;
    t.exponent = (field ? (int)field : 1) - 127;
    return t;
}

// trunc(significand * 2^shift); shifts of any size. Left shifts stay below 2^62 by the caller's
// choice of the quantum.
static uint64_t align(uint64_t significand, int shift) {
    if (shift >= 0)
        return significand << shift;
    return shift > -64 ? significand >> -shift : 0;
}

// |sum| * 2^exponent toward zero to `digits` significant bits in binary32's exponent range.
static uint32_t round_toward_zero(uint64_t magnitude, int exponent, int digits, int negative) {
    uint32_t sign = (uint32_t)negative << 31;
    if (magnitude == 0)
        return sign;
    int top = 63 - __builtin_clzll(magnitude) + exponent; // floor(log2)
    if (top >= 128)
        return sign | POSITIVE_INF;
    int unit = (top > -126 ? top : -126) - (digits - 1); // weight of the last kept bit
    uint64_t kept = align(magnitude, exponent - unit);
    uint32_t word = (uint32_t)kept << (24 - digits);
    // A normal number's leading one adds 1 to the exponent field of (field - 1).
    return sign | (((uint32_t)((top > -126 ? top : -126) + 126) << 23) + word);
}

// What one fused operation collects.
typedef struct sum {
    int emax;
    int nan, positive_inf, negative_inf;
    int all_negative; // every term so far carries a minus sign
    int64_t total;
} sum;

static void raise_exponent(sum *s, int exponent) {
    if (exponent > s->emax)
        s->emax = exponent;
}

static void note_specials(sum *s, term x, term y) {
    int zero_x = x.significand == 0 && !x.inf, zero_y = y.significand == 0 && !y.inf;
    if (x.nan || y.nan || (x.inf && zero_y) || (y.inf && zero_x))
        s->nan = 1;
    else if (x.inf || y.inf)
        *(x.negative != y.negative ? &s->negative_inf : &s->positive_inf) = 1;
}

static void add_aligned(sum *s, uint64_t significand, int shift, int negative) {
    int64_t aligned = (int64_t)align(significand, shift);
    s->total += negative ? -aligned : aligned;
}

static uint32_t finish(const sum *s, const qg_fused_problem *p) {
    if (s->nan || (s->positive_inf && s->negative_inf))
        return CANONICAL_NAN;
    if (s->positive_inf || s->negative_inf)
        return POSITIVE_INF | (uint32_t)s->negative_inf << 31;
    if (s->total == 0)
        return (uint32_t)s->all_negative << 31;
    uint64_t magnitude = s->total < 0 ? (uint64_t)-s->total : (uint64_t)s->total;
    return round_toward_zero(magnitude, s->emax - p->bits, p->result == QG_FUSED_RZ_E8M13 ? 14 : 24,
                             s->total < 0);
}

enum { MAX_LENGTH = 64 };

typedef struct formats {
    qg_format_info a, b, scale;
} formats;

// One operand scale as a significand and exponent; a missing scale is 1.
static term scale_at(const qg_fused_problem *p, const formats *f, const qg_fused_operand *x,
                     int64_t line, int64_t at) {
    term one = {1, 0, 0, 0, 0};
    if (!x->scales)
        return one;
    uint8_t code = x->scales[line * x->scale_stride + at / p->scale_block];
    if (p->scale_format == QG_FORMAT_E8M0) {
        one.exponent = code - 127;
        one.nan = code == 0xFF;
        return one;
    }
    return decode(&f->scale, code & 0x7F);
}

// One fused operation over elements [at, at + L) of K; elements from `end` on are zero codes. With
// pairs, the L elements of [at, at + 2 L) whose bit 1 is that of `at`.
static uint32_t fused(const qg_fused_problem *p, const formats *f, int64_t row, int64_t column,
                      int64_t at, int64_t end, uint32_t c_bits) {
    term x[MAX_LENGTH] = {{0}}, y[MAX_LENGTH] = {{0}};
    term c = decode_float(c_bits);
    sum s = {.emax = p->floor, .all_negative = c.negative};
    s.nan = c.nan;
    s.positive_inf = c.inf && !c.negative;
    s.negative_inf = c.inf && c.negative;
    int length = p->length;
    int group = p->group ? p->group : length;
    for (int i = 0; i < length; i++) {
        int64_t k = p->pairs ? at + i / 2 * 4 + i % 2 : at + i;
        if (k < end) {
            x[i] = decode(&f->a, code_at(&p->a, &f->a, row, k));
            y[i] = decode(&f->b, code_at(&p->b, &f->b, column, k));
        }
        note_specials(&s, x[i], y[i]);
        s.all_negative &= x[i].negative != y[i].negative;
    }
    if (c.significand)
        raise_exponent(&s, c.exponent);
    // First pass: the largest exponent. Second pass: align and add.
    for (int pass = 0; pass < 2; pass++) {
        for (int g = 0; g < length && at + g < end; g += group) {
            term sx = scale_at(p, f, &p->a, row, at + g);
            term sy = scale_at(p, f, &p->b, column, at + g);
            s.nan |= sx.nan | sy.nan;
            int scale_exponent = sx.exponent + sy.exponent;
            uint64_t scale = sx.significand * sy.significand;
            int scale_digits =
                p->a.scales && p->scale_format != QG_FORMAT_E8M0 ? 2 * f->scale.mbits : 0;
            int64_t exact = 0; // GST: the group's sum in units of the smallest product
            int nonzero = 0;
            for (int i = g; i < g + group && i < length; i++) {
                uint64_t product = x[i].significand * y[i].significand;
                if (!product)
                    continue;
                int exponent = x[i].exponent + y[i].exponent;
                int unit = exponent - f->a.mbits - f->b.mbits;
                int negative = x[i].negative != y[i].negative;
                nonzero = 1;
                if (p->group) {
                    int64_t wide =
                        (int64_t)product
                        << (unit - (2 - f->a.bias - f->b.bias - f->a.mbits - f->b.mbits));
                    exact += negative ? -wide : wide;
                } else if (pass == 0) {
                    raise_exponent(&s, exponent + scale_exponent);
                } else {
                    add_aligned(&s, product, unit + scale_exponent - (s.emax - p->bits), negative);
                }
            }
            if (p->group && nonzero && scale) {
                int unit = 2 - f->a.bias - f->b.bias - f->a.mbits - f->b.mbits;
                if (pass == 0)
                    raise_exponent(&s, scale_exponent);
                else
                    add_aligned(&s, (uint64_t)(exact < 0 ? -exact : exact) * scale,
                                unit + scale_exponent - scale_digits - (s.emax - p->bits),
                                exact < 0);
            }
        }
        if (s.nan || s.positive_inf || s.negative_inf)
            return finish(&s, p);
    }
    if (c.significand)
        add_aligned(&s, c.significand, c.exponent - 23 - (s.emax - p->bits), c.negative);
    return finish(&s, p);
}

static uint32_t canonical(float value) { return isnan(value) ? CANONICAL_NAN : bits_of(value); }

static uint32_t chain(const qg_fused_problem *p, const formats *f, int64_t row, int64_t column,
                      int64_t at, int64_t end, uint32_t c_bits) {
    if (!p->pairs) {
        for (; at < end; at += p->length)
            c_bits = fused(p, f, row, column, at, end, c_bits);
        return c_bits;
    }
    for (; at < end; at += 2 * p->length) {
        uint32_t t = fused(p, f, row, column, at, end, 0);
        t = fused(p, f, row, column, at + 2, end, t);
        c_bits = canonical(float_of(t) + float_of(c_bits));
    }
    return c_bits;
}

uint32_t qg_fused_element(const qg_fused_problem *p, int64_t row, int64_t column) {
    formats f = {qg_format_describe(p->a.format), qg_format_describe(p->b.format),
                 qg_format_describe(p->scale_format)};
    uint32_t start = p->c ? bits_of(p->c[row * p->n + column]) : 0;
    if (!p->promote)
        return chain(p, &f, row, column, 0, p->k, start);
    int64_t segments = (p->k + p->promote - 1) / p->promote;
    for (int64_t segment = 0; segment < segments; segment++) {
        int64_t end = (segment + 1) * p->promote;
        uint32_t part = chain(p, &f, row, column, segment * p->promote, end < p->k ? end : p->k, 0);
        if (!p->row_scale) {
            start = canonical(float_of(start) + float_of(part));
        } else {
            float scale = p->row_scale[row * segments + segment] *
                          p->column_scale[column * segments + segment];
            start = canonical(fmaf(scale, float_of(part), float_of(start)));
        }
    }
    return start;
}

void qg_fused_run_scalar(const qg_fused_problem *p, int64_t row, int64_t column, int64_t count) {
    qg_fp_state saved = qg_fp_enter(); // promotion is in floating point; the caller may flush
    for (int64_t j = column; j < column + count; j++) {
        uint32_t bits = qg_fused_element(p, row, j);
        memcpy(&p->d[row * p->n + j], &bits, sizeof bits);
    }
    qg_fp_leave(saved);
}
