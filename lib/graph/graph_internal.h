// What the files of the graph share: how nodes are stored, and rules of types. Private to graph/.
#ifndef GRAPH_INTERNAL_H
#define GRAPH_INTERNAL_H

#include <qg_graph.h>

// Values of a constant or parameter, shared by graphs.
typedef struct graph_values {
    int64_t users;
    const void *bytes;
    void *owned; // bytes, or NULL: borrowed
} graph_values;

typedef struct graph_node {
    char *name;
    bool named; // its name was given
    qg_graph_op op;
    qg_tensor_type type;
    int32_t input_count;
    qg_node *inputs;
    qg_attributes attributes;
    graph_values *values; // NULL: none
    uint64_t digest;      // 0: unknown
} graph_node;

enum { GRAPH_DETAIL_SIZE = 512, GRAPH_NAME_MOST = 255, GRAPH_NODES_MOST = 1 << 20 };

struct qg_graph {
    qg_status status; // of the first failure
    char detail[GRAPH_DETAIL_SIZE];
    graph_node *nodes;
    int32_t count, capacity;
    qg_node *outputs;
    int32_t output_count, output_capacity;
    qg_node *places; // of names: open addressing, a power of two
    int32_t place_count;
};

// Records the failure if it is the first, and returns QG_NODE_NONE.
qg_node graph_fail(qg_graph *graph, qg_status status);

// The type of a node's output from its inputs' types, and every rule of the op. The detail says what
// is wrong without naming the node. types: (count).
qg_status graph_infer(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                      const qg_attributes *attributes, qg_tensor_type *out);
// The same of the scaled ops.
qg_status graph_infer_scaled(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                             const qg_attributes *attributes, qg_tensor_type *out);

// Whether the op has values of its own: parameter, constant.
static inline bool graph_op_has_values(qg_graph_op op) {
    return op == QG_GRAPH_PARAMETER || op == QG_GRAPH_CONSTANT;
}
static inline bool graph_op_is_scaled(qg_graph_op op) { return op >= QG_GRAPH_SCALED_TENSOR_SCALE; }

bool graph_name_is_valid(const char *name);

// Appends a node as it is told, type included: only its name is checked. values may be NULL and gains a
// user. For reading text and for passes, which verify afterwards.
qg_node graph_append(qg_graph *graph, qg_graph_op op, const char *name, const qg_tensor_type *type,
                     int32_t count, const qg_node *inputs, const qg_attributes *attributes,
                     graph_values *values, uint64_t digest);

// A node of another graph, with its name where that is free and was given, its inputs mapped by
// map[old] = new.
qg_node graph_copy_node(qg_graph *graph, const qg_graph *from, qg_node node, const qg_node *map);

// Marks the images of the outputs; frees the graph and keeps the detail unless status and the graph
// are good and the graph verifies. For the end of a pass.
qg_status graph_finish_pass(qg_graph *made, const qg_graph *from, const qg_node *map,
                            qg_status status, qg_graph **out);

// Where the operands of scaled products lie among their inputs. Absent ones: -1.
typedef struct graph_product_inputs {
    int lhs, rhs, index, lhs_scale, rhs_scale, lhs_tensor_scale, rhs_tensor_scale, bias;
} graph_product_inputs;
// count: of inputs; the tensor scales are there where the recipes have them.
qg_status graph_product_inputs_of(qg_graph_op op, const qg_attributes *attributes, int32_t count,
                                  graph_product_inputs *out);

#endif
