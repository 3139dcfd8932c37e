// Operation `vectors`: the recorded files pass, one wrong digit is one line with its place, and
// files that cannot be read fail with the reader's words.
#include <qg_digest.h>
#include <qg_plan.h>
#include <qg_workspace.h>
#include <run_suite.h>
#include <vector_run.h>

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/quantgauge-test-XXXXXX";

static const qg_op *vectors(void) {
    const qg_op *op;
    for (size_t i = 0; (op = qg_op_listed(i)) != NULL; i++)
        if (!strcmp(op->name, "vectors"))
            return op;
    return NULL;
}

static qg_case_result run_planned(const char *path, uint64_t digest, const char *backend,
                                  qg_workspace *workspace) {
    qg_source source = {.data = "vectors:x", .tensor = "", .recording = path, .digest = digest};
    qg_case c = {.op = vectors(), .backend = backend, .data = source.data, .source = &source};
    qg_case_result result;
    qg_case_result_clear(&result, &c);
    ck_assert_int_ge(c.op->bytes(&c), 0);
    ck_assert(c.op->cost(&c) >= 0);
    c.op->run(&c, workspace, &result);
    return result;
}

// As planned: the digest of the file as it is, if it can be read.
static qg_case_result run_on(const char *path, const char *backend, qg_workspace *workspace) {
    qg_vector_text text;
    uint64_t digest = 0;
    if (qg_vector_text_read(path, path, &text) == QG_OK)
        digest = qg_digest_bytes(text.text, text.size);
    qg_vector_text_free(&text);
    return run_planned(path, digest, backend, workspace);
}

static qg_case_result run(const char *path) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    qg_case_result result = run_on(path, "emulator", workspace);
    qg_workspace_free(workspace);
    return result;
}

static const char *scratch(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static qg_case_result run_bytes(const char *text, size_t size) {
    const char *path = scratch("copy.qgvec");
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    fclose(file);
    qg_case_result result = run(path);
    unlink(path);
    return result;
}

static qg_case_result run_text(const char *text) { return run_bytes(text, strlen(text)); }

static void files_of(const char *pattern, glob_t *files) {
    char path[4096];
    const char *root = getenv("QG_SOURCE_DIR");
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof path, "%s/%s", root, pattern);
    ck_assert_int_eq(glob(path, 0, NULL, files), 0);
}

static void read_first(const char *pattern, qg_vector_text *text) {
    glob_t files;
    files_of(pattern, &files);
    ck_assert_int_eq(qg_vector_text_read(files.gl_pathv[0], "first", text), QG_OK);
    globfree(&files);
}

START_TEST(recorded_files_pass) {
    glob_t files;
    files_of("datasets/vectors/hardware/*.qgvec", &files);
    ck_assert_uint_ge(files.gl_pathc, 40);
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    int64_t lines = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        qg_case_result r = run_on(files.gl_pathv[i], "emulator", workspace);
        ck_assert_msg(r.status == QG_CASE_PASSED, "%s: %s", files.gl_pathv[i], r.reason);
        ck_assert_str_eq(r.reason, "");
        ck_assert_str_eq(r.impl_used, "emulator");
        ck_assert_int_eq(r.code_mismatches, 0);
        ck_assert_int_eq(r.scale_mismatches, -1);
        ck_assert(r.has_counts && r.counts.saturated == -1 && r.counts.blocks == -1);
        ck_assert(r.compared[0].has_sums);
        ck_assert_int_eq(r.compared[0].sums.n, r.counts.n);
        ck_assert_int_eq(r.compared[0].sums.exact, r.compared[0].sums.n_finite);
        ck_assert(r.compared[0].sums.max_ulp == 0);
        ck_assert(qg_metric_value(&r.compared[0].sums, QG_METRIC_QSNR_DB) > 1e300);
        lines += r.counts.n;
    }
    ck_assert_int_eq(lines, 22000);
    qg_workspace_free(workspace);
    globfree(&files);
}
END_TEST

START_TEST(every_kind_passes) {
    glob_t files;
    files_of("tests/data/*.qgvec", &files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        qg_case_result r = run(files.gl_pathv[i]);
        ck_assert_msg(r.status == QG_CASE_PASSED, "%s: %s", files.gl_pathv[i], r.reason);
        ck_assert_int_eq(r.scale_mismatches, strstr(files.gl_pathv[i], "/quantize") ? 0 : -1);
        ck_assert(!r.compared[0].has_sums);
    }
    globfree(&files);
}
END_TEST

// The start of a line, from 1.
static size_t start_of(const qg_vector_text *text, int line) {
    size_t at = 0;
    while (--line > 0)
        at =
            (size_t)((const char *)memchr(text->text + at, '\n', text->size - at) - text->text) + 1;
    return at;
}

START_TEST(one_wrong_digit_is_found) {
    qg_vector_text text;
    read_first("datasets/vectors/hardware/hopper_wgmma-e4m3-f32-h200.qgvec", &text);
    qg_case_result good = run_bytes(text.text, text.size);
    char *end = text.text + start_of(&text, 101) - 2; // the last digit of d in line 100
    *end = *end == '0' ? '1' : '0';
    qg_case_result r = run_bytes(text.text, text.size);
    ck_assert_int_eq(r.status, QG_CASE_FAILED);
    ck_assert_msg(strstr(r.reason, "1 of 500 lines differ: copy.qgvec:100: d wanted "), "%s",
                  r.reason);
    ck_assert_ptr_null(strstr(r.reason, folder));
    ck_assert_int_eq(r.counts.n, 500);
    ck_assert_int_eq(r.code_mismatches, 1);
    ck_assert_int_eq(r.compared[0].sums.exact, 499);
    ck_assert(r.compared[0].sums.max_ulp == 1);
    ck_assert_uint_ne(r.input_digest, good.input_digest);
    ck_assert_uint_eq(r.output_digest, good.output_digest); // what was computed did not change
    ck_assert_uint_eq(r.input_digest, qg_digest_bytes(text.text, text.size));
    // A second one in front of it becomes the first.
    end = text.text + start_of(&text, 51) - 2;
    *end = *end == '0' ? '1' : '0';
    r = run_bytes(text.text, text.size);
    ck_assert_msg(strstr(r.reason, "2 of 500 lines differ: copy.qgvec:50: d"), "%s", r.reason);
    qg_vector_text_free(&text);
}
END_TEST

#define FP16_DOT                                                                                   \
    "# qgvec 1\n# kind: dot\n# unit: ada_mma\n# a: fp16\n# b: fp16\n# c: fp16\n# d: fp16\n# k: "   \
    "1\n"

// 1 * 1 + 0 = 1, recorded as 1 + 2^-10 and 1 + 2^-9: ulps of binary16, not of binary32.
START_TEST(ulps_are_of_the_recorded_format) {
    qg_case_result r = run_text(FP16_DOT "3c00 3c00 0000 3c01\n3c00 3c00 0000 3c02\n");
    ck_assert_int_eq(r.status, QG_CASE_FAILED);
    ck_assert_int_eq(r.code_mismatches, 2);
    ck_assert(r.compared[0].sums.max_ulp == 2);
    // Recorded as 2^-24, the smallest subnormal: its ulp is that of the smallest normal.
    r = run_text(FP16_DOT "0000 3c00 0000 0001\n");
    ck_assert(r.compared[0].sums.max_ulp == 1);
    // Two NaNs of other bits differ, and are no distance.
    r = run_text(FP16_DOT "7e00 3c00 0000 7e01\n");
    ck_assert_int_eq(r.status, QG_CASE_FAILED);
    ck_assert_int_eq(r.compared[0].sums.n_finite, 0);
    ck_assert(r.compared[0].sums.max_ulp == 0);
}
END_TEST

START_TEST(scales_and_codes_are_counted_apart) {
    static const char header[] = "# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 2\n";
    static const struct {
        const char *lines;
        int64_t codes, scales;
    } cases[] = {
        {"3f80000040000000 78 7078\n",                           0, 0},
        {"3f80000040000000 79 7078\n",                           1, 1},
        {"3f80000040000000 78 7079\n",                           1, 0},
        {"3f80000040000000 79 7079\n3f80000040000000 78 7077\n", 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", header, cases[i].lines);
        qg_case_result r = run_text(text);
        ck_assert_msg(r.code_mismatches == cases[i].codes && r.scale_mismatches == cases[i].scales,
                      "%zu: %s", i, r.reason);
        ck_assert_int_eq(r.status, cases[i].codes ? QG_CASE_FAILED : QG_CASE_PASSED);
    }
}
END_TEST

// Of what was computed, byte by byte: d = c where the product is zero.
START_TEST(the_output_digest_is_little_endian) {
    static const uint8_t bytes[] = {0x46, 0x23, 0x81, 0x3f, 0x01, 0x02, 0x03, 0xc4};
    qg_case_result r = run_text("# qgvec 1\n# kind: dot\n# unit: ada_mma\n# a: fp16\n# b: fp16\n"
                                "# c: fp32\n# d: fp32\n# k: 1\n"
                                "0000 3c00 3f812346 3f812346\n0000 3c00 c4030201 c4030201\n");
    ck_assert_msg(r.status == QG_CASE_PASSED, "%s", r.reason);
    ck_assert_uint_eq(r.output_digest, qg_digest_bytes(bytes, sizeof bytes));
}
END_TEST

static void fails(const qg_case_result *r, const char *words) {
    ck_assert_int_eq(r->status, QG_CASE_FAILED);
    ck_assert_msg(strstr(r->reason, words) != NULL, "'%s' does not say '%s'", r->reason, words);
    ck_assert_ptr_null(strstr(r->reason, folder));
    ck_assert(!r->has_counts && !r->compared[0].has_sums);
    ck_assert_int_eq(r->code_mismatches, -1);
    ck_assert_uint_eq(r->output_digest, 0);
}

START_TEST(what_cannot_be_read_fails) {
    qg_vector_text text;
    read_first("datasets/vectors/hardware/ada_mma-*.qgvec", &text);
    qg_case_result r = run_bytes(text.text, start_of(&text, 300) - 3); // in the middle of line 299
    fails(&r, "copy.qgvec:299: field d has ");
    r = run_bytes(text.text, 40);
    fails(&r, "copy.qgvec:");
    r = run_bytes(text.text, start_of(&text, 12)); // the header alone
    fails(&r, "copy.qgvec: there is no line to check");
    qg_vector_text_free(&text);
    r = run_text("");
    fails(&r, "copy.qgvec:1: the first line must be '# qgvec 1'");
    r = run(scratch("absent.qgvec"));
    fails(&r, "absent.qgvec: cannot open: No such file");
    ck_assert_uint_eq(r.input_digest, 0);
    r = run(folder);
    fails(&r, "cannot read: Is a directory");
    ck_assert_int_eq(mkfifo(scratch("pipe.qgvec"), 0600), 0); // nobody writes it
    r = run(scratch("pipe.qgvec"));
    fails(&r, "pipe.qgvec: cannot read: it is no regular file");
    unlink(scratch("pipe.qgvec"));
}
END_TEST

START_TEST(a_file_that_changed_is_not_run) {
    glob_t files;
    qg_workspace *workspace;
    files_of("tests/data/decode-e4m3.qgvec", &files);
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    qg_case_result r = run_planned(files.gl_pathv[0], 5, "emulator", workspace);
    fails(&r, "decode-e4m3.qgvec: changed since the plan was made");
    qg_workspace_free(workspace);
    globfree(&files);
}
END_TEST

START_TEST(other_backends_are_refused) {
    qg_workspace *workspace;
    ck_assert_int_eq(qg_workspace_create(1, &workspace), QG_OK);
    qg_case_result r = run_on("x.qgvec", "abacus", workspace);
    fails(&r, "backend abacus cannot run operation vectors");
    qg_workspace_free(workspace);
}
END_TEST

int main(void) {
    if (!mkdtemp(folder))
        abort();
    const TTest *const tests[] = {recorded_files_pass,
                                  every_kind_passes,
                                  one_wrong_digit_is_found,
                                  ulps_are_of_the_recorded_format,
                                  scales_and_codes_are_counted_apart,
                                  the_output_digest_is_little_endian,
                                  what_cannot_be_read_fails,
                                  a_file_that_changed_is_not_run,
                                  other_backends_are_refused};
    int failed = RUN_SUITE("op_vectors", tests);
    rmdir(folder);
    return failed;
}
