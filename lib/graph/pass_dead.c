// Removal of nodes that no output needs. See qg_graph_pass.h.
#include "pass_internal.h"

#include <qg_memory.h>

qg_status qg_graph_remove_dead(const qg_graph *graph, qg_graph **out) {
    void *room;
    *out = NULL;
    qg_status status = graph_per_node(graph, sizeof(bool), &room);
    if (status)
        return status;
    bool *gone = room;
    graph_mark_needed(graph, gone);
    for (qg_node i = 0; i < graph->count; i++)
        gone[i] = !gone[i] && graph->nodes[i].op != QG_GRAPH_INPUT;
    status = graph_without(graph, gone, out);
    qg_release(gone);
    return status;
}
