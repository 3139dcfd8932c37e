// How each series of a plot looks: its colour, dash and shape.
#ifndef PLOT_LOOK_H
#define PLOT_LOOK_H

#include <plot.h>

typedef struct qg_plot_look {
    const char *colour; // "#rrggbb"
    const char *dash;   // gnuplot's dash type
    int shape;          // gnuplot's point type
} qg_plot_look;

// A format's colour and a rule's dash are those of plot_style.h. What has no colour of its own gets
// those that no format of the plot has, in turn; series of one format, or of one label without
// format, share a colour, and series of one label and rule a shape, in all panels.
qg_plot_look qg_plot_look_of(const qg_plot *plot, int64_t series);

#endif
