// What gates take for true of tensors and units, against direct simulation: the expectation given a
// block's maximum, the standard error, and bounds of rules and units.
#include <gate_backward.h>
#include <gate_theory.h>
#include <qg_data.h>
#include <qg_emulator.h>
#include <qg_format_name.h>
#include <qg_sums.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 * 1024 };

typedef struct sample {
    double qsnr, amax, max_abs;
} sample;

static sample measure(const qg_gate_operand *o, const char *law_name, uint64_t seed, int64_t m,
                      int64_t k) {
    static float x[MOST], q[MOST];
    static uint8_t codes[MOST], scales[4 * MOST];
    float tensor_scale = 1;
    qg_sums sums;
    qg_law *law;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
    ck_assert_int_eq(qg_law_parse(law_name, &law), QG_OK);
    qg_law_generate(law, seed, 0, k, 0, m, x);
    qg_law_free(law);
    ck_assert_int_eq(
        qg_emulator_quantize(&o->recipe, &options, m, k, x, codes, scales, &tensor_scale, NULL),
        QG_OK);
    ck_assert_int_eq(qg_emulator_dequantize(&o->recipe, m, k, codes, scales, tensor_scale, 1, q),
                     QG_OK);
    ck_assert_int_eq(qg_sums_measure(m * k, x, q, 1, &sums), QG_OK);
    return (sample){qg_metric_value(&sums, QG_METRIC_QSNR_DB), sums.max_abs_x, sums.max_abs_e};
}

// Means of many seeds must lie within what their own spread and the stated standard error allow;
// and the stated error must be neither too small nor, by more than a factor of 2, too large.
static void check_expectation(const char *format, const char *layout, const char *rule,
                              const char *law, int64_t m, int64_t k) {
    enum { SEEDS = 100 };
    qg_gate_operand o = {0};
    qg_gate_theory *theory;
    double sum = 0, squares = 0, se = 0;
    qg_gate_operand_read(format, layout, rule, "rne", &o);
    ck_assert(o.known);
    ck_assert_int_eq(qg_gate_theory_create(&theory), QG_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        sample s = measure(&o, law, seed, m, k);
        qg_gate_expectation e = qg_gate_theory_tensor(theory, &o, law, m, k, s.amax);
        ck_assert_msg(e.known, "%s %s %s %s", format, layout, rule, law);
        double off = s.qsnr + 10 * log10(e.noise);
        sum += off;
        squares += off * off;
        se = e.se_db;
    }
    qg_gate_theory_free(theory);
    double mean = sum / SEEDS, spread = sqrt(squares / SEEDS - mean * mean);
    printf("%-8s %-12s %-11s %-14s %3lld x %-5lld off by %+.4f dB, spread %.4f, stated %.4f\n",
           format, layout, rule, law, (long long)m, (long long)k, mean, spread, se);
    // A mean of decibels is below the decibels of a mean of ratios by se^2 / 8.7: second order.
    ck_assert(fabs(mean) < 5 * spread / sqrt(SEEDS) + se * se / 4);
    ck_assert(spread < 1.3 * se);
    ck_assert(spread > se / 2);
}

START_TEST(tensors_are_as_expected) {
    check_expectation("e4m3", "per_tensor", "amax", "normal", 8, 256);
    check_expectation("int8", "per_tensor", "amax", "normal", 8, 256);
    check_expectation("e2m1", "per_row", "amax", "laplace", 8, 256);
    check_expectation("e4m3", "group:128", "amax", "normal", 4, 200);
    check_expectation("int8", "group:128", "amax", "normal", 32, 144); // ragged: 128 and 16
    check_expectation("e5m2", "block:128x128", "amax", "uniform", 30, 200);
    check_expectation("mxfp8", "group:32", "floor", "normal", 8, 256);
    check_expectation("mxfp4", "group:32", "even", "normal", 8, 256);
    check_expectation("mxint8", "group:32", "rceil", "laplace", 8, 256);
    check_expectation("nvfp4", "group:16", "two_level", "normal", 16, 512);
    check_expectation("rlx_nvfp4", "group:16", "amax_ue4m3", "normal:sigma=0.01", 8, 512);
}
END_TEST

// Given the maximum, averaged over its own distribution, is the expectation without it.
START_TEST(given_maxima_average_to_the_whole) {
    enum { POINTS = 4000, G = 32 };
    qg_gate_operand o = {0};
    qg_gate_operand_read("e2m1", "group:32", "amax", "rne", &o);
    qg_grid grid = {o.values, o.value_count};
    double noise = 0, cross = 0, below = 0, signal = 0, mass = 0;
    // Uniform on [0, sqrt 3]: the maximum of 32 has the distribution (a / sqrt 3)^32.
    for (int i = 0; i < POINTS; i++) {
        double p = (i + 0.5) / POINTS, a = sqrt(3) * pow(p, 1.0 / G);
        qg_noise n;
        ck_assert_int_eq(
            qg_theory_block_given(QG_DENSITY_UNIFORM, 1, grid, G, a, a / o.largest, &n), QG_OK);
        noise += n.noise / POINTS;
        cross += n.cross / POINTS;
        below += n.below / POINTS;
        signal += n.signal / POINTS;
        mass += 1.0 / POINTS;
    }
    qg_gate_theory *theory;
    ck_assert_int_eq(qg_gate_theory_create(&theory), QG_OK);
    qg_gate_expectation e = qg_gate_theory_tensor(theory, &o, "uniform", 4, 320, (double)NAN);
    qg_gate_theory_free(theory);
    ck_assert(fabs(signal / mass - 1) < 1e-3);
    ck_assert(fabs(noise / e.noise - 1) < 1e-3);
    ck_assert(fabs(cross / e.shrinkage - 1) < 2e-2);
    ck_assert(fabs(below / e.below - 1) < 1e-3);
}
END_TEST

static double saturating_scale(void *operand, double amax) {
    const qg_gate_operand *o = operand;
    return amax / (1.3 * o->largest);
}

static void check_mean(double sum, double count, double whole) {
    ck_assert_msg(fabs(sum / count / whole - 1) < 2e-3, "%.9g, not %.9g", sum / count, whole);
}

// The same where the maximum itself is off: it counts as the other elements do.
START_TEST(given_maxima_average_to_the_whole_when_clipped) {
    enum { POINTS = 4000, G = 4 };
    qg_gate_operand o = {0};
    qg_noise whole, sum = {0};
    qg_gate_operand_read("e2m1", "group:4", "amax", "rne", &o);
    qg_grid grid = {o.values, o.value_count};
    ck_assert_int_eq(qg_theory_block(QG_DENSITY_UNIFORM, 1, grid, G, saturating_scale, &o, &whole),
                     QG_OK);
    for (int i = 0; i < POINTS; i++) {
        double a = sqrt(3) * pow((i + 0.5) / POINTS, 1.0 / G);
        qg_noise n;
        ck_assert_int_eq(
            qg_theory_block_given(QG_DENSITY_UNIFORM, 1, grid, G, a, saturating_scale(&o, a), &n),
            QG_OK);
        sum.noise += n.noise;
        sum.cross += n.cross;
        sum.below += n.below;
        sum.above += n.above;
        sum.drift += n.drift;
    }
    check_mean(sum.noise, POINTS, whole.noise);
    check_mean(sum.cross, POINTS, whole.cross);
    check_mean(sum.below, POINTS, whole.below);
    check_mean(sum.above, POINTS, whole.above);
    check_mean(sum.drift, POINTS, whole.drift);
}
END_TEST

// The step of an integer is its block's maximum over F: the noise goes with its square.
START_TEST(one_block_goes_by_its_own_maximum) {
    qg_gate_operand o = {0};
    qg_gate_theory *theory;
    qg_gate_operand_read("int8", "per_tensor", "amax", "rne", &o);
    ck_assert_int_eq(qg_gate_theory_create(&theory), QG_OK);
    qg_gate_expectation small = qg_gate_theory_tensor(theory, &o, "normal", 64, 256, 4);
    qg_gate_expectation large = qg_gate_theory_tensor(theory, &o, "normal", 64, 256, 5);
    qg_gate_theory_free(theory);
    ck_assert(fabs(large.noise / small.noise / (25.0 / 16) - 1) < 0.01);
}
END_TEST

START_TEST(what_theory_cannot_follow_is_unknown) {
    static const char *const CASES[][5] = {
        {"e4m3",  "per_tensor", "amax",          "outliers:100", "rne"       },
        {"e4m3",  "per_tensor", "amax",          "normal:abs",   "rne"       },
        {"e4m3",  "per_tensor", "amax",          "normal",       "rtz"       },
        {"e4m3",  "per_tensor", "amax",          "normal",       "stochastic"},
        {"bf16",  "per_tensor", "amax",          "normal",       "rne"       },
        {"mxfp8", "group:32",   "best",          "normal",       "rne"       },
        {"nvfp4", "group:16",   "four_over_six", "normal",       "rne"       },
        {"e4m3",  "per_tensor", "amax",          "tensors:x.h5", "rne"       },
        {"mx9",   "group:16",   "floor",         "normal",       "rne"       },
    };
    qg_gate_theory *theory;
    ck_assert_int_eq(qg_gate_theory_create(&theory), QG_OK);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        qg_gate_operand o = {0};
        qg_gate_operand_read(CASES[i][0], CASES[i][1], CASES[i][2], CASES[i][4], &o);
        ck_assert_msg(o.known, "%s", qg_detail());
        ck_assert_msg(!qg_gate_theory_tensor(theory, &o, CASES[i][3], 64, 256, 4).known, "%s %s %s",
                      CASES[i][0], CASES[i][2], CASES[i][3]);
    }
    qg_gate_theory_free(theory);
}
END_TEST

// E4M3 scales step by eighths: where the tensor's amax stands in its octave shows, the octave not.
START_TEST(two_level_scales_follow_the_tensors_amax) {
    qg_gate_operand o = {0};
    qg_gate_theory *theory;
    qg_gate_operand_read("nvfp4", "group:16", "two_level", "rne", &o);
    ck_assert_int_eq(qg_gate_theory_create(&theory), QG_OK);
    double at4 = qg_gate_theory_tensor(theory, &o, "normal", 64, 256, 4).noise;
    double at5 = qg_gate_theory_tensor(theory, &o, "normal", 64, 256, 5).noise;
    double at8 = qg_gate_theory_tensor(theory, &o, "normal", 64, 256, 8).noise;
    printf("noise at 4, 5, 8: %.9f %.9f %.9f\n", at4, at5, at8);
    ck_assert(fabs(at5 / at4 - 1) > 1e-6);
    ck_assert(fabs(at8 / at4 - 1) < 1e-3);
    qg_gate_theory_free(theory);
}
END_TEST

// The exact facts of the README's table: E4M3 over all amaxes.
START_TEST(rules_lose_what_they_must) {
    static const struct {
        const char *rule;
        double worst;
        bool saturates;
    } CASES[] = {
        {"floor",       2097151.0 / 16777215, true },
        {"even",        1572863.0 / 16252927, true },
        {"ceil",        1.0 / 17,             false},
        {"rceil",       1.0 / 17,             false},
        {"nearest",     1.0 / 3,              true },
        {"amax",        16.0 / 448,           false},
        {"floor_plus1", 1.0 / 17,             false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        qg_gate_operand o = {0};
        qg_gate_operand_read("e4m3", "group:32", CASES[i].rule, "rne", &o);
        printf("%-12s %.6f\n", CASES[i].rule, o.worst);
        ck_assert_int_eq(o.saturates, CASES[i].saturates);
        ck_assert(o.worst >= CASES[i].worst && o.worst < CASES[i].worst * 1.07);
    }
}
END_TEST

static double bound_of(const char *unit, const char *format, int64_t k, qg_format out) {
    qg_gate_operand o = {0};
    qg_gate_unit u = {0};
    qg_gate_operand_read(format, "per_tensor", "amax", "rne", &o);
    qg_gate_unit_read(unit, &u);
    ck_assert(o.known && u.known);
    return qg_gate_accumulator_of(&u, &o, &o, k, out).bound;
}

static bool is_near(double value, double wanted) { return fabs(value / wanted - 1) < 0.02; }

// By hand, from the parameters of the units.
START_TEST(bounds_of_units) {
    ck_assert(is_near(bound_of("hopper_wgmma", "e4m3", 4096, QG_FORMAT_FP32), 128 * 33 * 0x1p-13));
    ck_assert(is_near(bound_of("hopper_wgmma+promote:128", "e4m3", 4096, QG_FORMAT_FP32),
                      4 * 33 * 0x1p-13));
    ck_assert(is_near(bound_of("ada_mma", "e4m3", 4096, QG_FORMAT_FP32), 256 * 17 * 0x1p-13));
    ck_assert(is_near(bound_of("blackwell_tcgen05", "e4m3", 4096, QG_FORMAT_FP32),
                      128 * (32 * 0x1p-25 + 0x1p-23)));
    ck_assert(is_near(bound_of("fp32_sequential", "e4m3", 4096, QG_FORMAT_FP32), 4096 * 0x1p-24));
    ck_assert(
        is_near(bound_of("fp32_sequential+rtz", "e4m3", 4096, QG_FORMAT_FP32), 4096 * 0x1p-23));
    ck_assert(is_near(bound_of("fp32_blocked:64", "e4m3", 4096, QG_FORMAT_FP32),
                      (64 + 64 + 3) * 0x1p-24));
    ck_assert(
        is_near(bound_of("hopper_wgmma+split:4", "e4m3", 4096, QG_FORMAT_FP32), 34 * 33 * 0x1p-13));
    ck_assert(is_near(bound_of("exact", "e4m3", 4096, QG_FORMAT_BF16), 0x1p-8));
    ck_assert(isnan(bound_of("ampere_mma", "e4m3", 4096, QG_FORMAT_FP32)));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {tensors_are_as_expected,
                                  given_maxima_average_to_the_whole,
                                  given_maxima_average_to_the_whole_when_clipped,
                                  one_block_goes_by_its_own_maximum,
                                  what_theory_cannot_follow_is_unknown,
                                  rules_lose_what_they_must,
                                  two_level_scales_follow_the_tensors_amax,
                                  bounds_of_units};
    return RUN_SUITE("gate theory", tests);
}
