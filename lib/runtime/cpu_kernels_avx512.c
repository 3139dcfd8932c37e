// The kernels with AVX-512 (F, BW, DQ, VL) and VBMI. 64 elements a step; what is left of a group is
// padded. The one rounding of a float is an addition: the number added has the spacing of the codes
// at |v| as its ulp, so the sum's low bits count spacings, and its exponent field counts binades;
// one multiply-add of 16-bit halves makes byte 1 of each lane the code.
#include <immintrin.h>

#define LANES 16
#define LANES_HALVES
#include <cpu_lanes_internal.h>
#include <qg_pack.h>

enum { STEP = 64 };

// ------------------------------------------------------------------------- what the lanes ask for

INLINE lanes_u lanes_max(lanes_u a, lanes_u b) {
    return (lanes_u)_mm512_max_epu32((__m512i)a, (__m512i)b);
}

INLINE lanes_u lanes_max16(lanes_u a, lanes_u b) {
    return (lanes_u)_mm512_max_epu16((__m512i)a, (__m512i)b);
}

INLINE lanes_u lanes_of_fp16(const uint16_t *x) {
    return (lanes_u)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)x));
}

// Four vectors to one: in each 128 bits, the maxima of theirs.
INLINE __m512i maxima4(const lanes_u *v) {
    __m512i a = (__m512i)v[0], b = (__m512i)v[1], c = (__m512i)v[2], d = (__m512i)v[3];
    __m512i ab = _mm512_max_epu32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_max_epu32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_max_epu32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

INLINE __m512i maxima_of_halves(__m512i a, __m512i b) {
    return _mm512_max_epu32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

INLINE lanes_u lanes_tree(const lanes_u *v) {
    __m512i first = maxima_of_halves(maxima4(v), maxima4(v + 4));
    __m512i second = maxima_of_halves(maxima4(v + 8), maxima4(v + 12));
    return (lanes_u)maxima_of_halves(first, second);
}

INLINE __m512i maxima4_16(const lanes_u *v) {
    __m512i a = (__m512i)v[0], b = (__m512i)v[1], c = (__m512i)v[2], d = (__m512i)v[3];
    __m512i ab = _mm512_max_epu16(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_max_epu16(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    return _mm512_max_epu16(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

INLINE __m512i maxima_of_halves_16(__m512i a, __m512i b) {
    return _mm512_max_epu16(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

INLINE lanes_u lanes_tree16(const lanes_u *v) {
    __m512i first = maxima_of_halves_16(maxima4_16(v), maxima4_16(v + 4));
    __m512i second = maxima_of_halves_16(maxima4_16(v + 8), maxima4_16(v + 12));
    return (lanes_u)maxima_of_halves_16(first, second);
}

INLINE lanes_u lanes_zip(lanes_u a, lanes_u b) {
    return (lanes_u)_mm512_max_epu16(_mm512_unpacklo_epi16((__m512i)a, (__m512i)b),
                                     _mm512_unpackhi_epi16((__m512i)a, (__m512i)b));
}

// Vectors of two groups of 16: lower halves hold groups 0 .. 15, upper halves 16 .. 31.
INLINE lanes_u lanes_tree_halves(const lanes_u *v) {
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    lanes_u pair[8];
    for (int g = 0; g < 8; g++)
        pair[g] = lanes_zip(v[g], v[g + 8]);
    __m512i largest = maxima_of_halves_16(maxima4_16(pair), maxima4_16(pair + 4));
    return (lanes_u)_mm512_permutexvar_epi32(order, largest);
}

INLINE void lanes_store_quads(lanes_w low, lanes_w high, uint32_t *words) {
    _mm512_storeu_si512(words, _mm512_unpacklo_epi64((__m512i)low, (__m512i)high));
    _mm512_storeu_si512(words + 16, _mm512_unpackhi_epi64((__m512i)low, (__m512i)high));
}

INLINE lanes_u lanes_pick(const float *table, lanes_u index) {
    __m512i at = (__m512i)index;
    __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(64));
    __mmask16 odd = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
    __m512 part[4];
    for (int i = 0; i < 4; i++)
        part[i] = _mm512_permutex2var_ps(_mm512_loadu_ps(table + 32 * i), at,
                                         _mm512_loadu_ps(table + 32 * i + 16));
    __m512 low = _mm512_mask_mov_ps(part[0], odd, part[1]);
    __m512 high = _mm512_mask_mov_ps(part[2], odd, part[3]);
    return (lanes_u)_mm512_mask_mov_ps(low, upper, high);
}

INLINE lanes_w lanes_multiply(lanes_w a, uint32_t b) {
    return (lanes_w)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
}

// ------------------------------------------------------------------------------------------ casts

// Constants in registers, so that one loop serves every format.
typedef struct cast_constants {
    __m512 high, low, least, scale, anchor;
    __m512i field, signed_field, fold, mask, pick, pick_sign, high_code;
    __m128i sign_shift;
    bool keeps_no_sign;
} cast_constants;

// Byte `byte` of the 32-bit lanes of two vectors, twice. bf16 comes as even and odd elements.
INLINE __m512i picks(int type, uint32_t byte) {
    const lanes_u four = {0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}; // indexes of 4 bytes
    if (type == INPUT_BF16)
        return (__m512i)(four * 0x08080808u + 0x44044000u + byte * 0x01010101u);
    return (__m512i)(four * 0x10101010u + 0x0c080400u + byte * 0x01010101u);
}

// Sign bytes: of 32-bit lanes as above; of 16-bit lanes those of two vectors of 32.
INLINE __m512i sign_picks(int type) {
    const lanes_u four = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return type == INPUT_FP32 ? picks(type, 3) : (__m512i)(four * 0x08080808u + 0x07050301u);
}

INLINE cast_constants constants_of(const cpu_cast *c, int type, bool is_int) {
    cast_constants k;
    k.high = _mm512_set1_ps(c->high);
    k.low = _mm512_set1_ps(c->low);
    k.least = _mm512_set1_ps(c->least);
    k.scale = _mm512_set1_ps(c->scale);
    k.field = _mm512_set1_epi32(0x7f800000);
    k.signed_field = _mm512_set1_epi32((int)0xff800000u);
    k.high_code = _mm512_set1_epi8((char)c->high_code);
    k.anchor = _mm512_castsi512_ps(_mm512_set1_epi32((int)((127u << 23) + c->add)));
    k.fold = _mm512_set1_epi32((int)c->fold);
    k.mask = _mm512_set1_epi8((char)(is_int ? c->encoder.mask : c->sign_mask));
    k.pick = picks(type, is_int ? 0 : 1);
    k.pick_sign = sign_picks(type);
    k.sign_shift = _mm_cvtsi32_si128(c->sign_shift);
    k.keeps_no_sign = c->keeps_no_sign;
    return k;
}

INLINE __m512i pick4(const __m512i v[4], __m512i index) {
    __m512i low = _mm512_permutex2var_epi8(v[0], index, v[1]);
    __m512i high = _mm512_permutex2var_epi8(v[2], index, v[3]);
    return _mm512_inserti64x4(low, _mm512_castsi512_si256(high), 1);
}

INLINE void load_step(int type, const void *x, __m512 v[4], __m512i raw[2]) {
    if (type == INPUT_FP32) {
        for (int j = 0; j < 4; j++)
            v[j] = _mm512_loadu_ps((const float *)x + 16 * j);
        return;
    }
    const uint16_t *narrow = x;
    for (int j = 0; j < 2; j++) {
        raw[j] = _mm512_loadu_si512(narrow + 32 * j);
        if (type == INPUT_BF16) {
            v[2 * j] = _mm512_castsi512_ps(_mm512_slli_epi32(raw[j], 16));
            v[2 * j + 1] =
                _mm512_castsi512_ps(_mm512_and_si512(raw[j], _mm512_set1_epi32((int)0xffff0000u)));
        } else {
            v[2 * j] = _mm512_cvtph_ps(_mm512_castsi512_si256(raw[j]));
            v[2 * j + 1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(raw[j], 1));
        }
    }
}

// Codes of magnitudes with the signs of v, whose 32-bit lanes are `bits`.
INLINE __m512i with_signs(const cast_constants *k, int type, __m512i codes, const __m512i bits[4],
                          const __m512i raw[2]) {
    __m512i signs = type == INPUT_FP32 ? pick4(bits, k->pick_sign)
                                       : _mm512_permutex2var_epi8(raw[0], k->pick_sign, raw[1]);
    signs = _mm512_srl_epi16(signs, k->sign_shift);
    __m512i signed_codes = _mm512_ternarylogic_epi32(codes, signs, k->mask, 0xf8); // a | (b & c)
    if (k->keeps_no_sign)
        return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(codes, codes), signed_codes);
    return signed_codes;
}

INLINE __m512i float_codes(const cast_constants *k, int type, const __m512 v[4],
                           const __m512i raw[2]) {
    __m512i sum[4], bits[4];
    for (int j = 0; j < 4; j++) {
        __m512 magnitude = _mm512_range_ps(v[j], k->high, 0xa); // the smaller, without its sign
        __m512i power = _mm512_and_si512(_mm512_castps_si512(magnitude), k->field);
        power = _mm512_max_epu32(power, _mm512_castps_si512(k->least));
        // power * anchor is exact: this is one addition, of a number anchored at |v|'s binade.
        __m512 rounded = _mm512_fmadd_ps(_mm512_castsi512_ps(power), k->anchor, magnitude);
        sum[j] = _mm512_madd_epi16(_mm512_castps_si512(rounded), k->fold);
        bits[j] = _mm512_castps_si512(v[j]);
    }
    return with_signs(k, type, pick4(sum, k->pick), bits, raw);
}

INLINE __m512i int_codes(const cast_constants *k, const __m512 v[4]) {
    __m512i rounded[4];
    for (int j = 0; j < 4; j++) {
        __m512 scaled = _mm512_max_ps(_mm512_mul_ps(v[j], k->scale), k->low);
        rounded[j] = _mm512_cvtps_epi32(_mm512_min_ps(scaled, k->high));
    }
    return _mm512_and_si512(pick4(rounded, k->pick), k->mask);
}

// By value: an array would be written to memory in every step.
static __attribute__((noinline)) void patch_nan(int type, __m512 v0, __m512 v1, __m512 v2,
                                                __m512 v3, uint8_t nan, uint8_t *codes) {
    const __m512 v[4] = {v0, v1, v2, v3};
    for (int j = 0; j < 4; j++) {
        unsigned mask = _mm512_cmp_ps_mask(v[j], v[j], _CMP_UNORD_Q);
        for (int lane = 0; lane < 16; lane++)
            if (mask >> lane & 1)
                codes[type == INPUT_BF16 ? 32 * (j / 2) + 2 * lane + j % 2 : 16 * j + lane] = nan;
    }
}

// Which group's operand lane 0 and lane 8 of vector j have.
INLINE __m512 operand_at(int type, int columns, const float *operand, int j) {
    if (columns == 32)
        return _mm512_set1_ps(operand[j / 2]);
    if (type != INPUT_BF16)
        return _mm512_set1_ps(operand[j]);
    return _mm512_insertf32x8(_mm512_set1_ps(operand[j / 2 * 2]),
                              _mm256_set1_ps(operand[j / 2 * 2 + 1]), 1);
}

INLINE void cast_step(const cast_constants *k, const cpu_cast *c, int type, int how, bool is_int,
                      const void *x, const __m512 operand[4], uint8_t *codes) {
    __m512 v[4];
    __m512i raw[2];
    load_step(type, x, v, raw);
    for (int j = 0; j < 4 && how != APPLY_NOTHING; j++)
        v[j] =
            how == APPLY_DIVIDE ? _mm512_div_ps(v[j], operand[j]) : _mm512_mul_ps(v[j], operand[j]);
    __m512i result = is_int ? int_codes(k, v) : float_codes(k, type, v, raw);
    _mm512_storeu_si512(codes, result);
    if (__builtin_expect((_mm512_cmp_ps_mask(v[0], v[1], _CMP_UNORD_Q) |
                          _mm512_cmp_ps_mask(v[2], v[3], _CMP_UNORD_Q)) != 0,
                         0))
        patch_nan(type, v[0], v[1], v[2], v[3], c->nan_code, codes);
}

INLINE void fetch(int type, const void *x, int64_t ahead) {
    if (ahead == 0)
        return;
    for (int line = 0; line < (type == INPUT_FP32 ? 4 : 2); line++)
        _mm_prefetch((const char *)x + ahead + 64 * line, _MM_HINT_NTA);
}

// Fewer elements than a step.
INLINE void cast_rest(const cast_constants *k, const cpu_cast *c, int type, int how, bool is_int,
                      const void *x, int64_t count, const __m512 operand[4], uint8_t *codes) {
    float padded[STEP] = {0};
    uint8_t result[STEP];
    memcpy(padded, x, (size_t)count * (type == INPUT_FP32 ? 4 : 2));
    cast_step(k, c, type, how, is_int, padded, operand, result);
    memcpy(codes, result, (size_t)count);
}

// Groups of 16 or 32: several in a step.
INLINE void cast_small(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                       int64_t count, int columns, const float *operand, int64_t ahead,
                       uint8_t *codes) {
    cast_constants k = constants_of(c, type, is_int);
    __m512 o[4];
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        fetch(type, cpu_at(type, x, i), ahead);
        for (int j = 0; j < 4; j++)
            o[j] = operand_at(type, columns, operand + i / columns, j);
        cast_step(&k, c, type, how, is_int, cpu_at(type, x, i), o, codes + i);
    }
    if (i == count)
        return;
    float rest[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    for (int64_t g = 0; i + g * columns < count; g++)
        rest[g] = operand[i / columns + g];
    for (int j = 0; j < 4; j++)
        o[j] = operand_at(type, columns, rest, j);
    cast_rest(&k, c, type, how, is_int, cpu_at(type, x, i), count - i, o, codes + i);
}

INLINE void cast_groups(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                        int64_t count, int64_t columns, const float *operand, int64_t ahead,
                        uint8_t *codes) {
    cast_constants k = constants_of(c, type, is_int);
    for (int64_t i = 0; i < count; operand++) {
        int64_t end = i + columns < count ? i + columns : count;
        __m512 all = _mm512_set1_ps(*operand), o[4] = {all, all, all, all};
        for (; i + STEP <= end; i += STEP) {
            fetch(type, cpu_at(type, x, i), ahead);
            cast_step(&k, c, type, how, is_int, cpu_at(type, x, i), o, codes + i);
        }
        if (i < end)
            cast_rest(&k, c, type, how, is_int, cpu_at(type, x, i), end - i, o, codes + i);
        i = end;
    }
}

INLINE void cast_run(const cpu_cast *c, int type, int how, bool is_int, const void *x,
                     int64_t count, int64_t columns, const float *operand, int64_t ahead,
                     uint8_t *codes) {
    if (columns == 32)
        cast_small(c, type, how, is_int, x, count, 32, operand, ahead, codes);
    else if (columns == 16)
        cast_small(c, type, how, is_int, x, count, 16, operand, ahead, codes);
    else
        cast_groups(c, type, how, is_int, x, count, columns, operand, ahead, codes);
}

#include <cpu_lanes_cast_internal.h>

// ---------------------------------------------------------------------------------- bounded casts
// No NaN and nothing far beyond `high`: codes are clamped as bytes, and the anchor takes v's sign,
// so that magnitudes are never formed. Under a power of two v is not formed either: what would be
// compared with it and added to it is multiplied by the inverse instead, a group at a time.

enum { BOUNDED_GROUPS = 64 };

// For each group the power of two that belongs to the smallest anchor, and the factor of anchors.
INLINE void set_powers(const cpu_cast *c, const float *operand, int64_t groups, float *first,
                       float *anchor) {
    uint32_t least = qg_bits_of_float(c->least) + (127u << 23), m = c->mbits;
    // With the bias of the sum's exponent; what exceeds 8 bits does not reach the code.
    uint32_t up = ((127 + 23 - m) << 23) + ((c->add - (127u << m)) & 255);
    for (int64_t g = 0; g < groups; g += LANES) {
        __mmask16 lanes = (__mmask16)(g + LANES <= groups ? 0xffff : (1 << (groups - g)) - 1);
        lanes_u o = (lanes_u)_mm512_maskz_loadu_epi32(lanes, operand + g);
        lanes_store(first + g, least - o);
        lanes_store(anchor + g, (o >> (23 - m)) + up);
    }
}

INLINE void bounded_step(const cast_constants *k, int type, int how, const void *x,
                         const __m512 first[4], const __m512 anchor[4], uint8_t *codes) {
    __m512 v[4];
    __m512i raw[2], sum[4], bits[4];
    load_step(type, x, v, raw);
    for (int j = 0; j < 4; j++) {
        if (how == APPLY_DIVIDE)
            v[j] = _mm512_div_ps(v[j], first[j]);
        else if (how == APPLY_MULTIPLY)
            v[j] = _mm512_mul_ps(v[j], first[j]);
        bits[j] = _mm512_castps_si512(v[j]);
        __m512 power = _mm512_castsi512_ps(_mm512_and_si512(bits[j], k->signed_field));
        // The larger magnitude, with the sign of v.
        power = _mm512_range_ps(power, how == APPLY_POWER ? first[j] : k->least, 0x3);
        __m512 rounded = _mm512_fmadd_ps(power, how == APPLY_POWER ? anchor[j] : k->anchor, v[j]);
        sum[j] = _mm512_madd_epi16(_mm512_castps_si512(rounded), k->fold);
    }
    __m512i magnitudes = _mm512_min_epu8(pick4(sum, k->pick), k->high_code);
    _mm512_storeu_si512(codes, with_signs(k, type, magnitudes, bits, raw));
}

INLINE void bounded_rest(const cast_constants *k, int type, int how, const void *x, int64_t count,
                         const __m512 first[4], const __m512 anchor[4], uint8_t *codes) {
    float padded[STEP] = {0};
    uint8_t result[STEP];
    memcpy(padded, x, (size_t)count * (type == INPUT_FP32 ? 4 : 2));
    bounded_step(k, type, how, padded, first, anchor, result);
    memcpy(codes, result, (size_t)count);
}

// What the vectors of a step have of groups of 16, 32 or, all the same, at least 64 columns.
INLINE void bounded_operands(int type, int columns, const float *group, __m512 out[4]) {
    for (int j = 0; j < 4; j++)
        out[j] = columns > 32 ? _mm512_set1_ps(group[0]) : operand_at(type, columns, group, j);
}

INLINE void bounded_piece(const cast_constants *k, int type, int how, const void *x, int64_t count,
                          int64_t columns, const float *group_first, const float *group_anchor,
                          int64_t ahead, uint8_t *codes) {
    __m512 first[4], anchor[4];
    int width = columns == 32 ? 32 : columns == 16 ? 16 : 64;
    int64_t i = 0, g = 0, step_groups = width == 64 ? 0 : STEP / width;
    while (i < count) {
        int64_t end = width == 64 && i + columns < count ? i + columns : count;
        if (width == 64) {
            bounded_operands(type, width, group_first + g, first);
            bounded_operands(type, width, group_anchor + g, anchor);
        }
        for (; i + STEP <= end; i += STEP, g += step_groups) {
            fetch(type, cpu_at(type, x, i), ahead);
            if (width != 64) {
                bounded_operands(type, width, group_first + g, first);
                bounded_operands(type, width, group_anchor + g, anchor);
            }
            bounded_step(k, type, how, cpu_at(type, x, i), first, anchor, codes + i);
        }
        if (i < end) {
            bounded_operands(type, width, group_first + g, first);
            bounded_operands(type, width, group_anchor + g, anchor);
            bounded_rest(k, type, how, cpu_at(type, x, i), end - i, first, anchor, codes + i);
        }
        i = end;
        g += 1;
    }
}

// The frequent sizes as constants.
INLINE void bounded_pieces(const cast_constants *k, int type, int how, const void *x, int64_t count,
                           int64_t columns, const float *first, const float *anchor, int64_t ahead,
                           uint8_t *codes) {
    if (columns == 32)
        bounded_piece(k, type, how, x, count, 32, first, anchor, ahead, codes);
    else if (columns == 16)
        bounded_piece(k, type, how, x, count, 16, first, anchor, ahead, codes);
    else
        bounded_piece(k, type, how, x, count, columns, first, anchor, ahead, codes);
}

INLINE void bounded_run(const cpu_cast *c, int type, int how, const void *x, int64_t count,
                        int64_t columns, const float *operand, int64_t ahead, uint8_t *codes) {
    cast_constants k = constants_of(c, type, false);
    bounded_pieces(&k, type, how, x, count, columns, operand, operand, ahead, codes);
}

INLINE void bounded_run_of_powers(const cpu_cast *c, int type, const void *x, int64_t count,
                                  int64_t columns, const float *operand, int64_t ahead,
                                  uint8_t *codes) {
    cast_constants k = constants_of(c, type, false);
    float first[BOUNDED_GROUPS], anchor[BOUNDED_GROUPS];
    for (int64_t i = 0; i < count; i += BOUNDED_GROUPS * columns) {
        int64_t width = count - i < BOUNDED_GROUPS * columns ? count - i : BOUNDED_GROUPS * columns;
        int64_t groups = (width + columns - 1) / columns;
        set_powers(c, operand, groups, first, anchor);
        bounded_pieces(&k, type, APPLY_POWER, cpu_at(type, x, i), width, columns, first, anchor,
                       ahead, codes + i);
        operand += groups;
    }
}

INLINE void bounded_any(const cpu_cast *c, int type, const void *x, int64_t count, int64_t columns,
                        const float *operand, int how, int64_t ahead, uint8_t *codes) {
    if (how == APPLY_POWER)
        bounded_run_of_powers(c, type, x, count, columns, operand, ahead, codes);
    else if (how == APPLY_DIVIDE)
        bounded_run(c, type, APPLY_DIVIDE, x, count, columns, operand, ahead, codes);
    else
        bounded_run(c, type, APPLY_MULTIPLY, x, count, columns, operand, ahead, codes);
}

static void bounded_fp32(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                         const float *operand, int how, int64_t ahead, uint8_t *codes) {
    bounded_any(c, INPUT_FP32, x, count, columns, operand, how, ahead, codes);
}

static void bounded_bf16(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                         const float *operand, int how, int64_t ahead, uint8_t *codes) {
    bounded_any(c, INPUT_BF16, x, count, columns, operand, how, ahead, codes);
}

static void bounded_fp16(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                         const float *operand, int how, int64_t ahead, uint8_t *codes) {
    bounded_any(c, INPUT_FP16, x, count, columns, operand, how, ahead, codes);
}

// --------------------------------------------------------------------------------------- decoding

typedef struct decode_tables {
    __m512i byte3[4], byte2[4]; // of 64 codes each
    __m512i transpose;
} decode_tables;

INLINE decode_tables tables_of(const cpu_decode *d) {
    decode_tables t;
    for (int i = 0; i < 4; i++) {
        t.byte3[i] = _mm512_loadu_si512(d->byte3 + 64 * i);
        t.byte2[i] = _mm512_loadu_si512(d->byte2 + 64 * i);
    }
    // Four codes of each 16 to each 128 bits, so that unpacking leaves elements in their order.
    t.transpose = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return t;
}

INLINE __m512i look_up(const __m512i table[4], __m512i codes, __mmask64 upper) {
    __m512i low = _mm512_permutex2var_epi8(table[0], codes, table[1]);
    __m512i high = _mm512_permutex2var_epi8(table[2], codes, table[3]);
    return _mm512_mask_mov_epi8(low, upper, high);
}

INLINE void decode_step(const decode_tables *t, const uint8_t *codes, const __m512 x[4], float *q) {
    __m512i c = _mm512_permutexvar_epi32(t->transpose, _mm512_loadu_si512(codes));
    __mmask64 upper = _mm512_movepi8_mask(c);
    __m512i byte3 = look_up(t->byte3, c, upper), byte2 = look_up(t->byte2, c, upper);
    __m512i low = _mm512_unpacklo_epi8(byte2, byte3), high = _mm512_unpackhi_epi8(byte2, byte3);
    __m512i zero = _mm512_setzero_si512();
    __m512 v[4];
    v[0] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, low));
    v[1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, low));
    v[2] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, high));
    v[3] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, high));
    for (int j = 0; j < 4; j++)
        v[j] = _mm512_mul_ps(v[j], x[j]);
    if (__builtin_expect((_mm512_cmp_ps_mask(v[0], v[1], _CMP_UNORD_Q) |
                          _mm512_cmp_ps_mask(v[2], v[3], _CMP_UNORD_Q)) != 0,
                         0))
        for (int j = 0; j < 4; j++)
            v[j] = _mm512_castsi512_ps(_mm512_mask_mov_epi32(
                _mm512_castps_si512(v[j]), _mm512_cmp_ps_mask(v[j], v[j], _CMP_UNORD_Q),
                _mm512_set1_epi32(0x7fffffff)));
    for (int j = 0; j < 4; j++)
        _mm512_storeu_ps(q + 16 * j, v[j]);
}

INLINE void decode_rest(const decode_tables *t, const uint8_t *codes, int64_t count,
                        const __m512 x[4], float *q) {
    uint8_t padded[STEP] = {0};
    float result[STEP];
    memcpy(padded, codes, (size_t)count);
    decode_step(t, padded, x, result);
    memcpy(q, result, (size_t)count * sizeof *q);
}

INLINE void decode_small(const cpu_decode *d, const uint8_t *codes, int64_t count, int columns,
                         const float *x, int64_t ahead, float *q) {
    decode_tables t = tables_of(d);
    __m512 o[4];
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        if (ahead)
            _mm_prefetch((const char *)codes + i + ahead, _MM_HINT_NTA);
        for (int j = 0; j < 4; j++)
            o[j] = operand_at(INPUT_FP32, columns, x + i / columns, j);
        decode_step(&t, codes + i, o, q + i);
    }
    if (i == count)
        return;
    float rest[4] = {1.0f, 1.0f, 1.0f, 1.0f};
    for (int64_t g = 0; i + g * columns < count; g++)
        rest[g] = x[i / columns + g];
    for (int j = 0; j < 4; j++)
        o[j] = operand_at(INPUT_FP32, columns, rest, j);
    decode_rest(&t, codes + i, count - i, o, q + i);
}

INLINE void decode_groups(const cpu_decode *d, const uint8_t *codes, int64_t count, int64_t columns,
                          const float *x, int64_t ahead, float *q) {
    decode_tables t = tables_of(d);
    for (int64_t i = 0; i < count; x++) {
        int64_t end = i + columns < count ? i + columns : count;
        __m512 all = _mm512_set1_ps(*x), o[4] = {all, all, all, all};
        for (; i + STEP <= end; i += STEP) {
            if (ahead)
                _mm_prefetch((const char *)codes + i + ahead, _MM_HINT_NTA);
            decode_step(&t, codes + i, o, q + i);
        }
        if (i < end)
            decode_rest(&t, codes + i, end - i, o, q + i);
        i = end;
    }
}

static void decode(const cpu_decode *d, const uint8_t *codes, int64_t count, int64_t columns,
                   const float *x, int64_t ahead, float *q) {
    if (columns == 32)
        decode_small(d, codes, count, 32, x, ahead, q);
    else if (columns == 16)
        decode_small(d, codes, count, 16, x, ahead, q);
    else
        decode_groups(d, codes, count, columns, x, ahead, q);
}

// ---------------------------------------------------------------------------------------- packing

static void pack4(const uint8_t *codes, int64_t count, uint8_t *packed) {
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m512i c = _mm512_and_si512(_mm512_loadu_si512(codes + i), _mm512_set1_epi8(15));
        __m512i pairs = _mm512_maddubs_epi16(c, _mm512_set1_epi16(0x1001)); // low + 16 high
        _mm256_storeu_si256((void *)(packed + i / 2), _mm512_cvtepi16_epi8(pairs));
    }
    qg_pack4(codes + i, count - i, packed + i / 2);
}

static void unpack4(const uint8_t *packed, int64_t count, uint8_t *codes) {
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m512i w = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(packed + i / 2)));
        w = _mm512_or_si512(w, _mm512_slli_epi16(w, 4));
        _mm512_storeu_si512(codes + i, _mm512_and_si512(w, _mm512_set1_epi8(15)));
    }
    qg_unpack4(packed + i / 2, count - i, codes + i);
}

// Three bytes of every four, or three bytes to every four.
INLINE __m512i dense_index(bool spreads) {
    uint8_t index[STEP];
    for (int i = 0; i < STEP; i++)
        index[i] = (uint8_t)(spreads ? i / 4 * 3 + (i % 4) % 3 : (i / 3 * 4 + i % 3) & 63);
    return _mm512_loadu_si512(index);
}

enum { DENSE = STEP / 4 * 3 };

static void pack6(const uint8_t *codes, int64_t count, uint8_t *packed) {
    const __mmask64 bytes = (1ull << DENSE) - 1;
    __m512i index = dense_index(false);
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m512i c = _mm512_and_si512(_mm512_loadu_si512(codes + i), _mm512_set1_epi8(63));
        __m512i pairs = _mm512_maddubs_epi16(c, _mm512_set1_epi16(0x4001));
        __m512i quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x10000001));
        _mm512_mask_storeu_epi8(packed + i / 4 * 3, bytes, _mm512_permutexvar_epi8(index, quads));
    }
    qg_pack6(codes + i, count - i, packed + i / 4 * 3);
}

static void unpack6(const uint8_t *packed, int64_t count, uint8_t *codes) {
    const __mmask64 bytes = (1ull << DENSE) - 1;
    __m512i index = dense_index(true);
    __m512i shifts = _mm512_set1_epi64(0x322c2620120c0600);
    int64_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        __m512i dense = _mm512_maskz_loadu_epi8(bytes, packed + i / 4 * 3);
        __m512i fields =
            _mm512_multishift_epi64_epi8(shifts, _mm512_permutexvar_epi8(index, dense));
        _mm512_storeu_si512(codes + i, _mm512_and_si512(fields, _mm512_set1_epi8(63)));
    }
    qg_unpack6(packed + i / 4 * 3, count - i, codes + i);
}

// ----------------------------------------------------------------------------------------- memory

static void stream(void *to, const void *from, int64_t bytes) {
    char *out = to;
    const char *in = from;
    int64_t head = (64 - (int64_t)((uintptr_t)out & 63)) & 63;
    head = head < bytes ? head : bytes;
    memcpy(out, in, (size_t)head);
    int64_t i = head;
    for (; i + 64 <= bytes; i += 64)
        _mm512_stream_si512((void *)(out + i), _mm512_loadu_si512(in + i));
    memcpy(out + i, in + i, (size_t)(bytes - i));
}

static void stream_end(void) { _mm_sfence(); }

void cpu_kernels_avx512(cpu_kernels *k) {
    lanes_install(k);
    k->name = "avx512";
    k->isa = QG_ISA_AVX512;
    k->cast[INPUT_FP32] = cast_fp32;
    k->cast[INPUT_BF16] = cast_bf16;
    k->cast[INPUT_FP16] = cast_fp16;
    k->cast_bounded[INPUT_FP32] = bounded_fp32;
    k->cast_bounded[INPUT_BF16] = bounded_bf16;
    k->cast_bounded[INPUT_FP16] = bounded_fp16;
    k->decode = decode;
    k->pack4 = pack4;
    k->pack6 = pack6;
    k->unpack4 = unpack4;
    k->unpack6 = unpack6;
    k->stream = stream;
    k->stream_end = stream_end;
}
