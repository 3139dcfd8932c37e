// Where results come from: what a run records about the build, the machine and itself.
#ifndef QG_PROVENANCE_H
#define QG_PROVENANCE_H

#include <qg_table.h>

enum { QG_BUILD_IDENTITY_SIZE = 128 };

// The key of a run whose value is the identity of the build that measured it.
#define QG_RUN_BUILD "build"

// The text by which resuming recognises the same build: "VERSION COMMIT", and the digest of the
// running binary where the commit does not say all: "VERSION COMMIT+dirty DIGEST", "VERSION unknown
// DIGEST". QG_ERROR_IO: the binary cannot be read.
qg_status qg_build_identity(char identity[QG_BUILD_IDENTITY_SIZE]);

// Adds a run to the table and sets its keys: build, version, commit, dirty, build_digest (""
// where the commit says all), compiler, flags, build_type, cpu, cpu_features, isa, isa_cap,
// threads, fp_environment, os, hdf5, cuda, driver, cublaslt, gpu, process, start, end.
// cuda, driver, cublaslt and gpu are "none" until whoever uses a device sets them.
// isa: the variant chosen; isa_cap: what was asked for, NULL: nothing; threads 0: all.
// Every run of a process has the process's start (its first call), so that merging recognises the
// parts of one process.
qg_status qg_provenance_begin(qg_table *table, const char *isa, const char *isa_cap, int threads,
                              int64_t *run);

// Sets the run's end to now; as often as its rows are written.
qg_status qg_provenance_end(qg_table *table, int64_t run);

#endif
