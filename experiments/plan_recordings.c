// Recorded vectors: each .qgvec file of the data folder whose operand a has a format of the section
// is one case. See plan_internal.h.
#include <plan_internal.h>

#include <qg_data_dir.h>
#include <qg_digest.h>
#include <qg_format_name.h>
#include <vector_run.h>

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char FOLDER[] = "datasets/vectors/hardware";
static const char SUFFIX[] = ".qgvec";

// What a section knows of one file.
typedef struct recording {
    qg_plan *plan;
    qg_expanded *expanded;
    int32_t source;
    qg_vector_header header;
} recording;

// ------------------------------------------------------------------------------------------ files

static bool has_suffix(const char *name) {
    size_t length = strlen(name), suffix = sizeof SUFFIX - 1;
    return *name != '.' && length > suffix && strcmp(name + length - suffix, SUFFIX) == 0;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static qg_status missing(const char *folder) {
    return qg_fail(QG_ERROR_IO, "the recorded vectors are missing (%.300s); set QG_DATA_DIR",
                   folder);
}

static qg_status list_files(const char *folder, qg_list *names) {
    DIR *directory = opendir(folder);
    qg_status status = QG_OK;
    if (!directory)
        return missing(folder);
    for (struct dirent *entry; !status && (entry = readdir(directory));)
        if (has_suffix(entry->d_name))
            status = qg_list_add(names, entry->d_name);
    closedir(directory);
    if (!status && names->count == 0)
        return missing(folder);
    if (!status)
        qsort(names->items, (size_t)names->count, sizeof *names->items, by_name);
    return status;
}

// Reads header and lines, so that what cannot be run is known before. A file that cannot be read
// is no failure of the plan: *skipped says why, and the case, which reads it again, FAILS with it.
static qg_status read_recording(qg_plan *plan, const char *path, const char *name,
                                qg_vector_header *header, uint64_t *digest, const char **skipped) {
    qg_vector_text text;
    qg_vector_reader reader;
    qg_status status = qg_vector_text_read(path, name, &text);
    if (!status) {
        *digest = qg_digest_bytes(text.text, text.size);
        status = qg_vector_reader_open(name, text.text, text.size, &reader);
    }
    if (!status) {
        *header = reader.header;
        status = qg_vector_check(name, &text);
    }
    qg_vector_text_free(&text);
    if (status == QG_OK || status == QG_ERROR_MEMORY)
        return status;
    return qg_word_pool_keep(plan->pool, qg_detail(), skipped);
}

static qg_status keep_recording(qg_plan *plan, const char *path, const char *name,
                                qg_vector_header *header, int32_t *index) {
    char data[NAME_MAX + sizeof "vectors:"];
    qg_plan_source s = {.typed = ""};
    snprintf(data, sizeof data, "vectors:%s", name);
    qg_status status = qg_word_pool_keep(plan->pool, data, &s.source.data);
    if (!status)
        status = qg_word_pool_keep(plan->pool, "", &s.source.tensor);
    if (!status)
        status = qg_word_pool_keep(plan->pool, path, &s.source.recording);
    if (!status)
        status = read_recording(plan, path, name, header, &s.source.digest, &s.skipped);
    return status ? status : qg_keep_source(plan, &s, index);
}

// ------------------------------------------------------------------------------------------ cases

static qg_status add_record(qg_expanded *e, const qg_record *record) {
    qg_record_list *list = &e->recorded;
    qg_status status = qg_grow(&list->items, list->count, &list->capacity, sizeof *list->items);
    if (!status)
        list->items[list->count++] = *record;
    return status;
}

static qg_status keep_format(qg_plan *plan, qg_format format, int32_t *index) {
    char name[QG_NAME_SIZE];
    const char *kept;
    qg_recipe base;
    qg_format_name(format, name);
    qg_status status = qg_word_pool_keep(plan->pool, name, &kept);
    if (!status && qg_recipe_find(name, &base) != QG_OK)
        base = (qg_recipe){0}; // binary64 is no element format
    return status ? status : qg_keep_bare(plan, kept, &base, index);
}

static qg_status keep_recipe(qg_plan *plan, const qg_vector_header *header, int32_t *index) {
    const char *kept;
    qg_status status = qg_word_pool_keep(plan->pool, header->recipe_name, &kept);
    return status ? status : qg_keep_bare(plan, kept, &header->recipe, index);
}

static qg_status keep_dot(qg_plan *plan, const qg_vector_header *header, qg_record *record) {
    char name[QG_UNIT_NAME_SIZE];
    qg_product product = {.a = record->variant, .out_type = header->d};
    product.matrix_unit = (qg_unit){.id = (uint8_t)header->unit, .rounding = QG_ROUND_RNE};
    qg_unit_name(&product.matrix_unit, name);
    qg_status status = qg_word_pool_keep(plan->pool, name, &product.unit);
    if (!status)
        status = keep_format(plan, header->b, &product.b);
    return status ? status : qg_keep_product(plan, &product, &record->product);
}

// The element format that decides whether the section has the file.
static qg_format element_of(const qg_vector_header *header) {
    return header->kind == QG_VECTOR_DOT        ? header->a
           : header->kind == QG_VECTOR_QUANTIZE ? header->recipe.element
                                                : header->format;
}

static bool has_element(const qg_expanded *e, qg_format element) {
    bool found = false;
    for (int64_t i = 0; i < e->formats.count; i++)
        if (e->formats.items[i].base.element == element) {
            qg_note_fit(e->formats.items[i].listed, NULL);
            found = true;
        }
    return found;
}

static qg_status add_readable(const recording *r) {
    const qg_vector_header *h = &r->header;
    qg_record record = {.source = r->source, .product = QG_NO_PRODUCT, .k = h->k};
    if (!has_element(r->expanded, element_of(h)))
        return QG_OK;
    qg_status status = h->kind == QG_VECTOR_QUANTIZE
                           ? keep_recipe(r->plan, h, &record.variant)
                           : keep_format(r->plan, element_of(h), &record.variant);
    if (!status && h->kind == QG_VECTOR_DOT)
        status = keep_dot(r->plan, h, &record);
    return status ? status : add_record(r->expanded, &record);
}

// What is in a file that cannot be read is unknown: it is a case of every element format, so that
// no selection passes over it.
static qg_status add_unreadable(const recording *r) {
    qg_record record = {.source = r->source, .product = QG_NO_PRODUCT};
    qg_status status = QG_OK;
    for (int64_t i = 0; i < r->expanded->formats.count && !status; i++) {
        qg_note_fit(r->expanded->formats.items[i].listed, NULL);
        status = keep_format(r->plan, r->expanded->formats.items[i].base.element, &record.variant);
        if (!status)
            status = add_record(r->expanded, &record);
    }
    return status;
}

static qg_status add_file(qg_plan *plan, const char *folder, const char *name,
                          qg_expanded *expanded) {
    char path[PATH_MAX];
    recording r = {.plan = plan, .expanded = expanded};
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return qg_fail(QG_ERROR_ARGUMENT, "the path of '%.100s' is too long", name);
    qg_status status = keep_recording(plan, path, name, &r.header, &r.source);
    if (status)
        return status;
    return plan->sources[r.source]->skipped ? add_unreadable(&r) : add_readable(&r);
}

static qg_status note_missing(qg_plan *plan, qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->formats.count && !status; i++) {
        char name[QG_NAME_SIZE], text[128];
        const char *reason;
        qg_format_name(e->formats.items[i].base.element, name);
        snprintf(text, sizeof text, "no recorded vectors have %s as operand a", name);
        status = qg_word_pool_keep(plan->pool, text, &reason);
        if (!status)
            qg_note_fit(e->formats.items[i].listed, reason);
    }
    return status;
}

// Formats and texts of a section without other operations.
static qg_status fill_formats(qg_plan *plan, qg_expanded *e) {
    qg_status status = QG_OK;
    for (int64_t i = 0; i < e->formats.count && !status; i++)
        if (!e->formats.items[i].layouts) {
            status = qg_word_pool_keep(plan->pool, "", &e->formats.items[i].layouts);
            e->formats.items[i].rules = e->formats.items[i].layouts;
        }
    return status;
}

qg_status qg_expand_recordings(qg_plan *plan, qg_expanded *expanded) {
    char folder[PATH_MAX];
    qg_list names = {0};
    qg_status status = fill_formats(plan, expanded);
    if (!status)
        status = qg_data_file(FOLDER, folder, sizeof folder);
    if (!status)
        status = list_files(folder, &names);
    for (int64_t i = 0; i < names.count && !status; i++)
        status = add_file(plan, folder, names.items[i], expanded);
    qg_list_free(&names);
    return status ? status : note_missing(plan, expanded);
}
