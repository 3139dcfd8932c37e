// Tables to result files. See qg_results.h.
//
// The file is built in memory (HDF5's core driver) and written in one piece: HDF5 itself would
// report a full disk late or not at all. It costs the file's size in memory; files that may exceed
// IMAGE_LIMIT are written by HDF5 into the temporary file instead. Merged files take the place of
// all parts, so they are read back before they get their name.
#include <chunk_pack_internal.h>
#include <dump_internal.h>
#include <file_replace_internal.h>
#include <results_hdf5_internal.h>
#include <table_internal.h>
#include <tensor_reader.h>

#include <qg_bits.h>
#include <qg_digest.h>
#include <qg_version.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLAB_BYTES = 1 << 18, DIGEST_SIZE = 17, TIME_SIZE = 32 };
// Of the memory that a file is built in. HDF5 clears each increment before it fills it: this much
// is still in the cache by then.
enum { CORE_INCREMENT = 1 << 21 };
// Half the children of a node of a chunk index; nodes have their full size from the start, and most
// datasets one chunk.
enum { CHUNK_FANOUT = 8 };
enum { ENOUGH_SECONDS = 1 << 20 }; // of processor time: no limit
#define IMAGE_LIMIT ((int64_t)1 << 30)

typedef struct writer {
    hid_t file;
    const qg_table *table;
    const int64_t *rows; // position in the file -> row of the table
    bool in_order;       // position and row are the same
    bool merged;
    qg_chunk_packer *packer; // of merged files
    bool failed;             // sticky: what follows a failure does nothing
    qg_status status;        // of the failure, when it is not HDF5's
    char reason[QG_HDF5_REASON_SIZE]; // when it is: the next call would clear HDF5's error stack
} writer;

// Notes a failed HDF5 call; true while all went well.
static bool good(writer *w, int64_t result) {
    if (result < 0 && !w->failed) {
        qg_hdf5_reason(w->reason);
        w->failed = true;
    }
    return !w->failed;
}

static void fail(writer *w, qg_status status) {
    if (!w->failed)
        w->status = status;
    w->failed = true;
}

static void fail_memory(writer *w) {
    if (!w->failed)
        fail(w, qg_fail(QG_ERROR_MEMORY, "no memory to write results"));
}

// ---------------------------------------------------------------------------------- attributes

static void put_attribute(writer *w, hid_t object, const char *name, hid_t type,
                          const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (good(w, attribute)) {
        good(w, H5Awrite(attribute, type, value));
        H5Aclose(attribute);
    }
    H5Sclose(space);
}

// Variable-length, so that h5py gives a str and not bytes.
static void put_text_attribute(writer *w, hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (good(w, type) && good(w, H5Tset_size(type, H5T_VARIABLE)) &&
        good(w, H5Tset_cset(type, H5T_CSET_UTF8)))
        put_attribute(w, object, name, type, &text);
    if (type >= 0)
        H5Tclose(type);
}

static void put_u8_attribute(writer *w, hid_t object, const char *name, uint8_t value) {
    put_attribute(w, object, name, H5T_STD_U8LE, &value);
}

static void file_time(char text[TIME_SIZE]) {
    const char *epoch = getenv("SOURCE_DATE_EPOCH"); // reproducible-builds.org
    char *end;
    long long seconds = epoch && *epoch ? strtoll(epoch, &end, 10) : 0;
    time_t now = epoch && *epoch && *end == 0 ? (time_t)seconds : time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || strftime(text, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(text, TIME_SIZE, "1970-01-01T00:00:00Z");
}

static void put_root_attributes(writer *w, bool complete) {
    char time_text[TIME_SIZE], digest_text[DIGEST_SIZE];
    const char *plan = qg_table_plan(w->table);
    uint64_t digest;
    qg_status status = w->merged ? qg_table_content_digest_sorted(w->table, w->rows, &digest)
                                 : qg_table_content_digest(w->table, &digest);
    if (status != QG_OK) {
        fail(w, status);
        return;
    }
    file_time(time_text);
    put_text_attribute(w, w->file, "Conventions", QG_RESULTS_CONVENTIONS);
    int64_t schema = QG_RESULTS_SCHEMA;
    put_attribute(w, w->file, "schema_version", H5T_NATIVE_INT64, &schema);
    put_text_attribute(w, w->file, "title",
                       w->merged ? "quantization errors and throughput"
                                 : "part of quantization errors and throughput");
    put_text_attribute(w, w->file, "source", "quantgauge " QG_VERSION);
    put_text_attribute(w, w->file, "creator_version", QG_VERSION);
    put_text_attribute(w, w->file, "file_time", time_text);
    snprintf(digest_text, sizeof digest_text, "%016" PRIx64, qg_digest_bytes(plan, strlen(plan)));
    put_text_attribute(w, w->file, "plan_digest", digest_text);
    snprintf(digest_text, sizeof digest_text, "%016" PRIx64, digest);
    put_text_attribute(w, w->file, "content_digest", digest_text);
    put_u8_attribute(w, w->file, "complete", complete);
}

// ------------------------------------------------------------------------------------ datasets

// Fills `buffer` with rows begin .. begin + count - 1 of a dataset.
typedef void gather_rows(const writer *w, const void *context, int64_t begin, int64_t count,
                         char *buffer);

typedef struct dataset {
    const char *name;
    int64_t rows, columns; // columns 0: one-dimensional
    hid_t type;            // in memory and, made little endian, in the file
    const void *fill;      // NULL: 0
    const char *values;    // all, if they lie in memory as they shall in the file
    gather_rows *gather;   // otherwise; neither: never written, all fill
    const void *context;
    const char *units, *long_name, *definition, *better; // NULL: none
} dataset;

static bool is_chunked(const writer *w, const dataset *d) { return w->merged && d->rows > 0; }

static hid_t create_properties(writer *w, const dataset *d, hsize_t slab) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (!good(w, properties))
        return properties;
    good(w, H5Pset_obj_track_times(properties, false));
    good(w, H5Pset_attr_phase_change(properties, 64, 48)); // no separate heap for a few attributes
    if (d->fill)
        good(w, H5Pset_fill_value(properties, d->type, d->fill));
    if (is_chunked(w, d)) {
        hsize_t chunk[2] = {slab, (hsize_t)d->columns};
        good(w, H5Pset_chunk(properties, d->columns ? 2 : 1, chunk));
        if (H5Tget_size(d->type) > 1)
            good(w, H5Pset_shuffle(properties));
        good(w, H5Pset_deflate(properties, 1));
    }
    return properties;
}

static void write_slab(writer *w, const dataset *d, hid_t target, hid_t space, hsize_t begin,
                       hsize_t count, const char *bytes) {
    hsize_t start[2] = {begin, 0}, extent[2] = {count, (hsize_t)d->columns};
    hid_t memory = H5Screate_simple(d->columns ? 2 : 1, extent, NULL);
    if (good(w, memory) &&
        good(w, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL)))
        good(w, H5Dwrite(target, d->type, memory, space, H5P_DEFAULT, bytes));
    if (memory >= 0)
        H5Sclose(memory);
}

// A chunk past HDF5's filters, which would pack it to the same elements in more time.
static void write_chunk(writer *w, const dataset *d, hid_t target, hsize_t begin, hsize_t slab,
                        const char *bytes) {
    hsize_t start[2] = {begin, 0};
    size_t count = (size_t)slab * (d->columns ? (size_t)d->columns : 1), size;
    const void *packed;
    qg_status status = qg_chunk_pack(w->packer, bytes, count, H5Tget_size(d->type), &packed, &size);
    if (status != QG_OK)
        fail(w, status);
    else
        good(w, H5Dwrite_chunk(target, H5P_DEFAULT, 0, start, size, packed));
}

// packs: the bytes are the file's, so that chunks can be packed here.
static void write_slabs(writer *w, const dataset *d, hid_t target, hid_t space, hsize_t slab,
                        size_t row_size, bool packs) {
    char *buffer = malloc((size_t)slab * row_size);
    if (!buffer) {
        fail_memory(w);
        return;
    }
    hsize_t rows = (hsize_t)d->rows;
    for (hsize_t begin = 0; begin < rows && !w->failed; begin += slab) {
        hsize_t count = rows - begin < slab ? rows - begin : slab;
        const char *bytes = d->values ? d->values + begin * row_size : buffer;
        if (!d->values)
            d->gather(w, d->context, (int64_t)begin, (int64_t)count, buffer);
        if (packs && count < slab) { // the last chunk is whole, too
            if (d->values)
                memcpy(buffer, bytes, (size_t)count * row_size);
            memset(buffer + count * row_size, 0, (size_t)(slab - count) * row_size);
            bytes = buffer;
        }
        if (packs)
            write_chunk(w, d, target, begin, slab, bytes);
        else
            write_slab(w, d, target, space, begin, count, bytes);
    }
    free(buffer);
}

static void write_elements(writer *w, const dataset *d, hid_t target, hid_t type, hid_t space,
                           hsize_t slab, size_t row_size) {
    if (is_chunked(w, d))
        write_slabs(w, d, target, space, slab, row_size, H5Tequal(d->type, type) > 0);
    else if (d->values)
        good(w, H5Dwrite(target, d->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->values));
    else
        write_slabs(w, d, target, space, slab, row_size, false);
}

static void put_documentation(writer *w, hid_t target, const dataset *d) {
    if (d->units)
        put_text_attribute(w, target, "units", d->units);
    if (d->long_name)
        put_text_attribute(w, target, "long_name", d->long_name);
    if (d->definition)
        put_text_attribute(w, target, "definition", d->definition);
    if (d->better)
        put_text_attribute(w, target, "better", d->better);
}

static hid_t file_type_of(hid_t type) {
    hid_t copy = H5Tcopy(type);
    if (copy >= 0 && H5Tget_class(type) != H5T_STRING)
        H5Tset_order(copy, H5T_ORDER_LE);
    return copy;
}

static void write_dataset(writer *w, hid_t group, const dataset *d) {
    if (w->failed)
        return;
    size_t row_size = H5Tget_size(d->type) * (d->columns ? (size_t)d->columns : 1);
    hsize_t slab = row_size < SLAB_BYTES ? SLAB_BYTES / row_size : 1;
    slab = d->rows > 0 && slab > (hsize_t)d->rows ? (hsize_t)d->rows : slab;
    hsize_t dims[2] = {(hsize_t)d->rows, (hsize_t)d->columns};
    hid_t space = H5Screate_simple(d->columns ? 2 : 1, dims, NULL);
    hid_t properties = create_properties(w, d, slab);
    hid_t type = file_type_of(d->type);
    hid_t target = w->failed ? -1
                             : H5Dcreate2(group, d->name, type, space, H5P_DEFAULT, properties,
                                          H5P_DEFAULT);
    if (good(w, target)) {
        if (d->rows > 0 && (d->values || d->gather))
            write_elements(w, d, target, type, space, slab, row_size);
        put_documentation(w, target, d);
        good(w, H5Dclose(target));
    }
    H5Tclose(type);
    H5Pclose(properties);
    H5Sclose(space);
}

static void write_text(writer *w, hid_t group, const char *name, const char *text) {
    size_t length = strlen(text);
    hid_t type = qg_hdf5_text_type(length ? length : 1);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    good(w, properties < 0 ? -1 : H5Pset_obj_track_times(properties, false));
    hid_t target = good(w, type) ? H5Dcreate2(group, name, type, space, H5P_DEFAULT, properties,
                                              H5P_DEFAULT)
                                 : -1;
    if (good(w, target)) {
        good(w, H5Dwrite(target, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text));
        H5Dclose(target);
    }
    if (type >= 0)
        H5Tclose(type);
    H5Pclose(properties);
    H5Sclose(space);
}

static hid_t create_group(writer *w, hid_t parent, const char *name) {
    if (w->failed)
        return -1;
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    good(w, H5Pset_obj_track_times(properties, false));
    good(w, H5Pset_link_phase_change(properties, 256, 128));
    good(w, H5Pset_attr_phase_change(properties, 64, 48));
    hid_t group = H5Gcreate2(parent, name, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Pclose(properties);
    good(w, group);
    return group;
}

static void close_group(hid_t group) {
    if (group >= 0)
        H5Gclose(group);
}

// ------------------------------------------------------------------------------------- columns

static void gather_numbers(const writer *w, const void *context, int64_t begin, int64_t count,
                           char *buffer) {
    qg_column column = *(const qg_column *)context;
    size_t size = qg_column_size(qg_column_describe(column)->type);
    const char *elements = w->table->columns[column];
    if (!elements) // only case ids are written without being set
        memset(buffer, 0, (size_t)count * size);
    for (int64_t i = 0; elements && i < count; i++)
        memcpy(buffer + (size_t)i * size, elements + (size_t)w->rows[begin + i] * size, size);
}

typedef struct text_column {
    qg_column column;
    size_t width;
} text_column;

static void gather_texts(const writer *w, const void *context, int64_t begin, int64_t count,
                         char *buffer) {
    const text_column *c = context;
    const uint32_t *elements = w->table->columns[c->column];
    for (int64_t i = 0; i < count; i++, buffer += c->width) {
        uint32_t index = elements[w->rows[begin + i]];
        if (i > 0 && index == elements[w->rows[begin + i - 1]]) {
            memcpy(buffer, buffer - c->width, c->width);
            continue;
        }
        size_t length = qg_text_length(w->table->texts, index);
        memcpy(buffer, qg_text_at(w->table->texts, index), length);
        memset(buffer + length, 0, c->width - length);
    }
}

static size_t longest_text(const qg_table *table, qg_column column) {
    const uint32_t *elements = table->columns[column];
    size_t longest = 1;
    for (int64_t row = 0; elements && row < table->rows; row++) {
        size_t length = qg_text_length(table->texts, elements[row]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static const char *better_text(const qg_column_info *info) {
    if (info->better != 0)
        return info->better > 0 ? "larger" : "smaller";
    return strcmp(info->group, "metrics") == 0 ? "nearer to zero" : "none";
}

static hid_t type_of(qg_column_type type) {
    switch (type) {
    case QG_COLUMN_F64: return H5T_NATIVE_DOUBLE;
    case QG_COLUMN_I64: return H5T_NATIVE_INT64;
    case QG_COLUMN_U64: return H5T_NATIVE_UINT64;
    default: return H5T_NATIVE_UINT8;
    }
}

static dataset column_dataset(const writer *w, const qg_column_info *info) {
    dataset d = {.name = info->name, .rows = w->table->rows};
    if (w->merged) { // parts go without: they are read by machines, and many
        d.units = info->units;
        d.long_name = info->long_name;
        d.definition = info->definition;
        d.better = better_text(info);
    }
    return d;
}

static void write_text_column(writer *w, hid_t group, qg_column column, bool is_set) {
    dataset d = column_dataset(w, qg_column_describe(column));
    text_column context = {column, longest_text(w->table, column)};
    d.type = qg_hdf5_text_type(context.width);
    if (!good(w, d.type))
        return;
    d.gather = is_set ? gather_texts : NULL;
    d.context = &context;
    write_dataset(w, group, &d);
    H5Tclose(d.type);
}

static void write_number_column(writer *w, hid_t group, qg_column column, bool is_set) {
    const qg_column_info *info = qg_column_describe(column);
    dataset d = column_dataset(w, info);
    double nan = (double)NAN;
    d.type = type_of(info->type);
    if (info->type == QG_COLUMN_F64)
        d.fill = &nan;
    else if (info->type == QG_COLUMN_I64)
        d.fill = &info->missing;
    d.gather = is_set ? gather_numbers : NULL;
    d.values = is_set && w->in_order ? w->table->columns[column] : NULL;
    d.context = &column;
    write_dataset(w, group, &d);
}

// Case ids are written even where all are 0: readers learn the number of rows from them.
static void write_column(writer *w, hid_t group, qg_column column) {
    bool is_set = column == QG_COLUMN_CASE_ID ? w->table->rows > 0
                                              : qg_table_column_is_set(w->table, column);
    if (!is_set && !w->merged && column != QG_COLUMN_CASE_ID)
        return;
    if (qg_column_describe(column)->type == QG_COLUMN_TEXT)
        write_text_column(w, group, column, is_set);
    else
        write_number_column(w, group, column, is_set);
}

static void gather_order(const writer *w, const void *context, int64_t begin, int64_t count,
                         char *buffer) {
    (void)context;
    for (int64_t i = 0; i < count; i++)
        memcpy(buffer + 8 * i, &w->table->order[w->rows[begin + i]], 8);
}

static void write_group(writer *w, const char *name) {
    hid_t group = create_group(w, w->file, name);
    for (int i = 0; i < QG_COLUMN_COUNT && !w->failed; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group, name) == 0)
            write_column(w, group, (qg_column)i);
    if (!w->merged && strcmp(name, "cases") == 0) {
        dataset d = {.name = "order",
                     .rows = w->table->rows,
                     .type = H5T_NATIVE_INT64,
                     .gather = gather_order,
                     .values = w->in_order ? (const char *)w->table->order : NULL};
        write_dataset(w, group, &d);
    }
    close_group(group);
}

static void write_columns(writer *w) {
    const char *done = "";
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        const char *group = qg_column_describe((qg_column)i)->group;
        hid_t has = w->failed ? 1 : H5Lexists(w->file, group, H5P_DEFAULT);
        if (strcmp(group, done) != 0 && good(w, has) && has == 0)
            write_group(w, group);
        done = group;
    }
}

// ---------------------------------------------------------------------------------- histograms

// Positions in the file of the rows that have histograms.
typedef struct histogram_rows {
    int64_t *positions;
    int64_t count;
    int64_t first; // in the pool, if they lie there one after the other; else -1
    bool ulp;      // which of the two is gathered
} histogram_rows;

static bool list_histograms(writer *w, histogram_rows *out) {
    const int64_t *histogram_of = w->table->histogram_of;
    out->positions = malloc(((size_t)w->table->rows + 1) * sizeof *out->positions);
    out->count = out->first = 0;
    if (!out->positions) {
        fail_memory(w);
        return false;
    }
    for (int64_t i = 0; histogram_of && i < w->table->rows; i++) {
        int64_t at = histogram_of[w->rows[i]];
        if (at < 0)
            continue;
        if (out->count == 0)
            out->first = at;
        else if (at != out->first + out->count)
            out->first = -1;
        out->positions[out->count++] = i;
    }
    return true;
}

static void gather_histograms(const writer *w, const void *context, int64_t begin, int64_t count,
                              char *buffer) {
    const histogram_rows *h = context;
    size_t bins = h->ulp ? QG_HIST_ULP_BINS : QG_HIST_LOG2_BINS;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *rel = NULL, *ulp = NULL;
        qg_table_histograms(w->table, w->rows[h->positions[begin + i]], &rel, &ulp);
        memcpy(buffer + (size_t)i * bins * 8, h->ulp ? ulp : rel, bins * 8);
    }
}

static void write_edges(writer *w, hid_t group) {
    double rel[QG_HIST_LOG2_BINS + 1], ulp[QG_HIST_ULP_BINS + 1];
    for (int i = 0; i <= QG_HIST_LOG2_BINS; i++)
        rel[i] = qg_double_pow2(QG_HIST_LOG2_MIN + i);
    for (int i = 0; i <= QG_HIST_ULP_BINS; i++)
        ulp[i] = i == 0 ? 0.0 : qg_double_pow2(i - 1);
    ulp[QG_HIST_ULP_BINS] = (double)INFINITY;
    dataset d = {.name = "rel_edges", .rows = QG_HIST_LOG2_BINS + 1, .type = H5T_NATIVE_DOUBLE};
    d.long_name = "edges of the bins of |e/x|";
    d.definition = "bin i is [edge i, edge i + 1); the first and the last hold all beyond, too";
    d.values = (const char *)rel;
    write_dataset(w, group, &d);
    d.name = "ulp_edges";
    d.rows = QG_HIST_ULP_BINS + 1;
    d.long_name = "edges of the bins of |e| in ulps";
    d.definition = "bin i is [edge i, edge i + 1)";
    d.values = (const char *)ulp;
    write_dataset(w, group, &d);
}

static void write_histograms(writer *w) {
    histogram_rows h = {0};
    if (w->failed || !list_histograms(w, &h))
        return;
    hid_t group = create_group(w, w->file, "hist");
    dataset row = {.name = "row", .rows = h.count, .type = H5T_NATIVE_INT64};
    row.long_name = "row of the columns that a histogram belongs to";
    row.values = (const char *)h.positions;
    write_dataset(w, group, &row);
    dataset d = {.name = "rel", .rows = h.count, .columns = QG_HIST_LOG2_BINS};
    d.type = H5T_NATIVE_INT64;
    d.long_name = "histogram of |e/x| over x != 0, e != 0";
    d.gather = gather_histograms;
    d.values = h.count && h.first >= 0 ? (const char *)(w->table->histograms->rel + h.first) : NULL;
    d.context = &h;
    write_dataset(w, group, &d);
    h.ulp = true;
    d.values = h.count && h.first >= 0 ? (const char *)(w->table->histograms->ulp + h.first) : NULL;
    d.name = "ulp";
    d.columns = QG_HIST_ULP_BINS;
    d.long_name = "histogram of |e| in ulps of x";
    write_dataset(w, group, &d);
    write_edges(w, group);
    close_group(group);
    free(h.positions);
}

// -------------------------------------------------------------------- plan, runs, operands, dumps

static void write_argv(writer *w, hid_t group) {
    const qg_table *t = w->table;
    size_t width = 1;
    for (int64_t i = 0; i < t->argv_count; i++)
        width = strlen(t->argv[i]) > width ? strlen(t->argv[i]) : width;
    char *lines = calloc((size_t)t->argv_count + 1, width);
    dataset d = {.name = "argv", .rows = t->argv_count, .type = qg_hdf5_text_type(width)};
    if (lines && good(w, d.type)) {
        for (int64_t i = 0; i < t->argv_count; i++)
            memcpy(lines + (size_t)i * width, t->argv[i], strlen(t->argv[i]));
        d.values = lines;
        write_dataset(w, group, &d);
    }
    if (!lines)
        fail_memory(w);
    if (d.type >= 0)
        H5Tclose(d.type);
    free(lines);
}

// Places of the rows in the plan, where cases are missing: elsewhere they follow from the case ids.
static void write_gaps(writer *w, hid_t group) {
    int64_t rows = w->table->rows;
    int64_t *order = malloc(((size_t)rows + 1) * sizeof *order);
    bool known = false, differs = false;
    if (!order) {
        fail_memory(w);
        return;
    }
    qg_table_derive_order(w->table, w->rows, order);
    for (int64_t i = 0; i < rows; i++) {
        int64_t own = w->table->order[w->rows[i]];
        known = known || own >= 0;
        differs = differs || own != order[i];
    }
    if (known && differs) {
        dataset d = {.name = "order", .rows = rows, .type = H5T_NATIVE_INT64};
        d.gather = gather_order;
        d.long_name = "position of each row's case in the plan";
        write_dataset(w, group, &d);
    }
    free(order);
}

static void write_plan(writer *w) {
    hid_t group = create_group(w, w->file, "plan");
    if (w->failed)
        return;
    write_text(w, group, "text", qg_table_plan(w->table));
    write_argv(w, group);
    if (w->merged)
        write_gaps(w, group);
    close_group(group);
}

static void write_runs(writer *w) {
    hid_t group = create_group(w, w->file, "runs");
    for (int64_t r = 0; r < w->table->run_count && !w->failed; r++) {
        const qg_run *run = &w->table->runs[r];
        char name[24];
        snprintf(name, sizeof name, "%" PRId64, r);
        hid_t child = create_group(w, group, name);
        for (int64_t i = 0; i < run->count && !w->failed; i++)
            put_text_attribute(w, child, run->keys[i], run->values[i]);
        close_group(child);
    }
    close_group(group);
}

static void write_operand(writer *w, hid_t parent, const qg_operand *operand) {
    char name[DIGEST_SIZE];
    snprintf(name, sizeof name, "%016" PRIx64, operand->case_id);
    htri_t exists = H5Lexists(parent, name, H5P_DEFAULT);
    if (!good(w, exists))
        return;
    hid_t group = exists ? H5Gopen2(parent, name, H5P_DEFAULT) : create_group(w, parent, name);
    if (!good(w, group))
        return;
    dataset d = {.name = operand->name, .rows = operand->size, .type = H5T_NATIVE_UINT8};
    d.values = (const char *)operand->bytes;
    write_dataset(w, group, &d);
    close_group(group);
}

static void write_operands(writer *w) {
    hid_t group = create_group(w, w->file, "operands");
    for (int64_t i = 0; i < w->table->operand_count && !w->failed; i++)
        write_operand(w, group, &w->table->operands[i]);
    close_group(group);
}

static void write_dump_field(writer *w, hid_t group, const qg_dump_field *field, int64_t count) {
    bool is_text = field->type == QG_COLUMN_TEXT;
    dataset d = {.name = field->name, .rows = count, .definition = field->definition};
    d.type = is_text ? qg_hdf5_text_type(field->width) : type_of(field->type);
    if (!good(w, d.type))
        return;
    d.values = field->values;
    write_dataset(w, group, &d);
    if (is_text)
        H5Tclose(d.type);
}

static void write_dump(writer *w, int i) {
    qg_dump dump;
    qg_status status = qg_dump_build(i, &dump);
    if (status != QG_OK) {
        fail(w, status);
        return;
    }
    hid_t group = create_group(w, w->file, dump.group);
    for (size_t f = 0; f < dump.field_count && !w->failed; f++)
        write_dump_field(w, group, &dump.fields[f], dump.count);
    close_group(group);
    qg_dump_free(&dump);
}

static void write_contents(writer *w, bool complete) {
    put_root_attributes(w, complete);
    write_plan(w);
    write_runs(w);
    write_columns(w);
    write_histograms(w);
    write_operands(w);
    for (int i = 0; w->merged && i < QG_DUMP_COUNT && !w->failed; i++)
        write_dump(w, i);
}

// ---------------------------------------------------------------------------------------- file

// The memory of HDF5's core driver, handed over when it closes the file. (H5Fget_file_image takes
// it from the open file, and its superblock's checksum is wrong then.)
typedef struct image {
    unsigned char *bytes;
    size_t room, size; // allocated; of the file
} image;

static void *image_allocate(size_t size, H5FD_file_image_op_t op, void *context) {
    (void)op, (void)context;
    return malloc(size);
}

static void *image_copy(void *to, const void *from, size_t size, H5FD_file_image_op_t op,
                        void *context) {
    (void)op, (void)context;
    return memcpy(to, from, size);
}

static void *image_resize(void *bytes, size_t size, H5FD_file_image_op_t op, void *context) {
    (void)op;
    void *moved = realloc(bytes, size);
    if (moved)
        ((image *)context)->room = size;
    return moved;
}

static herr_t image_free(void *bytes, H5FD_file_image_op_t op, void *context) {
    if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
        ((image *)context)->bytes = bytes;
    else
        free(bytes);
    return 0;
}

static void *context_copy(void *context) { return context; }

static herr_t context_free(void *context) {
    (void)context;
    return 0;
}

static void use_image(writer *w, hid_t access, image *into) {
    H5FD_file_image_callbacks_t callbacks = {image_allocate, image_copy,   image_resize, image_free,
                                             context_copy,   context_free, into};
    good(w, H5Pset_fapl_core(access, CORE_INCREMENT, false));
    good(w, H5Pset_file_image_callbacks(access, &callbacks));
}

// The file's size is the end-of-file address of its superblock.
static bool measure_image(image *of) {
    enum { VERSION_AT = 8, END_AT_V0 = 40, END_AT_V1 = 44, SUPERBLOCK_SIZE = 96 };
    if (!of->bytes || of->room < SUPERBLOCK_SIZE || of->bytes[VERSION_AT] > 1)
        return false;
    const unsigned char *end = of->bytes + (of->bytes[VERSION_AT] ? END_AT_V1 : END_AT_V0);
    uint64_t size = 0;
    for (int i = 8; i-- > 0;)
        size = size << 8 | end[i];
    of->size = (size_t)size;
    return size >= SUPERBLOCK_SIZE && size <= of->room;
}

static hid_t create_file(writer *w, const char *path, image *into) {
    hid_t access = qg_hdf5_file_access();
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    good(w, access);
    good(w, creation);
    if (into)
        use_image(w, access, into);
    good(w, H5Pset_istore_k(creation, CHUNK_FANOUT));
    hid_t file = w->failed ? -1 : H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    // The root group in the oldest form, since the next one would hold the time; the rest in the
    // form of HDF5 1.8, which has checksums.
    if (good(w, file))
        good(w, H5Fset_libver_bounds(file, H5F_LIBVER_V18, H5F_LIBVER_V18));
    H5Pclose(creation);
    H5Pclose(access);
    return file;
}

static qg_status failure(const writer *w, const char *path) {
    if (w->status != QG_OK)
        return w->status;
    return qg_fail(QG_ERROR_IO, "%s: cannot write: %s", path, w->reason);
}

// into: NULL for a file written by HDF5 itself.
static qg_status build(writer *w, const char *path, const char *temporary, bool complete,
                       image *into) {
    w->file = create_file(w, temporary, into);
    if (!w->failed)
        write_contents(w, complete);
    if (w->file >= 0)
        good(w, H5Fclose(w->file));
    return w->failed ? failure(w, path) : QG_OK;
}

static qg_status write_image(writer *w, const char *path, qg_replacement *replacement,
                             bool complete) {
    image built = {0};
    qg_status status = build(w, path, replacement->temporary, complete, &built);
    if (status == QG_OK && !measure_image(&built))
        status = qg_fail(QG_ERROR_IO, "%s: cannot write: HDF5 built no file in memory", path);
    if (status == QG_OK)
        status = qg_replacement_write(replacement, built.bytes, built.size, w->merged);
    free(built.bytes);
    return status;
}

// The other way: HDF5 writes the temporary file, in a child process, because it crashes at exit
// when closing a file failed.
typedef struct direct_work {
    writer *w;
    const char *path, *temporary;
    bool complete;
} direct_work;

typedef struct answer {
    int status;
    char detail[512];
} answer;

static void write_in_child(void *context, int to) {
    direct_work *work = context;
    answer a = {0};
    a.status = (int)build(work->w, work->path, work->temporary, work->complete, NULL);
    snprintf(a.detail, sizeof a.detail, "%s", qg_detail());
    tensor_send(to, &a, sizeof a);
}

static qg_status write_directly(writer *w, const char *path, const qg_replacement *replacement,
                                bool complete) {
    direct_work work = {w, path, replacement->temporary, complete};
    tensor_child child;
    answer a;
    qg_status status = tensor_child_start(write_in_child, &work, ENOUGH_SECONDS, &child);
    if (status != QG_OK)
        return status;
    if (!tensor_child_take(&child, &a, sizeof a))
        status = qg_fail(QG_ERROR_IO, "%s: cannot write: HDF5 crashed", path);
    else if (a.status != QG_OK)
        status = qg_fail((qg_status)a.status, "%.500s", a.detail);
    tensor_child_end(&child);
    return status;
}

// Its bytes were never together in memory: their contents are compared.
static qg_status read_back(const writer *w, const char *path) {
    qg_table *table;
    bool complete, verified;
    qg_status status = qg_results_read(path, &table, &complete, &verified);
    if (status != QG_OK)
        return status;
    if (!verified || table->rows != w->table->rows)
        status = qg_fail(QG_ERROR_IO, "%s: it does not read back as it was written", path);
    qg_table_free(table);
    return status;
}

static int64_t largest_size(const qg_table *table) {
    int64_t size = CORE_INCREMENT;
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        qg_column column = (qg_column)i;
        bool is_text = qg_column_describe(column)->type == QG_COLUMN_TEXT;
        if (table->columns[i])
            size += table->rows * (is_text ? (int64_t)longest_text(table, column) : 8);
    }
    for (int64_t i = 0; i < table->operand_count; i++)
        size += table->operands[i].size;
    if (table->histogram_of)
        size += table->rows * (int64_t)(sizeof(qg_rel_bins) + sizeof(qg_ulp_bins));
    return size;
}

static qg_status prepare(writer *w, const char *path, int64_t *rows) {
    qg_status status = QG_OK;
    if (!rows)
        return qg_fail(QG_ERROR_MEMORY, "%s: no memory to write results", path);
    for (int64_t i = 0; i < w->table->rows; i++)
        rows[i] = i;
    if (w->merged)
        status = qg_table_sort(w->table, rows);
    w->in_order = true;
    for (int64_t i = 0; i < w->table->rows; i++)
        w->in_order = w->in_order && rows[i] == i;
    if (status == QG_OK && w->merged)
        status = qg_chunk_packer_create(&w->packer);
    return status;
}

qg_status qg_results_write_limited(const char *path, const qg_table *table, qg_results_kind kind,
                                   bool complete, int64_t image_limit) {
    qg_replacement replacement;
    qg_status status = qg_replacement_begin(path, &replacement);
    if (status != QG_OK)
        return status;
    int64_t *rows = malloc(((size_t)table->rows + 1) * sizeof *rows);
    writer w = {.table = table, .rows = rows, .merged = kind == QG_RESULTS_MERGED};
    status = prepare(&w, path, rows);
    if (status == QG_OK) {
        int64_t largest = largest_size(table);
        qg_hdf5_silence saved = qg_hdf5_silence_begin();
        status = largest <= image_limit ? write_image(&w, path, &replacement, complete)
                                        : write_directly(&w, path, &replacement, complete);
        qg_hdf5_silence_restore(saved);
        if (status == QG_OK && largest > image_limit && w.merged)
            status = read_back(&w, replacement.temporary);
    }
    if (status == QG_OK)
        status = qg_replacement_commit(&replacement);
    qg_replacement_end(&replacement, status == QG_OK);
    qg_chunk_packer_free(w.packer);
    free(rows);
    return status;
}

qg_status qg_results_write(const char *path, const qg_table *table, qg_results_kind kind,
                           bool complete) {
    return qg_results_write_limited(path, table, kind, complete, IMAGE_LIMIT);
}
