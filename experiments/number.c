// Numbers as users type them. See number.h.
#include <number.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool qg_number_u64(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        uint64_t digit = (uint64_t)(*text - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool qg_number_i64(const char *text, int64_t *out) {
    bool negative = *text == '-';
    uint64_t magnitude;
    if (!qg_number_u64(text + (negative || *text == '+'), &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX)
        return false;
    *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return true;
}

bool qg_number_f64(const char *text, double *out) {
    char *end;
    if (!*text || isspace((unsigned char)*text))
        return false;
    *out = strtod(text, &end);
    return end != text && !*end;
}

bool qg_number_hex(const char *text, uint64_t *out) {
    bool prefixed = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = prefixed ? text + 2 : text;
    size_t length = strlen(digits);
    if (length == 0 || length > 16 || (!prefixed && length != 16))
        return false;
    if (digits[strspn(digits, "0123456789abcdefABCDEF")])
        return false;
    *out = strtoull(digits, NULL, 16);
    return true;
}
