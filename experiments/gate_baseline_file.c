// Baselines as files: reading, choosing, writing, and what changed. See gate_baseline.h.
#include <gate_baseline_internal.h>

#include <file_replace_internal.h>
#include <number.h>
#include <text_lines.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Columns behind the axes; then two of each metric.
enum { SEEDS = BASELINE_AXIS_COUNT, CASES, DIGESTS, INPUTS, DEFINITION, METRICS };
enum { COLUMN_COUNT = METRICS + 2 * QG_BASELINE_METRICS };

static const char HEADING[] =
    "# quantgauge baseline 1: written by run_gate --update-baseline, not by hand\n"
    "# A row: cases that differ in the seed alone. Metrics: mean and standard deviation over the\n"
    "# seeds, empty with fewer than 5.\n";

static const char *column_name(int i, char name[64]) {
    static const char *const WORDS[] = {"seeds", "cases", "digests", "inputs", "definition"};
    if (i < BASELINE_AXIS_COUNT)
        return qg_column_describe(baseline_axes[i])->name;
    if (i < METRICS)
        return WORDS[i - SEEDS];
    int metric = (i - METRICS) / 2;
    snprintf(name, 64, "%s%s", qg_column_describe(baseline_metrics[metric])->name,
             (i - METRICS) % 2 ? "_spread" : "");
    return name;
}

// ---------------------------------------------------------------------------------------- reading

typedef struct reader {
    const char *path;
    int line;
    bool has_header;
    qg_baseline *baseline;
} reader;

static qg_status refuse(const reader *r, const char *what, const char *word) {
    return qg_fail(QG_ERROR_DATA, "%.300s:%d: %s%.80s", r->path, r->line, what, word);
}

static int cut(char *line, char *fields[COLUMN_COUNT]) {
    int count = 0;
    for (char *rest = line, *field; (field = strsep(&rest, "\t"));) {
        if (count == COLUMN_COUNT)
            return COLUMN_COUNT + 1;
        fields[count++] = field;
    }
    return count;
}

static qg_status check_header(reader *r, char *const fields[], int count) {
    char name[64];
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (i >= count || strcmp(fields[i], column_name(i, name)) != 0)
            return refuse(r,
                          "no baseline of this version: its columns differ; remove it and make it "
                          "again with --update-baseline. Missing: ",
                          column_name(i, name));
    if (count > COLUMN_COUNT)
        return refuse(r, "no baseline of this version: it has more columns", "");
    r->has_header = true;
    return QG_OK;
}

// A comma-separated list of (count) numbers; count -1: as many as there are.
static qg_status read_list(const reader *r, char *text, bool hex, int *count, uint64_t **out) {
    int room = 1, found = 0;
    for (const char *c = text; *c; c++)
        room += *c == ',';
    *out = malloc((size_t)room * sizeof **out);
    if (!*out)
        return qg_fail(QG_ERROR_MEMORY, "no memory for %.300s", r->path);
    for (char *rest = text, *word; (word = strsep(&rest, ","));) {
        bool fine = hex ? strlen(word) == 16 && qg_number_hex(word, &(*out)[found])
                        : qg_number_u64(word, &(*out)[found]);
        if (!fine)
            return refuse(r, hex ? "not 16 hexadecimal digits: " : "not a seed: ", word);
        found++;
    }
    if (*count >= 0 && found != *count)
        return refuse(r, "seeds, cases and digests differ in number", "");
    *count = found;
    return QG_OK;
}

static qg_status read_number(const reader *r, const char *text, double *out) {
    *out = (double)NAN;
    if (!*text)
        return QG_OK;
    return qg_number_f64(text, out) && !isnan(*out) ? QG_OK : refuse(r, "not a number: ", text);
}

// Both or neither: a mean without its spread would silently hold nothing to itself.
static qg_status read_metric(const reader *r, char *const fields[2], double *mean, double *spread) {
    qg_status status = read_number(r, fields[0], mean);
    if (status == QG_OK)
        status = read_number(r, fields[1], spread);
    if (status != QG_OK)
        return status;
    if (isnan(*mean) != isnan(*spread))
        return refuse(r, "a mean needs a spread, and a spread a mean: ", fields[isnan(*mean)]);
    return *spread < 0 || isinf(*spread) ? refuse(r, "no spread: ", fields[1]) : QG_OK;
}

static char *joined(char *const fields[]) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    for (int i = 0; stream && i < BASELINE_AXIS_COUNT; i++)
        fprintf(stream, "%s%s", i ? "\t" : "", fields[i]);
    if (stream && fclose(stream) == 0)
        return text;
    free(text);
    return NULL;
}

static qg_status read_row(reader *r, char *const fields[]) {
    qg_baseline_row *row = baseline_add_row(r->baseline);
    if (row)
        row->axes = joined(fields);
    if (!row || !row->axes)
        return qg_fail(QG_ERROR_MEMORY, "no memory for %.300s", r->path);
    int count = -1;
    qg_status status = read_list(r, fields[SEEDS], false, &count, &row->seeds);
    if (status == QG_OK)
        status = read_list(r, fields[CASES], true, &count, &row->cases);
    if (status == QG_OK)
        status = read_list(r, fields[DIGESTS], true, &count, &row->digests);
    if (status != QG_OK)
        return status;
    row->count = count;
    if (strlen(fields[INPUTS]) != 16 || !qg_number_hex(fields[INPUTS], &row->inputs))
        return refuse(r, "inputs are not 16 hexadecimal digits: ", fields[INPUTS]);
    if (strlen(fields[DEFINITION]) != 16 || !qg_number_hex(fields[DEFINITION], &row->definition))
        return refuse(r, "the definition is not 16 hexadecimal digits: ", fields[DEFINITION]);
    for (int i = 0; i < QG_BASELINE_METRICS && status == QG_OK; i++)
        status = read_metric(r, fields + METRICS + 2 * i, &row->mean[i], &row->spread[i]);
    return status;
}

static qg_status take_line(reader *r, char *line) {
    char *fields[COLUMN_COUNT];
    r->line++;
    if (!*line || *line == '#')
        return QG_OK;
    int count = cut(line, fields);
    if (!r->has_header)
        return check_header(r, fields, count);
    if (count != COLUMN_COUNT)
        return refuse(r, "another number of fields than the header has", "");
    return read_row(r, fields);
}

// Two rows of a case, as a careless merge leaves them: which of them held would be left to chance.
static qg_status check_places(const char *path, const qg_baseline *b) {
    for (int64_t i = 1; i < b->place_count; i++)
        for (int64_t j = i - 1; j >= 0 && b->places[j].id == b->places[i].id; j--)
            if (strcmp(b->rows[b->places[i].row].reference, b->rows[b->places[j].row].reference) ==
                0)
                return qg_fail(QG_ERROR_DATA, "%.300s: case %016" PRIx64 " is there twice", path,
                               b->places[i].id);
    return QG_OK;
}

static qg_status check_whole(const reader *r) {
    if (!r->has_header)
        return qg_fail(QG_ERROR_DATA, "%.300s: no baseline: it has no header line", r->path);
    if (r->baseline->count == 0)
        return qg_fail(QG_ERROR_DATA, "%.300s: holds no row", r->path);
    return QG_OK;
}

qg_status qg_baseline_read(const char *path, qg_baseline **out) {
    qg_text_lines lines;
    *out = NULL;
    qg_status status = qg_text_lines_open(path, &lines);
    if (status != QG_OK)
        return status;
    reader r = {.path = path, .baseline = calloc(1, sizeof *r.baseline)};
    if (!r.baseline)
        status = qg_fail(QG_ERROR_MEMORY, "no memory for %.300s", path);
    for (char *line; status == QG_OK && (line = qg_text_lines_next(&lines));)
        status = take_line(&r, line);
    qg_text_lines_close(&lines);
    if (status == QG_OK)
        status = check_whole(&r);
    if (status == QG_OK)
        status = baseline_index(r.baseline);
    if (status == QG_OK)
        status = check_places(path, r.baseline);
    if (status == QG_OK)
        *out = r.baseline;
    else
        qg_baseline_free(r.baseline);
    return status;
}

// --------------------------------------------------------------------------------------- choosing

static int64_t common_cases(const qg_baseline *b, const qg_table *const *tables, int count) {
    int64_t common = 0;
    for (int t = 0; t < count; t++)
        for (int64_t row = 0; row < qg_table_rows(tables[t]); row++)
            common += qg_baseline_find(b, tables[t], row).row != NULL;
    return common;
}

static bool is_tsv(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".tsv") == 0;
}

static int only_tsv(const struct dirent *entry) { return is_tsv(entry); }

qg_status qg_baseline_choose(const char *folder, const qg_table *const *tables, int count,
                             char *path, size_t size, qg_baseline **out) {
    struct dirent **entries;
    int64_t best = 0;
    *out = NULL;
    path[0] = '\0';
    int found = scandir(folder, &entries, only_tsv, alphasort);
    if (found < 0)
        return errno == ENOENT ? QG_OK
                               : qg_fail(QG_ERROR_IO, "%.300s: %s", folder, strerror(errno));
    qg_status status = QG_OK;
    for (int i = 0; i < found; i++) {
        char name[4096];
        qg_baseline *b = NULL;
        snprintf(name, sizeof name, "%s/%s", folder, entries[i]->d_name);
        free(entries[i]);
        if (status == QG_OK)
            status = qg_baseline_read(name, &b);
        int64_t common = status == QG_OK ? common_cases(b, tables, count) : 0;
        if (common <= best) {
            qg_baseline_free(b);
            continue;
        }
        best = common;
        qg_baseline_free(*out);
        *out = b;
        snprintf(path, size, "%s", name);
    }
    free((void *)entries);
    return status;
}

// ---------------------------------------------------------------------------------------- writing

static void put_number(FILE *stream, double value) {
    if (isnan(value))
        return;
    if (isinf(value))
        fputs(value < 0 ? "-inf" : "inf", stream);
    else
        fprintf(stream, "%.9g", value);
}

static void put_row(FILE *stream, const qg_baseline_row *row) {
    fprintf(stream, "%s\t", row->axes);
    for (int i = 0; i < row->count; i++)
        fprintf(stream, "%s%" PRIu64, i ? "," : "", row->seeds[i]);
    for (int i = 0; i < row->count; i++)
        fprintf(stream, "%s%016" PRIx64, i ? "," : "\t", row->cases[i]);
    for (int i = 0; i < row->count; i++)
        fprintf(stream, "%s%016" PRIx64, i ? "," : "\t", row->digests[i]);
    fprintf(stream, "\t%016" PRIx64 "\t%016" PRIx64, row->inputs, row->definition);
    for (int i = 0; i < QG_BASELINE_METRICS; i++) {
        fputc('\t', stream);
        put_number(stream, row->mean[i]);
        fputc('\t', stream);
        put_number(stream, row->spread[i]);
    }
    fputc('\n', stream);
}

static qg_status replace(const char *path, const char *text, size_t size) {
    qg_replacement replacement;
    qg_status status = qg_replacement_begin(path, &replacement);
    if (status != QG_OK)
        return status;
    status = qg_replacement_write(&replacement, text, size, true);
    if (status == QG_OK)
        status = qg_replacement_commit(&replacement);
    qg_replacement_end(&replacement, status == QG_OK);
    return status;
}

qg_status qg_baseline_write(const qg_baseline *b, const char *path) {
    char *text = NULL, name[64];
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (stream) {
        fputs(HEADING, stream);
        for (int i = 0; i < COLUMN_COUNT; i++)
            fprintf(stream, "%s%s", i ? "\t" : "", column_name(i, name));
        fputc('\n', stream);
        for (int64_t i = 0; i < b->count; i++)
            put_row(stream, &b->rows[i]);
    }
    qg_status status = stream && fclose(stream) == 0
                           ? replace(path, text, size)
                           : qg_fail(QG_ERROR_MEMORY, "no memory for %.300s", path);
    free(text);
    return status;
}

// --------------------------------------------------------------------------------------- changes

enum { MOST_LINES = 20 };

typedef struct changes {
    FILE *stream;
    int64_t added, removed, changed;
} changes;

// Axes with one space between those that are there.
static void put_axes(FILE *stream, const char *axes) {
    for (const char *c = axes; *c; c++)
        if (*c != '\t' || (c > axes && c[-1] != '\t'))
            fputc(*c == '\t' ? ' ' : *c, stream);
}

static void note(changes *c, char sign, int64_t *count, const char *axes) {
    if ((*count)++ >= MOST_LINES)
        return;
    fprintf(c->stream, "%c ", sign);
    put_axes(c->stream, axes);
    fputc('\n', c->stream);
}

static bool differs(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) != isnan(b);
    return a != b;
}

static void put_mean(FILE *stream, double mean) {
    if (isnan(mean))
        fputs("none", stream);
    else
        fprintf(stream, "%.6g", mean);
}

static void note_metrics(const changes *c, const qg_baseline_row *old, const qg_baseline_row *now) {
    for (int i = 0; i < QG_BASELINE_METRICS; i++)
        if (differs(old->mean[i], now->mean[i])) {
            fprintf(c->stream, "    %s ", qg_column_describe(baseline_metrics[i])->name);
            put_mean(c->stream, old->mean[i]);
            fputs(" -> ", c->stream);
            put_mean(c->stream, now->mean[i]);
            if (!isnan(old->spread[i]))
                fprintf(c->stream, " (spread %.3g)", old->spread[i]);
            fputc('\n', c->stream);
        }
}

static void compare_rows(changes *c, const qg_baseline_row *old, const qg_baseline_row *now) {
    size_t size = (size_t)old->count * sizeof(uint64_t);
    bool cases = old->count == now->count && memcmp(old->cases, now->cases, size) == 0;
    bool digests = cases && memcmp(old->digests, now->digests, size) == 0;
    bool metrics = false;
    for (int i = 0; i < QG_BASELINE_METRICS; i++)
        metrics |= differs(old->mean[i], now->mean[i]);
    if (digests && !metrics && old->definition == now->definition && old->inputs == now->inputs)
        return;
    note(c, '~', &c->changed, now->axes);
    if (c->changed > MOST_LINES)
        return;
    if (!cases)
        fprintf(c->stream, "    cases %d -> %d, seeds or plan changed\n", old->count, now->count);
    else if (!digests)
        fputs("    digests changed\n", c->stream);
    if (old->inputs != now->inputs && cases)
        fputs("    inputs changed\n", c->stream);
    if (old->definition != now->definition)
        fputs("    definitions of metrics changed\n", c->stream);
    note_metrics(c, old, now);
}

void qg_baseline_diff(const qg_baseline *old, const qg_baseline *now, FILE *stream) {
    const qg_baseline none = {0};
    old = old ? old : &none;
    changes c = {stream, 0, 0, 0};
    int64_t i = 0, j = 0;
    while (i < old->count || j < now->count) {
        int order = i == old->count   ? 1
                    : j == now->count ? -1
                                      : strcmp(old->rows[i].axes, now->rows[j].axes);
        if (order < 0)
            note(&c, '-', &c.removed, old->rows[i++].axes);
        else if (order > 0)
            note(&c, '+', &c.added, now->rows[j++].axes);
        else
            compare_rows(&c, &old->rows[i++], &now->rows[j++]);
    }
    fprintf(stream, "%" PRId64 " rows added, %" PRId64 " removed, %" PRId64 " changed\n", c.added,
            c.removed, c.changed);
}
