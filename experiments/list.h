// Lists as every program reads them: `a,b,c` with `\,` for a literal comma, `@file` (an item or a
// list per line, `#` opens a comment line), globs over names, and for numbers `lo:hi:step` and
// `lo:hi:*factor`. Knows nothing of what the items mean. Failures: QG_ERROR_ARGUMENT with what is
// wrong, QG_ERROR_IO for a file, QG_ERROR_MEMORY.
#ifndef LIST_H
#define LIST_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qg_list {
    char **items;
    int64_t count, capacity;
} qg_list;

enum { QG_LIST_MOST = 1 << 20 }; // items

void qg_list_free(qg_list *list); // leaves an empty list
qg_status qg_list_add(qg_list *list, const char *item);
qg_status qg_list_copy(const qg_list *from, qg_list *to); // appends
// Appends the items of a text. An empty text and an empty item are errors.
qg_status qg_list_split(const char *text, qg_list *list);

bool qg_list_is_glob(const char *item);
// Appends the words that the glob matches; *matched counts them.
qg_status qg_list_match(const char *glob, const char *(*listed)(size_t), qg_list *list,
                        int64_t *matched);

// Writes an item so that qg_list_split reads it back as one: commas escaped.
void qg_list_escape(const char *item, char *text, size_t size);

typedef struct qg_numbers {
    uint64_t *values;
    int64_t count, capacity;
} qg_numbers;

void qg_numbers_free(qg_numbers *numbers);
// Appends the numbers that the items mean, each once, all in lowest .. highest.
qg_status qg_numbers_read(const qg_list *items, uint64_t lowest, uint64_t highest,
                          qg_numbers *numbers);

#endif
