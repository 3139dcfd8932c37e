// The software units vectorized across outputs against the scalar text, bit for bit: every unit and
// modifier, data of all kinds, ragged shapes, bias, output types. The encoders of the outputs.
#include <block_data.h>
#include <require.h>
#include <run_suite.h>

#include <product_store_internal.h>
#include <qg_codec.h>
#include <qg_unit.h>

#include <math.h>
#include <string.h>

enum { MOST = 1 << 17, CANCEL = BLOCK_DATA_KINDS, EDGE, INTEGERS, KINDS };

static float a[MOST], b[MOST], bias[512], want[MOST], got[MOST];
static uint64_t state = 29;

static uint32_t draw(void) { return (uint32_t)(block_data_random(&state) >> 32); }

static const char *const units[] = {"fp32_sequential",
                                    "fp32_sequential+rtz",
                                    "fp32_sequential+rtn",
                                    "fp32_fma",
                                    "fp32_blocked:1",
                                    "fp32_blocked:7",
                                    "fp32_blocked:32",
                                    "bf16_sequential",
                                    "bf16_sequential+rtz",
                                    "bf16_sequential+rtn",
                                    "fp64",
                                    "exact",
                                    "fp32_fma+promote:16",
                                    "bf16_sequential+rtn+split:3"};
static const char *const isas[] = {"avx2", "avx512"};

enum { UNITS = sizeof units / sizeof *units };

// Sums next to the overflow threshold of binary32, of bfloat16 and of binary16, to powers of two,
// to ties of bfloat16 and to zeros.
static void fill_edge(float *x, int64_t count) {
    static const float values[] = {0x1.fffffep127f, 0x1.fep127f, 0x1p127f,  0x1.8p104f, 0x1p103f,
                                   0x1p119f,        0x1.8p119f,  0x1p-126f, 0x1p-149f,  0x1p-133f,
                                   65504.0f,        16.0f,       1.0f,      0x1p-8f,    0x1p-24f,
                                   0x1.01p0f,       0.0f,        3.0f};
    enum { COUNT = sizeof values / sizeof *values };
    uint32_t some = draw() % COUNT, others = draw() % COUNT;
    for (int64_t i = 0; i < count; i++) {
        uint32_t which = draw() % 8;
        float value = values[which == 0 ? draw() % COUNT : (which < 4 ? some : others)];
        x[i] = draw() % 2 ? value : -value;
    }
}

static void fill(float *x, int64_t count, int kind) {
    if (kind == EDGE)
        fill_edge(x, count);
    else if (kind == INTEGERS)
        for (int64_t i = 0; i < count; i++)
            x[i] = (float)((int)(draw() % 257) - 128);
    else
        block_data_fill(draw(), kind == CANCEL ? BLOCK_DATA_WIDE : kind, x, count);
}

static void cancel(float *x, float *y, int64_t k) {
    for (int64_t l = 0; l < k / 2; l++) {
        x[k / 2 + l] = -x[k / 2 - 1 - l];
        y[k / 2 + l] = y[k / 2 - 1 - l];
    }
}

static int make(int64_t m, int64_t n, int64_t k) {
    int kind_a = (int)(draw() % KINDS), kind_b = draw() % 2 ? kind_a : (int)(draw() % KINDS);
    ck_assert(m * k <= MOST && n * k <= MOST && m * n <= MOST && n <= 512);
    fill(a, m * k, kind_a), fill(b, n * k, kind_b), fill(bias, n, draw() % 2 ? kind_a : EDGE);
    for (int64_t i = 0; i < m && i < n && kind_a == CANCEL; i++)
        cancel(a + i * k, b + i * k, k);
    return kind_a * 100 + kind_b;
}

static void run(const qg_unit *unit, const qg_matmul_options *options, int64_t m, int64_t n,
                int64_t k, float *out) {
    memset(out, 0x55, (size_t)(m * n) * sizeof *out);
    ck_assert_msg(qg_emulator_matmul(unit, options, m, n, k, a, b, out) == QG_OK, "%s",
                  qg_detail());
}

static void compare(const char *name, int64_t m, int64_t n, int64_t k, int kinds) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    qg_matmul_options options = {.threads = 1 + (int)(draw() % 3)};
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(name, &unit) == QG_OK, "%s", qg_detail());
    options.out_type = types[draw() % 3];
    options.bias = draw() % 3 ? NULL : bias;
    options.scalar = true;
    run(&unit, &options, m, n, k, want);
    options.scalar = false;
    size_t size = options.out_type == QG_FORMAT_FP32 ? 4 : 2;
    for (int isa = 0; isa < 2; isa++) {
        if (qg_unit_use_isa(isas[isa]) != QG_OK)
            continue;
        run(&unit, &options, m, n, k, got);
        for (size_t i = 0; i < (size_t)(m * n); i++) {
            uint32_t x = 0, y = 0;
            memcpy(&x, (char *)want + i * size, size), memcpy(&y, (char *)got + i * size, size);
            REQUIRE(x == y, "%s %s kinds %d %dx%dx%d bias %d size %d at %d: %x, want %x", name,
                    isas[isa], kinds, (int)m, (int)n, (int)k, options.bias != NULL, (int)size,
                    (int)i, y, x);
        }
    }
}

START_TEST(ragged_shapes_equal_the_scalar_text) {
    for (int round = 0; round < 1200; round++) {
        int64_t m = 1 + draw() % 20, n = 1 + draw() % 35, k = 1 + draw() % 70;
        if (round < 8)
            m = round & 1 ? 20 : 1, n = round & 2 ? 35 : 1, k = round & 4 ? 70 : 1;
        int kinds = make(m, n, k);
        for (int u = 0; u < UNITS; u++)
            if (round < 8 || draw() % 4 == 0)
                compare(units[u], m, n, k, kinds);
    }
}
END_TEST

START_TEST(large_shapes_equal_the_scalar_text) {
    static const int64_t shapes[][3] = {
        {70,  130, 600 },
        {65,  1,   1025},
        {1,   65,  1024},
        {129, 257, 40  }
    };
    for (int round = 0; round < 12; round++) {
        const int64_t *s = shapes[round % 4];
        int kinds = make(s[0], s[1], s[2]);
        for (int u = 0; u < UNITS; u++)
            compare(units[u], s[0], s[1], s[2], kinds);
    }
}
END_TEST

// Sums of `exact` at ties of 8, 11 or 24 bits, which a much smaller product breaks, or none does;
// with terms that cancel in half of them.
static void make_near_ties(int64_t m, int64_t n, int64_t k) {
    static const float ties[] = {0x1p-8f, 0x1p-11f, 0x1p-24f};
    bool large = draw() % 2;
    memset(a, 0, (size_t)(m * k) * sizeof *a);
    fill(b, n * k, BLOCK_DATA_ORDINARY);
    for (int64_t j = 0; j < n; j++) {
        float *y = b + j * k;
        y[0] = 1.0f, y[1] = ties[draw() % 3];
        y[2] = ldexpf(draw() % 2 ? 1.0f : -1.0f, -35 - (int)(draw() % (large ? 100 : 30)));
        y[k - 2] = y[k - 1] = (float)(draw() % 3);
    }
    for (int64_t i = 0; i < m; i++) {
        float *x = a + i * k;
        x[0] = x[1] = 1.0f, x[2] = draw() % 3 ? 1.0f : 0.0f;
        x[k - 2] = large ? 0x1p20f : 0.0f, x[k - 1] = -x[k - 2];
    }
}

START_TEST(near_ties_are_decided) {
    for (int round = 0; round < 600; round++) {
        int64_t m = 1 + draw() % 12, n = 1 + draw() % 20, k = 5 + draw() % (round % 16 ? 40 : 900);
        make_near_ties(m, n, k);
        fill(bias, n, BLOCK_DATA_ALL_ZERO);
        compare("exact", m, n, k, -1);
        int64_t at = 1 + draw() % 2; // the tie, or what breaks it, is the bias
        for (int64_t j = 0; j < n; j++)
            bias[j] = b[j * k + at], b[j * k + at] = 0.0f;
        compare("exact", m, n, k, -2);
    }
}
END_TEST

// One output next to a tie of its type among zeros: its tile is not summed again as a whole. Its
// rows of a and b are parallel: their norms bound the sum tightly.
static void make_lone_tie(int64_t m, int64_t n, int64_t k) {
    enum { TERMS = 5, TIES = 6 };
    static const float ties[TIES][TERMS] = {
        {1.0f, 0x1p-12f, 0.0f,     0.0f,     0x1p-40f}, // 1 + 2^-24 + 2^-80
        {1.0f, 0x1p-12f, 0.0f,     0.0f,     0x1p-27f}, // 2^54 units and more: no binary64 number
        {1.0f, 1.0f,     0x1p-12f, 0x1p-12f, 0x1p-26f}, // between 2^53 and 2^54 units
        {1.0f, 0x1p-4f,  0.0f,     0.0f,     0x1p-40f}, // bfloat16
        {1.0f, 1.0f,     0x1p-4f,  0x1p-4f,  0x1p-26f},
        {1.0f, 0x1p-6f,  0x1p-6f,  0.0f,     0x1p-40f}, // binary16
    };
    const float *tie = ties[draw() % TIES];
    float *x = a + (int64_t)(draw() % (uint32_t)m) * k,
          *y = b + (int64_t)(draw() % (uint32_t)n) * k;
    memset(a, 0, (size_t)(m * k) * sizeof *a), memset(b, 0, (size_t)(n * k) * sizeof *b);
    for (int t = 0; t < TERMS; t++) {
        int64_t at = t < TERMS - 1 ? t : k - 1;
        x[at] = y[at] = tie[t];
    }
}

START_TEST(lone_near_ties_are_decided) {
    memset(bias, 0, sizeof bias);
    for (int round = 0; round < 400; round++) {
        int64_t m = 33 + draw() % 32, n = 33 + draw() % 32, k = 5 + draw() % 60;
        if (round < 40)
            m = n = k = 64;
        make_lone_tie(m, n, k);
        compare("exact", m, n, k, -3);
    }
}
END_TEST

static void check_store(uint32_t bits) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static const qg_conversion nearest = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    float x = qg_float_of_bits(bits);
    // Near x in binary64, so that two roundings would differ from one.
    double doubles[] = {x, (double)x * (1 + 0x1p-52), (double)x * (1 - 0x1p-50),
                        (double)x * 1.0001};
    for (int i = 0; i < 3; i++) {
        qg_format_info info = qg_format_describe(types[i]);
        float room = 0.0f;
        uint32_t code;
        store_floats(types[i], 1, &x, &room, 0);
        memcpy(&code, &room, sizeof code);
        REQUIRE(code == qg_encode(&info, x, &nearest, 0), "type %d: %x gives %x", i, bits, code);
        for (int d = 0; d < 4; d++)
            REQUIRE(store_code(types[i], doubles[d]) == qg_encode(&info, doubles[d], &nearest, 0),
                    "type %d: %a gives %x", i, doubles[d], store_code(types[i], doubles[d]));
    }
}

START_TEST(stores_equal_the_encoder) {
    static const uint32_t lows[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0xfff, 0x1000, 0x1001};
    for (uint32_t high = 0; high < 0x10000; high++) {
        for (size_t i = 0; i < sizeof lows / sizeof *lows; i++)
            check_store(high << 16 | lows[i]);
        check_store(high << 16 | (draw() & 0xffff));
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {ragged_shapes_equal_the_scalar_text, large_shapes_equal_the_scalar_text,
                            near_ties_are_decided, lone_near_ties_are_decided,
                            stores_equal_the_encoder};
    return RUN_SUITE("unit_software_simd", tests);
}
