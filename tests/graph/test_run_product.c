// Scaled products of a graph: every recipe, mixed ones, batches, both backends against exact
// products of the dequantized operands; the units of the emulator matrix by matrix; what unit or
// backend refuses; threads. Products by experts: test_run_grouped.c.
#include <block_data.h>
#include <math.h>
#include <require.h>
#include <run_suite.h>
#include <scaled_graph.h>

#include <stdio.h>
#include <string.h>

enum { BATCH = 6, M = 8, N = 12, K = 45, MOST = BATCH * N * 256 };

static float a[MOST], b[MOST], qa[MOST], qb[MOST], bias[N];

static void fill(int64_t rows_a, int64_t rows_b, int64_t k, int kind) {
    block_data_fill(1, kind, a, rows_a * k);
    block_data_fill(2, kind, b, rows_b * k);
    block_data_fill(3, BLOCK_DATA_ORDINARY, bias, N);
}

static const char *const further[] = {
    "e4m3/block:4x16/amax", "e5m2/per_row",      "int8/group:16/amax",     "e2m1/block:2x7/floor",
    "rlx_mxfp4x2/group:32", "e4m3/per_row/best", "nvint4///stochastic:A:8"};

static const char *recipe_at(size_t i) {
    size_t listed = 0;
    while (scaled_graph_recipe_at(listed))
        listed++;
    if (i < listed)
        return scaled_graph_recipe_at(i);
    return i - listed < sizeof further / sizeof further[0] ? further[i - listed] : NULL;
}

// Blocks that lie across matrices are no operand of a batch.
static bool batches(const char *text) { return !strstr(text, "128x128"); }

// -------------------------------------------------------------------- against the exact product

typedef struct product {
    const char *lhs, *rhs, *backend;
    int64_t matrices; // 1: no leading axes
    bool has_bias;
    qg_dtype dtype;
} product;

static qg_node build(qg_graph *graph, const product *p) {
    qg_tensor_type lhs = qg_tensor(QG_DTYPE_FP32, 2, M, K), rhs = qg_tensor(QG_DTYPE_FP32, 2, N, K);
    if (p->matrices > 1) {
        lhs = qg_tensor(QG_DTYPE_FP32, 4, 2, p->matrices / 2, M, K);
        rhs = qg_tensor(QG_DTYPE_FP32, 4, 2, p->matrices / 2, N, K);
    }
    qg_scaled left = scaled_graph_operand(graph, "a", lhs, a, p->lhs);
    qg_scaled right = scaled_graph_operand(graph, "b", rhs, b, p->rhs);
    qg_node added = QG_NODE_NONE;
    if (p->has_bias)
        added = scaled_graph_tensor(graph, "bias", qg_tensor(QG_DTYPE_FP32, 1, N), bias);
    qg_node out = qg_graph_scaled_matmul(graph, left, right, added, p->dtype);
    return qg_graph_output(graph, qg_graph_name(graph, out, "product"));
}

// out[i][j] of a matrix against the sum in binary64, within the bound that the backend states.
static void check_bound(const product *p, int64_t matrix, const void *out) {
    qg_recipe lhs = scaled_graph_recipe(p->lhs), rhs = scaled_graph_recipe(p->rhs);
    qg_format type = p->dtype == QG_DTYPE_BF16 ? QG_FORMAT_BF16 : QG_FORMAT_FP32;
    const qg_backend *backend = qg_backend_find(p->backend);
    double bound = backend->matmul_bound(&lhs, &rhs, K, type);
    double underflow = backend->matmul_underflow(K, type);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double exact = p->has_bias ? (double)bias[j] : 0.0, magnitude = fabs(exact), got;
            for (int64_t l = 0; l < K; l++) {
                double term = (double)qa[(matrix * M + i) * K + l] * qb[(matrix * N + j) * K + l];
                exact += term;
                magnitude += fabs(term);
            }
            uint32_t bits = (uint32_t)((const uint16_t *)out)[i * N + j] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            got = type == QG_FORMAT_BF16 ? (double)value : (double)((const float *)out)[i * N + j];
            REQUIRE(fabs(got - exact) <= bound * magnitude + underflow,
                    "%s x %s on %s, matrix %lld: %a, not %a", p->lhs, p->rhs, p->backend,
                    (long long)matrix, got, exact);
        }
}

// Bit for bit: the sum of the dequantized products, bias included, rounded once.
static void check_exact(const product *p, int64_t matrix, const void *out) {
    static float wanted[M * N];
    qg_unit exact;
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    options.bias = p->has_bias ? bias : NULL;
    if (p->dtype == QG_DTYPE_BF16)
        options.out_type = QG_FORMAT_BF16;
    ck_assert_int_eq(qg_unit_parse("exact", &exact), QG_OK);
    ck_assert_int_eq(qg_emulator_matmul(&exact, &options, M, N, K, qa + matrix * M * K,
                                        qb + matrix * N * K, wanted),
                     QG_OK);
    int64_t size = M * N * qg_dtype_bytes(p->dtype);
    REQUIRE(memcmp(out, wanted, (size_t)size) == 0, "%s x %s, matrix %lld of %lld", p->lhs, p->rhs,
            (long long)matrix, (long long)p->matrices);
}

static void check_product(const product *p) {
    fill(p->matrices * M, p->matrices * N, K, BLOCK_DATA_ORDINARY);
    scaled_graph_round_trip(p->lhs, p->matrices * M, K, a, qa);
    scaled_graph_round_trip(p->rhs, p->matrices * N, K, b, qb);
    qg_graph *graph = scaled_graph_create();
    qg_node node = build(graph, p);
    qg_graph_run_options options = scaled_graph_options(p->backend, NULL, 1);
    bool is_emulator = strcmp(p->backend, "emulator") == 0;
    if (!options.backend->scaled_matmul) {
        qg_graph_free(graph);
        return;
    }
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    const uint8_t *out = scaled_graph_values(runner, node);
    for (int64_t i = 0; i < p->matrices; i++)
        (is_emulator ? check_exact : check_bound)(p, i, out + i * M * N * qg_dtype_bytes(p->dtype));
    const char *impl = qg_graph_runner_impl(runner, node);
    if (is_emulator)
        REQUIRE(strcmp(impl, "scalar") == 0 || strcmp(impl, qg_unit_isa()) == 0, "impl %s", impl);
    REQUIRE(strlen(impl) > 0, "impl");
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

// Every recipe on the left with another one on the right.
static void check_pairs(const char *backend, int64_t matrices) {
    size_t count = 0;
    while (recipe_at(count))
        count++;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < i + 3; j++) {
            product p = {.lhs = recipe_at(i), .rhs = recipe_at((i + 11 * (j - i)) % count)};
            p.backend = backend;
            p.matrices = matrices;
            p.has_bias = j % 2;
            p.dtype = j % 3 ? QG_DTYPE_FP32 : QG_DTYPE_BF16;
            if (matrices == 1 || (batches(p.lhs) && batches(p.rhs)))
                check_product(&p);
        }
}

START_TEST(on_the_emulator_it_is_the_exact_product_of_the_decoded_operands) {
    check_pairs("emulator", 1);
}
END_TEST

START_TEST(on_the_cpu_it_is_within_the_derived_bound) { check_pairs("cpu", 1); }
END_TEST

START_TEST(batched_is_a_product_for_each_matrix) {
    check_pairs("emulator", BATCH);
    check_pairs("cpu", BATCH);
}
END_TEST

// ----------------------------------------------------------------------------------- units by name

enum { UNIT_K = 256 };

// promote: what the layouts add to the unit's name.
typedef struct unit_case {
    const char *unit, *promote, *lhs, *rhs;
} unit_case;

static const unit_case unit_cases[] = {
    {"hopper_wgmma",        "",             "e4m3",               "e5m2/per_row"         },
    {"hopper_wgmma",        "+promote:128", "deepseek_act128",    "deepseek_act128"      },
    {"hopper_wgmma",        "+promote:64",  "e4m3/group:64/amax", "e4m3/block:4x128/amax"},
    {"ada_mma+promote:32",  "",             "deepseek_act128",    "e4m3"                 },
    {"blackwell_mx",        "",             "mxfp8",              "mxfp4"                },
    {"blackwell_mxf4",      "",             "nvfp4",              "nvfp4_4over6"         },
    {"fp32_sequential+rtz", "",             "mxfp6_e2m3",         "mx9"                  },
    {"bf16_sequential",     "",             "nvfp4",              "rlx_mxfp8"            },
};

// The operand that matrix `i` of a parameter is, from the runner's own buffers.
static qg_matmul_operand operand_at(const qg_graph_runner *runner, qg_scaled x,
                                    const qg_recipe *recipe, int64_t i, int64_t rows) {
    qg_shape shape;
    ck_assert_int_eq(qg_shape_of(recipe, rows, UNIT_K, &shape), QG_OK);
    qg_matmul_operand out = {.recipe = recipe, .tensor_scale = 1.0f};
    out.codes = (const uint8_t *)scaled_graph_values(runner, x.codes) + i * rows * UNIT_K;
    out.scales = scaled_graph_values(runner, x.scale);
    if (recipe->layout.kind != QG_LAYOUT_PER_TENSOR)
        out.scales += i * shape.scales_size;
    if (x.tensor_scale != QG_NODE_NONE)
        out.tensor_scale = *(const float *)scaled_graph_values(runner, x.tensor_scale);
    return out;
}

static void check_unit(const unit_case *c, qg_dtype dtype) {
    enum { MATRICES = 2 };
    fill(MATRICES * M, MATRICES * N, UNIT_K, BLOCK_DATA_ORDINARY);
    qg_graph *graph = scaled_graph_create();
    qg_tensor_type left = qg_tensor(QG_DTYPE_FP32, 3, MATRICES, M, UNIT_K);
    qg_tensor_type right = qg_tensor(QG_DTYPE_FP32, 3, MATRICES, N, UNIT_K);
    qg_scaled x = scaled_graph_operand(graph, "a", left, a, c->lhs);
    qg_scaled w = scaled_graph_operand(graph, "b", right, b, c->rhs);
    qg_node added = scaled_graph_tensor(graph, "bias", qg_tensor(QG_DTYPE_FP32, 1, N), bias);
    qg_node node = qg_graph_output(graph, qg_graph_scaled_matmul(graph, x, w, added, dtype));
    qg_graph_run_options run = scaled_graph_options("emulator", c->unit, 3);
    qg_graph_runner *runner = scaled_graph_run(graph, &run);
    qg_recipe lhs = scaled_graph_recipe(c->lhs), rhs = scaled_graph_recipe(c->rhs);
    qg_unit fitted;
    char name[QG_UNIT_NAME_SIZE];
    snprintf(name, sizeof name, "%s%s", c->unit, c->promote);
    ck_assert_int_eq(qg_unit_parse(name, &fitted), QG_OK);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .bias = bias, .threads = 1};
    if (dtype == QG_DTYPE_BF16)
        options.out_type = QG_FORMAT_BF16;
    int64_t size = M * N * qg_dtype_bytes(dtype);
    for (int i = 0; i < MATRICES; i++) {
        float wanted[M * N];
        qg_matmul_operand p = operand_at(runner, x, &lhs, i, M);
        qg_matmul_operand q = operand_at(runner, w, &rhs, i, N);
        ck_assert_msg(qg_emulator_scaled_matmul(&fitted, &options, M, N, UNIT_K, &p, &q, wanted,
                                                NULL) == QG_OK,
                      "%s", qg_detail());
        const uint8_t *got = (const uint8_t *)scaled_graph_values(runner, node) + i * size;
        REQUIRE(memcmp(got, wanted, (size_t)size) == 0, "%s: %s x %s, matrix %d", c->unit, c->lhs,
                c->rhs, i);
    }
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(a_unit_multiplies_each_matrix_with_the_promotion_that_its_layouts_need) {
    for (size_t i = 0; i < sizeof unit_cases / sizeof unit_cases[0]; i++) {
        check_unit(&unit_cases[i], QG_DTYPE_FP32);
        check_unit(&unit_cases[i], QG_DTYPE_BF16);
    }
}
END_TEST

// ----------------------------------------------------------------------------------------- refusal

static void check_refused(const char *lhs, const char *rhs, const char *unit, const char *why) {
    product p = {.lhs = lhs, .rhs = rhs, .matrices = 1};
    fill(M, N, K, BLOCK_DATA_ORDINARY);
    qg_graph *graph = scaled_graph_create();
    build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("emulator", unit, 1);
    qg_graph_runner *runner = NULL;
    ck_assert_int_eq(qg_graph_runner_create(graph, &options, &runner), QG_ERROR_UNSUPPORTED);
    REQUIRE(strstr(qg_detail(), "product") && strstr(qg_detail(), why), "'%s'", qg_detail());
    qg_graph_free(graph);
}

START_TEST(what_the_unit_does_not_take_is_refused_before_it_runs) {
    check_refused("mxint8", "mxint8", "hopper_wgmma", "does not multiply mxint8");
    check_refused("mxfp8", "mxfp8", "hopper_wgmma", "no block scales");
    check_refused("mxfp8", "e4m3", "blackwell_mx", "block scales on both");
    check_refused("e4m3", "e4m3", "native", "native");
    check_refused("e4m3", "mx9", "ada_mma", "does not multiply");
    check_refused("e4m3", "e4m3", "ada_mma+promote:24", "+promote:24");
    check_refused("deepseek_act128", "deepseek_act128", "hopper_wgmma+split:2", "cut the scales");
}
END_TEST

START_TEST(the_unit_is_not_read_for_other_backends) {
    product p = {.lhs = "mxint8", .rhs = "mxint8", .backend = "cpu", .matrices = 1};
    fill(M, N, K, BLOCK_DATA_ORDINARY);
    qg_graph *graph = scaled_graph_create();
    build(graph, &p);
    qg_graph_run_options options = scaled_graph_options("cpu", "hopper_wgmma", 1);
    if (options.backend->scaled_matmul)
        qg_graph_runner_free(scaled_graph_run(graph, &options));
    qg_graph_free(graph);
}
END_TEST

START_TEST(products_do_not_depend_on_threads) {
    static const unit_case cases[] = {
        {"hopper_wgmma", "", "deepseek_act128", "e4m3" },
        {"exact",        "", "mxfp8",           "nvfp4"},
        {"fp32_fma",     "", "rlx_mxfp4x2",     "mx6"  },
        {"blackwell_mx", "", "mxfp8",           "mxfp4"},
    };
    fill(BATCH * M, BATCH * N, UNIT_K, BLOCK_DATA_WIDE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qg_graph *graph = scaled_graph_create();
        qg_tensor_type left = qg_tensor(QG_DTYPE_FP32, 3, BATCH, M, UNIT_K);
        qg_tensor_type right = qg_tensor(QG_DTYPE_FP32, 3, BATCH, N, UNIT_K);
        qg_scaled x = scaled_graph_operand(graph, "a", left, a, cases[i].lhs);
        qg_scaled w = scaled_graph_operand(graph, "b", right, b, cases[i].rhs);
        qg_node node = qg_graph_output(
            graph, qg_graph_scaled_matmul(graph, x, w, QG_NODE_NONE, QG_DTYPE_FP32));
        qg_graph_run_options one = scaled_graph_options("emulator", cases[i].unit, 1);
        qg_graph_runner *wanted = scaled_graph_run(graph, &one);
        for (int threads = 0; threads < 5; threads++) {
            one.threads = threads;
            qg_graph_runner *runner = scaled_graph_run(graph, &one);
            REQUIRE(memcmp(scaled_graph_values(runner, node), scaled_graph_values(wanted, node),
                           sizeof(float) * BATCH * M * N) == 0,
                    "%s on %d threads", cases[i].unit, threads);
            qg_graph_runner_free(runner);
        }
        qg_graph_runner_free(wanted);
        qg_graph_free(graph);
    }
}
END_TEST

// ------------------------------------------------------------------------------------ any bytes

// Codes beyond a format's bits and scales of any value: results, not failures, the same decoded
// values on both backends, and the exact product of them.
static void check_any_bytes(const char *text) {
    static uint8_t codes[2 * M * K], scale_bytes[8 * M * K];
    static const float given_tensor = 3.0f;
    uint64_t state = 5;
    for (int i = 0; i < 2 * M * K; i++)
        codes[i] = (uint8_t)block_data_random(&state);
    qg_tensor_type x = qg_tensor(QG_DTYPE_FP32, 2, M, K);
    qg_scaled_shape shape;
    ck_assert_int_eq(qg_scaled_shape_of(text, &x, &shape), QG_OK);
    for (int64_t i = 0; i < qg_tensor_bytes(&shape.scale); i++)
        scale_bytes[i] = (uint8_t)block_data_random(&state);
    qg_graph *graph = scaled_graph_create();
    qg_scaled q = {.recipe = text, .tensor_scale = QG_NODE_NONE};
    q.codes = scaled_graph_tensor(graph, "codes", shape.codes, codes);
    q.scale = scaled_graph_tensor(graph, "scale", shape.scale, scale_bytes);
    if (shape.has_tensor_scale)
        q.tensor_scale =
            scaled_graph_tensor(graph, "tensor", qg_tensor(QG_DTYPE_FP32, 1, 1), &given_tensor);
    qg_node back = qg_graph_output(graph, qg_graph_dequantize(graph, q));
    qg_node node =
        qg_graph_output(graph, qg_graph_scaled_matmul(graph, q, q, QG_NODE_NONE, QG_DTYPE_FP32));
    qg_graph_run_options options = scaled_graph_options("emulator", NULL, 1);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    qg_unit exact;
    qg_matmul_options wanted_options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    float wanted[M * M];
    const float *values = scaled_graph_values(runner, back);
    ck_assert_int_eq(qg_unit_parse("exact", &exact), QG_OK);
    ck_assert_int_eq(qg_emulator_matmul(&exact, &wanted_options, M, M, K, values, values, wanted),
                     QG_OK);
    REQUIRE(memcmp(wanted, scaled_graph_values(runner, node), sizeof wanted) == 0, "%s", text);
    options = scaled_graph_options("cpu", NULL, 1);
    if (options.backend->scaled_matmul) {
        qg_graph_runner *other = scaled_graph_run(graph, &options);
        const float *again = scaled_graph_values(other, back);
        REQUIRE(memcmp(values, again, sizeof(float) * M * K) == 0, "%s decodes differently", text);
        qg_graph_runner_free(other);
    }
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(any_bytes_as_codes_and_scales) {
    for (size_t i = 0; recipe_at(i); i++)
        check_any_bytes(recipe_at(i));
}
END_TEST

int main(void) {
    const TTest *tests[] = {on_the_emulator_it_is_the_exact_product_of_the_decoded_operands,
                            on_the_cpu_it_is_within_the_derived_bound,
                            batched_is_a_product_for_each_matrix,
                            a_unit_multiplies_each_matrix_with_the_promotion_that_its_layouts_need,
                            what_the_unit_does_not_take_is_refused_before_it_runs,
                            the_unit_is_not_read_for_other_backends,
                            products_do_not_depend_on_threads,
                            any_bytes_as_codes_and_scales};
    return RUN_SUITE("run_product", tests);
}
