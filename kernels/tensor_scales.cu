// Two-level rules: what depends on the amax of the whole tensor, found once before its blocks.
#include <launch.h>

// One CTA; a thread per code of the block scales' format.
QG_KERNEL __launch_bounds__(QG_UE4M3_CODES)
    scales_of_tensor(qg_recipe recipe, qg_format type, const float *amax, tensor_scales *out,
                     float *tensor_scale) {
    QG_SHARED(tensor_scales, found, 1);
    if (threadIdx.x == 0) {
        found[0].scaler = qg_scaler_of(&recipe, type, *amax);
        found[0].ordinary = qg_ordinary_constants_of(&found[0].scaler);
        *tensor_scale = found[0].scaler.tensor;
    }
    __syncthreads();
    if (qg_ordinary_has_operands(&found[0].ordinary))
        found[0].ordinary.operands[threadIdx.x] =
            qg_ordinary_operand(&found[0].scaler, found[0].ordinary.divides, threadIdx.x);
    __syncthreads();
    const uint32_t *from = (const uint32_t *)&found[0];
    for (uint32_t i = threadIdx.x; i < sizeof(tensor_scales) / sizeof *from; i += blockDim.x)
        ((uint32_t *)out)[i] = from[i];
}

qg_status launch_tensor_scales(const quantize_args *args, cudaStream_t stream,
                               qg_cuda_error *error) {
    qg_status status = launch_tensor_amax(args, stream, error);
    if (status != QG_OK)
        return status;
    cudaError_t code =
        QG_LAUNCH(scales_of_tensor, dim3(1), dim3(QG_UE4M3_CODES), 0, stream, args->call.recipe,
                  scaler_input(&args->call), (const float *)args->call.scratch,
                  (tensor_scales *)args->of_tensor, args->call.tensor_scale);
    return kernel_status(code, "scales_of_tensor", error);
}
