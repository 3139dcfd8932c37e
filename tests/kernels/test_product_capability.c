// The table of products: every row's limits from both sides, known refusals with their reasons, and
// what the table says against what the library in cuBLASLt's place takes.
#include "product_case.h"

#include <run_suite.h>

// "" where the product is taken, else the reason. `out` with '*': an output scale; "fast", "c".
static const char *answer(const char *a, const char *b, int32_t architecture, int64_t version,
                          int64_t m, int64_t n, int64_t k, qg_format out, const char *extra) {
    static qg_cuda_error error;
    static const float one = 1;
    qg_cuda_product p;
    const product_site site = {architecture, version};
    memset(&p, 0, sizeof p);
    p.a.recipe = recipe_of(a);
    p.b.recipe = recipe_of(b);
    p.m = m;
    p.n = n;
    p.k = k;
    p.out_type = out;
    p.accumulates_fast = strstr(extra, "fast") != NULL;
    p.out_scale = strstr(extra, "scale") ? &one : NULL;
    strcpy(error.text, "");
    const product_kind *kind = product_kind_of(&p, &site, &error);
    ck_assert_int_eq(kind == NULL, error.text[0] != 0);
    return error.text;
}

typedef struct question {
    const char *a, *b;
    int32_t architecture;
    int64_t version, m, n, k;
    qg_format out;
    const char *extra, *answer;
} question;

static void ask(const question *q) {
    const char *got =
        answer(q->a, q->b, q->architecture, q->version, q->m, q->n, q->k, q->out, q->extra);
    ck_assert_msg(strcmp(got, q->answer) == 0, "%s by %s on sm_%d: \"%s\", not \"%s\"", q->a, q->b,
                  q->architecture, got, q->answer);
}

// --------------------------------------------------------------------------------- row by row

typedef struct row_example {
    const char *kind, *a, *b;
    int32_t least_version, least, most; // architectures
    int64_t m, n, k;                    // the multiples
    bool fp8, fast;
} row_example;

// clang-format off
static const row_example examples[] = {
    {"fp8 per_tensor", "rlx_e4m3", "te_e5m2",
        120800, 89, 9999, 1, 16, 16, true, true},
    {"fp8 per_row", "e4m3 per_row", "e5m2 per_row",
        120900, 90, 90, 1, 16, 16, false, true},
    {"fp8 group:128 by group:128", "metrale_act128", "deepseek_act128",
        120900, 90, 90, 8, 16, 16, false, true},
    {"fp8 group:128 by block:128x128", "metrale_act128", "deepseek_w128x128",
        120900, 90, 90, 8, 16, 16, false, true},
    {"fp8 block:128x128 by group:128", "deepseek_w128x128", "metrale_act128",
        120900, 90, 90, 4, 16, 16, false, true},
    {"mxfp8", "mxfp8", "te_mxfp8",
        120800, 100, 9999, 1, 16, 16, false, true},
    {"nvfp4", "nvfp4", "nvfp4_torchao",
        120800, 100, 9999, 1, 16, 32, false, false},
};
// clang-format on

static void expect_size(const row_example *e, char name, int64_t multiple) {
    const int64_t off[] = {0, -multiple, multiple + 1, multiple / 2};
    for (int i = 0; i < 4; i++) {
        int64_t m = e->m, n = e->n, k = e->k;
        int64_t *size = name == 'm' ? &m : name == 'n' ? &n : &k;
        char want[QG_CUDA_TEXT];
        *size = off[i];
        if (multiple == 1 && off[i] > 0)
            continue; // every size is a multiple of 1
        if (off[i] < 1)
            snprintf(want, sizeof want, "%s: %c = %d is below 1", e->kind, name, (int)off[i]);
        else
            snprintf(want, sizeof want, "%s: %c = %d is no multiple of %d", e->kind, name,
                     (int)off[i], (int)multiple);
        ck_assert_str_eq(answer(e->a, e->b, e->least, 130100, m, n, k, QG_FORMAT_FP32, ""), want);
    }
}

START_TEST(every_row_has_its_limits) {
    const size_t count = sizeof examples / sizeof examples[0];
    for (size_t i = 0; i < count; i++) {
        const row_example *e = &examples[i];
        const product_kind *kind = product_kind_at(i);
        ck_assert_ptr_nonnull(kind);
        ck_assert_str_eq(kind->name, e->kind);
        ck_assert_msg(strlen(kind->source) > 10, "%s has no source", kind->name);
#define ASK(ARCHITECTURE, VERSION, OUT, EXTRA)                                                     \
    answer(e->a, e->b, ARCHITECTURE, VERSION, e->m, e->n, e->k, OUT, EXTRA)
        ck_assert_str_eq(ASK(e->least, e->least_version, QG_FORMAT_FP32, ""), "");
        ck_assert_str_eq(ASK(e->least, e->least_version, QG_FORMAT_BF16, ""), "");
        ck_assert_str_eq(ASK(e->least, e->least_version, QG_FORMAT_FP16, ""), "");
        ck_assert_msg(strstr(ASK(e->least, e->least_version - 1, QG_FORMAT_FP32, ""),
                             "needs cuBLASLt 12.") != NULL,
                      "%s", e->kind);
        ck_assert_msg(strstr(ASK(e->least - 1, 130100, QG_FORMAT_FP32, ""), "needs sm_") != NULL,
                      "%s", e->kind);
        ck_assert_int_eq(ASK(e->most == 9999 ? 121 : e->most, 130100, QG_FORMAT_FP32, "")[0], 0);
        ck_assert_int_eq(ASK(e->most == 9999 ? 103 : e->most + 10, 130100, QG_FORMAT_FP32, "")[0],
                         e->most == 9999 ? 0 : e->kind[0]);
        ck_assert_int_eq(ASK(e->least, 130100, QG_FORMAT_E4M3, "")[0] == 0, e->fp8);
        ck_assert_int_eq(ASK(e->least, 130100, QG_FORMAT_E4M3, "scale")[0] == 0, e->fp8);
        ck_assert_int_eq(ASK(e->least, 130100, QG_FORMAT_FP32, "scale")[0], e->kind[0]);
        ck_assert_int_eq(ASK(e->least, 130100, QG_FORMAT_FP32, "fast")[0] == 0, e->fast);
        ck_assert_int_eq(ASK(e->least, 130100, QG_FORMAT_TF32, "")[0], e->kind[0]);
        expect_size(e, 'm', e->m);
        expect_size(e, 'n', e->n);
        expect_size(e, 'k', e->k);
    }
    ck_assert_ptr_null(product_kind_at(count));
}
END_TEST

// ------------------------------------------------------------------------------ known refusals

// clang-format off
static const question questions[] = {
    // The reasons that the sources name.
    {"te_e5m2", "te_e5m2", 90, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_tensor: no such pair of formats: e5m2 and e5m2"},
    {"mxfp8", "mxfp8", 90, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "mxfp8 needs sm_100, this is sm_90"},
    {"nvfp4", "nvfp4", 90, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "nvfp4 needs sm_100, this is sm_90"},
    {"e4m3 per_row", "e4m3 per_row", 89, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_row needs sm_90 exactly, this is sm_89"},
    {"e4m3 per_row", "e4m3 per_row", 120, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_row needs sm_90 exactly, this is sm_120"},
    {"e4m3 per_row", "e4m3 per_row", 90, 120804, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_row needs cuBLASLt 12.9, this is 12.8"},
    {"rlx_e4m3", "rlx_e4m3", 80, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_tensor needs sm_89, this is sm_80"},
    {"rlx_e4m3", "rlx_e4m3", 90, 130100, 20001, 16, 100, QG_FORMAT_BF16, "",
     "fp8 per_tensor: k = 100 is no multiple of 16"},
    {"rlx_e4m3", "rlx_e4m3", 90, 130100, 16, 63, 16, QG_FORMAT_BF16, "",
     "fp8 per_tensor: n = 63 is no multiple of 16"},
    {"rlx_e4m3", "rlx_e4m3", 90, 130100, 16, 16, 0, QG_FORMAT_BF16, "",
     "fp8 per_tensor: k = 0 is below 1"},
    {"metrale_act128", "metrale_act128", 90, 130100, 63, 16, 128, QG_FORMAT_BF16, "",
     "fp8 group:128 by group:128: m = 63 is no multiple of 8"},
    {"deepseek_w128x128", "deepseek_w128x128", 90, 130100, 128, 128, 128, QG_FORMAT_BF16, "",
     "no such pair of layouts: block:128x128 and block:128x128"},
    {"rlx_e4m3", "e4m3 per_row", 90, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "no such pair of layouts: per_tensor and per_row"},
    {"metrale_act128", "mxfp8", 100, 130100, 16, 16, 128, QG_FORMAT_BF16, "",
     "no such pair of layouts: group:128 and group:32"},
    {"rlx_e4m3", "rlx_e4m3", 90, 130100, 16, 16, 16, QG_FORMAT_E5M2, "",
     "fp8 per_tensor: no e5m2 output of e4m3 and e4m3"},
    {"rlx_e4m3", "te_e5m2", 90, 130100, 16, 16, 16, QG_FORMAT_E5M2, "", ""},
    {"mxfp8", "mxfp8", 100, 130100, 16, 16, 32, QG_FORMAT_E4M3, "",
     "mxfp8: no e4m3 output of e4m3 and e4m3"},
    {"nvfp4", "nvfp4", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "fast",
     "nvfp4: no fast accumulation"},
    {"rlx_e4m3", "rlx_e4m3", 90, 130100, 16, 16, 16, QG_FORMAT_BF16, "scale",
     "fp8 per_tensor: no scale of a bf16 output"},
    // Recipes that the library does not know.
    {"e4m3 group:64", "e4m3", 90, 130100, 16, 16, 64, QG_FORMAT_BF16, "",
     "scale rule amax of group:64 has no scale mode (a)"},
    {"e4m3", "e4m3 block:64x128", 90, 130100, 16, 16, 64, QG_FORMAT_BF16, "",
     "scale rule amax of block:64x128 has no scale mode (b)"},
    {"vllm_ue8m0", "vllm_ue8m0", 90, 130100, 16, 16, 128, QG_FORMAT_BF16, "",
     "scale rule rceil of group:128 has no scale mode (a)"},
    {"rlx_mxfp4x2", "mxfp8", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "the codes of a have shifts or a second plane"},
    {"mxfp8", "mx9", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "the codes of b have shifts or a second plane"},
    {"mxfp4", "mxfp4", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "mxfp8: no such pair of formats: e2m1 and e2m1"},
    {"mxfp6_e2m3", "mxfp8", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "mxfp8: no such pair of formats: e2m3 and e4m3"},
    {"nvint4", "nvfp4", 100, 130100, 16, 16, 32, QG_FORMAT_BF16, "",
     "nvfp4: no such pair of formats: int4 and e2m1"},
    {"e4m3fnuz", "e4m3", 90, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_tensor: no such pair of formats: e4m3fnuz and e4m3"},
    {"e2m1", "e4m3", 90, 130100, 16, 16, 16, QG_FORMAT_BF16, "",
     "fp8 per_tensor: no such pair of formats: e2m1 and e4m3"},
};
// clang-format on

START_TEST(refusals_name_row_and_reason) {
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        ask(&questions[i]);
}
END_TEST

// Layouts that only differ in a rule of another scale format.
START_TEST(layouts_need_their_scale_format) {
    qg_recipe recipe = recipe_of("e4m3");
    recipe.rule = QG_RULE_RCEIL;
    ck_assert_int_eq(product_scale_mode(&recipe), -1);
    recipe.layout = (qg_layout){QG_LAYOUT_BLOCK, 128, 128};
    ck_assert_int_eq(product_scale_mode(&recipe), -1);
    recipe.layout = (qg_layout){QG_LAYOUT_GROUP, 0, 32};
    ck_assert_int_eq(product_scale_mode(&recipe), 2);
    recipe.rule = QG_RULE_AMAX;
    ck_assert_int_eq(product_scale_mode(&recipe), -1);
    recipe.layout.columns = 128;
    ck_assert_int_eq(product_scale_mode(&recipe), 4);
    recipe.rule = QG_RULE_FIXED;
    ck_assert_int_eq(product_scale_mode(&recipe), 4);
    recipe.rule = QG_RULE_AMAX_UE4M3;
    ck_assert_int_eq(product_scale_mode(&recipe), -1);
    recipe.layout.columns = 16;
    ck_assert_int_eq(product_scale_mode(&recipe), 1);
    for (int structure = QG_STRUCTURE_PAIR_SHIFT; structure <= QG_STRUCTURE_RESIDUAL; structure++) {
        recipe.structure = (uint8_t)structure;
        ck_assert_int_eq(product_scale_mode(&recipe), -1);
    }
}
END_TEST

// ------------------------------------------------------------- the table against the library

static const char *const recipes[] = {
    "e4m3",           "e5m2",       "e2m1",  "e4m3 per_row", "e5m2 per_row",
    "e4m3 group:128", "mxfp8",      "mxfp4", "nvfp4",        "e4m3 block:128x128",
    "e5m2 group:128", "mxfp8_e5m2", "mx9",   "int8",         "nvfp4_4over6",
};

// All pairs of recipes and outputs: whatever the table takes the library takes too, and computes.
START_TEST(what_is_taken_runs) {
    static const qg_format outs[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16, QG_FORMAT_E4M3,
                                     QG_FORMAT_E5M2};
    static const int32_t architectures[] = {89, 90, 100};
    const size_t count = sizeof recipes / sizeof recipes[0];
    int taken = 0;
    for (int arch = 0; arch < 3; arch++)
        for (size_t i = 0; i < count * count * 5; i++) {
            qg_cuda_error error;
            qg_cuda_product p;
            memset(&p, 0, sizeof p);
            open_fake(architectures[arch]);
            p.a.recipe = recipe_of(recipes[i / 5 / count]);
            p.b.recipe = recipe_of(recipes[i / 5 % count]);
            p.m = 8;
            p.n = p.k = 32;
            p.out_type = outs[i % 5];
            if (product_takes(&p, &error) != QG_OK)
                continue;
            product_case c =
                case_of(recipes[i / 5 / count], recipes[i / 5 % count], 8, 32, 32, outs[i % 5], 0);
            ck_assert_msg(product_run(&c.p, NULL, &error) == QG_OK, "%s by %s: %s (%s)",
                          recipes[i / 5 / count], recipes[i / 5 % count], error.text,
                          fake_last()->refusal);
            free_case(&c);
            taken++;
        }
    // Per tensor: 3 pairs with 3 outputs and E4M3, 2 of them also with E5M2, on three
    // architectures; on 9.0 per row 3 pairs, groups 3, groups by blocks 3; on 10.0 mxfp8 3 and
    // nvfp4 4.
    ck_assert_int_eq(taken, 3 * (3 * 4 + 2) + 3 * (3 + 3 + 2 + 2) + 3 * (3 + 4));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_row_has_its_limits,
        refusals_name_row_and_reason,
        layouts_need_their_scale_format,
        what_is_taken_runs,
    };
    return RUN_SUITE("product_capability", tests);
}
