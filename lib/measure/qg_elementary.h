// exp, log and the normal distribution from integers and basic IEEE operations (+ - * / sqrt).
// No libm result reaches an input or a metric: these give the same bits on every machine, compiler
// and libm. Accurate to a few ulp of binary64, not correctly rounded; the bounds below are those
// that tests/measure/test_elementary.c holds. Requires round-to-nearest and no contraction.
#ifndef QG_ELEMENTARY_H
#define QG_ELEMENTARY_H

#include <qg_hd.h>

QG_EXTERN_C_BEGIN

// e^x; 0 below -745.2, infinity above 709.8. Relative error below 2^-52 for normal results.
double qg_exp(double x);

// The natural logarithm of x > 0; -infinity at 0, NaN below. Error below 1 ulp.
double qg_log(double x);

// log(1 + x) for x > -1, without losing the digits of a small x. Relative error below 2^-51.
double qg_log1p(double x);

// The decimal logarithm of x > 0, as qg_log; exact at the powers of ten that binary64 holds.
double qg_log10(double x);

// The z with P(Z <= z) = p for a standard normal Z; -infinity at 0, infinity at 1, NaN outside.
// Relative error below 1e-15. Source: Wichura, algorithm AS 241 (PPND16), Applied Statistics 37
// (1988).
double qg_normal_quantile(double p);

// The standard normal density (relative error below 1e-15) and distribution function (below 1e-14
// in the lower tail down to z = -37, where the result leaves the normal range).
double qg_normal_density(double z);
double qg_normal_cdf(double z);

QG_EXTERN_C_END

#endif
