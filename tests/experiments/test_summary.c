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
    qg_plan_request_set(request, "ops", "error");
    qg_plan_request_set(request, "backends", "emulator");
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

static char *text_of_part(const qg_plan *plan, const qg_sweep_outcome *outcome,
                          const qg_shard *shard, bool merge_only) {
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    qg_summary summary = {.plan = plan,
                          .outcome = outcome,
                          .program = "bin/run_sweep",
                          .out = "my results.h5",
                          .width = 80,
                          .shard = shard,
                          .merge_only = merge_only};
    qg_summary_print(&summary, stream);
    fclose(stream);
    return text;
}

static char *text_of(const qg_plan *plan, const qg_sweep_outcome *outcome) {
    qg_shard whole = {1, 1, NULL};
    return text_of_part(plan, outcome, &whole, false);
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
    HAS(text, "next: bin/run_sweep --show 'my results.h5' --where status=FAILED --where "
              "status=CRASHED\n");
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
    HAS(text, "next: the same command with --merge\n");
    free(text);
    qg_table_free(outcome.table);
    outcome.table = NULL;
    text = text_of(plan, &outcome);
    ck_assert_str_eq(text, "");
    free(text);
    qg_plan_free(plan);
}
END_TEST

START_TEST(mistrusted) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.merged = true, .cases = 4, .measured = 4};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    add_row(outcome.table, plan, 0, QG_CASE_RAN, "");
    for (int64_t i = 1; i < 4; i++)
        add_row(outcome.table, plan, i, QG_CASE_MISTRUSTED, i < 3 ? "all zeros" : "few samples");
    char *text = text_of(plan, &outcome);
    HAS(text, "4 cases: 1 RAN, 3 MISTRUSTED\n  MISTRUSTED 2: all zeros\n"
              "  MISTRUSTED 1: few samples\n");
    HAS(text, "--show 'my results.h5' --where 'status=MISTRUSTED'\n");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

START_TEST(shards) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.cases = 3, .measured = 3};
    qg_shard shard = {2, 8, NULL}, launched = {2, 8, "PMI_RANK"};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    for (int64_t i = 0; i < 3; i++)
        add_row(outcome.table, plan, i, QG_CASE_RAN, "");
    char *text = text_of_part(plan, &outcome, &shard, false);
    ck_assert_str_eq(text, "shard 2/8: 3 cases: 3 RAN; kept in my results.h5.parts\n"
                           "next: the other shards; the last one merges, and so does --merge\n");
    free(text);
    text = text_of_part(plan, &outcome, &launched, false);
    ck_assert_str_eq(text, "shard 2/8: 3 cases: 3 RAN; kept in my results.h5.parts\n");
    free(text);
    outcome.missing = 1;
    outcome.cases = 4;
    text = text_of_part(plan, &outcome, &launched, false);
    ck_assert_str_eq(text, "shard 2/8: 3 cases: 3 RAN; 1 of 4 have no result yet\n"
                           "next: the same command again resumes\n");
    free(text);
    text = text_of_part(plan, &outcome, &launched, true); // a merge that lacks cases
    ck_assert_str_eq(text, "");
    free(text);
    outcome.missing = 0;
    outcome.merged = true; // the last one
    text = text_of_part(plan, &outcome, &launched, false);
    HAS(text, "QSNR dB");
    HAS(text, "wrote my results.h5\n");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

// A part of a sweep lists the variants in the plan's order, whichever of their cases it has.
START_TEST(order_of_a_part) {
    qg_plan_request *request;
    qg_plan *plan;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    qg_plan_request_set(request, "formats", "e4m3");
    qg_plan_request_set(request, "ops", "error");
    qg_plan_request_set(request, "layouts", "per_tensor,per_row");
    qg_plan_request_set(request, "data", "normal");
    qg_plan_request_set(request, "k", "8");
    qg_plan_request_set(request, "m", "1,2");
    ck_assert_int_eq(qg_plan_build(request, &plan), QG_OK);
    qg_plan_request_free(request);
    qg_sweep_outcome outcome = {.cases = 4, .missing = 2};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    for (int64_t order = 1; order < 3; order++) { // per_row m = 1, per_tensor m = 2
        add_row(outcome.table, plan, order, QG_CASE_RAN, "");
        const qg_case *c = qg_plan_case(plan, order);
        qg_table_set_text(outcome.table, order - 1, QG_COLUMN_ROUNDING, c->rounding);
        qg_table_set_text(outcome.table, order - 1, QG_COLUMN_BACKEND, c->backend);
    }
    char *text = text_of(plan, &outcome);
    HAS(text, "per_row");
    ck_assert_msg(strstr(text, "per_tensor") < strstr(text, "per_row"), "%s", text);
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

// Two rows a case, as `gemm` writes them.
static void add_product(qg_table *table, int64_t order, const char *unit, qg_case_status status,
                        double error, double accumulation) {
    for (int i = 0; i < 2; i++) {
        int64_t row;
        ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
        qg_table_set_order(table, row, order);
        qg_table_set_text(table, row, QG_COLUMN_OP, "gemm");
        qg_table_set_text(table, row, QG_COLUMN_FORMAT, "e4m3");
        qg_table_set_text(table, row, QG_COLUMN_FORMAT_B, "e4m3");
        qg_table_set_text(table, row, QG_COLUMN_LAYOUT, "per_row");
        qg_table_set_text(table, row, QG_COLUMN_UNIT, unit);
        qg_table_set_text(table, row, QG_COLUMN_REFERENCE, i ? "source" : "quantized");
        qg_table_set_text(table, row, QG_COLUMN_STATUS, qg_case_status_name(status));
        qg_table_set_text(table, row, QG_COLUMN_REASON, status == QG_CASE_RAN ? "" : "too odd");
        if (status != QG_CASE_RAN)
            continue;
        qg_table_set_i64(table, row, QG_COLUMN_COUNT_N, 64);
        qg_table_set_f64(table, row, QG_COLUMN_METRIC_REL_FROBENIUS, i ? error : accumulation);
        qg_table_set_f64(table, row, QG_COLUMN_METRIC_BIAS_REL, i ? 7 : -accumulation / 10);
        qg_table_set_f64(table, row, QG_COLUMN_METRIC_MAX_ULP, i ? 1e6 : 12.25);
    }
}

START_TEST(products) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.merged = true, .cases = 7, .measured = 7};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    add_row(outcome.table, plan, 0, QG_CASE_RAN, "");
    add_product(outcome.table, 1, "hopper_wgmma", QG_CASE_RAN, 0.03, 1e-3);
    add_product(outcome.table, 2, "hopper_wgmma", QG_CASE_RAN, 0.05, 3e-3);
    add_product(outcome.table, 3, "exact", QG_CASE_RAN, 0.04, 0);
    add_product(outcome.table, 4, "exact", QG_CASE_SKIPPED, 0, 0);
    add_product(outcome.table, 5, "exact", QG_CASE_FAILED, 0, 0);
    add_product(outcome.table, 6, "exact", QG_CASE_MISTRUSTED, 0, 0);
    char *text = text_of(plan, &outcome);
    HAS(text, "e4m3    per_row  amax      1    30.00     2.51     1.00          0\n");
    HAS(text, "\n\nformat  unit          cases  error %    accum      bias  max ulp\n"
              "e4m3    hopper_wgmma      2     4.00  2.0e-03  -2.0e-04     12.2\n"
              "e4m3    exact             1     4.00        0         0     12.2\n"
              "products: medians");
    HAS(text, "7 cases: 4 RAN, 1 FAILED, 1 SKIPPED, 1 MISTRUSTED\n"
              "  SKIPPED 1: too odd\n  MISTRUSTED 1: too odd\n");
    ck_assert_int_eq(count_of(text, "FAILED: too odd"), 1);
    free(text);
    qg_table_free(outcome.table);
    outcome.table = NULL; // products alone, one of two formats, too wide for 80 columns
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    add_product(outcome.table, 1, "rtx_blackwell_mma+promote:128", QG_CASE_RAN, 0.03, 1e-3);
    add_product(outcome.table, 2, "hopper_wgmma", QG_CASE_RAN, 0.03, 1e-3);
    for (int64_t row = 0; row < 2; row++) {
        qg_table_set_text(outcome.table, row, QG_COLUMN_FORMAT_B, "e5m2");
        qg_table_set_text(outcome.table, row, QG_COLUMN_LAYOUT, "group:128");
        qg_table_set_text(outcome.table, row, QG_COLUMN_OUT_TYPE, "bf16");
    }
    text = text_of(plan, &outcome);
    ck_assert_msg(strncmp(text, "format  by  ", 12) == 0, "%s", text);
    HAS(text, "rtx_blackwell_mma+promote:128  bf16     3.00  1.0e-03\n");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

static void add_node(qg_table *table, const char *data, const char *unit, const char *tensor,
                     double qsnr) {
    int64_t row;
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    qg_table_set_order(table, row, row);
    qg_table_set_text(table, row, QG_COLUMN_OP, "model");
    qg_table_set_text(table, row, QG_COLUMN_FORMAT, "nvfp4");
    qg_table_set_text(table, row, QG_COLUMN_FORMAT_B, "nvfp4");
    qg_table_set_text(table, row, QG_COLUMN_UNIT, unit);
    qg_table_set_text(table, row, QG_COLUMN_DATA, data);
    qg_table_set_text(table, row, QG_COLUMN_TENSOR, tensor);
    qg_table_set_text(table, row, QG_COLUMN_REFERENCE, "fp32");
    qg_table_set_text(table, row, QG_COLUMN_STATUS, qg_case_status_name(QG_CASE_RAN));
    qg_table_set_i64(table, row, QG_COLUMN_COUNT_N, 64);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, qsnr);
}

// Of one model there is no column; the worst nodes are below the table, the most frequent first.
START_TEST(a_row_for_each_model) {
    qg_plan *plan = make_plan();
    qg_sweep_outcome outcome = {.merged = true, .cases = 6, .measured = 6};
    ck_assert_int_eq(qg_table_create(&outcome.table), QG_OK);
    add_node(outcome.table, "model:a.safetensors", "exact", "layer4/attention/of/a/name", 5);
    add_node(outcome.table, "model:a.safetensors", "exact", "embedding", 11);
    char *text = text_of(plan, &outcome);
    ck_assert_ptr_null(strstr(text, "model"));
    HAS(text, "   5.00\nworst nodes: layer4/attention/of/a/name in 1 row\ncosine, QSNR: of");
    free(text);
    add_node(outcome.table, "model:b.safetensors", "exact", "layer4/scores/of/a/long/name", 4);
    add_node(outcome.table, "model:b.safetensors", "exact", "embedding", 12);
    add_node(outcome.table, "model:b.safetensors", "fp64", "layer4/scores/of/a/long/name", 3);
    add_node(outcome.table, "model:b.safetensors", "fp64", "embedding", 13);
    text = text_of(plan, &outcome);
    HAS(text, "format  unit   model                ");
    HAS(text, "nvfp4   exact  model:a.safetensors       -    11.00    -   5.00\n");
    HAS(text, "nvfp4   exact  model:b.safetensors       -    12.00    -   4.00\n");
    HAS(text, "nvfp4   fp64   model:b.safetensors       -    13.00    -   3.00\n");
    HAS(text, "\nworst nodes: layer4/scores/of/a/long/name in 2 rows,\n"
              "    layer4/attention/of/a/name in 1 row\n");
    free(text);
    qg_table_free(outcome.table);
    qg_plan_free(plan);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {failures,   reasons,         unfinished, shards,
                                  mistrusted, order_of_a_part, products,   a_row_for_each_model};
    return RUN_SUITE("summary", tests);
}
