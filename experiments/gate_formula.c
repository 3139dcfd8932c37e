// See gate_formula.h. A formula is a list in postfix order: parsing appends, evaluation is a stack.
#include <gate_formula.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 64, DEPTH = 64, MOST_STEPS = 256 };

typedef struct step {
    char code; // n number, v name, + - * / ^, _ negation, or the place of a function below
    double number;
    int name;
} step;

struct qg_formula {
    int count;
    step steps[MOST_STEPS];
};

typedef struct parser {
    const char *text, *at;
    qg_formula_knows knows;
    qg_formula *formula;
    int depth;
} parser;

static const struct {
    const char *name;
    char code;
    int arguments;
} FUNCTIONS[] = {
    {"min",   'm', 2},
    {"max",   'M', 2},
    {"abs",   'a', 1},
    {"sqrt",  's', 1},
    {"log2",  '2', 1},
    {"log10", 'l', 1},
};
enum { FUNCTION_COUNT = sizeof FUNCTIONS / sizeof FUNCTIONS[0] };

// ----------------------------------------------------------------------------------------- parsing

static qg_status refuse(const parser *p, const char *what) {
    return qg_fail(QG_ERROR_ARGUMENT, "formula '%.80s': %s at '%.20s'", p->text, what,
                   *p->at ? p->at : "the end");
}

static void skip(parser *p) {
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(parser *p, char c) {
    skip(p);
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static qg_status append(parser *p, char code, double number, int name) {
    if (p->formula->count == MOST_STEPS)
        return refuse(p, "too long");
    step *s = &p->formula->steps[p->formula->count++];
    s->code = code;
    s->number = number;
    s->name = name;
    return QG_OK;
}

static qg_status parse_sum(parser *p);

static qg_status parse_arguments(parser *p, int function) {
    for (int i = 0; i < FUNCTIONS[function].arguments; i++) {
        qg_status status = parse_sum(p);
        if (status != QG_OK)
            return status;
        bool last = i + 1 == FUNCTIONS[function].arguments;
        if (!take(p, last ? ')' : ','))
            return refuse(p, last ? "expected )" : "expected a comma");
    }
    return append(p, FUNCTIONS[function].code, 0, -1);
}

static qg_status parse_name(parser *p) {
    char name[NAME_SIZE];
    size_t length = 0;
    const char *from = p->at;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (length + 1 < sizeof name)
            name[length++] = *p->at;
        p->at++;
    }
    name[length] = '\0';
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(name, FUNCTIONS[i].name) == 0 && take(p, '('))
            return parse_arguments(p, i);
    int known = p->knows(name);
    if (known >= 0)
        return append(p, 'v', 0, known);
    p->at = from;
    return refuse(p, "unknown name");
}

static qg_status parse_atom(parser *p) {
    skip(p);
    if (take(p, '(')) {
        qg_status status = parse_sum(p);
        if (status == QG_OK && !take(p, ')'))
            status = refuse(p, "expected )");
        return status;
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.') {
        char *end;
        double number = strtod(p->at, &end);
        p->at = end;
        return append(p, 'n', number, -1);
    }
    if (isalpha((unsigned char)*p->at))
        return parse_name(p);
    return refuse(p, "expected a number, a name or (");
}

// ^ binds tighter than the sign before it and groups from the right.
static qg_status parse_power(parser *p) {
    if (p->depth++ > DEPTH)
        return refuse(p, "too deep");
    qg_status status;
    if (take(p, '-')) {
        status = parse_power(p);
        status = status == QG_OK ? append(p, '_', 0, -1) : status;
    } else {
        status = parse_atom(p);
        if (status == QG_OK && take(p, '^')) {
            status = parse_power(p);
            status = status == QG_OK ? append(p, '^', 0, -1) : status;
        }
    }
    p->depth--;
    return status;
}

static qg_status parse_product(parser *p) {
    qg_status status = parse_power(p);
    while (status == QG_OK) {
        char code = take(p, '*') ? '*' : take(p, '/') ? '/' : '\0';
        if (!code)
            break;
        status = parse_power(p);
        status = status == QG_OK ? append(p, code, 0, -1) : status;
    }
    return status;
}

// The minus of "+-" ends the formula: it belongs to a limit.
static char take_sign(parser *p) {
    skip(p);
    if (p->at[0] == '+' && p->at[1] == '-')
        return '\0';
    return take(p, '+') ? '+' : take(p, '-') ? '-' : '\0';
}

static qg_status parse_sum(parser *p) {
    if (p->depth++ > DEPTH)
        return refuse(p, "too deep");
    qg_status status = parse_product(p);
    while (status == QG_OK) {
        char code = take_sign(p);
        if (!code)
            break;
        status = parse_product(p);
        status = status == QG_OK ? append(p, code, 0, -1) : status;
    }
    p->depth--;
    return status;
}

// Up to the end, or to the "+-" of a limit.
static qg_status parse_part(const char *text, const char *from, qg_formula_knows knows,
                            qg_formula **out, const char **rest) {
    *out = calloc(1, sizeof **out);
    if (!*out)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a formula");
    parser p = {text, from, knows, *out, 0};
    qg_status status = parse_sum(&p);
    skip(&p);
    *rest = p.at;
    if (status == QG_OK && *p.at && strncmp(p.at, "+-", 2) != 0)
        status = refuse(&p, "unexpected text");
    if (status != QG_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

qg_status qg_formula_parse(const char *text, qg_formula_knows knows, qg_formula **out) {
    const char *rest;
    qg_status status = parse_part(text, text, knows, out, &rest);
    if (status == QG_OK && *rest) {
        qg_formula_free(*out);
        *out = NULL;
        status =
            qg_fail(QG_ERROR_ARGUMENT, "formula '%.80s': unexpected text at '%.20s'", text, rest);
    }
    return status;
}

void qg_formula_free(qg_formula *formula) { free(formula); }

// -------------------------------------------------------------------------------------- evaluation

static double apply(char code, double a, double b) {
    switch (code) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    case '^': return isnan(a) || isnan(b) ? NAN : pow(a, b);
    case 'm': return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case 'M': return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default: return NAN;
    }
}

static double apply_one(char code, double a) {
    switch (code) {
    case '_': return -a;
    case 'a': return fabs(a);
    case 's': return sqrt(a);
    case '2': return log(a) / 0.69314718055994530942;
    default: return log10(a);
    }
}

double qg_formula_evaluate(const qg_formula *formula, qg_formula_value value, const void *context) {
    double stack[MOST_STEPS];
    int top = 0;
    for (int i = 0; i < formula->count; i++) {
        const step *s = &formula->steps[i];
        if (s->code == 'n' || s->code == 'v') {
            stack[top++] = s->code == 'n' ? s->number : value(context, s->name);
        } else if (strchr("_as2l", s->code)) {
            stack[top - 1] = apply_one(s->code, stack[top - 1]);
        } else {
            top--;
            stack[top - 1] = apply(s->code, stack[top - 1], stack[top]);
        }
    }
    return stack[0];
}

void qg_formula_names(const qg_formula *formula, void (*see)(void *context, int name),
                      void *context) {
    for (int i = 0; i < formula->count; i++)
        if (formula->steps[i].code == 'v')
            see(context, formula->steps[i].name);
}

// ------------------------------------------------------------------------------------------ limits

qg_status qg_limit_parse(const char *text, qg_formula_knows knows, qg_limit *out) {
    const char *at = text, *rest;
    *out = (qg_limit){.kind = QG_LIMIT_WITHIN};
    while (isspace((unsigned char)*at))
        at++;
    if (strncmp(at, "<=", 2) == 0 || strncmp(at, ">=", 2) == 0) {
        out->kind = *at == '<' ? QG_LIMIT_MOST : QG_LIMIT_LEAST;
        at += 2;
    } else if (*at == '=') {
        out->kind = QG_LIMIT_EQUAL;
        at++;
    }
    qg_status status = parse_part(text, at, knows, &out->bound, &rest);
    if (status != QG_OK)
        return status;
    if (out->kind == QG_LIMIT_WITHIN && *rest)
        status = parse_part(text, rest + 2, knows, &out->tolerance, &rest);
    else if (out->kind == QG_LIMIT_WITHIN)
        status = qg_fail(QG_ERROR_ARGUMENT,
                         "limit '%.80s' begins with none of <= >= = and has no +-", text);
    if (status == QG_OK && *rest)
        status =
            qg_fail(QG_ERROR_ARGUMENT, "limit '%.80s': unexpected text at '%.20s'", text, rest);
    if (status != QG_OK)
        qg_limit_free(out);
    return status;
}

void qg_limit_free(qg_limit *limit) {
    qg_formula_free(limit->bound);
    qg_formula_free(limit->tolerance);
    limit->bound = limit->tolerance = NULL;
}

// a / b of magnitudes, where 0/0 is 0.
static double share(double a, double b) { return a == 0 ? 0 : a / b; }

// How much of "at most" is used: at most a negative number is a distance from 0 to be kept.
static double share_of_most(double measured, double bound) {
    if (bound < 0)
        return measured < 0 ? share(bound, measured) : (double)INFINITY;
    return measured <= 0 ? 0 : share(measured, bound);
}

qg_limit_check qg_limit_check_value(const qg_limit *limit, double measured, qg_formula_value value,
                                    const void *context) {
    qg_limit_check c = {.bound = qg_formula_evaluate(limit->bound, value, context),
                        .tolerance = NAN};
    if (limit->tolerance)
        c.tolerance = qg_formula_evaluate(limit->tolerance, value, context);
    c.applies = !isnan(measured) && !isnan(c.bound) && !(limit->tolerance && isnan(c.tolerance));
    if (!c.applies)
        return c;
    switch (limit->kind) {
    case QG_LIMIT_MOST:
        c.holds = measured <= c.bound;
        c.used = share_of_most(measured, c.bound);
        break;
    case QG_LIMIT_LEAST:
        c.holds = measured >= c.bound;
        c.used = share_of_most(-measured, -c.bound);
        break;
    case QG_LIMIT_EQUAL:
        c.holds = measured == c.bound;
        c.used = c.holds ? 0 : INFINITY;
        break;
    case QG_LIMIT_WITHIN: {
        double off = measured == c.bound ? 0 : fabs(measured - c.bound); // also two infinities
        c.holds = off <= c.tolerance;
        c.used = share(off, c.tolerance);
        break;
    }
    }
    return c;
}
