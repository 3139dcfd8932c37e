// SiLU(gate) times up in a fixed sequence of IEEE operations, so that every machine gives the same
// bytes: the activation of a gated feed-forward layer before it is quantized.
// Binary32 additions, multiplications and one division, each rounded to nearest; no libm, no fused
// operation; subnormals are kept. Rounding points: Metrale's fused kernel (spec/seed-systems.md
// B.1); the exponential is our own. C and CUDA. Reproducible to the bit; the errors stated below are
// measured over all inputs by test_silu_exhaustive.c.
#ifndef QG_SILU_H
#define QG_SILU_H

#include <qg_input.h>

// exp(x), within 0.7185 ulp (0.81 % of the results are not the nearest number). A subnormal result
// is rounded twice, to 24 bits and to its own precision: within 0.7791 ulp. Infinity and 0 begin
// where they do for the correctly rounded exp: above 0x1.62e42ep+6 and below -0x1.9fe368p+6. Both
// zeros give 1; NaN is returned as it came.
//
// x = n ln 2 + r with |r| < 0.35, exp(x) = 2^n exp(r). ln 2 = high + low, high of 15 bits, so that
// n * high and x - n * high are exact. exp(r) = 1 + r + r^2 q(r), q of minimax coefficients, with
// the rounding error of 1 + head added back.
QG_HD float qg_exponential(float x) {
    if (!(x <= 0x1.62e42ep+6f))
        return x != x ? x : qg_float_of_bits(0x7f800000u);
    if (x < -104.0f)
        return 0.0f;
    float shifted = x * 0x1.715476p+0f + 0x1.8p+23f, n = shifted - 0x1.8p+23f;
    float head = x - n * 0x1.62e4p-1f, tail = n * 0x1.7f7d1cp-20f, r = head - tail;
    float q = 0x1.6a2318p-10f;
    q = q * r + 0x1.123a8ep-7f;
    q = q * r + 0x1.5558f6p-5f;
    q = q * r + 0x1.55549p-3f;
    q = q * r + 0x1.fffffcp-2f;
    float sum = 1.0f + head, lost = head - (sum - 1.0f);
    float p = sum + (lost + (r * r * q - tail));
    int e = (int)n, half = e / 2; // -150 .. 128: one power of two does not reach that far
    return p * qg_float_pow2(half) * qg_float_pow2(e - half);
}

// gate and up are rounded to bf16 first; the result is the bf16 that is quantized:
// bf16(fl(fl(g * fl(1 / fl(1 + exp(-g)))) * u)). NaN is 7fc0.
//
// What follows from the operations: SiLU(-Inf) = -Inf * 0 is NaN, SiLU(+Inf) is +Inf, SiLU(-0) is
// -0. With u = 1 it is within 0.5000001 ulp of bf16 for every g from -88.5 up. Below, the exponential
// overflows and SiLU is -0, where the true value is a number of at most 1.99e-37.
QG_HD float qg_silu_times_up(float gate, float up) {
    float g = qg_float_of_bf16(qg_bf16_of_float(gate)), u = qg_float_of_bf16(qg_bf16_of_float(up));
    float sigmoid = 1.0f / (1.0f + qg_exponential(-g));
    return qg_float_of_bf16(qg_bf16_of_float(g * sigmoid * u));
}

#endif
