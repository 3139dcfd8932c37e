// Every gate has a twin that must fail it: the same cases with one mistake in them, computed and
// measured by the library on wrong codes, scales or units, written to a result file and read back.
// The clean file must pass. Prints the share of the tolerance that each of them uses.
#include <gate_run.h>
#include <plan_internal.h>
#include <qg_digest.h>
#include <qg_plan_build.h>
#include <qg_result_row.h>
#include <qg_results.h>
#include <qg_workspace.h>
#include <run_suite.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ------------------------------------------------------------------------------------------ cases

typedef struct tensor {
    const qg_case *c;
    const float *x;
    qg_recipe recipe; // what quantizes: the case's, unless the mistake is another
    qg_recipe reader; // what dequantizes
    qg_shape shape;
    uint8_t *codes, *scales;
    float *q;
} tensor;

typedef struct twin twin;
struct twin {
    const char *mistake, *gate;
    const char *options[24]; // option, value pairs
    // One of these. Of a tensor: before quantizing, before dequantizing, before measuring.
    void (*prepare)(tensor *t);
    void (*spoil)(tensor *t);
    void (*change)(tensor *t);
    // The unit that computes in place of the one that the row names, or the rule of both operands.
    const char *instead;
    int rule;
    // A change of the row itself.
    void (*edit)(qg_table *table, int64_t row);
    bool against_baseline;
};

static qg_plan *plan_of(const twin *w) {
    qg_plan_request *request;
    qg_plan *plan;
    ck_assert_int_eq(qg_plan_request_create(&request), QG_OK);
    for (int i = 0; w->options[i]; i += 2)
        ck_assert_msg(qg_plan_request_set(request, w->options[i], w->options[i + 1]) == QG_OK, "%s",
                      qg_detail());
    ck_assert_msg(qg_plan_build(request, &plan) == QG_OK, "%s", qg_detail());
    qg_plan_request_free(request);
    ck_assert_int_gt(qg_plan_count(plan), 0);
    return plan;
}

static void truncates(tensor *t) { t->recipe.conversion.rounding.mode = QG_ROUND_RTZ; }
static void rounds_ties_up(tensor *t) { t->recipe.conversion.rounding.mode = QG_ROUND_RNA; }
static void writes_fnuz(tensor *t) { t->recipe.element = QG_FORMAT_E4M3FNUZ; }
static void uses_floor(tensor *t) { t->recipe.rule = QG_RULE_FLOOR; }

static void doubles_scales(tensor *t) {
    for (int64_t i = 0; i < t->shape.scales_size; i++)
        t->scales[i]++;
}

// Scales written column by column, read row by row.
static void transposes_scales(tensor *t) {
    int64_t rows = t->shape.blocks.block_rows, columns = t->shape.blocks.block_columns;
    uint8_t *read = malloc((size_t)(rows * columns));
    for (int64_t i = 0; i < rows * columns; i++)
        read[i] = t->scales[i % rows * columns + i / rows];
    memcpy(t->scales, read, (size_t)(rows * columns));
    free(read);
}

static void takes_next_scale(tensor *t) {
    memmove(t->scales, t->scales + 1, (size_t)t->shape.scales_size - 1);
}

static void doubles_output(tensor *t) {
    for (int64_t i = 0; i < t->c->m * t->c->k; i++)
        t->q[i] *= 2;
}

static void flips_a_code(tensor *t) { t->codes[5] ^= 1; }

// ------------------------------------------------------------------------------------------ rows

// The tensor with its mistake, in the place of the row's results.
static void measure(const twin *w, const qg_case *c, qg_workspace *workspace, qg_table *table,
                    int64_t row) {
    qg_input input;
    qg_sums sums;
    qg_counts counts;
    float tensor_scale = 1;
    tensor t = {.c = c, .recipe = *c->recipe, .reader = *c->recipe};
    qg_quantize_options options = {.input_type = c->input_type, .seed = c->seed, .threads = 1};
    ck_assert_int_eq(qg_workspace_input(workspace, c, 0, &input), QG_OK);
    if (w->prepare)
        w->prepare(&t);
    ck_assert_int_eq(qg_shape_of(&t.recipe, c->m, c->k, &t.shape), QG_OK);
    t.x = input.x;
    t.codes = malloc((size_t)(t.shape.codes_size + t.shape.scales_size));
    t.scales = t.codes + t.shape.codes_size;
    t.q = malloc((size_t)(c->m * c->k) * sizeof *t.q);
    ck_assert_int_eq(qg_emulator_quantize(&t.recipe, &options, c->m, c->k, input.x, t.codes,
                                          t.scales, &tensor_scale, &counts),
                     QG_OK);
    if (w->spoil)
        w->spoil(&t);
    ck_assert_int_eq(
        qg_emulator_dequantize(&t.reader, c->m, c->k, t.codes, t.scales, tensor_scale, 1, t.q),
        QG_OK);
    if (w->change)
        w->change(&t);
    ck_assert_int_eq(qg_sums_measure(c->m * c->k, input.x, t.q, 1, &sums), QG_OK);
    ck_assert_int_eq(qg_table_set_sums(table, row, &sums), QG_OK);
    ck_assert_int_eq(qg_table_set_i64(table, row, QG_COLUMN_COUNT_CLIPPED, counts.clipped), QG_OK);
    uint64_t digest = qg_digest_bytes(t.codes, (size_t)(t.shape.codes_size + t.shape.scales_size));
    ck_assert_int_eq(qg_table_set_u64(table, row, QG_COLUMN_OUTPUT_DIGEST, digest), QG_OK);
    free(t.codes);
    free(t.q);
}

// What computes: the case, or the one that differs in unit or rule alone.
static const qg_case *computes(const twin *w, const qg_plan *plan, const qg_case *c) {
    if (!w || (!w->instead && !w->rule))
        return c;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *other = qg_plan_case(plan, i);
        bool wanted = w->instead
                          ? strcmp(other->unit, w->instead) == 0
                          : strcmp(other->unit, c->unit) == 0 && other->recipe->rule == w->rule;
        if (wanted && other->seed == c->seed && other->k == c->k && other->m == c->m)
            return other;
    }
    ck_abort_msg("no case to take the place");
    return NULL;
}

static void add_case(const twin *w, const qg_plan *plan, const qg_case *c, qg_workspace *workspace,
                     qg_table *table) {
    const qg_case *other = computes(w, plan, c);
    qg_case_result result;
    int64_t first = qg_table_rows(table);
    qg_case_result_clear(&result, other);
    other->op->run(other, workspace, &result);
    ck_assert_msg(result.status == QG_CASE_RAN || result.status == QG_CASE_PASSED, "%s: %s",
                  other->format, result.reason);
    result.order = c->order;
    ck_assert_int_eq(qg_result_row_add(table, plan, c, &result, 0), QG_OK);
    if (!w)
        return;
    // Of two backends the second has the mistake.
    bool is_first =
        c->against_emulator == 0 && w->options[1] && strcmp(w->gate, "backends-agree") == 0;
    if ((w->prepare || w->spoil || w->change) && !is_first)
        measure(w, c, workspace, table, first);
    if (w->edit)
        w->edit(table, first);
}

// The cases that a mistake takes in are no part of the file: w NULL leaves them out, too.
static bool is_wanted(const twin *w, const qg_case *c) {
    return !(w->instead && strcmp(c->unit, w->instead) == 0) &&
           !(w->rule && c->recipe->rule == w->rule);
}

static void make_file(const twin *w, const qg_plan *plan, bool clean, const char *path) {
    qg_table *table;
    int64_t run;
    qg_workspace *workspace;
    ck_assert_int_eq(qg_table_create(&table), QG_OK);
    ck_assert_int_eq(qg_table_add_run(table, &run), QG_OK);
    ck_assert_int_eq(qg_table_set_plan(table, qg_plan_text(plan)), QG_OK);
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (is_wanted(w, qg_plan_case(plan, i)))
            add_case(clean ? NULL : w, plan, qg_plan_case(plan, i), workspace, table);
    qg_workspace_free(workspace);
    ck_assert_msg(qg_results_write(path, table, QG_RESULTS_MERGED, true) == QG_OK, "%s",
                  qg_detail());
    qg_table_free(table);
}

// ----------------------------------------------------------------------------------------- gating

static qg_gates read_gates(void) {
    char path[4096];
    qg_gates gates;
    snprintf(path, sizeof path, "%s/reports/gates.tsv", getenv("QG_SOURCE_DIR"));
    ck_assert_msg(qg_gates_read(path, &gates) == QG_OK, "%s", qg_detail());
    return gates;
}

typedef struct outcome {
    int64_t passed, failed, others_failed, other;
    double used, cosine;
} outcome;

static outcome gate(const qg_gates *gates, const char *path, const qg_baseline *baseline,
                    const char *id) {
    qg_gate_file file = {.path = path};
    ck_assert_msg(qg_results_read(path, &file.table, &file.complete, &file.verified) == QG_OK, "%s",
                  qg_detail());
    qg_gate_run run = {.gates = gates,
                       .files = &file,
                       .file_count = 1,
                       .baseline = baseline,
                       .perf = true,
                       .today = "2025-01-01"};
    ck_assert_int_eq(qg_gate_run_all(&run), QG_OK);
    outcome out = {.cosine = qg_table_f64(file.table, 0, QG_COLUMN_METRIC_COSINE)};
    for (int64_t i = 0; i < run.count; i++) {
        const qg_gate_result *r = &run.results[i];
        bool ours = strcmp(r->gate->id, id) == 0;
        out.others_failed += !ours && r->verdict == QG_VERDICT_FAIL;
        if (!ours)
            continue;
        out.passed += r->verdict == QG_VERDICT_PASS;
        out.failed += r->verdict == QG_VERDICT_FAIL;
        out.other += r->verdict == QG_VERDICT_AMBIGUOUS;
        out.used = fmax(out.used, r->used);
    }
    qg_gate_run_free(&run);
    qg_table_free(file.table);
    return out;
}

static qg_baseline *baseline_of(const char *path) {
    qg_table *table;
    qg_baseline *baseline;
    bool complete, verified;
    int64_t fewest;
    ck_assert_int_eq(qg_results_read(path, &table, &complete, &verified), QG_OK);
    const qg_table *tables[] = {table};
    ck_assert_int_eq(qg_baseline_make(tables, 1, &baseline, &fewest), QG_OK);
    qg_table_free(table);
    return baseline;
}

// ------------------------------------------------------------------------------------------- edits

static void doubles_metric(qg_table *table, int64_t row) {
    double value = qg_table_f64(table, row, QG_COLUMN_METRIC_REL_FROBENIUS);
    ck_assert_int_eq(qg_table_set_f64(table, row, QG_COLUMN_METRIC_REL_FROBENIUS, 2 * value),
                     QG_OK);
}

static void loses_qsnr(qg_table *table, int64_t row) {
    ck_assert_int_eq(qg_table_set_f64(table, row, QG_COLUMN_METRIC_QSNR_DB, (double)NAN), QG_OK);
}

static void counts_mismatches(qg_table *table, int64_t row) {
    ck_assert_int_eq(qg_table_set_i64(table, row, QG_COLUMN_COUNT_CODE_MISMATCHES, 3), QG_OK);
}

static void counts_scale_mismatches(qg_table *table, int64_t row) {
    ck_assert_int_eq(qg_table_set_i64(table, row, QG_COLUMN_COUNT_SCALE_MISMATCHES, 1), QG_OK);
}

static void crashes(qg_table *table, int64_t row) {
    ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_STATUS, "CRASHED"), QG_OK);
}

// clang-format off
#define MX "formats", "mxfp8", "rules", "rceil", "ops", "error"
#define SMALL "data", "normal", "m", "64", "k", "1024", "backends", "emulator"
#define BF16 "data", "normal", "m", "16", "k", "1024", "backends", "emulator", "inputs", "bf16", "seeds", "1:5:1"
#define PRODUCT "ops", "gemm", "formats", "e4m3", "layouts", "per_tensor", "backends", "emulator"

static const twin TWINS[] = {
    {.mistake = "truncating encoder", .gate = "qsnr-theory", .options = {MX, SMALL}, .prepare = truncates},
    {.mistake = "truncating encoder", .gate = "shrinkage-theory", .options = {MX, SMALL}, .prepare = truncates},
    {.mistake = "truncating encoder", .gate = "error-within-step", .options = {MX, SMALL}, .prepare = truncates},
    {.mistake = "half-up ties", .gate = "bytes-as-before", .options = {MX, BF16}, .prepare = rounds_ties_up, .against_baseline = true},
    {.mistake = "half-up ties", .gate = "bias-drift", .options = {MX, BF16}, .prepare = rounds_ties_up, .against_baseline = true},
    {.mistake = "half-up ties, one backend", .gate = "backends-agree",
     .options = {MX, "data", "normal", "m", "16", "k", "1024", "inputs", "bf16", "backends", "emulator,cpu"}, .prepare = rounds_ties_up},
    {.mistake = "FNUZ read as OCP", .gate = "qsnr-theory", .options = {MX, SMALL}, .prepare = writes_fnuz},
    {.mistake = "FNUZ read as OCP", .gate = "qsnr-least", .options = {MX, SMALL}, .prepare = writes_fnuz},
    {.mistake = "wrong scale layout", .gate = "qsnr-theory", .options = {MX, SMALL}, .spoil = transposes_scales},
    {.mistake = "wrong scale layout", .gate = "qsnr-least", .options = {MX, SMALL}, .spoil = transposes_scales},
    {.mistake = "scale of the next block", .gate = "qsnr-theory", .options = {MX, SMALL}, .spoil = takes_next_scale},
    {.mistake = "scale off by one", .gate = "qsnr-theory", .options = {MX, SMALL}, .spoil = doubles_scales},
    {.mistake = "scale off by one", .gate = "qsnr-least", .options = {MX, SMALL}, .spoil = doubles_scales},
    {.mistake = "scale off by one", .gate = "error-within-step", .options = {MX, SMALL}, .spoil = doubles_scales},
    {.mistake = "scale off by one", .gate = "qsnr-drift", .options = {MX, BF16}, .spoil = doubles_scales, .against_baseline = true},
    {.mistake = "output off by a factor of two", .gate = "qsnr-theory", .options = {MX, SMALL}, .change = doubles_output},
    {.mistake = "floor in place of rceil", .gate = "qsnr-theory", .options = {MX, SMALL}, .prepare = uses_floor},
    {.mistake = "floor in place of rceil", .gate = "nothing-clips", .options = {MX, SMALL}, .prepare = uses_floor},
    {.mistake = "one bit of one code", .gate = "bytes-as-before", .options = {MX, SMALL}, .spoil = flips_a_code, .against_baseline = true},
    {.mistake = "missing promotion", .gate = "backward-error",
     .options = {PRODUCT, "units", "hopper_wgmma,hopper_wgmma+promote:128", "data", "uniform:1:abs", "m", "4", "n", "4", "k", "4096"},
     .instead = "hopper_wgmma"},
    {.mistake = "missing promotion", .gate = "accumulation-drift",
     .options = {PRODUCT, "units", "hopper_wgmma,hopper_wgmma+promote:128", "data", "normal", "m", "16", "n", "16", "k", "4096", "seeds", "1:5:1"},
     .instead = "hopper_wgmma", .against_baseline = true},
    {.mistake = "missing promotion", .gate = "backward-cancels",
     .options = {PRODUCT, "units", "hopper_wgmma,hopper_wgmma+promote:128", "data", "normal", "m", "8", "n", "8", "k", "65536"},
     .instead = "hopper_wgmma"},
    {.mistake = "13 fraction bits for 25", .gate = "backward-error",
     .options = {PRODUCT, "units", "hopper_wgmma,blackwell_tcgen05", "data", "normal", "m", "16", "n", "16", "k", "1024"},
     .instead = "hopper_wgmma"},
    {.mistake = "additions that truncate", .gate = "sequential-law",
     .options = {PRODUCT, "units", "fp32_sequential,fp32_sequential+rtz", "data", "normal", "m", "16", "n", "16", "k", "4096"},
     .instead = "fp32_sequential+rtz"},
    {.mistake = "floor in place of rceil", .gate = "product-theory",
     .options = {"ops", "gemm", "formats", "mxfp8", "rules", "rceil,floor", "units", "exact", "data", "normal", "m", "256", "n", "256", "k", "512", "backends", "emulator"},
     .rule = QG_RULE_FLOOR},
    {.mistake = "floor in place of rceil", .gate = "product-drift",
     .options = {"ops", "gemm", "formats", "mxfp8", "rules", "rceil,floor", "units", "exact", "data", "normal", "m", "64", "n", "64", "k", "512", "backends", "emulator", "seeds", "1:5:1"},
     .rule = QG_RULE_FLOOR, .against_baseline = true},
    {.mistake = "metric off by a factor of two", .gate = "metrics-follow-from-sums", .options = {MX, SMALL}, .edit = doubles_metric},
    {.mistake = "NaN where none may be", .gate = "metrics-follow-from-sums", .options = {MX, SMALL}, .edit = loses_qsnr},
    {.mistake = "codes that differed", .gate = "codes-equal-emulator",
     .options = {MX, "data", "normal", "m", "16", "k", "1024", "backends", "emulator,cpu"}, .edit = counts_mismatches},
    {.mistake = "scales that differed", .gate = "scales-equal-emulator",
     .options = {MX, "data", "normal", "m", "16", "k", "1024", "backends", "emulator,cpu"}, .edit = counts_scale_mismatches},
    {.mistake = "a crash", .gate = "no-failures", .options = {MX, SMALL}, .edit = crashes},
};
// clang-format on
enum { TWIN_COUNT = sizeof TWINS / sizeof TWINS[0] };

START_TEST(twins_fail_and_clean_results_pass) {
    const twin *w = &TWINS[_i];
    char clean[64], wrong[64];
    snprintf(clean, sizeof clean, "gate_clean.%d.h5", (int)getpid());
    snprintf(wrong, sizeof wrong, "gate_wrong.%d.h5", (int)getpid());
    qg_gates gates = read_gates();
    qg_plan *plan = plan_of(w);
    make_file(w, plan, true, clean);
    make_file(w, plan, false, wrong);
    qg_baseline *baseline = w->against_baseline ? baseline_of(clean) : NULL;
    outcome good = gate(&gates, clean, baseline, w->gate);
    outcome bad = gate(&gates, wrong, baseline, w->gate);
    qg_baseline_free(baseline);
    qg_plan_free(plan);
    qg_gates_free(&gates);
    unlink(clean);
    unlink(wrong);
    printf("%-30s %-25s clean %6.3f, wrong %8.3g of the tolerance, cosine %.6f\n", w->mistake,
           w->gate, good.used, bad.used, bad.cosine);
    ck_assert_msg(good.passed > 0, "%s does not apply to its clean twin", w->gate);
    ck_assert_msg(good.failed == 0 && good.others_failed == 0, "the clean twin of '%s' fails",
                  w->mistake);
    ck_assert_msg(bad.failed > 0, "%s lets '%s' pass: %g of its tolerance", w->gate, w->mistake,
                  bad.used);
    ck_assert(!(bad.used <= 1));
}
END_TEST

// What no sweep of this version measures: rows by hand.
static void check_by_hand(const char *gate_id, const char *op,
                          void (*good_row)(qg_table *, int64_t),
                          void (*bad_row)(qg_table *, int64_t)) {
    qg_gates gates = read_gates();
    for (int bad = 0; bad < 2; bad++) {
        qg_table *table;
        int64_t run, row;
        char path[64];
        snprintf(path, sizeof path, "gate_hand.%d.h5", (int)getpid());
        ck_assert_int_eq(qg_table_create(&table), QG_OK);
        ck_assert_int_eq(qg_table_add_run(table, &run), QG_OK);
        ck_assert_int_eq(qg_table_set_plan(table, "# by hand\n"), QG_OK);
        ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
        qg_table_set_order(table, row, 0);
        ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_OP, op), QG_OK);
        ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_STATUS, "RAN"), QG_OK);
        ck_assert_int_eq(qg_table_set_u64(table, row, QG_COLUMN_CASE_ID, 7), QG_OK);
        (bad ? bad_row : good_row)(table, row);
        ck_assert_int_eq(qg_results_write(path, table, QG_RESULTS_MERGED, true), QG_OK);
        qg_table_free(table);
        outcome out = gate(&gates, path, NULL, gate_id);
        unlink(path);
        printf("%-30s %-25s %s: %lld passed, %lld failed\n", op, gate_id, bad ? "wrong" : "clean",
               (long long)out.passed, (long long)out.failed);
        ck_assert_int_eq(out.failed, bad);
        ck_assert_int_eq(out.passed, !bad);
    }
    qg_gates_free(&gates);
}

static void covers_once(qg_table *table, int64_t row) {
    qg_table_set_i64(table, row, QG_COLUMN_PARTITION_VIOLATIONS, 0);
}
static void covers_twice(qg_table *table, int64_t row) {
    qg_table_set_i64(table, row, QG_COLUMN_PARTITION_VIOLATIONS, 1);
}
static void set_timing(qg_table *table, int64_t row, double ratio, double deviation) {
    qg_table_set_f64(table, row, QG_COLUMN_TIMING_MEMCPY_RATIO, ratio);
    qg_table_set_f64(table, row, QG_COLUMN_TIMING_MEDIAN_S, 1);
    qg_table_set_f64(table, row, QG_COLUMN_TIMING_MAD_S, deviation);
}
static void is_quick(qg_table *table, int64_t row) { set_timing(table, row, 0.5, 0.01); }
static void is_slow(qg_table *table, int64_t row) { set_timing(table, row, 0.001, 0.01); }
static void is_slow_or_not(qg_table *table, int64_t row) { set_timing(table, row, 0.019, 0.04); }

START_TEST(rows_that_no_sweep_gives) {
    check_by_hand("partition-covers-once", "partition", covers_once, covers_twice);
    check_by_hand("bandwidth", "throughput", is_quick, is_slow);
}
END_TEST

START_TEST(a_limit_within_the_spread_is_ambiguous) {
    qg_gates gates = read_gates();
    qg_table *table;
    int64_t run, row;
    const char *path = "gate_ambiguous.h5";
    ck_assert_int_eq(qg_table_create(&table), QG_OK);
    ck_assert_int_eq(qg_table_add_run(table, &run), QG_OK);
    ck_assert_int_eq(qg_table_set_plan(table, "# by hand\n"), QG_OK);
    ck_assert_int_eq(qg_table_append(table, &row), QG_OK);
    qg_table_set_order(table, row, 0);
    ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_OP, "throughput"), QG_OK);
    ck_assert_int_eq(qg_table_set_text(table, row, QG_COLUMN_STATUS, "RAN"), QG_OK);
    is_slow_or_not(table, row);
    ck_assert_int_eq(qg_results_write(path, table, QG_RESULTS_MERGED, true), QG_OK);
    qg_table_free(table);
    outcome out = gate(&gates, path, NULL, "bandwidth");
    unlink(path);
    ck_assert_int_eq(out.other, 1);
    ck_assert_int_eq(out.passed + out.failed, 0);
    qg_gates_free(&gates);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("gate twins");
    TCase *tcase = tcase_create("gate twins");
    tcase_set_timeout(tcase, 0);
    tcase_add_loop_test(tcase, twins_fail_and_clean_results_pass, 0, TWIN_COUNT);
    tcase_add_test(tcase, rows_that_no_sweep_gives);
    tcase_add_test(tcase, a_limit_within_the_spread_is_ambiguous);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
