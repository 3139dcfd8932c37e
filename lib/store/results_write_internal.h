// What the files share that write result files: results_write.c makes the file, and fills it with
// columns (_columns.c) and the rest (_extras.c) through datasets (_datasets.c). Says nothing of how
// files are read.
#ifndef QG_RESULTS_WRITE_INTERNAL_H
#define QG_RESULTS_WRITE_INTERNAL_H

#include <chunk_pack_internal.h>
#include <results_hdf5_internal.h>
#include <table_internal.h>

typedef struct qg_writer {
    hid_t file;
    const qg_table *table;
    const int64_t *rows; // position in the file -> row of the table
    bool in_order;       // position and row are the same
    bool merged;
    qg_chunk_packer *packer;          // of merged files
    bool failed;                      // sticky: what follows a failure does nothing
    qg_status status;                 // of the failure, when it is not HDF5's
    char reason[QG_HDF5_REASON_SIZE]; // when it is: the next call would clear HDF5's error stack
} qg_writer;

// Notes a failed HDF5 call; true while all went well.
bool qg_writer_good(qg_writer *w, int64_t result);
// Notes a failure that is not HDF5's.
void qg_writer_fail(qg_writer *w, qg_status status);
void qg_writer_fail_memory(qg_writer *w);

void qg_writer_attribute(qg_writer *w, hid_t object, const char *name, hid_t type,
                         const void *value);
void qg_writer_text_attribute(qg_writer *w, hid_t object, const char *name, const char *text);

hid_t qg_writer_create_group(qg_writer *w, hid_t parent, const char *name);
void qg_writer_close_group(hid_t group); // negative is fine

// Fills `buffer` with rows begin .. begin + count - 1 of a dataset.
typedef void qg_gather_rows(const qg_writer *w, const void *context, int64_t begin, int64_t count,
                            char *buffer);

typedef struct qg_dataset {
    const char *name;
    int64_t rows, columns;  // columns 0: one-dimensional
    hid_t type;             // in memory and, made little endian, in the file
    const void *fill;       // NULL: 0
    const char *values;     // all, if they lie in memory as they shall in the file
    qg_gather_rows *gather; // otherwise; neither: never written, all fill
    const void *context;
    const char *units, *long_name, *definition, *better; // NULL: none
} qg_dataset;

void qg_writer_dataset(qg_writer *w, hid_t group, const qg_dataset *d);

// ---------------------------------------------------------------------------- contents of the file

void qg_writer_columns(qg_writer *w);
// Gathers the order of rows, int64_t; without context.
qg_gather_rows qg_writer_gather_order;
// Bytes of the longest text of a column, at least 1.
size_t qg_writer_longest_text(const qg_table *table, qg_column column);

void qg_writer_plan(qg_writer *w);
void qg_writer_runs(qg_writer *w);
void qg_writer_histograms(qg_writer *w);
void qg_writer_operands(qg_writer *w);
// The i-th dump of dump_internal.h.
void qg_writer_dump(qg_writer *w, int i);

#endif
