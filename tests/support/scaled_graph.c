// See scaled_graph.h.
#include <scaled_graph.h>

#include <qg_recipe_name.h>
#include <require.h>

#include <stdlib.h>
#include <string.h>

qg_graph *scaled_graph_create(void) {
    qg_graph *graph;
    REQUIRE(qg_graph_create(&graph) == QG_OK, "%s", qg_detail());
    return graph;
}

qg_node scaled_graph_tensor(qg_graph *graph, const char *name, qg_tensor_type type,
                            const void *values) {
    return qg_graph_parameter(graph, name, type, values);
}

qg_scaled scaled_graph_operand(qg_graph *graph, const char *name, qg_tensor_type type,
                               const void *values, const char *recipe) {
    return qg_graph_quantize(graph, scaled_graph_tensor(graph, name, type, values), recipe);
}

qg_graph_run_options scaled_graph_options(const char *backend, const char *unit, int threads) {
    static qg_unit units[8];
    static int next;
    qg_graph_run_options options = {.backend = qg_backend_find(backend), .threads = threads};
    REQUIRE(options.backend != NULL, "no backend %s", backend);
    options.keep = true;
    if (!unit)
        return options;
    qg_unit *place = &units[next++ % 8];
    REQUIRE(qg_unit_parse(unit, place) == QG_OK, "%s", qg_detail());
    options.unit = place;
    return options;
}

qg_graph_runner *scaled_graph_run(const qg_graph *graph, const qg_graph_run_options *options) {
    qg_graph_runner *runner;
    REQUIRE(qg_graph_status(graph) == QG_OK, "%s", qg_detail());
    REQUIRE(qg_graph_verify(graph) == QG_OK, "%s", qg_detail());
    REQUIRE(qg_graph_runner_create(graph, options, &runner) == QG_OK, "%s", qg_detail());
    REQUIRE(qg_graph_runner_run(runner, 0, NULL) == QG_OK, "%s", qg_detail());
    return runner;
}

const void *scaled_graph_values(const qg_graph_runner *runner, qg_node node) {
    const void *values = qg_graph_runner_values(runner, node);
    REQUIRE(values != NULL, "node %d has no values", (int)node);
    return values;
}

qg_recipe scaled_graph_recipe(const char *text) {
    qg_recipe recipe;
    REQUIRE(qg_recipe_parse(text, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

void scaled_graph_round_trip(const char *text, int64_t rows, int64_t k, const float *x, float *q) {
    qg_recipe recipe = scaled_graph_recipe(text);
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .stream = 2, .threads = 1};
    qg_shape shape;
    REQUIRE(qg_shape_of(&recipe, rows, k, &shape) == QG_OK, "%s", qg_detail());
    uint8_t *codes = malloc((size_t)shape.codes_size), *scales = malloc((size_t)shape.scales_size);
    float tensor = 1.0f;
    REQUIRE(codes && scales, "no memory");
    REQUIRE(qg_emulator_quantize(&recipe, &options, rows, k, x, codes, scales, &tensor, NULL) ==
                QG_OK,
            "%s", qg_detail());
    REQUIRE(qg_emulator_dequantize(&recipe, rows, k, codes, scales, tensor, 1, q) == QG_OK, "%s",
            qg_detail());
    free(codes);
    free(scales);
}

const char *scaled_graph_recipe_at(size_t i) {
    for (size_t at = 0;; at++) {
        const char *name = qg_recipe_listed(at);
        if (!name || (strncmp(name, "te_delayed", 10) != 0 && i-- == 0))
            return name;
    }
}
