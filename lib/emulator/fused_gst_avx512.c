// The F = 35 grouped fused sums of Blackwell's NVFP4 and MXFP4 units (GST-FDPA) in AVX-512.
//
// Owns their register tiles; the rest is in fused_gst_internal.h. Dot products by VNNI; the scaled
// sum of a group times the power of two that makes the quantum 1 is still exact in binary32, and
// converting that to a 64-bit integer truncates toward zero.
// Exact: the bits of qg_unit_panel_scalar.
enum { STRIP = 16, TILE = 4 };

#include <fused_gst_internal.h>

enum { TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };

// ---------------------------------------------------------------------------------------- kernel

// trunc of 16 values, added to two registers of 64-bit sums.
FUSED_INLINE void add_truncated(__m512i sum[2], __m512 value) {
    sum[0] = _mm512_add_epi64(sum[0], _mm512_cvttps_epi64(_mm512_castps512_ps256(value)));
    sum[1] = _mm512_add_epi64(sum[1], _mm512_cvttps_epi64(_mm512_extractf32x8_ps(value, 1)));
}

// sums * 2^exponent toward zero to binary32. The sums have at most 49 bits: exact in binary64.
FUSED_INLINE __m512 round_sums(const __m512i sum[2], __m512i exponent) {
    __m512i field = _mm512_add_epi32(exponent, _mm512_set1_epi32(1023));
    __m256 half[2];
    for (int i = 0; i < 2; i++) {
        __m256i narrow = i ? _mm512_extracti32x8_epi32(field, 1) : _mm512_castsi512_si256(field);
        __m512d unit = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu32_epi64(narrow), 52));
        half[i] =
            _mm512_cvt_roundpd_ps(_mm512_mul_pd(_mm512_cvtepi64_pd(sum[i]), unit), TOWARD_ZERO);
    }
    return _mm512_insertf32x8(_mm512_castps256_ps512(half[0]), half[1], 1);
}

// One fused operation on 4 rows x 16 columns. Exponents are small integers in binary32, which is
// what scalef takes.
FUSED_INLINE void fused_block(__m512 c[TILE], const a_block *a, const b_block *b) {
    __m512 emax[TILE];
    __m512i sum[TILE][2];
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++) {
        // The exponent of c; of 0 it is -inf.
        emax[r] = _mm512_max_ps(_mm512_getexp_ps(c[r]), _mm512_set1_ps(LEAST_EXPONENT));
#pragma GCC unroll 4
        for (int g = 0; g < GROUPS; g++) {
            __mmask16 counts = _mm512_test_epi32_mask(_mm512_set1_epi32((int)a->nonzero[g][r]),
                                                      _mm512_load_si512(b->nonzero[g]));
            __m512 exponent =
                _mm512_add_ps(_mm512_set1_ps(a->exponent[g][r]), _mm512_load_ps(b->exponent[g]));
            emax[r] = _mm512_mask_max_ps(emax[r], counts, emax[r], exponent);
        }
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
        __m512 shift = _mm512_sub_ps(_mm512_set1_ps(BITS), emax[r]);
        add_truncated(sum[r], _mm512_scalef_ps(c[r], shift));
    }
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
        __m512i dot[TILE];
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++)
            dot[r] = _mm512_load_si512(b->start[g]);
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++) {
            __m512i quad = _mm512_load_si512(b->quad[g][i]);
            // Keeps the compiler from loading it again for each of the four rows.
            __asm__("" : "+v"(quad));
#pragma GCC unroll 4
            for (int r = 0; r < TILE; r++)
                dot[r] =
                    _mm512_dpbusd_epi32(dot[r], _mm512_set1_epi32((int)a->quad[g][i][r]), quad);
        }
        __m512 base = _mm512_add_ps(_mm512_load_ps(b->exponent[g]), _mm512_set1_ps(BITS - UNIT));
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++) {
            __m512 exponent =
                _mm512_sub_ps(_mm512_add_ps(base, _mm512_set1_ps(a->exponent[g][r])), emax[r]);
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a->significand[g][r]),
                                         _mm512_load_ps(b->significand[g]));
            __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[r]), scale);
            add_truncated(sum[r], _mm512_scalef_ps(value, exponent));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++)
        c[r] = round_sums(sum[r], _mm512_cvtps_epi32(_mm512_sub_ps(emax[r], _mm512_set1_ps(BITS))));
}

static void tile_pass(const a_block *a, const b_block *b, int64_t blocks, const float *c_in,
                      float *d, int64_t stride, int64_t rows, int64_t columns) {
    __mmask16 mask = (__mmask16)(columns >= STRIP ? 0xFFFF : (1 << columns) - 1);
    __m512 c[TILE];
    for (int r = 0; r < TILE; r++)
        c[r] =
            c_in && r < rows ? _mm512_maskz_loadu_ps(mask, c_in + r * stride) : _mm512_setzero_ps();
    for (int64_t i = 0; i < blocks; i++)
        fused_block(c, a + i, b + i);
    for (int r = 0; r < TILE; r++)
        if (r < rows)
            _mm512_mask_storeu_ps(d + r * stride, mask, c[r]);
}

static int cpu_has(void) { return fused_cpu_has_avx512() && __builtin_cpu_supports("avx512vnni"); }

const qg_fused_kernel qg_fused_gst_avx512 = {"gst_avx512", cpu_has, supports, workspace, run};
