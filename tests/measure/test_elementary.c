// qg_elementary.h against high-precision values, and its order and symmetry.
#include <qg_elementary.h>

#include <check.h>
#include <math.h> // isnan, INFINITY
#include <qg_bits.h>
#include <require.h>
#include <run_suite.h>
#include <stdint.h>

#include "elementary_values.h"

// The largest relative error of f over (count) reference values, 0 where both are equal.
static double worst_relative(double (*f)(double), const elementary_value *v, size_t count) {
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double got = f(v[i].x);
        if (got == v[i].value)
            continue;
        double error = (got - v[i].value) / v[i].value;
        error = error < 0 ? -error : error;
        ck_assert_msg(error == error, "argument %a: %a, not %a", v[i].x, got, v[i].value);
        worst = error > worst ? error : worst;
    }
    return worst;
}
#define WORST(f, table) worst_relative(f, table, sizeof table / sizeof *(table))

START_TEST(values_meet_the_stated_bounds) {
    double exp_error = WORST(qg_exp, exp_values), log_error = WORST(qg_log, log_values);
    double log1p_error = WORST(qg_log1p, log1p_values), log10_error = WORST(qg_log10, log10_values);
    double quantile_error = WORST(qg_normal_quantile, quantile_values);
    double density_error = WORST(qg_normal_density, density_values);
    double cdf_error = WORST(qg_normal_cdf, cdf_values);
    ck_assert_msg(exp_error < 0x1p-52, "exp %g", exp_error);
    ck_assert_msg(log_error < 0x1p-52, "log %g", log_error);
    ck_assert_msg(log1p_error < 0x1p-51, "log1p %g", log1p_error);
    ck_assert_msg(log10_error < 0x1p-52, "log10 %g", log10_error);
    ck_assert_msg(quantile_error < 1e-15, "quantile %g", quantile_error);
    ck_assert_msg(density_error < 1e-15, "density %g", density_error);
    ck_assert_msg(cdf_error < 1e-14, "cdf %g", cdf_error);
}
END_TEST

START_TEST(edges) {
    ck_assert(qg_exp(-746) == 0 && qg_exp(710) == INFINITY && qg_exp(0) == 1);
    ck_assert(qg_exp(-INFINITY) == 0 && qg_exp(INFINITY) == INFINITY && isnan(qg_exp(NAN)));
    ck_assert(qg_exp(-745) == 0x1p-1074); // e^-745 = 1.0096 2^-1074
    ck_assert(qg_log(1) == 0 && qg_log(0) == -INFINITY && qg_log(INFINITY) == INFINITY);
    ck_assert(isnan(qg_log(-1)) && isnan(qg_log(NAN)));
    ck_assert(qg_log1p(0) == 0 && qg_log1p(-1) == -INFINITY && qg_log1p(1e-300) == 1e-300);
    ck_assert(qg_log10(0) == -INFINITY && isnan(qg_log10(-1)));
    ck_assert(qg_normal_quantile(0) == -INFINITY && qg_normal_quantile(1) == INFINITY);
    ck_assert(isnan(qg_normal_quantile(-0.1)) && isnan(qg_normal_quantile(1.1)));
    ck_assert(isnan(qg_normal_quantile(NAN)) && qg_normal_quantile(0.5) == 0);
    ck_assert(qg_normal_cdf(-50) == 0 && qg_normal_cdf(50) == 1 && qg_normal_cdf(0) == 0.5);
    ck_assert(qg_normal_density(INFINITY) == 0 && isnan(qg_normal_density(NAN)));
}
END_TEST

START_TEST(log10_of_powers_of_ten_is_exact) {
    double power = 1;
    for (int k = 0; k <= 22; k++, power *= 10) // 10^22 is the last exact one
        REQUIRE(qg_log10(power) == k, "10^%d", k);
}
END_TEST

START_TEST(quantile_is_odd_and_increasing) {
    double previous = -INFINITY;
    for (int i = 1; i < 1 << 20; i++) {
        double p = i * 0x1p-20, z = qg_normal_quantile(p);
        REQUIRE(z > previous, "p = %a", p);
        REQUIRE(z == -qg_normal_quantile(1 - p), "p = %a", p);
        previous = z;
    }
    previous = -INFINITY;
    for (uint32_t word = 0; word < 1u << 20; word++) { // the words of the deepest tail
        double z = qg_normal_quantile((word + 0.5) * 0x1p-32);
        REQUIRE(z > previous, "word %u", word);
        previous = z;
    }
}
END_TEST

START_TEST(exp_and_log_are_increasing_and_inverse) {
    double previous_exp = 0, previous_log = -INFINITY;
    for (int i = -70000; i <= 70000; i++) {
        double x = i * 0.01, y = qg_exp(x);
        REQUIRE(y > previous_exp, "x = %a", x);
        double back = qg_log(y), slack = 0x1p-52 * (x < 0 ? 1 - x : 1 + x);
        REQUIRE(back - x < slack && x - back < slack && back > previous_log, "x = %a", x);
        previous_exp = y;
        previous_log = back;
    }
}
END_TEST

START_TEST(cdf_inverts_the_quantile_and_is_increasing) {
    double previous = -1;
    for (int i = -3700; i <= 800; i++) {
        double z = i * 0.01, p = qg_normal_cdf(z);
        REQUIRE(p > previous || z > 5, "z = %g", z); // near 1 neighbours share a double
        previous = p;
        if (z > 0)
            continue;
        double back = qg_normal_quantile(p), slack = 2e-14 * (1 - z);
        REQUIRE(back - z < slack && z - back < slack, "z = %g, back %g", z, back);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        values_meet_the_stated_bounds,          edges,
        log10_of_powers_of_ten_is_exact,        quantile_is_odd_and_increasing,
        exp_and_log_are_increasing_and_inverse, cdf_inverts_the_quantile_and_is_increasing,
    };
    return RUN_SUITE("elementary", tests);
}
