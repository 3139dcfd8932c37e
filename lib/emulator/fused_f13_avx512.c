// The F = 13 fused sums of Hopper wgmma (L = 32) and Ada mma (L = 16) FP8, in AVX-512 FP32 lanes.
//
// Owns the packing, decoding and tiling of E4M3 and E5M2 operands and the biased floor FMA:
// an accumulator that starts at 1.5 * 2^23 quanta has one quantum as its ulp, so an FMA toward zero
// multiplies, aligns, floors and adds. B is stored as b * (1 + 2^-16): a positive product then
// floors as it would without the bias, since 225 * 2^7 * 2^-16 < 1, and a negative one floors to
// -trunc(X) - 1 always. The sum is short by the number of negative products, which is
// popcount(signs of a XOR signs of b), added to the bits of the start value beforehand.
// test_fused_lemma.c proves it for every code pair, shift and sign.
// Exact: the bits of qg_unit_panel_scalar.
enum { STRIP = 64, TILE = 4 };

#include <fused_f13_internal.h>

enum { TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC };

// Byte 16 l + 4 q + i of an exponent row belongs to column 16 q + 4 l + i, so that one in-lane
// shuffle gives the exponents of 16 columns.

// --------------------------------------------------------------------------------------- packing

// 64 columns of 32 codes to k-major rows in b_panel's byte order. Dword (l, q) of row k, in lane l,
// holds columns 16 q + 4 l .. + 3.
static void pack_panel(b_packed *out, const uint8_t *b, int64_t stride, int64_t columns,
                       int64_t depth, int length) {
    _Alignas(64) uint8_t source[STRIP][PANEL];
    if (columns < STRIP || depth < PANEL)
        memset(source, 0, sizeof source);
    for (int64_t j = 0; j < fused_least(columns, STRIP); j++) {
        if (depth >= PANEL)
            _mm256_store_si256((__m256i *)source[j],
                               _mm256_loadu_si256((const void *)(b + j * stride)));
        else
            memcpy(source[j], b + j * stride, (size_t)depth);
    }
    for (int j = 0; j < STRIP; j++) {
        uint32_t word =
            (uint32_t)_mm256_movemask_epi8(_mm256_load_si256((const __m256i *)source[j]));
        for (int s = 0; s * length < PANEL; s++)
            out->sign[s][j] = fused_sub_signs(word, s, length);
    }
    // Four columns' 32 bytes interleave to 32 dwords, one per k: bytes, then words.
    for (int j = 0; j < STRIP; j += 4) {
        int q = j / 16, l = j / 4 % 4;
        for (int half = 0; half < 2; half++) {
            __m128i r0 = _mm_load_si128((const __m128i *)(source[j] + 16 * half));
            __m128i r1 = _mm_load_si128((const __m128i *)(source[j + 1] + 16 * half));
            __m128i r2 = _mm_load_si128((const __m128i *)(source[j + 2] + 16 * half));
            __m128i r3 = _mm_load_si128((const __m128i *)(source[j + 3] + 16 * half));
            __m128i lo01 = _mm_unpacklo_epi8(r0, r1), hi01 = _mm_unpackhi_epi8(r0, r1);
            __m128i lo23 = _mm_unpacklo_epi8(r2, r3), hi23 = _mm_unpackhi_epi8(r2, r3);
            __m128i quad[4] = {_mm_unpacklo_epi16(lo01, lo23), _mm_unpackhi_epi16(lo01, lo23),
                               _mm_unpacklo_epi16(hi01, hi23), _mm_unpackhi_epi16(hi01, hi23)};
            _Alignas(16) uint32_t dword[16];
            for (int i = 0; i < 4; i++)
                _mm_store_si128((__m128i *)(dword + 4 * i), quad[i]);
            for (int i = 0; i < 16; i++)
                memcpy(&out->code[16 * half + i][16 * l + 4 * q], &dword[i], 4);
        }
    }
}

// -------------------------------------------------------------------------------------- decoding

// Lookup tables over the 7 magnitude bits: the exponent byte and bytes 3, 2 and 0 of
// b * (1 + 2^-16); byte 1 is always 0, since b has at most 4 significant bits.
typedef struct decoders {
    qg_format_info a;
    __m512i exponent[2], byte3[2], byte2[2], byte0[2]; // of B
} decoders;

static decoders make_decoders(const qg_format_info *fa, const qg_format_info *info) {
    uint8_t exponent[128], byte3[128], byte2[128], byte0[128];
    for (int code = 0; code < 128; code++) {
        int field = code >> info->mbits, fraction = code & ((1 << info->mbits) - 1);
        int e = (field ? field : 1) - info->bias;
        int significand = fraction | (field != 0) << info->mbits;
        union {
            float value;
            uint32_t bits;
        } scale = {.bits = (uint32_t)(127 + e - info->mbits) << 23}, biased;
        biased.value = (float)significand * (1 + 0x1p-16f) * scale.value;
        if (significand == 0)
            biased.value = 0x1p-110f;
        exponent[code] = (uint8_t)(significand ? e + EXPONENT_BIAS : 0);
        byte3[code] = (uint8_t)(biased.bits >> 24);
        byte2[code] = (uint8_t)(biased.bits >> 16);
        byte0[code] = (uint8_t)biased.bits;
    }
    decoders t = {.a = *fa};
    for (int i = 0; i < 2; i++) {
        t.exponent[i] = _mm512_loadu_si512(exponent + 64 * i);
        t.byte3[i] = _mm512_loadu_si512(byte3 + 64 * i);
        t.byte2[i] = _mm512_loadu_si512(byte2 + 64 * i);
        t.byte0[i] = _mm512_loadu_si512(byte0 + 64 * i);
    }
    return t;
}

static void decode_b(b_panel *restrict out, const b_packed *restrict in, const decoders *t) {
    const __m512i zero = _mm512_setzero_si512(), sign = _mm512_set1_epi8((char)0x80);
    for (int k = 0; k < PANEL; k++) {
        __m512i code = _mm512_load_si512(in->code[k]);
        __m512i b3 = _mm512_permutex2var_epi8(t->byte3[0], code, t->byte3[1]);
        __m512i b2 = _mm512_permutex2var_epi8(t->byte2[0], code, t->byte2[1]);
        __m512i b0 = _mm512_permutex2var_epi8(t->byte0[0], code, t->byte0[1]);
        b3 = _mm512_ternarylogic_epi32(b3, code, sign, 0xF8); // b3 | (code & sign)
        _mm512_store_si512(out->exponent[k],
                           _mm512_permutex2var_epi8(t->exponent[0], code, t->exponent[1]));
        __m512i low0 = _mm512_unpacklo_epi8(b0, zero), low1 = _mm512_unpackhi_epi8(b0, zero);
        __m512i high0 = _mm512_unpacklo_epi8(b2, b3), high1 = _mm512_unpackhi_epi8(b2, b3);
        _mm512_store_si512(out->value[k], _mm512_unpacklo_epi16(low0, high0));
        _mm512_store_si512(out->value[k] + 16, _mm512_unpackhi_epi16(low0, high0));
        _mm512_store_si512(out->value[k] + 32, _mm512_unpacklo_epi16(low1, high1));
        _mm512_store_si512(out->value[k] + 48, _mm512_unpackhi_epi16(low1, high1));
    }
}

// 16 codes of a row of A: values (zero: +-2^-110) and exponent bytes, repeated. The magnitude
// shifted into binary32's place is the value but for a power of two, subnormals included.
FUSED_INLINE void decode_a16(__m128i codes, const qg_format_info *info, __m512i *value,
                             __m512i *exponent) {
    const __m512i repeat = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0);
    __m512i wide = _mm512_cvtepu8_epi32(codes);
    __m512i magnitude = _mm512_and_si512(wide, _mm512_set1_epi32(0x7F));
    __m512i sign = _mm512_slli_epi32(_mm512_andnot_si512(_mm512_set1_epi32(0x7F), wide), 24);
    __mmask16 zero = _mm512_testn_epi32_mask(magnitude, magnitude);
    __m512 scale = _mm512_castsi512_ps(_mm512_set1_epi32((254 - info->bias) << 23));
    __m512 scaled = _mm512_mul_ps(
        _mm512_castsi512_ps(_mm512_sll_epi32(magnitude, _mm_cvtsi32_si128(23 - info->mbits))),
        scale);
    __m512i bits = _mm512_castps_si512(scaled);
    __m512i field =
        _mm512_max_epi32(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(128 - info->bias));
    field = _mm512_add_epi32(field, _mm512_set1_epi32(EXPONENT_BIAS - 127));
    bits = _mm512_mask_mov_epi32(bits, zero, _mm512_set1_epi32((127 - 110) << 23));
    *value = _mm512_or_si512(bits, sign);
    *exponent = _mm512_shuffle_epi8(_mm512_maskz_mov_epi32((__mmask16)~zero, field), repeat);
}

FUSED_INLINE void transpose4(__m512i r[4]) {
    __m512i t0 = _mm512_unpacklo_epi32(r[0], r[1]), t1 = _mm512_unpackhi_epi32(r[0], r[1]);
    __m512i t2 = _mm512_unpacklo_epi32(r[2], r[3]), t3 = _mm512_unpackhi_epi32(r[2], r[3]);
    r[0] = _mm512_unpacklo_epi64(t0, t2), r[1] = _mm512_unpackhi_epi64(t0, t2);
    r[2] = _mm512_unpacklo_epi64(t1, t3), r[3] = _mm512_unpackhi_epi64(t1, t3);
}

// One tile of A, 4 rows x 32 elements; rows or elements beyond the matrix are zero codes.
static void decode_a_tile(a_element *out, a_signs *signs, const uint8_t *a, int64_t stride,
                          int64_t rows, int64_t depth, int length, const decoders *of) {
    __m256i codes[TILE];
    __mmask32 mask = depth >= PANEL ? 0xFFFFFFFFu : (__mmask32)((1u << depth) - 1);
    for (int r = 0; r < TILE; r++) {
        codes[r] =
            r < rows ? _mm256_maskz_loadu_epi8(mask, a + r * stride) : _mm256_setzero_si256();
        uint32_t word = (uint32_t)_mm256_movemask_epi8(codes[r]);
        for (int s = 0; s * length < PANEL; s++)
            signs->word[s][r] = fused_sub_signs(word, s, length);
    }
    for (int half = 0; half < 2; half++) {
        __m512i value[TILE], exponent[TILE];
        for (int r = 0; r < TILE; r++)
            decode_a16(half ? _mm256_extracti128_si256(codes[r], 1)
                            : _mm256_castsi256_si128(codes[r]),
                       &of->a, &value[r], &exponent[r]);
        transpose4(value);
        transpose4(exponent);
        // value[j] holds in lane l the four rows of k = 4 l + j.
        for (int j = 0; j < 4; j++) {
            a_element *e = out + 16 * half + j;
#define STORE_LANE(l)                                                                              \
    _mm_store_si128((__m128i *)e[4 * (l)].value, _mm512_extracti32x4_epi32(value[j], l));          \
    _mm_store_si128((__m128i *)e[4 * (l)].exponent, _mm512_extracti32x4_epi32(exponent[j], l))
            STORE_LANE(0);
            STORE_LANE(1);
            STORE_LANE(2);
            STORE_LANE(3);
#undef STORE_LANE
        }
    }
}

// ---------------------------------------------------------------------------------------- kernel

FUSED_INLINE void exponent_step(__m512i emax[TILE], const a_element *a, const uint8_t *b) {
    __m512i eb = _mm512_load_si512(b);
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++) {
        __m512i ea = _mm512_set1_epi32((int)a->exponent[r]);
        emax[r] = _mm512_max_epu8(emax[r], _mm512_add_epi8(ea, eb));
    }
}

// The start value of one accumulator register, 1.5 * 2^23 quanta plus one per negative term, plus
// the running sum c. c's lowest bit is set: an addition then floors a negative c one too low, like
// a negative product, which the count includes.
FUSED_INLINE __m512 start_value(__m512i field, __m512i c, __m512i sign_a, __m512i sign_b,
                                __m512i half_base) {
    __m512i e = _mm512_max_epi32(field, _mm512_and_si512(c, _mm512_set1_epi32(0x7F800000)));
    __m512i base = _mm512_shldi_epi32(half_base, c, 1); // base + (c < 0)
    __m512i count = _mm512_popcnt_epi32(_mm512_xor_si512(sign_a, sign_b));
    __m512i start = _mm512_add_epi32(_mm512_add_epi32(e, base), count);
    return _mm512_add_round_ps(_mm512_castsi512_ps(start), _mm512_castsi512_ps(c), TOWARD_ZERO);
}

// The running sum from an accumulator: less its start value (exact), 14 bits, sticky bit set.
FUSED_INLINE __m512i end_value(__m512 sum) {
    __m512i start =
        _mm512_ternarylogic_epi32(_mm512_castps_si512(sum), _mm512_set1_epi32(0x7F800000),
                                  _mm512_set1_epi32(0x00400000), 0xEA);
    __m512 c = _mm512_sub_round_ps(sum, _mm512_castsi512_ps(start), TOWARD_ZERO);
    return _mm512_ternarylogic_epi32(_mm512_castps_si512(c), _mm512_set1_epi32(KEPT_BITS),
                                     _mm512_set1_epi32(STICKY), 0xEA);
}

// All row tiles of a chunk against one decoded panel of B. The exponent pass of the next sub-block
// runs inside the FMA loop of this one, on the vector pipes that the FMAs leave idle.
FUSED_INLINE void tiles_pass(const a_element *a, const a_signs *signs, int64_t tiles,
                             const b_panel *b, const b_packed *packed, float *sums, int length,
                             __m512i half_base) {
    const int subs = PANEL / length;
    const __m512i to_field = _mm512_set1_epi8(SUM_TO_FIELD);
    // In-lane shuffles that widen bytes 4 q .. 4 q + 3 of each lane to dwords.
    __m512i pattern[4];
    for (int q = 0; q < 4; q++)
        pattern[q] = _mm512_add_epi32(
            _mm512_set4_epi32((int)0x80808003, (int)0x80808002, (int)0x80808001, (int)0x80808000),
            _mm512_set1_epi32(4 * q));
    const __m512i sum_least = _mm512_set1_epi8(SUM_LEAST);
    __m512i emax[TILE] = {sum_least, sum_least, sum_least, sum_least};
    for (int k = 0; k < length; k++)
        exponent_step(emax, a + k, b->exponent[k]);
    for (int64_t t = 0; t < tiles; t++) {
#pragma GCC unroll 4
        for (int s = 0; s < subs; s++) {
            __m512 acc[TILE][4];
#pragma GCC unroll 4
            for (int r = 0; r < TILE; r++) {
                __m512i bytes = _mm512_sub_epi8(emax[r], to_field);
                __m512i sign_a = _mm512_set1_epi32((int)signs[t].word[s][r]);
#pragma GCC unroll 4
                for (int q = 0; q < 4; q++) {
                    __m512i field = _mm512_slli_epi32(_mm512_shuffle_epi8(bytes, pattern[q]), 23);
                    acc[r][q] =
                        start_value(field, _mm512_load_si512(sums + r * STRIP + 16 * q), sign_a,
                                    _mm512_load_si512(packed->sign[s] + 16 * q), half_base);
                }
                emax[r] = sum_least;
            }
            const float *bv = b->value[s * length];
            const uint8_t *be = b->exponent[(s + 1) % subs * length];
            for (int k = 0; k < length; k++) {
                __m512 bq[4];
#pragma GCC unroll 4
                for (int q = 0; q < 4; q++) {
                    bq[q] = _mm512_load_ps(bv + 16 * q);
                    // Keeps the compiler from loading it again for each of the four rows.
                    __asm__("" : "+v"(bq[q]));
                }
#pragma GCC unroll 4
                for (int r = 0; r < TILE; r++) {
                    __m512 ar = _mm512_set1_ps(a[k].value[r]);
#pragma GCC unroll 4
                    for (int q = 0; q < 4; q++)
                        acc[r][q] = _mm512_fmadd_round_ps(ar, bq[q], acc[r][q], TOWARD_ZERO);
                }
                exponent_step(emax, a + length + k, be);
                bv += STRIP;
                be += STRIP;
            }
            a += length;
#pragma GCC unroll 4
            for (int r = 0; r < TILE; r++)
#pragma GCC unroll 4
                for (int q = 0; q < 4; q++)
                    _mm512_store_si512(sums + r * STRIP + 16 * q, end_value(acc[r][q]));
        }
        sums += TILE * STRIP;
    }
}

// ------------------------------------------------------------------------------ sums in and out

static void start_sums(void *out, const float *c, int64_t stride, int64_t rows, int64_t columns,
                       int64_t padded_rows) {
    float *sums = out;
    for (int64_t r = 0; r < padded_rows; r++)
        for (int q = 0; q < 4; q++) {
            __m512i bits = _mm512_set1_epi32(C_ZERO);
            if (c && r < rows) {
                // Clearing C's ten low bits changes nothing: a quantum is never below C's own
                // fourteenth bit.
                int64_t left = fused_least(columns - 16 * q, 16);
                __mmask16 mask = (__mmask16)(left > 0 ? (1u << left) - 1 : 0);
                bits = _mm512_maskz_loadu_epi32(mask, c + r * stride + 16 * q);
                bits = _mm512_ternarylogic_epi32(bits, _mm512_set1_epi32(KEPT_BITS),
                                                 _mm512_set1_epi32(STICKY), 0xEA);
            }
            _mm512_store_si512(sums + r * STRIP + 16 * q, bits);
        }
}

static void finish_sums(const fused_job *job, void *sums, int64_t row, int64_t rows, int64_t column,
                        int64_t columns, int64_t panel) {
    (void)job, (void)row, (void)column, (void)columns, (void)panel;
    float *at = sums;
    for (int64_t i = 0; i < rows * STRIP; i += 16)
        _mm512_store_si512(
            at + i, _mm512_and_si512(_mm512_load_si512(at + i), _mm512_set1_epi32(KEPT_BITS)));
}

// ---------------------------------------------------------------------------------------- family

typedef __m512i vector;

// Half of the start value's bits: start_value shifts the sign of c in.
static vector start_base(int bits) { return _mm512_set1_epi32((23 - bits) << 22 | 0x200000); }

enum { MXCSR = FUSED_MXCSR_NEAREST };

#include <fused_f13_run_internal.h>

static int cpu_has(void) {
    return fused_cpu_has_avx512() && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512vpopcntdq");
}

const qg_fused_kernel qg_fused_f13_avx512 = {"f13_avx512", cpu_has, supports, workspace, run};
