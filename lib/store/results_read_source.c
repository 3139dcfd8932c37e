// Groups, attributes and datasets of a foreign file, opened and checked: only hard links are
// followed, types, ranks and lengths are checked, and nothing is accepted that the file could not
// hold even compressed. Knows nothing of the layout of result files.
#include <results_read_internal.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// deflate shrinks at most 1032 times.
enum { LARGEST_RATIO = 1100, FIRST_FOREIGN_FILTER = 256 };

qg_status qg_reader_bad(const qg_reader *r, const char *object, const char *format, ...) {
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return qg_fail(QG_ERROR_DATA, "%s: %s: %s", r->path, object, what);
}

qg_status qg_reader_no_memory(const qg_reader *r) {
    return qg_fail(QG_ERROR_MEMORY, "%s: no memory for its results", r->path);
}

// --------------------------------------------------------------------------------------- links

// Soft and external links could lead anywhere.
static bool has_hard_link(hid_t group, const char *name) {
    H5L_info_t info;
    return H5Lexists(group, name, H5P_DEFAULT) > 0 &&
           H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

qg_status qg_reader_open_group(const qg_reader *r, hid_t parent, const char *name, hid_t *out) {
    *out = has_hard_link(parent, name) ? H5Gopen2(parent, name, H5P_DEFAULT) : -1;
    return *out >= 0 ? QG_OK : qg_reader_bad(r, name, "this group is missing or unreadable");
}

static herr_t collect_name(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    (void)group;
    qg_names *list = context;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    char **texts = realloc(list->texts, ((size_t)list->count + 1) * sizeof *texts);
    if (texts)
        list->texts = texts;
    char *copy = texts ? strdup(name) : NULL;
    if (!copy) {
        list->failed = true;
        return -1;
    }
    list->texts[list->count++] = copy;
    return 0;
}

void qg_names_free(qg_names *list) {
    for (int64_t i = 0; i < list->count; i++)
        free(list->texts[i]);
    free(list->texts);
    *list = (qg_names){0};
}

qg_status qg_reader_list(const qg_reader *r, hid_t group, const char *object, qg_names *out) {
    *out = (qg_names){0};
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, collect_name, out) >= 0)
        return QG_OK;
    qg_status status =
        out->failed ? qg_reader_no_memory(r) : qg_reader_bad(r, object, "cannot list this group");
    qg_names_free(out);
    return status;
}

// ---------------------------------------------------------------------------------- attributes

static char *read_variable_text(hid_t attribute, hid_t type) {
    char *value = NULL, *copy = NULL;
    if (H5Aread(attribute, type, &value) >= 0 && value)
        copy = strdup(value);
    H5free_memory(value);
    return copy;
}

static char *read_fixed_text(const qg_reader *r, hid_t attribute, hid_t type) {
    size_t size = H5Tget_size(type);
    if (size > (uint64_t)r->file_size)
        return NULL;
    char *copy = calloc(size + 1, 1);
    if (copy && H5Aread(attribute, type, copy) < 0) {
        free(copy);
        copy = NULL;
    }
    return copy;
}

char *qg_reader_text_attribute(const qg_reader *r, hid_t object, const char *name) {
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
    if (attribute < 0)
        return NULL;
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    char *text = NULL;
    if (type >= 0 && H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1)
        text = H5Tis_variable_str(type) > 0 ? read_variable_text(attribute, type)
                                            : read_fixed_text(r, attribute, type);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

// ------------------------------------------------------------------------------------ datasets

void qg_source_close(qg_source *s) {
    if (s->space >= 0)
        H5Sclose(s->space);
    if (s->type >= 0)
        H5Tclose(s->type);
    if (s->id >= 0)
        H5Dclose(s->id);
}

// Data outside the file, or behind plugins, is not read.
static bool properties_are_plain(const qg_source *s, hid_t properties, hsize_t chunk[2]) {
    H5D_layout_t layout = H5Pget_layout(properties);
    chunk[0] = chunk[1] = 0;
    if (layout == H5D_CHUNKED && H5Pget_chunk(properties, 2, chunk) != s->rank)
        return false;
    if (layout != H5D_CHUNKED && layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)
        return false;
    if (H5Pget_external_count(properties) != 0)
        return false;
    int filters = H5Pget_nfilters(properties);
    for (int i = 0; i < filters; i++) {
        unsigned flags, config;
        size_t values = 0;
        H5Z_filter_t filter =
            H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        if (filter < 0 || filter >= FIRST_FOREIGN_FILTER)
            return false;
    }
    return filters >= 0;
}

static bool multiply(uint64_t a, uint64_t b, uint64_t *out) {
    if (b != 0 && a > (uint64_t)INT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

// Whether the file can hold the dataset, and no chunk is larger than what it can hold.
static bool size_is_plausible(const qg_reader *r, const qg_source *s, const hsize_t chunk[2]) {
    uint64_t bytes, chunk_bytes = chunk[0], stored = H5Dget_storage_size(s->id);
    uint64_t element = H5Tget_size(s->type), limit = stored;
    if (!multiply((uint64_t)s->rows, (uint64_t)s->columns, &bytes) ||
        !multiply(bytes, element, &bytes))
        return false;
    if (stored > (uint64_t)r->file_size)
        return false;
    if (chunk[0] > 0) {
        if (s->rank == 2 && !multiply(chunk_bytes, chunk[1], &chunk_bytes))
            return false;
        if (!multiply(chunk_bytes, element, &chunk_bytes) ||
            !multiply(stored, LARGEST_RATIO, &limit))
            return false;
    }
    return !s->stored || (bytes <= limit && chunk_bytes <= limit);
}

static qg_status check_source(const qg_reader *r, qg_source *s) {
    hsize_t dims[2] = {0, 1}, chunk[2];
    s->rank = H5Sget_simple_extent_ndims(s->space);
    if (H5Sget_simple_extent_type(s->space) == H5S_SCALAR)
        dims[0] = 1;
    else if (H5Sget_simple_extent_type(s->space) != H5S_SIMPLE || s->rank < 1 || s->rank > 2 ||
             H5Sget_simple_extent_dims(s->space, dims, NULL) < 0)
        return qg_reader_bad(r, s->object, "neither one- nor two-dimensional");
    if (dims[0] > INT64_MAX || dims[1] > INT64_MAX)
        return qg_reader_bad(r, s->object, "too large");
    s->rows = (int64_t)dims[0];
    s->columns = (int64_t)dims[1];
    hid_t properties = H5Dget_create_plist(s->id);
    bool plain = properties >= 0 && properties_are_plain(s, properties, chunk);
    H5Pclose(properties);
    if (!plain)
        return qg_reader_bad(r, s->object, "stored in a way that result files do not use");
    s->chunk_rows = chunk[0] > INT64_MAX ? 0 : (int64_t)chunk[0];
    s->stored = s->rows > 0 && H5Dget_storage_size(s->id) > 0;
    return size_is_plausible(r, s, chunk)
               ? QG_OK
               : qg_reader_bad(r, s->object, "larger than the file can hold");
}

qg_status qg_source_open(const qg_reader *r, hid_t group, const char *path, const char *name,
                         qg_source *out) {
    *out = (qg_source){-1, -1, -1, 0, 0, 1, 0, false, {0}};
    snprintf(out->object, sizeof out->object, "%s/%s", path, name);
    if (!has_hard_link(group, name))
        return qg_reader_bad(r, out->object, "this dataset is missing");
    out->id = H5Dopen2(group, name, H5P_DEFAULT);
    if (out->id < 0)
        return qg_reader_bad(r, out->object, "this dataset cannot be opened");
    out->type = H5Dget_type(out->id);
    out->space = H5Dget_space(out->id);
    qg_status status = out->type >= 0 && out->space >= 0 ? check_source(r, out)
                                                         : qg_reader_bad(r, out->object, "damaged");
    if (status != QG_OK)
        qg_source_close(out);
    return status;
}

bool qg_source_has_type(const qg_source *s, qg_column_type type) {
    H5T_class_t class = H5Tget_class(s->type);
    size_t size = H5Tget_size(s->type);
    switch (type) {
    case QG_COLUMN_F64: return class == H5T_FLOAT && size == 8;
    case QG_COLUMN_I64:
        return class == H5T_INTEGER && size == 8 && H5Tget_sign(s->type) == H5T_SGN_2;
    case QG_COLUMN_U64:
        return class == H5T_INTEGER && size == 8 && H5Tget_sign(s->type) == H5T_SGN_NONE;
    case QG_COLUMN_U8:
        return class == H5T_INTEGER && size == 1 && H5Tget_sign(s->type) == H5T_SGN_NONE;
    case QG_COLUMN_TEXT: return class == H5T_STRING && H5Tis_variable_str(s->type) == 0;
    }
    return false;
}

static const char *type_text(qg_column_type type) {
    switch (type) {
    case QG_COLUMN_F64: return "float64";
    case QG_COLUMN_I64: return "int64";
    case QG_COLUMN_U64: return "uint64";
    case QG_COLUMN_U8: return "uint8";
    case QG_COLUMN_TEXT: return "fixed-length text";
    }
    return "?";
}

qg_status qg_source_open_typed(const qg_reader *r, hid_t group, const char *path, const char *name,
                               qg_column_type type, int rank, int64_t rows, qg_source *out) {
    qg_status status = qg_source_open(r, group, path, name, out);
    if (status != QG_OK)
        return status;
    if (!qg_source_has_type(out, type))
        status = qg_reader_bad(r, out->object, "not of type %s", type_text(type));
    else if (out->rank != rank)
        status = qg_reader_bad(r, out->object, "%d-dimensional instead of %d", out->rank, rank);
    else if (rows >= 0 && out->rows != rows)
        status =
            qg_reader_bad(r, out->object, "%" PRId64 " rows instead of %" PRId64, out->rows, rows);
    if (status != QG_OK)
        qg_source_close(out);
    return status;
}

qg_status qg_source_read(const qg_reader *r, const qg_source *s, hid_t type, void *to) {
    if (s->rows == 0 || s->columns == 0 ||
        H5Dread(s->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0)
        return QG_OK;
    char reason[QG_HDF5_REASON_SIZE];
    qg_hdf5_reason(reason);
    return qg_reader_bad(r, s->object, "cannot read: %s", reason);
}
