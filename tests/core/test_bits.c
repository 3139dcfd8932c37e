// Exponents, fractions and powers of two against the C library, over every exponent.
#include <qg_bits.h>
#include <run_suite.h>

#include <float.h>
#include <math.h>

static void check_float(uint32_t bits) {
    float x = qg_float_of_bits(bits);
    int exponent;
    float fraction = frexpf(fabsf(x), &exponent); // in [0.5, 1)
    ck_assert_int_eq(qg_float_exponent(x), exponent - 1);
    ck_assert_uint_eq(qg_float_fraction(x), (uint32_t)(ldexp(fraction, 24)) - (1u << 23));
}

START_TEST(float_exponent_and_fraction_of_every_binade) {
    static const uint32_t fractions[] = {0, 1, 2, 0x400000, 0x555555, 0x7ffffe, 0x7fffff};
    for (uint32_t field = 0; field < 255; field++)
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++)
            for (uint32_t sign = 0; sign < 2; sign++)
                if (field || fractions[i])
                    check_float(sign << 31 | field << 23 | fractions[i]);
}
END_TEST

START_TEST(float_exponent_of_every_subnormal_length) {
    for (int bit = 0; bit < 23; bit++) {
        check_float(1u << bit);
        check_float((1u << bit) | 1u);
        check_float((2u << bit) - 1);
    }
}
END_TEST

START_TEST(double_exponent_of_every_binade) {
    for (int e = -1074; e <= 1023; e++) {
        double x = ldexp(1.0, e);
        ck_assert_int_eq(qg_double_exponent(x), e);
        ck_assert_int_eq(qg_double_exponent(-x), e);
        ck_assert_int_eq(qg_double_exponent(nextafter(x, INFINITY)), e == -1074 ? -1073 : e);
        if (e > -1074)
            ck_assert_int_eq(qg_double_exponent(nextafter(x, 0)), e - 1);
    }
    ck_assert_int_eq(qg_double_exponent(DBL_MAX), 1023);
}
END_TEST

START_TEST(powers_of_two) {
    for (int e = -1200; e <= 1200; e++) {
        ck_assert_uint_eq(qg_bits_of_double(qg_double_pow2(e)), qg_bits_of_double(ldexp(1.0, e)));
        float want = e < -149 ? 0.0f : ldexpf(1.0f, e); // not 2^-150, which ldexp may round up
        ck_assert_uint_eq(qg_bits_of_float(qg_float_pow2(e)), qg_bits_of_float(want));
    }
}
END_TEST

START_TEST(classes) {
    static const uint32_t edges[] = {0,          1,          0x007fffff, 0x00800000, 0x7f7fffff,
                                     0x7f800000, 0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fffffff};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            float x = qg_float_of_bits(edges[i] | sign << 31);
            ck_assert_int_eq(qg_float_is_nan(x), isnan(x) != 0);
            ck_assert_int_eq(qg_float_is_inf(x), isinf(x) != 0);
            ck_assert_int_eq(qg_float_is_finite(x), isfinite(x) != 0);
            ck_assert_uint_eq(qg_bits_of_float(qg_float_abs(x)), edges[i]);
        }
}
END_TEST

// floor(log2f(x)) fails here on common C libraries.
START_TEST(just_below_a_power_of_two) {
    ck_assert_int_eq(qg_float_exponent(nextafterf(256, 0)), 7);
    ck_assert_int_eq(qg_double_exponent(nextafter(256, 0)), 7);
    for (uint32_t ulps = 1; ulps <= 64; ulps++)
        for (uint32_t field = 1; field < 255; field++)
            ck_assert_int_eq(qg_float_exponent(qg_float_of_bits((field << 23) - ulps + (1u << 23))),
                             (int)field - 127);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {float_exponent_and_fraction_of_every_binade,
                                  float_exponent_of_every_subnormal_length,
                                  double_exponent_of_every_binade,
                                  powers_of_two,
                                  classes,
                                  just_below_a_power_of_two};
    return RUN_SUITE("bits", tests);
}
