// Reductions over any axes: the elements of an output in row-major order, sums in binary64 from -0
// (so that one element stays itself), one rounding at the end. See run_internal.h.
#include "run_parts_internal.h"

#include <math.h>

enum { COLUMNS = 256 }; // outputs that are summed side by side

typedef struct reduction {
    qg_graph_op op;
    run_axes kept, reduced; // stride[0]: in x
    bool by_columns;        // the last axis of x is kept
    int64_t count;          // of elements of one output
    const float *x, *y, *dy;
    float *out; // of the reduction, or (reduce_max_gradient) like x
} reduction;

static int64_t product_of_extents(const run_axes *axes) {
    int64_t count = 1;
    for (int32_t i = 0; i < axes->rank; i++)
        count *= axes->extent[i];
    return count;
}

static void append_axis(run_axes *to, const run_axes *from, int32_t i) {
    to->extent[to->rank] = from->extent[i];
    to->stride[0][to->rank] = from->stride[0][i];
    to->stride[1][to->rank++] = 0;
}

// Sorts the axes of x into kept and reduced ones, neighbours joined.
static reduction reduction_of(const run_job *job) {
    const qg_tensor_type *x = job->in[0].type;
    const qg_attributes *a = &job->node->attributes;
    reduction r = {.op = job->node->op, .x = job->in[0].values, .out = job->out};
    run_axes all = {.rank = x->rank};
    int64_t step = 1;
    run_strides(x, all.stride[0]);
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        all.extent[i] = x->shape[i];
        bool gone = false;
        for (int32_t j = 0; j < a->axis_count; j++)
            gone = gone || a->axes[j] == i;
        all.stride[1][i] = gone ? 0 : step;
        step *= gone ? 1 : x->shape[i];
    }
    run_axes_join(&all);
    for (int32_t i = 0; i < all.rank; i++)
        append_axis(all.stride[1][i] ? &r.kept : &r.reduced, &all, i);
    r.by_columns = all.rank > 0 && all.stride[1][all.rank - 1] != 0;
    r.count = product_of_extents(&r.reduced);
    return r;
}

// ------------------------------------------------------------------------------------ sums, maxima

static void finish(const reduction *r, int64_t n, const double *sum, float *out) {
    bool mean = r->op == QG_GRAPH_REDUCE_MEAN;
    for (int64_t j = 0; j < n; j++)
        out[j] = (float)(mean ? sum[j] / (double)r->count : sum[j]);
}

// Outputs of which the elements lie side by side.
static void reduce_columns(const reduction *r, const float *x, int64_t n, float *out) {
    double sum[COLUMNS];
    float largest[COLUMNS];
    for (int64_t j = 0; j < n; j++)
        sum[j] = -0.0, largest[j] = -INFINITY;
    for (int64_t i = 0; i < r->count; i++) {
        const float *at = x + run_axes_offset(&r->reduced, 0, r->reduced.rank, i);
        if (r->op == QG_GRAPH_REDUCE_MAX)
            for (int64_t j = 0; j < n; j++)
                largest[j] = run_maximum(largest[j], at[j]);
        else
            for (int64_t j = 0; j < n; j++)
                sum[j] += at[j];
    }
    if (r->op != QG_GRAPH_REDUCE_MAX)
        finish(r, n, sum, out);
    for (int64_t j = 0; j < n && r->op == QG_GRAPH_REDUCE_MAX; j++)
        out[j] = largest[j];
}

// One output; the last reduced axis is x's last.
static void reduce_rows(const reduction *r, const float *x, float *out) {
    int32_t last = r->reduced.rank - 1;
    int64_t length = last < 0 ? 1 : r->reduced.extent[last];
    double sum = -0.0;
    float largest = -INFINITY;
    for (int64_t i = 0; i < r->count / length; i++) {
        const float *at = x + run_axes_offset(&r->reduced, 0, last, i);
        if (r->op == QG_GRAPH_REDUCE_MAX)
            for (int64_t j = 0; j < length; j++)
                largest = run_maximum(largest, at[j]);
        else
            for (int64_t j = 0; j < length; j++)
                sum += at[j];
    }
    if (r->op == QG_GRAPH_REDUCE_MAX)
        *out = largest;
    else
        finish(r, 1, &sum, out);
}

static void reduce_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const reduction *r = context;
    int32_t last = r->kept.rank - 1;
    int64_t length = r->by_columns ? r->kept.extent[last] : 1;
    (void)scratch;
    for (int64_t at = begin, n = 1; at < end; at += n) {
        if (!r->by_columns) {
            reduce_rows(r, r->x + run_axes_offset(&r->kept, 0, r->kept.rank, at), r->out + at);
            continue;
        }
        int64_t column = at % length;
        n = length - column < end - at ? length - column : end - at;
        n = n < COLUMNS ? n : COLUMNS;
        reduce_columns(r, r->x + run_axes_offset(&r->kept, 0, last, at / length) + column, n,
                       r->out + at);
    }
}

qg_status run_reduce(const run_job *job) {
    reduction r = reduction_of(job);
    return run_parallel(job->threads, product_of_extents(&r.kept), r.count, 0, reduce_part, &r);
}

// ---------------------------------------------------------------------------------------- gradient

static bool is_largest(float x, float largest) {
    return x == largest || (x != x && largest != largest);
}

// The elements that are the maximum share dy; where that is NaN, those that are NaN do.
static void share(const reduction *r, int64_t output) {
    int64_t base = run_axes_offset(&r->kept, 0, r->kept.rank, output), equal = 0;
    for (int64_t i = 0; i < r->count; i++)
        equal += is_largest(r->x[base + run_axes_offset(&r->reduced, 0, r->reduced.rank, i)],
                            r->y[output]);
    float part = r->dy[output] / (float)equal;
    for (int64_t i = 0; i < r->count; i++) {
        int64_t at = base + run_axes_offset(&r->reduced, 0, r->reduced.rank, i);
        r->out[at] = is_largest(r->x[at], r->y[output]) ? part : 0;
    }
}

static void share_part(void *context, void *scratch, int64_t begin, int64_t end) {
    (void)scratch;
    for (int64_t output = begin; output < end; output++)
        share(context, output);
}

qg_status run_reduce_max_gradient(const run_job *job) {
    reduction r = reduction_of(job);
    r.y = job->in[1].values;
    r.dy = job->in[2].values;
    return run_parallel(job->threads, product_of_extents(&r.kept), r.count, 0, share_part, &r);
}
