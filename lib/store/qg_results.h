// The result file: HDF5, schema 1 ("quantgauge-1"). Layout: README, "The result file".
//
// A file is written whole: to PATH.tmp, closed, synced, renamed. Readers treat every file as
// foreign: sizes, types and texts are checked before use.
#ifndef QG_RESULTS_H
#define QG_RESULTS_H

#include <qg_table.h>

typedef enum qg_results_kind {
    QG_RESULTS_PART,  // rows of one shard, in order of finishing: uncompressed
    QG_RESULTS_MERGED // all rows in plan order: gzip 1 and shuffle, dumps of the tables
} qg_results_kind;

// Writes PATH atomically: to PATH.tmp, synced, if merged read back and verified, renamed.
// `complete`: every case of the plan has a row.
// QG_ERROR_IO names the path and the system's reason (disk full, no permission); then PATH is as it
// was before and no .tmp remains.
qg_status qg_results_write(const char *path, const qg_table *table, qg_results_kind kind,
                           bool complete);

// Reads a file of either kind. QG_ERROR_IO: cannot open. QG_ERROR_DATA: not a result file, another
// schema, columns of unequal length or wrong type; the detail names file and object.
// verified: NULL, or whether the stored content digest matches (false does not fail the read).
qg_status qg_results_read(const char *path, qg_table **out, bool *complete, bool *verified);

// The digest of everything that depends on plan and version alone: what "equal files" means.
// Excludes /runs, /timing, cases/run, cases/seconds, cases/impl_used, plan/argv, file_time.
qg_status qg_table_content_digest(const qg_table *table, uint64_t *out);

// Merges tables: rows sorted by plan order, the first of equal (order, reference) kept, runs
// united.
// QG_ERROR_ARGUMENT when their plans differ.
qg_status qg_table_merge(const qg_table *const *tables, int64_t count, qg_table **out);

#endif
