// `--show`: a result file as text, TSV, JSON or Markdown.
#ifndef SHOW_H
#define SHOW_H

#include <stdbool.h>
#include <stdio.h>

typedef struct qg_show_options {
    const char *path;
    const char *const *where; // (where_count) expressions, any of which must hold
    int where_count;
    const char *const *exclude; // (exclude_count) expressions, none of which may hold
    int exclude_count;
    const char *columns; // a list, NULL: what a reader wants to see
    const char *format;  // text, tsv, json, markdown; NULL: text
} qg_show_options;

// Prints to `stream`; messages go through message.h. Returns the exit code: 2 for a wrong option or
// a file that is no result file, 4 if no row is selected, 5 if the file cannot be read.
int qg_show(const qg_show_options *options, FILE *stream);

// Whether the word is one of the formats.
bool qg_show_knows_format(const char *format);

#endif
