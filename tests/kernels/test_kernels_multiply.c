// The binary32 product on the shim against unit fp32_fma of the emulator: ragged shapes, types of
// outputs, bias, special values, chains that underflow to -0.
#include <kernel_case.h>
#include <run_suite.h>

#include <qg_unit.h>

static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};

typedef struct product {
    int64_t m, n, k;
    const float *a, *b, *bias;
    qg_format type;
    int64_t shift; // bytes before a
} product;

static kernel_buffer upload(const float *x, int64_t count, int64_t shift) {
    qg_cuda_error error;
    kernel_buffer b = kernel_buffer_of(count * 4, shift);
    kernel_check(kernel_module()->copy_in(b.at, x, count * 4, &error), &error, "copy_in");
    return b;
}

static void check(const product *p, int way) {
    char text[KERNEL_CASE_TEXT], name[QG_NAME_SIZE];
    qg_cuda_error error;
    qg_unit unit;
    qg_format_name(p->type, name);
    snprintf(text, sizeof text, "%lld x %lld x %lld to %s%s, way %d", (long long)p->m,
             (long long)p->n, (long long)p->k, name, p->bias ? ", bias" : "", way);
    int64_t bytes = p->m * p->n * kernel_type_bytes(p->type);
    void *want = kernel_host(bytes);
    qg_matmul_options options = {.out_type = p->type, .bias = p->bias, .threads = 1};
    ck_assert_int_eq(qg_unit_parse("fp32_fma", &unit), QG_OK);
    REQUIRE(qg_emulator_matmul(&unit, &options, p->m, p->n, p->k, p->a, p->b, want) == QG_OK,
            "%s: %s", text, qg_detail());
    kernel_way(way);
    kernel_buffer a = upload(p->a, p->m * p->k, p->shift), b = upload(p->b, p->n * p->k, 0);
    kernel_buffer bias = upload(p->bias ? p->bias : p->a, p->bias ? p->n : 1, 0);
    kernel_buffer out = kernel_buffer_of(bytes, 0);
    qg_cuda_multiply call = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .a = (const float *)(void *)a.at,
                             .b = (const float *)(void *)b.at,
                             .bias = p->bias ? (const float *)(void *)bias.at : NULL,
                             .out_type = p->type,
                             .out = out.at};
    kernel_check(kernel_module()->multiply(&call, &error), &error, text);
    kernel_compare_stored("sums", &out, want, text);
    kernel_buffer_free(&a, text);
    kernel_buffer_free(&b, text);
    kernel_buffer_free(&bias, text);
    kernel_buffer_free(&out, text);
    free(want);
}

static float *filled(uint64_t seed, int kind, int64_t count) {
    float *x = kernel_host(count * 4);
    block_data_fill(seed, kind, x, count);
    return x;
}

static void check_data(int64_t m, int64_t n, int64_t k, int kind, bool has_bias, int way) {
    float *a = filled(1, kind, m * k), *b = filled(2, kind, n * k), *bias = filled(3, kind, n);
    product p = {.m = m,
                 .n = n,
                 .k = k,
                 .a = a,
                 .b = b,
                 .bias = has_bias ? bias : NULL,
                 .type = types[way % 3],
                 .shift = way % 4 * 4};
    check(&p, way);
    free(a);
    free(b);
    free(bias);
}

START_TEST(ragged_shapes) {
    static const int64_t sizes[][3] = {
        {1,   1,   1  },
        {1,   1,   16 },
        {1,   1,   17 },
        {3,   5,   7  },
        {63,  65,  15 },
        {64,  64,  16 },
        {65,  63,  32 },
        {1,   130, 33 },
        {130, 1,   31 },
        {66,  129, 100},
        {129, 66,  48 },
        {5,   4,   700},
        {17,  70,  333},
        {2,   3,   64 }
    };
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int way = 0; way < 6; way++)
            check_data(sizes[s][0], sizes[s][1], sizes[s][2], BLOCK_DATA_ORDINARY, way % 2,
                       way + (int)s);
}
END_TEST

START_TEST(every_kind_of_data) {
    for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++)
        for (int way = 0; way < 6; way++)
            check_data(37, 41, 1 + way * 13, kind, way % 2, way);
}
END_TEST

// Outputs at every edge of the narrow types: k = 1 and b = 1.
START_TEST(results_are_rounded_once) {
    enum { N = 4096 };
    float *a = kernel_host(4 * N), one = 1.0f;
    uint64_t state = 3;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t exponent = 95 + i % 65, low = (uint32_t)block_data_random(&state);
        uint32_t fraction = i % 3 == 0   ? low & 0x7fffff
                            : i % 3 == 1 ? (low & 0x7ff) << 12
                                         : 0x7fe000;
        uint32_t nudge = i % 4 == 3 ? (low >> 12) % 3 : 0;
        a[i] = qg_float_of_bits((low & 0x80000000u) | exponent << 23 | fraction);
        a[i] = qg_float_of_bits(qg_bits_of_float(a[i]) + nudge);
    }
    for (int type = 0; type < 3; type++) {
        product p = {.m = N, .n = 1, .k = 1, .a = a, .b = &one, .type = types[type]};
        check(&p, type);
    }
    free(a);
}
END_TEST

// A chain that has underflowed to -0 keeps its sign: nothing is added to fill a tile up.
START_TEST(negative_zeros_survive) {
    float a[3] = {-0x1p-100f, 0x1p-100f, 0.0f}, b[3] = {0x1p-60f, 0.0f, 0x1p-60f};
    float minus_zero = -0.0f;
    for (int64_t k = 1; k <= 3; k++) {
        product p = {.m = 1, .n = 1, .k = k, .a = a, .b = b, .type = QG_FORMAT_FP32};
        check(&p, (int)k);
        p.bias = &minus_zero;
        check(&p, (int)k);
    }
    qg_unit unit;
    uint32_t out;
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    ck_assert_int_eq(qg_unit_parse("fp32_fma", &unit), QG_OK);
    ck_assert_int_eq(qg_emulator_matmul(&unit, &options, 1, 1, 1, a, b, &out), QG_OK);
    ck_assert_uint_eq(out, 0x80000000u);
}
END_TEST

START_TEST(calls_without_a_kernel_are_refused) {
    kernel_buffer room = kernel_buffer_of(1024, 0);
    qg_cuda_error error = {.text = ""};
    const float *x = (const float *)(void *)room.at;
    const qg_cuda_multiply good = {
        .m = 1, .n = 1, .k = 1, .a = x, .b = x, .out_type = QG_FORMAT_FP32, .out = room.at};
    qg_cuda_multiply p;
#define REFUSED(STATUS, CHANGE)                                                                    \
    p = good;                                                                                      \
    p.CHANGE;                                                                                      \
    error.text[0] = 0;                                                                             \
    REQUIRE(kernel_module()->multiply(&p, &error) == STATUS && error.text[0], #CHANGE)
    REFUSED(QG_ERROR_ARGUMENT, k = 0);
    REFUSED(QG_ERROR_ARGUMENT, m = 0);
    REFUSED(QG_ERROR_ARGUMENT, n = -1);
    REFUSED(QG_ERROR_ARGUMENT, a = NULL);
    REFUSED(QG_ERROR_ARGUMENT, b = NULL);
    REFUSED(QG_ERROR_ARGUMENT, out = NULL);
    REFUSED(QG_ERROR_UNSUPPORTED, out_type = QG_FORMAT_E4M3);
    REFUSED(QG_ERROR_OVERFLOW, m = INT64_MAX);
    kernel_buffer_free(&room, "refusals");
}
END_TEST

int main(void) {
    const TTest *tests[] = {ragged_shapes, every_kind_of_data, results_are_rounded_once,
                            negative_zeros_survive, calls_without_a_kernel_are_refused};
    return RUN_SUITE("kernels_multiply", tests);
}
