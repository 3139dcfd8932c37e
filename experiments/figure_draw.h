// From a figure and result files to its data, script and pictures.
#ifndef FIGURE_DRAW_H
#define FIGURE_DRAW_H

#include <figure_report.h>

typedef struct qg_figure_request {
    const char *folder; // exists
    const char *const *files;
    const uint64_t *digests; // of the files' content
    int file_count;
    qg_figure_input input;
    bool svg, png, pdf;
    const char *sweep; // run_sweep as a shell takes it
} qg_figure_request;

typedef struct qg_figure_times {
    double build, draw; // seconds: of this program, of gnuplot
} qg_figure_times;

// Fills *state; the status is QG_OK also where the figure lacks data.
qg_status qg_figure_draw(const qg_figure *figure, const qg_figure_request *request,
                         qg_figure_state *state, qg_figure_times *times);
// The same without writing anything: whether the data suffice.
qg_status qg_figure_check(const qg_figure *figure, const qg_figure_request *request,
                          qg_figure_state *state);

#endif
