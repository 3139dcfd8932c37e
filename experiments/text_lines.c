// Text files by lines, of bounded size. See text_lines.h.
#include <text_lines.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 16 << 20 };

// The number of the line that holds text[at], from 1.
static long line_of(const char *text, size_t at) {
    long line = 1;
    for (size_t i = 0; i < at; i++)
        line += text[i] == '\n';
    return line;
}

static qg_status read_all(FILE *file, const char *path, qg_text_lines *out) {
    size_t size = fread(out->text, 1, LARGEST + 1, file);
    if (ferror(file))
        return qg_fail(QG_ERROR_IO, "cannot read '%.300s': %s", path, strerror(errno));
    const char *zero = memchr(out->text, 0, size);
    if (zero)
        return qg_fail(QG_ERROR_ARGUMENT, "%.300s:%ld: not a text file", path,
                       line_of(out->text, (size_t)(zero - out->text)));
    if (size > LARGEST)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.300s' has more than %d MiB: no list and no plan is "
                                          "that long",
                       path, LARGEST >> 20);
    out->text[size] = 0;
    out->next = out->text;
    return QG_OK;
}

qg_status qg_text_lines_open(const char *path, qg_text_lines *out) {
    *out = (qg_text_lines){NULL, NULL};
    FILE *file = fopen(path, "r");
    if (!file)
        return qg_fail(QG_ERROR_IO, "cannot open '%.300s': %s", path, strerror(errno));
    out->text = malloc((size_t)LARGEST + 2);
    qg_status status = out->text ? read_all(file, path, out)
                                 : qg_fail(QG_ERROR_MEMORY, "no memory to read '%.300s'", path);
    fclose(file);
    if (status != QG_OK)
        qg_text_lines_close(out);
    return status;
}

char *qg_text_lines_next(qg_text_lines *lines) {
    if (!lines->next || !*lines->next)
        return NULL;
    return strsep(&lines->next, "\n");
}

void qg_text_lines_close(qg_text_lines *lines) {
    free(lines->text);
    *lines = (qg_text_lines){NULL, NULL};
}

char *qg_text_trimmed(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = 0;
    return text;
}
