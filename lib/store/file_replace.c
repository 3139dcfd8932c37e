// See file_replace_internal.h.
#include <file_replace_internal.h>

#include <errno.h>
#include <fcntl.h>
#include <qg_digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static qg_status io_error(const char *path, const char *what) {
    int reason = errno;
    return qg_fail(QG_ERROR_IO, "%s: %s: %s", path, what, strerror(reason));
}

qg_status qg_replacement_begin(const char *path, qg_replacement *out) {
    *out = (qg_replacement){0};
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return qg_fail(QG_ERROR_IO, "%s: cannot write: it is no regular file", path);
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        out->target = realpath(path, NULL); // NULL where the link dangles: then it is replaced
    if (!out->target)
        out->target = strdup(path);
    size_t size = out->target ? strlen(out->target) + sizeof ".tmp" : 0;
    out->temporary = size ? malloc(size) : NULL;
    if (!out->temporary) {
        free(out->target);
        return qg_fail(QG_ERROR_MEMORY, "no memory for a file's name");
    }
    snprintf(out->temporary, size, "%s.tmp", out->target);
    unlink(out->temporary); // left over by a kill
    return QG_OK;
}

static int write_all(int file, const char *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        ssize_t written = write(file, bytes + at, size - at);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0)
            at += (size_t)written;
    }
    return 0;
}

qg_status qg_replacement_write(qg_replacement *replacement, const void *bytes, size_t size,
                               bool read_back) {
    replacement->read_back = read_back;
    replacement->digest = read_back ? qg_digest_bytes(bytes, size) : 0;
    const char *path = replacement->temporary;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
        return io_error(path, "cannot create");
    qg_status status = write_all(file, bytes, size) == 0 ? QG_OK : io_error(path, "cannot write");
    if (close(file) != 0 && status == QG_OK) // network file systems report a full disk here
        status = io_error(path, "cannot write");
    return status;
}

// The file is whole whether or not its directory entry has reached the disk, and some file systems
// cannot sync a directory: no error.
static void sync_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int file = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (file >= 0) {
        fsync(file);
        close(file);
    }
    free(folder);
}

static qg_status digest_file(const char *path, int file, uint64_t *out) {
    enum { PIECE = 1 << 18 };
    char *piece = malloc(PIECE);
    qg_digest *digest = NULL;
    qg_status status =
        piece ? qg_digest_create(&digest) : qg_fail(QG_ERROR_MEMORY, "no memory to read back");
    ssize_t size = 1;
    for (off_t at = 0; status == QG_OK && size != 0; at += size > 0 ? size : 0) {
        size = pread(file, piece, PIECE, at);
        if (size > 0)
            qg_digest_add(digest, piece, (size_t)size);
        else if (size < 0 && errno != EINTR)
            status = io_error(path, "cannot read back");
    }
    if (status == QG_OK)
        *out = qg_digest_value(digest);
    qg_digest_free(digest);
    free(piece);
    return status;
}

static qg_status check_file(const qg_replacement *replacement, int file) {
    uint64_t digest = 0;
    qg_status status = digest_file(replacement->temporary, file, &digest);
    if (status == QG_OK && digest != replacement->digest)
        status = qg_fail(QG_ERROR_IO, "%s: it does not read back as it was written",
                         replacement->temporary);
    return status;
}

qg_status qg_replacement_commit(const qg_replacement *replacement) {
    const char *path = replacement->temporary;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return io_error(path, "cannot open");
    qg_status status = fsync(file) == 0 ? QG_OK : io_error(path, "cannot sync");
    if (status == QG_OK && replacement->read_back)
        status = check_file(replacement, file);
    close(file);
    if (status == QG_OK && rename(path, replacement->target) != 0)
        status = io_error(replacement->target, "cannot rename the finished file to it");
    if (status == QG_OK)
        sync_folder_of(replacement->target);
    return status;
}

void qg_replacement_end(qg_replacement *replacement, int keep) {
    if (!keep && replacement->temporary)
        unlink(replacement->temporary);
    free(replacement->temporary);
    free(replacement->target);
    *replacement = (qg_replacement){0};
}
