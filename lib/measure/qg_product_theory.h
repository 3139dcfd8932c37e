// Theory of products: what the errors of two operands make of the error of A B^T, and what rounding
// in an accumulator adds to it. Closed forms; all errors are relative, u is the unit roundoff of
// the accumulator (2^-24 of binary32, 2^-8 of bfloat16) and k the length of the sums.
#ifndef QG_PRODUCT_THEORY_H
#define QG_PRODUCT_THEORY_H

#include <qg_data.h>
#include <qg_theory.h>

QG_EXTERN_C_BEGIN

// An operand as its product sees it.
typedef struct qg_operand_error {
    double noise;     // E[(x - q)^2] / E[x^2]
    double shrinkage; // E[x (q - x)] / E[x^2]
    double bias;      // E[|q| - |x|] / E|x|
} qg_operand_error;

// Of a quantizer's noise on a law. The zero error for an unknown density.
qg_operand_error qg_theory_operand(qg_density density, qg_noise noise);

// E[x]^2 / E[x^2] of the magnitudes of a law: 2/pi normal, 1/2 Laplace, 3/4 uniform; 0 otherwise.
double qg_theory_coherence(qg_density density);

// Noise over signal of the exact product: independent operands of independent elements with
// mean_a, mean_b = E[x]^2 / E[x^2], each 0 for symmetric signs. Then the error is the same for
// every k; with both means positive it falls with k until only the bias is left,
// (1 + bias_a) (1 + bias_b) - 1.
double qg_theory_product_noise(qg_operand_error a, qg_operand_error b, double mean_a, double mean_b,
                               double k);

// Sums of k products in order, each addition rounded to nearest: the root mean square error over
// the root mean square sum. Roundings are independent and the significand of the running sum is
// spread as 1/f over [1, 2): exact up to 5 % for single binades. Terms of mean zero:
// 0.4247 u sqrt(k / 2).
double qg_theory_sum_error(double u, double k);
// Positive terms: the running sum grows evenly to `sum`, whose significand f decides:
// u sqrt(k (4 f - 24/7) / (12 f^3)), valid while terms exceed half an ulp of the sum.
double qg_theory_sum_error_positive(double u, double k, double sum);

// Mean error over the mean magnitude of the sum, of additions rounded toward zero or down.
// Positive terms (both modes): each loses half an ulp, -u k (f - 2/3) / f^2, f of `sum` as above.
double qg_theory_truncation_bias(double u, double k, double sum);
// Terms of mean zero, rounded down: -0.4809 u k. Terms of no more bits than the sum keeps lose less
// at first: 3 % less at k = 1024.
double qg_theory_round_down_bias(double u, double k);

QG_EXTERN_C_END

#endif
