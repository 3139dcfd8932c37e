// Operands of products: which of them BF16 holds exactly, and the rows of panels.
//
// A code of at most 8 bits becomes the BF16 number of the same value if that has at most 8
// significant bits and a normal exponent: checked code by code, since formats are data. A scale of
// one bit (E8M0) keeps that; UE4M3's has 4 bits, so elements may have 4 (E4M3, E2M1, INT4).
// BF16 hardware reads and writes subnormals as zero. So BF16 is used only where no product and no
// partial sum can be one: all are multiples of 2^(low of a + low of b), which must be normal.
#include <cpu_matmul_internal.h>

enum { LEAST = -126, BEYOND = 128, SIGNIFICANT = 8, TABLE_BITS = 8 };

// ------------------------------------------------------------------------------------------- range

// Starts empty.
static const matmul_range nothing = {BEYOND, -2 * BEYOND};

// With a number of the given exponent and trailing zeros.
static void include(matmul_range *r, int low, int exponent) {
    if (low < r->low)
        r->low = low;
    if (exponent + 1 > r->high)
        r->high = exponent + 1;
}

static int lowest_bit(double x) {
    int exponent = qg_double_exponent(x);
    uint64_t fraction = qg_bits_of_double(x) << 12;
    if (fraction == 0)
        return exponent;
    int digits = 52;
    for (fraction >>= 12; (fraction & 1) == 0; fraction >>= 1)
        digits--;
    return exponent - digits;
}

static bool is_finite(double x) { return x - x == 0.0; }

// The range of a format's values; false if BF16 does not hold each of them as a normal number.
static bool table_range(const matmul_view *v, int significant, matmul_range *out) {
    *out = nothing;
    int codes = 1 << v->element.info.bits;
    for (int code = 0; code < codes; code++) {
        double value = v->table.wide[code];
        if (value == 0.0 || !is_finite(value))
            continue;
        int low = lowest_bit(value), exponent = qg_double_exponent(value);
        if (exponent - low >= significant || exponent < LEAST)
            return false;
        include(out, low, exponent);
    }
    return true;
}

// -------------------------------------------------------------------------------------------- scal

static uint32_t scale_bits(const matmul_view *v, int64_t block, int place, int bytes) {
    const uint8_t *in = v->in->scales + block * v->shape.scale_bytes + place;
    uint32_t bits = 0;
    for (int b = 0; b < bytes; b++)
        bits |= (uint32_t)in[b] << (8 * b);
    return bits;
}

static float block_scale(const matmul_view *v, int64_t block) {
    if (v->shape.scale_bytes == 1)
        return v->scales[v->in->scales[block]];
    return qg_float_of_bits(scale_bits(v, block, 0, 4));
}

static bool is_block_zero(const matmul_view *v, int64_t block) {
    const qg_blocks *blocks = &v->shape.blocks;
    qg_block_range r =
        qg_block_at(blocks, block / blocks->block_columns, block % blocks->block_columns);
    for (int64_t row = r.row_begin; row < r.row_end; row++)
        for (int64_t column = r.column_begin; column < r.column_end; column++)
            if (v->table.wide[v->in->codes[row * blocks->k + column]] != 0.0f)
                return false;
    return true;
}

// The range of all scales but those of blocks of zeros, whose tiny scales do not matter; false for
// NaN, infinity, or a zero.
static bool scale_range(const matmul_view *v, matmul_range *out) {
    enum { TINY = -40 };
    *out = nothing;
    int64_t count = v->shape.blocks.block_rows * v->shape.blocks.block_columns;
    for (int64_t block = 0; block < count; block++) {
        float x = block_scale(v, block);
        if (!qg_float_is_finite(x))
            return false;
        int exponent = x == 0.0f ? LEAST - SIGNIFICANT : qg_float_exponent(x);
        if (exponent < TINY && is_block_zero(v, block))
            continue;
        if (x == 0.0f)
            return false;
        include(out, exponent, exponent);
    }
    return true;
}

// The same of one byte per block, from which bytes occur.
static bool byte_scale_range(const matmul_view *v, matmul_range *out) {
    int64_t count = v->shape.blocks.block_rows * v->shape.blocks.block_columns;
    uint8_t least = 255, most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint8_t byte = v->in->scales[i];
        least = byte < least ? byte : least;
        most = byte > most ? byte : most;
    }
    float low = v->scales[least], high = v->scales[most];
    if (!qg_float_is_finite(high) || !qg_float_is_finite(low))
        return false;
    bool is_e8m0 = qg_rule_scale_format(v->in->recipe->rule) == QG_FORMAT_E8M0;
    if (is_e8m0 && qg_float_exponent(low) < -40)
        return scale_range(v, out);
    *out = nothing;
    if (is_e8m0) {
        include(out, qg_float_exponent(low), qg_float_exponent(high));
    } else {
        matmul_range ue4m3 = {-9, 9};
        *out = ue4m3;
    }
    return true;
}

float qg_matmul_factor(const matmul_view *v, int64_t row, int64_t column) {
    if (v->place == MATMUL_IN_ELEMENTS)
        return v->tensor_factor;
    return block_scale(v, qg_scale_index(&v->shape.blocks, row, column));
}

// --------------------------------------------------------------------------------------- the view

static bool is_grouped(const qg_recipe *recipe) {
    return recipe->layout.kind == QG_LAYOUT_GROUP || recipe->layout.kind == QG_LAYOUT_BLOCK;
}

static void fill_table(matmul_view *v) {
    matmul_table *t = &v->table;
    for (int code = 0; code < MATMUL_CODES; code++) {
        double value = qg_decode(&v->element.info, (uint64_t)code);
        t->wide[code] = qg_dequantized(value, 1.0f);
        t->narrow[code] = (uint16_t)(qg_bits_of_float(t->wide[code]) >> 16);
        t->low[code] = (uint8_t)t->narrow[code];
        t->high[code] = (uint8_t)(t->narrow[code] >> 8);
    }
}

// What scale bytes stand for. Of a two-level recipe whose scales go into elements: the block scale
// alone; panels of binary32 read scale bytes themselves.
static void fill_scales(matmul_view *v) {
    const qg_recipe *recipe = v->in->recipe;
    bool without_tensor = v->place == MATMUL_IN_ELEMENTS && qg_rule_has_tensor_scale(recipe->rule);
    for (uint32_t bits = 0; bits < 256; bits++)
        v->scales[bits] = without_tensor
                              ? qg_decode_ue4m3(bits)
                              : qg_scale_value(recipe, &v->element, v->in->tensor_scale, bits);
    v->tensor_factor = without_tensor
                           ? qg_two_level_decode_scale(recipe->rule, &v->element,
                                                       v->in->tensor_scale, qg_encode_ue4m3(1.0f))
                           : 1.0f;
}

qg_status qg_matmul_view_of(const qg_matmul_operand *in, int64_t rows, int64_t k, matmul_view *v) {
    if (!in || !in->recipe || !in->codes || !in->scales)
        return qg_fail(QG_ERROR_ARGUMENT, "an operand of a product lacks recipe, codes or scales");
    qg_status status = qg_shape_of(in->recipe, rows, k, &v->shape);
    if (status != QG_OK)
        return status;
    v->in = in;
    v->element = qg_element_of(in->recipe->element);
    v->is_narrow = false;
    qg_format scale_format = qg_rule_scale_format(in->recipe->rule);
    v->place = !is_grouped(in->recipe)          ? MATMUL_IN_EPILOGUE
               : scale_format == QG_FORMAT_FP32 ? MATMUL_IN_PARTS
                                                : MATMUL_IN_ELEMENTS;
    if (v->element.info.bits <= TABLE_BITS)
        fill_table(v);
    fill_scales(v);
    return QG_OK;
}

// Two-level: far from where the product of scale and tensor scale would lose bits.
static bool scan_factors(matmul_view *v) {
    if (v->place != MATMUL_IN_ELEMENTS)
        return scale_range(v, &v->factors);
    v->factors = nothing;
    if (!qg_float_is_finite(v->tensor_factor) || v->tensor_factor == 0.0f)
        return false;
    int exponent = qg_float_exponent(v->tensor_factor);
    include(&v->factors, exponent, exponent);
    return exponent > -90 && exponent < 90;
}

static bool scan_elements(matmul_view *v) {
    bool is_e8m0 = qg_rule_scale_format(v->in->recipe->rule) == QG_FORMAT_E8M0;
    bool is_folded = v->place == MATMUL_IN_ELEMENTS;
    if (!table_range(v, is_folded && !is_e8m0 ? SIGNIFICANT - 4 : SIGNIFICANT, &v->elements))
        return false;
    matmul_range scales;
    if (!is_folded)
        return true;
    if (!byte_scale_range(v, &scales))
        return false;
    if (scales.low == nothing.low) // zeros alone
        return true;
    v->elements.low += scales.low;
    v->elements.high += scales.high;
    return true;
}

// An empty range fits: there are only zeros.
static bool is_normal(matmul_range a, matmul_range b) {
    return a.low + b.low >= LEAST && a.high + b.high < BEYOND;
}

void qg_matmul_view_scan(matmul_view *v) {
    v->is_narrow = v->in->recipe->structure == QG_STRUCTURE_PLAIN &&
                   v->element.info.bits <= TABLE_BITS && v->shape.code_bytes == 1 &&
                   scan_elements(v) && scan_factors(v) && v->elements.low >= LEAST &&
                   is_normal(v->elements, v->factors);
}

// ---------------------------------------------------------------------------------- rows of panels

// Blocks that begin and end within vectors' groups of 16.
static bool is_vectorizable(const matmul_view *v, int64_t begin) {
    return v->shape.blocks.columns % MATMUL_SCALED == 0 && begin % MATMUL_SCALED == 0;
}

static void narrow_by_groups(const matmul_view *v, const matmul_kernels *kernels, int64_t row,
                             int64_t begin, int64_t length, uint16_t *out) {
    const qg_blocks *blocks = &v->shape.blocks;
    const uint8_t *codes = v->in->codes + row * blocks->k + begin;
    float scales[BF16_LENGTH / MATMUL_SCALED];
    int64_t per_block = blocks->columns / MATMUL_SCALED,
            groups = qg_ceil_divide(length, MATMUL_SCALED);
    int64_t block = qg_scale_index(blocks, row, begin);
    int64_t within = begin / MATMUL_SCALED % per_block;
    for (int64_t i = 0; i < groups; block++, within = 0) {
        float x = block_scale(v, block);
        for (; within < per_block && i < groups; within++)
            scales[i++] = x;
    }
    kernels->narrow_scaled(&v->table, codes, length, scales, out);
}

static void narrow_by_elements(const matmul_view *v, int64_t row, int64_t begin, int64_t length,
                               uint16_t *out) {
    const qg_blocks *blocks = &v->shape.blocks;
    const uint8_t *codes = v->in->codes + row * blocks->k;
    for (int64_t column = begin; column < begin + length; column++) {
        float x = block_scale(v, qg_scale_index(blocks, row, column));
        *out++ = (uint16_t)(qg_bits_of_float(v->table.wide[codes[column]] * x) >> 16);
    }
}

void qg_matmul_narrow_rows(const matmul_view *v, const matmul_kernels *kernels, int64_t row,
                           int64_t rows, int64_t begin, int64_t length, uint16_t *out,
                           int64_t stride) {
    int64_t k = v->shape.blocks.k;
    if (v->place != MATMUL_IN_ELEMENTS) {
        const uint8_t *codes = v->in->codes + row * k + begin;
        kernels->narrow(&v->table, codes, k, rows, length, out, stride);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        if (is_vectorizable(v, begin))
            narrow_by_groups(v, kernels, row + i, begin, length, out + i * stride);
        else
            narrow_by_elements(v, row + i, begin, length, out + i * stride);
}

static double code_value(const matmul_view *v, int plane, int64_t i) {
    int bytes = v->shape.code_bytes;
    int64_t elements = v->shape.blocks.m * v->shape.blocks.k;
    const uint8_t *in = v->in->codes + (plane * elements + i) * bytes;
    if (bytes == 1)
        return v->table.wide[in[0]];
    uint64_t code = 0;
    for (int b = 0; b < bytes; b++)
        code |= (uint64_t)in[b] << (8 * b);
    return qg_decode(&v->element.info, code);
}

static float pair_value(const matmul_view *v, int64_t row, int64_t column) {
    const qg_blocks *blocks = &v->shape.blocks;
    int64_t block = qg_scale_index(blocks, row, column), within = column % blocks->columns;
    uint32_t exponent = scale_bits(v, block, 0, 1);
    uint32_t shift = scale_bits(v, block, 1, 1) >> within / 2 & 1;
    return qg_dequantized(code_value(v, 0, row * blocks->k + column),
                          qg_pair_scale(exponent, shift).x);
}

static float residual_value(const matmul_view *v, int64_t row, int64_t column) {
    const qg_blocks *blocks = &v->shape.blocks;
    int64_t block = qg_scale_index(blocks, row, column), i = row * blocks->k + column;
    float x0 = qg_float_of_bits(scale_bits(v, block, 0, 4));
    float x1 = qg_float_of_bits(scale_bits(v, block, 4, 4));
    return qg_dequantized(
        qg_dequantized(code_value(v, 0, i), x0) + qg_dequantized(code_value(v, 1, i), x1), 1.0f);
}

static float stored_scale(const matmul_view *v, int64_t block) {
    return qg_scale_value(v->in->recipe, &v->element, v->in->tensor_scale,
                          scale_bits(v, block, 0, v->shape.scale_bytes));
}

// Codes of at most 8 bits: a product of binary32 is the rounded exact product.
static void wide_plain(const matmul_view *v, int64_t row, int64_t begin, int64_t length,
                       float *out) {
    const qg_blocks *blocks = &v->shape.blocks;
    for (int64_t column = begin; column < begin + length;) {
        int64_t end = (column / blocks->columns + 1) * blocks->columns;
        if (end > begin + length)
            end = begin + length;
        float x = stored_scale(v, qg_scale_index(blocks, row, column));
        int64_t i = row * blocks->k + column;
        if (v->shape.code_bytes == 1)
            for (; column < end; column++)
                *out++ = v->table.wide[v->in->codes[i++]] * x;
        else
            for (; column < end; column++)
                *out++ = qg_dequantized(code_value(v, 0, i++), x);
    }
}

void qg_matmul_wide_row(const matmul_view *v, int64_t row, int64_t begin, int64_t length,
                        float *out) {
    int structure = v->in->recipe->structure;
    if (structure == QG_STRUCTURE_PLAIN) {
        wide_plain(v, row, begin, length, out);
        return;
    }
    for (int64_t column = begin; column < begin + length; column++)
        *out++ = structure == QG_STRUCTURE_RESIDUAL ? residual_value(v, row, column)
                                                    : pair_value(v, row, column);
}
