// The kernels of elementary.c as inline functions, so that loops over arrays can be vectorised.
// They are branch-free where they can be; every caller gets the same bits, vectorised or not,
// because each element sees the same operations in the same order.
#ifndef ELEMENTARY_INTERNAL_H
#define ELEMENTARY_INTERNAL_H

#include <math.h> // sqrt, which IEEE 754 rounds correctly; nothing else of it is called
#include <qg_bits.h>
#include <qg_elementary.h>

#define LN2_HIGH 0x1.62e42fee00000p-1 // 32 bits: times an exponent it is exact
#define LN2_LOW  0x1.a39ef35793c76p-33

// e^x = 2^k e^r with |r| <= ln 2 / 2, e^r by its Taylor series to r^13 (remainder below 2^-57).
static inline double exp_inline(double x) {
    const double to_integer = 0x1.8p52; // adding it leaves the nearest integer in the low bits
    x = x < -800 ? -800 : x;
    x = x > 800 ? 800 : x;
    double shifted = x * 0x1.71547652b82fep+0 + to_integer;
    double k = shifted - to_integer;
    double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = 1 + (r + r * r * p);
    // 2^k in two steps, each a normal number: the second rounds once into the subnormals.
    uint64_t biased = qg_bits_of_double(shifted) - qg_bits_of_double(to_integer) + 2048;
    uint64_t half = biased >> 1, rest = biased - half;
    return p * qg_double_of_bits((half - 1) << 52) * qg_double_of_bits((rest - 1) << 52);
}

// A normal x > 0 as 2^k (1 + f) with 1 + f in [sqrt 1/2, sqrt 2), and the parts of
// log(1 + f) = f - half_square + tail: the first two carry what rounding would lose.
typedef struct log_parts {
    double k, f, half_square, tail;
} log_parts;

static inline log_parts log_split(double x) {
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdull;
    uint64_t bits = qg_bits_of_double(x);
    uint64_t k_biased = (bits - sqrt_half + (1024ull << 52)) >> 52; // k + 1024
    log_parts l;
    l.f = qg_double_of_bits(bits - (k_biased << 52) + (1024ull << 52)) - 1;
    // k as a double without an integer conversion, which has no vector form everywhere
    l.k = qg_double_of_bits(k_biased | 0x4330000000000000ull) - (0x1p52 + 1024);
    // log(1 + f) = 2 atanh s = 2 s + 2 s^3/3 + ..., s^2 < 0.0295: eleven terms reach 2^-60.
    double s = l.f / (2 + l.f), z = s * s;
    double series = 2.0 / 21;
    series = series * z + 2.0 / 19;
    series = series * z + 2.0 / 17;
    series = series * z + 2.0 / 15;
    series = series * z + 2.0 / 13;
    series = series * z + 2.0 / 11;
    series = series * z + 2.0 / 9;
    series = series * z + 2.0 / 7;
    series = series * z + 2.0 / 5;
    series = series * z + 2.0 / 3;
    l.half_square = 0.5 * l.f * l.f;
    l.tail = s * (l.half_square + z * series);
    return l;
}

static inline double log_sum(log_parts l) {
    return l.k * LN2_HIGH - ((l.half_square - (l.tail + l.k * LN2_LOW)) - l.f);
}

// log of a normal x > 0.
static inline double log_inline(double x) { return log_sum(log_split(x)); }

// AS 241, |q| <= 0.425 with q = p - 1/2. Finite for every |q| <= 1/2.
static inline double quantile_central(double q) {
    double r = 0.180625 - q * q;
    double n = 2.5090809287301226727e+3, d = 5.2264952788528545610e+3;
    n = n * r + 3.3430575583588128105e+4, d = d * r + 2.8729085735721942674e+4;
    n = n * r + 6.7265770927008700853e+4, d = d * r + 3.9307895800092710610e+4;
    n = n * r + 4.5921953931549871457e+4, d = d * r + 2.1213794301586595867e+4;
    n = n * r + 1.3731693765509461125e+4, d = d * r + 5.3941960214247511077e+3;
    n = n * r + 1.9715909503065514427e+3, d = d * r + 6.8718700749205790830e+2;
    n = n * r + 1.3314166789178437745e+2, d = d * r + 4.2313330701600911252e+1;
    n = n * r + 3.3871328727963666080e+0, d = d * r + 1.0;
    return n * q / d;
}

// AS 241, |p - 1/2| > 0.425: the |z| of a tail probability in [e^-25, 0.075], r = sqrt(-log tail).
static inline double quantile_tail(double r) {
    r = r - 1.6;
    double n = 7.74545014278341407640e-4, d = 1.05075007164441684324e-9;
    n = n * r + 2.27238449892691845833e-2, d = d * r + 5.47593808499534494600e-4;
    n = n * r + 2.41780725177450611770e-1, d = d * r + 1.51986665636164571966e-2;
    n = n * r + 1.27045825245236838258e+0, d = d * r + 1.48103976427480074590e-1;
    n = n * r + 3.64784832476320460504e+0, d = d * r + 6.89767334985100004550e-1;
    n = n * r + 5.76949722146069140550e+0, d = d * r + 1.67638483018380384940e+0;
    n = n * r + 4.63033784615654529590e+0, d = d * r + 2.05319162663775882187e+0;
    n = n * r + 1.42343711074968357734e+0, d = d * r + 1.0;
    return n / d;
}

#endif
