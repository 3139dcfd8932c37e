// The operations of the sweep: one row each. A new one is a row here, its function, and its test.
#include <op_internal.h>

// clang-format off
static const qg_op OPS[] = {
    {"error",
     "quantize, dequantize, measure the error", true, false,
     QG_OP_TENSOR, {""},
     qg_op_error_bytes, qg_op_error_cost,
     qg_op_error_run},
    {"gemm",
     "error of the product of quantized operands", true, false,
     QG_OP_PRODUCT, {"source", "quantized"},
     qg_op_gemm_bytes, qg_op_gemm_cost,
     qg_op_gemm_run},
    {"partition",
     "invariants of the kernel grids", true, false,
     QG_OP_GRID, {""},
     qg_op_partition_bytes, qg_op_partition_cost,
     qg_op_partition_run},
    {"throughput",
     "speed of quantize beside memcpy", true, true,
     QG_OP_TENSOR, {""},
     qg_op_throughput_bytes, qg_op_throughput_cost,
     qg_op_throughput_run},
    {"vectors",
     "recorded vectors, line by line", false, false,
     QG_OP_RECORDING, {""},
     qg_op_vectors_bytes, qg_op_vectors_cost,
     qg_op_vectors_run},
    {"model",
     "a real model end to end", false, false,
     QG_OP_MODEL, {"fp32"},
     qg_op_model_bytes, qg_op_model_cost,
     qg_op_model_run},
};
// clang-format on

const qg_op *qg_op_listed(size_t i) { return i < sizeof OPS / sizeof OPS[0] ? &OPS[i] : NULL; }

int qg_op_reference_count(const qg_op *op) { return op->references[1] ? 2 : 1; }
