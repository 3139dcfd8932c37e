// The arena of shared memory: the dynamic array first, then one per declaration, in the order in
// which the launch met them, each followed by guard bytes. Arrays keep their places for all CTAs of
// a launch.
#include "shim_state.h"

namespace shim {

static const size_t max_static = 48 << 10; // what nvcc allows
static const size_t guard_bytes = 64;
static const size_t arena_bytes = 512 << 10; // 227 KB, the static arrays, their guards and gaps

struct Array {
    const void *key;
    const char *name;
    size_t offset, bytes;
};

alignas(1024) static unsigned char arena[arena_bytes];
static std::vector<Array> arrays;
static size_t used;
static size_t static_bytes;

static size_t add_array(const void *key, const char *name, size_t bytes, size_t align) {
    size_t offset = (used + align - 1) / align * align;
    arrays.push_back({key, name, offset, bytes});
    poison(arena + offset, bytes);
    set_guard(arena + offset + bytes, guard_bytes);
    used = offset + bytes + guard_bytes;
    return offset;
}

void begin_shared(size_t dynamic_bytes) {
    drop_guard(arena, arena_bytes);
    arrays.clear();
    used = static_bytes = 0;
    add_array(nullptr, "dynamic shared memory", dynamic_bytes, 1);
}

void poison_shared() {
    for (const Array &array : arrays)
        poison(arena + array.offset, array.bytes);
}

std::string check_shared() {
    std::string faults;
    for (const Array &array : arrays) {
        unsigned char *guard = arena + array.offset + array.bytes;
        size_t at = check_guard(guard, guard_bytes);
        if (at < guard_bytes) {
            faults += format("%sbyte %zu of %s was written, which has %zu bytes",
                             faults.empty() ? "" : "; ", array.bytes + at, array.name, array.bytes);
            set_guard(guard, guard_bytes);
        }
    }
    return faults;
}

void *shared_array(const void *key, const char *name, size_t bytes, size_t align) {
    for (const Array &array : arrays)
        if (array.key == key)
            return arena + array.offset;
    static_bytes += bytes;
    if (static_bytes > max_static)
        fail(format("%zu bytes of shared arrays with %s: at most %zu", static_bytes, name,
                    max_static));
    return arena + add_array(key, name, bytes, align < 16 ? 16 : align);
}

void *dynamic_shared(const char *name, size_t align) {
    if (align > 1024)
        fail(format("%s: alignment %zu", name, align));
    arrays[0].name = name;
    return arena;
}

} // namespace shim
