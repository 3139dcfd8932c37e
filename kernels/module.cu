// The module's struct: the seam of qg_cuda_module.h over the CUDA runtime and the launchers.
#include <launch.h>
#include <product.h>

#include <stdio.h>
#include <string.h>

static cudaStream_t the_stream;

// ----------------------------------------------------------------------------------------- device

static qg_cuda_absence absence_of(cudaError_t code, qg_cuda_error *error) {
    (void)kernel_status(code, "finding a device", error);
    switch (code) {
    case cudaSuccess: return QG_CUDA_ABSENT_NONE;
    case cudaErrorInsufficientDriver: return QG_CUDA_ABSENT_NO_DRIVER;
    case cudaErrorStubLibrary: return QG_CUDA_ABSENT_STUB_DRIVER;
    case cudaErrorNoDevice: return QG_CUDA_ABSENT_NO_DEVICE;
    default: return QG_CUDA_ABSENT_FAILED;
    }
}

static qg_cuda_absence module_open(qg_cuda_device *device, qg_cuda_error *error) {
    int count = 0;
    memset(device, 0, sizeof *device);
    (void)cudaRuntimeGetVersion(&device->runtime);
    (void)cudaDriverGetVersion(&device->driver);
    qg_cuda_absence absence = absence_of(cudaGetDeviceCount(&count), error);
    if (absence != QG_CUDA_ABSENT_NONE)
        return absence;
    if (count == 0)
        return QG_CUDA_ABSENT_NO_DEVICE;
    cudaDeviceProp properties;
    cudaError_t code = cudaGetDeviceProperties(&properties, 0);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithFlags(&the_stream, cudaStreamNonBlocking);
    if (code != cudaSuccess)
        return absence_of(code, error);
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->architecture = properties.major * 10 + properties.minor;
    device->sm_count = properties.multiProcessorCount;
    device->l2_bytes = properties.l2CacheSize;
    device->memory_bytes = (int64_t)properties.totalGlobalMem;
    product_open(device);
    return QG_CUDA_ABSENT_NONE;
}

// ----------------------------------------------------------------------------------------- memory

static qg_status module_allocate(int64_t bytes, void **out, qg_cuda_error *error) {
    *out = NULL;
    return kernel_status(cudaMalloc(out, bytes > 0 ? (size_t)bytes : 1), "device memory", error);
}

static void module_release(void *pointer) { (void)cudaFree(pointer); }

static qg_status module_synchronize(qg_cuda_error *error) {
    return kernel_status(cudaStreamSynchronize(the_stream), "kernels", error);
}

static qg_status copy_by(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind,
                         qg_cuda_error *error) {
    return kernel_status(cudaMemcpyAsync(to, from, (size_t)bytes, kind, the_stream), "copy", error);
}

static qg_status module_copy_in(void *to, const void *from, int64_t bytes, qg_cuda_error *error) {
    qg_status status = copy_by(to, from, bytes, cudaMemcpyHostToDevice, error);
    return status == QG_OK ? module_synchronize(error) : status;
}

static qg_status module_copy_out(void *to, const void *from, int64_t bytes, qg_cuda_error *error) {
    qg_status status = copy_by(to, from, bytes, cudaMemcpyDeviceToHost, error);
    return status == QG_OK ? module_synchronize(error) : status;
}

static qg_status module_copy(void *to, const void *from, int64_t bytes, qg_cuda_error *error) {
    return copy_by(to, from, bytes, cudaMemcpyDeviceToDevice, error);
}

static qg_status module_fill(void *to, uint8_t value, int64_t bytes, qg_cuda_error *error) {
    return kernel_status(cudaMemsetAsync(to, value, (size_t)bytes, the_stream), "fill", error);
}

// ---------------------------------------------------------------------------------------- kernels

static qg_status module_quantize(const qg_cuda_quantize *q, qg_cuda_error *error) {
    return launch_quantize(q, the_stream, error);
}

static qg_status module_dequantize(const qg_cuda_dequantize *d, qg_cuda_error *error) {
    return launch_dequantize(d, the_stream, error);
}

static qg_status module_multiply(const qg_cuda_multiply *p, qg_cuda_error *error) {
    return launch_multiply(p, the_stream, error);
}

static qg_status module_product(qg_cuda_product *p, qg_cuda_error *error) {
    return product_run(p, the_stream, error);
}

static qg_status module_time(qg_status (*run)(void *, int, qg_cuda_error *), void *context,
                             int launches, int repeats, double *seconds, qg_cuda_error *error) {
    (void)run, (void)context, (void)launches, (void)repeats, (void)seconds;
    return kernel_fail(error, QG_ERROR_UNSUPPORTED, "no timing yet");
}

#define EXPORT __attribute__((visibility("default")))

extern "C" EXPORT const qg_cuda_module *quantgauge_cuda_module(void) {
    static const qg_cuda_module module = {
        QG_CUDA_ABI,      (int32_t)sizeof(qg_cuda_module),
        module_open,      module_allocate,
        module_release,   module_copy_in,
        module_copy_out,  module_fill,
        module_copy,      module_synchronize,
        quantize_scratch, quantize_name,
        module_quantize,  module_dequantize,
        module_multiply,  product_order,
        product_takes,    module_product,
        module_time,
    };
    return &module;
}
