// The SIMD variants of the unit panels against the scalar model, bit for bit: every row of the unit
// table that they take, raw and tame codes, ragged shapes. What qg_unit_use_isa installs.
#include <block_data.h>
#include <require.h>
#include <run_suite.h>

#include <qg_emulator.h>
#include <qg_init.h>
#include <qg_recipe_name.h>
#include <unit_internal.h>

#include <stdlib.h>
#include <string.h>

static bool processor_has(int isa) {
    qg_cpu_features cpu = qg_cpu_detect();
    bool avx2 = cpu.avx2 && cpu.fma && cpu.f16c;
    return isa == 0 ? avx2 : avx2 && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl;
}

static uint64_t state = 0x853C49E6748FEA9Bull;

static uint32_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static void fill(uint8_t *out, qg_format format, int64_t count, int tame) {
    qg_format_info info = qg_format_describe(format);
    for (int64_t i = 0; i < count; i++) {
        uint32_t code = draw();
        if (tame) {
            uint32_t range = info.ebits > 4 ? 16u << info.mbits : (uint32_t)info.max_code + 1;
            code = draw() % range + (info.ebits > 4 ? ((uint32_t)info.bias - 8) << info.mbits : 0);
            code = (code | (draw() & 1) << (info.ebits + info.mbits)) << info.shift;
        }
        if (info.bits < 8)
            code &= (1u << info.bits) - 1;
        memcpy(out + i * qg_format_code_bytes(&info), &code, (size_t)qg_format_code_bytes(&info));
    }
}

// Scales past the last element are 0.
static void fill_scales(uint8_t *out, int64_t rows, int64_t count, const qg_unit_row *row,
                        int64_t k, int tame) {
    for (int64_t i = 0; i < rows * count; i++) {
        bool used = i % count * row->scale_block < k;
        uint32_t code = tame ? 110 + draw() % 16 : draw();
        out[i] = (uint8_t)(used ? code : 0);
    }
}

// What a case promotes: nothing, or every `promote` elements, as sums or with factors.
typedef struct promotion {
    int64_t interval;
    bool scaled;
} promotion;

// Mostly ordinary; some tiny, huge, infinite or NaN.
static float *make_factors(int64_t count) {
    float *out = malloc((size_t)(count + 1) * sizeof *out);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = draw();
        if (draw() % 64)
            bits = (bits & 0x807FFFFF) | (127 - 20 + draw() % 40) << 23;
        memcpy(&out[i], &bits, sizeof bits);
    }
    return out;
}

static int taken; // comparisons made

static void compare(const qg_unit_row *row, qg_format fa, qg_format fb, int64_t m, int64_t n,
                    int64_t k, int tame, promotion promote) {
    qg_format_info ia = qg_format_describe(fa), ib = qg_format_describe(fb);
    int64_t scales =
        row->scale == QG_UNIT_NO_SCALE ? 0 : (k + row->k - 1) / row->k * row->k / row->scale_block;
    qg_unit_product p = {.row = row, .m = m, .n = n, .k = k, .threads = 2};
    p.a = (qg_unit_matrix){fa, NULL, k * qg_format_code_bytes(&ia), NULL, scales};
    p.b = (qg_unit_matrix){fb, NULL, k * qg_format_code_bytes(&ib), NULL, scales};
    uint8_t *a = malloc((size_t)(m * p.a.stride)), *b = malloc((size_t)(n * p.b.stride));
    uint8_t *sa = malloc((size_t)(m * scales + 1)), *sb = malloc((size_t)(n * scales + 1));
    float *want = malloc((size_t)(m * n) * 4), *got = malloc((size_t)(m * n) * 4);
    fill(a, fa, m * k, tame), fill(b, fb, n * k, tame);
    fill_scales(sa, m, scales, row, k, tame), fill_scales(sb, n, scales, row, k, tame);
    p.a.codes = a, p.b.codes = b;
    if (scales)
        p.a.scales = sa, p.b.scales = sb;
    p.promote = promote.interval;
    int64_t intervals = promote.interval ? (k + promote.interval - 1) / promote.interval : 0;
    float *fx = make_factors(m * intervals), *fy = make_factors(n * intervals);
    if (promote.scaled)
        p.row_factors = fx, p.column_factors = fy;
    p.acc = want;
    if (qg_unit_panel_scalar(&p) == QG_OK)
        for (int isa = 0; isa < 2; isa++) {
            p.acc = got;
            if ((isa ? qg_unit_panel_avx512 : qg_unit_panel_avx2)(&p) != QG_OK)
                continue;
            taken++;
            for (int64_t i = 0; i < m * n; i++)
                REQUIRE(
                    memcmp(&want[i], &got[i], 4) == 0,
                    "isa %d, unit %s formats %u %u L %d F %d %ldx%ldx%ld tame %d promote %ld %d "
                    "at %ld: %a, want %a",
                    isa, qg_unit_listed(row->unit), fa, fb, row->length, row->fraction, (long)m,
                    (long)n, (long)k, tame, (long)promote.interval, promote.scaled, (long)i,
                    (double)got[i], (double)want[i]);
        }
    free(a), free(b), free(sa), free(sb), free(want), free(got), free(fx), free(fy);
}

static const qg_format formats[] = {QG_FORMAT_E4M3, QG_FORMAT_E5M2, QG_FORMAT_E2M3, QG_FORMAT_E3M2,
                                    QG_FORMAT_E2M1, QG_FORMAT_FP16, QG_FORMAT_BF16, QG_FORMAT_TF32};
enum { COUNT = sizeof formats / sizeof *formats };

START_TEST(rows_equal_the_scalar_model) {
    for (size_t i = 0; qg_unit_row_at(i); i++) {
        const qg_unit_row *row = qg_unit_row_at(i);
        for (int x = 0; x < COUNT; x++)
            for (int y = 0; y < COUNT; y++)
                if (qg_unit_row_takes(row, formats[x]) && qg_unit_row_takes(row, formats[y]) &&
                    ((formats[x] != QG_FORMAT_FP16 && formats[x] != QG_FORMAT_BF16) || x == y))
                    for (int tame = 0; tame < 2; tame++) {
                        int64_t m = 1 + draw() % 40, n = 1 + draw() % 70;
                        compare(row, formats[x], formats[y], m, n, 1 + draw() % 200, tame,
                                (promotion){0, false});
                    }
    }
}
END_TEST

static bool has_avx2_kernel(const qg_unit_row *row) {
    return row->model == QG_MODEL_T || row->model == QG_MODEL_ST || row->model == QG_MODEL_GST ||
           row->model == QG_MODEL_PAIRS;
}

// Intervals of whole instructions, some of them not of whole panels of the kernels; the last one
// may be short, K may end in the first.
START_TEST(promoted_rows_equal_the_scalar_model) {
    static const int64_t intervals[] = {32, 64, 96, 100, 128, 256, 1000};
    enum { INTERVALS = sizeof intervals / sizeof *intervals };
    for (size_t i = 0; qg_unit_row_at(i); i++) {
        const qg_unit_row *row = qg_unit_row_at(i);
        for (int x = 0; x < COUNT; x++) {
            if (!qg_unit_row_takes(row, formats[x]) || row->accumulator != QG_FORMAT_FP32)
                continue;
            for (int at = 0; at < 2 * INTERVALS; at++) {
                int64_t interval = intervals[at / 2];
                if (interval % row->k)
                    continue;
                taken = 0;
                compare(row, formats[x], formats[x], 1 + draw() % 20, 1 + draw() % 70,
                        1 + draw() % 400, draw() % 4 != 0, (promotion){interval, at % 2});
                REQUIRE(taken == 2 || !has_avx2_kernel(row) || !processor_has(0),
                        "%s, format %u: %d variants take +promote:%ld", qg_unit_listed(row->unit),
                        formats[x], taken, (long)interval);
            }
        }
    }
}
END_TEST

// -------------------------------------------------------------------------------- qg_unit_use_isa

enum { M = 33, N = 17, K = 256 };

// A product of two matrices of a recipe: want_impl (NULL: any) runs it, with the scalar bytes.
static void run_product(const char *unit_name, const char *recipe_name, const char *want_impl) {
    static float x[M * K], want[M * N], got[M * N];
    static uint8_t codes[2][M * K], scales[2][M * K];
    qg_recipe recipe;
    qg_unit unit;
    ck_assert_msg(qg_recipe_find(recipe_name, &recipe) == QG_OK, "%s", qg_detail());
    ck_assert_msg(qg_unit_parse(unit_name, &unit) == QG_OK, "%s", qg_detail());
    qg_quantize_options quantize = {.input_type = QG_FORMAT_FP32, .threads = 1};
    qg_matmul_operand in[2];
    for (int i = 0; i < 2; i++) {
        float tensor = 1.0f;
        block_data_fill(7 + (uint64_t)i, 0, x, M * K);
        ck_assert_msg(qg_emulator_quantize(&recipe, &quantize, i ? N : M, K, x, codes[i], scales[i],
                                           &tensor, NULL) == QG_OK,
                      "%s", qg_detail());
        in[i] = (qg_matmul_operand){&recipe, codes[i], scales[i], tensor};
    }
    qg_matmul_options options = {.out_type = QG_FORMAT_FP32, .threads = 1};
    const char *impl = NULL;
    ck_assert_msg(qg_emulator_scaled_matmul(&unit, &options, M, N, K, &in[0], &in[1], got, &impl) ==
                      QG_OK,
                  "%s", qg_detail());
    ck_assert(impl && (!want_impl || !strcmp(impl, want_impl)));
    options.scalar = true;
    ck_assert_int_eq(
        qg_emulator_scaled_matmul(&unit, &options, M, N, K, &in[0], &in[1], want, &impl), QG_OK);
    ck_assert_str_eq(impl, "scalar");
    ck_assert_mem_eq(got, want, sizeof want);
}

static void run_products(const char *want_impl) {
    run_product("hopper_wgmma", "e4m3", want_impl);
    run_product("hopper_wgmma+promote:64+split:2", "e5m2", want_impl);
    run_product("hopper_wgmma+promote:128", "deepseek_act128", want_impl);
    run_product("hopper_mma_fp8", "e4m3", want_impl);
    run_product("blackwell_mma_fp8+promote:128", "deepseek_act128", want_impl);
    run_product("blackwell_mx+promote:96", "mxfp8", want_impl);
    run_product("blackwell_mx", "mxfp8", want_impl);
    run_product("blackwell_mxf4", "nvfp4", want_impl);
    run_product("blackwell_mxf4+promote:64", "mxfp4", want_impl);
}

START_TEST(isa_is_installed) {
    static const char *const names[] = {"avx2", "avx512"};
    unsetenv("QG_ISA");
    run_products("scalar"); // nothing is installed unasked
    const char *best = "scalar";
    ck_assert_str_eq(qg_unit_isa(), "scalar");
    for (int i = 0; i < 2; i++) {
        qg_status status = qg_unit_use_isa(names[i]);
        ck_assert_msg(status == QG_OK || (status == QG_ERROR_UNSUPPORTED && *qg_detail()), "%s",
                      names[i]);
        ck_assert(status != QG_OK || processor_has(i));
        best = status == QG_OK ? names[i] : best;
        run_products(best);
        ck_assert_str_eq(qg_unit_isa(), best);
    }
    ck_assert_int_eq(qg_unit_use_isa("scalar"), QG_OK);
    run_products("scalar");
    ck_assert_int_eq(qg_unit_use_isa(NULL), QG_OK);
    run_products(best);
    ck_assert_int_eq(qg_unit_use_isa("neon"), QG_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "neon"));
    run_products(best); // stays
    setenv("QG_ISA", "scalar", 1);
    ck_assert_int_eq(qg_unit_use_isa(NULL), QG_OK);
    run_products("scalar");
    ck_assert_int_eq(qg_unit_use_isa(best), QG_OK); // a name given counts more
    run_products(best);
    setenv("QG_ISA", "neon", 1);
    ck_assert_int_eq(qg_unit_use_isa(NULL), QG_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "QG_ISA"));
    ck_assert_int_eq(qg_unit_use_isa("scalar"), QG_OK);
    setenv("QG_ISA", "", 1); // as if it were unset
    ck_assert_int_eq(qg_unit_use_isa(NULL), QG_OK);
    run_products(best);
}
END_TEST

int main(void) {
    const TTest *tests[] = {rows_equal_the_scalar_model, promoted_rows_equal_the_scalar_model,
                            isa_is_installed};
    return RUN_SUITE("unit_panel_simd", tests);
}
