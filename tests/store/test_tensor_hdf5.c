// HDF5: types and byte orders, groups, what is skipped, links, claims without data, and the shipped
// file of real tensors.
#include "tensor_scratch.h"

#include <hdf5.h>
#include <run_suite.h>

// A binary16 or bfloat16 type in the given byte order.
static hid_t narrow_type(size_t exponent_bits, H5T_order_t order) {
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    size_t mantissa_bits = 15 - exponent_bits;
    H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, ((size_t)1 << (exponent_bits - 1)) - 1);
    H5Tset_order(type, order);
    return type;
}

// Writes raw bytes as they are: memory type = file type.
static void write_dataset(hid_t at, const char *name, hid_t type, int rank, const hsize_t *shape,
                          const void *raw) {
    hid_t space = rank ? H5Screate_simple(rank, shape, NULL) : H5Screate(H5S_SCALAR);
    hid_t dataset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ck_assert_int_ge(dataset, 0);
    if (raw)
        ck_assert_int_ge(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw), 0);
    H5Dclose(dataset);
    H5Sclose(space);
}

START_TEST(types_orders_and_groups) {
    const char *path = scratch_path("types.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t group = H5Gcreate2(file, "layer", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    static const hsize_t flat[1] = {3}, cube[3] = {1, 3, 1};
    static const float f32[3] = {1.0f, -2.5f, 0x1p-149f};
    static const uint8_t f32be[12] = {0x3f, 0x80, 0, 1, 0xff, 0x80, 0, 0, 0x7f, 0xc1, 0x23, 0x45};
    static const double f64[3] = {0x1.000001p0, 0x1.fffffefp127, -0x1.ffffffp127};
    static const uint8_t f64be[24] = {0x3f, 0xf0, 0, 0, 0x30, 0, 0, 0, 0x80, 0};
    static const uint8_t f16[6] = {0x01, 0x00, 0x00, 0x3c, 0x00, 0xfc};
    static const uint8_t f16be[6] = {0x00, 0x01, 0x3c, 0x00, 0xfc, 0x00};
    static const uint8_t bf16[6] = {0x80, 0x3f, 0x01, 0x00, 0xc1, 0x7f};
    static const int integers[3] = {1, 2, 3};
    hid_t half = narrow_type(5, H5T_ORDER_LE), half_be = narrow_type(5, H5T_ORDER_BE);
    hid_t brain = narrow_type(8, H5T_ORDER_LE), odd = narrow_type(6, H5T_ORDER_LE);
    write_dataset(file, "z", H5T_IEEE_F32LE, 1, flat, f32);
    write_dataset(group, "a", H5T_IEEE_F32BE, 3, cube, f32be);
    write_dataset(group, "b", H5T_IEEE_F64LE, 1, flat, f64);
    write_dataset(group, "c", H5T_IEEE_F64BE, 1, flat, f64be);
    write_dataset(group, "d", half, 1, flat, f16);
    write_dataset(group, "e", half_be, 1, flat, f16be);
    write_dataset(group, "f", brain, 1, flat, bf16);
    write_dataset(group, "g", odd, 1, flat, bf16);
    write_dataset(group, "h", H5T_NATIVE_INT, 1, flat, integers);
    write_dataset(group, "i", H5T_IEEE_F32LE, 0, NULL, f32);
    H5Tclose(half);
    H5Tclose(half_be);
    H5Tclose(brain);
    H5Tclose(odd);
    H5Gclose(group);
    H5Fclose(file);

    qg_tensor_file *tensors = open_file(path);
    ck_assert_int_eq(qg_tensor_file_count(tensors), 10);
    expect_tensor(tensors, 0, "layer/a", "f32", 3, 1, NULL);
    expect_tensor(tensors, 1, "layer/b", "f64", 1, 3, NULL);
    expect_tensor(tensors, 2, "layer/c", "f64", 1, 3, NULL);
    expect_tensor(tensors, 3, "layer/d", "f16", 1, 3, NULL);
    expect_tensor(tensors, 4, "layer/e", "f16", 1, 3, NULL);
    expect_tensor(tensors, 5, "layer/f", "bf16", 1, 3, NULL);
    expect_tensor(tensors, 6, "layer/g", "float", 0, 0, "float of 2 bytes is none of");
    expect_tensor(tensors, 7, "layer/h", "integer", 0, 0, "integer of 4 bytes");
    expect_tensor(tensors, 8, "layer/i", "float", 0, 0, "a single number");
    expect_tensor(tensors, 9, "z", "f32", 1, 3, NULL);
    expect_values(tensors, 9, (const uint32_t[]){0x3f800000, 0xc0200000, 1}, 3);
    expect_values(tensors, 0, (const uint32_t[]){0x3f800001, 0xff800000, 0x7fc12345}, 3);
    // Rounded once: HDF5 itself turns all beyond FLT_MAX into infinity.
    expect_values(tensors, 1, (const uint32_t[]){0x3f800000, 0x7f7fffff, 0xff800000}, 3);
    expect_values(tensors, 2, (const uint32_t[]){0x3f800002, 0x80000000, 0}, 3);
    expect_values(tensors, 3, (const uint32_t[]){0x33800000, 0x3f800000, 0xff800000}, 3);
    expect_values(tensors, 4, (const uint32_t[]){0x33800000, 0x3f800000, 0xff800000}, 3);
    expect_values(tensors, 5, (const uint32_t[]){0x3f800000, 0x00010000, 0x7fc10000}, 3);
    qg_tensor_file_close(tensors);
}
END_TEST

START_TEST(integers_of_64_bits_are_read_as_indices) {
    static const hsize_t cube[3] = {1, 3, 1}, none[1] = {0};
    static const int64_t native[3] = {-1, INT64_MAX, 5};
    static const uint8_t big[24] = {0x80, 0, 0, 0, 0,    0,    0,    1,    0,    0,    0,    0,
                                    0,    0, 1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe};
    const char *path = scratch_path("indices.h5");
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t narrow = H5Tcopy(H5T_STD_I64LE);
    H5Tset_precision(narrow, 40);
    write_dataset(file, "big", H5T_STD_I64BE, 3, cube, big);
    write_dataset(file, "little", H5T_STD_I64LE, 3, cube, native);
    write_dataset(file, "narrow", narrow, 3, cube, native);
    write_dataset(file, "none", H5T_STD_I64LE, 1, none, NULL);
    write_dataset(file, "one", H5T_STD_I64LE, 0, NULL, native);
    write_dataset(file, "unsigned", H5T_STD_U64LE, 3, cube, native);
    H5Tclose(narrow);
    H5Fclose(file);
    qg_tensor_file *tensors = open_file(path);
    int64_t x[3];
    ck_assert_int_eq(qg_tensor_file_count(tensors), 6);
    for (int i = 0; i < 6; i++) {
        static const char *const names[] = {"big", "little", "narrow", "none", "one", "unsigned"};
        expect_tensor(tensors, i, names[i], "integer", i < 2 ? 3 : 0, i < 2 ? 1 : 0,
                      "integer of 8 bytes is none of f64, f32, f16, bf16");
        ck_assert_int_eq(qg_tensor_file_read_i64(tensors, i, x),
                         i < 2 ? QG_OK : QG_ERROR_UNSUPPORTED);
    }
    expect_integers(tensors, 0, (const int64_t[]){INT64_MIN + 1, 258, -2}, 3);
    expect_integers(tensors, 1, native, 3);
    ck_assert_int_eq(qg_tensor_file_find(tensors, "one"), 4);
    qg_tensor_file_close(tensors);
}
END_TEST

// What was skipped unseen stays so: a strange shape or place of integers refuses no file.
START_TEST(integers_that_cannot_be_indices_are_skipped) {
    static const hsize_t beyond[2] = {1ull << 40, 1ull << 30}, huge[1] = {1ull << 40};
    static const hsize_t chunk[2] = {64, 64}, flat[1] = {2};
    static const int64_t numbers[2] = {1, 2};
    char path[512], secret[512];
    snprintf(secret, sizeof secret, "%s", write_file("secret", numbers, sizeof numbers));
    snprintf(path, sizeof path, "%s", scratch_path("strange.h5"));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"beyond", "huge", "outside"};
        hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
        int rank = i == 0 ? 2 : 1;
        if (i == 2)
            H5Pset_external(creation, secret, 0, sizeof numbers);
        else
            H5Pset_chunk(creation, rank, chunk);
        hid_t space = H5Screate_simple(rank, i == 0 ? beyond : i == 1 ? huge : flat, NULL);
        hid_t dataset =
            H5Dcreate2(file, names[i], H5T_STD_I64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
        ck_assert_int_ge(dataset, 0);
        H5Dclose(dataset);
        H5Sclose(space);
        H5Pclose(creation);
    }
    H5Fclose(file);
    qg_tensor_file *tensors = open_file(path);
    ck_assert_int_eq(qg_tensor_file_count(tensors), 3);
    for (int i = 0; i < 3; i++) {
        int64_t x[2];
        ck_assert_int_eq(qg_tensor_file_info(tensors, i).m, 0);
        ck_assert_ptr_nonnull(strstr(qg_tensor_file_info(tensors, i).skipped, "integer of 8"));
        ck_assert_int_eq(qg_tensor_file_read_i64(tensors, i, x), QG_ERROR_UNSUPPORTED);
    }
    qg_tensor_file_close(tensors);
}
END_TEST

START_TEST(links_and_external_data_are_not_followed) {
    static const hsize_t flat[1] = {2};
    static const float x[2] = {1.0f, 2.0f};
    char path[512], secret[512];
    snprintf(secret, sizeof secret, "%s", write_file("secret", x, sizeof x));
    snprintf(path, sizeof path, "%s", scratch_path("other.h5"));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_dataset(file, "far", H5T_IEEE_F32LE, 1, flat, x);
    H5Fclose(file);
    snprintf(path, sizeof path, "%s", scratch_path("links.h5"));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_dataset(file, "near", H5T_IEEE_F32LE, 1, flat, x);
    H5Lcreate_soft("/near", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/absent", file, "dangling", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/far", file, "external", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/near", file, "again", H5P_DEFAULT, H5P_DEFAULT);
    hid_t loop = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/group", loop, "self", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(loop);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, flat, NULL);
    H5Pset_external(creation, secret, 0, sizeof x);
    H5Dclose(
        H5Dcreate2(file, "outside", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(creation);
    H5Fclose(file);
    qg_tensor_file *tensors = open_file(path);
    ck_assert_int_eq(qg_tensor_file_count(tensors), 2); // an object counts once, by its first name
    expect_tensor(tensors, 0, "again", "f32", 1, 2, NULL);
    expect_tensor(tensors, 1, "outside", "float", 0, 0, "lie in other files");
    qg_tensor_file_close(tensors);
}
END_TEST

START_TEST(claims_without_data) {
    const char *path = scratch_path("claims.h5");
    static const hsize_t huge[2] = {1ull << 30, 1ull << 20}, beyond[2] = {1ull << 40, 1ull << 30};
    static const hsize_t chunk[2] = {64, 64}, empty[2] = {0, 4}, filled[2] = {2, 2};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    hid_t space = H5Screate_simple(2, huge, NULL);
    H5Dclose(H5Dcreate2(file, "huge", H5T_IEEE_F32LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(creation);
    write_dataset(file, "empty", H5T_IEEE_F32LE, 2, empty, NULL);
    write_dataset(file, "filled", H5T_IEEE_F32LE, 2, filled, NULL);
    space = H5Screate(H5S_NULL);
    H5Dclose(
        H5Dcreate2(file, "null", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(file);
    qg_tensor_file *tensors = open_file(path);
    ck_assert_int_eq(qg_tensor_file_count(tensors), 4);
    expect_tensor(tensors, 0, "empty", "float", 0, 0, "no elements");
    expect_tensor(tensors, 1, "filled", "f32", 2, 2, NULL);
    expect_tensor(tensors, 2, "huge", "float", 0, 0, "backed by 0 stored");
    expect_tensor(tensors, 3, "null", "float", 0, 0, "no elements");
    expect_values(tensors, 1, (const uint32_t[]){0, 0, 0, 0}, 4);
    qg_tensor_file_close(tensors);

    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 2, chunk);
    space = H5Screate_simple(2, beyond, NULL);
    hid_t dataset =
        H5Dcreate2(file, "beyond", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    ck_assert_int_ge(dataset, 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
    H5Fclose(file);
    expect_refused(path, QG_ERROR_DATA, "\"beyond\": its shape overflows");
}
END_TEST

START_TEST(what_is_no_hdf5) {
    expect_refused(write_file("bad.h5", "not HDF5", 8), QG_ERROR_DATA, "cannot be opened as HDF5");
    expect_refused(write_file("bad.hdf5", "", 0), QG_ERROR_DATA, "cannot be opened as HDF5");
    expect_refused(scratch_path("absent.h5"), QG_ERROR_IO, "No such file");
}
END_TEST

START_TEST(error_printing_is_restored) {
    H5E_auto2_t before, after;
    void *data;
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    expect_refused(write_file("bad.h5", "not HDF5", 8), QG_ERROR_DATA, "cannot be opened");
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    ck_assert(before != NULL && before == after);
}
END_TEST

START_TEST(the_shipped_tensors) {
    const char *source = getenv("QG_SOURCE_DIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/datasets/minilm.h5", source ? source : ".");
    qg_tensor_file *file = open_file(path);
    ck_assert_str_eq(qg_tensor_file_name(file), "minilm.h5");
    ck_assert_int_eq(qg_tensor_file_count(file), 8);
    expect_tensor(file, 0, "activation/layer0/ffn_down_input", "f32", 40, 1536, NULL);
    expect_tensor(file, 7, "encoder.layer.0.attention.self.query.weight", "f32", 384, 384, NULL);
    static float x[384 * 384];
    ck_assert_int_eq(qg_tensor_file_read(file, 7, x), QG_OK);
    float smallest = 0, largest = 0;
    for (int i = 0; i < 384 * 384; i++) {
        smallest = x[i] < smallest ? x[i] : smallest;
        largest = x[i] > largest ? x[i] : largest;
    }
    ck_assert(smallest > -0.77255f && smallest < -0.77245f); // datasets/README.md
    ck_assert(largest > 0.65075f && largest < 0.65085f);
    uint64_t digest, again;
    ck_assert_int_eq(qg_tensor_file_digest(file, 7, &digest), QG_OK);
    ck_assert_int_eq(qg_tensor_file_digest(file, 7, &again), QG_OK);
    ck_assert_uint_eq(digest, again);
    qg_tensor_file_close(file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {types_orders_and_groups,
                                  integers_of_64_bits_are_read_as_indices,
                                  integers_that_cannot_be_indices_are_skipped,
                                  links_and_external_data_are_not_followed,
                                  claims_without_data,
                                  what_is_no_hdf5,
                                  error_printing_is_restored,
                                  the_shipped_tensors};
    scratch_open();
    int failed = RUN_SUITE("tensor_hdf5", tests);
    scratch_close();
    return failed;
}
