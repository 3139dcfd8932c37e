// The plan of operations gemm and vectors: ids that stay, units, operand b, order, reproduction.
#include <plan_folder.h>
#include <qg_digest.h>

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

// A small plan of products: one input.
static const uint64_t GEMM_ID = 0x1ad4bff45f90035d; // baselines are kept by it

#define SMALL "ops", "gemm", "data", "normal", "m", "2", "k", "128", "n", "3"

static const qg_case *find_unit(const qg_plan *plan, const char *layout, const char *unit) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (strcmp(c->layout, layout) == 0 && strcmp(c->unit, unit) == 0)
            return c;
    }
    return NULL;
}

static const qg_case *find_b(const qg_plan *plan, const char *layout, const char *rule) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (strcmp(c->layout_b, layout) == 0 && strcmp(c->scale_rule_b, rule) == 0)
            return c;
    }
    return NULL;
}

// -------------------------------------------------------------------------------------- identity

START_TEST(the_id_is_the_digest_of_all_axes) {
    char text[2048];
    qg_plan *plan =
        plan_of("", "formats", "mxfp8", "rules", "floor", "units", "blackwell_mx", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    const qg_case *c = qg_plan_case(plan, 0);
    ck_assert(qg_case_identity_text(c, text, sizeof text));
    ck_assert_str_eq(text, "op=gemm\nformat=mxfp8\nlayout=group:32\nscale_rule=floor\n"
                           "scale_format=e8m0\nrounding=rne\nformat_b=mxfp8\nlayout_b=group:32\n"
                           "scale_rule_b=floor\nunit=blackwell_mx\ninput_type=fp32\n"
                           "out_type=fp32\nbias=0\nbackend=emulator\ndata=normal\ntensor=\n"
                           "tensor_digest=\nm=2\nn=3\nk=128\nsm_count=0\nseed=1\n");
    ck_assert_uint_eq(c->id, qg_digest_bytes(text, strlen(text)));
    ck_assert_msg(c->id == GEMM_ID, "%016" PRIx64, c->id);
    ck_assert_int_eq(c->matrix_unit->id, QG_UNIT_BLACKWELL_MX);
    ck_assert_ptr_eq(c->recipe_b, c->recipe);
    qg_plan_free(plan);
}
END_TEST

START_TEST(cases_of_one_operand_have_no_product) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "data", "normal", "m", "1",
                            "k", "8", NULL);
    ck_assert_str_eq(qg_plan_case(plan, 0)->op->name, "error");
    ck_assert_str_eq(qg_plan_case(plan, 0)->unit, "");
    ck_assert_str_eq(qg_plan_case(plan, 0)->format_b, "");
    ck_assert_ptr_null(qg_plan_case(plan, 0)->matrix_unit);
    ck_assert_int_eq(qg_plan_case(plan, 0)->n, 0);
    ck_assert_str_eq(qg_plan_case(plan, 1)->op->name, "gemm"); // by default, after all of error
    ck_assert_int_eq(qg_plan_case(plan, 1)->n, 64);
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------------------ units

START_TEST(default_units) {
    qg_plan *plan = plan_of("", "formats", "e4m3,mxfp8,nvfp4,int8", SMALL, NULL);
    static const char *const wanted[][2] = {
        {"per_row",       "exact"                        },
        {"per_row",       "fp32_sequential"              },
        {"per_row",       "hopper_wgmma"                 },
        {"group:128",     "hopper_wgmma+promote:128"     },
        {"block:128x128", "blackwell_tcgen05+promote:128"},
        {"group:32",      "blackwell_mx"                 },
        {"group:16",      "blackwell_mxf4"               },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const qg_case *c = find_unit(plan, wanted[i][0], wanted[i][1]);
        ck_assert_msg(c != NULL, "%s %s", wanted[i][0], wanted[i][1]);
        ck_assert_str_eq(c->format_b, c->format);
        ck_assert_str_eq(c->layout_b, c->layout);
    }
    ck_assert_ptr_null(find_unit(plan, "group:128", "hopper_wgmma"));
    ck_assert_ptr_null(find_unit(plan, "group:32", "hopper_wgmma"));
    ck_assert_ptr_null(find_unit(plan, "per_row", "fp64"));
    ck_assert_ptr_null(find_unit(plan, "per_row", "cdna3_mfma"));
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        ck_assert_ptr_null(qg_plan_case(plan, i)->skip);
    // 4 layouts with 8 units, 3 rules with 3, 1 with 3, 4 layouts with software alone.
    ck_assert_int_eq(qg_plan_count(plan), 4 * 8 + 3 * 3 + 3 + 4 * 2);
    qg_plan_free(plan);
}
END_TEST

START_TEST(units_that_are_written_out) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row,group:128", "units",
                            "fp32_blocked:032,bf16_sequential+rtz,hopper_wgmma,exact", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 8);
    const qg_case *c = find_unit(plan, "group:128", "fp32_blocked:32");
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(c->matrix_unit->block, 32);
    ck_assert_ptr_nonnull(find_unit(plan, "per_row", "bf16_sequential+rtz"));
    ck_assert_ptr_null(find_unit(plan, "per_row", "hopper_wgmma")->skip);
    c = find_unit(plan, "group:128", "hopper_wgmma");
    ck_assert_ptr_nonnull(strstr(c->skip, "+promote:128"));
    ck_assert_int_eq(qg_case_bytes(c), 0);
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3", "units", "hopper_wgmma+promote:96", SMALL, NULL);
    c = find_unit(plan, "group:128", "hopper_wgmma+promote:96");
    ck_assert_ptr_nonnull(strstr(c->skip, "+promote:128 would fit"));
    qg_plan_free(plan);
    // The detail holds "+promote:128" as the beginning of another number.
    plan = plan_of("", "formats", "e4m3", "units", "hopper_wgmma+promote:1280", SMALL, NULL);
    c = find_unit(plan, "group:128", "hopper_wgmma+promote:1280");
    static const char end[] = "; +promote:128 would fit";
    ck_assert_uint_gt(strlen(c->skip), strlen(end));
    ck_assert_str_eq(c->skip + strlen(c->skip) - strlen(end), end);
    qg_plan_free(plan);
}
END_TEST

START_TEST(globs_of_units) {
    qg_plan *plan =
        plan_of("", "formats", "e4m3", "layouts", "group:128", "units", "hopper_*,fp32_*", SMALL,
                NULL); // not fp32_blocked, which needs its number
    ck_assert_int_eq(qg_plan_count(plan), 2 + 2);
    ck_assert_ptr_nonnull(find_unit(plan, "group:128", "hopper_mma_fp8+promote:128"));
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "units", "default,exact,e*", SMALL,
                   NULL);
    ck_assert_int_eq(qg_plan_count(plan), 8); // each once
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT, "--units: no unit matches 'zz*'", "formats", "e4m3", "units", "zz*",
            NULL);
    static const char *const blocked[] = {"fp32_b*", "fp32_blocked*", "fp32_blocked:*"};
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "--units: no unit matches '%s': fp32_blocked needs its :N",
                 blocked[i]);
        refused(QG_ERROR_ARGUMENT, text, "formats", "e4m3", "units", blocked[i], NULL);
    }
}
END_TEST

START_TEST(values_that_fit_nothing) {
    refused(QG_ERROR_ARGUMENT, "--units: 'hopper_wgmma' fits nothing in the sweep: hopper_wgmma",
            "formats", "mxfp8", "units", "exact,hopper_wgmma", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "the emulator has no unit native", "formats", "e4m3", "units",
            "native,exact", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "'exact' fits nothing", "formats", "e4m3", "units", "exact",
            "backends", "cuda", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "--formats-b: 'int8' fits nothing", "formats", "e4m3", "formats-b",
            "e4m3,int8", "units", "hopper_*", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT,
            "--formats-b: 'mx9' fits nothing in the sweep: operand b, mx9:", "formats", "e4m3",
            "formats-b", "mx9", "layouts", "per_row", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "--formats: 'mxfp8' fits nothing", "formats", "e4m3,mxfp8", "units",
            "hopper_*", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "--layouts: 'per_row' fits nothing", "formats", "nvfp4", "layouts",
            "per_row,group:16", "units", "exact", SMALL, NULL);
    refused(QG_ERROR_ARGUMENT, "--units: unknown unit 'hoper'; the nearest are hopper_", "ops",
            "gemm", "formats", "e4m3", "units", "hoper+promote:128", NULL);
    refused(QG_ERROR_ARGUMENT, "--units: unknown unit hoper_mma; the nearest is hopper_mma",
            "formats", "e4m3", "units", "hoper_mma", NULL);
    refused(QG_ERROR_ARGUMENT, "--out-types: unknown 'e4m3'; known: fp32, bf16, fp16", "formats",
            "e4m3", "out-types", "e4m3", NULL);
    refused(QG_ERROR_ARGUMENT, "--bias: '2'", "formats", "e4m3", "bias", "2", NULL);
    refused(QG_ERROR_ARGUMENT, "--units: '+rtz' names no unit", "formats", "e4m3", "units", "+rtz",
            NULL);
    refused(QG_ERROR_ARGUMENT, "--units: a modifier is missing after +; there are +promote:N",
            "formats", "e4m3", "units", "exact+", NULL);
    // No advice that would be refused in its turn.
    for (int i = 0; i < 2; i++)
        refused(QG_ERROR_ARGUMENT,
                "scales of 100 elements of k do not suit hopper_wgmma: its instruction takes 32",
                "formats", "e4m3", "layouts", "group:100", "units",
                i ? "hopper_wgmma+promote:100" : "hopper_wgmma", SMALL, NULL);
}
END_TEST

START_TEST(native_is_the_product_of_other_backends) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "backends",
                            "emulator,cuda", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 8 + 1);
    const qg_case *c = find_unit(plan, "per_row", "native");
    ck_assert_str_eq(c->backend, "cuda");
    ck_assert_ptr_nonnull(c->unavailable);
    ck_assert_ptr_null(c->skip);
    qg_plan_free(plan);
}
END_TEST

// Parts of k that cut the scales depend on k.
START_TEST(split_is_checked_with_k) {
    qg_plan *plan = plan_of("", "ops", "gemm", "formats", "e4m3", "layouts", "group:128", "units",
                            "hopper_wgmma+promote:128+split:2", "data", "normal", "m", "1", "k",
                            "512,640", "n", "1", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2);
    ck_assert_ptr_null(qg_plan_case(plan, 0)->skip);
    ck_assert_ptr_nonnull(strstr(qg_plan_case(plan, 1)->skip, "+split:2"));
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT,
            "--units: 'hopper_wgmma+promote:128+split:2' fits nothing in the sweep: parts of 320",
            "ops", "gemm", "formats", "e4m3", "layouts", "group:128", "units",
            "exact,hopper_wgmma+promote:128+split:2", "data", "normal", "m", "1", "k", "640", "n",
            "1", NULL);
}
END_TEST

// ---------------------------------------------------------------------------------------- options

START_TEST(options_without_an_operation) {
    static const char *const options[][3] = {
        {"units",     "exact", "gemm or model"},
        {"formats-b", "e4m3",  "gemm or model"},
        {"out-types", "bf16",  "gemm or model"},
        {"bias",      "1",     "gemm"         },
        {"n",         "3",     "gemm"         },
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char text[100];
        snprintf(text, sizeof text, "--%s: no operation of the sweep has %s (--ops %s)",
                 options[i][0], options[i][0], options[i][2]);
        refused(QG_ERROR_ARGUMENT, text, "formats", "e4m3", "ops", "error", options[i][0],
                options[i][1], NULL);
    }
    refused(QG_ERROR_ARGUMENT,
            "--m: no operation of the sweep has m (--ops error or gemm or partition or throughput)",
            "formats", "e4m3", "ops", "vectors", "m", "3", NULL);
}
END_TEST

START_TEST(types_and_bias) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "units", "exact,fp64",
                            "out-types", "f32,bfloat16,fp16", "bias", "0,1", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 * 3 * 2);
    for (int64_t i = 0; i < 12; i++) { // the unit varies fastest
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->unit, i % 2 ? "fp64" : "exact");
        ck_assert_int_eq(c->out_type, i / 2 % 3 == 0   ? QG_FORMAT_FP32
                                      : i / 2 % 3 == 1 ? QG_FORMAT_BF16
                                                       : QG_FORMAT_FP16);
        ck_assert_int_eq(c->bias, i >= 6);
    }
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3", "layouts", "per_row", "units", "exact", "bias", "0,1",
                   "where", "bias=1", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    ck_assert(qg_plan_case(plan, 0)->bias);
    qg_plan_free(plan);
}
END_TEST

START_TEST(n_by_level) {
    static const struct {
        const char *level;
        int64_t n;
    } levels[] = {
        {"smoke",   16 },
        {"default", 64 },
        {"paper",   256},
    };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        qg_plan *plan = plan_of("", "ops", "gemm", "formats", "mxfp8", "rules", "floor", "units",
                                "exact", "level", levels[i].level, NULL);
        bool tensor = false;
        for (int64_t j = 0; j < qg_plan_count(plan); j++) {
            const qg_case *c = qg_plan_case(plan, j);
            ck_assert_int_eq(c->n, levels[i].n);
            tensor |= c->tensor[0] != 0;
        }
        ck_assert(tensor); // real tensors, too
        ck_assert_ptr_null(strstr(qg_plan_text(plan), "exclude k=65536&n"));
        qg_plan_free(plan);
    }
    qg_plan *plan =
        plan_of("", "ops", "gemm", "formats", "mxfp8", "rules", "floor", "units", "exact", "data",
                "normal", "m", "1", "level", "paper", "n", "1024", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 10); // not 32768 and 65536
    qg_plan_free(plan);
    // Products of the grid are bounded, errors are not.
    plan = plan_of("", "ops", "error,gemm", "formats", "mxfp8", "rules", "floor", "units", "exact",
                   "data", "normal", "level", "paper", "where", "k=4096", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 13 + 12); // m up to 4096, and with n = 256 to 2048
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "exclude op=gemm&k=4096&n=256&m>2048&"));
    qg_plan_free(plan);
    plan = plan_of("", "ops", "gemm", "formats", "mxfp8", "rules", "floor", "units", "exact",
                   "data", "normal", "level", "paper", "m", "4096", "k", "4096", "n", "256", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1); // what is asked for runs
    qg_plan_free(plan);
}
END_TEST

START_TEST(sizes) {
    refused(QG_ERROR_OVERFLOW, "n 4294967296 times k 4294967296", "ops", "gemm", "formats", "e4m3",
            "m", "1", "n", "4294967296", "k", "4294967296", NULL);
    refused(QG_ERROR_OVERFLOW, "m 4294967296 times n 4294967296", "ops", "gemm", "formats", "e4m3",
            "m", "4294967296", "n", "4294967296", "k", "1", NULL);
    refused(QG_ERROR_ARGUMENT, "more than 4194304 cases", "ops", "gemm", "formats", "e4m3", "m",
            "1:100:1", "n", "1:1000:1", "k", "1:100:1", NULL);
}
END_TEST

START_TEST(order) {
    qg_plan *plan = plan_of("", "ops", "error,gemm", "formats", "e4m3", "layouts",
                            "per_row,per_tensor", "units", "exact,fp32_fma", "formats-b",
                            "e4m3,e5m2", "data", "normal", "m", "1", "k", "8", "n", "2,1", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2 + 2 * 2 * 2 * 2);
    for (int64_t i = 2; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_int_eq(c->n, i < 10 ? 1 : 2);
        ck_assert_str_eq(c->layout, (i - 2) / 4 % 2 ? "per_tensor" : "per_row");
        ck_assert_str_eq(c->format_b, (i - 2) / 2 % 2 ? "e5m2" : "e4m3");
        ck_assert_str_eq(c->unit, i % 2 ? "fp32_fma" : "exact");
    }
    qg_plan_free(plan);
}
END_TEST

// -------------------------------------------------------------------------------------- operand b

START_TEST(element_formats_of_b_follow_a) {
    qg_plan *plan = plan_of("", "formats", "mxfp8,e4m3", "formats-b", "e5m2", "units", "exact",
                            "rounding", "rtz", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3 + 4);
    for (int64_t i = 0; i < 7; i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->format_b, "e5m2");
        ck_assert_str_eq(c->layout_b, c->layout);
        ck_assert_str_eq(c->scale_rule_b, c->scale_rule);
        ck_assert_int_eq(c->recipe_b->conversion.rounding.mode, QG_ROUND_RTZ);
        ck_assert_int_eq(c->recipe_b->element, QG_FORMAT_E5M2);
    }
    qg_plan_free(plan);
}
END_TEST

START_TEST(recipes_of_b_keep_their_own) {
    qg_plan *plan =
        plan_of("", "formats", "e4m3", "formats-b", "nvfp4", "units", "exact", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 4);
    for (int64_t i = 0; i < 4; i++) {
        ck_assert_str_eq(qg_plan_case(plan, i)->layout_b, "group:16");
        ck_assert_str_eq(qg_plan_case(plan, i)->scale_rule_b, "two_level");
    }
    qg_plan_free(plan);
    // What is named replaces it as it does for a; two OCP recipes share their rule.
    plan = plan_of("", "formats", "e4m3", "formats-b", "te_e4m3", "units", "exact", "layouts",
                   "group:64", SMALL, NULL);
    ck_assert_ptr_nonnull(find_b(plan, "group:64", "amax_mul"));
    qg_plan_free(plan);
    plan =
        plan_of("", "formats", "mxfp8", "formats-b", "mxfp4,nvfp4", "units", "exact", SMALL, NULL);
    ck_assert_int_eq(qg_plan_count(plan), 6);
    ck_assert_ptr_nonnull(find_b(plan, "group:32", "floor"));
    ck_assert_ptr_nonnull(find_b(plan, "group:32", "rceil"));
    ck_assert_ptr_nonnull(find_b(plan, "group:16", "two_level"));
    qg_plan_free(plan);
}
END_TEST

START_TEST(an_impossible_b_is_skipped) {
    qg_plan *plan = plan_of("", "formats", "e4m3", "formats-b", "mx9,e5m2", "layouts",
                            "per_row,group:16", "units", "exact", "rules", "default", SMALL, NULL);
    int64_t skipped = 0;
    ck_assert_int_eq(qg_plan_count(plan), 4);
    for (int64_t i = 0; i < 4; i++) {
        const qg_case *c = qg_plan_case(plan, i);
        skipped += c->skip != NULL;
        ck_assert(!c->skip == (strcmp(c->format_b, "e5m2") == 0 || !strcmp(c->layout, "group:16")));
    }
    ck_assert_int_eq(skipped, 1);
    qg_plan_free(plan);
}
END_TEST

// ----------------------------------------------------------------------------------- reproduction

START_TEST(mixed_plans_reproduce) {
    qg_plan *plan =
        plan_of("", "ops", "error,gemm,vectors", "formats", "e4m3,mxfp8,nvfp4", "formats-b",
                "e4m3,nvfp4,mxfp4,te_e4m3", "units",
                "default,fp32_blocked:8+promote:16,hopper_wgmma+promote:128+split:2", "out-types",
                "bf16", "bias", "0,1", "data", "normal,tensors:minilm.h5#*layer.0*query.weight",
                "m", "1", "k", "160", "n", "5", "rounding", "rtz", NULL);
    ck_assert_int_gt(qg_plan_count(plan), 200);
    check_repro_lines(plan);
    check_text(plan);
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3,mxfp8", "formats-b", "nvfp4,mxfp8,e5m2", "layouts",
                   "default,group:16", "rules", "default,amax_ue4m3", "units", "exact,black*",
                   SMALL, NULL);
    check_repro_lines(plan);
    check_text(plan);
    qg_plan_free(plan);
}
END_TEST

START_TEST(the_text_says_what_the_default_is) {
    qg_plan *plan = plan_of("", "formats", "mxfp8,e4m3", SMALL, NULL);
    const char *text = qg_plan_text(plan);
    ck_assert_ptr_nonnull(strstr(text, "\nunits default\n# units found: exact fp32_sequential "
                                       "blackwell_mx\nout-types fp32\nbias 0\nn 3\n"));
    ck_assert_ptr_nonnull(strstr(text, "rtx_blackwell_mma+promote:128\n"));
    ck_assert_ptr_null(strstr(text, "formats-b"));
    check_text(plan);
    qg_plan_free(plan);
    plan = plan_of("", "formats", "e4m3", "ops", "error", NULL);
    ck_assert_ptr_null(strstr(qg_plan_text(plan), "units"));
    qg_plan_free(plan);
}
END_TEST

START_TEST(plan_files) {
    char folder[64];
    enter_folder(folder);
    write_text("p.plan", "[products]\nops gemm\nformats e4m3\nlayouts per_row\nunits exact\n"
                         "bias 0,1\nn 2\ndata normal\nm 1\nk 8\n"
                         "[others]\nops error\nformats e4m3\nlayouts per_row\ndata normal\nm 1\n"
                         "k 8\n");
    qg_plan *plan = plan_of("", "plan", "p.plan", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    qg_plan_free(plan);
    // The command line's option is for the sections that have it.
    plan = plan_of("", "plan", "p.plan", "units", "fp64", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 3);
    ck_assert_str_eq(qg_plan_case(plan, 1)->unit, "fp64");
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT, "p.plan:5: units: no operation of the sweep has units", "plan",
            "p.plan", "ops", "error", NULL);
    // A flag alone means 1, here as on the command line; other options need their value.
    write_text("p.plan", "ops gemm\nformats e4m3\nlayouts per_row\nunits exact\ndata normal\n"
                         "m 1\nk 8\nn 2\nbias # a comment\n");
    plan = plan_of("", "plan", "p.plan", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    ck_assert(qg_plan_case(plan, 0)->bias);
    qg_plan_free(plan);
    write_text("p.plan", "formats e4m3\nm\n");
    refused(QG_ERROR_ARGUMENT, "p.plan:2: m: the list is empty", "plan", "p.plan", NULL);
    write_text("p.plan", "ops error\nformats e4m3\n");
    refused(QG_ERROR_ARGUMENT, "--units: no operation", "plan", "p.plan", "units", "fp64", NULL);
    leave_folder(folder);
}
END_TEST

// ---------------------------------------------------------------------------------------- vectors

START_TEST(one_case_for_each_recording) {
    qg_plan *plan = plan_of("", "ops", "vectors", "formats", "mxfp8,e4m3", NULL);
    ck_assert_int_ge(qg_plan_count(plan), 7);
    bool found = false;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        ck_assert_str_eq(c->format, "e4m3");
        ck_assert_str_eq(c->layout, "");
        ck_assert_ptr_nonnull(c->source->recording);
        ck_assert(c->source->digest != 0 && c->m == 0 && c->n == 0 && c->k > 0 && !c->skip);
        ck_assert(i == 0 || strcmp(c->data, qg_plan_case(plan, i - 1)->data) > 0);
        if (strcmp(c->data, "vectors:hopper_mma_fp8-e4m3-f16-h200.qgvec") != 0)
            continue;
        char text[2048], wanted[64];
        found = true;
        ck_assert_str_eq(c->unit, "hopper_mma_fp8");
        ck_assert_str_eq(c->format_b, "e4m3");
        ck_assert_int_eq(c->out_type, QG_FORMAT_FP16);
        ck_assert_int_eq(c->matrix_unit->id, QG_UNIT_HOPPER_MMA_FP8);
        ck_assert_int_eq(c->k, 32);
        ck_assert(qg_case_identity_text(c, text, sizeof text));
        snprintf(wanted, sizeof wanted, "tensor_digest=%016" PRIx64 "\n", c->source->digest);
        ck_assert_ptr_nonnull(strstr(text, wanted));
        ck_assert_ptr_nonnull(strstr(text, "input_type=\n"));
        ck_assert_ptr_null(strchr(text, '/')); // no path
    }
    ck_assert(found);
    check_repro_lines(plan);
    check_text(plan);
    qg_plan_free(plan);
    refused(QG_ERROR_ARGUMENT, "no recorded vectors have e2m1 as operand a", "ops", "vectors",
            "formats", "e4m3,nvfp4", NULL);
    plan = plan_of("", "ops", "vectors", "formats", "*fp4", NULL); // by glob: an empty plan
    ck_assert_int_eq(qg_plan_count(plan), 0);
    qg_plan_free(plan);
}
END_TEST

static const char ODD_FILE[] = "# qgvec 1\n# kind: dot\n# unit: hopper_wgmma\n# a: e4m3\n"
                               "# b: e5m2\n# c: f32\n# d: f32\n# k: 32\n";

// The cases of one file; format: that of the only one, or "".
static void check_recorded(const char *file, const char *formats, int64_t count,
                           const char *format) {
    char where[64];
    snprintf(where, sizeof where, "data=vectors:%s", file);
    // bad.qgvec makes every format fit.
    qg_plan *plan = plan_of("", "ops", "vectors", "formats", formats, "where", where, NULL);
    ck_assert_int_eq(qg_plan_count(plan), count);
    for (int64_t i = 0; i < count; i++) {
        ck_assert_ptr_null(qg_plan_case(plan, i)->skip);
        if (*format)
            ck_assert_str_eq(qg_plan_case(plan, i)->format, format);
    }
    qg_plan_free(plan);
}

START_TEST(recordings_that_cannot_be_read) {
    char folder[64];
    enter_folder(folder);
    ck_assert_int_eq(setenv("QG_DATA_DIR", folder, 1), 0);
    refused(QG_ERROR_IO, "recorded vectors are missing", "ops", "vectors", "formats", "e4m3", NULL);
    ck_assert_int_eq(mkdir("datasets", 0700) | mkdir("datasets/vectors", 0700) |
                         mkdir("datasets/vectors/hardware", 0700),
                     0);
    refused(QG_ERROR_IO, "QG_DATA_DIR", "ops", "vectors", "formats", "e4m3", NULL);
    write_text("datasets/vectors/hardware/odd [1]&it's *,2.qgvec", ODD_FILE);
    write_text("datasets/vectors/hardware/odd 1&it's *,2.qgvec", ODD_FILE);
    write_text("datasets/vectors/hardware/bad.qgvec", "# qgvec 2\n");
    write_text("datasets/vectors/hardware/encode.qgvec",
               "# qgvec 1\n# kind: encode\n# format: e5m2\n# rounding: rne\n# overflow: format\n");
    write_text("datasets/vectors/hardware/quantize.qgvec",
               "# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 32\n");
    write_text("datasets/vectors/hardware/.hidden.qgvec", ODD_FILE);
    qg_plan *plan = plan_of("", "ops", "vectors", "formats", "mxfp8,e4m3,e5m2", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 4 + 2);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        bool bad = strcmp(c->data, "vectors:bad.qgvec") == 0;
        ck_assert_msg(!c->skip, "%s: %s", c->data, c->skip); // they run, and fail
        ck_assert(c->k > 0 || bad || strcmp(c->data, "vectors:encode.qgvec") == 0);
        if (strcmp(c->data, "vectors:encode.qgvec") == 0)
            ck_assert_str_eq(c->format, "e5m2");
        if (strcmp(c->data, "vectors:quantize.qgvec") == 0)
            ck_assert_str_eq(c->format, "mxfp8");
        if (strncmp(c->data, "vectors:odd", 11) == 0)
            ck_assert_str_eq(c->format_b, "e5m2");
    }
    check_repro_lines(plan);
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "# vectors:bad.qgvec: bad.qgvec:1: "));
    qg_plan_free(plan);
    // A quantize recording has the element of its recipe.
    write_text("datasets/vectors/hardware/four.qgvec",
               "# qgvec 1\n# kind: quantize\n# recipe: mxfp4\n# k: 32\n");
    check_recorded("four.qgvec", "e2m1", 1, "mxfp4");
    check_recorded("four.qgvec", "e4m3,e5m2,fp32", 0, "");
    // One bad line, and nothing is known of the file.
    write_text("datasets/vectors/hardware/line.qgvec",
               "# qgvec 1\n# kind: decode\n# format: e5m2\n00 00000000\n0 00000000\n");
    check_recorded("line.qgvec", "e4m3", 1, "e4m3");
    check_recorded("line.qgvec", "e2m1,fp16", 2, "");
    // Alone, too, it is a case of whatever is asked for.
    plan = plan_of("", "ops", "vectors", "formats", "e3m2", NULL);
    ck_assert_int_eq(qg_plan_count(plan), 2); // bad and line
    ck_assert_ptr_nonnull(strstr(qg_plan_text(plan), "line.qgvec:5: field code has 1 char"));
    qg_plan_free(plan);
    ck_assert_int_eq(unsetenv("QG_DATA_DIR"), 0);
    leave_folder(folder);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {the_id_is_the_digest_of_all_axes,
                                  cases_of_one_operand_have_no_product,
                                  default_units,
                                  units_that_are_written_out,
                                  globs_of_units,
                                  values_that_fit_nothing,
                                  native_is_the_product_of_other_backends,
                                  split_is_checked_with_k,
                                  options_without_an_operation,
                                  types_and_bias,
                                  n_by_level,
                                  sizes,
                                  order,
                                  element_formats_of_b_follow_a,
                                  recipes_of_b_keep_their_own,
                                  an_impossible_b_is_skipped,
                                  mixed_plans_reproduce,
                                  the_text_says_what_the_default_is,
                                  plan_files,
                                  one_case_for_each_recording,
                                  recordings_that_cannot_be_read};
    return RUN_SUITE("plan_products", tests);
}
