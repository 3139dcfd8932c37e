// Columns of result files, one dataset each, and the order of their rows. See
// results_write_internal.h.
#include <results_write_internal.h>

#include <math.h>
#include <string.h>

static void gather_numbers(const qg_writer *w, const void *context, int64_t begin, int64_t count,
                           char *buffer) {
    qg_column column = *(const qg_column *)context;
    size_t size = qg_column_size(qg_column_describe(column)->type);
    const char *elements = w->table->columns[column];
    if (!elements) // only case ids are written without being set
        memset(buffer, 0, (size_t)count * size);
    for (int64_t i = 0; elements && i < count; i++)
        memcpy(buffer + (size_t)i * size, elements + (size_t)w->rows[begin + i] * size, size);
}

typedef struct text_column {
    qg_column column;
    size_t width;
} text_column;

static void gather_texts(const qg_writer *w, const void *context, int64_t begin, int64_t count,
                         char *buffer) {
    const text_column *c = context;
    const uint32_t *elements = w->table->columns[c->column];
    for (int64_t i = 0; i < count; i++, buffer += c->width) {
        uint32_t index = elements[w->rows[begin + i]];
        if (i > 0 && index == elements[w->rows[begin + i - 1]]) {
            memcpy(buffer, buffer - c->width, c->width);
            continue;
        }
        size_t length = qg_text_length(w->table->texts, index);
        memcpy(buffer, qg_text_at(w->table->texts, index), length);
        memset(buffer + length, 0, c->width - length);
    }
}

size_t qg_writer_longest_text(const qg_table *table, qg_column column) {
    const uint32_t *elements = table->columns[column];
    size_t longest = 1;
    for (int64_t row = 0; elements && row < table->rows; row++) {
        size_t length = qg_text_length(table->texts, elements[row]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

static const char *better_text(const qg_column_info *info) {
    if (info->better != 0)
        return info->better > 0 ? "larger" : "smaller";
    return strcmp(info->group, "metrics") == 0 ? "nearer to zero" : "none";
}

static qg_dataset column_dataset(const qg_writer *w, const qg_column_info *info) {
    qg_dataset d = {.name = info->name, .rows = w->table->rows};
    if (w->merged) { // parts go without: they are read by machines, and many
        d.units = info->units;
        d.long_name = info->long_name;
        d.definition = info->definition;
        d.better = better_text(info);
    }
    return d;
}

static void write_text_column(qg_writer *w, hid_t group, qg_column column, bool is_set) {
    qg_dataset d = column_dataset(w, qg_column_describe(column));
    text_column context = {column, qg_writer_longest_text(w->table, column)};
    d.type = qg_hdf5_text_type(context.width);
    if (!qg_writer_good(w, d.type))
        return;
    d.gather = is_set ? gather_texts : NULL;
    d.context = &context;
    qg_writer_dataset(w, group, &d);
    H5Tclose(d.type);
}

static void write_number_column(qg_writer *w, hid_t group, qg_column column, bool is_set) {
    const qg_column_info *info = qg_column_describe(column);
    qg_dataset d = column_dataset(w, info);
    double nan = (double)NAN;
    d.type = qg_hdf5_number_type(info->type);
    if (info->type == QG_COLUMN_F64)
        d.fill = &nan;
    else if (info->type == QG_COLUMN_I64)
        d.fill = &info->missing;
    d.gather = is_set ? gather_numbers : NULL;
    d.values = is_set && w->in_order ? w->table->columns[column] : NULL;
    d.context = &column;
    qg_writer_dataset(w, group, &d);
}

// Case ids are written even where all are 0: readers learn the number of rows from them.
static void write_column(qg_writer *w, hid_t group, qg_column column) {
    bool is_set =
        column == QG_COLUMN_CASE_ID ? w->table->rows > 0 : qg_table_column_is_set(w->table, column);
    if (!is_set && !w->merged && column != QG_COLUMN_CASE_ID)
        return;
    if (qg_column_describe(column)->type == QG_COLUMN_TEXT)
        write_text_column(w, group, column, is_set);
    else
        write_number_column(w, group, column, is_set);
}

void qg_writer_gather_order(const qg_writer *w, const void *context, int64_t begin, int64_t count,
                            char *buffer) {
    (void)context;
    for (int64_t i = 0; i < count; i++)
        memcpy(buffer + 8 * i, &w->table->order[w->rows[begin + i]], 8);
}

static void write_group(qg_writer *w, const char *name) {
    hid_t group = qg_writer_create_group(w, w->file, name);
    for (int i = 0; i < QG_COLUMN_COUNT && !w->failed; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group, name) == 0)
            write_column(w, group, (qg_column)i);
    if (!w->merged && strcmp(name, "cases") == 0) {
        qg_dataset d = {.name = "order",
                        .rows = w->table->rows,
                        .type = H5T_NATIVE_INT64,
                        .gather = qg_writer_gather_order,
                        .values = w->in_order ? (const char *)w->table->order : NULL};
        qg_writer_dataset(w, group, &d);
    }
    qg_writer_close_group(group);
}

void qg_writer_columns(qg_writer *w) {
    const char *done = "";
    for (int i = 0; i < QG_COLUMN_COUNT; i++) {
        const char *group = qg_column_describe((qg_column)i)->group;
        hid_t has = w->failed ? 1 : H5Lexists(w->file, group, H5P_DEFAULT);
        if (strcmp(group, done) != 0 && qg_writer_good(w, has) && has == 0)
            write_group(w, group);
        done = group;
    }
}
