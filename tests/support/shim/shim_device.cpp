// The device that there seems to be, and the names of errors.
#include <cstdio>
#include <cstdlib>

#include "shim_control.h"
#include "shim_runtime.h"

namespace shim {

// What a test set; negative: the environment, or the default.
struct Choice {
    int set;
    const char *variable;
    int otherwise;
};

static Choice arch = {-1, "QG_SHIM_ARCH", 90};
static Choice sms = {-1, "QG_SHIM_SMS", 132};
static Choice devices = {-1, "QG_SHIM_DEVICES", 1};
static Choice probe_error = {-1, "QG_SHIM_PROBE_ERROR", 0};
static thread_local int current;

static int value_of(const Choice &choice) {
    const char *text = std::getenv(choice.variable);
    return choice.set >= 0 ? choice.set : text ? std::atoi(text) : choice.otherwise;
}

int device_arch() { return value_of(arch); }

static const size_t total_memory = 141ull << 30;

struct Error_text {
    cudaError_t error;
    const char *name, *text;
};

#define ERROR_TEXT(error, text)                                                                    \
    { error, #error, text }
static const Error_text error_texts[] = {
    // clang-format off
    ERROR_TEXT(cudaSuccess, "no error"),
    ERROR_TEXT(cudaErrorInvalidValue, "invalid argument"),
    ERROR_TEXT(cudaErrorMemoryAllocation, "out of memory"),
    ERROR_TEXT(cudaErrorInitializationError, "initialization error"),
    ERROR_TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR_TEXT(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR_TEXT(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    ERROR_TEXT(cudaErrorInsufficientDriver,
               "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR_TEXT(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR_TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR_TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR_TEXT(cudaErrorNoKernelImageForDevice,
               "no kernel image is available for execution on the device"),
    ERROR_TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR_TEXT(cudaErrorNotReady, "device not ready"),
    ERROR_TEXT(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR_TEXT(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR_TEXT(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR_TEXT(cudaErrorNotSupported, "operation not supported"),
    ERROR_TEXT(cudaErrorStreamCaptureUnsupported,
               "operation not permitted when stream is capturing"),
    ERROR_TEXT(cudaErrorStreamCaptureInvalidated,
               "operation failed due to a previous error during capture"),
    ERROR_TEXT(cudaErrorUnknown, "unknown error"),
    // clang-format on
};

static const Error_text *find(cudaError_t error) {
    for (const Error_text &one : error_texts)
        if (one.error == error)
            return &one;
    return nullptr;
}

cudaError_t probe() {
    int error = value_of(probe_error);
    if (error != 0)
        return static_cast<cudaError_t>(error);
    return value_of(devices) > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static cudaError_t check_device(int device) {
    cudaError_t error = probe();
    if (error == cudaSuccess && (device < 0 || device >= value_of(devices)))
        error = cudaErrorInvalidDevice;
    return set_error(error);
}

} // namespace shim

using namespace shim;

void qg_shim_set_arch(int value) { arch.set = value; }
void qg_shim_set_sms(int value) { sms.set = value; }
void qg_shim_set_devices(int value) { devices.set = value; }
void qg_shim_set_probe_error(int value) { probe_error.set = value; }

const char *cudaGetErrorString(cudaError_t error) {
    const Error_text *found = find(error);
    return found ? found->text : "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error) {
    const Error_text *found = find(error);
    return found ? found->name : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int *count) {
    cudaError_t error = probe();
    *count = error == cudaSuccess ? value_of(devices) : 0;
    return set_error(error);
}

cudaError_t cudaSetDevice(int device) {
    cudaError_t error = check_device(device);
    if (error == cudaSuccess)
        current = device;
    return error;
}

cudaError_t cudaGetDevice(int *device) {
    *device = current;
    return set_error(probe());
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    cudaError_t error = check_device(device);
    if (error != cudaSuccess)
        return error;
    cudaDeviceProp p = {};
    std::snprintf(p.name, sizeof p.name, "shim sm_%d", device_arch());
    p.totalGlobalMem = total_memory;
    p.sharedMemPerBlock = 48 << 10;
    p.sharedMemPerBlockOptin = 227 << 10;
    p.sharedMemPerMultiprocessor = 228 << 10;
    p.regsPerBlock = 65536;
    p.warpSize = 32;
    p.maxThreadsPerBlock = 1024;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 0x7fffffff;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.major = device_arch() / 10;
    p.minor = device_arch() % 10;
    p.multiProcessorCount = value_of(sms);
    p.l2CacheSize = 50 << 20;
    p.memoryBusWidth = 6144;
    p.ECCEnabled = 1;
    *properties = p;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, device);
    if (error != cudaSuccess)
        return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrClockRate: *value = 1980000; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMemoryClockRate: *value = 3201000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = static_cast<int>(p.sharedMemPerMultiprocessor);
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(p.sharedMemPerBlockOptin);
        break;
    default: return set_error(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
    current = 0;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
    uint64_t used = qg_shim_memory_used();
    *total = total_memory;
    *unused = used < total_memory ? total_memory - used : 0;
    return set_error(probe());
}
