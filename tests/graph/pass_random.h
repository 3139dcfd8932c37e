// Random graphs for tests of passes. `exact`: all values are integers of at most 8 in magnitude,
// sums of products at most 2048, so that binary32, fp16 and E4M3 with power-of-two scales hold them
// all.
#ifndef PASS_RANDOM_H
#define PASS_RANDOM_H

#include "pass_case.h"

#include <stdio.h>

enum { RANDOM_POOL = 256, RANDOM_VALUES = 1 << 16 };

typedef struct random_graph {
    qg_graph *g;
    uint64_t state;
    bool exact;
    qg_node pool[RANDOM_POOL]; // whose values further ops may take
    int count;
} random_graph;

static inline int random_below(random_graph *r, int n) {
    return (int)((block_data_random(&r->state) >> 33) % (uint64_t)n);
}
static inline int64_t random_extent(random_graph *r) { return (int64_t)4 << random_below(r, 4); }
static inline qg_node random_node(random_graph *r) { return r->pool[random_below(r, r->count)]; }
static inline const qg_tensor_type *random_type(const random_graph *r, qg_node x) {
    return qg_graph_node_type(r->g, x);
}

static inline void random_keep(random_graph *r, qg_node x) {
    REQUIRE(x != QG_NODE_NONE, "%s", qg_graph_status(r->g) ? qg_detail() : "");
    if (r->count < RANDOM_POOL)
        r->pool[r->count++] = x;
}

// An input, a parameter or a constant, cast to dtype.
static inline qg_node random_source(random_graph *r, qg_tensor_type type, qg_dtype dtype) {
    static float values[RANDOM_VALUES];
    static const qg_tensor_type all = {QG_DTYPE_FP32, 1, {RANDOM_VALUES}};
    static bool filled;
    if (!filled)
        fill_integers(99, &all, values);
    filled = true;
    type.dtype = QG_DTYPE_FP32;
    int64_t room = RANDOM_VALUES - qg_tensor_elements(&type);
    const float *at = values + block_data_random(&r->state) % (uint64_t)room;
    char name[32];
    snprintf(name, sizeof name, "source/%d", qg_graph_count(r->g));
    int kind = random_below(r, 4);
    qg_node x = kind == 0   ? qg_graph_input(r->g, name, type)
                : kind == 1 ? qg_graph_constant(r->g, name, type, at)
                            : qg_graph_parameter(r->g, name, type, at);
    return dtype == QG_DTYPE_FP32 ? x : qg_graph_cast(r->g, x, dtype);
}

static inline qg_node random_scalar(random_graph *r, float value, qg_node like) {
    qg_dtype dtype = (qg_dtype)random_type(r, like)->dtype;
    qg_node x = qg_graph_scalar(r->g, value);
    return dtype == QG_DTYPE_FP32 ? x : qg_graph_cast(r->g, x, dtype);
}

// x, between -8 and 8.
static inline qg_node random_clamp(random_graph *r, qg_node x) {
    qg_node least = random_scalar(r, -8, x), minus = random_scalar(r, -1, x);
    x = qg_graph_multiply(r->g, qg_graph_maximum(r->g, x, least), minus);
    return qg_graph_multiply(r->g, qg_graph_maximum(r->g, x, least), minus);
}

// --------------------------------------------------------------------------------------------- ops

static inline qg_node random_transposed(random_graph *r, qg_node x) {
    int32_t rank = random_type(r, x)->rank, axes[QG_RANK_MOST];
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    for (int32_t i = rank - 1; i > 0; i--) {
        int j = random_below(r, i + 1);
        int32_t kept = axes[i];
        axes[i] = axes[j];
        axes[j] = kept;
    }
    return qg_graph_transpose(r->g, x, axes);
}

// Whether a times b is a product.
static inline bool random_fits(const random_graph *r, qg_node a, qg_node b) {
    const qg_tensor_type *x = random_type(r, a), *y = random_type(r, b);
    if (x->rank != y->rank || x->rank < 2 || x->dtype != y->dtype ||
        x->shape[x->rank - 1] != y->shape[x->rank - 2])
        return false;
    for (int32_t i = 0; i < x->rank - 2; i++)
        if (x->shape[i] != y->shape[i])
            return false;
    return true;
}

// What there is in the pool, or a new weight: as it is or, as dense layers have it, transposed.
static inline qg_node random_right_side(random_graph *r, qg_node a) {
    qg_tensor_type type = *random_type(r, a);
    int32_t rank = type.rank, axes[QG_RANK_MOST];
    for (int tries = 0; tries < 20; tries++) {
        qg_node b = random_node(r);
        if (random_fits(r, a, b))
            return b;
    }
    bool dense = random_below(r, 2);
    int64_t k = type.shape[rank - 1], n = random_extent(r);
    type.shape[rank - 2] = dense ? n : k;
    type.shape[rank - 1] = dense ? k : n;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    qg_node w = random_source(r, type, (qg_dtype)type.dtype);
    random_keep(r, w);
    return dense ? qg_graph_transpose(r->g, w, axes) : w;
}

static inline void random_product(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    if (type->rank < 2 || type->shape[type->rank - 1] > 32)
        return;
    qg_node y = qg_graph_matmul(r->g, a, random_right_side(r, a));
    if (random_below(r, 4) == 0)
        qg_graph_output(r->g, y);
    random_keep(r, random_clamp(r, y));
}

static inline void random_binary(random_graph *r, qg_node a) {
    qg_node b = random_node(r);
    const qg_tensor_type *type = random_type(r, a);
    if (!qg_tensor_equal(type, random_type(r, b)))
        b = random_source(r,
                          qg_tensor(QG_DTYPE_FP32, 1, type->rank ? type->shape[type->rank - 1] : 1),
                          (qg_dtype)type->dtype);
    qg_node inputs[] = {a, b};
    static const qg_graph_op ops[] = {QG_GRAPH_ADD, QG_GRAPH_SUBTRACT, QG_GRAPH_MULTIPLY,
                                      QG_GRAPH_MAXIMUM};
    qg_graph_op op = ops[random_below(r, 4)];
    random_keep(r, random_clamp(r, qg_graph_add_node(r->g, op, 2, inputs, NULL, NULL)));
}

static inline void random_reshape(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    int64_t rows, k;
    if (type->rank == 0)
        return;
    qg_tensor_matrix(type, &rows, &k);
    if (rows % 4 == 0 && random_below(r, 2))
        random_keep(r, qg_graph_reshape(r->g, a, 3, (int64_t[]){2, rows / 2, k}));
    else
        random_keep(r, qg_graph_reshape(r->g, a, 2, (int64_t[]){rows, k}));
}

static inline void random_slice(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    int64_t begin[QG_RANK_MOST], end[QG_RANK_MOST];
    for (int32_t i = 0; i < type->rank; i++) {
        begin[i] = 0;
        end[i] =
            type->shape[i] % 4 == 0 && random_below(r, 2) ? type->shape[i] / 2 : type->shape[i];
    }
    random_keep(r, qg_graph_slice(r->g, a, begin, end));
}

// Doubles the first axis, which K may not be.
static inline void random_concatenation(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    if (type->rank < 2 || type->shape[0] > 32)
        return;
    qg_node b = qg_graph_relu(r->g, a);
    random_keep(r, qg_graph_concatenate(r->g, 2, (qg_node[]){a, b}, 0));
}

static inline void random_reduction(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    int32_t axis = type->rank - 1;
    if (axis < 0)
        return;
    qg_graph_op op = random_below(r, 2) ? QG_GRAPH_REDUCE_SUM : QG_GRAPH_REDUCE_MAX;
    qg_node reduced = qg_graph_reduce(r->g, op, a, 1, &axis, true);
    random_keep(r, random_clamp(r, qg_graph_add(r->g, a, reduced)));
}

static inline void random_other(random_graph *r, qg_node a) {
    const qg_tensor_type *type = random_type(r, a);
    switch (random_below(r, 5)) {
    case 0: random_keep(r, qg_graph_gelu(r->g, a, random_below(r, 2))); break;
    case 1: random_keep(r, qg_graph_tanh(r->g, a)); break;
    case 2:
        if (type->rank > 0)
            random_keep(r, qg_graph_softmax(r->g, a));
        break;
    case 3: random_keep(r, qg_graph_sqrt(r->g, qg_graph_multiply(r->g, a, a))); break;
    default: random_keep(r, qg_graph_divide(r->g, a, random_scalar(r, 3, a)));
    }
}

static inline void random_step(random_graph *r) {
    qg_node a = random_node(r);
    switch (random_below(r, r->exact ? 13 : 16)) {
    case 0:
    case 1:
    case 2: random_product(r, a); break;
    case 3:
    case 4: random_keep(r, random_transposed(r, a)); break;
    case 5: random_binary(r, a); break;
    case 6: random_keep(r, qg_graph_relu(r->g, a)); break;
    case 7: random_reshape(r, a); break;
    case 8: random_slice(r, a); break;
    case 9: random_reduction(r, a); break;
    case 10:
        random_keep(r, qg_graph_cast(r->g, a, (qg_dtype)random_below(r, QG_DTYPE_BF16 + 1)));
        break;
    case 11:
        random_keep(r, random_source(r, fp32(random_extent(r), random_extent(r)), QG_DTYPE_FP32));
        break;
    case 12: random_concatenation(r, a); break;
    default: random_other(r, a);
    }
}

static inline qg_graph *random_graph_of(uint64_t seed, bool exact) {
    random_graph r = {.state = seed, .exact = exact};
    ck_assert_int_eq(qg_graph_create(&r.g), QG_OK);
    random_keep(&r, qg_graph_input(r.g, "x", fp32(8, 32)));
    random_keep(&r, random_source(&r, fp32(32, 16), QG_DTYPE_FP32));
    for (int step = 0; step < 30; step++)
        random_step(&r);
    for (int i = 0; i < 4; i++) { // an output may be one already
        qg_node last = r.pool[r.count - 1 - i];
        const qg_node *outputs;
        int32_t count = qg_graph_outputs(r.g, &outputs);
        bool is_one = false;
        for (int32_t j = 0; j < count; j++)
            is_one |= outputs[j] == last;
        if (!is_one)
            qg_graph_output(r.g, last);
    }
    REQUIRE(qg_graph_verify(r.g) == QG_OK, "%s", qg_detail());
    return r.g;
}

#endif
