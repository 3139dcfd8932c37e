// Each failure of the library takes its route, with its reason, and leaves nothing allocated.
#include "product_case.h"

#include <run_suite.h>

static qg_status run(product_case *c, char text[QG_CUDA_TEXT]) {
    qg_cuda_error error = {""};
    qg_status status = product_run(&c->p, NULL, &error);
    memcpy(text, error.text, QG_CUDA_TEXT);
    ck_assert_int_eq(fake_live(), 0);
    return status;
}

static product_case small_case(void) {
    return case_of("rlx_e4m3", "rlx_e4m3", 4, 16, 32, QG_FORMAT_FP32, 0);
}

// ------------------------------------------------------------------------------------- no library

static void expect_missing(const char *library, const char *failure, const char *reason) {
    qg_cuda_error error = {""};
    if (failure)
        setenv("FAKE_CUBLASLT", failure, 1);
    qg_cuda_device device = open_as(90, library);
    unsetenv("FAKE_CUBLASLT");
    ck_assert_int_eq(device.cublaslt, 0);
    ck_assert_msg(strstr(device.cublaslt_missing, reason) != NULL, "%s", device.cublaslt_missing);
    product_case c = small_case();
    char want[QG_CUDA_TEXT];
    snprintf(want, sizeof want, "cuBLASLt was not loaded: %.200s", device.cublaslt_missing);
    ck_assert_int_eq(product_takes(&c.p, &error), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, want);
    error.text[0] = 0;
    ck_assert_int_eq(product_run(&c.p, NULL, &error), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, want);
    free_case(&c);
}

START_TEST(missing_library_costs_only_products) {
    product_case c = small_case();
    qg_cuda_error error = {""};
    ck_assert_int_eq(product_takes(&c.p, &error), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, "cuBLASLt was not loaded: nothing has opened it");
    free_case(&c);
    expect_missing("/nowhere/libcublasLt.so", NULL, "QG_CUBLASLT: /nowhere/libcublasLt.so");
    expect_missing("libm.so.6", NULL, "the library has no cublasLtGetVersion");
    expect_missing(fake_path(), "old_version", "its version 12.7 is below 12.8");
    expect_missing(fake_path(), "create_fails",
                   "cublasLtCreate: CUBLAS_STATUS_NOT_INITIALIZED (1)");
}
END_TEST

// Opening again destroys the handle that there was; a failure does not stay.
START_TEST(one_handle_lives) {
    open_fake(90);
    open_fake(100);
    ck_assert_int_eq(fake_handles(), 1);
    product_case c = small_case();
    char text[QG_CUDA_TEXT];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(run(&c, text), QG_OK);
    ck_assert_int_eq(fake_handles(), 1);
    ck_assert_int_eq(fake_last()->matmuls, 3);
    (void)open_as(90, "/nowhere");
    ck_assert_int_eq(fake_handles(), 0);
    free_case(&c);
}
END_TEST

// ---------------------------------------------------------------------------------- no algorithm

typedef struct route {
    const char *failure;
    qg_status status;
    const char *text;
    int matmuls;
} route;

#define NO_ALGORITHM "the library has no algorithm for fp8 per_tensor, m 4, n 16, k 32"

// clang-format off
static const route routes[] = {
    {"", QG_OK, "", 1},
    {"no_result", QG_ERROR_UNSUPPORTED, NO_ALGORITHM, 0},
    {"not_supported", QG_ERROR_UNSUPPORTED, NO_ALGORITHM, 0},
    {"splitk2", QG_ERROR_UNSUPPORTED,
     NO_ALGORITHM " (passed over: split-K 3, workspace 0, failed 0)", 0},
    {"workspace", QG_ERROR_UNSUPPORTED,
     NO_ALGORITHM " (passed over: split-K 0, workspace 3, failed 0)", 0},
    {"mute", QG_ERROR_UNSUPPORTED, NO_ALGORITHM " (passed over: split-K 3, workspace 0, failed 0)",
     0},
    {"heuristic_fails", QG_ERROR_ENVIRONMENT,
     "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_NOT_INITIALIZED (1)", 0},
    {"matmul_fails", QG_ERROR_ENVIRONMENT, "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED (13)",
     1},
};
// clang-format on

START_TEST(failures_take_their_routes) {
    open_fake(90);
    product_case c = small_case();
    char text[QG_CUDA_TEXT];
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        fake_fail(routes[i].failure);
        memset(&c.p.algorithm, 0x55, sizeof c.p.algorithm);
        ck_assert_int_eq(run(&c, text), routes[i].status);
        ck_assert_str_eq(text, routes[i].text);
        ck_assert_int_eq(fake_last()->matmuls, routes[i].matmuls);
        if (routes[i].status != QG_OK)
            ck_assert_int_eq(c.p.algorithm.id, 0);
    }
    free_case(&c);
}
END_TEST

// The environment reaches a library that a program loads.
START_TEST(environment_names_the_failure) {
    open_fake(90);
    product_case c = small_case();
    char text[QG_CUDA_TEXT];
    setenv("FAKE_CUBLASLT", "no_result", 1);
    ck_assert_int_eq(run(&c, text), QG_ERROR_UNSUPPORTED);
    unsetenv("FAKE_CUBLASLT");
    ck_assert_int_eq(run(&c, text), QG_OK);
    free_case(&c);
}
END_TEST

// Whatever creation or attribute fails, all that was made before it is freed: 1 + 9 of the product
// (3 numbers twice with their pointers, the flag), 4 layouts, 1 + 6 of the preference.
START_TEST(every_object_is_freed_on_every_path) {
    open_fake(90);
    product_case c = case_of("te_e5m2", "rlx_e4m3", 4, 16, 32, QG_FORMAT_E4M3, CASE_OUT_SCALE);
    char text[QG_CUDA_TEXT];
    int failed = 0;
    for (;; failed++) {
        char what[20];
        snprintf(what, sizeof what, "object:%d", failed + 1);
        fake_fail(what);
        qg_status status = run(&c, text);
        if (status == QG_OK)
            break;
        ck_assert_int_eq(status, QG_ERROR_MEMORY);
        ck_assert_msg(strstr(text, "CUBLAS_STATUS_ALLOC_FAILED (3)") != NULL, "%s", text);
        ck_assert_int_eq(fake_last()->matmuls, 0);
    }
    ck_assert_int_eq(failed, 1 + 8 + 4 + 1 + 6);
    free_case(&c);
}
END_TEST

// -------------------------------------------------------------------------------------- algorithm

static void expect_algorithm(const product_case *c, int index, int splitk) {
    const qg_cuda_algorithm *a = &c->p.algorithm;
    ck_assert_uint_eq(fake_last()->algorithm, (uint64_t)index);
    ck_assert_int_eq(a->id, index + 1);
    ck_assert_int_eq(a->tile, 100 + index + 1);
    ck_assert_int_eq(a->splitk, splitk);
    ck_assert_int_eq(a->reduction, splitk > 1 ? 2 : 0);
    ck_assert_int_eq(a->custom, 500 + index + 1);
    ck_assert_int_eq(a->stages, 600 + index + 1);
    ck_assert_int_eq(a->inner_shape, 700 + index + 1);
    ck_assert_int_eq(a->cluster_shape, 800 + index + 1);
    ck_assert_uint_eq(a->numerical, 0x0000001000020200u + (uint64_t)index);
    ck_assert(a->waves == 0.5f + (float)index);
    ck_assert_int_eq(a->workspace_bytes, index == 0 ? c->p.workspace_bytes : 0);
}

START_TEST(algorithm_is_read_back) {
    static const struct {
        const char *failure;
        int splitk_allowed, index, splitk;
    } cases[] = {
        {"",             0, 0, 1},
        {"splitk_first", 0, 1, 1},
        {"splitk_first", 1, 0, 2},
        {"splitk2",      1, 0, 2},
        {"state",        0, 1, 1},
    };
    open_fake(90);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        product_case c = small_case();
        char text[QG_CUDA_TEXT];
        fake_fail(cases[i].failure);
        c.p.splitk_allowed = cases[i].splitk_allowed;
        ck_assert_int_eq(run(&c, text), QG_OK);
        expect_algorithm(&c, cases[i].index, cases[i].splitk);
        free_case(&c);
    }
}
END_TEST

// What does not tell its attributes runs where nothing depends on them, and is recorded as silent.
START_TEST(silent_algorithms_are_recorded_as_such) {
    open_fake(90);
    product_case c = small_case();
    char text[QG_CUDA_TEXT];
    fake_fail("mute");
    c.p.splitk_allowed = 1;
    ck_assert_int_eq(run(&c, text), QG_OK);
    ck_assert_int_eq(c.p.algorithm.id, -1);
    ck_assert_int_eq(c.p.algorithm.cluster_shape, -1);
    ck_assert_uint_eq(c.p.algorithm.numerical, 0);
    free_case(&c);
}
END_TEST

// --------------------------------------------------------------------------------------- arguments

START_TEST(memory_is_checked) {
    open_fake(90);
    char text[QG_CUDA_TEXT];
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 5, 32, 32, QG_FORMAT_BF16, CASE_BIAS);
    c.p.workspace_bytes = 5 * 32 * 4; // 640, of 768 whole lines
    ck_assert_int_eq(run(&c, text), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(text, "a bias needs 768 bytes of workspace, here are 640");
    c.p.workspace_bytes = 768;
    ck_assert_int_eq(run(&c, text), QG_OK);
    ck_assert_uint_eq(fake_last()->workspace_bytes, 0);
    c.p.workspace = (uint8_t *)c.p.workspace + 16;
    ck_assert_int_eq(run(&c, text), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(text, "workspace lies at no multiple of 256 bytes");
    c.p.workspace = (uint8_t *)c.p.workspace - 16;
    const uint8_t *codes = c.p.a.codes;
    c.p.a.codes = codes + 8;
    ck_assert_int_eq(run(&c, text), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(text, "a.codes lies at no multiple of 16 bytes");
    c.p.a.codes = NULL;
    ck_assert_int_eq(run(&c, text), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(text, "a.codes is NULL");
    c.p.a.codes = codes;
    c.p.m = INT64_MAX / 64;
    ck_assert_int_eq(run(&c, text), QG_ERROR_OVERFLOW);
    free_case(&c);
}
END_TEST

// No workspace at all will do where nothing needs any: a bias of a binary32 output neither.
START_TEST(workspace_may_be_missing) {
    open_fake(90);
    char text[QG_CUDA_TEXT];
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 4, 16, 32, QG_FORMAT_FP32, CASE_BIAS);
    free(c.p.workspace);
    c.p.workspace = NULL;
    c.p.workspace_bytes = 0;
    ck_assert_int_eq(run(&c, text), QG_OK);
    free_case(&c);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        missing_library_costs_only_products,
        one_handle_lives,
        failures_take_their_routes,
        environment_names_the_failure,
        every_object_is_freed_on_every_path,
        algorithm_is_read_back,
        silent_algorithms_are_recorded_as_such,
        memory_is_checked,
        workspace_may_be_missing,
    };
    return RUN_SUITE("product_routes", tests);
}
