// Closed forms of products. See qg_product_theory.h.
//
// The constants: an addition rounded to nearest errs by an ulp / sqrt 12, rounded down by half an
// ulp, and an ulp of a sum s = f 2^e is 2 u 2^e = 2 u s / f. With f spread as 1/f over [1, 2),
// E[1/f^2] = 3 / (8 ln 2) and E[1/f] = 1 / (2 ln 2). Sums of mean zero have E[s_i^2] proportional
// to i and E|s_i| to sqrt i; positive ones grow as i, and their binades are added up exactly.
#include <qg_product_theory.h>

#include <math.h>

static const double PI = 3.14159265358979323846;
static const double LN_2 = 0.69314718055994530942;

// ---------------------------------------------------------------------------------------- operands

double qg_theory_coherence(qg_density density) {
    switch (density) {
    case QG_DENSITY_NORMAL: return 2 / PI;
    case QG_DENSITY_LAPLACE: return 0.5;
    case QG_DENSITY_UNIFORM: return 0.75;
    default: return 0;
    }
}

qg_operand_error qg_theory_operand(qg_density density, qg_noise noise) {
    double mean = sqrt(qg_theory_coherence(density) * noise.signal);
    if (!(mean > 0))
        return (qg_operand_error){0, 0, 0};
    return (qg_operand_error){noise.noise / noise.signal, noise.cross / noise.signal,
                              noise.drift / mean};
}

double qg_theory_product_noise(qg_operand_error a, qg_operand_error b, double mean_a, double mean_b,
                               double k) {
    double incoherent = 1 - 2 * (1 + a.shrinkage) * (1 + b.shrinkage) +
                        (1 + 2 * a.shrinkage + a.noise) * (1 + 2 * b.shrinkage + b.noise);
    double bias = (1 + a.bias) * (1 + b.bias) - 1;
    double pairs = (k - 1) * mean_a * mean_b; // products of different elements, over squares of one
    return (incoherent + pairs * bias * bias) / (1 + pairs);
}

// -------------------------------------------------------------------------------------------- sums

// The significand in [1, 2).
static double significand_of(double x) {
    int exponent;
    return 2 * frexp(fabs(x), &exponent);
}

double qg_theory_sum_error(double u, double k) { return u * sqrt(k / 2 / (8 * LN_2)); }

double qg_theory_sum_error_positive(double u, double k, double sum) {
    double f = significand_of(sum);
    return u * sqrt(k * (4 * f - 24.0 / 7) / (12 * f * f * f));
}

double qg_theory_truncation_bias(double u, double k, double sum) {
    double f = significand_of(sum);
    return -u * k * (f - 2.0 / 3) / (f * f);
}

double qg_theory_round_down_bias(double u, double k) { return -u * k / (3 * LN_2); }
