// The runtime's side of the shim: errors, and work given to streams. Internal to the shim.
#ifndef SHIM_RUNTIME_H
#define SHIM_RUNTIME_H

#include <functional>

#include "cuda_shim.h"

namespace shim {

// Remembers an error for cudaGetLastError; returns it.
cudaError_t set_error(cudaError_t error);

typedef std::function<cudaError_t()> Work;

// Does the work now, or records it where the stream is captured.
cudaError_t submit(cudaStream_t stream, Work work);

// An error for calls that must not be made while this thread captures a stream, unless the capture
// is relaxed; it invalidates the capture.
cudaError_t refuse_in_capture();

// The error that all work for the device ends with, if any.
cudaError_t probe();

int device_arch();

} // namespace shim

#endif
