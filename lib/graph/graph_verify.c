// Verification: every node once more from nothing but its inputs and attributes. See qg_graph.h.
#include "graph_internal.h"

#include <qg_recipe_name.h>

#include <inttypes.h>
#include <string.h>

#define INPUTS_FIT(ID, name, fewest, most, what)                                                   \
    _Static_assert((most) <= GRAPH_INPUTS_MOST, "too many inputs: " name);
QG_GRAPH_OP_TABLE(INPUTS_FIT)
#undef INPUTS_FIT

static qg_status check_inputs(qg_node place, qg_graph_op op, int32_t count, const qg_node *inputs) {
    const qg_graph_op_info *info = qg_graph_op_describe(op);
    if (count < info->fewest || count > info->most)
        return qg_fail(QG_ERROR_ARGUMENT, "%" PRId32 " inputs, not %d to %d", count, info->fewest,
                       info->most);
    if (count > 0 && !inputs)
        return qg_fail(QG_ERROR_ARGUMENT, "inputs are not given");
    for (int32_t i = 0; i < count; i++)
        if (inputs[i] < 0 || inputs[i] >= place)
            return qg_fail(QG_ERROR_ARGUMENT, "input %" PRId32 " is no node before it", i);
    return QG_OK;
}

// Whether `scale` is what op finds for x by this recipe.
static bool is_scale_of(const qg_graph *graph, qg_node scale, qg_graph_op op, qg_node x,
                        const char *recipe) {
    const graph_node *node = &graph->nodes[scale];
    return node->op == op && node->inputs[0] == x && strcmp(node->attributes.recipe, recipe) == 0;
}

bool graph_has_own_scales(const qg_graph *graph, const graph_node *quantize) {
    const qg_node *inputs = quantize->inputs;
    const char *recipe = quantize->attributes.recipe;
    return is_scale_of(graph, inputs[1], QG_GRAPH_SCALED_QUANT_SCALE, inputs[0], recipe) &&
           (quantize->input_count < 3 ||
            is_scale_of(graph, inputs[2], QG_GRAPH_SCALED_TENSOR_SCALE, inputs[0], recipe));
}

// Rules whose factor the stored scale does not determine need the scale of their own input.
static qg_status check_own_scale(const qg_graph *graph, const qg_node *inputs, const char *text) {
    qg_recipe recipe;
    qg_status status = qg_recipe_parse(text, &recipe);
    if (status || recipe.rule != QG_RULE_AMAX_MUL)
        return status;
    if (is_scale_of(graph, inputs[1], QG_GRAPH_SCALED_QUANT_SCALE, inputs[0], text))
        return QG_OK;
    return qg_fail(
        QG_ERROR_ARGUMENT,
        "rule amax_mul multiplies by a factor that no stored scale determines: the scale "
        "must be scaled_quant_scale of the same input and recipe");
}

static bool means_the_same(const qg_recipe *a, const qg_recipe *b) {
    return a->element == b->element && a->structure == b->structure &&
           qg_rule_scale_format(a->rule) == qg_rule_scale_format(b->rule) &&
           qg_rule_has_tensor_scale(a->rule) == qg_rule_has_tensor_scale(b->rule) &&
           a->layout.kind == b->layout.kind && a->layout.rows == b->layout.rows &&
           a->layout.columns == b->layout.columns;
}

// Codes that a node of the graph made are read by a recipe of the same format, layout and scales.
static qg_status check_codes(const qg_graph *graph, qg_node codes, const char *text) {
    qg_recipe made, read;
    const graph_node *node = &graph->nodes[codes];
    if (node->op != QG_GRAPH_SCALED_QUANTIZE)
        return QG_OK;
    qg_status status = qg_recipe_parse(node->attributes.recipe, &made);
    if (!status)
        status = qg_recipe_parse(text, &read);
    if (status || means_the_same(&made, &read))
        return status;
    return qg_fail(QG_ERROR_ARGUMENT, "codes of recipe %.100s do not mean what recipe %.100s says",
                   node->attributes.recipe, text);
}

static qg_status check_origins(const qg_graph *graph, qg_graph_op op, const qg_node *inputs,
                               const qg_attributes *attributes) {
    qg_status status;
    switch (op) {
    case QG_GRAPH_SCALED_QUANTIZE: return check_own_scale(graph, inputs, attributes->recipe);
    case QG_GRAPH_SCALED_DEQUANTIZE: return check_codes(graph, inputs[0], attributes->recipe);
    case QG_GRAPH_SCALED_MATMUL:
    case QG_GRAPH_SCALED_GROUPED_MATMUL:
        status = check_codes(graph, inputs[0], attributes->recipe);
        return status ? status : check_codes(graph, inputs[1], attributes->recipe_b);
    default: return QG_OK;
    }
}

qg_status graph_check_node(const qg_graph *graph, qg_node place, qg_graph_op op, int32_t count,
                           const qg_node *inputs, const qg_attributes *attributes,
                           qg_tensor_type *out) {
    const qg_tensor_type *types[GRAPH_INPUTS_MOST];
    qg_status status = check_inputs(place, op, count, inputs);
    for (int32_t i = 0; i < count && !status; i++)
        types[i] = &graph->nodes[inputs[i]].type;
    if (!status)
        status = graph_infer(op, count, types, attributes, out);
    return status ? status : check_origins(graph, op, inputs, attributes);
}

static qg_status check_node(const qg_graph *graph, qg_node place) {
    const graph_node *node = &graph->nodes[place];
    qg_tensor_type type;
    if (!graph_name_is_valid(node->name) || qg_graph_find(graph, node->name) != place)
        return qg_fail(QG_ERROR_ARGUMENT, "its name is malformed or not its own");
    if ((node->values || node->digest) && !graph_op_has_values(node->op))
        return qg_fail(QG_ERROR_ARGUMENT, "it has values, which only parameters and constants do");
    qg_status status = graph_check_node(graph, place, node->op, node->input_count, node->inputs,
                                        &node->attributes, &type);
    if (status || qg_tensor_equal(&type, &node->type))
        return status;
    char has[QG_TENSOR_TEXT_SIZE], should[QG_TENSOR_TEXT_SIZE];
    qg_tensor_text(&node->type, has);
    qg_tensor_text(&type, should);
    return qg_fail(QG_ERROR_ARGUMENT, "its type is %s, not %s", has, should);
}

qg_status graph_verify_node(const qg_graph *graph, qg_node place) {
    const graph_node *node = &graph->nodes[place];
    return graph_at_node(node->name, node->op, check_node(graph, place));
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
        status = graph_verify_node(graph, i);
    return status ? status : check_outputs(graph);
}
