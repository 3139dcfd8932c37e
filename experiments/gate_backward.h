// Bounds of the componentwise backward error of a product against the exact product of the
// dequantized operands: max |e| / (|A| |B|).
#ifndef GATE_BACKWARD_H
#define GATE_BACKWARD_H

#include <gate_operand.h>
#include <qg_unit.h>

typedef struct qg_gate_unit {
    char *name;
    bool known;
    qg_unit unit;
} qg_gate_unit;

// Facts of the accumulator for a pair of operands; NaN where they do not apply.
typedef struct qg_gate_accumulator {
    double unit;  // unit roundoff of what one fused operation keeps
    double terms; // products of one fused operation
    double steps; // fused operations along k that follow one another
    double bound; // of the backward error, the output's rounding included
} qg_gate_accumulator;

// The caller frees name.
void qg_gate_unit_read(const char *name, qg_gate_unit *out);

qg_gate_accumulator qg_gate_accumulator_of(const qg_gate_unit *unit, const qg_gate_operand *a,
                                           const qg_gate_operand *b, int64_t k, qg_format out_type);

// Unit roundoff of an output type: 2^-24, 2^-8, 2^-11.
double qg_gate_output_unit(qg_format out_type);

#endif
