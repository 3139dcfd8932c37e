// Quantize: the specification. Per block: amax, scale, codes; what each step computes is said by
// qg_block_scale.h and qg_block_structure.h, in what order blocks are visited is said here.
// Blocks are shared among threads; a single block is shared row by row. Every reduction between
// threads (amax, counts) is exact, so bytes and counts do not depend on the number of threads.
#include <little_endian_internal.h>
#include <parallel_internal.h>
#include <qg_block_structure.h>
#include <qg_emulator.h>
#include <qg_init.h>

#include <stdbool.h>
#include <string.h>

enum { PLAIN_TABLE = 256 };

typedef struct quantizer {
    qg_scaler scaler;
    qg_shape shape;
    const qg_quantize_options *options;
    const float *x;
    uint8_t *codes, *scales;
    int threads;
    bool is_stochastic, counts_elements;
    double largest, clips_from, smallest_normal; // F, F + half the last step
    double values[PLAIN_TABLE];                  // of all codes of at most 8 bits
} quantizer;

// ------------------------------------------------------------------------------------ elements

static uint32_t random_word(const quantizer *q, int64_t i) {
    if (!q->is_stochastic)
        return 0;
    return qg_philox_word(q->options->seed, q->options->stream, (uint64_t)i);
}

static void store_code(const quantizer *q, int plane, int64_t i, uint64_t code) {
    int64_t elements = q->shape.blocks.m * q->shape.blocks.k;
    int bytes = q->shape.code_bytes;
    little_endian_store(q->codes + (plane * elements + i) * bytes, bytes, code);
}

static double code_value(const quantizer *q, uint64_t code) {
    if (q->shape.code_bytes == 1)
        return q->values[code];
    return qg_decode(&q->scaler.element.info, code);
}

// `value` is the decoded code, `q` what dequantization gives.
static void count_element(const quantizer *z, float x, double v, double value, float q,
                          qg_counts *counts) {
    double magnitude = v < 0 ? -v : v;
    counts->nan += qg_float_is_nan(x);
    counts->inf += qg_float_is_inf(x);
    counts->saturated += magnitude > z->largest;
    counts->clipped += magnitude >= z->clips_from;
    counts->underflowed += x != 0.0f && q == 0.0f && !qg_float_is_nan(x);
    counts->subnormal += value != 0.0 && value < z->smallest_normal && -value < z->smallest_normal;
    counts->exact += q == x;
}

static void quantize_element(const quantizer *q, const qg_block_scale *scale, int64_t i,
                             qg_counts *counts) {
    double v = qg_scaled_value(scale, q->x[i]);
    uint64_t code = qg_element_code(&q->scaler, scale, v, random_word(q, i));
    store_code(q, 0, i, code);
    if (q->counts_elements) {
        double value = code_value(q, code);
        count_element(q, q->x[i], v, value, qg_dequantized(value, scale->x), counts);
    }
}

// --------------------------------------------------------------------------------------- blocks

static float range_amax(const quantizer *q, qg_block_range r) {
    int policy = q->scaler.recipe.amax;
    float amax = 0.0f;
    for (int64_t row = r.row_begin; row < r.row_end; row++)
        for (int64_t column = r.column_begin; column < r.column_end; column++)
            amax = qg_amax_step(policy, amax, q->x[row * q->shape.blocks.k + column]);
    return amax;
}

static void quantize_range(const quantizer *q, const qg_block_scale *scale, qg_block_range r,
                           qg_counts *counts) {
    for (int64_t row = r.row_begin; row < r.row_end; row++)
        for (int64_t column = r.column_begin; column < r.column_end; column++)
            quantize_element(q, scale, row * q->shape.blocks.k + column, counts);
}

static qg_block_elements block_elements(const quantizer *q, qg_block_range r) {
    int64_t k = q->shape.blocks.k, first = r.row_begin * k + r.column_begin;
    return (qg_block_elements){.x = q->x + first,
                               .rows = r.row_end - r.row_begin,
                               .columns = r.column_end - r.column_begin,
                               .stride = k,
                               .index = (uint64_t)first,
                               .seed = q->options->seed,
                               .stream = q->options->stream};
}

static void store_scale(const quantizer *q, int64_t block, int place, int bytes, uint32_t bits) {
    little_endian_store(q->scales + block * q->shape.scale_bytes + place, bytes, bits);
}

static void count_block(float amax, bool scale_is_nan, qg_counts *counts) {
    counts->blocks++;
    counts->zero_blocks += amax == 0.0f;
    counts->nan_scales += scale_is_nan;
}

static qg_block_scale quantize_scale(const quantizer *q, int64_t block, qg_block_range r,
                                     float amax, qg_counts *counts) {
    qg_block_elements elements = block_elements(q, r);
    qg_block_scale scale = qg_block_scale_of(&q->scaler, amax, &elements);
    store_scale(q, block, 0, q->shape.scale_bytes, scale.bits);
    count_block(amax, scale.apply == QG_APPLY_NAN, counts);
    return scale;
}

// MX9 and its like. Groups have one row.
static void quantize_pairs(const quantizer *q, int64_t block, qg_block_range r, qg_counts *counts) {
    int64_t first = r.row_begin * q->shape.blocks.k + r.column_begin;
    int64_t count = r.column_end - r.column_begin;
    qg_pair_block pairs = qg_pair_block_of(&q->scaler, q->x + first, count);
    for (int64_t i = 0; i < count; i++) {
        qg_block_scale scale = qg_pair_block_scale(&pairs, i);
        quantize_element(q, &scale, first + i, counts);
    }
    store_scale(q, block, 0, 2, qg_pair_block_field(&pairs));
    count_block(pairs.amax, pairs.exponent == 255, counts);
}

// Two planes.
static void quantize_residual(const quantizer *q, int64_t block, qg_block_range r,
                              qg_counts *counts) {
    qg_block_elements elements = block_elements(q, r);
    qg_residual_block planes;
    qg_residual_block_of(&q->scaler, &elements, &planes);
    float x0 = planes.scale[0].x, x1 = planes.scale[1].x;
    for (int64_t i = 0; i < elements.columns; i++) {
        int64_t at = (int64_t)elements.index + i;
        store_code(q, 0, at, planes.codes[0][i]);
        store_code(q, 1, at, planes.codes[1][i]);
        if (q->counts_elements) {
            double value = code_value(q, planes.codes[0][i]);
            float sum =
                qg_dequantized(value, x0) + qg_dequantized(code_value(q, planes.codes[1][i]), x1);
            count_element(q, q->x[at], qg_scaled_value(&planes.scale[0], q->x[at]), value, sum,
                          counts);
        }
    }
    store_scale(q, block, 0, 4, planes.scale[0].bits);
    store_scale(q, block, 4, 4, planes.scale[1].bits);
    count_block(planes.amax, planes.scale[0].apply == QG_APPLY_NAN, counts);
}

static void quantize_block(const quantizer *q, int64_t block, qg_counts *counts) {
    int64_t block_columns = q->shape.blocks.block_columns;
    qg_block_range r = qg_block_at(&q->shape.blocks, block / block_columns, block % block_columns);
    switch (q->scaler.recipe.structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT: quantize_pairs(q, block, r, counts); break;
    case QG_STRUCTURE_RESIDUAL: quantize_residual(q, block, r, counts); break;
    default: {
        qg_block_scale scale = quantize_scale(q, block, r, range_amax(q, r), counts);
        quantize_range(q, &scale, r, counts);
    }
    }
}

// --------------------------------------------------------------------------------------- threads

static void add_counts(qg_counts *sum, const qg_counts *part) {
    sum->nan += part->nan;
    sum->inf += part->inf;
    sum->saturated += part->saturated;
    sum->clipped += part->clipped;
    sum->underflowed += part->underflowed;
    sum->subnormal += part->subnormal;
    sum->exact += part->exact;
    sum->blocks += part->blocks;
    sum->zero_blocks += part->zero_blocks;
    sum->nan_scales += part->nan_scales;
}

// The amax of the whole tensor, rows shared among threads.
static float tensor_amax(const quantizer *q, int policy) {
    int64_t m = q->shape.blocks.m, k = q->shape.blocks.k;
    float amax = 0.0f;
#pragma omp parallel num_threads(q->threads)
    {
        qg_fp_state saved = qg_fp_enter();
        float part = 0.0f;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < m; row++)
            for (int64_t column = 0; column < k; column++)
                part = qg_amax_step(policy, part, q->x[row * k + column]);
#pragma omp critical(qg_quantize)
        amax = qg_amax_step(policy, amax, part);
        qg_fp_leave(saved);
    }
    return amax;
}

// One block: its scale first, then its rows shared among threads.
static void quantize_single_block(const quantizer *q, qg_counts *counts) {
    qg_block_range all = qg_block_at(&q->shape.blocks, 0, 0);
    float amax = tensor_amax(q, q->scaler.recipe.amax);
    qg_block_scale scale = quantize_scale(q, 0, all, amax, counts);
#pragma omp parallel num_threads(q->threads)
    {
        qg_fp_state saved = qg_fp_enter();
        qg_counts part = {0};
#pragma omp for schedule(static)
        for (int64_t row = all.row_begin; row < all.row_end; row++) {
            qg_block_range strip = {row, row + 1, all.column_begin, all.column_end};
            quantize_range(q, &scale, strip, &part);
        }
#pragma omp critical(qg_quantize)
        add_counts(counts, &part);
        qg_fp_leave(saved);
    }
}

static void quantize_blocks(const quantizer *q, qg_counts *counts) {
    int64_t blocks = q->shape.blocks.block_rows * q->shape.blocks.block_columns;
#pragma omp parallel num_threads(q->threads)
    {
        qg_fp_state saved = qg_fp_enter();
        qg_counts part = {0};
#pragma omp for schedule(static)
        for (int64_t block = 0; block < blocks; block++)
            quantize_block(q, block, &part);
#pragma omp critical(qg_quantize)
        add_counts(counts, &part);
        qg_fp_leave(saved);
    }
}

// ---------------------------------------------------------------------------------------- border

static qg_status check_options(const qg_recipe *recipe, const qg_quantize_options *options,
                               const qg_shape *shape, const float *tensor_scale) {
    if (options->input_type != QG_FORMAT_FP32 && options->input_type != QG_FORMAT_BF16 &&
        options->input_type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the input type must be fp32, bf16 or fp16");
    if (shape->has_tensor_scale && !tensor_scale)
        return qg_fail(QG_ERROR_ARGUMENT, "a two-level recipe needs room for its tensor scale");
    if (recipe->rule == QG_RULE_DELAYED && (!options->amax_history || options->history_length < 1))
        return qg_fail(QG_ERROR_ARGUMENT, "scale rule delayed needs a history of amaxes");
    return QG_OK;
}

static float history_amax(const qg_quantize_options *options) {
    float amax = 0.0f;
    for (int64_t i = 0; i < options->history_length; i++)
        amax = qg_amax_step(QG_AMAX_PROPAGATES_NAN, amax, options->amax_history[i]);
    return amax;
}

// What counts need of the element format: pairs hold integers, which have no subnormals.
static void set_thresholds(quantizer *q) {
    const qg_format_info *info = &q->scaler.element.info;
    bool is_float = info->kind == QG_KIND_FLOAT &&
                    q->scaler.recipe.structure != QG_STRUCTURE_PAIR_SHIFT &&
                    q->scaler.recipe.structure != QG_STRUCTURE_NO_SHIFT;
    int last_step = info->kind == QG_KIND_INT ? -info->bias : q->scaler.element.emax - info->mbits;
    q->largest = qg_format_max(info);
    q->clips_from = q->largest + qg_double_pow2(last_step - 1);
    q->smallest_normal = is_float ? qg_format_min_normal(info) : 0.0;
    if (q->shape.code_bytes == 1)
        for (int code = 0; code < PLAIN_TABLE; code++)
            q->values[code] = qg_decode(info, (uint64_t)code);
}

qg_status qg_emulator_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                               int64_t m, int64_t k, const float *x, uint8_t *codes,
                               uint8_t *scales, float *tensor_scale, qg_counts *counts) {
    quantizer q = {.options = options, .x = x, .codes = codes, .scales = scales};
    qg_status status = qg_shape_of(recipe, m, k, &q.shape);
    if (status == QG_OK)
        status = check_options(recipe, options, &q.shape, tensor_scale);
    if (status != QG_OK)
        return status;

    qg_fp_state saved = qg_fp_enter();
    q.is_stochastic = qg_rounding_is_stochastic(recipe->conversion.rounding);
    q.counts_elements = counts != NULL;
    q.threads = thread_count(options->threads, m * k);
    float amax = recipe->rule == QG_RULE_DELAYED ? history_amax(options)
                 : q.shape.has_tensor_scale      ? tensor_amax(&q, recipe->amax)
                                                 : 0.0f;
    q.scaler = qg_scaler_of(recipe, options->input_type, amax);
    set_thresholds(&q);

    qg_counts sum = {.n = m * k};
    bool is_plain = recipe->structure == QG_STRUCTURE_PLAIN;
    if (is_plain && q.shape.blocks.block_rows * q.shape.blocks.block_columns == 1)
        quantize_single_block(&q, &sum);
    else
        quantize_blocks(&q, &sum);

    if (tensor_scale)
        *tensor_scale = q.scaler.tensor;
    if (counts)
        *counts = sum;
    qg_fp_leave(saved);
    return QG_OK;
}
