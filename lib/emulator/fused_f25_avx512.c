// The F = 23 .. 25 fused sums (FP16, BF16, TF32 everywhere; FP8, FP6, FP4 and MX on Blackwell) in
// AVX-512 FP64 lanes.
//
// Owns their packing, decoding and tiling. The method is that of fused_f13_avx512.c: an accumulator
// that starts at 1.5 * 2^52 quanta, B stored as b * (1 + 2^-29), one per negative product added to
// the start value. |product| < 2^27 quanta and has at most 22 significant bits, so the bias never
// reaches the next integer; |sum| < 2^34 quanta stays in the start value's binade.
// E8M0 scales: the running sum is kept in units of the block's scales, so that products need no
// scale and truncation, which is scale-free, happens in those units; changing units is exact.
// Exact: the bits of qg_unit_panel_scalar.
#include <immintrin.h>

enum { STRIP = 32, TILE = 4 };
typedef __m512i vector;

#include <fused_f25_internal.h>

enum { TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };

// Word 8 l + 2 j + i of an exponent row belongs to column 8 j + 2 l + i: in-lane unpacks then give
// the start values of columns 8 j .. 8 j + 7 in order. Sign word 16 h + 4 l + 2 g + i belongs to
// column 8 (2 h + g) + 2 l + i.

// ------------------------------------------------------------------------------- codes to values

// Up to 32 codes of a line, as binary32; elements beyond the span are 0.
FUSED_INLINE void load_values(__m512 out[2], const qg_format_info *info, const void *codes,
                              fused_span span, int pairs) {
    int64_t at = span.k;
    __mmask32 mask = span.depth >= PANEL ? 0xFFFFFFFFu : (__mmask32)((1u << span.depth) - 1);
    switch (qg_format_code_bytes(info)) {
    case 1: {
        // The magnitude shifted into binary32's place is the value but for a power of two.
        __m256i bytes = _mm256_maskz_loadu_epi8(mask, (const uint8_t *)codes + at);
        bytes = pairs ? fused_pair_order(bytes) : bytes;
        int sign_at = info->ebits + info->mbits;
        __m512i magnitude_mask = _mm512_set1_epi32((1 << sign_at) - 1);
        __m512 scale = _mm512_castsi512_ps(_mm512_set1_epi32((254 - info->bias) << 23));
        for (int i = 0; i < 2; i++) {
            __m512i wide = _mm512_cvtepu8_epi32(i ? _mm256_extracti128_si256(bytes, 1)
                                                  : _mm256_castsi256_si128(bytes));
            __m512i magnitude = _mm512_and_si512(wide, magnitude_mask);
            magnitude = _mm512_sll_epi32(magnitude, _mm_cvtsi32_si128(23 - info->mbits));
            __m512i sign = _mm512_sll_epi32(wide, _mm_cvtsi32_si128(31 - sign_at));
            sign = _mm512_and_si512(sign, _mm512_set1_epi32((int)0x80000000));
            __m512 value = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), scale);
            out[i] = _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(value), sign));
        }
        break;
    }
    case 2: {
        __m512i words = _mm512_maskz_loadu_epi16(mask, (const uint16_t *)codes + at);
        for (int i = 0; i < 2; i++) {
            __m256i half = i ? _mm512_extracti64x4_epi64(words, 1) : _mm512_castsi512_si256(words);
            out[i] = info->ebits == 8
                         ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))
                         : _mm512_cvtph_ps(half);
        }
        break;
    }
    default:
        for (int i = 0; i < 2; i++) {
            __m512i dwords = _mm512_maskz_loadu_epi32((__mmask16)(mask >> (16 * i)),
                                                      (const uint32_t *)codes + at + 16 * i);
            out[i] = _mm512_castsi512_ps(
                _mm512_and_si512(dwords, _mm512_set1_epi32(-(1 << info->shift))));
        }
    }
}

static uint32_t sign_bits(const __m512 values[2]) {
    return (uint32_t)_mm512_movepi32_mask(_mm512_castps_si512(values[0])) |
           (uint32_t)_mm512_movepi32_mask(_mm512_castps_si512(values[1])) << 16;
}

static __mmask16 zero_mask(__m512 value) {
    __m512i bits = _mm512_castps_si512(value);
    return _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7FFFFFFF));
}

// Exponent words (in dwords) of 16 values: subnormals of the format keep its least exponent.
FUSED_INLINE __m512i exponent_words(__m512 value, __mmask16 zero, int least_exponent, int bias) {
    __m512i field = _mm512_and_si512(_mm512_srli_epi32(_mm512_castps_si512(value), 23),
                                     _mm512_set1_epi32(0xFF));
    field = _mm512_max_epi32(field, _mm512_set1_epi32(least_exponent + 127));
    field = _mm512_add_epi32(field, _mm512_set1_epi32(bias - 127));
    return _mm512_maskz_slli_epi32((__mmask16)~zero, field, FIELD_SHIFT);
}

// The value as binary64 times `factor`; zeros become +-2^-1000, below any quantum.
FUSED_INLINE void widen(__m512d out[2], __m512 value, __mmask16 zero, double factor) {
    value = _mm512_castsi512_ps(_mm512_mask_or_epi32(_mm512_castps_si512(value), zero,
                                                     _mm512_castps_si512(value),
                                                     _mm512_set1_epi32(127 << 23)));
    for (int i = 0; i < 2; i++) {
        __m256 half = i ? _mm512_extractf32x8_ps(value, 1) : _mm512_castps512_ps256(value);
        __m512d scale = _mm512_mask_mov_pd(_mm512_set1_pd(factor), (__mmask8)(zero >> (8 * i)),
                                           _mm512_set1_pd(0x1p-1000));
        out[i] = _mm512_mul_pd(_mm512_cvtps_pd(half), scale);
    }
}

// --------------------------------------------------------------------------------------- packing

FUSED_INLINE void transpose4(__m512 r[4]) {
    __m512 t0 = _mm512_unpacklo_ps(r[0], r[1]), t1 = _mm512_unpackhi_ps(r[0], r[1]);
    __m512 t2 = _mm512_unpacklo_ps(r[2], r[3]), t3 = _mm512_unpackhi_ps(r[2], r[3]);
    r[0] = _mm512_shuffle_ps(t0, t2, 0x44), r[1] = _mm512_shuffle_ps(t0, t2, 0xEE);
    r[2] = _mm512_shuffle_ps(t1, t3, 0x44), r[3] = _mm512_shuffle_ps(t1, t3, 0xEE);
}

static void pack_panel(b_packed *out, const fused_job *job, int64_t column, int64_t columns,
                       int64_t panel) {
    const qg_fused_problem *p = job->p;
    fused_span span = fused_span_of(job, panel);
    for (int j = 0; j < STRIP; j += 4) {
        __m512 r[4][2];
        for (int i = 0; i < 4; i++) {
            int at = j + i;
            r[i][0] = r[i][1] = _mm512_setzero_ps();
            out->factor[at] = 1;
            if (at < columns) {
                load_values(r[i], &job->fb, fused_row(&p->b, column + at), span, p->pairs);
                if (p->b.scales)
                    out->factor[at] = unit_change(&p->b, column + at, panel);
            }
            uint32_t word = sign_bits(r[i]);
            int h = at / 16, g = at / 8 % 2, l = at / 2 % 4, low = at % 2;
            for (int s = 0; s * p->length < PANEL; s++)
                out->sign[s][16 * h + 4 * l + 2 * g + low] = fused_sub_signs(word, s, p->length);
        }
        for (int half = 0; half < 2; half++) {
            __m512 t[4] = {r[0][half], r[1][half], r[2][half], r[3][half]};
            transpose4(t);
            for (int i = 0; i < 4; i++) {
                float(*row)[STRIP] = out->value + 16 * half + i;
                _mm_store_ps(row[0] + j, _mm512_extractf32x4_ps(t[i], 0));
                _mm_store_ps(row[4] + j, _mm512_extractf32x4_ps(t[i], 1));
                _mm_store_ps(row[8] + j, _mm512_extractf32x4_ps(t[i], 2));
                _mm_store_ps(row[12] + j, _mm512_extractf32x4_ps(t[i], 3));
            }
        }
    }
}

// -------------------------------------------------------------------------------------- decoding

static void decode_b(b_panel *restrict out, const b_packed *restrict in, int least_exponent) {
    _Alignas(64) uint16_t order[STRIP];
    for (int at = 0; at < STRIP; at++)
        order[8 * (at / 2 % 4) + 2 * (at / 8) + at % 2] = (uint16_t)at;
    const __m512i permutation = _mm512_load_si512(order);
    for (int k = 0; k < PANEL; k++) {
        __m512i words[2];
        for (int i = 0; i < 2; i++) {
            __m512 value = _mm512_load_ps(in->value[k] + 16 * i);
            __mmask16 zero = zero_mask(value);
            __m512d wide[2];
            widen(wide, value, zero, 1 + 0x1p-29);
            _mm512_store_pd(out->value[k] + 16 * i, wide[0]);
            _mm512_store_pd(out->value[k] + 16 * i + 8, wide[1]);
            words[i] = exponent_words(value, zero, least_exponent, B_BIAS);
        }
        __m512i natural =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(words[0])),
                               _mm512_cvtepi32_epi16(words[1]), 1);
        _mm512_store_si512(out->exponent[k], _mm512_permutexvar_epi16(permutation, natural));
    }
}

static void decode_a_tile(a_element *out, a_side *side, const fused_job *job, int64_t row,
                          int64_t panel) {
    const qg_fused_problem *p = job->p;
    const qg_format_info *info = &job->fa;
    fused_span span = fused_span_of(job, panel);
    __m512 values[TILE][2];
    for (int r = 0; r < TILE; r++) {
        values[r][0] = values[r][1] = _mm512_setzero_ps();
        side->factor[r] = 1;
        if (row + r < p->m) {
            load_values(values[r], info, fused_row(&p->a, row + r), span, p->pairs);
            if (p->a.scales)
                side->factor[r] = unit_change(&p->a, row + r, panel);
        }
        uint32_t word = sign_bits(values[r]);
        for (int s = 0; s * p->length < PANEL; s++)
            side->sign[s][r] = fused_sub_signs(word, s, p->length);
    }
    for (int half = 0; half < 2; half++) {
        __m512 t[4] = {values[0][half], values[1][half], values[2][half], values[3][half]};
        transpose4(t); // t[j] holds in lane l the four rows of k = 4 l + j
        for (int j = 0; j < 4; j++) {
            __mmask16 zero = zero_mask(t[j]);
            __m512i words = exponent_words(t[j], zero, 1 - info->bias, A_BIAS);
            words = _mm512_or_si512(words, _mm512_slli_epi32(words, 16));
            __m512d wide[2];
            widen(wide, t[j], zero, 1);
            a_element *e = out + 16 * half + j;
            _mm256_storeu_pd(e[0].value, _mm512_castpd512_pd256(wide[0]));
            _mm256_storeu_pd(e[4].value, _mm512_extractf64x4_pd(wide[0], 1));
            _mm256_storeu_pd(e[8].value, _mm512_castpd512_pd256(wide[1]));
            _mm256_storeu_pd(e[12].value, _mm512_extractf64x4_pd(wide[1], 1));
            _mm_storeu_si128((__m128i *)e[0].exponent, _mm512_extracti32x4_epi32(words, 0));
            _mm_storeu_si128((__m128i *)e[4].exponent, _mm512_extracti32x4_epi32(words, 1));
            _mm_storeu_si128((__m128i *)e[8].exponent, _mm512_extracti32x4_epi32(words, 2));
            _mm_storeu_si128((__m128i *)e[12].exponent, _mm512_extracti32x4_epi32(words, 3));
        }
    }
}

// ---------------------------------------------------------------------------------------- kernel

FUSED_INLINE void exponent_step(__m512i emax[TILE], const a_element *a, const uint16_t *b) {
    __m512i eb = _mm512_load_si512(b);
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++) {
        __m512i ea = _mm512_set1_epi32((int)a->exponent[r]);
        emax[r] = _mm512_max_epi16(emax[r], _mm512_add_epi16(ea, eb));
    }
}

// Start value plus running sum. `merged` holds the exponent field of the products' maximum in the
// high dword and the number of negative products in the low one.
FUSED_INLINE __m512d start_value(__m512i merged, __m512i c, __m512i half_base) {
    __m512i exponent = _mm512_and_si512(c, _mm512_set1_epi64(EXPONENT_FIELD));
    __m512i start = _mm512_max_epi32(merged, exponent);
    __m512i base = _mm512_shldi_epi64(half_base, c, 1); // base + (c < 0)
    start = _mm512_add_epi64(start, base);
    return _mm512_add_round_pd(_mm512_castsi512_pd(start), _mm512_castsi512_pd(c), TOWARD_ZERO);
}

FUSED_INLINE __m512i end_value(__m512d sum) {
    __m512i start =
        _mm512_ternarylogic_epi64(_mm512_castpd_si512(sum), _mm512_set1_epi64(EXPONENT_FIELD),
                                  _mm512_set1_epi64(HALF_BIT), 0xEA);
    __m512d c = _mm512_sub_round_pd(sum, _mm512_castsi512_pd(start), TOWARD_ZERO);
    return _mm512_ternarylogic_epi64(_mm512_castpd_si512(c), _mm512_set1_epi64(KEPT_BITS),
                                     _mm512_set1_epi64(STICKY), 0xEA);
}

// What the first fused operation of a pass starts from.
FUSED_INLINE __m512i sums_before(const double *sums, const a_side *side, const b_packed *packed,
                                 int mode, int r, int j) {
    if (mode == PAIRS)
        return _mm512_set1_epi64(C_ZERO);
    __m512i c = _mm512_load_si512(sums + r * STRIP + 8 * j);
    if (mode != SCALED)
        return c;
    __m512d unit = _mm512_mul_pd(_mm512_castsi512_pd(c), _mm512_set1_pd(side->factor[r]));
    return _mm512_castpd_si512(_mm512_mul_pd(unit, _mm512_load_pd(packed->factor + 8 * j)));
}

FUSED_INLINE void store_sums(void *sums, __m512i sum, int mode, int at) {
    if (mode != PAIRS) {
        _mm512_store_si512((double *)sums + at, sum);
        return;
    }
    __m512d kept = _mm512_castsi512_pd(_mm512_and_si512(sum, _mm512_set1_epi64(KEPT_BITS)));
    float *main_sum = (float *)sums + at;
    // 24 bits: the conversion is exact, the addition to nearest.
    _mm256_store_ps(main_sum, _mm256_add_ps(_mm256_load_ps(main_sum), _mm512_cvtpd_ps(kept)));
}

FUSED_INLINE void tiles_pass(const a_element *a, const a_side *side, int64_t tiles,
                             const b_panel *b, const b_packed *packed, void *sums, int length,
                             int mode, __m512i half_base, __m512i least_words) {
    const int subs = PANEL / length;
    __m512i emax[TILE] = {least_words, least_words, least_words, least_words};
    for (int k = 0; k < length; k++)
        exponent_step(emax, a + k, b->exponent[k]);
    for (int64_t t = 0; t < tiles; t++) {
        __m512d acc[TILE][4];
#pragma GCC unroll 8
        for (int s = 0; s < subs; s++) {
#pragma GCC unroll 4
            for (int r = 0; r < TILE; r++) {
                __m512i sign_a = _mm512_set1_epi32((int)side[t].sign[s][r]);
#pragma GCC unroll 2
                for (int h = 0; h < 2; h++) {
                    __m512i count = _mm512_popcnt_epi32(
                        _mm512_xor_si512(sign_a, _mm512_load_si512(packed->sign[s] + 16 * h)));
                    __m512i zero = _mm512_setzero_si512();
                    __m512i field = h ? _mm512_unpackhi_epi16(zero, emax[r])
                                      : _mm512_unpacklo_epi16(zero, emax[r]);
#pragma GCC unroll 2
                    for (int g = 0; g < 2; g++) {
                        int j = 2 * h + g;
                        __m512i c = s ? end_value(acc[r][j])
                                      : sums_before(sums, side + t, packed, mode, r, j);
                        __m512i merged = g ? _mm512_unpackhi_epi32(count, field)
                                           : _mm512_unpacklo_epi32(count, field);
                        acc[r][j] = start_value(merged, c, half_base);
                    }
                }
                emax[r] = least_words;
            }
            const double *bv = b->value[s * length];
            const uint16_t *be = b->exponent[(s + 1) % subs * length];
            for (int k = 0; k < length; k++) {
                __m512d bq[4];
#pragma GCC unroll 4
                for (int j = 0; j < 4; j++) {
                    bq[j] = _mm512_load_pd(bv + 8 * j);
                    // Keeps the compiler from loading it again for each of the four rows.
                    __asm__("" : "+v"(bq[j]));
                }
#pragma GCC unroll 4
                for (int r = 0; r < TILE; r++) {
                    __m512d ar = _mm512_set1_pd(a[k].value[r]);
#pragma GCC unroll 4
                    for (int j = 0; j < 4; j++)
                        acc[r][j] = _mm512_fmadd_round_pd(ar, bq[j], acc[r][j], TOWARD_ZERO);
                }
                exponent_step(emax, a + length + k, be);
                bv += STRIP;
                be += STRIP;
            }
            a += length;
        }
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++)
#pragma GCC unroll 4
            for (int j = 0; j < 4; j++)
                store_sums(sums, end_value(acc[r][j]), mode, r * STRIP + 8 * j);
        sums = (char *)sums + TILE * STRIP * (mode == PAIRS ? sizeof(float) : sizeof(double));
    }
}

// ------------------------------------------------------------------------------ sums in and out

FUSED_INLINE __mmask8 column_mask(int64_t columns, int j) {
    int64_t left = columns - 8 * j;
    return (__mmask8)(left >= 8 ? 0xFF : left <= 0 ? 0 : (1 << left) - 1);
}

static void start_sums(void *out, const float *c, int64_t stride, int64_t rows, int64_t columns,
                       int64_t padded_rows) {
    double *sums = out;
    for (int64_t r = 0; r < padded_rows; r++)
        for (int j = 0; j < 4; j++) {
            __m512i bits = _mm512_set1_epi64(C_ZERO);
            if (c && r < rows) {
                __m256 word =
                    _mm256_maskz_loadu_ps(column_mask(columns, j), c + r * stride + 8 * j);
                __m512d wide = _mm512_cvtps_pd(word);
                __mmask8 zero = _mm512_cmp_pd_mask(wide, _mm512_setzero_pd(), _CMP_EQ_OQ);
                bits = _mm512_or_si512(_mm512_castpd_si512(wide), _mm512_set1_epi64(STICKY));
                bits = _mm512_mask_mov_epi64(bits, zero, _mm512_set1_epi64(C_ZERO));
            }
            _mm512_store_si512(sums + r * STRIP + 8 * j, bits);
        }
}

// To binary32, in place: row r of the result lies in the first half of what rows 0 .. r took. The
// sums have 24 bits, and elements whose exponent binary32 lacks are computed elsewhere: exact.
static void finish_sums(const fused_job *job, void *in, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, int64_t panel) {
    const qg_fused_problem *p = job->p;
    const double *sums = in;
    float *out = in;
    _Alignas(64) double unit[STRIP];
    for (int64_t j = 0; j < STRIP; j++)
        unit[j] =
            p->b.scales && j < columns ? power_of_two(scale_exponent(&p->b, column + j, panel)) : 1;
    for (int64_t r = 0; r < rows; r++) {
        double row_unit = p->a.scales ? power_of_two(scale_exponent(&p->a, row + r, panel)) : 1;
        for (int j = 0; j < 4; j++) {
            __m512d sum = _mm512_castsi512_pd(_mm512_and_si512(
                _mm512_load_si512(sums + r * STRIP + 8 * j), _mm512_set1_epi64(KEPT_BITS)));
            sum = _mm512_mul_pd(_mm512_mul_pd(sum, _mm512_set1_pd(row_unit)),
                                _mm512_load_pd(unit + 8 * j));
            _mm256_store_ps(out + r * STRIP + 8 * j, _mm512_cvt_roundpd_ps(sum, TOWARD_ZERO));
        }
    }
}

// ---------------------------------------------------------------------------------------- family

static vector words(uint16_t word) { return _mm512_set1_epi16((short)word); }

// Half of the start value's bits: start_value shifts the sign of c in.
static vector start_base(int bits) {
    return _mm512_set1_epi64(((int64_t)(52 - bits) << 52 | HALF_BIT) >> 1);
}

// The pass itself adds to binary32.
static void multiply_pairs(const fused_job *job, const void *a, const void *side, int64_t tiles,
                           const void *packed, void *b, void *sums) {
    multiply(job, a, side, tiles, packed, b, sums);
}

enum { MXCSR = FUSED_MXCSR_NEAREST, PAIRS_ROOM = sizeof(b_panel) };

#include <fused_f25_run_internal.h>

static int cpu_has(void) {
    return fused_cpu_has_avx512() && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("avx512vpopcntdq");
}

const qg_fused_kernel qg_fused_f25_avx512 = {"f25_avx512", cpu_has, supports, workspace, run};
