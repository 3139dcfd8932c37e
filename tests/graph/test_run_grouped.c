// Products by experts: each token times the matrix of its expert, whatever the order of tokens and
// whichever experts have none, for every recipe on both sides; indices out of range; the CPU's own
// grouped product beside it; threads.
#include <block_data.h>
#include <math.h>
#include <qg_cpu.h>
#include <require.h>
#include <run_suite.h>
#include <scaled_graph.h>

#include <stdio.h>
#include <string.h>

enum { TOKENS = 11, EXPERTS = 4, N = 8, K = 45 };

static float tokens[TOKENS * K], experts[EXPERTS * N * K], bias[EXPERTS * N];
static float qt[TOKENS * K], qe[EXPERTS * N * K];

// Expert 1 has no token.
static const int64_t mixed[TOKENS] = {2, 0, 3, 3, 0, 2, 2, 0, 3, 0, 2};
static const int64_t sorted[TOKENS] = {0, 0, 0, 0, 2, 2, 2, 2, 3, 3, 3};
static const int64_t only_last[TOKENS] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};

static const char *const further[] = {"e5m2/per_row", "int8/group:16/amax", "e4m3/block:1x16/amax",
                                      "rlx_mxfp4x2"};

static const char *recipe_at(size_t i) {
    size_t listed = 0;
    while (scaled_graph_recipe_at(listed))
        listed++;
    if (i < listed)
        return scaled_graph_recipe_at(i);
    return i - listed < sizeof further / sizeof further[0] ? further[i - listed] : NULL;
}

typedef struct grouped {
    const char *tokens, *experts;
    const int64_t *index;
    bool has_bias;
    qg_dtype dtype;
} grouped;

static qg_node build(qg_graph *graph, const grouped *p) {
    block_data_fill(1, BLOCK_DATA_ORDINARY, tokens, TOKENS * K);
    block_data_fill(2, BLOCK_DATA_ORDINARY, experts, EXPERTS * N * K);
    block_data_fill(3, BLOCK_DATA_ORDINARY, bias, EXPERTS * N);
    qg_scaled t = scaled_graph_operand(graph, "tokens", qg_tensor(QG_DTYPE_FP32, 2, TOKENS, K),
                                       tokens, p->tokens);
    qg_scaled e = scaled_graph_operand(graph, "experts", qg_tensor(QG_DTYPE_FP32, 3, EXPERTS, N, K),
                                       experts, p->experts);
    qg_node index =
        scaled_graph_tensor(graph, "index", qg_tensor(QG_DTYPE_I64, 1, TOKENS), p->index);
    qg_node added = QG_NODE_NONE;
    if (p->has_bias)
        added = scaled_graph_tensor(graph, "bias", qg_tensor(QG_DTYPE_FP32, 2, EXPERTS, N), bias);
    qg_node out = qg_graph_scaled_grouped_matmul(graph, t, e, index, added, p->dtype);
    return qg_graph_output(graph, qg_graph_name(graph, out, "moe"));
}

static void decode_operands(const grouped *p) {
    scaled_graph_round_trip(p->tokens, TOKENS, K, tokens, qt);
    scaled_graph_round_trip(p->experts, EXPERTS * N, K, experts, qe);
}

// One token at a time: the exact product with its expert.
static void check_tokens(const grouped *p, const uint8_t *out) {
    qg_unit exact;
    ck_assert_int_eq(qg_unit_parse("exact", &exact), QG_OK);
    int64_t size = N * qg_dtype_bytes(p->dtype);
    for (int64_t i = 0; i < TOKENS; i++) {
        float wanted[N];
        int64_t expert = p->index[i];
        qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
        options.bias = p->has_bias ? bias + expert * N : NULL;
        if (p->dtype == QG_DTYPE_BF16)
            options.out_type = QG_FORMAT_BF16;
        ck_assert_int_eq(
            qg_emulator_matmul(&exact, &options, 1, N, K, qt + i * K, qe + expert * N * K, wanted),
            QG_OK);
        REQUIRE(memcmp(out + i * size, wanted, (size_t)size) == 0, "%s by %s: token %lld",
                p->tokens, p->experts, (long long)i);
    }
}

static void check_grouped(const grouped *p) {
    qg_graph *graph = scaled_graph_create();
    qg_node node = build(graph, p);
    decode_operands(p);
    qg_graph_run_options options = scaled_graph_options("emulator", NULL, 1);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    check_tokens(p, scaled_graph_values(runner, node));
    ck_assert_str_ne(qg_graph_runner_impl(runner, node), "");
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

// Blocks of several rows of tokens, or that lie across experts, are no operands.
static bool groups(const char *text) { return !strstr(text, "128x128"); }

START_TEST(each_token_meets_its_expert) {
    static const int64_t *const indices[] = {mixed, sorted, only_last};
    size_t count = 0;
    while (recipe_at(count))
        count++;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < 3; j++) {
            grouped p = {.tokens = recipe_at(i), .experts = recipe_at((i + 7 * j) % count)};
            p.index = indices[j];
            p.has_bias = (i + j) % 2;
            p.dtype = i % 3 ? QG_DTYPE_FP32 : QG_DTYPE_BF16;
            if (groups(p.tokens) && groups(p.experts))
                check_grouped(&p);
        }
}
END_TEST

START_TEST(experts_in_blocks_of_rows) {
    grouped p = {.tokens = "deepseek_act128", .experts = "e4m3/block:4x16/amax", .index = mixed};
    check_grouped(&p);
}
END_TEST

START_TEST(on_a_unit_with_promotion) {
    grouped p = {.tokens = "e4m3/group:32/amax", .experts = "e4m3/block:4x32/amax", .index = mixed};
    qg_graph *graph = scaled_graph_create();
    qg_node node = build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("emulator", "hopper_wgmma", 2);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    decode_operands(&p);
    const float *out = scaled_graph_values(runner, node);
    for (int64_t i = 0; i < TOKENS; i++)
        for (int64_t j = 0; j < N; j++) {
            double exact = 0, magnitude = 0;
            for (int64_t l = 0; l < K; l++) {
                double term = (double)qt[i * K + l] * qe[(mixed[i] * N + j) * K + l];
                exact += term;
                magnitude += fabs(term);
            }
            REQUIRE(fabs(out[i * N + j] - exact) <= 0x1p-8 * magnitude, "%a, not %a",
                    (double)out[i * N + j], exact);
        }
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// ------------------------------------------------------------------------------------------ the
// CPU

static void check_close(const float *out, double bound, double underflow, const int64_t *index) {
    for (int64_t i = 0; i < TOKENS; i++)
        for (int64_t j = 0; j < N; j++) {
            double exact = (double)bias[index[i] * N + j], magnitude = fabs(exact);
            for (int64_t l = 0; l < K; l++) {
                double term = (double)qt[i * K + l] * qe[(index[i] * N + j) * K + l];
                exact += term;
                magnitude += fabs(term);
            }
            REQUIRE(fabs(out[i * N + j] - exact) <= bound * magnitude + underflow, "%a, not %a",
                    (double)out[i * N + j], exact);
        }
}

START_TEST(on_the_cpu_within_the_derived_bound) {
    static const char *const texts[] = {"mxfp8", "e4m3", "nvfp4", "rlx_mxfp4x2", "e5m2/per_row"};
    qg_graph_run_options options = scaled_graph_options("cpu", NULL, 2);
    for (int i = 0; i < 5 && options.backend->scaled_matmul; i++) {
        grouped p = {texts[i], texts[(i + 1) % 5], mixed, true, QG_DTYPE_FP32};
        qg_graph *graph = scaled_graph_create();
        qg_node node = build(graph, &p);
        decode_operands(&p);
        qg_graph_runner *runner = scaled_graph_run(graph, &options);
        qg_recipe lhs = scaled_graph_recipe(p.tokens), rhs = scaled_graph_recipe(p.experts);
        check_close(scaled_graph_values(runner, node),
                    options.backend->matmul_bound(&lhs, &rhs, K, QG_FORMAT_FP32),
                    options.backend->matmul_underflow(K, QG_FORMAT_FP32), mixed);
        qg_graph_runner_free(runner);
        qg_graph_free(graph);
    }
}
END_TEST

// Sorted tokens are what the CPU's grouped product takes as they are: with a binary32 path of equal
// row counts it is the same call for each expert.
START_TEST(the_cpus_own_grouped_product_agrees) {
    grouped p = {.tokens = "mxfp8", .experts = "mxfp4", .index = sorted, .dtype = QG_DTYPE_FP32};
    qg_graph *graph = scaled_graph_create();
    qg_node node = build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("cpu", NULL, 1);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    qg_recipe lhs = scaled_graph_recipe(p.tokens), rhs = scaled_graph_recipe(p.experts);
    qg_matmul_operand left = {.recipe = &lhs, .tensor_scale = 1}, right[EXPERTS];
    static uint8_t codes[TOKENS * K + EXPERTS * N * K], scales[TOKENS * 2 + EXPERTS * N * 2];
    qg_quantize_options quantize = {.input_type = QG_FORMAT_FP32, .stream = 2, .threads = 1};
    ck_assert_int_eq(
        qg_emulator_quantize(&lhs, &quantize, TOKENS, K, tokens, codes, scales, NULL, NULL), QG_OK);
    left.codes = codes, left.scales = scales;
    uint8_t *expert_codes = codes + TOKENS * K, *expert_scales = scales + TOKENS * 2;
    ck_assert_int_eq(qg_emulator_quantize(&rhs, &quantize, EXPERTS * N, K, experts, expert_codes,
                                          expert_scales, NULL, NULL),
                     QG_OK);
    for (int e = 0; e < EXPERTS; e++)
        right[e] =
            (qg_matmul_operand){&rhs, expert_codes + e * N * K, expert_scales + e * N * 2, 1};
    static const int64_t offsets[] = {0, 4, 4, 8, 11}, order[] = {0, 1, 2, 3};
    qg_matmul_options product = {.out_type = QG_FORMAT_FP32, .threads = 1};
    float wanted[TOKENS * N];
    ck_assert_int_eq(qg_cpu_grouped_matmul(&product, TOKENS, N, K, &left, EXPERTS, offsets, order,
                                           EXPERTS, right, wanted, NULL),
                     QG_OK);
    const float *out = scaled_graph_values(runner, node);
    for (int i = 0; i < TOKENS * N; i++)
        REQUIRE(fabsf(out[i] - wanted[i]) <= 1e-4f * (1.0f + fabsf(wanted[i])), "%a, not %a",
                (double)out[i], (double)wanted[i]);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// -------------------------------------------------------------------------------------------
// errors

static void check_index(int64_t at, int64_t expert, const char *wanted) {
    int64_t index[TOKENS];
    memcpy(index, mixed, sizeof index);
    index[at] = expert;
    grouped p = {.tokens = "mxfp8", .experts = "e4m3", .index = index, .dtype = QG_DTYPE_FP32};
    qg_graph *graph = scaled_graph_create();
    build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("emulator", NULL, 1);
    qg_graph_runner *runner;
    ck_assert_msg(qg_graph_runner_create(graph, &options, &runner) == QG_OK, "%s", qg_detail());
    ck_assert_int_eq(qg_graph_runner_run(runner, 0, NULL), QG_ERROR_ARGUMENT);
    REQUIRE(strstr(qg_detail(), wanted) && strstr(qg_detail(), "moe"), "'%s'", qg_detail());
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(an_expert_out_of_range_is_an_error_that_names_token_and_node) {
    check_index(3, 9, "expert 9 of token 3 is not below 4");
    check_index(0, EXPERTS, "expert 4 of token 0");
    check_index(TOKENS - 1, -1, "expert -1 of token 10");
    check_index(5, INT64_MIN, "of token 5");
}
END_TEST

START_TEST(grouped_products_do_not_depend_on_threads) {
    grouped p = {.tokens = "nvfp4", .experts = "mxfp8", .index = mixed, .dtype = QG_DTYPE_FP32};
    qg_graph *graph = scaled_graph_create();
    qg_node node = build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("emulator", "fp32_sequential", 1);
    qg_graph_runner *wanted = scaled_graph_run(graph, &options);
    for (int threads = 0; threads < 5; threads++) {
        options.threads = threads;
        qg_graph_runner *runner = scaled_graph_run(graph, &options);
        ck_assert_int_eq(memcmp(scaled_graph_values(runner, node),
                                scaled_graph_values(wanted, node), sizeof(float) * TOKENS * N),
                         0);
        qg_graph_runner_free(runner);
    }
    qg_graph_runner_free(wanted);
    qg_graph_free(graph);
}
END_TEST

int main(void) {
    const TTest *tests[] = {each_token_meets_its_expert,
                            experts_in_blocks_of_rows,
                            on_a_unit_with_promotion,
                            on_the_cpu_within_the_derived_bound,
                            the_cpus_own_grouped_product_agrees,
                            an_expert_out_of_range_is_an_error_that_names_token_and_node,
                            grouped_products_do_not_depend_on_threads};
    return RUN_SUITE("run_grouped", tests);
}
