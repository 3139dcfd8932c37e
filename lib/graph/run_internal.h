// What the files that run a graph share. Private to graph/.
//
// The runner (graph_runner.c) owns buffers and order; run_move.c, run_float.c and their likes
// compute one node; run_scaled.c hands the scaled ops to a backend.
#ifndef RUN_INTERNAL_H
#define RUN_INTERNAL_H

#include "graph_internal.h"

#include <qg_graph_run.h>

// A value that a node reads. To run_float everything comes as binary32, whatever the dtype says
// (i64 as it is).
typedef struct run_input {
    const qg_tensor_type *type;
    const void *values;
} run_input;

// transpose, reshape, slice, concatenate, gather: any dtype, bytes. out: of node->type.
// QG_ERROR_ARGUMENT: an index of gather out of range.
qg_status run_move(const graph_node *node, const run_input *in, int threads, void *out);

// All ops that are neither scaled nor moves (cast is a copy here: the runner rounds). out:
// binary32.
qg_status run_float(const graph_node *node, const run_input *in, int threads, float *out);

// The runner's part of the options, filled in: no NULL.
typedef struct run_scaled {
    const qg_backend *backend;
    qg_unit unit; // of the emulator
    int threads;
    uint64_t seed;
} run_scaled;

// Whether backend and unit take this product: at the creation of a runner.
// types: of the node's inputs. QG_ERROR_UNSUPPORTED.
qg_status run_scaled_check(const run_scaled *s, const graph_node *node,
                           const qg_tensor_type *const *types);

// scaled_quantize with its own scales: all of it at once on the backend. x: of x->type's dtype. Any
// of codes, scale and tensor_scale may be NULL: not wanted (room for what a backend insists on is
// found here). node: the scaled_quantize, or the scale or tensor scale where nothing quantizes by
// it.
qg_status run_quantize(const run_scaled *s, const graph_node *node, const run_input *x, void *codes,
                       void *scale, float *tensor_scale, const char **impl);
// scaled_quantize with scales from elsewhere: qg_emulator_encode, whatever the backend.
qg_status run_encode(const run_scaled *s, const graph_node *node, const run_input *in, void *codes,
                     const char **impl);
qg_status run_dequantize(const run_scaled *s, const graph_node *node, const run_input *in,
                         float *out, const char **impl);
// scaled_matmul and scaled_grouped_matmul. out: of node->type. QG_ERROR_ARGUMENT: an expert out of
// range.
qg_status run_product(const run_scaled *s, const graph_node *node, const run_input *in, void *out,
                      const char **impl);

#endif
