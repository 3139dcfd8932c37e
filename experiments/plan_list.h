// `--list`: the cases of a plan, one per line, and what running them would cost.
#ifndef PLAN_LIST_H
#define PLAN_LIST_H

#include <launcher.h>
#include <qg_plan.h>
#include <stdio.h>

typedef struct qg_plan_estimate {
    int64_t cases, skipped, unavailable;
    double elements, seconds; // seconds: rough
} qg_plan_estimate;

// Of one shard; threads 0: all.
qg_plan_estimate qg_plan_estimate_of(const qg_plan *plan, const qg_shard *shard, int threads);
// "280 cases, 193 million elements, about 5 s on 2 threads".
void qg_plan_estimate_text(const qg_plan_estimate *estimate, int threads, char *text, size_t size);

// Lines of a shard's cases. What is the same for all cases of the plan, the heading and the estimate
// are lines that begin with #.
qg_status qg_plan_list(const qg_plan *plan, const qg_shard *shard, int threads, FILE *stream);

// How backend cpu runs the recipes of its cases: a line each, once.
void qg_plan_list_runs(const qg_plan *plan, FILE *stream);

#endif
