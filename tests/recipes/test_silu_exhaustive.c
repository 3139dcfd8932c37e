// The exponential of qg_silu.h on all 2^32 inputs: its worst errors are those that it states.
// ctest-labels: exhaustive nosan
// ctest-timeout: 3600
#include <exponential_error.h>
#include <require.h>
#include <run_suite.h>

#include <stdio.h>

static exponential_errors of_all_inputs(void) {
    exponential_errors all = {0};
#pragma omp parallel
    {
        exponential_errors part = {0};
#pragma omp for schedule(dynamic, 1 << 16)
        for (int64_t i = 0; i < 1ll << 32; i++)
            exponential_add(&part, qg_float_of_bits((uint32_t)i));
#pragma omp critical
        exponential_merge(&all, &part);
    }
    return all;
}

// To four digits, and not looser.
static void check_stated(const char *what, double worst, double stated, float at) {
    printf("%s results: worst error %.6f ulp, of exp(%a)\n", what, worst, (double)at);
    REQUIRE(worst <= stated && worst > stated - 1e-4, "%s: %.6f ulp, stated %.4f", what, worst,
            stated);
}

START_TEST(worst_errors_are_as_stated) {
    exponential_errors e = of_all_inputs();
    printf("%lld finite results other than 0 and 1, %lld not the nearest number\n",
           (long long)e.compared, (long long)e.misrounded);
    check_stated("normal", e.normal, EXPONENTIAL_NORMAL_ULPS, e.normal_at);
    check_stated("subnormal", e.subnormal, EXPONENTIAL_SUBNORMAL_ULPS, e.subnormal_at);
    ck_assert_int_eq(e.wrong, 0);
    // 0.81 % in two digits.
    double share = (double)e.misrounded / (double)e.compared;
    REQUIRE(share > 0.00805 && share < 0.00815, "%.4f %% are not the nearest number", 100 * share);
}
END_TEST

int main(void) {
    const TTest *tests[] = {worst_errors_are_as_stated};
    return RUN_SUITE("silu_exhaustive", tests);
}
