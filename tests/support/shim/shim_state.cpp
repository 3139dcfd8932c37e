// Settings, faults and counts: see shim_control.h.
#include "shim_state.h"
#include "shim_asan.h"

#include <cstdarg>
#include <cstdio>
#include <mutex>

namespace shim {

Settings settings = {};
qg_shim_counts counts = {};

static const size_t max_texts = 256;
static std::mutex fault_mutex;
static std::vector<std::string> faults;
static size_t fault_count;

void add_fault(const std::string &text) {
    std::lock_guard<std::mutex> lock(fault_mutex);
    fault_count++;
    if (faults.size() < max_texts)
        faults.push_back(text);
}

std::string format(const char *pattern, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, pattern);
    std::vsnprintf(text, sizeof text, pattern, arguments);
    va_end(arguments);
    return text;
}

std::string triple(uint3 v) { return format("(%u, %u, %u)", v.x, v.y, v.z); }

static void fill_inf(unsigned char *bytes, size_t count) {
    const float inf = INFINITY;
    size_t whole = count / sizeof inf * sizeof inf;
    for (size_t i = 0; i < whole; i += sizeof inf)
        std::memcpy(bytes + i, &inf, sizeof inf);
    std::memcpy(bytes + whole, &inf, count - whole);
}

void poison(void *memory, size_t bytes) {
    if (bytes == 0)
        return;
    if (settings.poison == QG_SHIM_POISON_INF)
        fill_inf(static_cast<unsigned char *>(memory), bytes);
    else
        std::memset(memory, settings.poison == QG_SHIM_POISON_NAN ? 0xff : 0, bytes);
}

// Differs from byte to byte and from the poison.
static unsigned char guard_byte(size_t i) {
    return static_cast<unsigned char>(0xa7 ^ (i & 15) << 3);
}

void drop_guard(const void *memory, size_t bytes) {
    static_cast<void>(memory), static_cast<void>(bytes);
#ifdef SHIM_ASAN
    __asan_unpoison_memory_region(memory, bytes);
#endif
}

static void forbid(const void *memory, size_t bytes) {
    static_cast<void>(memory), static_cast<void>(bytes);
#ifdef SHIM_ASAN
    if (!settings.no_red_zones)
        __asan_poison_memory_region(memory, bytes);
#endif
}

void set_guard(void *memory, size_t bytes) {
    drop_guard(memory, bytes);
    for (size_t i = 0; i < bytes; i++)
        static_cast<unsigned char *>(memory)[i] = guard_byte(i);
    forbid(memory, bytes);
}

size_t check_guard(const void *memory, size_t bytes) {
    drop_guard(memory, bytes);
    size_t i = 0;
    while (i < bytes && static_cast<const unsigned char *>(memory)[i] == guard_byte(i))
        i++;
    forbid(memory, bytes);
    return i;
}

uint64_t Random::next() { // SplitMix64
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

} // namespace shim

using namespace shim;

void qg_shim_set_order(qg_shim_order order, uint64_t seed) {
    settings.order = order;
    settings.seed = seed;
}

void qg_shim_set_poison(qg_shim_poison kind) { settings.poison = kind; }

void qg_shim_choose_all(void) {
    settings.choose_list = settings.choose_range = false;
    settings.list.clear();
}

void qg_shim_choose_list(const qg_shim_cta *ctas, size_t count) {
    qg_shim_choose_all();
    settings.choose_list = true;
    settings.list.assign(ctas, ctas + count);
}

void qg_shim_choose_range(qg_shim_cta first, qg_shim_cta last) {
    qg_shim_choose_all();
    settings.choose_range = true;
    settings.first = first;
    settings.last = last;
}

size_t qg_shim_fault_count(void) { return fault_count; }

const char *qg_shim_fault(size_t index) {
    return index < faults.size() ? faults[index].c_str() : nullptr;
}

void qg_shim_clear_faults(void) {
    faults.clear();
    fault_count = 0;
}

void qg_shim_set_launch_error(int error) {
    settings.launch_error = static_cast<cudaError_t>(error);
}

void qg_shim_set_red_zones(int on) { settings.no_red_zones = !on; }

qg_shim_counts qg_shim_get_counts(void) { return counts; }

void qg_shim_clear_counts(void) { counts = {}; }

void qg_shim_reset(void) {
    cudaGetLastError();
    settings = {};
    qg_shim_clear_faults();
    qg_shim_clear_counts();
    qg_shim_set_arch(-1);
    qg_shim_set_sms(-1);
    qg_shim_set_devices(-1);
    qg_shim_set_probe_error(-1);
    qg_shim_set_memory_limit(UINT64_MAX);
}
