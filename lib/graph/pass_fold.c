// Folding: what depends on constants alone is run once and becomes constants. See qg_graph_pass.h.
//
// The foldable nodes make up a graph of their own; what others take from it are its outputs. It is
// run as any graph is, so folding gives the bytes that running gives.
#include "pass_internal.h"

#include <qg_memory.h>

typedef struct folding {
    const qg_graph *from;
    bool parameters;
    // taken: foldable, and an output or what is not foldable takes it.
    bool *needed, *foldable, *taken;
} folding;

static bool is_foldable(const folding *f, const graph_node *n) {
    if (graph_op_has_values(n->op))
        return n->values && (n->op == QG_GRAPH_CONSTANT || f->parameters);
    for (int32_t i = 0; i < n->input_count; i++)
        if (!f->foldable[n->inputs[i]])
            return false;
    return n->op != QG_GRAPH_INPUT;
}

static void mark(const folding *f) {
    const qg_graph *g = f->from;
    graph_mark_needed(g, f->needed);
    for (qg_node i = 0; i < g->count; i++) {
        const graph_node *n = &g->nodes[i];
        f->foldable[i] = is_foldable(f, n);
        for (int32_t j = 0; j < n->input_count && f->needed[i] && !f->foldable[i]; j++)
            f->taken[n->inputs[j]] = f->foldable[n->inputs[j]];
    }
    for (int32_t i = 0; i < g->output_count; i++)
        f->taken[g->outputs[i]] = f->foldable[g->outputs[i]];
}

static bool is_computed(const folding *f, qg_node node) {
    return f->taken[node] && !graph_op_has_values(f->from->nodes[node].op);
}

// The foldable nodes, with those to be computed as outputs: a run leaves out what those do not
// need. map[old] = new.
static qg_status part_to_run(const folding *f, qg_node *map, qg_graph **out) {
    qg_status status = qg_graph_create(out);
    if (status)
        return status;
    for (qg_node i = 0; i < f->from->count; i++) {
        if (!f->foldable[i])
            continue;
        map[i] = graph_copy_node(*out, f->from, i, map);
        if (is_computed(f, i))
            qg_graph_output(*out, map[i]);
    }
    return qg_graph_status(*out);
}

// ran: a runner of the part, whose nodes are part[old].
static qg_status replace(const folding *f, const qg_graph_runner *ran, const qg_node *part,
                         qg_graph **out) {
    graph_pass pass;
    qg_status status = graph_pass_begin(&pass, f->from);
    if (status)
        return status;
    for (qg_node i = 0; i < f->from->count; i++) {
        const graph_node *n = &f->from->nodes[i];
        if (is_computed(f, i))
            pass.map[i] = qg_graph_constant(pass.made, n->name, n->type,
                                            qg_graph_runner_values(ran, part[i]));
        else if (f->taken[i] || n->op == QG_GRAPH_INPUT || (f->needed[i] && !f->foldable[i]))
            graph_pass_copy(&pass, i);
    }
    return graph_pass_end(&pass, QG_OK, out);
}

static qg_status run_and_replace(const folding *f, const qg_graph_run_options *options,
                                 qg_graph **out) {
    qg_graph_run_options given = options ? *options : (qg_graph_run_options){0};
    qg_graph_runner *runner = NULL;
    qg_graph *part = NULL;
    void *map = NULL;
    given.keep = false;
    qg_status status = graph_per_node(f->from, sizeof(qg_node), &map);
    if (!status)
        status = part_to_run(f, map, &part);
    if (!status && part->output_count > 0)
        status = qg_graph_runner_create(part, &given, &runner);
    if (!status && runner)
        status = qg_graph_runner_run(runner, 0, NULL);
    if (!status)
        status = replace(f, runner, map, out);
    qg_graph_runner_free(runner);
    qg_graph_free(part);
    qg_release(map);
    return status;
}

qg_status qg_graph_fold(const qg_graph *graph, bool parameters, const qg_graph_run_options *options,
                        qg_graph **out) {
    folding f = {.from = graph, .parameters = parameters};
    void *needed = NULL, *foldable = NULL, *taken = NULL;
    *out = NULL;
    qg_status status = qg_graph_status(graph);
    if (!status)
        status = graph_per_node(graph, sizeof(bool), &needed);
    if (!status)
        status = graph_per_node(graph, sizeof(bool), &foldable);
    if (!status)
        status = graph_per_node(graph, sizeof(bool), &taken);
    f.needed = needed;
    f.foldable = foldable;
    f.taken = taken;
    if (!status)
        mark(&f);
    if (!status)
        status = run_and_replace(&f, options, out);
    qg_release(needed);
    qg_release(foldable);
    qg_release(taken);
    return status;
}
