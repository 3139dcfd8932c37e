// One quantization on the device between guards, and its comparison. See device_run.h.
#include <device_run.h>

#include <qg_clock.h>
#include <qg_memory.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <qg_silu.h>

#include <string.h>

bool device_is_late(const device_check *c) { return c->deadline > 0 && qg_clock() > c->deadline; }

qg_status device_status(device_check *c, qg_status status) {
    return status == QG_OK ? QG_OK : qg_fail(status, "%s", c->error.text);
}

// ----------------------------------------------------------------------------------------- memory

qg_status device_take(device_check *c, device_room room, int64_t bytes, void **inside) {
    int64_t whole = bytes + 2 * DEVICE_GUARD_BYTES;
    qg_status status = QG_OK;
    *inside = NULL;
    if (c->room[room].capacity < whole) {
        void *base = NULL;
        c->module->release(c->room[room].base);
        c->room[room].capacity = 0;
        status = c->module->allocate(whole, &base, &c->error);
        c->room[room].base = base;
        if (status != QG_OK)
            return device_status(c, status);
        c->room[room].capacity = whole;
    }
    *inside = c->room[room].base + DEVICE_GUARD_BYTES;
    return device_status(c, c->module->fill(c->room[room].base, DEVICE_POISON, whole, &c->error));
}

qg_status device_put(device_check *c, device_room room, const void *from, int64_t bytes,
                     void **inside) {
    qg_status status = device_take(c, room, bytes, inside);
    return status == QG_OK ? device_status(c, c->module->copy_in(*inside, from, bytes, &c->error))
                           : status;
}

static qg_status count_damage(device_check *c, const uint8_t *guard, int64_t *damage) {
    uint8_t bytes[DEVICE_GUARD_BYTES];
    qg_status status = c->module->copy_out(bytes, guard, sizeof bytes, &c->error);
    for (size_t i = 0; status == QG_OK && i < sizeof bytes; i++)
        *damage += bytes[i] != DEVICE_POISON;
    return device_status(c, status);
}

qg_status device_get(device_check *c, device_room room, void *to, int64_t bytes, int64_t *damage) {
    const uint8_t *base = c->room[room].base;
    qg_status status =
        device_status(c, c->module->copy_out(to, base + DEVICE_GUARD_BYTES, bytes, &c->error));
    if (status == QG_OK)
        status = count_damage(c, base, damage);
    if (status == QG_OK)
        status = count_damage(c, base + DEVICE_GUARD_BYTES + bytes, damage);
    return status;
}

void device_release_rooms(device_check *c) {
    for (int i = 0; i < DEVICE_ROOM_COUNT; i++)
        if (c->room[i].base)
            c->module->release(c->room[i].base);
    memset(c->room, 0, sizeof c->room);
}

// ----------------------------------------------------------------------------------- quantization

qg_status device_quantized_open(const device_job *job, device_quantized *out) {
    void *codes = NULL, *scales = NULL;
    *out = (device_quantized){.tensor_scale = 1};
    qg_status status =
        qg_storage_shape_of(&job->recipe, &job->storage, job->x->m, job->x->k, &out->shape);
    if (status == QG_OK)
        status = qg_allocate(&codes, out->shape.codes_size, 1, "codes");
    if (status == QG_OK)
        status = qg_allocate(&scales, out->shape.scales_size, 1, "scales");
    out->codes = codes;
    out->scales = scales;
    return status;
}

void device_quantized_free(device_quantized *q) {
    qg_release(q->codes);
    qg_release(q->scales);
    *q = (device_quantized){0};
}

qg_cuda_quantize device_call_of(const device_job *job) {
    return (qg_cuda_quantize){
        .recipe = job->recipe,
        .input_type = job->x->type,
        .kernel = job->kernel,
        .packed = job->storage.packed,
        .order = job->storage.order,
        .m = job->x->m + job->extra_rows,
        .k = job->x->k,
        .seed = job->seed,
        .stream = QG_STREAM_ROUNDING,
        .history_amax = job->history_amax,
    };
}

// x of the device; a kernel that is told of more rows finds them.
static qg_status put_input(device_check *c, const device_job *job, const device_input *input,
                           device_room room, const void **inside) {
    int64_t row = input->k * device_type_bytes(input->type), bytes = input->m * row;
    void *at = NULL;
    qg_status status = device_take(c, room, bytes + job->extra_rows * row, &at);
    if (status == QG_OK)
        status = device_status(c, c->module->copy_in(at, input->raw, bytes, &c->error));
    *inside = at;
    return status;
}

static qg_status put_call(device_check *c, const device_job *job, const device_quantized *out,
                          qg_cuda_quantize *call) {
    void *codes = NULL, *scales = NULL, *tensor_scale = NULL, *scratch = NULL;
    *call = device_call_of(job);
    qg_status status = put_input(c, job, job->x, DEVICE_ROOM_X, &call->x);
    if (status == QG_OK && job->up)
        status = put_input(c, job, job->up, DEVICE_ROOM_UP, &call->up);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_CODES, out->shape.codes_size, &codes);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_SCALES, out->shape.scales_size, &scales);
    if (status == QG_OK && out->shape.shape.has_tensor_scale)
        status = device_take(c, DEVICE_ROOM_TENSOR_SCALE, sizeof(float), &tensor_scale);
    if (status == QG_OK)
        status = device_take(c, DEVICE_ROOM_SCRATCH, c->module->quantize_scratch(call), &scratch);
    call->codes = codes;
    call->scales = scales;
    call->tensor_scale = tensor_scale;
    call->scratch = scratch;
    return status;
}

static qg_status get_result(device_check *c, const qg_cuda_quantize *call, device_quantized *out) {
    out->damage = 0;
    qg_status status =
        device_get(c, DEVICE_ROOM_CODES, out->codes, out->shape.codes_size, &out->damage);
    if (status == QG_OK)
        status =
            device_get(c, DEVICE_ROOM_SCALES, out->scales, out->shape.scales_size, &out->damage);
    if (status == QG_OK && call->tensor_scale)
        status = device_get(c, DEVICE_ROOM_TENSOR_SCALE, &out->tensor_scale,
                            sizeof out->tensor_scale, &out->damage);
    return status;
}

qg_status device_quantize(device_check *c, const device_job *job, device_quantized *out) {
    qg_cuda_quantize call;
    qg_status status = put_call(c, job, out, &call);
    if (status == QG_OK)
        status = device_status(c, c->module->quantize(&call, &c->error));
    if (status == QG_OK)
        status = device_status(c, c->module->synchronize(&c->error));
    return status == QG_OK ? get_result(c, &call, out) : status;
}

// What is quantized where there is an `up`: SiLU of the gate times it, whose values the emulator
// takes as binary32. No recipe that is tried with one looks at the input type.
static qg_status emulate_activated(const device_job *job, const qg_backend *emulator,
                                   const qg_quantize_options *options, device_quantized *out) {
    int64_t count = job->x->m * job->x->k;
    void *room;
    qg_status status = qg_allocate(&room, count, sizeof(float), "an activation");
    if (status != QG_OK)
        return status;
    float *activated = room;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++)
        activated[i] = qg_silu_times_up(job->x->wide[i], job->up->wide[i]);
    status = emulator->quantize(&job->recipe, options, &job->storage, job->x->m, job->x->k,
                                activated, out->codes, out->scales, &out->tensor_scale, NULL);
    qg_release(room);
    return status;
}

qg_status device_emulate(const device_job *job, device_quantized *out) {
    const qg_backend *emulator = qg_backend_find("emulator");
    qg_quantize_options options = {.input_type = job->up ? QG_FORMAT_FP32 : job->x->type,
                                   .seed = job->seed,
                                   .stream = QG_STREAM_ROUNDING,
                                   .amax_history = &job->history_amax,
                                   .history_length = job->recipe.rule == QG_RULE_DELAYED};
    out->damage = 0;
    if (job->up)
        return emulate_activated(job, emulator, &options, out);
    return emulator->quantize(&job->recipe, &options, &job->storage, job->x->m, job->x->k,
                              job->x->raw, out->codes, out->scales, &out->tensor_scale, NULL);
}

// ------------------------------------------------------------------------------------- comparison

static int64_t different_bytes(const uint8_t *a, const uint8_t *b, int64_t count) {
    int64_t different = 0;
    if (memcmp(a, b, (size_t)count) == 0)
        return 0;
    for (int64_t i = 0; i < count; i++)
        different += a[i] != b[i];
    return different;
}

device_difference device_compare(const device_quantized *wanted, const device_quantized *got) {
    device_difference d = {
        .codes = different_bytes(wanted->codes, got->codes, wanted->shape.codes_size),
        .scales = different_bytes(wanted->scales, got->scales, wanted->shape.scales_size),
        .guards = got->damage,
    };
    if (wanted->shape.shape.has_tensor_scale)
        d.scales += different_bytes((const uint8_t *)&wanted->tensor_scale,
                                    (const uint8_t *)&got->tensor_scale, sizeof(float));
    return d;
}

// ------------------------------------------------------------------------------------------ names

void device_recipe_axes(const qg_recipe *recipe, const char *format, char axes[DEVICE_AXES_SIZE]) {
    char layout[QG_LAYOUT_NAME_SIZE], rule[QG_NAME_SIZE], rounding[QG_NAME_SIZE];
    qg_layout_name(recipe->layout, layout);
    qg_rule_name(recipe->rule, recipe->fixed_scale, rule);
    qg_rounding_name(recipe->conversion.rounding, rounding);
    snprintf(axes, DEVICE_AXES_SIZE, "%s\t%s\t%s\t%s", format, layout, rule, rounding);
}

void device_storage_name(const qg_storage *storage, char name[64]) {
    char order[QG_LAYOUT_NAME_SIZE];
    qg_scale_order_name(storage->order, order);
    snprintf(name, 64, "%s%s", storage->packed ? "packed " : "", order);
}
