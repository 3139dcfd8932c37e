// Metrale's quantizer and its neighbours as statements, each test named after the one it shows:
// spec/seed-systems.md C.2, M1, M3, M9 to M11, M14 and M15 on the emulator and the CPU runtime.
// (M4 to M8: test_partition and test_kernel_choice; M2: tests/kernels; M13: test_silu_quantize.)
#include <block_data.h>
#include <require.h>
#include <run_suite.h>

#include <qg_cpu.h>
#include <qg_encode32.h>
#include <qg_recipe_name.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128, GUARD = 256, SENTINEL = 0xa5, INPUTS = 1 << 16 };

static const char *const backends[] = {"emulator", "cpu"};
enum { BACKENDS = 2 };

static qg_recipe recipe_of(const char *name) {
    qg_recipe recipe;
    ck_assert_msg(qg_recipe_find(name, &recipe) == QG_OK, "%s", qg_detail());
    return recipe;
}

static float float_at(const uint8_t *bytes, int64_t i) {
    float x;
    memcpy(&x, bytes + 4 * i, 4);
    return x;
}

// ----------------------------------------------------------------------------- guarded buffers

static uint8_t *guarded(int64_t size) {
    uint8_t *p = malloc((size_t)(size + 2 * GUARD));
    ck_assert_ptr_nonnull(p);
    memset(p, SENTINEL, (size_t)(size + 2 * GUARD));
    return p + GUARD;
}

static void release(uint8_t *p, int64_t size) {
    for (int64_t i = 0; i < GUARD; i++)
        REQUIRE(p[-1 - i] == SENTINEL && p[size + i] == SENTINEL, "a guard byte is written");
    free(p - GUARD);
}

// A quantized tensor in buffers with guards.
typedef struct quantized {
    qg_recipe recipe;
    qg_storage_shape shape;
    uint8_t *codes, *scales;
} quantized;

static quantized quantize(const char *backend, qg_recipe recipe, qg_storage storage, int64_t m,
                          int64_t k, qg_format type, const void *x) {
    quantized q = {.recipe = recipe};
    qg_quantize_options options = {.input_type = type};
    ck_assert_msg(qg_storage_shape_of(&recipe, &storage, m, k, &q.shape) == QG_OK, "%s",
                  qg_detail());
    q.codes = guarded(q.shape.codes_size);
    q.scales = guarded(q.shape.scales_size);
    ck_assert_msg(qg_backend_find(backend)->quantize(&recipe, &options, &storage, m, k, x, q.codes,
                                                     q.scales, NULL, NULL) == QG_OK,
                  "%s", qg_detail());
    return q;
}

static void discard(quantized *q) {
    release(q->codes, q->shape.codes_size);
    release(q->scales, q->shape.scales_size);
}

// ------------------------------------------------------------------------ M1, M3: written out here

// E4M3 codes 0 .. 7e are its magnitudes in ascending order.
static double e4m3_magnitude(int code) {
    int exponent = code >> 3, mantissa = code & 7;
    return exponent ? ldexp(8 + mantissa, exponent - 10) : ldexp(mantissa, -9);
}

enum encoder { NEAREST_EVEN, TRUNCATES, HALF_UP };

// Of a v that is no NaN; saturating.
static uint8_t e4m3_code(float v, enum encoder how) {
    double magnitude = fabs((double)v);
    int low = 0;
    while (low < 0x7e && e4m3_magnitude(low + 1) <= magnitude)
        low++;
    if (low < 0x7e && how != TRUNCATES) {
        double middle = (e4m3_magnitude(low) + e4m3_magnitude(low + 1)) / 2;
        low += magnitude > middle || (magnitude == middle && (how == HALF_UP || (low & 1)));
    }
    return (uint8_t)(low | (signbit(v) ? 0x80 : 0));
}

// B.1, steps 1 to 5: x of bf16, (m, k), k a multiple of 128.
static void quantize_by_text(int64_t m, int64_t k, const uint16_t *x, enum encoder how,
                             uint8_t *codes, uint8_t *scales) {
    for (int64_t group = 0; group < m * k / GROUP; group++) {
        float amax = 0.0f;
        for (int64_t i = group * GROUP; i < (group + 1) * GROUP; i++)
            amax = fmaxf(amax, fabsf(qg_float_of_bits((uint32_t)x[i] << 16)));
        float scale = fmaxf(amax / 448.0f, 1e-12f);
        memcpy(scales + 4 * group, &scale, 4);
        for (int64_t i = group * GROUP; i < (group + 1) * GROUP; i++) {
            float v = qg_float_of_bits((uint32_t)x[i] << 16) / scale;
            codes[i] = isnan(v) ? 0x7e : e4m3_code(v, how);
        }
    }
}

static uint16_t bf16_of(double x) { return (uint16_t)(qg_bits_of_float((float)x) >> 16); }

// Distinct groups with special ones among them, magnitudes over six decades.
static void fill_pattern(int64_t m, int64_t k, uint16_t *x) {
    uint64_t state = 3;
    for (int64_t group = 0; group < m * k / GROUP; group++) {
        double size = pow(10.0, (double)(block_data_random(&state) % 7) - 3.0);
        for (int i = 0; i < GROUP; i++) {
            double u = (double)(int64_t)block_data_random(&state) * 0x1p-63;
            double value = u * size;
            switch (group % 11) {
            case 0: value = 0.0; break;
            case 1: value = i == 77 ? 3.5e4 : 1e-3 * u; break;
            case 2: value = i == 0 ? 448.0 : (17 + 2 * (i % 8)) * 0x1p-4; break; // ties
            case 3: value = i % 2 ? 448.0 : -448.0; break;
            case 4: value = i % 3 ? -1e6 : 1e6; break;
            case 5: value = i == 5 ? 448.0 : (2 * (i % 8) + 1) * 0x1p-10; break; // subnormal ties
            case 6: value *= 1e-20; break;
            default: break;
            }
            x[group * GROUP + i] = bf16_of(value);
        }
    }
}

static int64_t differences(const uint8_t *a, const uint8_t *b, int64_t size) {
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++)
        count += a[i] != b[i];
    return count;
}

enum { PATTERN_M = 17, PATTERN_K = 1152 };
static uint16_t pattern[PATTERN_M * PATTERN_K];
static uint8_t text_codes[PATTERN_M * PATTERN_K], text_scales[PATTERN_M * PATTERN_K / GROUP * 4];

START_TEST(m01_codes_and_scales_are_those_of_the_text) {
    fill_pattern(PATTERN_M, PATTERN_K, pattern);
    for (int special = 0; special < 2; special++) {
        if (special) { // NaN, and so Inf / Inf of either sign, is the largest code
            pattern[GROUP * 7 + 3] = 0xffc1;
            pattern[GROUP * 8 + 3] = 0xff80;
            pattern[GROUP * 9 + 3] = 0x7f80;
            pattern[GROUP * 9 + 4] = 0x7fc0;
        }
        quantize_by_text(PATTERN_M, PATTERN_K, pattern, NEAREST_EVEN, text_codes, text_scales);
        for (int b = 0; b < BACKENDS; b++) {
            quantized q = quantize(backends[b], recipe_of("metrale_act128"), (qg_storage){0},
                                   PATTERN_M, PATTERN_K, QG_FORMAT_BF16, pattern);
            for (int64_t i = 0; i < q.shape.codes_size; i++)
                REQUIRE(q.codes[i] == text_codes[i], "%s: code %lld of %04x is %02x, not %02x",
                        backends[b], (long long)i, pattern[i], q.codes[i], text_codes[i]);
            ck_assert_int_eq(differences(q.scales, text_scales, q.shape.scales_size), 0);
            discard(&q);
        }
    }
}
END_TEST

// The comparison of bytes sees an encoder that truncates, one that rounds ties up, and scales in
// another order; the guards are looked at with every result.
START_TEST(m03_known_bad_encoders_and_layouts_are_detected) {
    fill_pattern(PATTERN_M, PATTERN_K, pattern);
    qg_storage k_major = {
        .order = {QG_ORDER_K_MAJOR, 1}
    };
    for (int b = 0; b < BACKENDS; b++) {
        quantized q = quantize(backends[b], recipe_of("metrale_act128"), (qg_storage){0}, PATTERN_M,
                               PATTERN_K, QG_FORMAT_BF16, pattern);
        quantize_by_text(PATTERN_M, PATTERN_K, pattern, TRUNCATES, text_codes, text_scales);
        int64_t truncated = differences(q.codes, text_codes, q.shape.codes_size);
        quantize_by_text(PATTERN_M, PATTERN_K, pattern, HALF_UP, text_codes, text_scales);
        int64_t half_up = differences(q.codes, text_codes, q.shape.codes_size);
        quantized other = quantize(backends[b], recipe_of("metrale_act128"), k_major, PATTERN_M,
                                   PATTERN_K, QG_FORMAT_BF16, pattern);
        ck_assert_int_eq(other.shape.scales_size, q.shape.scales_size);
        int64_t misplaced = differences(q.scales, other.scales, q.shape.scales_size);
        REQUIRE(truncated > q.shape.codes_size / 4 && half_up > 100 &&
                    misplaced > q.shape.scales_size / 4,
                "%lld truncated, %lld half up, %lld misplaced", (long long)truncated,
                (long long)half_up, (long long)misplaced);
        discard(&q);
        discard(&other);
    }
}
END_TEST

// ---------------------------------------------------------------------------------------- M9

// The adapter, written out: [M, L] to [L, M rounded up to 16].
static void transpose_scales(int64_t m, int64_t l, const uint8_t *from, uint8_t *to) {
    int64_t padded = (m + 15) / 16 * 16;
    memset(to, 0, (size_t)(4 * l * padded));
    for (int64_t row = 0; row < m; row++)
        for (int64_t group = 0; group < l; group++)
            memcpy(to + 4 * (group * padded + row), from + 4 * (row * l + group), 4);
}

static void check_adapter(const char *backend, int64_t m, int64_t l, const uint16_t *x) {
    qg_scale_order order = {QG_ORDER_K_MAJOR, 16};
    int64_t size = l * ((m + 15) / 16 * 16);
    quantized rows = quantize(backend, recipe_of("metrale_act128"), (qg_storage){0}, m, l * GROUP,
                              QG_FORMAT_BF16, x);
    quantized columns = quantize(backend, recipe_of("metrale_act128"), (qg_storage){.order = order},
                                 m, l * GROUP, QG_FORMAT_BF16, x);
    uint8_t *wanted = guarded(4 * size), *back = guarded(4 * m * l);
    transpose_scales(m, l, rows.scales, wanted);
    ck_assert_int_eq(columns.shape.scales_size, 4 * size);
    ck_assert_int_eq(differences(columns.scales, wanted, 4 * size), 0);
    ck_assert_int_eq(differences(columns.codes, rows.codes, rows.shape.codes_size), 0);
    qg_scale_order_load(order, m, l, 4, columns.scales, back);
    ck_assert_int_eq(differences(back, rows.scales, 4 * m * l), 0);
    int64_t real = 0;
    for (int64_t offset = 0; offset < size; offset++) {
        qg_scale_place p = qg_scale_order_place(order, m, l, offset);
        REQUIRE(qg_scale_order_offset(order, m, l, p.i, p.j) == offset, "no inverse");
        if (p.i < m)
            real++;
        else
            REQUIRE(float_at(columns.scales, offset) == 0.0f, "padding is not zero");
    }
    ck_assert_int_eq(real, m * l);
    release(wanted, 4 * size);
    release(back, 4 * m * l);
    discard(&rows);
    discard(&columns);
}

START_TEST(m09_scale_adapter_to_padded_columns_and_back) {
    static const int64_t rows[] = {1, 2, 15, 16, 17, 33}, groups[] = {1, 3, 9};
    static uint16_t x[33 * 9 * GROUP];
    fill_pattern(33, 9 * GROUP, x);
    for (int b = 0; b < BACKENDS; b++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 3; j++)
                check_adapter(backends[b], rows[i], groups[j], x);
}
END_TEST

// ---------------------------------------------------------------------------------------- products

typedef struct operands {
    int64_t m, n, k;
    quantized a, b;
    qg_matmul_operand in_a, in_b;
} operands;

// Groups of a and blocks of b differ in size by up to 3/16, so that a scale in the wrong place shows.
static void fill_bell(int64_t rows, int64_t k, uint64_t seed, float *x) {
    uint64_t state = seed;
    for (int64_t i = 0; i < rows * k; i++) {
        uint64_t size = (uint64_t)(i / k * 7 + i % k / GROUP * 5) * 2654435761u >> 8 & 3;
        int64_t sum = 0;
        for (int j = 0; j < 8; j++)
            sum += (int64_t)(block_data_random(&state) & 0xffffff) - 0x800000;
        x[i] = (float)sum * 0x1p-24f * (1.0f + (float)size / 16.0f);
    }
}

static void make_operands(operands *o, const char *a, const char *b, int64_t m, int64_t n,
                          int64_t k) {
    float *x = malloc((size_t)((m > n ? m : n) * k) * sizeof *x);
    ck_assert_ptr_nonnull(x);
    *o = (operands){.m = m, .n = n, .k = k};
    fill_bell(m, k, 11, x);
    o->a = quantize("emulator", recipe_of(a), (qg_storage){0}, m, k, QG_FORMAT_FP32, x);
    fill_bell(n, k, 12, x);
    o->b = quantize("emulator", recipe_of(b), (qg_storage){0}, n, k, QG_FORMAT_FP32, x);
    o->in_a = (qg_matmul_operand){&o->a.recipe, o->a.codes, o->a.scales, 1.0f};
    o->in_b = (qg_matmul_operand){&o->b.recipe, o->b.codes, o->b.scales, 1.0f};
    free(x);
}

static void discard_operands(operands *o) {
    discard(&o->a);
    discard(&o->b);
}

static qg_unit unit_of(const char *name) {
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(name, &unit) == QG_OK, "%s", qg_detail());
    return unit;
}

// One instruction after another over 128 elements, from +0.
static float inner_chain(const operands *o, int64_t i, int64_t j, int64_t first) {
    uint64_t a[GROUP], b[GROUP], d = 0;
    int64_t count = o->k - first < GROUP ? o->k - first : GROUP;
    const qg_unit_row *row = qg_unit_row_find(QG_UNIT_HOPPER_WGMMA, QG_FORMAT_E4M3, QG_FORMAT_E4M3,
                                              QG_FORMAT_FP32, QG_UNIT_NO_SCALE);
    for (int64_t l = 0; l < count; l++) {
        a[l] = o->a.codes[i * o->k + first + l];
        b[l] = o->b.codes[j * o->k + first + l];
    }
    qg_unit_dot_input in = {.a_format = QG_FORMAT_E4M3, .b_format = QG_FORMAT_E4M3, .k = count};
    in.a = a;
    in.b = b;
    ck_assert_msg(qg_unit_dot(row, &in, &d) == QG_OK, "%s", qg_detail());
    return qg_float_of_bits((uint32_t)d);
}

// outer = fma(fl(sa sb), inner, outer), or rounded twice.
static float outer_sum(const operands *o, int64_t i, int64_t j, bool is_fused) {
    int64_t l = (o->k + GROUP - 1) / GROUP;
    float outer = 0.0f;
    for (int64_t group = 0; group < l; group++) {
        float sa = float_at(o->a.scales, i * l + group);
        float sb = float_at(o->b.scales, j / GROUP * l + group);
        float inner = inner_chain(o, i, j, group * GROUP), scale = sa * sb;
        outer = is_fused ? fmaf(scale, inner, outer) : outer + scale * inner;
    }
    return outer;
}

START_TEST(m10_two_level_accumulation_is_the_written_loop) {
    qg_unit unit = unit_of("hopper_wgmma+promote:128");
    int64_t unfused = 0;
    static const int64_t ks[] = {384, 640, 300};
    for (int i = 0; i < 3; i++) {
        operands o;
        make_operands(&o, "deepseek_act128", "deepseek_w128x128", 5, 130, ks[i]);
        float out[5 * 130];
        uint16_t narrow[5 * 130];
        qg_matmul_options options = {.out_type = QG_FORMAT_FP32};
        ck_assert_msg(qg_emulator_scaled_matmul(&unit, &options, o.m, o.n, o.k, &o.in_a, &o.in_b,
                                                out, NULL) == QG_OK,
                      "%s", qg_detail());
        options.out_type = QG_FORMAT_BF16;
        ck_assert_int_eq(qg_emulator_scaled_matmul(&unit, &options, o.m, o.n, o.k, &o.in_a, &o.in_b,
                                                   narrow, NULL),
                         QG_OK);
        for (int64_t e = 0; e < o.m * o.n; e++) {
            float wanted = outer_sum(&o, e / o.n, e % o.n, true);
            REQUIRE(qg_bits_of_float(out[e]) == qg_bits_of_float(wanted),
                    "element %lld: %a, not %a", (long long)e, (double)out[e], (double)wanted);
            uint32_t bits = qg_bits_of_float(wanted);
            REQUIRE(narrow[e] == (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16), "bf16");
            unfused += qg_bits_of_float(outer_sum(&o, e / o.n, e % o.n, false)) != bits;
        }
        discard_operands(&o);
    }
    ck_assert(unfused > 100); // the fused promotion is seen
}
END_TEST

// ---------------------------------------------------------------------------------------- M11

// Two binary32 products of the same codes, summed in other orders, rounded to BF16. With u = 2^-24
// and S the mean of |a| |b|^T over the outputs: each sum is off by about sqrt(k) u S, at most by 8
// times that (Higham and Mary, SIAM J. Sci. Comput. 41, 2019, constant 8), their difference d by
// twice. RNE is monotone, so outputs whose BF16 spacing, at least 2^-8 |v|, is not below d are one
// spacing apart at most: all beyond the escape 2^8 * 16 sqrt(k) u S. A share d / spacing of the
// outputs rounds apart, by one spacing of at most 2^-7 |v|, so that rel_rms^2 is about
// mean(d 2^-7 |v|) / mean(v^2); with d = 2 sqrt(k) u S and, for data of mean 0, |v| = S / sqrt(k) it
// is 2^-30 k. cosine = 1 - rel_rms^2 / 2.
typedef struct agreement_gate {
    int64_t m, n, k;
    double escape;  // times S
    double rel_rms; // with a factor of 2 to spare
    double cosine;
    const char *reason;
} agreement_gate;

static const agreement_gate gates[] = {
    {64,  96,  1024, 0x1p-7, 0x1p-9,  1 - 0x1p-19, "sqrt(k) = 32: 2^-12 * 2^5, 2 * 2^-15 * 2^5"},
    {130, 129, 256,  0x1p-8, 0x1p-10, 1 - 0x1p-21, "sqrt(k) = 16: 2^-12 * 2^4, 2 * 2^-15 * 2^4"},
};

typedef struct agreement {
    int64_t unequal, apart; // apart: neither within one unit nor both below the escape
    double rel_rms, cosine;
} agreement;

// BF16 patterns as integers in the order of the values.
static int32_t ordinal(uint16_t bits) {
    return bits & 0x8000 ? -(int32_t)(bits & 0x7fff) : (int32_t)bits;
}

static agreement compare(const uint16_t *x, const uint16_t *y, int64_t count, double escape) {
    agreement result = {0};
    double xx = 0, xy = 0, yy = 0, dd = 0;
    for (int64_t i = 0; i < count; i++) {
        double a = (double)qg_float_of_bits((uint32_t)x[i] << 16);
        double b = (double)qg_float_of_bits((uint32_t)y[i] << 16);
        bool is_near = abs(ordinal(x[i]) - ordinal(y[i])) <= 1;
        result.unequal += x[i] != y[i];
        result.apart += !is_near && !(fabs(a) < escape && fabs(b) < escape);
        xx += a * a, yy += b * b, xy += a * b, dd += (a - b) * (a - b);
    }
    result.rel_rms = sqrt(dd / xx);
    result.cosine = xy / sqrt(xx * yy);
    return result;
}

static bool passes(const agreement *a, const agreement_gate *gate) {
    return a->apart == 0 && a->rel_rms <= gate->rel_rms && a->cosine >= gate->cosine;
}

// S: the mean over the outputs of the sum of |a b|.
static double mean_size(const operands *o) {
    double size = 0.0;
    float *a = malloc((size_t)(o->m * o->k) * 4), *b = malloc((size_t)(o->n * o->k) * 4);
    ck_assert(a && b);
    ck_assert_int_eq(
        qg_emulator_dequantize(&o->a.recipe, o->m, o->k, o->a.codes, o->a.scales, 1, 0, a), QG_OK);
    ck_assert_int_eq(
        qg_emulator_dequantize(&o->b.recipe, o->n, o->k, o->b.codes, o->b.scales, 1, 0, b), QG_OK);
    for (int64_t l = 0; l < o->k; l++) {
        double column_a = 0.0, column_b = 0.0;
        for (int64_t i = 0; i < o->m; i++)
            column_a += fabs((double)a[i * o->k + l]);
        for (int64_t j = 0; j < o->n; j++)
            column_b += fabs((double)b[j * o->k + l]);
        size += column_a * column_b;
    }
    free(a);
    free(b);
    return size / (double)(o->m * o->n);
}

// By the CPU runtime (unit NULL) or on a unit of the emulator; scales of a as given.
static void multiply(const operands *o, const char *unit_name, const uint8_t *scales_of_a,
                     uint16_t *out) {
    qg_matmul_options options = {.out_type = QG_FORMAT_BF16};
    qg_matmul_operand a = o->in_a;
    a.scales = scales_of_a;
    qg_unit unit = unit_of(unit_name ? unit_name : "fp32_sequential");
    const qg_backend *backend = qg_backend_find(unit_name ? "emulator" : "cpu");
    ck_assert_msg(backend->scaled_matmul(unit_name ? &unit : NULL, &options, o->m, o->n, o->k, &a,
                                         &o->in_b, out, NULL) == QG_OK,
                  "%s", qg_detail());
}

static void print_agreement(const char *what, const agreement *a) {
    printf("  %s: %lld unequal, %lld apart, rel_rms %.2e, 1 - cosine %.1e\n", what,
           (long long)a->unequal, (long long)a->apart, a->rel_rms, 1 - a->cosine);
}

static void check_gate(const agreement_gate *gate) {
    operands o;
    make_operands(&o, "metrale_act128", "deepseek_w128x128", gate->m, gate->n, gate->k);
    int64_t count = gate->m * gate->n, l = gate->k / GROUP;
    uint16_t *x = malloc((size_t)count * 2), *y = malloc((size_t)count * 2);
    uint8_t *wrong = malloc((size_t)o.a.shape.scales_size);
    ck_assert(x && y && wrong);
    double escape = gate->escape * mean_size(&o);
    multiply(&o, "fp32_sequential", o.a.scales, x);
    multiply(&o, NULL, o.a.scales, y);
    agreement good = compare(x, y, count, escape);
    // Scales [M, L] read as if they lay [L, M].
    qg_scale_order_load((qg_scale_order){QG_ORDER_K_MAJOR, 1}, o.m, l, 4, o.a.scales, wrong);
    multiply(&o, NULL, wrong, y);
    agreement misread = compare(x, y, count, escape);
    multiply(&o, "bf16_sequential", o.a.scales, y);
    agreement narrow = compare(x, y, count, escape);
    printf("k %lld: rel_rms up to %.2e, 1 - cosine up to %.1e\n", (long long)gate->k, gate->rel_rms,
           1 - gate->cosine);
    print_agreement("cpu", &good);
    print_agreement("wrong scale layout", &misread);
    print_agreement("bf16 accumulator", &narrow);
    ck_assert_msg(passes(&good, gate), "%s", gate->reason);
    ck_assert(misread.apart > 0 && misread.rel_rms > gate->rel_rms &&
              misread.cosine < gate->cosine);
    ck_assert(narrow.apart > 0 && narrow.rel_rms > gate->rel_rms && narrow.cosine < gate->cosine);
    free(x);
    free(y);
    free(wrong);
    discard_operands(&o);
}

START_TEST(m11_products_agree_and_a_wrong_scale_layout_does_not) {
    for (size_t i = 0; i < sizeof gates / sizeof gates[0]; i++)
        check_gate(&gates[i]);
}
END_TEST

// ---------------------------------------------------------------------------------------- M14

// Comparisons with the midpoints, > and >= alternating: ties go to the even code. NaN is 6.
static uint8_t e2m1_by_midpoints(float x, bool ties_up) {
    static const float midpoints[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    int code = 0;
    if (isnan(x))
        return 7;
    for (int i = 0; i < 7; i++)
        code += fabsf(x) > midpoints[i] || (fabsf(x) == midpoints[i] && (ties_up || i % 2));
    return (uint8_t)(code | (signbit(x) ? 8 : 0));
}

static void check_e2m1(const char *backend, qg_format type, const void *x, const float *values) {
    qg_recipe recipe = recipe_of("e2m1");
    ck_assert_int_eq(qg_recipe_set_rule(&recipe, QG_RULE_FIXED, 1.0f), QG_OK);
    quantized q = quantize(backend, recipe, (qg_storage){0}, 1, INPUTS, type, x);
    for (int i = 0; i < INPUTS; i++)
        REQUIRE(q.codes[i] == e2m1_by_midpoints(values[i], false), "%s: %a is %x, not %x", backend,
                (double)values[i], q.codes[i], e2m1_by_midpoints(values[i], false));
    discard(&q);
}

START_TEST(m14_e2m1_by_midpoint_compares) {
    static uint16_t narrow[INPUTS];
    static float values[3][INPUTS];
    int ties = 0;
    for (int i = 0; i < INPUTS; i++) {
        narrow[i] = (uint16_t)i;
        values[0][i] = qg_float_of_bits((uint32_t)i << 16);
        values[1][i] = nextafterf(values[0][i], INFINITY);
        values[2][i] = nextafterf(values[0][i], -INFINITY);
        ties += e2m1_by_midpoints(values[0][i], true) != e2m1_by_midpoints(values[0][i], false);
    }
    ck_assert_int_eq(ties, 8); // 0.25, 1.25, 2.5 and 5 of both signs: the sketch with >= is wrong
    for (int b = 0; b < BACKENDS; b++) {
        check_e2m1(backends[b], QG_FORMAT_BF16, narrow, values[0]);
        for (int v = 0; v < 3; v++)
            check_e2m1(backends[b], QG_FORMAT_FP32, values[v], values[v]);
    }
}
END_TEST

START_TEST(m14_e4m3_table_of_all_bytes) {
    qg_format_info info = qg_format_describe(QG_FORMAT_E4M3);
    qg_recipe recipe = recipe_of("e4m3");
    uint8_t codes[256], one[4];
    float x = 1.0f, values[256];
    memcpy(one, &x, 4);
    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    for (int b = 0; b < BACKENDS; b++) {
        ck_assert_int_eq(qg_backend_find(backends[b])
                             ->dequantize(&recipe, NULL, 1, 256, codes, one, 1.0f, 0, values, NULL),
                         QG_OK);
        for (int i = 0; i < 256; i++) {
            int field = i >> 3 & 15, mantissa = i & 7;
            double magnitude = field ? pow(2.0, field - 7) * (1 + mantissa / 8.0)
                                     : pow(2.0, -6) * (mantissa / 8.0);
            double wanted = i & 0x80 ? -magnitude : magnitude,
                   table = qg_decode(&info, (uint64_t)i);
            if ((i & 0x7f) == 0x7f) {
                ck_assert(isnan(table) && isnan(values[i]));
                continue;
            }
            REQUIRE(table == wanted && (double)values[i] == wanted &&
                        (signbit(values[i]) != 0) == (i >> 7 != 0),
                    "byte %02x is %a and %a, not %a", (unsigned)i, table, (double)values[i],
                    wanted);
        }
    }
}
END_TEST

// ---------------------------------------------------------------------------------------- M15

START_TEST(m15_the_rule_of_e8m0_scales_is_selectable) {
    static const struct {
        float amax; // in units of 448: 1.004, 1.25, 1.5, 3
        uint8_t floor, rceil, nearest, nearest_up;
    } cases[] = {
        {450.0f,  127, 128, 127, 127},
        {560.0f,  128, 128, 127, 127},
        {672.0f,  128, 128, 128, 128}, // a tie, up to the even 128
        {1344.0f, 129, 129, 128, 129}, // a tie, down to the even 128
        {671.9f,  128, 128, 127, 127},
        {1344.1f, 129, 129, 129, 129},
    };
    static const char *const rules[] = {"floor", "rceil", "nearest", "nearest_up"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int r = 0; r < 4; r++)
            for (int b = 0; b < BACKENDS; b++) {
                float x[32] = {-1.0f, 2.0f, -cases[i].amax}, fixed;
                uint8_t wanted[] = {cases[i].floor, cases[i].rceil, cases[i].nearest,
                                    cases[i].nearest_up};
                qg_recipe recipe = recipe_of("mxfp8");
                int rule;
                ck_assert_int_eq(qg_rule_parse(rules[r], &rule, &fixed), QG_OK);
                ck_assert_int_eq(qg_recipe_set_rule(&recipe, rule, fixed), QG_OK);
                quantized q =
                    quantize(backends[b], recipe, (qg_storage){0}, 1, 32, QG_FORMAT_FP32, x);
                REQUIRE(q.scales[0] == wanted[r], "%s, %s of %g: byte %d, not %d", backends[b],
                        rules[r], (double)cases[i].amax, q.scales[0], wanted[r]);
                discard(&q);
            }
}
END_TEST

int main(void) {
    const TTest *tests[] = {m01_codes_and_scales_are_those_of_the_text,
                            m03_known_bad_encoders_and_layouts_are_detected,
                            m09_scale_adapter_to_padded_columns_and_back,
                            m10_two_level_accumulation_is_the_written_loop,
                            m11_products_agree_and_a_wrong_scale_layout_does_not,
                            m14_e2m1_by_midpoint_compares,
                            m14_e4m3_table_of_all_bytes,
                            m15_the_rule_of_e8m0_scales_is_selectable};
    return RUN_SUITE("metrale", tests);
}
