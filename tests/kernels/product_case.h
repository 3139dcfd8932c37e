// A product of random operands through the library in cuBLASLt's place, and what it should be.
#ifndef PRODUCT_CASE_H
#define PRODUCT_CASE_H

#include <fake_cublaslt.h>
#include <product.h>
#include <product_capability.h>
#include <qg_block_scale.h>
#include <qg_pack.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------- the library

static inline const char *fake_path(void) {
    static char path[4096];
    const char *build = getenv("QG_BUILD_DIR");
    snprintf(path, sizeof path, "%s/tests/bin/fake_cublaslt.so", build ? build : "build/ci");
    return path;
}

static inline void *fake_symbol(const char *name) {
    void *object = dlopen(fake_path(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(object, "%s", dlerror());
    void *symbol = dlsym(object, name);
    REQUIRE(symbol, "%s", dlerror());
    return symbol;
}

static inline const fake_cublaslt_call *fake_last(void) {
    fake_cublaslt_last_function f;
    void *symbol = fake_symbol("fake_cublaslt_last");
    memcpy(&f, &symbol, sizeof f);
    return f();
}

static inline int fake_live(void) {
    fake_cublaslt_live_function f;
    void *symbol = fake_symbol("fake_cublaslt_live");
    memcpy(&f, &symbol, sizeof f);
    return f();
}

static inline int fake_handles(void) {
    fake_cublaslt_handles_function f;
    void *symbol = fake_symbol("fake_cublaslt_handles");
    memcpy(&f, &symbol, sizeof f);
    return f();
}

static inline void fake_fail(const char *what) {
    fake_cublaslt_fail_function f;
    void *symbol = fake_symbol("fake_cublaslt_fail");
    memcpy(&f, &symbol, sizeof f);
    f(what);
}

static inline qg_cuda_device open_as(int32_t architecture, const char *library) {
    qg_cuda_device device;
    memset(&device, 0, sizeof device);
    device.architecture = architecture;
    setenv("QG_CUBLASLT", library, 1);
    product_open(&device);
    return device;
}

static inline void open_fake(int32_t architecture) {
    qg_cuda_device device = open_as(architecture, fake_path());
    REQUIRE(device.cublaslt == 130100, "%s", device.cublaslt_missing);
    REQUIRE(device.cublaslt_missing[0] == 0, "%s", device.cublaslt_missing);
    fake_fail("");
}

// ---------------------------------------------------------------------------------------- operands

// "e5m2 group:128": an element format or recipe, then perhaps a layout.
static inline qg_recipe recipe_of(const char *text) {
    qg_recipe recipe;
    char name[64], layout[32] = "";
    int rows = 0, columns = 0;
    REQUIRE(sscanf(text, "%63s %31s", name, layout) >= 1, "%s", text);
    REQUIRE(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    if (strcmp(layout, "per_row") == 0)
        recipe.layout = (qg_layout){QG_LAYOUT_PER_ROW, 0, 0};
    else if (sscanf(layout, "group:%d", &columns) == 1)
        recipe.layout = (qg_layout){QG_LAYOUT_GROUP, 0, columns};
    else if (sscanf(layout, "block:%dx%d", &rows, &columns) == 2)
        recipe.layout = (qg_layout){QG_LAYOUT_BLOCK, rows, columns};
    return recipe;
}

// 256-byte aligned, of exactly so many bytes, so that what is read beyond is reported.
static inline void *memory_of(int64_t bytes) {
    void *memory = NULL;
    REQUIRE(posix_memalign(&memory, 256, bytes > 0 ? (size_t)bytes : 1) == 0, "memory");
    memset(memory, 0xcc, bytes > 0 ? (size_t)bytes : 1);
    return memory;
}

typedef struct case_operand {
    qg_cuda_operand operand;
    double *values; // (rows, k), decoded
} case_operand;

// Codes that are numbers, of moderate size: sums stay within every output's range.
static inline uint8_t random_code(qg_format format, uint32_t word) {
    uint32_t sign = word >> 31;
    word &= 0x7fffffff;
    switch (format) {
    case QG_FORMAT_E4M3: return (uint8_t)(word % 0x50 | sign << 7);
    case QG_FORMAT_E5M2: return (uint8_t)(word % 0x48 | sign << 7);
    default: return (uint8_t)(word % 8 | sign << 3);
    }
}

// All scales of an operand differ by more than a rounding.
static inline uint32_t random_scale(qg_format format, uint32_t word) {
    switch (format) {
    case QG_FORMAT_E8M0: return 122 + word % 8;
    case QG_FORMAT_UE4M3: return 0x28 + word % 0x20;
    default: return qg_bits_of_float(0.25f + (float)(word % 4096) / 4096.0f);
    }
}

static inline case_operand operand_of(const qg_recipe *recipe, int64_t rows, int64_t k,
                                      uint64_t seed) {
    const qg_format_info info = qg_format_describe(recipe->element);
    const qg_element element = qg_element_of(recipe->element);
    const qg_format scale = qg_rule_scale_format(recipe->rule);
    const qg_blocks blocks = qg_layout_apply(recipe->layout, rows, k);
    const int bytes = scale == QG_FORMAT_FP32 ? 4 : 1;
    const int64_t count = blocks.block_rows * blocks.block_columns;
    const qg_scale_order order = product_order(recipe);
    uint8_t *codes = memory_of(rows * k), *logical = memory_of(count * bytes), *stored;
    case_operand o;
    o.operand.recipe = *recipe;
    o.operand.tensor_scale = qg_rule_has_tensor_scale(recipe->rule) ? 3.3f + (float)seed : 1.0f;
    o.values = memory_of(rows * k * (int64_t)sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = random_scale(scale, qg_philox_word(seed, 1, (uint64_t)i));
        memcpy(logical + i * bytes, &bits, (size_t)bytes);
    }
    for (int64_t i = 0; i < rows * k; i++) {
        uint32_t bits = 0;
        codes[i] = random_code(recipe->element, qg_philox_word(seed, 2, (uint64_t)i));
        memcpy(&bits, logical + qg_scale_index(&blocks, i / k, i % k) * bytes, (size_t)bytes);
        o.values[i] = qg_decode(&info, codes[i]) *
                      (double)qg_scale_value(recipe, &element, o.operand.tensor_scale, bits);
    }
    stored = memory_of(qg_scale_order_size(order, blocks.block_rows, blocks.block_columns) * bytes);
    qg_scale_order_store(order, blocks.block_rows, blocks.block_columns, bytes, logical, stored);
    free(logical);
    if (info.bits == 4) {
        uint8_t *packed = memory_of(rows * k / 2);
        qg_pack4(codes, rows * k, packed);
        free(codes);
        codes = packed;
    }
    o.operand.codes = codes;
    o.operand.scales = stored;
    return o;
}

static inline void free_operand(case_operand *o) {
    free((void *)(uintptr_t)o->operand.codes);
    free((void *)(uintptr_t)o->operand.scales);
    free(o->values);
}

// ------------------------------------------------------------------------------------------ a case

typedef struct product_case {
    case_operand a, b;
    qg_cuda_product p;
    float *bias, *out_scale;
    void *c;
} product_case;

enum { CASE_BIAS = 1, CASE_C = 2, CASE_OUT_SCALE = 4, CASE_WORKSPACE = 1 << 16, CASE_GUARD = 64 };

static inline int case_bytes(qg_format format) {
    const qg_format_info info = qg_format_describe(format);
    return qg_format_code_bytes(&info);
}

// c is of the output's type, of bf16 for FP8.
static inline qg_format addend_format(qg_format out) {
    return case_bytes(out) == 1 ? QG_FORMAT_BF16 : out;
}

static inline void store_value(qg_format format, void *memory, int64_t i, double x) {
    const qg_format_info info = qg_format_describe(format);
    const qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    uint64_t code = qg_encode(&info, x, &conversion, 0);
    memcpy((char *)memory + i * case_bytes(format), &code, (size_t)case_bytes(format));
}

static inline double load_value(qg_format format, const void *memory, int64_t i) {
    const qg_format_info info = qg_format_describe(format);
    uint64_t code = 0;
    memcpy(&code, (const char *)memory + i * case_bytes(format), (size_t)case_bytes(format));
    return qg_decode(&info, code);
}

static inline product_case case_of(const char *a, const char *b, int64_t m, int64_t n, int64_t k,
                                   qg_format out, int parts) {
    const qg_recipe recipe_a = recipe_of(a), recipe_b = recipe_of(b);
    product_case c;
    memset(&c, 0, sizeof c);
    c.a = operand_of(&recipe_a, m, k, 1);
    c.b = operand_of(&recipe_b, n, k, 2);
    c.p.m = m;
    c.p.n = n;
    c.p.k = k;
    c.p.a = c.a.operand;
    c.p.b = c.b.operand;
    c.p.out_type = out;
    c.p.out = memory_of(m * n * case_bytes(out) + CASE_GUARD);
    c.p.workspace = memory_of(CASE_WORKSPACE);
    c.p.workspace_bytes = CASE_WORKSPACE;
    if (parts & CASE_BIAS) {
        c.p.bias = c.bias = memory_of(n * 4);
        for (int64_t j = 0; j < n; j++)
            c.bias[j] = 10.0f * (float)sin((double)j + 0.3);
    }
    if (parts & CASE_C) {
        c.p.c = c.c = memory_of(m * n * case_bytes(addend_format(out)));
        for (int64_t i = 0; i < m * n; i++)
            store_value(addend_format(out), c.c, i, 20 * cos((double)i));
    }
    if (parts & CASE_OUT_SCALE) {
        c.p.out_scale = c.out_scale = memory_of(4);
        *c.out_scale = 0.37f;
    }
    return c;
}

// What follows out is as it was.
static inline void check_guard(const product_case *c) {
    const uint8_t *end = (uint8_t *)c->p.out + c->p.m * c->p.n * case_bytes(c->p.out_type);
    for (int i = 0; i < CASE_GUARD; i++)
        REQUIRE(end[i] == 0xcc, "%d bytes beyond out were written", i + 1);
}

static inline void free_case(product_case *c) {
    free_operand(&c->a);
    free_operand(&c->b);
    free(c->bias);
    free(c->out_scale);
    free(c->c);
    free(c->p.out);
    free(c->p.workspace);
}

#endif
