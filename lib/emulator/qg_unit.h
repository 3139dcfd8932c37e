// Matrix units: the arithmetic that multiplies and accumulates, bit for bit, and the product
// `out[m,n] = a[m,k] * b[n,k]^T` of quantized operands on each of them.
//
// Units and parameters: qg_unit_table.h. Names: `hopper_wgmma+promote:128`, `fp32_blocked:32`.
// Scalar and in integers: this is the specification; variants that are faster give the same bytes
// (qg_unit_variant_set). No I/O. Results do not depend on threads.
// Exact: units of evidence V-HW reproduce all recorded outputs, the others their sources' models.
#ifndef QG_UNIT_H
#define QG_UNIT_H

#include <qg_recipe.h>
#include <qg_status.h>
#include <qg_unit_table.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

QG_EXTERN_C_BEGIN

enum {
#define QG_UNIT_ENUM(ID, name, what) QG_UNIT_##ID,
    QG_UNIT_TABLE(QG_UNIT_ENUM)
#undef QG_UNIT_ENUM
        QG_UNIT_COUNT
};

// How a row computes. The first four are NVIDIA's and keep subnormals everywhere.
enum {
    QG_MODEL_T,     // T-FDPA: products and C aligned to the largest exponent, truncated to F
                    // fraction bits, summed exactly, converted once; chained over K
    QG_MODEL_ST,    // the same with one scale per operand in each product's exponent
    QG_MODEL_GST,   // exact sums of 16 products, times their scales, then aligned and truncated
    QG_MODEL_PAIRS, // FP8 as FP16: T-FDPA of the elements with bit 1 of k clear, from 0, then of
                    // the others; C added last, RNE
    QG_MODEL_FMA,   // a chain of fused multiply-adds, RNE
    QG_MODEL_E,     // the exact sum of C and L products, RNE
    QG_MODEL_FTZ,   // binary32 products and pairwise sums, subnormals flushed
    QG_MODEL_TR,    // products truncated to F bits, their sum and C rounded down at 31 bits, RNE
    QG_MODEL_GTR,   // the same, even and odd elements aligned apart
    QG_MODEL_COUNT
};

// The conversion at the end of a fused operation. RZ overflows to infinity, and keeps subnormals.
enum {
    QG_RHO_NONE,
    QG_RHO_RZ_FP32,
    QG_RHO_RZ_E8M13, // 13 fraction bits: the low 10 of the binary32 are zero
    QG_RHO_RNE_FP32,
    QG_RHO_RNE_FP16
};

enum {
#define QG_UNIT_OPERANDS_ENUM(SET, ...) QG_OPERANDS_##SET,
    QG_UNIT_OPERANDS_TABLE(QG_UNIT_OPERANDS_ENUM)
#undef QG_UNIT_OPERANDS_ENUM
};

enum {
#define QG_UNIT_EVIDENCE_ENUM(ID, tag, what) QG_EVIDENCE_##ID,
    QG_UNIT_EVIDENCE_TABLE(QG_UNIT_EVIDENCE_ENUM)
#undef QG_UNIT_EVIDENCE_ENUM
        QG_EVIDENCE_COUNT
};

enum { QG_UNIT_NO_SCALE = -1 };

// A row of the table, for one unit, operand set, accumulator and scale format.
typedef struct qg_unit_row {
    uint8_t unit, operands;
    qg_format accumulator; // of C and D
    int16_t k_least, k;    // K of the instruction, shortest and usual
    uint8_t model;
    int16_t length;   // L
    int16_t fraction; // F
    uint8_t rho;
    int16_t floor;
    int32_t scale;       // qg_format of the block scales, or QG_UNIT_NO_SCALE
    int16_t scale_block; // elements of K that share one
    uint8_t evidence;
} qg_unit_row;

// A unit with its modifiers.
typedef struct qg_unit {
    uint8_t id;       // QG_UNIT_*
    uint8_t rounding; // +rtz, +rtn: of every addition (QG_ROUND_*); the sequential units alone
    int32_t block;    // N of fp32_blocked:N, else 0
    int64_t promote;  // N of +promote:N, else 0
    int64_t split;    // N of +split:N, else 0
} qg_unit;

// --------------------------------------------------------------------------------- names and rows

enum { QG_UNIT_NAME_SIZE = 96 };

// "hopper_wgmma+promote:128+split:2", "fp32_sequential+rtz", "fp32_blocked:32".
void qg_unit_name(const qg_unit *unit, char name[QG_UNIT_NAME_SIZE]);

// QG_ERROR_ARGUMENT, with the nearest name: unknown unit or modifier, a modifier that the unit
// cannot have (`exact` and `fp64` have no partial sums; +rtz, +rtn only the sequential units).
qg_status qg_unit_parse(const char *text, qg_unit *out);

// The i-th unit without modifiers, NULL past the end (fp32_blocked is listed without its N).
const char *qg_unit_listed(size_t i);
const char *qg_unit_what(int id);     // one line
bool qg_unit_is_software(int id);     // takes every recipe
const char *qg_evidence_tag(int id);  // "V-HW", "SRC", ...
const char *qg_evidence_what(int id); // one line
const char *qg_unit_model_name(int id);

// The i-th row of the table, NULL past the end.
const qg_unit_row *qg_unit_row_at(size_t i);

// The row that multiplies formats a and b; scale: QG_UNIT_NO_SCALE, or the format of the block
// scales. NULL if the unit has none.
const qg_unit_row *qg_unit_row_find(int unit, qg_format a, qg_format b, qg_format accumulator,
                                    int32_t scale);

// Whether a row takes the element format for a (and b).
bool qg_unit_row_takes(const qg_unit_row *row, qg_format element);

// ----------------------------------------------------------------------------- one dot product

// D = C + a . b as one chain of the row's instruction over k elements, zeros added up to a multiple
// of row->k_least.
typedef struct qg_unit_dot_input {
    qg_format a_format, b_format; // of the row's operand set
    int64_t k;
    const uint64_t *a, *b;   // (k) codes
    const uint64_t *sa, *sb; // (ceil(k / scale_block)) block scales, NULL for rows without
    int64_t scale_block;     // a multiple of row->scale_block
    uint64_t c;              // code of row->accumulator
} qg_unit_dot_input;

// d: a code of row->accumulator. QG_ERROR_ARGUMENT: k below 1, formats that the row does not take,
// scales missing or of an odd block size.
qg_status qg_unit_dot(const qg_unit_row *row, const qg_unit_dot_input *in, uint64_t *d);

// ------------------------------------------------------------------------------- the product

// One operand: an (m, k) tensor quantized by a recipe; buffers as in qg_emulator.h.
typedef struct qg_matmul_operand {
    const qg_recipe *recipe;
    const uint8_t *codes, *scales;
    float tensor_scale;
} qg_matmul_operand;

typedef struct qg_matmul_options {
    qg_format out_type; // QG_FORMAT_FP32, _BF16 or _FP16
    const float *bias;  // (n), or NULL
    int threads;        // 0: all
    bool scalar;        // the specification, also where a faster variant is installed
} qg_matmul_options;

// Whether the unit takes such a product; k: its K, or 0 for any. QG_ERROR_UNSUPPORTED with the
// reason in qg_detail(), QG_ERROR_ARGUMENT for an impossible out_type.
//
// Scales that a block-scaled unit applies (E8M0, UE4M3) may cover any multiple of its block. On
// other units the scales of per_tensor and per_row enter in the epilogue,
//     out = RNE(fl(fl(acc * fl(sa * sb)) + bias)),
// and binary32 scales of groups or blocks of G elements of K with each promotion (+promote:N, N
// divides G): main = fma(fl(sa * sb), temp, main). A two-level recipe's tensor scale enters in the
// epilogue. Software units multiply the dequantized values and have no epilogue scale; `exact` and
// `fp64` round the sum, bias included, once, to out_type.
qg_status qg_unit_takes(const qg_unit *unit, const qg_recipe *a, const qg_recipe *b, int64_t k,
                        qg_format out_type);

// Adds the +promote:N that the layouts of a and b need, if any and if none is there.
void qg_unit_fit(qg_unit *unit, const qg_recipe *a, const qg_recipe *b);

// out: (m, n) row-major of out_type. a: (m, k), b: (n, k). impl: set to the name of what ran
// ("scalar" or an installed variant's); may be NULL.
// Errors: those of qg_unit_takes and qg_shape_of, QG_ERROR_OVERFLOW, QG_ERROR_MEMORY.
qg_status qg_emulator_scaled_matmul(const qg_unit *unit, const qg_matmul_options *options,
                                    int64_t m, int64_t n, int64_t k, const qg_matmul_operand *a,
                                    const qg_matmul_operand *b, void *out, const char **impl);

// The same of binary32 matrices that are not quantized, on a software unit.
qg_status qg_emulator_matmul(const qg_unit *unit, const qg_matmul_options *options, int64_t m,
                             int64_t n, int64_t k, const float *a, const float *b, void *out);

// -------------------------------------------------------------------------------- faster variants

// acc (m, n) = the row's chain over K from +0, of raw codes. Code rows are `stride` bytes apart,
// scale rows `scale_stride`: one byte for each row->scale_block elements, (ceil(k / row->k) *
// row->k / scale_block) of them, those past the last element 0. Elements past k up to a multiple
// of row->k count as zeros and are not in memory.
// With promotion every interval of K, the last may be short, is a chain of its own, and
//     acc = RNE(acc + chain), or fma(fl(row factor * column factor), chain, acc)
// from acc = +0, intervals ascending; a NaN is then 7fffffff.
typedef struct qg_unit_matrix {
    qg_format format;
    const uint8_t *codes;
    int64_t stride;
    const uint8_t *scales; // NULL for rows without
    int64_t scale_stride;
} qg_unit_matrix;

typedef struct qg_unit_product {
    const qg_unit_row *row;
    int64_t m, n, k;
    qg_unit_matrix a, b;
    int threads;     // 0: all
    float *acc;      // rows n elements apart
    int64_t promote; // interval of K, a multiple of row->k; 0: none
    // (m, intervals) and (n, intervals), rows `intervals` = ceil(k / promote) apart; both or NULL.
    const float *row_factors, *column_factors;
} qg_unit_product;

// Returns QG_ERROR_UNSUPPORTED, having written nothing, for what it does not take: the scalar model
// then runs. Any other error is the product's.
typedef qg_status (*qg_unit_panel)(const qg_unit_product *product);

// Installs a variant for a model; NULL takes it away. `name` must outlive it. Set it before threads
// start. Rows of the software units and of QG_MODEL_FMA are never handed to variants.
void qg_unit_variant_set(int model, const char *name, qg_unit_panel panel);

// Installs the variants of the instruction set `isa` for every model that has one: "scalar" (takes
// them away), "avx2" or "avx512". NULL: what the environment variable QG_ISA says; where that is
// unset or empty, the best of this processor. The bytes of results do not change. Not thread-safe: call before threads start.
// QG_ERROR_ARGUMENT: an unknown name; QG_ERROR_UNSUPPORTED: this processor or this build lacks it.
// What is installed then stays.
qg_status qg_unit_use_isa(const char *isa);
// The name of what is installed; "scalar" at first.
const char *qg_unit_isa(void);

// The specification, for every row but QG_MODEL_FMA: what variants are compared with.
qg_status qg_unit_panel_scalar(const qg_unit_product *product);

QG_EXTERN_C_END

#endif
