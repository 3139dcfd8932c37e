// Operation `throughput`: what its samples say of themselves, which bytes count, which backends take
// part, and that nothing but /timing depends on time.
#include <plan_options.h>
#include <qg_result_row.h>
#include <qg_table.h>
#include <qg_workspace.h>
#include <run_suite.h>

#include <math.h>
#include <string.h>

static qg_workspace *workspace_of(int threads) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(threads, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    ck_assert_ptr_null(c->skip);
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

#define SIZES "data", "normal", "m", "40", "k", "1000"

static void check_timing(const qg_timing *t) {
    ck_assert(t->samples >= 5 && t->samples <= 32);
    ck_assert(0 < t->min_s && t->min_s <= t->median_s && t->median_s <= t->max_s);
    ck_assert(t->max_s < 10);
    ck_assert(t->mad_s >= 0 && t->mad_s <= t->max_s - t->min_s);
    ck_assert(t->memcpy_ratio > 0 && isfinite(t->memcpy_ratio)); // this may be a busy machine
}

// The output is that of operation `error`, which is compared with the emulator's.
START_TEST(times_and_digests) {
    qg_plan *plan =
        plan_of("", "ops", "throughput,error", "formats", "e4m3,mxfp8,nvfp4,te_delayed_e4m3",
                "backends", "cpu", "inputs", "fp32,bf16,fp16", SIZES, NULL);
    qg_workspace *workspace = workspace_of(2);
    qg_case_result errors[64];
    int count = 0, compared = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        qg_case_result result = run(c, workspace);
        ck_assert_msg(result.status == QG_CASE_RAN && !result.reason[0], "%s", result.reason);
        ck_assert_int_eq(strncmp(result.impl_used, "cpu ", 4), 0);
        if (strcmp(c->op->name, "error") == 0) { // before the others of its input
            ck_assert(!result.has_timing);
            count = i == 0 || qg_plan_case(plan, i - 1)->op == c->op ? count : 0;
            compared = 0;
            errors[count++] = result;
            continue;
        }
        ck_assert(result.has_timing && !result.has_counts && !result.compared[0].has_sums);
        check_timing(&result.timing);
        ck_assert_int_lt(compared, count);
        ck_assert_uint_eq(result.input_digest, errors[compared].input_digest);
        ck_assert_uint_eq(result.output_digest, errors[compared].output_digest);
        compared++;
    }
    ck_assert_int_eq(compared, count);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

static int64_t bytes_moved(const char *format, const char *layout, const char *input) {
    qg_plan *plan = plan_of("", "ops", "throughput", "formats", format, "layouts", layout,
                            "backends", "cpu", "inputs", input, SIZES, NULL);
    qg_workspace *workspace = workspace_of(1);
    int64_t bytes = run(qg_plan_case(plan, 0), workspace).timing.bytes;
    qg_workspace_free(workspace);
    qg_plan_free(plan);
    return bytes;
}

START_TEST(bytes_are_those_of_every_pass) {
    enum { N = 40 * 1000 };
    ck_assert_int_eq(bytes_moved("e4m3", "per_row", "fp32"), 4 * N + N + 4 * 40);
    ck_assert_int_eq(bytes_moved("e4m3", "per_tensor", "fp32"), 2 * 4 * N + N + 4);
    ck_assert_int_eq(bytes_moved("e4m3", "per_tensor", "bf16"), 2 * 2 * N + N + 4);
    ck_assert_int_eq(bytes_moved("te_delayed_e4m3", "default", "fp32"), 4 * N + N + 4);
    ck_assert_int_eq(bytes_moved("mxfp8", "default", "fp16"), 2 * N + N + 40 * 32);
    ck_assert_int_eq(bytes_moved("nvfp4", "default", "fp32"), 2 * 4 * N + N + 40 * 63);
}
END_TEST

static int64_t count_op(const qg_plan *plan, const char *op, const char *backend) {
    int64_t count = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        count += strcmp(c->op->name, op) == 0 && strcmp(c->backend, backend) == 0;
    }
    return count;
}

// Nobody waits for the emulator, unless it is all that there is.
START_TEST(the_emulator_is_timed_alone_only) {
    plan_standard_backends = NULL;
    qg_plan *plan = plan_of("", "formats", "mxfp8", "rules", "floor", SIZES, "n", "3", NULL);
    ck_assert_int_eq(count_op(plan, "error", "emulator"), 1);
    ck_assert_int_eq(count_op(plan, "error", "cpu"), 1);
    ck_assert_int_eq(count_op(plan, "throughput", "emulator"), 0);
    ck_assert_int_eq(count_op(plan, "throughput", "cpu"), 1);
    ck_assert_int_ge(count_op(plan, "gemm", "emulator"), 2);
    ck_assert_int_eq(count_op(plan, "gemm", "cpu"), 1);
    check_repro_lines(plan);
    qg_plan_free(plan);
    plan = plan_of("", "formats", "mxfp8", "rules", "floor", "backends", "emulator", SIZES, NULL);
    ck_assert_int_eq(count_op(plan, "throughput", "emulator"), 0);
    ck_assert_ptr_null(strstr(qg_plan_text(plan), "throughput"));
    qg_plan_free(plan);
    plan = plan_of("", "ops", "throughput", "formats", "mxfp8", "rules", "floor", "backends",
                   "emulator", SIZES, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    qg_workspace *workspace = workspace_of(1);
    qg_case_result result = run(qg_plan_case(plan, 0), workspace);
    ck_assert_msg(result.status == QG_CASE_RAN, "%s", result.reason);
    ck_assert_str_eq(result.impl_used, "emulator");
    check_timing(&result.timing);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
    plan_standard_backends = "emulator";
}
END_TEST

START_TEST(rows_have_the_times) {
    qg_plan *plan = plan_of("", "ops", "throughput", "formats", "mxfp8", "rules", "floor",
                            "backends", "cpu", SIZES, NULL);
    qg_case_result result;
    qg_table *table;
    qg_case_result_clear(&result, qg_plan_case(plan, 0));
    result.has_timing = true;
    result.timing = (qg_timing){.median_s = 0.5,
                                .min_s = 0.25,
                                .max_s = 1,
                                .mad_s = 0.125,
                                .memcpy_ratio = 0.75,
                                .samples = 7,
                                .bytes = 4000000000};
    ck_assert_int_eq(qg_table_create(&table), QG_OK);
    ck_assert_int_eq(qg_result_row_add(table, plan, qg_plan_case(plan, 0), &result, 0), QG_OK);
    ck_assert_int_eq(qg_table_rows(table), 1);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_MEDIAN_S) == 0.5);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_MIN_S) == 0.25);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_MAX_S) == 1);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_MAD_S) == 0.125);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_GB_PER_S) == 8);
    ck_assert(qg_table_f64(table, 0, QG_COLUMN_TIMING_MEMCPY_RATIO) == 0.75);
    ck_assert(isnan(qg_table_f64(table, 0, QG_COLUMN_TIMING_GFLOP_PER_S)));
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_TIMING_SAMPLES), 7);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_TIMING_BYTES), 4000000000);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_TIMING_FLOPS), -1);
    ck_assert_int_eq(qg_table_i64(table, 0, QG_COLUMN_COUNT_N), -1);
    qg_table_free(table);
    qg_plan_free(plan);
}
END_TEST

START_TEST(what_cannot_run_is_a_failure) {
    qg_plan *plan = plan_of("", "ops", "throughput", "formats", "mxfp8", "rules", "floor",
                            "backends", "cpu", SIZES, NULL);
    qg_workspace *workspace = workspace_of(1);
    qg_case c = *qg_plan_case(plan, 0);
    c.backend = "abacus";
    ck_assert_int_eq(run(&c, workspace).status, QG_CASE_FAILED);
    c = *qg_plan_case(plan, 0);
    c.m = c.k = (int64_t)1 << 40;
    qg_case_result result = run(&c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert(!result.has_timing && c.op->bytes(&c) == INT64_MAX);
    ck_assert_int_eq(run(qg_plan_case(plan, 0), workspace).status, QG_CASE_RAN);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {times_and_digests, bytes_are_those_of_every_pass,
                                  the_emulator_is_timed_alone_only, rows_have_the_times,
                                  what_cannot_run_is_a_failure};
    return RUN_SUITE("op_throughput", tests);
}
