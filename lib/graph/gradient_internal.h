// What the files of the gradient share. Private to graph/.
//
// gradient.c sweeps from the loss to the inputs and owns sums and names; gradient_float.c and
// gradient_scaled.c know what each op passes to its inputs.
#ifndef GRADIENT_INTERNAL_H
#define GRADIENT_INTERNAL_H

#include "graph_internal.h"

// An operand of scaled products, by its codes: what the backward pass made of it.
typedef struct gradient_operand {
    const char *recipe; // NULL: nothing yet
    qg_node scale, tensor_scale;
    qg_node values;    // dequantized; experts: all of them stacked, (e n, k)
    qg_scaled crossed; // values transposed and quantized along the other axis; codes QG_NODE_NONE:
                       // not yet
} gradient_operand;

typedef struct gradient {
    const qg_graph *from;
    qg_graph *made;             // a copy of `from`, nodes at their places, and what comes after
    const char *recipe;         // of incoming gradients; NULL: they are not quantized
    bool *needed;               // a gradient is wanted of the node or of what it comes from
    qg_node *sums;              // the gradient so far, QG_NODE_NONE before the first contribution
    gradient_operand *operands; // by codes; those of experts after all others
    uint64_t next_seed;         // of stochastic rounding
} gradient;

// Adds to the gradient of a needed node of `from`. The contribution has the node's shape and dtype;
// that of codes is of the tensor they stand for, fp32.
void gradient_contribute(gradient *g, qg_node node, qg_node contribution);

// Whether a gradient passes from a node to its input number i. Not through scales: detached.
bool gradient_passes(const graph_node *node, int32_t i);

// Contributes to the needed inputs of a node whose gradient is dy.
// QG_ERROR_UNSUPPORTED, without a detail: it has none; failures of builders stay in the graph.
qg_status gradient_of_float(gradient *g, const graph_node *node, qg_node place, qg_node dy);
qg_status gradient_of_scaled(gradient *g, const graph_node *node, qg_node dy);

// Nodes of `made`. A constant whose elements are all -1, 0 or 1.
qg_node gradient_filled(gradient *g, qg_tensor_type type, int value);
qg_node gradient_cast(gradient *g, qg_node x, int32_t dtype); // x where it has that dtype
// The last two axes exchanged; of such a transpose its input.
qg_node gradient_exchanged(gradient *g, qg_node x);
qg_tensor_type gradient_type(const gradient *g, qg_node x); // no shape for QG_NODE_NONE

#endif
