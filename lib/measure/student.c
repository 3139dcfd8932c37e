// Student's t from the normal: the map z -> t that keeps the probability, tabulated.
//
// With t = sqrt(nu) sinh s the density of s is c cosh(s)^-nu, so ds/dz = phi(z) cosh(s)^nu / c: a
// smooth equation for every nu (t itself grows like e^(z^2 / (2 nu))). Solved by Runge and Kutta's
// fourth-order rule. Outward from z = 0 an error grows with cosh(s)^nu, inward it shrinks as much:
// so outward up to z = 1 only, and inward from z = 12, where a start that is right within a factor
// is forgotten long before z = 7. Relative error of t: below 1e-10 for nu >= 1/2 (test_laws.c).
#include <elementary_internal.h>
#include <law_internal.h>

enum { STEPS_PER_KNOT = 8, OUTWARD_KNOTS = T_KNOTS_PER_UNIT, START = 12 };

typedef struct map {
    double nu, c; // c: the density of s at 0
} map;

// Gamma(x + 1/2) / Gamma(x): the asymptotic series, after moving x above 64.
static double gamma_ratio(double x) {
    double factor = 1;
    for (; x < 64; x++)
        factor *= x / (x + 0.5);
    double r = 1 / x;
    double series = -399.0 / 262144;
    series = series * r - 21.0 / 32768;
    series = series * r + 5.0 / 1024;
    series = series * r + 1.0 / 128;
    series = series * r - 1.0 / 8;
    return factor * sqrt(x) * (1 + series * r);
}

static double sinh_of(double s) {
    if (s < 0.01)
        return s * (1 + s * s / 6 * (1 + s * s / 20));
    return 0.5 * (qg_exp(s) - qg_exp(-s));
}

static double tanh_of(double s) {
    double e = qg_exp(-2 * s);
    return s < 0.01 ? s * (1 - s * s / 3 * (1 - 0.4 * s * s)) : (1 - e) / (1 + e);
}

// log cosh s, s >= 0, without overflow and without losing a small s.
static double log_cosh(double s) {
    if (s > 1)
        return s - LN2_HIGH + (qg_log1p(qg_exp(-2 * s)) - LN2_LOW);
    double sinh = sinh_of(s);
    return 0.5 * qg_log1p(sinh * sinh);
}

// log(sinh s / z), s > 0.
static double log_ratio(double s, double z) {
    if (s > 1)
        return s - LN2_HIGH + (qg_log1p(-qg_exp(-2 * s)) - LN2_LOW) - qg_log(z);
    return qg_log(sinh_of(s) / z);
}

static double slope(const map *m, double z, double s) {
    const double log_sqrt_2pi = 0.91893853320467274178;
    return qg_exp(m->nu * log_cosh(s) - 0.5 * z * z - log_sqrt_2pi) / m->c;
}

static double runge_kutta(const map *m, double z, double s, double h) {
    double k1 = slope(m, z, s);
    double k2 = slope(m, z + 0.5 * h, s + 0.5 * h * k1);
    double k3 = slope(m, z + 0.5 * h, s + 0.5 * h * k2);
    double k4 = slope(m, z + h, s + h * k3);
    return s + h / 6 * (k1 + 2 * (k2 + k3) + k4);
}

static double knot_z(int i) { return (double)i / T_KNOTS_PER_UNIT; }

// s one knot further from knot i, in the direction of `sign`.
static double next_knot(const map *m, int i, double s, int sign) {
    double h = sign * 1.0 / (T_KNOTS_PER_UNIT * STEPS_PER_KNOT);
    for (int step = 0; step < STEPS_PER_KNOT; step++)
        s = runge_kutta(m, knot_z(i) + step * h, s, h);
    return s;
}

static void set_knot(const map *m, int i, double s, t_knot *knots) {
    // dL/dz = coth(s) ds/dz - 1/z
    double z = knot_z(i);
    knots[i].value = 0.5 * qg_log(m->nu) + log_ratio(s, z);
    knots[i].slope = (slope(m, z, s) / tanh_of(s) - 1 / z) / T_KNOTS_PER_UNIT;
}

// log of the upper tail c cosh(s)^-nu / (nu tanh s), too large by a factor that tends to 1.
static double log_tail(const map *m, double s) {
    return -m->nu * log_cosh(s) + qg_log(m->c / m->nu) - qg_log(tanh_of(s));
}

// An s near that of z: its tail is the normal's, phi(z) / z.
static double tail_start(const map *m, double z) {
    double wanted = qg_log(qg_normal_density(z) / z);
    double low = 0, high = m->nu > 1 ? 1 / sqrt(m->nu) : 1;
    while (log_tail(m, high) > wanted)
        high *= 2;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (log_tail(m, middle) > wanted)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void student_tabulate(double nu, t_knot *knots) {
    const double sqrt_pi = 1.77245385090551602730;
    map m = {nu, gamma_ratio(0.5 * nu) / sqrt_pi};
    // t near 0: z phi(0) / f(0)
    knots[0].value = qg_log(0x1.9884533d43651p-2 * sqrt(nu) / m.c);
    knots[0].slope = 0;
    double s = 0;
    for (int i = 0; i < OUTWARD_KNOTS; i++) {
        s = next_knot(&m, i, s, 1);
        set_knot(&m, i + 1, s, knots);
    }
    s = tail_start(&m, START);
    for (int i = START * T_KNOTS_PER_UNIT; i > OUTWARD_KNOTS + 1; i--) {
        s = next_knot(&m, i, s, -1);
        if (i - 1 < T_KNOTS)
            set_knot(&m, i - 1, s, knots);
    }
}
