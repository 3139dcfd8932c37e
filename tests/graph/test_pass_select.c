// Which products insertion rewrites: filters by name, size and place, and what they refuse.
#include "pass_case.h"

#include <run_suite.h>

// ------------------------------------------------------------------------------------------ filter

// Four layers of 2*8*K multiply-adds with K = 16, 32, 64, 128.
static void four_layers(void) {
    static const char *const names[] = {"block0/in", "block0/out", "block1/in", "block1/out"};
    static const char *const inputs[] = {"x0", "x1", "x2", "x3"};
    static const char *const weights[] = {"w0", "w1", "w2", "w3"};
    begin();
    for (int i = 0; i < 4; i++) {
        qg_node x = input(inputs[i], 2, 16 << i), w = weight(weights[i], 16 << i, 8);
        qg_graph_output(graph, product(names[i], x, w));
    }
}

// The rewritten ones of the four, as 0s and 1s.
static void rewrites(qg_scaling scaling, const char *expected) {
    static const char *const names[] = {"block0/in", "block0/out", "block1/in", "block1/out"};
    char found[5] = "";
    scaling.lhs = "mxfp8";
    four_layers();
    qg_graph *g = inserted(scaling, NULL);
    for (int i = 0; i < 4; i++)
        found[i] = qg_graph_node_op(g, qg_graph_find(g, names[i])) == QG_GRAPH_MATMUL ? '0' : '1';
    ck_assert_str_eq(found, expected);
    qg_graph_free(g);
}

START_TEST(only_names_what_is_rewritten) {
    rewrites((qg_scaling){.only = "block0/*"}, "1100");
    rewrites((qg_scaling){.only = "*/out"}, "0101");
    rewrites((qg_scaling){.only = "block0/in,block1/out"}, "1001");
    rewrites((qg_scaling){.only = "*"}, "1111");
}
END_TEST

START_TEST(except_names_what_is_not) {
    rewrites((qg_scaling){.except = "block0/*"}, "0011");
    rewrites((qg_scaling){.except = "*/in,block1/out"}, "0100");
    rewrites((qg_scaling){.only = "block1/*", .except = "*/in"}, "0001");
}
END_TEST

START_TEST(small_products_are_left_alone) {
    rewrites((qg_scaling){.least_products = 2 * 8 * 64}, "0011");
    rewrites((qg_scaling){.least_products = 2 * 8 * 64 + 1}, "0001");
}
END_TEST

START_TEST(first_and_last_are_counted_among_the_selected) {
    rewrites((qg_scaling){.first = 1}, "0111");
    rewrites((qg_scaling){.last = 1}, "1110");
    rewrites((qg_scaling){.first = 1, .last = 2}, "0100");
    rewrites((qg_scaling){.first = 3, .last = 3}, "0000");
    rewrites((qg_scaling){.only = "*/in", .first = 1}, "0010");
    rewrites((qg_scaling){.except = "*/in", .last = 1}, "0100");
}
END_TEST

START_TEST(sizes_count_all_batches_and_do_not_overflow) {
    int64_t huge = (int64_t)1 << 20;
    begin();
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 16, huge, huge));
    qg_node b = qg_graph_input(graph, "b", qg_tensor(QG_DTYPE_FP32, 3, 16, huge, huge));
    qg_graph_output(graph, product("scores", a, b));
    qg_node c = qg_graph_input(graph, "c", qg_tensor(QG_DTYPE_FP32, 3, 16, 2, 32));
    qg_node d = qg_graph_input(graph, "d", qg_tensor(QG_DTYPE_FP32, 3, 16, 32, 2));
    qg_graph_output(graph, product("small", c, d));
    qg_graph *g = inserted(
        (qg_scaling){.lhs = "mxfp8", .batched = true, .least_products = 16 * 2 * 32 * 2}, NULL);
    is_op(g, "scores", QG_GRAPH_SCALED_MATMUL);
    is_op(g, "small", QG_GRAPH_SCALED_MATMUL);
    qg_graph_free(g);
}
END_TEST

// ------------------------------------------------------------------------------------------ errors

static void refuses(qg_scaling scaling, const char *word) {
    qg_graph *out = (qg_graph *)1;
    qg_scaling_report r = {.products = 77};
    four_layers();
    ck_assert_int_eq(qg_graph_insert_scaled_matmul(graph, &scaling, &out, &r), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_int_eq(r.products, 0);
    ck_assert_msg(strstr(qg_detail(), word) != NULL, "'%s' in '%s'", word, qg_detail());
    qg_graph_free(graph);
}

START_TEST(a_glob_that_matches_no_product_is_an_error) {
    refuses((qg_scaling){.lhs = "mxfp8", .only = "blok0/*"}, "'blok0/*'");
    refuses((qg_scaling){.lhs = "mxfp8", .only = "block0/*,blok1/*"}, "'blok1/*'");
    refuses((qg_scaling){.lhs = "mxfp8", .except = "head"}, "'head'");
    refuses((qg_scaling){.lhs = "mxfp8", .only = "w0"}, "'w0'"); // no product
    refuses((qg_scaling){.lhs = "mxfp8", .except = "w0"}, "'w0'");
    refuses((qg_scaling){.lhs = "mxfp8", .only = ""}, "''");
    refuses((qg_scaling){.lhs = "mxfp8", .only = "*,"}, "''");
}
END_TEST

START_TEST(a_selection_of_nothing_is_an_error) {
    refuses((qg_scaling){.lhs = "mxfp8", .only = "*/in", .except = "*"}, "'*/in'");
    refuses((qg_scaling){.lhs = "mxfp8", .only = "*/in", .least_products = 1 << 20}, "'*/in'");
    refuses((qg_scaling){.lhs = "mxfp8", .only = "*/in", .first = 2}, "'*/in'");
}
END_TEST

START_TEST(counts_below_0_are_errors) {
    refuses((qg_scaling){.lhs = "mxfp8", .first = -1}, "first -1");
    refuses((qg_scaling){.lhs = "mxfp8", .last = -1}, "last -1");
    refuses((qg_scaling){.lhs = "mxfp8", .least_products = -1}, "least products -1");
}
END_TEST

START_TEST(recipes_that_a_graph_cannot_have_are_errors) {
    static char long_recipe[QG_RECIPE_TEXT_SIZE + 1];
    memset(long_recipe, 'a', QG_RECIPE_TEXT_SIZE);
    refuses((qg_scaling){0}, "recipe");
    refuses((qg_scaling){.lhs = "mxfp9"}, "mxfp9");
    refuses((qg_scaling){.lhs = "mxfp8", .rhs = "mxfp9"}, "mxfp9");
    refuses((qg_scaling){.lhs = "bf16"}, "bf16");
    refuses((qg_scaling){.lhs = "e4m3/per_tensor/delayed"}, "delayed");
    refuses((qg_scaling){.lhs = "mxfp8", .rhs = long_recipe}, "rhs");
}
END_TEST

static void long_globs(char *glob) {
    memset(glob, '*', 600);
    glob[600] = 0;
}

START_TEST(a_glob_longer_than_names_is_an_error) {
    char glob[601];
    long_globs(glob);
    refuses((qg_scaling){.lhs = "mxfp8", .only = glob}, "255");
    glob[256] = 0;
    refuses((qg_scaling){.lhs = "mxfp8", .only = glob}, "255");
    glob[255] = 0;
    rewrites((qg_scaling){.only = glob}, "1111");
}
END_TEST

int main(void) {
    const TTest *tests[] = {only_names_what_is_rewritten,
                            except_names_what_is_not,
                            small_products_are_left_alone,
                            first_and_last_are_counted_among_the_selected,
                            sizes_count_all_batches_and_do_not_overflow,
                            a_glob_that_matches_no_product_is_an_error,
                            a_selection_of_nothing_is_an_error,
                            counts_below_0_are_errors,
                            recipes_that_a_graph_cannot_have_are_errors,
                            a_glob_longer_than_names_is_an_error};
    return RUN_SUITE("pass_select", tests);
}
