// The SIMD kernels of the fused sums against the scalar reference: directed and some random cases.
// More of them: test_fused_panel_exhaustive.c
#include <fused_cases.h>
#include <run_suite.h>

START_TEST(directed_cases) { fused_directed_check(); }
END_TEST

START_TEST(random_cases_of_every_kind) {
    for (size_t i = 0; fused_kind_name(i); i++)
        fused_random_check(i, 20, 150);
}
END_TEST

int main(void) {
    const TTest *tests[] = {directed_cases, random_cases_of_every_kind};
    return RUN_SUITE("fused_panel", tests);
}
