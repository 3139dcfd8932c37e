// Zero, NaN and Inf blocks of every recipe, as the recipe table of the definitions words them, and
// the probes of public bug threads (spec/formats-and-scales.md 5; numbers are its rows).
#include <qg_block_scale.h>
#include <qg_emulator.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <math.h>
#include <string.h>

enum { N = 256 };

static float x[N], q[N], tensor;
static uint8_t codes[2 * N], scales[8 * N];
static qg_counts counts;
static const qg_quantize_options fp32_input = {.input_type = QG_FORMAT_FP32, .threads = 1};

static void quantize_as(const qg_recipe *recipe, const qg_quantize_options *options, int64_t m,
                        int64_t k) {
    ck_assert_msg(qg_emulator_quantize(recipe, options, m, k, x, codes, scales, &tensor, &counts) ==
                      QG_OK,
                  "%s", qg_detail());
    ck_assert_int_eq(qg_emulator_dequantize(recipe, m, k, codes, scales, tensor, 1, q), QG_OK);
}

static void quantize(const char *name, int64_t m, int64_t k) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find(name, &recipe), QG_OK);
    quantize_as(&recipe, &fp32_input, m, k);
}

static void quantize_rule(const char *element, const char *rule, const char *layout, int64_t m,
                          int64_t k) {
    qg_recipe recipe;
    qg_layout parsed;
    int number;
    float fixed;
    ck_assert_int_eq(qg_recipe_find(element, &recipe), QG_OK);
    ck_assert_int_eq(qg_layout_parse(layout, &parsed), QG_OK);
    ck_assert_int_eq(qg_rule_parse(rule, &number, &fixed), QG_OK);
    ck_assert_int_eq(qg_recipe_set_layout(&recipe, parsed), QG_OK);
    ck_assert_int_eq(qg_recipe_set_rule(&recipe, number, fixed), QG_OK);
    quantize_as(&recipe, &fp32_input, m, k);
}

static uint32_t scale32(int64_t block) {
    return scales[4 * block] | (uint32_t)scales[4 * block + 1] << 8 |
           (uint32_t)scales[4 * block + 2] << 16 | (uint32_t)scales[4 * block + 3] << 24;
}

static float scale_float(int64_t block) { return qg_float_of_bits(scale32(block)); }

static void fill(float value, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

static void all_codes(int code, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        REQUIRE(codes[i] == code, "code %d is %02x, not %02x", (int)i, codes[i], code);
}

// One row of the table: scale bytes of a zero block, of one with NaN, of one with Inf.
static void check_bytes(const char *name, int64_t k, int zero, int nan, int inf, int nan_code) {
    fill(0, k);
    x[1] = -0.0f;
    quantize(name, 1, k);
    ck_assert_msg(scales[0] == zero, "%s: zero block %02x", name, scales[0]);
    ck_assert_int_eq((int)counts.zero_blocks, 1);
    for (int64_t i = 0; i < k; i++)
        REQUIRE(q[i] == 0, "%s: %a in a zero block", name, (double)q[i]);
    for (int64_t at = 0; at < k; at++) { // 22: NaN in each position
        fill(1, k);
        x[at] = at % 2 ? -NAN : NAN;
        quantize(name, 1, k);
        REQUIRE(scales[0] == nan, "%s: NaN block %02x", name, scales[0]);
        REQUIRE(codes[at] == nan_code, "%s: NaN code %02x", name, codes[at]);
        if (nan == 255) {
            all_codes(nan_code, k);
            ck_assert(isnan(q[0]) && isnan(q[k - 1]));
            ck_assert_int_eq((int)counts.nan_scales, 1);
        }
        fill(1, k);
        x[at] = at % 2 ? -INFINITY : INFINITY;
        quantize(name, 1, k);
        REQUIRE(scales[0] == inf, "%s: Inf block %02x", name, scales[0]);
    }
}

START_TEST(mx_recipes) {
    static const char *const ocp[] = {"mxfp8",
                                      "torchao_mxfp8_floor",
                                      "torchao_mxfp8_ceil",
                                      "torchao_mxfp8_even",
                                      "torchao_mxfp8_rceil",
                                      "neuron_mxfp8"};
    for (size_t i = 0; i < sizeof ocp / sizeof ocp[0]; i++)
        check_bytes(ocp[i], 32, 0, 255, 255, 0x7F);
    check_bytes("mxfp8_e5m2", 32, 0, 255, 255, 0x7F);
    check_bytes("mxfp6_e2m3", 32, 0, 255, 255, 0x1F);
    check_bytes("mxfp6_e3m2", 32, 0, 255, 255, 0x1F);
    check_bytes("mxfp4", 32, 0, 255, 255, 0x07);
    check_bytes("mxint8", 32, 0, 255, 255, 0x7F);
    check_bytes("mxint6", 32, 0, 255, 255, 0x1F);
    check_bytes("mxint4", 32, 0, 255, 255, 0x07);
    check_bytes("te_mxfp8", 32, 0, 255, 254, 0x7F);
    check_bytes("mx9", 16, 0, 255, 255, 0x7F);
    check_bytes("mx6", 16, 0, 255, 255, 0x0F);
    check_bytes("mx4", 16, 0, 255, 255, 0x03);
    check_bytes("msfp16", 16, 0, 255, 255, 0x7F);
    check_bytes("msfp12", 16, 0, 255, 255, 0x07);
}
END_TEST

START_TEST(an_infinite_block_of_te_mxfp8_keeps_byte_254) {
    fill(1, 32);
    x[3] = -INFINITY;
    quantize("te_mxfp8", 1, 32);
    ck_assert_int_eq(codes[3], 0xFE); // 448 * 2^127 is infinite in binary32
    ck_assert(isinf(q[3]) && q[3] < 0);
    ck_assert_int_eq(codes[0], 0);
}
END_TEST

START_TEST(vllm_eps_on_the_scale_or_on_amax) { // 14
    fill(0, 128);
    quantize("vllm_ue8m0", 1, 128);
    ck_assert_int_eq(scales[0], 127 - 33);
    quantize("vllm_ue8m0_triton", 1, 128);
    ck_assert_int_eq(scales[0], 127 - 42);
    static const char *const names[] = {"vllm_ue8m0", "vllm_ue8m0_triton"};
    for (int i = 0; i < 2; i++) {
        fill(448, 128);
        x[7] = NAN;
        quantize(names[i], 1, 128);
        ck_assert_int_eq(scales[0], 127);
        ck_assert_int_eq(codes[7], 0x7F);
        ck_assert_int_eq(codes[8], 0x7E);
        x[7] = INFINITY;
        quantize(names[i], 1, 128);
        ck_assert_int_eq(scales[0], 254);
        ck_assert_int_eq(codes[7], 0x7E);
    }
}
END_TEST

START_TEST(nvfp4_recipes) {
    static const char *const names[] = {"nvfp4", "nvfp4_4over6", "nvfp4_torchao", "nvint4"};
    for (int i = 0; i < 4; i++) {
        fill(0, 32); // 23: a zero block beside one of amax 1
        x[16] = 1;
        quantize(names[i], 1, 32);
        ck_assert_int_eq(scales[0], i == 2 ? 0x08 : 0x00);
        // amax 1 maps to F, or exactly to 4: then map-to-6 stays, being as good
        ck_assert_int_eq(codes[16], 7);
        all_codes(0, 16);
        fill(1, 32);
        x[3] = NAN;
        x[4] = -NAN;
        quantize(names[i], 1, 32);
        ck_assert_int_eq(codes[3], 7);
        ck_assert_int_eq(codes[4], 7);
        ck_assert_int_eq(codes[5], 7);
        ck_assert_int_eq(scales[0], scales[1]); // NaN left no trace
        fill(3, 32);
        x[3] = -INFINITY;
        quantize(names[i], 1, 32);
        ck_assert_float_eq(tensor, i == 2 ? 1.0f : i == 1 ? 1536.0f : i == 3 ? 3136.0f : 2688.0f);
        ck_assert_int_eq(scales[0], 0x7E);
        ck_assert_int_eq(codes[3], i == 3 ? 9 : 0xF);
        ck_assert_int_eq(codes[0], 0);
        ck_assert_int_eq(codes[16], 7);
    }
}
END_TEST

START_TEST(rlx_recipes) {
    fill(0, 32);
    quantize("rlx_e4m3", 1, 32);
    ck_assert_int_eq(scale32(0), 0x3f800000);
    quantize("rlx_mxfp8", 1, 32);
    ck_assert_int_eq(scales[0], 127);
    quantize("rlx_nvfp4", 1, 16);
    ck_assert_int_eq(scales[0], 0x38);
    quantize("rlx_mxfp4x2", 1, 32);
    ck_assert_int_eq(scale32(0), 0x3f800000);
    ck_assert_int_eq(scale32(1), 0x3f800000);
    fill(448, 32);
    x[2] = -NAN;
    x[5] = -INFINITY;
    quantize("rlx_e4m3", 1, 32);
    ck_assert_float_eq(scale_float(0), 1);
    ck_assert_int_eq(codes[2], 0);
    ck_assert_int_eq(codes[5], 0xFE);
    quantize("rlx_mxfp8", 1, 32);
    ck_assert_int_eq(scales[0], 254);
    ck_assert_int_eq(codes[2], 0);
    ck_assert_int_eq(codes[5], 0xFE);
    quantize("rlx_nvfp4", 1, 16);
    ck_assert_int_eq(scales[0], 0x69); // e4m3(448 / 6 = 74.67) = 72
    ck_assert_int_eq(codes[2], 0);
    ck_assert_int_eq(codes[5], 0xF);
    quantize("rlx_mxfp4x2", 1, 32);
    ck_assert_int_eq(codes[2], 0);
    ck_assert_int_eq(codes[32 + 2], 0);
    ck_assert_int_eq(codes[5], 0xF);
    ck_assert_int_eq(codes[32 + 5], 0xF);
    // amax_ue4m3 with X = 0: signs stay, Inf still goes to +-F.
    fill(1e-5f, 16);
    x[1] = -1e-5f;
    x[2] = NAN;
    x[3] = -INFINITY;
    quantize("rlx_nvfp4", 1, 16);
    ck_assert_int_eq(scales[0], 0);
    ck_assert_int_eq(codes[0], 0);
    ck_assert_int_eq(codes[1], 8);
    ck_assert_int_eq(codes[2], 0);
    ck_assert_int_eq(codes[3], 0xF);
}
END_TEST

START_TEST(metrale_act128) {
    fill(0, 128);
    quantize("metrale_act128", 1, 128);
    ck_assert_float_eq(scale_float(0), 1e-12f);
    x[3] = -NAN;
    x[4] = 448;
    quantize("metrale_act128", 1, 128);
    ck_assert_float_eq(scale_float(0), 1);
    ck_assert_int_eq(codes[3], 0x7E);
    x[5] = -INFINITY;
    x[6] = -3;
    quantize("metrale_act128", 1, 128);
    ck_assert(isinf(scale_float(0)));
    ck_assert_int_eq(codes[5], 0x7E);
    ck_assert_int_eq(codes[4], 0);
    ck_assert_int_eq(codes[6], 0x80);
}
END_TEST

START_TEST(deepseek) {
    static const char *const names[] = {"deepseek_act128", "deepseek_w128x128"};
    for (int i = 0; i < 2; i++) {
        fill(0, 128);
        quantize(names[i], 1, 128);
        ck_assert_float_eq(scale_float(0), 1e-10f / 448.0f);
        fill(448, 128);
        x[9] = NAN;
        quantize(names[i], 1, 128);
        ck_assert(isnan(scale_float(0)));
        all_codes(0x7F, 128);
        x[9] = -INFINITY;
        quantize(names[i], 1, 128);
        ck_assert(isinf(scale_float(0)));
        ck_assert_int_eq(codes[9], 0x7F);
        ck_assert_int_eq(codes[8], 0);
    }
}
END_TEST

START_TEST(transformer_engine_gives_one_on_every_edge) {
    static const char *const names[] = {"te_e4m3", "te_e5m2", "te_e4m3_pow2", "te_e5m2_pow2"};
    static const float edges[] = {0, NAN, INFINITY};
    for (int i = 0; i < 4; i++)
        for (int e = 0; e < 3; e++) {
            fill(edges[e] == 0 ? 0.0f : 1.0f, 32);
            x[3] = edges[e];
            quantize(names[i], 1, 32);
            ck_assert_int_eq(scale32(0), 0x3f800000);
            ck_assert_int_eq(codes[0], e == 0 ? 0 : i % 2 ? 0x3C : 0x38);
            ck_assert_int_eq(codes[3], e == 0 ? 0 : e == 1 ? 0x7F : i % 2 ? 0x7B : 0x7E);
        }
}
END_TEST

// An infinite F/amax becomes the largest value of the input's type.
START_TEST(huge_inverses) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static const float largest[] = {0x1.fffffep127f, 0x1.fep127f, 65504.0f};
    static const float pow2[] = {0x1p-127f, 0x1p-127f, 0x1p-15f};
    qg_recipe recipe;
    fill(0x1p-140f, 32);
    for (int i = 0; i < 3; i++) {
        qg_quantize_options options = {.input_type = types[i], .threads = 1};
        ck_assert_int_eq(qg_recipe_find("te_e4m3", &recipe), QG_OK);
        quantize_as(&recipe, &options, 1, 32);
        ck_assert_float_eq(scale_float(0), 1 / largest[i]);
        ck_assert_int_eq(qg_recipe_find("te_e4m3_pow2", &recipe), QG_OK);
        quantize_as(&recipe, &options, 1, 32);
        ck_assert_float_eq(scale_float(0), pow2[i]);
        recipe.huge_inverse = QG_HUGE_INVERSE_FLT_MAX;
        quantize_as(&recipe, &options, 1, 32);
        ck_assert_float_eq(scale_float(0), 0x1p-127f);
    }
}
END_TEST

// 58, 59: the history as given, smaller second steps and zeros included; X = 1/s.
START_TEST(delayed_scaling) {
    static const struct {
        float history[3], scale;
    } rows[] = {
        {{1, 2, 0.5f},      2.0f / 448},
        {{0, 7, 0},         7.0f / 448},
        {{0, 0, 0},         1         },
        {{1, INFINITY, 2},  1         },
        {{1, NAN, 2},       1         },
        {{0x1p-140f, 0, 0}, 0         }
    };
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("te_delayed_e4m3", &recipe), QG_OK);
    fill(3, 32);
    x[0] = 1e6f; // the data does not matter to the scale
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qg_quantize_options options = {.input_type = QG_FORMAT_FP32,
                                       .threads = 1,
                                       .amax_history = rows[i].history,
                                       .history_length = 3};
        quantize_as(&recipe, &options, 1, 32);
        float a = rows[i].history[0] > rows[i].history[1] ? rows[i].history[0] : rows[i].history[1];
        float want = rows[i].scale == 1   ? 1.0f
                     : rows[i].scale == 0 ? 1 / 0x1.fffffep127f
                                          : 1 / (448 / a);
        ck_assert_float_eq(scale_float(0), want);
        ck_assert_int_eq(codes[0], 0x7E);
    }
    recipe.margin = 3;
    static const float one[] = {56};
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .threads = 1, .amax_history = one, .history_length = 1};
    quantize_as(&recipe, &options, 1, 32);
    ck_assert_float_eq(scale_float(0), 1);
    options.history_length = 0;
    ck_assert_int_eq(qg_emulator_quantize(&recipe, &options, 1, 32, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
}
END_TEST

START_TEST(generic_binary32_policies) {
    static const char *const rules[] = {"amax", "amax_rcp", "amax_mul", "amax_pow2"};
    for (int i = 0; i < 4; i++) {
        fill(0, 32);
        quantize_rule("e4m3", rules[i], "group:32", 1, 32);
        ck_assert_float_eq(scale_float(0), 1);
        fill(448, 32);
        x[3] = -NAN;
        x[4] = -INFINITY;
        quantize_rule("e4m3", rules[i], "group:32", 1, 32);
        ck_assert_float_eq(scale_float(0), 1);
        ck_assert_int_eq(codes[3], 0x7F);
        ck_assert_int_eq(codes[4], 0xFE);
        ck_assert_int_eq(codes[5], 0x7E);
    }
    fill(0x1p-149f, 32); // 20: one unit in the last place of binary32
    quantize_rule("e4m3", "amax", "group:32", 1, 32);
    ck_assert_int_eq(scale32(0), 1);
    ck_assert_float_eq(q[0], 0x1p-149f);
    quantize_rule("e4m3", "amax_mul", "group:32", 1, 32);
    ck_assert_float_eq(scale_float(0), 1 / 0x1.fffffep127f);
    fill(1, 32);
    quantize_rule("e4m3", "fixed:0.25", "group:32", 1, 32);
    ck_assert_float_eq(scale_float(0), 0.25f);
    ck_assert_float_eq(q[0], 1);
    fill(0, 32); // X is given: no edge changes it
    quantize_rule("e4m3", "fixed:0.25", "group:32", 1, 32);
    ck_assert_float_eq(scale_float(0), 0.25f);
}
END_TEST

START_TEST(generic_e8m0_and_ue4m3_policies) {
    fill(1, 32);
    x[3] = NAN;
    quantize_rule("e2m1", "rceil", "per_tensor", 1, 32);
    ck_assert_int_eq(scales[0], 255);
    all_codes(7, 32);
    x[3] = INFINITY;
    quantize_rule("e5m2", "best", "per_row", 1, 32);
    ck_assert_int_eq(scales[0], 255);
    fill(0, 32);
    quantize_rule("e5m2", "best", "per_row", 1, 32);
    ck_assert_int_eq(scales[0], 0);
    quantize_rule("e4m3", "amax_ue4m3", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 0);
    x[3] = NAN;
    x[4] = -INFINITY;
    quantize_rule("e4m3", "amax_ue4m3", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 0x7E);
    ck_assert_int_eq(codes[3], 0x7E);
    ck_assert_int_eq(codes[4], 0xFE);
}
END_TEST

// Fields that no preset sets to these values.
START_TEST(hand_made_edges) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("mxfp8", &recipe), QG_OK);
    recipe.zero_scale = QG_EDGE_LARGEST;
    recipe.inf_scale = QG_EDGE_ONE;
    fill(0, 32);
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 254);
    x[2] = INFINITY;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 127);
    recipe.zero_scale = recipe.inf_scale = recipe.nan_scale = QG_EDGE_BY_RULE;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 254);
    x[2] = 0;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 0);
    x[2] = NAN;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 255);
    recipe.conversion.nan = QG_NAN_TO_ZERO;
    recipe.element = QG_FORMAT_E2M1;
    quantize_as(&recipe, &fp32_input, 1, 32);
    all_codes(8, 32); // -0, as ml_dtypes
    recipe.rule = QG_RULE_BEST;
    recipe.amax = QG_AMAX_IGNORES_NAN;
    recipe.eps_on = QG_EPS_ON_AMAX;
    recipe.eps = 6;
    x[3] = 0.5f;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 127);
    recipe.eps_on = QG_EPS_ON_SCALE;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(scales[0], 127 + 3);
}
END_TEST

// Every code of a block with a NaN scale is NaN's, whatever the policy for NaN elements.
START_TEST(nan_scale_outranks_the_element_policy) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("mxfp8", &recipe), QG_OK);
    fill(1, 32);
    x[3] = NAN;
    recipe.nan_element = QG_NAN_ELEMENT_ZERO;
    quantize_as(&recipe, &fp32_input, 1, 32);
    all_codes(0x7F, 32);
    recipe.nan_scale = QG_EDGE_ONE;
    quantize_as(&recipe, &fp32_input, 1, 32);
    ck_assert_int_eq(codes[3], 0);
    ck_assert_int_eq(codes[4], 0x38);
}
END_TEST

START_TEST(least_block_scale) {
    qg_recipe recipe;
    static const int rules[] = {QG_RULE_TWO_LEVEL, QG_RULE_FOUR_OVER_SIX, QG_RULE_AMAX_UE4M3};
    fill(0, 32);
    x[0] = 1e-9f;
    x[16] = 2688;
    for (int i = 0; i < 3; i++) { // nvfp4_torchao's bound stays with another ue4m3 rule
        ck_assert_int_eq(qg_recipe_find("nvfp4_torchao", &recipe), QG_OK);
        ck_assert_int_eq(qg_recipe_set_rule(&recipe, rules[i], 0), QG_OK);
        quantize_as(&recipe, &fp32_input, 1, 32);
        ck_assert_int_eq(scales[0], 0x08);
        ck_assert_int_eq(qg_recipe_find("rlx_nvfp4", &recipe), QG_OK);
        recipe.eps_on = QG_EPS_ON_SCALE;
        recipe.eps = 0.5f;
        ck_assert_int_eq(qg_recipe_set_rule(&recipe, rules[i], 0), QG_OK);
        quantize_as(&recipe, &fp32_input, 1, 32);
        ck_assert_int_eq(scales[0], 0x30);
    }
}
END_TEST

// -------------------------------------------------------------------------------- bug threads

START_TEST(scale_probes) {
    fill(0, 32);
    x[0] = 600; // 1
    quantize("torchao_mxfp8_rceil", 1, 32);
    ck_assert_int_eq(scales[0], 128);
    ck_assert_int_eq(codes[0], 0x79);
    ck_assert_float_eq(q[0], 576);
    quantize_rule("e4m3", "nearest", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 127);
    ck_assert_int_eq(codes[0], 0x7E);
    x[0] = 7.6f; // 2
    quantize_rule("e2m3", "rceil", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 128);
    x[0] = qg_float_of_bits(0x3FFFFFFFu); // 13
    quantize_rule("e4m3", "floor", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 127 - 8);
    x[0] = qg_float_of_bits(0x3F800001u);
    quantize_rule("e4m3", "ceil", "group:32", 1, 32);
    ck_assert_int_eq(scales[0], 128 - 8);
}
END_TEST

START_TEST(byte_0_is_a_power_of_two_and_255_is_nan) { // 8, 10, 11
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("mxfp8", &recipe), QG_OK);
    memset(codes, 0x38, 32);
    scales[0] = 0;
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, 1, 32, codes, scales, 0, 1, q), QG_OK);
    for (int i = 0; i < 32; i++)
        ck_assert_float_eq(q[i], 0x1p-127f);
    scales[0] = 254;
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, 1, 32, codes, scales, 0, 1, q), QG_OK);
    ck_assert_float_eq(q[0], 0x1p127f);
    scales[0] = 255;
    memset(codes, 0, 32);
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, 1, 32, codes, scales, 0, 1, q), QG_OK);
    ck_assert_int_eq(qg_bits_of_float(q[31]), 0x7fffffff);
}
END_TEST

START_TEST(a_zero_row_beside_another) { // 19, 25
    static const char *const names[] = {"rlx_e4m3", "mxfp8", "te_mxfp8", "rlx_mxfp8"};
    for (int i = 0; i < 4; i++) {
        fill(0, 64);
        x[3] = 5;
        quantize(names[i], 2, 32);
        for (int j = 0; j < 64; j++)
            ck_assert(j == 3 ? q[j] > 4 && q[j] < 6 : q[j] == 0);
    }
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("e4m3", &recipe), QG_OK);
    recipe.layout.kind = QG_LAYOUT_PER_ROW;
    quantize_as(&recipe, &fp32_input, 2, 32);
    ck_assert_float_eq(scale_float(1), 1);
}
END_TEST

START_TEST(tiny_blocks) { // 20
    static const char *const names[] = {"mxfp8", "e4m3", "deepseek_act128", "nvfp4",
                                        "te_e4m3_pow2"};
    static const float values[] = {0x1p-120f, 0x1p-149f, 1e-36f};
    for (int i = 0; i < 5; i++)
        for (int v = 0; v < 3; v++) {
            fill(values[v], 32);
            quantize(names[i], 1, 32);
            for (int j = 0; j < 32; j++)
                REQUIRE(isfinite(q[j]) && q[j] >= 0 && q[j] <= 2 * values[v], "%s: %a of %a",
                        names[i], (double)q[j], (double)values[v]);
        }
}
END_TEST

START_TEST(division_and_reciprocal_differ_on_ties) { // 41
    fill(0, 16);
    x[0] = 0x1.fp+0f;
    x[1] = 0x1.74p-9f;
    quantize_rule("e4m3", "amax", "group:16", 1, 16);
    int by_division = codes[1];
    quantize_rule("e4m3", "amax_mul", "group:16", 1, 16);
    ck_assert_int_ne(by_division, codes[1]);
}
END_TEST

START_TEST(the_trailing_block_counts) { // 46, 47
    fill(1, 192);
    for (int i = 128; i < 192; i++)
        x[i] = 1024;
    quantize("deepseek_act128", 1, 192);
    ck_assert_float_eq(scale_float(0), 1.0f / 448);
    ck_assert_float_eq(scale_float(1), 1024.0f / 448);
    ck_assert_float_eq(q[191], 1024);
}
END_TEST

START_TEST(shapes_are_checked) {
    qg_recipe recipe;
    qg_shape shape;
    ck_assert_int_eq(qg_recipe_find("rlx_mxfp4x2", &recipe), QG_OK);
    ck_assert_int_eq(qg_shape_of(&recipe, 3, 33, &shape), QG_OK);
    ck_assert_int_eq(shape.planes, 2);
    ck_assert_int_eq(shape.codes_size, 2 * 99);
    ck_assert_int_eq(shape.scale_bytes, 8);
    ck_assert_int_eq(shape.scales_size, 3 * 2 * 8);
    ck_assert_int_eq(qg_shape_of(&recipe, 0, 33, &shape), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_shape_of(&recipe, 1ll << 31, 1ll << 31, &shape), QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_recipe_find("fp32", &recipe), QG_OK);
    ck_assert_int_eq(qg_shape_of(&recipe, 1ll << 31, 1ll << 30, &shape), QG_ERROR_OVERFLOW);
    ck_assert_int_eq(qg_shape_of(&recipe, 1ll << 30, 1ll << 30, &shape), QG_OK);
    ck_assert_int_eq(shape.codes_size, 1ll << 62);
    ck_assert_int_eq(qg_recipe_find("mx9", &recipe), QG_OK);
    ck_assert_int_eq(qg_shape_of(&recipe, 2, 17, &shape), QG_OK);
    ck_assert_int_eq(shape.scales_size, 2 * 2 * 2);
    ck_assert_int_eq(qg_recipe_find("nvfp4", &recipe), QG_OK);
    ck_assert_int_eq(qg_emulator_quantize(&recipe, &fp32_input, 1, 1, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
    qg_quantize_options options = fp32_input;
    options.input_type = QG_FORMAT_E4M3;
    ck_assert_int_eq(qg_emulator_quantize(&recipe, &options, 1, 1, x, codes, scales, &tensor, NULL),
                     QG_ERROR_ARGUMENT);
}
END_TEST

START_TEST(wide_codes_are_little_endian) {
    fill(0, 2);
    x[0] = 1;
    x[1] = -0x1.02p-1f;
    quantize_rule("bf16", "fixed:1", "per_tensor", 1, 2);
    static const uint8_t want[] = {0x80, 0x3f, 0x01, 0xbf};
    ck_assert_mem_eq(codes, want, 4);
}
END_TEST

START_TEST(pair_shifts) {
    // Pairs: (4, 1) no shift; (1.5, -1) shift, finer by one; zero pair shift; odd last alone.
    fill(0, 16);
    x[0] = 4, x[1] = 1, x[2] = 1.5f, x[3] = -1;
    x[6] = 3.9f;
    quantize("mx4", 1, 7);
    ck_assert_int_eq(scales[0], 127 + 2);
    ck_assert_int_eq(scales[1], 0xE); // pairs 1, 2 (zero) and 3 (3.9: exponent 1)
    ck_assert_float_eq(q[0], 4);
    ck_assert_float_eq(q[2], 2); // step 1: mag * 2^(2 - 1 - 2 + 1), 1.5 is a tie
    ck_assert_float_eq(q[3], -1);
    ck_assert_float_eq(q[6], 3);
    quantize("msfp12", 1, 7);
    ck_assert_int_eq(scales[1], 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {mx_recipes,
                            an_infinite_block_of_te_mxfp8_keeps_byte_254,
                            vllm_eps_on_the_scale_or_on_amax,
                            nvfp4_recipes,
                            rlx_recipes,
                            metrale_act128,
                            deepseek,
                            transformer_engine_gives_one_on_every_edge,
                            huge_inverses,
                            delayed_scaling,
                            generic_binary32_policies,
                            generic_e8m0_and_ue4m3_policies,
                            hand_made_edges,
                            nan_scale_outranks_the_element_policy,
                            least_block_scale,
                            scale_probes,
                            byte_0_is_a_power_of_two_and_255_is_nan,
                            a_zero_row_beside_another,
                            tiny_blocks,
                            division_and_reciprocal_differ_on_ties,
                            the_trailing_block_counts,
                            shapes_are_checked,
                            wide_codes_are_little_endian,
                            pair_shifts};
    return RUN_SUITE("edges", tests);
}
