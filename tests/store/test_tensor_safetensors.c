// .safetensors: what is read, what is skipped, and every way in which a file can lie.
#include "tensor_scratch.h"

#include <qg_digest.h>
#include <run_suite.h>

// A file of `header` and a buffer of `size` zero bytes.
static const char *write_header(const char *header, size_t size) {
    bytes b = {.size = 0};
    add_number(&b, strlen(header), 8);
    add_bytes(&b, header, strlen(header));
    memset(b.data + b.size, 0, size);
    b.size += size;
    return write_file("t.safetensors", b.data, b.size);
}

START_TEST(reads_every_type_bit_for_bit) {
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[2,5],\"data_offsets\":[0,80]},"
        "\"c\":{\"dtype\":\"F32\",\"shape\":[2,1,2],\"data_offsets\":[80,96]},"
        "\"b\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[96,112]},"
        "\"a\":{\"dtype\":\"BF16\",\"shape\":[1,4],\"data_offsets\":[112,120]}}      ";
    static const struct {
        uint64_t f64;
        uint32_t f32;
    } doubles[10] = {
        {0x3ff0000000000000, 0x3f800000}, // 1
        {0x8000000000000000, 0x80000000}, // -0
        {0x3ff0000010000000, 0x3f800000}, // tie to even, down
        {0x3ff0000030000000, 0x3f800002}, // tie to even, up
        {0x47efffffe0000000, 0x7f7fffff}, // FLT_MAX
        {0x47efffffefffffff, 0x7f7fffff}, // the last that rounds to FLT_MAX
        {0x47effffff0000000, 0x7f800000}, // the tie beyond it
        {0xfff0000000000000, 0xff800000}, // -Inf
        {0xfff4000000000001, 0xffc00000}, // NaN: canonical, its sign kept
        {0x3690000000000001, 0x00000001}, // just above half the smallest subnormal
    };
    static const struct {
        uint16_t f16;
        uint32_t f32;
    } halves[8] = {{0x3c00, 0x3f800000}, {0x8000, 0x80000000}, {0x0001, 0x33800000},
                   {0x03ff, 0x387fc000}, {0x0400, 0x38800000}, {0xfbff, 0xc77fe000},
                   {0x7c00, 0x7f800000}, {0x7e01, 0x7fc02000}};
    static const uint32_t floats[4] = {0x3f800001, 0x00000001, 0x7fc12345, 0xff7fffff};
    static const uint32_t brains[4] = {0x3f80, 0x8001, 0x7fc1, 0xff80};
    bytes b = {.size = 0};
    uint32_t wide[10], half[8], brain[4];
    add_number(&b, strlen(header), 8);
    add_bytes(&b, header, strlen(header));
    for (int i = 0; i < 10; i++) {
        add_number(&b, doubles[i].f64, 8);
        wide[i] = doubles[i].f32;
    }
    for (int i = 0; i < 4; i++)
        add_number(&b, floats[i], 4);
    for (int i = 0; i < 8; i++) {
        add_number(&b, halves[i].f16, 2);
        half[i] = halves[i].f32;
    }
    for (int i = 0; i < 4; i++) {
        add_number(&b, brains[i], 2);
        brain[i] = brains[i] << 16;
    }
    qg_tensor_file *file = open_file(write_file("all.safetensors", b.data, b.size));
    ck_assert_str_eq(qg_tensor_file_name(file), "all.safetensors");
    ck_assert_int_eq(qg_tensor_file_count(file), 4);
    expect_tensor(file, 0, "a", "bf16", 1, 4, NULL);
    expect_tensor(file, 1, "b", "f16", 1, 8, NULL);
    expect_tensor(file, 2, "c", "f32", 2, 2, NULL);
    expect_tensor(file, 3, "d", "f64", 2, 5, NULL);
    expect_values(file, 0, brain, 4);
    expect_values(file, 1, half, 8);
    expect_values(file, 2, floats, 4);
    expect_values(file, 3, wide, 10);
    uint64_t digest;
    ck_assert_int_eq(qg_tensor_file_digest(file, 2, &digest), QG_OK);
    uint8_t little[16];
    for (int i = 0; i < 16; i++)
        little[i] = (uint8_t)(floats[i / 4] >> (8 * (i % 4)));
    ck_assert_uint_eq(digest, qg_digest_bytes(little, sizeof little));
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(large_tensors_cross_the_slices) {
    enum { COUNT = 30000 };
    static bytes b;
    char header[128];
    snprintf(header, sizeof header,
             "{\"w\":{\"dtype\":\"BF16\",\"shape\":[%d,3],\"data_offsets\":[0,%d]}}", COUNT / 3,
             2 * COUNT);
    add_number(&b, strlen(header), 8);
    add_bytes(&b, header, strlen(header));
    for (int i = 0; i < COUNT; i++)
        add_number(&b, (uint64_t)i, 2);
    qg_tensor_file *file = open_file(write_file("large.safetensors", b.data, b.size));
    static float x[COUNT];
    ck_assert_int_eq(qg_tensor_file_read(file, 0, x), QG_OK);
    for (int i = 0; i < COUNT; i++)
        ck_assert_uint_eq(qg_bits_of_float(x[i]), (uint32_t)i << 16);
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(skips_with_a_reason) {
    qg_tensor_file *file = open_file(
        write_header("{\"i\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
                     "\"f8\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,2],\"data_offsets\":[16,20]},"
                     "\"f6\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[20,23]},"
                     "\"new\":{\"dtype\":\"F3\\u0007\",\"shape\":[9],\"data_offsets\":[23,24]},"
                     "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[24,28]},"
                     "\"z\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[28,28]},"
                     "\"ok\":{\"shape\":[1,1],\"data_offsets\":[28,32],\"dtype\":\"F32\"}}",
                     32));
    ck_assert_int_eq(qg_tensor_file_count(file), 7);
    expect_tensor(file, 0, "f6", "F6_E2M3", 0, 0, "F6_E2M3 is quantized already");
    expect_tensor(file, 1, "f8", "F8_E4M3", 0, 0, "F8_E4M3 is quantized already");
    expect_tensor(file, 2, "i", "I64", 1, 2, "I64 is no floating-point type");
    expect_tensor(file, 3, "new", "F3?", 0, 0, "F3? is not a known type");
    expect_tensor(file, 4, "ok", "f32", 1, 1, NULL);
    expect_tensor(file, 5, "s", "F32", 0, 0, "a single number");
    expect_tensor(file, 6, "z", "F32", 0, 0, "no elements");
    float x;
    uint64_t digest;
    ck_assert_int_eq(qg_tensor_file_read(file, 2, &x), QG_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "\"i\" cannot be read: I64"));
    ck_assert_int_eq(qg_tensor_file_digest(file, 6, &digest), QG_ERROR_UNSUPPORTED);
    ck_assert_int_eq(qg_tensor_file_read(file, 7, &x), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_tensor_file_read(file, -1, &x), QG_ERROR_ARGUMENT);
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(integers_of_64_bits_are_read_as_indices) {
    const char *header = "{\"f\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
                         "\"i\":{\"dtype\":\"I64\",\"shape\":[2,1,2],\"data_offsets\":[8,40]},"
                         "\"u\":{\"dtype\":\"U64\",\"shape\":[1],\"data_offsets\":[40,48]},"
                         "\"one\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]},"
                         "\"none\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[56,56]}}";
    static const int64_t numbers[4] = {0, INT64_MIN, INT64_MAX, -2};
    bytes b = {.size = 0};
    add_number(&b, strlen(header), 8);
    add_bytes(&b, header, strlen(header));
    add_number(&b, 0, 8);
    for (int i = 0; i < 6; i++)
        add_number(&b, i < 4 ? (uint64_t)numbers[i] : 0, 8);
    qg_tensor_file *file = open_file(write_file("indices.safetensors", b.data, b.size));
    int64_t x = 77;
    expect_tensor(file, 1, "i", "I64", 2, 2, "I64 is no floating-point type");
    expect_integers(file, 1, numbers, 4);
    expect_tensor(file, 2, "none", "I64", 0, 0, "I64 is no floating-point type");
    expect_tensor(file, 3, "one", "I64", 0, 0, "I64 is no floating-point type");
    for (int i = 0; i < 5; i++)
        if (i != 1)
            ck_assert_int_eq(qg_tensor_file_read_i64(file, i, &x), QG_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "\"u\" (U64) has no 64-bit integers"));
    ck_assert_int_eq(qg_tensor_file_read_i64(file, 5, &x), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_tensor_file_read_i64(file, -1, &x), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(x, 77);
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(many_integers_cross_the_slices) {
    enum { COUNT = 1 << 13 };
    static int64_t numbers[3 * COUNT], x[3 * COUNT];
    char header[128];
    int length = snprintf(header, sizeof header,
                          "{\"i\":{\"dtype\":\"I64\",\"shape\":[3,%d],\"data_offsets\":[0,%d]}}",
                          COUNT, 24 * COUNT);
    static uint8_t data[sizeof header + 8 + sizeof numbers];
    data[0] = (uint8_t)length;
    memcpy(data + 8, header, (size_t)length);
    for (int i = 0; i < 3 * COUNT; i++) {
        numbers[i] = (int64_t)i * 0x123456789abll;
        for (int j = 0; j < 8; j++)
            data[8 + length + 8 * i + j] = (uint8_t)((uint64_t)numbers[i] >> (8 * j));
    }
    qg_tensor_file *file =
        open_file(write_file("indices.safetensors", data, (size_t)length + 8 + sizeof numbers));
    expect_tensor(file, 0, "i", "I64", 3, COUNT, "I64 is no floating-point type");
    ck_assert_int_eq(qg_tensor_file_read_i64(file, 0, x), QG_OK);
    ck_assert_mem_eq(x, numbers, sizeof numbers);
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(tensors_are_found_by_name) {
    qg_tensor_file *file =
        open_file(write_header("{\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                               "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
                               "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
                               12));
    ck_assert_int_eq(qg_tensor_file_find(file, "a"), 0);
    ck_assert_int_eq(qg_tensor_file_find(file, "b"), 1);
    ck_assert_int_eq(qg_tensor_file_find(file, "c"), 2);
    ck_assert_int_eq(qg_tensor_file_find(file, "d"), -1);
    ck_assert_int_eq(qg_tensor_file_find(file, ""), -1);
    qg_tensor_file_close(file);
    file = open_file(write_header("{}", 0));
    ck_assert_int_eq(qg_tensor_file_find(file, "a"), -1);
    qg_tensor_file_close(file);
}
END_TEST

#define ONE(dtype, shape, offsets)                                                                 \
    "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

START_TEST(refuses_headers_that_lie) {
    static const struct {
        const char *header, *words;
        size_t size;
    } cases[] = {
        {"", "does not start with {", 4},
        {" {}", "does not start with {", 0},
        {"[]", "does not start with {", 0},
        {"{", "not valid JSON at byte 1", 0},
        {"{} x", "not valid JSON", 0},
        {"{}", "end at byte 0 of a buffer of 4", 4},
        {"{\"__metadata__\":{\"a\":1}}", "more than strings", 0},
        {"{\"__metadata__\":[]}", "no JSON object", 0},
        {"{\"w\":3}", "\"w\": is no JSON object", 0},
        {"{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", "duplicate object key", 0},
        {"{\"w\":{},\"w\":{}}", "duplicate object key", 0},
        {"{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "no \"dtype\"", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", "no \"shape\"", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", "no \"data_offsets\"", 4},
        {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}",
         "keys beyond", 4},
        {ONE("32", "[1]", "[0,4]"), "no \"dtype\"", 4},
        {ONE("\"F32\"", "[-1]", "[0,4]"), "not non-negative integers", 4},
        {ONE("\"F32\"", "[1.0]", "[0,4]"), "not non-negative integers", 4},
        {ONE("\"F32\"", "[\"1\"]", "[0,4]"), "not non-negative integers", 4},
        {ONE("\"F32\"", "{}", "[0,4]"), "no \"shape\"", 4},
        {ONE("\"F32\"", "[9223372036854775808]", "[0,4]"), "too big integer", 4},
        {ONE("\"F32\"", "[9223372036854775807,2]", "[0,4]"), "2^63 - 1 bits", 4},
        {ONE("\"F32\"", "[4611686018427387904,4,0]", "[0,4]"), "2^63 - 1 bits", 4},
        {ONE("\"F32\"", "[4294967296,4294967296]", "[0,4]"), "2^63 - 1 bits", 4},
        {ONE("\"F32\"", "[288230376151711744]", "[0,4]"), "2^63 - 1 bits", 4},
        {ONE("\"BOOL\"", "[1152921504606846975]", "[0,4]"), "BOOL are 1152921504606846975", 4},
        {ONE("\"F32\"", "[1]", "[0,5]"), "no range within the buffer of 4", 4},
        {ONE("\"F32\"", "[1]", "[4,0]"), "[4, 0] are no range", 4},
        {ONE("\"F32\"", "[1]", "[-4,0]"), "no \"data_offsets\"", 4},
        {ONE("\"F32\"", "[1]", "[0]"), "no \"data_offsets\"", 4},
        {ONE("\"F32\"", "[1]", "[0,4,8]"), "no \"data_offsets\"", 4},
        {ONE("\"F32\"", "[1]", "[0,9223372036854775807]"), "no range within", 4},
        {ONE("\"F32\"", "[2]", "[0,4]"), "4 bytes, but 2 elements of F32 are 8", 4},
        {ONE("\"F6_E2M3\"", "[3]", "[0,2]"), "2 bytes, but 3 elements of F6_E2M3 are 3", 2},
        {ONE("\"F32\"", "[1]", "[4,8]"), "[4, 8] leave a hole behind byte 0", 8},
        {ONE("\"F32\"", "[1]", "[0,4]"), "end at byte 4 of a buffer of 8", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
         "\"b\": data_offsets [4, 8] overlap", 8},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
         "overlap", 4},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
         "leave a hole behind byte 4", 12},
        {"{\"a\\nb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,1]}}", "\"a?b\"", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(write_header(cases[i].header, cases[i].size), QG_ERROR_DATA,
                       cases[i].words);
}
END_TEST

START_TEST(refuses_lengths_that_lie) {
    static const struct {
        uint64_t length;
        const char *words;
    } cases[] = {{3, "only 2 follow"},
                 {100000001, "the format allows 100000000"},
                 {1ull << 63, "the format allows"},
                 {UINT64_MAX, "the format allows"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = {.size = 0};
        add_number(&b, cases[i].length, 8);
        add_bytes(&b, "{}", 2);
        expect_refused(write_file("t.safetensors", b.data, b.size), QG_ERROR_DATA, cases[i].words);
    }
    for (size_t size = 0; size < 8; size++)
        expect_refused(write_file("t.safetensors", "\2\0\0\0\0\0\0\0", size), QG_ERROR_DATA,
                       "too few");
}
END_TEST

START_TEST(nesting_ends_in_an_error) {
    static bytes b;
    add_number(&b, 60001, 8);
    add_bytes(&b, "{", 1);
    memset(b.data + b.size, '[', 60000);
    b.size += 60000;
    expect_refused(write_file("deep.safetensors", b.data, b.size), QG_ERROR_DATA, "not valid JSON");
}
END_TEST

START_TEST(an_empty_file_has_no_tensor) {
    qg_tensor_file *file = open_file(write_header("{}", 0));
    ck_assert_int_eq(qg_tensor_file_count(file), 0);
    qg_tensor_file_close(file);
}
END_TEST

START_TEST(a_file_that_shrinks_is_an_error) {
    const char *path = write_header(ONE("\"F32\"", "[2]", "[0,8]"), 8);
    qg_tensor_file *file = open_file(path);
    float x[2];
    ck_assert_int_eq(qg_tensor_file_read(file, 0, x), QG_OK);
    ck_assert_int_eq(truncate(path, 20), 0);
    ck_assert_int_eq(qg_tensor_file_read(file, 0, x), QG_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "shrank"));
    qg_tensor_file_close(file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {reads_every_type_bit_for_bit,
                                  large_tensors_cross_the_slices,
                                  skips_with_a_reason,
                                  integers_of_64_bits_are_read_as_indices,
                                  many_integers_cross_the_slices,
                                  tensors_are_found_by_name,
                                  refuses_headers_that_lie,
                                  refuses_lengths_that_lie,
                                  nesting_ends_in_an_error,
                                  an_empty_file_has_no_tensor,
                                  a_file_that_shrinks_is_an_error};
    scratch_open();
    int failed = RUN_SUITE("tensor_safetensors", tests);
    scratch_close();
    return failed;
}
