// Error sums of one chunk, and their merging. See qg_sums.h; the metrics are metric.c's.
//
// A chunk is taken in blocks small enough for the first-level cache, and each sum of a block in its
// own loop over LANES lanes, element i in lane i mod LANES. The number of lanes is a constant, not
// that of a vector register, so every instruction set gives the same bits.
#include <qg_sums.h>

#include <qg_bits.h>
#include <qg_format.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <stdbool.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { LANES = 8, BLOCK = 128 };

typedef struct lane_sum {
    double high[LANES], low[LANES];
} lane_sum;

// One block of pairs, non-finite ones replaced by zeros, and what derives from them. Beyond the
// count everything up to a multiple of LANES is zero: adding it changes no sum. All in binary64, so
// that references of either type take the same way.
typedef struct block {
    double x[BLOCK], q[BLOCK], e[BLOCK];
    double abs_x[BLOCK], abs_e[BLOCK], e_sign_x[BLOCK];
    double rel[BLOCK]; // |e/x|, 0 where x == 0
    double ulp[BLOCK]; // |e| / ulp(x)
} block;

enum { SUMS = 9, TABLES = 4, REL_NONE = QG_HIST_LOG2_BINS }; // REL_NONE: e == 0 or x == 0

// What is compared, and in whose ulps.
typedef struct pairs {
    const float *x;
    const double *wide_x; // NULL: x
    const float *q;
    int mbits;           // of the format whose ulps count
    double least_normal; // its smallest normal
} pairs;

// The state of a chunk. Histograms are kept TABLES times over, so that neighbours that fall into
// one bin do not wait for one another.
typedef struct chunk {
    qg_sums *sums;
    lane_sum x, xx, qq, xq, e, abs_e, e_sign_x, ee, abs_x;
    uint32_t rel[TABLES][QG_HIST_LOG2_BINS + 1], ulp[TABLES][QG_HIST_ULP_BINS];
} chunk;

static uint64_t magnitude_bits(double x) { return qg_bits_of_double(x) & ~(1ull << 63); }
static double magnitude(double x) { return qg_double_of_bits(magnitude_bits(x)); }

// ------------------------------------------------------------------------------------------- sums

void qg_sums_clear(qg_sums *sums) {
    memset(sums, 0, sizeof *sums);
    sums->max_abs_e_index = sums->max_rel_e_index = -1;
}

// a + b exactly, as the rounded sum and its error (Knuth).
static qg_sum two_sum(double a, double b) {
    qg_sum s = {a + b, 0};
    double b_part = s.high - a;
    s.low = (a - (s.high - b_part)) + (b - b_part);
    return s;
}

static void merge_sum(qg_sum *sum, qg_sum other) {
    qg_sum s = two_sum(sum->high, other.high);
    sum->low += other.low + s.low;
    sum->high = s.high;
}

static void collect(const lane_sum *lanes, qg_sum *out) {
    for (int i = 0; i < LANES; i++)
        merge_sum(out, (qg_sum){lanes->high[i], lanes->low[i]});
}

static void add_values(lane_sum *sum, int n, const double *a) {
    // Vectors of two lanes, which x86-64 and AArch64 have; compilers do not find them here.
    typedef double pair __attribute__((vector_size(16)));
    pair high[LANES / 2], low[LANES / 2];
    memcpy(high, sum->high, sizeof high);
    memcpy(low, sum->low, sizeof low);
    for (int i = 0; i < n; i += LANES) {
        for (int l = 0; l < LANES / 2; l++) { // two_sum
            pair v, s, v_part;
            memcpy(&v, a + i + 2 * l, sizeof v);
            s = high[l] + v;
            v_part = s - high[l];
            low[l] += (high[l] - (s - v_part)) + (v - v_part);
            high[l] = s;
        }
    }
    memcpy(sum->high, high, sizeof high);
    memcpy(sum->low, low, sizeof low);
}

static void add_products(lane_sum *sum, int n, const double *a, const double *b) {
    double product[BLOCK];
    for (int i = 0; i < n; i++)
        product[i] = a[i] * b[i];
    add_values(sum, n, product);
}

// ------------------------------------------------------------------------------------------ blocks

// Counts the non-finite pairs and replaces them by zeros; returns their number.
static int64_t exclude(qg_sums *sums, int n, block *b) {
    int64_t excluded = 0;
    const uint64_t infinity = 0x7ffull << 52;
    for (int i = 0; i < n; i++) {
        uint64_t x = magnitude_bits(b->x[i]), q = magnitude_bits(b->q[i]);
        if (x < infinity && q < infinity)
            continue;
        sums->nan_reference += x > infinity;
        sums->nan_output += q > infinity;
        sums->inf_reference += x == infinity;
        sums->inf_output += q == infinity;
        b->x[i] = b->q[i] = 0;
        excluded++;
    }
    return excluded;
}

static int has_nonfinite(int n, const block *b) {
    // x - x is 0, or NaN where x is not finite
    double rest[LANES] = {0};
    int found = 0;
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++)
            rest[l] += (b->x[i + l] - b->x[i + l]) + (b->q[i + l] - b->q[i + l]);
    for (int l = 0; l < LANES; l++)
        found |= rest[l] != 0;
    return found;
}

// Counts that follow from the pairs as they are; `excluded` pairs of zeros are not data.
static void count_pairs(qg_sums *sums, int n, int64_t excluded, const block *b) {
    int64_t zero_x = 0, zero_q = 0, zero_both = 0, exact = 0, flips = 0;
    for (int i = 0; i < n; i++) {
        int64_t x_is_0 = b->x[i] == 0 ? 1 : 0, q_is_0 = b->q[i] == 0 ? 1 : 0;
        int64_t opposite =
            (int64_t)((qg_bits_of_double(b->x[i]) ^ qg_bits_of_double(b->q[i])) >> 63);
        zero_x += x_is_0;
        zero_q += q_is_0;
        zero_both += x_is_0 & q_is_0;
        flips += opposite & ~(x_is_0 | q_is_0);
        exact += b->x[i] == b->q[i] ? 1 : 0;
    }
    sums->n += n;
    sums->n_finite += n - excluded;
    sums->zero_reference += zero_x - excluded;
    sums->zero_output += zero_q - excluded;
    sums->exact += exact - excluded;
    sums->underflowed += zero_q - zero_both;
    sums->zero_reference_nonzero_error += zero_x - zero_both;
    sums->sign_flips += flips;
    sums->hist_ulp[0] -= excluded; // where count_bins puts them
}

static void derive(const pairs *p, int n, block *b) {
    for (int i = 0; i < n; i++) {
        double x = b->x[i], e = b->q[i] - x;
        b->e[i] = e;
        b->abs_x[i] = magnitude(x);
        b->abs_e[i] = magnitude(e);
    }
    for (int i = 0; i < n; i++) {
        // sign x as a factor: +-1, or 0 at 0, without a branch
        double is_zero = b->abs_x[i] == 0 ? 1 : 0;
        uint64_t sign = qg_bits_of_double(b->x[i]) & 1ull << 63;
        double signed_e = qg_double_of_bits(qg_bits_of_double(b->e[i]) ^ sign);
        b->e_sign_x[i] = signed_e * (1 - is_zero);
        b->rel[i] = b->abs_e[i] * (1 - is_zero) / (b->abs_x[i] + is_zero);
    }
    const uint64_t inverse = (uint64_t)(2 * 1023 + p->mbits) << 52;
    for (int i = 0; i < n; i++) {
        // subnormals have the smallest normal's ulp
        double x = b->abs_x[i] > p->least_normal ? b->abs_x[i] : p->least_normal;
        uint64_t per_ulp = inverse - (qg_bits_of_double(x) & 0x7ffull << 52);
        b->ulp[i] = b->abs_e[i] * qg_double_of_bits(per_ulp);
    }
}

// floor(log2 v) of a normal v > 0; of 0 far below every bin.
static int exponent(double v) { return (int)(magnitude_bits(v) >> 52) - 1023; }

static int clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }

static void count_bins(chunk *c, int n, const block *b) {
    int rel[BLOCK], ulp[BLOCK];
    for (int i = 0; i < n; i++) {
        int bin = clamp(exponent(b->rel[i]) - QG_HIST_LOG2_MIN, 0, QG_HIST_LOG2_BINS - 1);
        rel[i] = b->rel[i] == 0 ? REL_NONE : bin;
        bin = clamp(exponent(b->ulp[i]) + 1, 1, QG_HIST_ULP_BINS - 1);
        ulp[i] = b->ulp[i] == 0 ? 0 : bin;
    }
    for (int i = 0; i < n; i++) {
        c->rel[i % TABLES][rel[i]]++;
        c->ulp[i % TABLES][ulp[i]]++;
    }
}

static double largest(int n, const double *v) { // n is a multiple of LANES, no v is NaN
    double lane[LANES] = {0}, most = 0;
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] = v[i + l] > lane[l] ? v[i + l] : lane[l];
    for (int l = 0; l < LANES; l++)
        most = lane[l] > most ? lane[l] : most;
    return most;
}

// Keeps the larger of *max and the block's largest, and the first place of it.
static void keep_largest(int n, const double *v, int64_t first, double *max, int64_t *place) {
    double most = largest(n, v);
    if (!(most > *max))
        return;
    *max = most;
    for (int i = n - 1; i >= 0; i--)
        *place = v[i] == most ? first + i : *place;
}

// The n pairs from `at`, with zeros up to a multiple of LANES, which it returns.
static int load(const pairs *p, int64_t at, int n, block *b) {
    for (int i = 0; i < n; i++)
        b->q[i] = p->q[at + i];
    if (p->wide_x)
        memcpy(b->x, p->wide_x + at, sizeof *b->x * (size_t)n);
    else
        for (int i = 0; i < n; i++)
            b->x[i] = p->x[at + i];
    int padded = (n + LANES - 1) / LANES * LANES;
    for (int i = n; i < padded; i++)
        b->x[i] = b->q[i] = 0;
    return padded;
}

// The n pairs from `at`, whose index in the tensor is `first`.
static void add_block(chunk *c, const pairs *p, int64_t at, int n, int64_t first, block *b) {
    qg_sums *sums = c->sums;
    int padded = load(p, at, n, b);
    int64_t excluded = 0;
    if (has_nonfinite(padded, b))
        excluded = exclude(sums, n, b);
    count_pairs(sums, n, excluded, b);
    derive(p, padded, b);
    count_bins(c, n, b);
    add_values(&c->x, padded, b->x);
    add_values(&c->e, padded, b->e);
    add_values(&c->abs_x, padded, b->abs_x);
    add_values(&c->abs_e, padded, b->abs_e);
    add_values(&c->e_sign_x, padded, b->e_sign_x);
    add_products(&c->xx, padded, b->x, b->x);
    add_products(&c->qq, padded, b->q, b->q);
    add_products(&c->xq, padded, b->x, b->q);
    add_products(&c->ee, padded, b->e, b->e);
    int64_t ignored = 0;
    keep_largest(padded, b->abs_e, first, &sums->max_abs_e, &sums->max_abs_e_index);
    keep_largest(padded, b->rel, first, &sums->max_rel_e, &sums->max_rel_e_index);
    keep_largest(padded, b->abs_x, first, &sums->max_abs_x, &ignored);
    keep_largest(padded, b->ulp, first, &sums->max_ulp, &ignored);
}

static void collect_chunk(chunk *c) {
    qg_sums *sums = c->sums;
    collect(&c->x, &sums->x);
    collect(&c->xx, &sums->xx);
    collect(&c->qq, &sums->qq);
    collect(&c->xq, &sums->xq);
    collect(&c->e, &sums->e);
    collect(&c->abs_e, &sums->abs_e);
    collect(&c->e_sign_x, &sums->e_sign_x);
    collect(&c->ee, &sums->ee);
    collect(&c->abs_x, &sums->abs_x);
    for (int t = 0; t < TABLES; t++) {
        for (int i = 0; i < QG_HIST_LOG2_BINS; i++)
            sums->hist_rel[i] += c->rel[t][i];
        for (int i = 0; i < QG_HIST_ULP_BINS; i++)
            sums->hist_ulp[i] += c->ulp[t][i];
    }
}

// The sums of one chunk, the (count) pairs from `at`: at most 2^32 - 1 (32-bit bins).
static void measure_chunk(const pairs *p, int64_t at, int64_t count, int64_t first, qg_sums *out) {
    block b;
    chunk c;
    memset(&c, 0, sizeof c);
    qg_sums_clear(out);
    c.sums = out;
    for (int64_t done = 0; done < count; done += BLOCK) {
        int n = count - done < BLOCK ? (int)(count - done) : BLOCK;
        add_block(&c, p, at + done, n, first + done, &b);
    }
    collect_chunk(&c);
}

// ----------------------------------------------------------------------------------------- borders

static pairs binary32_pairs(const float *x, const float *q) {
    return (pairs){.x = x, .q = q, .mbits = 23, .least_normal = 0x1p-126};
}

void qg_sums_add(qg_sums *sums, int64_t count, int64_t first, const float *x, const float *q) {
    qg_sums chunk_sums;
    pairs p = binary32_pairs(x, q);
    measure_chunk(&p, 0, count, first, &chunk_sums);
    qg_sums_merge(sums, &chunk_sums);
}

static void merge_largest(double *max, int64_t *place, double other, int64_t other_place) {
    if (other > *max) {
        *max = other;
        *place = other_place;
    }
}

void qg_sums_merge(qg_sums *sums, const qg_sums *other) {
    sums->n += other->n;
    sums->n_finite += other->n_finite;
    sums->nan_reference += other->nan_reference;
    sums->nan_output += other->nan_output;
    sums->inf_reference += other->inf_reference;
    sums->inf_output += other->inf_output;
    sums->zero_reference += other->zero_reference;
    sums->zero_output += other->zero_output;
    sums->underflowed += other->underflowed;
    sums->exact += other->exact;
    sums->sign_flips += other->sign_flips;
    sums->zero_reference_nonzero_error += other->zero_reference_nonzero_error;
    merge_sum(&sums->x, other->x);
    merge_sum(&sums->xx, other->xx);
    merge_sum(&sums->qq, other->qq);
    merge_sum(&sums->xq, other->xq);
    merge_sum(&sums->e, other->e);
    merge_sum(&sums->abs_e, other->abs_e);
    merge_sum(&sums->e_sign_x, other->e_sign_x);
    merge_sum(&sums->ee, other->ee);
    merge_sum(&sums->abs_x, other->abs_x);
    int64_t ignored = 0;
    merge_largest(&sums->max_abs_e, &sums->max_abs_e_index, other->max_abs_e,
                  other->max_abs_e_index);
    merge_largest(&sums->max_rel_e, &sums->max_rel_e_index, other->max_rel_e,
                  other->max_rel_e_index);
    merge_largest(&sums->max_abs_x, &ignored, other->max_abs_x, 0);
    merge_largest(&sums->max_ulp, &ignored, other->max_ulp, 0);
    for (int i = 0; i < QG_HIST_LOG2_BINS; i++)
        sums->hist_rel[i] += other->hist_rel[i];
    for (int i = 0; i < QG_HIST_ULP_BINS; i++)
        sums->hist_ulp[i] += other->hist_ulp[i];
}

// Chunks first_chunk .. first_chunk + chunks - 1 of (count) elements, each into its own part.
static void measure_parts(const pairs *p, int64_t first_chunk, int64_t chunks, int64_t count,
                          int threads, qg_sums *part) {
    (void)threads; // without OpenMP
#pragma omp parallel num_threads(threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < chunks; i++) {
            int64_t first = (first_chunk + i) * QG_SUMS_CHUNK;
            int64_t n = count - first < QG_SUMS_CHUNK ? count - first : QG_SUMS_CHUNK;
            measure_chunk(p, first, n, first, &part[i]);
        }
        qg_fp_leave(saved);
    }
}

static int threads_for(int threads, int64_t chunks) {
#ifdef _OPENMP
    if (threads <= 0)
        threads = omp_get_max_threads();
#endif
    return threads > chunks ? (int)chunks : threads;
}

static qg_status measure_pairs(const pairs *p, int64_t count, int threads, qg_sums *out) {
    enum { PARTS = 256 }; // chunks in flight: a third of a megabyte, and seldom a barrier
    qg_sums_clear(out);
    if (count <= 0)
        return qg_fail(QG_ERROR_ARGUMENT, "nothing to compare: an empty comparison has no error");
    int64_t chunks = (count - 1) / QG_SUMS_CHUNK + 1, parts = chunks < PARTS ? chunks : PARTS;
    void *room;
    qg_status status = qg_allocate(&room, parts, sizeof(qg_sums), "error sums");
    if (status)
        return status;
    qg_sums *part = room;
    threads = threads_for(threads, parts);
    for (int64_t done = 0; done < chunks; done += parts) {
        int64_t n = chunks - done < parts ? chunks - done : parts;
        measure_parts(p, done, n, count, threads, part);
        for (int64_t i = 0; i < n; i++)
            qg_sums_merge(out, &part[i]);
    }
    qg_release(room);
    return QG_OK;
}

qg_status qg_sums_measure(int64_t count, const float *x, const float *q, int threads,
                          qg_sums *out) {
    pairs p = binary32_pairs(x, q);
    return measure_pairs(&p, count, threads, out);
}

qg_status qg_sums_measure_product(int64_t count, const double *x, const float *q,
                                  qg_format out_type, int threads, qg_sums *out) {
    qg_format_info info = qg_format_describe(out_type);
    pairs p = {.wide_x = x, .q = q, .mbits = info.mbits};
    p.least_normal = qg_double_pow2(1 - info.bias);
    if (out_type == QG_FORMAT_FP32 || out_type == QG_FORMAT_BF16 || out_type == QG_FORMAT_FP16)
        return measure_pairs(&p, count, threads, out);
    qg_sums_clear(out);
    return qg_fail(QG_ERROR_ARGUMENT, "the output of a product is fp32, bf16 or fp16");
}

double qg_backward_error(int64_t count, const double *x, const float *q, const double *size) {
    double worst = 0;
    qg_fp_state saved = qg_fp_enter();
    for (int64_t i = 0; i < count; i++) {
        double e = magnitude(q[i] - x[i]);
        // An exact element has none, whatever its magnitude; a NaN or infinite one is left out.
        double ratio = e == 0 ? 0 : e / size[i];
        bool counts = e - e == 0 && ratio > worst;
        worst = counts ? ratio : worst;
    }
    qg_fp_leave(saved);
    return worst;
}
