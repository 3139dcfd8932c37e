// The module's struct: the seam of qg_cuda_module.h over the CUDA runtime and the launchers.
#include <launch.h>
#include <product.h>

#include <stdio.h>
#include <string.h>

static cudaStream_t the_stream;

// What a failing call leaves for cudaGetLastError must not be taken for the failure of a later launch.
static qg_status status_of(cudaError_t code, const char *what, qg_cuda_error *error) {
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    return kernel_status(code, what, error);
}

// ----------------------------------------------------------------------------------------- device

static qg_cuda_absence absence_of(cudaError_t code, qg_cuda_error *error) {
    (void)status_of(code, "finding a device", error);
    switch (code) {
    case cudaSuccess: return QG_CUDA_ABSENT_NONE;
    case cudaErrorInsufficientDriver: return QG_CUDA_ABSENT_NO_DRIVER;
    case cudaErrorStubLibrary: return QG_CUDA_ABSENT_STUB_DRIVER;
    case cudaErrorNoDevice: return QG_CUDA_ABSENT_NO_DEVICE;
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorNoKernelImageForDevice: return QG_CUDA_ABSENT_NO_IMAGE;
    default: return QG_CUDA_ABSENT_FAILED;
    }
}

// Every file of the module is compiled for the same architectures: one kernel stands for all.
QG_KERNEL image_of_module(int *out) { *out = 1; }

static cudaError_t describe_device(qg_cuda_device *device) {
    cudaDeviceProp properties;
    cudaError_t code = cudaSetDevice(0);
    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&properties, 0);
    if (code != cudaSuccess)
        return code;
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    device->architecture = properties.major * 10 + properties.minor;
    device->sm_count = properties.multiProcessorCount;
    device->l2_bytes = properties.l2CacheSize;
    device->memory_bytes = (int64_t)properties.totalGlobalMem;
    return cudaSuccess;
}

static qg_cuda_absence module_open(qg_cuda_device *device, qg_cuda_error *error) {
    int count = 0; // left untouched by a call that fails
    cudaFuncAttributes attributes;
    memset(device, 0, sizeof *device);
    (void)cudaRuntimeGetVersion(&device->runtime);
    (void)cudaDriverGetVersion(&device->driver);
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count == 0)
        code = cudaErrorNoDevice;
    if (code == cudaSuccess)
        code = describe_device(device);
    if (code == cudaSuccess)
        code = cudaFuncGetAttributes(&attributes, image_of_module);
    if (code == cudaSuccess && !the_stream)
        code = cudaStreamCreateWithFlags(&the_stream, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        product_open(device);
    return absence_of(code, error);
}

// ----------------------------------------------------------------------------------------- memory

static qg_status module_allocate(int64_t bytes, void **out, qg_cuda_error *error) {
    *out = NULL;
    return status_of(cudaMalloc(out, bytes > 0 ? (size_t)bytes : 1), "device memory", error);
}

static void module_release(void *pointer) { (void)cudaFree(pointer); }

static qg_status module_synchronize(qg_cuda_error *error) {
    return status_of(cudaStreamSynchronize(the_stream), "kernels", error);
}

static qg_status copy_by(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind,
                         qg_cuda_error *error) {
    return status_of(cudaMemcpyAsync(to, from, (size_t)bytes, kind, the_stream), "copy", error);
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
    return status_of(cudaMemsetAsync(to, value, (size_t)bytes, the_stream), "fill", error);
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

// ----------------------------------------------------------------------------------------- timing

typedef qg_status (*timed_run)(void *context, int i, qg_cuda_error *error);

typedef struct recording {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t begin, end;
} recording;

// A capture that was begun is ended, whatever happened in it.
static qg_status record(timed_run run, void *context, int launches, recording *r,
                        qg_cuda_error *error) {
    qg_status status =
        status_of(cudaStreamBeginCapture(the_stream, cudaStreamCaptureModeThreadLocal),
                  "beginning a graph", error);
    if (status != QG_OK)
        return status;
    for (int i = 0; i < launches && status == QG_OK; i++)
        status = run(context, i, error);
    cudaError_t code = cudaStreamEndCapture(the_stream, &r->graph);
    if (code != cudaSuccess)
        (void)cudaGetLastError();
    if (status == QG_OK)
        status = kernel_status(code, "recording a graph", error);
    if (status == QG_OK)
        status =
            status_of(cudaGraphInstantiate(&r->exec, r->graph, 0), "instantiating a graph", error);
    return status;
}

// Seconds of one replay.
static qg_status replay(const recording *r, double *seconds, qg_cuda_error *error) {
    float milliseconds = 0;
    cudaError_t code = cudaEventRecord(r->begin, the_stream);
    if (code == cudaSuccess)
        code = cudaGraphLaunch(r->exec, the_stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(r->end, the_stream);
    if (code == cudaSuccess)
        code = cudaEventSynchronize(r->end);
    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&milliseconds, r->begin, r->end);
    *seconds = (double)milliseconds * 1e-3;
    return status_of(code, "replaying a graph", error);
}

static void release_recording(recording *r) {
    if (r->exec)
        (void)cudaGraphExecDestroy(r->exec);
    if (r->graph)
        (void)cudaGraphDestroy(r->graph);
    if (r->begin)
        (void)cudaEventDestroy(r->begin);
    if (r->end)
        (void)cudaEventDestroy(r->end);
}

// The first replay brings the graph to the device and is not counted.
static qg_status module_time(timed_run run, void *context, int launches, int repeats,
                             double *seconds, qg_cuda_error *error) {
    recording r;
    double first;
    memset(&r, 0, sizeof r);
    if (launches < 1 || repeats < 1)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "timing needs a launch and a repeat at least");
    qg_status status = status_of(cudaEventCreate(&r.begin), "making an event", error);
    if (status == QG_OK)
        status = status_of(cudaEventCreate(&r.end), "making an event", error);
    if (status == QG_OK)
        status = record(run, context, launches, &r, error);
    if (status == QG_OK)
        status = replay(&r, &first, error);
    for (int i = 0; i < repeats && status == QG_OK; i++) {
        status = replay(&r, &seconds[i], error);
        seconds[i] /= launches;
    }
    release_recording(&r);
    return status;
}

// ------------------------------------------------------------------------------------------ struct

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
