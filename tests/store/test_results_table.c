// The table in memory: columns, texts, operands, runs.
#include "results_sample.h"
#include <run_suite.h>

START_TEST(columns_are_found_by_name) {
    ck_assert_int_eq(qg_column_find("m"), QG_COLUMN_M);
    ck_assert_int_eq(qg_column_find("qsnr_db"), QG_COLUMN_METRIC_QSNR_DB);
    ck_assert_int_eq(qg_column_find("bias"), QG_COLUMN_HAS_BIAS);
    ck_assert_int_eq(qg_column_find("metrics/bias"), QG_COLUMN_METRIC_BIAS);
    ck_assert_int_eq(qg_column_find("n"), QG_COLUMN_N);
    ck_assert_int_eq(qg_column_find("counts/n"), QG_COLUMN_COUNT_N);
    ck_assert_int_eq(qg_column_find("/counts/n"), QG_COLUMN_COUNT_N);
    ck_assert_int_eq(qg_column_find("underflowed"), QG_COLUMN_COUNT_UNDERFLOWED);
    ck_assert_int_eq(qg_column_find("sums/underflowed"), QG_COLUMN_SUM_UNDERFLOWED);
    ck_assert_int_eq(qg_column_find("nothing"), -1);
    ck_assert_int_eq(qg_column_find("cases/qsnr_db"), -1);
    ck_assert_int_eq(qg_column_find("case/m"), -1);
    ck_assert_int_eq(qg_column_find(""), -1);
}
END_TEST

START_TEST(every_column_is_found_by_its_path) {
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        const qg_column_info *info = qg_column_describe((qg_column)i);
        char path[128];
        snprintf(path, sizeof path, "%s/%s", info->group, info->name);
        ck_assert_int_eq(qg_column_find(path), i);
        ck_assert_ptr_nonnull(info->units);
        ck_assert_uint_gt(strlen(info->long_name), 0);
        ck_assert_uint_gt(strlen(info->definition), 0);
    }
}
END_TEST

START_TEST(a_fresh_row_is_missing_everywhere) {
    qg_table *table = new_table();
    int64_t row;
    for (int i = 0; i < 200; i++) { // across growths, with columns set and not
        ok(qg_table_append(table, &row));
        ck_assert_int_eq(row, i);
        if (i % 50 == 0)
            set_sample(table, row, i);
    }
    for (row = 0; row < 200; row++) {
        ck_assert_int_eq(qg_table_order(table, row), -1);
        if (row % 50 == 0)
            continue;
        ck_assert(isnan(qg_table_f64(table, row, QG_COLUMN_METRIC_MSE)));
        ck_assert_int_eq(qg_table_i64(table, row, QG_COLUMN_M), 0);
        ck_assert_int_eq(qg_table_i64(table, row, QG_COLUMN_RUN), -1);
        ck_assert_int_eq(qg_table_i64(table, row, QG_COLUMN_COUNT_NAN), -1);
        ck_assert_uint_eq(qg_table_u64(table, row, QG_COLUMN_CASE_ID), 0);
        ck_assert_uint_eq(qg_table_u8(table, row, QG_COLUMN_HAS_BIAS), 0);
        ck_assert_str_eq(qg_table_text(table, row, QG_COLUMN_FORMAT), "");
    }
    qg_table_free(table);
    qg_table_free(NULL);
}
END_TEST

START_TEST(texts_are_interned_and_stay) {
    qg_table *table = new_table();
    int64_t row;
    ok(qg_table_append(table, &row));
    ok(qg_table_set_text(table, 0, QG_COLUMN_FORMAT, "e4m3"));
    const char *first = qg_table_text(table, 0, QG_COLUMN_FORMAT);
    char text[128];
    for (int i = 1; i < 5000; i++) {
        ok(qg_table_append(table, &row));
        snprintf(text, sizeof text, "text %d", i);
        ok(qg_table_set_text(table, row, QG_COLUMN_REPRO, text));
        ok(qg_table_set_text(table, row, QG_COLUMN_FORMAT, i % 2 ? "e4m3" : "text 7"));
    }
    ck_assert_str_eq(first, "e4m3");
    ck_assert_ptr_eq(qg_table_text(table, 4999, QG_COLUMN_FORMAT), first);
    for (int i = 1; i < 5000; i++) {
        snprintf(text, sizeof text, "text %d", i);
        ck_assert_str_eq(qg_table_text(table, i, QG_COLUMN_REPRO), text);
    }
    ck_assert_ptr_eq(qg_table_text(table, 7, QG_COLUMN_REPRO),
                     qg_table_text(table, 8, QG_COLUMN_FORMAT));
    for (int i = 1; i < 5000; i += 7) { // every text is found again
        snprintf(text, sizeof text, "text %d", i);
        ok(qg_table_set_text(table, 0, QG_COLUMN_FORMAT, text));
        ck_assert_ptr_eq(qg_table_text(table, 0, QG_COLUMN_FORMAT),
                         qg_table_text(table, i, QG_COLUMN_REPRO));
    }
    qg_table_free(table);
}
END_TEST

START_TEST(bytes_that_are_no_utf8_become_question_marks) {
    static const struct {
        const char *given, *kept;
    } cases[] = {
        {"gr\xc3\xb6\xc3\x9f", "größ"},     {"a\xff" "b", "a?b"},
        {"\xc3", "?"},                      {"\xc0\x80", "??"},
        {"\xe0\x80\x80x", "???x"},          {"\xed\xa0\x80", "???"},
        {"\xf4\x90\x80\x80", "????"},       {"\xf0\x8f\xbf\xbf", "????"},
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, {"\xe2\x82", "??"},
        {"\x80 \xe2\x82\xac", "? €"},
    };
    qg_table *table = new_table();
    int64_t row;
    ok(qg_table_append(table, &row));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ok(qg_table_set_text(table, row, QG_COLUMN_TENSOR, cases[i].given));
        ck_assert_str_eq(qg_table_text(table, row, QG_COLUMN_TENSOR), cases[i].kept);
    }
    qg_table_free(table);
}
END_TEST

START_TEST(sums_fill_their_columns) {
    qg_table *table = new_table();
    int64_t row;
    ok(qg_table_append(table, &row));
    ok(qg_table_append(table, &row));
    qg_sums sums = sample_sums(5);
    const int64_t *rel, *ulp;
    ck_assert(!qg_table_histograms(table, 1, &rel, &ulp));
    ok(qg_table_set_sums(table, 1, &sums));
    ck_assert(!qg_table_histograms(table, 0, &rel, &ulp));
    ck_assert(qg_table_histograms(table, 1, &rel, &ulp));
    ck_assert_mem_eq(rel, sums.hist_rel, sizeof sums.hist_rel);
    ck_assert_mem_eq(ulp, sums.hist_ulp, sizeof sums.hist_ulp);
    ck_assert_int_eq(qg_table_i64(table, 1, QG_COLUMN_COUNT_N), sums.n);
    ck_assert_int_eq(qg_table_i64(table, 1, QG_COLUMN_COUNT_EXACT), sums.exact);
    ck_assert_int_eq(qg_table_i64(table, 1, QG_COLUMN_COUNT_UNDERFLOWED), sums.underflowed);
    ck_assert_int_eq(qg_table_i64(table, 1, QG_COLUMN_SUM_MAX_ABS_E_INDEX), sums.max_abs_e_index);
    ck_assert(qg_table_f64(table, 1, QG_COLUMN_SUM_EE) == 0.25 * 0.25 + 0.5 * 0.5);
    ck_assert(qg_table_f64(table, 1, QG_COLUMN_SUM_XQ) == 1.0 + 2.5 * 2.25 + 3.0 * 3.5);
    for (int i = 0; i < QG_METRIC_COUNT; i++) {
        qg_column column = (qg_column)qg_column_find("metrics/qsnr_db") + (qg_column)i;
        ck_assert_str_eq(qg_column_describe(column)->name,
                         qg_metric_describe((qg_metric)i)->name);
        ck_assert(same_double(qg_table_f64(table, 1, column),
                              qg_metric_value(&sums, (qg_metric)i)));
    }
    ck_assert(isnan(qg_table_f64(table, 0, QG_COLUMN_SUM_EE)));
    qg_table_free(table);
}
END_TEST

START_TEST(runs_keep_their_keys) {
    qg_table *table = new_table();
    ck_assert_int_eq(qg_table_runs(table), 0);
    ck_assert_int_eq(add_run(table, "1", "e"), 0);
    ck_assert_int_eq(add_run(table, "2", "e"), 1);
    ok(qg_table_set_run(table, 0, "end", "later"));
    ck_assert_str_eq(qg_table_run_value(table, 0, "end"), "later");
    ck_assert_str_eq(qg_table_run_value(table, 1, "version"), "2");
    ck_assert_str_eq(qg_table_run_value(table, 1, "cpu"), "");
    ck_assert_ptr_null(qg_table_run_value(table, 1, "nothing"));
    ck_assert_int_eq(qg_table_set_run(table, 0, "a/b", "x"), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_table_set_run(table, 0, "", "x"), QG_ERROR_ARGUMENT);
    qg_table_free(table);
}
END_TEST

START_TEST(operand_names_are_checked) {
    qg_table *table = new_table();
    ck_assert_int_eq(qg_table_add_operand(table, 1, "a/b", "x", 1), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_table_add_operand(table, 1, "", "x", 1), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_table_add_operand(table, 1, ".", "x", 1), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_table_add_operand(table, 1, "a", "x", -1), QG_ERROR_ARGUMENT);
    uint64_t none = digest_of(table);
    ok(qg_table_add_operand(table, 1, "a", "x", 1));
    uint64_t one = digest_of(table);
    ok(qg_table_add_operand(table, 1, "a", "y", 1)); // replaces
    ck_assert_uint_ne(digest_of(table), one);
    ok(qg_table_add_operand(table, 1, "a", "x", 1));
    ck_assert_uint_eq(digest_of(table), one);
    ck_assert_uint_ne(one, none);
    qg_table_free(table);
}
END_TEST

START_TEST(rows_are_dropped) {
    qg_table *table = sample_table(0, 100), *kept = new_table();
    bool keep[100];
    for (int i = 0; i < 100; i++)
        keep[i] = i % 3 == 1;
    qg_table_keep_rows(table, keep);
    ck_assert_int_eq(qg_table_rows(table), 33);
    for (int i = 0; i < 33; i++) {
        int64_t row = add_case(kept, 3 * i + 1);
        assert_same_row(table, i, kept, row);
        ck_assert_int_eq(qg_table_order(table, i), 3 * i + 1);
    }
    int64_t row;
    ok(qg_table_append(table, &row)); // the room that dropped rows left is clean
    ck_assert_int_eq(row, 33);
    ck_assert_int_eq(qg_table_order(table, row), -1);
    ck_assert(isnan(qg_table_f64(table, row, QG_COLUMN_METRIC_MSE)));
    const int64_t *rel, *ulp;
    ck_assert(!qg_table_histograms(table, row, &rel, &ulp));
    qg_table_free(kept);
    qg_table_free(table);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {columns_are_found_by_name,
                                  every_column_is_found_by_its_path,
                                  a_fresh_row_is_missing_everywhere,
                                  texts_are_interned_and_stay,
                                  bytes_that_are_no_utf8_become_question_marks,
                                  sums_fill_their_columns,
                                  runs_keep_their_keys,
                                  operand_names_are_checked,
                                  rows_are_dropped};
    return RUN_SUITE("results_table", tests);
}
