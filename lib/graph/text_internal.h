// Words and numbers of one line of text: for reading graphs. Private to graph/.
#ifndef TEXT_INTERNAL_H
#define TEXT_INTERNAL_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is left of a line. Blanks before each thing that is taken are passed over.
typedef struct text_line {
    const char *at, *end;
} text_line;

// Not terminated. Size 0: none.
typedef struct text_word {
    const char *at;
    size_t size;
} text_word;

// For "%.*s" in details: at most 60 bytes.
#define TEXT_SHOWN(word) (int)((word).size < 60 ? (word).size : 60), (word).at

bool text_is_empty(text_line *line);
bool text_take(text_line *line, char c);
// Letters, digits and _ . / : + -
text_word text_take_word(text_line *line);
bool text_equals(text_word word, const char *text);

// Terminated; QG_ERROR_DATA if there is no room. what: "a name".
qg_status text_copy(text_word word, const char *what, char *to, size_t size);
// Decimal; QG_ERROR_DATA: malformed, or not an integer of 64 bits.
qg_status text_integer(text_word word, int64_t *out);
qg_status text_unsigned(text_word word, uint64_t *out);
// Exactly `digits` of them, at most 16.
qg_status text_hexadecimal(text_word word, int digits, uint64_t *out);
// Decimal or hexadecimal binary32, finite.
qg_status text_float(text_word word, float *out);

#endif
