// A plot: panels, axes, series. What a figure's builder fills and gnuplot draws.
//
// Conventions (all figures): 3.3 or 7.0 inches wide, sans 8 pt labels, 7 pt key and tics, lines 1 to
// 1.5 pt; the Okabe-Ito palette; one colour per format and one dash per scale rule in all figures;
// a different point shape per series; log2 axes with 2^n tics; axes left and bottom only, tics
// outward, light grid; a zero on a log axis is drawn at a floor marker, never dropped.
#ifndef PLOT_H
#define PLOT_H

#include <qg_status.h>
#include <stdbool.h>
#include <stdint.h>

enum { QG_PLOT_LABEL = 96, QG_PLOT_PANELS = 12 };

typedef enum qg_plot_mark {
    QG_PLOT_THEORY,   // a line without points
    QG_PLOT_MEASURED, // points, with bars from low to high where these are numbers
    QG_PLOT_JOINED,   // points joined by a thin line
    QG_PLOT_BOUND,    // a dashed grey line
    QG_PLOT_SLOPE,    // a thin grey line: a reference slope, labelled at its end
    QG_PLOT_BAR,      // bars from 0, one group per x
    QG_PLOT_RUG,      // a short vertical tick at x, in the row y
    QG_PLOT_VERTICAL, // a vertical line at x, labelled
    QG_PLOT_CELL      // a cell of a heat map: x, y, colour z
} qg_plot_mark;

typedef enum qg_plot_scale { QG_PLOT_LINEAR, QG_PLOT_LOG2, QG_PLOT_LOG10 } qg_plot_scale;

typedef enum qg_plot_key {
    QG_PLOT_KEY_NONE,
    QG_PLOT_KEY_LEFT_TOP,
    QG_PLOT_KEY_RIGHT_TOP,
    QG_PLOT_KEY_LEFT_BOTTOM,
    QG_PLOT_KEY_RIGHT_BOTTOM,
    QG_PLOT_KEY_BELOW, // under the panels, several columns
    QG_PLOT_KEY_BESIDE // right of the panels
} qg_plot_key;

typedef struct qg_plot_point {
    double x, y;
    double low, high; // 95 % interval or min and max; NaN: none
    double z;         // of a cell
} qg_plot_point;

typedef struct qg_plot_series {
    char label[QG_PLOT_LABEL]; // "" keeps it out of the key
    char format[32];           // whose colour; "": the next free colour
    char rule[32];             // whose dash; "": solid
    qg_plot_mark mark;
    int panel;
    qg_plot_point *points;
    int64_t count, room;
} qg_plot_series;

typedef struct qg_plot_axis {
    char label[QG_PLOT_LABEL];
    qg_plot_scale scale;
    double from, to; // NaN: from the data
    // Log axes: where zeros are drawn, labelled "exact"; NaN: below the least value, if there are any.
    double exact_at;
    // Named places instead of numbers (bar groups, rug rows), (names) texts at 0, 1, ...; or NULL.
    const char *const *names;
    int name_count;
} qg_plot_axis;

typedef struct qg_plot {
    int panels; // 1 at least, drawn side by side in `columns`
    int columns;
    char panel_title[QG_PLOT_PANELS][QG_PLOT_LABEL];
    qg_plot_axis x, y;
    char colour_label[QG_PLOT_LABEL]; // of cells
    qg_plot_key key;
    char note[512]; // n, seeds, law as found in the rows: goes into the caption
    qg_plot_series *series;
    int64_t count, room;
} qg_plot;

void qg_plot_open(qg_plot *plot); // one panel, linear axes, no key
void qg_plot_close(qg_plot *plot);

// Appends a series; returns its index through *series. format and rule may be "".
qg_status qg_plot_add(qg_plot *plot, qg_plot_mark mark, int panel, const char *label,
                      const char *format, const char *rule, int64_t *series);
// Appends a point to a series. NaN in low and high: no interval.
qg_status qg_plot_point_add(qg_plot *plot, int64_t series, qg_plot_point point);

#endif
