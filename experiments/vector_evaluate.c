// What the emulator gives for a test vector. See qgvec.h.
// A line names its own random words and its tensor's amax, which the emulator's tensor interface
// does not take: those lines are computed from the same functions (qg_block_scale.h), block by
// block; all others go through qg_emulator_quantize.
#include <qgvec.h>

#include <qg_block_scale.h>
#include <qg_emulator.h>
#include <qg_memory.h>
#include <vector_dot.h>

#include <string.h>

// Fields by meaning; -1 where the header has none.
typedef struct places {
    int x, r, amax, scale, codes;
} places;

static int find_field(const qg_vector_header *h, const char *name) {
    for (int i = 0; i < h->field_count; i++)
        if (!strcmp(h->fields[i].name, name))
            return i;
    return -1;
}

static places find_places(const qg_vector_header *h) {
    bool residual = h->recipe.structure == QG_STRUCTURE_RESIDUAL;
    return (places){find_field(h, "x"), find_field(h, "r"), find_field(h, "amax_tensor"),
                    find_field(h, residual ? "s0" : "scale"),
                    find_field(h, residual ? "codes0" : "codes")};
}

// ---------------------------------------------------------------------------- encode and decode

static void evaluate_encode(const qg_vector_header *h, qg_vector_case *got) {
    qg_format_info info = qg_format_describe(h->format);
    bool stochastic = qg_rounding_is_stochastic(h->conversion.rounding);
    float x = qg_float_of_bits((uint32_t)got->values[0][0]);
    uint32_t word = stochastic ? (uint32_t)got->values[1][0] : 0;
    got->values[h->field_count - 1][0] = qg_encode(&info, x, &h->conversion, word);
}

// NaN is 7fffffff; fp64 alone is rounded (to nearest even).
static void evaluate_decode(const qg_vector_header *h, qg_vector_case *got) {
    qg_format_info info = qg_format_describe(h->format);
    double value = qg_decode(&info, got->values[0][0]);
    uint32_t bits = 0x7fffffffu;
    if (value >= 0x1.ffffffp127) // the cast would be undefined
        bits = 0x7f800000u;
    else if (value <= -0x1.ffffffp127)
        bits = 0xff800000u;
    else if (value == value)
        bits = qg_bits_of_float((float)value);
    got->values[1][0] = bits;
}

// ------------------------------------------------------------- blocks with words or tensor amax

typedef struct block {
    qg_scaler scaler;
    const float *x;
    const uint64_t *words; // or NULL
    int64_t count;
} block;

static float amax_of(const block *b, const float *x, int64_t count) {
    float amax = 0.0f;
    for (int64_t i = 0; i < count; i++)
        amax = qg_amax_step(b->scaler.recipe.amax, amax, x[i]);
    return amax;
}

static uint64_t code_of(const block *b, const qg_block_scale *scale, float x, int64_t i) {
    uint32_t word = b->words ? (uint32_t)b->words[i] : 0;
    return qg_element_code(&b->scaler, scale, qg_scaled_value(scale, x), word);
}

static void quantize_plain(const block *b, int64_t k, uint64_t *scale, uint64_t *codes) {
    qg_block_elements elements = {
        .x = b->x, .rows = b->count / k, .columns = k, .stride = k, .index = 0};
    qg_block_scale s = qg_block_scale_of(&b->scaler, amax_of(b, b->x, b->count), &elements);
    scale[0] = s.bits;
    for (int64_t i = 0; i < b->count; i++)
        codes[i] = code_of(b, &s, b->x[i], i);
}

static void quantize_pairs(const block *b, uint64_t *scale, uint64_t *codes) {
    uint32_t exponent = qg_pair_exponent_byte(&b->scaler, amax_of(b, b->x, b->count)), shifts = 0;
    for (int64_t i = 0; i < b->count; i += 2) {
        int64_t length = b->count - i < 2 ? 1 : 2;
        uint32_t shift = 0;
        if (b->scaler.recipe.structure == QG_STRUCTURE_PAIR_SHIFT)
            shift = qg_pair_shift(exponent, amax_of(b, b->x + i, length));
        qg_block_scale s = qg_pair_scale(exponent, shift);
        shifts |= shift << (i / 2);
        for (int64_t j = i; j < i + length; j++)
            codes[j] = code_of(b, &s, b->x[j], j);
    }
    scale[0] = exponent;
    scale[1] = shifts;
}

static void quantize_residual(const block *b, uint64_t **scales, uint64_t **codes) {
    enum { LONGEST = 32 };
    float rest[LONGEST];
    qg_block_scale s0 = qg_block_scale_of(&b->scaler, amax_of(b, b->x, b->count), NULL);
    for (int64_t i = 0; i < b->count; i++) {
        codes[0][i] = code_of(b, &s0, b->x[i], i);
        rest[i] = b->x[i] - qg_dequantized(qg_decode(&b->scaler.element.info, codes[0][i]), s0.x);
    }
    qg_block_scale s1 = qg_block_scale_of(&b->scaler, amax_of(b, rest, b->count), NULL);
    for (int64_t i = 0; i < b->count; i++)
        codes[1][i] = code_of(b, &s1, rest[i], i);
    scales[0][0] = s0.bits;
    scales[1][0] = s1.bits;
}

static void evaluate_block(const qg_vector_header *h, const places *p, const float *x,
                           qg_vector_case *got) {
    float amax = p->amax >= 0 ? qg_float_of_bits((uint32_t)got->values[p->amax][0]) : 0.0f;
    block b = {qg_scaler_of(&h->recipe, QG_FORMAT_FP32, amax), x,
               p->r >= 0 ? got->values[p->r] : NULL, h->rows * h->k};
    switch (h->recipe.structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT:
        quantize_pairs(&b, got->values[p->scale], got->values[p->codes]);
        break;
    case QG_STRUCTURE_RESIDUAL:
        quantize_residual(&b, &got->values[p->scale], &got->values[p->codes]);
        break;
    default: quantize_plain(&b, h->k, got->values[p->scale], got->values[p->codes]);
    }
}

// --------------------------------------------------------------------------------- the emulator

// Little-endian elements of `bytes` bytes as numbers.
static const uint8_t *take_elements(const uint8_t *from, int bytes, int64_t count, uint64_t *out) {
    for (int64_t i = 0; i < count; i++, from += bytes) {
        out[i] = 0;
        for (int b = 0; b < bytes; b++)
            out[i] |= (uint64_t)from[b] << (8 * b);
    }
    return from;
}

static qg_status evaluate_tensor(const qg_vector_header *h, const places *p, const float *x,
                                 qg_vector_case *got) {
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .stream = QG_STREAM_ROUNDING, .threads = 1};
    qg_shape shape;
    void *codes = NULL;
    uint8_t scales[8];
    qg_status status = qg_shape_of(&h->recipe, h->rows, h->k, &shape);
    if (status == QG_OK)
        status = qg_allocate(&codes, shape.codes_size, 1, "the codes of a block");
    if (status == QG_OK)
        status =
            qg_emulator_quantize(&h->recipe, &options, h->rows, h->k, x, codes, scales, NULL, NULL);
    const uint8_t *next_code = codes, *next_scale = scales;
    for (int i = p->scale; status == QG_OK && i < h->field_count; i++) {
        const qg_vector_field *f = &h->fields[i];
        bool is_scale = i < p->codes;
        const uint8_t **next = is_scale ? &next_scale : &next_code;
        *next = take_elements(*next, f->digits / 2, f->count, got->values[i]);
    }
    qg_release(codes);
    return status;
}

static qg_status evaluate_quantize(const qg_vector_header *h, qg_vector_case *got) {
    places p = find_places(h);
    int64_t elements = h->rows * h->k;
    void *room;
    qg_status status = qg_allocate(&room, elements, sizeof(float), "the values of a block");
    if (status != QG_OK)
        return status;
    float *x = room;
    for (int64_t i = 0; i < elements; i++)
        x[i] = qg_float_of_bits((uint32_t)got->values[p.x][i]);
    if (p.r >= 0 || p.amax >= 0)
        evaluate_block(h, &p, x, got);
    else
        status = evaluate_tensor(h, &p, x, got);
    qg_release(room);
    return status;
}

qg_status qg_vector_evaluate(const qg_vector_header *h, const qg_vector_case *wanted,
                             qg_vector_case *got) {
    for (int32_t i = 0; i < h->field_count; i++)
        if (!h->fields[i].is_output)
            memcpy(got->values[i], wanted->values[i],
                   (size_t)h->fields[i].count * sizeof(uint64_t));
    switch (h->kind) {
    case QG_VECTOR_ENCODE: evaluate_encode(h, got); return QG_OK;
    case QG_VECTOR_DECODE: evaluate_decode(h, got); return QG_OK;
    case QG_VECTOR_DOT: return qg_vector_dot_evaluate(h, got);
    default: return evaluate_quantize(h, got);
    }
}
