// Folding: what becomes a constant, what does not, that weights end as codes and scales, and that
// folding gives the bytes that running gives.
#include "every_op.h"
#include "pass_case.h"

#include <run_suite.h>

static float values[64 * 64];

static qg_node bound(const char *name, int64_t m, int64_t k) {
    qg_tensor_type type = fp32(m, k);
    fill_integers(7, &type, values);
    return qg_graph_parameter(graph, name, type, values);
}

static qg_graph *folded(bool parameters, const qg_graph_run_options *options) {
    qg_graph *out;
    ck_assert_msg(qg_graph_status(graph) == QG_OK, "%s", qg_detail());
    PASSED(out, qg_graph_fold(graph, parameters, options, &out));
    return out;
}

START_TEST(ops_of_constants_become_constants_of_their_names) {
    static const float x[4] = {1, -2, 3, -4};
    begin();
    qg_node c = qg_graph_constant(graph, "c", fp32(2, 2), x);
    qg_node t = named(swapped(qg_graph_relu(graph, c)), "t");
    qg_graph_output(graph, named(qg_graph_add(graph, input("x", 2, 2), t), "y"));
    qg_graph *g = folded(false, NULL);
    static const float expected[4] = {1, 3, 0, 0};
    ck_assert_int_eq(qg_graph_count(g), 3); // x, t, y
    is_op(g, "t", QG_GRAPH_CONSTANT);
    ck_assert_mem_eq(qg_graph_node_values(g, found(g, "t")), expected, sizeof expected);
    qg_graph_free(g);
}
END_TEST

START_TEST(parameters_are_folded_when_asked_for) {
    for (int parameters = 0; parameters < 2; parameters++) {
        begin();
        qg_node t = named(swapped(bound("w", 64, 16)), "t");
        qg_graph_output(graph, product("y", input("x", 4, 16), t));
        qg_graph *g = folded(parameters, NULL);
        is_op(g, "t", parameters ? QG_GRAPH_CONSTANT : QG_GRAPH_TRANSPOSE);
        ck_assert_int_eq(qg_graph_find(g, "w") == QG_NODE_NONE, parameters);
        qg_graph_free(g);
    }
}
END_TEST

START_TEST(parameters_without_values_are_not) {
    begin();
    qg_node t = named(swapped(weight("w", 64, 16)), "t"),
            u = named(swapped(bound("v", 64, 16)), "u");
    qg_graph_output(graph, product("y", input("x", 4, 16), t));
    qg_graph_output(graph, product("z", input("x2", 4, 16), u));
    qg_graph *g = folded(true, NULL);
    is_op(g, "t", QG_GRAPH_TRANSPOSE);
    is_op(g, "w", QG_GRAPH_PARAMETER);
    is_op(g, "u", QG_GRAPH_CONSTANT);
    qg_graph_free(g);
}
END_TEST

START_TEST(constants_whose_values_are_not_there_are_not) {
    static const char text[] = "qg_graph 1\n"
                               "c = constant fp32[70] digest=0123456789abcdef\n"
                               "y = relu(c) fp32[70]\n"
                               "output y\n";
    ck_assert_msg(qg_graph_read(text, sizeof text - 1, &graph) == QG_OK, "%s", qg_detail());
    qg_graph *g = folded(true, NULL);
    is_op(g, "y", QG_GRAPH_RELU);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_parameter_that_is_used_as_it_is_stays_a_parameter) {
    begin();
    qg_node w = bound("w", 64, 64);
    qg_graph_output(graph, product("y", input("x", 4, 64), w));
    qg_graph_output(graph, named(qg_graph_relu(graph, w), "z"));
    qg_graph *g = folded(true, NULL);
    is_op(g, "w", QG_GRAPH_PARAMETER);
    is_op(g, "z", QG_GRAPH_CONSTANT);
    ck_assert_ptr_eq(qg_graph_node_values(g, found(g, "w")), values);
    qg_graph_free(g);
}
END_TEST

START_TEST(sources_that_are_outputs_stay) {
    begin();
    qg_graph_output(graph, bound("w", 4, 4));
    qg_graph_output(graph, input("x", 4, 4));
    qg_graph_output(graph, named(qg_graph_scalar(graph, 2), "c"));
    qg_graph *g = folded(true, NULL);
    is_op(g, "w", QG_GRAPH_PARAMETER);
    is_op(g, "x", QG_GRAPH_INPUT);
    is_op(g, "c", QG_GRAPH_CONSTANT);
    qg_graph_free(g);
}
END_TEST

START_TEST(what_no_output_needs_is_removed) {
    begin();
    qg_node x = input("x", 4, 4);
    qg_graph_add(graph, swapped(bound("w", 4, 4)), x);
    named(qg_graph_relu(graph, bound("v", 4, 4)), "dead");
    input("unused", 4, 4);
    qg_graph_output(graph, named(qg_graph_relu(graph, x), "y"));
    qg_graph *g = folded(true, NULL);
    ck_assert_int_eq(qg_graph_count(g), 3); // x, unused, y
    qg_graph_free(g);
}
END_TEST

START_TEST(what_no_output_needs_is_not_run) {
    static const int64_t at[2] = {0, 9}; // out of range
    begin();
    qg_node indices = qg_graph_constant(graph, "at", qg_tensor(QG_DTYPE_I64, 1, 2), at);
    qg_graph_gather(graph, bound("table", 4, 4), indices);
    qg_graph_output(graph, named(qg_graph_relu(graph, bound("v", 4, 4)), "y"));
    qg_graph *g = folded(true, NULL);
    ck_assert_int_eq(qg_graph_count(g), 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(intermediate_results_are_not_kept) {
    begin();
    qg_node w = bound("w", 4, 4), h = named(qg_graph_relu(graph, swapped(w)), "h");
    qg_node sum = named(qg_graph_add(graph, h, qg_graph_tanh(graph, h)), "sum");
    qg_graph_output(graph, named(qg_graph_add(graph, input("x", 4, 4), sum), "y"));
    qg_graph *g = folded(true, NULL);
    ck_assert_int_eq(qg_graph_count(g), 3); // x, sum, y
    qg_graph_free(g);
}
END_TEST

START_TEST(folded_values_outlive_the_first_graph_and_its_parameters) {
    float w[4] = {1, 2, 3, 4};
    begin();
    qg_graph_output(graph, named(swapped(qg_graph_parameter(graph, "w", fp32(2, 2), w)), "t"));
    qg_graph *g = folded(true, NULL);
    memset(w, 0, sizeof w);
    static const float expected[4] = {1, 3, 2, 4};
    ck_assert_mem_eq(qg_graph_node_values(g, found(g, "t")), expected, sizeof expected);
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------- quantized weights

static qg_graph *linear(const char *recipe) {
    begin();
    qg_node w = bound("w", 16, 64);
    qg_node bias = qg_graph_parameter(graph, "bias", qg_tensor(QG_DTYPE_FP32, 1, 16), values);
    qg_node y = product("product", input("x", 4, 64), swapped(w));
    qg_graph_output(graph, named(qg_graph_add(graph, y, bias), "y"));
    return inserted((qg_scaling){.lhs = recipe}, NULL);
}

START_TEST(a_linear_layer_keeps_codes_and_scales_of_its_weights_alone) {
    static const char *const recipes[] = {"mxfp8", "nvfp4", "e4m3", "rlx_mxfp4x2"};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        graph = linear(recipes[i]);
        qg_graph *g = folded(true, NULL);
        qg_node y = found(g, "product");
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 0);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_QUANTIZE), 1); // of x
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_QUANT_SCALE), 1);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_PARAMETER), 1); // bias
        for (int input = 1; input < 4; input += 2)
            ck_assert_int_eq(qg_graph_node_op(g, input_of(g, y, input)), QG_GRAPH_CONSTANT);
        ck_assert_int_eq(qg_graph_node_type(g, input_of(g, y, 1))->dtype, QG_DTYPE_U8);
        qg_graph_free(g);
    }
}
END_TEST

// The parameters stay bound to `values`, which linear fills each time alike.
START_TEST(folded_weights_give_the_bytes_of_a_run_on_emulator_and_cpu) {
    static const char *const recipes[] = {
        "mxfp8",       "nvfp4",   "e4m3", "te_e4m3",
        "rlx_mxfp4x2", "mxfp8//", "mx9",  "mxfp4//rceil/stochastic:A:16"};
    for (int cpu = 0; cpu < 2; cpu++)
        for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
            qg_graph_run_options options = {.backend = qg_backend_find(cpu ? "cpu" : "emulator"),
                                            .seed = 12345};
            if (options.backend->unavailable())
                continue;
            qg_graph *g, *plain = linear(recipes[i]);
            ck_assert_msg(qg_graph_fold(plain, true, &options, &g) == QG_OK, "%s", qg_detail());
            ck_assert_msg(run_alike(plain, g, &options), "%s", recipes[i]);
            qg_graph_free(plain);
            qg_graph_free(g);
        }
}
END_TEST

START_TEST(stochastic_codes_are_those_of_the_seed_that_folded) {
    static const char recipe[] = "mxfp4//rceil/stochastic:A:16";
    qg_graph_run_options one = {.seed = 1}, two = {.seed = 2};
    qg_graph *plain = linear(recipe), *a, *b, *again;
    for (int i = 0; i < 16 * 64; i++)
        values[i] *= 1.1f; // integers are codes of FP4
    ck_assert_int_eq(qg_graph_fold(plain, true, &one, &a), QG_OK);
    ck_assert_int_eq(qg_graph_fold(plain, true, &two, &b), QG_OK);
    ck_assert_int_eq(qg_graph_fold(plain, true, &one, &again), QG_OK);
    qg_node codes = input_of(a, found(a, "product"), 1);
    const void *x = qg_graph_node_values(a, codes), *y = qg_graph_node_values(b, codes);
    ck_assert_mem_eq(x, qg_graph_node_values(again, codes), 16 * 64);
    ck_assert_int_ne(memcmp(x, y, 16 * 64), 0);
    qg_graph_free(a);
    qg_graph_free(b);
    qg_graph_free(again);
    qg_graph_free(plain);
}
END_TEST

START_TEST(whole_products_of_weights_fold) {
    begin();
    qg_node w = bound("w", 64, 64);
    qg_graph_output(graph, product("ww", w, w));
    graph = inserted((qg_scaling){.lhs = "mxfp8"}, NULL);
    qg_graph *g = folded(true, NULL);
    ck_assert_int_eq(qg_graph_count(g), 1);
    is_op(g, "ww", QG_GRAPH_CONSTANT);
    qg_graph_free(g);
}
END_TEST

START_TEST(all_that_has_values_folds_to_what_a_run_gives) {
    qg_graph *g;
    qg_graph_run_options options = {.seed = 3};
    static float w[2 * 7];
    graph = every_op_graph();
    ck_assert_int_eq(qg_graph_bind(graph, "w.unknown", w), QG_OK);
    ck_assert_int_eq(qg_graph_fold(graph, true, &options, &g), QG_OK);
    ck_assert(run_alike(graph, g, &options));
    qg_graph_free(g);
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_second_folding_changes_nothing) {
    graph = linear("mxfp8");
    qg_graph *g = folded(true, NULL), *again;
    ck_assert_int_eq(qg_graph_fold(g, true, NULL, &again), QG_OK);
    same_text(g, again);
    qg_graph_free(again);
    qg_graph_free(g);
}
END_TEST

START_TEST(an_index_out_of_range_is_an_error_that_names_the_node) {
    static const int64_t at[2] = {0, 9};
    qg_graph *out = (qg_graph *)1;
    begin();
    qg_node indices = qg_graph_constant(graph, "at", qg_tensor(QG_DTYPE_I64, 1, 2), at);
    qg_graph_output(graph, named(qg_graph_gather(graph, bound("table", 4, 4), indices), "rows"));
    ck_assert_int_eq(qg_graph_fold(graph, true, NULL, &out), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "rows"));
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_graph_that_failed_while_it_was_built_fails_again) {
    qg_graph *out = (qg_graph *)1;
    begin_failed();
    qg_status status = qg_graph_fold(graph, true, NULL, &out);
    failed_again(status, out);
}
END_TEST

int main(void) {
    const TTest *tests[] = {ops_of_constants_become_constants_of_their_names,
                            parameters_are_folded_when_asked_for,
                            parameters_without_values_are_not,
                            constants_whose_values_are_not_there_are_not,
                            a_parameter_that_is_used_as_it_is_stays_a_parameter,
                            sources_that_are_outputs_stay,
                            what_no_output_needs_is_removed,
                            what_no_output_needs_is_not_run,
                            intermediate_results_are_not_kept,
                            folded_values_outlive_the_first_graph_and_its_parameters,
                            a_linear_layer_keeps_codes_and_scales_of_its_weights_alone,
                            folded_weights_give_the_bytes_of_a_run_on_emulator_and_cpu,
                            stochastic_codes_are_those_of_the_seed_that_folded,
                            whole_products_of_weights_fold,
                            all_that_has_values_folds_to_what_a_run_gives,
                            a_second_folding_changes_nothing,
                            an_index_out_of_range_is_an_error_that_names_the_node,
                            a_graph_that_failed_while_it_was_built_fails_again};
    return RUN_SUITE("pass_fold", tests);
}
