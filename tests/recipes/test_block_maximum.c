// What each rule does to the block maximum: the worst relative error and the number of saturated
// amaxes over all 2^23 mantissas, as exact fractions (definitions, "Facts to meet exactly";
// spec/formats-and-scales.md 3.3, 3.7).
// ctest-timeout: 600
#include <qg_scale_rule.h>
#include <require.h>
#include <run_suite.h>

typedef struct fact {
    int rule;
    qg_format format;
    int exponent; // amax in [2^exponent, 2^(exponent + 1))
    int64_t numerator, denominator, saturated;
} fact;

enum { F = 1 << 23 }; // mantissas

static const fact facts[] = {
  // clang-format off
    {QG_RULE_FLOOR, QG_FORMAT_E4M3, 0, 2097151, 16777215, 2097151},
    {QG_RULE_EVEN, QG_FORMAT_E4M3, 0, 1572863, 16252927, 1572863},
    {QG_RULE_CEIL, QG_FORMAT_E4M3, 0, 8, 136, 0},
    {QG_RULE_RCEIL, QG_FORMAT_E4M3, 0, 16, 272, 0},
    {QG_RULE_RCEIL_MUL, QG_FORMAT_E4M3, 0, 1, 17, 0},
    {QG_RULE_RCEIL_DIV, QG_FORMAT_E4M3, 0, 1, 17, 0},
    {QG_RULE_FLOOR_PLUS1, QG_FORMAT_E4M3, 0, 1, 17, 0},
    {QG_RULE_AMAX_POW2, QG_FORMAT_E4M3, 0, 1, 17, 0},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E4M3, 0, 3670015, 11010047, 4718591},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E4M3, 1, 3670015, 11010047, 4718591},
    {QG_RULE_NEAREST, QG_FORMAT_E4M3, 0, 224, 672, 4718592},
    {QG_RULE_NEAREST, QG_FORMAT_E4M3, 1, 3670015, 11010047, 4718591},
    {QG_RULE_FLOOR, QG_FORMAT_E5M2, 0, 2097151, 16777215, F / 4 - 1},
    {QG_RULE_EVEN, QG_FORMAT_E5M2, 0, 1, 9, F / 8 - 1},
    {QG_RULE_CEIL, QG_FORMAT_E5M2, 0, 1, 9, 0},
    {QG_RULE_RCEIL, QG_FORMAT_E5M2, 0, 1, 9, 0},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E5M2, 0, 3670015, 11010047, F / 16 * 9 - 1},
    {QG_RULE_FLOOR, QG_FORMAT_E3M2, 0, 2097151, 16777215, F / 4 - 1},
    {QG_RULE_EVEN, QG_FORMAT_E3M2, 0, 1, 9, F / 8 - 1},
    {QG_RULE_CEIL, QG_FORMAT_E3M2, 0, 1, 9, 0},
    {QG_RULE_RCEIL, QG_FORMAT_E3M2, 0, 1, 9, 0},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E3M2, 0, 3670015, 11010047, F / 16 * 9 - 1},
    {QG_RULE_FLOOR, QG_FORMAT_E2M1, 0, 4194303, 16777215, F / 2 - 1},
    {QG_RULE_EVEN, QG_FORMAT_E2M1, 0, 1, 5, F / 4 - 1},
    {QG_RULE_CEIL, QG_FORMAT_E2M1, 0, 1, 5, 0},
    {QG_RULE_RCEIL, QG_FORMAT_E2M1, 0, 1, 5, 0},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E2M1, 0, 3145727, 9437183, F / 8 * 5 - 1},
    {QG_RULE_FLOOR, QG_FORMAT_E2M3, 0, 1048575, 16777215, F / 8 - 1},
    {QG_RULE_EVEN, QG_FORMAT_E2M3, 0, 1, 17, F / 16 - 1},
    {QG_RULE_CEIL, QG_FORMAT_E2M3, 0, 1, 17, 0},
    {QG_RULE_RCEIL, QG_FORMAT_E2M3, 0, 1, 17, 0},
    {QG_RULE_NEAREST_UP, QG_FORMAT_E2M3, 0, 3932159, 11796479, F / 32 * 17 - 1},
  // clang-format on
};

static void check(const fact *f) {
    qg_element e = qg_element_of(f->format);
    qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_SATURATE, QG_NAN_TO_MAX
    };
    int64_t worst = 0, of = 1, saturated = 0;
    for (int64_t mantissa = 0; mantissa < F; mantissa++) {
        float amax = qg_float_of_bits((uint32_t)(f->exponent + 127) << 23 | (uint32_t)mantissa);
        int exponent = qg_rule_exponent(f->rule, &e, amax);
        double v = (double)amax * qg_double_pow2(-exponent);
        double value = qg_decode(&e.info, qg_encode(&e.info, v, &nearest, 0));
        saturated += v > (double)e.max;
        // In units of 2^(exponent - 23) both are integers.
        int64_t a = F + mantissa;
        int64_t b = (int64_t)(value * qg_double_pow2(exponent + 23 - f->exponent));
        int64_t error = a > b ? a - b : b - a;
        if (error * of > worst * a) {
            worst = error;
            of = a;
        }
    }
    REQUIRE(worst * f->denominator == f->numerator * of,
            "rule %d format %u: worst %lld/%lld, not %lld/%lld", f->rule, f->format,
            (long long)worst, (long long)of, (long long)f->numerator, (long long)f->denominator);
    REQUIRE(saturated == f->saturated, "rule %d format %u: %lld saturated, not %lld", f->rule,
            f->format, (long long)saturated, (long long)f->saturated);
}

START_TEST(worst_errors_are_the_exact_fractions) {
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        check(&facts[i]);
}
END_TEST

// The ranges of amax/X: floor [256, 512), even [248, 496), ceil (128, 256], rceil (224, 448];
// E2M3: ceil (2, 4], rceil (3.75, 7.5].
START_TEST(ranges_of_the_scaled_maximum) {
    static const struct {
        int rule;
        qg_format format;
        double smallest, largest;
    } ranges[] = {
        {QG_RULE_FLOOR, QG_FORMAT_E4M3, 256,            512 - 0x1p-15},
        {QG_RULE_EVEN,  QG_FORMAT_E4M3, 248,            496 - 0x1p-15},
        {QG_RULE_CEIL,  QG_FORMAT_E4M3, 128 + 0x1p-16,  256          },
        {QG_RULE_RCEIL, QG_FORMAT_E4M3, 224 + 0x1p-16,  448          },
        {QG_RULE_CEIL,  QG_FORMAT_E2M3, 2 + 0x1p-22,    4            },
        {QG_RULE_RCEIL, QG_FORMAT_E2M3, 3.75 + 0x1p-22, 7.5          }
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        qg_element e = qg_element_of(ranges[i].format);
        double smallest = 1e30, largest = 0;
        for (uint32_t mantissa = 0; mantissa < F; mantissa++) {
            float amax = qg_float_of_bits(0x3f800000u | mantissa);
            double v = (double)amax * qg_double_pow2(-qg_rule_exponent(ranges[i].rule, &e, amax));
            smallest = v < smallest ? v : smallest;
            largest = v > largest ? v : largest;
        }
        REQUIRE(smallest == ranges[i].smallest && largest == ranges[i].largest,
                "range %d: %.10g to %.10g", (int)i, smallest, largest);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {worst_errors_are_the_exact_fractions, ranges_of_the_scaled_maximum};
    return RUN_SUITE("block_maximum", tests);
}
