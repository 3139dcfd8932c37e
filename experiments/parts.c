// Parts of a result file. See qg_parts.h.
//
// A table once written or read stays in memory: merging needs no second reading of own parts.
#include <qg_parts.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct part {
    char name[NAME_MAX + 1]; // in the folder; "" for FILE itself
    int64_t number;          // 0 for FILE and foreign names: older than all
    qg_table *table;
} part;

struct qg_parts {
    qg_parts_options options;
    char folder[PATH_MAX];
    uint64_t *sorted_ids; // for --reuse: (2 * cases) id, order; sorted by id
    part *parts;
    int64_t count, capacity;
    qg_table *described; // no rows: plan, run and command line, as every pending table has them
    qg_table *pending;   // NULL: none yet
    int64_t number;      // of the next part
    uint8_t *state;      // (cases) of ROW_*
    bool has_file;       // FILE is among the parts
    bool has_news;       // FILE lacks something that is known
};

enum { ROW_NONE, ROW_TO_RETRY, ROW_FINAL };

// ---- Names --------------------------------------------------------------------------------------

static void path_in(const qg_parts *parts, const char *name, char path[PATH_MAX]) {
    snprintf(path, PATH_MAX, "%.*s/%.*s", PATH_MAX - NAME_MAX - 2, parts->folder, NAME_MAX, name);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length > tail && strcmp(text + length - tail, end) == 0;
}

// Reads "<shard>-of-<shards>-<number>.h5" and what may follow; false for other names.
static bool read_name(const char *name, int *shard, int *shards, int64_t *number) {
    return sscanf(name, "%d-of-%d-%" SCNd64, shard, shards, number) == 3 && *number >= 0 &&
           *number < INT64_MAX;
}

static bool is_of_shard(const qg_parts *parts, const char *name) {
    int shard, shards;
    int64_t number;
    return read_name(name, &shard, &shards, &number) && shard == parts->options.shard &&
           shards == parts->options.shards;
}

typedef struct name_list {
    char (*names)[NAME_MAX + 1];
    int64_t count, capacity;
} name_list;

static qg_status no_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "no memory for the parts of the result file");
}

// Doubles an array when it is full.
static bool grow(void **items, int64_t count, int64_t *capacity, size_t size) {
    if (count < *capacity)
        return true;
    int64_t larger = *capacity ? 2 * *capacity : 16;
    void *moved = realloc(*items, (size_t)larger * size);
    if (!moved)
        return false;
    *items = moved;
    *capacity = larger;
    return true;
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

// The files of the folder, sorted by name. An absent folder has none.
static qg_status list_folder(const qg_parts *parts, name_list *list) {
    *list = (name_list){0};
    DIR *folder = opendir(parts->folder);
    if (!folder)
        return errno == ENOENT ? QG_OK
                               : qg_fail(QG_ERROR_IO, "cannot read the folder %s: %s",
                                         parts->folder, strerror(errno));
    qg_status status = QG_OK;
    struct dirent *entry;
    while (status == QG_OK && (entry = readdir(folder))) {
        void *names = list->names;
        if (!grow(&names, list->count, &list->capacity, sizeof list->names[0]))
            status = no_memory();
        list->names = names;
        if (status == QG_OK)
            snprintf(list->names[list->count++], sizeof list->names[0], "%s", entry->d_name);
    }
    closedir(folder);
    if (list->count > 0)
        qsort(list->names, (size_t)list->count, sizeof list->names[0], compare_names);
    return status;
}

// ---- Reading ------------------------------------------------------------------------------------

static int compare_ids(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// The position in the plan of a case id, -1 if it has none.
static int64_t order_of_id(qg_parts *parts, uint64_t id) {
    size_t cases = (size_t)parts->options.cases;
    if (!parts->sorted_ids) {
        parts->sorted_ids = malloc((2 * cases + 1) * sizeof(uint64_t));
        if (!parts->sorted_ids)
            return -1;
        for (size_t i = 0; i < cases; i++) {
            parts->sorted_ids[2 * i] = parts->options.case_ids[i];
            parts->sorted_ids[2 * i + 1] = i;
        }
        qsort(parts->sorted_ids, cases, 2 * sizeof(uint64_t), compare_ids);
    }
    const uint64_t *found =
        bsearch(&id, parts->sorted_ids, cases, 2 * sizeof(uint64_t), compare_ids);
    return found ? (int64_t)found[1] : -1;
}

static bool same_plan(const qg_parts *parts, const qg_table *table) {
    return strcmp(qg_table_plan(table), parts->options.plan_text) == 0;
}

// Every run of the table must be of this build.
static bool same_build(const qg_parts *parts, const qg_table *table) {
    for (int64_t run = 0; run < qg_table_runs(table); run++) {
        const char *build = qg_table_run_value(table, run, QG_PARTS_BUILD_KEY);
        if (!build || strcmp(build, parts->options.build) != 0)
            return false;
    }
    return true;
}

static qg_status check_belongs(const qg_parts *parts, const qg_table *table, const char *path) {
    const char *advice = "--overwrite discards it, --reuse keeps the cases that both have";
    if (!same_plan(parts, table))
        return qg_fail(QG_ERROR_ARGUMENT, "%s holds results of another plan: %s", path, advice);
    if (!same_build(parts, table))
        return qg_fail(QG_ERROR_ARGUMENT, "%s was measured by another build: %s", path, advice);
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        int64_t order = qg_table_order(table, row);
        if (order < 0 || order >= parts->options.cases ||
            qg_table_u64(table, row, QG_COLUMN_CASE_ID) != parts->options.case_ids[order])
            return qg_fail(QG_ERROR_DATA, "%s: row %" PRId64 " is no case of its plan", path, row);
    }
    return QG_OK;
}

// Takes over results of another plan or build: places their rows in this plan, drops the others.
static qg_status adopt(qg_parts *parts, qg_table *table) {
    int64_t rows = qg_table_rows(table);
    bool *keep = malloc((size_t)rows + 1);
    if (!keep)
        return no_memory();
    for (int64_t row = 0; row < rows; row++) {
        int64_t order = order_of_id(parts, qg_table_u64(table, row, QG_COLUMN_CASE_ID));
        keep[row] = order >= 0;
        qg_table_set_order(table, row, order);
    }
    qg_table_keep_rows(table, keep);
    free(keep);
    return qg_table_set_plan(table, parts->options.plan_text);
}

static void note_rows(qg_parts *parts, const qg_table *table) {
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        uint8_t *state = &parts->state[qg_table_order(table, row)];
        qg_case_status status = qg_case_status_find(qg_table_text(table, row, QG_COLUMN_STATUS));
        bool retry = status == QG_CASE_CRASHED || status == QG_CASE_TIMEOUT ||
                     status == QG_CASE_UNAVAILABLE || status == QG_CASE_STATUS_COUNT;
        uint8_t found = retry ? ROW_TO_RETRY : ROW_FINAL;
        if (*state < found) {
            *state = found;
            parts->has_news = true;
        }
    }
}

// Keeps a table; takes it over also on failure.
static qg_status add_part(qg_parts *parts, const char *name, qg_table *table) {
    void *items = parts->parts;
    bool fits = grow(&items, parts->count, &parts->capacity, sizeof *parts->parts);
    parts->parts = items;
    if (!fits) {
        qg_table_free(table);
        return no_memory();
    }
    part *added = &parts->parts[parts->count++];
    int shard, shards;
    if (!read_name(name, &shard, &shards, &added->number))
        added->number = 0;
    snprintf(added->name, sizeof added->name, "%s", name);
    added->table = table;
    if (added->number >= parts->number)
        parts->number = added->number + 1;
    note_rows(parts, table);
    return QG_OK;
}

static qg_status load(qg_parts *parts, const char *path, const char *name, bool *current) {
    qg_table *table;
    bool complete, verified;
    qg_status status = qg_results_read(path, &table, &complete, &verified);
    if (status != QG_OK)
        return status;
    if (!verified)
        status = qg_fail(QG_ERROR_DATA, "%s is damaged: its content digest does not match; delete it, or take "
                         "--overwrite",
                         path);
    *current = complete && same_plan(parts, table);
    if (status == QG_OK)
        status = parts->options.existing == QG_EXISTING_REUSE ? adopt(parts, table)
                                                              : check_belongs(parts, table, path);
    if (status != QG_OK) {
        qg_table_free(table);
        return status;
    }
    return add_part(parts, name, table);
}

static bool is_loaded(const qg_parts *parts, const char *name) {
    for (int64_t i = 0; i < parts->count; i++)
        if (strcmp(parts->parts[i].name, name) == 0)
            return true;
    return false;
}

static qg_status load_folder(qg_parts *parts) {
    name_list list;
    qg_status status = list_folder(parts, &list);
    for (int64_t i = 0; status == QG_OK && i < list.count; i++) {
        if (!ends_with(list.names[i], ".h5") || is_loaded(parts, list.names[i]))
            continue;
        char path[PATH_MAX];
        path_in(parts, list.names[i], path);
        bool current;
        status = load(parts, path, list.names[i], &current);
    }
    free(list.names);
    return status;
}

static qg_status load_file(qg_parts *parts) {
    struct stat file;
    if (stat(parts->options.out, &file) != 0)
        return errno == ENOENT ? QG_OK
                               : qg_fail(QG_ERROR_IO, "cannot open %s: %s", parts->options.out,
                                         strerror(errno));
    bool current = false;
    qg_status status = load(parts, parts->options.out, "", &current);
    parts->has_file = true;
    parts->has_news = !current;
    return status;
}

// ---- Opening ------------------------------------------------------------------------------------

static void remove_stale(const qg_parts *parts) {
    name_list list;
    if (list_folder(parts, &list) == QG_OK)
        for (int64_t i = 0; i < list.count; i++)
            if (ends_with(list.names[i], ".tmp") && is_of_shard(parts, list.names[i])) {
                char path[PATH_MAX];
                path_in(parts, list.names[i], path);
                unlink(path);
            }
    free(list.names);
    char path[PATH_MAX]; // no merge is under way: the caller holds a lock that excludes it
    snprintf(path, sizeof path, "%s.tmp", parts->options.out);
    unlink(path);
}

// Whether a part may stay when a shard starts afresh: it is another shard's of the same sweep.
static bool is_neighbour(const qg_parts *parts, const char *name, const char *path) {
    int shard, shards;
    int64_t number;
    if (!read_name(name, &shard, &shards, &number) || shards != parts->options.shards ||
        shard == parts->options.shard)
        return false;
    qg_table *table;
    bool complete, verified;
    if (qg_results_read(path, &table, &complete, &verified) != QG_OK)
        return false;
    bool belongs = verified && check_belongs(parts, table, path) == QG_OK;
    qg_table_free(table);
    return belongs;
}

static qg_status remove_existing(const qg_parts *parts) {
    if (unlink(parts->options.out) != 0 && errno != ENOENT)
        return qg_fail(QG_ERROR_IO, "cannot remove %s: %s", parts->options.out, strerror(errno));
    name_list list;
    qg_status status = list_folder(parts, &list);
    for (int64_t i = 0; status == QG_OK && i < list.count; i++) {
        char path[PATH_MAX];
        path_in(parts, list.names[i], path);
        if (ends_with(list.names[i], ".h5") && !is_neighbour(parts, list.names[i], path) &&
            unlink(path) != 0)
            status = qg_fail(QG_ERROR_IO, "cannot remove %s: %s", path, strerror(errno));
    }
    free(list.names);
    return status;
}

qg_status qg_parts_open(const qg_parts_options *options, qg_parts **out) {
    *out = NULL;
    qg_parts *parts = calloc(1, sizeof *parts);
    if (!parts)
        return no_memory();
    parts->options = *options;
    parts->number = 1;
    parts->state = calloc((size_t)options->cases + 1, 1);
    qg_status status = parts->state ? QG_OK : no_memory();
    if (status == QG_OK && snprintf(parts->folder, sizeof parts->folder, "%s.parts",
                                    options->out) >= PATH_MAX - NAME_MAX)
        status = qg_fail(QG_ERROR_ARGUMENT, "the path of the result file is too long");
    if (status == QG_OK) {
        if (options->locked)
            remove_stale(parts);
        if (options->existing == QG_EXISTING_OVERWRITE)
            status = remove_existing(parts);
    }
    if (status == QG_OK)
        status = load_file(parts);
    if (status == QG_OK)
        status = load_folder(parts);
    if (status != QG_OK) {
        qg_parts_free(parts);
        return status;
    }
    *out = parts;
    return QG_OK;
}

void qg_parts_free(qg_parts *parts) {
    if (!parts)
        return;
    for (int64_t i = 0; i < parts->count; i++)
        qg_table_free(parts->parts[i].table);
    free(parts->parts);
    qg_table_free(parts->described);
    qg_table_free(parts->pending);
    free(parts->sorted_ids);
    free(parts->state);
    free(parts);
}

// ---- Writing ------------------------------------------------------------------------------------

bool qg_parts_finished(const qg_parts *parts, int64_t order) {
    return parts->state[order] == ROW_FINAL;
}

static qg_status describe(qg_parts *parts) {
    qg_table *table;
    qg_status status = qg_table_create(&table);
    if (status == QG_OK)
        status = qg_table_set_plan(table, parts->options.plan_text);
    if (status == QG_OK && parts->options.describe)
        status = parts->options.describe(parts->options.context, table);
    if (status != QG_OK)
        qg_table_free(table);
    else
        parts->described = table;
    return status;
}

qg_status qg_parts_pending(qg_parts *parts, qg_table **table) {
    qg_status status = parts->described ? QG_OK : describe(parts);
    if (status == QG_OK && !parts->pending) {
        const qg_table *described = parts->described;
        status = qg_table_merge(&described, 1, &parts->pending); // a copy
    }
    *table = parts->pending;
    return status;
}

int64_t qg_parts_pending_rows(const qg_parts *parts) {
    return parts->pending ? qg_table_rows(parts->pending) : 0;
}

qg_status qg_parts_write(qg_parts *parts) {
    if (qg_parts_pending_rows(parts) == 0)
        return QG_OK;
    char name[NAME_MAX + 1], path[PATH_MAX];
    snprintf(name, sizeof name, "%d-of-%d-%06" PRId64 ".h5", parts->options.shard,
             parts->options.shards, parts->number);
    path_in(parts, name, path);
    qg_status status = QG_OK;
    if (parts->options.close)
        status = parts->options.close(parts->options.context, parts->pending);
    if (status == QG_OK)
        status = qg_results_write(path, parts->pending, QG_RESULTS_PART, false);
    if (status != QG_OK)
        return status;
    qg_table *written = parts->pending;
    parts->pending = NULL;
    return add_part(parts, name, written);
}

// ---- Merging ------------------------------------------------------------------------------------

// Newest first: merging keeps the first of rows that repeat a case.
static int newest_first(const void *a, const void *b) {
    const part *x = a, *y = b;
    if (x->number != y->number)
        return x->number > y->number ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int64_t count_missing(const qg_parts *parts, const qg_table *table) {
    int64_t present = 0, last = -1;
    for (int64_t row = 0; row < qg_table_rows(table); row++) {
        int64_t order = qg_table_order(table, row);
        present += order != last;
        last = order;
    }
    return parts->options.cases - present;
}

qg_status qg_parts_collect(qg_parts *parts, bool reread, qg_table **out, int64_t *missing) {
    *out = NULL;
    qg_status status = reread ? load_folder(parts) : QG_OK;
    const qg_table **tables = malloc(((size_t)parts->count + 1) * sizeof(qg_table *));
    if (status == QG_OK && !tables)
        status = no_memory();
    int64_t count = 0;
    if (status == QG_OK) {
        if (parts->count > 0)
            qsort(parts->parts, (size_t)parts->count, sizeof *parts->parts, newest_first);
        if (parts->pending)
            tables[count++] = parts->pending;
        for (int64_t i = 0; i < parts->count; i++)
            tables[count++] = parts->parts[i].table;
        status = qg_table_merge(tables, count, out);
    }
    free(tables);
    if (status == QG_OK)
        *missing = count_missing(parts, *out);
    return status;
}

int qg_parts_common_split(const qg_parts *parts) {
    int common = 0, shard, shards;
    int64_t number;
    for (int64_t i = 0; i < parts->count; i++) {
        if (!read_name(parts->parts[i].name, &shard, &shards, &number))
            continue;
        if (common != 0 && common != shards)
            return 0;
        common = shards;
    }
    return common;
}

bool qg_parts_is_merged(const qg_parts *parts) {
    return parts->has_file && !parts->has_news && qg_parts_pending_rows(parts) == 0;
}

qg_status qg_parts_publish(qg_parts *parts, const qg_table *merged) {
    return qg_results_write(parts->options.out, merged, QG_RESULTS_MERGED, true);
}
