// Reference products: the error against the exact sum stays within the contract, also on data made
// to break it; the same bits for every instruction set, thread count and tiling; special values.
#include <block_data.h>
#include <require.h>
#include <run_suite.h>

#include <exact_sum_internal.h>
#include <qg_bits.h>
#include <qg_exact_product.h>
#include <qg_unit.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 70, N = 75, K = 1600 };
enum { RAW, NORMAL, SPREAD, CANCEL, LOSE, KINDS };

static float a[M * K], b[N * K], bias[N];
static double out[M * N], magnitude[M * N], other[M * N], other_magnitude[M * N];
static uint64_t state = 11;

static uint32_t draw(void) { return (uint32_t)(block_data_random(&state) >> 32); }

static float random_float(int low, int high) { // exponents low .. high - 1
    uint32_t exponent = (uint32_t)(127 + low) + draw() % (uint32_t)(high - low);
    return qg_float_of_bits((draw() & 0x807fffffu) | exponent << 23);
}

static float number(int kind) {
    switch (kind) {
    case RAW: return draw() % 512 ? random_float(-126, 127) : qg_float_of_bits(draw() & 0x80ffffff);
    case NORMAL: return random_float(-4, 1);
    default: return random_float(-60, 60);
    }
}

static void fill(float *x, int64_t rows, int64_t k, int kind) {
    for (int64_t i = 0; i < rows * k; i++)
        x[i] = number(kind);
}

// Sums that return to almost nothing: the second half is the first, negated, in another order.
static void cancel(float *x, float *y, int64_t k) {
    for (int64_t l = 0; l < k / 2; l++) {
        int64_t from = (l + k / 4) % (k / 2);
        x[k / 2 + l] = -x[from];
        y[k / 2 + l] = y[from];
    }
}

// A running sum of 1 and periods of terms: first near half its last place, so that additions lose
// them whole, then near half the last place of a plain sum of what was lost, one or six together.
static void lose(float *x, float *y, int64_t k) {
    int64_t half = 3 << draw() % 9;
    float share = draw() % 2 ? 1.0f : 0x1.5p-3f;
    int exponent;
    (void)frexp((double)half * 0.99, &exponent);
    for (int64_t l = 0; l < k; l++) {
        bool late = l / half % 2;
        x[l] = 1.0f - 0x1p-20f * (float)(draw() % 64 + 1);
        y[l] = late ? share * qg_float_pow2(exponent - 107) : 0x1p-53f;
    }
    x[0] = y[0] = 1.0f;
    // The result is small, so that what was lost is not hidden by its rounding.
    double rest = 0.0;
    for (int64_t l = 1; l < k; l++)
        rest += (double)x[l] * (double)y[l];
    if (k > 3) {
        x[k - 2] = -1.0f, y[k - 2] = 1.0f;
        x[k - 1] = -(float)rest, y[k - 1] = 1.0f;
    }
}

static void make(int kind, int64_t m, int64_t n, int64_t k) {
    fill(a, m, k, kind), fill(b, n, k, kind);
    for (int64_t j = 0; j < n; j++)
        bias[j] = number(kind);
    for (int64_t i = 0; i < m && i < n; i++) {
        if (kind == CANCEL)
            cancel(a + i * k, b + i * k, k);
        if (kind == LOSE)
            lose(a + i * k, b + i * k, k);
    }
}

static void check_bound(int kind, int64_t m, int64_t n, int64_t k, const float *add) {
    ck_assert_int_eq(qg_exact_product(m, n, k, a, b, add, 0, out, magnitude), QG_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = i % 7; j < n; j += kind == NORMAL ? 7 : 1) {
            double got = out[i * n + j], size = add ? fabs((double)add[j]) : 0.0;
            exact_sum sum = {0}, sizes = {0};
            for (int64_t l = 0; l < k; l++) {
                double product = (double)a[i * k + l] * (double)b[j * k + l];
                exact_sum_add_value(&sum, product);
                exact_sum_add_value(&sizes, fabs(product));
            }
            exact_sum_add_value(&sizes, size);
            if (add)
                exact_sum_add_value(&sum, add[j]);
            double exact = exact_sum_value(&sum);
            size = exact_sum_value(&sizes);
            exact_sum_add_value(&sum, -got);
            double error = fabs(exact_sum_value(&sum));
            double bound = 0x1p-53 * fabs(exact) + (double)k * 0x1p-104 * size;
            REQUIRE(error <= bound * (1 + 0x1p-50), "kind %d k %d: %a, exact %a, error %a > %a",
                    kind, (int)k, got, exact, error, bound);
            REQUIRE(fabs(magnitude[i * n + j] - size) <= (double)(k + 1) * 0x1p-53 * size,
                    "kind %d k %d: magnitude %a, exact %a", kind, (int)k, magnitude[i * n + j],
                    size);
        }
}

START_TEST(errors_stay_within_the_contract) {
    static const int64_t ks[] = {1, 2, 3, 5, 6, 7, 12, 100, 383, 384, 385, 1600};
    for (int kind = RAW; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
            make(kind, 11, 13, ks[i]);
            check_bound(kind, 11, 13, ks[i], i % 2 ? bias : NULL);
        }
}
END_TEST

static void plant_specials(int64_t m, int64_t n, int64_t k) {
    static const uint32_t values[] = {0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 0x80000000,
                                      0x00000000, 0x00000001, 0x807fffff, 0x7f7fffff, 0xff7fffff};
    enum { COUNT = sizeof values / sizeof *values };
    for (int i = 0; i < 6; i++) {
        a[draw() % (uint32_t)(m * k)] = qg_float_of_bits(values[draw() % COUNT]);
        b[draw() % (uint32_t)(n * k)] = qg_float_of_bits(values[draw() % COUNT]);
    }
    bias[draw() % (uint32_t)n] = qg_float_of_bits(values[draw() % COUNT]);
}

static void expect_same(int64_t m, int64_t n, int64_t k, const char *what) {
    for (int64_t i = 0; i < m * n; i++)
        REQUIRE(!memcmp(&out[i], &other[i], 8) && !memcmp(&magnitude[i], &other_magnitude[i], 8),
                "%s %dx%dx%d at %d: %a (%a), want %a (%a)", what, (int)m, (int)n, (int)k, (int)i,
                other[i], other_magnitude[i], out[i], magnitude[i]);
}

// One by one: as many tiles as outputs.
static void one_by_one(int64_t m, int64_t n, int64_t k, const float *add) {
    for (int64_t i = 0; i < m * n; i++)
        qg_exact_product(1, 1, k, a + i / n * k, b + i % n * k, add ? &add[i % n] : NULL, 1,
                         &other[i], &other_magnitude[i]);
    expect_same(m, n, k, "one by one");
}

START_TEST(bits_depend_on_nothing_but_the_terms) {
    static const char *const isas[] = {"scalar", "avx2", "avx512"};
    for (int round = 0; round < 100; round++) {
        int64_t m = 1 + draw() % M, n = 1 + draw() % N, k = 1 + draw() % (round % 10 ? 60 : K);
        const float *add = round % 3 ? bias : NULL;
        make(round % KINDS, m, n, k);
        if (round % 2)
            plant_specials(m, n, k);
        ck_assert_int_eq(qg_unit_use_isa("scalar"), QG_OK);
        ck_assert_int_eq(qg_exact_product(m, n, k, a, b, add, 1, out, magnitude), QG_OK);
        if (k < 60)
            one_by_one(m, n, k, add);
        for (int isa = 0; isa < 3; isa++)
            for (int threads = 1; threads < 8; threads += 3) {
                if (qg_unit_use_isa(isas[isa]) != QG_OK)
                    continue;
                qg_exact_product(m, n, k, a, b, add, threads, other, NULL);
                memcpy(other_magnitude, magnitude, sizeof magnitude);
                expect_same(m, n, k, isas[isa]);
                qg_exact_product(m, n, k, a, b, add, threads, other, other_magnitude);
                expect_same(m, n, k, isas[isa]);
            }
    }
}
END_TEST

static double one(float x, float y, float z, float w, const float *add, double *size) {
    float left[] = {x, z}, right[] = {y, w};
    double value = 0;
    ck_assert_int_eq(qg_exact_product(1, 1, 2, left, right, add, 1, &value, size), QG_OK);
    return value;
}

START_TEST(special_values) {
    double size = 0;
    const float infinite = -INFINITY, zero = -0.0f;
    ck_assert(isnan(one(NAN, 1, 1, 1, NULL, &size)) && isnan(size));
    ck_assert(isnan(one(INFINITY, 0, 1, 1, NULL, &size)) && isnan(size));
    ck_assert(isnan(one(INFINITY, 1, INFINITY, -1, NULL, &size)) && size == INFINITY);
    ck_assert(one(INFINITY, -1, 1, 1, NULL, &size) == -INFINITY && size == INFINITY);
    ck_assert(isnan(one(INFINITY, 1, 1, 1, &infinite, &size)) && size == INFINITY);
    ck_assert(one(1, 1, 1, 1, &infinite, &size) == -INFINITY && size == INFINITY);
    ck_assert(one(-0.0f, 1, -0.0f, 1, &zero, &size) == 0 && size == 0);
    ck_assert(!signbit(one(-0.0f, 1, -0.0f, 1, &zero, NULL)));
    ck_assert(one(0x1p-149f, 0x1p-149f, 0x1p-149f, 0x1p-149f, NULL, &size) == 0x1p-297);
    ck_assert(one(0x1p127f, 0x1p127f, 0x1p-149f, 1, NULL, &size) == 0x1p254 && size == 0x1p254);
}
END_TEST

START_TEST(sizes_are_checked) {
    ck_assert_int_eq(qg_exact_product(0, 1, 1, a, b, NULL, 1, out, NULL), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_exact_product(1, 1, -1, a, b, NULL, 1, out, NULL), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(
        qg_exact_product(INT64_C(1) << 40, 1, INT64_C(1) << 40, a, b, NULL, 1, out, NULL),
        QG_ERROR_OVERFLOW);
}
END_TEST

int main(void) {
    const TTest *tests[] = {errors_stay_within_the_contract, bits_depend_on_nothing_but_the_terms,
                            special_values, sizes_are_checked};
    return RUN_SUITE("exact_product", tests);
}
