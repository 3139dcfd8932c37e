// An independent model of the number formats for tests: exact real arithmetic over the sorted list
// of a format's values. It shares nothing with lib/formats: own table, own decoding, no bit tricks.
// Exact in binary64 for every format of at most 8 bits, bf16, fp16 and tf32.
#ifndef SLOW_MODEL_H
#define SLOW_MODEL_H

#include <stddef.h>
#include <stdint.h>

typedef struct slow_format slow_format;

enum {
    SLOW_RNE,
    SLOW_RNA,
    SLOW_RTZ,
    SLOW_RTP,
    SLOW_RTN,
    SLOW_RTO,
    SLOW_STOCHASTIC_A,
    SLOW_STOCHASTIC_B,
    SLOW_STOCHASTIC_C
};

typedef struct slow_conversion {
    int mode, bits; // bits: random bits of the stochastic modes, the top ones of the word
    int saturates, nan_to_zero;
} slow_conversion;

// Where a magnitude lies between two neighbours of the format's grid.
typedef struct slow_place {
    int is_nan, is_infinite, negative;
    int beyond;        // at or past the first grid point above the largest value
    int below;         // under the smallest value of a format without zero
    int exceeds;       // low is the largest value
    size_t rank;       // of the lower neighbour
    double rest, step; // magnitude - low, and high - low: the discarded fraction is rest / step
} slow_place;

// By canonical name, minifloats and P3109 formats included. NULL if the model lacks the format.
slow_format *slow_format_create(const char *name);
void slow_format_free(slow_format *format);

int slow_format_bits(const slow_format *format); // of a stored code
uint64_t slow_code_count(const slow_format *format);
uint64_t slow_code(const slow_format *format, uint64_t i); // the i-th code

double slow_decode(const slow_format *format, uint64_t code);

// The non-negative finite values, ascending.
size_t slow_value_count(const slow_format *format);
double slow_value(const slow_format *format, size_t rank);
double slow_above_largest(const slow_format *format); // the next point of the unbounded grid

slow_place slow_locate(const slow_format *format, double x);
uint64_t slow_round(const slow_format *format, const slow_place *place,
                    const slow_conversion *conversion, uint32_t word);
uint64_t slow_encode(const slow_format *format, double x, const slow_conversion *conversion,
                     uint32_t word);

#endif
