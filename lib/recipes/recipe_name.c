// The recipe table by name, rules by name, and recipes made from parts. See qg_recipe_name.h.
#include <qg_nearest.h>
#include <qg_recipe_name.h>
#include <qg_recipe_table.h>
#include <qg_scale_rule.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The elements of the MX9 family: sign and m magnitude bits, an all-finite minifloat with one
// exponent bit and m - 1 mantissa bits.
enum {
    QG_FORMAT_F8E1M6 = QG_MINIFLOAT_ID(1, 6, 0),
    QG_FORMAT_F5E1M3 = QG_MINIFLOAT_ID(1, 3, 0),
    QG_FORMAT_F3E1M1 = QG_MINIFLOAT_ID(1, 1, 0),
    QG_FORMAT_F4E1M2 = QG_MINIFLOAT_ID(1, 2, 0)
};

typedef struct named_recipe {
    const char *name;
    qg_recipe recipe;
} named_recipe;

// clang-format off
#define RECIPE_ROW(ID, NAME, ELEMENT, LAYOUT, ROWS, COLUMNS, RULE, STRUCTURE, AMAX, ZERO, NAN_,    \
                   INF, NAN_ELEMENT, HUGE_INVERSE, EPS_ON, EPS, BLOCK_MIN)                         \
    {NAME,                                                                                         \
     {.element = QG_FORMAT_##ELEMENT,                                                              \
      .layout = {QG_LAYOUT_##LAYOUT, ROWS, COLUMNS},                                               \
      .rule = QG_RULE_##RULE,                                                                      \
      .structure = QG_STRUCTURE_##STRUCTURE,                                                       \
      .conversion = {{QG_ROUND_RNE, 0}, QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX},                      \
      .amax = QG_AMAX_##AMAX,                                                                      \
      .zero_scale = QG_EDGE_##ZERO,                                                                \
      .nan_scale = QG_EDGE_##NAN_,                                                                 \
      .inf_scale = QG_EDGE_##INF,                                                                  \
      .nan_element = QG_NAN_ELEMENT_##NAN_ELEMENT,                                                 \
      .eps_on = QG_EPS_##EPS_ON,                                                                   \
      .huge_inverse = QG_HUGE_INVERSE_##HUGE_INVERSE,                                              \
      .eps = EPS,                                                                                  \
      .block_scale_min = BLOCK_MIN,                                                                \
      .fixed_scale = 0.0f,                                                                         \
      .margin = 0}},
// clang-format on

static const named_recipe recipes[] = {QG_RECIPE_TABLE(RECIPE_ROW)};

enum {
#define RECIPE_INDEX(ID, ...) RECIPE_##ID,
    QG_RECIPE_TABLE(RECIPE_INDEX)
#undef RECIPE_INDEX
        RECIPE_COUNT
};

static const char *const rule_names[] = {
#define RULE_NAME(ID, NAME, SCALE) NAME,
    QG_SCALE_RULE_TABLE(RULE_NAME)
#undef RULE_NAME
};

const char *qg_recipe_listed(size_t i) { return i < RECIPE_COUNT ? recipes[i].name : NULL; }

const char *qg_rule_listed(size_t i) { return i < QG_RULE_COUNT ? rule_names[i] : NULL; }

static void lower_case(const char *text, char word[QG_NAME_SIZE]) {
    size_t i = 0;
    for (; text[i] && i < QG_NAME_SIZE - 1; i++)
        word[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
    word[i] = 0;
}

// --------------------------------------------------------------------------------------- policies

// Copies the fields that decide about zero, NaN, infinity and bounds.
static void set_policies(qg_recipe *recipe, const qg_recipe *from) {
    recipe->amax = from->amax;
    recipe->zero_scale = from->zero_scale;
    recipe->nan_scale = from->nan_scale;
    recipe->inf_scale = from->inf_scale;
    recipe->nan_element = from->nan_element;
    recipe->eps_on = from->eps_on;
    recipe->huge_inverse = from->huge_inverse;
    recipe->eps = from->eps;
    recipe->block_scale_min = from->block_scale_min;
}

// The policies of element formats, per scale format: those of mxfp8, of nvfp4, and for binary32
// amax over the finite elements, zero block X = 1, NaN codes as NaN.
static void set_generic_policies(qg_recipe *recipe, qg_format scale_format) {
    static const qg_recipe fp32 = {.amax = QG_AMAX_OVER_FINITE,
                                   .zero_scale = QG_EDGE_ONE,
                                   .nan_scale = QG_EDGE_BY_RULE,
                                   .inf_scale = QG_EDGE_BY_RULE,
                                   .nan_element = QG_NAN_ELEMENT_ENCODED,
                                   .eps_on = QG_EPS_NONE,
                                   .huge_inverse = QG_HUGE_INVERSE_FLT_MAX};
    set_policies(recipe, scale_format == QG_FORMAT_E8M0    ? &recipes[RECIPE_MXFP8].recipe
                         : scale_format == QG_FORMAT_UE4M3 ? &recipes[RECIPE_NVFP4].recipe
                                                           : &fp32);
}

// ------------------------------------------------------------------------------------------ rules

void qg_rule_name(int rule, float fixed_scale, char name[QG_NAME_SIZE]) {
    if (rule < 0 || rule >= QG_RULE_COUNT)
        snprintf(name, QG_NAME_SIZE, "unknown");
    else if (rule == QG_RULE_FIXED)
        snprintf(name, QG_NAME_SIZE, "%s:%a", rule_names[rule], (double)fixed_scale);
    else
        snprintf(name, QG_NAME_SIZE, "%s", rule_names[rule]);
}

static bool scale_is_valid(float x) { return x > 0.0f && qg_float_is_finite(x); }

// The X of fixed:X: a positive finite binary32 number, decimal or hexadecimal.
static qg_status parse_fixed(const char *text, const char *number, float *out) {
    char *end;
    bool starts_as_number = (*number >= '0' && *number <= '9') || *number == '.';
    float x = starts_as_number ? strtof(number, &end) : 0.0f;
    if (!starts_as_number || *end || !scale_is_valid(x))
        return qg_fail(QG_ERROR_ARGUMENT,
                       "rule '%s': write fixed:X with a positive binary32 number X", text);
    *out = x;
    return QG_OK;
}

qg_status qg_rule_parse(const char *text, int *rule, float *fixed_scale) {
    char word[QG_NAME_SIZE];
    lower_case(text, word);
    size_t stem = strlen(rule_names[QG_RULE_FIXED]);
    if (strncmp(word, rule_names[QG_RULE_FIXED], stem) == 0 && (!word[stem] || word[stem] == ':')) {
        float x = 0.0f;
        qg_status status = parse_fixed(text, word[stem] ? text + stem + 1 : "", &x);
        if (status != QG_OK)
            return status;
        *rule = QG_RULE_FIXED;
        *fixed_scale = x;
        return QG_OK;
    }
    for (int i = 0; i < QG_RULE_COUNT && strlen(text) < QG_NAME_SIZE; i++)
        if (strcmp(word, rule_names[i]) == 0) {
            *rule = i;
            *fixed_scale = 0.0f;
            return QG_OK;
        }
    const char *nearest = qg_nearest(text, qg_rule_listed);
    if (nearest)
        return qg_fail(QG_ERROR_ARGUMENT, "unknown scale rule '%s'; the nearest is %s", text,
                       nearest);
    return qg_fail(QG_ERROR_ARGUMENT, "unknown scale rule '%s'", text);
}

// ---------------------------------------------------------------------------------------- recipes

static const named_recipe *preset(const char *name) {
    char word[QG_NAME_SIZE];
    lower_case(name, word);
    for (size_t i = 0; i < RECIPE_COUNT && strlen(name) < QG_NAME_SIZE; i++)
        if (strcmp(word, recipes[i].name) == 0)
            return &recipes[i];
    return NULL;
}

bool qg_recipe_is_preset(const char *name) { return preset(name) != NULL; }

static qg_status check_element(qg_format element) {
    qg_format_info info = qg_format_describe(element);
    char name[QG_NAME_SIZE];
    qg_format_name(element, name);
    if (info.bits == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "element format number %u does not exist", element);
    if (!info.zero)
        return qg_fail(QG_ERROR_ARGUMENT, "%s is no element format: it has no zero", name);
    if (info.bits > 32)
        return qg_fail(QG_ERROR_ARGUMENT, "%s is no element format: it exceeds binary32", name);
    return QG_OK;
}

// Recipes, then formats: for suggestions.
static const char *recipe_or_format(size_t i) {
    return i < RECIPE_COUNT ? recipes[i].name : qg_format_listed(i - RECIPE_COUNT);
}

qg_status qg_recipe_find(const char *name, qg_recipe *out) {
    const named_recipe *row = preset(name);
    if (row) {
        *out = row->recipe;
        return QG_OK;
    }
    qg_format element;
    if (qg_format_parse(name, &element) != QG_OK) {
        // The parser's detail names what is wrong with a minifloat; for other words look further.
        const char *nearest = qg_nearest(name, recipe_or_format);
        if (strncmp(qg_detail(), "unknown", strlen("unknown")) != 0)
            return QG_ERROR_ARGUMENT;
        if (nearest)
            return qg_fail(QG_ERROR_ARGUMENT, "unknown recipe or format '%s'; the nearest is %s",
                           name, nearest);
        return qg_fail(QG_ERROR_ARGUMENT, "unknown recipe or format '%s'", name);
    }
    qg_status status = check_element(element);
    if (status != QG_OK)
        return status;
    *out = (qg_recipe){
        .element = element,
        .layout = {QG_LAYOUT_PER_TENSOR, 0,                    0            },
        .rule = QG_RULE_AMAX,
        .structure = QG_STRUCTURE_PLAIN,
        .conversion = {{QG_ROUND_RNE, 0},    QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX},
    };
    set_generic_policies(out, QG_FORMAT_FP32);
    return QG_OK;
}

// ----------------------------------------------------------------------------------------- checks

static qg_status check_structure(const qg_recipe *recipe) {
    if (recipe->structure == QG_STRUCTURE_PLAIN)
        return QG_OK;
    if (recipe->structure > QG_STRUCTURE_RESIDUAL)
        return qg_fail(QG_ERROR_ARGUMENT, "recipe structure %d does not exist", recipe->structure);
    bool residual = recipe->structure == QG_STRUCTURE_RESIDUAL;
    if (residual ? recipe->rule != QG_RULE_AMAX : recipe->rule != QG_RULE_FLOOR)
        return qg_fail(QG_ERROR_ARGUMENT, "a recipe with %s takes no scale rule but %s",
                       residual ? "two planes" : "pair shifts", residual ? "amax" : "floor");
    int group = residual ? 32 : 16;
    if (recipe->layout.kind != QG_LAYOUT_GROUP || recipe->layout.columns != group)
        return qg_fail(QG_ERROR_ARGUMENT, "a recipe with %s takes no layout but group:%d",
                       residual ? "two planes" : "pair shifts", group);
    return QG_OK;
}

static bool two_level_range_fits(const qg_recipe *recipe) {
    qg_element element = qg_element_of(recipe->element);
    return qg_float_is_finite(element.max * qg_two_level_bound(recipe->rule));
}

static qg_status check_rule(const qg_recipe *recipe) {
    if (recipe->rule >= QG_RULE_COUNT)
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule number %d does not exist", recipe->rule);
    const char *rule = rule_names[recipe->rule];
    char layout[QG_LAYOUT_NAME_SIZE];
    qg_layout_name(recipe->layout, layout);
    if (qg_rule_scale_format(recipe->rule) == QG_FORMAT_UE4M3 &&
        recipe->layout.kind != QG_LAYOUT_GROUP)
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule %s needs a layout group:G, not %s", rule,
                       layout);
    if (qg_rule_has_tensor_scale(recipe->rule) && !two_level_range_fits(recipe))
        return qg_fail(
            QG_ERROR_ARGUMENT,
            "scale rule %s: the element format's largest value times %g exceeds binary32", rule,
            (double)qg_two_level_bound(recipe->rule));
    if (recipe->rule == QG_RULE_DELAYED && recipe->layout.kind != QG_LAYOUT_PER_TENSOR)
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule %s needs the layout per_tensor, not %s", rule,
                       layout);
    if (recipe->rule == QG_RULE_FIXED && !scale_is_valid(recipe->fixed_scale))
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule fixed:X needs a positive finite X");
    return QG_OK;
}

static qg_status check_conversion(const qg_conversion *conversion) {
    qg_rounding rounding = conversion->rounding;
    bool bits_fit =
        !qg_rounding_is_stochastic(rounding) || (rounding.bits >= 1 && rounding.bits <= 32);
    if (rounding.mode >= QG_ROUND_COUNT || !bits_fit)
        return qg_fail(QG_ERROR_ARGUMENT, "rounding mode %d with %d random bits does not exist",
                       rounding.mode, rounding.bits);
    if (conversion->overflow > QG_OVERFLOW_FORMAT || conversion->nan > QG_NAN_TO_ZERO)
        return qg_fail(QG_ERROR_ARGUMENT, "overflow mode %d or NaN mode %d does not exist",
                       conversion->overflow, conversion->nan);
    return QG_OK;
}

static qg_status check_policies(const qg_recipe *recipe) {
    if (recipe->amax > QG_AMAX_OVER_FINITE || recipe->zero_scale > QG_EDGE_NAN ||
        recipe->nan_scale > QG_EDGE_NAN || recipe->inf_scale > QG_EDGE_NAN ||
        recipe->nan_element > QG_NAN_ELEMENT_ZERO || recipe->eps_on > QG_EPS_ON_SCALE ||
        recipe->huge_inverse > QG_HUGE_INVERSE_INPUT_MAX)
        return qg_fail(QG_ERROR_ARGUMENT, "a policy of the recipe has no meaning");
    if (recipe->eps_on != QG_EPS_NONE && !scale_is_valid(recipe->eps))
        return qg_fail(QG_ERROR_ARGUMENT, "the recipe's eps is not a positive finite number");
    if (!(recipe->block_scale_min >= 0.0f && recipe->block_scale_min <= 448.0f))
        return qg_fail(QG_ERROR_ARGUMENT, "the least block scale is not in 0 .. 448");
    return QG_OK;
}

qg_status qg_recipe_check(const qg_recipe *recipe) {
    qg_blocks blocks;
    qg_status status = check_element(recipe->element);
    if (status == QG_OK)
        status = qg_layout_blocks(recipe->layout, 1, 1, &blocks);
    if (status == QG_OK)
        status = check_structure(recipe);
    if (status == QG_OK)
        status = check_rule(recipe);
    if (status == QG_OK)
        status = check_conversion(&recipe->conversion);
    if (status == QG_OK)
        status = check_policies(recipe);
    return status;
}

// ---------------------------------------------------------------------------------------- setters

// Both change nothing on failure.
qg_status qg_recipe_set_layout(qg_recipe *recipe, qg_layout layout) {
    qg_recipe changed = *recipe;
    changed.layout = layout;
    qg_status status = qg_recipe_check(&changed);
    if (status == QG_OK)
        *recipe = changed;
    return status;
}

qg_status qg_recipe_set_rule(qg_recipe *recipe, int rule, float fixed_scale) {
    if (rule < 0 || rule >= QG_RULE_COUNT)
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule number %d does not exist", rule);
    qg_recipe changed = *recipe;
    changed.rule = (uint8_t)rule;
    changed.fixed_scale = rule == QG_RULE_FIXED ? fixed_scale : 0.0f;
    if (qg_rule_scale_format(rule) != qg_rule_scale_format(recipe->rule))
        set_generic_policies(&changed, qg_rule_scale_format(rule));
    qg_status status = qg_recipe_check(&changed);
    if (status == QG_OK)
        *recipe = changed;
    return status;
}

// ------------------------------------------------------------------------------------------- texts

typedef enum recipe_part {
    PART_NAME,
    PART_LAYOUT,
    PART_RULE,
    PART_ROUNDING,
    PART_COUNT
} recipe_part;

// NAME/LAYOUT/RULE/ROUNDING into its words; those that are not there are empty.
static qg_status split_text(const char *text, char words[PART_COUNT][QG_NAME_SIZE]) {
    const char *from = text;
    for (int part = 0; part < PART_COUNT; part++) {
        size_t length = strcspn(from, "/");
        if (length >= QG_NAME_SIZE)
            return qg_fail(QG_ERROR_ARGUMENT, "'%.80s' is no recipe: a part is too long", text);
        memcpy(words[part], from, length);
        words[part][length] = 0;
        from += length;
        from += *from == '/' && part + 1 < PART_COUNT;
    }
    if (*from)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.80s' has more parts than NAME/LAYOUT/RULE/ROUNDING",
                       text);
    return QG_OK;
}

// Layout and rule are checked together: either alone need not fit the recipe that they replace.
static qg_status set_layout_and_rule(qg_recipe *recipe, const char *layout, const char *rule) {
    int number;
    float fixed_scale;
    qg_recipe changed = *recipe;
    qg_status status = *layout ? qg_layout_parse(layout, &changed.layout) : QG_OK;
    if (!status && *rule)
        status = qg_rule_parse(rule, &number, &fixed_scale);
    if (!status)
        status = *rule ? qg_recipe_set_rule(&changed, number, fixed_scale)
                       : qg_recipe_set_layout(recipe, changed.layout);
    if (!status)
        *recipe = changed;
    return status;
}

qg_status qg_recipe_parse(const char *text, qg_recipe *out) {
    char words[PART_COUNT][QG_NAME_SIZE];
    qg_recipe recipe;
    qg_status status = split_text(text, words);
    if (!status)
        status = qg_recipe_find(words[PART_NAME], &recipe);
    if (!status)
        status = set_layout_and_rule(&recipe, words[PART_LAYOUT], words[PART_RULE]);
    if (!status && *words[PART_ROUNDING])
        status = qg_rounding_parse(words[PART_ROUNDING], &recipe.conversion.rounding);
    if (!status)
        *out = recipe;
    return status;
}
