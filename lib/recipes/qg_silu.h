// SiLU(gate) times up in a fixed sequence of IEEE operations, so that every machine gives the same
// bytes: the activation of a gated feed-forward layer before it is quantized.
// No libm, no fused operation. Source of the rounding points: Metrale's fused kernel; the
// exponential is our own. C and CUDA. Reproducible to the bit; its error is stated below.
#ifndef QG_SILU_H
#define QG_SILU_H

#include <qg_input.h>

// exp(x) in binary32.
QG_HD float qg_exponential(float x) {
    if (!(x <= 88.7f))
        return x != x ? x : qg_float_of_bits(0x7f800000u);
    if (x < -104.0f)
        return 0.0f;
    float shifted = x * 0x1.715476p+0f + 0x1.8p+23f, n = shifted - 0x1.8p+23f;
    float r = x - n * 0x1.62e4p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    float p = 0x1.6c16c2p-10f;
    p = p * r + 0x1.111112p-7f;
    p = p * r + 0x1.555556p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0x1p-1f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int e = (int)n;
    int half = e / 2;
    return p * qg_float_pow2(half) * qg_float_pow2(e - half);
}

// gate and up are rounded to bf16 first; the result is the bf16 that is quantized:
// bf16(fl(fl(g * fl(1 / fl(1 + exp(-g)))) * u)).
QG_HD float qg_silu_times_up(float gate, float up) {
    float g = qg_float_of_bf16(qg_bf16_of_float(gate)), u = qg_float_of_bf16(qg_bf16_of_float(up));
    float sigmoid = 1.0f / (1.0f + qg_exponential(-g));
    return qg_float_of_bf16(qg_bf16_of_float(g * sigmoid * u));
}

#endif
