// Error sums of products: binary64 references, ulps of the output type, backward error; and that
// binary32 references give the same sums on either way.
#include <qg_sums.h>

#include <math.h>
#include <qg_data.h>
#include <run_suite.h>
#include <stdlib.h>
#include <string.h>

static qg_sums measure(int64_t count, const double *x, const float *q, qg_format type) {
    qg_sums s;
    ck_assert_int_eq(qg_sums_measure_product(count, x, q, type, 1, &s), QG_OK);
    return s;
}
#define MEASURE(x, q, type) measure(sizeof(x) / sizeof *(x), x, q, type)

// Units in the last place at the binade of x, from the definition.
static double slow_ulp(double x, int digits, int least_exponent) {
    int exponent;
    frexp(x, &exponent); // x = f 2^exponent, f in [1/2, 1)
    if (x == 0 || exponent - 1 < least_exponent)
        exponent = least_exponent + 1;
    return ldexp(1, exponent - digits);
}

START_TEST(ulps_are_of_the_output_type) {
    static const double x[] = {1.5, 4, -0.75, 0x1p-20, 0x1p-140};
    static const float q[] = {1.5f + 0x1p-8f, 4 - 0x1p-7f, -0.75f, 0x1p-19f, 0};
    qg_sums s = MEASURE(x, q, QG_FORMAT_BF16); // ulps 2^-7, 2^-5, 2^-8, 2^-27, 2^-133
    ck_assert(s.max_ulp == 128);
    ck_assert(s.hist_ulp[0] == 1 && s.hist_ulp[1] == 3 && s.hist_ulp[8] == 1);
    s = MEASURE(x, q, QG_FORMAT_FP16); // 2^-10, 2^-8, 2^-11, then 2^-24 of the smallest normal
    ck_assert(s.max_ulp == 16);
    ck_assert(s.hist_ulp[0] == 1 && s.hist_ulp[1] == 1 && s.hist_ulp[2] == 1 &&
              s.hist_ulp[3] == 1 && s.hist_ulp[5] == 1);
    s = MEASURE(x, q, QG_FORMAT_FP32);
    ck_assert(s.max_ulp == 0x1p23);
    ck_assert_int_eq(s.underflowed, 1);
    ck_assert_int_eq(s.exact, 1);
}
END_TEST

START_TEST(references_between_outputs) {
    // x = 1 + 2^-30 is no binary32 number: e = -2^-30, and neither is 2^-200 or 2^300.
    static const double x[] = {1 + 0x1p-30, 0x1p-200, -0x1p-210, 0x1p300};
    static const float q[] = {1, 0, 0x1p-149f, INFINITY};
    qg_sums s = MEASURE(x, q, QG_FORMAT_FP32);
    ck_assert_int_eq(s.n_finite, 3);
    ck_assert_int_eq(s.inf_output, 1);
    ck_assert_int_eq(s.inf_reference, 0);
    ck_assert_int_eq(s.exact, 0);
    ck_assert_int_eq(s.underflowed, 1);
    ck_assert_int_eq(s.sign_flips, 1);
    ck_assert_int_eq(s.zero_reference, 0);
    ck_assert(s.max_ulp == 1 && s.max_abs_e == 0x1p-30 && s.max_abs_e_index == 0);
    ck_assert(s.max_rel_e == 0x1p61 && s.max_rel_e_index == 2);
    ck_assert_int_eq(s.hist_rel[64 - 31], 1); // 2^-30 / (1 + 2^-30)
    ck_assert_int_eq(s.hist_rel[64], 1);      // all of 2^-200
}
END_TEST

enum { MANY = 3 * QG_SUMS_CHUNK + 4321 };

START_TEST(binary32_references_give_the_same_sums) {
    float *x = malloc(MANY * sizeof *x), *q = malloc(MANY * sizeof *q);
    double *wide = malloc(MANY * sizeof *wide);
    qg_law *law;
    ck_assert_int_eq(qg_law_parse("student_t:1", &law), QG_OK);
    qg_law_generate(law, 3, 0, MANY, 0, 1, x);
    qg_law_free(law);
    for (int i = 0; i < MANY; i++) {
        x[i] *= i % 11 == 0 ? 1e-40f : 1;
        q[i] = (float)(int64_t)(x[i] * 16) / 16;
    }
    x[5] = NAN, q[70000] = -INFINITY, x[100000] = INFINITY, x[9] = -0.0f;
    for (int i = 0; i < MANY; i++)
        wide[i] = x[i];
    qg_sums narrow_sums, sums;
    ck_assert_int_eq(qg_sums_measure(MANY, x, q, 1, &narrow_sums), QG_OK);
    for (int threads = 0; threads < 5; threads++) {
        ck_assert_int_eq(qg_sums_measure_product(MANY, wide, q, QG_FORMAT_FP32, threads, &sums),
                         QG_OK);
        ck_assert_mem_eq(&narrow_sums, &sums, sizeof sums);
    }
    free(x);
    free(q);
    free(wide);
}
END_TEST

// Products of some magnitude, outputs a few ulps of the type away.
static void compare_with_slow_model(qg_format type, int digits, int least_exponent) {
    double *x = malloc(MANY * sizeof *x);
    float *q = malloc(MANY * sizeof *q);
    long double xx = 0, ee = 0, e_sign_x = 0, abs_e = 0;
    double max_ulp = 0;
    int64_t hist[QG_HIST_ULP_BINS] = {0}, flips = 0;
    for (int i = 0; i < MANY; i++) {
        uint64_t word = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15ull;
        double f = 1 + (double)(word >> 12) * 0x1p-52;
        x[i] = ldexp(word & 1 ? f : -f, (int)(word >> 1 & 63) - 32);
        double ulps = (double)(int)(word >> 7 & 31) / 8;
        q[i] = (float)(x[i] + (word & 64 ? ulps : -ulps) * slow_ulp(x[i], digits, least_exponent));
        long double e = (double)q[i] - x[i];
        double in_ulps = fabs((double)e) / slow_ulp(x[i], digits, least_exponent);
        xx += (long double)x[i] * x[i], ee += e * e, abs_e += fabsl(e);
        e_sign_x += x[i] > 0 ? e : -e;
        max_ulp = in_ulps > max_ulp ? in_ulps : max_ulp;
        hist[e == 0 ? 0 : in_ulps < 2 ? 1 : ilogb(in_ulps) + 1]++;
        flips += q[i] != 0 && (q[i] < 0) != (x[i] < 0);
    }
    qg_sums s = measure(MANY, x, q, type);
    ck_assert_double_eq_tol(qg_sum_value(s.xx), (double)xx, 1e-14 * (double)xx);
    ck_assert_double_eq_tol(qg_sum_value(s.ee), (double)ee, 1e-14 * (double)ee);
    ck_assert_double_eq_tol(qg_sum_value(s.abs_e), (double)abs_e, 1e-14 * (double)abs_e);
    ck_assert_double_eq_tol(qg_sum_value(s.e_sign_x), (double)e_sign_x, 1e-13 * (double)abs_e);
    ck_assert(s.max_ulp == max_ulp);
    ck_assert_mem_eq(s.hist_ulp, hist, sizeof hist);
    ck_assert_int_eq(s.sign_flips, flips);
    free(x);
    free(q);
}

START_TEST(sums_agree_with_a_slow_model) {
    compare_with_slow_model(QG_FORMAT_FP32, 24, -126);
    compare_with_slow_model(QG_FORMAT_BF16, 8, -126);
    compare_with_slow_model(QG_FORMAT_FP16, 11, -14);
}
END_TEST

START_TEST(other_types_and_no_elements_are_errors) {
    static const double x[] = {1};
    static const float q[] = {1};
    qg_sums s;
    ck_assert_int_eq(qg_sums_measure_product(1, x, q, QG_FORMAT_E4M3, 1, &s), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_sums_measure_product(0, x, q, QG_FORMAT_FP32, 1, &s), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(s.n, 0);
}
END_TEST

START_TEST(backward_errors) {
    static const double x[] = {1, 2, NAN, 0, 5}, size[] = {4, 8, 1, 0, 10};
    static const float q[] = {1.5f, 4, 3, 0, INFINITY}, off[] = {1, 2, 3, 0x1p-149f, 5};
    ck_assert(qg_backward_error(5, x, q, size) == 0.25); // 1/8, 1/4, out, 0/0, out
    ck_assert(qg_backward_error(1, x, q, size) == 0.125);
    ck_assert(qg_backward_error(5, x, off, size) == INFINITY); // an error where nothing is added
    ck_assert(qg_backward_error(2, x, off, size) == 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {ulps_are_of_the_output_type,
                                  references_between_outputs,
                                  binary32_references_give_the_same_sums,
                                  sums_agree_with_a_slow_model,
                                  other_types_and_no_elements_are_errors,
                                  backward_errors};
    return RUN_SUITE("product_sums", tests);
}
