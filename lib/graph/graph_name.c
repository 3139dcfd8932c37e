// Names of nodes: what is one, which is whose (a hash table with open addressing), renaming. See
// qg_graph.h.
#include "graph_internal.h"

#include <qg_digest.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------- words

bool graph_name_is_valid(const char *name) {
    if (!name)
        return false;
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "_./:-");
    return length > 0 && length <= GRAPH_NAME_MOST && name[length] == 0;
}

static bool is_taken(const qg_graph *graph, const char *name) {
    return qg_graph_find(graph, name) != QG_NODE_NONE ||
           (graph->reserved && qg_graph_find(graph->reserved, name) != QG_NODE_NONE);
}

void graph_make_name(const qg_graph *graph, qg_graph_op op, char name[GRAPH_OWN_NAME_SIZE]) {
    const char *word = qg_graph_op_describe(op)->name;
    snprintf(name, GRAPH_OWN_NAME_SIZE, "%s_%" PRId32, word, graph->count);
    for (int32_t i = 1; is_taken(graph, name); i++)
        snprintf(name, GRAPH_OWN_NAME_SIZE, "%s_%" PRId32 "_%" PRId32, word, graph->count, i);
}

bool graph_name_is_own(qg_graph_op op, const char *name) {
    const char *word = qg_graph_op_describe(op)->name;
    size_t length = strlen(word);
    return strncmp(name, word, length) == 0 && name[length] == '_' && name[length + 1] &&
           name[length + 1 + strspn(name + length + 1, "0123456789_")] == 0;
}

qg_status graph_check_name(const qg_graph *graph, const char *name) {
    char shown[64];
    if (graph_name_is_valid(name)) {
        if (qg_graph_find(graph, name) == QG_NODE_NONE)
            return QG_OK;
        return qg_fail(QG_ERROR_ARGUMENT, "the name '%s' is taken", name);
    }
    snprintf(shown, sizeof shown, "%s", name ? name : "");
    for (char *c = shown; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return qg_fail(QG_ERROR_ARGUMENT,
                   "'%s' is no name of a node: letters, digits and _ . / : -, 1 to %d of them",
                   shown, GRAPH_NAME_MOST);
}

// ------------------------------------------------------------------------------------------ places

static uint32_t home_of(const qg_graph *graph, const char *name) {
    return (uint32_t)qg_digest_bytes(name, strlen(name)) & ((uint32_t)graph->place_count - 1);
}

// The place of a name, or the free one where it belongs.
static uint32_t place_of(const qg_graph *graph, const char *name) {
    uint32_t mask = (uint32_t)graph->place_count - 1, place = home_of(graph, name);
    while (graph->places[place] != QG_NODE_NONE &&
           strcmp(graph->nodes[graph->places[place]].name, name) != 0)
        place = (place + 1) & mask;
    return place;
}

// At most half of the places are used.
qg_status graph_grow_places(qg_graph *graph) {
    if (graph->count < graph->place_count / 2)
        return QG_OK;
    int32_t wanted = graph->place_count ? 2 * graph->place_count : 64;
    qg_node *places = malloc((size_t)wanted * sizeof *places);
    if (!places)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the names of a graph");
    free(graph->places);
    graph->places = places;
    graph->place_count = wanted;
    for (int32_t i = 0; i < wanted; i++)
        places[i] = QG_NODE_NONE;
    for (int32_t i = 0; i < graph->count; i++)
        graph_put_place(graph, i);
    return QG_OK;
}

void graph_put_place(qg_graph *graph, qg_node place) {
    graph->places[place_of(graph, graph->nodes[place].name)] = place;
}

// Frees the place of a name. A name further on moves into the gap, unless its home lies behind it:
// a search from there would not pass the gap.
static void free_place(qg_graph *graph, const char *name) {
    uint32_t mask = (uint32_t)graph->place_count - 1, gap = place_of(graph, name);
    for (uint32_t next = (gap + 1) & mask; graph->places[next] != QG_NODE_NONE;
         next = (next + 1) & mask) {
        uint32_t home = home_of(graph, graph->nodes[graph->places[next]].name);
        if (((next - home) & mask) < ((next - gap) & mask))
            continue;
        graph->places[gap] = graph->places[next];
        gap = next;
    }
    graph->places[gap] = QG_NODE_NONE;
}

qg_node qg_graph_find(const qg_graph *graph, const char *name) {
    return name && graph->place_count ? graph->places[place_of(graph, name)] : QG_NODE_NONE;
}

// ---------------------------------------------------------------------------------------- renaming

qg_node qg_graph_name(qg_graph *graph, qg_node node, const char *name) {
    if (graph->status != QG_OK)
        return QG_NODE_NONE;
    if (node < 0 || node >= graph->count)
        return graph_fail(graph, qg_fail(QG_ERROR_ARGUMENT, "what is to be named is no node"));
    graph_node *n = &graph->nodes[node];
    if (name && strcmp(n->name, name) == 0)
        return node;
    qg_status status = graph_check_name(graph, name);
    if (status)
        return graph_fail(graph, graph_at_node(n->name, n->op, status));
    char *copy = strdup(name);
    if (!copy)
        return graph_fail(graph, qg_fail(QG_ERROR_MEMORY, "no memory for a name"));
    free_place(graph, n->name);
    free(n->name);
    n->name = copy;
    n->named = !graph_name_is_own(n->op, name);
    graph_put_place(graph, node);
    return node;
}
