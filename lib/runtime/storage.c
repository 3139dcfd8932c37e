// What the buffers of a stored (packed, reordered) quantized tensor must hold, and what a
// quantization must be given. See qg_backend.h.
#include <qg_backend.h>
#include <qg_block_scale.h>
#include <qg_pack.h>
#include <qg_size.h>
#include <storage_internal.h>

static qg_status check_order(const qg_recipe *recipe, qg_scale_order order) {
    if (order.kind < QG_ORDER_ROW_MAJOR || order.kind > QG_ORDER_BLOCK128_PADDED)
        return qg_fail(QG_ERROR_ARGUMENT, "scale order number %d does not exist", (int)order.kind);
    if (order.kind == QG_ORDER_K_MAJOR && order.padding < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "k_major scales need a padding of at least 1");
    if (order.kind != QG_ORDER_ROW_MAJOR && recipe->structure != QG_STRUCTURE_PLAIN)
        return qg_fail(QG_ERROR_UNSUPPORTED,
                       "scales of recipes with pair shifts or two planes are row_major only");
    return QG_OK;
}

// Rounding up to the padding at most doubles 63 bits, so only the product needs a check.
static bool padded_scales_fit(qg_scale_order order, const qg_blocks *blocks, int64_t bytes) {
    enum { TILE = 512 };
    int64_t rows = blocks->block_rows, columns = blocks->block_columns, size;
    int64_t row_padding = order.kind == QG_ORDER_K_MAJOR ? order.padding : TILE;
    return qg_size_add(rows, row_padding, &rows) && qg_size_add(columns, TILE, &columns) &&
           qg_size_multiply(rows, columns, &size) && qg_size_multiply(size, bytes, &size);
}

qg_status storage_check_options(const qg_recipe *recipe, const qg_quantize_options *options,
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

float storage_history_amax(const qg_quantize_options *options) {
    float amax = 0.0f;
    for (int64_t i = 0; i < options->history_length; i++)
        amax = qg_amax_step(QG_AMAX_PROPAGATES_NAN, amax, options->amax_history[i]);
    return amax;
}

bool storage_packs(const qg_storage *storage, int bits) {
    return storage->packed && (bits == 4 || bits == 6);
}

qg_status qg_storage_shape_of(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                              int64_t k, qg_storage_shape *out) {
    static const qg_storage logical = {0};
    if (!storage)
        storage = &logical;
    qg_storage_shape stored = {0};
    qg_status status = qg_shape_of(recipe, m, k, &stored.shape);
    if (status == QG_OK)
        status = check_order(recipe, storage->order);
    if (status != QG_OK)
        return status;
    const qg_shape *shape = &stored.shape;
    qg_format_info element = qg_format_describe(recipe->element);
    stored.row_bytes = k * shape->code_bytes;
    stored.scales_size = shape->scales_size;
    if (storage_packs(storage, element.bits))
        stored.row_bytes = qg_packed_bytes(element.bits, k);
    if (!qg_size_multiply(m, shape->planes * stored.row_bytes, &stored.codes_size))
        return qg_fail(QG_ERROR_OVERFLOW, "packed codes of %lld x %lld exceed 2^63 - 1 bytes",
                       (long long)m, (long long)k);
    if (storage->order.kind != QG_ORDER_ROW_MAJOR) {
        if (!padded_scales_fit(storage->order, &shape->blocks, shape->scale_bytes))
            return qg_fail(QG_ERROR_OVERFLOW, "padded scales of %lld x %lld exceed 2^63 - 1 bytes",
                           (long long)m, (long long)k);
        stored.scales_size =
            shape->scale_bytes * qg_scale_order_size(storage->order, shape->blocks.block_rows,
                                                     shape->blocks.block_columns);
    }
    *out = stored;
    return QG_OK;
}
