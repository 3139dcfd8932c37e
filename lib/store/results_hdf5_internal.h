// What writing and reading result files share: names of the layout, and HDF5's errors.
#ifndef QG_RESULTS_HDF5_INTERNAL_H
#define QG_RESULTS_HDF5_INTERNAL_H

#include <qg_results.h>

#include <hdf5.h>

#define QG_RESULTS_CONVENTIONS "quantgauge-1"
enum { QG_RESULTS_SCHEMA = 1, QG_RESULTS_TEXT_MAX = 1 << 20 };
enum { QG_RESULTS_DIGEST_SIZE = 17 }; // 16 hexadecimal digits and a zero

// HDF5 prints its errors unless told otherwise; the caller's setting comes back with _restore.
typedef struct qg_hdf5_silence {
    H5E_auto2_t function;
    void *context;
} qg_hdf5_silence;
qg_hdf5_silence qg_hdf5_silence_begin(void);
void qg_hdf5_silence_restore(qg_hdf5_silence saved);

enum { QG_HDF5_REASON_SIZE = 200 };
// The innermost entry of HDF5's error stack: the one that knows.
void qg_hdf5_reason(char reason[QG_HDF5_REASON_SIZE]);

// File access that takes no locks (files are replaced whole, and some file systems have none).
hid_t qg_hdf5_file_access(void);

// A fixed-length UTF-8 type. Negative on failure.
hid_t qg_hdf5_text_type(size_t width);
// The type in memory of numbers, not to be closed.
hid_t qg_hdf5_number_type(qg_column_type type);

// As qg_results_write, for tests: files that may exceed image_limit bytes are written by HDF5
// itself instead of in memory first.
qg_status qg_results_write_limited(const char *path, const qg_table *table, qg_results_kind kind,
                                   bool complete, int64_t image_limit);

// As qg_results_read, without the child process that goes first: for tests, which could not see a
// fault of the reader's own otherwise.
qg_status qg_results_read_here(const char *path, qg_table **out, bool *complete, bool *verified);

#endif
