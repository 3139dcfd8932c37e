// Runs a graph by its plan: feeds, order, widening and rounding of 16-bit floats. What a node
// computes is in run_*.c. See qg_graph_run.h.
#include "graph_plan_internal.h"
#include "run_parts_internal.h"

#include <qg_init.h>
#include <qg_memory.h>
#include <qg_size.h>

#include <stdlib.h>
#include <string.h>

struct qg_graph_runner {
    const qg_graph *graph;
    int32_t count; // of nodes
    run_scaled scaled;
    graph_plan plan;
    char *buffers;       // plan.bytes, then plan.scratch
    const void **values; // (nodes) where they are
    const void **feeds;  // (nodes) of this run's inputs
    char **impl;         // (nodes) NULL: nothing ran
    bool keep, has_run;
};

// ------------------------------------------------------------------------------------------ create

static qg_status check_values(const qg_graph *graph) {
    for (qg_node i = 0; i < graph->count; i++) {
        const graph_node *node = &graph->nodes[i];
        if (graph_op_has_values(node->op) && !node->values)
            return graph_at_node(node->name, node->op,
                                 qg_fail(QG_ERROR_ARGUMENT, "no values: bind them first"));
    }
    return QG_OK;
}

static qg_status set_options(qg_graph_runner *r, const qg_graph_run_options *options) {
    static const qg_graph_run_options none = {0};
    const qg_graph_run_options *o = options ? options : &none;
    r->scaled = (run_scaled){.backend = o->backend ? o->backend : qg_backend_find("emulator"),
                             .unit = {.id = QG_UNIT_EXACT},
                             .threads = o->threads,
                             .seed = o->seed};
    r->keep = o->keep;
    if (o->unit)
        r->scaled.unit = *o->unit;
    const char *why = r->scaled.backend->unavailable();
    if (!why)
        return QG_OK;
    return qg_fail(QG_ERROR_ENVIRONMENT, "backend %s does not answer: %s", r->scaled.backend->name,
                   why);
}

static qg_status check_products(const qg_graph_runner *r) {
    const qg_tensor_type *types[GRAPH_INPUTS_MOST];
    qg_status status = QG_OK;
    for (qg_node i = 0; i < r->count && !status; i++) {
        const graph_node *node = &r->graph->nodes[i];
        if (node->op != QG_GRAPH_SCALED_MATMUL && node->op != QG_GRAPH_SCALED_GROUPED_MATMUL)
            continue;
        for (int32_t j = 0; j < node->input_count; j++)
            types[j] = &r->graph->nodes[node->inputs[j]].type;
        status = graph_at_node(node->name, node->op, run_scaled_check(&r->scaled, node, types));
    }
    return status;
}

static qg_status allocate(qg_graph_runner *r) {
    size_t count = (size_t)r->count;
    int64_t bytes;
    void *room;
    r->values = calloc(count, sizeof *r->values);
    r->impl = calloc(count, sizeof *r->impl);
    r->feeds = calloc(count, sizeof *r->feeds);
    if (!r->values || !r->impl || !r->feeds)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a runner");
    if (!qg_size_add(r->plan.bytes, r->plan.scratch, &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "the buffers of the graph exceed 2^63 - 1 bytes");
    qg_status status = qg_allocate(&room, bytes, 1, "the buffers of a graph");
    r->buffers = room;
    return status;
}

static void find_values(qg_graph_runner *r) {
    for (qg_node i = 0; i < r->count; i++) {
        const graph_node *node = &r->graph->nodes[i];
        const graph_place *place = &r->plan.places[i];
        if (graph_op_has_values(node->op))
            r->values[i] = node->values->bytes;
        else if (place->bytes > 0)
            r->values[i] = r->buffers + place->offset;
    }
}

static qg_status prepare(qg_graph_runner *r, const qg_graph_run_options *options) {
    qg_status status = qg_graph_verify(r->graph);
    if (!status)
        status = check_values(r->graph);
    if (!status)
        status = set_options(r, options);
    if (!status)
        status = check_products(r);
    if (!status)
        status = graph_plan_make(r->graph, r->keep, &r->plan);
    if (!status)
        status = allocate(r);
    if (!status)
        find_values(r);
    return status;
}

qg_status qg_graph_runner_create(const qg_graph *graph, const qg_graph_run_options *options,
                                 qg_graph_runner **out) {
    qg_graph_runner *r = *out = calloc(1, sizeof *r);
    if (!r)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a runner");
    r->graph = graph;
    r->count = graph->count;
    qg_status status = prepare(r, options);
    if (status) {
        qg_graph_runner_free(r);
        *out = NULL;
    }
    return status;
}

void qg_graph_runner_free(qg_graph_runner *runner) {
    if (!runner)
        return;
    for (int32_t i = 0; i < runner->count && runner->impl; i++)
        free(runner->impl[i]);
    graph_plan_free(&runner->plan);
    qg_release(runner->buffers);
    free(runner->values);
    free(runner->impl);
    free(runner->feeds);
    free(runner);
}

// ------------------------------------------------------------------------------------------- feeds

static qg_status take_feed(qg_graph_runner *r, const qg_graph_feed *feed) {
    const char *name = feed->name ? feed->name : "";
    qg_node node = qg_graph_find(r->graph, name);
    if (node == QG_NODE_NONE || r->graph->nodes[node].op != QG_GRAPH_INPUT)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.255s' is no input of the graph", name);
    if (r->feeds[node])
        return qg_fail(QG_ERROR_ARGUMENT, "input '%.255s' is given twice", name);
    if (!feed->values)
        return qg_fail(QG_ERROR_ARGUMENT, "input '%.255s' is given without values", name);
    r->feeds[node] = feed->values;
    return QG_OK;
}

static qg_status take_feeds(qg_graph_runner *r, int32_t count, const qg_graph_feed *feeds) {
    qg_status status = QG_OK;
    memset(r->feeds, 0, (size_t)r->count * sizeof *r->feeds);
    for (int32_t i = 0; i < count && !status; i++)
        status = take_feed(r, &feeds[i]);
    for (qg_node i = 0; i < r->count && !status; i++)
        if (r->graph->nodes[i].op == QG_GRAPH_INPUT && !r->feeds[i])
            status =
                qg_fail(QG_ERROR_ARGUMENT, "input '%.255s' is not given", r->graph->nodes[i].name);
    return status;
}

// ------------------------------------------------------------------------------------------- steps

static void *buffer_of(const qg_graph_runner *r, qg_node node) {
    return node == QG_NODE_NONE || r->plan.places[node].bytes == 0
               ? NULL
               : r->buffers + r->plan.places[node].offset;
}

// Room for `type` as binary32, cut from scratch.
static float *take_scratch(char **scratch, const qg_tensor_type *type) {
    char *taken = *scratch;
    *scratch += graph_plan_scratch(type);
    return (float *)(void *)taken;
}

static qg_status run_in_float(const qg_graph_runner *r, const graph_node *node, run_input *in,
                              void *out) {
    int threads = r->scaled.threads;
    char *scratch = r->buffers + r->plan.bytes;
    qg_status status = QG_OK;
    for (int32_t i = 0; i < node->input_count && !status; i++) {
        if (!graph_is_narrow(in[i].type))
            continue;
        float *wide = take_scratch(&scratch, in[i].type);
        status = run_widen(in[i].type, in[i].values, threads, wide);
        in[i].values = wide;
    }
    float *values = graph_is_narrow(&node->type) ? take_scratch(&scratch, &node->type) : out;
    if (!status)
        status = run_float(node, in, threads, values);
    return status ? status : run_round(&node->type, values, threads, out);
}

// A copy: a backend's text may be gone with its next call.
static qg_status keep_impl(qg_graph_runner *r, qg_node node, const char *impl) {
    if (r->impl[node] && strcmp(r->impl[node], impl) == 0)
        return QG_OK;
    char *copy = strdup(impl);
    if (!copy)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the name of what ran");
    free(r->impl[node]);
    r->impl[node] = copy;
    return QG_OK;
}

// A quantization with the scales that it finds.
static qg_status run_partners(qg_graph_runner *r, qg_node step, const run_input *x) {
    const graph_place *place = &r->plan.places[step];
    qg_node node = place->codes != QG_NODE_NONE   ? place->codes
                   : place->scale != QG_NODE_NONE ? place->scale
                                                  : place->tensor_scale;
    const char *impl = "";
    qg_status status =
        run_quantize(&r->scaled, &r->graph->nodes[node], x, buffer_of(r, place->codes),
                     buffer_of(r, place->scale), buffer_of(r, place->tensor_scale), &impl);
    const qg_node partners[3] = {place->codes, place->scale, place->tensor_scale};
    for (int i = 0; i < 3 && !status; i++)
        if (partners[i] != QG_NODE_NONE)
            status = keep_impl(r, partners[i], impl);
    return status;
}

static qg_status run_in_backend(qg_graph_runner *r, qg_node place, const run_input *in) {
    const graph_node *node = &r->graph->nodes[place];
    const graph_place *at = &r->plan.places[place];
    const char *impl = "";
    void *out = buffer_of(r, place);
    qg_status status;
    if (at->codes != QG_NODE_NONE || at->scale != QG_NODE_NONE || at->tensor_scale != QG_NODE_NONE)
        return run_partners(r, place, in);
    switch (node->op) {
    case QG_GRAPH_SCALED_QUANTIZE: status = run_encode(&r->scaled, node, in, out, &impl); break;
    case QG_GRAPH_SCALED_DEQUANTIZE:
        status = run_dequantize(&r->scaled, node, in, out, &impl);
        break;
    default: status = run_product(&r->scaled, node, in, out, &impl);
    }
    return status ? status : keep_impl(r, place, impl);
}

static void run_input_node(qg_graph_runner *r, qg_node place) {
    void *buffer = buffer_of(r, place);
    if (!buffer)
        r->values[place] = r->feeds[place];
    else
        memcpy(buffer, r->feeds[place], (size_t)qg_tensor_bytes(&r->graph->nodes[place].type));
}

static qg_status compute(qg_graph_runner *r, qg_node place) {
    const graph_node *node = &r->graph->nodes[place];
    run_input in[GRAPH_INPUTS_MOST];
    for (int32_t i = 0; i < node->input_count; i++)
        in[i] = (run_input){&r->graph->nodes[node->inputs[i]].type, r->values[node->inputs[i]]};
    switch (graph_traits_of(node->op)->kind) {
    case GRAPH_MOVE: return run_move(node, in, r->scaled.threads, buffer_of(r, place));
    case GRAPH_SCALED: return run_in_backend(r, place, in);
    case GRAPH_FLOAT: return run_in_float(r, node, in, buffer_of(r, place));
    default: break;
    }
    if (node->op == QG_GRAPH_INPUT)
        run_input_node(r, place);
    return QG_OK;
}

static qg_status run_step(qg_graph_runner *r, qg_node place) {
    const graph_node *node = &r->graph->nodes[place];
    return graph_at_node(node->name, node->op, compute(r, place));
}

qg_status qg_graph_runner_run(qg_graph_runner *runner, int32_t count, const qg_graph_feed *feeds) {
    qg_status status = take_feeds(runner, count, feeds);
    qg_fp_state saved = qg_fp_enter();
    for (qg_node i = 0; i < runner->count && !status; i++)
        if (runner->plan.places[i].needed && runner->plan.places[i].step == i)
            status = run_step(runner, i);
    qg_fp_leave(saved);
    runner->has_run = status == QG_OK;
    return status;
}

// ----------------------------------------------------------------------------------------- looking

const void *qg_graph_runner_values(const qg_graph_runner *runner, qg_node node) {
    if (!runner->has_run || node < 0 || node >= runner->count)
        return NULL;
    const graph_place *place = &runner->plan.places[node];
    return place->needed && place->last == INT32_MAX ? runner->values[node] : NULL;
}

int64_t qg_graph_runner_bytes(const qg_graph_runner *runner, int64_t *without_reuse) {
    if (without_reuse)
        *without_reuse = runner->plan.without_reuse + runner->plan.scratch;
    return runner->plan.bytes + runner->plan.scratch;
}

const qg_graph *graph_runner_graph(const qg_graph_runner *runner) { return runner->graph; }
int graph_runner_threads(const qg_graph_runner *runner) { return runner->scaled.threads; }

const char *qg_graph_runner_impl(const qg_graph_runner *runner, qg_node node) {
    bool known = node >= 0 && node < runner->count && runner->impl[node];
    return known ? runner->impl[node] : "";
}
