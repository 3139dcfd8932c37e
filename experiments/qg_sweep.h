// Running a plan: the worker process, progress, shards, resume and merge.
#ifndef QG_SWEEP_H
#define QG_SWEEP_H

#include <qg_plan.h>
#include <stdio.h>

typedef enum qg_existing { QG_EXISTING_RESUME, QG_EXISTING_OVERWRITE, QG_EXISTING_REUSE } qg_existing;
typedef enum qg_progress { QG_PROGRESS_AUTO, QG_PROGRESS_BAR, QG_PROGRESS_LINES, QG_PROGRESS_NONE } qg_progress;

typedef struct qg_sweep_options {
    const char *out; // the result file
    qg_existing existing;
    int shard, shards;         // 1-based shard of shards; 1, 1: the whole plan
    bool merge_only;           // --merge: no case runs
    double max_seconds;        // 0: no limit
    double case_timeout;       // seconds, 0: no limit
    int64_t max_failures;      // 0: no limit
    qg_progress progress;
    int verbosity;             // -1 quiet, 0, 1 verbose
    int threads;               // 0: all
    const char *isa;           // --isa as given, NULL: none; the caller installs it
    const char *command_line;  // for /plan/argv
} qg_sweep_options;

typedef struct qg_sweep_outcome {
    int exit_code;      // 0, 1, 2, 3, 5 as the interfaces define (4 is the caller's to decide)
    bool merged;        // `out` was written
    bool interrupted;   // a signal or --max-seconds stopped it
    int64_t cases;      // of this shard
    int64_t measured;   // run now
    int64_t reused;     // found finished
    int64_t missing;    // not run
    int64_t status[QG_CASE_STATUS_COUNT];
    struct qg_table *table; // rows of the merged file, or of this shard; caller frees
} qg_sweep_outcome;

// Runs the shard's cases that are not finished yet, writes parts, merges when this is the last
// shard. Messages and progress go to `messages` (stderr). Errors are one line there.
void qg_sweep_run(const qg_plan *plan, const qg_sweep_options *options, FILE *messages,
                  qg_sweep_outcome *outcome);

// The shard (0-based) that a case belongs to: by its key, so it does not depend on the plan.
int qg_shard_of(const qg_case *c, int shards);

#endif
