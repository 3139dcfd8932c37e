// Files of routes as text. See route_text.h.
#include <route_text.h>

#include <number.h>
#include <qg_recipe_name.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char HEADER[] = "gpu\trecipe\tinput\tk_from\tm_from\tkernel\tratio\tsamples";

enum { GPU, RECIPE, INPUT, K_FROM, M_FROM, KERNEL, RATIO, SAMPLES, FIELDS };

// ------------------------------------------------------------------------------------------ lists

qg_status route_list_add(route_list *list, const route_entry *entry) {
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity ? 2 * list->capacity : 64;
        route_entry *grown = realloc(list->items, (size_t)capacity * sizeof *grown);
        if (!grown)
            return qg_fail(QG_ERROR_MEMORY, "out of memory for a route");
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *entry;
    return QG_OK;
}

static int compare(const void *left, const void *right) {
    const route_entry *a = left, *b = right;
    int order = strcmp(a->gpu, b->gpu);
    if (!order)
        order = strcmp(a->recipe, b->recipe);
    if (!order)
        order = strcmp(a->input, b->input);
    if (!order)
        order = (a->row.k_from > b->row.k_from) - (a->row.k_from < b->row.k_from);
    return order ? order : (a->row.m_from > b->row.m_from) - (a->row.m_from < b->row.m_from);
}

void route_list_sort(route_list *list) {
    if (list->count)
        qsort(list->items, (size_t)list->count, sizeof *list->items, compare);
}

void route_list_free(route_list *list) {
    free(list->items);
    *list = (route_list){0};
}

qg_status route_pick(const route_list *list, const char *gpu, const char *recipe, const char *input,
                     qg_route_row **out, size_t *count) {
    *out = NULL;
    *count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const route_entry *e = &list->items[i];
        if (strcmp(e->gpu, gpu) != 0 || strcmp(e->recipe, recipe) != 0 ||
            strcmp(e->input, input) != 0)
            continue;
        qg_route_row *grown = realloc(*out, (*count + 1) * sizeof *grown);
        if (!grown) {
            free(*out);
            *out = NULL;
            *count = 0;
            return qg_fail(QG_ERROR_MEMORY, "out of memory for a route");
        }
        *out = grown;
        grown[(*count)++] = e->row;
    }
    return QG_OK;
}

// ---------------------------------------------------------------------------------------- reading

// A line while it is read; its fields are cut out of `text` in place.
typedef struct line {
    const char *name;
    int64_t number;
    char *fields[FIELDS];
} line;

static qg_status wrong(const line *l, const char *what, const char *value) {
    return qg_fail(QG_ERROR_DATA, "%.200s:%" PRId64 ": %s%s%.60s%s", l->name, l->number, what,
                   value ? " '" : "", value ? value : "", value ? "'" : "");
}

static qg_status split(line *l, char *text) {
    int count = 0;
    for (char *field = text; field; count++) {
        char *end = strchr(field, '\t');
        if (end)
            *end = 0;
        if (count < FIELDS)
            l->fields[count] = field;
        field = end ? end + 1 : NULL;
    }
    return count == FIELDS ? QG_OK : wrong(l, "a row has 8 fields, separated by tabs", NULL);
}

static qg_status take_text(const line *l, int field, const char *name, size_t size, char *out) {
    const char *value = l->fields[field];
    if (!*value || strlen(value) >= size)
        return wrong(l, name, value);
    memcpy(out, value, strlen(value) + 1);
    return QG_OK;
}

static qg_status take_size(const line *l, int field, const char *name, int64_t *out) {
    const char *value = l->fields[field];
    if (!qg_number_i64(value, out) || *out < 1)
        return wrong(l, name, value);
    return QG_OK;
}

static qg_status take_kernel(const line *l, int *out) {
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++)
        if (strcmp(qg_group_kernel_name(kernel), l->fields[KERNEL]) == 0) {
            *out = kernel;
            return QG_OK;
        }
    return wrong(l, "kernel is shared or hopper, not", l->fields[KERNEL]);
}

static qg_status take_ratio(const line *l, double *out) {
    if (!qg_number_f64(l->fields[RATIO], out) || !isfinite(*out) || *out <= 0)
        return wrong(l, "no ratio of times:", l->fields[RATIO]);
    return QG_OK;
}

static qg_status take_row(const line *l, route_entry *e) {
    qg_status status = take_text(l, GPU, "no name of a GPU:", sizeof e->gpu, e->gpu);
    if (!status)
        status = take_text(l, RECIPE, "no recipe:", sizeof e->recipe, e->recipe);
    if (!status)
        status = take_text(l, INPUT, "no input type:", sizeof e->input, e->input);
    if (!status)
        status = take_size(l, K_FROM, "k_from is a number from 1, not", &e->row.k_from);
    if (!status)
        status = take_size(l, M_FROM, "m_from is a number from 1, not", &e->row.m_from);
    if (!status)
        status = take_kernel(l, &e->row.kernel);
    if (!status)
        status = take_ratio(l, &e->row.ratio);
    return status ? status
                  : take_size(l, SAMPLES, "samples is a number from 1, not", &e->row.samples);
}

static qg_status read_line(line *l, char *text, bool *has_header, int64_t before, route_list *out) {
    route_entry e = {0};
    if (*text == '#' || !*text)
        return QG_OK;
    if (!*has_header) {
        *has_header = true;
        return strcmp(text, HEADER) == 0
                   ? QG_OK
                   : wrong(l,
                           "the header is not that of a route (gpu, recipe, input, k_from, "
                           "m_from, kernel, ratio, samples)",
                           NULL);
    }
    qg_status status = split(l, text);
    if (!status)
        status = take_row(l, &e);
    if (!status && out->count > before && compare(&out->items[out->count - 1], &e) >= 0)
        status = wrong(l, "rows ascend by gpu, recipe, input, k_from, m_from", NULL);
    return status ? status : route_list_add(out, &e);
}

static qg_status read_lines(const char *name, char *text, route_list *out) {
    line l = {.name = name};
    bool has_header = false;
    int64_t before = out->count;
    qg_status status = QG_OK;
    for (char *next = text; next && *next && !status;) {
        char *own = next, *end = strchr(own, '\n');
        next = end ? end + 1 : NULL;
        if (end)
            *end = 0;
        l.number++;
        status = read_line(&l, own, &has_header, before, out);
    }
    if (!status && !has_header)
        status = qg_fail(QG_ERROR_DATA, "%.200s: no header line", name);
    if (status)
        out->count = before;
    return status;
}

qg_status route_text_parse(const char *name, const char *text, size_t size, route_list *out) {
    if (size && memchr(text, 0, size))
        return qg_fail(QG_ERROR_DATA, "%.200s: a zero byte in a text", name);
    char *copy = malloc(size + 1);
    if (!copy)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for a route");
    if (size)
        memcpy(copy, text, size);
    copy[size] = 0;
    qg_status status = read_lines(name, copy, out);
    free(copy);
    return status;
}

// ---------------------------------------------------------------------------------------- writing

bool route_text_print(const route_list *list, FILE *stream) {
    fprintf(stream, "%s\n", HEADER);
    for (int64_t i = 0; i < list->count; i++) {
        const route_entry *e = &list->items[i];
        fprintf(stream, "%s\t%s\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t%.4g\t%" PRId64 "\n", e->gpu,
                e->recipe, e->input, e->row.k_from, e->row.m_from,
                qg_group_kernel_name(e->row.kernel), e->row.ratio, e->row.samples);
    }
    return !ferror(stream);
}

void route_recipe(const char *format, const char *layout, const char *rule, const char *rounding,
                  char out[ROUTE_RECIPE_SIZE]) {
    char own_layout[QG_LAYOUT_NAME_SIZE] = "", own_rule[QG_NAME_SIZE] = "";
    qg_recipe recipe;
    bool nearest = strcmp(rounding, "rne") == 0;
    if (qg_recipe_is_preset(format) && qg_recipe_find(format, &recipe) == QG_OK) {
        qg_layout_name(recipe.layout, own_layout);
        qg_rule_name(recipe.rule, recipe.fixed_scale, own_rule);
    }
    if (nearest && strcmp(layout, own_layout) == 0 && strcmp(rule, own_rule) == 0)
        snprintf(out, ROUTE_RECIPE_SIZE, "%s", format);
    else
        snprintf(out, ROUTE_RECIPE_SIZE, "%s %s %s%s%s", format, layout, rule, nearest ? "" : " ",
                 nearest ? "" : rounding);
}
