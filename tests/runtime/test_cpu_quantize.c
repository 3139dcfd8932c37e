// The CPU runtime gives the emulator's bytes: recipes, formats, layouts, rules, roundings, storage,
// input types and threads drawn at random; all values of bf16 and fp16; every recipe.
#include <block_data.h>
#include <cpu_check.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <string.h>

enum { MOST = 70 * 300, ALL16 = 1 << 16, LARGE = 7 << 20 };

static float room[MOST], spare[MOST];
static uint16_t all16[ALL16];

static const int ONE[] = {1}, SEVERAL[] = {1, 2, 3, 7};

static qg_quantize_options options_of(qg_format type) {
    static const float history[] = {2.5f};
    return (qg_quantize_options){.input_type = type,
                                 .seed = 42,
                                 .stream = QG_STREAM_ROUNDING,
                                 .amax_history = history,
                                 .history_length = 1};
}

START_TEST(random_cases_agree) {
    uint64_t state = 11;
    for (int i = 0; i < 2000; i++) {
        cpu_case c;
        if (!cpu_check_draw(&state, MOST / 8, room, &c))
            continue;
        cpu_check(&c, NULL, ONE, 1);
    }
}
END_TEST

START_TEST(threads_change_nothing) {
    uint64_t state = 12;
    // 61 rows of padded blocks, a task each: no team shares them evenly.
    cpu_case rows = {.m = 61, .k = 300, .x = room};
    ck_assert_int_eq(qg_recipe_find("mxfp8", &rows.recipe), QG_OK);
    rows.options = options_of(QG_FORMAT_FP32);
    block_data_fill(13, BLOCK_DATA_MIXED, room, rows.m * rows.k);
    cpu_check(&rows, NULL, SEVERAL, 4);
    for (int i = 0; i < 60; i++) {
        cpu_case c;
        if (!cpu_check_draw(&state, MOST, room, &c))
            continue;
        if (c.m * c.k < MOST / 2)
            continue;
        cpu_check(&c, NULL, SEVERAL, 4);
    }
}
END_TEST

// Every rounding for the frequent formats, nearest even for the others.
START_TEST(all_narrow_inputs_agree) {
    static const char *const layouts[] = {"per_tensor", "group:32"};
    for (uint32_t i = 0; i < ALL16; i++)
        all16[i] = (uint16_t)(i * 40503u); // neighbours far apart, so that groups mix magnitudes
    for (size_t f = 0; qg_format_listed(f); f++) {
        cpu_case c = {.m = 64, .k = ALL16 / 64, .x = all16};
        if (qg_recipe_find(qg_format_listed(f), &c.recipe) != QG_OK)
            continue;
        bool is_frequent = f < 10;
        for (int l = 0; l < 2; l++)
            for (uint8_t mode = 0; mode < (is_frequent ? QG_ROUND_COUNT : 1); mode++) {
                ck_assert_int_eq(qg_layout_parse(layouts[l], &c.recipe.layout), QG_OK);
                ck_assert_int_eq(
                    qg_recipe_set_rule(&c.recipe, l ? QG_RULE_RCEIL : QG_RULE_FIXED, 1.0f), QG_OK);
                c.recipe.conversion.rounding.mode = mode;
                c.recipe.conversion.rounding.bits = mode >= QG_ROUND_STOCHASTIC_A ? 20 : 0;
                c.options = options_of((f + mode) % 2 ? QG_FORMAT_BF16 : QG_FORMAT_FP16);
                cpu_check(&c, NULL, ONE, 1);
                c.options.input_type = QG_FORMAT_BF16;
                if (is_frequent && mode == 0)
                    cpu_check(&c, NULL, ONE, 1);
            }
    }
}
END_TEST

// Each kind of data, each type, nearest even and stochastic.
START_TEST(every_recipe_agrees) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            cpu_case c = {.m = 5, .k = 300, .x = room};
            ck_assert_int_eq(qg_recipe_find(qg_recipe_listed(i), &c.recipe), QG_OK);
            block_data_fill(7, kind, spare, c.m * c.k);
            c.options = options_of(types[((size_t)kind + i) % 3]);
            c.storage.packed = kind % 2 == 0;
            if (c.options.input_type == QG_FORMAT_FP32)
                memcpy(room, spare, sizeof room);
            else
                cpu_check_narrow(c.options.input_type, spare, c.m * c.k, (uint16_t *)(void *)room);
            cpu_check(&c, NULL, ONE, 1);
            c.recipe.conversion.rounding = (qg_rounding){QG_ROUND_STOCHASTIC_C, 16};
            cpu_check(&c, NULL, ONE, 1);
        }
}
END_TEST

// Every rule for the formats and layouts in use.
START_TEST(every_rule_agrees) {
    static const char *const elements[] = {"e4m3", "e5m2", "e2m1", "int8", "e3m2"};
    static const char *const layouts[] = {"per_tensor", "per_row",     "group:16", "group:32",
                                          "group:128",  "block:16x16", "group:24"};
    for (int e = 0; e < 5; e++)
        for (int rule = 0; rule < QG_RULE_COUNT; rule++)
            for (int l = 0; l < 7; l++) {
                cpu_case c = {.m = 20, .k = 256 + 17 * (l % 2), .x = room};
                ck_assert_int_eq(qg_recipe_find(elements[e], &c.recipe), QG_OK);
                ck_assert_int_eq(qg_layout_parse(layouts[l], &c.recipe.layout), QG_OK);
                if (qg_recipe_set_rule(&c.recipe, rule, 0.75f) != QG_OK)
                    continue;
                c.options = options_of(QG_FORMAT_FP32);
                block_data_fill((uint64_t)(rule * 8 + l), l % BLOCK_DATA_KINDS, room, c.m * c.k);
                cpu_check(&c, NULL, ONE, 1);
            }
}
END_TEST

// Groups of ordinary numbers: a maximum near the steps of the scales, the others near the middle
// between two codes, zeros of both signs, tiny numbers, and in the last case a NaN or an infinity.
static void fill_group(uint64_t *state, uint32_t *bits, int64_t count, int special) {
    uint64_t r = block_data_random(state);
    uint32_t field = 127 + (uint32_t)(r % 25) - 12, mantissa = (uint32_t)(r >> 8 & 7) << 20;
    uint32_t largest = (field << 23 | mantissa) + (uint32_t)(r >> 16) % 3 - 1;
    for (int64_t i = 0; i < count; i++) {
        uint64_t n = block_data_random(state);
        uint32_t below = (uint32_t)(n % 24), middle = (uint32_t)(n >> 8) & 0x007f0000u;
        bits[i] = ((field - below) << 23 | middle) + (uint32_t)(n >> 40) % 3 - 1;
        bits[i] = n >> 60 == 0 ? 0 : n >> 60 == 1 ? (uint32_t)(n >> 16) & 0x7fffffu : bits[i];
        bits[i] = ((bits[i] & 0x7fffffffu) < largest ? bits[i] : largest) | (uint32_t)(n >> 59)
                                                                                << 31;
    }
    bits[r >> 32 & 15] = largest | (uint32_t)(r >> 40) << 31;
    if (special == 1 && r >> 60 == 0)
        memset(bits, 0, (size_t)count * sizeof *bits);
    if (special == 2 && r >> 62 == 0)
        bits[r >> 44 & 15] = r >> 61 & 1 ? 0xff800000u : 0x7fc00000u;
}

START_TEST(ordinary_groups_agree) {
    static const char *const elements[] = {"e4m3", "e5m2", "e2m1", "e3m2", "e2m3", "binary8p4sf"};
    static const char *const layouts[] = {"group:16", "group:32",  "group:64",
                                          "group:80", "group:128", "block:4x32"};
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    uint64_t state = 21;
    for (int e = 0; e < 6; e++)
        for (int l = 0; l < 6; l++)
            for (int rule = 0; rule < QG_RULE_COUNT; rule++) {
                cpu_case c = {.m = 6, .k = 700 + 32 * (rule % 2), .x = room};
                if (qg_recipe_find(elements[e], &c.recipe) != QG_OK ||
                    qg_layout_parse(layouts[l], &c.recipe.layout) != QG_OK ||
                    qg_recipe_set_rule(&c.recipe, rule, 1.0f) != QG_OK)
                    continue;
                c.recipe.amax = (uint8_t)(rule % 3);
                c.options = options_of(types[(e + l + rule) % 3]);
                for (int64_t i = 0; i < c.m * c.k + 16; i += 16)
                    fill_group(&state, (uint32_t *)(void *)spare + i, 16, (e + rule) % 4);
                if (c.options.input_type == QG_FORMAT_FP32)
                    memcpy(room, spare, sizeof room);
                else
                    cpu_check_narrow(c.options.input_type, spare, c.m * c.k,
                                     (uint16_t *)(void *)room);
                cpu_check(&c, NULL, ONE, 1);
            }
}
END_TEST

// What a thread keeps from its last call must not serve a different one.
START_TEST(calls_forget_the_last_history_and_type) {
    static const float histories[] = {2.5f, 40.0f, 2.5f};
    cpu_case c = {.m = 4, .k = 64, .x = room};
    ck_assert_int_eq(qg_recipe_find("e4m3", &c.recipe), QG_OK);
    ck_assert_int_eq(qg_recipe_set_rule(&c.recipe, QG_RULE_DELAYED, 0.0f), QG_OK);
    block_data_fill(9, BLOCK_DATA_MIXED, room, c.m * c.k);
    for (int narrow = 0; narrow < 2; narrow++)
        for (int i = 0; i < 3; i++) {
            c.options = options_of(narrow ? QG_FORMAT_BF16 : QG_FORMAT_FP32);
            c.options.amax_history = &histories[i];
            cpu_check(&c, NULL, ONE, 1);
        }
}
END_TEST

// Larger than most last-level caches: stores pass the caches, at addresses of every alignment.
START_TEST(large_tensor_agrees) {
    static const int threads[] = {2};
    static float x[LARGE];
    static const char *const recipes[] = {"mxfp6_e2m3", "mxfp4"}; // rows end within a byte or three
    block_data_fill(5, BLOCK_DATA_MIXED, x, LARGE);
    for (int i = 0; i < 2; i++) {
        cpu_case c = {.m = LARGE / 4099, .k = 4099, .x = x};
        ck_assert_int_eq(qg_recipe_find(recipes[i], &c.recipe), QG_OK);
        c.options = options_of(QG_FORMAT_FP32);
        c.storage.packed = true;
        cpu_check(&c, NULL, threads, 1);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {large_tensor_agrees,    every_recipe_agrees,
                            every_rule_agrees,      calls_forget_the_last_history_and_type,
                            random_cases_agree,     ordinary_groups_agree,
                            threads_change_nothing, all_narrow_inputs_agree};
    return RUN_SUITE("cpu_quantize", tests);
}
