// `run_sweep --import-device FILE`: the file of a device check as a result file.
#ifndef IMPORT_DEVICE_H
#define IMPORT_DEVICE_H

#include <stdbool.h>

// Reads `path`, writes `out` and says what came of it on standard output. `out` is written whole or
// not at all; it is replaced only if `overwrite`. Returns the exit code: 0 all passed, 1 a row of it
// FAILED, 2 malformed (FILE:LINE), 3 the check had left something, 5 an I/O error.
int import_device(const char *path, const char *out, bool overwrite, const char *command_line);

#endif
