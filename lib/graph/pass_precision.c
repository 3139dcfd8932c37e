// Automatic mixed precision: products and pointwise ops compute in fp16 or bf16, casts where dtypes
// meet. See qg_graph_pass.h. Touches no values.
#include "pass_internal.h"

#include <qg_memory.h>

// Every node has up to two images: in its own dtype (pass.map) and in the low one; whichever is not
// there is cast from the other when a user wants it.
typedef struct lowering {
    graph_pass pass;
    qg_dtype dtype;
    qg_node *low;
    bool *lowered; // computes in the low dtype
} lowering;

static bool has_lowered_input(const lowering *l, const graph_node *n) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (l->lowered[n->inputs[i]])
            return true;
    return false;
}

// What combines or moves values follows its inputs: what is fp32 all around (the table of a gather,
// a mask times -1e38) stays so and is rounded once, where a product takes it.
static bool is_lowered(const lowering *l, const graph_node *n) {
    graph_op_lowering how = graph_traits_of(n->op)->lowering;
    return n->type.dtype == QG_DTYPE_FP32 &&
           (how == GRAPH_LOWERED || (how == GRAPH_FOLLOWS && has_lowered_input(l, n)));
}

// The image of a node in the low dtype or its own.
static qg_node image(lowering *l, qg_node node, bool low) {
    qg_node *wanted = low ? &l->low[node] : &l->pass.map[node];
    if (*wanted != QG_NODE_NONE)
        return *wanted;
    int32_t own = l->pass.from->nodes[node].type.dtype;
    return *wanted = qg_graph_cast(l->pass.made, low ? l->pass.map[node] : l->low[node],
                                   low ? l->dtype : (qg_dtype)own);
}

// Appends the node with its inputs in the low dtype, if they are fp32, or as they were. A cast
// takes what there is: it rounds once.
static qg_node append(lowering *l, const graph_node *n, const char *name, bool low) {
    const qg_graph *from = l->pass.from;
    qg_tensor_type type = n->type;
    qg_node inputs[GRAPH_INPUTS_MOST];
    for (int32_t i = 0; i < n->input_count; i++) {
        qg_node x = n->inputs[i];
        bool takes_low = n->op == QG_GRAPH_CAST ? l->lowered[x]
                                                : low && from->nodes[x].type.dtype == QG_DTYPE_FP32;
        inputs[i] = image(l, x, takes_low);
    }
    if (low)
        type.dtype = (int32_t)l->dtype;
    return graph_append(l->pass.made, n->op, name, &type, n->input_count, inputs, &n->attributes,
                        n->values, n->digest);
}

// The name goes to what computes; of an output to the cast back, which is the output.
static void lower_node(lowering *l, qg_node node) {
    const graph_node *n = &l->pass.from->nodes[node];
    qg_node *own = &l->pass.map[node], *low = &l->low[node];
    *own = *low = QG_NODE_NONE;
    l->lowered[node] = is_lowered(l, n);
    if (!l->lowered[node]) {
        *own = append(l, n, n->name, false);
        return;
    }
    bool named = !n->is_output;
    *low = append(l, n, named ? n->name : NULL, true);
    if (!named)
        *own = qg_graph_name(l->pass.made, image(l, node, false), n->name);
}

static qg_status check_dtype(qg_dtype dtype) {
    if (dtype == QG_DTYPE_FP16 || dtype == QG_DTYPE_BF16)
        return QG_OK;
    return qg_fail(QG_ERROR_ARGUMENT, "mixed precision computes in fp16 or bf16");
}

static qg_status lower_all(lowering *l) {
    void *low = NULL, *lowered = NULL;
    qg_status status = graph_per_node(l->pass.from, sizeof *l->low, &low);
    if (!status)
        status = graph_per_node(l->pass.from, sizeof *l->lowered, &lowered);
    l->low = low;
    l->lowered = lowered;
    for (qg_node i = 0; i < l->pass.from->count && !status; i++) {
        lower_node(l, i);
        status = qg_graph_status(l->pass.made);
    }
    return status;
}

qg_status qg_graph_lower_precision(const qg_graph *graph, qg_dtype dtype, qg_graph **out) {
    lowering l = {.dtype = dtype};
    *out = NULL;
    qg_status status = check_dtype(dtype);
    if (!status)
        status = graph_pass_begin(&l.pass, graph);
    if (status)
        return status;
    status = graph_pass_end(&l.pass, lower_all(&l), out);
    qg_release(l.low);
    qg_release(l.lowered);
    return status;
}
