// What tests say to the CUDA shim and ask it, from C or C++; the shim is described in cuda_shim.h.
// Settings hold for the following launches and allocations, until changed or reset.
#ifndef SHIM_CONTROL_H
#define SHIM_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The order in which the threads of a CTA take their turns, and that of CTAs. ASCENDING and
// DESCENDING let each warp run as far as it can before the next one; SHUFFLED draws, again and
// again, a warp and all or some of its lanes, and begins with any CTA.
enum qg_shim_order { QG_SHIM_ASCENDING, QG_SHIM_DESCENDING, QG_SHIM_SHUFFLED };

// What fresh device memory and, before each CTA, shared memory hold: bytes 0xff (a NaN in every
// format that has one), floats +Inf (a NaN is invisible to `if (v > a)`), or zeros. Allocations of
// 1 GiB and more are zero and take only the pages that are touched.
enum qg_shim_poison { QG_SHIM_POISON_NAN, QG_SHIM_POISON_INF, QG_SHIM_POISON_ZERO };

struct qg_shim_cta {
    uint32_t x, y, z;
};

struct qg_shim_counts {
    uint64_t launches;   // launches whose configuration was good
    uint64_t ctas;       // CTAs run
    uint64_t barriers;   // barriers that a whole CTA passed
    uint64_t warp_stops; // shuffles, ballots, ... that the lanes of a mask passed
    uint64_t turns;      // times that a thread was given the processor
};

// Everything as at the start: ascending, NaN, all CTAs, no faults nor last error, counts 0, device
// by environment, red zones.
void qg_shim_reset(void);

void qg_shim_set_order(enum qg_shim_order order, uint64_t seed);
void qg_shim_set_poison(enum qg_shim_poison poison);

// Which CTAs of a grid run: all, those of a list (copied; those outside the grid are passed over),
// or those with first <= (x, y, z) <= last. The others cost nothing.
void qg_shim_choose_all(void);
void qg_shim_choose_list(const struct qg_shim_cta *ctas, size_t count);
void qg_shim_choose_range(struct qg_shim_cta first, struct qg_shim_cta last);

// The device, instead of the environment's QG_SHIM_ARCH (90), QG_SHIM_SMS (132), QG_SHIM_DEVICES
// (1) and QG_SHIM_PROBE_ERROR (0); a negative value leaves it to the environment.
void qg_shim_set_arch(int arch);
void qg_shim_set_sms(int sms);
void qg_shim_set_devices(int devices);
// What cudaGetDeviceCount and all work fail with; what launches alone fail with.
void qg_shim_set_probe_error(int error);
void qg_shim_set_launch_error(int error);

// cudaMalloc fails with cudaErrorMemoryAllocation rather than let more than this be allocated.
void qg_shim_set_memory_limit(uint64_t bytes);

// Whether AddressSanitizer, where there is one, stops the program at a touch of guard bytes, reads
// too (the default); otherwise a write is found later, as a fault. Holds for allocations made from
// then on.
void qg_shim_set_red_zones(int on);

// Device memory allocated now: bytes without guards, and blocks.
uint64_t qg_shim_memory_used(void);
size_t qg_shim_memory_blocks(void);

// Faults since the last clear, oldest first: "kernel K, CTA (x, y, z), thread (x, y, z): what".
// Texts are kept up to a limit; the count goes on. NULL beyond the texts.
size_t qg_shim_fault_count(void);
const char *qg_shim_fault(size_t index);
void qg_shim_clear_faults(void);

struct qg_shim_counts qg_shim_get_counts(void);
void qg_shim_clear_counts(void);

#ifdef __cplusplus
}
#endif

#endif
