// Figures of those who compute: whether their bits agree (F15), and how much memory per second they
// move (F17).
#include <figure_list.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------------- F15

enum { MOST_NAMES = 40, NAME = 64 };

// What was compared under one name: a unit against its recordings, a recipe between backends.
typedef struct agreement {
    char name[NAME];
    bool is_unit;
    double compared, differing;
} agreement;

typedef struct agreements {
    agreement items[MOST_NAMES];
    int count;
} agreements;

static void count_one(agreements *all, const char *name, bool is_unit, double compared,
                      double differing) {
    int at = 0;
    while (at < all->count &&
           (all->items[at].is_unit != is_unit || strcmp(all->items[at].name, name) != 0))
        at++;
    if (at == MOST_NAMES)
        return;
    if (at == all->count) {
        all->items[all->count++] = (agreement){.is_unit = is_unit};
        snprintf(all->items[at].name, NAME, "%s", name);
    }
    all->items[at].compared += compared;
    all->items[at].differing += differing;
}

// Lines of a recording that the emulator computes otherwise.
static void count_recordings(const qg_figure_rows *rows, agreements *all) {
    for (int64_t i = 0; i < rows->count; i++) {
        const qg_figure_row *row = &rows->items[i];
        double differing = qg_figure_number(row, QG_COLUMN_COUNT_CODE_MISMATCHES);
        const char *unit = qg_figure_text(row, QG_COLUMN_UNIT);
        if (strcmp(qg_figure_text(row, QG_COLUMN_OP), "vectors") == 0 && differing >= 0)
            count_one(all, unit[0] ? unit : qg_figure_text(row, QG_COLUMN_FORMAT), true,
                      qg_figure_number(row, QG_COLUMN_COUNT_N), differing);
    }
}

// Everything that names a tensor's quantization but the backend.
static int compare_cases(const qg_figure_row *a, const qg_figure_row *b) {
    static const qg_column TEXTS[] = {
        QG_COLUMN_FORMAT,     QG_COLUMN_LAYOUT, QG_COLUMN_SCALE_RULE, QG_COLUMN_ROUNDING,
        QG_COLUMN_INPUT_TYPE, QG_COLUMN_DATA,   QG_COLUMN_TENSOR};
    static const qg_column NUMBERS[] = {QG_COLUMN_M, QG_COLUMN_K, QG_COLUMN_SEED,
                                        QG_COLUMN_INPUT_DIGEST};
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        int order = strcmp(qg_figure_text(a, TEXTS[i]), qg_figure_text(b, TEXTS[i]));
        if (order)
            return order;
    }
    for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        double x = qg_figure_number(a, NUMBERS[i]), y = qg_figure_number(b, NUMBERS[i]);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static bool is_emulator(const qg_figure_row *row) {
    return strcmp(qg_figure_text(row, QG_COLUMN_BACKEND), "emulator") == 0;
}

// The emulator's row of a case comes first.
static int by_case(const void *left, const void *right) {
    const qg_figure_row *a = left, *b = right;
    int order = compare_cases(a, b);
    return order ? order : (int)is_emulator(b) - (int)is_emulator(a);
}

static uint64_t output_of(const qg_figure_row *row) {
    return qg_table_u64(row->table, row->row, QG_COLUMN_OUTPUT_DIGEST);
}

// Elements of a tensor whose bits differ from the emulator's: none if the digests agree.
static double differing_elements(const qg_figure_row *emulator, const qg_figure_row *row) {
    double counted = qg_figure_number(row, QG_COLUMN_COUNT_CODE_MISMATCHES);
    if (output_of(emulator) == output_of(row))
        return 0;
    return counted > 0 ? counted : 1; // a scale, or nobody counted
}

// Tensors that a backend quantizes to other bytes than the emulator.
static qg_status count_backends(const qg_figure_rows *rows, agreements *all) {
    qg_figure_row *sorted = malloc((size_t)(rows->count + 1) * sizeof *sorted);
    int64_t count = 0;
    if (!sorted)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the agreement of backends");
    for (int64_t i = 0; i < rows->count; i++)
        if (strcmp(qg_figure_text(&rows->items[i], QG_COLUMN_OP), "error") == 0)
            sorted[count++] = rows->items[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_case);
    const qg_figure_row *emulator = NULL;
    for (int64_t i = 0; i < count; i++) {
        char name[NAME], label[NAME - 16];
        if (is_emulator(&sorted[i])) {
            emulator = &sorted[i];
            continue;
        }
        if (!emulator || compare_cases(emulator, &sorted[i]) != 0)
            continue;
        qg_figure_label(qg_figure_text(&sorted[i], QG_COLUMN_FORMAT), label, sizeof label);
        const char *backend = qg_figure_text(&sorted[i], QG_COLUMN_BACKEND);
        bool is_cpu = strcmp(backend, "cpu") == 0;
        snprintf(name, sizeof name, "%s%s%.8s", label, is_cpu ? "" : ", ", is_cpu ? "" : backend);
        count_one(all, name, false, qg_figure_number(&sorted[i], QG_COLUMN_COUNT_N),
                  differing_elements(emulator, &sorted[i]));
    }
    free(sorted);
    return QG_OK;
}

static qg_status add_agreement(qg_plot *plot, const agreement *a, int place, int64_t units,
                               int64_t recipes, int64_t least) {
    qg_plot_point p = {a->differing / a->compared, place, NAN, NAN, NAN};
    qg_plot_point smallest = {1 / a->compared, place, NAN, NAN, NAN};
    qg_status status = qg_plot_point_add(plot, a->is_unit ? units : recipes, p);
    return status == QG_OK ? qg_plot_point_add(plot, least, smallest) : status;
}

static qg_status draw_agreements(qg_plot *plot, const agreements *all) {
    static char text[MOST_NAMES][NAME + 16];
    static const char *names[MOST_NAMES];
    int64_t units, recipes, least;
    qg_status status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, "recorded lines", "", "", &units);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, "elements", "", "", &recipes);
    if (status == QG_OK)
        status = qg_plot_add(plot, QG_PLOT_MEASURED, 0, "1 of n", "", "", &least);
    double most = 1;
    for (int i = 0; i < all->count && status == QG_OK; i++) {
        const agreement *a = &all->items[i];
        int place = all->count - 1 - i;
        snprintf(text[place], sizeof text[place], "%s (%.0f)", a->name, a->compared);
        names[place] = text[place];
        most = fmax(most, a->compared);
        status = add_agreement(plot, a, place, units, recipes, least);
    }
    double floor = pow(10, -ceil(log10(most)) - 0.7);
    plot->x = (qg_plot_axis){"share that differs", QG_PLOT_LOG10, floor / 2, 1.5, floor, NULL, 0};
    plot->y = (qg_plot_axis){"", QG_PLOT_LINEAR, NAN, NAN, NAN, names, all->count};
    plot->key = QG_PLOT_KEY_BELOW;
    return status;
}

qg_status qg_build_agreement(const qg_figure_rows *rows, qg_plot *plot) {
    agreements all = {.count = 0};
    count_recordings(rows, &all);
    qg_status status = count_backends(rows, &all);
    if (status == QG_OK && all.count == 0)
        status = qg_fail(QG_ERROR_DATA, "no recording was run, and no case by two backends");
    if (status == QG_OK)
        status = draw_agreements(plot, &all);
    double compared = 0, differing = 0;
    for (int i = 0; i < all.count; i++) {
        compared += all.items[i].compared;
        differing += all.items[i].differing;
    }
    snprintf(plot->note, sizeof plot->note, "%.0f of %.0f comparisons differ.", differing,
             compared);
    return status;
}

// ---------------------------------------------------------------------------------------------- F17

enum { MOST_SERIES = 8, MOST_CLASSES = 64 };

// One layout and rule per format and backend: the first.
static bool same_curve(const qg_figure_row *a, const qg_figure_row *b) {
    static const qg_column COLUMNS[] = {QG_COLUMN_FORMAT, QG_COLUMN_BACKEND};
    for (size_t i = 0; i < sizeof COLUMNS / sizeof COLUMNS[0]; i++)
        if (strcmp(qg_figure_text(a, COLUMNS[i]), qg_figure_text(b, COLUMNS[i])) != 0)
            return false;
    return true;
}

static bool same_kind(const qg_figure_row *a, const qg_figure_row *b) {
    static const qg_column COLUMNS[] = {QG_COLUMN_LAYOUT, QG_COLUMN_SCALE_RULE, QG_COLUMN_DATA,
                                        QG_COLUMN_INPUT_TYPE, QG_COLUMN_ROUNDING};
    for (size_t i = 0; i < sizeof COLUMNS / sizeof COLUMNS[0]; i++)
        if (strcmp(qg_figure_text(a, COLUMNS[i]), qg_figure_text(b, COLUMNS[i])) != 0)
            return false;
    return same_curve(a, b);
}

static double size_of(const qg_figure_row *row) {
    return qg_figure_number(row, QG_COLUMN_M) * qg_figure_number(row, QG_COLUMN_K);
}

static int by_size(const void *left, const void *right) {
    const qg_plot_point *a = left, *b = right;
    return (a->x > b->x) - (a->x < b->x);
}

static void sort_points(qg_plot *plot, int64_t series) {
    qg_plot_series *s = &plot->series[series];
    if (s->count > 1)
        qsort(s->points, (size_t)s->count, sizeof *s->points, by_size);
}

static qg_status add_rates(qg_plot *plot, const qg_figure_rows *rows, const qg_figure_row *first) {
    char label[QG_PLOT_LABEL], format[64];
    int64_t series;
    qg_figure_label(qg_figure_text(first, QG_COLUMN_FORMAT), format, sizeof format);
    snprintf(label, sizeof label, "%s, %s", format, qg_figure_text(first, QG_COLUMN_BACKEND));
    qg_status status = qg_plot_add(plot, QG_PLOT_JOINED, 0, label,
                                   qg_figure_text(first, QG_COLUMN_FORMAT), "", &series);
    for (int64_t i = 0; i < rows->count && status == QG_OK; i++) {
        const qg_figure_row *row = &rows->items[i];
        double gigabytes = qg_figure_number(row, QG_COLUMN_TIMING_BYTES) / 1e9;
        qg_plot_point p = {size_of(row), qg_figure_number(row, QG_COLUMN_TIMING_GB_PER_S),
                           gigabytes / qg_figure_number(row, QG_COLUMN_TIMING_MAX_S),
                           gigabytes / qg_figure_number(row, QG_COLUMN_TIMING_MIN_S), NAN};
        if (same_kind(row, first) && p.y > 0)
            status = qg_plot_point_add(plot, series, p);
    }
    if (status == QG_OK)
        sort_points(plot, series);
    return status;
}

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

// memcpy's rate at a size: the median of what the rows of that size were held against.
static double copy_rate(const qg_figure_rows *rows, double size, double *room) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        double rate = qg_figure_number(&rows->items[i], QG_COLUMN_TIMING_GB_PER_S) /
                      qg_figure_number(&rows->items[i], QG_COLUMN_TIMING_MEMCPY_RATIO);
        if (size_of(&rows->items[i]) == size && isfinite(rate))
            room[count++] = rate;
    }
    if (count == 0)
        return NAN;
    qsort(room, (size_t)count, sizeof *room, by_value);
    return (room[count / 2] + room[(count - 1) / 2]) / 2;
}

static qg_status add_copy(qg_plot *plot, const qg_figure_rows *rows) {
    int64_t series;
    double done[MOST_CLASSES];
    int classes = 0;
    double *room = malloc((size_t)(rows->count + 1) * sizeof *room);
    if (!room)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the rates of memcpy");
    qg_status status = qg_plot_add(plot, QG_PLOT_BOUND, 0, "memcpy", "", "", &series);
    for (int64_t i = 0; i < rows->count && status == QG_OK; i++) {
        double size = size_of(&rows->items[i]);
        int at = 0;
        while (at < classes && done[at] != size)
            at++;
        if (at < classes || classes == MOST_CLASSES)
            continue;
        done[classes++] = size;
        double rate = copy_rate(rows, size, room);
        if (isfinite(rate))
            status = qg_plot_point_add(plot, series, (qg_plot_point){size, rate, NAN, NAN, NAN});
    }
    free(room);
    if (status == QG_OK)
        sort_points(plot, series);
    return status;
}

static double least_rate(const qg_figure_rows *rows) {
    double least = INFINITY;
    for (int64_t i = 0; i < rows->count; i++) {
        double rate = qg_figure_number(&rows->items[i], QG_COLUMN_TIMING_GB_PER_S);
        least = rate > 0 && rate < least ? rate : least;
    }
    return isfinite(least) ? least : 1;
}

qg_status qg_build_throughput(const qg_figure_rows *rows, qg_plot *plot) {
    const qg_figure_row *first[MOST_SERIES];
    int count = 0;
    plot->x = (qg_plot_axis){"elements, m k", QG_PLOT_LOG2, NAN, NAN, NAN, NULL, 0};
    plot->y = (qg_plot_axis){"GB/s", QG_PLOT_LOG10, NAN, NAN, NAN, NULL, 0};
    plot->y.from = least_rate(rows) / 3; // a sample that was interrupted may be far below
    plot->key = QG_PLOT_KEY_BELOW;
    qg_status status = add_copy(plot, rows);
    for (int64_t i = 0; i < rows->count && status == QG_OK; i++) {
        int at = 0;
        while (at < count && !same_curve(first[at], &rows->items[i]))
            at++;
        if (at < count || count == MOST_SERIES)
            continue;
        first[count++] = &rows->items[i];
        status = add_rates(plot, rows, &rows->items[i]);
    }
    qg_figure_note(rows, plot->note, sizeof plot->note);
    return status;
}
