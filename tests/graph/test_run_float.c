// Elementwise ops: exact where IEEE 754 makes them so, else half an ulp and a bit (what a
// value in binary64 beside a tie can lose) of long double functions; edges; NumPy's broadcasting.
// Reductions, softmax, layer norm, products: test_run_sums.c; 16-bit floats: test_run_narrow.c.
#include "run_graph.h"

#include <run_elementary_internal.h>

#include <run_suite.h>

#include <math.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const uint32_t specials[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
    0x80800000, 0x3f800000, 0xbf800000, 0x3f800001, 0x40400000, 0xc0400000, 0x7f7fffff,
    0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x7fffffff,
};
enum { SPECIALS = LENGTH(specials) };

static float *new_floats(int64_t count) {
    float *floats = malloc((size_t)count * sizeof *floats);
    REQUIRE(floats, "no memory");
    return floats;
}

static operand vector(int64_t count, const float *values) {
    return (operand){qg_tensor(QG_DTYPE_FP32, 1, count), values};
}

// --------------------------------------------------------------------------------- unary functions

static long double normal_cdf(long double x) { return 0.5L * erfcl(-x * sqrtl(0.5L)); }
static long double normal_density(long double x) {
    return expl(-0.5L * x * x) / sqrtl(2 * acosl(-1.0L));
}
static long double tanh_argument(long double x) {
    return sqrtl(2 / acosl(-1.0L)) * (x + 0.044715L * x * x * x);
}
static long double logistic(long double x) { return 1 / (1 + expl(-x)); }

static long double slow_gelu(long double x) { return x * normal_cdf(x); }
static long double slow_gelu_slope(long double x) { return normal_cdf(x) + x * normal_density(x); }
static long double slow_gelu_tanh(long double x) { return x * logistic(2 * tanh_argument(x)); }
static long double slow_gelu_tanh_slope(long double x) {
    long double slope = sqrtl(2 / acosl(-1.0L)) * (1 + 3 * 0.044715L * x * x);
    long double u = tanh_argument(x);
    return logistic(2 * u) + 2 * x * slope * logistic(2 * u) * logistic(-2 * u);
}

// Half an ulp, and what values of relative error 2^-39 can lose beside a tie.
static bool is_rounded(float got, long double exact) {
    float nearest = (float)exact;
    if (isnan(nearest))
        return isnan(got);
    if (!isfinite(nearest) || nearest == 0)
        return got == nearest || fabsl(exact - got) <= 0x1p-149L * 0.5001L;
    int exponent = ilogbl(exact) < -126 ? -126 : ilogbl(exact);
    return fabsl(exact - got) <= ldexpl(0.5001L, exponent - 23);
}

// Finite floats of every exponent and sign within `limit`.
static float *spread_floats(float limit, int64_t *count) {
    enum { STEP = 40009 };
    float *x = new_floats(0xffffffffu / STEP + 1);
    *count = 0;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += STEP) {
        float value = qg_float_of_bits((uint32_t)bits);
        if (fabsf(value) <= limit)
            x[(*count)++] = value;
    }
    return x;
}

static void check_unary(qg_graph_op op, bool tanh_form, float limit,
                        long double (*exact)(long double)) {
    qg_attributes a = {.tanh_form = tanh_form};
    int64_t count;
    float *x = spread_floats(limit, &count);
    operand in = vector(count, x);
    float *y = run_op(op, &a, 1, &in, 1, NULL);
    for (int64_t i = 0; i < count; i++)
        REQUIRE(is_rounded(y[i], exact(x[i])), "%a: %a, not %La", x[i], y[i], exact(x[i]));
    free(x);
    free(y);
}

START_TEST(gelu_is_x_times_the_normal_distribution) {
    check_unary(QG_GRAPH_GELU, false, INFINITY, slow_gelu);
}
END_TEST
START_TEST(gelu_has_a_tanh_form) { check_unary(QG_GRAPH_GELU, true, 1e9f, slow_gelu_tanh); }
END_TEST
START_TEST(tanh_does_not_cancel_near_0) { check_unary(QG_GRAPH_TANH, false, INFINITY, tanhl); }
END_TEST
START_TEST(sqrt_is_rounded) { check_unary(QG_GRAPH_SQRT, false, INFINITY, sqrtl); }
END_TEST

static void check_slope(bool tanh_form, float limit, long double (*exact)(long double)) {
    qg_attributes a = {.tanh_form = tanh_form};
    int64_t count;
    float *x = spread_floats(limit, &count), *dy = new_floats(count);
    fill_floats(3, count, 2, dy);
    for (int64_t i = 0; i < count; i += 2)
        dy[i] = 1;
    operand in[] = {vector(count, x), vector(count, dy)};
    float *y = run_op(QG_GRAPH_GELU_GRADIENT, &a, 2, in, 1, NULL);
    for (int64_t i = 0; i < count; i++)
        REQUIRE(is_rounded(y[i], dy[i] * exact(x[i])), "%a, %a: %a, not %La", x[i], dy[i], y[i],
                dy[i] * exact(x[i]));
    free(x);
    free(dy);
    free(y);
}

START_TEST(gelu_gradient_is_dy_times_the_derivative) { check_slope(false, 1e9f, slow_gelu_slope); }
END_TEST
START_TEST(gelu_gradient_has_a_tanh_form) { check_slope(true, 1e3f, slow_gelu_tanh_slope); }
END_TEST

// Before the one rounding. The slopes have zeros, where what is absolute counts.
static void check_digits(double (*f)(float), long double (*exact)(long double), float limit,
                         long double relative, long double absolute) {
    int64_t count;
    float *x = spread_floats(limit, &count);
    for (int64_t i = 0; i < count; i++) {
        long double y = exact(x[i]), error = fabsl(f(x[i]) - y);
        REQUIRE(fabsl(y) < 0x1p-1000L || error <= relative * fabsl(y) + absolute,
                "%a: off by %Lg of %Lg", x[i], error, y);
    }
    free(x);
}

START_TEST(functions_in_binary64_lose_few_digits) {
    check_digits(run_tanh, tanhl, INFINITY, 0x1p-46L, 0);
    check_digits(run_gelu, slow_gelu, 15.9f, 0x1p-49L, 0);
    check_digits(run_gelu_slope, slow_gelu_slope, 15.9f, 0x1p-49L, 0x1p-52L);
    check_digits(run_gelu_tanh, slow_gelu_tanh, 15.9f, 0x1p-42L, 0);
    check_digits(run_gelu_tanh_slope, slow_gelu_tanh_slope, 15.9f, 0x1p-42L, 0x1p-50L);
}
END_TEST

// ------------------------------------------------------------------------------------- their edges

typedef struct edge {
    qg_graph_op op;
    bool tanh_form;
    uint32_t x, y;
} edge;

#define EDGES_OF_GELU(FORM)                                                                        \
    {QG_GRAPH_GELU, FORM, 0, 0}, {QG_GRAPH_GELU, FORM, 0x80000000, 0x80000000},                    \
        {QG_GRAPH_GELU, FORM, 0x7f800000, 0x7f800000},                                             \
        {QG_GRAPH_GELU, FORM, 0xff800000, 0x80000000},                                             \
        {QG_GRAPH_GELU, FORM, 0x7f7fffff, 0x7f7fffff},                                             \
        {QG_GRAPH_GELU, FORM, 0xff7fffff, 0x80000000},                                             \
        {QG_GRAPH_GELU, FORM, 0x00000002, 0x00000001},                                             \
        {QG_GRAPH_GELU, FORM, 0x80000002, 0x80000001},                                             \
        {QG_GRAPH_GELU, FORM, 0x7fc00000, 0x7fffffff},                                             \
        {QG_GRAPH_GELU, FORM, 0xff800001, 0x7fffffff},                                             \
        {QG_GRAPH_GELU, FORM, 0xc1800000, 0x80000000}, {                                           \
        QG_GRAPH_GELU, FORM, 0x41800000, 0x41800000                                                \
    }

static const edge edges[] = {
    EDGES_OF_GELU(false),
    EDGES_OF_GELU(true),
    {QG_GRAPH_TANH, false, 0x00000000, 0x00000000},
    {QG_GRAPH_TANH, false, 0x80000000, 0x80000000},
    {QG_GRAPH_TANH, false, 0x00000001, 0x00000001},
    {QG_GRAPH_TANH, false, 0x80000001, 0x80000001},
    {QG_GRAPH_TANH, false, 0x7f800000, 0x3f800000},
    {QG_GRAPH_TANH, false, 0xff800000, 0xbf800000},
    {QG_GRAPH_TANH, false, 0x7f7fffff, 0x3f800000},
    {QG_GRAPH_TANH, false, 0xffc00000, 0x7fffffff},
    {QG_GRAPH_SQRT, false, 0x00000000, 0x00000000},
    {QG_GRAPH_SQRT, false, 0x80000000, 0x80000000},
    {QG_GRAPH_SQRT, false, 0x00000002, 0x1a800000}, // 2^-148
    {QG_GRAPH_SQRT, false, 0x7f800000, 0x7f800000},
    {QG_GRAPH_SQRT, false, 0xff800000, 0x7fffffff},
    {QG_GRAPH_SQRT, false, 0x80000001, 0x7fffffff},
    {QG_GRAPH_SQRT, false, 0x7f800001, 0x7fffffff},
    {QG_GRAPH_RELU, false, 0x00000000, 0x00000000},
    {QG_GRAPH_RELU, false, 0x80000000, 0x00000000},
    {QG_GRAPH_RELU, false, 0x00000001, 0x00000001},
    {QG_GRAPH_RELU, false, 0x80000001, 0x00000000},
    {QG_GRAPH_RELU, false, 0x7f800000, 0x7f800000},
    {QG_GRAPH_RELU, false, 0xff800000, 0x00000000},
    {QG_GRAPH_RELU, false, 0x7fc00000, 0x7fffffff},
    {QG_GRAPH_RELU, false, 0xff800001, 0x7fffffff},
};

START_TEST(edges_of_unary_ops_are_as_stated) {
    for (size_t i = 0; i < LENGTH(edges); i++) {
        qg_attributes a = {.tanh_form = edges[i].tanh_form};
        float x = qg_float_of_bits(edges[i].x);
        operand in = vector(1, &x);
        float *y = run_op(edges[i].op, &a, 1, &in, 1, NULL);
        REQUIRE(qg_bits_of_float(*y) == edges[i].y, "%s of %08x: %08x, not %08x",
                qg_graph_op_describe(edges[i].op)->name, edges[i].x, qg_bits_of_float(*y),
                edges[i].y);
        free(y);
    }
}
END_TEST

static uint32_t gradient_bits(qg_graph_op op, float x, float dy) {
    operand in[] = {vector(1, &x), vector(1, &dy)};
    float *y = run_op(op, NULL, 2, in, 1, NULL);
    uint32_t bits = qg_bits_of_float(*y);
    free(y);
    return bits;
}

START_TEST(relu_gradient_is_dy_where_x_is_positive_and_0_elsewhere) {
    for (int i = 0; i < SPECIALS; i++)
        for (int j = 0; j < SPECIALS; j++) {
            float x = qg_float_of_bits(specials[i]), dy = qg_float_of_bits(specials[j]);
            ck_assert_uint_eq(gradient_bits(QG_GRAPH_RELU_GRADIENT, x, dy),
                              x > 0 ? result_bits(dy) : 0);
        }
}
END_TEST

START_TEST(gelu_gradient_at_infinity_is_the_limit) {
    ck_assert_uint_eq(gradient_bits(QG_GRAPH_GELU_GRADIENT, INFINITY, -3), 0xc0400000u);
    ck_assert_uint_eq(gradient_bits(QG_GRAPH_GELU_GRADIENT, -INFINITY, 3), 0x80000000u);
    ck_assert_uint_eq(gradient_bits(QG_GRAPH_GELU_GRADIENT, NAN, 3), 0x7fffffffu);
    ck_assert_uint_eq(gradient_bits(QG_GRAPH_GELU_GRADIENT, 1, INFINITY), 0x7f800000u);
    ck_assert_uint_eq(gradient_bits(QG_GRAPH_GELU_GRADIENT, 0, 4), 0x40000000u);
}
END_TEST

// -------------------------------------------------------------------------------------- binary ops

static float slow_add(float a, float b) { return a + b; }
static float slow_subtract(float a, float b) { return a - b; }
static float slow_multiply(float a, float b) { return a * b; }
static float slow_divide(float a, float b) { return a / b; }
static float slow_maximum(float a, float b) {
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == 0 && b == 0)
        return signbit(a) && signbit(b) ? -0.0f : 0.0f;
    return a < b ? b : a;
}

static const struct {
    qg_graph_op op;
    float (*slow)(float, float);
} binaries[] = {
    {QG_GRAPH_ADD,      slow_add     },
    {QG_GRAPH_SUBTRACT, slow_subtract},
    {QG_GRAPH_MULTIPLY, slow_multiply},
    {QG_GRAPH_DIVIDE,   slow_divide  },
    {QG_GRAPH_MAXIMUM,  slow_maximum },
};

static void require_binary(size_t which, const float *a, const float *b, float got) {
    uint32_t expected = result_bits(binaries[which].slow(*a, *b));
    REQUIRE(qg_bits_of_float(got) == expected, "%s of %a and %a: %08x, not %08x",
            qg_graph_op_describe(binaries[which].op)->name, *a, *b, qg_bits_of_float(got),
            expected);
}

START_TEST(binary_ops_round_once_and_give_one_nan) {
    enum { RANDOM = 4096, COUNT = SPECIALS * SPECIALS + RANDOM };
    float *a = new_floats(COUNT), *b = new_floats(COUNT);
    uint64_t seed = 11;
    for (int i = 0; i < COUNT; i++) {
        bool special = i < SPECIALS * SPECIALS;
        a[i] = qg_float_of_bits(special ? specials[i / SPECIALS] : (uint32_t)next_word(&seed));
        b[i] = qg_float_of_bits(special ? specials[i % SPECIALS] : (uint32_t)next_word(&seed));
    }
    operand in[] = {vector(COUNT, a), vector(COUNT, b)};
    for (size_t w = 0; w < LENGTH(binaries); w++) {
        float *y = run_op(binaries[w].op, NULL, 2, in, 1, NULL);
        for (int i = 0; i < COUNT; i++)
            require_binary(w, &a[i], &b[i], y[i]);
        free(y);
    }
    free(a);
    free(b);
}
END_TEST

// Shapes as NumPy's documentation and tests have them, and those that walk axes in other ways.
static const struct {
    int32_t a_rank, b_rank, rank;
    int64_t a[QG_RANK_MOST], b[QG_RANK_MOST], shape[QG_RANK_MOST];
} broadcasts[] = {
    {0, 0, 0, {0},                      {0},                      {0}                     },
    {0, 1, 1, {0},                      {1},                      {1}                     },
    {1, 0, 1, {7},                      {0},                      {7}                     },
    {0, 3, 3, {0},                      {2, 3, 4},                {2, 3, 4}               },
    {1, 1, 1, {7},                      {7},                      {7}                     },
    {1, 1, 1, {1},                      {7},                      {7}                     },
    {2, 1, 2, {5, 4},                   {1},                      {5, 4}                  },
    {2, 1, 2, {5, 4},                   {4},                      {5, 4}                  },
    {1, 2, 2, {4},                      {5, 4},                   {5, 4}                  },
    {2, 2, 2, {5, 1},                   {1, 4},                   {5, 4}                  },
    {2, 2, 2, {1, 4},                   {5, 1},                   {5, 4}                  },
    {2, 2, 2, {5, 1},                   {5, 4},                   {5, 4}                  },
    {2, 1, 2, {3, 1},                   {3},                      {3, 3}                  },
    {3, 3, 3, {15, 3, 5},               {15, 1, 5},               {15, 3, 5}              },
    {3, 2, 3, {15, 3, 5},               {3, 5},                   {15, 3, 5}              },
    {3, 2, 3, {15, 3, 5},               {3, 1},                   {15, 3, 5}              },
    {4, 3, 4, {8, 1, 6, 1},             {7, 1, 5},                {8, 7, 6, 5}            },
    {4, 4, 4, {2, 1, 3, 1},             {1, 5, 1, 4},             {2, 5, 3, 4}            },
    {4, 4, 4, {2, 3, 4, 5},             {2, 1, 1, 5},             {2, 3, 4, 5}            },
    {4, 4, 4, {2, 3, 4, 5},             {1, 3, 4, 1},             {2, 3, 4, 5}            },
    {4, 4, 4, {1, 1, 1, 1},             {2, 3, 4, 5},             {2, 3, 4, 5}            },
    {8, 8, 8, {2, 1, 2, 1, 2, 1, 2, 1}, {1, 3, 1, 3, 1, 3, 1, 3}, {2, 3, 2, 3, 2, 3, 2, 3}},
    {8, 1, 8, {2, 1, 2, 1, 2, 1, 2, 1}, {6},                      {2, 1, 2, 1, 2, 1, 2, 6}},
    {2, 2, 2, {130, 70},                {130, 1},                 {130, 70}               },
    {2, 1, 2, {130, 70},                {70},                     {130, 70}               },
};

// The element that a place of the output takes from an input.
static float broadcast_element(const operand *in, const qg_tensor_type *out, const int64_t *place) {
    int64_t own[QG_RANK_MOST];
    for (int32_t i = 0; i < in->type.rank; i++) {
        int64_t wanted = place[i + out->rank - in->type.rank];
        own[i] = in->type.shape[i] == 1 ? 0 : wanted;
    }
    return ((const float *)in->values)[ravel(&in->type, own)];
}

START_TEST(broadcasting_is_numpys) {
    enum { MOST = 10000 };
    static float a[MOST], b[MOST];
    fill_floats(1, MOST, 3, a);
    fill_floats(2, MOST, 3, b);
    for (size_t i = 0; i < LENGTH(broadcasts); i++)
        for (size_t w = 0; w < 2 * LENGTH(binaries); w++) {
            operand in[] = {
                {tensor_of(QG_DTYPE_FP32, broadcasts[i].a_rank, broadcasts[i].a), a},
                {tensor_of(QG_DTYPE_FP32, broadcasts[i].b_rank, broadcasts[i].b), b}
            };
            qg_tensor_type type, expected;
            float *y = run_op(binaries[w / 2].op, NULL, 2, in, 1 + (int)w % 2, &type);
            expected = tensor_of(QG_DTYPE_FP32, broadcasts[i].rank, broadcasts[i].shape);
            REQUIRE(qg_tensor_equal(&type, &expected), "shape of case %zu", i);
            for (int64_t j = 0; j < qg_tensor_elements(&type); j++) {
                int64_t place[QG_RANK_MOST];
                unravel(&type, j, place);
                float x = broadcast_element(&in[0], &type, place);
                float z = broadcast_element(&in[1], &type, place);
                require_binary(w / 2, &x, &z, y[j]);
            }
            free(y);
        }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {gelu_is_x_times_the_normal_distribution,
                                  gelu_has_a_tanh_form,
                                  tanh_does_not_cancel_near_0,
                                  sqrt_is_rounded,
                                  gelu_gradient_is_dy_times_the_derivative,
                                  gelu_gradient_has_a_tanh_form,
                                  functions_in_binary64_lose_few_digits,
                                  edges_of_unary_ops_are_as_stated,
                                  relu_gradient_is_dy_where_x_is_positive_and_0_elsewhere,
                                  gelu_gradient_at_infinity_is_the_limit,
                                  binary_ops_round_once_and_give_one_nan,
                                  broadcasting_is_numpys};
    return RUN_SUITE("run_float", tests);
}
