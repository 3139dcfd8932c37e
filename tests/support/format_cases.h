// The formats that format tests range over, by name: every row of the table of at most 8 bits, all
// 28 all-finite minifloats with their default bias, and minifloats with biases at their limits.
#ifndef FORMAT_CASES_H
#define FORMAT_CASES_H

#include <stddef.h>

// NULL past the end. The string is valid until the next call from the same thread.
const char *narrow_format(size_t i);

#endif
