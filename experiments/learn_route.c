// Learning routes from result files. See learn_route.h.
//
// A timing of a kernel is a row of operation `throughput` on backend cuda whose impl_used ends in
// group_shared or group_hopper. Of several of the same shape and kernel (files, laws, seeds) the
// smallest median counts: what else a machine does only slows it down.
#include <learn_route.h>

#include <message.h>
#include <qg_results.h>
#include <route_file.h>
#include <route_learn.h>

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

// One kernel's time at a shape, of a GPU, recipe and input type; `key.row` is unused but for k and m.
typedef struct timing {
    route_entry key;
    int kernel;
    double median_s, mad_s;
    int64_t samples;
} timing;

typedef struct timings {
    timing *items;
    int64_t count, capacity;
} timings;

// --------------------------------------------------------------------------------------- timings

static const char *text_of(const qg_table *table, int64_t row, qg_column column) {
    return qg_table_text(table, row, column);
}

// QG_GROUP_KERNEL_* of a row's implementation, -1: neither.
static int kernel_of(const char *impl) {
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
        char name[32];
        int length = snprintf(name, sizeof name, "group_%s", qg_group_kernel_name(kernel));
        size_t all = strlen(impl), own = (size_t)length;
        if (all >= own && strcmp(impl + all - own, name) == 0)
            return kernel;
    }
    return -1;
}

static bool is_timing(const qg_table *table, int64_t row) {
    const char *status = text_of(table, row, QG_COLUMN_STATUS);
    return strcmp(text_of(table, row, QG_COLUMN_OP), "throughput") == 0 &&
           strcmp(text_of(table, row, QG_COLUMN_BACKEND), "cuda") == 0 &&
           (strcmp(status, "RAN") == 0 || strcmp(status, "PASSED") == 0) &&
           kernel_of(text_of(table, row, QG_COLUMN_IMPL_USED)) >= 0 &&
           qg_table_f64(table, row, QG_COLUMN_TIMING_MEDIAN_S) > 0 &&
           qg_table_i64(table, row, QG_COLUMN_TIMING_SAMPLES) > 0 &&
           qg_table_i64(table, row, QG_COLUMN_M) > 0 && qg_table_i64(table, row, QG_COLUMN_K) > 0;
}

static qg_status add(timings *list, const timing *t) {
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity ? 2 * list->capacity : 256;
        timing *grown = realloc(list->items, (size_t)capacity * sizeof *grown);
        if (!grown)
            return qg_fail(QG_ERROR_MEMORY, "out of memory for timings");
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *t;
    return QG_OK;
}

static qg_status gpu_of(const char *path, const qg_table *table, int64_t row, const char **gpu) {
    int64_t run = qg_table_i64(table, row, QG_COLUMN_RUN);
    *gpu = run >= 0 && run < qg_table_runs(table) ? qg_table_run_value(table, run, "gpu") : NULL;
    if (*gpu && **gpu && strcmp(*gpu, "none") != 0 && strlen(*gpu) < ROUTE_GPU_SIZE)
        return QG_OK;
    return qg_fail(QG_ERROR_DATA, "%.200s: row %" PRId64 " was timed on no known GPU", path, row);
}

static qg_status take_row(const char *path, const qg_table *table, int64_t row, timings *list) {
    const char *gpu;
    qg_status status = gpu_of(path, table, row, &gpu);
    if (status)
        return status;
    double mad = qg_table_f64(table, row, QG_COLUMN_TIMING_MAD_S);
    timing t = {.kernel = kernel_of(text_of(table, row, QG_COLUMN_IMPL_USED)),
                .median_s = qg_table_f64(table, row, QG_COLUMN_TIMING_MEDIAN_S),
                .mad_s = mad > 0 ? mad : 0,
                .samples = qg_table_i64(table, row, QG_COLUMN_TIMING_SAMPLES)};
    t.key.row.k_from = qg_table_i64(table, row, QG_COLUMN_K);
    t.key.row.m_from = qg_table_i64(table, row, QG_COLUMN_M);
    snprintf(t.key.gpu, sizeof t.key.gpu, "%s", gpu);
    snprintf(t.key.input, sizeof t.key.input, "%s", text_of(table, row, QG_COLUMN_INPUT_TYPE));
    route_recipe(text_of(table, row, QG_COLUMN_FORMAT), text_of(table, row, QG_COLUMN_LAYOUT),
                 text_of(table, row, QG_COLUMN_SCALE_RULE), text_of(table, row, QG_COLUMN_ROUNDING),
                 t.key.recipe);
    return add(list, &t);
}

static qg_status read_results(const char *path, timings *list) {
    qg_table *table;
    bool complete, verified;
    qg_status status = qg_results_read(path, &table, &complete, &verified);
    if (status)
        return status;
    if (!verified)
        qg_message_warning("%s: its content digest does not match", path);
    for (int64_t row = 0; row < qg_table_rows(table) && !status; row++)
        if (is_timing(table, row))
            status = take_row(path, table, row, list);
    qg_table_free(table);
    return status;
}

// ---------------------------------------------------------------------------------------- groups

static int compare_keys(const timing *a, const timing *b) {
    int order = strcmp(a->key.gpu, b->key.gpu);
    if (!order)
        order = strcmp(a->key.recipe, b->key.recipe);
    return order ? order : strcmp(a->key.input, b->key.input);
}

static int compare_shapes(const timing *a, const timing *b) {
    const qg_route_row *x = &a->key.row, *y = &b->key.row;
    int order = (x->k_from > y->k_from) - (x->k_from < y->k_from);
    return order ? order : (x->m_from > y->m_from) - (x->m_from < y->m_from);
}

// By GPU, recipe and input type, then k, m, kernel and time.
static int compare_timings(const void *left, const void *right) {
    const timing *a = left, *b = right;
    int order = compare_keys(a, b);
    if (!order)
        order = compare_shapes(a, b);
    if (!order)
        order = a->kernel - b->kernel;
    return order ? order : (a->median_s > b->median_s) - (a->median_s < b->median_s);
}

// The timings [begin, end) of one shape as a point: false unless both kernels have one.
static bool make_point(const timing *begin, const timing *end, route_point *out) {
    *out = (route_point){.k = begin->key.row.k_from, .m = begin->key.row.m_from};
    for (const timing *t = begin; t < end; t++) {
        if (out->samples[t->kernel] > 0)
            continue; // the smallest median came first
        out->median_s[t->kernel] = t->median_s;
        out->mad_s[t->kernel] = t->mad_s;
        out->samples[t->kernel] = t->samples;
    }
    return out->samples[QG_GROUP_KERNEL_SHARED] > 0 && out->samples[QG_GROUP_KERNEL_HOPPER] > 0;
}

static size_t make_points(const timing *begin, const timing *end, route_point *points) {
    size_t count = 0;
    for (const timing *t = begin, *next; t < end; t = next) {
        for (next = t + 1; next < end && compare_shapes(t, next) == 0;)
            next++;
        count += make_point(t, next, &points[count]);
    }
    return count;
}

// The rows of one GPU, recipe and input type.
static qg_status learn_key(const timing *begin, const timing *end, route_list *out,
                           int64_t *point_count) {
    size_t most = (size_t)(end - begin);
    route_point *points = malloc(most * sizeof *points);
    qg_route_row *rows = malloc(most * sizeof *rows);
    qg_status status = points && rows ? QG_OK : qg_fail(QG_ERROR_MEMORY, "out of memory");
    if (!status) {
        size_t count = make_points(begin, end, points);
        size_t made = route_learn(points, count, rows);
        *point_count += (int64_t)count;
        for (size_t i = 0; i < made && !status; i++) {
            route_entry e = begin->key;
            e.row = rows[i];
            status = route_list_add(out, &e);
        }
    }
    free(points);
    free(rows);
    return status;
}

static qg_status learn_all(const timings *list, route_list *out, int64_t *point_count) {
    const timing *end = list->items + list->count;
    qg_status status = QG_OK;
    for (const timing *t = list->items, *next; t < end && !status; t = next) {
        for (next = t + 1; next < end && compare_keys(t, next) == 0;)
            next++;
        status = learn_key(t, next, out, point_count);
    }
    return status;
}

// ----------------------------------------------------------------------------------------- files

static bool has_key(const route_list *list, const route_entry *e) {
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].gpu, e->gpu) == 0 &&
            strcmp(list->items[i].recipe, e->recipe) == 0 &&
            strcmp(list->items[i].input, e->input) == 0)
            return true;
    return false;
}

// What the file says of other recipes and input types stays; what was learned takes its place.
static qg_status join(const char *path, const route_list *learned, const char *gpu,
                      route_list *out) {
    route_list old = {0};
    qg_status status = route_file_read(path, &old);
    for (int64_t i = 0; i < old.count && !status; i++)
        if (!has_key(learned, &old.items[i]))
            status = route_list_add(out, &old.items[i]);
    for (int64_t i = 0; i < learned->count && !status; i++)
        if (strcmp(learned->items[i].gpu, gpu) == 0)
            status = route_list_add(out, &learned->items[i]);
    route_list_free(&old);
    route_list_sort(out);
    return status;
}

static qg_status write_gpu(const route_list *learned, const char *gpu, const char *out,
                           FILE *stream) {
    char path[PATH_MAX];
    route_list all = {0};
    qg_status status = QG_OK;
    if (out)
        snprintf(path, sizeof path, "%s", out);
    else
        status = route_file_path(gpu, path, sizeof path);
    if (!status)
        status = join(path, learned, gpu, &all);
    if (!status)
        status = route_file_write(path, &all);
    if (!status)
        fprintf(stream, "wrote %s (%" PRId64 " rows of %s)\n", path, all.count, gpu);
    route_list_free(&all);
    return status;
}

// The data folder of an installed program is not everybody's to write.
static qg_status hint_out(qg_status status) {
    char detail[400];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "%s; --out FILE writes elsewhere", detail);
}

// `learned` is sorted by GPU.
static qg_status write_all(const route_list *learned, const char *out, FILE *stream) {
    qg_status status = QG_OK;
    const char *last = learned->items[learned->count - 1].gpu;
    if (out && strcmp(learned->items[0].gpu, last) != 0)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "--out names one file, and there are timings of '%.60s' and '%.60s'",
                       learned->items[0].gpu, last);
    for (int64_t i = 0; i < learned->count && !status; i++)
        if (i == 0 || strcmp(learned->items[i].gpu, learned->items[i - 1].gpu) != 0)
            status = write_gpu(learned, learned->items[i].gpu, out, stream);
    return status == QG_ERROR_IO && !out ? hint_out(status) : status;
}

static qg_status learn(const timings *list, const char *out, FILE *stream, int64_t *points) {
    route_list learned = {0};
    qg_status status = learn_all(list, &learned, points);
    if (!status && learned.count > 0)
        status = write_all(&learned, out, stream);
    route_list_free(&learned);
    return status;
}

static int report_nothing(const timings *list) {
    qg_message_error("nothing to learn from: no shape was timed with both kernels (%" PRId64
                     " timings of group kernels on backend cuda; sweep once with --group-kernel "
                     "shared and once with hopper)",
                     list->count);
    return 4;
}

int learn_route(const char *const *results, int count, const char *out, FILE *stream) {
    timings list = {0};
    int64_t points = 0;
    qg_status status = QG_OK;
    for (int i = 0; i < count && !status; i++)
        status = read_results(results[i], &list);
    if (!status && list.count > 0)
        qsort(list.items, (size_t)list.count, sizeof *list.items, compare_timings);
    if (!status)
        status = learn(&list, out, stream, &points);
    if (status)
        qg_message_error("--learn-route: %s", qg_detail());
    int code = status ? qg_message_exit_code(status) : points == 0 ? report_nothing(&list) : 0;
    free(list.items);
    return code;
}
