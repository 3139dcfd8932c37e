// Statements R1 to R8 of RLX, each test named after its own: element formats, their names, scale
// layouts, scale rules, and quantize with its way back. (R9 to R12, R17, R18: test_rlx_products;
// R13 to R16: test_rlx_graph; R11 and R15 on a device: tests/kernels/test_rlx_device.)
// Expected values are written out here or come from the independent model of the formats.
#include <cpu_check.h>
#include <require.h>
#include <rlx_check.h>
#include <run_suite.h>

#include <qg_graph.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <string.h>

static const qg_conversion saturating = {
    {QG_ROUND_RNE, 0},
    QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
};

static qg_format_info info_of(const char *name) {
    qg_format format = 0;
    REQUIRE(qg_format_parse(name, &format) == QG_OK, "%s", qg_detail());
    return qg_format_describe(format);
}

static uint64_t encode(const char *name, double x) {
    qg_format_info info = info_of(name);
    return qg_encode(&info, x, &saturating, 0);
}

// ---------------------------------------------------------------------------------------------- R1

typedef struct format_facts {
    const char *name;
    int bits, finite; // finite: codes, -0 among them
    double largest;
} format_facts;

static const format_facts named[RLX_NAMED] = {
    {"e4m3",     8, 254, 448  },
    {"e5m2",     8, 248, 57344},
    {"e4m3fnuz", 8, 255, 240  },
    {"e5m2fnuz", 8, 255, 57344},
    {"e2m3",     6, 64,  7.5  },
    {"e3m2",     6, 64,  28   },
    {"e2m1",     4, 16,  6    },
};

// Every finite code comes back from its value; the model gives every code the same value.
static int finite_fixed_points(const char *name) {
    qg_format_info info = info_of(name);
    slow_format *slow = slow_format_create(name);
    int finite = 0;
    REQUIRE(slow, "no model of %s", name);
    for (uint64_t code = 0; code < 1ull << info.bits; code++) {
        double value = qg_decode(&info, code), wanted = slow_decode(slow, code);
        REQUIRE(memcmp(&value, &wanted, sizeof value) == 0 || (isnan(value) && isnan(wanted)),
                "%s %02x: %a, not %a", name, (unsigned)code, value, wanted);
        if (!isfinite(value))
            continue;
        finite++;
        REQUIRE(qg_encode(&info, value, &saturating, 0) == code, "%s %02x", name, (unsigned)code);
    }
    slow_format_free(slow);
    return finite;
}

START_TEST(r01_formats_encode_decode_and_have_fixed_points) {
    for (int i = 0; i < RLX_NAMED; i++) {
        qg_format_info info = info_of(named[i].name);
        ck_assert_str_eq(rlx_named[i], named[i].name);
        ck_assert_int_eq(info.bits, named[i].bits);
        ck_assert_double_eq(qg_format_max(&info), named[i].largest);
        ck_assert_int_eq(finite_fixed_points(named[i].name), named[i].finite);
    }
    for (int i = 0; i < RLX_MINIFLOATS; i++) {
        const char *name = rlx_minifloat(i);
        qg_format_info info = info_of(name);
        int top = (1 << info.ebits) - 1 - info.bias;
        ck_assert_double_eq(qg_format_max(&info), ldexp(2 - ldexp(1, -info.mbits), top));
        ck_assert_int_eq(finite_fixed_points(name), 1 << info.bits);
    }
}
END_TEST

// E5M2's infinities and NaNs, E4M3's two NaNs, the one of the FNUZ formats; unity.
START_TEST(r01_specials_are_where_the_table_says) {
    qg_format_info e4m3 = info_of("e4m3"), e5m2 = info_of("e5m2");
    for (uint64_t sign = 0; sign < 0x100; sign += 0x80) {
        ck_assert(isnan(qg_decode(&e4m3, sign | 0x7f)));
        ck_assert_double_eq(qg_decode(&e5m2, sign | 0x7c), sign ? -INFINITY : INFINITY);
        for (uint64_t code = 0x7d; code <= 0x7f; code++)
            ck_assert(isnan(qg_decode(&e5m2, sign | code)));
    }
    for (int i = 2; i < 4; i++) {
        qg_format_info fnuz = info_of(rlx_named[i]);
        ck_assert(isnan(qg_decode(&fnuz, 0x80)));
        ck_assert_uint_eq(qg_encode(&fnuz, -0.0, &saturating, 0), 0);
    }
    for (int i = 0; i < RLX_NAMED; i++) {
        qg_format_info info = info_of(rlx_named[i]);
        ck_assert_double_eq(qg_decode(&info, qg_encode(&info, 1.0, &saturating, 0)), 1.0);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------------- R2

static void expect_round_trip(const char *text) {
    qg_format format, again;
    char name[QG_NAME_SIZE];
    REQUIRE(qg_format_parse(text, &format) == QG_OK, "%s", qg_detail());
    qg_format_name(format, name);
    REQUIRE(qg_format_parse(name, &again) == QG_OK, "%s", qg_detail());
    REQUIRE(again == format, "%s is printed as %s", text, name);
}

static void expect_refusal(const char *text, const char *why) {
    qg_format format;
    REQUIRE(qg_format_parse(text, &format) == QG_ERROR_ARGUMENT, "%s is read", text);
    REQUIRE(strstr(qg_detail(), why) && strstr(qg_detail(), text), "%s: %s", text, qg_detail());
}

START_TEST(r02_names_print_and_parse_as_the_same_format) {
    static const char *const colliding[][2] = {
        {"f8e4m3", "e4m3"},
        {"f8e5m2", "e5m2"},
        {"f6e2m3", "e2m3"},
        {"f6e3m2", "e3m2"},
        {"f4e2m1", "e2m1"},
    };
    static const char *const widths[] = {"f2e1m0", "f3e2m0", "f4e3m0", "f5e4m0",
                                         "f6e5m0", "f7e6m0", "f8e7m0"};
    for (int i = 0; i < RLX_NAMED; i++)
        expect_round_trip(rlx_named[i]);
    for (int i = 0; i < RLX_MINIFLOATS; i++)
        expect_round_trip(rlx_minifloat(i));
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        expect_round_trip(widths[i]);
    for (size_t i = 0; i < sizeof colliding / sizeof colliding[0]; i++) {
        qg_format minifloat = 0, hardware = 0;
        ck_assert_int_eq(qg_format_parse(colliding[i][0], &minifloat), QG_OK);
        ck_assert_int_eq(qg_format_parse(colliding[i][1], &hardware), QG_OK);
        ck_assert_uint_eq(minifloat, hardware);
    }
    // The all-finite twin of E4M3 is another format, named by its bias.
    qg_format_info twin = info_of("f8e4m3b7");
    ck_assert_double_eq(qg_format_max(&twin), 480);
}
END_TEST

START_TEST(r02_impossible_splits_are_refused_with_the_reason) {
    expect_refusal("f8e4m2", "are 7 bits, not 8");
    expect_refusal("f9e4m4", "at most 8 bits");
    expect_refusal("f4e0m3", "needs an exponent bit");
    expect_refusal("f8e4m3b500", "binary32 cannot hold");
    expect_refusal("e4m33", "the nearest is e4m3");
}
END_TEST

// ---------------------------------------------------------------------------------------------- R3

static void check_saturation(const char *name) {
    qg_format_info info = info_of(name);
    uint64_t top = encode(name, qg_format_max(&info)), bottom = encode(name, -qg_format_max(&info));
    for (int e = 0; e <= 1023; e++) {
        double x = qg_format_max(&info) * ldexp(1.0, e); // infinite in the end
        REQUIRE(encode(name, x) == top && encode(name, -x) == bottom, "%s of %a", name, x);
    }
    ck_assert_uint_eq(encode(name, INFINITY), top);
    ck_assert_uint_eq(encode(name, -INFINITY), bottom);
}

// Halfway between neighbours: the even code, on both sides of zero.
static void check_ties(const char *name) {
    qg_format_info info = info_of(name);
    for (uint64_t code = 0; code < info.max_code; code++) {
        double middle = (qg_decode(&info, code) + qg_decode(&info, code + 1)) / 2;
        uint64_t even = code + (code & 1), minus = encode(name, -middle);
        REQUIRE(encode(name, middle) == even, "%s of %a", name, middle);
        REQUIRE(qg_decode(&info, minus) == -qg_decode(&info, even), "%s of %a", name, -middle);
    }
}

START_TEST(r03_beyond_the_largest_saturates_and_ties_go_to_even) {
    for (int i = 0; i < RLX_NAMED; i++) {
        check_saturation(rlx_named[i]);
        check_ties(rlx_named[i]);
    }
    for (int i = 0; i < RLX_MINIFLOATS; i++) {
        check_saturation(rlx_minifloat(i));
        check_ties(rlx_minifloat(i));
    }
}
END_TEST

// ---------------------------------------------------------------------------------------------- R4

typedef struct layout_facts {
    const char *recipe;
    int64_t rows, columns;
    int32_t dtype, rank;
    int64_t shape[2];
} layout_facts;

static const layout_facts layouts[] = {
    {"e4m3/per_tensor/amax",     18, 40,  QG_DTYPE_FP32, 1, {1}    },
    {"e5m2/per_tensor/amax",     1,  1,   QG_DTYPE_FP32, 1, {1}    },
    {"e4m3/group:32/rceil",      18, 40,  QG_DTYPE_U8,   2, {18, 2}},
    {"e4m3/group:32/rceil",      3,  64,  QG_DTYPE_U8,   2, {3, 2} },
    {"e2m1/group:7/rceil",       3,  15,  QG_DTYPE_U8,   2, {3, 3} },
    {"e2m1/group:16/amax_ue4m3", 37, 45,  QG_DTYPE_U8,   2, {37, 3}},
    {"e2m1/group:16/amax_ue4m3", 37, 48,  QG_DTYPE_U8,   2, {37, 3}},
    {"rlx_e4m3",                 4,  64,  QG_DTYPE_FP32, 1, {1}    },
    {"rlx_mxfp8",                4,  65,  QG_DTYPE_U8,   2, {4, 3} },
    {"rlx_nvfp4",                4,  100, QG_DTYPE_U8,   2, {4, 7} },
};

START_TEST(r04_layouts_give_scale_dtype_block_and_shape) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const layout_facts *f = &layouts[i];
        qg_tensor_type x = {
            QG_DTYPE_FP32, 2, {f->rows, f->columns}
        };
        qg_tensor_type scale = {
            f->dtype, f->rank, {f->shape[0], f->shape[1]}
        };
        qg_scaled_shape shape;
        ck_assert_int_eq(qg_scaled_shape_of(f->recipe, &x, &shape), QG_OK);
        ck_assert_msg(qg_tensor_equal(&shape.scale, &scale), "%s of %lld x %lld", f->recipe,
                      (long long)f->rows, (long long)f->columns);
        ck_assert_int_eq(shape.codes.dtype, QG_DTYPE_U8);
        ck_assert_int_eq(shape.codes.shape[1], f->columns);
        ck_assert(!shape.has_tensor_scale);
    }
}
END_TEST

// The last block is that of the elements that are there: amax 3 of 2 elements, not of 32 zeros.
START_TEST(r04_the_last_block_is_ragged) {
    float x[34];
    for (int i = 0; i < 34; i++)
        x[i] = i < 32 ? 448.0f : -896.0f;
    rlx_quantized q = rlx_quantize("emulator", "rlx_mxfp8", 1, 34, x);
    ck_assert_int_eq(q.shape.scales_size, 2);
    ck_assert_uint_eq(q.scales[0], 127);
    ck_assert_uint_eq(q.scales[1], 128);
    ck_assert_double_eq(rlx_value_of(&q, 0, 33), -896);
    rlx_discard(&q);
}
END_TEST

// ---------------------------------------------------------------------------------------------- R5

START_TEST(r05_zero_blocks_have_scale_1_and_come_back_as_zero) {
    static const char *const recipes[] = {"rlx_e4m3", "rlx_mxfp8", "rlx_nvfp4", "rlx_mxfp4x2"};
    static const uint32_t ones[] = {0x3f800000, 127, 0x38, 0x3f800000};
    static const char *const backends[] = {"emulator", "cpu"};
    static float zeros[3 * 40], back[3 * 40];
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 4; i++) {
            rlx_quantized q = rlx_quantize(backends[b], recipes[i], 3, 40, zeros);
            int bytes = ones[i] > 255 ? 4 : 1;
            for (int64_t at = 0; at < q.shape.scales_size; at += bytes)
                ck_assert_int_eq(memcmp(q.scales + at, &ones[i], (size_t)bytes), 0);
            for (int64_t at = 0; at < q.shape.codes_size; at++)
                ck_assert_uint_eq(q.codes[at], 0);
            ck_assert_int_eq(
                qg_backend_find(backends[b])
                    ->dequantize(&q.recipe, NULL, 3, 40, q.codes, q.scales, 1, 1, back, NULL),
                QG_OK);
            ck_assert_int_eq(memcmp(back, zeros, sizeof back), 0);
            rlx_discard(&q);
        }
}
END_TEST

// ---------------------------------------------------------------------------------------------- R6

// The stored exponent of a block whose largest magnitude is amax, less 127.
static int rceil_exponent(qg_recipe recipe, float amax, qg_counts *counts) {
    float x[32] = {amax / 4, -amax};
    uint8_t codes[32], scale;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
    REQUIRE(qg_emulator_quantize(&recipe, &options, 1, 32, x, codes, &scale, NULL, counts) == QG_OK,
            "%s", qg_detail());
    return scale - 127;
}

// The smallest power of two with amax <= F X, over all exponents and the mantissas around those
// where it changes: nothing saturates, and the power below would.
START_TEST(r06_ceil_rule_never_saturates_and_is_tight) {
    for (int f = 0; f < RLX_SWEEP; f++) {
        qg_recipe recipe = rlx_recipe(rlx_recipe_text(rlx_sweep[f], 1));
        qg_format_info info = info_of(rlx_sweep[f]);
        double largest = qg_format_max(&info);
        for (int e = -100; e <= 100; e++)
            for (int i = -40; i <= 40; i++) {
                uint32_t bits = qg_bits_of_float((float)ldexp(largest, e)) + (uint32_t)i;
                double amax = (double)qg_float_of_bits(bits);
                qg_counts counts;
                int got = rceil_exponent(recipe, (float)amax, &counts);
                REQUIRE(counts.saturated == 0, "%s: %a saturates", rlx_sweep[f], amax);
                REQUIRE(amax <= ldexp(largest, got) && amax > ldexp(largest, got - 1),
                        "%s: 2^%d of %a", rlx_sweep[f], got, amax);
            }
    }
}
END_TEST

START_TEST(r06_power_of_two_scales_are_reproduced) {
    qg_recipe recipe = rlx_recipe("rlx_mxfp8");
    for (int e = -127; e <= 119; e++) { // 448 * 2^119 is the last below FLT_MAX
        qg_counts counts;
        ck_assert_int_eq(rceil_exponent(recipe, (float)ldexp(448, e), &counts), e);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------------- R7

START_TEST(r07_nvfp4_scales_are_e4m3_of_amax_over_6) {
    slow_format *e4m3 = slow_format_create("ue4m3");
    slow_conversion rne = {SLOW_RNE, 0, 1, 0};
    for (uint32_t i = 0; i < 20000; i++) {
        float amax = qg_float_of_bits(0x3a000000u + i * 0x2a31u); // 2^-11 .. 14000
        float x[40] = {0};
        for (int j = 0; j < 40; j++)
            x[j] = j / 16 == 1 ? amax / 8 : j / 16 == 2 ? amax / 3 : 0.0f;
        x[5] = -amax;
        rlx_quantized q = rlx_quantize("cpu", "rlx_nvfp4", 1, 40, x);
        ck_assert_int_eq(q.shape.scales_size, 3);
        for (int group = 0; group < 3; group++) {
            float largest = group == 0 ? amax : group == 1 ? amax / 8 : amax / 3;
            uint64_t wanted = slow_encode(e4m3, (double)(largest / 6.0f), &rne, 0);
            REQUIRE(q.scales[group] == wanted, "%a: %02x, not %02x", (double)largest,
                    q.scales[group], (unsigned)wanted);
        }
        rlx_discard(&q);
    }
    slow_format_free(e4m3);
}
END_TEST

// ---------------------------------------------------------------------------------------------- R8

enum { HARD_M = 6, HARD_K = 40 };

// decode(encode(x / s)) * s from the stored scales alone. A power of two divides exactly.
static void expect_by_scale(const rlx_quantized *q, const float *x, const float *back,
                            const char *text) {
    slow_conversion rne = {SLOW_RNE, 0, 1, 0};
    for (int64_t i = 0; i < HARD_M * HARD_K; i++) {
        float s = rlx_scale_of(q, i / HARD_K, i % HARD_K);
        int exponent;
        double v = frexp((double)s, &exponent) == 0.5 ? (double)x[i] / (double)s
                                                      : (double)(float)(x[i] / s);
        if (s == 0.0f)
            v = copysign(0.0, (double)x[i]);
        uint64_t code = slow_encode(q->format, v, &rne, 0);
        REQUIRE(q->codes[i] == code, "%s: code of %a at scale %a is %02x, not %02x", text,
                (double)x[i], (double)s, q->codes[i], (unsigned)code);
        float wanted = (float)(slow_decode(q->format, code) * (double)s);
        REQUIRE(memcmp(&wanted, &back[i], sizeof wanted) == 0, "%s: %a, not %a", text,
                (double)back[i], (double)wanted);
    }
}

static void check_way_back(const char *backend, const char *text, const float *x) {
    float back[HARD_M * HARD_K];
    rlx_quantized q = rlx_quantize(backend, text, HARD_M, HARD_K, x);
    ck_assert_int_eq(qg_backend_find(backend)->dequantize(&q.recipe, NULL, HARD_M, HARD_K, q.codes,
                                                          q.scales, q.tensor_scale, 1, back, NULL),
                     QG_OK);
    expect_by_scale(&q, x, back, text);
    rlx_discard(&q);
}

// The 8 formats in the 3 layouts, K = 40 (ragged), denormals, -0 and +-1e30 among the elements.
START_TEST(r08_dequantized_values_are_decode_of_encode_times_scale_on_every_backend) {
    float x[HARD_M * HARD_K];
    for (int f = 0; f < RLX_SWEEP; f++)
        for (int layout = 0; layout < RLX_LAYOUTS; layout++) {
            const char *text = rlx_recipe_text(rlx_sweep[f], layout), *isa;
            rlx_hard((uint64_t)(f * RLX_LAYOUTS + layout), HARD_M * HARD_K, x);
            check_way_back("emulator", text, x);
            for (size_t i = 0; (isa = cpu_check_isa(i)) != NULL; i++) {
                ck_assert_int_eq(qg_cpu_use_isa(isa), QG_OK);
                check_way_back("cpu", text, x);
            }
            ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        r01_formats_encode_decode_and_have_fixed_points,
        r01_specials_are_where_the_table_says,
        r02_names_print_and_parse_as_the_same_format,
        r02_impossible_splits_are_refused_with_the_reason,
        r03_beyond_the_largest_saturates_and_ties_go_to_even,
        r04_layouts_give_scale_dtype_block_and_shape,
        r04_the_last_block_is_ragged,
        r05_zero_blocks_have_scale_1_and_come_back_as_zero,
        r06_ceil_rule_never_saturates_and_is_tight,
        r06_power_of_two_scales_are_reproduced,
        r07_nvfp4_scales_are_e4m3_of_amax_over_6,
        r08_dequantized_values_are_decode_of_encode_times_scale_on_every_backend,
    };
    return RUN_SUITE("rlx_formats", tests);
}
