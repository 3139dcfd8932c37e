// Storage of graphs: nodes, names, values, outputs. See qg_graph.h.
#include "graph_internal.h"

#include <qg_digest.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory for the graph"); }

// ------------------------------------------------------------------------------------------ values

static graph_values *values_make(const void *bytes, void *owned) {
    graph_values *values = malloc(sizeof *values);
    if (values)
        *values = (graph_values){.users = 1, .bytes = bytes, .owned = owned};
    return values;
}

static void values_drop(graph_values *values) {
    if (!values || --values->users > 0)
        return;
    qg_release(values->owned);
    free(values);
}

// A copy of the bytes, NULL without memory.
static graph_values *values_copy(const void *bytes, int64_t size) {
    void *owned;
    if (qg_allocate(&owned, size, 1, "values of a constant") != QG_OK)
        return NULL;
    memcpy(owned, bytes, (size_t)size);
    graph_values *values = values_make(owned, owned);
    if (!values)
        qg_release(owned);
    return values;
}

// ------------------------------------------------------------------------------------ create, free

qg_status qg_graph_create(qg_graph **out) {
    *out = calloc(1, sizeof **out);
    return *out ? QG_OK : no_memory();
}

static void free_node(graph_node *node) {
    free(node->name);
    free(node->inputs);
    values_drop(node->values);
}

void qg_graph_free(qg_graph *graph) {
    if (!graph)
        return;
    for (int32_t i = 0; i < graph->count; i++)
        free_node(&graph->nodes[i]);
    free(graph->nodes);
    free(graph->outputs);
    free(graph->places);
    free(graph);
}

qg_node graph_fail(qg_graph *graph, qg_status status) {
    if (graph->status == QG_OK) {
        graph->status = status;
        snprintf(graph->detail, sizeof graph->detail, "%s", qg_detail());
    }
    return QG_NODE_NONE;
}

qg_status qg_graph_status(const qg_graph *graph) {
    return graph->status == QG_OK ? QG_OK : qg_fail(graph->status, "%s", graph->detail);
}

// ------------------------------------------------------------------------------------------- names

bool graph_name_is_valid(const char *name) {
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_./:-");
    return length > 0 && length <= GRAPH_NAME_MOST && name[length] == 0;
}

// The place of a name, or the free one where it belongs.
static int32_t place_of(const qg_graph *graph, const char *name) {
    uint32_t mask = (uint32_t)graph->place_count - 1;
    uint32_t place = (uint32_t)qg_digest_bytes(name, strlen(name)) & mask;
    while (graph->places[place] != QG_NODE_NONE &&
           strcmp(graph->nodes[graph->places[place]].name, name) != 0)
        place = (place + 1) & mask;
    return (int32_t)place;
}

// Room for one more name; a quarter of the places are used at most half.
static qg_status grow_places(qg_graph *graph) {
    if (graph->count < graph->place_count / 2)
        return QG_OK;
    int32_t wanted = graph->place_count ? 2 * graph->place_count : 64;
    qg_node *places = malloc((size_t)wanted * sizeof *places);
    if (!places)
        return no_memory();
    free(graph->places);
    graph->places = places;
    graph->place_count = wanted;
    for (int32_t i = 0; i < wanted; i++)
        places[i] = QG_NODE_NONE;
    for (int32_t i = 0; i < graph->count; i++)
        places[place_of(graph, graph->nodes[i].name)] = i;
    return QG_OK;
}

qg_node qg_graph_find(const qg_graph *graph, const char *name) {
    return graph->place_count ? graph->places[place_of(graph, name)] : QG_NODE_NONE;
}

// The graph's own name for the next node: "matmul_7", or "matmul_7_1" where that is taken.
static void make_name(const qg_graph *graph, qg_graph_op op, char name[64]) {
    const char *word = qg_graph_op_describe(op)->name;
    snprintf(name, 64, "%s_%" PRId32, word, graph->count);
    for (int32_t i = 1; qg_graph_find(graph, name) != QG_NODE_NONE; i++)
        snprintf(name, 64, "%s_%" PRId32 "_%" PRId32, word, graph->count, i);
}

// Whether a name has the form of make_name.
static bool is_own_name(qg_graph_op op, const char *name) {
    const char *word = qg_graph_op_describe(op)->name;
    size_t length = strlen(word);
    return strncmp(name, word, length) == 0 && name[length] == '_' && name[length + 1] &&
           name[length + 1 + strspn(name + length + 1, "0123456789_")] == 0;
}

static qg_status check_name(const qg_graph *graph, const char *name) {
    if (!graph_name_is_valid(name))
        return qg_fail(
            QG_ERROR_ARGUMENT,
            "'%.60s' is no name of a node: letters, digits and _ . / : -, 1 to %d of them", name,
            GRAPH_NAME_MOST);
    if (qg_graph_find(graph, name) != QG_NODE_NONE)
        return qg_fail(QG_ERROR_ARGUMENT, "node '%s' is there already", name);
    return QG_OK;
}

// Takes the node's name out of the places and puts all others back.
static void forget_places(qg_graph *graph, qg_node except) {
    for (int32_t i = 0; i < graph->place_count; i++)
        graph->places[i] = QG_NODE_NONE;
    for (int32_t i = 0; i < graph->count; i++)
        if (i != except)
            graph->places[place_of(graph, graph->nodes[i].name)] = i;
}

qg_node qg_graph_name(qg_graph *graph, qg_node node, const char *name) {
    if (graph->status != QG_OK || node == QG_NODE_NONE)
        return QG_NODE_NONE;
    if (node < 0 || node >= graph->count)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "node %" PRId32 " is none", node));
    graph_node *n = &graph->nodes[node];
    if (strcmp(n->name, name) == 0)
        return node;
    qg_status status = check_name(graph, name);
    char *copy = status == QG_OK ? strdup(name) : NULL;
    if (!copy)
        return graph_fail(graph, status ? status : no_memory());
    forget_places(graph, node);
    free(n->name);
    n->name = copy;
    n->named = !is_own_name(n->op, name);
    graph->places[place_of(graph, name)] = node;
    return node;
}

// ------------------------------------------------------------------------------------------- nodes

static qg_status grow_nodes(qg_graph *graph) {
    if (graph->count >= GRAPH_NODES_MOST)
        return qg_fail(QG_ERROR_ARGUMENT, "a graph has at most %d nodes", GRAPH_NODES_MOST);
    if (graph->count < graph->capacity)
        return QG_OK;
    int32_t wanted = graph->capacity ? 2 * graph->capacity : 32;
    graph_node *nodes = realloc(graph->nodes, (size_t)wanted * sizeof *nodes);
    if (!nodes)
        return no_memory();
    graph->nodes = nodes;
    graph->capacity = wanted;
    return QG_OK;
}

static qg_status make_node(graph_node *node, const char *name, int32_t count,
                           const qg_node *inputs) {
    node->name = strdup(name);
    node->inputs = malloc(((size_t)count + 1) * sizeof *node->inputs);
    if (!node->name || !node->inputs) {
        free_node(node);
        return no_memory();
    }
    if (count > 0)
        memcpy(node->inputs, inputs, (size_t)count * sizeof *inputs);
    node->input_count = count;
    return QG_OK;
}

qg_node graph_append(qg_graph *graph, qg_graph_op op, const char *name, const qg_tensor_type *type,
                     int32_t count, const qg_node *inputs, const qg_attributes *attributes,
                     graph_values *values, uint64_t digest) {
    char own[64];
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if (!name)
        make_name(graph, op, own);
    graph_node node = {.op = op,
                       .type = *type,
                       .attributes = *attributes,
                       .digest = digest,
                       .named = name != NULL};
    qg_status status = name ? check_name(graph, name) : QG_OK;
    if (!status)
        status = grow_nodes(graph);
    if (!status)
        status = grow_places(graph);
    if (!status)
        status = make_node(&node, name ? name : own, count, inputs);
    if (status)
        return graph_fail(graph, status);
    node.named = node.named && !is_own_name(op, name);
    node.values = values;
    if (values)
        values->users++;
    graph->nodes[graph->count] = node;
    graph->places[place_of(graph, node.name)] = graph->count;
    return graph->count++;
}

// Puts what was being made before the detail of a failure.
static qg_status name_failure(qg_graph_op op, const char *name, int32_t number, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    const char *word = qg_graph_op_describe(op)->name;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    if (name)
        return qg_fail(status, "node '%.255s' (%s): %s", name, word, detail);
    return qg_fail(status, "node '%s_%" PRId32 "' (%s): %s", word, number, word, detail);
}

static qg_status infer_node(const qg_graph *graph, qg_graph_op op, int32_t count,
                            const qg_node *inputs, const qg_attributes *attributes,
                            qg_tensor_type *type) {
    const qg_graph_op_info *info = qg_graph_op_describe(op);
    if (count < info->fewest || count > info->most)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " inputs, not %d to %d", count, info->fewest,
                       info->most);
    const qg_tensor_type *types[64];
    for (int32_t i = 0; i < count; i++) {
        if (inputs[i] < 0 || inputs[i] >= graph->count)
            return qg_fail(QG_ERROR_ARGUMENT, "input %" PRId32 " is no node", inputs[i]);
        types[i] = &graph->nodes[inputs[i]].type;
    }
    return graph_infer(op, count, types, attributes, type);
}

static qg_node add_with_values(qg_graph *graph, qg_graph_op op, int32_t count,
                               const qg_node *inputs, const qg_attributes *attributes,
                               const char *name, graph_values *values) {
    static const qg_attributes NOTHING = {0};
    qg_tensor_type type;
    const qg_attributes *a = attributes ? attributes : &NOTHING;
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if ((int)op < 0 || op >= QG_GRAPH_OP_COUNT)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "op %d is none", (int)op));
    for (int32_t i = 0; i < count; i++)
        if (inputs[i] == QG_NODE_NONE)
            return graph_fail(
                graph, name_failure(op, name, graph->count,
                                    qg_fail(QG_ERROR_ARGUMENT, "input %" PRId32 " is no node", i)));
    qg_status status = infer_node(graph, op, count, inputs, a, &type);
    if (status)
        return graph_fail(graph, name_failure(op, name, graph->count, status));
    return graph_append(graph, op, name, &type, count, inputs, a, values, 0);
}

qg_node qg_graph_add_node(qg_graph *graph, qg_graph_op op, int32_t count, const qg_node *inputs,
                          const qg_attributes *attributes, const char *name) {
    return add_with_values(graph, op, count, inputs, attributes, name, NULL);
}

static qg_node add_valued(qg_graph *graph, qg_graph_op op, const char *name, qg_tensor_type type,
                          graph_values *values) {
    qg_attributes attributes = {.type = type};
    qg_node node = add_with_values(graph, op, 0, NULL, &attributes, name, values);
    values_drop(values);
    return node;
}

qg_node qg_graph_input(qg_graph *graph, const char *name, qg_tensor_type type) {
    return add_valued(graph, QG_GRAPH_INPUT, name, type, NULL);
}

qg_node qg_graph_parameter(qg_graph *graph, const char *name, qg_tensor_type type,
                           const void *bytes) {
    graph_values *values = bytes ? values_make(bytes, NULL) : NULL;
    if (bytes && !values)
        return graph_fail(graph, no_memory());
    return add_valued(graph, QG_GRAPH_PARAMETER, name, type, values);
}

qg_node qg_graph_constant(qg_graph *graph, const char *name, qg_tensor_type type,
                          const void *bytes) {
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    qg_status status = qg_tensor_check(&type);
    if (status)
        return graph_fail(graph, name_failure(QG_GRAPH_CONSTANT, name, graph->count, status));
    graph_values *values = values_copy(bytes, qg_tensor_bytes(&type));
    if (!values)
        return graph_fail(graph, no_memory());
    return add_valued(graph, QG_GRAPH_CONSTANT, name, type, values);
}

// ----------------------------------------------------------------------------------------- outputs

qg_node qg_graph_output(qg_graph *graph, qg_node node) {
    if (graph->status != QG_OK || node == QG_NODE_NONE)
        return QG_NODE_NONE;
    if (node < 0 || node >= graph->count)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "output %" PRId32 " is no node", node));
    for (int32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] == node)
            return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "node '%s' is an output already",
                                             graph->nodes[node].name));
    if (graph->output_count == graph->output_capacity) {
        int32_t wanted = graph->output_capacity ? 2 * graph->output_capacity : 8;
        qg_node *outputs = realloc(graph->outputs, (size_t)wanted * sizeof *outputs);
        if (!outputs)
            return graph_fail(graph, no_memory());
        graph->outputs = outputs;
        graph->output_capacity = wanted;
    }
    graph->outputs[graph->output_count++] = node;
    return node;
}

// ---------------------------------------------------------------------------------------- binding

qg_status qg_graph_bind(qg_graph *graph, const char *name, const void *bytes) {
    qg_node node = qg_graph_find(graph, name);
    if (node == QG_NODE_NONE || !graph_op_has_values(graph->nodes[node].op))
        return qg_fail(QG_ERROR_ARGUMENT, "'%.100s' is no parameter or constant of the graph",
                       name);
    graph_node *n = &graph->nodes[node];
    uint64_t digest = qg_digest_bytes(bytes, (size_t)qg_tensor_bytes(&n->type));
    if (n->digest && n->digest != digest)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "node '%s': the values have digest %016" PRIx64 ", not %016" PRIx64, name,
                       digest, n->digest);
    graph_values *values = values_make(bytes, NULL);
    if (!values)
        return no_memory();
    values_drop(n->values);
    n->values = values;
    return QG_OK;
}

// ------------------------------------------------------------------------------------- copy, finish

qg_node graph_copy_node(qg_graph *graph, const qg_graph *from, qg_node node, const qg_node *map) {
    const graph_node *n = &from->nodes[node];
    qg_node inputs[64];
    for (int32_t i = 0; i < n->input_count; i++)
        inputs[i] = map[n->inputs[i]];
    bool keeps = n->named && qg_graph_find(graph, n->name) == QG_NODE_NONE;
    return graph_append(graph, n->op, keeps ? n->name : NULL, &n->type, n->input_count, inputs,
                        &n->attributes, n->values, n->digest);
}

qg_status qg_graph_copy(const qg_graph *graph, qg_graph **out) {
    *out = NULL;
    qg_graph *made;
    qg_status status = qg_graph_status(graph);
    if (!status)
        status = qg_graph_create(&made);
    if (status)
        return status;
    for (qg_node i = 0; i < graph->count; i++) {
        const graph_node *n = &graph->nodes[i];
        graph_append(made, n->op, n->name, &n->type, n->input_count, n->inputs, &n->attributes,
                     n->values, n->digest);
    }
    for (int32_t i = 0; i < graph->output_count; i++)
        qg_graph_output(made, graph->outputs[i]);
    status = qg_graph_status(made);
    if (status)
        qg_graph_free(made);
    else
        *out = made;
    return status;
}

qg_status graph_finish_pass(qg_graph *made, const qg_graph *from, const qg_node *map,
                            qg_status status, qg_graph **out) {
    *out = NULL;
    for (int32_t i = 0; i < from->output_count && !status; i++)
        qg_graph_output(made, map[from->outputs[i]]);
    if (!status)
        status = qg_graph_status(made);
    if (!status)
        status = qg_graph_verify(made);
    if (status)
        qg_graph_free(made);
    else
        *out = made;
    return status;
}

// ---------------------------------------------------------------------------------------- looking

int32_t qg_graph_count(const qg_graph *graph) { return graph->count; }
qg_graph_op qg_graph_node_op(const qg_graph *graph, qg_node node) { return graph->nodes[node].op; }
const char *qg_graph_node_name(const qg_graph *graph, qg_node node) {
    return graph->nodes[node].name;
}
bool qg_graph_node_is_named(const qg_graph *graph, qg_node node) {
    return graph->nodes[node].named;
}
const qg_tensor_type *qg_graph_node_type(const qg_graph *graph, qg_node node) {
    return &graph->nodes[node].type;
}
int32_t qg_graph_node_inputs(const qg_graph *graph, qg_node node, const qg_node **inputs) {
    *inputs = graph->nodes[node].inputs;
    return graph->nodes[node].input_count;
}
const qg_attributes *qg_graph_node_attributes(const qg_graph *graph, qg_node node) {
    return &graph->nodes[node].attributes;
}
const void *qg_graph_node_values(const qg_graph *graph, qg_node node) {
    const graph_values *values = graph->nodes[node].values;
    return values ? values->bytes : NULL;
}

uint64_t qg_graph_node_digest(const qg_graph *graph, qg_node node) {
    const graph_node *n = &graph->nodes[node];
    if (n->digest || !n->values)
        return n->digest;
    return qg_digest_bytes(n->values->bytes, (size_t)qg_tensor_bytes(&n->type));
}

int32_t qg_graph_outputs(const qg_graph *graph, const qg_node **outputs) {
    *outputs = graph->outputs;
    return graph->output_count;
}

int32_t qg_graph_count_op(const qg_graph *graph, qg_graph_op op) {
    int32_t count = 0;
    for (int32_t i = 0; i < graph->count; i++)
        count += graph->nodes[i].op == op;
    return count;
}
