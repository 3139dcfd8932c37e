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

// Larger than most last-level caches: stores pass the caches, at addresses of every alignment.
START_TEST(large_tensor_agrees) {
    static const int threads[] = {2};
    static float x[LARGE];
    cpu_case c = {.m = LARGE / 4099, .k = 4099, .x = x};
    ck_assert_int_eq(qg_recipe_find("mxfp6_e2m3", &c.recipe), QG_OK);
    c.options = options_of(QG_FORMAT_FP32);
    c.storage.packed = true;
    block_data_fill(5, BLOCK_DATA_MIXED, x, LARGE);
    cpu_check(&c, NULL, threads, 1);
}
END_TEST

int main(void) {
    const TTest *tests[] = {large_tensor_agrees, every_recipe_agrees,    every_rule_agrees,
                            random_cases_agree,  threads_change_nothing, all_narrow_inputs_agree};
    return RUN_SUITE("cpu_quantize", tests);
}
