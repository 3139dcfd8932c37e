// Narrow data: block scales in unsigned E4M3 run out of range, and smaller blocks come out worse.
#include <figure_list.h>
#include <figure_quantize.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int SIZES[] = {8, 16, 32};
enum { SIZE_COUNT = 3 };

typedef struct shown {
    const char *rule, *suffix;
} shown;
static const shown RULES[] = {
    {"amax_ue4m3", ""              },
    {"two_level",  ", tensor scale"}
};

// -1 for another law than the normal one.
static double sigma_of(const qg_figure_row *row) {
    qg_density density;
    double sigma = qg_figure_sigma(qg_figure_text(row, QG_COLUMN_DATA), &density);
    return density == QG_DENSITY_NORMAL ? sigma : -1;
}

static int by_sigma(const void *a, const void *b) {
    double x = sigma_of(((const qg_figure_mean *)a)->representative);
    double y = sigma_of(((const qg_figure_mean *)b)->representative);
    return (x > y) - (x < y);
}

// The rows of one size and rule, in order of sigma: (count) of them.
typedef struct width_rows {
    const qg_figure_row **items;
    int64_t count;
} width_rows;

static qg_status add_theory(qg_plot *plot, int64_t series, const width_rows *rows, int size) {
    const qg_figure_row *last = rows->items[rows->count - 1];
    qg_gate_operand operand = {0};
    qg_status status = QG_OK;
    // The tensor's maximum scales with sigma: that of one row stands for all. With a tensor scale the
    // noise does not depend on sigma: two places are enough.
    bool flat = strcmp(qg_figure_text(last, QG_COLUMN_SCALE_RULE), "two_level") == 0;
    double amax = qg_figure_number(last, QG_COLUMN_SUM_MAX_ABS_X) / sigma_of(last);
    int64_t places = 2 * rows->count - 1; // at the rows and between them
    qg_gate_operand_find("e2m1", qg_figure_text(last, QG_COLUMN_LAYOUT),
                         qg_figure_text(last, QG_COLUMN_SCALE_RULE), "rne", &operand);
    for (int64_t i = 0; i < places && status == QG_OK; i += flat && places > 1 ? places - 1 : 1) {
        qg_noise noise;
        double sigma = sqrt(sigma_of(rows->items[i / 2]) * sigma_of(rows->items[(i + 1) / 2]));
        if (qg_figure_block_theory(&operand, QG_DENSITY_NORMAL, sigma, size, amax * sigma, &noise))
            status = qg_figure_add_line(plot, series, sigma, qg_noise_qsnr_db(noise));
    }
    return status;
}

static qg_status add_size(qg_plot *plot, const qg_figure_mean *means, int64_t count, int size,
                          const shown *rule) {
    char layout[32], label[QG_PLOT_LABEL], colour[32];
    int64_t theory, measured;
    width_rows rows = {malloc((size_t)(count + 1) * sizeof *rows.items), 0};
    if (!rows.items)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the points of a figure");
    snprintf(layout, sizeof layout, "group:%d", size);
    snprintf(label, sizeof label, "blocks of %d%s", size, rule->suffix);
    snprintf(colour, sizeof colour, "blocks of %d", size); // no format: a colour of the palette
    qg_status status = qg_plot_add(plot, QG_PLOT_THEORY, 0, label, colour, rule->rule, &theory);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, label, colour, rule->rule, &measured);
    for (int64_t i = 0; i < count && status == QG_OK; i++) {
        const qg_figure_row *row = means[i].representative;
        if (strcmp(qg_figure_text(row, QG_COLUMN_LAYOUT), layout) != 0 ||
            strcmp(qg_figure_text(row, QG_COLUMN_SCALE_RULE), rule->rule) != 0 || sigma_of(row) < 0)
            continue;
        rows.items[rows.count++] = row;
        status = qg_figure_add(plot, measured, sigma_of(row), 0, &means[i]);
    }
    if (status == QG_OK)
        status = rows.count > 0 ? add_theory(plot, theory, &rows, size) : qg_figure_lacks(label);
    free(rows.items);
    return status;
}

qg_status qg_build_narrow_data(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    plot->x = (qg_plot_axis){"σ of the data", QG_PLOT_LOG10, 1e-3, 1, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"QSNR (dB)", QG_PLOT_LINEAR, 0, 22, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_RIGHT_BOTTOM;
    if (status == QG_OK)
        qsort(means, (size_t)count, sizeof *means, by_sigma);
    for (int i = 0; i < 2 * SIZE_COUNT && status == QG_OK; i++)
        status = add_size(plot, means, count, SIZES[i % SIZE_COUNT], &RULES[i / SIZE_COUNT]);
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "N(0, σ²), E2M1 elements");
    free(means);
    return status;
}
