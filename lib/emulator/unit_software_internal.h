// The software units as functions of one row of each operand. See qg_unit.h.
#ifndef UNIT_SOFTWARE_INTERNAL_H
#define UNIT_SOFTWARE_INTERNAL_H

#include <qg_unit.h>

// The unit's partial sum over k elements from +0. NaN is 7fffffff. Not for `exact` and `fp64`.
typedef float (*unit_chain)(const qg_unit *unit, int64_t k, const float *a, const float *b);
unit_chain qg_unit_chain_of(const qg_unit *unit);

// The sum of `exact` and `fp64`, `bias` (or NULL) included, such that rounding it to 24 bits or
// fewer is rounding the unit's sum once. Not for the other units.
double qg_unit_wide_sum(const qg_unit *unit, int64_t k, const float *a, const float *b,
                        const float *bias);

// binary32 RNE of a * b + c, one rounding.
float qg_unit_fma(float a, float b, float c);

#endif
