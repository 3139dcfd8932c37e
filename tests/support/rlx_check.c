// See rlx_check.h. Nothing of lib/ decodes here: values come from the bytes by the slow model.
#include <rlx_check.h>

#include <block_data.h>
#include <qg_recipe_name.h>
#include <require.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rlx_named[RLX_NAMED] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz",
                                          "e2m3", "e3m2", "e2m1"};
const char *const rlx_sweep[RLX_SWEEP] = {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz",
                                          "e2m3", "e3m2", "e2m1",     "f4e3m0"};
const char *const rlx_layouts[RLX_LAYOUTS] = {"per_tensor/amax", "group:32/rceil",
                                              "group:16/amax_ue4m3"};

const char *rlx_minifloat(int i) {
    static char name[32];
    int seen = 0;
    for (int ebits = 1; ebits <= 7; ebits++)
        for (int mbits = 0; 1 + ebits + mbits <= 8; mbits++, seen++)
            if (seen == i)
                snprintf(name, sizeof name, "f%de%dm%db%d", 1 + ebits + mbits, ebits, mbits,
                         (1 << (ebits - 1)) - 1);
    REQUIRE(i >= 0 && seen == RLX_MINIFLOATS && i < seen, "%d", i);
    return name;
}

const char *rlx_recipe_text(const char *format, int layout) {
    static char texts[2][64];
    static int next;
    char *text = texts[next++ % 2];
    snprintf(text, sizeof texts[0], "%s/%s", format, rlx_layouts[layout]);
    return text;
}

qg_recipe rlx_recipe(const char *text) {
    qg_recipe recipe;
    REQUIRE(qg_recipe_parse(text, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

// ------------------------------------------------------------------------------------ quantization

rlx_quantized rlx_quantize(const char *backend, const char *recipe, int64_t m, int64_t k,
                           const float *x) {
    rlx_quantized q = {.recipe = rlx_recipe(recipe)};
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
    char name[QG_NAME_SIZE];
    REQUIRE(qg_shape_of(&q.recipe, m, k, &q.shape) == QG_OK, "%s", qg_detail());
    q.codes = malloc((size_t)q.shape.codes_size);
    q.scales = malloc((size_t)q.shape.scales_size);
    REQUIRE(q.codes && q.scales, "no memory");
    REQUIRE(qg_backend_find(backend)->quantize(&q.recipe, &options, NULL, m, k, x, q.codes,
                                               q.scales, &q.tensor_scale, NULL) == QG_OK,
            "%s", qg_detail());
    qg_format_name(q.recipe.element, name);
    q.format = slow_format_create(name);
    REQUIRE(q.format, "no model of %s", name);
    return q;
}

void rlx_discard(rlx_quantized *q) {
    free(q->codes);
    free(q->scales);
    slow_format_free(q->format);
}

static double e8m0_value(uint8_t byte) { return byte == 255 ? NAN : ldexp(1.0, byte - 127); }

static double ue4m3_value(uint8_t byte) {
    int exponent = byte >> 3, mantissa = byte & 7;
    return exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
}

// plane: of a residual recipe.
static float scale_at(const rlx_quantized *q, int64_t block, int plane) {
    const uint8_t *field = q->scales + block * q->shape.scale_bytes + 4 * plane;
    float scale;
    switch (qg_rule_scale_format(q->recipe.rule)) {
    case QG_FORMAT_E8M0: return (float)e8m0_value(*field);
    case QG_FORMAT_UE4M3:
        // A tensor scale is an amax, which stands for 448 times the element's largest value.
        if (q->shape.has_tensor_scale)
            return (float)ue4m3_value(*field) * q->tensor_scale *
                   (1.0f /
                    (448.0f * (float)slow_value(q->format, slow_value_count(q->format) - 1)));
        return (float)ue4m3_value(*field);
    default: memcpy(&scale, field, sizeof scale); return scale;
    }
}

static int64_t block_of(const rlx_quantized *q, int64_t row, int64_t column) {
    const qg_blocks *b = &q->shape.blocks;
    return row / b->rows * ((b->k + b->columns - 1) / b->columns) + column / b->columns;
}

float rlx_scale_of(const rlx_quantized *q, int64_t row, int64_t column) {
    return scale_at(q, block_of(q, row, column), 0);
}

double rlx_value_of(const rlx_quantized *q, int64_t row, int64_t column) {
    int64_t m = q->shape.blocks.m, k = q->shape.blocks.k, block = block_of(q, row, column);
    double value =
        slow_decode(q->format, q->codes[row * k + column]) * (double)scale_at(q, block, 0);
    if (q->shape.planes == 2) { // each rounded, before they are added
        double rest = slow_decode(q->format, q->codes[(m + row) * k + column]);
        value = (double)(float)value + (double)(float)(rest * (double)scale_at(q, block, 1));
    }
    return value;
}

// ----------------------------------------------------------------------------------------- tensors

void rlx_smooth(int64_t count, double frequency, float *x) {
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)sin(frequency * (double)(i + 1));
}

void rlx_ordinary(uint64_t seed, int64_t count, float *x) {
    block_data_fill(seed, BLOCK_DATA_ORDINARY, x, count);
}

void rlx_hard(uint64_t seed, int64_t count, float *x) {
    static const int kinds[] = {BLOCK_DATA_ORDINARY, BLOCK_DATA_TINY, BLOCK_DATA_ZEROS,
                                BLOCK_DATA_WIDE, BLOCK_DATA_TIES};
    for (int64_t i = 0; i < count; i++) {
        float element[8];
        block_data_fill(seed + (uint64_t)i, kinds[i / 8 % 5], element, 8);
        x[i] = i % 29 == 11 ? 1e30f : i % 31 == 13 ? -1e30f : element[i % 8];
    }
}

// ---------------------------------------------------------------------------------------- products

rlx_sum rlx_dot(const rlx_quantized *lhs, int64_t row, const rlx_quantized *rhs, int64_t column) {
    rlx_sum sum = {0, 0};
    for (int64_t i = 0; i < lhs->shape.blocks.k; i++) {
        float a = (float)rlx_value_of(lhs, row, i), b = (float)rlx_value_of(rhs, column, i);
        long double product = (long double)a * (long double)b; // exact: 48 bits
        sum.value += product;
        sum.magnitude += fabsl(product);
    }
    return sum;
}

static qg_matmul_operand operand_of(const rlx_quantized *q) {
    return (qg_matmul_operand){&q->recipe, q->codes, q->scales, q->tensor_scale};
}

void rlx_multiply(const char *unit_name, const rlx_quantized *lhs, const rlx_quantized *rhs,
                  const float *bias, float *out) {
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .bias = bias, .threads = 1};
    qg_matmul_operand a = operand_of(lhs), b = operand_of(rhs);
    qg_unit unit;
    REQUIRE(qg_unit_parse(unit_name, &unit) == QG_OK, "%s", qg_detail());
    qg_unit_fit(&unit, &lhs->recipe, &rhs->recipe);
    REQUIRE(qg_emulator_scaled_matmul(&unit, &options, lhs->shape.blocks.m, rhs->shape.blocks.m,
                                      lhs->shape.blocks.k, &a, &b, out, NULL) == QG_OK,
            "%s: %s", unit_name, qg_detail());
}
