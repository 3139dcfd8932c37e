// From a recipe to the constants of the kernels. See cpu_plan_internal.h.
#include <cpu_plan_internal.h>
#include <qg_cpu.h>
#include <qg_recipe_name.h>

#include <stdio.h>

// --------------------------------------------------------------------------------------- encoding

// Whether what exceeds F, infinity included, is coded as `code` with its sign.
static bool overflows_to(const qg_encoder32 *e, uint32_t code) {
    return e->overflow[0] == code && e->infinity[0] == code && e->overflow[1] == (code | e->flip) &&
           e->infinity[1] == (code | e->flip);
}

static void set_fused_float(cpu_cast *c, const qg_format_info *info) {
    const qg_encoder32 *e = &c->encoder;
    uint32_t largest = (uint32_t)info->max_code, m = info->mbits;
    // Without mantissa bits the parity of a tie is the exponent's, which no sum sees.
    if (!info->sign || m < 1 || m > 6)
        return;
    if (overflows_to(e, largest))
        c->high = (float)qg_decode_magnitude(info, largest);
    else if (overflows_to(e, largest + 1))
        c->high = (float)qg_decode_magnitude(info, largest + 1);
    else
        return;
    c->high_code = (uint8_t)(overflows_to(e, largest) ? largest : largest + 1);
    c->mbits = (uint8_t)m;
    c->is_boundable = c->high_code + (2u << m) <= 255; // what is below four times `high` has a byte
    uint32_t field = e->grid + 23 - m;                 // of the sum at the smallest normal
    c->is_fused = true;
    c->least = qg_float_of_bits(e->grid << 23);
    c->add = ((23 - m) << 23) + ((0u - (field << m)) & 255);
    c->fold = 256u | (2u << m) << 16;
    uint32_t sign_place = (uint32_t)info->ebits + m;
    c->sign_mask = (uint8_t)(1u << sign_place);
    c->sign_shift = (uint8_t)(7 - sign_place);
    c->keeps_no_sign = e->keeps_no_sign != 0;
}

static void set_fused_int(cpu_cast *c, const qg_format_info *info) {
    c->is_fused = true;
    c->is_int = true;
    c->scale = (float)qg_double_pow2(info->bias);
    c->high = (float)info->max_code;
    c->low = -(float)info->min_code;
}

static cpu_cast cast_of(const qg_recipe *recipe, const qg_format_info *info) {
    cpu_cast c = {.encoder = qg_element_encoder(recipe, info)};
    int mode = recipe->conversion.rounding.mode;
    c.nan_code = (uint8_t)c.encoder.nan;
    c.is_directed = mode >= QG_ROUND_RTZ && mode <= QG_ROUND_RTO;
    if (mode == QG_ROUND_RNE && info->kind == QG_KIND_INT)
        set_fused_int(&c, info);
    else if (mode == QG_ROUND_RNE)
        set_fused_float(&c, info);
    return c;
}

// ----------------------------------------------------------------------------------------- scales

// v is at most 2 * 2^-offset under an exponent rule, F and a rounding error under a quotient; a
// UE4M3 scale may be clamped. APPLY_POWER moves the smallest normal to where x is, and the sum of
// its anchor and x must stay normal and finite at every scale of an ordinary amax.
static void set_bounds(cpu_plan *p) {
    const qg_ordinary_scales *s = &p->scales;
    const cpu_cast *c = &p->cast;
    int largest = s->kind == QG_ORDINARY_POW2 ? 1 - s->offset : qg_float_exponent_up(s->f) + 1;
    if (!c->is_boundable || s->kind == QG_ORDINARY_NONE || s->kind >= QG_ORDINARY_UE4M3_MUL ||
        largest > 127 || qg_float_pow2(largest) > 4.0f * c->high)
        return;
    p->is_bounded = true;
    int32_t grid = (int32_t)c->encoder.grid - 127 + s->offset;
    p->is_power = s->kind == QG_ORDINARY_POW2 && c->encoder.grid <= 254 - 24 &&
                  (int32_t)(s->low >> 23) + grid >= 1 &&
                  (int32_t)(s->high >> 23) + 1 + grid <= 254 - 24;
}

bool cpu_operand_of(const cpu_plan *plan, const qg_block_scale *scale, bool all_finite,
                    float *operand) {
    return qg_operand_of(&plan->scaler, plan->how == APPLY_DIVIDE, scale, all_finite, operand);
}

// ------------------------------------------------------------------------------------------- plan

static int input_index(qg_format type) {
    return type == QG_FORMAT_BF16 ? INPUT_BF16 : type == QG_FORMAT_FP16 ? INPUT_FP16 : INPUT_FP32;
}

// A fixed scale decides how it is applied.
static void set_constant(cpu_plan *p) {
    qg_block_scale scale = qg_block_scale_of(&p->scaler, 0.0f, NULL);
    float operand;
    p->is_constant = true;
    p->how = APPLY_MULTIPLY;
    if (!cpu_operand_of(p, &scale, true, &operand) || scale.apply == QG_APPLY_DIVIDING)
        p->how = APPLY_DIVIDE;
    else if (operand == 1.0f)
        p->how = APPLY_NOTHING;
}

cpu_plan cpu_plan_of(const qg_recipe *recipe, qg_format input_type, float tensor_amax) {
    cpu_plan p = {.scaler = qg_scaler_of(recipe, input_type, tensor_amax)};
    const qg_format_info *info = &p.scaler.element.info;
    int rule = recipe->rule;
    p.type = input_index(input_type);
    p.is_direct = recipe->structure == QG_STRUCTURE_PLAIN && qg_encoder32_takes(info);
    if (!p.is_direct)
        return p;
    p.needs_elements = rule == QG_RULE_BEST || rule == QG_RULE_FOUR_OVER_SIX;
    p.cast = cast_of(recipe, info);
    if (rule == QG_RULE_FIXED || rule == QG_RULE_DELAYED)
        set_constant(&p);
    p.scales = qg_ordinary_scales_of(&p.scaler);
    if (!p.is_constant && p.scales.divides)
        p.how = APPLY_DIVIDE;
    if (p.cast.is_fused && !p.cast.is_int)
        set_bounds(&p);
    return p;
}

bool cpu_decode_of(qg_format element, cpu_decode *out) {
    qg_format_info info = qg_format_describe(element);
    if (qg_format_code_bytes(&info) != 1)
        return false;
    for (uint32_t code = 0; code < 256; code++) {
        double value = qg_decode(&info, code);
        uint32_t bits = value == value ? qg_bits_of_float((float)value) : 0x7fff0000u;
        if ((bits & 0xffff) != 0 || (value == value && (double)(float)value != value))
            return false;
        out->values[code] = qg_float_of_bits(bits);
        out->byte3[code] = (uint8_t)(bits >> 24);
        out->byte2[code] = (uint8_t)(bits >> 16);
    }
    return true;
}

void qg_cpu_plan_text(const qg_recipe *recipe, qg_format input_type, char *text, size_t size) {
    cpu_plan p = cpu_plan_of(recipe, input_type, 1.0f);
    char element[QG_NAME_SIZE], rule[QG_NAME_SIZE], rounding[QG_NAME_SIZE];
    qg_format_name(recipe->element, element);
    qg_rule_name(recipe->rule, recipe->fixed_scale, rule);
    qg_rounding_name(recipe->conversion.rounding, rounding);
    bool has_scales = p.is_direct && (p.scales.kind != QG_ORDINARY_NONE || p.is_constant);
    const char *name = p.is_direct ? cpu_kernels_chosen()->name : "emulator";
    snprintf(text, size, "%s: %s%s, %s %s", name, has_scales || !p.is_direct ? "" : "scalar ", rule,
             element, rounding);
}
