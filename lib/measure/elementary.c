// exp, log and the normal distribution from basic IEEE operations. See qg_elementary.h.
// The fdlibm manner: reduce the argument exactly, sum a short series, keep the rounding error of
// the leading term. Series coefficients are Taylor's, so nothing here needs a table but AS 241.
#include <elementary_internal.h>

double qg_exp(double x) { return exp_inline(x); }

static double infinity(void) { return qg_double_of_bits(0x7ff0000000000000ull); }
static double not_a_number(void) { return qg_double_of_bits(0x7ff8000000000000ull); }

// Where a logarithm has nothing to compute: x <= 0, infinity and NaN.
static int is_special(double x) { return !(x > 0 && x < infinity()); }
static double special_log(double x) {
    if (x == 0)
        return -infinity();
    return x > 0 ? x : not_a_number();
}

// The parts of any finite x > 0, subnormals scaled into the normal range first.
static log_parts log_split_any(double x) {
    if (x >= 0x1p-1022)
        return log_split(x);
    log_parts l = log_split(x * 0x1p54);
    l.k -= 54;
    return l;
}

double qg_log(double x) { return is_special(x) ? special_log(x) : log_sum(log_split_any(x)); }

double qg_log1p(double x) {
    double y = 1 + x;
    if (y == 1)
        return x;
    if (is_special(y))
        return special_log(y);
    // log(y) / (y - 1) varies slowly, so the rounding of 1 + x cancels (Kahan).
    return qg_log(y) * (x / (y - 1));
}

double qg_log10(double x) {
    const double ivln10_high = 0x1.bcb7b00000000p-2, ivln10_low = 0x1.526e50e32a6abp-26;
    const double log10_2_high = 0x1.3441350800000p-2, log10_2_low = 0x1.f79fef311f12bp-34;
    if (is_special(x))
        return special_log(x);
    log_parts l = log_split_any(x);
    // log(1 + f) = high + low with 21 bits in high, so that products with the high parts are exact
    double high = qg_double_of_bits(qg_bits_of_double(l.f - l.half_square) & ~0xffffffffull);
    double low = (l.f - high) - l.half_square + l.tail;
    double integer = l.k * log10_2_high, fraction = high * ivln10_high;
    double sum = integer + fraction; // |integer| >= |fraction| or integer == 0
    double rest = l.k * log10_2_low + (low + high) * ivln10_low + low * ivln10_high;
    return ((integer - sum) + fraction + rest) + sum;
}

// AS 241 beyond r = 5: tail probabilities below e^-25.
static double quantile_far_tail(double r) {
    r = r - 5.0;
    double n = 2.01033439929228813265e-7, d = 2.04426310338993978564e-15;
    n = n * r + 2.71155556874348757815e-5, d = d * r + 1.42151175831644588870e-7;
    n = n * r + 1.24266094738807843860e-3, d = d * r + 1.84631831751005468180e-5;
    n = n * r + 2.65321895265761230930e-2, d = d * r + 7.86869131145613259100e-4;
    n = n * r + 2.96560571828504891230e-1, d = d * r + 1.48753612908506148525e-2;
    n = n * r + 1.78482653991729133580e+0, d = d * r + 1.36929880922735805310e-1;
    n = n * r + 5.46378491116411436990e+0, d = d * r + 5.99832206555887937690e-1;
    n = n * r + 6.65790464350110377720e+0, d = d * r + 1.0;
    return n / d;
}

double qg_normal_quantile(double p) {
    double q = p - 0.5;
    if (q >= -0.425 && q <= 0.425)
        return quantile_central(q);
    double tail = q < 0 ? p : 1 - p;
    if (tail == 0)
        return q < 0 ? -infinity() : infinity();
    if (!(tail > 0))
        return not_a_number();
    double r = sqrt(-qg_log(tail));
    double z = r <= 5 ? quantile_tail(r) : quantile_far_tail(r);
    return q < 0 ? -z : z;
}

double qg_normal_density(double z) {
    // z^2 in two parts: its rounding error would be multiplied by z^2 / 2.
    double high = qg_double_of_bits(qg_bits_of_double(z) & ~0x7ffffffull);
    double low = (z - high) * (z + high);
    if (!(z > -40 && z < 40))
        return z == z ? 0 : z;
    return 0x1.9884533d43651p-2 * qg_exp(-0.5 * high * high) * qg_exp(-0.5 * low);
}

// Phi(z) - 1/2 = phi(z) (z + z^3/3 + z^5/(3 5) + ...), every term positive.
static double cdf_central(double z) {
    double term = z, sum = z;
    for (int i = 3; i < 100; i += 2) {
        term = term * z * z / i;
        sum += term;
    }
    return 0.5 + sum * qg_normal_density(z);
}

// Laplace's continued fraction z + 1/(z + 2/(z + ...)) of Mills' ratio, z >= 2, from its far end,
// where r = z + n/r gives the value to start with.
static double upper_tail(double z) {
    const int terms = 80;
    double ratio = 0.5 * (z + sqrt(z * z + 4.0 * terms));
    for (int i = terms; i > 0; i--)
        ratio = z + i / ratio;
    return qg_normal_density(z) / ratio;
}

double qg_normal_cdf(double z) {
    if (z < -2)
        return z < -40 ? 0 : upper_tail(-z);
    if (z > 2)
        return z > 40 ? 1 : 1 - upper_tail(z);
    return cdf_central(z);
}
