// Error sums and metrics: hand-computed cases, zero and NaN rules, merging, threads.
#include <qg_sums.h>

#include <check.h>
#include <math.h> // NAN, INFINITY, isnan
#include <qg_bits.h>
#include <qg_data.h>
#include <run_suite.h>
#include <stdlib.h>
#include <string.h>

static qg_sums measure(int64_t count, const float *x, const float *q) {
    qg_sums s;
    ck_assert_int_eq(qg_sums_measure(count, x, q, 1, &s), QG_OK);
    return s;
}
#define MEASURE(x, q) measure(sizeof(x) / sizeof *(x), x, q)

static void check_metric(const qg_sums *s, qg_metric metric, double want, double tolerance) {
    double got = qg_metric_value(s, metric);
    int same = got == want || (isnan(got) && isnan(want)) || fabs(got - want) <= tolerance;
    ck_assert_msg(same, "%s: %.17g, not %.17g", qg_metric_describe(metric)->name, got, want);
}
#define EXACTLY(s, METRIC, want) check_metric(s, QG_METRIC_##METRIC, want, 0)
#define NEARLY(s, METRIC, want)  check_metric(s, QG_METRIC_##METRIC, want, 1e-14 * fabs(want))

// -------------------------------------------------------------------------------- computed by hand

// e = 0, 1, 0.5, -1, 0.25: dyadic numbers, so that most sums are exact.
static const float hand_x[] = {1, 2, -3, 4, -0.5f};
static const float hand_q[] = {1, 3, -2.5f, 3, -0.25f};

START_TEST(sums_of_a_small_case) {
    qg_sums s = MEASURE(hand_x, hand_q);
    ck_assert_int_eq(s.n, 5);
    ck_assert_int_eq(s.n_finite, 5);
    ck_assert_int_eq(s.exact, 1);
    ck_assert(qg_sum_value(s.x) == 3.5 && qg_sum_value(s.abs_x) == 10.5);
    ck_assert(qg_sum_value(s.xx) == 30.25 && qg_sum_value(s.qq) == 25.3125);
    ck_assert(qg_sum_value(s.xq) == 26.625 && qg_sum_value(s.ee) == 2.3125);
    ck_assert(qg_sum_value(s.e) == 0.75 && qg_sum_value(s.abs_e) == 2.75);
    ck_assert(qg_sum_value(s.e_sign_x) == -0.75);          // +1 -0.5 -1 -0.25
    ck_assert(s.max_abs_e == 1 && s.max_abs_e_index == 1); // the first of two
    ck_assert(s.max_rel_e == 0.5 && s.max_rel_e_index == 1);
    ck_assert(s.max_abs_x == 4);
    ck_assert(s.max_ulp == 0x1p22);      // |e| = 1 at x = 2 (ulp 2^-22); 2^22 at -0.5 too
    ck_assert(s.hist_rel[-1 + 64] == 2); // 0.5, 0.5
    ck_assert(s.hist_rel[-2 + 64] == 1); // 0.25
    ck_assert(s.hist_rel[-3 + 64] == 1); // 1/6
    ck_assert(s.hist_ulp[0] == 1);       // exact
    ck_assert(s.hist_ulp[23] == 2);      // 2^22 <= |e| / ulp < 2^23
    ck_assert(s.hist_ulp[22] == 2);      // 2^21: 0.5 at 3, 1 at 4
}
END_TEST

START_TEST(metrics_of_a_small_case) {
    qg_sums s = MEASURE(hand_x, hand_q);
    NEARLY(&s, QSNR_DB, 10 * log10(30.25 / 2.3125));
    NEARLY(&s, REL_FROBENIUS, sqrt(2.3125 / 30.25));
    EXACTLY(&s, MSE, 2.3125 / 5);
    EXACTLY(&s, RMSE, sqrt(2.3125 / 5));
    EXACTLY(&s, NMSE, 2.3125 / 30.25);
    EXACTLY(&s, MAX_ABS, 1);
    EXACTLY(&s, MEAN_ABS, 2.75 / 5);
    EXACTLY(&s, MAX_REL, 0.5);
    EXACTLY(&s, REL_P50, 0.5); // ratios 0, 1/6, 1/4, 1/2, 1/2: the third, bin [1/4, 1/2)
    EXACTLY(&s, REL_P99, 0.5); // the fifth: bin [1/2, 1), but no ratio exceeds 1/2
    EXACTLY(&s, REL_P999, 0.5);
    EXACTLY(&s, BIAS, 0.15);
    EXACTLY(&s, BIAS_REL, -0.75 / 10.5);
    EXACTLY(&s, SHRINKAGE, (26.625 - 30.25) / 30.25);
    EXACTLY(&s, GAIN, 26.625 / 25.3125);
    EXACTLY(&s, COSINE, 26.625 / sqrt(30.25 * 25.3125));
    check_metric(&s, QG_METRIC_COSINE_DISTANCE, 1 - 26.625 / sqrt(30.25 * 25.3125), 1e-15);
    EXACTLY(&s, CALC_DIFF, 2.3125 / (30.25 + 25.3125));
    EXACTLY(&s, MAX_ULP, 0x1p22);
    EXACTLY(&s, UNDERFLOW_SHARE, 0);
    NEARLY(&s, EFFECTIVE_BITS, (10 * log10(30.25 / 2.3125) - 1.76) / 6.02);
}
END_TEST

START_TEST(decibels_of_round_ratios_are_round) {
    float x[100], q[100];
    for (int i = 0; i < 100; i++)
        x[i] = q[i] = 1;
    q[0] = 2; // sum x^2 = 100, sum e^2 = 1
    qg_sums s = MEASURE(x, q);
    EXACTLY(&s, QSNR_DB, 20);
    EXACTLY(&s, REL_FROBENIUS, 0.1);
}
END_TEST

START_TEST(scaled_data) {
    float x[1000], q[1000];
    for (int i = 0; i < 1000; i++) {
        x[i] = (float)(i - 400);
        q[i] = 0.75f * x[i];
    }
    qg_sums s = MEASURE(x, q);
    check_metric(&s, QG_METRIC_COSINE, 1, 1e-15);
    check_metric(&s, QG_METRIC_COSINE_DISTANCE, 0, 1e-16);
    EXACTLY(&s, SHRINKAGE, -0.25);
    NEARLY(&s, GAIN, 1 / 0.75);
    EXACTLY(&s, REL_FROBENIUS, 0.25);
    EXACTLY(&s, BIAS_REL, -0.25);
    EXACTLY(&s, MAX_REL, 0.25);
    EXACTLY(&s, REL_P50, 0.25); // bin [1/4, 1/2), cut at the largest
    for (int i = 0; i < 1000; i++)
        q[i] = -x[i];
    s = MEASURE(x, q);
    EXACTLY(&s, COSINE, -1);
    EXACTLY(&s, COSINE_DISTANCE, 2);
    ck_assert_int_eq(s.sign_flips, 999);
    ck_assert_int_eq(s.exact, 1);
}
END_TEST

START_TEST(small_distances_do_not_cancel) {
    // q = x (1 + d_i) with d_i = +-2^-20: 1 - cosine is about 2^-41, far below what
    // 1 - 0.99999... could show to more than a few digits.
    enum { N = 4096 };
    float x[N], q[N];
    for (int i = 0; i < N; i++) {
        x[i] = i % 4 < 2 ? 1.0f : 2.0f;
        q[i] = x[i] * (1 + (i % 2 ? 0x1p-20f : -0x1p-20f));
    }
    qg_sums s = MEASURE(x, q);
    // xx = N 5/2, xq = xx, qq = xx (1 + d^2): 1 - 1/sqrt(1 + d^2) = d^2/2 (1 - 3/4 d^2)
    check_metric(&s, QG_METRIC_COSINE_DISTANCE, 0x1p-41, 0x1p-41 * 1e-9);
    EXACTLY(&s, SHRINKAGE, 0);
    for (int i = 0; i < N; i++)
        q[i] = x[i] * (1 - 0x1p-20f);
    s = MEASURE(x, q);
    EXACTLY(&s, SHRINKAGE, -0x1p-20);
    check_metric(&s, QG_METRIC_COSINE_DISTANCE, 0, 0x1p-90);
    for (int i = 0; i < N; i++) { // sums that do not fit 53 bits, q = x (1 - 2^-12) exactly
        x[i] = ldexpf((float)((uint32_t)i * 2654435761u >> 21 | 1), i % 20);
        q[i] = x[i] * (1 - 0x1p-12f);
    }
    s = MEASURE(x, q);
    check_metric(&s, QG_METRIC_SHRINKAGE, -0x1p-12, 0x1p-12 * 1e-15);
}
END_TEST

// ----------------------------------------------------------------------------------- special rules

START_TEST(exact_results_have_infinite_qsnr) {
    static const float x[] = {1, -2, 0};
    qg_sums s = MEASURE(x, x);
    EXACTLY(&s, QSNR_DB, INFINITY);
    EXACTLY(&s, EFFECTIVE_BITS, INFINITY);
    EXACTLY(&s, REL_FROBENIUS, 0);
    EXACTLY(&s, NMSE, 0);
    EXACTLY(&s, MAX_REL, 0);
    EXACTLY(&s, REL_P50, 0);
    EXACTLY(&s, REL_P999, 0);
    EXACTLY(&s, COSINE, 1);
    EXACTLY(&s, COSINE_DISTANCE, 0);
    EXACTLY(&s, CALC_DIFF, 0);
    EXACTLY(&s, BIAS_REL, 0);
    EXACTLY(&s, SHRINKAGE, 0);
    EXACTLY(&s, GAIN, 1);
    ck_assert_int_eq(s.exact, 3);
    ck_assert_int_eq(s.max_abs_e_index, -1);
    ck_assert_int_eq(s.max_rel_e_index, -1);
    ck_assert_int_eq(s.zero_reference, 1);
    ck_assert_int_eq(s.hist_ulp[0], 3);
}
END_TEST

START_TEST(all_zero_reference) {
    static const float x[] = {0, -0.0f}, q[] = {0, 1}, zero[] = {-0.0f, 0};
    qg_sums s = MEASURE(x, q);
    EXACTLY(&s, QSNR_DB, -INFINITY);
    EXACTLY(&s, REL_FROBENIUS, INFINITY);
    EXACTLY(&s, NMSE, INFINITY);
    EXACTLY(&s, MAX_REL, 0);
    EXACTLY(&s, REL_P99, 0);
    EXACTLY(&s, SHRINKAGE, NAN);
    EXACTLY(&s, GAIN, 0);
    EXACTLY(&s, COSINE, 0);
    EXACTLY(&s, COSINE_DISTANCE, 1);
    EXACTLY(&s, CALC_DIFF, 1);
    EXACTLY(&s, UNDERFLOW_SHARE, 0);
    EXACTLY(&s, MAX_ULP, 0x1p149);
    ck_assert_int_eq(s.zero_reference_nonzero_error, 1);
    ck_assert_int_eq(s.zero_reference, 2);
    ck_assert_int_eq(s.max_abs_e_index, 1);
    s = MEASURE(x, zero); // both zero
    EXACTLY(&s, QSNR_DB, INFINITY);
    EXACTLY(&s, REL_FROBENIUS, 0);
    EXACTLY(&s, COSINE, 1);
    EXACTLY(&s, COSINE_DISTANCE, 0);
    EXACTLY(&s, CALC_DIFF, 0);
    EXACTLY(&s, GAIN, NAN);
    ck_assert_int_eq(s.exact, 2); // -0 is 0
}
END_TEST

START_TEST(all_zero_output) {
    static const float x[] = {1, -2, 0, 0x1p-140f}, q[] = {0, -0.0f, 0, 0};
    qg_sums s = MEASURE(x, q);
    EXACTLY(&s, QSNR_DB, 0);
    EXACTLY(&s, SHRINKAGE, -1);
    EXACTLY(&s, COSINE, 0);
    EXACTLY(&s, COSINE_DISTANCE, 1);
    EXACTLY(&s, UNDERFLOW_SHARE, 1);
    EXACTLY(&s, MAX_REL, 1);
    EXACTLY(&s, BIAS_REL, -1);
    ck_assert_int_eq(s.underflowed, 3);
    ck_assert_int_eq(s.zero_output, 4);
    ck_assert_int_eq(s.sign_flips, 0);
}
END_TEST

START_TEST(nonfinite_pairs_are_counted_and_excluded) {
    static const float x[] = {NAN, 1, INFINITY, 2, -INFINITY, 3, NAN};
    static const float q[] = {1, NAN, 1, 2.5f, INFINITY, -INFINITY, NAN};
    qg_sums s = MEASURE(x, q);
    ck_assert_int_eq(s.n, 7);
    ck_assert_int_eq(s.n_finite, 1);
    ck_assert_int_eq(s.nan_reference, 2);
    ck_assert_int_eq(s.nan_output, 2);
    ck_assert_int_eq(s.inf_reference, 2);
    ck_assert_int_eq(s.inf_output, 2);
    ck_assert_int_eq(s.zero_reference, 0);
    ck_assert_int_eq(s.zero_output, 0);
    ck_assert_int_eq(s.exact, 0);
    ck_assert_int_eq(s.hist_ulp[0], 0);
    ck_assert(qg_sum_value(s.ee) == 0.25 && s.max_abs_e_index == 3);
    EXACTLY(&s, MSE, 0.25);
    s = measure(1, x, q); // nothing finite: nothing to say
    for (int m = 0; m < QG_METRIC_COUNT; m++)
        check_metric(&s, (qg_metric)m, NAN, 0);
}
END_TEST

START_TEST(empty_input_is_an_error) {
    qg_sums s;
    double rho;
    ck_assert_int_eq(qg_sums_measure(0, NULL, NULL, 1, &s), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_spearman(0, NULL, NULL, &rho), QG_ERROR_ARGUMENT);
}
END_TEST

START_TEST(histogram_edges) {
    static const float x[] = {1, 1, 1, 0x1p-100f, 0x1p-149f, 0x1p-126f, 3e38f};
    static const float q[] = {1 + 0x1p-23f, 1 - 0x1p-24f, 2, 1, 0, 0x1p-126f + 0x1p-149f, -3e38f};
    qg_sums s = MEASURE(x, q);
    ck_assert_int_eq(s.hist_rel[0 + 64], 2);   // 1: 2 against 1, 0 against 2^-149
    ck_assert_int_eq(s.hist_rel[1 + 64], 1);   // 2: the opposite
    ck_assert_int_eq(s.hist_rel[-23 + 64], 2); // 1 ulp at 1 and at 2^-126
    ck_assert_int_eq(s.hist_rel[-24 + 64], 1);
    ck_assert_int_eq(s.hist_rel[79], 1); // 2^100, clamped
    ck_assert_int_eq(s.hist_ulp[1], 4);  // 1, 1/2, 1, 1
    ck_assert_int_eq(s.hist_ulp[24], 1); // 2^23
    ck_assert_int_eq(s.hist_ulp[25], 1); // twice 3e38 in its ulp: between 2^24 and 2^25
    ck_assert_int_eq(s.hist_ulp[39], 1);
    EXACTLY(&s, MAX_ULP, 0x1p123);     // 1 at 2^-100
    EXACTLY(&s, REL_P99, s.max_rel_e); // the open bin
}
END_TEST

START_TEST(percentiles_are_ranks) {
    enum { N = 1000 };
    float x[N], q[N];
    for (int i = 0; i < N; i++) { // relative errors: 500 of 2^-10, 490 of 2^-5, 9 of 1/2, 1 of 1
        x[i] = 1;
        q[i] = 1 + (i < 500 ? 0x1p-10f : i < 990 ? 0x1p-5f : i < 999 ? 0.5f : 1);
    }
    qg_sums s = MEASURE(x, q);
    EXACTLY(&s, REL_P50, 0x1p-9);
    EXACTLY(&s, REL_P99, 0x1p-4);
    EXACTLY(&s, REL_P999, 1);
    q[0] = 1 + 0x1p-5f; // one more above: rank 500 is now in the next bin
    s = MEASURE(x, q);
    EXACTLY(&s, REL_P50, 0x1p-4);
    q[0] = 1, x[1] = q[1] = 0; // exact counts as 0; x == 0 not at all: ranks of 999
    s = MEASURE(x, q);
    EXACTLY(&s, REL_P50, 0x1p-4); // ceil(499.5) = 500; 499 are below
}
END_TEST

START_TEST(compensation_survives_cancellation) {
    float x[30], q[30];
    for (int i = 0; i < 30; i++) { // each lane: 1e30, 1, -1e30
        x[i] = 0;
        q[i] = i < 8 ? 1e30f : i < 16 ? 1 : i < 24 ? -1e30f : 0;
    }
    qg_sums s = MEASURE(x, q);
    ck_assert(qg_sum_value(s.e) == 8);
    // and across chunks
    static const float zero[1], big[] = {1e30f}, one[] = {1}, minus[] = {-1e30f};
    qg_sums_clear(&s);
    qg_sums_add(&s, 1, 0, zero, big);
    qg_sums_add(&s, 1, 1, zero, one);
    qg_sums_add(&s, 1, 2, zero, minus);
    ck_assert(qg_sum_value(s.e) == 1);
}
END_TEST

// ----------------------------------------------------------------------------- merging and threads

enum { MANY = 5 * QG_SUMS_CHUNK + 12345 };
static float *many_x, *many_q;

// Normal data and a coarse quantizer with zeros, ties and a few non-finite values.
static void make_many(void) {
    many_x = malloc(sizeof *many_x * MANY);
    many_q = malloc(sizeof *many_q * MANY);
    qg_law *law;
    ck_assert_int_eq(qg_law_parse("normal", &law), QG_OK);
    qg_law_generate(law, 4, 0, MANY, 0, 1, many_x);
    qg_law_free(law);
    for (int i = 0; i < MANY; i++)
        many_q[i] = (float)(int)(many_x[i] * 8) / 8;
    many_x[70000] = NAN;
    many_q[200000] = INFINITY;
    many_x[300000] = 0;
}

static void free_many(void) {
    free(many_x);
    free(many_q);
}

START_TEST(threads_do_not_matter) {
    make_many();
    qg_sums one, other;
    ck_assert_int_eq(qg_sums_measure(MANY, many_x, many_q, 1, &one), QG_OK);
    for (int threads = 0; threads <= 9; threads++) {
        ck_assert_int_eq(qg_sums_measure(MANY, many_x, many_q, threads, &other), QG_OK);
        ck_assert_msg(memcmp(&one, &other, sizeof one) == 0, "%d threads", threads);
    }
    // the same chunks added by hand
    qg_sums_clear(&other);
    for (int64_t first = 0; first < MANY; first += QG_SUMS_CHUNK)
        qg_sums_add(&other, MANY - first < QG_SUMS_CHUNK ? MANY - first : QG_SUMS_CHUNK, first,
                    many_x + first, many_q + first);
    ck_assert(memcmp(&one, &other, sizeof one) == 0);
    free_many();
}
END_TEST

static void check_sum(qg_sum a, qg_sum b, double scale) {
    ck_assert_msg(fabs(qg_sum_value(a) - qg_sum_value(b)) <= 0x1p-52 * scale, "%.17g, %.17g",
                  qg_sum_value(a), qg_sum_value(b));
}

START_TEST(parts_merge_to_the_whole) {
    make_many();
    qg_sums whole, parts;
    ck_assert_int_eq(qg_sums_measure(MANY, many_x, many_q, 1, &whole), QG_OK);
    qg_sums_clear(&parts);
    for (int64_t first = 0, n = 1; first < MANY; first += n, n = n * 3 + 1) { // uneven cuts
        if (n > MANY - first)
            n = MANY - first;
        qg_sums part;
        qg_sums_clear(&part);
        qg_sums_add(&part, n, first, many_x + first, many_q + first);
        qg_sums_merge(&parts, &part);
    }
    check_sum(whole.x, parts.x, qg_sum_value(whole.abs_x));
    check_sum(whole.xx, parts.xx, qg_sum_value(whole.xx));
    check_sum(whole.qq, parts.qq, qg_sum_value(whole.qq));
    check_sum(whole.xq, parts.xq, qg_sum_value(whole.xx));
    check_sum(whole.e, parts.e, qg_sum_value(whole.abs_e));
    check_sum(whole.abs_e, parts.abs_e, qg_sum_value(whole.abs_e));
    check_sum(whole.e_sign_x, parts.e_sign_x, qg_sum_value(whole.abs_e));
    check_sum(whole.ee, parts.ee, qg_sum_value(whole.ee));
    check_sum(whole.abs_x, parts.abs_x, qg_sum_value(whole.abs_x));
    // everything else is equal to the bit
    memcpy(&parts.x, &whole.x, (size_t)((char *)&whole.max_abs_e - (char *)&whole.x));
    ck_assert(memcmp(&whole, &parts, sizeof whole) == 0);
    free_many();
}
END_TEST

START_TEST(sums_agree_with_long_double) {
    make_many();
    long double xx = 0, ee = 0, xq = 0, e_sign_x = 0, e_sum = 0;
    int64_t zero_q = 0, exact = 0, underflowed = 0, worst = -1;
    double max_rel = 0;
    for (int i = 0; i < MANY; i++) {
        if (!isfinite(many_x[i]) || !isfinite(many_q[i]))
            continue;
        double x = many_x[i], q = many_q[i], e = q - x;
        xx += (long double)x * x, ee += (long double)e * e, xq += (long double)x * q, e_sum += e;
        e_sign_x += x > 0 ? e : x < 0 ? -e : 0;
        zero_q += q == 0, exact += e == 0, underflowed += x != 0 && q == 0;
        if (x != 0 && fabs(e / x) > max_rel)
            max_rel = fabs(e / x), worst = i;
    }
    qg_sums s = measure(MANY, many_x, many_q);
    ck_assert_double_eq_tol(qg_sum_value(s.xx), (double)xx, 1e-14 * (double)xx);
    ck_assert_double_eq_tol(qg_sum_value(s.ee), (double)ee, 1e-14 * (double)ee);
    ck_assert_double_eq_tol(qg_sum_value(s.xq), (double)xq, 1e-14 * (double)xx);
    ck_assert_double_eq_tol(qg_sum_value(s.e), (double)e_sum, 1e-10);
    ck_assert_double_eq_tol(qg_sum_value(s.e_sign_x), (double)e_sign_x, 1e-10);
    ck_assert_int_eq(s.zero_output, zero_q);
    ck_assert_int_eq(s.exact, exact);
    ck_assert_int_eq(s.underflowed, underflowed);
    ck_assert_int_eq(s.zero_reference, 1);
    ck_assert(s.max_rel_e == max_rel && s.max_rel_e_index == worst);
    int64_t binned = 0, ulps = 0;
    for (int i = 0; i < QG_HIST_LOG2_BINS; i++)
        binned += s.hist_rel[i];
    for (int i = 0; i < QG_HIST_ULP_BINS; i++)
        ulps += s.hist_ulp[i];
    ck_assert_int_eq(binned, s.n_finite - s.exact - s.zero_reference_nonzero_error);
    ck_assert_int_eq(ulps, s.n_finite);
    free_many();
}
END_TEST

START_TEST(a_wrong_factor_shows) {
    make_many();
    // A uniform rounding error of step 1/8 has e^2 = step^2 / 12, |e| = step / 4 on average.
    for (int i = 0; i < MANY; i++)
        many_q[i] = nearbyintf(many_x[i] * 8) / 8;
    qg_sums s = measure(MANY, many_x, many_q);
    double step = 0.125;
    ck_assert_double_eq_tol(qg_metric_value(&s, QG_METRIC_MSE) / (step * step / 12), 1, 0.01);
    ck_assert_double_eq_tol(qg_metric_value(&s, QG_METRIC_MEAN_ABS) / (step / 4), 1, 0.01);
    ck_assert_double_eq_tol(qg_metric_value(&s, QG_METRIC_QSNR_DB), 10 * log10(12 * 64), 0.05);
    ck_assert_double_eq_tol(qg_metric_value(&s, QG_METRIC_REL_FROBENIUS), step / sqrt(12), 1e-3);
    free_many();
}
END_TEST

START_TEST(bits_are_the_committed_ones) {
    make_many();
    // The bits of two compensated sums: the same on every machine, compiler and instruction set.
    qg_sums s = measure(MANY, many_x, many_q);
    ck_assert_msg(s.ee.high == 0x1.aefd16d187e46p+10 && s.ee.low == 0x1.7175b2cbabefap-35, "%a %a",
                  s.ee.high, s.ee.low);
    double db = qg_metric_value(&s, QG_METRIC_QSNR_DB);
    ck_assert_msg(db == 0x1.6f64dd3ec8ed4p+4, "%a", db);
    free_many();
}
END_TEST

// ------------------------------------------------------------------------------ table and Spearman

START_TEST(every_metric_is_described) {
    for (int m = 0; m < QG_METRIC_COUNT; m++) {
        const qg_metric_info *info = qg_metric_describe((qg_metric)m);
        ck_assert(info->name[0] && info->units[0] && info->long_name[0] && info->definition[0]);
        ck_assert(info->better >= -1 && info->better <= 1);
        for (int other = 0; other < m; other++)
            ck_assert_str_ne(info->name, qg_metric_describe((qg_metric)other)->name);
    }
    ck_assert_str_eq(qg_metric_describe(QG_METRIC_QSNR_DB)->name, "qsnr_db");
    ck_assert_str_eq(qg_metric_describe(QG_METRIC_EFFECTIVE_BITS)->name, "effective_bits");
}
END_TEST

static double spearman(int64_t count, const float *x, const float *q) {
    double rho;
    ck_assert_int_eq(qg_spearman(count, x, q, &rho), QG_OK);
    return rho;
}

START_TEST(rank_correlation) {
    static const float x[] = {1, 2, 3, 4, 5}, cubes[] = {-1, 8, 27, 64, 125};
    static const float reversed[] = {5, 4, -3, -40, -INFINITY}, constant[] = {2, 2, 2, 2, 2};
    static const float shuffled[] = {2, 1, 4, 3, 5}, ties[] = {1, 1, 2, 2, 3};
    static const float zeros[] = {-0.0f, 0, 1}, other_zeros[] = {0, -0.0f, 1};
    ck_assert(spearman(5, x, cubes) == 1);
    ck_assert(spearman(5, x, reversed) == -1); // four finite pairs
    ck_assert(isnan(spearman(5, x, constant)) && isnan(spearman(1, x, x)));
    ck_assert_double_eq_tol(spearman(5, x, shuffled), 0.8, 1e-15); // 1 - 6 * 4 / (5 * 24)
    // ranks 1.5 1.5 3.5 3.5 5: covariance 9, variances 10 and 9
    ck_assert_double_eq_tol(spearman(5, x, ties), 9 / sqrt(90), 1e-15);
    ck_assert(spearman(3, zeros, other_zeros) == 1);
    static const float nan_pair[] = {1, NAN, 2}, three[] = {1, 0, 2};
    ck_assert(spearman(3, nan_pair, three) == 1);
}
END_TEST

// Ranks by counting, of data with ties, both signs and both zeros: few elements and many are sorted
// in different ways.
static double slow_spearman(int n, const float *x, const float *q) {
    double xx = 0, qq = 0, xq = 0;
    for (int i = 0; i < n; i++) {
        double rank_x = 0, rank_q = 0; // doubled, less their mean
        for (int j = 0; j < n; j++) {
            rank_x += (x[j] < x[i]) - (x[j] > x[i]);
            rank_q += (q[j] < q[i]) - (q[j] > q[i]);
        }
        xx += rank_x * rank_x, qq += rank_q * rank_q, xq += rank_x * rank_q;
    }
    return xq / sqrt(xx * qq);
}

START_TEST(rank_correlation_agrees_with_counting) {
    enum { N = 1500 };
    static float x[N], q[N];
    for (uint32_t i = 0; i < N; i++) {
        uint32_t word = i * 2654435761u;
        x[i] = (float)(int)(word >> 20) * (word & 4096 ? -0.37f : 1e-3f);
        q[i] = (float)(int)(x[i] / 64) * 64; // zeros of both signs
    }
    for (int n = 2; n <= N; n = n < 510 ? n * 3 : n < 515 ? n + 1 : n + 97)
        ck_assert_double_eq_tol(spearman(n, x, q), slow_spearman(n, x, q), 1e-14);
}
END_TEST

START_TEST(rank_correlation_samples_evenly) {
    enum { N = 65536 * 2 + 1 }; // every third
    float *x = malloc(sizeof *x * N), *q = malloc(sizeof *q * N);
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        q[i] = i % 3 == 0 ? (float)i : -1e9f * (float)(i % 7);
    }
    ck_assert(spearman(N, x, q) == 1);
    ck_assert(spearman(N - 1, x, q) < 0.9); // every second
    free(x), free(q);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        sums_of_a_small_case,
        metrics_of_a_small_case,
        decibels_of_round_ratios_are_round,
        scaled_data,
        small_distances_do_not_cancel,
        exact_results_have_infinite_qsnr,
        all_zero_reference,
        all_zero_output,
        nonfinite_pairs_are_counted_and_excluded,
        empty_input_is_an_error,
        histogram_edges,
        percentiles_are_ranks,
        compensation_survives_cancellation,
        every_metric_is_described,
        rank_correlation,
        rank_correlation_agrees_with_counting,
        rank_correlation_samples_evenly,
        threads_do_not_matter,
        parts_merge_to_the_whole,
        sums_agree_with_long_double,
        a_wrong_factor_shows,
        bits_are_the_committed_ones,
    };
    return RUN_SUITE("sums", tests);
}
