// Encoding against the independent slow model: all binary16 and bfloat16 inputs, and every value,
// every tie and their neighbours, in every rounding mode, overflow mode and NaN policy.
// ctest-timeout: 900
#include <format_cases.h>
#include <qg_format_name.h>
#include <qg_philox.h>
#include <run_suite.h>
#include <slow_model.h>

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct subject {
    const char *name;
    qg_format_info info;
    slow_format *slow;
} subject;

static subject subject_create(const char *name) {
    subject s = {.name = name};
    qg_format format;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s: %s", name, qg_detail());
    s.info = qg_format_describe(format);
    s.slow = slow_format_create(name);
    ck_assert_msg(s.slow != NULL, "the slow model lacks %s", name);
    return s;
}

static int slow_mode(int mode) {
    switch (mode) {
    case QG_ROUND_RNE: return SLOW_RNE;
    case QG_ROUND_RNA: return SLOW_RNA;
    case QG_ROUND_RTZ: return SLOW_RTZ;
    case QG_ROUND_RTP: return SLOW_RTP;
    case QG_ROUND_RTN: return SLOW_RTN;
    case QG_ROUND_RTO: return SLOW_RTO;
    case QG_ROUND_STOCHASTIC_A: return SLOW_STOCHASTIC_A;
    case QG_ROUND_STOCHASTIC_B: return SLOW_STOCHASTIC_B;
    default: return SLOW_STOCHASTIC_C;
    }
}

static void check_mode(const subject *s, double x, const slow_place *place, qg_rounding rounding,
                       uint32_t word) {
    for (int policy = 0; policy < (place->is_nan ? 4 : 2); policy++) {
        int saturates = policy % 2, nan_to_zero = policy / 2;
        qg_conversion c = {rounding, saturates ? QG_OVERFLOW_SATURATE : QG_OVERFLOW_FORMAT,
                           nan_to_zero ? QG_NAN_TO_ZERO : QG_NAN_TO_MAX};
        slow_conversion slow = {slow_mode(rounding.mode), rounding.bits, saturates, nan_to_zero};
        uint64_t got = qg_encode(&s->info, x, &c, word);
        uint64_t want = slow_round(s->slow, place, &slow, word);
        if (got != want)
            ck_abort_msg("%s of %a: mode %d, %d bits, word %08x, %s: %llx, not %llx", s->name, x,
                         rounding.mode, rounding.bits, word, saturates ? "saturate" : "format",
                         (unsigned long long)got, (unsigned long long)want);
    }
}

static void check_fixed_modes(const subject *s, double x, const slow_place *place) {
    for (int mode = 0; mode < QG_ROUND_STOCHASTIC_A; mode++)
        check_mode(s, x, place, (qg_rounding){(uint8_t)mode, 0}, 0);
}

static void check_stochastic_modes(const subject *s, double x, const slow_place *place,
                                   uint32_t random) {
    static const uint8_t widths[] = {1, 2, 3, 8, 13, 16, 24, 31, 32};
    const uint32_t words[] = {0, 0xffffffff, 0x80000000, 0x7fffffff, random};
    for (int mode = QG_ROUND_STOCHASTIC_A; mode < QG_ROUND_COUNT; mode++)
        for (size_t w = 0; w < sizeof widths; w++)
            for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                check_mode(s, x, place, (qg_rounding){(uint8_t)mode, widths[w]}, words[i]);
}

static void check_input(const subject *s, double x, int with_stochastic, uint64_t index) {
    slow_place place = slow_locate(s->slow, x);
    check_fixed_modes(s, x, &place);
    if (with_stochastic)
        check_stochastic_modes(s, x, &place, qg_philox_word(3, QG_STREAM_ROUNDING, index));
}

// ------------------------------------------------------------------------- every 16-bit number

enum { STOCHASTIC_STRIDE = 61 }; // coprime to the 16-bit formats' structure

static void check_all_codes_as_inputs(const subject *s, const slow_format *source) {
    for (uint64_t code = 0; code < 65536; code++)
        check_input(s, slow_decode(source, code), code % STOCHASTIC_STRIDE == 0, code);
}

START_TEST(all_half_and_bfloat_inputs) {
    slow_format *half = slow_format_create("fp16"), *bfloat = slow_format_create("bf16");
    for (size_t i = 0; narrow_format(i); i++) {
        subject s = subject_create(narrow_format(i));
        check_all_codes_as_inputs(&s, half);
        check_all_codes_as_inputs(&s, bfloat);
        slow_format_free(s.slow);
    }
    subject to_half = subject_create("fp16"), to_bfloat = subject_create("bf16");
    check_all_codes_as_inputs(&to_half, bfloat);
    check_all_codes_as_inputs(&to_bfloat, half);
    slow_format_free(to_half.slow);
    slow_format_free(to_bfloat.slow);
    slow_format_free(half);
    slow_format_free(bfloat);
}
END_TEST

// ------------------------------------------------------------------ ties and their neighbours

static void check_around(const subject *s, double x, int with_stochastic, uint64_t index) {
    double inputs[5] = {x, nextafter(x, 0), nextafter(x, INFINITY)};
    size_t count = 3;
    if ((double)(float)x == x) {
        inputs[count++] = nextafterf((float)x, 0);
        inputs[count++] = nextafterf((float)x, INFINITY);
    }
    for (size_t i = 0; i < count; i++) {
        check_input(s, inputs[i], with_stochastic, index + i);
        check_input(s, -inputs[i], with_stochastic, index + i);
    }
}

static void check_all_ties(const subject *s, uint64_t stochastic_stride) {
    size_t count = slow_value_count(s->slow);
    for (size_t rank = 0; rank < count; rank++) {
        double low = slow_value(s->slow, rank);
        double high =
            rank + 1 < count ? slow_value(s->slow, rank + 1) : slow_above_largest(s->slow);
        int with_stochastic = rank % stochastic_stride == 0 || rank + 1 == count;
        check_around(s, low, with_stochastic, rank * 10);
        check_around(s, low + (high - low) / 2, with_stochastic, rank * 10 + 5);
        check_input(s, low + (high - low) / 4, with_stochastic, rank);
        check_input(s, low + (high - low) * 0.875, with_stochastic, rank);
    }
    check_around(s, slow_above_largest(s->slow), 1, 0);
    check_around(s, slow_value(s->slow, 0) / 2, 1, 0);
    for (int n = 1; n <= 40; n++) // ties of the stochastic modes' last bit, and far below it
        check_around(s, ldexp(slow_value(s->slow, 1), -n), 1, (uint64_t)n);
}

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// Zeros, infinities, NaNs of both signs and several payloads, the ends of binary64 and binary32.
static void check_special_inputs(const subject *s) {
    const double inputs[] = {0.0,       INFINITY, NAN,         DBL_MAX,  DBL_MIN,
                             0x1p-1074, FLT_MAX,  FLT_MIN,     0x1p-149, 0x1p-150,
                             0x1p128,   0x1p62,   0x1p63,      0x1p64,   0x1p65,
                             0x1p-64,   0x1p-63,  0x1.8p-1060, 0x1p1000, 0x1.fffffffffffffp-1023};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        check_input(s, inputs[i], 1, i);
        check_input(s, -inputs[i], 1, i);
    }
    check_input(s, double_of(0x7ff0000000000001), 1, 0);
    check_input(s, double_of(0xfff0000000000001), 1, 0);
    check_input(s, double_of(0xffffffffffffffff), 1, 0);
    for (int exponent = -1074; exponent <= 1023; exponent++)
        check_around(s, ldexp(1.0, exponent), 0, 0);
}

START_TEST(ties_of_narrow_formats) {
    for (size_t i = 0; narrow_format(i); i++) {
        subject s = subject_create(narrow_format(i));
        check_all_ties(&s, 3);
        check_special_inputs(&s);
        slow_format_free(s.slow);
    }
}
END_TEST

START_TEST(ties_of_bf16_fp16_tf32) {
    static const char *const names[] = {"bf16", "fp16", "tf32"};
    for (size_t i = 0; i < 3; i++) {
        subject s = subject_create(names[i]);
        check_all_ties(&s, 1009);
        check_special_inputs(&s);
        slow_format_free(s.slow);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {all_half_and_bfloat_inputs, ties_of_narrow_formats,
                                  ties_of_bf16_fp16_tf32};
    return RUN_SUITE("codec_slow_model", tests);
}
