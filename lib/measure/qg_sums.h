// Mergeable sums of an error comparison, and the metrics derived from them.
//
// x is the reference, q the dequantized value or output, e = q - x in binary64: exact for binary32
// references of like size, rounded once otherwise. Pairs in which x or q is NaN or infinite are
// counted and excluded from every sum. Sums are compensated and merged in a fixed order, so the
// same elements in the same chunks give the same bits whatever the threads and the machine. The
// definition of each metric is its row of the table below.
#ifndef QG_SUMS_H
#define QG_SUMS_H

#include <qg_format.h>
#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

enum { QG_SUMS_CHUNK = 65536 }; // elements per chunk of qg_sums_measure

// A compensated sum: the running value, and the exact rounding errors of its additions, summed
// (what Neumaier's branch finds, by Knuth's branch-free formula).
typedef struct qg_sum {
    double high, low;
} qg_sum;
static inline double qg_sum_value(qg_sum s) { return s.high + s.low; }

enum {
    QG_HIST_LOG2_MIN = -64, // bin b: |e/x| in [2^(b-64), 2^(b-63)), clamped at both ends
    QG_HIST_LOG2_BINS = 80,
    QG_HIST_ULP_BINS = 40 // |e| in ulp: exactly 0, then (0, 2), then [2^(b-1), 2^b), the last open
};

// Counts below n_finite, sums, extremes and histograms are over the pairs in which both are finite.
typedef struct qg_sums {
    int64_t n, n_finite;
    int64_t nan_reference, nan_output, inf_reference, inf_output;
    int64_t zero_reference, zero_output;
    int64_t underflowed;                  // x != 0 with q == 0
    int64_t exact;                        // e == 0
    int64_t sign_flips;                   // x and q not 0, of opposite signs
    int64_t zero_reference_nonzero_error; // x == 0 with e != 0
    qg_sum x, xx, qq, xq, e, abs_e, e_sign_x, ee, abs_x;
    double max_abs_e, max_rel_e, max_abs_x;   // max_rel_e: |e/x| over x != 0
    int64_t max_abs_e_index, max_rel_e_index; // the first element that has it, -1 if no error
    // |e| in ulp(x), clamped to the ulp of the smallest normal: of binary32, or of the output type
    // of a product.
    double max_ulp;
    int64_t hist_rel[QG_HIST_LOG2_BINS]; // |e/x| of x != 0, e != 0
    int64_t hist_ulp[QG_HIST_ULP_BINS];  // |e| in the same ulp
} qg_sums;

void qg_sums_clear(qg_sums *sums);

// Adds (count) elements, the first of which has index `first` in the tensor, as one chunk: sums of
// differently cut chunks agree to rounding, those of equally cut ones to the bit.
void qg_sums_add(qg_sums *sums, int64_t count, int64_t first, const float *x, const float *q);

// Merges `other`, which holds later elements, into `sums`.
void qg_sums_merge(qg_sums *sums, const qg_sums *other);

// All of it: (count) elements in chunks of QG_SUMS_CHUNK, on `threads` threads (0: all), merged in
// order. QG_ERROR_ARGUMENT when count is not positive: an empty comparison has no error.
// QG_ERROR_MEMORY.
qg_status qg_sums_measure(int64_t count, const float *x, const float *q, int threads, qg_sums *out);

// The same of a product: x the reference product in binary64, q the output, converted exactly to
// binary32; ulps are those of out_type (QG_FORMAT_FP32, _BF16, _FP16) at the binade of x.
// Also QG_ERROR_ARGUMENT for another type.
qg_status qg_sums_measure_product(int64_t count, const double *x, const float *q,
                                  qg_format out_type, int threads, qg_sums *out);

// Componentwise backward error of a product: max |e| / size over the pairs in which both are
// finite; 0/0 is 0, y/0 infinite. size: (count) |A| |B| of the operands of the reference.
double qg_backward_error(int64_t count, const double *x, const float *q, const double *size);

// Derived metrics: one row each. X(ID, name, units, better, long name, definition)
// better: +1 larger is better, -1 smaller, 0 nearer to the ideal (0, for gain 1).
// n in a definition is the number of finite pairs; without any, every metric is NaN.
// clang-format off
#define QG_METRIC_TABLE(X)                                                                         \
    X(QSNR_DB, "qsnr_db", "dB", 1, "quantization signal to noise ratio",                           \
      "10 log10(sum x^2 / sum e^2); +Inf when every e is 0, -Inf when only every x is")     \
    X(REL_FROBENIUS, "rel_frobenius", "1", -1, "relative Frobenius error",                         \
      "sqrt(sum e^2 / sum x^2); 0/0 is 0, y/0 is Inf")                                             \
    X(MSE, "mse", "1", -1, "mean squared error", "sum e^2 / n")                                    \
    X(RMSE, "rmse", "1", -1, "root of the mean squared error", "sqrt(sum e^2 / n)")                \
    X(NMSE, "nmse", "1", -1, "normalised mean squared error",                                      \
      "sum e^2 / sum x^2; 0/0 is 0, y/0 is Inf")                                                   \
    X(MAX_ABS, "max_abs", "1", -1, "largest absolute error", "max |e|")                            \
    X(MEAN_ABS, "mean_abs", "1", -1, "mean absolute error", "sum |e| / n")                         \
    X(MAX_REL, "max_rel", "1", -1, "largest relative error", "max |e/x| over x != 0; none: 0")     \
    X(REL_P50, "rel_p50", "1", -1, "median relative error",                                        \
      "upper edge of the log2 bin of |e/x| over x != 0 that holds the value of rank "              \
      "ceil(0.5 count), max_rel if that is less; e = 0 counts as 0; none: 0")                      \
    X(REL_P99, "rel_p99", "1", -1, "99th percentile of the relative error", "as rel_p50, 99 %")    \
    X(REL_P999, "rel_p999", "1", -1, "99.9th percentile of the relative error",                    \
      "as rel_p50, 99.9 %")                                                                        \
    X(BIAS, "bias", "1", 0, "mean error", "sum e / n")                                             \
    X(BIAS_REL, "bias_rel", "1", 0, "relative bias", "sum (e sign x) / sum |x|; 0/0 is 0")         \
    X(SHRINKAGE, "shrinkage", "1", 0, "shrinkage",                                                 \
      "sum x e / sum x^2, negative when values shrink; NaN when every x is 0")                     \
    X(GAIN, "gain", "1", 0, "optimal gain", "sum x q / sum q^2; NaN when every q is 0")            \
    X(COSINE, "cosine", "1", 1, "cosine similarity",                                               \
      "sum x q / sqrt(sum x^2 sum q^2); both zero: 1, one zero: 0")                                \
    X(COSINE_DISTANCE, "cosine_distance", "1", -1, "1 - cosine",                                   \
      "1 - cosine, from sum e^2 without cancellation")                                             \
    X(CALC_DIFF, "calc_diff", "1", -1, "DeepGEMM's difference",                                    \
      "1 - 2 sum x q / (sum x^2 + sum q^2) = sum e^2 / (sum x^2 + sum q^2); 0/0 is 0")             \
    X(MAX_ULP, "max_ulp", "ulp", -1, "largest error in units of the last place",                   \
      "max |e| / ulp(x), ulp of the output type at the binade of x, at least that of its "         \
      "smallest normal")                                                                           \
    X(UNDERFLOW_SHARE, "underflow_share", "1", -1, "share of non-zero values that became zero",    \
      "count(x != 0, q == 0) / count(x != 0); 0/0 is 0")                                           \
    X(EFFECTIVE_BITS, "effective_bits", "bit", 1, "effective bits (sine convention)",              \
      "(qsnr_db - 1.76) / 6.02")
// clang-format on

typedef enum qg_metric {
#define QG_METRIC_ENUM(ID, ...) QG_METRIC_##ID,
    QG_METRIC_TABLE(QG_METRIC_ENUM)
#undef QG_METRIC_ENUM
        QG_METRIC_COUNT
} qg_metric;

typedef struct qg_metric_info {
    const char *name, *units, *long_name, *definition;
    int better;
} qg_metric_info;
const qg_metric_info *qg_metric_describe(qg_metric metric);

// Basic operations and qg_log10 only: equal sums give equal bits on every machine.
double qg_metric_value(const qg_sums *sums, qg_metric metric);

// Spearman's rank correlation of x and q (ties share the mean rank) over at most 65,536 elements:
// every ceil(count / 65536)-th, from the first. NaN where either is constant or fewer than 2 finite
// pairs remain. Needs the data, not the sums. QG_ERROR_MEMORY; QG_ERROR_ARGUMENT for count < 1.
qg_status qg_spearman(int64_t count, const float *x, const float *q, double *out);

QG_EXTERN_C_END

#endif
