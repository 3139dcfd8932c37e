// Statements R9, R10, R12, R17 and R18 of RLX, each test named after its own: scaled products as
// graphs run them, on the emulator and on the CPU runtime, against sums of the dequantized operands
// in long double, within bounds that follow from the unit. (R1 to R8: test_rlx_formats; R13 to R16:
// test_rlx_graph; R11: tests/kernels/test_rlx_device.)
#include <require.h>
#include <rlx_graph.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 45 * 80 };

// What computes.
typedef struct engine {
    const char *backend, *unit;
} engine;
static const engine engines[] = {
    {"emulator", "exact"   },
    {"emulator", "fp32_fma"},
    {"cpu",      NULL      },
};
enum { ENGINES = 3 };

typedef struct shape {
    int64_t m, k, n;
} shape;
static const shape shapes[] = {
    {18, 40, 20},
    {37, 80, 45},
    {3,  7,  5 },
};
enum { SHAPES = 3 };

// ------------------------------------------------------------------------------------- one product

static float a[MOST], b[MOST], bias[MOST];

static void fill(uint64_t seed, shape s) {
    rlx_ordinary(seed, s.m * s.k, a);
    rlx_ordinary(seed + 1, s.n * s.k, b);
    rlx_ordinary(seed + 2, s.n, bias);
    for (int64_t i = 3; i < s.m * s.k; i += 11)
        a[i] = i % 2 ? 0.0f : -0.0f;
}

// x (m, k) and w (n, k), both K-last, quantized and multiplied.
static qg_graph *product_of(const char *lhs, const char *rhs, shape s, bool biased) {
    qg_graph *graph = rlx_graph();
    qg_node x = rlx_input(graph, "x", s.m, s.k), w = rlx_input(graph, "w", s.n, s.k);
    qg_node added = biased
                        ? qg_graph_constant(graph, "bias", qg_tensor(QG_DTYPE_FP32, 1, s.n), bias)
                        : QG_NODE_NONE;
    qg_node y = qg_graph_scaled_matmul(graph, qg_graph_quantize(graph, x, lhs),
                                       qg_graph_quantize(graph, w, rhs), added, QG_DTYPE_FP32);
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

static void check_product(const char *lhs, const char *rhs, shape s, bool biased, engine e) {
    qg_graph *graph = product_of(lhs, rhs, s, biased);
    const qg_graph_feed feeds[] = {
        {"x", a},
        {"w", b}
    };
    qg_graph_runner *runner = rlx_run(graph, e.backend, e.unit, 2, feeds);
    rlx_expect_product(graph, runner, "y", e.backend, e.unit, biased ? bias : NULL);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

// ---------------------------------------------------------------------------------------------- R9

START_TEST(r09_operands_of_different_formats_and_layouts_multiply) {
    shape s = {5, 40, 6};
    for (int f = 0; f < RLX_SWEEP * RLX_SWEEP; f++)
        for (int l = 0; l < RLX_LAYOUTS * RLX_LAYOUTS; l++) {
            const char *lhs = rlx_recipe_text(rlx_sweep[f / RLX_SWEEP], l / RLX_LAYOUTS);
            const char *rhs = rlx_recipe_text(rlx_sweep[f % RLX_SWEEP], l % RLX_LAYOUTS);
            fill((uint64_t)(f * 9 + l), s);
            check_product(lhs, rhs, s, l % 2, engines[(f + l) % ENGINES]);
        }
}
END_TEST

// lhs (m, k) and rhs (n, k) give (m, n), fp32; the bias is that of a column, added once.
START_TEST(r09_output_is_lhs_times_rhs_transposed_plus_bias) {
    shape s = {2, 3, 4};
    static const float wanted[] = {111, 232, 323, 444, 126, 280, 356, 504};
    static const float x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 2, 2, 4, 8, 4, 3, 4, 4, 6, 4, 10};
    memcpy(a, x, sizeof x);
    memcpy(b, w, sizeof w);
    for (int i = 0; i < 4; i++)
        bias[i] = 100.0f * (float)(i + 1);
    qg_graph *graph = product_of("e4m3/per_tensor/fixed:1", "e5m2/per_tensor/fixed:1", s, true);
    const qg_graph_feed feeds[] = {
        {"x", a},
        {"w", b}
    };
    const qg_tensor_type type = qg_tensor(QG_DTYPE_FP32, 2, 2, 4);
    ck_assert(qg_tensor_equal(qg_graph_node_type(graph, qg_graph_find(graph, "y")), &type));
    for (int i = 0; i < ENGINES; i++) {
        qg_graph_runner *runner = rlx_run(graph, engines[i].backend, engines[i].unit, 2, feeds);
        const float *y = rlx_values(graph, runner, "y");
        for (int at = 0; at < 8; at++)
            ck_assert_float_eq(y[at], wanted[at]);
        qg_graph_runner_free(runner);
    }
    qg_graph_free(graph);
}
END_TEST

// --------------------------------------------------------------------------------------------- R10

enum { SIDE = 6, LENGTH = 64 };

// Whole numbers of the format's grid times 2^exponent; in every group of 16 one element is the
// largest value, where the other operand has 0: scales are 2^exponent, and sums stay small.
static void fill_aligned(const char *format, int exponent, int place, float *x) {
    slow_format *slow = slow_format_create(format);
    double largest = slow_value(slow, slow_value_count(slow) - 1);
    for (int i = 0; i < SIDE * LENGTH; i++) {
        static const double whole[] = {0, 1, -1, 2, -2, 4, 1, -4};
        double value = i % 16 == place ? largest : i % 16 == 1 - place ? 0 : whole[i * 5 / 3 % 8];
        x[i] = (float)ldexp(value, exponent);
    }
    slow_format_free(slow);
}

// x (6, 64) times w (64, 6) in binary32, and the same graph with scaled products.
static qg_graph *plain_product(void) {
    qg_graph *graph = rlx_graph();
    qg_node x = rlx_input(graph, "x", SIDE, LENGTH), w = rlx_input(graph, "w", SIDE, LENGTH);
    qg_node y = qg_graph_matmul(graph, x, qg_graph_transpose(graph, w, (int32_t[]){1, 0}));
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

// Elements of the scaled product that are not those of the product in binary32.
static int differing_elements(const char *recipe, const char *unit) {
    const qg_graph_feed feeds[] = {
        {"x", a},
        {"w", b}
    };
    qg_scaling scaling = {.lhs = recipe};
    qg_graph *graph = plain_product(), *scaled;
    RLX_OK(qg_graph_insert_scaled_matmul(graph, &scaling, &scaled, NULL));
    qg_graph_runner *plain = rlx_run(graph, "emulator", NULL, 2, feeds);
    qg_graph_runner *runner = rlx_run(scaled, unit ? "emulator" : "cpu", unit, 2, feeds);
    const float *wanted = rlx_values(graph, plain, "y"), *got = rlx_values(scaled, runner, "y");
    int count = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        count += memcmp(&wanted[i], &got[i], sizeof *got) != 0;
    qg_graph_runner_free(plain);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    qg_graph_free(scaled);
    return count;
}

START_TEST(r10_grid_aligned_inputs_give_the_binary32_product) {
    static const char *const units[] = {"exact", "fp32_sequential", "fp32_fma", NULL};
    for (int f = 0; f < RLX_SWEEP; f++)
        for (int layout = 0; layout < RLX_LAYOUTS; layout++) {
            bool nvfp4 = layout == 2; // its scales are E4M3: 2^-9 .. 2^8
            fill_aligned(rlx_sweep[f], nvfp4 ? 3 : -20, 0, a);
            fill_aligned(rlx_sweep[f], nvfp4 ? -5 : 17, 1, b);
            for (int u = 0; u < 4; u++)
                ck_assert_msg(
                    differing_elements(rlx_recipe_text(rlx_sweep[f], layout), units[u]) == 0,
                    "%s on %s", rlx_recipe_text(rlx_sweep[f], layout), units[u] ? units[u] : "cpu");
        }
}
END_TEST

// On a matrix unit as long as each sum fits the bits below its largest product, and not beyond: 448
// times 1, of exponent 8, beside 2^-5 needs Hopper's 13 fraction bits, beside 2^-6 one more.
START_TEST(r10_matrix_units_are_exact_within_their_fraction_bits) {
    fill_aligned("e4m3", 0, 0, a);
    fill_aligned("e4m3", 0, 1, b);
    ck_assert_int_eq(differing_elements("e4m3/per_tensor/amax", "hopper_wgmma"), 0);
    ck_assert_int_eq(differing_elements("e4m3/group:32/rceil", "blackwell_mx"), 0);
    for (int i = 0; i < SIDE * LENGTH; i++) {
        a[i] = i % LENGTH == 0 ? 448.0f : i % LENGTH == 1 ? 0x1p-5f : 0.0f;
        b[i] = i % LENGTH < 2 ? 1.0f : i % LENGTH == 2 ? 448.0f : 0.0f;
    }
    ck_assert_int_eq(differing_elements("e4m3/per_tensor/amax", "hopper_wgmma"), 0);
    for (int i = 1; i < SIDE * LENGTH; i += LENGTH)
        a[i] = 0x1p-6f;
    ck_assert_int_eq(differing_elements("e4m3/per_tensor/amax", "exact"), 0);
    ck_assert_int_eq(differing_elements("e4m3/per_tensor/amax", "hopper_wgmma"), SIDE * SIDE);
}
END_TEST

// --------------------------------------------------------------------------------------------- R12

START_TEST(r12_shapes_need_be_no_multiples_of_block_or_tile) {
    static const char *const recipes[] = {"rlx_e4m3",
                                          "rlx_mxfp8",
                                          "rlx_nvfp4",
                                          "nvfp4",
                                          "rlx_mxfp4x2",
                                          "e4m3/group:128/amax",
                                          "e4m3/block:16x32/amax"};
    static const shape odd[] = {
        {1,  1,  1 },
        {1,  33, 1 },
        {17, 31, 2 },
        {2,  65, 16},
    };
    for (size_t r = 0; r < sizeof recipes / sizeof recipes[0]; r++)
        for (int e = 0; e < ENGINES; e++)
            for (int i = 0; i < SHAPES + 4; i++) {
                shape s = i < SHAPES ? shapes[i] : odd[i - SHAPES];
                fill((uint64_t)(r * 70 + (size_t)i), s);
                check_product(recipes[r], recipes[r], s, true, engines[e]);
            }
}
END_TEST

// --------------------------------------------------------------------------------------------- R17

enum { EXPERTS = 3, TOKENS = 7, WIDTH = 5, DEPTH = 40 };
static float experts[EXPERTS * WIDTH * DEPTH], expert_bias[EXPERTS * WIDTH];

static qg_graph *grouped_product(const char *lhs, const char *rhs, bool biased) {
    qg_graph *graph = rlx_graph();
    qg_node x = rlx_input(graph, "x", TOKENS, DEPTH), added = QG_NODE_NONE;
    qg_node index = qg_graph_input(graph, "index", qg_tensor(QG_DTYPE_I64, 1, TOKENS));
    qg_node w =
        qg_graph_parameter(graph, "w", qg_tensor(QG_DTYPE_FP32, 3, EXPERTS, WIDTH, DEPTH), experts);
    if (biased)
        added = qg_graph_parameter(graph, "bias", qg_tensor(QG_DTYPE_FP32, 2, EXPERTS, WIDTH),
                                   expert_bias);
    qg_node y = qg_graph_scaled_grouped_matmul(graph, qg_graph_quantize(graph, x, lhs),
                                               qg_graph_quantize(graph, w, rhs), index, added,
                                               QG_DTYPE_FP32);
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    return graph;
}

static void check_grouped(const char *lhs, const char *rhs, bool biased, engine e,
                          const int64_t *index) {
    qg_graph *graph = grouped_product(lhs, rhs, biased);
    const qg_graph_feed feeds[] = {
        {"x",     a    },
        {"index", index}
    };
    qg_graph_runner *runner = rlx_run(graph, e.backend, e.unit, 2, feeds);
    rlx_quantized tokens = rlx_operand(graph, runner, "y", 0);
    rlx_quantized weights = rlx_operand(graph, runner, "y", 1);
    const float *y = rlx_values(graph, runner, "y");
    for (int64_t i = 0; i < TOKENS * WIDTH; i++) {
        int64_t row = index[i / WIDTH] * WIDTH + i % WIDTH;
        rlx_sum sum = rlx_dot(&tokens, i / WIDTH, &weights, row);
        float added = biased ? expert_bias[row] : 0.0f;
        long double room = rlx_allowance(e.backend, e.unit, &tokens, &weights, sum, added);
        REQUIRE(fabsl((long double)y[i] - sum.value - (long double)added) <= room,
                "%s by %s on %s: element %lld", lhs, rhs, e.backend, (long long)i);
    }
    rlx_discard(&tokens);
    rlx_discard(&weights);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(r17_each_token_is_multiplied_by_its_expert) {
    static const char *const recipes[] = {"rlx_e4m3", "rlx_mxfp8", "rlx_nvfp4", "nvfp4",
                                          "rlx_mxfp4x2"};
    static const int64_t indices[][TOKENS] = {
        {2, 0, 1, 0, 2, 2, 0},
        {1, 1, 1, 1, 1, 1, 1}, // the others have no tokens
        {0, 2, 0, 2, 0, 2, 0},
    };
    rlx_ordinary(5, TOKENS * DEPTH, a);
    rlx_ordinary(6, EXPERTS * WIDTH * DEPTH, experts);
    rlx_ordinary(7, EXPERTS * WIDTH, expert_bias);
    for (int r = 0; r < 25; r++)
        for (int e = 0; e < ENGINES; e++)
            for (int i = 0; i < 3; i++)
                check_grouped(recipes[r / 5], recipes[r % 5], (r + i) % 2, engines[e], indices[i]);
}
END_TEST

START_TEST(r17_an_expert_that_is_none_is_refused_by_name) {
    static const int64_t index[] = {0, 1, 2, 3, 0, 1, 2};
    const qg_graph_feed feeds[] = {
        {"x",     a    },
        {"index", index}
    };
    qg_graph *graph = grouped_product("rlx_mxfp8", "rlx_mxfp8", false);
    qg_graph_runner *runner;
    RLX_OK(qg_graph_runner_create(graph, NULL, &runner));
    ck_assert_int_eq(qg_graph_runner_run(runner, 2, feeds), QG_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "'y'"));
    ck_assert_ptr_nonnull(strstr(qg_detail(), "expert 3"));
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// s0 q0 + s1 q1. The first plane leaves at most half of E2M1's widest step, s0; the second sixths
// of that again: amax / 36 of the block in all.
START_TEST(r17_two_level_residual_fp4_adds_a_plane_of_the_residual) {
    enum { ROWS = 4, COLUMNS = 80 };
    float x[ROWS * COLUMNS];
    rlx_ordinary(9, ROWS * COLUMNS, x);
    qg_graph *graph = rlx_graph();
    qg_scaled q = qg_graph_quantize(graph, rlx_input(graph, "x", ROWS, COLUMNS), "rlx_mxfp4x2");
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_dequantize(graph, q), "back"));
    RLX_OK(qg_graph_status(graph));
    const qg_tensor_type *codes = qg_graph_node_type(graph, q.codes);
    ck_assert_int_eq(codes->rank, 3);
    ck_assert_int_eq(codes->shape[0], 2);
    const qg_graph_feed feed = {"x", x};
    qg_graph_runner *runner = rlx_run(graph, "cpu", NULL, 1, &feed);
    const float *back = rlx_values(graph, runner, "back");
    rlx_quantized planes = rlx_quantize("emulator", "rlx_mxfp4x2", ROWS, COLUMNS, x);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double amax = 0;
        int begin = i / COLUMNS * COLUMNS + i % COLUMNS / 32 * 32;
        for (int j = begin; j < begin + 32 && j < (i / COLUMNS + 1) * COLUMNS; j++)
            amax = fmax(amax, fabs((double)x[j]));
        ck_assert_double_le(fabs((double)back[i] - (double)x[i]), amax / 36 * (1 + 0x1p-20));
        ck_assert_float_eq(back[i], (float)rlx_value_of(&planes, i / COLUMNS, i % COLUMNS));
    }
    rlx_discard(&planes);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// --------------------------------------------------------------------------------------------- R18

static void sweep(engine e) {
    for (int f = 0; f < RLX_SWEEP; f++)
        for (int layout = 0; layout < RLX_LAYOUTS; layout++)
            for (int i = 0; i < SHAPES; i++) {
                const char *text = rlx_recipe_text(rlx_sweep[f], layout);
                fill((uint64_t)(f * 100 + layout * 10 + i), shapes[i]);
                check_product(text, text, shapes[i], false, e);
                check_product(text, text, shapes[i], true, e);
            }
}

START_TEST(r18_formats_by_layouts_by_bias_on_the_emulator) { sweep(engines[0]); }
END_TEST

START_TEST(r18_formats_by_layouts_by_bias_on_a_unit) { sweep(engines[1]); }
END_TEST

START_TEST(r18_formats_by_layouts_by_bias_on_the_cpu_runtime) { sweep(engines[2]); }
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r09_operands_of_different_formats_and_layouts_multiply,
        r09_output_is_lhs_times_rhs_transposed_plus_bias,
        r10_grid_aligned_inputs_give_the_binary32_product,
        r10_matrix_units_are_exact_within_their_fraction_bits,
        r12_shapes_need_be_no_multiples_of_block_or_tile,
        r17_each_token_is_multiplied_by_its_expert,
        r17_an_expert_that_is_none_is_refused_by_name,
        r17_two_level_residual_fp4_adds_a_plane_of_the_residual,
        r18_formats_by_layouts_by_bias_on_the_emulator,
        r18_formats_by_layouts_by_bias_on_a_unit,
        r18_formats_by_layouts_by_bias_on_the_cpu_runtime,
    };
    return RUN_SUITE("rlx_products", tests);
}
