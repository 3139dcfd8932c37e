// Published results that are read from result files: without rows the command that measures them,
// with rows as published `reproduced`, with doctored rows `differs`.
#include <published.h>
#include <qg_data_dir.h>
#include <qg_table.h>
#include <run_suite.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// -------------------------------------------------------------------------------------------- rows

static int64_t add_row(qg_table *table, const char *op, const char *format, const char *rule,
                       const char *data) {
    int64_t row;
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    qg_table_set_text(table, row, QG_COLUMN_OP, op);
    qg_table_set_text(table, row, QG_COLUMN_FORMAT, format);
    qg_table_set_text(table, row, QG_COLUMN_SCALE_RULE, rule);
    qg_table_set_text(table, row, QG_COLUMN_DATA, data);
    qg_table_set_text(table, row, QG_COLUMN_ROUNDING, "rne");
    qg_table_set_text(table, row, QG_COLUMN_INPUT_TYPE, "fp32");
    qg_table_set_text(table, row, QG_COLUMN_STATUS, "RAN");
    return row;
}

static void add_tensor(qg_table *table, const char *format, const char *tensor, double qsnr) {
    const char *rule = format[0] == 'm' ? "rceil" : "two_level";
    int64_t row = add_row(table, "error", format, rule, "tensors:some.h5");
    qg_table_set_text(table, row, QG_COLUMN_TENSOR, tensor);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, qsnr);
}

// Eight tensors around a median.
static void add_tensors(qg_table *table, const char *format, double median) {
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        add_tensor(table, format, name, median + 0.1 * (i - 3.5));
    }
}

static void add_narrow(qg_table *table, const char *layout, double sigma, double qsnr) {
    char data[48];
    snprintf(data, sizeof data, "normal:sigma=%g", sigma);
    int64_t row = add_row(table, "error", "e2m1", "amax_ue4m3", data);
    qg_table_set_text(table, row, QG_COLUMN_LAYOUT, layout);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, qsnr);
}

// Blocks of 8 are 0.1 dB worse than those of 16 up to 4/4.5 of `crossing`, better from 5/4.5 on.
static void add_inversion(qg_table *table, double crossing) {
    for (int i = 1; i <= 6; i++) {
        double sigma = crossing * i / 4.5;
        add_narrow(table, "group:16", sigma, 20);
        add_narrow(table, "group:8", sigma, i > 4 ? 20.1 : 19.9);
    }
}

static void add_product(qg_table *table, const char *unit, const char *data, double error) {
    int64_t row = add_row(table, "gemm", "e4m3", "amax", data);
    qg_table_set_text(table, row, QG_COLUMN_FORMAT_B, "e4m3");
    qg_table_set_text(table, row, QG_COLUMN_REFERENCE, "quantized");
    qg_table_set_text(table, row, QG_COLUMN_LAYOUT, "per_tensor");
    qg_table_set_text(table, row, QG_COLUMN_OUT_TYPE, "fp32");
    qg_table_set_text(table, row, QG_COLUMN_UNIT, unit);
    qg_table_set_i64(table, row, QG_COLUMN_K, 4096);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_MAX_REL, error);
    qg_table_set_f64(table, row, QG_COLUMN_METRIC_REL_FROBENIUS, error);
}

static void add_products(qg_table *table, double ratio) {
    static const char *const DATA[] = {"normal", "uniform:1:abs"};
    for (int i = 0; i < 2; i++) {
        add_product(table, "hopper_wgmma", DATA[i], 0.02);
        add_product(table, "hopper_wgmma+promote:128", DATA[i], 0.02 / ratio);
    }
}

// ----------------------------------------------------------------------------------------- results

// Those that need rows, of one table or of none.
static qg_published_result *results_of(qg_table *table, int *count) {
    const qg_table *tables[] = {table};
    qg_figure_input input = {tables, table ? 1 : 0};
    qg_published_result *results;
    ck_assert_msg(qg_published_results(&input, false, &results, count) == QG_OK, "%s", qg_detail());
    return results;
}

static int count_of(const qg_published_result *results, int count, const char *paper,
                    qg_published_verdict verdict) {
    int found = 0;
    for (int i = 0; i < count; i++)
        found +=
            strncmp(results[i].paper, paper, strlen(paper)) == 0 && results[i].verdict == verdict;
    return found;
}

static void check_verdicts(qg_table *table, const char *paper, int reproduced, int differs) {
    int count;
    qg_published_result *results = results_of(table, &count);
    ck_assert_int_eq(count_of(results, count, paper, QG_PUBLISHED_REPRODUCED), reproduced);
    ck_assert_int_eq(count_of(results, count, paper, QG_PUBLISHED_DIFFERS), differs);
    free(results);
    qg_table_free(table);
}

static qg_table *make_table(void) {
    qg_table *table;
    ck_assert_int_eq(qg_table_create(&table), QG_OK);
    return table;
}

START_TEST(without_rows_there_is_a_command) {
    int count;
    qg_published_result *results = results_of(NULL, &count);
    ck_assert_int_eq(count, 7);
    for (int i = 0; i < count; i++) {
        char plan[256], stem[64], path[4096], wanted[512];
        ck_assert_int_eq(results[i].verdict, QG_PUBLISHED_NO_DATA);
        ck_assert_str_eq(results[i].ours, "");
        ck_assert_int_eq(sscanf(results[i].note, "run_sweep --plan %255s", plan), 1);
        const char *name = strstr(plan, "experiments/plans/paper_");
        ck_assert_ptr_nonnull(name);
        ck_assert_int_eq(sscanf(name, "experiments/plans/%63[^.].plan", stem), 1);
        snprintf(wanted, sizeof wanted, "run_sweep --plan %s --out %s.h5", plan, stem);
        ck_assert_str_eq(results[i].note, wanted);
        ck_assert_int_eq(qg_data_file(name, path, sizeof path), QG_OK);
        ck_assert_msg(access(path, R_OK) == 0, "%s", path);
    }
    free(results);
    ck_assert_str_eq(qg_published_verdict_name(QG_PUBLISHED_NO_DATA), "no data");
}
END_TEST

START_TEST(plans_are_listed_once) {
    ck_assert_str_eq(qg_published_plan(0), "paper_int_fp.plan");
    ck_assert_str_eq(qg_published_plan(1), "paper_finer.plan");
    ck_assert_str_eq(qg_published_plan(2), "paper_deepseek.plan");
    ck_assert_ptr_null(qg_published_plan(3));
}
END_TEST

START_TEST(tensors_near_the_published_average) {
    qg_table *table = make_table();
    add_tensors(table, "mxfp8", 31.55);
    add_tensors(table, "mxint8", 40.2);
    add_tensors(table, "nvfp4", 20.7);
    add_tensors(table, "nvint4", 20.4);
    check_verdicts(table, "INT v.s. FP", 4, 0);
    table = make_table();
    add_tensors(table, "mxfp8", 31.0);
    add_tensors(table, "mxint8", 42);
    add_tensors(table, "nvfp4", 21.6);
    add_tensors(table, "nvint4", 19);
    check_verdicts(table, "INT v.s. FP", 0, 4);
}
END_TEST

START_TEST(a_median_is_not_a_mean) {
    qg_table *table = make_table();
    add_tensors(table, "mxfp8", 31.5);
    add_tensor(table, "mxfp8", "outlier", 300);
    check_verdicts(table, "INT v.s. FP", 1, 0);
}
END_TEST

START_TEST(the_crossing_is_found_in_rows) {
    int count;
    qg_table *table = make_table();
    add_inversion(table, 0.02);
    qg_published_result *results = results_of(table, &count);
    for (int i = 0; i < count; i++)
        if (results[i].verdict != QG_PUBLISHED_NO_DATA)
            ck_assert_str_eq(results[i].ours,
                             "0.0199"); // half way on a log axis: sqrt(4 * 5) / 4.5
    free(results);
    check_verdicts(table, "Is Finer Better?", 1, 0);
    table = make_table();
    add_inversion(table, 0.05);
    check_verdicts(table, "Is Finer Better?", 0, 1);
    table = make_table(); // one block size alone says nothing
    add_narrow(table, "group:8", 0.01, 20);
    check_verdicts(table, "Is Finer Better?", 0, 0);
}
END_TEST

START_TEST(promotion_must_pay) {
    qg_table *table = make_table();
    add_products(table, 30);
    check_verdicts(table, "DeepSeek-V3", 2, 0);
    table = make_table();
    add_products(table, 1); // promotion forgotten
    check_verdicts(table, "DeepSeek-V3", 0, 2);
    table = make_table();
    add_product(table, "hopper_wgmma", "normal", 0.02);
    check_verdicts(table, "DeepSeek-V3", 0, 0);
    add_product(table = make_table(), "hopper_wgmma+promote:4096", "normal", 0.02);
    add_product(table, "hopper_wgmma+promote:128", "normal", 0.001);
    check_verdicts(table, "DeepSeek-V3", 1, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {without_rows_there_is_a_command,    plans_are_listed_once,
                                  tensors_near_the_published_average, a_median_is_not_a_mean,
                                  the_crossing_is_found_in_rows,      promotion_must_pay};
    return RUN_SUITE("published_rows", tests);
}
