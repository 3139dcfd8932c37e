// A CUDA module without CUDA: it records what it is asked for, answers what a test tells it, counts
// allocations, and can let any call fail. Codes, scales and values are patterns.
#include <qg_partition.h>
#include <recording.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static recording r;

recording *recording_module(void);
recording *recording_module(void) { return &r; }

static qg_status answer(qg_cuda_error *error) {
    if (++r.calls != r.fail_at)
        return QG_OK;
    snprintf(error->text, sizeof error->text, "call %d failed", r.calls);
    return QG_ERROR_ENVIRONMENT;
}

// ------------------------------------------------------------------------------------------ memory

// The size lies before the room, so that sizes can be recorded.
enum { HEAD = 256 };

static qg_cuda_absence open_device(qg_cuda_device *device, qg_cuda_error *error) {
    (void)error;
    *device = (qg_cuda_device){.name = "Recorder", .architecture = 90, .sm_count = 4};
    return QG_CUDA_ABSENT_NONE;
}

static qg_status allocate(int64_t bytes, void **out, qg_cuda_error *error) {
    qg_status status = answer(error);
    *out = NULL;
    if (status != QG_OK)
        return status;
    char *room = malloc((size_t)(bytes + HEAD));
    if (!room)
        return QG_ERROR_MEMORY;
    memcpy(room, &bytes, sizeof bytes);
    *out = room + HEAD;
    r.live++;
    r.most_bytes = bytes > r.most_bytes ? bytes : r.most_bytes;
    return QG_OK;
}

static void release(void *pointer) {
    if (!pointer)
        return;
    r.live--;
    free((char *)pointer - HEAD);
}

static void keep(const void *room, recorded_bytes *out) {
    memset(out, 0, sizeof *out);
    if (!room)
        return;
    memcpy(&out->size, (const char *)room - HEAD, sizeof out->size);
    memcpy(out->bytes, room, (size_t)(out->size < RECORDING_BYTES ? out->size : RECORDING_BYTES));
}

static int64_t size_of(const void *room) {
    int64_t size;
    memcpy(&size, (const char *)room - HEAD, sizeof size);
    return size;
}

static qg_status copy_any(void *to, const void *from, int64_t bytes, qg_cuda_error *error) {
    qg_status status = answer(error);
    if (status == QG_OK)
        memcpy(to, from, (size_t)bytes);
    return status;
}

static qg_status copy(void *to, const void *from, int64_t bytes, qg_cuda_error *error) {
    r.copies++;
    return copy_any(to, from, bytes, error);
}

static qg_status fill(void *to, uint8_t value, int64_t bytes, qg_cuda_error *error) {
    qg_status status = answer(error);
    if (status == QG_OK)
        memset(to, value, (size_t)bytes);
    return status;
}

static qg_status synchronize(qg_cuda_error *error) { return answer(error); }

// ----------------------------------------------------------------------------------------- kernels

static int64_t quantize_scratch(const qg_cuda_quantize *q) { return 32 + q->m; }

static const char *quantize_name(const qg_cuda_quantize *q) {
    return q->kernel == QG_GROUP_KERNEL_HOPPER ? "group_hopper" : "another";
}

static qg_status quantize(const qg_cuda_quantize *q, qg_cuda_error *error) {
    qg_status status = answer(error);
    r.quantizations++;
    r.quantize = *q;
    keep(q->x, &r.x);
    keep(q->up, &r.up);
    if (status != QG_OK)
        return status;
    for (int64_t i = 0; i < size_of(q->codes); i++)
        q->codes[i] = (uint8_t)(i + 1);
    for (int64_t i = 0; i < size_of(q->scales); i++)
        q->scales[i] = (uint8_t)(200 - i);
    if (q->tensor_scale)
        *q->tensor_scale = 3.5f;
    memset(q->scratch, 0, (size_t)quantize_scratch(q));
    return QG_OK;
}

// q = code * tensor scale.
static qg_status dequantize(const qg_cuda_dequantize *d, qg_cuda_error *error) {
    qg_status status = answer(error);
    r.dequantize[r.dequantizations++ % 2] = *d;
    for (int64_t i = 0; status == QG_OK && i < d->m * d->k; i++)
        ((float *)d->q)[i] = (float)d->codes[i] * d->tensor_scale;
    return status;
}

static qg_status multiply(const qg_cuda_multiply *p, qg_cuda_error *error) {
    qg_status status = answer(error);
    r.multiplications++;
    r.multiply = *p;
    for (int64_t i = 0; status == QG_OK && i < p->m * p->n; i++) {
        float sum = 0;
        for (int64_t l = 0; l < p->k; l++)
            sum = fmaf(p->a[i / p->n * p->k + l], p->b[i % p->n * p->k + l], sum);
        ((float *)p->out)[i] = sum + (p->bias ? p->bias[i % p->n] : 0);
    }
    return status;
}

// ---------------------------------------------------------------------------------------- products

static qg_scale_order product_order(const qg_recipe *recipe) {
    (void)recipe;
    return r.order;
}

static qg_status told(qg_status status, qg_cuda_error *error) {
    if (status != QG_OK)
        memcpy(error->text, r.reason, sizeof error->text);
    return status;
}

static qg_status product_takes(const qg_cuda_product *p, qg_cuda_error *error) {
    r.asked = *p;
    return told(r.takes, error);
}

static qg_status product(qg_cuda_product *p, qg_cuda_error *error) {
    qg_status status = answer(error);
    r.products++;
    r.product = *p;
    r.product_bias = p->bias ? p->bias[p->n - 1] : 0;
    const qg_cuda_operand *operands[] = {&p->a, &p->b};
    for (int i = 0; i < 2; i++) {
        keep(operands[i]->codes, &r.codes[i]);
        keep(operands[i]->scales, &r.scales[i]);
    }
    if (status == QG_OK)
        status = told(r.product_status, error);
    for (int64_t i = 0; status == QG_OK && i < p->m * p->n; i++)
        ((float *)p->out)[i] = 42;
    p->algorithm = (qg_cuda_algorithm){.id = 66, .tile = 20, .stages = 36, .splitk = 1};
    return status;
}

// ------------------------------------------------------------------------------------------ timing

static qg_status time_calls(qg_status (*run)(void *context, int i, qg_cuda_error *error),
                            void *context, int launches, int repeats, double *seconds,
                            qg_cuda_error *error) {
    qg_status status = answer(error);
    r.launches = launches;
    r.repeats = repeats;
    for (int i = 0; i < launches && status == QG_OK; i++)
        status = run(context, i, error);
    for (int i = 0; i < repeats; i++)
        seconds[i] = 1e-3 * (i + 1);
    return status;
}

const qg_cuda_module *quantgauge_cuda_module(void);
const qg_cuda_module *quantgauge_cuda_module(void) {
    static const qg_cuda_module module = {.abi = QG_CUDA_ABI,
                                          .size = (int32_t)sizeof(qg_cuda_module),
                                          .open = open_device,
                                          .allocate = allocate,
                                          .release = release,
                                          .copy_in = copy_any,
                                          .copy_out = copy_any,
                                          .fill = fill,
                                          .copy = copy,
                                          .synchronize = synchronize,
                                          .quantize_scratch = quantize_scratch,
                                          .quantize_name = quantize_name,
                                          .quantize = quantize,
                                          .dequantize = dequantize,
                                          .multiply = multiply,
                                          .product_order = product_order,
                                          .product_takes = product_takes,
                                          .product = product,
                                          .time = time_calls};
    return &module;
}
