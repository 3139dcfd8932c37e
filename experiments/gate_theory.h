// What theory says of a quantized tensor: lib/measure's integrals, put together over the blocks of
// a layout, with a standard error; and of the exact product of two. Keeps what it has integrated.
#ifndef GATE_THEORY_H
#define GATE_THEORY_H

#include <gate_operand.h>

typedef struct qg_gate_expectation {
    bool known;       // false: no density, another input type, a rule that theory cannot follow
    double noise;     // noise / signal
    double shrinkage; // E[x (q - x)] / E[x^2]
    double below;     // share of elements that become zero
    double above;     // share of elements beyond F X
    double se_db;     // one standard error of the QSNR of such a tensor
} qg_gate_expectation;

typedef struct qg_gate_theory qg_gate_theory;

qg_status qg_gate_theory_create(qg_gate_theory **out);
void qg_gate_theory_free(qg_gate_theory *theory); // NULL is fine

// (m, k) elements of a data law ("normal:sigma=2") quantized by an operand, which must stay where it
// is. tensor_amax: the largest magnitude of the tensor, NaN if it is not known.
qg_gate_expectation qg_gate_theory_tensor(qg_gate_theory *theory, const qg_gate_operand *operand,
                                          const char *law, int64_t m, int64_t k,
                                          double tensor_amax);

// The exact product of a (m, k) and b (n, k), against that of the data:
//   1 - 2 (1 + sA) (1 + sB) + (1 + 2 sA + rA) (1 + 2 sB + rB)
// for independent operands of symmetric sign, r their noise and s their shrinkage.
qg_gate_expectation qg_gate_theory_product(const qg_gate_expectation *a,
                                           const qg_gate_expectation *b, int64_t m, int64_t n,
                                           int64_t k);

// Whether the law has a density that theory knows: mean 0, symmetric, independent elements.
bool qg_gate_theory_has_density(qg_gate_theory *theory, const char *law);

#endif
