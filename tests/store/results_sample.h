// Tables of results for tests, and comparing them.
#ifndef RESULTS_SAMPLE_H
#define RESULTS_SAMPLE_H

#include <check.h>
#include <dirent.h>
#include <qg_bits.h>
#include <qg_results.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLAN "[sweep]\nformats e4m3,mxfp8\n# größer\n"

static inline void ok(qg_status status) {
    if (status != QG_OK) // no assertion where all is well: Check writes a note of each
        ck_abort_msg("%s: %s", qg_status_text(status), qg_detail());
}

static inline qg_table *new_table(void) {
    qg_table *table;
    ok(qg_table_create(&table));
    return table;
}

// A scratch folder; main calls it before Check forks, so that all tests share it.
static inline const char *scratch(void) {
    static char folder[256];
    const char *root = getenv("TMPDIR");
    if (!folder[0]) {
        snprintf(folder, sizeof folder, "%s/quantgauge-results-XXXXXX",
                 root && strlen(root) < 200 ? root : "/tmp");
        if (!mkdtemp(folder))
            abort();
    }
    return folder;
}

static inline void remove_scratch(void) {
    DIR *folder = opendir(scratch());
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(scratch());
}

// A path in the scratch folder; the last 16 stay valid.
static inline const char *path_of(const char *name) {
    static char paths[16][512];
    static int next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", scratch(), name);
    return path;
}

static inline double sample_number(int64_t row, int column) {
    static const double special[] = {0.0,       -0.0,      INFINITY,
                                     -INFINITY, 0x1p-1074, 0x1.fffffffffffffp1023};
    int64_t at = row * 7 + column;
    return at % 5 == 0 ? special[at / 5 % 6] : (double)at * 0.37 - 3.0;
}

static inline void sample_text(int64_t row, int column, char text[64]) {
    static const char *const texts[] = {"", "e4m3", "größer € 𝄞", "block:128x128"};
    if ((row + column) % 5 == 4)
        snprintf(text, 64, "row %lld of %d", (long long)row, column);
    else
        snprintf(text, 64, "%s", texts[(row + column) % 5]);
}

// Sets every column but `run`, a third of the values missing.
static inline void set_sample(qg_table *table, int64_t row, int64_t identity) {
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        qg_column column = (qg_column)i;
        char text[64];
        if (column == QG_COLUMN_RUN || (column != QG_COLUMN_CASE_ID && (identity + i) % 3 == 0))
            continue;
        switch (qg_column_describe(column)->type) {
        case QG_COLUMN_F64:
            ok(qg_table_set_f64(table, row, column, sample_number(identity, i)));
            break;
        case QG_COLUMN_I64:
            ok(qg_table_set_i64(table, row, column, identity * 1000003 - 5 * i));
            break;
        case QG_COLUMN_U64:
            ok(qg_table_set_u64(table, row, column,
                                (uint64_t)(identity + 1) * 0x9e3779b97f4a7c15u + (uint64_t)i));
            break;
        case QG_COLUMN_U8: ok(qg_table_set_u8(table, row, column, (uint8_t)(identity % 2))); break;
        case QG_COLUMN_TEXT:
            sample_text(identity, i, text);
            ok(qg_table_set_text(table, row, column, text));
            break;
        }
    }
    ok(qg_table_set_text(table, row, QG_COLUMN_REFERENCE, ""));
}

// Sums whose histograms tell rows apart.
static inline qg_sums sample_sums(int64_t identity) {
    static const float x[] = {1.0f, 2.5f, -3.0f, 0.0f}, q[] = {1.0f, 2.25f, -3.5f, 0.0f};
    qg_sums sums;
    qg_sums_clear(&sums);
    qg_sums_add(&sums, 4, 0, x, q);
    sums.hist_rel[identity % QG_HIST_LOG2_BINS] += 7 + identity;
    sums.hist_ulp[identity % QG_HIST_ULP_BINS] += 3 + identity;
    return sums;
}

// Appends the row of case `identity` of the plan.
static inline int64_t add_case(qg_table *table, int64_t identity) {
    int64_t row;
    ok(qg_table_append(table, &row));
    set_sample(table, row, identity);
    if (identity % 2) {
        qg_sums sums = sample_sums(identity);
        ok(qg_table_set_sums(table, row, &sums));
    }
    qg_table_set_order(table, row, identity);
    return row;
}

// A run with a version of its own, whose end is `end`.
static inline int64_t add_run(qg_table *table, const char *version, const char *end) {
    int64_t run;
    ok(qg_table_add_run(table, &run));
    ok(qg_table_set_run(table, run, "version", version));
    ok(qg_table_set_run(table, run, "start", "2026-01-01T00:00:00Z"));
    ok(qg_table_set_run(table, run, "end", end));
    ok(qg_table_set_run(table, run, "cpu", ""));
    return run;
}

// Cases first .. first + rows - 1 of the plan, one run, two command lines, operands.
static inline qg_table *sample_table(int64_t first, int64_t rows) {
    qg_table *table = new_table();
    ok(qg_table_set_plan(table, PLAN));
    ok(qg_table_add_argv(table, "run_sweep --formats e4m3,mxfp8"));
    ok(qg_table_add_argv(table, "run_sweep --resume"));
    int64_t run = add_run(table, "1.2.3", "2026-01-01T00:00:09Z");
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = add_case(table, first + i);
        ok(qg_table_set_i64(table, row, QG_COLUMN_RUN, run));
    }
    ok(qg_table_add_operand(table, 0xfedcba9876543210u, "codes_a", "\0\1\2\377", 4));
    ok(qg_table_add_operand(table, 0xfedcba9876543210u, "scales_a", "x", 1));
    ok(qg_table_add_operand(table, 0x1u, "codes_a", "", 0));
    return table;
}

static inline int same_double(double a, double b) {
    return (isnan(a) && isnan(b)) || qg_bits_of_double(a) == qg_bits_of_double(b);
}

static inline void assert_same_value(const qg_table *a, int64_t a_row, const qg_table *b,
                                     int64_t b_row, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    int same = 0;
    switch (info->type) {
    case QG_COLUMN_F64:
        same = same_double(qg_table_f64(a, a_row, column), qg_table_f64(b, b_row, column));
        break;
    case QG_COLUMN_I64:
        same = qg_table_i64(a, a_row, column) == qg_table_i64(b, b_row, column);
        break;
    case QG_COLUMN_U64:
        same = qg_table_u64(a, a_row, column) == qg_table_u64(b, b_row, column);
        break;
    case QG_COLUMN_U8:
        same = qg_table_u8(a, a_row, column) == qg_table_u8(b, b_row, column);
        break;
    case QG_COLUMN_TEXT:
        same = strcmp(qg_table_text(a, a_row, column), qg_table_text(b, b_row, column)) == 0;
        break;
    }
    if (!same)
        ck_abort_msg("%s/%s of row %lld and row %lld", info->group, info->name, (long long)a_row,
                     (long long)b_row);
}

// Every column but `run`, and the histograms.
static inline void assert_same_row(const qg_table *a, int64_t a_row, const qg_table *b,
                                   int64_t b_row) {
    const int64_t *a_rel, *a_ulp, *b_rel, *b_ulp;
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        if (i != QG_COLUMN_RUN)
            assert_same_value(a, a_row, b, b_row, (qg_column)i);
    bool has = qg_table_histograms(a, a_row, &a_rel, &a_ulp);
    ck_assert_int_eq(has, qg_table_histograms(b, b_row, &b_rel, &b_ulp));
    if (has) {
        ck_assert_mem_eq(a_rel, b_rel, QG_HIST_LOG2_BINS * sizeof *a_rel);
        ck_assert_mem_eq(a_ulp, b_ulp, QG_HIST_ULP_BINS * sizeof *a_ulp);
    }
}

static inline qg_table *read_back(const char *path, bool *complete) {
    qg_table *table;
    bool verified = false;
    ok(qg_results_read(path, &table, complete, &verified));
    ck_assert_msg(verified, "%s: the content digest does not match", path);
    return table;
}

static inline uint64_t digest_of(const qg_table *table) {
    uint64_t digest;
    ok(qg_table_content_digest(table, &digest));
    return digest;
}

// The whole file, to be freed.
static inline unsigned char *load_bytes(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void save_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
