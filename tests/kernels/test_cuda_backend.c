// The backend cuda over the shim's module: bytes, tensor scales and values of quantize, dequantize and
// SiLU are the emulator's, products that cuBLASLt does not take are those of unit fp32_fma, and a
// device without memory costs an error and leaves nothing behind.
#include <block_data.h>
#include <cpu_check.h>
#include <qg_cuda.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>
#include <shim_control.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1200, PATH_SIZE = 4096, GUARD = 64, POISON = 0xA5, TEXT = 256 };

static const qg_backend *cuda, *emulator;
static float room[MOST];
static uint16_t narrow[2][MOST];

// Of the shim inside the module, which is not the one that this program is linked with.
static void (*set_memory_limit)(uint64_t bytes);
static size_t (*memory_blocks)(void);
static size_t (*fault_count)(void);
static const char *(*fault)(size_t index);

static void find(void *library, const char *name, void *function) {
    void *symbol = dlsym(library, name);
    REQUIRE(symbol, "no %s", name);
    memcpy(function, &symbol, sizeof symbol);
}

static void start(void) {
    char path[PATH_SIZE];
    ssize_t length = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    ck_assert_int_gt(length, 0);
    path[length] = 0;
    char *end = strrchr(path, '/') + 1;
    snprintf(end, (size_t)(path + PATH_SIZE - end), "quantgauge_cuda_shim.so");
    setenv("QG_CUDA_MODULE", path, 1);
    setenv("QG_CUBLASLT", "/nonexistent/libcublasLt.so", 1);
    cuda = qg_backend_find("cuda");
    emulator = qg_backend_find("emulator");
    REQUIRE(!cuda->unavailable(), "%s", cuda->unavailable());
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(library);
    find(library, "qg_shim_set_memory_limit", &set_memory_limit);
    find(library, "qg_shim_memory_blocks", &memory_blocks);
    find(library, "qg_shim_fault_count", &fault_count);
    find(library, "qg_shim_fault", &fault);
}

// ------------------------------------------------------------------------------------- comparison

// What one backend made, with guards behind.
typedef struct made {
    uint8_t *codes, *scales;
    float *q, tensor;
    const char *impl;
    qg_status status;
} made;

static uint8_t *poisoned(int64_t size) {
    uint8_t *p = malloc((size_t)(size + GUARD));
    REQUIRE(p, "no memory");
    return memset(p, POISON, (size_t)(size + GUARD));
}

static void expect_guard(const uint8_t *p, int64_t size, const char *text) {
    for (int64_t i = 0; i < GUARD; i++)
        REQUIRE(p[size + i] == POISON, "%s: byte %lld of %lld is written", text,
                (long long)(size + i), (long long)size);
}

static made make(const qg_backend *backend, const cpu_case *c, const void *up,
                 const qg_storage_shape *s) {
    made r = {.tensor = -1};
    r.codes = poisoned(s->codes_size);
    r.scales = poisoned(s->scales_size);
    r.q = (float *)(void *)poisoned(4 * c->m * c->k);
    if (up)
        r.status = backend->silu_quantize(&c->recipe, &c->options, &c->storage, c->m, c->k, c->x,
                                          up, r.codes, r.scales, &r.tensor, &r.impl);
    else
        r.status = backend->quantize(&c->recipe, &c->options, &c->storage, c->m, c->k, c->x,
                                     r.codes, r.scales, &r.tensor, &r.impl);
    if (r.status == QG_OK)
        r.status = backend->dequantize(&c->recipe, &c->storage, c->m, c->k, r.codes, r.scales,
                                       r.tensor, 1, r.q, NULL);
    return r;
}

static void release(made *r) {
    free(r->codes);
    free(r->scales);
    free(r->q);
}

static void describe(const cpu_case *c, const void *up, char text[TEXT]) {
    char element[QG_NAME_SIZE], layout[QG_NAME_SIZE], rule[QG_NAME_SIZE], type[QG_NAME_SIZE];
    qg_format_name(c->recipe.element, element);
    qg_layout_name(c->recipe.layout, layout);
    qg_rule_name(c->recipe.rule, c->recipe.fixed_scale, rule);
    qg_format_name(c->options.input_type, type);
    snprintf(text, TEXT, "%s %s %s structure %d of %s, %lld x %lld, order %d%s%s", element, layout,
             rule, c->recipe.structure, type, (long long)c->m, (long long)c->k,
             (int)c->storage.order.kind, c->storage.packed ? " packed" : "", up ? " silu" : "");
}

static void compare(const cpu_case *c, const void *up) {
    qg_storage_shape s;
    char text[TEXT];
    describe(c, up, text);
    ck_assert_int_eq(qg_storage_shape_of(&c->recipe, &c->storage, c->m, c->k, &s), QG_OK);
    made wanted = make(emulator, c, up, &s), got = make(cuda, c, up, &s);
    REQUIRE(wanted.status == QG_OK, "%s: the emulator: %s", text, qg_detail());
    REQUIRE(got.status == QG_OK, "%s: %s; fault: %s", text, qg_detail(),
            fault_count() ? fault(0) : "none");
    REQUIRE(memcmp(&wanted.tensor, &got.tensor, sizeof(float)) == 0, "%s: tensor scale %a, not %a",
            text, (double)got.tensor, (double)wanted.tensor);
    for (int64_t i = 0; i < s.codes_size; i++)
        REQUIRE(wanted.codes[i] == got.codes[i], "%s by %s: code byte %lld is %02x, not %02x", text,
                got.impl, (long long)i, got.codes[i], wanted.codes[i]);
    for (int64_t i = 0; i < s.scales_size; i++)
        REQUIRE(wanted.scales[i] == got.scales[i], "%s by %s: scale byte %lld is %02x, not %02x",
                text, got.impl, (long long)i, got.scales[i], wanted.scales[i]);
    REQUIRE(memcmp(wanted.q, got.q, (size_t)(4 * c->m * c->k)) == 0, "%s: values differ", text);
    expect_guard(got.codes, s.codes_size, text);
    expect_guard(got.scales, s.scales_size, text);
    expect_guard((uint8_t *)got.q, 4 * c->m * c->k, text);
    release(&wanted);
    release(&got);
    ck_assert_uint_eq(memory_blocks(), 0);
    ck_assert_uint_eq(fault_count(), 0);
}

static qg_quantize_options options_of(qg_format type) {
    static const float history[] = {2.5f, 100.0f};
    return (qg_quantize_options){.input_type = type,
                                 .seed = 42,
                                 .stream = QG_STREAM_ROUNDING,
                                 .amax_history = history,
                                 .history_length = 2};
}

// ------------------------------------------------------------------------------------------- tests

START_TEST(random_cases_agree) {
    uint64_t state = 3;
    start();
    for (int i = 0; i < 600; i++) {
        cpu_case c;
        if (cpu_check_draw(&state, MOST / 4, room, &c))
            compare(&c, NULL);
    }
}
END_TEST

// Every named recipe on a ragged shape, from every input type.
START_TEST(every_recipe_agrees) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    start();
    block_data_fill(5, BLOCK_DATA_MIXED, room, MOST);
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int t = 0; t < 3; t++) {
            cpu_case c = {.m = 3, .k = 150, .x = room, .options = options_of(types[t])};
            ck_assert_int_eq(qg_recipe_find(qg_recipe_listed(i), &c.recipe), QG_OK);
            cpu_check_narrow(types[t], room, c.m * c.k, narrow[0]);
            if (t > 0)
                c.x = narrow[0];
            compare(&c, NULL);
        }
}
END_TEST

START_TEST(silu_agrees) {
    static const char *const names[] = {"mxfp8", "nvfp4", "e4m3", "mxfp4"};
    start();
    block_data_fill(6, BLOCK_DATA_MIXED, room, MOST);
    for (int i = 0; i < 8; i++) {
        cpu_case c = {.m = 3, .k = 150, .x = narrow[0]};
        c.options = options_of(i < 4 ? QG_FORMAT_BF16 : QG_FORMAT_FP32);
        ck_assert_int_eq(qg_recipe_find(names[i % 4], &c.recipe), QG_OK);
        cpu_check_narrow(QG_FORMAT_BF16, room, MOST, narrow[0]);
        memcpy(narrow[1], narrow[0] + 500, 450 * sizeof **narrow);
        if (i < 4) {
            compare(&c, narrow[1]);
        } else {
            c.x = room;
            compare(&c, room + 500);
        }
    }
}
END_TEST

// a (m, k) and b (n, k) of small random numbers, quantized by the emulator.
typedef struct operand {
    qg_recipe recipe;
    uint8_t codes[MOST], scales[MOST];
    float tensor;
    qg_matmul_operand view;
} operand;

static void make_operand(const char *name, uint64_t seed, int64_t rows, int64_t k, operand *o) {
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    o->tensor = 1;
    ck_assert_int_eq(qg_recipe_find(name, &o->recipe), QG_OK);
    block_data_fill(seed, BLOCK_DATA_ORDINARY, room, rows * k);
    ck_assert_int_eq(emulator->quantize(&o->recipe, &options, NULL, rows, k, room, o->codes,
                                        o->scales, &o->tensor, NULL),
                     QG_OK);
    o->view = (qg_matmul_operand){&o->recipe, o->codes, o->scales, o->tensor};
}

START_TEST(products_are_those_of_fp32_fma) {
    static const char *const names[] = {"e4m3", "mxfp8", "nvfp4", "mxfp4"};
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static operand a, b;
    enum { M = 5, N = 7, K = 70 };
    float bias[N], wanted[M * N], got[M * N];
    qg_unit unit;
    start();
    ck_assert_int_eq(qg_unit_parse("fp32_fma", &unit), QG_OK);
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < 6; t++) {
            const char *impl = "";
            qg_matmul_options options = {.out_type = types[t % 3], .bias = t < 3 ? bias : NULL};
            make_operand(names[i], 1, M, K, &a);
            make_operand(names[i], 2, N, K, &b);
            block_data_fill(9, BLOCK_DATA_ORDINARY, bias, N);
            memset(wanted, 0, sizeof wanted);
            memset(got, 0, sizeof got);
            ck_assert_int_eq(
                emulator->scaled_matmul(&unit, &options, M, N, K, &a.view, &b.view, wanted, NULL),
                QG_OK);
            qg_status status =
                cuda->scaled_matmul(NULL, &options, M, N, K, &a.view, &b.view, got, &impl);
            REQUIRE(status == QG_OK, "%s: %s", names[i], qg_detail());
            REQUIRE(memcmp(wanted, got, sizeof wanted) == 0, "%s, type %d: bits differ", names[i],
                    t);
            REQUIRE(strncmp(impl, "fp32_fma: ", 10) == 0 && strlen(impl) > 12, "impl %s", impl);
            ck_assert_uint_eq(memory_blocks(), 0);
        }
}
END_TEST

static qg_status run_operation(int which, const operand *o) {
    static float q[MOST];
    float out[16], tensor;
    static uint8_t codes[MOST], scales[MOST];
    qg_quantize_options options = options_of(QG_FORMAT_FP32);
    qg_matmul_options product = {.out_type = QG_FORMAT_FP32};
    switch (which) {
    case 0:
        return cuda->quantize(&o->recipe, &options, NULL, 4, 64, room, codes, scales, &tensor,
                              NULL);
    case 1:
        return cuda->dequantize(&o->recipe, NULL, 4, 64, o->codes, o->scales, o->tensor, 1, q,
                                NULL);
    default: return cuda->scaled_matmul(NULL, &product, 4, 4, 64, &o->view, &o->view, out, NULL);
    }
}

// Every allocation is the one that fails, some time.
START_TEST(a_device_without_memory) {
    static operand o;
    start();
    make_operand("nvfp4", 3, 4, 64, &o);
    for (int which = 0; which < 3; which++) {
        int failures = 0;
        qg_status status = QG_ERROR_MEMORY;
        for (uint64_t limit = 0; status != QG_OK; limit = limit * 5 / 4 + 16) {
            ck_assert_uint_lt(limit, 1 << 24);
            set_memory_limit(limit);
            status = run_operation(which, &o);
            REQUIRE(status == QG_OK || status == QG_ERROR_MEMORY, "%s", qg_detail());
            if (status != QG_OK)
                REQUIRE(strstr(qg_detail(), "cuda: device memory"), "%s", qg_detail());
            failures += status != QG_OK;
            ck_assert_uint_eq(memory_blocks(), 0);
        }
        ck_assert_int_ge(failures, 5);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        random_cases_agree,      every_recipe_agrees, silu_agrees, products_are_those_of_fp32_fma,
        a_device_without_memory,
    };
    return RUN_SUITE("cuda backend", tests);
}
