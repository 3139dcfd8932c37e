// A folder for the files that tests of tensor files write, and small builders of such files.
#ifndef TENSOR_SCRATCH_H
#define TENSOR_SCRATCH_H

#include <check.h>
#include <dirent.h>
#include <qg_bits.h>
#include <qg_tensor_file.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char scratch_folder[256];

static inline void scratch_open(void) {
    const char *root = getenv("TMPDIR");
    if (!root || strlen(root) > 200) // memory where there is some: thousands of files
        root = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(scratch_folder, sizeof scratch_folder, "%s/quantgauge-test-XXXXXX", root);
    if (!mkdtemp(scratch_folder))
        abort();
}

static inline const char *scratch_path(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_folder, name);
    return path;
}

static inline void scratch_close(void) {
    DIR *folder = opendir(scratch_folder);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlink(scratch_path(entry->d_name));
    if (folder)
        closedir(folder);
    rmdir(scratch_folder);
}

// A growing byte string.
typedef struct bytes {
    uint8_t data[1 << 16];
    size_t size;
} bytes;

static inline void add_bytes(bytes *b, const void *data, size_t size) {
    ck_assert_uint_le(b->size + size, sizeof b->data);
    if (size)
        memcpy(b->data + b->size, data, size);
    b->size += size;
}

// Little endian.
static inline void add_number(bytes *b, uint64_t value, int size) {
    for (int i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        add_bytes(b, &byte, 1);
    }
}

static inline void add_float(bytes *b, float x) { add_number(b, qg_bits_of_float(x), 4); }

static inline const char *write_file(const char *name, const void *data, size_t size) {
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

// Opens and expects failure with a one-line detail that names the file and contains `words`.
static inline void expect_refused(const char *path, qg_status status, const char *words) {
    qg_tensor_file *file = (qg_tensor_file *)1;
    qg_status got = qg_tensor_file_open(path, &file);
    const char *detail = qg_detail();
    ck_assert_msg(got == status, "%s: status %d, wanted %d: %s", words, (int)got, (int)status,
                  got == QG_OK ? "no error" : detail);
    ck_assert_ptr_null(file);
    ck_assert_msg(strstr(detail, path) != NULL, "\"%s\" does not name %s", detail, path);
    ck_assert_msg(strstr(detail, words) != NULL, "\"%s\" does not say \"%s\"", detail, words);
    ck_assert_msg(strchr(detail, '\n') == NULL, "\"%s\" is more than one line", detail);
}

static inline qg_tensor_file *open_file(const char *path) {
    qg_tensor_file *file;
    qg_status status = qg_tensor_file_open(path, &file);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    return file;
}

// Checks one tensor's description: skipped is NULL or a part of the reason.
static inline void expect_tensor(const qg_tensor_file *file, int64_t index, const char *name,
                                 const char *dtype, int64_t m, int64_t k, const char *skipped) {
    ck_assert_int_lt(index, qg_tensor_file_count(file));
    qg_tensor_info info = qg_tensor_file_info(file, index);
    ck_assert_str_eq(info.name, name);
    ck_assert_str_eq(info.dtype, dtype);
    ck_assert_int_eq(info.m, m);
    ck_assert_int_eq(info.k, k);
    ck_assert_msg(!skipped == !info.skipped, "%s: skipped: %s", name,
                  info.skipped ? info.skipped : "no");
    if (skipped)
        ck_assert_msg(strstr(info.skipped, skipped) != NULL, "%s: \"%s\" does not say \"%s\"", name,
                      info.skipped, skipped);
}

static inline void expect_integers(qg_tensor_file *file, int64_t index, const int64_t *wanted,
                                   int64_t count) {
    int64_t x[64];
    ck_assert_int_le(count, 64);
    ck_assert_msg(qg_tensor_file_read_i64(file, index, x) == QG_OK, "%s", qg_detail());
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(x[i], wanted[i]);
}

static inline void expect_values(qg_tensor_file *file, int64_t index, const uint32_t *bits,
                                 int64_t count) {
    float x[64];
    ck_assert_int_le(count, 64);
    ck_assert_msg(qg_tensor_file_read(file, index, x) == QG_OK, "%s", qg_detail());
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(qg_bits_of_float(x[i]) == bits[i], "value %d: %08x, wanted %08x", (int)i,
                      qg_bits_of_float(x[i]), bits[i]);
}

#endif
