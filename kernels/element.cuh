// From memory to v, from v to a code, from a code to memory: what all quantization kernels share.
#ifndef ELEMENT_CUH
#define ELEMENT_CUH

#include <qg_input.h>
#include <qg_silu.h>
#include <quantize_args.cuh>

// ------------------------------------------------------------------------------------------- load

template <int Input> static __device__ inline float element_of(const void *x, int64_t i) {
    if (Input == INPUT_FP32)
        return ((const float *)x)[i];
    uint16_t bits = ((const uint16_t *)x)[i];
    return Input == INPUT_BF16 ? qg_float_of_bf16(bits) : qg_float_of_fp16(bits);
}

// What is quantized: x, or SiLU(gate) times up.
template <int Input>
static __device__ inline float load_element(const quantize_args *args, int64_t i) {
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

static __device__ inline void store_scale(const quantize_args *args, int64_t block_row,
                                          int64_t block_column, uint32_t bits) {
    int64_t offset = qg_scale_order_offset(args->call.order, args->blocks.block_rows,
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

// The code of v where the cast is not CAST_FUNCTION. Where the hardware converts, NaN gets its code
// beside it: the instruction knows one policy alone.
template <int Cast>
static __device__ inline uint32_t code_of_value(const quantize_args *args, float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    if (Cast == CAST_E4M3 || Cast == CAST_E5M2) {
        uint32_t code =
            __nv_cvt_float_to_fp8(v, __NV_SATFINITE, Cast == CAST_E4M3 ? __NV_E4M3 : __NV_E5M2);
        return v == v ? code : args->encoder.nan;
    }
#endif
    return qg_encode32_lane(&args->encoder, QG_ROUND_RNE, qg_bits_of_float(v), 0);
}

// The code of element i of the tensor, x.
template <int Cast>
static __device__ inline uint64_t element_code(const quantize_args *args, const block_operand *b,
                                               float x, int64_t i) {
    if (Cast == CAST_FUNCTION || b->by_function)
        return code_by_function(args, &b->scale, x, i);
    return code_of_value<Cast>(args, b->divides ? x / b->operand : x * b->operand);
}

#endif
