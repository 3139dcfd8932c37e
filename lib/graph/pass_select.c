// Which products insertion rewrites: by rank, name, size and place. See qg_scaling.
#include "pass_internal.h"

#include <qg_size.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

enum { GLOB_SIZE = 512 };

// Takes the first glob off a comma-separated list; false at its end.
static bool next_glob(const char **list, char glob[GLOB_SIZE]) {
    if (!*list)
        return false;
    size_t length = strcspn(*list, ",");
    size_t kept = length < GLOB_SIZE ? length : GLOB_SIZE - 1;
    memcpy(glob, *list, kept);
    glob[kept] = 0;
    *list = (*list)[length] ? *list + length + 1 : NULL;
    return true;
}

static bool is_on(const char *list, const char *name) {
    char glob[GLOB_SIZE];
    while (next_glob(&list, glob))
        if (fnmatch(glob, name, 0) == 0)
            return true;
    return false;
}

static bool names_product(const qg_graph *graph, const char *glob) {
    for (qg_node i = 0; i < graph->count; i++)
        if (graph->nodes[i].op == QG_GRAPH_MATMUL && fnmatch(glob, graph->nodes[i].name, 0) == 0)
            return true;
    return false;
}

// A glob that matches no product is a slip: the products that it meant would be treated otherwise.
static qg_status check_globs(const qg_graph *graph, const char *what, const char *list) {
    char glob[GLOB_SIZE];
    while (next_glob(&list, glob)) {
        if (strlen(glob) > GRAPH_NAME_MOST)
            return qg_fail(QG_ERROR_ARGUMENT, "%s: a glob of more than %d characters: '%.40s...'",
                           what, GRAPH_NAME_MOST, glob);
        if (!names_product(graph, glob))
            return qg_fail(QG_ERROR_ARGUMENT,
                           "%s: no product's name matches '%s' (globs are separated by commas; "
                           "* matches / too)",
                           what, glob);
    }
    return QG_OK;
}

// Multiply-adds of a product, INT64_MAX from there on.
static int64_t multiply_adds(const qg_graph *graph, const graph_node *product) {
    const qg_tensor_type *a = &graph->nodes[product->inputs[0]].type;
    int64_t count = a->shape[a->rank - 1]; // K
    for (int32_t i = 0; i < product->type.rank; i++)
        if (!qg_size_multiply(count, product->type.shape[i], &count))
            return INT64_MAX;
    return count;
}

static bool passes_filters(const qg_graph *graph, const qg_scaling *s, const graph_node *node) {
    return node->op == QG_GRAPH_MATMUL && (node->type.rank == 2 || s->batched) &&
           (!s->only || is_on(s->only, node->name)) &&
           (!s->except || !is_on(s->except, node->name)) &&
           multiply_adds(graph, node) >= s->least_products;
}

// Leaves out the first and the last of those selected.
static int32_t leave_ends(const qg_graph *graph, const qg_scaling *s, int32_t count,
                          bool *selected) {
    int32_t place = 0, left = 0;
    for (qg_node i = 0; i < graph->count; i++) {
        if (!selected[i])
            continue;
        selected[i] = place >= s->first && count - 1 - place >= s->last;
        left += selected[i];
        place++;
    }
    return left;
}

static qg_status check_filters(const qg_graph *graph, const qg_scaling *s) {
    if (s->first < 0 || s->last < 0 || s->least_products < 0)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "products left alone are counted from 0: first %" PRId32 ", last %" PRId32
                       ", least products %" PRId64,
                       s->first, s->last, s->least_products);
    qg_status status = check_globs(graph, "only", s->only);
    return status ? status : check_globs(graph, "except", s->except);
}

qg_status graph_select_products(const qg_graph *graph, const qg_scaling *scaling, bool *selected,
                                int32_t *products) {
    int32_t count = 0;
    qg_status status = check_filters(graph, scaling);
    if (status)
        return status;
    for (qg_node i = 0; i < graph->count; i++)
        count += selected[i] = passes_filters(graph, scaling, &graph->nodes[i]);
    *products = leave_ends(graph, scaling, count, selected);
    if (*products > 0 || !scaling->only)
        return QG_OK;
    return qg_fail(
        QG_ERROR_ARGUMENT,
        "only: '%.200s' selects no product: what it matches is batched, too small, on the "
        "list of exceptions, or among the first and last",
        scaling->only);
}
