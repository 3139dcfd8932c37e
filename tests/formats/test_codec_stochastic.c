// Stochastic rounding: the exact number of random words that round up, for every variant, over all
// words of N = 1 .. 4 bits and 1024 fractions (P3109 interim report v4.0, 4.7.4), and its bias.
#include <qg_codec.h>
#include <run_suite.h>

#include <math.h>

enum { FRACTIONS = 1024 };

// Words of N bits, of all 2^N, that must round fraction i / 1024 up.
static int64_t want_ups(int mode, int64_t i, int n) {
    int64_t scaled = i << n, whole = scaled / FRACTIONS, rest = scaled % FRACTIONS;
    switch (mode) {
    case QG_ROUND_STOCHASTIC_A: return whole;
    case QG_ROUND_STOCHASTIC_B: return ((2 * scaled) / FRACTIONS + 1) / 2;
    default: return whole + (rest > FRACTIONS / 2 || (rest == FRACTIONS / 2 && whole % 2));
    }
}

static int64_t count_ups(const qg_format_info *info, double low, double x, int mode, int n) {
    qg_conversion conversion = {
        {(uint8_t)mode, (uint8_t)n},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    int64_t ups = 0;
    for (uint32_t r = 0; r < 1u << n; r++) {
        uint32_t word = r << (32 - n);
        uint64_t code = qg_encode(info, x, &conversion, word);
        ups += fabs(qg_decode(info, code)) > low;
        // Only the top bits of the word count.
        if (code != qg_encode(info, x, &conversion, word | ((1u << (32 - n)) - 1)))
            ck_abort_msg("low bits of the word count: %a, mode %d, %d bits", x, mode, n);
    }
    return ups;
}

static void check_step(qg_format format, double low, double step, int is_signed) {
    qg_format_info info = qg_format_describe(format);
    for (int mode = QG_ROUND_STOCHASTIC_A; mode < QG_ROUND_COUNT; mode++)
        for (int n = 1; n <= 4; n++)
            for (int64_t i = 0; i < FRACTIONS; i++) {
                double x = low + (double)i / FRACTIONS * step;
                int64_t want = want_ups(mode, i, n), ups = count_ups(&info, low, x, mode, n);
                int64_t of_negative = is_signed ? count_ups(&info, low, -x, mode, n) : want;
                if (ups != want || of_negative != want)
                    ck_abort_msg("+-%a, mode %d, %d bits: %d and %d ups, not %d", x, mode, n,
                                 (int)ups, (int)of_negative, (int)want);
            }
}

START_TEST(exact_probabilities) {
    check_step(QG_FORMAT_E4M3, 1.0, 0x1p-3, 1);
    check_step(QG_FORMAT_E4M3, 1.125, 0x1p-3, 1);  // odd code
    check_step(QG_FORMAT_E4M3, 0, 0x1p-9, 1);      // zero to the first subnormal
    check_step(QG_FORMAT_E4M3, 0x1p-9, 0x1p-9, 1); // subnormals
    check_step(QG_FORMAT_E5M2, 1.75, 0x1p-2, 1);   // across a binade
    check_step(QG_FORMAT_E2M1, 4, 2, 1);
    check_step(QG_FORMAT_E2M1, 0, 0.5, 1);
    check_step(QG_FORMAT_MXINT8, 1.5, 0x1p-6, 1);
    check_step(QG_FORMAT_E8M0, 2, 2, 0);
    check_step(QG_FORMAT_UE4M3, 1.0, 0x1p-3, 0);
    check_step(QG_FORMAT_BF16, 1.0, 0x1p-7, 1);
    check_step(QG_FORMAT_FP32, 1.0, 0x1p-23, 1);
}
END_TEST

// At the largest value, rounding up overflows: as often as it rounds up elsewhere.
START_TEST(overflow_has_the_same_probability) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E5M2);
    for (int64_t i = 0; i < FRACTIONS; i++) {
        double x = 57344 + (double)i / FRACTIONS * 8192;
        ck_assert_int_eq(count_ups(&info, 57344, x, QG_ROUND_STOCHASTIC_A, 4),
                         want_ups(QG_ROUND_STOCHASTIC_A, i, 4));
    }
}
END_TEST

// Over the midpoints of 1024 equal parts of a step, the mean of (rounded - exact) is exactly
// -2^-(N+1) of the step for A, and 0 for B and C.
START_TEST(mean_bias) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E4M3);
    for (int mode = QG_ROUND_STOCHASTIC_A; mode < QG_ROUND_COUNT; mode++)
        for (int n = 1; n <= 4; n++) {
            int64_t sum = 0; // in units of 2^-n / 2048 of the step
            for (int64_t i = 0; i < FRACTIONS; i++) {
                double x = 1.0 + (double)(2 * i + 1) / (2 * FRACTIONS) * 0x1p-3;
                sum += 2 * FRACTIONS * count_ups(&info, 1.0, x, mode, n) - ((2 * i + 1) << n);
            }
            int64_t want = mode == QG_ROUND_STOCHASTIC_A ? -FRACTIONS * FRACTIONS : 0;
            ck_assert_int_eq(sum, want);
        }
}
END_TEST

// A tie between two E4M3 values goes up for exactly half of all 16-bit words.
START_TEST(a_tie_goes_up_half_the_time) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E4M3);
    for (int mode = QG_ROUND_STOCHASTIC_A; mode < QG_ROUND_COUNT; mode++) {
        ck_assert_int_eq(count_ups(&info, 1.0, 1.0625, mode, 16), 1 << 15);
        ck_assert_int_eq(count_ups(&info, 1.0, 1.0, mode, 16), 0);
    }
}
END_TEST

// Bits of the source below what N random bits can see: A ignores them, B and C round them.
START_TEST(bits_beyond_the_random_ones) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E2M1);
    double almost = nextafter(1.5, 0); // fraction 1 - 2^-52 of the step from 1 to 1.5
    ck_assert_int_eq(count_ups(&info, 1.0, almost, QG_ROUND_STOCHASTIC_A, 8), 255);
    ck_assert_int_eq(count_ups(&info, 1.0, almost, QG_ROUND_STOCHASTIC_B, 8), 256);
    ck_assert_int_eq(count_ups(&info, 1.0, almost, QG_ROUND_STOCHASTIC_C, 8), 256);
    double tiny = 0x1p-200; // only the sticky bit remembers it
    for (int mode = QG_ROUND_STOCHASTIC_A; mode < QG_ROUND_COUNT; mode++)
        ck_assert_int_eq(count_ups(&info, 0.0, tiny, mode, 8), 0);
    // Half a unit of the last random bit: C ties to even, a sticky bit far below breaks the tie.
    double tie = 0x1p-10; // fraction 2^-9 of 0.5
    ck_assert_int_eq(count_ups(&info, 0.0, tie, QG_ROUND_STOCHASTIC_C, 8), 0);
    ck_assert_int_eq(count_ups(&info, 0.0, nextafter(tie, 1), QG_ROUND_STOCHASTIC_C, 8), 1);
    ck_assert_int_eq(count_ups(&info, 0.0, tie, QG_ROUND_STOCHASTIC_B, 8), 1);
    ck_assert_int_eq(count_ups(&info, 0.0, nextafter(tie, 0), QG_ROUND_STOCHASTIC_B, 8), 0);
}
END_TEST

// With many random bits, what breaks C's tie may lie below the 64 bits of fraction that are kept.
START_TEST(a_tie_broken_by_the_sticky_bit) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E2M1);
    for (int n = 8; n <= 32; n++) {
        double tie = ldexp(0.5, -(n + 1));
        qg_conversion c = {
            {QG_ROUND_STOCHASTIC_C, (uint8_t)n},
            QG_OVERFLOW_FORMAT, 0
        };
        ck_assert_uint_eq(qg_encode(&info, tie, &c, 0xffffffff), 0);
        ck_assert_uint_eq(qg_encode(&info, nextafter(tie, 0), &c, 0xffffffff), 0);
        ck_assert_uint_eq(qg_encode(&info, nextafter(tie, 1), &c, 0xffffffff), 1);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {exact_probabilities,
                                  overflow_has_the_same_probability,
                                  mean_bias,
                                  a_tie_goes_up_half_the_time,
                                  bits_beyond_the_random_ones,
                                  a_tie_broken_by_the_sticky_bit};
    return RUN_SUITE("codec_stochastic", tests);
}
