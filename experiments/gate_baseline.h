// Baselines: what results were, as TSV that a review reads. One row per group of cases that differ
// in the seed alone, and reference: axes, seeds, case ids, digests, metrics as mean and spread.
// Native products and timing are never part of one: they depend on the machine.
#ifndef GATE_BASELINE_H
#define GATE_BASELINE_H

#include <gate_names.h>
#include <stdio.h>

enum { QG_BASELINE_SEEDS_LEAST = 5 }; // for metrics: fewer say nothing of the spread

// Columns of metrics. X(COLUMN)
#define QG_BASELINE_METRIC_TABLE(X)                                                                \
    X(METRIC_QSNR_DB)                                                                              \
    X(METRIC_REL_FROBENIUS)                                                                        \
    X(METRIC_BIAS_REL)                                                                             \
    X(METRIC_MAX_ULP)                                                                              \
    X(BACKWARD_ERROR)

enum {
#define QG_BASELINE_ENUM(COLUMN) QG_BASELINE_##COLUMN,
    QG_BASELINE_METRIC_TABLE(QG_BASELINE_ENUM)
#undef QG_BASELINE_ENUM
        QG_BASELINE_METRICS
};

typedef struct qg_baseline_row {
    char *axes; // their texts, joined by tabs
    int count;  // cases
    uint64_t *seeds, *cases, *digests;
    uint64_t inputs;       // digest of the cases' input digests
    uint64_t definition;   // of what the metrics mean
    const char *reference; // within axes
    double mean[QG_BASELINE_METRICS], spread[QG_BASELINE_METRICS]; // NaN: none
} qg_baseline_row;

typedef struct qg_baseline qg_baseline;

// From the rows of result files: measured, not native, of ops that are no timing.
// *fewest: the fewest seeds of any group that seeds change. QG_ERROR_MEMORY, QG_ERROR_DATA.
qg_status qg_baseline_make(const qg_table *const *tables, int count, qg_baseline **out,
                           int64_t *fewest);
// QG_ERROR_IO, QG_ERROR_DATA (file:line: what is wrong).
qg_status qg_baseline_read(const char *path, qg_baseline **out);
// Replaces the file as a whole. QG_ERROR_IO.
qg_status qg_baseline_write(const qg_baseline *baseline, const char *path);
void qg_baseline_free(qg_baseline *baseline); // NULL is fine

// The baseline in `folder` that has the most cases of the tables; *path (PATH_MAX) is "" if none
// has any. A file there that cannot be read is a failure.
qg_status qg_baseline_choose(const char *folder, const qg_table *const *tables, int count,
                             char *path, size_t size, qg_baseline **out);

int64_t qg_baseline_rows(const qg_baseline *baseline);
const qg_baseline_row *qg_baseline_row_at(const qg_baseline *baseline, int64_t i);

// What changed from one (NULL: none) to the other, as text: rows added, removed, changed.
void qg_baseline_diff(const qg_baseline *old, const qg_baseline *now, FILE *stream);

typedef struct qg_baseline_match {
    const qg_baseline_row *row; // NULL: the baseline does not know the case
    uint64_t digest;
    bool comparable;
    const char *why; // why not
} qg_baseline_match;

// baseline NULL: no match.
qg_baseline_match qg_baseline_find(const qg_baseline *baseline, const qg_table *table, int64_t row);
// True for the metrics that baselines have means of.
bool qg_baseline_holds(const char *metric);
// Fills baseline, spread and seeds of the case. False: there is no mean, or no spread.
bool qg_baseline_metric(const qg_baseline_row *row, const char *metric, qg_gate_case *out);

#endif
