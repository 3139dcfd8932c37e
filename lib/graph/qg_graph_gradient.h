// Gradients of a graph: reverse mode, straight through quantization.
//
// scaled_quantize passes gradients through to x, scales are detached, and a scaled product's
// gradients are products of the dequantized operands (statement R16). With `gradient` the incoming
// gradient is quantized, too, and both products of the backward pass are scaled ones: the other
// operand, dequantized and transposed, is quantized by its own recipe along the axis that is
// summed. Stochastic roundings take the seeds after the largest one of the graph.
#ifndef QG_GRAPH_GRADIENT_H
#define QG_GRAPH_GRADIENT_H

#include <qg_graph.h>

QG_EXTERN_C_BEGIN

typedef struct qg_gradient_options {
    const char
        *gradient; // recipe of incoming gradients, "e5m2" or "mxfp8_e5m2"; NULL: not quantized
} qg_gradient_options;

// *out: the graph, its nodes at their places, with a gradient for each of `wrt` (nodes of dtype
// fp32), named "gradient/NAME", as further outputs after those of `graph`. loss: a node of one fp32
// element. options: NULL for none.
// Gradients exist for matmul, add, subtract, multiply, transpose, reshape, relu, gelu, tanh,
// reductions, cast and the scaled ops; QG_ERROR_UNSUPPORTED names the node of any other op on a
// path from `wrt` to `loss`. A node that loss does not depend on has gradient 0.
// QG_ERROR_ARGUMENT: a loss or wanted node that is none or of another type, one that is wanted
// twice or whose gradient's name is taken or too long, a recipe that a graph cannot have.
qg_status qg_graph_gradient(const qg_graph *graph, qg_node loss, int32_t count, const qg_node *wrt,
                            const qg_gradient_options *options, qg_graph **out);

QG_EXTERN_C_END

#endif
