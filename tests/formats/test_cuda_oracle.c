// NVIDIA's host conversions against ours: all binary16 and bfloat16 inputs, 2^20 structured floats,
// doubles around every tie, and every code decoded. Skipped without the toolkit's headers.
#include <run_suite.h>

#ifdef QG_HAVE_CUDA_HEADERS
#include <cuda_oracle.h>
#include <qg_format.h>

#include <math.h>

typedef uint8_t half_function(__half_raw), bfloat_function(__nv_bfloat16_raw);
typedef uint8_t float_function(float), double_function(double);

typedef struct conversion {
    const char *name;
    qg_format format;
    int mode, overflow;
    half_function *of_half; // NULL for E8M0
    bfloat_function *of_bfloat;
    float_function *of_float;
    double_function *of_double;
} conversion;

#define DEFINE_FROM(id, shape, from, suffix, type, a, b)                                           \
    static uint8_t id##_##suffix(type x) { return (uint8_t)ORACLE_##shape(from, x, a, b); }
#define DEFINE_WIDE(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b)                                    \
    DEFINE_FROM(id, shape, bfloat16raw, bfloat, __nv_bfloat16_raw, a, b)                           \
    DEFINE_FROM(id, shape, float, float, float, a, b)                                              \
    DEFINE_FROM(id, shape, double, double, double, a, b)
#define DEFINE_HALF(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b)                                    \
    DEFINE_FROM(id, shape, halfraw, half, __half_raw, a, b)
ORACLE_ELEMENTS(DEFINE_WIDE)
ORACLE_ELEMENTS(DEFINE_HALF)
ORACLE_SCALES(DEFINE_WIDE)

#define ROW(id, FORMAT_, MODE_, OVERFLOW_, half)                                                   \
    {#id,  QG_FORMAT_##FORMAT_, QG_ROUND_##MODE_, QG_OVERFLOW_##OVERFLOW_,                         \
     half, id##_bfloat,         id##_float,       id##_double},
#define ELEMENT_ROW(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b)                                    \
    ROW(id, FORMAT_, MODE_, OVERFLOW_, id##_half)
#define SCALE_ROW(id, FORMAT_, MODE_, OVERFLOW_, shape, a, b)                                      \
    ROW(id, FORMAT_, MODE_, OVERFLOW_, NULL)

static const conversion conversions[] = {ORACLE_ELEMENTS(ELEMENT_ROW) ORACLE_SCALES(SCALE_ROW)};
enum { CONVERSIONS = sizeof conversions / sizeof conversions[0] };

static void check(const conversion *c, double x, uint8_t theirs) {
    uint8_t ours = oracle_ours(c->format, c->mode, c->overflow, x);
    if (ours != theirs)
        ck_abort_msg("%s of %a: %02x, CUDA has %02x", c->name, x, ours, theirs);
}

static double decode_as(qg_format format, uint64_t code) {
    qg_format_info info = qg_format_describe(format);
    return qg_decode(&info, code);
}

START_TEST(all_half_and_bfloat_inputs) {
    for (int i = 0; i < CONVERSIONS; i++)
        for (unsigned code = 0; code < 65536; code++) {
            const conversion *c = &conversions[i];
            if (c->of_half)
                check(c, decode_as(QG_FORMAT_FP16, code),
                      c->of_half((__half_raw){(unsigned short)code}));
            check(c, decode_as(QG_FORMAT_BF16, code),
                  c->of_bfloat((__nv_bfloat16_raw){(unsigned short)code}));
        }
}
END_TEST

// Every sign, exponent and upper nine mantissa bits, with four patterns below: all ties of formats
// with up to eight mantissa bits, and what lies just beside them.
START_TEST(structured_floats) {
    static const uint32_t tails[] = {0, 1, 0x2000, 0x3fff};
    for (int i = 0; i < CONVERSIONS; i++)
        for (uint32_t top = 0; top < 1u << 18; top++)
            for (int tail = 0; tail < 4; tail++) {
                float x = qg_float_of_bits(top << 14 | tails[tail]);
                check(&conversions[i], (double)x, conversions[i].of_float(x));
            }
}
END_TEST

// NaN is left out: from double CUDA keeps its sign.
START_TEST(doubles_around_ties) {
    for (int i = 0; i < CONVERSIONS; i++)
        for (int exponent = -160; exponent <= 140; exponent++)
            for (int sixteenth = 0; sixteenth < 16; sixteenth++) {
                double x = ldexp(1 + sixteenth / 16.0, exponent);
                double inputs[] = {x, nextafter(x, 0), nextafter(x, INFINITY)};
                for (int j = 0; j < 3; j++) {
                    check(&conversions[i], inputs[j], conversions[i].of_double(inputs[j]));
                    check(&conversions[i], -inputs[j], conversions[i].of_double(-inputs[j]));
                }
            }
}
END_TEST

static void check_decoded(qg_format format, qg_format target, unsigned code, uint16_t theirs) {
    qg_format_info info = qg_format_describe(target);
    qg_conversion c = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    uint64_t ours = qg_encode(&info, decode_as(format, code), &c, 0);
    ck_assert_msg(ours == theirs, "code %02x of format %u: %04x, CUDA has %04x", code, format,
                  (unsigned)ours, theirs);
}

START_TEST(every_code_decoded) {
    for (unsigned code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code;
        check_decoded(QG_FORMAT_E4M3, QG_FORMAT_FP16, code,
                      __nv_cvt_fp8_to_halfraw(byte, __NV_E4M3).x);
        check_decoded(QG_FORMAT_E5M2, QG_FORMAT_FP16, code,
                      __nv_cvt_fp8_to_halfraw(byte, __NV_E5M2).x);
        check_decoded(QG_FORMAT_E8M0, QG_FORMAT_BF16, code, __nv_cvt_e8m0_to_bf16raw(byte).x);
        if (code < 64) {
            check_decoded(QG_FORMAT_E2M3, QG_FORMAT_FP16, code,
                          __nv_cvt_fp6_to_halfraw(byte, __NV_E2M3).x);
            check_decoded(QG_FORMAT_E3M2, QG_FORMAT_FP16, code,
                          __nv_cvt_fp6_to_halfraw(byte, __NV_E3M2).x);
        }
        if (code < 16)
            check_decoded(QG_FORMAT_E2M1, QG_FORMAT_FP16, code,
                          __nv_cvt_fp4_to_halfraw(byte, __NV_E2M1).x);
    }
}
END_TEST

// Two FP4 codes share a byte: element 0 in the low nibble.
START_TEST(packing_of_two_fp4_codes) {
    float2 pair = {1.0f, -6.0f};
    ck_assert_uint_eq(__nv_cvt_float2_to_fp4x2(pair, __NV_E2M1, cudaRoundNearest), 0xF2);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {all_half_and_bfloat_inputs, structured_floats,
                                  doubles_around_ties, every_code_decoded,
                                  packing_of_two_fp4_codes};
    return RUN_SUITE("cuda_oracle", tests);
}

#else

int main(void) { return 77; } // skipped

#endif
