// The kernels that are the same text for every vector length, for a file of one instruction set to
// include once. It says before: LANES (of 32 bits), lanes_max, lanes_max16 (unsigned 16 bits),
// lanes_of_fp16, lanes_tree (the maxima of LANES vectors, in their order), lanes_tree16 (the same
// of the lower and of the upper halves), lanes_zip (lower halves: maxima among the 16-bit lanes of
// a, upper halves: of b), lanes_multiply (64-bit products of lower halves), lanes_store_quads
// (pairs of 64-bit lanes, one of each vector: first those of even lanes), lanes_pick (entries of a
// table of 128), and, if groups of LANES 16-bit elements are to be fast, LANES_HALVES and
// lanes_tree_halves. Loops end in scalar code.
#ifndef CPU_LANES_INTERNAL_H
#define CPU_LANES_INTERNAL_H

#include <cpu_kernels_internal.h>

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define LANES_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define LANES_UNROLLED _Pragma("GCC unroll 16")
#endif

typedef uint32_t lanes_u __attribute__((vector_size(4 * LANES)));
typedef int32_t lanes_i __attribute__((vector_size(4 * LANES)));
typedef uint64_t lanes_w __attribute__((vector_size(4 * LANES)));
typedef float lanes_f __attribute__((vector_size(4 * LANES)));
typedef uint16_t lanes_half __attribute__((vector_size(2 * LANES)));
typedef uint8_t lanes_byte __attribute__((vector_size(LANES)));

INLINE lanes_u lanes_max(lanes_u a, lanes_u b);
INLINE lanes_u lanes_max16(lanes_u a, lanes_u b);
INLINE lanes_u lanes_of_fp16(const uint16_t *x);
INLINE lanes_u lanes_tree(const lanes_u *v);
INLINE lanes_u lanes_tree16(const lanes_u *v);
INLINE lanes_u lanes_zip(lanes_u a, lanes_u b);
#ifdef LANES_HALVES
INLINE lanes_u lanes_tree_halves(const lanes_u *v);
#endif
INLINE lanes_w lanes_multiply(lanes_w a, uint32_t b);
INLINE void lanes_store_quads(lanes_w low, lanes_w high, uint32_t *words);
INLINE lanes_u lanes_pick(const float *table, lanes_u index);

INLINE lanes_u lanes_load(const void *p) {
    lanes_u v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void lanes_store(void *p, lanes_u v) { memcpy(p, &v, sizeof v); }

// Elements as the bits of binary32.
INLINE lanes_u lanes_elements(int type, const void *x, int64_t i) {
    if (type == INPUT_FP32)
        return lanes_load((const float *)x + i);
    if (type == INPUT_FP16)
        return lanes_of_fp16((const uint16_t *)x + i);
    lanes_half h;
    memcpy(&h, (const uint16_t *)x + i, sizeof h);
    return __builtin_convertvector(h, lanes_u) << 16;
}

INLINE uint32_t lanes_largest(lanes_u v) {
    uint32_t lane[LANES], largest = 0;
    memcpy(lane, &v, sizeof v);
    for (int i = 0; i < LANES; i++)
        largest = lane[i] > largest ? lane[i] : largest;
    return largest;
}

// ------------------------------------------------------------------------------------------ amax

// The largest magnitudes of `count` elements, a whole number of vectors, lane by lane. For fp16
// they are binary16 in the upper halves.
INLINE lanes_u lanes_amax(int type, const void *x, int64_t count) {
    lanes_u first = {0}, second = {0};
    int64_t i = 0;
    if (type == INPUT_FP32) {
        for (; i + 2 * LANES <= count; i += 2 * LANES) {
            first = lanes_max(first, lanes_load((const float *)x + i) & 0x7fffffffu);
            second = lanes_max(second, lanes_load((const float *)x + i + LANES) & 0x7fffffffu);
        }
        if (i < count)
            first = lanes_max(first, lanes_load((const float *)x + i) & 0x7fffffffu);
        return lanes_max(first, second);
    }
    const uint16_t *narrow = x;
    for (; i + 4 * LANES <= count; i += 4 * LANES) {
        first = lanes_max16(first, lanes_load(narrow + i) & 0x7fff7fffu);
        second = lanes_max16(second, lanes_load(narrow + i + 2 * LANES) & 0x7fff7fffu);
    }
    if (i + 2 * LANES <= count) {
        first = lanes_max16(first, lanes_load(narrow + i) & 0x7fff7fffu);
        i += 2 * LANES;
    }
    first = lanes_max16(first, second);
    first = lanes_max(first << 16, first & 0xffff0000u);
    if (i < count) {
        lanes_half h;
        memcpy(&h, narrow + i, sizeof h);
        first = lanes_max(first, (__builtin_convertvector(h, lanes_u) & 0x7fffu) << 16);
    }
    return first;
}

INLINE uint32_t lanes_amax_of_group(int type, const void *x, int64_t count) {
    int64_t whole = count / LANES * LANES;
    uint32_t largest = lanes_largest(lanes_amax(type, x, whole));
    if (type == INPUT_FP16)
        largest = qg_magnitude_of_fp16((uint16_t)(largest >> 16));
    for (int64_t i = whole; i < count; i++) {
        uint32_t magnitude = qg_bits_of_float(cpu_element(type, x, i)) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

// LANES groups of `columns` elements.
INLINE void lanes_amax_of_groups(int type, const void *x, int64_t columns, uint32_t *amax) {
    lanes_u group[LANES];
    LANES_UNROLLED
    for (int g = 0; g < LANES; g++)
        group[g] = lanes_amax(type, cpu_at(type, x, g * columns), columns);
    lanes_u largest = lanes_tree(group);
    if (type == INPUT_FP16) {
        uint32_t lane[LANES];
        lanes_store(lane, largest);
        for (int g = 0; g < LANES; g++)
            lane[g] = qg_magnitude_of_fp16((uint16_t)(lane[g] >> 16));
        largest = lanes_load(lane);
    }
    lanes_store(amax, lanes_max(largest, lanes_load(amax)));
}

// The largest of 16-bit magnitudes in halves, as binary32 bits.
INLINE void lanes_put_amax16(int type, lanes_u halves, uint32_t *amax) {
    if (type == INPUT_FP16) {
        uint32_t lane[LANES];
        lanes_store(lane, halves);
        for (int g = 0; g < LANES; g++)
            lane[g] = qg_magnitude_of_fp16((uint16_t)lane[g]);
        halves = lanes_load(lane);
    } else {
        halves <<= 16;
    }
    lanes_store(amax, lanes_max(halves, lanes_load(amax)));
}

// The largest magnitudes of whole vectors of 16-bit elements, lane by lane.
INLINE lanes_u lanes_amax16(const uint16_t *x, int64_t count) {
    lanes_u first = lanes_load(x) & 0x7fff7fffu;
    for (int64_t i = 2 * LANES; i < count; i += 2 * LANES)
        first = lanes_max16(first, lanes_load(x + i) & 0x7fff7fffu);
    return first;
}

// Twice LANES groups, without widening: two groups share the halves of a vector's lanes.
INLINE void lanes_amax_of_pairs(int type, const uint16_t *x, int64_t columns, uint32_t *amax) {
    lanes_u pair[LANES], largest;
#ifdef LANES_HALVES
    if (columns == LANES) {
        LANES_UNROLLED
        for (int g = 0; g < LANES; g++)
            pair[g] = lanes_load(x + 2 * LANES * g) & 0x7fff7fffu;
        largest = lanes_tree_halves(pair);
    } else
#endif
    {
        LANES_UNROLLED
        for (int g = 0; g < LANES; g++)
            pair[g] = lanes_zip(lanes_amax16(x + g * columns, columns),
                                lanes_amax16(x + (g + LANES) * columns, columns));
        largest = lanes_tree16(pair);
    }
    lanes_put_amax16(type, largest & 0xffffu, amax);
    lanes_put_amax16(type, largest >> 16, amax + LANES);
}

// As many groups as that does, which is what is returned.
INLINE int64_t lanes_amax_run16(int type, const void *x, int64_t count, int64_t columns,
                                uint32_t *amax) {
    int64_t g = 0;
    for (; (g + 2 * LANES) * columns <= count; g += 2 * LANES) {
        const uint16_t *at = (const uint16_t *)x + g * columns;
        if (columns == 32)
            lanes_amax_of_pairs(type, at, 32, amax + g);
        else
            lanes_amax_of_pairs(type, at, 16, amax + g);
    }
    return g;
}

INLINE void lanes_amax_run(int type, const void *x, int64_t count, int64_t columns,
                           uint32_t *amax) {
    int64_t i = 0, g = 0;
    if (type != INPUT_FP32 && (columns == 32 || columns == 16)) {
        g = lanes_amax_run16(type, x, count, columns, amax);
        i = g * columns;
    }
    if (columns % LANES == 0) {
        // The frequent sizes as constants: their loops unroll.
        for (; i + LANES * columns <= count; i += LANES * columns, g += LANES) {
            const void *at = cpu_at(type, x, i);
            if (columns == 32)
                lanes_amax_of_groups(type, at, 32, amax + g);
            else if (columns == 16)
                lanes_amax_of_groups(type, at, 16, amax + g);
            else if (columns == 128)
                lanes_amax_of_groups(type, at, 128, amax + g);
            else
                lanes_amax_of_groups(type, at, columns, amax + g);
        }
    }
    for (; i < count; i += columns, g++) {
        int64_t end = i + columns < count ? i + columns : count;
        uint32_t largest = lanes_amax_of_group(type, cpu_at(type, x, i), end - i);
        amax[g] = largest > amax[g] ? largest : amax[g];
    }
}

static void amax_fp32(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    lanes_amax_run(INPUT_FP32, x, count, columns, amax);
}

static void amax_bf16(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    lanes_amax_run(INPUT_BF16, x, count, columns, amax);
}

static void amax_fp16(const void *x, int64_t count, int64_t columns, uint32_t *amax) {
    lanes_amax_run(INPUT_FP16, x, count, columns, amax);
}

// ----------------------------------------------------------------------------------------- scales

#define LANES_MASK(condition) ((lanes_u)(condition))

INLINE lanes_f lanes_select(lanes_u mask, lanes_f a, lanes_f b) {
    return (lanes_f)((mask & (lanes_u)a) | (~mask & (lanes_u)b));
}

// As qg_ordinary_ue4m3_code.
INLINE lanes_u lanes_ue4m3(lanes_f v) {
    const lanes_f zero = {0};
    const uint32_t bias = (256 - (((127 - 6 + 20) << 3) & 255)) & 255;
    lanes_f high = zero + 448.0f, low = zero + 0x1p-6f;
    v = lanes_select(LANES_MASK(v > high), high, v);
    lanes_f step = lanes_select(LANES_MASK(v < low), low, v);
    lanes_f anchor = (lanes_f)(((lanes_u)step & 0x7f800000u) + ((20u << 23) + bias));
    lanes_u sum = (lanes_u)(v + anchor);
    return ((sum >> 20) + sum) & 255u;
}

// Stored bits; operands too, but those of UE4M3 codes.
INLINE lanes_u lanes_scale(const qg_ordinary_scales *s, lanes_u amax, lanes_u *operand) {
    lanes_f a = (lanes_f)amax, x;
    switch (s->kind) {
    case QG_ORDINARY_POW2: {
        lanes_u field = amax >> 23, odd = 0u - (field & 1u);
        lanes_i fraction = (lanes_i)(amax & 0x007fffffu);
        uint32_t even_step = (uint32_t)s->threshold[0], odd_step = (uint32_t)s->threshold[1];
        lanes_i threshold = (lanes_i)((odd & (even_step ^ odd_step)) ^ even_step);
        lanes_u code = field + (uint32_t)s->offset - LANES_MASK(fraction >= threshold);
        *operand = (254u - code) << 23;
        return s->is_float ? code << 23 : code;
    }
    case QG_ORDINARY_AMAX:
        x = a / s->f;
        *operand = (lanes_u)x;
        return (lanes_u)x;
    case QG_ORDINARY_AMAX_RCP:
        x = a / s->f;
        *operand = (lanes_u)(1.0f / x);
        return (lanes_u)x;
    case QG_ORDINARY_AMAX_MUL:
        x = s->f / a;
        *operand = (lanes_u)x;
        return (lanes_u)(1.0f / x);
    default: {
        lanes_f v = s->kind == QG_ORDINARY_UE4M3_MUL ? a * s->factor : a / s->f / s->divisor;
        lanes_f least = (lanes_f){0} + s->least;
        lanes_u code = lanes_ue4m3(lanes_select(LANES_MASK(v < least), least, v));
        lanes_u least_code = (lanes_u){0} + s->least_code;
        *operand = code;
        return lanes_max(code, least_code);
    }
    }
}

INLINE void lanes_put_scales(const qg_ordinary_scales *s, lanes_u bits, lanes_u operands,
                             bool is_byte, uint8_t *stored, float *operand) {
    if (is_byte) {
        lanes_byte narrow = __builtin_convertvector(bits, lanes_byte);
        memcpy(stored, &narrow, sizeof narrow);
    } else {
        lanes_store(stored, bits);
    }
    if (s->kind >= QG_ORDINARY_UE4M3_MUL) {
        // Lanes that are not ordinary hold anything.
        lanes_store(operand, lanes_pick(s->operands, bits & (QG_UE4M3_CODES - 1u)));
    } else {
        lanes_store(operand, operands);
    }
}

static bool scales(const qg_ordinary_scales *s, const uint32_t *amax, int64_t n, uint8_t *stored,
                   float *operand) {
    bool is_byte = qg_ordinary_scale_bytes(s) == 1;
    lanes_u odd_ones = {0}, operands = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        lanes_u a = lanes_load(amax + i);
        odd_ones |= LANES_MASK(a - s->low > s->high - s->low);
        lanes_u bits = lanes_scale(s, a, &operands);
        lanes_put_scales(s, bits, operands, is_byte, stored + (is_byte ? i : 4 * i), operand + i);
    }
    if (i < n) {
        uint32_t a[LANES];
        float o[LANES];
        uint8_t b[4 * LANES];
        size_t rest = (size_t)(n - i);
        for (int j = 0; j < LANES; j++)
            a[j] = i + j < n ? amax[i + j] : s->low;
        odd_ones |= LANES_MASK(lanes_load(a) - s->low > s->high - s->low);
        lanes_u bits = lanes_scale(s, lanes_load(a), &operands);
        lanes_put_scales(s, bits, operands, is_byte, b, o);
        memcpy(stored + (is_byte ? i : 4 * i), b, rest * (is_byte ? 1 : 4));
        memcpy(operand + i, o, rest * sizeof *o);
    }
    return lanes_largest(odd_ones) == 0;
}

// --------------------------------------------------------------------------------------- encoding

// As cpu_applied.
INLINE lanes_u lanes_applied(lanes_u x, float operand, int how, bool is_exact) {
    lanes_f value = (lanes_f)x;
    lanes_u v = (lanes_u)(how == APPLY_DIVIDE     ? value / operand
                          : how == APPLY_MULTIPLY ? value * operand
                                                  : value);
    if (!is_exact)
        return v;
    lanes_u magnitude = v & 0x7fffffffu, from = x & 0x7fffffffu;
    v |= LANES_MASK(magnitude < 0x00800000u) & LANES_MASK(from != 0u) & 1u;
    v += LANES_MASK(magnitude == 0x7f800000u) & LANES_MASK(from < 0x7f800000u);
    return v;
}

INLINE void lanes_apply(int type, int how, const void *x, int64_t count, int64_t columns,
                        const float *operand, bool is_directed, float *v) {
    for (int64_t i = 0; i < count; operand++) {
        int64_t end = i + columns < count ? i + columns : count;
        bool is_exact = is_directed && qg_float_is_power_of_two(*operand);
        for (; i + LANES <= end; i += LANES)
            lanes_store(v + i, lanes_applied(lanes_elements(type, x, i), *operand, how, is_exact));
        for (; i < end; i++)
            v[i] = cpu_applied(cpu_element(type, x, i), *operand, how, is_exact);
    }
}

INLINE void lanes_apply_any(int type, const void *x, int64_t count, int64_t columns,
                            const float *operand, int how, bool is_directed, float *v) {
    if (how == APPLY_DIVIDE)
        lanes_apply(type, APPLY_DIVIDE, x, count, columns, operand, is_directed, v);
    else // 1 times x is x
        lanes_apply(type, APPLY_MULTIPLY, x, count, columns, operand, is_directed, v);
}

static void apply_fp32(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    lanes_apply_any(INPUT_FP32, x, count, columns, operand, how, is_directed, v);
}

static void apply_bf16(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    lanes_apply_any(INPUT_BF16, x, count, columns, operand, how, is_directed, v);
}

static void apply_fp16(const void *x, int64_t count, int64_t columns, const float *operand, int how,
                       bool is_directed, float *v) {
    lanes_apply_any(INPUT_FP16, x, count, columns, operand, how, is_directed, v);
}

enum { ROUNDS = 10, PAIRS = LANES / 2 };

typedef struct philox_keys {
    lanes_w low[ROUNDS], high[ROUNDS];
} philox_keys;

// PAIRS quads: qg_philox in the lower halves of lanes of 64 bits, whose upper halves hold anything.
// Quad i of the first half of `quad` and of the second take turns, as stores want them.
INLINE void lanes_philox(const philox_keys *keys, uint32_t stream, lanes_w quad, uint32_t *words) {
    lanes_w c0 = quad, c1 = quad >> 32, c2 = (lanes_w){0} + stream, c3 = {0};
    for (int round = 0; round < ROUNDS; round++) {
        lanes_w product0 = lanes_multiply(c0, 0xD2511F53u);
        lanes_w product2 = lanes_multiply(c2, 0xCD9E8D57u);
        c0 = product2 >> 32 ^ c1 ^ keys->low[round];
        c1 = product2;
        c2 = product0 >> 32 ^ c3 ^ keys->high[round];
        c3 = product0;
    }
    lanes_store_quads((c0 & 0xffffffffu) | c1 << 32, (c2 & 0xffffffffu) | c3 << 32, words);
}

static void random_words(uint64_t seed, uint32_t stream, uint64_t first, int64_t count,
                         uint32_t *words) {
    philox_keys keys;
    uint64_t order[PAIRS];
    lanes_w turns;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        keys.low[round] = (lanes_w){0} + ((uint32_t)seed + round * 0x9E3779B9u);
        keys.high[round] = (lanes_w){0} + ((uint32_t)(seed >> 32) + round * 0xBB67AE85u);
    }
    for (uint64_t i = 0; i < PAIRS; i++)
        order[i] = i / 2 + i % 2 * (PAIRS / 2);
    memcpy(&turns, order, sizeof turns);
    int64_t i = 0;
    for (; i + 8 * PAIRS <= count; i += 8 * PAIRS) {
        lanes_w quad = turns + (first + (uint64_t)i) / 4;
        lanes_philox(&keys, stream, quad, words + i);
        lanes_philox(&keys, stream, quad + (uint64_t)PAIRS, words + i + 4 * PAIRS);
    }
    cpu_random(seed, stream, first + (uint64_t)i, count - i, words + i);
}

QG_ENCODE32_DEFINE(INLINE, lanes_encode, lanes_u, LANES_MASK)

INLINE void lanes_encode_run(int mode, const cpu_cast *c, const float *v, const uint32_t *words,
                             int64_t count, uint8_t *codes) {
    const qg_encoder32 e = c->encoder;
    bool needs_words = mode >= QG_ROUND_STOCHASTIC_A;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes_u word = {0};
        if (needs_words)
            word = lanes_load(words + i);
        lanes_u code = lanes_encode(&e, mode, lanes_load(v + i), word);
        lanes_byte narrow = __builtin_convertvector(code, lanes_byte);
        memcpy(codes + i, &narrow, sizeof narrow);
    }
    for (; i < count; i++)
        codes[i] = (uint8_t)qg_encode32(&e, qg_bits_of_float(v[i]), needs_words ? words[i] : 0);
}

static void encode(const cpu_cast *c, const float *v, const uint32_t *words, int64_t count,
                   uint8_t *codes) {
#define LANES_MODE(MODE)                                                                           \
    case MODE: lanes_encode_run(MODE, c, v, words, count, codes); break;
    switch (c->encoder.mode) {
        LANES_MODE(QG_ROUND_RNE)
        LANES_MODE(QG_ROUND_RNA)
        LANES_MODE(QG_ROUND_RTZ)
        LANES_MODE(QG_ROUND_RTP)
        LANES_MODE(QG_ROUND_RTN)
        LANES_MODE(QG_ROUND_RTO)
        LANES_MODE(QG_ROUND_STOCHASTIC_A)
        LANES_MODE(QG_ROUND_STOCHASTIC_B)
        LANES_MODE(QG_ROUND_STOCHASTIC_C)
    default: break;
    }
#undef LANES_MODE
}

// What every vector length has from here.
static inline void lanes_install(cpu_kernels *k) {
    k->amax[INPUT_FP32] = amax_fp32;
    k->amax[INPUT_BF16] = amax_bf16;
    k->amax[INPUT_FP16] = amax_fp16;
    k->scales = scales;
    k->apply[INPUT_FP32] = apply_fp32;
    k->apply[INPUT_BF16] = apply_bf16;
    k->apply[INPUT_FP16] = apply_fp16;
    k->random = random_words;
    k->encode = encode;
}

#endif
