// The scalar panel: every output of a product as the row's chain over K. The specification that
// faster variants are compared with. See qg_unit_panel_scalar in qg_unit.h.
// Codes are decoded to numbers in slices of K that stay in cache; between slices the chain's C lies
// in memory, which loses nothing. Results do not depend on threads.
#include <parallel_internal.h>
#include <qg_init.h>
#include <qg_layout.h>
#include <unit_internal.h>
#include <unit_software_internal.h>

// A tile of the output and a slice of K. SLICE is a multiple of every instruction's K.
enum { TILE_ROWS = 8, TILE_COLUMNS = 32, SLICE = 512, SLICE_SCALES = SLICE / 16 };

typedef struct tile {
    int64_t row, rows, column, columns;
} tile;

// A slice of one operand row, as numbers.
typedef struct number_row {
    unit_number numbers[SLICE];
    unit_number scales[SLICE_SCALES];
} number_row;

static uint64_t read_code(const uint8_t *codes, int64_t i, int bytes) {
    if (bytes == 1)
        return codes[i];
    uint64_t code = 0;
    for (int b = 0; b < bytes; b++)
        code |= (uint64_t)codes[i * bytes + b] << (8 * b);
    return code;
}

// Elements from .. from + length, of which those past k are zeros.
static void load_row(const unit_model *x, const unit_decoder *d, const qg_unit_matrix *matrix,
                     int64_t row, int64_t k, int64_t from, int64_t length, number_row *out) {
    const uint8_t *codes = matrix->codes + row * matrix->stride;
    int bytes = qg_format_code_bytes(&d->info);
    for (int64_t i = 0; i < length; i++)
        out->numbers[i] = unit_decode(d, from + i < k ? read_code(codes, from + i, bytes) : 0);
    if (x->row->scale == QG_UNIT_NO_SCALE)
        return;
    const uint8_t *scales = matrix->scales + row * matrix->scale_stride;
    for (int64_t g = 0; g * x->row->scale_block < length; g++)
        out->scales[g] = unit_decode(&x->scale, scales[from / x->row->scale_block + g]);
}

// The chain over a slice.
static float chain_slice(const unit_model *x, unit_step step, int64_t length, const number_row *a,
                         const number_row *b, float c) {
    int k = x->row->k;
    int scales = x->row->scale == QG_UNIT_NO_SCALE ? 0 : k / x->row->scale_block;
    uint64_t d = qg_bits_of_float(c);
    for (int64_t at = 0; at < length; at += k) {
        int64_t scale = at / k * scales;
        d = step(x, k, a->numbers + at, b->numbers + at, a->scales + scale, b->scales + scale, d);
    }
    return qg_float_of_bits((uint32_t)d);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// sums = the chains over elements start .. end of K, rows `stride` apart.
static void chain_tile(const qg_unit_product *p, const unit_model *x, tile t, int64_t start,
                       int64_t end, float *sums, int64_t stride) {
    number_row a[TILE_ROWS], b;
    unit_step step = qg_unit_step_of(x->row->model);
    for (int64_t from = start; from < end; from += SLICE) {
        int64_t length = least(qg_round_up(end - from, x->row->k), SLICE);
        for (int64_t i = 0; i < t.rows; i++)
            load_row(x, &x->a, &p->a, t.row + i, end, from, length, &a[i]);
        for (int64_t j = 0; j < t.columns; j++) {
            load_row(x, &x->b, &p->b, t.column + j, end, from, length, &b);
            for (int64_t i = 0; i < t.rows; i++) {
                float *sum = &sums[i * stride + j];
                *sum = chain_slice(x, step, length, &a[i], &b, from == start ? 0.0f : *sum);
            }
        }
    }
}

static float canonical(float x) { return x == x ? x : qg_float_of_bits(0x7fffffffu); }

// acc and one interval's chain; qg_unit_fma's NaN is canonical.
static float promoted(const qg_unit_product *p, int64_t row, int64_t column, int64_t interval,
                      float chain, float acc) {
    if (!p->row_factors)
        return canonical(acc + chain);
    int64_t intervals = qg_ceil_divide(p->k, p->promote);
    float factor = p->row_factors[row * intervals + interval] *
                   p->column_factors[column * intervals + interval];
    return qg_unit_fma(factor, chain, acc);
}

static void promote_tile(const qg_unit_product *p, const unit_model *x, tile t) {
    float sums[TILE_ROWS * TILE_COLUMNS];
    for (int64_t interval = 0; interval * p->promote < p->k; interval++) {
        int64_t start = interval * p->promote;
        chain_tile(p, x, t, start, least(p->k, start + p->promote), sums, TILE_COLUMNS);
        for (int64_t i = 0; i < t.rows; i++)
            for (int64_t j = 0; j < t.columns; j++) {
                float *acc = &p->acc[(t.row + i) * p->n + t.column + j];
                *acc = promoted(p, t.row + i, t.column + j, interval, sums[i * TILE_COLUMNS + j],
                                interval == 0 ? 0.0f : *acc);
            }
    }
}

static void compute_tile(const qg_unit_product *p, const unit_model *x, tile t) {
    if (p->promote > 0)
        promote_tile(p, x, t);
    else
        chain_tile(p, x, t, 0, p->k, &p->acc[t.row * p->n + t.column], p->n);
}

qg_status qg_unit_panel_scalar(const qg_unit_product *p) {
    if (p->row->model == QG_MODEL_FMA || p->row->accumulator != QG_FORMAT_FP32)
        return qg_fail(QG_ERROR_UNSUPPORTED, "panels accumulate in fp32");
    if (p->promote % p->row->k != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED, "an interval of promotion is of whole instructions");
    unit_model x;
    qg_unit_model_prepare(p->row, p->a.format, p->b.format, &x);
    int64_t across = qg_ceil_divide(p->n, TILE_COLUMNS);
    int64_t tiles = qg_ceil_divide(p->m, TILE_ROWS) * across;
    int threads = p->threads > 0 ? p->threads : thread_count(0, INT64_MAX / 2);
    (void)threads; // without OpenMP
#pragma omp parallel num_threads(threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < tiles; i++) {
            tile t = {.row = i / across * TILE_ROWS, .column = i % across * TILE_COLUMNS};
            t.rows = least(TILE_ROWS, p->m - t.row);
            t.columns = least(TILE_COLUMNS, p->n - t.column);
            compute_tile(p, &x, t);
        }
        qg_fp_leave(saved);
    }
    return QG_OK;
}
