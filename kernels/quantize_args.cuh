// What a quantization kernel gets, by value: the call, and the constants that the host derived.
#ifndef QUANTIZE_ARGS_CUH
#define QUANTIZE_ARGS_CUH

#include <qg_cuda_module.h>
#include <qg_device.cuh>
#include <qg_ordinary_scale.h>
#include <qg_partition.h>

// The types of x, as template arguments. INPUT_ANY: what quantize_args.input says at run time.
enum { INPUT_FP32, INPUT_BF16, INPUT_FP16, INPUT_ANY };

// How v becomes a code, as template arguments: by qg_element_code, which does everything; by the
// branch-free encoder, where nearest even rounds v and no binary32 overflow or underflow can be seen
// in the code; by cvt, where that is what the encoder does.
enum { CAST_FUNCTION, CAST_ENCODER, CAST_E4M3, CAST_E5M2, CAST_E2M1, CAST_E2M3, CAST_E3M2 };

// What depends on the amax of the tensor under a two-level rule; written by a kernel.
typedef struct tensor_scales {
    qg_scaler scaler;
    qg_ordinary_scales ordinary;
} tensor_scales;

typedef struct quantize_args {
    qg_cuda_quantize call;
    qg_blocks blocks;
    int64_t row_bytes;    // of stored codes
    int64_t planes_bytes; // from one plane of codes to the next (residual recipes)
    int64_t slab;         // rows begin at slab * QG_GRID_X_MOST
    int32_t input, cast;
    int32_t bits, code_bytes, scale_bytes;
    int32_t is_stochastic;
    // Codes that share bytes: 2 packed ones of 4 bits, 4 packed ones of 6 bits, else 1; how many
    // bytes; bits from a code to the next.
    int32_t unit, unit_bytes, stored_bits;
    int32_t scales_in_tiles;                   // else the offset of scale (i, j) is
    int64_t scale_row_step, scale_column_step; // i * row step + j * column step
    qg_encoder32 encoder;                      // where cast is not CAST_FUNCTION
    tensor_scales scales;                      // of rules that are not two-level
    const tensor_scales *of_tensor;            // in scratch, of two-level rules; else NULL
    float *wide; // (m, k) in scratch, where structure.cu widens x; else NULL
} quantize_args;

// Parameters stay in constant memory under __grid_constant__: a pointer to them costs nothing.
static __device__ inline const tensor_scales *scales_of(const quantize_args *args) {
    return args->of_tensor ? args->of_tensor : &args->scales;
}

#endif
