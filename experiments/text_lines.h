// The lines of a small text file that a user names: lists (@file) and plans.
#ifndef TEXT_LINES_H
#define TEXT_LINES_H

#include <qg_status.h>

typedef struct qg_text_lines {
    char *text, *next;
} qg_text_lines;

// Reads the whole file. QG_ERROR_IO: cannot open or read. QG_ERROR_ARGUMENT: longer than 16 MiB (an
// endless device, say), or with a zero byte: the detail names the path and the line.
qg_status qg_text_lines_open(const char *path, qg_text_lines *out);

// The next line, writable, without its end; NULL past the last one.
char *qg_text_lines_next(qg_text_lines *lines);

void qg_text_lines_close(qg_text_lines *lines);

// The text without white space at its ends; what is behind is cut off in place.
char *qg_text_trimmed(char *text);

#endif
