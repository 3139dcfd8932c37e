// The axes of the sweep: everything that identifies a case, in the fixed order of its identity.
//
// One row per axis; from it come the options, the keys that case_id is the digest of, and the
// columns that --where and --exclude know. A new axis changes every case_id and with it every
// baseline, so the axes of operations to come are here already.
#ifndef QG_AXIS_H
#define QG_AXIS_H

#include <expression.h>
#include <qg_case.h>

// Axes with an option. X(ID, column, option, default, argument, summary)
//   default "": computed (README, "run_sweep"); argument and summary are for --help.
//   argument NULL: a flag on the command line, which means 1; a list elsewhere.
// Y(ID, column): axes without an option: derived from others.
// One row per axis.
// clang-format off
#define QG_AXIS_TABLE(X, Y)                                                                        \
    X(OP, op, "ops", "", "L", "operations")                                                        \
    X(FORMAT, format, "formats", NULL, "L", "recipes (mxfp8, nvfp4) or element formats (e4m3)")    \
    X(LAYOUT, layout, "layouts", "default", "L",                                                   \
      "default, per_tensor, per_row, group:G, block:RxC")                                          \
    X(SCALE_RULE, scale_rule, "rules", "default", "L",                                             \
      "scale rules, or default: amax; OCP MX recipes: floor, even, rceil; other recipes: "         \
      "their own")                                                                                 \
    Y(SCALE_FORMAT, scale_format)                                                                  \
    X(ROUNDING, rounding, "rounding", "rne", "L",                                                  \
      "rne, rna, rtz, rtp, rtn, rto, stochastic[:A|B|C[:BITS]] (default: rne)")                    \
    X(FORMAT_B, format_b, "formats-b", "", "L",                                                    \
      "of products: formats of operand b (default: as a); element formats take the layout and "    \
      "rule of a, recipes keep theirs unless --layouts or --rules name others")                    \
    Y(LAYOUT_B, layout_b)                                                                          \
    Y(SCALE_RULE_B, scale_rule_b)                                                                  \
    X(UNIT, unit, "units", "default", "L",                                                         \
      "of products: matrix units with their modifiers; default: exact, fp32_sequential and the "   \
      "hardware units that take the operands, with the +promote:G that their layouts need")        \
    X(INPUT_TYPE, input_type, "inputs", "fp32", "L",                                               \
      "type of the data before quantization: fp32, bf16, fp16 (default: fp32)")                    \
    X(OUT_TYPE, out_type, "out-types", "fp32", "L",                                                \
      "of products: type of the output: fp32, bf16, fp16 (default: fp32)")                         \
    X(HAS_BIAS, bias, "bias", "0", NULL, "of products: add a bias (in plan files: bias 0,1)")      \
    X(BACKEND, backend, "backends", "", "L", "who performs the operations")                        \
    X(DATA, data, "data", "default", "L",                                                          \
      "data laws, tensors:FILE[#GLOB] (default: normal, outliers:100 and the shipped real "        \
      "tensors); of operation model: model:minilm, model:seeded, model:FILE.safetensors "          \
      "(default: model:minilm)")                                                                   \
    Y(TENSOR, tensor)                                                                              \
    X(M, m, "m", "", "L", "rows; real tensors bring their own (default: by level)")                \
    X(N, n, "n", "", "L", "of products: rows of b, also for real tensors (default: by level)")     \
    X(K, k, "k", "", "L", "columns; real tensors bring their own (default: by level)")             \
    X(SM_COUNT, sm_count, "sm-counts", "78,114,132,148", "L",                                      \
      "of partitions: multiprocessors of the device (default: 78,114,132,148)")                    \
    X(SEED, seed, "seeds", "1", "L", "keys of the random numbers (default: 1)")
// clang-format on

typedef enum qg_axis {
#define QG_AXIS_ENUM_X(ID, ...)    QG_AXIS_##ID,
#define QG_AXIS_ENUM_Y(ID, column) QG_AXIS_##ID,
    QG_AXIS_TABLE(QG_AXIS_ENUM_X, QG_AXIS_ENUM_Y)
#undef QG_AXIS_ENUM_X
#undef QG_AXIS_ENUM_Y
        QG_AXIS_COUNT
} qg_axis;

typedef struct qg_axis_info {
    qg_column column;
    const char *name;     // of the column, and the key in the identity
    const char *option;   // without dashes; NULL: none
    const char *standard; // default of the option; NULL: required, "": computed
    const char *argument, *summary;
} qg_axis_info;

const qg_axis_info *qg_axis_describe(qg_axis axis);
// The axis of an option, -1 if there is none.
int qg_axis_of_option(const char *option);

// The columns of --where and --exclude in a plan: the axes and case_id.
int qg_axis_columns(size_t i);
// The cell of such a column of a const qg_case.
qg_cell qg_axis_cell(const void *row, qg_column column);

// XXH3-64 of the `key=value` lines of all axes; real tensors and recorded
// vectors by name and content digest.
uint64_t qg_case_identity(const qg_case *c);
// The lines themselves, for `--list -v` and tests: false if they do not fit.
bool qg_case_identity_text(const qg_case *c, char *text, size_t size);

#endif
