// Codes under scales that are given: the specification, row by row. See qg_emulator.h.
// What a scale does to an element is said by qg_block_scale.h and qg_block_structure.h; no scale is
// computed here. Rows are shared among threads; bytes do not depend on them.
#include <little_endian_internal.h>
#include <parallel_internal.h>
#include <qg_block_structure.h>
#include <qg_emulator.h>
#include <qg_init.h>

typedef struct encoder {
    qg_scaler scaler;
    qg_shape shape;
    const qg_quantize_options *options;
    const float *x;
    const uint8_t *scales;
    uint8_t *codes;
} encoder;

// Elements of one row that share a scale field.
typedef struct strip {
    qg_block_elements elements;
    const uint8_t *field;
} strip;

static strip strip_at(const encoder *e, int64_t row, int64_t block_column) {
    const qg_blocks *blocks = &e->shape.blocks;
    qg_block_range r = qg_block_at(blocks, row / blocks->rows, block_column);
    int64_t first = row * blocks->k + r.column_begin;
    return (strip){
        .elements = {.x = e->x + first,
                     .rows = 1,
                     .columns = r.column_end - r.column_begin,
                     .stride = blocks->k,
                     .index = (uint64_t)first,
                     .seed = e->options->seed,
                     .stream = e->options->stream},
        .field = e->scales + qg_scale_index(blocks, row, r.column_begin) * e->shape.scale_bytes
    };
}

static uint32_t read_bits(const uint8_t *in, int bytes) {
    return (uint32_t)little_endian_read(in, bytes);
}

// i: of the strip.
static void store_code(const encoder *e, const strip *s, int plane, int64_t i, uint64_t code) {
    int64_t at = (int64_t)s->elements.index + i;
    int64_t elements = e->shape.blocks.m * e->shape.blocks.k;
    int bytes = e->shape.code_bytes;
    little_endian_store(e->codes + (plane * elements + at) * bytes, bytes, code);
}

static void encode_element(const encoder *e, const strip *s, const qg_block_scale *scale,
                           int64_t i) {
    uint32_t word = qg_element_word(&e->scaler, &s->elements, 0, i);
    double v = qg_scaled_value(scale, s->elements.x[i]);
    store_code(e, s, 0, i, qg_element_code(&e->scaler, scale, v, word));
}

static void encode_plain(const encoder *e, const strip *s) {
    uint32_t bits = read_bits(s->field, e->shape.scale_bytes);
    qg_block_scale scale = qg_scale_of_bits(&e->scaler, bits);
    for (int64_t i = 0; i < s->elements.columns; i++)
        encode_element(e, s, &scale, i);
}

static void encode_pairs(const encoder *e, const strip *s) {
    qg_pair_block pairs = qg_pair_block_of_field(read_bits(s->field, 2));
    for (int64_t i = 0; i < s->elements.columns; i++) {
        qg_block_scale scale = qg_pair_block_scale(&pairs, i);
        encode_element(e, s, &scale, i);
    }
}

static void encode_residual(const encoder *e, const strip *s) {
    qg_residual_block planes;
    qg_residual_block_of_bits(&e->scaler, &s->elements, read_bits(s->field, 4),
                              read_bits(s->field + 4, 4), &planes);
    for (int plane = 0; plane < 2; plane++)
        for (int64_t i = 0; i < s->elements.columns; i++)
            store_code(e, s, plane, i, planes.codes[plane][i]);
}

static void encode_strip(const encoder *e, const strip *s) {
    switch (e->scaler.recipe.structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT: encode_pairs(e, s); break;
    case QG_STRUCTURE_RESIDUAL: encode_residual(e, s); break;
    default: encode_plain(e, s);
    }
}

static void encode_rows(const encoder *e) {
    int64_t m = e->shape.blocks.m, block_columns = e->shape.blocks.block_columns;
#pragma omp parallel num_threads(thread_count(e->options->threads, m * e->shape.blocks.k))
    {
        qg_fp_state saved = qg_fp_enter();
#pragma omp for schedule(static)
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < block_columns; column++) {
                strip s = strip_at(e, row, column);
                encode_strip(e, &s);
            }
        qg_fp_leave(saved);
    }
}

qg_status qg_emulator_encode(const qg_recipe *recipe, const qg_quantize_options *options, int64_t m,
                             int64_t k, const float *x, const uint8_t *scales, float tensor_scale,
                             uint8_t *codes) {
    encoder e = {.options = options, .x = x, .scales = scales, .codes = codes};
    qg_status status = qg_shape_of(recipe, m, k, &e.shape);
    if (status != QG_OK)
        return status;
    if (options->input_type != QG_FORMAT_FP32 && options->input_type != QG_FORMAT_BF16 &&
        options->input_type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the input type must be fp32, bf16 or fp16");
    qg_fp_state saved = qg_fp_enter();
    e.scaler = qg_scaler_of_tensor(recipe, options->input_type, tensor_scale);
    encode_rows(&e);
    qg_fp_leave(saved);
    return QG_OK;
}
