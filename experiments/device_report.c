// Rows, facts and tallies of a device check. See device_report.h.
#include <device_report.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LABEL_SIZE = 64,
    MOST_TALLIES = 64,
    MOST_LEFT = 10,
    MOST_NOTES = 40,
    NOTE_SIZE = 160,
    MOST_FAILURES = 2, // that are printed of a stage
    MOST_PRINTED = 8   // and of all: standard output stays under 100 lines
};

typedef struct text {
    char *bytes;
    size_t length, capacity;
    bool failed;
} text;

typedef struct tally {
    char label[LABEL_SIZE];
    int64_t count[DEVICE_VERDICT_COUNT];
} tally;

typedef struct left {
    char what[LABEL_SIZE], why[NOTE_SIZE];
    int64_t count;
} left;

struct device_report {
    text facts, rows;
    char result[LABEL_SIZE];
    int64_t count[DEVICE_VERDICT_COUNT];
    tally tallies[MOST_TALLIES]; // of the stage
    int tally_count;
    char notes[MOST_NOTES][NOTE_SIZE];
    int note_count;
    char failures[MOST_FAILURES][NOTE_SIZE];
    int64_t failure_count;
    int printed;
    left lefts[MOST_LEFT];
    int left_count;
};

static const char *const KINDS[] = {
#define KIND_NAME(ID, name) #name,
    DEVICE_ROW_TABLE(KIND_NAME)
#undef KIND_NAME
};
static const char *const VERDICTS[] = {
#define VERDICT_NAME(ID, name) name,
    DEVICE_VERDICT_TABLE(VERDICT_NAME)
#undef VERDICT_NAME
};
#define COLUMN_NAME(ID, name) " " #name
static const char *const COLUMNS[] = {
    DEVICE_BYTES_COLUMNS(COLUMN_NAME), DEVICE_CONTROL_COLUMNS(COLUMN_NAME),
    DEVICE_GEMM_COLUMNS(COLUMN_NAME), DEVICE_PROBE_COLUMNS(COLUMN_NAME),
    DEVICE_TIME_COLUMNS(COLUMN_NAME)};
#undef COLUMN_NAME

qg_status device_report_create(device_report **out) {
    *out = calloc(1, sizeof **out);
    return *out ? QG_OK : qg_fail(QG_ERROR_MEMORY, "no memory for the report");
}

void device_report_free(device_report *report) {
    if (!report)
        return;
    free(report->facts.bytes);
    free(report->rows.bytes);
    free(report);
}

// ------------------------------------------------------------------------------------------- text

static bool grow(text *t, size_t more) {
    if (t->failed || t->capacity - t->length > more)
        return !t->failed;
    size_t capacity = 2 * (t->length + more) + 4096;
    char *bytes = realloc(t->bytes, capacity);
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->capacity = capacity;
    return true;
}

static void append_list(text *t, const char *format, va_list values) {
    char piece[2048];
    int length = vsnprintf(piece, sizeof piece, format, values);
    if (length < 0 || length >= (int)sizeof piece) {
        t->failed = true;
        return;
    }
    if (!grow(t, (size_t)length))
        return;
    memcpy(t->bytes + t->length, piece, (size_t)length + 1);
    t->length += (size_t)length;
}

__attribute__((format(printf, 2, 3))) static void append(text *t, const char *format, ...) {
    va_list values;
    va_start(values, format);
    append_list(t, format, values);
    va_end(values);
}

// What would end a field or a line becomes a space; bytes beyond ASCII and controls a `?`.
static void append_clean(text *t, const char *value, bool is_field) {
    for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
        bool is_gap = *c == '\n' || *c == '\r' || (is_field && *c == '\t');
        bool is_plain = *c == '\t' || (*c >= ' ' && *c < 127);
        append(t, "%c", is_gap ? ' ' : is_plain ? *c : '?');
    }
}

// ------------------------------------------------------------------------------------------- rows

void device_report_fact(device_report *report, const char *key, const char *format, ...) {
    char value[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(value, sizeof value, format, values);
    va_end(values);
    append(&report->facts, "# %s: ", key);
    append_clean(&report->facts, value, true);
    append(&report->facts, "\n");
}

static tally *tally_of(device_report *report, const char *label) {
    for (int i = 0; i < report->tally_count; i++)
        if (strcmp(report->tallies[i].label, label) == 0)
            return &report->tallies[i];
    int i = report->tally_count < MOST_TALLIES ? report->tally_count++ : MOST_TALLIES - 1;
    snprintf(report->tallies[i].label, LABEL_SIZE, "%s", label);
    return &report->tallies[i];
}

static void keep_failure(device_report *report, const char *fields, const char *reason) {
    if (report->failure_count < MOST_FAILURES) {
        char *line = report->failures[report->failure_count];
        snprintf(line, NOTE_SIZE, "%.100s: %.50s", fields, reason);
        for (char *c = line; *c; c++)
            if (*c == '\t')
                *c = ' ';
    }
    report->failure_count++;
}

void device_report_row(device_report *report, device_kind kind, const char *label,
                       device_verdict verdict, const char *reason, const char *format, ...) {
    char fields[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(fields, sizeof fields, format, values);
    va_end(values);
    append(&report->rows, "%s\t", KINDS[kind]);
    append_clean(&report->rows, fields, false);
    append(&report->rows, "\t%s\t", VERDICTS[verdict]);
    append_clean(&report->rows, reason, true);
    append(&report->rows, "\n");
    report->count[verdict]++;
    tally_of(report, label)->count[verdict]++;
    if (verdict == DEVICE_VERDICT_FAILED)
        keep_failure(report, fields, reason);
}

void device_report_left(device_report *report, const char *what, int64_t count, const char *why) {
    if (count <= 0)
        return;
    int i = 0;
    while (i < report->left_count &&
           (strcmp(report->lefts[i].what, what) != 0 || strcmp(report->lefts[i].why, why) != 0))
        i++;
    if (i == report->left_count) {
        if (i == MOST_LEFT)
            i--;
        else
            report->left_count++;
        snprintf(report->lefts[i].what, LABEL_SIZE, "%s", what);
        snprintf(report->lefts[i].why, NOTE_SIZE, "%s", why);
    }
    report->lefts[i].count += count;
}

void device_report_note(device_report *report, device_kind kind, const char *format, ...) {
    (void)kind;
    if (report->note_count == MOST_NOTES)
        return;
    va_list values;
    va_start(values, format);
    vsnprintf(report->notes[report->note_count++], NOTE_SIZE, format, values);
    va_end(values);
}

// ---------------------------------------------------------------------------------------- printing

static void print_tally(const tally *t, FILE *stream) {
    fprintf(stream, "  %-44s %6" PRId64 " passed", t->label, t->count[DEVICE_VERDICT_PASSED]);
    if (t->count[DEVICE_VERDICT_FAILED])
        fprintf(stream, " %6" PRId64 " FAILED", t->count[DEVICE_VERDICT_FAILED]);
    if (t->count[DEVICE_VERDICT_SKIPPED])
        fprintf(stream, " %6" PRId64 " not taken", t->count[DEVICE_VERDICT_SKIPPED]);
    fputc('\n', stream);
}

void device_report_print(device_report *report, device_kind kind, const char *title, FILE *stream) {
    if (report->tally_count || report->note_count)
        fprintf(stream, "%s\n", title);
    for (int i = 0; i < report->tally_count && kind != DEVICE_TIME; i++)
        print_tally(&report->tallies[i], stream);
    for (int i = 0; i < report->note_count; i++)
        fprintf(stream, "  %s\n", report->notes[i]);
    for (int64_t i = 0; i < report->failure_count && i < MOST_FAILURES; i++)
        if (report->printed++ < MOST_PRINTED)
            fprintf(stream, "  FAILED %s\n", report->failures[i]);
    report->tally_count = report->note_count = 0;
    report->failure_count = 0;
    memset(report->tallies, 0, sizeof report->tallies);
    fflush(stream);
}

void device_report_finish(device_report *report, double seconds, FILE *stream) {
    for (int i = 0; i < report->left_count; i++) {
        const left *l = &report->lefts[i];
        fprintf(stream, "left: %s, %" PRId64 " checks (%s)\n", l->what, l->count, l->why);
        device_report_fact(report, "left", "%s, %" PRId64 " checks (%s)", l->what, l->count,
                           l->why);
    }
    snprintf(report->result, sizeof report->result,
             "%" PRId64 " checks, %" PRId64 " failures, %.0f seconds", device_report_checks(report),
             device_report_failures(report), seconds);
    device_report_fact(report, "result", "%s", report->result);
    fprintf(stream, "%s\n", report->result);
}

int64_t device_report_checks(const device_report *report) {
    return report->count[DEVICE_VERDICT_PASSED] + report->count[DEVICE_VERDICT_FAILED];
}

int64_t device_report_failures(const device_report *report) {
    return report->count[DEVICE_VERDICT_FAILED];
}

bool device_report_is_complete(const device_report *report) { return report->left_count == 0; }

// ----------------------------------------------------------------------------------------- writing

static bool write_all(const device_report *report, FILE *stream) {
    fprintf(stream, "%s\n", DEVICE_FILE_MAGIC);
    fwrite(report->facts.bytes, 1, report->facts.length, stream);
    for (int i = 0; i < DEVICE_KIND_COUNT; i++)
        fprintf(stream, "# columns %s:%s verdict reason\n", KINDS[i], COLUMNS[i]);
    if (report->rows.length > 0)
        fwrite(report->rows.bytes, 1, report->rows.length, stream);
    return fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0;
}

// The file that is written before it takes its place; NULL: no memory. The caller frees it.
static char *name_beside(const char *path) {
    size_t size = strlen(path) + 32;
    char *beside = malloc(size);
    if (beside)
        snprintf(beside, size, "%s.%ld.tmp", path, (long)getpid());
    return beside;
}

static qg_status fail_write(const char *path, int reason) {
    return qg_fail(QG_ERROR_IO, "%s: cannot write: %s", path, strerror(reason));
}

qg_status device_report_can_write(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return qg_fail(QG_ERROR_IO, "%s: cannot write: it is no regular file", path);
    char *beside = name_beside(path);
    FILE *stream = beside ? fopen(beside, "w") : NULL;
    int reason = errno;
    if (stream) {
        fclose(stream);
        unlink(beside);
    }
    free(beside);
    return stream ? QG_OK : fail_write(path, reason);
}

qg_status device_report_write(const device_report *report, const char *path) {
    if (report->facts.failed || report->rows.failed)
        return qg_fail(QG_ERROR_MEMORY, "%s: no memory for the rows", path);
    char *beside = name_beside(path);
    if (!beside)
        return qg_fail(QG_ERROR_MEMORY, "%s: no memory for its name", path);
    FILE *stream = fopen(beside, "w");
    bool written = stream && write_all(report, stream);
    int reason = errno;
    if (stream && fclose(stream) != 0 && written) {
        written = false;
        reason = errno;
    }
    if (written && rename(beside, path) != 0) {
        written = false;
        reason = errno;
    }
    if (!written && stream)
        unlink(beside);
    free(beside);
    return written ? QG_OK : fail_write(path, reason);
}
