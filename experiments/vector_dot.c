// Kind dot of .qgvec. See vector_dot.h.
#include <vector_dot.h>

#include <qg_nearest.h>

#include <string.h>

// ---------------------------------------------------------------------------------- lists of words

enum { LIST_SIZE = 320 };

static void append(char list[LIST_SIZE], const char *word) {
    size_t length = strlen(list);
    snprintf(list + length, LIST_SIZE - length, "%s%s", length ? ", " : "", word);
}

static void append_format(char list[LIST_SIZE], qg_format format) {
    char name[QG_NAME_SIZE];
    qg_format_name(format, name);
    append(list, name);
}

// ------------------------------------------------------------------------------------------- units

static bool has_row(int unit) {
    const qg_unit_row *row;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++)
        if (row->unit == unit)
            return true;
    return false;
}

// The message of the unit table, or all units where it names no nearest one.
static qg_status unknown_unit(const char *text) {
    char list[LIST_SIZE] = "";
    if (strncmp(qg_detail(), "unknown unit", 12) || strstr(qg_detail(), "nearest"))
        return QG_ERROR_ARGUMENT;
    for (int unit = 0; unit < QG_UNIT_COUNT; unit++)
        if (has_row(unit))
            append(list, qg_unit_listed((size_t)unit));
    return qg_fail(QG_ERROR_ARGUMENT, "unknown unit %.60s; known are %s", text, list);
}

qg_status qg_vector_dot_unit(const char *text, int *out) {
    qg_unit unit;
    if (qg_unit_parse(text, &unit) != QG_OK)
        return unknown_unit(text);
    const char *name = qg_unit_listed(unit.id);
    if (!has_row(unit.id))
        return qg_fail(QG_ERROR_ARGUMENT,
                       "unit %s has no instruction: kind dot is for the matrix units", name);
    if (strchr(text, '+'))
        return qg_fail(QG_ERROR_ARGUMENT,
                       "unit %s has modifiers, which are of whole products: a dot product is one "
                       "chain of the instruction; write %s",
                       text, name);
    *out = unit.id;
    return QG_OK;
}

// ---------------------------------------------------------------------------------------- the row

// Whether a row fits what a header says so far, in the order of the checks.
enum { FITS_A = 1, FITS_B, FITS_SCALE, FITS_C };

static int fit_of(const qg_vector_header *h, const qg_unit_row *row) {
    if (!qg_unit_row_takes(row, h->a))
        return 0;
    if (!qg_unit_row_takes(row, h->b))
        return FITS_A;
    if (row->scale != h->scale)
        return FITS_B;
    return row->accumulator == h->c ? FITS_C : FITS_SCALE;
}

static bool is_element(int unit, int least_fit, const qg_vector_header *h, qg_format format) {
    const qg_unit_row *row;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++)
        if (row->unit == unit && fit_of(h, row) >= least_fit && qg_unit_row_takes(row, format))
            return true;
    return false;
}

// What the unit takes in place of what does not fit: the rows that fit up to there.
static void list_choices(const qg_vector_header *h, int fit, char list[LIST_SIZE]) {
    const qg_unit_row *row;
    list[0] = 0;
    if (fit < FITS_B) {
        for (qg_format format = 0; format < QG_FORMAT_COUNT; format++)
            if (is_element(h->unit, fit, h, format))
                append_format(list, format);
        return;
    }
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++) {
        if (row->unit != h->unit || fit_of(h, row) < fit)
            continue;
        if (fit == FITS_SCALE)
            append_format(list, row->accumulator);
        else if (row->scale != QG_UNIT_NO_SCALE)
            append_format(list, (qg_format)row->scale);
    }
}

static qg_status bad_scale(const qg_vector_header *h, const char *list, const char **key) {
    const char *unit = qg_unit_listed((size_t)h->unit);
    *key = h->scale == QG_UNIT_NO_SCALE ? "unit" : "scale";
    if (h->scale == QG_UNIT_NO_SCALE)
        return qg_fail(QG_ERROR_ARGUMENT, "unit %s needs block scales: %s", unit, list);
    if (!list[0])
        return qg_fail(QG_ERROR_ARGUMENT, "unit %s has no block scales", unit);
    char name[QG_NAME_SIZE];
    qg_format_name((qg_format)h->scale, name);
    return qg_fail(QG_ERROR_ARGUMENT, "unit %s takes no scales of %s; it takes %s", unit, name,
                   list);
}

// Says which key no row of the unit fits.
static qg_status no_row(const qg_vector_header *h, const char **key) {
    const char *unit = qg_unit_listed((size_t)h->unit);
    char list[LIST_SIZE], a[QG_NAME_SIZE], b[QG_NAME_SIZE], c[QG_NAME_SIZE];
    const qg_unit_row *row;
    int best = 0;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++)
        if (row->unit == h->unit && fit_of(h, row) > best)
            best = fit_of(h, row);
    list_choices(h, best, list);
    qg_format_name(h->a, a);
    qg_format_name(h->b, b);
    qg_format_name(h->c, c);
    switch (best) {
    case 0:
        *key = "a";
        return qg_fail(QG_ERROR_ARGUMENT, "unit %s does not take %s; it takes %s", unit, a, list);
    case FITS_A:
        *key = "b";
        return qg_fail(QG_ERROR_ARGUMENT, "unit %s does not multiply %s by %s; it takes %s", unit,
                       a, b, list);
    case FITS_B: return bad_scale(h, list, key);
    default:
        *key = "c";
        return qg_fail(QG_ERROR_ARGUMENT,
                       "unit %s does not accumulate %s times %s in %s, but in %s", unit, a, b, c,
                       list);
    }
}

static qg_status check_sizes(const qg_vector_header *h, const char **key) {
    *key = "k";
    if (h->k < 1 || h->k > QG_VECTOR_ELEMENTS)
        return qg_fail(QG_ERROR_ARGUMENT, "k must be from 1 to %d", QG_VECTOR_ELEMENTS);
    *key = "scale_block";
    if (h->scale != QG_UNIT_NO_SCALE &&
        (h->scale_block < 1 || h->scale_block % h->row->scale_block))
        return qg_fail(QG_ERROR_ARGUMENT, "scale_block must be a multiple of %d",
                       (int)h->row->scale_block);
    return QG_OK;
}

static void add_field(qg_vector_header *h, const char *name, qg_format format, int64_t count) {
    qg_format_info info = qg_format_describe(format);
    bool is_output = !strcmp(name, "d");
    h->fields[h->field_count++] = (qg_vector_field){name, 2 * qg_format_code_bytes(&info), count,
                                                    is_output, is_output ? 0 : info.bits};
}

static void add_operand(qg_vector_header *h, const char *name, const char *scales,
                        qg_format format) {
    add_field(h, name, format, h->k);
    if (h->scale != QG_UNIT_NO_SCALE)
        add_field(h, scales, (qg_format)h->scale, (h->k + h->scale_block - 1) / h->scale_block);
}

qg_status qg_vector_dot_complete(qg_vector_header *h, const char **key) {
    h->row = qg_unit_row_find(h->unit, h->a, h->b, h->c, h->scale);
    if (!h->row)
        return no_row(h, key);
    if (h->d != h->c) {
        char c[QG_NAME_SIZE], d[QG_NAME_SIZE];
        qg_format_name(h->c, c);
        qg_format_name(h->d, d);
        *key = "d";
        return qg_fail(QG_ERROR_ARGUMENT, "d is %s, but the accumulator of unit %s is %s", d,
                       qg_unit_listed((size_t)h->unit), c);
    }
    qg_status status = check_sizes(h, key);
    if (status != QG_OK)
        return status;
    h->field_count = 0;
    add_operand(h, "a", "sa", h->a);
    add_operand(h, "b", "sb", h->b);
    add_field(h, "c", h->c, 1);
    add_field(h, "d", h->d, 1);
    return QG_OK;
}

// -------------------------------------------------------------------------------------- evaluating

qg_vector_dot_fields qg_vector_dot_fields_of(const qg_vector_header *h) {
    return h->scale == QG_UNIT_NO_SCALE ? (qg_vector_dot_fields){0, -1, 1, -1, 2, 3}
                                        : (qg_vector_dot_fields){0, 1, 2, 3, 4, 5};
}

qg_status qg_vector_dot_evaluate(const qg_vector_header *h, qg_vector_case *got) {
    qg_vector_dot_fields f = qg_vector_dot_fields_of(h);
    qg_unit_dot_input in = {.a_format = h->a,
                            .b_format = h->b,
                            .k = h->k,
                            .a = got->values[f.a],
                            .b = got->values[f.b],
                            .sa = f.sa >= 0 ? got->values[f.sa] : NULL,
                            .sb = f.sb >= 0 ? got->values[f.sb] : NULL,
                            .scale_block = h->scale_block,
                            .c = got->values[f.c][0]};
    return qg_unit_dot(h->row, &in, got->values[f.d]);
}
