// Closed forms: what papers say of a quantizer's noise without integrating, and the constant of a
// float with range to spare. Approximations, to be drawn beside what is measured (qg_theory.h
// integrates); the arithmetic of their crossovers is exact to binary64.
// Sources: Chen et al., "INT v.s. FP" (arXiv 2510.25602); Rouhani et al. (arXiv 2302.08007).
#ifndef QG_CLOSED_FORMS_H
#define QG_CLOSED_FORMS_H

#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// Noise/signal, in dB of QSNR, of a float with m mantissa bits that neither overflows nor
// underflows, rounded to nearest even, averaged over one octave of the scale: whatever the law,
//   1/ln 2 * the sum over the cells of a binade of the integral of (x - q)^2 x^-3 dx.
// 31.5363 dB for m = 3. NaN for m < 0 or m > 23.
double qg_closed_ample_range_db(int mbits);

// A block format of "INT v.s. FP".
typedef struct qg_closed_format {
    int int_bits; // of an integer: its width, sign included; 0: a float
    int mbits;    // of a float
    int bias;
    double largest;
    // rho: what a scale is too large by; 1: nothing. In the paper 1.5 for power-of-two scales; for
    // UE4M3 scales 1 in its text and 1.05 in the script that draws its curves.
    double overhead;
    int64_t group; // g with UE4M3 scales, exact for the largest element; 0: power-of-two scales
} qg_closed_format;

// The QSNR in dB of blocks whose crest factor (largest magnitude over rms) is kappa:
//   integers  4.78 + 6.02 b - 20 log10(rho kappa), with UE4M3 scales + 10 log10(g / (g - 1))
//   floats    -10 log10(alpha (w - kappa^2 / g) + beta (rho kappa)^2 p), without kappa^2 / g for
//             power-of-two scales; alpha = 4^-M / 24, beta = 2^(2 (1 - B - M)) / (12 F^2),
//             p = P(|z| < T), w = E[z^2; |z| >= T], T = rho kappa 2^(1 - B) / F, z standard normal
// NaN where it is none: kappa < 1, or kappa^2 / g beyond w.
double qg_closed_qsnr_db(const qg_closed_format *format, double kappa);

// The crest factor between low and high where a and b are equal, one of them better on either side.
// QG_ERROR_ARGUMENT where they do not cross there, or a form is no number at an end.
qg_status qg_closed_crossover(const qg_closed_format *a, const qg_closed_format *b, double low,
                              double high, double *kappa);

// The lower bound on the QSNR of vectors of n values whose k1 share an exponent and whose k2 share
// a shift of `shift_bits` bits, sign and m magnitude bits each (0 shift bits: k2 is not read):
//   6.02 m + 10 log10(2^(2 b) / (min(n, k1) + (2^(2 b) - 1) k2)),  b = 2^shift_bits - 1
double qg_closed_shared_exponent_bound_db(int magnitude_bits, int shift_bits, int64_t n, int64_t k1,
                                          int64_t k2);

QG_EXTERN_C_END

#endif
