// Tensors for tests, from integers alone: the same bits on every machine and with every compiler.
#ifndef BLOCK_DATA_H
#define BLOCK_DATA_H

#include <stdint.h>

enum {
    BLOCK_DATA_ORDINARY, // exponents -4 .. 3
    BLOCK_DATA_WIDE,     // exponents -40 .. 39
    BLOCK_DATA_TIES,     // at most six significant bits
    BLOCK_DATA_TINY,     // subnormals and the smallest normals
    BLOCK_DATA_HUGE,     // the largest binades
    BLOCK_DATA_ZEROS,    // mostly +0 and -0
    BLOCK_DATA_NANS,     // ordinary with NaNs of both signs
    BLOCK_DATA_INFS,     // ordinary with infinities
    BLOCK_DATA_SPECIALS, // NaN, infinities, zeros, ordinary
    BLOCK_DATA_ALL_ZERO, // +0 and -0
    BLOCK_DATA_BITS,     // any bit pattern
    BLOCK_DATA_MIXED,    // runs of 8 elements, each of a kind of its own
    BLOCK_DATA_KINDS
};

// x[i] depends on seed, kind and i alone.
void block_data_fill(uint64_t seed, int kind, float *x, int64_t n);

// The next of a sequence of random words (splitmix64).
uint64_t block_data_random(uint64_t *state);

#endif
