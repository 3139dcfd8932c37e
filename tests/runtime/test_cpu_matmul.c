// The CPU's products against exact products of the dequantized operands, within the derived bound:
// every pair of recipes, ragged shapes, output types, bias, special values, extreme scales, groups,
// threads; exact where every partial sum is exact. Each on all the paths that this build has.
// ctest-timeout: 600
#include <block_data.h>
#include <cpu_matmul_internal.h>
#include <require.h>
#include <run_suite.h>

#include <qg_cpu.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- operands

typedef struct operand {
    qg_recipe recipe;
    int64_t rows, k;
    float *q; // dequantized
    uint8_t *codes, *scales;
    qg_shape shape;
    qg_matmul_operand in;
} operand;

static void *room(int64_t bytes) {
    void *out = calloc((size_t)bytes + 1, 1);
    ck_assert_ptr_nonnull(out);
    return out;
}

static void release(operand *o) {
    free(o->q);
    free(o->codes);
    free(o->scales);
}

static qg_recipe recipe_of(const char *name) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

static void dequantize(operand *o) {
    ck_assert_int_eq(qg_emulator_dequantize(&o->recipe, o->rows, o->k, o->codes, o->scales,
                                            o->in.tensor_scale, 1, o->q),
                     QG_OK);
}

static operand make(qg_recipe recipe, int64_t rows, int64_t k, int kind, uint64_t seed) {
    static const float history[] = {3.0f, 2.0f};
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .threads = 1, .amax_history = history, .history_length = 2};
    operand o = {.recipe = recipe, .rows = rows, .k = k};
    ck_assert_msg(qg_shape_of(&recipe, rows, k, &o.shape) == QG_OK, "%s", qg_detail());
    float *x = room(rows * k * 4), tensor = 1.0f;
    block_data_fill(seed, kind, x, rows * k);
    o.q = room(rows * k * 4);
    o.codes = room(o.shape.codes_size);
    o.scales = room(o.shape.scales_size);
    ck_assert_msg(qg_emulator_quantize(&recipe, &options, rows, k, x, o.codes, o.scales, &tensor,
                                       NULL) == QG_OK,
                  "%s", qg_detail());
    free(x);
    o.in = (qg_matmul_operand){NULL, o.codes, o.scales, tensor};
    dequantize(&o);
    return o;
}

static const qg_matmul_operand *in_of(operand *o) {
    o->in.recipe = &o->recipe;
    return &o->in;
}

// ------------------------------------------------------------------------------------- comparison

static double largest_share; // of the bound

static double value_at(const void *out, int64_t i, qg_format type) {
    qg_format_info info = qg_format_describe(type);
    if (type == QG_FORMAT_FP32)
        return (double)((const float *)out)[i];
    return qg_decode(&info, ((const uint16_t *)out)[i]);
}

static void check_nan(const void *out, int64_t i, qg_format type) {
    if (type == QG_FORMAT_FP32)
        REQUIRE(((const uint32_t *)out)[i] == 0x7fffffffu, "no canonical NaN");
    else
        REQUIRE(((const uint16_t *)out)[i] == 0x7fffu, "no canonical NaN");
}

typedef struct sum {
    double exact, size, sum; // of the products and the bias, in binary64
    bool nan, plus, minus;
} sum;

// Products are exact in binary64; their sum is off by k 2^-53 of its size, far below the bound.
static sum sum_of(const operand *a, const operand *b, int64_t i, int64_t j, const float *bias) {
    sum s = {0};
    for (int64_t l = 0; l < a->k + (bias != NULL); l++) {
        double term =
            l < a->k ? (double)a->q[i * a->k + l] * (double)b->q[j * b->k + l] : (double)bias[j];
        if (isnan(term))
            s.nan = true;
        else if (isinf(term))
            *(term > 0 ? &s.plus : &s.minus) = true;
        else
            s.exact += term, s.size += fabs(term);
    }
    return s;
}

static void check_element(const operand *a, const operand *b, const qg_matmul_options *options,
                          int64_t i, int64_t j, const void *out, const char *where) {
    qg_format type = options->out_type;
    qg_format_info info = qg_format_describe(type);
    double most = type == QG_FORMAT_FP32 ? 0x1.fffffep127 : qg_format_max(&info);
    sum s = sum_of(a, b, i, j, options->bias);
    double value = value_at(out, i * b->rows + j, type);
    if (isnan(value))
        check_nan(out, i * b->rows + j, type);
    if (s.nan || (s.plus && s.minus)) {
        REQUIRE(isnan(value), "%s: %a at %d, %d, not NaN", where, value, (int)i, (int)j);
        return;
    }
    double bound = qg_cpu_matmul_bound(&a->recipe, &b->recipe, a->k, type);
    double allowed = bound * s.size + qg_cpu_matmul_underflow(a->k, type);
    if ((1 + bound) * s.size + allowed > most)
        return; // nothing is promised: finite terms may add up to an infinity
    if (s.plus || s.minus) {
        REQUIRE(isinf(value) && (value > 0) == s.plus, "%s: %a for infinity", where, value);
        return;
    }
    double error = fabs(value - s.exact);
    REQUIRE(error <= allowed, "%s: %a at %d, %d, exact %a: error %g of %g", where, value, (int)i,
            (int)j, s.exact, error, allowed);
    if (error / allowed > largest_share && type == QG_FORMAT_FP32)
        largest_share = error / allowed;
}

static const qg_format out_types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
static const int paths[] = {0, MATMUL_SCALAR_KERNELS, MATMUL_WITHOUT_BF16,
                            MATMUL_WITHOUT_BF16 | MATMUL_WITHOUT_OPENBLAS | MATMUL_SCALAR_KERNELS};
enum { PATHS = sizeof paths / sizeof paths[0] };

static const char *impl;

static void check_path(operand *a, operand *b, qg_matmul_options options, const char *what) {
    int64_t size = a->rows * b->rows * 4;
    uint8_t *out = room(size + 64);
    memset(out, 0xa5, (size_t)size + 64);
    qg_status status = qg_cpu_scaled_matmul(NULL, &options, a->rows, b->rows, a->k, in_of(a),
                                            in_of(b), out, &impl);
    REQUIRE(status == QG_OK, "%s: %s", what, qg_detail());
    char where[256];
    snprintf(where, sizeof where, "%s, %d x %d x %d, %s", what, (int)a->rows, (int)b->rows,
             (int)a->k, impl);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < b->rows; j++)
            check_element(a, b, &options, i, j, out, where);
    int64_t used = a->rows * b->rows * (options.out_type == QG_FORMAT_FP32 ? 4 : 2);
    for (int64_t i = used; i < size + 64; i++)
        REQUIRE(out[i] == 0xa5, "%s: wrote past its output", where);
    free(out);
}

static void check(operand *a, operand *b, const float *bias, const char *what) {
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < PATHS; i++) {
            qg_matmul_options options = {out_types[t], bias, 2, false};
            qg_matmul_test_paths = paths[i];
            check_path(a, b, options, what);
        }
    qg_matmul_test_paths = 0;
}

// ------------------------------------------------------------------------------------------- pairs

static qg_layout layout(int kind, int rows, int columns) {
    qg_layout out = {kind, rows, columns};
    return out;
}

START_TEST(every_pair_of_recipes_is_within_the_bound) {
    enum { M = 5, N = 7, K = 150 };
    float bias[N] = {1, -2, 0.5f, 0, 3, -0.25f, 1000};
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        operand a = make(recipe_of(qg_recipe_listed(i)), M, K, BLOCK_DATA_ORDINARY, i);
        for (size_t j = 0; qg_recipe_listed(j); j++) {
            char what[64];
            snprintf(what, sizeof what, "%s %s", qg_recipe_listed(i), qg_recipe_listed(j));
            operand b = make(recipe_of(qg_recipe_listed(j)), N, K, BLOCK_DATA_ORDINARY, 99 + j);
            qg_matmul_options options = {out_types[(i + j) % 3], j & 1 ? bias : NULL, 1, false};
            check_path(&a, &b, options, what);
            release(&b);
        }
        release(&a);
    }
}
END_TEST

// Every element format of at most 8 bits, and the wide ones, in every layout.
START_TEST(every_format_and_layout_is_within_the_bound) {
    const qg_layout layouts[] = {layout(QG_LAYOUT_PER_TENSOR, 0, 0),
                                 layout(QG_LAYOUT_PER_ROW, 0, 0), layout(QG_LAYOUT_GROUP, 0, 128),
                                 layout(QG_LAYOUT_GROUP, 0, 20), layout(QG_LAYOUT_BLOCK, 3, 64)};
    static const int rules[] = {QG_RULE_AMAX, QG_RULE_FLOOR, QG_RULE_AMAX_UE4M3};
    for (size_t f = 0; qg_format_listed(f); f++) {
        qg_recipe recipe;
        if (qg_recipe_find(qg_format_listed(f), &recipe) != QG_OK)
            continue;
        for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
            for (int r = 0; r < 3; r++) {
                if (qg_recipe_set_layout(&recipe, layouts[i]) != QG_OK ||
                    qg_recipe_set_rule(&recipe, rules[r], 0.0f) != QG_OK)
                    continue;
                operand a = make(recipe, 9, 260, BLOCK_DATA_ORDINARY, f);
                operand b = make(recipe, 6, 260, BLOCK_DATA_ORDINARY, 7 + f);
                check(&a, &b, NULL, qg_format_listed(f));
                release(&a);
                release(&b);
            }
    }
}
END_TEST

static const char *const families[] = {"te_e4m3",          "te_e5m2",     "mxfp8",  "mxfp4",
                                       "mxint8",           "nvfp4",       "nvint4", "nvfp4_torchao",
                                       "deepseek_act128",  "rlx_mxfp4x2", "mx9",    "rlx_nvfp4",
                                       "deepseek_w128x128"};
enum { FAMILIES = sizeof families / sizeof families[0] };

START_TEST(shapes_are_within_the_bound) {
    static const int64_t shapes[][3] = {
        {1,   1,   1   },
        {1,   64,  31  },
        {16,  64,  32  },
        {17,  65,  33  },
        {3,   300, 129 },
        {129, 2,   70  },
        {128, 256, 64  },
        {130, 257, 96  },
        {2,   3,   1024},
        {5,   66,  2100},
        {300, 5,   640 }
    };
    float *bias = room(300 * 4);
    block_data_fill(5, BLOCK_DATA_ORDINARY, bias, 300);
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (int f = 0; f < FAMILIES; f++) {
            const int64_t *mnk = shapes[s];
            operand a = make(recipe_of(families[f]), mnk[0], mnk[2], BLOCK_DATA_ORDINARY, s);
            operand b = make(recipe_of(families[f]), mnk[1], mnk[2], BLOCK_DATA_ORDINARY, s + 50);
            qg_matmul_options options = {out_types[(s + (size_t)f) % 3], s & 1 ? bias : NULL, 2,
                                         false};
            for (int i = 0; i < PATHS; i++) {
                qg_matmul_test_paths = paths[i];
                check_path(&a, &b, options, families[f]);
            }
            qg_matmul_test_paths = 0;
            release(&a);
            release(&b);
        }
    free(bias);
}
END_TEST

START_TEST(every_kind_of_data_is_within_the_bound) {
    for (int kind = 0; kind < BLOCK_DATA_KINDS; kind++)
        for (int f = 0; f < FAMILIES; f++)
            for (int g = 0; g < FAMILIES; g += 3) {
                char what[96];
                snprintf(what, sizeof what, "%s %s data %d", families[f], families[g], kind);
                operand a = make(recipe_of(families[f]), 4, 270, kind, (uint64_t)kind);
                operand b = make(recipe_of(families[g]), 5, 270, BLOCK_DATA_ORDINARY, 3);
                check(&a, &b, NULL, what);
                release(&b);
                b = make(recipe_of(families[g]), 5, 270, kind, 77);
                check(&a, &b, NULL, what);
                release(&a);
                release(&b);
            }
}
END_TEST

// Codes and scales of any bits: scales 0 and 254 of E8M0, NaN, products that overflow or vanish.
START_TEST(any_bits_are_within_the_bound) {
    for (uint64_t seed = 1; seed < 40; seed++)
        for (int f = 0; f < FAMILIES; f++) {
            uint64_t state = seed * 1000 + (uint64_t)f;
            operand o[2];
            for (int side = 0; side < 2; side++) {
                o[side] = make(recipe_of(families[f]), 3, 100, BLOCK_DATA_ORDINARY, seed);
                bool is_bytes = o[side].shape.scale_bytes == 1;
                for (int64_t i = 0; i < o[side].shape.codes_size; i++)
                    if (seed % 3 == 0 && qg_format_describe(o[side].recipe.element).bits == 8)
                        o[side].codes[i] = (uint8_t)block_data_random(&state);
                for (int64_t i = 0; i < o[side].shape.scales_size && is_bytes; i++) {
                    static const uint8_t bytes[] = {0, 1, 2, 120, 127, 130, 253, 254};
                    uint64_t word = block_data_random(&state);
                    o[side].scales[i] = seed % 4 == 0   ? (uint8_t)word
                                        : seed % 4 == 1 ? (uint8_t)(side ? 254 : word % 3)
                                                        : bytes[word % 8];
                }
                dequantize(&o[side]);
            }
            check(&o[0], &o[1], NULL, families[f]);
            release(&o[0]);
            release(&o[1]);
        }
}
END_TEST

START_TEST(extreme_scales_of_tensors_are_within_the_bound) {
    static const float scales[] = {0x1p-149f, 0x1p-126f, 0x1p-100f, 0x1p-64f, 1.25f,
                                   0x1p64f,   0x1p100f,  0x1p120f,  0.0f,     -3.0f};
    for (size_t i = 0; i < 10; i++)
        for (size_t j = 0; j < 10; j++) {
            qg_recipe recipe = recipe_of("te_e4m3");
            operand a = make(recipe, 3, 40, BLOCK_DATA_ORDINARY, i);
            operand b = make(recipe, 4, 40, BLOCK_DATA_ORDINARY, j);
            memcpy(a.scales, &scales[i], 4);
            memcpy(b.scales, &scales[j], 4);
            dequantize(&a);
            dequantize(&b);
            check(&a, &b, NULL, "extreme scales");
            release(&a);
            release(&b);
        }
}
END_TEST

// Blocks of zeros, whose scales are the smallest, do not cost BF16.
START_TEST(blocks_of_zeros_keep_the_path) {
    qg_matmul_options options = {QG_FORMAT_FP32, NULL, 1, false};
    for (int f = 0; f < FAMILIES; f++) {
        operand a = make(recipe_of(families[f]), 4, 512, BLOCK_DATA_ORDINARY, 1);
        operand b = make(recipe_of(families[f]), 4, 512, BLOCK_DATA_ORDINARY, 2);
        check_path(&a, &b, options, families[f]);
        const char *before = impl;
        if (a.shape.scale_bytes == 1 && a.recipe.element == QG_FORMAT_E4M3) {
            memset(a.codes, 0x80, 64);
            memset(a.scales, 0, 2);
            dequantize(&a);
        }
        check_path(&a, &b, options, families[f]);
        ck_assert_str_eq(impl, before);
        release(&a);
        release(&b);
    }
}
END_TEST

// ------------------------------------------------------------------------------------------- exact

// Integers whose partial sums all fit 24 bits.
START_TEST(sums_that_are_exact_come_out_exactly) {
    static const char *const names[] = {"e4m3",  "e5m2",   "int8",   "e2m1",
                                        "mxfp8", "mxint8", "nvint4", "rlx_nvfp4"};
    for (size_t f = 0; f < sizeof names / sizeof names[0]; f++)
        for (int64_t k = 1; k < 1500; k = k * 3 + 1) {
            qg_recipe recipe = recipe_of(names[f]);
            operand o[2];
            for (int side = 0; side < 2; side++) {
                o[side] = make(recipe, 33 + 40 * side, k, BLOCK_DATA_ORDINARY, 1);
                qg_format_info info = qg_format_describe(recipe.element);
                uint64_t state = (uint64_t)(k + side);
                static const qg_conversion nearest = {
                    {QG_ROUND_RNE, 0},
                    QG_OVERFLOW_SATURATE, 0
                };
                for (int64_t i = 0; i < o[side].shape.codes_size; i++) {
                    double x = (double)(int)(block_data_random(&state) % 9) - 4.0;
                    o[side].codes[i] = (uint8_t)qg_encode(&info, x, &nearest, 0);
                }
                float one = 1.0f;
                for (int64_t i = 0; i < o[side].shape.scales_size; i++)
                    if (o[side].shape.scale_bytes == 1)
                        o[side].scales[i] = qg_rule_scale_format(recipe.rule) == QG_FORMAT_E8M0
                                                ? 127
                                                : (uint8_t)qg_encode_ue4m3(1.0f);
                    else if (i % 4 == 0)
                        memcpy(o[side].scales + i, &one, 4);
                if (qg_rule_has_tensor_scale(recipe.rule))
                    o[side].in.tensor_scale = 7.0f * 448.0f; // nvint4: scale 1
                dequantize(&o[side]);
            }
            int64_t n = o[1].rows, count = o[0].rows * n;
            float *out = room(count * 4);
            for (int p = 0; p < PATHS; p++) {
                qg_matmul_options options = {QG_FORMAT_FP32, NULL, 2, false};
                qg_matmul_test_paths = paths[p];
                ck_assert_int_eq(qg_cpu_scaled_matmul(NULL, &options, o[0].rows, n, k, in_of(&o[0]),
                                                      in_of(&o[1]), out, &impl),
                                 QG_OK);
                for (int64_t i = 0; i < count; i++) {
                    double exact = sum_of(&o[0], &o[1], i / n, i % n, NULL).exact;
                    REQUIRE((double)out[i] == exact, "%s k %d %s: %a, exact %a", names[f], (int)k,
                            impl, (double)out[i], exact);
                }
            }
            qg_matmul_test_paths = 0;
            free(out);
            release(&o[0]);
            release(&o[1]);
        }
}
END_TEST

// The rounding of outputs, against the specification's encoder.
START_TEST(outputs_round_once_to_nearest_even) {
    enum { COUNT = 4096 };
    static float values[COUNT];
    static uint16_t out[COUNT];
    for (int kind = 0; kind < BLOCK_DATA_KINDS + 2; kind++)
        for (int t = 1; t < 3; t++) {
            block_data_fill(7, kind < BLOCK_DATA_KINDS ? kind : BLOCK_DATA_BITS, values, COUNT);
            for (int i = 0; i < COUNT && kind >= BLOCK_DATA_KINDS; i++) { // FP16's range, ties
                uint32_t bits = qg_bits_of_float(values[i]);
                uint32_t exponent = 100u + bits % 48u;
                bits = (bits & 0x80000000u) | exponent << 23 | (bits >> 9 & 0x7fffffu);
                if (kind == BLOCK_DATA_KINDS)
                    bits &= ~0xfffu;
                values[i] = qg_float_of_bits(bits);
            }
            qg_format_info info = qg_format_describe(out_types[t]);
            static const qg_conversion nearest = {
                {QG_ROUND_RNE, 0},
                QG_OVERFLOW_FORMAT, 0
            };
            for (int s = 0; s < 2; s++) {
                matmul_finish f = {out_types[t], 1.0f, NULL, NULL};
                qg_matmul_kernels_choose(s)->finish(&f, values, COUNT, out);
                for (int i = 0; i < COUNT; i++) {
                    uint64_t code = qg_encode(&info, values[i], &nearest, 0);
                    if (isnan(values[i]))
                        code = 0x7fff;
                    REQUIRE(out[i] == code, "%a: %x, not %x", (double)values[i], out[i],
                            (unsigned)code);
                }
            }
        }
}
END_TEST

// ----------------------------------------------------------------------------------------- threads

START_TEST(bytes_do_not_depend_on_threads_or_kernels) {
    enum { M = 130, N = 270, K = 2100 };
    for (int f = 0; f < FAMILIES; f += 3) {
        operand a = make(recipe_of(families[f]), M, K, BLOCK_DATA_ORDINARY, 1);
        operand b = make(recipe_of(families[f]), N, K, BLOCK_DATA_ORDINARY, 2);
        uint8_t *first = room(M * N * 4), *out = room(M * N * 4);
        for (int threads = 0; threads < 4; threads++)
            for (int scalar = 0; scalar < 1 + (threads == 1); scalar++) {
                qg_matmul_options options = {QG_FORMAT_FP32, NULL, threads, false};
                qg_matmul_test_paths = scalar ? MATMUL_SCALAR_KERNELS : 0;
                ck_assert_int_eq(qg_cpu_scaled_matmul(NULL, &options, M, N, K, in_of(&a), in_of(&b),
                                                      threads + scalar ? out : first, NULL),
                                 QG_OK);
                if (threads + scalar)
                    REQUIRE(memcmp(first, out, M * N * 4) == 0, "%s: %d threads", families[f],
                            threads);
            }
        qg_matmul_test_paths = 0;
        free(first);
        free(out);
        release(&a);
        release(&b);
    }
}
END_TEST

// ------------------------------------------------------------------------------------------ groups

START_TEST(groups_are_products_of_their_experts) {
    enum { M = 140, N = 70, K = 200, GROUPS = 7, EXPERTS = 3 };
    static const int64_t offsets[GROUPS + 1] = {0, 0, 5, 5, 133, 134, 140, 140};
    static const int64_t expert[GROUPS] = {0, 2, 1, 2, 0, 0, 1};
    for (int f = 0; f < FAMILIES; f++) {
        operand a = make(recipe_of(families[f]), M, K, BLOCK_DATA_ORDINARY, 1);
        operand b[EXPERTS];
        qg_matmul_operand in[EXPERTS];
        for (int e = 0; e < EXPERTS; e++) {
            b[e] = make(recipe_of(families[f]), N, K, BLOCK_DATA_ORDINARY, 10 + (uint64_t)e);
            in[e] = *in_of(&b[e]);
        }
        for (int p = 0; p < PATHS; p++) {
            qg_matmul_options options = {out_types[p % 3], NULL, 2, false};
            int64_t size = options.out_type == QG_FORMAT_FP32 ? 4 : 2;
            uint8_t *whole = room(M * N * 4), *out = room(M * N * 4);
            qg_matmul_test_paths = paths[p];
            ck_assert_msg(qg_cpu_grouped_matmul(&options, M, N, K, in_of(&a), GROUPS, offsets,
                                                expert, EXPERTS, in, out, &impl) == QG_OK,
                          "%s", qg_detail());
            for (int g = 0; g < GROUPS; g++) {
                const operand *e = &b[expert[g]];
                for (int64_t i = offsets[g]; i < offsets[g + 1]; i++)
                    for (int64_t j = 0; j < N; j++)
                        check_element(&a, e, &options, i, j, out, families[f]);
            }
            // One group is the plain product.
            static const int64_t all[2] = {0, M}, second = 1;
            ck_assert_int_eq(qg_cpu_grouped_matmul(&options, M, N, K, in_of(&a), 1, all, &second,
                                                   EXPERTS, in, out, NULL),
                             QG_OK);
            ck_assert_int_eq(
                qg_cpu_scaled_matmul(NULL, &options, M, N, K, in_of(&a), &in[1], whole, NULL),
                QG_OK);
            ck_assert_int_eq(memcmp(out, whole, (size_t)(M * N * size)), 0);
            free(whole);
            free(out);
        }
        qg_matmul_test_paths = 0;
        release(&a);
        for (int e = 0; e < EXPERTS; e++)
            release(&b[e]);
    }
}
END_TEST

// ------------------------------------------------------------------------------------------ errors

START_TEST(errors_come_back_as_statuses) {
    qg_recipe recipe = recipe_of("mxfp8");
    operand a = make(recipe, 2, 32, BLOCK_DATA_ORDINARY, 1);
    float out[4];
    qg_matmul_options good = {QG_FORMAT_FP32, NULL, 1, false}, bad = {QG_FORMAT_E4M3, NULL, 1, 0};
    qg_matmul_operand x = *in_of(&a), lacking = x;
    const qg_unit native = {.id = QG_UNIT_NATIVE}, exact = {.id = QG_UNIT_EXACT};
    lacking.scales = NULL;
#define STATUS(...) qg_cpu_scaled_matmul(__VA_ARGS__, NULL)
    ck_assert_int_eq(STATUS(&native, &good, 2, 2, 32, &x, &x, out), QG_OK);
    ck_assert_int_eq(STATUS(&exact, &good, 2, 2, 32, &x, &x, out), QG_ERROR_UNSUPPORTED);
    ck_assert_int_eq(STATUS(NULL, &bad, 2, 2, 32, &x, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, NULL, 2, 2, 32, &x, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 2, 2, 32, NULL, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 2, 2, 32, &x, &lacking, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 2, 2, 32, &x, &x, NULL), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 0, 2, 32, &x, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 2, -1, 32, &x, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, 2, 2, 0, &x, &x, out), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(STATUS(NULL, &good, (int64_t)1 << 40, (int64_t)1 << 40, 1, &x, &x, out),
                     QG_ERROR_OVERFLOW);
    ck_assert_int_eq(STATUS(NULL, &good, (int64_t)1 << 40, 2, (int64_t)1 << 40, &x, &x, out),
                     QG_ERROR_OVERFLOW);
#undef STATUS
    int64_t offsets[3] = {0, 1, 2}, expert[2] = {0, 0};
#define STATUS() qg_cpu_grouped_matmul(&good, 2, 2, 32, &x, 2, offsets, expert, 1, &x, out, NULL)
    ck_assert_int_eq(STATUS(), QG_OK);
    expert[1] = 1;
    ck_assert_int_eq(STATUS(), QG_ERROR_ARGUMENT);
    expert[1] = 0, offsets[1] = 3;
    ck_assert_int_eq(STATUS(), QG_ERROR_ARGUMENT);
    offsets[1] = 1, offsets[2] = 1;
    ck_assert_int_eq(STATUS(), QG_ERROR_ARGUMENT);
#undef STATUS
    release(&a);
}
END_TEST

// The bound is not empty: it is met, and never by much less than the square root of its terms.
START_TEST(the_bound_is_not_absurdly_loose) {
    printf("largest error / bound, fp32 outputs: %.3f\n", largest_share);
    ck_assert(largest_share > 0.01 || getenv("CK_RUN_CASE"));
}
END_TEST

START_TEST(conversions_obey_the_cap) {
    ck_assert_int_eq(qg_cpu_use_isa("scalar"), QG_OK);
    ck_assert_str_eq(qg_matmul_kernels_choose(0)->name, "scalar");
    ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
}
END_TEST

int main(void) {
    // The largest share is gathered from test to test: no process of its own for each.
    setenv("CK_FORK", "no", 0);
    const TTest *const tests[] = {
        outputs_round_once_to_nearest_even,
        conversions_obey_the_cap,
        every_pair_of_recipes_is_within_the_bound,
        every_format_and_layout_is_within_the_bound,
        shapes_are_within_the_bound,
        every_kind_of_data_is_within_the_bound,
        any_bits_are_within_the_bound,
        extreme_scales_of_tensors_are_within_the_bound,
        blocks_of_zeros_keep_the_path,
        sums_that_are_exact_come_out_exactly,
        bytes_do_not_depend_on_threads_or_kernels,
        groups_are_products_of_their_experts,
        errors_come_back_as_statuses,
        the_bound_is_not_absurdly_loose,
    };
    return RUN_SUITE("cpu_matmul", tests);
}
