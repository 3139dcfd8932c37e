// See device_product.h.
#include <device_product.h>

#include <qg_data.h>
#include <qg_memory.h>
#include <qg_pack.h>

#include <stdlib.h>
#include <string.h>

// --------------------------------------------------------------------------------------- operands

qg_status device_operand_open(const qg_recipe *recipe, const char *format, int64_t rows, int64_t k,
                              device_operand *out) {
    void *codes = NULL, *scales = NULL;
    *out = (device_operand){
        .recipe = *recipe, .format = format, .rows = rows, .k = k, .tensor_scale = 1};
    qg_status status = qg_shape_of(recipe, rows, k, &out->shape);
    if (status == QG_OK)
        status = qg_allocate(&codes, out->shape.codes_size, 1, "codes of an operand");
    if (status == QG_OK)
        status = qg_allocate(&scales, out->shape.scales_size, 1, "scales of an operand");
    out->codes = codes;
    out->scales = scales;
    return status;
}

qg_status device_operand_fill(device_operand *operand, uint64_t seed, int which) {
    qg_law *law = NULL;
    void *room = NULL;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    qg_status status = qg_law_parse("normal", &law);
    if (status == QG_OK)
        status = qg_allocate(&room, operand->rows * operand->k, sizeof(float), "an operand");
    if (status == QG_OK) {
        qg_law_generate(law, seed, which, operand->k, 0, operand->rows, room);
        status =
            qg_emulator_quantize(&operand->recipe, &options, operand->rows, operand->k, room,
                                 operand->codes, operand->scales, &operand->tensor_scale, NULL);
    }
    qg_law_free(law);
    qg_release(room);
    return status;
}

void device_operand_free(device_operand *operand) {
    qg_release(operand->codes);
    qg_release(operand->scales);
    *operand = (device_operand){0};
}

// ---------------------------------------------------------------------------------- on the device

// FP4 is packed, as the library reads it.
static qg_status put_codes(device_check *c, device_room room, const device_operand *o,
                           const uint8_t **codes) {
    int bits = qg_format_describe(o->recipe.element).bits;
    void *inside, *packed;
    if (bits != 4) {
        qg_status status = device_put(c, room, o->codes, o->shape.codes_size, &inside);
        *codes = inside;
        return status;
    }
    int64_t row = qg_packed_bytes(bits, o->k);
    qg_status status = qg_allocate(&packed, o->rows, row, "packed codes");
    if (status != QG_OK)
        return status;
    for (int64_t i = 0; i < o->rows; i++)
        qg_pack4(o->codes + i * o->k, o->k, (uint8_t *)packed + i * row);
    status = device_put(c, room, packed, o->rows * row, &inside);
    *codes = inside;
    qg_release(packed);
    return status;
}

static qg_status put_scales(device_check *c, device_room room, const device_operand *o,
                            const void **scales) {
    qg_scale_order order = c->module->product_order(&o->recipe);
    const qg_blocks *blocks = &o->shape.blocks;
    int64_t size = qg_scale_order_size(order, blocks->block_rows, blocks->block_columns);
    void *stored, *inside = NULL;
    qg_status status = qg_allocate(&stored, size, o->shape.scale_bytes, "ordered scales");
    if (status != QG_OK)
        return status;
    qg_scale_order_store(order, blocks->block_rows, blocks->block_columns, o->shape.scale_bytes,
                         o->scales, stored);
    status = device_put(c, room, stored, size * o->shape.scale_bytes, &inside);
    *scales = inside;
    qg_release(stored);
    return status;
}

static qg_status put_operand(device_check *c, device_room codes, device_room scales,
                             const device_operand *o, qg_cuda_operand *out) {
    *out = (qg_cuda_operand){.recipe = o->recipe, .tensor_scale = o->tensor_scale};
    qg_status status = put_codes(c, codes, o, &out->codes);
    return status == QG_OK ? put_scales(c, scales, o, &out->scales) : status;
}

static qg_status on_device(device_check *c, device_product *p, void *out) {
    const int64_t workspace = c->is_small ? 1 << 16 : 32 << 20;
    qg_cuda_product call = {.m = p->a.rows,
                            .n = p->b.rows,
                            .k = p->a.k,
                            .a.recipe = p->a.recipe,
                            .b.recipe = p->b.recipe,
                            .out_type = p->out_type,
                            .accumulates_fast = p->accumulates_fast};
    int64_t bytes = call.m * call.n * device_type_bytes(p->out_type), damage = 0;
    void *inside = NULL;
    qg_status status = device_status(c, c->module->product_takes(&call, &c->error));
    if (status == QG_OK)
        status = put_operand(c, DEVICE_ROOM_A, DEVICE_ROOM_A_SCALES, &p->a, &call.a);
    if (status == QG_OK)
        status = put_operand(c, DEVICE_ROOM_B, DEVICE_ROOM_B_SCALES, &p->b, &call.b);
    if (status == QG_OK && p->bias) {
        status = device_put(c, DEVICE_ROOM_BIAS, p->bias, call.n * 4, &inside);
        call.bias = inside;
    }
    if (status == QG_OK && p->c) {
        status = device_put(c, DEVICE_ROOM_C, p->c, bytes, &inside);
        call.c = inside;
    }
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_OUT, bytes, &call.out);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_SCRATCH, workspace, &call.workspace);
    if (status == QG_OK) {
        call.workspace_bytes = workspace;
        status = device_status(c, c->module->product(&call, &c->error));
    }
    if (status == QG_OK)
        status = device_status(c, c->module->synchronize(&c->error));
    if (status == QG_OK)
        status = device_get(c, DEVICE_ROOM_OUT, out, bytes, &damage);
    p->algorithm = call.algorithm;
    if (status == QG_OK && damage)
        status = qg_fail(QG_ERROR_DATA, "the product changed %lld bytes outside of its output",
                         (long long)damage);
    return status;
}

qg_status device_multiply(device_check *c, device_product *p, void *out) {
    const char *simulated = c->simulated[p->accumulates_fast != 0];
    return simulated[0] ? device_expect(p, simulated, out) : on_device(c, p, out);
}

// -------------------------------------------------------------------------------- on the emulator

static qg_status fitted(const device_product *p, const char *name, qg_unit *unit) {
    qg_status status = qg_unit_parse(name, unit);
    if (status == QG_OK)
        qg_unit_fit(unit, &p->a.recipe, &p->b.recipe);
    return status == QG_OK ? qg_unit_takes(unit, &p->a.recipe, &p->b.recipe, p->a.k, QG_FORMAT_FP32)
                           : status;
}

void device_unit_fitted(const device_product *p, const char *unit, char name[DEVICE_UNIT_NAME]) {
    qg_unit made;
    if (fitted(p, unit, &made) == QG_OK)
        qg_unit_name(&made, name);
    else
        name[0] = 0;
}

// With C the library adds it to the scaled sum in binary32 and converts once.
static void add_c(const device_product *p, const float *sums, void *out) {
    int64_t count = p->a.rows * p->b.rows;
    for (int64_t i = 0; i < count; i++)
        device_store(p->out_type, sums[i] + device_element(p->out_type, p->c, i), out, i);
}

qg_status device_expect(const device_product *p, const char *name, void *out) {
    qg_unit unit;
    void *sums = NULL;
    qg_matmul_options options = {.out_type = p->c ? QG_FORMAT_FP32 : p->out_type, .bias = p->bias};
    qg_matmul_operand a = {&p->a.recipe, p->a.codes, p->a.scales, p->a.tensor_scale};
    qg_matmul_operand b = {&p->b.recipe, p->b.codes, p->b.scales, p->b.tensor_scale};
    qg_status status = fitted(p, name, &unit);
    if (status == QG_OK && p->c)
        status = qg_allocate(&sums, p->a.rows * p->b.rows, sizeof(float), "sums");
    if (status == QG_OK)
        status = qg_emulator_scaled_matmul(&unit, &options, p->a.rows, p->b.rows, p->a.k, &a, &b,
                                           p->c ? sums : out, NULL);
    if (status == QG_OK && p->c)
        add_c(p, sums, out);
    qg_release(sums);
    return status;
}
