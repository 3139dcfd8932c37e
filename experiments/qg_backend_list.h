// The backends of the sweep by name, and which of them answer in this build.
#ifndef QG_BACKEND_LIST_H
#define QG_BACKEND_LIST_H

#include <stdbool.h>
#include <stddef.h>

// The i-th backend that this version has, NULL past the end: --help and the default of --backends.
const char *qg_backend_listed(size_t i);

// The i-th backend that may be asked for, NULL past the end.
const char *qg_backend_named(size_t i);

// NULL if the backend answers, else why its cases are UNAVAILABLE.
const char *qg_backend_unavailable(const char *name);

// Whether it is the specification, which the others are compared with.
bool qg_backend_is_emulator(const char *name);

// Whether products run on it; true of one that does not answer.
bool qg_backend_multiplies(const char *name);

#endif
