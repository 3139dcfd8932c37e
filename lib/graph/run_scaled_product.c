// Scaled products of a graph, handed to a backend matrix by matrix: the matrices of the leading
// axes, and the tokens of each expert. See run_internal.h.
// Codes and scales of one matrix are pointed at where they lie together and gathered where they do
// not (two planes, tokens of an expert). Knows no arithmetic.
#include "run_internal.h"

#include <qg_emulator.h>
#include <qg_memory.h>
#include <qg_recipe_name.h>

#include <inttypes.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- operands

// A quantized tensor as matrices of `rows` rows.
typedef struct operand {
    qg_recipe recipe;
    qg_matmul_operand whole;
    int64_t matrices, rows, k;
    qg_shape all;        // of the tensor
    int64_t scale_rows;  // rows of blocks of one matrix; 0: all share what there is
    int64_t scale_bytes; // of one row of blocks
    uint8_t *gathered;   // the planes of one matrix; NULL where they lie together
} operand;

static int64_t count_matrices(const qg_tensor_type *codes, int32_t first, int32_t end) {
    int64_t count = 1;
    for (int32_t axis = first; axis < end; axis++)
        count *= codes->shape[axis];
    return count;
}

static qg_status open_operand(const char *recipe, const run_input *in, int codes, int scale,
                              int tensor_scale, operand *o) {
    *o = (operand){0};
    qg_status status = qg_recipe_parse(recipe, &o->recipe);
    if (status)
        return status;
    const qg_tensor_type *type = in[codes].type;
    int32_t first = o->recipe.structure == QG_STRUCTURE_RESIDUAL ? 1 : 0;
    o->matrices = count_matrices(type, first, type->rank - 2);
    o->rows = type->shape[type->rank - 2];
    o->k = type->shape[type->rank - 1];
    status = qg_shape_of(&o->recipe, o->matrices * o->rows, o->k, &o->all);
    if (status)
        return status;
    if (o->recipe.layout.kind != QG_LAYOUT_PER_TENSOR)
        o->scale_rows = qg_ceil_divide(o->rows, o->all.blocks.rows);
    o->scale_bytes = o->all.blocks.block_columns * o->all.scale_bytes;
    o->whole = (qg_matmul_operand){.recipe = &o->recipe,
                                   .codes = in[codes].values,
                                   .scales = in[scale].values,
                                   .tensor_scale = 1.0f};
    if (tensor_scale >= 0)
        o->whole.tensor_scale = *(const float *)in[tensor_scale].values;
    return QG_OK;
}

// Room for the codes of `rows` rows, all planes.
static qg_status room_for_planes(operand *o, int64_t rows) {
    void *room;
    qg_status status = qg_allocate(&room, rows * o->k, o->all.planes, "codes of one matrix");
    o->gathered = room;
    return status;
}

static qg_matmul_operand matrix_at(const operand *o, int64_t i) {
    qg_matmul_operand matrix = o->whole;
    int64_t size = o->rows * o->k;
    matrix.scales += i * o->scale_rows * o->scale_bytes;
    matrix.codes += i * size;
    if (!o->gathered)
        return matrix;
    for (int32_t plane = 0; plane < o->all.planes; plane++)
        memcpy(o->gathered + plane * size, matrix.codes + plane * o->matrices * size, (size_t)size);
    matrix.codes = o->gathered;
    return matrix;
}

static bool lies_together(const operand *o) { return o->all.planes == 1 || o->matrices == 1; }

// ----------------------------------------------------------------------------------------- product

typedef struct product {
    const run_scaled *s;
    operand lhs, rhs;
    const float *bias;
    qg_unit unit; // of the emulator
    bool is_emulator;
    qg_matmul_options options;
    int64_t out_bytes; // of one element
} product;

static qg_format out_type_of(const graph_node *node) {
    return node->type.dtype == QG_DTYPE_BF16 ? QG_FORMAT_BF16 : QG_FORMAT_FP32;
}

static bool is_emulator(const qg_backend *backend) {
    return strcmp(backend->name, "emulator") == 0;
}

static void open_unit(const run_scaled *s, const qg_recipe *a, const qg_recipe *b, product *p) {
    p->is_emulator = is_emulator(s->backend);
    p->unit = s->unit;
    if (p->is_emulator)
        qg_unit_fit(&p->unit, a, b);
}

qg_status run_scaled_check(const run_scaled *s, const graph_node *node,
                           const qg_tensor_type *const *types) {
    qg_recipe a, b;
    qg_status status = qg_recipe_parse(node->attributes.recipe, &a);
    if (!status)
        status = qg_recipe_parse(node->attributes.recipe_b, &b);
    if (status)
        return status;
    if (!s->backend->scaled_matmul)
        return qg_fail(QG_ERROR_UNSUPPORTED, "backend %s was built without products",
                       s->backend->name);
    if (!is_emulator(s->backend))
        return QG_OK;
    product p;
    open_unit(s, &a, &b, &p);
    return qg_unit_takes(&p.unit, &a, &b, types[0]->shape[types[0]->rank - 1], out_type_of(node));
}

static qg_status multiply(const product *p, int64_t m, const qg_matmul_operand *a,
                          const qg_matmul_operand *b, const float *bias, void *out,
                          const char **impl) {
    qg_matmul_options options = p->options;
    options.bias = bias;
    return p->s->backend->scaled_matmul(p->is_emulator ? &p->unit : NULL, &options, m, p->rhs.rows,
                                        p->lhs.k, a, b, out, impl);
}

static qg_status multiply_matrices(product *p, uint8_t *out, const char **impl) {
    qg_status status = lies_together(&p->lhs) ? QG_OK : room_for_planes(&p->lhs, p->lhs.rows);
    if (!status && !lies_together(&p->rhs))
        status = room_for_planes(&p->rhs, p->rhs.rows);
    int64_t size = p->lhs.rows * p->rhs.rows * p->out_bytes;
    for (int64_t i = 0; i < p->lhs.matrices && !status; i++) {
        qg_matmul_operand a = matrix_at(&p->lhs, i), b = matrix_at(&p->rhs, i);
        status = multiply(p, p->lhs.rows, &a, &b, p->bias, out + i * size, impl);
    }
    return status;
}

// ----------------------------------------------------------------------------------------- experts

// Tokens in the order of their experts, those of one expert in their own order.
typedef struct dispatch {
    const int64_t *expert; // (m) of each token
    int64_t *order;        // (m)
    int64_t *begin;        // (experts + 1) places in `order`
    uint8_t *scales;       // of the tokens of one expert
    uint8_t *out;          // their products
} dispatch;

static qg_status check_experts(int64_t tokens, int64_t experts, const int64_t *expert) {
    for (int64_t i = 0; i < tokens; i++)
        if (expert[i] < 0 || expert[i] >= experts)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "expert %" PRId64 " of token %" PRId64 " is not below %" PRId64,
                           expert[i], i, experts);
    return QG_OK;
}

// Counting sort: stable.
static void sort_tokens(int64_t tokens, int64_t experts, dispatch *d) {
    for (int64_t i = 0; i < tokens; i++)
        d->begin[d->expert[i] + 1]++;
    for (int64_t e = 0; e < experts; e++)
        d->begin[e + 1] += d->begin[e];
    for (int64_t i = 0; i < tokens; i++)
        d->order[d->begin[d->expert[i]]++] = i;
    for (int64_t e = experts; e > 0; e--)
        d->begin[e] = d->begin[e - 1];
    d->begin[0] = 0;
}

static qg_status open_dispatch(product *p, dispatch *d) {
    int64_t tokens = p->lhs.rows, experts = p->rhs.matrices;
    void *order = NULL, *begin = NULL, *scales = NULL, *out = NULL;
    qg_status status = qg_allocate(&order, tokens, sizeof *d->order, "the order of tokens");
    if (!status)
        status = qg_allocate(&begin, experts + 1, sizeof *d->begin, "the tokens of each expert");
    if (!status && p->lhs.scale_rows)
        status = qg_allocate(&scales, tokens, p->lhs.scale_bytes, "scales of one expert's tokens");
    if (!status)
        status = qg_allocate(&out, tokens * p->rhs.rows, p->out_bytes, "products of one expert");
    if (!status)
        status = room_for_planes(&p->lhs, tokens);
    if (!status && !lies_together(&p->rhs))
        status = room_for_planes(&p->rhs, p->rhs.rows);
    d->order = order, d->begin = begin, d->scales = scales, d->out = out;
    return status;
}

static void close_dispatch(dispatch *d) {
    qg_release(d->order);
    qg_release(d->begin);
    qg_release(d->scales);
    qg_release(d->out);
}

// The operand that `count` tokens are.
static qg_matmul_operand gather_tokens(const operand *tokens, const dispatch *d,
                                       const int64_t *order, int64_t count) {
    qg_matmul_operand rows = tokens->whole;
    int64_t k = tokens->k;
    for (int32_t plane = 0; plane < tokens->all.planes; plane++)
        for (int64_t i = 0; i < count; i++)
            memcpy(tokens->gathered + (plane * count + i) * k,
                   tokens->whole.codes + (plane * tokens->rows + order[i]) * k, (size_t)k);
    rows.codes = tokens->gathered;
    if (!d->scales)
        return rows;
    for (int64_t i = 0; i < count; i++)
        memcpy(d->scales + i * tokens->scale_bytes,
               tokens->whole.scales + order[i] * tokens->scale_bytes, (size_t)tokens->scale_bytes);
    rows.scales = d->scales;
    return rows;
}

static qg_status multiply_expert(const product *p, const dispatch *d, int64_t expert, uint8_t *out,
                                 const char **impl) {
    const int64_t *order = d->order + d->begin[expert];
    int64_t count = d->begin[expert + 1] - d->begin[expert];
    int64_t row_bytes = p->rhs.rows * p->out_bytes;
    if (count == 0)
        return QG_OK;
    qg_matmul_operand a = gather_tokens(&p->lhs, d, order, count), b = matrix_at(&p->rhs, expert);
    const float *bias = p->bias ? p->bias + expert * p->rhs.rows : NULL;
    qg_status status = multiply(p, count, &a, &b, bias, d->out, impl);
    for (int64_t i = 0; i < count && !status; i++)
        memcpy(out + order[i] * row_bytes, d->out + i * row_bytes, (size_t)row_bytes);
    return status;
}

static qg_status multiply_experts(product *p, const int64_t *expert, uint8_t *out,
                                  const char **impl) {
    dispatch d = {.expert = expert};
    qg_status status = check_experts(p->lhs.rows, p->rhs.matrices, expert);
    if (status)
        return status;
    status = open_dispatch(p, &d);
    if (!status)
        sort_tokens(p->lhs.rows, p->rhs.matrices, &d);
    for (int64_t e = 0; e < p->rhs.matrices && !status; e++)
        status = multiply_expert(p, &d, e, out, impl);
    close_dispatch(&d);
    return status;
}

// ------------------------------------------------------------------------------------------ border

static qg_status open_product(const run_scaled *s, const graph_node *node, const run_input *in,
                              const graph_product_inputs *at, product *p) {
    const qg_attributes *attributes = &node->attributes;
    *p = (product){.s = s};
    qg_status status =
        open_operand(attributes->recipe, in, at->lhs, at->lhs_scale, at->lhs_tensor_scale, &p->lhs);
    if (!status)
        status = open_operand(attributes->recipe_b, in, at->rhs, at->rhs_scale,
                              at->rhs_tensor_scale, &p->rhs);
    if (status)
        return status;
    open_unit(s, &p->lhs.recipe, &p->rhs.recipe, p);
    p->bias = at->bias < 0 ? NULL : in[at->bias].values;
    p->options = (qg_matmul_options){.out_type = out_type_of(node), .threads = s->threads};
    p->out_bytes = qg_dtype_bytes((qg_dtype)node->type.dtype);
    return QG_OK;
}

qg_status run_product(const run_scaled *s, const graph_node *node, const run_input *in, void *out,
                      const char **impl) {
    graph_product_inputs at;
    product p;
    qg_status status = graph_product_inputs_of(node->op, &node->attributes, node->input_count, &at);
    if (status)
        return status;
    status = open_product(s, node, in, &at, &p);
    if (status)
        return status;
    status = at.index < 0 ? multiply_matrices(&p, out, impl)
                          : multiply_experts(&p, in[at.index].values, out, impl);
    qg_release(p.lhs.gathered);
    qg_release(p.rhs.gathered);
    return status;
}
