// Formats of a section: recipes and element formats by name, alias and glob. See plan_internal.h.
#include <plan_internal.h>

#include <near_words.h>
#include <qg_format_name.h>

#include <string.h>
#include <strings.h>

// The recipes of OCP MX v1.0, whose scale rule is the implementer's choice.
static bool is_ocp(const char *recipe) {
    static const char *const names[] = {"mxfp8", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
                                        "mxfp4", "mxint8",     "mxint6",     "mxint4"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], recipe) == 0)
            return true;
    return false;
}

qg_status qg_word_unreadable(qg_status status, const char *kind, const char *word,
                             const char *(*listed)(size_t), const char *others) {
    if (status != QG_ERROR_ARGUMENT || strncmp(qg_detail(), "unknown", strlen("unknown")) != 0)
        return status;
    return qg_near_hint(qg_near_unknown(kind, word, listed), others);
}

// Presets, then the formats that can be elements.
static const char *format_word(size_t i) {
    size_t presets = 0;
    while (qg_recipe_listed(presets))
        presets++;
    if (i < presets)
        return qg_recipe_listed(i);
    return qg_format_listed(i - presets);
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

static qg_status add_format(qg_plan *plan, qg_axis axis, const char *word, const char *origin,
                            qg_format_list *list) {
    char name[QG_NAME_SIZE];
    qg_plan_format format = {.preset = qg_recipe_is_preset(word)};
    qg_status status = qg_word_unreadable(qg_recipe_find(word, &format.base), "recipe or format",
                                          word, format_word, "--list-names lists all");
    if (!status)
        status = canonical_format(word, format.preset, name);
    if (!status)
        status = qg_word_pool_keep(plan->pool, name, &format.name);
    if (!status && origin)
        status = qg_plan_list_value(plan, axis, format.name, origin, &format.listed);
    if (status)
        return status;
    format.ocp = format.preset && is_ocp(format.name);
    for (int64_t i = 0; i < list->count; i++)
        if (list->items[i].name == format.name) {
            if (!list->items[i].listed)
                list->items[i].listed = format.listed;
            return QG_OK;
        }
    status = qg_grow(&list->items, list->count, &list->capacity, sizeof *list->items);
    if (!status)
        list->items[list->count++] = format;
    return status;
}

// A glob passes over formats that cannot be elements.
static qg_status add_format_glob(qg_plan *plan, qg_axis axis, const char *glob,
                                 qg_format_list *list) {
    qg_list words = {0};
    int64_t matched;
    qg_recipe recipe;
    qg_status status = qg_list_match(glob, format_word, &words, &matched);
    bool usable = false;
    for (int64_t i = 0; i < words.count && !status; i++)
        if (qg_recipe_find(words.items[i], &recipe) == QG_OK) {
            usable = true;
            status = add_format(plan, axis, words.items[i], NULL, list);
        }
    qg_list_free(&words);
    if (!status && !usable)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "no recipe or element format matches '%.60s'; --list-names lists all", glob);
    return status;
}

qg_status qg_expand_formats(qg_plan *plan, const qg_view *view, qg_axis axis,
                            qg_format_list *list) {
    const qg_option *option = qg_view_option(view, axis);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++) {
        const char *word = option->items.items[i];
        status = qg_list_is_glob(word) ? add_format_glob(plan, axis, word, list)
                                       : add_format(plan, axis, word, option->origin, list);
    }
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}
