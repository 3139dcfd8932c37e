// Making baselines from results, and finding cases in them. See gate_baseline.h.
#include <gate_baseline_internal.h>

#include <qg_digest.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const qg_column baseline_axes[BASELINE_AXIS_COUNT] = {
#define AXIS(COLUMN) QG_COLUMN_##COLUMN,
    BASELINE_AXES(AXIS)
#undef AXIS
};

const qg_column baseline_metrics[QG_BASELINE_METRICS] = {
#define METRIC(COLUMN) QG_COLUMN_##COLUMN,
    QG_BASELINE_METRIC_TABLE(METRIC)
#undef METRIC
};

static qg_status no_memory(void) { return qg_fail(QG_ERROR_MEMORY, "no memory for a baseline"); }

// --------------------------------------------------------------------------------------- the rows

qg_baseline_row *baseline_add_row(qg_baseline *b) {
    if (b->count == b->room) {
        int64_t room = b->room ? 2 * b->room : 256;
        qg_baseline_row *rows = realloc(b->rows, (size_t)room * sizeof *rows);
        if (!rows)
            return NULL;
        b->rows = rows;
        b->room = room;
    }
    qg_baseline_row *row = &b->rows[b->count++];
    *row = (qg_baseline_row){0};
    return row;
}

void qg_baseline_free(qg_baseline *b) {
    if (!b)
        return;
    for (int64_t i = 0; i < b->count; i++) {
        free(b->rows[i].axes);
        free(b->rows[i].seeds);
        free(b->rows[i].cases);
        free(b->rows[i].digests);
    }
    free(b->rows);
    free(b->places);
    free(b);
}

int64_t qg_baseline_rows(const qg_baseline *b) { return b->count; }
const qg_baseline_row *qg_baseline_row_at(const qg_baseline *b, int64_t i) { return &b->rows[i]; }

static int by_axes(const void *a, const void *b) {
    const qg_baseline_row *x = a, *y = b;
    return strcmp(x->axes, y->axes);
}

static int by_id(const void *a, const void *b) {
    const baseline_place *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

qg_status baseline_index(qg_baseline *b) {
    int64_t total = 0;
    qsort(b->rows, (size_t)b->count, sizeof *b->rows, by_axes);
    for (int64_t i = 0; i < b->count; i++)
        total += b->rows[i].count;
    free(b->places);
    b->place_count = 0;
    b->places = malloc((size_t)(total + 1) * sizeof *b->places);
    if (!b->places)
        return no_memory();
    for (int64_t i = 0; i < b->count; i++) {
        const char *tab = strrchr(b->rows[i].axes, '\t');
        b->rows[i].reference = tab ? tab + 1 : "";
        for (int j = 0; j < b->rows[i].count; j++)
            b->places[b->place_count++] = (baseline_place){b->rows[i].cases[j], i, j};
    }
    qsort(b->places, (size_t)b->place_count, sizeof *b->places, by_id);
    return QG_OK;
}

uint64_t baseline_definition(void) {
    qg_digest *digest;
    if (qg_digest_create(&digest) != QG_OK)
        return 0;
    qg_digest_add(digest, "quantgauge-baseline-1", 22);
    for (int i = 0; i < QG_BASELINE_METRICS; i++) {
        const qg_column_info *info = qg_column_describe(baseline_metrics[i]);
        qg_digest_add(digest, info->name, strlen(info->name) + 1);
        qg_digest_add(digest, info->definition, strlen(info->definition) + 1);
    }
    uint64_t value = qg_digest_value(digest);
    qg_digest_free(digest);
    return value;
}

// ---------------------------------------------------------------------------------------- making

typedef struct source {
    const qg_table *table;
    int64_t row;
    uint64_t seed;
    char *axes;
} source;

// Foreign names of tensors must end neither the field nor the line.
static void put_field(FILE *stream, const char *text) {
    for (; *text; text++)
        fputc(*text == '\t' || *text == '\n' || *text == '\r' ? '?' : *text, stream);
}

static char *axes_of(const qg_table *table, int64_t row) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return NULL;
    for (int i = 0; i < BASELINE_AXIS_COUNT; i++) {
        qg_column column = baseline_axes[i];
        const char *separator = i ? "\t" : "";
        switch (qg_column_describe(column)->type) {
        case QG_COLUMN_TEXT:
            fputs(separator, stream);
            put_field(stream, qg_table_text(table, row, column));
            break;
        case QG_COLUMN_U8:
            fprintf(stream, "%s%d", separator, qg_table_u8(table, row, column));
            break;
        default: fprintf(stream, "%s%" PRId64, separator, qg_table_i64(table, row, column));
        }
    }
    if (fclose(stream) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool belongs(const qg_table *table, int64_t row) {
    const char *status = qg_table_text(table, row, QG_COLUMN_STATUS);
    const char *op = qg_table_text(table, row, QG_COLUMN_OP);
    bool measured =
        !strcmp(status, "RAN") || !strcmp(status, "PASSED") || !strcmp(status, "MISTRUSTED");
    return measured && strcmp(op, "throughput") != 0 &&
           strcmp(qg_table_text(table, row, QG_COLUMN_UNIT), "native") != 0;
}

static int by_group(const void *a, const void *b) {
    const source *x = a, *y = b;
    int order = strcmp(x->axes, y->axes);
    return order ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

// As files have it: 9 digits.
static double as_written(double value) {
    char text[40];
    if (!isfinite(value))
        return value;
    snprintf(text, sizeof text, "%.9g", value);
    return strtod(text, NULL);
}

// Two-pass, so that equal values have no spread at all.
static void summarize(const source *s, int count, int metric, qg_baseline_row *row) {
    double sum = 0, squares = 0;
    row->mean[metric] = row->spread[metric] = (double)NAN;
    if (count < QG_BASELINE_SEEDS_LEAST)
        return;
    double first = qg_gate_column(s[0].table, s[0].row, baseline_metrics[metric]);
    for (int i = 0; i < count; i++)
        sum += qg_gate_column(s[i].table, s[i].row, baseline_metrics[metric]) - first;
    double mean = isinf(first) ? first : first + sum / count;
    for (int i = 0; i < count; i++) {
        double d = qg_gate_column(s[i].table, s[i].row, baseline_metrics[metric]) - mean;
        squares += isnan(d) ? 0 : d * d;
    }
    if (isnan(mean) || isinf(squares)) // finite for some seeds, infinite for others: no spread
        return;
    row->mean[metric] = as_written(mean);
    row->spread[metric] = as_written(sqrt(squares / (count - 1)));
}

static qg_status add_group(qg_baseline *b, source *s, int count) {
    qg_baseline_row *row = baseline_add_row(b);
    qg_digest *digest;
    size_t size = (size_t)count * sizeof(uint64_t);
    if (!row)
        return no_memory();
    row->axes = s[0].axes;
    s[0].axes = NULL;
    row->count = count;
    row->seeds = malloc(size);
    row->cases = malloc(size);
    row->digests = malloc(size);
    if (!row->seeds || !row->cases || !row->digests || qg_digest_create(&digest) != QG_OK)
        return no_memory();
    for (int i = 0; i < count; i++) {
        row->seeds[i] = s[i].seed;
        row->cases[i] = qg_table_u64(s[i].table, s[i].row, QG_COLUMN_CASE_ID);
        row->digests[i] = qg_table_u64(s[i].table, s[i].row, QG_COLUMN_OUTPUT_DIGEST);
        uint64_t input = qg_table_u64(s[i].table, s[i].row, QG_COLUMN_INPUT_DIGEST);
        qg_digest_add(digest, &input, sizeof input);
    }
    row->inputs = qg_digest_value(digest);
    qg_digest_free(digest);
    row->definition = baseline_definition();
    for (int m = 0; m < QG_BASELINE_METRICS; m++)
        summarize(s, count, m, row);
    return QG_OK;
}

// Of a case with two outcomes the order of the files would choose.
static qg_status check_repeats(const source *s, int64_t count) {
    for (int64_t i = 1; i < count; i++)
        if (by_group(&s[i - 1], &s[i]) == 0 &&
            qg_table_u64(s[i - 1].table, s[i - 1].row, QG_COLUMN_OUTPUT_DIGEST) !=
                qg_table_u64(s[i].table, s[i].row, QG_COLUMN_OUTPUT_DIGEST))
            return qg_fail(QG_ERROR_DATA,
                           "no baseline of files that differ: case %016" PRIx64
                           " has another output_digest in each",
                           qg_table_u64(s[i].table, s[i].row, QG_COLUMN_CASE_ID));
    return QG_OK;
}

// A case that is in several files counts once.
static int64_t drop_repeats(source *s, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (i > 0 && kept > 0 && by_group(&s[kept - 1], &s[i]) == 0)
            free(s[i].axes);
        else
            s[kept++] = s[i];
    return kept;
}

static qg_status collect(const qg_table *const *tables, int count, source **out, int64_t *found) {
    int64_t total = 0;
    for (int t = 0; t < count; t++)
        total += qg_table_rows(tables[t]);
    *found = 0;
    *out = malloc((size_t)(total + 1) * sizeof **out);
    if (!*out)
        return no_memory();
    for (int t = 0; t < count; t++)
        for (int64_t row = 0; row < qg_table_rows(tables[t]); row++) {
            if (!belongs(tables[t], row))
                continue;
            source s = {tables[t], row, qg_table_u64(tables[t], row, QG_COLUMN_SEED),
                        axes_of(tables[t], row)};
            if (!s.axes)
                return no_memory();
            (*out)[(*found)++] = s;
        }
    qsort(*out, (size_t)*found, sizeof **out, by_group);
    return QG_OK;
}

qg_status qg_baseline_make(const qg_table *const *tables, int count, qg_baseline **out,
                           int64_t *fewest) {
    source *sources = NULL;
    int64_t found = 0;
    *fewest = INT64_MAX;
    *out = calloc(1, sizeof **out);
    qg_status status = *out ? collect(tables, count, &sources, &found) : no_memory();
    if (status != QG_OK) {
        free(*out);
        *out = NULL;
        return status;
    }
    status = check_repeats(sources, found);
    if (status == QG_OK)
        found = drop_repeats(sources, found);
    for (int64_t first = 0, next; first < found && status == QG_OK; first = next) {
        const char *axes = sources[first].axes;
        for (next = first + 1; next < found && strcmp(sources[next].axes, axes) == 0;)
            next++;
        *fewest = next - first < *fewest ? next - first : *fewest;
        status = add_group(*out, sources + first, (int)(next - first));
    }
    for (int64_t i = 0; i < found; i++)
        free(sources[i].axes);
    free(sources);
    if (status == QG_OK)
        status = baseline_index(*out);
    if (status == QG_OK)
        return QG_OK;
    qg_baseline_free(*out);
    *out = NULL;
    return status;
}

// --------------------------------------------------------------------------------------- finding

static const baseline_place *first_place(const qg_baseline *b, uint64_t id) {
    int64_t low = 0, high = b->place_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (b->places[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < b->place_count && b->places[low].id == id ? &b->places[low] : NULL;
}

qg_baseline_match qg_baseline_find(const qg_baseline *b, const qg_table *table, int64_t row) {
    qg_baseline_match match = {0};
    if (!b)
        return match;
    uint64_t id = qg_table_u64(table, row, QG_COLUMN_CASE_ID);
    const char *reference = qg_table_text(table, row, QG_COLUMN_REFERENCE);
    const baseline_place *end = b->places + b->place_count;
    for (const baseline_place *p = first_place(b, id); p && p < end && p->id == id; p++) {
        const qg_baseline_row *r = &b->rows[p->row];
        if (strcmp(r->reference, reference) != 0)
            continue;
        match.row = r;
        match.digest = r->digests[p->index];
        match.comparable = r->definition == baseline_definition();
        match.why = "the baseline was made with other definitions of its metrics: make it again "
                    "with --update-baseline";
    }
    return match;
}

bool qg_baseline_holds(const char *metric) {
    for (int i = 0; i < QG_BASELINE_METRICS; i++)
        if (strcmp(qg_column_describe(baseline_metrics[i])->name, metric) == 0)
            return true;
    return false;
}

bool qg_baseline_metric(const qg_baseline_row *row, const char *metric, qg_gate_case *out) {
    for (int i = 0; i < QG_BASELINE_METRICS; i++)
        if (strcmp(qg_column_describe(baseline_metrics[i])->name, metric) == 0) {
            out->baseline = row->mean[i];
            out->spread = row->spread[i];
            out->seeds = row->count;
            return !isnan(row->mean[i]) && row->count >= QG_BASELINE_SEEDS_LEAST;
        }
    return false;
}
