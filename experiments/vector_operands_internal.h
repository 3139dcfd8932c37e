// What the generators of vector_operands.h share: where vectors go, and random words.
#ifndef VECTOR_OPERANDS_INTERNAL_H
#define VECTOR_OPERANDS_INTERNAL_H

#include <qg_philox.h>
#include <vector_operands.h>

// What every generator needs: where vectors go, and the one that is being filled.
typedef struct generator {
    const qg_vector_header *h;
    qg_vector_sink sink;
    void *context;
    qg_vector_case c;
    qg_status status;    // the first failure: nothing is emitted after it
    uint64_t seed, next; // of random words
} generator;

static inline void qg_vector_emit(generator *g) {
    if (g->status == QG_OK)
        g->status = g->sink(g->context, &g->c);
}

static inline uint32_t qg_vector_random_word(generator *g) {
    return qg_philox_word(g->seed, QG_STREAM_DATA, g->next++);
}

// Kind dot: vector_operands_dot.c.
void qg_vector_dot_level1(generator *g);
void qg_vector_dot_level2(generator *g, int64_t count);

#endif
