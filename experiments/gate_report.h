// The verdicts of a run, as text, Markdown, JUnit XML or JSON.
#ifndef GATE_REPORT_H
#define GATE_REPORT_H

#include <gate_run.h>
#include <stdio.h>

// What a gate found, summed up.
typedef struct qg_gate_summary {
    const qg_gate *gate;
    int64_t counts[QG_VERDICT_COUNT];
    double used;                 // largest share of the tolerance
    const qg_gate_result *worst; // its case; NULL: none
} qg_gate_summary;

// One row per gate that has results, in the order of the gates file; *count of them. The caller
// frees. NULL: no memory.
qg_gate_summary *qg_gate_summaries(const qg_gate_run *run, int *count);

typedef struct qg_gate_report {
    const qg_gate_run *run;
    const char *baseline; // path, "" for none
    const qg_gate_summary *summaries;
    int summary_count;
    FILE *stream;
} qg_gate_report;

enum { QG_GATE_REPORT_MOST = 20 }; // lines of each verdict that asks for attention

void qg_gate_report_text(const qg_gate_report *report);
void qg_gate_report_markdown(const qg_gate_report *report);
void qg_gate_report_junit(const qg_gate_report *report);
void qg_gate_report_json(const qg_gate_report *report);

// Verdicts that end a run badly or ask to be looked at: FAIL, XPASS, MISSING.
bool qg_gate_is_bad(qg_verdict verdict);
// The case of a result in a line; the command that repeats it, "" if it is not known.
void qg_gate_result_case(const qg_gate_result *result, char *text, size_t size);
const char *qg_gate_result_repro(const qg_gate_result *result);

#endif
