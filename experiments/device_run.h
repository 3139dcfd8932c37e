// A device check's state, and one quantization on the device between guards.
//
// Every buffer of the device is poisoned and lies between guard bytes, which are looked at after the
// kernel. Host results are compared byte by byte by one function, which the controls try to fool.
#ifndef DEVICE_RUN_H
#define DEVICE_RUN_H

#include <device_input.h>
#include <device_report.h>
#include <qg_backend.h>
#include <qg_cuda_module.h>
#include <qg_partition.h>

enum { DEVICE_GUARD_BYTES = 256, DEVICE_POISON = 0xa5 };

// Buffers of the device, one each, which grow.
typedef enum device_room {
    DEVICE_ROOM_X,
    DEVICE_ROOM_UP,
    DEVICE_ROOM_CODES,
    DEVICE_ROOM_SCALES,
    DEVICE_ROOM_TENSOR_SCALE,
    DEVICE_ROOM_SCRATCH,
    DEVICE_ROOM_A,
    DEVICE_ROOM_A_SCALES,
    DEVICE_ROOM_B,
    DEVICE_ROOM_B_SCALES,
    DEVICE_ROOM_BIAS,
    DEVICE_ROOM_C,
    DEVICE_ROOM_OUT,
    DEVICE_ROOM_COUNT
} device_room;

enum { DEVICE_UNIT_NAME = 96 };

typedef struct device_check {
    const qg_cuda_module *module;
    const qg_cuda_device *device;
    device_report *report;
    qg_cuda_error error;
    double start, deadline; // of qg_clock; deadline 0: none
    bool is_small;          // tiny shapes: for tests and under compute-sanitizer
    // What products are compared with, by accumulates_fast: as the probe found, or should find.
    char unit[2][DEVICE_UNIT_NAME];
    // "" : products are the module's; else a unit of the emulator that takes its place.
    char simulated[2][DEVICE_UNIT_NAME];
    struct {
        uint8_t *base;
        int64_t capacity;
    } room[DEVICE_ROOM_COUNT];
} device_check;

bool device_is_late(const device_check *c);
// Turns what a function of the module returned into a status with its detail.
qg_status device_status(device_check *c, qg_status status);

// *inside: room for `bytes` bytes, poisoned, between guards.
qg_status device_take(device_check *c, device_room room, int64_t bytes, void **inside);
// The same, filled from the host.
qg_status device_put(device_check *c, device_room room, const void *from, int64_t bytes,
                     void **inside);
// Copies `bytes` of a room to the host and adds the guard bytes that changed to *damage.
qg_status device_get(device_check *c, device_room room, void *to, int64_t bytes, int64_t *damage);
void device_release_rooms(device_check *c);

// ----------------------------------------------------------------------------------- quantization

// Stored codes and scales on the host.
typedef struct device_quantized {
    qg_storage_shape shape;
    uint8_t *codes, *scales;
    float tensor_scale;
    int64_t damage; // guard bytes that changed
} device_quantized;

typedef struct device_job {
    qg_recipe recipe;
    const char *format; // of the recipe, as run_sweep names it
    int kernel;         // QG_GROUP_KERNEL_*
    qg_storage storage;
    const device_input *x, *up; // up NULL: none
    uint64_t seed;
    float history_amax;
    int64_t extra_rows; // that the kernel is told of beyond m: the control of the guards
} device_job;

// Room for the results of a job; free with device_quantized_free.
qg_status device_quantized_open(const device_job *job, device_quantized *out);
void device_quantized_free(device_quantized *q);

// The call of a job, without its pointers.
qg_cuda_quantize device_call_of(const device_job *job);
// On the device; QG_ERROR_UNSUPPORTED: the module has no kernel for it.
qg_status device_quantize(device_check *c, const device_job *job, device_quantized *out);
// As the specification says.
qg_status device_emulate(const device_job *job, device_quantized *out);

typedef struct device_difference {
    int64_t codes, scales, guards; // bytes
} device_difference;

// A tensor scale counts as scales.
device_difference device_compare(const device_quantized *wanted, const device_quantized *got);
static inline bool device_is_same(device_difference d) {
    return d.codes == 0 && d.scales == 0 && d.guards == 0;
}

// The names of a recipe's fields, separated by tabs: format, layout, scale rule, rounding.
enum { DEVICE_AXES_SIZE = 256 };
void device_recipe_axes(const qg_recipe *recipe, const char *format, char axes[DEVICE_AXES_SIZE]);
void device_storage_name(const qg_storage *storage, char name[64]);

#endif
