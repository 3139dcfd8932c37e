// Types of the scaled ops, from their recipes: codes, scale extents and dtypes, K, bias. See
// graph_internal.h; what shapes scales have: qg_scaled_shape_of.
#include "graph_internal.h"

#include <qg_emulator.h>
#include <qg_recipe_name.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ----------------------------------------------------------------------------------------- recipes

// A recipe's text is one word of a graph's text, too.
static qg_status read_recipe(const char *text, qg_recipe *out) {
    size_t length = strnlen(text, QG_RECIPE_TEXT_SIZE);
    if (length == QG_RECIPE_TEXT_SIZE)
        return qg_fail(QG_ERROR_ARGUMENT, "recipe '%.60s...' is longer than %d", text,
                       QG_RECIPE_TEXT_SIZE - 1);
    if (length == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "a scaled op needs a recipe");
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+-") !=
        length)
        return qg_fail(QG_ERROR_ARGUMENT, "a recipe is letters, digits and _ . / : + -");
    return qg_recipe_parse(text, out);
}

bool graph_rounds_stochastically(const char *recipe) {
    qg_recipe parsed;
    return read_recipe(recipe, &parsed) == QG_OK &&
           qg_rounding_is_stochastic(parsed.conversion.rounding);
}

// ------------------------------------------------------------------------------------------ shapes

static qg_tensor_type scale_type(const qg_recipe *recipe, const qg_shape *shape) {
    bool is_fp32 = qg_rule_scale_format(recipe->rule) == QG_FORMAT_FP32;
    qg_tensor_type type = {.dtype = is_fp32 ? QG_DTYPE_FP32 : QG_DTYPE_U8, .rank = 1, .shape = {1}};
    if (recipe->layout.kind != QG_LAYOUT_PER_TENSOR) {
        type.rank = 2;
        type.shape[0] = shape->blocks.block_rows;
        type.shape[1] = shape->blocks.block_columns;
    }
    if (recipe->structure != QG_STRUCTURE_PLAIN)
        type.shape[type.rank++] = 2;
    return type;
}

static qg_status check_recipe(const qg_recipe *recipe, const char *text, const qg_shape *shape) {
    if (shape->code_bytes != 1)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "recipe %.100s has codes of %" PRId32 " bytes: a graph takes one of up to 8 "
                       "bits",
                       text, shape->code_bytes);
    if (recipe->rule == QG_RULE_DELAYED)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "recipe %.100s scales by an amax history, which a graph does not have",
                       text);
    return QG_OK;
}

qg_status qg_scaled_shape_of(const char *recipe, const qg_tensor_type *x, qg_scaled_shape *out) {
    qg_shape shape;
    int64_t rows, k;
    qg_status status = read_recipe(recipe, &out->recipe);
    if (!status)
        status = qg_tensor_check(x);
    if (!status && x->rank < 1)
        status = qg_fail(QG_ERROR_ARGUMENT, "a single number has no last axis to quantize along");
    if (status)
        return status;
    qg_tensor_matrix(x, &rows, &k);
    status = qg_shape_of(&out->recipe, rows, k, &shape);
    if (!status)
        status = check_recipe(&out->recipe, recipe, &shape);
    if (status)
        return status;
    out->has_tensor_scale = shape.has_tensor_scale != 0;
    out->scale = scale_type(&out->recipe, &shape);
    out->codes = *x;
    out->codes.dtype = QG_DTYPE_U8;
    if (shape.planes == 1)
        return QG_OK;
    if (x->rank == QG_RANK_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "rank %" PRId32 " leaves no axis for two planes of codes",
                       x->rank);
    memmove(out->codes.shape + 1, x->shape, (QG_RANK_MOST - 1) * sizeof *x->shape);
    out->codes.shape[0] = shape.planes;
    out->codes.rank++;
    return QG_OK;
}

// ------------------------------------------------------------------------------------------ checks

static qg_status must_be(const char *what, const qg_tensor_type *found,
                         const qg_tensor_type *wanted) {
    char got[QG_TENSOR_TEXT_SIZE], want[QG_TENSOR_TEXT_SIZE];
    if (qg_tensor_equal(found, wanted))
        return QG_OK;
    qg_tensor_text(found, got);
    qg_tensor_text(wanted, want);
    return qg_fail(QG_ERROR_ARGUMENT, "%s is %s, not %s", what, got, want);
}

static const qg_tensor_type ONE_FLOAT = {.dtype = QG_DTYPE_FP32, .rank = 1, .shape = {1}};

static qg_status check_float(const qg_tensor_type *x) {
    char text[QG_TENSOR_TEXT_SIZE];
    if (qg_dtype_is_float((qg_dtype)x->dtype))
        return QG_OK;
    qg_tensor_text(x, text);
    return qg_fail(QG_ERROR_ARGUMENT, "x is no float: %s", text);
}

// The tensor whose codes have this type.
static qg_status decoded_type(const char *recipe, const char *what, const qg_tensor_type *codes,
                              qg_tensor_type *x) {
    qg_recipe parsed;
    qg_status status = read_recipe(recipe, &parsed);
    *x = *codes;
    x->dtype = QG_DTYPE_FP32;
    if (status || parsed.structure != QG_STRUCTURE_RESIDUAL)
        return status;
    if (codes->rank < 2 || codes->shape[0] != 2) {
        char text[QG_TENSOR_TEXT_SIZE];
        qg_tensor_text(codes, text);
        return qg_fail(QG_ERROR_ARGUMENT, "%s is %s: recipe %.100s has two planes, (2, ...)", what,
                       text, recipe);
    }
    x->rank--;
    memmove(x->shape, codes->shape + 1, (size_t)x->rank * sizeof *x->shape);
    x->shape[x->rank] = 0;
    return QG_OK;
}

// --------------------------------------------------------------------------- quantize, dequantize

static qg_status infer_quantization(qg_graph_op op, int32_t count,
                                    const qg_tensor_type *const *types, const char *recipe,
                                    qg_tensor_type *out) {
    qg_scaled_shape shape;
    bool dequantizes = op == QG_GRAPH_SCALED_DEQUANTIZE;
    qg_tensor_type x = *types[0];
    qg_status status = dequantizes ? decoded_type(recipe, "codes", types[0], &x) : check_float(&x);
    if (!status)
        status = qg_scaled_shape_of(recipe, &x, &shape);
    if (status)
        return status;
    *out = dequantizes                         ? x
           : op == QG_GRAPH_SCALED_QUANTIZE    ? shape.codes
           : op == QG_GRAPH_SCALED_QUANT_SCALE ? shape.scale
                                               : ONE_FLOAT;
    if (op == QG_GRAPH_SCALED_TENSOR_SCALE && !shape.has_tensor_scale)
        return qg_fail(QG_ERROR_ARGUMENT, "recipe %.100s has no tensor scale", recipe);
    if (op == QG_GRAPH_SCALED_TENSOR_SCALE || op == QG_GRAPH_SCALED_QUANT_SCALE)
        return QG_OK;
    int32_t wanted = shape.has_tensor_scale ? 3 : 2;
    if (count != wanted)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " inputs: recipe %.100s has %s tensor scale",
                       count, recipe, shape.has_tensor_scale ? "a" : "no");
    if (dequantizes)
        status = must_be("codes", types[0], &shape.codes);
    if (!status)
        status = must_be("scale", types[1], &shape.scale);
    return status || count == 2 ? status : must_be("tensor scale", types[2], &ONE_FLOAT);
}

// ---------------------------------------------------------------------------------------- products

static qg_status has_tensor_scale(const char *recipe, bool *out) {
    qg_recipe parsed;
    qg_status status = read_recipe(recipe, &parsed);
    *out = !status && qg_rule_has_tensor_scale(parsed.rule);
    return status;
}

qg_status graph_product_inputs_of(qg_graph_op op, const qg_attributes *attributes, int32_t count,
                                  graph_product_inputs *out) {
    bool left, right;
    int next = 0;
    qg_status status = has_tensor_scale(attributes->recipe, &left);
    if (!status)
        status = has_tensor_scale(attributes->recipe_b, &right);
    if (status)
        return status;
    out->lhs = next++;
    out->rhs = next++;
    out->index = op == QG_GRAPH_SCALED_GROUPED_MATMUL ? next++ : -1;
    out->lhs_scale = next++;
    out->rhs_scale = next++;
    out->lhs_tensor_scale = left ? next++ : -1;
    out->rhs_tensor_scale = right ? next++ : -1;
    out->bias = count > next ? next++ : -1;
    if (count == next)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT,
                   "%" PRId32 " inputs, not %d or %d as recipes %.60s and %.60s need", count,
                   out->bias < 0 ? next : next - 1, out->bias < 0 ? next + 1 : next,
                   attributes->recipe, attributes->recipe_b);
}

// One operand of a product: codes, scales and the tensor that they stand for.
typedef struct operand {
    const char *what, *recipe;
    const qg_tensor_type *codes, *scale, *tensor_scale; // tensor_scale may be NULL
    qg_tensor_type x;
} operand;

// rows: of one of the matrices that the operand consists of. Blocks must not lie across two.
static qg_status check_blocks(const operand *o, const qg_layout *layout, int64_t rows,
                              int64_t matrices) {
    if (layout->kind != QG_LAYOUT_BLOCK || matrices == 1 || rows % layout->rows == 0)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT,
                   "%s: blocks of %" PRId32 " rows lie across matrices of %" PRId64 " rows",
                   o->what, layout->rows, rows);
}

static qg_status check_operand(operand *o, int32_t least_rank) {
    qg_scaled_shape shape;
    char what[64];
    qg_status status = decoded_type(o->recipe, o->what, o->codes, &o->x);
    if (!status && o->x.rank < least_rank)
        return qg_fail(QG_ERROR_ARGUMENT, "%s has rank %" PRId32 ", not at least %" PRId32, o->what,
                       o->x.rank, least_rank);
    if (!status)
        status = qg_scaled_shape_of(o->recipe, &o->x, &shape);
    if (!status)
        status = must_be(o->what, o->codes, &shape.codes);
    snprintf(what, sizeof what, "scale of %s", o->what);
    if (!status)
        status = must_be(what, o->scale, &shape.scale);
    snprintf(what, sizeof what, "tensor scale of %s", o->what);
    if (!status && o->tensor_scale)
        status = must_be(what, o->tensor_scale, &ONE_FLOAT);
    if (status)
        return status;
    int64_t rows = o->x.rank > 1 ? o->x.shape[o->x.rank - 2] : 1;
    int64_t all, k;
    qg_tensor_matrix(&o->x, &all, &k);
    return check_blocks(o, &shape.recipe.layout, rows, all / rows);
}

static qg_status check_k(const operand *lhs, const operand *rhs) {
    int64_t k = lhs->x.shape[lhs->x.rank - 1], other = rhs->x.shape[rhs->x.rank - 1];
    if (k == other)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT, "K differs: %" PRId64 " of %s, %" PRId64 " of %s", k,
                   lhs->what, other, rhs->what);
}

static qg_status check_out(const qg_attributes *attributes) {
    int32_t dtype = attributes->type.dtype;
    if (dtype == QG_DTYPE_FP32 || dtype == QG_DTYPE_BF16)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT, "the output of a scaled product is fp32 or bf16");
}

static qg_status infer_matmul(operand *lhs, operand *rhs, const qg_tensor_type *bias,
                              qg_tensor_type *out) {
    qg_status status = check_operand(lhs, 2);
    if (!status)
        status = check_operand(rhs, 2);
    if (!status)
        status = check_k(lhs, rhs);
    if (status)
        return status;
    if (lhs->x.rank != rhs->x.rank)
        return qg_fail(QG_ERROR_ARGUMENT, "lhs has rank %" PRId32 ", rhs %" PRId32, lhs->x.rank,
                       rhs->x.rank);
    int32_t r = lhs->x.rank;
    for (int32_t axis = 0; axis < r - 2; axis++)
        if (lhs->x.shape[axis] != rhs->x.shape[axis])
            return qg_fail(QG_ERROR_ARGUMENT,
                           "leading axes differ: axis %" PRId32 " is %" PRId64 " and %" PRId64,
                           axis, lhs->x.shape[axis], rhs->x.shape[axis]);
    int32_t dtype = out->dtype;
    *out = lhs->x;
    out->dtype = dtype;
    out->shape[r - 1] = rhs->x.shape[r - 2];
    qg_tensor_type wanted = {.dtype = QG_DTYPE_FP32, .rank = 1, .shape = {out->shape[r - 1]}};
    return bias ? must_be("bias", bias, &wanted) : QG_OK;
}

static qg_status infer_grouped(operand *tokens, operand *experts, const qg_tensor_type *index,
                               const qg_tensor_type *bias, qg_tensor_type *out) {
    qg_scaled_shape shape;
    qg_status status = check_operand(tokens, 2);
    if (!status)
        status = check_operand(experts, 3);
    if (!status)
        status = check_k(tokens, experts);
    if (!status && (tokens->x.rank != 2 || experts->x.rank != 3))
        status = qg_fail(QG_ERROR_ARGUMENT,
                         "tokens have rank 2 and experts rank 3, not %" PRId32 " and %" PRId32,
                         tokens->x.rank, experts->x.rank);
    if (!status)
        status = qg_scaled_shape_of(tokens->recipe, &tokens->x, &shape);
    if (status)
        return status;
    if (shape.recipe.layout.kind == QG_LAYOUT_BLOCK && shape.recipe.layout.rows > 1)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "tokens of one block may go to different experts: recipe %.100s",
                       tokens->recipe);
    int64_t m = tokens->x.shape[0], n = experts->x.shape[1];
    *out = (qg_tensor_type){
        .dtype = out->dtype, .rank = 2, .shape = {m, n}
    };
    qg_tensor_type wanted = {.dtype = QG_DTYPE_I64, .rank = 1, .shape = {m}};
    qg_tensor_type biases = {
        .dtype = QG_DTYPE_FP32, .rank = 2, .shape = {experts->x.shape[0], n}
    };
    status = must_be("expert of each token", index, &wanted);
    return status || !bias ? status : must_be("bias", bias, &biases);
}

static qg_status infer_product(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                               const qg_attributes *attributes, qg_tensor_type *out) {
    graph_product_inputs in;
    bool grouped = op == QG_GRAPH_SCALED_GROUPED_MATMUL;
    qg_status status = graph_product_inputs_of(op, attributes, count, &in);
    if (!status)
        status = check_out(attributes);
    if (status)
        return status;
    operand lhs = {.what = grouped ? "tokens" : "lhs",
                   .recipe = attributes->recipe,
                   .codes = types[in.lhs],
                   .scale = types[in.lhs_scale],
                   .tensor_scale = in.lhs_tensor_scale < 0 ? NULL : types[in.lhs_tensor_scale]};
    operand rhs = {.what = grouped ? "experts" : "rhs",
                   .recipe = attributes->recipe_b,
                   .codes = types[in.rhs],
                   .scale = types[in.rhs_scale],
                   .tensor_scale = in.rhs_tensor_scale < 0 ? NULL : types[in.rhs_tensor_scale]};
    const qg_tensor_type *bias = in.bias < 0 ? NULL : types[in.bias];
    out->dtype = attributes->type.dtype;
    return grouped ? infer_grouped(&lhs, &rhs, types[in.index], bias, out)
                   : infer_matmul(&lhs, &rhs, bias, out);
}

qg_status graph_infer_scaled(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                             const qg_attributes *attributes, qg_tensor_type *out) {
    if (op == QG_GRAPH_SCALED_MATMUL || op == QG_GRAPH_SCALED_GROUPED_MATMUL)
        return infer_product(op, count, types, attributes, out);
    return infer_quantization(op, count, types, attributes->recipe, out);
}
