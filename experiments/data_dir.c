// The data folder, found from the environment or from the program's own place. See qg_data_dir.h.
#include <qg_data_dir.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static qg_status write_path(char *path, size_t size, const char *folder, const char *name) {
    int length = snprintf(path, size, "%s%s%s", folder, *name ? "/" : "", name);
    if (length < 0 || (size_t)length >= size)
        return qg_fail(QG_ERROR_ARGUMENT, "the path of the data folder is too long");
    return QG_OK;
}

static qg_status program_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0)
        return qg_fail(QG_ERROR_IO, "cannot find the program's own folder: %s; set QG_DATA_DIR",
                       strerror(errno));
    folder[length] = 0;
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    return QG_OK;
}

// The first line of the file, without its end.
static bool read_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool found = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (found)
        line[strcspn(line, "\n")] = 0;
    return found && *line;
}

qg_status qg_data_dir(char *path, size_t size) {
    const char *set = getenv("QG_DATA_DIR");
    if (set && *set)
        return write_path(path, size, set, "");
    char folder[PATH_MAX], pointer[PATH_MAX], line[PATH_MAX];
    qg_status status = program_folder(folder);
    if (status)
        return status;
    status = write_path(pointer, sizeof pointer, folder, "quantgauge-data.path");
    if (status)
        return status;
    if (read_line(pointer, line, sizeof line))
        return write_path(path, size, line, "");
    return write_path(path, size, folder, "../share/quantgauge");
}

qg_status qg_data_file(const char *name, char *path, size_t size) {
    char folder[PATH_MAX];
    qg_status status = qg_data_dir(folder, sizeof folder);
    return status ? status : write_path(path, size, folder, name);
}
