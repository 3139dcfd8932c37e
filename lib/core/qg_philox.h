// Philox4x32-10: the counter-based random numbers of every input and every stochastic rounding.
// Word `index` of a stream depends on (seed, stream, index) alone, so results do not depend on
// threads, shards or order. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
// (SC 2011). C and CUDA. Exact: known answers in tests/core/test_philox.c.
#ifndef QG_PHILOX_H
#define QG_PHILOX_H

#include <qg_hd.h>
#include <stdint.h>

// Streams of a product: `a` (and a lone tensor) uses the first three, b the same plus 4, the bias
// what remains.
enum {
    QG_STREAM_DATA = 0,
    QG_STREAM_STRUCTURE = 1,
    QG_STREAM_ROUNDING = 2,
    QG_STREAM_OPERAND_B = 4, // added to the streams of operand b
    QG_STREAM_BIAS = 7
};

typedef struct qg_philox_block {
    uint32_t word[4];
} qg_philox_block;

QG_HD qg_philox_block qg_philox(qg_philox_block counter, uint32_t key_low, uint32_t key_high) {
    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * counter.word[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57u * counter.word[2];
        qg_philox_block next;
        next.word[0] = (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key_low;
        next.word[1] = (uint32_t)product1;
        next.word[2] = (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key_high;
        next.word[3] = (uint32_t)product0;
        counter = next;
        key_low += 0x9E3779B9u;
        key_high += 0xBB67AE85u;
    }
    return counter;
}

// The four words of elements 4 * quad .. 4 * quad + 3 of a stream.
QG_HD qg_philox_block qg_philox_quad(uint64_t seed, uint32_t stream, uint64_t quad) {
    qg_philox_block counter;
    counter.word[0] = (uint32_t)quad;
    counter.word[1] = (uint32_t)(quad >> 32);
    counter.word[2] = stream;
    counter.word[3] = 0;
    return qg_philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

// The word of element `index` (= row * k + column of the unpadded tensor).
QG_HD uint32_t qg_philox_word(uint64_t seed, uint32_t stream, uint64_t index) {
    return qg_philox_quad(seed, stream, index / 4).word[index % 4];
}

#endif
