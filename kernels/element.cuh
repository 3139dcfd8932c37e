// From memory to v, from v to a code, from a code to memory: what all quantization kernels share.
#ifndef ELEMENT_CUH
#define ELEMENT_CUH

#include <qg_input.h>
#include <qg_silu.h>
#include <quantize_args.cuh>

// ------------------------------------------------------------------------------------------- load

static __device__ inline float float_of_fp16(uint16_t bits) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(bits));
#else
    return qg_float_of_fp16(bits);
#endif
}

template <int Input> static __device__ inline float element_of(const void *x, int64_t i) {
    if (Input == INPUT_FP32)
        return ((const float *)x)[i];
    uint16_t bits = ((const uint16_t *)x)[i];
    return Input == INPUT_BF16 ? qg_float_of_bf16(bits) : float_of_fp16(bits);
}

// What is quantized: x, or SiLU(gate) times up. INPUT_ANY: small code rather than few instructions.
template <int Input>
static __device__ inline float load_element(const quantize_args *args, int64_t i) {
    if (Input == INPUT_ANY)
        return args->input == INPUT_BF16   ? load_element<INPUT_BF16>(args, i)
               : args->input == INPUT_FP16 ? load_element<INPUT_FP16>(args, i)
                                           : load_element<INPUT_FP32>(args, i);
    float x = element_of<Input>(args->call.x, i);
    return args->call.up ? qg_silu_times_up(x, element_of<Input>(args->call.up, i)) : x;
}

// ------------------------------------------------------------------------------------------ scale

// The scale of a block as its elements use it.
typedef struct block_operand {
    uint32_t bits; // as stored
    float operand;
    int32_t divides;
    int32_t by_function; // the operand does not do: `scale` does
    qg_block_scale scale;
} block_operand;

// An amax that is 0, NaN, infinite or extreme, and rules without constants.
static __device__ __noinline__ void operand_by_function(const tensor_scales *s, float amax,
                                                        const qg_block_elements *elements,
                                                        block_operand *out) {
    out->scale = qg_block_scale_of(&s->scaler, amax, elements);
    out->bits = out->scale.bits;
    out->divides = out->scale.apply == QG_APPLY_DIVIDING;
    // An infinity may be among the elements.
    out->by_function = !qg_operand_of(&s->scaler, out->divides, &out->scale, 0, &out->operand);
}

template <int Cast>
static __device__ inline block_operand operand_of_amax(const quantize_args *args, float amax) {
    const tensor_scales *s = scales_of(args);
    block_operand b;
    uint32_t bits = qg_bits_of_float(amax);
    b.by_function = 0;
    b.divides = s->ordinary.divides;
    if (Cast != CAST_FUNCTION && s->ordinary.kind != QG_ORDINARY_NONE &&
        qg_is_ordinary(&s->ordinary, bits))
        b.bits = qg_ordinary_scale(&s->ordinary, bits, &b.operand);
    else
        operand_by_function(s, amax, NULL, &b);
    return b;
}

// Orders without tiles are linear in row and column: no division then.
static __device__ inline void store_scale(const quantize_args *args, int64_t block_row,
                                          int64_t block_column, uint32_t bits) {
    int64_t offset = block_row * args->scale_row_step + block_column * args->scale_column_step;
    if (args->scales_in_tiles)
        offset = qg_scale_order_offset(args->call.order, args->blocks.block_rows,
                                       args->blocks.block_columns, block_row, block_column);
    if (args->scale_bytes == 1)
        args->call.scales[offset] = (uint8_t)bits;
    else
        ((uint32_t *)args->call.scales)[offset] = bits;
}

// ------------------------------------------------------------------------------------------- code

static __device__ __noinline__ uint64_t code_by_function(const quantize_args *args,
                                                         const qg_block_scale *scale, float x,
                                                         int64_t i) {
    const qg_scaler *scaler = &scales_of(args)->scaler;
    uint32_t word =
        args->is_stochastic ? qg_philox_word(args->call.seed, args->call.stream, (uint64_t)i) : 0;
    return qg_element_code(scaler, scale, qg_scaled_value(scale, x), word);
}

// Which conversions are instructions. The narrow ones need a target with features of its own.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define CVT_FP8 1
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define CVT_NARROW 1
#endif

template <int Cast> static __device__ inline bool cast_is_instruction() {
#ifdef CVT_NARROW
    if (Cast == CAST_E2M1 || Cast == CAST_E2M3 || Cast == CAST_E3M2)
        return true;
#endif
#ifdef CVT_FP8
    return Cast == CAST_E4M3 || Cast == CAST_E5M2;
#else
    return false;
#endif
}

// Where the cast is an instruction: the codes of a and b, numbers, in bytes 0 and 1.
template <int Cast> static __device__ inline uint32_t codes_by_instruction(float a, float b) {
#ifdef CVT_NARROW
    if (Cast == CAST_E2M1) {
        uint32_t both = __nv_cvt_float2_to_fp4x2(make_float2(a, b), __NV_E2M1, cudaRoundNearest);
        return (both & 15) | (both >> 4) << 8;
    }
    if (Cast == CAST_E2M3 || Cast == CAST_E3M2)
        return __nv_cvt_float2_to_fp6x2(
            make_float2(a, b), Cast == CAST_E2M3 ? __NV_E2M3 : __NV_E3M2, cudaRoundNearest);
#endif
#ifdef CVT_FP8
    if (Cast == CAST_E4M3 || Cast == CAST_E5M2)
        return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE,
                                        Cast == CAST_E4M3 ? __NV_E4M3 : __NV_E5M2);
#endif
    return a != b;
}

// The code of v where the cast is not CAST_FUNCTION. Where the hardware converts, NaN gets its code
// beside it: the instruction knows one policy alone.
template <int Cast>
static __device__ inline uint32_t code_of_value(const quantize_args *args, float v) {
    if (cast_is_instruction<Cast>()) {
        uint32_t code = codes_by_instruction<Cast>(v, 0.0f) & 255;
        return v == v ? code : args->encoder.nan;
    }
    return qg_encode32_lane(&args->encoder, QG_ROUND_RNE, qg_bits_of_float(v), 0);
}

// Of Count values, each code in args->stored_bits bits, the first one lowest. 8 bits and less.
template <int Cast, int Count>
static __device__ inline uint32_t codes_of_values(const quantize_args *args, const float *v) {
    static_assert(Count == 2 || Count == 4, "two or four codes fill a word");
    uint32_t bits = (uint32_t)args->stored_bits, codes = 0;
    bool any_nan = false;
    for (int j = 0; j < Count; j++)
        any_nan |= !(v[j] == v[j]);
    if (cast_is_instruction<Cast>() && !any_nan) {
        for (int j = 0; j < Count; j += 2) {
            uint32_t pair = codes_by_instruction<Cast>(v[j], v[j + 1]);
            if (Cast != CAST_E4M3 && Cast != CAST_E5M2)
                pair = (pair & 255) | (pair >> 8) << bits;
            codes |= pair << ((uint32_t)j * bits);
        }
        return codes;
    }
    for (int j = 0; j < Count; j++)
        codes |= code_of_value<Cast>(args, v[j]) << ((uint32_t)j * bits);
    return codes;
}

// The code of element i of the tensor, x.
template <int Cast>
static __device__ inline uint64_t element_code(const quantize_args *args, const block_operand *b,
                                               float x, int64_t i) {
    if (Cast == CAST_FUNCTION || b->by_function)
        return code_by_function(args, &b->scale, x, i);
    return code_of_value<Cast>(args, b->divides ? x / b->operand : x * b->operand);
}

// ---------------------------------------------------------------------------------------- storage

// Writes the bytes that args->unit neighbouring codes share: their codes are in `word`, the first
// one lowest, and column, of the first one, is a multiple of the unit.
static __device__ inline void store_unit(const quantize_args *args, int64_t row, int64_t column,
                                         uint64_t word) {
    uint8_t *out =
        args->call.codes + row * args->row_bytes + column / args->unit * args->unit_bytes;
    for (int b = 0; b < args->unit_bytes; b++)
        out[b] = (uint8_t)(word >> (8 * b));
}

#endif
