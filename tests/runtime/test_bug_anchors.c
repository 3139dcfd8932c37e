// Inputs at which quantizers of others went wrong (spec/gpu.md B.2, B.5), with the bytes that are
// right, on the emulator and on every instruction set of the CPU runtime: one table of blocks, one
// of padded scales. Expected values follow from the formulas of the recipes; each row says how.
// (Rows on grid Y, barriers, shuffles: tests/kernels.)
#include <cpu_check.h>
#include <require.h>
#include <run_suite.h>

#include <qg_recipe_name.h>

#include <math.h>
#include <string.h>

enum { LONGEST = 128, MOST = 129 * 96, POISON = 0xff };

// What each runs on: the emulator, then every instruction set of the CPU runtime.
static const qg_backend *backend_at(size_t i, const char **name) {
    *name = i ? cpu_check_isa(i - 1) : "emulator";
    if (!*name) {
        ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
        return NULL;
    }
    if (i)
        ck_assert_int_eq(qg_cpu_use_isa(*name), QG_OK);
    return qg_backend_find(i ? "cpu" : "emulator");
}

// One block: four leading elements, `rest` after them; the stored scale, the codes.
typedef struct anchor {
    const char *bug; // whose, and how the right bytes come about
    const char *recipe, *rule;
    qg_format type;
    float x[4], rest;
    uint32_t scale;
    uint8_t codes[4], rest_code;
} anchor;

#define F32 QG_FORMAT_FP32
#define B16 QG_FORMAT_BF16

// clang-format off: one row per input
static const anchor anchors[] = {
  // A zero block: 0/0. Each recipe's own scale, codes of the zeros' signs.
    {"zero block, OCP",                              "mxfp8",        NULL,        B16, {0.0f, -0.0f},                                         0.0f, 0x00,       {0x00, 0x80}, 0x00},
    {"zero block, TE",                               "te_mxfp8",     NULL,        B16, {0.0f, -0.0f},                                         0.0f, 0x00,       {0x00, 0x80}, 0x00},
    {"zero block, vLLM: 2^-33",
     "vllm_ue8m0",                                                   NULL,
     B16,                                                                              {0.0f, -0.0f},
     0.0f,                                                                                                                                          0x5e,
     {0x00, 0x80},
     0x00                                                                                                                                                                         },
    {"zero block, vLLM in Triton: 2^-42",
     "vllm_ue8m0_triton",                                            NULL,
     B16,                                                                              {0.0f},
     0.0f,                                                                                                                                          0x55,
     {0x00},
     0x00                                                                                                                                                                         },
    {"zero block, RLX: 1",                           "rlx_mxfp8",    NULL,        B16, {0.0f},                                                0.0f, 0x7f,       {0x00},       0x00},
    {"zero block, Metrale: 1e-12",
     "metrale_act128",                                               NULL,
     B16,                                                                              {0.0f, -0.0f},
     0.0f,                                                                                                                                          0x2b8cbccc,
     {0x00, 0x80},
     0x00                                                                                                                                                                         },
    {"zero block, DeepSeek: 1e-10/448",
     "deepseek_act128",                                              NULL,
     B16,                                                                              {0.0f},
     0.0f,                                                                                                                                          0x2a7b5123,
     {0x00},
     0x00                                                                                                                                                                         },
    {"zero tensor, TE: 1",
     "te_e4m3",                                                      NULL,
     B16,                                                                              {0.0f, -0.0f},
     0.0f,                                                                                                                                          0x3f800000,
     {0x00, 0x80},
     0x00                                                                                                                                                                         },
 // flashinfer issue 2440: byte 0 stands for 2^-127, not for 0. x = 0x1.fep-119 * 2^127 = 510.
    {"amax 3e-36, floor",                            "mxfp8",        NULL,        B16, {3e-36f, -3e-36f},                                     0.0f, 0x00,       {0x7e, 0xfe}, 0x00},
    {"amax 3e-36, rceil: 255 * 2^-126",
     "te_mxfp8",                                                     NULL,
     B16,                                                                              {3e-36f, -3e-36f},
     0.0f,                                                                                                                                          0x01,
     {0x78, 0xf8},
     0x00                                                                                                                                                                         },
    {"amax 2^-119 under byte 0: 256",
     "te_mxfp8",                                                     NULL,
     B16,                                                                              {0x1p-119f, 0x1p-127f},
     0.0f,                                                                                                                                          0x00,
     {0x78, 0x38},
     0x00                                                                                                                                                                         },
    {"amax 2^-149 under byte 0: 2^-22 is 0",
     "te_mxfp8",                                                     NULL,
     F32,                                                                              {0x1p-149f, -0x1p-149f},
     0.0f,                                                                                                                                          0x00,
     {0x00, 0x80},
     0x00                                                                                                                                                                         },
 // flashinfer PR 4023: 1 over byte 254 is 2^-127, so that finite numbers stay numbers.
    {"Inf under byte 254",
     "te_mxfp8",                                                     NULL,
     B16,                                                                              {INFINITY, -INFINITY, 0x1p127f, -0x1p118f},
     1.0f,                                                                                                                                          0xfe,
     {0x7e, 0xfe, 0x38, 0x81},
     0x00                                                                                                                                                                         },
    {"Inf, OCP: NaN",
     "mxfp8",                                                        NULL,
     B16,                                                                              {INFINITY, 1.0f},
     0.0f,                                                                                                                                          0xff,
     {0x7f, 0x7f, 0x7f, 0x7f},
     0x7f                                                                                                                                                                         },
    {"amax FLT_MAX, floor: byte 246",
     "mxfp8",                                                        NULL,
     F32,                                                                              {0x1.fffffep127f, -0x1p127f},
     1.0f,                                                                                                                                          0xf6,
     {0x7e, 0xf8},
     0x00                                                                                                                                                                         },
    {"amax FLT_MAX, rceil: byte 247",
     "te_mxfp8",                                                     NULL,
     F32,                                                                              {0x1.fffffep127f, -0x1p127f},
     1.0f,                                                                                                                                          0xf7,
     {0x78, 0xf0},
     0x00                                                                                                                                                                         },
 // flashinfer PR 5024: 448/amax overflows below 448/FLT_MAX. It becomes the input's largest.
    {"448/6e-38, TE from fp32: 20.4",
     "te_e4m3",                                                      NULL,
     F32,                                                                              {6e-38f, -6e-38f},
     0.0f,                                                                                                                                          0x00200000,
     {0x5a, 0xda},
     0x00                                                                                                                                                                         },
    {"448/6e-38, TE from bf16: 20.3",
     "te_e4m3",                                                      NULL,
     B16,                                                                              {6e-38f, -6e-38f},
     0.0f,                                                                                                                                          0x00202020,
     {0x5a, 0xda},
     0x00                                                                                                                                                                         },
    {"448/6e-38, pow2",                              "te_e4m3_pow2", NULL,        F32, {6e-38f},                                              0.0f, 0x00400000, {0x52},       0x00},
    {"6e-38 by division",
     "e4m3",                                                         "amax",
     F32,                                                                              {6e-38f, -6e-38f},
     0.0f,                                                                                                                                          0x00017557,
     {0x7e, 0xfe},
     0x00                                                                                                                                                                         },
    {"2^-149 by division: X rounds to 0, is 2^-149",
     "e4m3",                                                         "amax",
     F32,                                                                              {0x1p-149f},
     0.0f,                                                                                                                                          0x00000001,
     {0x38},
     0x00                                                                                                                                                                         },
 // SGLang PR 28418: the scale is rounded before the elements are divided by it. 1 / 2^-8 = 256.
    {"amax 1 dequantizes to 1",
     "vllm_ue8m0",                                                   NULL,
     B16,                                                                              {1.0f, -0.5f},
     0.0f,                                                                                                                                          0x77,
     {0x78, 0xf0},
     0x00                                                                                                                                                                         },
    {"amax 1, pow2 scale",
     "te_e4m3_pow2",                                                 NULL,
     B16,                                                                              {1.0f, -0.5f},
     0.0f,                                                                                                                                          0x3b800000,
     {0x78, 0xf0},
     0x00                                                                                                                                                                         },
 // SGLang PR 25733: a scale that is packed as E8M0 is a power of two. 672 / 448 = 1.5.
    {"amax 672: 2, not 1.5",
     "te_e4m3_pow2",                                                 NULL,
     F32,                                                                              {672.0f, -2.0f},
     0.0f,                                                                                                                                          0x40000000,
     {0x7a, 0xb8},
     0x00                                                                                                                                                                         },
    {"amax 672, E8M0",                               "vllm_ue8m0",   NULL,        F32, {672.0f, -2.0f},                                       0.0f, 0x80,       {0x7a, 0xb8}, 0x00},
 // FreeToken PR 85: one rounding, not one to binary16 before.
    {"double rounding: 416, 288, 144",
     "e4m3",                                                         "fixed:1",
     F32,                                                                              {400.199585f, 272.156555f, 136.002075f, -400.199585f},
     0.0f,                                                                                                                                          0x3f800000,
     {0x7d, 0x79, 0x71, 0xfd},
     0x00                                                                                                                                                                         },
    {"1.0625 + 2^-23 is above the tie",
     "e4m3",                                                         "fixed:1",
     F32,                                                                              {0x1.1p0f, 0x1.100002p0f, 0x1.0ffffep0f},
     0.0f,                                                                                                                                          0x3f800000,
     {0x38, 0x39, 0x38},
     0x00                                                                                                                                                                         },
 // gpu.md B.2, 2: the neighbours of 1.75, where a reciprocal that is off by an ulp shows.
    {"1.75",                                         "mxfp8",        "rceil",     F32, {0x1.cp0f},                                            0.0f, 0x77,       {0x7e},       0x00},
    {"1.75 + ulp",                                   "mxfp8",        "rceil",     F32, {0x1.c00002p0f},                                       0.0f, 0x78,       {0x76},       0x00},
    {"1.75 - ulp",                                   "mxfp8",        "rceil",     F32, {0x1.bffffep0f},                                       0.0f, 0x77,       {0x7e},       0x00},
    {"1.75 - ulp",                                   "mxfp8",        "rceil_mul", F32, {0x1.bffffep0f},                                       0.0f, 0x77,       {0x7e},       0x00},
    {"1.75 - ulp",                                   "mxfp8",        "rceil_div", F32, {0x1.bffffep0f},                                       0.0f, 0x77,       {0x7e},       0x00},
 // gpu.md B.2, 6: NaN is 7F, 7E or 0, as the recipe says, and never FE; TE's is in the scale.
    {"NaN, Metrale: largest",
     "metrale_act128",                                               NULL,
     B16,                                                                              {NAN, 448.0f, -448.0f},
     0.0f,                                                                                                                                          0x3f800000,
     {0x7e, 0x7e, 0xfe},
     0x00                                                                                                                                                                         },
    {"NaN, vLLM as encoded",
     "vllm_ue8m0",                                                   NULL,
     B16,                                                                              {NAN, 448.0f},
     0.0f,                                                                                                                                          0x7f,
     {0x7f, 0x7e},
     0x00                                                                                                                                                                         },
    {"NaN, RLX: 0",                                  "rlx_mxfp8",    NULL,        B16, {NAN, 448.0f},                                         0.0f, 0x7f,       {0x00, 0x7e}, 0x00},
    {"NaN, OCP: in the scale",
     "mxfp8",                                                        NULL,
     B16,                                                                              {NAN, 448.0f},
     0.0f,                                                                                                                                          0xff,
     {0x7f, 0x7f, 0x7f, 0x7f},
     0x7f                                                                                                                                                                         },
};
// clang-format on

static qg_recipe recipe_of(const anchor *a) {
    qg_recipe recipe;
    int rule;
    float fixed;
    ck_assert_msg(qg_recipe_find(a->recipe, &recipe) == QG_OK, "%s", qg_detail());
    if (a->rule) {
        ck_assert_int_eq(qg_rule_parse(a->rule, &rule, &fixed), QG_OK);
        ck_assert_int_eq(qg_recipe_set_rule(&recipe, rule, fixed), QG_OK);
    }
    return recipe;
}

static void check_block(const anchor *a, const char *name, const uint8_t *codes,
                        const uint8_t *scales, int bytes, int64_t k, int64_t block) {
    uint32_t scale = 0;
    for (int b = 0; b < bytes; b++)
        scale |= (uint32_t)scales[block * bytes + b] << (8 * b);
    REQUIRE(scale == a->scale, "%s, %s: scale %08x, not %08x", a->bug, name, scale, a->scale);
    for (int64_t i = 0; i < k; i++) {
        uint8_t wanted = i < 4 ? a->codes[i] : a->rest_code;
        REQUIRE(codes[block * k + i] == wanted, "%s, %s: code %d of block %d is %02x, not %02x",
                a->bug, name, (int)i, (int)block, codes[block * k + i], wanted);
    }
}

// `blocks` rows of one block each, all the same.
static void check_anchor(const anchor *a, int64_t blocks) {
    float x[3 * LONGEST];
    uint16_t narrow[3 * LONGEST];
    uint8_t codes[3 * LONGEST], scales[12];
    const char *name;
    qg_recipe recipe = recipe_of(a);
    qg_quantize_options options = {.input_type = a->type};
    int64_t k = recipe.layout.kind == QG_LAYOUT_GROUP ? recipe.layout.columns : LONGEST;
    int bytes = qg_rule_scale_format(recipe.rule) == QG_FORMAT_FP32 ? 4 : 1;
    for (int64_t i = 0; i < blocks * k; i++) {
        x[i] = i % k < 4 ? a->x[i % k] : a->rest;
        narrow[i] = (uint16_t)((qg_bits_of_float(x[i]) + 0x8000) >> 16);
    }
    for (size_t i = 0; backend_at(i, &name); i++) {
        memset(scales, POISON, sizeof scales);
        memset(codes, POISON, sizeof codes);
        ck_assert_msg(
            backend_at(i, &name)->quantize(&recipe, &options, NULL, blocks, k,
                                           a->type == QG_FORMAT_FP32 ? (void *)x : (void *)narrow,
                                           codes, scales, NULL, NULL) == QG_OK,
            "%s", qg_detail());
        int64_t scaled = recipe.layout.kind == QG_LAYOUT_GROUP ? blocks : 1;
        for (int64_t block = 0; block < scaled; block++)
            check_block(a, name, codes, scales, bytes, k, block);
    }
}

START_TEST(blocks_of_known_bugs) {
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0]; i++)
        for (int64_t blocks = 1; blocks <= 3; blocks += 2)
            check_anchor(&anchors[i], blocks);
}
END_TEST

// TE PR 3262, torchao PR 4725: byte 0 is 2^-127, 255 is NaN, whatever the code.
START_TEST(e8m0_bytes_0_254_and_255_decode) {
    static const struct {
        uint8_t scale, code;
        float value;
    } cases[] = {
        {0,   0x38, 0x1p-127f   },
        {0,   0x01, 0x1p-136f   },
        {0,   0xfe, -0x1.cp-119f},
        {254, 0x38, 0x1p127f    },
        {254, 0x3f, 0x1.ep127f  },
        {254, 0x40, INFINITY    },
        {254, 0xfe, -INFINITY   },
        {254, 0x01, 0x1p118f    },
        {255, 0x38, NAN         },
        {255, 0x00, NAN         },
    };
    const char *name;
    qg_recipe recipe;
    ck_assert_int_eq(qg_recipe_find("mxfp8", &recipe), QG_OK);
    for (size_t i = 0; backend_at(i, &name); i++)
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            uint8_t codes[32];
            float q[32];
            memset(codes, cases[c].code, sizeof codes);
            ck_assert_int_eq(backend_at(i, &name)->dequantize(&recipe, NULL, 1, 32, codes,
                                                              &cases[c].scale, 1.0f, 0, q, NULL),
                             QG_OK);
            for (int e = 0; e < 32; e++)
                REQUIRE(isnan(cases[c].value) ? isnan(q[e]) : q[e] == cases[c].value,
                        "%s: code %02x under byte %d is %a, not %a", name, cases[c].code,
                        cases[c].scale, (double)q[e], (double)cases[c].value);
        }
}
END_TEST

// vLLM PR 45739, aiter PR 2900, rocm-libraries PR 11775: every byte of a padded scale buffer is
// written, padding 0, also where K is no multiple of the tile's columns and M is small or ragged.
static void check_padding(const char *recipe_name, qg_scale_order order, int64_t m, int64_t k) {
    static float x[MOST];
    static uint8_t codes[MOST], scales[1 << 14];
    const char *name;
    qg_recipe recipe;
    qg_storage storage = {.order = order};
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    qg_storage_shape shape;
    float tensor;
    ck_assert_int_eq(qg_recipe_find(recipe_name, &recipe), QG_OK);
    ck_assert_msg(qg_storage_shape_of(&recipe, &storage, m, k, &shape) == QG_OK, "%s", qg_detail());
    ck_assert(shape.scales_size < (int64_t)sizeof scales && m * k <= MOST);
    for (int64_t i = 0; i < m * k; i++)
        x[i] = (float)(1 + i % 5) * ldexpf(1.0f, (int)(i / 16 % 7));
    for (size_t i = 0; backend_at(i, &name); i++) {
        memset(scales, POISON, sizeof scales);
        ck_assert_int_eq(backend_at(i, &name)->quantize(&recipe, &options, &storage, m, k, x, codes,
                                                        scales, &tensor, NULL),
                         QG_OK);
        int64_t rows = shape.shape.blocks.block_rows, columns = shape.shape.blocks.block_columns;
        for (int64_t offset = 0; offset < shape.scales_size; offset++) {
            qg_scale_place p = qg_scale_order_place(order, rows, columns, offset);
            bool is_real = p.i < rows && p.j < columns;
            REQUIRE(is_real ? scales[offset] != 0 && scales[offset] != POISON : scales[offset] == 0,
                    "%s, %s: scale %lld of %lld x %lld is %02x", recipe_name, name,
                    (long long)offset, (long long)m, (long long)k, scales[offset]);
        }
        REQUIRE(scales[shape.scales_size] == POISON, "%s: past the scales", name);
    }
}

START_TEST(padding_of_scales_is_written) {
    static const qg_scale_order orders[] = {
        {QG_ORDER_TILE128X4, 0 },
        {QG_ORDER_TILE8X4,   0 },
        {QG_ORDER_K_MAJOR,   16}
    };
    static const int64_t ms[] = {1, 2, 8, 129}, ks[] = {96, 33, 17};
    for (int o = 0; o < 3; o++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 3; j++) {
                check_padding("te_mxfp8", orders[o], ms[i], ks[j]);
                check_padding("nvfp4", orders[o], ms[i], ks[j]);
            }
}
END_TEST

// SGLang PR 4231: 17 groups, no multiple of what a thread block takes.
START_TEST(seventeen_groups) {
    float x[17 * 128];
    uint8_t codes[17 * 128], scales[17];
    const char *name;
    qg_recipe recipe;
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32};
    ck_assert_int_eq(qg_recipe_find("vllm_ue8m0", &recipe), QG_OK);
    for (int i = 0; i < 17 * 128; i++)
        x[i] = i % 128 == 127 ? ldexpf(448.0f, i / 128 - 8) : 0.0f;
    for (size_t i = 0; backend_at(i, &name); i++) {
        ck_assert_int_eq(backend_at(i, &name)->quantize(&recipe, &options, NULL, 1, 17 * 128, x,
                                                        codes, scales, NULL, NULL),
                         QG_OK);
        for (int group = 0; group < 17; group++)
            REQUIRE(scales[group] == 127 + group - 8 && codes[group * 128 + 127] == 0x7e,
                    "%s: group %d", name, group);
    }
}
END_TEST

int main(void) {
    const TTest *tests[] = {blocks_of_known_bugs, e8m0_bytes_0_254_and_255_decode,
                            padding_of_scales_is_written, seventeen_groups};
    return RUN_SUITE("bug_anchors", tests);
}
