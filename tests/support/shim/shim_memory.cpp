// Device memory: host memory with guard bytes around it, poisoned when it is fresh.
#include <cstdlib>
#include <map>
#include <mutex>

#include <sys/mman.h>

#include "shim_runtime.h"
#include "shim_state.h"

namespace shim {

static const size_t guard_bytes = 256; // keeps the alignment of cudaMalloc, too
// From here on memory is mapped without being touched: no poison, and only used pages are real.
static const size_t sparse_bytes = size_t{1} << 30;

struct Block {
    size_t bytes;
    unsigned char *base;
    size_t mapped; // 0: from malloc
};

static std::recursive_mutex mutex;
static std::map<unsigned char *, Block> blocks;
static uint64_t used, limit = UINT64_MAX;

static unsigned char *reserve(size_t bytes, Block *block) {
    size_t total = bytes + 2 * guard_bytes;
    if (total < bytes)
        return nullptr;
    block->bytes = bytes;
    block->mapped = bytes >= sparse_bytes ? total : 0;
    if (block->mapped) {
        void *map = mmap(nullptr, total, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        block->base = map == MAP_FAILED ? nullptr : static_cast<unsigned char *>(map);
    } else {
        void *base = nullptr;
        if (posix_memalign(&base, guard_bytes, total) != 0)
            base = nullptr;
        block->base = static_cast<unsigned char *>(base);
    }
    return block->base;
}

static void release(const Block &block) {
    drop_guard(block.base, guard_bytes);
    drop_guard(block.base + guard_bytes + block.bytes, guard_bytes);
    if (block.mapped)
        munmap(block.base, block.mapped);
    else
        std::free(block.base);
}

// Reports what was written before or behind a block and makes its guards good again.
static bool check_block(const Block &block, const char *where) {
    unsigned char *behind = block.base + guard_bytes + block.bytes;
    size_t before_at = check_guard(block.base, guard_bytes);
    size_t behind_at = check_guard(behind, guard_bytes);
    if (before_at < guard_bytes)
        add_fault(format("%s: byte -%zu of device memory was written, which has %zu bytes", where,
                         guard_bytes - before_at, block.bytes));
    if (behind_at < guard_bytes)
        add_fault(format("%s: byte %zu of device memory was written, which has %zu bytes", where,
                         block.bytes + behind_at, block.bytes));
    set_guard(block.base, guard_bytes);
    set_guard(behind, guard_bytes);
    return before_at == guard_bytes && behind_at == guard_bytes;
}

bool check_memory(const char *where) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    std::string name = std::string("kernel ") + where;
    bool good = true;
    for (const auto &entry : blocks)
        good = check_block(entry.second, name.c_str()) && good;
    return good;
}

// Whether the bytes lie in one block of device memory; *touches: whether any of them does.
static bool in_device(const void *pointer, size_t bytes, bool *touches) {
    unsigned char *address = static_cast<unsigned char *>(const_cast<void *>(pointer));
    auto next = blocks.upper_bound(address);
    *touches = false;
    if (next != blocks.begin()) {
        auto entry = std::prev(next);
        size_t offset = static_cast<size_t>(address - entry->first);
        *touches = offset < entry->second.bytes || (offset == 0 && bytes == 0);
        if (*touches)
            return bytes <= entry->second.bytes - offset;
    }
    return false;
}

// Whether a side of a copy is what its direction says it is.
static bool good_side(const void *pointer, size_t bytes, bool device, bool any) {
    bool touches;
    bool inside = in_device(pointer, bytes, &touches);
    if (any)
        return inside || !touches;
    return device ? inside : !touches;
}

static cudaError_t check_copy(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    bool any = kind == cudaMemcpyDefault;
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool good = bytes == 0 ||
                (good_side(to, bytes, to_device, any) && good_side(from, bytes, from_device, any));
    return good ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t check_set(const void *to, size_t bytes) {
    std::lock_guard<std::recursive_mutex> lock(mutex);
    return bytes == 0 || good_side(to, bytes, true, false) ? cudaSuccess : cudaErrorInvalidValue;
}

} // namespace shim

using namespace shim;

void qg_shim_set_memory_limit(uint64_t bytes) { limit = bytes; }

uint64_t qg_shim_memory_used(void) { return used; }

size_t qg_shim_memory_blocks(void) { return blocks.size(); }

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    cudaError_t error = refuse_in_capture();
    if (error != cudaSuccess)
        return error;
    if (!pointer)
        return set_error(cudaErrorInvalidValue);
    *pointer = nullptr;
    if (probe() != cudaSuccess || bytes == 0)
        return set_error(probe());
    std::lock_guard<std::recursive_mutex> lock(mutex);
    Block block;
    if (bytes > limit || used > limit - bytes || !reserve(bytes, &block))
        return set_error(cudaErrorMemoryAllocation);
    unsigned char *memory = block.base + guard_bytes;
    if (!block.mapped)
        poison(memory, bytes);
    set_guard(block.base, guard_bytes);
    set_guard(memory + bytes, guard_bytes);
    blocks[memory] = block;
    used += bytes;
    *pointer = memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    cudaError_t error = refuse_in_capture();
    if (error != cudaSuccess || !pointer)
        return error;
    std::lock_guard<std::recursive_mutex> lock(mutex);
    auto entry = blocks.find(static_cast<unsigned char *>(pointer));
    if (entry == blocks.end())
        return set_error(cudaErrorInvalidValue);
    check_block(entry->second, "cudaFree");
    used -= entry->second.bytes;
    release(entry->second);
    blocks.erase(entry);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    cudaError_t error = refuse_in_capture();
    if (error != cudaSuccess)
        return error;
    *pointer = std::malloc(bytes ? bytes : 1);
    return *pointer ? cudaSuccess : set_error(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *pointer) {
    std::free(pointer);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return submit(stream, [=] {
        cudaError_t error = check_copy(to, from, bytes, kind);
        if (error == cudaSuccess && bytes > 0)
            std::memmove(to, from, bytes);
        return error;
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
    cudaError_t error = refuse_in_capture();
    return error != cudaSuccess ? error : cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
    return submit(stream, [=] {
        cudaError_t error = check_set(to, bytes);
        if (error == cudaSuccess && bytes > 0)
            std::memset(to, value, bytes);
        return error;
    });
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
    cudaError_t error = refuse_in_capture();
    return error != cudaSuccess ? error : cudaMemsetAsync(to, value, bytes, nullptr);
}
