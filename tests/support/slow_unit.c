#include <slow_unit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------ wide numbers

// +-(words) * 2^LOWEST, words little endian: from 2^-352 up to 2^416.
enum { WORDS = 24, LOWEST = -352 };

typedef struct wide {
    int negative;
    uint32_t word[WORDS];
} wide;

static int magnitude_compare(const wide *x, const wide *y) {
    for (int i = WORDS - 1; i >= 0; i--)
        if (x->word[i] != y->word[i])
            return x->word[i] > y->word[i] ? 1 : -1;
    return 0;
}

static int is_zero(const wide *x) {
    for (int i = 0; i < WORDS; i++)
        if (x->word[i])
            return 0;
    return 1;
}

// |x| +- |y|, for |x| >= |y| when subtracting.
static void magnitude_combine(wide *x, const wide *y, int subtract) {
    uint64_t carry = (uint64_t)subtract;
    for (int i = 0; i < WORDS; i++) {
        carry += x->word[i];
        carry += subtract ? (uint32_t)~y->word[i] : y->word[i];
        x->word[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static wide wide_sum(wide x, wide y) {
    if (x.negative == y.negative) {
        magnitude_combine(&x, &y, 0);
        return x;
    }
    if (magnitude_compare(&x, &y) < 0) {
        wide swapped = x;
        x = y;
        y = swapped;
    }
    magnitude_combine(&x, &y, 1);
    return x;
}

static int bit_at(const wide *x, int exponent) {
    int place = exponent - LOWEST;
    return place >= 0 && place < 32 * WORDS && (x->word[place / 32] >> (place % 32) & 1);
}

static void set_bit(wide *x, int exponent) {
    int place = exponent - LOWEST;
    if (place < 0 || place >= 32 * WORDS)
        abort();
    x->word[place / 32] |= 1u << (place % 32);
}

// A finite x whose last bit is at least 2^LOWEST.
static wide wide_of(double x) {
    wide w = {.negative = signbit(x) != 0};
    int exponent;
    double fraction = frexp(fabs(x), &exponent);
    for (int i = 1; fraction != 0.0; i++) {
        fraction *= 2.0;
        if (fraction >= 1.0) {
            set_bit(&w, exponent - i);
            fraction -= 1.0;
        }
    }
    return w;
}

// floor(log2 |x|) of a nonzero x.
static int top_of(const wide *x) {
    int i = WORDS - 1;
    while (!x->word[i])
        i--;
    int bit = 31;
    while (!(x->word[i] >> bit & 1))
        bit--;
    return LOWEST + 32 * i + bit;
}

// Toward zero, to a multiple of 2^quantum; 1 if that dropped anything.
static int wide_truncate(wide *x, int quantum) {
    int dropped = 0, bits = quantum - LOWEST;
    for (int i = 0; i < WORDS && bits > 0; i++, bits -= 32) {
        uint32_t mask = bits >= 32 ? 0xffffffffu : (1u << bits) - 1;
        dropped |= (x->word[i] & mask) != 0;
        x->word[i] &= ~mask;
    }
    return dropped;
}

// Toward -infinity.
static void wide_floor(wide *x, int quantum) {
    if (wide_truncate(x, quantum) && x->negative) {
        wide unit = {.negative = 1};
        set_bit(&unit, quantum);
        *x = wide_sum(*x, unit);
    }
}

// ------------------------------------------------------------------------------------------- types

static const slow_type types[] = {
    {"e4m3",     8,  4, 3,  7,   SLOW_ALL_ONES, 0 },
    {"e5m2",     8,  5, 2,  15,  SLOW_IEEE,     0 },
    {"e2m3",     6,  2, 3,  1,   SLOW_FINITE,   0 },
    {"e3m2",     6,  3, 2,  3,   SLOW_FINITE,   0 },
    {"e2m1",     4,  2, 1,  1,   SLOW_FINITE,   0 },
    {"e4m3fnuz", 8,  4, 3,  8,   SLOW_FNUZ,     0 },
    {"e5m2fnuz", 8,  5, 2,  16,  SLOW_FNUZ,     0 },
    {"fp16",     16, 5, 10, 15,  SLOW_IEEE,     0 },
    {"bf16",     16, 8, 7,  127, SLOW_IEEE,     0 },
    {"tf32",     32, 8, 10, 127, SLOW_IEEE,     13},
    {"fp32",     32, 8, 23, 127, SLOW_IEEE,     0 },
    {"e8m0",     8,  8, 0,  127, SLOW_POWER,    0 },
    {"ue4m3",    8,  4, 3,  7,   SLOW_ALL_ONES, 0 }
};

const slow_type *slow_type_find(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

double slow_type_value(const slow_type *t, uint64_t code) {
    if (t->specials == SLOW_POWER)
        return code == 255 ? NAN : ldexp(1.0, (int)code - 127);
    int negative = strcmp(t->name, "ue4m3") && (code >> (t->bits - 1) & 1);
    uint64_t low = code & ((1ull << t->dropped) - 1);
    uint64_t fraction = code >> t->dropped & ((1ull << t->mbits) - 1);
    int field = (int)(code >> (t->dropped + t->mbits) & ((1ull << t->ebits) - 1));
    int last_field = (1 << t->ebits) - 1;
    if (t->specials == SLOW_IEEE && field == last_field)
        return fraction || low ? NAN : negative ? -INFINITY : INFINITY;
    if (t->specials == SLOW_ALL_ONES && field == last_field && fraction == (1ull << t->mbits) - 1)
        return NAN;
    if (t->specials == SLOW_FNUZ && code == 1ull << (t->bits - 1))
        return NAN;
    double value = field == 0
                       ? ldexp((double)fraction, 1 - t->bias - t->mbits)
                       : ldexp((double)(fraction | 1ull << t->mbits), field - t->bias - t->mbits);
    return negative ? -value : value;
}

// ------------------------------------------------------------------------------------------- table

#define FP8                                                                                        \
    { "e4m3", "e5m2", NULL }
#define NARROW                                                                                     \
    { "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", NULL }

// One row per unit.
// clang-format off
static const slow_unit rows[] = {
    {"volta_mma", {"fp16", NULL}, "fp32", "t", 4, 4, 4, 23, "rz32", -131, NULL, 0},
    {"volta_mma", {"fp16", NULL}, "fp16", "t", 4, 4, 4, 23, "rne16", -20, NULL, 0},
    {"turing_mma", {"fp16", NULL}, "fp32", "t", 8, 8, 8, 24, "rz32", -132, NULL, 0},
    {"turing_mma", {"fp16", NULL}, "fp16", "t", 8, 8, 8, 24, "rne16", -21, NULL, 0},
    {"ampere_mma", {"tf32", NULL}, "fp32", "t", 4, 8, 4, 24, "rz32", -132, NULL, 0},
    {"ampere_mma", {"fp16", NULL}, "fp32", "t", 8, 16, 8, 24, "rz32", -132, NULL, 0},
    {"ampere_mma", {"bf16", NULL}, "fp32", "t", 8, 16, 8, 24, "rz32", -132, NULL, 0},
    {"ampere_mma", {"fp16", NULL}, "fp16", "t", 8, 16, 8, 24, "rne16", -21, NULL, 0},
    {"ada_mma", {"tf32", NULL}, "fp32", "t", 4, 8, 4, 24, "rz32", -132, NULL, 0},
    {"ada_mma", {"fp16", NULL}, "fp32", "t", 8, 16, 8, 24, "rz32", -132, NULL, 0},
    {"ada_mma", {"bf16", NULL}, "fp32", "t", 8, 16, 8, 24, "rz32", -132, NULL, 0},
    {"ada_mma", {"fp16", NULL}, "fp16", "t", 8, 16, 8, 24, "rne16", -21, NULL, 0},
    {"ada_mma", FP8, "fp32", "t", 16, 32, 16, 13, "rz14", -132, NULL, 0},
    {"ada_mma", FP8, "fp16", "t", 16, 32, 16, 13, "rne16", -21, NULL, 0},
    {"hopper_mma", {"tf32", NULL}, "fp32", "t", 4, 8, 8, 25, "rz32", -133, NULL, 0},
    {"hopper_mma", {"fp16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"hopper_mma", {"bf16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"hopper_mma", {"fp16", NULL}, "fp16", "t", 16, 16, 16, 25, "rne16", -22, NULL, 0},
    {"hopper_mma_fp8", FP8, "fp32", "pairs", 32, 32, 16, 25, "rz32", -133, NULL, 0},
    {"hopper_mma_fp8", FP8, "fp16", "pairs", 32, 32, 16, 25, "rne16", -22, NULL, 0},
    {"hopper_wgmma", {"tf32", NULL}, "fp32", "t", 8, 8, 8, 25, "rz32", -133, NULL, 0},
    {"hopper_wgmma", {"fp16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"hopper_wgmma", {"bf16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"hopper_wgmma", {"fp16", NULL}, "fp16", "t", 16, 16, 16, 25, "rne16", -133, NULL, 0},
    {"hopper_wgmma", FP8, "fp32", "t", 32, 32, 32, 13, "rz14", -133, NULL, 0},
    {"hopper_wgmma", FP8, "fp16", "t", 32, 32, 32, 13, "rne16", -133, NULL, 0},
    {"blackwell_mma", {"tf32", NULL}, "fp32", "t", 4, 8, 8, 25, "rz32", -133, NULL, 0},
    {"blackwell_mma", {"fp16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"blackwell_mma", {"bf16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"blackwell_mma", {"fp16", NULL}, "fp16", "t", 16, 16, 16, 25, "rne16", -22, NULL, 0},
    {"blackwell_mma_fp8", FP8, "fp32", "pairs", 32, 32, 16, 25, "rz32", -133, NULL, 0},
    {"blackwell_mma_fp8", FP8, "fp16", "pairs", 32, 32, 16, 25, "rne16", -22, NULL, 0},
    {"blackwell_tcgen05", {"tf32", NULL}, "fp32", "t", 8, 8, 8, 25, "rz32", -133, NULL, 0},
    {"blackwell_tcgen05", {"fp16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"blackwell_tcgen05", {"bf16", NULL}, "fp32", "t", 16, 16, 16, 25, "rz32", -133, NULL, 0},
    {"blackwell_tcgen05", {"fp16", NULL}, "fp16", "t", 16, 16, 16, 25, "rne16", -133, NULL, 0},
    {"blackwell_tcgen05", NARROW, "fp32", "t", 32, 32, 32, 25, "rz32", -133, NULL, 0},
    {"blackwell_tcgen05", NARROW, "fp16", "t", 32, 32, 32, 25, "rne16", -133, NULL, 0},
    {"blackwell_mx", NARROW, "fp32", "st", 32, 32, 32, 25, "rz32", -133, "e8m0", 32},
    {"blackwell_mxf4", {"e2m1", NULL}, "fp32", "gst", 64, 64, 64, 35, "rz32", -139, "e8m0", 16},
    {"blackwell_mxf4", {"e2m1", NULL}, "fp32", "gst", 64, 64, 64, 35, "rz32", -139, "ue4m3", 16},
    {"rtx_blackwell_mma", NARROW, "fp32", "t", 16, 32, 32, 25, "rz32", -133, NULL, 0},
    {"rtx_blackwell_mma", NARROW, "fp16", "t", 16, 32, 32, 25, "rne16", -22, NULL, 0},
    {"cdna1_mfma", {"bf16", NULL}, "fp32", "e", 2, 4, 2, 0, "rne32", 0, NULL, 0},
    {"cdna1_mfma", {"fp16", NULL}, "fp32", "e", 4, 8, 4, 0, "rne32", 0, NULL, 0},
    {"cdna2_mfma", {"bf16", NULL}, "fp32", "ftz", 2, 4, 2, 0, "rne32", 0, NULL, 0},
    {"cdna2_mfma", {"fp16", NULL}, "fp32", "ftz", 4, 8, 4, 0, "rne32", 0, NULL, 0},
    {"cdna2_mfma_1k", {"bf16", NULL}, "fp32", "ftz", 4, 8, 4, 0, "rne32", 0, NULL, 0},
    {"cdna3_mfma", {"tf32", NULL}, "fp32", "tr", 4, 8, 4, 24, "rne32", 0, NULL, 0},
    {"cdna3_mfma", {"bf16", NULL}, "fp32", "tr", 4, 16, 8, 24, "rne32", 0, NULL, 0},
    {"cdna3_mfma", {"fp16", NULL}, "fp32", "tr", 4, 16, 8, 24, "rne32", 0, NULL, 0},
    {"cdna3_mfma",
     {"e4m3fnuz", "e5m2fnuz", NULL},
     "fp32", "gtr",
     16, 32,
     16, 24,
     "rne32", 0,
     NULL, 0}
};
// clang-format on

const slow_unit *slow_unit_at(int i) {
    return i < (int)(sizeof rows / sizeof rows[0]) ? &rows[i] : NULL;
}

// ---------------------------------------------------------------------------------------- rounding

// Zero: IEEE rounding of x to a format, toward zero or to nearest even; overflow is infinite.
static uint64_t round_wide(const wide *x, int ebits, int mbits, int toward_zero) {
    int emin = 2 - (1 << (ebits - 1));
    uint64_t sign = (uint64_t)x->negative << (ebits + mbits);
    uint64_t infinity = ((1ull << ebits) - 1) << mbits;
    if (is_zero(x))
        return sign;
    int exponent = top_of(x) > emin ? top_of(x) : emin;
    int quantum = exponent - mbits;
    uint64_t kept = 0;
    for (int e = exponent; e >= quantum; e--)
        kept = kept << 1 | (uint64_t)bit_at(x, e);
    wide rest = *x;
    wide_truncate(&rest, quantum - 1);
    int half = bit_at(x, quantum - 1);
    int below = magnitude_compare(&rest, x) != 0;
    if (!toward_zero && half && (below || (kept & 1)))
        kept++;
    uint64_t code = ((uint64_t)(exponent - emin) << mbits) + kept;
    return sign | (code > infinity ? infinity : code);
}

static uint64_t convert(const slow_unit *u, const wide *x) {
    if (!strcmp(u->rho, "rne16"))
        return round_wide(x, 5, 10, 0);
    if (!strcmp(u->rho, "rz14"))
        return round_wide(x, 8, 13, 1) << 10;
    return round_wide(x, 8, 23, !strcmp(u->rho, "rz32"));
}

// -------------------------------------------------------------------------------------- the models

enum { MOST = 64 };

// One fused operation: values, as the unit sees them, and the codes' least exponents.
typedef struct fused {
    const slow_unit *unit;
    int n;
    double a[MOST], b[MOST];
    int a_emin, b_emin;
    int scale[MOST]; // exponent added to product i
    double c;
} fused;

static int emin_of(const slow_type *t) { return 1 - t->bias; }

static int exponent_of(double x, int emin) {
    int e = x == 0.0 ? emin : ilogb(x);
    return e > emin ? e : emin;
}

static int c_emin(const slow_unit *u) { return strcmp(u->accumulator, "fp16") ? -126 : -14; }

static uint64_t nan_code(const slow_unit *u) {
    return strcmp(u->accumulator, "fp16") ? 0x7fffffff : 0x7fff;
}

static uint64_t infinity_code(const slow_unit *u, int negative) {
    int half = !strcmp(u->accumulator, "fp16");
    return (half ? 0x7c00u : 0x7f800000u) | (uint64_t)negative << (half ? 15 : 31);
}

// 1 if NaN or infinities decide, with the code in *d.
static int decide_specials(const fused *f, double limit, uint64_t *d) {
    int nan = isnan(f->c), plus = f->c == INFINITY, minus = f->c == -INFINITY;
    for (int i = 0; i < f->n; i++) {
        double product = f->a[i] * f->b[i];
        nan |= isnan(product);
        plus |= product >= limit;
        minus |= product <= -limit;
    }
    if (nan || (plus && minus))
        *d = nan_code(f->unit);
    else if (plus || minus)
        *d = infinity_code(f->unit, minus);
    return nan || plus || minus;
}

static wide scaled_product(const fused *f, int i) {
    return wide_of(ldexp(f->a[i] * f->b[i], f->scale[i]));
}

static int product_exponent(const fused *f, int i) {
    return exponent_of(f->a[i], f->a_emin) + exponent_of(f->b[i], f->b_emin) + f->scale[i];
}

static uint64_t t_fdpa(const fused *f) {
    uint64_t d;
    if (decide_specials(f, INFINITY, &d))
        return d;
    int top = f->unit->floor, minus_zero = signbit(f->c) != 0;
    for (int i = 0; i < f->n; i++)
        if (f->a[i] * f->b[i] != 0.0 && product_exponent(f, i) > top)
            top = product_exponent(f, i);
    if (f->c != 0.0 && exponent_of(f->c, c_emin(f->unit)) > top)
        top = exponent_of(f->c, c_emin(f->unit));
    wide sum = wide_of(f->c);
    wide_truncate(&sum, top - f->unit->fraction);
    for (int i = 0; i < f->n; i++) {
        wide term = scaled_product(f, i);
        minus_zero &= term.negative;
        wide_truncate(&term, top - f->unit->fraction);
        sum = wide_sum(sum, term);
    }
    if (is_zero(&sum))
        sum.negative = minus_zero;
    return convert(f->unit, &sum);
}

static uint64_t e_fdpa(const fused *f) {
    uint64_t d;
    if (decide_specials(f, INFINITY, &d))
        return d;
    wide sum = wide_of(f->c);
    for (int i = 0; i < f->n; i++)
        sum = wide_sum(sum, scaled_product(f, i));
    if (is_zero(&sum))
        sum.negative = 0;
    return convert(f->unit, &sum);
}

static float ftz(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }

static float ftz_product(const fused *f, int i) {
    double a = fabs(f->a[i]) < ldexp(1.0, f->a_emin) && f->a[i] != 0.0 ? 0.0 : f->a[i];
    double b = fabs(f->b[i]) < ldexp(1.0, f->b_emin) && f->b[i] != 0.0 ? 0.0 : f->b[i];
    return ftz((float)(a * b));
}

static float ftz_sum(float x, float y) { return ftz((float)((double)x + (double)y)); }

static uint64_t ftz_pairwise(const fused *f) {
    float d = (float)(fabs(f->c) < 0x1p-126 && f->c != 0.0 ? 0.0 : f->c);
    float group = ftz_sum(ftz_product(f, 0), ftz_product(f, 1));
    if (f->n == 4)
        group = ftz_sum(group, ftz_sum(ftz_product(f, 2), ftz_product(f, 3)));
    d = ftz_sum(d, group);
    if (isnan(d))
        return nan_code(f->unit);
    uint32_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

// T of the elements i with i % step == first; *top: its exponent, or the least int.
enum { NO_PRODUCT = -100000 };
static wide truncated_sum(const fused *f, int first, int step, int *top) {
    *top = NO_PRODUCT;
    for (int i = first; i < f->n; i += step)
        if (f->a[i] * f->b[i] != 0.0 && product_exponent(f, i) > *top)
            *top = product_exponent(f, i);
    wide sum = {0};
    for (int i = first; i < f->n; i += step) {
        wide term = scaled_product(f, i);
        if (*top != NO_PRODUCT)
            wide_truncate(&term, *top - 24);
        sum = wide_sum(sum, term);
    }
    return sum;
}

static uint64_t tr_fdpa(const fused *f, int even_odd) {
    uint64_t d;
    if (decide_specials(f, 0x1p128, &d))
        return d;
    int top, other = NO_PRODUCT;
    wide t = truncated_sum(f, 0, even_odd ? 2 : 1, &top);
    if (even_odd) {
        wide odd = truncated_sum(f, 1, 2, &other);
        if (other > top)
            top = other;
        if (top != NO_PRODUCT) {
            wide_floor(&t, top - 24);
            wide_floor(&odd, top - 24);
        }
        t = wide_sum(t, odd);
    }
    int ec = exponent_of(f->c, -126), e = top > ec ? top : ec;
    wide c = wide_of(f->c);
    wide_floor(&t, e - 32);
    wide_floor(&c, e - 24);
    if (even_odd && ec < e - 25)
        c = (wide){0};
    wide sum = wide_sum(t, c);
    int minus_zero = signbit(f->c) != 0;
    for (int i = 0; i < f->n; i++)
        minus_zero &= signbit(f->a[i] * f->b[i]) != 0;
    if (is_zero(&sum)) {
        sum.negative = minus_zero;
    } else {
        int own = top_of(&sum) > -126 ? top_of(&sum) : -126;
        wide_floor(&sum, own - 31);
    }
    return convert(f->unit, &sum);
}

// ------------------------------------------------------------------------------------------ chains

static double accumulator_value(const slow_unit *u, uint64_t code) {
    return slow_type_value(slow_type_find(u->accumulator), code);
}

// FP8 as FP16: elements with bit 1 clear, then those with it set, then C.
static uint64_t pairs(const slow_unit *u, const fused *all, uint64_t c_code) {
    uint64_t t = 0;
    for (int set = 0; set < 2; set++) {
        fused f = {.unit = u, .a_emin = -14, .b_emin = -14, .c = accumulator_value(u, t)};
        for (int i = 0; i < all->n; i++)
            if (!(i & 2) == !set) {
                f.a[f.n] = all->a[i];
                f.b[f.n++] = all->b[i];
            }
        t = t_fdpa(&f);
    }
    double x = accumulator_value(u, t), y = accumulator_value(u, c_code);
    if (isnan(x + y))
        return nan_code(u);
    if (isinf(x + y))
        return infinity_code(u, x + y < 0);
    wide sum = wide_sum(wide_of(x), wide_of(y));
    if (is_zero(&sum))
        sum.negative = signbit(x) && signbit(y);
    return round_wide(&sum, strcmp(u->accumulator, "fp16") ? 8 : 5,
                      strcmp(u->accumulator, "fp16") ? 23 : 10, 0);
}

static uint64_t grouped(const slow_unit *u, const slow_dot *in, int at, double c) {
    const slow_type *scale = slow_type_find(u->scale);
    int emin = strcmp(u->scale, "e8m0") ? -6 : -127;
    int top = u->floor, nan = isnan(c), minus_zero = signbit(c) != 0;
    double value[4];
    int exponent[4];
    for (int g = 0; g < 4; g++) {
        int block = (at + 16 * g) / in->scale_block, any = 0, negative = 1;
        double sa = slow_type_value(scale, in->sa[block]);
        double sb = slow_type_value(scale, in->sb[block]);
        nan |= isnan(sa) || isnan(sb);
        value[g] = 0.0;
        for (int i = at + 16 * g; i < at + 16 * g + 16; i++) {
            double product =
                slow_type_value(in->a_type, in->a[i]) * slow_type_value(in->b_type, in->b[i]);
            any |= product != 0.0;
            negative &= signbit(product) != 0;
            value[g] += product;
        }
        if (nan || isinf(c))
            continue;
        exponent[g] = exponent_of(sa, emin) + exponent_of(sb, emin);
        if (any && sa * sb != 0.0 && exponent[g] > top)
            top = exponent[g];
        minus_zero &= value[g] < 0.0 || negative;
        value[g] *= sa * sb;
    }
    if (nan)
        return nan_code(u);
    if (isinf(c))
        return infinity_code(u, c < 0);
    if (c != 0.0 && exponent_of(c, -126) > top)
        top = exponent_of(c, -126);
    wide sum = wide_of(c);
    wide_truncate(&sum, top - u->fraction);
    for (int g = 0; g < 4; g++) {
        wide term = wide_of(value[g]);
        wide_truncate(&term, top - u->fraction);
        sum = wide_sum(sum, term);
    }
    if (is_zero(&sum))
        sum.negative = minus_zero;
    return convert(u, &sum);
}

static uint64_t one_operation(const slow_unit *u, const slow_dot *in, fused *f, int at,
                              uint64_t c) {
    if (!strcmp(u->model, "gst"))
        return grouped(u, in, at, f->c);
    if (!strcmp(u->model, "pairs"))
        return pairs(u, f, c);
    if (!strcmp(u->model, "e"))
        return e_fdpa(f);
    if (!strcmp(u->model, "ftz"))
        return ftz_pairwise(f);
    if (!strcmp(u->model, "tr") || !strcmp(u->model, "gtr"))
        return tr_fdpa(f, *u->model == 'g');
    if (!strcmp(u->model, "st")) {
        uint64_t sa = in->sa[at / in->scale_block], sb = in->sb[at / in->scale_block];
        if (sa == 255 || sb == 255)
            return nan_code(u);
        for (int i = 0; i < f->n; i++)
            f->scale[i] = (int)sa + (int)sb - 254;
    }
    return t_fdpa(f);
}

uint64_t slow_unit_dot(const slow_unit *u, const slow_dot *in) {
    // Elements of one step: of an instruction where its order is fixed, of a fused operation else.
    int whole = !strcmp(u->model, "gst") || !strcmp(u->model, "pairs");
    uint64_t d = in->c;
    for (int start = 0; start < in->k; start += u->k) {
        int end = start + u->k < in->k ? start + u->k : in->k;
        int step = whole ? u->k : u->length;
        for (int at = start; at < end; at += step) {
            fused f = {.unit = u, .n = end - at < step ? end - at : step};
            f.a_emin = emin_of(in->a_type);
            f.b_emin = emin_of(in->b_type);
            f.c = accumulator_value(u, d);
            for (int i = 0; i < f.n; i++) {
                f.a[i] = slow_type_value(in->a_type, in->a[at + i]);
                f.b[i] = slow_type_value(in->b_type, in->b[at + i]);
            }
            d = one_operation(u, in, &f, at, d);
        }
    }
    return d;
}
