// The branch-free encoder against qg_encode on all 2^32 binary32 values.
// ctest-labels: exhaustive nosan
// ctest-timeout: 7200
#include <qg_encode32.h>
#include <qg_format_name.h>
#include <require.h>
#include <run_suite.h>

static int64_t count_differences(const char *name, uint8_t mode, uint8_t overflow) {
    qg_format format;
    ck_assert_int_eq(qg_format_parse(name, &format), QG_OK);
    qg_format_info info = qg_format_describe(format);
    qg_conversion conversion = {
        {mode, 0},
        overflow, QG_NAN_TO_MAX
    };
    qg_encoder32 encoder = qg_encoder32_of(&info, &conversion);
    int64_t differences = 0;
#pragma omp parallel for schedule(dynamic, 1 << 16) reduction(+ : differences)
    for (int64_t i = 0; i < 1ll << 32; i++) {
        uint32_t bits = (uint32_t)i;
        differences += qg_encode32(&encoder, bits, 0) !=
                       qg_encode(&info, qg_float_of_bits(bits), &conversion, 0);
    }
    return differences;
}

START_TEST(all_floats_agree) {
    static const char *const names[] = {"e4m3", "e5m2", "e2m1", "e3m2", "e2m3", "int8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int64_t differences = count_differences(names[i], QG_ROUND_RNE, QG_OVERFLOW_SATURATE);
        REQUIRE(differences == 0, "%s: %lld codes differ", names[i], (long long)differences);
    }
    ck_assert_int_eq(count_differences("e4m3", QG_ROUND_RTO, QG_OVERFLOW_FORMAT), 0);
    ck_assert_int_eq(count_differences("e5m2", QG_ROUND_RTP, QG_OVERFLOW_FORMAT), 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {all_floats_agree};
    return RUN_SUITE("encode32_exhaustive", tests);
}
