// Numbers as users type them: the whole text or nothing.
#ifndef NUMBER_H
#define NUMBER_H

#include <stdbool.h>
#include <stdint.h>

// Decimal digits alone, at most 2^64 - 1.
bool qg_number_u64(const char *text, uint64_t *out);
// An optional sign and digits, within int64_t.
bool qg_number_i64(const char *text, int64_t *out);
// Decimal or hexadecimal floating point, inf and nan included; no surrounding space.
bool qg_number_f64(const char *text, double *out);
// Exactly 16 hexadecimal digits, or 0x and 1 to 16 of them: how digests and case ids are written.
bool qg_number_hex(const char *text, uint64_t *out);

#endif
