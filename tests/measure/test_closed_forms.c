// The closed forms against the figures that their papers print, and against one another.
#include <qg_closed_forms.h>
#include <run_suite.h>

#include <math.h>

static const qg_closed_format MXFP8 = {0, 3, 7, 448, 1.5, 0}, MXINT8 = {8, 0, 0, 127, 1.5, 0};
static const qg_closed_format MXFP6 = {0, 3, 1, 7.5, 1.5, 0}, MXINT6 = {6, 0, 0, 31, 1.5, 0};
static const qg_closed_format MXFP4 = {0, 1, 1, 6, 1.5, 0}, MXINT4 = {4, 0, 0, 7, 1.5, 0};
static const qg_closed_format NVFP4 = {0, 1, 1, 6, 1, 16}, NVINT4 = {4, 0, 0, 7, 1, 16};

static void check_near(double got, double want, double digit, const char *what) {
    ck_assert_msg(fabs(got - want) <= digit, "%s: %.6f, not %.6f", what, got, want);
}

START_TEST(ample_range_constants) {
    // Computed elsewhere by quadrature in extended precision.
    static const struct {
        int mbits;
        double db;
    } table[] = {
        {1,  19.6967 },
        {2,  25.5588 },
        {3,  31.5363 },
        {4,  37.5459 },
        {5,  43.5637 },
        {7,  55.6040 },
        {10, 73.6658 },
        {23, 151.9336}
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        check_near(qg_closed_ample_range_db(table[i].mbits), table[i].db, 6e-5, "ample range");
    // Many mantissa bits: 3 / (96 ln 2) 4^-m.
    check_near(qg_closed_ample_range_db(16), -10 * log10(3 / (96 * log(2)) * pow(4, -16)), 1e-6,
               "limit");
    // No mantissa bits: 1/ln 2 (integral of (x - 1)^2 x^-3 to 1.5, of (x - 2)^2 x^-3 from there).
    double below = log(1.5) + 2 / 1.5 - 0.5 / 2.25 - (2 - 0.5);
    double above = log(2) + 2 - 0.5 - (log(1.5) + 4 / 1.5 - 2 / 2.25);
    check_near(qg_closed_ample_range_db(0), -10 * log10((below + above) / log(2)), 2e-3, "powers");
    ck_assert(isnan(qg_closed_ample_range_db(-1)) && isnan(qg_closed_ample_range_db(24)));
}
END_TEST

static double crossover(const qg_closed_format *a, const qg_closed_format *b) {
    double kappa = 0;
    ck_assert_msg(qg_closed_crossover(a, b, 1.01, 16, &kappa) == QG_OK, "%s", qg_detail());
    return kappa;
}

START_TEST(published_crossovers) {
    check_near(crossover(&MXINT8, &MXFP8), 7.55, 0.005, "8 bits");
    check_near(crossover(&MXINT6, &MXFP6), 1.96, 0.005, "6 bits");
    check_near(crossover(&MXINT4, &MXFP4), 2.04, 0.005, "4 bits");
    // Published: 2.39. The printed forms give this (spec: three of four follow).
    double kappa = 0;
    ck_assert_int_eq(qg_closed_crossover(&NVINT4, &NVFP4, 1.01, 3, &kappa), QG_OK);
    check_near(kappa, 2.4641, 0.0001, "NV 4 bits");
    check_near(qg_closed_qsnr_db(&NVINT4, kappa), qg_closed_qsnr_db(&NVFP4, kappa), 1e-9, "equal");
}
END_TEST

START_TEST(integers_and_floats) {
    check_near(qg_closed_qsnr_db(&MXINT8, 1), 4.78 + 48.16 - 20 * log10(1.5), 1e-12, "crest 1");
    check_near(qg_closed_qsnr_db(&MXINT8, 1) - qg_closed_qsnr_db(&MXINT8, 10), 20, 1e-9, "slope");
    check_near(qg_closed_qsnr_db(&NVINT4, 2), 4.78 + 24.08 + 10 * log10(16.0 / 15 / 4), 1e-12,
               "UE4M3 scale");
    // Range to spare: 13.80 + 6.02 m.
    check_near(qg_closed_qsnr_db(&MXFP8, 2), 10 * log10(24 * 64), 2e-3, "plateau");
    // By hand at kappa 3: T = 0.75, p = 0.546745, w = 0.904961.
    check_near(qg_closed_qsnr_db(&MXFP4, 3),
               -10 * log10(0.904961 / 96 + 20.25 * 0.546745 / (4.0 * 12 * 36)), 1e-4, "E2M1");
    // By hand at kappa 2: T = 1/3, p = 0.261117, w = 0.990471.
    check_near(qg_closed_qsnr_db(&NVFP4, 2),
               -10 * log10((0.990471 - 0.25) / 96 + 4 * 0.261117 / (4.0 * 12 * 36)), 1e-4,
               "E2M1, UE4M3 scale");
}
END_TEST

START_TEST(where_there_is_no_number) {
    double kappa = -1;
    ck_assert(isnan(qg_closed_qsnr_db(&MXINT8, 0.99)) && isnan(qg_closed_qsnr_db(&MXFP8, NAN)));
    ck_assert(isnan(qg_closed_qsnr_db(&NVFP4, 4))); // kappa^2 = g
    ck_assert_int_eq(qg_closed_crossover(&MXINT8, &MXFP8, 1.01, 7, &kappa), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_closed_crossover(&NVINT4, &NVFP4, 1.01, 5, &kappa), QG_ERROR_ARGUMENT);
    ck_assert(kappa == -1);
}
END_TEST

START_TEST(shared_exponent_bounds) {
    // MX9, MX6, MX4: 16 values share an exponent, 2 a shift of one bit.
    check_near(qg_closed_shared_exponent_bound_db(7, 1, 1 << 20, 16, 2), 42.14 - 7.4036, 1e-4,
               "MX9");
    check_near(qg_closed_shared_exponent_bound_db(2, 1, 1 << 20, 16, 2), 12.04 - 7.4036, 1e-4,
               "MX4");
    check_near(qg_closed_shared_exponent_bound_db(7, 0, 1 << 20, 16, 2), 42.14 - 12.0412, 1e-4,
               "MSFP16");
    check_near(qg_closed_shared_exponent_bound_db(7, 0, 4, 16, 2), 42.14 - 6.0206, 1e-4,
               "a short vector");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        ample_range_constants,    published_crossovers,   integers_and_floats,
        where_there_is_no_number, shared_exponent_bounds,
    };
    return RUN_SUITE("closed_forms", tests);
}
