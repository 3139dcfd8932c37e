// The plan: from options and plan files to the ordered list of cases.
#ifndef QG_PLAN_H
#define QG_PLAN_H

#include <qg_case.h>
#include <qg_source.h>

typedef struct qg_plan qg_plan;

int64_t qg_plan_count(const qg_plan *plan);
// Valid as long as the plan. order in [0, count).
const qg_case *qg_plan_case(const qg_plan *plan, int64_t order);

// The expanded plan as text: one line per option with every default written out, independent of
// paths, threads, ISA, output and shard. Equal text means equal cases; its digest is plan_digest.
const char *qg_plan_text(const qg_plan *plan);

// The arguments of run_sweep that run this case alone, ready for a shell (quoted where needed).
// Returns false if it does not fit.
bool qg_plan_repro(const qg_plan *plan, const qg_case *c, char *text, size_t size);

// Memory that a case needs at once, in bytes, and a rough cost in element operations, the fixed
// part of a case included: the estimate of --list and the time left of a sweep come from it.
int64_t qg_case_bytes(const qg_case *c);
double qg_case_cost(const qg_case *c);

void qg_plan_free(qg_plan *plan);

#endif
