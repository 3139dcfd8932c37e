// See run_elementary_internal.h. The normal distribution is that of qg_elementary.h, but without a
// series or a division for each of many terms: gelu visits every activation of a model.
#include "run_elementary_internal.h"

#include <elementary_internal.h>

double run_tanh(float x) {
    double y = x, z = y * y;
    // Where 1 - 2 / (e^2x + 1) would cancel: Taylor, the next term is below 2^-53 of the sum.
    if (z < 0x1p-12)
        return y * (1 + z * (-1.0 / 3 + z * (2.0 / 15 + z * (-17.0 / 315))));
    double t = 1 - 2 / (exp_inline(2 * (y < 0 ? -y : y)) + 1);
    return y < 0 ? -t : t;
}

// ---------------------------------------------------------------------------- normal distribution

static const double SQRT_HALF = 0x1.6a09e667f3bcdp-1, DENSITY_AT_0 = 0x1.9884533d43651p-2;

// erf and e^(z^2) erfc: Cody, Rational Chebyshev approximations for the error function, Mathematics
// of Computation 23 (1969), to 1e-18 for the exact quotients.

// |z| <= 0.46875
static double central_erf(double z) {
    double s = z * z;
    double n = 1.85777706184603153e-1 * s, d = s;
    n = (n + 3.16112374387056560e+0) * s, d = (d + 2.36012909523441209e+1) * s;
    n = (n + 1.13864154151050156e+2) * s, d = (d + 2.44024637934444173e+2) * s;
    n = (n + 3.77485237685302021e+2) * s, d = (d + 1.28261652607737228e+3) * s;
    return z * (n + 3.20937758913846947e+3) / (d + 2.84423683343917062e+3);
}

// 0.46875 <= z <= 4
static double scaled_erfc(double z) {
    double n = 2.15311535474403846e-8 * z, d = z;
    n = (n + 5.64188496988670089e-1) * z, d = (d + 1.57449261107098347e+1) * z;
    n = (n + 8.88314979438837594e+0) * z, d = (d + 1.17693950891312499e+2) * z;
    n = (n + 6.61191906371416295e+1) * z, d = (d + 5.37181101862009858e+2) * z;
    n = (n + 2.98635138197400131e+2) * z, d = (d + 1.62138957456669019e+3) * z;
    n = (n + 8.81952221241769090e+2) * z, d = (d + 3.29079923573345963e+3) * z;
    n = (n + 1.71204761263407058e+3) * z, d = (d + 4.36261909014324716e+3) * z;
    n = (n + 2.05107837782607147e+3) * z, d = (d + 3.43936767414372164e+3) * z;
    return (n + 1.23033935479799725e+3) / (d + 1.23033935480374942e+3);
}

// z >= 4
static double scaled_erfc_far(double z) {
    double s = 1 / (z * z);
    double n = 1.63153871373020978e-2 * s, d = s;
    n = (n + 3.05326634961232344e-1) * s, d = (d + 2.56852019228982242e+0) * s;
    n = (n + 3.60344899949804439e-1) * s, d = (d + 1.87295284992346725e+0) * s;
    n = (n + 1.25781726111229246e-1) * s, d = (d + 5.27905102951428412e-1) * s;
    n = (n + 1.60837851487422766e-2) * s, d = (d + 6.05183413124413191e-2) * s;
    double r = s * (n + 6.58749161529837803e-4) / (d + 2.33520497626869185e-3);
    return (2 * SQRT_HALF * DENSITY_AT_0 - r) / z;
}

// P(Z <= x), and e^(-x^2 / 2), of which the square of a binary32 is exact.
static double distribution(double x, double *power) {
    double z = SQRT_HALF * (x < 0 ? -x : x);
    *power = exp_inline(-0.5 * x * x);
    if (z <= 0.46875)
        return 0.5 + 0.5 * central_erf(SQRT_HALF * x);
    double tail = 0.5 * *power * (z <= 4 ? scaled_erfc(z) : scaled_erfc_far(z));
    return x < 0 ? tail : 1 - tail;
}

// -------------------------------------------------------------------------------------------- gelu

// Beyond, P(Z <= x) or 1 - it is below all that a binary32 result tells.
static const double GELU_END = 16;

double run_gelu(float x) {
    double power;
    if (x < -GELU_END)
        return -0.0;
    return x > GELU_END ? x : x * distribution(x, &power);
}

double run_gelu_slope(float x) {
    double power;
    if (x < -GELU_END)
        return -0.0;
    if (x > GELU_END)
        return 1;
    double p = distribution(x, &power);
    return p + x * (DENSITY_AT_0 * power);
}

static const double SQRT_2_OVER_PI = 0x1.9884533d43651p-1, CUBIC = 0.044715;

double run_gelu_tanh(float x) {
    double y = x, u = SQRT_2_OVER_PI * (y + CUBIC * y * y * y);
    return x < -GELU_END ? -0.0 : y / (1 + exp_inline(-2 * u));
}

double run_gelu_tanh_slope(float x) {
    double y = x, u = SQRT_2_OVER_PI * (y + CUBIC * y * y * y);
    double du = SQRT_2_OVER_PI * (1 + 3 * CUBIC * y * y);
    if (x < -GELU_END)
        return -0.0;
    if (x > GELU_END)
        return 1;
    double e = exp_inline(-2 * u), s = 1 / (1 + e);
    return s + 2 * y * du * s * (e * s);
}
