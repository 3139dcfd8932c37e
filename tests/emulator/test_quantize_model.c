// The emulator against an independent model, byte for byte: every recipe of the table, and element
// formats with every rule and layout, on ordinary and hostile blocks, ragged shapes and all
// rounding modes. Codes, scales, tensor scale and dequantized bits must be equal.
#include <block_data.h>
#include <qg_emulator.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>
#include <slow_recipe.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 5 * 300 };

static float x[LARGEST], wanted_q[LARGEST], got_q[LARGEST];
static uint64_t wanted_codes[2 * LARGEST];
static uint8_t got_codes[2 * LARGEST * 4], wanted_scales[8 * LARGEST], got_scales[8 * LARGEST];
static uint32_t words[LARGEST];

typedef struct trial {
    const char *what;
    qg_recipe recipe;
    slow_recipe slow;
    qg_quantize_options options;
    int64_t m, k;
    int kind;
} trial;

static float history_amax(const trial *t) {
    float amax = 0;
    for (int64_t i = 0; i < t->options.history_length; i++) {
        float a = t->options.amax_history[i];
        if (!(a <= amax)) // NaN stays
            amax = a;
        if (amax != amax)
            break;
    }
    return amax;
}

static float input_max(qg_format type) {
    return type == QG_FORMAT_FP16   ? 65504.0f
           : type == QG_FORMAT_BF16 ? 0x1.fep127f
                                    : 0x1.fffffep127f;
}

static uint64_t code_at(const uint8_t *codes, int64_t i, int bytes) {
    uint64_t code = 0;
    for (int b = 0; b < bytes; b++)
        code |= (uint64_t)codes[i * bytes + b] << (8 * b);
    return code;
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// NaN payloads are the emulator's own choice: canonical.
static int same_float(float got, float want) {
    return want != want ? bits_of(got) == 0x7fffffffu : bits_of(got) == bits_of(want);
}

static void compare(const trial *t) {
    slow_input in = {t->m, t->k, x, words, input_max(t->options.input_type), history_amax(t)};
    qg_shape shape;
    float want_tensor = 0, got_tensor = 0;
    ck_assert_msg(qg_shape_of(&t->recipe, t->m, t->k, &shape) == QG_OK, "%s: %s", t->what,
                  qg_detail());
    ck_assert_int_eq(shape.scale_bytes, slow_scale_bytes(&t->slow));
    memset(got_codes, 0xA5, sizeof got_codes);
    memset(got_scales, 0xA5, sizeof got_scales);
    slow_quantize(&t->slow, &in, wanted_codes, wanted_scales, &want_tensor, wanted_q);
    ck_assert_msg(qg_emulator_quantize(&t->recipe, &t->options, t->m, t->k, x, got_codes,
                                       got_scales, &got_tensor, NULL) == QG_OK,
                  "%s: %s", t->what, qg_detail());
    ck_assert_int_eq(
        qg_emulator_dequantize(&t->recipe, t->m, t->k, got_codes, got_scales, got_tensor, 1, got_q),
        QG_OK);
    for (int64_t i = 0; i < shape.scales_size; i++)
        REQUIRE(got_scales[i] == wanted_scales[i],
                "%s kind %d %lldx%lld: scale byte %lld is %02x, not %02x", t->what, t->kind,
                (long long)t->m, (long long)t->k, (long long)i, got_scales[i], wanted_scales[i]);
    ck_assert_msg(same_float(got_tensor, want_tensor), "%s kind %d: tensor %a, not %a", t->what,
                  t->kind, (double)got_tensor, (double)want_tensor);
    for (int64_t i = 0; i < shape.planes * t->m * t->k; i++) {
        uint64_t got = code_at(got_codes, i, shape.code_bytes);
        REQUIRE(got == wanted_codes[i], "%s kind %d %lldx%lld: code %lld of %a is %llx, not %llx",
                t->what, t->kind, (long long)t->m, (long long)t->k, (long long)i,
                (double)x[i % (t->m * t->k)], (unsigned long long)got,
                (unsigned long long)wanted_codes[i]);
    }
    for (int64_t i = 0; i < t->m * t->k; i++)
        REQUIRE(same_float(got_q[i], wanted_q[i]), "%s kind %d: value %lld is %a, not %a", t->what,
                t->kind, (long long)i, (double)got_q[i], (double)wanted_q[i]);
    // Guard bytes behind what the shape promises.
    ck_assert_int_eq(got_codes[shape.codes_size], 0xA5);
    ck_assert_int_eq(got_scales[shape.scales_size], 0xA5);
}

static const float histories[][3] = {
    {1,         2,         0.5f},
    {0,         0,         0   },
    {448,       0x1p-140f, 3   },
    {1,         0x1p-149f, 0   },
    {0x1p-149f, 0,         0   }
};

static void run_trial(trial *t, uint64_t seed) {
    t->options.seed = seed;
    t->options.stream = QG_STREAM_ROUNDING;
    t->options.amax_history = histories[seed % 5];
    t->options.history_length = 3;
    block_data_fill(seed, t->kind, x, t->m * t->k);
    for (int64_t i = 0; i < t->m * t->k; i++)
        words[i] = qg_philox_word(seed, QG_STREAM_ROUNDING, (uint64_t)i);
    compare(t);
}

static const int64_t shapes[][2] = {
    {1, 1  },
    {1, 16 },
    {1, 33 },
    {2, 31 },
    {3, 64 },
    {5, 17 },
    {1, 300},
    {5, 130},
    {2, 257}
};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

START_TEST(every_recipe_of_the_table) {
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        trial t = {.what = qg_recipe_listed(i), .slow = slow_recipe_find(qg_recipe_listed(i))};
        ck_assert_msg(t.slow.name != NULL, "slow_recipe.c lacks the recipe %s: add its row", t.what);
        ck_assert_int_eq(qg_recipe_find(t.what, &t.recipe), QG_OK);
        for (int round = 0; round < 24; round++)
            for (t.kind = 0; t.kind < BLOCK_DATA_KINDS; t.kind++) {
                size_t shape = (size_t)(round * 5 + t.kind) % SHAPES;
                static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
                t.options.input_type = types[round % 3];
                t.m = shapes[shape][0];
                t.k = shapes[shape][1];
                run_trial(&t, (uint64_t)(round * 97 + (int)i));
            }
    }
}
END_TEST

static void set_rounding(trial *t, int mode, int bits) {
    t->recipe.conversion.rounding = (qg_rounding){(uint8_t)mode, (uint8_t)bits};
    t->slow.conversion.mode = mode;
    t->slow.conversion.bits = bits;
}

START_TEST(every_recipe_in_every_rounding_mode) {
    ck_assert_int_eq(QG_ROUND_RNE, SLOW_RNE);
    ck_assert_int_eq(QG_ROUND_STOCHASTIC_C, SLOW_STOCHASTIC_C);
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int mode = 0; mode < QG_ROUND_COUNT; mode++) {
            trial t = {.what = qg_recipe_listed(i), .slow = slow_recipe_find(qg_recipe_listed(i))};
            if (!t.slow.name) // every_recipe_of_the_table says so
                continue;
            ck_assert_int_eq(qg_recipe_find(t.what, &t.recipe), QG_OK);
            t.options.input_type = QG_FORMAT_FP32;
            set_rounding(&t, mode, mode % 2 ? 16 : 7);
            for (t.kind = 0; t.kind < BLOCK_DATA_KINDS; t.kind++) {
                int saturates = t.kind % 2;
                t.recipe.conversion.overflow =
                    saturates ? QG_OVERFLOW_SATURATE : QG_OVERFLOW_FORMAT;
                t.recipe.conversion.nan = t.kind % 3 ? QG_NAN_TO_MAX : QG_NAN_TO_ZERO;
                t.slow.conversion.saturates = saturates;
                t.slow.conversion.nan_to_zero = !(t.kind % 3);
                t.m = 2;
                t.k = 35;
                run_trial(&t, (uint64_t)(mode * 1000 + t.kind));
            }
        }
}
END_TEST

static const char *const elements[] = {
    "e4m3",      "e5m2",        "e4m3fnuz",    "e5m2fnuz",    "e4m3_ieee", "e3m4",     "e2m3",
    "e3m2",      "e2m1",        "mxint8",      "mxint4",      "int8",      "int6",     "int4",
    "int8_full", "binary8p3se", "binary8p1se", "binary8p4sf", "f5e2m2",    "f8e4m3b7", "f6e3m2b40",
    "ue4m3",     "bf16",        "fp16",        "tf32"};

// Every rule of the table; `fixed` with a scale.
static const char *rule_text(size_t r) {
    const char *name = qg_rule_listed(r);
    return name && strcmp(name, "fixed") == 0 ? "fixed:0x1.8p-2" : name;
}

static const char *const layouts[] = {"per_tensor", "per_row", "group:16", "group:7", "block:2x32"};
static const int layout_sizes[][2] = {
    {0, 0 },
    {1, 0 },
    {1, 16},
    {1, 7 },
    {2, 32}
};

static void set_rule(trial *t, const char *text, const char *element, int layout) {
    int rule;
    float fixed;
    static char name[32];
    snprintf(name, sizeof name, "%s", text);
    if (strchr(name, ':'))
        *strchr(name, ':') = 0;
    t->slow = slow_recipe_generic(element, name, layout_sizes[layout][0], layout_sizes[layout][1]);
    ck_assert_int_eq(qg_rule_parse(text, &rule, &fixed), QG_OK);
    t->slow.fixed = fixed;
    qg_layout parsed;
    ck_assert_int_eq(qg_layout_parse(layouts[layout], &parsed), QG_OK);
    ck_assert_int_eq(qg_recipe_find(element, &t->recipe), QG_OK);
    ck_assert_int_eq(qg_recipe_set_layout(&t->recipe, parsed), QG_OK);
    ck_assert_msg(qg_recipe_set_rule(&t->recipe, rule, fixed) == QG_OK, "%s", qg_detail());
}

START_TEST(every_element_format_with_every_rule) {
    for (size_t e = 0; e < sizeof elements / sizeof elements[0]; e++)
        for (size_t r = 0; rule_text(r); r++) {
            const char *rule = rule_text(r);
            int needs_group = strstr(rule, "two_level") || strstr(rule, "ue4m3") ||
                              strstr(rule, "four_over");
            int layout = needs_group ? 2 + (int)(e % 2) : (int)((e + r) % 5);
            if (strcmp(rule, "delayed") == 0)
                layout = 0;
            int is_wide = strcmp(elements[e], "bf16") == 0 || strcmp(elements[e], "tf32") == 0;
            if (is_wide && needs_group && !strstr(rule, "ue4m3"))
                continue; // 448 F exceeds binary32
            char what[64];
            snprintf(what, sizeof what, "%s %s %s", elements[e], rule, layouts[layout]);
            trial t = {.what = what};
            set_rule(&t, rule, elements[e], layout);
            t.options.input_type = QG_FORMAT_FP32;
            for (t.kind = 0; t.kind < BLOCK_DATA_KINDS; t.kind++) {
                t.m = 3;
                t.k = strcmp(rule, "best") == 0 ? 9 : 37;
                run_trial(&t, e * 100 + r);
            }
        }
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_recipe_of_the_table, every_recipe_in_every_rounding_mode,
                            every_element_format_with_every_rule};
    return RUN_SUITE("quantize_model", tests);
}
