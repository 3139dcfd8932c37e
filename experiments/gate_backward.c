// The backward error that the arithmetic of a unit allows. See gate_backward.h.
//
// S = |A| |B| of one output. All partial sums are at most S but for their own errors, which are of
// second order. A fused operation adds L products to a running value c:
//
// - T, ST: every term is truncated at F bits below the largest exponent: less than 2^-F times the
//   largest term each. The largest itself loses nothing (products of these formats have fewer than F
//   fraction bits), c no more than another term: L terms lose, L 2^-F S. The conversion then loses
//   rho: 2^-13 (E8M13), 2^-23 (binary32 toward zero), 2^-24 (binary32 to nearest).
//   That the largest exponent belongs to a term of that size holds for normal elements; a fused
//   operation of subnormal products alone may lose as much as one whose products are the least
//   normal ones. S of one such product is assumed.
// - The losses of products are relative to those of one operation and to c. Over a chain of J
//   operations c is at most S in each: J (L 2^-F + rho) S.
// - GST: 4 exact sums of 16 products, aligned by their scales: a sum that counts is at least 1/4 of
//   its scale, so 5 terms lose at most 4 * 2^-F S each.
// - PAIRS: 32 products in two operations of L = 16 from 0, relative to their own size, then one
//   addition to nearest: 2 (L 2^-F + rho) S in all and 2^-24 S for each of the J additions.
// - E: one rounding to nearest a step. FTZ: two of pairs, one of quads (their own size), one of the
//   running sum a step.
// - TR, GTR: products lose 2^-F of the largest product of their operation (own size); joining two
//   halves and c 2^-F each, of what the operation has; 2^-31 before the rounding to nearest.
// - Software: a product is rounded once (2^-24), then k - 1 additions, each by the unit roundoff of
//   the running sum; to nearest k u needs no second order (Jeannerod and Rump 2013).
//
// Promotion every N: chains of N elements, relative to their own interval's S, whose errors add to
// the chain's share of S; then one addition of binary32 per interval. Split: chains of a part, then
// one addition per part. Scales: q is rounded once from code times scale (4 times for two-level
// scales), their product and its product with the sum once each, the bias once. Powers of two never
// round. The output is rounded once, of |out| <= S (1 + bound).
#include <gate_backward.h>

#include <qg_cpu.h>

#include <math.h>
#include <string.h>

static const double U32 = 0x1p-24;      // to nearest
static const double FEW_ROUNDINGS = 12; // of scales, factors and bias

void qg_gate_unit_read(const char *name, qg_gate_unit *out) {
    out->known = qg_unit_parse(name, &out->unit) == QG_OK;
}

double qg_gate_output_unit(qg_format out_type) {
    return out_type == QG_FORMAT_BF16 ? 0x1p-8 : out_type == QG_FORMAT_FP16 ? 0x1p-11 : U32;
}

// What a chain loses: for each of its steps, as a share of the running sum, and once for all.
typedef struct loss {
    double length; // products of a step
    double step, once;
    double unit;
} loss;

static double rho_of(const qg_unit_row *row) {
    switch (row->rho) {
    case QG_RHO_RZ_FP32: return 0x1p-23;
    case QG_RHO_RZ_E8M13: return 0x1p-13;
    case QG_RHO_RNE_FP16: return 0x1p-11;
    default: return U32;
    }
}

static loss loss_of_row(const qg_unit_row *row) {
    double l = row->length, f = ldexp(1, -row->fraction), rho = rho_of(row);
    switch (row->model) {
    case QG_MODEL_T:
    case QG_MODEL_ST: return (loss){l, l * f + rho, 0, fmax(f, rho)};
    case QG_MODEL_GST: return (loss){l, 20 * f + rho, 0, fmax(f, rho)};
    case QG_MODEL_PAIRS: return (loss){2 * l, U32, 2 * (l * f + rho), rho};
    case QG_MODEL_E: return (loss){l, U32, 0, U32};
    case QG_MODEL_FTZ: return (loss){l, U32, 2 * U32, U32};
    case QG_MODEL_TR:
    case QG_MODEL_GTR: return (loss){l, f + 0x1p-30 + U32, (l + 2) * f, U32};
    default: return (loss){1, ldexp(1, -53), 0, ldexp(1, -53)};
    }
}

static loss loss_of_software(const qg_unit *unit) {
    double away = unit->rounding == QG_ROUND_RNE ? 1 : 2;
    double sum = unit->id == QG_UNIT_BF16_SEQUENTIAL ? 0x1p-8 : U32;
    if (unit->id == QG_UNIT_FP64)
        return (loss){1, 0x1p-53, 0, 0x1p-53};
    return (loss){1, away * sum, U32, away * sum};
}

static const qg_unit_row *row_of(const qg_unit *unit, const qg_gate_operand *a,
                                 const qg_gate_operand *b) {
    qg_format x = a->recipe.element, y = b->recipe.element;
    bool scaled = unit->id == QG_UNIT_BLACKWELL_MX || unit->id == QG_UNIT_BLACKWELL_MXF4;
    int32_t scale = scaled ? (int32_t)qg_rule_scale_format(a->recipe.rule) : QG_UNIT_NO_SCALE;
    return qg_unit_row_find(unit->id, x, y, QG_FORMAT_FP32, scale);
}

// Steps of `length` in `elements` of K; blocked sums are a chain of N, then one of the blocks.
static double steps_in(const qg_unit *unit, double length, double elements) {
    if (unit->id == QG_UNIT_FP32_BLOCKED && elements > unit->block)
        return unit->block + ceil(elements / unit->block);
    return ceil(elements / length);
}

static qg_gate_accumulator bound_of(const qg_unit *unit, loss l, int64_t k) {
    double part = unit->split > 1 ? ceil((double)k / (double)unit->split) : (double)k;
    double additions = unit->split > 1 ? (double)unit->split : 0, chain = part;
    if (unit->promote > 0) {
        chain = fmin((double)unit->promote, part);
        additions += ceil(part / chain);
    }
    // Parts are whole instructions, the largest of which has 64 elements.
    double steps = steps_in(unit, l.length, chain);
    if (unit->split > 1 && !qg_unit_is_software(unit->id))
        steps += ceil(64 / l.length);
    return (qg_gate_accumulator){l.unit, l.length, steps,
                                 steps * l.step + l.once + additions * U32};
}

// Whether scales of this recipe are rounded on their way.
static bool rounds_scales(const qg_recipe *recipe) {
    return qg_rule_scale_format(recipe->rule) != QG_FORMAT_E8M0;
}

qg_gate_accumulator qg_gate_accumulator_of(const qg_gate_unit *u, const qg_gate_operand *a,
                                           const qg_gate_operand *b, int64_t k,
                                           qg_format out_type) {
    qg_gate_accumulator none = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double output = qg_gate_output_unit(out_type);
    if (!u->known || !a->known || !b->known || k < 1)
        return none;
    if (u->unit.id == QG_UNIT_NATIVE) {
        none.bound = qg_cpu_matmul_bound(&a->recipe, &b->recipe, k, out_type);
        return none;
    }
    if (u->unit.id == QG_UNIT_EXACT) {
        none.bound = output * (1 + 0x1p-20);
        return none;
    }
    qg_gate_accumulator x;
    if (qg_unit_is_software(u->unit.id)) {
        x = bound_of(&u->unit, loss_of_software(&u->unit), k);
        x.bound += U32; // the bias
    } else {
        const qg_unit_row *row = row_of(&u->unit, a, b);
        if (!row)
            return none;
        x = bound_of(&u->unit, loss_of_row(row), k);
        x.bound +=
            rounds_scales(&a->recipe) || rounds_scales(&b->recipe) ? FEW_ROUNDINGS * U32 : 2 * U32;
    }
    x.bound += output * (1 + x.bound);
    return x;
}
