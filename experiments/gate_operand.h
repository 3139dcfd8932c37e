// What gates know of one operand of a case: its recipe, as names and numbers, and its blocks.
#ifndef GATE_OPERAND_H
#define GATE_OPERAND_H

#include <qg_recipe.h>
#include <qg_scale_rule.h>
#include <qg_theory.h>
#include <stdbool.h>
#include <stdint.h>

enum { QG_GRID_MOST = 256 };

typedef struct qg_gate_operand {
    char *key; // format, layout, rule, rounding
    bool known;
    qg_recipe recipe;
    qg_element element;
    double values[QG_GRID_MOST]; // its magnitudes, ascending from 0
    int64_t value_count;         // 0: more than there is room for (bf16, fp32)
    double unit;                 // unit roundoff of the rounding mode; 0 for integers
    double least, step;          // smallest positive value, largest gap between neighbours
    double largest;
    // Of an unsaturated or saturated element, as shares of the block's amax, over every amax:
    double worst;   // largest |e|; NaN where the rule gives no bound
    double excess;  // largest |e| of a saturated element
    double scale;   // largest X
    bool saturates; // whether the rule lets an element exceed F X
} qg_gate_operand;

// Never fails: an operand that cannot be read is not `known`. *out must be zeroed.
// `find` leaves out what the rule may lose (worst, excess, scale, saturates), which takes thousands of
// scales to know.
void qg_gate_operand_find(const char *format, const char *layout, const char *rule,
                          const char *rounding, qg_gate_operand *out);
void qg_gate_operand_read(const char *format, const char *layout, const char *rule,
                          const char *rounding, qg_gate_operand *out);

// The four kinds of blocks that an (m, k) tensor is cut into: whole ones and those at its edges.
typedef struct qg_gate_block {
    int64_t elements; // of one block
    double count;     // of such blocks
} qg_gate_block;
enum { QG_GATE_BLOCKS = 4 };
int qg_gate_blocks(const qg_recipe *recipe, int64_t m, int64_t k,
                   qg_gate_block out[QG_GATE_BLOCKS]);

// X of a block's amax by the rule's words, in binary64, without the bounds and clamps of binary32.
// tensor_amax: what two-level rules know of the tensor. NaN for rules that need the elements.
double qg_gate_scale(const qg_gate_operand *operand, double tensor_amax, double amax);

#endif
