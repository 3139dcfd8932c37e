// Theory against closed forms, universal constants, an independent integration and simulation.
// The quantizers of the simulation are this file's own: nothing is shared with the emulator.
#include <qg_theory.h>

#include <check.h>
#include <math.h>
#include <qg_elementary.h>
#include <run_suite.h>
#include <stdlib.h>

enum { MOST_VALUES = 1 << 16 };

// The magnitudes of a float with `mbits` mantissa bits and exponents low .. high, subnormals below;
// `dropped` codes are missing at the top.
static qg_grid float_grid(int mbits, int low, int high, int dropped) {
    double *value = malloc(sizeof *value * MOST_VALUES);
    int64_t steps = 1 << mbits, count = 0;
    for (int64_t m = 0; m < steps; m++)
        value[count++] = ldexp((double)m, low - mbits);
    for (int e = low; e <= high; e++)
        for (int64_t m = 0; m < steps; m++)
            value[count++] = ldexp((double)(steps + m), e - mbits);
    ck_assert_int_lt(count, MOST_VALUES);
    return (qg_grid){value, count - dropped};
}

static qg_grid e4m3(void) { return float_grid(3, -6, 8, 1); }
static qg_grid e5m2(void) { return float_grid(2, -14, 15, 0); }
static qg_grid e2m1(void) { return float_grid(1, 0, 2, 0); }
static qg_grid int8(void) {
    double *value = malloc(sizeof *value * 128);
    for (int i = 0; i < 128; i++)
        value[i] = i;
    return (qg_grid){value, 128};
}
static void free_grid(qg_grid grid) { free((void *)(uintptr_t)grid.value); }
static double largest(qg_grid grid) { return grid.value[grid.count - 1]; }

static qg_noise tensor(qg_density density, double sigma, qg_grid grid, double scale) {
    qg_noise noise;
    ck_assert_msg(qg_theory_tensor(density, sigma, grid, scale, &noise) == QG_OK, "%s",
                  qg_detail());
    return noise;
}

static void check_relative(double got, double want, double tolerance, const char *what) {
    ck_assert_msg(fabs(got / want - 1) < tolerance, "%s: %.17g, not %.17g", what, got, want);
}

// -------------------------------------------------------------------------------------- per tensor

START_TEST(closed_forms) {
    static const double zero[] = {0}, ternary[] = {0, 2};
    for (int d = QG_DENSITY_NORMAL; d <= QG_DENSITY_UNIFORM; d++) { // everything to zero
        qg_noise n = tensor((qg_density)d, 1.5, (qg_grid){zero, 1}, 1);
        check_relative(n.noise, 2.25, 1e-13, "noise");
        check_relative(n.cross, -2.25, 1e-13, "cross");
        ck_assert(n.signal == 2.25 && n.below == 1 && n.above == 1);
        ck_assert_double_eq_tol(qg_noise_qsnr_db(n), 0, 1e-12);
    }
    // {0, 2} at scale 1/2: q = sign(x) where |x| > 1/2. E|x|; |x| > 1/2 = 2 phi(1/2) for a normal.
    qg_noise n = tensor(QG_DENSITY_NORMAL, 1, (qg_grid){ternary, 2}, 0.5);
    double beyond = 2 * qg_normal_cdf(-0.5), first = 2 * qg_normal_density(0.5);
    check_relative(n.noise, 1 - 2 * first + beyond, 1e-12, "ternary noise");
    check_relative(n.cross, first - 1, 1e-12, "ternary cross");
    check_relative(n.below, 1 - beyond, 1e-12, "ternary below");
    check_relative(n.above, 2 * qg_normal_cdf(-1), 1e-12, "ternary above");
    // The same for Laplace with c = sqrt 2: E|x|; |x| > t = e^(-c t) (t + 1/c).
    n = tensor(QG_DENSITY_LAPLACE, 1, (qg_grid){ternary, 2}, 0.5);
    double c = sqrt(2), mass = exp(-c / 2), moment = mass * (0.5 + 1 / c);
    check_relative(n.noise, 1 - 2 * moment + mass, 1e-12, "Laplace noise");
    check_relative(n.above, exp(-c), 1e-12, "Laplace above");
    // A uniform law on +-127.5 steps rounded to whole steps: step^2 / 12, and it covers all cells.
    qg_grid grid = int8();
    n = tensor(QG_DENSITY_UNIFORM, 127.5 * 0.01 / sqrt(3), grid, 0.01);
    check_relative(n.noise, 1e-4 / 12, 1e-12, "uniform noise");
    check_relative(n.below, 0.5 / 127.5, 1e-12, "uniform below");
    check_relative(n.above, 0.5 / 127.5, 1e-12, "uniform above");
    free_grid(grid);
}
END_TEST

// Noise over signal, averaged over one octave of the scale in `steps` steps.
static double octave_average(qg_density density, qg_grid grid, double scale, int steps) {
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        qg_noise n = tensor(density, 1, grid, scale * exp2((double)i / steps));
        sum += n.noise / n.signal;
    }
    return sum / steps;
}

START_TEST(universal_constants) {
    static const struct {
        int mbits;
        double db;
    } table[] = {
        {1, 19.6967},
        {2, 25.5588},
        {3, 31.5363},
        {4, 37.5459},
        {5, 43.5637},
        {7, 55.6040}
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        qg_grid grid = float_grid(table[i].mbits, -24, 6, 0); // ample on both sides
        double normal = octave_average(QG_DENSITY_NORMAL, grid, 1, 16);
        double laplace = octave_average(QG_DENSITY_LAPLACE, grid, 1, 16);
        ck_assert_double_eq_tol(-10 * log10(normal), table[i].db, 6e-5);
        ck_assert_double_eq_tol(-10 * log10(laplace), table[i].db, 6e-5);
        if (table[i].mbits == 3) { // the end of the law is a kink: the average converges slowly
            double uniform = octave_average(QG_DENSITY_UNIFORM, grid, 1, 1000);
            ck_assert_double_eq_tol(-10 * log10(uniform), table[i].db, 5e-4);
        }
        free_grid(grid);
    }
    qg_grid grid = float_grid(10, -18, 4, 0);
    ck_assert_double_eq_tol(-10 * log10(octave_average(QG_DENSITY_NORMAL, grid, 1, 4)), 73.6658,
                            2e-4);
    free_grid(grid);
}
END_TEST

// The smallest and largest QSNR over an octave of an unclipped scale.
static void check_spread(qg_density density, qg_grid grid, double least, double most,
                         double digit) {
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < 1024; i++) {
        double db = qg_noise_qsnr_db(tensor(density, 1, grid, 0x1p-2 * exp2(i / 1024.0)));
        low = fmin(low, db), high = fmax(high, db);
    }
    ck_assert_msg(fabs(low - least) <= digit && fabs(high - most) <= digit, "%.5f .. %.5f", low,
                  high);
}

START_TEST(spread_over_the_octave) {
    qg_grid grid = float_grid(3, -24, 8, 0);
    check_spread(QG_DENSITY_NORMAL, grid, 31.516, 31.557, 0.0006);
    check_spread(QG_DENSITY_LAPLACE, grid, 31.5359, 31.5367, 0.00006);
    check_spread(QG_DENSITY_UNIFORM, grid, 30.80, 32.74, 0.006);
    free_grid(grid);
    grid = float_grid(2, -24, 8, 0);
    check_spread(QG_DENSITY_NORMAL, grid, 25.536, 25.582, 0.0006);
    check_spread(QG_DENSITY_UNIFORM, grid, 24.53, 26.91, 0.006);
    free_grid(grid);
}
END_TEST

START_TEST(real_formats_lie_on_the_plateau) {
    qg_grid grid = e4m3();
    double db = qg_noise_qsnr_db(tensor(QG_DENSITY_NORMAL, 1, grid, 0x1p-5));
    ck_assert_msg(db > 31.5 && db < 31.56, "%g", db);
    // scale and law scale together
    qg_noise n = tensor(QG_DENSITY_NORMAL, 1, grid, 0x1p-5);
    qg_noise scaled = tensor(QG_DENSITY_NORMAL, 1e-3, grid, 1e-3 * 0x1p-5);
    check_relative(scaled.noise / n.noise, 1e-6, 1e-10, "scaled noise");
    free_grid(grid);
    grid = e5m2();
    db = qg_noise_qsnr_db(tensor(QG_DENSITY_LAPLACE, 1, grid, 0x1p-7));
    ck_assert_double_eq_tol(db, 25.5588, 5e-3);
    free_grid(grid);
}
END_TEST

// --------------------------------------------------------------------------------------- per block

typedef enum rule { AMAX, FLOOR, RCEIL, UE4M3 } rule;

typedef struct rule_context {
    rule rule;
    qg_grid grid, ue4m3;
    int calls;
} rule_context;

static double nearest(qg_grid grid, double x) {
    int64_t low = 0, high = grid.count - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (x < 0.5 * (grid.value[middle] + grid.value[middle + 1]))
            high = middle;
        else
            low = middle + 1;
    }
    return grid.value[low];
}

static double scale_of(void *context, double amax) {
    rule_context *c = context;
    double top = largest(c->grid);
    int a, f;
    c->calls++;
    switch (c->rule) {
    case FLOOR: frexp(amax, &a), frexp(top, &f); return ldexp(1, a - f);
    case RCEIL: {
        double m = frexp(amax / top, &a);
        return ldexp(1, m == 0.5 ? a - 1 : a);
    }
    case UE4M3: return nearest(c->ue4m3, amax / top);
    default: return (float)amax / (float)top;
    }
}

static qg_noise block(qg_density density, double sigma, rule_context *c, int64_t g) {
    qg_noise noise;
    qg_status status = qg_theory_block(density, sigma, c->grid, g, scale_of, c, &noise);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return noise;
}

enum { E2M1, E4M3, INT8, GRIDS };
static void make_grids(qg_grid grids[GRIDS]) {
    grids[E2M1] = e2m1();
    grids[E4M3] = e4m3();
    grids[INT8] = int8();
}

static const struct {
    qg_density density;
    int grid;
    int64_t g;
    rule rule;
    double ratio;
} references[] = {
#include "theory_values.h"
};

START_TEST(blocks_match_an_independent_integration) {
    qg_grid grids[GRIDS];
    make_grids(grids);
    for (size_t i = 0; i < sizeof references / sizeof *references; i++) {
        rule_context c = {references[i].rule, grids[references[i].grid], {0}, 0};
        qg_noise n = block(references[i].density, 1, &c, references[i].g);
        double db = 10 * log10(n.noise / references[i].ratio);
        ck_assert_msg(fabs(db) < 1e-5, "case %zu: %.3g dB off", i, db);
        if (i % 10 == 0) { // signal and noise scale with the law; powers of two exactly
            qg_noise scaled = block(references[i].density, 4, &c, references[i].g);
            check_relative(scaled.noise / scaled.signal, n.noise / n.signal, 1e-9, "scaled block");
        }
    }
    for (int i = 0; i < GRIDS; i++)
        free_grid(grids[i]);
}
END_TEST

START_TEST(blocks_of_one_and_scales_of_zero) {
    static const double values[] = {0, 1};
    rule_context c = {
        AMAX, {values, 2},
         {0     },
         0
    };
    qg_noise n = block(QG_DENSITY_NORMAL, 1, &c, 1); // every value is its own scale
    ck_assert(n.noise < 1e-13 && n.above == 0 && n.below == 0);
    c.rule = RCEIL; // nearest of 0 and 2^k at |x| in (2^(k-1), 2^k]: always 2^k
    n = block(QG_DENSITY_UNIFORM, 1, &c, 1);
    // E (2^k - x)^2 on one octave of width w = 2^(k-1), k >= 1: w^2 / 3; on (1, sqrt 3]:
    double top = ((2 - sqrt(3)) * (2 - sqrt(3)) * (2 - sqrt(3))) / -3 + 1.0 / 3;
    double below = 0; // octaves (2^-j/2, 2^-j], width 2^-j/2
    for (double w = 0.5; w > 1e-9; w /= 2)
        below += w * w * w / 3;
    check_relative(n.noise, (top + below) / sqrt(3), 1e-9, "one value per block");
    qg_grid grid = e4m3(), small = e2m1();
    rule_context lost = {UE4M3, small, grid, 0};
    n = block(QG_DENSITY_NORMAL, 1e-5, &lost, 16); // the scale rounds to 0: all is lost
    check_relative(n.noise, 1e-10, 1e-9, "noise of lost blocks");
    check_relative(n.below, 1, 1e-9, "share of lost values");
    check_relative(n.above, 1, 1e-9, "share of saturated values");
    free_grid(grid), free_grid(small);
}
END_TEST

// ------------------------------------------------------------------------------- plain quadrature

// Midpoints alone. Those of the maximum are 2^-10 apart, so that every step of the scale in use, a
// multiple of 2^-10, lies between two of them.
enum { PER_UNIT = 1024, BELOW = 2000, HIGHEST = 20 };

static double plain_density(qg_density density, double x) {
    switch (density) {
    case QG_DENSITY_NORMAL: return sqrt(2 / acos(-1)) * exp(-x * x / 2);
    case QG_DENSITY_LAPLACE: return sqrt(2) * exp(-sqrt(2) * x);
    default: return x < sqrt(3) ? 1 / sqrt(3) : 0;
    }
}

static double plain_distribution(qg_density density, double x) {
    switch (density) {
    case QG_DENSITY_NORMAL: return erf(x / sqrt(2));
    case QG_DENSITY_LAPLACE: return -expm1(-sqrt(2) * x);
    default: return x / sqrt(3);
    }
}

static void add_plain(qg_noise *sum, const rule_context *c, double scale, double x, double mass) {
    double q = nearest(c->grid, x / scale) * scale;
    sum->noise += mass * (x - q) * (x - q);
    sum->cross += mass * x * (q - x);
    sum->drift += mass * (q - x);
    sum->below += mass * (q == 0);
    sum->above += mass * (x > largest(c->grid) * scale * (1 + 1e-6));
}

// A block has its maximum at a, and g - 1 values below.
static qg_noise plain_block(qg_density density, rule_context *c, int64_t g) {
    qg_noise sum = {0, 0, 0, 0, 0, 0};
    double others = (double)(g - 1);
    for (int i = 0; i < HIGHEST * PER_UNIT; i++) {
        double a = (i + 0.5) / PER_UNIT, scale = scale_of(c, a);
        double body = plain_distribution(density, a), step = a / BELOW;
        double mass = plain_density(density, a) * pow(body, others - 1) / PER_UNIT;
        if (mass < 1e-12) // adds less than 1e-8 in all
            continue;
        add_plain(&sum, c, scale, a, mass * body);
        for (int j = 0; j < BELOW; j++) {
            double x = (j + 0.5) * step;
            add_plain(&sum, c, scale, x, mass * others * step * plain_density(density, x));
        }
    }
    return sum;
}

START_TEST(blocks_match_a_plain_quadrature) {
    static const int sizes[] = {16, 128};
    static const rule rules[] = {AMAX, FLOOR, RCEIL, UE4M3};
    qg_grid grids[GRIDS];
    make_grids(grids);
    for (int i = 0; i < 2 * 2 * 4; i++) {
        rule r = rules[i % 4];
        int64_t g = sizes[i / 4 % 2];
        qg_density density = i < 8 ? QG_DENSITY_NORMAL : QG_DENSITY_LAPLACE;
        rule_context c = {r, grids[E2M1], grids[E4M3], 0};
        qg_noise n = block(density, 1, &c, g), plain = plain_block(density, &c, g);
        double db = qg_noise_qsnr_db(n) - 10 * log10(n.signal / plain.noise);
        ck_assert_msg(fabs(db) < 1e-5, "case %d: %.3g dB off", i, db);
        // shares jump at the edges of cells: midpoints hit them to a step
        ck_assert_double_eq_tol(n.cross, plain.cross, 1e-3);
        ck_assert_double_eq_tol(n.drift, plain.drift, 1e-3);
        ck_assert_double_eq_tol(n.below, plain.below, 2e-3);
        ck_assert_double_eq_tol(n.above, plain.above, 2e-3);
    }
    for (int i = 0; i < GRIDS; i++)
        free_grid(grids[i]);
}
END_TEST

// -------------------------------------------------------------------------------------- simulation

enum { SAMPLES = 1 << 18 };

// Sums over blocks of what one block adds, for a ratio and its standard error.
typedef struct tally {
    double signal, noise, cross, below, above, noise_error, cross_error, below_error, above_error;
} tally;

static tally simulate_block(rule_context *c, int64_t g, const float *x) {
    tally t = {0};
    double amax = 0;
    for (int64_t i = 0; i < g; i++)
        amax = fmax(amax, fabs((double)x[i]));
    double scale = scale_of(c, amax), top = largest(c->grid) * scale;
    for (int64_t i = 0; i < g; i++) {
        double a = fabs((double)x[i]), q = scale > 0 ? nearest(c->grid, a / scale) * scale : 0;
        t.signal += a * a;
        t.noise += (a - q) * (a - q);
        t.cross += a * (q - a);
        t.below += q == 0;
        t.above += a > top * (1 + 1e-6);
    }
    return t;
}

// One part in 10^7 beside 5 standard errors: the scale of the rule is a binary32 number.
static void require_near(double got, double want, double error, const char *what, int grid, int g,
                         rule r) {
    ck_assert_msg(fabs(got - want) <= 5 * error + 1e-7 * fabs(want),
                  "%s, grid %d, g %d, rule %d: simulated %.9g, theory %.9g, s.e. %.2g", what, grid,
                  g, (int)r, got, want, error);
}

static void check_simulation(const char *law_text, int grid_id, rule_context *c, int g) {
    qg_law *law;
    double sigma;
    ck_assert_int_eq(qg_law_parse(law_text, &law), QG_OK);
    qg_density density = qg_law_density(law, &sigma);
    float *x = malloc(sizeof *x * SAMPLES);
    qg_law_generate(law, 99, 0, SAMPLES, 0, 1, x);
    qg_noise n = block(density, sigma, c, g);
    double rho = n.noise / n.signal, shrinkage = n.cross / n.signal;
    tally sum = {0};
    for (int64_t first = 0; first < SAMPLES; first += g) {
        tally t = simulate_block(c, g, x + first);
        // deviations from theory, which a ratio's standard error is made of
        double noise = t.noise - rho * t.signal, cross = t.cross - shrinkage * t.signal;
        double below = t.below - n.below * g, above = t.above - n.above * g;
        sum.signal += t.signal, sum.noise += t.noise, sum.cross += t.cross;
        sum.below += t.below, sum.above += t.above;
        sum.noise_error += noise * noise, sum.cross_error += cross * cross;
        sum.below_error += below * below, sum.above_error += above * above;
    }
    rule r = c->rule;
    double rare = (double)g * g; // one block more or less, where the sample may hold none
    require_near(sum.noise / sum.signal, rho, sqrt(sum.noise_error) / sum.signal, law_text, grid_id,
                 g, r);
    require_near(sum.cross / sum.signal, shrinkage, sqrt(sum.cross_error) / sum.signal, "shrinkage",
                 grid_id, g, r);
    require_near(sum.below / SAMPLES, n.below, sqrt(sum.below_error + rare) / SAMPLES, "below",
                 grid_id, g, r);
    require_near(sum.above / SAMPLES, n.above, sqrt(sum.above_error + rare) / SAMPLES, "above",
                 grid_id, g, r);
    free(x);
    qg_law_free(law);
}

START_TEST(simulations_agree) {
    static const char *const laws[] = {"normal", "laplace", "uniform"};
    static const int sizes[] = {16, 32, 128};
    static const rule rules[] = {AMAX, FLOOR, RCEIL, UE4M3};
    qg_grid grids[GRIDS];
    make_grids(grids);
    for (int i = 0; i < 3 * GRIDS * 3 * 4; i++) {
        int r = i % 4, s = i / 4 % 3, grid = i / 12 % GRIDS, law = i / (12 * GRIDS);
        rule_context c = {rules[r], grids[grid], grids[E4M3], 0};
        check_simulation(laws[law], grid, &c, sizes[s]);
    }
    // narrow data, whose ue4m3 scale is subnormal or zero
    rule_context c = {UE4M3, grids[E2M1], grids[E4M3], 0};
    check_simulation("normal:sigma=0.004", E2M1, &c, 16);
    for (int i = 0; i < GRIDS; i++)
        free_grid(grids[i]);
}
END_TEST

START_TEST(tensor_simulation_agrees) {
    qg_grid grid = e2m1();
    for (double scale = 0.05; scale < 3; scale *= 1.7) {
        qg_noise n = tensor(QG_DENSITY_NORMAL, 1, grid, scale);
        float *x = malloc(sizeof *x * SAMPLES);
        qg_law *law;
        ck_assert_int_eq(qg_law_parse("normal", &law), QG_OK);
        qg_law_generate(law, 5, 0, SAMPLES, 0, 1, x);
        double noise = 0, square = 0, below = 0, above = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double a = fabs((double)x[i]), q = nearest(grid, a / scale) * scale;
            noise += (a - q) * (a - q), square += pow(a - q, 4);
            below += q == 0, above += a > 6 * scale;
        }
        noise /= SAMPLES, square /= SAMPLES, below /= SAMPLES, above /= SAMPLES;
        ck_assert_double_eq_tol(noise, n.noise, 5 * sqrt((square - noise * noise) / SAMPLES));
        ck_assert_double_eq_tol(below, n.below, 5 * sqrt(below / SAMPLES));
        ck_assert_double_eq_tol(above, n.above, 5 * sqrt(above / SAMPLES + 1e-12));
        free(x);
        qg_law_free(law);
    }
    free_grid(grid);
}
END_TEST

// ------------------------------------------------------------------------------------------ errors

static double bad_scale(void *context, double amax) { return amax > 1 ? *(double *)context : 1; }

START_TEST(arguments_out_of_range_are_refused) {
    static const double good[] = {0, 1, 2}, unsorted[] = {0, 2, 1}, shifted[] = {1, 2};
    qg_noise n;
    qg_grid grid = {good, 3};
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NONE, 1, grid, 1, &n), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 0, grid, 1, &n), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, INFINITY, grid, 1, &n), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 1, grid, 0, &n), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 1, grid, NAN, &n), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 1, (qg_grid){unsorted, 3}, 1, &n),
                     QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 1, (qg_grid){shifted, 2}, 1, &n),
                     QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_theory_tensor(QG_DENSITY_NORMAL, 1, (qg_grid){good, 0}, 1, &n),
                     QG_ERROR_ARGUMENT);
    rule_context c = {AMAX, grid, {0}, 0};
    ck_assert_int_eq(qg_theory_block(QG_DENSITY_NORMAL, 1, grid, 0, scale_of, &c, &n),
                     QG_ERROR_ARGUMENT);
    double bad[] = {-1, INFINITY, NAN};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(qg_theory_block(QG_DENSITY_NORMAL, 1, grid, 8, bad_scale, &bad[i], &n),
                         QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        closed_forms,
        universal_constants,
        spread_over_the_octave,
        real_formats_lie_on_the_plateau,
        blocks_match_an_independent_integration,
        blocks_of_one_and_scales_of_zero,
        blocks_match_a_plain_quadrature,
        simulations_agree,
        tensor_simulation_agrees,
        arguments_out_of_range_are_refused,
    };
    return RUN_SUITE("theory", tests);
}
