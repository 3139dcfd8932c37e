// Codes and scales of one to eight bytes in buffers, little endian whatever the machine.
#ifndef LITTLE_ENDIAN_INTERNAL_H
#define LITTLE_ENDIAN_INTERNAL_H

#include <stdint.h>

static inline uint64_t little_endian_read(const uint8_t *in, int bytes) {
    uint64_t bits = 0;
    for (int b = 0; b < bytes; b++)
        bits |= (uint64_t)in[b] << (8 * b);
    return bits;
}

static inline void little_endian_store(uint8_t *out, int bytes, uint64_t bits) {
    for (int b = 0; b < bytes; b++)
        out[b] = (uint8_t)(bits >> (8 * b));
}

#endif
