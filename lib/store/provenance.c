// See qg_provenance.h.
#include <qg_provenance.h>

#include <qg_build_info.h>
#include <qg_digest.h>
#include <qg_init.h>
#include <qg_version.h>

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { DIGEST_SIZE = 17, VALUE_SIZE = 256, PIECE_SIZE = 1 << 16 };

static bool commit_says_all(void) {
    return !QG_BUILD_DIRTY && strcmp(QG_BUILD_COMMIT, "unknown") != 0;
}

static ssize_t read_piece(int file, char *piece) {
    ssize_t size;
    do
        size = read(file, piece, PIECE_SIZE);
    while (size < 0 && errno == EINTR);
    return size;
}

static qg_status digest_binary(int file, qg_digest *digest, uint64_t *out) {
    char *piece = malloc(PIECE_SIZE);
    if (!piece)
        return qg_fail(QG_ERROR_MEMORY, "no memory to digest the running binary");
    ssize_t size;
    while ((size = read_piece(file, piece)) > 0)
        qg_digest_add(digest, piece, (size_t)size);
    int reason = errno;
    free(piece);
    if (size < 0)
        return qg_fail(QG_ERROR_IO, "/proc/self/exe: cannot read: %s", strerror(reason));
    *out = qg_digest_value(digest);
    return QG_OK;
}

static qg_status binary_digest(char text[DIGEST_SIZE]) {
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return qg_fail(QG_ERROR_IO, "/proc/self/exe: cannot open: %s", strerror(errno));
    qg_digest *digest;
    uint64_t value = 0;
    qg_status status = qg_digest_create(&digest);
    if (status == QG_OK)
        status = digest_binary(file, digest, &value);
    qg_digest_free(digest);
    close(file);
    snprintf(text, DIGEST_SIZE, "%016" PRIx64, value);
    return status;
}

// Microseconds tell two processes of one launch apart.
static void time_now(char text[VALUE_SIZE]) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t length = strftime(text, VALUE_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + length, VALUE_SIZE - length, ".%06ldZ", now.tv_nsec / 1000);
}

// What all runs of this process share.
static struct {
    bool known;
    char start[VALUE_SIZE], digest[DIGEST_SIZE], identity[QG_BUILD_IDENTITY_SIZE];
} process;

static qg_status know_process(void) {
    if (process.known)
        return QG_OK;
    qg_status status = commit_says_all() ? QG_OK : binary_digest(process.digest);
    if (status != QG_OK)
        return status;
    snprintf(process.identity, sizeof process.identity, "%s %s%s%s%s", QG_VERSION, QG_BUILD_COMMIT,
             QG_BUILD_DIRTY ? "+dirty" : "", process.digest[0] ? " " : "", process.digest);
    time_now(process.start);
    process.known = true;
    return QG_OK;
}

qg_status qg_build_identity(char identity[QG_BUILD_IDENTITY_SIZE]) {
    qg_status status = know_process();
    if (status == QG_OK)
        memcpy(identity, process.identity, sizeof process.identity);
    return status;
}

typedef struct pair {
    const char *key, *value;
} pair;

static qg_status set_pairs(qg_table *table, int64_t run, const pair *pairs, size_t count) {
    qg_status status = QG_OK;
    for (size_t i = 0; i < count && status == QG_OK; i++)
        status = qg_table_set_run(table, run, pairs[i].key, pairs[i].value);
    return status;
}

static qg_status set_build(qg_table *table, int64_t run) {
    const pair pairs[] = {
        {QG_RUN_BUILD, process.identity},
        {"version", QG_VERSION},
        {"commit", QG_BUILD_COMMIT},
        {"dirty", QG_BUILD_DIRTY ? "1" : "0"},
        {"build_digest", process.digest},
        {"compiler", QG_BUILD_COMPILER},
        {"flags", QG_BUILD_FLAGS},
        {"build_type", QG_BUILD_TYPE},
    };
    return set_pairs(table, run, pairs, sizeof pairs / sizeof pairs[0]);
}

static qg_status set_machine(qg_table *table, int64_t run) {
    char features[VALUE_SIZE], brand[VALUE_SIZE], os[VALUE_SIZE] = "unknown", hdf5[VALUE_SIZE];
    struct utsname system;
    unsigned major = 0, minor = 0, release = 0;
    qg_cpu_describe(features, sizeof features, brand, sizeof brand);
    if (uname(&system) == 0)
        snprintf(os, sizeof os, "%.64s %.96s %.64s", system.sysname, system.release,
                 system.machine);
    H5get_libversion(&major, &minor, &release);
    snprintf(hdf5, sizeof hdf5, "%u.%u.%u", major, minor, release);
    const pair pairs[] = {
        {"cpu", brand},   {"cpu_features", features}, {"fp_environment", qg_fp_describe()},
        {"os", os},       {"hdf5", hdf5},             {"cuda", "none"},
        {"driver", "none"}, {"cublaslt", "none"},     {"gpu", "none"},
    };
    return set_pairs(table, run, pairs, sizeof pairs / sizeof pairs[0]);
}

static qg_status set_process(qg_table *table, int64_t run, const char *isa, const char *isa_cap,
                             int threads) {
    char threads_text[24], id[24];
    snprintf(threads_text, sizeof threads_text, "%ld",
             threads > 0 ? (long)threads : sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(id, sizeof id, "%ld", (long)getpid());
    const pair pairs[] = {
        {"isa", isa},
        {"isa_cap", isa_cap ? isa_cap : "none"},
        {"threads", threads_text},
        {"process", id},
        {"start", process.start},
        {"end", process.start},
    };
    return set_pairs(table, run, pairs, sizeof pairs / sizeof pairs[0]);
}

qg_status qg_provenance_begin(qg_table *table, const char *isa, const char *isa_cap, int threads,
                              int64_t *run) {
    qg_status status = know_process();
    if (status == QG_OK)
        status = qg_table_add_run(table, run);
    if (status == QG_OK)
        status = set_build(table, *run);
    if (status == QG_OK)
        status = set_machine(table, *run);
    if (status == QG_OK)
        status = set_process(table, *run, isa, isa_cap, threads);
    return status;
}

qg_status qg_provenance_end(qg_table *table, int64_t run) {
    char end[VALUE_SIZE];
    time_now(end);
    return qg_table_set_run(table, run, "end", end);
}
