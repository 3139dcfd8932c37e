// Figures of single elements' errors: over the sizes of a matrix (F12), and their distribution (F13).
#include <figure_list.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Rows that differ in their sizes and seeds alone.
typedef struct group {
    const qg_figure_row *row; // the first
    int64_t cells;
    double most; // elements, m k, of its largest row
} group;

static bool agree(const qg_figure_row *a, const qg_figure_row *b, qg_column column) {
    return strcmp(qg_figure_text(a, column), qg_figure_text(b, column)) == 0;
}

static bool same_panel(const qg_figure_row *a, const qg_figure_row *b) {
    return agree(a, b, QG_COLUMN_FORMAT) && agree(a, b, QG_COLUMN_LAYOUT) &&
           agree(a, b, QG_COLUMN_SCALE_RULE);
}

static bool same_recipe(const qg_figure_row *a, const qg_figure_row *b) {
    return same_panel(a, b) && agree(a, b, QG_COLUMN_ROUNDING) && agree(a, b, QG_COLUMN_BACKEND) &&
           agree(a, b, QG_COLUMN_INPUT_TYPE);
}

static double elements_of(const qg_figure_row *row) {
    return qg_figure_number(row, QG_COLUMN_M) * qg_figure_number(row, QG_COLUMN_K);
}

// ---------------------------------------------------------------------------------------------- F12

enum { MOST_GROUPS = 256, MOST_PANELS = 6, MOST_SIZES = 24, LEAST_CELLS = 9 };

typedef struct sizes {
    double value[MOST_SIZES];
    int times[MOST_SIZES]; // cells that have it
    int count;
} sizes;

static int place_of(const sizes *s, double value) {
    for (int i = 0; i < s->count; i++)
        if (s->value[i] == value)
            return i;
    return -1;
}

// Keeps them sorted.
static void add_size(sizes *s, double value) {
    int at = place_of(s, value);
    if (at >= 0)
        s->times[at]++;
    if (at >= 0 || s->count == MOST_SIZES)
        return;
    for (at = s->count; at > 0 && s->value[at - 1] > value; at--) {
        s->value[at] = s->value[at - 1];
        s->times[at] = s->times[at - 1];
    }
    s->value[at] = value;
    s->times[at] = 1;
    s->count++;
}

// Drops the sizes that few cells have: of other sweeps, not of the grid.
static void keep_frequent(sizes *s) {
    int kept = 0, most = 0;
    for (int i = 0; i < s->count; i++)
        most = s->times[i] > most ? s->times[i] : most;
    for (int i = 0; i < s->count; i++)
        if (2 * s->times[i] > most) {
            s->value[kept] = s->value[i];
            s->times[kept++] = s->times[i];
        }
    s->count = kept;
}

// Names of the sizes; they live as long as the program, as an axis needs.
static const char *const *names_of(const sizes *s, char text[MOST_SIZES][16],
                                   const char *names[MOST_SIZES]) {
    for (int i = 0; i < s->count; i++) {
        snprintf(text[i], 16, "%.0f", s->value[i]);
        names[i] = text[i];
    }
    return names;
}

static int find_groups(const qg_figure_mean *means, int64_t count, group *groups) {
    int found = 0;
    for (int64_t i = 0; i < count; i++) {
        int at = 0;
        while (at < found && !same_recipe(groups[at].row, means[i].representative))
            at++;
        if (at == MOST_GROUPS)
            continue;
        if (at == found)
            groups[found++] = (group){means[i].representative, 0, 0};
        groups[at].cells++;
        groups[at].most = fmax(groups[at].most, elements_of(means[i].representative));
    }
    return found;
}

static bool has_panel(const group *groups, int count, const qg_figure_row *row) {
    for (int i = 0; i < count; i++)
        if (same_panel(groups[i].row, row))
            return true;
    return false;
}

// Groups that hold a grid of sizes, in order; of several backends the first.
static int keep_grids(group *groups, int count) {
    int64_t most = 0;
    int kept = 0;
    for (int i = 0; i < count; i++)
        most = groups[i].cells > most ? groups[i].cells : most;
    for (int i = 0; i < count && kept < MOST_PANELS; i++)
        if (groups[i].cells >= LEAST_CELLS && 2 * groups[i].cells > most &&
            !has_panel(groups, kept, groups[i].row))
            groups[kept++] = groups[i];
    return kept;
}

static qg_status add_cells(qg_plot *plot, int panel, const group *g, const qg_figure_mean *means,
                           int64_t count, const sizes *m, const sizes *k) {
    char label[64];
    double reference = 0;
    int64_t series;
    for (int64_t i = 0; i < count; i++)
        if (same_recipe(means[i].representative, g->row) &&
            elements_of(means[i].representative) == g->most)
            reference = means[i].mean;
    qg_figure_label(qg_figure_text(g->row, QG_COLUMN_FORMAT), label, sizeof label);
    snprintf(plot->panel_title[panel], sizeof plot->panel_title[panel], "%s %s: %.2f dB", label,
             qg_figure_text(g->row, QG_COLUMN_LAYOUT), reference);
    qg_status status =
        qg_plot_add(plot, QG_PLOT_CELL, panel, plot->panel_title[panel], "", "", &series);
    for (int64_t i = 0; i < count && status == QG_OK; i++) {
        const qg_figure_row *row = means[i].representative;
        int x = place_of(k, qg_figure_number(row, QG_COLUMN_K));
        int y = place_of(m, qg_figure_number(row, QG_COLUMN_M));
        if (same_recipe(row, g->row) && x >= 0 && y >= 0 && isfinite(means[i].mean))
            status = qg_plot_point_add(plot, series,
                                       (qg_plot_point){x, y, NAN, NAN, means[i].mean - reference});
    }
    return status;
}

static qg_status draw_grids(qg_plot *plot, const qg_figure_mean *means, int64_t count,
                            const group *groups, int panels) {
    static char m_text[MOST_SIZES][16], k_text[MOST_SIZES][16];
    static const char *m_names[MOST_SIZES], *k_names[MOST_SIZES];
    sizes m = {0}, k = {0};
    qg_status status = QG_OK;
    for (int64_t i = 0; i < count; i++)
        for (int p = 0; p < panels; p++)
            if (same_recipe(means[i].representative, groups[p].row)) {
                add_size(&m, qg_figure_number(means[i].representative, QG_COLUMN_M));
                add_size(&k, qg_figure_number(means[i].representative, QG_COLUMN_K));
            }
    keep_frequent(&m);
    keep_frequent(&k);
    plot->panels = panels;
    plot->columns = panels < 3 ? panels : 3;
    plot->x = (qg_plot_axis){
        "k", QG_PLOT_LINEAR, -0.5, k.count - 0.5, NAN, names_of(&k, k_text, k_names), k.count};
    plot->y = (qg_plot_axis){
        "m", QG_PLOT_LINEAR, -0.5, m.count - 0.5, NAN, names_of(&m, m_text, m_names), m.count};
    snprintf(plot->colour_label, sizeof plot->colour_label, "QSNR above the largest's (dB)");
    for (int p = 0; p < panels && status == QG_OK; p++)
        status = add_cells(plot, p, &groups[p], means, count, &m, &k);
    return status;
}

// The caption speaks of the rows that are drawn.
static qg_status note_grids(const qg_figure_rows *rows, const group *groups, int panels,
                            qg_plot *plot) {
    int64_t count = 0;
    qg_figure_row *drawn = malloc((size_t)(rows->count + 1) * sizeof *drawn);
    if (!drawn)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the rows of a figure");
    for (int64_t i = 0; i < rows->count; i++)
        for (int p = 0; p < panels; p++)
            if (same_recipe(&rows->items[i], groups[p].row)) {
                drawn[count++] = rows->items[i];
                break;
            }
    qg_figure_note(&(qg_figure_rows){drawn, count}, plot->note, sizeof plot->note);
    free(drawn);
    return QG_OK;
}

qg_status qg_build_sizes(const qg_figure_rows *rows, qg_plot *plot) {
    qg_figure_mean *means;
    int64_t count;
    qg_status status = qg_figure_means(rows, QG_COLUMN_METRIC_QSNR_DB, &means, &count);
    if (status != QG_OK)
        return status;
    group groups[MOST_GROUPS];
    int panels = keep_grids(groups, find_groups(means, count, groups));
    status = panels ? draw_grids(plot, means, count, groups, panels)
                    : qg_fail(QG_ERROR_DATA, "no recipe was measured at %d sizes (m, k) or more",
                              LEAST_CELLS);
    if (status == QG_OK)
        status = note_grids(rows, groups, panels, plot);
    free(means);
    return status;
}

// ---------------------------------------------------------------------------------------------- F13

enum { MOST_CURVES = 9 };

// One group per format: of the row with the most elements.
static int choose_rows(const qg_figure_rows *rows, const qg_figure_row **chosen) {
    int count = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const qg_figure_row *row = &rows->items[i];
        const int64_t *rel, *ulp;
        const char *format = qg_figure_text(row, QG_COLUMN_FORMAT);
        int at = 0;
        if (!qg_table_histograms(row->table, row->row, &rel, &ulp))
            continue;
        while (at < count && strcmp(qg_figure_text(chosen[at], QG_COLUMN_FORMAT), format) != 0)
            at++;
        if (at == MOST_CURVES)
            continue;
        if (at == count)
            chosen[count++] = row;
        else if (elements_of(row) > elements_of(chosen[at]))
            chosen[at] = row;
    }
    return count;
}

// The share of the elements whose error exceeds each edge of the bins.
static qg_status add_distribution(qg_plot *plot, const qg_figure_row *row) {
    const int64_t *rel, *ulp;
    char label[64];
    int64_t series, above = 0;
    double n = qg_figure_number(row, QG_COLUMN_SUM_N_FINITE) -
               qg_figure_number(row, QG_COLUMN_SUM_ZERO_REFERENCE);
    const char *format = qg_figure_text(row, QG_COLUMN_FORMAT);
    qg_figure_label(format, label, sizeof label);
    if (!qg_table_histograms(row->table, row->row, &rel, &ulp) || !(n > 0))
        return QG_OK;
    qg_status status = qg_plot_add(plot, QG_PLOT_JOINED, 0, label, format, "", &series);
    for (int bin = QG_HIST_LOG2_BINS - 1; bin >= 0 && status == QG_OK; bin--) {
        above += rel[bin];
        double edge = ldexp(1.0, bin + QG_HIST_LOG2_MIN);
        if (above > 0 && edge >= plot->x.from && edge <= plot->x.to)
            status = qg_plot_point_add(plot, series,
                                       (qg_plot_point){edge, (double)above / n, NAN, NAN, NAN});
    }
    return status;
}

qg_status qg_build_distribution(const qg_figure_rows *rows, qg_plot *plot) {
    const qg_figure_row *chosen[MOST_CURVES];
    qg_figure_row drawn[MOST_CURVES];
    int count = choose_rows(rows, chosen);
    qg_status status = QG_OK;
    if (count == 0)
        return qg_fail(QG_ERROR_DATA, "no row holds a histogram of its errors");
    plot->x =
        (qg_plot_axis){"relative error of an element", QG_PLOT_LOG2, 0x1p-9, 1.3, NAN, NULL, 0};
    plot->y =
        (qg_plot_axis){"share with this error or more", QG_PLOT_LOG10, 2e-6, 1.5, NAN, NULL, 0};
    plot->key = QG_PLOT_KEY_BELOW;
    for (int i = 0; i < count && status == QG_OK; i++) {
        drawn[i] = *chosen[i];
        status = add_distribution(plot, chosen[i]);
    }
    qg_figure_note(&(qg_figure_rows){drawn, count}, plot->note, sizeof plot->note);
    return status;
}
