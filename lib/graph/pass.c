// What passes share. See pass_internal.h.
#include "pass_internal.h"

#include <qg_memory.h>

#include <stdio.h>
#include <string.h>

qg_status graph_per_node(const qg_graph *graph, int64_t size, void **out) {
    return qg_allocate(out, graph->count, size, "notes of a pass on its nodes");
}

qg_status graph_pass_begin(graph_pass *pass, const qg_graph *from) {
    void *map = NULL;
    *pass = (graph_pass){.from = from};
    qg_status status = qg_graph_status(from);
    if (!status)
        status = graph_per_node(from, sizeof *pass->map, &map);
    if (!status)
        status = qg_graph_create(&pass->made);
    if (status) {
        qg_release(map);
        return status;
    }
    pass->map = map;
    pass->made->reserved = from;
    return QG_OK;
}

void graph_pass_copy(graph_pass *pass, qg_node node) {
    pass->map[node] = graph_copy_node(pass->made, pass->from, node, pass->map);
}

qg_status graph_pass_end(graph_pass *pass, qg_status status, qg_graph **out) {
    const qg_graph *from = pass->from;
    *out = NULL;
    pass->made->reserved = NULL;
    for (int32_t i = 0; i < from->output_count && !status; i++)
        qg_graph_output(pass->made, pass->map[from->outputs[i]]);
    if (!status)
        status = qg_graph_verify(pass->made);
    if (status)
        qg_graph_free(pass->made);
    else
        *out = pass->made;
    qg_release(pass->map);
    return status;
}

qg_status graph_pass_blame(const char *what, const char *name, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "%s '%.255s': %s", what, name, detail);
}

// ----------------------------------------------------------------------------------- leaving out

void graph_count_users(const qg_graph *graph, int32_t *users) {
    memset(users, 0, (size_t)graph->count * sizeof *users);
    for (qg_node i = 0; i < graph->count; i++)
        for (int32_t j = 0; j < graph->nodes[i].input_count; j++)
            users[graph->nodes[i].inputs[j]]++;
    for (int32_t i = 0; i < graph->output_count; i++)
        users[graph->outputs[i]]++;
}

void graph_mark_needed(const qg_graph *graph, bool *needed) {
    memset(needed, 0, (size_t)graph->count * sizeof *needed);
    for (int32_t i = 0; i < graph->output_count; i++)
        needed[graph->outputs[i]] = true;
    for (qg_node i = graph->count - 1; i >= 0; i--)
        for (int32_t j = 0; j < graph->nodes[i].input_count && needed[i]; j++)
            needed[graph->nodes[i].inputs[j]] = true;
}

qg_status graph_without(const qg_graph *graph, const bool *gone, qg_graph **out) {
    graph_pass pass;
    *out = NULL;
    qg_status status = graph_pass_begin(&pass, graph);
    if (status)
        return status;
    for (qg_node i = 0; i < graph->count; i++)
        if (!gone[i])
            graph_pass_copy(&pass, i);
    return graph_pass_end(&pass, QG_OK, out);
}
