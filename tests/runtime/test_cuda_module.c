// The loader of the CUDA module: each way to be without one has its reason, the result is remembered,
// and a forked process does not take over what was opened before it. Modules are fakes
// (support/fake_module) and the shim; a test is a process of its own, as Check runs it.
#include <qg_backend.h>
#include <qg_cuda.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, THREADS = 8 };

// Beside this program.
static void place_of(const char *name, char path[PATH_SIZE]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    ck_assert_int_gt(length, 0);
    path[length] = 0;
    char *end = strrchr(path, '/') + 1;
    snprintf(end, (size_t)(path + PATH_SIZE - end), "%s", name);
}

static void use_module(const char *name) {
    char path[PATH_SIZE];
    place_of(name, path);
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", path, 1), 0);
}

static void expect_text(const char *text, const char *part) {
    REQUIRE(strstr(text, part), "\"%s\" is not in \"%s\"", part, text);
}

// Absent, for this reason: one line that begins with the table's text.
static const char *expect_absent(qg_cuda_absence wanted, const char *part) {
    const qg_cuda_device *device = (const qg_cuda_device *)(const void *)"untouched";
    qg_cuda_absence absence = QG_CUDA_ABSENT_COUNT;
    const char *reason = NULL;
    ck_assert_ptr_null(qg_cuda_open(&device, &absence, &reason));
    ck_assert_ptr_null(device);
    ck_assert_int_eq(absence, wanted);
    expect_text(reason, part);
    ck_assert_ptr_null(strchr(reason, '\n'));
    ck_assert_ptr_eq(qg_cuda_unavailable(), reason);
    ck_assert_ptr_eq(qg_backend_find("cuda")->unavailable(), reason);
    return reason;
}

static void expect_fake(const char *name, qg_cuda_absence wanted, const char *advice) {
    use_module(name);
    const char *reason = expect_absent(wanted, advice), *text = qg_cuda_absence_text(wanted);
    REQUIRE(strncmp(reason, text, strlen(text)) == 0, "\"%s\" does not begin \"%s\"", text, reason);
}

START_TEST(every_absence_has_a_text) {
    for (int i = 1; i < QG_CUDA_ABSENT_COUNT; i++) {
        const char *text = qg_cuda_absence_text((qg_cuda_absence)i);
        ck_assert_uint_gt(strlen(text), 10);
        for (int j = 1; j < i; j++)
            ck_assert_str_ne(text, qg_cuda_absence_text((qg_cuda_absence)j));
    }
    ck_assert_str_eq(qg_cuda_absence_text(QG_CUDA_ABSENT_NONE), "");
    ck_assert_str_eq(qg_cuda_absence_text(QG_CUDA_ABSENT_COUNT), "");
}
END_TEST

START_TEST(nothing_beside_the_program) {
    char path[PATH_SIZE];
    ck_assert_int_eq(unsetenv("QG_CUDA_MODULE"), 0);
    const char *reason =
        expect_absent(QG_CUDA_ABSENT_NO_MODULE, "tests/lib/quantgauge/quantgauge_cuda.so");
    expect_text(reason, "QG_CUDA_MODULE");
    ck_assert_ptr_null(strstr(reason, ".."));
    place_of("", path);
    path[strlen(path) - strlen("/bin/")] = 0;
    expect_text(reason, path);
}
END_TEST

START_TEST(an_empty_name_is_none) {
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", "", 1), 0);
    expect_absent(QG_CUDA_ABSENT_NO_MODULE, "tests/lib/quantgauge/quantgauge_cuda.so");
}
END_TEST

START_TEST(a_named_file_that_is_missing) {
    use_module("missing.so");
    const char *reason = expect_absent(QG_CUDA_ABSENT_NO_MODULE, "missing.so");
    expect_text(reason, "no such file");
    ck_assert_ptr_null(strstr(reason, "lib/quantgauge"));
}
END_TEST

// Without a slash it is a file of this folder, whatever lies in the library path.
START_TEST(a_name_without_folder) {
    char path[PATH_SIZE];
    place_of("", path);
    ck_assert_int_eq(chdir(path), 0);
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", "fake_module_abi.so", 1), 0);
    expect_absent(QG_CUDA_ABSENT_WRONG_ABI, "./fake_module_abi.so");
}
END_TEST

START_TEST(a_system_library_is_not_looked_for) {
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", "libc.so.6", 1), 0);
    expect_absent(QG_CUDA_ABSENT_NO_MODULE, "no such file");
}
END_TEST

// Without a writer a pipe would keep dlopen waiting.
START_TEST(no_regular_file) {
    char folder[] = "/tmp/qg_module_XXXXXX", path[PATH_SIZE];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", path, 1), 0);
    alarm(20);
    const char *reason = expect_absent(QG_CUDA_ABSENT_NO_MODULE, "no regular file");
    alarm(0);
    expect_text(reason, path);
    ck_assert_int_eq(unlink(path) + rmdir(folder), 0);
}
END_TEST

START_TEST(no_shared_object) {
    use_module("quantgauge-data.path"); // a text
    const char *reason = expect_absent(QG_CUDA_ABSENT_NO_MODULE, "cannot be loaded");
    expect_text(reason, "quantgauge-data.path");
}
END_TEST

START_TEST(no_symbol) {
    use_module("fake_module_symbol.so");
    const char *reason = expect_absent(QG_CUDA_ABSENT_NO_MODULE, QG_CUDA_SYMBOL);
    expect_text(reason, "fake_module_symbol.so");
}
END_TEST

// Nothing else of it is read: its functions are NULL.
START_TEST(another_abi) {
    char numbers[64];
    use_module("fake_module_abi.so");
    snprintf(numbers, sizeof numbers, "has ABI %d, this program needs %d", QG_CUDA_ABI + 7,
             QG_CUDA_ABI);
    expect_absent(QG_CUDA_ABSENT_WRONG_ABI, numbers);
}
END_TEST

START_TEST(another_size) {
    char numbers[64];
    int size = (int)sizeof(qg_cuda_module);
    use_module("fake_module_size.so");
    snprintf(numbers, sizeof numbers, "%d bytes, this program's has %d", size - 8, size);
    expect_absent(QG_CUDA_ABSENT_WRONG_ABI, numbers);
}
END_TEST

START_TEST(no_driver) {
    expect_fake("fake_module_no_driver.so", QG_CUDA_ABSENT_NO_DRIVER,
                "CUDA 13.0, the driver of 12.4; install or update it");
}
END_TEST

START_TEST(stub_driver) {
    expect_fake("fake_module_stub_driver.so", QG_CUDA_ABSENT_STUB_DRIVER, "LD_LIBRARY_PATH");
}
END_TEST

START_TEST(no_device) {
    expect_fake("fake_module_no_device.so", QG_CUDA_ABSENT_NO_DEVICE, "CUDA_VISIBLE_DEVICES");
}
END_TEST

START_TEST(no_image) {
    expect_fake("fake_module_no_image.so", QG_CUDA_ABSENT_NO_IMAGE,
                "(Fake, sm_75): build it with CMAKE_CUDA_ARCHITECTURES=75-real");
}
END_TEST

START_TEST(runtime_failure) {
    expect_fake("fake_module_failed.so", QG_CUDA_ABSENT_FAILED, ": the fake spoke");
}
END_TEST

// What a module says that it cannot know.
START_TEST(an_absence_that_does_not_exist) {
    expect_fake("fake_module_beyond.so", QG_CUDA_ABSENT_FAILED, "the fake spoke");
}
END_TEST

START_TEST(a_module_that_is_no_module) {
    expect_fake("fake_module_no_module.so", QG_CUDA_ABSENT_NO_MODULE, "");
}
END_TEST

START_TEST(it_is_there) {
    const qg_cuda_device *device;
    qg_cuda_absence absence;
    const char *reason;
    use_module("fake_module_none.so");
    const qg_cuda_module *module = qg_cuda_open(&device, &absence, &reason);
    ck_assert_ptr_nonnull(module);
    ck_assert_int_eq(absence, QG_CUDA_ABSENT_NONE);
    ck_assert_str_eq(reason, "");
    ck_assert_str_eq(device->name, "Fake");
    ck_assert_ptr_null(qg_cuda_unavailable());
    // Remembered, whatever the environment says later.
    use_module("missing.so");
    ck_assert_ptr_eq(qg_cuda_open(NULL, NULL, NULL), module);
}
END_TEST

static void *open_in_thread(void *context) {
    (void)context;
    return (void *)(uintptr_t)(const void *)qg_cuda_open(NULL, NULL, NULL);
}

START_TEST(threads_get_one_module) {
    pthread_t threads[THREADS];
    void *modules[THREADS];
    use_module("fake_module_none.so");
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_in_thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], &modules[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_ptr_eq(modules[i], qg_cuda_open(NULL, NULL, NULL));
    ck_assert_ptr_nonnull(modules[0]);
}
END_TEST

// 0: refused as it should be.
static int open_after_fork(void) {
    const qg_cuda_device *device = NULL;
    qg_cuda_absence absence = QG_CUDA_ABSENT_NONE;
    const char *reason = "";
    if (qg_cuda_open(&device, &absence, &reason) || device)
        return 1;
    return absence == QG_CUDA_ABSENT_FAILED && strstr(reason, "forked") ? 0 : 2;
}

START_TEST(a_fork_does_not_inherit_it) {
    int status;
    use_module("fake_module_none.so");
    ck_assert_ptr_nonnull(qg_cuda_open(NULL, NULL, NULL));
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(open_after_fork());
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_ptr_nonnull(qg_cuda_open(NULL, NULL, NULL));
}
END_TEST

// An operation says why it cannot: never as a combination that could be skipped.
START_TEST(operations_tell_the_reason) {
    static const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    qg_recipe recipe;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    uint8_t codes[8], scales[64];
    float q[8], out[1];
    use_module("fake_module_no_device.so");
    const char *reason = expect_absent(QG_CUDA_ABSENT_NO_DEVICE, "no device");
    ck_assert_int_eq(qg_recipe_find("e4m3", &recipe), QG_OK);
    const qg_backend *cuda = qg_backend_find("cuda");
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, 1, 8, x, codes, scales, NULL, NULL),
                     QG_ERROR_ENVIRONMENT);
    ck_assert_str_eq(qg_detail(), reason);
    ck_assert_int_eq(cuda->dequantize(&recipe, NULL, 1, 8, codes, scales, 1, 1, q, NULL),
                     QG_ERROR_ENVIRONMENT);
    ck_assert_str_eq(qg_detail(), reason);
    qg_matmul_options product = {.out_type = QG_FORMAT_FP32};
    qg_matmul_operand a = {&recipe, codes, scales, 1};
    ck_assert_int_eq(cuda->scaled_matmul(NULL, &product, 1, 1, 8, &a, &a, out, NULL),
                     QG_ERROR_ENVIRONMENT);
    ck_assert_str_eq(qg_detail(), reason);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        every_absence_has_a_text,
        nothing_beside_the_program,
        an_empty_name_is_none,
        a_named_file_that_is_missing,
        a_name_without_folder,
        a_system_library_is_not_looked_for,
        no_regular_file,
        no_shared_object,
        no_symbol,
        another_abi,
        another_size,
        no_driver,
        stub_driver,
        no_device,
        no_image,
        runtime_failure,
        an_absence_that_does_not_exist,
        a_module_that_is_no_module,
        it_is_there,
        threads_get_one_module,
        a_fork_does_not_inherit_it,
        operations_tell_the_reason,
    };
    return RUN_SUITE("cuda module", tests);
}
