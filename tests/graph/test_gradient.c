// The structure of gradient graphs: what stays and what is added. Values: test_gradient_values.c,
// test_gradient_scaled.c.
#include <gradient_case.h>
#include <run_suite.h>

// -------------------------------------------------------------------------------------- what stays

START_TEST(forward_nodes_keep_their_places_names_and_inputs) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 4, 8), w = matrix(g, "w", 8, 3);
    qg_node y = qg_graph_name(g, qg_graph_matmul(g, x, w), "y");
    qg_node unused = qg_graph_softmax(g, y);
    qg_node loss = total(g, qg_graph_relu(g, y));
    qg_graph_output(g, unused);
    qg_graph *made;
    ck_assert_int_eq(qg_graph_gradient(g, loss, 1, &w, NULL, &made), QG_OK);
    for (qg_node i = 0; i < qg_graph_count(g); i++) {
        const qg_node *inputs, *copied;
        ck_assert_str_eq(qg_graph_node_name(made, i), qg_graph_node_name(g, i));
        ck_assert_int_eq(qg_graph_node_op(made, i), qg_graph_node_op(g, i));
        int32_t count = qg_graph_node_inputs(g, i, &inputs);
        ck_assert_int_eq(qg_graph_node_inputs(made, i, &copied), count);
        for (int32_t j = 0; j < count; j++)
            ck_assert_int_eq(copied[j], inputs[j]);
    }
    ck_assert_int_eq(qg_graph_verify(made), QG_OK);
    qg_graph_free(made);
    qg_graph_free(g);
}
END_TEST

START_TEST(gradients_are_outputs_after_those_of_the_graph_in_the_order_asked) {
    qg_graph *g = empty();
    const qg_node *outputs;
    qg_node x = matrix(g, "x", 4, 8), w = matrix(g, "w", 8, 3);
    qg_node y = qg_graph_matmul(g, x, w);
    qg_graph_output(g, qg_graph_output(g, y) == y ? total(g, y) : y);
    qg_node loss = total(g, y);
    qg_node wrt[] = {w, x};
    qg_graph *made = gradient_of(g, loss, 2, wrt);
    ck_assert_int_eq(qg_graph_outputs(made, &outputs), 4);
    ck_assert_int_eq(outputs[0], y);
    ck_assert_str_eq(qg_graph_node_name(made, outputs[2]), "gradient/w");
    ck_assert_str_eq(qg_graph_node_name(made, outputs[3]), "gradient/x");
    ck_assert(qg_tensor_equal(qg_graph_node_type(made, outputs[2]), qg_graph_node_type(made, w)));
    ck_assert(qg_tensor_equal(qg_graph_node_type(made, outputs[3]), qg_graph_node_type(made, x)));
    qg_graph_free(made);
}
END_TEST

START_TEST(values_of_parameters_are_shared) {
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    qg_graph *g = empty();
    qg_node w = qg_graph_parameter(g, "w", qg_tensor(QG_DTYPE_FP32, 2, 2, 3), values);
    qg_node loss = total(g, qg_graph_tanh(g, w));
    qg_graph *made = gradient_of(g, loss, 1, &w);
    ck_assert_ptr_eq(qg_graph_node_values(made, w), values);
    qg_graph_free(made);
}
END_TEST

// ----------------------------------------------------------------------------------- what is added

// x -> matmul w -> + b -> gelu -> matmul v -> loss, all of rank 2.
static qg_node two_layers(qg_graph *g, qg_node *w, qg_node *b, qg_node *v) {
    qg_node x = matrix(g, "x", 4, 8);
    *w = matrix(g, "w", 8, 6);
    *b = matrix(g, "b", 1, 6);
    *v = matrix(g, "v", 6, 2);
    qg_node hidden = qg_graph_gelu(g, qg_graph_add(g, qg_graph_matmul(g, x, *w), *b), false);
    return total(g, qg_graph_matmul(g, hidden, *v));
}

START_TEST(nothing_is_made_that_no_gradient_needs) {
    for (int mask = 1; mask < 8; mask++) {
        qg_graph *g = empty();
        qg_node all[3], wrt[3];
        int32_t count = 0;
        qg_node loss = two_layers(g, &all[0], &all[1], &all[2]);
        for (int i = 0; i < 3; i++)
            if (mask >> i & 1)
                wrt[count++] = all[i];
        qg_graph *made = gradient_of(g, loss, count, wrt);
        ck_assert_int_eq(dead_nodes(made, loss + 1), 0);
        // Two products forward; one for v, one for what lies before the second product, one for w.
        int before = (mask & 3) != 0;
        ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_MATMUL),
                         2 + (mask >> 2 & 1) + before + (mask & 1));
        ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_GELU_GRADIENT), before);
        qg_graph_free(made);
    }
}
END_TEST

START_TEST(nothing_at_all_is_made_for_a_node_that_loss_does_not_depend_on_but_zeros) {
    qg_graph *g = empty();
    qg_node x = matrix(g, "x", 4, 8), other = matrix(g, "other", 2, 3);
    qg_node loss = total(g, qg_graph_relu(g, x));
    qg_graph *made = gradient_of(g, loss, 1, &other);
    ck_assert_int_eq(qg_graph_count(made), loss + 2);
    qg_node zeros = gradient_node(made, "other");
    ck_assert_int_eq(qg_graph_node_op(made, zeros), QG_GRAPH_CONSTANT);
    const float *values = qg_graph_node_values(made, zeros);
    for (int i = 0; i < 6; i++)
        ck_assert(values[i] == 0);
    qg_graph_free(made);
}
END_TEST

START_TEST(loss_has_gradient_one_with_respect_to_itself) {
    qg_graph *g = empty();
    qg_node loss = total(g, matrix(g, "x", 4, 8));
    qg_graph_name(g, loss, "loss");
    qg_graph *made = gradient_of(g, loss, 1, &loss);
    const float *value = qg_graph_node_values(made, gradient_node(made, "loss"));
    ck_assert(value && *value == 1);
    ck_assert_int_eq(qg_graph_count(made), loss + 2);
    qg_graph_free(made);
}
END_TEST

START_TEST(nothing_is_summed_or_repeated_over_axes_of_one_element) {
    qg_graph *g = empty();
    qg_node wrt[] = {matrix(g, "a", 1, 3), qg_graph_input(g, "b", qg_tensor(QG_DTYPE_FP32, 1, 3))};
    qg_node y = qg_graph_add(g, wrt[0], wrt[1]);
    y = qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, y, 1, (int32_t[]){0}, false);
    qg_node loss = total(g, qg_graph_tanh(g, y));
    qg_graph *made = gradient_of(g, loss, 2, wrt);
    ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_REDUCE_SUM), 2);
    // Of tanh its square and dy times the slope; of the last sum, dy times ones.
    ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_MULTIPLY), 3);
    qg_graph_free(made);
}
END_TEST

START_TEST(nodes_with_the_same_gradient_have_one_each) {
    qg_graph *g = empty();
    qg_node wrt[] = {matrix(g, "a", 2, 3), matrix(g, "b", 2, 3), matrix(g, "c", 2, 3)};
    qg_node loss = total(g, qg_graph_add(g, qg_graph_add(g, wrt[0], wrt[1]), wrt[2]));
    qg_graph *made = gradient_of(g, loss, 3, wrt);
    qg_node a = gradient_node(made, "a"), b = gradient_node(made, "b");
    qg_node c = gradient_node(made, "c");
    ck_assert(a != b && b != c && a != c);
    qg_graph_free(made);
}
END_TEST

START_TEST(a_factor_that_is_a_transpose_is_used_as_it_was_before) {
    for (int32_t rank = 2; rank <= 4; rank++) {
        qg_graph *g = empty();
        int32_t axes[] = {0, 1, 2, 3};
        axes[rank - 2] = rank - 1;
        axes[rank - 1] = rank - 2;
        qg_tensor_type left = {.dtype = QG_DTYPE_FP32, .rank = rank};
        for (int32_t i = 0; i < rank; i++)
            left.shape[i] = i == rank - 1 ? 5 : 2;
        qg_tensor_type right = left;
        right.shape[rank - 2] = 3;
        qg_node x = qg_graph_input(g, "x", left), w = qg_graph_input(g, "w", right);
        qg_node loss = total(g, qg_graph_matmul(g, x, qg_graph_transpose(g, w, axes)));
        qg_graph *made = gradient_of(g, loss, 1, &x);
        ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_TRANSPOSE), 1);
        const qg_node *inputs;
        qg_graph_node_inputs(made, gradient_node(made, "x"), &inputs);
        ck_assert_int_eq(inputs[1], w);
        qg_graph_free(made);
    }
}
END_TEST

START_TEST(another_permutation_of_three_axes_is_not_taken_for_it) {
    qg_graph *g = empty();
    qg_node x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 3, 2, 4, 5));
    qg_node w = qg_graph_input(g, "w", qg_tensor(QG_DTYPE_FP32, 3, 5, 2, 3));
    qg_node turned = qg_graph_transpose(g, w, (int32_t[]){1, 0, 2});
    qg_node loss = total(g, qg_graph_matmul(g, x, turned));
    qg_graph *made = gradient_of(g, loss, 1, &x);
    ck_assert_int_eq(qg_graph_count_op(made, QG_GRAPH_TRANSPOSE), 2);
    qg_graph_free(made);
}
END_TEST

START_TEST(gradients_in_between_have_the_dtype_of_their_nodes) {
    static const qg_dtype dtypes[] = {QG_DTYPE_FP16, QG_DTYPE_BF16};
    for (int d = 0; d < 2; d++) {
        qg_graph *g = empty();
        int32_t axis = 1;
        qg_node x = matrix(g, "x", 4, 8);
        qg_node y = qg_graph_cast(g, x, dtypes[d]);
        y = qg_graph_tanh(g, qg_graph_gelu(g, qg_graph_relu(g, y), true));
        y = qg_graph_multiply(g, qg_graph_subtract(g, y, qg_graph_multiply(g, y, y)), y);
        y = qg_graph_reduce(g, QG_GRAPH_REDUCE_MAX, y, 1, &axis, true);
        y = qg_graph_reduce(g, QG_GRAPH_REDUCE_MEAN, y, 1, (int32_t[]){0}, true);
        qg_node loss = total(g, y);
        qg_graph *made = gradient_of(g, loss, 1, &x);
        for (qg_node i = loss + 1; i < qg_graph_count(made); i++) {
            qg_graph_op op = qg_graph_node_op(made, i);
            if (op == QG_GRAPH_RELU_GRADIENT || op == QG_GRAPH_GELU_GRADIENT ||
                op == QG_GRAPH_REDUCE_MAX_GRADIENT || op == QG_GRAPH_SUBTRACT || op == QG_GRAPH_ADD)
                ck_assert_int_eq(qg_graph_node_type(made, i)->dtype, (int)dtypes[d]);
        }
        ck_assert_int_eq(qg_graph_node_type(made, gradient_node(made, "x"))->dtype, QG_DTYPE_FP32);
        qg_graph_free(made);
    }
}
END_TEST

START_TEST(gelu_keeps_its_form) {
    for (int tanh_form = 0; tanh_form < 2; tanh_form++) {
        qg_graph *g = empty();
        qg_node x = matrix(g, "x", 4, 8);
        qg_node loss = total(g, qg_graph_gelu(g, x, tanh_form));
        qg_graph *made = gradient_of(g, loss, 1, &x);
        ck_assert_int_eq(qg_graph_node_attributes(made, gradient_node(made, "x"))->tanh_form,
                         tanh_form);
        qg_graph_free(made);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        forward_nodes_keep_their_places_names_and_inputs,
        gradients_are_outputs_after_those_of_the_graph_in_the_order_asked,
        values_of_parameters_are_shared,
        nothing_is_made_that_no_gradient_needs,
        nothing_at_all_is_made_for_a_node_that_loss_does_not_depend_on_but_zeros,
        loss_has_gradient_one_with_respect_to_itself,
        nothing_is_summed_or_repeated_over_axes_of_one_element,
        nodes_with_the_same_gradient_have_one_each,
        a_factor_that_is_a_transpose_is_used_as_it_was_before,
        another_permutation_of_three_axes_is_not_taken_for_it,
        gradients_in_between_have_the_dtype_of_their_nodes,
        gelu_keeps_its_form,
    };
    return RUN_SUITE("gradient", tests);
}
