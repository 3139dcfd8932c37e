// Products of quantized operands: panels of BF16 or binary32 in cache, multiplied by a library, and
// the epilogue. See qg_cpu.h; what is exact and what is bounded: cpu_matmul_bound.c.
//
// Columns of the output are cut into chunks whose panel of b is made once, and rows into tiles, one
// at a time for each thread; k is cut into parts that a panel of a holds. What is added to what
// does not depend on threads, and so the bytes do not either, given the library's own determinism.
// Memory: 64 MiB or 512 elements of each column of b, whichever is more, and about 2 MiB for each
// thread (FP32 panels: 5 MiB).
#include <cpu_matmul_internal.h>
#include <qg_cpu.h>
#include <qg_init.h>
#include <qg_size.h>

#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { CHUNK_COLUMNS = 2048, CHUNK_BYTES = 64 << 20, LEAST_PART = 64 };

// Elements of k that share one product of panels. BF16 panels are padded with zeros.
typedef struct part {
    int64_t begin, length, padded;
    int64_t offset; // of the parts before, padded
} part;

// Memory that grows and is used again by the next group.
typedef struct buffer {
    void *room;
    int64_t bytes;
} buffer;

// What one thread writes.
typedef struct lane {
    void *a;        // (tile rows, part) panel
    float *sums;    // tiles of a row of tiles, each dense
    float *partial; // one tile, where parts are scaled
    float *factors; // (tile rows)
    uint16_t *rows; // 16 rows of b on their way into a strip
    matmul_bf16_thread *bf16;
    bool failed;
} lane;

typedef struct workspace {
    buffer parts, b, factors, lanes, space;
    matmul_bf16 *bf16;
    const matmul_kernels *kernels;
} workspace;

typedef struct product {
    const qg_matmul_options *options;
    const matmul_view *a, *b;
    int64_t row, m, n, k; // rows row .. row + m - 1 of a
    void *out;            // (m, n)

    bool is_narrow;   // BF16 panels
    bool is_in_parts; // scales enter with each part
    bool is_scaled;   // scales enter in the epilogue
    int64_t tile_rows, tile_columns, part_length;
    int64_t chunk; // columns
    int threads;

    part *parts;
    int64_t part_count, padded_k;
    void *b_panel;
    float *b_factors; // (parts or 1, chunk)
    lane *lanes;
    const matmul_kernels *kernels;
} product;

// --------------------------------------------------------------------------------------------- pla

static int threads_of(int wanted, int64_t m, int64_t n, int64_t k) {
#ifdef _OPENMP
    enum { WORK_PER_THREAD = 1 << 16 };
    int64_t outputs, work;
    if (!qg_size_multiply(m, n, &outputs) || !qg_size_multiply(outputs, k, &work))
        work = INT64_MAX;
    int available = wanted > 0 ? wanted : omp_get_max_threads();
    int64_t useful = work / WORK_PER_THREAD + 1;
    return useful < available ? (int)useful : available;
#else
    (void)wanted, (void)m, (void)n, (void)k;
    return 1;
#endif
}

static bool is_normal(matmul_range a, matmul_range b) {
    return a.low + b.low >= -126 && a.high + b.high < 128;
}

static int bits_of(int64_t k) {
    int bits = 0;
    while (bits < 62 && (int64_t)1 << bits < k)
        bits++;
    return bits;
}

// Short parts cost more in calls than BF16 saves.
static bool has_short_parts(const matmul_view *v, int64_t k) {
    int64_t columns = v->shape.blocks.columns;
    return v->place == MATMUL_IN_PARTS && columns < LEAST_PART && columns < k;
}

// Exact elements, no subnormal and no overflow among products, sums and products of scales.
static bool is_narrow(const matmul_view *a, const matmul_view *b, int64_t k) {
    if (!a->is_narrow || !b->is_narrow || has_short_parts(a, k) || has_short_parts(b, k))
        return false;
    matmul_range sums = {b->elements.low, b->elements.high + bits_of(k)};
    return is_normal(a->elements, sums) && is_normal(a->factors, b->factors);
}

static bool is_one(const matmul_view *v) {
    return v->place == MATMUL_IN_ELEMENTS && v->tensor_factor == 1.0f;
}

static void plan_tiles(product *p, bool with_bf16) {
    p->is_narrow = with_bf16 && is_narrow(p->a, p->b, p->k);
    p->is_in_parts =
        p->is_narrow && (p->a->place == MATMUL_IN_PARTS || p->b->place == MATMUL_IN_PARTS);
    p->is_scaled = p->is_narrow && !p->is_in_parts && !(is_one(p->a) && is_one(p->b));
    p->tile_rows = p->is_narrow ? BF16_ROWS : FP32_ROWS;
    p->tile_columns = p->is_narrow ? BF16_COLUMNS : FP32_COLUMNS;
    p->part_length = p->is_narrow ? BF16_LENGTH : FP32_LENGTH;
    if (p->m < p->tile_rows)
        p->tile_rows = qg_round_up(p->m, 16);
}

static int64_t next_boundary(const matmul_view *v, int64_t at, int64_t end) {
    int64_t columns = v->shape.blocks.columns;
    if (v->place != MATMUL_IN_PARTS)
        return end;
    int64_t boundary = (at / columns + 1) * columns;
    return boundary < end ? boundary : end;
}

static int64_t part_end(const product *p, int64_t at) {
    int64_t end = p->k - at < p->part_length ? p->k : at + p->part_length;
    if (!p->is_in_parts)
        return end;
    return next_boundary(p->b, at, next_boundary(p->a, at, end));
}

// Not zeroed, unlike qg_allocate: panels are written before they are read, and zeroing them would
// cost a few percent of a product.
static qg_status reserve(buffer *b, int64_t count, int64_t size, const char *what) {
    enum { ALIGNMENT = 64 };
    int64_t bytes;
    if (!qg_size_multiply(count, size, &bytes) || bytes > INT64_MAX - ALIGNMENT)
        return qg_fail(QG_ERROR_OVERFLOW, "%s of a product exceed 2^63 - 1 bytes", what);
    if (b->room && bytes <= b->bytes)
        return QG_OK;
    free(b->room);
    b->room = aligned_alloc(ALIGNMENT, (size_t)qg_round_up(bytes + 1, ALIGNMENT));
    b->bytes = b->room ? bytes : 0;
    if (!b->room)
        return qg_fail(QG_ERROR_MEMORY, "%s of a product: no memory for %lld bytes", what,
                       (long long)bytes);
    return QG_OK;
}

static qg_status plan_parts(product *p, workspace *w) {
    p->part_count = 0;
    for (int64_t at = 0; at < p->k; at = part_end(p, at))
        p->part_count++;
    qg_status status = reserve(&w->parts, p->part_count, (int64_t)sizeof(part), "parts of k");
    if (status != QG_OK)
        return status;
    p->parts = w->parts.room;
    p->padded_k = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < p->part_count; i++) {
        int64_t length = part_end(p, at) - at;
        int64_t padded = p->is_narrow ? qg_round_up(length, MATMUL_GRAIN) : length;
        p->parts[i] = (part){at, length, padded, p->padded_k};
        p->padded_k += padded;
        at += length;
    }
    return QG_OK;
}

static int64_t element_size(const product *p) {
    return p->is_narrow ? (int64_t)sizeof(uint16_t) : (int64_t)sizeof(float);
}

static void plan_chunk(product *p) {
    int64_t columns = CHUNK_BYTES / element_size(p) / p->padded_k;
    columns = columns / p->tile_columns * p->tile_columns;
    columns = columns < p->tile_columns ? p->tile_columns : columns;
    columns = columns > CHUNK_COLUMNS ? CHUNK_COLUMNS : columns;
    int64_t all = qg_round_up(p->n, MATMUL_STRIP);
    p->chunk = columns < all ? columns : all;
}

static int64_t tiles_in_chunk(const product *p) {
    return qg_ceil_divide(p->chunk, p->tile_columns);
}

// ------------------------------------------------------------------------------------------ buffer

static void *carve(uint8_t **at, int64_t bytes) {
    void *room = *at;
    *at += qg_round_up(bytes, 64);
    return room;
}

static int64_t lane_bytes(const product *p) {
    int64_t tile = p->tile_rows * p->tile_columns * (int64_t)sizeof(float);
    return p->tile_rows * p->part_length * element_size(p) + (tiles_in_chunk(p) + 1) * tile +
           p->tile_rows * (int64_t)sizeof(float) + 16 * p->part_length * (int64_t)sizeof(uint16_t) +
           8 * 64;
}

static void carve_lane(const product *p, uint8_t *at, lane *l) {
    int64_t tile = p->tile_rows * p->tile_columns * (int64_t)sizeof(float);
    l->a = carve(&at, p->tile_rows * p->part_length * element_size(p));
    l->sums = carve(&at, tiles_in_chunk(p) * tile);
    l->partial = carve(&at, tile);
    l->factors = carve(&at, p->tile_rows * (int64_t)sizeof(float));
    l->rows = carve(&at, 16 * p->part_length * (int64_t)sizeof(uint16_t));
    l->failed = false;
}

static qg_status open_buffers(product *p, workspace *w) {
    int64_t elements;
    if (!qg_size_multiply(p->chunk, p->padded_k, &elements))
        return qg_fail(QG_ERROR_OVERFLOW, "a panel of a product exceeds 2^63 - 1 bytes");
    int64_t factor_rows = p->is_in_parts ? p->part_count : 1;
    int64_t bytes = qg_round_up(lane_bytes(p), 4096);
    qg_status status = reserve(&w->b, elements, element_size(p), "the panel of b");
    if (status == QG_OK)
        status = reserve(&w->factors, factor_rows * p->chunk, (int64_t)sizeof(float), "scales");
    if (status == QG_OK)
        status = reserve(&w->space, p->threads, bytes, "panels of a");
    if (status == QG_OK)
        status = reserve(&w->lanes, p->threads, (int64_t)sizeof(lane), "threads");
    if (status != QG_OK)
        return status;
    p->b_panel = w->b.room;
    p->b_factors = w->factors.room;
    p->lanes = w->lanes.room;
    for (int i = 0; i < p->threads; i++) {
        carve_lane(p, (uint8_t *)w->space.room + i * bytes, &p->lanes[i]);
        p->lanes[i].bf16 = NULL;
    }
    return QG_OK;
}

static void close_workspace(workspace *w) {
    free(w->parts.room);
    free(w->b.room);
    free(w->factors.room);
    free(w->lanes.room);
    free(w->space.room);
    qg_matmul_bf16_close(w->bf16);
}

// Every shape that tiles of this product have.
static qg_status prepare_shapes(const product *p, workspace *w) {
    int64_t heights[2] = {p->tile_rows, qg_round_up(p->m % p->tile_rows, 16)};
    int64_t widths[3] = {p->tile_columns, qg_round_up(p->chunk % p->tile_columns, MATMUL_STRIP),
                         qg_round_up(p->n % p->chunk % p->tile_columns, MATMUL_STRIP)};
    for (int64_t i = 0; i < p->part_count; i++)
        for (int h = 0; h < 2; h++)
            for (int c = 0; c < 3; c++) {
                if (heights[h] == 0 || widths[c] == 0 || widths[c] > p->chunk)
                    continue;
                matmul_bf16_shape shape = {heights[h], widths[c], p->parts[i].padded,
                                           i > 0 && !p->is_in_parts};
                qg_status status = qg_matmul_bf16_prepare(w->bf16, shape);
                if (status != QG_OK)
                    return status;
            }
    return QG_OK;
}

static qg_status open_threads(product *p, workspace *w) {
    qg_status status = prepare_shapes(p, w);
    for (int i = 0; i < p->threads && status == QG_OK; i++)
        status = qg_matmul_bf16_enter(w->bf16, &p->lanes[i].bf16);
    return status;
}

static void close_threads(product *p) {
    for (int i = 0; i < p->threads; i++)
        qg_matmul_bf16_leave(p->lanes[i].bf16);
}

// ------------------------------------------------------------------------------------------- panel

// `rows` of an operand and zeros up to `padded` rows, each padded with zeros.
static void narrow_rows(const product *p, const matmul_view *v, int64_t row, int64_t rows,
                        int64_t padded, const part *q, uint16_t *out) {
    qg_matmul_narrow_rows(v, p->kernels, row, rows, q->begin, q->length, out, q->padded);
    for (int64_t i = 0; i < padded; i++)
        for (int64_t l = i < rows ? q->length : 0; l < q->padded; l++)
            out[i * q->padded + l] = 0;
}

// The columns of a chunk.
typedef struct chunk {
    int64_t begin, columns, padded;
} chunk;

static void fill_strip(const product *p, lane *l, const chunk *c, const part *q, int64_t first) {
    uint16_t *strip = (uint16_t *)p->b_panel + q->offset * c->padded + first * q->padded;
    for (int64_t column = 0; column < MATMUL_STRIP; column += 16) {
        int64_t rows = c->columns - first - column;
        rows = rows < 0 ? 0 : rows > 16 ? 16 : rows;
        narrow_rows(p, p->b, c->begin + first + column, rows, 16, q, l->rows);
        p->kernels->interleave(l->rows, q->padded, column, strip);
    }
}

static void fill_wide_strip(const product *p, const chunk *c, const part *q, int64_t first) {
    float *rows = (float *)p->b_panel + q->offset * c->padded;
    for (int64_t at = first; at < first + MATMUL_STRIP && at < c->columns; at++)
        qg_matmul_wide_row(p->b, c->begin + at, q->begin, q->length, rows + at * q->length);
}

static void fill_factors(const product *p, const chunk *c, int64_t index, int64_t first) {
    float *factors = p->b_factors + index * p->chunk;
    for (int64_t at = first; at < first + MATMUL_STRIP && at < c->columns; at++)
        factors[at] = qg_matmul_factor(p->b, c->begin + at, p->parts[index].begin);
}

static void fill_b(const product *p, lane *l, const chunk *c, int64_t index, int64_t first) {
    const part *q = &p->parts[index];
    if (p->is_narrow)
        fill_strip(p, l, c, q, first);
    else
        fill_wide_strip(p, c, q, first);
    if (p->is_in_parts || (p->is_scaled && index == 0))
        fill_factors(p, c, index, first);
}

// Rows of a tile: `rows` of them, from row `row` of the product.
typedef struct tile_rows {
    int64_t row, rows, padded;
} tile_rows;

static void fill_a(const product *p, lane *l, const tile_rows *t, int64_t index) {
    const part *q = &p->parts[index];
    int64_t first = p->row + t->row;
    if (p->is_narrow)
        narrow_rows(p, p->a, first, t->rows, t->padded, q, l->a);
    else
        for (int64_t i = 0; i < t->rows; i++)
            qg_matmul_wide_row(p->a, first + i, q->begin, q->length, (float *)l->a + i * q->length);
    if (p->is_in_parts || (p->is_scaled && index == 0))
        for (int64_t i = 0; i < t->rows; i++)
            l->factors[i] = qg_matmul_factor(p->a, first + i, q->begin);
}

// ------------------------------------------------------------------------------------------- tiles

// One tile: its first column in the chunk, and where its sums are.
typedef struct tile {
    int64_t column, columns, padded;
    float *sums;
} tile;

static void multiply_tile(const product *p, lane *l, const chunk *c, const tile_rows *r,
                          const tile *t, int64_t index) {
    const part *q = &p->parts[index];
    float *sums = p->is_in_parts ? l->partial : t->sums;
    bool adds = !p->is_in_parts && index > 0;
    int64_t offset = q->offset * c->padded + t->column * q->padded;
    if (!p->is_narrow) {
        qg_matmul_fp32_run(r->rows, t->padded, q->length, adds, l->a,
                           (const float *)p->b_panel + offset, sums);
        return;
    }
    matmul_bf16_shape shape = {r->padded, t->padded, q->padded, adds};
    const uint16_t *b = (const uint16_t *)p->b_panel + offset;
    if (qg_matmul_bf16_run(l->bf16, shape, l->a, b, sums) != QG_OK)
        l->failed = true;
}

static void add_part(const product *p, lane *l, const tile_rows *r, const tile *t, int64_t index) {
    const float *factors = p->b_factors + index * p->chunk + t->column;
    for (int64_t i = 0; i < r->rows; i++)
        p->kernels->add_scaled(l->partial + i * t->padded, l->factors[i], factors, t->columns,
                               index == 0, t->sums + i * t->padded);
}

static void finish_tile(const product *p, lane *l, const chunk *c, const tile_rows *r,
                        const tile *t) {
    int64_t size = p->options->out_type == QG_FORMAT_FP32 ? 4 : 2;
    int64_t column = c->begin + t->column;
    matmul_finish f = {.type = p->options->out_type,
                       .factors = p->is_scaled ? p->b_factors + t->column : NULL,
                       .bias = p->options->bias ? p->options->bias + column : NULL};
    for (int64_t i = 0; i < r->rows; i++) {
        f.factor = p->is_scaled ? l->factors[i] : 1.0f;
        uint8_t *out = (uint8_t *)p->out + ((r->row + i) * p->n + column) * size;
        p->kernels->finish(&f, t->sums + i * t->padded, t->columns, out);
    }
}

static tile tile_at(const product *p, const lane *l, const chunk *c, int64_t index, int64_t first) {
    int64_t column = index * p->tile_columns, rest = c->columns - column;
    int64_t columns = rest < p->tile_columns ? rest : p->tile_columns;
    return (tile){column, columns, p->is_narrow ? qg_round_up(columns, MATMUL_STRIP) : columns,
                  l->sums + (index - first) * p->tile_rows * p->tile_columns};
}

// Tiles first .. end - 1 of a row of tiles: every part of k for all of them, so that a panel of a
// is made once and stays in cache.
static void multiply_row_of_tiles(const product *p, lane *l, const chunk *c, const tile_rows *r,
                                  int64_t first, int64_t end) {
    for (int64_t index = 0; index < p->part_count; index++) {
        fill_a(p, l, r, index);
        for (int64_t i = first; i < end; i++) {
            tile t = tile_at(p, l, c, i, first);
            multiply_tile(p, l, c, r, &t, index);
            if (p->is_in_parts)
                add_part(p, l, r, &t, index);
            if (index == p->part_count - 1)
                finish_tile(p, l, c, r, &t);
        }
    }
}

static lane *own_lane(const product *p) {
#ifdef _OPENMP
    return &p->lanes[omp_get_thread_num()];
#else
    return &p->lanes[0];
#endif
}

// How many tasks share a row of tiles, so that all threads have work.
static int64_t shares_of(const product *p, int64_t heights, int64_t widths) {
    int64_t shares = qg_ceil_divide(2 * (int64_t)p->threads, heights);
    return p->threads == 1 || heights >= 4 * (int64_t)p->threads ? 1
           : shares < widths                                     ? shares
                                                                 : widths;
}

static void multiply_chunk(const product *p, int64_t begin) {
    chunk c = {begin, p->n - begin < p->chunk ? p->n - begin : p->chunk, 0};
    c.padded = p->is_narrow ? qg_round_up(c.columns, MATMUL_STRIP) : c.columns;
    int64_t strips = qg_ceil_divide(c.columns, MATMUL_STRIP);
    int64_t heights = qg_ceil_divide(p->m, p->tile_rows);
    int64_t widths = qg_ceil_divide(c.columns, p->tile_columns);
    int64_t shares = shares_of(p, heights, widths);
#pragma omp parallel num_threads(p->threads)
    {
        qg_fp_state saved = qg_fp_enter();
        lane *l = own_lane(p);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < strips * p->part_count; i++)
            fill_b(p, l, &c, i % p->part_count, i / p->part_count * MATMUL_STRIP);
#pragma omp for schedule(dynamic, 1)
        for (int64_t i = 0; i < heights * shares; i++) {
            tile_rows r = {i / shares * p->tile_rows, 0, 0};
            r.rows = p->m - r.row < p->tile_rows ? p->m - r.row : p->tile_rows;
            r.padded = p->is_narrow ? qg_round_up(r.rows, 16) : r.rows;
            int64_t share = i % shares;
            multiply_row_of_tiles(p, l, &c, &r, widths * share / shares,
                                  widths * (share + 1) / shares);
        }
        qg_fp_leave(saved);
    }
}

// ----------------------------------------------------------------------------------- one product

static qg_status multiply_chunks(const product *p) {
    int blas = p->is_narrow ? 1 : qg_matmul_fp32_enter();
    for (int64_t begin = 0; begin < p->n; begin += p->chunk)
        multiply_chunk(p, begin);
    if (!p->is_narrow)
        qg_matmul_fp32_leave(blas);
    for (int i = 0; i < p->threads; i++)
        if (p->lanes[i].failed)
            return qg_fail(QG_ERROR_UNSUPPORTED, "oneDNN refused to multiply a tile of %lld x %lld",
                           (long long)p->tile_rows, (long long)p->tile_columns);
    return QG_OK;
}

static qg_status multiply_planned(product *p, workspace *w) {
    qg_status status = plan_parts(p, w);
    if (status != QG_OK)
        return status;
    plan_chunk(p);
    status = open_buffers(p, w);
    if (status != QG_OK || !p->is_narrow)
        return status == QG_OK ? multiply_chunks(p) : status;
    status = open_threads(p, w);
    if (status == QG_OK)
        status = multiply_chunks(p);
    close_threads(p);
    return status;
}

// BF16 where it is exact and the library takes it, else binary32.
static qg_status multiply(product *p, workspace *w) {
    p->kernels = w->kernels;
    p->threads = threads_of(p->options->threads, p->m, p->n, p->k);
    plan_tiles(p, w->bf16 != NULL);
    if (p->is_narrow) {
        qg_status status = multiply_planned(p, w);
        if (status != QG_ERROR_UNSUPPORTED)
            return status;
    }
    plan_tiles(p, false);
    return multiply_planned(p, w);
}

// ------------------------------------------------------------------------------------- the borders

// oneDNN takes as many threads as OpenMP would: one, since the threads are ours.
static int enter_library(workspace *w) {
    *w = (workspace){0};
    w->kernels = qg_matmul_kernels_choose(qg_matmul_test_paths & MATMUL_SCALAR_KERNELS);
    int saved = 0;
#ifdef _OPENMP
    saved = omp_get_max_threads();
#endif
    if (!(qg_matmul_test_paths & MATMUL_WITHOUT_BF16) && qg_matmul_bf16_answers() &&
        qg_matmul_bf16_open(&w->bf16) != QG_OK)
        w->bf16 = NULL;
    return saved;
}

static void limit_threads(int threads) {
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

static const char *name_of(bool narrow, bool wide) {
    if (!narrow)
        return qg_matmul_fp32_name();
    return wide ? "onednn bf16 and fp32" : "onednn bf16";
}

static qg_status check_options(const qg_matmul_options *options, int64_t m, int64_t n,
                               const void *out) {
    if (!options || !out)
        return qg_fail(QG_ERROR_ARGUMENT, "a product needs options and room for its result");
    qg_format type = options->out_type;
    if (type != QG_FORMAT_FP32 && type != QG_FORMAT_BF16 && type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the output of a product is fp32, bf16 or fp16");
    int64_t count, bytes;
    if (!qg_size_multiply(m, n, &count) || !qg_size_multiply(count, 4, &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "a product of %lld x %lld exceeds 2^63 - 1 bytes",
                       (long long)m, (long long)n);
    return QG_OK;
}

static qg_status scaled_matmul(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                               int64_t n, int64_t k, const qg_matmul_operand *a,
                               const qg_matmul_operand *b, void *out, const char **impl) {
    matmul_view view_a, view_b;
    if (unit && unit->id != QG_UNIT_NATIVE)
        return qg_fail(QG_ERROR_UNSUPPORTED, "backend cpu has no unit but native");
    qg_status status = qg_matmul_view_of(a, m, k, &view_a);
    if (status == QG_OK)
        status = qg_matmul_view_of(b, n, k, &view_b);
    if (status == QG_OK)
        status = check_options(options, m, n, out);
    if (status != QG_OK)
        return status;
    workspace w;
    product p = {.options = options, .a = &view_a, .b = &view_b, .m = m, .n = n, .k = k};
    p.out = out;
    int saved = enter_library(&w);
    p.threads = threads_of(options->threads, m, n, k);
    if (w.bf16) {
        qg_matmul_view_scan(&view_a);
        qg_matmul_view_scan(&view_b);
    }
    limit_threads(1);
    status = multiply(&p, &w);
    limit_threads(saved);
    close_workspace(&w);
    if (status == QG_OK && impl)
        *impl = name_of(p.is_narrow, !p.is_narrow);
    return status;
}

qg_status qg_cpu_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                               int64_t n, int64_t k, const qg_matmul_operand *a,
                               const qg_matmul_operand *b, void *out, const char **impl) {
    qg_fp_state saved = qg_fp_enter();
    qg_status status = scaled_matmul(unit, options, m, n, k, a, b, out, impl);
    qg_fp_leave(saved);
    return status;
}

// ------------------------------------------------------------------------------------------ groups

static qg_status check_groups(int64_t m, int64_t groups, const int64_t *offsets,
                              const int64_t *expert, int64_t experts, const qg_matmul_operand *b) {
    if (!offsets || !expert || !b || groups < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "a grouped product needs groups, offsets and experts");
    if (offsets[0] != 0 || offsets[groups] != m)
        return qg_fail(QG_ERROR_ARGUMENT, "offsets of groups go from 0 to m = %lld", (long long)m);
    for (int64_t g = 0; g < groups; g++) {
        if (offsets[g] > offsets[g + 1])
            return qg_fail(QG_ERROR_ARGUMENT, "offsets of groups must ascend: %lld follows %lld",
                           (long long)offsets[g + 1], (long long)offsets[g]);
        if (expert[g] < 0 || expert[g] >= experts)
            return qg_fail(QG_ERROR_ARGUMENT, "expert %lld of group %lld is none of %lld",
                           (long long)expert[g], (long long)g, (long long)experts);
    }
    return QG_OK;
}

// Every expert that is used, before anything is written.
static qg_status check_experts(int64_t n, int64_t k, int64_t groups, const int64_t *offsets,
                               const int64_t *expert, const qg_matmul_operand *b,
                               matmul_view *scratch) {
    for (int64_t g = 0; g < groups; g++) {
        qg_status status =
            offsets[g] == offsets[g + 1] ? QG_OK : qg_matmul_view_of(&b[expert[g]], n, k, scratch);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status grouped_matmul(const qg_matmul_options *options, int64_t m, int64_t n, int64_t k,
                                const qg_matmul_operand *a, int64_t groups, const int64_t *offsets,
                                const int64_t *expert, int64_t experts, const qg_matmul_operand *b,
                                void *out, const char **impl) {
    matmul_view view_a, view_b;
    qg_status status = qg_matmul_view_of(a, m, k, &view_a);
    if (status == QG_OK)
        status = check_options(options, m, n, out);
    if (status == QG_OK)
        status = check_groups(m, groups, offsets, expert, experts, b);
    if (status == QG_OK)
        status = check_experts(n, k, groups, offsets, expert, b, &view_b);
    if (status != QG_OK)
        return status;
    workspace w;
    int saved = enter_library(&w);
    int64_t size = options->out_type == QG_FORMAT_FP32 ? 4 : 2, last = -1;
    bool narrow = false, wide = false;
    if (w.bf16)
        qg_matmul_view_scan(&view_a);
    for (int64_t g = 0; g < groups && status == QG_OK; g++) {
        if (offsets[g] == offsets[g + 1])
            continue;
        if (expert[g] != last) {
            last = expert[g];
            status = qg_matmul_view_of(&b[last], n, k, &view_b);
            if (status == QG_OK && w.bf16)
                qg_matmul_view_scan(&view_b);
        }
        product p = {.options = options, .a = &view_a, .b = &view_b, .row = offsets[g], .n = n};
        p.m = offsets[g + 1] - offsets[g];
        p.k = k;
        p.out = (uint8_t *)out + offsets[g] * n * size;
        if (status == QG_OK) {
            limit_threads(1);
            status = multiply(&p, &w);
            limit_threads(saved);
        }
        narrow |= p.is_narrow;
        wide |= !p.is_narrow;
    }
    close_workspace(&w);
    if (status == QG_OK && impl)
        *impl = name_of(narrow, wide);
    return status;
}

qg_status qg_cpu_grouped_matmul(const qg_matmul_options *options, int64_t m, int64_t n, int64_t k,
                                const qg_matmul_operand *a, int64_t groups, const int64_t *offsets,
                                const int64_t *expert, int64_t experts, const qg_matmul_operand *b,
                                void *out, const char **impl) {
    qg_fp_state saved = qg_fp_enter();
    qg_status status =
        grouped_matmul(options, m, n, k, a, groups, offsets, expert, experts, b, out, impl);
    qg_fp_leave(saved);
    return status;
}
