// Deterministic mutations of small valid tensor files: whatever a file says, the reader answers
// with a status and one line, or with tensors that can be read.
#ifndef TENSOR_FUZZ_H
#define TENSOR_FUZZ_H

#include "tensor_scratch.h"

#include <hdf5.h>
#include <qg_philox.h>
#include <qg_size.h>

typedef struct fuzz_random {
    uint64_t seed, next;
} fuzz_random;

static inline uint32_t fuzz_below(fuzz_random *random, uint64_t limit) {
    return (uint32_t)(qg_philox_word(random->seed, QG_STREAM_STRUCTURE, random->next++) % limit);
}

// ------------------------------------------------------------------------------------ seeds

static inline void seed_safetensors(bytes *b) {
    const char *header = "{\"__metadata__\":{\"format\":\"pt\"},"
                         "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                         "\"layer.1.bias\":{\"dtype\":\"BF16\",\"shape\":[4],"
                         "\"data_offsets\":[24,32]},"
                         "\"h\":{\"dtype\":\"F16\",\"shape\":[1,2,1],\"data_offsets\":[32,36]},"
                         "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[36,44]},"
                         "\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[44,52]}}   ";
    b->size = 0;
    add_number(b, strlen(header), 8);
    add_bytes(b, header, strlen(header));
    for (int i = 0; i < 52; i++)
        add_number(b, (uint64_t)i * 37, 1);
}

static inline void seed_npy(bytes *b) {
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }      \n";
    b->size = 0;
    add_bytes(b, "\x93NUMPY\1\0", 8);
    add_number(b, strlen(header), 2);
    add_bytes(b, header, strlen(header));
    for (int i = 0; i < 60; i++)
        add_number(b, (uint64_t)i * 37, 1);
}

// The sidecar is what is mutated; the raw file beside it stays.
static inline void seed_sidecar(bytes *b) {
    static const uint8_t values[24];
    const char *sidecar = "{\"dtype\": \"bf16\", \"shape\": [3, 4]}\n";
    write_file("fuzz.bin", values, sizeof values);
    b->size = 0;
    add_bytes(b, sidecar, strlen(sidecar));
}

static inline void seed_hdf5(bytes *b) {
    const char *path = scratch_path("seed.h5");
    static const hsize_t shape[2] = {4, 3}, chunk[2] = {2, 3};
    static const float x[12] = {1.0f, 2.0f, 3.0f};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "layer", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, shape, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    const hid_t types[] = {H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I32LE, H5T_STD_I64BE};
    static const char *const names[] = {"plain", "chunked", "plain", "indices"};
    for (int i = 0; i < 4; i++) {
        hid_t set = H5Dcreate2(i ? group : file, names[i], types[i], space, H5P_DEFAULT,
                               i == 1 ? creation : H5P_DEFAULT, H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
        H5Dclose(set);
    }
    H5Pclose(creation);
    H5Sclose(space);
    H5Gclose(group);
    H5Fclose(file);
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    b->size = fread(b->data, 1, sizeof b->data, stream);
    fclose(stream);
    ck_assert_uint_lt(b->size, sizeof b->data);
}

// ------------------------------------------------------------------------------------ mutations

static inline void replace(bytes *b, size_t at, size_t length, const void *data, size_t size) {
    if (b->size - length + size > sizeof b->data)
        return;
    memmove(b->data + at + size, b->data + at + length, b->size - at - length);
    if (size)
        memcpy(b->data + at, data, size);
    b->size += size - length;
}

static inline void mutate_number_text(bytes *b, fuzz_random *random) {
    static const char *const numbers[] = {"9223372036854775807",
                                          "9223372036854775808",
                                          "-1",
                                          "0",
                                          "18446744073709551616",
                                          "4294967296",
                                          "1e400",
                                          "3.0",
                                          "2147483648",
                                          "-9223372036854775809",
                                          "1",
                                          "24",
                                          "nan",
                                          "4611686018427387904",
                                          "00",
                                          "1152921504606846976"};
    size_t start = fuzz_below(random, b->size);
    for (size_t i = 0; i < b->size; i++) {
        size_t at = (start + i) % b->size, end = at;
        while (end < b->size && b->data[end] >= '0' && b->data[end] <= '9')
            end++;
        if (end == at)
            continue;
        const char *number = numbers[fuzz_below(random, sizeof numbers / sizeof numbers[0])];
        replace(b, at, end - at, number, strlen(number));
        return;
    }
}

static inline void mutate_number_bytes(bytes *b, fuzz_random *random) {
    static const uint64_t numbers[] = {0,          1,          0x7f,       0xff,
                                       0xffff,     0x7fffffff, 0xffffffff, 1ull << 32,
                                       1ull << 62, INT64_MAX,  1ull << 63, UINT64_MAX};
    size_t size = (size_t)1 << fuzz_below(random, 4);
    if (b->size < size)
        return;
    // Lengths and signatures lie in the first bytes more often than chance would find.
    size_t limit = fuzz_below(random, 3) ? b->size - size + 1 : 1;
    size_t at = fuzz_below(random, limit);
    uint64_t number = numbers[fuzz_below(random, sizeof numbers / sizeof numbers[0])];
    for (size_t i = 0; i < size; i++)
        b->data[at + i] = (uint8_t)(number >> (8 * i));
}

static inline void mutate_nesting(bytes *b, fuzz_random *random) {
    static const char *const words[] = {"[", "{\"a\":", "(", "\"", "]", "}", ",", "[[[[[[[["};
    const char *word = words[fuzz_below(random, sizeof words / sizeof words[0])];
    size_t at = fuzz_below(random, b->size + 1), times = 1 + fuzz_below(random, 40);
    for (size_t i = 0; i < times; i++)
        replace(b, at, 0, word, strlen(word));
}

static inline void mutate_once(bytes *b, fuzz_random *random) {
    if (b->size == 0)
        return;
    size_t at = fuzz_below(random, b->size), length;
    uint8_t copy[64], byte;
    switch (fuzz_below(random, 9)) {
    case 0: b->size = at; break;
    case 1:
    case 2: b->data[at] ^= (uint8_t)(1u << fuzz_below(random, 8)); break;
    case 3: b->data[at] = (uint8_t)fuzz_below(random, 256); break;
    case 4: mutate_number_text(b, random); break;
    case 5: mutate_number_bytes(b, random); break;
    case 6: mutate_nesting(b, random); break;
    case 7: // a stretch twice: duplicate keys, repeated tensors
        length = 1 + fuzz_below(random, sizeof copy);
        length = length > b->size - at ? b->size - at : length;
        memcpy(copy, b->data + at, length);
        replace(b, fuzz_below(random, b->size), 0, copy, length);
        break;
    default: // a byte lost or gained
        byte = (uint8_t)fuzz_below(random, 256);
        replace(b, at, fuzz_below(random, 2), &byte, fuzz_below(random, 2));
    }
}

// A safetensors header whose length still fits reaches the JSON more often.
static inline void repair_length(bytes *b, size_t old_size, size_t old_length) {
    uint64_t length = old_length + b->size - old_size;
    for (int i = 0; i < 8 && (size_t)i < b->size; i++)
        b->data[i] = (uint8_t)(length >> (8 * i));
}

// ------------------------------------------------------------------------------------ checks

// Reads what is there as data or as indices into a block of exactly its size, so that an overrun is
// seen.
static inline bool read_one(qg_tensor_file *file, int64_t index, const qg_tensor_info *info) {
    size_t size = (size_t)(info->m * info->k) * (info->skipped ? 8 : 4);
    void *x = malloc(size);
    ck_assert_ptr_nonnull(x);
    qg_status status = info->skipped ? qg_tensor_file_read_i64(file, index, x)
                                     : qg_tensor_file_read(file, index, x);
    free(x);
    return status == QG_OK;
}

static inline void read_all(qg_tensor_file *file, int64_t *readable) {
    for (int64_t i = 0; i < qg_tensor_file_count(file); i++) {
        qg_tensor_info info = qg_tensor_file_info(file, i);
        int64_t elements, bytes_needed;
        ck_assert(info.name != NULL && info.dtype != NULL);
        ck_assert_int_eq(info.m == 0, info.k == 0);
        ck_assert(info.skipped != NULL || info.m > 0);
        ck_assert(qg_size_multiply(info.m, info.k, &elements));
        ck_assert(qg_size_multiply(elements, 8, &bytes_needed));
        int64_t number;
        if (info.skipped && info.m == 0)
            ck_assert_int_eq(qg_tensor_file_read_i64(file, i, &number), QG_ERROR_UNSUPPORTED);
        else if (elements <= 1 << 22)
            *readable += read_one(file, i, &info);
    }
}

static inline void open_and_read(const char *path, int64_t *opened, int64_t *readable) {
    qg_tensor_file *file = NULL;
    qg_status status = qg_tensor_file_open(path, &file);
    if (status == QG_OK) {
        ++*opened;
        read_all(file, readable);
        qg_tensor_file_close(file);
        return;
    }
    ck_assert_ptr_null(file);
    ck_assert_int_gt((int)strlen(qg_detail()), 10);
    ck_assert_ptr_null(strchr(qg_detail(), '\n'));
}

typedef struct fuzz_target {
    const char *mutated, *opened; // file names
    void (*seed)(bytes *);
    bool has_length;
    int64_t tensors; // of the seed that can be read
} fuzz_target;

static const fuzz_target fuzz_safetensors = {"fuzz.safetensors", "fuzz.safetensors",
                                             seed_safetensors, true, 5};
static const fuzz_target fuzz_npy = {"fuzz.npy", "fuzz.npy", seed_npy, false, 1};
static const fuzz_target fuzz_sidecar = {"fuzz.bin.json", "fuzz.bin", seed_sidecar, false, 1};
static const fuzz_target fuzz_hdf5 = {"fuzz.h5", "fuzz.h5", seed_hdf5, false, 3};

static inline void fuzz(const fuzz_target *target, uint64_t seed, int64_t rounds) {
    static bytes original, b;
    char path[512];
    int64_t opened = 0, readable = 0;
    target->seed(&original);
    snprintf(path, sizeof path, "%s", scratch_path(target->opened));
    write_file(target->mutated, original.data, original.size);
    open_and_read(path, &opened, &readable);
    ck_assert_msg(opened == 1 && readable >= target->tensors, "the seed itself: %s", qg_detail());
    for (int64_t round = 0; round < rounds; round++) {
        fuzz_random random = {seed + (uint64_t)round, 0};
        b.size = original.size;
        memcpy(b.data, original.data, original.size);
        for (uint32_t i = 0, times = 1 + fuzz_below(&random, 3); i < times; i++)
            mutate_once(&b, &random);
        if (target->has_length && fuzz_below(&random, 2))
            repair_length(&b, original.size, original.size - 8 - 52);
        write_file(target->mutated, b.data, b.size);
        open_and_read(path, &opened, &readable);
    }
    printf("%s: %d mutations, %d opened, %d tensors read\n", target->opened, (int)rounds,
           (int)opened - 1, (int)readable);
    ck_assert_int_gt(opened, 1); // some mutations are harmless, most are not
    ck_assert_int_lt(opened, rounds);
}

#endif
