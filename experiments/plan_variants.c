// Formats, layouts, rules and roundings of a section: every combination as a recipe, or as a reason
// to skip it. See plan_internal.h.
#include <plan_internal.h>

#include <qg_format_name.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 1024 }; // of layouts or rules in one section

typedef struct values {
    qg_layout_value layouts[MOST_VALUES];
    int layout_count;
    qg_rule_value rules[MOST_VALUES];
    int rule_count;
} values;

static const char *const ELEMENT_LAYOUTS[] = {"per_tensor", "per_row", "group:128",
                                              "block:128x128"};
static const char *const OCP_RULES[] = {"floor", "even", "rceil"};

// ------------------------------------------------------------------- layouts, rules and roundings

static qg_status too_many(const char *what) {
    return qg_fail(QG_ERROR_ARGUMENT, "more than %d %s in one section", MOST_VALUES, what);
}

static qg_status push_layout(const qg_layout_value *value, values *out) {
    if (out->layout_count == MOST_VALUES)
        return too_many("layouts");
    out->layouts[out->layout_count++] = *value;
    return QG_OK;
}

static qg_status push_rule(const qg_rule_value *value, values *out) {
    if (out->rule_count == MOST_VALUES)
        return too_many("rules");
    out->rules[out->rule_count++] = *value;
    return QG_OK;
}

static qg_status add_layout(qg_plan *plan, const char *word, const char *origin, values *out) {
    char name[QG_LAYOUT_NAME_SIZE];
    qg_layout_value value = {.standard = strcmp(word, "default") == 0};
    if (!value.standard) {
        qg_status status = qg_layout_parse(word, &value.layout);
        if (status)
            return status;
        qg_layout_name(value.layout, name);
        status = qg_word_pool_keep(plan->pool, name, &value.name);
        if (!status && origin)
            status = qg_plan_list_value(plan, QG_AXIS_LAYOUT, value.name, origin, &value.listed);
        if (status)
            return status;
    }
    return push_layout(&value, out);
}

static const char *known_rules(void) {
    static _Thread_local char text[400];
    size_t length = (size_t)snprintf(text, sizeof text, "known:");
    for (size_t i = 0; qg_rule_listed(i) && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, " %s", qg_rule_listed(i));
    return text;
}

static qg_status add_rule(qg_plan *plan, const char *word, const char *origin, values *out) {
    char name[QG_NAME_SIZE];
    qg_rule_value value = {.standard = strcmp(word, "default") == 0};
    if (!value.standard) {
        qg_status status = qg_word_unreadable(qg_rule_parse(word, &value.rule, &value.fixed_scale),
                                              "scale rule", word, qg_rule_listed, known_rules());
        if (status)
            return status;
        qg_rule_name(value.rule, value.fixed_scale, name);
        status = qg_word_pool_keep(plan->pool, name, &value.name);
        if (!status && origin)
            status =
                qg_plan_list_value(plan, QG_AXIS_SCALE_RULE, value.name, origin, &value.listed);
        if (status)
            return status;
    }
    return push_rule(&value, out);
}

static qg_status add_rounding(qg_plan *plan, const char *word, const char *origin,
                              qg_expanded *expanded) {
    char name[QG_NAME_SIZE];
    qg_rounding_value value = {0};
    qg_status status = qg_word_unreadable(qg_rounding_parse(word, &value.rounding), "rounding",
                                          word, qg_rounding_listed, "--list-names lists all");
    if (status)
        return status;
    qg_rounding_name(value.rounding, name);
    status = qg_word_pool_keep(plan->pool, name, &value.name);
    if (!status && origin)
        status = qg_plan_list_value(plan, QG_AXIS_ROUNDING, value.name, origin, &value.listed);
    for (int64_t i = 0; i < expanded->rounding_count && !status; i++)
        if (expanded->roundings[i].name == value.name)
            return QG_OK;
    if (!status)
        status = qg_grow(&expanded->roundings, expanded->rounding_count,
                         &expanded->rounding_capacity, sizeof *expanded->roundings);
    if (!status)
        expanded->roundings[expanded->rounding_count++] = value;
    return status;
}

// One word of an axis: from a glob (origin NULL) or written out.
static qg_status add_word(qg_plan *plan, qg_axis axis, const char *word, const char *origin,
                          values *out, qg_expanded *expanded) {
    switch (axis) {
    case QG_AXIS_LAYOUT: return add_layout(plan, word, origin, out);
    case QG_AXIS_SCALE_RULE: return add_rule(plan, word, origin, out);
    default: return add_rounding(plan, word, origin, expanded);
    }
}

// A glob passes over words that need a parameter (group:G, fixed:X).
static qg_status add_glob(qg_plan *plan, qg_axis axis, const char *glob, values *out,
                          qg_expanded *expanded) {
    const char *(*listed)(size_t) = axis == QG_AXIS_LAYOUT       ? qg_layout_listed
                                    : axis == QG_AXIS_SCALE_RULE ? qg_rule_listed
                                                                 : qg_rounding_listed;
    qg_list words = {0};
    int64_t matched, usable = 0;
    qg_status status = qg_list_match(glob, listed, &words, &matched);
    for (int64_t i = 0; i < words.count && !status; i++) {
        qg_status parsed = add_word(plan, axis, words.items[i], NULL, out, expanded);
        usable += parsed == QG_OK;
        if (parsed != QG_ERROR_ARGUMENT)
            status = parsed;
    }
    qg_list_free(&words);
    if (!status && usable == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "no name matches '%.60s'; --list-names lists all", glob);
    return status;
}

static qg_status read_words(qg_plan *plan, const qg_view *view, qg_axis axis, values *out,
                            qg_expanded *expanded) {
    const qg_option *option = qg_view_option(view, axis);
    if (option->items.count == 0)
        return add_word(plan, axis, qg_axis_describe(axis)->standard, NULL, out, expanded);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++) {
        const char *word = option->items.items[i];
        status = qg_list_is_glob(word) ? add_glob(plan, axis, word, out, expanded)
                                       : add_word(plan, axis, word, option->origin, out, expanded);
    }
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}

// --------------------------------------------------------------------------------------- variants

const qg_variant *qg_plan_variant(const qg_plan *plan, int32_t index) {
    return plan->variants.items[index];
}

qg_status qg_keep_variant(qg_plan *plan, const qg_variant *variant, int32_t *index) {
    return qg_kept_add(&plan->variants, variant, sizeof *variant,
                       offsetof(qg_variant, scale_format), index);
}

static bool same_layout(qg_layout a, qg_layout b) {
    return a.kind == b.kind && a.rows == b.rows && a.columns == b.columns;
}

static bool same_rule(const qg_recipe *recipe, const qg_rule_value *rule) {
    return recipe->rule == rule->rule &&
           (rule->rule != QG_RULE_FIXED || recipe->fixed_scale == rule->fixed_scale);
}

// The orders in which layout and rule are set: each may need the other first. BRIDGED goes through
// `amax`, which fits every layout.
typedef enum setting_order { RULE_FIRST, LAYOUT_FIRST, BRIDGED, ORDER_COUNT } setting_order;

static qg_status set_in_order(const qg_recipe *base, const qg_layout_value *layout,
                              const qg_rule_value *rule, setting_order order, qg_recipe *out) {
    bool other_layout = !same_layout(base->layout, layout->layout);
    bool other_rule = !same_rule(base, rule);
    qg_status status = QG_OK;
    *out = *base;
    if (order == BRIDGED)
        status = qg_recipe_set_rule(out, QG_RULE_AMAX, 0);
    if (!status && order == RULE_FIRST && other_rule)
        status = qg_recipe_set_rule(out, rule->rule, rule->fixed_scale);
    if (!status && other_layout)
        status = qg_recipe_set_layout(out, layout->layout);
    if (!status && order != RULE_FIRST && (other_rule || order == BRIDGED))
        status = qg_recipe_set_rule(out, rule->rule, rule->fixed_scale);
    return status ? status : qg_recipe_check(out);
}

// On failure the detail is about the layout and rule asked for, not about a step on the way.
static qg_status make_recipe(const qg_recipe *base, const qg_layout_value *layout,
                             const qg_rule_value *rule, qg_recipe *out) {
    qg_recipe wanted = *base;
    wanted.layout = layout->layout;
    wanted.rule = (uint8_t)rule->rule;
    wanted.fixed_scale = rule->fixed_scale;
    qg_status status = qg_recipe_check(&wanted);
    for (int order = 0; order < ORDER_COUNT && !status; order++) {
        status = set_in_order(base, layout, rule, (setting_order)order, out);
        if (!status || (status != QG_ERROR_ARGUMENT && status != QG_ERROR_UNSUPPORTED))
            return status;
        status = order + 1 < ORDER_COUNT ? QG_OK : status;
    }
    *out = *base;
    return status;
}

void qg_note_fit(qg_listed *listed, const char *reason) {
    if (!listed)
        return;
    if (!reason)
        listed->fits = true;
    else if (!listed->reason)
        listed->reason = reason;
}

void qg_note_choice(const qg_choice *choice, const char *reason) {
    qg_note_fit(choice->format->listed, reason);
    qg_note_fit(choice->layout.listed, reason);
    qg_note_fit(choice->rule.listed, reason);
    qg_note_fit(choice->rounding->listed, reason);
}

static qg_status keep_made(qg_plan *plan, const qg_choice *choice, int32_t *index) {
    char name[QG_NAME_SIZE];
    qg_variant v = {.format = choice->format->name,
                    .layout = choice->layout.name,
                    .scale_rule = choice->rule.name,
                    .rounding = choice->rounding->name};
    qg_format_name(qg_rule_scale_format(choice->rule.rule), name);
    qg_status status = qg_word_pool_keep(plan->pool, name, &v.scale_format);
    if (status)
        return status;
    status = make_recipe(&choice->format->base, &choice->layout, &choice->rule, &v.recipe);
    if (status == QG_ERROR_MEMORY)
        return status;
    if (status)
        status = qg_word_pool_keep(plan->pool, qg_detail(), &v.skip);
    v.recipe.conversion.rounding = choice->rounding->rounding;
    return status ? status : qg_keep_variant(plan, &v, index);
}

static qg_status add_choice(qg_plan *plan, const qg_choice *made, qg_expanded *expanded) {
    qg_choice_list *list = &expanded->choices;
    qg_choice choice = *made;
    qg_status status = keep_made(plan, made, &choice.variant);
    if (!status && expanded->tensors)
        qg_note_choice(&choice, qg_plan_variant(plan, choice.variant)->skip);
    if (!status)
        status = qg_grow(&list->items, list->count, &list->capacity, sizeof *list->items);
    if (!status)
        list->items[list->count++] = choice;
    return status;
}

// ----------------------------------------------------------- the layouts and rules of one format

static qg_status own_layout(qg_plan *plan, const qg_plan_format *format, qg_layout_value *out) {
    char name[QG_LAYOUT_NAME_SIZE];
    *out = (qg_layout_value){.layout = format->base.layout};
    qg_layout_name(out->layout, name);
    return qg_word_pool_keep(plan->pool, name, &out->name);
}

static qg_status own_rule(qg_plan *plan, const qg_plan_format *format, qg_rule_value *out) {
    char name[QG_NAME_SIZE];
    *out = (qg_rule_value){.rule = format->base.rule, .fixed_scale = format->base.fixed_scale};
    qg_rule_name(out->rule, out->fixed_scale, name);
    return qg_word_pool_keep(plan->pool, name, &out->name);
}

// Of the grids of kernels alone, whose layouts are groups: a default names no other.
static bool is_standard(const char *layout, bool grids_alone) {
    return !grids_alone || strncmp(layout, "group:", strlen("group:")) == 0;
}

static qg_status standard_layouts(qg_plan *plan, const qg_plan_format *format, bool grids_alone,
                                  values *out) {
    qg_status status = QG_OK;
    qg_layout_value own;
    if (format->preset) {
        status = own_layout(plan, format, &own);
        return status ? status : push_layout(&own, out);
    }
    for (size_t i = 0; i < sizeof ELEMENT_LAYOUTS / sizeof ELEMENT_LAYOUTS[0] && !status; i++)
        if (is_standard(ELEMENT_LAYOUTS[i], grids_alone))
            status = add_layout(plan, ELEMENT_LAYOUTS[i], NULL, out);
    return status;
}

static qg_status standard_rules(qg_plan *plan, const qg_plan_format *format, values *out) {
    qg_status status = QG_OK;
    qg_rule_value own;
    if (!format->ocp) {
        status = own_rule(plan, format, &own);
        return status ? status : push_rule(&own, out);
    }
    for (size_t i = 0; i < sizeof OCP_RULES / sizeof OCP_RULES[0] && !status; i++)
        status = add_rule(plan, OCP_RULES[i], NULL, out);
    return status;
}

// Replaces `default` by what it means for the format, and drops repeated values.
static qg_status resolve(qg_plan *plan, const qg_plan_format *format, const values *asked,
                         bool grids_alone, values *out) {
    qg_status status = QG_OK;
    out->layout_count = out->rule_count = 0;
    for (int i = 0; i < asked->layout_count && !status; i++) {
        qg_layout_value value = asked->layouts[i];
        value.named = true;
        status = value.standard ? standard_layouts(plan, format, grids_alone, out)
                                : push_layout(&value, out);
    }
    for (int i = 0; i < asked->rule_count && !status; i++) {
        qg_rule_value value = asked->rules[i];
        value.named = true;
        status = value.standard ? standard_rules(plan, format, out) : push_rule(&value, out);
    }
    return status;
}

static void join_layouts(qg_layout_value *kept, const qg_layout_value *again) {
    kept->named |= again->named;
    if (!kept->listed)
        kept->listed = again->listed;
}

static void join_rules(qg_rule_value *kept, const qg_rule_value *again) {
    kept->named |= again->named;
    if (!kept->listed)
        kept->listed = again->listed;
}

static void drop_repeated(values *v) {
    int kept = 0;
    for (int i = 0; i < v->layout_count; i++) {
        int j = 0;
        while (j < kept && v->layouts[j].name != v->layouts[i].name)
            j++;
        if (j == kept)
            v->layouts[kept++] = v->layouts[i];
        else
            join_layouts(&v->layouts[j], &v->layouts[i]);
    }
    v->layout_count = kept;
    kept = 0;
    for (int i = 0; i < v->rule_count; i++) {
        int j = 0;
        while (j < kept && v->rules[j].name != v->rules[i].name)
            j++;
        if (j == kept)
            v->rules[kept++] = v->rules[i];
        else
            join_rules(&v->rules[j], &v->rules[i]);
    }
    v->rule_count = kept;
}

static qg_status keep_joined(qg_plan *plan, const values *v, bool rules, const char **out) {
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    int count = rules ? v->rule_count : v->layout_count;
    for (int i = 0; i < count; i++) {
        const char *name = rules ? v->rules[i].name : v->layouts[i].name;
        fprintf(stream, "%s%s", i ? "," : "", name ? name : "default");
    }
    if (fclose(stream) != 0)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    qg_status status = qg_word_pool_keep(plan->pool, text, out);
    free(text);
    return status;
}

qg_status qg_keep_bare(qg_plan *plan, const char *format, const qg_recipe *base, int32_t *index) {
    qg_variant bare = {.format = format, .recipe = *base};
    qg_status status = qg_word_pool_keep(plan->pool, "", &bare.layout);
    bare.scale_rule = bare.scale_format = bare.rounding = bare.layout;
    return status ? status : qg_keep_variant(plan, &bare, index);
}

static qg_status add_bare(qg_plan *plan, const qg_plan_format *format, qg_expanded *expanded) {
    int32_t index;
    qg_status status = qg_keep_bare(plan, format->name, &format->base, &index);
    return status ? status : qg_index_append(&expanded->unreadable, index);
}

// Whether a recipe as operand b may keep what a does not have: then it matters to the plan's text
// whether a layout or rule was named or is the default.
static bool keeps_own(const qg_expanded *expanded) {
    for (int64_t i = 0; i < expanded->formats_b.count; i++)
        if (expanded->formats_b.items[i].preset)
            return true;
    return false;
}

static qg_status expand_format(qg_plan *plan, qg_plan_format *format, const values *asked,
                               values *own, qg_expanded *expanded) {
    bool grids_alone =
        expanded->grids && !expanded->tensors && !expanded->products && !expanded->models;
    qg_status status = resolve(plan, format, asked, grids_alone, own);
    if (status)
        return status;
    drop_repeated(own);
    for (int l = 0; l < own->layout_count; l++)
        for (int r = 0; r < own->rule_count; r++)
            for (int64_t i = 0; i < expanded->rounding_count && !status; i++) {
                qg_choice choice = {.format = format,
                                    .layout = own->layouts[l],
                                    .rule = own->rules[r],
                                    .rounding = &expanded->roundings[i]};
                status = add_choice(plan, &choice, expanded);
            }
    const values *written = keeps_own(expanded) ? asked : own;
    if (!status)
        status = keep_joined(plan, written, false, &format->layouts);
    if (!status)
        status = keep_joined(plan, written, true, &format->rules);
    return status ? status : add_bare(plan, format, expanded);
}

static qg_status expand_asked(qg_plan *plan, const qg_view *view, values *asked, values *own,
                              qg_expanded *expanded) {
    qg_status status = read_words(plan, view, QG_AXIS_LAYOUT, asked, expanded);
    if (!status)
        status = read_words(plan, view, QG_AXIS_SCALE_RULE, asked, expanded);
    if (!status)
        status = read_words(plan, view, QG_AXIS_ROUNDING, asked, expanded);
    for (int64_t i = 0; i < expanded->formats.count && !status; i++)
        status = expand_format(plan, &expanded->formats.items[i], asked, own, expanded);
    return status;
}

qg_status qg_expand_variants(qg_plan *plan, const qg_view *view, qg_expanded *expanded) {
    values *asked = calloc(2, sizeof *asked);
    if (!asked)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    qg_status status = expand_asked(plan, view, asked, asked + 1, expanded);
    free(asked);
    return status;
}

// -------------------------------------------------------------------------------------- operand b

qg_status qg_keep_variant_b(qg_plan *plan, const qg_choice *a, const qg_plan_format *b,
                            int32_t *index) {
    qg_choice choice = *a;
    qg_status status = QG_OK;
    choice.format = b;
    if (b->preset && !a->layout.named)
        status = own_layout(plan, b, &choice.layout);
    if (!status && b->preset && !a->rule.named && !(b->ocp && a->format->ocp))
        status = own_rule(plan, b, &choice.rule);
    return status ? status : keep_made(plan, &choice, index);
}

// ---------------------------------------------------------------------------------- kernel grids

// The recipe with the layout of the choice; its own rule may not fit there, `amax` fits everywhere.
static qg_status make_grid_recipe(const qg_choice *choice, qg_recipe *out) {
    const qg_recipe *base = &choice->format->base;
    qg_rule_value own = {.rule = base->rule, .fixed_scale = base->fixed_scale};
    qg_rule_value amax = {.rule = QG_RULE_AMAX};
    qg_status status = make_recipe(base, &choice->layout, &own, out);
    if (status == QG_OK || status == QG_ERROR_MEMORY)
        return status;
    return make_recipe(base, &choice->layout, &amax, out);
}

qg_status qg_keep_grid_variant(qg_plan *plan, const qg_choice *choice, int32_t *index) {
    qg_variant v = {.format = choice->format->name,
                    .layout = choice->layout.name,
                    .recipe = choice->format->base};
    qg_status status = qg_word_pool_keep(plan->pool, "", &v.scale_rule);
    if (status)
        return status;
    v.scale_format = v.rounding = v.scale_rule;
    if (choice->layout.layout.kind != QG_LAYOUT_GROUP) {
        status =
            qg_word_pool_keep(plan->pool, "only groups along k (group:G) are partitioned", &v.skip);
        return status ? status : qg_keep_variant(plan, &v, index);
    }
    status = make_grid_recipe(choice, &v.recipe);
    if (status == QG_ERROR_MEMORY)
        return status;
    if (status)
        status = qg_word_pool_keep(plan->pool, qg_detail(), &v.skip);
    return status ? status : qg_keep_variant(plan, &v, index);
}
