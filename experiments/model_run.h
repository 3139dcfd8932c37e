// A model with quantized products, run once: its error at every node, against the model in fp32.
#ifndef MODEL_RUN_H
#define MODEL_RUN_H

#include <model.h>
#include <qg_case.h>
#include <qg_workspace.h>

// What a run gave at one node.
typedef struct model_node {
    bool has_sums; // the node is in the quantized graph, too
    qg_sums sums;  // x: in fp32, q: quantized
    double spearman;
    uint64_t digest; // XXH3-64 of the values as binary32, little endian
} model_node;

typedef struct model_nodes {
    char impl[QG_IMPL_SIZE]; // of the first product
    int32_t count;           // nodes of model_graph
    model_node nodes[];      // by their place there
} model_nodes;

// Runs the model of the case's source with the case's recipes, unit, output type, backend and seed:
// weights are quantized once, before. What a run gives stays in the workspace: the cases of other
// nodes find it there. `out` is valid until another run.
qg_status model_run(const qg_case *c, qg_workspace *workspace, const model_nodes **out);

// What a graph is told of the recipe of operand 0 (a) or 1 (b), as qg_recipe_parse reads it.
typedef struct model_recipe_names {
    const char *format, *layout, *scale_rule, *rounding;
} model_recipe_names;
// QG_ERROR_ARGUMENT: too long.
qg_status model_recipe_text(const model_recipe_names *names, char text[QG_RECIPE_TEXT_SIZE]);

// Spearman's rho between the cosine similarities of all pairs of rows i < j, of x and of q; NaN
// below three rows. The similarities are computed in binary64, in order, and compared as binary32.
qg_status model_rank_agreement(int64_t rows, int64_t k, const float *x, const float *q,
                               double *out);

// Whether quantization makes a 2-D product of the node: (m, k) times (k, n).
bool model_product(const qg_graph *graph, qg_node node, int64_t *m, int64_t *n, int64_t *k);

// The graph with scaled products whose output is rounded to `dtype`; a cast to fp32 follows each.
qg_status model_round_products(const qg_graph *graph, qg_dtype dtype, qg_graph **out);

#endif
