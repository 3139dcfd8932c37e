// The file of a device check: what device_check writes and `run_sweep --import-device` reads.
//
// First line `# qgdevice 1`, then lines `# key: value`, one `# columns KIND: ...` line per kind, and
// rows: fields separated by tabs, of which the first is the kind and the last two are the verdict
// (PASSED, FAILED, SKIPPED, RAN) and its reason. Numbers are decimal. The last line of standard
// output, `N checks, M failures, S seconds`, is there as `# result: ...`.
#ifndef DEVICE_ROWS_H
#define DEVICE_ROWS_H

#define DEVICE_FILE_MAGIC "# qgdevice 1"

// Fields between the kind and the verdict. X(ID, name)
//
// bytes: a kernel's output against the emulator's, byte by byte. kernel: group_shared, ...,
// dequantize, multiply, cvt. data: a law, or a pattern of device_input.h. storage: of the codes and
// the order of the scales. *_differences count bytes; guards those changed around the buffers.
#define DEVICE_BYTES_COLUMNS(X)                                                                    \
    X(KERNEL, kernel)                                                                              \
    X(FORMAT, format)                                                                              \
    X(LAYOUT, layout)                                                                              \
    X(RULE, scale_rule)                                                                            \
    X(ROUNDING, rounding)                                                                          \
    X(INPUT, input_type)                                                                           \
    X(OUTPUT, out_type)                                                                            \
    X(DATA, data)                                                                                  \
    X(SEED, seed)                                                                                  \
    X(M, m)                                                                                        \
    X(N, n)                                                                                        \
    X(K, k)                                                                                        \
    X(STORAGE, storage)                                                                            \
    X(CODES, code_differences)                                                                     \
    X(SCALES, scale_differences)                                                                   \
    X(GUARDS, guard_differences)

// control: a result known to be bad. caught: in how many bytes the comparison saw it; 0 fails. The
// runs under compute-sanitizer are here, too: caught is then the tool's exit code, and 0 is good.
#define DEVICE_CONTROL_COLUMNS(X)                                                                  \
    X(NAME, name)                                                                                  \
    X(KERNEL, kernel)                                                                              \
    X(CAUGHT, caught)

// gemm: a product through cuBLASLt against a modelled unit. accumulation: fast or promoted. c: 0 or
// 1, whether one was added. differences: outputs, of m n, that differ in any bit. algorithm:
// id/tile/stages/splitk/reduction/inner/cluster/custom/numerical/workspace.
#define DEVICE_GEMM_COLUMNS(X)                                                                     \
    X(FORMAT, format)                                                                              \
    X(LAYOUT, layout)                                                                              \
    X(RULE, scale_rule)                                                                            \
    X(FORMAT_B, format_b)                                                                          \
    X(LAYOUT_B, layout_b)                                                                          \
    X(RULE_B, scale_rule_b)                                                                        \
    X(UNIT, unit)                                                                                  \
    X(ACCUMULATION, accumulation)                                                                  \
    X(OUTPUT, out_type)                                                                            \
    X(C, c)                                                                                        \
    X(BIAS, bias)                                                                                  \
    X(SEED, seed)                                                                                  \
    X(M, m)                                                                                        \
    X(N, n)                                                                                        \
    X(K, k)                                                                                        \
    X(DIFFERENCES, differences)                                                                    \
    X(ALGORITHM, algorithm)

// probe: how many small products survived beside +-2^power at i and j: measured, and as the unit
// that fits all of them best says. power 8: through a alone; 16: through both operands.
#define DEVICE_PROBE_COLUMNS(X)                                                                    \
    X(POWER, power)                                                                                \
    X(ACCUMULATION, accumulation)                                                                  \
    X(UNIT, unit)                                                                                  \
    X(K, k)                                                                                        \
    X(I, i)                                                                                        \
    X(J, j)                                                                                        \
    X(SURVIVORS, survivors)                                                                        \
    X(SIMULATED, simulated)

// time: seconds of one launch among `launches` of a graph, over `samples` replays. state: hot (the
// same buffers) or cold (as many as exceed three times L2). bytes: every pass's compulsory reads and
// writes; flops: of products. copy_s: a copy that reads and writes as many bytes, timed the same
// way; nan for products.
#define DEVICE_TIME_COLUMNS(X)                                                                     \
    X(KERNEL, kernel)                                                                              \
    X(FORMAT, format)                                                                              \
    X(LAYOUT, layout)                                                                              \
    X(RULE, scale_rule)                                                                            \
    X(INPUT, input_type)                                                                           \
    X(STATE, state)                                                                                \
    X(M, m)                                                                                        \
    X(N, n)                                                                                        \
    X(K, k)                                                                                        \
    X(LAUNCHES, launches)                                                                          \
    X(SAMPLES, samples)                                                                            \
    X(MEDIAN, median_s)                                                                            \
    X(MAD, mad_s)                                                                                  \
    X(MIN, min_s)                                                                                  \
    X(MAX, max_s)                                                                                  \
    X(BYTES, bytes)                                                                                \
    X(FLOPS, flops)                                                                                \
    X(COPY, copy_s)

// X(ID, name)
#define DEVICE_ROW_TABLE(X)                                                                        \
    X(BYTES, bytes)                                                                                \
    X(CONTROL, control)                                                                            \
    X(GEMM, gemm)                                                                                  \
    X(PROBE, probe)                                                                                \
    X(TIME, time)

typedef enum device_kind {
#define DEVICE_KIND_ENUM(ID, name) DEVICE_##ID,
    DEVICE_ROW_TABLE(DEVICE_KIND_ENUM)
#undef DEVICE_KIND_ENUM
        DEVICE_KIND_COUNT
} device_kind;

// The place of each column among the fields of its kind, DEVICE_BYTES_M and the like.
#define DEVICE_COLUMN_ENUM_BYTES(ID, name)   DEVICE_BYTES_##ID,
#define DEVICE_COLUMN_ENUM_CONTROL(ID, name) DEVICE_CONTROL_##ID,
#define DEVICE_COLUMN_ENUM_GEMM(ID, name)    DEVICE_GEMM_##ID,
#define DEVICE_COLUMN_ENUM_PROBE(ID, name)   DEVICE_PROBE_##ID,
#define DEVICE_COLUMN_ENUM_TIME(ID, name)    DEVICE_TIME_##ID,
enum { DEVICE_BYTES_COLUMNS(DEVICE_COLUMN_ENUM_BYTES) DEVICE_BYTES_FIELDS };
enum { DEVICE_CONTROL_COLUMNS(DEVICE_COLUMN_ENUM_CONTROL) DEVICE_CONTROL_FIELDS };
enum { DEVICE_GEMM_COLUMNS(DEVICE_COLUMN_ENUM_GEMM) DEVICE_GEMM_FIELDS };
enum { DEVICE_PROBE_COLUMNS(DEVICE_COLUMN_ENUM_PROBE) DEVICE_PROBE_FIELDS };
enum { DEVICE_TIME_COLUMNS(DEVICE_COLUMN_ENUM_TIME) DEVICE_TIME_FIELDS };

// What is said of a row. X(ID, name)
#define DEVICE_VERDICT_TABLE(X)                                                                    \
    X(PASSED, "PASSED")                                                                            \
    X(FAILED, "FAILED")                                                                            \
    X(SKIPPED, "SKIPPED") /* the library or the device does not do this */                         \
    X(RAN, "RAN")         /* measured, nothing to compare */

typedef enum device_verdict {
#define DEVICE_VERDICT_ENUM(ID, name) DEVICE_VERDICT_##ID,
    DEVICE_VERDICT_TABLE(DEVICE_VERDICT_ENUM)
#undef DEVICE_VERDICT_ENUM
        DEVICE_VERDICT_COUNT
} device_verdict;

#endif
