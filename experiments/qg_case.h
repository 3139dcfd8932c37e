// A case of a sweep and its result: what the plan, the worker and the ops share.
//
// The plan owns every text and recipe that a case points to. A result is plain memory without
// pointers: it travels from the worker process through shared memory.
#ifndef QG_CASE_H
#define QG_CASE_H

#include <qg_emulator.h>
#include <qg_sums.h>
#include <qg_unit.h>
#include <stdbool.h>
#include <stddef.h>

// X(ID, name): in order of severity for nobody; names are the result file's.
#define QG_STATUS_TABLE(X)                                                                         \
    X(RAN, "RAN")                 /* measured, nothing to compare */                               \
    X(PASSED, "PASSED")           /* a comparison held */                                          \
    X(FAILED, "FAILED")           /* a comparison did not hold, or the case could not run */       \
    X(SKIPPED, "SKIPPED")         /* impossible combination, with its reason */                    \
    X(UNAVAILABLE, "UNAVAILABLE") /* a backend that was asked for does not answer */               \
    X(MISTRUSTED, "MISTRUSTED")   /* measured, but the data say little */                          \
    X(CRASHED, "CRASHED")         /* the worker died */                                            \
    X(TIMEOUT, "TIMEOUT")         /* the worker overstayed --case-timeout */

typedef enum qg_case_status {
#define QG_STATUS_ENUM(ID, name) QG_CASE_##ID,
    QG_STATUS_TABLE(QG_STATUS_ENUM)
#undef QG_STATUS_ENUM
        QG_CASE_STATUS_COUNT
} qg_case_status;

struct qg_op;
struct qg_source;
struct qg_workspace;

typedef struct qg_case {
    int64_t order; // position in the plan
    uint64_t id;   // XXH3-64 of the axes
    const struct qg_op *op;
    const qg_recipe *recipe, *recipe_b; // recipe_b NULL where the op has one operand
    // Canonical texts: the columns of the same names. "" where they do not apply.
    const char *format, *layout, *scale_rule, *scale_format, *rounding;
    const char *format_b, *layout_b, *scale_rule_b;
    const char *unit, *backend;
    const qg_unit *matrix_unit; // what `unit` names; NULL where it does not apply
    const char *data, *tensor;
    const struct qg_source *source; // a law, or a tensor of an open file: qg_source.h; may be empty
    qg_format input_type, out_type;
    bool bias;
    bool against_emulator;     // the plan has the emulator, too: its bytes are wanted
    int64_t m, n, k, sm_count; // 0 where they do not apply
    uint64_t seed;
    const char *skip;        // NULL, or why the case is SKIPPED
    const char *unavailable; // NULL, or why the backend that was asked for does not answer
    bool is_served;          // by a model's run for the case before: it costs nothing
    uint64_t shard_key;      // decides the shard: its id; one key for all nodes of a run of a model
} qg_case;

enum { QG_REASON_SIZE = 256, QG_IMPL_SIZE = 64, QG_REFERENCE_MOST = 2 };

// What was measured against one reference: a row of the result file.
typedef struct qg_comparison {
    bool has_sums;
    double spearman, backward_error; // NaN where they do not apply
    qg_sums sums;
} qg_comparison;

// How long it took: the columns of /timing.
typedef struct qg_timing {
    double median_s, min_s, max_s, mad_s;
    double memcpy_ratio; // NaN: not compared
    int64_t samples, bytes;
} qg_timing;

// How kernels divide a tensor: the columns of /partition.
typedef struct qg_case_partition {
    int64_t groups, grid_x, grid_y;
    int32_t kernel, reject; // QG_GROUP_KERNEL_*, qg_kernel_reject
    int64_t covered_min, covered_max, inert, violations;
} qg_case_partition;

typedef struct qg_case_result {
    int64_t order;
    int32_t status;
    char reason[QG_REASON_SIZE];
    char impl_used[QG_IMPL_SIZE];
    uint64_t input_digest, output_digest;
    double seconds;
    bool has_counts;
    qg_counts counts;
    int64_t code_mismatches, scale_mismatches; // -1: not compared
    qg_comparison compared[QG_REFERENCE_MOST]; // with the references of the op, in their order
    bool has_timing;
    qg_timing timing;
    bool has_partition;
    qg_case_partition partition;
} qg_case_result;

const char *qg_case_status_name(qg_case_status status);
// The status of a name; QG_CASE_STATUS_COUNT for another word.
qg_case_status qg_case_status_find(const char *name);

// A result in which nothing is measured yet: status RAN, no reason.
void qg_case_result_clear(qg_case_result *result, const qg_case *c);
// Sets the status and a printf-like reason, one line of valid UTF-8.
#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
void qg_case_result_set(qg_case_result *result, qg_case_status status, const char *format, ...);

// What a case of an operation is made of, and so which axes it has.
typedef enum qg_op_kind {
    QG_OP_TENSOR,    // one operand: format, layout, rule, rounding, input, data, m, k, seed
    QG_OP_PRODUCT,   // two operands on a unit: also format_b, unit, out_type, bias, n
    QG_OP_RECORDING, // recorded vectors: one case per file
    QG_OP_GRID,  // kernel grids: format, layout, input type, m, k, SM count; no data, no backend
    QG_OP_MODEL, // all products of a model on a unit: no input type, bias or sizes; a case per node
} qg_op_kind;

// An operation of the sweep: one row of the table in op.c.
typedef struct qg_op {
    const char *name;    // "error"
    const char *summary; // for --help
    bool by_default;     // part of the default --ops
    bool is_timing;      // not of the emulator beside another backend: nobody waits for that
    qg_op_kind kind;
    // What its results are compared with: a row of the result file each. {""}: the input alone.
    const char *references[QG_REFERENCE_MOST];
    // Memory that a case needs at once, in bytes beside what every case needs; INT64_MAX if that
    // overflows. Its cost in element operations beside what every case costs.
    int64_t (*bytes)(const qg_case *c);
    double (*cost)(const qg_case *c);
    // Runs one case in the worker process. Never fails as a function: errors become the status
    // FAILED with a reason. `workspace` is the worker's, kept between cases.
    void (*run)(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);
} qg_op;

// The i-th op, NULL past the end.
const qg_op *qg_op_listed(size_t i);
// Rows of the result file that a case of the op has: 1 or 2.
int qg_op_reference_count(const qg_op *op);

#endif
