// Status texts, the detail line and its limits, and the log callback.
#include <qg_log.h>
#include <qg_status.h>
#include <run_suite.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

START_TEST(every_status_has_its_own_text) {
    for (int a = QG_OK; a <= QG_ERROR_ENVIRONMENT; a++) {
        ck_assert_str_ne(qg_status_text((qg_status)a), "");
        ck_assert_str_ne(qg_status_text((qg_status)a), "unknown status");
        for (int b = QG_OK; b < a; b++)
            ck_assert_str_ne(qg_status_text((qg_status)a), qg_status_text((qg_status)b));
    }
    ck_assert_str_eq(qg_status_text((qg_status)99), "unknown status");
}
END_TEST

START_TEST(fail_records_and_returns) {
    ck_assert_str_eq(qg_detail(), "");
    ck_assert_int_eq(qg_fail(QG_ERROR_DATA, "row %d of %s", 3, "a.tsv"), QG_ERROR_DATA);
    ck_assert_str_eq(qg_detail(), "row 3 of a.tsv");
    ck_assert_int_eq(qg_fail(QG_ERROR_IO, "disk full"), QG_ERROR_IO);
    ck_assert_str_eq(qg_detail(), "disk full");
}
END_TEST

START_TEST(long_details_are_cut) {
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    qg_fail(QG_ERROR_ARGUMENT, "%s", text);
    ck_assert_uint_eq(strlen(qg_detail()), 511);
    ck_assert_int_eq(strncmp(qg_detail(), text, 511), 0);
}
END_TEST

static void *fail_elsewhere(void *seen) {
    *(int *)seen = qg_detail()[0] == 0;
    qg_fail(QG_ERROR_IO, "another thread's");
    return NULL;
}

START_TEST(details_belong_to_their_thread) {
    qg_fail(QG_ERROR_DATA, "mine");
    pthread_t thread;
    int was_empty = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, &was_empty), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(was_empty, 1);
    ck_assert_str_eq(qg_detail(), "mine");
}
END_TEST

static void keep_line(void *context, const char *line) { snprintf(context, 1000, "%s", line); }

START_TEST(log_is_silent_until_asked) {
    char line[1000] = "";
    qg_log_write("nobody %s", "listens");
    qg_log_set(keep_line, line);
    qg_log_write("%d of %d", 1, 2);
    ck_assert_str_eq(line, "1 of 2");
    qg_log_set(NULL, NULL);
    qg_log_write("silent again");
    ck_assert_str_eq(line, "1 of 2");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {every_status_has_its_own_text, fail_records_and_returns,
                                  long_details_are_cut, details_belong_to_their_thread,
                                  log_is_silent_until_asked};
    return RUN_SUITE("status", tests);
}
