// The plan on a terminal. See plan_list.h.
#include <plan_list.h>

#include <qg_axis.h>
#include <qg_sweep.h>
#include <text_grid.h>

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

// Element operations per second and thread, and seconds per case beside them: rough.
static const double RATE = 13e6, PER_CASE = 1e-3;

static bool is_own(const qg_case *c, const qg_shard *shard) {
    return qg_shard_of(c->id, shard->shards) == shard->shard - 1;
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
        if (!c->skip && !c->unavailable)
            e.elements += (double)c->m * (double)c->k;
        cost += qg_case_cost(c);
    }
    double running = (double)(e.cases - e.skipped - e.unavailable);
    e.seconds = cost / (RATE * threads_used(threads)) + PER_CASE * running;
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
    QG_COLUMN_CASE_ID,    QG_COLUMN_OP,         QG_COLUMN_FORMAT, QG_COLUMN_LAYOUT,
    QG_COLUMN_SCALE_RULE, QG_COLUMN_ROUNDING,   QG_COLUMN_DATA,   QG_COLUMN_M,
    QG_COLUMN_K,          QG_COLUMN_INPUT_TYPE, QG_COLUMN_SEED,   QG_COLUMN_BACKEND,
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof COLUMNS[0], NOTE = COLUMN_COUNT };

typedef struct listing {
    const qg_plan *plan;
    const int64_t *orders;
} listing;

static void print_cell(const void *context, int64_t row, int column, char text[QG_CELL_SIZE]) {
    const listing *l = context;
    const qg_case *c = qg_plan_case(l->plan, l->orders[row]);
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
    else if (COLUMNS[column] == QG_COLUMN_SEED)
        snprintf(text, QG_CELL_SIZE, "%" PRIu64, cell.u64);
    else if (!cell.text)
        snprintf(text, QG_CELL_SIZE, "%" PRId64, cell.i64);
    else if (COLUMNS[column] == QG_COLUMN_DATA && *c->tensor)
        snprintf(text, QG_CELL_SIZE, "%s#%s", cell.text, c->tensor);
    else
        snprintf(text, QG_CELL_SIZE, "%s", *cell.text ? cell.text : "-");
}

static void print_lines(const qg_plan *plan, const int64_t *orders, int64_t count, FILE *stream) {
    listing l = {plan, orders};
    qg_text_grid grid = {.columns = COLUMN_COUNT, .rows = count, .cell = print_cell, .context = &l};
    for (int column = 0; column < COLUMN_COUNT; column++) {
        qg_column_type type = qg_column_describe(COLUMNS[column])->type;
        grid.title[column] = qg_column_describe(COLUMNS[column])->name;
        grid.right[column] = column > 0 && type != QG_COLUMN_TEXT;
    }
    grid.title[0] = "# case_id";
    for (int64_t i = 0; i < count && grid.columns == COLUMN_COUNT; i++) {
        const qg_case *c = qg_plan_case(plan, orders[i]);
        if (c->skip || c->unavailable) {
            grid.title[NOTE] = "note";
            grid.columns = COLUMN_COUNT + 1;
        }
    }
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
