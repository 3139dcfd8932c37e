// Result files to tables. See qg_results.h.
//
// Files are foreign: only hard links to datasets inside the file are followed, types, ranks and
// lengths are checked, and nothing is allocated that the file could not hold even compressed. HDF5
// itself (1.10.8) loops for ever or overruns its buffers on some damaged files, mostly where it reads
// variable-length texts. So a child process reads first, and what kills it is not read here; and
// it tells the variable-length texts, so that they are not read here at all.
#include <dump_internal.h>
#include <results_hdf5_internal.h>
#include <table_internal.h>
#include <tensor_reader.h>

#include <qg_digest.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLAB_BYTES = 1 << 20, OBJECT_SIZE = 200, DIGEST_SIZE = 17 };
// deflate shrinks at most 1032 times.
enum { LARGEST_RATIO = 1100, FIRST_FOREIGN_FILTER = 256 };

typedef struct reader {
    const char *path;
    int64_t file_size;
    hid_t file;
    qg_table *table;
    bool merged;
    bool told; // the texts of attributes are known from the child: digests here, runs in the table
    bool complete;
    char plan_digest[DIGEST_SIZE], content_digest[DIGEST_SIZE];
} reader;

// A dataset of the file, checked.
typedef struct source {
    hid_t id, type, space;
    int rank;
    int64_t rows, columns; // columns: 1 unless it is two-dimensional
    int64_t chunk_rows;    // 0 if it is not chunked
    bool stored;           // false: never written, every value is missing
    char object[OBJECT_SIZE];
} source;

#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
static qg_status bad(const reader *r, const char *object, const char *format, ...) {
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return qg_fail(QG_ERROR_DATA, "%s: %s: %s", r->path, object, what);
}

static qg_status no_memory(const reader *r) {
    return qg_fail(QG_ERROR_MEMORY, "%s: no memory for its results", r->path);
}

// --------------------------------------------------------------------------------------- links

// Soft and external links could lead anywhere.
static bool has_hard_link(hid_t group, const char *name) {
    H5L_info_t info;
    return H5Lexists(group, name, H5P_DEFAULT) > 0 &&
           H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

static qg_status open_group(const reader *r, hid_t parent, const char *name, hid_t *out) {
    *out = has_hard_link(parent, name) ? H5Gopen2(parent, name, H5P_DEFAULT) : -1;
    return *out >= 0 ? QG_OK : bad(r, name, "this group is missing or unreadable");
}

typedef struct names {
    char **texts;
    int64_t count;
    bool failed;
} names;

static herr_t collect_name(hid_t group, const char *name, const H5L_info_t *info, void *context) {
    (void)group;
    names *list = context;
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

static void free_names(names *list) {
    for (int64_t i = 0; i < list->count; i++)
        free(list->texts[i]);
    free(list->texts);
    *list = (names){0};
}

// The hard links of a group in alphabetical order.
static qg_status list_names(const reader *r, hid_t group, const char *object, names *out) {
    *out = (names){0};
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, NULL, collect_name, out) >= 0)
        return QG_OK;
    qg_status status = out->failed ? no_memory(r) : bad(r, object, "cannot list this group");
    free_names(out);
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

static char *read_fixed_text(const reader *r, hid_t attribute, hid_t type) {
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

// The text of a scalar attribute, to be freed; NULL if it is none.
static char *read_text_attribute(const reader *r, hid_t object, const char *name) {
    hid_t attribute =
        H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
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

static bool read_integer_attribute(hid_t object, const char *name, int64_t *value) {
    hid_t attribute =
        H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1;
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

static qg_status read_digest(const reader *r, const char *name, char out[DIGEST_SIZE]) {
    char *text = read_text_attribute(r, r->file, name);
    bool is_digest = text && strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
    if (is_digest)
        memcpy(out, text, DIGEST_SIZE);
    free(text);
    return is_digest ? QG_OK : bad(r, name, "this attribute is missing or no digest");
}

static qg_status read_root(reader *r) {
    char *conventions = read_text_attribute(r, r->file, "Conventions");
    bool ours = conventions && strncmp(conventions, "quantgauge-", 11) == 0;
    free(conventions);
    if (!ours)
        return bad(r, "Conventions", "not \"" QG_RESULTS_CONVENTIONS
                                     "\": this is no result file of quantgauge");
    int64_t schema, flag;
    if (!read_integer_attribute(r->file, "schema_version", &schema))
        return bad(r, "schema_version", "this attribute is missing or no integer");
    if (schema != QG_RESULTS_SCHEMA)
        return bad(r, "schema_version", "schema %" PRId64 ", but this version reads schema %d",
                   schema, QG_RESULTS_SCHEMA);
    if (!read_integer_attribute(r->file, "complete", &flag))
        return bad(r, "complete", "this attribute is missing or no integer");
    r->complete = flag != 0;
    qg_status status = read_digest(r, "plan_digest", r->plan_digest);
    return status == QG_OK ? read_digest(r, "content_digest", r->content_digest) : status;
}

// ------------------------------------------------------------------------------------ datasets

static void close_source(source *s) {
    if (s->space >= 0)
        H5Sclose(s->space);
    if (s->type >= 0)
        H5Tclose(s->type);
    if (s->id >= 0)
        H5Dclose(s->id);
}

// Data outside the file, or behind plugins, is not read.
static bool properties_are_plain(const source *s, hid_t properties, hsize_t chunk[2]) {
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
        H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL, 0,
                                             NULL, &config);
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
static bool size_is_plausible(const reader *r, const source *s, const hsize_t chunk[2]) {
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

static qg_status check_source(const reader *r, source *s) {
    hsize_t dims[2] = {0, 1}, chunk[2];
    s->rank = H5Sget_simple_extent_ndims(s->space);
    if (H5Sget_simple_extent_type(s->space) == H5S_SCALAR)
        dims[0] = 1;
    else if (H5Sget_simple_extent_type(s->space) != H5S_SIMPLE || s->rank < 1 || s->rank > 2 ||
             H5Sget_simple_extent_dims(s->space, dims, NULL) < 0)
        return bad(r, s->object, "neither one- nor two-dimensional");
    if (dims[0] > INT64_MAX || dims[1] > INT64_MAX)
        return bad(r, s->object, "too large");
    s->rows = (int64_t)dims[0];
    s->columns = (int64_t)dims[1];
    hid_t properties = H5Dget_create_plist(s->id);
    bool plain = properties >= 0 && properties_are_plain(s, properties, chunk);
    H5Pclose(properties);
    if (!plain)
        return bad(r, s->object, "stored in a way that result files do not use");
    s->chunk_rows = chunk[0] > INT64_MAX ? 0 : (int64_t)chunk[0];
    s->stored = s->rows > 0 && H5Dget_storage_size(s->id) > 0;
    return size_is_plausible(r, s, chunk) ? QG_OK
                                          : bad(r, s->object, "larger than the file can hold");
}

// Opens dataset `name` of a group; `path` is the group's, for messages.
static qg_status open_source(const reader *r, hid_t group, const char *path, const char *name,
                             source *out) {
    *out = (source){-1, -1, -1, 0, 0, 1, 0, false, {0}};
    snprintf(out->object, sizeof out->object, "%s/%s", path, name);
    if (!has_hard_link(group, name))
        return bad(r, out->object, "this dataset is missing");
    out->id = H5Dopen2(group, name, H5P_DEFAULT);
    if (out->id < 0)
        return bad(r, out->object, "this dataset cannot be opened");
    out->type = H5Dget_type(out->id);
    out->space = H5Dget_space(out->id);
    qg_status status = out->type >= 0 && out->space >= 0 ? check_source(r, out)
                                                         : bad(r, out->object, "damaged");
    if (status != QG_OK)
        close_source(out);
    return status;
}

static bool has_type(const source *s, qg_column_type type) {
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
    case QG_COLUMN_TEXT:
        return class == H5T_STRING && H5Tis_variable_str(s->type) == 0;
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

static hid_t memory_type(qg_column_type type) {
    switch (type) {
    case QG_COLUMN_F64: return H5T_NATIVE_DOUBLE;
    case QG_COLUMN_I64: return H5T_NATIVE_INT64;
    case QG_COLUMN_U64: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_UINT8;
    }
}

// Opens a dataset that must have a type, a rank and, unless rows is -1, a length.
static qg_status open_typed(const reader *r, hid_t group, const char *path, const char *name,
                            qg_column_type type, int rank, int64_t rows, source *out) {
    qg_status status = open_source(r, group, path, name, out);
    if (status != QG_OK)
        return status;
    if (!has_type(out, type))
        status = bad(r, out->object, "not of type %s", type_text(type));
    else if (out->rank != rank)
        status = bad(r, out->object, "%d-dimensional instead of %d", out->rank, rank);
    else if (rows >= 0 && out->rows != rows)
        status = bad(r, out->object, "%" PRId64 " rows instead of %" PRId64, out->rows, rows);
    if (status != QG_OK)
        close_source(out);
    return status;
}

static qg_status read_all(const reader *r, const source *s, hid_t type, void *to) {
    if (s->rows == 0 || s->columns == 0 ||
        H5Dread(s->id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) >= 0)
        return QG_OK;
    char reason[QG_HDF5_REASON_SIZE];
    qg_hdf5_reason(reason);
    return bad(r, s->object, "cannot read: %s", reason);
}

static qg_status read_slab(const reader *r, const source *s, int64_t begin, int64_t count,
                           char *buffer) {
    hsize_t start = (hsize_t)begin, extent = (hsize_t)count;
    hid_t memory = H5Screate_simple(1, &extent, NULL);
    bool fits = memory >= 0 &&
                H5Sselect_hyperslab(s->space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0 &&
                H5Dread(s->id, s->type, memory, s->space, H5P_DEFAULT, buffer) >= 0;
    char reason[QG_HDF5_REASON_SIZE] = "";
    if (!fits)
        qg_hdf5_reason(reason);
    H5Sclose(memory);
    return fits ? QG_OK : bad(r, s->object, "cannot read: %s", reason);
}

// -------------------------------------------------------------------------------------- texts

// Length of a text in a field of `width` bytes, padded with zeros or (H5T_STR_SPACEPAD) spaces.
static size_t text_length(const source *s, const char *text, size_t width) {
    size_t length = strnlen(text, width);
    if (H5Tget_strpad(s->type) == H5T_STR_SPACEPAD)
        while (length > 0 && text[length - 1] == ' ')
            length--;
    return length;
}

static qg_status intern_rows(reader *r, const source *s, const char *buffer, int64_t begin,
                             int64_t count, uint32_t *to) {
    size_t width = H5Tget_size(s->type), wrong;
    for (int64_t i = 0; i < count; i++) {
        const char *text = buffer + (size_t)i * width;
        if (i > 0 && memcmp(text, text - width, width) == 0) { // most columns repeat themselves
            to[begin + i] = to[begin + i - 1];
            continue;
        }
        size_t length = text_length(s, text, width);
        if (!qg_text_is_utf8(text, length, &wrong))
            return bad(r, s->object, "row %" PRId64 " is no UTF-8", begin + i);
        qg_status status = qg_text_intern(r->table->texts, text, length, &to[begin + i]);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status read_texts(reader *r, const source *s, uint32_t *to) {
    int64_t width = (int64_t)H5Tget_size(s->type);
    if (width > QG_RESULTS_TEXT_MAX)
        return bad(r, s->object, "texts of %" PRId64 " bytes", width);
    int64_t slab = width < SLAB_BYTES ? SLAB_BYTES / width : 1;
    if (s->chunk_rows > 0 && s->chunk_rows < slab)
        slab -= slab % s->chunk_rows; // whole chunks: each is decompressed once
    slab = slab < s->rows ? slab : s->rows;
    char *buffer = malloc((size_t)slab * (size_t)width);
    if (!buffer)
        return no_memory(r);
    qg_status status = QG_OK;
    for (int64_t begin = 0; begin < s->rows && status == QG_OK; begin += slab) {
        int64_t count = s->rows - begin < slab ? s->rows - begin : slab;
        status = read_slab(r, s, begin, count, buffer);
        if (status == QG_OK)
            status = intern_rows(r, s, buffer, begin, count, to);
    }
    free(buffer);
    return status;
}

// The text of a scalar dataset, to be freed.
static qg_status read_scalar_text(const reader *r, hid_t group, const char *path,
                                  const char *name, char **out) {
    source s;
    qg_status status = open_typed(r, group, path, name, QG_COLUMN_TEXT, 0, -1, &s);
    if (status != QG_OK)
        return status;
    size_t width = H5Tget_size(s.type), wrong;
    *out = calloc(width + 1, 1);
    status = *out ? QG_OK : no_memory(r);
    if (status == QG_OK && s.stored)
        status = read_all(r, &s, s.type, *out);
    if (status == QG_OK && !qg_text_is_utf8(*out, strlen(*out), &wrong))
        status = bad(r, s.object, "no UTF-8");
    if (status != QG_OK)
        free(*out);
    close_source(&s);
    return status;
}

// ------------------------------------------------------------------------------------- columns

static qg_status read_column(reader *r, hid_t group, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    if (!r->merged && H5Lexists(group, info->name, H5P_DEFAULT) == 0)
        return QG_OK; // parts leave out columns without values
    source s;
    qg_status status = open_typed(r, group, info->group, info->name, info->type, 1,
                                  r->table->rows, &s);
    if (status != QG_OK)
        return status;
    void *elements;
    if (s.stored) {
        status = qg_table_column(r->table, column, &elements);
        if (status == QG_OK)
            status = info->type == QG_COLUMN_TEXT
                         ? read_texts(r, &s, elements)
                         : read_all(r, &s, memory_type(info->type), elements);
    }
    close_source(&s);
    return status;
}

static qg_status read_columns(reader *r, const char *name) {
    if (!r->merged && H5Lexists(r->file, name, H5P_DEFAULT) == 0)
        return QG_OK;
    hid_t group;
    qg_status status = open_group(r, r->file, name, &group);
    if (status != QG_OK)
        return status;
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group, name) == 0)
            status = read_column(r, group, (qg_column)i);
    H5Gclose(group);
    return status;
}

static bool is_first_of_group(int column) {
    for (int i = 0; i < column; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group,
                   qg_column_describe((qg_column)column)->group) == 0)
            return false;
    return true;
}

static qg_status read_order(reader *r, hid_t group, const char *path) {
    source s;
    qg_status status =
        open_typed(r, group, path, "order", QG_COLUMN_I64, 1, r->table->rows, &s);
    if (status != QG_OK)
        return status;
    if (s.rows > 0 && !s.stored)
        status = bad(r, s.object, "never written");
    if (status == QG_OK)
        status = read_all(r, &s, H5T_NATIVE_INT64, r->table->order);
    close_source(&s);
    return status;
}

// The number of rows is that of the case ids, which are always stored: the bound of all the rest.
static qg_status read_rows(reader *r) {
    hid_t cases;
    qg_status status = open_group(r, r->file, "cases", &cases);
    if (status != QG_OK)
        return status;
    source s;
    r->merged = H5Lexists(cases, "order", H5P_DEFAULT) == 0;
    status = open_typed(r, cases, "cases", "case_id", QG_COLUMN_U64, 1, -1, &s);
    if (status == QG_OK) {
        if (s.rows > 0 && !s.stored)
            status = bad(r, s.object, "never written");
        if (status == QG_OK)
            status = qg_table_reserve(r->table, s.rows);
        if (status == QG_OK)
            r->table->rows = s.rows;
        close_source(&s);
    }
    if (status == QG_OK && !r->merged)
        status = read_order(r, cases, "cases");
    H5Gclose(cases);
    return status;
}

// ---------------------------------------------------------------------------------- histograms

static qg_status read_bins(const reader *r, hid_t group, const char *name, int64_t rows,
                           int64_t bins, int64_t **out) {
    source s;
    qg_status status = open_typed(r, group, "hist", name, QG_COLUMN_I64, 2, rows, &s);
    if (status != QG_OK)
        return status;
    if (s.columns != bins)
        status = bad(r, s.object, "%" PRId64 " bins instead of %" PRId64, s.columns, bins);
    else if (rows > 0 && !s.stored)
        status = bad(r, s.object, "never written");
    *out = NULL;
    if (status == QG_OK) {
        *out = malloc(((size_t)rows * (size_t)bins + 1) * sizeof **out);
        status = *out ? read_all(r, &s, H5T_NATIVE_INT64, *out) : no_memory(r);
    }
    close_source(&s);
    return status;
}

static qg_status store_histograms(reader *r, const int64_t *rows, int64_t count,
                                  const int64_t *rel, const int64_t *ulp) {
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < 0 || rows[i] >= r->table->rows || (i > 0 && rows[i] <= rows[i - 1]))
            return bad(r, "hist/row", "%" PRId64 " is not a row, or not in order", rows[i]);
        qg_status status = qg_table_set_histograms(r->table, rows[i], rel + i * QG_HIST_LOG2_BINS,
                                                   ulp + i * QG_HIST_ULP_BINS);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status read_histogram_rows(const reader *r, hid_t group, int64_t *count,
                                     int64_t **out) {
    source s;
    qg_status status = open_typed(r, group, "hist", "row", QG_COLUMN_I64, 1, -1, &s);
    if (status != QG_OK)
        return status;
    *count = s.rows;
    if (s.rows > 0 && !s.stored)
        status = bad(r, s.object, "never written");
    if (status == QG_OK) {
        *out = malloc(((size_t)s.rows + 1) * sizeof **out);
        status = *out ? read_all(r, &s, H5T_NATIVE_INT64, *out) : no_memory(r);
    }
    close_source(&s);
    return status;
}

static qg_status read_histograms(reader *r) {
    hid_t group;
    int64_t count = 0, *rows = NULL, *rel = NULL, *ulp = NULL;
    qg_status status = open_group(r, r->file, "hist", &group);
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

static qg_status read_argv(reader *r, hid_t group) {
    source s;
    qg_status status = open_typed(r, group, "plan", "argv", QG_COLUMN_TEXT, 1, -1, &s);
    if (status != QG_OK)
        return status;
    uint32_t *lines = s.stored ? calloc((size_t)s.rows + 1, sizeof *lines) : NULL;
    if (s.stored)
        status = lines ? read_texts(r, &s, lines) : no_memory(r);
    for (int64_t i = 0; s.stored && i < s.rows && status == QG_OK; i++)
        status = qg_table_add_argv(r->table, qg_text_at(r->table->texts, lines[i]));
    free(lines);
    close_source(&s);
    return status;
}

// Merged files say where their rows belong only if cases are missing.
static qg_status read_gaps(reader *r, hid_t group) {
    if (H5Lexists(group, "order", H5P_DEFAULT) > 0)
        return read_order(r, group, "plan");
    int64_t *rows = malloc(((size_t)r->table->rows + 1) * sizeof *rows);
    if (!rows)
        return no_memory(r);
    for (int64_t i = 0; i < r->table->rows; i++)
        rows[i] = i;
    qg_table_derive_order(r->table, rows, r->table->order);
    free(rows);
    return QG_OK;
}

static qg_status read_plan(reader *r) {
    hid_t group;
    char *text;
    qg_status status = open_group(r, r->file, "plan", &group);
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
    reader *r;
    int64_t run;
    qg_status status;
} run_reader;

static herr_t read_run_value(hid_t group, const char *name, const H5A_info_t *info,
                             void *context) {
    (void)info;
    run_reader *into = context;
    char *value = read_text_attribute(into->r, group, name);
    if (!value)
        return 0; // not a text: not ours
    if (qg_table_set_run(into->r->table, into->run, name, value) != QG_OK)
        into->status = bad(into->r, "runs", "unusable attribute of run %" PRId64, into->run);
    free(value);
    return into->status == QG_OK ? 0 : -1;
}

static qg_status read_run(reader *r, hid_t runs, const char *name) {
    hid_t group;
    run_reader into = {r, 0, QG_OK};
    qg_status status = open_group(r, runs, name, &group);
    if (status != QG_OK)
        return status;
    status = qg_table_add_run(r->table, &into.run);
    if (status == QG_OK &&
        H5Aiterate2(group, H5_INDEX_NAME, H5_ITER_INC, NULL, read_run_value, &into) < 0)
        status = into.status != QG_OK ? into.status : bad(r, "runs", "run %s is damaged", name);
    H5Gclose(group);
    return status;
}

static qg_status read_runs(reader *r) {
    hid_t runs;
    qg_status status = open_group(r, r->file, "runs", &runs);
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

static qg_status check_runs(const reader *r) {
    for (int64_t i = 0; i < r->table->rows; i++) {
        int64_t run = qg_table_i64(r->table, i, QG_COLUMN_RUN);
        if (run < -1 || run >= r->table->run_count)
            return bad(r, "cases/run", "row %" PRId64 " names run %" PRId64 " of %" PRId64, i, run,
                       r->table->run_count);
    }
    return QG_OK;
}

static qg_status read_operand(reader *r, hid_t group, uint64_t case_id, const char *path,
                              const char *name) {
    source s;
    qg_status status = open_typed(r, group, path, name, QG_COLUMN_U8, 1, -1, &s);
    if (status != QG_OK)
        return status;
    void *bytes = NULL;
    if (s.rows > 0 && !s.stored)
        status = bad(r, s.object, "never written");
    if (status == QG_OK) {
        bytes = malloc((size_t)s.rows + 1);
        status = bytes ? read_all(r, &s, H5T_NATIVE_UINT8, bytes) : no_memory(r);
    }
    if (status == QG_OK)
        status = qg_table_add_operand(r->table, case_id, name, bytes, s.rows);
    if (status == QG_ERROR_ARGUMENT)
        status = bad(r, s.object, "unusable name");
    free(bytes);
    close_source(&s);
    return status;
}

static qg_status read_operands_of(reader *r, hid_t operands, const char *name) {
    hid_t group;
    names list;
    char path[OBJECT_SIZE];
    snprintf(path, sizeof path, "operands/%s", name);
    qg_status status = open_group(r, operands, name, &group);
    if (status != QG_OK)
        return status;
    status = list_names(r, group, path, &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++)
        status = read_operand(r, group, strtoull(name, NULL, 16), path, list.texts[i]);
    free_names(&list);
    H5Gclose(group);
    return status;
}

static qg_status read_operands(reader *r) {
    hid_t group;
    names list;
    qg_status status = open_group(r, r->file, "operands", &group);
    if (status != QG_OK)
        return status;
    status = list_names(r, group, "operands", &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++)
        if (strlen(list.texts[i]) == 16 && strspn(list.texts[i], "0123456789abcdef") == 16)
            status = read_operands_of(r, group, list.texts[i]);
    free_names(&list);
    H5Gclose(group);
    return status;
}

// --------------------------------------------------------------------------------------- dumps

static bool dump_type(const source *s, qg_column_type *type) {
    const qg_column_type types[] = {QG_COLUMN_TEXT, QG_COLUMN_F64, QG_COLUMN_I64, QG_COLUMN_U64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (has_type(s, types[i])) {
            *type = types[i];
            return true;
        }
    return false;
}

static qg_status digest_dump_field(const reader *r, qg_digest *digest, const source *s,
                                   const char *name) {
    qg_dump_field field = {.name = name, .width = H5Tget_size(s->type)};
    if (s->rank != 1 || !dump_type(s, &field.type))
        return bad(r, s->object, "not a column of texts or numbers");
    if (s->rows > 0 && !s->stored)
        return bad(r, s->object, "never written");
    field.values = calloc((size_t)s->rows + 1, field.width);
    if (!field.values)
        return no_memory(r);
    qg_status status = read_all(
        r, s, field.type == QG_COLUMN_TEXT ? s->type : memory_type(field.type), field.values);
    if (status == QG_OK)
        qg_dump_digest_field(digest, &field, s->rows);
    free(field.values);
    return status;
}

static qg_status digest_dump(const reader *r, qg_digest *digest, const char *name) {
    hid_t group;
    names list;
    qg_status status = open_group(r, r->file, name, &group);
    if (status != QG_OK)
        return status;
    status = list_names(r, group, name, &list);
    for (int64_t i = 0; i < list.count && status == QG_OK; i++) {
        source s;
        status = open_source(r, group, name, list.texts[i], &s);
        if (status != QG_OK)
            break;
        if (i == 0)
            qg_dump_digest_begin(digest, name, s.rows);
        status = digest_dump_field(r, digest, &s, list.texts[i]);
        close_source(&s);
    }
    free_names(&list);
    H5Gclose(group);
    return status;
}

static qg_status read_dumps(reader *r) {
    static const char *const groups[QG_DUMP_COUNT] = {"formats", "recipes"};
    qg_digest *digest;
    qg_status status = qg_digest_create(&digest);
    for (int i = 0; i < QG_DUMP_COUNT && status == QG_OK; i++)
        status = digest_dump(r, digest, groups[i]);
    if (status == QG_OK) {
        r->table->dump_digest = qg_digest_value(digest);
        r->table->has_dump_digest = true;
    }
    qg_digest_free(digest);
    return status;
}

// ---------------------------------------------------------------------------------------- file

static qg_status read_contents(reader *r) {
    qg_status status = r->told ? QG_OK : read_root(r);
    if (status == QG_OK)
        status = read_rows(r);
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++)
        if (is_first_of_group(i))
            status = read_columns(r, qg_column_describe((qg_column)i)->group);
    if (status == QG_OK)
        status = read_histograms(r);
    if (status == QG_OK)
        status = read_plan(r);
    if (status == QG_OK && !r->told)
        status = read_runs(r);
    if (status == QG_OK)
        status = check_runs(r);
    if (status == QG_OK)
        status = read_operands(r);
    if (status == QG_OK && r->merged)
        status = read_dumps(r);
    return status;
}

static qg_status verify(const reader *r, bool *verified) {
    const char *plan = qg_table_plan(r->table);
    char text[DIGEST_SIZE];
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

static qg_status find_size(const char *path, int64_t *size) {
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

static qg_status read_open(reader *r) {
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

static qg_status read_file(reader *r) {
    qg_status status = find_size(r->path, &r->file_size);
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
static qg_status finish(reader *r, qg_status status, qg_table **out, bool *complete,
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
    reader r = {.path = path};
    *out = NULL;
    return finish(&r, read_file(&r), out, complete, verified);
}

// ----------------------------------------------------------------------------------- the child

typedef struct answer {
    int status;
    bool complete;
    char plan_digest[DIGEST_SIZE], content_digest[DIGEST_SIZE];
    char detail[512];
    int64_t runs_size; // of what follows: of each run its keys and values and an empty text,
                       // all terminated by zeros
} answer;

enum { LARGEST_RUNS = 1 << 26 };

static bool send_text(int to, const char *text) { return tensor_send(to, text, strlen(text) + 1); }

static int64_t size_of_runs(const qg_table *table) {
    int64_t size = 0;
    for (int64_t r = 0; r < table->run_count; r++) {
        const qg_run *run = &table->runs[r];
        for (int64_t i = 0; i < run->count; i++)
            size += (int64_t)(strlen(run->keys[i]) + strlen(run->values[i]) + 2);
        size++;
    }
    return size;
}

static void send_runs(int to, const qg_table *table) {
    for (int64_t r = 0; r < table->run_count; r++) {
        const qg_run *run = &table->runs[r];
        for (int64_t i = 0; i < run->count; i++)
            if (!send_text(to, run->keys[i]) || !send_text(to, run->values[i]))
                return;
        send_text(to, "");
    }
}

static void read_in_child(void *context, int to) {
    reader r = {.path = context};
    answer a = {0};
    a.status = (int)read_file(&r);
    a.complete = r.complete;
    memcpy(a.plan_digest, r.plan_digest, DIGEST_SIZE);
    memcpy(a.content_digest, r.content_digest, DIGEST_SIZE);
    snprintf(a.detail, sizeof a.detail, "%s", qg_detail());
    a.runs_size = a.status == QG_OK ? size_of_runs(r.table) : 0;
    if (tensor_send(to, &a, sizeof a) && a.status == QG_OK)
        send_runs(to, r.table);
}

// The text at *at, and *at behind it; NULL past the end. The last byte is a zero.
static const char *next_text(const char *texts, int64_t size, int64_t *at) {
    if (*at >= size)
        return NULL;
    const char *text = texts + *at;
    *at += (int64_t)strlen(text) + 1;
    return text;
}

static qg_status unpack_runs(reader *r, const char *texts, int64_t size) {
    qg_status status = QG_OK;
    for (int64_t at = 0; at < size && status == QG_OK;) {
        int64_t run;
        const char *key, *value = "";
        status = qg_table_add_run(r->table, &run);
        while (status == QG_OK && value && (key = next_text(texts, size, &at)) && *key) {
            value = next_text(texts, size, &at);
            if (value)
                status = qg_table_set_run(r->table, run, key, value);
        }
    }
    return status == QG_ERROR_ARGUMENT ? bad(r, "runs", "damaged") : status;
}

// The child's memory may have been damaged before it answered: its words are checked again.
static qg_status take_answer(reader *r, const tensor_child *child) {
    answer a;
    if (!tensor_child_take(child, &a, sizeof a) || a.runs_size < 0 || a.runs_size > LARGEST_RUNS)
        return qg_fail(QG_ERROR_DATA, "%s: damaged: HDF5 does not survive reading it", r->path);
    if (a.status != QG_OK)
        return qg_fail((qg_status)a.status, "%.500s", a.detail);
    r->told = true;
    r->complete = a.complete;
    memcpy(r->plan_digest, a.plan_digest, DIGEST_SIZE);
    memcpy(r->content_digest, a.content_digest, DIGEST_SIZE);
    r->plan_digest[DIGEST_SIZE - 1] = r->content_digest[DIGEST_SIZE - 1] = 0;
    char *texts = calloc((size_t)a.runs_size + 1, 1);
    if (!texts)
        return no_memory(r);
    qg_status status = tensor_child_take(child, texts, (size_t)a.runs_size)
                           ? unpack_runs(r, texts, a.runs_size)
                           : bad(r, "runs", "damaged: HDF5 does not survive reading them");
    free(texts);
    return status;
}

static qg_status ask_child(reader *r) {
    qg_status status = find_size(r->path, &r->file_size);
    char *path = status == QG_OK ? strdup(r->path) : NULL;
    if (!path)
        return status == QG_OK ? no_memory(r) : status;
    tensor_child child;
    unsigned cpu_seconds = 5 + (unsigned)(r->file_size >> 19); // many times what whole files take
    status = tensor_child_start(read_in_child, path, cpu_seconds, &child);
    free(path);
    if (status != QG_OK)
        return status;
    status = take_answer(r, &child);
    tensor_child_end(&child);
    return status;
}

qg_status qg_results_read(const char *path, qg_table **out, bool *complete, bool *verified) {
    reader r = {.path = path};
    *out = NULL;
    qg_status status = qg_table_create(&r.table);
    if (status == QG_OK)
        status = ask_child(&r);
    if (status == QG_OK)
        status = read_file(&r);
    return finish(&r, status, out, complete, verified);
}
