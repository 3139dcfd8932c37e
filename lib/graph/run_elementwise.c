// Ops in which an element of the output depends on one element of each input. Exact operations
// round once in binary32, the others once from binary64 (run_elementary_internal.h). See
// run_internal.h.
#include "run_elementary_internal.h"
#include "run_parts_internal.h"

#include <math.h> // sqrtf, which IEEE 754 rounds correctly; nothing else of it is called

// A run of elements; steps are 0 or 1.
typedef void (*binary_run)(int64_t n, const float *a, int64_t a_step, const float *b,
                           int64_t b_step, float *out);

#define BINARY(NAME, VALUE)                                                                        \
    static void NAME(int64_t n, const float *a, int64_t a_step, const float *b, int64_t b_step,    \
                     float *out) {                                                                 \
        if (a_step && b_step)                                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float x = a[i], y = b[i];                                                          \
                out[i] = VALUE;                                                                    \
            }                                                                                      \
        else if (a_step)                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float x = a[i], y = b[0];                                                          \
                out[i] = VALUE;                                                                    \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float x = a[0], y = b[i];                                                          \
                out[i] = VALUE;                                                                    \
            }                                                                                      \
    }

BINARY(add, x + y)
BINARY(subtract, x - y)
BINARY(multiply, x *y)
BINARY(divide, x / y)
BINARY(maximum, run_maximum(x, y))
BINARY(relu_gradient, x > 0 ? y : 0)
BINARY(gelu_gradient, (float)((double)y *run_gelu_slope(x)))
BINARY(gelu_tanh_gradient, (float)((double)y *run_gelu_tanh_slope(x)))

#define UNARY(NAME, VALUE)                                                                         \
    static void NAME(int64_t n, const float *a, int64_t a_step, const float *b, int64_t b_step,    \
                     float *out) {                                                                 \
        (void)a_step, (void)b, (void)b_step;                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float x = a[i];                                                                        \
            out[i] = VALUE;                                                                        \
        }                                                                                          \
    }

UNARY(square_root, sqrtf(x))
UNARY(relu, x != x ? x : x > 0 ? x : 0)
UNARY(hyperbolic_tangent, (float)run_tanh(x))
UNARY(gelu, (float)run_gelu(x))
UNARY(gelu_tanh, (float)run_gelu_tanh(x))

static binary_run run_of(const graph_node *node) {
    bool tanh_form = node->attributes.tanh_form;
    switch (node->op) {
    case QG_GRAPH_ADD: return add;
    case QG_GRAPH_SUBTRACT: return subtract;
    case QG_GRAPH_MULTIPLY: return multiply;
    case QG_GRAPH_DIVIDE: return divide;
    case QG_GRAPH_MAXIMUM: return maximum;
    case QG_GRAPH_SQRT: return square_root;
    case QG_GRAPH_RELU: return relu;
    case QG_GRAPH_TANH: return hyperbolic_tangent;
    case QG_GRAPH_GELU: return tanh_form ? gelu_tanh : gelu;
    case QG_GRAPH_RELU_GRADIENT: return relu_gradient;
    case QG_GRAPH_GELU_GRADIENT: return tanh_form ? gelu_tanh_gradient : gelu_gradient;
    default: return NULL;
    }
}

typedef struct walk {
    run_axes axes; // strides of a and b
    binary_run run;
    const float *a, *b;
    float *out;
} walk;

// What a step along each axis of the output is in an input, which may have fewer and shorter axes.
static void broadcast_strides(const qg_tensor_type *out, const qg_tensor_type *in,
                              int64_t stride[QG_RANK_MOST]) {
    int64_t own[QG_RANK_MOST];
    run_strides(in, own);
    int32_t missing = out->rank - in->rank;
    for (int32_t i = 0; i < out->rank; i++)
        stride[i] = i < missing || in->shape[i - missing] == 1 ? 0 : own[i - missing];
}

static void walk_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const walk *w = context;
    int32_t last = w->axes.rank - 1;
    (void)scratch;
    for (int64_t at = begin, n; at < end; at += n) {
        int64_t row = at / w->axes.extent[last], column = at % w->axes.extent[last];
        int64_t a_step = w->axes.stride[0][last], b_step = w->axes.stride[1][last];
        n = w->axes.extent[last] - column < end - at ? w->axes.extent[last] - column : end - at;
        w->run(n, w->a + run_axes_offset(&w->axes, 0, last, row) + column * a_step, a_step,
               w->b + run_axes_offset(&w->axes, 1, last, row) + column * b_step, b_step,
               w->out + at);
    }
}

qg_status run_elementwise(const run_job *job) {
    const qg_tensor_type *out = &job->node->type;
    const run_input *a = &job->in[0], *b = &job->in[job->node->input_count - 1];
    walk w = {.run = run_of(job->node), .a = a->values, .b = b->values, .out = job->out};
    if (!w.run)
        return qg_fail(QG_ERROR_UNSUPPORTED, "no float op");
    w.axes.rank = out->rank;
    for (int32_t i = 0; i < out->rank; i++)
        w.axes.extent[i] = out->shape[i];
    broadcast_strides(out, a->type, w.axes.stride[0]);
    broadcast_strides(out, b->type, w.axes.stride[1]);
    run_axes_join(&w.axes);
    if (w.axes.rank == 0) {
        w.run(1, w.a, 1, w.b, 1, w.out);
        return QG_OK;
    }
    return run_parallel(job->threads, qg_tensor_elements(out), 1, 0, walk_part, &w);
}
