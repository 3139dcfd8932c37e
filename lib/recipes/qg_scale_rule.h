// Scale rules: from the amax of a block to its scale. One function per family; kernels and CPU call
// the same ones. Exponents come from bits. C and CUDA. Exact.
// Sources: OCP MX v1.0 6.3 (floor); torchao mx_tensor.py (ceil, even, rceil); Transformer Engine
// ptx.cuh, recipe_common.cuh, quantize_nvfp4.cuh (rceil_mul, amax_mul, two_level, four_over_six);
// cuBLAS documentation, "1D block quantization" (rceil_div).
#ifndef QG_SCALE_RULE_H
#define QG_SCALE_RULE_H

#include <qg_recipe.h>

// What the rules need of an element format.
typedef struct qg_element {
    qg_format_info info;
    float max; // F
    int emax;  // floor(log2 F)
    int mbits; // mantissa bits; of integers width - 2
} qg_element;

QG_HD qg_element qg_element_of(qg_format format) {
    qg_element e;
    e.info = qg_format_describe(format);
    e.max = (float)qg_format_max(&e.info);
    e.emax = qg_format_emax(&e.info);
    e.mbits = e.info.kind == QG_KIND_INT ? e.info.bits - 2 : e.info.mbits;
    return e;
}

QG_HD float qg_float_max_finite(void) { return qg_float_of_bits(0x7f7fffffu); }

QG_HD float qg_float_clamp(float x, float low, float high) {
    return x < low ? low : x > high ? high : x;
}

// ------------------------------------------------------------------ power-of-two (E8M0) scales

// The exponent of an E8M0 code's value, -127 .. 127.
QG_HD int qg_clamp_exponent(int exponent) {
    return exponent < -127 ? -127 : exponent > 127 ? 127 : exponent;
}

QG_HD int qg_exponent_of_code(uint64_t e8m0) { return (int)e8m0 - 127; }

QG_HD uint64_t qg_encode_e8m0(float x, int mode) {
    qg_format_info e8m0 = qg_format_describe(QG_FORMAT_E8M0);
    qg_conversion conversion = {
        {(uint8_t)mode, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    return qg_encode(&e8m0, x, &conversion, 0);
}

QG_HD int qg_exponent_floor(const qg_element *e, float amax) {
    return qg_float_exponent(amax) - e->emax;
}

QG_HD int qg_exponent_ceil(const qg_element *e, float amax) {
    return qg_float_exponent(amax) - e->emax + (qg_float_fraction(amax) != 0);
}

// Half up at the element's mantissa width, despite the name that the field gave it.
QG_HD int qg_exponent_even(const qg_element *e, float amax) {
    int carries = e->mbits < 23 && qg_float_fraction(amax) + (1u << (22 - e->mbits)) >= 1u << 23;
    return qg_float_exponent(amax) - e->emax + carries;
}

// The smallest e with amax <= F 2^e.
QG_HD int qg_exponent_rceil(const qg_element *e, float amax) {
    return qg_float_exponent(amax) - e->emax +
           (qg_float_fraction(amax) > qg_float_fraction(e->max));
}

// The scale exponent of a finite amax > 0, clamped to E8M0's range. Not for `best`, which needs the
// elements and not only their amax.
QG_HD int qg_rule_exponent(int rule, const qg_element *e, float amax) {
    switch (rule) {
    case QG_RULE_FLOOR: return qg_clamp_exponent(qg_exponent_floor(e, amax));
    case QG_RULE_CEIL: return qg_clamp_exponent(qg_exponent_ceil(e, amax));
    case QG_RULE_EVEN: return qg_clamp_exponent(qg_exponent_even(e, amax));
    case QG_RULE_AMAX_POW2:
    case QG_RULE_RCEIL: return qg_clamp_exponent(qg_exponent_rceil(e, amax));
    case QG_RULE_RCEIL_MUL:
        return qg_exponent_of_code(qg_encode_e8m0(amax * (1.0f / e->max), QG_ROUND_RTP));
    case QG_RULE_RCEIL_DIV: return qg_exponent_of_code(qg_encode_e8m0(amax / e->max, QG_ROUND_RTP));
    case QG_RULE_FLOOR_PLUS1: return qg_clamp_exponent(qg_exponent_floor(e, amax) + 1);
    case QG_RULE_NEAREST: return qg_exponent_of_code(qg_encode_e8m0(amax / e->max, QG_ROUND_RNE));
    case QG_RULE_NEAREST_UP:
        return qg_exponent_of_code(qg_encode_e8m0(amax / e->max, QG_ROUND_RNA));
    default: return 127; // no rule of exponents: a scale at which nothing survives
    }
}

// ------------------------------------------------------------------------------ binary32 scales

// X = fl(amax/F) of a finite amax >= 0, kept within the positive finite numbers.
QG_HD float qg_scale_amax(const qg_element *e, float amax) {
    return qg_float_clamp(amax / e->max, qg_float_of_bits(1), qg_float_max_finite());
}

// s = fl(f/amax) of a finite amax >= 0; `huge` replaces an infinite one.
QG_HD float qg_inverse_amax(float f, float amax, float huge) {
    float s = f / amax;
    return qg_float_is_inf(s) ? huge : s;
}

// min(fl(1/x), FLT_MAX) of x >= 0, where NaN counts as large, as in fminf.
QG_HD float qg_finite_inverse(float x) {
    float inverse = 1.0f / x;
    return inverse < qg_float_max_finite() ? inverse : qg_float_max_finite();
}

// The largest finite value of an input type.
QG_HD float qg_input_max(qg_format type) {
    qg_format_info info = qg_format_describe(type);
    return (float)qg_format_max(&info);
}

// ------------------------------------------------------------------------- two-level (UE4M3)

QG_HD uint64_t qg_encode_ue4m3(float x) {
    qg_format_info ue4m3 = qg_format_describe(QG_FORMAT_UE4M3);
    qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    return qg_encode(&ue4m3, x, &conversion, 0);
}

QG_HD float qg_decode_ue4m3(uint64_t code) {
    qg_format_info ue4m3 = qg_format_describe(QG_FORMAT_UE4M3);
    return (float)qg_decode(&ue4m3, code);
}

// The largest value that block scales are mapped to: 448, or 256 so that 1.5 times still fits.
QG_HD float qg_two_level_bound(int rule) { return rule == QG_RULE_FOUR_OVER_SIX ? 256.0f : 448.0f; }

// The binary32 that a two-level tensor carries: its amax (Transformer Engine), or its scale
// amax/(448 F) (torchao). An infinite or, for torchao, zero amax means tensor scale 1.
QG_HD float qg_two_level_tensor(int rule, const qg_element *e, float amax) {
    float full = qg_two_level_bound(rule) * e->max;
    if (qg_float_is_inf(amax))
        amax = full;
    if (rule != QG_RULE_TWO_LEVEL_TORCHAO)
        return amax;
    return amax == 0.0f ? 1.0f
                        : qg_float_clamp(amax / full, qg_float_of_bits(1), qg_float_max_finite());
}

// Transformer Engine's S_enc.
QG_HD float qg_two_level_encode_scale(int rule, const qg_element *e, float tensor_amax) {
    if (tensor_amax == 0.0f)
        return 1.0f;
    float s = qg_two_level_bound(rule) * e->max / tensor_amax;
    return s == 0.0f ? 1.0f : qg_float_is_inf(s) ? qg_float_max_finite() : s;
}

// The block scale code of a block amax under `two_level`.
QG_HD uint64_t qg_two_level_code(const qg_element *e, float s_enc, float amax) {
    return qg_encode_ue4m3(amax * (s_enc * (1.0f / e->max)));
}

// The same under `four_over_six`; `stretch` is 1 (amax maps to F) or 1.5 (amax maps to F / 1.5).
QG_HD uint64_t qg_four_over_six_code(const qg_element *e, float s_enc, float amax, float stretch) {
    float scale = stretch * (amax / e->max * s_enc);
    return qg_encode_ue4m3(scale > 448.0f ? 448.0f : scale);
}

QG_HD uint64_t qg_two_level_torchao_code(const qg_element *e, float tensor_scale, float amax,
                                         float minimum) {
    return qg_encode_ue4m3(qg_float_clamp(amax / e->max / tensor_scale, minimum, 448.0f));
}

// What elements are multiplied by: Transformer Engine's block encode factor.
QG_HD float qg_two_level_factor(float s_enc, uint64_t code) {
    return qg_finite_inverse(qg_decode_ue4m3(code) * (1.0f / s_enc));
}

// Kept finite, so that a zero stays a zero: torchao's own floors never reach that case.
QG_HD float qg_two_level_torchao_factor(float tensor_scale, uint64_t code) {
    float factor = 1.0f / tensor_scale / qg_decode_ue4m3(code);
    return factor < qg_float_max_finite() ? factor : qg_float_max_finite();
}

// What codes are multiplied by to dequantize.
QG_HD float qg_two_level_decode_scale(int rule, const qg_element *e, float tensor, uint64_t code) {
    if (rule == QG_RULE_TWO_LEVEL_TORCHAO)
        return tensor * qg_decode_ue4m3(code);
    return qg_decode_ue4m3(code) * tensor * (1.0f / (e->max * qg_two_level_bound(rule)));
}

#endif
