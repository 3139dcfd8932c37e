// Formulas of gates: + - * / ^, parentheses, min max abs sqrt log2 log10, numbers and names.
// Knows nothing of what names mean. NaN wherever an operand is NaN.
#ifndef GATE_FORMULA_H
#define GATE_FORMULA_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct qg_formula qg_formula;

// The number of a name, -1 if there is none.
typedef int (*qg_formula_knows)(const char *name);
// The value of a name, by its number, for a case; NaN where it does not apply.
typedef double (*qg_formula_value)(const void *context, int name);

// QG_ERROR_ARGUMENT: what is wrong, and where in the text.
qg_status qg_formula_parse(const char *text, qg_formula_knows knows, qg_formula **out);
void qg_formula_free(qg_formula *formula); // NULL is fine
double qg_formula_evaluate(const qg_formula *formula, qg_formula_value value, const void *context);
// Calls `see` for every name in the formula, in order.
void qg_formula_names(const qg_formula *formula, void (*see)(void *context, int name),
                      void *context);

// What must hold of a value: "<= F", ">= F", "= F", or "F +- F" (a centre and a tolerance).
typedef enum qg_limit_kind {
    QG_LIMIT_MOST,
    QG_LIMIT_LEAST,
    QG_LIMIT_EQUAL,
    QG_LIMIT_WITHIN
} qg_limit_kind;

typedef struct qg_limit {
    qg_limit_kind kind;
    qg_formula *bound, *tolerance; // tolerance of WITHIN alone
} qg_limit;

qg_status qg_limit_parse(const char *text, qg_formula_knows knows, qg_limit *out);
void qg_limit_free(qg_limit *limit);

// One value against a limit.
typedef struct qg_limit_check {
    bool applies; // false: a formula or the value is NaN
    bool holds;
    double bound, tolerance; // as evaluated; tolerance NaN unless WITHIN
    double used; // share of the tolerance, 1 at the limit; 0 where value and limit are 0
} qg_limit_check;

qg_limit_check qg_limit_check_value(const qg_limit *limit, double measured, qg_formula_value value,
                                    const void *context);

#endif
