// What the end of a run says about failures, unfinished runs and large numbers of reasons.
#include <qg_plan_build.h>
#include <qg_table.h>
#include <run_suite.h>
#include <summary.h>

#include <stdlib.h>
#include <string.h>

enum { CASES = 24 };

// e4m3 per_row at m = 1 .. CASES.
static qg_plan *make_plan(void) {
    qg_plan_request *request;
    qg_plan *plan;
    char m[24];
    snprintf(m, sizeof m, "1:%d:1", CASES);
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    qg_plan_request_set(request, "formats", "e4m3");
    qg_plan_request_set(request, "layouts", "per_row");
    qg_plan_request_set(request, "data", "normal");
    qg_plan_request_set(request, "k", "8");
    qg_plan_request_set(request, "m", m);
    ck_assert_int_eq(qg_plan_build(request, &plan), QG_OK);
    qg_plan_request_free(request);
    ck_assert_int_eq(qg_plan_count(plan), CASES);
    return plan;
}

static void add_row(qg_table *table, const qg_plan *plan, int64_t order, qg_case_status status,
                    const char *reason) {
    int64_t row;
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    const qg_case *c = qg_plan_case(plan, order);
    qg_table_set_order(table, row, order);
    qg_table_set_text(table, row, QG_COLUMN_FORMAT, c->format);
    qg_table_set_text(table, row, QG_COLUMN_LAYOUT, c->layout);
    qg_table_set_text(table, row, QG_COLUMN_SCALE_RULE, c->scale_rule);
    qg_table_set_text(table, row, QG_COLUMN_STATUS, qg_case_status_name(status));
    qg_table_set_text(table, row, QG_COLUMN_REASON, reason);
    if (status == QG_CASE_RAN) {
        qg_table_set_i64(table, row, QG_COLUMN_COUNT_N, 1000);
        qg_table_set_i64(table, row, QG_COLUMN_COUNT_SATURATED, 10);
        qg_table_set_i64(table, row, QG_COLUMN_COUNT_UNDERFLOWED, 0);
        qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, 30 + (double)order);
        qg_table_set_f64(table, row, QG_COLUMN_METRIC_REL_FROBENIUS, 0.0251);
    }
}

static char *text_of(const qg_plan *plan, const qg_sweep_outcome *outcome) {
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    qg_summary summary = {plan, outcome, "bin/run_sweep", "my results.h5", 80};
    qg_summary_print(&summary, stream);
    fclose(stream);
    return text;
}

static int count_of(const char *text, const char *part) {
    int count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

#define HAS(text, part) ck_assert_msg(strstr(text, part) != NULL, "'%s' in:\n%s", part, text)

START_TEST(failures) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.merged = true, .cases = CASES, .measured = CASES};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    for (int64_t i = 0; i < 3; i++)
        add_row(outcome.table, plan, i, QG_CASE_RAN, "");
    for (int64_t i = 3; i < CASES; i++)
        add_row(outcome.table, plan, i, i % 2 ? QG_CASE_CRASHED : QG_CASE_FAILED, "signal 11");
    outcome.status[QG_CASE_FAILED] = 10;
    char *text = text_of(plan, &outcome);
    HAS(text, "e4m3    per_row  amax      3    31.00     2.51     1.00          0\n");
    HAS(text, "24 cases: 3 RAN, 10 FAILED, 11 CRASHED\n");
    HAS(text, "CRASHED: signal 11\n"
              "    bin/run_sweep --ops error --formats e4m3 --layouts per_row --rules amax "
              "--rounding rne --inputs fp32 --backends emulator --data normal --m 4 --k 8 "
              "--seeds 1 --out repro.h5 --overwrite\n");
    ck_assert_int_eq(count_of(text, "--overwrite"), 10);
    HAS(text, "11 more failures\n");
    HAS(text, "wrote my results.h5\n");
    HAS(text, "next: bin/run_sweep --show 'my results.h5' --where status=FAILED");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

START_TEST(reasons) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.merged = true, .cases = CASES, .measured = CASES};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    for (int64_t i = 0; i < CASES; i++) {
        char reason[32];
        snprintf(reason, sizeof reason, "reason %d", (int)(i < 12 ? 0 : i));
        add_row(outcome.table, plan, i, QG_CASE_SKIPPED, reason);
    }
    char *text = text_of(plan, &outcome);
    HAS(text, "nothing was measured\n");
    HAS(text, "24 cases: 24 SKIPPED\n  SKIPPED 12: reason 0\n");
    HAS(text, "SKIPPED: 3 more reasons\n");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

START_TEST(unfinished) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.cases = CASES, .measured = 3, .missing = CASES - 3};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    for (int64_t i = 0; i < 3; i++)
        add_row(outcome.table, plan, i, QG_CASE_RAN, "");
    char *text = text_of(plan, &outcome);
    HAS(text, "21 of 24 cases have no result yet\nnext: the same command again resumes\n");
    ck_assert_ptr_null(strstr(text, "wrote"));
    free(text);
    outcome.missing = 0;
    text = text_of(plan, &outcome);
    HAS(text, "next: run the other shards, or --merge\n");
    free(text);
    qg_table_free(outcome.table);
    outcome.table = NULL;
    text = text_of(plan, &outcome);
    ck_assert_str_eq(text, "");
    free(text);
    qg_plan_free(plan);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {failures, reasons, unfinished};
    return RUN_SUITE("summary", tests);
}
