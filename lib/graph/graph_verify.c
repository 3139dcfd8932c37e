// Verification: every node once more from nothing but its inputs and attributes. See qg_graph.h.
#include "graph_internal.h"

#include <qg_recipe_name.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static qg_status at_node(const graph_node *node, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    if (!status)
        return QG_OK;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "node '%.255s' (%s): %s", node->name,
                   qg_graph_op_describe(node->op)->name, detail);
}

static qg_status check_inputs(qg_node place, const graph_node *node) {
    const qg_graph_op_info *info = qg_graph_op_describe(node->op);
    if (node->input_count < info->fewest || node->input_count > info->most)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " inputs, not %d to %d", node->input_count,
                       info->fewest, info->most);
    for (int32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] < 0 || node->inputs[i] >= place)
            return qg_fail(QG_ERROR_ARGUMENT, "input %" PRId32 " is no node before it", i);
    return QG_OK;
}

// Rules whose factor the stored scale does not determine need the scale of their own input.
static qg_status check_own_scale(const qg_graph *graph, const graph_node *node) {
    qg_recipe recipe;
    if (node->op != QG_GRAPH_SCALED_QUANTIZE ||
        qg_recipe_parse(node->attributes.recipe, &recipe) != QG_OK ||
        recipe.rule != QG_RULE_AMAX_MUL)
        return QG_OK;
    const graph_node *scale = &graph->nodes[node->inputs[1]];
    if (scale->op == QG_GRAPH_SCALED_QUANT_SCALE && scale->inputs[0] == node->inputs[0] &&
        strcmp(scale->attributes.recipe, node->attributes.recipe) == 0)
        return QG_OK;
    return qg_fail(
        QG_ERROR_ARGUMENT,
        "rule amax_mul multiplies by a factor that no stored scale determines: the scale "
        "must be scaled_quant_scale of the same input and recipe");
}

static qg_status check_types(const qg_graph *graph, const graph_node *node) {
    const qg_tensor_type *types[64];
    qg_tensor_type inferred;
    for (int32_t i = 0; i < node->input_count; i++)
        types[i] = &graph->nodes[node->inputs[i]].type;
    qg_status status =
        graph_infer(node->op, node->input_count, types, &node->attributes, &inferred);
    if (status || qg_tensor_equal(&inferred, &node->type))
        return status;
    char has[QG_TENSOR_TEXT_SIZE], should[QG_TENSOR_TEXT_SIZE];
    qg_tensor_text(&node->type, has);
    qg_tensor_text(&inferred, should);
    return qg_fail(QG_ERROR_ARGUMENT, "its type is %s, not %s", has, should);
}

static qg_status check_node(const qg_graph *graph, qg_node place) {
    const graph_node *node = &graph->nodes[place];
    if (!graph_name_is_valid(node->name) || qg_graph_find(graph, node->name) != place)
        return qg_fail(QG_ERROR_ARGUMENT, "its name is malformed or not its own");
    qg_status status = check_inputs(place, node);
    if (!status)
        status = check_types(graph, node);
    return status ? status : check_own_scale(graph, node);
}

static qg_status check_outputs(const qg_graph *graph) {
    if (graph->output_count == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "the graph has no output");
    for (int32_t i = 0; i < graph->output_count; i++)
        if (graph->outputs[i] < 0 || graph->outputs[i] >= graph->count)
            return qg_fail(QG_ERROR_ARGUMENT, "output %" PRId32 " is no node", i);
    return QG_OK;
}

qg_status qg_graph_verify(const qg_graph *graph) {
    qg_status status = qg_graph_status(graph);
    for (qg_node i = 0; i < graph->count && !status; i++)
        status = at_node(&graph->nodes[i], check_node(graph, i));
    return status ? status : check_outputs(graph);
}
