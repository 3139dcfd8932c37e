// The F = 23 .. 25 fused sums (FP16, BF16, TF32; FP8, FP6, FP4 and MX on Blackwell) in AVX2 FP64
// lanes.
//
// The method of fused_f25_avx512.c with 4 lanes: 6 x 8 register tiles, an exponent pass of its own
// over 6 x 16, population counts by nibble table. AVX2 has no rounding in its instructions, so the
// kernel runs under MXCSR toward zero.
// Exact: the bits of qg_unit_panel_scalar.
#include <immintrin.h>

enum { STRIP = 16, TILE = 6 };
typedef __m256i vector;

#include <fused_f25_internal.h>

enum { HALF = 8 }; // columns of a register tile

// Word 8 l + 2 j + i of an exponent row belongs to column 4 j + 2 l + i, sign word
// 8 h + 4 l + 2 g + i to column 4 (2 h + g) + 2 l + i.

// ------------------------------------------------------------------------------- codes to values

// Up to 32 codes of a line, as binary32; elements beyond the span are 0. The magnitude shifted into
// binary32's place is the value but for a power of two. Inf and NaN codes come out finite or not:
// their lines are computed elsewhere.
static void load_values(float out[PANEL], const qg_format_info *info, const void *codes,
                        fused_span span, int pairs) {
    int64_t at = span.k;
    int bytes = qg_format_code_bytes(info), count = (int)fused_least(span.depth, PANEL);
    _Alignas(32) uint32_t dwords[PANEL] = {0};
    if (bytes == 1) {
        _Alignas(32) uint8_t narrow[PANEL] = {0};
        memcpy(narrow, (const uint8_t *)codes + at, (size_t)count);
        if (pairs)
            _mm256_store_si256((void *)narrow,
                               fused_pair_order(_mm256_load_si256((const void *)narrow)));
        for (int i = 0; i < PANEL; i++)
            dwords[i] = narrow[i];
    } else if (bytes == 2) {
        _Alignas(32) uint16_t narrow[PANEL] = {0};
        memcpy(narrow, (const uint16_t *)codes + at, (size_t)count * 2);
        for (int i = 0; i < PANEL; i++)
            dwords[i] = narrow[i];
    } else {
        memcpy(dwords, (const uint32_t *)codes + at, (size_t)count * 4);
    }
    int sign_at = info->ebits + info->mbits;
    __m128i magnitude_shift = _mm_cvtsi32_si128(23 - info->mbits);
    __m128i sign_shift = _mm_cvtsi32_si128(31 - sign_at);
    __m128i unused = _mm_cvtsi32_si128(info->shift);
    __m256i magnitude_mask = _mm256_set1_epi32((1 << sign_at) - 1);
    __m256 scale = _mm256_castsi256_ps(_mm256_set1_epi32((254 - info->bias) << 23));
    for (int i = 0; i < PANEL; i += 8) {
        __m256i code = _mm256_srl_epi32(_mm256_load_si256((const void *)(dwords + i)), unused);
        __m256i magnitude =
            _mm256_sll_epi32(_mm256_and_si256(code, magnitude_mask), magnitude_shift);
        __m256i sign = _mm256_and_si256(_mm256_sll_epi32(code, sign_shift),
                                        _mm256_set1_epi32((int)0x80000000));
        __m256 value = _mm256_mul_ps(_mm256_castsi256_ps(magnitude), scale);
        _mm256_storeu_ps(out + i, _mm256_or_ps(value, _mm256_castsi256_ps(sign)));
    }
}

static uint32_t sign_bits(const float values[PANEL]) {
    uint32_t word = 0;
    for (int i = 0; i < PANEL; i += 8)
        word |= (uint32_t)_mm256_movemask_ps(_mm256_loadu_ps(values + i)) << i;
    return word;
}

// All ones where the value is a zero.
FUSED_INLINE __m256i zero_mask(__m256 value) {
    __m256i magnitude = _mm256_slli_epi32(_mm256_castps_si256(value), 1);
    return _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
}

FUSED_INLINE __m256i exponent_words(__m256 value, __m256i zero, int least_exponent, int bias) {
    __m256i field = _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(value), 23),
                                     _mm256_set1_epi32(0xFF));
    field = _mm256_max_epi32(field, _mm256_set1_epi32(least_exponent + 127));
    field = _mm256_add_epi32(field, _mm256_set1_epi32(bias - 127));
    return _mm256_andnot_si256(zero, _mm256_slli_epi32(field, FIELD_SHIFT));
}

// The value as binary64 times `factor`; zeros become +-2^-1000, below any quantum.
FUSED_INLINE void widen(double out[8], __m256 value, __m256i zero, double factor) {
    __m256 one = _mm256_and_ps(_mm256_castsi256_ps(zero), _mm256_set1_ps(1));
    value = _mm256_or_ps(value, one);
    for (int i = 0; i < 2; i++) {
        __m128 half = i ? _mm256_extractf128_ps(value, 1) : _mm256_castps256_ps128(value);
        __m128i tiny = i ? _mm256_extracti128_si256(zero, 1) : _mm256_castsi256_si128(zero);
        __m256d scale = _mm256_blendv_pd(_mm256_set1_pd(factor), _mm256_set1_pd(0x1p-1000),
                                         _mm256_castsi256_pd(_mm256_cvtepi32_epi64(tiny)));
        _mm256_storeu_pd(out + 4 * i, _mm256_mul_pd(_mm256_cvtps_pd(half), scale));
    }
}

// --------------------------------------------------------------------------------------- packing

static void pack_panel(b_packed *out, const fused_job *job, int64_t column, int64_t columns,
                       int64_t panel) {
    const qg_fused_problem *p = job->p;
    fused_span span = fused_span_of(job, panel);
    for (int j = 0; j < STRIP; j++) {
        float values[PANEL] = {0};
        out->factor[j] = 1;
        if (j < columns) {
            load_values(values, &job->fb, fused_row(&p->b, column + j), span, p->pairs);
            if (p->b.scales)
                out->factor[j] = unit_change(&p->b, column + j, panel);
        }
        uint32_t word = sign_bits(values);
        int h = j / 8, g = j / 4 % 2, l = j / 2 % 2, i = j % 2;
        for (int s = 0; s * p->length < PANEL; s++)
            out->sign[s][8 * h + 4 * l + 2 * g + i] = fused_sub_signs(word, s, p->length);
        for (int e = 0; e < PANEL; e++)
            out->value[e][j] = values[e];
    }
}

// -------------------------------------------------------------------------------------- decoding

static void decode_b(b_panel *restrict out, const b_packed *restrict in, int least_exponent) {
    // Within lanes, pairs of words from natural order (lane l: columns 8 l ..) to the panel's.
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    for (int k = 0; k < PANEL; k++) {
        __m256i words[2];
        for (int i = 0; i < 2; i++) {
            __m256 value = _mm256_load_ps(in->value[k] + 8 * i);
            __m256i zero = zero_mask(value);
            widen(out->value[k] + 8 * i, value, zero, 1 + 0x1p-29);
            words[i] = exponent_words(value, zero, least_exponent, B_BIAS);
        }
        __m256i natural = _mm256_permute4x64_epi64(_mm256_packus_epi32(words[0], words[1]), 0xD8);
        // Pair 2 j + l of columns goes to pair 4 l + j.
        _mm256_store_si256((void *)out->exponent[k], _mm256_permutevar8x32_epi32(natural, order));
    }
}

static void decode_a_tile(a_element *out, a_side *side, const fused_job *job, int64_t row,
                          int64_t panel) {
    const qg_fused_problem *p = job->p;
    const qg_format_info *info = &job->fa;
    fused_span span = fused_span_of(job, panel);
    for (int r = 0; r < TILE; r++) {
        float values[PANEL] = {0};
        side->factor[r] = 1;
        if (row + r < p->m) {
            load_values(values, info, fused_row(&p->a, row + r), span, p->pairs);
            if (p->a.scales)
                side->factor[r] = unit_change(&p->a, row + r, panel);
        }
        uint32_t word = sign_bits(values);
        for (int s = 0; s * p->length < PANEL; s++)
            side->sign[s][r] = fused_sub_signs(word, s, p->length);
        for (int i = 0; i < PANEL; i += 8) {
            __m256 value = _mm256_loadu_ps(values + i);
            __m256i zero = zero_mask(value);
            __m256i words = exponent_words(value, zero, 1 - info->bias, A_BIAS);
            words = _mm256_or_si256(words, _mm256_slli_epi32(words, 16));
            double wide[8];
            _Alignas(32) uint32_t exponents[8];
            widen(wide, value, zero, 1);
            _mm256_store_si256((void *)exponents, words);
            for (int e = 0; e < 8; e++) {
                out[i + e].value[r] = wide[e];
                out[i + e].exponent[r] = exponents[e];
            }
        }
    }
}

// ---------------------------------------------------------------------------------------- kernel

FUSED_INLINE void exponent_pass(uint16_t fields[TILE][STRIP], const a_element *a, const uint16_t *b,
                                int length, __m256i least_words) {
    __m256i emax[TILE];
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
        emax[r] = least_words;
    for (int k = 0; k < length; k++) {
        __m256i eb = _mm256_load_si256((const void *)(b + k * STRIP));
#pragma GCC unroll 6
        for (int r = 0; r < TILE; r++) {
            __m256i ea = _mm256_set1_epi32((int)a[k].exponent[r]);
            emax[r] = _mm256_max_epi16(emax[r], _mm256_add_epi16(ea, eb));
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
        _mm256_store_si256((void *)fields[r], emax[r]);
}

// As in fused_f25_avx512.c; MXCSR rounds toward zero.
FUSED_INLINE __m256d start_value(__m256i merged, __m256i c, __m256i base) {
    __m256i exponent = _mm256_and_si256(c, _mm256_set1_epi64x(EXPONENT_FIELD));
    __m256i start = _mm256_max_epi32(merged, exponent);
    start = _mm256_add_epi64(start, _mm256_add_epi64(base, _mm256_srli_epi64(c, 63)));
    return _mm256_add_pd(_mm256_castsi256_pd(start), _mm256_castsi256_pd(c));
}

FUSED_INLINE __m256i end_value(__m256d sum) {
    __m256i start = _mm256_or_si256(
        _mm256_and_si256(_mm256_castpd_si256(sum), _mm256_set1_epi64x(EXPONENT_FIELD)),
        _mm256_set1_epi64x(HALF_BIT));
    __m256i c = _mm256_castpd_si256(_mm256_sub_pd(sum, _mm256_castsi256_pd(start)));
    return _mm256_or_si256(_mm256_and_si256(c, _mm256_set1_epi64x(KEPT_BITS)),
                           _mm256_set1_epi64x(STICKY));
}

FUSED_INLINE void tile_half(const a_element *a, const a_side *side, int s, const double *b,
                            const b_packed *packed, uint16_t fields[TILE][STRIP], int h,
                            double *sums, int length, int mode, __m256i base) {
    __m256d acc[TILE][2];
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++) {
        __m256i signs =
            _mm256_xor_si256(_mm256_set1_epi32((int)side->sign[s][r]),
                             _mm256_load_si256((const void *)(packed->sign[s] + HALF * h)));
        __m256i count = fused_population_count(signs);
        __m256i words = _mm256_load_si256((const void *)fields[r]), zero = _mm256_setzero_si256();
        __m256i field = h ? _mm256_unpackhi_epi16(zero, words) : _mm256_unpacklo_epi16(zero, words);
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            __m256i c = _mm256_load_si256((const void *)(sums + r * STRIP + 4 * g));
            if (mode == PAIRS && s == 0)
                c = _mm256_set1_epi64x(C_ZERO);
            if (mode == SCALED) {
                __m256d unit =
                    _mm256_mul_pd(_mm256_castsi256_pd(c), _mm256_set1_pd(side->factor[r]));
                unit = _mm256_mul_pd(unit, _mm256_load_pd(packed->factor + HALF * h + 4 * g));
                c = _mm256_castpd_si256(unit);
            }
            __m256i merged =
                g ? _mm256_unpackhi_epi32(count, field) : _mm256_unpacklo_epi32(count, field);
            acc[r][g] = start_value(merged, c, base);
        }
    }
    for (int k = 0; k < length; k++) {
        __m256d b0 = _mm256_load_pd(b + k * STRIP), b1 = _mm256_load_pd(b + k * STRIP + 4);
        // Keeps the compiler from loading them again for each of the six rows.
        __asm__("" : "+x"(b0), "+x"(b1));
#pragma GCC unroll 6
        for (int r = 0; r < TILE; r++) {
            __m256d ar = _mm256_broadcast_sd(&a[k].value[r]);
            acc[r][0] = _mm256_fmadd_pd(ar, b0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_pd(ar, b1, acc[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++)
            _mm256_store_si256((void *)(sums + r * STRIP + 4 * g), end_value(acc[r][g]));
}

FUSED_INLINE void tiles_pass(const a_element *a, const a_side *side, int64_t tiles,
                             const b_panel *b, const b_packed *packed, double *sums, int length,
                             int mode, __m256i base, __m256i least_words) {
    _Alignas(32) uint16_t fields[TILE][STRIP];
    for (int64_t t = 0; t < tiles; t++) {
        for (int s = 0; s * length < PANEL; s++) {
            exponent_pass(fields, a, b->exponent[s * length], length, least_words);
            for (int h = 0; h < STRIP / HALF; h++)
                tile_half(a, side + t, s, b->value[s * length] + HALF * h, packed, fields, h,
                          sums + HALF * h, length, mode, base);
            a += length;
        }
        sums += TILE * STRIP;
    }
}

// ------------------------------------------------------------------------------ sums in and out

static void start_sums(void *out, const float *c, int64_t stride, int64_t rows, int64_t columns,
                       int64_t padded_rows) {
    double *sums = out;
    for (int64_t r = 0; r < padded_rows; r++)
        for (int64_t j = 0; j < STRIP; j++) {
            double value = c && r < rows && j < columns ? (double)c[r * stride + j] : 0;
            int64_t bits;
            memcpy(&bits, &value, sizeof bits);
            bits = value == 0 ? C_ZERO : bits | STICKY;
            memcpy(&sums[r * STRIP + j], &bits, sizeof bits);
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
        for (int j = 0; j < STRIP; j += 4) {
            __m256d sum = _mm256_and_pd(_mm256_load_pd(sums + r * STRIP + j),
                                        _mm256_castsi256_pd(_mm256_set1_epi64x(KEPT_BITS)));
            sum = _mm256_mul_pd(_mm256_mul_pd(sum, _mm256_set1_pd(row_unit)),
                                _mm256_load_pd(unit + j));
            _mm_store_ps(out + r * STRIP + j, _mm256_cvtpd_ps(sum));
        }
    }
}

// ---------------------------------------------------------------------------------------- family

static vector words(uint16_t word) { return _mm256_set1_epi16((short)word); }

static vector start_base(int bits) {
    return _mm256_set1_epi64x((int64_t)(52 - bits) << 52 | HALF_BIT);
}

// The instruction's sums in binary64, then added to the running ones to nearest. They have 24 bits:
// their conversion is exact.
typedef struct pairs_room {
    b_panel b;
    double sums[ROWS_MAX * STRIP];
} pairs_room;

static void multiply_pairs(const fused_job *job, const void *a, const void *side, int64_t tiles,
                           const void *packed, void *room, void *sums) {
    pairs_room *own = room;
    multiply(job, a, side, tiles, packed, &own->b, own->sums);
    const __m256d kept = _mm256_castsi256_pd(_mm256_set1_epi64x(KEPT_BITS));
    float *main_sum = sums;
    _mm_setcsr(FUSED_MXCSR_NEAREST);
    for (int64_t i = 0; i < tiles * TILE * STRIP; i += 4) {
        __m128 sum = _mm256_cvtpd_ps(_mm256_and_pd(_mm256_load_pd(own->sums + i), kept));
        _mm_store_ps(main_sum + i, _mm_add_ps(_mm_load_ps(main_sum + i), sum));
    }
    _mm_setcsr(FUSED_MXCSR_TOWARD_ZERO);
}

enum { MXCSR = FUSED_MXCSR_TOWARD_ZERO, PAIRS_ROOM = sizeof(pairs_room) };

#include <fused_f25_run_internal.h>

static int cpu_has(void) { return fused_cpu_has_avx2(); }

const qg_fused_kernel qg_fused_f25_avx2 = {"f25_avx2", cpu_has, supports, workspace, run};
