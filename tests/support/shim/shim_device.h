// What device code calls: indices, barriers, shuffles, atomics, intrinsics. Part of cuda_shim.h.
#ifndef SHIM_DEVICE_H
#define SHIM_DEVICE_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shim_types.h"

namespace shim {

// The indices of the thread that runs.
struct Indices {
    uint3 thread, block;
    dim3 block_dim, grid_dim;
};
extern Indices indices;

enum class Warp_op {
    sync,
    idx,
    up,
    down,
    xor_,
    ballot,
    any,
    all,
    add,
    min,
    max,
    and_,
    or_,
    xor_all
};

// Waits for all threads of the CTA.
void barrier(int line);

// Waits until all lanes of the mask gave their values to the same operation; returns its result.
uint64_t exchange(Warp_op op, unsigned mask, uint64_t value, unsigned operand, int width, int line);

unsigned live_lanes();

// The shared array of a declaration, the same for all threads of a CTA; key tells declarations
// apart.
void *shared_array(const void *key, const char *name, size_t bytes, size_t align);
void *dynamic_shared(const char *name, size_t align);

template <class To, class From> inline To bits_as(From from) {
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class T> inline uint64_t to_word(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "32 or 64 bits");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}

template <class T> inline T from_word(uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

} // namespace shim

#define threadIdx (static_cast<const uint3 &>(shim::indices.thread))
#define blockIdx  (static_cast<const uint3 &>(shim::indices.block))
#define blockDim  (static_cast<const dim3 &>(shim::indices.block_dim))
#define gridDim   (static_cast<const dim3 &>(shim::indices.grid_dim))
constexpr int warpSize = 32;

// Shared arrays in a kernel: TYPE NAME[COUNT], and the dynamic one of the launch's shared_bytes.
#define QG_SHARED(TYPE, NAME, COUNT)                                                               \
    static char NAME##_key;                                                                        \
    TYPE(&NAME)                                                                                    \
    [COUNT] = *static_cast<TYPE(*)[COUNT]>(                                                        \
        shim::shared_array(&NAME##_key, #NAME, sizeof(TYPE[COUNT]), alignof(TYPE)))
#define QG_DYNAMIC_SHARED(TYPE, NAME)                                                              \
    TYPE *const NAME = static_cast<TYPE *>(shim::dynamic_shared(#NAME, alignof(TYPE)))

// Barriers and warp operations. The line is the caller's, for the text of a fault.

inline void __syncthreads(int line = __builtin_LINE()) { shim::barrier(line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    shim::exchange(shim::Warp_op::sync, mask, 0, 0, warpSize, line);
}

#define SHIM_SHUFFLE(NAME, OP, OPERAND)                                                            \
    template <class T>                                                                             \
    inline T NAME(unsigned mask, T value, OPERAND operand, int width = warpSize,                   \
                  int line = __builtin_LINE()) {                                                   \
        return shim::from_word<T>(shim::exchange(shim::Warp_op::OP, mask, shim::to_word(value),    \
                                                 static_cast<unsigned>(operand), width, line));    \
    }
SHIM_SHUFFLE(__shfl_sync, idx, int)
SHIM_SHUFFLE(__shfl_up_sync, up, unsigned)
SHIM_SHUFFLE(__shfl_down_sync, down, unsigned)
SHIM_SHUFFLE(__shfl_xor_sync, xor_, int)
#undef SHIM_SHUFFLE

#define SHIM_VOTE(NAME, OP, RESULT)                                                                \
    inline RESULT NAME(unsigned mask, int predicate, int line = __builtin_LINE()) {                \
        return static_cast<RESULT>(                                                                \
            shim::exchange(shim::Warp_op::OP, mask, predicate != 0, 0, warpSize, line));           \
    }
SHIM_VOTE(__ballot_sync, ballot, unsigned)
SHIM_VOTE(__any_sync, any, int)
SHIM_VOTE(__all_sync, all, int)
#undef SHIM_VOTE

#define SHIM_REDUCE(NAME, OP)                                                                      \
    inline unsigned NAME(unsigned mask, unsigned value, int line = __builtin_LINE()) {             \
        return static_cast<unsigned>(                                                              \
            shim::exchange(shim::Warp_op::OP, mask, value, 0, warpSize, line));                    \
    }
SHIM_REDUCE(__reduce_add_sync, add)
SHIM_REDUCE(__reduce_min_sync, min)
SHIM_REDUCE(__reduce_max_sync, max)
SHIM_REDUCE(__reduce_and_sync, and_)
SHIM_REDUCE(__reduce_or_sync, or_)
SHIM_REDUCE(__reduce_xor_sync, xor_all)
#undef SHIM_REDUCE

// The lanes that have not ended: the shim knows no convergence.
inline unsigned __activemask() { return shim::live_lanes(); }

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// Atomics: threads take turns, so plain operations are atomic.

#define SHIM_ATOMIC(NAME, TYPE, NEW)                                                               \
    inline TYPE NAME(TYPE *address, TYPE value) {                                                  \
        TYPE old = *address;                                                                       \
        *address = NEW;                                                                            \
        return old;                                                                                \
    }
#define SHIM_ATOMICS(TYPE)                                                                         \
    SHIM_ATOMIC(atomicAdd, TYPE, old + value)                                                      \
    SHIM_ATOMIC(atomicMax, TYPE, old > value ? old : value)                                        \
    SHIM_ATOMIC(atomicMin, TYPE, old < value ? old : value)                                        \
    SHIM_ATOMIC(atomicAnd, TYPE, old &value)                                                       \
    SHIM_ATOMIC(atomicOr, TYPE, old | value)                                                       \
    SHIM_ATOMIC(atomicXor, TYPE, old ^ value)                                                      \
    SHIM_ATOMIC(atomicExch, TYPE, value)                                                           \
    inline TYPE atomicCAS(TYPE *address, TYPE compare, TYPE value) {                               \
        TYPE old = *address;                                                                       \
        *address = old == compare ? value : old;                                                   \
        return old;                                                                                \
    }
SHIM_ATOMICS(int)
SHIM_ATOMICS(unsigned)
SHIM_ATOMICS(unsigned long long)
SHIM_ATOMIC(atomicAdd, float, old + value)
SHIM_ATOMIC(atomicAdd, double, old + value)
SHIM_ATOMIC(atomicExch, float, value)
#undef SHIM_ATOMICS
#undef SHIM_ATOMIC

// Intrinsics. The arithmetic is IEEE's where it is compiled without contraction.

template <class T> inline T __ldg(const T *address) { return *address; }
template <class T> inline T __ldcs(const T *address) { return *address; }
template <class T> inline T __ldcg(const T *address) { return *address; }
template <class T> inline void __stcs(T *address, T value) { *address = value; }
template <class T> inline void __stcg(T *address, T value) { *address = value; }

inline unsigned __float_as_uint(float v) { return shim::bits_as<unsigned>(v); }
inline float __uint_as_float(unsigned v) { return shim::bits_as<float>(v); }
inline int __float_as_int(float v) { return shim::bits_as<int>(v); }
inline float __int_as_float(int v) { return shim::bits_as<float>(v); }
inline long long __double_as_longlong(double v) { return shim::bits_as<long long>(v); }
inline double __longlong_as_double(long long v) { return shim::bits_as<double>(v); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __clzll(long long v) {
    return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64;
}
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
// Byte i of the result is byte (selector's nibble i) & 7 of b:a, or its sign where bit 3 is set.
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    unsigned result = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned nibble = selector >> (4 * i) & 15;
        unsigned byte = static_cast<unsigned>(bytes >> (8 * (nibble & 7))) & 0xff;
        result |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << (8 * i);
    }
    return result;
}

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1 / a; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float __uint2float_rn(unsigned v) { return static_cast<float>(v); }
inline float __int2float_rn(int v) { return static_cast<float>(v); }
inline float __double2float_rn(double v) { return static_cast<float>(v); }

#define SHIM_MIN_MAX(TYPE)                                                                         \
    inline TYPE min(TYPE a, TYPE b) { return b < a ? b : a; }                                      \
    inline TYPE max(TYPE a, TYPE b) { return a < b ? b : a; }
SHIM_MIN_MAX(int)
SHIM_MIN_MAX(unsigned)
SHIM_MIN_MAX(long)
SHIM_MIN_MAX(unsigned long)
SHIM_MIN_MAX(long long)
SHIM_MIN_MAX(unsigned long long)
#undef SHIM_MIN_MAX
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }

#endif
