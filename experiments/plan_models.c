// Models as data: each named node of a model's graph that quantization changes is one source.
// Models are opened once and known by name and content. See plan_internal.h.
#include <plan_internal.h>

#include <model_run.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char PREFIX[] = "model:";
static const char STANDARD[] = "model:minilm";

bool qg_data_is_model(const char *item) { return strncmp(item, PREFIX, sizeof PREFIX - 1) == 0; }

// ------------------------------------------------------------------------------------------ nodes

// Nodes that a quantized product reaches: the others are in every run what they are in fp32.
static void mark_changed(const qg_graph *graph, bool *changed) {
    for (qg_node node = 0; node < qg_graph_count(graph); node++) {
        const qg_node *inputs;
        int64_t m, n, k;
        int32_t count = qg_graph_node_inputs(graph, node, &inputs);
        changed[node] = model_product(graph, node, &m, &n, &k);
        for (int32_t i = 0; i < count; i++)
            changed[node] |= changed[inputs[i]];
    }
}

static qg_status add_node(qg_plan *plan, const char *data, const qg_plan_model *from,
                          qg_node node) {
    const qg_graph *graph = model_graph(from->model);
    const qg_tensor_type *type = qg_graph_node_type(graph, node);
    qg_plan_source s = {.typed = from->name};
    int32_t index;
    s.source.data = data;
    s.source.model = from->model;
    s.source.node = node;
    s.source.digest = model_digest(from->model);
    s.source.m = s.source.k = 1;
    if (type->rank > 0)
        qg_tensor_matrix(type, &s.source.m, &s.source.k);
    qg_status status =
        qg_word_pool_keep(plan->pool, qg_graph_node_name(graph, node), &s.source.tensor);
    return status ? status : qg_keep_source(plan, &s, &index);
}

static qg_status add_nodes(qg_plan *plan, const char *data, qg_plan_model *to) {
    const qg_graph *graph = model_graph(to->model);
    qg_node count = qg_graph_count(graph);
    bool *changed = calloc((size_t)count + 1, sizeof *changed);
    if (!changed)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    mark_changed(graph, changed);
    to->first = (int32_t)plan->source_count;
    qg_status status = QG_OK;
    for (qg_node node = 0; node < count && !status; node++)
        if (changed[node] && qg_graph_node_is_named(graph, node) &&
            qg_dtype_is_float((qg_dtype)qg_graph_node_type(graph, node)->dtype))
            status = add_node(plan, data, to, node);
    to->count = (int32_t)plan->source_count - to->first;
    free(changed);
    return status;
}

// ----------------------------------------------------------------------------------------- models

// The place of a model of that data and content; -1 if there is none.
static int32_t find_model(const qg_plan *plan, const char *data, uint64_t digest) {
    for (int64_t i = 0; i < plan->model_count; i++) {
        const qg_plan_model *m = &plan->models[i];
        if (m->count && plan->sources[m->first]->source.data == data &&
            plan->sources[m->first]->source.digest == digest)
            return (int32_t)i;
    }
    return -1;
}

// Results know a model by the name of its file: another of that name would be pooled with it.
static qg_status check_name(const qg_plan *plan, const char *typed, const char *data) {
    for (int64_t i = 0; i < plan->model_count; i++) {
        const qg_plan_model *m = &plan->models[i];
        if (m->count && plan->sources[m->first]->source.data == data)
            return qg_fail(QG_ERROR_ARGUMENT,
                           "%.150s and %.150s are two models of one name, by which results know "
                           "them: rename or link one",
                           m->name, typed);
    }
    return QG_OK;
}

// Takes the model over.
static qg_status keep_model(qg_plan *plan, const char *typed, struct model *opened,
                            int32_t *index) {
    char data[NAME_MAX + sizeof PREFIX];
    const char *kept = NULL;
    qg_plan_model made = {.model = opened};
    snprintf(data, sizeof data, "%s%s", PREFIX, model_name(opened));
    qg_status status = qg_word_pool_keep(plan->pool, data, &kept);
    if (!status)
        status = qg_word_pool_keep(plan->pool, typed, &made.name);
    *index = status ? -1 : find_model(plan, kept, model_digest(opened));
    if (!status && *index < 0)
        status = check_name(plan, typed, kept);
    if (!status && *index < 0)
        status =
            qg_grow(&plan->models, plan->model_count, &plan->model_capacity, sizeof *plan->models);
    if (status || *index >= 0) {
        model_free(opened);
        return status;
    }
    *index = (int32_t)plan->model_count;
    plan->models[plan->model_count++] = made;
    return add_nodes(plan, kept, &plan->models[*index]);
}

static qg_status open_model(qg_plan *plan, const char *name, int32_t *index) {
    struct model *opened;
    for (int64_t i = 0; i < plan->model_count; i++)
        if (strcmp(plan->models[i].name, name) == 0) {
            *index = (int32_t)i;
            return QG_OK;
        }
    qg_status status = model_open(name, &opened);
    return status ? status : keep_model(plan, name, opened, index);
}

// ------------------------------------------------------------------------------------------ items

static qg_status add_item(qg_plan *plan, const char *item, qg_expanded *e) {
    int32_t index;
    const char *word = strcmp(item, "default") == 0 ? STANDARD : item;
    if (!qg_data_is_model(word)) {
        if (e->tensors || e->products)
            return QG_OK; // the data of other operations
        return qg_fail(QG_ERROR_ARGUMENT,
                       "'%.100s' is no data of operation model, which takes model:minilm, "
                       "model:seeded or model:FILE.safetensors",
                       item);
    }
    qg_status status = open_model(plan, word + sizeof PREFIX - 1, &index);
    return status ? status : qg_index_add(&e->models_used, index);
}

qg_status qg_expand_models(qg_plan *plan, const qg_view *view, qg_expanded *e) {
    const qg_option *option = qg_view_option(view, QG_AXIS_DATA);
    if (option->items.count == 0)
        return add_item(plan, STANDARD, e);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++)
        status = add_item(plan, option->items.items[i], e);
    if (!status && e->models_used.count == 0)
        status =
            qg_fail(QG_ERROR_ARGUMENT, "operation model is left without data: add %s", STANDARD);
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}

// --------------------------------------------------------------------------------------- products

// What the model does not take, and which options would do instead.
static qg_status check_operand(const qg_variant *v, bool is_b) {
    qg_format_info info = qg_format_describe(v->recipe.element);
    if (qg_format_code_bytes(&info) != 1)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "the model takes formats of up to 8 bits, %s has %d; for %s alone take a "
                       "nearly exact format for %s, e.g. %s",
                       v->format, info.bits, is_b ? "activations" : "weights",
                       is_b ? "weights" : "activations",
                       is_b ? "--formats mxfp4 --formats-b mx9"
                            : "--formats mx9 --formats-b mxfp4");
    if (v->recipe.rule == QG_RULE_DELAYED)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "%s scales by an amax history, which the model does not have", v->format);
    return QG_OK;
}

// What a graph has to say about a recipe: nothing (QG_OK), or why it cannot have it.
static qg_status check_recipe(const qg_variant *v) {
    model_recipe_names names = {v->format, v->layout, v->scale_rule, v->rounding};
    const qg_tensor_type any = qg_tensor(QG_DTYPE_FP32, 2, 128, 128);
    char text[QG_RECIPE_TEXT_SIZE];
    qg_scaled_shape shape;
    qg_status status = model_recipe_text(&names, text);
    return status ? status : qg_scaled_shape_of(text, &any, &shape);
}

// The detail of a refusal, kept; nothing of QG_OK.
static qg_status keep_refusal(qg_plan *plan, qg_status refusal, const char **reason) {
    *reason = NULL;
    if (refusal == QG_OK || refusal == QG_ERROR_MEMORY)
        return refusal;
    return qg_word_pool_keep(plan->pool, qg_detail(), reason);
}

qg_status qg_model_refuses(qg_plan *plan, const qg_variant *operand, bool is_b,
                           const char **reason) {
    qg_status refusal = operand->skip ? QG_OK : check_operand(operand, is_b);
    if (!refusal && !operand->skip)
        refusal = check_recipe(operand);
    return keep_refusal(plan, refusal, reason);
}

qg_status qg_model_refuses_output(qg_plan *plan, qg_format out_type, const char **reason) {
    qg_status refusal = QG_OK;
    if (out_type != QG_FORMAT_FP32 && out_type != QG_FORMAT_BF16)
        refusal = qg_fail(QG_ERROR_UNSUPPORTED, "products of a model come out in fp32 or bf16");
    return keep_refusal(plan, refusal, reason);
}

qg_status qg_model_takes_unit(const struct model *of, const qg_case *c) {
    const qg_graph *graph = model_graph(of);
    qg_status status = QG_OK;
    for (qg_node node = 0; node < qg_graph_count(graph) && !status; node++) {
        int64_t rows, n, k;
        if (model_product(graph, node, &rows, &n, &k))
            status = qg_unit_takes(c->matrix_unit, c->recipe, c->recipe_b, k, c->out_type);
    }
    return status;
}
