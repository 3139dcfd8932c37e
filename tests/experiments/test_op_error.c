// Operation `error`: what its digests are over, what it mistrusts, and that results do not depend
// on what the worker did before.
#include <qg_philox.h>
#include <qg_plan_build.h>
#include <qg_workspace.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

// The plan of `error` with these options: pairs, then NULL.
static qg_plan *plan_of(const char *const *options) {
    qg_plan_request *request;
    qg_plan *plan;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    ck_assert_int_eq(qg_plan_request_set(request, "ops", "error"), QG_OK);
    for (; options[0]; options += 2)
        ck_assert_msg(qg_plan_request_set(request, options[0], options[1]) == QG_OK, "%s",
                      qg_detail());
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
                                  reasons_fit_and_stay_one_line,
                                  statuses_have_names};
    return RUN_SUITE("op_error", tests);
}
