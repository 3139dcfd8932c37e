// What the rows of a figure have in common, for its caption. See figure.h.
#include <figure.h>

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void qg_figure_label(const char *format, char *text, size_t size) {
    static const char variant[] = "_4over6";
    size_t length = 0;
    while (*format && length + 1 < size) {
        if (strncmp(format, variant, sizeof variant - 1) == 0) {
            snprintf(text + length, size - length, " 4/6");
            length = strlen(text);
            format += sizeof variant - 1;
            continue;
        }
        text[length++] = (char)(*format == '_' ? ' ' : toupper((unsigned char)*format));
        format++;
    }
    text[length] = '\0';
}

typedef struct note {
    char *text;
    size_t size, length;
} note;

__attribute__((format(printf, 2, 3))) static void put(note *n, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(n->text + n->length, n->size - n->length, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        n->length = n->length + (size_t)wanted < n->size ? n->length + (size_t)wanted : n->size - 1;
}

static bool appeared(const qg_figure_rows *rows, int64_t row, qg_column column) {
    const char *text = qg_figure_text(&rows->items[row], column);
    for (int64_t i = 0; i < row; i++)
        if (strcmp(qg_figure_text(&rows->items[i], column), text) == 0)
            return true;
    return false;
}

// The first few distinct texts.
static void put_texts(note *n, const char *what, const qg_figure_rows *rows, qg_column column) {
    enum { SHOWN = 4, LOOKED_AT = 4096 };
    int shown = 0;
    for (int64_t i = 0; i < rows->count && i < LOOKED_AT; i++) {
        const char *text = qg_figure_text(&rows->items[i], column);
        if (!text[0] || (shown && strcmp(text, qg_figure_text(&rows->items[i - 1], column)) == 0) ||
            appeared(rows, i, column))
            continue;
        if (shown == SHOWN) {
            put(n, ", ...");
            break;
        }
        put(n, "%s%s", shown ? ", " : what, text);
        shown++;
    }
    put(n, "%s", shown ? "; " : "");
}

static void put_range(note *n, const char *what, const qg_figure_rows *rows, qg_column column,
                      double least_shown) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < rows->count; i++) {
        double value = qg_figure_number(&rows->items[i], column);
        if (value < least_shown || isnan(value))
            continue;
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    if (low == high)
        put(n, "%s%.0f; ", what, low);
    else if (low < high)
        put(n, "%s%.0f to %.0f; ", what, low, high);
}

void qg_figure_note(const qg_figure_rows *rows, char *text, size_t size) {
    note n = {text, size, 0};
    text[0] = '\0';
    put_texts(&n, "Data: ", rows, QG_COLUMN_DATA);
    put_range(&n, "m ", rows, QG_COLUMN_M, 1);
    put_range(&n, "n ", rows, QG_COLUMN_N, 1);
    put_range(&n, "k ", rows, QG_COLUMN_K, 1);
    put_range(&n, "elements of a case ", rows, QG_COLUMN_COUNT_N, 1);
    put_range(&n, "seeds ", rows, QG_COLUMN_SEED, 0);
    put(&n, "%" PRId64 " results.", rows->count);
}
