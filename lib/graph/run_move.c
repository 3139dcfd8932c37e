// Ops that move values without looking at them: transpose, reshape, slice, concatenate, gather.
// Any dtype, byte for byte. See run_internal.h.
#include "run_parts_internal.h"

#include <inttypes.h>
#include <string.h>

// ----------------------------------------------------------------- copies between strided tensors

// stride[0]: of `in`, stride[1]: of `out`; both in elements of `size` bytes.
typedef struct copy {
    run_axes axes;
    int size;
    const char *in;
    char *out;
} copy;

static void copy_run(const copy *c, const char *in, char *out, int32_t axis) {
    int64_t n = c->axes.extent[axis], size = c->size;
    int64_t in_step = c->axes.stride[0][axis] * size, out_step = c->axes.stride[1][axis] * size;
    if (in_step == size && out_step == size)
        memcpy(out, in, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(out + i * out_step, in + i * in_step, (size_t)size);
}

static void copy_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const copy *c = context;
    int32_t last = c->axes.rank - 1;
    (void)scratch;
    for (int64_t row = begin; row < end; row++)
        copy_run(c, c->in + run_axes_offset(&c->axes, 0, last, row) * c->size,
                 c->out + run_axes_offset(&c->axes, 1, last, row) * c->size, last);
}

// The last two axes are a matrix, transposed: `in` is contiguous along the one before the last.
static void transpose_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const copy *c = context;
    int32_t r = c->axes.rank;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        run_transpose_tile(
            c->axes.extent[r - 1], c->axes.extent[r - 2], c->size,
            c->in + run_axes_offset(&c->axes, 0, r - 2, i) * c->size, c->axes.stride[0][r - 1],
            c->out + run_axes_offset(&c->axes, 1, r - 2, i) * c->size, c->axes.stride[1][r - 2]);
}

static void swap_axes(run_axes *axes, int32_t i, int32_t j) {
    int64_t extent = axes->extent[i];
    axes->extent[i] = axes->extent[j];
    axes->extent[j] = extent;
    for (int which = 0; which < 2; which++) {
        int64_t stride = axes->stride[which][i];
        axes->stride[which][i] = axes->stride[which][j];
        axes->stride[which][j] = stride;
    }
}

static int64_t outer_count(const run_axes *axes, int32_t rank) {
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= axes->extent[i];
    return count;
}

// The axis along which `in` is contiguous, -1 for none.
static int32_t contiguous_axis(const run_axes *axes) {
    for (int32_t i = 0; i < axes->rank; i++)
        if (axes->stride[0][i] == 1)
            return i;
    return -1;
}

static qg_status run_copy(copy *c, int threads) {
    run_axes_join(&c->axes);
    int32_t r = c->axes.rank, contiguous = contiguous_axis(&c->axes);
    if (r == 0) {
        memcpy(c->out, c->in, (size_t)c->size);
        return QG_OK;
    }
    if (contiguous >= 0 && contiguous < r - 1) {
        swap_axes(&c->axes, contiguous, r - 2);
        return run_parallel(threads, outer_count(&c->axes, r - 2),
                            c->axes.extent[r - 1] * c->axes.extent[r - 2], 0, transpose_part, c);
    }
    return run_parallel(threads, outer_count(&c->axes, r - 1), c->axes.extent[r - 1], 0, copy_part,
                        c);
}

// A copy whose axes are those of the output.
static copy copy_of(const graph_node *node, const run_input *in, void *out) {
    copy c = {.size = qg_dtype_bytes((qg_dtype)node->type.dtype), .in = in->values, .out = out};
    c.axes.rank = node->type.rank;
    for (int32_t i = 0; i < c.axes.rank; i++)
        c.axes.extent[i] = node->type.shape[i];
    run_strides(&node->type, c.axes.stride[1]);
    return c;
}

static qg_status run_transpose(const graph_node *node, const run_input *in, int threads,
                               void *out) {
    copy c = copy_of(node, in, out);
    int64_t stride[QG_RANK_MOST];
    run_strides(in->type, stride);
    for (int32_t i = 0; i < c.axes.rank; i++)
        c.axes.stride[0][i] = stride[node->attributes.axes[i]];
    return run_copy(&c, threads);
}

static qg_status run_slice(const graph_node *node, const run_input *in, int threads, void *out) {
    copy c = copy_of(node, in, out);
    run_strides(in->type, c.axes.stride[0]);
    for (int32_t i = 0; i < c.axes.rank; i++)
        c.in += node->attributes.begin[i] * c.axes.stride[0][i] * c.size;
    return run_copy(&c, threads);
}

static qg_status run_concatenate(const graph_node *node, const run_input *in, int threads,
                                 void *out) {
    int32_t axis = node->attributes.axes[0];
    int64_t begin = 0;
    qg_status status = QG_OK;
    for (int32_t j = 0; j < node->input_count && !status; j++) {
        copy c = copy_of(node, &in[j], out);
        run_strides(in[j].type, c.axes.stride[0]);
        c.axes.extent[axis] = in[j].type->shape[axis];
        c.out += begin * c.axes.stride[1][axis] * c.size;
        begin += c.axes.extent[axis];
        status = run_copy(&c, threads);
    }
    return status;
}

static qg_status run_reshape(const graph_node *node, const run_input *in, void *out) {
    memcpy(out, in->values, (size_t)qg_tensor_bytes(&node->type));
    return QG_OK;
}

// ------------------------------------------------------------------------------------------ gather

typedef struct gather {
    const int64_t *indices;
    int64_t row_bytes;
    const char *table;
    char *out;
} gather;

static void gather_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const gather *g = context;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        memcpy(g->out + i * g->row_bytes, g->table + g->indices[i] * g->row_bytes,
               (size_t)g->row_bytes);
}

// All indices are looked at before anything is written.
static qg_status run_gather(const run_input *in, int threads, void *out) {
    int64_t rows = in[0].type->shape[0], count = qg_tensor_elements(in[1].type);
    gather g = {in[1].values, qg_tensor_bytes(in[0].type) / rows, in[0].values, out};
    for (int64_t i = 0; i < count; i++)
        if (g.indices[i] < 0 || g.indices[i] >= rows)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "index %" PRId64 " at place %" PRId64 " is not one of %" PRId64 " rows",
                           g.indices[i], i, rows);
    return run_parallel(threads, count, g.row_bytes / 4 + 1, 0, gather_part, &g);
}

qg_status run_move(const graph_node *node, const run_input *in, int threads, void *out) {
    switch (node->op) {
    case QG_GRAPH_TRANSPOSE: return run_transpose(node, in, threads, out);
    case QG_GRAPH_RESHAPE: return run_reshape(node, in, out);
    case QG_GRAPH_SLICE: return run_slice(node, in, threads, out);
    case QG_GRAPH_CONCATENATE: return run_concatenate(node, in, threads, out);
    case QG_GRAPH_GATHER: return run_gather(in, threads, out);
    default: return qg_fail(QG_ERROR_UNSUPPORTED, "no op that moves values");
    }
}
