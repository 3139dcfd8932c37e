// What kernels are written in: CUDA under nvcc; in tests the same sources are C++ over a host shim.
// Three macros hide what C++ cannot spell: QG_LAUNCH for <<<>>>, QG_SHARED and QG_DYNAMIC_SHARED for
// shared memory. Numerics come from the shared headers alone, and from cvt instructions that equal
// them: no libm, no fast division, no inline assembly.
#ifndef QG_DEVICE_CUH
#define QG_DEVICE_CUH

#ifdef __CUDACC__
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#define QG_KERNEL                     __global__ void
#define QG_SHARED(TYPE, NAME, COUNT)  __shared__ TYPE NAME[COUNT]
#define QG_DYNAMIC_SHARED(TYPE, NAME) extern __shared__ TYPE NAME[]
// Parentheses around the kernel save the commas of template arguments. Value: a cudaError_t.
#define QG_LAUNCH(KERNEL, GRID, BLOCK, SHARED_BYTES, STREAM, ...)                                  \
    (KERNEL<<<GRID, BLOCK, SHARED_BYTES, STREAM>>>(__VA_ARGS__), cudaGetLastError())
#else
#include <cuda_shim.h>
#endif

#endif
