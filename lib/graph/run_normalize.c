// Softmax and layer norm over the last axis: sums in binary64, in order; one rounding at the end.
#include "run_parts_internal.h"

#include <elementary_internal.h>
#include <qg_size.h>

#include <math.h> // sqrt, which IEEE 754 rounds correctly; nothing else of it is called

typedef struct rows_of {
    int64_t k;
    const float *x, *gain, *bias;
    float *out;
    double eps;
} rows_of;

// ----------------------------------------------------------------------------------------- softmax

// A row of -infinity alone gives NaN, as infinity - infinity does.
static void softmax_row(int64_t k, const float *x, double *power, float *out) {
    float largest = x[0];
    double sum = 0;
    for (int64_t i = 1; i < k; i++)
        largest = run_maximum(largest, x[i]);
    for (int64_t i = 0; i < k; i++)
        power[i] = exp_inline((double)x[i] - largest);
    for (int64_t i = 0; i < k; i++)
        sum += power[i];
    for (int64_t i = 0; i < k; i++)
        out[i] = (float)(power[i] / sum);
}

static void softmax_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const rows_of *r = context;
    for (int64_t row = begin; row < end; row++)
        softmax_row(r->k, r->x + row * r->k, scratch, r->out + row * r->k);
}

qg_status run_softmax(const run_job *job) {
    int64_t rows, bytes;
    rows_of r = {.x = job->in[0].values, .out = job->out};
    qg_tensor_matrix(job->in[0].type, &rows, &r.k);
    if (!qg_size_multiply(r.k, (int64_t)sizeof(double), &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "a row exceeds 2^63 - 1 bytes");
    return run_parallel(job->threads, rows, r.k, bytes, softmax_part, &r);
}

// -------------------------------------------------------------------------------------- layer norm

static void layer_norm_row(const rows_of *r, const float *x, float *out) {
    double sum = 0, squares = 0, mean, deviation;
    for (int64_t i = 0; i < r->k; i++)
        sum += x[i];
    mean = sum / (double)r->k;
    for (int64_t i = 0; i < r->k; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    deviation = sqrt(squares / (double)r->k + r->eps);
    for (int64_t i = 0; i < r->k; i++)
        out[i] = (float)((x[i] - mean) / deviation * r->gain[i] + r->bias[i]);
}

static void layer_norm_part(void *context, void *scratch, int64_t begin, int64_t end) {
    const rows_of *r = context;
    (void)scratch;
    for (int64_t row = begin; row < end; row++)
        layer_norm_row(r, r->x + row * r->k, r->out + row * r->k);
}

qg_status run_layer_norm(const run_job *job) {
    int64_t rows;
    rows_of r = {.x = job->in[0].values,
                 .gain = job->in[1].values,
                 .bias = job->in[2].values,
                 .out = job->out,
                 .eps = job->node->attributes.eps};
    qg_tensor_matrix(job->in[0].type, &rows, &r.k);
    return run_parallel(job->threads, rows, r.k, 0, layer_norm_part, &r);
}
