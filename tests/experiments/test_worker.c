// The worker process: results in order whatever cases do to it: crash, exit, hang, flood the ring.
#include <qg_clock.h>
#include <qg_recipe_name.h>
#include <qg_worker.h>
#include <run_suite.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// What a fake case does is its seed.
enum { WORKS, ABORTS, EXITS, EXITS_WELL, HANGS, SLEEPS, LOOKS_AT_LIMITS };

static void run_fake(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    (void)workspace;
    result->output_digest = c->id;
    switch (c->seed) {
    case ABORTS: abort();
    case EXITS: _exit(3);
    case EXITS_WELL: _exit(0);
    case HANGS:
        for (;;)
            pause();
    case SLEEPS: usleep(20000); break;
    case LOOKS_AT_LIMITS: {
        struct rlimit core;
        getrlimit(RLIMIT_CORE, &core);
        result->output_digest = core.rlim_cur;
        break;
    }
    default: break;
    }
}

static int64_t fake_bytes(const qg_case *c) {
    qg_shape shape;
    return qg_shape_of(c->recipe, c->m, c->k, &shape) == QG_OK ? shape.codes_size : INT64_MAX;
}
static double fake_cost(const qg_case *c) { return (double)c->m; }

static const qg_op FAKE = {
    .name = "fake", .references = {""}, .bytes = fake_bytes, .cost = fake_cost, .run = run_fake};

enum { MOST = 5000 };
static qg_recipe recipe;
static qg_case cases[MOST];
static const qg_case *pointers[MOST];

static void make_cases(int count) {
    ck_assert_int_eq(qg_recipe_find("mxfp8", &recipe), QG_OK);
    for (int i = 0; i < count; i++) {
        cases[i] = (qg_case){.order = i,
                             .id = 1000 + (uint64_t)i,
                             .op = &FAKE,
                             .recipe = &recipe,
                             .backend = "emulator",
                             .m = 1,
                             .k = 32,
                             .seed = WORKS};
        pointers[i] = &cases[i];
    }
}

static qg_worker *start(int count, double timeout) {
    qg_worker *worker;
    qg_worker_options options = {
        .cases = pointers, .count = count, .threads = 1, .case_timeout = timeout};
    ck_assert_int_eq(qg_worker_create(&options, &worker), QG_OK);
    return worker;
}

// Takes the next result; waits.
static const qg_case_result *take(qg_worker *worker) {
    const qg_case_result *result;
    qg_worker_event event;
    while ((event = qg_worker_next(worker, 1, &result)) == QG_WORKER_WAITING)
        continue;
    return event == QG_WORKER_RESULT ? result : NULL;
}

// Runs all cases and checks that each has the status that its seed implies.
static void run_all(int count, double timeout) {
    qg_worker *worker = start(count, timeout);
    for (int i = 0; i < count; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->order, i);
        switch (cases[i].seed) {
        case ABORTS:
            ck_assert_int_eq(result->status, QG_CASE_CRASHED);
            ck_assert_str_eq(result->reason, "killed by SIGABRT");
            break;
        case EXITS:
            ck_assert_int_eq(result->status, QG_CASE_CRASHED);
            ck_assert_str_eq(result->reason, "the worker exited with status 3");
            break;
        case EXITS_WELL:
            ck_assert_int_eq(result->status, QG_CASE_CRASHED);
            ck_assert_str_eq(result->reason, "the worker exited with status 0");
            break;
        case HANGS:
            ck_assert_int_eq(result->status, QG_CASE_TIMEOUT);
            ck_assert_str_eq(result->reason, "longer than 1 s");
            ck_assert(result->seconds > 1 && result->seconds < 60);
            break;
        default:
            ck_assert_int_eq(result->status, QG_CASE_RAN);
            ck_assert_uint_eq(result->output_digest, cases[i].id);
        }
    }
    ck_assert_ptr_null(take(worker));
    ck_assert_ptr_null(take(worker)); // done stays done
    qg_worker_free(worker);
}

START_TEST(results_come_in_order) {
    make_cases(MOST);
    run_all(MOST, 0);
    run_all(1, 0);
    run_all(0, 0);
}
END_TEST

START_TEST(a_crash_costs_one_case) {
    make_cases(100);
    for (int i = 0; i < 100; i++)
        cases[i].seed = i % 7 == 0    ? ABORTS
                        : i % 11 == 5 ? EXITS
                        : i % 13 == 9 ? EXITS_WELL
                                      : WORKS;
    cases[99].seed = ABORTS; // first and last
    run_all(100, 0);
}
END_TEST

START_TEST(crashes_in_a_row) {
    make_cases(20);
    for (int i = 0; i < 20; i++)
        cases[i].seed = ABORTS;
    run_all(20, 0);
}
END_TEST

START_TEST(a_hanging_case_times_out) {
    make_cases(9);
    cases[0].seed = cases[4].seed = cases[5].seed = cases[8].seed = HANGS;
    run_all(9, 1);
}
END_TEST

// Nodes of one run of a model: the run would overstay for each of them.
START_TEST(a_run_that_timed_out_is_not_begun_for_its_other_nodes) {
    make_cases(6);
    for (int i = 0; i < 4; i++) { // two runs: 0 to 2, and 3, whose first node is not among them
        cases[i].seed = HANGS;
        cases[i].is_served = i > 0;
        cases[i].shard_key = i < 3 ? 7 : 8;
    }
    qg_worker *worker = start(6, 1);
    for (int i = 0; i < 6; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->order, i);
        ck_assert_int_eq(result->status, i < 4 ? QG_CASE_TIMEOUT : QG_CASE_RAN);
        bool waited = i == 0 || i == 3;
        ck_assert_int_eq(result->seconds > 1, waited);
        if (i < 4)
            ck_assert_str_eq(result->reason, waited
                                                 ? "longer than 1 s"
                                                 : "a node of the same run took longer than 1 s");
    }
    ck_assert_ptr_null(take(worker));
    qg_worker_free(worker);
}
END_TEST

START_TEST(a_slow_parent_loses_nothing) {
    make_cases(MOST);
    cases[700].seed = ABORTS;
    qg_worker *worker = start(MOST, 0);
    for (int i = 0; i < MOST; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->order, i);
        ck_assert_int_eq(result->status, i == 700 ? QG_CASE_CRASHED : QG_CASE_RAN);
        if (i % 600 == 0)
            usleep(30000); // the ring fills
    }
    ck_assert_ptr_null(take(worker));
    qg_worker_free(worker);
}
END_TEST

START_TEST(stopping_keeps_what_is_finished) {
    make_cases(20);
    cases[10].seed = HANGS;
    qg_worker *worker = start(20, 0);
    const qg_case_result *result = take(worker);
    ck_assert_ptr_nonnull(result);
    double seconds;
    const qg_case *under_way;
    while (!(under_way = qg_worker_under_way(worker, &seconds)) || under_way->order != 10)
        usleep(1000);
    pid_t pid = qg_worker_pid(worker);
    qg_worker_stop(worker);
    ck_assert_int_eq(kill(pid, 0), -1);
    for (int i = 1; i < 10; i++) {
        result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->order, i);
    }
    ck_assert_ptr_null(take(worker));
    qg_worker_free(worker);
}
END_TEST

START_TEST(signals_for_the_group_do_not_end_it) {
    make_cases(50);
    for (int i = 0; i < 50; i++)
        cases[i].seed = SLEEPS;
    qg_worker *worker = start(50, 0);
    const int sent[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    for (int i = 0; i < 50; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->status, QG_CASE_RAN);
        if (qg_worker_pid(worker) && i < 20)
            kill(qg_worker_pid(worker), sent[i % 4]);
    }
    qg_worker_free(worker);
}
END_TEST

static int pipe_ends[2];
static void close_write_end(void *context) {
    (void)context;
    close(pipe_ends[1]);
}

START_TEST(the_worker_gives_up_what_it_must_not_hold) {
    make_cases(1);
    cases[0].seed = HANGS;
    ck_assert_int_eq(pipe(pipe_ends), 0);
    qg_worker *worker;
    qg_worker_options options = {
        .cases = pointers, .count = 1, .threads = 1, .in_worker = close_write_end};
    ck_assert_int_eq(qg_worker_create(&options, &worker), QG_OK);
    const qg_case_result *result;
    double seconds;
    while (!qg_worker_under_way(worker, &seconds))
        ck_assert_int_eq(qg_worker_next(worker, 0.01, &result), QG_WORKER_WAITING);
    close(pipe_ends[1]);
    char byte;
    ck_assert_int_eq(read(pipe_ends[0], &byte, 1), 0); // no writer is left
    qg_worker_free(worker);
}
END_TEST

static void die(void *context) {
    (void)context;
    _exit(9);
}

START_TEST(a_worker_that_cannot_start_ends_the_cases) {
    make_cases(5);
    qg_worker *worker;
    qg_worker_options options = {.cases = pointers, .count = 5, .threads = 1, .in_worker = die};
    ck_assert_int_eq(qg_worker_create(&options, &worker), QG_OK);
    for (int i = 0; i < 5; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->status, QG_CASE_CRASHED);
    }
    ck_assert_ptr_null(take(worker));
    qg_worker_free(worker);
}
END_TEST

START_TEST(no_core_files) {
    make_cases(1);
    cases[0].seed = LOOKS_AT_LIMITS;
    qg_worker *worker = start(1, 0);
    const qg_case_result *result = take(worker);
    ck_assert_ptr_nonnull(result);
    ck_assert_uint_eq(result->output_digest, 0);
    qg_worker_free(worker);
}
END_TEST

START_TEST(a_case_beyond_the_memory_is_unavailable) {
    make_cases(3);
    cases[1].m = cases[1].k = (int64_t)1 << 21; // 4 Ti elements
    qg_worker *worker = start(3, 0);
    for (int i = 0; i < 3; i++) {
        const qg_case_result *result = take(worker);
        ck_assert_ptr_nonnull(result);
        ck_assert_int_eq(result->status, i == 1 ? QG_CASE_UNAVAILABLE : QG_CASE_RAN);
        ck_assert_int_eq(strncmp(result->reason, "needs ", 6) == 0, i == 1);
    }
    qg_worker_free(worker);
}
END_TEST

// Gone, or a zombie that nobody has fetched.
static bool is_gone(pid_t pid) {
    char path[64], line[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return true;
    if (!fgets(line, sizeof line, file))
        line[0] = 0;
    fclose(file);
    const char *end = strrchr(line, ')');
    return end && strlen(end) > 2 && end[2] == 'Z';
}

START_TEST(the_worker_ends_with_its_parent) {
    make_cases(1);
    cases[0].seed = HANGS;
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        qg_worker *worker = start(1, 0);
        const qg_case_result *result;
        while (qg_worker_pid(worker) == 0)
            qg_worker_next(worker, 0.01, &result);
        pid_t pid = qg_worker_pid(worker);
        if (write(ends[1], &pid, sizeof pid) != sizeof pid)
            _exit(1);
        for (;;)
            qg_worker_next(worker, 1, &result);
    }
    pid_t pid;
    ck_assert_int_eq(read(ends[0], &pid, sizeof pid), sizeof pid);
    ck_assert(!is_gone(pid));
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    double start_time = qg_clock();
    while (!is_gone(pid) && qg_clock() - start_time < 20)
        usleep(1000);
    ck_assert(is_gone(pid));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {results_come_in_order,
                                  a_crash_costs_one_case,
                                  crashes_in_a_row,
                                  a_hanging_case_times_out,
                                  a_run_that_timed_out_is_not_begun_for_its_other_nodes,
                                  a_slow_parent_loses_nothing,
                                  stopping_keeps_what_is_finished,
                                  signals_for_the_group_do_not_end_it,
                                  the_worker_gives_up_what_it_must_not_hold,
                                  a_worker_that_cannot_start_ends_the_cases,
                                  no_core_files,
                                  a_case_beyond_the_memory_is_unavailable,
                                  the_worker_ends_with_its_parent};
    return RUN_SUITE("worker", tests);
}
