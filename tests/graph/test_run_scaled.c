// Quantize, encode and dequantize of a graph: the bytes of the emulator on every backend, for every
// recipe, input dtype and rank; scales of other tensors; scales that nobody quantizes by;
// stochastic rounding by the seeds of run and node; threads.
#include <block_data.h>
#include <qg_input.h>
#include <qg_philox.h>
#include <require.h>
#include <run_suite.h>
#include <scaled_graph.h>

#include <stdio.h>
#include <string.h>

enum { A = 2, B = 3, K = 45, ROWS = A * B, N = ROWS * K };

static float x[N], wide[N];
static uint16_t narrow[N];
static uint8_t codes[2 * N], scales[8 * N];
static float tensor;

static const char *const further[] = {"e4m3",
                                      "e5m2/per_row",
                                      "e4m3/block:4x16/amax",
                                      "deepseek_w128x128",
                                      "int8/group:16/amax_rcp",
                                      "e2m1/group:16/two_level/rtz",
                                      "e3m4/per_row/best",
                                      "mxfp8/group:8/rceil/stochastic:A:16",
                                      "rlx_mxfp4x2///stochastic:B:8",
                                      "nvfp4_4over6///stochastic:C:12"};

// Recipes of the table, then further ones.
static const char *recipe_at(size_t i) {
    size_t listed = 0;
    while (scaled_graph_recipe_at(listed))
        listed++;
    if (i < listed)
        return scaled_graph_recipe_at(i);
    return i - listed < sizeof further / sizeof further[0] ? further[i - listed] : NULL;
}

static const char *const backends[] = {"emulator", "cpu"};
static const qg_dtype dtypes[] = {QG_DTYPE_FP32, QG_DTYPE_BF16, QG_DTYPE_FP16};

// The values of a kind in a dtype; `wide` is what they are in binary32.
static const void *fill(uint64_t seed, int kind, qg_dtype dtype) {
    block_data_fill(seed, kind, x, N);
    for (int i = 0; i < N; i++) {
        uint32_t bits = qg_bits_of_float(x[i]);
        narrow[i] = (uint16_t)(dtype == QG_DTYPE_FP16 ? bits >> 9 : bits >> 16);
        wide[i] = dtype == QG_DTYPE_FP32   ? x[i]
                  : dtype == QG_DTYPE_BF16 ? qg_float_of_bf16(narrow[i])
                                           : qg_float_of_fp16(narrow[i]);
    }
    return dtype == QG_DTYPE_FP32 ? (const void *)x : narrow;
}

static qg_quantize_options options_of(qg_dtype dtype, uint64_t seed) {
    static const qg_format types[] = {[QG_DTYPE_FP32] = QG_FORMAT_FP32,
                                      [QG_DTYPE_FP16] = QG_FORMAT_FP16,
                                      [QG_DTYPE_BF16] = QG_FORMAT_BF16};
    return (qg_quantize_options){
        .input_type = types[dtype], .seed = seed, .stream = QG_STREAM_ROUNDING, .threads = 1};
}

// What the emulator makes of `wide` as a matrix.
static qg_shape quantize_here(const char *text, qg_dtype dtype, uint64_t seed) {
    qg_recipe recipe = scaled_graph_recipe(text);
    qg_quantize_options options = options_of(dtype, seed);
    qg_shape shape;
    ck_assert_int_eq(qg_shape_of(&recipe, ROWS, K, &shape), QG_OK);
    ck_assert_msg(qg_emulator_quantize(&recipe, &options, ROWS, K, wide, codes, scales, &tensor,
                                       NULL) == QG_OK,
                  "%s", qg_detail());
    return shape;
}

static qg_tensor_type x_type(qg_dtype dtype) { return qg_tensor(dtype, 3, A, B, K); }

static void check_bytes(const char *what, const qg_graph_runner *runner, qg_node node,
                        const void *wanted, int64_t size) {
    const uint8_t *got = scaled_graph_values(runner, node), *want = wanted;
    for (int64_t i = 0; i < size; i++)
        REQUIRE(got[i] == want[i], "%s: byte %lld is %02x, not %02x", what, (long long)i, got[i],
                want[i]);
}

// ------------------------------------------------------------------------------ quantize and back

static void check_there_and_back(const char *text, const char *backend, qg_dtype dtype, int kind) {
    const void *values = fill(3, kind, dtype);
    qg_graph *graph = scaled_graph_create();
    qg_scaled q = scaled_graph_operand(graph, "x", x_type(dtype), values, text);
    qg_node back = qg_graph_output(graph, qg_graph_dequantize(graph, q));
    qg_graph_run_options options = scaled_graph_options(backend, NULL, 1);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    qg_shape shape = quantize_here(text, dtype, 0);
    char what[160];
    snprintf(what, sizeof what, "%s on %s, %s, kind %d", text, backend, qg_dtype_name(dtype), kind);
    ck_assert_int_eq(qg_tensor_bytes(qg_graph_node_type(graph, q.codes)), shape.codes_size);
    ck_assert_int_eq(qg_tensor_bytes(qg_graph_node_type(graph, q.scale)), shape.scales_size);
    check_bytes(what, runner, q.codes, codes, shape.codes_size);
    check_bytes(what, runner, q.scale, scales, shape.scales_size);
    if (shape.has_tensor_scale)
        check_bytes(what, runner, q.tensor_scale, &tensor, sizeof tensor);
    qg_recipe recipe = scaled_graph_recipe(text);
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, ROWS, K, codes, scales, tensor, 1, wide),
                     QG_OK);
    check_bytes(what, runner, back, wide, sizeof wide);
    if (strcmp(backend, "emulator") == 0)
        ck_assert_str_eq(qg_graph_runner_impl(runner, q.codes), "emulator");
    ck_assert_str_ne(qg_graph_runner_impl(runner, q.codes), "");
    ck_assert_str_ne(qg_graph_runner_impl(runner, back), "");
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(bytes_are_those_of_the_emulator_on_every_backend) {
    for (size_t i = 0; recipe_at(i); i++)
        for (int b = 0; b < 2; b++)
            for (int d = 0; d < 3; d++) {
                check_there_and_back(recipe_at(i), backends[b], dtypes[d], BLOCK_DATA_MIXED);
                check_there_and_back(recipe_at(i), backends[b], dtypes[d], BLOCK_DATA_ORDINARY);
            }
}
END_TEST

// The scale, or the tensor scale, is all that the graph asks for.
START_TEST(scales_that_nothing_quantizes_by) {
    static const char *const texts[] = {"mxfp8", "e4m3", "nvfp4", "rlx_mxfp4x2", "mx9"};
    fill(5, BLOCK_DATA_ORDINARY, QG_DTYPE_FP32);
    for (size_t i = 0; i < 5; i++)
        for (int b = 0; b < 2; b++) {
            qg_graph *graph = scaled_graph_create();
            qg_node node = scaled_graph_tensor(graph, "x", x_type(QG_DTYPE_FP32), x);
            qg_attributes attributes = {0};
            snprintf(attributes.recipe, sizeof attributes.recipe, "%s", texts[i]);
            qg_node scale =
                qg_graph_output(graph, qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANT_SCALE, 1,
                                                         &node, &attributes, NULL));
            qg_node amax = QG_NODE_NONE;
            qg_shape shape = quantize_here(texts[i], QG_DTYPE_FP32, 0);
            if (shape.has_tensor_scale)
                amax = qg_graph_output(graph, qg_graph_add_node(graph, QG_GRAPH_SCALED_TENSOR_SCALE,
                                                                1, &node, &attributes, NULL));
            qg_graph_run_options options = scaled_graph_options(backends[b], NULL, 1);
            qg_graph_runner *runner = scaled_graph_run(graph, &options);
            check_bytes(texts[i], runner, scale, scales, shape.scales_size);
            if (amax != QG_NODE_NONE)
                check_bytes(texts[i], runner, amax, &tensor, sizeof tensor);
            qg_graph_runner_free(runner);
            qg_graph_free(graph);
        }
}
END_TEST

START_TEST(stochastic_rounding_is_keyed_by_the_seeds_of_run_and_node) {
    const char *text = "mxfp4///stochastic:A:16";
    fill(5, BLOCK_DATA_ORDINARY, QG_DTYPE_FP32);
    qg_graph *graph = scaled_graph_create();
    qg_scaled first = scaled_graph_operand(graph, "x", x_type(QG_DTYPE_FP32), x, text);
    qg_attributes attributes = {.seed = 40};
    snprintf(attributes.recipe, sizeof attributes.recipe, "%s", text);
    qg_node inputs[] = {qg_graph_find(graph, "x"), first.scale};
    qg_node second = qg_graph_output(graph, qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANTIZE, 2,
                                                              inputs, &attributes, "second"));
    qg_graph_output(graph, first.codes);
    for (int b = 0; b < 2; b++) {
        qg_graph_run_options options = scaled_graph_options(backends[b], NULL, 2);
        options.seed = 2;
        qg_graph_runner *runner = scaled_graph_run(graph, &options);
        quantize_here(text, QG_DTYPE_FP32, 2);
        check_bytes("seed 2", runner, first.codes, codes, N);
        quantize_here(text, QG_DTYPE_FP32, 42);
        check_bytes("seed 42", runner, second, codes, N);
        qg_graph_runner_free(runner);
    }
    qg_graph_free(graph);
}
END_TEST

// ---------------------------------------------------------------------------------- others' scales

static float y[N];

// x quantized by the scales of y, on a backend.
static void check_foreign(const char *text, const char *backend, qg_dtype dtype) {
    qg_recipe recipe = scaled_graph_recipe(text);
    if (recipe.rule == QG_RULE_AMAX_MUL)
        return;
    const void *values = fill(9, BLOCK_DATA_MIXED, dtype);
    block_data_fill(10, BLOCK_DATA_ORDINARY, y, N);
    qg_graph *graph = scaled_graph_create();
    qg_node in = scaled_graph_tensor(graph, "x", x_type(dtype), values);
    qg_scaled by = scaled_graph_operand(graph, "y", x_type(QG_DTYPE_FP32), y, text);
    qg_attributes attributes = {.seed = 3};
    snprintf(attributes.recipe, sizeof attributes.recipe, "%s", text);
    qg_node inputs[] = {in, by.scale, by.tensor_scale};
    int32_t count = by.tensor_scale == QG_NODE_NONE ? 2 : 3;
    qg_node out =
        qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANTIZE, count, inputs, &attributes, "out");
    qg_graph_output(graph, out);
    qg_graph_run_options options = scaled_graph_options(backend, NULL, 2);
    options.seed = 4;
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    const uint8_t *given = scaled_graph_values(runner, by.scale);
    float given_tensor =
        count == 3 ? *(const float *)scaled_graph_values(runner, by.tensor_scale) : 1.0f;
    qg_quantize_options encode = options_of(dtype, 7);
    ck_assert_int_eq(
        qg_emulator_encode(&recipe, &encode, ROWS, K, wide, given, given_tensor, codes), QG_OK);
    check_bytes(text, runner, out, codes, qg_tensor_bytes(qg_graph_node_type(graph, out)));
    ck_assert_str_eq(qg_graph_runner_impl(runner, out), "emulator");
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}

START_TEST(scales_of_another_tensor) {
    for (size_t i = 0; recipe_at(i); i++)
        for (int d = 0; d < 3; d++)
            check_foreign(recipe_at(i), backends[i % 2], dtypes[d]);
}
END_TEST

// A block scale of its own with the tensor scale of another tensor is not its own quantization.
START_TEST(a_tensor_scale_of_another_tensor) {
    fill(9, BLOCK_DATA_ORDINARY, QG_DTYPE_FP32);
    for (int i = 0; i < N; i++)
        y[i] = 5.0f * x[i];
    qg_graph *graph = scaled_graph_create();
    qg_scaled own = scaled_graph_operand(graph, "x", x_type(QG_DTYPE_FP32), x, "nvfp4");
    qg_scaled other = scaled_graph_operand(graph, "y", x_type(QG_DTYPE_FP32), y, "nvfp4");
    qg_attributes attributes = {.recipe = "nvfp4"};
    qg_node inputs[] = {qg_graph_find(graph, "x"), own.scale, other.tensor_scale};
    qg_node mixed = qg_graph_output(
        graph, qg_graph_add_node(graph, QG_GRAPH_SCALED_QUANTIZE, 3, inputs, &attributes, NULL));
    qg_graph_run_options options = scaled_graph_options("cpu", NULL, 1);
    qg_graph_runner *runner = scaled_graph_run(graph, &options);
    qg_recipe recipe = scaled_graph_recipe("nvfp4");
    qg_quantize_options encode = options_of(QG_DTYPE_FP32, 0);
    ck_assert_int_eq(
        qg_emulator_encode(&recipe, &encode, ROWS, K, x, scaled_graph_values(runner, own.scale),
                           *(const float *)scaled_graph_values(runner, other.tensor_scale), codes),
        QG_OK);
    check_bytes("mixed", runner, mixed, codes, N);
    ck_assert_int_ne(memcmp(scaled_graph_values(runner, own.codes), codes, N), 0);
    qg_graph_runner_free(runner);
    qg_graph_free(graph);
}
END_TEST

// -----------------------------------------------------------------------------------------
// backends

// No module is loaded in tests: backend cuda does not answer.
START_TEST(a_backend_that_does_not_answer_is_an_error) {
    fill(9, BLOCK_DATA_ORDINARY, QG_DTYPE_FP32);
    qg_graph *graph = scaled_graph_create();
    qg_scaled q = scaled_graph_operand(graph, "x", x_type(QG_DTYPE_FP32), x, "e4m3");
    qg_graph_output(graph, q.codes);
    qg_graph_run_options options = scaled_graph_options("cuda", NULL, 1);
    qg_graph_runner *runner = NULL;
    ck_assert_int_eq(qg_graph_runner_create(graph, &options, &runner), QG_ERROR_ENVIRONMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "cuda"));
    qg_graph_free(graph);
}
END_TEST

enum { M2 = 70, K2 = 300 };

START_TEST(bytes_do_not_depend_on_threads) {
    static float large[M2 * K2];
    static const char *const texts[] = {"mxfp8///stochastic:A:16", "nvfp4", "e4m3", "rlx_mxfp4x2",
                                        "deepseek_w128x128"};
    block_data_fill(1, BLOCK_DATA_MIXED, large, M2 * K2);
    for (size_t i = 0; i < 5; i++) {
        qg_graph *graph = scaled_graph_create();
        qg_tensor_type type = qg_tensor(QG_DTYPE_FP32, 2, M2, K2);
        qg_scaled q = scaled_graph_operand(graph, "x", type, large, texts[i]);
        qg_node back = qg_graph_output(graph, qg_graph_dequantize(graph, q));
        qg_graph_run_options one = scaled_graph_options("emulator", NULL, 1);
        qg_graph_runner *wanted = scaled_graph_run(graph, &one);
        for (int threads = 0; threads < 5; threads++) {
            qg_graph_run_options options =
                scaled_graph_options(backends[threads % 2], NULL, threads);
            qg_graph_runner *runner = scaled_graph_run(graph, &options);
            const qg_node nodes[] = {q.codes, q.scale, back};
            for (int j = 0; j < 3; j++)
                check_bytes(texts[i], runner, nodes[j], scaled_graph_values(wanted, nodes[j]),
                            qg_tensor_bytes(qg_graph_node_type(graph, nodes[j])));
            qg_graph_runner_free(runner);
        }
        qg_graph_runner_free(wanted);
        qg_graph_free(graph);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {bytes_are_those_of_the_emulator_on_every_backend,
                            scales_that_nothing_quantizes_by,
                            stochastic_rounding_is_keyed_by_the_seeds_of_run_and_node,
                            scales_of_another_tensor,
                            a_tensor_scale_of_another_tensor,
                            a_backend_that_does_not_answer_is_an_error,
                            bytes_do_not_depend_on_threads};
    return RUN_SUITE("run_scaled", tests);
}
