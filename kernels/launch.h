// The launchers of the kernels, one per file, and how their errors are told.
#ifndef LAUNCH_H
#define LAUNCH_H

#include <qg_block_structure.h>
#include <quantize_args.cuh>

// What a recipe sees: SiLU(gate) times up is bf16.
static inline qg_format scaler_input(const qg_cuda_quantize *call) {
    return call->up ? (qg_format)QG_FORMAT_BF16 : call->input_type;
}

// Blocks that structure.cu gives to a thread each.
static inline bool blocks_are_short(const qg_blocks *b) {
    return b->rows == 1 && b->columns <= QG_STRUCTURE_LONGEST;
}

QG_EXTERN_C_BEGIN

// One line in `error`; returns `status`.
qg_status kernel_fail(qg_cuda_error *error, qg_status status, const char *format, ...);
// QG_OK, or what the runtime says of `what`.
qg_status kernel_status(cudaError_t code, const char *what, qg_cuda_error *error);

// Bytes of a stored scale field.
int recipe_scale_bytes(const qg_recipe *recipe);
// Whether a recipe makes sense, its scales have such an order, and all sizes stay below 2^63.
qg_status check_stored(const qg_recipe *recipe, qg_scale_order order, int64_t m, int64_t k,
                       qg_cuda_error *error);
// Whether there is a kernel for the call, and the constants of its launch.
qg_status quantize_args_of(const qg_cuda_quantize *call, quantize_args *args, qg_cuda_error *error);
int64_t quantize_scratch(const qg_cuda_quantize *call);
const char *quantize_name(const qg_cuda_quantize *call);
// By layout and recipe to the launchers below; fills the padding of scales first.
qg_status launch_quantize(const qg_cuda_quantize *call, cudaStream_t stream, qg_cuda_error *error);

qg_status launch_group_shared(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
qg_status launch_group_hopper(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
qg_status launch_row(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
qg_status launch_block(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
// Two passes: the amax of the tensor, then its elements under one scale.
qg_status launch_tensor(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
// A CTA per block of at most `elements` elements.
qg_status launch_ctas(const quantize_args *args, int64_t elements, cudaStream_t stream,
                      qg_cuda_error *error);
// The bits of the tensor's amax to where call.scratch begins.
qg_status launch_tensor_amax(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);
// Codes of one byte each, `rows` rows of k, to packed rows.
qg_status launch_pack(int bits, int64_t rows, int64_t k, const uint8_t *codes, uint8_t *packed,
                      cudaStream_t stream, qg_cuda_error *error);
// Pair shifts and two planes; rules that look at every element of a block.
qg_status launch_structure(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error);

// Two-level rules: the amax of the tensor, then *call.tensor_scale and what of_tensor points to.
qg_status launch_tensor_scales(const quantize_args *args, cudaStream_t stream,
                               qg_cuda_error *error);

qg_status launch_dequantize(const qg_cuda_dequantize *call, cudaStream_t stream,
                            qg_cuda_error *error);
qg_status launch_multiply(const qg_cuda_multiply *call, cudaStream_t stream, qg_cuda_error *error);

QG_EXTERN_C_END

#endif
