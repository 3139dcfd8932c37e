// A graph that has every op, every attribute and every dtype, and sources of every kind.
#ifndef EVERY_OP_H
#define EVERY_OP_H

#include <qg_graph.h>
#include <qg_graph_text.h>
#include <require.h>

#include <string.h>

static inline qg_node every_op_add(qg_graph *g, qg_graph_op op, int32_t count,
                                   const qg_node *inputs, qg_attributes attributes,
                                   const char *name) {
    return qg_graph_add_node(g, op, count, inputs, &attributes, name);
}

static inline qg_node every_op_constant(qg_graph *g, const char *name, qg_tensor_type type) {
    static unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(37 * i + 11);
    return qg_graph_constant(g, name, type, bytes);
}

static inline void every_op_sources(qg_graph *g) {
    static const float weights[4] = {1.0f, -2.0f, 0.5f, 0x1p-149f};
    qg_graph_parameter(g, "w.known", qg_tensor(QG_DTYPE_FP32, 2, 2, 2), weights);
    qg_graph_parameter(g, "w.unknown", qg_tensor(QG_DTYPE_BF16, 3, 2, 1, 7), NULL);
    every_op_constant(g, "c.fp32", qg_tensor(QG_DTYPE_FP32, 2, 8, 8)); // 64: written out
    every_op_constant(g, "c.large", qg_tensor(QG_DTYPE_FP32, 2, 5, 13));
    every_op_constant(g, "c.fp16", qg_tensor(QG_DTYPE_FP16, 1, 3));
    every_op_constant(g, "c.bf16", qg_tensor(QG_DTYPE_BF16, 1, 1));
    every_op_constant(g, "c.i64", qg_tensor(QG_DTYPE_I64, 1, 2));
    every_op_constant(g, "c.u8", qg_tensor(QG_DTYPE_U8, 4, 1, 2, 1, 2));
    qg_graph_output(g, qg_graph_scalar(g, -0.0f));
}

static inline void every_op_moves(qg_graph *g) {
    qg_node x = qg_graph_input(g, "x/moves", qg_tensor(QG_DTYPE_FP16, 3, 2, 3, 4));
    qg_node single = qg_graph_input(g, "single", (qg_tensor_type){.dtype = QG_DTYPE_FP32});
    qg_node at = qg_graph_input(g, "at", qg_tensor(QG_DTYPE_I64, 2, 1, 2));
    qg_graph_output(g, qg_graph_transpose(g, x, (const int32_t[]){2, 0, 1}));
    qg_graph_output(g, qg_graph_transpose(g, single, NULL));
    qg_graph_output(g, qg_graph_reshape(g, x, 2, (const int64_t[]){6, 4}));
    qg_graph_output(g, qg_graph_reshape(g, single, 2, (const int64_t[]){1, 1}));
    qg_graph_output(g,
                    qg_graph_slice(g, x, (const int64_t[]){0, 1, 0}, (const int64_t[]){1, 3, 4}));
    qg_graph_output(g, qg_graph_slice(g, single, NULL, NULL));
    qg_graph_output(g, qg_graph_concatenate(g, 3, (const qg_node[]){x, x, x}, 1));
    qg_graph_output(g, qg_graph_gather(g, x, at));
}

static inline void every_op_floats(qg_graph *g) {
    qg_node a = qg_graph_input(g, "a", qg_tensor(QG_DTYPE_FP32, 2, 4, 4));
    qg_node b = qg_graph_input(g, "b", qg_tensor(QG_DTYPE_FP32, 1, 4));
    const int32_t axes[] = {1, 0};
    qg_node y = qg_graph_name(g, qg_graph_matmul(g, a, a), "product-1:y");
    y = qg_graph_add(g, qg_graph_subtract(g, y, b), qg_graph_multiply(g, a, b));
    y = qg_graph_maximum(g, qg_graph_divide(g, y, a), qg_graph_sqrt(g, b));
    y = qg_graph_gelu(g, qg_graph_gelu(g, y, false), true);
    y = qg_graph_softmax(g, qg_graph_tanh(g, qg_graph_relu(g, y)));
    y = qg_graph_layer_norm(g, y, b, b, 1e-12f);
    qg_graph_output(g, qg_graph_layer_norm(g, y, b, b, 0.0f));
    qg_graph_output(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, y, 2, axes, false));
    qg_graph_output(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, y, 1, axes, true));
    qg_node most = qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, y, 1, axes, true);
    const qg_node inputs[] = {y, most, most};
    qg_graph_output(g, qg_graph_cast(g, most, QG_DTYPE_BF16));
    every_op_add(g, QG_GRAPH_RELU_GRADIENT, 2, (const qg_node[]){y, a}, (qg_attributes){0}, NULL);
    every_op_add(g, QG_GRAPH_GELU_GRADIENT, 2, (const qg_node[]){y, a},
                 (qg_attributes){.tanh_form = true}, NULL);
    every_op_add(g, QG_GRAPH_REDUCE_MAX_GRADIENT, 3, inputs,
                 (qg_attributes){.axis_count = 1, .axes = {1}}, NULL);
}

static inline void every_op_scaled(qg_graph *g) {
    static const char *const recipes[] = {"mxfp8",
                                          "nvfp4",
                                          "te_e4m3",
                                          "mx9",
                                          "rlx_mxfp4x2",
                                          "deepseek_act128",
                                          "e5m2/per_row",
                                          "mxfp4//rceil/stochastic:A:16",
                                          "e4m3/block:2x8/fixed:0x1.8p-2"};
    qg_node x = qg_graph_input(g, "x/scaled", qg_tensor(QG_DTYPE_FP32, 2, 4, 40));
    qg_node experts = qg_graph_input(g, "experts", qg_tensor(QG_DTYPE_FP32, 3, 3, 2, 40));
    qg_node index = qg_graph_input(g, "index", qg_tensor(QG_DTYPE_I64, 1, 4));
    qg_node bias = qg_graph_input(g, "bias", qg_tensor(QG_DTYPE_FP32, 1, 4));
    qg_node biases = qg_graph_input(g, "biases", qg_tensor(QG_DTYPE_FP32, 2, 3, 2));
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        qg_scaled q = qg_graph_quantize(g, x, recipes[i]);
        qg_graph_output(g, qg_graph_dequantize(g, q));
        qg_graph_output(g, qg_graph_scaled_matmul(g, q, q, i % 2 ? bias : QG_NODE_NONE,
                                                  i % 2 ? QG_DTYPE_BF16 : QG_DTYPE_FP32));
    }
    qg_scaled tokens = qg_graph_quantize(g, x, "nvfp4");
    qg_scaled shared = qg_graph_quantize(g, experts, "nvfp4_4over6");
    qg_graph_output(
        g, qg_graph_scaled_grouped_matmul(g, tokens, shared, index, biases, QG_DTYPE_BF16));
    qg_attributes seeded = {.seed = 1, .recipe = "mxfp4//rceil/stochastic:A:16"};
    qg_node scale = every_op_add(g, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, seeded, NULL);
    const qg_node scaled[] = {x, scale};
    qg_graph_output(g, every_op_add(g, QG_GRAPH_SCALED_QUANTIZE, 2, scaled, seeded, "seeded/1"));
    seeded.seed = UINT64_MAX;
    qg_graph_output(g, every_op_add(g, QG_GRAPH_SCALED_QUANTIZE, 2, scaled, seeded, "seeded"));
}

static inline qg_graph *every_op_graph(void) {
    qg_graph *g;
    ck_assert_int_eq(qg_graph_create(&g), QG_OK);
    every_op_sources(g);
    every_op_moves(g);
    every_op_floats(g);
    every_op_scaled(g);
    ck_assert_msg(qg_graph_verify(g) == QG_OK, "%s", qg_detail());
    for (int op = 0; op < QG_GRAPH_OP_COUNT; op++)
        REQUIRE(qg_graph_count_op(g, (qg_graph_op)op) > 0, "no %s",
                qg_graph_op_describe((qg_graph_op)op)->name);
    return g;
}

#endif
