// See gate_explain.h.
#include <gate_explain.h>

#include <inttypes.h>
#include <math.h>

typedef struct listing {
    const qg_gate_case *c;
    FILE *stream;
} listing;

static void put_name(void *context, int name) {
    const listing *l = context;
    const char *definition = qg_gate_name_definition(name);
    fprintf(l->stream, "      %s = %.9g%s%s\n", qg_gate_name_text(name),
            qg_gate_name_value(l->c, name), definition ? "  # " : "", definition ? definition : "");
}

static void put_formulas(const qg_gate_run *run, const qg_gate_result *r, FILE *stream) {
    qg_gate_case c = {run->names, r->file->table, r->row, (double)NAN, (double)NAN, (double)NAN};
    listing l = {&c, stream};
    qg_baseline_match match = qg_baseline_find(run->baseline, c.table, c.row);
    if (match.row)
        qg_baseline_metric(match.row, r->gate->metric, &c);
    if (!r->gate->value)
        return;
    qg_formula_names(r->gate->value, put_name, &l);
    qg_formula_names(r->gate->bound.bound, put_name, &l);
    if (r->gate->bound.tolerance)
        qg_formula_names(r->gate->bound.tolerance, put_name, &l);
}

static void put_result(const qg_gate_run *run, const qg_gate_result *r, FILE *stream) {
    const qg_gate *gate = r->gate;
    fprintf(stream, "  %s %s (%s): %s %s\n", qg_verdict_name(r->verdict), gate->id,
            qg_gate_kind_name(gate->kind), gate->metric, gate->limit);
    if (!isnan(r->value))
        fprintf(stream, "    value %.9g, limit %.9g, %.3g of the tolerance used\n", r->value,
                r->limit, r->used);
    if (r->detail)
        fprintf(stream, "    %s\n", r->detail);
    fprintf(stream, "    why: %s\n", gate->reason);
    put_formulas(run, r, stream);
}

void qg_gate_explain(const qg_gate_run *run, FILE *stream) {
    for (int f = 0; f < run->file_count; f++)
        for (int64_t row = 0; row < qg_table_rows(run->files[f].table); row++) {
            const qg_table *table = run->files[f].table;
            char text[1024];
            if (qg_table_u64(table, row, QG_COLUMN_CASE_ID) != run->explained)
                continue;
            qg_gate_describe(table, row, text, sizeof text);
            fprintf(stream, "%016" PRIx64 " %s, %s\n  run_sweep %s\n", run->explained, text,
                    qg_table_text(table, row, QG_COLUMN_STATUS),
                    qg_table_text(table, row, QG_COLUMN_REPRO));
            for (int64_t i = 0; i < run->count; i++)
                if (run->results[i].file == &run->files[f] && run->results[i].row == row)
                    put_result(run, &run->results[i], stream);
        }
}
