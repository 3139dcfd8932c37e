// What the backend cuda asks of its module and does with the answers, call by call: arguments, sizes,
// the kernel's choice, both routes of a product, and every call failing in turn. The module is
// support/recording_module; the bytes of real kernels are compared in tests/kernels.
#include <qg_backend.h>
#include <qg_cuda.h>
#include <qg_pack.h>
#include <qg_recipe_name.h>
#include <recording.h>
#include <require.h>
#include <run_suite.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { M = 3, N = 2, K = 64, MOST = 8192, PATH_SIZE = 4096, UNTOUCHED = 0xEE };

static recording *r;
static const qg_backend *cuda;
static float x[M * K], up[M * K];
static uint8_t codes[MOST], scales[MOST];

static qg_recipe recipe_of(const char *name) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find(name, &recipe), QG_OK);
    return recipe;
}

static qg_recipe groups_of(int32_t group) {
    qg_recipe recipe = recipe_of("e4m3");
    ck_assert_int_eq(qg_recipe_set_layout(&recipe, (qg_layout){QG_LAYOUT_GROUP, 1, group}), QG_OK);
    return recipe;
}

static void load(void) {
    char path[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    ck_assert_int_gt(length, 0);
    path[length] = 0;
    char *end = strrchr(path, '/') + 1;
    snprintf(end, (size_t)(path + PATH_SIZE - end), "recording_module.so");
    ck_assert_int_eq(setenv("QG_CUDA_MODULE", path, 1), 0);
    cuda = qg_backend_find("cuda");
    REQUIRE(!cuda->unavailable(), "%s", cuda->unavailable());
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD), *symbol;
    recording_function get;
    symbol = library ? dlsym(library, RECORDING_SYMBOL) : NULL;
    ck_assert_ptr_nonnull(symbol);
    memcpy(&get, &symbol, sizeof get);
    r = get();
}

// A test is a process of its own, but for those that start over.
static void start(void) {
    if (!r)
        load();
    ck_assert_int_eq(r->live, 0);
    memset(r, 0, sizeof *r);
    for (int i = 0; i < M * K; i++) {
        x[i] = (float)i - 90.0f;
        up[i] = 1.0f / (float)(i + 1);
    }
    memset(codes, UNTOUCHED, sizeof codes);
    memset(scales, UNTOUCHED, sizeof scales);
}

static qg_quantize_options options_of(qg_format type) {
    return (qg_quantize_options){.input_type = type, .seed = 77, .stream = 5};
}

// (size) bytes of the recorder's pattern and nothing after.
static void expect_pattern(const uint8_t *bytes, int64_t size, int first, int step) {
    for (int64_t i = 0; i < size; i++)
        REQUIRE(bytes[i] == (uint8_t)(first + step * i), "byte %lld of %lld", (long long)i,
                (long long)size);
    for (int64_t i = size; i < MOST; i++)
        REQUIRE(bytes[i] == UNTOUCHED, "byte %lld after %lld", (long long)i, (long long)size);
}

// ---------------------------------------------------------------------------------------- quantize

START_TEST(a_quantization_arrives_whole) {
    qg_recipe recipe = recipe_of("mxfp4");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    qg_storage storage = {
        .packed = true, .order = {QG_ORDER_TILE128X4, 0}
    };
    float tensor = 9;
    const char *impl = NULL;
    start();
    ck_assert_int_eq(
        cuda->quantize(&recipe, &options, &storage, M, K, x, codes, scales, &tensor, &impl), QG_OK);
    const qg_cuda_quantize *q = &r->quantize;
    ck_assert_int_eq(memcmp(&q->recipe, &recipe, sizeof recipe), 0);
    ck_assert_int_eq(q->input_type, QG_FORMAT_FP32);
    ck_assert_int_eq(q->packed, 1);
    ck_assert_int_eq(q->order.kind, QG_ORDER_TILE128X4);
    ck_assert_int_eq(q->m, M);
    ck_assert_int_eq(q->k, K);
    ck_assert_uint_eq(q->seed, 77);
    ck_assert_uint_eq(q->stream, 5);
    ck_assert_ptr_null(q->up);
    ck_assert_ptr_null(q->tensor_scale);
    ck_assert_int_eq(r->x.size, sizeof x);
    ck_assert_int_eq(memcmp(r->x.bytes, x, sizeof x), 0);
    expect_pattern(codes, M * K / 2, 1, 1);
    expect_pattern(scales, 512, 200, -1);
    ck_assert_float_eq(tensor, 1);
    ck_assert_str_eq(impl, "another");
    ck_assert_int_eq(r->live, 0);
}
END_TEST

START_TEST(narrow_inputs_take_two_bytes) {
    qg_recipe recipe = recipe_of("mxfp8");
    qg_quantize_options options = options_of(QG_FORMAT_BF16);
    start();
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_OK);
    ck_assert_int_eq(r->quantize.input_type, QG_FORMAT_BF16);
    ck_assert_int_eq(r->x.size, M * K * 2);
    expect_pattern(codes, M * K, 1, 1);
    expect_pattern(scales, M * K / 32, 200, -1);
}
END_TEST

START_TEST(a_tensor_scale_comes_back) {
    qg_recipe recipe = recipe_of("nvfp4");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    float tensor = 9;
    start();
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, &tensor, NULL),
                     QG_OK);
    ck_assert_float_eq(tensor, 3.5f);
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
}
END_TEST

START_TEST(delayed_takes_the_history) {
    static const float history[] = {2.5f, 7.25f, 0.5f};
    qg_recipe recipe = recipe_of("e4m3");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    ck_assert_int_eq(qg_recipe_set_rule(&recipe, QG_RULE_DELAYED, 0), QG_OK);
    start();
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
    options.amax_history = history;
    options.history_length = 3;
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_OK);
    ck_assert_float_eq(r->quantize.history_amax, 7.25f);
}
END_TEST

START_TEST(silu_passes_gate_and_up) {
    qg_recipe recipe = recipe_of("mxfp8");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    start();
    ck_assert_int_eq(
        cuda->silu_quantize(&recipe, &options, NULL, M, K, x, up, codes, scales, NULL, NULL),
        QG_OK);
    ck_assert_int_eq(memcmp(r->x.bytes, x, sizeof x), 0);
    ck_assert_int_eq(r->up.size, sizeof up);
    ck_assert_int_eq(memcmp(r->up.bytes, up, sizeof up), 0);
    ck_assert_int_eq(r->live, 0);
}
END_TEST

// ----------------------------------------------------------------------------------------- choice

static int kernel_of(const qg_recipe *recipe, int64_t m) {
    qg_quantize_options options = options_of(QG_FORMAT_BF16);
    static uint16_t input[64 * K];
    ck_assert_int_eq(cuda->quantize(recipe, &options, NULL, m, K, input, codes, scales, NULL, NULL),
                     QG_OK);
    return r->quantize.kernel;
}

// 4 SMs: 8 CTAs of the twin are enough, and a row of 64 is one CTA.
START_TEST(the_floor_uses_the_devices_sms) {
    qg_recipe recipe = groups_of(8);
    start();
    ck_assert_int_eq(kernel_of(&recipe, 7), QG_GROUP_KERNEL_SHARED);
    ck_assert_int_eq(kernel_of(&recipe, 8), QG_GROUP_KERNEL_HOPPER);
}
END_TEST

// 128 groups of 8 are one CTA of bf16, a lane to a group, and two of fp32.
START_TEST(the_floor_counts_with_the_inputs_vectors) {
    enum { ROWS = 4, COLUMNS = 1024 };
    static float wide[ROWS * COLUMNS];
    static const qg_format types[] = {QG_FORMAT_BF16, QG_FORMAT_FP32};
    qg_recipe recipe = groups_of(8);
    start();
    for (int i = 0; i < 2; i++) {
        qg_quantize_options options = options_of(types[i]);
        ck_assert_int_eq(
            cuda->quantize(&recipe, &options, NULL, ROWS, COLUMNS, wide, codes, scales, NULL, NULL),
            QG_OK);
        ck_assert_int_eq(r->quantize.kernel, i ? QG_GROUP_KERNEL_HOPPER : QG_GROUP_KERNEL_SHARED);
    }
}
END_TEST

START_TEST(levers_and_routes_decide) {
    static const qg_route_row rows[] = {
        {1, 1, QG_GROUP_KERNEL_HOPPER, 2.0, 3}
    };
    static const qg_route learned = {rows, 1};
    qg_recipe recipe = groups_of(8);
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    start();
    setenv("QG_GROUP_KERNEL", "hopper", 1);
    ck_assert_int_eq(kernel_of(&recipe, 1), QG_GROUP_KERNEL_HOPPER);
    setenv("QG_GROUP_KERNEL", "shared", 1);
    ck_assert_int_eq(kernel_of(&recipe, 64), QG_GROUP_KERNEL_SHARED);
    setenv("QG_GROUP_KERNEL", "sharp", 1);
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
    REQUIRE(strstr(qg_detail(), "QG_GROUP_KERNEL"), "%s", qg_detail());
    ck_assert_int_eq(r->live, 0);
    // What a program says goes before the environment.
    qg_cuda_use_lever(QG_LEVER_AUTO);
    ck_assert_int_eq(kernel_of(&recipe, 1), QG_GROUP_KERNEL_SHARED);
    qg_cuda_use_route(&learned);
    ck_assert_int_eq(kernel_of(&recipe, 1), QG_GROUP_KERNEL_HOPPER);
    qg_cuda_use_route(NULL);
    ck_assert_int_eq(kernel_of(&recipe, 1), QG_GROUP_KERNEL_SHARED);
}
END_TEST

// -------------------------------------------------------------------------------------- dequantize

START_TEST(a_dequantization_arrives_whole) {
    qg_recipe recipe = recipe_of("mxfp8");
    qg_storage storage = {
        .packed = true, .order = {QG_ORDER_K_MAJOR, 16}
    };
    static float q[M * K];
    const char *impl = NULL;
    start();
    for (int i = 0; i < M * K; i++)
        codes[i] = (uint8_t)i;
    ck_assert_int_eq(cuda->dequantize(&recipe, &storage, M, K, codes, scales, 2, 1, q, &impl),
                     QG_OK);
    const qg_cuda_dequantize *d = &r->dequantize[0];
    ck_assert_int_eq(memcmp(&d->recipe, &recipe, sizeof recipe), 0);
    ck_assert_int_eq(d->packed, 1);
    ck_assert_int_eq(d->order.kind, QG_ORDER_K_MAJOR);
    ck_assert_int_eq(d->order.padding, 16);
    ck_assert_int_eq(d->m, M);
    ck_assert_int_eq(d->k, K);
    ck_assert_int_eq(d->out_type, QG_FORMAT_FP32);
    for (int i = 0; i < M * K; i++)
        ck_assert_float_eq(q[i], (float)(2 * (uint8_t)i));
    ck_assert_str_eq(impl, "dequantize");
    ck_assert_int_eq(r->live, 0);
}
END_TEST

// ---------------------------------------------------------------------------------------- products

static const float bias[N] = {0.25f, 1000.0f};
static uint8_t codes_a[M * K], codes_b[N * K];
static uint8_t scales_a[M * K / 16], scales_b[N * K / 16];

typedef struct operands {
    qg_recipe recipe;
    qg_matmul_operand a, b;
    qg_matmul_options options;
} operands;

static void prepare(const char *name, operands *o) {
    for (int i = 0; i < M * K; i++)
        codes_a[i] = (uint8_t)(i % 13);
    for (int i = 0; i < N * K; i++)
        codes_b[i] = (uint8_t)(i % 7);
    for (int i = 0; i < M * K / 16; i++)
        scales_a[i] = (uint8_t)(i + 1);
    for (int i = 0; i < N * K / 16; i++)
        scales_b[i] = (uint8_t)(i + 101);
    *o = (operands){.recipe = recipe_of(name)};
    o->a = (qg_matmul_operand){&o->recipe, codes_a, scales_a, 0.5f};
    o->b = (qg_matmul_operand){&o->recipe, codes_b, scales_b, 4.0f};
    o->options = (qg_matmul_options){.out_type = QG_FORMAT_FP32, .bias = bias};
}

static qg_status multiply(const operands *o, float *out, const char **impl) {
    return cuda->scaled_matmul(NULL, &o->options, M, N, K, &o->a, &o->b, out, impl);
}

static void expect_operand(int i, const uint8_t *unpacked, const uint8_t *logical, int rows) {
    uint8_t row[K / 2];
    ck_assert_int_eq(r->codes[i].size, rows * K / 2);
    for (int m = 0; m < rows; m++) {
        qg_pack4(unpacked + m * K, K, row);
        ck_assert_int_eq(memcmp(row, r->codes[i].bytes + m * K / 2, K / 2), 0);
    }
    ck_assert_int_eq(r->scales[i].size, 512);
    for (int64_t at = 0; at < 512; at++) {
        qg_scale_place place = qg_scale_order_place(r->order, rows, K / 16, at);
        bool real = place.i < rows && place.j < K / 16;
        ck_assert_uint_eq(r->scales[i].bytes[at], real ? logical[place.i * (K / 16) + place.j] : 0);
    }
}

START_TEST(the_library_gets_its_own_forms) {
    operands o;
    float out[M * N] = {0};
    const char *impl = NULL;
    start();
    prepare("nvfp4", &o);
    r->order = (qg_scale_order){QG_ORDER_TILE128X4, 0};
    ck_assert_int_eq(multiply(&o, out, &impl), QG_OK);
    ck_assert_int_eq(r->products, 1);
    ck_assert_int_eq(r->dequantizations + r->multiplications, 0);
    const qg_cuda_product *p = &r->product;
    ck_assert_int_eq(p->m, M);
    ck_assert_int_eq(p->n, N);
    ck_assert_int_eq(p->k, K);
    ck_assert_int_eq(p->out_type, QG_FORMAT_FP32);
    ck_assert_int_eq(p->accumulates_fast, 0);
    ck_assert_int_eq(p->splitk_allowed, 0);
    ck_assert_float_eq(p->a.tensor_scale, 0.5f);
    ck_assert_float_eq(p->b.tensor_scale, 4.0f);
    ck_assert_float_eq(r->product_bias, 1000.0f);
    ck_assert_ptr_null(p->c);
    ck_assert_ptr_null(p->out_scale);
    ck_assert_int_ge(p->workspace_bytes, 1 << 20);
    expect_operand(0, codes_a, scales_a, M);
    expect_operand(1, codes_b, scales_b, N);
    // What was asked before is what is run.
    ck_assert_int_eq(memcmp(&r->asked.a.recipe, &o.recipe, sizeof o.recipe), 0);
    ck_assert_ptr_nonnull(r->asked.bias);
    ck_assert_int_eq(r->asked.workspace_bytes, p->workspace_bytes);
    for (int i = 0; i < M * N; i++)
        ck_assert_float_eq(out[i], 42);
    ck_assert_str_eq(impl, "cublaslt: algo 66 tile 20 stages 36 splitk 1");
    ck_assert_int_eq(r->live, 0);
}
END_TEST

// Without a tensor scale the operand's is not looked at, nor a bias that is not there.
START_TEST(the_library_gets_plain_operands) {
    operands o;
    float out[M * N];
    start();
    prepare("mxfp8", &o);
    o.options.bias = NULL;
    ck_assert_int_eq(multiply(&o, out, NULL), QG_OK);
    ck_assert_float_eq(r->product.a.tensor_scale, 1);
    ck_assert_ptr_null(r->product.bias);
    ck_assert_ptr_null(r->asked.bias);
    ck_assert_int_eq(r->codes[0].size, M * K);
    ck_assert_int_eq(memcmp(r->codes[0].bytes, codes_a, M * K), 0);
    ck_assert_int_eq(r->scales[1].size, N * K / 32);
    ck_assert_int_eq(memcmp(r->scales[1].bytes, scales_b, N * K / 32), 0);
    ck_assert_int_eq(r->live, 0);
}
END_TEST

static void expect_fallback(const operands *o, const char *wanted) {
    float out[M * N] = {0};
    const char *impl = NULL;
    ck_assert_int_eq(multiply(o, out, &impl), QG_OK);
    ck_assert_str_eq(impl, wanted);
    ck_assert_int_eq(r->dequantizations, 2);
    ck_assert_int_eq(r->multiplications, 1);
    ck_assert_int_eq(r->multiply.out_type, QG_FORMAT_FP32);
    for (int i = 0; i < M * N; i++) {
        float sum = 0; // small whole numbers: exact in any order
        for (int l = 0; l < K; l++)
            sum += (float)codes_a[i / N * K + l] * 0.5f * (float)codes_b[i % N * K + l] * 4.0f;
        ck_assert_float_eq(out[i], sum + bias[i % N]);
    }
    ck_assert_int_eq(r->live, 0);
}

START_TEST(what_the_library_refuses_is_multiplied) {
    operands o;
    start();
    prepare("nvfp4", &o);
    r->takes = QG_ERROR_UNSUPPORTED;
    snprintf(r->reason, sizeof r->reason, "vec16_architecture: sm_90");
    expect_fallback(&o, "fp32_fma: vec16_architecture: sm_90");
    ck_assert_int_eq(r->products, 0);
}
END_TEST

START_TEST(what_the_library_finds_no_algorithm_for_is_multiplied) {
    operands o;
    start();
    prepare("nvfp4", &o);
    r->product_status = QG_ERROR_UNSUPPORTED;
    snprintf(r->reason, sizeof r->reason, "no_algorithm");
    expect_fallback(&o, "fp32_fma: no_algorithm");
    ck_assert_int_eq(r->products, 1);
}
END_TEST

START_TEST(what_the_library_fails_at_is_an_error) {
    operands o;
    float out[M * N];
    start();
    prepare("mxfp8", &o);
    r->product_status = QG_ERROR_ENVIRONMENT;
    snprintf(r->reason, sizeof r->reason, "execution failed");
    ck_assert_int_eq(multiply(&o, out, NULL), QG_ERROR_ENVIRONMENT);
    ck_assert_str_eq(qg_detail(), "cuda: execution failed");
    ck_assert_int_eq(r->multiplications, 0);
    ck_assert_int_eq(r->live, 0);
    r->product_status = QG_OK;
    r->takes = QG_ERROR_MEMORY;
    ck_assert_int_eq(multiply(&o, out, NULL), QG_ERROR_MEMORY);
    ck_assert_int_eq(r->multiplications, 0);
    ck_assert_int_eq(r->live, 0);
}
END_TEST

// ---------------------------------------------------------------------------------------- refusals

START_TEST(wrong_arguments_reach_no_module) {
    qg_recipe recipe = recipe_of("mxfp8"), pairs = recipe_of("mx9");
    qg_quantize_options options = options_of(QG_FORMAT_E4M3);
    qg_storage tiles = {
        .order = {QG_ORDER_TILE128X4, 0}
    };
    operands o;
    float out[M * N];
    qg_unit unit = {.id = QG_UNIT_EXACT};
    start();
    prepare("mxfp8", &o);
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
    options.input_type = QG_FORMAT_FP32;
    ck_assert_int_eq(cuda->quantize(&recipe, &options, NULL, 0, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_ARGUMENT);
    ck_assert_int_eq(
        cuda->quantize(&recipe, &options, NULL, INT64_MAX / 4, 3, x, codes, scales, NULL, NULL),
        QG_ERROR_OVERFLOW);
    ck_assert_int_eq(cuda->quantize(&pairs, &options, &tiles, M, K, x, codes, scales, NULL, NULL),
                     QG_ERROR_UNSUPPORTED);
    ck_assert_int_eq(
        cuda->dequantize(&recipe, NULL, INT64_MAX / 4, 3, codes, scales, 1, 1, x, NULL),
        QG_ERROR_OVERFLOW);
    ck_assert_int_eq(cuda->scaled_matmul(&unit, &o.options, M, N, K, &o.a, &o.b, out, NULL),
                     QG_ERROR_UNSUPPORTED);
    ck_assert_int_eq(cuda->scaled_matmul(NULL, NULL, M, N, K, &o.a, &o.b, out, NULL),
                     QG_ERROR_ARGUMENT);
    o.options.out_type = QG_FORMAT_E4M3;
    ck_assert_int_eq(multiply(&o, out, NULL), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(r->quantizations + r->dequantizations + r->products + r->multiplications, 0);
    ck_assert_int_eq(r->live, 0);
    unit.id = QG_UNIT_NATIVE;
    o.options.out_type = QG_FORMAT_FP32;
    ck_assert_int_eq(cuda->scaled_matmul(&unit, &o.options, M, N, K, &o.a, &o.b, out, NULL), QG_OK);
}
END_TEST

// One operation of each kind, products by both routes; the number of the module's calls in *calls.
static qg_status run_operation(int which) {
    qg_recipe recipe = recipe_of("nvfp4");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    static float q[M * K];
    float out[M * N], tensor;
    double seconds[2], copied[2];
    qg_cuda_timing timing = {2, 2, seconds, 64, copied};
    operands o;
    prepare("nvfp4", &o);
    r->takes = which == 3 ? QG_ERROR_UNSUPPORTED : QG_OK;
    switch (which) {
    case 0: return cuda->quantize(&recipe, &options, NULL, M, K, x, codes, scales, &tensor, NULL);
    case 1:
        return cuda->silu_quantize(&recipe, &options, NULL, M, K, x, up, codes, scales, &tensor,
                                   NULL);
    case 2: return cuda->dequantize(&recipe, NULL, M, K, codes, scales, 1, 1, q, NULL);
    case 5:
        return qg_cuda_time_quantize(&recipe, &options, NULL, M, K, x, codes, scales, &tensor, NULL,
                                     &timing);
    default: return multiply(&o, out, NULL);
    }
}

START_TEST(every_call_may_fail) {
    for (int which = 0; which < 6; which++) {
        char wanted[64];
        start();
        ck_assert_int_eq(run_operation(which), QG_OK);
        int calls = r->calls;
        ck_assert_int_ge(calls, 5);
        for (int i = 1; i <= calls; i++) {
            start();
            r->fail_at = i;
            ck_assert_int_eq(run_operation(which), QG_ERROR_ENVIRONMENT);
            snprintf(wanted, sizeof wanted, "cuda: call %d failed", i);
            ck_assert_str_eq(qg_detail(), wanted);
            ck_assert_int_eq(r->calls, i);
            ck_assert_int_eq(r->live, 0);
        }
    }
}
END_TEST

START_TEST(times_are_the_devices) {
    qg_recipe recipe = recipe_of("nvfp4");
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    double seconds[3], copied[3];
    qg_cuda_timing timing = {7, 3, seconds, 1000, copied};
    float tensor;
    start();
    ck_assert_int_eq(qg_cuda_time_quantize(&recipe, &options, NULL, M, K, x, codes, scales, &tensor,
                                           NULL, &timing),
                     QG_OK);
    ck_assert_int_eq(r->launches, 7);
    ck_assert_int_eq(r->repeats, 3);
    ck_assert_int_eq(r->quantizations, 1 + 7);
    ck_assert_int_eq(r->copies, 7);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(seconds[i], 1e-3 * (i + 1));
        ck_assert_double_eq(copied[i], 1e-3 * (i + 1));
    }
    expect_pattern(codes, M * K, 1, 1);
    ck_assert_float_eq(tensor, 3.5f);
    timing.copy_bytes = 0;
    ck_assert_int_eq(qg_cuda_time_quantize(&recipe, &options, NULL, M, K, x, codes, scales, &tensor,
                                           NULL, &timing),
                     QG_OK);
    ck_assert_int_eq(r->copies, 7);
    ck_assert_int_eq(r->live, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_quantization_arrives_whole,
        narrow_inputs_take_two_bytes,
        a_tensor_scale_comes_back,
        delayed_takes_the_history,
        silu_passes_gate_and_up,
        the_floor_uses_the_devices_sms,
        the_floor_counts_with_the_inputs_vectors,
        levers_and_routes_decide,
        a_dequantization_arrives_whole,
        the_library_gets_its_own_forms,
        the_library_gets_plain_operands,
        what_the_library_refuses_is_multiplied,
        what_the_library_finds_no_algorithm_for_is_multiplied,
        what_the_library_fails_at_is_an_error,
        wrong_arguments_reach_no_module,
        every_call_may_fail,
        times_are_the_devices,
    };
    return RUN_SUITE("cuda calls", tests);
}
