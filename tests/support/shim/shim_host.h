// Launches, and what of the runtime is C++ only. Part of cuda_shim.h.
#ifndef SHIM_HOST_H
#define SHIM_HOST_H

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>

#include "shim_api.h"
#include "shim_types.h"

namespace shim {

cudaError_t set_function_shared(const void *function, cudaFuncAttribute attribute, int value);
cudaError_t get_function_attributes(cudaFuncAttributes *attributes, const void *function);
cudaError_t blocks_per_sm(int *blocks, int threads, size_t shared_bytes);

// What a launch needs to know of its kernel, besides the body of one thread.
struct Kernel {
    const char *name;
    const void *function;
};

cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   std::function<void()> thread);

template <class... P, class... A>
cudaError_t launch_kernel(const char *name, void (*function)(P...), dim3 grid, dim3 block,
                          size_t shared_bytes, cudaStream_t stream, A &&...arguments) {
    static_assert((!std::is_reference<P>::value && ...), "kernels take no references");
    static_assert((std::is_trivially_copyable<P>::value && ...), "arguments are copied as bytes");
    static_assert((sizeof(P) + ... + 0) <= 4096, "at most 4096 bytes of arguments");
    std::tuple<std::remove_cv_t<P>...> copies{std::forward<A>(arguments)...};
    Kernel kernel = {name, reinterpret_cast<const void *>(function)};
    return launch(kernel, grid, block, shared_bytes, stream,
                  [function, copies] { std::apply(function, copies); });
}

} // namespace shim

template <class T> inline cudaError_t cudaMalloc(T **pointer, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void **>(pointer), bytes);
}
template <class T> inline cudaError_t cudaMallocHost(T **pointer, size_t bytes) {
    return cudaMallocHost(reinterpret_cast<void **>(pointer), bytes);
}
template <class T>
cudaError_t cudaFuncSetAttribute(T *function, cudaFuncAttribute attribute, int value) {
    return shim::set_function_shared(reinterpret_cast<const void *>(function), attribute, value);
}
template <class T> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, T *function) {
    return shim::get_function_attributes(attributes, reinterpret_cast<const void *>(function));
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *, int threads,
                                                          size_t shared_bytes) {
    return shim::blocks_per_sm(blocks, threads, shared_bytes);
}

// QG_LAUNCH(KERNEL, grid, block, shared_bytes, stream, arguments...); a template instance goes in
// parentheses. As under nvcc, the value is the last error, an earlier one's if nobody asked for it.
#define QG_LAUNCH(KERNEL, ...)                                                                     \
    (shim::launch_kernel(#KERNEL, KERNEL, __VA_ARGS__), cudaGetLastError())
#define QG_KERNEL static void

#endif
