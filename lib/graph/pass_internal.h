// What passes share: making a graph from another, and leaving nodes out. Private to graph/.
#ifndef PASS_INTERNAL_H
#define PASS_INTERNAL_H

#include "graph_internal.h"

#include <qg_graph_pass.h>

// A pass at work: nodes of `from` in order become nodes of `made`, map[old] = new.
typedef struct graph_pass {
    const qg_graph *from;
    qg_graph *made;
    qg_node *map;
} graph_pass;

// The failure of `from`'s own building, if there is one. While the pass is at work, no node gets a
// made-up name that a node of `from` has.
qg_status graph_pass_begin(graph_pass *pass, const qg_graph *from);
void graph_pass_copy(graph_pass *pass, qg_node node);
// Marks the images of the outputs. Unless status and graph are good and the graph verifies, frees
// it and keeps the detail. Of a pass that begun.
qg_status graph_pass_end(graph_pass *pass, qg_status status, qg_graph **out);

// Puts "WHAT 'NAME': " before the detail of the failure.
qg_status graph_pass_blame(const char *what, const char *name, qg_status status);

// Room for one zeroed T for each node of a graph.
qg_status graph_per_node(const qg_graph *graph, int64_t size, void **out);

// users[i]: inputs of nodes and outputs of the graph that node i is. users: (count).
void graph_count_users(const qg_graph *graph, int32_t *users);
// Whether an output needs the node. needed: (count).
void graph_mark_needed(const qg_graph *graph, bool *needed);
// The graph without the nodes that are `gone`, which nothing that stays needs. gone: (count).
qg_status graph_without(const qg_graph *graph, const bool *gone, qg_graph **out);

// Which products insertion rewrites, by the filters of `scaling`; checks the filters. selected:
// (count), zeroed; *products: how many.
qg_status graph_select_products(const qg_graph *graph, const qg_scaling *scaling, bool *selected,
                                int32_t *products);

#endif
