// The plan as text and cases as command lines. See qg_plan.h and qg_plan_build.h.
//
// The text is itself a plan file: a section per run of formats that share layouts and rules, every
// default written out; the digests of tensors stand in comments.
#include <plan_internal.h>

#include <qg_backend_list.h>

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
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-./:=+,%@", c));
}

static bool needs_quotes(const char *word) {
    if (!*word)
        return true;
    for (; *word; word++)
        if (!is_plain(*word))
            return true;
    return false;
}

// Quotes and backslashes stand outside the quotes, escaped: every shell and popt agree on those.
static bool append_quoted(char *text, size_t size, size_t length, const char *word) {
    const char *opening = "'";
    char piece[8];
    for (; *word; word++) {
        if (*word == '\'' || *word == '\\')
            snprintf(piece, sizeof piece, "'\\%c'", *word);
        else
            snprintf(piece, sizeof piece, "%c", *word);
        int written = snprintf(text + length, size - length, "%s%s", opening, piece);
        if (written < 0 || (size_t)written >= size - length)
            return false;
        length += (size_t)written;
        opening = "";
    }
    int written = snprintf(text + length, size - length, "%s'", opening);
    return written >= 0 && (size_t)written < size - length;
}

bool qg_shell_append(char *text, size_t size, const char *word) {
    size_t before = strlen(text), length = before;
    if (length + 2 >= size)
        return false;
    if (length)
        text[length++] = ' ';
    text[length] = 0;
    bool fits = true;
    if (needs_quotes(word))
        fits = append_quoted(text, size, length, word);
    else
        fits = snprintf(text + length, size - length, "%s", word) < (int)(size - length);
    if (!fits)
        text[before] = 0;
    return fits;
}

static bool append_option(char *text, size_t size, const char *option, const char *value) {
    char word[64];
    snprintf(word, sizeof word, "--%s", option);
    return qg_shell_append(text, size, word) && qg_shell_append(text, size, value);
}

static bool append_data(char *text, size_t size, const qg_case *c, const char *typed) {
    enum { MOST = 8192 };
    if (!c->source->file)
        return append_option(text, size, "data", c->data);
    char item[MOST], escaped[MOST];
    int length = *typed ? snprintf(item, MOST, "tensors:%s#%s", typed, c->tensor)
                        : snprintf(item, MOST, "%s#%s", c->data, c->tensor);
    if (length < 0 || length >= MOST / 2)
        return false;
    qg_list_escape(item, escaped, MOST);
    return append_option(text, size, "data", escaped);
}

// An axis of the case as its option would say it; NULL: left out.
static const char *axis_value(const qg_case *c, qg_axis axis, char number[24]) {
    qg_cell cell = qg_axis_cell(c, qg_axis_describe(axis)->column);
    if (cell.text)
        return *cell.text ? cell.text : NULL;
    if (c->source->file && axis != QG_AXIS_SEED)
        return NULL; // a real tensor brings its sizes
    snprintf(number, 24, "%" PRIu64, axis == QG_AXIS_SEED ? cell.u64 : (uint64_t)cell.i64);
    return number;
}

static bool write_command(const qg_case *c, const char *typed, char *text, size_t size) {
    bool fits = size > 0;
    if (fits)
        text[0] = 0;
    for (int axis = 0; axis < QG_AXIS_COUNT && fits; axis++) {
        char number[24];
        const char *option = qg_axis_describe((qg_axis)axis)->option;
        const char *value = option ? axis_value(c, (qg_axis)axis, number) : NULL;
        if (option && axis == QG_AXIS_DATA)
            fits = append_data(text, size, c, typed);
        else if (value)
            fits = append_option(text, size, option, value);
    }
    return fits;
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
