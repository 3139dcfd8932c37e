// Reading files that are damaged, lying or not ours: always an error that names the file, or a
// table; never a crash.
#include "results_sample.h"
#include <hdf5.h>
#include <qg_philox.h>
#include <run_suite.h>

static void assert_data_error(const char *path, const char *object, const char *reason) {
    qg_table *table = NULL;
    qg_status status = qg_results_read(path, &table, NULL, NULL);
    ck_assert_msg(status == QG_ERROR_DATA, "%s: %s: %s", object, qg_status_text(status),
                  status == QG_OK ? "read" : qg_detail());
    ck_assert_ptr_null(table);
    ck_assert_msg(strstr(qg_detail(), path) && strstr(qg_detail(), object) &&
                      strstr(qg_detail(), reason),
                  "no \"%s\", \"%s\" in: %s", object, reason, qg_detail());
}

START_TEST(files_of_others) {
    save_bytes(path_of("text.h5"), "this is no HDF5 file\n", 21);
    assert_data_error(path_of("text.h5"), "not an HDF5 file", "");
    save_bytes(path_of("empty.h5"), "", 0);
    assert_data_error(path_of("empty.h5"), "not an HDF5 file", "");
    hid_t file = H5Fcreate(path_of("other.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Fclose(file);
    assert_data_error(path_of("other.h5"), "Conventions", "no result file");
}
END_TEST

// ------------------------------------------------------------------------------- single lies

static hid_t open_sample(const char *path, bool part) {
    qg_table *table = sample_table(0, 10);
    ok(qg_results_write(path, table, part ? QG_RESULTS_PART : QG_RESULTS_MERGED, true));
    qg_table_free(table);
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    ck_assert_int_ge(file, 0);
    return file;
}

static void replace(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                    const void *values) {
    if (H5Lexists(file, name, H5P_DEFAULT) > 0)
        H5Ldelete(file, name, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, dims, NULL);
    hid_t target = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(target, 0);
    if (values)
        ck_assert_int_ge(H5Dwrite(target, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
    H5Dclose(target);
    H5Sclose(space);
}

START_TEST(what_is_missing_is_named) {
    static const char *const objects[] = {"cases",       "cases/m",  "cases/case_id", "metrics",
                                          "metrics/mse", "hist/row", "hist/ulp",      "plan/text",
                                          "plan/argv",   "plan",     "runs",          "operands",
                                          "formats",     "recipes",  "timing/bytes"};
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        hid_t file = open_sample(path_of("a.h5"), false);
        ck_assert_int_ge(H5Ldelete(file, objects[i], H5P_DEFAULT), 0);
        H5Fclose(file);
        assert_data_error(path_of("a.h5"), objects[i], "missing");
    }
    static const char *const attributes[] = {"Conventions", "schema_version", "plan_digest",
                                             "content_digest", "complete"};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        hid_t file = open_sample(path_of("a.h5"), false);
        ck_assert_int_ge(H5Adelete(file, attributes[i]), 0);
        H5Fclose(file);
        assert_data_error(path_of("a.h5"), attributes[i], "");
    }
}
END_TEST

// Files of before matrix units were dumped are read; their digest says that it is left out.
START_TEST(units_may_be_missing) {
    hid_t file = open_sample(path_of("a.h5"), false);
    ck_assert_int_ge(H5Ldelete(file, "units", H5P_DEFAULT), 0);
    H5Fclose(file);
    qg_table *table;
    bool verified;
    ok(qg_results_read(path_of("a.h5"), &table, NULL, &verified));
    ck_assert(!verified);
    qg_table_free(table);
}
END_TEST

START_TEST(parts_may_leave_out_columns_but_not_case_ids) {
    hid_t file = open_sample(path_of("a.h5"), true);
    H5Ldelete(file, "metrics", H5P_DEFAULT);
    H5Ldelete(file, "cases/m", H5P_DEFAULT);
    H5Fclose(file);
    qg_table *table;
    bool verified;
    ok(qg_results_read(path_of("a.h5"), &table, NULL, &verified));
    ck_assert(!verified);
    qg_table_free(table);
    file = open_sample(path_of("a.h5"), true);
    H5Ldelete(file, "cases/case_id", H5P_DEFAULT);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/case_id", "missing");
}
END_TEST

START_TEST(wrong_types_lengths_and_ranks) {
    static const hsize_t ten[] = {10}, nine[] = {9}, square[] = {10, 1}, bins[] = {5, 79};
    const struct {
        const char *name;
        hid_t type;
        int rank;
        const hsize_t *dims;
        const char *reason;
    } lies[] = {
        {"metrics/mse", H5T_NATIVE_FLOAT, 1, ten, "float64"},
        {"metrics/mse", H5T_NATIVE_INT64, 1, ten, "float64"},
        {"metrics/mse", H5T_NATIVE_DOUBLE, 1, nine, "9 rows instead of 10"},
        {"metrics/mse", H5T_NATIVE_DOUBLE, 2, square, "2-dimensional"},
        {"cases/case_id", H5T_NATIVE_INT64, 1, ten, "uint64"},
        {"cases/m", H5T_NATIVE_UINT64, 1, ten, "int64"},
        {"cases/m", H5T_NATIVE_INT32, 1, ten, "int64"},
        {"cases/bias", H5T_NATIVE_UINT64, 1, ten, "uint8"},
        {"cases/format", H5T_NATIVE_INT64, 1, ten, "text"},
        {"hist/rel", H5T_NATIVE_INT64, 2, bins, "79 bins instead of 80"},
        {"hist/row", H5T_NATIVE_INT64, 1, nine, "never written"},
        {"plan/text", H5T_NATIVE_INT64, 1, ten, "text"},
        {"formats/bias", H5T_NATIVE_FLOAT, 1, ten, "texts or numbers"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        hid_t file = open_sample(path_of("a.h5"), false);
        replace(file, lies[i].name, lies[i].type, lies[i].rank, lies[i].dims, NULL);
        H5Fclose(file);
        assert_data_error(path_of("a.h5"), lies[i].name, lies[i].reason);
    }
}
END_TEST

START_TEST(values_out_of_range) {
    static const hsize_t ten[] = {10}, five[] = {5};
    static const int64_t runs[10] = {0, 0, 0, 1}, rows[5] = {1, 3, 5, 7, 10};
    static const int64_t unsorted[5] = {1, 3, 3, 7, 9};
    hid_t file = open_sample(path_of("a.h5"), false);
    replace(file, "cases/run", H5T_NATIVE_INT64, 1, ten, runs);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/run", "row 3 names run 1 of 1");
    file = open_sample(path_of("a.h5"), false);
    replace(file, "hist/row", H5T_NATIVE_INT64, 1, five, rows);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "hist/row", "10 is not a row");
    file = open_sample(path_of("a.h5"), false);
    replace(file, "hist/row", H5T_NATIVE_INT64, 1, five, unsorted);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "hist/row", "3 is not a row, or not in order");
}
END_TEST

static void replace_texts(hid_t file, const char *bytes) { // (10, 2)
    static const hsize_t ten[] = {10};
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 2);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    replace(file, "cases/tensor", type, 1, ten, bytes);
    H5Tclose(type);
}

START_TEST(texts_that_are_no_utf8) {
    hid_t file = open_sample(path_of("a.h5"), false);
    replace_texts(file, "ababab\xff_abababababab");
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/tensor", "row 3 is no UTF-8");
}
END_TEST

START_TEST(variable_length_texts_are_refused) {
    static const hsize_t ten[] = {10};
    hid_t type = H5Tcopy(H5T_C_S1), file = open_sample(path_of("a.h5"), false);
    H5Tset_size(type, H5T_VARIABLE);
    replace(file, "cases/tensor", type, 1, ten, NULL);
    H5Tclose(type);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/tensor", "fixed-length text");
}
END_TEST

START_TEST(other_schemas_are_named) {
    static const int64_t two = 2;
    hid_t file = open_sample(path_of("a.h5"), false);
    hid_t attribute = H5Aopen(file, "schema_version", H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT64, &two);
    H5Aclose(attribute);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "schema_version", "schema 2");
}
END_TEST

START_TEST(sizes_that_the_file_cannot_hold) {
    static const hsize_t huge[] = {(hsize_t)1 << 40};
    static const hsize_t chunk[] = {1 << 20};
    hid_t file = open_sample(path_of("a.h5"), false);
    replace(file, "cases/case_id", H5T_NATIVE_UINT64, 1, huge, NULL);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/case_id", "never written");
    // One of a million chunks is stored.
    file = open_sample(path_of("a.h5"), false);
    H5Ldelete(file, "cases/case_id", H5P_DEFAULT);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, huge, NULL);
    H5Pset_chunk(properties, 1, chunk);
    H5Pset_deflate(properties, 9);
    hid_t target = H5Dcreate2(file, "cases/case_id", H5T_NATIVE_UINT64, space, H5P_DEFAULT,
                              properties, H5P_DEFAULT);
    hsize_t at = 0, one = 1;
    uint64_t value = 1;
    hid_t memory = H5Screate_simple(1, &one, NULL);
    H5Sselect_elements(space, H5S_SELECT_SET, 1, &at);
    ck_assert_int_ge(H5Dwrite(target, H5T_NATIVE_UINT64, memory, space, H5P_DEFAULT, &value), 0);
    H5Sclose(memory);
    H5Dclose(target);
    H5Sclose(space);
    H5Pclose(properties);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/case_id", "larger than the file can hold");
}
END_TEST

START_TEST(links_lead_nowhere_else) {
    hid_t file = open_sample(path_of("b.h5"), false);
    H5Fclose(file);
    file = open_sample(path_of("a.h5"), false);
    H5Ldelete(file, "cases/m", H5P_DEFAULT);
    ck_assert_int_ge(H5Lcreate_external(path_of("b.h5"), "/cases/m", file, "cases/m", H5P_DEFAULT,
                                        H5P_DEFAULT), 0);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/m", "missing");
    file = open_sample(path_of("a.h5"), false);
    H5Ldelete(file, "cases/m", H5P_DEFAULT);
    ck_assert_int_ge(H5Lcreate_soft("/cases/n", file, "cases/m", H5P_DEFAULT, H5P_DEFAULT), 0);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/m", "missing");
}
END_TEST

START_TEST(data_outside_the_file_is_not_read) {
    static const hsize_t ten[] = {10};
    save_bytes(path_of("secret"), "0123456789012345678901234567890123456789"
                                  "0123456789012345678901234567890123456789", 80);
    hid_t file = open_sample(path_of("a.h5"), false);
    H5Ldelete(file, "cases/m", H5P_DEFAULT);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, ten, NULL);
    H5Pset_external(properties, path_of("secret"), 0, 80);
    H5Dclose(H5Dcreate2(file, "cases/m", H5T_NATIVE_INT64, space, H5P_DEFAULT, properties,
                        H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(properties);
    H5Fclose(file);
    assert_data_error(path_of("a.h5"), "cases/m", "stored in a way");
}
END_TEST

// ----------------------------------------------------------------------- what others may add

START_TEST(unknown_objects_are_ignored) {
    static const hsize_t three[] = {3};
    hid_t file = open_sample(path_of("a.h5"), false);
    replace(file, "cases/comment", H5T_NATIVE_FLOAT, 1, three, NULL);
    replace(file, "metrics/own", H5T_NATIVE_DOUBLE, 1, three, NULL);
    replace(file, "notes", H5T_NATIVE_DOUBLE, 1, three, NULL);
    H5Gclose(H5Gcreate2(file, "operands/own", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    hid_t run = H5Gopen2(file, "runs/0", H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    H5Aclose(H5Acreate2(run, "number", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Gclose(run);
    H5Fclose(file);
    qg_table_free(read_back(path_of("a.h5"), NULL));
}
END_TEST

START_TEST(changed_values_are_noticed) {
    static const struct {
        const char *name;
        bool matters;
    } cases[] = {{"metrics/mse", true}, {"sums/ee", true}, {"timing/min_s", false},
                 {"cases/seconds", false}, {"formats/max", true}, {"recipes/eps", true},
                 {"units/floor", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hid_t file = open_sample(path_of("a.h5"), false);
        hid_t target = H5Dopen2(file, cases[i].name, H5P_DEFAULT);
        double values[256] = {0};
        ck_assert_int_ge(
            H5Dread(target, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
        values[3] = values[3] == 0.5 ? 0.25 : 0.5;
        ck_assert_int_ge(
            H5Dwrite(target, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
        H5Dclose(target);
        H5Fclose(file);
        qg_table *table;
        bool verified;
        ok(qg_results_read(path_of("a.h5"), &table, NULL, &verified));
        ck_assert_msg(verified != cases[i].matters, "%s", cases[i].name);
        qg_table_free(table);
    }
}
END_TEST

START_TEST(other_byte_orders_and_storage_read_the_same) {
    static const hsize_t ten[] = {10};
    int64_t m[10];
    hid_t file = open_sample(path_of("a.h5"), false);
    hid_t old = H5Dopen2(file, "cases/m", H5P_DEFAULT);
    H5Dread(old, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, m);
    H5Dclose(old);
    H5Ldelete(file, "cases/m", H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, ten, NULL);
    hid_t target = H5Dcreate2(file, "cases/m", H5T_STD_I64BE, space, H5P_DEFAULT, H5P_DEFAULT,
                              H5P_DEFAULT);
    H5Dwrite(target, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, m);
    H5Dclose(target);
    H5Sclose(space);
    H5Fclose(file);
    qg_table_free(read_back(path_of("a.h5"), NULL));
}
END_TEST

START_TEST(another_nan_is_the_same) {
    hid_t file = open_sample(path_of("a.h5"), false);
    hid_t target = H5Dopen2(file, "metrics/mse", H5P_DEFAULT);
    double values[10];
    int changed = 0;
    H5Dread(target, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    for (int i = 0; i < 10; i++)
        if (isnan(values[i])) {
            values[i] = qg_double_of_bits(0xfff8000000001234u);
            changed++;
        }
    ck_assert_int_gt(changed, 0);
    H5Dwrite(target, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(target);
    H5Fclose(file);
    qg_table_free(read_back(path_of("a.h5"), NULL));
}
END_TEST

// ------------------------------------------------------------------------------------- damage

// Reads what may be damaged; counts what became of it.
static void read_damaged(const char *path, int outcomes[3]) {
    qg_table *table = NULL;
    bool verified = false;
    qg_status status = qg_results_read(path, &table, NULL, &verified);
    ck_assert(status == QG_OK || status == QG_ERROR_DATA || status == QG_ERROR_MEMORY ||
              status == QG_ERROR_OVERFLOW);
    ck_assert((status == QG_OK) == (table != NULL));
    outcomes[status != QG_OK ? 0 : verified ? 2 : 1]++;
    qg_table_free(table);
}

static void corrupt(qg_results_kind kind, uint64_t seed, int rounds) {
    qg_table *table = sample_table(0, 3);
    ok(qg_results_write(path_of("whole.h5"), table, kind, true));
    qg_table_free(table);
    size_t size;
    unsigned char *whole = load_bytes(path_of("whole.h5"), &size), *bytes = malloc(size);
    int outcomes[3] = {0};
    for (int round = 0; round < rounds; round++) {
        memcpy(bytes, whole, size);
        int hits = 1 + round % 4;
        for (int hit = 0; hit < hits; hit++) {
            qg_philox_block word = qg_philox_quad(seed, (uint32_t)hit, (uint64_t)round);
            size_t at = (round % 2 ? word.word[0] : word.word[0] % 8192) % size;
            bytes[at] = (unsigned char)(round % 3 == 0 ? bytes[at] ^ 1u << word.word[1] % 8
                                        : round % 3 == 1 ? word.word[1]
                                                         : 0xff);
        }
        save_bytes(path_of("damaged.h5"), bytes, size);
        read_damaged(path_of("damaged.h5"), outcomes);
    }
    printf("  %d files with flipped bytes: %d refused, %d with a wrong digest, %d unharmed\n",
           rounds, outcomes[0], outcomes[1], outcomes[2]);
    ck_assert_int_gt(outcomes[0], rounds / 20);
    free(bytes);
    free(whole);
}

START_TEST(flipped_bytes_of_a_merged_file) { corrupt(QG_RESULTS_MERGED, 1, 500); }
END_TEST
START_TEST(flipped_bytes_of_a_part) { corrupt(QG_RESULTS_PART, 2, 500); }
END_TEST

START_TEST(truncated_files) {
    qg_table *table = sample_table(0, 3);
    ok(qg_results_write(path_of("whole.h5"), table, QG_RESULTS_MERGED, true));
    qg_table_free(table);
    size_t size;
    unsigned char *whole = load_bytes(path_of("whole.h5"), &size);
    int outcomes[3] = {0};
    for (size_t kept = 0; kept < size; kept += 1 + size / 150) {
        save_bytes(path_of("damaged.h5"), whole, kept);
        read_damaged(path_of("damaged.h5"), outcomes);
    }
    ck_assert_int_eq(outcomes[1] + outcomes[2], 0);
    free(whole);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {files_of_others,
                                  what_is_missing_is_named,
                                  units_may_be_missing,
                                  parts_may_leave_out_columns_but_not_case_ids,
                                  wrong_types_lengths_and_ranks,
                                  values_out_of_range,
                                  texts_that_are_no_utf8,
                                  variable_length_texts_are_refused,
                                  other_schemas_are_named,
                                  sizes_that_the_file_cannot_hold,
                                  links_lead_nowhere_else,
                                  data_outside_the_file_is_not_read,
                                  unknown_objects_are_ignored,
                                  changed_values_are_noticed,
                                  other_byte_orders_and_storage_read_the_same,
                                  another_nan_is_the_same,
                                  flipped_bytes_of_a_merged_file,
                                  flipped_bytes_of_a_part,
                                  truncated_files};
    scratch();
    int failed = RUN_SUITE("results_foreign", tests);
    remove_scratch();
    return failed;
}
