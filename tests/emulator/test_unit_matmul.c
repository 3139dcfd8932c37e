// Products on matrix units: every pair of recipes on every unit works or gives a reason; scales,
// promotion, split and epilogue against a composition written out here over the independent model;
// ragged K; threads; the software units; the error of a product of quantized operands.
// ctest-timeout: 600
#include <block_data.h>
#include <unit_model_check.h>

#include <qg_emulator.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 16 };

// ---------------------------------------------------------------------------------------- operands

typedef struct operand {
    qg_recipe recipe;
    qg_shape shape;
    int64_t rows, k;
    float x[MOST], q[MOST]; // the source, and dequantized
    uint8_t codes[4 * MOST], scales[4 * MOST];
    qg_matmul_operand in;
} operand;

static operand a, b;

static qg_recipe recipe_of(const char *name) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

// Sums of eight uniform numbers: bell-shaped, from integers alone.
static void fill_bell(float *x, int64_t n, uint64_t seed) {
    uint64_t state = seed;
    for (int64_t i = 0; i < n; i++) {
        int64_t sum = 0;
        for (int j = 0; j < 8; j++)
            sum += (int64_t)(block_data_random(&state) & 0xffffff) - 0x800000;
        x[i] = (float)sum * 0x1p-24f;
    }
}

static void make(operand *o, qg_recipe recipe, int64_t rows, int64_t k, int kind, uint64_t seed) {
    static const float history[] = {3.0f, 2.0f};
    qg_quantize_options options = {
        .input_type = QG_FORMAT_FP32, .threads = 1, .amax_history = history, .history_length = 2};
    o->recipe = recipe;
    o->rows = rows;
    o->k = k;
    ck_assert(rows * k <= MOST);
    ck_assert_msg(qg_shape_of(&recipe, rows, k, &o->shape) == QG_OK, "%s", qg_detail());
    if (kind < 0)
        fill_bell(o->x, rows * k, seed);
    else
        block_data_fill(seed, kind, o->x, rows * k);
    float tensor = 1.0f;
    ck_assert_msg(qg_emulator_quantize(&recipe, &options, rows, k, o->x, o->codes, o->scales,
                                       &tensor, NULL) == QG_OK,
                  "%s", qg_detail());
    ck_assert_int_eq(qg_emulator_dequantize(&recipe, rows, k, o->codes, o->scales, tensor, 1, o->q),
                     QG_OK);
    o->in = (qg_matmul_operand){&o->recipe, o->codes, o->scales, tensor};
}

static qg_unit unit_of(const char *name) {
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(name, &unit) == QG_OK, "%s", qg_detail());
    return unit;
}

// --------------------------------------------------------------------------- every pair of recipes

static float out[MOST], other[MOST];

static bool pair_works(const char *name, const char *name_a, const char *name_b) {
    qg_unit unit = unit_of(name);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    qg_unit_fit(&unit, &a.recipe, &b.recipe);
    qg_status takes = qg_unit_takes(&unit, &a.recipe, &b.recipe, a.k, options.out_type);
    ck_assert_msg(takes == QG_OK || (takes == QG_ERROR_UNSUPPORTED && *qg_detail()), "%s %s %s: %d",
                  name, name_a, name_b, (int)takes);
    qg_status runs =
        qg_emulator_scaled_matmul(&unit, &options, a.rows, b.rows, a.k, &a.in, &b.in, out, NULL);
    ck_assert_msg(runs == takes, "%s %s %s: %s", name, name_a, name_b, qg_detail());
    if (runs != QG_OK)
        return false;
    // Within reach of the exact product of the dequantized operands.
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < b.rows; j++) {
            double exact = 0.0, size = 0.0;
            for (int64_t l = 0; l < a.k; l++) {
                double product = (double)a.q[i * a.k + l] * (double)b.q[j * a.k + l];
                exact += product;
                size += fabs(product);
            }
            double coarse = strcmp(name, "bf16_sequential") ? 0x1p-8 : 1.0;
            REQUIRE(fabs(out[i * b.rows + j] - exact) <= coarse * size + 0x1p-120,
                    "%s %s %s: %a, exact %a", name, name_a, name_b, (double)out[i * b.rows + j],
                    exact);
        }
    return true;
}

START_TEST(every_pair_of_recipes_works_or_says_why) {
    int64_t works = 0, software = 0;
    for (size_t i = 0; qg_recipe_listed(i); i++) {
        make(&a, recipe_of(qg_recipe_listed(i)), 2, 144, BLOCK_DATA_ORDINARY, i);
        for (size_t j = 0; qg_recipe_listed(j); j++) {
            make(&b, recipe_of(qg_recipe_listed(j)), 3, 144, BLOCK_DATA_ORDINARY, 1000 + j);
            for (int u = 0; u < QG_UNIT_COUNT; u++) {
                bool blocked = u == QG_UNIT_FP32_BLOCKED;
                bool ran = pair_works(blocked ? "fp32_blocked:16" : qg_unit_listed((size_t)u),
                                      qg_recipe_listed(i), qg_recipe_listed(j));
                ck_assert(ran || !qg_unit_is_software(u));
                works += ran;
                software += qg_unit_is_software(u);
            }
        }
    }
    ck_assert(works > software + 500);
}
END_TEST

START_TEST(every_unit_takes_what_its_rows_say) {
    for (size_t i = 0; qg_unit_row_at(i); i++) {
        const qg_unit_row *row = qg_unit_row_at(i);
        if (row->accumulator != QG_FORMAT_FP32)
            continue;
        for (size_t f = 0; qg_format_listed(f); f++) {
            qg_format format = unit_format_of(qg_format_listed(f));
            qg_recipe recipe;
            if (!qg_unit_row_takes(row, format))
                continue;
            ck_assert_int_eq(qg_recipe_find(qg_format_listed(f), &recipe), QG_OK);
            if (format == QG_FORMAT_BF16 || format == QG_FORMAT_TF32) // amax/F would overflow
                ck_assert_int_eq(qg_recipe_set_rule(&recipe, QG_RULE_FIXED, 1.0f), QG_OK);
            if (row->scale != QG_UNIT_NO_SCALE) {
                qg_layout group = {QG_LAYOUT_GROUP, 0, row->scale_block};
                ck_assert_int_eq(qg_recipe_set_layout(&recipe, group), QG_OK);
                int rule = row->scale == QG_FORMAT_E8M0 ? QG_RULE_FLOOR : QG_RULE_AMAX_UE4M3;
                ck_assert_int_eq(qg_recipe_set_rule(&recipe, rule, 0), QG_OK);
            }
            make(&a, recipe, 3, 130, BLOCK_DATA_ORDINARY, i);
            make(&b, recipe, 2, 130, BLOCK_DATA_ORDINARY, i + 7);
            ck_assert_msg(pair_works(qg_unit_listed(row->unit), qg_format_listed(f), ""),
                          "%s does not take %s: %s", qg_unit_listed(row->unit), qg_format_listed(f),
                          qg_detail());
        }
    }
}
END_TEST

// -------------------------------------------------------------------- the composition, written out

static const slow_unit *slow_of(const char *name, const char *operand_name, const char *scale) {
    for (int i = 0; slow_unit_at(i); i++) {
        const slow_unit *s = slow_unit_at(i);
        bool takes = false;
        for (int j = 0; s->operands[j]; j++)
            takes |= !strcmp(s->operands[j], operand_name);
        bool same_scale = scale ? s->scale && !strcmp(scale, s->scale) : !s->scale;
        if (!strcmp(s->unit, name) && takes && same_scale && !strcmp(s->accumulator, "fp32"))
            return s;
    }
    ck_abort_msg("no model of %s", name);
    return NULL;
}

typedef struct expected {
    const char *unit, *a_type, *b_type, *scale;
    int scale_columns; // that one stored scale covers, of block-scaled units
    int64_t promote, split;
    const float *bias;
} expected;

static double stored_scale(const operand *o, int64_t row, int64_t column) {
    int64_t index = qg_scale_index(&o->shape.blocks, row, column);
    if (o->shape.scale_bytes == 1)
        return slow_type_value(slow_type_find("e8m0"), o->scales[index]);
    float x;
    memcpy(&x, o->scales + 4 * index, 4);
    return x;
}

// The chain over elements from .. to of row i and row j.
static float slow_chain(const expected *e, const slow_unit *s, int64_t i, int64_t j, int64_t from,
                        int64_t to) {
    uint64_t d = 0;
    for (int64_t at = from; at < to; at += s->k) {
        uint64_t ca[64] = {0}, cb[64] = {0}, sa[4] = {0}, sb[4] = {0};
        for (int64_t l = at; l < at + s->k && l < to; l++) {
            ca[l - at] = a.codes[i * a.k + l];
            cb[l - at] = b.codes[j * a.k + l];
        }
        for (int g = 0; s->scale && g < s->k / s->scale_block; g++) {
            int64_t column = at + g * s->scale_block;
            if (column < a.k) {
                sa[g] = a.scales[qg_scale_index(&a.shape.blocks, i, column)];
                sb[g] = b.scales[qg_scale_index(&b.shape.blocks, j, column)];
            }
        }
        slow_dot dot = {slow_type_find(e->a_type),
                        slow_type_find(e->b_type),
                        s->k,
                        ca,
                        cb,
                        sa,
                        sb,
                        s->scale_block,
                        d};
        d = slow_unit_dot(s, &dot);
    }
    uint32_t bits = (uint32_t)d;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

static bool grouped(const operand *o) {
    return o->recipe.layout.kind == QG_LAYOUT_GROUP || o->recipe.layout.kind == QG_LAYOUT_BLOCK;
}

static float slow_part(const expected *e, const slow_unit *s, int64_t i, int64_t j, int64_t from,
                       int64_t to) {
    if (e->promote == 0)
        return slow_chain(e, s, i, j, from, to);
    float sum = 0.0f;
    for (int64_t at = from; at < to; at += e->promote) {
        int64_t end = at + e->promote < to ? at + e->promote : to;
        float t = slow_chain(e, s, i, j, at, end);
        if (!e->scale && (grouped(&a) || grouped(&b)))
            sum = fmaf((float)(stored_scale(&a, i, at) * stored_scale(&b, j, at)), t, sum);
        else
            sum = sum + t;
    }
    return sum;
}

static float tensor_factor(const operand *o) {
    if (o->recipe.rule == QG_RULE_TWO_LEVEL)
        return o->in.tensor_scale * (float)(1.0 / (6.0 * 448.0));
    return o->recipe.rule == QG_RULE_TWO_LEVEL_TORCHAO ? o->in.tensor_scale : 1.0f;
}

static float slow_output(const expected *e, int64_t i, int64_t j) {
    const slow_unit *s = slow_of(e->unit, e->a_type, e->scale);
    int64_t parts = e->split > 0 ? e->split : 1;
    int64_t part = (a.k + parts - 1) / parts;
    part = (part + s->k - 1) / s->k * s->k;
    float sum = slow_part(e, s, i, j, 0, part < a.k ? part : a.k);
    for (int64_t from = part; from < a.k; from += part)
        sum = sum + slow_part(e, s, i, j, from, from + part < a.k ? from + part : a.k);
    if (e->scale) {
        sum = sum * (tensor_factor(&a) * tensor_factor(&b));
    } else if (!grouped(&a) && !grouped(&b)) {
        float scale = (float)(stored_scale(&a, i, 0) * stored_scale(&b, j, 0));
        sum = sum * scale;
    }
    return e->bias ? sum + e->bias[j] : sum;
}

static void check_product(const expected *e, int threads) {
    char name[QG_UNIT_NAME_SIZE];
    int at = snprintf(name, sizeof name, "%s", e->unit);
    if (e->promote)
        at += snprintf(name + at, sizeof name - (size_t)at, "+promote:%d", (int)e->promote);
    if (e->split)
        snprintf(name + at, sizeof name - (size_t)at, "+split:%d", (int)e->split);
    qg_unit unit = unit_of(name);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .bias = e->bias, .threads = threads};
    const char *impl = NULL;
    ck_assert_msg(qg_emulator_scaled_matmul(&unit, &options, a.rows, b.rows, a.k, &a.in, &b.in, out,
                                            &impl) == QG_OK,
                  "%s: %s", name, qg_detail());
    ck_assert_str_eq(impl, "scalar");
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < b.rows; j++) {
            float wanted = slow_output(e, i, j), got = out[i * b.rows + j];
            REQUIRE(!memcmp(&wanted, &got, 4) || (isnan(wanted) && isnan(got)),
                    "%s, k %d, (%d, %d): %a, not %a", name, (int)a.k, (int)i, (int)j, (double)got,
                    (double)wanted);
        }
}

static qg_recipe with_layout(const char *name, int kind, int rows, int columns) {
    qg_recipe recipe = recipe_of(name);
    qg_layout layout = {kind, rows, columns};
    ck_assert_msg(qg_recipe_set_layout(&recipe, layout) == QG_OK, "%s", qg_detail());
    return recipe;
}

static const int64_t lengths[] = {1, 31, 32, 33, 100, 128, 129, 257, 512, 545, 1100};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

START_TEST(scales_in_the_epilogue) {
    static const float bias[] = {0.5f, -0x1p-30f, 1e3f, -0.0f, 3.0f};
    for (int i = 0; i < LENGTHS; i++)
        for (int kind = -1; kind < BLOCK_DATA_KINDS; kind++) {
            make(&a, recipe_of("e4m3"), 3, lengths[i], kind, 1);
            make(&b, with_layout("e5m2", QG_LAYOUT_PER_ROW, 0, 0), 5, lengths[i], kind, 2);
            expected e = {.unit = "hopper_wgmma", .a_type = "e4m3", .b_type = "e5m2"};
            check_product(&e, 1);
            e.bias = bias;
            check_product(&e, 2);
            e.unit = "hopper_mma_fp8";
            check_product(&e, 1);
            e.unit = "blackwell_tcgen05";
            e.split = 3;
            check_product(&e, 1);
            e.unit = "ada_mma";
            e.promote = 64;
            check_product(&e, 3);
        }
}
END_TEST

START_TEST(scales_in_the_promotion) {
    for (int i = 0; i < LENGTHS; i++)
        for (int kind = -1; kind < BLOCK_DATA_KINDS; kind += 2) {
            make(&a, recipe_of("deepseek_act128"), 3, lengths[i], kind, 3);
            int rows = lengths[i] < 300 && kind < 0 ? 130 : 2; // also a second row of blocks
            make(&b, recipe_of("deepseek_w128x128"), rows, lengths[i], kind, 4);
            expected e = {
                .unit = "hopper_wgmma", .a_type = "e4m3", .b_type = "e4m3", .promote = 128};
            check_product(&e, 1);
            e.promote = 64; // divides the group
            check_product(&e, 2);
            e.promote = 128;
            if (lengths[i] == 1100 || lengths[i] == 512) { // parts of whole groups
                e.split = lengths[i] == 1100 ? 3 : 2;
                check_product(&e, 1);
            }
            e.split = 0;
            make(&b, with_layout("e4m3", QG_LAYOUT_PER_ROW, 0, 0), 4, lengths[i], kind, 5);
            check_product(&e, 1);
            e.unit = "blackwell_mma_fp8";
            e.promote = 32;
            check_product(&e, 1);
        }
}
END_TEST

START_TEST(scales_in_the_unit) {
    for (int i = 0; i < LENGTHS; i++)
        for (int kind = -1; kind < BLOCK_DATA_KINDS; kind++) {
            make(&a, recipe_of("mxfp8"), 3, lengths[i], kind, 6);
            make(&b, recipe_of("mxfp6_e3m2"), 5, lengths[i], kind, 7);
            expected e = {
                .unit = "blackwell_mx", .a_type = "e4m3", .b_type = "e3m2", .scale = "e8m0"};
            check_product(&e, 1);
            e.split = 2;
            e.promote = 64;
            check_product(&e, 2);
            make(&b, recipe_of("vllm_ue8m0"), 5, lengths[i], kind, 8); // 128 elements share a scale
            e = (expected){
                .unit = "blackwell_mx", .a_type = "e4m3", .b_type = "e4m3", .scale = "e8m0"};
            check_product(&e, 1);
            make(&a, recipe_of("mxfp4"), 3, lengths[i], kind, 9);
            make(&b, recipe_of("mxfp4"), 5, lengths[i], kind, 10);
            e = (expected){
                .unit = "blackwell_mxf4", .a_type = "e2m1", .b_type = "e2m1", .scale = "e8m0"};
            check_product(&e, 1);
            make(&a, recipe_of("nvfp4"), 3, lengths[i], kind, 11);
            make(&b, recipe_of("nvfp4_torchao"), 5, lengths[i], kind, 12);
            e.scale = "ue4m3";
            check_product(&e, 1);
            e.split = 2;
            check_product(&e, 1);
        }
}
END_TEST

// A larger product, more rows and columns than one tile, on one to three threads.
START_TEST(threads_do_not_change_bits) {
    static const char *const units[] = {"hopper_wgmma+promote:128", "fp32_sequential", "exact",
                                        "fp32_fma+split:2"};
    make(&a, recipe_of("deepseek_act128"), 21, 700, -1, 13);
    make(&b, with_layout("deepseek_act128", QG_LAYOUT_GROUP, 0, 128), 67, 700, -1, 14);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        qg_unit unit = unit_of(units[u]);
        for (int threads = 1; threads <= 3; threads++) {
            qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = threads};
            float *to = threads == 1 ? out : other;
            ck_assert_int_eq(
                qg_emulator_scaled_matmul(&unit, &options, 21, 67, 700, &a.in, &b.in, to, NULL),
                QG_OK);
            ck_assert(threads == 1 || !memcmp(out, other, 21 * 67 * sizeof(float)));
        }
    }
    expected e = {.unit = "hopper_wgmma", .a_type = "e4m3", .b_type = "e4m3", .promote = 128};
    check_product(&e, 0);
}
END_TEST

// ----------------------------------------------------------------------------------------- outputs

START_TEST(outputs_are_rounded_once_from_the_epilogue) {
    static uint16_t narrow[MOST];
    qg_unit unit = unit_of("hopper_wgmma");
    make(&a, recipe_of("e4m3"), 9, 200, -1, 15);
    make(&b, recipe_of("e4m3"), 9, 200, -1, 16);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    ck_assert_int_eq(qg_emulator_scaled_matmul(&unit, &options, 9, 9, 200, &a.in, &b.in, out, NULL),
                     QG_OK);
    static const qg_format types[] = {QG_FORMAT_BF16, QG_FORMAT_FP16};
    for (int t = 0; t < 2; t++) {
        options.out_type = types[t];
        qg_format_info info = qg_format_describe(types[t]);
        ck_assert_int_eq(
            qg_emulator_scaled_matmul(&unit, &options, 9, 9, 200, &a.in, &b.in, narrow, NULL),
            QG_OK);
        for (int i = 0; i < 81; i++) {
            double value = qg_decode(&info, narrow[i]);
            double up = qg_decode(&info, (uint64_t)narrow[i] + 1);
            double down = qg_decode(&info, (uint64_t)narrow[i] - 1);
            REQUIRE(fabs(value - out[i]) <= fabs(up - out[i]) &&
                        fabs(value - out[i]) <= fabs(down - out[i]),
                    "%a is not the nearest to %a", value, (double)out[i]);
        }
    }
    options.out_type = QG_FORMAT_E4M3;
    ck_assert_int_eq(
        qg_emulator_scaled_matmul(&unit, &options, 9, 9, 200, &a.in, &b.in, narrow, NULL),
        QG_ERROR_ARGUMENT);
}
END_TEST

// ---------------------------------------------------------------------------------- software units

static float run_values(const char *name, int64_t k, const float *x, const float *y,
                        const float *bias) {
    qg_unit unit = unit_of(name);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .bias = bias, .threads = 1};
    float d = 0.0f;
    ck_assert_msg(qg_emulator_matmul(&unit, &options, 1, 1, k, x, y, &d) == QG_OK, "%s",
                  qg_detail());
    return d;
}

// x rounded toward zero or down to binary32; exact is in binary64.
static float rounded_to(double exact, bool down) {
    float x = (float)exact;
    if (x != exact && (down ? x > exact : fabs((double)x) > fabs(exact)))
        x = nextafterf(x, down ? -INFINITY : 0.0f);
    return x;
}

START_TEST(software_chains) {
    enum { K = 300 };
    static float x[K], y[K];
    for (uint64_t seed = 0; seed < 200; seed++) {
        fill_bell(x, K, 2 * seed + 1);
        fill_bell(y, K, 2 * seed + 2);
        float sum = 0, fused = 0, zero = 0, down = 0, blocked = 0, half = 0;
        for (int i = 0; i < K; i++) {
            float product = x[i] * y[i];
            sum = sum + product;
            fused = fmaf(x[i], y[i], fused);
            zero = rounded_to((double)zero + (double)product, false);
            down = rounded_to((double)down + (double)product, true);
        }
        for (int i = 0; i < K; i += 32) {
            float part = 0;
            for (int l = i; l < i + 32 && l < K; l++)
                part = part + x[l] * y[l];
            blocked = blocked + part;
        }
        for (int i = 150; i < K; i++)
            half = half + x[i] * y[i];
        ck_assert(run_values("fp32_sequential", K, x, y, NULL) == sum);
        ck_assert(run_values("fp32_fma", K, x, y, NULL) == fused);
        ck_assert(run_values("fp32_sequential+rtz", K, x, y, NULL) == zero);
        ck_assert(run_values("fp32_sequential+rtn", K, x, y, NULL) == down);
        ck_assert(run_values("fp32_blocked:32", K, x, y, NULL) == blocked);
        ck_assert(run_values("fp32_sequential+promote:32", K, x, y, NULL) == blocked);
        float first = run_values("fp32_sequential", 150, x, y, NULL);
        ck_assert(run_values("fp32_sequential+split:2", K, x, y, NULL) == first + half);
    }
}
END_TEST

START_TEST(fma_rounds_once) {
    // 24929 * 673 = 2^24 + 1, a tie that 2^-40 decides; binary64 would lose it.
    float x[] = {0x1p-20f, 24929}, y[] = {0x1p-20f, 673};
    ck_assert(run_values("fp32_fma", 2, x, y, NULL) == 16777218.0f);
    y[0] = -y[0];
    ck_assert(run_values("fp32_fma", 2, x, y, NULL) == 16777216.0f);
}
END_TEST

START_TEST(bf16_chain) {
    enum { K = 1000 };
    static float x[K], y[K];
    for (int i = 0; i < K; i++)
        x[i] = y[i] = 1.0f;
    ck_assert(run_values("bf16_sequential", K, x, y, NULL) == 256.0f); // stagnates
    x[0] = 1.0f;
    x[1] = 0x1.01p-8f; // above the tie: one rounding gives the next bf16, two would not
    ck_assert(run_values("bf16_sequential", 2, x, y, NULL) == 1.0f + 0x1p-7f);
    x[1] = 0x1p-8f;
    ck_assert(run_values("bf16_sequential", 2, x, y, NULL) == 1.0f);
    x[1] = 0x1.000002p-8f; // in binary32 the sum would already be the tie
    ck_assert(run_values("bf16_sequential", 2, x, y, NULL) == 1.0f + 0x1p-7f);
    ck_assert(run_values("bf16_sequential+rtz", 2, x, y, NULL) == 1.0f);
    x[1] = -0x1p-30f;
    ck_assert(run_values("bf16_sequential+rtz", 2, x, y, NULL) == 1.0f - 0x1p-8f);
    ck_assert(run_values("bf16_sequential+rtn", 2, x, y, NULL) == 1.0f - 0x1p-8f);
}
END_TEST

START_TEST(exact_is_correctly_rounded) {
    float large[] = {0x1p120f, 1.0f, -0x1p120f, 0x1p-149f}, ones[] = {0x1p7f, 1, 0x1p7f, 0x1p-149f};
    ck_assert(run_values("exact", 3, large, ones, NULL) == 1.0f);
    ck_assert(run_values("fp64", 3, large, ones, NULL) == 0.0f);
    // 1 + 2^-24 is a tie; 2^-298 decides it.
    float tie[] = {1.0f, 0x1p-24f, 0x1p-149f}, units[] = {1.0f, 1.0f, 0x1p-149f};
    ck_assert(run_values("exact", 2, tie, units, NULL) == 1.0f);
    ck_assert(run_values("exact", 3, tie, units, NULL) == 1.0f + 0x1p-23f);
    units[2] = -units[2];
    ck_assert(run_values("exact", 3, tie, units, NULL) == 1.0f);
    float bias = 0x1p-24f;
    ck_assert(run_values("exact", 1, tie, units, &bias) == 1.0f);
    ck_assert(run_values("exact", 2, tie, units, &bias) == 1.0f + 0x1p-23f);
    float huge[] = {0x1.fffffep127f, 0x1.fffffep127f, 1}, twos[] = {2, -2, 3};
    ck_assert(run_values("exact", 1, huge, twos, NULL) == INFINITY);
    ck_assert(run_values("exact", 3, huge, twos, NULL) == 3.0f);
    float nan[] = {INFINITY, INFINITY}, zeros[] = {0, 1}, signs[] = {1, -1};
    ck_assert(isnan(run_values("exact", 2, nan, zeros, NULL)));
    ck_assert(isnan(run_values("exact", 2, nan, signs, NULL)));
    ck_assert(run_values("exact", 1, nan, signs, NULL) == INFINITY);
}
END_TEST

// Against a sum of integers: operands are multiples of 2^-20 below 2^11, sums below 2^63.
START_TEST(exact_agrees_with_integers) {
    enum { K = 500 };
    static float x[K], y[K];
    uint64_t state = 5;
    for (int round = 0; round < 500; round++) {
        int64_t sum = 0;
        for (int i = 0; i < K; i++) {
            int64_t p = (int64_t)(block_data_random(&state) >> (40 + round % 20)) - (1 << 3);
            int64_t q = (int64_t)(block_data_random(&state) >> (40 + round % 23)) - (1 << 3);
            p = block_data_random(&state) & 1 ? -p : p;
            x[i] = (float)p * 0x1p-20f;
            y[i] = (float)q * 0x1p-30f;
            sum += p * q;
        }
        float wanted = (float)sum * 0x1p-50f; // one rounding
        ck_assert(run_values("exact", K, x, y, NULL) == wanted);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------- refusals

static void expect_refusal(const char *name, qg_recipe recipe_a, qg_recipe recipe_b, int64_t k,
                           const char *reason) {
    qg_unit unit = unit_of(name);
    ck_assert_msg(qg_unit_takes(&unit, &recipe_a, &recipe_b, k, QG_FORMAT_FP32) ==
                      QG_ERROR_UNSUPPORTED,
                  "%s", name);
    ck_assert_msg(strstr(qg_detail(), reason) != NULL, "%s: %s", name, qg_detail());
}

START_TEST(refusals_say_why) {
    qg_recipe e4m3 = recipe_of("e4m3"), act = recipe_of("deepseek_act128");
    expect_refusal("native", e4m3, e4m3, 0, "backends");
    expect_refusal("hopper_mma", e4m3, e4m3, 0, "e4m3 by e4m3");
    expect_refusal("hopper_wgmma", e4m3, recipe_of("int8"), 0, "e4m3 by int8");
    expect_refusal("hopper_wgmma", act, act, 0, "+promote:128");
    expect_refusal("hopper_wgmma+promote:96", act, act, 0, "does not divide");
    expect_refusal("hopper_wgmma+promote:16", act, act, 0, "instruction");
    expect_refusal("hopper_wgmma+promote:128+split:3", act, act, 512, "cut the scales");
    expect_refusal("hopper_wgmma+promote:32", recipe_of("mxfp8"), e4m3, 0, "fp32 scales");
    expect_refusal("blackwell_mx", recipe_of("mxfp8"), e4m3, 0, "e8m0");
    expect_refusal("blackwell_mx", with_layout("mxfp8", QG_LAYOUT_GROUP, 0, 16), recipe_of("mxfp8"),
                   0, "32 elements");
    expect_refusal("blackwell_mxf4", recipe_of("mxfp4"), recipe_of("nvfp4"), 0, "on both");
    expect_refusal("blackwell_mx", recipe_of("rlx_mxfp4x2"), recipe_of("rlx_mxfp4x2"), 0, "planes");
    qg_unit unit = unit_of("hopper_wgmma+promote:128+split:3");
    ck_assert_int_eq(qg_unit_takes(&unit, &act, &act, 384, QG_FORMAT_FP32), QG_OK);
    ck_assert_int_eq(qg_unit_takes(&unit, &act, &act, 384, QG_FORMAT_E4M3), QG_ERROR_ARGUMENT);
    unit = unit_of("hopper_wgmma");
    qg_recipe group = with_layout("e4m3", QG_LAYOUT_GROUP, 0, 96);
    qg_unit_fit(&unit, &act, &group);
    ck_assert_int_eq(unit.promote, 32);
    unit = unit_of("blackwell_mx");
    qg_unit_fit(&unit, &act, &group);
    ck_assert_int_eq(unit.promote, 0);
}
END_TEST

// ---------------------------------------------------------------------------------------- variants

static qg_status refuse_panel(const qg_unit_product *p) {
    (void)p;
    return QG_ERROR_UNSUPPORTED;
}

static qg_status mark_panel(const qg_unit_product *p) {
    for (int64_t i = 0; i < p->m * p->n; i++)
        p->acc[i] = 1.0f;
    return QG_OK;
}

START_TEST(variants_run_where_they_take_the_product) {
    qg_unit unit = unit_of("hopper_wgmma");
    qg_recipe unscaled = recipe_of("e4m3");
    ck_assert_int_eq(qg_recipe_set_rule(&unscaled, QG_RULE_FIXED, 1.0f), QG_OK);
    make(&a, unscaled, 2, 64, -1, 17);
    make(&b, unscaled, 2, 64, -1, 18);
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    const char *impl = NULL;
    qg_unit_variant_set(QG_MODEL_T, "none", refuse_panel);
    qg_emulator_scaled_matmul(&unit, &options, 2, 2, 64, &a.in, &b.in, out, &impl);
    ck_assert_str_eq(impl, "scalar");
    qg_unit_variant_set(QG_MODEL_T, "ones", mark_panel);
    qg_emulator_scaled_matmul(&unit, &options, 2, 2, 64, &a.in, &b.in, other, &impl);
    ck_assert_str_eq(impl, "ones");
    ck_assert(other[3] == 1.0f);
    options.scalar = true;
    qg_emulator_scaled_matmul(&unit, &options, 2, 2, 64, &a.in, &b.in, other, &impl);
    ck_assert_str_eq(impl, "scalar");
    ck_assert(!memcmp(out, other, 4 * sizeof(float)));
    qg_unit_variant_set(QG_MODEL_T, NULL, NULL);
}
END_TEST

// -------------------------------------------------------------------------- the error of a product

// For independent operands of symmetric sign, noise / signal of a product is
// 1 - 2 (1 + sA)(1 + sB) + (1 + 2 sA + rA)(1 + 2 sB + rB), flat in K.
static void error_of(const operand *o, double *s, double *r) {
    double signal = 0, cross = 0, noise = 0;
    for (int64_t i = 0; i < o->rows * o->k; i++) {
        double x = o->x[i], e = (double)o->q[i] - x;
        signal += x * x;
        cross += x * e;
        noise += e * e;
    }
    *s = cross / signal;
    *r = noise / signal;
}

START_TEST(error_of_a_product_follows_from_its_operands) {
    static const int64_t ks[] = {64, 512};
    qg_recipe recipe = recipe_of("torchao_mxfp8_rceil");
    qg_unit unit = unit_of("exact");
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 0};
    for (int i = 0; i < 2; i++) {
        make(&a, recipe, 128, ks[i], -1, 19);
        make(&b, recipe, 128, ks[i], -1, 20);
        ck_assert_int_eq(
            qg_emulator_scaled_matmul(&unit, &options, 128, 128, ks[i], &a.in, &b.in, out, NULL),
            QG_OK);
        ck_assert_int_eq(qg_emulator_matmul(&unit, &options, 128, 128, ks[i], a.x, b.x, other),
                         QG_OK);
        double noise = 0, signal = 0, sa, ra, sb, rb;
        for (int j = 0; j < 128 * 128; j++) {
            noise += ((double)out[j] - other[j]) * ((double)out[j] - other[j]);
            signal += (double)other[j] * other[j];
        }
        error_of(&a, &sa, &ra);
        error_of(&b, &sb, &rb);
        double wanted = 1 - 2 * (1 + sa) * (1 + sb) + (1 + 2 * sa + ra) * (1 + 2 * sb + rb);
        REQUIRE(fabs(noise / signal / wanted - 1) < 0.06, "k %d: %g, not %g", (int)ks[i],
                noise / signal, wanted);
        double qsnr = -10 * log10(noise / signal);
        REQUIRE(fabs(qsnr - 28.5) < 0.5, "QSNR %g dB", qsnr);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_pair_of_recipes_works_or_says_why,
                            every_unit_takes_what_its_rows_say,
                            scales_in_the_epilogue,
                            scales_in_the_promotion,
                            scales_in_the_unit,
                            threads_do_not_change_bits,
                            outputs_are_rounded_once_from_the_epilogue,
                            software_chains,
                            fma_rounds_once,
                            bf16_chain,
                            exact_is_correctly_rounded,
                            exact_agrees_with_integers,
                            refusals_say_why,
                            variants_run_where_they_take_the_product,
                            error_of_a_product_follows_from_its_operands};
    return RUN_SUITE("unit_matmul", tests);
}
