// The slow model. See slow_model.h. Written from the tables and formulas of the formats' documents
// (OCP OFP8 and MX, ml_dtypes, P3109 interim report 4.7), not from lib/formats.
#include <slow_model.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum family {
    FN,       // OCP E4M3: the all-ones magnitude is NaN, no infinity
    IEEE,     // top exponent is infinity and NaN
    FNUZ,     // the code of -0 is NaN
    FINITE,   // every code a number
    EXPONENT, // E8M0
    UNSIGNED, // no sign, the all-ones code is NaN
    P3109_SE, // signed or unsigned, extended or finite
    P3109_SF,
    P3109_UE,
    P3109_UF,
    SYMMETRIC, // two's complement, lowest code not produced
    FULL       // two's complement
};

typedef struct row {
    const char *name;
    int family, bits, ebits, mbits, bias, unused; // integers: bias binary digits after the point
} row;

static const row rows[] = {
    {"e4m3",        FN,        8,  4, 3,  7,   0 },
    {"e5m2",        IEEE,      8,  5, 2,  15,  0 },
    {"e4m3fnuz",    FNUZ,      8,  4, 3,  8,   0 },
    {"e5m2fnuz",    FNUZ,      8,  5, 2,  16,  0 },
    {"e4m3b11fnuz", FNUZ,      8,  4, 3,  11,  0 },
    {"e4m3_ieee",   IEEE,      8,  4, 3,  7,   0 },
    {"e3m4",        IEEE,      8,  3, 4,  3,   0 },
    {"e2m3",        FINITE,    6,  2, 3,  1,   0 },
    {"e3m2",        FINITE,    6,  3, 2,  3,   0 },
    {"e2m1",        FINITE,    4,  2, 1,  1,   0 },
    {"e8m0",        EXPONENT,  8,  8, 0,  127, 0 },
    {"ue4m3",       UNSIGNED,  8,  4, 3,  7,   0 },
    {"ue5m3",       UNSIGNED,  8,  5, 3,  15,  0 },
    {"mxint8",      SYMMETRIC, 8,  0, 0,  6,   0 },
    {"mxint6",      SYMMETRIC, 6,  0, 0,  4,   0 },
    {"mxint4",      SYMMETRIC, 4,  0, 0,  2,   0 },
    {"int8",        SYMMETRIC, 8,  0, 0,  0,   0 },
    {"int6",        SYMMETRIC, 6,  0, 0,  0,   0 },
    {"int4",        SYMMETRIC, 4,  0, 0,  0,   0 },
    {"int8_full",   FULL,      8,  0, 0,  0,   0 },
    {"bf16",        IEEE,      16, 8, 7,  127, 0 },
    {"fp16",        IEEE,      16, 5, 10, 15,  0 },
    {"tf32",        IEEE,      32, 8, 10, 127, 13},
};

typedef struct entry {
    double value; // magnitude
    uint64_t code;
} entry;

struct slow_format {
    row row;
    entry *positive, *negative; // ascending magnitudes; positive holds zero, negative does not
    size_t positive_count, negative_count;
    double above_largest;
    int has_negative_zero;
    uint64_t negative_zero, infinity[2]; // infinity, minus infinity
};

// ---------------------------------------------------------------------------------- descriptions

static int describe_p3109(const char *name, row *out) {
    int precision, length = 0;
    char sign, domain;
    if (sscanf(name, "binary8p%d%c%c%n", &precision, &sign, &domain, &length) != 3 ||
        name[length] || precision < 1 || precision > 7)
        return 0;
    int is_signed = sign == 's', extended = domain == 'e';
    out->family = is_signed ? (extended ? P3109_SE : P3109_SF) : (extended ? P3109_UE : P3109_UF);
    out->bits = 8;
    out->mbits = precision - 1;
    out->ebits = 8 - is_signed - out->mbits;
    out->bias = 1 << (is_signed ? 8 - precision - 1 : 8 - precision);
    return 1;
}

static int describe_minifloat(const char *name, row *out) {
    int length = 0;
    if (sscanf(name, "f%de%dm%d%n", &out->bits, &out->ebits, &out->mbits, &length) != 3)
        return 0;
    out->bias = (1 << (out->ebits - 1)) - 1;
    if (name[length] == 'b')
        out->bias = atoi(name + length + 1);
    out->family = FINITE;
    return 1;
}

static int describe(const char *name, row *out) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0) {
            *out = rows[i];
            return 1;
        }
    memset(out, 0, sizeof *out);
    return describe_p3109(name, out) || describe_minifloat(name, out);
}

// ---------------------------------------------------------------------------------------- values

static double power(int exponent) { return ldexp(1.0, exponent); }

static double magnitude_value(const row *r, uint64_t code) {
    double mantissa = (double)(code % (1ull << r->mbits));
    int exponent = (int)(code / (1ull << r->mbits));
    if (exponent == 0)
        return mantissa * power(1 - r->bias - r->mbits);
    return (mantissa + power(r->mbits)) * power(exponent - r->bias - r->mbits);
}

// Sign and magnitude, where `ones` is the largest magnitude code.
static double signed_value(const row *r, uint64_t code) {
    uint64_t ones = (1ull << (r->ebits + r->mbits)) - 1, magnitude = code & ones;
    uint64_t first_infinite = ones - ((1ull << r->mbits) - 1);
    double sign = code > ones ? -1.0 : 1.0;
    if (r->family == FN && magnitude == ones)
        return NAN;
    if (r->family == IEEE && magnitude >= first_infinite)
        return magnitude == first_infinite ? sign * INFINITY : NAN;
    if ((r->family == FNUZ || r->family == P3109_SE || r->family == P3109_SF) && code == ones + 1)
        return NAN;
    if (r->family == P3109_SE && magnitude == ones)
        return sign * INFINITY;
    return sign * magnitude_value(r, magnitude);
}

static double unsigned_value(const row *r, uint64_t code) {
    uint64_t ones = (1ull << (r->ebits + r->mbits)) - 1;
    if (code >= ones)
        return NAN;
    if (r->family == P3109_UE && code == ones - 1)
        return INFINITY;
    return r->family == EXPONENT ? power((int)code - 127) : magnitude_value(r, code);
}

static double integer_value(const row *r, uint64_t code) {
    double half = power(r->bits - 1), value = (double)code;
    return (value < half ? value : value - 2 * half) * power(-r->bias);
}

static double row_value(const row *r, uint64_t code) {
    code >>= r->unused;
    switch (r->family) {
    case SYMMETRIC:
    case FULL: return integer_value(r, code);
    case EXPONENT:
    case UNSIGNED:
    case P3109_UE:
    case P3109_UF: return unsigned_value(r, code);
    default: return signed_value(r, code);
    }
}

static int compare_entries(const void *a, const void *b) {
    double x = ((const entry *)a)->value, y = ((const entry *)b)->value;
    return (x > y) - (x < y);
}

static void add_code(slow_format *f, uint64_t code) {
    double value = row_value(&f->row, code);
    if (isinf(value))
        f->infinity[signbit(value) != 0] = code;
    if (isnan(value) || isinf(value))
        return;
    if (value == 0 && signbit(value)) {
        f->has_negative_zero = 1;
        f->negative_zero = code;
    } else if (value >= 0) {
        f->positive[f->positive_count++] = (entry){value, code};
    } else if (f->row.family != SYMMETRIC || code != 1ull << (f->row.bits - 1)) {
        f->negative[f->negative_count++] = (entry){-value, code};
    }
}

// The largest value plus one step of its binade.
static double above(const slow_format *f) {
    double largest = f->positive[f->positive_count - 1].value;
    if (f->row.family == SYMMETRIC || f->row.family == FULL)
        return largest + power(-f->row.bias);
    int exponent;
    frexp(largest, &exponent);
    return largest + power(exponent - 1 - f->row.mbits);
}

slow_format *slow_format_create(const char *name) {
    row description;
    if (!describe(name, &description))
        return NULL;
    slow_format *f = calloc(1, sizeof *f);
    f->row = description;
    uint64_t count = slow_code_count(f);
    f->positive = malloc(count * sizeof *f->positive);
    f->negative = malloc(count * sizeof *f->negative);
    for (uint64_t i = 0; i < count; i++)
        add_code(f, slow_code(f, i));
    qsort(f->positive, f->positive_count, sizeof *f->positive, compare_entries);
    qsort(f->negative, f->negative_count, sizeof *f->negative, compare_entries);
    f->above_largest = above(f);
    return f;
}

void slow_format_free(slow_format *f) {
    if (f) {
        free(f->positive);
        free(f->negative);
        free(f);
    }
}

int slow_format_bits(const slow_format *f) { return f->row.bits; }
uint64_t slow_code_count(const slow_format *f) { return 1ull << (f->row.bits - f->row.unused); }
uint64_t slow_code(const slow_format *f, uint64_t i) { return i << f->row.unused; }
double slow_decode(const slow_format *f, uint64_t code) { return row_value(&f->row, code); }
size_t slow_value_count(const slow_format *f) { return f->positive_count; }
double slow_value(const slow_format *f, size_t rank) { return f->positive[rank].value; }
double slow_above_largest(const slow_format *f) { return f->above_largest; }

// -------------------------------------------------------------------------------------- rounding

static int has_sign(const slow_format *f) {
    int family = f->row.family;
    return family != EXPONENT && family != UNSIGNED && family != P3109_UE && family != P3109_UF;
}

slow_place slow_locate(const slow_format *f, double x) {
    slow_place place = {0};
    double magnitude = fabs(x);
    place.is_nan = isnan(x) != 0;
    place.is_infinite = isinf(x) != 0;
    place.negative = f->row.family != EXPONENT && signbit(x) != 0;
    place.beyond = magnitude >= f->above_largest;
    place.below = magnitude < f->positive[0].value;
    if (place.is_nan || place.beyond || place.below)
        return place;
    size_t low = 0, high = f->positive_count; // value[low] <= magnitude < value[high]
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (f->positive[middle].value <= magnitude)
            low = middle;
        else
            high = middle;
    }
    place.rank = low;
    place.exceeds = low + 1 == f->positive_count;
    place.rest = magnitude - f->positive[low].value;
    place.step =
        (place.exceeds ? f->above_largest : f->positive[low + 1].value) - f->positive[low].value;
    return place;
}

// floor(rest / step * 2^n), and what that leaves of rest.
static uint64_t fraction_bits(const slow_place *place, int n, double *left) {
    double unit = ldexp(place->step, -n);
    uint64_t count = (uint64_t)(place->rest / unit);
    *left = place->rest - (double)count * unit;
    return count;
}

static int goes_up(const slow_place *place, int odd, const slow_conversion *c, uint32_t word) {
    double half = place->step / 2, left;
    int n = c->bits, inexact = place->rest > 0;
    uint64_t whole = 1ull << n, r = n ? (uint64_t)word * whole / (1ull << 32) : 0;
    switch (c->mode) {
    case SLOW_RNE: return place->rest > half || (place->rest == half && odd);
    case SLOW_RNA: return place->rest >= half;
    case SLOW_RTZ: return 0;
    case SLOW_RTP: return inexact && !place->negative;
    case SLOW_RTN: return inexact && place->negative;
    case SLOW_RTO: return inexact && !odd;
    case SLOW_STOCHASTIC_A: return fraction_bits(place, n, &left) + r >= whole;
    case SLOW_STOCHASTIC_B: return fraction_bits(place, n + 1, &left) + 2 * r + 1 >= 2 * whole;
    default: break;
    }
    uint64_t nearest = fraction_bits(place, n, &left);
    double half_unit = ldexp(place->step, -n - 1);
    if (left > half_unit || (left == half_unit && nearest % 2 == 1))
        nearest++;
    return nearest + r >= whole;
}

// ------------------------------------------------------------------------------------- encoding

static uint64_t nan_code(const slow_format *f, int negative) {
    uint64_t ones = (1ull << (f->row.ebits + f->row.mbits)) - 1;
    switch (f->row.family) {
    case FNUZ:
    case P3109_SE:
    case P3109_SF: return ones + 1;
    case FN:
    case IEEE: return (ones + (negative ? ones + 1 : 0)) << f->row.unused;
    default: return ones;
    }
}

static uint64_t zero_code(const slow_format *f, int negative) {
    return negative && f->has_negative_zero ? f->negative_zero : f->positive[0].code;
}

static uint64_t largest_code(const slow_format *f, int negative) {
    return negative ? f->negative[f->negative_count - 1].code
                    : f->positive[f->positive_count - 1].code;
}

static uint64_t overflow_code(const slow_format *f, const slow_place *place,
                              const slow_conversion *c) {
    int family = f->row.family, negative = place->negative;
    int bounded = family == FINITE || family == SYMMETRIC || family == FULL || family == P3109_SF ||
                  family == P3109_UF;
    if (c->saturates || bounded)
        return largest_code(f, negative);
    if (!place->is_infinite) {
        int stops = c->mode == SLOW_RTZ || (c->mode == SLOW_RTP && negative) ||
                    (c->mode == SLOW_RTN && !negative) ||
                    (c->mode == SLOW_RTO && family != P3109_SE);
        if (stops)
            return largest_code(f, negative);
    }
    if (family == IEEE || family == P3109_SE || family == P3109_UE)
        return f->infinity[negative];
    return nan_code(f, negative);
}

// A value below zero in a format without sign.
static uint64_t unsigned_underflow(const slow_format *f, const slow_place *place,
                                   const slow_conversion *c) {
    if (c->saturates)
        return 0;
    if (!place->is_infinite && (c->mode == SLOW_RTZ || c->mode == SLOW_RTP))
        return 0;
    return nan_code(f, 0);
}

static uint64_t invalid_code(const slow_format *f, const slow_conversion *c) {
    if (f->row.family != FINITE && f->row.family != SYMMETRIC && f->row.family != FULL)
        return nan_code(f, 0);
    return c->nan_to_zero ? zero_code(f, 1) : largest_code(f, 0);
}

// Two's complement may have one more negative value than positive ones.
static uint64_t rank_code(const slow_format *f, size_t rank, int negative) {
    if (!negative || rank == 0)
        return rank ? f->positive[rank].code : zero_code(f, negative);
    return f->negative[rank - 1].code;
}

uint64_t slow_round(const slow_format *f, const slow_place *place, const slow_conversion *c,
                    uint32_t word) {
    if (place->is_nan)
        return invalid_code(f, c);
    if (place->below)
        return 0;
    int below_zero = place->negative && !has_sign(f);
    if (place->beyond && below_zero)
        return unsigned_underflow(f, place, c);
    size_t count = place->negative && has_sign(f) ? f->negative_count + 1 : f->positive_count;
    if (place->beyond)
        return overflow_code(f, place, c);
    int odd = (int)(f->positive[place->rank].code >> f->row.unused & 1);
    size_t rank = place->rank + (size_t)goes_up(place, odd, c, word);
    if (below_zero)
        return rank ? unsigned_underflow(f, place, c) : 0;
    if (rank >= count)
        return overflow_code(f, place, c);
    return rank_code(f, rank, place->negative);
}

uint64_t slow_encode(const slow_format *f, double x, const slow_conversion *c, uint32_t word) {
    slow_place place = slow_locate(f, x);
    return slow_round(f, &place, c, word);
}
