// Operation `model`: a model end to end with every 2-D product quantized, compared at one node with
// the same model in fp32. Other ops, batched products among them, compute in fp32.
//
// All nodes come from one run (model_run.h), which the first case pays for.
// input_digest: of the model, its weights and token ids; output_digest: XXH3-64 of the node's
// values as binary32. Results do not depend on threads or on cases before.
#include <op_internal.h>

#include <model_run.h>
#include <qg_init.h>
#include <qg_size.h>

#include <stdio.h>
#include <string.h>

static void give_node(const qg_case *c, const model_nodes *nodes, qg_case_result *result) {
    const model_node *node = &nodes->nodes[c->source->node];
    qg_comparison *compared = &result->compared[0];
    if (!node->has_sums) {
        qg_case_result_set(result, QG_CASE_FAILED, "%s is not in the quantized graph", c->tensor);
        return;
    }
    compared->has_sums = true;
    compared->sums = node->sums;
    compared->spearman = node->spearman;
    result->input_digest = c->source->digest;
    result->output_digest = node->digest;
    snprintf(result->impl_used, sizeof result->impl_used, "%s", nodes->impl);
    qg_op_judge_pairs(c, &node->sums, "model in fp32", result);
}

void qg_op_model_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    const model_nodes *nodes;
    qg_fp_state saved = qg_fp_enter();
    qg_status status = model_run(c, workspace, &nodes);
    qg_fp_leave(saved);
    if (status == QG_OK)
        give_node(c, nodes, result);
    else
        qg_case_result_set(result,
                           status == QG_ERROR_UNSUPPORTED ? QG_CASE_SKIPPED : QG_CASE_FAILED, "%s",
                           qg_detail());
}

// ----------------------------------------------------------------------------------------- costs

// Values of all nodes but weights, which a runner that keeps them has.
static bool add_values(const qg_graph *graph, int64_t *bytes) {
    bool fits = true;
    for (qg_node node = 0; node < qg_graph_count(graph) && fits; node++)
        if (!qg_graph_node_values(graph, node))
            fits = qg_size_add(*bytes, qg_tensor_bytes(qg_graph_node_type(graph, node)), bytes);
    return fits;
}

// Codes of the operands of its products, and two conversions inside the unit.
static bool add_operands(const qg_graph *graph, int64_t *bytes) {
    enum { PER_ELEMENT = 2 };
    int64_t m, n, k, a, b, largest = 0;
    bool fits = true;
    for (qg_node node = 0; node < qg_graph_count(graph) && fits; node++)
        if (model_product(graph, node, &m, &n, &k)) {
            fits = qg_size_multiply(m, k * PER_ELEMENT, &a) &&
                   qg_size_multiply(n, k * PER_ELEMENT, &b) && qg_size_add(*bytes, a, bytes) &&
                   qg_size_add(*bytes, b, bytes) && qg_size_add(a, b, &a);
            largest = fits && a > largest ? a : largest;
        }
    return fits && qg_size_multiply(largest, 4, &a) && qg_size_add(*bytes, a, bytes);
}

// In fp32 and quantized beside each other.
int64_t qg_op_model_bytes(const qg_case *c) {
    const qg_graph *graph = model_graph(c->source->model);
    int64_t values = 0, bytes;
    if (!add_values(graph, &values) || !qg_size_multiply(values, 2, &bytes) ||
        !add_operands(graph, &bytes))
        return INT64_MAX;
    return bytes;
}

// Of the whole run, which the first of its cases pays for. The nanoseconds are those of one thread
// with AVX-512 (EPYC): e4m3, mxfp8 and nvfp4 of minilm take 2.8 s on exact and 1.9 s on the cpu,
// of seeded 17 ms and 15 ms.
double qg_op_model_cost(const qg_case *c) {
    static const double UNIT_COST = 50, QUANTIZE = 20, ELEMENT = 15; // ns
    const qg_graph *graph = model_graph(c->source->model);
    double ns = 0;
    if (c->is_served)
        return 0;
    for (qg_node node = 0; node < qg_graph_count(graph); node++) {
        int64_t m, n, k;
        if (!qg_graph_node_values(graph, node))
            ns += ELEMENT * (double)qg_tensor_elements(qg_graph_node_type(graph, node));
        if (model_product(graph, node, &m, &n, &k))
            ns += (double)m * (double)n * (double)k * qg_op_unit_ns(c->matrix_unit) +
                  QUANTIZE * (double)(m + n) * (double)k;
    }
    return ns / UNIT_COST;
}
