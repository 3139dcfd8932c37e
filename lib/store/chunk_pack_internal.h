// Chunks as HDF5's filters shuffle and deflate read them: written by this file, because zlib spends
// most of its time on bytes that are all equal and on bytes that do not shrink.
#ifndef QG_CHUNK_PACK_INTERNAL_H
#define QG_CHUNK_PACK_INTERNAL_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct qg_chunk_packer qg_chunk_packer;

qg_status qg_chunk_packer_create(qg_chunk_packer **out);
void qg_chunk_packer_free(qg_chunk_packer *packer); // NULL is fine

// Packs `count` elements of `size` bytes. The same elements always give the same bytes, valid until
// the next call. QG_ERROR_MEMORY.
qg_status qg_chunk_pack(qg_chunk_packer *packer, const void *elements, size_t count, size_t size,
                        const void **packed, size_t *packed_size);

#endif
