// Codes and scales back to values on the shim: every recipe, element format, storage and type of
// values, against the emulator. Codes are of quantized data, and of any bits.
#include <kernel_case.h>
#include <run_suite.h>

// What the emulator says of stored codes and scales.
static float *wanted(const kernel_case *c, const kernel_want *w, const char *text) {
    const qg_shape *shape = &w->shape.shape;
    int bits = qg_format_describe(c->recipe.element).bits;
    uint8_t *codes = kernel_host(shape->codes_size), *scales = kernel_host(shape->scales_size);
    float *q = kernel_host(c->m * c->k * 4);
    if (c->storage.packed && (bits == 4 || bits == 6))
        for (int64_t row = 0; row < shape->planes * c->m; row++)
            (bits == 4 ? qg_unpack4 : qg_unpack6)(w->codes + row * w->shape.row_bytes, c->k,
                                                  codes + row * c->k);
    else
        memcpy(codes, w->codes, (size_t)shape->codes_size);
    qg_scale_order_load(c->storage.order, shape->blocks.block_rows, shape->blocks.block_columns,
                        shape->scale_bytes, w->scales, scales);
    REQUIRE(qg_emulator_dequantize(&c->recipe, c->m, c->k, codes, scales, w->tensor, 1, q) == QG_OK,
            "%s: %s", text, qg_detail());
    free(codes);
    free(scales);
    return q;
}

static void run(const kernel_case *c, const kernel_want *w, const float *want, qg_format out_type,
                int way) {
    const qg_cuda_module *module = kernel_module();
    qg_format_info bf16 = qg_format_describe(QG_FORMAT_BF16);
    qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    char text[KERNEL_CASE_TEXT];
    qg_cuda_error error;
    int64_t count = c->m * c->k, bytes = out_type == QG_FORMAT_FP32 ? 4 : 2;
    kernel_case_text(c, way, text);
    kernel_way(way);
    kernel_buffer codes = kernel_buffer_of(w->shape.codes_size, c->shift);
    kernel_buffer scales = kernel_buffer_of(w->shape.scales_size, 0);
    kernel_buffer q = kernel_buffer_of(count * bytes, c->shift * bytes);
    kernel_check(module->copy_in(codes.at, w->codes, codes.size, &error), &error, text);
    kernel_check(module->copy_in(scales.at, w->scales, scales.size, &error), &error, text);
    qg_cuda_dequantize d = {.recipe = c->recipe,
                            .packed = c->storage.packed,
                            .order = c->storage.order,
                            .m = c->m,
                            .k = c->k,
                            .codes = codes.at,
                            .scales = scales.at,
                            .tensor_scale = w->tensor,
                            .out_type = out_type,
                            .q = q.at};
    kernel_check(module->dequantize(&d, &error), &error, text);
    if (out_type == QG_FORMAT_FP32) {
        kernel_compare_stored("values", &q, want, text);
    } else {
        uint16_t *narrow = kernel_host(count * 2);
        for (int64_t i = 0; i < count; i++)
            narrow[i] = (uint16_t)qg_encode(&bf16, want[i], &nearest, 0);
        kernel_compare_stored("bf16 values", &q, narrow, text);
        free(narrow);
    }
    kernel_buffer_free(&codes, text);
    kernel_buffer_free(&scales, text);
    kernel_buffer_free(&q, text);
}

// random: codes, scales and tensor scale of any bits; padding of packed codes stays 0.
static void check(const kernel_case *c, bool random, int way) {
    char text[KERNEL_CASE_TEXT];
    kernel_case_text(c, way, text);
    void *x = kernel_data(c, c->seed), *up = kernel_data(c, c->seed + 1);
    kernel_want w = kernel_wanted(c, x, up, text);
    if (random) {
        uint64_t state = c->seed;
        int bits = qg_format_describe(c->recipe.element).bits, stored = bits > 8 ? 8 : bits;
        bool packed = c->storage.packed && (bits == 4 || bits == 6);
        for (int64_t i = 0; i < w.shape.codes_size; i++)
            w.codes[i] = (uint8_t)(block_data_random(&state) & (packed ? 255 : (1u << stored) - 1));
        for (int64_t i = 0; i < w.shape.scales_size; i++)
            w.scales[i] = (uint8_t)block_data_random(&state);
        w.tensor = qg_float_of_bits((uint32_t)block_data_random(&state) & 0x7fffffffu);
    }
    float *want = wanted(c, &w, text);
    run(c, &w, want, way % 3 ? (qg_format)QG_FORMAT_FP32 : (qg_format)QG_FORMAT_BF16, way);
    free(want);
    free(w.codes);
    free(w.scales);
    free(x);
    free(up);
}

START_TEST(every_recipe) {
    int way = 0;
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            kernel_case c = {.recipe = kernel_recipe(qg_recipe_listed(i), NULL, -1),
                             .type = QG_FORMAT_FP32,
                             .storage = {.packed = kind % 2 != 0},
                             .m = 1 + (way + 5) % 140,
                             .k = 1 + way * 29 % 150,
                             .kind = kind,
                             .seed = i,
                             .shift = kind % 5};
            if (c.recipe.structure == QG_STRUCTURE_PLAIN)
                c.storage.order = (qg_scale_order){way % 5, 16};
            check(&c, false, way);
            check(&c, true, way + 1);
            way++;
        }
}
END_TEST

START_TEST(every_element_format) {
    static const char *const layouts[] = {"per_tensor", "per_row", "group:32", "block:3x5"};
    int way = 0;
    for (size_t i = 0; qg_format_listed(i); i++)
        for (int l = 0; l < 4; l++) {
            kernel_case c = {
                .type = QG_FORMAT_FP32, .m = 8, .k = 61, .seed = i, .shift = l % 2 * 4};
            if (qg_recipe_find(qg_format_listed(i), &c.recipe) != QG_OK)
                continue;
            REQUIRE(qg_layout_parse(layouts[l], &c.recipe.layout) == QG_OK, "%s", qg_detail());
            check(&c, true, way++);
        }
}
END_TEST

// Chunks of eight in groups of any length, and both sides of a row's end.
START_TEST(groups_within_chunks) {
    int way = 0;
    for (int32_t g = 1; g < 20; g++)
        for (int64_t k = 1; k < 50; k += 6) {
            kernel_case c = {.recipe = kernel_recipe("e2m1", "group:32", QG_RULE_FLOOR),
                             .type = QG_FORMAT_FP32,
                             .storage = {.packed = g % 2 != 0},
                             .m = 5,
                             .k = k,
                             .seed = (uint64_t)g};
            c.recipe.layout.columns = g;
            check(&c, true, way++);
        }
}
END_TEST

// More chunks than a grid has threads: one CTA's share, twice around.
START_TEST(tensors_beyond_a_grid) {
    enum { CTAS = 4096, THREADS = 256, SPAN = 8, K = 16 };
    const struct qg_shim_cta one = {9, 0, 0};
    const qg_cuda_module *module = kernel_module();
    int64_t m = (int64_t)CTAS * THREADS + 5000, stride = (int64_t)CTAS * THREADS * SPAN;
    qg_cuda_error error;
    kernel_way(0);
    qg_shim_set_poison(QG_SHIM_POISON_ZERO);
    kernel_buffer codes = kernel_buffer_of(m * K, 0), scales = kernel_buffer_of(4, 0);
    kernel_buffer q = kernel_buffer_of(m * K * 2, 0);
    memset(codes.at, 0x38, (size_t)codes.size);
    *(float *)(void *)scales.at = 1.0f;
    qg_cuda_dequantize d = {.recipe = kernel_recipe("e4m3", NULL, -1),
                            .m = m,
                            .k = K,
                            .codes = codes.at,
                            .scales = scales.at,
                            .out_type = QG_FORMAT_BF16,
                            .q = q.at};
    qg_shim_choose_list(&one, 1);
    kernel_check(module->dequantize(&d, &error), &error, "one CTA");
    qg_shim_choose_all();
    for (int64_t i = 0; i < m * K; i++) {
        bool own = i % stride / (THREADS * SPAN) == 9;
        REQUIRE(((uint16_t *)(void *)q.at)[i] == (own ? 0x3f80 : 0), "element %lld", (long long)i);
    }
    kernel_buffer_free(&codes, "codes");
    kernel_buffer_free(&scales, "scales");
    kernel_buffer_free(&q, "q");
}
END_TEST

START_TEST(calls_without_a_kernel_are_refused) {
    kernel_buffer b = kernel_buffer_of(4096, 0);
    qg_cuda_error error = {.text = ""};
    const qg_cuda_dequantize good = {.recipe = kernel_recipe("e4m3", NULL, -1),
                                     .m = 2,
                                     .k = 3,
                                     .codes = b.at,
                                     .scales = b.at + 1024,
                                     .out_type = QG_FORMAT_FP32,
                                     .q = b.at + 2048};
    qg_cuda_dequantize d;
#define REFUSED(STATUS, CHANGE)                                                                    \
    d = good;                                                                                      \
    d.CHANGE;                                                                                      \
    error.text[0] = 0;                                                                             \
    REQUIRE(kernel_module()->dequantize(&d, &error) == STATUS && error.text[0], #CHANGE)
    REFUSED(QG_ERROR_UNSUPPORTED, out_type = QG_FORMAT_FP16);
    REFUSED(QG_ERROR_ARGUMENT, m = 0);
    REFUSED(QG_ERROR_ARGUMENT, codes = NULL);
    REFUSED(QG_ERROR_ARGUMENT, scales = NULL);
    REFUSED(QG_ERROR_ARGUMENT, q = NULL);
    REFUSED(QG_ERROR_ARGUMENT, order.kind = -1);
    REFUSED(QG_ERROR_OVERFLOW, m = INT64_MAX / 2);
    kernel_buffer_free(&b, "refusals");
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_recipe, every_element_format, groups_within_chunks,
                            tensors_beyond_a_grid, calls_without_a_kernel_are_refused};
    return RUN_SUITE("kernels_dequantize", tests);
}
