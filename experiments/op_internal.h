// The functions behind the rows of op.c.
#ifndef OP_INTERNAL_H
#define OP_INTERNAL_H

#include <qg_case.h>

int64_t qg_op_error_bytes(const qg_case *c);
double qg_op_error_cost(const qg_case *c);
void qg_op_error_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

#endif
