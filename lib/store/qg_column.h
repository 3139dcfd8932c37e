// The result file's columns: one table, from which the writer, the reader, --columns, --where and
// the gates take their names.
//
// A row is a case (of `gemm`: a case and a reference). What does not apply is NaN, 0 for sizes, -1
// for counts and an empty text. Schema 1.
#ifndef QG_COLUMN_H
#define QG_COLUMN_H

#include <qg_sums.h>

typedef enum qg_column_type {
    QG_COLUMN_F64,  // float64; missing: NaN
    QG_COLUMN_I64,  // int64 count or size; missing: see the table
    QG_COLUMN_U64,  // uint64 identity or digest; missing: 0
    QG_COLUMN_U8,   // flag; missing: 0
    QG_COLUMN_TEXT, // fixed-length UTF-8; missing: ""
} qg_column_type;

// X(ID, group, name, type, missing, units, better, long name, definition)
#define QG_CASE_COLUMNS(X)                                                                         \
    X(CASE_ID, cases, case_id, U64, 0, "", 0, "case", "XXH3-64 of the case's axes")               \
    X(REFERENCE, cases, reference, TEXT, 0, "", 0, "reference", "what a product is compared with: source or quantized; of a model: fp32") \
    X(REPRO, cases, repro, TEXT, 0, "", 0, "repro", "arguments of run_sweep that run this case alone") \
    X(OP, cases, op, TEXT, 0, "", 0, "operation", "error, gemm, partition, throughput, vectors, model") \
    X(FORMAT, cases, format, TEXT, 0, "", 0, "format", "canonical name of the listed recipe or element format") \
    X(LAYOUT, cases, layout, TEXT, 0, "", 0, "layout", "which elements share a scale")            \
    X(SCALE_RULE, cases, scale_rule, TEXT, 0, "", 0, "scale rule", "how a scale follows from a block") \
    X(SCALE_FORMAT, cases, scale_format, TEXT, 0, "", 0, "scale format", "format of the scales")  \
    X(ROUNDING, cases, rounding, TEXT, 0, "", 0, "rounding", "rounding of the elements")          \
    X(FORMAT_B, cases, format_b, TEXT, 0, "", 0, "format of b", "as format, of the second operand") \
    X(LAYOUT_B, cases, layout_b, TEXT, 0, "", 0, "layout of b", "as layout, of the second operand") \
    X(SCALE_RULE_B, cases, scale_rule_b, TEXT, 0, "", 0, "scale rule of b", "as scale_rule, of the second operand") \
    X(UNIT, cases, unit, TEXT, 0, "", 0, "unit", "matrix unit of a product")                      \
    X(INPUT_TYPE, cases, input_type, TEXT, 0, "", 0, "input type", "type of the data before quantization") \
    X(OUT_TYPE, cases, out_type, TEXT, 0, "", 0, "output type", "type of a product's output")     \
    X(HAS_BIAS, cases, bias, U8, 0, "", 0, "bias", "1 if a bias vector is added")                 \
    X(BACKEND, cases, backend, TEXT, 0, "", 0, "backend", "emulator, cpu or cuda")                \
    X(DATA, cases, data, TEXT, 0, "", 0, "data", "data law, tensors: and the file's name, or model: and its name")     \
    X(TENSOR, cases, tensor, TEXT, 0, "", 0, "tensor", "name of a real tensor in its file; of a model: of the node")       \
    X(M, cases, m, I64, 0, "rows", 0, "m", "rows of a; of a model: of the node")                                           \
    X(N, cases, n, I64, 0, "rows", 0, "n", "rows of b")                                           \
    X(K, cases, k, I64, 0, "columns", 0, "k", "columns of a and b; of a model: of the node")                               \
    X(SM_COUNT, cases, sm_count, I64, 0, "SM", 0, "SM count", "multiprocessors of the device a partition is for") \
    X(SEED, cases, seed, U64, 0, "", 0, "seed", "key of the counter-based random numbers")        \
    X(STATUS, cases, status, TEXT, 0, "", 0, "status", "RAN PASSED FAILED SKIPPED UNAVAILABLE MISTRUSTED CRASHED TIMEOUT") \
    X(REASON, cases, reason, TEXT, 0, "", 0, "reason", "why a case is not RAN or PASSED")         \
    X(RUN, cases, run, I64, -1, "", 0, "run", "index of the run in /runs that measured the case") \
    X(IMPL_USED, cases, impl_used, TEXT, 0, "", 0, "implementation", "variant or algorithm that ran") \
    X(INPUT_DIGEST, cases, input_digest, U64, 0, "", 0, "input digest", "XXH3-64 of the input's binary32 values, little endian; of a product: of the digests of a, b, bias; of a model: of its weights and token ids") \
    X(OUTPUT_DIGEST, cases, output_digest, U64, 0, "", 0, "output digest", "XXH3-64 of codes, scales, tensor scale; of a product: of its output in out_type; of a model: of the node's values as binary32") \
    X(SECONDS, cases, seconds, F64, 0, "s", -1, "seconds", "wall time of the case")

#define QG_COUNT_COLUMNS(X)                                                                        \
    X(COUNT_N, counts, n, I64, -1, "elements", 0, "elements", "elements compared")                \
    X(COUNT_NAN, counts, nan, I64, -1, "elements", 0, "NaN", "NaN elements of the input")         \
    X(COUNT_INF, counts, inf, I64, -1, "elements", 0, "infinite", "infinite elements of the input") \
    X(COUNT_SATURATED, counts, saturated, I64, -1, "elements", 0, "saturated", "|x/X| > F")       \
    X(COUNT_CLIPPED, counts, clipped, I64, -1, "elements", 0, "clipped", "|x/X| >= F + half the last step") \
    X(COUNT_UNDERFLOWED, counts, underflowed, I64, -1, "elements", 0, "underflowed", "x != 0 with q = 0") \
    X(COUNT_SUBNORMAL, counts, subnormal, I64, -1, "elements", 0, "subnormal", "non-zero codes below the smallest normal") \
    X(COUNT_EXACT, counts, exact, I64, -1, "elements", 0, "exact", "q = x")                       \
    X(COUNT_BLOCKS, counts, blocks, I64, -1, "blocks", 0, "blocks", "blocks that share a scale")  \
    X(COUNT_ZERO_BLOCKS, counts, zero_blocks, I64, -1, "blocks", 0, "zero blocks", "blocks of zeros") \
    X(COUNT_NAN_SCALES, counts, nan_scales, I64, -1, "blocks", 0, "NaN scales", "blocks whose scale is NaN") \
    X(COUNT_CODE_MISMATCHES, counts, code_mismatches, I64, -1, "elements", 0, "code mismatches", "codes that differ from the emulator's") \
    X(COUNT_SCALE_MISMATCHES, counts, scale_mismatches, I64, -1, "blocks", 0, "scale mismatches", "scales that differ from the emulator's")

#define QG_SUM_COLUMNS(X)                                                                          \
    X(SUM_N_FINITE, sums, n_finite, I64, -1, "elements", 0, "finite", "elements in the sums: x and q finite") \
    X(SUM_NAN_REFERENCE, sums, nan_reference, I64, -1, "elements", 0, "NaN references", "x is NaN") \
    X(SUM_NAN_OUTPUT, sums, nan_output, I64, -1, "elements", 0, "NaN outputs", "q is NaN")        \
    X(SUM_INF_REFERENCE, sums, inf_reference, I64, -1, "elements", 0, "infinite references", "x is infinite") \
    X(SUM_INF_OUTPUT, sums, inf_output, I64, -1, "elements", 0, "infinite outputs", "q is infinite") \
    X(SUM_ZERO_REFERENCE, sums, zero_reference, I64, -1, "elements", 0, "zero references", "x = 0") \
    X(SUM_ZERO_OUTPUT, sums, zero_output, I64, -1, "elements", 0, "zero outputs", "q = 0")        \
    X(SUM_SIGN_FLIPS, sums, sign_flips, I64, -1, "elements", 0, "sign flips", "x q < 0")          \
    X(SUM_UNDERFLOWED, sums, underflowed, I64, -1, "elements", 0, "underflowed", "x != 0 with q = 0, finite pairs") \
    X(SUM_EXACT, sums, exact, I64, -1, "elements", 0, "exact", "e = 0, finite pairs")             \
    X(SUM_ZERO_REFERENCE_NONZERO_ERROR, sums, zero_reference_nonzero_error, I64, -1, "elements", 0, "errors at zero", "x = 0 with e != 0") \
    X(SUM_X, sums, x, F64, 0, "", 0, "sum x", "sum of x")                                         \
    X(SUM_XX, sums, xx, F64, 0, "", 0, "sum x^2", "sum of x^2")                                   \
    X(SUM_QQ, sums, qq, F64, 0, "", 0, "sum q^2", "sum of q^2")                                   \
    X(SUM_XQ, sums, xq, F64, 0, "", 0, "sum x q", "sum of x q")                                   \
    X(SUM_E, sums, e, F64, 0, "", 0, "sum e", "sum of e = q - x")                                 \
    X(SUM_ABS_E, sums, abs_e, F64, 0, "", 0, "sum |e|", "sum of |e|")                             \
    X(SUM_E_SIGN_X, sums, e_sign_x, F64, 0, "", 0, "sum e sign x", "sum of e times the sign of x") \
    X(SUM_EE, sums, ee, F64, 0, "", 0, "sum e^2", "sum of e^2")                                   \
    X(SUM_ABS_X, sums, abs_x, F64, 0, "", 0, "sum |x|", "sum of |x|")                             \
    X(SUM_MAX_ABS_E, sums, max_abs_e, F64, 0, "", 0, "max |e|", "largest |e|")                    \
    X(SUM_MAX_ABS_E_INDEX, sums, max_abs_e_index, I64, -1, "", 0, "worst element", "row-major index of the largest |e|") \
    X(SUM_MAX_REL_E, sums, max_rel_e, F64, 0, "", 0, "max |e/x|", "largest |e/x| over x != 0")    \
    X(SUM_MAX_REL_E_INDEX, sums, max_rel_e_index, I64, -1, "", 0, "worst relative element", "row-major index of the largest |e/x|") \
    X(SUM_MAX_ABS_X, sums, max_abs_x, F64, 0, "", 0, "max |x|", "largest |x|")                    \
    X(SUM_MAX_ULP, sums, max_ulp, F64, 0, "ulp", 0, "max ulp", "largest |e| in ulps of x")

#define QG_OTHER_COLUMNS(X)                                                                        \
    X(BACKWARD_ERROR, metrics, backward_error, F64, 0, "1", -1, "componentwise backward error", "max of |e| over |A| |B|; 0/0 is 0, y/0 is Inf") \
    X(SPEARMAN, metrics, spearman, F64, 0, "1", 1, "Spearman's rank correlation", "of every ceil(n / 65536)-th element; of a model: of the cosine similarities of all pairs of embeddings, at node embedding") \
    X(PARTITION_GROUPS, partition, groups, I64, -1, "groups", 0, "groups", "groups along k")      \
    X(PARTITION_GRID_X, partition, grid_x, I64, -1, "CTAs", 0, "grid x", "CTAs along x: rows of the first slab")          \
    X(PARTITION_GRID_Y, partition, grid_y, I64, -1, "CTAs", 0, "grid y", "CTAs along y")          \
    X(PARTITION_KERNEL, partition, kernel, TEXT, 0, "", 0, "kernel", "kernel chosen with both present: shared or hopper")             \
    X(PARTITION_REJECT, partition, reject, TEXT, 0, "", 0, "refusal", "why the twin was refused") \
    X(PARTITION_COVERED_MIN, partition, covered_min, I64, -1, "", 0, "least coverage", "times the least covered group or element is covered, over both kernels") \
    X(PARTITION_COVERED_MAX, partition, covered_max, I64, -1, "", 0, "most coverage", "times the most covered group or element is covered, over both kernels") \
    X(PARTITION_INERT, partition, inert, I64, -1, "lanes", 0, "inert lanes", "threads that no element reaches, in the CTAs of one row, of both kernels") \
    X(PARTITION_VIOLATIONS, partition, violations, I64, -1, "", 0, "violations", "groups and elements not covered exactly once by a kernel, and limits broken: grids, slabs of rows") \
    X(TIMING_MEDIAN_S, timing, median_s, F64, 0, "s", -1, "median time", "median of the samples") \
    X(TIMING_MIN_S, timing, min_s, F64, 0, "s", -1, "best time", "smallest sample")               \
    X(TIMING_MAX_S, timing, max_s, F64, 0, "s", -1, "worst time", "largest sample")               \
    X(TIMING_MAD_S, timing, mad_s, F64, 0, "s", -1, "spread", "median absolute deviation")        \
    X(TIMING_SAMPLES, timing, samples, I64, -1, "", 0, "samples", "times measured")               \
    X(TIMING_BYTES, timing, bytes, I64, -1, "B", 0, "bytes", "bytes read and written")            \
    X(TIMING_FLOPS, timing, flops, I64, -1, "flop", 0, "operations", "floating-point operations") \
    X(TIMING_GB_PER_S, timing, gb_per_s, F64, 0, "GB/s", 1, "bandwidth", "bytes / median time / 1e9") \
    X(TIMING_GFLOP_PER_S, timing, gflop_per_s, F64, 0, "GFLOP/s", 1, "rate", "flops / median time / 1e9") \
    X(TIMING_MEMCPY_RATIO, timing, memcpy_ratio, F64, 0, "1", 1, "ratio to memcpy", "bandwidth over memcpy's in the same run")

typedef enum qg_column {
#define QG_COLUMN_ENUM(ID, ...) QG_COLUMN_##ID,
    QG_CASE_COLUMNS(QG_COLUMN_ENUM)
#undef QG_COLUMN_ENUM
// The metrics follow in the order of their own table.
#define QG_COLUMN_ENUM(ID, ...) QG_COLUMN_METRIC_##ID,
    QG_METRIC_TABLE(QG_COLUMN_ENUM)
#undef QG_COLUMN_ENUM
#define QG_COLUMN_ENUM(ID, ...) QG_COLUMN_##ID,
    QG_OTHER_COLUMNS(QG_COLUMN_ENUM)
    QG_COUNT_COLUMNS(QG_COLUMN_ENUM)
    QG_SUM_COLUMNS(QG_COLUMN_ENUM)
#undef QG_COLUMN_ENUM
    QG_COLUMN_COUNT
} qg_column;

typedef struct qg_column_info {
    const char *group, *name; // /group/name in the file
    qg_column_type type;
    int64_t missing;
    const char *units;
    int better;
    const char *long_name, *definition;
} qg_column_info;

const qg_column_info *qg_column_describe(qg_column column);

// The column of a bare name ("qsnr_db", "m") or, where names collide, "group/name"
// ("counts/n", "metrics/bias"; a bare name means the /cases column first). -1 if there is none.
int qg_column_find(const char *name);

#endif
