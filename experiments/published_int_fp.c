// INT v.s. FP (arXiv 2510.25602): crossovers of the closed forms, the share of Table 11, QSNRs.
//
// The closed forms take scales rho times too large. For E4M3 scales the paper's text has rho = 1,
// the script that draws its curves (theoretical_comparisons.py) 1.05, which gives the printed 2.39.
#include <published_work.h>

#include <figure_select.h>
#include <qg_bits.h>
#include <qg_closed_forms.h>
#include <qg_codec.h>
#include <qg_elementary.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// -------------------------------------------------------------------------------------- crossovers

// INT wins below the crossover and loses above it.
qg_status published_crossover(published_work *work, int which, published_value *out) {
    static const qg_closed_format PAIRS[][2] = {
        {{8, 0, 0, 127, 1.5, 0}, {0, 3, 7, 448, 1.5, 0}},
        {{6, 0, 0, 31, 1.5, 0},  {0, 3, 1, 7.5, 1.5, 0}},
        {{4, 0, 0, 7, 1.5, 0},   {0, 1, 1, 6, 1.5, 0}  },
        {{4, 0, 0, 7, 1.05, 16}, {0, 1, 1, 6, 1.05, 16}},
        {{4, 0, 0, 7, 1, 16},    {0, 1, 1, 6, 1, 16}   },
    };
    double high = which < CROSSOVER_NV4 ? 16 : 3.5; // the forms of UE4M3 scales end below sqrt(16)
    (void)work;
    qg_status status =
        qg_closed_crossover(&PAIRS[which][0], &PAIRS[which][1], 1, high, &out->value);
    out->known = status == QG_OK;
    return status;
}

// ---------------------------------------------------------------------------------------- Table 11

// The matrix is cast to the low precision; each element makes its own scale s = fl(x/127) and code
// round(fl(x/s)). A scale that becomes 0 divides to infinity: beyond 128, which saturates to the
// same code. No sample is drawn: every value of the format counts with its probability.

static bool reaches(const qg_format_info *info, const qg_conversion *conversion, double x) {
    double s = qg_decode(info, qg_encode(info, x / 127, conversion, 0));
    double q = qg_decode(info, qg_encode(info, x / s, conversion, 0));
    return rint(q) >= 128;
}

// P(|z| in [low, high]).
static double mass(double low, double high) {
    return 2 * (qg_normal_cdf(-low) - qg_normal_cdf(-high));
}

static double share_of(qg_format format) {
    qg_conversion conversion = {
        .rounding = {QG_ROUND_RNE, 0},
          .overflow = QG_OVERFLOW_FORMAT
    };
    qg_format_info info = qg_format_describe(format);
    double share = 0, below = 0, here = qg_decode_magnitude(&info, 1);
    for (uint64_t code = 1; code < info.max_code && here < 38; code++) {
        double above = qg_decode_magnitude(&info, code + 1);
        if (reaches(&info, &conversion, here))
            share += mass(0.5 * (below + here), 0.5 * (here + above));
        below = here;
        here = above;
    }
    return share;
}

// Binary32: both quotients round by at most 2^-24, so that x / s is within 1e-7 of 127 for every
// normal s; the rest, |x| < 127 * 2^-126, has a probability of 1e-36. One binade is tried.
static double share_of_fp32(void) {
    int64_t count = 0;
    for (uint32_t mantissa = 0; mantissa < 1u << 23; mantissa++) {
        float x = qg_float_of_bits(127u << 23 | mantissa);
        count += rintf(x / (x / 127)) >= 128;
    }
    return (double)count / (1 << 23);
}

qg_status published_reaches_128(published_work *work, int which, published_value *out) {
    (void)work;
    out->known = true;
    out->value = 100 * (which == REACHES_FP32   ? share_of_fp32()
                        : which == REACHES_FP16 ? share_of(QG_FORMAT_FP16)
                                                : share_of(QG_FORMAT_BF16));
    return QG_OK;
}

// ------------------------------------------------------------------------------------ average QSNR

static const char *const AVERAGED[] = {"mxfp8", "mxint8", "nvfp4", "nvint4"};

// The paper's UE8M0 scale rounds up; NVFP4's is its recipe's.
static const char *rule_of(int which) { return which < AVERAGE_NVFP4 ? "rceil" : NULL; }

static qg_status measure(const qg_recipe *recipe, const char *law, double *mean, double *error) {
    enum { SEEDS = 4 };
    published_sample s;
    double values[SEEDS];
    qg_status status = published_sample_create(64, 1024, &s);
    if (status != QG_OK)
        return status;
    for (int i = 0; i < SEEDS && status == QG_OK; i++) {
        status = published_sample_draw(&s, law, (uint64_t)i + 1);
        if (status == QG_OK)
            status = published_sample_quantize(&s, recipe, 0);
        if (status == QG_OK)
            values[i] = published_sample_qsnr(&s);
    }
    published_sample_free(&s);
    if (status == QG_OK)
        published_mean(SEEDS, values, mean, error);
    return status;
}

// Beside it what a heavier tail gives: Laplace.
qg_status published_gaussian_qsnr(published_work *work, int which, published_value *out) {
    qg_recipe recipe;
    double laplace = 0, error;
    (void)work;
    qg_status status = published_recipe(AVERAGED[which], NULL, rule_of(which), NULL, &recipe);
    if (status == QG_OK)
        status = measure(&recipe, "normal", &out->value, &out->error);
    if (status == QG_OK)
        status = measure(&recipe, "laplace", &laplace, &error);
    if (status != QG_OK)
        return status;
    out->known = true;
    snprintf(out->remark, sizeof out->remark, "Laplace: %.2f dB", laplace);
    return QG_OK;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median, and a quarter of the span between the order statistics that hold it with 93 % or
// more: whatever the distribution, n/2 +- sqrt(n), the 2nd and 7th of 8.
static void put_median(double *values, int64_t count, published_value *out) {
    int64_t cut = (int64_t)floor(0.5 * (double)count - sqrt((double)count));
    qsort(values, (size_t)count, sizeof *values, ascending);
    cut = cut > 0 ? cut : 0;
    out->known = true;
    out->value = 0.5 * (values[(count - 1) / 2] + values[count / 2]);
    out->error = (values[count - 1 - cut] - values[cut]) / 4;
    snprintf(out->remark, sizeof out->remark, "median of %lld", (long long)count);
}

// Over real tensors, each counted once.
qg_status published_tensor_qsnr(published_work *work, int which, published_value *out) {
    char where[160];
    qg_figure_rows rows;
    qg_figure_mean *means;
    int64_t count, tensors = 0;
    snprintf(where, sizeof where, "op=error&format=%s&scale_rule=%s&data=tensors:*&rounding=rne",
             AVERAGED[which], rule_of(which) ? rule_of(which) : "two_level");
    qg_status status = qg_figure_select(work->input, where, &rows);
    if (status == QG_OK)
        status = qg_figure_means(&rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    if (status != QG_OK) {
        qg_figure_rows_free(&rows);
        return status;
    }
    double *values = malloc((size_t)(count + 1) * sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        if (isfinite(means[i].mean))
            values[tensors++] = means[i].mean;
    if (values && tensors > 0)
        put_median(values, tensors, out);
    status = values ? QG_OK : qg_fail(QG_ERROR_MEMORY, "no memory for a median");
    free(values);
    free(means);
    qg_figure_rows_free(&rows);
    return status;
}
