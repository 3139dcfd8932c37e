// A vector of binary32 numbers of the instruction set that a file is compiled for, AVX2 or AVX-512,
// with the additions of the software units in other modes than to nearest.
// Exact: IEEE 754 rounding, signs of zeros and overflow, whatever the instruction set.
#ifndef VECTOR_FLOAT_INTERNAL_H
#define VECTOR_FLOAT_INTERNAL_H

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)

enum { VF_WIDTH = 16 };
typedef __m512 vf;
static inline vf vf_load(const float *x) { return _mm512_loadu_ps(x); }
static inline void vf_store(float *x, vf y) { _mm512_storeu_ps(x, y); }
static inline vf vf_all(float x) { return _mm512_set1_ps(x); }
static inline vf vf_add(vf x, vf y) { return _mm512_add_ps(x, y); }
static inline vf vf_multiply(vf x, vf y) { return _mm512_mul_ps(x, y); }
static inline vf vf_fma(vf x, vf y, vf z) { return _mm512_fmadd_ps(x, y, z); }

static inline vf vf_add_to_zero(vf x, vf y) {
    return _mm512_add_round_ps(x, y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

static inline vf vf_add_down(vf x, vf y) {
    return _mm512_add_round_ps(x, y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// Of the two neighbours the odd one, or the sum where they agree: +0 where they are zeros.
static inline vf vf_add_to_odd(vf x, vf y) {
    vf down = vf_add_down(x, y);
    vf up = _mm512_add_round_ps(x, y, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
    __mmask16 odd = _mm512_test_epi32_mask(_mm512_castps_si512(down), _mm512_set1_epi32(1));
    return _mm512_mask_blend_ps(odd, up, down);
}

// The low halves of NaNs must be zero in these three; they stay NaN then.
static inline vf vf_bfloat16_nearest(vf x) {
    __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    bits = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), even);
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-0x10000)));
}

static inline vf vf_bfloat16_to_zero(vf x) {
    __m512i bits = _mm512_castps_si512(x);
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-0x10000)));
}

static inline vf vf_bfloat16_down(vf x) {
    __m512i bits = _mm512_castps_si512(x), negative = _mm512_srai_epi32(bits, 31);
    bits = _mm512_add_epi32(bits, _mm512_srli_epi32(negative, 16));
    return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(-0x10000)));
}

#else

enum { VF_WIDTH = 8 };
typedef __m256 vf;
static inline vf vf_load(const float *x) { return _mm256_loadu_ps(x); }
static inline void vf_store(float *x, vf y) { _mm256_storeu_ps(x, y); }
static inline vf vf_all(float x) { return _mm256_set1_ps(x); }
static inline vf vf_add(vf x, vf y) { return _mm256_add_ps(x, y); }
static inline vf vf_multiply(vf x, vf y) { return _mm256_mul_ps(x, y); }
static inline vf vf_fma(vf x, vf y, vf z) { return _mm256_fmadd_ps(x, y, z); }
static inline __m256i vf_bits(vf x) { return _mm256_castps_si256(x); }
static inline vf vf_of_bits(__m256i x) { return _mm256_castsi256_ps(x); }

// The sum to nearest and what it lost: Dekker's, the larger magnitude first. Where finite numbers
// overflow, `lost` is the infinity of the other sign, and so points back to the sum; NaN where a
// term is infinite or NaN.
static inline vf vf_two_sum(vf x, vf y, vf *lost) {
    __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i swap = _mm256_cmpgt_epi32(_mm256_and_si256(vf_bits(y), magnitude),
                                      _mm256_and_si256(vf_bits(x), magnitude));
    vf large = _mm256_blendv_ps(x, y, vf_of_bits(swap));
    vf small = _mm256_blendv_ps(y, x, vf_of_bits(swap));
    vf sum = _mm256_add_ps(large, small);
    *lost = _mm256_sub_ps(small, _mm256_sub_ps(sum, large));
    return sum;
}

// Steps of one unit in the last place: the neighbour's bits are 1 less or 1 more.
static inline vf vf_add_to_zero(vf x, vf y) {
    vf lost, sum = vf_two_sum(x, y, &lost);
    __m256i inexact = vf_bits(_mm256_cmp_ps(lost, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    __m256i opposite = _mm256_srai_epi32(_mm256_xor_si256(vf_bits(lost), vf_bits(sum)), 31);
    return vf_of_bits(_mm256_add_epi32(vf_bits(sum), _mm256_and_si256(inexact, opposite)));
}

static inline vf vf_add_down(vf x, vf y) {
    vf lost, sum = vf_two_sum(x, y, &lost), zero = _mm256_setzero_ps();
    __m256i above = vf_bits(_mm256_cmp_ps(lost, zero, _CMP_LT_OQ)), one = _mm256_set1_epi32(1);
    __m256i positive = _mm256_cmpgt_epi32(vf_bits(sum), _mm256_set1_epi32(-1));
    __m256i step = _mm256_and_si256(above, _mm256_or_si256(positive, one));
    vf down = vf_of_bits(_mm256_add_epi32(vf_bits(sum), step));
    // Zero is -0 unless both terms are +0.
    vf sign = _mm256_and_ps(_mm256_or_ps(x, y), _mm256_set1_ps(-0.0f));
    return _mm256_or_ps(down, _mm256_and_ps(sign, _mm256_cmp_ps(sum, zero, _CMP_EQ_OQ)));
}

static inline vf vf_add_to_odd(vf x, vf y) {
    vf lost, sum = vf_two_sum(x, y, &lost);
    __m256i inexact = vf_bits(_mm256_cmp_ps(lost, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    __m256i odd = _mm256_srai_epi32(_mm256_slli_epi32(vf_bits(sum), 31), 31);
    __m256i opposite = _mm256_srai_epi32(_mm256_xor_si256(vf_bits(lost), vf_bits(sum)), 31);
    __m256i step = _mm256_or_si256(opposite, _mm256_set1_epi32(1));
    step = _mm256_andnot_si256(odd, _mm256_and_si256(inexact, step));
    return vf_of_bits(_mm256_add_epi32(vf_bits(sum), step));
}

// The low halves of NaNs must be zero in these three; they stay NaN then.
static inline vf vf_bfloat16_nearest(vf x) {
    __m256i bits = vf_bits(x), one = _mm256_set1_epi32(1);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    bits = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), even);
    return vf_of_bits(_mm256_and_si256(bits, _mm256_set1_epi32(-0x10000)));
}

static inline vf vf_bfloat16_to_zero(vf x) {
    return vf_of_bits(_mm256_and_si256(vf_bits(x), _mm256_set1_epi32(-0x10000)));
}

static inline vf vf_bfloat16_down(vf x) {
    __m256i bits = vf_bits(x), negative = _mm256_srai_epi32(bits, 31);
    bits = _mm256_add_epi32(bits, _mm256_srli_epi32(negative, 16));
    return vf_of_bits(_mm256_and_si256(bits, _mm256_set1_epi32(-0x10000)));
}

#endif

// NaNs become 7fc00000.
static inline __m256 vf_quiet_8(__m256 x) {
    __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    return _mm256_blendv_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), nan);
}

// 8 numbers of each of 8 rows, transposed.
static inline void vf_transpose_8(__m256 x[8]) {
    __m256 y[8];
    for (int i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int h = 0; h < 2; h++) {
            x[i + 2 * h] = _mm256_shuffle_ps(y[i + h], y[i + 2 + h], 0x44);
            x[i + 2 * h + 1] = _mm256_shuffle_ps(y[i + h], y[i + 2 + h], 0xee);
        }
    for (int i = 0; i < 4; i++) {
        y[i] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x20);
        y[i + 4] = _mm256_permute2f128_ps(x[i], x[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++)
        x[i] = y[i];
}

#endif
