// Operation `vectors`: recorded vectors, every line run through the emulator and compared.
//
// A case is one .qgvec file. A line counts once, however many of its fields differ. The input
// digest is of the file's bytes, the output digest of the computed fields in the order of the file,
// little endian. Files are named without their folder: results do not depend on where they lie.
// Exact: bits are compared, so NaNs must be equal as well. A file that cannot be read FAILS with the
// reader's reason: what is damaged must not pass unseen.
#include <op_internal.h>

#include <qg_codec.h>
#include <qg_size.h>
#include <qg_workspace.h>
#include <vector_run.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN_DIGITS = 24 }; // of a field in a reason

// What the lines of a file add up to.
typedef struct tally {
    qg_digest *digest;
    float *recorded, *computed; // (lines) d of kind dot, as far as a binary32 holds it; or unused
    int64_t lines, values;      // values: of recorded and computed
    int64_t mismatches, scale_mismatches;
    bool has_scales; // kind quantize
    double max_ulp;  // of d's format
    char first[QG_REASON_SIZE];
} tally;

static const char *file_name(const qg_case *c) {
    const char *path = c->source->recording, *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void digest_field(qg_digest *digest, const qg_vector_field *f, const uint64_t *values) {
    for (int64_t i = 0; i < f->count; i++) {
        uint8_t bytes[sizeof values[i]];
        for (size_t b = 0; b < sizeof bytes; b++)
            bytes[b] = (uint8_t)(values[i] >> (8 * b));
        qg_digest_add(digest, bytes, (size_t)f->digits / 2);
    }
}

// "scale", "s0", "s1"
static bool is_scale(const qg_vector_field *f) { return f->name[0] == 's'; }

static void take_outputs(tally *t, const qg_vector_line *line) {
    const qg_vector_header *h = &line->reader->header;
    bool scale_differs = false;
    t->has_scales = h->kind == QG_VECTOR_QUANTIZE;
    for (int32_t i = 0; i < h->field_count; i++) {
        if (!h->fields[i].is_output)
            continue;
        digest_field(t->digest, &h->fields[i], line->got->values[i]);
        scale_differs |= is_scale(&h->fields[i]) && !qg_vector_field_matches(line, i);
    }
    t->scale_mismatches += scale_differs;
}

// The distance in units of the last place of the format, at the binade of the recorded value.
static double ulps(const qg_format_info *info, double recorded, double computed) {
    int exponent = 1 - info->bias; // of the smallest normal
    if (recorded != 0 && qg_double_exponent(recorded) > exponent)
        exponent = qg_double_exponent(recorded);
    double error = computed - recorded;
    return (error < 0 ? -error : error) / qg_double_pow2(exponent - info->mbits);
}

static void take_value(tally *t, const qg_vector_line *line) {
    const qg_vector_header *h = &line->reader->header;
    qg_format_info info = qg_format_describe(h->d);
    if (h->kind != QG_VECTOR_DOT || info.bits > 32)
        return;
    int32_t d = h->field_count - 1;
    float recorded = (float)qg_decode(&info, line->wanted->values[d][0]);
    float computed = (float)qg_decode(&info, line->got->values[d][0]);
    if (qg_float_is_finite(recorded) && qg_float_is_finite(computed)) {
        double distance = ulps(&info, (double)recorded, (double)computed);
        t->max_ulp = distance > t->max_ulp ? distance : t->max_ulp;
    }
    t->recorded[t->values] = recorded;
    t->computed[t->values++] = computed;
}

static void take_line(void *context, const qg_vector_line *line) {
    tally *t = context;
    t->lines++;
    take_outputs(t, line);
    take_value(t, line);
    if (line->matches)
        return;
    if (t->mismatches++ > 0)
        return;
    char fields[QG_REASON_SIZE];
    qg_vector_describe_mismatch(line, false, SHOWN_DIGITS, fields, sizeof fields);
    snprintf(t->first, sizeof t->first, "%.120s:%" PRId64 ":%.120s", line->reader->name,
             line->reader->line, fields);
}

// Room for a value of each line at most.
static qg_status make_room(qg_workspace *workspace, const qg_vector_text *text, tally *t) {
    int64_t lines = 1;
    for (size_t i = 0; i < text->size; i++)
        lines += text->text[i] == '\n';
    void *room;
    qg_status status =
        qg_workspace_room(workspace, QG_BUFFER_OUTPUT, 2 * lines, sizeof(float), &room);
    if (status != QG_OK)
        return status;
    t->recorded = room;
    t->computed = t->recorded + lines;
    return QG_OK;
}

static qg_status compare_values(tally *t, qg_comparison *compared) {
    if (t->values == 0)
        return QG_OK;
    qg_status status = qg_sums_measure(t->values, t->recorded, t->computed, 1, &compared->sums);
    compared->sums.max_ulp = t->max_ulp;
    compared->has_sums = status == QG_OK;
    return status;
}

static void give_counts(const tally *t, qg_case_result *result) {
    result->has_counts = true;
    result->counts = (qg_counts){.n = t->lines,
                                 .nan = -1,
                                 .inf = -1,
                                 .saturated = -1,
                                 .clipped = -1,
                                 .underflowed = -1,
                                 .subnormal = -1,
                                 .exact = -1,
                                 .blocks = -1,
                                 .zero_blocks = -1,
                                 .nan_scales = -1};
    result->code_mismatches = t->mismatches;
    result->scale_mismatches = t->has_scales ? t->scale_mismatches : -1;
}

static qg_status run_text(const char *name, const qg_vector_text *text, qg_workspace *workspace,
                          qg_case_result *result) {
    tally t = {.digest = qg_workspace_digest(workspace)};
    qg_status status = make_room(workspace, text, &t);
    if (status == QG_OK)
        status = qg_vector_run(name, text, take_line, &t);
    if (status == QG_OK && t.lines == 0)
        status = qg_fail(QG_ERROR_DATA, "%s: there is no line to check", name);
    if (status == QG_OK)
        status = compare_values(&t, &result->compared[0]);
    if (status != QG_OK)
        return status;
    give_counts(&t, result);
    result->output_digest = qg_digest_value(t.digest);
    if (t.mismatches == 0)
        qg_case_result_set(result, QG_CASE_PASSED, "%s", "");
    else
        qg_case_result_set(result, QG_CASE_FAILED, "%" PRId64 " of %" PRId64 " lines differ: %s",
                           t.mismatches, t.lines, t.first);
    return QG_OK;
}

static qg_status run_file(const qg_case *c, qg_workspace *workspace, qg_case_result *result) {
    qg_vector_text text;
    const char *name = file_name(c);
    qg_status status = qg_vector_text_read(c->source->recording, name, &text);
    if (status == QG_OK) {
        result->input_digest = qg_digest_bytes(text.text, text.size);
        // The case's identity is that of the file as the plan read it.
        status = result->input_digest == c->source->digest
                     ? run_text(name, &text, workspace, result)
                     : qg_fail(QG_ERROR_DATA, "%s: changed since the plan was made", name);
    }
    qg_vector_text_free(&text);
    return status;
}

// ------------------------------------------------------------------------------------------ costs

static int64_t file_size(const qg_case *c) {
    struct stat file;
    return stat(c->source->recording, &file) == 0 ? (int64_t)file.st_size : 0;
}

// The text in a buffer that doubles, and two values per line of at least 16 characters.
int64_t qg_op_vectors_bytes(const qg_case *c) {
    int64_t bytes;
    return qg_size_multiply(file_size(c), 3, &bytes) ? bytes : INT64_MAX;
}

// Measured on recorded dot products: 20 ns a character, where an element operation takes 75.
double qg_op_vectors_cost(const qg_case *c) { return 0.3 * (double)file_size(c); }

void qg_op_vectors_run(const qg_case *c, struct qg_workspace *workspace, qg_case_result *result) {
    if (strcmp(c->backend, "emulator") != 0) {
        qg_case_result_set(result, QG_CASE_FAILED, "backend %s cannot run operation vectors",
                           c->backend);
        return;
    }
    snprintf(result->impl_used, sizeof result->impl_used, "emulator");
    if (run_file(c, workspace, result) != QG_OK)
        qg_case_result_set(result, QG_CASE_FAILED, "%s", qg_detail());
}
