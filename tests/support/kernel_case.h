// Kernels on the shim against the emulator: one quantization on guarded, poisoned device memory,
// compared byte for byte. For tests/kernels alone; include it once per program.
#ifndef KERNEL_CASE_H
#define KERNEL_CASE_H

#include <block_data.h>
#include <cpu_check.h>
#include <require.h>

#include <qg_cuda_module.h>
#include <qg_input.h>
#include <qg_pack.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <qg_silu.h>
#include <shim_control.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const qg_cuda_module *quantgauge_cuda_module(void);

enum { KERNEL_CASE_TEXT = 640, KERNEL_CASE_WAYS = 3 };

// The module over the shim, without cuBLASLt.
static inline const qg_cuda_module *kernel_module(void) {
    static const qg_cuda_module *module;
    if (!module) {
        qg_cuda_device device;
        qg_cuda_error error;
        setenv("QG_CUBLASLT", "/nonexistent", 1);
        module = quantgauge_cuda_module();
        REQUIRE(module->open(&device, &error) == QG_CUDA_ABSENT_NONE, "%s", error.text);
    }
    return module;
}

// Order of threads and poison of memory.
static inline void kernel_way(int way) {
    static const enum qg_shim_order orders[] = {QG_SHIM_DESCENDING, QG_SHIM_SHUFFLED,
                                                QG_SHIM_ASCENDING};
    static const enum qg_shim_poison poisons[] = {QG_SHIM_POISON_NAN, QG_SHIM_POISON_INF,
                                                  QG_SHIM_POISON_NAN};
    qg_shim_set_order(orders[way % KERNEL_CASE_WAYS], 12345u + (unsigned)way);
    qg_shim_set_poison(poisons[way % KERNEL_CASE_WAYS]);
}

// ------------------------------------------------------------------------------- device memory

typedef struct kernel_buffer {
    uint8_t *base, *at; // `at` is `shift` bytes behind
    uint8_t *poison;    // what lies in them
    int64_t size, shift;
} kernel_buffer;

static inline void kernel_check(qg_status status, const qg_cuda_error *error, const char *text) {
    const char *fault = qg_shim_fault(0);
    REQUIRE(status == QG_OK, "%s: %s; %s", text, error->text, fault ? fault : "no fault");
    REQUIRE(qg_shim_fault_count() == 0, "%s: %s", text, fault ? fault : "");
}

static inline void *kernel_host(int64_t bytes) {
    void *p = calloc((size_t)bytes + 16, 1);
    REQUIRE(p != NULL, "no memory");
    return p;
}

static inline kernel_buffer kernel_buffer_of(int64_t size, int64_t shift) {
    qg_cuda_error error;
    void *base;
    kernel_buffer b = {.size = size, .shift = shift};
    kernel_check(kernel_module()->allocate(size + shift, &base, &error), &error, "allocate");
    b.base = base;
    b.at = b.base + shift;
    b.poison = kernel_host(shift);
    memcpy(b.poison, b.base, (size_t)shift);
    return b;
}

// Everything before `at` must be as it was; the shim looks at what lies behind.
static inline void kernel_buffer_free(kernel_buffer *b, const char *text) {
    REQUIRE(memcmp(b->poison, b->base, (size_t)b->shift) == 0, "%s: bytes before a buffer written",
            text);
    kernel_module()->release(b->base);
    REQUIRE(qg_shim_fault_count() == 0, "%s: %s", text, qg_shim_fault(0));
    free(b->poison);
}

static inline void kernel_compare(const char *what, const void *got, const void *want, int64_t size,
                                  const char *text) {
    const uint8_t *g = got, *w = want;
    if (memcmp(g, w, (size_t)size) == 0)
        return;
    for (int64_t i = 0; i < size; i++)
        REQUIRE(g[i] == w[i], "%s: %s, byte %lld of %lld is %02x, not %02x", text, what,
                (long long)i, (long long)size, g[i], w[i]);
}

// ----------------------------------------------------------------------------------------- a case

typedef struct kernel_case {
    qg_recipe recipe;
    qg_format type;
    qg_storage storage;
    int64_t m, k;
    uint64_t seed;
    int kind;      // of the data
    bool has_up;   // SiLU(x) times up
    int64_t shift; // elements of x and codes before the tensor
    int group_kernel;
} kernel_case;

// Set by every case: the buffers of the emulator.
typedef struct kernel_want {
    qg_storage_shape shape;
    uint8_t *codes, *scales;
    float tensor;
} kernel_want;

static inline void kernel_case_text(const kernel_case *c, int way, char text[KERNEL_CASE_TEXT]) {
    char element[QG_NAME_SIZE], layout[QG_NAME_SIZE], rule[QG_NAME_SIZE], rounding[QG_NAME_SIZE];
    char type[QG_NAME_SIZE];
    qg_format_name(c->recipe.element, element);
    qg_layout_name(c->recipe.layout, layout);
    qg_rule_name(c->recipe.rule, c->recipe.fixed_scale, rule);
    qg_rounding_name(c->recipe.conversion.rounding, rounding);
    qg_format_name(c->type, type);
    snprintf(text, KERNEL_CASE_TEXT,
             "%s %s %s %s structure %d from %s%s, %lld x %lld, %s, order %d, data %d, shift %lld, "
             "way %d",
             element, layout, rule, rounding, c->recipe.structure, type, c->has_up ? " silu" : "",
             (long long)c->m, (long long)c->k, c->storage.packed ? "packed" : "unpacked",
             (int)c->storage.order.kind, c->kind, (long long)c->shift, way);
}

static inline int64_t kernel_type_bytes(qg_format type) { return type == QG_FORMAT_FP32 ? 4 : 2; }

static inline float kernel_element(qg_format type, const void *x, int64_t i) {
    if (type == QG_FORMAT_FP32)
        return ((const float *)x)[i];
    uint16_t bits = ((const uint16_t *)x)[i];
    return type == QG_FORMAT_BF16 ? qg_float_of_bf16(bits) : qg_float_of_fp16(bits);
}

static inline void *kernel_data(const kernel_case *c, uint64_t seed) {
    int64_t count = c->m * c->k;
    float *x = kernel_host(4 * count);
    block_data_fill(seed, c->kind, x, count);
    if (c->type != QG_FORMAT_FP32)
        cpu_check_narrow(c->type, x, count, (uint16_t *)(void *)x);
    return x;
}

static const float kernel_history[] = {2.5f, 0.0f, 7.0f};

static inline kernel_want kernel_wanted(const kernel_case *c, const void *x, const void *up,
                                        const char *text) {
    kernel_want w = {0};
    qg_quantize_options options = {.input_type = c->has_up ? (qg_format)QG_FORMAT_BF16 : c->type,
                                   .seed = c->seed,
                                   .stream = QG_STREAM_ROUNDING,
                                   .threads = 1,
                                   .amax_history = kernel_history,
                                   .history_length = 3};
    int64_t count = c->m * c->k;
    float *wide = kernel_host(4 * count);
    for (int64_t i = 0; i < count; i++) {
        wide[i] = kernel_element(c->type, x, i);
        if (c->has_up)
            wide[i] = qg_silu_times_up(wide[i], kernel_element(c->type, up, i));
    }
    REQUIRE(qg_storage_shape_of(&c->recipe, &c->storage, c->m, c->k, &w.shape) == QG_OK, "%s: %s",
            text, qg_detail());
    const qg_shape *shape = &w.shape.shape;
    uint8_t *codes = kernel_host(shape->codes_size), *scales = kernel_host(shape->scales_size);
    REQUIRE(qg_emulator_quantize(&c->recipe, &options, c->m, c->k, wide, codes, scales, &w.tensor,
                                 NULL) == QG_OK,
            "%s: %s", text, qg_detail());
    int bits = qg_format_describe(c->recipe.element).bits;
    w.codes = codes;
    if (c->storage.packed && (bits == 4 || bits == 6)) {
        w.codes = kernel_host(w.shape.codes_size);
        for (int64_t row = 0; row < shape->planes * c->m; row++)
            (bits == 4 ? qg_pack4 : qg_pack6)(codes + row * c->k, c->k,
                                              w.codes + row * w.shape.row_bytes);
        free(codes);
    }
    w.scales = kernel_host(w.shape.scales_size);
    qg_scale_order_store(c->storage.order, shape->blocks.block_rows, shape->blocks.block_columns,
                         shape->scale_bytes, scales, w.scales);
    free(scales);
    free(wide);
    return w;
}

static inline kernel_buffer kernel_upload(const kernel_case *c, const void *x) {
    qg_cuda_error error;
    int64_t bytes = c->m * c->k * kernel_type_bytes(c->type);
    kernel_buffer b = kernel_buffer_of(bytes, c->shift * kernel_type_bytes(c->type));
    kernel_check(kernel_module()->copy_in(b.at, x, bytes, &error), &error, "copy_in");
    return b;
}

static inline void kernel_compare_stored(const char *what, const kernel_buffer *b, const void *want,
                                         const char *text) {
    qg_cuda_error error;
    uint8_t *got = kernel_host(b->size);
    kernel_check(kernel_module()->copy_out(got, b->at, b->size, &error), &error, text);
    kernel_compare(what, got, want, b->size, text);
    free(got);
}

// Quantizes on the device in one way; `name`: the kernel that must run, or NULL for any.
static inline void kernel_run(const kernel_case *c, const void *x, const void *up,
                              const kernel_want *want, int way, const char *name) {
    const qg_cuda_module *module = kernel_module();
    char text[KERNEL_CASE_TEXT];
    qg_cuda_error error;
    kernel_case_text(c, way, text);
    kernel_way(way);
    qg_cuda_quantize q = {.recipe = c->recipe,
                          .input_type = c->type,
                          .kernel = c->group_kernel,
                          .packed = c->storage.packed,
                          .order = c->storage.order,
                          .m = c->m,
                          .k = c->k,
                          .seed = c->seed,
                          .stream = QG_STREAM_ROUNDING,
                          .history_amax = 7.0f};
    if (name)
        REQUIRE(strcmp(module->quantize_name(&q), name) == 0, "%s: runs %s", text,
                module->quantize_name(&q));
    kernel_buffer gate = kernel_upload(c, x), times = {0};
    if (c->has_up)
        times = kernel_upload(c, up);
    q.up = times.at;
    kernel_buffer codes = kernel_buffer_of(want->shape.codes_size, c->shift);
    kernel_buffer scales = kernel_buffer_of(want->shape.scales_size, 0);
    kernel_buffer tensor = kernel_buffer_of(4, 0);
    kernel_buffer scratch = kernel_buffer_of(module->quantize_scratch(&q), 0);
    q.x = gate.at;
    q.codes = codes.at;
    q.scales = scales.at;
    q.tensor_scale = (float *)(void *)tensor.at;
    q.scratch = scratch.at;
    kernel_check(module->quantize(&q, &error), &error, text);
    kernel_compare_stored("scales", &scales, want->scales, text);
    kernel_compare_stored("codes", &codes, want->codes, text);
    if (want->shape.shape.has_tensor_scale)
        kernel_compare_stored("tensor scale", &tensor, &want->tensor, text);
    kernel_compare_stored("the input", &gate, x, text);
    kernel_buffer_free(&gate, text);
    if (c->has_up)
        kernel_buffer_free(&times, text);
    kernel_buffer_free(&codes, text);
    kernel_buffer_free(&scales, text);
    kernel_buffer_free(&tensor, text);
    kernel_buffer_free(&scratch, text);
}

// In `ways` ways, beginning with way `first`.
static inline void kernel_case_check(const kernel_case *c, int first, int ways, const char *name) {
    char text[KERNEL_CASE_TEXT];
    kernel_case_text(c, first, text);
    void *x = kernel_data(c, c->seed), *up = kernel_data(c, c->seed + 1);
    kernel_want want = kernel_wanted(c, x, up, text);
    for (int way = first; way < first + ways; way++)
        kernel_run(c, x, up, &want, way, name);
    free(want.codes);
    free(want.scales);
    free(x);
    free(up);
}

static inline qg_recipe kernel_recipe(const char *name, const char *layout, int rule) {
    qg_recipe recipe;
    REQUIRE(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    if (layout)
        REQUIRE(qg_layout_parse(layout, &recipe.layout) == QG_OK, "%s", qg_detail());
    if (rule >= 0)
        REQUIRE(qg_recipe_set_rule(&recipe, rule, 0.75f) == QG_OK, "%s", qg_detail());
    return recipe;
}

#endif
