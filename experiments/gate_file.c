// Reads a gates file: tab-separated rows of text. See gate.h.
#include <gate.h>
#include <gate_baseline.h>

#include <table_cell.h>
#include <text_lines.h>

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// In this order, written out in the header line.
static const char *const COLUMNS[] = {"id",    "kind",   "where",  "metric",
                                      "limit", "reason", "expires"};
enum { ID, KIND, WHERE, METRIC, LIMIT, REASON, EXPIRES, COLUMN_COUNT };

static const char *const KINDS[] = {"bits",      "consistency", "bound", "drift",
                                    "invariant", "perf",        "known"};
enum { KIND_COUNT = sizeof KINDS / sizeof KINDS[0] };

typedef struct reader {
    const char *path;
    int line;
    bool has_header;
    qg_gates *gates;
    int room;
} reader;

static qg_status refuse(const reader *r, const char *what, const char *word) {
    return qg_fail(QG_ERROR_DATA, "%.300s:%d: %s%.80s", r->path, r->line, what, word);
}

// The fields of a line, cut in place; -1: more than there may be.
static int cut(char *line, char *fields[COLUMN_COUNT]) {
    int count = 0;
    for (char *rest = line, *field; (field = strsep(&rest, "\t"));) {
        if (count == COLUMN_COUNT)
            return -1;
        fields[count++] = qg_text_trimmed(field);
    }
    return count;
}

static qg_status check_header(reader *r, char *const fields[COLUMN_COUNT], int count) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (i >= count || strcmp(fields[i], COLUMNS[i]) != 0)
            return refuse(r,
                          "the first line must name the columns id, kind, where, metric, limit, "
                          "reason, expires; missing: ",
                          COLUMNS[i]);
    r->has_header = true;
    return QG_OK;
}

bool qg_gate_is_day(const char *text) {
    struct tm day = {0};
    char canonical[16];
    const char *end = strptime(text, "%Y-%m-%d", &day);
    if (!end || *end)
        return false;
    timegm(&day); // February 30 becomes a day of March
    return strftime(canonical, sizeof canonical, "%Y-%m-%d", &day) > 0 &&
           strcmp(canonical, text) == 0;
}

static qg_status set_kind(const reader *r, const char *word, qg_gate *gate) {
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(word, KINDS[i]) == 0) {
            gate->kind = (qg_gate_kind)i;
            return QG_OK;
        }
    return refuse(
        r, "the kind is none of bits, consistency, bound, drift, invariant, perf, known: ", word);
}

static qg_status check_fields(const reader *r, char *const f[COLUMN_COUNT], const qg_gate *gate) {
    if (!*f[ID])
        return refuse(r, "the gate has no id", "");
    for (int i = 0; i < r->gates->count; i++)
        if (strcmp(r->gates->items[i].id, f[ID]) == 0)
            return refuse(r, "a second gate with the id ", f[ID]);
    if (!*f[REASON])
        return refuse(r, "every gate says its reason; there is none for ", f[ID]);
    if (*f[EXPIRES] && !qg_gate_is_day(f[EXPIRES]))
        return refuse(r, "expires must be a day, YYYY-MM-DD, not ", f[EXPIRES]);
    if (gate->kind == QG_GATE_KNOWN && !*f[EXPIRES])
        return refuse(r, "a known failure needs the day on which it expires: ", f[ID]);
    if (gate->kind != QG_GATE_KNOWN && *f[EXPIRES])
        return refuse(r, "only rows of kind known expire: ", f[ID]);
    return QG_OK;
}

static void gate_free(qg_gate *gate) {
    qg_formula_free(gate->value);
    qg_limit_free(&gate->bound);
    free(gate->id);
    free(gate->metric);
    free(gate->limit);
    free(gate->reason);
    free(gate->expires);
    qg_expression_free(gate->where);
}

static qg_status explain(const reader *r, const char *field, qg_status status) {
    char why[300];
    if (status == QG_OK || status == QG_ERROR_MEMORY)
        return status;
    snprintf(why, sizeof why, "%.299s", qg_detail());
    return qg_fail(QG_ERROR_DATA, "%.200s:%d: %s: %s", r->path, r->line, field, why);
}

static bool is(const char *text, const char *wanted) { return strcmp(text, wanted) == 0; }

// What is compared, as words or as formulas.
static qg_status read_limit(const reader *r, qg_gate *gate) {
    if (gate->kind == QG_GATE_KNOWN)
        return *gate->metric ? QG_OK
                             : refuse(r, "metric must say which gates fail, * for all: ", gate->id);
    if (gate->kind == QG_GATE_CONSISTENCY)
        return (is(gate->metric, "metrics") && is(gate->limit, "equal sums")) ||
                       (is(gate->metric, "content_digest") && is(gate->limit, "equal file"))
                   ? QG_OK
                   : refuse(r,
                            "consistency knows 'metrics' with limit 'equal sums', and "
                            "'content_digest' with 'equal file', not ",
                            gate->limit);
    if (gate->kind == QG_GATE_BITS && is(gate->metric, "output_digest"))
        return is(gate->limit, "equal backends") || is(gate->limit, "equal baseline")
                   ? QG_OK
                   : refuse(r, "digests are 'equal backends' or 'equal baseline', not ",
                            gate->limit);
    if (gate->kind == QG_GATE_DRIFT && !qg_baseline_holds(gate->metric))
        return refuse(r, "drift is of a metric that baselines hold, not of ", gate->metric);
    qg_status status = qg_formula_parse(gate->metric, qg_gate_name_find, &gate->value);
    if (status != QG_OK)
        return explain(r, "metric", status);
    return explain(r, "limit", qg_limit_parse(gate->limit, qg_gate_name_find, &gate->bound));
}

static qg_status fill(const reader *r, char *const f[COLUMN_COUNT], qg_gate *gate) {
    qg_status status = set_kind(r, f[KIND], gate);
    if (status == QG_OK)
        status = check_fields(r, f, gate);
    if (status != QG_OK)
        return status;
    gate->line = r->line;
    gate->id = strdup(f[ID]);
    gate->metric = strdup(f[METRIC]);
    gate->limit = strdup(f[LIMIT]);
    gate->reason = strdup(f[REASON]);
    gate->expires = strdup(f[EXPIRES]);
    if (!gate->id || !gate->metric || !gate->limit || !gate->reason || !gate->expires)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the gates of %.300s", r->path);
    if (*f[WHERE] && strcmp(f[WHERE], "*") != 0 &&
        qg_expression_parse(f[WHERE], qg_table_columns, &gate->where) != QG_OK) {
        char why[300];
        snprintf(why, sizeof why, "%.299s", qg_detail());
        return qg_fail(QG_ERROR_DATA, "%.200s:%d: where: %s", r->path, r->line, why);
    }
    return read_limit(r, gate);
}

static qg_status add(reader *r, char *const fields[COLUMN_COUNT]) {
    qg_gates *gates = r->gates;
    if (gates->count == r->room) {
        int room = r->room ? 2 * r->room : 32;
        qg_gate *items = realloc(gates->items, (size_t)room * sizeof *items);
        if (!items)
            return qg_fail(QG_ERROR_MEMORY, "no memory for the gates of %.300s", r->path);
        gates->items = items;
        r->room = room;
    }
    qg_gate gate = {0};
    qg_status status = fill(r, fields, &gate);
    if (status == QG_OK)
        gates->items[gates->count++] = gate;
    else
        gate_free(&gate);
    return status;
}

static qg_status take_line(reader *r, char *line) {
    char *fields[COLUMN_COUNT];
    r->line++;
    size_t length = strlen(line);
    if (length && line[length - 1] == '\r')
        line[length - 1] = '\0';
    if (!*line || *line == '#')
        return QG_OK;
    int count = cut(line, fields);
    if (count < 0)
        return refuse(r, "more than seven fields", "");
    if (!r->has_header)
        return check_header(r, fields, count);
    // The last columns may be left out.
    static char nothing[] = "";
    for (; count < COLUMN_COUNT && count >= REASON; count++)
        fields[count] = nothing;
    if (count < COLUMN_COUNT)
        return refuse(r, "the row ends before its column ", COLUMNS[count]);
    return add(r, fields);
}

// A row that names no gate would excuse nothing, and never say so.
static qg_status check_known(reader *r) {
    for (int i = 0; i < r->gates->count; i++) {
        const qg_gate *known = &r->gates->items[i];
        bool found = known->kind != QG_GATE_KNOWN;
        for (int j = 0; j < r->gates->count && !found; j++)
            found = r->gates->items[j].kind != QG_GATE_KNOWN &&
                    fnmatch(known->metric, r->gates->items[j].id, 0) == 0;
        r->line = known->line;
        if (!found)
            return refuse(r, "no gate has an id that matches ", known->metric);
    }
    return QG_OK;
}

const char *qg_gate_kind_name(qg_gate_kind kind) { return KINDS[kind]; }

const char *qg_verdict_name(qg_verdict verdict) {
    static const char *const NAMES[] = {
#define VERDICT(ID, name) name,
        QG_VERDICT_TABLE(VERDICT)
#undef VERDICT
    };
    return NAMES[verdict];
}

qg_status qg_gates_read(const char *path, qg_gates *out) {
    qg_text_lines lines;
    *out = (qg_gates){.path = strdup(path)};
    if (!out->path)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the gates of %.300s", path);
    qg_status status = qg_text_lines_open(path, &lines);
    if (status != QG_OK) {
        qg_gates_free(out);
        return status;
    }
    reader r = {.path = path, .gates = out};
    for (char *line; status == QG_OK && (line = qg_text_lines_next(&lines));)
        status = take_line(&r, line);
    qg_text_lines_close(&lines);
    if (status == QG_OK && out->count == 0)
        status = qg_fail(QG_ERROR_DATA, "%.300s: holds no gate", path);
    if (status == QG_OK)
        status = check_known(&r);
    if (status != QG_OK)
        qg_gates_free(out);
    return status;
}

void qg_gates_free(qg_gates *gates) {
    for (int i = 0; i < gates->count; i++)
        gate_free(&gates->items[i]);
    free(gates->items);
    free(gates->path);
    *gates = (qg_gates){0};
}
