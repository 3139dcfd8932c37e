// Scale rules beside one another, by what they lose against scales that are not rounded.
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
    {"mxfp8",      "MXFP8" },
    {"mxfp6_e2m3", "MXFP6" },
    {"mxfp4",      "MXFP4" },
    {"mxint8",     "MXINT8"}
};
static const char *const RULES[] = {"floor", "even", "rceil", "best", "amax"};
static const char *const LABELS[] = {"floor", "even", "rceil", "best", "unrounded (amax)"};
enum { SHOWN_COUNT = sizeof SHOWN / sizeof SHOWN[0], RULE_COUNT = sizeof RULES / sizeof RULES[0] };

// Where a rule stands beside its format's name.
static double place_of(int format, int rule) {
    return format + 0.16 * (rule - 0.5 * (RULE_COUNT - 1));
}

// What integration says of each format with unrounded scales.
static qg_status find_unrounded(const qg_figure_mean *means, int64_t count,
                                double db[SHOWN_COUNT]) {
    for (int i = 0; i < SHOWN_COUNT; i++) {
        qg_noise noise;
        const qg_figure_mean *m =
            qg_figure_find(means, count, SHOWN[i].format, "group:32", "amax", NULL);
        if (!m || !qg_figure_theory(m->representative, &noise))
            return qg_figure_lacks("every rule of every format");
        db[i] = qg_noise_qsnr_db(noise);
    }
    return QG_OK;
}

// Short lines: each is a series of its own, or they would be joined. The colour is the rule's.
static qg_status add_theory(qg_plot *plot, int format, int rule, const qg_figure_mean *mean,
                            double unrounded) {
    static const double HALF = 0.07;
    int64_t series;
    qg_noise noise;
    bool is_zero = strcmp(RULES[rule], "amax") == 0;
    if (!is_zero && !qg_figure_theory(mean->representative, &noise))
        return QG_OK;
    double x = place_of(format, rule), y = is_zero ? 0 : qg_noise_qsnr_db(noise) - unrounded;
    qg_status status = qg_plot_add(plot, QG_PLOT_THEORY, 0, LABELS[rule], RULES[rule], "", &series);
    if (status == QG_OK)
        status = qg_figure_add_line(plot, series, x - HALF, y);
    return status == QG_OK ? qg_figure_add_line(plot, series, x + HALF, y) : status;
}

static qg_status add_rule(qg_plot *plot, const qg_figure_mean *means, int64_t count, int rule,
                          const double unrounded[SHOWN_COUNT]) {
    int64_t series;
    const qg_figure_mean *found[SHOWN_COUNT];
    qg_status status = QG_OK;
    for (int i = 0; i < SHOWN_COUNT && status == QG_OK; i++) {
        found[i] = qg_figure_find(means, count, SHOWN[i].format, "group:32", RULES[rule], NULL);
        if (!found[i])
            return qg_figure_lacks("every rule of every format");
        status = add_theory(plot, i, rule, found[i], unrounded[i]);
    }
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, LABELS[rule], RULES[rule], "", &series);
    for (int i = 0; i < SHOWN_COUNT && status == QG_OK; i++)
        status = qg_figure_add(plot, series, place_of(i, rule), -unrounded[i], found[i]);
    return status;
}

// The zeros of the axis, in dB of QSNR.
static void note_unrounded(qg_plot *plot, const double unrounded[SHOWN_COUNT]) {
    size_t used = strlen(plot->note);
    for (int i = 0; i < SHOWN_COUNT && used < sizeof plot->note; i++)
        used += (size_t)snprintf(plot->note + used, sizeof plot->note - used, "%s %s %.2f",
                                 i ? "," : "; unrounded (dB):", SHOWN[i].label, unrounded[i]);
}

qg_status qg_build_scale_rules(const qg_figure_rows *rows, qg_plot *plot) {
    static const char *names[SHOWN_COUNT];
    qg_figure_mean *means;
    int64_t count;
    double unrounded[SHOWN_COUNT];
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    if (status == QG_OK)
        status = find_unrounded(means, count, unrounded);
    for (int i = 0; i < SHOWN_COUNT; i++)
        names[i] = SHOWN[i].label;
    plot->x = (qg_plot_axis){"", QG_PLOT_LINEAR, -0.5, SHOWN_COUNT - 0.5, NAN, names, SHOWN_COUNT};
    plot->y = (qg_plot_axis){
        "QSNR − QSNR of unrounded scales (dB)", QG_PLOT_LINEAR, -4.2, 0.2, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_LEFT_BOTTOM;
    for (int i = 0; i < RULE_COUNT && status == QG_OK; i++)
        status = add_rule(plot, means, count, i, unrounded);
    if (status == QG_OK) {
        qg_figure_quantized_note(plot, means, count, "N(0, 1)");
        note_unrounded(plot, unrounded);
    }
    free(means);
    return status;
}
