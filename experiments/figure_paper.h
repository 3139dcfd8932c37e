// `make_figures --paper`: measures what the figures need, by run_sweep on the union of their plans.
#ifndef FIGURE_PAPER_H
#define FIGURE_PAPER_H

#include <figure.h>
#include <stdbool.h>

typedef struct qg_figure_paper {
    const char *folder;              // exists
    const qg_figure *const *figures; // (figure_count)
    int figure_count;
    const char *threads, *isa; // of run_sweep; NULL: its default
    bool published; // the plans of published results, too
    bool quiet, verbose;
} qg_figure_paper;

// Writes FOLDER/paper.plan and runs the run_sweep beside this program on it, into FOLDER/paper.h5,
// whose path it gives. Prints what is wrong. Returns an exit code; where 1, the file is there, but
// holds failures. *path is "" if no figure needs a measurement.
int qg_figure_paper_measure(const qg_figure_paper *paper, char *path, size_t size);

#endif
