// The kernels of whole tensors, rows and blocks, and the choice between kernels, on the shim: every
// rule and recipe, ragged shapes, input types, orders of scales, packing, edges and limits of grids,
// byte for byte against the emulator.
#include <kernel_case.h>
#include <run_suite.h>

#include <qg_partition.h>

enum { NAMES = 3 };

static const char *const layouts[NAMES] = {"per_tensor", "per_row", "block:16x16"};
static const char *const names[NAMES] = {"tensor", "row", "block"};
static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};

START_TEST(every_rule_in_every_layout) {
    static const char *const elements[] = {"e4m3", "e2m1", "e5m2", "int8", "e2m3"};
    int way = 0;
    for (size_t e = 0; e < 5; e++)
        for (int rule = 0; rule < QG_RULE_COUNT; rule++)
            for (int l = 0; l < NAMES; l++)
                for (int t = 0; t < 3; t++) {
                    kernel_case c = {.type = types[t], .m = 19, .k = 45 + 8 * t};
                    REQUIRE(qg_recipe_find(elements[e], &c.recipe) == QG_OK, "%s", qg_detail());
                    REQUIRE(qg_layout_parse(layouts[l], &c.recipe.layout) == QG_OK, "%s",
                            qg_detail());
                    if (qg_recipe_set_rule(&c.recipe, rule, 0.75f) != QG_OK)
                        continue;
                    c.kind = way % 2 ? BLOCK_DATA_MIXED : BLOCK_DATA_ORDINARY;
                    c.seed = (uint64_t)way;
                    c.storage.packed = way % 3 != 0;
                    c.storage.order.kind = way % 5;
                    c.storage.order.padding = 16;
                    kernel_case_check(&c, way++, 1, rule == QG_RULE_BEST ? "structure" : names[l]);
                }
}
END_TEST

START_TEST(every_recipe) {
    int way = 0;
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            kernel_case c = {.recipe = kernel_recipe(qg_recipe_listed(i), NULL, -1),
                             .type = types[kind % 3],
                             .m = kind % 2 ? 131 : 3,
                             .k = kind % 2 ? 35 : 333,
                             .kind = kind,
                             .seed = i,
                             .has_up = kind % 4 == 3};
            c.group_kernel = kind % 3 ? QG_GROUP_KERNEL_HOPPER : QG_GROUP_KERNEL_SHARED;
            kernel_case_check(&c, way++, 1, NULL);
        }
}
END_TEST

// What the kernels of groups find in scratch.
START_TEST(two_level_scales_in_every_order_of_threads) {
    static const char *const recipes[] = {"nvfp4", "nvfp4_torchao", "nvint4"};
    for (int i = 0; i < 9; i++) {
        kernel_case c = {.recipe = kernel_recipe(recipes[i % 3], NULL, -1),
                         .type = types[i / 3],
                         .storage = {.packed = true},
                         .m = 5,
                         .k = 67,
                         .kind = i < 6 ? BLOCK_DATA_ORDINARY : BLOCK_DATA_WIDE,
                         .seed = 2,
                         .has_up = i % 4 == 1,
                         .group_kernel = i % 2};
        kernel_case_check(&c, 0, KERNEL_CASE_WAYS, NULL);
    }
}
END_TEST

// Every width of stored codes, at odd places.
START_TEST(every_stored_width_and_alignment) {
    static const char *const elements[] = {"e4m3", "e2m1", "e3m2", "int6", "f3e1m1",
                                           "bf16", "fp16", "tf32", "fp32", "f5e2m2"};
    static const char *const shapes[] = {"per_tensor", "per_row", "block:8x24", "block:3x7",
                                         "block:2x2"};
    int way = 0;
    for (size_t e = 0; e < 10; e++)
        for (size_t l = 0; l < 5; l++)
            for (int64_t k = 40; k < 44; k++) {
                int bytes =
                    (qg_format_describe(kernel_recipe(elements[e], NULL, -1).element).bits + 7) / 8;
                kernel_case c = {.recipe = kernel_recipe(elements[e], shapes[l], QG_RULE_AMAX),
                                 .type = types[way % 3],
                                 .storage = {.packed = way % 4 != 3},
                                 .m = 7,
                                 .k = k,
                                 .kind = BLOCK_DATA_MIXED,
                                 .seed = (uint64_t)way,
                                 .shift = way % 5 * (bytes == 4 ? 4 : bytes)};
                kernel_case_check(&c, way++, 1, NULL);
            }
}
END_TEST

START_TEST(every_order_of_threads) {
    static const char *const shapes[] = {"per_tensor", "per_row", "block:128x128", "block:5x40"};
    static const int64_t sizes[][2] = {
        {1,   1   },
        {1,   700 },
        {300, 3   },
        {130, 257 },
        {2,   4100}
    };
    for (size_t l = 0; l < 4; l++)
        for (size_t s = 0; s < 5; s++)
            for (int t = 0; t < 3; t++) {
                kernel_case c = {.recipe = kernel_recipe("e4m3", shapes[l], QG_RULE_AMAX),
                                 .type = types[t],
                                 .m = sizes[s][0],
                                 .k = sizes[s][1],
                                 .kind = t ? BLOCK_DATA_WIDE : BLOCK_DATA_SPECIALS,
                                 .seed = s};
                kernel_case_check(&c, 0, KERNEL_CASE_WAYS, NULL);
            }
}
END_TEST

// More than a CTA keeps in registers: 512 threads of 4 chunks of 8 elements.
START_TEST(blocks_beyond_what_threads_keep) {
    static const char *const shapes[] = {"per_row", "block:256x256", "block:3x9000",
                                         "block:3000x7"};
    static const int64_t sizes[][2] = {
        {1,    33001},
        {257,  260  },
        {3,    9001 },
        {3001, 9    }
    };
    for (int i = 0; i < 4; i++)
        for (int rule = QG_RULE_AMAX; rule <= QG_RULE_AMAX_MUL; rule++) {
            kernel_case c = {.recipe = kernel_recipe("e4m3", shapes[i], rule),
                             .type = types[(i + rule) % 3],
                             .m = sizes[i][0],
                             .k = sizes[i][1],
                             .kind = BLOCK_DATA_WIDE,
                             .seed = 5};
            kernel_case_check(&c, i + rule, 1, NULL);
        }
}
END_TEST

START_TEST(drawn_cases) {
    enum { CASES = 1500, MOST = 4000 };
    static float room[MOST];
    uint64_t state = 7;
    for (int i = 0; i < CASES;) {
        cpu_case drawn;
        if (!cpu_check_draw(&state, MOST, room, &drawn))
            continue;
        if (drawn.recipe.layout.kind == QG_LAYOUT_GROUP)
            continue;
        kernel_case c = {.recipe = drawn.recipe,
                         .type = drawn.options.input_type,
                         .storage = drawn.storage,
                         .m = drawn.m,
                         .k = drawn.k,
                         .seed = drawn.options.seed,
                         .kind = i % BLOCK_DATA_KINDS,
                         .has_up = i % 7 == 0,
                         .shift = i % 3 ? 0 : 4};
        kernel_case_check(&c, i, 1, NULL);
        i++;
    }
}
END_TEST

// ----------------------------------------------------------------------------------- limits

static qg_cuda_quantize call_of(const kernel_case *c) {
    return (qg_cuda_quantize){.recipe = c->recipe,
                              .input_type = c->type,
                              .packed = c->storage.packed,
                              .order = c->storage.order,
                              .m = c->m,
                              .k = c->k};
}

// Rows in slabs: some rows of more than a grid has.
START_TEST(rows_beyond_a_grid) {
    kernel_case c = {.recipe = kernel_recipe("e4m3", "per_row", QG_RULE_AMAX),
                     .type = QG_FORMAT_BF16,
                     .m = 2147483647ll + 3,
                     .k = 2};
    static const int64_t rows[] = {0, 2, 2147483646ll, 2147483647ll, 2147483649ll};
    static const struct qg_shim_cta ctas[] = {
        {0,           0, 0},
        {2,           0, 0},
        {2147483646u, 0, 0}
    };
    const qg_cuda_module *module = kernel_module();
    qg_cuda_error error;
    qg_cuda_quantize q = call_of(&c);
    kernel_way(0);
    kernel_buffer x = kernel_buffer_of(c.m * c.k * 2, 0), codes = kernel_buffer_of(c.m * c.k, 0);
    kernel_buffer scales = kernel_buffer_of(c.m * 4, 0);
    kernel_buffer scratch = kernel_buffer_of(module->quantize_scratch(&q), 0);
    for (int i = 0; i < 5; i++) {
        uint16_t row[2] = {(uint16_t)(0x3f80 + i), 0xbf00};
        kernel_check(module->copy_in(x.at + rows[i] * 4, row, 4, &error), &error, "copy_in");
    }
    q.x = x.at, q.codes = codes.at, q.scales = scales.at, q.scratch = scratch.at;
    qg_shim_choose_list(ctas, 3);
    kernel_check(module->quantize(&q, &error), &error, "rows beyond a grid");
    qg_shim_choose_all();
    for (int i = 0; i < 5; i++) {
        float amax = qg_float_of_bf16((uint16_t)(0x3f80 + i)), scale;
        uint8_t got[2];
        memcpy(&scale, scales.at + rows[i] * 4, 4);
        memcpy(got, codes.at + rows[i] * 2, 2);
        REQUIRE(scale == amax / 448.0f && got[0] == 0x7e && (got[1] & 0x80),
                "row %lld: scale %a, codes %02x %02x", (long long)rows[i], (double)scale, got[0],
                got[1]);
    }
    kernel_buffer_free(&x, "x");
    kernel_buffer_free(&codes, "codes");
    kernel_buffer_free(&scales, "scales");
    kernel_buffer_free(&scratch, "scratch");
}
END_TEST

// CTAs stride over a tensor that is larger than the grid: one CTA alone, and what it must do.
START_TEST(tensors_beyond_a_grid) {
    enum { CTAS = 2048, THREADS = 256, SPAN = 8 };
    kernel_case c = {.recipe = kernel_recipe("e4m3", "per_tensor", QG_RULE_AMAX),
                     .type = QG_FORMAT_BF16,
                     .m = 5,
                     .k = (int64_t)CTAS * THREADS * SPAN + 3};
    const struct qg_shim_cta one = {7, 0, 0};
    const qg_cuda_module *module = kernel_module();
    qg_cuda_error error;
    qg_cuda_quantize q = call_of(&c);
    int64_t elements = c.m * c.k, stride = (int64_t)CTAS * THREADS * SPAN;
    kernel_way(0);
    qg_shim_set_poison(QG_SHIM_POISON_ZERO);
    kernel_buffer x = kernel_buffer_of(elements * 2, 0), codes = kernel_buffer_of(elements, 0);
    kernel_buffer scales = kernel_buffer_of(4, 0);
    kernel_buffer scratch = kernel_buffer_of(module->quantize_scratch(&q), 0);
    // The last stretch that CTA 7 sees, and the one before.
    int64_t places[] = {4 * stride + 7 * THREADS * SPAN + 1, 3 * stride + 7 * THREADS * SPAN + 9};
    uint16_t values[] = {0x4000, 0x3f80};
    for (int i = 0; i < 2; i++)
        kernel_check(module->copy_in(x.at + places[i] * 2, &values[i], 2, &error), &error, "in");
    q.x = x.at, q.codes = codes.at, q.scales = scales.at, q.scratch = scratch.at;
    qg_shim_choose_list(&one, 1);
    kernel_check(module->quantize(&q, &error), &error, "one CTA");
    float amax;
    memcpy(&amax, scratch.at, 4);
    REQUIRE(amax == 2.0f, "amax %a", (double)amax);
    // Codes: every element of the chunks of CTA 7 from the end, none of the others.
    memset(x.at, 0x80, (size_t)(elements * 2)); // a negative subnormal: code 80
    kernel_check(module->quantize(&q, &error), &error, "one CTA");
    qg_shim_choose_all();
    int64_t chunks = qg_ceil_divide(elements, SPAN);
    for (int64_t i = 0; i < elements; i++) {
        int64_t from_end = (chunks - 1 - i / SPAN) % ((int64_t)CTAS * THREADS);
        bool own = from_end / THREADS == 7;
        REQUIRE((codes.at[i] != 0) == own, "element %lld", (long long)i);
    }
    kernel_buffer_free(&x, "x");
    kernel_buffer_free(&codes, "codes");
    kernel_buffer_free(&scales, "scales");
    kernel_buffer_free(&scratch, "scratch");
}
END_TEST

// ----------------------------------------------------------------------------------- refusals

static void refused(const qg_cuda_quantize *q, qg_status status, const char *what) {
    qg_cuda_error error = {.text = ""};
    qg_status got = kernel_module()->quantize(q, &error);
    REQUIRE(got == status && error.text[0], "%s: status %d, '%s'", what, (int)got, error.text);
}

START_TEST(calls_without_a_kernel_are_refused) {
    kernel_case c = {.recipe = kernel_recipe("e4m3", "per_row", QG_RULE_AMAX),
                     .type = QG_FORMAT_FP32,
                     .m = 2,
                     .k = 3};
    qg_cuda_quantize good = call_of(&c), q;
    kernel_buffer b = kernel_buffer_of(4096, 0);
    good.x = b.at, good.codes = b.at + 1024, good.scales = b.at + 2048, good.scratch = b.at + 3072;
    good.tensor_scale = (float *)(void *)(b.at + 4000);
#define REFUSED(STATUS, CHANGE)                                                                    \
    q = good;                                                                                      \
    q.CHANGE;                                                                                      \
    refused(&q, STATUS, #CHANGE)
    REFUSED(QG_ERROR_UNSUPPORTED, input_type = QG_FORMAT_E4M3);
    REFUSED(QG_ERROR_UNSUPPORTED, input_type = QG_FORMAT_FP64);
    REFUSED(QG_ERROR_ARGUMENT, m = 0);
    REFUSED(QG_ERROR_ARGUMENT, k = -1);
    REFUSED(QG_ERROR_ARGUMENT, x = NULL);
    REFUSED(QG_ERROR_ARGUMENT, codes = NULL);
    REFUSED(QG_ERROR_ARGUMENT, scales = NULL);
    REFUSED(QG_ERROR_ARGUMENT, scratch = NULL);
    REFUSED(QG_ERROR_ARGUMENT, scratch = b.at + 8);
    REFUSED(QG_ERROR_ARGUMENT, order.kind = 5);
    REFUSED(QG_ERROR_ARGUMENT, order.kind = QG_ORDER_K_MAJOR);
    REFUSED(QG_ERROR_ARGUMENT, recipe.element = QG_FORMAT_E8M0);
    REFUSED(QG_ERROR_ARGUMENT, recipe.element = QG_FORMAT_FP64);
    REFUSED(QG_ERROR_ARGUMENT, recipe.rule = QG_RULE_COUNT);
    REFUSED(QG_ERROR_ARGUMENT, recipe.layout.kind = 4);
    REFUSED(QG_ERROR_ARGUMENT, recipe.layout.kind = QG_LAYOUT_BLOCK);
    REFUSED(QG_ERROR_OVERFLOW, m = INT64_MAX);
    REFUSED(QG_ERROR_OVERFLOW, k = INT64_MAX / 7);
    // The errors of the runtime come through: memory that is not the device's.
    static uint8_t host[256] __attribute__((aligned(16)));
    good.recipe.layout.kind = QG_LAYOUT_PER_TENSOR;
    REFUSED(QG_ERROR_ENVIRONMENT, scratch = host);
    good.order.kind = QG_ORDER_TILE128X4;
    REFUSED(QG_ERROR_ENVIRONMENT, scales = host);
    good.order.kind = QG_ORDER_ROW_MAJOR;
    good.recipe = kernel_recipe("nvfp4_4over6", NULL, -1);
    REFUSED(QG_ERROR_ARGUMENT, tensor_scale = NULL);
    good.recipe = kernel_recipe("mx9", NULL, -1);
    REFUSED(QG_ERROR_UNSUPPORTED, order.kind = QG_ORDER_TILE128X4);
    REFUSED(QG_ERROR_UNSUPPORTED, recipe.layout.kind = QG_LAYOUT_PER_ROW);
    q = good;
    q.m = 0;
    ck_assert_int_eq(kernel_module()->quantize_scratch(&q), 0);
    kernel_buffer_free(&b, "refusals");
}
END_TEST

int main(void) {
    const TTest *tests[] = {two_level_scales_in_every_order_of_threads,
                            every_rule_in_every_layout,
                            every_recipe,
                            every_stored_width_and_alignment,
                            every_order_of_threads,
                            blocks_beyond_what_threads_keep,
                            drawn_cases,
                            rows_beyond_a_grid,
                            tensors_beyond_a_grid,
                            calls_without_a_kernel_are_refused};
    return RUN_SUITE("kernels_layouts", tests);
}
