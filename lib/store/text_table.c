// A hash table over an arena. See text_table_internal.h.
#include <text_table_internal.h>

#include <qg_digest.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 16, FIRST_SLOTS = 256 };

typedef struct qg_text_block {
    struct qg_text_block *next;
    size_t used, size;
    char bytes[];
} qg_text_block;

qg_text_pool *qg_text_pool_create(void) {
    qg_text_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->users = 1;
    return pool;
}

qg_text_pool *qg_text_pool_share(qg_text_pool *pool) {
    pool->users++;
    return pool;
}

void qg_text_pool_release(qg_text_pool *pool) {
    if (!pool || --pool->users > 0)
        return;
    for (qg_text_block *block = pool->blocks; block;) {
        qg_text_block *next = block->next;
        free(block);
        block = next;
    }
    free(pool->texts);
    free(pool->slots);
    free(pool);
}

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory for a text"); }

static char *room_for(qg_text_pool *pool, size_t size) {
    qg_text_block *block = pool->blocks;
    if (!block || block->size - block->used < size) {
        size_t block_size = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = malloc(sizeof *block + block_size);
        if (!block)
            return NULL;
        *block = (qg_text_block){pool->blocks, 0, block_size};
        pool->blocks = block;
    }
    char *room = block->bytes + block->used;
    block->used += size;
    return room;
}

// The slot that holds the text, or the free one where it belongs.
static uint32_t *slot_of(const qg_text_pool *pool, const char *bytes, size_t length,
                         uint32_t hash) {
    uint32_t mask = pool->slot_count - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &pool->slots[at];
        if (*slot == 0)
            return slot;
        const qg_text *text = &pool->texts[*slot - 1];
        if (text->hash == hash && text->length == length &&
            memcmp(text->bytes, bytes, length) == 0)
            return slot;
    }
}

static qg_status grow_slots(qg_text_pool *pool) {
    uint32_t slot_count = pool->slot_count ? 2 * pool->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return no_memory();
    free(pool->slots);
    pool->slots = slots;
    pool->slot_count = slot_count;
    for (uint32_t i = 0; i < pool->count; i++) {
        const qg_text *text = &pool->texts[i];
        *slot_of(pool, text->bytes, text->length, text->hash) = i + 1;
    }
    return QG_OK;
}

static qg_status grow_texts(qg_text_pool *pool) {
    uint32_t capacity = pool->capacity ? 2 * pool->capacity : FIRST_SLOTS / 2;
    qg_text *texts = realloc(pool->texts, capacity * sizeof *texts);
    if (!texts)
        return no_memory();
    pool->texts = texts;
    pool->capacity = capacity;
    return QG_OK;
}

static qg_status add(qg_text_pool *pool, const char *bytes, size_t length, uint32_t hash) {
    if (pool->count >= UINT32_MAX / 4 || length >= UINT32_MAX)
        return qg_fail(QG_ERROR_OVERFLOW, "more than 2^30 different texts in a table");
    if (pool->count == pool->capacity && grow_texts(pool) != QG_OK)
        return QG_ERROR_MEMORY;
    char *room = room_for(pool, length + 1);
    if (!room)
        return no_memory();
    memcpy(room, bytes, length);
    room[length] = 0;
    pool->texts[pool->count++] = (qg_text){room, (uint32_t)length, hash};
    return QG_OK;
}

qg_status qg_text_intern(qg_text_pool *pool, const char *bytes, size_t length, uint32_t *index) {
    *index = 0;
    if (length == 0)
        return QG_OK;
    if (pool->count == 0) {
        qg_status status = add(pool, "", 0, 0); // index 0, and in no slot
        if (status != QG_OK)
            return status;
    }
    if (2 * (pool->count + 1) > pool->slot_count && grow_slots(pool) != QG_OK)
        return QG_ERROR_MEMORY;
    uint32_t hash = (uint32_t)qg_digest_bytes(bytes, length);
    uint32_t *slot = slot_of(pool, bytes, length, hash);
    if (*slot == 0) {
        qg_status status = add(pool, bytes, length, hash);
        if (status != QG_OK)
            return status;
        *slot = pool->count;
    }
    *index = *slot - 1;
    return QG_OK;
}

const char *qg_text_at(const qg_text_pool *pool, uint32_t index) {
    return index ? pool->texts[index].bytes : "";
}

size_t qg_text_length(const qg_text_pool *pool, uint32_t index) {
    return index ? pool->texts[index].length : 0;
}

// Length of the well-formed character at the start of `bytes`, 0 if there is none.
static size_t character_length(const unsigned char *bytes, size_t length) {
    unsigned char first = bytes[0];
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size == 0 || first > 0xf4 || size > length)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    // Overlong forms, surrogates and beyond U+10FFFF differ in the second byte.
    bool wrong = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
                 (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f);
    return wrong ? 0 : size;
}

// Whether there are 8 bytes, all below 0x80: what almost all texts are made of.
static bool is_ascii(const char *bytes, size_t length) {
    uint64_t eight = 0x80;
    if (length >= sizeof eight)
        memcpy(&eight, bytes, sizeof eight);
    return (eight & 0x8080808080808080u) == 0;
}

bool qg_text_is_utf8(const char *bytes, size_t length, size_t *bad) {
    for (size_t at = 0; at < length;) {
        if (is_ascii(bytes + at, length - at)) {
            at += 8;
            continue;
        }
        size_t size = character_length((const unsigned char *)bytes + at, length - at);
        if (size == 0) {
            *bad = at;
            return false;
        }
        at += size;
    }
    return true;
}

char *qg_text_copy_as_utf8(const char *text) {
    size_t length = strlen(text), bad = 0;
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, length + 1);
    for (size_t at = 0; !qg_text_is_utf8(copy + at, length - at, &bad); at += bad)
        copy[at + bad] = '?';
    return copy;
}
