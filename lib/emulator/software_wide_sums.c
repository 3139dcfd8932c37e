// `exact` and `fp64` over matrices. `fp64` is summed as written. `exact` is summed in binary64, by
// blocks of K, and rounded where the error bound of that sum decides the rounding; a tile where it
// does not often enough is summed in double-double; where that bound does not decide either, and
// where the sum is not finite, the exact sum of unit_software.c does (Ziv's method).
// Exact: one rounding of the unit's sum.
#include <exact_product_internal.h>
#include <parallel_internal.h>
#include <product_store_internal.h>
#include <qg_memory.h>
#include <unit_software_internal.h>

typedef struct wide_context {
    const software_product *product;
    qg_format out_type;
    const float *bias;
    void *out;
    exact_range_of range;
    exact_range *a, *b; // (m), (n)
} wide_context;

// ------------------------------------------------------------------------------------------- exact

static double absolute(double x) { return x < 0 ? -x : x; }

// Norms are good for fewer than 2^32 elements.
static int exact_mode(const exact_job *job, const exact_tile *t) {
    (void)t;
    return job->k < INT64_C(1) << 32 ? EXACT_BLOCKED : EXACT_WITH_MAGNITUDE;
}

// At least the sum of all magnitudes, by Cauchy and Schwarz.
static double magnitude_bound(const wide_context *c, int64_t row, int64_t column) {
    double bias = c->bias ? absolute(c->bias[column]) : 0.0;
    return (c->a[row].norm * c->b[column].norm + bias) * (1 + 0x1p-20);
}

// Whether every partial sum of this output is a binary64 number.
static bool is_in_units(const wide_context *c, int64_t row, int64_t column, double magnitude) {
    double unit = c->a[row].unit * c->b[column].unit;
    if (c->bias) {
        exact_range of_bias = c->range(1, c->bias + column);
        unit = of_bias.unit < unit ? of_bias.unit : unit;
    }
    return magnitude < unit * 0x1p53;
}

static bool is_decided(const wide_context *c, double sum, double error) {
    return store_code(c->out_type, sum - error) == store_code(c->out_type, sum + error);
}

static double exactly(const wide_context *c, int64_t row, int64_t column) {
    const software_product *p = c->product;
    return qg_unit_wide_sum(p->unit, p->k, p->a + row * p->k, p->b + column * p->k,
                            c->bias ? c->bias + column : NULL);
}

// In the modes below *sum is a number that rounds as the exact sum does, unless they return false.

// A sum of up to EXACT_K + 1 terms in binary64 errs by EXACT_K u S at most, that of k / EXACT_K
// sums by as many u S; 4 more are for the roundings of the bound and of the two ends.
static bool decide_blocked(const wide_context *c, const exact_tile *t, int64_t i, int64_t j,
                           double *sum) {
    int64_t row = t->row + i, column = t->column + j, k = c->product->k;
    double magnitude = magnitude_bound(c, row, column);
    *sum = t->low[i][j];
    double error = (double)(EXACT_K + k / EXACT_K + 4) * 0x1p-53 * magnitude;
    return is_in_units(c, row, column, magnitude) || is_decided(c, *sum, error);
}

// The bound is that of qg_exact_product, doubled and more for those roundings.
static bool decide_double(const wide_context *c, const exact_tile *t, int64_t i, int64_t j,
                          double *sum) {
    double magnitude = t->magnitude[i][j];
    *sum = qg_exact_tile_sum(t, i, j);
    double error = absolute(*sum) * 0x1p-51 + (double)c->product->k * 0x1p-103 * magnitude;
    return is_in_units(c, t->row + i, t->column + j, magnitude) || is_decided(c, *sum, error);
}

// An exact sum costs as much as about 16 in double-double.
enum { UNDECIDED_SHARE = 16 };

static int finish_exact(const exact_job *job, const exact_tile *t) {
    const wide_context *c = job->context;
    int64_t undecided = 0;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            int64_t row = t->row + i, column = t->column + j;
            bool blocked = t->mode == EXACT_BLOCKED;
            double sum;
            bool decided =
                blocked ? decide_blocked(c, t, i, j, &sum) : decide_double(c, t, i, j, &sum);
            bool finite = sum - sum == 0.0;
            undecided += finite && !decided;
            if (blocked && undecided * UNDECIDED_SHARE > t->rows * t->columns)
                return EXACT_WITH_MAGNITUDE;
            if (!finite || !decided)
                sum = exactly(c, row, column);
            store_double(c->out_type, sum, c->out, row * job->n + column);
        }
    return EXACT_DONE;
}

// -------------------------------------------------------------------------------------------- fp64

static int plain_mode(const exact_job *job, const exact_tile *t) {
    (void)job, (void)t;
    return EXACT_PLAIN;
}

static int finish_fp64(const exact_job *job, const exact_tile *t) {
    const wide_context *c = job->context;
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++) {
            double sum = t->sum[i][j];
            if (c->bias)
                sum = sum + (double)c->bias[t->column + j];
            store_double(c->out_type, sum, c->out, (t->row + i) * job->n + t->column + j);
        }
    return EXACT_DONE;
}

// ---------------------------------------------------------------------------------------- matrices

static void find_ranges(const wide_context *c) {
    const software_product *p = c->product;
    int threads = thread_count(p->threads, (p->m + p->n) * p->k / 16);
    (void)threads; // without OpenMP
#pragma omp parallel num_threads(threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < p->m + p->n; i++)
            c->a[i] = i < p->m ? c->range(p->k, p->a + i * p->k)
                               : c->range(p->k, p->b + (i - p->m) * p->k);
        qg_fp_leave(saved);
    }
}

static qg_status sum_exact(wide_context *c, exact_job *job) {
    void *room;
    qg_status status = qg_allocate(&room, job->m + job->n, (int64_t)sizeof(exact_range),
                                   "the ranges of a product");
    if (status != QG_OK)
        return status;
    c->a = room;
    c->b = c->a + job->m; // as find_ranges writes them
    c->range = qg_exact_range();
    find_ranges(c);
    job->bias = c->bias;
    job->mode = exact_mode;
    job->finish = finish_exact;
    status = qg_exact_tiles(job);
    qg_release(room);
    return status;
}

qg_status qg_software_wide_sums(const software_product *p, const float *bias, qg_format out_type,
                                void *out) {
    wide_context c = {.product = p, .out_type = out_type, .bias = bias, .out = out};
    exact_job job = {.m = p->m, .n = p->n, .k = p->k, .a = p->a, .b = p->b, .context = &c};
    job.threads = p->threads;
    if (p->unit->id == QG_UNIT_EXACT)
        return sum_exact(&c, &job);
    job.mode = plain_mode;
    job.finish = finish_fp64;
    return qg_exact_tiles(&job);
}
