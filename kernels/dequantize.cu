#include <launch.h>

qg_status launch_dequantize(const qg_cuda_dequantize *call, cudaStream_t stream,
                            qg_cuda_error *error) {
    (void)call;
    (void)stream;
    return kernel_fail(error, QG_ERROR_UNSUPPORTED, "no kernel yet");
}
