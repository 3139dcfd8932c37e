// RLX's known defects 15 and 16, what it cannot do, as tests: the library can, RLX (tests/support/
// rlx_faults.c) cannot.
//   15 d15_counts_have_64_bits, d15_fp4_may_be_packed. What is left of 15 is the time of GPU
//      kernels, which no test takes.
//   16 d16_recipes_that_rlx_lacks_multiply, d16_block_scaled_units_take_block_scales,
//      d16_scales_may_be_swizzled
#include <require.h>
#include <rlx_faults.h>
#include <rlx_graph.h>
#include <run_suite.h>

#include <math.h>

enum { M = 6, K = 64 };

// ---------------------------------------------------------------------------------------------- 15

// 2^33 elements, none of which is there.
START_TEST(d15_counts_have_64_bits) {
    const int64_t m = 1ll << 20, k = 1ll << 13;
    qg_graph *graph = rlx_graph();
    qg_scaled q = qg_graph_quantize(graph, rlx_input(graph, "x", m, k), "rlx_mxfp8");
    qg_graph_output(graph, qg_graph_dequantize(graph, q));
    RLX_OK(qg_graph_verify(graph));
    ck_assert_int_eq(qg_tensor_elements(qg_graph_node_type(graph, q.codes)), m * k);
    ck_assert_int_eq(qg_tensor_elements(qg_graph_node_type(graph, q.scale)), m * k / 32);
    ck_assert_int_ne((int64_t)rlx_fault_elements(m, k), m * k);
    ck_assert_uint_eq(rlx_fault_elements(m, k), 0);
    qg_graph_free(graph);
}
END_TEST

START_TEST(d15_fp4_may_be_packed) {
    qg_recipe recipe = rlx_recipe("rlx_nvfp4");
    qg_storage bytes = {0}, packed = {.packed = true};
    qg_storage_shape shape;
    RLX_OK(qg_storage_shape_of(&recipe, &bytes, M, K, &shape));
    ck_assert_int_eq(shape.codes_size, M * K);
    RLX_OK(qg_storage_shape_of(&recipe, &packed, M, K, &shape));
    ck_assert_int_eq(shape.codes_size, M * K / 2);
}
END_TEST

// ---------------------------------------------------------------------------------------------- 16

typedef struct pair {
    const char *lhs, *rhs;
    qg_dtype out;
} pair;

// Per row, 1x128, 128x128, the floor rule, stochastic rounding, scales from elsewhere, sides that
// differ in layout, bf16 outputs.
static const pair lacking[] = {
    {"e4m3/per_row/amax",                   "e4m3/per_row/amax",            QG_DTYPE_FP32},
    {"e4m3/group:128/amax",                 "e4m3/block:128x128/amax",      QG_DTYPE_FP32},
    {"mxfp8",                               "mxfp8_e5m2",                   QG_DTYPE_FP32},
    {"e4m3/group:32/rceil/stochastic:A:16", "e4m3/per_tensor/fixed:0x1p-3", QG_DTYPE_FP32},
    {"nvfp4",                               "e2m1/group:32/floor",          QG_DTYPE_FP32},
    {"deepseek_act128",                     "deepseek_w128x128",            QG_DTYPE_BF16},
};

static void check_pair(const pair *p) {
    enum { ROWS = 5, COLUMNS = 7, DEPTH = 160 };
    float x[ROWS * DEPTH], w[COLUMNS * DEPTH];
    rlx_ordinary(1, ROWS * DEPTH, x);
    rlx_ordinary(2, COLUMNS * DEPTH, w);
    qg_graph *graph = rlx_graph();
    qg_scaled lhs = qg_graph_quantize(graph, rlx_input(graph, "x", ROWS, DEPTH), p->lhs);
    qg_scaled rhs = qg_graph_quantize(graph, rlx_input(graph, "w", COLUMNS, DEPTH), p->rhs);
    qg_node y = qg_graph_scaled_matmul(graph, lhs, rhs, QG_NODE_NONE, p->out);
    qg_graph_output(graph, qg_graph_name(graph, y, "y"));
    RLX_OK(qg_graph_status(graph));
    const qg_graph_feed feeds[] = {
        {"x", x},
        {"w", w}
    };
    qg_graph_runner *runner = rlx_run(graph, "emulator", "exact", 2, feeds);
    if (p->out == QG_DTYPE_FP32)
        rlx_expect_product(graph, runner, "y", "emulator", "exact", NULL);
    rlx_quantized a = rlx_operand(graph, runner, "y", 0), b = rlx_operand(graph, runner, "y", 1);
    const uint16_t *narrow = rlx_values(graph, runner, "y");
    for (int i = 0; i < ROWS * COLUMNS && p->out == QG_DTYPE_BF16; i++) { // rounded once, to 8 bits
        long double wanted = rlx_dot(&a, i / COLUMNS, &b, i % COLUMNS).value;
        long double got = (long double)qg_float_of_bits((uint32_t)narrow[i] << 16);
        ck_assert(fabsl(got - wanted) <= fabsl(wanted) * 0x1.0001p-8L);
    }
    rlx_discard(&a);
    rlx_discard(&b);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(d16_recipes_that_rlx_lacks_multiply) {
    ck_assert(rlx_fault_has_recipe("e4m3/group:32/rceil"));
    for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
        check_pair(&lacking[i]);
        ck_assert_msg(!rlx_fault_has_recipe(lacking[i].lhs) &&
                          !rlx_fault_has_recipe(lacking[i].rhs),
                      "%s", lacking[i].lhs);
    }
}
END_TEST

// Products that apply block scales themselves, as their hardware does.
START_TEST(d16_block_scaled_units_take_block_scales) {
    static const char *const takes[][2] = {
        {"blackwell_mx",   "mxfp8"},
        {"blackwell_mxf4", "nvfp4"},
        {"blackwell_mxf4", "mxfp4"},
    };
    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
        qg_unit unit;
        qg_recipe recipe = rlx_recipe(takes[i][1]);
        RLX_OK(qg_unit_parse(takes[i][0], &unit));
        RLX_OK(qg_unit_takes(&unit, &recipe, &recipe, 128, QG_FORMAT_FP32));
    }
}
END_TEST

// The swizzled order that the hardware reads: tiles of 128 by 4.
START_TEST(d16_scales_may_be_swizzled) {
    qg_recipe recipe = rlx_recipe("mxfp8");
    qg_storage storage = {
        .order = {QG_ORDER_TILE128X4, 0}
    };
    qg_storage_shape shape;
    RLX_OK(qg_storage_shape_of(&recipe, &storage, 130, 160, &shape));
    ck_assert_int_eq(shape.scales_size, 256 * 8);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        d15_counts_have_64_bits,
        d15_fp4_may_be_packed,
        d16_recipes_that_rlx_lacks_multiply,
        d16_block_scaled_units_take_block_scales,
        d16_scales_may_be_swizzled,
    };
    return RUN_SUITE("rlx_defects_limits", tests);
}
