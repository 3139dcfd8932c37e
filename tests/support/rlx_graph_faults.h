// RLX's defects of passes and verification, written from their description in words: what a check
// is worth shows on them (test_rlx_defects_graph.c). The pass can have each defect alone.
#ifndef RLX_GRAPH_FAULTS_H
#define RLX_GRAPH_FAULTS_H

#include <qg_graph.h>
#include <stdbool.h>

enum {
    RLX_FAULT_FP32 = 1,               // 11: the output is fp32 whatever the product's dtype is
    RLX_FAULT_TRANSPOSES = 2,         // 11: a transpose of the rhs, also of a transpose
    RLX_FAULT_NO_FILTER = 4,          // 11: every product of rank 2, none of another
    RLX_FAULT_KEY_WITHOUT_RECIPE = 8, // 13: one quantization for a node and element format
    RLX_FAULT_KEY_WITHOUT_ORIENTATION = 16, // 13: the same for a node and its transpose
    RLX_FAULT_AS_IT_IS =
        RLX_FAULT_FP32 | RLX_FAULT_TRANSPOSES | RLX_FAULT_NO_FILTER | RLX_FAULT_KEY_WITHOUT_RECIPE
};

// Insertion with the faults asked for; except: the name of a product that should stay, or NULL. The
// result is not verified. NULL where it panics: on an extent that is not there.
qg_graph *rlx_fault_insert(const qg_graph *graph, const char *lhs, const char *rhs,
                           const char *except, int faults);

// 12: inputs come before users, and are as many as the op takes.
bool rlx_fault_verify(const qg_graph *graph);

// 10: whether constant folding computes the node: an elementwise op, reshape or cast of constants,
// never of parameters, never of codes.
bool rlx_fault_folds(const qg_graph *graph, qg_node node);

#endif
