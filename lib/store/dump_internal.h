// Dumps of the tables of formats, recipes and matrix units: columns like those of the results, for
// a result file's /formats, /recipes and /units.
#ifndef QG_DUMP_INTERNAL_H
#define QG_DUMP_INTERNAL_H

#include <qg_column.h>
#include <qg_digest.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct qg_dump_field {
    const char *name, *definition;
    qg_column_type type;
    size_t width;  // of a text, in bytes; 8 otherwise
    void *values;  // (count) int64_t, uint64_t or double; texts: (count, width), padded with zeros
} qg_dump_field;

typedef struct qg_dump {
    const char *group, *title;
    int64_t count;         // rows of the table
    qg_dump_field *fields; // in alphabetical order
    size_t field_count;
} qg_dump;

enum { QG_DUMP_COUNT = 3 };

// The group of the i-th dump: "formats", "recipes", "units".
const char *qg_dump_group(int i);
// Whether files written before the dump existed lack it.
bool qg_dump_is_later(int i);

// The i-th dump. QG_ERROR_MEMORY.
qg_status qg_dump_build(int i, qg_dump *out);
void qg_dump_free(qg_dump *dump);

// A digest over a dump's logical values: its group's name, the number of rows, and the fields in
// alphabetical order.
void qg_dump_digest_begin(qg_digest *digest, const char *group, int64_t count);
void qg_dump_digest_field(qg_digest *digest, const qg_dump_field *field, int64_t count);
// The digest of all dumps.
qg_status qg_dump_digest(uint64_t *out);

// What digests of files are made of (content_digest.c); little endian, one NaN, zero-terminated.
void qg_digest_add_u64(qg_digest *digest, uint64_t value);
void qg_digest_add_f64(qg_digest *digest, double value);
void qg_digest_add_text(qg_digest *digest, const char *text);

#endif
