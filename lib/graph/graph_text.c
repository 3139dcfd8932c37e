// Words and numbers of one line of text. See text_internal.h.
#include "text_internal.h"

#include <stdlib.h>
#include <string.h>

static void skip_blanks(text_line *line) {
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t'))
        line->at++;
}

bool text_is_empty(text_line *line) {
    skip_blanks(line);
    return line->at == line->end;
}

bool text_take(text_line *line, char c) {
    if (text_is_empty(line) || *line->at != c)
        return false;
    line->at++;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '.' || c == '/' || c == ':' || c == '+' || c == '-';
}

text_word text_take_word(text_line *line) {
    skip_blanks(line);
    text_word word = {line->at, 0};
    while (line->at < line->end && is_of_word(*line->at))
        line->at++;
    word.size = (size_t)(line->at - word.at);
    return word;
}

bool text_equals(text_word word, const char *text) {
    return strlen(text) == word.size && memcmp(word.at, text, word.size) == 0;
}

qg_status text_copy(text_word word, const char *what, char *to, size_t size) {
    if (word.size >= size)
        return qg_fail(QG_ERROR_DATA, "%s '%.*s...' is longer than %zu", what, TEXT_SHOWN(word),
                       size - 1);
    memcpy(to, word.at, word.size);
    to[word.size] = 0;
    return QG_OK;
}

static qg_status no_integer(text_word word) {
    return qg_fail(QG_ERROR_DATA, "'%.*s' is no integer of 64 bits", TEXT_SHOWN(word));
}

// Digits alone, of a number up to `most`.
static bool read_digits(text_word word, uint64_t most, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < word.size; i++) {
        uint64_t digit = (uint64_t)(word.at[i] - '0');
        if (!is_digit(word.at[i]) || value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *out = value;
    return word.size > 0;
}

qg_status text_unsigned(text_word word, uint64_t *out) {
    return read_digits(word, UINT64_MAX, out) ? QG_OK : no_integer(word);
}

qg_status text_integer(text_word word, int64_t *out) {
    bool is_negative = word.size > 0 && word.at[0] == '-';
    text_word digits = {word.at + is_negative, word.size - is_negative};
    uint64_t magnitude;
    if (!read_digits(digits, INT64_MAX, &magnitude))
        return no_integer(word);
    *out = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return QG_OK;
}

static int hexadecimal_digit(char c) {
    return is_digit(c)              ? c - '0'
           : (c >= 'a' && c <= 'f') ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : -1;
}

qg_status text_hexadecimal(text_word word, int digits, uint64_t *out) {
    uint64_t value = 0;
    bool is_good = word.size == (size_t)digits;
    for (size_t i = 0; i < word.size && is_good; i++) {
        int digit = hexadecimal_digit(word.at[i]);
        is_good = digit >= 0;
        value = value << 4 | (uint64_t)digit;
    }
    if (!is_good)
        return qg_fail(QG_ERROR_DATA, "'%.*s' is not %d hexadecimal digits", TEXT_SHOWN(word),
                       digits);
    *out = value;
    return QG_OK;
}

qg_status text_float(text_word word, float *out) {
    char number[64], *end;
    qg_status status = text_copy(word, "the number", number, sizeof number);
    if (status)
        return status;
    bool starts_as_number = is_digit(number[number[0] == '-']) || number[0] == '.';
    float x = starts_as_number ? strtof(number, &end) : 0.0f;
    if (!starts_as_number || *end || !(x - x == 0.0f))
        return qg_fail(QG_ERROR_DATA, "'%s' is no number of binary32", number);
    *out = x;
    return QG_OK;
}
