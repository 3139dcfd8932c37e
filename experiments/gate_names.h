// The names that formulas of gates know: numeric columns of the row, and what follows from its
// format, rule, unit and data law. NaN where a name does not apply: the gate then does not, either.
#ifndef GATE_NAMES_H
#define GATE_NAMES_H

#include <qg_table.h>

// clang-format off
// X(ID, name, definition)
#define QG_GATE_NAME_TABLE(X)                                                                      \
    X(ELEMENTS, "elements", "elements compared (counts/n)")                                        \
    X(FAILED, "failed", "1 if the case FAILED or CRASHED, else 0")                                 \
    X(LARGEST, "largest", "largest finite value F of the element format")                          \
    X(LEAST, "least", "smallest positive value of the element format")                             \
    X(U, "u", "unit roundoff of the elements: 2^-(mbits+1) to nearest, 2^-mbits else; integers: 0") \
    X(SCALE_U, "scale_u", "unit roundoff of the scales: 0 e8m0, 2^-4 ue4m3, 2^-24 fp32")           \
    X(LARGEST_B, "largest_b", "as largest, of operand b")                                          \
    X(LEAST_B, "least_b", "as least, of operand b")                                                \
    X(U_B, "u_b", "as u, of operand b")                                                            \
    X(SCALE_U_B, "scale_u_b", "as scale_u, of operand b")                                          \
    X(SATURATES, "saturates", "1 if the rule lets elements exceed F X, 0 if it does not")          \
    X(WORST_ABS, "worst_abs", "largest |e| that rounding and rule allow, as a share of the block's amax") \
    X(QSNR_LEAST_DB, "qsnr_least_db", "least QSNR that rounding and rule allow, for this max |x| and sum x^2") \
    X(OUT_U, "out_u", "unit roundoff of the output type of a product")                             \
    X(ACC_U, "acc_u", "unit roundoff of what the accumulator keeps")                               \
    X(ACC_TERMS, "acc_terms", "products of one fused operation")                                   \
    X(ACC_STEPS, "acc_steps", "fused operations along k that follow one another")                  \
    X(BACKWARD_BOUND, "backward_bound", "bound of backward_error against reference quantized: unit, k, promotion, split, output type") \
    X(SYMMETRIC, "symmetric", "1 if the data law has mean 0, symmetric signs and independent elements")     \
    X(FROBENIUS_LAW, "frobenius_law", "0.4247 u sqrt(k/2): relative error of sequential sums to nearest, mean 0") \
    X(QSNR_THEORY_DB, "qsnr_theory_db", "QSNR by integration; of unit exact against source, by the identity of products") \
    X(QSNR_SE_DB, "qsnr_se_db", "one standard error of it for that law, recipe and size")          \
    X(SHRINKAGE_THEORY, "shrinkage_theory", "E[x (q - x)] / E[x^2] by integration")                \
    X(BELOW_THEORY, "below_theory", "share of elements that become zero, by integration")          \
    X(ABOVE_THEORY, "above_theory", "share of elements beyond F X, by integration")                \
    X(BASELINE, "baseline", "the metric in the baseline: mean over its seeds (drift)")             \
    X(SPREAD, "spread", "its standard deviation over the baseline's seeds, at least 5 (drift)")    \
    X(SEEDS, "seeds", "seeds of the baseline (drift)")
// clang-format on

typedef enum qg_gate_name {
#define QG_GATE_NAME_ENUM(ID, name, definition) QG_GATE_NAME_##ID,
    QG_GATE_NAME_TABLE(QG_GATE_NAME_ENUM)
#undef QG_GATE_NAME_ENUM
        QG_GATE_NAME_COUNT
} qg_gate_name;

typedef struct qg_gate_names qg_gate_names; // what has been worked out so far

// A row, and the baseline's values of the metric in question (NaN outside drift).
typedef struct qg_gate_case {
    qg_gate_names *names;
    const qg_table *table;
    int64_t row;
    double baseline, spread, seeds;
} qg_gate_case;

qg_status qg_gate_names_create(qg_gate_names **out);
void qg_gate_names_free(qg_gate_names *names); // NULL is fine

// For qg_formula_parse. Columns of text, identities and digests are no names.
int qg_gate_name_find(const char *name);
// For qg_formula_evaluate: `context` is a qg_gate_case.
double qg_gate_name_value(const void *context, int name);

const char *qg_gate_name_text(int name);
// NULL past the end: the names that are no columns.
const char *qg_gate_name_definition(int name);

// A numeric column as a number; NaN where it is missing or no number.
double qg_gate_column(const qg_table *table, int64_t row, qg_column column);

#endif
