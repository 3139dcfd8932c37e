// What holds for every recipe: finite data gives no NaN scale, zero blocks decode to zeros with
// their signs, the order of a block's elements does not matter, a power of two only moves the
// exponent, decoded values are quantized to themselves (spec/formats-and-scales.md 3.6). Bytes and
// counts do not depend on threads, every byte is written, counts are what their definitions say.
#include <block_data.h>
#include <qg_bits.h>
#include <qg_emulator.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <require.h>
#include <run_suite.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 65, K = 300, N = M * K };

static float x[N], q[N], again[N];
static uint8_t codes[4 * N], scales[8 * N], codes2[4 * N], scales2[8 * N];

static const float history[] = {3.0f};

static qg_quantize_options options_of(int threads) {
    return (qg_quantize_options){.input_type = QG_FORMAT_FP32,
                                 .seed = 11,
                                 .stream = QG_STREAM_ROUNDING,
                                 .threads = threads,
                                 .amax_history = history,
                                 .history_length = 1};
}

static qg_recipe find(const char *name) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

static float run(const qg_recipe *recipe, int64_t m, int64_t k, int threads, const float *in,
                 uint8_t *c, uint8_t *s, float *out, qg_counts *counts) {
    qg_quantize_options options = options_of(threads);
    float tensor = 0;
    ck_assert_msg(qg_emulator_quantize(recipe, &options, m, k, in, c, s, &tensor, counts) == QG_OK,
                  "%s", qg_detail());
    ck_assert_int_eq(qg_emulator_dequantize(recipe, m, k, c, s, tensor, threads, out), QG_OK);
    return tensor;
}

static void check_threads(const char *name, const qg_recipe *recipe) {
    qg_shape shape;
    qg_counts one, many;
    ck_assert_int_eq(qg_shape_of(recipe, M, K, &shape), QG_OK);
    float tensor = run(recipe, M, K, 1, x, codes, scales, q, &one);
    for (int threads = 2; threads <= 5; threads++) {
        memset(codes2, threads % 2 ? 0 : 0xFF, sizeof codes2); // every byte must be written
        memset(scales2, threads % 2 ? 0xFF : 0, sizeof scales2);
        float tensor2 = run(recipe, M, K, threads, x, codes2, scales2, again, &many);
        REQUIRE(memcmp(codes, codes2, (size_t)shape.codes_size) == 0, "%s: codes", name);
        REQUIRE(memcmp(scales, scales2, (size_t)shape.scales_size) == 0, "%s: scales", name);
        REQUIRE(memcmp(q, again, sizeof q) == 0, "%s: values", name);
        REQUIRE(memcmp(&one, &many, sizeof one) == 0, "%s: counts", name);
        REQUIRE(memcmp(&tensor, &tensor2, sizeof tensor) == 0, "%s: tensor", name);
    }
    ck_assert_int_eq(one.n, N);
    ck_assert_int_eq(one.blocks, shape.blocks.block_rows * shape.blocks.block_columns);
}

START_TEST(bytes_and_counts_do_not_depend_on_threads) {
    block_data_fill(3, BLOCK_DATA_MIXED, x, N);
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        qg_recipe recipe = find(qg_recipe_listed(i));
        check_threads(qg_recipe_listed(i), &recipe);
        recipe.conversion.rounding = (qg_rounding){QG_ROUND_STOCHASTIC_B, 13};
        check_threads(qg_recipe_listed(i), &recipe);
    }
    qg_recipe recipe = find("e4m3");
    for (int kind = QG_LAYOUT_PER_TENSOR; kind <= QG_LAYOUT_BLOCK; kind++) {
        recipe.layout = (qg_layout){kind, 7, 31};
        check_threads("layouts of e4m3", &recipe);
        recipe.rule = kind % 2 ? QG_RULE_AMAX : QG_RULE_BEST;
    }
}
END_TEST

START_TEST(finite_data_gives_finite_scales) {
    static const int kinds[] = {BLOCK_DATA_ORDINARY, BLOCK_DATA_WIDE, BLOCK_DATA_TIES,
                                BLOCK_DATA_TINY,     BLOCK_DATA_HUGE, BLOCK_DATA_ZEROS};
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
            qg_recipe recipe = find(qg_recipe_listed(i));
            qg_counts counts;
            // Transformer Engine's fl(sb * amax) overflows where amax exceeds FLT_MAX / 448.
            if (qg_rule_has_tensor_scale(recipe.rule) && kinds[kind] == BLOCK_DATA_HUGE)
                continue;
            block_data_fill(i, kinds[kind], x, 2 * K);
            run(&recipe, 2, K, 1, x, codes, scales, q, &counts);
            REQUIRE(counts.nan_scales == 0 && counts.nan == 0 && counts.inf == 0, "%s",
                    qg_recipe_listed(i));
            for (int64_t j = 0; j < 2 * K; j++)
                REQUIRE(q[j] == q[j], "%s: NaN of %a", qg_recipe_listed(i), (double)x[j]);
        }
}
END_TEST

START_TEST(zeros_keep_their_signs) {
    block_data_fill(5, BLOCK_DATA_ALL_ZERO, x, K);
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        qg_recipe recipe = find(qg_recipe_listed(i));
        qg_counts counts;
        run(&recipe, 1, K, 1, x, codes, scales, q, &counts);
        int has_sign = strstr(qg_recipe_listed(i), "int") == NULL;
        for (int64_t j = 0; j < K; j++) {
            REQUIRE(q[j] == 0, "%s", qg_recipe_listed(i));
            if (has_sign && recipe.structure != QG_STRUCTURE_RESIDUAL)
                REQUIRE(signbit(q[j]) == signbit(x[j]), "%s: sign of zero", qg_recipe_listed(i));
        }
        REQUIRE(counts.zero_blocks == counts.blocks, "%s", qg_recipe_listed(i));
        REQUIRE(counts.exact == K && counts.underflowed == 0, "%s", qg_recipe_listed(i));
    }
}
END_TEST

// Reversing a group reverses its codes and keeps its scale (pairs stay pairs in groups of 16;
// four_over_six and best sum errors in element order and may differ).
START_TEST(order_within_a_block_does_not_matter) {
    static float reversed[128];
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            qg_recipe recipe = find(qg_recipe_listed(i));
            if (recipe.rule == QG_RULE_FOUR_OVER_SIX)
                continue;
            int64_t k = recipe.layout.kind == QG_LAYOUT_GROUP ? recipe.layout.columns : 128;
            block_data_fill(seed, BLOCK_DATA_SPECIALS, x, k);
            for (int64_t j = 0; j < k; j++)
                reversed[j] = x[k - 1 - j];
            run(&recipe, 1, k, 1, x, codes, scales, q, NULL);
            run(&recipe, 1, k, 1, reversed, codes2, scales2, again, NULL);
            int pairs = recipe.structure == QG_STRUCTURE_PAIR_SHIFT;
            REQUIRE(memcmp(scales, scales2, pairs ? 1 : 4) == 0 || recipe.rule == QG_RULE_BEST,
                    "%s: scale", qg_recipe_listed(i));
            for (int64_t j = 0; j < k; j++)
                REQUIRE(codes[j] == codes2[k - 1 - j], "%s: code", qg_recipe_listed(i));
        }
}
END_TEST

static const char *const pow2_recipes[] = {"mxfp8",
                                           "mxfp8_e5m2",
                                           "mxfp6_e2m3",
                                           "mxfp6_e3m2",
                                           "mxfp4",
                                           "torchao_mxfp8_ceil",
                                           "torchao_mxfp8_even",
                                           "torchao_mxfp8_rceil",
                                           "te_mxfp8",
                                           "neuron_mxfp8",
                                           "mx9",
                                           "mx6",
                                           "mx4"};
enum { POW2_RECIPES = sizeof pow2_recipes / sizeof pow2_recipes[0] };

START_TEST(a_power_of_two_moves_the_exponent) {
    for (int i = 0; i < POW2_RECIPES; i++)
        for (int shift = -60; shift <= 60; shift += 7) {
            qg_recipe recipe = find(pow2_recipes[i]);
            qg_shape shape;
            int64_t k = recipe.layout.columns * 4;
            ck_assert_int_eq(qg_shape_of(&recipe, 1, k, &shape), QG_OK);
            block_data_fill((uint64_t)i, BLOCK_DATA_ORDINARY, x, k);
            run(&recipe, 1, k, 1, x, codes, scales, q, NULL);
            for (int64_t j = 0; j < k; j++)
                x[j] *= qg_float_pow2(shift);
            run(&recipe, 1, k, 1, x, codes2, scales2, again, NULL);
            REQUIRE(memcmp(codes, codes2, (size_t)k) == 0, "%s", pow2_recipes[i]);
            for (int64_t s = 0; s < shape.scales_size; s += shape.scale_bytes)
                REQUIRE(scales2[s] == scales[s] + shift, "%s", pow2_recipes[i]);
        }
}
END_TEST

// Decoded values are quantized to themselves. Not under floor_plus1, where an amax that rounds up
// to a power of two raises the scale, nor with pair shifts.
START_TEST(decoded_values_are_fixed_points) {
    for (int i = 0; i < 9; i++) {
        qg_recipe recipe = find(pow2_recipes[i]);
        int64_t moved = 0;
        for (uint64_t seed = 0; seed < 40; seed++) {
            block_data_fill(seed, seed % 2 ? BLOCK_DATA_ORDINARY : BLOCK_DATA_TIES, x, N / 10);
            run(&recipe, 1, N / 10, 1, x, codes, scales, q, NULL);
            qg_counts counts;
            run(&recipe, 1, N / 10, 1, q, codes2, scales2, again, &counts);
            REQUIRE(memcmp(q, again, sizeof q / 10) == 0, "%s: value moved", pow2_recipes[i]);
            REQUIRE(counts.exact == N / 10, "%s: not exact", pow2_recipes[i]);
            for (int64_t s = 0; s < N / 320; s++) {
                REQUIRE(scales2[s] == scales[s] || scales2[s] == scales[s] - 1, "%s: scale byte",
                        pow2_recipes[i]);
                moved += scales2[s] != scales[s];
            }
        }
        if (recipe.rule == QG_RULE_FLOOR || recipe.rule == QG_RULE_EVEN)
            REQUIRE(moved == 0, "%s: scale byte moved", pow2_recipes[i]);
    }
}
END_TEST

START_TEST(ceil_and_rceil_do_not_saturate) {
    static const char *const names[] = {"torchao_mxfp8_ceil", "torchao_mxfp8_rceil", "rlx_mxfp8"};
    for (int i = 0; i < 3; i++)
        for (int kind = 0; kind <= BLOCK_DATA_ZEROS; kind++) {
            qg_recipe recipe = find(names[i]);
            qg_counts counts;
            block_data_fill(9, kind, x, N);
            run(&recipe, M, K, 2, x, codes, scales, q, &counts);
            ck_assert_int_eq(counts.saturated, 0);
            ck_assert_int_eq(counts.clipped, 0);
        }
}
END_TEST

// With X = 1 the encoder sees x: counts by their definitions.
START_TEST(counts_are_what_they_say) {
    static const struct {
        const char *element;
        double largest, clips, smallest_normal, half_smallest;
    } rows[] = {
        {"e4m3",   448,        464,        0x1p-6,   0x1p-10  },
        {"e5m2",   57344,      61440,      0x1p-14,  0x1p-17  },
        {"e2m1",   6,          7,          1,        0.25     },
        {"e2m3",   7.5,        7.75,       1,        0x1p-4   },
        {"int8",   127,        127.5,      0,        0.5      },
        {"mxint8", 127 / 64.0, 127.5 / 64, 0,        1 / 128.0},
        {"int4",   7,          7.5,        0,        0.5      },
        {"bf16",   0x1.fep127, 0x1.ffp127, 0x1p-126, 0x1p-134 }
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++) {
            qg_recipe recipe = find(rows[i].element);
            recipe.layout.kind = QG_LAYOUT_PER_TENSOR; // mxint8 is a recipe first
            ck_assert_int_eq(qg_recipe_set_rule(&recipe, QG_RULE_FIXED, 1), QG_OK);
            qg_counts got, want = {.n = N, .blocks = 1};
            block_data_fill(2, kind, x, N);
            for (int j = 0; j < 8; j++) { // the thresholds themselves
                double at = j < 4 ? rows[i].largest : rows[i].clips;
                x[j] = j % 4 == 0   ? (float)at
                       : j % 4 == 1 ? nextafterf((float)at, 0)
                       : j % 4 == 2 ? nextafterf((float)at, INFINITY)
                                    : -(float)at;
            }
            run(&recipe, M, K, 2, x, codes, scales, q, &got);
            for (int64_t j = 0; j < N; j++) {
                double a = fabs((double)x[j]), b = fabs((double)q[j]);
                want.nan += isnan(x[j]) != 0;
                want.inf += isinf(x[j]) != 0;
                want.saturated += a > rows[i].largest;
                want.clipped += a >= rows[i].clips;
                want.underflowed += a > 0 && a <= rows[i].half_smallest;
                want.subnormal += b > 0 && b < rows[i].smallest_normal;
                want.exact += x[j] == q[j];
            }
            REQUIRE(memcmp(&got, &want, sizeof got) == 0,
                    "%s kind %d: saturated %lld %lld clipped %lld %lld underflowed %lld %lld "
                    "subnormal %lld %lld exact %lld %lld nan %lld %lld zero %lld %lld",
                    rows[i].element, kind, (long long)got.saturated, (long long)want.saturated,
                    (long long)got.clipped, (long long)want.clipped, (long long)got.underflowed,
                    (long long)want.underflowed, (long long)got.subnormal,
                    (long long)want.subnormal, (long long)got.exact, (long long)want.exact,
                    (long long)got.nan, (long long)want.nan, (long long)got.zero_blocks,
                    (long long)want.zero_blocks);
        }
}
END_TEST

START_TEST(counts_of_scaled_blocks) {
    qg_recipe recipe = find("mxfp8");
    qg_counts counts;
    memset(x, 0, sizeof x);
    x[0] = 500, x[1] = 0x1p-3f, x[2] = 0x1p-20f; // X = 1
    x[33] = NAN;
    x[64] = -INFINITY;
    run(&recipe, 1, 128, 1, x, codes, scales, q, &counts);
    ck_assert_int_eq(counts.saturated, 1);
    ck_assert_int_eq(counts.clipped, 1);
    ck_assert_int_eq(counts.underflowed, 1);
    ck_assert_int_eq(counts.blocks, 4);
    ck_assert_int_eq(counts.zero_blocks, 1);
    ck_assert_int_eq(counts.nan_scales, 2);
    ck_assert_int_eq(counts.nan, 1);
    ck_assert_int_eq(counts.inf, 1);
    ck_assert_int_eq(counts.exact, 1 + 29 + 32);
    recipe = find("rlx_e4m3"); // NaN becomes 0, which is no underflow
    x[64] = 1;
    run(&recipe, 1, 128, 1, x, codes, scales, q, &counts);
    ck_assert_int_eq(counts.underflowed, 1);
    recipe = find("mx4"); // integers in pairs: no subnormals
    run(&recipe, 1, 16, 1, x, codes, scales, q, &counts);
    ck_assert_int_eq(counts.subnormal, 0);
}
END_TEST

int main(void) {
    const TTest *tests[] = {bytes_and_counts_do_not_depend_on_threads,
                            finite_data_gives_finite_scales,
                            zeros_keep_their_signs,
                            order_within_a_block_does_not_matter,
                            a_power_of_two_moves_the_exponent,
                            decoded_values_are_fixed_points,
                            ceil_and_rceil_do_not_saturate,
                            counts_are_what_they_say,
                            counts_of_scaled_blocks};
    return RUN_SUITE("invariants", tests);
}
