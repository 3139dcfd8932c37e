// What the tests of gradients of scaled products run: inputs by name, products of operands, the
// backward products of quantized gradients as one builds them by hand.
#ifndef GRADIENT_BENCH_H
#define GRADIENT_BENCH_H

#include <gradient_case.h>
#include <require.h>

#include <qg_data.h>
#include <qg_graph_run.h>

#include <math.h>

enum { BATCH = 2, M = 5, N = 6, K = 40, EXPERTS = 3, VALUES_MOST = BATCH * 40 * 40 };

// Pairs of recipes of a left and a right operand.
static const char *const RECIPES[][2] = {
    {"e4m3",                    "e4m3"                   },
    {"e4m3/per_row",            "e5m2"                   },
    {"mxfp8",                   "mxfp8"                  },
    {"mxfp8",                   "mxfp4"                  },
    {"deepseek_act128",         "deepseek_w128x128"      },
    {"nvfp4",                   "nvfp4"                  }, // a tensor scale each
    {"e4m3",                    "nvfp4_4over6"           },
    {"nvfp4",                   "mxint8"                 },
    {"mx9",                     "mx6"                    }, // pair shifts
    {"rlx_mxfp4x2",             "rlx_mxfp4x2"            }, // two planes
    {"mxfp8",                   "rlx_mxfp4x2"            },
    {"te_e4m3",                 "te_e5m2"                }, // rule amax_mul
    {"mxfp8//floor/stochastic", "mxfp8//floor/stochastic"},
};
enum { RECIPE_COUNT = sizeof RECIPES / sizeof *RECIPES };

typedef struct bench {
    qg_graph *graph;
    qg_graph_runner *runner;
    int32_t count;
    qg_graph_feed feeds[8];
    float values[8][VALUES_MOST];
    int64_t indices[M];
} bench;

// An fp32 input of normal data with outliers, the same for each name in every graph.
static inline qg_node data(qg_graph *g, const char *name, int32_t rank, const int64_t *shape) {
    qg_tensor_type type = {QG_DTYPE_FP32, rank, {0}};
    memcpy(type.shape, shape, (size_t)rank * sizeof *shape);
    return qg_graph_input(g, name, type);
}

static inline void run(bench *b) {
    qg_graph_run_options options = {.threads = 1};
    qg_law *law;
    ck_assert_int_eq(qg_law_parse("outliers:30", &law), QG_OK);
    b->count = 0;
    for (qg_node i = 0; i < qg_graph_count(b->graph); i++) {
        if (qg_graph_node_op(b->graph, i) != QG_GRAPH_INPUT)
            continue;
        const qg_tensor_type *type = qg_graph_node_type(b->graph, i);
        const char *name = qg_graph_node_name(b->graph, i);
        const void *values = b->indices;
        if (type->dtype == QG_DTYPE_FP32) {
            ck_assert_int_le(qg_tensor_elements(type), VALUES_MOST);
            qg_law_generate(law, (uint64_t)name[0], 0, 16, 0, (qg_tensor_elements(type) + 15) / 16,
                            b->values[b->count]);
            values = b->values[b->count];
        }
        b->feeds[b->count++] = (qg_graph_feed){name, values};
    }
    qg_law_free(law);
    qg_status status = qg_graph_runner_create(b->graph, &options, &b->runner);
    if (!status)
        status = qg_graph_runner_run(b->runner, b->count, b->feeds);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
}

static inline void done(bench *b) {
    qg_graph_runner_free(b->runner);
    qg_graph_free(b->graph);
}

static inline const float *values_of(const bench *b, const char *name) {
    const float *values = qg_graph_runner_values(b->runner, qg_graph_find(b->graph, name));
    ck_assert_msg(values != NULL, "no values of %s", name);
    return values;
}

// Sum of y times the input c: the gradient of y is c, rounded to y's dtype.
static inline qg_node weighted(qg_graph *g, qg_node y) {
    const qg_tensor_type *type = qg_graph_node_type(g, y);
    qg_node c = data(g, "c", type->rank, type->shape);
    return total(g, qg_graph_multiply(g, qg_graph_cast(g, y, QG_DTYPE_FP32), c));
}

static inline void same(const float *a, const float *b, int64_t count, const char *what,
                        const char *of) {
    for (int64_t i = 0; i < count; i++)
        REQUIRE(memcmp(&a[i], &b[i], sizeof *a) == 0, "%s of %s, element %lld: %a, not %a", what,
                of, (long long)i, (double)a[i], (double)b[i]);
}

// out (m, n) = a (m, k) b (k, n), each element a chain of fused multiply-adds.
static inline void chain(const float *a, bool a_turned, const float *b, int64_t m, int64_t n,
                         int64_t k, float *out) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum = fmaf(a_turned ? a[l * m + i] : a[i * k + l], b[l * n + j], sum);
            out[i * n + j] = sum;
        }
}

static inline qg_node turned(qg_graph *g, qg_node x) {
    int32_t axes[] = {0, 2, 1}, two[] = {1, 0};
    return qg_graph_transpose(g, x, qg_graph_node_type(g, x)->rank == 3 ? axes : two);
}

// What the backward pass must be, with dy as an input.
static inline void add_by_hand(qg_graph *g, const char *const recipes[2], const char *gradient) {
    qg_node left = qg_graph_find(g, "left"), right = qg_graph_find(g, "right");
    qg_node dy = qg_graph_find(g, "c");
    qg_node x = qg_graph_scaled_matmul(g, qg_graph_quantize(g, dy, gradient),
                                       qg_graph_quantize(g, turned(g, right), recipes[1]),
                                       QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node w = qg_graph_scaled_matmul(g, qg_graph_quantize(g, turned(g, dy), gradient),
                                       qg_graph_quantize(g, turned(g, left), recipes[0]),
                                       QG_NODE_NONE, QG_DTYPE_FP32);
    qg_graph_output(g, qg_graph_name(g, x, "by_hand/x"));
    qg_graph_output(g, qg_graph_name(g, w, "by_hand/w"));
}

#endif
