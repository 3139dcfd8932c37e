// What result files hold beside columns: histograms, the plan, runs, operands and dumps.
// See results_read_internal.h.
#include <dump_internal.h>
#include <results_read_internal.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------- histograms

static qg_status read_bins(const qg_reader *r, hid_t group, const char *name, int64_t rows,
                           int64_t bins, int64_t **out) {
    qg_source s;
    qg_status status = qg_source_open_typed(r, group, "hist", name, QG_COLUMN_I64, 2, rows, &s);
    if (status != QG_OK)
        return status;
    if (s.columns != bins)
        status =
            qg_reader_bad(r, s.object, "%" PRId64 " bins instead of %" PRId64, s.columns, bins);
    else if (rows > 0 && !s.stored)
        status = qg_reader_bad(r, s.object, "never written");
    *out = NULL;
    if (status == QG_OK) {
        *out = malloc(((size_t)rows * (size_t)bins + 1) * sizeof **out);
        status = *out ? qg_source_read(r, &s, H5T_NATIVE_INT64, *out) : qg_reader_no_memory(r);
    }
    qg_source_close(&s);
    return status;
}

static qg_status store_histograms(qg_reader *r, const int64_t *rows, int64_t count,
                                  const int64_t *rel, const int64_t *ulp) {
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= r->table->rows || (i > 0 && rows[i] <= rows[i - 1]))
            return qg_reader_bad(r, "hist/row", "%" PRId64 " is not a row, or not in order",
                                 rows[i]);
        qg_status status = qg_table_set_histograms(r->table, rows[i], rel + i * QG_HIST_LOG2_BINS,
                                                   ulp + i * QG_HIST_ULP_BINS);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status read_histogram_rows(const qg_reader *r, hid_t group, int64_t *count,
                                     int64_t **out) {
    qg_source s;
    qg_status status = qg_source_open_typed(r, group, "hist", "row", QG_COLUMN_I64, 1, -1, &s);
    if (status != QG_OK)
        return status;
    *count = s.rows;
    if (s.rows > 0 && !s.stored)
        status = qg_reader_bad(r, s.object, "never written");
    if (status == QG_OK) {
        *out = malloc(((size_t)s.rows + 1) * sizeof **out);
        status = *out ? qg_source_read(r, &s, H5T_NATIVE_INT64, *out) : qg_reader_no_memory(r);
    }
    qg_source_close(&s);
    return status;
}

qg_status qg_reader_histograms(qg_reader *r) {
    hid_t group;
    int64_t count = 0, *rows = NULL, *rel = NULL, *ulp = NULL;
    qg_status status = qg_reader_open_group(r, r->file, "hist", &group);
    if (status != QG_OK)
        return status;
    status = read_histogram_rows(r, group, &count, &rows);
    if (status == QG_OK)
        status = read_bins(r, group, "rel", count, QG_HIST_LOG2_BINS, &rel);
    if (status == QG_OK)
        status = read_bins(r, group, "ulp", count, QG_HIST_ULP_BINS, &ulp);
    if (status == QG_OK)
        status = store_histograms(r, rows, count, rel, ulp);
    free(rows);
    free(rel);
    free(ulp);
    H5Gclose(group);
    return status;
}

// ------------------------------------------------------------------------ plan, runs, operands

static qg_status read_argv(qg_reader *r, hid_t group) {
    qg_source s;
    qg_status status = qg_source_open_typed(r, group, "plan", "argv", QG_COLUMN_TEXT, 1, -1, &s);
    if (status != QG_OK)
        return status;
    uint32_t *lines = s.stored ? calloc((size_t)s.rows + 1, sizeof *lines) : NULL;
    if (s.stored)
        status = lines ? qg_reader_texts(r, &s, lines) : qg_reader_no_memory(r);
    for (int64_t i = 0; s.stored && i < s.rows && status == QG_OK; i++)
        status = qg_table_add_argv(r->table, qg_text_at(r->table->texts, lines[i]));
    free(lines);
    qg_source_close(&s);
    return status;
}

// The text of a scalar dataset, to be freed.
static qg_status read_scalar_text(const qg_reader *r, hid_t group, const char *path,
                                  const char *name, char **out) {
    qg_source s;
    qg_status status = qg_source_open_typed(r, group, path, name, QG_COLUMN_TEXT, 0, -1, &s);
    if (status != QG_OK)
        return status;
    size_t width = H5Tget_size(s.type), wrong;
    *out = calloc(width + 1, 1);
    status = *out ? QG_OK : qg_reader_no_memory(r);
    if (status == QG_OK && s.stored)
        status = qg_source_read(r, &s, s.type, *out);
    if (status == QG_OK && !qg_text_is_utf8(*out, strlen(*out), &wrong))
        status = qg_reader_bad(r, s.object, "no UTF-8");
    if (status != QG_OK)
        free(*out);
    qg_source_close(&s);
    return status;
}

// Merged files say where their rows belong only if cases are missing.
static qg_status read_gaps(qg_reader *r, hid_t group) {
    if (H5Lexists(group, "order", H5P_DEFAULT) > 0)
        return qg_reader_order(r, group, "plan");
    int64_t *rows = malloc(((size_t)r->table->rows + 1) * sizeof *rows);
    if (!rows)
        return qg_reader_no_memory(r);
    for (int64_t i = 0; i < r->table->rows; i++)
        rows[i] = i;
    qg_table_derive_order(r->table, rows, r->table->order);
    free(rows);
    return QG_OK;
}

qg_status qg_reader_plan(qg_reader *r) {
    hid_t group;
    char *text;
    qg_status status = qg_reader_open_group(r, r->file, "plan", &group);
    if (status != QG_OK)
        return status;
    status = read_scalar_text(r, group, "plan", "text", &text);
    if (status == QG_OK) {
        status = qg_table_set_plan(r->table, text);
        free(text);
    }
    if (status == QG_OK)
        status = read_argv(r, group);
    if (status == QG_OK && r->merged)
        status = read_gaps(r, group);
    H5Gclose(group);
    return status;
}

typedef struct run_reader {
    qg_reader *r;
    int64_t run;
    qg_status status;
} run_reader;

static herr_t read_run_value(hid_t group, const char *name, const H5A_info_t *info, void *context) {
    (void)info;
    run_reader *into = context;
    char *value = qg_reader_text_attribute(into->r, group, name);
    if (!value)
        return 0; // not a text: not ours
    if (qg_table_set_run(into->r->table, into->run, name, value) != QG_OK)
        into->status =
            qg_reader_bad(into->r, "runs", "unusable attribute of run %" PRId64, into->run);
    free(value);
    return into->status == QG_OK ? 0 : -1;
}

static qg_status read_run(qg_reader *r, hid_t runs, const char *name) {
    hid_t group;
    run_reader into = {r, 0, QG_OK};
    qg_status status = qg_reader_open_group(r, runs, name, &group);
    if (status != QG_OK)
        return status;
    status = qg_table_add_run(r->table, &into.run);
    if (status == QG_OK &&
        H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, NULL, read_run_value, &into) < 0)
        status = into.status != QG_OK ? into.status
                                      : qg_reader_bad(r, "runs", "run %s is damaged", name);
    H5Gclose(group);
    return status;
}

qg_status qg_reader_runs(qg_reader *r) {
    hid_t runs;
    qg_status status = qg_reader_open_group(r, r->file, "runs", &runs);
    if (status != QG_OK)
        return status;
    char name[24] = "0";
    for (int64_t k = 1; status == QG_OK && H5Lexists(runs, name, H5P_DEFAULT) > 0; k++) {
        status = read_run(r, runs, name);
        snprintf(name, sizeof name, "%" PRId64, k);
    }
    H5Gclose(runs);
    return status;
}

qg_status qg_reader_check_runs(const qg_reader *r) {
    for (int64_t i = 0; i < r->table->rows; i++) {
        int64_t run = qg_table_i64(r->table, i, QG_COLUMN_RUN);
        if (run < -1 || run >= r->table->run_count)
            return qg_reader_bad(r, "cases/run",
                                 "row %" PRId64 " names run %" PRId64 " of %" PRId64, i, run,
                                 r->table->run_count);
    }
    return QG_OK;
}

static qg_status read_operand(qg_reader *r, hid_t group, uint64_t case_id, const char *path,
                              const char *name) {
    qg_source s;
    qg_status status = qg_source_open_typed(r, group, path, name, QG_COLUMN_U8, 1, -1, &s);
    if (status != QG_OK)
        return status;
    void *bytes = NULL;
    if (s.rows > 0 && !s.stored)
        status = qg_reader_bad(r, s.object, "never written");
    if (status == QG_OK) {
        bytes = malloc((size_t)s.rows + 1);
        status = bytes ? qg_source_read(r, &s, H5T_NATIVE_UINT8, bytes) : qg_reader_no_memory(r);
    }
    if (status == QG_OK)
        status = qg_table_add_operand(r->table, case_id, name, bytes, s.rows);
    if (status == QG_ERROR_ARGUMENT)
        status = qg_reader_bad(r, s.object, "unusable name");
    free(bytes);
    qg_source_close(&s);
    return status;
}

static qg_status read_operands_of(qg_reader *r, hid_t operands, const char *name) {
    hid_t group;
    qg_names list;
    char path[QG_SOURCE_OBJECT_SIZE];
    snprintf(path, sizeof path, "operands/%s", name);
    qg_status status = qg_reader_open_group(r, operands, name, &group);
    if (status != QG_OK)
        return status;
    status = qg_reader_list(r, group, path, &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++)
        status = read_operand(r, group, strtoull(name, NULL, 16), path, list.texts[i]);
    qg_names_free(&list);
    H5Gclose(group);
    return status;
}

qg_status qg_reader_operands(qg_reader *r) {
    hid_t group;
    qg_names list;
    qg_status status = qg_reader_open_group(r, r->file, "operands", &group);
    if (status != QG_OK)
        return status;
    status = qg_reader_list(r, group, "operands", &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++)
        if (strlen(list.texts[i]) == 16 && strspn(list.texts[i], "0123456789abcdef") == 16)
            status = read_operands_of(r, group, list.texts[i]);
    qg_names_free(&list);
    H5Gclose(group);
    return status;
}

// --------------------------------------------------------------------------------------- dumps

static bool dump_type(const qg_source *s, qg_column_type *type) {
    const qg_column_type types[] = {QG_COLUMN_TEXT, QG_COLUMN_F64, QG_COLUMN_I64, QG_COLUMN_U64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (qg_source_has_type(s, types[i])) {
            *type = types[i];
            return true;
        }
    return false;
}

static qg_status digest_dump_field(const qg_reader *r, qg_digest *digest, const qg_source *s,
                                   const char *name) {
    qg_dump_field field = {.name = name, .width = H5Tget_size(s->type)};
    if (s->rank != 1 || !dump_type(s, &field.type))
        return qg_reader_bad(r, s->object, "not a column of texts or numbers");
    if (s->rows > 0 && !s->stored)
        return qg_reader_bad(r, s->object, "never written");
    field.values = calloc((size_t)s->rows + 1, field.width);
    if (!field.values)
        return qg_reader_no_memory(r);
    qg_status status = qg_source_read(
        r, s, field.type == QG_COLUMN_TEXT ? s->type : qg_hdf5_number_type(field.type),
        field.values);
    if (status == QG_OK)
        qg_dump_digest_field(digest, &field, s->rows);
    free(field.values);
    return status;
}

static qg_status digest_dump(const qg_reader *r, qg_digest *digest, const char *name) {
    hid_t group;
    qg_names list;
    qg_status status = qg_reader_open_group(r, r->file, name, &group);
    if (status != QG_OK)
        return status;
    status = qg_reader_list(r, group, name, &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++) {
        qg_source s;
        status = qg_source_open(r, group, name, list.texts[i], &s);
        if (status != QG_OK)
            break;
        if (i == 0)
            qg_dump_digest_begin(digest, name, s.rows);
        status = digest_dump_field(r, digest, &s, list.texts[i]);
        qg_source_close(&s);
    }
    qg_names_free(&list);
    H5Gclose(group);
    return status;
}

qg_status qg_reader_dumps(qg_reader *r) {
    qg_digest *digest;
    qg_status status = qg_digest_create(&digest);
    for (int i = 0; i < QG_DUMP_COUNT && status == QG_OK; i++)
        if (!qg_dump_is_later(i) || H5Lexists(r->file, qg_dump_group(i), H5P_DEFAULT) > 0)
            status = digest_dump(r, digest, qg_dump_group(i));
    if (status == QG_OK) {
        r->table->dump_digest = qg_digest_value(digest);
        r->table->has_dump_digest = true;
    }
    qg_digest_free(digest);
    return status;
}
