// What the tests of gradients build with.
#ifndef GRADIENT_CASE_H
#define GRADIENT_CASE_H

#include <qg_graph_gradient.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline qg_graph *empty(void) {
    qg_graph *g;
    ck_assert_int_eq(qg_graph_create(&g), QG_OK);
    return g;
}

static inline qg_node matrix(qg_graph *g, const char *name, int64_t m, int64_t k) {
    return qg_graph_input(g, name, qg_tensor(QG_DTYPE_FP32, 2, m, k));
}

// The sum of all elements of x, as fp32.
static inline qg_node total(qg_graph *g, qg_node x) {
    static const int32_t axes[QG_RANK_MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    if (qg_graph_node_type(g, x)->dtype != QG_DTYPE_FP32)
        x = qg_graph_cast(g, x, QG_DTYPE_FP32);
    qg_node loss =
        qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, x, qg_graph_node_type(g, x)->rank, axes, false);
    ck_assert_msg(qg_graph_status(g) == QG_OK, "%s", qg_detail());
    return loss;
}

// The gradient graph; `g` is freed.
static inline qg_graph *gradient_with(qg_graph *g, qg_node loss, int32_t count, const qg_node *wrt,
                                      const char *recipe) {
    qg_graph *made;
    qg_gradient_options options = {recipe};
    qg_status status = qg_graph_gradient(g, loss, count, wrt, recipe ? &options : NULL, &made);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    qg_graph_free(g);
    return made;
}

static inline qg_graph *gradient_of(qg_graph *g, qg_node loss, int32_t count, const qg_node *wrt) {
    return gradient_with(g, loss, count, wrt, NULL);
}

static inline qg_node gradient_node(const qg_graph *g, const char *of) {
    char name[300];
    snprintf(name, sizeof name, "gradient/%s", of);
    qg_node node = qg_graph_find(g, name);
    ck_assert_msg(node != QG_NODE_NONE, "no node %s", name);
    return node;
}

// Nodes from `first` on that no output needs.
static inline int32_t dead_nodes(const qg_graph *g, qg_node first) {
    int32_t dead = 0;
    bool *used = calloc((size_t)qg_graph_count(g), sizeof *used);
    const qg_node *nodes;
    for (int32_t i = qg_graph_outputs(g, &nodes); i-- > 0;)
        used[nodes[i]] = true;
    for (qg_node i = qg_graph_count(g) - 1; i >= first; i--) {
        dead += !used[i];
        for (int32_t j = qg_graph_node_inputs(g, i, &nodes); j-- > 0;)
            used[nodes[j]] |= used[i];
    }
    free(used);
    return dead;
}

#endif
