// Operation `error`: quantize, dequantize, measure against the input.
//
// Digests and MISTRUSTED as the definitions of results state them (README, "The result file").
// Exact: codes, scales and counts do not depend on threads; sums are merged in a fixed order.
#include <op_internal.h>

#include <qg_philox.h>
#include <qg_size.h>
#include <qg_workspace.h>

#include <stdio.h>
#include <string.h>

typedef struct quantized {
    qg_shape shape;
    uint8_t *codes, *scales;
    float tensor_scale;
    float *q; // (m, k)
} quantized;

static qg_status quantize(const qg_case *c, qg_workspace *workspace, const qg_input *input,
                          int threads, quantized *out, qg_counts *counts) {
    float history[QG_HISTORY_LENGTH];
    qg_quantize_options options = {.input_type = c->input_type,
                                   .seed = c->seed,
                                   .stream = QG_STREAM_ROUNDING,
                                   .threads = threads};
    qg_status status = qg_shape_of(c->recipe, c->m, c->k, &out->shape);
    if (status == QG_OK && c->recipe->rule == QG_RULE_DELAYED) {
        status = qg_workspace_history(workspace, c, 0, history);
        options.amax_history = history;
        options.history_length = QG_HISTORY_LENGTH;
    }
    void *codes = NULL, *scales = NULL;
    if (status == QG_OK)
        status = qg_workspace_room(workspace, QG_BUFFER_CODES, out->shape.codes_size, 1, &codes);
    if (status == QG_OK)
        status = qg_workspace_room(workspace, QG_BUFFER_SCALES, out->shape.scales_size, 1, &scales);
    if (status != QG_OK)
        return status;
    out->codes = codes;
    out->scales = scales;
    out->tensor_scale = 1;
    return qg_emulator_quantize(c->recipe, &options, c->m, c->k, input->x, out->codes, out->scales,
                                &out->tensor_scale, counts);
}

static qg_status dequantize(const qg_case *c, qg_workspace *workspace, int threads,
                            quantized *out) {
    void *q;
    qg_status status =
        qg_workspace_room(workspace, QG_BUFFER_OUTPUT, c->m * c->k, sizeof(float), &q);
    if (status != QG_OK)
        return status;
    out->q = q;
    return qg_emulator_dequantize(c->recipe, c->m, c->k, out->codes, out->scales, out->tensor_scale,
                                  threads, out->q);
}

static uint64_t digest_of(qg_workspace *workspace, const quantized *out) {
    qg_digest *digest = qg_workspace_digest(workspace);
    qg_digest_add(digest, out->codes, (size_t)out->shape.codes_size);
    qg_digest_add(digest, out->scales, (size_t)out->shape.scales_size);
    if (out->shape.has_tensor_scale)
        qg_digest_add(digest, &out->tensor_scale, sizeof out->tensor_scale);
    return qg_digest_value(digest);
}

static qg_status measure(const qg_case *c, qg_workspace *workspace, qg_case_result *result) {
    qg_input input;
    qg_status status = qg_workspace_input(workspace, c, 0, &input);
    if (status != QG_OK)
        return status;
    result->input_digest = input.digest;
    int64_t count = c->m * c->k; // it fits: the input has been made
    int threads = qg_workspace_threads(workspace, count);
    quantized out;
    status = quantize(c, workspace, &input, threads, &out, &result->counts);
    if (status != QG_OK)
        return status;
    result->has_counts = true;
    result->output_digest = digest_of(workspace, &out);
    status = dequantize(c, workspace, threads, &out);
    if (status == QG_OK)
        status = qg_sums_measure(count, input.x, out.q, threads, &result->compared[0].sums);
    result->compared[0].has_sums = status == QG_OK;
    if (status == QG_OK)
        status = qg_spearman(count, input.x, out.q, &result->compared[0].spearman);
    return status;
}

// ------------------------------------------------------------------------------------------ costs

int64_t qg_op_error_bytes(const qg_case *c) {
    enum { BYTES_PER_ELEMENT = 2 * sizeof(float) }; // input and output
    qg_shape shape;
    int64_t elements, bytes;
    if (qg_shape_of(c->recipe, c->m, c->k, &shape) != QG_OK ||
        !qg_size_multiply(c->m, c->k, &elements) ||
        !qg_size_multiply(elements, BYTES_PER_ELEMENT, &bytes) ||
        !qg_size_add(bytes, shape.codes_size, &bytes) ||
        !qg_size_add(bytes, shape.scales_size, &bytes))
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

double qg_op_error_cost(const qg_case *c) { return (double)c->m * (double)c->k * passes_of(c); }

void qg_op_error_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    if (strcmp(c->backend, "emulator") != 0) {
        qg_case_result_set(result, QG_CASE_FAILED, "backend %s cannot run operation error",
                           c->backend);
        return;
    }
    snprintf(result->impl_used, sizeof result->impl_used, "emulator");
    if (measure(c, workspace, result) != QG_OK) {
        qg_case_result_set(result, QG_CASE_FAILED, "%s", qg_detail());
        return;
    }
    qg_op_judge_pairs(c, &result->compared[0].sums, "input", result);
    qg_op_judge_saturation(&result->counts, result);
}
