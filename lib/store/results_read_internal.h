// What the files share that read result files: results_read.c asks the child (_child.c), then reads
// columns (_columns.c) and the rest (_extras.c) through checked datasets (_source.c). Files are
// foreign: nothing is used before it is checked. Says nothing of how files are written.
#ifndef QG_RESULTS_READ_INTERNAL_H
#define QG_RESULTS_READ_INTERNAL_H

#include <results_hdf5_internal.h>
#include <table_internal.h>

enum { QG_SOURCE_OBJECT_SIZE = 200 };

typedef struct qg_reader {
    const char *path;
    int64_t file_size;
    hid_t file;
    qg_table *table;
    bool merged;
    bool told; // the texts of attributes are known from the child: digests here, runs in the table
    bool complete;
    char plan_digest[QG_RESULTS_DIGEST_SIZE], content_digest[QG_RESULTS_DIGEST_SIZE];
} qg_reader;

// The size of a regular file. QG_ERROR_IO.
qg_status qg_reader_find_size(const char *path, int64_t *size);
// Reads all of the file in this process.
qg_status qg_reader_file(qg_reader *r);
// Lets a child process read the file, and takes what it tells into `r`.
qg_status qg_reader_ask_child(qg_reader *r);

// QG_ERROR_DATA with the file's path and the object's name.
#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
qg_status
qg_reader_bad(const qg_reader *r, const char *object, const char *format, ...);
qg_status qg_reader_no_memory(const qg_reader *r);

// --------------------------------------------------------------------------- groups and attributes

qg_status qg_reader_open_group(const qg_reader *r, hid_t parent, const char *name, hid_t *out);

typedef struct qg_names {
    char **texts;
    int64_t count;
    bool failed;
} qg_names;

// The hard links of a group in alphabetical order.
qg_status qg_reader_list(const qg_reader *r, hid_t group, const char *object, qg_names *out);
void qg_names_free(qg_names *list);

// The text of a scalar attribute, to be freed; NULL if it is none.
char *qg_reader_text_attribute(const qg_reader *r, hid_t object, const char *name);

// ---------------------------------------------------------------------------------------- datasets

// A dataset of the file, checked.
typedef struct qg_source {
    hid_t id, type, space;
    int rank;
    int64_t rows, columns; // columns: 1 unless it is two-dimensional
    int64_t chunk_rows;    // 0 if it is not chunked
    bool stored;           // false: never written, every value is missing
    char object[QG_SOURCE_OBJECT_SIZE];
} qg_source;

// Opens dataset `name` of a group; `path` is the group's, for messages.
qg_status qg_source_open(const qg_reader *r, hid_t group, const char *path, const char *name,
                         qg_source *out);
// Opens a dataset that must have a type, a rank and, unless rows is -1, a length.
qg_status qg_source_open_typed(const qg_reader *r, hid_t group, const char *path, const char *name,
                               qg_column_type type, int rank, int64_t rows, qg_source *out);
void qg_source_close(qg_source *s);
bool qg_source_has_type(const qg_source *s, qg_column_type type);
// Reads all elements as `type`.
qg_status qg_source_read(const qg_reader *r, const qg_source *s, hid_t type, void *to);

// ---------------------------------------------------------------------------- contents of the file

// Reads all rows of fixed-length texts, as indices into the table's pool.
qg_status qg_reader_texts(qg_reader *r, const qg_source *s, uint32_t *to);
// The number of rows, the kind of the file and, of parts, the order; first of all.
qg_status qg_reader_rows(qg_reader *r);
qg_status qg_reader_order(qg_reader *r, hid_t group, const char *path);
// The columns of a group.
qg_status qg_reader_columns(qg_reader *r, const char *name);

qg_status qg_reader_histograms(qg_reader *r);
qg_status qg_reader_plan(qg_reader *r);
qg_status qg_reader_runs(qg_reader *r);
// Whether all rows name runs that there are.
qg_status qg_reader_check_runs(const qg_reader *r);
qg_status qg_reader_operands(qg_reader *r);
// The digest of the dumps of formats, recipes and units, into the table.
qg_status qg_reader_dumps(qg_reader *r);

#endif
