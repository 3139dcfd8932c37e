// AMD's matrix units: CDNA1 (exact sum, one rounding), CDNA2 (binary32 pairs, subnormals flushed),
// CDNA3 (products truncated, sums rounded down: TR-FDPA and, for FP8, GTR-FDPA).
// Where the models of the source disagree, its later one is followed. A NaN or infinite C is never
// dropped, and every NaN is 7fffffff: what the hardware writes is not known.
// Source: MMA-Sim (arXiv 2511.10909), with the restatement in bksaiki/fpy. Exact: CDNA1 in wide
// fixed point, CDNA3 in 64-bit integers, CDNA2 in binary32 operations as the unit performs them.
#include <exact_sum_internal.h>
#include <unit_internal.h>

static bool product_is_negative(unit_number a, unit_number b) { return a.negative != b.negative; }

static uint64_t product_magnitude(unit_number a, unit_number b) {
    return (uint64_t)a.significand * b.significand;
}

// The exponent of the product's unit: |product| = magnitude * 2^this.
static int product_weight(const unit_model *x, unit_number a, unit_number b) {
    return a.exponent + b.exponent - x->a.grid.fraction - x->b.grid.fraction;
}

// ------------------------------------------------------------------------------------------- CDNA1

static uint64_t add_exactly(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            uint64_t c_code) {
    unit_number c = unit_decode_c(x, c_code);
    unit_specials specials = unit_specials_of(n, a, b, c);
    if (unit_is_special(&specials))
        return unit_special_code(x, &specials);
    exact_sum sum = {0};
    for (int i = 0; i < n; i++)
        exact_sum_add(&sum, product_is_negative(a[i], b[i]), product_magnitude(a[i], b[i]),
                      product_weight(x, a[i], b[i]));
    exact_sum_add(&sum, c.negative, c.significand, c.exponent - x->c.fraction);
    return qg_encode(&x->accumulator, exact_sum_value(&sum), &x->conversion, 0);
}

uint64_t qg_unit_step_exact(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c) {
    (void)sa, (void)sb;
    for (int at = 0; at < n; at += x->row->length) {
        int length = n - at < x->row->length ? n - at : x->row->length;
        c = add_exactly(x, length, a + at, b + at, c);
    }
    return c;
}

// ------------------------------------------------------------------------------------------- CDNA2

// Results below the normal range become a zero of their sign.
static float flush(float x) {
    uint32_t bits = qg_bits_of_float(x);
    return (bits & 0x7f800000u) == 0 ? qg_float_of_bits(bits & 0x80000000u) : x;
}

// Operands below the normal range of their format become +0.
static float flushed_operand(unit_number v, unit_grid grid) {
    if (v.kind == UNIT_NAN)
        return qg_float_of_bits(0x7fffffffu);
    float magnitude = v.kind == UNIT_INFINITE
                          ? qg_float_of_bits(0x7f800000u)
                          : (float)(v.significand * qg_double_pow2(v.exponent - grid.fraction));
    if (v.kind == UNIT_FINITE && v.significand >> grid.fraction == 0)
        return v.significand != 0 || !v.negative ? 0.0f : -0.0f;
    return v.negative ? -magnitude : magnitude;
}

static float flushed_product(const unit_model *x, unit_number a, unit_number b) {
    return flush(flushed_operand(a, x->a.grid) * flushed_operand(b, x->b.grid));
}

static float pair_sum(const unit_model *x, const unit_number *a, const unit_number *b) {
    return flush(flushed_product(x, a[0], b[0]) + flushed_product(x, a[1], b[1]));
}

uint64_t qg_unit_step_pairwise(const unit_model *x, int n, const unit_number *a,
                               const unit_number *b, const unit_number *sa, const unit_number *sb,
                               uint64_t c) {
    (void)sa, (void)sb;
    float d = flushed_operand(unit_decode_c(x, c), x->c);
    for (int at = 0; at < n; at += x->row->length) {
        float group = pair_sum(x, a + at, b + at);
        if (x->row->length == 4)
            group = flush(group + pair_sum(x, a + at + 2, b + at + 2));
        d = flush(d + group);
    }
    return d == d ? qg_bits_of_float(d) : unit_nan(&x->accumulator);
}

// ------------------------------------------------------------------------------------------- CDNA3

enum {
    SUM_FRACTION = 32,  // bits that the sum of the products keeps below the largest exponent
    FINAL_FRACTION = 31 // bits that the result keeps below its own exponent before RNE
};

// A sum of aligned products: sum * 2^(exponent - F).
typedef struct product_sum {
    bool any; // a product that is not zero
    int exponent;
    int64_t sum;
} product_sum;

// value * 2^shift, rounded down.
static int64_t shift_down(int64_t value, int shift) {
    if (shift >= 0)
        return value * (int64_t)(1ull << shift);
    if (shift <= -63)
        return value < 0 ? -1 : 0;
    int64_t unit = (int64_t)(1ull << -shift), rest = value % unit;
    return value / unit - (rest < 0);
}

// Elements first, first + stride, ...: truncated at F bits below the largest product exponent.
static product_sum align_products(const unit_model *x, int n, const unit_number *a,
                                  const unit_number *b, int first, int stride) {
    product_sum s = {0};
    for (int i = first; i < n; i += stride) {
        int exponent = a[i].exponent + b[i].exponent;
        if (product_magnitude(a[i], b[i]) != 0 && (!s.any || exponent > s.exponent)) {
            s.any = true;
            s.exponent = exponent;
        }
    }
    for (int i = first; i < n; i += stride)
        s.sum += unit_truncated(product_magnitude(a[i], b[i]),
                                product_weight(x, a[i], b[i]) - (s.exponent - x->row->fraction),
                                product_is_negative(a[i], b[i]));
    return s;
}

// Both, rounded down at F bits below the larger exponent.
static product_sum join(product_sum p, product_sum q) {
    if (!p.any)
        return q;
    if (!q.any)
        return p;
    product_sum s = {true, p.exponent > q.exponent ? p.exponent : q.exponent, 0};
    s.sum = shift_down(p.sum, p.exponent - s.exponent) + shift_down(q.sum, q.exponent - s.exponent);
    return s;
}

// A product of at least 2^128 is infinite.
static void note_overflow(const unit_model *x, unit_specials *s, unit_number a, unit_number b) {
    double magnitude = (double)product_magnitude(a, b) * qg_double_pow2(product_weight(x, a, b));
    if (magnitude >= 0x1p128)
        unit_note_infinity(s, product_is_negative(a, b));
}

static bool all_are_negative(int n, const unit_number *a, const unit_number *b, unit_number c) {
    for (int i = 0; i < n; i++)
        if (!product_is_negative(a[i], b[i]))
            return false;
    return c.negative;
}

// The sum in units of 2^(exponent - SUM_FRACTION), rounded down to FINAL_FRACTION bits below its
// own exponent, then RNE.
static uint64_t round_sum(const unit_model *x, int64_t sum, int exponent) {
    int weight = exponent - SUM_FRACTION;
    int own = qg_double_exponent((double)sum) + weight;
    if (own < x->c.emin)
        own = x->c.emin;
    int drop = own - FINAL_FRACTION - weight;
    if (drop > 0)
        sum = shift_down(shift_down(sum, -drop), drop);
    return unit_convert(x, sum, weight);
}

// T and C joined: both rounded down, T at 32 bits, C at F bits below the larger exponent.
// far: C more than F + 1 binades below is dropped instead of rounded down.
static uint64_t add_c(const unit_model *x, product_sum t, unit_number c, bool far, bool negative) {
    int exponent = t.any && t.exponent > c.exponent ? t.exponent : c.exponent;
    int fraction = x->row->fraction;
    int64_t sum = 0;
    if (t.any)
        sum = shift_down(t.sum, t.exponent - fraction - (exponent - SUM_FRACTION));
    if (!far || c.exponent >= exponent - (fraction + 1)) {
        int64_t signed_c = c.negative ? -(int64_t)c.significand : (int64_t)c.significand;
        int64_t kept = shift_down(signed_c, c.exponent - x->c.fraction - (exponent - fraction));
        sum += shift_down(kept, SUM_FRACTION - fraction);
    }
    return sum == 0 ? unit_zero(x, negative) : round_sum(x, sum, exponent);
}

static uint64_t add_truncated(const unit_model *x, int n, const unit_number *a,
                              const unit_number *b, bool apart, uint64_t c_code) {
    unit_number c = unit_decode_c(x, c_code);
    unit_specials specials = unit_specials_of(n, a, b, c);
    for (int i = 0; i < n; i++)
        note_overflow(x, &specials, a[i], b[i]);
    if (unit_is_special(&specials))
        return unit_special_code(x, &specials);
    product_sum t = apart ? join(align_products(x, n, a, b, 0, 2), align_products(x, n, a, b, 1, 2))
                          : align_products(x, n, a, b, 0, 1);
    return add_c(x, t, c, apart, all_are_negative(n, a, b, c));
}

static uint64_t chain_truncated(const unit_model *x, int n, const unit_number *a,
                                const unit_number *b, bool apart, uint64_t c) {
    for (int at = 0; at < n; at += x->row->length) {
        int length = n - at < x->row->length ? n - at : x->row->length;
        c = add_truncated(x, length, a + at, b + at, apart, c);
    }
    return c;
}

uint64_t qg_unit_step_tr(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                         const unit_number *sa, const unit_number *sb, uint64_t c) {
    (void)sa, (void)sb;
    return chain_truncated(x, n, a, b, false, c);
}

uint64_t qg_unit_step_gtr(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                          const unit_number *sa, const unit_number *sb, uint64_t c) {
    (void)sa, (void)sb;
    return chain_truncated(x, n, a, b, true, c);
}
