// Graphs in the tests of RLX's statements and defects: running them, taking operands out.
#ifndef RLX_GRAPH_H
#define RLX_GRAPH_H

#include <qg_graph_pass.h>
#include <rlx_check.h>

// Fails unless the call gave QG_OK.
#define RLX_OK(call) REQUIRE((call) == QG_OK, "%s", qg_detail())

qg_graph *rlx_graph(void);
qg_node rlx_input(qg_graph *graph, const char *name, int64_t rows, int64_t columns);

// Runs the graph, keeping all values. backend: by name; unit: by name, NULL: the backend's own.
qg_graph_runner *rlx_run(const qg_graph *graph, const char *backend, const char *unit,
                         int32_t count, const qg_graph_feed *feeds);
// Values of a node by name.
const void *rlx_values(const qg_graph *graph, const qg_graph_runner *runner, const char *name);

// The operand of a scaled product: side 0 lhs, 1 rhs. Borrows nothing. Experts (e, n, k) come as
// (e n, k).
rlx_quantized rlx_operand(const qg_graph *graph, const qg_graph_runner *runner, const char *product,
                          int side);

// |out - (dot + bias)| allowed for unit exact or fp32_fma of the emulator, or the backend cpu: from
// the units' definitions, and qg_cpu_matmul_bound.
long double rlx_allowance(const char *backend, const char *unit, const rlx_quantized *lhs,
                          const rlx_quantized *rhs, rlx_sum sum, float bias);

// Checks every element of a kept scaled product of (m, n) against its operands. bias: (n) or NULL.
void rlx_expect_product(const qg_graph *graph, const qg_graph_runner *runner, const char *product,
                        const char *backend, const char *unit, const float *bias);

#endif
