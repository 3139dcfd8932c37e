// A section with every default filled in: operations, sizes, types, backends, seeds, expressions.
// Formats and data have files of their own. See plan_internal.h.
#include <plan_internal.h>

#include <near_words.h>
#include <qg_backend_list.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

qg_status qg_index_append(qg_index_list *list, int32_t value) {
    qg_status status = qg_grow(&list->values, list->count, &list->capacity, sizeof *list->values);
    if (!status)
        list->values[list->count++] = value;
    return status;
}

qg_status qg_index_add(qg_index_list *list, int32_t value) {
    for (int64_t i = 0; i < list->count; i++)
        if (list->values[i] == value)
            return QG_OK;
    return qg_index_append(list, value);
}

void qg_expanded_free(qg_expanded *e) {
    free(e->formats.items);
    free(e->formats_b.items);
    free(e->roundings);
    free(e->ops.values);
    free(e->inputs.values);
    free(e->out_types.values);
    free(e->backends.values);
    free(e->units.items);
    free(e->choices.items);
    free(e->sources.values);
    free(e->unreadable.values);
    free(e->crossed.values);
    free(e->models_used.values);
    free(e->crossed_by_models.values);
    free(e->recorded.items);
    free(e->grid_variants.values);
    free(e->data_listed);
    qg_numbers_free(&e->m);
    qg_numbers_free(&e->n);
    qg_numbers_free(&e->k);
    qg_numbers_free(&e->sm_counts);
    qg_numbers_free(&e->seeds);
    qg_numbers_free(&e->bias);
    qg_expressions_free(&e->where);
    qg_expressions_free(&e->exclude);
}

// ------------------------------------------------------------------------ names of small tables

static const char *op_name(size_t i) {
    const qg_op *op = qg_op_listed(i);
    return op ? op->name : NULL;
}

const char *qg_input_listed(size_t i) {
    static const char *const names[] = {"fp32", "bf16", "fp16"};
    return i < sizeof names / sizeof names[0] ? names[i] : NULL;
}

qg_format qg_input_format(size_t i) {
    static const qg_format formats[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    return formats[i];
}

static qg_status unknown_word(const char *word, const char *(*listed)(size_t)) {
    char near[200];
    if (qg_near_words(word, listed, near, sizeof near))
        return qg_fail(QG_ERROR_ARGUMENT, "unknown '%.40s'; the nearest %s %s", word,
                       strstr(near, ", ") ? "are" : "is", near);
    char known[160] = "";
    size_t length = 0;
    for (size_t i = 0; listed(i) && length < sizeof known; i++)
        length += (size_t)snprintf(known + length, sizeof known - length, "%s%s", i ? ", " : "",
                                   listed(i));
    return qg_fail(QG_ERROR_ARGUMENT, "unknown '%.40s'; known: %s", word, known);
}

// An alias (f32, bfloat16) as the name that is listed.
static const char *without_alias(qg_axis axis, const char *word, char name[QG_NAME_SIZE]) {
    qg_format format;
    bool types = axis == QG_AXIS_INPUT_TYPE || axis == QG_AXIS_OUT_TYPE;
    if (!types || qg_format_parse(word, &format) != QG_OK)
        return word;
    qg_format_name(format, name);
    return name;
}

static qg_status read_word(qg_axis axis, const char *given, const char *(*listed)(size_t),
                           qg_index_list *list) {
    char name[QG_NAME_SIZE];
    const char *word = without_alias(axis, given, name);
    bool glob = qg_list_is_glob(word), found = false;
    qg_list matches = {0};
    int64_t matched = 0;
    qg_status status =
        glob ? qg_list_match(word, listed, &matches, &matched) : qg_list_add(&matches, word);
    for (int64_t i = 0; i < matches.count; i++)
        for (size_t j = 0; listed(j) && !status; j++)
            if (strcmp(listed(j), matches.items[i]) == 0) {
                status = qg_index_add(list, (int32_t)j);
                found = true;
            }
    qg_list_free(&matches);
    return status || found ? status : unknown_word(given, listed);
}

static qg_status read_axis(const qg_view *view, qg_axis axis, const char *(*listed)(size_t),
                           qg_index_list *list) {
    const qg_option *option = qg_view_option(view, axis);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++)
        status = read_word(axis, option->items.items[i], listed, list);
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}

// Output types that are written out must fit something.
static qg_status list_out_types(qg_plan *plan, const qg_option *option, qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count; i++)
        for (size_t j = 0; qg_input_listed(j) && !status; j++) {
            char name[QG_NAME_SIZE];
            const char *word = without_alias(QG_AXIS_OUT_TYPE, option->items.items[i], name);
            if (strcmp(word, qg_input_listed(j)) == 0)
                status = qg_plan_list_value(plan, QG_AXIS_OUT_TYPE, qg_input_listed(j),
                                            option->origin, &e->out_listed[j]);
        }
    return status;
}

static qg_status read_types(qg_plan *plan, const qg_view *view, qg_expanded *e) {
    qg_status status = read_axis(view, QG_AXIS_INPUT_TYPE, qg_input_listed, &e->inputs);
    if (!status)
        status = read_axis(view, QG_AXIS_OUT_TYPE, qg_input_listed, &e->out_types);
    if (!status)
        status = list_out_types(plan, qg_view_option(view, QG_AXIS_OUT_TYPE), e);
    if (!status && e->inputs.count == 0)
        status = qg_index_append(&e->inputs, 0);
    if (!status && e->out_types.count == 0)
        status = qg_index_append(&e->out_types, 0);
    return status;
}

static qg_status read_ops(const qg_view *view, qg_expanded *e) {
    qg_status status = read_axis(view, QG_AXIS_OP, op_name, &e->ops);
    bool all = e->ops.count == 0;
    for (int32_t i = 0; all && qg_op_listed((size_t)i) && !status; i++) {
        const qg_op *op = qg_op_listed((size_t)i);
        if (op->by_default && (e->has_others || !op->is_timing))
            status = qg_index_append(&e->ops, i);
    }
    for (int64_t i = 0; i < e->ops.count; i++) {
        qg_op_kind kind = qg_op_listed((size_t)e->ops.values[i])->kind;
        e->tensors |= kind == QG_OP_TENSOR;
        e->products |= kind == QG_OP_PRODUCT;
        e->recordings |= kind == QG_OP_RECORDING;
        e->grids |= kind == QG_OP_GRID;
        e->models |= kind == QG_OP_MODEL;
    }
    return status;
}

static qg_status read_backends(const qg_view *view, qg_expanded *e) {
    qg_status status = read_axis(view, QG_AXIS_BACKEND, qg_backend_named, &e->backends);
    bool all = e->backends.count == 0;
    for (int32_t i = 0; all && qg_backend_named((size_t)i) && !status; i++)
        if (!qg_backend_unavailable(qg_backend_named((size_t)i)))
            status = qg_index_append(&e->backends, i);
    for (int64_t i = 0; i < e->backends.count; i++) {
        bool emulator = qg_backend_is_emulator(qg_backend_named((size_t)e->backends.values[i]));
        e->has_emulator |= emulator;
        e->has_others |= !emulator;
    }
    return status;
}

static qg_status read_tables(qg_plan *plan, const qg_view *view, qg_expanded *e) {
    qg_status status = read_backends(view, e); // the default operations depend on them
    if (!status)
        status = read_ops(view, e);
    if (!status)
        status = qg_check_section_axes(plan, view, e);
    return status ? status : read_types(plan, view, e);
}

// ---------------------------------------------------------------------------------------- numbers

static qg_status read_numbers(const qg_view *view, qg_axis axis, const char *standard,
                              uint64_t lowest, uint64_t highest, qg_numbers *numbers) {
    const qg_option *option = qg_view_option(view, axis);
    if (option->items.count) {
        qg_status status = qg_numbers_read(&option->items, lowest, highest, numbers);
        return status ? qg_fail_at(option->origin, status) : QG_OK;
    }
    qg_list items = {0};
    qg_status status = qg_list_split(standard, &items);
    if (!status)
        status = qg_numbers_read(&items, lowest, highest, numbers);
    qg_list_free(&items);
    return status;
}

static uint64_t largest_of(const qg_numbers *numbers) {
    uint64_t largest = 0;
    for (int64_t i = 0; i < numbers->count; i++)
        if (numbers->values[i] > largest)
            largest = numbers->values[i];
    return largest;
}

// The bound of a level's grid as --exclude would say it: real tensors keep their sizes.
static qg_status exclude_large(const qg_level *level, const char *rows, const qg_numbers *sizes,
                               qg_expanded *e) {
    uint64_t most = (uint64_t)level->most_elements, largest = largest_of(sizes);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->k.count && !status; i++) {
        uint64_t k = e->k.values[i];
        char text[96];
        if (largest <= most / k)
            continue;
        snprintf(text, sizeof text, "k=%llu&%s>%llu&tensor=", (unsigned long long)k, rows,
                 (unsigned long long)(most / k));
        status = qg_expressions_add(&e->exclude, text, qg_axis_columns);
    }
    return status;
}

// The same for products alone: an error is measured where its product would take too long.
static qg_status exclude_long_products(const qg_level *level, qg_expanded *e) {
    uint64_t most = (uint64_t)level->most_products, largest = largest_of(&e->m);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->k.count; i++)
        for (int64_t j = 0; j < e->n.count && !status; j++) {
            uint64_t k = e->k.values[i], n = e->n.values[j];
            uint64_t rows = most / k / n; // floor of most / (k * n), which might overflow
            char text[128];
            if (largest <= rows)
                continue;
            snprintf(text, sizeof text,
                     "op=gemm&k=%llu&n=%llu&m>%llu&tensor=", (unsigned long long)k,
                     (unsigned long long)n, (unsigned long long)rows);
            status = qg_expressions_add(&e->exclude, text, qg_axis_columns);
        }
    return status;
}

static bool is_given(const qg_view *view, qg_axis axis) {
    return qg_view_option(view, axis)->items.count > 0;
}

static qg_status bound_grid(const qg_view *view, const qg_level *level, qg_expanded *e) {
    qg_status status = QG_OK;
    if (!level->most_elements)
        return QG_OK;
    if (!is_given(view, QG_AXIS_M) || !is_given(view, QG_AXIS_K))
        status = exclude_large(level, "m", &e->m, e);
    if (!status && e->products && (!is_given(view, QG_AXIS_N) || !is_given(view, QG_AXIS_K)))
        status = exclude_large(level, "n", &e->n, e);
    bool all_given =
        is_given(view, QG_AXIS_M) && is_given(view, QG_AXIS_N) && is_given(view, QG_AXIS_K);
    if (!status && e->products && level->most_products && !all_given)
        status = exclude_long_products(level, e);
    return status;
}

static const char *level_of(const qg_view *view) {
    const qg_list *items = view->command->level.items.count ? &view->command->level.items
                                                            : &view->section->level.items;
    return items->count ? items->items[0] : "default";
}

static qg_status read_sizes(const qg_view *view, qg_expanded *e) {
    const qg_level *level;
    qg_status status = qg_level_find(level_of(view), &level);
    if (!status)
        status = read_numbers(view, QG_AXIS_M, level->m, 1, INT64_MAX, &e->m);
    if (!status)
        status = read_numbers(view, QG_AXIS_N, level->n, 1, INT64_MAX, &e->n);
    if (!status)
        status = read_numbers(view, QG_AXIS_K, level->k, 1, INT64_MAX, &e->k);
    if (!status)
        status = read_numbers(view, QG_AXIS_SM_COUNT, qg_axis_describe(QG_AXIS_SM_COUNT)->standard,
                              1, INT32_MAX, &e->sm_counts);
    if (!status)
        status = read_numbers(view, QG_AXIS_SEED, qg_axis_describe(QG_AXIS_SEED)->standard, 0,
                              UINT64_MAX, &e->seeds);
    if (!status)
        status = read_numbers(view, QG_AXIS_HAS_BIAS, qg_axis_describe(QG_AXIS_HAS_BIAS)->standard,
                              0, 1, &e->bias);
    return status ? status : bound_grid(view, level, e);
}

// ------------------------------------------------------------------------------------ expressions

static qg_status add_joined(const char *first, const char *second, qg_expressions *out) {
    size_t size = strlen(first) + strlen(second) + 2;
    char *text = malloc(size);
    if (!text)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    snprintf(text, size, "%s&%s", first, second);
    qg_status status = qg_expressions_add(out, text, qg_axis_columns);
    free(text);
    return status;
}

static qg_status add_all(const qg_expressions *from, qg_expressions *out) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < from->count && !status; i++)
        status = qg_expressions_add(out, qg_expression_text(from->items[i]), qg_axis_columns);
    return status;
}

// (a or b) and (c or d), as expressions that or: a&c, a&d, b&c, b&d.
static qg_status combine_where(const qg_expressions *a, const qg_expressions *b,
                               qg_expressions *out) {
    qg_status status = QG_OK;
    if (a->count == 0 || b->count == 0)
        return add_all(a->count ? a : b, out);
    for (int64_t i = 0; i < a->count; i++)
        for (int64_t j = 0; j < b->count && !status; j++)
            status =
                add_joined(qg_expression_text(a->items[i]), qg_expression_text(b->items[j]), out);
    return status;
}

static qg_status read_expressions(const qg_view *view, qg_expanded *e) {
    const qg_section *section = view->section, *command = view->command;
    if (section == command) {
        qg_status status = add_all(&command->where, &e->where);
        return status ? status : add_all(&command->exclude, &e->exclude);
    }
    qg_status status = combine_where(&section->where, &command->where, &e->where);
    if (!status)
        status = add_all(&section->exclude, &e->exclude);
    return status ? status : add_all(&command->exclude, &e->exclude);
}

static qg_status expand_cases(qg_plan *plan, const qg_view *view, qg_expanded *e) {
    qg_status status = QG_OK;
    bool multiplies = e->products || e->models;
    if (e->tensors || multiplies || e->grids)
        status = qg_expand_variants(plan, view, e);
    if (!status && multiplies)
        status = qg_expand_units(plan, view, e);
    if (!status && multiplies)
        status = qg_expand_products(plan, e);
    if (!status && (e->tensors || e->products))
        status = qg_expand_data(plan, view, e);
    if (!status && e->models)
        status = qg_expand_models(plan, view, e);
    if (!status && e->grids)
        status = qg_expand_grids(plan, e);
    return !status && e->recordings ? qg_expand_recordings(plan, e) : status;
}

qg_status qg_expand(qg_plan *plan, const qg_view *view, qg_expanded *expanded) {
    if (qg_view_option(view, QG_AXIS_FORMAT)->items.count == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "%s%s",
                       view->section->origin ? view->section->origin : "--formats is required",
                       view->section->origin ? ": no formats" : " (e.g. --formats e4m3,mxfp8)");
    qg_status status = read_tables(plan, view, expanded);
    if (!status)
        status = read_sizes(view, expanded);
    if (!status)
        status = read_expressions(view, expanded);
    if (!status)
        status = qg_expand_formats(plan, view, QG_AXIS_FORMAT, &expanded->formats);
    if (!status && (expanded->products || expanded->models))
        status = qg_expand_formats(plan, view, QG_AXIS_FORMAT_B, &expanded->formats_b);
    return status ? status : expand_cases(plan, view, expanded);
}
