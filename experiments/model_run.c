// A model with quantized products, run once. See model_run.h.
//
// The model in fp32 and the graph with quantized weights stay in the workspace as objects, what a
// run gives at the nodes as a buffer; each has a label of all that it depends on. Results do not
// depend on threads or on cases before.
#include <model_run.h>

#include <case_label.h>
#include <qg_backend_list.h>
#include <qg_digest.h>
#include <qg_graph_pass.h>
#include <qg_size.h>

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A graph that has run; the graph is its own, so that nothing of a plan is needed to read it.
typedef struct ran_graph {
    qg_graph *graph;
    qg_graph_runner *runner;
} ran_graph;

static void free_ran(void *object) {
    ran_graph *ran = object;
    if (!ran)
        return;
    qg_graph_runner_free(ran->runner);
    qg_graph_free(ran->graph);
    free(ran);
}

static void free_graph(void *object) { qg_graph_free(object); }

static int threads_of(const qg_workspace *workspace) {
    return qg_workspace_threads(workspace, INT64_MAX);
}

// ------------------------------------------------------------------------------------------ labels

static void label_model(case_label *label, const qg_case *c) {
    case_label_append(label, "%s %016" PRIx64 "\n", c->source->data, c->source->digest);
}

static void label_reference(const qg_case *c, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    label_model(&label, c);
    case_label_finish(&label, out);
}

// Of the graph with quantized weights.
static void label_graph(const qg_case *c, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    label_model(&label, c);
    case_label_recipe(&label, c, 0);
    case_label_recipe(&label, c, 1);
    case_label_append(&label, "%u %" PRIu64 " %s\n", (unsigned)c->out_type, c->seed, c->backend);
    case_label_finish(&label, out);
}

static void label_run(const qg_case *c, char out[QG_LABEL_SIZE]) {
    case_label label = {0};
    char graph[QG_LABEL_SIZE];
    label_graph(c, graph);
    if (!graph[0])
        label.length = QG_LABEL_SIZE;
    case_label_append(&label, "%s%s\n", graph, c->unit);
    case_label_finish(&label, out);
}

// ---------------------------------------------------------------------------------------- running

static qg_status run_graph(const qg_case *c, const qg_graph *graph,
                           const qg_graph_run_options *options, qg_graph_runner **out) {
    const qg_graph_feed *feeds;
    int32_t count = model_feeds(c->source->model, &feeds);
    qg_status status = qg_graph_runner_create(graph, options, out);
    if (status) {
        *out = NULL;
        return status;
    }
    status = qg_graph_runner_run(*out, count, feeds);
    if (status) {
        qg_graph_runner_free(*out);
        *out = NULL;
    }
    return status;
}

static qg_status run_reference(const qg_case *c, const qg_workspace *workspace, ran_graph **out) {
    qg_graph_run_options options = {.threads = threads_of(workspace), .keep = true};
    *out = calloc(1, sizeof **out);
    if (!*out)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the model in fp32");
    qg_status status = qg_graph_copy(model_graph(c->source->model), &(*out)->graph);
    if (!status)
        status = run_graph(c, (*out)->graph, &options, &(*out)->runner);
    if (status) {
        free_ran(*out);
        *out = NULL;
    }
    return status;
}

static qg_status take_reference(const qg_case *c, qg_workspace *workspace, ran_graph **out) {
    char label[QG_LABEL_SIZE];
    label_reference(c, label);
    *out = qg_workspace_kept(workspace, QG_KEPT_MODEL_REFERENCE, label);
    if (*out)
        return QG_OK;
    qg_workspace_keep(workspace, QG_KEPT_MODEL_REFERENCE, NULL, NULL, "");
    qg_status status = run_reference(c, workspace, out);
    if (status == QG_OK)
        qg_workspace_keep(workspace, QG_KEPT_MODEL_REFERENCE, *out, free_ran, label);
    return status;
}

// -------------------------------------------------------------------------------- quantized graph

qg_status model_recipe_text(const model_recipe_names *names, char text[QG_RECIPE_TEXT_SIZE]) {
    int length = snprintf(text, QG_RECIPE_TEXT_SIZE, "%s/%s/%s/%s", names->format, names->layout,
                          names->scale_rule, names->rounding);
    if (length >= 0 && length < QG_RECIPE_TEXT_SIZE)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT, "the recipe %.100s... is too long for a graph", text);
}

static qg_status recipe_texts(const qg_case *c, char texts[2][QG_RECIPE_TEXT_SIZE]) {
    model_recipe_names a = {c->format, c->layout, c->scale_rule, c->rounding};
    model_recipe_names b = {c->format_b, c->layout_b, c->scale_rule_b, c->rounding};
    qg_status status = model_recipe_text(&a, texts[0]);
    return status ? status : model_recipe_text(&b, texts[1]);
}

// What insertion made, with products rounded and weights quantized. Takes `inserted` over.
static qg_status finish(const qg_case *c, const qg_graph_run_options *options, qg_graph *inserted,
                        qg_graph **out) {
    qg_graph *rounded = NULL;
    qg_status status = QG_OK;
    if (c->out_type == QG_FORMAT_BF16)
        status = model_round_products(inserted, QG_DTYPE_BF16, &rounded);
    if (!status)
        status = qg_graph_fold(rounded ? rounded : inserted, true, options, out);
    qg_graph_free(rounded);
    qg_graph_free(inserted);
    return status;
}

static qg_status make_quantized(const qg_case *c, const qg_graph_run_options *options,
                                qg_graph **out) {
    char texts[2][QG_RECIPE_TEXT_SIZE];
    qg_status status = recipe_texts(c, texts);
    qg_scaling scaling = {.lhs = texts[0], .rhs = texts[1]}; // the seed comes with the run
    qg_graph *inserted;
    if (!status)
        status =
            qg_graph_insert_scaled_matmul(model_graph(c->source->model), &scaling, &inserted, NULL);
    return status ? status : finish(c, options, inserted, out);
}

static qg_status take_quantized(const qg_case *c, const qg_graph_run_options *options,
                                qg_workspace *workspace, qg_graph **out) {
    char label[QG_LABEL_SIZE];
    label_graph(c, label);
    *out = qg_workspace_kept(workspace, QG_KEPT_MODEL_QUANTIZED, label);
    if (*out)
        return QG_OK;
    qg_workspace_keep(workspace, QG_KEPT_MODEL_QUANTIZED, NULL, NULL, "");
    qg_status status = make_quantized(c, options, out);
    if (status == QG_OK)
        qg_workspace_keep(workspace, QG_KEPT_MODEL_QUANTIZED, *out, free_graph, label);
    return status;
}

// -------------------------------------------------------------------------------------- comparison

typedef struct gathering {
    const qg_graph *model;
    int64_t sentences;
    model_nodes *nodes;
} gathering;

static qg_status take_error(void *context, const qg_node_error *error) {
    gathering *g = context;
    qg_node node = qg_graph_find(g->model, error->name);
    if (node == QG_NODE_NONE)
        return QG_OK; // of the quantized graph alone
    model_node *n = &g->nodes->nodes[node];
    n->has_sums = true;
    n->sums = error->sums;
    n->digest = qg_digest_bytes(error->q, (size_t)error->count * sizeof *error->q);
    if (strcmp(error->name, "embedding") != 0)
        return QG_OK;
    return model_rank_agreement(g->sentences, error->count / g->sentences, error->x, error->q,
                                &n->spearman);
}

static void name_implementation(const qg_case *c, const qg_graph *graph,
                                const qg_graph_runner *runner, char impl[QG_IMPL_SIZE]) {
    qg_node node = 0;
    while (node < qg_graph_count(graph) && qg_graph_node_op(graph, node) != QG_GRAPH_SCALED_MATMUL)
        node++;
    snprintf(impl, QG_IMPL_SIZE, "%s %s", c->backend,
             node < qg_graph_count(graph) ? qg_graph_runner_impl(runner, node) : "");
}

static qg_status compare(const qg_case *c, qg_workspace *workspace, const ran_graph *reference,
                         const qg_graph *graph, const qg_graph_runner *runner, model_nodes **out) {
    gathering g = {.model = model_graph(c->source->model),
                   .sentences = model_sentences(c->source->model)};
    int32_t count = qg_graph_count(g.model);
    int64_t size;
    void *room;
    if (!qg_size_multiply(count, sizeof(model_node), &size) ||
        !qg_size_add(size, sizeof(model_nodes), &size))
        return qg_fail(QG_ERROR_OVERFLOW, "the nodes of a model exceed 2^63 - 1 bytes");
    qg_status status = qg_workspace_room(workspace, QG_BUFFER_MODEL_NODES, size, 1, &room);
    if (status)
        return status;
    memset(room, 0, (size_t)size);
    g.nodes = *out = room;
    g.nodes->count = count;
    for (int32_t i = 0; i < count; i++)
        g.nodes->nodes[i].spearman = (double)NAN;
    name_implementation(c, graph, runner, g.nodes->impl);
    return qg_graph_compare(reference->runner, runner, take_error, &g);
}

static bool is_native(const qg_case *c) { return c->matrix_unit->id == QG_UNIT_NATIVE; }

static qg_status run_and_compare(const qg_case *c, qg_workspace *workspace, model_nodes **out) {
    qg_graph_run_options options = {.backend = qg_backend_find(c->backend),
                                    .unit = is_native(c) ? NULL : c->matrix_unit,
                                    .threads = threads_of(workspace),
                                    .seed = c->seed,
                                    .keep = true};
    ran_graph *reference;
    qg_graph *graph;
    qg_graph_runner *runner;
    qg_status status = take_reference(c, workspace, &reference);
    if (!status)
        status = take_quantized(c, &options, workspace, &graph);
    if (!status)
        status = run_graph(c, graph, &options, &runner);
    if (status)
        return status;
    status = compare(c, workspace, reference, graph, runner, out);
    qg_graph_runner_free(runner);
    return status;
}

qg_status model_run(const qg_case *c, qg_workspace *workspace, const model_nodes **out) {
    char label[QG_LABEL_SIZE];
    label_run(c, label);
    model_nodes *nodes = qg_workspace_find(workspace, QG_BUFFER_MODEL_NODES, label);
    *out = nodes;
    if (nodes)
        return QG_OK;
    qg_status status = run_and_compare(c, workspace, &nodes);
    *out = nodes;
    if (status == QG_OK)
        qg_workspace_label(workspace, QG_BUFFER_MODEL_NODES, label);
    return status;
}
