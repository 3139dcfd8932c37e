// The Hopper twin of the shared kernel: a lane is one 16-byte load, a group is shared by the lanes
// of one warp, a CTA holds several groups at a time. The amax goes through shuffles, elements stay
// in registers between amax and codes where a lane has one vector of the group, else they are read
// twice. No shared memory; nothing in it needs a Hopper GPU.
// Source: Metrale's Hopper quantizer, generalised. Exact: the emulator's bytes.
#include <group.cuh>

// CTAS_AT_ONCE: of a multiprocessor, which keeps a thread to 48 registers.
enum { VECTOR_MOST = QG_LOAD_BYTES / 2, HALF = VECTOR_MOST / 2, CTAS_AT_ONCE = 10 };

typedef struct alignas(QG_LOAD_BYTES) load16 {
    uint32_t word[QG_LOAD_BYTES / 4];
} load16;

template <int Input> static __device__ inline constexpr int vector_of() {
    return Input == INPUT_FP32 ? HALF : VECTOR_MOST;
}

// ------------------------------------------------------------------------------------------- load

template <int Input> static __device__ inline void widen(const load16 &load, float *x) {
    for (int j = 0; j < QG_LOAD_BYTES / 4; j++) {
        uint32_t word = load.word[j];
        uint16_t low = (uint16_t)word, high = (uint16_t)(word >> 16);
        if (Input == INPUT_FP32) {
            x[j] = qg_float_of_bits(word);
        } else if (Input == INPUT_BF16) {
            x[2 * j] = qg_float_of_bf16(low);
            x[2 * j + 1] = qg_float_of_bf16(high);
        } else {
            x[2 * j] = float_of_fp16(low);
            x[2 * j + 1] = float_of_fp16(high);
        }
    }
}

// The elements at `from`, of which `count` exist; zeros beyond.
template <int Input>
static __device__ inline load16 load_elements(const void *tensor, int64_t from, int count,
                                              int loads_wide) {
    const int vector = vector_of<Input>(), of_word = vector / (QG_LOAD_BYTES / 4);
    load16 load = {};
    if (loads_wide) {
        if (count > 0)
            load = ((const load16 *)tensor)[from / vector];
        return load;
    }
    for (int j = 0; j < vector; j++)
        if (j < count && of_word == 1)
            load.word[j] = ((const uint32_t *)tensor)[from + j];
        else if (j < count)
            load.word[j / of_word] |= (uint32_t)((const uint16_t *)tensor)[from + j] << j % 2 * 16;
    return load;
}

template <int Input, bool Gated>
static __device__ inline void load_vector(const group_args *a, int64_t from, int count, float *x) {
    widen<Input>(load_elements<Input>(a->q.call.x, from, count, a->loads_wide), x);
    if (!Gated)
        return;
    float up[vector_of<Input>()];
    widen<Input>(load_elements<Input>(a->q.call.up, from, count, a->loads_wide), up);
    for (int j = 0; j < vector_of<Input>(); j++)
        x[j] = qg_silu_times_up(x[j], up[j]);
}

// By run-time type.
static __device__ inline void load_any(const group_args *a, int64_t from, int count, float *x) {
    if (a->q.call.up) {
        for (int j = 0; j < VECTOR_MOST; j++)
            x[j] = j < count ? any_element(&a->q, from + j) : 0.0f;
        return;
    }
    for (int j = HALF; j < VECTOR_MOST; j++)
        x[j] = 0.0f;
    if (a->q.input == INPUT_BF16)
        load_vector<INPUT_BF16, false>(a, from, count, x);
    else if (a->q.input == INPUT_FP16)
        load_vector<INPUT_FP16, false>(a, from, count, x);
    else
        load_vector<INPUT_FP32, false>(a, from, count, x);
}

// ------------------------------------------------------------------------------------------- amax

template <int Count>
static __device__ inline float amax_of_vector(int policy, float amax, const float *x) {
    for (int j = 0; j < Count; j++)
        amax = qg_amax_step(policy, amax, x[j]);
    return amax;
}

// Of the lanes of each group, in all of them. Every lane of the warp comes here, also those without
// a group. What a lane brings counts already.
static __device__ inline float amax_of_lanes(const qg_partition *p, float amax) {
    for (int d = p->lanes / 2; d > 0; d /= 2)
        amax = qg_amax_step(QG_AMAX_PROPAGATES_NAN, amax, __shfl_xor_sync(0xffffffffu, amax, d));
    return amax;
}

// ------------------------------------------------------------------------------------------ codes

// Bytes at a multiple of their number, or of 2.
static __device__ inline void store_wide(uint8_t *out, uint64_t word, int bytes) {
    if (bytes == 8)
        *(uint64_t *)out = word;
    else if (bytes == 4)
        *(uint32_t *)out = (uint32_t)word;
    else
        for (int b = 0; b < bytes; b += 2)
            *(uint16_t *)(out + b) = (uint16_t)(word >> (8 * b));
}

// `count` codes from `column` on, at a unit's beginning and to its end, or the row's.
static __device__ inline void store_codes(const group_args *a, int64_t row, int64_t column,
                                          int count, uint64_t word) {
    const quantize_args *q = &a->q;
    int bits = q->stored_bits, bytes = a->partition.vector * bits / 8;
    uint8_t *out = q->call.codes + row * q->row_bytes + column * bits / 8;
    if (a->stores_wide && count == a->partition.vector) {
        store_wide(out, word, bytes);
        return;
    }
    if (count < VECTOR_MOST) // what is missing is 0, whatever the scale
        word &= ((uint64_t)1 << (count * bits)) - 1;
    bytes = (count + q->unit - 1) / q->unit * q->unit_bytes;
    for (int b = 0; b < bytes; b++)
        out[b] = (uint8_t)(word >> (8 * b));
}

template <int Cast, int Count>
static __device__ inline uint64_t codes_of_vector(const quantize_args *q, const group_operand *o,
                                                  const float *x) {
    float v[Count];
    if (o->divides)
        for (int j = 0; j < Count; j++)
            v[j] = x[j] / o->operand;
    else
        for (int j = 0; j < Count; j++)
            v[j] = x[j] * o->operand;
    uint64_t word = codes_of_values<Cast, HALF>(q, v);
    if (Count > HALF)
        word |= (uint64_t)codes_of_values<Cast, HALF>(q, v + Count - HALF)
                << (HALF * q->stored_bits);
    return word;
}

// The columns c of a lane, whose elements are x.
template <int Cast, int Count>
static __device__ inline void quantize_vector(const group_args *a, int64_t row, int64_t group,
                                              float amax, const group_operand *o, qg_span c,
                                              const float *x) {
    if (c.begin == c.end)
        return;
    if (Cast == CAST_FUNCTION || o->by_function || !a->units_whole)
        quantize_columns(&a->q, row, group, amax, c.begin, c.end);
    else
        store_codes(a, row, c.begin, (int)(c.end - c.begin),
                    codes_of_vector<Cast, Count>(&a->q, o, x));
}

// ----------------------------------------------------------------------------------------- kernels

template <int Cast>
static __device__ inline group_operand scale_of_group(const group_args *a, int64_t row,
                                                      int64_t group, float amax) {
    group_operand o = group_operand_of<Cast>(&a->q, amax);
    if (qg_partition_lane(&a->partition, (int)threadIdx.x) == 0)
        store_scale(&a->q, row, group, o.bits);
    return o;
}

static __device__ inline qg_span columns_of(const group_args *a, int64_t group, bool is_live,
                                            int64_t step) {
    qg_span none = {0, 0};
    return is_live ? qg_partition_columns(&a->partition, group, (int)threadIdx.x, step) : none;
}

// A lane has one vector of a group.
template <int Input, bool Gated, int Cast>
QG_KERNEL __launch_bounds__(QG_CTA_THREADS, CTAS_AT_ONCE)
    group_hopper(const __grid_constant__ group_args args) {
    const group_args *a = &args;
    int64_t row = qg_partition_row(a->q.slab, blockIdx.x), row_begin = row * a->q.call.k;
    qg_span span = qg_partition_span_at(&a->partition, a->span_size, blockIdx.y);
    for (int64_t first = span.begin; first < span.end; first += a->partition.held) {
        float x[vector_of<Input>()];
        int64_t group = qg_partition_group(&a->partition, first, (int)threadIdx.x);
        bool is_live = group < span.end;
        qg_span c = columns_of(a, group, is_live, 0);
        load_vector<Input, Gated>(a, row_begin + c.begin, (int)(c.end - c.begin), x);
        float amax = amax_of_vector<vector_of<Input>()>(a->q.call.recipe.amax, 0.0f, x);
        amax = amax_of_lanes(&a->partition, amax);
        if (!is_live)
            continue; // shuffles again in the next tile, with the others
        group_operand o = scale_of_group<Cast>(a, row, group, amax);
        quantize_vector<Cast, vector_of<Input>()>(a, row, group, amax, &o, c, x);
    }
}

// Any number of vectors, of any type, gated or not.
template <int Cast> QG_KERNEL group_hopper_in_steps(const __grid_constant__ group_args args) {
    const group_args *a = &args;
    int64_t row = qg_partition_row(a->q.slab, blockIdx.x), row_begin = row * a->q.call.k;
    int64_t steps = a->partition.steps;
    qg_span span = qg_partition_span_at(&a->partition, a->span_size, blockIdx.y);
    for (int64_t first = span.begin; first < span.end; first += a->partition.held) {
        float x[VECTOR_MOST], amax = 0.0f;
        int64_t group = qg_partition_group(&a->partition, first, (int)threadIdx.x);
        bool is_live = group < span.end;
        for (int64_t step = 0; step < steps; step++) {
            qg_span c = columns_of(a, group, is_live, step);
            load_any(a, row_begin + c.begin, (int)(c.end - c.begin), x);
            amax = amax_of_vector<VECTOR_MOST>(a->q.call.recipe.amax, amax, x);
        }
        amax = amax_of_lanes(&a->partition, amax);
        if (!is_live)
            continue;
        group_operand o = scale_of_group<Cast>(a, row, group, amax);
        for (int64_t step = 0; step < steps; step++) {
            qg_span c = columns_of(a, group, is_live, step);
            if (steps > 1)
                load_any(a, row_begin + c.begin, (int)(c.end - c.begin), x);
            quantize_vector<Cast, VECTOR_MOST>(a, row, group, amax, &o, c, x);
        }
    }
}

// ------------------------------------------------------------------------------------------ launch

typedef void (*group_kernel)(group_args);

// Common pairs of type and cast; the others go by the encoder, or by run-time type.
template <int Cast> static group_kernel kernel_of_type(const group_args *a) {
    bool is_gated = a->q.call.up != NULL;
    if (a->partition.steps > 1 || (is_gated && a->q.input != INPUT_BF16))
        return group_hopper_in_steps<CAST_ENCODER>;
    if (is_gated)
        return group_hopper<INPUT_BF16, true, Cast>;
    switch (a->q.input) {
    case INPUT_BF16: return group_hopper<INPUT_BF16, false, Cast>;
    case INPUT_FP16: return group_hopper<INPUT_FP16, false, Cast>;
    default: return group_hopper<INPUT_FP32, false, Cast>;
    }
}

// Casts that only bf16 elements get: every kernel takes seconds to compile.
template <int Cast> static group_kernel kernel_of_bf16(const group_args *a) {
    if (a->partition.steps > 1 || a->q.call.up || a->q.input != INPUT_BF16)
        return kernel_of_type<CAST_ENCODER>(a);
    return group_hopper<INPUT_BF16, false, Cast>;
}

static group_kernel kernel_of(const group_args *a) {
    switch (a->q.cast) {
    case CAST_ENCODER: return kernel_of_type<CAST_ENCODER>(a);
    case CAST_E4M3: return kernel_of_type<CAST_E4M3>(a);
    case CAST_E5M2: return kernel_of_bf16<CAST_E5M2>(a);
    case CAST_E2M1: return kernel_of_bf16<CAST_E2M1>(a);
    case CAST_E2M3: return kernel_of_bf16<CAST_E2M3>(a);
    case CAST_E3M2: return kernel_of_bf16<CAST_E3M2>(a);
    default: return group_hopper_in_steps<CAST_FUNCTION>;
    }
}

qg_status launch_group_hopper(const quantize_args *args, cudaStream_t stream,
                              qg_cuda_error *error) {
    group_args a = group_args_of(args, QG_GROUP_KERNEL_HOPPER);
    return launch_groups(kernel_of(&a), &a, stream, error);
}
