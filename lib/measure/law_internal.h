// What law.c reads from a text and data.c computes with.
#ifndef LAW_INTERNAL_H
#define LAW_INTERNAL_H

#include <qg_data.h>

typedef enum law_kind {
    LAW_NORMAL,
    LAW_LAPLACE,
    LAW_UNIFORM,
    LAW_STUDENT_T,
    LAW_LOGNORMAL,
    LAW_OUTLIERS,
    LAW_CREST
} law_kind;

// Student's t as a function of the normal z with the same probability: t = z e^L(|z|). L is even,
// smooth and grows like z^2 / (2 nu), so a cubic between knots gives every t, however far out, with
// the same relative accuracy. The words of Philox reach |z| = 6.34.
enum { T_KNOTS_PER_UNIT = 128, T_KNOTS = 7 * T_KNOTS_PER_UNIT + 1 };
typedef struct t_knot {
    double value, slope; // L and dL/dz times the knot distance
} t_knot;

struct qg_law {
    law_kind kind;
    double parameter[2]; // A, NU, S, X or K and G
    int absolute;
    double sigma;   // the factor of :sigma=
    float largest;  // values above become this one: keeps uniform:A:abs below A
    t_knot *t;      // T_KNOTS of them for student_t, else NULL
    char name[128]; // canonical
};

// Fills T_KNOTS knots for nu > 0 degrees of freedom.
void student_tabulate(double nu, t_knot *knots);

// log(t / z) at 0 <= z < 7: Hermite's cubic between two knots.
static inline double student_log_ratio(const t_knot *knots, double z) {
    double place = z * T_KNOTS_PER_UNIT;
    int left = (int)place;
    double f = place - left, rest = 1 - f;
    const t_knot *k = knots + left;
    return rest * rest * ((1 + 2 * f) * k[0].value + f * k[0].slope) +
           f * f * ((1 + 2 * rest) * k[1].value - rest * k[1].slope);
}

#endif
