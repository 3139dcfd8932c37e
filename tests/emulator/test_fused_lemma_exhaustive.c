// The lemma behind the SIMD kernels: every FP8 code pair and every pair of 11-bit
// significands.
// ctest-labels: exhaustive
// ctest-timeout: 1800
#include <fused_lemma.h>
#include <run_suite.h>

START_TEST(biased_fma_floors) { fused_lemma_check(1, 1); }
END_TEST

int main(void) {
    const TTest *tests[] = {biased_fma_floors};
    return RUN_SUITE("fused_lemma_exhaustive", tests);
}
