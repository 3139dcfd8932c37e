// QSNR against the crest factor of the blocks, beside the closed forms of "INT v.s. FP".
#include <figure_list.h>
#include <figure_quantize.h>

#include <qg_closed_forms.h>
#include <qg_data.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shown {
    const char *recipe, *label, *rule;
    qg_closed_format closed;
} shown;

// Pairs, a panel each.
static const shown SHOWN[][2] = {
    {{"mxfp8", "MXFP8", "rceil", {0, 3, 7, 448, 1.5, 0}},
     {"mxint8", "MXINT8", "rceil", {8, 0, 0, 127, 1.5, 0}}    },
    {{"mxfp6_e2m3", "MXFP6", "rceil", {0, 3, 1, 7.5, 1.5, 0}},
     {"mxint6", "MXINT6", "rceil", {6, 0, 0, 31, 1.5, 0}}     },
    {{"mxfp4", "MXFP4", "rceil", {0, 1, 1, 6, 1.5, 0}},
     {"mxint4", "MXINT4", "rceil", {4, 0, 0, 7, 1.5, 0}}      },
    {{"nvfp4", "NVFP4", "two_level", {0, 1, 1, 6, 1.05, 16}},
     {"nvint4", "NVINT4", "two_level", {4, 0, 0, 7, 1.05, 16}}},
};
enum { PANELS = sizeof SHOWN / sizeof SHOWN[0], PER_OCTAVE = 16, TOP = 50 };

// Up to where a block of g can have it, short of sqrt g, where forms of UE4M3 scales end.
static double end_of(const shown *s) { return s->closed.group > 0 ? 3.5 : 16; }

// The mean crest factor of the blocks that a law makes: K but for blocks in which others were
// clipped to the largest.
static double crest_of(const char *law, int64_t g) {
    enum { BLOCKS = 256 };
    qg_law *parsed;
    float *x = malloc((size_t)g * BLOCKS * sizeof *x);
    double sum = 0;
    if (!x || qg_law_parse(law, &parsed) != QG_OK) {
        free(x);
        return NAN;
    }
    qg_law_generate(parsed, 1, 0, g, 0, BLOCKS, x);
    for (int64_t b = 0; b < BLOCKS; b++) {
        double largest = 0, squares = 0;
        for (int64_t i = 0; i < g; i++) {
            double v = fabs((double)x[b * g + i]);
            largest = v > largest ? v : largest;
            squares += v * v;
        }
        sum += largest / sqrt(squares / (double)g) / BLOCKS;
    }
    qg_law_free(parsed);
    free(x);
    return sum;
}

// Whether two laws differ in sigma alone.
static bool same_crest(const char *a, const char *b) {
    size_t length = strcspn(a, ":"); // "crest", then K, then G or sigma
    length += 1 + strcspn(a + length + 1, ":");
    if (a[length] == ':' && strncmp(a + length, ":sigma=", 7) != 0)
        length += 1 + strcspn(a + length + 1, ":");
    return strncmp(a, b, length) == 0 &&
           (b[length] == '\0' || strncmp(b + length, ":sigma=", 7) == 0);
}

static qg_status add_form(qg_plot *plot, int panel, const shown *s) {
    int64_t series;
    qg_status status = qg_plot_add(plot, QG_PLOT_THEORY, panel, s->label, s->recipe, "", &series);
    for (int i = 0; status == QG_OK; i++) {
        double kappa = exp2((double)i / PER_OCTAVE);
        if (kappa > end_of(s))
            break;
        double db = qg_closed_qsnr_db(&s->closed, kappa);
        if (isfinite(db))
            status = qg_figure_add_line(plot, series, kappa, db);
    }
    return status;
}

// G of "crest:K:G".
static int64_t group_of(const char *law) {
    const char *second = strchr(law + strcspn(law, ":") + 1, ':');
    return second ? atoll(second + 1) : 0;
}

static int64_t recipe_group(const shown *s) { return s->closed.group > 0 ? s->closed.group : 32; }

static bool is_of(const qg_figure_mean *m, const shown *s) {
    const qg_figure_row *row = m->representative;
    if (group_of(qg_figure_text(row, QG_COLUMN_DATA)) != recipe_group(s))
        return false;
    return strcmp(qg_figure_text(row, QG_COLUMN_FORMAT), s->recipe) == 0 &&
           strcmp(qg_figure_text(row, QG_COLUMN_SCALE_RULE), s->rule) == 0;
}

// All laws of one crest factor as one point: a power-of-two scale is too large by a share that
// depends on where sigma stands in its octave, and the mean is over the noise. Marks them as used.
static qg_figure_mean gather(const qg_figure_mean *means, int64_t count, int64_t first,
                             const shown *s, bool *used) {
    const char *law = qg_figure_text(means[first].representative, QG_COLUMN_DATA);
    qg_figure_mean all = means[first];
    double noise = 0, squares = 0, laws = 0;
    all.seeds = 0;
    for (int64_t i = first; i < count; i++) {
        if (!is_of(&means[i], s) ||
            !same_crest(law, qg_figure_text(means[i].representative, QG_COLUMN_DATA)))
            continue;
        used[i] = true;
        laws++;
        noise += pow(10, -means[i].mean / 10);
        squares += means[i].half_width * means[i].half_width;
        all.seeds += means[i].seeds;
    }
    all.mean = -10 * log10(noise / laws);
    all.half_width = sqrt(squares) / laws;
    return all;
}

static qg_status add_measured(qg_plot *plot, const qg_figure_mean *means, int64_t count, int panel,
                              const shown *s) {
    int64_t series;
    bool *used = calloc((size_t)count + 1, sizeof *used);
    if (!used)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the points of a figure");
    qg_status status = qg_plot_add(plot, QG_PLOT_MEASURED, panel, s->label, s->recipe, "", &series);
    for (int64_t i = 0; i < count && status == QG_OK; i++) {
        if (used[i] || !is_of(&means[i], s))
            continue;
        qg_figure_mean all = gather(means, count, i, s, used);
        const char *law = qg_figure_text(means[i].representative, QG_COLUMN_DATA);
        status = qg_figure_add(plot, series, crest_of(law, recipe_group(s)), 0, &all);
    }
    free(used);
    return status == QG_OK && plot->series[series].count == 0 ? qg_figure_lacks(s->label) : status;
}

// A dashed line over the height of the panel.
static qg_status add_crossover(qg_plot *plot, int panel) {
    const shown *pair = SHOWN[panel];
    double kappa;
    int64_t series;
    qg_status status = qg_closed_crossover(&pair[1].closed, &pair[0].closed, 1.01,
                                           pair[0].closed.group > 0 ? 3 : end_of(&pair[0]), &kappa);
    if (status != QG_OK)
        return status;
    snprintf(plot->panel_title[panel], QG_PLOT_LABEL, "%s, %s: %.2f", pair[0].label, pair[1].label,
             kappa);
    status = qg_plot_add(plot, QG_PLOT_BOUND, panel, "closed forms cross", "", "", &series);
    if (status == QG_OK)
        status = qg_figure_add_line(plot, series, kappa, 0);
    return status == QG_OK ? qg_figure_add_line(plot, series, kappa, TOP) : status;
}

static qg_status add_panel(qg_plot *plot, const qg_figure_mean *means, int64_t count, int panel) {
    qg_status status = QG_OK;
    for (int i = 0; i < 2 && status == QG_OK; i++) {
        status = add_form(plot, panel, &SHOWN[panel][i]);
        if (status == QG_OK)
            status = add_measured(plot, means, count, panel, &SHOWN[panel][i]);
    }
    return status == QG_OK ? add_crossover(plot, panel) : status;
}

qg_status qg_build_crest_factor(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_quantized(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    plot->panels = PANELS;
    plot->columns = PANELS;
    plot->x = (qg_plot_axis){"crest factor κ of the blocks", QG_PLOT_LOG2, 1, 16, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"QSNR (dB)", QG_PLOT_LINEAR, 0, TOP, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = 0; i < PANELS && status == QG_OK; i++)
        status = add_panel(plot, means, count, i);
    if (status == QG_OK)
        qg_figure_quantized_note(plot, means, count, "laws crest:κ:G at four places of the octave");
    free(means);
    return status;
}
