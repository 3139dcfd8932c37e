// Running a graph: a backend performs the scaled ops, all others compute on the CPU in binary32
// with elementary functions and sums of our own, so that bits do not depend on machine or threads.
//
// matmul: a chain of fused multiply-adds in binary32, K ascending (unit fp32_fma), by the scalar
// model until qg_unit_use_isa installs vectors, which give the same bits. Sums of softmax, layer
// norm and reductions are in binary64, in order, and rounded once. NaN results are 7fffffff.
#ifndef QG_GRAPH_RUN_H
#define QG_GRAPH_RUN_H

#include <qg_backend.h>
#include <qg_graph.h>
#include <qg_sums.h>

QG_EXTERN_C_BEGIN

typedef struct qg_graph_run_options {
    const qg_backend *backend; // of the scaled ops; NULL: emulator (which is also what
                               // qg_backend_find gives for a word that it does not know)
    const qg_unit *unit; // of scaled products on the emulator, +promote:G added where the layouts
                         // need it; NULL: exact. Not read for other backends
    int threads;         // 0: all
    uint64_t seed;       // of stochastic rounding
    bool keep;           // all values, not only those of outputs: no buffer is used twice
} qg_graph_run_options;

typedef struct qg_graph_feed {
    const char *name;   // of an input
    const void *values; // of its dtype and aligned for it, row-major; not of this runner
} qg_graph_feed;

typedef struct qg_graph_runner qg_graph_runner;

// Plans buffers; the graph must outlive the runner and stay as it is. options: NULL for all zero.
// QG_ERROR_ARGUMENT: a graph that does not verify, a parameter or constant without values (named);
// QG_ERROR_ENVIRONMENT: a backend that does not answer; QG_ERROR_UNSUPPORTED: a product that unit
// or backend does not take (named); QG_ERROR_OVERFLOW: buffers beyond 2^63 - 1 bytes.
qg_status qg_graph_runner_create(const qg_graph *graph, const qg_graph_run_options *options,
                                 qg_graph_runner **out);
void qg_graph_runner_free(qg_graph_runner *runner); // NULL is fine

// feeds: every input once. QG_ERROR_ARGUMENT: an input without values, a name that is none, an
// index out of range (gather, experts; the node is named).
qg_status qg_graph_runner_run(qg_graph_runner *runner, int32_t count, const qg_graph_feed *feeds);

// Values of an output, with `keep` of any node, until the next run; NULL for others, and unless
// the last run went well.
const void *qg_graph_runner_values(const qg_graph_runner *runner, qg_node node);
// Bytes of all buffers, and what they would be without reuse.
int64_t qg_graph_runner_bytes(const qg_graph_runner *runner, int64_t *without_reuse);
// The backend's name for what ran at a scaled node ("scalar"), "" for others. Until the next run.
const char *qg_graph_runner_impl(const qg_graph_runner *runner, qg_node node);

// ------------------------------------------------------------------------------------------ errors

// The error of one node: q of `runner` against x of `reference`, both as binary32, there until
// `each` returns.
typedef struct qg_node_error {
    const char *name;
    qg_node node; // of runner's graph
    int64_t count;
    const float *x, *q;
    qg_sums sums;
} qg_node_error;

// For every node of runner's graph, in order, of which the reference has one of the same name and
// shape, both float, inputs, parameters and constants left out: the sums. Both have run with
// `keep`. A status other than QG_OK of `each` ends it.
qg_status qg_graph_compare(const qg_graph_runner *reference, const qg_graph_runner *runner,
                           qg_status (*each)(void *context, const qg_node_error *error),
                           void *context);

QG_EXTERN_C_END

#endif
