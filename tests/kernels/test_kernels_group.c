// The kernels of 1xG groups, run by the shim, give the emulator's bytes: codes,
// packed or not, with the padding of rows, and scales in any order with theirs;
// nothing around them is written. m01 .. m03 are named after Metrale's rules
// for its two quantizers.
#include <block_data.h>
#include <cpu_check.h>
#include <qg_cuda_module.h>
#include <qg_emulator.h>
#include <qg_pack.h>
#include <qg_partition.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <qg_silu.h>
#include <require.h>
#include <run_suite.h>
#include <shim_control.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 14, GUARD = 256, SLACK = 64, POISON = 0xa5 };

static const float HISTORY = 2.5f;

static const qg_format TYPES[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};

typedef struct group_case {
    qg_recipe recipe;
    int kernel;
    qg_format type;
    int64_t m, k;
    const float *x, *up; // before they are narrowed to the type
    bool packed;
    qg_scale_order order;
    int offset_x, offset_up, offset_codes; // from a multiple of 256: elements, elements, bytes
} group_case;

typedef struct output {
    int64_t codes_size, scales_size;
    uint8_t codes[8 * MOST + SLACK], scales[8 * MOST];
    float tensor_scale;
} output;

const qg_cuda_module *quantgauge_cuda_module(void); // of the shim library

static const qg_cuda_module *module;
static float room[MOST], room_up[MOST];
static output expected, got;
static int64_t cases;

static void open_module(void) {
    static qg_cuda_device device;
    qg_cuda_error error;
    qg_shim_reset();
    setenv("QG_CUBLASLT", "none", 1); // not needed, and it keeps memory
    module = quantgauge_cuda_module();
    REQUIRE(module->open(&device, &error) == QG_CUDA_ABSENT_NONE, "%s", error.text);
}

// ----------------------------------------------------------------------------------------
// expected

static int element_bytes(qg_format type) { return type == QG_FORMAT_FP32 ? 4 : 2; }

static void narrow(qg_format type, const float *x, int64_t count, void *out) {
    if (type == QG_FORMAT_FP32)
        memcpy(out, x, (size_t)count * sizeof *x);
    else
        cpu_check_narrow(type, x, count, out);
}

static void widen(qg_format type, const void *x, int64_t count, float *out) {
    const uint16_t *bits = x;
    for (int64_t i = 0; i < count; i++)
        out[i] = type == QG_FORMAT_FP32   ? ((const float *)x)[i]
                 : type == QG_FORMAT_BF16 ? qg_float_of_bf16(bits[i])
                                          : qg_float_of_fp16(bits[i]);
}

// What is quantized, widened.
static void elements_of(const group_case *c, float *x) {
    static float gate[MOST], up[MOST];
    static float bits[MOST];
    int64_t count = c->m * c->k;
    narrow(c->type, c->x, count, bits);
    widen(c->type, bits, count, gate);
    if (c->up) {
        narrow(c->type, c->up, count, bits);
        widen(c->type, bits, count, up);
    }
    for (int64_t i = 0; i < count; i++)
        x[i] = c->up ? qg_silu_times_up(gate[i], up[i]) : gate[i];
}

static int64_t row_bytes_of(const group_case *c, const qg_shape *shape) {
    int bits = qg_format_describe(c->recipe.element).bits;
    return c->packed && (bits == 4 || bits == 6) ? qg_packed_bytes(bits, c->k)
                                                 : c->k * shape->code_bytes;
}

static void store_rows(const group_case *c, const qg_shape *shape, const uint8_t *logical,
                       uint8_t *stored) {
    int bits = qg_format_describe(c->recipe.element).bits;
    int64_t row_bytes = row_bytes_of(c, shape);
    for (int64_t row = 0; row < c->m; row++) {
        const uint8_t *from = logical + row * c->k * shape->code_bytes;
        uint8_t *to = stored + row * row_bytes;
        if (c->packed && bits == 4)
            qg_pack4(from, c->k, to);
        else if (c->packed && bits == 6)
            qg_pack6(from, c->k, to);
        else
            memcpy(to, from, (size_t)row_bytes);
    }
}

static qg_quantize_options options_of(const group_case *c) {
    return (qg_quantize_options){.input_type = c->type,
                                 .seed = 42,
                                 .stream = QG_STREAM_ROUNDING,
                                 .threads = 1,
                                 .amax_history = &HISTORY,
                                 .history_length = 1};
}

static void expect(const group_case *c, output *out) {
    static float x[MOST];
    static uint8_t codes[8 * MOST], scales[8 * MOST];
    qg_shape shape;
    qg_quantize_options options = options_of(c);
    ck_assert_int_eq(qg_shape_of(&c->recipe, c->m, c->k, &shape), QG_OK);
    elements_of(c, x);
    ck_assert_int_eq(qg_emulator_quantize(&c->recipe, &options, c->m, c->k, x, codes, scales,
                                          &out->tensor_scale, NULL),
                     QG_OK);
    out->codes_size = c->m * row_bytes_of(c, &shape);
    out->scales_size = shape.scale_bytes * qg_scale_order_size(c->order, shape.blocks.block_rows,
                                                               shape.blocks.block_columns);
    store_rows(c, &shape, codes, out->codes);
    qg_scale_order_store(c->order, shape.blocks.block_rows, shape.blocks.block_columns,
                         shape.scale_bytes, scales, out->scales);
}

// ---------------------------------------------------------------------------------------------
// got

// Device memory of `bytes` bytes with guards around it, all poison.
static uint8_t *guarded(int64_t bytes, int64_t offset) {
    void *block;
    qg_cuda_error error;
    int64_t all = 2 * GUARD + SLACK + bytes;
    REQUIRE(module->allocate(all, &block, &error) == QG_OK, "%s", error.text);
    ck_assert_int_eq(module->fill(block, POISON, all, &error), QG_OK);
    return (uint8_t *)block + GUARD + offset;
}

// Copies the bytes out, frees, and says whether the guards stayed.
static bool take(uint8_t *place, int64_t bytes, int64_t offset, uint8_t *out) {
    uint8_t *block = place - GUARD - offset;
    bool intact = true;
    for (int64_t i = 0; i < 2 * GUARD + SLACK + bytes; i++) {
        bool inside = i >= GUARD + offset && i < GUARD + offset + bytes;
        intact = intact && (inside || block[i] == POISON);
    }
    memcpy(out, place, (size_t)bytes);
    module->release(block);
    return intact;
}

static void *device_tensor(const group_case *c, const float *x, int64_t offset) {
    void *place = guarded((c->m * c->k) * element_bytes(c->type), offset * element_bytes(c->type));
    narrow(c->type, x, c->m * c->k, place);
    return place;
}

static void release_tensor(const group_case *c, const void *place, int64_t offset) {
    module->release((uint8_t *)(uintptr_t)place - GUARD - offset * element_bytes(c->type));
}

static const char *name_of(const group_case *c) {
    static char text[300];
    char element[QG_NAME_SIZE], layout[QG_LAYOUT_NAME_SIZE], rule[QG_NAME_SIZE];
    qg_format_name(c->recipe.element, element);
    qg_layout_name(c->recipe.layout, layout);
    qg_rule_name(c->recipe.rule, c->recipe.fixed_scale, rule);
    snprintf(text, sizeof text,
             "kernel %d, type %u, %s %s %s, rounding %d/%d, (%lld, %lld), gated "
             "%d, packed %d, "
             "order %d, offsets %d %d %d",
             c->kernel, c->type, element, layout, rule, c->recipe.conversion.rounding.mode,
             c->recipe.conversion.rounding.bits, (long long)c->m, (long long)c->k, c->up != NULL,
             c->packed, c->order.kind, c->offset_x, c->offset_up, c->offset_codes);
    return text;
}

// Runs the kernel into `out`, of the sizes set there.
static void run(const group_case *c, output *out) {
    qg_cuda_error error = {""};
    qg_cuda_quantize q = {.recipe = c->recipe,
                          .input_type = c->type,
                          .kernel = c->kernel,
                          .packed = c->packed,
                          .order = c->order,
                          .m = c->m,
                          .k = c->k,
                          .seed = 42,
                          .stream = QG_STREAM_ROUNDING,
                          .history_amax = HISTORY};
    float tensor_scale = 0.0f;
    uint8_t spare[sizeof(float)];
    q.x = device_tensor(c, c->x, c->offset_x);
    q.up = c->up ? device_tensor(c, c->up, c->offset_up) : NULL;
    q.codes = guarded(out->codes_size, c->offset_codes);
    q.scales = guarded(out->scales_size, 0);
    q.tensor_scale = (float *)(void *)guarded(sizeof tensor_scale, 0);
    q.scratch = guarded(module->quantize_scratch(&q), 0);
    ck_assert_str_eq(module->quantize_name(&q), c->kernel ? "group_hopper" : "group_shared");
    REQUIRE(module->quantize(&q, &error) == QG_OK, "%s: %s (%s)", name_of(c), error.text,
            qg_shim_fault(0) ? qg_shim_fault(0) : "");
    memcpy(&out->tensor_scale, q.tensor_scale, sizeof out->tensor_scale);
    bool intact = take(q.codes, out->codes_size, c->offset_codes, out->codes);
    intact = take(q.scales, out->scales_size, 0, out->scales) && intact;
    REQUIRE(intact, "%s: a guard was overwritten", name_of(c));
    ck_assert_int_eq(take((uint8_t *)q.tensor_scale, sizeof(float), 0, spare), true);
    module->release((uint8_t *)q.scratch - GUARD);
    release_tensor(c, q.x, c->offset_x);
    if (q.up)
        release_tensor(c, q.up, c->offset_up);
    REQUIRE(qg_shim_fault_count() == 0, "%s: %s", name_of(c), qg_shim_fault(0));
}

// Where the outputs first differ, "" where nowhere.
static const char *difference(const output *a, const output *b) {
    static char text[100];
    for (int64_t i = 0; i < a->codes_size; i++)
        if (a->codes[i] != b->codes[i]) {
            snprintf(text, sizeof text, "byte %lld of the codes: %02x, expected %02x", (long long)i,
                     b->codes[i], a->codes[i]);
            return text;
        }
    for (int64_t i = 0; i < a->scales_size; i++)
        if (a->scales[i] != b->scales[i]) {
            snprintf(text, sizeof text, "byte %lld of the scales: %02x, expected %02x",
                     (long long)i, b->scales[i], a->scales[i]);
            return text;
        }
    return "";
}

// In an order of threads that changes from case to case, or in all of them.
static void check_in(const group_case *c, int first, int orders) {
    expect(c, &expected);
    got.codes_size = expected.codes_size;
    got.scales_size = expected.scales_size;
    for (int order = first; order < first + orders; order++) {
        qg_shim_set_order((enum qg_shim_order)(order % 3), (uint64_t)cases);
        qg_shim_set_poison(order % 2 ? QG_SHIM_POISON_INF : QG_SHIM_POISON_NAN);
        run(c, &got);
        const char *what = difference(&expected, &got);
        REQUIRE(!*what, "%s: %s", name_of(c), what);
        if (qg_rule_has_tensor_scale(c->recipe.rule))
            ck_assert_int_eq(memcmp(&expected.tensor_scale, &got.tensor_scale, sizeof(float)), 0);
    }
    cases++;
}

static void check(group_case *c) {
    for (c->kernel = 0; c->kernel < QG_GROUP_KERNEL_COUNT; c->kernel++)
        check_in(c, (int)(cases % 3), 1);
}

// -------------------------------------------------------------------------------------------
// cases

static group_case case_of(const char *recipe, int64_t group) {
    group_case c = {.x = room, .type = QG_FORMAT_BF16};
    ck_assert_int_eq(qg_recipe_find(recipe, &c.recipe), QG_OK);
    if (group)
        ck_assert_int_eq(
            qg_recipe_set_layout(&c.recipe, (qg_layout){QG_LAYOUT_GROUP, 0, (int32_t)group}),
            QG_OK);
    return c;
}

static void set_shape(group_case *c, int64_t m, int64_t k, int kind, uint64_t seed) {
    ck_assert_int_le(m * k, MOST);
    c->m = m;
    c->k = k;
    block_data_fill(seed, kind, room, m * k);
}

// The kernels of groups take it: rules that read elements have their own.
static bool is_taken(const qg_recipe *recipe) {
    return recipe->structure == QG_STRUCTURE_PLAIN && recipe->rule != QG_RULE_BEST &&
           recipe->rule != QG_RULE_FOUR_OVER_SIX;
}

START_TEST(every_recipe_agrees) {
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            group_case c = case_of(qg_recipe_listed(i), 0);
            if (!is_taken(&c.recipe) || c.recipe.rule == QG_RULE_DELAYED)
                continue;
            if (c.recipe.layout.kind != QG_LAYOUT_GROUP)
                c = case_of(qg_recipe_listed(i), 128);
            c.type = TYPES[((size_t)kind + i) % 3];
            c.packed = kind % 2 == 0;
            set_shape(&c, 3, kind % 3 ? 150 : 256, kind, i);
            check(&c);
        }
}
END_TEST

START_TEST(every_rule_and_format_agrees) {
    static const char *const elements[] = {"e4m3", "e5m2",   "e2m1",     "e2m3",        "e3m2",
                                           "int8", "mxint6", "e4m3fnuz", "binary8p3ue", "bf16",
                                           "fp16", "tf32",   "fp32",     "int4",        "e3m4"};
    static const int64_t groups[] = {16, 32, 128, 24};
    for (size_t e = 0; e < 15; e++)
        for (int rule = 0; rule < QG_RULE_COUNT; rule++) {
            group_case c = case_of(elements[e], groups[(e + (size_t)rule) % 4]);
            if (rule == QG_RULE_DELAYED || qg_recipe_set_rule(&c.recipe, rule, 0.75f) != QG_OK ||
                !is_taken(&c.recipe))
                continue;
            c.recipe.amax = (uint8_t)(rule % 3);
            c.type = TYPES[(e + (size_t)rule) % 3];
            c.packed = rule % 2;
            set_shape(&c, 2, 130 + rule, rule % BLOCK_DATA_KINDS, e);
            check(&c);
        }
}
END_TEST

// k below, at and above G and its multiples, tiles that are not full, groups of
// every alignment.
START_TEST(every_shape_agrees) {
    static const int64_t groups[] = {1,  2,  3,   4,   5,   7,   16,  31,
                                     32, 33, 100, 128, 200, 257, 512, 1000};
    static const char *const recipes[] = {"mxfp8", "mxfp4", "mxfp6_e2m3", "metrale_act128"};
    for (size_t g = 0; g < 16; g++) {
        int64_t group = groups[g];
        const int64_t widths[] = {1,
                                  group - 1,
                                  group,
                                  group + 1,
                                  2 * group,
                                  2 * group + 7,
                                  9 * group + 3,
                                  17 * group,
                                  3,
                                  8 * group + 16,
                                  40};
        for (size_t w = 0; w < 11; w++)
            for (size_t r = 0; r < 4; r++) {
                group_case c = case_of(recipes[r], group);
                if (widths[w] < 1 || widths[w] > 2100)
                    continue;
                c.type = TYPES[(g + w + r) % 3];
                c.packed = true;
                set_shape(&c, 1 + (int64_t)(w % 5) * (widths[w] < 600), widths[w],
                          w % 4 ? BLOCK_DATA_MIXED : BLOCK_DATA_ORDINARY, g * 16 + w);
                check(&c);
            }
    }
}
END_TEST

// More groups than CTAs along Y hold at once: a CTA walks through tiles.
START_TEST(a_cta_walks_through_tiles) {
    enum { WIDE = 3 * QG_GRID_Y_MOST / 2 };
    static float x[WIDE];
    static uint8_t codes[WIDE], stored[WIDE];
    static uint8_t scales[WIDE];
    block_data_fill(3, BLOCK_DATA_ORDINARY, x, WIDE);
    group_case c = case_of("mxfp8", 1);
    qg_quantize_options options = options_of(&c);
    options.input_type = QG_FORMAT_FP32;
    ck_assert_int_eq(
        qg_emulator_quantize(&c.recipe, &options, 1, WIDE, x, codes, scales, NULL, NULL), QG_OK);
    qg_cuda_error error;
    qg_cuda_quantize q = {.recipe = c.recipe,
                          .input_type = QG_FORMAT_FP32,
                          .kernel = QG_GROUP_KERNEL_SHARED,
                          .m = 1,
                          .k = WIDE,
                          .x = x,
                          .codes = stored};
    uint8_t *stored_scales = guarded(WIDE, 0);
    q.scales = stored_scales;
    q.scratch = guarded(module->quantize_scratch(&q), 0);
    // A few CTAs, the first and the last among them: each has two groups, the
    // last ones none.
    const struct qg_shim_cta some[] = {
        {0, 0,     0},
        {0, 1,     0},
        {0, 777,   0},
        {0, 49151, 0},
        {0, 65534, 0}
    };
    qg_shim_choose_list(some, 5);
    memset(stored, POISON, WIDE);
    REQUIRE(module->quantize(&q, &error) == QG_OK, "%s", error.text);
    qg_shim_choose_all();
    for (int64_t i = 0; i < WIDE; i++) {
        bool is_chosen = i < 4 || i / 2 == 777 || i / 2 == 49151;
        ck_assert_uint_eq(stored[i], is_chosen ? codes[i] : POISON);
        ck_assert_uint_eq(stored_scales[i], is_chosen ? scales[i] : POISON);
    }
    module->release(stored_scales - GUARD);
    module->release((uint8_t *)q.scratch - GUARD);
}
END_TEST

START_TEST(every_rounding_agrees) {
    static const char *const recipes[] = {"mxfp8",  "mxfp8_e5m2", "mxfp6_e3m2", "mxfp4",
                                          "mxint8", "nvfp4",      "bf16",       "fp16",
                                          "int4",   "rlx_mxfp8",  "tf32",       "e4m3_ieee"};
    for (size_t r = 0; r < 12; r++)
        for (uint8_t mode = 0; mode < QG_ROUND_COUNT; mode++)
            for (uint8_t overflow = 0; overflow < 2; overflow++) {
                group_case c = case_of(recipes[r], r < 6 ? 0 : 20);
                c.recipe.conversion.rounding.mode = mode;
                c.recipe.conversion.rounding.bits =
                    mode < QG_ROUND_STOCHASTIC_A ? 0 : (uint8_t)(mode + 3 * r);
                if (mode >= QG_ROUND_STOCHASTIC_A && c.recipe.conversion.rounding.bits > 32)
                    c.recipe.conversion.rounding.bits = 32;
                c.recipe.conversion.overflow = overflow;
                c.type = TYPES[(r + mode) % 3];
                c.packed = mode % 2;
                set_shape(&c, 2, 83, BLOCK_DATA_MIXED, r);
                check(&c);
            }
}
END_TEST

START_TEST(every_scale_order_agrees) {
    static const qg_scale_order orders[] = {
        {QG_ORDER_ROW_MAJOR,       0 },
        {QG_ORDER_K_MAJOR,         16},
        {QG_ORDER_K_MAJOR,         1 },
        {QG_ORDER_TILE128X4,       0 },
        {QG_ORDER_TILE8X4,         0 },
        {QG_ORDER_BLOCK128_PADDED, 0 }
    };
    static const char *const recipes[] = {"mxfp8", "metrale_act128", "nvfp4"};
    for (size_t o = 0; o < 6; o++)
        for (size_t r = 0; r < 3; r++) {
            group_case c = case_of(recipes[r], 0);
            c.order = orders[o];
            set_shape(&c, r ? 5 : 131, r ? 1300 : 96, BLOCK_DATA_MIXED, o);
            check(&c);
        }
}
END_TEST

START_TEST(gated_elements_agree) {
    static const char *const recipes[] = {"metrale_act128", "mxfp8_e5m2", "mxfp4",
                                          "mxfp6_e2m3",     "nvfp4",      "e4m3"};
    for (size_t r = 0; r < 6; r++)
        for (size_t t = 0; t < 3; t++)
            for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
                group_case c = case_of(recipes[r], kind == 3 ? 400 : r == 5 ? 128 : 0);
                c.type = TYPES[t];
                c.up = room_up;
                set_shape(&c, 3, kind % 2 ? 264 : 300, kind, r);
                block_data_fill(99, kind ? BLOCK_DATA_ORDINARY : BLOCK_DATA_MIXED, room_up,
                                c.m * c.k);
                check(&c);
            }
}
END_TEST

// What a block of zeros, NaN or infinities gives, where recipes differ.
START_TEST(every_edge_agrees) {
    static const int kinds[] = {BLOCK_DATA_NANS, BLOCK_DATA_INFS,     BLOCK_DATA_SPECIALS,
                                BLOCK_DATA_HUGE, BLOCK_DATA_ALL_ZERO, BLOCK_DATA_TINY};
    static const char *const elements[] = {"e4m3", "e5m2", "e2m1"};
    for (int edge = QG_EDGE_BY_RULE; edge <= QG_EDGE_NAN; edge++)
        for (int nan = QG_NAN_ELEMENT_ENCODED; nan <= QG_NAN_ELEMENT_ZERO; nan++)
            for (int amax = 0; amax < 3; amax++)
                for (size_t i = 0; i < 6; i++) {
                    group_case c = case_of(elements[(size_t)edge % 3], i % 2 ? 128 : 32);
                    c.type = TYPES[i % 3];
                    c.recipe.zero_scale = c.recipe.nan_scale = c.recipe.inf_scale = (uint8_t)edge;
                    c.recipe.nan_element = (uint8_t)nan;
                    c.recipe.amax = (uint8_t)amax;
                    if (qg_recipe_check(&c.recipe) != QG_OK)
                        continue;
                    set_shape(&c, 2, 150, kinds[i], i);
                    check(&c);
                }
}
END_TEST

// Loads and stores of 16 bytes and of one element give the same.
START_TEST(every_alignment_agrees) {
    static const char *const recipes[] = {"mxfp8", "mxfp4", "mxfp6_e3m2"};
    for (size_t r = 0; r < 3; r++)
        for (size_t t = 0; t < 3; t++)
            for (int offset = 0; offset < 8; offset++) {
                group_case c = case_of(recipes[r], 0);
                c.type = TYPES[t];
                c.packed = true;
                c.offset_x = offset % 5;
                c.offset_codes = offset;
                set_shape(&c, 3, 192, BLOCK_DATA_MIXED, r);
                check(&c);
            }
}
END_TEST

// Where one of the two tensors alone lies at a multiple of 16 bytes.
START_TEST(every_alignment_of_gated_elements_agrees) {
    for (size_t t = 0; t < 3; t++)
        for (int offset = 0; offset < 9; offset++) {
            group_case c = case_of("mxfp8", 0);
            c.type = TYPES[t];
            c.up = room_up;
            c.offset_x = offset % 2 ? offset : 0;
            c.offset_up = offset % 2 ? 0 : offset;
            set_shape(&c, 3, 192, BLOCK_DATA_ORDINARY, 1);
            block_data_fill(98, BLOCK_DATA_ORDINARY, room_up, c.m * c.k);
            check(&c);
        }
}
END_TEST

// -----------------------------------------------------------------------------------------
// Metrale

static uint32_t random32(uint64_t *state) { return (uint32_t)(block_data_random(state) >> 32); }

// Magnitudes over six decades, and groups that are zero, hold one huge value
// among small ones, ties of E4M3, the largest value, or far more.
static void fill_metrale(float *x, int64_t m, int64_t k) {
    static const float decades[] = {1e-3f, 1e-2f, 1e-1f, 1.0f, 10.0f, 100.0f, 1000.0f};
    uint64_t state = 5;
    for (int64_t i = 0; i < m * k; i++) {
        int64_t column = i % k, group = i / k * qg_ceil_divide(k, 128) + column / 128;
        float unit = (float)(random32(&state) >> 8) * 0x1p-23f - 1.0f;
        switch (group % 11) {
        case 0: x[i] = 0.0f; break;
        case 2: x[i] = column % 128 == 77 ? 3.5e4f : 1e-3f * unit; break;
        case 4: x[i] = column % 128 ? (float)(2 * (column % 16) + 17) : 448.0f; break;
        case 6: x[i] = column % 2 ? 448.0f : -448.0f; break;
        case 8: x[i] = column % 3 ? 1e6f : -1e6f; break;
        default: x[i] = unit * decades[group % 7]; break;
        }
    }
}

static group_case metrale_case(int64_t m, int64_t k) {
    group_case c = case_of("metrale_act128", 0);
    ck_assert_int_le(m * k, MOST);
    c.m = m;
    c.k = k;
    fill_metrale(room, m, k);
    return c;
}

// To nearest, ties to the even code, saturating: the code whose neighbours'
// middles enclose v.
static uint8_t nearest_e4m3(float v) {
    static const qg_format_info info = {.kind = QG_KIND_FLOAT,
                                        .bits = 8,
                                        .sign = 1,
                                        .ebits = 4,
                                        .mbits = 3,
                                        .nan = QG_NAN_ONES,
                                        .zero = 1,
                                        .bias = 7,
                                        .max_code = 0x7e,
                                        .min_code = 0x7e};
    double magnitude = v < 0.0f ? -(double)v : (double)v;
    int code = 0;
    while (code < 0x7e) {
        double middle =
            (qg_decode(&info, (uint64_t)code) + qg_decode(&info, (uint64_t)code + 1)) / 2;
        if (magnitude < middle || (magnitude == middle && code % 2 == 0))
            break;
        code++;
    }
    return (uint8_t)((uint32_t)code | (qg_bits_of_float(v) >> 31) << 7);
}

// The bytes of Metrale's specification, written down again.
START_TEST(m01_bytes_are_those_of_the_specification) {
    static float x[MOST];
    group_case c = metrale_case(4, 11 * 128);
    elements_of(&c, x);
    for (c.kernel = 0; c.kernel < 2; c.kernel++) {
        got.codes_size = c.m * c.k;
        got.scales_size = c.m * c.k / 128 * 4;
        run(&c, &got);
        for (int64_t group = 0; group < c.m * c.k / 128; group++) {
            float amax = 0.0f, scale;
            for (int64_t i = group * 128; i < group * 128 + 128; i++)
                amax = (x[i] < 0 ? -x[i] : x[i]) > amax ? (x[i] < 0 ? -x[i] : x[i]) : amax;
            scale = amax / 448.0f;
            scale = scale < 1e-12f ? 1e-12f : scale;
            ck_assert_int_eq(memcmp(&scale, got.scales + group * 4, 4), 0);
            for (int64_t i = group * 128; i < group * 128 + 128; i++)
                REQUIRE(got.codes[i] == nearest_e4m3(x[i] / scale), "element %lld: %02x",
                        (long long)i, got.codes[i]);
        }
    }
}
END_TEST

// At the shapes of Metrale's microtest, made small, and around them: tiles of
// every size.
START_TEST(m02_twin_equals_shared) {
    static output twin, shared;
    for (int64_t m = 1; m <= 5; m++)
        for (int64_t k = 128; k <= 18 * 128; k += 128 + 40 * (m % 2)) {
            group_case c = metrale_case(m, k);
            expect(&c, &expected);
            twin.codes_size = shared.codes_size = expected.codes_size;
            twin.scales_size = shared.scales_size = expected.scales_size;
            run(&c, &shared);
            c.kernel = QG_GROUP_KERNEL_HOPPER;
            run(&c, &twin);
            REQUIRE(!*difference(&shared, &twin), "%s: %s", name_of(&c),
                    difference(&shared, &twin));
        }
}
END_TEST

// run() fails where a guard is overwritten: here what fails is the comparison.
START_TEST(m03_a_truncating_encoder_is_found) {
    for (int kernel = 0; kernel < 2; kernel++) {
        group_case c = metrale_case(2, 1280);
        expect(&c, &expected);
        c.kernel = kernel;
        c.recipe.conversion.rounding.mode = QG_ROUND_RTZ;
        got.codes_size = expected.codes_size;
        got.scales_size = expected.scales_size;
        run(&c, &got);
        ck_assert_int_ne(memcmp(expected.codes, got.codes, 1280), 0); // in row 0
        ck_assert_int_eq(memcmp(expected.scales, got.scales, (size_t)got.scales_size), 0);
    }
}
END_TEST

// Every order of threads, of a kernel that needs its barriers.
START_TEST(every_order_of_threads_agrees) {
    static const int64_t groups[] = {32, 128, 300};
    for (size_t g = 0; g < 3; g++)
        for (int kernel = 0; kernel < 2; kernel++) {
            group_case c = case_of("mxfp8", groups[g]);
            c.kernel = kernel;
            set_shape(&c, 2, 1000, BLOCK_DATA_WIDE, g);
            check_in(&c, 0, 6);
        }
}
END_TEST

int main(void) {
    open_module();
    const TTest *tests[] = {every_recipe_agrees,
                            every_rule_and_format_agrees,
                            every_shape_agrees,
                            a_cta_walks_through_tiles,
                            every_rounding_agrees,
                            every_scale_order_agrees,
                            gated_elements_agree,
                            every_edge_agrees,
                            every_alignment_agrees,
                            every_alignment_of_gated_elements_agrees,
                            m01_bytes_are_those_of_the_specification,
                            m02_twin_equals_shared,
                            m03_a_truncating_encoder_is_found,
                            every_order_of_threads_agrees};
    return RUN_SUITE("kernels_group", tests);
}
