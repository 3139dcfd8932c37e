// Reference products in double-double: packing, tiles, the last rounding. See qg_exact_product.h.
//
// Owns the order of summation (ascending over K, for each output alone) and the choice of kernel.
// Exact: bits depend neither on the instruction set nor on tiles nor on threads.
#include <exact_product_internal.h>
#include <parallel_internal.h>
#include <qg_bits.h>
#include <qg_exact_product.h>
#include <qg_memory.h>
#include <qg_size.h>
#include <qg_unit.h>

typedef struct exact_code {
    exact_kernel kernel;
    exact_range_of range;
} exact_code;

static exact_code choose_code(void) {
    switch (qg_isa_find(qg_unit_isa())) {
#ifdef QG_HAVE_AVX512
    case QG_ISA_AVX512: return (exact_code){qg_exact_kernel_avx512, qg_exact_range_avx512};
#endif
#ifdef QG_HAVE_AVX2
    case QG_ISA_AVX2: return (exact_code){qg_exact_kernel_avx2, qg_exact_range_avx2};
#endif
    default: return (exact_code){qg_exact_kernel_scalar, qg_exact_range_scalar};
    }
}

exact_range_of qg_exact_range(void) { return choose_code().range; }

// ------------------------------------------------------------------------------------------ tiles

typedef struct tiling {
    const exact_job *job;
    int64_t tile_rows, row_tiles, column_tiles;
    exact_kernel kernel;
} tiling;

// Columns past the last are summed with the others, and not read.
static void start_tile(const exact_job *job, exact_tile *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < EXACT_COLUMNS; j++) {
            bool biased = job->bias && j < t->columns;
            double bias = biased ? (double)job->bias[t->column + j] + 0.0 : 0.0; // no -0
            t->sum[i][j] = bias;
            t->magnitude[i][j] = bias < 0 ? -bias : bias;
            t->low[i][j] = t->lowest[i][j] = 0.0;
        }
}

static void sum_tile(const tiling *x, exact_tile *t) {
    const exact_job *job = x->job;
    start_tile(job, t);
    for (int64_t from = 0; from < job->k; from += EXACT_K) {
        t->k = job->k - from < EXACT_K ? job->k - from : EXACT_K;
        t->a_rows = job->a + t->row * job->k + from;
        t->b_rows = job->b + t->column * job->k + from;
        x->kernel(t);
    }
}

static void run_tile(const tiling *x, int64_t index, exact_tile *t) {
    const exact_job *job = x->job;
    t->row = index / x->column_tiles * x->tile_rows;
    t->column = index % x->column_tiles * EXACT_COLUMNS;
    t->rows = job->m - t->row < x->tile_rows ? job->m - t->row : x->tile_rows;
    t->columns = job->n - t->column < EXACT_COLUMNS ? job->n - t->column : EXACT_COLUMNS;
    t->stride = job->k;
    t->mode = job->mode(job, t);
    while (t->mode != EXACT_DONE) {
        sum_tile(x, t);
        t->mode = job->finish(job, t);
    }
}

// Tiles of few rows where there are few tiles, so that all threads get some.
static tiling choose_tiles(const exact_job *job, int threads) {
    tiling x = {.job = job, .tile_rows = EXACT_ROWS, .kernel = choose_code().kernel};
    x.column_tiles = (job->n + EXACT_COLUMNS - 1) / EXACT_COLUMNS;
    for (;; x.tile_rows /= 2) {
        x.row_tiles = (job->m + x.tile_rows - 1) / x.tile_rows;
        bool plenty = x.row_tiles * x.column_tiles >= 4 * (int64_t)threads;
        if (threads == 1 || plenty || x.tile_rows == 8)
            return x;
    }
}

static int exact_threads(const exact_job *job) {
    int64_t outputs, products;
    if (!qg_size_multiply(job->m, job->n, &outputs) ||
        !qg_size_multiply(outputs, job->k, &products))
        products = INT64_MAX;
    return thread_count(job->threads, products / 4);
}

qg_status qg_exact_tiles(const exact_job *job) {
    int threads = exact_threads(job);
    tiling x = choose_tiles(job, threads);
    void *room;
    qg_status status =
        qg_allocate(&room, threads, (int64_t)sizeof(exact_tile), "the tiles of a product");
    if (status != QG_OK)
        return status;
    exact_tile *tiles = room;
    int64_t count = x.row_tiles * x.column_tiles;
#pragma omp parallel num_threads(threads)
    {
        qg_fp_state saved = qg_fp_enter();
        exact_tile *tile = tiles + thread_index();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < count; i++)
            run_tile(&x, i, tile);
        qg_fp_leave(saved);
    }
    qg_release(room);
    return QG_OK;
}

// sum + low + lowest, rounded: |low| may exceed |sum|, and lowest is at most k u |low|.
double qg_exact_tile_sum(const exact_tile *tile, int64_t i, int64_t j) {
    double sum = tile->sum[i][j], low = tile->low[i][j];
    double high = sum + low, part = high - sum;
    double lost = (sum - (high - part)) + (low - part);
    return high + (lost + tile->lowest[i][j]);
}

// -------------------------------------------------------------------------------- the product

typedef struct destination {
    double *out, *magnitude;
} destination;

static double canonical(double x) { return x == x ? x : qg_double_of_bits(0x7ff8000000000000u); }

// With NaN or infinite terms: no sum of finite ones overflows, so an ordinary sum is the answer.
static double sum_special(const exact_job *job, int64_t i, int64_t j) {
    const float *a = job->a + i * job->k, *b = job->b + j * job->k;
    double sum = job->bias ? (double)job->bias[j] : 0.0;
    for (int64_t l = 0; l < job->k; l++)
        sum = sum + (double)a[l] * (double)b[l];
    return canonical(sum);
}

static int product_mode(const exact_job *job, const exact_tile *t) {
    (void)t;
    const destination *to = job->context;
    return to->magnitude ? EXACT_WITH_MAGNITUDE : EXACT_DOUBLE;
}

static int finish_product(const exact_job *job, const exact_tile *t) {
    const destination *to = job->context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            int64_t at = (t->row + i) * job->n + t->column + j;
            double sum = qg_exact_tile_sum(t, i, j);
            bool finite = sum - sum == 0.0;
            to->out[at] = finite ? sum : sum_special(job, t->row + i, t->column + j);
            if (to->magnitude)
                to->magnitude[at] = canonical(t->magnitude[i][j]);
        }
    return EXACT_DONE;
}

static qg_status check_sizes(int64_t m, int64_t n, int64_t k) {
    int64_t size;
    if (m < 1 || n < 1 || k < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "m, n and k of a product must be at least 1");
    if (!qg_size_multiply(m, n, &size) || !qg_size_multiply(size, (int64_t)sizeof(double), &size) ||
        !qg_size_multiply(m, k, &size) || !qg_size_multiply(size, (int64_t)sizeof(float), &size) ||
        !qg_size_multiply(n, k, &size) || !qg_size_multiply(size, (int64_t)sizeof(float), &size))
        return qg_fail(QG_ERROR_OVERFLOW, "a product of %lld x %lld x %lld exceeds 2^63 - 1 bytes",
                       (long long)m, (long long)n, (long long)k);
    return QG_OK;
}

qg_status qg_exact_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                           const float *bias, int threads, double *out, double *magnitude) {
    qg_status status = check_sizes(m, n, k);
    if (status != QG_OK)
        return status;
    destination to = {out, magnitude};
    exact_job job = {m, n, k, a, b, bias, threads, product_mode, finish_product, &to};
    return qg_exact_tiles(&job);
}
