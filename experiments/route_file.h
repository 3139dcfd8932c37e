// Files of routes on disk: reports/device/GPU.route.tsv in the data folder, GPU being the device's
// name with every other character than letters, digits, '.', '_' and '-' replaced by '_'.
#ifndef ROUTE_FILE_H
#define ROUTE_FILE_H

#include <route_text.h>

// The path in the data folder. QG_ERROR_IO, QG_ERROR_ARGUMENT: no such folder can be named.
qg_status route_file_path(const char *gpu, char *path, size_t size);

// Appends what a file says; a file that is not there says nothing. QG_ERROR_IO, QG_ERROR_DATA.
qg_status route_file_read(const char *path, route_list *out);

// Writes PATH.tmp and renames it. QG_ERROR_IO names the path and the system's reason.
qg_status route_file_write(const char *path, const route_list *list);

#endif
