// Operation `error`: what its digests are over, what it mistrusts, that results do not depend on what
// the worker did before, and that a backend that differs from the emulator fails.
#include <op_compare.h>
#include <qg_philox.h>
#include <qg_plan_build.h>
#include <qg_workspace.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

// The plan of `error` with these options: pairs, then NULL. Of the emulator, unless they say else.
static qg_plan *plan_of(const char *const *options) {
    qg_plan_request *request;
    qg_plan *plan;
    bool has_backends = false;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    ck_assert_int_eq(qg_plan_request_set(request, "ops", "error"), QG_OK);
    for (; options[0]; options += 2) {
        has_backends |= strcmp(options[0], "backends") == 0;
        ck_assert_msg(qg_plan_request_set(request, options[0], options[1]) == QG_OK, "%s",
                      qg_detail());
    }
    if (!has_backends)
        ck_assert_int_eq(qg_plan_request_set(request, "backends", "emulator"), QG_OK);
    ck_assert_msg(qg_plan_build(request, &plan) == QG_OK, "%s", qg_detail());
    qg_plan_request_free(request);
    ck_assert_int_gt(qg_plan_count(plan), 0);
    return plan;
}

static qg_workspace *workspace_of(int threads) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(threads, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    ck_assert_ptr_null(c->skip);
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

// The single case of a plan, in a fresh workspace.
static qg_case_result run_only(const char *const *options) {
    qg_plan *plan = plan_of(options);
    ck_assert_int_eq(qg_plan_count(plan), 1);
    qg_workspace *workspace = workspace_of(1);
    qg_case_result result = run(qg_plan_case(plan, 0), workspace);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
    return result;
}

// What the definition says, put together in one piece.
static void digests_of(const qg_case *c, const float *history, uint64_t *input, uint64_t *output) {
    size_t count = (size_t)(c->m * c->k);
    float *x = malloc(count * sizeof *x);
    ck_assert_int_eq(qg_source_generate(c->source, c->seed, 0, c->input_type, c->m, c->k, x),
                     QG_OK);
    *input = qg_digest_bytes(x, count * sizeof *x);
    qg_shape shape;
    ck_assert_int_eq(qg_shape_of(c->recipe, c->m, c->k, &shape), QG_OK);
    uint8_t *bytes = malloc((size_t)(shape.codes_size + shape.scales_size) + sizeof(float));
    uint8_t *scales = bytes + shape.codes_size, *end = scales + shape.scales_size;
    float tensor_scale;
    qg_quantize_options options = {.input_type = c->input_type,
                                   .seed = c->seed,
                                   .stream = QG_STREAM_ROUNDING,
                                   .threads = 1,
                                   .amax_history = history,
                                   .history_length = history ? 16 : 0};
    ck_assert_int_eq(qg_emulator_quantize(c->recipe, &options, c->m, c->k, x, bytes, scales,
                                          &tensor_scale, NULL),
                     QG_OK);
    if (shape.has_tensor_scale) {
        memcpy(end, &tensor_scale, sizeof tensor_scale);
        end += sizeof tensor_scale;
    }
    *output = qg_digest_bytes(bytes, (size_t)(end - bytes));
    free(bytes);
    free(x);
}

START_TEST(digests_are_of_codes_scales_and_tensor_scale) {
    qg_plan *plan = plan_of((const char *const[]){
        "formats", "e4m3,mxfp8,nvfp4,rlx_mxfp4x2,mx6", "data", "normal,outliers:100", "m", "1,17",
        "k", "120", "inputs", "fp32,bf16", "rounding", "rne,stochastic", NULL});
    qg_workspace *workspace = workspace_of(1);
    int64_t compared = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (c->skip)
            continue;
        uint64_t input, output;
        digests_of(c, NULL, &input, &output);
        qg_case_result result = run(c, workspace);
        ck_assert_msg(result.status == QG_CASE_RAN, "%s", result.reason);
        ck_assert_uint_eq(result.input_digest, input);
        ck_assert_uint_eq(result.output_digest, output);
        ck_assert_int_eq(result.counts.n, c->m * c->k);
        ck_assert_int_eq(result.compared[0].sums.n, c->m * c->k);
        ck_assert_str_eq(result.impl_used, "emulator");
        compared++;
    }
    ck_assert_int_gt(compared, 40);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

static void check_equal(const qg_case_result *a, const qg_case_result *b) {
    ck_assert_int_eq(a->status, b->status);
    ck_assert_uint_eq(a->input_digest, b->input_digest);
    ck_assert_uint_eq(a->output_digest, b->output_digest);
    ck_assert_mem_eq(&a->counts, &b->counts, sizeof a->counts);
    ck_assert_mem_eq(&a->compared[0].sums, &b->compared[0].sums, sizeof a->compared[0].sums);
    ck_assert_mem_eq(&a->compared[0].spearman, &b->compared[0].spearman,
                     sizeof a->compared[0].spearman);
}

START_TEST(results_do_not_depend_on_sequence_and_threads) {
    qg_plan *plan = plan_of((const char *const[]){"formats", "e4m3,mxfp8,te_delayed_e4m3", "data",
                                                  "normal,uniform", "m", "3,300", "k", "64,500",
                                                  "inputs", "fp32,fp16", "seeds", "1,2", NULL});
    int64_t count = qg_plan_count(plan);
    qg_case_result *forwards = malloc((size_t)count * sizeof *forwards);
    qg_workspace *workspace = workspace_of(1);
    for (int64_t i = 0; i < count; i++)
        if (!qg_plan_case(plan, i)->skip)
            forwards[i] = run(qg_plan_case(plan, i), workspace);
    qg_workspace_free(workspace);
    workspace = workspace_of(4);
    for (int64_t i = count; i-- > 0;)
        if (!qg_plan_case(plan, i)->skip) {
            qg_case_result backwards = run(qg_plan_case(plan, i), workspace);
            check_equal(&forwards[i], &backwards);
            if (i % 7 == 0)
                qg_workspace_shrink(workspace);
        }
    qg_workspace_free(workspace);
    free(forwards);
    qg_plan_free(plan);
}
END_TEST

START_TEST(delayed_looks_at_the_sixteen_seeds_before) {
    qg_plan *plan = plan_of((const char *const[]){"formats", "te_delayed_e4m3", "data", "normal",
                                                  "m", "4", "k", "32", "seeds", "3,100", NULL});
    qg_workspace *workspace = workspace_of(1);
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        float x[128], history[16];
        for (uint64_t back = 16; back >= 1; back--) {
            ck_assert_int_eq(
                qg_source_generate(c->source, c->seed - back, 0, c->input_type, 4, 32, x), QG_OK);
            float amax = 0;
            for (int e = 0; e < 128; e++)
                amax = qg_float_abs(x[e]) > amax ? qg_float_abs(x[e]) : amax;
            history[16 - back] = amax;
        }
        uint64_t input, output;
        digests_of(c, history, &input, &output);
        qg_case_result result = run(c, workspace);
        ck_assert_uint_eq(result.input_digest, input);
        ck_assert_uint_eq(result.output_digest, output);
    }
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

static void mistrusted(const char *const *options, const char *words) {
    qg_case_result result = run_only(options);
    ck_assert_int_eq(result.status, QG_CASE_MISTRUSTED);
    ck_assert_msg(strstr(result.reason, words) != NULL, "%s", result.reason);
    ck_assert(result.compared[0].has_sums && result.has_counts); // measured all the same
}

START_TEST(what_says_little_is_mistrusted) {
    mistrusted((const char *const[]){"formats", "e2m1", "layouts", "per_tensor", "data",
                                     "outliers:1000", "m", "64", "k", "1024", NULL},
               "of the output is zero");
    mistrusted((const char *const[]){"formats", "e4m3", "layouts", "per_tensor", "rules",
                                     "fixed:0.0001", "data", "normal", "m", "64", "k", "64", NULL},
               "saturated");
    mistrusted((const char *const[]){"formats", "e4m3", "layouts", "per_tensor", "data",
                                     "normal:sigma=1e6", "inputs", "fp16", "m", "8", "k", "64",
                                     NULL},
               "NaN or infinite");
    qg_case_result result = run_only((const char *const[]){
        "formats", "e4m3", "layouts", "per_tensor", "data", "normal", "m", "64", "k", "64", NULL});
    ck_assert_int_eq(result.status, QG_CASE_RAN);
    ck_assert_str_eq(result.reason, "");
}
END_TEST

static qg_case_status status_at(const char *rule) {
    return (qg_case_status)run_only((const char *const[]){"formats", "e4m3", "layouts",
                                                          "per_tensor", "rules", rule, "data",
                                                          "normal", "m", "64", "k", "1024", NULL})
        .status;
}

// Scales at which 45 and 55 % of normal data saturate, and 65 and 75 % become zero.
START_TEST(mistrust_begins_at_half_saturated_and_seventy_percent_zeros) {
    ck_assert_int_eq(status_at("fixed:0.001686"), QG_CASE_RAN);
    ck_assert_int_eq(status_at("fixed:0.001334"), QG_CASE_MISTRUSTED);
    ck_assert_int_eq(status_at("fixed:957"), QG_CASE_RAN);
    ck_assert_int_eq(status_at("fixed:1178"), QG_CASE_MISTRUSTED);
}
END_TEST

START_TEST(a_backend_that_cannot_is_a_failure) {
    qg_plan *plan = plan_of((const char *const[]){"formats", "e4m3", "layouts", "per_tensor",
                                                  "data", "normal", "m", "1", "k", "8", NULL});
    qg_case c = *qg_plan_case(plan, 0);
    c.backend = "abacus";
    qg_workspace *workspace = workspace_of(1);
    qg_case_result result = run(&c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert_ptr_nonnull(strstr(result.reason, "abacus"));
    // So is an input that cannot be made, and what follows is not harmed.
    c = *qg_plan_case(plan, 0);
    c.m = (int64_t)1 << 40, c.k = (int64_t)1 << 40;
    result = run(&c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert(result.reason[0] && !result.compared[0].has_sums);
    result = run(qg_plan_case(plan, 0), workspace);
    ck_assert_int_eq(result.status, QG_CASE_RAN);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

// ------------------------------------------------------------------------------- other backends

static const char *const BOTH[] = {
    "formats",  "e4m3,mxfp8,nvfp4,rlx_mxfp4x2,mx6,te_delayed_e4m3,int8,e2m1",
    "backends", "emulator,cpu",
    "data",     "normal,outliers:100",
    "m",        "1,37",
    "k",        "120,520",
    "inputs",   "fp32,bf16,fp16",
    "rounding", "rne,stochastic",
    NULL};

static void check_passed(const qg_case_result *cpu, const qg_case_result *emulator) {
    ck_assert_msg(cpu->status == QG_CASE_PASSED, "%s", cpu->reason);
    ck_assert_int_eq(cpu->code_mismatches, 0);
    ck_assert_int_eq(cpu->scale_mismatches, 0);
    ck_assert_int_eq(strncmp(cpu->impl_used, "cpu ", 4), 0);
    ck_assert(!cpu->has_counts);
    ck_assert_uint_eq(cpu->input_digest, emulator->input_digest);
    ck_assert_uint_eq(cpu->output_digest, emulator->output_digest);
    ck_assert_mem_eq(&cpu->compared[0].sums, &emulator->compared[0].sums, sizeof(qg_sums));
    ck_assert_mem_eq(&cpu->compared[0].spearman, &emulator->compared[0].spearman, sizeof(double));
}

// Each case of the cpu follows that of the emulator; alone, in a fresh workspace, it says the same.
START_TEST(cpu_gives_the_emulators_bytes) {
    qg_plan *plan = plan_of(BOTH);
    qg_workspace *workspace = workspace_of(2);
    int64_t compared = 0;
    qg_case_result emulator = {0};
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (c->skip)
            continue;
        qg_case_result result = run(c, workspace);
        ck_assert_int_eq(c->against_emulator, i % 2);
        if (i % 2 == 0) {
            emulator = result;
            continue;
        }
        check_passed(&result, &emulator);
        qg_workspace *fresh = workspace_of(1);
        result = run(c, fresh);
        qg_workspace_free(fresh);
        check_passed(&result, &emulator);
        compared++;
    }
    ck_assert_int_gt(compared, 200);
    qg_workspace_free(workspace);
    qg_plan_free(plan);
}
END_TEST

START_TEST(cpu_alone_is_not_compared) {
    const char *const options[] = {"formats", "mxfp8", "rules", "floor", "backends", "cpu", "data",
                                   "normal",  "m",     "17",    "k",     "120",      NULL};
    qg_case_result result = run_only(options);
    ck_assert_msg(result.status == QG_CASE_RAN, "%s", result.reason);
    ck_assert_int_eq(result.code_mismatches, -1);
    ck_assert(result.compared[0].has_sums);
    // Picked out of a sweep of both it is, and so its line of arguments says.
    const char *const picked[] = {
        "formats", "mxfp8", "rules", "floor", "backends", "emulator,cpu", "data", "normal",
        "m",       "17",    "k",     "120",   "where",    "backend=cpu",  NULL};
    result = run_only(picked);
    ck_assert_int_eq(result.status, QG_CASE_PASSED);
    char line[1024];
    qg_plan *plan = plan_of(picked);
    ck_assert(qg_plan_repro(plan, qg_plan_case(plan, 0), line, sizeof line));
    ck_assert_msg(strstr(line, "--backends emulator,cpu ") != NULL, "%s", line);
    ck_assert_msg(strstr(line, "--where backend=cpu") != NULL, "%s", line);
    qg_plan_free(plan);
}
END_TEST

// A quantized tensor of a case, made by hand, and a copy to damage.
typedef struct pair {
    qg_plan *plan;
    const qg_case *c;
    op_quantized wanted, got;
} pair;

static op_quantized quantized_of(const qg_case *c) {
    op_quantized out = {.tensor_scale = 1};
    float *x = malloc((size_t)(c->m * c->k) * sizeof *x);
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32, .threads = 1};
    ck_assert_int_eq(qg_shape_of(c->recipe, c->m, c->k, &out.shape), QG_OK);
    out.codes = malloc((size_t)out.shape.codes_size);
    out.scales = malloc((size_t)out.shape.scales_size);
    out.q = malloc((size_t)(c->m * c->k) * sizeof *out.q);
    ck_assert_int_eq(qg_source_generate(c->source, c->seed, 0, c->input_type, c->m, c->k, x),
                     QG_OK);
    ck_assert_int_eq(qg_emulator_quantize(c->recipe, &options, c->m, c->k, x, out.codes, out.scales,
                                          &out.tensor_scale, NULL),
                     QG_OK);
    ck_assert_int_eq(qg_emulator_dequantize(c->recipe, c->m, c->k, out.codes, out.scales,
                                            out.tensor_scale, 1, out.q),
                     QG_OK);
    free(x);
    return out;
}

static pair pair_of(const char *format) {
    const char *const options[] = {"formats", format,
                                   "layouts", "default",
                                   "rules",   "default",
                                   "data",    "normal",
                                   "m",       "3",
                                   "k",       "64",
                                   "where",   "scale_rule!=even&scale_rule!=rceil",
                                   NULL};
    pair p = {.plan = plan_of(options)};
    ck_assert_int_ge(qg_plan_count(p.plan), 1);
    p.c = qg_plan_case(p.plan, 0);
    p.wanted = quantized_of(p.c);
    p.got = quantized_of(p.c);
    return p;
}

static void drop_pair(pair *p) {
    op_quantized *both[] = {&p->wanted, &p->got};
    for (int i = 0; i < 2; i++) {
        free(both[i]->codes);
        free(both[i]->scales);
        free(both[i]->q);
    }
    qg_plan_free(p->plan);
}

static qg_case_result compare(const pair *p) {
    qg_case_result result;
    qg_case_result_clear(&result, p->c);
    op_compare_quantized(p->c, &p->wanted, &p->got, &result);
    return result;
}

static void differs(const pair *p, int64_t codes, int64_t scales, const char *words) {
    qg_case_result result = compare(p);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert_int_eq(result.code_mismatches, codes);
    ck_assert_int_eq(result.scale_mismatches, scales);
    ck_assert_msg(strstr(result.reason, words) != NULL, "%s", result.reason);
}

START_TEST(a_wrong_byte_is_a_failure) {
    pair p = pair_of("mxfp8");
    ck_assert_int_eq(compare(&p).status, QG_CASE_PASSED);
    p.wanted.codes[64 + 5] = 0x3c;
    p.got.codes[64 + 5] = 0x3d;
    differs(&p, 1, 0,
            "1 of 192 codes differ from the emulator's, first at row 1, column 5: "
            "wanted 3c, got 3d");
    p.got.codes[2 * 64 + 63] ^= 1;
    differs(&p, 2, 0, "2 of 192 codes");
    p.got.scales[5] ^= 2;
    differs(&p, 2, 1, "2 of 192 codes"); // the first kind is named, both are counted
    memcpy(p.got.codes, p.wanted.codes, 192);
    differs(&p, 0, 1, "1 of 6 scales differ from the emulator's, first at row 2, column 1: wanted");
    memcpy(p.got.scales, p.wanted.scales, 6);
    p.wanted.q[70] = 0.0f;
    p.got.q[70] = -0.0f;
    differs(&p, 0, 0,
            "1 of 192 dequantized values differ from the emulator's, first at row 1, "
            "column 6: wanted 00000000, got 80000000");
    drop_pair(&p);
    p = pair_of("nvfp4");
    ck_assert_int_eq(compare(&p).status, QG_CASE_PASSED);
    p.got.tensor_scale *= 2;
    differs(&p, 0, 1, "the tensor scale differs from the emulator's: wanted 0x1");
    drop_pair(&p);
}
END_TEST

START_TEST(reasons_fit_and_stay_one_line) {
    qg_case_result result;
    qg_case c = {.order = 5};
    qg_case_result_clear(&result, &c);
    ck_assert_int_eq(result.order, 5);
    ck_assert_int_eq(result.code_mismatches, -1);
    ck_assert(result.compared[0].spearman != result.compared[0].spearman);
    qg_case_result_set(&result, QG_CASE_FAILED, "two\nlines\tof %d", 7);
    ck_assert_str_eq(result.reason, "two lines of 7");
    // Cut between characters: "é" is two bytes, and one byte opens the text or does not.
    for (int odd = 0; odd < 2; odd++) {
        char text[600] = "";
        if (odd)
            strcat(text, "x");
        for (int i = 0; i < 200; i++)
            strcat(text, "\xc3\xa9");
        qg_case_result_set(&result, QG_CASE_FAILED, "%s", text);
        size_t length = strlen(result.reason);
        ck_assert_uint_eq(length, odd ? 255 : 254);
        ck_assert_int_eq(memcmp(result.reason, text, length), 0);
    }
}
END_TEST

START_TEST(statuses_have_names) {
    for (int i = 0; i < QG_CASE_STATUS_COUNT; i++)
        ck_assert_int_eq(qg_case_status_find(qg_case_status_name((qg_case_status)i)), i);
    ck_assert_int_eq(qg_case_status_find("ran"), QG_CASE_STATUS_COUNT);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {digests_are_of_codes_scales_and_tensor_scale,
                                  results_do_not_depend_on_sequence_and_threads,
                                  delayed_looks_at_the_sixteen_seeds_before,
                                  what_says_little_is_mistrusted,
                                  mistrust_begins_at_half_saturated_and_seventy_percent_zeros,
                                  a_backend_that_cannot_is_a_failure,
                                  cpu_gives_the_emulators_bytes,
                                  cpu_alone_is_not_compared,
                                  a_wrong_byte_is_a_failure,
                                  reasons_fit_and_stay_one_line,
                                  statuses_have_names};
    return RUN_SUITE("op_error", tests);
}
