// The data of a section: laws by name, real tensors by file and glob. Files are opened once and
// known by their name without folder; a tensor's identity is its content.
#include <plan_internal.h>

#include <qg_data_dir.h>

#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char TENSORS[] = "tensors:";
static const char SHIPPED[] = "minilm.h5";
static const char *const STANDARD_LAWS[] = {"normal", "outliers:100"};

// --------------------------------------------------------------------------------------- sources

static qg_status add_index(qg_expanded *e, int32_t index, qg_listed *listed) {
    for (int64_t i = 0; i < e->sources.count; i++)
        if (e->sources.values[i] == index) {
            if (!e->data_listed[i])
                e->data_listed[i] = listed;
            return QG_OK;
        }
    qg_status status =
        qg_grow(&e->data_listed, e->sources.count, &e->data_capacity, sizeof *e->data_listed);
    if (!status)
        status = qg_index_append(&e->sources, index);
    if (!status)
        e->data_listed[e->sources.count - 1] = listed;
    return status;
}

static bool same_source(const qg_plan_source *a, const qg_plan_source *b) {
    return a->source.data == b->source.data && a->source.tensor == b->source.tensor &&
           a->source.digest == b->source.digest && a->skipped == b->skipped &&
           a->source.m == b->source.m && a->source.k == b->source.k;
}

qg_status qg_keep_source(qg_plan *plan, qg_plan_source *candidate, int32_t *index) {
    for (int64_t i = 0; i < plan->source_count; i++)
        if (same_source(plan->sources[i], candidate)) {
            qg_law_free(candidate->law);
            *index = (int32_t)i;
            return QG_OK;
        }
    qg_status status =
        qg_grow(&plan->sources, plan->source_count, &plan->source_capacity, sizeof *plan->sources);
    qg_plan_source *copy = status ? NULL : malloc(sizeof *copy);
    if (!copy) {
        qg_law_free(candidate->law);
        return qg_fail(QG_ERROR_MEMORY, "out of memory for the plan");
    }
    *copy = *candidate;
    *index = (int32_t)plan->source_count;
    copy->place = *index;
    if (*index > 0 && copy->source.model &&
        plan->sources[*index - 1]->source.model == copy->source.model)
        copy->place = plan->sources[*index - 1]->place;
    plan->sources[plan->source_count++] = copy;
    return QG_OK;
}

static qg_status add_law(qg_plan *plan, const char *text, const char *origin, qg_expanded *e) {
    qg_plan_source s = {.typed = ""};
    qg_listed *listed = NULL;
    int32_t index;
    qg_status status = qg_law_parse(text, &s.law);
    if (status)
        return status;
    s.source.law = s.law;
    status = qg_word_pool_keep(plan->pool, qg_law_name(s.law), &s.source.data);
    if (!status)
        status = qg_word_pool_keep(plan->pool, "", &s.source.tensor);
    if (!status && origin)
        status = qg_plan_list_value(plan, QG_AXIS_DATA, s.source.data, origin, &listed);
    if (status) {
        qg_law_free(s.law);
        return status;
    }
    e->has_laws = true;
    status = qg_keep_source(plan, &s, &index);
    return status ? status : add_index(e, index, listed);
}

// ----------------------------------------------------------------------------------------- files

static bool is_file(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

// A name without a folder means the current folder, then the files that come with the programs.
static void find_file(const char *typed, char path[PATH_MAX]) {
    char name[PATH_MAX + sizeof "datasets/"];
    snprintf(path, PATH_MAX, "%s", typed);
    if (strchr(typed, '/') || is_file(typed))
        return;
    snprintf(name, sizeof name, "datasets/%s", typed);
    char shipped[PATH_MAX];
    if (qg_data_file(name, shipped, sizeof shipped) == QG_OK && is_file(shipped))
        snprintf(path, PATH_MAX, "%s", shipped);
}

// Opens a file once; *index is its place.
static qg_status open_file(qg_plan *plan, const char *path, const char *typed, int64_t *index) {
    for (int64_t i = 0; i < plan->file_count; i++)
        if (strcmp(plan->files[i].path, path) == 0) {
            *index = i;
            return QG_OK;
        }
    qg_plan_file file;
    qg_status status =
        qg_grow(&plan->files, plan->file_count, &plan->file_capacity, sizeof *plan->files);
    if (!status)
        status = qg_word_pool_keep(plan->pool, path, &file.path);
    if (!status)
        status = qg_word_pool_keep(plan->pool, typed, &file.typed);
    if (!status)
        status = qg_tensor_file_open(path, &file.file);
    if (status)
        return status;
    *index = plan->file_count;
    plan->files[plan->file_count++] = file;
    return QG_OK;
}

// --------------------------------------------------------------------------------------- tensors

static qg_status add_tensor(qg_plan *plan, const qg_plan_file *file, int64_t tensor,
                            qg_listed *listed, qg_expanded *e) {
    qg_tensor_info info = qg_tensor_file_info(file->file, tensor);
    qg_plan_source s = {.typed = file->typed};
    s.source.file = file->file;
    s.source.tensor_index = tensor;
    s.source.m = info.skipped ? 0 : info.m;
    s.source.k = info.skipped ? 0 : info.k;
    char data[NAME_MAX + sizeof TENSORS];
    int32_t index;
    snprintf(data, sizeof data, "%s%s", TENSORS, qg_tensor_file_name(file->file));
    qg_status status = qg_word_pool_keep(plan->pool, data, &s.source.data);
    if (!status)
        status = qg_word_pool_keep(plan->pool, info.name, &s.source.tensor);
    if (!status && info.skipped)
        status = qg_word_pool_keep(plan->pool, info.skipped, &s.skipped);
    if (!status && !info.skipped)
        status = qg_tensor_file_digest(file->file, tensor, &s.source.digest);
    if (!status)
        status = qg_keep_source(plan, &s, &index);
    if (!status && listed && !info.skipped)
        listed->fits = true;
    else if (!status && listed && !listed->reason)
        listed->reason = s.skipped;
    return status ? status : add_index(e, index, listed);
}

static qg_status nothing_matches(const char *glob, const qg_plan_file *file) {
    enum { MOST_SHOWN = 4 };
    int64_t count = qg_tensor_file_count(file->file);
    char names[300] = "";
    size_t length = 0;
    if (count == 0)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.120s' has no tensor", file->typed);
    for (int64_t i = 0; i < count && i < MOST_SHOWN && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%.60s", i ? ", " : "",
                                   qg_tensor_file_info(file->file, i).name);
    return qg_fail(QG_ERROR_ARGUMENT, "no tensor of '%.80s' matches '%.60s'; it has %s%s",
                   file->typed, glob, names, count > MOST_SHOWN ? ", ..." : "");
}

// NULL selects all; a name that a tensor has selects that one, whatever its characters.
static qg_status add_tensors(qg_plan *plan, const qg_plan_file *file, const char *glob,
                             qg_listed *listed, qg_expanded *e) {
    int64_t count = qg_tensor_file_count(file->file);
    bool exact = false, any = false;
    qg_status status = QG_OK;
    for (int64_t i = 0; i < count && glob && !exact; i++)
        exact = strcmp(qg_tensor_file_info(file->file, i).name, glob) == 0;
    for (int64_t i = 0; i < count && !status; i++) {
        const char *name = qg_tensor_file_info(file->file, i).name;
        if (glob && (exact ? strcmp(name, glob) != 0 : fnmatch(glob, name, 0) != 0))
            continue;
        any = true;
        status = add_tensor(plan, file, i, listed, e);
    }
    return status || any ? status : nothing_matches(glob ? glob : "*", file);
}

// Where the file's name ends: at the first # before which there is a file, else at the first, else
// at the end. The name may hold a #.
static const char *end_of_file_name(const char *text) {
    char typed[PATH_MAX], path[PATH_MAX];
    for (const char *c = text;; c++) {
        if (*c && *c != '#')
            continue;
        snprintf(typed, sizeof typed, "%.*s", (int)(c - text), text);
        find_file(typed, path);
        if (is_file(path))
            return c;
        if (!*c)
            break;
    }
    return text + strcspn(text, "#");
}

static qg_status add_tensor_item(qg_plan *plan, const char *item, const char *origin,
                                 qg_expanded *e) {
    const char *text = item + sizeof TENSORS - 1;
    char typed[PATH_MAX], path[PATH_MAX];
    qg_listed *listed = NULL;
    int64_t file;
    if (strlen(text) >= PATH_MAX)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.60s...' is too long for a file's name", item);
    const char *end = end_of_file_name(text);
    if (end == text)
        return qg_fail(QG_ERROR_ARGUMENT, "'%.60s' names no file: write tensors:FILE[#GLOB]", item);
    if (*end && !end[1])
        return qg_fail(QG_ERROR_ARGUMENT, "'%.200s' has nothing after its #", item);
    snprintf(typed, sizeof typed, "%.*s", (int)(end - text), text);
    find_file(typed, path);
    qg_status status = open_file(plan, path, typed, &file);
    if (!status && origin)
        status = qg_plan_list_value(plan, QG_AXIS_DATA, item, origin, &listed);
    if (status)
        return status;
    return add_tensors(plan, &plan->files[file], *end ? end + 1 : NULL, listed, e);
}

// ------------------------------------------------------------------------------------------ items

static qg_status add_standard(qg_plan *plan, qg_expanded *e) {
    char name[64], path[PATH_MAX];
    int64_t file;
    qg_status status = QG_OK;
    for (size_t i = 0; i < sizeof STANDARD_LAWS / sizeof STANDARD_LAWS[0] && !status; i++)
        status = add_law(plan, STANDARD_LAWS[i], NULL, e);
    snprintf(name, sizeof name, "datasets/%s", SHIPPED);
    if (!status)
        status = qg_data_file(name, path, sizeof path);
    if (!status && !is_file(path))
        return qg_fail(QG_ERROR_IO,
                       "the shipped tensors are missing (%.200s); set QG_DATA_DIR or name --data",
                       path);
    if (!status)
        status = open_file(plan, path, SHIPPED, &file);
    return status ? status : add_tensors(plan, &plan->files[file], NULL, NULL, e);
}

// The i-th law's name without its parameters.
static const char *law_word(size_t i) {
    static _Thread_local char word[64];
    const char *form = qg_law_listed(i);
    if (!form)
        return NULL;
    snprintf(word, sizeof word, "%.*s", (int)strcspn(form, ":["), form);
    return word;
}

// A glob passes over laws that need a parameter.
static qg_status add_law_glob(qg_plan *plan, const char *glob, qg_expanded *e) {
    qg_list words = {0};
    int64_t matched;
    bool usable = false;
    qg_status status = qg_list_match(glob, law_word, &words, &matched);
    for (int64_t i = 0; i < words.count && !status; i++) {
        qg_law *law;
        if (qg_law_parse(words.items[i], &law) != QG_OK)
            continue;
        qg_law_free(law);
        usable = true;
        status = add_law(plan, words.items[i], NULL, e);
    }
    qg_list_free(&words);
    if (!status && !usable)
        return qg_fail(QG_ERROR_ARGUMENT, "no law without parameters matches '%.60s'", glob);
    return status;
}

static qg_status add_item(qg_plan *plan, const char *item, const char *origin, qg_expanded *e) {
    if (strcmp(item, "default") == 0)
        return add_standard(plan, e);
    if (strncmp(item, TENSORS, sizeof TENSORS - 1) == 0)
        return add_tensor_item(plan, item, origin, e);
    return qg_list_is_glob(item) ? add_law_glob(plan, item, e) : add_law(plan, item, origin, e);
}

qg_status qg_expand_data(qg_plan *plan, const qg_view *view, qg_expanded *e) {
    const qg_option *option = qg_view_option(view, QG_AXIS_DATA);
    if (option->items.count == 0)
        return add_standard(plan, e);
    qg_status status = QG_OK;
    for (int64_t i = 0; i < option->items.count && !status; i++)
        if (!qg_data_is_model(option->items.items[i]))
            status = add_item(plan, option->items.items[i], option->origin, e);
        else if (!e->models)
            status = qg_fail(QG_ERROR_ARGUMENT, "'%.200s' is for operation model (--ops model)",
                             option->items.items[i]);
    if (!status && e->sources.count == 0)
        status = qg_fail(QG_ERROR_ARGUMENT, "models alone leave the other operations without data: "
                                            "add `default` or a data law, or name --ops model");
    return status ? qg_fail_at(option->origin, status) : QG_OK;
}
