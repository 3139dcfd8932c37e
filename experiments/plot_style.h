// The look of all figures: colours of formats, dashes of scale rules, shapes of points. One table
// each, so that a format has the same colour everywhere.
#ifndef PLOT_STYLE_H
#define PLOT_STYLE_H

enum { QG_PLOT_COLOURS = 10 };

// "#rrggbb" of a format or recipe by its element format; NULL if it has none of its own.
const char *qg_plot_colour_of(const char *format);
// The i-th colour of the palette (Okabe-Ito first), around and around.
const char *qg_plot_colour_at(int i);
// gnuplot's dash type of a rule: "1" (solid) or a pattern; solid for rules without.
const char *qg_plot_dash_of(const char *rule);
// gnuplot's point type of the i-th series of a panel.
int qg_plot_shape_at(int i);

#endif
