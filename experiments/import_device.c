// The rows of a device check as rows of a result file. See import_device.h.
//
// Rows bytes and control become cases of operation `error`, gemm and probe of `gemm`, time of
// `throughput`; backend cuda, unit native. A case id is that which run_sweep gives to the same case
// (same axes, data a law, scales row-major, the kernel that the choice takes on that device,
// promoted accumulation, hot buffers). What a sweep has no axis for, another kernel, storage, state
// of the caches, a pattern of data, stands in the column `tensor` (`kernel=group_shared cold`) and so
// makes an id of its own. `reference` of products is the unit that they were compared with.
#include <import_device.h>

#include <import_device_file.h>
#include <message.h>
#include <number.h>
#include <qg_axis.h>
#include <qg_build_info.h>
#include <qg_kernel_choice.h>
#include <qg_provenance.h>
#include <qg_recipe_name.h>
#include <qg_results.h>
#include <qg_size.h>
#include <qg_source.h>
#include <qg_version.h>
#include <row_writer.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_SIZE = 256 };

typedef struct import {
    device_file file;
    qg_law *law; // of the source below: synthetic data have no digest
    qg_source source;
    int64_t run, sm_count;
    const device_row *row; // the one that is being taken
    row_writer w;          // of its row of the table
} import;

// ----------------------------------------------------------------------------------------- fields

static void fail_field(import *im, int field, const char *what) {
    if (im->w.status == QG_OK)
        im->w.status = device_file_fail(
            &im->file, im->row->line, "field %d of '%s': '%.40s' is no %s", field + 2,
            device_kind_name(im->row->kind), im->row->field[field], what);
}

static int64_t size_of(import *im, int field) {
    int64_t value = 0;
    if (!qg_number_i64(im->row->field[field], &value) || value < 0) {
        fail_field(im, field, "whole number from 0");
        return 0;
    }
    return value;
}

static double seconds_of(import *im, int field, bool may_miss) {
    double value = 0;
    bool read = qg_number_f64(im->row->field[field], &value);
    if (read && may_miss && isnan(value))
        return NAN;
    if (!read || !isfinite(value) || value < 0)
        fail_field(im, field, "time in seconds");
    return value;
}

static qg_format format_of(import *im, int field, bool may_miss) {
    qg_format format = QG_FORMAT_FP32;
    if (!(may_miss && !im->row->field[field][0]) &&
        qg_format_parse(im->row->field[field], &format) != QG_OK)
        fail_field(im, field, "format");
    return format;
}

// ------------------------------------------------------------------------------------------- rows

static const qg_op *op_of(const char *name) {
    size_t i = 0;
    while (qg_op_listed(i) && strcmp(qg_op_listed(i)->name, name) != 0)
        i++;
    return qg_op_listed(i);
}

static qg_case case_of(import *im, const char *op) {
    return (qg_case){.op = op_of(op),
                     .format = "",
                     .layout = "",
                     .scale_rule = "",
                     .scale_format = "",
                     .rounding = "",
                     .format_b = "",
                     .layout_b = "",
                     .scale_rule_b = "",
                     .unit = "",
                     .backend = "cuda",
                     .data = "",
                     .tensor = "",
                     .source = &im->source,
                     .input_type = QG_FORMAT_FP32,
                     .out_type = QG_FORMAT_FP32};
}

// The name of a rule's scale format, valid until the next call. "" for a word that is no rule.
static const char *scale_format_of(import *im, int field) {
    static char name[QG_NAME_SIZE];
    int rule;
    float fixed;
    name[0] = 0;
    if (qg_rule_parse(im->row->field[field], &rule, &fixed) == QG_OK)
        qg_format_name(qg_rule_scale_format(rule), name);
    else
        fail_field(im, field, "scale rule");
    return name;
}

static void set_axes(import *im, const qg_case *c) {
    static const qg_column texts[] = {
        QG_COLUMN_FORMAT,     QG_COLUMN_LAYOUT,   QG_COLUMN_SCALE_RULE, QG_COLUMN_SCALE_FORMAT,
        QG_COLUMN_ROUNDING,   QG_COLUMN_FORMAT_B, QG_COLUMN_LAYOUT_B,   QG_COLUMN_SCALE_RULE_B,
        QG_COLUMN_UNIT,       QG_COLUMN_BACKEND,  QG_COLUMN_DATA,       QG_COLUMN_TENSOR,
        QG_COLUMN_INPUT_TYPE, QG_COLUMN_OUT_TYPE, QG_COLUMN_OP};
    set_u64(&im->w, QG_COLUMN_CASE_ID, qg_case_identity(c));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        set_text(&im->w, texts[i], qg_axis_cell(c, texts[i]).text);
    set_i64(&im->w, QG_COLUMN_M, c->m);
    set_i64(&im->w, QG_COLUMN_N, c->n);
    set_i64(&im->w, QG_COLUMN_K, c->k);
    set_u64(&im->w, QG_COLUMN_SEED, c->seed);
    if (im->w.status == QG_OK)
        im->w.status = qg_table_set_u8(im->w.table, im->w.row, QG_COLUMN_HAS_BIAS, c->bias);
}

// A new row of the table with everything but what is measured.
static void begin_row(import *im, const qg_case *c, const char *reference, const char *impl) {
    static const char *const statuses[] = {"PASSED", "FAILED", "SKIPPED", "RAN"};
    char used[TEXT_SIZE];
    if (im->w.status == QG_OK)
        im->w.status = qg_table_append(im->w.table, &im->w.row);
    if (im->w.status != QG_OK)
        return;
    qg_table_set_order(im->w.table, im->w.row, im->w.row);
    snprintf(used, sizeof used, "cuda%s%s", impl[0] ? " " : "", impl);
    set_axes(im, c);
    set_text(&im->w, QG_COLUMN_REFERENCE, reference);
    set_text(&im->w, QG_COLUMN_STATUS, statuses[im->row->verdict]);
    set_text(&im->w, QG_COLUMN_REASON, im->row->reason);
    set_text(&im->w, QG_COLUMN_IMPL_USED, used);
    set_i64(&im->w, QG_COLUMN_RUN, im->run);
}

// ------------------------------------------------------------------------------------------ kinds

// Whether a sweep on that device would run this kernel: of groups, the one that the choice takes.
static bool is_chosen(const import *im, const qg_case *c, const char *kernel) {
    qg_layout layout;
    if (strncmp(kernel, "group_", 6) != 0 || qg_layout_parse(c->layout, &layout) != QG_OK ||
        layout.kind != QG_LAYOUT_GROUP || c->m < 1 || c->k < 1)
        return true;
    qg_kernel_request request = {.lever = QG_LEVER_AUTO,
                                 .twin_present = true,
                                 .shared_present = true,
                                 .m = c->m,
                                 .k = c->k,
                                 .group = layout.columns,
                                 .element_bytes = c->input_type == QG_FORMAT_FP32 ? 4 : 2,
                                 .sm_count = im->sm_count};
    return strcmp(kernel + 6, qg_group_kernel_name(qg_kernel_choose(&request).kernel)) == 0;
}

static void append(char text[TEXT_SIZE], const char *name, const char *value) {
    size_t length = strlen(text);
    snprintf(text + length, TEXT_SIZE - length, "%s%s%.80s", length ? " " : "", name, value);
}

static void take_bytes(import *im) {
    const char *const *f = im->row->field;
    const char *kernel = f[DEVICE_BYTES_KERNEL];
    char variant[TEXT_SIZE] = "";
    bool product = strcmp(kernel, "multiply") == 0;
    qg_case c = case_of(im, product ? "gemm" : "error");
    c.format = f[DEVICE_BYTES_FORMAT];
    c.layout = f[DEVICE_BYTES_LAYOUT];
    c.scale_rule = f[DEVICE_BYTES_RULE];
    c.rounding = f[DEVICE_BYTES_ROUNDING];
    c.scale_format = scale_format_of(im, DEVICE_BYTES_RULE);
    c.data = f[DEVICE_BYTES_DATA];
    c.input_type = format_of(im, DEVICE_BYTES_INPUT, false);
    c.out_type = format_of(im, DEVICE_BYTES_OUTPUT, true);
    c.seed = (uint64_t)size_of(im, DEVICE_BYTES_SEED);
    c.m = size_of(im, DEVICE_BYTES_M);
    c.n = size_of(im, DEVICE_BYTES_N);
    c.k = size_of(im, DEVICE_BYTES_K);
    c.unit = product ? "native" : "";
    bool quantizes = strcmp(kernel, "dequantize") != 0 && strcmp(kernel, "cvt") != 0 && !product &&
                     !strchr(kernel, '+');
    if (!quantizes || !is_chosen(im, &c, kernel))
        append(variant, "kernel=", kernel);
    if (strcmp(f[DEVICE_BYTES_STORAGE], "row_major") != 0)
        append(variant, "storage=", f[DEVICE_BYTES_STORAGE]);
    if (!product && f[DEVICE_BYTES_OUTPUT][0])
        append(variant, "out=", f[DEVICE_BYTES_OUTPUT]);
    c.tensor = variant;
    begin_row(im, &c, product ? "fp32_fma" : "", kernel);
    set_i64(&im->w, QG_COLUMN_COUNT_CODE_MISMATCHES, size_of(im, DEVICE_BYTES_CODES));
    set_i64(&im->w, QG_COLUMN_COUNT_SCALE_MISMATCHES, size_of(im, DEVICE_BYTES_SCALES));
    (void)size_of(im, DEVICE_BYTES_GUARDS); // the reason tells of them
}

static void take_control(import *im) {
    const char *const *f = im->row->field;
    char variant[TEXT_SIZE] = "";
    qg_case c = case_of(im, "error");
    append(variant, "kernel=", f[DEVICE_CONTROL_KERNEL]);
    append(variant, "control=", f[DEVICE_CONTROL_NAME]);
    c.data = "control";
    c.tensor = variant;
    begin_row(im, &c, "", f[DEVICE_CONTROL_KERNEL]);
    (void)size_of(im, DEVICE_CONTROL_CAUGHT);
}

static void take_gemm(import *im) {
    const char *const *f = im->row->field;
    char variant[TEXT_SIZE] = "", impl[TEXT_SIZE];
    int64_t outputs = 0;
    qg_case c = case_of(im, "gemm");
    c.format = f[DEVICE_GEMM_FORMAT];
    c.layout = f[DEVICE_GEMM_LAYOUT];
    c.scale_rule = f[DEVICE_GEMM_RULE];
    c.format_b = f[DEVICE_GEMM_FORMAT_B];
    c.layout_b = f[DEVICE_GEMM_LAYOUT_B];
    c.scale_rule_b = f[DEVICE_GEMM_RULE_B];
    (void)scale_format_of(im, DEVICE_GEMM_RULE_B);
    c.scale_format = scale_format_of(im, DEVICE_GEMM_RULE);
    c.rounding = "rne";
    c.unit = "native";
    c.data = "normal";
    c.out_type = format_of(im, DEVICE_GEMM_OUTPUT, false);
    c.bias = size_of(im, DEVICE_GEMM_BIAS) != 0;
    c.seed = (uint64_t)size_of(im, DEVICE_GEMM_SEED);
    c.m = size_of(im, DEVICE_GEMM_M);
    c.n = size_of(im, DEVICE_GEMM_N);
    c.k = size_of(im, DEVICE_GEMM_K);
    if (!qg_size_multiply(c.m, c.n, &outputs))
        fail_field(im, DEVICE_GEMM_N, "size whose product with m fits");
    if (strcmp(f[DEVICE_GEMM_ACCUMULATION], "promoted") != 0)
        append(variant, "accumulation=", f[DEVICE_GEMM_ACCUMULATION]);
    if (size_of(im, DEVICE_GEMM_C) != 0)
        append(variant, "c=", "added");
    if (c.bias) // not a sweep's
        append(variant, "bias=", "of the check");
    c.tensor = variant;
    snprintf(impl, sizeof impl, "cublaslt %.48s", f[DEVICE_GEMM_ALGORITHM]);
    begin_row(im, &c, f[DEVICE_GEMM_UNIT], impl);
    set_i64(&im->w, QG_COLUMN_COUNT_N, outputs);
    set_i64(&im->w, QG_COLUMN_COUNT_CODE_MISMATCHES, size_of(im, DEVICE_GEMM_DIFFERENCES));
}

static void take_probe(import *im) {
    const char *const *f = im->row->field;
    char variant[TEXT_SIZE] = "", impl[TEXT_SIZE];
    double count;
    qg_case c = case_of(im, "gemm");
    c.format = c.format_b = "e4m3";
    c.layout = c.layout_b = "per_tensor";
    c.scale_rule = c.scale_rule_b = "fixed:1";
    c.scale_format = "fp32";
    c.rounding = "rne";
    c.unit = "native";
    c.data = "probe";
    c.k = size_of(im, DEVICE_PROBE_K);
    (void)size_of(im, DEVICE_PROBE_POWER);
    (void)size_of(im, DEVICE_PROBE_I);
    (void)size_of(im, DEVICE_PROBE_J);
    append(variant, "accumulation=", f[DEVICE_PROBE_ACCUMULATION]);
    append(variant, "power=", f[DEVICE_PROBE_POWER]);
    append(variant, "i=", f[DEVICE_PROBE_I]);
    append(variant, "j=", f[DEVICE_PROBE_J]);
    for (int field = DEVICE_PROBE_SURVIVORS; field <= DEVICE_PROBE_SIMULATED; field++)
        if (!qg_number_f64(f[field], &count))
            fail_field(im, field, "number");
    c.tensor = variant;
    snprintf(impl, sizeof impl, "cublaslt survivors=%.20s", f[DEVICE_PROBE_SURVIVORS]);
    begin_row(im, &c, f[DEVICE_PROBE_UNIT], impl);
}

static void set_timing(import *im) {
    double median = seconds_of(im, DEVICE_TIME_MEDIAN, false);
    double copy = seconds_of(im, DEVICE_TIME_COPY, true);
    int64_t bytes = size_of(im, DEVICE_TIME_BYTES), flops = size_of(im, DEVICE_TIME_FLOPS);
    if (!(median > 0))
        fail_field(im, DEVICE_TIME_MEDIAN, "time above 0");
    set_f64(&im->w, QG_COLUMN_TIMING_MEDIAN_S, median);
    set_f64(&im->w, QG_COLUMN_TIMING_MAD_S, seconds_of(im, DEVICE_TIME_MAD, false));
    set_f64(&im->w, QG_COLUMN_TIMING_MIN_S, seconds_of(im, DEVICE_TIME_MIN, false));
    set_f64(&im->w, QG_COLUMN_TIMING_MAX_S, seconds_of(im, DEVICE_TIME_MAX, false));
    set_i64(&im->w, QG_COLUMN_TIMING_SAMPLES, size_of(im, DEVICE_TIME_SAMPLES));
    (void)size_of(im, DEVICE_TIME_LAUNCHES);
    set_i64(&im->w, QG_COLUMN_TIMING_BYTES, bytes);
    set_f64(&im->w, QG_COLUMN_TIMING_GB_PER_S, 1e-9 * (double)bytes / median);
    if (flops > 0) {
        set_i64(&im->w, QG_COLUMN_TIMING_FLOPS, flops);
        set_f64(&im->w, QG_COLUMN_TIMING_GFLOP_PER_S, 1e-9 * (double)flops / median);
    }
    if (copy > 0)
        set_f64(&im->w, QG_COLUMN_TIMING_MEMCPY_RATIO, copy / median);
}

static void take_time(import *im) {
    const char *const *f = im->row->field;
    const char *kernel = f[DEVICE_TIME_KERNEL], *state = f[DEVICE_TIME_STATE];
    char variant[TEXT_SIZE] = "", impl[TEXT_SIZE];
    qg_case c = case_of(im, "throughput");
    bool product = strncmp(kernel, "product", 7) == 0;
    c.format = f[DEVICE_TIME_FORMAT];
    c.layout = f[DEVICE_TIME_LAYOUT];
    c.scale_rule = f[DEVICE_TIME_RULE];
    c.scale_format = scale_format_of(im, DEVICE_TIME_RULE);
    c.rounding = "rne";
    c.data = "normal";
    c.seed = 1;
    c.input_type = format_of(im, DEVICE_TIME_INPUT, false);
    c.m = size_of(im, DEVICE_TIME_M);
    c.n = size_of(im, DEVICE_TIME_N);
    c.k = size_of(im, DEVICE_TIME_K);
    if (strcmp(state, "hot") != 0 && strcmp(state, "cold") != 0)
        fail_field(im, DEVICE_TIME_STATE, "state: hot, cold");
    if (product || !is_chosen(im, &c, kernel))
        append(variant, "kernel=", kernel);
    if (strcmp(state, "hot") != 0)
        append(variant, "", state);
    c.tensor = variant;
    snprintf(impl, sizeof impl, "%.48s %.8s", kernel, state);
    begin_row(im, &c, "", impl);
    set_timing(im);
}

static qg_status take_rows(import *im) {
    static void (*const take[])(import *) = {take_bytes, take_control, take_gemm, take_probe,
                                             take_time};
    for (int64_t i = 0; i < im->file.row_count && im->w.status == QG_OK; i++) {
        im->row = &im->file.rows[i];
        take[im->row->kind](im);
    }
    return im->w.status;
}

// ------------------------------------------------------------------------------------------ whole

typedef struct key {
    uint64_t id;
    const char *reference;
    int64_t row;
} key;

static int by_key(const void *left, const void *right) {
    const key *a = left, *b = right;
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    int order = strcmp(a->reference, b->reference);
    return order ? order : a->row < b->row ? -1 : 1;
}

// A case and its reference are a row's identity.
static qg_status check_unique(const import *im) {
    int64_t count = qg_table_rows(im->w.table);
    key *keys = malloc(((size_t)count + 1) * sizeof *keys);
    qg_status status = QG_OK;
    if (!keys)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for rows");
    for (int64_t i = 0; i < count; i++)
        keys[i] = (key){qg_table_u64(im->w.table, i, QG_COLUMN_CASE_ID),
                        qg_table_text(im->w.table, i, QG_COLUMN_REFERENCE), i};
    qsort(keys, (size_t)count, sizeof *keys, by_key);
    for (int64_t i = 1; i < count && status == QG_OK; i++)
        if (keys[i].id == keys[i - 1].id && strcmp(keys[i].reference, keys[i - 1].reference) == 0)
            status = device_file_fail(&im->file, im->file.rows[keys[i].row].line,
                                      "the same case as in line %" PRId64,
                                      im->file.rows[keys[i - 1].row].line);
    free(keys);
    return status;
}

// The run is the check's: what it says of its device, build and time, not this process's.
static qg_status describe_run(import *im, const char *command_line) {
    static const struct {
        const char *fact, *key;
    } renamed[] = {
        {"device",  "gpu"  },
        {"runtime", "cuda" },
        {"date",    "start"},
        {"date",    "end"  },
    };
    char build[TEXT_SIZE];
    const char *version = device_file_fact(&im->file, "version");
    const char *commit = device_file_fact(&im->file, "commit");
    const char *sms = device_file_fact(&im->file, "sms");
    const char *device = device_file_fact(&im->file, "device");
    if (!device || !device[0] || !sms || !qg_number_i64(sms, &im->sm_count) || im->sm_count < 1 ||
        im->sm_count > INT32_MAX)
        return qg_fail(QG_ERROR_DATA, "%.200s: it does not say its device and its SMs",
                       im->file.path);
    qg_status status = qg_table_add_run(im->w.table, &im->run);
    snprintf(build, sizeof build, "%.80s %.120s", version ? version : "unknown",
             commit ? commit : "unknown");
    if (status == QG_OK)
        status = qg_table_set_run(im->w.table, im->run, QG_RUN_BUILD, build);
    for (int64_t i = 0; i < im->file.fact_count && status == QG_OK; i++)
        if (strcmp(im->file.facts[i].key, "left") != 0)
            status = qg_table_set_run(im->w.table, im->run, im->file.facts[i].key,
                                      im->file.facts[i].value);
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0] && status == QG_OK; i++) {
        const char *value = device_file_fact(&im->file, renamed[i].fact);
        status = qg_table_set_run(im->w.table, im->run, renamed[i].key, value ? value : "");
    }
    if (status == QG_OK && command_line)
        status = qg_table_add_argv(im->w.table, command_line);
    return status;
}

static qg_status fill(import *im, const char *path, const char *command_line) {
    char plan[2 * TEXT_SIZE];
    qg_status status = device_file_read(path, &im->file);
    if (status == QG_OK)
        status = qg_law_parse("normal", &im->law);
    if (status == QG_OK)
        status = qg_table_create(&im->w.table);
    im->source = (qg_source){.data = "", .tensor = "", .law = im->law};
    if (status == QG_OK)
        status = describe_run(im, command_line);
    if (status != QG_OK)
        return status;
    const char *date = device_file_fact(&im->file, "date");
    snprintf(plan, sizeof plan, "device check of %.200s, %.40s\n",
             device_file_fact(&im->file, "device"), date ? date : "undated");
    status = qg_table_set_plan(im->w.table, plan);
    if (status == QG_OK)
        status = take_rows(im);
    return status == QG_OK ? check_unique(im) : status;
}

static int summarize(const import *im, const char *out) {
    int64_t count[DEVICE_VERDICT_COUNT] = {0};
    for (int64_t i = 0; i < im->file.row_count; i++)
        count[im->file.rows[i].verdict]++;
    printf("%s, %s: %" PRId64 " rows: %" PRId64 " PASSED, %" PRId64 " FAILED, %" PRId64
           " SKIPPED, %" PRId64 " RAN\n",
           device_file_fact(&im->file, "device"), device_file_fact(&im->file, "result"),
           im->file.row_count, count[DEVICE_VERDICT_PASSED], count[DEVICE_VERDICT_FAILED],
           count[DEVICE_VERDICT_SKIPPED], count[DEVICE_VERDICT_RAN]);
    printf("wrote %s\n", out);
    if (count[DEVICE_VERDICT_FAILED])
        return 1;
    if (!device_file_is_complete(&im->file))
        return 3;
    return im->file.row_count > 0 ? 0 : 4;
}

int import_device(const char *path, const char *out, bool overwrite, const char *command_line) {
    struct import im = {.w.status = QG_OK};
    int code;
    if (!overwrite && access(out, F_OK) == 0) {
        qg_message_error("%.200s is there already: give another --out, or --overwrite", out);
        return 2;
    }
    qg_status status = fill(&im, path, command_line);
    if (status == QG_OK)
        status =
            qg_results_write(out, im.w.table, QG_RESULTS_MERGED, device_file_is_complete(&im.file));
    if (status == QG_OK) {
        code = summarize(&im, out);
    } else {
        qg_message_error("%s", qg_detail());
        code = qg_message_exit_code(status);
    }
    qg_table_free(im.w.table);
    qg_law_free(im.law);
    device_file_free(&im.file);
    return code;
}
