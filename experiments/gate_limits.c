// Gates that compare a number with a formula: bound, drift, invariant, perf, and counts of bits.
#include <gate_run.h>

#include <math.h>
#include <stdio.h>

static const char *sign_of(const qg_gate *gate) {
    switch (gate->bound.kind) {
    case QG_LIMIT_MOST: return "<=";
    case QG_LIMIT_LEAST: return ">=";
    case QG_LIMIT_EQUAL: return "=";
    default: return "within";
    }
}

static qg_status add(qg_gate_run *run, const qg_gate_result *result) {
    const qg_gate *gate = result->gate;
    const char *what = gate->kind == QG_GATE_DRIFT ? "drift of " : "";
    if (result->verdict == QG_VERDICT_PASS)
        return qg_gate_add(run, result, "%s", "");
    return qg_gate_add(run, result, "%s%s = %.6g, must be %s %.6g (%s), %.3g of the tolerance",
                       what, gate->metric, result->value, sign_of(gate), result->limit, gate->limit,
                       result->used);
}

// The medians of two runs differ by twice their deviation easily: a limit within that says nothing.
static bool is_ambiguous(const qg_gate_file *file, int64_t row, double value, double limit) {
    double median = qg_table_f64(file->table, row, QG_COLUMN_TIMING_MEDIAN_S);
    double deviation = qg_table_f64(file->table, row, QG_COLUMN_TIMING_MAD_S);
    double share = 2 * deviation / median;
    return !isnan(share) && limit >= value * (1 - share) && limit <= value * (1 + share);
}

static qg_verdict verdict_of(const qg_gate *gate, const qg_gate_file *file, int64_t row,
                             const qg_limit_check *check, double value) {
    bool measures = gate->kind == QG_GATE_BOUND || gate->kind == QG_GATE_DRIFT;
    if (measures && qg_gate_is_mistrusted(file, row))
        return QG_VERDICT_MISTRUSTED;
    if (gate->kind == QG_GATE_PERF && is_ambiguous(file, row, value, check->bound))
        return QG_VERDICT_AMBIGUOUS;
    return check->holds ? QG_VERDICT_PASS : QG_VERDICT_FAIL;
}

static qg_status gate_row(qg_gate_run *run, const qg_gate *gate, const qg_gate_file *file,
                          int64_t row) {
    qg_gate_case c = {run->names, file->table, row, (double)NAN, (double)NAN, (double)NAN};
    double value = qg_formula_evaluate(gate->value, qg_gate_name_value, &c);
    qg_gate_result result = {.gate = gate, .file = file, .row = row};
    if (isnan(value))
        return QG_OK;
    if (gate->kind == QG_GATE_DRIFT) {
        qg_baseline_match match = qg_baseline_find(run->baseline, file->table, row);
        if (match.row && match.comparable && qg_baseline_metric(match.row, gate->metric, &c)) {
            value = value == c.baseline ? 0 : fabs(value - c.baseline);
        } else if (match.row && match.comparable) {
            return QG_OK; // too few seeds: bits alone
        } else {
            result.verdict = match.row ? QG_VERDICT_INCOMPARABLE : QG_VERDICT_NEW;
            result.value = value;
            result.limit = result.used = (double)NAN;
            return qg_gate_add(run, &result, "%s", match.row ? match.why : "");
        }
    }
    qg_limit_check check = qg_limit_check_value(&gate->bound, value, qg_gate_name_value, &c);
    if (!check.applies)
        return QG_OK;
    result.verdict = verdict_of(gate, file, row, &check, value);
    result.value = value;
    result.limit = check.bound;
    result.used = check.used;
    return add(run, &result);
}

qg_status qg_gate_run_limits(qg_gate_run *run, const qg_gate *gate) {
    qg_status status = QG_OK;
    for (int f = 0; f < run->file_count; f++)
        for (int64_t row = 0; row < qg_table_rows(run->files[f].table) && status == QG_OK; row++)
            if (qg_gate_takes(run, gate, &run->files[f], row))
                status = gate_row(run, gate, &run->files[f], row);
    return status;
}
