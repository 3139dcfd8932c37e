// Operation `error`: quantize, dequantize, measure against the input.
//
// Digests and MISTRUSTED as the definitions of results state them (README, "The result file").
// Exact: codes, scales and counts do not depend on threads; sums are merged in a fixed order.
//
// What the emulator gave stays in the workspace, labelled: a case of another backend that is
// compared with it finds it there, or makes it again. Where its bytes are the same, so are the
// sums, which are then taken over. A backend that does not count leaves its counts missing.
#include <op_internal.h>

#include <case_label.h>
#include <op_compare.h>
#include <qg_backend.h>
#include <qg_backend_list.h>
#include <qg_size.h>

#include <stdio.h>
#include <string.h>

// What is known of the emulator's result beside its bytes.
typedef struct measured {
    float tensor_scale;
    qg_counts counts;
    qg_comparison compared;
} measured;

typedef struct room {
    qg_buffer codes, scales, output;
} room;

static const room EMULATOR_ROOM = {QG_BUFFER_CODES, QG_BUFFER_SCALES, QG_BUFFER_OUTPUT};
static const room OTHER_ROOM = {QG_BUFFER_CPU_CODES, QG_BUFFER_CPU_SCALES, QG_BUFFER_CPU_OUTPUT};

static qg_status take_room(const qg_case *c, qg_workspace *workspace, const room *r,
                           op_quantized *out) {
    void *codes = NULL, *scales = NULL, *q = NULL;
    qg_status status = qg_shape_of(c->recipe, c->m, c->k, &out->shape);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, r->codes, out->shape.codes_size, 1, &codes);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, r->scales, out->shape.scales_size, 1, &scales);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, r->output, c->m * c->k, sizeof(float), &q);
    out->codes = codes;
    out->scales = scales;
    out->q = q;
    out->tensor_scale = 1;
    return status;
}

static uint64_t digest_of(qg_workspace *workspace, const op_quantized *out) {
    qg_digest *digest = qg_workspace_digest(workspace);
    qg_digest_add(digest, out->codes, (size_t)out->shape.codes_size);
    qg_digest_add(digest, out->scales, (size_t)out->shape.scales_size);
    if (out->shape.has_tensor_scale)
        qg_digest_add(digest, &out->tensor_scale, sizeof out->tensor_scale);
    return qg_digest_value(digest);
}

static qg_status compare_with_input(const qg_case *c, const qg_input *input, int threads,
                                    const float *q, qg_comparison *out) {
    int64_t count = c->m * c->k; // it fits: the input has been made
    qg_status status = qg_sums_measure(count, input->x, q, threads, &out->sums);
    out->has_sums = status == QG_OK;
    return status == QG_OK ? qg_spearman(count, input->x, q, &out->spearman) : status;
}

// --------------------------------------------------------------------------------------- emulator

static void label_of(const qg_case *c, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    case_label_append(&label, "error %lld\n", (long long)c->m);
    case_label_source(&label, c);
    case_label_recipe(&label, c, 0);
    case_label_finish(&label, out);
}

static const qg_buffer KEPT[] = {QG_BUFFER_CODES, QG_BUFFER_SCALES, QG_BUFFER_OUTPUT,
                                 QG_BUFFER_MEASURED};
enum { KEPT_COUNT = sizeof KEPT / sizeof KEPT[0] };

static bool find_emulated(const qg_case *c, qg_workspace *workspace, const char *label,
                          op_quantized *out, measured **m) {
    void *found[KEPT_COUNT];
    for (int i = 0; i < KEPT_COUNT; i++) {
        found[i] = qg_workspace_find(workspace, KEPT[i], label);
        if (!found[i])
            return false;
    }
    out->codes = found[0];
    out->scales = found[1];
    out->q = found[2];
    *m = found[3];
    out->tensor_scale = (*m)->tensor_scale;
    return qg_shape_of(c->recipe, c->m, c->k, &out->shape) == QG_OK;
}

static qg_status emulate(const qg_case *c, const qg_input *input,
                         const qg_quantize_options *options, op_quantized *out, measured *m) {
    qg_status status = qg_emulator_quantize(c->recipe, options, c->m, c->k, input->x, out->codes,
                                            out->scales, &out->tensor_scale, &m->counts);
    if (status == QG_OK)
        status = qg_emulator_dequantize(c->recipe, c->m, c->k, out->codes, out->scales,
                                        out->tensor_scale, options->threads, out->q);
    m->tensor_scale = out->tensor_scale;
    if (status == QG_OK)
        status = compare_with_input(c, input, options->threads, out->q, &m->compared);
    return status;
}

// The emulator's result, found or made.
static qg_status take_emulated(const qg_case *c, qg_workspace *workspace, const qg_input *input,
                               const qg_quantize_options *options, op_quantized *out,
                               measured **m) {
    char label[QG_LABEL_SIZE];
    void *bytes = NULL;
    label_of(c, label);
    if (find_emulated(c, workspace, label, out, m))
        return QG_OK;
    qg_status status = take_room(c, workspace, &EMULATOR_ROOM, out);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, QG_BUFFER_MEASURED, 1, sizeof **m, &bytes);
    if (status != QG_OK)
        return status;
    *m = memset(bytes, 0, sizeof **m);
    qg_case_result nothing; // what is missing, as everywhere
    qg_case_result_clear(&nothing, c);
    (*m)->compared = nothing.compared[0];
    status = emulate(c, input, options, out, *m);
    for (int i = 0; i < KEPT_COUNT && status == QG_OK; i++)
        qg_workspace_label(workspace, KEPT[i], label);
    return status;
}

static qg_status run_emulator(const qg_case *c, qg_workspace *workspace, const qg_input *input,
                              const qg_quantize_options *options, qg_case_result *result) {
    op_quantized out;
    measured *m;
    snprintf(result->impl_used, sizeof result->impl_used, "emulator");
    qg_status status = take_emulated(c, workspace, input, options, &out, &m);
    if (status != QG_OK)
        return status;
    result->has_counts = true;
    result->counts = m->counts;
    result->compared[0] = m->compared;
    result->output_digest = digest_of(workspace, &out);
    qg_op_judge_pairs(c, &result->compared[0].sums, "input", result);
    qg_op_judge_saturation(&result->counts, result);
    return QG_OK;
}

// --------------------------------------------------------------------------------- other backends

static qg_status quantize_on(const qg_backend *backend, const qg_case *c, qg_workspace *workspace,
                             const qg_quantize_options *options, op_quantized *out,
                             qg_case_result *result) {
    const char *impl = "";
    const void *raw = NULL;
    qg_status status = qg_workspace_raw(workspace, c, 0, &raw);
    if (status == QG_OK)
        status = backend->quantize(c->recipe, options, NULL, c->m, c->k, raw, out->codes,
                                   out->scales, &out->tensor_scale, &impl);
    snprintf(result->impl_used, sizeof result->impl_used, "%s %s", backend->name, impl);
    if (status == QG_OK)
        status = backend->dequantize(c->recipe, NULL, c->m, c->k, out->codes, out->scales,
                                     out->tensor_scale, options->threads, out->q, NULL);
    if (status == QG_OK)
        result->output_digest = digest_of(workspace, out);
    return status;
}

static qg_status run_other(const qg_case *c, qg_workspace *workspace, const qg_input *input,
                           const qg_quantize_options *options, qg_case_result *result) {
    const qg_backend *backend = qg_backend_find(c->backend);
    op_quantized out, wanted;
    measured *m = NULL;
    qg_status status = take_room(c, workspace, &OTHER_ROOM, &out);
    if (status == QG_OK)
        status = quantize_on(backend, c, workspace, options, &out, result);
    if (status == QG_OK && c->against_emulator)
        status = take_emulated(c, workspace, input, options, &wanted, &m);
    if (status != QG_OK)
        return status;
    if (c->against_emulator)
        op_compare_quantized(c, &wanted, &out, result);
    if (result->status == QG_CASE_PASSED) {
        result->compared[0] = m->compared;
        return QG_OK;
    }
    status = compare_with_input(c, input, options->threads, out.q, &result->compared[0]);
    if (status == QG_OK)
        qg_op_judge_pairs(c, &result->compared[0].sums, "input", result);
    return status;
}

// ------------------------------------------------------------------------------------------ costs

int64_t qg_op_error_bytes(const qg_case *c) {
    // Input and output; of another backend also the raw input, and all but the input twice.
    enum { PER_ELEMENT = 2 * sizeof(float), OTHER_PER_ELEMENT = sizeof(uint16_t) };
    bool twice = c->against_emulator;
    qg_shape shape;
    int64_t elements, bytes, stored;
    if (qg_shape_of(c->recipe, c->m, c->k, &shape) != QG_OK ||
        !qg_size_multiply(c->m, c->k, &elements) ||
        !qg_size_multiply(
            elements, PER_ELEMENT + (twice ? (int)sizeof(float) + OTHER_PER_ELEMENT : 0), &bytes) ||
        !qg_size_add(shape.codes_size, shape.scales_size, &stored) ||
        !qg_size_add(bytes, stored, &bytes) || (twice && !qg_size_add(bytes, stored, &bytes)))
        return INT64_MAX;
    return bytes;
}

// How many times the work of `amax` an element takes, as measured.
static double passes_of(const qg_case *c) {
    enum { LARGE_BLOCK = 16384 };
    qg_shape shape;
    int rule = c->recipe->rule;
    if (rule == QG_RULE_FOUR_OVER_SIX)
        return 2;
    if (c->recipe->structure == QG_STRUCTURE_RESIDUAL)
        return 1.5;
    if (rule != QG_RULE_BEST)
        return 1;
    // The larger a block, the more scales are tried before the error rules out the rest.
    bool large = qg_shape_of(c->recipe, c->m, c->k, &shape) == QG_OK &&
                 (double)c->m * (double)c->k * shape.scale_bytes >
                     (double)LARGE_BLOCK * (double)shape.scales_size;
    return large ? 20 : 1.5;
}

// Where the emulator's result is at hand another backend only compares; alone it measures.
double qg_op_error_cost(const qg_case *c) {
    static const double COMPARED = 0.1, ALONE = 0.5;
    double elements = (double)c->m * (double)c->k;
    if (qg_backend_is_emulator(c->backend))
        return elements * passes_of(c);
    return elements * (c->against_emulator ? COMPARED : ALONE);
}

void qg_op_error_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    bool emulator = qg_backend_is_emulator(c->backend);
    qg_quantizing q;
    qg_input input;
    if (!qg_backend_find(c->backend)) {
        qg_case_result_set(result, QG_CASE_FAILED, "backend %s cannot run operation error",
                           c->backend);
        return;
    }
    qg_status status = qg_workspace_input(workspace, c, 0, &input);
    if (status == QG_OK) // before anything is found: it may overwrite an output
        status = qg_workspace_quantizing(workspace, c, 0, &q);
    if (status == QG_OK) {
        result->input_digest = input.digest;
        status = (emulator ? run_emulator : run_other)(c, workspace, &input, &q.options, result);
    }
    if (status == QG_OK)
        return;
    qg_case_result_clear(result, c); // half a measurement is none
    qg_case_result_set(result, status == QG_ERROR_UNSUPPORTED ? QG_CASE_SKIPPED : QG_CASE_FAILED,
                       "%s", qg_detail());
}
