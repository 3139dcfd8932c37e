// RLX's known defects 1 to 7 as tests: each states what must hold as a check, which the library
// passes and the defect, written out in tests/support/rlx_faults.c, fails, with its numbers.
//   1 d01_large_values_saturate                5 d05_groups_survive_at_any_magnitude
//   2 d02_infinity_in_a_block_shows              d05_the_largest_is_not_clipped
//     d02_infinity_in_a_tensor_spares_...      6 d06_exponents_are_not_below_amax_over_max
//     d02_nan_is_not_silent                    7 d07_zeros_keep_their_sign
//   3 d03_scale_and_codes_are_of_one_format
//   4 d04_fnuz_codes_are_read_as_fnuz, d04_native_fnuz_products_take_fnuz_formats
// (8, 9: test_rlx_defects_products; 10 to 13: test_rlx_defects_graph; 15, 16:
// test_rlx_defects_limits; 14: tests/kernels/test_rlx_device.)
#include <require.h>
#include <rlx_faults.h>
#include <run_suite.h>

#include <qg_recipe_name.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

// What quantizes: the library's two backends on this machine, and RLX.
typedef rlx_quantized (*quantizer)(const char *format, int layout, int64_t m, int64_t k,
                                   const float *x);

static rlx_quantized by_emulator(const char *format, int layout, int64_t m, int64_t k,
                                 const float *x) {
    return rlx_quantize("emulator", rlx_recipe_text(format, layout), m, k, x);
}
static rlx_quantized by_cpu(const char *format, int layout, int64_t m, int64_t k, const float *x) {
    return rlx_quantize("cpu", rlx_recipe_text(format, layout), m, k, x);
}
static rlx_quantized by_rlx(const char *format, int layout, int64_t m, int64_t k, const float *x) {
    return rlx_fault_quantize(format, format, layout, m, k, x);
}
static const quantizer ours[] = {by_emulator, by_cpu};
enum { OURS = 2, PER_TENSOR = 0, MX = 1, NVFP4 = 2 };

// What encodes without a scale.
typedef void (*encoder)(const char *format, int64_t count, const float *x, uint8_t *codes);

static void encode_by(const char *backend, const char *format, int64_t count, const float *x,
                      uint8_t *codes) {
    char text[64];
    snprintf(text, sizeof text, "%s/per_tensor/fixed:1", format);
    rlx_quantized q = rlx_quantize(backend, text, 1, count, x);
    memcpy(codes, q.codes, (size_t)count);
    rlx_discard(&q);
}
static void encode_by_emulator(const char *format, int64_t count, const float *x, uint8_t *codes) {
    encode_by("emulator", format, count, x, codes);
}
static void encode_by_cpu(const char *format, int64_t count, const float *x, uint8_t *codes) {
    encode_by("cpu", format, count, x, codes);
}
static void encode_by_rlx(const char *name, int64_t count, const float *x, uint8_t *codes) {
    slow_format *format = slow_format_create(name);
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)rlx_fault_encode(format, (double)x[i]);
    slow_format_free(format);
}
static const encoder our_encoders[] = {encode_by_emulator, encode_by_cpu};

// ----------------------------------------------------------------------------------------------- 1

enum { BINADES = 128 };

// Powers of two above the largest value, of both signs, that do not give the code of the largest.
static int large_values_lost(encoder encode, const char *name) {
    slow_format *format = slow_format_create(name);
    double largest = slow_value(format, slow_value_count(format) - 1);
    float x[2 * BINADES];
    uint8_t codes[2 * BINADES];
    int count = 0, lost = 0;
    for (int e = 0; e < BINADES; e++)
        if (ldexp(1, e) > largest) {
            x[count++] = (float)ldexp(1, e);
            x[count++] = (float)-ldexp(1, e);
        }
    encode(name, count, x, codes);
    for (int i = 0; i < count; i++)
        lost += slow_decode(format, codes[i]) != copysign(largest, (double)x[i]);
    slow_format_free(format);
    return lost;
}

START_TEST(d01_large_values_saturate) {
    for (int f = 0; f < RLX_SWEEP; f++) {
        for (int i = 0; i < OURS; i++)
            ck_assert_int_eq(large_values_lost(our_encoders[i], rlx_sweep[f]), 0);
        ck_assert_int_gt(large_values_lost(encode_by_rlx, rlx_sweep[f]), 100);
    }
    slow_format *e4m3 = slow_format_create("e4m3");
    ck_assert_double_eq(slow_decode(e4m3, rlx_fault_encode(e4m3, 0x1p60)), 448);
    ck_assert_double_eq(slow_decode(e4m3, rlx_fault_encode(e4m3, 0x1p61)), 384);
    ck_assert_double_eq(slow_decode(e4m3, rlx_fault_encode(e4m3, 0x1p62)), 320);
    for (int e = 63; e < BINADES; e++)
        ck_assert_uint_eq(rlx_fault_encode(e4m3, ldexp(1, e)), 0);
    ck_assert_double_eq(slow_decode(e4m3, rlx_fault_encode(e4m3, INFINITY)), 448);
    slow_format_free(e4m3);
}
END_TEST

// ----------------------------------------------------------------------------------------------- 2

enum { BLOCK = 32 };

static void with_element(float special, float x[BLOCK]) {
    for (int i = 0; i < BLOCK; i++)
        x[i] = i == 7 ? special : (i % 2 ? -1.0f : 1.0f) * (1.0f + (float)i / 32.0f);
}

// The infinite element is read back as infinity or NaN, not as a number.
static bool infinity_shows(rlx_quantized q) {
    float value = (float)rlx_value_of(&q, 0, 7);
    rlx_discard(&q);
    return !isfinite(value);
}

START_TEST(d02_infinity_in_a_block_shows) {
    static const char *const recipes[] = {"rlx_mxfp8", "mxfp8", "te_mxfp8", "e5m2/group:32/rceil"};
    static const char *const backends[] = {"emulator", "cpu"};
    float x[BLOCK];
    with_element(INFINITY, x);
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        for (int b = 0; b < OURS; b++)
            ck_assert_msg(infinity_shows(rlx_quantize(backends[b], recipes[i], 1, BLOCK, x)), "%s",
                          recipes[i]);
    ck_assert(!infinity_shows(by_rlx("e4m3", MX, 1, BLOCK, x)));
    // Its scale is 2^-127: 1 is lost there (defect 1), 2 overflows to 448 * 2^-127.
    rlx_quantized q = by_rlx("e4m3", MX, 1, BLOCK, x);
    ck_assert_uint_eq(q.scales[0], 0);
    ck_assert_double_eq(rlx_value_of(&q, 0, 0), 0);
    ck_assert_double_eq(rlx_value_of(&q, 0, 7), 448 * 0x1p-127);
    rlx_discard(&q);
}
END_TEST

// The finite members of the tensor are within half a step of E4M3.
static bool finite_members_survive(rlx_quantized q, const float *x) {
    bool good = true;
    for (int i = 0; i < BLOCK; i++)
        if (isfinite(x[i]))
            good = good && fabs(rlx_value_of(&q, 0, i) - (double)x[i]) <= fabs((double)x[i]) / 16;
    rlx_discard(&q);
    return good;
}

START_TEST(d02_infinity_in_a_tensor_spares_the_finite_members) {
    float x[BLOCK];
    with_element(-INFINITY, x);
    for (int i = 0; i < OURS; i++)
        ck_assert(finite_members_survive(ours[i]("e4m3", PER_TENSOR, 1, BLOCK, x), x));
    ck_assert(!finite_members_survive(by_rlx("e4m3", PER_TENSOR, 1, BLOCK, x), x));
    rlx_quantized q = by_rlx("e4m3", PER_TENSOR, 1, BLOCK, x);
    for (int i = 0; i < BLOCK; i++)
        ck_assert(isnan(rlx_value_of(&q, 0, i)));
    rlx_discard(&q);
}
END_TEST

// A NaN comes back as NaN, or is counted.
static bool nan_is_reported(const rlx_quantized *q, int64_t counted) {
    return isnan(rlx_value_of(q, 0, 7)) || counted == 1;
}

START_TEST(d02_nan_is_not_silent) {
    static const char *const recipes[] = {
        "e4m3/per_tensor/amax", "rlx_e4m3", "mxfp8", "rlx_mxfp8", "nvfp4", "rlx_nvfp4"};
    float x[BLOCK], tensor;
    with_element(NAN, x);
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        rlx_quantized q = rlx_quantize("emulator", recipes[i], 1, BLOCK, x);
        qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
        qg_counts counts;
        ck_assert_int_eq(qg_emulator_quantize(&q.recipe, &options, 1, BLOCK, x, q.codes, q.scales,
                                              &tensor, &counts),
                         QG_OK);
        ck_assert(nan_is_reported(&q, counts.nan));
        rlx_discard(&q);
    }
    rlx_quantized q = by_rlx("e4m3", PER_TENSOR, 1, BLOCK, x);
    ck_assert(!nan_is_reported(&q, 0)); // it counts nothing
    ck_assert_double_eq(rlx_value_of(&q, 0, 7), 0);
    rlx_discard(&q);
}
END_TEST

// -------------------------------------------------------------------------------------------- 3, 4

enum { UNIFORM = 1 << 14 };
static float uniform[UNIFORM];

static void fill_uniform(void) {
    for (int i = 0; i < UNIFORM; i++)
        uniform[i] = (float)((2.0 * i + 1.0 - UNIFORM) / UNIFORM);
}

typedef struct tensor_error {
    double rel_rms, cosine;
} tensor_error;

static tensor_error error_of(rlx_quantized q) {
    double ee = 0, xx = 0, qq = 0, xq = 0;
    for (int i = 0; i < UNIFORM; i++) {
        double x = (double)uniform[i], value = rlx_value_of(&q, 0, i);
        ee += (value - x) * (value - x);
        xx += x * x;
        qq += value * value;
        xq += value * x;
    }
    rlx_discard(&q);
    return (tensor_error){sqrt(ee / xx), xq / sqrt(xx * qq)};
}

// No element is off by more than half a step of 3 mantissa bits: evenly spread, 2^-4 / sqrt 3.
static bool noise_is_that_of_rounding(tensor_error e) { return e.rel_rms < 0x1p-4 / sqrt(3.0); }

START_TEST(d03_scale_and_codes_are_of_one_format) {
    fill_uniform();
    for (int i = 0; i < OURS; i++) {
        tensor_error e = error_of(ours[i]("e4m3fnuz", PER_TENSOR, 1, UNIFORM, uniform));
        ck_assert(noise_is_that_of_rounding(e));
        ck_assert_double_eq_tol(e.rel_rms, 0.0246, 0.0003);
    }
    // Scale amax/448, codes that end at 240: what lies above 53.6 % of amax is clipped.
    tensor_error e =
        error_of(rlx_fault_quantize("e4m3", "e4m3fnuz", PER_TENSOR, 1, UNIFORM, uniform));
    ck_assert(!noise_is_that_of_rounding(e));
    ck_assert_double_eq_tol(e.rel_rms, 0.3165, 0.0005);
    ck_assert_double_eq_tol(e.cosine, 0.977, 0.001);
}
END_TEST

// Every value is within half a step of what was quantized.
static bool reads_back(rlx_quantized q) {
    bool good = true;
    for (int i = 0; i < UNIFORM; i++) {
        double x = (double)uniform[i], step = fmax(fabs(x) / 16, 0x1p-18);
        good = good && fabs(rlx_value_of(&q, 0, i) - x) <= step;
    }
    rlx_discard(&q);
    return good;
}

START_TEST(d04_fnuz_codes_are_read_as_fnuz) {
    fill_uniform();
    for (int i = 0; i < OURS; i++)
        ck_assert(reads_back(ours[i]("e4m3fnuz", PER_TENSOR, 1, UNIFORM, uniform)));
    rlx_quantized q = by_emulator("e4m3fnuz", PER_TENSOR, 1, UNIFORM, uniform);
    rlx_quantized wrong = by_emulator("e4m3fnuz", PER_TENSOR, 1, UNIFORM, uniform);
    rlx_fault_read_as_e4m3(&wrong);
    for (int i = 0; i < UNIFORM; i++) // E4M3's all ones are NaN; else twice the value
        if ((q.codes[i] & 0x7f) == 0x7f)
            ck_assert(isnan(rlx_value_of(&wrong, 0, i)));
        else
            ck_assert_double_eq(rlx_value_of(&wrong, 0, i), 2 * rlx_value_of(&q, 0, i));
    ck_assert(isnan(rlx_value_of(&wrong, 0, UNIFORM - 1)));
    rlx_discard(&q);
    ck_assert(!reads_back(wrong));
}
END_TEST

// The unit of MI300 takes FNUZ operands, and takes no others for them.
START_TEST(d04_native_fnuz_products_take_fnuz_formats) {
    qg_unit unit;
    qg_recipe fnuz = rlx_recipe("e4m3fnuz"), bf8 = rlx_recipe("e5m2fnuz"), ocp = rlx_recipe("e4m3");
    ck_assert_int_eq(qg_unit_parse("cdna3_mfma", &unit), QG_OK);
    ck_assert_int_eq(qg_unit_takes(&unit, &fnuz, &fnuz, 64, QG_FORMAT_FP32), QG_OK);
    ck_assert_int_eq(qg_unit_takes(&unit, &fnuz, &bf8, 64, QG_FORMAT_FP32), QG_OK);
    ck_assert_int_eq(qg_unit_takes(&unit, &ocp, &ocp, 64, QG_FORMAT_FP32), QG_ERROR_UNSUPPORTED);
    ck_assert_int_eq(qg_unit_takes(&unit, &fnuz, &ocp, 64, QG_FORMAT_FP32), QG_ERROR_UNSUPPORTED);
}
END_TEST

// ----------------------------------------------------------------------------------------------- 5

enum { GROUP = 16 };

static rlx_quantized nvfp4_by_emulator(int64_t m, int64_t k, const float *x) {
    return rlx_quantize("emulator", "nvfp4", m, k, x);
}
static rlx_quantized nvfp4_by_cpu(int64_t m, int64_t k, const float *x) {
    return rlx_quantize("cpu", "nvfp4", m, k, x);
}
static rlx_quantized nvfp4_by_rlx(int64_t m, int64_t k, const float *x) {
    return by_rlx("e2m1", NVFP4, m, k, x);
}
typedef rlx_quantized (*nvfp4)(int64_t m, int64_t k, const float *x);
static const nvfp4 our_nvfp4[] = {nvfp4_by_emulator, nvfp4_by_cpu};

// A tensor of one group with this amax.
static rlx_quantized one_group(nvfp4 quantize, double amax) {
    float x[GROUP];
    for (int i = 0; i < GROUP; i++)
        x[i] = (float)(amax * (i - 7) / 8.0);
    return quantize(1, GROUP, x);
}

// Tensors that differ by a power of two have the same codes.
static bool magnitude_does_not_matter(nvfp4 quantize) {
    bool same = true;
    rlx_quantized at_1 = one_group(quantize, 1);
    for (int e = -40; e <= 40; e++) {
        rlx_quantized q = one_group(quantize, ldexp(1, e));
        same = same && memcmp(q.codes, at_1.codes, GROUP) == 0;
        rlx_discard(&q);
    }
    rlx_discard(&at_1);
    return same;
}

static double largest_of_group(nvfp4 quantize, double amax) {
    rlx_quantized q = one_group(quantize, amax);
    double largest = rlx_value_of(&q, 0, GROUP - 1);
    rlx_discard(&q);
    return largest;
}

START_TEST(d05_groups_survive_at_any_magnitude) {
    for (int i = 0; i < OURS; i++)
        ck_assert(magnitude_does_not_matter(our_nvfp4[i]));
    ck_assert(!magnitude_does_not_matter(nvfp4_by_rlx));
    // 6 * 2^-10 rounds to a scale of 0; the next binary32 does not. 448 * 6 is the last that fits.
    ck_assert_double_eq(largest_of_group(nvfp4_by_rlx, 0.005859375), 0);
    ck_assert_double_ne(largest_of_group(nvfp4_by_rlx, 0.00586), 0);
    ck_assert_double_eq(largest_of_group(nvfp4_by_rlx, 2688), 2688);
    ck_assert_double_eq(largest_of_group(nvfp4_by_rlx, 4000), 2688);
    ck_assert_double_eq_tol(largest_of_group(our_nvfp4[0], 4000), 4000, 0.001);
}
END_TEST

// 100 / 6 rounds down to 16, and 100 / 16 = 6.25 is beyond 6.
START_TEST(d05_the_largest_is_not_clipped) {
    for (int i = 0; i < OURS; i++)
        ck_assert_double_eq_tol(largest_of_group(our_nvfp4[i], 100), 100, 0.0001);
    ck_assert_double_eq(largest_of_group(nvfp4_by_rlx, 100), 96);
}
END_TEST

// ----------------------------------------------------------------------------------------------- 6

typedef uint8_t (*exponent_of)(float amax);

static uint8_t rceil_of(const char *backend, float amax) {
    float x[BLOCK] = {amax};
    rlx_quantized q = rlx_quantize(backend, "rlx_mxfp8", 1, BLOCK, x);
    uint8_t byte = q.scales[0];
    rlx_discard(&q);
    return byte;
}
static uint8_t rceil_by_emulator(float amax) { return rceil_of("emulator", amax); }
static uint8_t rceil_by_cpu(float amax) { return rceil_of("cpu", amax); }
static uint8_t rceil_by_rlx(float amax) { return rlx_fault_e8m0(amax / 448.0f); }
static uint8_t rceil_by_log2(float amax) { return rlx_fault_e8m0_at_best(amax / 448.0f); }

// How many of the values just above 448 * 2^k get the scale 2^k, at which they saturate.
static int scales_too_small(exponent_of byte, int k) {
    int count = 0;
    for (uint32_t i = 1; i <= 100; i++) {
        float amax = qg_float_of_bits(qg_bits_of_float((float)ldexp(448, k)) + i);
        count += (double)amax > ldexp(448, byte(amax) - 127);
    }
    return count;
}

// The first values above 2^k that have exponent k.
static int raw_scales_too_small(uint8_t (*byte)(float), int k) {
    int count = 0;
    float raw = (float)ldexp(1, k);
    while (byte(raw = nextafterf(raw, INFINITY)) == k + 127)
        count++;
    return count;
}

START_TEST(d06_exponents_are_not_below_amax_over_max) {
    static const int exponents[] = {4, 8, 16, 32, 64}, first[] = {1, 2, 5, 11, 22};
    int by_libm = 0;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(scales_too_small(rceil_by_emulator, exponents[i]), 0);
        ck_assert_int_eq(scales_too_small(rceil_by_cpu, exponents[i]), 0);
        ck_assert_int_gt(scales_too_small(rceil_by_log2, exponents[i]), 0);
        ck_assert_int_eq(raw_scales_too_small(rlx_fault_e8m0_at_best, exponents[i]), first[i]);
        by_libm += scales_too_small(rceil_by_rlx, exponents[i]) > 0;
    }
    ck_assert_int_gt(by_libm, 0); // how many depends on the library
}
END_TEST

// ----------------------------------------------------------------------------------------------- 7

// All finite bf16 within +-448.
enum { PATTERNS = 34754 };

// Codes that are not those of a conversion in hardware, which keeps the sign of zero.
static int codes_unlike_hardware(encoder encode) {
    static float x[PATTERNS];
    static uint8_t codes[PATTERNS];
    slow_format *e4m3 = slow_format_create("e4m3");
    slow_conversion rne = {SLOW_RNE, 0, 1, 0};
    int unlike = 0;
    for (uint32_t i = 0; i < PATTERNS; i++)
        x[i] = qg_float_of_bits(((i % 2) << 15 | i / 2) << 16);
    ck_assert_float_eq(x[PATTERNS - 1], -448);
    encode("e4m3", PATTERNS, x, codes);
    for (int i = 0; i < PATTERNS; i++) {
        uint64_t wanted = slow_encode(e4m3, (double)x[i], &rne, 0);
        unlike += codes[i] != wanted;
        REQUIRE(codes[i] == wanted || (codes[i] == 0 && wanted == 0x80), "%a", (double)x[i]);
    }
    slow_format_free(e4m3);
    return unlike;
}

START_TEST(d07_zeros_keep_their_sign) {
    for (int i = 0; i < OURS; i++)
        ck_assert_int_eq(codes_unlike_hardware(our_encoders[i]), 0);
    ck_assert_int_eq(codes_unlike_hardware(encode_by_rlx), 14977);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        d01_large_values_saturate,
        d02_infinity_in_a_block_shows,
        d02_infinity_in_a_tensor_spares_the_finite_members,
        d02_nan_is_not_silent,
        d03_scale_and_codes_are_of_one_format,
        d04_fnuz_codes_are_read_as_fnuz,
        d04_native_fnuz_products_take_fnuz_formats,
        d05_groups_survive_at_any_magnitude,
        d05_the_largest_is_not_clipped,
        d06_exponents_are_not_below_amax_over_max,
        d07_zeros_keep_their_sign,
    };
    return RUN_SUITE("rlx_defects_values", tests);
}
