// See cpu_check.h.
#include <block_data.h>
#include <cpu_check.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, POISON = 0xA5, TEXT = 1024 };

const char *cpu_check_isa(size_t i) {
    static const char *const names[] = {"scalar", "avx2", "avx512"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        if (qg_cpu_use_isa(names[n]) == QG_OK && i-- == 0)
            return names[n];
    return NULL;
}

// ---------------------------------------------------------------------------------------- buffers

typedef struct result {
    uint8_t *codes, *scales; // with guards before and after
    float *q, tensor;
    int64_t codes_size, scales_size, q_size;
} result;

static uint8_t *poisoned(int64_t size, int shift) {
    uint8_t *p = malloc((size_t)(size + 3 * GUARD));
    REQUIRE(p != NULL, "no memory");
    memset(p, POISON, (size_t)(size + 3 * GUARD));
    return p + GUARD + shift;
}

static void check_guards(const uint8_t *p, int64_t size, int shift, const char *what,
                         const char *text) {
    for (int64_t i = -GUARD - shift; i < size + GUARD; i++) {
        if (i == 0)
            i = size;
        REQUIRE(p[i] == POISON, "%s: byte %lld of %s is written", text, (long long)i, what);
    }
}

static result result_of(const qg_storage_shape *shape, int shift) {
    int64_t elements = shape->shape.blocks.m * shape->shape.blocks.k;
    result r = {.codes_size = shape->codes_size, .scales_size = shape->scales_size};
    r.q_size = 4 * elements;
    r.codes = poisoned(r.codes_size, shift);
    r.scales = poisoned(r.scales_size, shift);
    r.q = (float *)(void *)poisoned(r.q_size, shift / 4 * 4);
    return r;
}

static void result_free(result *r, int shift) {
    free(r->codes - GUARD - shift);
    free(r->scales - GUARD - shift);
    free((uint8_t *)r->q - GUARD - shift / 4 * 4);
}

// ------------------------------------------------------------------------------------------ a case

static void describe(const cpu_case *c, char text[TEXT]) {
    static const char *const orders[] = {"row_major", "k_major", "128x4", "8x4", "block128"};
    char element[QG_NAME_SIZE], layout[QG_NAME_SIZE], rule[QG_NAME_SIZE], rounding[QG_NAME_SIZE];
    char type[QG_NAME_SIZE];
    const qg_recipe *r = &c->recipe;
    qg_format_name(r->element, element);
    qg_layout_name(r->layout, layout);
    qg_rule_name(r->rule, r->fixed_scale, rule);
    qg_rounding_name(r->conversion.rounding, rounding);
    qg_format_name(c->options.input_type, type);
    snprintf(text, TEXT,
             "%s %s %s %s structure %d overflow %d nan %d amax %d zero %d nan %d inf %d element %d "
             "eps %d %g min %g from %s %lldx%lld %s %s",
             element, layout, rule, rounding, r->structure, r->conversion.overflow,
             r->conversion.nan, r->amax, r->zero_scale, r->nan_scale, r->inf_scale, r->nan_element,
             r->eps_on, (double)r->eps, (double)r->block_scale_min, type, (long long)c->m,
             (long long)c->k, orders[c->storage.order.kind], c->storage.packed ? "packed" : "");
}

static void check_bytes(const char *what, const void *got, const void *want, int64_t size,
                        const char *text) {
    const uint8_t *g = got, *w = want;
    for (int64_t i = 0; i < size; i++)
        REQUIRE(g[i] == w[i], "%s: %s, byte %lld is %02x, not %02x", text, what, (long long)i, g[i],
                w[i]);
}

static void run(const qg_backend *backend, const cpu_case *c, int threads, const result *in,
                result *out, const char *text) {
    qg_quantize_options options = c->options;
    options.threads = threads;
    qg_status status = backend->quantize(&c->recipe, &options, &c->storage, c->m, c->k, c->x,
                                         out->codes, out->scales, &out->tensor, NULL);
    REQUIRE(status == QG_OK, "%s: quantize: %s", text, qg_detail());
    const result *from = in ? in : out;
    status = backend->dequantize(&c->recipe, &c->storage, c->m, c->k, from->codes, from->scales,
                                 from->tensor, threads, out->q, NULL);
    REQUIRE(status == QG_OK, "%s: dequantize: %s", text, qg_detail());
}

static void check_variant(const cpu_case *c, const qg_storage_shape *shape, const result *want,
                          const char *isa, int threads, int shift, const char *text) {
    char what[TEXT + 64];
    snprintf(what, sizeof what, "%s, %s, %d threads", text, isa, threads);
    result got = result_of(shape, shift);
    ck_assert_int_eq(qg_cpu_use_isa(isa), QG_OK);
    run(qg_backend_find("cpu"), c, threads, want, &got, what);
    check_bytes("scales", got.scales, want->scales, got.scales_size, what);
    check_bytes("codes", got.codes, want->codes, got.codes_size, what);
    if (shape->shape.has_tensor_scale)
        check_bytes("tensor scale", &got.tensor, &want->tensor, sizeof got.tensor, what);
    check_bytes("values", got.q, want->q, got.q_size, what);
    check_guards(got.codes, got.codes_size, shift, "codes", what);
    check_guards(got.scales, got.scales_size, shift, "scales", what);
    check_guards((uint8_t *)got.q, got.q_size, shift / 4 * 4, "values", what);
    result_free(&got, shift);
}

void cpu_check(const cpu_case *c, const char *isa, const int *threads, size_t thread_counts) {
    char text[TEXT];
    qg_storage_shape shape;
    describe(c, text);
    REQUIRE(qg_storage_shape_of(&c->recipe, &c->storage, c->m, c->k, &shape) == QG_OK, "%s: %s",
            text, qg_detail());
    result want = result_of(&shape, 0);
    run(qg_backend_find("emulator"), c, 0, NULL, &want, text);
    for (size_t i = 0; cpu_check_isa(i); i++) {
        if (isa && strcmp(isa, cpu_check_isa(i)) != 0)
            continue;
        for (size_t t = 0; t < thread_counts; t++)
            check_variant(c, &shape, &want, cpu_check_isa(i), threads[t], (int)(c->k % 8), text);
    }
    result_free(&want, 0);
    ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
}

// ------------------------------------------------------------------------------------- random ones

void cpu_check_narrow(qg_format type, const float *x, int64_t count, uint16_t *out) {
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = qg_bits_of_float(x[i]);
        int exponent = (int)(bits >> 23 & 255) - 112;
        if (type == QG_FORMAT_BF16)
            out[i] = (uint16_t)(bits >> 16);
        else if (exponent <= 0 || exponent >= 31)
            out[i] = (uint16_t)((bits >> 16 & 0x8000) | (exponent >= 31 ? 0x7c00 : 0) |
                                (bits >> 13 & 0x3ff));
        else
            out[i] =
                (uint16_t)((bits >> 16 & 0x8000) | (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff));
    }
}

static uint32_t pick(uint64_t *state, uint32_t count) {
    return (uint32_t)(block_data_random(state) >> 33) % count;
}

static bool draw_element(uint64_t *state, qg_recipe *recipe) {
    static const char *const frequent[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1",
                                           "int8", "int6", "int4", "e4m3"};
    static const char *const odd[] = {"f8e7m0",    "f8e1m6",    "f5e2m2", "f3e1m1",
                                      "f8e4m3b80", "int8_full", "bf16",   "fp16"};
    size_t listed = 0;
    while (qg_format_listed(listed))
        listed++;
    const char *name;
    switch (pick(state, 3)) {
    case 0: name = frequent[pick(state, 9)]; break;
    case 1: name = pick(state, 4) ? frequent[pick(state, 9)] : odd[pick(state, 8)]; break;
    default: name = qg_format_listed(pick(state, (uint32_t)listed));
    }
    return qg_recipe_find(name, recipe) == QG_OK;
}

static bool draw_recipe(uint64_t *state, qg_recipe *recipe) {
    static const char *const layouts[] = {
        "per_tensor",    "per_row", "group:32", "group:16",  "group:128", "block:16x16",
        "block:128x128", "group:5", "group:64", "block:3x7", "group:1",   "block:2x32"};
    static const float fixed[] = {1.0f, 0.75f, 0x1p-3f, 0x1p-140f, 3e38f, 0x1p100f, 1.5e-45f};
    if (pick(state, 3) == 0) {
        size_t listed = 0;
        while (qg_recipe_listed(listed))
            listed++;
        return qg_recipe_find(qg_recipe_listed(pick(state, (uint32_t)listed)), recipe) == QG_OK;
    }
    if (!draw_element(state, recipe) ||
        qg_layout_parse(layouts[pick(state, 12)], &recipe->layout) != QG_OK)
        return false;
    return qg_recipe_set_rule(recipe, (int)pick(state, QG_RULE_COUNT), fixed[pick(state, 7)]) ==
           QG_OK;
}

static void draw_policies(uint64_t *state, qg_recipe *r) {
    static const float eps[] = {1e-12f, 1e-3f, 0.3f, 0x1p-130f, 1e30f};
    r->conversion.overflow = (uint8_t)pick(state, 2);
    r->conversion.nan = (uint8_t)pick(state, 2);
    r->amax = (uint8_t)pick(state, 3);
    r->zero_scale = (uint8_t)pick(state, 5);
    r->nan_scale = (uint8_t)pick(state, 5);
    r->inf_scale = (uint8_t)pick(state, 5);
    r->nan_element = (uint8_t)pick(state, 3);
    r->huge_inverse = (uint8_t)pick(state, 2);
    r->eps_on = (uint8_t)pick(state, 3);
    r->eps = r->eps_on ? eps[pick(state, 5)] : 0.0f;
    r->block_scale_min = pick(state, 2) ? 0x1p-6f : 0.0f;
}

static void draw_storage(uint64_t *state, const qg_recipe *recipe, qg_storage *storage) {
    static const int32_t paddings[] = {16, 1, 4};
    storage->packed = pick(state, 2) != 0;
    storage->order.kind =
        recipe->structure == QG_STRUCTURE_PLAIN ? (int32_t)pick(state, 5) : QG_ORDER_ROW_MAJOR;
    storage->order.padding = paddings[pick(state, 3)];
}

bool cpu_check_draw(uint64_t *state, int64_t most, float *room, cpu_case *out) {
    static const float history[] = {2.5f, 0.0f, 7.0f};
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    cpu_case c = {0};
    if (!draw_recipe(state, &c.recipe))
        return false;
    if (pick(state, 2))
        draw_policies(state, &c.recipe);
    c.recipe.conversion.rounding.mode = pick(state, 2) ? (uint8_t)pick(state, QG_ROUND_COUNT) : 0;
    if (qg_rounding_is_stochastic(c.recipe.conversion.rounding))
        c.recipe.conversion.rounding.bits = (uint8_t)(1 + pick(state, 32));
    c.k = 1 + pick(state, pick(state, 2) ? 300 : 70);
    if (pick(state, 4) == 0)
        c.k = 32 * (1 + pick(state, 8));
    c.m = 1 + pick(state, pick(state, 2) ? 12 : 70);
    if (pick(state, 16) == 0 && most >= 5000) {
        c.m = 1;
        c.k = 1 + pick(state, 5000);
    }
    c.m = c.m * c.k > most ? most / c.k : c.m;
    c.m = c.m > 0 ? c.m : 1;
    c.k = c.k > most ? most : c.k;
    draw_storage(state, &c.recipe, &c.storage);
    if (qg_recipe_check(&c.recipe) != QG_OK)
        return false;
    c.options = (qg_quantize_options){.input_type = types[pick(state, 3)],
                                      .seed = block_data_random(state),
                                      .stream = QG_STREAM_ROUNDING,
                                      .amax_history = history,
                                      .history_length = 3};
    int kind = (int)pick(state, BLOCK_DATA_KINDS);
    block_data_fill(block_data_random(state), kind, room, c.m * c.k);
    if (c.options.input_type != QG_FORMAT_FP32)
        cpu_check_narrow(c.options.input_type, room, c.m * c.k, (uint16_t *)(void *)room);
    c.x = room;
    *out = c;
    return true;
}
