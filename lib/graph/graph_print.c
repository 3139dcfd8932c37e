// Graphs to text. The form: qg_graph_text.h; what reads it: graph_read.c.
#include "graph_internal.h"

#include <qg_graph_text.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_axes(FILE *f, const qg_attributes *a) {
    fprintf(f, " axes=");
    for (int32_t i = 0; i < a->axis_count && i < QG_RANK_MOST; i++)
        fprintf(f, "%s%" PRId32, i ? "," : "", a->axes[i]);
}

static void print_places(FILE *f, const char *key, const int64_t *places, int32_t rank) {
    fprintf(f, " %s=", key);
    for (int32_t i = 0; i < rank; i++)
        fprintf(f, "%s%" PRId64, i ? "," : "", places[i]);
}

// The type holds what reshape, cast and scaled products have of one.
static void print_attributes(FILE *f, const graph_node *node) {
    const qg_attributes *a = &node->attributes;
    unsigned has = graph_traits_of(node->op)->has;
    if (has & GRAPH_HAS_AXES)
        print_axes(f, a);
    if (has & GRAPH_HAS_BEGIN)
        print_places(f, "begin", a->begin, node->type.rank);
    if (has & GRAPH_HAS_END)
        print_places(f, "end", a->end, node->type.rank);
    if (a->keepdims)
        fprintf(f, " keepdims=1");
    if (a->tanh_form)
        fprintf(f, " tanh_form=1");
    if (has & GRAPH_HAS_EPS)
        fprintf(f, " eps=%a", (double)a->eps);
    if (a->seed)
        fprintf(f, " seed=%" PRIu64, a->seed);
    if (has & GRAPH_HAS_RECIPE)
        fprintf(f, " recipe=%.*s", QG_RECIPE_TEXT_SIZE, a->recipe);
    if (has & GRAPH_HAS_RECIPE_B)
        fprintf(f, " recipe_b=%.*s", QG_RECIPE_TEXT_SIZE, a->recipe_b);
}

// An element of 1, 2, 4 or 8 bytes as the unsigned number that its bits are.
static uint64_t element_bits(const unsigned char *at, int bytes) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1: return *at;
    case 2: memcpy(&two, at, sizeof two); return two;
    case 4: memcpy(&four, at, sizeof four); return four;
    default: memcpy(&eight, at, sizeof eight); return eight;
    }
}

static void print_elements(FILE *f, const qg_tensor_type *type, const void *values) {
    const unsigned char *at = values;
    int bytes = qg_dtype_bytes((qg_dtype)type->dtype);
    for (int64_t i = 0; i < qg_tensor_elements(type); i++, at += bytes)
        fprintf(f, "%c%0*" PRIx64, i ? ',' : ' ', 2 * bytes, element_bits(at, bytes));
}

static void print_values(FILE *f, const qg_graph *graph, qg_node place) {
    const graph_node *node = &graph->nodes[place];
    uint64_t digest = qg_graph_node_digest(graph, place);
    bool written_out = node->op == QG_GRAPH_CONSTANT && node->values &&
                       qg_tensor_elements(&node->type) <= QG_GRAPH_TEXT_CONSTANT_MOST;
    if (written_out)
        print_elements(f, &node->type, node->values->bytes);
    else if (digest)
        fprintf(f, " digest=%016" PRIx64, digest);
}

static void print_node(FILE *f, const qg_graph *graph, qg_node place) {
    const graph_node *node = &graph->nodes[place];
    char type[QG_TENSOR_TEXT_SIZE];
    fprintf(f, "%s = %s", node->name, qg_graph_op_describe(node->op)->name);
    for (int32_t i = 0; i < node->input_count; i++)
        fprintf(f, "%c%s", i ? ',' : '(', graph->nodes[node->inputs[i]].name);
    qg_tensor_text(&node->type, type);
    fprintf(f, "%s %s", node->input_count ? ")" : "", type);
    print_attributes(f, node);
    if (graph_traits_of(node->op)->has & GRAPH_HAS_VALUES)
        print_values(f, graph, place);
    fprintf(f, "\n");
}

qg_status qg_graph_print(const qg_graph *graph, char **out, size_t *size) {
    size_t length;
    *out = NULL;
    qg_status status = qg_graph_status(graph);
    if (status)
        return status;
    FILE *f = open_memstream(out, &length);
    if (!f)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the text of a graph");
    fprintf(f, "qg_graph 1\n");
    for (qg_node i = 0; i < graph->count; i++)
        print_node(f, graph, i);
    for (int32_t i = 0; i < graph->output_count; i++)
        fprintf(f, "output %s\n", graph->nodes[graph->outputs[i]].name);
    bool failed = ferror(f);
    if (fclose(f) != 0 || failed) {
        qg_release(*out);
        *out = NULL;
        return qg_fail(QG_ERROR_MEMORY, "no memory for the text of a graph");
    }
    if (size)
        *size = length;
    return QG_OK;
}
