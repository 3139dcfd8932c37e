// Interned texts: equal texts share one index and one address, which stays valid as long as the
// pool. Index 0 is the empty text. A merged table shares the pool of its first: texts are only
// added.
#ifndef QG_TEXT_TABLE_INTERNAL_H
#define QG_TEXT_TABLE_INTERNAL_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qg_text {
    const char *bytes; // zero-terminated
    uint32_t length, hash;
} qg_text;

typedef struct qg_text_pool {
    int64_t users;
    qg_text *texts;
    uint32_t count, capacity;
    uint32_t *slots; // open addressing: index + 1 of a text, 0 if free; a power of two of them
    uint32_t slot_count;
    struct qg_text_block *blocks; // where the bytes lie
} qg_text_pool;

// NULL without memory. The last user's release frees it.
qg_text_pool *qg_text_pool_create(void);
qg_text_pool *qg_text_pool_share(qg_text_pool *pool);
void qg_text_pool_release(qg_text_pool *pool); // NULL is fine

// The index of a text; `bytes` hold no zero. QG_ERROR_MEMORY.
qg_status qg_text_intern(qg_text_pool *pool, const char *bytes, size_t length, uint32_t *index);

const char *qg_text_at(const qg_text_pool *pool, uint32_t index);
size_t qg_text_length(const qg_text_pool *pool, uint32_t index);

// Whether the bytes are well-formed UTF-8 (no overlong forms, surrogates, or beyond U+10FFFF);
// *bad is the offset of the first byte that is not.
bool qg_text_is_utf8(const char *bytes, size_t length, size_t *bad);
// A copy in which bytes that are no UTF-8 (a file's name may hold them) are question marks; to be
// freed. NULL without memory.
char *qg_text_copy_as_utf8(const char *text);

#endif
