// A vector of binary64 numbers of the instruction set that a file is compiled for; one number where
// there is none. Each operation rounds as its scalar does, so texts over it give the same bits.
#ifndef VECTOR_DOUBLE_INTERNAL_H
#define VECTOR_DOUBLE_INTERNAL_H

// vd_fma(x, y, z) is for exact products x y alone: without the instruction it is x * y + z.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include <immintrin.h>
enum { VD_WIDTH = 8 };
typedef __m512d vd;
static inline vd vd_load(const double *x) { return _mm512_loadu_pd(x); }
static inline void vd_store(double *x, vd y) { _mm512_storeu_pd(x, y); }
static inline vd vd_all(double x) { return _mm512_set1_pd(x); }
static inline vd vd_add(vd x, vd y) { return _mm512_add_pd(x, y); }
static inline vd vd_subtract(vd x, vd y) { return _mm512_sub_pd(x, y); }
static inline vd vd_fma(vd x, vd y, vd z) { return _mm512_fmadd_pd(x, y, z); }
static inline vd vd_fms(vd x, vd y, vd z) { return _mm512_fmsub_pd(x, y, z); }
static inline vd vd_fnma(vd x, vd y, vd z) { return _mm512_fnmadd_pd(x, y, z); }
static inline vd vd_abs(vd x) { return _mm512_andnot_pd(_mm512_set1_pd(-0.0), x); }
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
enum { VD_WIDTH = 4 };
typedef __m256d vd;
static inline vd vd_load(const double *x) { return _mm256_loadu_pd(x); }
static inline void vd_store(double *x, vd y) { _mm256_storeu_pd(x, y); }
static inline vd vd_all(double x) { return _mm256_set1_pd(x); }
static inline vd vd_add(vd x, vd y) { return _mm256_add_pd(x, y); }
static inline vd vd_subtract(vd x, vd y) { return _mm256_sub_pd(x, y); }
static inline vd vd_fma(vd x, vd y, vd z) { return _mm256_fmadd_pd(x, y, z); }
static inline vd vd_fms(vd x, vd y, vd z) { return _mm256_fmsub_pd(x, y, z); }
static inline vd vd_fnma(vd x, vd y, vd z) { return _mm256_fnmadd_pd(x, y, z); }
static inline vd vd_abs(vd x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
#else
enum { VD_WIDTH = 1 };
typedef double vd;
static inline vd vd_load(const double *x) { return *x; }
static inline void vd_store(double *x, vd y) { *x = y; }
static inline vd vd_all(double x) { return x; }
static inline vd vd_add(vd x, vd y) { return x + y; }
static inline vd vd_subtract(vd x, vd y) { return x - y; }
static inline vd vd_fma(vd x, vd y, vd z) { return x * y + z; }
static inline vd vd_fms(vd x, vd y, vd z) { return x * y - z; }
static inline vd vd_fnma(vd x, vd y, vd z) { return z - x * y; }
static inline vd vd_abs(vd x) { return x < 0 ? -x : x; }
#endif

#endif
