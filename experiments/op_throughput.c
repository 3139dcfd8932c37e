// Operation `throughput`: the time that a backend's quantize takes, beside memcpy's (of cuda: a copy
// on the device).
//
// A sample is as many calls as fill SAMPLE_SECONDS, on the data of the case, which stay in the
// caches if they fit; samples are taken until there are enough of them and BUDGET seconds are over.
// bytes: what every pass over memory must read and write: the input once, or twice where the amax of
// the whole tensor comes first; the codes, one byte each, and the scales.
// Everything that depends on time is in /timing, which no digest covers; output_digest is that of
// operation `error`.
#include <op_internal.h>

#include <qg_backend_list.h>
#include <qg_clock.h>
#include <qg_cpu.h>
#include <qg_cuda.h>
#include <qg_memory.h>
#include <qg_size.h>
#include <qg_workspace.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_SAMPLES = 5, MOST_SAMPLES = 32, MOST_CALLS = 1 << 16 };
static const double SAMPLE_SECONDS = 2e-4, BUDGET = 0.012;

typedef struct job {
    const qg_case *c;
    const qg_backend *backend;
    const char *impl;
    qg_quantizing quantizing;
    qg_shape shape;
    const void *x; // raw
    uint8_t *codes, *scales;
    float tensor_scale;
    qg_status status;
} job;

// ---------------------------------------------------------------------------------------- samples

// What is timed.
typedef struct timed {
    void (*call)(void *context);
    void *context;
} timed;

static double time_calls(const timed *t, int64_t calls) {
    double start = qg_clock();
    for (int64_t i = 0; i < calls; i++)
        t->call(t->context);
    return qg_clock() - start;
}

// Calls of a sample. The doubling also warms up.
static int64_t choose_calls(const timed *t) {
    int64_t calls = 1;
    time_calls(t, 1);
    while (calls < MOST_CALLS && time_calls(t, calls) < SAMPLE_SECONDS)
        calls *= 2;
    return calls;
}

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static double median_of(int count, double *values) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

// Overwrites the samples.
static void summarise(int count, double *sample, qg_timing *out) {
    out->samples = count;
    out->median_s = median_of(count, sample);
    out->min_s = sample[0];
    out->max_s = sample[count - 1];
    for (int i = 0; i < count; i++)
        sample[i] = fabs(sample[i] - out->median_s);
    out->mad_s = median_of(count, sample);
}

static void take_samples(const timed *t, qg_timing *out) {
    double sample[MOST_SAMPLES], spent = 0;
    int64_t calls = choose_calls(t);
    int count = 0;
    while (count < MOST_SAMPLES && (count < LEAST_SAMPLES || spent < BUDGET)) {
        double seconds = time_calls(t, calls);
        sample[count++] = seconds / (double)calls;
        spent += seconds;
    }
    summarise(count, sample, out);
}

// ----------------------------------------------------------------------------------------- memcpy

typedef struct copy {
    char *from, *to;
    int64_t bytes;
    int threads;
} copy;

static void call_copy(void *context) {
    const copy *c = context;
    enum { PIECE = 1 << 16 };
    int64_t pieces = qg_ceil_divide(c->bytes, PIECE);
#pragma omp parallel for schedule(static) num_threads(c->threads) if (c->threads > 1)
    for (int64_t i = 0; i < pieces; i++) {
        int64_t at = i * PIECE, size = c->bytes - at < PIECE ? c->bytes - at : PIECE;
        memcpy(c->to + at, c->from + at, (size_t)size);
    }
}

// Bytes read and written per second, by size class: what memcpy moves depends on where its data lie.
enum { CLASSES = 48 };
static const char TIMES_LABEL[] = "memcpy";

static qg_status find_times(qg_workspace *workspace, double **times) {
    void *room = qg_workspace_find(workspace, QG_BUFFER_COPY_TIMES, TIMES_LABEL);
    *times = room;
    if (room)
        return QG_OK;
    qg_status status =
        qg_workspace_room(workspace, QG_BUFFER_COPY_TIMES, CLASSES, sizeof **times, &room);
    if (status != QG_OK)
        return status;
    *times = room;
    memset(room, 0, CLASSES * sizeof **times);
    qg_workspace_label(workspace, QG_BUFFER_COPY_TIMES, TIMES_LABEL);
    return QG_OK;
}

// log2 of what is copied so that about (bytes) are read and written.
static int class_of(int64_t bytes) {
    int log2 = 6;
    while (log2 < CLASSES - 1 && (int64_t)1 << (log2 + 2) <= bytes)
        log2++;
    return log2;
}

static qg_status measure_copy(qg_workspace *workspace, int log2, int threads, double *per_second) {
    void *room;
    int64_t bytes = (int64_t)1 << log2;
    qg_status status = qg_workspace_room(workspace, QG_BUFFER_COPY, bytes, 2, &room);
    if (status != QG_OK)
        return status;
    copy c = {.from = room, .to = (char *)room + bytes, .bytes = bytes, .threads = threads};
    timed t = {call_copy, &c};
    qg_timing timing;
    memset(room, 1, (size_t)bytes * 2); // pages that were never written are one page of zeros
    take_samples(&t, &timing);
    *per_second = timing.min_s > 0 ? 2 * (double)bytes / timing.min_s : 0;
    return QG_OK;
}

// Both at their best: what else a machine does slows them down at different times. As many threads
// as quantize has: the size decides about both. A ratio that no kernel reaches says that memcpy was
// disturbed: it is measured again, and its best counts.
static qg_status compare_with_copy(const job *j, qg_workspace *workspace, qg_timing *timing) {
    enum { ATTEMPTS = 3 };
    static const double LIKELY = 1.5;
    int log2 = class_of(timing->bytes);
    double *times, rate = timing->min_s > 0 ? (double)timing->bytes / timing->min_s : 0;
    qg_status status = find_times(workspace, &times);
    for (int i = 0; i < ATTEMPTS && status == QG_OK && rate >= LIKELY * times[log2]; i++) {
        double per_second = 0;
        status = measure_copy(workspace, log2, j->quantizing.options.threads, &per_second);
        times[log2] = fmax(times[log2], per_second);
    }
    if (status == QG_OK && times[log2] > 0 && rate > 0)
        timing->memcpy_ratio = rate / times[log2];
    return status;
}

// --------------------------------------------------------------------------------------- quantize

static void call_quantize(void *context) {
    job *j = context;
    const qg_case *c = j->c;
    qg_status status = j->backend->quantize(c->recipe, &j->quantizing.options, NULL, c->m, c->k,
                                            j->x, j->codes, j->scales, &j->tensor_scale, &j->impl);
    if (status != QG_OK)
        j->status = status;
}

// Whether the whole input is read before its first code is written.
static bool reads_twice(const qg_recipe *r) {
    bool one_block = r->layout.kind == QG_LAYOUT_PER_TENSOR && r->rule != QG_RULE_DELAYED &&
                     r->rule != QG_RULE_FIXED;
    return one_block || qg_rule_has_tensor_scale(r->rule);
}

// Saturates.
static int64_t bytes_of(const qg_case *c, const qg_shape *shape) {
    int64_t input = c->input_type == QG_FORMAT_FP32 ? 4 : 2, bytes;
    if (reads_twice(c->recipe))
        input *= 2;
    if (!qg_size_multiply(c->m, c->k, &bytes) || !qg_size_multiply(bytes, input, &bytes) ||
        !qg_size_add(bytes, shape->codes_size, &bytes) ||
        !qg_size_add(bytes, shape->scales_size, &bytes))
        return INT64_MAX;
    return bytes;
}

static qg_status open_job(job *j, qg_workspace *workspace, qg_case_result *result) {
    const qg_case *c = j->c;
    qg_input input;
    void *codes = NULL, *scales = NULL;
    qg_status status = qg_workspace_input(workspace, c, 0, &input);
    if (status == QG_OK)
        status = qg_workspace_quantizing(workspace, c, 0, &j->quantizing);
    if (status == QG_OK)
        status = qg_workspace_raw(workspace, c, 0, &j->x);
    if (status == QG_OK)
        status = qg_shape_of(c->recipe, c->m, c->k, &j->shape);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, QG_BUFFER_CPU_CODES, j->shape.codes_size, 1, &codes);
    if (status == QG_OK)
        status =
            qg_workspace_room(workspace, QG_BUFFER_CPU_SCALES, j->shape.scales_size, 1, &scales);
    if (status != QG_OK)
        return status;
    result->input_digest = input.digest;
    j->codes = codes;
    j->scales = scales;
    j->tensor_scale = 1;
    return QG_OK;
}

static uint64_t digest_of(const job *j, qg_workspace *workspace) {
    qg_digest *digest = qg_workspace_digest(workspace);
    qg_digest_add(digest, j->codes, (size_t)j->shape.codes_size);
    qg_digest_add(digest, j->scales, (size_t)j->shape.scales_size);
    if (j->shape.has_tensor_scale)
        qg_digest_add(digest, &j->tensor_scale, sizeof j->tensor_scale);
    return qg_digest_value(digest);
}

static void name_impl(const job *j, qg_case_result *result) {
    const char *impl = j->impl && strcmp(j->impl, j->backend->name) != 0 ? j->impl : "";
    snprintf(result->impl_used, sizeof result->impl_used, "%s%s%s", j->backend->name,
             *impl ? " " : "", impl);
}

static qg_status measure_here(job *j, qg_workspace *workspace, qg_timing *timing) {
    timed t = {call_quantize, j};
    take_samples(&t, timing);
    return j->status == QG_OK ? compare_with_copy(j, workspace, timing) : j->status;
}

// Of graphs of launches on the device, as many as fill a sample: copies to it and back, which a clock
// here would count, are no part of it.
static qg_status measure_on_device(job *j, qg_timing *timing) {
    enum { MOST_LAUNCHES = 20 };
    const qg_case *c = j->c;
    double once, sample[MOST_SAMPLES], copied[MOST_SAMPLES];
    qg_cuda_timing t = {.launches = 1, .repeats = 1, .seconds = &once};
    qg_status status =
        qg_cuda_time_quantize(c->recipe, &j->quantizing.options, NULL, c->m, c->k, j->x, j->codes,
                              j->scales, &j->tensor_scale, &j->impl, &t);
    if (status != QG_OK)
        return status;
    double launches = SAMPLE_SECONDS / (once > 0 ? once : SAMPLE_SECONDS);
    t = (qg_cuda_timing){.repeats = once > BUDGET / LEAST_SAMPLES ? LEAST_SAMPLES : MOST_SAMPLES,
                         .seconds = sample,
                         .copy_bytes = timing->bytes,
                         .copy_seconds = copied};
    t.launches = launches < 1 ? 1 : launches > MOST_LAUNCHES ? MOST_LAUNCHES : (int)launches;
    status = qg_cuda_time_quantize(c->recipe, &j->quantizing.options, NULL, c->m, c->k, j->x,
                                   j->codes, j->scales, &j->tensor_scale, &j->impl, &t);
    if (status != QG_OK)
        return status;
    summarise(t.repeats, sample, timing);
    median_of(t.repeats, copied);
    if (timing->min_s > 0 && copied[0] > 0)
        timing->memcpy_ratio = copied[0] / timing->min_s; // of the same bytes
    return QG_OK;
}

static qg_status measure(job *j, qg_workspace *workspace, qg_case_result *result) {
    qg_timing *timing = &result->timing;
    qg_status status = open_job(j, workspace, result);
    if (status != QG_OK)
        return status;
    timing->memcpy_ratio = NAN;
    timing->bytes = bytes_of(j->c, &j->shape);
    status = qg_backend_is_remote(j->c->backend) ? measure_on_device(j, timing)
                                                 : measure_here(j, workspace, timing);
    if (status != QG_OK)
        return status;
    result->output_digest = digest_of(j, workspace);
    result->has_timing = true;
    name_impl(j, result);
    return QG_OK;
}

void qg_op_throughput_run(const qg_case *c, struct qg_workspace *workspace,
                          qg_case_result *result) {
    job j = {.c = c, .backend = qg_backend_find(c->backend)};
    if (!j.backend) {
        qg_case_result_set(result, QG_CASE_FAILED, "backend %s cannot run operation throughput",
                           c->backend);
        return;
    }
    qg_status status = measure(&j, workspace, result);
    if (status == QG_OK)
        return;
    qg_case_result_clear(result, c); // half a measurement is none
    qg_case_result_set(result, status == QG_ERROR_UNSUPPORTED ? QG_CASE_SKIPPED : QG_CASE_FAILED,
                       "%s", qg_detail());
}

// ------------------------------------------------------------------------------------------ costs

// memcpy takes as much again as the case moves.
int64_t qg_op_throughput_bytes(const qg_case *c) {
    enum { PER_ELEMENT = sizeof(float) + sizeof(uint16_t) };
    qg_shape shape;
    int64_t bytes;
    if (qg_shape_of(c->recipe, c->m, c->k, &shape) != QG_OK ||
        !qg_size_multiply(c->m, c->k, &bytes) || !qg_size_multiply(bytes, PER_ELEMENT, &bytes) ||
        !qg_size_add(bytes, bytes_of(c, &shape), &bytes) ||
        !qg_size_add(bytes, shape.codes_size, &bytes) ||
        !qg_size_add(bytes, shape.scales_size, &bytes))
        return INT64_MAX;
    return bytes;
}

// The budget, or where that is not enough the least samples and two calls before them.
double qg_op_throughput_cost(const qg_case *c) {
    static const double UNIT = 25e-9, CPU = 0.4e-9, EMULATOR = 40e-9; // seconds, per element
    bool emulator = qg_backend_is_emulator(c->backend);
    double calls = (LEAST_SAMPLES + 2) * (double)c->m * (double)c->k * (emulator ? EMULATOR : CPU);
    return ((calls > BUDGET ? calls : BUDGET) + 2 * SAMPLE_SECONDS) / UNIT;
}
