// Products, reductions, softmax and layer norm: bit for bit where the order of the sum is stated,
// else against long double with the error that binary64 sums can have; edges; threads.
#include "run_graph.h"

#include <qg_init.h>
#include <run_suite.h>

#include <math.h>

enum { MOST = 1 << 16 };

// ---------------------------------------------------------------------------------------- products

static float slow_dot(const float *a, const float *b, int64_t k, int64_t b_step) {
    float sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum = fmaf(a[i], b[i * b_step], sum);
    return sum;
}

static void check_product(int32_t rank, const int64_t *batches, int64_t m, int64_t n, int64_t k,
                          int threads) {
    static float a[MOST], b[MOST];
    int64_t a_shape[QG_RANK_MOST] = {0}, b_shape[QG_RANK_MOST] = {0};
    for (int32_t i = 0; i < rank - 2; i++)
        a_shape[i] = b_shape[i] = batches[i];
    a_shape[rank - 2] = m;
    a_shape[rank - 1] = b_shape[rank - 2] = k;
    b_shape[rank - 1] = n;
    operand in[] = {
        {tensor_of(QG_DTYPE_FP32, rank, a_shape), a},
        {tensor_of(QG_DTYPE_FP32, rank, b_shape), b}
    };
    fill_floats(5, qg_tensor_elements(&in[0].type), 1, a);
    fill_floats(6, qg_tensor_elements(&in[1].type), 1, b);
    qg_tensor_type type;
    float *y = run_op(QG_GRAPH_MATMUL, NULL, 2, in, threads, &type);
    for (int64_t i = 0; i < qg_tensor_elements(&type); i++) {
        int64_t batch = i / (m * n), row = i / n % m, column = i % n;
        float exact = slow_dot(a + (batch * m + row) * k, b + batch * k * n + column, k, n);
        REQUIRE(same_bits(y[i], exact), "%" PRId64 "x%" PRId64 "x%" PRId64 ": %a, not %a", m, n, k,
                y[i], exact);
    }
    free(y);
}

START_TEST(a_product_is_a_chain_of_fused_multiply_adds_in_the_order_of_k) {
    static const int64_t sizes[] = {1, 2, 3, 17, 40};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++)
            for (int l = 0; l < 5; l++)
                check_product(2, NULL, sizes[i], sizes[j], sizes[l], 1 + i % 2);
}
END_TEST

START_TEST(products_of_leading_axes_are_apart) {
    static const int64_t one[] = {1}, few[] = {2}, many[] = {3, 4}, most[] = {2, 1, 2, 1, 2, 1};
    for (int threads = 1; threads <= 3; threads++) {
        check_product(3, one, 5, 7, 9, threads);
        check_product(3, few, 40, 33, 34, threads);
        check_product(4, many, 20, 16, 12, threads);
        check_product(8, most, 3, 4, 5, threads);
    }
}
END_TEST

START_TEST(a_product_has_the_same_bits_on_every_instruction_set) {
    for (qg_isa isa = QG_ISA_SCALAR; isa < QG_ISA_COUNT; isa++)
        if (qg_cpu_has(isa) && qg_unit_use_isa(qg_isa_name(isa)) == QG_OK) {
            static const int64_t many[] = {6};
            check_product(2, NULL, 70, 65, 80, 2);
            check_product(3, many, 17, 33, 20, 2);
        }
    require_ok(qg_unit_use_isa("scalar"));
}
END_TEST

START_TEST(a_product_with_nan_or_infinity_gives_the_one_nan) {
    float a[] = {INFINITY, 1, NAN, 1, 1, 1}, b[] = {0, 1, INFINITY, 1};
    operand in[] = {
        {qg_tensor(QG_DTYPE_FP32, 2, 3, 2), a},
        {qg_tensor(QG_DTYPE_FP32, 2, 2, 2), b}
    };
    float *y = run_op(QG_GRAPH_MATMUL, NULL, 2, in, 1, NULL);
    static const uint32_t expected[] = {0x7fffffff, 0x7f800000, 0x7fffffff,
                                        0x7fffffff, 0x7f800000, 0x40000000};
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(qg_bits_of_float(y[i]), expected[i]);
    free(y);
}
END_TEST

// -------------------------------------------------------------------------------------- reductions

typedef struct slow_reduction {
    double sum;
    float largest;
    int64_t count, nans;
    bool positive_zero;
} slow_reduction;

static float slow_result(qg_graph_op op, const slow_reduction *r) {
    if (op == QG_GRAPH_REDUCE_SUM)
        return (float)r->sum;
    if (op == QG_GRAPH_REDUCE_MEAN)
        return (float)(r->sum / (double)r->count);
    if (r->nans)
        return qg_float_of_bits(0x7fffffffu);
    return r->largest == 0 ? (r->positive_zero ? 0.0f : -0.0f) : r->largest;
}

// Every element of x in row-major order, added to the output that its kept axes name.
static slow_reduction *reduce_slowly(const operand *in, const qg_attributes *a,
                                     qg_tensor_type *kept) {
    *kept = in->type;
    for (int32_t j = 0; j < a->axis_count; j++)
        kept->shape[a->axes[j]] = 1;
    int64_t outputs = qg_tensor_elements(kept);
    slow_reduction *r = calloc((size_t)outputs, sizeof *r);
    REQUIRE(r, "no memory");
    for (int64_t i = 0; i < outputs; i++)
        r[i].sum = -0.0, r[i].largest = -INFINITY;
    for (int64_t i = 0; i < qg_tensor_elements(&in->type); i++) {
        float x = ((const float *)in->values)[i];
        int64_t place[QG_RANK_MOST];
        unravel(&in->type, i, place);
        for (int32_t j = 0; j < a->axis_count; j++)
            place[a->axes[j]] = 0;
        slow_reduction *to = &r[ravel(kept, place)];
        to->sum += x;
        to->count++;
        to->nans += isnan(x);
        to->positive_zero |= x == 0 && !signbit(x);
        to->largest = x > to->largest ? x : to->largest;
    }
    return r;
}

static void check_reduction(const operand *in, qg_graph_op op, int32_t mask, bool keepdims,
                            int threads) {
    qg_attributes a = {.keepdims = keepdims};
    for (int32_t i = 0; i < in->type.rank; i++)
        if (mask >> i & 1)
            a.axes[a.axis_count++] = i;
    if (mask % 3 == 0 && a.axis_count > 1) { // the order of axes does not matter
        int32_t first = a.axes[0];
        a.axes[0] = a.axes[a.axis_count - 1];
        a.axes[a.axis_count - 1] = first;
    }
    qg_tensor_type type, kept;
    float *y = run_op(op, &a, 1, in, threads, &type);
    slow_reduction *r = reduce_slowly(in, &a, &kept);
    ck_assert_int_eq(type.rank, keepdims ? in->type.rank : in->type.rank - a.axis_count);
    for (int64_t i = 0; i < qg_tensor_elements(&kept); i++)
        REQUIRE(qg_bits_of_float(y[i]) == result_bits(slow_result(op, &r[i])),
                "%s of axes %x: %a, not %a", qg_graph_op_describe(op)->name, (unsigned)mask, y[i],
                slow_result(op, &r[i]));
    free(r);
    free(y);
}

START_TEST(reductions_go_over_any_axes_in_order) {
    static const struct {
        int32_t rank;
        int64_t shape[8];
    } shapes[] = {
        {1, {1}                     },
        {1, {300}                   },
        {2, {40, 70}                },
        {2, {3, 600}                },
        {3, {7, 1, 30}              },
        {4, {5, 6, 7, 8}            },
        {4, {2, 1, 3, 1}            },
        {5, {3, 4, 1, 5, 2}         },
        {8, {2, 1, 2, 3, 2, 1, 2, 3}},
    };
    static float x[MOST];
    fill_floats(8, MOST, 100, x);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        operand in = {tensor_of(QG_DTYPE_FP32, shapes[s].rank, shapes[s].shape), x};
        for (int32_t mask = 1; mask < 1 << shapes[s].rank; mask++)
            for (qg_graph_op op = QG_GRAPH_REDUCE_SUM; op <= QG_GRAPH_REDUCE_MAX; op++)
                check_reduction(&in, op, mask, (mask ^ (int32_t)op) & 1, 1 + mask % 2);
    }
}
END_TEST

START_TEST(reductions_of_edges) {
    static float x[] = {-0.0f, -0.0f, NAN,       1,         2,         -0.0f, 0.0f,     -0.0f,
                        5,     3,     -INFINITY, -INFINITY, -INFINITY, 1,     INFINITY, -INFINITY};
    for (int32_t mask = 1; mask < 4; mask++)
        for (qg_graph_op op = QG_GRAPH_REDUCE_SUM; op <= QG_GRAPH_REDUCE_MAX; op++)
            for (int64_t rows = 1; rows <= 16; rows *= 2) {
                operand in = {qg_tensor(QG_DTYPE_FP32, 2, rows, 16 / rows), x};
                check_reduction(&in, op, mask, true, 1);
            }
}
END_TEST

START_TEST(a_sum_in_binary64_keeps_what_binary32_loses) {
    float x[] = {0x1p30f, 1, -0x1p30f, 0x1p-20f};
    operand in = {qg_tensor(QG_DTYPE_FP32, 1, 4), x};
    qg_attributes a = {.axis_count = 1};
    float *y = run_op(QG_GRAPH_REDUCE_SUM, &a, 1, &in, 1, NULL);
    ck_assert_float_eq(*y, 1 + 0x1p-20f);
    free(y);
}
END_TEST

// ------------------------------------------------------------------------ gradient of the maximum

START_TEST(equal_maxima_share_the_gradient) {
    // Over axis 0: maxima 3 (twice), NaN (once), 0 of either sign (thrice), 7.
    float x[] = {3, NAN, 0.0f, 7, 3, 5, -0.0f, 1, -1, 2, 0.0f, INFINITY};
    float y[] = {3, NAN, 0.0f, INFINITY}, dy[] = {8, 5, 6, -0.0f};
    static const float expected[] = {4, 5, 2, 0, 4, 0, 2, 0, 0, 0, 2, -0.0f};
    operand in[] = {
        {qg_tensor(QG_DTYPE_FP32, 2, 3, 4), x },
        {qg_tensor(QG_DTYPE_FP32, 2, 1, 4), y },
        {qg_tensor(QG_DTYPE_FP32, 2, 1, 4), dy}
    };
    qg_attributes a = {.axis_count = 1};
    float *dx = run_op(QG_GRAPH_REDUCE_MAX_GRADIENT, &a, 3, in, 2, NULL);
    for (int i = 0; i < 12; i++)
        REQUIRE(same_bits(dx[i], expected[i]), "element %d: %a", i, dx[i]);
    free(dx);
}
END_TEST

START_TEST(the_gradient_of_a_maximum_finds_its_output_over_any_axes) {
    static float x[MOST], y[MOST], dy[MOST];
    qg_tensor_type type = qg_tensor(QG_DTYPE_FP32, 4, 4, 3, 5, 6);
    fill_floats(9, 360, 1, x);
    fill_floats(10, 360, 1, dy);
    for (int32_t mask = 1; mask < 16; mask++) {
        qg_attributes a = {0};
        qg_tensor_type kept;
        for (int32_t i = 0; i < 4; i++)
            if (mask >> i & 1)
                a.axes[a.axis_count++] = i;
        operand all = {type, x};
        slow_reduction *r = reduce_slowly(&all, &a, &kept);
        for (int64_t i = 0; i < qg_tensor_elements(&kept); i++)
            y[i] = r[i].largest;
        operand in[] = {
            all, {kept, y },
             {kept, dy}
        };
        float *dx = run_op(QG_GRAPH_REDUCE_MAX_GRADIENT, &a, 3, in, 2, NULL);
        for (int64_t i = 0; i < 360; i++) {
            int64_t place[QG_RANK_MOST];
            unravel(&type, i, place);
            for (int32_t j = 0; j < a.axis_count; j++)
                place[a.axes[j]] = 0;
            int64_t at = ravel(&kept, place);
            ck_assert_float_eq(dx[i], x[i] == y[at] ? dy[at] : 0); // no ties among random values
        }
        free(dx);
        free(r);
    }
}
END_TEST

// ----------------------------------------------------------------------------------------- softmax

// Half an ulp of y, and 2^-40 of it for k sums in binary64 and e^x.
static bool is_near(float got, long double exact, long double slack) {
    int exponent = exact == 0 || ilogbl(exact) < -126 ? -126 : ilogbl(exact);
    return fabsl(got - exact) <= ldexpl(0.5L, exponent - 23) + slack;
}

START_TEST(softmax_is_over_the_last_axis) {
    static const int64_t shapes[][3] = {
        {2, 3, 1  },
        {1, 5, 8  },
        {3, 4, 96 },
        {1, 2, 999}
    };
    static float x[MOST];
    for (int s = 0; s < 4; s++)
        for (float limit = 1; limit < 200; limit *= 10) {
            operand in = {tensor_of(QG_DTYPE_FP32, 3, shapes[s]), x};
            int64_t count = qg_tensor_elements(&in.type), k = shapes[s][2];
            fill_floats(12, count, limit, x);
            float *y = run_op(QG_GRAPH_SOFTMAX, NULL, 1, &in, 2, NULL);
            for (int64_t i = 0; i < count; i++) {
                long double sum = 0;
                for (int64_t j = 0; j < k; j++)
                    sum += expl((long double)x[i / k * k + j] - x[i]);
                REQUIRE(is_near(y[i], 1 / sum, 0x1p-40L / sum), "%a, not %La", y[i], 1 / sum);
            }
            free(y);
        }
}
END_TEST

static void check_softmax(int64_t k, const float *x, const float *expected) {
    operand in = {qg_tensor(QG_DTYPE_FP32, 1, k), x};
    float *y = run_op(QG_GRAPH_SOFTMAX, NULL, 1, &in, 1, NULL);
    for (int64_t i = 0; i < k; i++)
        REQUIRE(qg_bits_of_float(y[i]) == result_bits(expected[i]), "member %d: %a", (int)i, y[i]);
    free(y);
}

START_TEST(softmax_of_masked_and_of_huge_members) {
    check_softmax(3, (const float[]){-INFINITY, 2, -INFINITY}, (const float[]){0, 1, 0});
    check_softmax(4, (const float[]){5, -INFINITY, 5, -3.4e38f}, (const float[]){.5f, 0, .5f, 0});
    check_softmax(2, (const float[]){3.4e38f, -3.4e38f}, (const float[]){1, 0});
    check_softmax(2, (const float[]){-INFINITY, -INFINITY}, (const float[]){NAN, NAN});
    check_softmax(2, (const float[]){INFINITY, 0}, (const float[]){NAN, NAN});
    check_softmax(3, (const float[]){0, NAN, 1}, (const float[]){NAN, NAN, NAN});
    check_softmax(1, (const float[]){-1e30f}, (const float[]){1});
}
END_TEST

// -------------------------------------------------------------------------------------- layer norm

static void check_layer_norm(int64_t rows, int64_t k, float offset, float eps) {
    static float x[MOST], gain[MOST], bias[MOST];
    fill_floats(13, rows * k, 2, x);
    fill_floats(14, k, 3, gain);
    fill_floats(15, k, 1, bias);
    for (int64_t i = 0; i < rows * k; i++)
        x[i] += offset;
    operand in[] = {
        {qg_tensor(QG_DTYPE_FP32, 2, rows,                   k),  x},
        {qg_tensor(QG_DTYPE_FP32,                       1,  k), gain},
        {qg_tensor(QG_DTYPE_FP32,                       1,  k), bias}
    };
    qg_attributes a = {.eps = eps};
    float *y = run_op(QG_GRAPH_LAYER_NORM, &a, 3, in, 2, NULL);
    for (int64_t row = 0; row < rows; row++) {
        long double mean = 0, variance = 0;
        for (int64_t i = 0; i < k; i++)
            mean += x[row * k + i] / (long double)k;
        for (int64_t i = 0; i < k; i++) {
            long double d = x[row * k + i] - mean;
            variance += d * d / (long double)k;
        }
        for (int64_t i = 0; i < k; i++) {
            // The mean is off by at most k ulp of |offset| + 2, the rest by less.
            long double slack = 3 * (fabsf(offset) + 4) * (long double)k * 0x1p-52L;
            long double exact = (x[row * k + i] - mean) / sqrtl(variance + eps) * gain[i] + bias[i];
            REQUIRE(is_near(y[row * k + i], exact, slack / sqrtl(variance + eps)), "%a, not %La",
                    y[row * k + i], exact);
        }
    }
    free(y);
}

START_TEST(layer_norm_centres_scales_and_shifts_rows) {
    check_layer_norm(5, 384, 0, 1e-12f);
    check_layer_norm(64, 20, 1, 1e-5f);
    check_layer_norm(3, 2, -7, 0.25f);
    check_layer_norm(2, 999, 0x1p20f, 1e-12f); // one pass over squares would lose all digits
}
END_TEST

START_TEST(layer_norm_of_equal_elements_is_the_bias) {
    float x[] = {3, 3, 3, 3}, gain[] = {1, 2, 3, 4}, bias[] = {0.5f, -1, 0, 7};
    operand in[] = {
        {qg_tensor(QG_DTYPE_FP32, 1, 4), x   },
        {qg_tensor(QG_DTYPE_FP32, 1, 4), gain},
        {qg_tensor(QG_DTYPE_FP32, 1, 4), bias}
    };
    qg_attributes a = {.eps = 1e-12f};
    float *y = run_op(QG_GRAPH_LAYER_NORM, &a, 3, in, 1, NULL);
    ck_assert_mem_eq(y, bias, sizeof bias);
    free(y);
    a.eps = 0;
    y = run_op(QG_GRAPH_LAYER_NORM, &a, 3, in, 1, NULL);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(qg_bits_of_float(y[i]), 0x7fffffffu);
    free(y);
}
END_TEST

// ----------------------------------------------------------------------------------------- threads

static void require_same_on_threads(qg_graph_op op, const qg_attributes *a, int32_t count,
                                    const operand *in) {
    qg_tensor_type type;
    void *one = run_op(op, a, count, in, 1, &type);
    for (int threads = 0; threads <= 5; threads += threads == 0 ? 2 : 1) {
        void *other = run_op(op, a, count, in, threads, NULL);
        REQUIRE(memcmp(one, other, (size_t)qg_tensor_bytes(&type)) == 0, "%s on %d threads",
                qg_graph_op_describe(op)->name, threads);
        free(other);
    }
    free(one);
}

START_TEST(results_do_not_depend_on_threads) {
    static float x[MOST], y[MOST];
    fill_floats(16, MOST, 3, x);
    fill_floats(17, MOST, 3, y);
    const qg_tensor_type matrix = qg_tensor(QG_DTYPE_FP32, 2, 180, 180);
    const qg_tensor_type vector = qg_tensor(QG_DTYPE_FP32, 1, 180);
    const operand square[] = {
        {matrix, x},
        {matrix, y}
    };
    const operand row[] = {
        {matrix, x},
        {vector, y},
        {vector, y}
    };
    qg_attributes first = {.axis_count = 1, .axes = {0}, .keepdims = true},
                  last = {.axis_count = 1, .axes = {1}}, eps = {.eps = 1e-5f};
    require_same_on_threads(QG_GRAPH_MATMUL, NULL, 2, square);
    for (qg_graph_op op = QG_GRAPH_ADD; op <= QG_GRAPH_MAXIMUM; op++) {
        require_same_on_threads(op, NULL, 2, square);
        require_same_on_threads(op, NULL, 2, row);
    }
    for (qg_graph_op op = QG_GRAPH_SQRT; op <= QG_GRAPH_SOFTMAX; op++)
        require_same_on_threads(op, NULL, 1, square);
    for (qg_graph_op op = QG_GRAPH_REDUCE_SUM; op <= QG_GRAPH_REDUCE_MAX; op++) {
        require_same_on_threads(op, &first, 1, square);
        require_same_on_threads(op, &last, 1, square);
    }
    require_same_on_threads(QG_GRAPH_LAYER_NORM, &eps, 3, row);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_product_is_a_chain_of_fused_multiply_adds_in_the_order_of_k,
        products_of_leading_axes_are_apart,
        a_product_has_the_same_bits_on_every_instruction_set,
        a_product_with_nan_or_infinity_gives_the_one_nan,
        reductions_go_over_any_axes_in_order,
        reductions_of_edges,
        a_sum_in_binary64_keeps_what_binary32_loses,
        equal_maxima_share_the_gradient,
        the_gradient_of_a_maximum_finds_its_output_over_any_axes,
        softmax_is_over_the_last_axis,
        softmax_of_masked_and_of_huge_members,
        layer_norm_centres_scales_and_shifts_rows,
        layer_norm_of_equal_elements_is_the_bias,
        results_do_not_depend_on_threads,
    };
    return RUN_SUITE("run_sums", tests);
}
