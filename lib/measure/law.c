// Laws: their table, strict parsing and canonical names. See qg_data.h; the laws themselves are
// data.c's. Implements "Data" of the definitions.
#include <law_internal.h>

#include <math.h> // INFINITY
#include <qg_bits.h>
#include <qg_memory.h>
#include <qg_nearest.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SQRT_3 1.7320508075688772

// The laws: how many parameters they take, and those that may be left out.
typedef struct law_row {
    const char *name, *form;
    int least, most;
    double fallback[2];
    qg_density density;
} law_row;

// clang-format off
static const law_row rows[] = {
    [LAW_NORMAL]    = {"normal",    "normal",       0, 0, {0},         QG_DENSITY_NORMAL},
    [LAW_LAPLACE]   = {"laplace",   "laplace",      0, 0, {0},         QG_DENSITY_LAPLACE},
    [LAW_UNIFORM]   = {"uniform",   "uniform[:A]",  0, 1, {SQRT_3},    QG_DENSITY_UNIFORM},
    [LAW_STUDENT_T] = {"student_t", "student_t:NU", 1, 1, {0},         QG_DENSITY_NONE},
    [LAW_LOGNORMAL] = {"lognormal", "lognormal:S",  1, 1, {0},         QG_DENSITY_NONE},
    [LAW_OUTLIERS]  = {"outliers",  "outliers:X",   1, 1, {0},         QG_DENSITY_NONE},
    [LAW_CREST]     = {"crest",     "crest:K[:G]",  1, 2, {0, 32},     QG_DENSITY_NONE},
};
// clang-format on
enum { LAW_COUNT = sizeof rows / sizeof rows[0] };

const char *qg_law_listed(size_t i) { return i < LAW_COUNT ? rows[i].form : NULL; }
static const char *listed_name(size_t i) { return i < LAW_COUNT ? rows[i].name : NULL; }

// The text between two colons; length 0 past the end.
typedef struct field {
    const char *start;
    size_t length;
} field;

static int field_is(field f, const char *word) {
    return f.length == strlen(word) && memcmp(f.start, word, f.length) == 0;
}

// The next field of the text at *rest; *rest is NULL after the last one.
static field next_field(const char **rest) {
    field f = {*rest, strcspn(*rest, ":")};
    *rest = f.start[f.length] == ':' ? f.start + f.length + 1 : NULL;
    return f;
}

// A positive finite decimal number, nothing else: no sign, space, hexadecimal, inf or nan.
static int read_positive(field f, double *value) {
    char text[64];
    if (f.length == 0 || f.length >= sizeof text || f.start[0] < '.' || f.start[0] > '9')
        return 0;
    memcpy(text, f.start, f.length);
    text[f.length] = '\0';
    if (strspn(text, "0123456789.eE+-") != f.length)
        return 0;
    char *end;
    *value = strtod(text, &end);
    return *end == '\0' && *value > 0 && *value < INFINITY;
}

static qg_status fail_parameter(const law_row *row, field f) {
    return qg_fail(QG_ERROR_ARGUMENT,
                   "law %s: \"%.*s\" is not a positive decimal number (form: %s)", row->name,
                   (int)f.length, f.start, row->form);
}

static qg_status find_row(const char *text, const char **rest, law_kind *kind) {
    *rest = text;
    field name = next_field(rest);
    for (int i = 0; i < LAW_COUNT; i++) {
        if (field_is(name, rows[i].name)) {
            *kind = (law_kind)i;
            return QG_OK;
        }
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(name.length < 64 ? name.length : 63), name.start);
    const char *near = qg_nearest(word, listed_name);
    if (near)
        return qg_fail(QG_ERROR_ARGUMENT, "unknown law \"%s\": did you mean %s?", word, near);
    return qg_fail(QG_ERROR_ARGUMENT,
                   "unknown law \"%s\": normal, laplace, uniform[:A], student_t:NU, lognormal:S, "
                   "outliers:X, crest:K[:G]",
                   word);
}

// The parameters after the name, up to the first field that is an option.
static qg_status read_parameters(qg_law *law, const char **rest) {
    const law_row *row = &rows[law->kind];
    int count = 0;
    for (; *rest && count < row->most; count++) {
        const char *after = *rest;
        field f = next_field(&after);
        if (field_is(f, "abs") || strncmp(f.start, "sigma=", 6) == 0)
            break;
        if (!read_positive(f, &law->parameter[count]))
            return fail_parameter(row, f);
        *rest = after;
    }
    if (count < row->least)
        return qg_fail(QG_ERROR_ARGUMENT, "law %s needs a parameter: %s", row->name, row->form);
    return QG_OK;
}

static qg_status read_options(qg_law *law, const char *rest) {
    const law_row *row = &rows[law->kind];
    int scaled = 0;
    while (rest) {
        field f = next_field(&rest);
        if (field_is(f, "abs") && !law->absolute) {
            law->absolute = 1;
        } else if (f.length > 6 && memcmp(f.start, "sigma=", 6) == 0 && !scaled) {
            field number = {f.start + 6, f.length - 6};
            if (!read_positive(number, &law->sigma))
                return fail_parameter(row, number);
            scaled = 1;
        } else {
            return qg_fail(QG_ERROR_ARGUMENT,
                           "law %s: \"%.*s\" is out of place (form: %s[:abs][:sigma=V])", row->name,
                           (int)f.length, f.start, row->form);
        }
    }
    return QG_OK;
}

static qg_status check_crest(const qg_law *law) {
    double k = law->parameter[0], g = law->parameter[1];
    if (g > 0x1p31 || g != (double)(int64_t)g)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "law crest: block size %g is not a whole number up to 2^31", g);
    if (k * k >= g)
        return qg_fail(
            QG_ERROR_ARGUMENT,
            "law crest: a crest factor of %g needs blocks of more than %g elements, not %g", k,
            k * k, g);
    return QG_OK;
}

// Appends to a name of bounded size; what cannot fit would be cut, and cannot occur.
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static void
append(qg_law *law, const char *format, ...) {
    size_t length = strlen(law->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(law->name + length, sizeof law->name - length, format, arguments);
    va_end(arguments);
}

// The shortest decimal that reads back as the same number: 10, not 1e+01.
static void append_number(qg_law *law, double value) {
    char shortest[32] = "", text[32];
    for (int digits = 17; digits > 0; digits--) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value && (!shortest[0] || strlen(text) <= strlen(shortest)))
            memcpy(shortest, text, sizeof text);
    }
    append(law, "%s", shortest);
}

static void write_name(qg_law *law) {
    const law_row *row = &rows[law->kind];
    append(law, "%s", row->name);
    for (int i = 0; i < row->most; i++) {
        append(law, ":");
        append_number(law, law->parameter[i]);
    }
    if (law->absolute)
        append(law, ":abs");
    if (law->sigma != 1) {
        append(law, ":sigma=");
        append_number(law, law->sigma);
    }
}

// The largest binary32 number below `bound`.
static float largest_below(double bound) {
    float nearest = (float)bound;
    if ((double)nearest < bound || nearest == 0)
        return nearest;
    return qg_float_of_bits(qg_bits_of_float(nearest) - 1);
}

static qg_status read_law(const char *text, qg_law *law) {
    const char *rest;
    qg_status status = find_row(text, &rest, &law->kind);
    if (status)
        return status;
    memcpy(law->parameter, rows[law->kind].fallback, sizeof law->parameter);
    law->sigma = 1;
    law->largest = INFINITY;
    if ((status = read_parameters(law, &rest)) || (status = read_options(law, rest)))
        return status;
    if (law->kind == LAW_CREST && (status = check_crest(law)))
        return status;
    if (law->kind == LAW_UNIFORM && law->absolute)
        law->largest = largest_below(law->parameter[0] * law->sigma);
    if (law->kind == LAW_STUDENT_T) {
        void *room;
        if ((status = qg_allocate(&room, T_KNOTS, sizeof *law->t, "law student_t")))
            return status;
        law->t = room;
        student_tabulate(law->parameter[0], law->t);
    }
    write_name(law);
    return QG_OK;
}

qg_status qg_law_parse(const char *text, qg_law **out) {
    void *room;
    *out = NULL;
    qg_status status = qg_allocate(&room, 1, sizeof **out, "law");
    if (status)
        return status;
    qg_law *law = room;
    status = read_law(text, law);
    if (status)
        qg_law_free(law);
    else
        *out = law;
    return status;
}

void qg_law_free(qg_law *law) {
    if (law)
        qg_release(law->t);
    qg_release(law);
}

const char *qg_law_name(const qg_law *law) { return law->name; }

qg_density qg_law_density(const qg_law *law, double *sigma) {
    if (law->absolute)
        return QG_DENSITY_NONE;
    *sigma = law->sigma;
    if (law->kind == LAW_UNIFORM)
        *sigma = law->sigma * law->parameter[0] / SQRT_3;
    return rows[law->kind].density;
}
