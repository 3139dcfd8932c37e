// Reading the file of a device check: facts, and rows whose fields have been counted. A foreign
// file: every line is checked, and what is wrong is told as FILE:LINE. Format: device_rows.h.
#ifndef IMPORT_DEVICE_FILE_H
#define IMPORT_DEVICE_FILE_H

#include <device_rows.h>
#include <qg_status.h>
#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_FIELDS_MOST = 24 };

typedef struct device_fact {
    const char *key, *value;
} device_fact;

typedef struct device_row {
    int64_t line; // from 1
    device_kind kind;
    device_verdict verdict;
    const char *reason;
    const char *field[DEVICE_FIELDS_MOST]; // by DEVICE_BYTES_M and the like
} device_row;

typedef struct device_file {
    const char *path;
    char *text; // owned; facts and rows point into it
    device_fact *facts;
    int64_t fact_count, fact_capacity;
    device_row *rows;
    int64_t row_count, row_capacity;
} device_file;

// QG_ERROR_IO; QG_ERROR_DATA: malformed, cut, or its rows are not those that its result counts.
// Free with device_file_free, also after a failure.
qg_status device_file_read(const char *path, device_file *out);
void device_file_free(device_file *file);

const char *device_file_fact(const device_file *file, const char *key); // NULL: none
bool device_file_is_complete(const device_file *file);                  // nothing was left

// QG_ERROR_DATA with FILE:LINE and a printf-like reason.
__attribute__((format(printf, 3, 4))) qg_status device_file_fail(const device_file *file,
                                                                 int64_t line, const char *format,
                                                                 ...);
const char *device_kind_name(device_kind kind);

#endif
