// The chains of the software units over matrices: tiles of outputs, each summed with vectors.
//
// Owns tiles, threads and the choice of code. unit_software.c is the specification; the sums here
// are its operations in its order, and so its bits.
#include <parallel_internal.h>
#include <qg_bits.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <qg_size.h>
#include <software_tile_internal.h>
#include <unit_software_internal.h>

#include <string.h>

static software_kernel choose_kernel(void) {
    switch (qg_isa_find(qg_unit_isa())) {
#ifdef QG_HAVE_AVX512
    case QG_ISA_AVX512: return qg_software_kernel_avx512;
#endif
#ifdef QG_HAVE_AVX2
    case QG_ISA_AVX2: return qg_software_kernel_avx2;
#endif
    default: return NULL;
    }
}

bool qg_software_has_vectors(void) { return choose_kernel() != NULL; }

static int kind_of(const qg_unit *unit) {
    bool to_zero = unit->rounding == QG_ROUND_RTZ, down = unit->rounding == QG_ROUND_RTN;
    if (unit->id == QG_UNIT_FP32_FMA)
        return SOFTWARE_FMA;
    if (unit->id == QG_UNIT_BF16_SEQUENTIAL)
        return to_zero ? SOFTWARE_BFLOAT16_TO_ZERO
                       : (down ? SOFTWARE_BFLOAT16_DOWN : SOFTWARE_BFLOAT16);
    return to_zero ? SOFTWARE_TO_ZERO : (down ? SOFTWARE_DOWN : SOFTWARE_SEQUENTIAL);
}

typedef struct tiling {
    const software_product *p;
    int64_t tile_rows, row_tiles, column_tiles;
    software_kernel kernel;
    float *acc;
} tiling;

static void start_tile(const qg_unit *unit, software_tile *t) {
    t->kind = kind_of(unit);
    t->block = unit->id == QG_UNIT_FP32_BLOCKED ? unit->block : 0;
    t->left = t->block > 0 ? t->block : INT64_MAX;
    memset(t->part, 0, sizeof t->part);
    memset(t->total, 0, sizeof t->total);
}

// A partial sum that the end of K cut short is added as well.
static float sum_of(const software_tile *t, int64_t i, int64_t j) {
    float sum = t->part[i][j];
    if (t->block > 0)
        sum = t->left < t->block ? t->total[i][j] + t->part[i][j] : t->total[i][j];
    return sum == sum ? sum : qg_float_of_bits(0x7fffffffu);
}

static void run_tile(const tiling *x, int64_t index, software_tile *t) {
    const software_product *p = x->p;
    int64_t row = index / x->column_tiles * x->tile_rows;
    int64_t column = index % x->column_tiles * SOFTWARE_COLUMNS;
    t->rows = p->m - row < x->tile_rows ? p->m - row : x->tile_rows;
    t->columns = p->n - column < SOFTWARE_COLUMNS ? p->n - column : SOFTWARE_COLUMNS;
    t->a_stride = t->b_stride = p->stride;
    start_tile(p->unit, t);
    for (int64_t from = 0; from < p->k; from += SOFTWARE_K) {
        t->k = p->k - from < SOFTWARE_K ? p->k - from : SOFTWARE_K;
        t->a_rows = p->a + row * p->stride + from;
        t->b_rows = p->b + column * p->stride + from;
        x->kernel(t);
    }
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j++)
            x->acc[(row + i) * p->n + column + j] = sum_of(t, i, j);
}

// Tiles of few rows where there are few tiles, so that all threads get some.
static tiling choose_tiles(const software_product *p, int threads) {
    tiling x = {.p = p, .tile_rows = SOFTWARE_ROWS, .kernel = choose_kernel()};
    x.column_tiles = (p->n + SOFTWARE_COLUMNS - 1) / SOFTWARE_COLUMNS;
    for (;; x.tile_rows /= 2) {
        x.row_tiles = (p->m + x.tile_rows - 1) / x.tile_rows;
        bool plenty = x.row_tiles * x.column_tiles >= 4 * (int64_t)threads;
        if (threads == 1 || plenty || x.tile_rows == 8)
            return x;
    }
}

static int chain_threads(const software_product *p) {
    int64_t outputs, products;
    if (!qg_size_multiply(p->m, p->n, &outputs) || !qg_size_multiply(outputs, p->k, &products))
        products = INT64_MAX;
    return thread_count(p->threads, products / 16);
}

qg_status qg_software_chains(const software_product *p, float *acc) {
    int threads = chain_threads(p);
    tiling x = choose_tiles(p, threads);
    x.acc = acc;
    void *room;
    qg_status status =
        qg_allocate(&room, threads, (int64_t)sizeof(software_tile), "the tiles of a product");
    if (status != QG_OK)
        return status;
    software_tile *tiles = room;
    int64_t count = x.row_tiles * x.column_tiles;
#pragma omp parallel num_threads(threads)
    {
        qg_fp_state saved = qg_fp_enter();
        software_tile *tile = tiles + thread_index();
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < count; i++)
            run_tile(&x, i, tile);
        qg_fp_leave(saved);
    }
    qg_release(room);
    return QG_OK;
}
