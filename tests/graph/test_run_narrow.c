// 16-bit floats: casts are exact or round to nearest even; every op computes in binary32 on the
// widened inputs and rounds once.
#include "run_graph.h"

#include <qg_format.h>
#include <qg_input.h>
#include <run_suite.h>

static uint32_t encode(qg_dtype dtype, float x) {
    static const qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    qg_format_info info =
        qg_format_describe(dtype == QG_DTYPE_BF16 ? QG_FORMAT_BF16 : QG_FORMAT_FP16);
    return (uint32_t)qg_encode(&info, x, &nearest, 0);
}

static void *cast(const operand *in, qg_dtype dtype) {
    qg_attributes a = {.type.dtype = (int32_t)dtype};
    return run_op(QG_GRAPH_CAST, &a, 1, in, 2, NULL);
}

START_TEST(casts_to_binary32_and_back_keep_all_16_bit_values) {
    static const qg_dtype dtypes[] = {QG_DTYPE_FP16, QG_DTYPE_BF16};
    static uint16_t all[65536];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    for (int d = 0; d < 2; d++) {
        operand narrow = {qg_tensor(dtypes[d], 1, 65536), all};
        float *wide = cast(&narrow, QG_DTYPE_FP32);
        operand in = {qg_tensor(QG_DTYPE_FP32, 1, 65536), wide};
        uint16_t *back = cast(&in, dtypes[d]);
        uint16_t *same = cast(&narrow, dtypes[d]);
        for (int i = 0; i < 65536; i++) {
            qg_format_info info = qg_format_describe(d ? QG_FORMAT_BF16 : QG_FORMAT_FP16);
            double exact = qg_decode(&info, (uint64_t)i);
            REQUIRE(exact != exact ? qg_bits_of_float(wide[i]) == 0x7fffffffu
                                   : same_bits(wide[i], (float)exact),
                    "%04x is %a, not %a", (unsigned)i, wide[i], exact);
            unsigned expected = exact != exact ? 0x7fffu : (unsigned)i;
            REQUIRE(back[i] == expected && same[i] == expected, "%04x becomes %04x and %04x",
                    (unsigned)i, back[i], same[i]);
        }
        free(wide);
        free(back);
        free(same);
    }
}
END_TEST

START_TEST(casts_from_binary32_round_to_nearest_even) {
    enum { STEP = 8191 };
    int64_t count = 0;
    float *x = malloc((0xffffffffu / STEP + 1 + 3 * 65536) * sizeof *x);
    REQUIRE(x, "no memory");
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += STEP)
        x[count++] = qg_float_of_bits((uint32_t)bits);
    for (uint32_t high = 0; high < 65536; high++) // ties of bf16, and of normal fp16 their like
        for (uint32_t low = 0x7fff; low <= 0x8001; low++)
            x[count++] = qg_float_of_bits(high << 16 | low);
    operand in = {qg_tensor(QG_DTYPE_FP32, 1, count), x};
    for (qg_dtype dtype = QG_DTYPE_FP16; dtype <= QG_DTYPE_BF16; dtype++) {
        uint16_t *y = cast(&in, dtype);
        for (int64_t i = 0; i < count; i++)
            REQUIRE(y[i] == encode(dtype, x[i]), "%a becomes %04x, not %04x", x[i], y[i],
                    encode(dtype, x[i]));
        free(y);
    }
    free(x);
}
END_TEST

START_TEST(casts_between_16_bit_floats_go_through_binary32) {
    static uint16_t all[65536];
    for (int i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    operand half = {qg_tensor(QG_DTYPE_FP16, 1, 65536), all};
    operand brain = {qg_tensor(QG_DTYPE_BF16, 1, 65536), all};
    uint16_t *to_brain = cast(&half, QG_DTYPE_BF16), *to_half = cast(&brain, QG_DTYPE_FP16);
    for (int i = 0; i < 65536; i++) {
        ck_assert_uint_eq(to_brain[i], encode(QG_DTYPE_BF16, qg_float_of_fp16(all[i])));
        ck_assert_uint_eq(to_half[i], encode(QG_DTYPE_FP16, qg_float_of_bf16(all[i])));
    }
    free(to_brain);
    free(to_half);
}
END_TEST

// The same op in binary32 on the widened inputs, rounded by qg_encode.
static void check_narrow(qg_graph_op op, const qg_attributes *a, int32_t inputs, qg_dtype dtype) {
    enum { COUNT = 2048 };
    uint16_t narrow[3][COUNT];
    float wide[3][COUNT];
    operand narrow_in[3], wide_in[3];
    uint64_t seed = 77 + (uint64_t)op;
    for (int32_t j = 0; j < inputs; j++) {
        for (int i = 0; i < COUNT; i++) {
            narrow[j][i] = (uint16_t)encode(dtype, next_float(&seed, 4));
            if (i % 64 == j)
                narrow[j][i] = (uint16_t)next_word(&seed);
            wide[j][i] = dtype == QG_DTYPE_BF16 ? qg_float_of_bf16(narrow[j][i])
                                                : qg_float_of_fp16(narrow[j][i]);
        }
        qg_tensor_type type = qg_tensor(dtype, 2, 32, 64);
        if (op == QG_GRAPH_LAYER_NORM && j > 0)
            type = qg_tensor(dtype, 1, 64);
        if (op == QG_GRAPH_MATMUL && j > 0)
            type = qg_tensor(dtype, 2, 64, 32);
        narrow_in[j] = (operand){type, narrow[j]};
        type.dtype = QG_DTYPE_FP32;
        wide_in[j] = (operand){type, wide[j]};
    }
    qg_tensor_type type;
    uint16_t *y = run_op(op, a, inputs, narrow_in, 1, &type);
    float *x = run_op(op, a, inputs, wide_in, 1, NULL);
    ck_assert_int_eq(type.dtype, dtype);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++)
        REQUIRE(y[i] == encode(dtype, x[i]), "%s %s: %04x, not %a", qg_dtype_name(dtype),
                qg_graph_op_describe(op)->name, y[i], x[i]);
    free(x);
    free(y);
}

START_TEST(ops_on_16_bit_floats_compute_in_binary32_and_round_once) {
    static const qg_attributes first = {.axis_count = 1, .axes = {0}}, eps = {.eps = 1e-5f};
    for (qg_dtype dtype = QG_DTYPE_FP16; dtype <= QG_DTYPE_BF16; dtype++) {
        for (qg_graph_op op = QG_GRAPH_ADD; op <= QG_GRAPH_MAXIMUM; op++)
            check_narrow(op, NULL, 2, dtype);
        for (qg_graph_op op = QG_GRAPH_SQRT; op <= QG_GRAPH_SOFTMAX; op++)
            check_narrow(op, NULL, 1, dtype);
        for (qg_graph_op op = QG_GRAPH_REDUCE_SUM; op <= QG_GRAPH_REDUCE_MAX; op++)
            check_narrow(op, &first, 1, dtype);
        check_narrow(QG_GRAPH_RELU_GRADIENT, NULL, 2, dtype);
        check_narrow(QG_GRAPH_GELU_GRADIENT, NULL, 2, dtype);
        check_narrow(QG_GRAPH_LAYER_NORM, &eps, 3, dtype);
        check_narrow(QG_GRAPH_MATMUL, NULL, 2, dtype);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {casts_to_binary32_and_back_keep_all_16_bit_values,
                                  casts_from_binary32_round_to_nearest_even,
                                  casts_between_16_bit_floats_go_through_binary32,
                                  ops_on_16_bit_floats_compute_in_binary32_and_round_once};
    return RUN_SUITE("run_narrow", tests);
}
