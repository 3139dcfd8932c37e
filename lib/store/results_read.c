// Result files to tables: the file, its root attributes, the order in which the rest is read, and
// the verdict on its digests. See qg_results.h. What the objects of the file look like is known to
// the files beside it: see results_read_internal.h.
#include <results_read_internal.h>

#include <qg_digest.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_integer_attribute(hid_t object, const char *name, int64_t *value) {
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0)
        return false;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool is_integer = type >= 0 && H5Tget_class(type) == H5T_INTEGER &&
                      H5Sget_simple_extent_npoints(space) == 1 &&
                      H5Aread(attribute, H5T_NATIVE_INT64, value) >= 0;
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return is_integer;
}

static qg_status read_digest(const qg_reader *r, const char *name,
                             char out[QG_RESULTS_DIGEST_SIZE]) {
    char *text = qg_reader_text_attribute(r, r->file, name);
    bool is_digest = text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
    if (is_digest)
        memcpy(out, text, QG_RESULTS_DIGEST_SIZE);
    free(text);
    return is_digest ? QG_OK : qg_reader_bad(r, name, "this attribute is missing or no digest");
}

static qg_status read_root(qg_reader *r) {
    char *conventions = qg_reader_text_attribute(r, r->file, "Conventions");
    bool ours = conventions && strncmp(conventions, "quantgauge-", 11) == 0;
    free(conventions);
    if (!ours)
        return qg_reader_bad(r, "Conventions",
                             "not \"" QG_RESULTS_CONVENTIONS
                             "\": this is no result file of quantgauge");
    int64_t schema, flag;
    if (!read_integer_attribute(r->file, "schema_version", &schema))
        return qg_reader_bad(r, "schema_version", "this attribute is missing or no integer");
    if (schema != QG_RESULTS_SCHEMA)
        return qg_reader_bad(r, "schema_version",
                             "schema %" PRId64 ", but this version reads schema %d", schema,
                             QG_RESULTS_SCHEMA);
    if (!read_integer_attribute(r->file, "complete", &flag))
        return qg_reader_bad(r, "complete", "this attribute is missing or no integer");
    r->complete = flag != 0;
    qg_status status = read_digest(r, "plan_digest", r->plan_digest);
    return status == QG_OK ? read_digest(r, "content_digest", r->content_digest) : status;
}

// ---------------------------------------------------------------------------------------- file

static bool is_first_of_group(int column) {
    for (int i = 0; i < column; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group,
                   qg_column_describe((qg_column)column)->group) == 0)
            return false;
    return true;
}

static qg_status read_contents(qg_reader *r) {
    qg_status status = r->told ? QG_OK : read_root(r);
    if (status == QG_OK)
        status = qg_reader_rows(r);
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++)
        if (is_first_of_group(i))
            status = qg_reader_columns(r, qg_column_describe((qg_column)i)->group);
    if (status == QG_OK)
        status = qg_reader_histograms(r);
    if (status == QG_OK)
        status = qg_reader_plan(r);
    if (status == QG_OK && !r->told)
        status = qg_reader_runs(r);
    if (status == QG_OK)
        status = qg_reader_check_runs(r);
    if (status == QG_OK)
        status = qg_reader_operands(r);
    if (status == QG_OK && r->merged)
        status = qg_reader_dumps(r);
    return status;
}

static qg_status verify(const qg_reader *r, bool *verified) {
    const char *plan = qg_table_plan(r->table);
    char text[QG_RESULTS_DIGEST_SIZE];
    uint64_t digest;
    qg_status status = qg_table_content_digest(r->table, &digest);
    if (status != QG_OK)
        return status;
    snprintf(text, sizeof text, "%016" PRIx64, digest);
    *verified = strcmp(text, r->content_digest) == 0;
    snprintf(text, sizeof text, "%016" PRIx64, qg_digest_bytes(plan, strlen(plan)));
    *verified = *verified && strcmp(text, r->plan_digest) == 0;
    return QG_OK;
}

qg_status qg_reader_find_size(const char *path, int64_t *size) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0) {
        int reason = errno;
        if (file >= 0)
            close(file);
        return qg_fail(QG_ERROR_IO, "%s: cannot open: %s", path, strerror(reason));
    }
    close(file);
    if (!S_ISREG(info.st_mode))
        return qg_fail(QG_ERROR_IO, "%s: cannot open: it is no regular file", path);
    *size = info.st_size;
    return QG_OK;
}

static qg_status read_open(qg_reader *r) {
    hid_t access = qg_hdf5_file_access();
    r->file = H5Fopen(r->path, H5F_ACC_RDONLY, access);
    char reason[QG_HDF5_REASON_SIZE] = "";
    if (r->file < 0)
        qg_hdf5_reason(reason);
    H5Pclose(access);
    if (r->file < 0)
        return qg_fail(QG_ERROR_DATA, "%s: not an HDF5 file, or damaged: %s", r->path, reason);
    qg_status status = read_contents(r);
    H5Fclose(r->file);
    return status;
}

qg_status qg_reader_file(qg_reader *r) {
    qg_status status = qg_reader_find_size(r->path, &r->file_size);
    if (status == QG_OK && !r->table)
        status = qg_table_create(&r->table);
    if (status == QG_OK) {
        qg_hdf5_silence saved = qg_hdf5_silence_begin();
        status = read_open(r);
        qg_hdf5_silence_restore(saved);
    }
    return status;
}

// Hands over what was read, or frees it.
static qg_status finish(qg_reader *r, qg_status status, qg_table **out, bool *complete,
                        bool *verified) {
    if (status == QG_OK && verified)
        status = verify(r, verified);
    if (status != QG_OK) {
        qg_table_free(r->table);
        return status;
    }
    if (complete)
        *complete = r->complete;
    *out = r->table;
    return QG_OK;
}

qg_status qg_results_read_here(const char *path, qg_table **out, bool *complete, bool *verified) {
    qg_reader r = {.path = path};
    *out = NULL;
    return finish(&r, qg_reader_file(&r), out, complete, verified);
}

qg_status qg_results_read(const char *path, qg_table **out, bool *complete, bool *verified) {
    qg_reader r = {.path = path};
    *out = NULL;
    qg_status status = qg_table_create(&r.table);
    if (status == QG_OK)
        status = qg_reader_ask_child(&r);
    if (status == QG_OK)
        status = qg_reader_file(&r);
    return finish(&r, status, out, complete, verified);
}
