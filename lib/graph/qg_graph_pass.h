// Passes: each makes a new graph from one, verified, and leaves the old one as it was. Values are
// shared between them. Names of nodes that stay are kept; a product that becomes a scaled one keeps
// the product's name.
#ifndef QG_GRAPH_PASS_H
#define QG_GRAPH_PASS_H

#include <qg_graph_run.h>

QG_EXTERN_C_BEGIN

// Which products become scaled ones, and how. All zero but `lhs`: every 2-D product.
typedef struct qg_scaling {
    const char *lhs, *rhs;  // recipes, as qg_recipe_parse reads them; rhs NULL: as lhs
    bool batched;           // products of rank above 2, too
    const char *only;       // comma-separated globs over names: those alone; NULL: all
    const char *except;     // comma-separated globs over names: not those; NULL: none
    int64_t least_products; // leave those alone whose m * n * k (all batches) is below
    int32_t first, last;    // leave alone the first and the last ones, in order, of those selected
    uint64_t seed; // of stochastic rounding: each quantization of the graph adds its number
} qg_scaling;

// What insertion did.
typedef struct qg_scaling_report {
    int32_t products;   // that became scaled ones
    int32_t left_alone; // products that did not
    int32_t quantized;  // quantizations inserted
    int32_t reused;     // operands that found theirs
    int32_t transposed; // transposes inserted
} qg_scaling_report;

// Every selected product a (m, k) times b (k, n) becomes scaled_matmul of quantize(a) and
// quantize(transpose(b)), its name and dtype kept (fp16: by a cast of fp32). Of b = transpose(x)
// the transpose is undone or composed; transposes and casts that served nothing else are gone.
// Operands are quantized once for each node, recipe and orientation; with one scale per tensor once
// for each node and recipe, and codes are transposed.
// QG_ERROR_ARGUMENT: a recipe that a graph cannot have, or this product (named) cannot; a glob that
// matches no product; `only` that selects none after all other filters; a count below 0. report may
// be NULL.
qg_status qg_graph_insert_scaled_matmul(const qg_graph *graph, const qg_scaling *scaling,
                                        qg_graph **out, qg_scaling_report *report);

// Computes what depends on constants alone and, with `parameters`, on parameters that have values,
// by running it with `options` (NULL: none), and removes what no output needs. What was computed is
// a constant of the same name and of the bytes that a run gives.
qg_status qg_graph_fold(const qg_graph *graph, bool parameters, const qg_graph_run_options *options,
                        qg_graph **out);

// Automatic mixed precision: products, gelu, relu, tanh and their gradients compute in `dtype`
// (FP16 or BF16), and so does what only moves or combines values where an input does; softmax,
// layer norm, reductions, sqrt, divide, all scaled ops and all that is not fp32 keep theirs. Casts
// are inserted where dtypes meet, one for each node and dtype. An output keeps name and dtype: it
// becomes the cast of what computes it.
qg_status qg_graph_lower_precision(const qg_graph *graph, qg_dtype dtype, qg_graph **out);

// Removes nodes that no output needs; inputs stay.
qg_status qg_graph_remove_dead(const qg_graph *graph, qg_graph **out);

QG_EXTERN_C_END

#endif
