// The lemma behind the SIMD kernels: every FP8 code pair, 11-bit significands sampled. In
// full: test_fused_lemma_exhaustive.c.
#include <fused_lemma.h>
#include <run_suite.h>

START_TEST(biased_fma_floors) { fused_lemma_check(1, 37); }
END_TEST

int main(void) {
    const TTest *tests[] = {biased_fma_floors};
    return RUN_SUITE("fused_lemma", tests);
}
