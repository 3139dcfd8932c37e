// Pair shifts, two planes and rules that look at every element, on the shim, against the emulator.
#include <kernel_case.h>
#include <run_suite.h>

static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};

static const char *const structures[] = {"mx9",    "mx6",         "mx4",         "msfp16",
                                         "msfp12", "rlx_mxfp4x2", "nvfp4_4over6"};
enum { STRUCTURES = 7 };

START_TEST(every_recipe_and_kind_of_data) {
    int way = 0;
    for (int i = 0; i < STRUCTURES; i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++)
            for (int t = 0; t < 3; t++) {
                kernel_case c = {.recipe = kernel_recipe(structures[i], NULL, -1),
                                 .type = types[t],
                                 .storage = {.packed = way % 2 != 0},
                                 .m = 1 + way % 23,
                                 .k = 1 + way * 37 % 300,
                                 .kind = kind,
                                 .seed = (uint64_t)way,
                                 .has_up = way % 5 == 0};
                kernel_case_check(&c, way++, 1, "structure");
            }
}
END_TEST

START_TEST(every_rounding) {
    int way = 0;
    for (int i = 0; i < STRUCTURES; i++)
        for (uint8_t mode = 0; mode < QG_ROUND_COUNT; mode++)
            for (int kind = 0; kind < 2; kind++) {
                kernel_case c = {.recipe = kernel_recipe(structures[i], NULL, -1),
                                 .type = types[way % 3],
                                 .storage = {.packed = true},
                                 .m = 9,
                                 .k = 77,
                                 .kind = kind ? BLOCK_DATA_MIXED : BLOCK_DATA_TIES,
                                 .seed = (uint64_t)way};
                c.recipe.conversion.rounding = (qg_rounding){mode, 11};
                kernel_case_check(&c, way++, 1, "structure");
            }
}
END_TEST

START_TEST(every_layout_of_best) {
    static const char *const elements[] = {"e4m3", "e2m1", "e2m3", "int8", "fp16"};
    static const char *const layouts[] = {"per_tensor", "per_row",  "group:32",    "group:31",
                                          "group:5",    "group:64", "block:16x16", "block:3x7",
                                          "block:1x9",  "block:8x2"};
    int way = 0;
    for (size_t e = 0; e < 5; e++)
        for (size_t l = 0; l < 10; l++)
            for (int i = 0; i < 3; i++) {
                kernel_case c = {.recipe = kernel_recipe(elements[e], layouts[l], QG_RULE_BEST),
                                 .type = types[i],
                                 .storage = {.packed = i != 1},
                                 .m = 17,
                                 .k = 67 + i,
                                 .kind = i ? BLOCK_DATA_MIXED : BLOCK_DATA_ORDINARY,
                                 .seed = (uint64_t)way,
                                 .has_up = way % 4 == 1};
                c.storage.order = (qg_scale_order){way % 5, 16};
                kernel_case_check(&c, way++, i == 2 && e == 0 ? KERNEL_CASE_WAYS : 1, "structure");
            }
}
END_TEST

START_TEST(every_group_of_four_over_six) {
    static const char *const elements[] = {"e2m1", "int4", "e4m3"};
    static const char *const layouts[] = {"group:16", "group:32", "group:33", "group:128",
                                          "group:3"};
    int way = 0;
    for (size_t e = 0; e < 3; e++)
        for (size_t l = 0; l < 5; l++)
            for (int i = 0; i < 6; i++) {
                kernel_case c = {.recipe = kernel_recipe("nvfp4_4over6", layouts[l], -1),
                                 .type = types[i % 3],
                                 .storage = {.packed = i != 1},
                                 .m = 11,
                                 .k = 130 + i,
                                 .kind = i * 2,
                                 .seed = (uint64_t)way,
                                 .has_up = way % 4 == 1};
                REQUIRE(qg_recipe_find(elements[e], &(qg_recipe){0}) == QG_OK, "element");
                c.recipe.element = kernel_recipe(elements[e], NULL, -1).element;
                c.storage.order = (qg_scale_order){way % 5, 16};
                kernel_case_check(&c, way++, 1, "structure");
            }
}
END_TEST

START_TEST(every_order_of_threads) {
    for (int i = 0; i < STRUCTURES; i++)
        for (int64_t k = 15; k < 18; k++) {
            kernel_case c = {.recipe = kernel_recipe(structures[i], NULL, -1),
                             .type = types[k % 3],
                             .storage = {.packed = true},
                             .m = 150,
                             .k = k,
                             .kind = BLOCK_DATA_SPECIALS,
                             .seed = 3};
            kernel_case_check(&c, 0, KERNEL_CASE_WAYS, "structure");
        }
}
END_TEST

// An eps on amax or on the scale, every edge and every policy, by chance.
START_TEST(drawn_cases) {
    enum { CASES = 500, MOST = 3000 };
    static float room[MOST];
    uint64_t state = 11;
    for (int i = 0; i < CASES;) {
        cpu_case drawn;
        if (!cpu_check_draw(&state, MOST, room, &drawn))
            continue;
        bool reads =
            drawn.recipe.rule == QG_RULE_BEST || drawn.recipe.rule == QG_RULE_FOUR_OVER_SIX;
        if (drawn.recipe.structure == QG_STRUCTURE_PLAIN && !reads)
            continue;
        kernel_case c = {.recipe = drawn.recipe,
                         .type = drawn.options.input_type,
                         .storage = drawn.storage,
                         .m = drawn.m,
                         .k = drawn.k,
                         .seed = drawn.options.seed,
                         .kind = i % BLOCK_DATA_KINDS,
                         .has_up = i % 7 == 0};
        kernel_case_check(&c, i, 1, "structure");
        i++;
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_recipe_and_kind_of_data, every_rounding,
                            every_layout_of_best,          every_group_of_four_over_six,
                            every_order_of_threads,        drawn_cases};
    return RUN_SUITE("kernels_structure", tests);
}
