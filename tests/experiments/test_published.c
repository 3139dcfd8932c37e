// The computations behind the published results, against small ones of another kind: the papers'
// own formulas, brute force, direct simulation.
#include <published_work.h>
#include <qg_data.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What results share is computed once a test.
static published_value run(published_compute compute, int which) {
    static published_work work = {.samples = 2000};
    published_value value = {0};
    ck_assert_msg(compute(&work, which, &value) == QG_OK, "%s", qg_detail());
    ck_assert(value.known);
    return value;
}

static void check_near(double value, double wanted, double tolerance, const char *what) {
    ck_assert_msg(fabs(value - wanted) <= tolerance, "%s: %.8g, not %.8g +- %g", what, value,
                  wanted, tolerance);
}

// (rows * k) values of a law.
static float *draw(const char *name, uint64_t seed, int64_t rows, int64_t k) {
    qg_law *law;
    float *x = malloc((size_t)(rows * k) * sizeof *x);
    ck_assert(x && qg_law_parse(name, &law) == QG_OK);
    qg_law_generate(law, seed, 0, k, 0, rows, x);
    qg_law_free(law);
    return x;
}

// ------------------------------------------------------------------------------------- INT v.s. FP

// The difference INT - FP of two closed forms by erf, with g = 0 for power-of-two scales.
static double difference(double kappa, int b, int m, int bias, double f, double rho, double g) {
    double t = rho * kappa * pow(2, 1 - bias) / f, p = erf(t / sqrt(2));
    double w = 1 - p + 2 * t * exp(-t * t / 2) / sqrt(2 * acos(-1));
    double alpha = 1 / (24 * pow(4, m)), beta = pow(4, 1 - bias - m) / (12 * f * f);
    double noise = alpha * (w - (g > 0 ? kappa * kappa / g : 0)) + beta * pow(rho * kappa, 2) * p;
    double integer = 4.78 + 6.02 * b - 20 * log10(rho * kappa);
    return integer + (g > 0 ? 10 * log10(g / (g - 1)) : 0) + 10 * log10(noise);
}

START_TEST(crossovers_are_zeros_of_the_forms) {
    double mx8 = run(published_crossover, CROSSOVER_MX8).value;
    double mx6 = run(published_crossover, CROSSOVER_MX6).value;
    double mx4 = run(published_crossover, CROSSOVER_MX4).value;
    double nv4 = run(published_crossover, CROSSOVER_NV4).value;
    check_near(difference(mx8, 8, 3, 7, 448, 1.5, 0), 0, 1e-9, "8 bits");
    check_near(difference(mx6, 6, 3, 1, 7.5, 1.5, 0), 0, 1e-9, "6 bits");
    check_near(difference(mx4, 4, 1, 1, 6, 1.5, 0), 0, 1e-9, "4 bits");
    check_near(difference(nv4, 4, 1, 1, 6, 1.05, 16), 0, 1e-9, "4 bits, E4M3 scales");
}
END_TEST

// A value rounded to `bits` significant bits, not below the grid of 2^least.
static float rounded(double x, int bits, int least) {
    int exponent;
    frexp(x, &exponent);
    int grid = exponent - bits > least ? exponent - bits : least;
    return (float)ldexp(rint(ldexp(x, -grid)), grid);
}

static double sampled_share(int bits, int least) {
    enum { ROWS = 400, COLUMNS = 1000 };
    float *x = draw("normal", 3, ROWS, COLUMNS);
    int count = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        float v = rounded(fabs(x[i]), bits, least), s = rounded((double)v / 127, bits, least);
        count += v > 0 && rint(rounded((double)v / s, bits, least)) >= 128;
    }
    free(x);
    return (double)count / (ROWS * COLUMNS);
}

START_TEST(shares_agree_with_samples) {
    double p = run(published_reaches_128, REACHES_BF16).value / 100;
    check_near(sampled_share(8, -133), p, 4 * sqrt(p * (1 - p) / 400000), "BF16");
    p = run(published_reaches_128, REACHES_FP16).value / 100;
    check_near(sampled_share(11, -24), p, 4 * sqrt(p * (1 - p) / 400000), "FP16");
    check_near(run(published_reaches_128, REACHES_FP32).value, 0, 0, "FP32");
}
END_TEST

// ------------------------------------------------------------------------------------------- finer

static double simulated_qsnr(const char *law, const char *layout) {
    published_sample s;
    qg_recipe recipe;
    ck_assert_int_eq(published_recipe("e2m1", layout, "amax_ue4m3", NULL, &recipe), QG_OK);
    ck_assert_int_eq(published_sample_create(128, 1024, &s), QG_OK);
    ck_assert_int_eq(published_sample_draw(&s, law, 5), QG_OK);
    ck_assert_int_eq(published_sample_quantize(&s, &recipe, 0), QG_OK);
    double qsnr = published_sample_qsnr(&s);
    published_sample_free(&s);
    return qsnr;
}

START_TEST(the_order_turns_at_the_crossing) {
    double sigma = run(published_inversion_theory, 8).value;
    char below[48], above[48], here[48];
    snprintf(below, sizeof below, "normal:sigma=%.4f", 0.85 * sigma);
    snprintf(above, sizeof above, "normal:sigma=%.4f", 1.15 * sigma);
    snprintf(here, sizeof here, "normal:sigma=%.5f", sigma);
    ck_assert(simulated_qsnr(below, "group:8") < simulated_qsnr(below, "group:16"));
    ck_assert(simulated_qsnr(above, "group:8") > simulated_qsnr(above, "group:16"));
    double equal = simulated_qsnr(here, "group:8") - simulated_qsnr(here, "group:16");
    printf("at the crossing %g blocks of 8 gain %.4f dB\n", sigma, equal);
    check_near(equal, 0, 0.02, "at the crossing");
}
END_TEST

// ------------------------------------------------------------------------------------------ Kuzmin

// The quantizer as the authors write it: steps that depend on the value, a real-valued bias.
static double author_error(const float *x, int count, int exponent_bits, double maxval) {
    double sum = 0, m = 7 - exponent_bits;
    double bias = pow(2, exponent_bits) - log2(maxval) + log2(2 - pow(2, -m)) - 1;
    for (int i = 0; i < count; i++) {
        double step = maxval / 127, v = x[i], q = fmin(fmax(rint(v / step), -128), 127);
        if (exponent_bits > 0) {
            v = fmin(fmax(v, -maxval), maxval);
            double scale = v == 0 ? 1 : fmax(floor(log2(fabs(v)) + bias), 1);
            step = pow(2, scale - m - bias);
            q = rint(v / step);
        }
        sum += (q * step - x[i]) * (q * step - x[i]);
    }
    return sum / count;
}

static void check_law(int law, const char *name, double clip) {
    enum { COUNT = 2000 };
    static const int EXPONENT_BITS[KUZMIN_FORMATS] = {0, 2, 3, 4, 5};
    published_optimum optima[KUZMIN_FORMATS];
    float *x = draw(name, 1, COUNT / 1000, 1000);
    double extent = 0;
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)fmin(fmax(x[i], -clip), clip);
        extent = fmax(extent, fabs(x[i]));
    }
    ck_assert_int_eq(published_kuzmin_search(law, COUNT, optima), QG_OK);
    for (int f = 0; f < KUZMIN_FORMATS; f++) {
        double least = INFINITY, where = 0;
        for (int i = 1; i <= 1000; i++) {
            double maxval = (extent + 0.5) * 10 * i / 1000;
            double error = author_error(x, COUNT, EXPONENT_BITS[f], maxval);
            where = error < least ? maxval : where;
            least = fmin(least, error);
        }
        check_near(optima[f].sqnr_db, -10 * log10(least), 1e-6, name);
        // Ranges whose errors differ by rounding alone may change places.
        double there = author_error(x, COUNT, EXPONENT_BITS[f], optima[f].maxval);
        check_near(there / least, 1, 1e-9, name);
        printf("%-12s E%d: %.3f dB at %.3g (%.3g)\n", name, EXPONENT_BITS[f], optima[f].sqnr_db,
               optima[f].maxval, where);
    }
    free(x);
}

// Enough samples that INT8 clips, where its codes are not symmetric.
static void check_clipped_integers(void) {
    enum { COUNT = 500000 };
    published_optimum optima[KUZMIN_FORMATS];
    float *x = draw("student_t:8", 1, COUNT / 1000, 1000);
    ck_assert_int_eq(published_kuzmin_search(2, COUNT, optima), QG_OK);
    double error = author_error(x, COUNT, 0, optima[0].maxval), extent = 0;
    for (int i = 0; i < COUNT; i++)
        extent = fmax(extent, fabs(x[i]));
    ck_assert(optima[0].maxval < extent);
    check_near(optima[0].sqnr_db, -10 * log10(error), 1e-6, "clipped INT8");
    free(x);
}

START_TEST(optima_are_those_of_brute_force) {
    check_clipped_integers();
    check_law(0, "uniform:1", 1);
    check_law(1, "normal", 10);
    check_law(2, "student_t:8", 100);
}
END_TEST

// ----------------------------------------------------------------------------------------- Rouhani

// A value of a block with exponent e, shift t and m magnitude bits.
static double shared_value(double x, int e, int t, int m) {
    double step = ldexp(1, e - t - m + 1), most = ldexp(1, m) - 1;
    return copysign(fmin(rint(fabs(x) / step), most) * step, x);
}

static int floor_log2(double x) {
    int exponent;
    frexp(x, &exponent);
    return exponent - 1;
}

// QSNR of blocks of 16 with or without shifts of pairs.
static double shared_qsnr(const float *x, int64_t count, int m, bool shifts) {
    double signal = 0, noise = 0;
    for (int64_t b = 0; b < count; b += 16) {
        double most = 0;
        for (int i = 0; i < 16; i++)
            most = fmax(most, fabs(x[b + i]));
        int e = floor_log2(most);
        for (int i = 0; i < 16; i++) {
            double pair = fmax(fabs(x[b + (i & ~1)]), fabs(x[b + (i | 1)]));
            double v = x[b + i], q = shared_value(v, e, shifts && floor_log2(pair) < e, m);
            signal += v * v;
            noise += (q - v) * (q - v);
        }
    }
    return 10 * log10(signal / noise);
}

START_TEST(shared_exponents_by_hand) {
    double difference = 0, mx6 = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        float *x = draw("normal", seed, 512, 128), *sigma = draw("normal:abs", seed + 1000, 1, 512);
        for (int i = 0; i < 512 * 128; i++)
            x[i] *= sigma[i / 128];
        difference +=
            (shared_qsnr(x, 512 * 128, 7, true) - shared_qsnr(x, 512 * 128, 7, false)) / 4;
        mx6 += shared_qsnr(x, 512 * 128, 4, true) / 4;
        free(x);
        free(sigma);
    }
    check_near(run(published_rouhani, ROUHANI_MSFP16).value, difference, 1e-6, "MX9 - MSFP16");
    double e4m3, middle, e5m2;
    published_value placed = run(published_rouhani, ROUHANI_MX6);
    ck_assert_int_eq(sscanf(placed.ours, "%lf > %lf > %lf", &e4m3, &middle, &e5m2), 3);
    check_near(middle, mx6, 0.0051, "MX6");
    check_near(placed.value, fmin(e4m3 - middle, middle - e5m2), 0.011, "MX6's place");
}
END_TEST

START_TEST(the_bound_is_the_papers) {
    // MX9: 6.02 * 7 + 10 log10(4 / (16 + 3 * 2)).
    published_value bound = run(published_rouhani, ROUHANI_BOUND);
    ck_assert(bound.value > 0 && bound.value < 20);
    ck_assert_ptr_nonnull(strstr(bound.ours, "at least"));
}
END_TEST

// ---------------------------------------------------------------------------------- MX in training

START_TEST(saturation_by_hand) {
    float *x = draw("normal", 1, 256, 1024);
    int64_t blocks = 0;
    for (int64_t b = 0; b < 256 * 1024; b += 32) {
        double most = 0;
        for (int i = 0; i < 32; i++)
            most = fmax(most, fabs(x[b + i]));
        blocks += most > 1.75 * ldexp(1, floor_log2(most)); // 448 is 1.75 * 2^8
    }
    free(x);
    check_near(run(published_saturation, SATURATION_FLOOR).value, 100.0 * (double)blocks / 8192,
               1e-9, "floor");
    check_near(run(published_saturation, SATURATION_RCEIL).value, 0, 0, "rceil");
}
END_TEST

// What rounding to the nearest of 0, 0.5, ..., 6 times a scale leaves.
static double block_error(const float *x, double scale) {
    static const double VALUES[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    double sum = 0;
    for (int i = 0; i < 16; i++) {
        double least = INFINITY;
        for (int v = 0; v < 8; v++)
            least = fmin(least, fabs(fabs(x[i]) - VALUES[v] * scale));
        sum += least * least;
    }
    return sum;
}

// With ideal scales the gain is what the recipes' E4M3 scales leave of it, to a fifth of a dB.
START_TEST(four_over_six_gains_as_ideal_scales_do) {
    float *x = draw("normal", 1, 64, 1024);
    double six = 0, better = 0;
    for (int64_t b = 0; b < 64 * 1024; b += 16) {
        double most = 0;
        for (int i = 0; i < 16; i++)
            most = fmax(most, fabs(x[b + i]));
        double e6 = block_error(x + b, most / 6), e4 = block_error(x + b, most / 4);
        six += e6;
        better += fmin(e6, e4);
    }
    free(x);
    published_value gain = run(published_four_over_six, 0);
    check_near(gain.value, 10 * log10(six / better), 0.2, "4/6");
    ck_assert(gain.error > 0 && gain.error < 0.05);
}
END_TEST

START_TEST(stochastic_noise_by_hand) {
    static const double VALUES[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    float *x = draw("normal", 1, 16, 1024);
    double variance = 0, nearest = 0;
    for (int64_t b = 0; b < 16 * 1024; b += 32) {
        double most = 0;
        for (int i = 0; i < 32; i++)
            most = fmax(most, fabs(x[b + i]));
        double scale = ldexp(1, (int)ceil(log2(most / 6)));
        for (int i = 0; i < 32; i++) {
            double v = fabs(x[b + i]) / scale;
            for (int j = 0; j + 1 < 8; j++)
                if (v >= VALUES[j] && v < VALUES[j + 1]) {
                    double down = v - VALUES[j], up = VALUES[j + 1] - v;
                    variance += down * up * scale * scale;
                    nearest += fmin(down, up) * fmin(down, up) * scale * scale;
                }
        }
    }
    free(x);
    check_near(run(published_stochastic, STOCHASTIC_NOISE).value, variance / nearest,
               0.01 * variance / nearest, "noise of stochastic rounding");
    ck_assert(fabs(run(published_stochastic, STOCHASTIC_BIAS).value) < 3);
    published_value elements = run(published_stochastic, STOCHASTIC_ELEMENTS);
    check_near(elements.value, 1, 4 * elements.error, "errors of elements");
    check_near(elements.error, sqrt(2.0 / 16384), 0.003, "their standard error");
}
END_TEST

START_TEST(constants_are_exact) {
    check_near(run(published_constants, CONSTANTS_OFP8).value, 0, 0, "OFP8");
    check_near(run(published_constants, CONSTANTS_MX).value, 0, 0, "OCP MX");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {crossovers_are_zeros_of_the_forms,
                                  shares_agree_with_samples,
                                  the_order_turns_at_the_crossing,
                                  optima_are_those_of_brute_force,
                                  shared_exponents_by_hand,
                                  the_bound_is_the_papers,
                                  saturation_by_hand,
                                  four_over_six_gains_as_ideal_scales_do,
                                  stochastic_noise_by_hand,
                                  constants_are_exact};
    return RUN_SUITE("published", tests);
}
