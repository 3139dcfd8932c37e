// Tasks of a tensor. See cpu_run_internal.h.
#include <cpu_run_internal.h>
#include <qg_pack.h>
#include <storage_internal.h>

#include <unistd.h>

// Bytes of the last-level cache that a core reaches. A system may report those of all its sockets
// or virtual cores together, so more than the usual size of one is not believed.
static int64_t cache_bytes(void) {
    enum { USUAL = 32 << 20 };
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 && bytes < USUAL ? bytes : USUAL;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void cut(cpu_tiling *t, int64_t span) {
    t->span = least(span, t->k);
    t->spans = qg_ceil_divide(t->k, t->span);
    t->span_blocks = qg_ceil_divide(t->span, t->columns);
    t->tasks = qg_ceil_divide(t->m, t->rows) * t->spans;
}

// As many whole blocks as fill about `columns`; packed codes of a task end with a byte.
static int64_t span_of(const cpu_tiling *t, int64_t columns) {
    int64_t unit = t->bits && t->columns % 4 ? 4 : 1;
    int64_t blocks = columns / t->columns / unit * unit;
    return t->columns >= t->k ? t->k : t->columns * (blocks > 0 ? blocks : unit);
}

cpu_tiling cpu_tiling_of(const qg_storage_shape *shape, const qg_storage *storage, int bits,
                         int64_t chunk, int64_t element_bytes, int threads) {
    const qg_blocks *b = &shape->shape.blocks;
    bool packs = storage_packs(storage, bits);
    cpu_tiling t = {.m = b->m, .k = b->k, .rows = b->rows, .columns = least(b->columns, b->k)};
    t.block_columns = b->block_columns;
    t.row_bytes = shape->row_bytes;
    t.bits = packs ? bits : 0;
    t.streams = b->m * b->k > cache_bytes() / (element_bytes + 1);
    t.threads = thread_count(threads, b->m * b->k);
    bool rows_follow = !packs || b->k % (bits == 4 ? 2 : 4) == 0;
    if (rows_follow && b->rows == 1 && b->k % t.columns == 0 &&
        storage->order.kind == QG_ORDER_ROW_MAJOR) {
        t.k *= t.m;
        t.row_bytes *= t.m;
        t.block_columns *= t.m;
        t.m = 1;
    }
    int64_t columns = t.streams ? chunk : CPU_RESIDENT * chunk;
    cut(&t, span_of(&t, t.rows == 1 ? columns : CPU_BAND));
    return t;
}

cpu_tiling cpu_tiling_uniform(const cpu_tiling *tiling) {
    cpu_tiling t = *tiling;
    bool rows_follow = !t.bits || t.k % (t.bits == 4 ? 2 : 4) == 0;
    if (rows_follow) {
        t.k *= t.m;
        t.row_bytes *= t.m;
        t.m = 1;
    }
    t.rows = 1;
    t.columns = t.k;
    t.block_columns = 1;
    cut(&t, (t.streams ? 1 : CPU_RESIDENT) * CPU_UNIFORM_CHUNK);
    return t;
}

// Divisions are kept out of the usual case of one row.
cpu_task cpu_task_at(const cpu_tiling *t, int64_t i) {
    int64_t block_row = t->m == 1 ? 0 : i / t->spans, span = i - block_row * t->spans;
    cpu_task task = {.block_row = block_row, .column = span * t->span};
    task.row_begin = block_row * t->rows;
    task.row_end = least(task.row_begin + t->rows, t->m);
    task.block_column = span * t->span_blocks;
    task.width = t->span;
    task.blocks = t->span_blocks;
    if (task.column + task.width > t->k) {
        task.width = t->k - task.column;
        task.blocks = qg_ceil_divide(task.width, t->columns);
    }
    return task;
}

cpu_scale_run cpu_scale_run_of(qg_scale_order order, const qg_blocks *b, int64_t row) {
    int64_t at[5];
    for (int64_t j = 0; j < 5; j++)
        at[j] = qg_scale_order_offset(order, b->block_rows, b->block_columns, row, j);
    return (cpu_scale_run){at[0], at[4] - at[0], at[1] - at[0]};
}
