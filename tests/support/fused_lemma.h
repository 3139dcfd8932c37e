// The lemma that the SIMD kernels of the fused sums rest on, checked by running it.
#ifndef FUSED_LEMMA_H
#define FUSED_LEMMA_H

// Fails the Check test that calls it at the first counterexample. FP8 code pairs: every fp8_step-th
// code of A with every code of B, at every shift; significands of 11 bits: every step-th of A.
void fused_lemma_check(int fp8_step, int step);

#endif
