// Small graphs of scaled ops for tests: built with parameters alone, run once, read back. Failures
// of building or running fail the test with their detail.
#ifndef SCALED_GRAPH_H
#define SCALED_GRAPH_H

#include <qg_graph_run.h>

qg_graph *scaled_graph_create(void);

// A parameter with borrowed values.
qg_node scaled_graph_tensor(qg_graph *graph, const char *name, qg_tensor_type type,
                            const void *values);

// A quantized parameter.
qg_scaled scaled_graph_operand(qg_graph *graph, const char *name, qg_tensor_type type,
                               const void *values, const char *recipe);

// Options of a backend by name, unit by name (NULL: exact) and number of threads.
qg_graph_run_options scaled_graph_options(const char *backend, const char *unit, int threads);

// Verifies the graph, keeps every value, runs. Freed by qg_graph_runner_free.
qg_graph_runner *scaled_graph_run(const qg_graph *graph, const qg_graph_run_options *options);

// The values of a node after a run.
const void *scaled_graph_values(const qg_graph_runner *runner, qg_node node);

qg_recipe scaled_graph_recipe(const char *text);

// q: (count) values of a tensor as a recipe has them: quantized and dequantized by the emulator.
void scaled_graph_round_trip(const char *recipe, int64_t rows, int64_t k, const float *x, float *q);

// The i-th recipe of the table that a graph can have, NULL past the end.
const char *scaled_graph_recipe_at(size_t i);

#endif
