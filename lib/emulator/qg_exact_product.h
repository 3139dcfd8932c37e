// Reference products: `out[m,n] = a[m,k] b[n,k]^T` of binary32 matrices, in double-double.
//
// Elements are multiplied exactly and added with compensation, so the result is what error measures
// of products compare with. Not a unit: unit `exact` rounds the exact sum once, this one is exact
// to double-double. Vectorized; the same bits for every instruction set and thread count.
#ifndef QG_EXACT_PRODUCT_H
#define QG_EXACT_PRODUCT_H

#include <qg_status.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// out: (m, n) binary64, |out - exact| <= 2^-53 |exact| + k 2^-104 (|a| |b|^T) unless a product
// leaves the range of binary64 (it cannot: binary32 elements). magnitude: (m, n) |a| |b|^T in
// binary64, relative error at most (k + 1) 2^-53; NULL: not wanted. bias: (n) added to each row of
// out and its magnitude to that of magnitude, or NULL. NaN and Inf as IEEE 754 sums give them.
// threads: 0: all. QG_ERROR_ARGUMENT for a size below 1, QG_ERROR_OVERFLOW, QG_ERROR_MEMORY.
qg_status qg_exact_product(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                           const float *bias, int threads, double *out, double *magnitude);

QG_EXTERN_C_END

#endif
