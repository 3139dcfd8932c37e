// Tables to result files: the file, its root attributes, and how it comes to its place. See
// qg_results.h. What the objects of the file look like is known to the files beside it: see
// results_write_internal.h.
//
// The file is built in memory (HDF5's core driver) and written in one piece: HDF5 itself would
// report a full disk late or not at all. It costs the file's size in memory; files that may exceed
// IMAGE_LIMIT are written by HDF5 into the temporary file instead. Merged files take the place of
// all parts, so they are read back before they get their name.
#include <child_process_internal.h>
#include <dump_internal.h>
#include <file_replace_internal.h>
#include <results_write_internal.h>

#include <qg_digest.h>
#include <qg_version.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIME_SIZE = 32 };
// Of the memory that a file is built in. HDF5 clears each increment before it fills it: this much
// is still in the cache by then.
enum { CORE_INCREMENT = 1 << 21 };
// Half the children of a node of a chunk index; nodes have their full size from the start, and most
// datasets one chunk.
enum { CHUNK_FANOUT = 8 };
enum { ENOUGH_SECONDS = 1 << 20 }; // of processor time: no limit
#define IMAGE_LIMIT ((int64_t)1 << 30)

static void put_u8_attribute(qg_writer *w, hid_t object, const char *name, uint8_t value) {
    qg_writer_attribute(w, object, name, H5T_STD_U8LE, &value);
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

static void put_root_attributes(qg_writer *w, bool complete) {
    char time_text[TIME_SIZE], digest_text[QG_RESULTS_DIGEST_SIZE];
    const char *plan = qg_table_plan(w->table);
    uint64_t digest;
    qg_status status = w->merged ? qg_table_content_digest_sorted(w->table, w->rows, &digest)
                                 : qg_table_content_digest(w->table, &digest);
    if (status != QG_OK) {
        qg_writer_fail(w, status);
        return;
    }
    file_time(time_text);
    qg_writer_text_attribute(w, w->file, "Conventions", QG_RESULTS_CONVENTIONS);
    int64_t schema = QG_RESULTS_SCHEMA;
    qg_writer_attribute(w, w->file, "schema_version", H5T_NATIVE_INT64, &schema);
    qg_writer_text_attribute(w, w->file, "title",
                             w->merged ? "quantization errors and throughput"
                                       : "part of quantization errors and throughput");
    qg_writer_text_attribute(w, w->file, "source", "quantgauge " QG_VERSION);
    qg_writer_text_attribute(w, w->file, "creator_version", QG_VERSION);
    qg_writer_text_attribute(w, w->file, "file_time", time_text);
    snprintf(digest_text, sizeof digest_text, "%016" PRIx64, qg_digest_bytes(plan, strlen(plan)));
    qg_writer_text_attribute(w, w->file, "plan_digest", digest_text);
    snprintf(digest_text, sizeof digest_text, "%016" PRIx64, digest);
    qg_writer_text_attribute(w, w->file, "content_digest", digest_text);
    put_u8_attribute(w, w->file, "complete", complete);
}

static void write_contents(qg_writer *w, bool complete) {
    put_root_attributes(w, complete);
    qg_writer_plan(w);
    qg_writer_runs(w);
    qg_writer_columns(w);
    qg_writer_histograms(w);
    qg_writer_operands(w);
    for (int i = 0; w->merged && i < QG_DUMP_COUNT && !w->failed; i++)
        qg_writer_dump(w, i);
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

static void use_image(qg_writer *w, hid_t access, image *into) {
    H5FD_file_image_callbacks_t callbacks = {image_allocate, image_copy,   image_resize, image_free,
                                             context_copy,   context_free, into};
    qg_writer_good(w, H5Pset_fapl_core(access, CORE_INCREMENT, false));
    qg_writer_good(w, H5Pset_file_image_callbacks(access, &callbacks));
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

static hid_t create_file(qg_writer *w, const char *path, image *into) {
    hid_t access = qg_hdf5_file_access();
    hid_t creation = H5Pcreate(H5P_FILE_CREATE);
    qg_writer_good(w, access);
    qg_writer_good(w, creation);
    if (into)
        use_image(w, access, into);
    qg_writer_good(w, H5Pset_istore_k(creation, CHUNK_FANOUT));
    hid_t file = w->failed ? -1 : H5Fcreate(path, H5F_ACC_TRUNC, creation, access);
    // The root group in the oldest form, since the next one would hold the time; the rest in the
    // form of HDF5 1.8, which has checksums.
    if (qg_writer_good(w, file))
        qg_writer_good(w, H5Fset_libver_bounds(file, H5F_LIBVER_V18, H5F_LIBVER_V18));
    H5Pclose(creation);
    H5Pclose(access);
    return file;
}

static qg_status failure(const qg_writer *w, const char *path) {
    if (w->status != QG_OK)
        return w->status;
    return qg_fail(QG_ERROR_IO, "%s: cannot write: %s", path, w->reason);
}

// into: NULL for a file written by HDF5 itself.
static qg_status build(qg_writer *w, const char *path, const char *temporary, bool complete,
                       image *into) {
    w->file = create_file(w, temporary, into);
    if (!w->failed)
        write_contents(w, complete);
    if (w->file >= 0)
        qg_writer_good(w, H5Fclose(w->file));
    return w->failed ? failure(w, path) : QG_OK;
}

static qg_status write_image(qg_writer *w, const char *path, qg_replacement *replacement,
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
    qg_writer *w;
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
    qg_child_send(to, &a, sizeof a);
}

static qg_status write_directly(qg_writer *w, const char *path, const qg_replacement *replacement,
                                bool complete) {
    direct_work work = {w, path, replacement->temporary, complete};
    qg_child child;
    answer a;
    qg_status status = qg_child_start(write_in_child, &work, ENOUGH_SECONDS, &child);
    if (status != QG_OK)
        return status;
    if (!qg_child_take(&child, &a, sizeof a))
        status = qg_fail(QG_ERROR_IO, "%s: cannot write: HDF5 crashed", path);
    else if (a.status != QG_OK)
        status = qg_fail((qg_status)a.status, "%.500s", a.detail);
    qg_child_end(&child);
    return status;
}

// Its bytes were never together in memory: their contents are compared.
static qg_status read_back(const qg_writer *w, const char *path) {
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
            size += table->rows * (is_text ? (int64_t)qg_writer_longest_text(table, column) : 8);
    }
    for (int64_t i = 0; i < table->operand_count; i++)
        size += table->operands[i].size;
    if (table->histogram_of)
        size += table->rows * (int64_t)(sizeof(qg_rel_bins) + sizeof(qg_ulp_bins));
    return size;
}

static qg_status prepare(qg_writer *w, const char *path, int64_t *rows) {
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
    qg_writer w = {.table = table, .rows = rows, .merged = kind == QG_RESULTS_MERGED};
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
