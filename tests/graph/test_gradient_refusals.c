// What has no gradient, and what is asked wrongly: each refused by name.
#include <gradient_case.h>
#include <run_suite.h>

// Of the failing call: status and detail; frees g.
static void must_fail(qg_graph *g, qg_node loss, int32_t count, const qg_node *wrt,
                      const char *recipe, qg_status status, const char *detail) {
    qg_graph *made = g;
    qg_gradient_options options = {recipe};
    ck_assert_int_eq(qg_graph_gradient(g, loss, count, wrt, &options, &made), status);
    ck_assert_str_eq(qg_detail(), detail);
    ck_assert_ptr_null(made);
    qg_graph_free(g);
}

START_TEST(loss_is_one_fp32_element) {
    qg_graph *g = empty();
    qg_node x = qg_graph_name(g, matrix(g, "x", 2, 1), "many");
    must_fail(g, x, 1, &x, NULL, QG_ERROR_ARGUMENT,
              "loss: node 'many' is fp32[2,1], not one fp32 element: reduce it");
    g = empty();
    x = matrix(g, "x", 1, 1);
    qg_node loss = qg_graph_name(g, qg_graph_cast(g, x, QG_DTYPE_BF16), "low");
    must_fail(g, loss, 1, &x, NULL, QG_ERROR_ARGUMENT,
              "loss: node 'low' is bf16[1,1], not one fp32 element: reduce it");
    g = empty();
    x = matrix(g, "x", 1, 1);
    must_fail(g, 1, 1, &x, NULL, QG_ERROR_ARGUMENT, "loss: node 1 is none");
    g = empty();
    x = matrix(g, "x", 1, 1);
    must_fail(g, QG_NODE_NONE, 1, &x, NULL, QG_ERROR_ARGUMENT, "loss: node -1 is none");
}
END_TEST

START_TEST(loss_may_have_axes) {
    qg_graph *g = empty();
    qg_node x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 3, 1, 1, 1));
    qg_graph *made = gradient_of(g, x, 1, &x);
    ck_assert_int_eq(qg_graph_node_type(made, gradient_node(made, "x"))->rank, 3);
    qg_graph_free(made);
}
END_TEST

START_TEST(wanted_nodes_are_there_fp32_and_named_once) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 1, 1), none = 7;
    must_fail(g, x, 1, &none, NULL, QG_ERROR_ARGUMENT, "gradient of node 7: it is none");
    g = empty();
    x = matrix(g, "x", 1, 1);
    none = QG_NODE_NONE;
    must_fail(g, x, 1, &none, NULL, QG_ERROR_ARGUMENT, "gradient of node -1: it is none");
    g = empty();
    x = matrix(g, "x", 1, 1);
    must_fail(g, x, 0, NULL, NULL, QG_ERROR_ARGUMENT, "gradients of 0 nodes: name at least one");
    g = empty();
    x = matrix(g, "x", 1, 1);
    qg_node twice[] = {x, x};
    must_fail(g, x, 2, twice, NULL, QG_ERROR_ARGUMENT,
              "gradient of node 'x': it is asked for twice");
    g = empty();
    x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP16, 1, 3));
    qg_node loss = total(g, x);
    must_fail(g, loss, 1, &x, NULL, QG_ERROR_ARGUMENT,
              "gradient of node 'x': it is fp16[3], not fp32");
}
END_TEST

START_TEST(names_of_gradients_must_be_free_and_short_enough) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 1, 1);
    matrix(g, "gradient/x", 1, 1);
    must_fail(g, x, 1, &x, NULL, QG_ERROR_ARGUMENT,
              "gradient of node 'x': a node 'gradient/x' is there already: rename it");
    for (int length = 246; length <= 247; length++) {
        char name[256], detail[512];
        memset(name, 'n', (size_t)length);
        name[length] = 0;
        g = empty();
        x = matrix(g, name, 1, 1);
        snprintf(detail, sizeof detail,
                 "gradient of node '%s': gradient/ and its name exceed 255 characters: rename it",
                 name);
        if (length == 246)
            qg_graph_free(gradient_of(g, x, 1, &x));
        else
            must_fail(g, x, 1, &x, NULL, QG_ERROR_ARGUMENT, detail);
    }
}
END_TEST

// A node that applies the op to x (2, 3) and constants, of an op without gradient.
static qg_node without_gradient(qg_graph *g, qg_graph_op op, qg_node x) {
    static const float ones[6] = {1, 1, 1, 1, 1, 1};
    static const int64_t zero = 0;
    qg_tensor_type row = qg_tensor(QG_DTYPE_FP32, 1, 3), same = qg_tensor(QG_DTYPE_FP32, 2, 2, 3);
    qg_node one = qg_graph_constant(g, NULL, same, ones);
    qg_node line = qg_graph_constant(g, NULL, row, ones);
    int32_t axis = 0;
    qg_attributes attributes = {.axis_count = 1};
    qg_node inputs[3] = {x, one, one};
    switch (op) {
    case QG_GRAPH_SLICE: return qg_graph_slice(g, x, (int64_t[]){0, 0}, (int64_t[]){1, 2});
    case QG_GRAPH_CONCATENATE: return qg_graph_concatenate(g, 2, inputs, 0);
    case QG_GRAPH_DIVIDE: return qg_graph_divide(g, x, one);
    case QG_GRAPH_MAXIMUM: return qg_graph_maximum(g, one, x);
    case QG_GRAPH_SQRT: return qg_graph_sqrt(g, x);
    case QG_GRAPH_SOFTMAX: return qg_graph_softmax(g, x);
    case QG_GRAPH_LAYER_NORM: return qg_graph_layer_norm(g, x, line, line, 1e-5f);
    case QG_GRAPH_GATHER:
        return qg_graph_gather(
            g, x, qg_graph_constant(g, NULL, (qg_tensor_type){QG_DTYPE_I64, 0, {0}}, &zero));
    case QG_GRAPH_RELU_GRADIENT:
    case QG_GRAPH_GELU_GRADIENT: return qg_graph_add_node(g, op, 2, inputs, NULL, NULL);
    case QG_GRAPH_REDUCE_MAX_GRADIENT:
        inputs[1] = qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, one, 1, &axis, true);
        inputs[2] = inputs[1];
        return qg_graph_add_node(g, op, 3, inputs, &attributes, NULL);
    default: return QG_NODE_NONE;
    }
}

START_TEST(an_op_without_gradient_on_a_path_is_named) {
    int refused = 0;
    for (int op = 0; op < QG_GRAPH_OP_COUNT; op++) {
        qg_graph *g = empty();
        char detail[100];
        qg_node x = matrix(g, "x", 2, 3);
        qg_node y = without_gradient(g, (qg_graph_op)op, qg_graph_relu(g, x));
        if (y == QG_NODE_NONE) {
            ck_assert_msg(qg_graph_status(g) == QG_OK, "%s", qg_detail());
            qg_graph_free(g);
            continue;
        }
        qg_node loss = total(g, qg_graph_name(g, y, "here"));
        snprintf(detail, sizeof detail, "node 'here' (%s): no gradient",
                 qg_graph_op_describe((qg_graph_op)op)->name);
        must_fail(g, loss, 1, &x, NULL, QG_ERROR_UNSUPPORTED, detail);
        refused++;
    }
    ck_assert_int_eq(refused, 11);
}
END_TEST

START_TEST(an_op_without_gradient_beside_the_path_is_no_matter) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3), mask = matrix(g, "mask", 2, 3);
    qg_node soft = qg_graph_softmax(g, mask);   // loss depends on it, and it does not depend on x
    qg_graph_output(g, qg_graph_softmax(g, x)); // depends on x, and loss does not depend on it
    qg_node loss = total(g, qg_graph_multiply(g, x, soft));
    qg_graph_free(gradient_of(g, loss, 1, &x));
}
END_TEST

START_TEST(an_op_without_gradient_can_be_where_a_gradient_ends) {
    qg_graph *g = empty();
    qg_node soft = qg_graph_softmax(g, matrix(g, "x", 2, 3));
    qg_node loss = total(g, qg_graph_tanh(g, soft));
    qg_graph_free(gradient_of(g, loss, 1, &soft));
}
END_TEST

START_TEST(a_path_through_scales_is_none) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3);
    qg_attributes e4m3 = {.recipe = "e4m3"};
    qg_node soft = qg_graph_softmax(g, x);
    qg_node scale = qg_graph_add_node(g, QG_GRAPH_SCALED_QUANT_SCALE, 1, &soft, &e4m3, NULL);
    qg_node loss = total(g, qg_graph_multiply(g, x, scale));
    qg_node wrt[] = {x, soft};
    qg_graph *made = gradient_of(g, loss, 2, wrt);
    ck_assert_int_eq(qg_graph_node_op(made, gradient_node(made, qg_graph_node_name(made, soft))),
                     QG_GRAPH_CONSTANT);
    qg_graph_free(made);
}
END_TEST

START_TEST(codes_that_are_cut_have_no_gradient) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 2, 3);
    qg_scaled q = qg_graph_quantize(g, x, "e4m3");
    q.codes = qg_graph_slice(g, q.codes, (int64_t[]){0, 0}, (int64_t[]){1, 3});
    qg_graph_name(g, q.codes, "cut");
    qg_node loss = total(g, qg_graph_dequantize(g, q));
    must_fail(g, loss, 1, &x, NULL, QG_ERROR_UNSUPPORTED,
              "node 'cut' (slice): no gradient through codes");
}
END_TEST

START_TEST(two_planes_of_codes_that_are_moved_have_no_gradient) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 3, 32);
    qg_scaled q = qg_graph_quantize(g, x, "rlx_mxfp4x2");
    q.codes = qg_graph_name(g, qg_graph_transpose(g, q.codes, (int32_t[]){0, 1, 2}), "moved");
    qg_node loss = total(g, qg_graph_dequantize(g, q));
    must_fail(g, loss, 1, &x, NULL, QG_ERROR_UNSUPPORTED,
              "node 'moved' (transpose): no gradient through codes");
}
END_TEST

START_TEST(two_planes_of_codes_that_are_read_as_one_have_no_gradient) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 3, 32);
    qg_scaled q = qg_graph_quantize(g, x, "rlx_mxfp4x2");
    qg_graph_name(g, q.codes, "planes");
    q.codes = qg_graph_reshape(g, q.codes, 3, (int64_t[]){2, 3, 32});
    q = (qg_scaled){q.codes, qg_graph_quantize(g, x, "e4m3").scale, QG_NODE_NONE, "e4m3"};
    qg_node loss = total(g, qg_graph_dequantize(g, q));
    must_fail(g, loss, 1, &x, NULL, QG_ERROR_UNSUPPORTED,
              "node 'planes' (scaled_quantize): no gradient through codes");
}
END_TEST

START_TEST(the_recipe_of_gradients_must_be_one_of_graphs) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 1, 1);
    qg_graph *made;
    qg_gradient_options unknown = {"mxfp8_e5m3"}, history = {"te_delayed_e5m2"};
    ck_assert_int_eq(qg_graph_gradient(g, x, 1, &x, &unknown, &made), QG_ERROR_ARGUMENT);
    ck_assert_msg(strstr(qg_detail(), "recipe of gradients: ") == qg_detail() &&
                      strstr(qg_detail(), "mxfp8_e5m3"),
                  "%s", qg_detail());
    must_fail(
        g, x, 1, &x, history.gradient, QG_ERROR_ARGUMENT,
        "recipe of gradients: recipe te_delayed_e5m2 scales by an amax history, which a graph "
        "does not have");
}
END_TEST

START_TEST(a_backward_product_that_cannot_be_is_named_after_the_forward_one) {
    qg_graph *g = empty();
    qg_node x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 3, 2, 16, 24));
    qg_node w = qg_graph_input(g, "w", qg_tensor(QG_DTYPE_FP32, 3, 2, 16, 24));
    const char *recipe = "e4m3/block:16x16"; // transposed, blocks of 16 rows cross 24
    qg_node y =
        qg_graph_scaled_matmul(g, qg_graph_quantize(g, x, recipe), qg_graph_quantize(g, w, recipe),
                               QG_NODE_NONE, QG_DTYPE_FP32);
    qg_node loss = total(g, qg_graph_name(g, y, "y"));
    qg_graph *made;
    qg_gradient_options options = {"e5m2"};
    ck_assert_int_eq(qg_graph_gradient(g, loss, 1, &x, &options, &made), QG_ERROR_ARGUMENT);
    ck_assert_msg(strstr(qg_detail(), "gradient of node 'y' (scaled_matmul): ") == qg_detail() &&
                      strstr(qg_detail(), "blocks of 16 rows lie across matrices of 24 rows"),
                  "%s", qg_detail());
    qg_graph_free(g);
}
END_TEST

START_TEST(a_graph_that_failed_gives_its_failure) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 1, 1);
    qg_graph_matmul(g, x, matrix(g, "y", 2, 1));
    char detail[512];
    qg_status status = qg_graph_status(g);
    snprintf(detail, sizeof detail, "%s", qg_detail());
    ck_assert_int_ne(status, QG_OK);
    must_fail(g, x, 1, &x, NULL, status, detail);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        loss_is_one_fp32_element,
        loss_may_have_axes,
        wanted_nodes_are_there_fp32_and_named_once,
        names_of_gradients_must_be_free_and_short_enough,
        an_op_without_gradient_on_a_path_is_named,
        an_op_without_gradient_beside_the_path_is_no_matter,
        an_op_without_gradient_can_be_where_a_gradient_ends,
        a_path_through_scales_is_none,
        codes_that_are_cut_have_no_gradient,
        two_planes_of_codes_that_are_moved_have_no_gradient,
        two_planes_of_codes_that_are_read_as_one_have_no_gradient,
        the_recipe_of_gradients_must_be_one_of_graphs,
        a_backward_product_that_cannot_be_is_named_after_the_forward_one,
        a_graph_that_failed_gives_its_failure,
    };
    return RUN_SUITE("gradient_refusals", tests);
}
