// Replacing a file as a whole: PATH.tmp is written, synced and renamed to PATH, or PATH stays.
#ifndef QG_FILE_REPLACE_INTERNAL_H
#define QG_FILE_REPLACE_INTERNAL_H

#include <qg_status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct qg_replacement {
    char *target;    // PATH, or the file that it is a symbolic link to
    char *temporary; // target + ".tmp"
    bool read_back;  // before it is renamed
    uint64_t digest; // of the bytes that it shall hold
} qg_replacement;

// QG_ERROR_IO when PATH exists and is no regular file: renaming over a device would destroy it.
qg_status qg_replacement_begin(const char *path, qg_replacement *out);

// Writes all of the temporary file; `read_back`: committing it compares it with the bytes.
// QG_ERROR_IO with the path and the system's reason.
qg_status qg_replacement_write(qg_replacement *replacement, const void *bytes, size_t size,
                               bool read_back);

// Syncs the temporary file, written here or by other means, and renames it. QG_ERROR_IO, also when
// it does not read back as it was written.
qg_status qg_replacement_commit(const qg_replacement *replacement);

// Frees; with `keep` false the temporary file is removed first.
void qg_replacement_end(qg_replacement *replacement, int keep);

#endif
