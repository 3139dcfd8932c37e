// Removal of dead nodes: what no output needs goes, inputs and all the rest stay as they are.
#include "every_op.h"
#include "pass_case.h"

#include <run_suite.h>

static qg_graph *without_dead(void) {
    qg_graph *out;
    PASSED(out, qg_graph_remove_dead(graph, &out));
    return out;
}

START_TEST(what_no_output_needs_is_removed) {
    begin();
    qg_node x = input("x", 4, 4);
    named(qg_graph_tanh(graph, named(qg_graph_relu(graph, x), "dead")), "deader");
    qg_graph_output(graph, named(qg_graph_tanh(graph, x), "y"));
    weight("unused", 4, 4);
    qg_graph *g = without_dead();
    ck_assert_int_eq(qg_graph_count(g), 2);
    is_op(g, "y", QG_GRAPH_TANH);
    ck_assert_int_eq(input_of(g, found(g, "y"), 0), found(g, "x"));
    qg_graph_free(g);
}
END_TEST

START_TEST(inputs_stay_so_that_feeds_stay) {
    begin();
    input("unused", 4, 4);
    qg_graph_output(graph, named(qg_graph_relu(graph, input("x", 4, 4)), "y"));
    qg_graph *g = without_dead();
    is_op(g, "unused", QG_GRAPH_INPUT);
    qg_graph_free(g);
}
END_TEST

START_TEST(made_up_names_stay_when_places_change) {
    begin();
    weight("unused", 4, 4);
    qg_node x = qg_graph_input(graph, NULL, fp32(4, 4));
    qg_graph_output(graph, qg_graph_relu(graph, x));
    qg_graph *g = without_dead();
    is_op(g, "input_1", QG_GRAPH_INPUT);
    is_op(g, "relu_2", QG_GRAPH_RELU);
    qg_graph_free(g);
}
END_TEST

START_TEST(what_several_users_need_stays_once) {
    begin();
    qg_node x = qg_graph_relu(graph, input("x", 4, 4));
    qg_graph_output(graph, qg_graph_add(graph, qg_graph_add(graph, x, x), x));
    qg_graph *g = without_dead();
    ck_assert_int_eq(qg_graph_count(g), 4);
    qg_graph_free(g);
}
END_TEST

START_TEST(outputs_stay_in_order) {
    begin();
    qg_node x = input("x", 4, 4);
    qg_node a = named(qg_graph_relu(graph, x), "a"), b = named(qg_graph_tanh(graph, x), "b");
    qg_graph_output(graph, b);
    qg_graph_output(graph, x);
    qg_graph_output(graph, a);
    qg_graph *g = without_dead();
    const qg_node *outputs;
    ck_assert_int_eq(qg_graph_outputs(g, &outputs), 3);
    ck_assert_str_eq(qg_graph_node_name(g, outputs[0]), "b");
    ck_assert_str_eq(qg_graph_node_name(g, outputs[1]), "x");
    ck_assert_str_eq(qg_graph_node_name(g, outputs[2]), "a");
    qg_graph_free(g);
}
END_TEST

START_TEST(values_are_shared_and_outlive_the_first_graph) {
    static const float gain[4] = {1, 2, 3, 4};
    begin();
    qg_node c = qg_graph_constant(graph, "c", qg_tensor(QG_DTYPE_FP32, 1, 4), gain);
    qg_node p = qg_graph_parameter(graph, "p", qg_tensor(QG_DTYPE_FP32, 1, 4), gain);
    qg_graph_output(graph, qg_graph_add(graph, c, p));
    const void *values = qg_graph_node_values(graph, c);
    qg_graph *g = without_dead();
    ck_assert_ptr_eq(qg_graph_node_values(g, found(g, "c")), values);
    ck_assert_ptr_eq(qg_graph_node_values(g, found(g, "p")), gain);
    ck_assert_mem_eq(qg_graph_node_values(g, found(g, "c")), gain, sizeof gain);
    qg_graph_free(g);
}
END_TEST

START_TEST(the_digest_of_values_that_are_not_there_stays) {
    static const char text[] = "qg_graph 1\n"
                               "w = parameter fp32[4] digest=0123456789abcdef\n"
                               "y = relu(w) fp32[4]\n"
                               "output y\n";
    ck_assert_msg(qg_graph_read(text, sizeof text - 1, &graph) == QG_OK, "%s", qg_detail());
    qg_graph *g = without_dead();
    ck_assert_uint_eq(qg_graph_node_digest(g, found(g, "w")), 0x0123456789abcdef);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_second_removal_changes_nothing) {
    graph = every_op_graph();
    qg_graph *g = without_dead(), *again;
    ck_assert_int_eq(qg_graph_remove_dead(g, &again), QG_OK);
    same_text(g, again);
    qg_graph_free(again);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_graph_without_outputs_is_an_error) {
    qg_graph *out = (qg_graph *)1;
    begin();
    input("x", 4, 4);
    ck_assert_int_eq(qg_graph_remove_dead(graph, &out), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "no output"));
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_graph_that_failed_while_it_was_built_fails_again) {
    qg_graph *out = (qg_graph *)1;
    begin_failed();
    qg_status status = qg_graph_remove_dead(graph, &out);
    failed_again(status, out);
}
END_TEST

int main(void) {
    const TTest *tests[] = {what_no_output_needs_is_removed,
                            inputs_stay_so_that_feeds_stay,
                            made_up_names_stay_when_places_change,
                            what_several_users_need_stays_once,
                            outputs_stay_in_order,
                            values_are_shared_and_outlive_the_first_graph,
                            the_digest_of_values_that_are_not_there_stays,
                            a_second_removal_changes_nothing,
                            a_graph_without_outputs_is_an_error,
                            a_graph_that_failed_while_it_was_built_fails_again};
    return RUN_SUITE("pass_dead", tests);
}
