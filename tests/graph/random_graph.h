// Random graphs of all float ops, moves and scaled ops, in all float dtypes: valid by construction.
#ifndef RANDOM_GRAPH_H
#define RANDOM_GRAPH_H

#include "run_graph.h"

enum { RANDOM_INPUTS = 6, RANDOM_MOST_ELEMENTS = 20000 };

typedef struct random_graph {
    qg_graph *graph;
    uint64_t state;
    qg_graph_feed feeds[RANDOM_INPUTS];
    void *values[RANDOM_INPUTS];
} random_graph;

// By value: nodes move when others are added.
static inline qg_tensor_type random_type(const random_graph *r, qg_node node) {
    return *qg_graph_node_type(r->graph, node);
}

static inline void random_input(random_graph *r, int i) {
    static const int64_t shapes[RANDOM_INPUTS][3] = {
        {64,   80, 1 },
        {80,   64, 1 },
        {3,    40, 50},
        {9000, 1,  1 },
        {80,   1,  1 },
        {5,    1,  7 }
    };
    static const char *const names[RANDOM_INPUTS] = {"a", "b", "c", "d", "e", "f"};
    static const int32_t ranks[RANDOM_INPUTS] = {2, 2, 3, 1, 1, 3};
    qg_tensor_type type = tensor_of((qg_dtype)(i % 3), ranks[i], shapes[i]);
    int64_t bytes = qg_tensor_bytes(&type), count = qg_tensor_elements(&type);
    r->values[i] = malloc((size_t)bytes);
    REQUIRE(r->values[i], "no memory");
    for (int64_t j = 0; j < count; j++) {
        uint16_t bits = (uint16_t)next_word(&r->state);
        if (type.dtype == QG_DTYPE_FP32)
            ((float *)r->values[i])[j] = next_float(&r->state, 3);
        else
            ((uint16_t *)r->values[i])[j] = bits;
    }
    r->feeds[i] = (qg_graph_feed){names[i], r->values[i]};
    qg_graph_input(r->graph, names[i], type);
}

static inline qg_node random_float(random_graph *r) {
    for (;;) {
        qg_node node = (qg_node)next_below(&r->state, qg_graph_count(r->graph));
        if (qg_dtype_is_float((qg_dtype)random_type(r, node).dtype))
            return node;
    }
}

// A node of x's type, x itself if chance finds no other.
static inline qg_node random_like(random_graph *r, qg_node x) {
    for (int i = 0; i < 20; i++) {
        qg_node y = random_float(r);
        qg_tensor_type a = random_type(r, x), b = random_type(r, y);
        if (qg_tensor_equal(&a, &b))
            return y;
    }
    return x;
}

static inline bool random_fits(qg_tensor_type a, qg_tensor_type b) {
    int64_t count = 1;
    int32_t rank = a.rank > b.rank ? a.rank : b.rank;
    for (int32_t back = 1; back <= rank; back++) {
        int64_t x = back <= a.rank ? a.shape[a.rank - back] : 1;
        int64_t y = back <= b.rank ? b.shape[b.rank - back] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        count *= x > y ? x : y;
    }
    return a.dtype == b.dtype && count <= RANDOM_MOST_ELEMENTS;
}

static inline qg_node random_binary(random_graph *r, qg_node x) {
    qg_node y = x;
    for (int i = 0; i < 20 && y == x; i++) {
        y = random_float(r);
        if (!random_fits(random_type(r, x), random_type(r, y)))
            y = x;
    }
    qg_node inputs[] = {x, y};
    qg_graph_op op = (qg_graph_op)(QG_GRAPH_ADD + next_below(&r->state, 5));
    return qg_graph_add_node(r->graph, op, 2, inputs, NULL, NULL);
}

static inline qg_node random_unary(random_graph *r, qg_node x) {
    qg_attributes a = {.tanh_form = next_word(&r->state) & 1,
                       .type.dtype = (int32_t)next_below(&r->state, 3)};
    static const qg_graph_op ops[] = {QG_GRAPH_SQRT, QG_GRAPH_GELU,    QG_GRAPH_RELU,
                                      QG_GRAPH_TANH, QG_GRAPH_SOFTMAX, QG_GRAPH_CAST};
    qg_graph_op op = ops[next_below(&r->state, random_type(r, x).rank > 0 ? 6 : 4)];
    a.tanh_form = a.tanh_form && op == QG_GRAPH_GELU;
    a.type.dtype = op == QG_GRAPH_CAST ? a.type.dtype : 0;
    return qg_graph_add_node(r->graph, op, 1, &x, &a, NULL);
}

static inline qg_node random_swap(random_graph *r, qg_node x) {
    int32_t axes[QG_RANK_MOST], rank = random_type(r, x).rank;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i;
    for (int32_t i = 0; i < rank; i++) {
        int32_t j = (int32_t)next_below(&r->state, rank), axis = axes[i];
        axes[i] = axes[j];
        axes[j] = axis;
    }
    return qg_graph_transpose(r->graph, x, axes);
}

static inline qg_node random_part(random_graph *r, qg_node x) {
    const qg_tensor_type type = random_type(r, x);
    int64_t begin[QG_RANK_MOST], end[QG_RANK_MOST];
    for (int32_t i = 0; i < type.rank; i++) {
        begin[i] = next_below(&r->state, type.shape[i]) / 2;
        end[i] = begin[i] + 1 + next_below(&r->state, type.shape[i] - begin[i]);
    }
    return qg_graph_slice(r->graph, x, begin, end);
}

static inline qg_node random_move(random_graph *r, qg_node x) {
    const qg_tensor_type type = random_type(r, x);
    int64_t count = qg_tensor_elements(&type), flat[] = {count};
    const int64_t rows[] = {0, 0, type.rank > 0 ? type.shape[0] - 1 : 0};
    switch (next_below(&r->state, type.rank > 0 ? 5 : 3)) {
    case 0: return random_swap(r, x);
    case 1: return qg_graph_reshape(r->graph, x, 1, flat);
    case 2: return random_part(r, x);
    case 3: {
        qg_node parts[] = {x, random_like(r, x)};
        int32_t axis = (int32_t)next_below(&r->state, type.rank);
        bool fits = 2 * count <= RANDOM_MOST_ELEMENTS;
        return qg_graph_concatenate(r->graph, fits ? 2 : 1, parts, axis);
    }
    default: {
        qg_node at = qg_graph_constant(r->graph, NULL, qg_tensor(QG_DTYPE_I64, 1, 3), rows);
        bool fits = count / type.shape[0] * 3 <= RANDOM_MOST_ELEMENTS;
        return fits ? qg_graph_gather(r->graph, x, at) : x;
    }
    }
}

static inline qg_node random_reduction(random_graph *r, qg_node x) {
    qg_attributes a = {.keepdims = true};
    for (int32_t i = 0; i < random_type(r, x).rank; i++)
        if (next_word(&r->state) & 1)
            a.axes[a.axis_count++] = i;
    if (a.axis_count == 0)
        return x;
    qg_graph_op op = (qg_graph_op)(QG_GRAPH_REDUCE_SUM + next_below(&r->state, 3));
    qg_node y = qg_graph_add_node(r->graph, op, 1, &x, &a, NULL);
    if (op != QG_GRAPH_REDUCE_MAX)
        return y;
    const qg_node inputs[] = {x, y, y};
    a.keepdims = false;
    return qg_graph_add_node(r->graph, QG_GRAPH_REDUCE_MAX_GRADIENT, 3, inputs, &a, NULL);
}

static inline qg_node random_gradient(random_graph *r, qg_node x) {
    const qg_node inputs[] = {x, random_like(r, x)};
    bool relu = next_word(&r->state) & 1;
    return qg_graph_add_node(r->graph, relu ? QG_GRAPH_RELU_GRADIENT : QG_GRAPH_GELU_GRADIENT, 2,
                             inputs, NULL, NULL);
}

// x times its transpose, or layer norm by two of its own rows.
static inline qg_node random_rows(random_graph *r, qg_node x) {
    const qg_tensor_type type = random_type(r, x);
    if (type.rank != 2 || type.shape[0] > 128)
        return x;
    const int32_t swap[] = {1, 0};
    if (next_word(&r->state) & 1)
        return qg_graph_matmul(r->graph, x, qg_graph_transpose(r->graph, x, swap));
    int64_t k = type.shape[1], begin[] = {0, 0}, end[] = {1, k};
    qg_node row = qg_graph_slice(r->graph, x, begin, end);
    row = qg_graph_reshape(r->graph, row, 1, &k);
    return qg_graph_layer_norm(r->graph, x, row, row, 1e-5f);
}

static inline qg_node random_scaled(random_graph *r, qg_node x) {
    static const char *const recipes[] = {"mxfp8", "nvfp4", "e4m3", "mxfp4//best/stochastic:A:16"};
    if (random_type(r, x).rank < 1)
        return x;
    const char *recipe = recipes[next_below(&r->state, 4)];
    qg_scaled codes = qg_graph_quantize(r->graph, x, recipe);
    bool is_matrix = random_type(r, x).rank == 2 && random_type(r, x).shape[0] <= 128;
    if (is_matrix && next_word(&r->state) & 1)
        return qg_graph_scaled_matmul(r->graph, codes, codes, QG_NODE_NONE, QG_DTYPE_BF16);
    return qg_graph_dequantize(r->graph, codes);
}

static inline random_graph random_graph_of(uint64_t seed, int32_t ops) {
    random_graph r = {.graph = new_graph(), .state = seed};
    for (int i = 0; i < RANDOM_INPUTS; i++)
        random_input(&r, i);
    qg_node (*const kinds[])(random_graph *, qg_node) = {
        random_binary, random_unary,    random_move,   random_reduction,
        random_rows,   random_gradient, random_scaled, random_binary};
    for (int32_t i = 0; i < ops; i++) {
        int64_t kind = next_below(&r.state, 8);
        qg_node node = kinds[kind](&r, random_float(&r));
        const qg_node *outputs;
        bool is_output = next_below(&r.state, 8) == 0 || i + 1 == ops;
        for (int32_t j = 0; j < qg_graph_outputs(r.graph, &outputs); j++)
            is_output = is_output && outputs[j] != node;
        if (is_output)
            qg_graph_output(r.graph, node);
        require_ok(qg_graph_status(r.graph));
    }
    return r;
}

static inline void random_graph_free(random_graph *r) {
    for (int i = 0; i < RANDOM_INPUTS; i++)
        free(r->values[i]);
    qg_graph_free(r->graph);
}

#endif
