// Items kept once, by a key of bytes that is their beginning; their places and addresses stay.
#ifndef KEPT_TABLE_H
#define KEPT_TABLE_H

#include <qg_status.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qg_kept_table {
    void **items;
    int64_t count, capacity;
    int32_t *slots; // open addressing over items: index + 1
    int64_t slot_count;
} qg_kept_table;

// Keeps a copy of an item of `size` bytes, unless one is there whose first `key_size` bytes are the
// same; *index is its place. The key has no padding; texts in it are pointers into one pool.
// QG_ERROR_MEMORY.
qg_status qg_kept_add(qg_kept_table *table, const void *item, size_t size, size_t key_size,
                      int32_t *index);
void qg_kept_free(qg_kept_table *table); // leaves an empty one

#endif
