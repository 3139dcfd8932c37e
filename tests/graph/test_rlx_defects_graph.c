// RLX's known defects 10 to 13 as tests, as in test_rlx_defects_values: what must hold is a check
// that the library passes and the defect (tests/support/rlx_graph_faults.c) fails.
//   10 d10_weights_are_quantized_once          12 d12_wrong_scaled_products_are_refused
//   11 d11_dtype_of_a_product_is_kept          13 d13_operands_have_the_recipe_asked_for
//      d11_no_transpose_of_a_transpose            d13_orientation_is_part_of_the_key
//      d11_products_are_left_alone_by_name        d13_one_scale_is_quantized_once_both_ways
//      d11_batched_products_are_taken_if_asked
//      d11_an_extent_that_is_not_there_is_an_error_that_names_the_node
#include <require.h>
#include <rlx_graph.h>
#include <rlx_graph_faults.h>
#include <run_suite.h>

#include <graph_internal.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 6, K = 64, N = 10 };

// What inserts scaled products.
typedef qg_graph *(*inserter)(const qg_graph *graph, const char *lhs, const char *rhs,
                              const char *except);

static qg_graph *by_pass(const qg_graph *graph, const char *lhs, const char *rhs,
                         const char *except) {
    qg_scaling scaling = {.lhs = lhs, .rhs = rhs, .except = except};
    qg_graph *made;
    RLX_OK(qg_graph_insert_scaled_matmul(graph, &scaling, &made, NULL));
    return made;
}

static qg_graph *by_rlx(const qg_graph *graph, const char *lhs, const char *rhs,
                        const char *except) {
    return rlx_fault_insert(graph, lhs, rhs, except, RLX_FAULT_AS_IT_IS);
}

static float values[N * K];

static qg_node weight(qg_graph *graph, const char *name, int64_t rows, int64_t columns) {
    rlx_ordinary(8, N * K, values);
    return qg_graph_parameter(graph, name, qg_tensor(QG_DTYPE_FP32, 2, rows, columns), values);
}

// y = x w of a parameter (64, 10).
static qg_graph *one_layer(void) {
    qg_graph *graph = rlx_graph();
    qg_node y = qg_graph_matmul(graph, rlx_input(graph, "x", M, K), weight(graph, "w", K, N));
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

// ---------------------------------------------------------------------------------------------- 10

// Nodes that depend on weights alone and are computed with every run.
static int work_on_weights(const qg_graph *graph, bool (*folds)(const qg_graph *, qg_node)) {
    int work = 0;
    bool *fixed = calloc((size_t)qg_graph_count(graph), 1);
    for (qg_node i = 0; i < qg_graph_count(graph); i++) {
        const qg_node *inputs;
        int32_t count = qg_graph_node_inputs(graph, i, &inputs);
        fixed[i] = count > 0 || graph_op_has_values(qg_graph_node_op(graph, i));
        for (int32_t j = 0; j < count; j++)
            fixed[i] = fixed[i] && fixed[inputs[j]];
        work += fixed[i] && count > 0 && !(folds && folds(graph, i));
    }
    free(fixed);
    return work;
}

START_TEST(d10_weights_are_quantized_once) {
    float x[M * K];
    rlx_ordinary(9, M * K, x);
    const qg_graph_feed feed = {"x", x};
    qg_graph *graph = one_layer(), *scaled = by_pass(graph, "rlx_mxfp8", NULL, NULL), *folded;
    RLX_OK(qg_graph_fold(scaled, true, NULL, &folded));
    ck_assert_int_eq(work_on_weights(folded, NULL), 0);
    ck_assert_int_eq(work_on_weights(scaled, rlx_fault_folds), 3); // transpose, scale, quantize
    // The weights are there as codes and scales, and give the same.
    ck_assert_int_eq(qg_graph_find(folded, "w"), QG_NODE_NONE);
    qg_graph_runner *before = rlx_run(scaled, "emulator", NULL, 1, &feed);
    qg_graph_runner *after = rlx_run(folded, "emulator", NULL, 1, &feed);
    ck_assert_int_eq(memcmp(rlx_values(scaled, before, "y"), rlx_values(folded, after, "y"),
                            sizeof(float) * M * N),
                     0);
    qg_graph_runner_free(before);
    qg_graph_runner_free(after);
    qg_graph_free(graph);
    qg_graph_free(scaled);
    qg_graph_free(folded);
}
END_TEST

// ---------------------------------------------------------------------------------------------- 11

// x w + r in bf16.
static bool dtype_is_kept(inserter insert) {
    qg_graph *graph = rlx_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_BF16, 2, M, K));
    qg_node w = qg_graph_input(graph, "w", qg_tensor(QG_DTYPE_BF16, 2, K, N));
    qg_node r = qg_graph_input(graph, "r", qg_tensor(QG_DTYPE_BF16, 2, M, N));
    qg_node y = qg_graph_name(graph, qg_graph_matmul(graph, x, w), "y");
    qg_graph_output(graph, qg_graph_add(graph, y, r));
    RLX_OK(qg_graph_status(graph));
    qg_graph *made = insert(graph, "rlx_mxfp8", "rlx_mxfp8", NULL);
    qg_node product = qg_graph_find(made, "y");
    bool kept = qg_graph_node_op(made, product) == QG_GRAPH_SCALED_MATMUL &&
                qg_graph_node_type(made, product)->dtype == QG_DTYPE_BF16 &&
                qg_graph_verify(made) == QG_OK;
    ck_assert(rlx_fault_verify(made)); // which is all that RLX's test of the pass looks at
    qg_graph_free(graph);
    qg_graph_free(made);
    return kept;
}

START_TEST(d11_dtype_of_a_product_is_kept) {
    ck_assert(dtype_is_kept(by_pass));
    ck_assert(!dtype_is_kept(by_rlx));
}
END_TEST

// x times the transpose of a weight that is stored with K last.
static int transposes_left(inserter insert) {
    static const int32_t axes[] = {1, 0};
    qg_graph *graph = rlx_graph();
    qg_node x = rlx_input(graph, "x", M, K), w = weight(graph, "w", N, K);
    qg_graph_output(graph, qg_graph_matmul(graph, x, qg_graph_transpose(graph, w, axes)));
    qg_graph *made = insert(graph, "rlx_mxfp8", "rlx_mxfp8", NULL);
    RLX_OK(qg_graph_verify(made));
    int count = qg_graph_count_op(made, QG_GRAPH_TRANSPOSE);
    qg_graph_free(graph);
    qg_graph_free(made);
    return count;
}

START_TEST(d11_no_transpose_of_a_transpose) {
    ck_assert_int_eq(transposes_left(by_pass), 0);
    ck_assert_int_eq(transposes_left(by_rlx), 2);
}
END_TEST

static bool head_is_left_alone(inserter insert) {
    qg_graph *graph = rlx_graph();
    qg_node h = qg_graph_matmul(graph, rlx_input(graph, "x", M, K), weight(graph, "w", K, N));
    qg_node y = qg_graph_matmul(graph, h, rlx_input(graph, "v", N, 3));
    qg_graph_output(graph, qg_graph_name(graph, y, "head"));
    qg_graph *made = insert(graph, "rlx_mxfp8", "rlx_mxfp8", "head");
    bool alone = qg_graph_node_op(made, qg_graph_find(made, "head")) == QG_GRAPH_MATMUL &&
                 qg_graph_count_op(made, QG_GRAPH_SCALED_MATMUL) == 1;
    qg_graph_free(graph);
    qg_graph_free(made);
    return alone;
}

START_TEST(d11_products_are_left_alone_by_name) {
    ck_assert(head_is_left_alone(by_pass));
    ck_assert(!head_is_left_alone(by_rlx));
}
END_TEST

static qg_graph *all_by_pass(const qg_graph *graph, const char *lhs, const char *rhs,
                             const char *except) {
    qg_scaling scaling = {.lhs = lhs, .rhs = rhs, .except = except, .batched = true};
    qg_graph *made;
    RLX_OK(qg_graph_insert_scaled_matmul(graph, &scaling, &made, NULL));
    return made;
}

static int batched_products_scaled(inserter insert) {
    qg_graph *graph = rlx_graph();
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 4, 2, 3, 5, 32));
    qg_node b = qg_graph_input(graph, "b", qg_tensor(QG_DTYPE_FP32, 4, 2, 3, 32, 4));
    qg_graph_output(graph, qg_graph_matmul(graph, a, b));
    qg_graph *made = insert(graph, "rlx_mxfp8", "rlx_mxfp8", NULL);
    int count = qg_graph_count_op(made, QG_GRAPH_SCALED_MATMUL);
    qg_graph_free(graph);
    qg_graph_free(made);
    return count;
}

START_TEST(d11_batched_products_are_taken_if_asked) {
    ck_assert_int_eq(batched_products_scaled(all_by_pass), 1);
    ck_assert_int_eq(batched_products_scaled(by_rlx), 0);
}
END_TEST

// As a text or another program might bring it: no builder makes such a node.
static qg_graph *graph_without_extent(void) {
    qg_graph *graph = rlx_graph();
    qg_tensor_type unknown = {
        QG_DTYPE_FP32, 2, {-1, K}
    };
    qg_tensor_type out = {
        QG_DTYPE_FP32, 2, {-1, N}
    };
    qg_attributes attributes = {.type = unknown}, none = {0};
    qg_node inputs[2];
    inputs[0] = graph_append(graph, QG_GRAPH_INPUT, "x", &unknown, 0, NULL, &attributes, NULL, 0);
    inputs[1] = weight(graph, "w", K, N);
    qg_graph_output(graph,
                    graph_append(graph, QG_GRAPH_MATMUL, "y", &out, 2, inputs, &none, NULL, 0));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

START_TEST(d11_an_extent_that_is_not_there_is_an_error_that_names_the_node) {
    qg_graph *graph = graph_without_extent(), *made, *built = rlx_graph();
    qg_scaling scaling = {.lhs = "rlx_mxfp8"};
    ck_assert_int_ne(qg_graph_verify(graph), QG_OK);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "'x'"));
    ck_assert_int_ne(qg_graph_insert_scaled_matmul(graph, &scaling, &made, NULL), QG_OK);
    ck_assert_ptr_null(made);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "'y'"));
    // By the builder the graph fails, and tells the name; nothing ends.
    ck_assert_int_eq(rlx_input(built, "dynamic", -1, K), QG_NODE_NONE);
    ck_assert_int_ne(qg_graph_status(built), QG_OK);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "dynamic"));
    ck_assert_ptr_null(by_rlx(graph, "rlx_mxfp8", "rlx_mxfp8", NULL)); // it panics
    qg_graph_free(graph);
    qg_graph_free(built);
}
END_TEST

// ---------------------------------------------------------------------------------------------- 12

typedef struct wrong_product {
    const char *detail;
    qg_tensor_type lhs, rhs, lhs_scale, rhs_scale, bias, out; // bias of rank 0: none
    const char *recipe, *recipe_b;
} wrong_product;

#define U8(...)                                                                                    \
    {                                                                                              \
        QG_DTYPE_U8, 2, { __VA_ARGS__ }                                                            \
    }
#define F32(...)                                                                                   \
    {                                                                                              \
        QG_DTYPE_FP32, 2, { __VA_ARGS__ }                                                          \
    }
#define VECTOR(N)                                                                                  \
    {                                                                                              \
        QG_DTYPE_FP32, 1, { N }                                                                    \
    }
#define NO_BIAS                                                                                    \
    { 0 }
#define MXFP8 "rlx_mxfp8"
// What is right: the parts of a product of (6, 64) and (10, 64).
#define CODES  U8(6, 64), U8(10, 64)
#define SCALES U8(6, 2), U8(10, 2)
#define PLAIN  NO_BIAS, F32(6, 10)
#define BOTH   MXFP8, MXFP8

// clang-format off
static const wrong_product wrong_products[] = {
    {"K differs: 64 of lhs, 96 of rhs", U8(6, 64), U8(10, 96), U8(6, 2), U8(10, 3), PLAIN, BOTH},
    {"scale of lhs", CODES, U8(6, 1), U8(10, 2), PLAIN, BOTH},
    {"scale of lhs", CODES, U8(2, 6), U8(10, 2), PLAIN, BOTH},
    {"scale of rhs", CODES, U8(6, 2), U8(9, 2), PLAIN, BOTH},
    {"scale of lhs", CODES, F32(6, 2), U8(10, 2), PLAIN, BOTH},
    {"scale of rhs", CODES, U8(6, 2), VECTOR(1), PLAIN, BOTH},
    {"lhs", F32(6, 64), U8(10, 64), SCALES, PLAIN, BOTH},
    {"bias", CODES, SCALES, VECTOR(6), F32(6, 10), BOTH},
    {"bias", CODES, SCALES, {QG_DTYPE_BF16, 1, {10}}, F32(6, 10), BOTH},
    {"fp32[6,10]", CODES, SCALES, NO_BIAS, F32(10, 6), BOTH},
    {"fp32 or bf16", CODES, SCALES, NO_BIAS, {QG_DTYPE_FP16, 2, {6, 10}}, BOTH},
    {"group:0", CODES, SCALES, PLAIN, "e4m3/group:0/rceil", MXFP8},
    {"ue4m3", CODES, SCALES, PLAIN, MXFP8, "e2m1/per_row/amax_ue4m3"},
    {"e4m33", CODES, SCALES, PLAIN, "e4m33", MXFP8},
    {"e8m0", CODES, SCALES, PLAIN, "e8m0", MXFP8},
};
// clang-format on

static qg_graph *graph_of(const wrong_product *w) {
    qg_graph *graph = rlx_graph();
    qg_attributes attributes = {0};
    qg_node inputs[5] = {qg_graph_input(graph, "lhs", w->lhs), qg_graph_input(graph, "rhs", w->rhs),
                         qg_graph_input(graph, "lhs_scale", w->lhs_scale),
                         qg_graph_input(graph, "rhs_scale", w->rhs_scale)};
    if (w->bias.rank)
        inputs[4] = qg_graph_input(graph, "bias", w->bias);
    attributes.type.dtype = w->out.dtype;
    strcpy(attributes.recipe, w->recipe);
    strcpy(attributes.recipe_b, w->recipe_b);
    qg_graph_output(graph, graph_append(graph, QG_GRAPH_SCALED_MATMUL, "y", &w->out,
                                        w->bias.rank ? 5 : 4, inputs, &attributes, NULL, 0));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

START_TEST(d12_wrong_scaled_products_are_refused) {
    const wrong_product right = {"",         U8(6, 64),  U8(10, 64), U8(6, 2), U8(10, 2),
                                 VECTOR(10), F32(6, 10), MXFP8,      MXFP8};
    qg_graph *good = graph_of(&right);
    RLX_OK(qg_graph_verify(good));
    qg_graph_free(good);
    for (size_t i = 0; i < sizeof wrong_products / sizeof wrong_products[0]; i++) {
        qg_graph *graph = graph_of(&wrong_products[i]);
        ck_assert_msg(qg_graph_verify(graph) != QG_OK, "product %zu", i);
        ck_assert_msg(strstr(qg_detail(), "'y'") && strstr(qg_detail(), wrong_products[i].detail),
                      "product %zu: %s", i, qg_detail());
        ck_assert(rlx_fault_verify(graph));
        qg_graph_free(graph);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------------- 13

// x times its own transpose, its sides under different rules of one element format.
static bool operands_have_their_recipes(inserter insert) {
    static const char *const asked[] = {"e4m3/group:32/rceil", "e4m3/group:32/floor"};
    static const int32_t axes[] = {1, 0};
    qg_graph *graph = rlx_graph();
    qg_node x = rlx_input(graph, "x", M, K);
    qg_node y = qg_graph_matmul(graph, x, qg_graph_transpose(graph, x, axes));
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    qg_graph *made = insert(graph, asked[0], asked[1], NULL);
    RLX_OK(qg_graph_verify(made));
    const qg_node *inputs;
    qg_node product = qg_graph_find(made, "y");
    const qg_attributes *attributes = qg_graph_node_attributes(made, product);
    bool same =
        strcmp(attributes->recipe, asked[0]) == 0 && strcmp(attributes->recipe_b, asked[1]) == 0;
    qg_graph_node_inputs(made, product, &inputs);
    for (int side = 0; side < 2; side++)
        same =
            same && strcmp(qg_graph_node_attributes(made, inputs[side])->recipe, asked[side]) == 0;
    qg_graph_free(graph);
    qg_graph_free(made);
    return same;
}

static qg_graph *without_recipe_in_key(const qg_graph *graph, const char *lhs, const char *rhs,
                                       const char *except) {
    return rlx_fault_insert(graph, lhs, rhs, except, RLX_FAULT_KEY_WITHOUT_RECIPE);
}

START_TEST(d13_operands_have_the_recipe_asked_for) {
    ck_assert(operands_have_their_recipes(by_pass));
    ck_assert(!operands_have_their_recipes(without_recipe_in_key));
}
END_TEST

enum { SIDE = 32 };

// x x of a square x: rows of the rhs are columns of x, and their blocks run down.
static bool square_is_right(inserter insert, const char *recipe) {
    float x[SIDE * SIDE], turned[SIDE * SIDE];
    rlx_ordinary(4, SIDE * SIDE, x);
    for (int i = 0; i < SIDE * SIDE; i++)
        turned[i] = x[i % SIDE * SIDE + i / SIDE];
    qg_graph *graph = rlx_graph();
    qg_node in = rlx_input(graph, "x", SIDE, SIDE);
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_matmul(graph, in, in), "y"));
    qg_graph *made = insert(graph, recipe, recipe, NULL);
    const qg_graph_feed feed = {"x", x};
    qg_graph_runner *runner = rlx_run(made, "emulator", "exact", 1, &feed);
    const float *y = rlx_values(made, runner, "y");
    rlx_quantized lhs = rlx_quantize("emulator", recipe, SIDE, SIDE, x);
    rlx_quantized rhs = rlx_quantize("emulator", recipe, SIDE, SIDE, turned);
    bool right = true;
    for (int i = 0; i < SIDE * SIDE; i++) {
        rlx_sum sum = rlx_dot(&lhs, i / SIDE, &rhs, i % SIDE);
        long double room = rlx_allowance("emulator", "exact", &lhs, &rhs, sum, 0.0f);
        right = right && fabsl((long double)y[i] - sum.value) <= room;
    }
    rlx_discard(&lhs);
    rlx_discard(&rhs);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    qg_graph_free(made);
    return right;
}

static qg_graph *without_orientation_in_key(const qg_graph *graph, const char *lhs, const char *rhs,
                                            const char *except) {
    return rlx_fault_insert(graph, lhs, rhs, except, RLX_FAULT_KEY_WITHOUT_ORIENTATION);
}

START_TEST(d13_orientation_is_part_of_the_key) {
    ck_assert(square_is_right(by_pass, "rlx_mxfp8"));
    ck_assert(square_is_right(by_rlx, "rlx_mxfp8"));
    ck_assert(!square_is_right(without_orientation_in_key, "rlx_mxfp8"));
}
END_TEST

static int quantizations_of_square(inserter insert, const char *recipe) {
    qg_graph *graph = rlx_graph();
    qg_node in = rlx_input(graph, "x", SIDE, SIDE);
    qg_graph_output(graph, qg_graph_matmul(graph, in, in));
    qg_graph *made = insert(graph, recipe, recipe, NULL);
    int count = qg_graph_count_op(made, QG_GRAPH_SCALED_QUANTIZE);
    qg_graph_free(graph);
    qg_graph_free(made);
    return count;
}

// With one scale for the tensor both operands are the same codes, with blocks they are not.
START_TEST(d13_one_scale_is_quantized_once_both_ways) {
    ck_assert_int_eq(quantizations_of_square(by_pass, "rlx_e4m3"), 1);
    ck_assert(square_is_right(by_pass, "rlx_e4m3"));
    ck_assert_int_eq(quantizations_of_square(by_pass, "rlx_mxfp8"), 2);
    ck_assert_int_eq(quantizations_of_square(by_rlx, "rlx_e4m3"), 2);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        d10_weights_are_quantized_once,
        d11_dtype_of_a_product_is_kept,
        d11_no_transpose_of_a_transpose,
        d11_products_are_left_alone_by_name,
        d11_batched_products_are_taken_if_asked,
        d11_an_extent_that_is_not_there_is_an_error_that_names_the_node,
        d12_wrong_scaled_products_are_refused,
        d13_operands_have_the_recipe_asked_for,
        d13_orientation_is_part_of_the_key,
        d13_one_scale_is_quantized_once_both_ways,
    };
    return RUN_SUITE("rlx_defects_graph", tests);
}
