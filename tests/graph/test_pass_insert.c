// Insertion of scaled products: what each product becomes, names, dtypes, what is left alone,
// errors, seeds. What is shared: test_pass_sharing.c; filters: test_pass_select.c.
#include "pass_case.h"

#include <run_suite.h>

// ------------------------------------------------------------------------------------ one product

START_TEST(a_product_becomes_scale_quantize_and_scaled_matmul) {
    qg_scaling_report r;
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 16)));
    qg_graph *g = with_mxfp8(&r);
    is_op(g, "y", QG_GRAPH_SCALED_MATMUL);
    ck_assert_str_eq(operand_of(g, "y", 0), "x");
    qg_node rhs = qg_graph_find(g, operand_of(g, "y", 1));
    ck_assert_int_eq(qg_graph_node_op(g, rhs), QG_GRAPH_TRANSPOSE);
    ck_assert_str_eq(qg_graph_node_name(g, input_of(g, rhs, 0)), "w");
    ck_assert(qg_tensor_equal(qg_graph_node_type(g, rhs), &(qg_tensor_type){
                                                              0, 2, {16, 64}
    }));
    ck_assert_int_eq(r.products, 1);
    ck_assert_int_eq(r.left_alone, 0);
    ck_assert_int_eq(r.quantized, 2);
    ck_assert_int_eq(r.reused, 0);
    ck_assert_int_eq(r.transposed, 1);
    const qg_attributes *a = qg_graph_node_attributes(g, qg_graph_find(g, "y"));
    ck_assert_str_eq(a->recipe, "mxfp8");
    ck_assert_str_eq(a->recipe_b, "mxfp8");
    qg_graph_free(g);
}
END_TEST

START_TEST(each_side_has_its_own_recipe) {
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 16)));
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .rhs = "mxfp4//rceil"}, NULL);
    qg_node y = qg_graph_find(g, "y");
    ck_assert_str_eq(qg_graph_node_attributes(g, y)->recipe, "mxfp8");
    ck_assert_str_eq(qg_graph_node_attributes(g, y)->recipe_b, "mxfp4//rceil");
    ck_assert_str_eq(qg_graph_node_attributes(g, input_of(g, y, 0))->recipe, "mxfp8");
    ck_assert_str_eq(qg_graph_node_attributes(g, input_of(g, y, 1))->recipe, "mxfp4//rceil");
    qg_graph_free(g);
}
END_TEST

START_TEST(two_level_recipes_get_tensor_scales) {
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 16)));
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .rhs = "nvfp4"}, NULL);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_TENSOR_SCALE), 1);
    qg_node scale = input_of(g, qg_graph_find(g, "y"), 4);
    ck_assert_int_eq(qg_graph_node_op(g, scale), QG_GRAPH_SCALED_TENSOR_SCALE);
    qg_graph_free(g);
}
END_TEST

START_TEST(residual_recipes_have_two_planes_of_codes) {
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 16)));
    qg_graph *g = inserted((qg_scaling){.lhs = "rlx_mxfp4x2"}, NULL);
    const qg_tensor_type *codes = qg_graph_node_type(g, input_of(g, qg_graph_find(g, "y"), 1));
    ck_assert(qg_tensor_equal(codes, &(qg_tensor_type){
                                         QG_DTYPE_U8, 3, {2, 16, 64}
    }));
    qg_graph_free(g);
}
END_TEST

START_TEST(names_stay_also_those_that_the_graph_made) {
    begin();
    qg_node x = qg_graph_input(graph, NULL, fp32(4, 64));
    qg_node y = qg_graph_matmul(graph, x, weight("w", 64, 64));
    qg_node z = qg_graph_relu(graph, y);
    qg_graph_output(graph, qg_graph_matmul(graph, z, weight("v", 64, 16)));
    qg_graph *g = with_mxfp8(NULL);
    is_op(g, "input_0", QG_GRAPH_INPUT);
    is_op(g, "matmul_2", QG_GRAPH_SCALED_MATMUL);
    is_op(g, "relu_3", QG_GRAPH_RELU);
    is_op(g, "matmul_5", QG_GRAPH_SCALED_MATMUL);
    qg_graph_free(g);
}
END_TEST

// Insertion puts a transpose at place 2, and would call it transpose_2.
START_TEST(made_up_names_keep_clear_of_names_that_are_still_to_come) {
    begin();
    qg_node y = product("y", input("x", 4, 64), weight("w", 64, 16));
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_relu(graph, y), "transpose_2"));
    qg_graph *g = with_mxfp8(NULL);
    is_op(g, "transpose_2", QG_GRAPH_RELU);
    const qg_node *outputs;
    ck_assert_int_eq(qg_graph_outputs(g, &outputs), 1);
    ck_assert_int_eq(outputs[0], qg_graph_find(g, "transpose_2"));
    qg_graph_free(g);
}
END_TEST

static qg_graph *product_of_dtype(qg_dtype dtype) {
    begin();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(dtype, 2, 4, 64));
    qg_node w = qg_graph_parameter(graph, "w", qg_tensor(dtype, 2, 64, 16), NULL);
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_relu(graph, product("y", x, w)), "z"));
    return with_mxfp8(NULL);
}

START_TEST(a_bf16_product_stays_bf16_and_quantizes_its_operands_as_they_are) {
    qg_graph *g = product_of_dtype(QG_DTYPE_BF16);
    is_op(g, "y", QG_GRAPH_SCALED_MATMUL);
    ck_assert_int_eq(qg_graph_node_type(g, qg_graph_find(g, "y"))->dtype, QG_DTYPE_BF16);
    ck_assert_int_eq(qg_graph_node_type(g, qg_graph_find(g, "z"))->dtype, QG_DTYPE_BF16);
    ck_assert_str_eq(operand_of(g, "y", 0), "x");
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_CAST), 0);
    qg_graph_free(g);
}
END_TEST

START_TEST(an_fp16_product_is_a_cast_of_an_fp32_one) {
    qg_graph *g = product_of_dtype(QG_DTYPE_FP16);
    is_op(g, "y", QG_GRAPH_CAST);
    qg_node y = qg_graph_find(g, "y"), scaled = input_of(g, y, 0);
    ck_assert_int_eq(qg_graph_node_type(g, y)->dtype, QG_DTYPE_FP16);
    ck_assert_int_eq(qg_graph_node_op(g, scaled), QG_GRAPH_SCALED_MATMUL);
    ck_assert_int_eq(qg_graph_node_type(g, scaled)->dtype, QG_DTYPE_FP32);
    ck_assert_int_eq(qg_graph_node_type(g, qg_graph_find(g, "z"))->dtype, QG_DTYPE_FP16);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_product_that_is_an_output_stays_one) {
    begin();
    qg_node x = input("x", 64, 64);
    qg_node y = product("y", x, weight("w", 64, 64));
    qg_graph_output(graph, product("z", y, weight("v", 64, 64)));
    qg_graph_output(graph, y);
    qg_graph *g = with_mxfp8(NULL);
    const qg_node *outputs;
    ck_assert_int_eq(qg_graph_outputs(g, &outputs), 2);
    ck_assert_str_eq(qg_graph_node_name(g, outputs[0]), "z");
    ck_assert_str_eq(qg_graph_node_name(g, outputs[1]), "y");
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------------ whole graphs

static void two_layers(void) {
    begin();
    qg_node x = input("x", 4, 64);
    qg_node b1 = qg_graph_parameter(graph, "b1", qg_tensor(QG_DTYPE_FP32, 1, 128), NULL);
    qg_node h = qg_graph_add(graph, product("up", x, weight("w1", 64, 128)), b1);
    qg_node y = product("down", qg_graph_relu(graph, h), weight("w2", 128, 16));
    qg_graph_output(graph, y);
}

START_TEST(a_perceptron_of_two_layers_has_two_rewrites) {
    qg_scaling_report r;
    two_layers();
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.products, 2);
    ck_assert_int_eq(r.quantized, 4);
    ck_assert_int_eq(r.reused, 0);
    ck_assert_int_eq(r.transposed, 2);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_ADD), 1);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_RELU), 1);
    qg_graph_free(g);
}
END_TEST

static void batched_and_plain(void) {
    begin();
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 2, 4, 64));
    qg_node b = qg_graph_input(graph, "b", qg_tensor(QG_DTYPE_FP32, 3, 2, 64, 8));
    qg_graph_output(graph, product("scores", a, b));
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 16)));
}

START_TEST(batched_products_are_left_alone) {
    qg_scaling_report r;
    batched_and_plain();
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.products, 1);
    ck_assert_int_eq(r.left_alone, 1);
    is_op(g, "scores", QG_GRAPH_MATMUL);
    is_op(g, "y", QG_GRAPH_SCALED_MATMUL);
    qg_graph_free(g);
}
END_TEST

START_TEST(batched_products_are_rewritten_when_asked_for) {
    batched_and_plain();
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .batched = true}, NULL);
    is_op(g, "scores", QG_GRAPH_SCALED_MATMUL);
    const qg_tensor_type *rhs = qg_graph_node_type(g, input_of(g, qg_graph_find(g, "scores"), 1));
    ck_assert(qg_tensor_equal(rhs, &(qg_tensor_type){
                                       QG_DTYPE_U8, 3, {2, 8, 64}
    }));
    qg_graph_free(g);
}
END_TEST

START_TEST(a_graph_without_products_stays_as_it_is) {
    qg_scaling_report r;
    begin();
    qg_graph_output(graph, qg_graph_relu(graph, input("x", 4, 64)));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.products, 0);
    ck_assert_int_eq(qg_graph_count(g), 2);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_second_insertion_finds_nothing_to_do) {
    qg_scaling scaling = {.lhs = "mxfp8"};
    qg_scaling_report r;
    qg_graph *again;
    two_layers();
    qg_graph *g = with_mxfp8(NULL);
    ck_assert_int_eq(qg_graph_insert_scaled_matmul(g, &scaling, &again, &r), QG_OK);
    ck_assert_int_eq(r.products, 0);
    ck_assert_int_eq(qg_graph_count(again), qg_graph_count(g));
    qg_graph_free(again);
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------------------ errors

START_TEST(an_operand_that_cannot_be_quantized_so_names_the_product) {
    qg_graph *out;
    begin();
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 2, 12, 64));
    qg_node b = qg_graph_input(graph, "b", qg_tensor(QG_DTYPE_FP32, 3, 2, 64, 8));
    qg_graph_output(graph, product("scores", a, b));
    qg_scaling scaling = {.lhs = "e4m3/block:8x8/amax", .batched = true};
    ck_assert_int_eq(qg_graph_insert_scaled_matmul(graph, &scaling, &out, NULL), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "product 'scores'"));
    ck_assert_ptr_nonnull(strstr(qg_detail(), "blocks of 8 rows"));
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_graph_that_failed_while_it_was_built_fails_again) {
    qg_graph *out = (qg_graph *)1;
    begin_failed();
    qg_status status =
        qg_graph_insert_scaled_matmul(graph, &(qg_scaling){.lhs = "mxfp8"}, &out, NULL);
    failed_again(status, out);
}
END_TEST

// ------------------------------------------------------------------------------------------- seeds

START_TEST(each_stochastic_quantization_has_its_own_seed) {
    qg_scaling_report r;
    two_layers();
    qg_graph *g = inserted(
        (qg_scaling){.lhs = "mxfp8", .rhs = "mxfp8//rceil/stochastic:A:16", .seed = 100}, &r);
    qg_node up = qg_graph_find(g, "up"), down = qg_graph_find(g, "down");
    ck_assert_uint_eq(qg_graph_node_attributes(g, input_of(g, up, 0))->seed, 0);
    ck_assert_uint_eq(qg_graph_node_attributes(g, input_of(g, up, 1))->seed, 101);
    ck_assert_uint_eq(qg_graph_node_attributes(g, input_of(g, down, 0))->seed, 0);
    ck_assert_uint_eq(qg_graph_node_attributes(g, input_of(g, down, 1))->seed, 103);
    qg_graph_free(g);
}
END_TEST

int main(void) {
    const TTest *tests[] = {a_product_becomes_scale_quantize_and_scaled_matmul,
                            each_side_has_its_own_recipe,
                            two_level_recipes_get_tensor_scales,
                            residual_recipes_have_two_planes_of_codes,
                            names_stay_also_those_that_the_graph_made,
                            made_up_names_keep_clear_of_names_that_are_still_to_come,
                            a_bf16_product_stays_bf16_and_quantizes_its_operands_as_they_are,
                            an_fp16_product_is_a_cast_of_an_fp32_one,
                            a_product_that_is_an_output_stays_one,
                            a_perceptron_of_two_layers_has_two_rewrites,
                            batched_products_are_left_alone,
                            batched_products_are_rewritten_when_asked_for,
                            a_graph_without_products_stays_as_it_is,
                            a_second_insertion_finds_nothing_to_do,
                            an_operand_that_cannot_be_quantized_so_names_the_product,
                            a_graph_that_failed_while_it_was_built_fails_again,
                            each_stochastic_quantization_has_its_own_seed};
    return RUN_SUITE("pass_insert", tests);
}
