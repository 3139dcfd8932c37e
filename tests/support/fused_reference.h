// The scalar meaning of qg_fused_problem, independent of the library's models.
#ifndef FUSED_REFERENCE_H
#define FUSED_REFERENCE_H

#include <fused_problem_internal.h>

uint32_t qg_fused_element(const qg_fused_problem *problem, int64_t row, int64_t column);

// As a fallback: qg_fused_element of `count` neighbours.
void qg_fused_run_scalar(const qg_fused_problem *problem, int64_t row, int64_t column,
                         int64_t count);

#endif
