// Dtypes, ops by name, tensor types, and what quantizing a tensor gives.
#include <qg_graph.h>
#include <require.h>
#include <run_suite.h>

#include <string.h>

START_TEST(dtypes_and_ops_are_found_by_name) {
    static const int bytes[] = {4, 2, 2, 8, 1};
    for (int i = 0; i < QG_DTYPE_COUNT; i++) {
        ck_assert_int_eq(qg_dtype_find(qg_dtype_name((qg_dtype)i)), i);
        ck_assert_int_eq(qg_dtype_bytes((qg_dtype)i), bytes[i]);
        ck_assert_int_eq(qg_dtype_is_float((qg_dtype)i), i < 3);
    }
    ck_assert_int_eq(qg_dtype_find("fp64"), QG_DTYPE_COUNT);
    for (int i = 0; i < QG_GRAPH_OP_COUNT; i++) {
        const qg_graph_op_info *info = qg_graph_op_describe((qg_graph_op)i);
        ck_assert_int_eq(qg_graph_op_find(info->name), i);
        ck_assert(info->fewest <= info->most && info->most <= 64 && info->what[0]);
    }
    ck_assert_int_eq(qg_graph_op_find("convolution"), QG_GRAPH_OP_COUNT);
}
END_TEST

START_TEST(types_out_of_range_are_errors) {
    static const struct {
        qg_tensor_type type;
        qg_status status;
        const char *detail;
    } rows[] = {
        {{QG_DTYPE_FP32, 0, {0}},                      QG_OK,             NULL             },
        {{QG_DTYPE_U8, 8, {1, 2, 1, 2, 1, 2, 1, 2}},   QG_OK,             NULL             },
        {{QG_DTYPE_U8, 2, {1ll << 31, 1ll << 31}},     QG_OK,             NULL             },
        {{QG_DTYPE_I64, 1, {1ll << 59}},               QG_OK,             NULL             },
        {{QG_DTYPE_U8, 3, {1ll << 31, 1ll << 31, 2}},  QG_ERROR_OVERFLOW, "exceeds 2^62"   },
        {{QG_DTYPE_I64, 1, {(1ll << 59) + 1}},         QG_ERROR_OVERFLOW, "exceeds 2^62"   },
        {{QG_DTYPE_FP32, 2, {INT64_MAX, INT64_MAX}},   QG_ERROR_OVERFLOW, "exceeds 2^62"   },
        {{QG_DTYPE_COUNT, 0, {0}},                     QG_ERROR_ARGUMENT, "dtype 5 is none"},
        {{-1, 0, {0}},                                 QG_ERROR_ARGUMENT, "dtype -1"       },
        {{QG_DTYPE_FP32, 9, {1, 1, 1, 1, 1, 1, 1, 1}}, QG_ERROR_ARGUMENT, "rank 9 is not"  },
        {{QG_DTYPE_FP32, -1, {0}},                     QG_ERROR_ARGUMENT, "rank -1 is not" },
        {{QG_DTYPE_FP32, 2, {4, 0}},                   QG_ERROR_ARGUMENT, "0 of axis 1"    },
        {{QG_DTYPE_FP32, 1, {INT64_MIN}},              QG_ERROR_ARGUMENT, "of axis 0"      },
        {{QG_DTYPE_FP32, 1, {4, 4}},                   QG_ERROR_ARGUMENT, "past rank 1"    },
        {{QG_DTYPE_BF16, 0, {4, 4}},                   QG_ERROR_ARGUMENT, "past rank 0"    },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        qg_status status = qg_tensor_check(&rows[i].type);
        REQUIRE(status == rows[i].status, "row %d: status %d", (int)i, status);
        if (status)
            REQUIRE(strstr(qg_detail(), rows[i].detail), "'%s' lacks '%s'", qg_detail(),
                    rows[i].detail);
    }
}
END_TEST

START_TEST(texts_of_types_fit_their_room) {
    char text[QG_TENSOR_TEXT_SIZE];
    int64_t low = INT64_MIN;
    qg_tensor_type type = {.dtype = 99, .rank = 8};
    qg_tensor_text(&qg_tensor(QG_DTYPE_FP32, 2, 4, 64), text);
    ck_assert_str_eq(text, "fp32[4,64]");
    qg_tensor_text(&(qg_tensor_type){.dtype = QG_DTYPE_I64}, text);
    ck_assert_str_eq(text, "i64[]");
    for (int i = 0; i < 8; i++)
        type.shape[i] = low;
    qg_tensor_text(&type, text);
    ck_assert_uint_eq(strlen(text), 2 + 8 * 20 + 7 + 1);
    type.rank = 1000;
    qg_tensor_text(&type, text);
    ck_assert_uint_eq(strlen(text), 2 + 8 * 20 + 7 + 1);
}
END_TEST

START_TEST(elements_bytes_and_matrix) {
    int64_t rows, k;
    qg_tensor_type type = qg_tensor(QG_DTYPE_BF16, 3, 2, 3, 4), single = {.dtype = QG_DTYPE_I64};
    ck_assert_int_eq(qg_tensor_elements(&type), 24);
    ck_assert_int_eq(qg_tensor_bytes(&type), 48);
    ck_assert_int_eq(qg_tensor_elements(&single), 1);
    ck_assert_int_eq(qg_tensor_bytes(&single), 8);
    qg_tensor_matrix(&type, &rows, &k);
    ck_assert(rows == 6 && k == 4);
    qg_tensor_matrix(&qg_tensor(QG_DTYPE_FP32, 1, 7), &rows, &k);
    ck_assert(rows == 1 && k == 7);
}
END_TEST

START_TEST(types_are_equal_by_dtype_rank_and_extents) {
    qg_tensor_type a = qg_tensor(QG_DTYPE_FP32, 2, 2, 3), b = a;
    b.shape[5] = 9; // past the rank
    ck_assert(qg_tensor_equal(&a, &b));
    b = qg_tensor(QG_DTYPE_FP16, 2, 2, 3);
    ck_assert(!qg_tensor_equal(&a, &b));
    b = qg_tensor(QG_DTYPE_FP32, 2, 3, 2);
    ck_assert(!qg_tensor_equal(&a, &b));
    b = qg_tensor(QG_DTYPE_FP32, 3, 2, 3, 1);
    ck_assert(!qg_tensor_equal(&a, &b));
}
END_TEST

static void check_shape(const char *recipe, qg_tensor_type x, qg_tensor_type codes,
                        qg_tensor_type scale, bool has_tensor_scale) {
    qg_scaled_shape shape;
    char got[QG_TENSOR_TEXT_SIZE];
    REQUIRE(qg_scaled_shape_of(recipe, &x, &shape) == QG_OK, "%s", qg_detail());
    qg_tensor_text(&shape.codes, got);
    REQUIRE(qg_tensor_equal(&shape.codes, &codes), "%s: codes %s", recipe, got);
    qg_tensor_text(&shape.scale, got);
    REQUIRE(qg_tensor_equal(&shape.scale, &scale), "%s: scale %s", recipe, got);
    ck_assert_int_eq(shape.has_tensor_scale, has_tensor_scale);
}

START_TEST(codes_and_scales_of_any_rank) {
    qg_tensor_type x1 = qg_tensor(QG_DTYPE_FP32, 1, 40), x3 = qg_tensor(QG_DTYPE_BF16, 3, 2, 3, 40),
                   x7 = qg_tensor(QG_DTYPE_FP32, 7, 1, 2, 1, 2, 1, 2, 33),
                   x8 = qg_tensor(QG_DTYPE_FP32, 8, 1, 2, 1, 2, 1, 2, 1, 33);
    check_shape("mxfp8", x1, qg_tensor(QG_DTYPE_U8, 1, 40), qg_tensor(QG_DTYPE_U8, 2, 1, 2), false);
    check_shape("nvfp4", x3, qg_tensor(QG_DTYPE_U8, 3, 2, 3, 40), qg_tensor(QG_DTYPE_U8, 2, 6, 3),
                true);
    check_shape("e4m3", x8, qg_tensor(QG_DTYPE_U8, 8, 1, 2, 1, 2, 1, 2, 1, 33),
                qg_tensor(QG_DTYPE_FP32, 1, 1), false);
    check_shape("rlx_mxfp4x2", x1, qg_tensor(QG_DTYPE_U8, 2, 2, 40),
                qg_tensor(QG_DTYPE_FP32, 3, 1, 2, 2), false);
    check_shape("rlx_mxfp4x2", x7, qg_tensor(QG_DTYPE_U8, 8, 2, 1, 2, 1, 2, 1, 2, 33),
                qg_tensor(QG_DTYPE_FP32, 3, 8, 2, 2), false);
    qg_scaled_shape shape;
    ck_assert_int_eq(qg_scaled_shape_of("rlx_mxfp4x2", &x8, &shape), QG_ERROR_ARGUMENT);
    x8.shape[2] = 0;
    ck_assert_int_eq(qg_scaled_shape_of("mxfp8", &x8, &shape), QG_ERROR_ARGUMENT);
    x1.rank = 0;
    ck_assert_int_eq(qg_scaled_shape_of("mxfp8", &x1, &shape), QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {dtypes_and_ops_are_found_by_name,
                                  types_out_of_range_are_errors,
                                  texts_of_types_fit_their_room,
                                  elements_bytes_and_matrix,
                                  types_are_equal_by_dtype_rank_and_extents,
                                  codes_and_scales_of_any_rank};
    return RUN_SUITE("graph_types", tests);
}
