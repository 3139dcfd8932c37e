// Metrics from sums, and Spearman's rank correlation. See qg_sums.h, where each is defined.
#include <qg_sums.h>

#include <math.h> // sqrt, which IEEE 754 rounds correctly; nothing else of it is called
#include <qg_bits.h>
#include <qg_elementary.h>
#include <qg_memory.h>
#include <stdlib.h>

static const qg_metric_info infos[] = {
#define INFO(ID, name, units, better, long_name, definition)                                       \
    {name, units, long_name, definition, better},
    QG_METRIC_TABLE(INFO)
#undef INFO
};

const qg_metric_info *qg_metric_describe(qg_metric metric) { return &infos[metric]; }

static double infinity(void) { return qg_double_of_bits(0x7ff0000000000000ull); }
static double not_a_number(void) { return qg_double_of_bits(0x7ff8000000000000ull); }

// a / b of non-negative numbers, where 0/0 is `none` and y/0 infinite.
static double ratio(double a, double b, double none) {
    if (b == 0)
        return a == 0 ? none : infinity();
    return a / b;
}

// The value of a - b. Products of binary32 numbers are exact in binary64, so sums of them carry
// about 100 bits: their differences keep the digits that a difference of values would cancel.
static double difference(qg_sum a, qg_sum b) { return (a.high - b.high) + (a.low - b.low); }

static double qsnr_db(double xx, double ee) {
    if (ee == 0)
        return infinity();
    return 10 * qg_log10(xx / ee);
}

static double cosine(const qg_sums *s) {
    double xx = qg_sum_value(s->xx), qq = qg_sum_value(s->qq);
    if (xx == 0 || qq == 0)
        return xx == qq ? 1 : 0;
    return qg_sum_value(s->xq) / sqrt(xx * qq);
}

// With lengths a of x and b of q: sum e^2 = (a - b)^2 + 2 a b (1 - cosine).
static double cosine_distance(const qg_sums *s) {
    double xx = qg_sum_value(s->xx), qq = qg_sum_value(s->qq);
    if (xx == 0 || qq == 0)
        return xx == qq ? 0 : 1;
    double d = difference(s->qq, s->xx) / (sqrt(xx) + sqrt(qq)); // b - a
    double distance = (qg_sum_value(s->ee) - d * d) / (2 * sqrt(xx * qq));
    return distance > 0 ? distance : 0;
}

// The value of rank ceil(permille/1000 count) of |e/x| over x != 0, as its bin's upper edge.
static double percentile(const qg_sums *s, int64_t permille) {
    int64_t count = s->n_finite - s->zero_reference, binned = 0;
    for (int i = 0; i < QG_HIST_LOG2_BINS; i++)
        binned += s->hist_rel[i];
    // ceil without the overflow of count * permille
    int64_t rank = count / 1000 * permille + (count % 1000 * permille + 999) / 1000;
    int64_t below = count - binned; // the exact ones
    if (rank <= below)
        return 0;
    int bin = 0;
    for (below += s->hist_rel[0]; rank > below && bin + 1 < QG_HIST_LOG2_BINS; bin++)
        below += s->hist_rel[bin + 1];
    double edge = qg_double_pow2(QG_HIST_LOG2_MIN + bin + 1);
    int is_open = bin + 1 == QG_HIST_LOG2_BINS;
    return is_open || s->max_rel_e < edge ? s->max_rel_e : edge;
}

double qg_metric_value(const qg_sums *s, qg_metric metric) {
    double n = (double)s->n_finite;
    double xx = qg_sum_value(s->xx), qq = qg_sum_value(s->qq), ee = qg_sum_value(s->ee);
    if (s->n_finite == 0)
        return not_a_number();
    switch (metric) {
    case QG_METRIC_QSNR_DB: return qsnr_db(xx, ee);
    case QG_METRIC_REL_FROBENIUS: return sqrt(ratio(ee, xx, 0));
    case QG_METRIC_MSE: return ee / n;
    case QG_METRIC_RMSE: return sqrt(ee / n);
    case QG_METRIC_NMSE: return ratio(ee, xx, 0);
    case QG_METRIC_MAX_ABS: return s->max_abs_e;
    case QG_METRIC_MEAN_ABS: return qg_sum_value(s->abs_e) / n;
    case QG_METRIC_MAX_REL: return s->max_rel_e;
    case QG_METRIC_REL_P50: return percentile(s, 500);
    case QG_METRIC_REL_P99: return percentile(s, 990);
    case QG_METRIC_REL_P999: return percentile(s, 999);
    case QG_METRIC_BIAS: return qg_sum_value(s->e) / n;
    case QG_METRIC_BIAS_REL: return ratio(qg_sum_value(s->e_sign_x), qg_sum_value(s->abs_x), 0);
    case QG_METRIC_SHRINKAGE: return xx == 0 ? not_a_number() : difference(s->xq, s->xx) / xx;
    case QG_METRIC_GAIN: return qq == 0 ? not_a_number() : qg_sum_value(s->xq) / qq;
    case QG_METRIC_COSINE: return cosine(s);
    case QG_METRIC_COSINE_DISTANCE: return cosine_distance(s);
    case QG_METRIC_CALC_DIFF: return ratio(ee, xx + qq, 0);
    case QG_METRIC_MAX_ULP: return s->max_ulp;
    case QG_METRIC_UNDERFLOW_SHARE:
        return ratio((double)s->underflowed, (double)(s->n_finite - s->zero_reference), 0);
    case QG_METRIC_EFFECTIVE_BITS: return (qsnr_db(xx, ee) - 1.76) / 6.02;
    case QG_METRIC_COUNT: break;
    }
    return not_a_number();
}

// ------------------------------------------------------------------------------------------ ranks

// Digits of the high words: 11, 11 and 10 bits. Below RADIX_LEAST counting them costs more.
enum { SPEARMAN_MOST = 65536, DIGIT_BITS = 11, DIGIT_MASK = 2047, RADIX_LEAST = 512 };

// A finite value as an unsigned number of the same order, equal for both zeros.
static uint32_t ordered(float x) {
    uint32_t bits = x == 0 ? 0 : qg_bits_of_float(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static int compare_keys(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// One pass of a radix sort by the bits from `shift`: the sequence of equal ones stays.
static void sort_by_digit(int64_t n, int shift, const uint64_t *from, uint64_t *to) {
    uint32_t place[1 << DIGIT_BITS] = {0}, below = 0;
    for (int64_t i = 0; i < n; i++)
        place[from[i] >> shift & DIGIT_MASK]++;
    for (int d = 0; d < 1 << DIGIT_BITS; d++) {
        uint32_t count = place[d];
        place[d] = below;
        below += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[place[from[i] >> shift & DIGIT_MASK]++] = from[i];
}

// Sorts keys whose low words ascend, through `spare`; returns the one of the two that is sorted.
static uint64_t *sort_keys(int64_t n, uint64_t *keys, uint64_t *spare) {
    if (n < RADIX_LEAST) {
        qsort(keys, (size_t)n, sizeof *keys, compare_keys);
        return keys;
    }
    sort_by_digit(n, 32, keys, spare);
    sort_by_digit(n, 32 + DIGIT_BITS, spare, keys);
    sort_by_digit(n, 32 + 2 * DIGIT_BITS, keys, spare);
    return spare;
}

// centred[i] = twice the rank of element i less n + 1: whole numbers that sum to 0. Ties share the
// mean rank. keys: ordered value in the high word, element in the low one; lost here.
static void rank_keys(int64_t n, uint64_t *keys, uint64_t *spare, int32_t *centred) {
    keys = sort_keys(n, keys, spare);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && keys[end] >> 32 == keys[i] >> 32;)
            end++;
        for (int64_t j = i; j < end; j++) // ranks i + 1 .. end, mean (i + 1 + end) / 2
            centred[keys[j] & 0xffffffffu] = (int32_t)(i + end - n);
    }
}

// Collects the keys of the finite pairs of the sample; returns their number.
static int64_t sample_keys(int64_t count, const float *x, const float *q, uint64_t *x_keys,
                           uint64_t *q_keys) {
    int64_t stride = (count - 1) / SPEARMAN_MOST + 1, n = 0;
    for (int64_t i = 0; i < count; i += stride) {
        if (!qg_float_is_finite(x[i]) || !qg_float_is_finite(q[i]))
            continue;
        x_keys[n] = (uint64_t)ordered(x[i]) << 32 | (uint64_t)n;
        q_keys[n] = (uint64_t)ordered(q[i]) << 32 | (uint64_t)n;
        n++;
    }
    return n;
}

// Pearson's correlation of the ranks. The sums fit 63 bits: 65536 * 65536^2.
static double correlate(int64_t n, const int32_t *a, const int32_t *b) {
    int64_t aa = 0, bb = 0, ab = 0;
    for (int64_t i = 0; i < n; i++) {
        aa += (int64_t)a[i] * a[i];
        bb += (int64_t)b[i] * b[i];
        ab += (int64_t)a[i] * b[i];
    }
    if (aa == 0 || bb == 0)
        return not_a_number();
    return (double)ab / sqrt((double)aa * (double)bb);
}

qg_status qg_spearman(int64_t count, const float *x, const float *q, double *out) {
    *out = not_a_number();
    if (count < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "rank correlation of no elements");
    int64_t most = count < SPEARMAN_MOST ? count : SPEARMAN_MOST;
    void *room; // keys of x and q, as many more for sorting, then ranks of x and q
    qg_status status =
        qg_allocate(&room, most, 3 * sizeof(uint64_t) + 2 * sizeof(int32_t), "ranks");
    if (status)
        return status;
    uint64_t *x_keys = room, *q_keys = x_keys + most, *spare = q_keys + most;
    int32_t *x_ranks = (int32_t *)(void *)(spare + most), *q_ranks = x_ranks + most;
    int64_t n = sample_keys(count, x, q, x_keys, q_keys);
    rank_keys(n, x_keys, spare, x_ranks);
    rank_keys(n, q_keys, spare, q_ranks);
    *out = correlate(n, x_ranks, q_ranks);
    qg_release(room);
    return QG_OK;
}
