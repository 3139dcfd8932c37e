// Where the parts of a plot lie: bounds of its axes, tics, the rectangles of its panels, its key.
// All lengths are points (1/72 inch) from the left bottom corner of the picture, so that every
// terminal draws the same picture.
#ifndef PLOT_LAYOUT_H
#define PLOT_LAYOUT_H

#include <plot.h>

enum { QG_PLOT_ENTRIES = 48 };

// An axis with its bounds found.
typedef struct qg_plot_view {
    double from, to;
    double exact_at; // NaN: no zero is drawn
    bool turned;     // its names are too long to lie side by side
} qg_plot_view;

typedef struct qg_plot_box {
    double left, right, bottom, top;
} qg_plot_box;

// One entry of the key: the series of one label, drawn as they are drawn in the panels.
typedef struct qg_plot_entry {
    int64_t series; // the first of them
    bool has_line, has_points;
} qg_plot_entry;

typedef struct qg_plot_layout {
    double width, height;
    qg_plot_view x, y;
    qg_plot_box panel[QG_PLOT_PANELS];
    int rows, columns; // of panels
    qg_plot_entry entry[QG_PLOT_ENTRIES];
    int entries, key_columns;
    double key_x, key_y; // of a key outside: middle of its lower edge, or its left upper corner
    double xlabel_y;     // middle of the line
    qg_plot_box colours; // of heat maps
    double colour_from, colour_to;
    bool has_cells;
} qg_plot_layout;

// width, height: of the picture.
void qg_plot_lay_out(const qg_plot *plot, double width, double height, qg_plot_layout *out);

// Lines and points of a mark, as the key shows them.
bool qg_plot_mark_has_line(qg_plot_mark mark);
bool qg_plot_mark_has_points(qg_plot_mark mark);

#endif
