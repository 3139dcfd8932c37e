// qg_init accepts the default environment and refuses every other; worker threads get the default
// one and give back what was there.
#include <qg_bits.h>
#include <qg_init.h>
#include <run_suite.h>

#include <fenv.h>
#include <string.h>

START_TEST(the_default_environment_is_accepted) {
    ck_assert_int_eq(qg_init(), QG_OK);
    ck_assert_str_eq(qg_fp_describe(), "rne, ftz off, daz off");
}
END_TEST

START_TEST(other_rounding_modes_are_refused) {
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        fesetround(modes[i]);
        qg_status status = qg_init();
        const char *described = qg_fp_describe();
        fesetround(FE_TONEAREST);
        ck_assert_int_eq(status, QG_ERROR_ENVIRONMENT);
        ck_assert_ptr_nonnull(strstr(qg_detail(), "rounding"));
        ck_assert_str_eq(described, "not rne, ftz off, daz off");
    }
}
END_TEST

#if defined(__x86_64__)
#include <xmmintrin.h>

enum { DAZ = 0x0040, FTZ = 0x8000, DEFAULT_CONTROL = 0x1f80, FLAGS = 0x003f };
enum { DOWNWARD = 0x2000, UPWARD = 0x4000, TOWARD_ZERO = 0x6000 };

static qg_status init_under(unsigned bits) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | bits);
    qg_status status = qg_init();
    _mm_setcsr(saved);
    return status;
}

START_TEST(flushing_is_refused) {
    ck_assert_int_eq(init_under(FTZ), QG_ERROR_ENVIRONMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "FTZ"));
    ck_assert_int_eq(init_under(DAZ), QG_ERROR_ENVIRONMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "DAZ"));
    ck_assert_int_eq(init_under(FTZ | DAZ), QG_ERROR_ENVIRONMENT);
    ck_assert_int_eq(init_under(0), QG_OK);
}
END_TEST

// Set behind the C library's back: fegetround() may not see it.
START_TEST(rounding_of_the_sse_unit_alone_is_refused) {
    static const unsigned modes[] = {DOWNWARD, UPWARD, TOWARD_ZERO};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        ck_assert_int_eq(init_under(modes[i]), QG_ERROR_ENVIRONMENT);
        ck_assert_ptr_nonnull(strstr(qg_detail(), "rounding"));
    }
}
END_TEST

START_TEST(enter_makes_the_default_and_leave_restores) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(DEFAULT_CONTROL | FTZ | DAZ | UPWARD);
    qg_fp_state state = qg_fp_enter();
    unsigned inside = _mm_getcsr();
    qg_status status = qg_init();
    qg_fp_leave(state);
    unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    ck_assert_uint_eq(inside & ~(unsigned)FLAGS, DEFAULT_CONTROL);
    ck_assert_int_eq(status, QG_OK);
    ck_assert_uint_eq(after & ~(unsigned)FLAGS, DEFAULT_CONTROL | FTZ | DAZ | UPWARD);
}
END_TEST

START_TEST(flushing_is_described) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | FTZ);
    const char *described = qg_fp_describe();
    _mm_setcsr(saved);
    ck_assert_str_eq(described, "rne, ftz or daz on");
}
END_TEST
#endif

START_TEST(features_are_described) {
    char features[200], brand[100], small[4], other[1];
    qg_cpu_describe(features, sizeof features, brand, sizeof brand);
    ck_assert_str_ne(brand, "");
    qg_cpu_features f = qg_cpu_detect();
    ck_assert_int_eq(strstr(features, "avx2") != NULL, f.avx2);
    ck_assert_int_eq(strstr(features, "avx512f") != NULL, f.avx512f);
    ck_assert_int_eq(strstr(features, "f16c") != NULL, f.f16c);
    qg_cpu_describe(small, sizeof small, other, sizeof other); // cut, not overrun
    ck_assert_uint_lt(strlen(small), sizeof small);
    ck_assert_str_eq(other, "");
}
END_TEST

START_TEST(instruction_sets_are_named_and_nested) {
    ck_assert_int_eq(qg_isa_find("scalar"), QG_ISA_SCALAR);
    ck_assert_int_eq(qg_isa_find("avx2"), QG_ISA_AVX2);
    ck_assert_int_eq(qg_isa_find("avx512"), QG_ISA_AVX512);
    ck_assert_int_eq(qg_isa_find("sse"), -1);
    ck_assert_int_eq(qg_isa_find(""), -1);
    ck_assert(qg_cpu_has(QG_ISA_SCALAR));
    ck_assert(!qg_cpu_has(QG_ISA_AVX512) || qg_cpu_has(QG_ISA_AVX2));
    qg_cpu_features f = qg_cpu_detect();
    ck_assert_int_eq(qg_cpu_has(QG_ISA_AVX2), f.avx2 && f.fma && f.f16c);
    for (int isa = 0; isa < QG_ISA_COUNT; isa++)
        ck_assert_int_eq(qg_isa_find(qg_isa_name((qg_isa)isa)), isa);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_default_environment_is_accepted,
        other_rounding_modes_are_refused,
        instruction_sets_are_named_and_nested,
#if defined(__x86_64__)
        flushing_is_refused,
        rounding_of_the_sse_unit_alone_is_refused,
        enter_makes_the_default_and_leave_restores,
        flushing_is_described,
#endif
        features_are_described
    };
    return RUN_SUITE("init", tests);
}
