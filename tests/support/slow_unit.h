// An independent model of the matrix units for tests: exact arithmetic on wide fixed-point numbers,
// term by term from the published algorithms. It shares nothing with lib/emulator: own table, own
// decoding, own rounding.
#ifndef SLOW_UNIT_H
#define SLOW_UNIT_H

#include <stdint.h>

// A storage type of operands, scales or accumulators.
typedef struct slow_type {
    const char *name;
    int bits, ebits, mbits, bias;
    int specials; // SLOW_*
    int dropped;  // low bits of the word that are not read
} slow_type;

enum { SLOW_IEEE, SLOW_ALL_ONES, SLOW_FNUZ, SLOW_FINITE, SLOW_POWER };

typedef struct slow_unit {
    const char *unit;
    const char *operands[6]; // NULL ends
    const char *accumulator;
    const char *model; // "t", "st", "gst", "pairs", "e", "ftz", "tr", "gtr"
    int k_least, k, length, fraction;
    const char *rho; // "rz32", "rz14", "rne32", "rne16"
    int floor;
    const char *scale; // NULL: none
    int scale_block;
} slow_unit;

// The i-th row, NULL past the end; a type by name.
const slow_unit *slow_unit_at(int i);
const slow_type *slow_type_find(const char *name);

// The value of a code: exact, NaN, or infinite.
double slow_type_value(const slow_type *type, uint64_t code);

// D of one dot product; k is a multiple of the row's k_least and scale_block divides it.
typedef struct slow_dot {
    const slow_type *a_type, *b_type;
    int k;
    const uint64_t *a, *b, *sa, *sb;
    int scale_block;
    uint64_t c;
} slow_dot;
uint64_t slow_unit_dot(const slow_unit *unit, const slow_dot *in);

#endif
