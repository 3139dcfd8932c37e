// The error bound of the CPU's products, for operands of these recipes. See qg_cpu.h.
//
// Let u = 2^-24, e any number with |e| <= u, and q the dequantized elements. What one output is
// made of, and how often each product q_a q_b is rounded on its way:
//
// 1. Panels. BF16 panels hold code values (E8M0, UE4M3 included) exactly; binary32 panels hold q.
// 2. The products of BF16 elements have 16 significant bits and are exact in binary32; those of
//    binary32 are rounded, or not (FMA): at most 1.
// 3. The sum. Whatever its order (vector lanes, pairs, parts of k that are added to a running sum),
//    it is a tree whose k leaves are the products and whose inner nodes round to nearest: a leaf
//    has at most k - 1 above it, additions of zero being exact. vdpbf16ps adds its two products one
//    after the other, each sum rounded to nearest whatever MXCSR says: two nodes. That it reads
//    and writes subnormals as zeros changes nothing, since BF16 panels are used only where all
//    products are multiples of a normal number (cpu_matmul_operand.c).
// 4. Scales outside of the panels: fl(sa sb) and its product with a sum: 2. They are used only
//    where every scale, element and fl(sa sb) is normal.
//    q is itself rounded, once from code times scale; of a two-level recipe of Transformer Engine
//    the scale has been rounded twice before and ours, of the tensor, once; torchao's once. So the
//    product of codes and scales is q_a q_b with 1, 4 or 2 more factors 1 + e for each operand. For
//    the same reason as in 1, E8M0 scales add none.
// 5. The bias: 1, which the bias passes too. The output: 1 of unit u_out = 2^-8 of BF16, 2^-11 of
//    FP16.
//
// With N roundings, a product has the factor (1 + e)^N, within gamma_N = N u / (1 - N u) of 1
// (Higham, Accuracy and Stability, lemma 3.1; the same holds for divisions by 1 + e). Summed:
//     |out - exact| <= (gamma_N + u_out (1 + gamma_N)) (|a| |b|^T + |bias|) + underflow,
// as long as (1 + bound) (|a| |b|^T + |bias|) stays below what binary32 and the output type hold.
//
// Underflow: rounding to a subnormal is off by half of the least one, 2^-150 in binary32. Sums are
// exact there; products are k in number, and as many again may come from scales of parts, and one
// from the epilogue. Each is magnified by less than 2. The output adds 2^-134 (BF16), 2^-25 (FP16).
#include <qg_block_scale.h>
#include <qg_cpu.h>

static double output_unit(qg_format type) {
    return type == QG_FORMAT_BF16 ? 0x1p-8 : type == QG_FORMAT_FP16 ? 0x1p-11 : 0.0;
}

// Roundings between code times the scale that a product uses, and q.
static int64_t scale_roundings(const qg_recipe *recipe) {
    bool is_plain = recipe->structure == QG_STRUCTURE_PLAIN;
    bool is_grouped =
        recipe->layout.kind == QG_LAYOUT_GROUP || recipe->layout.kind == QG_LAYOUT_BLOCK;
    qg_format format = qg_rule_scale_format(recipe->rule);
    if (!is_plain || format == QG_FORMAT_E8M0 || qg_format_describe(recipe->element).bits > 8)
        return 0;
    if (is_grouped && qg_rule_has_tensor_scale(recipe->rule))
        return recipe->rule == QG_RULE_TWO_LEVEL_TORCHAO ? 2 : 4;
    return is_grouped && format == QG_FORMAT_UE4M3 ? 0 : 1;
}

double qg_cpu_matmul_bound(const qg_recipe *a, const qg_recipe *b, int64_t k, qg_format out_type) {
    int64_t scales = scale_roundings(a) + scale_roundings(b);
    bool has_epilogue =
        scales > 0 || a->layout.kind < QG_LAYOUT_GROUP || b->layout.kind < QG_LAYOUT_GROUP;
    double roundings = (double)k + (double)scales + (has_epilogue ? 2.0 : 0.0) + 1.0;
    double share = roundings * 0x1p-24;
    if (share >= 1.0)
        return (double)qg_float_of_bits(0x7f800000u); // sums of 2^24 terms: nothing is promised
    double gamma = share / (1.0 - share), unit = output_unit(out_type);
    return gamma + unit * (1.0 + gamma);
}

double qg_cpu_matmul_underflow(int64_t k, qg_format out_type) {
    double least = out_type == QG_FORMAT_BF16   ? 0x1p-134
                   : out_type == QG_FORMAT_FP16 ? 0x1p-25
                                                : 0.0;
    return 2.0 * (2.0 * (double)k + 1.0) * 0x1p-150 + least;
}
