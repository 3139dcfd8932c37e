// See block_data.h.
#include <block_data.h>

#include <string.h>

uint64_t block_data_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint32_t bits_with_exponent(uint64_t r, int lowest, int count) {
    int exponent = lowest + (int)((r >> 32) % (uint64_t)count);
    return (uint32_t)(r & 0x807fffffu) | (uint32_t)(exponent + 127) << 23;
}

static uint32_t bits_of_kind(int kind, uint64_t r) {
    uint32_t sign = (uint32_t)(r & 0x80000000u), dice = (uint32_t)(r >> 56);
    uint32_t ordinary = bits_with_exponent(r, -4, 8);
    switch (kind) {
    case BLOCK_DATA_WIDE: return bits_with_exponent(r, -40, 80);
    case BLOCK_DATA_TIES: return bits_with_exponent(r, -4, 8) & 0xfffc0000u;
    case BLOCK_DATA_TINY:
        return dice < 128 ? (uint32_t)(r & 0x807fffffu) >> (r >> 40) % 20 | sign
                          : bits_with_exponent(r, -126, 12);
    case BLOCK_DATA_HUGE: return bits_with_exponent(r, 116, 12);
    case BLOCK_DATA_ZEROS: return dice < 200 ? sign : ordinary;
    case BLOCK_DATA_NANS:
        return dice < 40 ? sign | 0x7f800001u | (uint32_t)(r & 0x7fffff) : ordinary;
    case BLOCK_DATA_INFS: return dice < 24 ? sign | 0x7f800000u : ordinary;
    case BLOCK_DATA_SPECIALS:
        return dice < 10   ? sign | 0x7fc00000u
               : dice < 30 ? sign | 0x7f800000u
               : dice < 90 ? sign
                           : ordinary;
    case BLOCK_DATA_ALL_ZERO: return sign;
    case BLOCK_DATA_BITS: return (uint32_t)r;
    default: return ordinary;
    }
}

void block_data_fill(uint64_t seed, int kind, float *x, int64_t n) {
    uint64_t state = seed * BLOCK_DATA_KINDS + (uint64_t)kind, run = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % 8 == 0)
            run = block_data_random(&state);
        int k = kind == BLOCK_DATA_MIXED ? (int)(run % BLOCK_DATA_MIXED) : kind;
        uint32_t bits = bits_of_kind(k, block_data_random(&state));
        memcpy(&x[i], &bits, sizeof bits);
    }
}
