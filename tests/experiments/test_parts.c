// Parts of a result file: written whole, found again, refused when foreign, merged newest first;
// and the locks that keep two runs apart.
#include <qg_case.h>
#include <qg_locks.h>
#include <qg_parts.h>
#include <run_suite.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES = 40 };
static uint64_t ids[CASES];
static char folder[64], out[96], parts_folder[128];

static void enter(void) {
    for (uint64_t i = 0; i < CASES; i++)
        ids[i] = 1000 + 7919 * i % 1009;
    snprintf(folder, sizeof folder, "/tmp/test_parts.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(out, sizeof out, "%s/results.h5", folder);
    snprintf(parts_folder, sizeof parts_folder, "%s.parts", out);
    ck_assert_int_eq(mkdir(parts_folder, 0777), 0);
}

static void leave(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static qg_status describe(void *context, qg_table *table) {
    int64_t run;
    qg_status status = qg_table_add_run(table, &run);
    return status == QG_OK ? qg_table_set_run(table, run, QG_PARTS_BUILD_KEY, context) : status;
}

static qg_parts_options options_of(int shard, int shards, const char *plan, const char *build) {
    qg_parts_options options = {.out = out,
                                .shard = shard,
                                .shards = shards,
                                .plan_text = plan,
                                .case_ids = ids,
                                .cases = CASES,
                                .build = build,
                                .locked = true,
                                .describe = describe};
    memcpy(&options.context, &build, sizeof build);
    return options;
}

static qg_parts *open_with(qg_parts_options options) {
    qg_parts *parts = NULL;
    qg_status status = qg_parts_open(&options, &parts);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return parts;
}

static qg_parts *open_parts(void) { return open_with(options_of(1, 1, "plan\n", "build")); }

static void add(qg_parts *parts, int64_t order, const char *status) {
    qg_table *table;
    int64_t row;
    ck_assert_int_eq(qg_parts_pending(parts, &table), QG_OK);
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    qg_table_set_order(table, row, order);
    ck_assert_int_eq(qg_table_set_u64(table, row, QG_COLUMN_CASE_ID, ids[order]), QG_OK);
    ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_STATUS, status), QG_OK);
    ck_assert_int_eq(qg_table_set_i64(table, row, QG_COLUMN_RUN, 0), QG_OK);
}

static void write_range(qg_parts *parts, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
        add(parts, i, "RAN");
    ck_assert_int_eq(qg_parts_write(parts), QG_OK);
}

static bool has_part(const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", parts_folder, name);
    return access(path, F_OK) == 0;
}

static void touch(const char *name, const char *content) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", parts_folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

// Opens and expects a refusal.
static void refused(qg_parts_options options, qg_status wanted, const char *words) {
    qg_parts *parts;
    ck_assert_int_eq(qg_parts_open(&options, &parts), wanted);
    ck_assert_ptr_null(parts);
    ck_assert_msg(strstr(qg_detail(), words) != NULL, "%s", qg_detail());
}

START_TEST(written_cases_are_found_again) {
    enter();
    qg_parts *parts = open_parts();
    ck_assert_int_eq(qg_parts_write(parts), QG_OK); // nothing to write, nothing written
    ck_assert(!has_part("1-of-1-000001.h5"));
    write_range(parts, 0, 10);
    write_range(parts, 20, 30);
    add(parts, 35, "RAN"); // stays in memory
    ck_assert_int_eq(qg_parts_pending_rows(parts), 1);
    qg_parts_free(parts);
    ck_assert(has_part("1-of-1-000001.h5") && has_part("1-of-1-000002.h5"));
    parts = open_parts();
    for (int64_t i = 0; i < CASES; i++)
        ck_assert_int_eq(qg_parts_finished(parts, i), i < 10 || (i >= 20 && i < 30));
    qg_table *table;
    int64_t missing;
    ck_assert_int_eq(qg_parts_collect(parts, true, &table, &missing), QG_OK);
    ck_assert_int_eq(missing, CASES - 20);
    ck_assert_int_eq(qg_table_rows(table), 20);
    qg_table_free(table);
    write_range(parts, 10, 20);
    ck_assert(has_part("1-of-1-000003.h5")); // numbers go on
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(publishing_makes_one_whole_file) {
    enter();
    qg_parts *parts = open_parts();
    write_range(parts, 0, 25);
    for (int64_t i = 25; i < CASES; i++)
        add(parts, i, i % 2 ? "RAN" : "FAILED");
    qg_table *table;
    int64_t missing;
    ck_assert_int_eq(qg_parts_collect(parts, true, &table, &missing), QG_OK);
    ck_assert_int_eq(missing, 0);
    ck_assert(!qg_parts_is_merged(parts));
    ck_assert_int_eq(access(out, F_OK), -1);
    ck_assert_int_eq(qg_parts_publish(parts, table), QG_OK);
    qg_table_free(table);
    qg_parts_free(parts);
    parts = open_parts(); // of FILE and of the part that still lies there
    ck_assert(qg_parts_is_merged(parts));
    for (int64_t i = 0; i < CASES; i++)
        ck_assert(qg_parts_finished(parts, i));
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(what_a_repetition_may_change_is_tried_again) {
    enter();
    qg_parts *parts = open_parts();
    const char *const given[] = {"CRASHED", "TIMEOUT", "UNAVAILABLE",
                                 "FAILED",  "SKIPPED", "MISTRUSTED"};
    for (int64_t i = 0; i < 6; i++)
        add(parts, i, given[i]);
    write_range(parts, 6, CASES);
    qg_parts_free(parts);
    parts = open_parts();
    for (int64_t i = 0; i < CASES; i++)
        ck_assert_int_eq(qg_parts_finished(parts, i), i >= 3);
    add(parts, 0, "PASSED");
    add(parts, 1, "RAN");
    ck_assert_int_eq(qg_parts_write(parts), QG_OK);
    qg_parts_free(parts);
    parts = open_parts();
    qg_table *table;
    int64_t missing;
    ck_assert_int_eq(qg_parts_collect(parts, true, &table, &missing), QG_OK);
    ck_assert_int_eq(missing, 0);
    ck_assert_int_eq(qg_table_rows(table), CASES);
    ck_assert_str_eq(qg_table_text(table, 0, QG_COLUMN_STATUS), "PASSED"); // the newer one
    ck_assert_str_eq(qg_table_text(table, 1, QG_COLUMN_STATUS), "RAN");
    ck_assert_str_eq(qg_table_text(table, 2, QG_COLUMN_STATUS), "UNAVAILABLE");
    // A whole FILE with such a case is tried again, too, and replaced.
    ck_assert_int_eq(qg_parts_publish(parts, table), QG_OK);
    qg_table_free(table);
    qg_parts_free(parts);
    parts = open_parts();
    ck_assert(qg_parts_is_merged(parts) && !qg_parts_finished(parts, 2));
    add(parts, 2, "RAN");
    ck_assert(!qg_parts_is_merged(parts));
    ck_assert_int_eq(qg_parts_write(parts), QG_OK);
    ck_assert(!qg_parts_is_merged(parts));
    ck_assert_int_eq(qg_parts_collect(parts, true, &table, &missing), QG_OK);
    ck_assert_str_eq(qg_table_text(table, 2, QG_COLUMN_STATUS), "RAN");
    qg_table_free(table);
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(another_plan_or_build_is_refused) {
    enter();
    qg_parts *parts = open_parts();
    write_range(parts, 0, 10);
    qg_parts_free(parts);
    qg_parts_options other_plan = options_of(1, 1, "another plan\n", "build");
    qg_parts_options other_build = options_of(1, 1, "plan\n", "another build");
    refused(other_plan, QG_ERROR_ARGUMENT, "another plan: --overwrite");
    refused(other_build, QG_ERROR_ARGUMENT, "another build: --overwrite");
    ck_assert_ptr_nonnull(strstr(qg_detail(), "--reuse"));
    ck_assert(has_part("1-of-1-000001.h5")); // nothing was touched

    other_build.existing = QG_EXISTING_REUSE;
    parts = open_with(other_build);
    ck_assert(qg_parts_finished(parts, 9) && !qg_parts_finished(parts, 10));
    qg_parts_free(parts);

    other_plan.existing = QG_EXISTING_OVERWRITE;
    parts = open_with(other_plan);
    ck_assert(!has_part("1-of-1-000001.h5"));
    ck_assert(!qg_parts_finished(parts, 0));
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(reuse_places_cases_by_their_id) {
    enter();
    qg_parts *parts = open_parts();
    write_range(parts, 0, 10);
    qg_parts_free(parts);
    // The other plan has the first cases at its end and lacks cases 0 and 1.
    uint64_t reversed[CASES];
    for (int i = 0; i < CASES; i++)
        reversed[i] = i >= CASES - 2 ? 1 : ids[CASES - 1 - i];
    qg_parts_options options = options_of(1, 1, "reversed\n", "build");
    options.case_ids = reversed;
    options.existing = QG_EXISTING_REUSE;
    parts = open_with(options);
    for (int64_t i = 0; i < CASES; i++)
        ck_assert_int_eq(qg_parts_finished(parts, i), i >= CASES - 10 && i < CASES - 2);
    qg_table *table;
    int64_t missing;
    ck_assert_int_eq(qg_parts_collect(parts, true, &table, &missing), QG_OK);
    ck_assert_int_eq(qg_table_rows(table), 8);
    ck_assert_int_eq(missing, CASES - 8);
    for (int64_t row = 0; row < 8; row++)
        ck_assert_uint_eq(qg_table_u64(table, row, QG_COLUMN_CASE_ID),
                          reversed[qg_table_order(table, row)]);
    ck_assert_str_eq(qg_table_plan(table), "reversed\n");
    qg_table_free(table);
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(foreign_and_damaged_files_are_refused) {
    enter();
    qg_parts *parts = open_parts();
    write_range(parts, 0, 10);
    qg_parts_free(parts);
    qg_parts_options options = options_of(1, 1, "plan\n", "build");
    touch("1-of-1-000002.h5", "no HDF5");
    refused(options, QG_ERROR_DATA, "1-of-1-000002.h5");
    ck_assert(has_part("1-of-1-000002.h5"));
    options.existing = QG_EXISTING_OVERWRITE;
    parts = open_with(options);
    ck_assert(!has_part("1-of-1-000002.h5"));
    write_range(parts, 0, 10);
    qg_parts_free(parts);

    // A case that is none of the plan's: same plan text, other ids.
    uint64_t others[CASES] = {0};
    options = options_of(1, 1, "plan\n", "build");
    options.case_ids = others;
    refused(options, QG_ERROR_DATA, "is no case of its plan");

    FILE *file = fopen(out, "w");
    ck_assert_ptr_nonnull(file);
    fputs("a text\n", file);
    fclose(file);
    refused(options_of(1, 1, "plan\n", "build"), QG_ERROR_DATA, "results.h5");
    ck_assert_int_eq(access(out, F_OK), 0);
    leave();
}
END_TEST

START_TEST(temporary_files_of_the_dead_are_removed) {
    enter();
    touch("1-of-3-000004.h5.tmp", "half");
    touch("2-of-3-000004.h5.tmp", "half, and perhaps being written");
    char path[128];
    snprintf(path, sizeof path, "%s.tmp", out);
    fclose(fopen(path, "w"));
    qg_parts_free(open_with(options_of(1, 3, "plan\n", "build")));
    ck_assert(!has_part("1-of-3-000004.h5.tmp"));
    ck_assert(has_part("2-of-3-000004.h5.tmp"));
    ck_assert_int_eq(access(path, F_OK), -1);
    leave();
}
END_TEST

START_TEST(overwriting_a_shard_spares_its_neighbours) {
    enter();
    qg_parts *parts = open_with(options_of(1, 3, "plan\n", "build"));
    write_range(parts, 0, 5);
    qg_parts_free(parts);
    parts = open_with(options_of(2, 3, "plan\n", "build"));
    write_range(parts, 5, 10);
    qg_parts_free(parts);
    parts = open_with(options_of(1, 2, "plan\n", "build")); // another split
    write_range(parts, 10, 15);
    qg_parts_free(parts);
    qg_parts_options options = options_of(1, 3, "plan\n", "build");
    options.existing = QG_EXISTING_OVERWRITE;
    parts = open_with(options);
    ck_assert(!has_part("1-of-3-000001.h5"));
    ck_assert(has_part("2-of-3-000002.h5"));
    ck_assert(!has_part("1-of-2-000003.h5"));
    ck_assert_int_eq(qg_parts_common_split(parts), 3);
    qg_parts_free(parts);
    leave();
}
END_TEST

START_TEST(parts_of_others_are_found_when_collecting) {
    enter();
    qg_parts *mine = open_with(options_of(1, 2, "plan\n", "build"));
    qg_parts *theirs = open_with(options_of(2, 2, "plan\n", "build"));
    write_range(mine, 0, 20);
    write_range(theirs, 20, CASES);
    qg_table *table;
    int64_t missing;
    ck_assert_int_eq(qg_parts_collect(mine, false, &table, &missing), QG_OK);
    ck_assert_int_eq(missing, 20);
    qg_table_free(table);
    ck_assert_int_eq(qg_parts_collect(mine, true, &table, &missing), QG_OK);
    ck_assert_int_eq(missing, 0);
    qg_table_free(table);
    qg_parts_free(mine);
    qg_parts_free(theirs);
    leave();
}
END_TEST

START_TEST(a_failed_write_keeps_the_rows) {
    enter();
    qg_parts *parts = open_parts();
    add(parts, 3, "RAN");
    char moved[160];
    snprintf(moved, sizeof moved, "%s.away", parts_folder);
    ck_assert_int_eq(rename(parts_folder, moved), 0);
    ck_assert_int_eq(qg_parts_write(parts), QG_ERROR_IO);
    ck_assert_int_eq(qg_parts_pending_rows(parts), 1);
    ck_assert_int_eq(rename(moved, parts_folder), 0);
    ck_assert_int_eq(qg_parts_write(parts), QG_OK);
    ck_assert_int_eq(qg_parts_pending_rows(parts), 0);
    qg_parts_free(parts);
    leave();
}
END_TEST

// Takes a lock in another process and holds it until `release` is closed.
static pid_t hold_lock(int shard, int shards, int *release) {
    int ready[2], hold[2];
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(hold), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(hold[1]);
        qg_locks *locks;
        char byte = qg_locks_take(out, shard, shards, &locks) == QG_OK;
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        if (read(hold[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(hold[0]);
    close(ready[1]);
    char byte = 0;
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 1);
    close(ready[0]);
    *release = hold[1];
    return pid;
}

START_TEST(one_run_per_shard) {
    enter();
    int release;
    pid_t pid = hold_lock(1, 3, &release);
    qg_locks *locks, *second;
    ck_assert_int_eq(qg_locks_take(out, 1, 3, &locks), QG_ERROR_ENVIRONMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "shard 1/3 of"));
    ck_assert_ptr_nonnull(strstr(qg_detail(), "process"));
    ck_assert_int_eq(qg_locks_take(out, 1, 1, &locks), QG_ERROR_ENVIRONMENT); // another split
    ck_assert_int_eq(qg_locks_take_alone(out, &locks), QG_ERROR_ENVIRONMENT);
    ck_assert_int_eq(qg_locks_take(out, 2, 3, &locks), QG_OK);
    ck_assert(!qg_locks_finish(locks)); // 1/3 runs
    qg_locks_release(locks);
    ck_assert_int_eq(access(parts_folder, F_OK), 0);
    close(release);
    waitpid(pid, NULL, 0);
    ck_assert_int_eq(qg_locks_take(out, 2, 3, &locks), QG_OK);
    ck_assert(qg_locks_finish(locks));
    pid = fork();
    if (pid == 0)
        _exit(qg_locks_take_alone(out, &second) != QG_ERROR_ENVIRONMENT);
    int status;
    waitpid(pid, &status, 0);
    ck_assert_int_eq(status, 0);
    qg_locks_release(locks); // no part: the folder goes
    ck_assert_int_eq(access(parts_folder, F_OK), -1);
    ck_assert_int_eq(qg_locks_take_alone(out, &locks), QG_OK);
    ck_assert_ptr_null(locks);
    leave();
}
END_TEST

START_TEST(a_folder_with_parts_stays) {
    enter();
    touch("1-of-1-000001.h5", "");
    qg_locks *locks;
    ck_assert_int_eq(qg_locks_take(out, 1, 1, &locks), QG_OK);
    qg_locks_release(locks);
    ck_assert(has_part("1-of-1-000001.h5"));
    ck_assert_int_eq(qg_locks_take(out, 1, 1, &locks), QG_OK);
    ck_assert(qg_locks_finish(locks));
    qg_locks_remove_folder(locks);
    ck_assert_int_eq(access(parts_folder, F_OK), -1);
    // A folder that another run has made since is not ours.
    ck_assert_int_eq(mkdir(parts_folder, 0777), 0);
    touch("merge.lock", "");
    qg_locks_release(locks);
    ck_assert(has_part("merge.lock"));
    leave();
}
END_TEST

START_TEST(a_killed_holder_holds_nothing) {
    enter();
    int release;
    pid_t pid = hold_lock(1, 1, &release);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    qg_locks *locks;
    ck_assert_int_eq(qg_locks_take(out, 1, 1, &locks), QG_OK);
    qg_locks_release(locks);
    close(release);
    leave();
}
END_TEST

// Whoever waits for a merge finds the folder gone, and makes a new one.
START_TEST(a_run_that_waits_for_a_merge_starts_afresh) {
    enter();
    qg_locks *locks;
    ck_assert_int_eq(qg_locks_take(out, 1, 1, &locks), QG_OK);
    ck_assert(qg_locks_finish(locks));
    int told[2];
    ck_assert_int_eq(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        qg_locks *later;
        char byte = 'w';
        if (write(told[1], &byte, 1) != 1)
            _exit(1);
        qg_status taken = qg_locks_take(out, 1, 1, &later);
        _exit(taken != QG_OK || !has_part("1-of-1.lock"));
    }
    char byte;
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    usleep(50000); // it waits by now, most likely
    qg_locks_remove_folder(locks);
    qg_locks_release(locks);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    leave();
}
END_TEST

// Shards that finish at the same moment: exactly one of them, the last, is alone.
START_TEST(one_of_many_is_the_last) {
    enter();
    enum { SHARDS = 8, ROUNDS = 40 };
    for (int round = 0; round < ROUNDS; round++) {
        int start[2], told[2];
        ck_assert_int_eq(pipe(start), 0);
        ck_assert_int_eq(pipe(told), 0);
        for (int shard = 1; shard <= SHARDS; shard++) {
            if (fork() != 0)
                continue;
            close(start[1]);
            qg_locks *locks;
            char byte = 'r';
            if (qg_locks_take(out, shard, SHARDS, &locks) != QG_OK ||
                write(told[1], &byte, 1) != 1 || read(start[0], &byte, 1) != 0)
                _exit(1);
            byte = qg_locks_finish(locks) ? 'l' : 'f';
            if (byte == 'l')
                qg_locks_remove_folder(locks);
            qg_locks_release(locks);
            _exit(write(told[1], &byte, 1) != 1);
        }
        int last = 0, status;
        char byte;
        for (int i = 0; i < SHARDS; i++)
            ck_assert_int_eq(read(told[0], &byte, 1), 1); // all run
        close(start[0]);
        close(start[1]);
        for (int i = 0; i < SHARDS; i++) {
            ck_assert_int_eq(read(told[0], &byte, 1), 1);
            last += byte == 'l';
        }
        for (int i = 0; i < SHARDS; i++)
            ck_assert(wait(&status) > 0 && status == 0);
        ck_assert_int_eq(last, 1);
        ck_assert_int_eq(access(parts_folder, F_OK), -1);
        close(told[0]);
        close(told[1]);
    }
    leave();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {written_cases_are_found_again,
                                  publishing_makes_one_whole_file,
                                  what_a_repetition_may_change_is_tried_again,
                                  another_plan_or_build_is_refused,
                                  reuse_places_cases_by_their_id,
                                  foreign_and_damaged_files_are_refused,
                                  temporary_files_of_the_dead_are_removed,
                                  overwriting_a_shard_spares_its_neighbours,
                                  parts_of_others_are_found_when_collecting,
                                  a_failed_write_keeps_the_rows,
                                  one_run_per_shard,
                                  a_folder_with_parts_stays,
                                  a_killed_holder_holds_nothing,
                                  a_run_that_waits_for_a_merge_starts_afresh,
                                  one_of_many_is_the_last};
    return RUN_SUITE("parts", tests);
}
