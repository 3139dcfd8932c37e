// What the buffers of a quantized tensor must hold. See qg_emulator.h.
#include <qg_emulator.h>
#include <qg_recipe_name.h>
#include <qg_size.h>

static int32_t scale_field_bytes(const qg_recipe *recipe) {
    qg_format_info scale = qg_format_describe(qg_rule_scale_format(recipe->rule));
    switch (recipe->structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT: return 2;
    case QG_STRUCTURE_RESIDUAL: return 2 * qg_format_code_bytes(&scale);
    default: return qg_format_code_bytes(&scale);
    }
}

qg_status qg_shape_of(const qg_recipe *recipe, int64_t m, int64_t k, qg_shape *out) {
    qg_shape shape = {0};
    qg_status status = qg_recipe_check(recipe);
    if (status == QG_OK)
        status = qg_layout_blocks(recipe->layout, m, k, &shape.blocks);
    if (status != QG_OK)
        return status;
    qg_format_info element = qg_format_describe(recipe->element);
    shape.planes = recipe->structure == QG_STRUCTURE_RESIDUAL ? 2 : 1;
    shape.code_bytes = qg_format_code_bytes(&element);
    shape.scale_bytes = scale_field_bytes(recipe);
    shape.has_tensor_scale = qg_rule_has_tensor_scale(recipe->rule);
    int64_t blocks = shape.blocks.block_rows * shape.blocks.block_columns; // at most m * k
    int64_t float_bytes;
    if (!qg_size_multiply(m * k, shape.planes * shape.code_bytes, &shape.codes_size) ||
        !qg_size_multiply(blocks, shape.scale_bytes, &shape.scales_size) ||
        !qg_size_multiply(m * k, (int64_t)sizeof(float), &float_bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "a tensor of %lld x %lld exceeds 2^63 - 1 bytes",
                       (long long)m, (long long)k);
    *out = shape;
    return QG_OK;
}
