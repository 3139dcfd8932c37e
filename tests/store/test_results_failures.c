// Writing that fails loses nothing: the file stays as it was and nothing half-written remains.
// Full disks are made with a limit on file sizes, and with a small tmpfs where mounting is allowed.
#include "results_sample.h"
#include <errno.h>
#include <results_hdf5_internal.h>
#include <run_suite.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void assert_untouched(const char *path, const void *bytes, size_t size) {
    size_t now_size;
    unsigned char *now = load_bytes(path, &now_size);
    ck_assert_uint_eq(now_size, size);
    ck_assert_mem_eq(now, bytes, size);
    free(now);
}

static void assert_absent(const char *path) {
    struct stat info;
    ck_assert_msg(lstat(path, &info) != 0 && errno == ENOENT, "%s exists", path);
}

static void assert_fails(const char *path, const qg_table *table, int64_t image_limit,
                         const char *reason) {
    ck_assert_int_eq(
        qg_results_write_limited(path, table, QG_RESULTS_MERGED, true, image_limit), QG_ERROR_IO);
    ck_assert_msg(strstr(qg_detail(), path) != NULL, "no path in: %s", qg_detail());
    ck_assert_msg(strstr(qg_detail(), reason) != NULL, "no \"%s\" in: %s", reason, qg_detail());
}

static void limit_file_size(rlim_t size) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void fail_to_grow(int64_t image_limit) {
    qg_table *small = sample_table(0, 1), *large = sample_table(0, 2000);
    const char *path = path_of("kept.h5"), *temporary = path_of("kept.h5.tmp");
    size_t size;
    ok(qg_results_write(path, small, QG_RESULTS_MERGED, true));
    unsigned char *bytes = load_bytes(path, &size);
    limit_file_size(size + 1000);
    assert_fails(path, large, image_limit, "File too large");
    assert_absent(temporary);
    assert_untouched(path, bytes, size);
    assert_fails(path_of("absent.h5"), large, image_limit, "File too large");
    assert_absent(path_of("absent.h5"));
    assert_absent(path_of("absent.h5.tmp"));
    limit_file_size(RLIM_INFINITY);
    qg_table *back = read_back(path, NULL);
    ck_assert_int_eq(qg_table_rows(back), 1);
    ok(qg_results_write(path, large, QG_RESULTS_MERGED, true)); // and it can be repeated
    qg_table_free(back);
    back = read_back(path, NULL);
    ck_assert_int_eq(qg_table_rows(back), 2000);
    qg_table *const all[] = {small, large, back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
    free(bytes);
}

START_TEST(a_file_that_cannot_grow) { fail_to_grow(INT64_MAX); }
END_TEST

// HDF5 finds out late that a write failed, and keeps the file open: a process of its own (Check's).
START_TEST(a_file_that_cannot_grow_written_by_hdf5) {
    qg_table *large = sample_table(0, 2000);
    const char *path = path_of("direct.h5");
    save_bytes(path, "before", 6);
    limit_file_size(50000);
    assert_fails(path, large, 0, "File too large");
    limit_file_size(RLIM_INFINITY);
    assert_absent(path_of("direct.h5.tmp"));
    assert_untouched(path, "before", 6);
    qg_table_free(large);
}
END_TEST

START_TEST(a_full_disk) {
    const char *folder = path_of("disk");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=512k") != 0) {
        printf("  a_full_disk: left out, mounting a tmpfs is not allowed (%s)\n", strerror(errno));
        rmdir(folder);
        return;
    }
    qg_table *small = sample_table(0, 1), *large = sample_table(0, 4000);
    const char *path = path_of("disk/kept.h5");
    qg_status first = qg_results_write(path, small, QG_RESULTS_MERGED, true);
    qg_status image = qg_results_write(path, large, QG_RESULTS_MERGED, true);
    bool named = strstr(qg_detail(), "No space left on device") && strstr(qg_detail(), path);
    bool left = access(path_of("disk/kept.h5.tmp"), F_OK) == 0;
    qg_table *back;
    bool verified = false;
    qg_status read = qg_results_read(path, &back, NULL, &verified);
    umount2(folder, MNT_DETACH);
    rmdir(folder);
    ck_assert_int_eq(first, QG_OK);
    ck_assert_int_eq(image, QG_ERROR_IO);
    ck_assert(named && !left);
    ck_assert_int_eq(read, QG_OK);
    ck_assert(verified);
    ck_assert_int_eq(qg_table_rows(back), 1);
    qg_table *const all[] = {small, large, back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        qg_table_free(all[i]);
}
END_TEST

START_TEST(folders_that_cannot_be_written) {
    qg_table *table = sample_table(0, 3);
    save_bytes(path_of("file"), "x", 1);
    assert_fails(path_of("file/a.h5"), table, INT64_MAX, "Not a directory");
    assert_fails(path_of("file/a.h5"), table, 0, "Not a directory");
    assert_fails(path_of("nowhere/a.h5"), table, INT64_MAX, "No such file");
    assert_fails(path_of("nowhere/a.h5"), table, 0, "No such file");
    assert_untouched(path_of("file"), "x", 1);
    qg_table_free(table);
}
END_TEST

START_TEST(only_regular_files_are_replaced) {
    qg_table *table = sample_table(0, 3);
    struct stat info;
    ck_assert_int_eq(mkdir(path_of("folder"), 0700), 0);
    assert_fails(path_of("folder"), table, INT64_MAX, "no regular file");
    assert_absent(path_of("folder.tmp"));
    ck_assert_int_eq(mkfifo(path_of("pipe"), 0600), 0);
    assert_fails(path_of("pipe"), table, INT64_MAX, "no regular file");
    ck_assert_int_eq(lstat(path_of("pipe"), &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
    assert_fails("/dev/null", table, INT64_MAX, "no regular file");
    ck_assert_int_eq(rmdir(path_of("folder")), 0);
    qg_table_free(table);
}
END_TEST

START_TEST(a_symbolic_link_stays) {
    qg_table *table = sample_table(0, 3);
    struct stat info;
    save_bytes(path_of("target.h5"), "before", 6);
    ck_assert_int_eq(symlink("target.h5", path_of("link.h5")), 0);
    ok(qg_results_write(path_of("link.h5"), table, QG_RESULTS_PART, false));
    ck_assert_int_eq(lstat(path_of("link.h5"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    qg_table_free(read_back(path_of("target.h5"), NULL));
    qg_table_free(table);
}
END_TEST

START_TEST(left_overs_are_overwritten) {
    qg_table *table = sample_table(0, 3);
    save_bytes(path_of("a.h5.tmp"), "left over by a kill", 19);
    ok(qg_results_write(path_of("a.h5"), table, QG_RESULTS_MERGED, true));
    assert_absent(path_of("a.h5.tmp"));
    qg_table_free(read_back(path_of("a.h5"), NULL));
    qg_table_free(table);
}
END_TEST

START_TEST(files_that_cannot_be_read) {
    qg_table *out = NULL;
    ck_assert_int_eq(qg_results_read(path_of("none.h5"), &out, NULL, NULL), QG_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "No such file"));
    ck_assert_int_eq(qg_results_read(scratch(), &out, NULL, NULL), QG_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(qg_detail(), scratch()));
    ck_assert_ptr_null(out);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_file_that_cannot_grow,
                                  a_file_that_cannot_grow_written_by_hdf5,
                                  a_full_disk,
                                  folders_that_cannot_be_written,
                                  only_regular_files_are_replaced,
                                  a_symbolic_link_stays,
                                  left_overs_are_overwritten,
                                  files_that_cannot_be_read};
    scratch();
    int failed = RUN_SUITE("results_failures", tests);
    remove_scratch();
    return failed;
}
