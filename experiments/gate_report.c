// Summaries, and reports for people: text and Markdown. See gate_report.h.
#include <gate_report.h>

#include <text_grid.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// -------------------------------------------------------------------------------------- summaries

static qg_gate_summary *summary_of(qg_gate_summary *all, int *count, const qg_gate *gate) {
    for (int i = *count - 1; i >= 0; i--)
        if (all[i].gate == gate)
            return &all[i];
    all[*count] = (qg_gate_summary){.gate = gate, .used = (double)NAN};
    return &all[(*count)++];
}

qg_gate_summary *qg_gate_summaries(const qg_gate_run *run, int *count) {
    qg_gate_summary *all = calloc((size_t)run->gates->count + 2, sizeof *all);
    *count = 0;
    for (int64_t i = 0; all && i < run->count; i++) {
        const qg_gate_result *r = &run->results[i];
        qg_gate_summary *s = summary_of(all, count, r->gate);
        s->counts[r->verdict]++;
        bool judged = r->verdict == QG_VERDICT_PASS || r->verdict == QG_VERDICT_FAIL ||
                      r->verdict == QG_VERDICT_XFAIL;
        if (judged && r->row >= 0 && !isnan(r->used) && !(r->used <= s->used)) {
            s->used = r->used;
            s->worst = r;
        }
    }
    return all;
}

bool qg_gate_is_bad(qg_verdict verdict) {
    return verdict == QG_VERDICT_FAIL || verdict == QG_VERDICT_XPASS ||
           verdict == QG_VERDICT_MISSING;
}

void qg_gate_result_case(const qg_gate_result *r, char *text, size_t size) {
    text[0] = '\0';
    if (r->file && r->row >= 0)
        qg_gate_describe(r->file->table, r->row, text, size);
}

const char *qg_gate_result_repro(const qg_gate_result *r) {
    if (r->repro)
        return r->repro;
    return r->file && r->row >= 0 ? qg_table_text(r->file->table, r->row, QG_COLUMN_REPRO) : "";
}

// ------------------------------------------------------------------------------------------- table

enum { GATE, KIND, FIRST_VERDICT };

typedef struct grid_columns {
    const qg_gate_report *report;
    int verdicts[QG_VERDICT_COUNT], verdict_count;
} grid_columns;

static void put_share(double used, char *text, size_t size) {
    if (isnan(used))
        text[0] = '\0';
    else if (isinf(used))
        snprintf(text, size, "beyond");
    else
        snprintf(text, size, "%.3f", used);
}

static void cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    const grid_columns *c = context;
    const qg_gate_summary *s = &c->report->summaries[row];
    int verdict = column - FIRST_VERDICT;
    text[0] = '\0';
    if (column == GATE)
        snprintf(text, QG_CELL_SIZE, "%s", s->gate->id);
    else if (column == KIND)
        snprintf(text, QG_CELL_SIZE, "%s", qg_gate_kind_name(s->gate->kind));
    else if (verdict < c->verdict_count)
        snprintf(text, QG_CELL_SIZE, "%" PRId64, s->counts[c->verdicts[verdict]]);
    else if (verdict == c->verdict_count)
        put_share(s->used, text, QG_CELL_SIZE);
    else if (s->worst && s->used > 0)
        qg_gate_result_case(s->worst, text, QG_CELL_SIZE);
}

// Verdicts that no gate gave have no column; PASS and FAIL always have.
static void choose_verdicts(grid_columns *c) {
    for (int v = 0; v < QG_VERDICT_COUNT; v++) {
        int64_t count = 0;
        for (int i = 0; i < c->report->summary_count; i++)
            count += c->report->summaries[i].counts[v];
        if (count > 0 || v == QG_VERDICT_PASS || v == QG_VERDICT_FAIL)
            c->verdicts[c->verdict_count++] = v;
    }
}

static void put_table(const qg_gate_report *report, bool markdown) {
    grid_columns c = {.report = report};
    choose_verdicts(&c);
    qg_text_grid grid = {.columns = FIRST_VERDICT + c.verdict_count + 2,
                         .rows = report->summary_count,
                         .cell = cell,
                         .context = &c,
                         .width = markdown ? 0 : qg_terminal_width(report->stream, 160)};
    grid.title[GATE] = "gate";
    grid.title[KIND] = "kind";
    for (int v = 0; v <= c.verdict_count; v++) {
        grid.title[FIRST_VERDICT + v] =
            v < c.verdict_count ? qg_verdict_name((qg_verdict)c.verdicts[v]) : "used";
        grid.right[FIRST_VERDICT + v] = true;
    }
    grid.title[grid.columns - 1] = "by";
    grid.whole[GATE] = true;
    if (markdown)
        qg_text_grid_markdown(&grid, report->stream);
    else
        qg_text_grid_print(&grid, report->stream);
}

// ------------------------------------------------------------------------------------------- lines

static void put_line(const qg_gate_report *report, const qg_gate_result *r, bool markdown) {
    char text[1024];
    const char *repro = qg_gate_result_repro(r);
    FILE *stream = report->stream;
    qg_gate_result_case(r, text, sizeof text);
    fprintf(stream, "%s%s %s: %s%s%s\n", markdown ? "- " : "", qg_verdict_name(r->verdict),
            r->gate->id, text, *text ? ": " : "", r->detail ? r->detail : "");
    if (*repro)
        fprintf(stream, markdown ? "  `run_sweep %s`\n" : "  run_sweep %s\n", repro);
}

static void put_lines(const qg_gate_report *report, qg_verdict verdict, bool markdown) {
    int64_t count = 0;
    for (int64_t i = 0; i < report->run->count; i++)
        if (report->run->results[i].verdict == verdict && count++ < QG_GATE_REPORT_MOST)
            put_line(report, &report->run->results[i], markdown);
    if (count > QG_GATE_REPORT_MOST)
        fprintf(report->stream, "%s... and %" PRId64 " more %s (--format json has them all)\n",
                markdown ? "- " : "", count - QG_GATE_REPORT_MOST, qg_verdict_name(verdict));
}

static void put_verdict(const qg_gate_report *report, bool markdown) {
    int64_t counts[QG_VERDICT_COUNT] = {0};
    for (int i = 0; i < report->summary_count; i++)
        for (int v = 0; v < QG_VERDICT_COUNT; v++)
            counts[v] += report->summaries[i].counts[v];
    fprintf(report->stream, "%s%s%s:", markdown ? "\n**" : "", qg_gate_run_verdict(report->run),
            markdown ? "**" : "");
    const char *separator = " ";
    for (int v = 0; v < QG_VERDICT_COUNT; v++)
        if (counts[v] > 0) {
            fprintf(report->stream, "%s%" PRId64 " %s", separator, counts[v],
                    qg_verdict_name((qg_verdict)v));
            separator = ", ";
        }
    fprintf(report->stream, "%s\n", *separator == ' ' ? " no gate applied" : "");
}

static void put_report(const qg_gate_report *report, bool markdown) {
    if (markdown)
        fprintf(report->stream, "## Gates\n\nBaseline: %s\n\n",
                *report->baseline ? report->baseline : "none");
    if (report->summary_count > 0)
        put_table(report, markdown);
    if (markdown)
        fputc('\n', report->stream);
    for (int v = 0; v < QG_VERDICT_COUNT; v++)
        if (qg_gate_is_bad((qg_verdict)v))
            put_lines(report, (qg_verdict)v, markdown);
    put_verdict(report, markdown);
}

void qg_gate_report_text(const qg_gate_report *report) { put_report(report, false); }
void qg_gate_report_markdown(const qg_gate_report *report) { put_report(report, true); }
