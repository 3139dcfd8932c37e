// DeepSeek-V3 (arXiv 2412.19437, 3.3.2): FP8 products summed in about 14 bits over K = 4096, with
// and without promotion to binary32 every 128 elements. Data and metric of the paper are not given:
// positive data, for which the largest relative error means something, and normal data, by the
// relative Frobenius error. Compared is the improvement.
#include <published_work.h>

#include <figure_select.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// The mean of a metric over seeds, NaN without rows.
static qg_status mean_of(const qg_figure_input *input, const char *data, const char *unit,
                         qg_column metric, double *out) {
    char where[240];
    qg_figure_rows rows;
    qg_figure_mean *means;
    int64_t count;
    snprintf(where, sizeof where,
             "op=gemm&reference=quantized&format=e4m3&format_b=e4m3&layout=per_tensor&out_type=fp32"
             "&k=4096&data=%s&unit=%s",
             data, unit);
    qg_status status = qg_figure_select(input, where, &rows);
    if (status == QG_OK)
        status = qg_figure_means(&rows, metric, &means, &count);
    if (status == QG_OK) {
        *out = count > 0 ? means[0].mean : NAN;
        free(means);
    }
    qg_figure_rows_free(&rows);
    return status;
}

// Without promotion; one after all of K is none, for it adds to zero.
static qg_status plain_of(const qg_figure_input *input, const char *data, qg_column metric,
                          double *out) {
    qg_status status = mean_of(input, data, "hopper_wgmma", metric, out);
    if (status == QG_OK && isnan(*out))
        status = mean_of(input, data, "hopper_wgmma+promote:4096", metric, out);
    return status;
}

qg_status published_accumulation(published_work *work, int which, published_value *out) {
    bool positive = which == ACCUMULATION_POSITIVE;
    const char *data = positive ? "uniform:1:abs" : "normal";
    qg_column metric = positive ? QG_COLUMN_METRIC_MAX_REL : QG_COLUMN_METRIC_REL_FROBENIUS;
    double plain = NAN, promoted = NAN;
    qg_status status = plain_of(work->input, data, metric, &plain);
    if (status == QG_OK)
        status = mean_of(work->input, data, "hopper_wgmma+promote:128", metric, &promoted);
    if (status != QG_OK || !(plain > 0) || !(promoted > 0))
        return status;
    out->known = true;
    out->value = plain / promoted;
    snprintf(out->ours, sizeof out->ours, "%.2g %% to %.2g %%: %.3g times less", 100 * plain,
             100 * promoted, out->value);
    return QG_OK;
}
