// The shard that a launcher gives this process: MPI (OMPI, PMI), Slurm steps and job arrays.
#ifndef LAUNCHER_H
#define LAUNCHER_H

#include <qg_status.h>

typedef struct qg_shard {
    int shard, shards;  // 1-based; 1, 1: everything
    const char *origin; // the variable that it comes from, NULL without a launcher
} qg_shard;

// Variables in the order of the interfaces; the first launcher that is there wins.
// QG_ERROR_ENVIRONMENT when its variables contradict each other; the detail names them.
qg_status qg_launcher_shard(qg_shard *out);

// I/N with 1 <= I <= N. QG_ERROR_ARGUMENT.
qg_status qg_shard_parse(const char *text, qg_shard *out);

#endif
