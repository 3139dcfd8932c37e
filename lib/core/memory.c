// Aligned, zeroed, overflow-checked allocation. See qg_memory.h.
#include <qg_memory.h>
#include <qg_size.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

qg_status qg_allocate(void **out, int64_t count, int64_t size, const char *what) {
    *out = NULL;
    int64_t bytes;
    if (!qg_size_multiply(count, size, &bytes) || bytes > INT64_MAX - ALIGNMENT)
        return qg_fail(QG_ERROR_OVERFLOW, "%s: %" PRId64 " elements of %" PRId64 " bytes overflow",
                       what, count, size);
    size_t padded = ((size_t)bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *room = aligned_alloc(ALIGNMENT, padded);
    if (!room)
        return qg_fail(QG_ERROR_MEMORY, "%s: no memory for %" PRId64 " bytes", what, bytes);
    memset(room, 0, padded);
    *out = room;
    return QG_OK;
}

void qg_release(void *pointer) { free(pointer); }
