// When a measured case is MISTRUSTED: its data say little. See op_internal.h.
#include <op_internal.h>

#include <qg_source.h>

static bool is_open(const qg_case_result *result) { return result->status == QG_CASE_RAN; }

void qg_op_judge_pairs(const qg_case *c, const qg_sums *s, const char *reference,
                       qg_case_result *result) {
    int64_t odd = s->nan_reference + s->inf_reference + s->nan_output + s->inf_output;
    double n = (double)s->n;
    if (!is_open(result))
        return;
    if (c->source->law && odd > 0)
        qg_case_result_set(result, QG_CASE_MISTRUSTED,
                           "%lld elements of synthetic data are NaN or infinite", (long long)odd);
    else if ((double)s->zero_reference > 0.7 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the %s is zero",
                           100 * (double)s->zero_reference / n, reference);
    else if ((double)s->zero_output > 0.7 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the output is zero",
                           100 * (double)s->zero_output / n);
}

void qg_op_judge_saturation(const qg_counts *counts, qg_case_result *result) {
    double n = (double)counts->n;
    if (is_open(result) && (double)counts->saturated > 0.5 * n)
        qg_case_result_set(result, QG_CASE_MISTRUSTED, "%.1f %% of the elements saturated",
                           100 * (double)counts->saturated / n);
}
