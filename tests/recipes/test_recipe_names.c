// The recipe table by name, rules by name, and what may be combined.
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <string.h>

static qg_recipe find(const char *name) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

static qg_layout layout_of(const char *text) {
    qg_layout layout;
    ck_assert_int_eq(qg_layout_parse(text, &layout), QG_OK);
    return layout;
}

START_TEST(all_recipes_are_found_and_fit) {
    size_t count = 0;
    for (; qg_recipe_listed(count); count++) {
        qg_recipe recipe = find(qg_recipe_listed(count));
        ck_assert_msg(qg_recipe_check(&recipe) == QG_OK, "%s: %s", qg_recipe_listed(count),
                      qg_detail());
        ck_assert(qg_recipe_is_preset(qg_recipe_listed(count)));
        ck_assert_int_eq(recipe.margin, 0);
        ck_assert_int_eq(recipe.conversion.overflow, QG_OVERFLOW_SATURATE);
        ck_assert_int_eq(recipe.conversion.rounding.mode, QG_ROUND_RNE);
    }
    ck_assert(count > 0);
    ck_assert_int_eq(find("MXFP8").rule, QG_RULE_FLOOR);
}
END_TEST

START_TEST(an_element_format_is_per_tensor_amax) {
    static const char *const names[] = {"e4m3", "f8e4m3fn", "e2m1",   "int8_full",
                                        "bf16", "fp32",     "f4e1m2", "binary8p3se"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        qg_recipe r = find(names[i]);
        ck_assert(!qg_recipe_is_preset(names[i]));
        ck_assert_int_eq(r.layout.kind, QG_LAYOUT_PER_TENSOR);
        ck_assert_int_eq(r.rule, QG_RULE_AMAX);
        ck_assert_int_eq(r.amax, QG_AMAX_OVER_FINITE);
        ck_assert_int_eq(r.zero_scale, QG_EDGE_ONE);
        ck_assert_int_eq(r.nan_element, QG_NAN_ELEMENT_ENCODED);
    }
}
END_TEST

static void fails(const char *name, const char *detail) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find(name, &recipe), QG_ERROR_ARGUMENT);
    ck_assert_msg(strstr(qg_detail(), detail) != NULL, "'%s' lacks '%s'", qg_detail(), detail);
}

START_TEST(unknown_and_unusable_names_say_why) {
    fails("mxpf8", "nearest is mxfp8");
    fails("nvpf4", "nearest is nvfp4");
    fails("e4m4", "nearest is e4m3");
    fails("e8m0", "no zero");
    fails("fp64", "exceeds binary32");
    fails("f9e4m4", "at most 8 bits");
    fails("", "unknown");
    fails("something_else_entirely_that_is_longer_than_any_name_there_is", "unknown");
}
END_TEST

START_TEST(rules_by_name) {
    static const struct {
        const char *text, *printed;
        int rule;
        float fixed;
    } rows[] = {
        {"floor",          "floor",                QG_RULE_FLOOR,         0        },
        {"RCEIL_mul",      "rceil_mul",            QG_RULE_RCEIL_MUL,     0        },
        {"four_over_six",  "four_over_six",        QG_RULE_FOUR_OVER_SIX, 0        },
        {"fixed:0.125",    "fixed:0x1p-3",         QG_RULE_FIXED,         0.125f   },
        {"fixed:0x1.8p-2", "fixed:0x1.8p-2",       QG_RULE_FIXED,         0.375f   },
        {"FIXED:1e-3",     "fixed:0x1.0624dep-10", QG_RULE_FIXED,         1e-3f    },
        {"fixed:1e-45",    "fixed:0x1p-149",       QG_RULE_FIXED,         0x1p-149f}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rule = -1;
        float fixed = -1;
        char name[QG_NAME_SIZE];
        ck_assert_msg(qg_rule_parse(rows[i].text, &rule, &fixed) == QG_OK, "%s", qg_detail());
        ck_assert_int_eq(rule, rows[i].rule);
        ck_assert_float_eq(fixed, rows[i].fixed);
        qg_rule_name(rule, fixed, name);
        ck_assert_str_eq(name, rows[i].printed);
        ck_assert_int_eq(qg_rule_parse(name, &rule, &fixed), QG_OK);
        ck_assert_float_eq(fixed, rows[i].fixed);
    }
    size_t count = 0;
    while (qg_rule_listed(count))
        count++;
    ck_assert_int_eq((int)count, QG_RULE_COUNT);
    static const char *const bad[] = {"fixed",       "fixed:",    "fixed:0",  "fixed:-1",
                                      "fixed:nan",   "fixed:inf", "fixed:1x", "fixed:1e99",
                                      "fixed:1e-60", "flor",      "",         "fixed: 1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int rule = 77;
        float fixed = 77;
        ck_assert_msg(qg_rule_parse(bad[i], &rule, &fixed) == QG_ERROR_ARGUMENT, "'%s'", bad[i]);
        ck_assert_int_eq(rule, 77);
    }
    int rule;
    float fixed;
    qg_rule_parse("flor", &rule, &fixed);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "nearest is floor"));
}
END_TEST

START_TEST(a_rule_of_another_scale_format_brings_its_policies) {
    qg_recipe r = find("deepseek_act128");
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_RCEIL, 0), QG_OK);
    ck_assert_int_eq(r.eps_on, QG_EPS_NONE);
    ck_assert_int_eq(r.zero_scale, QG_EDGE_SMALLEST);
    ck_assert_int_eq(r.nan_scale, QG_EDGE_NAN);
    ck_assert_int_eq(r.inf_scale, QG_EDGE_NAN);
    ck_assert_int_eq(r.amax, QG_AMAX_PROPAGATES_NAN);
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_TWO_LEVEL, 0), QG_OK);
    ck_assert_int_eq(r.amax, QG_AMAX_IGNORES_NAN);
    ck_assert_int_eq(r.nan_element, QG_NAN_ELEMENT_MAX);
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_FIXED, 2), QG_OK);
    ck_assert_int_eq(r.amax, QG_AMAX_OVER_FINITE);
    ck_assert_int_eq(r.zero_scale, QG_EDGE_ONE);
    ck_assert_int_eq(r.nan_element, QG_NAN_ELEMENT_ENCODED);
    ck_assert_float_eq(r.fixed_scale, 2);
    r = find("nvfp4_torchao");
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_FLOOR, 0), QG_OK);
    ck_assert_float_eq(r.block_scale_min, 0);
}
END_TEST

START_TEST(a_rule_of_the_same_scale_format_keeps_them) {
    qg_recipe r = find("te_mxfp8");
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_FLOOR, 0), QG_OK);
    ck_assert_int_eq(r.inf_scale, QG_EDGE_LARGEST);
    r = find("deepseek_act128");
    ck_assert_int_eq(qg_recipe_set_rule(&r, QG_RULE_AMAX_RCP, 0), QG_OK);
    ck_assert_int_eq(r.eps_on, QG_EPS_ON_AMAX);
}
END_TEST

static void rule_fails(const char *name, const char *layout, int rule, float fixed) {
    qg_recipe r = find(name);
    if (layout)
        ck_assert_int_eq(qg_recipe_set_layout(&r, layout_of(layout)), QG_OK);
    qg_recipe before = r;
    ck_assert_msg(qg_recipe_set_rule(&r, rule, fixed) == QG_ERROR_ARGUMENT, "%s rule %d", name,
                  rule);
    ck_assert_int_eq(r.rule, before.rule);
}

static void layout_fails(const char *name, const char *layout) {
    qg_recipe r = find(name);
    ck_assert_msg(qg_recipe_set_layout(&r, layout_of(layout)) == QG_ERROR_ARGUMENT, "%s %s", name,
                  layout);
}

START_TEST(impossible_combinations_are_errors) {
    rule_fails("e4m3", NULL, QG_RULE_TWO_LEVEL, 0);
    rule_fails("e4m3", "block:16x16", QG_RULE_AMAX_UE4M3, 0);
    rule_fails("bf16", "group:16", QG_RULE_TWO_LEVEL, 0);
    rule_fails("mxfp8", NULL, QG_RULE_DELAYED, 0);
    rule_fails("mx9", NULL, QG_RULE_RCEIL, 0);
    rule_fails("msfp12", NULL, QG_RULE_AMAX, 0);
    rule_fails("rlx_mxfp4x2", NULL, QG_RULE_AMAX_RCP, 0);
    rule_fails("e4m3", NULL, QG_RULE_FIXED, 0);
    rule_fails("e4m3", NULL, QG_RULE_FIXED, -1);
    rule_fails("e4m3", NULL, QG_RULE_COUNT, 0);
    rule_fails("e4m3", NULL, -1, 0);
    layout_fails("nvfp4", "per_tensor");
    layout_fails("rlx_nvfp4", "per_row");
    layout_fails("te_delayed_e4m3", "group:128");
    layout_fails("mx6", "group:32");
    layout_fails("rlx_mxfp4x2", "group:16");
    qg_recipe r = find("mx6");
    ck_assert_int_eq(qg_recipe_set_layout(&r, layout_of("group:16")), QG_OK); // its own
    r = find("mxfp8");
    ck_assert_int_eq(qg_recipe_set_layout(&r, layout_of("block:32x32")), QG_OK);
    ck_assert_int_eq(qg_recipe_set_layout(&r, layout_of("per_tensor")), QG_OK);
    r.conversion.rounding.mode = QG_ROUND_STOCHASTIC_A;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT); // no random bits
    r.conversion.rounding.bits = 33;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT);
    r.conversion.rounding.bits = 32;
    ck_assert_int_eq(qg_recipe_check(&r), QG_OK);
    r.eps_on = QG_EPS_ON_AMAX;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT);
    r.eps_on = 9;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT);
    r.eps_on = 0;
    r.element = QG_FORMAT_E8M0;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT);
    r.element = 999;
    ck_assert_int_eq(qg_recipe_check(&r), QG_ERROR_ARGUMENT);
}
END_TEST

static qg_recipe parse(const char *text) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_parse(text, &recipe) == QG_OK, "%s: %s", text, qg_detail());
    return recipe;
}

static bool are_equal(const qg_recipe *a, const qg_recipe *b) {
    return a->element == b->element && a->layout.kind == b->layout.kind &&
           a->layout.rows == b->layout.rows && a->layout.columns == b->layout.columns &&
           a->rule == b->rule && a->structure == b->structure && a->amax == b->amax &&
           a->nan_scale == b->nan_scale &&
           a->conversion.rounding.mode == b->conversion.rounding.mode;
}

START_TEST(a_text_replaces_parts_and_keeps_what_is_empty) {
    qg_recipe r = parse("mxfp8"), found = find("mxfp8");
    ck_assert(are_equal(&r, &found));
    r = parse("MXFP8///"); // as many parts as there are, all empty
    ck_assert(are_equal(&r, &found));
    r = parse("e4m3/block:2x8");
    ck_assert_int_eq(r.layout.kind, QG_LAYOUT_BLOCK);
    ck_assert_int_eq(r.layout.rows, 2);
    ck_assert_int_eq(r.layout.columns, 8);
    ck_assert_int_eq(r.rule, QG_RULE_AMAX);
    r = parse("mxfp4//rceil/stochastic:A:16");
    ck_assert_int_eq(r.element, find("mxfp4").element);
    ck_assert_int_eq(r.layout.columns, 32);
    ck_assert_int_eq(r.rule, QG_RULE_RCEIL);
    ck_assert_int_eq(r.conversion.rounding.mode, QG_ROUND_STOCHASTIC_A);
    ck_assert_int_eq(r.conversion.rounding.bits, 16);
    r = parse("e5m2///rtz");
    ck_assert_int_eq(r.layout.kind, QG_LAYOUT_PER_TENSOR);
    ck_assert_int_eq(r.conversion.rounding.mode, QG_ROUND_RTZ);
    r = parse("e4m3//fixed:0x1.8p-2");
    ck_assert_int_eq(r.rule, QG_RULE_FIXED);
    ck_assert_float_eq(r.fixed_scale, 0.375f);
}
END_TEST

// nvfp4's own rule takes no layout but a group, and amax_ue4m3 takes none but one.
START_TEST(layout_and_rule_of_a_text_are_checked_together) {
    qg_recipe r = parse("nvfp4/per_tensor/amax");
    ck_assert_int_eq(r.layout.kind, QG_LAYOUT_PER_TENSOR);
    ck_assert_int_eq(r.rule, QG_RULE_AMAX);
    r = parse("e4m3/group:16/amax_ue4m3");
    ck_assert_int_eq(r.layout.columns, 16);
    ck_assert_int_eq(r.rule, QG_RULE_AMAX_UE4M3);
    ck_assert_int_eq(r.amax, QG_AMAX_IGNORES_NAN); // its policies come with it
    r = parse("te_delayed_e4m3/group:128/floor");
    ck_assert_int_eq(r.rule, QG_RULE_FLOOR);
}
END_TEST

START_TEST(malformed_texts_say_why) {
    static const struct {
        const char *text, *detail;
    } rows[] = {
        {"",                                                      "unknown recipe or format ''"},
        {"/group:32",                                             "unknown recipe or format ''"},
        {"mxpf8/group:32",                                        "nearest is mxfp8"           },
        {"mxfp8/gruop:32",                                        "gruop:32"                   },
        {"mxfp8/group:0",                                         "group:0"                    },
        {"mxfp8//flor",                                           "nearest is floor"           },
        {"mxfp8///rnee",                                          "rnee"                       },
        {"mxfp8///rne/",                                          "more parts than"            },
        {"mxfp8////",                                             "more parts than"            },
        {"nvfp4/per_tensor",                                      "needs a layout group:G"     },
        {"e4m3//amax_ue4m3",                                      "needs a layout group:G"     },
        {"e4m3/group:16/delayed",                                 "needs the layout per_tensor"},
        {"mx6/group:32",                                          "no layout but group:16"     },
        {"rlx_mxfp4x2//floor",                                    "no scale rule but amax"     },
        {"e4m3/a_layout_of_a_name_longer_than_any_name_there_is", "a part is too long"         },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qg_recipe r = find("mx9"), before = r;
        ck_assert_msg(qg_recipe_parse(rows[i].text, &r) == QG_ERROR_ARGUMENT, "'%s'", rows[i].text);
        REQUIRE(strstr(qg_detail(), rows[i].detail), "'%s': '%s' lacks '%s'", rows[i].text,
                qg_detail(), rows[i].detail);
        ck_assert(are_equal(&r, &before));
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {all_recipes_are_found_and_fit,
                            an_element_format_is_per_tensor_amax,
                            unknown_and_unusable_names_say_why,
                            rules_by_name,
                            a_rule_of_another_scale_format_brings_its_policies,
                            a_rule_of_the_same_scale_format_keeps_them,
                            impossible_combinations_are_errors,
                            a_text_replaces_parts_and_keeps_what_is_empty,
                            layout_and_rule_of_a_text_are_checked_together,
                            malformed_texts_say_why};
    return RUN_SUITE("recipe_names", tests);
}
