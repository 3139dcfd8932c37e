// Sizes are int64_t everywhere; their products are checked where they enter the library.
#ifndef QG_SIZE_H
#define QG_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// *out = a * b; false (and *out untouched) if a factor is negative or the product exceeds 2^63 - 1.
static inline bool qg_size_multiply(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

// *out = a + b; false if a term is negative or the sum exceeds 2^63 - 1.
static inline bool qg_size_add(int64_t a, int64_t b, int64_t *out) {
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

#endif
