// The F = 13 fused sums of Hopper wgmma (L = 32) and Ada mma (L = 16) FP8, in AVX2 FP32 lanes.
//
// The method of fused_f13_avx512.c with 8 lanes: 6 x 16 register tiles, an exponent pass of its own
// over 6 x 32, population counts by nibble table. AVX2 has no rounding in its instructions, so the
// kernel runs under MXCSR toward zero.
// Exact: the bits of qg_unit_panel_scalar.
enum { STRIP = 32, TILE = 6 };

#include <fused_f13_internal.h>

enum { HALF = 16 }; // columns of a register tile

// Exponent rows are in the order of the columns.

// -------------------------------------------------------------------------- packing and decoding

// Up to 32 codes; those beyond `depth` are zero.
static __m256i load_codes(const uint8_t *codes, int64_t depth) {
    if (depth >= PANEL)
        return _mm256_loadu_si256((const void *)codes);
    _Alignas(32) uint8_t bytes[PANEL] = {0};
    memcpy(bytes, codes, (size_t)depth);
    return _mm256_load_si256((const void *)bytes);
}

static void pack_panel(b_packed *out, const uint8_t *b, int64_t stride, int64_t columns,
                       int64_t depth, int length) {
    for (int j = 0; j < STRIP; j += 4) {
        __m256i r[4];
        for (int i = 0; i < 4; i++) {
            r[i] =
                j + i < columns ? load_codes(b + (j + i) * stride, depth) : _mm256_setzero_si256();
            uint32_t word = (uint32_t)_mm256_movemask_epi8(r[i]);
            for (int s = 0; s * length < PANEL; s++)
                out->sign[s][j + i] = fused_sub_signs(word, s, length);
        }
        // Four columns' bytes interleave to dwords, one per k; lanes hold k and k + 16.
        __m256i lo01 = _mm256_unpacklo_epi8(r[0], r[1]), hi01 = _mm256_unpackhi_epi8(r[0], r[1]);
        __m256i lo23 = _mm256_unpacklo_epi8(r[2], r[3]), hi23 = _mm256_unpackhi_epi8(r[2], r[3]);
        __m256i quad[4] = {_mm256_unpacklo_epi16(lo01, lo23), _mm256_unpackhi_epi16(lo01, lo23),
                           _mm256_unpacklo_epi16(hi01, hi23), _mm256_unpackhi_epi16(hi01, hi23)};
        for (int i = 0; i < 4; i++) {
            _Alignas(32) uint32_t dword[8];
            _mm256_store_si256((void *)dword, quad[i]);
            for (int e = 0; e < 4; e++) {
                memcpy(&out->code[4 * i + e][j], &dword[e], 4);
                memcpy(&out->code[4 * i + e + 16][j], &dword[e + 4], 4);
            }
        }
    }
}

// The constants that turn a format's codes to values and exponent bytes.
typedef struct decoder {
    __m256 scale; // undoes the shift of the magnitude into binary32's place, times 1 + bias
    __m128i shift;
    __m256i least_field;
} decoder;

static decoder make_decoder(const qg_format_info *info, float bias) {
    decoder d;
    __m256 power = _mm256_castsi256_ps(_mm256_set1_epi32((254 - info->bias) << 23));
    d.scale = _mm256_mul_ps(power, _mm256_set1_ps(bias));
    d.shift = _mm_cvtsi32_si128(23 - info->mbits);
    d.least_field = _mm256_set1_epi32(128 - info->bias);
    return d;
}

typedef struct decoders {
    decoder a, b;
} decoders;

static decoders make_decoders(const qg_format_info *fa, const qg_format_info *fb) {
    return (decoders){make_decoder(fa, 1), make_decoder(fb, 1 + 0x1p-16f)};
}

// 8 codes: values (zero: +-2^-110) and, in dwords, exponents + 96 (zero: 0). Exact.
FUSED_INLINE void decode8(__m128i codes, const decoder *d, __m256 *value, __m256i *exponent) {
    __m256i wide = _mm256_cvtepu8_epi32(codes);
    __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7F));
    __m256i sign = _mm256_slli_epi32(_mm256_andnot_si256(_mm256_set1_epi32(0x7F), wide), 24);
    __m256i zero = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
    __m256i shifted = _mm256_sll_epi32(magnitude, d->shift);
    __m256i bits = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(shifted), d->scale));
    __m256i field = _mm256_max_epi32(_mm256_srli_epi32(bits, 23), d->least_field);
    field = _mm256_add_epi32(field, _mm256_set1_epi32(EXPONENT_BIAS - 127));
    *exponent = _mm256_andnot_si256(zero, field);
    bits = _mm256_blendv_epi8(bits, _mm256_set1_epi32((127 - 110) << 23), zero);
    *value = _mm256_castsi256_ps(_mm256_or_si256(bits, sign));
}

static void decode_b(b_panel *restrict out, const b_packed *restrict in, const decoders *of) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int k = 0; k < PANEL; k++) {
        __m256i e[4];
        for (int i = 0; i < 4; i++) {
            __m256 value;
            decode8(_mm_loadl_epi64((const void *)(in->code[k] + 8 * i)), &of->b, &value, &e[i]);
            _mm256_store_ps(out->value[k] + 8 * i, value);
        }
        __m256i bytes =
            _mm256_packus_epi16(_mm256_packus_epi32(e[0], e[1]), _mm256_packus_epi32(e[2], e[3]));
        _mm256_store_si256((void *)out->exponent[k], _mm256_permutevar8x32_epi32(bytes, order));
    }
}

static void decode_a_tile(a_element *out, a_signs *signs, const uint8_t *a, int64_t stride,
                          int64_t rows, int64_t depth, int length, const decoders *of) {
    for (int r = 0; r < TILE; r++) {
        __m256i codes = r < rows ? load_codes(a + r * stride, depth) : _mm256_setzero_si256();
        uint32_t word = (uint32_t)_mm256_movemask_epi8(codes);
        for (int s = 0; s * length < PANEL; s++)
            signs->word[s][r] = fused_sub_signs(word, s, length);
        _Alignas(32) uint8_t bytes[PANEL];
        _mm256_store_si256((void *)bytes, codes);
        for (int i = 0; i < 4; i++) {
            __m256 value;
            __m256i exponent;
            decode8(_mm_loadl_epi64((const void *)(bytes + 8 * i)), &of->a, &value, &exponent);
            exponent = _mm256_mullo_epi32(exponent, _mm256_set1_epi32(0x01010101));
            _Alignas(32) float values[8];
            _Alignas(32) uint32_t exponents[8];
            _mm256_store_ps(values, value);
            _mm256_store_si256((void *)exponents, exponent);
            for (int e = 0; e < 8; e++) {
                out[8 * i + e].value[r] = values[e];
                out[8 * i + e].exponent[r] = exponents[e];
            }
        }
    }
}

// ---------------------------------------------------------------------------------------- kernel

// The exponent fields of 6 x 32 maxima over a sub-block.
FUSED_INLINE void exponent_pass(uint8_t fields[TILE][STRIP], const a_element *a, const uint8_t *b,
                                int length) {
    __m256i emax[TILE];
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
        emax[r] = _mm256_set1_epi8(SUM_LEAST);
    for (int k = 0; k < length; k++) {
        __m256i eb = _mm256_load_si256((const void *)(b + k * STRIP));
#pragma GCC unroll 6
        for (int r = 0; r < TILE; r++) {
            __m256i ea = _mm256_set1_epi32((int)a[k].exponent[r]);
            emax[r] = _mm256_max_epu8(emax[r], _mm256_add_epi8(ea, eb));
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
        _mm256_store_si256((void *)fields[r],
                           _mm256_sub_epi8(emax[r], _mm256_set1_epi8(SUM_TO_FIELD)));
}

// As in fused_f13_avx512.c; MXCSR rounds toward zero.
FUSED_INLINE __m256 start_value(__m256i field, __m256i c, __m256i signs, __m256i base) {
    __m256i e = _mm256_max_epi32(field, _mm256_and_si256(c, _mm256_set1_epi32(0x7F800000)));
    __m256i count = _mm256_add_epi32(fused_population_count(signs), _mm256_srli_epi32(c, 31));
    __m256i start = _mm256_add_epi32(_mm256_add_epi32(e, base), count);
    return _mm256_add_ps(_mm256_castsi256_ps(start), _mm256_castsi256_ps(c));
}

FUSED_INLINE __m256i end_value(__m256 sum) {
    __m256i start =
        _mm256_or_si256(_mm256_and_si256(_mm256_castps_si256(sum), _mm256_set1_epi32(0x7F800000)),
                        _mm256_set1_epi32(0x00400000));
    __m256i c = _mm256_castps_si256(_mm256_sub_ps(sum, _mm256_castsi256_ps(start)));
    return _mm256_or_si256(_mm256_and_si256(c, _mm256_set1_epi32(KEPT_BITS)),
                           _mm256_set1_epi32(STICKY));
}

FUSED_INLINE void tile_half(const a_element *a, const uint32_t signs[TILE], const float *b,
                            const uint32_t *b_signs, uint8_t fields[TILE][STRIP], int column,
                            float *sums, int length, __m256i base) {
    __m256 acc[TILE][2];
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
#pragma GCC unroll 2
        for (int q = 0; q < 2; q++) {
            __m256i field = _mm256_slli_epi32(
                _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(fields[r] + column + 8 * q))),
                23);
            __m256i x = _mm256_xor_si256(_mm256_set1_epi32((int)signs[r]),
                                         _mm256_load_si256((const void *)(b_signs + 8 * q)));
            __m256i c = _mm256_load_si256((const void *)(sums + r * STRIP + 8 * q));
            acc[r][q] = start_value(field, c, x, base);
        }
    for (int k = 0; k < length; k++) {
        __m256 b0 = _mm256_load_ps(b + k * STRIP), b1 = _mm256_load_ps(b + k * STRIP + 8);
        // Keeps the compiler from loading them again for each of the six rows.
        __asm__("" : "+x"(b0), "+x"(b1));
#pragma GCC unroll 6
        for (int r = 0; r < TILE; r++) {
            __m256 ar = _mm256_broadcast_ss(&a[k].value[r]);
            acc[r][0] = _mm256_fmadd_ps(ar, b0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(ar, b1, acc[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < TILE; r++)
#pragma GCC unroll 2
        for (int q = 0; q < 2; q++)
            _mm256_store_si256((void *)(sums + r * STRIP + 8 * q), end_value(acc[r][q]));
}

FUSED_INLINE void tiles_pass(const a_element *a, const a_signs *signs, int64_t tiles,
                             const b_panel *b, const b_packed *packed, float *sums, int length,
                             __m256i base) {
    _Alignas(32) uint8_t fields[TILE][STRIP];
    for (int64_t t = 0; t < tiles; t++) {
        for (int s = 0; s * length < PANEL; s++) {
            exponent_pass(fields, a, b->exponent[s * length], length);
            for (int column = 0; column < STRIP; column += HALF)
                tile_half(a, signs[t].word[s], b->value[s * length] + column,
                          packed->sign[s] + column, fields, column, sums + column, length, base);
            a += length;
        }
        sums += TILE * STRIP;
    }
}

// ------------------------------------------------------------------------------ sums in and out

static void start_sums(void *out, const float *c, int64_t stride, int64_t rows, int64_t columns,
                       int64_t padded_rows) {
    float *sums = out;
    for (int64_t r = 0; r < padded_rows; r++) {
        _Alignas(32) float line[STRIP] = {0};
        int given = c && r < rows;
        if (given)
            memcpy(line, c + r * stride, (size_t)columns * sizeof(float));
        for (int q = 0; q < STRIP; q += 8) {
            __m256i bits = _mm256_set1_epi32(C_ZERO);
            if (given)
                bits = _mm256_or_si256(_mm256_and_si256(_mm256_load_si256((const void *)(line + q)),
                                                        _mm256_set1_epi32(KEPT_BITS)),
                                       _mm256_set1_epi32(STICKY));
            _mm256_store_si256((void *)(sums + r * STRIP + q), bits);
        }
    }
}

static void finish_sums(const fused_job *job, void *sums, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, int64_t panel) {
    (void)job, (void)row, (void)column, (void)columns, (void)panel;
    float *at = sums;
    for (int64_t i = 0; i < rows * STRIP; i += 8)
        _mm256_store_ps(at + i, _mm256_and_ps(_mm256_load_ps(at + i),
                                              _mm256_castsi256_ps(_mm256_set1_epi32(KEPT_BITS))));
}

// ---------------------------------------------------------------------------------------- family

typedef __m256i vector;

static vector start_base(int bits) { return _mm256_set1_epi32((23 - bits) << 23 | 0x400000); }

enum { MXCSR = FUSED_MXCSR_TOWARD_ZERO };

#include <fused_f13_run_internal.h>

static int cpu_has(void) { return fused_cpu_has_avx2(); }

const qg_fused_kernel qg_fused_f13_avx2 = {"f13_avx2", cpu_has, supports, workspace, run};
