// The software units as functions of one row of each operand, and of whole matrices. See qg_unit.h.
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

// ----------------------------------------------------------------------- vectorized across outputs

// a: (m, k), b: (n, k), their rows `stride` apart.
typedef struct software_product {
    const qg_unit *unit;
    int64_t m, n, k, stride;
    const float *a, *b;
    int threads; // 0: all
} software_product;

// Whether the instruction set that qg_unit_use_isa chose has vectors for the software units.
bool qg_software_has_vectors(void);

// acc (m, n) = the chains of qg_unit_chain_of, bit for bit. QG_ERROR_MEMORY.
qg_status qg_software_chains(const software_product *p, float *acc);

// out (m, n) of out_type = the sums of qg_unit_wide_sum rounded once, bit for bit; bias: (n) or
// NULL. stride = k. QG_ERROR_MEMORY.
qg_status qg_software_wide_sums(const software_product *p, const float *bias, qg_format out_type,
                                void *out);

#endif
