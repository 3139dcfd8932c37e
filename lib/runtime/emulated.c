// The emulator behind the arguments of a backend: other input types, packed codes, other orders of
// scales. Temporary buffers hold what the emulator reads and writes.
#include <cpu_kernels_internal.h>
#include <qg_memory.h>
#include <qg_pack.h>
#include <storage_internal.h>

void storage_widen(qg_format type, const void *x, int64_t count, float *wide) {
    int index = type == QG_FORMAT_BF16 ? INPUT_BF16 : INPUT_FP16;
    for (int64_t i = 0; i < count; i++)
        wide[i] = cpu_element(index, x, i);
}

void storage_pack_rows(int bits, int64_t m, int64_t k, const uint8_t *codes, int64_t row_bytes,
                       uint8_t *stored) {
    for (int64_t row = 0; row < m; row++)
        (bits == 4 ? qg_pack4 : qg_pack6)(codes + row * k, k, stored + row * row_bytes);
}

void storage_unpack_rows(int bits, int64_t m, int64_t k, const uint8_t *stored, int64_t row_bytes,
                         uint8_t *codes) {
    for (int64_t row = 0; row < m; row++)
        (bits == 4 ? qg_unpack4 : qg_unpack6)(stored + row * row_bytes, k, codes + row * k);
}

// The temporary buffers; NULL where the caller's own serve.
typedef struct detour {
    qg_storage_shape stored;
    int bits;
    float *x;
    uint8_t *codes, *scales;
} detour;

static qg_status detour_open(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                             int64_t k, bool widens, detour *d) {
    *d = (detour){0};
    void *x = NULL, *codes = NULL, *scales = NULL;
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &d->stored);
    if (status != QG_OK)
        return status;
    d->bits = qg_format_describe(recipe->element).bits;
    if (widens)
        status = qg_allocate(&x, m * k, (int64_t)sizeof(float), "widened elements");
    if (status == QG_OK && storage && storage_packs(storage, d->bits))
        status = qg_allocate(&codes, d->stored.shape.codes_size, 1, "unpacked codes");
    if (status == QG_OK && storage && storage->order.kind != QG_ORDER_ROW_MAJOR)
        status = qg_allocate(&scales, d->stored.shape.scales_size, 1, "scales in logical order");
    d->x = x, d->codes = codes, d->scales = scales;
    return status;
}

static void detour_close(detour *d) {
    qg_release(d->x);
    qg_release(d->codes);
    qg_release(d->scales);
}

static bool is_narrow(qg_format type) { return type == QG_FORMAT_BF16 || type == QG_FORMAT_FP16; }

qg_status emulated_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                            const qg_storage *storage, int64_t m, int64_t k, const void *x,
                            uint8_t *codes, uint8_t *scales, float *tensor_scale) {
    detour d;
    bool widens = is_narrow(options->input_type);
    qg_status status = detour_open(recipe, storage, m, k, widens, &d);
    if (status == QG_OK && widens)
        storage_widen(options->input_type, x, m * k, d.x);
    if (status == QG_OK)
        status =
            qg_emulator_quantize(recipe, options, m, k, widens ? d.x : x, d.codes ? d.codes : codes,
                                 d.scales ? d.scales : scales, tensor_scale, NULL);
    if (status == QG_OK && d.codes)
        storage_pack_rows(d.bits, d.stored.shape.planes * m, k, d.codes, d.stored.row_bytes, codes);
    if (status == QG_OK && d.scales)
        qg_scale_order_store(storage->order, d.stored.shape.blocks.block_rows,
                             d.stored.shape.blocks.block_columns, d.stored.shape.scale_bytes,
                             d.scales, scales);
    detour_close(&d);
    return status;
}

qg_status emulated_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                              int64_t k, const uint8_t *codes, const uint8_t *scales,
                              float tensor_scale, int threads, float *q) {
    detour d;
    qg_status status = detour_open(recipe, storage, m, k, false, &d);
    if (status == QG_OK && d.codes)
        storage_unpack_rows(d.bits, d.stored.shape.planes * m, k, codes, d.stored.row_bytes,
                            d.codes);
    if (status == QG_OK && d.scales)
        qg_scale_order_load(storage->order, d.stored.shape.blocks.block_rows,
                            d.stored.shape.blocks.block_columns, d.stored.shape.scale_bytes, scales,
                            d.scales);
    if (status == QG_OK)
        status = qg_emulator_dequantize(recipe, m, k, d.codes ? d.codes : codes,
                                        d.scales ? d.scales : scales, tensor_scale, threads, q);
    detour_close(&d);
    return status;
}
