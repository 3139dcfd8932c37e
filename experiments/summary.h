// The end of a run: what was measured, what was not and why, what failed, and what to type next.
#ifndef SUMMARY_H
#define SUMMARY_H

#include <launcher.h>
#include <qg_sweep.h>
#include <stdio.h>

typedef struct qg_summary {
    const qg_plan *plan;
    const qg_sweep_outcome *outcome;
    const char *program; // as the user typed it
    const char *out;     // the result file as given
    int width;           // columns to fit into
    const qg_shard *shard;
    bool merge_only; // --merge
} qg_summary;

// A shard of several that does not merge prints two lines and its failures; a merge that lacks
// cases prints nothing: the sweep's message says it.
void qg_summary_print(const qg_summary *summary, FILE *stream);

#endif
