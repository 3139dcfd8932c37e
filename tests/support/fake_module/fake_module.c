// A CUDA module that is not there: one macro FAULT_* says in what way.
#include <qg_cuda_module.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef FAULT_NO_DRIVER
#define ABSENCE QG_CUDA_ABSENT_NO_DRIVER
#elif defined FAULT_STUB_DRIVER
#define ABSENCE QG_CUDA_ABSENT_STUB_DRIVER
#elif defined FAULT_NO_DEVICE
#define ABSENCE QG_CUDA_ABSENT_NO_DEVICE
#elif defined FAULT_NO_IMAGE
#define ABSENCE QG_CUDA_ABSENT_NO_IMAGE
#elif defined FAULT_FAILED
#define ABSENCE QG_CUDA_ABSENT_FAILED
#elif defined FAULT_NO_MODULE
#define ABSENCE QG_CUDA_ABSENT_NO_MODULE
#elif defined FAULT_BEYOND
#define ABSENCE QG_CUDA_ABSENT_COUNT
#else
#define ABSENCE QG_CUDA_ABSENT_NONE
#endif

// Nothing of a foreign table may be called.
#if defined FAULT_ABI || defined FAULT_SIZE
#define IS_OURS 0
#else
#define IS_OURS 1
#endif

// A device of an old architecture, on a driver that is older than the runtime. FAKE_MODULE_TRACE names
// a file that says that this was called, FAKE_MODULE_DIES ends the process.
static qg_cuda_absence fake_open(qg_cuda_device *device, qg_cuda_error *error) {
    *device = (qg_cuda_device){.name = "Fake", .architecture = 75, .sm_count = 1};
    device->runtime = 13000;
    device->driver = 12040;
    snprintf(error->text, sizeof error->text, "the fake\nspoke");
    if (getenv("FAKE_MODULE_TRACE"))
        (void)!creat(getenv("FAKE_MODULE_TRACE"), 0600);
    if (!IS_OURS || getenv("FAKE_MODULE_DIES"))
        abort();
    return ABSENCE;
}

static void fake_release(void *pointer) { (void)pointer; }

static qg_status fake_allocate(int64_t bytes, void **out, qg_cuda_error *error) {
    (void)bytes;
    *out = NULL;
    snprintf(error->text, sizeof error->text, "device memory: out of memory");
    return QG_ERROR_MEMORY;
}

static qg_scale_order fake_order(const qg_recipe *recipe) {
    (void)recipe;
    return (qg_scale_order){0};
}

static const qg_cuda_module module = {
#ifdef FAULT_ABI
    .abi = QG_CUDA_ABI + 7,
#else
    .abi = QG_CUDA_ABI,
#endif
#ifdef FAULT_SIZE
    .size = (int32_t)sizeof(qg_cuda_module) - 8,
#else
    .size = (int32_t)sizeof(qg_cuda_module),
#endif
    .open = fake_open,
    .allocate = fake_allocate,
    .release = fake_release,
    .product_order = fake_order,
};

#ifdef FAULT_SYMBOL
const qg_cuda_module *another_symbol(void);
const qg_cuda_module *another_symbol(void) { return &module; }
#else
const qg_cuda_module *quantgauge_cuda_module(void);
const qg_cuda_module *quantgauge_cuda_module(void) { return &module; }
#endif
