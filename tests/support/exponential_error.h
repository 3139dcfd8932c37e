// The error of qg_exponential against exp in binary64 (whose own error, below 2^-28 of an ulp of
// binary32, shows in the last digits alone), in ulps of the exact result.
#ifndef EXPONENTIAL_ERROR_H
#define EXPONENTIAL_ERROR_H

#include <qg_silu.h>

#include <math.h>

// Stated in qg_silu.h.
static const double EXPONENTIAL_NORMAL_ULPS = 0.7185, EXPONENTIAL_SUBNORMAL_ULPS = 0.7791;

typedef struct exponential_errors {
    double normal, subnormal; // worst, by the exact result
    float normal_at, subnormal_at;
    int64_t compared, misrounded; // finite results; those that are not the nearest number
    int64_t wrong;                // NaN, infinities, 0 and 1 where they must or must not be
} exponential_errors;

// The correctly rounded binary32. Near a tie of binary32, binary64 does not decide.
static inline float exponential_nearest(float x) {
    double y = exp((double)x);
    uint64_t rest = qg_bits_of_double(y) & 0x1fffffffu;
    if (y > 0x1p-126 && (rest < 0x0ffffff0u || rest > 0x10000010u))
        return (float)y;
    return (float)expl((long double)x);
}

static inline double exponential_ulp(double y) {
    int exponent;
    (void)frexp(y, &exponent);
    return ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

static inline void exponential_add(exponential_errors *e, float x) {
    float got = qg_exponential(x);
    if (x != x) {
        e->wrong += qg_bits_of_float(got) != qg_bits_of_float(x);
        return;
    }
    if (x > 100.0f || x < -110.0f || (x < 0x1p-26f && x > -0x1p-26f)) {
        float only = x > 100.0f ? (float)INFINITY : x < -110.0f ? 0.0f : 1.0f;
        e->wrong += qg_bits_of_float(got) != qg_bits_of_float(only);
        return;
    }
    float nearest = exponential_nearest(x);
    if (isinf(nearest) || isinf(got) || nearest == 0.0f || got == 0.0f) {
        e->wrong += qg_bits_of_float(got) != qg_bits_of_float(nearest);
        return;
    }
    double y = exp((double)x), error = fabs((double)got - y) / exponential_ulp(y);
    e->compared++;
    e->misrounded += got != nearest;
    if (y >= 0x1p-126 && error > e->normal)
        e->normal = error, e->normal_at = x;
    if (y < 0x1p-126 && error > e->subnormal)
        e->subnormal = error, e->subnormal_at = x;
}

static inline void exponential_merge(exponential_errors *sum, const exponential_errors *part) {
    sum->compared += part->compared;
    sum->misrounded += part->misrounded;
    sum->wrong += part->wrong;
    if (part->normal > sum->normal)
        sum->normal = part->normal, sum->normal_at = part->normal_at;
    if (part->subnormal > sum->subnormal)
        sum->subnormal = part->subnormal, sum->subnormal_at = part->subnormal_at;
}

#endif
