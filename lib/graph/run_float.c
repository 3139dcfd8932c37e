// Ops that compute in binary32: which file does which, and products. See run_internal.h.
#include "run_parts_internal.h"

#include <qg_memory.h>
#include <qg_size.h>

#include <string.h>

// ---------------------------------------------------------------------------------------- products

static const qg_unit FMA_CHAIN = {.id = QG_UNIT_FP32_FMA};

typedef struct product {
    int64_t batches, m, n, k;
    const float *a, *b;
    float *out;
    int threads; // of one matrix
    qg_status status;
} product;

// b is (k, n): a row of the transposed one is what the unit reads.
static qg_status multiply(const product *p, int64_t batch, float *columns) {
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = p->threads};
    run_transpose_tile(p->k, p->n, sizeof(float), p->b + batch * p->k * p->n, p->n, columns, p->k);
    return qg_emulator_matmul(&FMA_CHAIN, &options, p->m, p->n, p->k, p->a + batch * p->m * p->k,
                              columns, p->out + batch * p->m * p->n);
}

static void multiply_part(void *context, void *scratch, int64_t begin, int64_t end) {
    product *p = context;
    for (int64_t batch = begin; batch < end; batch++) {
        qg_status status = multiply(p, batch, scratch);
        if (status) {
#pragma omp atomic write
            p->status = status;
            return;
        }
    }
}

static product product_of(const run_job *job) {
    const qg_tensor_type *a = job->in[0].type, *b = job->in[1].type;
    product p = {.batches = 1,
                 .m = a->shape[a->rank - 2],
                 .n = b->shape[b->rank - 1],
                 .k = a->shape[a->rank - 1],
                 .a = job->in[0].values,
                 .b = job->in[1].values,
                 .out = job->out,
                 .threads = 1};
    for (int32_t i = 0; i < a->rank - 2; i++)
        p.batches *= a->shape[i];
    return p;
}

static qg_status run_matmul(const run_job *job) {
    product p = product_of(job);
    int64_t work, bytes;
    if (!qg_size_multiply(p.m * p.n, p.k, &work))
        work = INT64_MAX;
    if (!qg_size_multiply(p.k * p.n, (int64_t)sizeof(float), &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "a matrix of a product exceeds 2^63 - 1 bytes");
    // Few matrices: the threads share each.
    bool shared = p.batches < run_parallel_threads(job->threads, INT64_MAX / 2, work / 16);
    p.threads = shared ? job->threads : 1;
    qg_status status =
        run_parallel(shared ? 1 : job->threads, p.batches, work / 16, bytes, multiply_part, &p);
    if (status || p.status == QG_OK)
        return status;
    return qg_fail(p.status, "no memory for a product");
}

// -------------------------------------------------------------------------------------------- cast

static qg_status run_copy(const run_job *job) {
    int64_t count = qg_tensor_elements(&job->node->type);
    memcpy(job->out, job->in[0].values, (size_t)count * sizeof(float));
    return QG_OK;
}

qg_status run_float(const graph_node *node, const run_input *in, int threads, float *out) {
    run_job job = {node, in, threads, out};
    switch (node->op) {
    case QG_GRAPH_MATMUL: return run_matmul(&job);
    case QG_GRAPH_CAST: return run_copy(&job);
    case QG_GRAPH_SOFTMAX: return run_softmax(&job);
    case QG_GRAPH_LAYER_NORM: return run_layer_norm(&job);
    case QG_GRAPH_REDUCE_SUM:
    case QG_GRAPH_REDUCE_MEAN:
    case QG_GRAPH_REDUCE_MAX: return run_reduce(&job);
    case QG_GRAPH_REDUCE_MAX_GRADIENT: return run_reduce_max_gradient(&job);
    default: return run_elementwise(&job);
    }
}
