// Formats, layouts, rules and roundings of a section: every combination as a recipe, or as a reason
// to skip it. See plan_internal.h.
#include <plan_internal.h>

#include <near_words.h>
#include <qg_digest.h>
#include <qg_format_name.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct layout_value {
    bool standard; // the format's default
    qg_layout layout;
    const char *name;
    qg_listed *listed;
} layout_value;

typedef struct rule_value {
    bool standard;
    int rule;
    float fixed_scale;
    const char *name;
    qg_listed *listed;
} rule_value;

enum { MOST_VALUES = 1024 }; // of layouts or rules in one section

typedef struct values {
    layout_value layouts[MOST_VALUES];
    int layout_count;
    rule_value rules[MOST_VALUES];
    int rule_count;
} values;

static const char *const ELEMENT_LAYOUTS[] = {"per_tensor", "per_row", "group:128",
                                              "block:128x128"};
static const char *const OCP_RULES[] = {"floor", "even", "rceil"};

// The recipes of OCP MX v1.0, whose scale rule is the implementer's choice.
static bool is_ocp(const char *recipe) {
    static const char *const names[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
                                        "mxfp4", "mxint8",     "mxint6",     "mxint4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], recipe) == 0)
            return true;
    return false;
}

// ---------------------------------------------------------------------------------------- formats

// Presets, then the formats that can be elements.
static const char *format_word(size_t i) {
    size_t presets = 0;
    while (qg_recipe_listed(presets))
        presets++;
    if (i < presets)
        return qg_recipe_listed(i);
    return qg_format_listed(i - presets);
}

// The status of a name that could not be read. An unknown one gets the names near it, or `others`.
static qg_status unreadable(qg_status status, const char *kind, const char *word,
                            const char *(*listed)(size_t), const char *others) {
    if (status != QG_ERROR_ARGUMENT || strncmp(qg_detail(), "unknown", strlen("unknown")) != 0)
        return status;
    return qg_near_hint(qg_near_unknown(kind, word, listed), others);
}

static qg_status canonical_format(const char *word, bool preset, char name[QG_NAME_SIZE]) {
    for (size_t i = 0; preset && qg_recipe_listed(i); i++)
        if (strcasecmp(qg_recipe_listed(i), word) == 0) {
            snprintf(name, QG_NAME_SIZE, "%s", qg_recipe_listed(i));
            return QG_OK;
        }
    qg_format format;
    qg_status status = qg_format_parse(word, &format);
    if (!status)
        qg_format_name(format, name);
    return status;
}

static qg_status add_format(qg_plan *plan, const char *word, const char *origin,
                            qg_expanded *expanded) {
    char name[QG_NAME_SIZE];
    qg_plan_format format = {.preset = qg_recipe_is_preset(word)};
    qg_status status = unreadable(qg_recipe_find(word, &format.base), "recipe or format", word,
                                  format_word, "--list-names lists all");
    if (!status)
        status = canonical_format(word, format.preset, name);
    if (!status)
        status = qg_word_pool_keep(plan->pool, name, &format.name);
    if (!status && origin)
        status = qg_plan_list_value(plan, QG_AXIS_FORMAT, format.name, origin, &format.listed);
    if (status)
        return status;
    for (int64_t i = 0; i < expanded->format_count; i++)
        if (expanded->formats[i].name == format.name) {
            if (!expanded->formats[i].listed)
                expanded->formats[i].listed = format.listed;
            return QG_OK;
        }
    status = qg_grow(&expanded->formats, expanded->format_count, &expanded->format_capacity,
                     sizeof *expanded->formats);
    if (!status)
        expanded->formats[expanded->format_count++] = format;
    return status;
}

// A glob passes over formats that cannot be elements.
static qg_status add_format_glob(qg_plan *plan, const char *glob, qg_expanded *expanded) {
    qg_list words = {0};
    int64_t matched, before = expanded->format_count;
    qg_recipe recipe;
    qg_status status = qg_list_match(glob, format_word, &words, &matched);
    bool usable = false;
    for (int64_t i = 0; i < words.count && !status; i++)
        if (qg_recipe_find(words.items[i], &recipe) == QG_OK) {
            usable = true;
            status = add_format(plan, words.items[i], NULL, expanded);
        }
    qg_list_free(&words);
    if (!status && !usable && expanded->format_count == before)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "no recipe or element format matches '%.60s'; --list-names lists all", glob);
    return status;
}

static qg_status read_formats(qg_plan *plan, const qg_view *view, qg_expanded *expanded) {
    const qg_option *option = qg_view_option(view, QG_AXIS_FORMAT);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++) {
        const char *word = option->items.items[i];
        status = qg_list_is_glob(word) ? add_format_glob(plan, word, expanded)
                                       : add_format(plan, word, option->origin, expanded);
    }
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}

// ------------------------------------------------------------------- layouts, rules and roundings

static qg_status too_many(const char *what) {
    return qg_fail(QG_ERROR_ARGUMENT, "more than %d %s in one section", MOST_VALUES, what);
}

static qg_status add_layout(qg_plan *plan, const char *word, const char *origin, values *out) {
    char name[QG_LAYOUT_NAME_SIZE];
    layout_value value = {.standard = strcmp(word, "default") == 0};
    if (out->layout_count == MOST_VALUES)
        return too_many("layouts");
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
    out->layouts[out->layout_count++] = value;
    return QG_OK;
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
    rule_value value = {.standard = strcmp(word, "default") == 0};
    if (out->rule_count == MOST_VALUES)
        return too_many("rules");
    if (!value.standard) {
        qg_status status = unreadable(qg_rule_parse(word, &value.rule, &value.fixed_scale),
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
    out->rules[out->rule_count++] = value;
    return QG_OK;
}

static qg_status add_rounding(qg_plan *plan, const char *word, const char *origin,
                              qg_expanded *expanded) {
    char name[QG_NAME_SIZE];
    qg_rounding_value value = {0};
    qg_status status = unreadable(qg_rounding_parse(word, &value.rounding), "rounding", word,
                                  qg_rounding_listed, "--list-names lists all");
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

static uint64_t variant_hash(const qg_variant *v) {
    const char *key[] = {v->format, v->layout, v->scale_rule, v->rounding};
    return qg_digest_bytes(key, sizeof key); // texts of the pool: equal pointers are equal texts
}

static bool same_variant(const qg_variant *a, const qg_variant *b) {
    return a->format == b->format && a->layout == b->layout && a->scale_rule == b->scale_rule &&
           a->rounding == b->rounding;
}

static int64_t variant_slot(const qg_plan *plan, const int32_t *slots, int64_t count,
                            const qg_variant *v) {
    int64_t slot = (int64_t)(variant_hash(v) & (uint64_t)(count - 1));
    while (slots[slot] && !same_variant(plan->variants[slots[slot] - 1], v))
        slot = (slot + 1) & (count - 1);
    return slot;
}

static qg_status grow_slots(qg_plan *plan) {
    if (2 * (plan->variant_count + 1) <= plan->slot_count)
        return QG_OK;
    int64_t count = plan->slot_count ? 2 * plan->slot_count : 64;
    int32_t *slots = calloc((size_t)count, sizeof *slots);
    if (!slots)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    for (int32_t i = 0; i < (int32_t)plan->variant_count; i++)
        slots[variant_slot(plan, slots, count, plan->variants[i])] = i + 1;
    free(plan->variant_slots);
    plan->variant_slots = slots;
    plan->slot_count = count;
    return QG_OK;
}

// Keeps a variant once; *index is its place.
static qg_status keep_variant(qg_plan *plan, const qg_variant *variant, int32_t *index) {
    qg_status status = grow_slots(plan);
    if (!status)
        status = qg_grow(&plan->variants, plan->variant_count, &plan->variant_capacity,
                         sizeof *plan->variants);
    if (status)
        return status;
    int64_t slot = variant_slot(plan, plan->variant_slots, plan->slot_count, variant);
    if (!plan->variant_slots[slot]) {
        qg_variant *copy = malloc(sizeof *copy);
        if (!copy)
            return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
        *copy = *variant;
        plan->variants[plan->variant_count++] = copy;
        plan->variant_slots[slot] = (int32_t)plan->variant_count;
    }
    *index = plan->variant_slots[slot] - 1;
    return QG_OK;
}

static bool same_layout(qg_layout a, qg_layout b) {
    return a.kind == b.kind && a.rows == b.rows && a.columns == b.columns;
}

static bool same_rule(const qg_recipe *recipe, const rule_value *rule) {
    return recipe->rule == rule->rule &&
           (rule->rule != QG_RULE_FIXED || recipe->fixed_scale == rule->fixed_scale);
}

// The orders in which layout and rule are set: each may need the other first. BRIDGED goes through
// `amax`, which fits every layout.
typedef enum setting_order { RULE_FIRST, LAYOUT_FIRST, BRIDGED, ORDER_COUNT } setting_order;

static qg_status set_in_order(const qg_recipe *base, const layout_value *layout,
                              const rule_value *rule, setting_order order, qg_recipe *out) {
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
static qg_status make_recipe(const qg_recipe *base, const layout_value *layout,
                             const rule_value *rule, qg_recipe *out) {
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

static void note_fit(qg_listed *listed, const char *reason) {
    if (!listed)
        return;
    if (!reason)
        listed->fits = true;
    else if (!listed->reason)
        listed->reason = reason;
}

static qg_status add_variant(qg_plan *plan, const qg_plan_format *format,
                             const layout_value *layout, const rule_value *rule,
                             const qg_rounding_value *rounding, qg_expanded *expanded) {
    char name[QG_NAME_SIZE];
    qg_variant v = {.format = format->name,
                    .layout = layout->name,
                    .scale_rule = rule->name,
                    .rounding = rounding->name};
    int32_t index;
    qg_format_name(qg_rule_scale_format(rule->rule), name);
    qg_status status = qg_word_pool_keep(plan->pool, name, &v.scale_format);
    if (status)
        return status;
    status = make_recipe(&format->base, layout, rule, &v.recipe);
    if (status == QG_ERROR_MEMORY)
        return status;
    if (status)
        status = qg_word_pool_keep(plan->pool, qg_detail(), &v.skip);
    v.recipe.conversion.rounding = rounding->rounding;
    note_fit(format->listed, v.skip);
    note_fit(layout->listed, v.skip);
    note_fit(rule->listed, v.skip);
    note_fit(rounding->listed, v.skip);
    if (!status)
        status = keep_variant(plan, &v, &index);
    return status ? status : qg_index_append(&expanded->variants, index);
}

// ----------------------------------------------------------- the layouts and rules of one format

static qg_status own_layout(qg_plan *plan, const qg_plan_format *format, values *out) {
    char name[QG_LAYOUT_NAME_SIZE];
    qg_layout_name(format->base.layout, name);
    return add_layout(plan, name, NULL, out);
}

static qg_status own_rule(qg_plan *plan, const qg_plan_format *format, values *out) {
    char name[QG_NAME_SIZE];
    qg_rule_name(format->base.rule, format->base.fixed_scale, name);
    return add_rule(plan, name, NULL, out);
}

static qg_status standard_layouts(qg_plan *plan, const qg_plan_format *format, values *out) {
    qg_status status = QG_OK;
    if (format->preset)
        return own_layout(plan, format, out);
    for (size_t i = 0; i < sizeof ELEMENT_LAYOUTS / sizeof ELEMENT_LAYOUTS[0] && !status; i++)
        status = add_layout(plan, ELEMENT_LAYOUTS[i], NULL, out);
    return status;
}

static qg_status standard_rules(qg_plan *plan, const qg_plan_format *format, values *out) {
    qg_status status = QG_OK;
    if (!format->preset || !is_ocp(format->name))
        return own_rule(plan, format, out);
    for (size_t i = 0; i < sizeof OCP_RULES / sizeof OCP_RULES[0] && !status; i++)
        status = add_rule(plan, OCP_RULES[i], NULL, out);
    return status;
}

// Replaces `default` by what it means for the format, and drops repeated values.
static qg_status resolve(qg_plan *plan, const qg_plan_format *format, const values *asked,
                         values *out) {
    qg_status status = QG_OK;
    out->layout_count = out->rule_count = 0;
    for (int i = 0; i < asked->layout_count && !status; i++) {
        const layout_value *value = &asked->layouts[i];
        if (value->standard)
            status = standard_layouts(plan, format, out);
        else if (out->layout_count == MOST_VALUES)
            status = too_many("layouts");
        else
            out->layouts[out->layout_count++] = *value;
    }
    for (int i = 0; i < asked->rule_count && !status; i++) {
        const rule_value *value = &asked->rules[i];
        if (value->standard)
            status = standard_rules(plan, format, out);
        else if (out->rule_count == MOST_VALUES)
            status = too_many("rules");
        else
            out->rules[out->rule_count++] = *value;
    }
    return status;
}

static void drop_repeated(values *v) {
    int kept = 0;
    for (int i = 0; i < v->layout_count; i++) {
        int j = 0;
        while (j < kept && v->layouts[j].name != v->layouts[i].name)
            j++;
        if (j == kept)
            v->layouts[kept++] = v->layouts[i];
        else if (!v->layouts[j].listed)
            v->layouts[j].listed = v->layouts[i].listed;
    }
    v->layout_count = kept;
    kept = 0;
    for (int i = 0; i < v->rule_count; i++) {
        int j = 0;
        while (j < kept && v->rules[j].name != v->rules[i].name)
            j++;
        if (j == kept)
            v->rules[kept++] = v->rules[i];
        else if (!v->rules[j].listed)
            v->rules[j].listed = v->rules[i].listed;
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
    for (int i = 0; i < count; i++)
        fprintf(stream, "%s%s", i ? "," : "", rules ? v->rules[i].name : v->layouts[i].name);
    if (fclose(stream) != 0)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    qg_status status = qg_word_pool_keep(plan->pool, text, out);
    free(text);
    return status;
}

// Stands for the format where a tensor cannot be read.
static qg_status add_bare(qg_plan *plan, const qg_plan_format *format, qg_expanded *expanded) {
    qg_variant bare = {.format = format->name, .recipe = format->base};
    int32_t index;
    qg_status status = qg_word_pool_keep(plan->pool, "", &bare.layout);
    bare.scale_rule = bare.scale_format = bare.rounding = bare.layout;
    if (!status)
        status = keep_variant(plan, &bare, &index);
    return status ? status : qg_index_append(&expanded->unreadable, index);
}

static qg_status expand_format(qg_plan *plan, qg_plan_format *format, const values *asked,
                               values *own, qg_expanded *expanded) {
    qg_status status = resolve(plan, format, asked, own);
    if (status)
        return status;
    drop_repeated(own);
    for (int l = 0; l < own->layout_count; l++)
        for (int r = 0; r < own->rule_count; r++)
            for (int64_t i = 0; i < expanded->rounding_count && !status; i++)
                status = add_variant(plan, format, &own->layouts[l], &own->rules[r],
                                     &expanded->roundings[i], expanded);
    if (!status)
        status = keep_joined(plan, own, false, &format->layouts);
    if (!status)
        status = keep_joined(plan, own, true, &format->rules);
    return status ? status : add_bare(plan, format, expanded);
}

qg_status qg_expand_variants(qg_plan *plan, const qg_view *view, qg_expanded *expanded) {
    values *asked = calloc(2, sizeof *asked), *own = asked + 1;
    if (!asked)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    qg_status status = read_formats(plan, view, expanded);
    if (!status)
        status = read_words(plan, view, QG_AXIS_LAYOUT, asked, expanded);
    if (!status)
        status = read_words(plan, view, QG_AXIS_SCALE_RULE, asked, expanded);
    if (!status)
        status = read_words(plan, view, QG_AXIS_ROUNDING, asked, expanded);
    for (int64_t i = 0; i < expanded->format_count && !status; i++)
        status = expand_format(plan, &expanded->formats[i], asked, own, expanded);
    free(asked);
    return status;
}
