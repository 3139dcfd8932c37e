// What make_figures does to the rows before a builder sees them.
#ifndef FIGURE_SELECT_H
#define FIGURE_SELECT_H

#include <expression.h>
#include <figure.h>

// Measured rows for which `where` holds, each case once; none for NULL. Caller frees.
qg_status qg_figure_select(const qg_figure_input *input, const char *where, qg_figure_rows *out);
void qg_figure_rows_free(qg_figure_rows *rows);

#endif
