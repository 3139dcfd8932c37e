// What the files that compute single nodes share: threads, and walks over axes. Private to graph/.
#ifndef RUN_PARTS_INTERNAL_H
#define RUN_PARTS_INTERNAL_H

#include "run_internal.h"

#include <qg_bits.h>

// ----------------------------------------------------------------------------------------- threads

// Items begin <= i < end of a node's work. scratch: of the calling thread, zeroed at first.
typedef void (*run_part)(void *context, void *scratch, int64_t begin, int64_t end);

// Cuts `count` items into one part for each thread; `work`: elements that an item reads or writes.
// Results must not depend on the cut. QG_ERROR_MEMORY for scratch.
qg_status run_parallel(int threads, int64_t count, int64_t work, int64_t scratch_bytes,
                       run_part part, void *context);
// Threads that run_parallel takes.
int run_parallel_threads(int threads, int64_t count, int64_t work);

// -------------------------------------------------------------------------------------------- axes

// A walk over up to two tensors at once, row-major: extents, and what a step along each axis is in
// elements of either (0: broadcast or reduced).
typedef struct run_axes {
    int32_t rank;
    int64_t extent[QG_RANK_MOST], stride[2][QG_RANK_MOST];
} run_axes;

// Row-major strides of a type.
void run_strides(const qg_tensor_type *type, int64_t stride[QG_RANK_MOST]);

// Drops axes of one element and joins neighbours that are one axis to both tensors.
void run_axes_join(run_axes *axes);

// Where the index-th element of the first `rank` axes lies in tensor `which`.
int64_t run_axes_offset(const run_axes *axes, int which, int32_t rank, int64_t index);

// ------------------------------------------------------------------------------------------ values

// out (columns, rows) = in (rows, columns) transposed: elements of `size` bytes, strides in those.
void run_transpose_tile(int64_t rows, int64_t columns, int size, const void *in, int64_t in_stride,
                        void *out, int64_t out_stride);

// fp16 or bf16 as binary32.
qg_status run_widen(const qg_tensor_type *type, const void *from, int threads, float *to);

// The one rounding of a result to its dtype, RNE; NaN becomes the one that sums have (qg_input.h).
// `to` may be `from` where it is fp32.
qg_status run_round(const qg_tensor_type *type, const float *from, int threads, void *to);

// The larger; NaN if either is; +0 is larger than -0.
static inline float run_maximum(float a, float b) {
    float larger = a > b ? a : b;
    float equal = qg_float_of_bits(qg_bits_of_float(a) & qg_bits_of_float(b));
    larger = a == b ? equal : larger;
    return a != a || b != b ? a + b : larger;
}

// -------------------------------------------------------------------------------------- the runner

const qg_graph *graph_runner_graph(const qg_graph_runner *runner);
int graph_runner_threads(const qg_graph_runner *runner);

// ------------------------------------------------------------------------- what run_float hands on

typedef struct run_job {
    const graph_node *node;
    const run_input *in;
    int threads;
    float *out;
} run_job;

qg_status run_elementwise(const run_job *job);
qg_status run_softmax(const run_job *job);
qg_status run_layer_norm(const run_job *job);
qg_status run_reduce(const run_job *job);
qg_status run_reduce_max_gradient(const run_job *job);

#endif
