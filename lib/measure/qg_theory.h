// Theory: the noise of a quantizer by numerical integration, independent of the quantizer itself.
//
// A quantizer is given by the sorted magnitudes it can produce; values between two go to the nearer
// (a density gives ties no weight), values beyond the last to the last. (x - q)^2 is integrated
// against the density over each cell; a block format additionally over the density of the block
// maximum (an order statistic), from which the scale follows. Accuracy: 1e-5 dB of QSNR.
// The density is the whole one; data from 32-bit words end at 6.34 sigma (normal) or 15.7 sigma
// (Laplace), which changes no result within that accuracy.
#ifndef QG_THEORY_H
#define QG_THEORY_H

#include <qg_data.h>
#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// The non-negative magnitudes of an element format, strictly ascending, first 0: (count) values.
typedef struct qg_grid {
    const double *value;
    int64_t count;
} qg_grid;

// Per element; F is the last value of the grid, X the scale, q the dequantized value.
typedef struct qg_noise {
    double signal; // E[x^2]
    double noise;  // E[(x - q)^2]
    double cross;  // E[x (q - x)]: shrinkage is cross / signal
    double below;  // P(x != 0 and q = 0)
    double above;  // P(|x| > F X)
    double drift;  // E[|q| - |x|]: of positive data, the bias
} qg_noise;

// 10 log10(signal / noise); infinity without noise.
double qg_noise_qsnr_db(qg_noise noise);

// Per tensor: every value is divided by the given scale. sigma > 0, scale > 0.
// QG_ERROR_ARGUMENT for an unknown density, or sigma, scale or grid out of range.
qg_status qg_theory_tensor(qg_density density, double sigma, qg_grid grid, double scale,
                           qg_noise *out);

// Per block of g >= 1 independent values: the scale is scale_of(context, amax), amax > 0.
// scale_of may be piecewise constant with at most 32 steps per octave, found by bisection (powers
// of two, ue4m3; 0 makes every q zero), or smooth to within a relative 2^-22 (amax/F in binary32).
// QG_ERROR_ARGUMENT as above, or when it returns a negative or non-finite scale.
qg_status qg_theory_block(qg_density density, double sigma, qg_grid grid, int64_t g,
                          double (*scale_of)(void *context, double amax), void *context,
                          qg_noise *out);

// The same per element of a block of g whose largest magnitude is known to be amax, quantized at
// one scale >= 0; signal is that of such a block. QG_ERROR_ARGUMENT as above.
qg_status qg_theory_block_given(qg_density density, double sigma, qg_grid grid, int64_t g,
                                double amax, double scale, qg_noise *out);

// How much noise/signal varies between blocks because their maxima do: the variance of a block's
// noise over the mean noise less its signal over the mean signal. To about 10 %.
qg_status qg_theory_block_variance(qg_density density, double sigma, qg_grid grid, int64_t g,
                                   double (*scale_of)(void *context, double amax), void *context,
                                   double *out);

QG_EXTERN_C_END

#endif
