// `--explain CASE`: every gate of one case, with the values of the names in its formulas.
#ifndef GATE_EXPLAIN_H
#define GATE_EXPLAIN_H

#include <gate_run.h>
#include <stdio.h>

void qg_gate_explain(const qg_gate_run *run, FILE *stream);

#endif
