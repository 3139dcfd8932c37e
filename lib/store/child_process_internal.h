// A child process that does the work of a library which foreign files can crash: the readers of
// tensor files and of results ask it, and results that HDF5 writes itself come from it. It knows
// nothing of HDF5 or of files.
#ifndef QG_CHILD_PROCESS_INTERNAL_H
#define QG_CHILD_PROCESS_INTERNAL_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// A process that runs `work`, which sends its answer to the descriptor `to`, and then dies. More
// than `cpu_seconds` of processor time end it.
typedef struct qg_child {
    pid_t pid;
    int from;
} qg_child;
typedef void (*qg_child_work)(void *context, int to);
qg_status qg_child_start(qg_child_work work, void *context, unsigned cpu_seconds, qg_child *out);
// The next `size` bytes of the answer; false if the child died before it sent them.
bool qg_child_take(const qg_child *child, void *out, size_t size);
void qg_child_end(const qg_child *child);
bool qg_child_send(int to, const void *data, size_t size);

#endif
