// Interned texts: open addressing over XXH3. See word_pool.h.
#include <word_pool.h>

#include <qg_digest.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct qg_word_pool {
    char **slots; // capacity a power of two, at most half full
    size_t count, capacity;
};

qg_status qg_word_pool_create(qg_word_pool **out) {
    enum { FIRST_CAPACITY = 256 };
    qg_word_pool *pool = calloc(1, sizeof *pool);
    *out = NULL;
    if (pool)
        pool->slots = calloc(FIRST_CAPACITY, sizeof *pool->slots);
    if (!pool || !pool->slots) {
        free(pool);
        return qg_fail(QG_ERROR_MEMORY, "out of memory for texts");
    }
    pool->capacity = FIRST_CAPACITY;
    *out = pool;
    return QG_OK;
}

void qg_word_pool_free(qg_word_pool *pool) {
    if (!pool)
        return;
    for (size_t i = 0; i < pool->capacity; i++)
        free(pool->slots[i]);
    free(pool->slots);
    free(pool);
}

// The slot that holds the text, or the empty one where it belongs.
static char **slot_of(char **slots, size_t capacity, const char *text) {
    size_t i = (size_t)qg_digest_bytes(text, strlen(text)) & (capacity - 1);
    while (slots[i] && strcmp(slots[i], text) != 0)
        i = (i + 1) & (capacity - 1);
    return &slots[i];
}

static bool grow(qg_word_pool *pool) {
    size_t capacity = 2 * pool->capacity;
    char **slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < pool->capacity; i++)
        if (pool->slots[i])
            *slot_of(slots, capacity, pool->slots[i]) = pool->slots[i];
    free(pool->slots);
    pool->slots = slots;
    pool->capacity = capacity;
    return true;
}

qg_status qg_word_pool_keep(qg_word_pool *pool, const char *text, const char **out) {
    char **slot = slot_of(pool->slots, pool->capacity, text);
    if (!*slot) {
        if (2 * (pool->count + 1) > pool->capacity) {
            if (!grow(pool))
                return qg_fail(QG_ERROR_MEMORY, "out of memory for texts");
            slot = slot_of(pool->slots, pool->capacity, text);
        }
        *slot = strdup(text);
        if (!*slot)
            return qg_fail(QG_ERROR_MEMORY, "out of memory for texts");
        pool->count++;
    }
    *out = *slot;
    return QG_OK;
}
