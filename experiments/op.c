// The operations of the sweep: one row each. A new one is a row here, its function, and its test.
#include <op_internal.h>

static const qg_op OPS[] = {
    {"error", "quantize, dequantize, measure the error", true, qg_op_error_run},
};

const qg_op *qg_op_listed(size_t i) { return i < sizeof OPS / sizeof OPS[0] ? &OPS[i] : NULL; }
