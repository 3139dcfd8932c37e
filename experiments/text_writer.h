// Text that grows in a fixed buffer and, once that is full, nowhere.
#ifndef TEXT_WRITER_H
#define TEXT_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qg_text_writer {
    char *text; // zero-terminated at `length`
    size_t size, length;
    bool full; // something did not fit
} qg_text_writer;

// Starts with the empty text.
qg_text_writer qg_text_writer_on(char *text, size_t size);
void qg_text_writer_put(qg_text_writer *w, const char *bytes, size_t count);
void qg_text_writer_number(qg_text_writer *w, uint64_t value, unsigned base); // base 2 to 16

#endif
