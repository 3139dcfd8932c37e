// Locks of a result file's parts. See qg_locks.h.
//
// merge.lock guards the folder: shared for a moment by whoever starts, alone by whoever finishes. A
// finishing shard sees under it which other shards run, and gives up its own lock under it: so the
// last one knows that it is the last. The folder is removed under it, so it counts only if the
// locked file is still the one in the folder: otherwise take it again.
#include <qg_locks.h>

#include <qg_memory.h>
#include <qg_signals.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 1000 };

struct qg_locks {
    char folder[PATH_MAX];  // FILE.parts
    int merge_fd, shard_fd; // -1: not held
    char shard_name[64];    // of the lock file, "" without one
    bool finishing;         // merge.lock is held alone
    bool alone;             // and no other shard runs
};

static qg_status refuse(const char *what, const char *path) {
    return qg_fail(QG_ERROR_IO, "cannot %s %s: %s", what, path, strerror(errno));
}

static qg_status create(const char *out, qg_locks **locks) {
    void *bytes;
    *locks = NULL;
    qg_status status = qg_allocate(&bytes, 1, sizeof(qg_locks), "locks");
    if (status != QG_OK)
        return status;
    qg_locks *l = bytes;
    l->merge_fd = l->shard_fd = -1;
    if (snprintf(l->folder, sizeof l->folder, "%s.parts", out) >= PATH_MAX - NAME_MAX) {
        qg_release(l);
        return qg_fail(QG_ERROR_ARGUMENT, "the path of the result file is too long");
    }
    *locks = l;
    return QG_OK;
}

static void close_lock(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// The shard's first: whoever waits for merge.lock shall find it free.
static void close_all(qg_locks *locks) {
    close_lock(&locks->shard_fd);
    close_lock(&locks->merge_fd);
}

static void path_in(const qg_locks *locks, const char *name, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%.*s/%.*s", PATH_MAX - NAME_MAX - 2, locks->folder, NAME_MAX, name);
}

// F_RDLCK shares, F_WRLCK excludes. Succeeds at once or fails with EAGAIN. These locks belong to
// the process: a worker just forked does not hold them on when its parent is killed. (Closing any
// descriptor of the file releases them: each lock file is opened once.)
static int lock_now(int fd, short kind) {
    struct flock whole = {.l_type = kind, .l_whence = SEEK_SET};
    int failed;
    do
        failed = fcntl(fd, F_SETLK, &whole);
    while (failed && errno == EINTR);
    if (failed && errno == EACCES)
        errno = EAGAIN; // POSIX lets systems choose
    return failed;
}

// Waits for the lock, until a signal asks to stop: then EINTR.
static int lock_patiently(int fd, short kind) {
    while (lock_now(fd, kind) != 0) {
        if (errno != EAGAIN)
            return -1;
        if (qg_signals_stop()) {
            errno = EINTR;
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return 0;
}

static bool is_still_there(int fd, const char *path) {
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

// Opens and locks merge.lock. QG_OK with merge_fd -1: the folder is not there.
static qg_status lock_folder(qg_locks *locks, short kind, bool make, bool patient) {
    char path[PATH_MAX];
    path_in(locks, "merge.lock", path);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        if (make && mkdir(locks->folder, 0777) != 0 && errno != EEXIST)
            return refuse("make the folder", locks->folder);
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 && errno == ENOENT) {
            if (!make)
                return QG_OK;
            continue; // its last holder removed the folder just now
        }
        if (fd < 0)
            return refuse("open", path);
        locks->merge_fd = fd;
        if ((patient ? lock_patiently : lock_now)(fd, kind) != 0)
            return errno == EAGAIN ? qg_fail(QG_ERROR_ENVIRONMENT, "%s is being started or merged",
                                             locks->folder)
                                   : refuse("lock", path);
        if (is_still_there(fd, path))
            return QG_OK;
        close_lock(&locks->merge_fd);
    }
    return qg_fail(QG_ERROR_IO, "%s keeps being removed by another process", locks->folder);
}

// Writes who holds a lock, for the message of whoever it refuses. Best effort.
static void sign(int fd) {
    char text[128], host[64] = "";
    gethostname(host, sizeof host - 1);
    int length = snprintf(text, sizeof text, "process %ld on %s", (long)getpid(), host);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)length, 0) != length)
        return;
}

static void read_signature(int fd, char text[128]) {
    ssize_t length = pread(fd, text, 127, 0);
    text[length > 0 ? length : 0] = 0;
    if (length <= 0)
        snprintf(text, 128, "another process");
}

static qg_status refuse_held(int fd, int shard, int shards, const char *folder) {
    char who[128];
    read_signature(fd, who);
    return qg_fail(QG_ERROR_ENVIRONMENT, "shard %d/%d of %.*s is being run by %s", shard, shards,
                   (int)(strlen(folder) - strlen(".parts")), folder, who);
}

static qg_status lock_shard(qg_locks *locks, int shard, int shards) {
    char path[PATH_MAX];
    snprintf(locks->shard_name, sizeof locks->shard_name, "%d-of-%d.lock", shard, shards);
    path_in(locks, locks->shard_name, path);
    locks->shard_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (locks->shard_fd < 0)
        return refuse("open", path);
    if (lock_now(locks->shard_fd, F_WRLCK) != 0)
        return errno == EAGAIN ? refuse_held(locks->shard_fd, shard, shards, locks->folder)
                               : refuse("lock", path);
    sign(locks->shard_fd);
    return QG_OK;
}

// QG_ERROR_ENVIRONMENT if the lock file is held by another process.
static qg_status check_free(const qg_locks *locks, const char *name, int shard, int shards) {
    char path[PATH_MAX];
    path_in(locks, name, path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return QG_OK;
    qg_status status = QG_OK;
    if (lock_now(fd, F_WRLCK) != 0 && errno == EAGAIN)
        status = refuse_held(fd, shard, shards, locks->folder);
    close(fd);
    return status;
}

// QG_ERROR_ENVIRONMENT if another shard is running, of another split than `spared` (0: of any).
static qg_status check_others(const qg_locks *locks, int spared) {
    DIR *folder = opendir(locks->folder);
    if (!folder)
        return refuse("open the folder", locks->folder);
    qg_status status = QG_OK;
    struct dirent *entry;
    while (status == QG_OK && (entry = readdir(folder))) {
        int shard, shards;
        if (sscanf(entry->d_name, "%d-of-%d.lock", &shard, &shards) == 2 &&
            strstr(entry->d_name, ".lock") && shards != spared &&
            strcmp(entry->d_name, locks->shard_name) != 0)
            status = check_free(locks, entry->d_name, shard, shards);
    }
    closedir(folder);
    return status;
}

static qg_status give_up(qg_locks **locks, qg_status status) {
    close_all(*locks);
    qg_release(*locks);
    *locks = NULL;
    return status;
}

qg_status qg_locks_take(const char *out, int shard, int shards, qg_locks **locks) {
    qg_status status = create(out, locks);
    if (status != QG_OK)
        return status;
    status = lock_folder(*locks, F_RDLCK, true, true);
    if (status == QG_OK)
        status = lock_shard(*locks, shard, shards);
    if (status == QG_OK) // the same cases split another way must not run at the same time
        status = check_others(*locks, shards);
    if (status != QG_OK)
        return give_up(locks, status);
    close_lock(&(*locks)->merge_fd);
    return QG_OK;
}

qg_status qg_locks_take_alone(const char *out, qg_locks **locks) {
    qg_status status = create(out, locks);
    if (status != QG_OK)
        return status;
    status = lock_folder(*locks, F_WRLCK, false, false);
    if (status != QG_OK || (*locks)->merge_fd < 0)
        return give_up(locks, status);
    status = check_others(*locks, 0);
    if (status != QG_OK)
        return give_up(locks, status);
    (*locks)->finishing = (*locks)->alone = true;
    return QG_OK;
}

bool qg_locks_finish(qg_locks *locks) {
    if (locks->finishing)
        return locks->alone;
    // Our shard's lock keeps others from removing the folder: merge.lock is there.
    locks->finishing = lock_folder(locks, F_WRLCK, false, true) == QG_OK && locks->merge_fd >= 0;
    locks->alone = locks->finishing && check_others(locks, 0) == QG_OK;
    return locks->alone;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

static bool is_ours(const char *name) {
    return ends_with(name, ".h5") || ends_with(name, ".tmp") || ends_with(name, ".lock");
}

void qg_locks_remove_folder(qg_locks *locks) {
    char path[PATH_MAX];
    DIR *folder = opendir(locks->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (is_ours(entry->d_name) && strcmp(entry->d_name, "merge.lock") != 0) {
            path_in(locks, entry->d_name, path);
            unlink(path);
        }
    if (folder)
        closedir(folder);
    path_in(locks, "merge.lock", path);
    unlink(path);
    rmdir(locks->folder);
    locks->alone = false; // a folder of that name is another run's from now on
}

void qg_locks_in_worker(void *locks) {
    if (locks)
        close_all(locks);
}

static bool has_part(const qg_locks *locks) {
    DIR *folder = opendir(locks->folder);
    bool found = false;
    struct dirent *entry;
    while (folder && !found && (entry = readdir(folder)))
        found = ends_with(entry->d_name, ".h5");
    if (folder)
        closedir(folder);
    return found;
}

void qg_locks_release(qg_locks *locks) {
    if (!locks)
        return;
    if (!has_part(locks) && qg_locks_finish(locks))
        qg_locks_remove_folder(locks);
    close_all(locks);
    qg_release(locks);
}
