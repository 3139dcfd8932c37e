// The CPU runtime on all 2^32 binary32 values as E4M3 and E5M2, and on more random cases than
// test_cpu_quantize has time for.
// ctest-labels: exhaustive nosan
// ctest-timeout: 7200
#include <block_data.h>
#include <cpu_check.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <string.h>

enum { SHARE = 1 << 22, MOST = 70 * 300, LARGE = 1 << 24 };

static float x[LARGE];
static uint8_t want[SHARE], got[SHARE], scales[4];

static void check_all_floats(const char *name) {
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find(name, &recipe), QG_OK);
    ck_assert_int_eq(qg_recipe_set_rule(&recipe, QG_RULE_FIXED, 1.0f), QG_OK);
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    for (int64_t first = 0; first < 1ll << 32; first += SHARE) {
        for (int64_t i = 0; i < SHARE; i++)
            x[i] = qg_float_of_bits((uint32_t)(first + i));
        ck_assert_int_eq(
            qg_emulator_quantize(&recipe, &options, 1, SHARE, x, want, scales, NULL, NULL), QG_OK);
        for (size_t v = 0; cpu_check_isa(v); v++) {
            const char *isa = cpu_check_isa(v);
            ck_assert_int_eq(qg_cpu_use_isa(isa), QG_OK);
            memset(got, 0xA5, sizeof got);
            ck_assert_int_eq(
                qg_cpu_quantize(&recipe, &options, NULL, 1, SHARE, x, got, scales, NULL, NULL),
                QG_OK);
            for (int64_t i = 0; i < SHARE; i++)
                REQUIRE(got[i] == want[i], "%s, %s: %08x gives %02x, not %02x", name, isa,
                        (unsigned)(first + i), got[i], want[i]);
        }
    }
}

START_TEST(all_floats_as_e4m3_agree) { check_all_floats("e4m3"); }
END_TEST

START_TEST(all_floats_as_e5m2_agree) { check_all_floats("e5m2"); }
END_TEST

START_TEST(many_random_cases_agree) {
    static const int threads[] = {1, 7};
    uint64_t state = 77;
    for (int i = 0; i < 30000; i++) {
        cpu_case c;
        if (cpu_check_draw(&state, MOST, x, &c))
            cpu_check(&c, NULL, threads, 2);
    }
}
END_TEST

// Tensors of 2^24 elements leave the caches on no machine's terms but their own: stores that pass
// the caches may run here.
START_TEST(large_tensors_agree) {
    static const char *const recipes[] = {
        "e4m3", "mxfp8", "nvfp4", "mxfp6_e2m3", "deepseek_act128", "deepseek_w128x128", "mxint8"};
    static const int threads[] = {1, 2};
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++) {
        cpu_case c = {.m = 4096, .k = LARGE / 4096, .x = x};
        ck_assert_int_eq(qg_recipe_find(recipes[i], &c.recipe), QG_OK);
        c.options.input_type = QG_FORMAT_FP32;
        c.storage.packed = true;
        block_data_fill(i, BLOCK_DATA_MIXED, x, LARGE);
        cpu_check(&c, NULL, threads, 2);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {all_floats_as_e4m3_agree, all_floats_as_e5m2_agree, large_tensors_agree,
                            many_random_cases_agree};
    return RUN_SUITE("cpu_quantize_exhaustive", tests);
}
