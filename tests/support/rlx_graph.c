// See rlx_graph.h.
#include <rlx_graph.h>

#include <qg_cpu.h>
#include <qg_format_name.h>
#include <require.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

qg_graph *rlx_graph(void) {
    qg_graph *graph;
    RLX_OK(qg_graph_create(&graph));
    return graph;
}

qg_node rlx_input(qg_graph *graph, const char *name, int64_t rows, int64_t columns) {
    return qg_graph_input(graph, name, qg_tensor(QG_DTYPE_FP32, 2, rows, columns));
}

qg_graph_runner *rlx_run(const qg_graph *graph, const char *backend, const char *unit,
                         int32_t count, const qg_graph_feed *feeds) {
    qg_graph_run_options options = {.backend = qg_backend_find(backend), .keep = true};
    qg_graph_runner *runner;
    qg_unit parsed;
    if (unit) {
        RLX_OK(qg_unit_parse(unit, &parsed));
        options.unit = &parsed;
    }
    RLX_OK(qg_graph_runner_create(graph, &options, &runner));
    RLX_OK(qg_graph_runner_run(runner, count, feeds));
    return runner;
}

const void *rlx_values(const qg_graph *graph, const qg_graph_runner *runner, const char *name) {
    const void *values = qg_graph_runner_values(runner, qg_graph_find(graph, name));
    REQUIRE(values, "no values of %s", name);
    return values;
}

// ---------------------------------------------------------------------------------------- operands

static void *copied(const void *from, int64_t size) {
    void *to = malloc((size_t)size);
    REQUIRE(from && to, "nothing to copy");
    return memcpy(to, from, (size_t)size);
}

rlx_quantized rlx_operand(const qg_graph *graph, const qg_graph_runner *runner, const char *product,
                          int side) {
    qg_node node = qg_graph_find(graph, product);
    REQUIRE(node != QG_NODE_NONE, "no node %s", product);
    const qg_node *inputs;
    const qg_attributes *attributes = qg_graph_node_attributes(graph, node);
    bool grouped = qg_graph_node_op(graph, node) == QG_GRAPH_SCALED_GROUPED_MATMUL;
    qg_graph_node_inputs(graph, node, &inputs);
    rlx_quantized q = {.recipe = rlx_recipe(side ? attributes->recipe_b : attributes->recipe),
                       .tensor_scale = 1.0f};
    qg_recipe left = rlx_recipe(attributes->recipe);
    int planes = q.recipe.structure == QG_STRUCTURE_RESIDUAL ? 2 : 1, scale = grouped ? 3 : 2;
    const qg_tensor_type *codes = qg_graph_node_type(graph, inputs[side]);
    int64_t k = codes->shape[codes->rank - 1], rows = qg_tensor_elements(codes) / k / planes;
    char name[QG_NAME_SIZE];
    RLX_OK(qg_shape_of(&q.recipe, rows, k, &q.shape));
    q.codes = copied(qg_graph_runner_values(runner, inputs[side]), q.shape.codes_size);
    q.scales = copied(qg_graph_runner_values(runner, inputs[scale + side]), q.shape.scales_size);
    if (q.shape.has_tensor_scale) {
        int at = scale + 2 + (side && qg_rule_has_tensor_scale(left.rule));
        q.tensor_scale = *(const float *)qg_graph_runner_values(runner, inputs[at]);
    }
    qg_format_name(q.recipe.element, name);
    q.format = slow_format_create(name);
    return q;
}

// ---------------------------------------------------------------------------------------- products

long double rlx_allowance(const char *backend, const char *unit, const rlx_quantized *lhs,
                          const rlx_quantized *rhs, rlx_sum sum, float bias) {
    int64_t k = lhs->shape.blocks.k;
    long double size = sum.magnitude + fabsl((long double)bias);
    if (strcmp(backend, "cpu") == 0)
        return (long double)qg_cpu_matmul_bound(&lhs->recipe, &rhs->recipe, k, QG_FORMAT_FP32) *
                   size +
               (long double)qg_cpu_matmul_underflow(k, QG_FORMAT_FP32);
    // The long double sum above is off by at most (k + 1) 2^-64 of the magnitudes.
    long double reference = (long double)(k + 1) * 0x1p-63L * size;
    if (strcmp(unit, "exact") == 0) // one rounding
        return 0x1p-24L * fabsl(sum.value + (long double)bias) + 0x1p-149L + reference;
    REQUIRE(strcmp(unit, "fp32_fma") == 0, "%s", unit);
    return (long double)(k + 1) * (0x1.0001p-24L * size + 0x1p-149L) + reference;
}

void rlx_expect_product(const qg_graph *graph, const qg_graph_runner *runner, const char *product,
                        const char *backend, const char *unit, const float *bias) {
    rlx_quantized lhs = rlx_operand(graph, runner, product, 0);
    rlx_quantized rhs = rlx_operand(graph, runner, product, 1);
    const float *out = rlx_values(graph, runner, product);
    int64_t m = lhs.shape.blocks.m, n = rhs.shape.blocks.m;
    for (int64_t i = 0; i < m * n; i++) {
        rlx_sum sum = rlx_dot(&lhs, i / n, &rhs, i % n);
        float added = bias ? bias[i % n] : 0.0f;
        long double room = rlx_allowance(backend, unit, &lhs, &rhs, sum, added);
        long double wanted = sum.value + (long double)added;
        REQUIRE(fabsl((long double)out[i] - wanted) <= room, "%s on %s, element %lld: %a, not %La",
                product, backend, (long long)i, (double)out[i], wanted);
    }
    rlx_discard(&lhs);
    rlx_discard(&rhs);
}
