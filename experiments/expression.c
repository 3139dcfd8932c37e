// Expressions over columns: reading and evaluating. See expression.h.
#include <expression.h>
#include <text_lines.h>

#include <near_words.h>
#include <number.h>

#include <ctype.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum relation { EQUAL, DIFFERENT, LESS, AT_MOST, GREATER, AT_LEAST } relation;

static const char *const RELATIONS[] = {"=", "!=", "<", "<=", ">", ">="};

typedef struct comparison {
    qg_column column;
    relation relation;
    char *text; // of the value
    double f64;
    int64_t i64;
    uint64_t u64;
} comparison;

struct qg_expression {
    comparison *comparisons;
    int64_t count;
    char *text;
};

void qg_expression_free(qg_expression *expression) {
    if (!expression)
        return;
    for (int64_t i = 0; i < expression->count; i++)
        free(expression->comparisons[i].text);
    free(expression->comparisons);
    free(expression->text);
    free(expression);
}

const char *qg_expression_text(const qg_expression *expression) { return expression->text; }

static qg_status out_of_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "out of memory for an expression");
}

// --------------------------------------------------------------------------------------- columns

// The words that near ones are chosen from: those of the expression being read.
static _Thread_local qg_expression_columns known_columns;

static const char *known_name(size_t i) {
    int column = known_columns(i);
    return column < 0 ? NULL : qg_column_describe((qg_column)column)->name;
}

qg_status qg_expression_unknown(const char *word, qg_expression_columns columns) {
    known_columns = columns;
    if (strcmp(word, "rho") == 0) // as the end table has it
        return qg_fail(QG_ERROR_ARGUMENT, "unknown column 'rho'; the nearest is spearman");
    return qg_near_unknown("column", word, known_name);
}

static qg_status find_column(const char *name, qg_expression_columns columns, qg_column *out) {
    int found = qg_column_find(name);
    for (size_t i = 0; found >= 0 && columns(i) >= 0; i++)
        if (columns(i) == found) {
            *out = (qg_column)found;
            return QG_OK;
        }
    return qg_expression_unknown(name, columns);
}

// --------------------------------------------------------------------------------------- reading

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '/'; }

static bool is_digest(qg_column column) {
    return column == QG_COLUMN_CASE_ID || column == QG_COLUMN_INPUT_DIGEST ||
           column == QG_COLUMN_OUTPUT_DIGEST;
}

static qg_status read_value(comparison *c, const qg_column_info *info) {
    const char *kind = NULL;
    switch (info->type) {
    case QG_COLUMN_TEXT:
        if (c->relation > DIFFERENT)
            return qg_fail(QG_ERROR_ARGUMENT, "'%s' is text: it knows = and != only", info->name);
        break;
    case QG_COLUMN_F64: kind = qg_number_f64(c->text, &c->f64) ? NULL : "number"; break;
    case QG_COLUMN_I64: kind = qg_number_i64(c->text, &c->i64) ? NULL : "whole number"; break;
    default:
        if (!(is_digest(c->column) && qg_number_hex(c->text, &c->u64)) &&
            !qg_number_u64(c->text, &c->u64))
            kind = "whole number from 0";
        break;
    }
    if (kind)
        return qg_fail(QG_ERROR_ARGUMENT, "'%s' is compared with '%.60s', which is no %s",
                       info->name, c->text, kind);
    return QG_OK;
}

// Reads the operator at `text`; returns what follows it, NULL if there is none.
static char *read_relation(char *text, relation *out) {
    static const struct {
        const char *text;
        relation relation;
    } spellings[] = {
        {"==", EQUAL    },
        {"!=", DIFFERENT},
        {"<=", AT_MOST  },
        {">=", AT_LEAST },
        {"=",  EQUAL    },
        {"<",  LESS     },
        {">",  GREATER  }
    };
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        size_t length = strlen(spellings[i].text);
        if (strncmp(text, spellings[i].text, length) == 0) {
            *out = spellings[i].relation;
            return text + length;
        }
    }
    return NULL;
}

static qg_status read_comparison(char *text, qg_expression_columns columns, comparison *out) {
    text = qg_text_trimmed(text);
    char *end = text;
    while (is_name(*end))
        end++;
    char *sign = end;
    while (isspace((unsigned char)*sign))
        sign++;
    char *value = read_relation(sign, &out->relation);
    if (end == text || !value)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "'%.60s' is no comparison: write column, one of = != < <= > >=, value",
                       text);
    *end = 0;
    qg_status status = find_column(text, columns, &out->column);
    if (status)
        return status;
    value = qg_text_trimmed(value);
    if (!*value && qg_column_describe(out->column)->type != QG_COLUMN_TEXT)
        return qg_fail(QG_ERROR_ARGUMENT, "'%s' is compared with nothing", text);
    out->text = strdup(value);
    if (!out->text)
        return out_of_memory();
    return read_value(out, qg_column_describe(out->column));
}

// Cuts the text at the next unescaped `&` and removes the backslash of `\&`; returns the rest.
static char *next_part(char *text) {
    char *to = text;
    for (; *text && *text != '&'; text++) {
        if (*text == '\\' && text[1] == '&')
            text++;
        *to++ = *text;
    }
    char *rest = *text ? text + 1 : NULL;
    *to = 0;
    return rest;
}

static void print_escaped(FILE *stream, const char *value) {
    for (; *value; value++)
        fprintf(stream, "%s%c", *value == '&' ? "\\" : "", *value);
}

static qg_status write_text(qg_expression *expression) {
    size_t size;
    FILE *stream = open_memstream(&expression->text, &size);
    if (!stream)
        return out_of_memory();
    for (int64_t i = 0; i < expression->count; i++) {
        const comparison *c = &expression->comparisons[i];
        const qg_column_info *info = qg_column_describe(c->column);
        bool bare = qg_column_find(info->name) == (int)c->column;
        fprintf(stream, "%s%s%s%s%s", i ? "&" : "", bare ? "" : info->group, bare ? "" : "/",
                info->name, RELATIONS[c->relation]);
        print_escaped(stream, c->text);
    }
    return fclose(stream) == 0 ? QG_OK : out_of_memory();
}

static qg_status read_all(char *text, qg_expression_columns columns, qg_expression *expression) {
    qg_status status = QG_OK;
    while (text && !status) {
        char *rest = next_part(text);
        comparison *grown = realloc(expression->comparisons, (size_t)(expression->count + 1) *
                                                                 sizeof *expression->comparisons);
        if (!grown)
            return out_of_memory();
        expression->comparisons = grown;
        grown[expression->count] = (comparison){0};
        status = read_comparison(text, columns, &grown[expression->count++]);
        text = rest;
    }
    return status ? status : write_text(expression);
}

qg_status qg_expression_parse(const char *text, qg_expression_columns columns,
                              qg_expression **out) {
    *out = NULL;
    qg_expression *expression = calloc(1, sizeof *expression);
    char *copy = strdup(text);
    qg_status status = expression && copy ? read_all(copy, columns, expression) : out_of_memory();
    free(copy);
    if (status)
        qg_expression_free(expression);
    else
        *out = expression;
    return status;
}

// ------------------------------------------------------------------------------------ evaluating

static bool related(relation asked, bool less, bool equal) {
    switch (asked) {
    case EQUAL: return equal;
    case DIFFERENT: return !equal;
    case LESS: return less;
    case AT_MOST: return less || equal;
    case GREATER: return !less && !equal;
    default: return !less;
    }
}

// NaN equals NaN, which is how missing values are asked for, and is neither less nor greater.
static bool holds_f64(const comparison *c, double value) {
    bool both = isnan(value) && isnan(c->f64);
    if (isnan(value) || isnan(c->f64))
        return c->relation == EQUAL ? both : c->relation == DIFFERENT && !both;
    return related(c->relation, value < c->f64, value == c->f64);
}

static bool holds(const comparison *c, qg_cell cell) {
    switch (qg_column_describe(c->column)->type) {
    case QG_COLUMN_TEXT: {
        bool equal = strcmp(c->text, cell.text) == 0 || fnmatch(c->text, cell.text, 0) == 0;
        return equal == (c->relation == EQUAL);
    }
    case QG_COLUMN_F64: return holds_f64(c, cell.f64);
    case QG_COLUMN_I64: return related(c->relation, cell.i64 < c->i64, cell.i64 == c->i64);
    default: return related(c->relation, cell.u64 < c->u64, cell.u64 == c->u64);
    }
}

bool qg_expression_holds(const qg_expression *expression, qg_cell_function cell, const void *row) {
    for (int64_t i = 0; i < expression->count; i++)
        if (!holds(&expression->comparisons[i], cell(row, expression->comparisons[i].column)))
            return false;
    return true;
}

// --------------------------------------------------------------------------------------- several

qg_status qg_expressions_add(qg_expressions *expressions, const char *text,
                             qg_expression_columns columns) {
    qg_expression **items =
        realloc(expressions->items, (size_t)(expressions->count + 1) * sizeof *items);
    if (!items)
        return out_of_memory();
    expressions->items = items;
    qg_status status = qg_expression_parse(text, columns, &items[expressions->count]);
    expressions->count += status == QG_OK;
    return status;
}

void qg_expressions_free(qg_expressions *expressions) {
    for (int64_t i = 0; i < expressions->count; i++)
        qg_expression_free(expressions->items[i]);
    free(expressions->items);
    *expressions = (qg_expressions){0};
}

bool qg_expressions_any(const qg_expressions *expressions, qg_cell_function cell, const void *row) {
    for (int64_t i = 0; i < expressions->count; i++)
        if (qg_expression_holds(expressions->items[i], cell, row))
            return true;
    return false;
}
