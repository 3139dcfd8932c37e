// Runs single ops and whole graphs in tests, on values that the test holds.
#ifndef RUN_GRAPH_H
#define RUN_GRAPH_H

#include <qg_bits.h>
#include <qg_graph_run.h>
#include <require.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct operand {
    qg_tensor_type type;
    const void *values;
} operand;

static inline void require_ok(qg_status status) {
    REQUIRE(status == QG_OK, "%s: %s", qg_status_text(status), qg_detail());
}

static inline qg_graph *new_graph(void) {
    qg_graph *graph;
    require_ok(qg_graph_create(&graph));
    return graph;
}

static inline qg_graph_runner *new_runner(const qg_graph *graph,
                                          const qg_graph_run_options *options) {
    qg_graph_runner *runner;
    require_ok(qg_graph_runner_create(graph, options, &runner));
    return runner;
}

static inline void *copy_of_bytes(const void *bytes, int64_t size) {
    void *copy = malloc((size_t)size);
    REQUIRE(copy, "no memory");
    memcpy(copy, bytes, (size_t)size);
    return copy;
}

// The output of one op, to be freed. attributes may be NULL, out_type too.
static inline void *run_op(qg_graph_op op, const qg_attributes *attributes, int32_t count,
                           const operand *in, int threads, qg_tensor_type *out_type) {
    qg_graph *graph = new_graph();
    qg_node nodes[64];
    qg_graph_feed feeds[64];
    char names[64][16];
    for (int32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "in%d", (int)i);
        nodes[i] = qg_graph_input(graph, names[i], in[i].type);
        feeds[i] = (qg_graph_feed){names[i], in[i].values};
    }
    qg_node node =
        qg_graph_output(graph, qg_graph_add_node(graph, op, count, nodes, attributes, "op"));
    require_ok(qg_graph_status(graph));
    qg_graph_runner *runner = new_runner(graph, &(qg_graph_run_options){.threads = threads});
    require_ok(qg_graph_runner_run(runner, count, feeds));
    const qg_tensor_type *type = qg_graph_node_type(graph, node);
    void *out = copy_of_bytes(qg_graph_runner_values(runner, node), qg_tensor_bytes(type));
    if (out_type)
        *out_type = *type;
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    return out;
}

// -------------------------------------------------------------------------------------------- data

// splitmix64
static inline uint64_t next_word(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline int64_t next_below(uint64_t *state, int64_t bound) {
    return (int64_t)(next_word(state) >> 1) % bound;
}

// In (-limit, limit), on a grid of 2^-24 of it: sums of them round.
static inline float next_float(uint64_t *state, float limit) {
    return limit * ((float)(next_word(state) >> 40) * 0x1p-23f - 1);
}

static inline void fill_floats(uint64_t seed, int64_t count, float limit, float *out) {
    for (int64_t i = 0; i < count; i++)
        out[i] = next_float(&seed, limit);
}

static inline qg_tensor_type tensor_of(qg_dtype dtype, int32_t rank, const int64_t *shape) {
    qg_tensor_type type = {.dtype = dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        type.shape[i] = shape[i];
    return type;
}

// ------------------------------------------------------------------------------------ places, bits

// The place along each axis of the index-th element, and back.
static inline void unravel(const qg_tensor_type *type, int64_t index, int64_t *place) {
    for (int32_t i = type->rank - 1; i >= 0; i--) {
        place[i] = index % type->shape[i];
        index /= type->shape[i];
    }
}

static inline int64_t ravel(const qg_tensor_type *type, const int64_t *place) {
    int64_t index = 0;
    for (int32_t i = 0; i < type->rank; i++)
        index = index * type->shape[i] + place[i];
    return index;
}

// As results have it: every NaN is 7fffffff.
static inline uint32_t result_bits(float x) { return x == x ? qg_bits_of_float(x) : 0x7fffffffu; }

static inline bool same_bits(float a, float b) {
    return qg_bits_of_float(a) == qg_bits_of_float(b);
}

#endif
