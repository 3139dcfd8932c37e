// Figures of products against K: F9 their error, F10 their bias, F16 stochastic rounding.
#include <figure_list.h>
#include <figure_products.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double U_FP32 = 0x1p-24, U_BF16 = 0x1p-8;

// A line must have a K to start and another to end.
static qg_status check_facts(const qg_product_facts *facts, const char *what) {
    if (facts->series > 0 && facts->x_most > facts->x_least)
        return QG_OK;
    return qg_fail(QG_ERROR_DATA, "needs %s at two K at least", what);
}

static void set_axes(qg_plot *plot, const char *y, double from, double to) {
    plot->x = (qg_plot_axis){"K", QG_PLOT_LOG2, NAN, NAN, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"", QG_PLOT_LOG10, from, to, NAN, NULL, 0};
    snprintf(plot->y.label, sizeof plot->y.label, "%s", y);
}

// A power of x through (x0, y0).
typedef struct power {
    double x0, y0, exponent;
} power;
static double power_at(const void *context, double x) {
    const power *p = context;
    return p->y0 * pow(x / p->x0, p->exponent);
}

// ---------------------------------------------------------------------------------------------- F9

typedef struct accumulator {
    const char *unit, *format, *rule, *label;
    double u; // unit roundoff, for its law; 0: no law
} accumulator;

static const char EXACT_FP32[] = "fixed:0x1p+0"; // operands of binary32 as they are

static const accumulator ACCUMULATORS[] = {
    {"bf16_sequential",          "fp32", EXACT_FP32, "BF16",             0x1p-8 },
    {"hopper_wgmma",             "e4m3", "amax",     "Hopper FP8",       0      },
    {"hopper_wgmma+promote:128", "e4m3", "amax",     "Hopper, promoted", 0      },
    {"fp32_sequential",          "fp32", EXACT_FP32, "FP32",             0x1p-24},
    {"blackwell_tcgen05",        "e4m3", "amax",     "Blackwell FP8",    0      },
};
enum { ACCUMULATOR_COUNT = sizeof ACCUMULATORS / sizeof ACCUMULATORS[0] };

static double sum_error_at(const void *u, double k) {
    return qg_theory_sum_error(*(const double *)u, k);
}

// The series at `index`, if one was added since it was the end, has points from K = *from to *to.
static bool range_of(const qg_plot *plot, int64_t index, double *from, double *to) {
    if (index >= plot->count || plot->series[index].count == 0)
        return false;
    *from = plot->series[index].points[0].x;
    *to = plot->series[index].points[plot->series[index].count - 1].x;
    return *to > *from;
}

static qg_status add_accumulator(qg_plot *plot, const qg_figure_rows *rows, const accumulator *a,
                                 qg_product_facts *facts) {
    enum { BF16_FOLLOWS_TO = 4096 }; // beyond, addends fall below half an ulp of the sum
    qg_product_pick pick = {.unit = a->unit,
                            .format = a->format,
                            .layout = "per_tensor",
                            .rule = a->rule,
                            .rounding = "rne",
                            .reference = "quantized"};
    qg_product_series series = {.mark = a->u > 0 ? QG_PLOT_MEASURED : QG_PLOT_JOINED,
                                .label = a->label,
                                .look = a->unit,
                                .column = QG_COLUMN_METRIC_REL_FROBENIUS,
                                .x = qg_product_k};
    int64_t index = plot->count;
    double from, to;
    qg_status status = qg_product_series_add(plot, rows, &pick, &series, facts);
    if (status != QG_OK || a->u == 0 || !range_of(plot, index, &from, &to))
        return status;
    to = a->u == U_BF16 ? fmin(to, BF16_FOLLOWS_TO) : to;
    return to > from ? qg_product_line_add(plot, QG_PLOT_THEORY, 0, a->label, a->unit, from, to,
                                           sum_error_at, &a->u)
                     : QG_OK;
}

// A product of one operand with its like, on a law.
typedef struct like_product {
    qg_operand_error operand;
    double mean; // E[x]^2 / E[x^2]
} like_product;

static double like_product_at(const void *context, double k) {
    const like_product *p = context;
    return sqrt(qg_theory_product_noise(p->operand, p->operand, p->mean, p->mean, k));
}

// Points of a recipe's products with exact sums, and theory's line through them.
static qg_status add_operands(qg_plot *plot, const qg_figure_rows *rows,
                              const qg_product_pick *pick, const char *label,
                              qg_product_facts *facts) {
    qg_product_series series = {.mark = QG_PLOT_MEASURED,
                                .label = label,
                                .look = pick->format,
                                .column = QG_COLUMN_METRIC_REL_FROBENIUS,
                                .x = qg_product_k};
    int64_t index = plot->count;
    double from, to;
    like_product product;
    qg_density density;
    qg_status status = qg_product_series_add(plot, rows, pick, &series, facts);
    if (status != QG_OK || !range_of(plot, index, &from, &to) ||
        !qg_product_operand(pick, &product.operand, &density))
        return status;
    product.mean = strstr(pick->data, ":abs") ? qg_theory_coherence(density) : 0;
    return qg_product_line_add(plot, QG_PLOT_THEORY, 0, label, pick->format, from, to,
                               like_product_at, &product);
}

static const qg_product_pick FLAT[] = {
    {.format = "mxfp4", .layout = "group:32", .rule = "rceil"},
    {.format = "mxfp8", .layout = "group:32", .rule = "rceil"},
};
static const char *const FLAT_LABELS[] = {"MXFP4", "MXFP8"};
enum { FLAT_COUNT = sizeof FLAT / sizeof FLAT[0] };

static qg_status add_slopes(qg_plot *plot) {
    static const power HALF = {64, 1.2e-6, 0.5}, ONE = {64, 1.2e-6, 1};
    qg_status status =
        qg_product_line_add(plot, QG_PLOT_SLOPE, 0, "1/2", "", 64, 2048, power_at, &HALF);
    return status == QG_OK
               ? qg_product_line_add(plot, QG_PLOT_SLOPE, 0, "1", "", 64, 2048, power_at, &ONE)
               : status;
}

qg_status qg_build_error_k(const qg_figure_rows *rows, qg_plot *plot) {
    qg_product_facts facts = {0};
    char text[160];
    qg_status status = QG_OK;
    set_axes(plot, "relative Frobenius error", 3e-8, 1);
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = 0; i < FLAT_COUNT && status == QG_OK; i++) {
        qg_product_pick pick = FLAT[i];
        pick.unit = "exact";
        pick.rounding = "rne";
        pick.data = "normal";
        pick.reference = "source";
        status = add_operands(plot, rows, &pick, FLAT_LABELS[i], &facts);
    }
    for (int i = 0; i < ACCUMULATOR_COUNT && status == QG_OK; i++)
        status = add_accumulator(plot, rows, &ACCUMULATORS[i], &facts);
    if (status == QG_OK)
        status = check_facts(&facts, "products of normal data");
    if (status == QG_OK)
        status = add_slopes(plot);
    qg_product_facts_print(&facts, text, sizeof text);
    snprintf(plot->note, sizeof plot->note,
             "Normal data, %s; MXFP4 and MXFP8 by rule rceil with exact sums; bars: 95 %% over "
             "the seeds.",
             text);
    return status;
}

// --------------------------------------------------------------------------------------------- F10

typedef struct biased {
    const char *unit, *format, *rule, *label;
} biased;

enum { TOWARD_ZERO = 1, DOWN = 2 };
static const biased BIASED[] = {
    {"fp32_sequential",          "fp32", EXACT_FP32, "FP32, to nearest" },
    {"fp32_sequential+rtz",      "fp32", EXACT_FP32, "FP32, toward zero"},
    {"fp32_sequential+rtn",      "fp32", EXACT_FP32, "FP32, down"       },
    {"hopper_wgmma",             "e4m3", "amax",     "Hopper FP8"       },
    {"hopper_wgmma+promote:128", "e4m3", "amax",     "Hopper, promoted" },
};
enum { BIASED_COUNT = sizeof BIASED / sizeof BIASED[0], BIAS_PANELS = 2 };

static const char *const BIAS_LAWS[BIAS_PANELS] = {"normal", "uniform:1:abs"};
// On positive data down is toward zero.
static bool is_shown(int panel, int which) { return panel == 0 || which != DOWN; }

static double down_at(const void *context, double k) {
    (void)context;
    return -qg_theory_round_down_bias(U_FP32, k);
}

// Uniform on [0, 1): a sum of k / 4.
static double toward_zero_at(const void *context, double k) {
    (void)context;
    return -qg_theory_truncation_bias(U_FP32, k, k / 4);
}

static qg_status add_biases(qg_plot *plot, const qg_figure_rows *rows, int panel,
                            qg_product_facts *facts) {
    qg_status status = QG_OK;
    for (int i = 0; i < BIASED_COUNT && status == QG_OK; i++) {
        qg_product_pick pick = {.unit = BIASED[i].unit,
                                .format = BIASED[i].format,
                                .layout = "per_tensor",
                                .rule = BIASED[i].rule,
                                .rounding = "rne",
                                .data = BIAS_LAWS[panel],
                                .reference = "quantized"};
        qg_product_series series = {.mark = QG_PLOT_MEASURED,
                                    .panel = panel,
                                    .label = BIASED[i].label,
                                    .look = BIASED[i].unit,
                                    .column = QG_COLUMN_SUM_E,
                                    .per = QG_COLUMN_SUM_ABS_X,
                                    .x = qg_product_k,
                                    .most_seeds = true};
        if (is_shown(panel, i))
            status = qg_product_series_add(plot, rows, &pick, &series, facts);
    }
    return status;
}

qg_status qg_build_bias_k(const qg_figure_rows *rows, qg_plot *plot) {
    qg_product_facts facts = {0};
    char text[160];
    qg_status status = QG_OK;
    set_axes(plot, "|mean error| / mean |product|", 1e-10, 1);
    plot->panels = plot->columns = BIAS_PANELS;
    snprintf(plot->panel_title[0], QG_PLOT_LABEL, "mean zero");
    snprintf(plot->panel_title[1], QG_PLOT_LABEL, "positive");
    plot->key = QG_PLOT_KEY_BELOW;
    for (int panel = 0; panel < BIAS_PANELS && status == QG_OK; panel++)
        status = add_biases(plot, rows, panel, &facts);
    if (status == QG_OK)
        status = check_facts(&facts, "products of normal or uniform:1:abs data");
    if (status == QG_OK)
        status = qg_product_line_add(plot, QG_PLOT_THEORY, 0, BIASED[DOWN].label, BIASED[DOWN].unit,
                                     facts.x_least, facts.x_most, down_at, NULL);
    if (status == QG_OK)
        status = qg_product_line_add(plot, QG_PLOT_THEORY, 1, BIASED[TOWARD_ZERO].label,
                                     BIASED[TOWARD_ZERO].unit, facts.x_least, facts.x_most,
                                     toward_zero_at, NULL);
    qg_product_facts_print(&facts, text, sizeof text);
    snprintf(plot->note, sizeof plot->note,
             "Normal data (mean zero) and uniform data on [0, 1) (positive), %s; bars: 95 %% over "
             "the seeds.",
             text);
    return status;
}

// --------------------------------------------------------------------------------------------- F16

static const qg_product_pick ROUNDED[] = {
    {.format = "mxfp4", .rounding = "rne"        },
    {.format = "mxfp4", .rounding = "stochastic*"},
    {.format = "mxfp8", .rounding = "rne"        },
    {.format = "mxfp8", .rounding = "stochastic*"},
};
static const char *const ROUNDED_LABELS[] = {"MXFP4, to nearest", "MXFP4, stochastic",
                                             "MXFP8, to nearest", "MXFP8, stochastic"};
enum { ROUNDED_COUNT = sizeof ROUNDED / sizeof ROUNDED[0] };

qg_status qg_build_stochastic_k(const qg_figure_rows *rows, qg_plot *plot) {
    qg_product_facts facts = {0};
    char text[160];
    qg_status status = QG_OK;
    set_axes(plot, "relative Frobenius error", 5e-5, 0.2);
    plot->key = QG_PLOT_KEY_LEFT_BOTTOM;
    for (int i = 0; i < ROUNDED_COUNT && status == QG_OK; i++) {
        qg_product_pick pick = ROUNDED[i];
        pick.unit = "exact";
        pick.layout = "group:32";
        pick.rule = "rceil";
        pick.data = "normal:abs";
        pick.reference = "source";
        status = add_operands(plot, rows, &pick, ROUNDED_LABELS[i], &facts);
    }
    if (status == QG_OK)
        status = check_facts(&facts, "products of normal:abs data");
    qg_product_facts_print(&facts, text, sizeof text);
    snprintf(plot->note, sizeof plot->note,
             "Magnitudes of normal data (law normal:abs), rule rceil, exact sums, %s; bars: 95 %% "
             "over the seeds.",
             text);
    return status;
}
