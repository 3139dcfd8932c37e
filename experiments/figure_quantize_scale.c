// Figures of one given scale for all: QSNR, saturated and underflowed shares against F X / sigma.
#include <figure_list.h>
#include <figure_quantize.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shown {
    const char *format, *label;
} shown;
static const shown SHOWN[] = {
    {"e4m3", "E4M3"},
    {"e5m2", "E5M2"},
    {"e3m2", "E3M2"},
    {"e2m1", "E2M1"},
    {"int8", "INT8"}
};
enum { SHOWN_COUNT = sizeof SHOWN / sizeof SHOWN[0], PER_OCTAVE = 4 };

static const double FROM = 0x1p-8, TO = 0x1p24;

static void read_operand(const char *format, qg_gate_operand *out) {
    *out = (qg_gate_operand){0};
    qg_gate_operand_find(format, "per_tensor", "fixed:1", "rne", out);
}

// F X / sigma of a row.
static double place_of(const qg_gate_operand *operand, const qg_figure_row *row) {
    qg_density density;
    qg_gate_operand at = {0};
    qg_gate_operand_find(qg_figure_text(row, QG_COLUMN_FORMAT), "per_tensor",
                         qg_figure_text(row, QG_COLUMN_SCALE_RULE), "rne", &at);
    return operand->largest * (double)at.recipe.fixed_scale /
           qg_figure_sigma(qg_figure_text(row, QG_COLUMN_DATA), &density);
}

typedef double (*value_function)(const qg_noise *noise);
static double value_qsnr(const qg_noise *n) { return qg_noise_qsnr_db(*n); }
static double value_above(const qg_noise *n) { return n->above; }
static double value_below(const qg_noise *n) { return n->below; }

// N(0, 1) at each scale.
static qg_status add_theory(qg_plot *plot, int panel, const shown *s, value_function value,
                            double least) {
    int64_t series;
    qg_gate_operand operand;
    read_operand(s->format, &operand);
    qg_grid grid = {operand.values, operand.value_count};
    qg_status status = qg_plot_add(plot, QG_PLOT_THEORY, panel, s->label, s->format, "", &series);
    // X = 2^(i / PER_OCTAVE): the powers of two among them are where the plan measures.
    for (int i = (int)ceil(PER_OCTAVE * log2(FROM / operand.largest)); status == QG_OK; i++) {
        qg_noise noise;
        double scale = exp2((double)i / PER_OCTAVE), x = scale * operand.largest;
        if (x > TO)
            break;
        status = qg_theory_tensor(QG_DENSITY_NORMAL, 1, grid, scale, &noise);
        if (status == QG_OK && value(&noise) >= least)
            status = qg_figure_add_line(plot, series, x, value(&noise));
    }
    return status;
}

// ------------------------------------------------------------------------------------------- F3

static qg_status add_qsnr(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                          const shown *s) {
    int64_t series;
    qg_gate_operand operand;
    read_operand(s->format, &operand);
    qg_status status = add_theory(plot, 0, s, value_qsnr, -INFINITY);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, s->label, s->format, "", &series);
    for (int64_t i = 0; i < count && status == QG_OK; i++)
        if (strcmp(qg_figure_text(means[i].representative, QG_COLUMN_FORMAT), s->format) == 0)
            status = qg_figure_add(plot, series, place_of(&operand, means[i].representative), 0,
                                   &means[i]);
    return status;
}

qg_status qg_build_qsnr_scale(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    plot->x = (qg_plot_axis){"F X / σ", QG_PLOT_LOG2, FROM, TO, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"QSNR (dB)", QG_PLOT_LINEAR, 0, 45, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_RIGHT_TOP;
    for (int i = 0; i < SHOWN_COUNT && status == QG_OK; i++)
        status = qg_figure_find(means, count, SHOWN[i].format, NULL, NULL, NULL)
                     ? add_qsnr(plot, means, count, &SHOWN[i])
                     : qg_figure_lacks(SHOWN[i].label);
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "N(0, 1)");
    free(means);
    return status;
}

// ------------------------------------------------------------------------------------------ F14

// Shares below are drawn on the axis: none was counted, or fewer than one in a million.
static const double FLOOR = 1e-6;

static qg_status add_share(qg_plot *plot, int64_t series, const qg_gate_operand *operand,
                           const qg_figure_mean *m) {
    const qg_figure_row *row = m->representative;
    double n = qg_figure_number(row, QG_COLUMN_M) * qg_figure_number(row, QG_COLUMN_K);
    double share = m->mean / n, half = m->seeds > 1 ? m->half_width / n : NAN;
    qg_plot_point point = {place_of(operand, row), fmax(share, FLOOR), NAN, NAN, NAN};
    if (half > 0)
        point.low = fmax(share - half, FLOOR), point.high = fmax(share + half, FLOOR);
    return qg_plot_point_add(plot, series, point);
}

// A count of one format's rows as shares.
static qg_status add_shares(const qg_figure_rows *rows, qg_plot *plot, qg_column column,
                            const shown *s, value_function value) {
    qg_figure_mean *means;
    int64_t count, series;
    qg_gate_operand operand;
    read_operand(s->format, &operand);
    qg_status status = qg_figure_quantized(rows, column, &means, &count);
    if (status == QG_OK && !qg_figure_find(means, count, s->format, NULL, NULL, NULL))
        status = qg_figure_lacks(s->label);
    if (status == QG_OK)
        status = add_theory(plot, 0, s, value, FLOOR);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, s->label, s->format, "", &series);
    for (int64_t i = 0; i < count && status == QG_OK; i++)
        if (strcmp(qg_figure_text(means[i].representative, QG_COLUMN_FORMAT), s->format) == 0)
            status = add_share(plot, series, &operand, &means[i]);
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "N(0, 1)");
    free(means);
    return status;
}

// What saturates depends on F X alone: INT8 stands for all.
qg_status qg_build_shares(const qg_figure_rows *rows, qg_plot *plot) {
    static const shown SATURATED = {"int8", "INT8 saturated"};
    qg_status status = QG_OK;
    plot->x = (qg_plot_axis){"F X / σ", QG_PLOT_LOG2, FROM, TO, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"share of elements", QG_PLOT_LOG10, FLOOR, 1, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = 0; i < SHOWN_COUNT && status == QG_OK; i++)
        status = add_shares(rows, plot, QG_COLUMN_COUNT_UNDERFLOWED, &SHOWN[i], value_below);
    return status == QG_OK
               ? add_shares(rows, plot, QG_COLUMN_COUNT_SATURATED, &SATURATED, value_above)
               : status;
}
