// Formulas and limits of gates: values, precedence, what does not apply, shares of the tolerance, and
// what is refused. Names: a = 2, b = 3, none = NaN.
#include <gate_formula.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const NAMES[] = {"a", "b", "none", "minus"};
static const double VALUES[] = {2, 3, (double)NAN, -4};

static int knows(const char *name) {
    for (int i = 0; i < 4; i++)
        if (strcmp(name, NAMES[i]) == 0)
            return i;
    return -1;
}

static double value_of(const void *context, int name) {
    (void)context;
    return VALUES[name];
}

static double evaluate(const char *text) {
    qg_formula *formula;
    ck_assert_msg(qg_formula_parse(text, knows, &formula) == QG_OK, "%s: %s", text, qg_detail());
    double value = qg_formula_evaluate(formula, value_of, NULL);
    qg_formula_free(formula);
    return value;
}

START_TEST(values) {
    static const struct {
        const char *text;
        double value;
    } CASES[] = {
        {"1",           1               },
        {" 1 + 2*3 ",   7               },
        {"(1+2)*3",     9               },
        {"2^3^2",       512             },
        {"-2^2",        -4              },
        {"2^-1",        0.5             },
        {"7-2-1",       4               },
        {"8/2/2",       2               },
        {"a*b",         6               },
        {"max(a, b)",   3               },
        {"min(a,b)",    2               },
        {"abs(minus)",  4               },
        {"sqrt(9)",     3               },
        {"log10(1000)", 3               },
        {"log2(8)",     3               },
        {"1e-3",        0.001           },
        {".5",          0.5             },
        {"0x1p-2",      0.25            },
        {"--a",         2               },
        {"a - -b",      5               },
        {"1/0",         (double)INFINITY},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        ck_assert_msg(fabs(evaluate(CASES[i].text) - CASES[i].value) < 1e-12 ||
                          evaluate(CASES[i].text) == CASES[i].value,
                      "%s = %g", CASES[i].text, evaluate(CASES[i].text));
    static const char *const MISSING[] = {"none",     "none + 1", "max(none, 1)", "min(1, none)",
                                          "none ^ 0", "1 ^ none", "0 * none",     "sqrt(minus)"};
    for (size_t i = 0; i < sizeof MISSING / sizeof MISSING[0]; i++)
        ck_assert_msg(isnan(evaluate(MISSING[i])), "%s is a number", MISSING[i]);
}
END_TEST

static void refuses(const char *text, const char *word) {
    qg_formula *formula;
    ck_assert_msg(qg_formula_parse(text, knows, &formula) == QG_ERROR_ARGUMENT, "takes %s", text);
    ck_assert_msg(strstr(qg_detail(), word) != NULL, "%s: %s", text, qg_detail());
    ck_assert_ptr_null(formula);
}

START_TEST(refused_formulas) {
    char deep[400], longer[4000] = "1";
    refuses("", "expected");
    refuses("1 +", "expected");
    refuses("(1", "expected )");
    refuses("1)", "unexpected");
    refuses("c", "unknown name");
    refuses("a b", "unexpected");
    refuses("max(1)", "comma");
    refuses("max(1,2,3)", "expected )");
    refuses("sqrt 4", "unknown name");
    refuses("1 +- 2", "unexpected");
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    refuses(deep, "too deep");
    for (int i = 0; i < 300; i++)
        strcat(longer, " + 1");
    refuses(longer, "too long");
}
END_TEST

START_TEST(limits) {
    static const struct {
        const char *text;
        double measured;
        bool applies, holds;
        double used;
    } CASES[] = {
        {"<= 4",           1,                true,  true,  0.25            },
        {"<= 4",           5,                true,  false, 1.25            },
        {"<= 4",           4,                true,  true,  1               },
        {"<= 0",           0,                true,  true,  0               },
        {"<= 0",           1,                true,  false, (double)INFINITY},
        {"<= 4",           -1,               true,  true,  0               },
        {"<= -4",          -8,               true,  true,  0.5             },
        {"<= -4",          -2,               true,  false, 2               },
        {">= 4",           8,                true,  true,  0.5             },
        {">= 4",           2,                true,  false, 2               },
        {">= 4",           -1,               true,  false, (double)INFINITY},
        {">= -4",          -2,               true,  true,  0.5             },
        {">= -4",          -8,               true,  false, 2               },
        {"= a",            2,                true,  true,  0               },
        {"= a",            2.5,              true,  false, (double)INFINITY},
        {"a +- b",         3.5,              true,  true,  0.5             },
        {"a +- 2 * b",     -10,              true,  false, 2               },
        {"a - 1 +- b - 1", 3,                true,  true,  1               },
        {"a +- none",      2,                false, false, 0               },
        {"<= none",        2,                false, false, 0               },
        {"<= 4",           (double)NAN,      false, false, 0               },
        {">= a",           (double)INFINITY, true,  true,  0               },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        qg_limit limit;
        ck_assert_msg(qg_limit_parse(CASES[i].text, knows, &limit) == QG_OK, "%s", qg_detail());
        qg_limit_check c = qg_limit_check_value(&limit, CASES[i].measured, value_of, NULL);
        qg_limit_free(&limit);
        ck_assert_msg(c.applies == CASES[i].applies, "%s applies", CASES[i].text);
        if (c.applies)
            ck_assert_msg(c.holds == CASES[i].holds && c.used == CASES[i].used,
                          "%g %s: holds %d, used %g", CASES[i].measured, CASES[i].text, c.holds,
                          c.used);
    }
}
END_TEST

START_TEST(refused_limits) {
    static const char *const WRONG[] = {"",           "4",       "<= ",       "< 4",
                                        "a +-",       "+- a",    "<= 1 +- 2", "a +- b +- 1",
                                        "equal sums", ">= a ; b"};
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        qg_limit limit;
        ck_assert_msg(qg_limit_parse(WRONG[i], knows, &limit) == QG_ERROR_ARGUMENT, "takes '%s'",
                      WRONG[i]);
        ck_assert_ptr_null(limit.bound);
        ck_assert_ptr_null(limit.tolerance);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {values, refused_formulas, limits, refused_limits};
    return RUN_SUITE("gate formulas", tests);
}
