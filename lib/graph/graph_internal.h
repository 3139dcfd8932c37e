// What the files of the graph share: how nodes are stored, and rules of types. Private to graph/.
#ifndef GRAPH_INTERNAL_H
#define GRAPH_INTERNAL_H

#include <qg_graph.h>

// Values of a constant or parameter, shared by graphs, which threads may copy and free.
typedef struct graph_values {
    _Atomic int64_t users;
    const void *bytes;
    void *owned; // bytes, or NULL: borrowed
} graph_values;

typedef struct graph_node {
    char *name;
    bool named; // its name was given
    bool is_output;
    qg_graph_op op;
    qg_tensor_type type;
    int32_t input_count;
    qg_node *inputs;
    qg_attributes attributes;
    graph_values *values; // NULL: none
    uint64_t digest;      // 0: unknown
} graph_node;

enum {
    GRAPH_DETAIL_SIZE = 512,
    GRAPH_NAME_MOST = 255,
    GRAPH_OWN_NAME_SIZE = 64,
    GRAPH_INPUTS_MOST = 64, // of any op
    GRAPH_NODES_MOST = 1 << 20
};

struct qg_graph {
    qg_status status; // of the first failure
    char detail[GRAPH_DETAIL_SIZE];
    graph_node *nodes;
    int32_t count, capacity;
    qg_node *outputs;
    int32_t output_count, output_capacity;
    qg_node *places; // of names: open addressing, a power of two
    int32_t place_count;
    const qg_graph *reserved; // the graph does not make up its names either; NULL: none
};

// Records the failure if it is the first, and returns QG_NODE_NONE.
qg_node graph_fail(qg_graph *graph, qg_status status);

// `status`; unless it is QG_OK, with the node put before the detail.
qg_status graph_at_node(const char *name, qg_graph_op op, qg_status status);

// ------------------------------------------------------------------------------------------ values

// A copy of the bytes with one user; NULL without memory, with a detail.
graph_values *graph_values_copy(const void *bytes, int64_t size);
void graph_values_drop(graph_values *values); // one user less; NULL is fine

// ------------------------------------------------------------------------------------------- names

bool graph_name_is_valid(const char *name);
// Valid and not taken.
qg_status graph_check_name(const qg_graph *graph, const char *name);
// The graph's own name for the next node: "matmul_7", or "matmul_7_1" where that is taken.
void graph_make_name(const qg_graph *graph, qg_graph_op op, char name[GRAPH_OWN_NAME_SIZE]);
// Whether a name has that form.
bool graph_name_is_own(qg_graph_op op, const char *name);
// Room for the name of one more node, and the name of the node at `place` put there.
qg_status graph_grow_places(qg_graph *graph);
void graph_put_place(qg_graph *graph, qg_node place);

// -------------------------------------------------------------------------------- traits of ops

// What computes an op.
typedef enum graph_op_kind {
    GRAPH_FLOAT,  // run_float, in binary32
    GRAPH_MOVE,   // run_move: bytes of any dtype
    GRAPH_SCALED, // a backend
    GRAPH_GIVEN   // nothing: values come from elsewhere
} graph_op_kind;

// What qg_graph_lower_precision makes of an op in fp32.
typedef enum graph_op_lowering {
    GRAPH_KEEPS,   // stays
    GRAPH_FOLLOWS, // computes in the low dtype where an input does
    GRAPH_LOWERED  // computes in the low dtype
} graph_op_lowering;

// What an op has of qg_attributes, and of values.
enum {
    GRAPH_HAS_TYPE = 1 << 0,  // type
    GRAPH_HAS_SHAPE = 1 << 1, // type's rank and shape
    GRAPH_HAS_DTYPE = 1 << 2, // type's dtype
    GRAPH_HAS_AXES = 1 << 3,
    GRAPH_HAS_BEGIN = 1 << 4,
    GRAPH_HAS_END = 1 << 5,
    GRAPH_HAS_KEEPDIMS = 1 << 6,
    GRAPH_HAS_TANH_FORM = 1 << 7,
    GRAPH_HAS_EPS = 1 << 8,
    GRAPH_HAS_SEED = 1 << 9,
    GRAPH_HAS_RECIPE = 1 << 10,
    GRAPH_HAS_RECIPE_B = 1 << 11,
    GRAPH_HAS_VALUES = 1 << 12,
    GRAPH_HAS_PRODUCT = GRAPH_HAS_DTYPE | GRAPH_HAS_RECIPE | GRAPH_HAS_RECIPE_B
};

typedef struct graph_op_traits {
    graph_op_kind kind;
    graph_op_lowering lowering;
    unsigned has; // GRAPH_HAS_*
} graph_op_traits;
const graph_op_traits *graph_traits_of(qg_graph_op op);

// The attributes that the op has, all else zero, also past ranks and the ends of texts.
qg_attributes graph_used_attributes(qg_graph_op op, const qg_attributes *attributes);
qg_tensor_type graph_used_type(const qg_tensor_type *type); // zero past its rank

// ------------------------------------------------------------------------------------------- rules

// Every rule of a node whose inputs are nodes before `place`; *out: the type that it must have. The
// detail does not name the node.
qg_status graph_check_node(const qg_graph *graph, qg_node place, qg_graph_op op, int32_t count,
                           const qg_node *inputs, const qg_attributes *attributes,
                           qg_tensor_type *out);
// The same of the node at `place`, and whether its name and type are its own; the detail names it.
qg_status graph_verify_node(const qg_graph *graph, qg_node place);

// The type of a node's output from its inputs' types, and every rule of the op. The detail says
// what is wrong without naming the node. types: (count), as many as the op takes.
qg_status graph_infer(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                      const qg_attributes *attributes, qg_tensor_type *out);
// The same of the scaled ops.
qg_status graph_infer_scaled(qg_graph_op op, int32_t count, const qg_tensor_type *const *types,
                             const qg_attributes *attributes, qg_tensor_type *out);

// Whether the op has values of its own: parameter, constant.
static inline bool graph_op_has_values(qg_graph_op op) {
    return graph_traits_of(op)->has & GRAPH_HAS_VALUES;
}
static inline bool graph_op_is_scaled(qg_graph_op op) {
    return graph_traits_of(op)->kind == GRAPH_SCALED;
}

// -------------------------------------------------------------------------------------- appending

// Appends a node as it is told, type included: only its name is checked. What the op does not have
// of attributes is dropped. name: NULL for the graph's own. values may be NULL and gains a user.
// For reading text and for passes, which verify afterwards.
qg_node graph_append(qg_graph *graph, qg_graph_op op, const char *name, const qg_tensor_type *type,
                     int32_t count, const qg_node *inputs, const qg_attributes *attributes,
                     graph_values *values, uint64_t digest);

// A node of another graph, with its name where that is free, its inputs mapped by map[old] = new.
// Generated names are kept, too: inputs are fed and nodes compared by them.
qg_node graph_copy_node(qg_graph *graph, const qg_graph *from, qg_node node, const qg_node *map);

// -------------------------------------------------------------------------------------- scaled ops

// Whether a scaled_quantize takes the scales that its own input has by its own recipe.
bool graph_has_own_scales(const qg_graph *graph, const graph_node *quantize);

// Of a recipe that a graph can have.
bool graph_rounds_stochastically(const char *recipe);

// Where the operands of scaled products lie among their inputs. Absent ones: -1.
typedef struct graph_product_inputs {
    int lhs, rhs, index, lhs_scale, rhs_scale, lhs_tensor_scale, rhs_tensor_scale, bias;
} graph_product_inputs;
// count: of inputs; the tensor scales are there where the recipes have them.
qg_status graph_product_inputs_of(qg_graph_op op, const qg_attributes *attributes, int32_t count,
                                  graph_product_inputs *out);

#endif
