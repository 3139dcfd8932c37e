// The inner loops of the CPU runtime: a table per instruction set, scalar first, overlaid by what a
// faster set has. Loops see a run of elements of one row, cut into groups of `columns` (the last
// may be short); who shares rows, threads and memory is the business of their callers.
#ifndef CPU_KERNELS_INTERNAL_H
#define CPU_KERNELS_INTERNAL_H

#include <qg_block_scale.h>
#include <qg_encode32.h>
#include <qg_init.h>
#include <qg_input.h>
#include <qg_ordinary_scale.h>
#include <qg_philox.h>
#include <stdbool.h>

// The types of elements, as indexes of tables.
enum { INPUT_FP32, INPUT_BF16, INPUT_FP16, INPUT_COUNT };

// How an element x and the operand of its group become v.
enum {
    APPLY_MULTIPLY,
    APPLY_DIVIDE,
    APPLY_NOTHING, // the operand is 1
    APPLY_POWER    // multiply by a power of two (`cast_bounded` kernels)
};

// --------------------------------------------------------------------------------------- encoding

// Everything that turns v into a code.
typedef struct cpu_cast {
    qg_encoder32 encoder;
    // Directed modes see that v is not 0 or infinite although binary32 says so, where the operand
    // is a power of two: the specification's product is exact.
    bool is_directed;
    // Nearest even with one rounding by the floating-point unit (`cast` kernels).
    bool is_fused, is_int;
    uint8_t nan_code;
    // Floats: magnitudes are clamped to `high` and to `least` (2^emin), `add` makes the number
    // whose ulp is the spacing, whose low bits are a bias; `fold` makes byte 1 of the sum the code.
    float high, least;
    uint32_t add, fold;
    uint8_t sign_mask, sign_shift;
    bool keeps_no_sign;
    // Bounded kernels: the code of `high`, to which codes are clamped, and the mantissa bits.
    bool is_boundable;
    uint8_t high_code, mbits;
    // Integers: v * scale is clamped to low .. high and converted.
    float scale, low;
} cpu_cast;

// --------------------------------------------------------------------------------------- decoding

typedef struct cpu_decode {
    float values[256];              // of all codes
    uint8_t byte3[256], byte2[256]; // of them: no value of 8 bits has more
} cpu_decode;

// ------------------------------------------------------------------------------------------ table

typedef struct cpu_kernels {
    const char *name;
    qg_isa isa;

    // amax[g] = max(amax[g], magnitudes of group g), as binary32 bits; NaN counts as its bits.
    void (*amax[INPUT_COUNT])(const void *x, int64_t count, int64_t columns, uint32_t *amax);

    // stored: n fields of 1 byte (E8M0, UE4M3) or 4. Whether every amax was ordinary; lanes of others
    // may hold anything, the caller does them again.
    bool (*scales)(const qg_ordinary_scales *s, const uint32_t *amax, int64_t n, uint8_t *stored,
                   float *operand);

    // v: (count). is_directed: see cpu_cast.
    void (*apply[INPUT_COUNT])(const void *x, int64_t count, int64_t columns, const float *operand,
                               int how, bool is_directed, float *v);
    // Philox words of elements first .. first + count - 1, first a multiple of 4.
    void (*random)(uint64_t seed, uint32_t stream, uint64_t first, int64_t count, uint32_t *words);
    // words: (count) random words, read by the stochastic modes alone.
    void (*encode)(const cpu_cast *c, const float *v, const uint32_t *words, int64_t count,
                   uint8_t *codes);

    // Both at once for is_fused casts; NULL: there is none. `ahead`: bytes beyond the element being
    // read that are fetched into the cache, 0 for none.
    void (*cast[INPUT_COUNT])(const cpu_cast *c, const void *x, int64_t count, int64_t columns,
                              const float *operand, int how, int64_t ahead, uint8_t *codes);

    // The same where every element is finite and no |v| exceeds four times `high`; NULL: there is
    // none. With APPLY_POWER groups of zeros must have an operand of 1. May read three operands
    // beyond the last.
    void (*cast_bounded[INPUT_COUNT])(const cpu_cast *c, const void *x, int64_t count,
                                      int64_t columns, const float *operand, int how, int64_t ahead,
                                      uint8_t *codes);

    // q[i] = value of codes[i] times x of its group.
    void (*decode)(const cpu_decode *d, const uint8_t *codes, int64_t count, int64_t columns,
                   const float *x, int64_t ahead, float *q);

    void (*pack4)(const uint8_t *codes, int64_t count, uint8_t *packed);
    void (*pack6)(const uint8_t *codes, int64_t count, uint8_t *packed);
    void (*unpack4)(const uint8_t *packed, int64_t count, uint8_t *codes);
    void (*unpack6)(const uint8_t *packed, int64_t count, uint8_t *codes);

    // A copy past the caches, and what ends a series of them in a thread.
    void (*stream)(void *to, const void *from, int64_t bytes);
    void (*stream_end)(void);
} cpu_kernels;

// Each fills what it has.
void cpu_kernels_scalar(cpu_kernels *k);
void cpu_kernels_avx2(cpu_kernels *k);
void cpu_kernels_avx512(cpu_kernels *k);

// The table in use.
const cpu_kernels *cpu_kernels_chosen(void);

// Its instruction set, under the same cap and with VBMI if it is AVX-512.
static inline qg_isa cpu_kernels_isa(void) { return cpu_kernels_chosen()->isa; }

// ----------------------------------------------------------------------- what kernels fall back on

// One of the end of a run, or of a set without vectors.
static inline float cpu_element(int type, const void *x, int64_t i) {
    if (type == INPUT_FP32)
        return ((const float *)x)[i];
    uint16_t bits = ((const uint16_t *)x)[i];
    return type == INPUT_BF16 ? qg_float_of_bf16(bits) : qg_float_of_fp16(bits);
}

static inline const void *cpu_at(int type, const void *x, int64_t i) {
    return (const char *)x + i * (type == INPUT_FP32 ? 4 : 2);
}

// Also the end of a run of vectors.
static inline void cpu_random(uint64_t seed, uint32_t stream, uint64_t first, int64_t count,
                              uint32_t *words) {
    for (int64_t i = 0; i < count;) {
        qg_philox_block quad = qg_philox_quad(seed, stream, (first + (uint64_t)i) / 4);
        for (int j = 0; j < 4 && i < count; j++)
            words[i++] = quad.word[j];
    }
}

// v of one element.
static inline float cpu_applied(float x, float operand, int how, bool is_exact) {
    float v = how == APPLY_DIVIDE ? x / operand : how == APPLY_MULTIPLY ? x * operand : x;
    if (!is_exact)
        return v;
    uint32_t bits = qg_bits_of_float(v), magnitude = bits & 0x7fffffffu;
    uint32_t from = qg_bits_of_float(x) & 0x7fffffffu;
    if (magnitude < 0x00800000u && from != 0)
        bits |= 1;
    if (magnitude == 0x7f800000u && from < 0x7f800000u)
        bits -= 1;
    return qg_float_of_bits(bits);
}

#endif
