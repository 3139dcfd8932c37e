// Finished results on their way to the result file: buffered, written as parts, found, merged.
//
// Parts are `FILE.parts/<shard>-of-<shards>-<number>.h5`, each written whole; numbers grow over the
// folder, so of two rows of one case that with the higher number is newer. The caller holds the
// locks (qg_locks.h). Must not know how rows come about.
#ifndef QG_PARTS_H
#define QG_PARTS_H

#include <qg_results.h>
#include <qg_sweep.h>

typedef struct qg_parts qg_parts;

#define QG_PARTS_BUILD_KEY "build" // of a run: qg_build_identity

typedef struct qg_parts_options {
    const char *out;
    int shard, shards;
    qg_existing existing;
    const char *plan_text;
    const uint64_t *case_ids; // (cases), in plan order; kept by the caller
    int64_t cases;
    const char *build; // whose results may be reused: value of the run key QG_PARTS_BUILD_KEY
    bool locked;       // the caller holds locks: what a killed process left may be removed
    // Describes this run in a fresh table, once: adds its run and its command line. May be NULL.
    qg_status (*describe)(void *context, qg_table *table);
    // Called right before a part is written: the run's end. May be NULL.
    qg_status (*close)(void *context, qg_table *table);
    void *context;
} qg_parts_options;

// Reads what FILE and its parts hold of the plan; with QG_EXISTING_OVERWRITE removes FILE, the
// shard's own parts and all that do not belong to this plan, build and split.
// QG_ERROR_ARGUMENT: results of another plan or build; the detail names --overwrite and --reuse.
// QG_ERROR_DATA, QG_ERROR_IO: a file that is none, or cannot be read.
qg_status qg_parts_open(const qg_parts_options *options, qg_parts **out);
void qg_parts_free(qg_parts *parts); // NULL is fine

// Whether a case has a result that a repetition would not change. CRASHED, TIMEOUT and UNAVAILABLE
// are tried again.
bool qg_parts_finished(const qg_parts *parts, int64_t order);

// The table that takes the next rows.
qg_status qg_parts_pending(qg_parts *parts, qg_table **table);
int64_t qg_parts_pending_rows(const qg_parts *parts);

// Writes the pending rows as a part; nothing if there are none. On failure they stay pending.
qg_status qg_parts_write(qg_parts *parts);

// All rows known, pending ones included, in plan order. `reread`: also parts that others wrote
// since. *missing: cases without a row.
qg_status qg_parts_collect(qg_parts *parts, bool reread, qg_table **out, int64_t *missing);

// The number of shards that the names of all parts agree on, 0 if they do not or there are none.
int qg_parts_common_split(const qg_parts *parts);

// Whether FILE already holds all that is known.
bool qg_parts_is_merged(const qg_parts *parts);

// Writes a collected table as FILE: to FILE.tmp, read back and verified, renamed.
qg_status qg_parts_publish(qg_parts *parts, const qg_table *merged);

#endif
