// Gates of kind consistency: stored metrics against the stored sums, and files against their digest.
//
// A metric follows from the sums by basic operations alone (qg_metric_value): recomputed from
// /sums it must be the stored one to the bit. Two of them use the low halves of compensated sums,
// which are not stored: shrinkage = (xq - xx) / xx and cosine_distance, which has the lengths'
// difference squared. A stored sum is rounded once, by 2^-53 of itself: they may differ by 2^-51.
#include <gate_run.h>

#include <qg_bits.h>

#include <math.h>
#include <string.h>

static qg_sum sum_of(const qg_table *table, int64_t row, qg_column column) {
    return (qg_sum){qg_table_f64(table, row, column), 0};
}

// False for a row without sums.
static bool read_sums(const qg_table *t, int64_t row, qg_sums *s) {
    const int64_t *rel, *ulp;
    memset(s, 0, sizeof *s);
    s->n_finite = qg_table_i64(t, row, QG_COLUMN_SUM_N_FINITE);
    if (s->n_finite < 0)
        return false;
    s->n = qg_table_i64(t, row, QG_COLUMN_COUNT_N);
    s->nan_reference = qg_table_i64(t, row, QG_COLUMN_SUM_NAN_REFERENCE);
    s->nan_output = qg_table_i64(t, row, QG_COLUMN_SUM_NAN_OUTPUT);
    s->inf_reference = qg_table_i64(t, row, QG_COLUMN_SUM_INF_REFERENCE);
    s->inf_output = qg_table_i64(t, row, QG_COLUMN_SUM_INF_OUTPUT);
    s->zero_reference = qg_table_i64(t, row, QG_COLUMN_SUM_ZERO_REFERENCE);
    s->zero_output = qg_table_i64(t, row, QG_COLUMN_SUM_ZERO_OUTPUT);
    s->underflowed = qg_table_i64(t, row, QG_COLUMN_SUM_UNDERFLOWED);
    s->exact = qg_table_i64(t, row, QG_COLUMN_SUM_EXACT);
    s->x = sum_of(t, row, QG_COLUMN_SUM_X);
    s->xx = sum_of(t, row, QG_COLUMN_SUM_XX);
    s->qq = sum_of(t, row, QG_COLUMN_SUM_QQ);
    s->xq = sum_of(t, row, QG_COLUMN_SUM_XQ);
    s->e = sum_of(t, row, QG_COLUMN_SUM_E);
    s->abs_e = sum_of(t, row, QG_COLUMN_SUM_ABS_E);
    s->e_sign_x = sum_of(t, row, QG_COLUMN_SUM_E_SIGN_X);
    s->ee = sum_of(t, row, QG_COLUMN_SUM_EE);
    s->abs_x = sum_of(t, row, QG_COLUMN_SUM_ABS_X);
    s->max_abs_e = qg_table_f64(t, row, QG_COLUMN_SUM_MAX_ABS_E);
    s->max_rel_e = qg_table_f64(t, row, QG_COLUMN_SUM_MAX_REL_E);
    s->max_abs_x = qg_table_f64(t, row, QG_COLUMN_SUM_MAX_ABS_X);
    s->max_ulp = qg_table_f64(t, row, QG_COLUMN_SUM_MAX_ULP);
    if (qg_table_histograms(t, row, &rel, &ulp)) {
        memcpy(s->hist_rel, rel, sizeof s->hist_rel);
        memcpy(s->hist_ulp, ulp, sizeof s->hist_ulp);
    }
    return true;
}

static bool agrees(qg_metric metric, double stored, double wanted) {
    if (isnan(stored) || isnan(wanted))
        return isnan(stored) && isnan(wanted);
    if (metric == QG_METRIC_SHRINKAGE || metric == QG_METRIC_COSINE_DISTANCE)
        return stored == wanted || fabs(stored - wanted) <= 0x1p-51;
    return stored == wanted; // -0 and 0 are the same value
}

static qg_status fail(qg_gate_run *run, qg_gate_result *result, const char *name, double stored,
                      double wanted) {
    result->verdict = QG_VERDICT_FAIL;
    result->value = stored;
    result->limit = wanted;
    result->used = INFINITY;
    return qg_gate_add(run, result, "%s is stored as %.17g, /sums give %.17g", name, stored,
                       wanted);
}

static qg_status fail_sum(qg_gate_run *run, qg_gate_result *result, const char *name) {
    result->verdict = QG_VERDICT_FAIL;
    result->value = result->limit = (double)NAN;
    result->used = INFINITY;
    return qg_gate_add(run, result, "the sum %s is NaN", name);
}

// Counts must add up before metrics are worth anything.
static bool counts_agree(const qg_sums *s) {
    int64_t binned = 0;
    for (int i = 0; i < QG_HIST_ULP_BINS; i++)
        binned += s->hist_ulp[i];
    return s->n >= s->n_finite && s->exact >= 0 && s->exact <= s->n_finite &&
           s->zero_reference >= 0 && s->zero_reference <= s->n_finite && s->underflowed >= 0 &&
           s->underflowed <= s->n_finite - s->zero_reference && binned == s->n_finite;
}

// Finite elements have no sum that is NaN: metrics of it would be NaN, agree, and escape all gates.
static qg_column unsound_sum(const qg_table *table, int64_t row) {
    static const qg_column SUMS[] = {
        QG_COLUMN_SUM_X,     QG_COLUMN_SUM_XX,        QG_COLUMN_SUM_QQ,       QG_COLUMN_SUM_XQ,
        QG_COLUMN_SUM_E,     QG_COLUMN_SUM_ABS_E,     QG_COLUMN_SUM_E_SIGN_X, QG_COLUMN_SUM_EE,
        QG_COLUMN_SUM_ABS_X, QG_COLUMN_SUM_MAX_ABS_E, QG_COLUMN_SUM_MAX_ABS_X};
    for (size_t i = 0; i < sizeof SUMS / sizeof SUMS[0]; i++)
        if (isnan(qg_table_f64(table, row, SUMS[i])))
            return SUMS[i];
    return QG_COLUMN_COUNT;
}

static bool is_product(const qg_table *table, int64_t row) {
    return strcmp(qg_table_text(table, row, QG_COLUMN_OP), "gemm") == 0;
}

static qg_status check_row(qg_gate_run *run, const qg_gate *gate, const qg_gate_file *file,
                           int64_t row) {
    qg_sums sums;
    qg_gate_result result = {.gate = gate, .file = file, .row = row};
    if (!read_sums(file->table, row, &sums))
        return QG_OK;
    if (!counts_agree(&sums))
        return fail(run, &result, "a count", (double)sums.n, (double)sums.n_finite);
    qg_column unsound = unsound_sum(file->table, row);
    if (unsound != QG_COLUMN_COUNT)
        return fail_sum(run, &result, qg_column_describe(unsound)->name);
    for (int i = 0; i < QG_METRIC_COUNT; i++) {
        qg_metric metric = (qg_metric)i;
        double stored = qg_table_f64(file->table, row, (qg_column)(QG_COLUMN_METRIC_QSNR_DB + i));
        double wanted = qg_metric_value(&sums, metric);
        if (!agrees(metric, stored, wanted))
            return fail(run, &result, qg_metric_describe(metric)->name, stored, wanted);
    }
    double backward = qg_table_f64(file->table, row, QG_COLUMN_BACKWARD_ERROR);
    if (is_product(file->table, row) && isnan(backward) && sums.n_finite > 0)
        return fail(run, &result, "backward_error", backward, (double)NAN);
    result.verdict = QG_VERDICT_PASS;
    result.value = result.limit = (double)NAN;
    return qg_gate_add(run, &result, "%s", "");
}

static qg_status check_file(qg_gate_run *run, const qg_gate *gate, const qg_gate_file *file) {
    qg_gate_result result = {.gate = gate, .file = file, .row = -1};
    result.value = result.limit = (double)NAN;
    if (file->verified)
        return qg_gate_add(run, &result, "%s", "");
    result.verdict = QG_VERDICT_FAIL;
    result.used = INFINITY;
    return qg_gate_add(run, &result,
                       "%s does not match its content_digest: it was changed after it was written",
                       file->path);
}

qg_status qg_gate_run_consistency(qg_gate_run *run, const qg_gate *gate) {
    bool of_files = strcmp(gate->metric, "content_digest") == 0;
    qg_status status = QG_OK;
    for (int f = 0; f < run->file_count && status == QG_OK; f++) {
        const qg_gate_file *file = &run->files[f];
        if (of_files)
            status = check_file(run, gate, file);
        for (int64_t row = 0; !of_files && row < qg_table_rows(file->table) && status == QG_OK;
             row++)
            if (qg_gate_takes(run, gate, file, row))
                status = check_row(run, gate, file, row);
    }
    return status;
}
