// Statements R13 to R16 of RLX, each test named after its own, and the scenarios that it tests
// itself: rewrite counts, one quantization of a shared activation, f16 beside scaled products with
// full verification, batched products left alone. (R15 on the backend: here; device runs and R11:
// tests/kernels/test_rlx_device.)
#include <require.h>
#include <rlx_graph.h>
#include <run_suite.h>

#include <qg_graph_gradient.h>
#include <qg_graph_text.h>
#include <qg_memory.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { M = 4, K = 64, HIDDEN = 48, N = 8 };

static float x[M * K], w1[K * HIDDEN], w2[HIDDEN * N], bias1[HIDDEN];
static const qg_graph_feed feed = {"x", x};

static void fill(void) {
    rlx_ordinary(1, M * K, x);
    rlx_ordinary(2, K * HIDDEN, w1);
    rlx_ordinary(3, HIDDEN * N, w2);
    rlx_ordinary(4, HIDDEN, bias1);
}

static qg_node weight(qg_graph *graph, const char *name, int64_t rows, int64_t columns,
                      const float *values) {
    return qg_graph_parameter(graph, name, qg_tensor(QG_DTYPE_FP32, 2, rows, columns), values);
}

// relu(x w1 + bias1) w2
static qg_graph *two_layers(void) {
    fill();
    qg_graph *g = rlx_graph();
    qg_node hidden = qg_graph_matmul(g, rlx_input(g, "x", M, K), weight(g, "w1", K, HIDDEN, w1));
    qg_graph_name(g, hidden, "up");
    qg_node bias = qg_graph_parameter(g, "bias1", qg_tensor(QG_DTYPE_FP32, 1, HIDDEN), bias1);
    hidden = qg_graph_relu(g, qg_graph_add(g, hidden, bias));
    qg_node y = qg_graph_matmul(g, hidden, weight(g, "w2", HIDDEN, N, w2));
    qg_graph_output(g, qg_graph_name(g, y, "down"));
    RLX_OK(qg_graph_status(g));
    return g;
}

static qg_graph *scaled_of(const qg_graph *graph, const char *recipe, qg_scaling_report *report) {
    qg_scaling scaling = {.lhs = recipe};
    qg_graph *made;
    RLX_OK(qg_graph_insert_scaled_matmul(graph, &scaling, &made, report));
    RLX_OK(qg_graph_verify(made));
    return made;
}

static void expect_ops(const qg_graph *graph, int products, int scaled, int quantized,
                       int transposed) {
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_MATMUL), products);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_SCALED_MATMUL), scaled);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_SCALED_QUANTIZE), quantized);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_SCALED_QUANT_SCALE), quantized);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_TRANSPOSE), transposed);
}

// --------------------------------------------------------------------------------------------- R13

START_TEST(r13_each_2d_product_becomes_scale_quantize_and_product) {
    qg_graph *graph = two_layers();
    qg_scaling_report report;
    qg_graph *scaled = scaled_of(graph, "rlx_mxfp8", &report);
    expect_ops(graph, 2, 0, 0, 0);
    expect_ops(scaled, 0, 2, 4, 2);
    ck_assert_int_eq(report.products, 2);
    ck_assert_int_eq(report.quantized, 4);
    ck_assert_int_eq(qg_graph_count_op(scaled, QG_GRAPH_RELU), 1); // the rest is as it was
    ck_assert_int_eq(qg_graph_node_op(scaled, qg_graph_find(scaled, "down")),
                     QG_GRAPH_SCALED_MATMUL);
    qg_graph_free(graph);
    qg_graph_free(scaled);
}
END_TEST

// The numbers that RLX's tests of the pass leave out: on either backend the first product is that
// of its operands, which are those of x and of w1 with K last.
START_TEST(r13_inserted_products_are_those_of_the_quantized_operands) {
    static const char *const recipes[] = {"rlx_e4m3", "rlx_mxfp8", "rlx_nvfp4"};
    static const char *const backends[] = {"emulator", "cpu"};
    float turned[HIDDEN * K];
    qg_graph *graph = two_layers();
    for (int i = 0; i < HIDDEN * K; i++)
        turned[i] = w1[i % K * HIDDEN + i / K];
    for (int i = 0; i < 6; i++) {
        const char *recipe = recipes[i / 2], *backend = backends[i % 2];
        const char *unit = i % 2 ? NULL : "exact";
        qg_graph *scaled = scaled_of(graph, recipe, NULL);
        qg_graph_runner *runner = rlx_run(scaled, backend, unit, 1, &feed);
        rlx_expect_product(scaled, runner, "up", backend, unit, NULL);
        rlx_expect_product(scaled, runner, "down", backend, unit, NULL);
        rlx_quantized wanted[] = {rlx_quantize("emulator", recipe, M, K, x),
                                  rlx_quantize("emulator", recipe, HIDDEN, K, turned)};
        for (int side = 0; side < 2; side++) {
            rlx_quantized got = rlx_operand(scaled, runner, "up", side);
            ck_assert_int_eq(memcmp(got.codes, wanted[side].codes, (size_t)got.shape.codes_size),
                             0);
            ck_assert_int_eq(memcmp(got.scales, wanted[side].scales, (size_t)got.shape.scales_size),
                             0);
            rlx_discard(&got);
            rlx_discard(&wanted[side]);
        }
        qg_graph_runner_free(runner);
        qg_graph_free(scaled);
    }
    qg_graph_free(graph);
}
END_TEST

// Queries, keys and values of one x.
START_TEST(r13_shared_operand_is_quantized_once) {
    static const char *const names[] = {"q", "k", "v"};
    qg_graph *graph = rlx_graph();
    qg_scaling_report report;
    fill();
    qg_node in = rlx_input(graph, "x", M, K);
    for (int i = 0; i < 3; i++)
        qg_graph_output(graph, qg_graph_matmul(graph, in, weight(graph, names[i], K, HIDDEN, w1)));
    qg_graph *scaled = scaled_of(graph, "rlx_mxfp8", &report);
    expect_ops(scaled, 0, 3, 4, 3);
    ck_assert_int_eq(report.reused, 2);
    qg_graph_free(graph);
    qg_graph_free(scaled);
}
END_TEST

START_TEST(r13_batched_products_are_left_alone_unless_asked) {
    qg_graph *graph = rlx_graph(), *scaled;
    qg_node a = qg_graph_input(graph, "a", qg_tensor(QG_DTYPE_FP32, 3, 2, 5, 32));
    qg_node b = qg_graph_input(graph, "b", qg_tensor(QG_DTYPE_FP32, 3, 2, 32, 6));
    qg_graph_output(graph, qg_graph_name(graph, qg_graph_matmul(graph, a, b), "y"));
    scaled = scaled_of(graph, "rlx_mxfp8", NULL);
    expect_ops(scaled, 1, 0, 0, 0);
    qg_graph_free(scaled);
    qg_scaling all = {.lhs = "rlx_mxfp8", .batched = true};
    RLX_OK(qg_graph_insert_scaled_matmul(graph, &all, &scaled, NULL));
    expect_ops(scaled, 0, 1, 2, 1);
    qg_graph_free(scaled);
    qg_graph_free(graph);
}
END_TEST

// Scaled first, then f16: codes and scales stay u8, products and their scales fp32, all of it
// verified, and the result within f16's roundings of x, bias and relu of what it was.
START_TEST(r13_f16_beside_scaled_products_verifies_and_runs) {
    qg_graph *graph = two_layers(), *scaled = scaled_of(graph, "rlx_mxfp8", NULL), *mixed;
    RLX_OK(qg_graph_lower_precision(scaled, QG_DTYPE_FP16, &mixed));
    RLX_OK(qg_graph_verify(mixed));
    expect_ops(mixed, 0, 2, 4, 2);
    ck_assert_int_gt(qg_graph_count_op(mixed, QG_GRAPH_CAST), 0);
    for (qg_node i = 0; i < qg_graph_count(mixed); i++) {
        qg_graph_op op = qg_graph_node_op(mixed, i);
        int32_t dtype = qg_graph_node_type(mixed, i)->dtype;
        if (op == QG_GRAPH_SCALED_QUANTIZE || op == QG_GRAPH_SCALED_QUANT_SCALE)
            ck_assert_int_eq(dtype, QG_DTYPE_U8);
        if (op == QG_GRAPH_SCALED_MATMUL)
            ck_assert_int_eq(dtype, QG_DTYPE_FP32);
    }
    qg_graph_runner *before = rlx_run(scaled, "emulator", NULL, 1, &feed);
    qg_graph_runner *after = rlx_run(mixed, "emulator", NULL, 1, &feed);
    const float *wanted = rlx_values(scaled, before, "down"),
                *got = rlx_values(mixed, after, "down");
    double ee = 0, xx = 0;
    for (int i = 0; i < M * N; i++) {
        ee += ((double)got[i] - (double)wanted[i]) * ((double)got[i] - (double)wanted[i]);
        xx += (double)wanted[i] * (double)wanted[i];
    }
    ck_assert_double_le(sqrt(ee / xx), 0x1p-6);
    qg_graph_runner_free(before);
    qg_graph_runner_free(after);
    qg_graph_free(graph);
    qg_graph_free(scaled);
    qg_graph_free(mixed);
}
END_TEST

// --------------------------------------------------------------------------------------------- R14

// relu(x w1 + bias1) w2 as the executor is to compute it: chains of fused multiply-adds.
static void two_layers_in_fp32(float *out) {
    for (int row = 0; row < M; row++) {
        float hidden[HIDDEN];
        for (int j = 0; j < HIDDEN; j++) {
            float sum = 0.0f;
            for (int i = 0; i < K; i++)
                sum = fmaf(x[row * K + i], w1[i * HIDDEN + j], sum);
            sum += bias1[j];
            hidden[j] = sum > 0.0f ? sum : 0.0f;
        }
        for (int j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int i = 0; i < HIDDEN; i++)
                sum = fmaf(hidden[i], w2[i * N + j], sum);
            out[row * N + j] = sum;
        }
    }
}

static bool runs_as_fp32(const qg_graph *graph, const char *backend) {
    float wanted[M * N];
    two_layers_in_fp32(wanted);
    qg_graph_runner *runner = rlx_run(graph, backend, NULL, 1, &feed);
    bool same = memcmp(rlx_values(graph, runner, "down"), wanted, sizeof wanted) == 0;
    for (qg_node i = 0; i < qg_graph_count(graph); i++)
        same = same && qg_graph_node_op(graph, i) < QG_GRAPH_SCALED_TENSOR_SCALE;
    qg_graph_runner_free(runner);
    return same;
}

static qg_graph *read_back(const qg_graph *graph) {
    char *text;
    size_t size;
    qg_graph *made;
    RLX_OK(qg_graph_print(graph, &text, &size));
    RLX_OK(qg_graph_read(text, size, &made));
    RLX_OK(qg_graph_bind(made, "w1", w1));
    RLX_OK(qg_graph_bind(made, "w2", w2));
    RLX_OK(qg_graph_bind(made, "bias1", bias1));
    qg_release(text);
    return made;
}

// Nothing but the call of insertion quantizes: no run, copy, text, other pass, backend or variable.
START_TEST(r14_without_insertion_the_numbers_are_those_of_fp32) {
    static const char *const variables[][2] = {
        {"QG_ISA",              "scalar"                },
        {"QG_GROUP_KERNEL",     "hopper"                },
        {"QG_CUDA_MODULE",      "/nonexistent/module.so"},
        {"QG_REQUIRE_CUDA",     "1"                     },
        {"RLX_PARITY_DEVICE",   "cuda"                  },
        {"RLX_REQUIRE_DEVICE",  "1"                     },
        {"RLX_VULKAN_HOST_OPS", "1"                     },
    };
    qg_graph *graph = two_layers(), *made[4];
    qg_graph *scaled = scaled_of(graph, "rlx_mxfp8", NULL); // the old one stays as it was
    RLX_OK(qg_graph_copy(graph, &made[0]));
    RLX_OK(qg_graph_remove_dead(graph, &made[1]));
    RLX_OK(qg_graph_fold(graph, true, NULL, &made[2]));
    made[3] = read_back(graph);
    for (size_t i = 0; i <= sizeof variables / sizeof variables[0]; i++) {
        ck_assert(runs_as_fp32(graph, "emulator"));
        ck_assert(runs_as_fp32(graph, "cpu"));
        for (int j = 0; j < 4; j++)
            ck_assert(runs_as_fp32(made[j], "emulator"));
        if (i < sizeof variables / sizeof variables[0])
            ck_assert_int_eq(setenv(variables[i][0], variables[i][1], 1), 0);
    }
    ck_assert(!runs_as_fp32(scaled, "emulator"));
    for (int j = 0; j < 4; j++)
        qg_graph_free(made[j]);
    qg_graph_free(scaled);
    qg_graph_free(graph);
}
END_TEST

// --------------------------------------------------------------------------------------------- R15

// The environment of the tests names a module that is not there.
START_TEST(r15_a_backend_that_is_absent_fails) {
    qg_graph *graph = two_layers(), *scaled = scaled_of(graph, "rlx_e4m3", NULL);
    qg_graph_run_options options = {.backend = qg_backend_find("cuda")};
    qg_graph_runner *runner;
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", "/nonexistent/module.so", 1), 0);
    ck_assert_int_eq(qg_graph_runner_create(scaled, &options, &runner), QG_ERROR_ENVIRONMENT);
    ck_assert_ptr_null(runner);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "cuda"));
    ck_assert_ptr_nonnull(strstr(qg_detail(), "/nonexistent/module.so"));
    qg_graph_free(graph);
    qg_graph_free(scaled);
}
END_TEST

static int exit_code_of_sweep(const char *required) {
    char command[4096], out[] = "/tmp/rlx_required_XXXXXX";
    const char *programs = getenv("QG_BIN_DIR");
    ck_assert_ptr_nonnull(mkdtemp(out));
    snprintf(command, sizeof command,
             "cd %s && QG_REQUIRE_CUDA=%s QG_CUDA_MODULE=/nonexistent/module.so %s/run_sweep -q "
             "--formats e4m3 --layouts per_tensor --ops error --data normal --m 1 --k 32 --seeds 1 "
             ">log 2>&1",
             out, required, programs ? programs : "build/ci/bin");
    int status = system(command);
    snprintf(command, sizeof command, "rm -r %s", out);
    ck_assert_int_eq(system(command), 0);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(r15_a_required_device_that_is_absent_fails_the_run) {
    ck_assert_int_eq(exit_code_of_sweep("1"), 5);
    ck_assert_int_eq(exit_code_of_sweep("0"), 0); // not required: what is there runs
}
END_TEST

// --------------------------------------------------------------------------------------------- R16

// loss = sum(y * g) for y = x w of scaled operands.
static qg_graph *loss_of_scaled_product(const char *recipe, float *g_values) {
    qg_graph *graph = rlx_graph();
    fill();
    rlx_ordinary(6, M * HIDDEN, g_values);
    qg_node y =
        qg_graph_matmul(graph, rlx_input(graph, "x", M, K), weight(graph, "w1", K, HIDDEN, w1));
    qg_graph_name(graph, y, "y");
    qg_node g = qg_graph_constant(graph, "g", qg_tensor(QG_DTYPE_FP32, 2, M, HIDDEN), g_values);
    qg_node loss = qg_graph_reduce(graph, QG_GRAPH_REDUCE_SUM, qg_graph_multiply(graph, y, g), 2,
                                   (int32_t[]){0, 1}, false);
    qg_graph_output(graph, qg_graph_name(graph, loss, "loss"));
    qg_graph *scaled = scaled_of(graph, recipe, NULL);
    qg_graph_free(graph);
    return scaled;
}

static qg_graph *gradients_of(const qg_graph *graph, const char *gradient) {
    qg_gradient_options options = {.gradient = gradient};
    const qg_node wrt[] = {qg_graph_find(graph, "x"), qg_graph_find(graph, "w1")};
    qg_graph *made;
    RLX_OK(qg_graph_gradient(graph, qg_graph_find(graph, "loss"), 2, wrt, &options, &made));
    RLX_OK(qg_graph_verify(made));
    return made;
}

// dL/dx = g deq(w)^T and dL/dw = deq(x)^T g, to the bit of the executor's product: the quantization
// passes them straight through, nothing comes of the scales.
START_TEST(r16_gradients_pass_straight_through_to_products_of_dequantized_operands) {
    static const char *const recipes[] = {"rlx_e4m3", "rlx_mxfp8", "rlx_nvfp4", "rlx_mxfp4x2"};
    static float g[M * HIDDEN];
    for (int r = 0; r < 4; r++) {
        qg_graph *forward = loss_of_scaled_product(recipes[r], g),
                 *graph = gradients_of(forward, NULL);
        qg_graph_runner *runner = rlx_run(graph, "emulator", NULL, 1, &feed);
        rlx_quantized lhs = rlx_operand(graph, runner, "y", 0);
        rlx_quantized rhs = rlx_operand(graph, runner, "y", 1);
        const float *dx = rlx_values(graph, runner, "gradient/x");
        const float *dw = rlx_values(graph, runner, "gradient/w1");
        for (int i = 0; i < M * K; i++) {
            float sum = 0.0f;
            for (int j = 0; j < HIDDEN; j++)
                sum = fmaf(g[i / K * HIDDEN + j], (float)rlx_value_of(&rhs, j, i % K), sum);
            REQUIRE(dx[i] == sum, "%s: dx[%d] is %a, not %a", recipes[r], i, (double)dx[i],
                    (double)sum);
        }
        for (int i = 0; i < K * HIDDEN; i++) {
            float sum = 0.0f;
            for (int row = 0; row < M; row++)
                sum = fmaf((float)rlx_value_of(&lhs, row, i / HIDDEN), g[row * HIDDEN + i % HIDDEN],
                           sum);
            REQUIRE(dw[i] == sum, "%s: dw[%d] is %a, not %a", recipes[r], i, (double)dw[i],
                    (double)sum);
        }
        rlx_discard(&lhs);
        rlx_discard(&rhs);
        qg_graph_runner_free(runner);
        qg_graph_free(graph);
        qg_graph_free(forward);
    }
}
END_TEST

// Of quantize and dequantize alone the gradient is the incoming one.
START_TEST(r16_quantization_is_the_identity_to_gradients) {
    qg_graph *forward = rlx_graph();
    fill();
    qg_scaled q = qg_graph_quantize(forward, rlx_input(forward, "x", M, K), "rlx_mxfp8");
    qg_node g = qg_graph_constant(forward, "g", qg_tensor(QG_DTYPE_FP32, 2, M, K), w1);
    qg_node loss = qg_graph_reduce(forward, QG_GRAPH_REDUCE_SUM,
                                   qg_graph_multiply(forward, qg_graph_dequantize(forward, q), g),
                                   2, (int32_t[]){0, 1}, false);
    qg_graph_output(forward, qg_graph_name(forward, loss, "loss"));
    const qg_node wrt = qg_graph_find(forward, "x");
    qg_graph *graph;
    RLX_OK(qg_graph_gradient(forward, qg_graph_find(forward, "loss"), 1, &wrt, NULL, &graph));
    qg_graph_runner *runner = rlx_run(graph, "emulator", NULL, 1, &feed);
    ck_assert_int_eq(memcmp(rlx_values(graph, runner, "gradient/x"), w1, sizeof x), 0);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
    qg_graph_free(forward);
}
END_TEST

// What RLX lacks: both backward products on scaled operands, gradients in E5M2.
START_TEST(r16_gradients_may_be_quantized_to_e5m2) {
    static float g[M * HIDDEN];
    qg_graph *forward = loss_of_scaled_product("rlx_e4m3", g),
             *graph = gradients_of(forward, "e5m2");
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_SCALED_MATMUL), 3);
    ck_assert_int_eq(qg_graph_count_op(graph, QG_GRAPH_MATMUL), 0);
    qg_graph_free(graph);
    qg_graph_free(forward);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r13_each_2d_product_becomes_scale_quantize_and_product,
        r13_inserted_products_are_those_of_the_quantized_operands,
        r13_shared_operand_is_quantized_once,
        r13_batched_products_are_left_alone_unless_asked,
        r13_f16_beside_scaled_products_verifies_and_runs,
        r14_without_insertion_the_numbers_are_those_of_fp32,
        r15_a_backend_that_is_absent_fails,
        r15_a_required_device_that_is_absent_fails_the_run,
        r16_gradients_pass_straight_through_to_products_of_dequantized_operands,
        r16_quantization_is_the_identity_to_gradients,
        r16_gradients_may_be_quantized_to_e5m2,
    };
    return RUN_SUITE("rlx_graph", tests);
}
