// Codes under given scales (qg_emulator_encode): a tensor's own scales give the codes that quantize
// gives, the scales of a larger tensor give that tensor's codes, and scales of nobody give what the
// slow model of the formats says of x / X. Rules amax_mul and delayed: see qg_emulator.h.
#include <block_data.h>
#include <digest_cases.h>
#include <qg_bits.h>
#include <qg_emulator.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>
#include <slow_model.h>

#include <math.h>
#include <string.h>

enum { M = 33, K = 301, N = M * K, GUARD = 0xA5 };

static float x[N], q[N];
static uint8_t codes[4 * N + 1], scales[8 * N], given_codes[4 * N + 1];

static const float history[] = {3.0f};

static qg_quantize_options options_of(uint64_t seed, int threads) {
    return (qg_quantize_options){.input_type = QG_FORMAT_FP32,
                                 .seed = seed,
                                 .stream = QG_STREAM_ROUNDING,
                                 .threads = threads,
                                 .amax_history = history,
                                 .history_length = 1};
}

static qg_recipe parse(const char *text) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_parse(text, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

// Quantizes x; returns its tensor scale.
static float quantize(const qg_recipe *recipe, const qg_quantize_options *options, int64_t m,
                      int64_t k) {
    float tensor = 0;
    ck_assert_msg(qg_emulator_quantize(recipe, options, m, k, x, codes, scales, &tensor, NULL) ==
                      QG_OK,
                  "%s", qg_detail());
    return tensor;
}

static void encode(const qg_recipe *recipe, const qg_quantize_options *options, int64_t m,
                   int64_t k, float tensor) {
    memset(given_codes, GUARD, sizeof given_codes);
    ck_assert_msg(qg_emulator_encode(recipe, options, m, k, x, scales, tensor, given_codes) ==
                      QG_OK,
                  "%s", qg_detail());
}

static bool has_own_factor(const qg_recipe *recipe) {
    return recipe->rule == QG_RULE_AMAX_MUL || recipe->rule == QG_RULE_DELAYED;
}

// ---------------------------------------------------------------------------------- its own scales

static const int64_t shapes[][2] = {
    {1,  1  },
    {3,  33 },
    {17, 77 },
    {2,  130},
};

static void check_own_scales(const char *name, const qg_recipe *recipe) {
    if (has_own_factor(recipe))
        return;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            int64_t m = shapes[i][0], k = shapes[i][1];
            qg_quantize_options options = options_of(i + 7, 1 + kind % 3);
            qg_shape shape;
            block_data_fill(i, kind, x, m * k);
            ck_assert_int_eq(qg_shape_of(recipe, m, k, &shape), QG_OK);
            encode(recipe, &options, m, k, quantize(recipe, &options, m, k));
            for (int64_t j = 0; j < shape.codes_size; j++)
                REQUIRE(codes[j] == given_codes[j], "%s kind %d %lldx%lld: byte %lld of %a", name,
                        kind, (long long)m, (long long)k, (long long)j,
                        (double)x[j / shape.code_bytes % (m * k)]);
            REQUIRE(given_codes[shape.codes_size] == GUARD, "%s: a byte past the codes", name);
        }
}

START_TEST(own_scales_give_the_codes_of_quantize) { digest_cases_visit(check_own_scales); }
END_TEST

START_TEST(in_every_rounding) {
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int mode = 0; mode < QG_ROUND_COUNT; mode++) {
            qg_recipe recipe = parse(qg_recipe_listed(i));
            recipe.conversion.rounding = (qg_rounding){(uint8_t)mode, 0};
            if (qg_rounding_is_stochastic(recipe.conversion.rounding))
                recipe.conversion.rounding.bits = 9;
            check_own_scales(qg_recipe_listed(i), &recipe);
        }
}
END_TEST

// Codes of more than one byte.
START_TEST(of_wide_elements_too) {
    static const char *const texts[] = {"fp16", "bf16/group:16/amax_rcp", "tf32/per_row"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        qg_recipe recipe = parse(texts[i]);
        check_own_scales(texts[i], &recipe);
    }
}
END_TEST

START_TEST(bytes_do_not_depend_on_threads) {
    block_data_fill(3, BLOCK_DATA_MIXED, x, N);
    static const char *const texts[] = {"mxfp8///stochastic:A:16", "rlx_mxfp4x2", "mx6", "e4m3",
                                        "deepseek_w128x128"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        qg_recipe recipe = parse(texts[i]);
        qg_shape shape;
        ck_assert_int_eq(qg_shape_of(&recipe, M, K, &shape), QG_OK);
        qg_quantize_options one = options_of(5, 1);
        float tensor = quantize(&recipe, &one, M, K);
        for (int threads = 0; threads <= 4; threads++) {
            qg_quantize_options options = options_of(5, threads);
            encode(&recipe, &options, M, K, tensor);
            REQUIRE(memcmp(codes, given_codes, (size_t)shape.codes_size) == 0, "%s on %d threads",
                    texts[i], threads);
        }
    }
}
END_TEST

// ---------------------------------------------------------------------------------- others' scales

// The first rows of a tensor, under the scales and the tensor scale of all of it.
static void check_part(const char *name, const qg_recipe *recipe) {
    enum { ROWS = 16 };
    if (has_own_factor(recipe) || recipe->layout.rows > ROWS)
        return;
    qg_quantize_options options = options_of(19, 1);
    qg_shape all;
    block_data_fill(23, BLOCK_DATA_MIXED, x, N);
    ck_assert_int_eq(qg_shape_of(recipe, M, K, &all), QG_OK);
    encode(recipe, &options, ROWS, K, quantize(recipe, &options, M, K));
    for (int plane = 0; plane < all.planes; plane++)
        for (int64_t j = 0; j < ROWS * K; j++)
            REQUIRE(codes[plane * N + j] == given_codes[plane * ROWS * K + j],
                    "%s: code %lld of plane %d", name, (long long)j, plane);
}

START_TEST(scales_of_a_larger_tensor_give_its_codes) { digest_cases_visit(check_part); }
END_TEST

static float dequantized(double value, float scale) {
    float r = (float)(value * (double)scale);
    return r == r ? r : qg_float_of_bits(0x7fffffffu);
}

// v as quantization by X has it: exact where X is a power of two, else one rounding.
static double scaled(float value, float scale) {
    int exponent;
    if (scale == 0.0f)
        return isfinite(value) ? (double)value * 0.0 : (double)value;
    if (isfinite(scale) && scale > 0 && frexpf(scale, &exponent) == 0.5f)
        return (double)value / (double)scale;
    return (double)(value / scale);
}

// decode(encode(x / X)) X, bit for bit, rows under one X each.
static void check_rows(const char *format, const char *recipe_text, int64_t m, const float *given,
                       int nan_code) {
    slow_conversion nearest = {.mode = SLOW_RNE, .saturates = 1};
    slow_format *slow = slow_format_create(format);
    qg_recipe recipe = parse(recipe_text);
    qg_quantize_options options = options_of(0, 1);
    block_data_fill(31, BLOCK_DATA_MIXED, x, m * K);
    encode(&recipe, &options, m, K, 1.0f);
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, m, K, given_codes, scales, 1.0f, 1, q), QG_OK);
    for (int64_t i = 0; i < m * K; i++) {
        float scale = given[i / K];
        double v = scaled(x[i], scale);
        uint64_t code =
            v == v && !isnan(scale) ? slow_encode(slow, v, &nearest, 0) : (uint64_t)nan_code;
        REQUIRE(code == given_codes[i], "%s: %a / %a is %02x, not %02x", recipe_text, (double)x[i],
                (double)scale, given_codes[i], (unsigned)code);
        float wanted = dequantized(slow_decode(slow, code), scale);
        REQUIRE(memcmp(&wanted, &q[i], sizeof wanted) == 0, "%s: %a, not %a", recipe_text,
                (double)q[i], (double)wanted);
    }
    slow_format_free(slow);
}

START_TEST(scales_of_nobody_in_binary32) {
    const float given[] = {1.0f,  0.5f,      3.0f, 0x1.8p-140f, 0x1p-149f, 0.0f,      -0.0f,
                           -2.0f, 0x1p+127f, 0.1f, NAN,         INFINITY,  -INFINITY, 1e38f};
    enum { ROWS = sizeof given / sizeof given[0] };
    memcpy(scales, given, sizeof given);
    check_rows("e4m3", "e4m3/per_row", ROWS, given, 0x7F);
    check_rows("e5m2", "e5m2/per_row", ROWS, given, 0x7F);
}
END_TEST

START_TEST(scales_of_nobody_in_e8m0) {
    float given[M];
    static const uint8_t bytes[] = {0, 1, 2, 63, 126, 127, 128, 200, 253, 254, 255};
    enum { ROWS = sizeof bytes };
    for (int i = 0; i < ROWS; i++)
        given[i] = bytes[i] == 255 ? NAN : ldexpf(1.0f, bytes[i] - 127);
    memcpy(scales, bytes, sizeof bytes);
    check_rows("e4m3", "mxfp8/group:301", ROWS, given, 0x7F);
    check_rows("e2m1", "mxfp4/group:301", ROWS, given, 0x07);
}
END_TEST

// Every code of a block with a NaN scale is the NaN code, as in quantize, whatever the recipe says
// of a NaN element elsewhere.
START_TEST(a_nan_scale_gives_nan_codes) {
    block_data_fill(1, BLOCK_DATA_ORDINARY, x, 32);
    x[4] = NAN;
    qg_quantize_options options = options_of(0, 1);
    qg_recipe recipe = parse("rlx_mxfp8"); // elsewhere a NaN is 0
    scales[0] = 127;
    encode(&recipe, &options, 1, 32, 1.0f);
    ck_assert_int_eq(given_codes[4], 0);
    scales[0] = 255;
    encode(&recipe, &options, 1, 32, 1.0f);
    for (int i = 0; i < 32; i++)
        ck_assert_int_eq(given_codes[i], 0x7F);
    recipe = parse("mx9");
    scales[0] = 255, scales[1] = 0x5A;
    encode(&recipe, &options, 1, 16, 1.0f);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(given_codes[i], 0x7F);
}
END_TEST

// A pair's shift halves its step: bit i of the second byte is pair i's.
START_TEST(pair_shifts_are_those_given) {
    qg_recipe recipe = parse("mx9");
    qg_quantize_options options = options_of(0, 1);
    for (int i = 0; i < 16; i++)
        x[i] = 1.0f;
    scales[0] = 130, scales[1] = 0x05; // 2^3; pairs 0 and 2 shifted
    encode(&recipe, &options, 1, 16, 1.0f);
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, 1, 16, given_codes, scales, 1, 1, q), QG_OK);
    for (int i = 0; i < 16; i++) {
        ck_assert_int_eq(given_codes[i], i < 2 || i / 2 == 2 ? 16 : 8);
        ck_assert(q[i] == 1.0f);
    }
}
END_TEST

// s = fl(F / amax) is not what fl(1 / s) inverts to: under rule amax_mul the codes are those of
// amax_rcp with the same scales, which are another tensor's.
START_TEST(amax_mul_multiplies_by_the_inverse_of_what_is_stored) {
    qg_recipe mul = parse("te_e4m3"), rcp = mul;
    rcp.rule = QG_RULE_AMAX_RCP;
    qg_quantize_options options = options_of(0, 1);
    for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
        block_data_fill(2, kind, x, N);
        quantize(&mul, &options, M, K);
        encode(&rcp, &options, M, K, 1.0f);
        memcpy(codes, given_codes, N);
        encode(&mul, &options, M, K, 1.0f);
        ck_assert_int_eq(memcmp(codes, given_codes, N), 0);
    }
}
END_TEST

START_TEST(fixed_reads_the_given_scale) {
    qg_recipe recipe = parse("e4m3//fixed:0x1p-3");
    qg_quantize_options options = options_of(0, 1);
    float two = 2.0f;
    memcpy(scales, &two, sizeof two);
    x[0] = 4.0f;
    encode(&recipe, &options, 1, 1, 1.0f);
    ck_assert_int_eq(given_codes[0], 0x40); // 2
}
END_TEST

START_TEST(impossible_arguments_are_errors) {
    qg_recipe recipe = parse("e4m3");
    qg_quantize_options options = options_of(0, 1);
    given_codes[0] = GUARD;
    ck_assert_int_eq(qg_emulator_encode(&recipe, &options, 0, 3, x, scales, 1, given_codes),
                     QG_ERROR_ARGUMENT);
    options.input_type = QG_FORMAT_E4M3;
    ck_assert_int_eq(qg_emulator_encode(&recipe, &options, 1, 3, x, scales, 1, given_codes),
                     QG_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "input type"));
    ck_assert_int_eq(given_codes[0], GUARD);
}
END_TEST

int main(void) {
    const TTest *tests[] = {own_scales_give_the_codes_of_quantize,
                            in_every_rounding,
                            of_wide_elements_too,
                            bytes_do_not_depend_on_threads,
                            scales_of_a_larger_tensor_give_its_codes,
                            scales_of_nobody_in_binary32,
                            scales_of_nobody_in_e8m0,
                            a_nan_scale_gives_nan_codes,
                            pair_shifts_are_those_given,
                            amax_mul_multiplies_by_the_inverse_of_what_is_stored,
                            fixed_reads_the_given_scale,
                            impossible_arguments_are_errors};
    return RUN_SUITE("encode_given", tests);
}
