// A chunk is eight neighbouring elements of a row: what a thread holds at a time in the kernels of
// whole tensors, rows and blocks. Loads of 16 bytes and wide stores where addresses allow it.
// Rows may end within a chunk; blocks begin at a packed byte (see packs_apart in quantize.cu).
#ifndef CHUNK_CUH
#define CHUNK_CUH

#include <element.cuh>

enum { CHUNK = 8 };

// Before a loop whose counter must be a constant, so that arrays stay in registers.
#ifdef __CUDACC__
#define QG_UNROLL _Pragma("unroll")
#else
#define QG_UNROLL
#endif

static __device__ inline bool is_aligned(const void *p, int bytes) {
    return ((uintptr_t)p & (uintptr_t)(bytes - 1)) == 0;
}

// i / n and i % n, in 32 bits where they fit.
static __device__ inline void split_index(int64_t i, int64_t n, int64_t *quotient, int64_t *rest) {
    if (((uint64_t)(i | n) >> 32) == 0) {
        uint32_t q = (uint32_t)i / (uint32_t)n;
        *quotient = q;
        *rest = (uint32_t)i - q * (uint32_t)n;
    } else {
        *quotient = i / n;
        *rest = i - *quotient * n;
    }
}

// ------------------------------------------------------------------------------------------- load
//
// A chunk stays as it was loaded until it is used: eight words of binary32, or four of two narrow
// elements. So the type of x is a branch, not a template, and no load waits for another one's
// conversion. SiLU times up is computed at once.

typedef struct chunk {
    uint32_t words[CHUNK];
} chunk;

// Of the words.
static __device__ inline int chunk_type(const quantize_args *args) {
    return args->call.up ? (int)INPUT_FP32 : args->input;
}

static __device__ inline float any_element(const quantize_args *args, int64_t i) {
    return args->input == INPUT_FP32   ? load_element<INPUT_FP32>(args, i)
           : args->input == INPUT_BF16 ? load_element<INPUT_BF16>(args, i)
                                       : load_element<INPUT_FP16>(args, i);
}

// Chunks that are short, not aligned, or activated.
static __device__ __noinline__ chunk load_by_elements(const quantize_args *args, int64_t first,
                                                      int count) {
    chunk c = {};
    for (int i = 0; i < count; i++) {
        if (args->call.up)
            c.words[i] = qg_bits_of_float(any_element(args, first + i));
        else if (args->input == INPUT_FP32)
            c.words[i] = ((const uint32_t *)args->call.x)[first + i];
        else
            c.words[i / 2] |= (uint32_t)((const uint16_t *)args->call.x)[first + i] << (i % 2 * 16);
    }
    return c;
}

// Elements first .. first + count - 1 of the tensor, +0 beyond: it leaves an amax as it is.
static __device__ inline chunk load_chunk(const quantize_args *args, int64_t first, int count) {
    bool is_narrow = args->input != INPUT_FP32;
    const char *at = (const char *)args->call.x + first * (is_narrow ? 2 : 4);
    if (count < CHUNK || !is_aligned(at, QG_LOAD_BYTES) || args->call.up)
        return load_by_elements(args, first, count);
    chunk c;
    uint4 low = ((const uint4 *)at)[0], high = {0, 0, 0, 0};
    if (!is_narrow)
        high = ((const uint4 *)at)[1];
    c.words[0] = low.x, c.words[1] = low.y, c.words[2] = low.z, c.words[3] = low.w;
    c.words[4] = high.x, c.words[5] = high.y, c.words[6] = high.z, c.words[7] = high.w;
    return c;
}

static __device__ inline void widen_chunk(int type, const chunk *c, float *v) {
    if (type == INPUT_FP32) {
        QG_UNROLL for (int i = 0; i < CHUNK; i++) v[i] = qg_float_of_bits(c->words[i]);
    } else if (type == INPUT_BF16) {
        QG_UNROLL for (int i = 0; i < CHUNK; i++) v[i] =
            qg_float_of_bf16((uint16_t)(c->words[i / 2] >> (i % 2 * 16)));
    } else {
        QG_UNROLL for (int i = 0; i < CHUNK; i++) v[i] =
            qg_float_of_fp16((uint16_t)(c->words[i / 2] >> (i % 2 * 16)));
    }
}

// The bits of the largest magnitude so far, by the recipe's policy.
static __device__ inline uint32_t chunk_amax(const quantize_args *args, uint32_t amax_bits,
                                             const chunk *c) {
    float v[CHUNK], amax = qg_float_of_bits(amax_bits);
    widen_chunk(chunk_type(args), c, v);
    QG_UNROLL for (int i = 0; i < CHUNK; i++) amax =
        qg_amax_step(args->call.recipe.amax, amax, v[i]);
    return qg_bits_of_float(amax);
}

// The largest of a CTA, in thread 0. Every thread calls it; `of_warps` has room for 32.
static __device__ inline uint32_t cta_amax(uint32_t amax_bits, uint32_t *of_warps) {
    const unsigned all = 0xffffffffu;
    int warp = (int)threadIdx.x / QG_WARP_THREADS, lane = (int)threadIdx.x % QG_WARP_THREADS;
    amax_bits = __reduce_max_sync(all, amax_bits);
    if (lane == 0)
        of_warps[warp] = amax_bits;
    __syncthreads();
    if (warp == 0)
        amax_bits =
            __reduce_max_sync(all, lane < (int)blockDim.x / QG_WARP_THREADS ? of_warps[lane] : 0);
    return amax_bits;
}

// ------------------------------------------------------------------------------------------ store

// The low `bytes` bytes of a word, as few stores as the address allows.
static __device__ inline void store_bytes(uint8_t *at, uint64_t word, int bytes) {
    if (bytes == 8 && is_aligned(at, 8)) {
        *(uint64_t *)at = word;
    } else if (bytes == 4 && is_aligned(at, 4)) {
        *(uint32_t *)at = (uint32_t)word;
    } else if (bytes == 6 && is_aligned(at, 2)) {
        ((uint16_t *)at)[0] = (uint16_t)word;
        ((uint16_t *)at)[1] = (uint16_t)(word >> 16);
        ((uint16_t *)at)[2] = (uint16_t)(word >> 32);
    } else {
        for (int i = 0; i < bytes; i++)
            at[i] = (uint8_t)(word >> (8 * i));
    }
}

// Codes of up to 8 bits, `bits` apart, as one word.
static __device__ inline uint64_t joined(const uint32_t *codes, int bits) {
    uint32_t low = 0, high = 0;
    uint64_t word = 0;
    if (bits == 8) {
        QG_UNROLL for (int i = 0; i < 4; i++) {
            low |= codes[i] << (8 * i);
            high |= codes[i + 4] << (8 * i);
        }
        return (uint64_t)high << 32 | low;
    }
    if (bits == 4) {
        QG_UNROLL for (int i = 0; i < CHUNK; i++) low |= codes[i] << (4 * i);
        return low;
    }
    QG_UNROLL for (int i = 0; i < CHUNK; i++) word |= (uint64_t)codes[i] << (6 * i);
    return word;
}

// Bytes that `count` codes take at the end of a row.
static __device__ inline int bytes_of(int count, int bits) {
    return bits == 4 ? (count + 1) / 2 : bits == 6 ? (count + 3) / 4 * 3 : count * bits / 8;
}

static __device__ __noinline__ void store_by_function(const quantize_args *args,
                                                      const block_operand *b, chunk c,
                                                      int64_t first, uint8_t *at, int count) {
    int bits = args->stored_bits;
    uint64_t word = 0;
    float v[CHUNK];
    widen_chunk(chunk_type(args), &c, v);
    for (int i = 0; i < count; i++) {
        uint64_t code = element_code<CAST_FUNCTION>(args, b, v[i], first + i);
        if (bits <= 8)
            word |= code << (bits * i);
        else
            store_bytes(at + i * (bits / 8), code, bits / 8);
    }
    if (bits <= 8)
        store_bytes(at, word, bytes_of(count, bits));
}

// Both FP8 instructions serve CAST_E4M3 here; FP4 and FP6, which have none before Blackwell, are
// CAST_ENCODER's.
template <int Cast>
static __device__ inline void chunk_codes(const quantize_args *args, const block_operand *b,
                                          const float *v, int64_t first, uint32_t *codes) {
    QG_UNROLL for (int i = 0; i < CHUNK; i++) codes[i] =
        (uint32_t)element_code<Cast>(args, b, v[i], first + i);
}

// The codes of a chunk, elements first .. first + count - 1 of the tensor, to `at` and what follows.
template <int Cast>
static __device__ inline void store_chunk(const quantize_args *args, const block_operand *b,
                                          const chunk *c, int64_t first, uint8_t *at, int count) {
    if (Cast == CAST_FUNCTION || b->by_function) {
        store_by_function(args, b, *c, first, at, count);
        return;
    }
    // What the operand alone decides, in registers.
    block_operand plain;
    plain.operand = b->operand;
    plain.divides = b->divides;
    plain.by_function = 0;
    uint32_t codes[CHUNK];
    float v[CHUNK];
    widen_chunk(chunk_type(args), c, v);
    if (Cast == CAST_E4M3 && args->cast == CAST_E5M2)
        chunk_codes<CAST_E5M2>(args, &plain, v, first, codes);
    else
        chunk_codes<Cast>(args, &plain, v, first, codes);
    QG_UNROLL for (int i = 0; i < CHUNK; i++) codes[i] = i < count ? codes[i] : 0;
    store_bytes(at, joined(codes, args->stored_bits), bytes_of(count, args->stored_bits));
}

// Where the code of a column lies in a row.
static __device__ inline uint8_t *code_address(const quantize_args *args, int64_t row,
                                               int64_t column) {
    return args->call.codes + row * args->row_bytes + column * args->stored_bits / 8;
}

#endif
