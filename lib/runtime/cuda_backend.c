// Quantize, dequantize and multiply through the CUDA module: checks, device buffers, the choice of
// the kernel. See qg_cuda.h.
//
// Host tensors are copied in and results out; nothing stays on the device between calls. The bytes
// are the emulator's; of products those of the fallback are unit fp32_fma's, cuBLASLt's are its own.
#include <qg_block_scale.h>
#include <qg_cuda.h>
#include <qg_init.h>
#include <qg_memory.h>
#include <qg_size.h>
#include <storage_internal.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROOMS = 8, WORKSPACE_BYTES = 32 << 20 }; // cuBLASLt's advice for Hopper

static qg_kernel_lever lever;
static bool has_lever; // else that of the environment
static const qg_route *route;

void qg_cuda_use_lever(qg_kernel_lever wanted) {
    lever = wanted;
    has_lever = true;
}

void qg_cuda_use_route(const qg_route *wanted) { route = wanted; }

static void name_variant(const char **impl, const char *name) {
    if (impl)
        *impl = name;
}

// ----------------------------------------------------------------------------------------- buffers

// One call's hold on the module, which one thread at a time may use, and its device buffers.
typedef struct session {
    const qg_cuda_module *module;
    const qg_cuda_device *device;
    void *rooms[MOST_ROOMS];
    int count;
    qg_cuda_error error;
} session;

static pthread_mutex_t in_use = PTHREAD_MUTEX_INITIALIZER;

static qg_status session_open(session *s) {
    const char *reason;
    memset(s, 0, sizeof *s);
    pthread_mutex_lock(&in_use);
    s->module = qg_cuda_open(&s->device, NULL, &reason);
    return s->module ? QG_OK : qg_fail(QG_ERROR_ENVIRONMENT, "%s", reason);
}

static void release_rooms(session *s) {
    while (s->count > 0)
        s->module->release(s->rooms[--s->count]);
}

static void session_close(session *s) {
    release_rooms(s);
    pthread_mutex_unlock(&in_use);
}

// What the module returned, with its line as the detail.
static qg_status told(const session *s, qg_status status) {
    return status == QG_OK ? QG_OK : qg_fail(status, "cuda: %s", s->error.text);
}

static qg_status take(session *s, int64_t bytes, void **out) {
    if (s->count == MOST_ROOMS)
        return qg_fail(QG_ERROR_MEMORY, "cuda: more than %d buffers", (int)MOST_ROOMS);
    qg_status status = told(s, s->module->allocate(bytes, out, &s->error));
    if (status == QG_OK)
        s->rooms[s->count++] = *out;
    return status;
}

// A copy of host memory.
static qg_status take_copy(session *s, const void *from, int64_t bytes, void **out) {
    qg_status status = take(s, bytes, out);
    return status == QG_OK ? told(s, s->module->copy_in(*out, from, bytes, &s->error)) : status;
}

static qg_status bring(session *s, void *to, const void *from, int64_t bytes) {
    return told(s, s->module->copy_out(to, from, bytes, &s->error));
}

static qg_status size_of(const char *what, int64_t rows, int64_t columns, int64_t size,
                         int64_t *bytes) {
    *bytes = 0;
    if (qg_size_multiply(rows, columns, bytes) && qg_size_multiply(*bytes, size, bytes))
        return QG_OK;
    return qg_fail(QG_ERROR_OVERFLOW, "%s of %lld x %lld exceed 2^63 - 1 bytes", what,
                   (long long)rows, (long long)columns);
}

// -------------------------------------------------------------------------------------- the choice

static int64_t input_bytes(qg_format type) { return type == QG_FORMAT_FP32 ? 4 : 2; }

static qg_status choose_kernel(const session *s, const qg_cuda_quantize *q, int32_t *kernel) {
    qg_kernel_request request = {.lever = lever,
                                 .twin_present = true,
                                 .shared_present = true,
                                 .m = q->m,
                                 .k = q->k,
                                 .group = q->recipe.layout.columns,
                                 .element_bytes = (int)input_bytes(q->input_type),
                                 .sm_count = s->device->sm_count,
                                 .route = route};
    *kernel = QG_GROUP_KERNEL_SHARED;
    if (q->recipe.layout.kind != QG_LAYOUT_GROUP)
        return QG_OK;
    qg_status status = has_lever ? QG_OK : qg_kernel_lever_of_environment(&request.lever);
    if (status != QG_OK)
        return status;
    qg_kernel_choice choice = qg_kernel_choose(&request);
    qg_kernel_choice_log(&choice);
    *kernel = choice.kernel;
    return QG_OK;
}

// The call without its buffers.
static qg_cuda_quantize describe(const qg_recipe *recipe, const qg_quantize_options *options,
                                 const qg_storage *storage, int64_t m, int64_t k) {
    qg_cuda_quantize q = {.recipe = *recipe,
                          .input_type = options->input_type,
                          .m = m,
                          .k = k,
                          .seed = options->seed,
                          .stream = options->stream};
    if (storage) {
        q.packed = storage->packed;
        q.order = storage->order;
    }
    if (recipe->rule == QG_RULE_DELAYED)
        q.history_amax = storage_history_amax(options);
    return q;
}

// ------------------------------------------------------------------------------------------ timing

typedef struct copy_job {
    const qg_cuda_module *module;
    void *from, *to;
    int64_t bytes;
} copy_job;

typedef struct quantize_job {
    const qg_cuda_module *module;
    const qg_cuda_quantize *q;
} quantize_job;

static qg_status launch_copy(void *context, int i, qg_cuda_error *error) {
    const copy_job *job = context;
    (void)i;
    return job->module->copy(job->to, job->from, job->bytes, error);
}

static qg_status launch_quantize(void *context, int i, qg_cuda_error *error) {
    const quantize_job *job = context;
    (void)i;
    return job->module->quantize(job->q, error);
}

static qg_status time_copy(session *s, const qg_cuda_timing *t) {
    copy_job job = {.module = s->module, .bytes = t->copy_bytes / 2};
    qg_status status = take(s, job.bytes, &job.from);
    if (status == QG_OK)
        status = take(s, job.bytes, &job.to);
    if (status == QG_OK)
        status = told(s, s->module->fill(job.from, 1, job.bytes, &s->error));
    return status == QG_OK ? told(s, s->module->time(launch_copy, &job, t->launches, t->repeats,
                                                     t->copy_seconds, &s->error))
                           : status;
}

static qg_status time_launches(session *s, const qg_cuda_quantize *q, const qg_cuda_timing *t) {
    quantize_job job = {s->module, q};
    qg_status status = told(
        s, s->module->time(launch_quantize, &job, t->launches, t->repeats, t->seconds, &s->error));
    return status == QG_OK && t->copy_bytes > 0 ? time_copy(s, t) : status;
}

// ---------------------------------------------------------------------------------------- quantize

// Buffers, copies and launches; with `timing` also that.
static qg_status run_quantize(session *s, qg_cuda_quantize *q, const qg_storage_shape *stored,
                              const void *x, const void *up, int64_t bytes,
                              const qg_cuda_timing *timing) {
    void *room[6] = {NULL};
    qg_status status = choose_kernel(s, q, &q->kernel);
    if (status == QG_OK)
        status = take_copy(s, x, bytes, &room[0]);
    if (status == QG_OK && up)
        status = take_copy(s, up, bytes, &room[1]);
    if (status == QG_OK)
        status = take(s, stored->codes_size, &room[2]);
    if (status == QG_OK)
        status = take(s, stored->scales_size, &room[3]);
    if (status == QG_OK && stored->shape.has_tensor_scale)
        status = take(s, sizeof(float), &room[4]);
    q->x = room[0], q->up = room[1];
    q->codes = room[2], q->scales = room[3], q->tensor_scale = room[4];
    if (status == QG_OK) // of a call that is otherwise complete
        status = take(s, s->module->quantize_scratch(q), &room[5]);
    q->scratch = room[5];
    if (status == QG_OK)
        status = told(s, s->module->quantize(q, &s->error));
    return status == QG_OK && timing ? time_launches(s, q, timing) : status;
}

static qg_status quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                          const qg_storage *storage, int64_t m, int64_t k, const void *x,
                          const void *up, uint8_t *codes, uint8_t *scales, float *tensor_scale,
                          const char **impl, const qg_cuda_timing *timing) {
    qg_storage_shape stored;
    int64_t bytes;
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &stored);
    if (status == QG_OK)
        status = storage_check_options(recipe, options, &stored.shape, tensor_scale);
    if (status == QG_OK)
        status = size_of("elements", m, k, input_bytes(options->input_type), &bytes);
    if (status != QG_OK)
        return status;
    qg_cuda_quantize q = describe(recipe, options, storage, m, k);
    session s;
    status = session_open(&s);
    if (status == QG_OK)
        status = run_quantize(&s, &q, &stored, x, up, bytes, timing);
    if (status == QG_OK)
        status = bring(&s, codes, q.codes, stored.codes_size);
    if (status == QG_OK)
        status = bring(&s, scales, q.scales, stored.scales_size);
    if (status == QG_OK && q.tensor_scale)
        status = bring(&s, tensor_scale, q.tensor_scale, sizeof *tensor_scale);
    else if (status == QG_OK && tensor_scale)
        *tensor_scale = 1.0f;
    if (status == QG_OK)
        name_variant(impl, s.module->quantize_name(&q));
    session_close(&s);
    return status;
}

qg_status qg_cuda_backend_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                   const qg_storage *storage, int64_t m, int64_t k, const void *x,
                                   uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                   const char **impl) {
    return quantize(recipe, options, storage, m, k, x, NULL, codes, scales, tensor_scale, impl,
                    NULL);
}

qg_status qg_cuda_backend_silu_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                        const qg_storage *storage, int64_t m, int64_t k,
                                        const void *gate, const void *up, uint8_t *codes,
                                        uint8_t *scales, float *tensor_scale, const char **impl) {
    return quantize(recipe, options, storage, m, k, gate, up, codes, scales, tensor_scale, impl,
                    NULL);
}

qg_status qg_cuda_time_quantize(const qg_recipe *recipe, const qg_quantize_options *options,
                                const qg_storage *storage, int64_t m, int64_t k, const void *x,
                                uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                const char **impl, const qg_cuda_timing *timing) {
    return quantize(recipe, options, storage, m, k, x, NULL, codes, scales, tensor_scale, impl,
                    timing);
}

// -------------------------------------------------------------------------------------- dequantize

// (m, k) binary32 on the device, of codes and scales on the host.
static qg_status run_dequantize(session *s, const qg_recipe *recipe, const qg_storage *storage,
                                const qg_storage_shape *stored, const uint8_t *codes,
                                const uint8_t *scales, float tensor_scale, float **q) {
    const qg_blocks *blocks = &stored->shape.blocks;
    qg_cuda_dequantize d = {.recipe = *recipe,
                            .m = blocks->m,
                            .k = blocks->k,
                            .tensor_scale = tensor_scale,
                            .out_type = QG_FORMAT_FP32};
    void *room[2] = {NULL};
    int64_t bytes;
    if (storage) {
        d.packed = storage->packed;
        d.order = storage->order;
    }
    qg_status status = size_of("values", d.m, d.k, sizeof(float), &bytes);
    if (status == QG_OK)
        status = take_copy(s, codes, stored->codes_size, &room[0]);
    if (status == QG_OK)
        status = take_copy(s, scales, stored->scales_size, &room[1]);
    if (status == QG_OK)
        status = take(s, bytes, &d.q);
    d.codes = room[0], d.scales = room[1];
    *q = d.q;
    return status == QG_OK ? told(s, s->module->dequantize(&d, &s->error)) : status;
}

qg_status qg_cuda_backend_dequantize(const qg_recipe *recipe, const qg_storage *storage, int64_t m,
                                     int64_t k, const uint8_t *codes, const uint8_t *scales,
                                     float tensor_scale, int threads, float *q, const char **impl) {
    qg_storage_shape stored;
    session s;
    float *values = NULL;
    (void)threads;
    qg_status status = qg_storage_shape_of(recipe, storage, m, k, &stored);
    if (status != QG_OK)
        return status;
    status = session_open(&s);
    if (status == QG_OK)
        status = run_dequantize(&s, recipe, storage, &stored, codes, scales, tensor_scale, &values);
    if (status == QG_OK)
        status = bring(&s, q, values, m * k * (int64_t)sizeof *q); // it fits: it was allocated
    if (status == QG_OK)
        name_variant(impl, "dequantize");
    session_close(&s);
    return status;
}

// ---------------------------------------------------------------------------------------- products

typedef struct product {
    const qg_matmul_options *options;
    int64_t m, n, k, out_bytes;
    const qg_matmul_operand *operand[2];
    qg_storage_shape stored[2]; // as the emulator stores them
} product;

static qg_status check_product(const qg_unit *unit, product *p, const void *out) {
    if (unit && unit->id != QG_UNIT_NATIVE)
        return qg_fail(QG_ERROR_UNSUPPORTED, "backend cuda has no unit but native");
    if (!p->options || !out)
        return qg_fail(QG_ERROR_ARGUMENT, "a product needs options and room for its result");
    qg_format type = p->options->out_type;
    if (type != QG_FORMAT_FP32 && type != QG_FORMAT_BF16 && type != QG_FORMAT_FP16)
        return qg_fail(QG_ERROR_ARGUMENT, "the output of a product is fp32, bf16 or fp16");
    qg_status status = QG_OK;
    for (int i = 0; i < 2 && status == QG_OK; i++)
        status =
            qg_storage_shape_of(p->operand[i]->recipe, NULL, i ? p->n : p->m, p->k, &p->stored[i]);
    if (status == QG_OK)
        status = size_of("outputs", p->m, p->n, input_bytes(type), &p->out_bytes);
    return status;
}

static qg_status take_bias(session *s, const product *p, const float **bias) {
    void *room = NULL;
    qg_status status = QG_OK;
    if (p->options->bias)
        status = take_copy(s, p->options->bias, p->n * (int64_t)sizeof(float), &room);
    *bias = room;
    return status;
}

// Dequantized on the device and multiplied there: the arithmetic of unit fp32_fma.
static qg_status multiply_values(session *s, const product *p, void **out) {
    float *values[2] = {NULL};
    qg_cuda_multiply call = {.m = p->m, .n = p->n, .k = p->k, .out_type = p->options->out_type};
    qg_status status = QG_OK;
    for (int i = 0; i < 2 && status == QG_OK; i++) {
        const qg_matmul_operand *o = p->operand[i];
        status = run_dequantize(s, o->recipe, NULL, &p->stored[i], o->codes, o->scales,
                                o->tensor_scale, &values[i]);
    }
    if (status == QG_OK)
        status = take_bias(s, p, &call.bias);
    if (status == QG_OK)
        status = take(s, p->out_bytes, &call.out);
    call.a = values[0], call.b = values[1];
    *out = call.out;
    return status == QG_OK ? told(s, s->module->multiply(&call, &s->error)) : status;
}

// What the library gets of an operand before there are buffers.
static qg_cuda_operand bare_operand(const product *p, int i) {
    const qg_matmul_operand *o = p->operand[i];
    return (qg_cuda_operand){.recipe = *o->recipe,
                             .tensor_scale =
                                 p->stored[i].shape.has_tensor_scale ? o->tensor_scale : 1.0f};
}

// FP4 packed, scales in the order of the library, both rearranged on the host.
static qg_status take_operand(session *s, const product *p, int i, qg_cuda_operand *out) {
    const qg_matmul_operand *o = p->operand[i];
    const qg_blocks *blocks = &p->stored[i].shape.blocks;
    int bits = qg_format_describe(o->recipe->element).bits;
    qg_storage storage = {.packed = bits == 4, .order = s->module->product_order(o->recipe)};
    qg_storage_shape stored;
    void *codes = NULL, *scales = NULL, *room[2] = {NULL};
    qg_status status = qg_storage_shape_of(o->recipe, &storage, blocks->m, blocks->k, &stored);
    if (status == QG_OK && storage.packed)
        status = qg_allocate(&codes, stored.codes_size, 1, "packed codes");
    if (status == QG_OK)
        status = qg_allocate(&scales, stored.scales_size, 1, "scales in the library's order");
    if (status == QG_OK) {
        if (codes)
            storage_pack_rows(bits, blocks->m, blocks->k, o->codes, stored.row_bytes, codes);
        qg_scale_order_store(storage.order, blocks->block_rows, blocks->block_columns,
                             stored.shape.scale_bytes, o->scales, scales);
        status = take_copy(s, codes ? codes : o->codes, stored.codes_size, &room[0]);
    }
    if (status == QG_OK)
        status = take_copy(s, scales, stored.scales_size, &room[1]);
    out->codes = room[0], out->scales = room[1];
    qg_release(codes);
    qg_release(scales);
    return status;
}

// QG_ERROR_UNSUPPORTED with the reason in s->error: the library does not take it.
static qg_status multiply_by_library(session *s, const product *p, qg_cuda_product *call) {
    qg_status status = s->module->product_takes(call, &s->error);
    if (status != QG_OK)
        return status == QG_ERROR_UNSUPPORTED ? status : told(s, status);
    status = take_operand(s, p, 0, &call->a);
    if (status == QG_OK)
        status = take_operand(s, p, 1, &call->b);
    if (status == QG_OK)
        status = take_bias(s, p, &call->bias);
    if (status == QG_OK)
        status = take(s, p->out_bytes, &call->out);
    if (status == QG_OK)
        status = take(s, call->workspace_bytes, &call->workspace);
    if (status != QG_OK)
        return status;
    status = s->module->product(call, &s->error);
    return status == QG_ERROR_UNSUPPORTED ? status : told(s, status);
}

// The text stays until the thread's next product.
static qg_status run_product(session *s, const product *p, void **out, const char **impl) {
    static _Thread_local char text[QG_CUDA_TEXT + 16];
    qg_cuda_product call = {.m = p->m,
                            .n = p->n,
                            .k = p->k,
                            .a = bare_operand(p, 0),
                            .b = bare_operand(p, 1),
                            .out_type = p->options->out_type,
                            .bias = p->options->bias, // not read, but it counts
                            .workspace_bytes = WORKSPACE_BYTES};
    qg_status status = multiply_by_library(s, p, &call);
    if (status == QG_ERROR_UNSUPPORTED) {
        snprintf(text, sizeof text, "fp32_fma: %s", s->error.text);
        release_rooms(s);
        status = multiply_values(s, p, out);
    } else if (status == QG_OK) {
        const qg_cuda_algorithm *a = &call.algorithm;
        snprintf(text, sizeof text, "cublaslt: algo %d tile %d stages %d splitk %d", (int)a->id,
                 (int)a->tile, (int)a->stages, (int)a->splitk);
        *out = call.out;
    }
    if (status == QG_OK)
        name_variant(impl, text);
    return status;
}

qg_status qg_cuda_backend_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options,
                                        int64_t m, int64_t n, int64_t k, const qg_matmul_operand *a,
                                        const qg_matmul_operand *b, void *out, const char **impl) {
    product p = {
        .options = options, .m = m, .n = n, .k = k, .operand = {a, b}
    };
    session s;
    void *room = NULL;
    qg_status status = check_product(unit, &p, out);
    if (status != QG_OK)
        return status;
    status = session_open(&s);
    if (status == QG_OK)
        status = run_product(&s, &p, &room, impl);
    if (status == QG_OK)
        status = bring(&s, out, room, p.out_bytes);
    session_close(&s);
    return status;
}
