// Holding result files to gates. One function per kind of gate; each adds what it finds to the run.
#ifndef GATE_RUN_H
#define GATE_RUN_H

#include <gate.h>
#include <gate_baseline.h>
#include <gate_names.h>

typedef struct qg_gate_file {
    const char *path;
    qg_table *table;
    bool complete, verified;
} qg_gate_file;

// What one gate says of one row.
typedef struct qg_gate_result {
    const qg_gate *gate;
    const qg_gate_file *file; // NULL: of the baseline alone
    int64_t row;              // -1: of the file as a whole, or of a case without a row
    qg_verdict verdict;
    double value, limit; // NaN where they do not apply
    double used;         // share of the tolerance, 1 at the limit; NaN where there is none
    char *detail;        // NULL for what passes: one line, what was compared
    char *repro;         // of a case without a row, else NULL
} qg_gate_result;

typedef struct qg_gate_run {
    const qg_gates *gates;
    const qg_gate_file *files;
    int file_count;
    const qg_baseline *baseline; // NULL: none
    bool baseline_is_explicit;
    bool perf;
    bool allow_missing;
    const char *today; // YYYY-MM-DD
    bool has_explained;
    uint64_t explained; // the only case that is gated, if has_explained
    qg_gate_names *names;
    qg_gate_result *results;
    int64_t count, room;
} qg_gate_run;

// Fills names and results. QG_ERROR_MEMORY.
qg_status qg_gate_run_all(qg_gate_run *run);
void qg_gate_run_free(qg_gate_run *run);

// The worst of the verdicts: 0, 1, 3, 4.
int qg_gate_run_exit_code(const qg_gate_run *run);
// One word: PASS, FAIL, MISSING, NOTHING.
const char *qg_gate_run_verdict(const qg_gate_run *run);

// ------------------------------------------------------------------------- for the kinds of gates

qg_status qg_gate_run_bits(qg_gate_run *run, const qg_gate *gate);
qg_status qg_gate_run_consistency(qg_gate_run *run, const qg_gate *gate);
qg_status qg_gate_run_limits(qg_gate_run *run, const qg_gate *gate);
// Cases of the plans, and of an explicit baseline, without a result.
qg_status qg_gate_run_missing(qg_gate_run *run);
// Turns FAIL into XFAIL where a known row covers it, and adds XPASS for known rows that do not fail.
qg_status qg_gate_run_known(qg_gate_run *run, const qg_gate *gate);

// Whether the gate has to do with a row: it was measured, and the gate's `where` holds.
bool qg_gate_takes(const qg_gate_run *run, const qg_gate *gate, const qg_gate_file *file,
                   int64_t row);
bool qg_gate_is_mistrusted(const qg_gate_file *file, int64_t row);
bool qg_gate_where_holds(const qg_gate *gate, const qg_table *table, int64_t row);

// Appends a result; the detail is a printf-like text, "" for none. QG_ERROR_MEMORY.
__attribute__((format(printf, 3, 4))) qg_status qg_gate_add(qg_gate_run *run,
                                                            const qg_gate_result *result,
                                                            const char *format, ...);

// "mxfp8 group:32 floor normal 16x128 seed 1 cpu": a case in a line.
void qg_gate_describe(const qg_table *table, int64_t row, char *text, size_t size);

#endif
