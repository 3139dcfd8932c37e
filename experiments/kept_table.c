// Open addressing over the digests of keys. See kept_table.h.
#include <kept_table.h>

#include <qg_digest.h>

#include <stdlib.h>
#include <string.h>

static qg_status out_of_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
}

// The slot that holds the key, or the empty one where it belongs.
static int64_t slot_of(const qg_kept_table *table, const int32_t *slots, int64_t count,
                       const void *key, size_t size) {
    int64_t slot = (int64_t)(qg_digest_bytes(key, size) & (uint64_t)(count - 1));
    while (slots[slot] && memcmp(table->items[slots[slot] - 1], key, size) != 0)
        slot = (slot + 1) & (count - 1);
    return slot;
}

static qg_status grow_items(qg_kept_table *table) {
    if (table->count < table->capacity)
        return QG_OK;
    int64_t capacity = table->capacity ? 2 * table->capacity : 16;
    void **items = realloc(table->items, (size_t)capacity * sizeof *items);
    if (!items)
        return out_of_memory();
    table->items = items;
    table->capacity = capacity;
    return QG_OK;
}

static qg_status grow_slots(qg_kept_table *table, size_t key_size) {
    if (2 * (table->count + 1) <= table->slot_count)
        return QG_OK;
    int64_t count = table->slot_count ? 2 * table->slot_count : 64;
    int32_t *slots = calloc((size_t)count, sizeof *slots);
    if (!slots)
        return out_of_memory();
    for (int32_t i = 0; i < (int32_t)table->count; i++)
        slots[slot_of(table, slots, count, table->items[i], key_size)] = i + 1;
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return QG_OK;
}

qg_status qg_kept_add(qg_kept_table *table, const void *item, size_t size, size_t key_size,
                      int32_t *index) {
    qg_status status = grow_items(table);
    if (!status)
        status = grow_slots(table, key_size);
    if (status)
        return status;
    int64_t slot = slot_of(table, table->slots, table->slot_count, item, key_size);
    if (!table->slots[slot]) {
        void *copy = malloc(size);
        if (!copy)
            return out_of_memory();
        memcpy(copy, item, size);
        table->items[table->count++] = copy;
        table->slots[slot] = (int32_t)table->count;
    }
    *index = table->slots[slot] - 1;
    return QG_OK;
}

void qg_kept_free(qg_kept_table *table) {
    for (int64_t i = 0; i < table->count; i++)
        free(table->items[i]);
    free(table->items);
    free(table->slots);
    *table = (qg_kept_table){0};
}
