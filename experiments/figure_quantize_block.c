// QSNR against the size of the blocks, a panel per element format, a series per scale format.
#include <figure_list.h>
#include <figure_quantize.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shown {
    const char *name, *label;
} shown;
static const shown FORMATS[] = {
    {"e4m3", "E4M3"},
    {"e2m1", "E2M1"},
    {"int8", "INT8"}
};
static const shown RULES[] = {
    {"amax",      "FP32"        },
    {"two_level", "E4M3 × FP32"},
    {"rceil",     "E8M0 (rceil)"}
};
enum { FORMAT_COUNT = 3, RULE_COUNT = 3 };

static double size_of(const qg_figure_row *row) {
    return atof(qg_figure_text(row, QG_COLUMN_LAYOUT) + strlen("group:"));
}

static bool is_of(const qg_figure_mean *m, const char *format, const char *rule) {
    const qg_figure_row *row = m->representative;
    return strcmp(qg_figure_text(row, QG_COLUMN_FORMAT), format) == 0 &&
           strcmp(qg_figure_text(row, QG_COLUMN_SCALE_RULE), rule) == 0;
}

static qg_status add_series(qg_plot *plot, const qg_figure_mean *means, int64_t count, int panel,
                            const shown *rule) {
    const char *format = FORMATS[panel].name;
    int64_t theory, measured, points = 0;
    qg_status status =
        qg_plot_add(plot, QG_PLOT_THEORY, panel, rule->label, rule->label, rule->name, &theory);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, panel, rule->label, rule->label, rule->name,
                             &measured);
    for (int64_t i = 0; i < count && status == QG_OK; i++) {
        qg_noise noise;
        if (!is_of(&means[i], format, rule->name))
            continue;
        points++;
        double size = size_of(means[i].representative);
        if (qg_figure_theory(means[i].representative, &noise))
            status = qg_figure_add_line(plot, theory, size, qg_noise_qsnr_db(noise));
        if (status == QG_OK)
            status = qg_figure_add(plot, measured, size, 0, &means[i]);
    }
    return status == QG_OK && points == 0 ? qg_figure_lacks(rule->label) : status;
}

static int by_size(const void *a, const void *b) {
    double x = size_of(((const qg_figure_mean *)a)->representative);
    double y = size_of(((const qg_figure_mean *)b)->representative);
    return (x > y) - (x < y);
}

qg_status qg_build_block_size(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    plot->panels = plot->columns = FORMAT_COUNT;
    plot->x = (qg_plot_axis){"elements of a block", QG_PLOT_LOG2, 4, 32768, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"QSNR (dB)", QG_PLOT_LINEAR, NAN, NAN, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_RIGHT_TOP;
    if (status == QG_OK)
        qsort(means, (size_t)count, sizeof *means, by_size);
    for (int i = 0; i < FORMAT_COUNT * RULE_COUNT && status == QG_OK; i++) {
        int panel = i / RULE_COUNT;
        snprintf(plot->panel_title[panel], QG_PLOT_LABEL, "%s", FORMATS[panel].label);
        status = add_series(plot, means, count, panel, &RULES[i % RULE_COUNT]);
    }
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "N(0, 1)");
    free(means);
    return status;
}
