// Operation `gemm`: what it compares with, its digests, what it mistrusts and skips, and that
// results depend neither on threads nor on what the worker did before.
#include <op_compare.h>
#include <qg_elementary.h>
#include <qg_layout_name.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <qg_workspace.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------ cases by hand

// A case and all that it points to.
typedef struct made {
    qg_case c;
    qg_recipe recipe[2];
    qg_unit unit;
    qg_source source;
    qg_law *law;
    char layout[2][QG_LAYOUT_NAME_SIZE], rule[2][QG_NAME_SIZE];
} made;

// What a case is made from; what is left out is e4m3 (per_tensor, amax), normal, exact, fp32.
typedef struct wanted {
    const char *op, *format, *format_b, *layout, *rule, *data, *unit, *backend;
    qg_format input, out;
    qg_rounding rounding;
    int64_t m, n, k;
    uint64_t seed;
    bool bias;
} wanted;

static const qg_op *op_of(const char *name) {
    for (size_t i = 0; qg_op_listed(i); i++)
        if (strcmp(qg_op_listed(i)->name, name) == 0)
            return qg_op_listed(i);
    ck_abort_msg("no operation %s", name);
    return NULL;
}

static void make_recipe(const wanted *w, const char *format, made *out, int which) {
    qg_recipe *r = &out->recipe[which];
    qg_layout layout;
    int rule;
    float fixed;
    ck_assert_msg(qg_recipe_find(format, r) == QG_OK, "%s", qg_detail());
    if (w->layout) {
        ck_assert_int_eq(qg_layout_parse(w->layout, &layout), QG_OK);
        ck_assert_int_eq(qg_recipe_set_layout(r, layout), QG_OK);
    }
    if (w->rule) {
        ck_assert_int_eq(qg_rule_parse(w->rule, &rule, &fixed), QG_OK);
        ck_assert_int_eq(qg_recipe_set_rule(r, rule, fixed), QG_OK);
    }
    r->conversion.rounding = w->rounding;
    qg_layout_name(r->layout, out->layout[which]);
    qg_rule_name(r->rule, r->fixed_scale, out->rule[which]);
}

static made *make(wanted w) {
    made *out = calloc(1, sizeof *out);
    const char *format = w.format ? w.format : "e4m3", *unit = w.unit ? w.unit : "exact";
    const char *format_b = w.format_b ? w.format_b : format;
    ck_assert_ptr_nonnull(out);
    make_recipe(&w, format, out, 0);
    make_recipe(&w, format_b, out, 1);
    ck_assert_msg(qg_unit_parse(unit, &out->unit) == QG_OK, "%s", qg_detail());
    ck_assert_int_eq(qg_law_parse(w.data ? w.data : "normal", &out->law), QG_OK);
    out->source = (qg_source){.data = qg_law_name(out->law), .tensor = "", .law = out->law};
    out->c = (qg_case){.op = op_of(w.op ? w.op : "gemm"),
                       .recipe = &out->recipe[0],
                       .recipe_b = &out->recipe[1],
                       .format = format,
                       .format_b = format_b,
                       .layout = out->layout[0],
                       .layout_b = out->layout[1],
                       .scale_rule = out->rule[0],
                       .scale_rule_b = out->rule[1],
                       .rounding = w.rounding.mode == QG_ROUND_RNE ? "rne" : "stochastic",
                       .unit = unit,
                       .matrix_unit = &out->unit,
                       .backend = w.backend ? w.backend : "emulator",
                       .data = out->source.data,
                       .tensor = "",
                       .source = &out->source,
                       .input_type = w.input ? w.input : QG_FORMAT_FP32,
                       .out_type = w.out ? w.out : QG_FORMAT_FP32,
                       .bias = w.bias,
                       .m = w.m ? w.m : 5,
                       .n = w.n ? w.n : 7,
                       .k = w.k ? w.k : 256,
                       .seed = w.seed ? w.seed : 1};
    return out;
}

static void drop(made *m) {
    qg_law_free(m->law);
    free(m);
}

static qg_workspace *workspace_of(int threads) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(threads, &workspace), QG_OK);
    return workspace;
}

static qg_case_result run(const qg_case *c, qg_workspace *workspace) {
    qg_case_result result;
    qg_case_result_clear(&result, c);
    c->op->run(c, workspace, &result);
    return result;
}

static qg_case_result run_fresh(const qg_case *c, int threads) {
    qg_workspace *workspace = workspace_of(threads);
    qg_case_result result = run(c, workspace);
    qg_workspace_free(workspace);
    return result;
}

static qg_case_result run_wanted(wanted w) {
    made *m = make(w);
    qg_case_result result = run_fresh(&m->c, 1);
    drop(m);
    return result;
}

static void ran(const qg_case_result *result) {
    ck_assert_msg(result->status == QG_CASE_RAN, "%s: %s",
                  qg_case_status_name((qg_case_status)result->status), result->reason);
    ck_assert(result->compared[0].has_sums && result->compared[1].has_sums);
    ck_assert_int_eq(strncmp(result->impl_used, "emulator ", 9), 0);
}

static double metric(const qg_case_result *result, int reference, qg_metric which) {
    return qg_metric_value(&result->compared[reference].sums, which);
}

static double error_of(const qg_case_result *result, int reference) {
    return metric(result, reference, QG_METRIC_REL_FROBENIUS);
}

// ------------------------------------------------------------- an independent model of one case

// out (m, n) = x y^T + bias in long double, and the same of magnitudes.
static void multiply(const qg_case *c, const float *x, const float *y, const float *bias,
                     long double *out, long double *size) {
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t j = 0; j < c->n; j++) {
            long double sum = bias ? bias[j] : 0, all = fabsl(sum);
            for (int64_t l = 0; l < c->k; l++) {
                long double p = (long double)x[i * c->k + l] * y[j * c->k + l];
                sum += p;
                all += fabsl(p);
            }
            out[i * c->n + j] = sum;
            size[i * c->n + j] = all;
        }
}

typedef struct model_operand {
    float *x, *q;
    uint8_t *codes, *scales;
    float tensor_scale;
    qg_matmul_operand view;
} model_operand;

static model_operand model_of(const qg_case *c, int which) {
    const qg_recipe *recipe = which ? c->recipe_b : c->recipe;
    int64_t rows = which ? c->n : c->m;
    model_operand o;
    qg_shape shape;
    ck_assert_int_eq(qg_shape_of(recipe, rows, c->k, &shape), QG_OK);
    o.x = malloc((size_t)(rows * c->k) * sizeof(float));
    o.q = malloc((size_t)(rows * c->k) * sizeof(float));
    o.codes = malloc((size_t)shape.codes_size);
    o.scales = malloc((size_t)shape.scales_size);
    qg_quantize_options options = {
        .input_type = c->input_type, .seed = c->seed, .stream = which ? 6 : 2, .threads = 1};
    float history[QG_HISTORY_LENGTH] = {0};
    if (recipe->rule == QG_RULE_DELAYED) { // the 16 seeds before, of the same operand
        for (int i = 0; i < QG_HISTORY_LENGTH; i++) {
            ck_assert_int_eq(qg_source_generate(c->source,
                                                c->seed - QG_HISTORY_LENGTH + (uint64_t)i, which,
                                                c->input_type, rows, c->k, o.x),
                             QG_OK);
            for (int64_t j = 0; j < rows * c->k; j++)
                history[i] = fabsf(o.x[j]) > history[i] ? fabsf(o.x[j]) : history[i];
        }
        options.amax_history = history;
        options.history_length = QG_HISTORY_LENGTH;
    }
    ck_assert_int_eq(qg_source_generate(c->source, c->seed, which, c->input_type, rows, c->k, o.x),
                     QG_OK);
    ck_assert_int_eq(qg_emulator_quantize(recipe, &options, rows, c->k, o.x, o.codes, o.scales,
                                          &o.tensor_scale, NULL),
                     QG_OK);
    ck_assert_int_eq(
        qg_emulator_dequantize(recipe, rows, c->k, o.codes, o.scales, o.tensor_scale, 1, o.q),
        QG_OK);
    o.view = (qg_matmul_operand){recipe, o.codes, o.scales, o.tensor_scale};
    return o;
}

static void drop_model(model_operand *o) {
    free(o->x);
    free(o->q);
    free(o->codes);
    free(o->scales);
}

// The error sums that matter, computed one after the other.
static void check_comparison(const qg_comparison *got, int64_t count, const long double *x,
                             const long double *size, const float *q) {
    long double xx = 0, ee = 0, backward = 0;
    for (int64_t i = 0; i < count; i++) {
        long double e = q[i] - x[i];
        xx += x[i] * x[i];
        ee += e * e;
        long double ratio = e == 0 ? 0 : fabsl(e) / size[i];
        backward = ratio > backward ? ratio : backward;
    }
    ck_assert_int_eq(got->sums.n_finite, count);
    ck_assert_double_eq_tol(qg_sum_value(got->sums.xx), (double)xx, 1e-12 * (double)xx);
    ck_assert_double_eq_tol(qg_sum_value(got->sums.ee), (double)ee, 1e-7 * (double)ee + 1e-300);
    ck_assert_double_eq_tol(got->backward_error, (double)backward,
                            1e-7 * (double)backward + 1e-300);
    ck_assert(got->spearman > 0.9 && got->spearman <= 1);
}

static void check_against_model(wanted w) {
    made *m = make(w);
    const qg_case *c = &m->c;
    qg_case_result result = run_fresh(c, 1);
    ran(&result);
    model_operand a = model_of(c, 0), b = model_of(c, 1);
    int64_t count = c->m * c->n;
    float *bias = malloc((size_t)c->n * sizeof *bias), *out = malloc((size_t)count * sizeof *out);
    long double *x = malloc((size_t)count * sizeof *x), *size = malloc((size_t)count * sizeof *x);
    for (int64_t j = 0; j < c->n; j++) // law normal with the words of stream 7
        bias[j] = (float)qg_normal_quantile(
            ((double)qg_philox_word(c->seed, 7, (uint64_t)j) + 0.5) / 4294967296.0);
    qg_matmul_options options = {
        .out_type = QG_FORMAT_FP32, .bias = c->bias ? bias : NULL, .threads = 1, .scalar = true};
    ck_assert_int_eq(qg_emulator_scaled_matmul(c->matrix_unit, &options, c->m, c->n, c->k, &a.view,
                                               &b.view, out, NULL),
                     QG_OK);
    multiply(c, a.x, b.x, c->bias ? bias : NULL, x, size);
    check_comparison(&result.compared[0], count, x, size, out);
    multiply(c, a.q, b.q, c->bias ? bias : NULL, x, size);
    check_comparison(&result.compared[1], count, x, size, out);
    uint64_t digests[3] = {qg_digest_bytes(a.x, (size_t)(c->m * c->k) * sizeof(float)),
                           qg_digest_bytes(b.x, (size_t)(c->n * c->k) * sizeof(float)),
                           qg_digest_bytes(bias, (size_t)c->n * sizeof(float))};
    ck_assert_uint_eq(result.input_digest, qg_digest_bytes(digests, c->bias ? 24 : 16));
    ck_assert_uint_eq(result.output_digest, qg_digest_bytes(out, (size_t)count * sizeof *out));
    free(bias);
    free(out);
    free(x);
    free(size);
    drop_model(&a);
    drop_model(&b);
    drop(m);
}

START_TEST(both_references_and_the_digests) {
    static const qg_rounding sr = {.mode = QG_ROUND_STOCHASTIC_A, .bits = 16};
    check_against_model((wanted){.unit = "fp32_sequential"});
    check_against_model((wanted){.unit = "hopper_wgmma", .bias = true, .k = 200});
    check_against_model((wanted){.unit = "hopper_wgmma", .rounding = sr, .seed = 9});
    check_against_model((wanted){.unit = "bf16_sequential", .data = "uniform", .bias = true});
    check_against_model((wanted){.unit = "blackwell_mx", .format = "mxfp8", .format_b = "mxfp4"});
    check_against_model((wanted){.unit = "hopper_wgmma", .format = "e4m3", .format_b = "e5m2"});
    check_against_model(
        (wanted){.unit = "hopper_wgmma+promote:128", .layout = "group:128", .k = 1000});
    check_against_model(
        (wanted){.unit = "blackwell_mxf4", .format = "nvfp4", .input = QG_FORMAT_BF16, .m = 33});
    check_against_model((wanted){.unit = "fp32_fma", .format = "mx6", .m = 1, .n = 40, .k = 33});
    // Each operand has a history of its own.
    check_against_model((wanted){
        .unit = "fp32_fma", .format = "te_delayed_e4m3", .m = 2, .n = 40, .k = 48, .seed = 20});
    check_against_model((wanted){
        .unit = "fp32_fma", .format_b = "te_delayed_e4m3", .m = 40, .n = 2, .k = 48, .seed = 20});
}
END_TEST

// ------------------------------------------------------------------------------ what is known

// Uniform on [-1, 1], rounded to e4m3 as it is: products are multiples of 2^-18, and 16 of them fit
// 24 bits. Whatever the order, nothing is rounded.
START_TEST(products_that_fit_have_no_error) {
    static const char *const units[] = {"exact", "fp32_sequential", "fp32_blocked:4", "fp64",
                                        "fp32_fma"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        qg_case_result r =
            run_wanted((wanted){.unit = units[i], .rule = "fixed:1", .data = "uniform:1", .k = 16});
        ran(&r);
        ck_assert_int_eq(r.compared[1].sums.exact, 35);
        ck_assert(error_of(&r, 1) == 0 && r.compared[1].backward_error == 0);
        ck_assert(metric(&r, 1, QG_METRIC_MAX_ULP) == 0 && r.compared[1].sums.hist_ulp[0] == 35);
        ck_assert(error_of(&r, 0) > 0.005 && error_of(&r, 0) < 0.1); // that of quantization
        ck_assert(r.compared[1].spearman == 1);
    }
    // Inputs that are of the format already: neither has the source.
    qg_case_result r = run_wanted((wanted){
        .format = "bf16", .rule = "fixed:1", .input = QG_FORMAT_BF16, .data = "uniform:1"});
    ran(&r);
    ck_assert_mem_eq(&r.compared[0].sums, &r.compared[1].sums, sizeof r.compared[0].sums);
    ck_assert(r.compared[0].sums.max_ulp > 0 && r.compared[0].sums.max_ulp <= 0.5);
}
END_TEST

START_TEST(exact_rounds_once) {
    static const qg_format types[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    static const char *const formats[] = {"e4m3", "mxfp8", "nvfp4", "e5m2"};
    static const double unit_roundoff[] = {0x1p-24, 0x1p-8, 0x1p-11};
    for (size_t t = 0; t < 3; t++)
        for (size_t f = 0; f < 4; f++)
            for (int bias = 0; bias < 2; bias++) {
                qg_case_result r = run_wanted((wanted){
                    .format = formats[f], .out = types[t], .bias = bias, .m = 20, .n = 30});
                ran(&r);
                ck_assert(metric(&r, 1, QG_METRIC_MAX_ULP) <= 0.5);
                ck_assert(error_of(&r, 1) < unit_roundoff[t]);
                ck_assert(r.compared[1].backward_error < unit_roundoff[t]);
                if (types[t] != QG_FORMAT_FP32) { // which holds many of the sums
                    ck_assert(metric(&r, 1, QG_METRIC_MAX_ULP) > 0.45);
                    ck_assert(error_of(&r, 1) > unit_roundoff[t] / 4);
                }
                ck_assert(error_of(&r, 0) > 0.01);
            }
}
END_TEST

// Operands of noise to signal r: the product's is 2 r, whatever k is.
START_TEST(quantization_error_is_flat_in_k_and_accumulation_grows) {
    double accumulation[2];
    for (int i = 0; i < 2; i++) {
        qg_case_result r =
            run_wanted((wanted){.unit = "fp32_sequential", .m = 32, .n = 32, .k = i ? 4096 : 256});
        ran(&r);
        ck_assert_double_eq_tol(error_of(&r, 0), 0.0375, 0.003); // 31.54 dB less 10 log10 2
        accumulation[i] = error_of(&r, 1);
    }
    // 0.4247 u sqrt(K/2): scales that are no powers of two fill the 24 bits of every product.
    ck_assert_double_eq_tol(accumulation[1] / (0.4247 * 0x1p-24 * sqrt(4096 / 2.0)), 1, 0.1);
    ck_assert_double_eq_tol(accumulation[1] / accumulation[0], 4, 0.4);
}
END_TEST

START_TEST(promotion_removes_what_the_short_accumulator_loses) {
    wanted w = {.unit = "hopper_wgmma", .m = 8, .n = 8, .k = 4096};
    qg_case_result alone = run_wanted(w);
    w.unit = "hopper_wgmma+promote:128";
    qg_case_result promoted = run_wanted(w);
    ran(&alone);
    ran(&promoted);
    ck_assert(error_of(&alone, 1) > 5 * error_of(&promoted, 1));
    ck_assert(alone.compared[0].sums.xx.high == promoted.compared[0].sums.xx.high);
}
END_TEST

// ---------------------------------------------------------------------------- sequence, threads

static void check_equal(const qg_case_result *a, const qg_case_result *b) {
    ck_assert_int_eq(a->status, b->status);
    ck_assert_str_eq(a->reason, b->reason);
    ck_assert_uint_eq(a->input_digest, b->input_digest);
    ck_assert_uint_eq(a->output_digest, b->output_digest);
    ck_assert_mem_eq(a->compared, b->compared, sizeof a->compared);
}

// Neighbours that share inputs, operands or references, and those that share all but one thing.
static const wanted MANY[] = {
    {.unit = "exact"                         },
    {.unit = "fp32_sequential"               },
    {.unit = "hopper_wgmma"                  },
    {.unit = "hopper_wgmma",                   .bias = true},
    {.unit = "hopper_wgmma",                                        .out = QG_FORMAT_FP16},
    {.op = "error"},
    {.unit = "hopper_wgmma"                           },
    {.op = "error",                   .m = 100, .k = 1000},
    {.unit = "hopper_wgmma",                            .n = 6},
    {.unit = "hopper_wgmma",                               .format_b = "e5m2"},
    {.unit = "hopper_wgmma",                   .format = "e5m2"},
    {.unit = "hopper_wgmma",                                        .rule = "amax_pow2"},
    {.unit = "hopper_wgmma",.layout = "per_row"},
    {.unit = "exact",                   .layout = "group:128"},
    {.unit = "exact",                                        .layout = "group:64"},
    {.unit = "exact",.rounding = {QG_ROUND_STOCHASTIC_A, 16}},
    {.unit = "exact",                   .seed = 2},
    {.unit = "exact",                                        .data = "laplace"},
    {.unit = "exact", .input = QG_FORMAT_BF16},
    {.op = "error",                          .format = "mxfp8"},
    {.unit = "blackwell_mx",                                        .format = "mxfp8"},
    {.unit = "exact",                    .format = "mxfp8"},
    {.unit = "blackwell_mx",                          .format = "mxfp8", .format_b = "mxfp4"},
    {.unit = "exact",                                        .format = "te_delayed_e4m3"},
    {.op = "error",.format = "te_delayed_e4m3"},
    {.unit = "hopper_wgmma",                          .format = "te_delayed_e4m3"},
    {.unit = "hopper_wgmma",                                        .format = "mxfp8"}, // does not go
    {.unit = "exact",.m = 200, .n = 90, .k = 300},
    {.unit = "exact",                   .m = 90, .n = 200, .k = 300},
    {.unit = "exact"                                       },
};
enum { MANY_COUNT = sizeof MANY / sizeof MANY[0] };

START_TEST(results_do_not_depend_on_sequence_and_threads) {
    made *cases[MANY_COUNT];
    qg_case_result *fresh = malloc(MANY_COUNT * sizeof *fresh);
    for (int i = 0; i < MANY_COUNT; i++) {
        cases[i] = make(MANY[i]);
        fresh[i] = run_fresh(&cases[i]->c, 1);
    }
    for (int threads = 1; threads <= 4; threads++) {
        qg_workspace *workspace = workspace_of(threads);
        for (int step = 0; step < 4 * MANY_COUNT; step++) { // forwards, backwards, in leaps, again
            int lap = step / MANY_COUNT, at = step % MANY_COUNT;
            int i = lap == 1 ? MANY_COUNT - 1 - at : lap == 2 ? at * 7 % MANY_COUNT : at;
            qg_case_result result = run(&cases[i]->c, workspace);
            check_equal(&fresh[i], &result);
            if (lap == 3 && at % 5 == 0)
                qg_workspace_shrink(workspace);
        }
        qg_workspace_free(workspace);
    }
    for (int i = 0; i < MANY_COUNT; i++)
        drop(cases[i]);
    free(fresh);
}
END_TEST

START_TEST(labels_say_what_is_in_a_buffer) {
    qg_workspace *workspace = workspace_of(1);
    void *room, *again;
    char longest[QG_LABEL_SIZE + 1];
    memset(longest, 'x', sizeof longest);
    longest[QG_LABEL_SIZE] = 0;
    ck_assert_int_eq(qg_workspace_room(workspace, QG_BUFFER_CODES, 100, 4, &room), QG_OK);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, ""));
    qg_workspace_label(workspace, QG_BUFFER_CODES, "one");
    ck_assert_ptr_eq(qg_workspace_find(workspace, QG_BUFFER_CODES, "one"), room);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, "on"));
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_SCALES, "one"));
    // Room for less is the same memory, and yet nobody knows what becomes of it.
    ck_assert_int_eq(qg_workspace_room(workspace, QG_BUFFER_CODES, 1, 4, &again), QG_OK);
    ck_assert_ptr_eq(again, room);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, "one"));
    qg_workspace_label(workspace, QG_BUFFER_CODES, "two");
    qg_workspace_label(workspace, QG_BUFFER_CODES, longest);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, longest));
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, "two"));
    qg_workspace_label(workspace, QG_BUFFER_CODES, longest + 1);
    ck_assert_ptr_eq(qg_workspace_find(workspace, QG_BUFFER_CODES, longest + 1), room);
    qg_workspace_shrink(workspace);
    ck_assert_ptr_null(qg_workspace_find(workspace, QG_BUFFER_CODES, longest + 1));
    qg_workspace_free(workspace);
}
END_TEST

// Names so long that a label cannot hold them: nothing is mistaken for something else.
START_TEST(long_names_are_not_mixed_up) {
    char first[1200], second[1200];
    memset(first, 'x', sizeof first);
    memset(second, 'x', sizeof second);
    strcpy(first + 1100, "first");
    strcpy(second + 1100, "second");
    made *one = make((wanted){.seed = 1}), *other = make((wanted){.data = "laplace"});
    one->source.data = first;
    other->source.data = second;
    qg_case_result fresh[2] = {run_fresh(&one->c, 1), run_fresh(&other->c, 1)};
    qg_workspace *workspace = workspace_of(1);
    for (int i = 0; i < 6; i++) {
        qg_case_result result = run(i % 3 == 1 ? &other->c : &one->c, workspace);
        check_equal(&fresh[i % 3 == 1], &result);
    }
    qg_workspace_free(workspace);
    drop(one);
    drop(other);
}
END_TEST

// Files of one name in two folders have their digests alone to tell their tensors apart.
START_TEST(tensors_of_one_name_are_not_mixed_up) {
    made *one = make((wanted){0}), *other = make((wanted){.data = "laplace"});
    one->source.data = other->source.data = "tensors:x.h5";
    one->source.tensor = other->source.tensor = "w";
    one->source.digest = 1, other->source.digest = 2;
    qg_case_result fresh[2] = {run_fresh(&one->c, 1), run_fresh(&other->c, 1)};
    ck_assert_uint_ne(fresh[0].output_digest, fresh[1].output_digest);
    qg_workspace *workspace = workspace_of(1);
    for (int i = 0; i < 6; i++) {
        qg_case_result result = run(i % 3 == 1 ? &other->c : &one->c, workspace);
        check_equal(&fresh[i % 3 == 1], &result);
    }
    qg_workspace_free(workspace);
    drop(one);
    drop(other);
}
END_TEST

// Makes the operand a of a case a tensor of a file.
static void take_tensor(made *m, qg_tensor_file *file, int64_t index) {
    qg_tensor_info info = qg_tensor_file_info(file, index);
    m->source = (qg_source){.data = "tensors:minilm.h5",
                            .tensor = info.name,
                            .file = file,
                            .tensor_index = index,
                            .m = info.m,
                            .k = info.k};
    ck_assert_int_eq(qg_tensor_file_digest(file, index, &m->source.digest), QG_OK);
    m->c.tensor = info.name;
    m->c.data = m->source.data;
    m->c.m = info.m;
    m->c.k = info.k;
}

// The first two tensors of one shape in a file.
static void find_twins(qg_tensor_file *file, int64_t twins[2]) {
    int64_t count = qg_tensor_file_count(file);
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = i + 1; j < count; j++) {
            qg_tensor_info a = qg_tensor_file_info(file, i), b = qg_tensor_file_info(file, j);
            if (!a.skipped && !b.skipped && a.m == b.m && a.k == b.k && a.m > 1) {
                twins[0] = i, twins[1] = j;
                return;
            }
        }
    ck_abort_msg("no two tensors of one shape");
}

START_TEST(tensors_of_one_file_are_not_mixed_up) {
    char path[4096];
    int64_t twins[2];
    qg_tensor_file *file;
    snprintf(path, sizeof path, "%s/datasets/minilm.h5", getenv("QG_SOURCE_DIR"));
    ck_assert_msg(qg_tensor_file_open(path, &file) == QG_OK, "%s", qg_detail());
    find_twins(file, twins);
    made *cases[2];
    qg_case_result fresh[2];
    for (int i = 0; i < 2; i++) {
        cases[i] = make((wanted){.n = 3, .layout = "per_row"});
        take_tensor(cases[i], file, twins[i]);
        fresh[i] = run_fresh(&cases[i]->c, 2);
        ran(&fresh[i]);
    }
    ck_assert_uint_ne(fresh[0].output_digest, fresh[1].output_digest);
    qg_workspace *workspace = workspace_of(2);
    for (int i = 0; i < 4; i++) {
        qg_case_result result = run(&cases[i % 2]->c, workspace);
        check_equal(&fresh[i % 2], &result);
    }
    qg_workspace_free(workspace);
    drop(cases[0]);
    drop(cases[1]);
    qg_tensor_file_close(file);
}
END_TEST

// ------------------------------------------------------------------------------------ statuses

static void check_status(wanted w, qg_case_status status, const char *words) {
    qg_case_result r = run_wanted(w);
    ck_assert_msg((qg_case_status)r.status == status, "%s: %s",
                  qg_case_status_name((qg_case_status)r.status), r.reason);
    ck_assert_msg(strstr(r.reason, words) != NULL, "%s", r.reason);
    bool measured = status == QG_CASE_RAN || status == QG_CASE_MISTRUSTED;
    for (int i = 0; i < 2; i++)
        ck_assert(r.compared[i].has_sums == measured);
    ck_assert((r.output_digest != 0) == measured);
}

START_TEST(impossible_products_are_skipped) {
    check_status((wanted){.unit = "hopper_wgmma", .format = "mxfp8"}, QG_CASE_SKIPPED,
                 "no block scales");
    check_status((wanted){.unit = "hopper_wgmma", .layout = "group:128"}, QG_CASE_SKIPPED,
                 "+promote:128");
    check_status((wanted){.unit = "volta_mma"}, QG_CASE_SKIPPED, "does not multiply e4m3");
    check_status((wanted){.unit = "blackwell_mx", .format = "mxfp8", .format_b = "e4m3"},
                 QG_CASE_SKIPPED, "block scales on both operands");
    check_status((wanted){.unit = "native"}, QG_CASE_SKIPPED, "native");
}
END_TEST

START_TEST(what_says_little_is_mistrusted) {
    check_status((wanted){.out = QG_FORMAT_FP16, .data = "normal:sigma=1000"}, QG_CASE_MISTRUSTED,
                 "NaN or infinite");
    check_status((wanted){.rule = "fixed:0.0001"}, QG_CASE_MISTRUSTED, "saturated");
    check_status((wanted){.rule = "fixed:100000"}, QG_CASE_MISTRUSTED, "of the output is zero");
    check_status((wanted){.out = QG_FORMAT_BF16}, QG_CASE_RAN, "");
    // Formats whose largest square is beyond binary32 leave no room for a product.
    static const char advice[] = "amax scales these data to the largest value of ";
    static const char *const wide[] = {"bf16", "tf32"};
    for (int i = 0; i < 2; i++) {
        char words[128];
        snprintf(words, sizeof words, "infinite; %s%s: try --rules fixed:1", advice, wide[i]);
        check_status((wanted){.format = wide[i], .unit = "ampere_mma"}, QG_CASE_MISTRUSTED, words);
        check_status((wanted){.format = wide[i], .unit = "ampere_mma", .rule = "fixed:1"},
                     QG_CASE_RAN, "");
    }
    qg_case_result r = run_wanted((wanted){.out = QG_FORMAT_FP16, .data = "normal:sigma=1000"});
    ck_assert_ptr_null(strstr(r.reason, advice));
}
END_TEST

START_TEST(what_cannot_run_is_a_failure) {
    made *good = make((wanted){0}), *bad = make((wanted){0});
    qg_case_result fresh = run_fresh(&good->c, 1);
    qg_workspace *workspace = workspace_of(1);
    run(&good->c, workspace);
    bad->c.m = (int64_t)1 << 40, bad->c.k = (int64_t)1 << 40;
    qg_case_result result = run(&bad->c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert(result.reason[0] && !result.compared[0].has_sums);
    ck_assert(qg_op_listed(0) && bad->c.op->bytes(&bad->c) == INT64_MAX);
    drop(bad);
    bad = make((wanted){.out = QG_FORMAT_TF32});
    result = run(&bad->c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    // Whatever was measured before the failure is no result.
    result = fresh;
    bad->c.op->run(&bad->c, workspace, &result);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert(!result.compared[0].has_sums && !result.compared[1].has_sums);
    ck_assert(result.output_digest == 0 && result.input_digest == 0);
    ck_assert_str_eq(result.impl_used, "");
    drop(bad);
    bad = make((wanted){0});
    bad->c.backend = "abacus";
    result = run(&bad->c, workspace);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert_ptr_nonnull(strstr(result.reason, "abacus"));
    result = run(&good->c, workspace);
    check_equal(&fresh, &result);
    qg_workspace_free(workspace);
    drop(good);
    drop(bad);
}
END_TEST

// ---------------------------------------------------------------------------- the cpu's own product

START_TEST(native_products_are_held_by_a_bound) {
    static const char *const formats[] = {"e4m3", "mxfp8", "nvfp4", "mxint8", "rlx_mxfp4x2", "mx6"};
    static const qg_format outs[] = {QG_FORMAT_FP32, QG_FORMAT_BF16, QG_FORMAT_FP16};
    qg_workspace *workspace = workspace_of(2);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
        for (size_t o = 0; o < 3; o++) {
            wanted w = {.format = formats[f],
                        .unit = "native",
                        .backend = "cpu",
                        .out = outs[o],
                        .bias = o == 1,
                        .m = 33,
                        .n = 17,
                        .k = 320};
            made *native = make(w);
            qg_case_result result = run(&native->c, workspace);
            ck_assert_msg(result.status == QG_CASE_PASSED, "%s: %s", formats[f], result.reason);
            ck_assert_int_eq(strncmp(result.impl_used, "cpu ", 4), 0);
            ck_assert(result.compared[0].has_sums && result.compared[1].has_sums);
            w.unit = "exact";
            w.backend = "emulator";
            made *exact = make(w);
            qg_case_result emulated = run(&exact->c, workspace);
            ck_assert_uint_eq(emulated.input_digest, result.input_digest);
            ck_assert_double_le(emulated.compared[1].backward_error,
                                result.compared[1].backward_error);
            drop(exact);
            drop(native);
        }
    qg_workspace_free(workspace);
}
END_TEST

static qg_case_result hold(const made *m, float out, double exact, double size) {
    qg_case_result result;
    float outs[2] = {1, out};
    double exacts[2] = {1, exact}, sizes[2] = {1, size};
    op_product p = {2, outs, exacts, sizes, 0x1p-10, 0x1p-149};
    qg_case_result_clear(&result, &m->c);
    op_hold_bound(&m->c, &p, &result);
    return result;
}

START_TEST(outputs_beyond_the_bound_fail) {
    made *m = make((wanted){.n = 2});
    ck_assert_int_eq(hold(m, 1, 1, 1).status, QG_CASE_PASSED);
    ck_assert_int_eq(hold(m, 1 + 0x1p-10f, 1, 1).status, QG_CASE_PASSED);
    qg_case_result result = hold(m, 1 + 0x1.8p-10f, 1, 1);
    ck_assert_int_eq(result.status, QG_CASE_FAILED);
    ck_assert_msg(strstr(result.reason,
                         "1 of 2 outputs exceed the bound 0.000977 |a| |b|, worst at "
                         "row 0, column 1: wanted 1, got 1.00146") != NULL,
                  "%s", result.reason);
    ck_assert_int_eq(hold(m, 1 + 0x1.8p-10f, 1, 2).status, QG_CASE_PASSED); // of a larger sum
    ck_assert_int_eq(hold(m, 0x1p-149f, 0, 0).status, QG_CASE_PASSED);
    ck_assert_int_eq(hold(m, 0x1p-148f, 0, 0).status, QG_CASE_FAILED);
    ck_assert_int_eq(hold(m, NAN, 1, 1).status, QG_CASE_FAILED);
    ck_assert_int_eq(hold(m, INFINITY, 1, 1).status, QG_CASE_FAILED);
    ck_assert_int_eq(hold(m, INFINITY, 0x1p128, 0x1p128).status, QG_CASE_PASSED);
    ck_assert_int_eq(hold(m, -INFINITY, 0x1p128, 0x1p128).status, QG_CASE_FAILED);
    ck_assert_int_eq(hold(m, NAN, NAN, NAN).status, QG_CASE_PASSED);
    ck_assert_int_eq(hold(m, 1, INFINITY, INFINITY).status, QG_CASE_FAILED);
    drop(m);
    m = make((wanted){.n = 2, .out = QG_FORMAT_FP16});
    ck_assert_int_eq(hold(m, INFINITY, 70000, 70000).status, QG_CASE_PASSED);
    ck_assert_int_eq(hold(m, INFINITY, 60000, 60000).status, QG_CASE_FAILED);
    drop(m);
}
END_TEST

// Saturated operands are found although the runtime that made them does not count.
START_TEST(saturation_is_counted_where_it_matters) {
    static const char *const formats[] = {"e4m3", "int8", "e2m1", "e2m3", "f8e4m3b7"};
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        made *m = make((wanted){.format = formats[f], .rule = "fixed:0.0001", .k = 64});
        qg_case_result result = run_fresh(&m->c, 1);
        ck_assert_msg(result.status == QG_CASE_MISTRUSTED, "%s: %s", formats[f], result.reason);
        ck_assert_msg(strstr(result.reason, "saturated") != NULL, "%s: %s", formats[f],
                      result.reason);
        drop(m);
    }
}
END_TEST

// Of b, too, where a is as it should be.
START_TEST(saturation_of_either_operand_is_mistrusted) {
    for (int which = 0; which < 2; which++) {
        made *m = make((wanted){.rule = "fixed:0.0001", .k = 64});
        ck_assert_int_eq(qg_recipe_set_rule(&m->recipe[1 - which], QG_RULE_AMAX, 0), QG_OK);
        strcpy(m->rule[1 - which], "amax");
        qg_case_result result = run_fresh(&m->c, 1);
        ck_assert_msg(result.status == QG_CASE_MISTRUSTED &&
                          strstr(result.reason, "saturated") != NULL,
                      "%d: %s", which, result.reason);
        drop(m);
    }
}
END_TEST

// What the buffers of a workspace hold after a case, and what a unit takes beside it: operands as
// binary32 (a software unit), a sum of each output (another unit).
START_TEST(bytes_are_at_least_what_is_used) {
    static const int64_t shapes[][3] = {
        {1024, 512,  4096},
        {1024, 1024, 1   },
        {1,    2000, 3000},
        {2000, 1,    3000}
    };
    enum { INPUT = 4, RAW = 2, CODES = 1, VALUES = 4, OUTPUT = 4, FLOATS = 8, REFERENCES = 32 };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int64_t m = shapes[i][0], n = shapes[i][1], k = shapes[i][2];
        int64_t elements = (m + n) * k, outputs = m * n;
        int64_t least = elements * (INPUT + CODES + VALUES + VALUES) +
                        outputs * (OUTPUT + FLOATS + REFERENCES + OUTPUT);
        made *c = make((wanted){.m = m, .n = n, .k = k});
        ck_assert_int_ge(c->c.op->bytes(&c->c), least);
        c->c.input_type = QG_FORMAT_BF16;
        ck_assert_int_ge(c->c.op->bytes(&c->c), least + elements * RAW);
        drop(c);
        c = make((wanted){.format = "te_delayed_e4m3", .m = m, .n = n, .k = k});
        ck_assert_int_ge(c->c.op->bytes(&c->c),
                         least + (m > n ? m : n) * k * INPUT - m * n * OUTPUT);
        drop(c);
    }
}
END_TEST

START_TEST(bytes_and_cost_grow_with_the_product) {
    made *small = make((wanted){.m = 16, .n = 16, .k = 128});
    made *large = make((wanted){.m = 1024, .n = 512, .k = 4096});
    ck_assert_int_gt(large->c.op->bytes(&large->c), (1024 + 512) * 4096 * 9);
    ck_assert_int_lt(small->c.op->bytes(&small->c), 1 << 20);
    ck_assert(large->c.op->cost(&large->c) > 1000 * small->c.op->cost(&small->c));
    drop(small);
    drop(large);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {both_references_and_the_digests,
                                  products_that_fit_have_no_error,
                                  exact_rounds_once,
                                  quantization_error_is_flat_in_k_and_accumulation_grows,
                                  promotion_removes_what_the_short_accumulator_loses,
                                  results_do_not_depend_on_sequence_and_threads,
                                  labels_say_what_is_in_a_buffer,
                                  long_names_are_not_mixed_up,
                                  tensors_of_one_name_are_not_mixed_up,
                                  tensors_of_one_file_are_not_mixed_up,
                                  impossible_products_are_skipped,
                                  what_says_little_is_mistrusted,
                                  what_cannot_run_is_a_failure,
                                  native_products_are_held_by_a_bound,
                                  outputs_beyond_the_bound_fail,
                                  saturation_is_counted_where_it_matters,
                                  saturation_of_either_operand_is_mistrusted,
                                  bytes_are_at_least_what_is_used,
                                  bytes_and_cost_grow_with_the_product};
    return RUN_SUITE("op_gemm", tests);
}
