// .npy and raw files with a sidecar, and what every kind of file shares when it is opened.
#include "tensor_scratch.h"

#include <run_suite.h>
#include <sys/stat.h>

// A .npy file of the given major version, `size` zero bytes behind the header.
static const char *write_npy(int version, const char *header, size_t size) {
    bytes b = {.size = 0};
    add_bytes(&b, "\x93NUMPY", 6);
    add_number(&b, (uint64_t)version, 2);
    add_number(&b, strlen(header), version == 1 ? 2 : 4);
    add_bytes(&b, header, strlen(header));
    memset(b.data + b.size, 0, size);
    b.size += size;
    return write_file("t.npy", b.data, b.size);
}

START_TEST(npy_versions_and_spellings) {
    static const struct {
        int version;
        const char *header, *dtype;
        int64_t m, k;
        size_t size;
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", "f32", 2, 3, 24},
        {2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4)}", "f64", 6, 4, 192},
        {3, "{\"shape\":(5,),\"fortran_order\":False,\"descr\":\"<f2\"}\n", "f16", 1, 5, 10},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (3,)}\n", "f32", 1, 3, 12},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1,)}\n", "f32", 1, 1, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = write_npy(cases[i].version, cases[i].header, cases[i].size);
        qg_tensor_file *file = open_file(path);
        ck_assert_int_eq(qg_tensor_file_count(file), 1);
        expect_tensor(file, 0, "t.npy", cases[i].dtype, cases[i].m, cases[i].k, NULL);
        static const uint32_t zeros[24];
        expect_values(file, 0, zeros, cases[i].m * cases[i].k);
        qg_tensor_file_close(file);
    }
}
END_TEST

START_TEST(npy_values_are_in_row_major_order) {
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    bytes b = {.size = 0};
    uint32_t bits[6];
    add_bytes(&b, "\x93NUMPY\1\0", 8);
    add_number(&b, strlen(header), 2);
    add_bytes(&b, header, strlen(header));
    for (int i = 0; i < 6; i++) {
        add_float(&b, (float)i + 0.5f);
        bits[i] = qg_bits_of_float((float)i + 0.5f);
    }
    qg_tensor_file *file = open_file(write_file("values.npy", b.data, b.size));
    expect_values(file, 0, bits, 6);
    qg_tensor_file_close(file);
}
END_TEST

#define NPY(descr, order, shape)                                                                   \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

START_TEST(npy_refusals) {
    static const struct {
        int version;
        const char *header;
        qg_status status;
        const char *words;
        size_t size;
    } cases[] = {
        {1, NPY("'<f4'", "True", "(2, 3)"), QG_ERROR_UNSUPPORTED, "Fortran order", 24},
        {1, NPY("'>f4'", "False", "(2, 3)"), QG_ERROR_UNSUPPORTED, "big-endian", 24},
        {1, NPY("'|V2'", "False", "(2, 3)"), QG_ERROR_UNSUPPORTED, "bfloat16", 12},
        {1, NPY("'<i8'", "False", "(2, 3)"), QG_ERROR_UNSUPPORTED, "type <i8 is none of", 48},
        {1, NPY("'f4'", "False", "(2, 3)"), QG_ERROR_UNSUPPORTED, "type f4 is none of", 24},
        {1, NPY("[('a', '<f4')]", "False", "(2, 3)"), QG_ERROR_DATA, "not one type", 24},
        {1, NPY("'<f4'", "False", "()"), QG_ERROR_UNSUPPORTED, "a single number", 4},
        {1, NPY("'<f4'", "False", "(0, 3)"), QG_ERROR_UNSUPPORTED, "no elements", 0},
        {4, NPY("'<f4'", "False", "(1,)"), QG_ERROR_UNSUPPORTED, "version 4.0", 4},
        {257, NPY("'<f4'", "False", "(1,)"), QG_ERROR_UNSUPPORTED, "version 1.1", 4},
        {1, NPY("'<f4'", "False", "(2, 3)"), QG_ERROR_DATA, "are 24 bytes, but 23 follow", 23},
        {1, NPY("'<f4'", "False", "(2, 3)"), QG_ERROR_DATA, "are 24 bytes, but 25 follow", 25},
        {1, NPY("'<f4'", "False", "(-2, 3)"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "(6)"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "(2 3)"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "(,)"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "(06,)"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "6"), QG_ERROR_DATA, "\"shape\"", 24},
        {1, NPY("'<f4'", "False", "(9223372036854775808,)"), QG_ERROR_DATA, "below 2^63", 24},
        {1, NPY("'<f4'", "False", "(99999999999999999999,)"), QG_ERROR_DATA, "below 2^63", 24},
        {1, NPY("'<f4'", "False", "(9223372036854775807, 2)"), QG_ERROR_DATA, "overflows", 24},
        {1, NPY("'<f4'", "False", "(4294967296, 2147483648)"), QG_ERROR_DATA, "overflows", 24},
        {1, NPY("'<f4'", "false", "(6,)"), QG_ERROR_DATA, "\"fortran_order\"", 24},
        {1, NPY("'<f4'", "0", "(6,)"), QG_ERROR_DATA, "\"fortran_order\"", 24},
        {1, NPY("'<f\\x34'", "False", "(6,)"), QG_ERROR_DATA, "\"descr\"", 24},
        {1, NPY("'<f4", "False", "(6,)"), QG_ERROR_DATA, "is no dictionary", 24},
        {1, "{'descr': '<f4', 'descr': '<f4'}", QG_ERROR_DATA, "names a key twice", 24},
        {1, "{'descr': '<f4', 'shape': (6,)}", QG_ERROR_DATA, "lacks one of", 24},
        {1, "{'descr': '<f4', 'order': True}", QG_ERROR_DATA, "a key other than", 24},
        {1, "{'descr': '<f4' 'shape': (6,)}", QG_ERROR_DATA, "no dictionary", 24},
        {1, "{'descr' '<f4'}", QG_ERROR_DATA, "no dictionary", 24},
        {1, "{,}", QG_ERROR_DATA, "no dictionary", 24},
        {1, "", QG_ERROR_DATA, "does not start with {", 24},
        {1, "{", QG_ERROR_DATA, "no dictionary", 24},
        {1, NPY("'<f4'", "False", "(6,)") "x", QG_ERROR_DATA, "goes on behind", 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(write_npy(cases[i].version, cases[i].header, cases[i].size),
                       cases[i].status, cases[i].words);
}
END_TEST

START_TEST(npy_prefixes_that_lie) {
    expect_refused(write_file("t.npy", "\x93NUMPY\1\0", 8), QG_ERROR_DATA, "too few");
    expect_refused(write_file("t.npy", "\x93NUMPx\1\0\0\0\0\0", 12), QG_ERROR_DATA,
                   "does not start as");
    expect_refused(write_file("t.npy", "\x93NUMPY\1\0\x10\0{}", 12), QG_ERROR_DATA,
                   "header of 16 bytes; 2 follow");
    expect_refused(write_file("t.npy", "\x93NUMPY\2\0\xff\xff\xff\xff", 12), QG_ERROR_DATA,
                   "header of 4294967295 bytes; 0 follow");
    expect_refused(write_file("t.npy", "\x93NUMPY\1\0\x04\0{\0}\n", 14), QG_ERROR_DATA,
                   "zero byte");
}
END_TEST

// ------------------------------------------------------------------------------------------ raw

static const char *write_raw(const char *sidecar, size_t size) {
    static const uint8_t zeros[64];
    write_file("t.bin.json", sidecar, strlen(sidecar));
    return write_file("t.bin", zeros, size);
}

START_TEST(raw_files) {
    static const struct {
        const char *sidecar, *dtype;
        int64_t m, k;
        size_t size;
    } cases[] = {
        {"{\"dtype\": \"f32\", \"shape\": [2, 3]}", "f32", 2, 3, 24},
        {"{\"shape\": [2, 2, 3], \"dtype\": \"bf16\"}\n", "bf16", 4, 3, 24},
        {"{\"dtype\": \"float16\", \"shape\": [4]}", "f16", 1, 4, 8},
        {"{\"dtype\": \"fp64\", \"shape\": [1, 3]}", "f64", 1, 3, 24},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        qg_tensor_file *file = open_file(write_raw(cases[i].sidecar, cases[i].size));
        expect_tensor(file, 0, "t.bin", cases[i].dtype, cases[i].m, cases[i].k, NULL);
        static const uint32_t zeros[12];
        expect_values(file, 0, zeros, cases[i].m * cases[i].k);
        qg_tensor_file_close(file);
    }
}
END_TEST

START_TEST(raw_refusals) {
    static const struct {
        const char *sidecar;
        qg_status status;
        const char *words;
    } cases[] = {
        {"", QG_ERROR_DATA, "t.bin.json: not valid JSON"},
        {"[]", QG_ERROR_DATA, "no JSON object"},
        {"{\"shape\": [2, 3]}", QG_ERROR_DATA, "no \"dtype\""},
        {"{\"dtype\": \"i8\", \"shape\": [24]}", QG_ERROR_UNSUPPORTED, "i8 is none of"},
        {"{\"dtype\": \"f32\"}", QG_ERROR_DATA, "\"shape\""},
        {"{\"dtype\": \"f32\", \"shape\": []}", QG_ERROR_DATA, "\"shape\""},
        {"{\"dtype\": \"f32\", \"shape\": [0, 3]}", QG_ERROR_DATA, "no positive integer"},
        {"{\"dtype\": \"f32\", \"shape\": [-2, -3]}", QG_ERROR_DATA, "no positive integer"},
        {"{\"dtype\": \"f32\", \"shape\": [6.0]}", QG_ERROR_DATA, "no positive integer"},
        {"{\"dtype\": \"f32\", \"shape\": [6], \"offset\": 8}", QG_ERROR_DATA, "keys beyond"},
        {"{\"dtype\": \"f32\", \"dtype\": \"f32\", \"shape\": [6]}", QG_ERROR_DATA, "duplicate"},
        {"{\"dtype\": \"f32\", \"shape\": [5]}", QG_ERROR_DATA, "20 bytes, but it has 24"},
        {"{\"dtype\": \"f32\", \"shape\": [4294967296, 4294967296]}", QG_ERROR_DATA, "overflows"},
        {"{\"dtype\": \"f32\", \"shape\": [99999999999999999999]}", QG_ERROR_DATA, "too big"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(write_raw(cases[i].sidecar, 24), cases[i].status, cases[i].words);
    unlink(scratch_path("t.bin.json"));
    expect_refused(scratch_path("t.bin"), QG_ERROR_IO, "sidecar t.bin.json, which is missing");
    static char large[1 << 17];
    memset(large, ' ', sizeof large);
    write_file("t.bin.json", large, sizeof large);
    expect_refused(scratch_path("t.bin"), QG_ERROR_DATA, "no sidecar");
}
END_TEST

// ------------------------------------------------------------------------------------ every kind

START_TEST(what_is_no_file) {
    expect_refused(scratch_path("absent.npy"), QG_ERROR_IO, "No such file");
    expect_refused(scratch_folder, QG_ERROR_IO, "not a regular file");
    ck_assert_int_eq(mkfifo(scratch_path("pipe.npy"), 0600), 0);
    expect_refused(scratch_path("pipe.npy"), QG_ERROR_IO, "not a regular file"); // does not wait
    expect_refused("/dev/null", QG_ERROR_IO, "not a regular file");
    qg_tensor_file_close(NULL);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {npy_versions_and_spellings,
                                  npy_values_are_in_row_major_order,
                                  npy_refusals,
                                  npy_prefixes_that_lie,
                                  raw_files,
                                  raw_refusals,
                                  what_is_no_file};
    scratch_open();
    int failed = RUN_SUITE("tensor_npy", tests);
    scratch_close();
    return failed;
}
