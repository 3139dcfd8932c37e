// The kernels with AVX2, FMA and F16C. 32 elements a step; what is left of a group is padded. The
// rounding is that of cpu_kernels_avx512.c.
#include <immintrin.h>

#define LANES 8
#include <cpu_lanes_internal.h>
#include <qg_pack.h>

enum { STEP = 32 };

// ------------------------------------------------------------------------- what the lanes ask for

INLINE lanes_u lanes_max(lanes_u a, lanes_u b) {
    return (lanes_u)_mm256_max_epu32((__m256i)a, (__m256i)b);
}

INLINE lanes_u lanes_max16(lanes_u a, lanes_u b) {
    return (lanes_u)_mm256_max_epu16((__m256i)a, (__m256i)b);
}

INLINE lanes_u lanes_of_fp16(const uint16_t *x) {
    return (lanes_u)_mm256_cvtph_ps(_mm_loadu_si128((const void *)x));
}

// Four vectors to one: in each 128 bits, the maxima of theirs.
INLINE __m256i maxima4(const lanes_u *v) {
    __m256i a = (__m256i)v[0], b = (__m256i)v[1], c = (__m256i)v[2], d = (__m256i)v[3];
    __m256i ab = _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    __m256i cd = _mm256_max_epu32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_max_epu32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

INLINE lanes_u lanes_tree(const lanes_u *v) {
    __m256i first = maxima4(v), second = maxima4(v + 4);
    return (lanes_u)_mm256_max_epu32(_mm256_permute2x128_si256(first, second, 0x20),
                                     _mm256_permute2x128_si256(first, second, 0x31));
}

INLINE __m256i maxima4_16(const lanes_u *v) {
    __m256i a = (__m256i)v[0], b = (__m256i)v[1], c = (__m256i)v[2], d = (__m256i)v[3];
    __m256i ab = _mm256_max_epu16(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    __m256i cd = _mm256_max_epu16(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    return _mm256_max_epu16(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

INLINE lanes_u lanes_tree16(const lanes_u *v) {
    __m256i first = maxima4_16(v), second = maxima4_16(v + 4);
    return (lanes_u)_mm256_max_epu16(_mm256_permute2x128_si256(first, second, 0x20),
                                     _mm256_permute2x128_si256(first, second, 0x31));
}

INLINE lanes_u lanes_zip(lanes_u a, lanes_u b) {
    return (lanes_u)_mm256_max_epu16(_mm256_unpacklo_epi16((__m256i)a, (__m256i)b),
                                     _mm256_unpackhi_epi16((__m256i)a, (__m256i)b));
}

INLINE void lanes_store_quads(lanes_w low, lanes_w high, uint32_t *words) {
    _mm256_storeu_si256((void *)words, _mm256_unpacklo_epi64((__m256i)low, (__m256i)high));
    _mm256_storeu_si256((void *)(words + 8), _mm256_unpackhi_epi64((__m256i)low, (__m256i)high));
}

INLINE lanes_u lanes_pick(const float *table, lanes_u index) {
    return (lanes_u)_mm256_i32gather_ps(table, (__m256i)index, 4);
}

INLINE lanes_w lanes_multiply(lanes_w a, uint32_t b) {
    return (lanes_w)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
}

// ------------------------------------------------------------------------------------------ casts

typedef struct cast_constants {
    __m256 high, low, scale, anchor;
    __m256i high_bits, least, field, magnitude, fold, mask;
    __m128i sign_shift;
    bool keeps_no_sign;
} cast_constants;

INLINE cast_constants constants_of(const cpu_cast *c, bool is_int) {
    cast_constants k;
    k.high = _mm256_set1_ps(c->high);
    k.high_bits = _mm256_castps_si256(k.high);
    k.low = _mm256_set1_ps(c->low);
    k.scale = _mm256_set1_ps(c->scale);
    k.least = _mm256_castps_si256(_mm256_set1_ps(c->least));
    k.anchor = _mm256_castsi256_ps(_mm256_set1_epi32((int)((127u << 23) + c->add)));
    k.field = _mm256_set1_epi32(0x7f800000);
    k.magnitude = _mm256_set1_epi32(0x7fffffff);
    k.fold = _mm256_set1_epi32((int)c->fold);
    k.mask = _mm256_set1_epi8((char)(is_int ? c->encoder.mask : c->sign_mask));
    k.sign_shift = _mm_cvtsi32_si128(c->sign_shift);
    k.keeps_no_sign = c->keeps_no_sign;
    return k;
}

INLINE void load_step(int type, const void *x, __m256 v[4]) {
    const uint16_t *narrow = x;
    for (int j = 0; j < 4; j++) {
        if (type == INPUT_FP32) {
            v[j] = _mm256_loadu_ps((const float *)x + 8 * j);
            continue;
        }
        __m128i half = _mm_loadu_si128((const void *)(narrow + 8 * j));
        v[j] = type == INPUT_FP16
                   ? _mm256_cvtph_ps(half)
                   : _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    }
}

// Elements lie as packing left them: in each 128 bits four of every vector.
INLINE __m256i in_order(__m256i bytes) {
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Byte 1 of every lane to place j of four.
INLINE __m256i spread(__m256i sum, int j) {
    const char no = -1, a = 1, b = 5, c = 9, d = 13;
    __m128i index =
        j == 0   ? _mm_setr_epi8(a, b, c, d, no, no, no, no, no, no, no, no, no, no, no, no)
        : j == 1 ? _mm_setr_epi8(no, no, no, no, a, b, c, d, no, no, no, no, no, no, no, no)
        : j == 2 ? _mm_setr_epi8(no, no, no, no, no, no, no, no, a, b, c, d, no, no, no, no)
                 : _mm_setr_epi8(no, no, no, no, no, no, no, no, no, no, no, no, a, b, c, d);
    return _mm256_shuffle_epi8(sum, _mm256_broadcastsi128_si256(index));
}

INLINE __m256i float_codes(const cast_constants *k, const __m256 v[4]) {
    __m256i part[4], bits[4];
    for (int j = 0; j < 4; j++) {
        bits[j] = _mm256_castps_si256(v[j]);
        __m256i magnitude = _mm256_min_epu32(_mm256_and_si256(bits[j], k->magnitude), k->high_bits);
        __m256i power = _mm256_max_epu32(_mm256_and_si256(magnitude, k->field), k->least);
        // power * anchor is exact: this is one addition, of a number anchored at |v|'s binade.
        __m256 rounded =
            _mm256_fmadd_ps(_mm256_castsi256_ps(power), k->anchor, _mm256_castsi256_ps(magnitude));
        part[j] = spread(_mm256_madd_epi16(_mm256_castps_si256(rounded), k->fold), j);
    }
    __m256i codes =
        _mm256_or_si256(_mm256_or_si256(part[0], part[1]), _mm256_or_si256(part[2], part[3]));
    __m256i signs = _mm256_packs_epi16(_mm256_packs_epi32(bits[0], bits[1]),
                                       _mm256_packs_epi32(bits[2], bits[3]));
    signs = _mm256_and_si256(_mm256_srl_epi16(signs, k->sign_shift), k->mask);
    if (k->keeps_no_sign)
        signs = _mm256_andnot_si256(_mm256_cmpeq_epi8(codes, _mm256_setzero_si256()), signs);
    return in_order(_mm256_or_si256(codes, signs));
}

INLINE __m256i int_codes(const cast_constants *k, const __m256 v[4]) {
    __m256i rounded[4];
    for (int j = 0; j < 4; j++) {
        __m256 scaled = _mm256_max_ps(_mm256_mul_ps(v[j], k->scale), k->low);
        rounded[j] = _mm256_cvtps_epi32(_mm256_min_ps(scaled, k->high));
    }
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(rounded[0], rounded[1]),
                                       _mm256_packs_epi32(rounded[2], rounded[3]));
    return in_order(_mm256_and_si256(bytes, k->mask));
}

static __attribute__((noinline)) void patch_nan(__m256 v0, __m256 v1, __m256 v2, __m256 v3,
                                                uint8_t nan, uint8_t *codes) {
    const __m256 v[4] = {v0, v1, v2, v3};
    for (int j = 0; j < 4; j++) {
        unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(v[j], v[j], _CMP_UNORD_Q));
        for (int lane = 0; lane < 8; lane++)
            if (mask >> lane & 1)
                codes[8 * j + lane] = nan;
    }
}

INLINE void cast_step(const cast_constants *k, const cpu_cast *c, int type, int how, bool is_int,
                      const void *x, __m256 first, __m256 second, uint8_t *codes) {
    __m256 v[4];
    load_step(type, x, v);
    for (int j = 0; j < 4 && how != APPLY_NOTHING; j++) {
        __m256 operand = j < 2 ? first : second;
        v[j] = how == APPLY_DIVIDE ? _mm256_div_ps(v[j], operand) : _mm256_mul_ps(v[j], operand);
    }
    _mm256_storeu_si256((void *)codes, is_int ? int_codes(k, v) : float_codes(k, v));
    __m256 odd = _mm256_or_ps(_mm256_cmp_ps(v[0], v[1], _CMP_UNORD_Q),
                              _mm256_cmp_ps(v[2], v[3], _CMP_UNORD_Q));
    if (__builtin_expect(_mm256_movemask_ps(odd) != 0, 0))
        patch_nan(v[0], v[1], v[2], v[3], c->nan_code, codes);
}

INLINE void fetch(int type, const void *x, int64_t ahead) {
    if (ahead == 0)
        return;
    for (int line = 0; line < (type == INPUT_FP32 ? 2 : 1); line++)
        _mm_prefetch((const char *)x + ahead + 64 * line, _MM_HINT_NTA);
}

// Fewer elements than a step.
INLINE void cast_rest(const cast_constants *k, const cpu_cast *c, int type, int how, bool is_int,
                      const void *x, int64_t count, __m256 first, __m256 second, uint8_t *codes) {
    float padded[STEP] = {0};
    uint8_t result[STEP];
    memcpy(padded, x, (size_t)count * (type == INPUT_FP32 ? 4 : 2));
    cast_step(k, c, type, how, is_int, padded, first, second, result);
    memcpy(codes, result, (size_t)count);
}

INLINE void cast_groups16(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                          int64_t count, const float *operand, int64_t ahead, uint8_t *codes) {
    cast_constants k = constants_of(c, is_int);
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP, operand += 2) {
        fetch(type, cpu_at(type, x, i), ahead);
        cast_step(&k, c, type, how, is_int, cpu_at(type, x, i), _mm256_set1_ps(operand[0]),
                  _mm256_set1_ps(operand[1]), codes + i);
    }
    if (i < count)
        cast_rest(&k, c, type, how, is_int, cpu_at(type, x, i), count - i,
                  _mm256_set1_ps(operand[0]), _mm256_set1_ps(count - i > 16 ? operand[1] : 1.0f),
                  codes + i);
}

INLINE void cast_groups(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                        int64_t count, int64_t columns, const float *operand, int64_t ahead,
                        uint8_t *codes) {
    cast_constants k = constants_of(c, is_int);
    for (int64_t i = 0; i < count; operand++) {
        int64_t end = i + columns < count ? i + columns : count;
        __m256 o = _mm256_set1_ps(*operand);
        for (; i + STEP <= end; i += STEP) {
            fetch(type, cpu_at(type, x, i), ahead);
            cast_step(&k, c, type, how, is_int, cpu_at(type, x, i), o, o, codes + i);
        }
        if (i < end)
            cast_rest(&k, c, type, how, is_int, cpu_at(type, x, i), end - i, o, o, codes + i);
        i = end;
    }
}

INLINE void cast_run(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                     int64_t count, int64_t columns, const float *operand, int64_t ahead,
                     uint8_t *codes) {
    if (columns == 32)
        cast_groups(c, type, how, is_int, x, count, 32, operand, ahead, codes);
    else if (columns == 16)
        cast_groups16(c, type, how, is_int, x, count, operand, ahead, codes);
    else
        cast_groups(c, type, how, is_int, x, count, columns, operand, ahead, codes);
}

#include <cpu_lanes_cast_internal.h>

// --------------------------------------------------------------------------------------- decoding

INLINE __m256 decoded(const cpu_decode *d, const uint8_t *codes, __m256 x) {
    __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)codes));
    __m256 v = _mm256_mul_ps(_mm256_i32gather_ps(d->values, index, 4), x);
    __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)), is_nan);
}

static void decode(const cpu_decode *d, const uint8_t *codes, int64_t count, int64_t columns,
                   const float *x, int64_t ahead, float *q) {
    (void)ahead;
    for (int64_t i = 0; i < count; x++) {
        int64_t end = i + columns < count ? i + columns : count;
        __m256 all = _mm256_set1_ps(*x);
        for (; i + 8 <= end; i += 8)
            _mm256_storeu_ps(q + i, decoded(d, codes + i, all));
        for (; i < end; i++) {
            float value = d->values[codes[i]] * *x;
            q[i] = value == value ? value : qg_float_of_bits(0x7fffffffu);
        }
    }
}

// ---------------------------------------------------------------------------------------- packing

static void pack4(const uint8_t *codes, int64_t count, uint8_t *packed) {
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m256i c =
            _mm256_and_si256(_mm256_loadu_si256((const void *)(codes + i)), _mm256_set1_epi8(15));
        __m256i pairs = _mm256_maddubs_epi16(c, _mm256_set1_epi16(0x1001)); // low + 16 high
        __m256i bytes = _mm256_packus_epi16(pairs, pairs);
        bytes = _mm256_permute4x64_epi64(bytes, 0x08);
        _mm_storeu_si128((void *)(packed + i / 2), _mm256_castsi256_si128(bytes));
    }
    qg_pack4(codes + i, count - i, packed + i / 2);
}

static void unpack4(const uint8_t *packed, int64_t count, uint8_t *codes) {
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m256i w = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(packed + i / 2)));
        w = _mm256_or_si256(w, _mm256_slli_epi16(w, 4));
        _mm256_storeu_si256((void *)(codes + i), _mm256_and_si256(w, _mm256_set1_epi8(15)));
    }
    qg_unpack4(packed + i / 2, count - i, codes + i);
}

// ----------------------------------------------------------------------------------------- memory

static void stream(void *to, const void *from, int64_t bytes) {
    char *out = to;
    const char *in = from;
    int64_t head = (64 - (int64_t)((uintptr_t)out & 63)) & 63;
    head = head < bytes ? head : bytes;
    memcpy(out, in, (size_t)head);
    int64_t i = head;
    for (; i + 64 <= bytes; i += 64) {
        __m256i first = _mm256_loadu_si256((const void *)(in + i));
        __m256i second = _mm256_loadu_si256((const void *)(in + i + 32));
        _mm256_stream_si256((void *)(out + i), first);
        _mm256_stream_si256((void *)(out + i + 32), second);
    }
    memcpy(out + i, in + i, (size_t)(bytes - i));
}

static void stream_end(void) { _mm_sfence(); }

void cpu_kernels_avx2(cpu_kernels *k) {
    lanes_install(k);
    k->name = "avx2";
    k->isa = QG_ISA_AVX2;
    k->cast[INPUT_FP32] = cast_fp32;
    k->cast[INPUT_BF16] = cast_bf16;
    k->cast[INPUT_FP16] = cast_fp16;
    k->decode = decode;
    k->pack4 = pack4;
    k->unpack4 = unpack4;
    k->stream = stream;
    k->stream_end = stream_end;
}
