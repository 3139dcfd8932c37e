// Products through the library in cuBLASLt's place equal, to derived bounds, the exact products of
// the dequantized operands: what the descriptors say is what was meant.
#include "product_case.h"

#include <run_suite.h>
#include <shim_control.h>

static void *stream; // any address where no kernel of ours follows: the library gets it unchanged

static qg_status run(product_case *c, qg_cuda_error *error) {
    error->text[0] = 0;
    return product_run(&c->p, stream, error);
}

static void must_run(product_case *c) {
    qg_cuda_error error;
    qg_status status = run(c, &error);
    REQUIRE(status == QG_OK, "%s (%s)", error.text, fake_last()->refusal);
    REQUIRE(fake_live() == 0, "%d objects of the library are left", fake_live());
}

// Unit roundoff of the output, and half of its smallest subnormal.
static double roundoff(qg_format out) {
    const qg_format_info info = qg_format_describe(out);
    return ldexp(1, -1 - info.mbits);
}
static double tiny(qg_format out) {
    const qg_format_info info = qg_format_describe(out);
    return qg_format_min_positive(&info) / 2;
}

// One rounding to the output; before it at most 4 of binary32 (sum, c, bias, scale), and for tensor
// scales at most 6 in the decoding scales and 3 in alpha, each relative to the sum of magnitudes.
static void check_case(const product_case *c, const char *name) {
    const qg_cuda_product *p = &c->p;
    const qg_format_info info = qg_format_describe(p->out_type);
    check_guard(c);
    const double most = qg_format_max(&info), scale = c->out_scale ? (double)*c->out_scale : 1;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0, magnitude = 0;
            for (int64_t l = 0; l < p->k; l++) {
                double term = c->a.values[i * p->k + l] * c->b.values[j * p->k + l];
                sum += term;
                magnitude += fabs(term);
            }
            double added = c->c ? load_value(addend_format(p->out_type), c->c, i * p->n + j) : 0;
            added += c->bias ? (double)c->bias[j] : 0;
            double want = (sum + added) * scale;
            want = case_bytes(p->out_type) > 1 ? want : fmax(-most, fmin(most, want));
            double got = load_value(p->out_type, p->out, i * p->n + j);
            double bound = roundoff(p->out_type) * fabs(want) + tiny(p->out_type) +
                           (4 + 6 + 3) * 0x1p-24 * scale * (magnitude + fabs(added) + 30);
            REQUIRE(fabs(got - want) <= bound, "%s %dx%dx%d, (%d, %d): %.9g, not %.9g within %g",
                    name, (int)p->m, (int)p->n, (int)p->k, (int)i, (int)j, got, want, bound);
        }
}

static const qg_format wide[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};

typedef struct kind_case {
    const char *a, *b;
    int32_t architecture;
    int64_t m, n, k;
} kind_case;

static const kind_case kind_cases[] = {
    {"rlx_e4m3",           "te_e5m2",           90,  1,   16,  16 },
    {"te_e5m2",            "rlx_e4m3",          89,  7,   48,  80 },
    {"te_e4m3_pow2",       "te_e4m3",           120, 33,  16,  176},
    {"e4m3 per_row",       "e4m3 per_row",      90,  5,   48,  112},
    {"e5m2 per_row",       "e4m3 per_row",      90,  1,   32,  16 },
    {"metrale_act128",     "deepseek_act128",   90,  8,   48,  400},
    {"e5m2 group:128",     "metrale_act128",    90,  24,  16,  16 },
    {"metrale_act128",     "deepseek_w128x128", 90,  16,  272, 656},
    {"deepseek_w128x128",  "metrale_act128",    90,  260, 32,  784},
    {"e4m3 block:128x128", "e5m2 group:128",    90,  4,   16,  144},
    {"mxfp8",              "te_mxfp8",          100, 3,   16,  48 },
    {"mxfp8_e5m2",         "mxfp8",             120, 131, 144, 176},
    {"nvfp4",              "nvfp4",             100, 9,   16,  32 },
    {"nvfp4",              "nvfp4_torchao",     100, 130, 144, 96 },
    {"nvfp4_4over6",       "nvfp4",             120, 5,   32,  160},
    {"nvfp4_torchao",      "rlx_nvfp4",         103, 2,   16,  224},
};

// Every kind of product, with every wide output, alone, with c, with a bias, with both; large ones
// with some of these.
static bool is_tried(const kind_case *k, int out, int parts) {
    return k->m * k->n * k->k < 100000 || (out == 0 && parts == 0) || (out == 1 && parts == 3);
}

START_TEST(kinds_multiply_dequantized_operands) {
    for (size_t i = 0; i < sizeof kind_cases / sizeof kind_cases[0]; i++)
        for (int out = 0; out < 3; out++)
            for (int parts = 0; parts < 4; parts++) {
                const kind_case *k = &kind_cases[i];
                if (!is_tried(k, out, parts))
                    continue;
                open_fake(k->architecture);
                product_case c = case_of(k->a, k->b, k->m, k->n, k->k, wide[out], parts);
                if (parts & CASE_BIAS) {
                    free(c.p.workspace);
                    c.p.workspace_bytes = qg_round_up(k->m * k->n * 4, 256);
                    c.p.workspace = memory_of(c.p.workspace_bytes);
                }
                must_run(&c);
                check_case(&c, k->a);
                free_case(&c);
            }
}
END_TEST

// E4M3 and E5M2, scaled, with c of bf16 and a bias; the same with a scale that saturates.
START_TEST(fp8_outputs_are_scaled_and_saturate) {
    static const float scales[] = {0.37f, 300.0f};
    open_fake(90);
    for (int out = 0; out < 2; out++)
        for (int parts = 0; parts < 4; parts++)
            for (int s = 0; s < 2; s++) {
                product_case c =
                    case_of("te_e5m2", "rlx_e4m3", 6, 32, 64, out ? QG_FORMAT_E5M2 : QG_FORMAT_E4M3,
                            parts | CASE_OUT_SCALE);
                *c.out_scale = scales[s];
                must_run(&c);
                check_case(&c, "fp8 output");
                ck_assert_int_eq(fake_last()->c_type, parts & CASE_BIAS ? 0 : 14);
                free_case(&c);
            }
}
END_TEST

// out = RNE(fl(fl(acc s) + bias)) in every bit, the binary32 product being the library's.
START_TEST(bias_is_added_in_binary32_and_rounded_once) {
    open_fake(90);
    for (int out = 0; out < 3; out++) {
        product_case plain =
            case_of("metrale_act128", "deepseek_w128x128", 24, 144, 272, QG_FORMAT_FP32, 0);
        product_case biased =
            case_of("metrale_act128", "deepseek_w128x128", 24, 144, 272, wide[out], CASE_BIAS);
        must_run(&plain);
        must_run(&biased);
        uint8_t *want = memory_of(24 * 144 * 4);
        for (int64_t i = 0; i < 24 * 144; i++)
            store_value(wide[out], want, i,
                        (double)(((float *)plain.p.out)[i] + biased.bias[i % 144]));
        ck_assert_mem_eq(biased.p.out, want, (size_t)(24 * 144 * case_bytes(wide[out])));
        free(want);
        free_case(&plain);
        free_case(&biased);
    }
}
END_TEST

// The epilogue kernel in every order of threads, over more than one CTA, and only where it should.
START_TEST(epilogue_depends_on_no_order) {
    open_fake(90);
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 37, 48, 32, QG_FORMAT_FP16, CASE_BIAS);
    uint8_t *first = memory_of(37 * 48 * 2);
    for (int order = QG_SHIM_ASCENDING; order <= QG_SHIM_SHUFFLED; order++) {
        qg_shim_set_order((enum qg_shim_order)order, 7);
        memset(c.p.out, 0xcc, 37 * 48 * 2);
        must_run(&c);
        if (order == QG_SHIM_ASCENDING)
            memcpy(first, c.p.out, 37 * 48 * 2);
        ck_assert_mem_eq(first, c.p.out, 37 * 48 * 2);
    }
    ck_assert_uint_eq(qg_shim_fault_count(), 0);
    free(first);
    free_case(&c);
}
END_TEST

// c may be what is overwritten, where the library adds it.
START_TEST(c_may_be_out) {
    open_fake(90);
    product_case c = case_of("rlx_e4m3", "rlx_e4m3", 9, 32, 48, QG_FORMAT_FP32, CASE_C);
    product_case in_place = case_of("rlx_e4m3", "rlx_e4m3", 9, 32, 48, QG_FORMAT_FP32, 0);
    must_run(&c);
    memcpy(in_place.p.out, c.c, 9 * 32 * 4);
    in_place.p.c = in_place.p.out;
    must_run(&in_place);
    ck_assert_mem_eq(c.p.out, in_place.p.out, 9 * 32 * 4);
    free_case(&c);
    free_case(&in_place);
}
END_TEST

// The flag of accumulation, alpha and beta, the stream, the types and the preference.
START_TEST(library_is_told_what_was_asked) {
    qg_cuda_error error;
    stream = &error;
    open_fake(90);
    product_case c = case_of("rlx_e4m3", "te_e5m2", 9, 32, 48, QG_FORMAT_BF16, CASE_C);
    for (int on = 0; on < 2; on++) {
        c.p.accumulates_fast = on;
        c.p.splitk_allowed = on;
        must_run(&c);
        const fake_cublaslt_call *last = fake_last();
        ck_assert_int_eq(last->sets_fast_accum, 1);
        ck_assert_int_eq(last->fast_accum, on);
        ck_assert_uint_eq(last->reduction_mask, on ? 7 : 0);
    }
    const fake_cublaslt_call *last = fake_last();
    ck_assert(last->alpha == 1 && last->beta == 1 && last->c == c.c && last->stream == stream);
    ck_assert_int_eq(last->a_type, 29); // the library's A is b
    ck_assert_int_eq(last->b_type, 28);
    ck_assert_int_eq(last->c_type, 14);
    ck_assert_int_eq(last->d_type, 14);
    ck_assert_int_eq(last->requested, 8);
    ck_assert_uint_eq(last->workspace_preference, CASE_WORKSPACE);
    ck_assert_uint_eq(last->workspace_bytes, CASE_WORKSPACE);
    ck_assert_ptr_eq(last->workspace, c.p.workspace);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(last->alignment[i], 256);
    // Alignment by the pointers themselves.
    uint8_t *shifted = memory_of(9 * 32 * 2 + 256);
    void *out = c.p.out;
    c.p.out = shifted + 32;
    c.p.c = NULL;
    must_run(&c);
    ck_assert_uint_eq(fake_last()->alignment[3], 32);
    ck_assert_uint_eq(fake_last()->alignment[2], 32);
    ck_assert(fake_last()->beta == 0 && fake_last()->c == c.p.out);
    c.p.out = shifted + 8;
    ck_assert_int_eq(run(&c, &error), QG_ERROR_UNSUPPORTED);
    ck_assert_str_eq(error.text, "out lies at no multiple of 16 bytes");
    c.p.out = out;
    free(shifted);
    free_case(&c);
}
END_TEST

// A two-level tensor's alpha is the product of what the emulator's epilogue multiplies by.
START_TEST(alpha_carries_tensor_scales) {
    static const struct {
        const char *a, *b;
        float ta, tb, want;
    } cases[] = {
        {"nvfp4",         "nvfp4",         2688.0f, 5376.0f, 2.0f},
        {"nvfp4_4over6",  "nvfp4",         1536.0f, 2688.0f, 1.0f},
        {"nvfp4_torchao", "nvfp4_torchao", 0.5f,    8.0f,    4.0f},
        {"rlx_nvfp4",     "nvfp4_torchao", 99.0f,   8.0f,    8.0f},
    };
    open_fake(100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        product_case c = case_of(cases[i].a, cases[i].b, 8, 16, 32, QG_FORMAT_FP32, 0);
        c.p.a.tensor_scale = cases[i].ta;
        c.p.b.tensor_scale = cases[i].tb;
        must_run(&c);
        ck_assert_msg(fabsf(fake_last()->alpha - cases[i].want) <= 3 * 0x1p-24f * cases[i].want,
                      "%s: alpha %.9g", cases[i].a, (double)fake_last()->alpha);
        ck_assert_int_eq(fake_last()->sets_fast_accum, 0);
        free_case(&c);
    }
}
END_TEST

START_TEST(orders_of_scales) {
    static const struct {
        const char *recipe;
        int32_t kind, padding;
    } orders[] = {
        {"rlx_e4m3",          QG_ORDER_ROW_MAJOR,       0},
        {"e4m3 per_row",      QG_ORDER_ROW_MAJOR,       0},
        {"metrale_act128",    QG_ORDER_K_MAJOR,         1},
        {"deepseek_w128x128", QG_ORDER_BLOCK128_PADDED, 0},
        {"mxfp8",             QG_ORDER_TILE128X4,       0},
        {"nvfp4",             QG_ORDER_TILE128X4,       0},
        {"rlx_nvfp4",         QG_ORDER_TILE128X4,       0},
        {"mx9",               QG_ORDER_ROW_MAJOR,       0},
    };
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        qg_recipe recipe = recipe_of(orders[i].recipe);
        qg_scale_order order = product_order(&recipe);
        ck_assert_msg(order.kind == orders[i].kind && order.padding == orders[i].padding, "%s",
                      orders[i].recipe);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        kinds_multiply_dequantized_operands,
        fp8_outputs_are_scaled_and_saturate,
        bias_is_added_in_binary32_and_rounded_once,
        epilogue_depends_on_no_order,
        c_may_be_out,
        library_is_told_what_was_asked,
        alpha_carries_tensor_scales,
        orders_of_scales,
    };
    return RUN_SUITE("product", tests);
}
