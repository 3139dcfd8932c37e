// Files of routes on disk. See route_file.h.
#include <route_file.h>

#include <qg_data_dir.h>

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FOLDER[] = "reports/device";

qg_status route_file_path(const char *gpu, char *path, size_t size) {
    char name[sizeof FOLDER + ROUTE_GPU_SIZE + sizeof "/.route.tsv"];
    int start = (int)sizeof FOLDER;
    int length = snprintf(name, sizeof name, "%s/%.*s.route.tsv", FOLDER, ROUTE_GPU_SIZE - 1, gpu);
    for (int i = start; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            name[i] = '_';
    return qg_data_file(name, path, size);
}

static qg_status io_failure(const char *what, const char *path) {
    return qg_fail(QG_ERROR_IO, "cannot %s '%.300s': %s", what, path, strerror(errno));
}

// A route is small: what is not read whole at this size is none.
static qg_status read_text(FILE *file, const char *path, char **out, size_t *size) {
    enum { MOST = 4 << 20 };
    char *text = malloc(MOST);
    if (!text)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for a route");
    *size = fread(text, 1, MOST, file);
    *out = text;
    if (ferror(file))
        return io_failure("read", path);
    return *size < MOST ? QG_OK
                        : qg_fail(QG_ERROR_DATA, "%.300s: too long for a file of routes", path);
}

qg_status route_file_read(const char *path, route_list *out) {
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return errno == ENOENT ? QG_OK : io_failure("open", path);
    qg_status status = read_text(file, path, &text, &size);
    fclose(file);
    if (!status)
        status = route_text_parse(path, text, size, out);
    free(text);
    return status;
}

// The folders of a path, as far as they are missing; a failure shows when the file is opened.
static void make_folders(const char *path) {
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0777);
        *slash = '/';
    }
}

static bool write_all(const route_list *list, FILE *file) {
    bool well = route_text_print(list, file) && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int error = errno;
    well &= fclose(file) == 0;
    if (!well && error)
        errno = error;
    return well;
}

qg_status route_file_write(const char *path, const route_list *list) {
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (length < 0 || length >= PATH_MAX)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.100s...' is too long for a path", path);
    make_folders(path);
    FILE *file = fopen(temporary, "we");
    if (!file)
        return io_failure("write", path);
    if (write_all(list, file) && rename(temporary, path) == 0)
        return QG_OK;
    qg_status status = io_failure("write", path);
    remove(temporary);
    return status;
}
