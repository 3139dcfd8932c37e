// tanh, gelu and its derivatives of a binary32, in binary64: a few ulp of binary64 off, so that one
// rounding to binary32 is all but always the nearest. No libm result enters. Private to graph/.
#ifndef RUN_ELEMENTARY_INTERNAL_H
#define RUN_ELEMENTARY_INTERNAL_H

// NaN gives NaN; tanh keeps the sign of 0.
double run_tanh(float x);
// Erf form: x P(Z <= x). -0 at -infinity, which is the limit, and infinity at infinity.
double run_gelu(float x);
double run_gelu_slope(float x);
// x / (1 + e^(-2u)) with u = sqrt(2/pi) (x + 0.044715 x^3): 0.5 x (1 + tanh u).
double run_gelu_tanh(float x);
double run_gelu_tanh_slope(float x);

#endif
