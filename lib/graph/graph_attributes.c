// What each op is and which attributes it has, a row per op. What a node does not use is zero, so
// that equal nodes are equal structures and the text form holds all of a node.
#include "graph_internal.h"

#include <string.h>

// Rows of what is neither 0 nor the default: a float op without attributes that keeps fp32.
static const graph_op_traits TRAITS[QG_GRAPH_OP_COUNT] = {
  // clang-format off
    [QG_GRAPH_INPUT]       = {GRAPH_GIVEN, GRAPH_KEEPS, GRAPH_HAS_TYPE},
    [QG_GRAPH_PARAMETER]   = {GRAPH_GIVEN, GRAPH_KEEPS, GRAPH_HAS_TYPE | GRAPH_HAS_VALUES},
    [QG_GRAPH_CONSTANT]    = {GRAPH_GIVEN, GRAPH_KEEPS, GRAPH_HAS_TYPE | GRAPH_HAS_VALUES},
    [QG_GRAPH_MATMUL]      = {GRAPH_FLOAT, GRAPH_LOWERED, 0},
    [QG_GRAPH_TRANSPOSE]   = {GRAPH_MOVE, GRAPH_FOLLOWS, GRAPH_HAS_AXES},
    [QG_GRAPH_RESHAPE]     = {GRAPH_MOVE, GRAPH_FOLLOWS, GRAPH_HAS_SHAPE},
    [QG_GRAPH_SLICE]       = {GRAPH_MOVE, GRAPH_FOLLOWS, GRAPH_HAS_BEGIN | GRAPH_HAS_END},
    [QG_GRAPH_CONCATENATE] = {GRAPH_MOVE, GRAPH_FOLLOWS, GRAPH_HAS_AXES},
    [QG_GRAPH_GATHER]      = {GRAPH_MOVE, GRAPH_FOLLOWS, 0},
    [QG_GRAPH_ADD]         = {GRAPH_FLOAT, GRAPH_FOLLOWS, 0},
    [QG_GRAPH_SUBTRACT]    = {GRAPH_FLOAT, GRAPH_FOLLOWS, 0},
    [QG_GRAPH_MULTIPLY]    = {GRAPH_FLOAT, GRAPH_FOLLOWS, 0},
    [QG_GRAPH_MAXIMUM]     = {GRAPH_FLOAT, GRAPH_FOLLOWS, 0},
    [QG_GRAPH_GELU]        = {GRAPH_FLOAT, GRAPH_LOWERED, GRAPH_HAS_TANH_FORM},
    [QG_GRAPH_RELU]        = {GRAPH_FLOAT, GRAPH_LOWERED, 0},
    [QG_GRAPH_TANH]        = {GRAPH_FLOAT, GRAPH_LOWERED, 0},
    [QG_GRAPH_LAYER_NORM]  = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_EPS},
    [QG_GRAPH_REDUCE_SUM]  = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_AXES | GRAPH_HAS_KEEPDIMS},
    [QG_GRAPH_REDUCE_MEAN] = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_AXES | GRAPH_HAS_KEEPDIMS},
    [QG_GRAPH_REDUCE_MAX]  = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_AXES | GRAPH_HAS_KEEPDIMS},
    [QG_GRAPH_CAST]        = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_DTYPE},
    [QG_GRAPH_RELU_GRADIENT] = {GRAPH_FLOAT, GRAPH_LOWERED, 0},
    [QG_GRAPH_GELU_GRADIENT] = {GRAPH_FLOAT, GRAPH_LOWERED, GRAPH_HAS_TANH_FORM},
    [QG_GRAPH_REDUCE_MAX_GRADIENT] = {GRAPH_FLOAT, GRAPH_KEEPS, GRAPH_HAS_AXES},
    [QG_GRAPH_SCALED_TENSOR_SCALE] = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_RECIPE},
    [QG_GRAPH_SCALED_QUANT_SCALE]  = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_RECIPE},
    [QG_GRAPH_SCALED_QUANTIZE]     = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_RECIPE | GRAPH_HAS_SEED},
    [QG_GRAPH_SCALED_DEQUANTIZE]   = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_RECIPE},
    [QG_GRAPH_SCALED_MATMUL]         = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_PRODUCT},
    [QG_GRAPH_SCALED_GROUPED_MATMUL] = {GRAPH_SCALED, GRAPH_KEEPS, GRAPH_HAS_PRODUCT}
  // clang-format on
};

const graph_op_traits *graph_traits_of(qg_graph_op op) { return &TRAITS[op]; }

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
    unsigned has = graph_traits_of(op)->has;
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
