// Every code of every format: decoding equals the slow model's to the bit, and encoding what was
// decoded gives the code back in every rounding and overflow mode. fp32 and fp64, which the slow
// model does not hold, are checked against the processor's own conversions.
#include <format_cases.h>
#include <qg_format_name.h>
#include <qg_philox.h>
#include <run_suite.h>
#include <slow_model.h>

#include <fenv.h>
#include <float.h>
#include <math.h>

static qg_format_info describe(const char *name) {
    qg_format format;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s: %s", name, qg_detail());
    return qg_format_describe(format);
}

static int same_value(double a, double b) {
    return (isnan(a) && isnan(b)) || qg_bits_of_double(a) == qg_bits_of_double(b);
}

// The code that encoding a code's value must give; the lowest code of the symmetric integers is
// never produced.
static uint64_t expected(const qg_format_info *info, uint64_t code) {
    uint64_t lowest = 1ull << (info->bits - 1);
    if (info->kind == QG_KIND_INT && code == lowest && info->min_code == info->max_code)
        return code + 1;
    return code;
}

static void check_round_trip(const char *name, const qg_format_info *info, uint64_t code,
                             double value) {
    for (int mode = 0; mode < QG_ROUND_COUNT; mode++)
        for (int overflow = 0; overflow < 2; overflow++) {
            if (isnan(value) || (isinf(value) && overflow == QG_OVERFLOW_SATURATE))
                continue;
            qg_conversion conversion = {
                {(uint8_t)mode, 16},
                (uint8_t)overflow, QG_NAN_TO_MAX
            };
            uint64_t back = qg_encode(info, value, &conversion, 0xffffffff);
            if (back != expected(info, code))
                ck_abort_msg("%s: code %llx decodes to %a and encodes to %llx in mode %d", name,
                             (unsigned long long)code, value, (unsigned long long)back, mode);
        }
}

static void check_format(const char *name) {
    qg_format_info info = describe(name);
    slow_format *slow = slow_format_create(name);
    ck_assert_msg(slow != NULL, "the slow model lacks %s", name);
    ck_assert_int_eq(info.bits, slow_format_bits(slow));
    for (uint64_t i = 0; i < slow_code_count(slow); i++) {
        uint64_t code = slow_code(slow, i);
        double value = qg_decode(&info, code);
        if (!same_value(value, slow_decode(slow, code)))
            ck_abort_msg("%s: code %llx is %a, not %a", name, (unsigned long long)code, value,
                         slow_decode(slow, code));
        check_round_trip(name, &info, code, value);
    }
    slow_format_free(slow);
}

START_TEST(codes_of_narrow_formats) {
    size_t count = 0;
    for (; narrow_format(count); count++)
        check_format(narrow_format(count));
    ck_assert_uint_eq(count, 20 + 28 + 28 + 11);
}
END_TEST

START_TEST(codes_of_bf16_fp16_tf32) {
    check_format("bf16");
    check_format("fp16");
    check_format("tf32");
}
END_TEST

// The low 13 bits of a TF32 word are not read.
START_TEST(unused_bits_of_tf32) {
    qg_format_info info = describe("tf32");
    ck_assert_double_eq(qg_decode(&info, 0x3f800000), 1.0);
    ck_assert_double_eq(qg_decode(&info, 0x3f801fff), 1.0);
    ck_assert_double_eq(qg_decode(&info, 0xbf803fff), -(1.0 + 0x1p-10));
}
END_TEST

// Codes with bits above the format's width are no codes.
START_TEST(codes_beyond_the_width_are_nan) {
    qg_format_info e2m1 = describe("e2m1"), ue4m3 = describe("ue4m3"), twin = describe("f8e4m3b7");
    ck_assert_double_nan(qg_decode(&e2m1, 0x10));
    ck_assert_double_nan(qg_decode(&ue4m3, 0x80));
    ck_assert_double_nan(qg_decode(&twin, 0x100));
}
END_TEST

// ------------------------------------------------------------------------------- fp32 and fp64

static uint32_t processor_code(double x, int fenv_mode) {
    volatile double source = x;
    fesetround(fenv_mode);
    volatile float result = (float)source;
    fesetround(FE_TONEAREST);
    return qg_bits_of_float(result);
}

static void check_fp32(const qg_format_info *info, double x) {
    static const int modes[][2] = {
        {QG_ROUND_RNE, FE_TONEAREST },
        {QG_ROUND_RTZ, FE_TOWARDZERO},
        {QG_ROUND_RTP, FE_UPWARD    },
        {QG_ROUND_RTN, FE_DOWNWARD  }
    };
    for (size_t i = 0; i < 4; i++) {
        qg_conversion conversion = {
            {(uint8_t)modes[i][0], 0},
            QG_OVERFLOW_FORMAT, 0
        };
        uint64_t got = qg_encode(info, x, &conversion, 0), want = processor_code(x, modes[i][1]);
        if (got != want)
            ck_abort_msg("fp32 of %a in mode %d: %llx, not %llx", x, modes[i][0],
                         (unsigned long long)got, (unsigned long long)want);
    }
}

// Doubles around floats, midpoints of floats, and quarter points, in every binade of both formats.
START_TEST(fp32_rounds_like_the_processor) {
    qg_format_info info = describe("fp32");
    static const uint64_t tails[] = {0,          1,          0x08000000, 0x0fffffff,
                                     0x10000000, 0x10000001, 0x18000000, 0x1fffffff};
    for (uint64_t field = 0; field < 0x7ff; field++)
        for (uint64_t i = 0; i < 6; i++)
            for (size_t tail = 0; tail < 8; tail++) {
                uint64_t top =
                    i < 4 ? qg_philox_word(7, 0, field * 4 + i) >> 9 : (i - 4) * 0x7fffff;
                double x = qg_double_of_bits(field << 52 | top << 29 | tails[tail]);
                check_fp32(&info, x);
                check_fp32(&info, -x);
            }
    check_fp32(&info, INFINITY);
    check_fp32(&info, -INFINITY);
}
END_TEST

START_TEST(fp32_decodes_to_the_float) {
    qg_format_info info = describe("fp32");
    for (uint64_t i = 0; i < 1 << 20; i++) {
        uint32_t bits = (uint32_t)(i * 4099);
        if (!same_value(qg_decode(&info, bits), (double)qg_float_of_bits(bits)))
            ck_abort_msg("fp32: code %08x is %a", bits, qg_decode(&info, bits));
    }
}
END_TEST

START_TEST(fp64_is_the_identity) {
    qg_format_info info = describe("fp64");
    for (uint64_t i = 0; i < 1 << 18; i++) {
        uint64_t bits = i << 46 | (uint64_t)qg_philox_word(8, 0, i) << 14 | (i & 0x3fff);
        bits = i % 3 ? bits : i << 46; // powers of two and short mantissas too
        double x = qg_double_of_bits(bits);
        if (!same_value(qg_decode(&info, bits), x))
            ck_abort_msg("fp64: code %llx is %a", (unsigned long long)bits, qg_decode(&info, bits));
        if (!isnan(x))
            check_round_trip("fp64", &info, bits, x);
    }
    check_round_trip("fp64", &info, 1, 0x1p-1074);
    check_round_trip("fp64", &info, qg_bits_of_double(DBL_MAX), DBL_MAX);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {codes_of_narrow_formats,
                                  codes_of_bf16_fp16_tf32,
                                  unused_bits_of_tf32,
                                  codes_beyond_the_width_are_nan,
                                  fp32_rounds_like_the_processor,
                                  fp32_decodes_to_the_float,
                                  fp64_is_the_identity};
    return RUN_SUITE("format_codes", tests);
}
