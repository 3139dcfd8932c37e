// A recipe as numbers for formulas. The scale rules stand here in their own words: what theory says
// must not come from the functions that it judges. See gate_operand.h.
#include <gate_operand.h>

#include <qg_recipe_name.h>

#include <math.h>
#include <string.h>

// ----------------------------------------------------------------------------------- scale rules

static int floor_log2(double x) {
    int exponent;
    frexp(x, &exponent);
    return exponent - 1;
}

// The nearest value of unsigned E4M3, saturating: 3 mantissa bits, least exponent -6.
static double nearest_ue4m3(double x) {
    if (!(x < 448))
        return 448;
    int exponent = x > 0 ? floor_log2(x) : -6;
    double unit = ldexp(1, (exponent < -6 ? -6 : exponent) - 3);
    return nearbyint(x / unit) * unit;
}

static double power_of_two(const qg_gate_operand *o, double amax) {
    int emax = floor_log2(o->largest), e = floor_log2(amax);
    double significand = ldexp(amax, -e), ratio = amax / o->largest;
    int below = floor_log2(ratio);
    double rest = ldexp(ratio, -below);
    switch (o->recipe.rule) {
    case QG_RULE_FLOOR: return ldexp(1, e - emax);
    case QG_RULE_FLOOR_PLUS1: return ldexp(1, e - emax + 1);
    case QG_RULE_CEIL: return ldexp(1, e - emax + (significand > 1));
    case QG_RULE_EVEN:
        return ldexp(1, e - emax + (significand >= 2 - ldexp(1, -o->element.mbits - 1)));
    case QG_RULE_NEAREST:
    case QG_RULE_NEAREST_UP: return ldexp(1, below + (rest >= 1.5));
    default: return ldexp(1, below + (rest > 1)); // rceil and its forms
    }
}

double qg_gate_scale(const qg_gate_operand *o, double tensor_amax, double amax) {
    switch (o->recipe.rule) {
    case QG_RULE_AMAX:
    case QG_RULE_AMAX_RCP:
    case QG_RULE_AMAX_MUL: return amax / o->largest;
    case QG_RULE_AMAX_UE4M3: return nearest_ue4m3(amax / o->largest);
    case QG_RULE_TWO_LEVEL:
    case QG_RULE_TWO_LEVEL_TORCHAO: {
        double tensor = tensor_amax / (448 * o->largest);
        double block = nearest_ue4m3(amax / o->largest / tensor);
        if (block < (double)o->recipe.block_scale_min)
            block = (double)o->recipe.block_scale_min;
        return block * tensor;
    }
    case QG_RULE_FIXED: return (double)o->recipe.fixed_scale;
    case QG_RULE_BEST:
    case QG_RULE_FOUR_OVER_SIX:
    case QG_RULE_DELAYED: return NAN;
    default: return power_of_two(o, amax);
    }
}

// --------------------------------------------------------------------------------------- formats

static bool is_nearest(qg_rounding rounding) {
    return rounding.mode == QG_ROUND_RNE || rounding.mode == QG_ROUND_RNA;
}

static void read_values(qg_gate_operand *o) {
    const qg_format_info *info = &o->element.info;
    if (info->max_code + 1 > QG_GRID_MOST)
        return;
    for (uint64_t code = 0; code <= info->max_code; code++)
        o->values[o->value_count++] = qg_decode(info, code);
}

static void read_element(qg_gate_operand *o) {
    const qg_format_info *info = &o->element.info;
    bool is_float = info->kind != QG_KIND_INT;
    double away = is_nearest(o->recipe.conversion.rounding) ? 0.5 : 1;
    o->largest = (double)o->element.max;
    o->least = qg_format_min_positive(info);
    o->step = is_float ? ldexp(1, o->element.emax - info->mbits) : o->least;
    o->unit = is_float ? ldexp(away, -info->mbits) : 0;
    read_values(o);
}

// ------------------------------------------------------------------------ what a rule may lose

// The largest gap at or below the magnitude t <= F, in units of X.
static double gap_below(const qg_gate_operand *o, double t) {
    if (o->unit == 0 || t >= o->largest)
        return o->step;
    double gap = ldexp(1, floor_log2(t) - o->element.info.mbits);
    return gap > o->least ? gap : o->least;
}

static void note_amax(qg_gate_operand *o, double amax, double scale) {
    double away = is_nearest(o->recipe.conversion.rounding) ? 0.5 : 1, t = amax / scale;
    double gap = away * gap_below(o, t) / t, over = (t - o->largest) / t;
    o->scale = fmax(o->scale, scale / amax);
    o->excess = fmax(o->excess, over);
    o->worst = fmax(o->worst, fmax(gap, over));
    o->saturates |= t > o->largest * (1 + 0x1p-21);
}

// Both ends of 4096 intervals of significands, and exponents of either parity: rules of powers of
// two step at multiples of 2^-12 or, at F, beside one, so that each interval's ends are taken a
// little outwards. The shares are then raised by what an interval may hide.
static void scan_amax(qg_gate_operand *o) {
    enum { POINTS = 4096, ROUNDED_UP = 2 };
    for (int i = 0; i < ROUNDED_UP * POINTS; i++) {
        double amax = ldexp(1 + i % POINTS / (double)POINTS, i / POINTS);
        double beyond = amax * (1 + 1.0 / POINTS) * (1 - 0x1p-40);
        note_amax(o, amax, qg_gate_scale(o, amax, amax));
        note_amax(o, beyond, qg_gate_scale(o, beyond, beyond));
    }
    o->worst *= 1 + 0x1p-10;
    o->excess = o->excess > 0x1p-20 ? o->excess + 0x1p-10 : 0;
    o->scale *= 1 + 0x1p-10;
}

static void read_rule(qg_gate_operand *o) {
    switch (o->recipe.rule) {
    case QG_RULE_AMAX:
    case QG_RULE_AMAX_RCP:
    case QG_RULE_AMAX_MUL:
    case QG_RULE_AMAX_POW2:
    case QG_RULE_FLOOR:
    case QG_RULE_CEIL:
    case QG_RULE_EVEN:
    case QG_RULE_RCEIL:
    case QG_RULE_RCEIL_MUL:
    case QG_RULE_RCEIL_DIV:
    case QG_RULE_FLOOR_PLUS1:
    case QG_RULE_NEAREST:
    case QG_RULE_NEAREST_UP: scan_amax(o); break;
    default: // the scale rounds, or follows from more than the amax
        o->worst = o->excess = o->scale = NAN;
        o->saturates = true;
    }
    if (o->recipe.structure != QG_STRUCTURE_PLAIN)
        o->worst = o->excess = o->scale = NAN;
}

void qg_gate_operand_find(const char *format, const char *layout, const char *rule,
                          const char *rounding, qg_gate_operand *out) {
    qg_layout l;
    int id;
    float fixed;
    qg_recipe *r = &out->recipe;
    out->known = qg_recipe_find(format, r) == QG_OK && qg_layout_parse(layout, &l) == QG_OK &&
                 qg_rule_parse(rule, &id, &fixed) == QG_OK &&
                 qg_rounding_parse(rounding, &r->conversion.rounding) == QG_OK;
    bool plain = r->structure == QG_STRUCTURE_PLAIN;
    if (out->known && plain)
        out->known =
            qg_recipe_set_layout(r, l) == QG_OK && qg_recipe_set_rule(r, id, fixed) == QG_OK;
    if (!out->known)
        return;
    out->element = qg_element_of(r->element);
    read_element(out);
}

void qg_gate_operand_read(const char *format, const char *layout, const char *rule,
                          const char *rounding, qg_gate_operand *out) {
    qg_gate_operand_find(format, layout, rule, rounding, out);
    if (out->known)
        read_rule(out);
}

int qg_gate_blocks(const qg_recipe *recipe, int64_t m, int64_t k,
                   qg_gate_block out[QG_GATE_BLOCKS]) {
    qg_blocks b = qg_layout_apply(recipe->layout, m, k);
    int64_t whole_rows = m / b.rows, whole_columns = k / b.columns;
    int64_t rest_rows = m % b.rows, rest_columns = k % b.columns;
    qg_gate_block all[QG_GATE_BLOCKS] = {
        {b.rows * b.columns,       (double)whole_rows * (double)whole_columns},
        {b.rows * rest_columns,    (double)whole_rows                        },
        {rest_rows * b.columns,    (double)whole_columns                     },
        {rest_rows * rest_columns, 1                                         }
    };
    int count = 0;
    for (int i = 0; i < QG_GATE_BLOCKS; i++)
        if (all[i].elements > 0 && all[i].count > 0)
            out[count++] = all[i];
    return count;
}
