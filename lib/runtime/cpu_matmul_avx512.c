// The kernels of products for AVX-512 with VBMI. See cpu_matmul_kernels_internal.h.
// A table of 256 BF16 numbers lies in eight registers, low and high bytes apart: four byte permutes
// look up 64 codes of any format.
#include <cpu_matmul_rows_internal.h>

#include <immintrin.h>

typedef struct table_registers {
    __m512i low[4], high[4];
} table_registers;

static inline table_registers load_table(const matmul_table *t) {
    table_registers r;
    for (int i = 0; i < 4; i++) {
        r.low[i] = _mm512_loadu_si512(t->low + 64 * i);
        r.high[i] = _mm512_loadu_si512(t->high + 64 * i);
    }
    return r;
}

static inline __m512i look_up(const __m512i *table, __m512i codes, __mmask64 upper) {
    __m512i a = _mm512_permutex2var_epi8(table[0], codes, table[1]);
    __m512i b = _mm512_permutex2var_epi8(table[2], codes, table[3]);
    return _mm512_mask_blend_epi8(upper, a, b);
}

// The mask of the first `count` lanes of 32 or 64.
static inline __mmask64 first_64(int64_t count) {
    return count >= 64 ? ~0ull : count <= 0 ? 0 : ~0ull >> (64 - count);
}

static inline __mmask32 first_32(int64_t count) { return (__mmask32)first_64(count); }

// 64 codes to two vectors of 32. Unpacking works within 128-bit lanes: the codes are put into
// lanes so that it leaves them in order.
static inline void narrow_64(const table_registers *r, __m512i codes, __m512i out[2]) {
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    codes = _mm512_permutexvar_epi64(order, codes);
    __mmask64 upper = _mm512_movepi8_mask(codes);
    __m512i low = look_up(r->low, codes, upper), high = look_up(r->high, codes, upper);
    out[0] = _mm512_unpacklo_epi8(low, high);
    out[1] = _mm512_unpackhi_epi8(low, high);
}

static inline void narrow_row(const table_registers *r, const uint8_t *codes, int64_t count,
                              uint16_t *out) {
    __m512i v[2];
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        narrow_64(r, _mm512_loadu_si512(codes + i), v);
        _mm512_storeu_si512(out + i, v[0]);
        _mm512_storeu_si512(out + i + 32, v[1]);
    }
    int64_t rest = count - i;
    if (rest <= 0)
        return;
    narrow_64(r, _mm512_maskz_loadu_epi8(first_64(rest), codes + i), v);
    _mm512_mask_storeu_epi16(out + i, first_32(rest), v[0]);
    _mm512_mask_storeu_epi16(out + i + 32, first_32(rest - 32), v[1]);
}

static void narrow(const matmul_table *t, const uint8_t *codes, int64_t stride, int64_t rows,
                   int64_t count, uint16_t *out, int64_t out_stride) {
    table_registers r = load_table(t);
    for (int64_t row = 0; row < rows; row++)
        narrow_row(&r, codes + row * stride, count, out + row * out_stride);
}

// Two scales, each for 16 elements: eight dwords.
static inline __m512 pair_of_scales(float first, float second) {
    return _mm512_mask_blend_ps(0xff00, _mm512_set1_ps(first), _mm512_set1_ps(second));
}

// Even and odd elements apart, as binary32; exact products keep their low halves zero.
static inline __m512i scaled_32(__m512i v, __m512 scale) {
    const __m512i odd_half = _mm512_set1_epi32((int)0xffff0000u);
    __m512 even = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(v, 16)), scale);
    __m512 odd = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_and_si512(v, odd_half)), scale);
    return _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16),
                           _mm512_castps_si512(odd));
}

static void narrow_scaled(const matmul_table *t, const uint8_t *codes, int64_t count,
                          const float *scales, uint16_t *out) {
    table_registers r = load_table(t);
    __m512i v[2];
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        const float *s = scales + i / MATMUL_SCALED;
        narrow_64(&r, _mm512_loadu_si512(codes + i), v);
        _mm512_storeu_si512(out + i, scaled_32(v[0], pair_of_scales(s[0], s[1])));
        _mm512_storeu_si512(out + i + 32, scaled_32(v[1], pair_of_scales(s[2], s[3])));
    }
    int64_t rest = count - i;
    if (rest <= 0)
        return;
    __m512 s =
        _mm512_maskz_loadu_ps((__mmask16)((1u << (rest + MATMUL_SCALED - 1) / MATMUL_SCALED) - 1),
                              scales + i / MATMUL_SCALED);
    float last[16];
    _mm512_storeu_ps(last, s);
    narrow_64(&r, _mm512_maskz_loadu_epi8(first_64(rest), codes + i), v);
    _mm512_mask_storeu_epi16(out + i, first_32(rest),
                             scaled_32(v[0], pair_of_scales(last[0], last[1])));
    _mm512_mask_storeu_epi16(out + i + 32, first_32(rest - 32),
                             scaled_32(v[1], pair_of_scales(last[2], last[3])));
}

// A transpose of 16 x 16 pairs: dwords, qwords, then 128-bit lanes.
static inline void transpose_16(__m512i r[16]) {
    __m512i t[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // r[4 g + c]: lane q holds dword 4 q + c of rows 4 g .. 4 g + 3.
    for (int c = 0; c < 4; c++) {
        __m512i a = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
        __m512i b = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
        __m512i d = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
        __m512i e = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
        t[c] = _mm512_shuffle_i32x4(a, b, 0x88);
        t[8 + c] = _mm512_shuffle_i32x4(a, b, 0xdd);
        t[4 + c] = _mm512_shuffle_i32x4(d, e, 0x88);
        t[12 + c] = _mm512_shuffle_i32x4(d, e, 0xdd);
    }
    for (int i = 0; i < 16; i++)
        r[i] = t[i];
}

static void interleave(const uint16_t *rows, int64_t length, int64_t column, uint16_t *strip) {
    __m512i r[16];
    for (int64_t l = 0; l < length; l += MATMUL_GRAIN) {
        for (int i = 0; i < 16; i++)
            r[i] = _mm512_loadu_si512(rows + i * length + l);
        transpose_16(r);
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(strip + ((l / 2 + i) * MATMUL_STRIP + column) * 2, r[i]);
    }
}

const matmul_kernels qg_matmul_kernels_avx512 = {
    "avx512", narrow, narrow_scaled, interleave, matmul_add_scaled, matmul_finish_row,
};
