// Launches: their limits, and which CTAs run.
#include <map>
#include <mutex>

#include "shim_runtime.h"
#include "shim_state.h"

namespace shim {

static const size_t plain_shared = 48 << 10; // without the function's consent
static const size_t max_shared = 227 << 10;

static std::recursive_mutex mutex; // one launch at a time, whichever thread it comes from
static std::map<const void *, size_t> consented; // functions with more dynamic shared memory

// ---- The CTAs that run

static bool inside(const dim3 &grid, const qg_shim_cta &cta) {
    return cta.x < grid.x && cta.y < grid.y && cta.z < grid.z;
}

static bool run_list(const Launch &launch) {
    for (const qg_shim_cta &cta : settings.list)
        if (inside(launch.grid, cta) && !run_cta({cta.x, cta.y, cta.z}))
            return false;
    return true;
}

static uint64_t extent(unsigned first, unsigned last, unsigned size) {
    unsigned end = last < size ? last + 1 : size;
    return first < end ? end - first : 0;
}

// The box of CTAs in the order of their numbers, backwards, or from one that is drawn around.
static bool run_box(const Launch &launch, qg_shim_cta first, qg_shim_cta last) {
    uint64_t nx = extent(first.x, last.x, launch.grid.x);
    uint64_t ny = extent(first.y, last.y, launch.grid.y);
    uint64_t count = nx * ny * extent(first.z, last.z, launch.grid.z);
    Random random = {settings.seed};
    uint64_t start = settings.order == QG_SHIM_SHUFFLED && count ? random.next() % count : 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = settings.order == QG_SHIM_DESCENDING ? count - 1 - i : i + start;
        number -= number >= count ? count : 0;
        uint3 block = {first.x + static_cast<unsigned>(number % nx),
                       first.y + static_cast<unsigned>(number / nx % ny),
                       first.z + static_cast<unsigned>(number / nx / ny)};
        if (!run_cta(block))
            return false;
    }
    return true;
}

bool run_launch(const Launch &launch) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    counts.launches++;
    begin_ctas(launch);
    bool good;
    if (settings.choose_list)
        good = run_list(launch);
    else if (settings.choose_range)
        good = run_box(launch, settings.first, settings.last);
    else
        good = run_box(launch, {0, 0, 0}, {UINT32_MAX, UINT32_MAX, UINT32_MAX});
    return check_memory(launch.name) && good;
}

// ---- Limits

static cudaError_t refuse(const Launch &launch, cudaError_t error, const std::string &why) {
    add_fault(format("kernel %s: launch of grid %s, block %s, %zu bytes: ", launch.name,
                     triple(launch.grid).c_str(), triple(launch.block).c_str(),
                     launch.shared_bytes) +
              why);
    return error;
}

static bool sizes_fit(const dim3 &size, uint64_t x, uint64_t y, uint64_t z) {
    return size.x > 0 && size.y > 0 && size.z > 0 && size.x <= x && size.y <= y && size.z <= z;
}

static cudaError_t check_launch(const Launch &launch, const void *function) {
    const dim3 &block = launch.block;
    if (!sizes_fit(launch.grid, 0x7fffffff, 65535, 65535))
        return refuse(launch, cudaErrorInvalidConfiguration, "the grid is empty or too large");
    if (!sizes_fit(block, 1024, 1024, 64) ||
        static_cast<uint64_t>(block.x) * block.y * block.z > 1024)
        return refuse(launch, cudaErrorInvalidConfiguration, "the block is empty or too large");
    if (launch.shared_bytes > max_shared)
        return refuse(launch, cudaErrorInvalidConfiguration, "more than 227 KB of shared memory");
    if (launch.shared_bytes > plain_shared && consented[function] < launch.shared_bytes)
        return refuse(launch, cudaErrorInvalidValue,
                      "more than 48 KB without cudaFuncAttributeMaxDynamicSharedMemorySize");
    return cudaSuccess;
}

cudaError_t launch(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   std::function<void()> thread) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (settings.launch_error != cudaSuccess)
        return set_error(settings.launch_error);
    Launch launch = {kernel.name, std::move(thread), grid, block, shared_bytes};
    cudaError_t error = check_launch(launch, kernel.function);
    if (error != cudaSuccess)
        return set_error(error);
    return submit(stream,
                  [launch] { return run_launch(launch) ? cudaSuccess : cudaErrorLaunchFailure; });
}

cudaError_t set_function_shared(const void *function, cudaFuncAttribute attribute, int value) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    if (value < 0 || static_cast<size_t>(value) > max_shared)
        return set_error(cudaErrorInvalidValue);
    consented[function] = static_cast<size_t>(value);
    return cudaSuccess;
}

cudaError_t get_function_attributes(cudaFuncAttributes *attributes, const void *function) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = device_arch();
    attributes->ptxVersion = device_arch();
    size_t shared = consented.count(function) ? consented[function] : plain_shared;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(shared);
    return cudaSuccess;
}

// As if registers did not matter.
cudaError_t blocks_per_sm(int *blocks, int threads, size_t shared_bytes) {
    if (threads < 1 || threads > 1024 || shared_bytes > max_shared)
        return set_error(cudaErrorInvalidValue);
    int by_threads = 2048 / ((threads + 31) / 32 * 32);
    int by_shared = static_cast<int>((228u << 10) / (shared_bytes + 1024));
    *blocks = by_threads > 32 ? 32 : by_threads;
    *blocks = by_shared < *blocks ? by_shared : *blocks;
    return cudaSuccess;
}

} // namespace shim
