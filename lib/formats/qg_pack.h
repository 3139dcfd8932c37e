// Packed storage of narrow codes. FP4 and INT4: element 2i in the low nibble of byte i. FP6 and
// INT6: four elements in three bytes, little endian, element i in bits 6i .. 6i + 5 of 24.
// Codes of 8 bits and more are stored as they are. C and CUDA. Exact.
#ifndef QG_PACK_H
#define QG_PACK_H

#include <qg_hd.h>
#include <stdint.h>

// Bytes of `count` packed codes of `bits` (4, 6, or a multiple of 8) bits; a row is padded to a
// whole byte (4) or three bytes (6). `count` must be at most 2^59.
QG_HD int64_t qg_packed_bytes(int bits, int64_t count) {
    if (bits == 4)
        return (count + 1) / 2;
    if (bits == 6)
        return (count + 3) / 4 * 3;
    return count * (bits / 8);
}

// codes: (count) one per byte. packed: qg_packed_bytes(4, count) bytes, every one written; the
// unused high nibble of an odd count is 0.
QG_HD void qg_pack4(const uint8_t *codes, int64_t count, uint8_t *packed) {
    for (int64_t i = 0; i < count; i += 2) {
        uint8_t high = i + 1 < count ? codes[i + 1] & 15 : 0;
        packed[i / 2] = (uint8_t)((codes[i] & 15) | high << 4);
    }
}

QG_HD void qg_unpack4(const uint8_t *packed, int64_t count, uint8_t *codes) {
    for (int64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)(packed[i / 2] >> (i % 2 * 4) & 15);
}

// codes: (count) one per byte. packed: qg_packed_bytes(6, count) bytes, every one written; the
// slots of missing elements are 0.
QG_HD void qg_pack6(const uint8_t *codes, int64_t count, uint8_t *packed) {
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t word = 0;
        for (int j = 0; j < 4 && i + j < count; j++)
            word |= (uint32_t)(codes[i + j] & 63) << (6 * j);
        for (int j = 0; j < 3; j++)
            packed[i / 4 * 3 + j] = (uint8_t)(word >> (8 * j));
    }
}

QG_HD void qg_unpack6(const uint8_t *packed, int64_t count, uint8_t *codes) {
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *group = packed + i / 4 * 3;
        uint32_t word = group[0] | (uint32_t)group[1] << 8 | (uint32_t)group[2] << 16;
        codes[i] = (uint8_t)(word >> (6 * (i % 4)) & 63);
    }
}

#endif
