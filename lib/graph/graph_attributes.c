// Which attributes each op has. What a node does not use is zero, so that equal nodes are equal
// structures and the text form holds all of a node.
#include "graph_internal.h"

#include <string.h>

unsigned graph_op_has(qg_graph_op op) {
    switch (op) {
    case QG_GRAPH_INPUT: return GRAPH_HAS_TYPE;
    case QG_GRAPH_PARAMETER:
    case QG_GRAPH_CONSTANT: return GRAPH_HAS_TYPE | GRAPH_HAS_VALUES;
    case QG_GRAPH_RESHAPE: return GRAPH_HAS_SHAPE;
    case QG_GRAPH_CAST: return GRAPH_HAS_DTYPE;
    case QG_GRAPH_TRANSPOSE:
    case QG_GRAPH_CONCATENATE:
    case QG_GRAPH_REDUCE_MAX_GRADIENT: return GRAPH_HAS_AXES;
    case QG_GRAPH_SLICE: return GRAPH_HAS_BEGIN | GRAPH_HAS_END;
    case QG_GRAPH_GELU:
    case QG_GRAPH_GELU_GRADIENT: return GRAPH_HAS_TANH_FORM;
    case QG_GRAPH_LAYER_NORM: return GRAPH_HAS_EPS;
    case QG_GRAPH_REDUCE_SUM:
    case QG_GRAPH_REDUCE_MEAN:
    case QG_GRAPH_REDUCE_MAX: return GRAPH_HAS_AXES | GRAPH_HAS_KEEPDIMS;
    case QG_GRAPH_SCALED_TENSOR_SCALE:
    case QG_GRAPH_SCALED_QUANT_SCALE:
    case QG_GRAPH_SCALED_DEQUANTIZE: return GRAPH_HAS_RECIPE;
    case QG_GRAPH_SCALED_QUANTIZE: return GRAPH_HAS_RECIPE | GRAPH_HAS_SEED;
    case QG_GRAPH_SCALED_MATMUL:
    case QG_GRAPH_SCALED_GROUPED_MATMUL:
        return GRAPH_HAS_DTYPE | GRAPH_HAS_RECIPE | GRAPH_HAS_RECIPE_B;
    default: return 0;
    }
}

qg_tensor_type graph_used_type(const qg_tensor_type *type) {
    qg_tensor_type used = {.dtype = type->dtype, .rank = type->rank};
    for (int32_t i = 0; i < type->rank && i < QG_RANK_MOST; i++)
        used.shape[i] = type->shape[i];
    return used;
}

// A text without an end stays one: verification refuses it.
static void use_recipe(char to[QG_RECIPE_TEXT_SIZE], const char from[QG_RECIPE_TEXT_SIZE]) {
    memcpy(to, from, strnlen(from, QG_RECIPE_TEXT_SIZE));
}

qg_attributes graph_used_attributes(qg_graph_op op, const qg_attributes *attributes) {
    qg_attributes used = {0};
    unsigned has = graph_op_has(op);
    if (has & (GRAPH_HAS_TYPE | GRAPH_HAS_SHAPE))
        used.type = graph_used_type(&attributes->type);
    used.type.dtype = has & (GRAPH_HAS_TYPE | GRAPH_HAS_DTYPE) ? attributes->type.dtype : 0;
    if (has & GRAPH_HAS_AXES) {
        used.axis_count = attributes->axis_count;
        for (int32_t i = 0; i < used.axis_count && i < QG_RANK_MOST; i++)
            used.axes[i] = attributes->axes[i];
    }
    if (has & GRAPH_HAS_BEGIN)
        memcpy(used.begin, attributes->begin, sizeof used.begin);
    if (has & GRAPH_HAS_END)
        memcpy(used.end, attributes->end, sizeof used.end);
    used.keepdims = has & GRAPH_HAS_KEEPDIMS && attributes->keepdims;
    used.tanh_form = has & GRAPH_HAS_TANH_FORM && attributes->tanh_form;
    used.eps = has & GRAPH_HAS_EPS ? attributes->eps : 0.0f;
    used.seed = has & GRAPH_HAS_SEED ? attributes->seed : 0;
    if (has & GRAPH_HAS_RECIPE)
        use_recipe(used.recipe, attributes->recipe);
    if (has & GRAPH_HAS_RECIPE_B)
        use_recipe(used.recipe_b, attributes->recipe_b);
    return used;
}
