// Result files: round trips of both kinds, content digests, equal bytes.
// `test_results_file write PATH [part]` writes the file that test_results.py looks at.
#include "results_sample.h"
#include <results_hdf5_internal.h>
#include <run_suite.h>
#include <time.h>

static void assert_same_surroundings(const qg_table *a, const qg_table *b) {
    ck_assert_str_eq(qg_table_plan(a), qg_table_plan(b));
    ck_assert_int_eq(qg_table_runs(a), qg_table_runs(b));
    ck_assert_str_eq(qg_table_run_value(b, 0, "version"), "1.2.3");
    ck_assert_str_eq(qg_table_run_value(b, 0, "end"), "2026-01-01T00:00:09Z");
    ck_assert_str_eq(qg_table_run_value(b, 0, "cpu"), "");
    ck_assert_uint_eq(digest_of(a), digest_of(b));
}

static void round_trip(int64_t rows, qg_results_kind kind, bool complete, int64_t image_limit) {
    qg_table *table = sample_table(0, rows);
    bool read_complete;
    ok(qg_results_write_limited(path_of("a.h5"), table, kind, complete, image_limit));
    qg_table *back = read_back(path_of("a.h5"), &read_complete);
    ck_assert_int_eq(read_complete, complete);
    ck_assert_int_eq(qg_table_rows(back), rows);
    for (int64_t row = 0; row < rows; row++) {
        assert_same_row(table, row, back, row);
        ck_assert_int_eq(qg_table_i64(back, row, QG_COLUMN_RUN), 0);
        ck_assert_int_eq(qg_table_order(back, row), row);
    }
    assert_same_surroundings(table, back);
    ck_assert_int_ne(access(path_of("a.h5.tmp"), F_OK), 0);
    qg_table_free(back);
    qg_table_free(table);
}

START_TEST(round_trips) {
    static const int64_t rows[] = {0, 1, 2, 63, 64, 65, 1000};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        round_trip(rows[i], QG_RESULTS_MERGED, true, INT64_MAX);
        round_trip(rows[i], QG_RESULTS_PART, false, INT64_MAX);
    }
}
END_TEST

START_TEST(round_trips_without_an_image_in_memory) {
    round_trip(0, QG_RESULTS_MERGED, false, 0);
    round_trip(300, QG_RESULTS_MERGED, true, 0);
    round_trip(300, QG_RESULTS_PART, false, 0);
}
END_TEST

START_TEST(an_empty_table_is_a_file) {
    qg_table *table = new_table();
    ok(qg_results_write(path_of("empty.h5"), table, QG_RESULTS_MERGED, true));
    qg_table *back = read_back(path_of("empty.h5"), NULL);
    ck_assert_int_eq(qg_table_rows(back), 0);
    ck_assert_int_eq(qg_table_runs(back), 0);
    ck_assert_str_eq(qg_table_plan(back), "");
    qg_table_free(back);
    qg_table_free(table);
}
END_TEST

START_TEST(rows_without_values_are_rows) {
    qg_table *table = new_table();
    int64_t row;
    for (int i = 0; i < 5; i++)
        ok(qg_table_append(table, &row));
    for (int kind = 0; kind < 2; kind++) {
        ok(qg_results_write(path_of("a.h5"), table, (qg_results_kind)kind, false));
        qg_table *back = read_back(path_of("a.h5"), NULL);
        ck_assert_int_eq(qg_table_rows(back), 5);
        assert_same_row(table, 4, back, 4);
        qg_table_free(back);
    }
    qg_table_free(table);
}
END_TEST

START_TEST(a_merged_file_is_in_plan_order) {
    qg_table *table = new_table();
    for (int64_t i = 0; i < 50; i++)
        add_case(table, i * 37 % 50);
    ok(qg_results_write(path_of("a.h5"), table, QG_RESULTS_MERGED, true));
    ok(qg_results_write(path_of("b.h5"), table, QG_RESULTS_PART, true));
    qg_table *merged = read_back(path_of("a.h5"), NULL), *part = read_back(path_of("b.h5"), NULL);
    for (int64_t i = 0; i < 50; i++) {
        assert_same_row(table, i, merged, i * 37 % 50);
        assert_same_row(table, i, part, i);
        ck_assert_int_eq(qg_table_order(merged, i), i);
        ck_assert_int_eq(qg_table_order(part, i), i * 37 % 50);
    }
    ck_assert_uint_eq(digest_of(merged), digest_of(part));
    qg_table_free(part);
    qg_table_free(merged);
    qg_table_free(table);
}
END_TEST

static bool has_object(const char *path, const char *name) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    bool exists = H5Lexists(file, name, H5P_DEFAULT) > 0;
    H5Fclose(file);
    return exists;
}

START_TEST(places_in_the_plan_survive_gaps_and_pairs) {
    static const int64_t gaps[] = {3, 4, 9};
    qg_table *table = new_table(), *pairs = new_table();
    for (int i = 0; i < 3; i++) {
        add_case(table, gaps[i]);
        for (int twice = 0; twice < 2; twice++) {
            int64_t row = add_case(pairs, i);
            ok(qg_table_set_text(pairs, row, QG_COLUMN_REFERENCE, twice ? "quantized" : "source"));
        }
    }
    ok(qg_results_write(path_of("a.h5"), table, QG_RESULTS_MERGED, false));
    ok(qg_results_write(path_of("b.h5"), pairs, QG_RESULTS_MERGED, true));
    ck_assert(has_object(path_of("a.h5"), "plan/order"));
    ck_assert(!has_object(path_of("b.h5"), "plan/order")); // it follows from the case ids
    qg_table *back = read_back(path_of("a.h5"), NULL);
    qg_table *pairs_back = read_back(path_of("b.h5"), NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(qg_table_order(back, i), gaps[i]);
        for (int twice = 0; twice < 2; twice++)
            ck_assert_int_eq(qg_table_order(pairs_back, 2 * i + twice), i);
        ck_assert_str_eq(qg_table_text(pairs_back, 2 * i, QG_COLUMN_REFERENCE), "quantized");
    }
    qg_table_free(pairs_back);
    qg_table_free(back);
    qg_table_free(pairs);
    qg_table_free(table);
}
END_TEST

// Sets one column of row 1 to something else.
static void disturb(qg_table *table, qg_column column) {
    switch (qg_column_describe(column)->type) {
    case QG_COLUMN_F64: ok(qg_table_set_f64(table, 1, column, 12345.5)); break;
    case QG_COLUMN_I64: ok(qg_table_set_i64(table, 1, column, 424242)); break;
    case QG_COLUMN_U64: ok(qg_table_set_u64(table, 1, column, 77)); break;
    case QG_COLUMN_U8: ok(qg_table_set_u8(table, 1, column, 9)); break;
    case QG_COLUMN_TEXT: ok(qg_table_set_text(table, 1, column, "disturbed")); break;
    }
}

static bool should_not_matter(qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    return strcmp(info->group, "timing") == 0 ||
           (strcmp(info->group, "cases") == 0 &&
            (strcmp(info->name, "run") == 0 || strcmp(info->name, "seconds") == 0 ||
             strcmp(info->name, "impl_used") == 0));
}

START_TEST(the_digest_covers_what_depends_on_the_plan) {
    uint64_t usual;
    qg_table *table = sample_table(0, 4);
    usual = digest_of(table);
    qg_table_free(table);
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        table = sample_table(0, 4);
        disturb(table, (qg_column)i);
        bool same = digest_of(table) == usual;
        ck_assert_msg(same == should_not_matter((qg_column)i), "%s/%s",
                      qg_column_describe((qg_column)i)->group,
                      qg_column_describe((qg_column)i)->name);
        qg_table_free(table);
    }
}
END_TEST

START_TEST(the_digest_covers_plan_histograms_operands_but_no_run) {
    qg_table *table = sample_table(0, 4);
    uint64_t usual = digest_of(table);
    ok(qg_table_add_argv(table, "another command line"));
    add_run(table, "9", "never");
    ok(qg_table_set_run(table, 0, "version", "changed"));
    ck_assert_uint_eq(digest_of(table), usual);
    ok(qg_table_set_plan(table, "another plan"));
    ck_assert_uint_ne(digest_of(table), usual);
    ok(qg_table_set_plan(table, PLAN));
    ck_assert_uint_eq(digest_of(table), usual);
    ok(qg_table_add_operand(table, 1, "more", "x", 1));
    ck_assert_uint_ne(digest_of(table), usual);
    qg_table_free(table);
    table = sample_table(0, 4);
    qg_sums sums = sample_sums(1);
    sums.hist_ulp[3]++;
    ok(qg_table_set_sums(table, 1, &sums));
    ck_assert_uint_ne(digest_of(table), usual);
    qg_table_free(table);
}
END_TEST

START_TEST(every_nan_is_the_same_and_setting_what_is_missing_changes_nothing) {
    qg_table *a = sample_table(0, 4), *b = sample_table(0, 4);
    ok(qg_table_set_f64(a, 2, QG_COLUMN_SUM_EE, qg_double_of_bits(0xfff8000000000001u)));
    ok(qg_table_set_f64(b, 2, QG_COLUMN_SUM_EE, (double)NAN));
    ck_assert_uint_eq(digest_of(a), digest_of(b));
    ck_assert_uint_eq(qg_bits_of_double(qg_table_f64(a, 2, QG_COLUMN_SUM_EE)),
                      0x7ff8000000000000u);
    qg_table_free(b);
    qg_table_free(a);
    a = new_table(), b = new_table();
    int64_t row;
    ok(qg_table_append(a, &row));
    ok(qg_table_append(b, &row));
    ok(qg_table_set_f64(b, 0, QG_COLUMN_SUM_EE, (double)NAN));
    ok(qg_table_set_i64(b, 0, QG_COLUMN_COUNT_NAN, -1));
    ok(qg_table_set_text(b, 0, QG_COLUMN_FORMAT, ""));
    ck_assert_uint_eq(digest_of(a), digest_of(b));
    qg_table_free(b);
    qg_table_free(a);
}
END_TEST

static void assert_same_bytes(const char *a, const char *b) {
    size_t a_size, b_size;
    unsigned char *a_bytes = load_bytes(a, &a_size), *b_bytes = load_bytes(b, &b_size);
    ck_assert_uint_eq(a_size, b_size);
    ck_assert_mem_eq(a_bytes, b_bytes, a_size);
    free(a_bytes);
    free(b_bytes);
}

START_TEST(equal_tables_give_equal_bytes) {
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    for (int kind = 0; kind < 2; kind++) {
        qg_table *a = sample_table(0, 700), *b = sample_table(0, 700);
        ok(qg_results_write(path_of("a.h5"), a, (qg_results_kind)kind, true));
        ok(qg_results_write(path_of("b.h5"), b, (qg_results_kind)kind, true));
        assert_same_bytes(path_of("a.h5"), path_of("b.h5"));
        qg_table *back = read_back(path_of("a.h5"), NULL); // and after a round trip
        ok(qg_results_write(path_of("b.h5"), back, (qg_results_kind)kind, true));
        assert_same_bytes(path_of("a.h5"), path_of("b.h5"));
        qg_table_free(back);
        qg_table_free(b);
        qg_table_free(a);
    }
    unsetenv("SOURCE_DATE_EPOCH");
}
END_TEST

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); // what others do at the time does not count
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Reports, asserts nothing about time.
static double lap(const char *what, int64_t rows, double since) {
    double now = seconds_now();
    printf("  %-24s %8.2f us per row\n", what, (now - since) / (double)rows * 1e6);
    return seconds_now();
}

static qg_table *every_second(int64_t first, int64_t rows) {
    qg_table *table = new_table();
    ok(qg_table_set_plan(table, PLAN));
    for (int64_t i = first; i < rows; i += 2)
        add_case(table, i);
    return table;
}

START_TEST(a_hundred_thousand_rows) {
    const int64_t rows = 100000;
    size_t size;
    double since = seconds_now();
    qg_table *halves[2] = {every_second(0, rows), every_second(1, rows)}, *merged;
    since = lap("append and set", rows, since);
    ok(qg_results_write(path_of("0.h5"), halves[0], QG_RESULTS_PART, false));
    ok(qg_results_write(path_of("1.h5"), halves[1], QG_RESULTS_PART, false));
    since = lap("write as parts", rows, since);
    for (int i = 0; i < 2; i++) {
        qg_table_free(halves[i]);
        halves[i] = read_back(path_of(i ? "1.h5" : "0.h5"), NULL);
    }
    since = lap("read and verify parts", rows, since);
    ok(qg_table_merge((const qg_table *const *)halves, 2, &merged));
    since = lap("merge in memory", rows, since);
    ok(qg_results_write(path_of("all.h5"), merged, QG_RESULTS_MERGED, true));
    since = lap("write merged", rows, since);
    qg_table *back = read_back(path_of("all.h5"), NULL);
    lap("read and verify merged", rows, since);
    ck_assert_int_eq(qg_table_rows(back), rows);
    for (int64_t row = 0; row < rows; row += 997)
        assert_same_row(back, row, halves[row % 2], row / 2);
    free(load_bytes(path_of("all.h5"), &size));
    printf("  merged file: %.1f bytes per row; ", (double)size / (double)rows);
    free(load_bytes(path_of("0.h5"), &size));
    printf("part: %.1f\n", (double)size / (double)rows * 2);
    qg_table_free(back);
    qg_table_free(merged);
    qg_table_free(halves[0]);
    qg_table_free(halves[1]);
}
END_TEST

static const char *sample_path;
static qg_results_kind sample_kind;

START_TEST(write_sample) {
    qg_table *table = sample_table(0, 10);
    ok(qg_results_write(sample_path, table, sample_kind, sample_kind == QG_RESULTS_MERGED));
    qg_table_free(table);
}
END_TEST

static int write_sample_file(int argc, char **argv) {
    const TTest *const tests[] = {write_sample};
    sample_path = argv[2];
    sample_kind = argc == 4 ? QG_RESULTS_PART : QG_RESULTS_MERGED;
    return RUN_SUITE("write_sample", tests);
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "write") == 0)
        return write_sample_file(argc, argv);
    const TTest *const tests[] = {
        round_trips,
        round_trips_without_an_image_in_memory,
        an_empty_table_is_a_file,
        rows_without_values_are_rows,
        a_merged_file_is_in_plan_order,
        places_in_the_plan_survive_gaps_and_pairs,
        the_digest_covers_what_depends_on_the_plan,
        the_digest_covers_plan_histograms_operands_but_no_run,
        every_nan_is_the_same_and_setting_what_is_missing_changes_nothing,
        equal_tables_give_equal_bytes,
        a_hundred_thousand_rows};
    scratch();
    int failed = RUN_SUITE("results_file", tests);
    remove_scratch();
    return failed;
}
