// The functions behind the rows of op.c.
#ifndef OP_INTERNAL_H
#define OP_INTERNAL_H

#include <qg_case.h>

int64_t qg_op_error_bytes(const qg_case *c);
double qg_op_error_cost(const qg_case *c);
void qg_op_error_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

int64_t qg_op_gemm_bytes(const qg_case *c);
double qg_op_gemm_cost(const qg_case *c);
void qg_op_gemm_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

int64_t qg_op_partition_bytes(const qg_case *c);
double qg_op_partition_cost(const qg_case *c);
void qg_op_partition_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

int64_t qg_op_throughput_bytes(const qg_case *c);
double qg_op_throughput_cost(const qg_case *c);
void qg_op_throughput_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

int64_t qg_op_vectors_bytes(const qg_case *c);
double qg_op_vectors_cost(const qg_case *c);
void qg_op_vectors_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

int64_t qg_op_model_bytes(const qg_case *c);
double qg_op_model_cost(const qg_case *c);
void qg_op_model_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result);

// Nanoseconds of a product of two elements on one core: rough.
double qg_op_unit_ns(const qg_unit *unit);

// MISTRUSTED if a measurement that RAN says little: NaN or infinity in synthetic data, more than
// 70 % zeros in what is compared (`reference` names x in the reason), more than 50 % saturated.
void qg_op_judge_pairs(const qg_case *c, const qg_sums *sums, const char *reference,
                       qg_case_result *result);
void qg_op_judge_saturation(const qg_counts *counts, qg_case_result *result);

#endif
