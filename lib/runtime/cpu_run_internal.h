// How an (m, k) tensor is cut into tasks for threads, the same for quantize and dequantize.
// A task is some columns of one row of blocks, whole blocks where blocks are not larger than that.
// Where rows follow one another without padding and groups end with rows, the tensor is one row.
#ifndef CPU_RUN_INTERNAL_H
#define CPU_RUN_INTERNAL_H

#include <parallel_internal.h>
#include <qg_backend.h>
#include <stddef.h>

enum {
    CPU_CHUNK = 1024, // elements of 4 bytes of which two chunks, one being fetched, fit in L1
    CPU_NARROW_CHUNK = 2048, // of 2 bytes
    CPU_RESIDENT = 4,        // chunks of a task where nothing is fetched ahead
    CPU_BAND = 512,          // least columns of a task of several rows
    CPU_UNIFORM_CHUNK = 2048 // elements under one scale
};

typedef struct cpu_tiling {
    int64_t m, k;          // of the tensor, perhaps as one row
    int64_t rows, columns; // of a block
    int64_t block_columns; // of the tensor's, perhaps of its one row
    int64_t span;          // columns of a task
    int64_t span_blocks;   // blocks of a task (the last of a row may have fewer)
    int64_t spans, tasks;  // tasks per row of blocks, and in all
    int64_t row_bytes;     // of stored codes
    int bits;              // of a packed code, else 0
    bool streams;          // the tensor exceeds the caches
    int threads;
} cpu_tiling;

// chunk: elements of a task of one row. element_bytes: of the unquantized side.
cpu_tiling cpu_tiling_of(const qg_storage_shape *shape, const qg_storage *storage, int bits,
                         int64_t chunk, int64_t element_bytes, int threads);

// The same tensor under one scale: blocks play no part.
cpu_tiling cpu_tiling_uniform(const cpu_tiling *tiling);

typedef struct cpu_task {
    int64_t row_begin, row_end, column, width; // of elements
    int64_t block_row, block_column, blocks;   // the first block and their number
} cpu_task;

cpu_task cpu_task_at(const cpu_tiling *tiling, int64_t i);

// The first task of a member of a team; its last is the one before the next member's first.
static inline int64_t cpu_first_task(const cpu_tiling *t, int member, int team) {
    return t->tasks / team * member + t->tasks % team * member / team;
}

// Where the scales of a run of blocks lie: block (row, column + i) is at base + (i / 4) * tile +
// (i % 4) * step for every order.
typedef struct cpu_scale_run {
    int64_t base, tile, step;
} cpu_scale_run;

cpu_scale_run cpu_scale_run_of(qg_scale_order order, const qg_blocks *blocks, int64_t row);

static inline int64_t cpu_scale_place(const cpu_scale_run *run, int64_t column) {
    return run->base + column / 4 * run->tile + column % 4 * run->step;
}

// Where element `column` of a row lies among its stored codes; a multiple of 4 where they are
// packed.
static inline int64_t cpu_code_place(const cpu_tiling *t, int64_t row, int64_t column) {
    return row * t->row_bytes + (t->bits ? column * t->bits / 8 : column);
}

// Scratch of a thread, cut from one allocation; sizes are rounded up to 64 bytes.
static inline int64_t cpu_room(int64_t bytes) { return (bytes + 127) / 64 * 64; }

static inline void *cpu_take(char **room, int64_t bytes) {
    char *taken = *room;
    *room += cpu_room(bytes);
    return taken;
}

#endif
