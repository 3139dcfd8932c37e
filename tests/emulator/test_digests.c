// The bytes of every recipe and of every rule and layout of two element formats on fixed data, as
// digests in digests.txt: equal with every compiler, optimisation level and machine.
// QG_UPDATE_DIGESTS=1 writes the file anew; review its diff.
#include <block_data.h>
#include <qg_digest.h>
#include <qg_emulator.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REWRITE "(after a new row: QG_UPDATE_DIGESTS=1 rewrites the file; review its diff)"

enum { M = 37, K = 300, N = M * K, LINE = 128 };

static float x[N], q[N];
static uint8_t codes[4 * N], scales[8 * N];
static FILE *file;
static int updates;

static uint64_t digest_of(const qg_recipe *recipe) {
    static const float history[] = {2.5f};
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32,
                                   .seed = 42,
                                   .stream = QG_STREAM_ROUNDING,
                                   .threads = 1,
                                   .amax_history = history,
                                   .history_length = 1};
    qg_shape shape;
    qg_digest *digest;
    ck_assert_int_eq(qg_digest_create(&digest), QG_OK);
    for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
        float tensor = 0;
        block_data_fill(1, kind, x, N);
        ck_assert_int_eq(qg_shape_of(recipe, M, K, &shape), QG_OK);
        ck_assert_int_eq(
            qg_emulator_quantize(recipe, &options, M, K, x, codes, scales, &tensor, NULL), QG_OK);
        ck_assert_int_eq(qg_emulator_dequantize(recipe, M, K, codes, scales, tensor, 1, q), QG_OK);
        qg_digest_add(digest, codes, (size_t)shape.codes_size);
        qg_digest_add(digest, scales, (size_t)shape.scales_size);
        if (shape.has_tensor_scale)
            qg_digest_add(digest, &tensor, sizeof tensor);
        qg_digest_add(digest, q, sizeof q);
    }
    uint64_t value = qg_digest_value(digest);
    qg_digest_free(digest);
    return value;
}

static void check(const char *name, const qg_recipe *recipe) {
    char want[LINE], got[LINE];
    snprintf(got, sizeof got, "%s %016" PRIx64 "\n", name, digest_of(recipe));
    if (updates) {
        fputs(got, file);
        return;
    }
    REQUIRE(fgets(want, sizeof want, file) != NULL, "digests.txt ends before %s" REWRITE, got);
    REQUIRE(strcmp(got, want) == 0, "got %s, not %s" REWRITE, got, want);
}

static void check_recipes(void) {
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        qg_recipe recipe;
        char name[LINE];
        ck_assert_int_eq(qg_recipe_find(qg_recipe_listed(i), &recipe), QG_OK);
        check(qg_recipe_listed(i), &recipe);
        recipe.conversion.rounding = (qg_rounding){QG_ROUND_STOCHASTIC_C, 16};
        snprintf(name, sizeof name, "%s/stochastic:C:16", qg_recipe_listed(i));
        check(name, &recipe);
    }
}

static void check_rules(const char *element) {
    static const char *const layouts[] = {"per_tensor", "per_row", "group:32", "block:16x16"};
    for (size_t r = 0; qg_rule_listed(r); r++)
        for (int l = 0; l < 4; l++) {
            qg_recipe recipe;
            char name[LINE];
            ck_assert_int_eq(qg_recipe_find(element, &recipe), QG_OK);
            ck_assert_int_eq(qg_layout_parse(layouts[l], &recipe.layout), QG_OK);
            if (qg_recipe_set_rule(&recipe, (int)r, 0.75f) != QG_OK)
                continue;
            snprintf(name, sizeof name, "%s/%s/%s", element, qg_rule_listed(r), layouts[l]);
            check(name, &recipe);
        }
}

START_TEST(bytes_are_those_on_record) {
    const char *root = getenv("QG_SOURCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/emulator/digests.txt", root ? root : ".");
    updates = getenv("QG_UPDATE_DIGESTS") != NULL;
    file = fopen(path, updates ? "w" : "r");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    check_recipes();
    check_rules("e4m3");
    check_rules("e2m1");
    char rest[LINE];
    if (!updates)
        ck_assert_msg(fgets(rest, sizeof rest, file) == NULL, "digests.txt has more: %s", rest);
    ck_assert_int_eq(fclose(file), 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {bytes_are_those_on_record};
    return RUN_SUITE("digests", tests);
}
