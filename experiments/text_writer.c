// See text_writer.h. printf would be half the cost of a row of the result file.
#include <text_writer.h>

#include <string.h>

qg_text_writer qg_text_writer_on(char *text, size_t size) {
    if (size)
        text[0] = 0;
    return (qg_text_writer){text, size, 0, size == 0};
}

void qg_text_writer_put(qg_text_writer *w, const char *bytes, size_t count) {
    if (w->full || count >= w->size - w->length) {
        w->full = true;
        return;
    }
    memcpy(w->text + w->length, bytes, count);
    w->length += count;
    w->text[w->length] = 0;
}

void qg_text_writer_number(qg_text_writer *w, uint64_t value, unsigned base) {
    char digits[64];
    size_t first = sizeof digits;
    do {
        digits[--first] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    qg_text_writer_put(w, digits + first, sizeof digits - first);
}
