// Published results beside ours: one row of a table each (published.c), computed from result files
// or in place. See make_figures and `reports/`.
#ifndef PUBLISHED_H
#define PUBLISHED_H

#include <figure.h>

typedef enum qg_published_verdict {
    QG_PUBLISHED_REPRODUCED, // within the tolerance, whose reason the row gives
    QG_PUBLISHED_DIFFERS,
    QG_PUBLISHED_NO_DATA // the files lack the rows; `note` holds the command that measures them
} qg_published_verdict;

typedef struct qg_published_result {
    char paper[64], item[160];
    char theirs[48], ours[48], difference[48]; // as printed, with units
    qg_published_verdict verdict;
    char note[200]; // tolerance and its reason, or the command
} qg_published_result;

// Appends all results; *out of (*count), the caller frees. `computes`: also those that need no file
// but seconds of computing. QG_ERROR_MEMORY.
qg_status qg_published_results(const qg_figure_input *input, bool computes,
                               qg_published_result **out, int *count);
// The i-th file of experiments/plans that measures rows for them, each once; NULL past the end.
const char *qg_published_plan(int i);
const char *qg_published_verdict_name(qg_published_verdict verdict);

#endif
