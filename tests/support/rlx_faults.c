// See rlx_faults.h. Wrong on purpose.
#include <rlx_faults.h>

#include <qg_format_name.h>
#include <require.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// -------------------------------------------------------------------------------- elements, scales

uint64_t rlx_fault_encode(const slow_format *format, double x) {
    double least = INFINITY;
    uint64_t best = 0;
    if (isnan(x))
        return 0;
    if (isinf(x)) {
        double largest = slow_value(format, slow_value_count(format) - 1);
        return rlx_fault_encode(format, copysign(largest, x));
    }
    for (uint64_t i = 0; i < slow_code_count(format); i++) {
        uint64_t code = slow_code(format, i);
        double value = slow_decode(format, code);
        if (!isfinite(value))
            continue;
        double distance = fabs(value - x);
        if (distance < least || (distance == least && (best & 1) && !(code & 1))) {
            least = distance;
            best = code;
        }
    }
    return best;
}

static uint8_t clamped_byte(float exponent) {
    float byte = ceilf(exponent) + 127.0f;
    return (uint8_t)(byte < 0.0f ? 0.0f : byte > 254.0f ? 254.0f : byte);
}

uint8_t rlx_fault_e8m0(float raw) {
    return isfinite(raw) && raw > 0.0f ? clamped_byte(log2f(raw)) : 0;
}

uint8_t rlx_fault_e8m0_at_best(float raw) {
    return isfinite(raw) && raw > 0.0f ? clamped_byte((float)log2((double)raw)) : 0;
}

// ----------------------------------------------------------------------------------------- tensors

static double largest_of(const char *name) {
    slow_format *format = slow_format_create(name);
    double largest = slow_value(format, slow_value_count(format) - 1);
    slow_format_free(format);
    return largest;
}

static float raw_scale(int64_t count, int64_t stride, int64_t rows, const float *x, float largest) {
    float amax = 0.0f;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < count; i++)
            amax = fmaxf(amax, fabsf(x[row * stride + i]));
    return amax > 0.0f ? amax / largest : 1.0f;
}

// Snaps the raw scale of a block to the layout's grid, and stores it.
static void store_scale(rlx_quantized *q, int64_t block, float raw) {
    slow_format *e4m3 = slow_format_create("e4m3");
    switch (qg_rule_scale_format(q->recipe.rule)) {
    case QG_FORMAT_E8M0: q->scales[block] = rlx_fault_e8m0(raw); break;
    case QG_FORMAT_UE4M3: q->scales[block] = (uint8_t)rlx_fault_encode(e4m3, raw); break;
    default: memcpy(q->scales + 4 * block, &raw, sizeof raw); break;
    }
    slow_format_free(e4m3);
}

rlx_quantized rlx_fault_quantize(const char *scaled_for, const char *written_as, int layout,
                                 int64_t m, int64_t k, const float *x) {
    rlx_quantized q = {.recipe = rlx_recipe(rlx_recipe_text(scaled_for, layout)),
                       .tensor_scale = 1.0f,
                       .format = slow_format_create(written_as)};
    float largest = (float)largest_of(scaled_for);
    REQUIRE(qg_shape_of(&q.recipe, m, k, &q.shape) == QG_OK, "%s", qg_detail());
    q.codes = malloc((size_t)q.shape.codes_size);
    q.scales = malloc((size_t)q.shape.scales_size);
    const qg_blocks *b = &q.shape.blocks;
    for (int64_t i = 0; i < b->block_rows * b->block_columns; i++) {
        int64_t row = i / b->block_columns * b->rows, column = i % b->block_columns * b->columns;
        int64_t columns = k - column < b->columns ? k - column : b->columns;
        store_scale(&q, i, raw_scale(columns, k, b->rows, x + row * k + column, largest));
    }
    for (int64_t i = 0; i < m * k; i++) {
        float scale = rlx_scale_of(&q, i / k, i % k);
        float v = scale != 0.0f ? x[i] / scale : 0.0f;
        q.codes[i] = (uint8_t)rlx_fault_encode(q.format, (double)v);
    }
    return q;
}

void rlx_fault_read_as_e4m3(rlx_quantized *q) {
    slow_format_free(q->format);
    q->format = slow_format_create("e4m3");
    q->recipe.element = QG_FORMAT_E4M3;
}

// ---------------------------------------------------------------------------------------- products

bool rlx_fault_gate(int64_t count, const float *wanted, const float *got, double threshold) {
    double xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < count; i++) {
        xy += (double)wanted[i] * (double)got[i];
        xx += (double)wanted[i] * (double)wanted[i];
        yy += (double)got[i] * (double)got[i];
    }
    return xy / sqrt(xx * yy) >= threshold;
}

void rlx_fault_product(const rlx_quantized *lhs, const rlx_quantized *rhs, const float *bias,
                       float *out) {
    int64_t m = lhs->shape.blocks.m, n = rhs->shape.blocks.m, k = lhs->shape.blocks.k;
    for (int64_t row = 0; row < m; row++)
        for (int64_t column = 0; column < n; column++) {
            float sum = 0.0f;
            for (int64_t i = 0; i < k; i++)
                sum += (float)rlx_value_of(lhs, row, i) * (float)rlx_value_of(rhs, column, i);
            out[row * n + column] = bias ? sum + bias[column] : sum;
        }
}

// ------------------------------------------------------------------------------- what it cannot do

uint32_t rlx_fault_elements(int64_t m, int64_t k) { return (uint32_t)m * (uint32_t)k; }

bool rlx_fault_has_recipe(const char *text) {
    for (int f = 0; f < RLX_SWEEP; f++)
        for (int layout = 0; layout < RLX_LAYOUTS; layout++)
            if (strcmp(text, rlx_recipe_text(rlx_sweep[f], layout)) == 0)
                return true;
    return false;
}
