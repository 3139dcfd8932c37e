// The SIMD kernels of the fused sums against the scalar reference: many random cases.
// ctest-labels: exhaustive
// ctest-timeout: 3600
#include <fused_cases.h>
#include <run_suite.h>

START_TEST(directed_cases) { fused_directed_check(); }
END_TEST

START_TEST(random_cases_of_every_kind) {
    for (size_t i = 0; fused_kind_name(i); i++)
        fused_random_check(i, 150, 300);
}
END_TEST

START_TEST(large_cases_of_every_kind) {
    for (size_t i = 0; fused_kind_name(i); i++)
        fused_large_check(i);
}
END_TEST

int main(void) {
    const TTest *tests[] = {directed_cases, random_cases_of_every_kind, large_cases_of_every_kind};
    return RUN_SUITE("fused_panel_exhaustive", tests);
}
