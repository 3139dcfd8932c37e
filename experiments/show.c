// A result file on a terminal or for another program. See show.h.
//
// text and markdown round, show `-` for what does not apply, and leave columns out that have
// nothing else; tsv and json show the values as they are stored (json: null for NaN, "inf" and "-inf").
#include <show.h>

#include <expression.h>
#include <list.h>
#include <message.h>
#include <near_words.h>
#include <qg_results.h>
#include <table_cell.h>
#include <text_grid.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct view {
    const qg_table *table;
    int64_t *rows; // of the table, selected
    int64_t count;
    qg_column columns[QG_COLUMN_COUNT];
    int column_count;
    bool named[QG_COLUMN_COUNT]; // written out in --columns: shown even if empty
    bool of_models;              // the rows are nodes of models, and the columns chosen for them
} view;

// ----------------------------------------------------------------------------------------- values

static bool is_digest(qg_column column) {
    return column == QG_COLUMN_CASE_ID || column == QG_COLUMN_INPUT_DIGEST ||
           column == QG_COLUMN_OUTPUT_DIGEST;
}

static const char *full_name(qg_column column, char name[64]) {
    const qg_column_info *info = qg_column_describe(column);
    if (qg_column_find(info->name) == (int)column)
        return info->name;
    snprintf(name, 64, "%s/%s", info->group, info->name);
    return name;
}

// As stored: what tsv shows.
static void print_exact(qg_cell cell, qg_column column, char text[QG_CELL_SIZE]) {
    switch (qg_column_describe(column)->type) {
    case QG_COLUMN_TEXT: snprintf(text, QG_CELL_SIZE, "%s", cell.text); break;
    case QG_COLUMN_F64: snprintf(text, QG_CELL_SIZE, "%.17g", cell.f64); break;
    case QG_COLUMN_I64: snprintf(text, QG_CELL_SIZE, "%" PRId64, cell.i64); break;
    default:
        snprintf(text, QG_CELL_SIZE, is_digest(column) ? "%016" PRIx64 : "%" PRIu64, cell.u64);
        break;
    }
}

static bool is_missing(qg_cell cell, const qg_column_info *info) {
    switch (info->type) {
    case QG_COLUMN_TEXT: return !*cell.text;
    case QG_COLUMN_F64: return isnan(cell.f64);
    case QG_COLUMN_I64: return cell.i64 == info->missing;
    default: return false;
    }
}

static void print_readable(qg_cell cell, qg_column column, char text[QG_CELL_SIZE]) {
    const qg_column_info *info = qg_column_describe(column);
    if (is_missing(cell, info))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (info->type == QG_COLUMN_F64)
        snprintf(text, QG_CELL_SIZE, "%.6g", cell.f64);
    else
        print_exact(cell, column, text);
}

// ---------------------------------------------------------------------------------------- columns

static const char ALL_COLUMNS[] = "--show FILE --columns '*' prints every column";

static void add_column(view *v, qg_column column) {
    for (int i = 0; i < v->column_count; i++)
        if (v->columns[i] == column)
            return;
    v->columns[v->column_count++] = column;
}

// With a / the glob is over group/name, without over names.
static qg_status add_matching(view *v, const char *glob) {
    bool found = false;
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        char name[64];
        const qg_column_info *info = qg_column_describe((qg_column)i);
        snprintf(name, sizeof name, "%s/%s", info->group, info->name);
        if (fnmatch(glob, strchr(glob, '/') ? name : info->name, 0) == 0) {
            add_column(v, (qg_column)i);
            found = true;
        }
    }
    return found ? QG_OK
                 : qg_fail(QG_ERROR_ARGUMENT, "no column matches '%.60s'; %s", glob, ALL_COLUMNS);
}

static qg_status add_named(view *v, const char *name) {
    int column = qg_column_find(name);
    if (column >= 0) {
        add_column(v, (qg_column)column);
        v->named[column] = true;
        return QG_OK;
    }
    return qg_near_hint(qg_expression_unknown(name, qg_table_columns), ALL_COLUMNS);
}

static qg_status read_columns(view *v, const char *text) {
    qg_list names = {0};
    qg_status status = qg_list_split(text, &names);
    for (int64_t i = 0; i < names.count && !status; i++)
        status = qg_list_is_glob(names.items[i]) ? add_matching(v, names.items[i])
                                                 : add_named(v, names.items[i]);
    qg_list_free(&names);
    return status;
}

// Whether some product multiplies two formats.
static bool has_mixed_formats(const view *v) {
    for (int64_t i = 0; i < v->count; i++) {
        const char *b = qg_table_text(v->table, v->rows[i], QG_COLUMN_FORMAT_B);
        if (*b && strcmp(b, qg_table_text(v->table, v->rows[i], QG_COLUMN_FORMAT)) != 0)
            return true;
    }
    return false;
}

static bool is_empty(const view *v, qg_column column) {
    for (int64_t i = 0; i < v->count; i++) {
        qg_table_row row = {v->table, v->rows[i]};
        if (!is_missing(qg_table_cell(&row, column), qg_column_describe(column)))
            return false;
    }
    return true;
}

// Whether a reader wants it: it tells rows apart, or is a speed.
static bool is_telling(const view *v, qg_column column) {
    if (column == QG_COLUMN_TIMING_GB_PER_S || column == QG_COLUMN_TIMING_MEMCPY_RATIO)
        return !is_empty(v, column);
    if (column == QG_COLUMN_FORMAT_B)
        return has_mixed_formats(v);
    char first[QG_CELL_SIZE] = "", text[QG_CELL_SIZE];
    for (int64_t i = 0; i < v->count; i++) {
        qg_table_row row = {v->table, v->rows[i]};
        print_exact(qg_table_cell(&row, column), column, i ? text : first);
        if (i && strcmp(first, text) != 0)
            return true;
    }
    return column == QG_COLUMN_REASON && first[0];
}

typedef struct wanted_column {
    qg_column column;
    bool always;
} wanted_column;

static void choose_among(view *v, const wanted_column *wanted, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (wanted[i].always || is_telling(v, wanted[i].column))
            add_column(v, wanted[i].column);
}

static bool has_models_alone(const view *v) {
    for (int64_t i = 0; i < v->count; i++)
        if (strcmp(qg_table_text(v->table, v->rows[i], QG_COLUMN_OP), "model") != 0)
            return false;
    return true;
}

static void choose_columns_of_models(view *v) {
    static const wanted_column wanted[] = {
        {QG_COLUMN_FORMAT,         true },
        {QG_COLUMN_FORMAT_B,       false},
        {QG_COLUMN_LAYOUT,         false},
        {QG_COLUMN_SCALE_RULE,     false},
        {QG_COLUMN_ROUNDING,       false},
        {QG_COLUMN_UNIT,           false},
        {QG_COLUMN_OUT_TYPE,       false},
        {QG_COLUMN_BACKEND,        false},
        {QG_COLUMN_DATA,           false},
        {QG_COLUMN_TENSOR,         true },
        {QG_COLUMN_SEED,           false},
        {QG_COLUMN_STATUS,         false},
        {QG_COLUMN_METRIC_QSNR_DB, true },
        {QG_COLUMN_METRIC_COSINE,  true },
        {QG_COLUMN_REASON,         false},
    };
    choose_among(v, wanted, sizeof wanted / sizeof wanted[0]);
    if (!is_empty(v, QG_COLUMN_SPEARMAN)) // of embeddings
        add_column(v, QG_COLUMN_SPEARMAN);
}

// What a reader wants to see: the axes that differ, the status, error and speed.
static void choose_columns(view *v) {
    static const wanted_column wanted[] = {
        {QG_COLUMN_OP,                  false},
        {QG_COLUMN_FORMAT,              true },
        {QG_COLUMN_FORMAT_B,            false},
        {QG_COLUMN_LAYOUT,              true },
        {QG_COLUMN_SCALE_RULE,          true },
        {QG_COLUMN_ROUNDING,            false},
        {QG_COLUMN_UNIT,                false},
        {QG_COLUMN_INPUT_TYPE,          false},
        {QG_COLUMN_OUT_TYPE,            false},
        {QG_COLUMN_HAS_BIAS,            false},
        {QG_COLUMN_BACKEND,             false},
        {QG_COLUMN_DATA,                true },
        {QG_COLUMN_TENSOR,              false},
        {QG_COLUMN_M,                   true },
        {QG_COLUMN_N,                   false},
        {QG_COLUMN_K,                   true },
        {QG_COLUMN_SEED,                false},
        {QG_COLUMN_STATUS,              true },
        {QG_COLUMN_REFERENCE,           false},
        {QG_COLUMN_METRIC_QSNR_DB,      true },
        {QG_COLUMN_TIMING_GB_PER_S,     false},
        {QG_COLUMN_TIMING_MEMCPY_RATIO, false},
        {QG_COLUMN_REASON,              false},
    };
    v->of_models = has_models_alone(v);
    if (v->of_models)
        choose_columns_of_models(v);
    else
        choose_among(v, wanted, sizeof wanted / sizeof wanted[0]);
}

// Columns that no row has a value in, unless they were asked for by name or all are like that.
static void drop_empty(view *v) {
    int kept = 0;
    for (int i = 0; i < v->column_count; i++)
        if (v->named[v->columns[i]] || !is_empty(v, v->columns[i]))
            v->columns[kept++] = v->columns[i];
    v->column_count = kept ? kept : v->column_count;
}

// --------------------------------------------------------------------------------------- printing

static void grid_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    const view *v = context;
    qg_table_row r = {v->table, v->rows[row]};
    print_readable(qg_table_cell(&r, v->columns[column]), v->columns[column], text);
}

// width 0: any.
static void print_grid(const view *v, bool markdown, int width, FILE *stream) {
    static char names[QG_GRID_COLUMNS][64];
    qg_text_grid grid = {.columns = v->column_count,
                         .rows = v->count,
                         .cell = grid_cell,
                         .context = v,
                         .width = width};
    if (grid.columns > QG_GRID_COLUMNS)
        grid.columns = QG_GRID_COLUMNS;
    for (int i = 0; i < grid.columns; i++) {
        qg_column column = v->columns[i];
        grid.title[i] = full_name(column, names[i]);
        grid.right[i] = qg_column_describe(column)->type != QG_COLUMN_TEXT;
        grid.middle[i] = column == QG_COLUMN_TENSOR || column == QG_COLUMN_DATA;
        grid.whole[i] = !grid.middle[i] && column != QG_COLUMN_REASON;
        if (v->of_models) { // the node's name stays
            grid.kept[i] = column == QG_COLUMN_TENSOR;
            grid.whole[i] = false;
            grid.middle[i] = column != QG_COLUMN_REASON;
        }
    }
    if (markdown)
        qg_text_grid_markdown(&grid, stream);
    else
        qg_text_grid_print(&grid, stream);
}

// Tabs, line ends and backslashes of texts are escaped as in C.
static void print_tsv_text(const char *text, FILE *stream) {
    for (; *text; text++)
        switch (*text) {
        case '\t': fputs("\\t", stream); break;
        case '\n': fputs("\\n", stream); break;
        case '\r': fputs("\\r", stream); break;
        case '\\': fputs("\\\\", stream); break;
        default: fputc(*text, stream); break;
        }
}

static void print_tsv(const view *v, FILE *stream) {
    char name[64], text[QG_CELL_SIZE];
    for (int i = 0; i < v->column_count; i++)
        fprintf(stream, "%s%s", i ? "\t" : "", full_name(v->columns[i], name));
    fputc('\n', stream);
    for (int64_t row = 0; row < v->count; row++) {
        qg_table_row r = {v->table, v->rows[row]};
        for (int i = 0; i < v->column_count; i++) {
            qg_cell cell = qg_table_cell(&r, v->columns[i]);
            if (i)
                fputc('\t', stream);
            if (cell.text) {
                print_tsv_text(cell.text, stream);
                continue;
            }
            print_exact(cell, v->columns[i], text);
            fputs(text, stream);
        }
        fputc('\n', stream);
    }
}

static json_t *json_value(qg_cell cell, qg_column column) {
    char text[QG_CELL_SIZE];
    switch (qg_column_describe(column)->type) {
    case QG_COLUMN_TEXT: {
        json_t *string = json_string(cell.text);
        return string ? string : json_string("(not UTF-8)");
    }
    case QG_COLUMN_I64: return json_integer(cell.i64);
    case QG_COLUMN_F64:
        if (isnan(cell.f64))
            return json_null();
        return isinf(cell.f64) ? json_string(cell.f64 > 0 ? "inf" : "-inf") : json_real(cell.f64);
    default:
        if (!is_digest(column) && cell.u64 <= INT64_MAX)
            return json_integer((json_int_t)cell.u64);
        print_exact(cell, column, text);
        return json_string(text);
    }
}

static qg_status print_json(const view *v, FILE *stream) {
    char name[64];
    fputs("[", stream);
    for (int64_t row = 0; row < v->count; row++) {
        qg_table_row r = {v->table, v->rows[row]};
        json_t *object = json_object();
        int failed = !object;
        for (int i = 0; i < v->column_count && !failed; i++)
            failed =
                json_object_set_new(object, full_name(v->columns[i], name),
                                    json_value(qg_table_cell(&r, v->columns[i]), v->columns[i]));
        fputs(row ? ",\n " : "\n ", stream);
        failed = failed || json_dumpf(object, stream, JSON_PRESERVE_ORDER | JSON_COMPACT);
        json_decref(object);
        if (failed)
            return qg_fail(QG_ERROR_MEMORY, "out of memory for JSON");
    }
    fputs("\n]\n", stream);
    return QG_OK;
}

// ------------------------------------------------------------------------------------------- show

static const char *const FORMATS[] = {"text", "tsv", "json", "markdown"};

bool qg_show_knows_format(const char *format) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++)
        if (strcmp(FORMATS[i], format) == 0)
            return true;
    return false;
}

static qg_status print_view(view *v, const char *format, FILE *stream) {
    enum { STANDARD_WIDTH = 100 };
    bool chosen = v->column_count == 0;
    if (chosen)
        choose_columns(v);
    if (strcmp(format, "json") == 0)
        return print_json(v, stream);
    if (strcmp(format, "tsv") == 0) {
        print_tsv(v, stream);
        return QG_OK;
    }
    drop_empty(v);
    print_grid(v, strcmp(format, "markdown") == 0,
               chosen ? qg_terminal_width(stream, STANDARD_WIDTH) : 0, stream);
    return QG_OK;
}

static qg_status select_rows(view *v, const qg_expressions *where, const qg_expressions *exclude) {
    int64_t count = qg_table_rows(v->table);
    v->rows = malloc(((size_t)count + 1) * sizeof *v->rows);
    if (!v->rows)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the rows");
    for (int64_t i = 0; i < count; i++) {
        qg_table_row row = {v->table, i};
        if ((where->count == 0 || qg_expressions_any(where, qg_table_cell, &row)) &&
            !qg_expressions_any(exclude, qg_table_cell, &row))
            v->rows[v->count++] = i;
    }
    return QG_OK;
}

static int fail(const char *option, qg_status status) {
    qg_message_error("%s%s%s", option, *option ? ": " : "", qg_detail());
    return qg_message_exit_code(status);
}

static int show_table(view *v, const qg_show_options *options, const qg_expressions *where,
                      const qg_expressions *exclude, FILE *stream) {
    qg_table *table;
    bool complete, verified;
    qg_status status = qg_results_read(options->path, &table, &complete, &verified);
    if (status == QG_ERROR_DATA) { // no result file, or a damaged one: not the user's line is wrong
        qg_message_error("%s", qg_detail());
        return 5;
    }
    if (status)
        return fail("", status);
    v->table = table;
    if (!verified)
        qg_message_warning("%s: the content does not match its digest", options->path);
    if (!complete)
        qg_message_note("%s is incomplete: cases of its plan have no result", options->path);
    status = select_rows(v, where, exclude);
    if (!status && v->count > 0)
        status = print_view(v, options->format ? options->format : "text", stream);
    int code = status ? fail("", status) : v->count > 0 ? 0 : 4;
    if (code == 4)
        qg_message_error("no row of %s is selected (it has %" PRId64 ")", options->path,
                         qg_table_rows(table));
    free(v->rows);
    qg_table_free(table);
    return code;
}

static qg_status read_expressions(const char *const *texts, int count, qg_expressions *out) {
    qg_status status = QG_OK;
    for (int i = 0; i < count && !status; i++)
        status = qg_near_hint(qg_expressions_add(out, texts[i], qg_table_columns), ALL_COLUMNS);
    return status;
}

int qg_show(const qg_show_options *options, FILE *stream) {
    view *v = calloc(1, sizeof *v);
    qg_expressions where = {0}, exclude = {0};
    qg_status status = v ? QG_OK : qg_fail(QG_ERROR_MEMORY, "out of memory");
    const char *option = "";
    if (!status) {
        option = "--where";
        status = read_expressions(options->where, options->where_count, &where);
    }
    if (!status) {
        option = "--exclude";
        status = read_expressions(options->exclude, options->exclude_count, &exclude);
    }
    if (!status && options->columns) {
        option = "--columns";
        status = read_columns(v, options->columns);
    }
    int code = status ? fail(option, status) : show_table(v, options, &where, &exclude, stream);
    qg_expressions_free(&where);
    qg_expressions_free(&exclude);
    free(v);
    return code;
}
