// The plan as text and cases as command lines. See qg_plan.h and qg_plan_build.h.
//
// The text is itself a plan file: a section per run of formats that share layouts and rules, every
// default written out; the digests of tensors stand in comments.
#include <plan_internal.h>

#include <qg_backend_list.h>
#include <text_writer.h>

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// Control characters of foreign names would open another line. An item of a list has its commas
// escaped, and a # that would open a comment.
static void print_name(FILE *stream, const char *name, bool item) {
    for (const char *c = name; *c; c++) {
        bool special = *c == ',' || (*c == '#' && c > name && c[-1] == ' ');
        fprintf(stream, "%s%c", item && special ? "\\" : "", (unsigned char)*c < ' ' ? '?' : *c);
    }
}

// Whether the source is another node of the model of the source before.
static bool repeats_model(const qg_plan_source *s, int64_t i) {
    return s->source.model && s->place != i;
}

void qg_text_tensors(FILE *stream, const qg_plan *plan) {
    for (int64_t i = 0; i < plan->source_count; i++) {
        const qg_plan_source *s = plan->sources[i];
        if (s->source.law || !*s->source.data || repeats_model(s, i))
            continue;
        fprintf(stream, "# ");
        print_name(stream, s->source.data, false);
        if (s->source.file) {
            fprintf(stream, "#");
            print_name(stream, s->source.tensor, false);
        }
        if (s->skipped)
            fprintf(stream, ": %s\n", s->skipped);
        else if (s->source.recording || s->source.model)
            fprintf(stream, ": digest %016" PRIx64 "\n", s->source.digest);
        else
            fprintf(stream, ": %" PRId64 " x %" PRId64 ", digest %016" PRIx64 "\n", s->source.m,
                    s->source.k, s->source.digest);
    }
}

static void print_indices(FILE *stream, const char *option, const qg_index_list *list,
                          const char *(*name)(size_t)) {
    fprintf(stream, "%s ", option);
    for (int64_t i = 0; i < list->count; i++)
        fprintf(stream, "%s%s", i ? "," : "", name((size_t)list->values[i]));
    fputc('\n', stream);
}

static void print_numbers(FILE *stream, const char *option, const qg_numbers *numbers) {
    fprintf(stream, "%s ", option);
    for (int64_t i = 0; i < numbers->count; i++)
        fprintf(stream, "%s%" PRIu64, i ? "," : "", numbers->values[i]);
    fputc('\n', stream);
}

static void print_data(FILE *stream, const qg_plan *plan, const qg_expanded *e) {
    fprintf(stream, "data ");
    for (int64_t i = 0; i < e->sources.count; i++) {
        const qg_source *s = &plan->sources[e->sources.values[i]]->source;
        if (i)
            fputc(',', stream);
        print_name(stream, s->data, true);
        if (s->file) {
            fputc('#', stream);
            print_name(stream, s->tensor, true);
        }
    }
    for (int64_t i = 0; i < e->models_used.count; i++) {
        const qg_plan_model *model = &plan->models[e->models_used.values[i]];
        if (i || e->sources.count)
            fputc(',', stream);
        print_name(stream, plan->sources[model->first]->source.data, true);
    }
    fputc('\n', stream);
}

static void print_expressions(FILE *stream, const char *option, const qg_expressions *list) {
    for (int64_t i = 0; i < list->count; i++)
        fprintf(stream, "%s %s\n", option, qg_expression_text(list->items[i]));
}

static const char *op_name(size_t i) { return qg_op_listed(i)->name; }

static void print_formats(FILE *stream, const char *option, const qg_plan_format *formats,
                          int64_t count) {
    fprintf(stream, "%s ", option);
    for (int64_t i = 0; i < count; i++)
        fprintf(stream, "%s%s", i ? "," : "", formats[i].name);
    fputc('\n', stream);
}

static bool has_format(const qg_plan_format *formats, int64_t count, const char *name) {
    for (int64_t i = 0; i < count; i++)
        if (formats[i].name == name)
            return true;
    return false;
}

static void print_units_of(FILE *stream, const qg_plan *plan, const qg_index_list *crossed,
                           const qg_plan_format *formats, int64_t count, qg_kept_table *units) {
    for (int64_t i = 0; i < crossed->count; i++) {
        const qg_product *p = qg_plan_product(plan, crossed->values[i]);
        int64_t before = units->count;
        int32_t index;
        if (has_format(formats, count, qg_plan_variant(plan, p->a)->format) &&
            qg_kept_add(units, &p->unit, sizeof p->unit, sizeof p->unit, &index) == QG_OK &&
            units->count > before)
            fprintf(stream, " %s", p->unit);
    }
}

// What `default` and globs stand for is part of the text, each unit once.
static void print_units_found(FILE *stream, const qg_plan *plan, const qg_expanded *e,
                              const qg_plan_format *formats, int64_t count) {
    qg_kept_table units = {0};
    fprintf(stream, "# units found:");
    print_units_of(stream, plan, &e->crossed, formats, count, &units);
    print_units_of(stream, plan, &e->crossed_by_models, formats, count, &units);
    fputc('\n', stream);
    qg_kept_free(&units);
}

static void print_units(FILE *stream, const qg_expanded *e) {
    fprintf(stream, "units ");
    for (int64_t i = 0; i < e->units.count; i++)
        fprintf(stream, "%s%s", i ? "," : "", e->units.items[i].text);
    fputc('\n', stream);
}

static void print_products(FILE *stream, const qg_plan *plan, const qg_expanded *e,
                           const qg_plan_format *formats, int64_t count) {
    if (e->formats_b.count)
        print_formats(stream, "formats-b", e->formats_b.items, e->formats_b.count);
    print_units(stream, e);
    print_units_found(stream, plan, e, formats, count);
    print_indices(stream, "out-types", &e->out_types, qg_input_listed);
    if (!e->products)
        return;
    print_numbers(stream, "bias", &e->bias);
    print_numbers(stream, "n", &e->n);
}

static bool has_data(const qg_expanded *e) { return e->tensors || e->products || e->models; }

static void print_operands(FILE *stream, const qg_expanded *e, const qg_plan_format *first) {
    fprintf(stream, "layouts %s\n", first->layouts);
    if (has_data(e)) {
        fprintf(stream, "rules %s\nrounding ", first->rules);
        for (int64_t i = 0; i < e->rounding_count; i++)
            fprintf(stream, "%s%s", i ? "," : "", e->roundings[i].name);
        fputc('\n', stream);
    }
    if (e->tensors || e->products || e->grids)
        print_indices(stream, "inputs", &e->inputs, qg_input_listed);
}

static void print_inputs(FILE *stream, const qg_plan *plan, const qg_expanded *e) {
    if (has_data(e))
        print_data(stream, plan, e);
    if (e->has_laws || e->grids) {
        print_numbers(stream, "m", &e->m);
        print_numbers(stream, "k", &e->k);
    }
    if (e->grids)
        print_numbers(stream, "sm-counts", &e->sm_counts);
    if (has_data(e))
        print_numbers(stream, "seeds", &e->seeds);
}

// Some formats of the section. Options that none of its operations has are left out.
static void print_section(FILE *stream, const qg_plan *plan, const qg_expanded *e,
                          const qg_plan_format *formats, int64_t count, int number) {
    bool operands = has_data(e) || e->grids;
    fprintf(stream, "[%d]\n", number);
    print_indices(stream, "ops", &e->ops, op_name);
    print_formats(stream, "formats", formats, count);
    if (operands)
        print_operands(stream, e, formats);
    if (has_data(e) || e->recordings)
        print_indices(stream, "backends", &e->backends, qg_backend_named);
    if (operands)
        print_inputs(stream, plan, e);
    if (e->products || e->models)
        print_products(stream, plan, e, formats, count);
    print_expressions(stream, "where", &e->where);
    print_expressions(stream, "exclude", &e->exclude);
}

void qg_text_section(FILE *stream, const qg_plan *plan, const qg_expanded *e, int *number) {
    const qg_plan_format *formats = e->formats.items;
    for (int64_t first = 0, last; first < e->formats.count; first = last) {
        for (last = first + 1; last < e->formats.count; last++)
            if (formats[last].layouts != formats[first].layouts ||
                formats[last].rules != formats[first].rules)
                break;
        print_section(stream, plan, e, formats + first, last - first, ++*number);
    }
}

// ---------------------------------------------------------------------------------- command lines

static bool is_plain(char c) {
    switch (c) {
    case '_':
    case '-':
    case '.':
    case '/':
    case ':':
    case '=':
    case '+':
    case ',':
    case '%':
    case '@': return true;
    default: return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
}

// Quotes and backslashes stand outside the quotes, escaped: every shell and popt agree on those.
static void put_quoted(qg_text_writer *w, const char *word) {
    qg_text_writer_put(w, "'", 1);
    for (; *word; word++) {
        bool escaped = *word == '\'' || *word == '\\';
        qg_text_writer_put(w, "'\\", escaped ? 2 : 0);
        qg_text_writer_put(w, word, 1);
        qg_text_writer_put(w, "'", escaped ? 1 : 0);
    }
    qg_text_writer_put(w, "'", 1);
}

static void put_word(qg_text_writer *w, const char *word) {
    size_t length = 0;
    while (is_plain(word[length]))
        length++;
    if (w->length)
        qg_text_writer_put(w, " ", 1);
    if (length > 0 && !word[length])
        qg_text_writer_put(w, word, length);
    else
        put_quoted(w, word);
}

bool qg_shell_append(char *text, size_t size, const char *word) {
    size_t before = strlen(text);
    qg_text_writer w = {text, size, before, false};
    put_word(&w, word);
    if (w.full)
        text[before] = 0;
    return !w.full;
}

static void put_flag(qg_text_writer *w, const char *option) {
    if (w->length)
        qg_text_writer_put(w, " ", 1);
    qg_text_writer_put(w, "--", 2);
    qg_text_writer_put(w, option, strlen(option));
}

static void put_option(qg_text_writer *w, const char *option, const char *value) {
    put_flag(w, option);
    put_word(w, value);
}

static void put_data(qg_text_writer *w, const qg_case *c, const char *typed) {
    enum { MOST = 8192 };
    char item[MOST], escaped[MOST];
    if (c->source->law) {
        put_option(w, "data", c->data);
        return;
    }
    int length = c->source->model
                     ? snprintf(item, MOST, *typed ? "model:%s" : "%s", *typed ? typed : c->data)
                 : *typed ? snprintf(item, MOST, "tensors:%s#%s", typed, c->tensor)
                          : snprintf(item, MOST, "%s#%s", c->data, c->tensor);
    if (length < 0 || length >= MOST / 2) {
        w->full = true;
        return;
    }
    qg_list_escape(item, escaped, MOST);
    put_option(w, "data", escaped);
}

// A recipe that keeps its own layout (rule) beside an a with another: a's is its default then, and
// naming it would name it for b, too.
static bool is_selected(const qg_case *c, qg_axis axis) {
    bool layout = axis == QG_AXIS_LAYOUT;
    if ((!layout && axis != QG_AXIS_SCALE_RULE) || !c->format_b[0] ||
        !qg_recipe_is_preset(c->format_b))
        return false;
    return strcmp(layout ? c->layout : c->scale_rule, layout ? c->layout_b : c->scale_rule_b) != 0;
}

static bool is_size(qg_axis axis) { return axis == QG_AXIS_M || axis == QG_AXIS_K; }

// An axis of the case as its option would say it; NULL: left out.
static const char *axis_value(const qg_case *c, qg_axis axis, char number[24]) {
    qg_cell cell = qg_axis_cell(c, qg_axis_describe(axis)->column);
    if (!qg_kind_has(c->op->kind, axis) || is_selected(c, axis))
        return NULL;
    if (axis == QG_AXIS_FORMAT_B && strcmp(c->format_b, c->format) == 0)
        return NULL;
    if (cell.text)
        return *cell.text ? cell.text : NULL;
    if (c->source->file && is_size(axis))
        return NULL; // a real tensor brings its sizes
    if (axis == QG_AXIS_N && c->n == 0)
        return NULL;
    qg_text_writer w = qg_text_writer_on(number, 24);
    qg_text_writer_number(&w, axis == QG_AXIS_SEED ? cell.u64 : (uint64_t)cell.i64, 10);
    return number;
}

// Compared with the emulator only where that is asked for, too; put_selection picks the case.
static void put_backends(qg_text_writer *w, const qg_case *c) {
    char text[64];
    snprintf(text, sizeof text, "emulator,%s", c->backend);
    put_option(w, "backends", text);
}

static void put_axis(qg_text_writer *w, const qg_case *c, qg_axis axis, const char *typed) {
    char number[24];
    const char *option = qg_axis_describe(axis)->option;
    if (axis == QG_AXIS_BACKEND && c->against_emulator) {
        put_backends(w, c);
    } else if (axis == QG_AXIS_DATA) {
        if (qg_kind_has(c->op->kind, axis))
            put_data(w, c, typed);
    } else if (axis == QG_AXIS_HAS_BIAS) {
        if (c->bias)
            put_flag(w, option);
    } else {
        const char *value = axis_value(c, axis, number);
        if (value)
            put_option(w, option, value);
    }
}

// `column=value` of --where, with what it gives a meaning to escaped.
static void put_condition(qg_text_writer *where, const char *column, const char *value) {
    if (where->length)
        qg_text_writer_put(where, "&", 1);
    qg_text_writer_put(where, column, strlen(column));
    qg_text_writer_put(where, "=", 1);
    for (; *value; value++) {
        if (strchr("&*?[\\", *value))
            qg_text_writer_put(where, "\\", 1);
        qg_text_writer_put(where, value, 1);
    }
}

enum { WHERE_SIZE = 2 * NAME_MAX + 256 };

// --where for the axes that no option can say.
static void put_selection(qg_text_writer *w, const qg_case *c) {
    char text[WHERE_SIZE];
    qg_text_writer where = qg_text_writer_on(text, sizeof text);
    if (is_selected(c, QG_AXIS_LAYOUT))
        put_condition(&where, "layout", c->layout);
    if (is_selected(c, QG_AXIS_SCALE_RULE))
        put_condition(&where, "scale_rule", c->scale_rule);
    if (c->against_emulator)
        put_condition(&where, "backend", c->backend);
    if (c->source->model)
        put_condition(&where, "tensor", c->tensor);
    if (where.length)
        put_option(w, "where", text);
    w->full |= where.full;
}

// Recorded vectors are known by their file.
static void put_recording(qg_text_writer *w, const qg_case *c) {
    char text[WHERE_SIZE];
    qg_text_writer where = qg_text_writer_on(text, sizeof text);
    put_option(w, "ops", c->op->name);
    put_option(w, "formats", c->format);
    put_condition(&where, "data", c->data);
    put_option(w, "where", text);
    w->full |= where.full;
}

static bool write_command(const qg_case *c, const char *typed, char *text, size_t size) {
    qg_text_writer w = qg_text_writer_on(text, size);
    if (c->op->kind == QG_OP_RECORDING) {
        put_recording(&w, c);
        return !w.full;
    }
    for (int axis = 0; axis < QG_AXIS_COUNT && !w.full; axis++)
        if (qg_axis_describe((qg_axis)axis)->option)
            put_axis(&w, c, (qg_axis)axis, typed);
    put_selection(&w, c);
    return !w.full;
}

bool qg_plan_repro(const qg_plan *plan, const qg_case *c, char *text, size_t size) {
    (void)plan;
    return write_command(c, "", text, size);
}

bool qg_plan_command(const qg_plan *plan, const qg_case *c, char *text, size_t size) {
    (void)plan;
    // The source of every case of a plan is the first member of its plan's record of it.
    const qg_plan_source *s = (const qg_plan_source *)c->source;
    return write_command(c, s->typed, text, size);
}
