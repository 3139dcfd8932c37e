// Random dot products for tests of matrix units, some from raw bits and some aimed at what raw bits
// hardly reach: cancellation, few nonzero elements, a C near the sum, the floor, specials.
#ifndef UNIT_CASES_H
#define UNIT_CASES_H

#include <slow_unit.h>

enum { UNIT_CASE_K = 64, UNIT_CASE_KINDS = 6 };

typedef struct unit_case {
    const slow_type *a_type, *b_type;
    int k, scale_block;
    uint64_t a[UNIT_CASE_K], b[UNIT_CASE_K], sa[4], sb[4], c;
} unit_case;

// The next case of a row; *state: of the random sequence.
void unit_case_draw(const slow_unit *unit, uint64_t *state, unit_case *out);

#endif
