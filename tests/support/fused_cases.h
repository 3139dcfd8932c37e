// Cases of the fused sums: every SIMD kernel that this processor runs against the scalar reference,
// bit for bit. Raw bytes and tamer data, C absent, ordinary, raw or tiny, promotion with and
// without scales, 1 and 2 threads. They fail the Check test that calls them.
#ifndef FUSED_CASES_H
#define FUSED_CASES_H

#include <stddef.h>
#include <stdint.h>

// The name of the i-th kind of sum (unit and operands), NULL past the end.
const char *fused_kind_name(size_t i);

// Random shapes up to 67 x 65 x most_k.
void fused_random_check(size_t which, int cases, int64_t most_k);

// 201 x 130 x 577: several chunks of rows, columns and K.
void fused_large_check(size_t which);

// Outputs recorded on hardware, and corner cases; the scalar reference too.
void fused_directed_check(void);

#endif
