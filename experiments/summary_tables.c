// The end tables. See summary_tables.h: one of tensors and their quantization error, one of
// products with the error against the exact product of the source and against that of the quantized
// operands, one of models, one of speeds.
//
// A table is a list of columns: texts are keys of the groups, numbers are functions of a group.
#include <summary_tables.h>

#include <qg_backend_list.h>
#include <summary_group.h>
#include <text_grid.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MOST = 16 };

typedef enum cell_style {
    TEXT,
    COUNT,
    DECIBELS,
    PERCENT,
    SHORT,
    SCIENTIFIC,
    LONG,      // five digits behind the point
    WORST,     // the least of `of`, in decibels
    WORST_NODE // the tensor that has it
} cell_style;

// When a column is shown.
typedef enum presence {
    ALWAYS,
    IF_FITTING, // left out, the last one first, when the table is too wide
    IF_VARYING, // if it tells groups apart
    IF_TELLING, // if it tells groups apart and fits
    IF_MIXED,   // if it differs from `of`
    BELOW       // in no column: lines below the table say how often each text is there
} presence;

typedef struct column {
    const char *title;
    cell_style style;
    presence presence;
    qg_column of;
    const char *reference; // of the rows that numbers come from
    const char *tensor;    // of those rows; NULL: any
} column;

typedef struct end_table {
    const summary_groups *groups;
    const column *columns; // all
    int column_count;
    double *numbers; // (groups, column_count)
    int shown[COLUMNS_MOST];
} end_table;

// --------------------------------------------------------------------------------------- values

// Of WORST and WORST_NODE: the row.
static double value_of(const summary_groups *groups, int64_t group, const column *c) {
    summary_rows rows = {c->reference, c->tensor};
    switch (c->style) {
    case COUNT: return (double)summary_group_cases(groups, group, rows);
    case TEXT: return 0;
    case WORST:
    case WORST_NODE: return (double)summary_group_least(groups, group, c->of, rows);
    default: break;
    }
    return qg_column_describe(c->of)->type == QG_COLUMN_F64
               ? summary_group_median(groups, group, c->of, rows)
               : summary_group_share(groups, group, c->of, rows);
}

static void print_percent(double share, char text[QG_CELL_SIZE]) {
    if (isnan(share))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (share == 0)
        snprintf(text, QG_CELL_SIZE, "0");
    else if (share < 0.00005)
        snprintf(text, QG_CELL_SIZE, "<0.01");
    else
        snprintf(text, QG_CELL_SIZE, "%.2f", 100 * share);
}

static void print_number(double value, const char *format, char text[QG_CELL_SIZE]) {
    if (isnan(value))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (strcmp(format, "%.2f") == 0)
        snprintf(text, QG_CELL_SIZE, "%.2f", value);
    else if (strcmp(format, "%.5f") == 0)
        snprintf(text, QG_CELL_SIZE, "%.5f", value);
    else
        snprintf(text, QG_CELL_SIZE, "%.3g", value);
}

static void print_worst(const end_table *t, const column *c, double row, char text[QG_CELL_SIZE]) {
    const qg_table *table = t->groups->table;
    if (row < 0)
        snprintf(text, QG_CELL_SIZE, "-");
    else if (c->style == WORST)
        print_number(qg_table_f64(table, (int64_t)row, c->of), "%.2f", text);
    else
        snprintf(text, QG_CELL_SIZE, "%s", qg_table_text(table, (int64_t)row, QG_COLUMN_TENSOR));
}

static void print_scientific(double value, char text[QG_CELL_SIZE]) {
    if (isnan(value))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (value == 0)
        snprintf(text, QG_CELL_SIZE, "0");
    else
        snprintf(text, QG_CELL_SIZE, "%.1e", value);
}

static void print_cell(const end_table *t, int64_t row, int at, char text[QG_CELL_SIZE]) {
    const column *c = &t->columns[at];
    double value = t->numbers[row * t->column_count + at];
    switch (c->style) {
    case COUNT: snprintf(text, QG_CELL_SIZE, "%.0f", value); break;
    case DECIBELS: print_number(value, "%.2f", text); break;
    case PERCENT: print_percent(value, text); break;
    case SHORT: print_number(value, "%.3g", text); break;
    case SCIENTIFIC: print_scientific(value, text); break;
    case LONG: print_number(value, "%.5f", text); break;
    case WORST:
    case WORST_NODE: print_worst(t, c, value, text); break;
    default: snprintf(text, QG_CELL_SIZE, "%s", summary_group_text(t->groups, row, c->of)); break;
    }
}

static void shown_cell(const void *context, int64_t row, int shown, char text[QG_CELL_SIZE]) {
    const end_table *t = context;
    print_cell(t, row, t->shown[shown], text);
}

// -------------------------------------------------------------------------------------- columns

// The column before which another one says the same of most rows: b is quantized as a.
static bool differs(const end_table *t, qg_column one, qg_column other) {
    for (int64_t i = 0; i < t->groups->count; i++)
        if (strcmp(summary_group_text(t->groups, i, one),
                   summary_group_text(t->groups, i, other)) != 0)
            return true;
    return false;
}

static bool is_wanted(const end_table *t, int at) {
    const column *c = &t->columns[at];
    switch (c->presence) {
    case IF_VARYING:
    case IF_TELLING: return summary_groups_vary(t->groups, c->of);
    case IF_MIXED: return differs(t, c->of, QG_COLUMN_FORMAT);
    case BELOW: return false;
    default: return true;
    }
}

// Cut before other columns where all are too wide.
static bool is_squeezed(qg_column of) { return of == QG_COLUMN_LAYOUT || of == QG_COLUMN_DATA; }

static void fill_grid(end_table *t, qg_text_grid *grid) {
    for (int c = 0; c < t->column_count; c++)
        if (is_wanted(t, c)) {
            grid->title[grid->columns] = t->columns[c].title;
            grid->right[grid->columns] = t->columns[c].style != TEXT;
            grid->middle[grid->columns] = true; // units differ at their end, too
            grid->whole[grid->columns] = !is_squeezed(t->columns[c].of);
            t->shown[grid->columns++] = c;
        }
}

static bool may_be_left_out(const column *c) {
    return c->presence == IF_FITTING || c->presence == IF_TELLING;
}

// Leaves out the last column that may be. False if there is none.
static bool drop_column(end_table *t, qg_text_grid *grid) {
    int at = grid->columns - 1;
    while (at >= 0 && !may_be_left_out(&t->columns[t->shown[at]]))
        at--;
    if (at < 0)
        return false;
    for (grid->columns--; at < grid->columns; at++) {
        t->shown[at] = t->shown[at + 1];
        grid->title[at] = grid->title[at + 1];
        grid->right[at] = grid->right[at + 1];
        grid->middle[at] = grid->middle[at + 1];
        grid->whole[at] = grid->whole[at + 1];
    }
    return true;
}

// In how many rows a text of the column is: counted at the first of them, 0 at the others.
static void count_texts(const end_table *t, int at, int64_t *counts) {
    char text[QG_CELL_SIZE], other[QG_CELL_SIZE];
    for (int64_t i = 0; i < t->groups->count; i++) {
        int64_t first = 0;
        print_cell(t, i, at, text);
        for (print_cell(t, first, at, other); strcmp(text, other) != 0;)
            print_cell(t, ++first, at, other);
        counts[i] = 0;
        counts[first]++;
    }
}

static int64_t largest(const int64_t *counts, int64_t count) {
    int64_t at = 0;
    for (int64_t i = 1; i < count; i++)
        at = counts[i] > counts[at] ? i : at;
    return at;
}

// Each text of a column once, that of most rows first.
static void print_texts(const end_table *t, int at, int64_t *counts, int width, FILE *stream) {
    char text[QG_CELL_SIZE], part[QG_CELL_SIZE + 32];
    int64_t row;
    int printed = fprintf(stream, "%s", t->columns[at].title);
    const char *before = ":";
    count_texts(t, at, counts);
    while (counts[row = largest(counts, t->groups->count)] > 0) {
        print_cell(t, row, at, text);
        int length = snprintf(part, sizeof part, " %s in %" PRId64 " row%s", text, counts[row],
                              counts[row] == 1 ? "" : "s");
        printed += fprintf(stream, "%s", before);
        if (width && printed + length >= width) // a comma follows
            printed = fprintf(stream, "\n   ") - 1;
        printed += fprintf(stream, "%s", part);
        before = ",";
        counts[row] = 0;
    }
    fputc('\n', stream);
}

static void print_below(const end_table *t, int width, FILE *stream) {
    int64_t *counts = malloc((size_t)t->groups->count * sizeof *counts);
    for (int c = 0; counts && c < t->column_count; c++)
        if (t->columns[c].presence == BELOW)
            print_texts(t, c, counts, width, stream);
    free(counts);
}

static void print_groups(end_table *t, int width, FILE *stream) {
    qg_text_grid grid = {
        .rows = t->groups->count, .cell = shown_cell, .context = t, .width = width};
    fill_grid(t, &grid);
    while (qg_text_grid_width(&grid) > width && drop_column(t, &grid))
        continue;
    qg_text_grid_print(&grid, stream);
    print_below(t, width, stream);
}

// Prints `before` and the table. False without a group.
static bool print_table(const qg_plan *plan, const qg_table *table, const column *columns,
                        int column_count, bool (*takes)(const qg_table *table, int64_t row),
                        int width, const char *before, FILE *stream) {
    qg_column keys[COLUMNS_MOST];
    int key_count = 0;
    for (int i = 0; i < column_count; i++)
        if (columns[i].style == TEXT)
            keys[key_count++] = columns[i].of;
    summary_groups groups;
    qg_status status = summary_groups_make(plan, table, keys, key_count, takes, &groups);
    end_table t = {.groups = &groups, .columns = columns, .column_count = column_count};
    t.numbers = malloc(((size_t)groups.count * (size_t)column_count + 1) * sizeof *t.numbers);
    bool found = status == QG_OK && t.numbers && groups.count > 0;
    for (int64_t i = 0; found && i < groups.count; i++)
        for (int c = 0; c < column_count; c++)
            t.numbers[i * column_count + c] = value_of(&groups, i, &columns[c]);
    if (found) {
        fputs(before, stream);
        print_groups(&t, width, stream);
    }
    free(t.numbers);
    summary_groups_free(&groups);
    return found;
}

// --------------------------------------------------------------------------------------- tables

// Rows without a reference: what was compared is the tensor itself.
static const column TENSOR_COLUMNS[] = {
    {"format",    TEXT,     ALWAYS,     QG_COLUMN_FORMAT,               NULL, NULL},
    {"layout",    TEXT,     ALWAYS,     QG_COLUMN_LAYOUT,               NULL, NULL},
    {"rule",      TEXT,     ALWAYS,     QG_COLUMN_SCALE_RULE,           NULL, NULL},
    {"rounding",  TEXT,     IF_VARYING, QG_COLUMN_ROUNDING,             NULL, NULL},
    {"backend",   TEXT,     IF_VARYING, QG_COLUMN_BACKEND,              NULL, NULL},
    {"cases",     COUNT,    IF_FITTING, QG_COLUMN_COUNT_N,              "",   NULL},
    {"QSNR dB",   DECIBELS, ALWAYS,     QG_COLUMN_METRIC_QSNR_DB,       "",   NULL},
    {"error %",   PERCENT,  ALWAYS,     QG_COLUMN_METRIC_REL_FROBENIUS, "",   NULL},
    {"satur %",   PERCENT,  ALWAYS,     QG_COLUMN_COUNT_SATURATED,      "",   NULL},
    {"underfl %", PERCENT,  ALWAYS,     QG_COLUMN_COUNT_UNDERFLOWED,    "",   NULL},
};

static const column PRODUCT_COLUMNS[] = {
    {"format",   TEXT,       ALWAYS,     QG_COLUMN_FORMAT,               NULL,        NULL},
    {"by",       TEXT,       IF_MIXED,   QG_COLUMN_FORMAT_B,             NULL,        NULL},
    {"layout",   TEXT,       IF_VARYING, QG_COLUMN_LAYOUT,               NULL,        NULL},
    {"rule",     TEXT,       IF_VARYING, QG_COLUMN_SCALE_RULE,           NULL,        NULL},
    {"rounding", TEXT,       IF_VARYING, QG_COLUMN_ROUNDING,             NULL,        NULL},
    {"backend",  TEXT,       IF_TELLING, QG_COLUMN_BACKEND,              NULL,        NULL},
    {"unit",     TEXT,       ALWAYS,     QG_COLUMN_UNIT,                 NULL,        NULL},
    {"out",      TEXT,       IF_VARYING, QG_COLUMN_OUT_TYPE,             NULL,        NULL},
    {"cases",    COUNT,      IF_FITTING, QG_COLUMN_COUNT_N,              "source",    NULL},
    {"error %",  PERCENT,    ALWAYS,     QG_COLUMN_METRIC_REL_FROBENIUS, "source",    NULL},
    {"accum",    SCIENTIFIC, ALWAYS,     QG_COLUMN_METRIC_REL_FROBENIUS, "quantized", NULL},
    {"bias",     SCIENTIFIC, IF_FITTING, QG_COLUMN_METRIC_BIAS_REL,      "quantized", NULL},
    {"max ulp",  SHORT,      IF_FITTING, QG_COLUMN_METRIC_MAX_ULP,       "quantized", NULL},
};

static const column SPEED_COLUMNS[] = {
    {"format",   TEXT,  ALWAYS,     QG_COLUMN_FORMAT,              NULL, NULL},
    {"layout",   TEXT,  ALWAYS,     QG_COLUMN_LAYOUT,              NULL, NULL},
    {"rule",     TEXT,  ALWAYS,     QG_COLUMN_SCALE_RULE,          NULL, NULL},
    {"rounding", TEXT,  IF_VARYING, QG_COLUMN_ROUNDING,            NULL, NULL},
    {"backend",  TEXT,  IF_VARYING, QG_COLUMN_BACKEND,             NULL, NULL},
    {"input",    TEXT,  ALWAYS,     QG_COLUMN_INPUT_TYPE,          NULL, NULL},
    {"cases",    COUNT, IF_FITTING, QG_COLUMN_COUNT_N,             "",   NULL},
    {"GB/s",     SHORT, ALWAYS,     QG_COLUMN_TIMING_GB_PER_S,     "",   NULL},
    {"memcpy",   SHORT, ALWAYS,     QG_COLUMN_TIMING_MEMCPY_RATIO, "",   NULL},
};

// Of one run of a model each: its nodes are rows, and the last of them is the embedding.
static const column MODEL_COLUMNS[] = {
    {"format",      TEXT,       ALWAYS,     QG_COLUMN_FORMAT,         NULL,   NULL       },
    {"by",          TEXT,       IF_MIXED,   QG_COLUMN_FORMAT_B,       NULL,   NULL       },
    {"layout",      TEXT,       IF_VARYING, QG_COLUMN_LAYOUT,         NULL,   NULL       },
    {"rule",        TEXT,       IF_VARYING, QG_COLUMN_SCALE_RULE,     NULL,   NULL       },
    {"rounding",    TEXT,       IF_VARYING, QG_COLUMN_ROUNDING,       NULL,   NULL       },
    {"backend",     TEXT,       IF_TELLING, QG_COLUMN_BACKEND,        NULL,   NULL       },
    {"unit",        TEXT,       IF_VARYING, QG_COLUMN_UNIT,           NULL,   NULL       },
    {"out",         TEXT,       IF_VARYING, QG_COLUMN_OUT_TYPE,       NULL,   NULL       },
    {"model",       TEXT,       IF_VARYING, QG_COLUMN_DATA,           NULL,   NULL       },
    {"cosine",      LONG,       ALWAYS,     QG_COLUMN_METRIC_COSINE,  "fp32", "embedding"},
    {"QSNR dB",     DECIBELS,   ALWAYS,     QG_COLUMN_METRIC_QSNR_DB, "fp32", "embedding"},
    {"rho",         LONG,       ALWAYS,     QG_COLUMN_SPEARMAN,       "fp32", "embedding"},
    {"worst",       WORST,      ALWAYS,     QG_COLUMN_METRIC_QSNR_DB, "fp32", NULL       },
    {"worst nodes", WORST_NODE, BELOW,      QG_COLUMN_METRIC_QSNR_DB, "fp32", NULL       },
};

static bool is_measured(const qg_table *table, int64_t row) {
    return qg_table_i64(table, row, QG_COLUMN_COUNT_N) > 0;
}

static bool has_reference(const qg_table *table, int64_t row) {
    return qg_table_text(table, row, QG_COLUMN_REFERENCE)[0] != 0;
}

static bool is_tensor(const qg_table *table, int64_t row) {
    return is_measured(table, row) && !has_reference(table, row);
}

// Of a backend that gave the emulator's bytes: it has the emulator's errors, too.
static bool repeats_emulator(const qg_table *table, int64_t row) {
    return !qg_backend_is_emulator(qg_table_text(table, row, QG_COLUMN_BACKEND)) &&
           qg_table_i64(table, row, QG_COLUMN_COUNT_CODE_MISMATCHES) == 0 &&
           strcmp(qg_table_text(table, row, QG_COLUMN_STATUS),
                  qg_case_status_name(QG_CASE_PASSED)) == 0;
}

static bool is_new_tensor(const qg_table *table, int64_t row) {
    return is_tensor(table, row) && !repeats_emulator(table, row);
}

static bool is_speed(const qg_table *table, int64_t row) {
    return !isnan(qg_table_f64(table, row, QG_COLUMN_TIMING_GB_PER_S));
}

static bool is_of_model(const qg_table *table, int64_t row) {
    return is_measured(table, row) &&
           strcmp(qg_table_text(table, row, QG_COLUMN_REFERENCE), "fp32") == 0;
}

static bool is_product(const qg_table *table, int64_t row) {
    return is_measured(table, row) && has_reference(table, row) && !is_of_model(table, row);
}

// Tensors whose errors are the emulator's, bytes compared, are counted, not shown: unless there is
// nothing else.
static bool print_tensors(const qg_plan *plan, const qg_table *table, int width, FILE *stream) {
    enum { MOST = sizeof TENSOR_COLUMNS / sizeof *TENSOR_COLUMNS };
    int64_t repeated = 0;
    for (int64_t row = 0; row < qg_table_rows(table); row++)
        repeated += is_tensor(table, row) && repeats_emulator(table, row);
    if (!print_table(plan, table, TENSOR_COLUMNS, MOST, is_new_tensor, width, "", stream) &&
        !print_table(plan, table, TENSOR_COLUMNS, MOST, is_tensor, width, "", stream))
        return false;
    fprintf(stream, "QSNR and relative error: medians over the cases; shares: of all elements\n");
    if (repeated)
        fprintf(stream, "%" PRId64 " case%s of other backends: the emulator's bytes\n", repeated,
                repeated == 1 ? "" : "s");
    return true;
}

static bool print_products(const qg_plan *plan, const qg_table *table, int width,
                           const char *before, FILE *stream) {
    enum { MOST = sizeof PRODUCT_COLUMNS / sizeof *PRODUCT_COLUMNS };
    if (!print_table(plan, table, PRODUCT_COLUMNS, MOST, is_product, width, before, stream))
        return false;
    fprintf(stream, "products: medians over the cases; error: against the product of the source;\n"
                    "accum, bias (relative), max ulp: against that of the quantized operands\n");
    return true;
}

static bool print_models(const qg_plan *plan, const qg_table *table, int width, const char *before,
                         FILE *stream) {
    enum { MOST = sizeof MODEL_COLUMNS / sizeof *MODEL_COLUMNS };
    if (!print_table(plan, table, MODEL_COLUMNS, MOST, is_of_model, width, before, stream))
        return false;
    fprintf(stream,
            "cosine, QSNR: of the embeddings against those in fp32; rho: Spearman's, of all\n"
            "pairwise similarities; worst: the least QSNR of the nodes measured, in dB\n");
    return true;
}

static bool print_speeds(const qg_plan *plan, const qg_table *table, int width, const char *before,
                         FILE *stream) {
    enum { MOST = sizeof SPEED_COLUMNS / sizeof *SPEED_COLUMNS };
    if (!print_table(plan, table, SPEED_COLUMNS, MOST, is_speed, width, before, stream))
        return false;
    fprintf(stream, "quantize: bytes read and written per second, and that over memcpy's;\n"
                    "medians over the cases\n");
    return true;
}

// Of partitions there is nothing to tell apart unless one fails.
static bool print_partitions(const qg_table *table, const char *before, FILE *stream) {
    int64_t cases = 0, violations = 0, twins = 0;
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        int64_t found = qg_table_i64(table, row, QG_COLUMN_PARTITION_VIOLATIONS);
        if (found < 0)
            continue;
        cases++;
        violations += found;
        twins += strcmp(qg_table_text(table, row, QG_COLUMN_PARTITION_KERNEL), "hopper") == 0;
    }
    if (cases)
        fprintf(stream,
                "%skernel grids: %" PRId64 " case%s, %" PRId64 " violations; kernel hopper in "
                "%" PRId64 "\n",
                before, cases, cases == 1 ? "" : "s", violations, twins);
    return cases > 0;
}

void summary_tables_print(const qg_plan *plan, const qg_table *table, int width, FILE *stream) {
    bool tensors = print_tensors(plan, table, width, stream);
    bool products = print_products(plan, table, width, tensors ? "\n" : "", stream);
    bool any = tensors || products;
    any |= print_models(plan, table, width, any ? "\n" : "", stream);
    any |= print_speeds(plan, table, width, any ? "\n" : "", stream);
    any |= print_partitions(table, any ? "\n" : "", stream);
    if (!any)
        fprintf(stream, "nothing was measured\n");
}
