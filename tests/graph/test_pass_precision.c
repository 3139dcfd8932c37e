// Automatic mixed precision: which nodes compute in 16 bits, where casts stand, which keep their
// dtypes and names, and how it goes together with scaled products.
#include "every_op.h"
#include "pass_case.h"

#include <run_suite.h>

static qg_graph *lowered(qg_dtype dtype) {
    qg_graph *out;
    ck_assert_msg(qg_graph_status(graph) == QG_OK, "%s", qg_detail());
    PASSED(out, qg_graph_lower_precision(graph, dtype, &out));
    return out;
}

static int32_t casts(const qg_graph *g) { return qg_graph_count_op(g, QG_GRAPH_CAST); }

// What input i of a node computes: its dtype, and the name behind a cast.
static void takes(const qg_graph *g, const char *name, int i, qg_dtype dtype, bool cast,
                  const char *of) {
    qg_node x = input_of(g, found(g, name), i);
    ck_assert_str_eq(qg_dtype_name((qg_dtype)qg_graph_node_type(g, x)->dtype),
                     qg_dtype_name(dtype));
    ck_assert_int_eq(qg_graph_node_op(g, x) == QG_GRAPH_CAST, cast);
    ck_assert_str_eq(qg_graph_node_name(g, cast ? input_of(g, x, 0) : x), of);
}

START_TEST(a_product_computes_in_the_low_dtype) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        qg_dtype low = bf16 ? QG_DTYPE_BF16 : QG_DTYPE_FP16;
        begin();
        qg_node y = product("y", input("x", 4, 8), weight("w", 8, 4));
        qg_graph_output(graph, named(qg_graph_softmax(graph, y), "z"));
        qg_graph *g = lowered(low);
        ck_assert_int_eq(dtype_of(g, "y"), low);
        takes(g, "y", 0, low, true, "x");
        takes(g, "y", 1, low, true, "w");
        takes(g, "z", 0, QG_DTYPE_FP32, true, "y");
        ck_assert_int_eq(dtype_of(g, "z"), QG_DTYPE_FP32);
        ck_assert_int_eq(dtype_of(g, "x"), QG_DTYPE_FP32);
        ck_assert_int_eq(dtype_of(g, "w"), QG_DTYPE_FP32);
        qg_graph_free(g);
    }
}
END_TEST

START_TEST(casts_are_there_once_for_each_node_and_dtype) {
    begin();
    qg_node x = input("x", 4, 4);
    qg_node a = product("a", x, x), b = product("b", x, x);
    qg_graph_output(graph, qg_graph_softmax(graph, a));
    qg_graph_output(graph, qg_graph_sqrt(graph, a));
    qg_graph_output(graph, qg_graph_sqrt(graph, b));
    qg_graph *g = lowered(QG_DTYPE_FP16);
    ck_assert_int_eq(casts(g), 3); // x down, a and b up
    qg_graph_free(g);
}
END_TEST

START_TEST(an_output_keeps_its_name_and_dtype_by_a_cast) {
    begin();
    qg_node y = qg_graph_output(graph, product("y", input("x", 4, 4), weight("w", 4, 4)));
    qg_graph_output(graph, named(qg_graph_relu(graph, y), "z"));
    qg_graph *g = lowered(QG_DTYPE_FP16);
    is_op(g, "y", QG_GRAPH_CAST);
    is_op(g, "z", QG_GRAPH_CAST);
    ck_assert_int_eq(dtype_of(g, "y"), QG_DTYPE_FP32);
    ck_assert_int_eq(dtype_of(g, "z"), QG_DTYPE_FP32);
    qg_node lowered_y = input_of(g, found(g, "y"), 0), lowered_z = input_of(g, found(g, "z"), 0);
    ck_assert_int_eq(qg_graph_node_op(g, lowered_y), QG_GRAPH_MATMUL);
    ck_assert_int_eq(input_of(g, lowered_z, 0), lowered_y); // not through the cast
    qg_graph_free(g);
}
END_TEST

// A node `y` of each op whose inputs all come of products.
static qg_node after_products(qg_graph_op op) {
    qg_node a = product("a", input("x", 4, 4), weight("w", 4, 4));
    qg_node b = product("b", input("u", 4, 4), weight("v", 4, 4));
    qg_node gain = qg_graph_parameter(graph, "gain", qg_tensor(QG_DTYPE_FP32, 1, 4), NULL);
    qg_node at = qg_graph_input(graph, "at", qg_tensor(QG_DTYPE_I64, 1, 2));
    static const int32_t axis[] = {1};
    static const qg_attributes none = {0};
    switch (op) {
    case QG_GRAPH_TRANSPOSE: return swapped(a);
    case QG_GRAPH_RESHAPE: return qg_graph_reshape(graph, a, 1, (int64_t[]){16});
    case QG_GRAPH_SLICE: return qg_graph_slice(graph, a, (int64_t[]){0, 1}, (int64_t[]){2, 3});
    case QG_GRAPH_CONCATENATE: return qg_graph_concatenate(graph, 2, (qg_node[]){a, b}, 0);
    case QG_GRAPH_GATHER: return qg_graph_gather(graph, a, at);
    case QG_GRAPH_REDUCE_SUM:
    case QG_GRAPH_REDUCE_MEAN:
    case QG_GRAPH_REDUCE_MAX: return qg_graph_reduce(graph, op, a, 1, axis, true);
    case QG_GRAPH_LAYER_NORM: return qg_graph_layer_norm(graph, a, gain, gain, 1e-5f);
    default:
        return qg_graph_add_node(graph, op, qg_graph_op_describe(op)->fewest, (qg_node[]){a, b},
                                 &none, NULL);
    }
}

static qg_dtype dtype_after_products(qg_graph_op op) {
    begin();
    named(after_products(op), "y");
    qg_graph_output(graph, qg_graph_sqrt(graph, found(graph, "y")));
    qg_graph *g = lowered(QG_DTYPE_BF16);
    qg_dtype dtype = dtype_of(g, "y");
    takes(g, "y", 0, dtype, dtype == QG_DTYPE_FP32, "a");
    qg_graph_free(g);
    return dtype;
}

START_TEST(products_pointwise_ops_and_moves_are_lowered) {
    static const qg_graph_op ops[] = {
        QG_GRAPH_MATMUL, QG_GRAPH_TRANSPOSE,     QG_GRAPH_RESHAPE,      QG_GRAPH_SLICE,
        QG_GRAPH_ADD,    QG_GRAPH_SUBTRACT,      QG_GRAPH_MULTIPLY,     QG_GRAPH_MAXIMUM,
        QG_GRAPH_GELU,   QG_GRAPH_RELU,          QG_GRAPH_TANH,         QG_GRAPH_CONCATENATE,
        QG_GRAPH_GATHER, QG_GRAPH_RELU_GRADIENT, QG_GRAPH_GELU_GRADIENT};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        ck_assert_msg(dtype_after_products(ops[i]) == QG_DTYPE_BF16, "%s",
                      qg_graph_op_describe(ops[i])->name);
}
END_TEST

START_TEST(sums_quotients_roots_and_norms_are_not) {
    static const qg_graph_op ops[] = {
        QG_GRAPH_SOFTMAX,    QG_GRAPH_LAYER_NORM, QG_GRAPH_REDUCE_SUM, QG_GRAPH_REDUCE_MEAN,
        QG_GRAPH_REDUCE_MAX, QG_GRAPH_SQRT,       QG_GRAPH_DIVIDE};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        ck_assert_msg(dtype_after_products(ops[i]) == QG_DTYPE_FP32, "%s",
                      qg_graph_op_describe(ops[i])->name);
}
END_TEST

START_TEST(what_combines_or_moves_fp32_alone_stays_fp32) {
    begin();
    // A mask times a number that fp16 does not have: 0 times infinity if it were lowered.
    qg_node mask = input("mask", 4, 4);
    qg_node bias = named(qg_graph_multiply(graph, mask, qg_graph_scalar(graph, -1e38f)), "bias");
    qg_node turned = named(swapped(bias), "turned");
    qg_node y = named(qg_graph_add(graph, product("scores", mask, mask), turned), "y");
    qg_graph_output(graph, qg_graph_softmax(graph, y));
    qg_graph *g = lowered(QG_DTYPE_FP16);
    ck_assert_int_eq(dtype_of(g, "bias"), QG_DTYPE_FP32);
    ck_assert_int_eq(dtype_of(g, "turned"), QG_DTYPE_FP32);
    ck_assert_int_eq(dtype_of(g, "y"), QG_DTYPE_FP16);
    takes(g, "y", 1, QG_DTYPE_FP16, true, "turned");
    qg_graph_free(g);
}
END_TEST

START_TEST(indices_and_bytes_are_never_cast) {
    begin();
    qg_node at = qg_graph_input(graph, "at", qg_tensor(QG_DTYPE_I64, 2, 2, 2));
    qg_node turned = named(swapped(at), "turned");
    qg_node table = product("table", input("x", 4, 4), weight("w", 4, 4));
    qg_node bytes = qg_graph_input(graph, "bytes", qg_tensor(QG_DTYPE_U8, 2, 4, 4));
    qg_graph_output(graph, named(swapped(bytes), "codes"));
    qg_graph_output(graph, named(qg_graph_gather(graph, table, turned), "rows"));
    qg_graph *g = lowered(QG_DTYPE_FP16);
    ck_assert_int_eq(dtype_of(g, "turned"), QG_DTYPE_I64);
    ck_assert_int_eq(dtype_of(g, "codes"), QG_DTYPE_U8);
    ck_assert_int_eq(input_of(g, input_of(g, found(g, "rows"), 0), 1), found(g, "turned"));
    qg_graph_free(g);
}
END_TEST

START_TEST(nodes_of_16_bits_stay_as_they_are) {
    begin();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_BF16, 2, 4, 4));
    qg_node y = product("y", x, x);
    qg_graph_output(graph, named(qg_graph_relu(graph, y), "z"));
    char *before = text_of(graph);
    qg_graph *g = lowered(QG_DTYPE_FP16);
    char *after = text_of(g);
    ck_assert_str_eq(before, after);
    qg_release(before);
    qg_release(after);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_cast_of_a_lowered_node_rounds_what_was_computed) {
    begin();
    qg_node y = product("y", input("x", 4, 4), weight("w", 4, 4));
    qg_graph_output(graph, named(qg_graph_cast(graph, y, QG_DTYPE_BF16), "z"));
    qg_graph *g = lowered(QG_DTYPE_FP16);
    takes(g, "z", 0, QG_DTYPE_FP16, false, "y");
    ck_assert_int_eq(dtype_of(g, "z"), QG_DTYPE_BF16);
    ck_assert_int_eq(casts(g), 3);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_second_lowering_changes_nothing) {
    graph = every_op_graph();
    qg_graph *g = lowered(QG_DTYPE_FP16), *again;
    ck_assert_int_eq(qg_graph_lower_precision(g, QG_DTYPE_FP16, &again), QG_OK);
    same_text(g, again);
    qg_graph_free(again);
    qg_graph_free(g);
}
END_TEST

START_TEST(other_dtypes_are_errors) {
    static const qg_dtype dtypes[] = {QG_DTYPE_FP32, QG_DTYPE_I64, QG_DTYPE_U8, QG_DTYPE_COUNT};
    begin();
    qg_graph_output(graph, input("x", 4, 4));
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        qg_graph *out = (qg_graph *)1;
        ck_assert_int_eq(qg_graph_lower_precision(graph, dtypes[i], &out), QG_ERROR_ARGUMENT);
        ck_assert_ptr_null(out);
        ck_assert_ptr_nonnull(strstr(qg_detail(), "fp16 or bf16"));
    }
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_graph_that_failed_while_it_was_built_fails_again) {
    qg_graph *out = (qg_graph *)1;
    begin_failed();
    qg_status status = qg_graph_lower_precision(graph, QG_DTYPE_FP16, &out);
    failed_again(status, out);
}
END_TEST

// -------------------------------------------------------------------------- beside scaled products

static void perceptron(void) {
    static float w1[64 * 64], w2[64 * 16];
    fill_integers(1,
                  &(qg_tensor_type){
                      QG_DTYPE_FP32, 2, {64, 64}
    },
                  w1);
    fill_integers(2,
                  &(qg_tensor_type){
                      QG_DTYPE_FP32, 2, {64, 16}
    },
                  w2);
    begin();
    qg_node up =
        product("up", input("x", 4, 64), qg_graph_parameter(graph, "w1", fp32(64, 64), w1));
    qg_node h = named(qg_graph_relu(graph, up), "hidden");
    qg_graph_output(graph, product("down", h, qg_graph_parameter(graph, "w2", fp32(64, 16), w2)));
}

static void runs(const qg_graph *g) {
    size_t size;
    free(run_outputs(g, NULL, &size));
    ck_assert_uint_gt(size, 0);
}

START_TEST(scaled_ops_stay_intact_and_take_fp32) {
    perceptron();
    graph = inserted((qg_scaling){.lhs = "mxfp8"}, NULL);
    qg_graph *g = lowered(QG_DTYPE_FP16);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_MATMUL), 2);
    ck_assert_int_eq(dtype_of(g, "up"), QG_DTYPE_FP32);
    ck_assert_int_eq(dtype_of(g, "hidden"), QG_DTYPE_FP16);
    qg_node codes = input_of(g, found(g, "down"), 0), scale = input_of(g, found(g, "down"), 2);
    takes(g, qg_graph_node_name(g, codes), 0, QG_DTYPE_FP32, true, "hidden");
    ck_assert_int_eq(input_of(g, codes, 0), input_of(g, scale, 0));
    ck_assert_int_eq(casts(g), 2); // up to fp16, hidden back
    runs(g);
    qg_graph_free(g);
}
END_TEST

START_TEST(weights_of_scaled_products_are_not_rounded_first) {
    perceptron();
    graph = inserted((qg_scaling){.lhs = "mxfp8"}, NULL);
    qg_graph *g = lowered(QG_DTYPE_FP16);
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_TRANSPOSE)
            ck_assert_int_eq(qg_graph_node_type(g, i)->dtype, QG_DTYPE_FP32);
    qg_graph_free(g);
}
END_TEST

START_TEST(insertion_after_lowering_gives_scaled_products_of_16_bits) {
    for (int bf16 = 0; bf16 < 2; bf16++) {
        perceptron();
        graph = lowered(bf16 ? QG_DTYPE_BF16 : QG_DTYPE_FP16);
        qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8"}, NULL);
        ck_assert_int_eq(dtype_of(g, "up"), bf16 ? QG_DTYPE_BF16 : QG_DTYPE_FP16);
        is_op(g, "up", bf16 ? QG_GRAPH_SCALED_MATMUL : QG_GRAPH_CAST);
        ck_assert_int_eq(dtype_of(g, "down"), QG_DTYPE_FP32);
        runs(g);
        qg_graph_free(g);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {a_product_computes_in_the_low_dtype,
                            casts_are_there_once_for_each_node_and_dtype,
                            an_output_keeps_its_name_and_dtype_by_a_cast,
                            products_pointwise_ops_and_moves_are_lowered,
                            sums_quotients_roots_and_norms_are_not,
                            what_combines_or_moves_fp32_alone_stays_fp32,
                            indices_and_bytes_are_never_cast,
                            nodes_of_16_bits_stay_as_they_are,
                            a_cast_of_a_lowered_node_rounds_what_was_computed,
                            a_second_lowering_changes_nothing,
                            other_dtypes_are_errors,
                            a_graph_that_failed_while_it_was_built_fails_again,
                            scaled_ops_stay_intact_and_take_fp32,
                            weights_of_scaled_products_are_not_rounded_first,
                            insertion_after_lowering_gives_scaled_products_of_16_bits};
    return RUN_SUITE("pass_precision", tests);
}
