// One worker process that runs cases in order and survives what they do to it.
//
// Results travel through a ring in shared memory. When the worker dies, the case under way becomes
// CRASHED; when it overstays its time, TIMEOUT, and so do the other nodes of that run of a model; a
// new worker goes on after it. The worker ends with its parent. The caller's process must not have
// started threads (OpenMP's included).
#ifndef QG_WORKER_H
#define QG_WORKER_H

#include <qg_case.h>
#include <sys/types.h>

typedef struct qg_worker qg_worker;

typedef struct qg_worker_options {
    const qg_case *const *cases; // (count), kept by the caller
    int64_t count;               // below 2^31
    int threads;                 // 0: all
    double case_timeout;         // seconds, 0: no limit
    // Runs first in the new process: gives up what it must not hold. May be NULL.
    void (*in_worker)(void *context);
    void *context;
} qg_worker_options;

// No process is started before qg_worker_next.
qg_status qg_worker_create(const qg_worker_options *options, qg_worker **out);

typedef enum qg_worker_event {
    QG_WORKER_RESULT,  // *result is the next case's, in order of `cases`
    QG_WORKER_WAITING, // none yet, or a signal arrived
    QG_WORKER_DONE,    // all cases have had their result, or the worker was stopped
    QG_WORKER_BROKEN   // no worker can be started: qg_detail()
} qg_worker_event;

// The next result, valid until the next call; waits for it at most `seconds`.
qg_worker_event qg_worker_next(qg_worker *worker, double seconds, const qg_case_result **result);

// The case under way and for how long, NULL between cases.
const qg_case *qg_worker_under_way(const qg_worker *worker, double *seconds);

// Kills the worker. Results that it had finished can still be taken; the case under way has none.
void qg_worker_stop(qg_worker *worker);

// Stops the worker, too. NULL is fine.
void qg_worker_free(qg_worker *worker);

// Process id of the worker, 0 if none runs.
pid_t qg_worker_pid(const qg_worker *worker);

#endif
