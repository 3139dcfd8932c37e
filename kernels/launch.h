// The launchers of the kernels, one per file, and how their errors are told.
#ifndef LAUNCH_H
#define LAUNCH_H

#include <quantize_args.cuh>

QG_EXTERN_C_BEGIN

// One line in `error`; returns `status`.
qg_status kernel_fail(qg_cuda_error *error, qg_status status, const char *format, ...);
// QG_OK, or what the runtime says of `what`.
qg_status kernel_status(cudaError_t code, const char *what, qg_cuda_error *error);

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
