// The plan on a terminal. See plan_list.h.
#include <plan_list.h>

#include <kept_table.h>
#include <qg_axis.h>
#include <qg_cpu.h>
#include <qg_sweep.h>
#include <text_grid.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Units of qg_case_cost per second and thread: rough.
static const double RATE = 20e6;

static bool is_own(const qg_case *c, const qg_shard *shard) {
    return qg_shard_of(c, shard->shards) == shard->shard - 1;
}

static int threads_used(int threads) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return threads > 0 ? threads : online > 0 ? (int)online : 1;
}

qg_plan_estimate qg_plan_estimate_of(const qg_plan *plan, const qg_shard *shard, int threads) {
    qg_plan_estimate e = {0};
    double cost = 0;
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (!is_own(c, shard))
            continue;
        e.cases++;
        e.skipped += c->skip != NULL;
        e.unavailable += !c->skip && c->unavailable;
        if (!c->skip && !c->unavailable && c->op->kind != QG_OP_GRID)
            e.elements += (double)c->m * (double)c->k;
        cost += qg_case_cost(c);
    }
    e.seconds = cost / (RATE * threads_used(threads));
    return e;
}

static void duration(double seconds, char *text, size_t size) {
    if (seconds < 1)
        snprintf(text, size, "less than 1 s");
    else if (seconds < 100)
        snprintf(text, size, "about %.0f s", seconds);
    else if (seconds < 6000)
        snprintf(text, size, "about %.0f min", seconds / 60);
    else
        snprintf(text, size, "about %.0f h", seconds / 3600);
}

void qg_plan_estimate_text(const qg_plan_estimate *e, int threads, char *text, size_t size) {
    char time[32], elements[48], skipped[64] = "";
    int used = threads_used(threads);
    duration(e->seconds, time, sizeof time);
    if (e->elements < 1e6)
        snprintf(elements, sizeof elements, "%.0f", e->elements);
    else if (e->elements < 1e9)
        snprintf(elements, sizeof elements, "%.3g million", e->elements / 1e6);
    else
        snprintf(elements, sizeof elements, "%.3g billion", e->elements / 1e9);
    if (e->skipped + e->unavailable > 0)
        snprintf(skipped, sizeof skipped, " (%" PRId64 " will not run)",
                 e->skipped + e->unavailable);
    snprintf(text, size, "%" PRId64 " case%s%s, %s elements, %s on %d thread%s", e->cases,
             e->cases == 1 ? "" : "s", skipped, elements, time, used, used == 1 ? "" : "s");
}

// ------------------------------------------------------------------------------------------ lines

static const qg_column COLUMNS[] = {
    QG_COLUMN_CASE_ID,    QG_COLUMN_OP,       QG_COLUMN_FORMAT,     QG_COLUMN_LAYOUT,
    QG_COLUMN_SCALE_RULE, QG_COLUMN_FORMAT_B, QG_COLUMN_LAYOUT_B,   QG_COLUMN_SCALE_RULE_B,
    QG_COLUMN_ROUNDING,   QG_COLUMN_UNIT,     QG_COLUMN_DATA,       QG_COLUMN_M,
    QG_COLUMN_N,          QG_COLUMN_K,        QG_COLUMN_INPUT_TYPE, QG_COLUMN_OUT_TYPE,
    QG_COLUMN_HAS_BIAS,   QG_COLUMN_SM_COUNT, QG_COLUMN_SEED,       QG_COLUMN_BACKEND,
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof COLUMNS[0], NOTE = COLUMN_COUNT };

typedef struct listing {
    const qg_plan *plan;
    const int64_t *orders;
    int columns[COLUMN_COUNT + 1]; // of the grid: indices of COLUMNS, or NOTE
} listing;

static const char *file_of(const char *data) {
    static const char prefix[] = "tensors:";
    return strncmp(data, prefix, strlen(prefix)) == 0 ? data + strlen(prefix) : data;
}

// What repeats the columns of a, or is the usual.
static bool is_plain(const qg_case *c, qg_column column) {
    bool as_a = strcmp(c->format_b, c->format) == 0;
    switch (column) {
    case QG_COLUMN_FORMAT_B: return as_a || !*c->format_b;
    case QG_COLUMN_LAYOUT_B: return as_a || strcmp(c->layout_b, c->layout) == 0;
    case QG_COLUMN_SCALE_RULE_B: return as_a || strcmp(c->scale_rule_b, c->scale_rule) == 0;
    case QG_COLUMN_OUT_TYPE: return c->out_type == QG_FORMAT_FP32;
    case QG_COLUMN_HAS_BIAS: return !c->bias;
    case QG_COLUMN_SEED: return c->op->kind == QG_OP_RECORDING || c->op->kind == QG_OP_GRID;
    case QG_COLUMN_SM_COUNT:
    case QG_COLUMN_M:
    case QG_COLUMN_N: return qg_axis_cell(c, column).i64 == 0;
    default: return false;
    }
}

static void case_cell(const qg_case *c, int column, char text[QG_CELL_SIZE]) {
    if (column == NOTE) {
        snprintf(text, QG_CELL_SIZE, "%s%s",
                 c->skip          ? "SKIPPED: "
                 : c->unavailable ? "UNAVAILABLE: "
                                  : "",
                 c->skip          ? c->skip
                 : c->unavailable ? c->unavailable
                                  : "");
        return;
    }
    qg_cell cell = qg_axis_cell(c, COLUMNS[column]);
    if (COLUMNS[column] == QG_COLUMN_CASE_ID)
        snprintf(text, QG_CELL_SIZE, "%016" PRIx64, cell.u64);
    else if (is_plain(c, COLUMNS[column]))
        snprintf(text, QG_CELL_SIZE, "-");
    else if (COLUMNS[column] == QG_COLUMN_SEED || COLUMNS[column] == QG_COLUMN_HAS_BIAS)
        snprintf(text, QG_CELL_SIZE, "%" PRIu64, cell.u64);
    else if (!cell.text)
        snprintf(text, QG_CELL_SIZE, "%" PRId64, cell.i64);
    else if (COLUMNS[column] == QG_COLUMN_DATA && *c->tensor)
        snprintf(text, QG_CELL_SIZE, "%s#%s", file_of(cell.text), c->tensor);
    else
        snprintf(text, QG_CELL_SIZE, "%s", *cell.text ? cell.text : "-");
}

static void print_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    const listing *l = context;
    case_cell(qg_plan_case(l->plan, l->orders[row]), l->columns[column], text);
}

// What grids lack, beside cases that have it.
static bool is_lacking(const qg_case *c, int column) {
    if (column == NOTE || c->op->kind != QG_OP_GRID)
        return false;
    return COLUMNS[column] == QG_COLUMN_ROUNDING || COLUMNS[column] == QG_COLUMN_SEED;
}

// Over the whole plan, so that shards have the same columns. first: of the first case that counts.
static bool varies(const qg_plan *plan, int column, char first[QG_CELL_SIZE]) {
    char text[QG_CELL_SIZE];
    bool any = false;
    snprintf(first, QG_CELL_SIZE, "-");
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        if (is_lacking(c, column))
            continue;
        case_cell(c, column, any ? text : first);
        if (any && strcmp(first, text) != 0)
            return true;
        any = true;
    }
    return false;
}

static bool has_notes(const qg_plan *plan) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (qg_plan_case(plan, i)->skip || qg_plan_case(plan, i)->unavailable)
            return true;
    return false;
}

static const char *title_of(int column) {
    return column == NOTE ? "note" : qg_column_describe(COLUMNS[column])->name;
}

// Chooses the columns that differ; the others are one line.
static void print_shared(listing *l, qg_text_grid *grid, FILE *stream) {
    int shared = 0;
    for (int column = 0; column <= NOTE; column++) {
        char text[QG_CELL_SIZE];
        bool shown =
            column == NOTE ? has_notes(l->plan) : varies(l->plan, column, text) || column == 0;
        if (shown) {
            grid->title[grid->columns] = column ? title_of(column) : "# case_id";
            grid->right[grid->columns] =
                column > 0 && column != NOTE &&
                qg_column_describe(COLUMNS[column])->type != QG_COLUMN_TEXT;
            grid->middle[grid->columns] =
                column != NOTE && COLUMNS[column] == QG_COLUMN_DATA; // ends in the tensor's name
            grid->whole[grid->columns] = column != NOTE && COLUMNS[column] != QG_COLUMN_DATA;
            l->columns[grid->columns++] = column;
        } else if (column != NOTE) {
            if (strcmp(text, "-") == 0)
                continue;
            fprintf(stream, "%s%s %s", shared++ ? ", " : "# all: ", title_of(column), text);
        }
    }
    if (shared)
        fputc('\n', stream);
}

static bool has_products(const qg_plan *plan) {
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (qg_plan_case(plan, i)->matrix_unit)
            return true;
    return false;
}

static void print_lines(const qg_plan *plan, const int64_t *orders, int64_t count, FILE *stream) {
    enum { STANDARD_WIDTH = 100, PRODUCT_WIDTH = 132 };
    listing l = {.plan = plan, .orders = orders};
    // What another program or a file takes is whole: a cut id is none.
    int standard = !isatty(fileno(stream)) ? 0
                   : has_products(plan)    ? PRODUCT_WIDTH
                                           : STANDARD_WIDTH;
    qg_text_grid grid = {.rows = count,
                         .cell = print_cell,
                         .context = &l,
                         .width = qg_terminal_width(stream, standard)};
    print_shared(&l, &grid, stream);
    qg_text_grid_print(&grid, stream);
}

qg_status qg_plan_list(const qg_plan *plan, const qg_shard *shard, int threads, FILE *stream) {
    char text[160];
    int64_t count = 0;
    int64_t *orders = malloc(((size_t)qg_plan_count(plan) + 1) * sizeof *orders);
    if (!orders)
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the list");
    for (int64_t i = 0; i < qg_plan_count(plan); i++)
        if (is_own(qg_plan_case(plan, i), shard))
            orders[count++] = i;
    print_lines(plan, orders, count, stream);
    free(orders);
    qg_plan_estimate estimate = qg_plan_estimate_of(plan, shard, threads);
    qg_plan_estimate_text(&estimate, threads, text, sizeof text);
    fprintf(stream, "# %s\n", text);
    return QG_OK;
}

// -------------------------------------------------------------------------------------- verbosely

// What tells two lines apart.
typedef struct run_key {
    const qg_recipe *recipe;
    qg_format input;
} run_key;

static void print_run(const qg_case *c, FILE *stream) {
    char how[160];
    qg_cell input = qg_axis_cell(c, QG_COLUMN_INPUT_TYPE);
    qg_cpu_plan_text(c->recipe, c->input_type, how, sizeof how);
    fprintf(stream, "cpu: %s %s of %s by %s\n", c->format, c->layout, input.text, how);
}

void qg_plan_list_runs(const qg_plan *plan, FILE *stream) {
    qg_kept_table seen = {0};
    for (int64_t i = 0; i < qg_plan_count(plan); i++) {
        const qg_case *c = qg_plan_case(plan, i);
        run_key key;
        int64_t before = seen.count;
        int32_t index;
        if (c->skip || strcmp(c->backend, "cpu") != 0)
            continue;
        memset(&key, 0, sizeof key); // padding is part of the key
        key.recipe = c->recipe;
        key.input = c->input_type;
        if (qg_kept_add(&seen, &key, sizeof key, sizeof key, &index) == QG_OK &&
            seen.count > before)
            print_run(c, stream);
    }
    qg_kept_free(&seen);
}
