// Merging tables: plan order, repeated rows, runs, operands.
#include "results_sample.h"
#include <run_suite.h>

static qg_table *merge(qg_table *a, qg_table *b, qg_table *c) {
    const qg_table *const tables[] = {a, b, c};
    qg_table *merged;
    ok(qg_table_merge(tables, c ? 3 : b ? 2 : 1, &merged));
    return merged;
}

START_TEST(parts_interleave_in_plan_order) {
    qg_table *parts[3], *whole = sample_table(0, 90);
    for (int p = 0; p < 3; p++) {
        parts[p] = new_table();
        ok(qg_table_set_plan(parts[p], PLAN));
    }
    for (int64_t i = 0; i < 90; i++)
        add_case(parts[i * 7 % 90 % 3], i * 7 % 90); // in no order
    qg_table *merged = merge(parts[0], parts[1], parts[2]);
    ck_assert_int_eq(qg_table_rows(merged), 90);
    for (int64_t i = 0; i < 90; i++) {
        assert_same_row(merged, i, whole, i);
        ck_assert_int_eq(qg_table_order(merged, i), i);
    }
    for (int p = 0; p < 3; p++)
        qg_table_free(parts[p]);
    qg_table_free(merged);
    qg_table_free(whole);
}
END_TEST

START_TEST(merging_equals_never_having_been_split) {
    qg_table *whole = sample_table(0, 40), *a = sample_table(0, 25), *b = sample_table(25, 15);
    ok(qg_results_write(path_of("a.h5"), a, QG_RESULTS_PART, false));
    ok(qg_results_write(path_of("b.h5"), b, QG_RESULTS_PART, false));
    qg_table *a_back = read_back(path_of("a.h5"), NULL), *b_back = read_back(path_of("b.h5"), NULL);
    qg_table *merged = merge(b_back, a_back, NULL);
    ck_assert_uint_eq(digest_of(merged), digest_of(whole));
    ok(qg_results_write(path_of("merged.h5"), merged, QG_RESULTS_MERGED, true));
    qg_table *back = read_back(path_of("merged.h5"), NULL);
    ck_assert_uint_eq(digest_of(back), digest_of(whole));
    ck_assert_int_eq(qg_table_runs(back), 1);
    qg_table *const all[] = {whole, a, b, a_back, b_back, merged, back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
}
END_TEST

START_TEST(the_first_of_repeated_rows_stays) {
    qg_table *a = sample_table(0, 10), *b = sample_table(5, 10);
    for (int64_t row = 0; row < 10; row++) {
        ok(qg_table_set_text(a, row, QG_COLUMN_STATUS, "from a"));
        ok(qg_table_set_text(b, row, QG_COLUMN_STATUS, "from b"));
    }
    qg_table *ab = merge(a, b, NULL), *ba = merge(b, a, NULL), *aa = merge(a, a, a);
    ck_assert_int_eq(qg_table_rows(ab), 15);
    ck_assert_int_eq(qg_table_rows(ba), 15);
    ck_assert_int_eq(qg_table_rows(aa), 10);
    ck_assert_uint_eq(digest_of(aa), digest_of(a));
    for (int64_t row = 0; row < 15; row++) {
        ck_assert_str_eq(qg_table_text(ab, row, QG_COLUMN_STATUS), row < 10 ? "from a" : "from b");
        ck_assert_str_eq(qg_table_text(ba, row, QG_COLUMN_STATUS), row < 5 ? "from a" : "from b");
    }
    qg_table *const all[] = {a, b, ab, ba, aa};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
}
END_TEST

START_TEST(references_of_a_case_are_two_rows) {
    qg_table *a = new_table(), *b = new_table();
    for (int64_t i = 0; i < 4; i++) {
        qg_table *into = i % 2 ? a : b;
        ok(qg_table_set_text(into, add_case(into, i), QG_COLUMN_REFERENCE, "source"));
        ok(qg_table_set_text(into, add_case(into, i), QG_COLUMN_REFERENCE, "quantized"));
    }
    qg_table *merged = merge(a, b, NULL);
    ck_assert_int_eq(qg_table_rows(merged), 8);
    for (int64_t row = 0; row < 8; row++) {
        ck_assert_int_eq(qg_table_order(merged, row), row / 2);
        ck_assert_str_eq(qg_table_text(merged, row, QG_COLUMN_REFERENCE),
                         row % 2 ? "source" : "quantized");
    }
    qg_table_free(merged);
    qg_table_free(b);
    qg_table_free(a);
}
END_TEST

START_TEST(rows_without_a_place_all_stay) {
    qg_table *a = new_table(), *b = new_table();
    for (int64_t i = 0; i < 3; i++) {
        qg_table_set_order(a, add_case(a, i), -1);
        qg_table_set_order(b, add_case(b, i), -1);
    }
    qg_table *merged = merge(a, b, NULL);
    ck_assert_int_eq(qg_table_rows(merged), 6);
    for (int64_t row = 0; row < 6; row++)
        assert_same_row(merged, row, row < 3 ? a : b, row % 3);
    qg_table_free(merged);
    qg_table_free(b);
    qg_table_free(a);
}
END_TEST

START_TEST(runs_unite_and_are_renumbered) {
    qg_table *a = new_table(), *b = new_table(), *c = new_table();
    add_run(a, "one", "2026-01-01T00:00:05Z");
    add_run(b, "two", "2026-01-01T00:00:06Z");
    add_run(b, "one", "2026-01-01T00:00:09Z"); // the same process, later
    add_run(c, "one", "2026-01-01T00:00:07Z");
    ok(qg_table_set_i64(a, add_case(a, 0), QG_COLUMN_RUN, 0));
    ok(qg_table_set_i64(b, add_case(b, 1), QG_COLUMN_RUN, 0));
    ok(qg_table_set_i64(b, add_case(b, 2), QG_COLUMN_RUN, 1));
    ok(qg_table_set_i64(c, add_case(c, 3), QG_COLUMN_RUN, 0));
    add_case(c, 4); // of no run
    ok(qg_table_add_argv(a, "x"));
    ok(qg_table_add_argv(b, "y"));
    ok(qg_table_add_argv(c, "x"));
    qg_table *merged = merge(a, b, c);
    static const int64_t wanted[] = {0, 1, 0, 0, -1};
    for (int64_t row = 0; row < 5; row++)
        ck_assert_int_eq(qg_table_i64(merged, row, QG_COLUMN_RUN), wanted[row]);
    ck_assert_int_eq(qg_table_runs(merged), 2);
    ck_assert_str_eq(qg_table_run_value(merged, 0, "version"), "one");
    ck_assert_str_eq(qg_table_run_value(merged, 0, "end"), "2026-01-01T00:00:09Z");
    ck_assert_str_eq(qg_table_run_value(merged, 1, "version"), "two");
    qg_table *const all[] = {a, b, c, merged};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
}
END_TEST

START_TEST(the_first_of_repeated_operands_stays) {
    qg_table *a = new_table(), *b = new_table(), *wanted = new_table();
    ok(qg_table_add_operand(a, 7, "codes", "A", 1));
    ok(qg_table_add_operand(b, 7, "codes", "BB", 2));
    ok(qg_table_add_operand(b, 3, "codes", "C", 1));
    ok(qg_table_add_operand(wanted, 3, "codes", "C", 1));
    ok(qg_table_add_operand(wanted, 7, "codes", "A", 1));
    qg_table *merged = merge(a, b, NULL);
    ck_assert_uint_eq(digest_of(merged), digest_of(wanted));
    qg_table *const all[] = {a, b, wanted, merged};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
}
END_TEST

START_TEST(different_plans_do_not_merge) {
    qg_table *a = sample_table(0, 2), *b = sample_table(2, 2), *out = a;
    ok(qg_table_set_plan(b, PLAN "more\n"));
    const qg_table *const tables[] = {a, b};
    ck_assert_int_eq(qg_table_merge(tables, 2, &out), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(out);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "different plans"));
    qg_table_free(a);
    qg_table_free(b);
}
END_TEST

START_TEST(nothing_merges_to_nothing) {
    qg_table *out;
    ok(qg_table_merge(NULL, 0, &out));
    ck_assert_int_eq(qg_table_rows(out), 0);
    qg_table_free(out);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {parts_interleave_in_plan_order,
                                  merging_equals_never_having_been_split,
                                  the_first_of_repeated_rows_stays,
                                  references_of_a_case_are_two_rows,
                                  rows_without_a_place_all_stay,
                                  runs_unite_and_are_renumbered,
                                  the_first_of_repeated_operands_stays,
                                  different_plans_do_not_merge,
                                  nothing_merges_to_nothing};
    scratch();
    int failed = RUN_SUITE("results_merge", tests);
    remove_scratch();
    return failed;
}
