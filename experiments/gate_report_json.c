// Verdicts as JSON: everything, one result per line. Numbers that are none are null; infinite ones
// are the texts "inf" and "-inf".
#include <gate_report.h>

#include <inttypes.h>
#include <math.h>

static void put_text(FILE *stream, const char *text) {
    fputc('"', stream);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(stream, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(stream, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, stream);
    fputc('"', stream);
}

static void put_number(FILE *stream, double value) {
    if (isnan(value))
        fputs("null", stream);
    else if (isinf(value))
        fputs(value < 0 ? "\"-inf\"" : "\"inf\"", stream);
    else
        fprintf(stream, "%.17g", value);
}

static void put_field(FILE *stream, const char *name, const char *text) {
    fprintf(stream, ", \"%s\": ", name);
    put_text(stream, text);
}

static void put_result(const qg_gate_report *report, const qg_gate_result *r) {
    FILE *stream = report->stream;
    fputs("{\"gate\": ", stream);
    put_text(stream, r->gate->id);
    put_field(stream, "verdict", qg_verdict_name(r->verdict));
    if (r->file)
        put_field(stream, "file", r->file->path);
    if (r->file && r->row >= 0) {
        char text[1024];
        qg_gate_describe(r->file->table, r->row, text, sizeof text);
        fprintf(stream, ", \"case_id\": \"%016" PRIx64 "\"",
                qg_table_u64(r->file->table, r->row, QG_COLUMN_CASE_ID));
        put_field(stream, "case", text);
    }
    fputs(", \"value\": ", stream);
    put_number(stream, r->value);
    fputs(", \"limit\": ", stream);
    put_number(stream, r->limit);
    fputs(", \"used\": ", stream);
    put_number(stream, r->used);
    if (r->detail)
        put_field(stream, "detail", r->detail);
    if (r->verdict != QG_VERDICT_PASS && *qg_gate_result_repro(r))
        put_field(stream, "repro", qg_gate_result_repro(r));
    fputc('}', stream);
}

static void put_gate(const qg_gate_report *report, const qg_gate_summary *s) {
    FILE *stream = report->stream;
    fputs("{\"id\": ", stream);
    put_text(stream, s->gate->id);
    put_field(stream, "kind", qg_gate_kind_name(s->gate->kind));
    put_field(stream, "metric", s->gate->metric);
    put_field(stream, "limit", s->gate->limit);
    put_field(stream, "reason", s->gate->reason);
    for (int v = 0; v < QG_VERDICT_COUNT; v++)
        fprintf(stream, ", \"%s\": %" PRId64, qg_verdict_name((qg_verdict)v), s->counts[v]);
    fputs(", \"used\": ", stream);
    put_number(stream, s->used);
    fputc('}', stream);
}

void qg_gate_report_json(const qg_gate_report *report) {
    FILE *stream = report->stream;
    fputs("{\"verdict\": ", stream);
    put_text(stream, qg_gate_run_verdict(report->run));
    put_field(stream, "baseline", report->baseline);
    fputs(", \"gates\": [", stream);
    for (int i = 0; i < report->summary_count; i++) {
        fputs(i ? ",\n" : "\n", stream);
        put_gate(report, &report->summaries[i]);
    }
    fputs("],\n\"results\": [", stream);
    for (int64_t i = 0; i < report->run->count; i++) {
        fputs(i ? ",\n" : "\n", stream);
        put_result(report, &report->run->results[i]);
    }
    fputs("]}\n", stream);
}
