// What the models of matrix units share: operands as the hardware sees them, a row made ready for
// a pair of formats, special values, and the conversion of a sum. See qg_unit.h.
#ifndef UNIT_INTERNAL_H
#define UNIT_INTERNAL_H

#include <qg_codec.h>
#include <qg_unit.h>

enum { UNIT_FINITE, UNIT_INFINITE, UNIT_NAN };

// +-significand * 2^(exponent - f), f the fraction bits of its format. The exponent is
// max(floor(log2 |x|), emin of the format): subnormals are not normalised.
typedef struct unit_number {
    uint32_t significand;
    int16_t exponent;
    uint8_t negative;
    uint8_t kind;
} unit_number;

// The grid on which a unit sees an operand: its format's, or that of the format it is converted to.
typedef struct unit_grid {
    int emin, fraction;
} unit_grid;

enum { UNIT_TABLE_SIZE = 256 };

// A format's codes as numbers.
typedef struct unit_decoder {
    qg_format_info info;
    unit_grid grid;
    bool is_tf32;
    unit_number table[UNIT_TABLE_SIZE]; // of codes of at most 8 bits
} unit_decoder;

// A row made ready for two operand formats.
typedef struct unit_model {
    const qg_unit_row *row;
    unit_decoder a, b;
    unit_decoder scale; // of block-scaled units
    qg_format_info accumulator;
    unit_grid c;
    qg_format_info result; // of rho: binary32, binary16 or E8M13
    qg_conversion conversion;
    double beyond; // 2^(emax + 1) of the result: infinite in every mode
} unit_model;

// D of one instruction of n <= row->k elements (any n >= 1 for models that have no fixed pattern).
// sa, sb: one number for each scale_block elements, NULL for rows without. c, d: codes.
typedef uint64_t (*unit_step)(const unit_model *x, int n, const unit_number *a,
                              const unit_number *b, const unit_number *sa, const unit_number *sb,
                              uint64_t c);

void qg_unit_model_prepare(const qg_unit_row *row, qg_format a, qg_format b, unit_model *out);
unit_step qg_unit_step_of(int model);

uint64_t qg_unit_step_fused(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c);
uint64_t qg_unit_step_scaled(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                             const unit_number *sa, const unit_number *sb, uint64_t c);
uint64_t qg_unit_step_grouped(const unit_model *x, int n, const unit_number *a,
                              const unit_number *b, const unit_number *sa, const unit_number *sb,
                              uint64_t c);
uint64_t qg_unit_step_pairs(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c);
uint64_t qg_unit_step_exact(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c);
uint64_t qg_unit_step_pairwise(const unit_model *x, int n, const unit_number *a,
                               const unit_number *b, const unit_number *sa, const unit_number *sb,
                               uint64_t c);
uint64_t qg_unit_step_tr(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                         const unit_number *sa, const unit_number *sb, uint64_t c);
uint64_t qg_unit_step_gtr(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                          const unit_number *sa, const unit_number *sb, uint64_t c);

// The variants of T, ST, GST and PAIRS (unit_panel_simd.c). QG_ERROR_UNSUPPORTED for rows, operands,
// processors and builds without a kernel.
qg_status qg_unit_panel_avx2(const qg_unit_product *product);
qg_status qg_unit_panel_avx512(const qg_unit_product *product);

// ----------------------------------------------------------------------------------------- numbers

static inline unit_grid unit_grid_of(const qg_format_info *info) {
    return (unit_grid){info->zero ? 1 - info->bias : -info->bias, info->mbits};
}

// x must lie on the grid.
static inline unit_number unit_number_of(double x, unit_grid grid) {
    uint64_t bits = qg_bits_of_double(x);
    unit_number v = {0, (int16_t)grid.emin, (uint8_t)(bits >> 63), UNIT_FINITE};
    if ((bits >> 52 & 0x7ff) == 0x7ff) {
        v.kind = bits << 12 ? UNIT_NAN : UNIT_INFINITE;
        return v;
    }
    if (bits << 1 == 0)
        return v;
    int exponent = qg_double_exponent(x);
    v.exponent = (int16_t)(exponent > grid.emin ? exponent : grid.emin);
    double magnitude = v.negative ? -x : x;
    v.significand = (uint32_t)(magnitude * qg_double_pow2(grid.fraction - v.exponent));
    return v;
}

static inline unit_number unit_decode(const unit_decoder *d, uint64_t code) {
    if (d->info.bits <= 8)
        return d->table[code & (UNIT_TABLE_SIZE - 1)];
    unit_number v = unit_number_of(qg_decode(&d->info, code), d->grid);
    if (d->is_tf32 && (code & 0x7fffffffu) > 0x7f800000u) // also a payload in the dropped bits
        v.kind = UNIT_NAN;
    return v;
}

static inline unit_number unit_decode_c(const unit_model *x, uint64_t c) {
    return unit_number_of(qg_decode(&x->accumulator, c), x->c);
}

// +-magnitude / 2^-shift, truncated toward zero. Left shifts must fit 63 bits.
static inline int64_t unit_truncated(uint64_t magnitude, int shift, bool negative) {
    if (magnitude == 0 || shift <= -64)
        return 0;
    int64_t kept = (int64_t)(shift >= 0 ? magnitude << shift : magnitude >> -shift);
    return negative ? -kept : kept;
}

// ---------------------------------------------------------------------------------------- specials

// NaN and infinities met in a sum. Two flags, since a count loses Inf - Inf.
typedef struct unit_specials {
    bool nan, plus_infinity, minus_infinity;
} unit_specials;

static inline void unit_note_infinity(unit_specials *s, bool negative) {
    s->minus_infinity |= negative;
    s->plus_infinity |= !negative;
}

static inline void unit_note_product(unit_specials *s, unit_number a, unit_number b) {
    bool zero = (a.kind == UNIT_FINITE && a.significand == 0) ||
                (b.kind == UNIT_FINITE && b.significand == 0);
    if (a.kind == UNIT_NAN || b.kind == UNIT_NAN || zero)
        s->nan = true; // NaN, or Inf * 0
    else
        unit_note_infinity(s, a.negative != b.negative);
}

static inline void unit_note_term(unit_specials *s, unit_number c) {
    if (c.kind == UNIT_NAN)
        s->nan = true;
    else if (c.kind == UNIT_INFINITE)
        unit_note_infinity(s, c.negative);
}

static inline unit_specials unit_specials_of(int n, const unit_number *a, const unit_number *b,
                                             unit_number c) {
    unit_specials s = {0};
    for (int i = 0; i < n; i++)
        if (a[i].kind != UNIT_FINITE || b[i].kind != UNIT_FINITE)
            unit_note_product(&s, a[i], b[i]);
    unit_note_term(&s, c);
    return s;
}

static inline bool unit_is_special(const unit_specials *s) {
    return s->nan || s->plus_infinity || s->minus_infinity;
}

// The canonical NaN, all ones but the sign: 7fffffff, 7fff.
static inline uint64_t unit_nan(const qg_format_info *info) { return qg_encode_nan_code(info, 0); }

static inline uint64_t unit_special_code(const unit_model *x, const unit_specials *s) {
    const qg_format_info *info = &x->accumulator;
    if (s->nan || (s->plus_infinity && s->minus_infinity))
        return unit_nan(info);
    return qg_encode_signed(info, info->inf_code, s->minus_infinity);
}

// ----------------------------------------------------------------------------------------- results

// rho(sum * 2^exponent), |sum| < 2^53. RZ too overflows to infinity, never to the largest finite
// value. A negative result that underflows keeps its sign.
static inline uint64_t unit_convert(const unit_model *x, int64_t sum, int exponent) {
    double value = (double)sum * qg_double_pow2(exponent);
    if (value >= x->beyond || value <= -x->beyond)
        return qg_encode_signed(&x->accumulator, x->accumulator.inf_code, value < 0);
    return qg_encode(&x->result, value, &x->conversion, 0);
}

static inline uint64_t unit_zero(const unit_model *x, bool negative) {
    return qg_encode_signed(&x->accumulator, 0, negative);
}

#endif
