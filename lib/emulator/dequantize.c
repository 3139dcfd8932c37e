// Dequantize: the specification. value = binary32 RNE of the exact code times X; the sum of both
// planes for residual recipes. Blocks are shared among threads, a single block row by row.
#include <little_endian_internal.h>
#include <parallel_internal.h>
#include <qg_block_structure.h>
#include <qg_emulator.h>
#include <qg_init.h>

#include <stdbool.h>

enum { PLAIN_TABLE = 256 };

typedef struct dequantizer {
    const qg_recipe *recipe;
    qg_element element;
    qg_shape shape;
    const uint8_t *codes, *scales;
    float tensor_scale;
    int threads;
    float *q;
    double values[PLAIN_TABLE]; // of all codes of at most 8 bits
} dequantizer;

// The value of code i of a plane.
static double read_value(const dequantizer *d, int plane, int64_t i) {
    int64_t elements = d->shape.blocks.m * d->shape.blocks.k;
    int bytes = d->shape.code_bytes;
    const uint8_t *in = d->codes + (plane * elements + i) * bytes;
    if (bytes == 1)
        return d->values[in[0]];
    return qg_decode(&d->element.info, little_endian_read(in, bytes));
}

static uint32_t read_scale(const dequantizer *d, int64_t block, int place, int bytes) {
    const uint8_t *in = d->scales + block * d->shape.scale_bytes + place;
    return (uint32_t)little_endian_read(in, bytes);
}

static void dequantize_range(const dequantizer *d, qg_block_range r, float x) {
    for (int64_t row = r.row_begin; row < r.row_end; row++)
        for (int64_t column = r.column_begin; column < r.column_end; column++) {
            int64_t i = row * d->shape.blocks.k + column;
            d->q[i] = qg_dequantized(read_value(d, 0, i), x);
        }
}

static void dequantize_pairs(const dequantizer *d, int64_t block, qg_block_range r) {
    uint32_t exponent = read_scale(d, block, 0, 1), shifts = read_scale(d, block, 1, 1);
    int64_t first = r.row_begin * d->shape.blocks.k;
    for (int64_t column = r.column_begin; column < r.column_end; column++) {
        uint32_t shift = shifts >> ((column - r.column_begin) / 2) & 1;
        d->q[first + column] =
            qg_dequantized(read_value(d, 0, first + column), qg_pair_scale(exponent, shift).x);
    }
}

static void dequantize_residual(const dequantizer *d, int64_t block, qg_block_range r) {
    float x0 = qg_float_of_bits(read_scale(d, block, 0, 4));
    float x1 = qg_float_of_bits(read_scale(d, block, 4, 4));
    int64_t first = r.row_begin * d->shape.blocks.k;
    for (int64_t column = r.column_begin; column < r.column_end; column++) {
        int64_t i = first + column;
        d->q[i] = qg_residual_value(read_value(d, 0, i), x0, read_value(d, 1, i), x1);
    }
}

static void dequantize_block(const dequantizer *d, int64_t block) {
    int64_t block_columns = d->shape.blocks.block_columns;
    qg_block_range r = qg_block_at(&d->shape.blocks, block / block_columns, block % block_columns);
    switch (d->recipe->structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT: dequantize_pairs(d, block, r); break;
    case QG_STRUCTURE_RESIDUAL: dequantize_residual(d, block, r); break;
    default: {
        uint32_t bits = read_scale(d, block, 0, d->shape.scale_bytes);
        dequantize_range(d, r, qg_scale_value(d->recipe, &d->element, d->tensor_scale, bits));
    }
    }
}

static void dequantize_single_block(const dequantizer *d) {
    qg_block_range all = qg_block_at(&d->shape.blocks, 0, 0);
    uint32_t bits = read_scale(d, 0, 0, d->shape.scale_bytes);
    float x = qg_scale_value(d->recipe, &d->element, d->tensor_scale, bits);
#pragma omp parallel num_threads(d->threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t row = all.row_begin; row < all.row_end; row++) {
            qg_block_range strip = {row, row + 1, all.column_begin, all.column_end};
            dequantize_range(d, strip, x);
        }
        qg_fp_leave(saved);
    }
}

static void dequantize_blocks(const dequantizer *d) {
    int64_t blocks = d->shape.blocks.block_rows * d->shape.blocks.block_columns;
#pragma omp parallel num_threads(d->threads)
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++)
            dequantize_block(d, block);
        qg_fp_leave(saved);
    }
}

qg_status qg_emulator_dequantize(const qg_recipe *recipe, int64_t m, int64_t k,
                                 const uint8_t *codes, const uint8_t *scales, float tensor_scale,
                                 int threads, float *q) {
    dequantizer d = {
        .recipe = recipe, .codes = codes, .scales = scales, .tensor_scale = tensor_scale, .q = q};
    qg_status status = qg_shape_of(recipe, m, k, &d.shape);
    if (status != QG_OK)
        return status;
    qg_fp_state saved = qg_fp_enter();
    d.element = qg_element_of(recipe->element);
    d.threads = thread_count(threads, m * k);
    if (d.shape.code_bytes == 1)
        for (int code = 0; code < PLAIN_TABLE; code++)
            d.values[code] = qg_decode(&d.element.info, (uint64_t)code);
    bool is_plain = recipe->structure == QG_STRUCTURE_PLAIN;
    if (is_plain && d.shape.blocks.block_rows * d.shape.blocks.block_columns == 1)
        dequantize_single_block(&d);
    else
        dequantize_blocks(&d);
    qg_fp_leave(saved);
    return QG_OK;
}
