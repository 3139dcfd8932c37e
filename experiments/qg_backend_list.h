// The backends of the sweep by name, and which of them answer here.
#ifndef QG_BACKEND_LIST_H
#define QG_BACKEND_LIST_H

#include <stdbool.h>
#include <stddef.h>

// The i-th backend that may be asked for, NULL past the end.
const char *qg_backend_named(size_t i);

// NULL if the backend answers, else why its cases are UNAVAILABLE: a phrase that is the same on every
// machine, as results are. May take as long as loading CUDA does, the first time; opens no device in
// this process.
const char *qg_backend_unavailable(const char *name);

// NULL, or the whole line: paths, versions, and what to do.
const char *qg_backend_why_unavailable(const char *name);

// Whether it is the specification, which the others are compared with.
bool qg_backend_is_emulator(const char *name);

// Whether products run on it; true of one that does not answer.
bool qg_backend_multiplies(const char *name);

// Whether tensors travel to it and back with every call, which a clock around it would count.
bool qg_backend_is_remote(const char *name);

#endif
