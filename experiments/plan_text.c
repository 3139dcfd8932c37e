// The plan as text and cases as command lines. See qg_plan.h and qg_plan_build.h.
//
// The text is itself a plan file: a section per run of formats that share layouts and rules, every
// default written out; the digests of tensors stand in comments.
#include <plan_internal.h>

#include <qg_backend_list.h>
#include <text_writer.h>

#include <inttypes.h>
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

void qg_text_tensors(FILE *stream, const qg_plan *plan) {
    for (int64_t i = 0; i < plan->source_count; i++) {
        const qg_plan_source *s = plan->sources[i];
        if (!s->source.file)
            continue;
        fprintf(stream, "# ");
        print_name(stream, s->source.data, false);
        fprintf(stream, "#");
        print_name(stream, s->source.tensor, false);
        if (s->skipped)
            fprintf(stream, ": %s\n", s->skipped);
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
    fputc('\n', stream);
}

static void print_expressions(FILE *stream, const char *option, const qg_expressions *list) {
    for (int64_t i = 0; i < list->count; i++)
        fprintf(stream, "%s %s\n", option, qg_expression_text(list->items[i]));
}

static const char *op_name(size_t i) { return qg_op_listed(i)->name; }

// Formats first .. last - 1 of the section.
static void print_section(FILE *stream, const qg_plan *plan, const qg_expanded *e, int64_t first,
                          int64_t last, int number) {
    fprintf(stream, "[%d]\n", number);
    print_indices(stream, "ops", &e->ops, op_name);
    fprintf(stream, "formats ");
    for (int64_t i = first; i < last; i++)
        fprintf(stream, "%s%s", i > first ? "," : "", e->formats[i].name);
    fprintf(stream, "\nlayouts %s\nrules %s\nrounding ", e->formats[first].layouts,
            e->formats[first].rules);
    for (int64_t i = 0; i < e->rounding_count; i++)
        fprintf(stream, "%s%s", i ? "," : "", e->roundings[i].name);
    fputc('\n', stream);
    print_indices(stream, "inputs", &e->inputs, qg_input_listed);
    print_indices(stream, "backends", &e->backends, qg_backend_named);
    print_data(stream, plan, e);
    if (e->has_laws) {
        print_numbers(stream, "m", &e->m);
        print_numbers(stream, "k", &e->k);
    }
    print_numbers(stream, "seeds", &e->seeds);
    print_expressions(stream, "where", &e->where);
    print_expressions(stream, "exclude", &e->exclude);
}

void qg_text_section(FILE *stream, const qg_plan *plan, const qg_expanded *e, int *number) {
    for (int64_t first = 0, last; first < e->format_count; first = last) {
        for (last = first + 1; last < e->format_count; last++)
            if (e->formats[last].layouts != e->formats[first].layouts ||
                e->formats[last].rules != e->formats[first].rules)
                break;
        print_section(stream, plan, e, first, last, ++*number);
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

static void put_option(qg_text_writer *w, const char *option, const char *value) {
    if (w->length)
        qg_text_writer_put(w, " ", 1);
    qg_text_writer_put(w, "--", 2);
    qg_text_writer_put(w, option, strlen(option));
    put_word(w, value);
}

static void put_data(qg_text_writer *w, const qg_case *c, const char *typed) {
    enum { MOST = 8192 };
    if (!c->source->file) {
        put_option(w, "data", c->data);
        return;
    }
    char item[MOST], escaped[MOST];
    int length = *typed ? snprintf(item, MOST, "tensors:%s#%s", typed, c->tensor)
                        : snprintf(item, MOST, "%s#%s", c->data, c->tensor);
    if (length < 0 || length >= MOST / 2) {
        w->full = true;
        return;
    }
    qg_list_escape(item, escaped, MOST);
    put_option(w, "data", escaped);
}

// An axis of the case as its option would say it; NULL: left out.
static const char *axis_value(const qg_case *c, qg_axis axis, char number[24]) {
    qg_cell cell = qg_axis_cell(c, qg_axis_describe(axis)->column);
    if (cell.text)
        return *cell.text ? cell.text : NULL;
    if (c->source->file && axis != QG_AXIS_SEED)
        return NULL; // a real tensor brings its sizes
    qg_text_writer w = qg_text_writer_on(number, 24);
    qg_text_writer_number(&w, axis == QG_AXIS_SEED ? cell.u64 : (uint64_t)cell.i64, 10);
    return number;
}

static bool write_command(const qg_case *c, const char *typed, char *text, size_t size) {
    qg_text_writer w = qg_text_writer_on(text, size);
    for (int axis = 0; axis < QG_AXIS_COUNT && !w.full; axis++) {
        char number[24];
        const char *option = qg_axis_describe((qg_axis)axis)->option;
        const char *value = option ? axis_value(c, (qg_axis)axis, number) : NULL;
        if (option && axis == QG_AXIS_DATA)
            put_data(&w, c, typed);
        else if (value)
            put_option(&w, option, value);
    }
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
