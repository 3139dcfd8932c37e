// See digest_cases.h.
#include <block_data.h>
#include <digest_cases.h>
#include <qg_digest.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>

#include <stdio.h>
#include <stdlib.h>

enum { M = 37, K = 300, N = M * K, NAME = 128 };

static float x[N], q[N];
static uint8_t codes[4 * N], scales[8 * N];

uint64_t digest_case_value(const qg_backend *backend, const qg_recipe *recipe) {
    static const float history[] = {2.5f};
    static const qg_storage logical = {0};
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
            backend->quantize(recipe, &options, &logical, M, K, x, codes, scales, &tensor, NULL),
            QG_OK);
        ck_assert_int_eq(
            backend->dequantize(recipe, &logical, M, K, codes, scales, tensor, 1, q, NULL), QG_OK);
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

static void visit_recipes(void (*each)(const char *name, const qg_recipe *recipe)) {
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        qg_recipe recipe;
        char name[NAME];
        ck_assert_int_eq(qg_recipe_find(qg_recipe_listed(i), &recipe), QG_OK);
        each(qg_recipe_listed(i), &recipe);
        recipe.conversion.rounding = (qg_rounding){QG_ROUND_STOCHASTIC_C, 16};
        snprintf(name, sizeof name, "%s/stochastic:C:16", qg_recipe_listed(i));
        each(name, &recipe);
    }
}

static void visit_rules(const char *element,
                        void (*each)(const char *name, const qg_recipe *recipe)) {
    static const char *const layouts[] = {"per_tensor", "per_row", "group:32", "block:16x16"};
    for (size_t r = 0; qg_rule_listed(r); r++)
        for (int l = 0; l < 4; l++) {
            qg_recipe recipe;
            char name[NAME];
            ck_assert_int_eq(qg_recipe_find(element, &recipe), QG_OK);
            ck_assert_int_eq(qg_layout_parse(layouts[l], &recipe.layout), QG_OK);
            if (qg_recipe_set_rule(&recipe, (int)r, 0.75f) != QG_OK)
                continue;
            snprintf(name, sizeof name, "%s/%s/%s", element, qg_rule_listed(r), layouts[l]);
            each(name, &recipe);
        }
}

void digest_cases_visit(void (*each)(const char *name, const qg_recipe *recipe)) {
    visit_recipes(each);
    visit_rules("e4m3", each);
    visit_rules("e2m1", each);
}

void digest_cases_path(char *path, size_t size) {
    const char *root = getenv("QG_SOURCE_DIR");
    snprintf(path, size, "%s/tests/emulator/digests.txt", root ? root : ".");
}
