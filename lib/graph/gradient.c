// Reverse mode: one sweep over a copy of the graph, from the loss to what it comes from, in which
// each node adds to the gradients of its inputs. Only what leads to a wanted gradient is made, so
// nothing dead is left. What single ops pass on: gradient_float.c, gradient_scaled.c. See
// qg_graph_gradient.h.
#include "gradient_internal.h"

#include <qg_graph_gradient.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char PREFIX[] = "gradient/";

// ---------------------------------------------------------------------------------------- building

qg_tensor_type gradient_type(const gradient *g, qg_node x) {
    return x == QG_NODE_NONE ? (qg_tensor_type){0} : g->made->nodes[x].type;
}

// value: -1, 0 or 1.
static void fill(void *to, int64_t count, int32_t dtype, int value) {
    uint32_t one = dtype == QG_DTYPE_FP16 ? 0x3C00 : 0x3F80;
    uint16_t half = (uint16_t)(value == 0 ? 0 : value < 0 ? 0x8000 | one : one);
    for (int64_t i = 0; i < count; i++)
        if (dtype == QG_DTYPE_FP32)
            ((float *)to)[i] = (float)value;
        else
            ((uint16_t *)to)[i] = half;
}

qg_node gradient_filled(gradient *g, qg_tensor_type type, int value) {
    void *values;
    int64_t count = qg_tensor_elements(&type);
    qg_status status = qg_allocate(&values, count, qg_dtype_bytes((qg_dtype)type.dtype),
                                   "a constant of the backward pass");
    if (status)
        return graph_fail(g->made, status);
    fill(values, count, type.dtype, value);
    qg_node made = qg_graph_constant(g->made, NULL, type, values);
    qg_release(values);
    return made;
}

qg_node gradient_cast(gradient *g, qg_node x, int32_t dtype) {
    if (x == QG_NODE_NONE || g->made->nodes[x].type.dtype == dtype)
        return x;
    return qg_graph_cast(g->made, x, (qg_dtype)dtype);
}

qg_node gradient_exchanged(gradient *g, qg_node x) {
    int32_t axes[QG_RANK_MOST], rank = gradient_type(g, x).rank;
    if (x == QG_NODE_NONE)
        return x;
    for (int32_t i = 0; i < rank; i++)
        axes[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    const graph_node *n = &g->made->nodes[x];
    if (n->op == QG_GRAPH_TRANSPOSE &&
        memcmp(n->attributes.axes, axes, (size_t)rank * sizeof *axes) == 0)
        return n->inputs[0];
    return qg_graph_transpose(g->made, x, axes);
}

void gradient_contribute(gradient *g, qg_node node, qg_node contribution) {
    qg_node *sum = &g->sums[node];
    *sum = *sum == QG_NODE_NONE ? contribution : qg_graph_add(g->made, *sum, contribution);
}

// ----------------------------------------------------------------------------------- what is asked

static qg_status check_loss(const qg_graph *graph, qg_node loss) {
    char text[QG_TENSOR_TEXT_SIZE];
    if (loss < 0 || loss >= graph->count)
        return qg_fail(QG_ERROR_ARGUMENT, "loss: node %" PRId32 " is none", loss);
    const graph_node *n = &graph->nodes[loss];
    if (n->type.dtype == QG_DTYPE_FP32 && qg_tensor_elements(&n->type) == 1)
        return QG_OK;
    qg_tensor_text(&n->type, text);
    return qg_fail(QG_ERROR_ARGUMENT, "loss: node '%.255s' is %s, not one fp32 element: reduce it",
                   n->name, text);
}

// A node whose gradient is asked for can have one, and its name leaves room for the gradient's.
static qg_status check_wanted(const qg_graph *graph, qg_node node) {
    char name[sizeof PREFIX + GRAPH_NAME_MOST], text[QG_TENSOR_TEXT_SIZE];
    if (node < 0 || node >= graph->count)
        return qg_fail(QG_ERROR_ARGUMENT, "gradient of node %" PRId32 ": it is none", node);
    const graph_node *n = &graph->nodes[node];
    if (n->type.dtype != QG_DTYPE_FP32) {
        qg_tensor_text(&n->type, text);
        return qg_fail(QG_ERROR_ARGUMENT, "gradient of node '%.255s': it is %s, not fp32", n->name,
                       text);
    }
    snprintf(name, sizeof name, "%s%s", PREFIX, n->name);
    if (strlen(name) > GRAPH_NAME_MOST)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "gradient of node '%.255s': %s and its name exceed %d characters: rename it",
                       n->name, PREFIX, GRAPH_NAME_MOST);
    if (qg_graph_find(graph, name) != QG_NODE_NONE)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "gradient of node '%.255s': a node '%.265s' is there already: rename it",
                       n->name, name);
    return QG_OK;
}

static qg_status mark_wanted(gradient *g, int32_t count, const qg_node *wrt) {
    if (count < 1)
        return qg_fail(QG_ERROR_ARGUMENT, "gradients of %" PRId32 " nodes: name at least one",
                       count);
    for (int32_t i = 0; i < count; i++) {
        qg_status status = check_wanted(g->from, wrt[i]);
        if (status)
            return status;
        if (g->needed[wrt[i]])
            return qg_fail(QG_ERROR_ARGUMENT, "gradient of node '%.255s': it is asked for twice",
                           g->from->nodes[wrt[i]].name);
        g->needed[wrt[i]] = true;
    }
    return QG_OK;
}

static qg_status check_recipe(const char *recipe) {
    char detail[GRAPH_DETAIL_SIZE];
    qg_tensor_type any = qg_tensor(QG_DTYPE_FP32, 2, 1, 1);
    qg_scaled_shape shape;
    qg_status status = recipe ? qg_scaled_shape_of(recipe, &any, &shape) : QG_OK;
    if (!status)
        return QG_OK;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "recipe of gradients: %s", detail);
}

// --------------------------------------------------------------------------------------- the sweep

static bool passes_on(const gradient *g, const graph_node *node) {
    for (int32_t i = 0; i < node->input_count; i++)
        if (g->needed[node->inputs[i]] && gradient_passes(node, i))
            return true;
    return false;
}

static void mark_needed(gradient *g) {
    for (qg_node i = 0; i < g->from->count; i++)
        g->needed[i] = g->needed[i] || passes_on(g, &g->from->nodes[i]);
}

// Forward quantizations have seeds of their own; those of the backward pass come after them.
static uint64_t first_free_seed(const qg_graph *graph) {
    uint64_t largest = 0;
    for (qg_node i = 0; i < graph->count; i++)
        if (graph->nodes[i].attributes.seed > largest)
            largest = graph->nodes[i].attributes.seed;
    return largest + 1;
}

// The failure of a rule, or of a builder that it called, with the node that it belongs to.
static qg_status name_failure(gradient *g, const graph_node *node, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    const char *word = qg_graph_op_describe(node->op)->name;
    if (status)
        return qg_fail(status, "node '%.255s' (%s): no gradient%s", node->name, word,
                       qg_dtype_is_float((qg_dtype)node->type.dtype) ? "" : " through codes");
    status = qg_graph_status(g->made);
    if (!status)
        return QG_OK;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "gradient of node '%.255s' (%s): %s", node->name, word, detail);
}

static qg_status pass_on(gradient *g, qg_node place) {
    const graph_node *node = &g->from->nodes[place];
    qg_node dy = g->sums[place];
    if (dy == QG_NODE_NONE || !passes_on(g, node))
        return QG_OK;
    qg_status status = graph_op_is_scaled(node->op) ? gradient_of_scaled(g, node, dy)
                                                    : gradient_of_float(g, node, place, dy);
    return name_failure(g, node, status);
}

static qg_status sweep(gradient *g, qg_node loss) {
    qg_status status = QG_OK;
    g->next_seed = first_free_seed(g->from);
    mark_needed(g);
    if (g->needed[loss])
        g->sums[loss] = gradient_filled(g, g->from->nodes[loss].type, 1);
    for (qg_node i = loss; i >= 0 && !status; i--)
        status = pass_on(g, i);
    return status;
}

// ----------------------------------------------------------------------------------------- outputs

// Names the gradient of a node and makes it an output: zeros where nothing was contributed, a node
// of its own where it is another's gradient, too.
static void put_output(gradient *g, qg_node node) {
    char name[sizeof PREFIX + GRAPH_NAME_MOST];
    const graph_node *n = &g->from->nodes[node];
    qg_node sum = g->sums[node];
    snprintf(name, sizeof name, "%s%s", PREFIX, n->name);
    if (sum == QG_NODE_NONE)
        sum = gradient_filled(g, n->type, 0);
    else if (g->made->nodes[sum].named)
        sum = qg_graph_reshape(g->made, sum, n->type.rank, n->type.shape);
    qg_graph_output(g->made, qg_graph_name(g->made, sum, name));
}

static qg_status build(gradient *g, qg_node loss, int32_t count, const qg_node *wrt) {
    qg_status status = mark_wanted(g, count, wrt);
    if (!status)
        status = qg_graph_copy(g->from, &g->made);
    if (!status)
        status = sweep(g, loss);
    for (int32_t i = 0; i < count && !status; i++)
        put_output(g, wrt[i]);
    if (!status)
        status = qg_graph_status(g->made);
    return status ? status : qg_graph_verify(g->made);
}

static qg_status make_room(gradient *g) {
    size_t count = (size_t)g->from->count;
    g->needed = calloc(count, sizeof *g->needed);
    g->sums = malloc(count * sizeof *g->sums);
    g->operands = calloc(2 * count, sizeof *g->operands);
    if (!g->needed || !g->sums || !g->operands)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the gradients of %zu nodes", count);
    for (size_t i = 0; i < count; i++)
        g->sums[i] = QG_NODE_NONE;
    return QG_OK;
}

qg_status qg_graph_gradient(const qg_graph *graph, qg_node loss, int32_t count, const qg_node *wrt,
                            const qg_gradient_options *options, qg_graph **out) {
    gradient g = {.from = graph, .recipe = options ? options->gradient : NULL};
    *out = NULL;
    qg_status status = qg_graph_status(graph);
    if (!status)
        status = check_loss(graph, loss);
    if (!status)
        status = check_recipe(g.recipe);
    if (!status)
        status = make_room(&g);
    if (!status)
        status = build(&g, loss, count, wrt);
    free(g.needed);
    free(g.sums);
    free(g.operands);
    if (status)
        qg_graph_free(g.made);
    else
        *out = g.made;
    return status;
}
