// The end of a run: what was measured, what was not and why, what failed, and what to type next.
#ifndef SUMMARY_H
#define SUMMARY_H

#include <qg_sweep.h>
#include <stdio.h>

typedef struct qg_summary {
    const qg_plan *plan;
    const qg_sweep_outcome *outcome;
    const char *program; // as the user typed it
    const char *out;     // the result file as given
    int width;           // columns to fit into
} qg_summary;

void qg_summary_print(const qg_summary *summary, FILE *stream);

#endif
