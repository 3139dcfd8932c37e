// What tests of passes share: builders of small graphs, looking at results, and running on values
// that depend on the names of inputs alone.
#ifndef PASS_CASE_H
#define PASS_CASE_H

#include <block_data.h>
#include <qg_digest.h>
#include <qg_graph_pass.h>
#include <qg_graph_text.h>
#include <qg_memory.h>
#include <require.h>

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- building

static qg_graph *graph; // that the test builds

static inline void begin(void) { ck_assert_int_eq(qg_graph_create(&graph), QG_OK); }

static inline qg_tensor_type fp32(int64_t m, int64_t k) {
    return qg_tensor(QG_DTYPE_FP32, 2, m, k);
}
static inline qg_node input(const char *name, int64_t m, int64_t k) {
    return qg_graph_input(graph, name, fp32(m, k));
}
static inline qg_node weight(const char *name, int64_t m, int64_t k) {
    return qg_graph_parameter(graph, name, fp32(m, k), NULL);
}
static inline qg_node named(qg_node node, const char *name) {
    return qg_graph_name(graph, node, name);
}
static inline qg_node product(const char *name, qg_node a, qg_node b) {
    return named(qg_graph_matmul(graph, a, b), name);
}
static inline qg_node swapped(qg_node x) { return qg_graph_transpose(graph, x, (int32_t[]){1, 0}); }

// ----------------------------------------------------------------------------------------- looking

static inline qg_node input_of(const qg_graph *g, qg_node node, int i) {
    const qg_node *inputs;
    ck_assert_int_gt(qg_graph_node_inputs(g, node, &inputs), i);
    return inputs[i];
}

static inline qg_node found(const qg_graph *g, const char *name) {
    qg_node node = qg_graph_find(g, name);
    ck_assert_msg(node != QG_NODE_NONE, "no node %s", name);
    return node;
}

static inline qg_dtype dtype_of(const qg_graph *g, const char *name) {
    return (qg_dtype)qg_graph_node_type(g, found(g, name))->dtype;
}

static inline void is_op(const qg_graph *g, const char *name, qg_graph_op op) {
    ck_assert_str_eq(qg_graph_op_describe(qg_graph_node_op(g, found(g, name)))->name,
                     qg_graph_op_describe(op)->name);
}

static inline char *text_of(const qg_graph *g) {
    char *text;
    ck_assert_msg(qg_graph_print(g, &text, NULL) == QG_OK, "%s", qg_detail());
    return text;
}

// Runs a pass on `graph`, which must stay as it was and is freed; the result must verify.
#define PASSED(out, call)                                                                          \
    do {                                                                                           \
        char *before = text_of(graph);                                                             \
        ck_assert_msg((call) == QG_OK, "%s", qg_detail());                                         \
        char *after = text_of(graph);                                                              \
        ck_assert_str_eq(before, after);                                                           \
        ck_assert_msg(qg_graph_verify(out) == QG_OK, "%s", qg_detail());                           \
        qg_release(before);                                                                        \
        qg_release(after);                                                                         \
        qg_graph_free(graph);                                                                      \
        graph = NULL;                                                                              \
    } while (0)

static inline void same_text(const qg_graph *a, const qg_graph *b) {
    char *of_a = text_of(a), *of_b = text_of(b);
    ck_assert_str_eq(of_a, of_b);
    qg_release(of_a);
    qg_release(of_b);
}

// A graph whose building failed, and that a pass refused it for the same reason.
static inline void begin_failed(void) {
    begin();
    product("y", input("x", 4, 64), weight("w", 63, 16));
}
static inline void failed_again(qg_status status, const qg_graph *out) {
    ck_assert_int_eq(status, QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "K differs"));
    qg_graph_free(graph);
}

// Inserts, and checks the report against the graphs.
static inline qg_graph *inserted(qg_scaling scaling, qg_scaling_report *report) {
    qg_graph *out;
    qg_scaling_report unused, *r = report ? report : &unused;
    ck_assert_msg(qg_graph_status(graph) == QG_OK, "%s", qg_detail());
    int32_t products = qg_graph_count_op(graph, QG_GRAPH_MATMUL);
    PASSED(out, qg_graph_insert_scaled_matmul(graph, &scaling, &out, r));
    ck_assert_int_eq(r->products + r->left_alone, products);
    ck_assert_int_eq(qg_graph_count_op(out, QG_GRAPH_SCALED_MATMUL), r->products);
    ck_assert_int_eq(qg_graph_count_op(out, QG_GRAPH_MATMUL), r->left_alone);
    ck_assert_int_eq(qg_graph_count_op(out, QG_GRAPH_SCALED_QUANTIZE), r->quantized);
    ck_assert_int_eq(qg_graph_count_op(out, QG_GRAPH_SCALED_QUANT_SCALE), r->quantized);
    ck_assert_int_eq(r->quantized + r->reused, 2 * r->products);
    return out;
}

static inline qg_graph *with_mxfp8(qg_scaling_report *report) {
    return inserted((qg_scaling){.lhs = "mxfp8"}, report);
}

// The name of what operand `side` (0, 1) of a scaled product quantizes, after checking that scale
// and codes are of the same.
static inline const char *operand_of(const qg_graph *g, const char *name, int side) {
    qg_node node = qg_graph_find(g, name);
    ck_assert_int_ne(node, QG_NODE_NONE);
    qg_node codes = input_of(g, node, side), scale = input_of(g, node, 2 + side);
    ck_assert_int_eq(qg_graph_node_op(g, codes), QG_GRAPH_SCALED_QUANTIZE);
    ck_assert_int_eq(qg_graph_node_op(g, scale), QG_GRAPH_SCALED_QUANT_SCALE);
    ck_assert_int_eq(input_of(g, codes, 1), scale);
    ck_assert_int_eq(input_of(g, codes, 0), input_of(g, scale, 0));
    return qg_graph_node_name(g, input_of(g, codes, 0));
}

// ----------------------------------------------------------------------------------------- running

// Integers -3 .. 3 of any float dtype, indices 0 .. 1, bytes.
static inline void fill_integers(uint64_t seed, const qg_tensor_type *type, void *out) {
    static const uint16_t fp16[] = {0xC200, 0xC000, 0xBC00, 0, 0x3C00, 0x4000, 0x4200};
    static const uint16_t bf16[] = {0xC040, 0xC000, 0xBF80, 0, 0x3F80, 0x4000, 0x4040};
    for (int64_t i = 0; i < qg_tensor_elements(type); i++) {
        uint64_t word = block_data_random(&seed) >> 20;
        switch (type->dtype) {
        case QG_DTYPE_FP32: ((float *)out)[i] = (float)(word % 7) - 3.0f; break;
        case QG_DTYPE_FP16: ((uint16_t *)out)[i] = fp16[word % 7]; break;
        case QG_DTYPE_BF16: ((uint16_t *)out)[i] = bf16[word % 7]; break;
        case QG_DTYPE_I64: ((int64_t *)out)[i] = (int64_t)(word % 2); break;
        default: ((uint8_t *)out)[i] = (uint8_t)word; break;
        }
    }
}

// Feeds of all inputs, by their names. Freed by the caller with each one's values.
static inline qg_graph_feed *feeds_of(const qg_graph *g, int32_t *count) {
    qg_graph_feed *feeds = calloc((size_t)qg_graph_count(g) + 1, sizeof *feeds);
    *count = 0;
    for (qg_node i = 0; i < qg_graph_count(g); i++) {
        if (qg_graph_node_op(g, i) != QG_GRAPH_INPUT)
            continue;
        const char *name = qg_graph_node_name(g, i);
        const qg_tensor_type *type = qg_graph_node_type(g, i);
        void *values = malloc((size_t)qg_tensor_bytes(type));
        fill_integers(qg_digest_bytes(name, strlen(name)), type, values);
        feeds[(*count)++] = (qg_graph_feed){name, values};
    }
    return feeds;
}

// The bytes of all outputs, one after the other. Freed by the caller.
static inline unsigned char *run_outputs(const qg_graph *g, const qg_graph_run_options *options,
                                         size_t *size) {
    qg_graph_runner *runner;
    int32_t count;
    const qg_node *outputs;
    qg_graph_feed *feeds = feeds_of(g, &count);
    REQUIRE(qg_graph_runner_create(g, options, &runner) == QG_OK, "%s", qg_detail());
    REQUIRE(qg_graph_runner_run(runner, count, feeds) == QG_OK, "%s", qg_detail());
    unsigned char *bytes = NULL;
    *size = 0;
    int32_t output_count = qg_graph_outputs(g, &outputs);
    for (int32_t i = 0; i < output_count; i++) {
        size_t more = (size_t)qg_tensor_bytes(qg_graph_node_type(g, outputs[i]));
        bytes = realloc(bytes, *size + more);
        memcpy(bytes + *size, qg_graph_runner_values(runner, outputs[i]), more);
        *size += more;
    }
    qg_graph_runner_free(runner);
    for (int32_t i = 0; i < count; i++)
        free((void *)(uintptr_t)feeds[i].values);
    free(feeds);
    return bytes;
}

// Whether both graphs have outputs of the same names and bytes.
static inline bool run_alike(const qg_graph *a, const qg_graph *b,
                             const qg_graph_run_options *options) {
    size_t a_size, b_size;
    const qg_node *x, *y;
    int32_t count = qg_graph_outputs(a, &x);
    REQUIRE(qg_graph_outputs(b, &y) == count, "outputs differ");
    for (int32_t i = 0; i < count; i++)
        REQUIRE(strcmp(qg_graph_node_name(a, x[i]), qg_graph_node_name(b, y[i])) == 0,
                "output %d: %s and %s", i, qg_graph_node_name(a, x[i]),
                qg_graph_node_name(b, y[i]));
    unsigned char *of_a = run_outputs(a, options, &a_size),
                  *of_b = run_outputs(b, options, &b_size);
    bool alike = a_size == b_size && memcmp(of_a, of_b, a_size) == 0;
    free(of_a);
    free(of_b);
    return alike;
}

#endif
