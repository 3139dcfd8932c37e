// Building a plan: what was asked for, on the command line and in plan files, becomes cases.
//
// Statuses: QG_ERROR_ARGUMENT, _OVERFLOW, _DATA, _UNSUPPORTED for what the user can correct (exit
// code 2), QG_ERROR_IO and _MEMORY for the system's faults (5). Details name the option, or file,
// line and option.
#ifndef QG_PLAN_BUILD_H
#define QG_PLAN_BUILD_H

#include <qg_plan.h>

enum { QG_PLAN_MOST = 1 << 22 }; // cases, before --where and --exclude

typedef struct qg_plan_request qg_plan_request;

qg_status qg_plan_request_create(qg_plan_request **out);
void qg_plan_request_free(qg_plan_request *request); // NULL is fine

// The command line's value of an option without dashes: the axes' options, "level", "where",
// "exclude". A repeated list option unites its lists; repeated `where` or `exclude` or; another
// `level` replaces the last.
qg_status qg_plan_request_set(qg_plan_request *request, const char *option, const char *value);

// Adds the sections of a plan file. The command line's list options replace those of every section;
// its `where` and `exclude` apply to every section beside the section's own.
qg_status qg_plan_request_file(qg_plan_request *request, const char *path);

// What was asked for, united, each case once, in plan order: equal inputs next to each other (data,
// sizes, input type and seed outside), then operation, n, format, layout, rule, rounding, operand b,
// bias, output type, unit, backend in the order of their listing. Recorded vectors by file. Of a
// model all nodes of one run together. A plan without cases is no failure: see qg_plan_considered.
// Opens tensor files, models and recorded vectors and computes the digests of those selected.
qg_status qg_plan_build(const qg_plan_request *request, qg_plan **out);

// Cases before --where and --exclude, duplicates included.
int64_t qg_plan_considered(const qg_plan *plan);

// As qg_plan_repro, with tensor files as they were typed: what a user can run here and now.
bool qg_plan_command(const qg_plan *plan, const qg_case *c, char *text, size_t size);

// Appends a word, quoted where a shell needs it, after a space if text is not empty. False and text
// unchanged if it does not fit.
bool qg_shell_append(char *text, size_t size, const char *word);

#endif
