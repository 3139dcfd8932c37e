// The F = 35 grouped fused sums of Blackwell's NVFP4 and MXFP4 units (GST-FDPA) in AVX2.
//
// Owns their register tiles; the rest is in fused_gst_internal.h. Dot products in 16-bit lanes; the
// scaled sum of a group in units of the quantum is exact in binary64, and rounded toward zero to an
// integer there. The last conversion needs MXCSR toward zero; all else is exact.
// Exact: the bits of qg_unit_panel_scalar.
enum { STRIP = 8, TILE = 2 };

#include <fused_gst_internal.h>

// ---------------------------------------------------------------------------------------- kernel

// 2^exponent of four small integers.
FUSED_INLINE __m256d powers_of_two(__m128i exponent) {
    __m128i field = _mm_add_epi32(exponent, _mm_set1_epi32(1023));
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(field), 52));
}

// trunc(value * 2^shift) of 8 values, added to two registers of integers.
FUSED_INLINE void add_truncated(__m256d sum[2], __m256 value, __m256 shift) {
    __m256i exponent = _mm256_cvtps_epi32(shift);
    __m256d low = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(value)),
                                powers_of_two(_mm256_castsi256_si128(exponent)));
    __m256d high = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(value, 1)),
                                 powers_of_two(_mm256_extracti128_si256(exponent, 1)));
    sum[0] = _mm256_add_pd(sum[0], _mm256_round_pd(low, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
    sum[1] = _mm256_add_pd(sum[1], _mm256_round_pd(high, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}

// The exponents of normal numbers, as binary32; of 0 it is -127.
FUSED_INLINE __m256 exponent_of(__m256 x) {
    __m256i field =
        _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(x), 23), _mm256_set1_epi32(0xFF));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(field, _mm256_set1_epi32(127)));
}

// The largest exponent of c and of the groups that count, at least LEAST_EXPONENT.
FUSED_INLINE __m256 largest_exponent(__m256 c, const a_block *a, const b_block *b, int r) {
    const __m256 least = _mm256_set1_ps(LEAST_EXPONENT);
    __m256 emax = _mm256_max_ps(exponent_of(c), least);
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
        __m256i both = _mm256_and_si256(_mm256_set1_epi32((int)a->nonzero[g][r]),
                                        _mm256_load_si256((const void *)b->nonzero[g]));
        __m256i none = _mm256_cmpeq_epi32(both, _mm256_setzero_si256());
        __m256 exponent =
            _mm256_add_ps(_mm256_set1_ps(a->exponent[g][r]), _mm256_load_ps(b->exponent[g]));
        emax = _mm256_max_ps(emax, _mm256_blendv_ps(exponent, least, _mm256_castsi256_ps(none)));
    }
    return emax;
}

// One group's dot products in units of 1/4. Four products of at most 2 * 24 * 12 fit 16 bits.
FUSED_INLINE __m256i group_dot(const a_block *a, const b_block *b, int g, int r) {
    __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < QUADS; i++) {
        __m256i quad = _mm256_load_si256((const void *)b->quad[g][i]);
        pairs = _mm256_add_epi16(
            pairs, _mm256_maddubs_epi16(_mm256_set1_epi32((int)a->quad[g][i][r]), quad));
    }
    return _mm256_add_epi32(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)),
                            _mm256_load_si256((const void *)b->start[g]));
}

// One fused operation on a row of 8 columns.
FUSED_INLINE __m256 fused_block(__m256 c, const a_block *a, const b_block *b, int r) {
    __m256 emax = largest_exponent(c, a, b, r);
    __m256d sum[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
    add_truncated(sum, c, _mm256_sub_ps(_mm256_set1_ps(BITS), emax));
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
        __m256 exponent =
            _mm256_add_ps(_mm256_load_ps(b->exponent[g]), _mm256_set1_ps(BITS - UNIT));
        exponent = _mm256_sub_ps(_mm256_add_ps(exponent, _mm256_set1_ps(a->exponent[g][r])), emax);
        __m256 scale =
            _mm256_mul_ps(_mm256_set1_ps(a->significand[g][r]), _mm256_load_ps(b->significand[g]));
        __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(group_dot(a, b, g, r)), scale);
        add_truncated(sum, value, exponent);
    }
    __m256i unit = _mm256_cvtps_epi32(_mm256_sub_ps(emax, _mm256_set1_ps(BITS)));
    __m128 low =
        _mm256_cvtpd_ps(_mm256_mul_pd(sum[0], powers_of_two(_mm256_castsi256_si128(unit))));
    __m128 high =
        _mm256_cvtpd_ps(_mm256_mul_pd(sum[1], powers_of_two(_mm256_extracti128_si256(unit, 1))));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

static void tile_pass(const a_block *a, const b_block *b, int64_t blocks, const float *c_in,
                      float *d, int64_t stride, int64_t rows, int64_t columns) {
    size_t bytes = (size_t)fused_least(columns, STRIP) * sizeof(float);
    __m256 c[TILE];
    for (int r = 0; r < TILE; r++) {
        float line[STRIP] = {0};
        if (c_in && r < rows)
            memcpy(line, c_in + r * stride, bytes);
        c[r] = _mm256_loadu_ps(line);
    }
    _mm_setcsr(FUSED_MXCSR_TOWARD_ZERO);
    for (int64_t i = 0; i < blocks; i++)
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++)
            c[r] = fused_block(c[r], a + i, b + i, r);
    _mm_setcsr(FUSED_MXCSR_NEAREST);
    for (int r = 0; r < TILE; r++) {
        float line[STRIP];
        _mm256_storeu_ps(line, c[r]);
        if (r < rows)
            memcpy(d + r * stride, line, bytes);
    }
}

static int cpu_has(void) { return fused_cpu_has_avx2(); }

const qg_fused_kernel qg_fused_gst_avx2 = {"gst_avx2", cpu_has, supports, workspace, run};
