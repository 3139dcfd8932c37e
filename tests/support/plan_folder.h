// Plan files in a folder of their own, and plans as such files.
#ifndef PLAN_FOLDER_H
#define PLAN_FOLDER_H

#include <plan_options.h>

#include <unistd.h>

static inline void enter_folder(char folder[64]) {
    snprintf(folder, 64, "/tmp/quantgauge-plan-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void leave_folder(const char *folder) {
    char command[128];
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static inline void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

// The text is a plan file that gives the same plan.
static inline void check_text(const qg_plan *plan) {
    char folder[64];
    enter_folder(folder);
    write_text("text.plan", qg_plan_text(plan));
    qg_plan *again = plan_of("", "plan", "text.plan", NULL);
    ck_assert_str_eq(qg_plan_text(again), qg_plan_text(plan));
    ck_assert_int_eq(qg_plan_count(again), qg_plan_count(plan));
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        ck_assert_uint_eq(qg_plan_case(again, i)->id, qg_plan_case(plan, i)->id);
    qg_plan_free(again);
    leave_folder(folder);
}

#endif
