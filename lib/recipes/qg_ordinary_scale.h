// The scales of ordinary blocks, and the codes of their elements, in a few operations: what qg_block_scale_of gives for an amax that
// is positive, finite and far from every bound, clamp and subnormal number. Vector and GPU kernels
// take these constants and do all other blocks by qg_block_scale_of.
// A rule's formula is not written again here: rules of exponents are asked for their step within a
// binade, rules of UE4M3 for the operand of every code. C and CUDA. Exact within the range
// low .. high (tests/runtime/test_cpu_quantize.c and its exhaustive twin compare).
#ifndef QG_ORDINARY_SCALE_H
#define QG_ORDINARY_SCALE_H

#include <qg_block_scale.h>
#include <qg_encode32.h>

enum {
    QG_ORDINARY_NONE, // only qg_block_scale_of knows
    QG_ORDINARY_POW2,
    QG_ORDINARY_AMAX,
    QG_ORDINARY_AMAX_RCP,
    QG_ORDINARY_AMAX_MUL,
    QG_ORDINARY_UE4M3_MUL, // code of amax * factor
    QG_ORDINARY_UE4M3_DIV  // code of clamp(amax / f / divisor, least, 448)
};

enum { QG_UE4M3_CODES = 128 };

// Which blocks are ordinary: low <= bits of the amax <= high.
typedef struct qg_ordinary_scales {
    int32_t kind;
    int32_t divides; // v = fl(x / operand); otherwise fl(x * operand)
    uint32_t low, high;
    int32_t offset;       // POW2: code = field(amax) + offset + (fraction >= threshold)
    int32_t threshold[2]; // of an even and of an odd field
    int32_t is_float;     // POW2: X is stored as binary32
    float f;              // F
    float factor, divisor, least;
    uint32_t least_code; // UE4M3
    float operands[QG_UE4M3_CODES];
} qg_ordinary_scales;

// Whether one binary32 operation with an operand, dividing or multiplying, does what `scale` says
// to the elements of a block, and that operand. all_finite: the block holds no infinity.
QG_HD int qg_operand_of(const qg_scaler *q, int divides, const qg_block_scale *scale,
                        int all_finite, float *operand) {
    *operand = scale->operand;
    switch (scale->apply) {
    case QG_APPLY_EXACTLY:
        if (!divides)
            *operand = (float)scale->factor;
        return *operand == *operand && *operand > 0.0f && qg_float_is_finite(*operand) &&
               (divides || (double)*operand == scale->factor);
    case QG_APPLY_DIVIDING:
        if (divides)
            return 1;
        *operand = 0.0f; // x / infinity: the quotient and this product are the same
        return qg_float_is_inf(scale->operand);
    case QG_APPLY_MULTIPLYING: return !divides;
    case QG_APPLY_ZERO:
        *operand = divides ? qg_float_of_bits(0x7f800000u) : 0.0f;
        return all_finite;
    default:
        *operand = qg_float_of_bits(0x7fc00000u);
        return q->recipe.nan_element == QG_NAN_ELEMENT_ENCODED;
    }
}

// The branch-free encoder of a recipe's elements, its policy for NaN included, in blocks whose scale
// is a number. For formats that qg_encoder32_takes.
QG_HD qg_encoder32 qg_element_encoder(const qg_recipe *recipe, const qg_format_info *info) {
    qg_encoder32 e = qg_encoder32_of(info, &recipe->conversion);
    if (recipe->nan_element == QG_NAN_ELEMENT_MAX)
        e.nan = (uint32_t)qg_encode_max(info, 0);
    else if (recipe->nan_element == QG_NAN_ELEMENT_ZERO)
        e.nan = 0;
    return e;
}

// 2^exponent, kept normal.
QG_HD uint32_t qg_bits_of_power(int exponent) {
    return qg_bits_of_float(qg_float_pow2(exponent < -126  ? -126
                                          : exponent > 127 ? 127
                                                           : exponent));
}

// The range in which binary32 quotients by F are normal and no bound of the recipe takes part.
QG_HD void qg_ordinary_range(const qg_scaler *q, qg_ordinary_scales *s) {
    int emax = q->element.emax, low = -96, high = 96;
    if (low < emax - 118)
        low = emax - 118;
    if (high > emax + 118)
        high = emax + 118;
    if (q->least_scale > 0.0f && low < qg_float_exponent_up(q->least_scale) + emax + 2)
        low = qg_float_exponent_up(q->least_scale) + emax + 2;
    s->low = qg_bits_of_power(low);
    s->high = qg_bits_of_power(high);
    if (q->least_amax > 0.0f && s->low < qg_bits_of_float(q->least_amax))
        s->low = qg_bits_of_float(q->least_amax);
}

// The least fraction at which the exponent of a rule steps up within a binade, 2^23 if none does.
QG_HD int32_t qg_step_of_rule(int rule, const qg_element *e, uint32_t field, int exponent) {
    uint32_t low = 0, high = 1u << 23; // the step lies in (low, high]
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (qg_rule_exponent(rule, e, qg_float_of_bits(field << 23 | middle)) > exponent)
            high = middle;
        else
            low = middle;
    }
    return (int32_t)high;
}

QG_HD void qg_ordinary_exponents(const qg_scaler *q, qg_ordinary_scales *s) {
    int rule = q->recipe.rule, exponent[2];
    for (uint32_t odd = 0; odd < 2; odd++) {
        uint32_t field = 128 - odd;
        exponent[odd] = qg_rule_exponent(rule, &q->element, qg_float_of_bits(field << 23));
        s->threshold[odd] = qg_step_of_rule(rule, &q->element, field, exponent[odd]);
    }
    if (exponent[0] != exponent[1] + 1)
        return;
    s->kind = QG_ORDINARY_POW2;
    s->offset = exponent[0] + 127 - 128;
    s->is_float = q->scale_format == QG_FORMAT_FP32;
}

// What elements under the block scale of a UE4M3 code are divided or multiplied by.
QG_HD float qg_ordinary_operand(const qg_scaler *q, int divides, uint32_t code) {
    qg_block_scale scale = qg_scale_of_bits(q, code);
    float operand;
    (void)qg_operand_of(q, divides, &scale, 1, &operand);
    return operand;
}

// All but the operands.
QG_HD void qg_ordinary_ue4m3(const qg_scaler *q, qg_ordinary_scales *s) {
    s->divisor = 1.0f;
    if (q->recipe.rule == QG_RULE_TWO_LEVEL) {
        s->kind = QG_ORDINARY_UE4M3_MUL;
        s->factor = q->s_enc * (1.0f / q->element.max);
    } else {
        s->kind = QG_ORDINARY_UE4M3_DIV;
        if (q->recipe.rule == QG_RULE_TWO_LEVEL_TORCHAO) {
            s->divisor = q->tensor;
            s->least = q->recipe.block_scale_min;
        }
    }
    if (!(q->tensor == q->tensor)) {
        s->kind = QG_ORDINARY_NONE;
        return;
    }
    float least =
        q->recipe.block_scale_min > q->least_scale ? q->recipe.block_scale_min : q->least_scale;
    s->least_code = least > 0.0f ? (uint32_t)qg_encode_ue4m3(least) : 0;
    // Code 0 of a rule without tensor scale is X = 0, which only finite elements may meet.
    int least_exponent = q->element.emax - 7;
    if (q->recipe.rule == QG_RULE_AMAX_UE4M3 && s->low < qg_bits_of_power(least_exponent))
        s->low = qg_bits_of_power(least_exponent);
}

// All but the operands of UE4M3 codes, which threads may share.
QG_HD qg_ordinary_scales qg_ordinary_constants_of(const qg_scaler *q) {
    qg_ordinary_scales s = QG_ZEROED;
    int rule = q->recipe.rule;
    s.kind = QG_ORDINARY_NONE;
    s.divides = rule == QG_RULE_AMAX || rule == QG_RULE_AMAX_UE4M3;
    s.f = q->element.max;
    qg_ordinary_range(q, &s);
    switch (rule) {
    case QG_RULE_BEST:
    case QG_RULE_FOUR_OVER_SIX:
    case QG_RULE_DELAYED:
    case QG_RULE_FIXED: break;
    case QG_RULE_AMAX: s.kind = QG_ORDINARY_AMAX; break;
    case QG_RULE_AMAX_RCP: s.kind = QG_ORDINARY_AMAX_RCP; break;
    case QG_RULE_AMAX_MUL: s.kind = QG_ORDINARY_AMAX_MUL; break;
    default:
        if (q->scale_format == QG_FORMAT_UE4M3)
            qg_ordinary_ue4m3(q, &s);
        else
            qg_ordinary_exponents(q, &s);
    }
    if (s.low > s.high) // a huge eps
        s.kind = QG_ORDINARY_NONE;
    return s;
}

QG_HD int qg_ordinary_has_operands(const qg_ordinary_scales *s) {
    return s->kind == QG_ORDINARY_UE4M3_MUL || s->kind == QG_ORDINARY_UE4M3_DIV;
}

QG_HD qg_ordinary_scales qg_ordinary_scales_of(const qg_scaler *q) {
    qg_ordinary_scales s = qg_ordinary_constants_of(q);
    for (uint32_t code = 0; code < QG_UE4M3_CODES && qg_ordinary_has_operands(&s); code++)
        s.operands[code] = qg_ordinary_operand(q, s.divides, code);
    return s;
}

// Bytes of a stored scale: 1 (E8M0, UE4M3) or 4.
QG_HD int qg_ordinary_scale_bytes(const qg_ordinary_scales *s) {
    return s->kind >= QG_ORDINARY_UE4M3_MUL || (s->kind == QG_ORDINARY_POW2 && !s->is_float) ? 1
                                                                                             : 4;
}

QG_HD int qg_is_ordinary(const qg_ordinary_scales *s, uint32_t amax_bits) {
    return amax_bits - s->low <= s->high - s->low;
}

// E4M3 code, RNE and saturating, of a finite v >= 0.
QG_HD uint32_t qg_ordinary_ue4m3_code(float v) {
    float bounded = v > 448.0f ? 448.0f : v, step = bounded < 0x1p-6f ? 0x1p-6f : bounded;
    // The sum's ulp is the spacing of E4M3 at v. Its exponent field is 20 above v's: the bias in
    // the low bits makes field and multiple of the spacing add up to the code.
    uint32_t bias = (256 - (((127 - 6 + 20) << 3) & 255)) & 255;
    float anchor = qg_float_of_bits((qg_bits_of_float(step) & 0x7f800000u) + (20u << 23) + bias);
    uint32_t sum = qg_bits_of_float(bounded + anchor);
    return ((sum >> 20) + sum) & 255;
}

// The stored bits of an ordinary block's scale, and the operand of its elements.
QG_HD uint32_t qg_ordinary_scale(const qg_ordinary_scales *s, uint32_t amax_bits, float *operand) {
    float amax = qg_float_of_bits(amax_bits), x;
    switch (s->kind) {
    case QG_ORDINARY_POW2: {
        uint32_t field = amax_bits >> 23, fraction = amax_bits & 0x007fffffu;
        uint32_t code =
            field + (uint32_t)s->offset + ((int32_t)fraction >= s->threshold[field & 1]);
        *operand = qg_float_of_bits((254 - code) << 23);
        return s->is_float ? code << 23 : code;
    }
    case QG_ORDINARY_AMAX:
        x = amax / s->f;
        *operand = x;
        return qg_bits_of_float(x);
    case QG_ORDINARY_AMAX_RCP:
        x = amax / s->f;
        *operand = 1.0f / x;
        return qg_bits_of_float(x);
    case QG_ORDINARY_AMAX_MUL: *operand = s->f / amax; return qg_bits_of_float(1.0f / *operand);
    default: {
        float v = s->kind == QG_ORDINARY_UE4M3_MUL ? amax * s->factor : amax / s->f / s->divisor;
        uint32_t code = qg_ordinary_ue4m3_code(v < s->least ? s->least : v);
        code = code < s->least_code ? s->least_code : code;
        *operand = s->operands[code];
        return code;
    }
    }
}

#endif
