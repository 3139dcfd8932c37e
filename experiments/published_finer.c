// Is Finer Better? (arXiv 2601.19026): below some sigma smaller blocks are worse, because their
// UE4M3 scales, without a scale of the tensor, fall among the subnormals.
#include <published_work.h>

#include <figure_select.h>
#include <qg_codec.h>
#include <qg_theory.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ theory

typedef struct rule {
    qg_format_info scale;
    qg_conversion conversion;
    double largest; // of the element format
} rule;

static double ue4m3_scale(void *context, double amax) {
    const rule *r = context;
    float ideal = (float)amax / (float)r->largest;
    return qg_decode(&r->scale, qg_encode(&r->scale, ideal, &r->conversion, 0));
}

// How much better blocks of 2 g are than blocks of g, in dB.
static qg_status advantage(const qg_grid *grid, rule *r, double sigma, int64_t g, double *out) {
    qg_noise fine, coarse;
    qg_status status = qg_theory_block(QG_DENSITY_NORMAL, sigma, *grid, g, ue4m3_scale, r, &fine);
    if (status == QG_OK)
        status = qg_theory_block(QG_DENSITY_NORMAL, sigma, *grid, 2 * g, ue4m3_scale, r, &coarse);
    if (status == QG_OK)
        *out = qg_noise_qsnr_db(coarse) - qg_noise_qsnr_db(fine);
    return status;
}

// which: the smaller block. The largest sigma at which the order turns: the bracket ends where no
// scale is subnormal.
qg_status published_inversion_theory(published_work *work, int which, published_value *out) {
    double room[256], low = 4e-3, high = 0.2, better = 0;
    qg_grid grid;
    (void)work;
    qg_status status = published_grid("e2m1", room, &grid);
    rule r = {qg_format_describe(QG_FORMAT_UE4M3), {.rounding = {QG_ROUND_RNE, 0}}, 6};
    for (int i = 0; i < 12 && status == QG_OK; i++) {
        double middle = sqrt(low * high);
        status = advantage(&grid, &r, middle, which, &better);
        if (better > 0)
            low = middle;
        else
            high = middle;
    }
    out->known = status == QG_OK;
    out->value = sqrt(low * high);
    return status;
}

// -------------------------------------------------------------------------------------------- rows

typedef struct point {
    double sigma, qsnr;
} point;

static int by_sigma(const void *a, const void *b) {
    const point *x = a, *y = b;
    return (x->sigma > y->sigma) - (x->sigma < y->sigma);
}

// The points of one block size, ascending in sigma. Caller frees.
static qg_status points_of(const qg_figure_input *input, int g, point **out, int64_t *count) {
    char where[200];
    qg_figure_rows rows;
    qg_figure_mean *means = NULL;
    *out = NULL;
    snprintf(where, sizeof where,
             "op=error&format=e2m1&layout=group:%d&scale_rule=amax_ue4m3&data=normal:sigma=*"
             "&rounding=rne&input_type=fp32",
             g);
    qg_status status = qg_figure_select(input, where, &rows);
    if (status == QG_OK)
        status = qg_figure_means(&rows, QG_COLUMN_METRIC_QSNR_DB, &means, count);
    if (status == QG_OK) {
        *out = malloc((size_t)(*count + 1) * sizeof **out);
        if (!*out)
            status = qg_fail(QG_ERROR_MEMORY, "no memory for the points of a published result");
    }
    for (int64_t i = 0; status == QG_OK && i < *count; i++) {
        const char *data = qg_figure_text(means[i].representative, QG_COLUMN_DATA);
        (*out)[i] = (point){strtod(data + strlen("normal:sigma="), NULL), means[i].mean};
    }
    if (status == QG_OK)
        qsort(*out, (size_t)*count, sizeof **out, by_sigma);
    free(means);
    qg_figure_rows_free(&rows);
    return status;
}

// The mean of all points at this sigma (backends and sizes), NaN if there is none.
static double qsnr_at(const point *points, int64_t count, double sigma) {
    double sum = 0;
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        if (points[i].sigma == sigma) {
            sum += points[i].qsnr;
            found++;
        }
    return found ? sum / (double)found : NAN;
}

// From large sigma down: where the finer block falls behind for the first time, between two sigmas
// that were measured, on a line over log sigma.
static void find_crossing(const point *fine, int64_t fines, const point *coarse, int64_t coarses,
                          published_value *out) {
    double above = NAN, above_sigma = NAN;
    for (int64_t i = fines - 1; i >= 0; i--) {
        double better =
            qsnr_at(coarse, coarses, fine[i].sigma) - qsnr_at(fine, fines, fine[i].sigma);
        if (!isfinite(better))
            continue;
        if (better > 0 && above <= 0) {
            double share = -above / (better - above);
            out->known = true;
            out->value = above_sigma * pow(fine[i].sigma / above_sigma, share);
            return;
        }
        above = better;
        above_sigma = fine[i].sigma;
    }
}

qg_status published_inversion_rows(published_work *work, int which, published_value *out) {
    point *fine = NULL, *coarse = NULL;
    int64_t fines = 0, coarses = 0;
    qg_status status = points_of(work->input, which, &fine, &fines);
    if (status == QG_OK)
        status = points_of(work->input, 2 * which, &coarse, &coarses);
    if (status == QG_OK)
        find_crossing(fine, fines, coarse, coarses, out);
    free(fine);
    free(coarse);
    return status;
}
