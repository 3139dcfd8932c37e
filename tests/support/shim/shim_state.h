// What the parts of the shim share: settings, faults, counts, poison, launches. Internal to the
// shim.
#ifndef SHIM_STATE_H
#define SHIM_STATE_H

#include <functional>
#include <string>
#include <vector>

#include "cuda_shim.h"
#include "shim_control.h"

namespace shim {

struct Settings {
    qg_shim_order order;
    uint64_t seed;
    qg_shim_poison poison;
    bool choose_list, choose_range;
    std::vector<qg_shim_cta> list;
    qg_shim_cta first, last;
    cudaError_t launch_error;
    bool no_red_zones;
};
extern Settings settings;
extern qg_shim_counts counts;

struct Launch {
    const char *name;
    std::function<void()> body; // one thread
    dim3 grid, block;
    size_t shared_bytes;
};

void add_fault(const std::string &text);
std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
std::string triple(uint3 v);

// Fills with the poison of the settings.
void poison(void *memory, size_t bytes);

// Guard bytes, which AddressSanitizer lets nobody touch. check_guard: the index of the first that
// was overwritten, or bytes.
void set_guard(void *memory, size_t bytes);
size_t check_guard(const void *memory, size_t bytes);
void drop_guard(const void *memory, size_t bytes);

// Random numbers of the shuffled order: below(n) is less than n.
struct Random {
    uint64_t state;
    uint64_t next();
    unsigned below(unsigned n) { return static_cast<unsigned>((next() >> 32) * n >> 32); }
};

// Runs the CTAs of a launch one after another; false after a fault.
bool run_launch(const Launch &launch);

// Between those: sizes that hold for all CTAs, one CTA, and where shared memory lies.
void begin_ctas(const Launch &launch);
bool run_cta(uint3 block);

// A fault of the thread that has its turn, which ends the launch.
[[noreturn]] void fail(std::string what);

void begin_shared(size_t dynamic_bytes);
void poison_shared();
std::string check_shared(); // what was overwritten, or nothing

// Checks the guards of all device memory; false if bytes were overwritten, which `where` did.
bool check_memory(const char *where);

} // namespace shim

#endif
