// The qualifier that lets one header serve two compilers: C11 on the host, CUDA C++17 on both
// sides.
// Headers of formats/, layouts/ and recipes/ hold only QG_HD functions; they must not use libm,
// restrict, overflow builtins, or file-scope tables (invisible to device code).
#ifndef QG_HD_H
#define QG_HD_H

#ifdef __CUDACC__
#define QG_HD static __host__ __device__ inline
#else
#define QG_HD static inline
#endif

#ifdef __cplusplus
#define QG_STATIC_ASSERT(condition, name) static_assert(condition, #name)
#define QG_EXTERN_C_BEGIN extern "C" {
#define QG_EXTERN_C_END }
#define QG_ZEROED {} // a struct of zeros, without a warning in either language
#else
#define QG_STATIC_ASSERT(condition, name) _Static_assert(condition, #name)
#define QG_EXTERN_C_BEGIN
#define QG_EXTERN_C_END
#define QG_ZEROED {0}
#endif

#endif
