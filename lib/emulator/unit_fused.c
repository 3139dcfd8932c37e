// NVIDIA's fused dot-product-adds: T-FDPA, its block-scaled forms ST-FDPA and GST-FDPA, and the FP8
// mma.sync of Hopper and B200, which runs on the FP16 unit. Parameters: qg_unit_table.h.
// Products are exact and never renormalised; C is one more term of the sum; the sum of the aligned
// terms is exact, and converted once.
// Sources: MMA-Sim (arXiv 2511.10909), algorithms T-FDPA, ST-FDPA, GST-FDPA; Khattak and Mikaitis
// (arXiv 2512.07004), "min_exp_limit". Exact in integers: |sum| < 2^49.
#include <unit_internal.h>

// The sum of aligned terms, in units of 2^(emax - F).
typedef struct aligned_sum {
    int emax;
    int64_t sum;
    bool all_negative; // also of terms that are zero, or were truncated to it
} aligned_sum;

static void raise(int *emax, int exponent) {
    if (exponent > *emax)
        *emax = exponent;
}

static void add_term(const unit_model *x, aligned_sum *s, bool negative, uint64_t magnitude,
                     int weight) {
    int shift = weight - (s->emax - x->row->fraction);
    s->sum += unit_truncated(magnitude, shift, negative);
    s->all_negative &= negative;
}

static void add_c(const unit_model *x, aligned_sum *s, unit_number c) {
    add_term(x, s, c.negative, c.significand, c.exponent - x->c.fraction);
}

static uint64_t convert(const unit_model *x, const aligned_sum *s) {
    if (s->sum == 0)
        return unit_zero(x, s->all_negative);
    return unit_convert(x, s->sum, s->emax - x->row->fraction);
}

// One fused operation; `scale` is added to the exponent of every product.
static uint64_t fuse(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                     int scale, uint64_t c_code) {
    unit_number c = unit_decode_c(x, c_code);
    unit_specials specials = unit_specials_of(n, a, b, c);
    if (unit_is_special(&specials))
        return unit_special_code(x, &specials);

    aligned_sum s = {x->row->floor, 0, true};
    for (int i = 0; i < n; i++)
        if (a[i].significand != 0 && b[i].significand != 0)
            raise(&s.emax, a[i].exponent + b[i].exponent + scale);
    if (c.significand != 0)
        raise(&s.emax, c.exponent);

    int fraction = x->a.grid.fraction + x->b.grid.fraction;
    for (int i = 0; i < n; i++) {
        uint64_t product = (uint64_t)a[i].significand * b[i].significand;
        int weight = a[i].exponent + b[i].exponent + scale - fraction;
        add_term(x, &s, a[i].negative != b[i].negative, product, weight);
    }
    add_c(x, &s, c);
    return convert(x, &s);
}

// T-FDPA: an instruction of more than L elements is a chain of contiguous fused operations.
uint64_t qg_unit_step_fused(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c) {
    (void)sa, (void)sb;
    for (int at = 0; at < n; at += x->row->length) {
        int length = n - at < x->row->length ? n - at : x->row->length;
        c = fuse(x, length, a + at, b + at, 0, c);
    }
    return c;
}

// ST-FDPA: one E8M0 scale per operand, in the exponent of each product before the alignment.
uint64_t qg_unit_step_scaled(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                             const unit_number *sa, const unit_number *sb, uint64_t c) {
    if (sa->kind == UNIT_NAN || sb->kind == UNIT_NAN)
        return unit_nan(&x->accumulator);
    return fuse(x, n, a, b, sa->exponent + sb->exponent, c);
}

// ---------------------------------------------------------------------------------------- GST-FDPA

enum { GROUP = 16, GROUPS = 4 };

typedef struct group_sum {
    bool negative;
    bool counts;        // at least one nonzero product, and nonzero scales
    uint64_t magnitude; // of the exact sum of the products, times the scales' significands
    int exponent;       // of the scales
} group_sum;

static group_sum sum_group(const unit_number *a, const unit_number *b, unit_number sa,
                           unit_number sb) {
    int64_t sum = 0;
    bool any = false, all_negative = true;
    for (int i = 0; i < GROUP; i++) {
        // E2M1's exponents are 0, 1 and 2: products are multiples of 1/4.
        int64_t product = (int64_t)a[i].significand * b[i].significand
                          << (a[i].exponent + b[i].exponent);
        bool negative = a[i].negative != b[i].negative;
        sum += negative ? -product : product;
        any |= product != 0;
        all_negative &= negative;
    }
    uint64_t scale = (uint64_t)sa.significand * sb.significand;
    group_sum g = {.negative = sum < 0 || (sum == 0 && all_negative), .counts = any && scale != 0};
    g.magnitude = (uint64_t)(sum < 0 ? -sum : sum) * scale;
    g.exponent = sa.exponent + sb.exponent;
    return g;
}

static bool any_scale_is_nan(const unit_number *sa, const unit_number *sb) {
    for (int g = 0; g < GROUPS; g++)
        if (sa[g].kind == UNIT_NAN || sb[g].kind == UNIT_NAN)
            return true;
    return false;
}

// Groups are aligned by the exponent of their scales alone, also a group whose products cancel.
uint64_t qg_unit_step_grouped(const unit_model *x, int n, const unit_number *a,
                              const unit_number *b, const unit_number *sa, const unit_number *sb,
                              uint64_t c_code) {
    (void)n;
    unit_number c = unit_decode_c(x, c_code);
    unit_specials specials = {.nan = any_scale_is_nan(sa, sb)};
    unit_note_term(&specials, c);
    if (unit_is_special(&specials))
        return unit_special_code(x, &specials);

    group_sum groups[GROUPS];
    aligned_sum s = {x->row->floor, 0, true};
    for (int g = 0; g < GROUPS; g++) {
        groups[g] = sum_group(a + g * GROUP, b + g * GROUP, sa[g], sb[g]);
        if (groups[g].counts)
            raise(&s.emax, groups[g].exponent);
    }
    if (c.significand != 0)
        raise(&s.emax, c.exponent);

    int fraction = x->a.grid.fraction + x->b.grid.fraction + 2 * x->scale.grid.fraction;
    for (int g = 0; g < GROUPS; g++)
        add_term(x, &s, groups[g].negative, groups[g].magnitude, groups[g].exponent - fraction);
    add_c(x, &s, c);
    return convert(x, &s);
}

// ---------------------------------------------------------------------------- FP8 on the FP16 unit

enum { PAIRS_K = 32 };

// C + t in the accumulator's format, RNE: the addition of IEEE 754, one NaN.
static uint64_t add_rounded(const unit_model *x, uint64_t t, uint64_t c) {
    const qg_format_info *info = &x->accumulator;
    // Exact for binary16; for binary32, one rounding.
    double sum = qg_decode(info, t) + qg_decode(info, c);
    if (x->row->accumulator == QG_FORMAT_FP32)
        sum = (double)((float)qg_decode(info, t) + (float)qg_decode(info, c));
    return sum == sum ? qg_encode(info, sum, &x->conversion, 0) : unit_nan(info);
}

uint64_t qg_unit_step_pairs(const unit_model *x, int n, const unit_number *a, const unit_number *b,
                            const unit_number *sa, const unit_number *sb, uint64_t c) {
    (void)n, (void)sa, (void)sb;
    unit_number half_a[PAIRS_K / 2], half_b[PAIRS_K / 2];
    uint64_t t = unit_zero(x, false);
    for (int set = 0; set < 2; set++) {
        int count = 0;
        for (int i = 0; i < PAIRS_K; i++)
            if ((i >> 1 & 1) == set) {
                half_a[count] = a[i];
                half_b[count++] = b[i];
            }
        t = fuse(x, count, half_a, half_b, 0, t);
    }
    return add_rounded(x, t, c);
}
