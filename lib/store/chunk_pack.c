// A shuffled chunk is one plane per byte of an element: all first bytes, all second bytes, ... The
// zlib stream (RFC 1950) is put together from pieces, one per plane, none of which refers to what
// lies before it:
// - a plane of equal bytes (high bytes of counts, texts that repeat): a piece that was kept;
// - a plane that does not shrink (low bytes of numbers): stored;
// - any other: deflated at level 1.
// Short planes are one piece together: each piece costs some bytes.
// See chunk_pack_internal.h.
#include <chunk_pack_internal.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    SHORT = 256,            // bytes of a plane that is no piece of its own
    SAMPLE = 1024,          // bytes of a piece that tell whether it shrinks
    SAMPLED = 8 * SAMPLE,   // shorter pieces are deflated right away
    LARGEST_STORED = 65535, // bytes of a stored block
    RUN_ROOM = 512,         // of a kept piece
    ADLER_BASE = 65521
};

// A deflated run of equal bytes.
typedef struct run {
    size_t count; // of the bytes; 0: none kept
    size_t size;
    unsigned char piece[RUN_ROOM];
} run;

struct qg_chunk_packer {
    z_stream stream; // raw, level 1
    unsigned char *plane, *varies, *packed;
    size_t plane_room, varies_room, packed_room;
    size_t used; // of packed
    run runs[256];
};

static qg_status no_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "no memory to deflate results");
}

qg_status qg_chunk_packer_create(qg_chunk_packer **out) {
    qg_chunk_packer *packer = calloc(1, sizeof *packer);
    *out = packer;
    if (packer && deflateInit2(&packer->stream, 1, Z_DEFLATED, -MAX_WBITS, 8,
                               Z_DEFAULT_STRATEGY) == Z_OK)
        return QG_OK;
    free(packer);
    *out = NULL;
    return no_memory();
}

void qg_chunk_packer_free(qg_chunk_packer *packer) {
    if (!packer)
        return;
    deflateEnd(&packer->stream);
    free(packer->plane);
    free(packer->varies);
    free(packer->packed);
    free(packer);
}

static bool reserve(unsigned char **bytes, size_t *room, size_t size) {
    if (size <= *room)
        return true;
    unsigned char *moved = realloc(*bytes, size);
    if (!moved)
        return false;
    *bytes = moved;
    *room = size;
    return true;
}

static size_t most_stored(size_t count) { return count + 5 * (count / LARGEST_STORED + 1); }

// Deflates into `to` up to a flush, which ends on a whole byte. It starts afresh, so that a piece
// depends on nothing but its bytes.
static size_t deflate_piece(z_stream *stream, const unsigned char *bytes, size_t count,
                            unsigned char *to, size_t room) {
    deflateReset(stream);
    stream->next_in = (Bytef *)(uintptr_t)bytes; // zlib does not write to it
    stream->avail_in = (uInt)count;
    stream->next_out = to;
    stream->avail_out = (uInt)room;
    deflate(stream, Z_SYNC_FLUSH);
    return room - stream->avail_out;
}

static void put_stored(qg_chunk_packer *packer, const unsigned char *bytes, size_t count) {
    while (count > 0) {
        size_t length = count < LARGEST_STORED ? count : LARGEST_STORED;
        unsigned char *to = packer->packed + packer->used;
        to[0] = 0; // not the last block, stored
        to[1] = (unsigned char)length;
        to[2] = (unsigned char)(length >> 8);
        to[3] = (unsigned char)~to[1];
        to[4] = (unsigned char)~to[2];
        memcpy(to + 5, bytes, length);
        packer->used += 5 + length;
        bytes += length;
        count -= length;
    }
}

// Whether the start of the piece deflates to less than 3/4: zlib is slowest on what shrinks little.
static bool shrinks(qg_chunk_packer *packer, const unsigned char *plane) {
    unsigned char scratch[2 * SAMPLE];
    return deflate_piece(&packer->stream, plane, SAMPLE, scratch, sizeof scratch) <
           SAMPLE - SAMPLE / 4;
}

static void put_piece(qg_chunk_packer *packer, const unsigned char *bytes, size_t count) {
    if (count >= SAMPLED && !shrinks(packer, bytes))
        put_stored(packer, bytes, count);
    else
        packer->used += deflate_piece(&packer->stream, bytes, count, packer->packed + packer->used,
                                      packer->packed_room - packer->used);
}

static void put_run(qg_chunk_packer *packer, unsigned char byte, size_t count) {
    run *kept = &packer->runs[byte];
    unsigned char *to = packer->packed + packer->used;
    if (kept->count != count) {
        memset(packer->plane, byte, count);
        size_t size = deflate_piece(&packer->stream, packer->plane, count, to,
                                    packer->packed_room - packer->used);
        packer->used += size;
        kept->count = size <= RUN_ROOM ? count : 0;
        kept->size = size;
        if (kept->count)
            memcpy(kept->piece, to, size);
        return;
    }
    memcpy(to, kept->piece, kept->size);
    packer->used += kept->size;
}

// Adler-32 of `count` equal bytes.
static uLong adler_of_run(unsigned char byte, size_t count) {
    uint64_t n = count % ADLER_BASE, triangle = n * (n + 1) / 2 % ADLER_BASE;
    return (uLong)((n + byte * triangle) % ADLER_BASE << 16 | (1 + byte * n) % ADLER_BASE);
}

// varies[b]: not 0 where byte b differs between elements.
static void find_varying(const unsigned char *elements, size_t count, size_t size,
                         unsigned char *varies) {
    memset(varies, 0, size);
    if (size == 8) { // almost all data, and one comparison per element instead of 8
        uint64_t first, next, difference = 0;
        memcpy(&first, elements, 8);
        for (size_t i = 1; i < count; i++) {
            memcpy(&next, elements + 8 * i, 8);
            difference |= next ^ first;
        }
        memcpy(varies, &difference, 8);
        return;
    }
    for (size_t i = 1; i < count; i++)
        for (size_t b = 0; b < size; b++)
            varies[b] = (unsigned char)(varies[b] | (elements[i * size + b] ^ elements[b]));
}

static void take_plane(const unsigned char *elements, size_t count, size_t size, size_t b,
                       unsigned char *plane) {
    for (size_t i = 0; i < count; i++)
        plane[i] = elements[i * size + b];
}

static uLong put_together(qg_chunk_packer *packer, const unsigned char *elements, size_t count,
                          size_t size) {
    for (size_t b = 0; b < size; b++)
        take_plane(elements, count, size, b, packer->plane + b * count);
    put_piece(packer, packer->plane, count * size);
    return adler32(adler32(0, NULL, 0), packer->plane, (uInt)(count * size));
}

static uLong put_planes(qg_chunk_packer *packer, const unsigned char *elements, size_t count,
                        size_t size) {
    uLong adler = adler32(0, NULL, 0);
    find_varying(elements, count, size, packer->varies);
    for (size_t b = 0; b < size; b++) {
        if (!packer->varies[b]) {
            put_run(packer, elements[b], count);
            adler = adler32_combine(adler, adler_of_run(elements[b], count), (z_off_t)count);
        } else {
            take_plane(elements, count, size, b, packer->plane);
            put_piece(packer, packer->plane, count);
            adler = adler32(adler, packer->plane, (uInt)count);
        }
    }
    return adler;
}

static bool reserve_all(qg_chunk_packer *packer, size_t count, size_t size) {
    size_t pieces = count < SHORT ? 1 : size, bytes = count < SHORT ? count * size : count;
    size_t most = most_stored(bytes) + deflateBound(&packer->stream, bytes);
    return reserve(&packer->plane, &packer->plane_room, bytes) &&
           reserve(&packer->varies, &packer->varies_room, size) &&
           reserve(&packer->packed, &packer->packed_room, pieces * most + 16);
}

qg_status qg_chunk_pack(qg_chunk_packer *packer, const void *elements, size_t count, size_t size,
                        const void **packed, size_t *packed_size) {
    if (!reserve_all(packer, count, size))
        return no_memory();
    packer->packed[0] = 0x78; // deflate with a window of 32 KiB
    packer->packed[1] = 0x01; // fastest
    packer->used = 2;
    uLong adler = count < SHORT ? put_together(packer, elements, count, size)
                                : put_planes(packer, elements, count, size);
    unsigned char *end = packer->packed + packer->used;
    end[0] = 0x03; // the last block: no bytes
    end[1] = 0;
    for (int i = 0; i < 4; i++)
        end[2 + i] = (unsigned char)(adler >> (24 - 8 * i));
    *packed = packer->packed;
    *packed_size = packer->used + 6;
    return QG_OK;
}
