// The objects of the library in cuBLASLt's place.
#ifndef FAKE_INTERNAL_H
#define FAKE_INTERNAL_H

#include <fake_cublaslt.h>
#include <stdbool.h>

enum { FAKE_OK = 0, FAKE_NOT_INITIALIZED = 1, FAKE_ALLOC_FAILED = 3, FAKE_INVALID = 7 };
enum { FAKE_EXECUTION_FAILED = 13, FAKE_NOT_SUPPORTED = 15 };

enum { TYPE_FP32 = 0, TYPE_FP16 = 2, TYPE_BF16 = 14, TYPE_E4M3 = 28, TYPE_E5M2 = 29 };
enum { TYPE_E2M1 = 33 };

enum { SCALAR, VEC16, VEC32, OUTER_VEC, VEC128, BLK128, SCALE_MODES };

typedef struct fake_desc {
    int32_t compute, scale_type, trans_a, trans_b, a_mode, b_mode, d_mode;
    int8_t fast_accum;
    int sets_fast_accum;
    const void *a_scale, *b_scale, *c_scale, *d_scale;
} fake_desc;

typedef struct fake_layout {
    int32_t type;
    uint64_t rows, columns;
    int64_t leading;
} fake_layout;

typedef struct fake_preference {
    uint64_t workspace;
    uint32_t reduction_mask, alignment[4];
} fake_preference;

typedef struct fake_problem {
    const fake_desc *desc;
    const fake_layout *a, *b, *c, *d;
} fake_problem;

// NULL, or why the library would not take the problem.
const char *fake_refusal(const fake_problem *problem);

// D = d_scale * (alpha * op(A) op(B) + beta * C), sums in double.
void fake_multiply(const fake_problem *problem, float alpha, const void *a, const void *b,
                   float beta, const void *c, void *d);

#endif
