// ctest-labels: exhaustive nosan
// ctest-timeout: 3000
// The emulator against integration: the QSNR of every OCP MX element format under every power-of-two
// rule that follows from amax, on normal, laplace and uniform data, 2^24 samples each, must lie
// within 5 standard errors (of 64 batches) of the value that qg_theory_block integrates.
// The scale rules are written again here, from their words, with libm's frexp: neither side sees the
// other. `best` is left out: its scale depends on every element of the block, not on amax.
#include <qg_data.h>
#include <qg_emulator.h>
#include <qg_memory.h>
#include <qg_recipe_name.h>
#include <qg_scale_rule.h>
#include <qg_sums.h>
#include <qg_theory.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 64, ROWS = 64, COLUMNS = 4096, G = 32 };
static const int64_t batch_size = (int64_t)ROWS * COLUMNS;

static const char *const recipes[] = {"mxfp8",  "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
                                      "mxfp4",  "mxint8",     "mxint6",     "mxint4"};
static const char *const rules[] = {"floor",     "ceil",        "even",    "rceil",     "rceil_mul",
                                    "rceil_div", "floor_plus1", "nearest", "nearest_up"};
static const char *const laws[] = {"normal", "laplace", "uniform"};

typedef struct rule_context {
    const char *rule;
    double largest; // F
    int mbits;
} rule_context;

static int floor_log2(double x) {
    int exponent;
    frexp(x, &exponent);
    return exponent - 1;
}

// The rules in words, in binary64: amax is a real number here, not a binary32 one.
static double scale_in_words(void *context, double amax) {
    const rule_context *c = context;
    int emax = floor_log2(c->largest), e = floor_log2(amax);
    double significand = ldexp(amax, -e), ratio = amax / c->largest;
    if (!strcmp(c->rule, "floor"))
        return ldexp(1, e - emax);
    if (!strcmp(c->rule, "floor_plus1"))
        return ldexp(1, e - emax + 1);
    if (!strcmp(c->rule, "ceil"))
        return ldexp(1, e - emax + (significand > 1));
    if (!strcmp(c->rule, "even"))
        return ldexp(1, e - emax + (significand >= 2 - ldexp(1, -c->mbits - 1)));
    int below = floor_log2(ratio);
    double rest = ldexp(ratio, -below);
    if (!strncmp(c->rule, "nearest", 7))
        return ldexp(1, below + (rest >= 1.5));
    return ldexp(1, below + (rest > 1)); // rceil and its forms
}

static int64_t grid_of(const qg_element *e, double grid[256]) {
    int64_t count = 0;
    for (uint64_t code = 0; code <= e->info.max_code; code++)
        grid[count++] = qg_decode(&e->info, code);
    return count;
}

// QSNR and its standard error in dB, from the batches' ratios of noise to signal.
static double measure(const qg_recipe *recipe, const float *x, uint8_t *codes, uint8_t *scales,
                      float *q, double *standard_error) {
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    double sum = 0, squares = 0, noise = 0, signal = 0;
    for (int b = 0; b < BATCHES; b++) {
        const float *batch = x + b * batch_size;
        qg_sums sums;
        ck_assert_int_eq(QG_OK, qg_emulator_quantize(recipe, &options, ROWS, COLUMNS, batch, codes,
                                                     scales, NULL, NULL));
        ck_assert_int_eq(
            QG_OK, qg_emulator_dequantize(recipe, ROWS, COLUMNS, codes, scales, 0, 0, q));
        ck_assert_int_eq(QG_OK, qg_sums_measure(batch_size, batch, q, 0, &sums));
        double ratio = qg_sum_value(sums.ee) / qg_sum_value(sums.xx);
        sum += ratio;
        squares += ratio * ratio;
        noise += qg_sum_value(sums.ee);
        signal += qg_sum_value(sums.xx);
    }
    double mean = sum / BATCHES;
    double variance = (squares - BATCHES * mean * mean) / (BATCHES - 1);
    *standard_error = 10 / log(10) * sqrt(variance / BATCHES) / mean;
    return 10 * log10(signal / noise);
}

typedef struct buffers {
    float *x, *q;
    uint8_t *codes, *scales;
} buffers;

static void check_recipe(const char *name, const char *law_name, const qg_law *law,
                         const buffers *room, double *worst) {
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        qg_recipe recipe;
        int rule;
        float unused;
        ck_assert_int_eq(QG_OK, qg_recipe_find(name, &recipe));
        ck_assert_int_eq(QG_OK, qg_rule_parse(rules[r], &rule, &unused));
        ck_assert_int_eq(QG_OK, qg_recipe_set_rule(&recipe, rule, 0));
        qg_element element = qg_element_of(recipe.element);
        rule_context context = {rules[r], element.max, element.mbits};
        double grid[256], sigma, error;
        qg_grid values = {grid, grid_of(&element, grid)};
        qg_density density = qg_law_density(law, &sigma);
        qg_noise expected;
        ck_assert_int_eq(QG_OK, qg_theory_block(density, sigma, values, G, scale_in_words, &context,
                                                &expected));
        double theory = qg_noise_qsnr_db(expected);
        double measured = measure(&recipe, room->x, room->codes, room->scales, room->q, &error);
        double distance = (measured - theory) / error;
        printf("%-11s %-11s %-8s %9.4f dB, theory %9.4f, %+5.2f standard errors of %.5f\n", name,
               rules[r], law_name, measured, theory, distance, error);
        if (fabs(distance) > *worst)
            *worst = fabs(distance);
        ck_assert_msg(fabs(distance) <= 5, "%s %s %s is %.2f standard errors off", name, rules[r],
                      law_name, distance);
    }
}

START_TEST(qsnr_agrees_with_integration) {
    buffers room;
    int64_t samples = BATCHES * batch_size;
    ck_assert_int_eq(QG_OK, qg_allocate((void **)&room.x, samples, sizeof(float), "x"));
    ck_assert_int_eq(QG_OK, qg_allocate((void **)&room.q, batch_size, sizeof(float), "q"));
    ck_assert_int_eq(QG_OK, qg_allocate((void **)&room.codes, batch_size, 1, "codes"));
    ck_assert_int_eq(QG_OK, qg_allocate((void **)&room.scales, batch_size / G, 1, "scales"));
    double worst = 0;
    time_t start = time(NULL);
    for (size_t l = 0; l < sizeof laws / sizeof *laws; l++) {
        qg_law *law;
        ck_assert_int_eq(QG_OK, qg_law_parse(laws[l], &law));
        qg_law_generate(law, 1, 0, COLUMNS, 0, (int64_t)BATCHES * ROWS, room.x);
        for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
            check_recipe(recipes[i], laws[l], law, &room, &worst);
        qg_law_free(law);
    }
    printf("worst distance %.2f standard errors, %.0f s\n", worst, difftime(time(NULL), start));
    qg_release(room.x);
    qg_release(room.q);
    qg_release(room.codes);
    qg_release(room.scales);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {qsnr_agrees_with_integration};
    return RUN_SUITE("theory agrees", tests);
}
