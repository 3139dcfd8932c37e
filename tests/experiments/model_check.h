// What the tests of both models share: running a graph, references from datasets/, and twins of a
// graph that are wrong in one thing each.
#ifndef MODEL_CHECK_H
#define MODEL_CHECK_H

#include "model.h"
#include "transformer.h"

#include <check.h>
#include <math.h>
#include <qg_data_dir.h>
#include <qg_tensor_file.h>
#include <qg_unit.h>
#include <stdlib.h>
#include <string.h>

// The gate: largest absolute difference of normalised embeddings from the reference.
#define MODEL_GATE 1e-5

// ---------------------------------------------------------------------------------------- running

static inline qg_graph_runner *run_graph(const qg_graph *graph, int32_t count,
                                         const qg_graph_feed *feeds) {
    qg_graph_run_options options = {.threads = 2, .keep = true};
    qg_graph_runner *runner;
    ck_assert_msg(qg_graph_runner_create(graph, &options, &runner) == QG_OK, "%s", qg_detail());
    ck_assert_msg(qg_graph_runner_run(runner, count, feeds) == QG_OK, "%s", qg_detail());
    return runner;
}

static inline qg_node node_of(const qg_graph *graph, const char *name) {
    qg_node node = qg_graph_find(graph, name);
    ck_assert_msg(node != QG_NODE_NONE, "no node %s", name);
    return node;
}

static inline const float *values_of(const qg_graph *graph, const qg_graph_runner *runner,
                                     const char *name) {
    const float *values = qg_graph_runner_values(runner, node_of(graph, name));
    ck_assert_msg(values != NULL, "no values of %s", name);
    return values;
}

// ------------------------------------------------------------------------------------- references

typedef struct reference {
    float *values; // (m, k), to be freed
    int64_t m, k;
} reference;

static inline reference read_reference(const char *file, const char *name) {
    char path[1024];
    qg_tensor_file *tensors;
    ck_assert_msg(qg_data_file(file, path, sizeof path) == QG_OK, "%s", qg_detail());
    ck_assert_msg(qg_tensor_file_open(path, &tensors) == QG_OK, "%s", qg_detail());
    int64_t index = qg_tensor_file_find(tensors, name);
    ck_assert_msg(index >= 0, "%s has no %s", path, name);
    qg_tensor_info info = qg_tensor_file_info(tensors, index);
    reference out = {malloc((size_t)(info.m * info.k) * sizeof(float)), info.m, info.k};
    ck_assert_ptr_nonnull(out.values);
    ck_assert_msg(qg_tensor_file_read(tensors, index, out.values) == QG_OK, "%s", qg_detail());
    qg_tensor_file_close(tensors);
    return out;
}

// Infinite where a value is NaN.
static inline double largest_difference(int64_t count, const float *a, const float *b) {
    double largest = 0;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= largest))
            largest = difference == difference ? difference : (double)INFINITY;
    }
    return largest;
}

// The same of the output of a graph from the first rows of the reference.
static inline double embedding_difference(const qg_graph *graph, int32_t count,
                                          const qg_graph_feed *feeds, const reference *r) {
    qg_graph_runner *runner = run_graph(graph, count, feeds);
    const qg_tensor_type *type = qg_graph_node_type(graph, node_of(graph, "embedding"));
    ck_assert_int_eq(type->rank, 2);
    ck_assert_int_le(type->shape[0], r->m);
    ck_assert_int_eq(type->shape[1], r->k);
    double difference = largest_difference(qg_tensor_elements(type),
                                           values_of(graph, runner, "embedding"), r->values);
    qg_graph_runner_free(runner);
    return difference;
}

// ----------------------------------------------------------------------------------- other extents

static inline qg_status weight_of_graph(void *context, const char *name, const qg_tensor_type *type,
                                        const void **values) {
    const qg_graph *graph = context;
    qg_node node = node_of(graph, name);
    ck_assert_int_eq(qg_tensor_equal(qg_graph_node_type(graph, node), type), true);
    *values = qg_graph_node_values(graph, node);
    return QG_OK;
}

// The transformer with a model's weights, for other sentences. The model must outlive it.
static inline qg_graph *graph_for(const model *m, const transformer_shape *shape, int64_t sentences,
                                  int64_t tokens) {
    const qg_graph *weights = model_graph(m);
    const transformer_weights find = {weight_of_graph, (void *)(uintptr_t)weights};
    qg_graph *graph;
    qg_status status = transformer_build(shape, &find, sentences, tokens, &graph);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return graph;
}

// ------------------------------------------------------------------------------------------- twins

// X(ID, name)
#define MODEL_TWIN_TABLE(X)                                                                        \
    X(NONE, "no fault")                                                                            \
    X(TANH, "gelu in its tanh form")                                                               \
    X(EPS, "eps of layer norm 1e-5")                                                               \
    X(UNMASKED, "scores without mask")                                                             \
    X(UNSCALED, "scores without 1 / sqrt(size of a head)")                                         \
    X(POOLED_PADDING, "sums over padding, too")                                                    \
    X(POSITION, "positions that begin at 1")                                                       \
    X(TYPE, "row 1 of the type table")

typedef enum model_twin {
#define MODEL_TWIN_ENUM(ID, name) TWIN_##ID,
    MODEL_TWIN_TABLE(MODEL_TWIN_ENUM)
#undef MODEL_TWIN_ENUM
        TWIN_COUNT
} model_twin;

static inline const char *twin_name(model_twin twin) {
    static const char *const NAMES[] = {
#define MODEL_TWIN_NAME(ID, name) name,
        MODEL_TWIN_TABLE(MODEL_TWIN_NAME)
#undef MODEL_TWIN_NAME
    };
    return NAMES[twin];
}

static inline bool name_ends_with(const char *name, const char *end) {
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

// Whether the twin lacks this node: its first input then takes its place.
static inline bool twin_lacks(model_twin twin, const qg_graph *graph, qg_node node) {
    const char *name = qg_graph_node_name(graph, node);
    qg_graph_op op = qg_graph_node_op(graph, node);
    switch (twin) {
    case TWIN_UNMASKED: return name_ends_with(name, "/masked_scores");
    case TWIN_UNSCALED: return name_ends_with(name, "/scores");
    case TWIN_POOLED_PADDING: // the one product of rank 3
        return op == QG_GRAPH_MULTIPLY && qg_graph_node_type(graph, node)->rank == 3;
    default: return false;
    }
}

static inline void twin_attributes(model_twin twin, qg_graph_op op, qg_attributes *attributes) {
    if (twin == TWIN_TANH && op == QG_GRAPH_GELU)
        attributes->tanh_form = true;
    if (twin == TWIN_EPS && op == QG_GRAPH_LAYER_NORM)
        attributes->eps = 1e-5f;
    if (twin == TWIN_POSITION && op == QG_GRAPH_SLICE) {
        attributes->begin[1]++;
        attributes->end[1]++;
    }
}

static inline qg_node twin_node(model_twin twin, const qg_graph *from, qg_node node,
                                const qg_node *map, qg_graph *to) {
    const qg_node *inputs;
    qg_node mapped[8];
    int32_t count = qg_graph_node_inputs(from, node, &inputs);
    qg_graph_op op = qg_graph_node_op(from, node);
    const char *name = qg_graph_node_name(from, node);
    qg_tensor_type type = *qg_graph_node_type(from, node);
    const void *values = qg_graph_node_values(from, node);
    qg_attributes attributes = *qg_graph_node_attributes(from, node);
    ck_assert_int_le(count, 8);
    for (int32_t i = 0; i < count; i++)
        mapped[i] = map[inputs[i]];
    if (twin_lacks(twin, from, node))
        return mapped[0];
    if (op == QG_GRAPH_PARAMETER)
        return qg_graph_parameter(to, name, type, values);
    if (op == QG_GRAPH_CONSTANT) {
        static const int64_t ONE = 1;
        bool row = twin == TWIN_TYPE && type.dtype == QG_DTYPE_I64;
        return qg_graph_constant(to, name, type, row ? &ONE : values);
    }
    twin_attributes(twin, op, &attributes);
    return qg_graph_add_node(to, op, count, mapped, &attributes, name);
}

// The graph with one fault.
static inline qg_graph *twin_of(const qg_graph *graph, model_twin twin) {
    qg_graph *made;
    ck_assert_int_eq(qg_graph_create(&made), QG_OK);
    int32_t count = qg_graph_count(graph);
    qg_node *map = malloc((size_t)count * sizeof *map);
    ck_assert_ptr_nonnull(map);
    for (qg_node node = 0; node < count; node++)
        map[node] = twin_node(twin, graph, node, map, made);
    qg_graph_output(made, map[node_of(graph, "embedding")]);
    free(map);
    ck_assert_msg(qg_graph_status(made) == QG_OK, "%s: %s", twin_name(twin), qg_detail());
    return made;
}

#endif
