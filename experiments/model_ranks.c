// How far quantized embeddings rank the similarity of sentences as those in fp32 do. See
// model_run.h.
#include <model_run.h>

#include <qg_memory.h>
#include <qg_size.h>

#include <math.h>

static double dot(int64_t k, const float *a, const float *b) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

// norms: room for (rows). out: (rows (rows - 1) / 2).
static void find_similarities(int64_t rows, int64_t k, const float *x, double *norms, float *out) {
    for (int64_t i = 0; i < rows; i++)
        norms[i] = sqrt(dot(k, x + i * k, x + i * k));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + 1; j < rows; j++)
            *out++ = (float)(dot(k, x + i * k, x + j * k) / (norms[i] * norms[j]));
}

qg_status model_rank_agreement(int64_t rows, int64_t k, const float *x, const float *q,
                               double *out) {
    int64_t pairs;
    void *norms, *similarities;
    *out = (double)NAN;
    if (rows < 3)
        return QG_OK;
    if (!qg_size_multiply(rows, rows - 1, &pairs))
        return qg_fail(QG_ERROR_OVERFLOW, "the pairs of that many sentences overflow");
    pairs /= 2;
    qg_status status = qg_allocate(&norms, rows, sizeof(double), "lengths of embeddings");
    if (status)
        return status;
    status = qg_allocate(&similarities, pairs, 2 * sizeof(float), "similarities of sentences");
    if (!status) {
        float *of_x = similarities, *of_q = of_x + pairs;
        find_similarities(rows, k, x, norms, of_x);
        find_similarities(rows, k, q, norms, of_q);
        status = qg_spearman(pairs, of_x, of_q, out);
        qg_release(similarities);
    }
    qg_release(norms);
    return status;
}
