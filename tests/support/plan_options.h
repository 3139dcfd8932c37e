// Plans from options written out in a test, and from lines of arguments.
#ifndef PLAN_OPTIONS_H
#define PLAN_OPTIONS_H

#include <plan_internal.h>
#include <run_suite.h>

#include <popt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

// The --ops of plans that name none; NULL: the program's default.
static const char *plan_standard_ops;
// The --backends of those that name none; NULL: the program's default.
static const char *plan_standard_backends = "emulator";

// Builds from option, value pairs that end with NULL; "plan" names a file.
static inline qg_status try_plan(qg_plan **out, va_list options) {
    qg_plan_request *request;
    qg_status status = qg_plan_request_create(&request);
    const char *option;
    bool has_ops = plan_standard_ops == NULL, has_backends = plan_standard_backends == NULL;
    *out = NULL;
    while (!status && (option = va_arg(options, const char *)) != NULL) {
        const char *value = va_arg(options, const char *);
        has_ops |= strcmp(option, "ops") == 0;
        has_backends |= strcmp(option, "backends") == 0;
        status = strcmp(option, "plan") == 0 ? qg_plan_request_file(request, value)
                                             : qg_plan_request_set(request, option, value);
    }
    if (!status && !has_ops)
        status = qg_plan_request_set(request, "ops", plan_standard_ops);
    if (!status && !has_backends)
        status = qg_plan_request_set(request, "backends", plan_standard_backends);
    if (!status)
        status = qg_plan_build(request, out);
    qg_plan_request_free(request);
    return status;
}

static inline qg_plan *plan_of(const char *first, ...) {
    qg_plan *plan;
    va_list options;
    (void)first; // a word that only opens the list
    va_start(options, first);
    qg_status status = try_plan(&plan, options);
    va_end(options);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return plan;
}

static inline void refused(qg_status expected, const char *part, ...) {
    qg_plan *plan;
    va_list options;
    va_start(options, part);
    qg_status status = try_plan(&plan, options);
    va_end(options);
    ck_assert_msg(status == expected, "status %d: %s", (int)status, qg_detail());
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(qg_detail(), part) != NULL, "'%s' lacks '%s'", qg_detail(), part);
    ck_assert_ptr_null(strchr(qg_detail(), '\n'));
}

// The plan of a line of arguments.
static inline qg_plan *plan_of_line(const char *line) {
    int argc;
    const char **argv;
    qg_plan_request *request;
    qg_plan *plan;
    ck_assert_int_eq(poptParseArgvString(line, &argc, &argv), 0);
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    for (int i = 0; i < argc; i++) {
        const char *option = argv[i] + 2;
        bool flag = strcmp(option, "bias") == 0;
        ck_assert_int_eq(strncmp(argv[i], "--", 2), 0);
        ck_assert(flag || i + 1 < argc);
        const char *value = flag ? "1" : argv[++i];
        ck_assert_msg(qg_plan_request_set(request, option, value) == QG_OK, "%s: %s", line,
                      qg_detail());
    }
    ck_assert_msg(qg_plan_build(request, &plan) == QG_OK, "%s: %s", line, qg_detail());
    qg_plan_request_free(request);
    free(argv);
    return plan;
}

// Field by field: padding between them says nothing.
static inline bool same_recipe(const qg_recipe *a, const qg_recipe *b) {
    return a->element == b->element && a->layout.kind == b->layout.kind &&
           a->layout.rows == b->layout.rows && a->layout.columns == b->layout.columns &&
           a->rule == b->rule && a->structure == b->structure &&
           a->conversion.rounding.mode == b->conversion.rounding.mode &&
           a->conversion.rounding.bits == b->conversion.rounding.bits &&
           a->conversion.overflow == b->conversion.overflow &&
           a->conversion.nan == b->conversion.nan && a->amax == b->amax &&
           a->zero_scale == b->zero_scale && a->nan_scale == b->nan_scale &&
           a->inf_scale == b->inf_scale && a->nan_element == b->nan_element &&
           a->eps_on == b->eps_on && a->huge_inverse == b->huge_inverse && a->eps == b->eps &&
           a->block_scale_min == b->block_scale_min && a->fixed_scale == b->fixed_scale &&
           a->margin == b->margin;
}

// Whether a line runs the case alone.
static inline void check_line(const char *line, const qg_case *c) {
    ck_assert_ptr_null(strchr(line, '\n'));
    qg_plan *alone = plan_of_line(line);
    ck_assert_msg(qg_plan_count(alone) == 1, "%s: %lld cases", line,
                  (long long)qg_plan_count(alone));
    const qg_case *again = qg_plan_case(alone, 0);
    ck_assert_msg(again->id == c->id, "%s", line);
    ck_assert(same_recipe(again->recipe, c->recipe));
    qg_plan_free(alone);
}

// The lines of a plan's cases, but for those that are SKIPPED.
static inline void check_repro_lines(const qg_plan *plan) {
    char line[4096], typed[4096];
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert(qg_plan_repro(plan, c, line, sizeof line));
        ck_assert(qg_plan_command(plan, c, typed, sizeof typed));
        if (c->skip)
            continue;
        check_line(line, c);
        check_line(typed, c);
    }
}

#endif
