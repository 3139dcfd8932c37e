// The module's own functions over the shim: finding a device, memory, and timing by graphs, on every
// path. What its kernels compute is tested elsewhere.
#include <qg_cuda_module.h>
#include <require.h>
#include <run_suite.h>
#include <shim_api.h>
#include <shim_control.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 10, LARGE = 1 << 21, REPEATS = 7 };

const qg_cuda_module *quantgauge_cuda_module(void);

static const qg_cuda_module *module;
static qg_cuda_error error;

static void start(void) {
    qg_cuda_device device;
    setenv("QG_CUBLASLT", "/nonexistent/libcublasLt.so", 1);
    qg_shim_reset();
    module = quantgauge_cuda_module();
    ck_assert_int_eq(module->abi, QG_CUDA_ABI);
    ck_assert_int_eq(module->size, sizeof *module);
    ck_assert_int_eq((module->open)(&device, &error), QG_CUDA_ABSENT_NONE);
}

// ----------------------------------------------------------------------------------------- opening

START_TEST(the_device_is_described) {
    qg_cuda_device device;
    start();
    memset(&device, 0xEE, sizeof device);
    qg_shim_set_arch(100);
    qg_shim_set_sms(148);
    ck_assert_int_eq((module->open)(&device, &error), QG_CUDA_ABSENT_NONE);
    ck_assert_int_eq(device.architecture, 100);
    ck_assert_int_eq(device.sm_count, 148);
    ck_assert_uint_gt(strlen(device.name), 0);
    ck_assert_int_gt(device.l2_bytes, 0);
    ck_assert_int_gt(device.memory_bytes, 0);
    ck_assert_int_ge(device.runtime, 12080);
    ck_assert_int_gt(device.driver, 0);
    ck_assert_int_eq(device.cublaslt, 0);
    ck_assert_uint_gt(strlen(device.cublaslt_missing), 0);
}
END_TEST

static void expect_absent(int probe_error, int devices, qg_cuda_absence wanted) {
    qg_cuda_device device;
    qg_shim_set_probe_error(probe_error);
    qg_shim_set_devices(devices);
    memset(&error, 0, sizeof error);
    ck_assert_int_eq((module->open)(&device, &error), wanted);
    ck_assert_uint_gt(strlen(error.text), 10);
}

// 35, 34 and 100 are what the runtime gives without a driver, with a stub, without a device.
START_TEST(absences_are_told_apart) {
    start();
    expect_absent(cudaErrorInsufficientDriver, 1, QG_CUDA_ABSENT_NO_DRIVER);
    expect_absent(cudaErrorStubLibrary, 1, QG_CUDA_ABSENT_STUB_DRIVER);
    expect_absent(cudaErrorNoDevice, 1, QG_CUDA_ABSENT_NO_DEVICE);
    expect_absent(0, 0, QG_CUDA_ABSENT_NO_DEVICE);
    expect_absent(cudaErrorNoKernelImageForDevice, 1, QG_CUDA_ABSENT_NO_IMAGE);
    expect_absent(cudaErrorInvalidDeviceFunction, 1, QG_CUDA_ABSENT_NO_IMAGE);
    expect_absent(cudaErrorInitializationError, 1, QG_CUDA_ABSENT_FAILED);
}
END_TEST

// ------------------------------------------------------------------------------------------ memory

START_TEST(memory_goes_there_and_back) {
    static uint8_t in[BYTES], out[BYTES];
    void *a, *b;
    start();
    for (int i = 0; i < BYTES; i++)
        in[i] = (uint8_t)(i * 7);
    ck_assert_int_eq(module->allocate(BYTES, &a, &error), QG_OK);
    ck_assert_int_eq(module->allocate(BYTES, &b, &error), QG_OK);
    ck_assert_uint_eq((uintptr_t)a % 256, 0);
    ck_assert_uint_eq((uintptr_t)b % 256, 0);
    ck_assert_int_eq(module->copy_in(a, in, BYTES, &error), QG_OK);
    ck_assert_int_eq(module->fill(b, 9, BYTES, &error), QG_OK);
    ck_assert_int_eq(module->copy(b, a, BYTES - 1, &error), QG_OK);
    ck_assert_int_eq(module->synchronize(&error), QG_OK);
    ck_assert_int_eq(module->copy_out(out, b, BYTES, &error), QG_OK);
    in[BYTES - 1] = 9;
    ck_assert_int_eq(memcmp(in, out, BYTES), 0);
    module->release(a);
    module->release(b);
    module->release(NULL);
    ck_assert_uint_eq(qg_shim_memory_blocks(), 0);
}
END_TEST

START_TEST(no_bytes_are_memory_too) {
    void *room = NULL;
    start();
    ck_assert_int_eq(module->allocate(0, &room, &error), QG_OK);
    ck_assert_ptr_nonnull(room);
    module->release(room);
    ck_assert_uint_eq(qg_shim_memory_blocks(), 0);
}
END_TEST

// The runtime would tell it once more after the next launch.
START_TEST(a_failure_is_told_once) {
    void *room = (void *)(uintptr_t)1;
    start();
    qg_shim_set_memory_limit(BYTES);
    ck_assert_int_eq(module->allocate(BYTES + 1, &room, &error), QG_ERROR_MEMORY);
    ck_assert_ptr_null(room);
    REQUIRE(strstr(error.text, "memory"), "%s", error.text);
    ck_assert_int_eq(cudaGetLastError(), 0);
    ck_assert_int_eq(module->copy_in(NULL, &error, 1, &error), QG_ERROR_ENVIRONMENT);
    ck_assert_int_eq(cudaGetLastError(), 0);
}
END_TEST

// ------------------------------------------------------------------------------------------ timing

typedef struct work {
    uint8_t *room;
    int calls, next, fail_at, wait_at; // -1: never
    bool in_order;
} work;

static qg_status fill_some(void *context, int i, qg_cuda_error *e) {
    work *w = context;
    w->in_order &= i == w->next++;
    w->calls++;
    if (i == w->fail_at) {
        memcpy(e->text, "as told", sizeof "as told");
        return QG_ERROR_UNSUPPORTED;
    }
    if (i == w->wait_at)
        return module->synchronize(e);
    return module->fill(w->room + i, (uint8_t)(i + 1), 1, e);
}

static work work_of(uint8_t *room) { return (work){room, 0, 0, -1, -1, true}; }

static qg_status time_work(work *w, int launches, int repeats, double *seconds) {
    return module->time(fill_some, w, launches, repeats, seconds, &error);
}

START_TEST(launches_are_recorded_once) {
    double seconds[5] = {-1, -1, -1, -1, -1};
    uint8_t out[BYTES];
    void *room;
    start();
    ck_assert_int_eq(module->allocate(BYTES, &room, &error), QG_OK);
    work w = work_of(room);
    ck_assert_int_eq(time_work(&w, 20, 4, seconds), QG_OK);
    ck_assert_int_eq(w.calls, 20);
    ck_assert(w.in_order);
    for (int i = 0; i < 4; i++)
        REQUIRE(seconds[i] >= 0 && seconds[i] < 1, "%g s", seconds[i]);
    ck_assert_double_eq(seconds[4], -1);
    ck_assert_int_eq(module->copy_out(out, room, 20, &error), QG_OK);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(out[i], i + 1);
    module->release(room);
    ck_assert_uint_eq(qg_shim_memory_blocks(), 0);
}
END_TEST

static qg_status fill_all(void *context, int i, qg_cuda_error *e) {
    return module->fill(context, (uint8_t)i, LARGE, e);
}

static double least_of(void *room, int launches) {
    double seconds[REPEATS], least = 1e9;
    ck_assert_int_eq(module->time(fill_all, room, launches, REPEATS, seconds, &error), QG_OK);
    for (int i = 0; i < REPEATS; i++)
        least = seconds[i] < least ? seconds[i] : least;
    return least;
}

// A launch takes as long among many as alone, give or take what else the machine does.
START_TEST(seconds_are_of_one_launch) {
    void *room;
    start();
    ck_assert_int_eq(module->allocate(LARGE, &room, &error), QG_OK);
    double alone = least_of(room, 1), among_many = least_of(room, 64);
    REQUIRE(among_many < 8 * alone && alone < 8 * among_many, "%g and %g s", alone, among_many);
    module->release(room);
}
END_TEST

// The stream is good for the next call.
static void expect_usable(uint8_t *room) {
    double seconds[1];
    work w = work_of(room);
    ck_assert_int_eq(module->synchronize(&error), QG_OK);
    ck_assert_int_eq(time_work(&w, 3, 1, seconds), QG_OK);
    ck_assert_int_eq(w.calls, 3);
}

START_TEST(a_run_that_fails_ends_it) {
    double seconds[2];
    void *room;
    start();
    ck_assert_int_eq(module->allocate(BYTES, &room, &error), QG_OK);
    for (int fail_at = 0; fail_at < 3; fail_at++) {
        work w = work_of(room);
        w.fail_at = fail_at;
        ck_assert_int_eq(time_work(&w, 3, 2, seconds), QG_ERROR_UNSUPPORTED);
        ck_assert_str_eq(error.text, "as told");
        ck_assert_int_eq(w.calls, fail_at + 1);
        expect_usable(room);
    }
    module->release(room);
}
END_TEST

// A stream that is captured cannot be waited for, and the capture is lost.
START_TEST(a_run_that_waits_is_refused) {
    double seconds[2];
    void *room;
    start();
    ck_assert_int_eq(module->allocate(BYTES, &room, &error), QG_OK);
    work w = work_of(room);
    w.wait_at = 1;
    ck_assert_int_eq(time_work(&w, 3, 2, seconds), QG_ERROR_ENVIRONMENT);
    ck_assert_int_eq(w.calls, 2);
    ck_assert_int_eq(cudaGetLastError(), 0);
    expect_usable(room);
    module->release(room);
}
END_TEST

START_TEST(nothing_to_time_is_refused) {
    double seconds[1];
    start();
    work w = work_of(NULL);
    ck_assert_int_eq(time_work(&w, 0, 1, seconds), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(time_work(&w, 1, 0, seconds), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(w.calls, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_device_is_described,    absences_are_told_apart,  memory_goes_there_and_back,
        no_bytes_are_memory_too,    a_failure_is_told_once,   launches_are_recorded_once,
        seconds_are_of_one_launch,  a_run_that_fails_ends_it, a_run_that_waits_is_refused,
        nothing_to_time_is_refused,
    };
    return RUN_SUITE("module", tests);
}
