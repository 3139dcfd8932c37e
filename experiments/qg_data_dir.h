// Where programs find the files that come with them: datasets/ and reports/.
#ifndef QG_DATA_DIR_H
#define QG_DATA_DIR_H

#include <qg_status.h>
#include <stddef.h>

// The folder that holds datasets/ and reports/: QG_DATA_DIR; else what the one line of
// quantgauge-data.path beside the program names; else ../share/quantgauge from the program.
// QG_ERROR_IO if the program cannot find itself, QG_ERROR_ARGUMENT if the path does not fit.
// Whether the folder exists is not checked.
qg_status qg_data_dir(char *path, size_t size);

// The path of one of its files ("datasets/minilm.h5").
qg_status qg_data_file(const char *name, char *path, size_t size);

#endif
