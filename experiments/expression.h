// Expressions of --where and --exclude: column, operator, value; `&` joins, repeated options or.
//
// Operators: = != < <= > >=. Text columns know = and != and take globs; numeric columns take
// numbers (case ids and digests also 16 hexadecimal digits), float columns also nan and inf. `\&`
// is a literal &. Knows nothing of where values come from. Failures: QG_ERROR_ARGUMENT with what is
// wrong.
#ifndef EXPRESSION_H
#define EXPRESSION_H

#include <qg_column.h>
#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct qg_expression qg_expression;

// The columns that may be named: the i-th, -1 past the end.
typedef int (*qg_expression_columns)(size_t i);

qg_status qg_expression_parse(const char *text, qg_expression_columns columns, qg_expression **out);
void qg_expression_free(qg_expression *expression); // NULL is fine

// The failure of a word that is no column's name: "unknown column 'word'" and the names near it.
qg_status qg_expression_unknown(const char *word, qg_expression_columns columns);

// The canonical text: no spaces, `&` between comparisons. Valid as long as the expression.
const char *qg_expression_text(const qg_expression *expression);

// A value of a column; the member that its type names (U8 in u64).
typedef struct qg_cell {
    const char *text;
    double f64;
    int64_t i64;
    uint64_t u64;
} qg_cell;

typedef qg_cell (*qg_cell_function)(const void *row, qg_column column);

bool qg_expression_holds(const qg_expression *expression, qg_cell_function cell, const void *row);

// Several of one option: whether any holds.
typedef struct qg_expressions {
    qg_expression **items;
    int64_t count;
} qg_expressions;

// Appends the expression of a text.
qg_status qg_expressions_add(qg_expressions *expressions, const char *text,
                             qg_expression_columns columns);
void qg_expressions_free(qg_expressions *expressions); // leaves none
bool qg_expressions_any(const qg_expressions *expressions, qg_cell_function cell, const void *row);

#endif
