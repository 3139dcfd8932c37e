// A quantization and its own scales are one call of the backend: bytes are qg_emulator_quantize's,
// whatever searches or rounds in it and in whatever order nodes lie; scales from elsewhere encode.
#include "run_graph.h"

#include <qg_emulator.h>
#include <qg_input.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <run_suite.h>

enum { ROWS = 6, K = 80, COUNT = ROWS * K };

static const char *const recipes[] = {
    "mxfp8",
    "mxfp8_e5m2",
    "mxfp4//best",
    "mxfp4//best/stochastic:A:16",
    "mxfp4//rceil/stochastic:A:16",
    "nvfp4",
    "nvfp4//four_over_six",
    "nvfp4_4over6",
    "nvfp4/group:16/two_level/stochastic:A:16",
    "nvfp4_torchao",
    "e4m3",
    "e5m2/per_row",
    "te_e4m3",
    "mx9",
    "rlx_mxfp4x2",
    "e4m3/block:2x16",
    "deepseek_act128",
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

static const float *data(void) {
    static float x[COUNT];
    fill_floats(21, COUNT, 5, x);
    for (int i = 0; i < COUNT; i += 7)
        x[i] *= 0x1p-6f;
    return x;
}

static qg_node quant_node(qg_graph *graph, qg_graph_op op, int32_t count, const qg_node *inputs,
                          const char *recipe, uint64_t seed) {
    qg_attributes a = {.seed = seed};
    snprintf(a.recipe, sizeof a.recipe, "%s", recipe);
    return qg_graph_add_node(graph, op, count, inputs, &a, NULL);
}

static bool has_tensor_scale(const char *recipe) {
    qg_recipe parsed;
    require_ok(qg_recipe_parse(recipe, &parsed));
    return qg_rule_has_tensor_scale(parsed.rule);
}

typedef struct expectation {
    qg_recipe recipe;
    qg_shape shape;
    uint8_t codes[2 * COUNT], scales[8 * COUNT];
    float tensor_scale;
} expectation;

static expectation quantized(const char *recipe, qg_format type, const float *x, uint64_t seed) {
    static expectation e;
    memset(&e, 0, sizeof e);
    qg_quantize_options options = {
        .input_type = type, .seed = seed, .stream = QG_STREAM_ROUNDING, .threads = 1};
    require_ok(qg_recipe_parse(recipe, &e.recipe));
    require_ok(qg_shape_of(&e.recipe, ROWS, K, &e.shape));
    require_ok(qg_emulator_quantize(&e.recipe, &options, ROWS, K, x, e.codes, e.scales,
                                    &e.tensor_scale, NULL));
    return e;
}

static void require_bytes(const qg_graph_runner *r, qg_node node, const void *expected,
                          int64_t size, const char *what, const char *recipe) {
    const void *values = node == QG_NODE_NONE ? NULL : qg_graph_runner_values(r, node);
    if (node != QG_NODE_NONE)
        REQUIRE(values && memcmp(values, expected, (size_t)size) == 0, "%s of %s differ", what,
                recipe);
}

typedef struct quantization {
    qg_graph *graph;
    qg_node x, codes, scale, tensor_scale;
} quantization;

static const qg_node *inputs_of(const qg_graph *graph, qg_node node) {
    const qg_node *inputs;
    qg_graph_node_inputs(graph, node, &inputs);
    return inputs;
}

enum { SCALE_FIRST, TENSOR_SCALE_FIRST, APART };

// order: of the nodes; APART: with others between them.
static quantization build(const char *recipe, qg_dtype dtype, int order, uint64_t seed) {
    quantization q = {.graph = new_graph(), .tensor_scale = QG_NODE_NONE};
    bool two_levels = has_tensor_scale(recipe);
    q.x = qg_graph_input(q.graph, "x", qg_tensor(dtype, 3, 2, ROWS / 2, K));
    qg_node x = qg_graph_reshape(q.graph, q.x, 2, (const int64_t[]){ROWS, K}); // dies with them
    if (two_levels && order == TENSOR_SCALE_FIRST)
        q.tensor_scale = quant_node(q.graph, QG_GRAPH_SCALED_TENSOR_SCALE, 1, &x, recipe, 0);
    q.scale = quant_node(q.graph, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, recipe, 0);
    if (two_levels && order != TENSOR_SCALE_FIRST)
        q.tensor_scale = quant_node(q.graph, QG_GRAPH_SCALED_TENSOR_SCALE, 1, &x, recipe, 0);
    for (int i = 0; i < 3 && order == APART; i++)
        qg_graph_output(q.graph, qg_graph_relu(q.graph, qg_graph_tanh(q.graph, q.x)));
    const qg_node inputs[] = {x, q.scale, q.tensor_scale};
    q.codes =
        quant_node(q.graph, QG_GRAPH_SCALED_QUANTIZE, two_levels ? 3 : 2, inputs, recipe, seed);
    require_ok(qg_graph_status(q.graph));
    return q;
}

static qg_graph_runner *run(const quantization *q, const qg_graph_run_options *options,
                            const void *x) {
    qg_graph_runner *r = new_runner(q->graph, options);
    require_ok(qg_graph_runner_run(r, 1, &(qg_graph_feed){"x", x}));
    return r;
}

static void require_quantized(const quantization *q, const qg_graph_runner *r, const expectation *e,
                              const char *recipe) {
    require_bytes(r, q->codes, e->codes, e->shape.codes_size, "codes", recipe);
    require_bytes(r, q->scale, e->scales, e->shape.scales_size, "scales", recipe);
    require_bytes(r, q->tensor_scale, &e->tensor_scale, 4, "tensor scale", recipe);
}

static void output_all(quantization *q) {
    qg_graph_output(q->graph, q->codes);
    qg_graph_output(q->graph, q->scale);
    if (q->tensor_scale != QG_NODE_NONE)
        qg_graph_output(q->graph, q->tensor_scale);
}

// ------------------------------------------------------------------------------------- own scales

START_TEST(bytes_are_the_emulators_in_every_order) {
    for (int i = 0; i < RECIPES; i++)
        for (int order = SCALE_FIRST; order <= APART; order++) {
            quantization q = build(recipes[i], QG_DTYPE_FP32, order, 40);
            output_all(&q);
            expectation e = quantized(recipes[i], QG_FORMAT_FP32, data(), 42);
            qg_graph_runner *r = run(&q, &(qg_graph_run_options){.seed = 2, .threads = 2}, data());
            require_quantized(&q, r, &e, recipes[i]);
            ck_assert_str_eq(qg_graph_runner_impl(r, q.codes), "emulator");
            ck_assert_str_eq(qg_graph_runner_impl(r, q.scale), "emulator");
            qg_graph_runner_free(r);
            qg_graph_free(q.graph);
        }
}
END_TEST

START_TEST(bytes_are_the_emulators_on_other_backends) {
    for (int i = 0; i < RECIPES; i++) {
        quantization q = build(recipes[i], QG_DTYPE_FP32, SCALE_FIRST, 0);
        output_all(&q);
        expectation e = quantized(recipes[i], QG_FORMAT_FP32, data(), 0);
        const qg_graph_run_options options = {.backend = qg_backend_find("cpu")};
        qg_graph_runner *r = run(&q, &options, data());
        require_quantized(&q, r, &e, recipes[i]);
        qg_graph_runner_free(r);
        qg_graph_free(q.graph);
    }
}
END_TEST

START_TEST(each_output_alone_is_the_same) {
    for (int i = 0; i < RECIPES; i++)
        for (int which = 0; which < 3; which++) {
            quantization q = build(recipes[i], QG_DTYPE_FP32, SCALE_FIRST, 0);
            const qg_node nodes[] = {q.codes, q.scale, q.tensor_scale};
            expectation e = quantized(recipes[i], QG_FORMAT_FP32, data(), 0);
            for (int j = 0; j < 3; j++)
                if (j != which) // not an output: no values
                    *(j == 0 ? &q.codes : j == 1 ? &q.scale : &q.tensor_scale) = QG_NODE_NONE;
            if (nodes[which] != QG_NODE_NONE) {
                qg_graph_output(q.graph, nodes[which]);
                qg_graph_runner *r = run(&q, NULL, data());
                require_quantized(&q, r, &e, recipes[i]);
                qg_graph_runner_free(r);
            }
            qg_graph_free(q.graph);
        }
}
END_TEST

START_TEST(inputs_of_16_bits_are_quantized_as_what_they_are) {
    static uint16_t narrow[COUNT];
    static float wide[COUNT];
    for (int i = 0; i < RECIPES; i++)
        for (qg_dtype dtype = QG_DTYPE_FP16; dtype <= QG_DTYPE_BF16; dtype++) {
            bool is_bf16 = dtype == QG_DTYPE_BF16;
            for (int j = 0; j < COUNT; j++) {
                narrow[j] = is_bf16 ? qg_bf16_of_sum(data()[j]) : qg_fp16_of_sum(data()[j]);
                wide[j] = is_bf16 ? qg_float_of_bf16(narrow[j]) : qg_float_of_fp16(narrow[j]);
            }
            quantization q = build(recipes[i], dtype, SCALE_FIRST, 0);
            output_all(&q);
            expectation e =
                quantized(recipes[i], is_bf16 ? QG_FORMAT_BF16 : QG_FORMAT_FP16, wide, 0);
            qg_graph_runner *r = run(&q, NULL, narrow);
            require_quantized(&q, r, &e, recipes[i]);
            qg_graph_runner_free(r);
            qg_graph_free(q.graph);
        }
}
END_TEST

// ----------------------------------------------------------------------------------- shared scales

// What the second quantization of another seed, which shares the first's scales, must give.
static void expect_encoded(const char *recipe, const expectation *first, const float *x,
                           uint64_t seed, uint8_t *codes) {
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .seed = seed, .stream = QG_STREAM_ROUNDING, .threads = 1};
    if (first->recipe.rule == QG_RULE_AMAX_MUL) {
        expectation own = quantized(recipe, QG_FORMAT_FP32, x, seed);
        memcpy(codes, own.codes, sizeof own.codes);
        return;
    }
    require_ok(qg_emulator_encode(&first->recipe, &options, ROWS, K, x, first->scales,
                                  first->tensor_scale, codes));
}

// Quantizes data twice by one scale node, with seeds 5 and `seed`.
static void check_second(const char *recipe, const float *x, uint64_t seed) {
    static uint8_t codes[2 * COUNT];
    quantization q = build(recipe, QG_DTYPE_FP32, SCALE_FIRST, 5);
    const qg_node *inputs;
    qg_graph_node_inputs(q.graph, q.codes, &inputs);
    const qg_node copied[] = {inputs[0], q.scale, q.tensor_scale};
    qg_node second = quant_node(q.graph, QG_GRAPH_SCALED_QUANTIZE,
                                q.tensor_scale == QG_NODE_NONE ? 2 : 3, copied, recipe, seed);
    output_all(&q);
    qg_graph_output(q.graph, second);
    expectation e = quantized(recipe, QG_FORMAT_FP32, x, 5);
    expect_encoded(recipe, &e, x, seed, codes);
    qg_graph_runner *r = run(&q, NULL, x);
    require_quantized(&q, r, &e, recipe);
    require_bytes(r, second, codes, e.shape.codes_size, "second codes", recipe);
    qg_graph_runner_free(r);
    qg_graph_free(q.graph);
}

START_TEST(a_second_quantization_encodes_by_the_scales_of_the_first) {
    for (int i = 0; i < RECIPES; i++)
        check_second(recipes[i], data(), 9);
}
END_TEST

// Where rounding plays a part in the search, another seed finds other scales.
START_TEST(a_second_quantization_does_not_search_again) {
    static const char *const searching[] = {"nvfp4//four_over_six/stochastic:A:16",
                                            "rlx_mxfp4x2///stochastic:A:16"};
    for (int i = 0; i < 2; i++) {
        expectation first = quantized(searching[i], QG_FORMAT_FP32, data(), 5), other = first;
        uint64_t seed = 5;
        while (memcmp(first.scales, other.scales, sizeof first.scales) == 0 && seed < 1000)
            other = quantized(searching[i], QG_FORMAT_FP32, data(), ++seed);
        REQUIRE(seed < 1000, "no seed finds other scales");
        check_second(searching[i], data(), seed);
    }
}
END_TEST

// A quantization that no output needs does not choose the scales of one that an output needs.
START_TEST(keeping_dead_nodes_does_not_change_what_is_found) {
    const char *recipe = "rlx_mxfp4x2///stochastic:A:16";
    quantization q = build(recipe, QG_DTYPE_FP32, SCALE_FIRST, 3); // its codes are dead
    const qg_node inputs[] = {*inputs_of(q.graph, q.codes), q.scale};
    q.codes = quant_node(q.graph, QG_GRAPH_SCALED_QUANTIZE, 2, inputs, recipe, 8);
    output_all(&q);
    expectation first = quantized(recipe, QG_FORMAT_FP32, data(), 3);
    expectation e = quantized(recipe, QG_FORMAT_FP32, data(), 8);
    ck_assert_mem_ne(first.scales, e.scales, sizeof e.scales);
    for (int keep = 0; keep < 2; keep++) {
        qg_graph_runner *r = run(&q, &(qg_graph_run_options){.keep = keep}, data());
        require_quantized(&q, r, &e, recipe);
        qg_graph_runner_free(r);
    }
    qg_graph_free(q.graph);
}
END_TEST

// Ties of e4m3 under amax.
static void fill_ties(float amax, float *x) {
    for (int i = 0; i < COUNT; i++)
        x[i] = amax / 448 * (1 + (float)(2 * (i % 8) + 1) / 16) * (float)(1 << i / 8 % 6);
    x[0] = amax;
}

// x s and x / fl(1/s) round to different codes beside ties: the stored scale does not tell s.
START_TEST(amax_mul_multiplies_by_the_factor_that_no_scale_tells) {
    static float x[COUNT];
    static uint8_t codes[COUNT];
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
    bool differs = false;
    for (int i = 0; i < 100 && !differs; i++) {
        fill_ties(1 + (float)i / 64, x);
        expectation own = quantized("te_e4m3", QG_FORMAT_FP32, x, 0);
        require_ok(qg_emulator_encode(&own.recipe, &options, ROWS, K, x, own.scales, 1, codes));
        differs = memcmp(codes, own.codes, COUNT) != 0;
    }
    ck_assert(differs);
    check_second("te_e4m3", x, 9);
}
END_TEST

START_TEST(two_scales_may_share_a_tensor_scale) {
    quantization q = build("nvfp4", QG_DTYPE_FP32, TENSOR_SCALE_FIRST, 0);
    const qg_node *inputs;
    qg_graph_node_inputs(q.graph, q.codes, &inputs);
    qg_node x = inputs[0];
    qg_node scale = quant_node(q.graph, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, "nvfp4", 0);
    const qg_node more[] = {x, scale, q.tensor_scale};
    qg_node codes = quant_node(q.graph, QG_GRAPH_SCALED_QUANTIZE, 3, more, "nvfp4", 0);
    output_all(&q);
    qg_graph_output(q.graph, scale);
    qg_graph_output(q.graph, codes);
    expectation e = quantized("nvfp4", QG_FORMAT_FP32, data(), 0);
    qg_graph_runner *r = run(&q, NULL, data());
    require_quantized(&q, r, &e, "nvfp4");
    require_bytes(r, scale, e.scales, e.shape.scales_size, "second scales", "nvfp4");
    require_bytes(r, codes, e.codes, e.shape.codes_size, "second codes", "nvfp4");
    qg_graph_runner_free(r);
    qg_graph_free(q.graph);
}
END_TEST

// --------------------------------------------------------------------------------- foreign scales

// Scales of `other` (found with `other_recipe`) for the codes of x.
static void check_foreign(const char *recipe, const char *other_recipe) {
    static float other[COUNT];
    static uint8_t codes[2 * COUNT];
    fill_floats(22, COUNT, 40, other);
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 2, ROWS, K));
    qg_node y = qg_graph_input(graph, "y", qg_tensor(QG_DTYPE_FP32, 2, ROWS, K));
    qg_node scale = quant_node(graph, QG_GRAPH_SCALED_QUANT_SCALE, 1, &y, other_recipe, 0);
    qg_node node = qg_graph_output(graph, quant_node(graph, QG_GRAPH_SCALED_QUANTIZE, 2,
                                                     (const qg_node[]){x, scale}, recipe, 3));
    require_ok(qg_graph_status(graph));
    expectation e = quantized(other_recipe, QG_FORMAT_FP32, other, 0);
    expect_encoded(recipe, &e, data(), 3, codes);
    qg_graph_runner *r = new_runner(graph, NULL);
    const qg_graph_feed feeds[] = {
        {"x", data()},
        {"y", other }
    };
    require_ok(qg_graph_runner_run(r, 2, feeds));
    require_bytes(r, node, codes, COUNT, "codes", recipe);
    qg_graph_runner_free(r);
    qg_graph_free(graph);
}

START_TEST(scales_of_another_tensor_or_recipe_only_encode) {
    check_foreign("mxfp8", "mxfp8");
    check_foreign("e4m3", "e4m3");
    check_foreign("e4m3/per_row", "e4m3/per_row");
    check_foreign("mxfp4", "mxfp4");
    check_foreign("mxfp4//best/stochastic:A:16", "mxfp4//best/stochastic:A:16");
}
END_TEST

START_TEST(scales_of_another_recipe_for_the_same_tensor_only_encode) {
    static uint8_t codes[2 * COUNT];
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 2, ROWS, K));
    qg_node scale = quant_node(graph, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, "mxfp8", 0);
    const qg_node inputs[] = {x, scale};
    qg_node node = quant_node(graph, QG_GRAPH_SCALED_QUANTIZE, 2, inputs, "mxfp8//ceil", 0);
    qg_graph_output(graph, node);
    qg_graph_output(graph, scale);
    require_ok(qg_graph_status(graph));
    expectation e = quantized("mxfp8", QG_FORMAT_FP32, data(), 0);
    expectation other = quantized("mxfp8//ceil", QG_FORMAT_FP32, data(), 0);
    ck_assert_mem_ne(e.scales, other.scales, (size_t)e.shape.scales_size);
    expect_encoded("mxfp8//ceil", &e, data(), 0, codes);
    qg_graph_runner *r = new_runner(graph, NULL);
    require_ok(qg_graph_runner_run(r, 1, &(qg_graph_feed){"x", data()}));
    require_bytes(r, scale, e.scales, e.shape.scales_size, "scales", "mxfp8");
    require_bytes(r, node, codes, COUNT, "codes", "mxfp8//ceil");
    qg_graph_runner_free(r);
    qg_graph_free(graph);
}
END_TEST

START_TEST(a_scale_may_be_read_before_its_partners_are_reached) {
    qg_graph *graph = new_graph();
    qg_node x = qg_graph_input(graph, "x", qg_tensor(QG_DTYPE_FP32, 2, ROWS, K));
    qg_node tensor = quant_node(graph, QG_GRAPH_SCALED_TENSOR_SCALE, 1, &x, "nvfp4", 0);
    qg_node early = qg_graph_output(graph, qg_graph_add(graph, tensor, tensor));
    qg_node scale = quant_node(graph, QG_GRAPH_SCALED_QUANT_SCALE, 1, &x, "nvfp4", 0);
    const qg_node inputs[] = {x, scale, tensor};
    qg_node codes =
        qg_graph_output(graph, quant_node(graph, QG_GRAPH_SCALED_QUANTIZE, 3, inputs, "nvfp4", 0));
    expectation e = quantized("nvfp4", QG_FORMAT_FP32, data(), 0);
    float twice = 2 * e.tensor_scale;
    qg_graph_runner *r = new_runner(graph, NULL);
    require_ok(qg_graph_runner_run(r, 1, &(qg_graph_feed){"x", data()}));
    require_bytes(r, early, &twice, 4, "twice the tensor scale", "nvfp4");
    require_bytes(r, codes, e.codes, e.shape.codes_size, "codes", "nvfp4");
    qg_graph_runner_free(r);
    qg_graph_free(graph);
}
END_TEST

START_TEST(the_seed_of_the_run_moves_stochastic_rounding) {
    const char *recipe = "mxfp4//rceil/stochastic:A:16";
    quantization q = build(recipe, QG_DTYPE_FP32, SCALE_FIRST, 0);
    output_all(&q);
    for (uint64_t seed = 0; seed < 3; seed++) {
        expectation e = quantized(recipe, QG_FORMAT_FP32, data(), seed);
        expectation other = quantized(recipe, QG_FORMAT_FP32, data(), seed + 1);
        ck_assert_mem_ne(e.codes, other.codes, COUNT);
        qg_graph_runner *r = run(&q, &(qg_graph_run_options){.seed = seed}, data());
        require_quantized(&q, r, &e, recipe);
        qg_graph_runner_free(r);
    }
    qg_graph_free(q.graph);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {bytes_are_the_emulators_in_every_order,
                                  bytes_are_the_emulators_on_other_backends,
                                  each_output_alone_is_the_same,
                                  inputs_of_16_bits_are_quantized_as_what_they_are,
                                  a_second_quantization_encodes_by_the_scales_of_the_first,
                                  a_second_quantization_does_not_search_again,
                                  keeping_dead_nodes_does_not_change_what_is_found,
                                  amax_mul_multiplies_by_the_factor_that_no_scale_tells,
                                  two_scales_may_share_a_tensor_scale,
                                  scales_of_another_tensor_or_recipe_only_encode,
                                  scales_of_another_recipe_for_the_same_tensor_only_encode,
                                  a_scale_may_be_read_before_its_partners_are_reached,
                                  the_seed_of_the_run_moves_stochastic_rounding};
    return RUN_SUITE("graph_quantize_steps", tests);
}
