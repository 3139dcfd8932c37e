// Inputs on a grid: where every partial sum fits the matrix unit, a scaled product with
// power-of-two scales is the FP32 product bit for bit; one step beyond it is not (statement R10).
#include <block_data.h>
#include <qg_graph_pass.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>
#include <scaled_graph.h>

#include <math.h>
#include <string.h>

// Let every product of two decoded elements be a multiple of g, and S the sum of the magnitudes of
// an output's products. A fused operation (T-FDPA, ST-FDPA with block scales, the halves of PAIRS)
// takes e, the largest exponent of its products and its addend, drops from each term, toward zero,
// what lies below 2^(e-F), and converts the exact sum of the terms to p bits: 14 for E8M13, 24 for
// binary32, toward zero again. A product's exponent is the sum of its factors', which is no more
// than the product's own (a subnormal factor counts as the smallest normal: no more than the row's
// largest element, which the scales here make normal).
//
// Within: S < 2^P g with P = min(F + 1, p). Terms and sums are then multiples of g below 2^P g, so
// e <= log2(g) + P - 1 and 2^(e-F) <= g: no term loses a bit, and P bits hold every sum. Units that
// round each addition to p bits, to nearest or toward zero, have P = p. Where the elements are i s
// and j t with integers |i|, |j| <= I, g is s t and S <= K I^2 g: the largest I is
// floor(sqrt((2^P - 1) / K)), 15 for F = 13 and K = 64, 511 for F = 25.
//
// Beyond: a partial sum of 2^P g is exact, and so is 2^P g + 2 g. But of 2^P g + 3 g, the addend's
// exponent being log2(g) + P, F = 13 drops the last g of the term, and binary32 drops it from the
// sum, where the correctly rounded sum is 2^24 g + 4 g. Of units that round every addition, 2^P g
// loses g twice, one after the other, where the sum of all is 2^P g + 2 g.
//
// Conversion alone: the same 2^P g + 3 g within one fused operation, whose e is lower.
//
// Alignment alone: within one fused operation 2^e, -2^e and a term of 2^(e-F) give that term, and
// half of it is lost, although one bit would hold the sum.

enum { M = 6, N = 9, K_MOST = 128 };

static float x[M * K_MOST], w[N * K_MOST];

// A unit, and the recipes whose scales are powers of two.
typedef struct grid_case {
    const char *unit, *lhs, *rhs;
} grid_case;

static const grid_case hardware[] = {
    {"hopper_wgmma",      "e4m3//amax_pow2",        "e4m3//amax_pow2"       },
    {"hopper_wgmma",      "te_e5m2_pow2",           "e4m3/per_row/amax_pow2"},
    {"ada_mma",           "e4m3//amax_pow2",        "e4m3//amax_pow2"       },
    {"ada_mma",           "e4m3/per_row/amax_pow2", "e5m2//amax_pow2"       },
    {"blackwell_tcgen05", "e4m3//amax_pow2",        "e4m3//amax_pow2"       },
    {"blackwell_tcgen05", "e4m3//amax_pow2",        "e5m2//amax_pow2"       },
    {"blackwell_mx",      "mxfp8//rceil",           "mxfp8//rceil"          },
    {"blackwell_mx",      "torchao_mxfp8_rceil",    "mxfp8_e5m2//rceil"     },
    {"hopper_mma_fp8",    "e4m3//amax_pow2",        "e4m3//amax_pow2"       },
    {"hopper_mma_fp8",    "e5m2/per_row/amax_pow2", "e4m3//amax_pow2"       },
};

static const grid_case software[] = {
    {"fp32_sequential",     "e4m3//amax_pow2", "e4m3//amax_pow2"       },
    {"fp32_sequential+rtz", "mxfp8//rceil",    "e4m3//amax_pow2"       },
    {"fp32_fma",            "mxfp8//rceil",    "mxfp8//rceil"          },
    {"fp32_blocked:32",     "e4m3//amax_pow2", "e5m2/per_row/amax_pow2"},
    {"bf16_sequential",     "e4m3//amax_pow2", "mxfp8//rceil"          },
};

enum { HARDWARE = sizeof hardware / sizeof hardware[0] };
enum { SOFTWARE = sizeof software / sizeof software[0] };

// --------------------------------------------------------------------------------- what a unit has

typedef struct grid {
    int bits;     // P
    int fraction; // F, 0 for units without alignment
    int same[3];  // elements of K of one fused operation
    int later[2]; // elements of the one after, of software units two of the same block
    bool is_pairs, is_software;
} grid;

// The elements of K that the first fused operation adds first; there are 16.
static int first_of(const grid *g, int i) { return g->is_pairs ? i / 2 * 4 + i % 2 : i; }

static grid grid_of(const grid_case *c) {
    qg_unit unit;
    grid g = {
        .bits = strncmp(c->unit, "bf16", 4) == 0 ? 8 : 24, .later = {16, 17}
    };
    REQUIRE(qg_unit_parse(c->unit, &unit) == QG_OK, "%s", qg_detail());
    g.is_software = qg_unit_is_software(unit.id);
    if (g.is_software)
        return g;
    qg_recipe a = scaled_graph_recipe(c->lhs), b = scaled_graph_recipe(c->rhs);
    bool scaled = unit.id == QG_UNIT_BLACKWELL_MX;
    const qg_unit_row *row = qg_unit_row_find(unit.id, a.element, b.element, QG_FORMAT_FP32,
                                              scaled ? (int32_t)QG_FORMAT_E8M0 : QG_UNIT_NO_SCALE);
    REQUIRE(row != NULL, "no row of %s", c->unit);
    int converted = row->rho == QG_RHO_RZ_E8M13 ? 14 : 24;
    g.fraction = row->fraction;
    g.bits = g.fraction + 1 < converted ? g.fraction + 1 : converted;
    g.is_pairs = row->model == QG_MODEL_PAIRS;
    g.later[0] = g.is_pairs ? 2 : row->length;
    for (int i = 0; i < 3; i++)
        g.same[i] = first_of(&g, i);
    return g;
}

// ------------------------------------------------------------------------------------- the product

// x (m, k) times the transpose of w (n, k), as it is and with scaled products inserted; out: what
// the unit gives, plain: the executor's own FP32 product. Either may be NULL.
static void multiply(const grid_case *c, int64_t m, int64_t n, int64_t k, float *out,
                     float *plain) {
    static const int32_t swap[] = {1, 0};
    qg_graph *graph = scaled_graph_create(), *inserted;
    qg_node a = scaled_graph_tensor(graph, "x", qg_tensor(QG_DTYPE_FP32, 2, m, k), x);
    qg_node b = scaled_graph_tensor(graph, "w", qg_tensor(QG_DTYPE_FP32, 2, n, k), w);
    qg_node node = qg_graph_matmul(graph, a, qg_graph_transpose(graph, b, swap));
    qg_graph_output(graph, qg_graph_name(graph, node, "product"));
    qg_scaling scaling = {.lhs = c->lhs, .rhs = c->rhs};
    REQUIRE(qg_graph_insert_scaled_matmul(graph, &scaling, &inserted, NULL) == QG_OK, "%s",
            qg_detail());
    const qg_graph *graphs[] = {inserted, graph};
    float *results[] = {out, plain};
    for (int i = 0; i < 2; i++) {
        qg_graph_run_options options = scaled_graph_options("emulator", c->unit, 1);
        qg_graph_runner *runner = scaled_graph_run(graphs[i], &options);
        qg_node found = qg_graph_find(graphs[i], "product");
        ck_assert_int_eq(qg_graph_node_op(graphs[i], found),
                         i ? QG_GRAPH_MATMUL : QG_GRAPH_SCALED_MATMUL);
        if (results[i])
            memcpy(results[i], scaled_graph_values(runner, found), (size_t)(m * n) * sizeof(float));
        qg_graph_runner_free(runner);
    }
    qg_graph_free(inserted);
    qg_graph_free(graph);
}

// The sum of the products, exact in binary64, rounded once.
static float exact_sum(int64_t k, const float *a, const float *b) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += (double)a[i] * b[i];
    return (float)sum;
}

static void check_on_grid(const char *recipe, const float *values, int64_t rows, int64_t k) {
    static float q[N * K_MOST];
    scaled_graph_round_trip(recipe, rows, k, values, q);
    for (int64_t i = 0; i < rows * k; i++)
        REQUIRE(q[i] == values[i], "%s: %a is not on its grid", recipe, (double)values[i]);
}

// ------------------------------------------------------------------------------------------ within

// An integer of magnitude at most `most` that the element format holds with power-of-two scales.
static int draw(uint64_t *state, int bits, int most) {
    for (;;) {
        int i = (int)(block_data_random(state) % (uint64_t)(most + 1)), rest = i;
        while (rest && rest % 2 == 0)
            rest /= 2;
        if (rest < 1 << bits)
            return block_data_random(state) % 2 ? -i : i;
    }
}

static int largest(int bits, int most) {
    while (most >> bits && most % (1 << (ilogb((double)most) - bits + 1)))
        most--;
    return most;
}

static int significant_bits(const char *recipe) {
    qg_recipe parsed = scaled_graph_recipe(recipe);
    return qg_format_describe(parsed.element).mbits + 1;
}

// Random integers, and in row 0 the largest ones of one sign.
static void fill_integers(float *values, int64_t rows, int64_t k, int bits, int most, float step,
                          uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < rows * k; i++)
        values[i] = step * (float)(i < k ? largest(bits, most) : draw(&state, bits, most));
}

static void check_within(const grid_case *c, int64_t k) {
    static float out[M * N], plain[M * N];
    grid g = grid_of(c);
    int most = (int)sqrt((ldexp(1.0, g.bits) - 1.0) / (double)k);
    ck_assert_int_ge(most, 1);
    ck_assert(k * most * most < 1 << g.bits && k * (most + 1) * (most + 1) >= 1 << g.bits);
    for (uint64_t seed = 0; seed < 8; seed++) {
        fill_integers(x, M, k, significant_bits(c->lhs), most, 0x1p-5f, seed);
        fill_integers(w, N, k, significant_bits(c->rhs), most, 0x1p+3f, seed + 99);
        check_on_grid(c->lhs, x, M, k);
        check_on_grid(c->rhs, w, N, k);
        multiply(c, M, N, k, out, plain);
        for (int64_t i = 0; i < M * N; i++) {
            float exact = exact_sum(k, x + i / N * k, w + i % N * k);
            REQUIRE(plain[i] == exact, "FP32: %a, not %a", (double)plain[i], (double)exact);
            // Zeros may differ in sign: a sum of -0 alone.
            REQUIRE(memcmp(&out[i], &plain[i], sizeof *out) == 0 || (out[i] == 0 && plain[i] == 0),
                    "%s, %s x %s, k %d: %a, not %a", c->unit, c->lhs, c->rhs, (int)k,
                    (double)out[i], (double)plain[i]);
        }
    }
}

START_TEST(where_every_partial_sum_fits_the_product_is_the_fp32_product) {
    static const int64_t ks[] = {33, 64, 100};
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < HARDWARE; j++)
            check_within(&hardware[j], ks[i]);
        for (int j = 0; j < SOFTWARE; j++)
            check_within(&software[j], ks[i]);
    }
}
END_TEST

// ------------------------------------------------------------------------------------------ beyond

enum { ONE_K = 64 };

static void clear(void) {
    memset(x, 0, sizeof x);
    memset(w, 0, sizeof w);
}

// Element `at`: a product of factor * 2^exponent.
static void put(int at, float factor, int exponent) {
    x[at] = ldexpf(factor, exponent - exponent / 2);
    w[at] = ldexpf(1.0f, exponent / 2);
}

// What the unit gives of k elements of row 0 of x and w, whose exact sum is *exact.
static float result_of(const grid_case *c, int64_t k, float *exact) {
    float out;
    check_on_grid(c->lhs, x, 1, k);
    check_on_grid(c->rhs, w, 1, k);
    multiply(c, 1, 1, k, &out, NULL);
    *exact = exact_sum(k, x, w);
    return out;
}

static float result(const grid_case *c, float *exact) { return result_of(c, ONE_K, exact); }

// 2^P g = 2^20 in 16 products, then `count` products of factor * g.
static float result_beside_the_limit(const grid_case *c, const grid *g, float sign, int count,
                                     float factor, float *exact) {
    clear();
    for (int i = 0; i < 16; i++)
        put(first_of(g, i), sign, 16);
    for (int i = 0; i < count; i++)
        put(g->later[i], sign * factor, 20 - g->bits);
    return result(c, exact);
}

static void check_beyond(const grid_case *c, float sign) {
    grid g = grid_of(c);
    float step = ldexpf(sign, 20 - g.bits), limit = ldexpf(sign, 20), exact;
    float out = result_beside_the_limit(c, &g, sign, 0, 0, &exact);
    REQUIRE(out == limit && exact == limit, "%s at the limit: %a", c->unit, (double)out);
    out = result_beside_the_limit(c, &g, sign, 1, 2, &exact);
    REQUIRE(out == limit + 2 * step && exact == out, "%s 2 steps on: %a", c->unit, (double)out);
    if (g.is_software)
        out = result_beside_the_limit(c, &g, sign, 2, 1, &exact);
    else
        out = result_beside_the_limit(c, &g, sign, 1, 3, &exact);
    float kept = g.is_software ? limit : limit + 2 * step;
    REQUIRE(out == kept && out != exact, "%s beyond: %a, exact %a", c->unit, (double)out,
            (double)exact);
}

START_TEST(one_step_beyond_it_is_not) {
    for (int i = 0; i < HARDWARE; i++) {
        check_beyond(&hardware[i], 1.0f);
        check_beyond(&hardware[i], -1.0f);
    }
    for (int i = 0; i < SOFTWARE; i++) {
        check_beyond(&software[i], 1.0f);
        check_beyond(&software[i], -1.0f);
    }
}
END_TEST

// 2^P g = 2^19 in 8 products, and 3 g, added at once, in the only fused operation.
START_TEST(a_sum_is_converted_toward_zero) {
    for (int i = 0; i < HARDWARE; i++) {
        grid g = grid_of(&hardware[i]);
        float exact, step = ldexpf(1.0f, 19 - g.bits);
        clear();
        for (int j = 0; j < 8; j++)
            put(first_of(&g, j), 1.0f, 16);
        put(first_of(&g, 8), 3.0f, 19 - g.bits);
        float out = result_of(&hardware[i], g.is_pairs ? 32 : 16, &exact);
        REQUIRE(out == 0x1p+19f + 2 * step && out != exact, "%s: %a, exact %a", hardware[i].unit,
                (double)out, (double)exact);
    }
}
END_TEST

START_TEST(a_term_is_kept_down_to_f_bits_below_the_largest) {
    for (int i = 0; i < HARDWARE; i++)
        for (int below = 0; below < 2; below++) {
            grid g = grid_of(&hardware[i]);
            float exact;
            clear();
            put(g.same[0], 1.0f, 16);
            put(g.same[1], -1.0f, 16);
            put(g.same[2], 1.0f, 16 - g.fraction - below);
            float out = result(&hardware[i], &exact);
            ck_assert(exact == ldexpf(1.0f, 16 - g.fraction - below));
            REQUIRE(out == (below ? 0.0f : exact), "%s: %a, exact %a", hardware[i].unit,
                    (double)out, (double)exact);
        }
}
END_TEST

// 2^14 + 1 - 2 = 16383 fits 14 bits, but the partial sum before the last term does not.
START_TEST(a_result_that_fits_does_not_help) {
    static const grid_case c = {"hopper_wgmma", "e4m3//amax_pow2", "e4m3//amax_pow2"};
    float exact;
    clear();
    for (int i = 0; i < 16; i++)
        x[i] = w[i] = 32.0f;
    x[16] = w[16] = 1.0f;
    x[32] = -2.0f, w[32] = 1.0f;
    float out = result(&c, &exact);
    ck_assert(exact == 16383.0f && out == 16382.0f);
    x[16] = 0.0f, x[33] = w[33] = 1.0f; // the 1 after the 2^14, in one fused operation with the -2
    out = result(&c, &exact);
    ck_assert(exact == 16383.0f && out == 16382.0f);
    clear();
    for (int i = 0; i < 15; i++)
        x[i] = w[i] = 32.0f;
    x[15] = 30.0f, w[15] = 32.0f; // the partial sum is 2^14 - 64
    x[16] = w[16] = 1.0f;
    x[32] = 60.0f, w[32] = 1.0f;
    x[33] = 2.0f, w[33] = 1.0f;
    out = result(&c, &exact);
    ck_assert(exact == 16383.0f && out == exact);
}
END_TEST

// With +promote:64 each chain ends after 64 elements and its sums are added in binary32.
START_TEST(promotion_needs_only_each_interval_to_fit) {
    static const grid_case chained = {"hopper_wgmma", "e4m3//amax_pow2", "e4m3//amax_pow2"};
    static const grid_case promoted = {"hopper_wgmma+promote:64", "e4m3//amax_pow2",
                                       "e4m3//amax_pow2"};
    float out;
    for (int i = 0; i < 128; i++)
        x[i] = w[i] = i ? 16.0f : 1.0f;
    float exact = exact_sum(128, x, w);
    ck_assert(exact == 127 * 256 + 1);
    multiply(&promoted, 1, 1, 128, &out, NULL);
    ck_assert(out == exact);
    multiply(&chained, 1, 1, 128, &out, NULL);
    ck_assert(out != exact);
}
END_TEST

START_TEST(vector_variants_of_the_units_do_the_same) {
    ck_assert_msg(qg_unit_use_isa(NULL) == QG_OK, "%s", qg_detail());
    for (int i = 0; i < HARDWARE; i++) {
        check_within(&hardware[i], 100);
        check_beyond(&hardware[i], 1.0f);
    }
    for (int i = 0; i < SOFTWARE; i++) {
        check_within(&software[i], 100);
        check_beyond(&software[i], 1.0f);
    }
    ck_assert_int_eq(qg_unit_use_isa("scalar"), QG_OK);
}
END_TEST

int main(void) {
    const TTest *tests[] = {where_every_partial_sum_fits_the_product_is_the_fp32_product,
                            one_step_beyond_it_is_not,
                            a_sum_is_converted_toward_zero,
                            a_term_is_kept_down_to_f_bits_below_the_largest,
                            a_result_that_fits_does_not_help,
                            promotion_needs_only_each_interval_to_fit,
                            vector_variants_of_the_units_do_the_same};
    return RUN_SUITE("grid_exact", tests);
}
