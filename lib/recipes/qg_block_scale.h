// From the elements of a block to its scale, from an element to its code, and back: the functions
// that the emulator, the CPU variants and the kernels call, so that no policy is written twice.
// A reduction to the amax (qg_amax_step), the scale of the block (qg_block_scale_of), the scaled
// value that is encoded (qg_scaled_value, qg_element_code), the value that is read back
// (qg_scale_value, qg_dequantized). Knows nothing of threads or of how codes are stored.
// C and CUDA. Exact: every operation below is one IEEE operation, in the order written.
// Sources: those of qg_scale_rule.h; what an edge gives: the recipe table.
#ifndef QG_BLOCK_SCALE_H
#define QG_BLOCK_SCALE_H

#include <qg_philox.h>
#include <qg_scale_rule.h>

// ------------------------------------------------------------------------------------------ amax

// One step of an amax reduction that starts at +0. Magnitudes are compared as bits, where NaN
// exceeds infinity and infinity every number: the result depends on no order.
QG_HD float qg_amax_step(int policy, float amax, float x) {
    uint32_t counted = policy == QG_AMAX_PROPAGATES_NAN ? 0x7fffffffu
                       : policy == QG_AMAX_IGNORES_NAN  ? 0x7f800000u
                                                        : 0x7f7fffffu;
    uint32_t magnitude = qg_bits_of_float(x) & 0x7fffffffu, largest = qg_bits_of_float(amax);
    return magnitude > largest && magnitude <= counted ? qg_float_of_bits(magnitude) : amax;
}

// ---------------------------------------------------------------------------------------- scaler

// What does not change from block to block.
typedef struct qg_scaler {
    qg_recipe recipe;
    qg_element element;
    qg_format scale_format;
    float huge;        // replaces an infinite F/amax
    float tensor;      // what a two-level tensor carries (qg_two_level_tensor); 1 for other rules
    float s_enc;       // Transformer Engine's encode scale of the tensor; 1 for other rules
    float history;     // `delayed`: the amax of the history
    float least_amax;  // eps on amax, 0 if there is none
    float least_scale; // eps on X, 0 if there is none
} qg_scaler;

// The scaler of a given `tensor`, as a two-level tensor carries it; other rules do not read it.
QG_HD qg_scaler qg_scaler_of_tensor(const qg_recipe *recipe, qg_format input_type, float tensor) {
    qg_scaler q;
    int rule = recipe->rule;
    q.recipe = *recipe;
    q.element = qg_element_of(recipe->element);
    q.scale_format = qg_rule_scale_format(rule);
    q.huge = recipe->huge_inverse == QG_HUGE_INVERSE_INPUT_MAX ? qg_input_max(input_type)
                                                               : qg_float_max_finite();
    q.tensor = qg_rule_has_tensor_scale(rule) ? tensor : 1.0f;
    q.s_enc = rule == QG_RULE_TWO_LEVEL || rule == QG_RULE_FOUR_OVER_SIX
                  ? qg_two_level_encode_scale(rule, &q.element, q.tensor)
                  : 1.0f;
    q.history = 0.0f;
    q.least_amax = recipe->eps_on == QG_EPS_ON_AMAX ? recipe->eps : 0.0f;
    q.least_scale = recipe->eps_on == QG_EPS_ON_SCALE ? recipe->eps : 0.0f;
    return q;
}

// `amax`: two-level rules: the tensor's; `delayed`: the history's, by qg_amax_step with
// QG_AMAX_PROPAGATES_NAN; other rules do not read it.
QG_HD qg_scaler qg_scaler_of(const qg_recipe *recipe, qg_format input_type, float amax) {
    qg_element element = qg_element_of(recipe->element);
    float tensor = qg_rule_has_tensor_scale(recipe->rule)
                       ? qg_two_level_tensor(recipe->rule, &element, amax)
                       : 1.0f;
    qg_scaler q = qg_scaler_of_tensor(recipe, input_type, tensor);
    q.history = amax;
    return q;
}

// ----------------------------------------------------------------------------------------- scale

// How a scaled value v comes from x.
enum {
    QG_APPLY_EXACTLY,     // v = x * factor in binary64: the operand is a power of two
    QG_APPLY_DIVIDING,    // v = fl(x / operand)
    QG_APPLY_MULTIPLYING, // v = fl(x * operand)
    QG_APPLY_ZERO,        // X = 0: finite x gives the zero of its sign
    QG_APPLY_NAN          // NaN scale: every v is NaN
};

typedef struct qg_block_scale {
    uint32_t bits; // as stored, in the rule's scale format
    float x;       // X: dequantized values are code * X
    uint8_t apply;
    float operand;
    double factor;
} qg_block_scale;

QG_HD int qg_float_is_power_of_two(float x) {
    return x > 0.0f && qg_float_is_finite(x) && qg_float_fraction(x) == 0;
}

// X in any format, elements divided by it.
QG_HD qg_block_scale qg_scale_dividing(uint32_t bits, float x) {
    qg_block_scale s;
    s.bits = bits;
    s.x = x;
    s.operand = x;
    s.factor = 0.0;
    if (qg_float_is_nan(x)) {
        s.apply = QG_APPLY_NAN;
    } else if (x == 0.0f) {
        s.apply = QG_APPLY_ZERO;
    } else if (qg_float_is_power_of_two(x)) {
        s.apply = QG_APPLY_EXACTLY;
        s.factor = qg_double_pow2(-qg_float_exponent(x));
    } else {
        s.apply = QG_APPLY_DIVIDING;
    }
    return s;
}

// X in any format, elements multiplied by `multiplier`.
QG_HD qg_block_scale qg_scale_multiplying(uint32_t bits, float x, float multiplier) {
    qg_block_scale s;
    s.bits = bits;
    s.x = x;
    s.operand = multiplier;
    s.factor = (double)multiplier;
    s.apply = qg_float_is_nan(x)                     ? QG_APPLY_NAN
              : qg_float_is_power_of_two(multiplier) ? QG_APPLY_EXACTLY
                                                     : QG_APPLY_MULTIPLYING;
    return s;
}

// The scale whose stored bits are given, under the recipe's rule.
QG_HD qg_block_scale qg_scale_of_bits(const qg_scaler *q, uint32_t bits) {
    int rule = q->recipe.rule;
    if (q->scale_format == QG_FORMAT_E8M0)
        return qg_scale_dividing(bits, bits >= 255 ? qg_float_of_bits(0x7fffffffu)
                                                   : qg_float_pow2(qg_exponent_of_code(bits)));
    if (q->scale_format == QG_FORMAT_UE4M3) {
        float x = qg_decode_ue4m3(bits);
        if (rule == QG_RULE_AMAX_UE4M3)
            return qg_scale_dividing(bits, x);
        float decode = qg_two_level_decode_scale(rule, &q->element, q->tensor, bits);
        float factor = rule == QG_RULE_TWO_LEVEL_TORCHAO
                           ? qg_two_level_torchao_factor(q->tensor, bits)
                           : qg_two_level_factor(q->s_enc, bits);
        return qg_scale_multiplying(bits, qg_float_is_nan(x) ? x : decode, factor);
    }
    float x = qg_float_of_bits(bits);
    if (rule == QG_RULE_AMAX_RCP || rule == QG_RULE_AMAX_MUL || rule == QG_RULE_DELAYED)
        return qg_scale_multiplying(bits, x, qg_finite_inverse(x));
    return qg_scale_dividing(bits, x);
}

// The stored bits of an edge.
QG_HD uint32_t qg_edge_bits(qg_format scale_format, int edge) {
    qg_format_info info = qg_format_describe(scale_format);
    switch (edge) {
    case QG_EDGE_ONE:
        return scale_format == QG_FORMAT_FP32    ? qg_bits_of_float(1.0f)
               : scale_format == QG_FORMAT_UE4M3 ? (uint32_t)qg_encode_ue4m3(1.0f)
                                                 : (uint32_t)qg_encode_e8m0(1.0f, QG_ROUND_RNE);
    case QG_EDGE_LARGEST: return (uint32_t)info.max_code;
    case QG_EDGE_NAN: return (uint32_t)qg_encode_nan_code(&info, 0);
    default: return 0; // QG_EDGE_SMALLEST
    }
}

// --------------------------------------------------------------------------------- binary32 rules

// X = fl(amax/F), for amax <= infinity.
QG_HD float qg_scale_of_amax(const qg_scaler *q, float amax) {
    float x = qg_float_is_inf(amax) ? amax : qg_scale_amax(&q->element, amax);
    return x < q->least_scale ? q->least_scale : x;
}

// s = fl(f/amax) and X = fl(1/s), for amax <= infinity.
QG_HD qg_block_scale qg_scale_of_inverse(const qg_scaler *q, float f, float amax) {
    if (qg_float_is_inf(amax))
        return qg_scale_of_bits(q, qg_bits_of_float(amax));
    float s = qg_inverse_amax(f, amax, q->huge);
    float x = qg_finite_inverse(s);
    if (x < q->least_scale)
        return qg_scale_of_bits(q, qg_bits_of_float(q->least_scale));
    return qg_scale_multiplying(qg_bits_of_float(x), x, s);
}

// ceil(log2 x) of a finite x > 0.
QG_HD int qg_float_exponent_up(float x) {
    return qg_float_exponent(x) + (qg_float_fraction(x) != 0);
}

// X = 2^e, e as `rceil`, for amax <= infinity. Where F/amax is infinite, Transformer Engine clears
// the mantissa of what replaces it: that power of two is 1/X.
QG_HD float qg_scale_of_amax_pow2(const qg_scaler *q, float amax) {
    if (qg_float_is_inf(amax))
        return amax;
    int e = qg_float_is_inf(q->element.max / amax)
                ? -qg_float_exponent(q->huge)
                : qg_rule_exponent(QG_RULE_AMAX_POW2, &q->element, amax);
    if (q->least_scale > 0.0f && e < qg_float_exponent_up(q->least_scale))
        e = qg_float_exponent_up(q->least_scale);
    return qg_float_pow2(e);
}

// s stays 1 while the history holds no positive finite amax.
QG_HD qg_block_scale qg_scale_delayed(const qg_scaler *q) {
    if (!(q->history > 0.0f) || !qg_float_is_finite(q->history))
        return qg_scale_of_bits(q, qg_bits_of_float(1.0f));
    float f = (float)((double)q->element.max * qg_double_pow2(-q->recipe.margin));
    return qg_scale_of_inverse(q, f, q->history);
}

QG_HD qg_block_scale qg_scale_fp32(const qg_scaler *q, float amax) {
    switch (q->recipe.rule) {
    case QG_RULE_AMAX_MUL: return qg_scale_of_inverse(q, q->element.max, amax);
    case QG_RULE_AMAX_POW2:
        return qg_scale_of_bits(q, qg_bits_of_float(qg_scale_of_amax_pow2(q, amax)));
    default: return qg_scale_of_bits(q, qg_bits_of_float(qg_scale_of_amax(q, amax)));
    }
}

// ------------------------------------------------------------- rules that look at every element

// The elements of a block, where they lie in the tensor.
typedef struct qg_block_elements {
    const float *x;        // the first one; rows are `stride` elements apart
    int64_t rows, columns; // of real elements
    int64_t stride;
    uint64_t index; // of the first one in the tensor: keys its random word
    uint64_t seed;
    uint32_t stream;
} qg_block_elements;

// The random word of an element; 0 where rounding needs none.
QG_HD uint32_t qg_element_word(const qg_scaler *q, const qg_block_elements *b, int64_t row,
                               int64_t column) {
    if (!qg_rounding_is_stochastic(q->recipe.conversion.rounding))
        return 0;
    return qg_philox_word(b->seed, b->stream, b->index + (uint64_t)(row * b->stride + column));
}

// The squared error of the block's finite elements at X = 2^exponent, saturating RNE, in binary64.
QG_HD double qg_best_error(const qg_scaler *q, const qg_block_elements *b, int exponent) {
    qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    double x = qg_double_pow2(exponent), inverse = qg_double_pow2(-exponent), sum = 0.0;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->columns; j++) {
            float value = b->x[i * b->stride + j];
            if (!qg_float_is_finite(value))
                continue;
            uint64_t code = qg_encode(&q->element.info, value * inverse, &nearest, 0);
            double error = qg_decode(&q->element.info, code) * x - value;
            sum += error * error;
        }
    return sum;
}

// The exponent of least error, the smaller one of equals, for a finite amax > 0.
//
// Why this finds the minimum over all exponents. (1) Upward: let e0 be the smallest exponent with
// amax <= F 2^e0. The values of a format, doubled, are again values of the format as long as they
// do not exceed F; so within +-F 2^e0 the grid of a larger exponent is part of the grid of e0, each
// element lies at least as near to the latter, and the error at e0 is no larger. (2) Downward: at
// e < e0 the element of magnitude amax alone contributes (amax - M 2^e)^2, M the largest magnitude,
// which grows as e falls: once it exceeds the least error found, so does every further error.
// Both hold for the rounded sums: rounding is monotone, and the terms come in the same order.
// (3) When e0 is clamped from below, only larger exponents are left; from above, only smaller.
QG_HD int qg_best_exponent(const qg_scaler *q, const qg_block_elements *b, float amax, int lowest) {
    const qg_format_info *info = &q->element.info;
    int highest = qg_rule_exponent(QG_RULE_RCEIL, &q->element, amax);
    if (highest < lowest)
        highest = lowest;
    double largest = q->element.max;
    if (info->min_code > info->max_code) // two's complement with its lowest code
        largest = (double)info->min_code * qg_double_pow2(-info->bias);
    int best = highest;
    double least = qg_best_error(q, b, highest);
    for (int e = highest - 1; e >= lowest; e--) {
        double clipped = amax - largest * qg_double_pow2(e);
        if (clipped > 0.0 && clipped * clipped > least)
            break;
        double error = qg_best_error(q, b, e);
        if (error <= least) {
            least = error;
            best = e;
        }
    }
    return best;
}

// ------------------------------------------------------------------------------- elements to codes

// v, as the encoder sees it.
QG_HD double qg_scaled_value(const qg_block_scale *s, float x) {
    switch (s->apply) {
    case QG_APPLY_EXACTLY: return (double)x * s->factor;
    case QG_APPLY_DIVIDING: return (double)(x / s->operand);
    case QG_APPLY_MULTIPLYING: return (double)(x * s->operand);
    case QG_APPLY_ZERO: return qg_float_is_finite(x) ? (double)x * 0.0 : (double)x;
    default: return qg_decode_nan();
    }
}

// The code of a scaled value. In a block with a NaN scale every code is what NaN encodes to; the
// recipe's policy is for NaN in other blocks.
QG_HD uint64_t qg_element_code(const qg_scaler *q, const qg_block_scale *s, double v,
                               uint32_t word) {
    if (v != v && s->apply != QG_APPLY_NAN) {
        if (q->recipe.nan_element == QG_NAN_ELEMENT_MAX)
            return qg_encode_max(&q->element.info, 0);
        if (q->recipe.nan_element == QG_NAN_ELEMENT_ZERO)
            return 0;
    }
    return qg_encode(&q->element.info, v, &q->recipe.conversion, word);
}

// -------------------------------------------------------------------------------- E8M0 and UE4M3

// The exponent of a block with a finite amax, the recipe's eps applied. Under `best` a block below
// an eps on its amax gets the exponent at which that eps does not clip.
QG_HD int qg_scale_exponent(const qg_scaler *q, float amax, const qg_block_elements *b) {
    int lowest = -127, rule = q->recipe.rule;
    if (q->least_scale > 0.0f)
        lowest = qg_clamp_exponent(qg_float_exponent_up(q->least_scale));
    if (rule == QG_RULE_BEST) {
        if (amax > 0.0f && amax >= q->least_amax)
            return qg_best_exponent(q, b, amax, lowest);
        rule = QG_RULE_RCEIL;
    }
    if (amax < q->least_amax)
        amax = q->least_amax;
    if (amax == 0.0f)
        return lowest;
    int e = qg_rule_exponent(rule, &q->element, amax);
    return e < lowest ? lowest : e;
}

// `four_over_six`: the squared error that Transformer Engine compares, in binary32, element after
// element: q * sb * amax_tensor / (6 * 256) - x, each operation rounded. NaN elements are skipped.
QG_HD float qg_four_over_six_error(const qg_scaler *q, const qg_block_elements *b,
                                   const qg_block_scale *s) {
    float full = q->element.max * qg_two_level_bound(QG_RULE_FOUR_OVER_SIX);
    float block = qg_decode_ue4m3(s->bits), sum = 0.0f;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t j = 0; j < b->columns; j++) {
            float x = b->x[i * b->stride + j];
            if (qg_float_is_nan(x))
                continue;
            uint64_t code =
                qg_element_code(q, s, qg_scaled_value(s, x), qg_element_word(q, b, i, j));
            float error = (float)qg_decode(&q->element.info, code) * block * q->tensor / full - x;
            sum += error * error;
        }
    return sum;
}

// Lower bounds are applied to the code: encoding is monotone.
QG_HD uint32_t qg_ue4m3_at_least(const qg_scaler *q, uint64_t code) {
    float least =
        q->recipe.block_scale_min > q->least_scale ? q->recipe.block_scale_min : q->least_scale;
    uint64_t bound = least > 0.0f ? qg_encode_ue4m3(least) : 0;
    return (uint32_t)(code < bound ? bound : code);
}

QG_HD qg_block_scale qg_scale_four_over_six(const qg_scaler *q, float amax,
                                            const qg_block_elements *b) {
    const qg_element *e = &q->element;
    uint64_t code6 = qg_four_over_six_code(e, q->s_enc, amax, 1.0f);
    uint64_t code4 = qg_four_over_six_code(e, q->s_enc, amax, 1.5f);
    qg_block_scale map6 = qg_scale_of_bits(q, qg_ue4m3_at_least(q, code6));
    qg_block_scale map4 = qg_scale_of_bits(q, qg_ue4m3_at_least(q, code4));
    int map4_is_better = qg_four_over_six_error(q, b, &map4) < qg_four_over_six_error(q, b, &map6);
    return map4_is_better ? map4 : map6;
}

QG_HD qg_block_scale qg_scale_ue4m3(const qg_scaler *q, float amax, const qg_block_elements *b) {
    const qg_element *e = &q->element;
    uint64_t code;
    switch (q->recipe.rule) {
    case QG_RULE_FOUR_OVER_SIX: return qg_scale_four_over_six(q, amax, b);
    case QG_RULE_TWO_LEVEL: code = qg_two_level_code(e, q->s_enc, amax); break;
    case QG_RULE_TWO_LEVEL_TORCHAO:
        code = qg_two_level_torchao_code(e, q->tensor, amax, q->recipe.block_scale_min);
        break;
    default: code = qg_encode_ue4m3(amax / e->max); break;
    }
    return qg_scale_of_bits(q, qg_ue4m3_at_least(q, code));
}

// ------------------------------------------------------------------------------------- the scale

// The policy for an amax: QG_EDGE_BY_RULE where the rule's formula decides.
QG_HD int qg_edge_of(const qg_recipe *recipe, float amax) {
    int edge = QG_EDGE_BY_RULE;
    if (qg_float_is_nan(amax)) {
        edge = recipe->nan_scale;
        return edge == QG_EDGE_BY_RULE ? (int)QG_EDGE_NAN : edge;
    }
    if (qg_float_is_inf(amax))
        edge = recipe->inf_scale;
    else if (amax == 0.0f)
        edge = recipe->zero_scale;
    return edge;
}

// The scale of a block. amax: of its elements, by qg_amax_step with the recipe's policy. b: its
// elements, read by the rules `best` and `four_over_six` alone. Not for pair shifts.
QG_HD qg_block_scale qg_block_scale_of(const qg_scaler *q, float amax, const qg_block_elements *b) {
    if (q->recipe.rule == QG_RULE_FIXED)
        return qg_scale_of_bits(q, qg_bits_of_float(q->recipe.fixed_scale));
    if (q->recipe.rule == QG_RULE_DELAYED)
        return qg_scale_delayed(q);
    int edge = qg_edge_of(&q->recipe, amax);
    if (edge != QG_EDGE_BY_RULE)
        return qg_scale_of_bits(q, qg_edge_bits(q->scale_format, edge));
    float bounded = amax < q->least_amax ? q->least_amax : amax;
    if (q->scale_format == QG_FORMAT_FP32)
        return qg_scale_fp32(q, bounded);
    if (q->scale_format == QG_FORMAT_UE4M3)
        return qg_scale_ue4m3(q, bounded, b);
    if (qg_float_is_inf(amax))
        return qg_scale_of_bits(q, qg_edge_bits(q->scale_format, QG_EDGE_LARGEST));
    return qg_scale_of_bits(q, (uint32_t)(qg_scale_exponent(q, amax, b) + 127));
}

// --------------------------------------------------------------------- pair shifts (MX9, MX6, ...)

// The exponent byte E + 127 of a block.
QG_HD uint32_t qg_pair_exponent_byte(const qg_scaler *q, float amax) {
    int edge = qg_edge_of(&q->recipe, amax);
    if (edge != QG_EDGE_BY_RULE)
        return qg_edge_bits(QG_FORMAT_E8M0, edge);
    if (amax == 0.0f || qg_float_is_inf(amax))
        return amax == 0.0f ? 0 : 254;
    return (uint32_t)(qg_clamp_exponent(qg_float_exponent(amax)) + 127);
}

// The shift of a pair whose larger magnitude is `amax`; 0 in a block with a NaN scale.
QG_HD uint32_t qg_pair_shift(uint32_t exponent_byte, float amax) {
    if (exponent_byte >= 255 || !qg_float_is_finite(amax))
        return 0;
    return amax == 0.0f || qg_float_exponent(amax) < qg_exponent_of_code(exponent_byte);
}

// The scale of a pair: the element format's top bit stands for 2, hence the 1.
QG_HD qg_block_scale qg_pair_scale(uint32_t exponent_byte, uint32_t shift) {
    int e = qg_exponent_of_code(exponent_byte) - (int)shift - 1;
    return qg_scale_dividing(exponent_byte | shift << 8, exponent_byte >= 255
                                                             ? qg_float_of_bits(0x7fffffffu)
                                                             : qg_float_pow2(e));
}

// --------------------------------------------------------------------------------- codes to values

// X of stored bits: what codes are multiplied by. `tensor`: what a two-level tensor carries.
QG_HD float qg_scale_value(const qg_recipe *recipe, const qg_element *e, float tensor,
                           uint32_t bits) {
    switch (qg_rule_scale_format(recipe->rule)) {
    case QG_FORMAT_E8M0:
        return bits >= 255 ? qg_float_of_bits(0x7fffffffu)
                           : qg_float_pow2(qg_exponent_of_code(bits));
    case QG_FORMAT_UE4M3:
        return qg_rule_has_tensor_scale(recipe->rule)
                   ? qg_two_level_decode_scale(recipe->rule, e, tensor, bits)
                   : qg_decode_ue4m3(bits);
    default: return qg_float_of_bits(bits);
    }
}

// binary32 RNE of the exact code value times X; NaN is canonical (7fffffff).
QG_HD float qg_dequantized(double value, float x) {
    float q = (float)(value * (double)x);
    return q == q ? q : qg_float_of_bits(0x7fffffffu);
}

// The same of a value that binary32 holds, in binary32: one product, rounded once.
QG_HD float qg_dequantized_float(float value, float x) {
    float q = value * x;
    return q == q ? q : qg_float_of_bits(0x7fffffffu);
}

#endif
