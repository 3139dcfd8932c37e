// A small tensor graph: nodes with static shapes, in an order in which inputs come before users.
// It owns every node, name and value that it is given a copy of. A builder that fails returns
// QG_NODE_NONE, and the graph keeps the first failure: builders can be nested, those after a
// failure do nothing, qg_graph_status tells at the end. QG_NODE_NONE from elsewhere fails.
//
//     qg_graph_create(&g);
//     qg_node x = qg_graph_input(g, "x", qg_tensor(QG_DTYPE_FP32, 2, 4, 64));
//     qg_node w = qg_graph_parameter(g, "w", qg_tensor(QG_DTYPE_FP32, 2, 64, 16), weights);
//     qg_graph_output(g, qg_graph_name(g, qg_graph_relu(g, qg_graph_matmul(g, x, w)), "y"));
//     if (qg_graph_status(g) != QG_OK) ... qg_detail() names the node
//
// Running: qg_graph_run.h; rewriting: qg_graph_pass.h; text: qg_graph_text.h. No I/O.
#ifndef QG_GRAPH_H
#define QG_GRAPH_H

#include <qg_recipe.h>
#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

// ------------------------------------------------------------------------------------------ types

// X(ID, name, bytes of an element)
#define QG_DTYPE_TABLE(X)                                                                          \
    X(FP32, "fp32", 4)                                                                             \
    X(FP16, "fp16", 2)                                                                             \
    X(BF16, "bf16", 2)                                                                             \
    X(I64, "i64", 8) /* indices */                                                                 \
    X(U8, "u8", 1)   /* codes, and scales of 8 bits */

typedef enum qg_dtype {
#define QG_DTYPE_ENUM(ID, name, bytes) QG_DTYPE_##ID,
    QG_DTYPE_TABLE(QG_DTYPE_ENUM)
#undef QG_DTYPE_ENUM
        QG_DTYPE_COUNT
} qg_dtype;

const char *qg_dtype_name(qg_dtype dtype);
int qg_dtype_bytes(qg_dtype dtype);
// QG_DTYPE_COUNT for another word.
qg_dtype qg_dtype_find(const char *name);
static inline bool qg_dtype_is_float(qg_dtype dtype) { return dtype <= QG_DTYPE_BF16; }

enum { QG_RANK_MOST = 8 };

// Rank 0 is a single number. Extents are at least 1; values are row-major.
typedef struct qg_tensor_type {
    int32_t dtype; // qg_dtype
    int32_t rank;
    int64_t shape[QG_RANK_MOST]; // zeros past the rank
} qg_tensor_type;

// qg_tensor(QG_DTYPE_FP32, 2, (int64_t)4, (int64_t)64): `rank` extents, converted to int64_t.
#define qg_tensor(dtype, rank, ...) ((qg_tensor_type){(dtype), (rank), {__VA_ARGS__}})

// QG_ERROR_ARGUMENT (dtype, rank or an extent out of range, an extent past the rank),
// QG_ERROR_OVERFLOW beyond 2^62 bytes.
qg_status qg_tensor_check(const qg_tensor_type *type);
int64_t qg_tensor_elements(const qg_tensor_type *type); // of a checked type
int64_t qg_tensor_bytes(const qg_tensor_type *type);
bool qg_tensor_equal(const qg_tensor_type *a, const qg_tensor_type *b);
// "fp32[4,64]", "fp32[]"
enum { QG_TENSOR_TEXT_SIZE = 192 };
void qg_tensor_text(const qg_tensor_type *type, char text[QG_TENSOR_TEXT_SIZE]);
// The matrix that quantization sees: rows = the product of all axes but the last (1 of rank 1), k =
// the last. Rank at least 1.
void qg_tensor_matrix(const qg_tensor_type *type, int64_t *rows, int64_t *k);

// -------------------------------------------------------------------------------------------- ops

// X(ID, name, fewest inputs, most inputs, what it is)
// Float ops compute in binary32 and round once, RNE, to the dtype of their first float input; all
// float inputs of one op have one dtype. Broadcasting is NumPy's.
// clang-format off
#define QG_GRAPH_OP_TABLE(X)                                                                       \
    X(INPUT,       "input",       0, 0, "values that come with each run")                          \
    X(PARAMETER,   "parameter",   0, 0, "values that stay: weights")                               \
    X(CONSTANT,    "constant",    0, 0, "values that the graph owns")                              \
    X(MATMUL,      "matmul",      2, 2, "a (..., m, k) times b (..., k, n), equal leading axes")   \
    X(TRANSPOSE,   "transpose",   1, 1, "axis i of the output is axis axes[i] of the input")       \
    X(RESHAPE,     "reshape",     1, 1, "the same values in another shape")                        \
    X(SLICE,       "slice",       1, 1, "begin[i] <= index < end[i] of each axis")                 \
    X(CONCATENATE, "concatenate", 1, 64, "along axes[0]")                                          \
    X(ADD,         "add",         2, 2, "a + b, broadcast")                                        \
    X(SUBTRACT,    "subtract",    2, 2, "a - b, broadcast")                                        \
    X(MULTIPLY,    "multiply",    2, 2, "a * b, broadcast")                                        \
    X(DIVIDE,      "divide",      2, 2, "a / b, broadcast")                                        \
    X(MAXIMUM,     "maximum",     2, 2, "the larger, NaN if either is; broadcast")                 \
    X(SQRT,        "sqrt",        1, 1, "square root")                                             \
    X(GELU,        "gelu",        1, 1, "x times the normal distribution function; or tanh_form")  \
    X(RELU,        "relu",        1, 1, "the larger of x and 0, NaN if x is")                      \
    X(TANH,        "tanh",        1, 1, "hyperbolic tangent")                                      \
    X(SOFTMAX,     "softmax",     1, 1, "over the last axis")                                      \
    X(LAYER_NORM,  "layer_norm",  3, 3, "x, gain (k), bias (k): over the last axis, with eps")     \
    X(GATHER,      "gather",      2, 2, "rows of a table: table (v, ...) at indices (i64)")        \
    X(REDUCE_SUM,  "reduce_sum",  1, 1, "over axes, kept as 1 with keepdims")                      \
    X(REDUCE_MEAN, "reduce_mean", 1, 1, "over axes, kept as 1 with keepdims")                      \
    X(REDUCE_MAX,  "reduce_max",  1, 1, "over axes, kept as 1 with keepdims; NaN if any is")       \
    X(CAST,        "cast",        1, 1, "to another float dtype, RNE")                             \
    X(RELU_GRADIENT, "relu_gradient", 2, 2, "x, dy: dy where x > 0, else 0")                       \
    X(GELU_GRADIENT, "gelu_gradient", 2, 2, "x, dy: dy times the derivative at x")                 \
    X(REDUCE_MAX_GRADIENT, "reduce_max_gradient", 3, 3,                                            \
      "x, y, dy (y and dy kept as 1): dy shared among the elements equal to y")                    \
    X(SCALED_TENSOR_SCALE, "scaled_tensor_scale", 1, 1, "x: its tensor scale, fp32 [1]")           \
    X(SCALED_QUANT_SCALE, "scaled_quant_scale", 1, 1, "x: its scales")                             \
    X(SCALED_QUANTIZE, "scaled_quantize", 2, 3, "x, scale[, tensor scale]: codes")                 \
    X(SCALED_DEQUANTIZE, "scaled_dequantize", 2, 3, "codes, scale[, tensor scale]: fp32")          \
    X(SCALED_MATMUL, "scaled_matmul", 4, 7,                                                        \
      "lhs (..., m, k), rhs (..., n, k), scales of both[, tensor scales][, bias (n)]: lhs rhs^T")  \
    X(SCALED_GROUPED_MATMUL, "scaled_grouped_matmul", 5, 8,                                        \
      "tokens (m, k), experts (e, n, k), expert of each token (m), scales of both[, tensor "       \
      "scales][, bias (e, n)]")
// clang-format on

typedef enum qg_graph_op {
#define QG_GRAPH_OP_ENUM(ID, name, fewest, most, what) QG_GRAPH_##ID,
    QG_GRAPH_OP_TABLE(QG_GRAPH_OP_ENUM)
#undef QG_GRAPH_OP_ENUM
        QG_GRAPH_OP_COUNT
} qg_graph_op;

typedef struct qg_graph_op_info {
    const char *name, *what;
    int fewest, most; // inputs
} qg_graph_op_info;
const qg_graph_op_info *qg_graph_op_describe(qg_graph_op op);
// QG_GRAPH_OP_COUNT for another word.
qg_graph_op qg_graph_op_find(const char *name);

enum { QG_RECIPE_TEXT_SIZE = 160 };

// What an op has beside its inputs; in a graph, what an op does not have is zero.
typedef struct qg_attributes {
    qg_tensor_type type; // input, parameter, constant: the output's. reshape: shape alone. cast and
                         // scaled products: dtype alone
    int32_t axes[QG_RANK_MOST], axis_count;         // transpose, reductions, reduce_max_gradient;
                                                    // concatenate: axes[0]
    int64_t begin[QG_RANK_MOST], end[QG_RANK_MOST]; // slice
    bool keepdims, tanh_form;                       // reductions; gelu and its gradient
    float eps;                                      // layer_norm
    uint64_t seed; // scaled_quantize, added to that of the run: stochastic rounding
    // Scaled ops, as qg_recipe_parse reads them: "mxfp8", "e4m3/group:128/amax". recipe_b: of the
    // right operand of products.
    char recipe[QG_RECIPE_TEXT_SIZE], recipe_b[QG_RECIPE_TEXT_SIZE];
} qg_attributes;

// ------------------------------------------------------------------------------------------ graph

typedef struct qg_graph qg_graph;
typedef int32_t qg_node; // its place in the graph: inputs come before users
enum { QG_NODE_NONE = -1 };

qg_status qg_graph_create(qg_graph **out);
void qg_graph_free(qg_graph *graph); // NULL is fine
// A graph of its own; values are shared. The two may be used by different threads.
qg_status qg_graph_copy(const qg_graph *graph, qg_graph **out);

// QG_OK, or the first failure of a builder, which becomes qg_detail() again.
qg_status qg_graph_status(const qg_graph *graph);

// Any op. name: NULL for one of its own ("matmul_7"); letters, digits and _ . / : -, unique, at
// most 255. Checks structure, shapes and dtypes as qg_graph_verify does.
qg_node qg_graph_add_node(qg_graph *graph, qg_graph_op op, int32_t count, const qg_node *inputs,
                          const qg_attributes *attributes, const char *name);

// Values of a parameter are borrowed: aligned for their dtype, there as long as the graph and all
// graphs that are made of it; NULL: to be bound before it runs.
qg_node qg_graph_input(qg_graph *graph, const char *name, qg_tensor_type type);
qg_node qg_graph_parameter(qg_graph *graph, const char *name, qg_tensor_type type,
                           const void *values);
qg_node qg_graph_constant(qg_graph *graph, const char *name, qg_tensor_type type,
                          const void *values);         // copied
qg_node qg_graph_scalar(qg_graph *graph, float value); // an fp32 constant of rank 0

qg_node qg_graph_matmul(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_transpose(qg_graph *graph, qg_node x, const int32_t *axes); // (rank)
qg_node qg_graph_reshape(qg_graph *graph, qg_node x, int32_t rank, const int64_t *shape);
qg_node qg_graph_slice(qg_graph *graph, qg_node x, const int64_t *begin, const int64_t *end);
qg_node qg_graph_concatenate(qg_graph *graph, int32_t count, const qg_node *inputs, int32_t axis);
qg_node qg_graph_add(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_subtract(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_multiply(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_divide(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_maximum(qg_graph *graph, qg_node a, qg_node b);
qg_node qg_graph_sqrt(qg_graph *graph, qg_node x);
qg_node qg_graph_gelu(qg_graph *graph, qg_node x, bool tanh_form);
qg_node qg_graph_relu(qg_graph *graph, qg_node x);
qg_node qg_graph_tanh(qg_graph *graph, qg_node x);
qg_node qg_graph_softmax(qg_graph *graph, qg_node x);
qg_node qg_graph_layer_norm(qg_graph *graph, qg_node x, qg_node gain, qg_node bias, float eps);
qg_node qg_graph_gather(qg_graph *graph, qg_node table, qg_node indices);
// op: QG_GRAPH_REDUCE_*
qg_node qg_graph_reduce(qg_graph *graph, qg_graph_op op, qg_node x, int32_t count,
                        const int32_t *axes, bool keepdims);
qg_node qg_graph_cast(qg_graph *graph, qg_node x, qg_dtype dtype);

// A quantized tensor: what the scaled ops take together.
typedef struct qg_scaled {
    qg_node codes, scale, tensor_scale; // tensor_scale: QG_NODE_NONE where the recipe has none
    const char *recipe; // of qg_graph_quantize, borrowed: builders that take this copy it
} qg_scaled;

// scaled_quant_scale and scaled_quantize (and scaled_tensor_scale) of x.
qg_scaled qg_graph_quantize(qg_graph *graph, qg_node x, const char *recipe);
qg_node qg_graph_dequantize(qg_graph *graph, qg_scaled x);
// bias: QG_NODE_NONE for none. dtype: QG_DTYPE_FP32 or _BF16.
qg_node qg_graph_scaled_matmul(qg_graph *graph, qg_scaled lhs, qg_scaled rhs, qg_node bias,
                               qg_dtype dtype);
qg_node qg_graph_scaled_grouped_matmul(qg_graph *graph, qg_scaled tokens, qg_scaled experts,
                                       qg_node index, qg_node bias, qg_dtype dtype);

// Renames; returns the node.
qg_node qg_graph_name(qg_graph *graph, qg_node node, const char *name);
// Marks an output; a node may be one once. Returns the node.
qg_node qg_graph_output(qg_graph *graph, qg_node node);

// Gives a parameter, or a constant that was read from text, its values, borrowed as those of
// qg_graph_parameter are. QG_ERROR_ARGUMENT: no such node; its digest is known and another; NULL.
qg_status qg_graph_bind(qg_graph *graph, const char *name, const void *values);

// ---------------------------------------------------------------------------------------- looking

// What these return holds until the graph gains a node, an output, a name or values.
int32_t qg_graph_count(const qg_graph *graph);
qg_graph_op qg_graph_node_op(const qg_graph *graph, qg_node node);
const char *qg_graph_node_name(const qg_graph *graph, qg_node node);
// Whether its name was given: not of the form that the graph gives.
bool qg_graph_node_is_named(const qg_graph *graph, qg_node node);
const qg_tensor_type *qg_graph_node_type(const qg_graph *graph, qg_node node);
int32_t qg_graph_node_inputs(const qg_graph *graph, qg_node node, const qg_node **inputs);
const qg_attributes *qg_graph_node_attributes(const qg_graph *graph, qg_node node);
// Values of a parameter or constant, NULL where they are not there; the digest (XXH3-64 of the
// bytes) that its values have or must have, 0 if unknown.
const void *qg_graph_node_values(const qg_graph *graph, qg_node node);
uint64_t qg_graph_node_digest(const qg_graph *graph, qg_node node);
// QG_NODE_NONE if there is none.
qg_node qg_graph_find(const qg_graph *graph, const char *name);
int32_t qg_graph_outputs(const qg_graph *graph, const qg_node **outputs);
int32_t qg_graph_count_op(const qg_graph *graph, qg_graph_op op);

// ----------------------------------------------------------------------------------- scaled shapes

// What the scaled ops need to know of a recipe text and the x that is quantized. scale: fp32 or u8:
// [1] per tensor, else [rows of blocks, columns of blocks], with a last axis of 2 for pair shifts
// (u8) and residuals (fp32).
typedef struct qg_scaled_shape {
    qg_recipe recipe;
    qg_tensor_type codes; // u8, as x; with two planes (2, ...)
    qg_tensor_type scale;
    bool has_tensor_scale;
} qg_scaled_shape;
// QG_ERROR_ARGUMENT: a recipe that is unknown or that a graph cannot have: codes of more than a
// byte, rule `delayed`; an x of rank 0, or of the largest rank with two planes. QG_ERROR_OVERFLOW.
qg_status qg_scaled_shape_of(const char *recipe, const qg_tensor_type *x, qg_scaled_shape *out);

// ------------------------------------------------------------------------------------------ verify

// Structure, names, shapes, dtypes and attributes of every node, from nothing but the nodes: for
// scaled ops also K equality, scale extents and dtype against the layout, bias length, format and
// layout, and that codes are read by a recipe of the format, layout and scales of the one that made
// them. At least one output. The detail names the node.
qg_status qg_graph_verify(const qg_graph *graph);

QG_EXTERN_C_END

#endif
