// Insertion of scaled products: transposes are undone, composed and shared, operands are quantized
// once for each node, recipe and orientation.
#include "pass_case.h"

#include <run_suite.h>

static int transposes_of_transposes(const qg_graph *g) {
    int count = 0;
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        count += qg_graph_node_op(g, i) == QG_GRAPH_TRANSPOSE &&
                 qg_graph_node_op(g, input_of(g, i, 0)) == QG_GRAPH_TRANSPOSE;
    return count;
}

// -------------------------------------------------------------------------------------- transposes

START_TEST(a_rhs_that_is_a_transpose_uses_what_it_transposes) {
    qg_scaling_report r;
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), swapped(weight("w", 16, 64))));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_str_eq(operand_of(g, "y", 1), "w");
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 0);
    ck_assert_int_eq(r.transposed, 0);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_transpose_with_other_users_stays_for_them) {
    begin();
    qg_node w = swapped(weight("w", 16, 64));
    qg_graph_output(graph, product("y", input("x", 4, 64), w));
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_relu(graph, w), "z"));
    qg_graph *g = with_mxfp8(NULL);
    ck_assert_str_eq(operand_of(g, "y", 1), "w");
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_transpose_that_is_an_output_stays) {
    begin();
    qg_node w = qg_graph_output(graph, qg_graph_name(graph, swapped(weight("w", 16, 64)), "t"));
    qg_graph_output(graph, product("y", input("x", 4, 64), w));
    qg_graph *g = with_mxfp8(NULL);
    is_op(g, "t", QG_GRAPH_TRANSPOSE);
    qg_graph_free(g);
}
END_TEST

START_TEST(nodes_that_nothing_needed_before_stay) {
    begin();
    qg_graph_name(graph, swapped(weight("w", 16, 64)), "watched");
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("v", 64, 64)));
    qg_graph *g = with_mxfp8(NULL);
    is_op(g, "watched", QG_GRAPH_TRANSPOSE);
    is_op(g, "w", QG_GRAPH_PARAMETER);
    qg_graph_free(g);
}
END_TEST

START_TEST(chains_of_transposes_are_undone) {
    begin();
    qg_node w = weight("w", 64, 16), x = input("x", 4, 64);
    qg_graph_output(graph, product("y", swapped(swapped(x)), swapped(swapped(w))));
    qg_graph_output(graph, product("z", x, swapped(swapped(swapped(weight("v", 16, 64))))));
    qg_graph *g = with_mxfp8(NULL);
    ck_assert_int_eq(transposes_of_transposes(g), 0);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 1);
    ck_assert_str_eq(operand_of(g, "y", 0), "x");
    ck_assert_str_eq(operand_of(g, "z", 1), "v");
    qg_graph_free(g);
}
END_TEST

START_TEST(permutations_of_more_axes_are_composed) {
    begin();
    // k (batch, tokens, heads, depth) as rhs (batch, heads, depth, tokens): K-last of it is axes
    // 0,2,1,3 of k.
    qg_node q = qg_graph_input(graph, "q", qg_tensor(QG_DTYPE_FP32, 4, 2, 3, 5, 32));
    qg_node k = qg_graph_input(graph, "k", qg_tensor(QG_DTYPE_FP32, 4, 2, 7, 3, 32));
    qg_node rhs = qg_graph_transpose(graph, k, (int32_t[]){0, 2, 3, 1});
    qg_graph_output(graph, product("y", q, rhs));
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .batched = true}, NULL);
    qg_node view = qg_graph_find(g, operand_of(g, "y", 1));
    ck_assert_int_eq(qg_graph_node_op(g, view), QG_GRAPH_TRANSPOSE);
    ck_assert_str_eq(qg_graph_node_name(g, input_of(g, view, 0)), "k");
    static const int32_t axes[] = {0, 2, 1, 3};
    ck_assert_mem_eq(qg_graph_node_attributes(g, view)->axes, axes, sizeof axes);
    qg_graph_free(g);
}
END_TEST

START_TEST(the_order_of_composition_is_right_where_it_matters) {
    begin();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 3, 2, 8, 32));
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 8, 4, 32));
    // (2,8,32) to (32,2,8) to (8,32,2)
    qg_node once = qg_graph_transpose(graph, x, (int32_t[]){2, 0, 1});
    qg_node twice = qg_graph_transpose(graph, once, (int32_t[]){2, 0, 1});
    qg_graph_output(graph, product("y", a, twice));
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .batched = true}, NULL);
    qg_node view = qg_graph_find(g, operand_of(g, "y", 1));
    static const int32_t axes[] = {1, 0, 2};
    ck_assert_mem_eq(qg_graph_node_attributes(g, view)->axes, axes, sizeof axes);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_transpose_under_a_cast_is_undone) {
    qg_scaling_report r;
    begin();
    qg_node w = swapped(weight("w", 16, 64));
    qg_node low = named(qg_graph_cast(graph, w, QG_DTYPE_BF16), "low");
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_BF16, 2, 4, 64));
    qg_node u = qg_graph_input(graph, "u", qg_tensor(QG_DTYPE_BF16, 2, 4, 64));
    qg_graph_output(graph, product("y", x, low));
    qg_graph_output(graph, product("z", u, low));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 0);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_CAST), 1); // of w
    ck_assert_int_eq(qg_graph_find(g, "low"), QG_NODE_NONE);
    ck_assert_int_eq(r.quantized, 3);
    qg_node rhs = found(g, operand_of(g, "z", 1));
    ck_assert_str_eq(qg_graph_node_name(g, input_of(g, rhs, 0)), "w");
    ck_assert_int_eq(qg_graph_node_type(g, rhs)->dtype, QG_DTYPE_BF16);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_cast_is_used_as_it_is_where_nothing_is_transposed_under_it) {
    begin();
    qg_node w = qg_graph_cast(graph, weight("w", 16, 64), QG_DTYPE_BF16);
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_BF16, 2, 4, 64));
    qg_graph_output(graph, product("y", x, swapped(named(w, "low"))));
    qg_graph *g = with_mxfp8(NULL);
    ck_assert_str_eq(operand_of(g, "y", 1), "low");
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_CAST), 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(casts_to_other_dtypes_are_not_shared) {
    begin();
    qg_node w = weight("w", 16, 64);
    qg_graph_output(graph, named(qg_graph_cast(graph, w, QG_DTYPE_FP16), "half"));
    qg_node low = qg_graph_cast(graph, swapped(w), QG_DTYPE_BF16);
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_BF16, 2, 4, 64));
    qg_graph_output(graph, product("y", x, low));
    qg_graph *g = with_mxfp8(NULL);
    ck_assert_int_eq(dtype_of(g, operand_of(g, "y", 1)), QG_DTYPE_BF16);
    qg_graph_free(g);
}
END_TEST

START_TEST(fp16_products_and_weights_are_cast_once) {
    qg_scaling_report r;
    begin();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP16, 2, 4, 64));
    qg_node low = qg_graph_cast(graph, swapped(weight("w", 64, 64)), QG_DTYPE_FP16);
    qg_node y = product("y", x, low);
    qg_graph_output(graph, product("z", y, low));
    qg_graph_output(graph, product("u", y, low));
    qg_graph *g = with_mxfp8(&r);
    const char *scaled = qg_graph_node_name(g, input_of(g, found(g, "z"), 0));
    ck_assert_str_eq(operand_of(g, scaled, 0), "y");
    ck_assert_int_eq(dtype_of(g, operand_of(g, scaled, 1)), QG_DTYPE_FP16);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_CAST), 4); // of w and of each product
    ck_assert_int_eq(r.quantized, 3);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_transpose_is_found_behind_others_of_the_same_tensor) {
    qg_scaling_report r;
    begin();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 3, 2, 32, 32));
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 2, 4, 32));
    qg_graph_output(graph, product("y", a, x));
    qg_graph_output(graph, qg_graph_transpose(graph, x, (int32_t[]){2, 1, 0}));
    qg_graph_output(graph, product("z", a, x));
    qg_graph *g = inserted((qg_scaling){.lhs = "mxfp8", .batched = true}, &r);
    ck_assert_int_eq(r.transposed, 1);
    ck_assert_str_eq(operand_of(g, "y", 1), operand_of(g, "z", 1));
    qg_graph_free(g);
}
END_TEST

// ----------------------------------------------------------------------------------------- sharing

START_TEST(an_activation_of_three_projections_is_quantized_once) {
    qg_scaling_report r;
    begin();
    qg_node x = qg_graph_relu(graph, input("x", 4, 64));
    qg_graph_name(graph, x, "hidden");
    qg_graph_output(graph, product("q", x, weight("wq", 64, 64)));
    qg_graph_output(graph, product("k", x, weight("wk", 64, 64)));
    qg_graph_output(graph, product("v", x, weight("wv", 64, 64)));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.quantized, 4);
    ck_assert_int_eq(r.reused, 2);
    ck_assert_int_eq(r.transposed, 3);
    ck_assert_int_eq(input_of(g, qg_graph_find(g, "q"), 0), input_of(g, qg_graph_find(g, "v"), 0));
    qg_graph_free(g);
}
END_TEST

START_TEST(a_weight_of_two_products_is_transposed_and_quantized_once) {
    qg_scaling_report r;
    begin();
    qg_node w = weight("w", 64, 64);
    qg_graph_output(graph, product("y", input("x", 4, 64), w));
    qg_graph_output(graph, product("z", input("u", 8, 64), w));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.quantized, 3);
    ck_assert_int_eq(r.reused, 1);
    ck_assert_int_eq(r.transposed, 1);
    qg_graph_free(g);
}
END_TEST

// An embedding's table multiplies as it is at one end and transposed at the other.
static qg_graph *tied(const char *recipe, qg_scaling_report *r) {
    begin();
    qg_node w = weight("w", 64, 64), transposed = swapped(w);
    qg_graph_output(graph, product("y", input("x", 4, 64), w));
    qg_graph_output(graph, product("z", input("u", 8, 64), transposed));
    return inserted((qg_scaling){.lhs = recipe}, r);
}

START_TEST(tied_weights_are_quantized_once_for_each_orientation) {
    qg_scaling_report r;
    qg_graph *g = tied("mxfp8", &r);
    ck_assert_int_eq(r.quantized, 4);
    ck_assert_int_eq(r.transposed, 0); // the transpose that was there serves y
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 1);
    ck_assert_str_eq(operand_of(g, "z", 1), "w");
    qg_graph_free(g);
}
END_TEST

START_TEST(a_tensor_with_one_scale_is_quantized_once_for_both_orientations) {
    qg_scaling_report r;
    qg_graph *g = tied("e4m3", &r);
    ck_assert_int_eq(r.quantized, 3);
    ck_assert_int_eq(r.reused, 1);
    qg_node y = qg_graph_find(g, "y"), z = qg_graph_find(g, "z");
    ck_assert_int_eq(input_of(g, y, 3), input_of(g, z, 3));
    ck_assert_int_eq(qg_graph_node_op(g, input_of(g, y, 1)), QG_GRAPH_TRANSPOSE);
    ck_assert_int_eq(input_of(g, input_of(g, y, 1), 0), input_of(g, z, 1));
    qg_graph_free(g);
}
END_TEST

START_TEST(one_node_on_both_sides_is_quantized_in_two_orientations) {
    qg_scaling_report r;
    begin();
    qg_node x = input("x", 64, 64);
    qg_graph_output(graph, product("y", x, x));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.quantized, 2);
    ck_assert_int_eq(r.transposed, 1);
    qg_graph_free(g);
}
END_TEST

START_TEST(a_node_times_its_own_transpose_is_quantized_once) {
    qg_scaling_report r;
    begin();
    qg_node x = input("x", 16, 64);
    qg_graph_output(graph, product("y", x, swapped(x)));
    qg_graph *g = with_mxfp8(&r);
    ck_assert_int_eq(r.quantized, 1);
    ck_assert_int_eq(r.reused, 1);
    ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_TRANSPOSE), 0);
    qg_graph_free(g);
}
END_TEST

START_TEST(recipes_do_not_share_quantizations) {
    qg_scaling_report r;
    begin();
    qg_node x = input("x", 16, 64);
    qg_graph_output(graph, product("y", x, swapped(x)));
    qg_graph_free(inserted((qg_scaling){.lhs = "mxfp8", .rhs = "mxfp4"}, &r));
    ck_assert_int_eq(r.quantized, 2);
    ck_assert_int_eq(r.reused, 0);
}
END_TEST

START_TEST(a_quantization_is_found_behind_others_of_the_same_tensor) {
    qg_scaling_report r;
    begin();
    qg_node x = input("x", 16, 64);
    qg_graph_output(graph, product("y", x, swapped(x)));
    qg_graph_output(graph, product("z", x, swapped(x)));
    qg_graph_free(inserted((qg_scaling){.lhs = "mxfp8", .rhs = "mxfp4"}, &r));
    ck_assert_int_eq(r.quantized, 2);
    ck_assert_int_eq(r.reused, 2);
}
END_TEST

// What configurations for each layer come to: one insertion for each.
START_TEST(insertions_one_after_the_other_share_quantizations) {
    static const char *const recipes[] = {"mxfp8", "nvfp4", "e4m3"};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        qg_scaling_report r;
        qg_scaling scaling = {.lhs = recipes[i], .only = "k,v"};
        qg_graph *g;
        begin();
        qg_node x = input("x", 4, 64), w = weight("w", 64, 64);
        qg_graph_output(graph, product("q", x, w));
        qg_graph_output(graph, product("k", x, w));
        qg_graph_output(graph, product("v", x, weight("wv", 64, 64)));
        graph = inserted((qg_scaling){.lhs = recipes[i], .only = "q"}, NULL);
        PASSED(g, qg_graph_insert_scaled_matmul(graph, &scaling, &g, &r));
        ck_assert_int_eq(r.products, 2);
        ck_assert_int_eq(r.quantized, 1);
        ck_assert_int_eq(r.reused, 3);
        ck_assert_int_eq(r.transposed, 1);
        ck_assert_int_eq(qg_graph_count_op(g, QG_GRAPH_SCALED_QUANTIZE), 3);
        qg_graph_free(g);
    }
}
END_TEST

START_TEST(insertions_one_after_the_other_have_seeds_of_their_own) {
    static const char recipe[] = "mxfp8//rceil/stochastic:A:16";
    begin();
    qg_graph_output(graph, product("y", input("x", 4, 64), weight("w", 64, 64)));
    qg_graph_output(graph, product("z", input("u", 4, 64), weight("v", 64, 64)));
    graph = inserted((qg_scaling){.lhs = recipe, .only = "y", .seed = 10}, NULL);
    qg_graph *g;
    qg_scaling scaling = {.lhs = recipe, .seed = 10};
    PASSED(g, qg_graph_insert_scaled_matmul(graph, &scaling, &g, NULL));
    uint64_t seed = 10;
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        if (qg_graph_node_op(g, i) == QG_GRAPH_SCALED_QUANTIZE)
            ck_assert_uint_eq(qg_graph_node_attributes(g, i)->seed, seed++);
    ck_assert_uint_eq(seed, 14);
    qg_graph_free(g);
}
END_TEST

// x quantized by the scales of `of` under `recipe`, then a product of x.
static void not_shared_with(const char *of, const char *recipe) {
    qg_scaling_report r;
    qg_scaling scaling = {.lhs = "mxfp8"};
    qg_graph *g;
    begin();
    input("x", 4, 64);
    input("u", 4, 64);
    qg_node x = found(graph, "x");
    qg_scaled other = qg_graph_quantize(graph, found(graph, of), recipe);
    qg_attributes attributes = {.recipe = "mxfp8"};
    qg_graph_output(graph, qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANTIZE, 2,
                                             (qg_node[]){x, other.scale}, &attributes, NULL));
    qg_graph_output(graph, product("y", x, weight("w", 64, 64)));
    PASSED(g, qg_graph_insert_scaled_matmul(graph, &scaling, &g, &r));
    ck_assert_int_eq(r.quantized, 2);
    ck_assert_int_eq(r.reused, 0);
    qg_graph_free(g);
}

START_TEST(codes_by_scales_from_elsewhere_are_not_shared) {
    not_shared_with("u", "mxfp8");
    not_shared_with("x", "te_mxfp8");
}
END_TEST

int main(void) {
    const TTest *tests[] = {a_rhs_that_is_a_transpose_uses_what_it_transposes,
                            a_transpose_with_other_users_stays_for_them,
                            a_transpose_that_is_an_output_stays,
                            nodes_that_nothing_needed_before_stay,
                            chains_of_transposes_are_undone,
                            permutations_of_more_axes_are_composed,
                            the_order_of_composition_is_right_where_it_matters,
                            a_transpose_under_a_cast_is_undone,
                            a_cast_is_used_as_it_is_where_nothing_is_transposed_under_it,
                            casts_to_other_dtypes_are_not_shared,
                            fp16_products_and_weights_are_cast_once,
                            a_transpose_is_found_behind_others_of_the_same_tensor,
                            an_activation_of_three_projections_is_quantized_once,
                            a_weight_of_two_products_is_transposed_and_quantized_once,
                            tied_weights_are_quantized_once_for_each_orientation,
                            a_tensor_with_one_scale_is_quantized_once_for_both_orientations,
                            one_node_on_both_sides_is_quantized_in_two_orientations,
                            a_node_times_its_own_transpose_is_quantized_once,
                            recipes_do_not_share_quantizations,
                            a_quantization_is_found_behind_others_of_the_same_tensor,
                            insertions_one_after_the_other_share_quantizations,
                            insertions_one_after_the_other_have_seeds_of_their_own,
                            codes_by_scales_from_elsewhere_are_not_shared};
    return RUN_SUITE("pass_sharing", tests);
}
