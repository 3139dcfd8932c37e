// How many floats change their code when a second rounding is put in between: all 301,989,889
// floats of [2^-19, 2^17], against counts that independent implementations gave.
// ctest-labels: exhaustive
// ctest-timeout: 3600
#include <qg_codec.h>
#include <run_suite.h>

enum { FIRST = 108 << 23, LAST = 144 << 23, CHUNK = 1 << 16 };
enum { PATHS = 5 };

typedef struct path {
    qg_format middle, format;
    int64_t saturating, not_saturating;
} path;

static const path paths[PATHS] = {
    {QG_FORMAT_FP16, QG_FORMAT_E4M3, 516096,  520192 },
    {QG_FORMAT_FP16, QG_FORMAT_E5M2, 552960,  557056 },
    {QG_FORMAT_FP16, QG_FORMAT_E2M1, 28672,   28672  },
    {QG_FORMAT_BF16, QG_FORMAT_E4M3, 4128768, 4161536},
    {QG_FORMAT_BF16, QG_FORMAT_E5M2, 4030464, 4063232},
};

static uint64_t encode(const qg_format_info *info, double x, int overflow) {
    qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        (uint8_t)overflow, QG_NAN_TO_MAX
    };
    return qg_encode(info, x, &conversion, 0);
}

static int64_t count_chunk(const path *p, int overflow, uint32_t first) {
    const qg_format_info middle = qg_format_describe(p->middle);
    const qg_format_info format = qg_format_describe(p->format);
    int64_t changed = 0;
    for (uint32_t bits = first; bits < first + CHUNK && bits <= LAST; bits++) {
        double x = (double)qg_float_of_bits(bits);
        double once = qg_decode(&middle, encode(&middle, x, QG_OVERFLOW_FORMAT));
        changed += encode(&format, x, overflow) != encode(&format, once, overflow);
    }
    return changed;
}

static int64_t count_changed(const path *p, int overflow) {
    int64_t changed = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) reduction(+ : changed)
#endif
    for (uint32_t first = FIRST; first <= LAST; first += CHUNK)
        changed += count_chunk(p, overflow, first);
    return changed;
}

START_TEST(counts_of_changed_codes) {
    for (int i = 0; i < PATHS; i++) {
        ck_assert_int_eq(count_changed(&paths[i], QG_OVERFLOW_SATURATE), paths[i].saturating);
        ck_assert_int_eq(count_changed(&paths[i], QG_OVERFLOW_FORMAT), paths[i].not_saturating);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {counts_of_changed_codes};
    return RUN_SUITE("double_rounding", tests);
}
