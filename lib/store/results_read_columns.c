// Columns of result files, their texts, and the order of their rows. See results_read_internal.h.
#include <results_read_internal.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 1 << 20 };

static qg_status read_slab(const qg_reader *r, const qg_source *s, int64_t begin, int64_t count,
                           char *buffer) {
    hsize_t start = (hsize_t)begin, extent = (hsize_t)count;
    hid_t memory = H5Screate_simple(1, &extent, NULL);
    bool fits = memory >= 0 &&
                H5Sselect_hyperslab(s->space, H5S_SELECT_SET, &start, NULL, &extent, NULL) >= 0 &&
                H5Dread(s->id, s->type, memory, s->space, H5P_DEFAULT, buffer) >= 0;
    char reason[QG_HDF5_REASON_SIZE] = "";
    if (!fits)
        qg_hdf5_reason(reason);
    H5Sclose(memory);
    return fits ? QG_OK : qg_reader_bad(r, s->object, "cannot read: %s", reason);
}

// -------------------------------------------------------------------------------------- texts

// Length of a text in a field of `width` bytes, padded with zeros or (H5T_STR_SPACEPAD) spaces.
static size_t text_length(const qg_source *s, const char *text, size_t width) {
    size_t length = strnlen(text, width);
    if (H5Tget_strpad(s->type) == H5T_STR_SPACEPAD)
        while (length > 0 && text[length - 1] == ' ')
            length--;
    return length;
}

static qg_status intern_rows(qg_reader *r, const qg_source *s, const char *buffer, int64_t begin,
                             int64_t count, uint32_t *to) {
    size_t width = H5Tget_size(s->type), wrong;
    for (int64_t i = 0; i < count; i++) {
        const char *text = buffer + (size_t)i * width;
        if (i > 0 && memcmp(text, text - width, width) == 0) { // most columns repeat themselves
            to[begin + i] = to[begin + i - 1];
            continue;
        }
        size_t length = text_length(s, text, width);
        if (!qg_text_is_utf8(text, length, &wrong))
            return qg_reader_bad(r, s->object, "row %" PRId64 " is no UTF-8", begin + i);
        qg_status status = qg_text_intern(r->table->texts, text, length, &to[begin + i]);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

qg_status qg_reader_texts(qg_reader *r, const qg_source *s, uint32_t *to) {
    int64_t width = (int64_t)H5Tget_size(s->type);
    if (width > QG_RESULTS_TEXT_MAX)
        return qg_reader_bad(r, s->object, "texts of %" PRId64 " bytes", width);
    int64_t slab = width < SLAB_BYTES ? SLAB_BYTES / width : 1;
    if (s->chunk_rows > 0 && s->chunk_rows < slab)
        slab -= slab % s->chunk_rows; // whole chunks: each is decompressed once
    slab = slab < s->rows ? slab : s->rows;
    char *buffer = malloc((size_t)slab * (size_t)width);
    if (!buffer)
        return qg_reader_no_memory(r);
    qg_status status = QG_OK;
    for (int64_t begin = 0; begin < s->rows && status == QG_OK; begin += slab) {
        int64_t count = s->rows - begin < slab ? s->rows - begin : slab;
        status = read_slab(r, s, begin, count, buffer);
        if (status == QG_OK)
            status = intern_rows(r, s, buffer, begin, count, to);
    }
    free(buffer);
    return status;
}

// ------------------------------------------------------------------------------------- columns

static qg_status read_column(qg_reader *r, hid_t group, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    if (!r->merged && H5Lexists(group, info->name, H5P_DEFAULT) == 0)
        return QG_OK; // parts leave out columns without values
    qg_source s;
    qg_status status =
        qg_source_open_typed(r, group, info->group, info->name, info->type, 1, r->table->rows, &s);
    if (status != QG_OK)
        return status;
    void *elements;
    if (s.stored) {
        status = qg_table_column(r->table, column, &elements);
        if (status == QG_OK)
            status = info->type == QG_COLUMN_TEXT
                         ? qg_reader_texts(r, &s, elements)
                         : qg_source_read(r, &s, qg_hdf5_number_type(info->type), elements);
    }
    qg_source_close(&s);
    return status;
}

qg_status qg_reader_columns(qg_reader *r, const char *name) {
    if (!r->merged && H5Lexists(r->file, name, H5P_DEFAULT) == 0)
        return QG_OK;
    hid_t group;
    qg_status status = qg_reader_open_group(r, r->file, name, &group);
    if (status != QG_OK)
        return status;
    for (int i = 0; i < QG_COLUMN_COUNT && status == QG_OK; i++)
        if (strcmp(qg_column_describe((qg_column)i)->group, name) == 0)
            status = read_column(r, group, (qg_column)i);
    H5Gclose(group);
    return status;
}

qg_status qg_reader_order(qg_reader *r, hid_t group, const char *path) {
    qg_source s;
    qg_status status =
        qg_source_open_typed(r, group, path, "order", QG_COLUMN_I64, 1, r->table->rows, &s);
    if (status != QG_OK)
        return status;
    if (s.rows > 0 && !s.stored)
        status = qg_reader_bad(r, s.object, "never written");
    if (status == QG_OK)
        status = qg_source_read(r, &s, H5T_NATIVE_INT64, r->table->order);
    qg_source_close(&s);
    return status;
}

// The number of rows is that of the case ids, which are always stored: the bound of all the rest.
qg_status qg_reader_rows(qg_reader *r) {
    hid_t cases;
    qg_status status = qg_reader_open_group(r, r->file, "cases", &cases);
    if (status != QG_OK)
        return status;
    qg_source s;
    r->merged = H5Lexists(cases, "order", H5P_DEFAULT) == 0;
    status = qg_source_open_typed(r, cases, "cases", "case_id", QG_COLUMN_U64, 1, -1, &s);
    if (status == QG_OK) {
        if (s.rows > 0 && !s.stored)
            status = qg_reader_bad(r, s.object, "never written");
        if (status == QG_OK)
            status = qg_table_reserve(r->table, s.rows);
        if (status == QG_OK)
            r->table->rows = s.rows;
        qg_source_close(&s);
    }
    if (status == QG_OK && !r->merged)
        status = qg_reader_order(r, cases, "cases");
    H5Gclose(cases);
    return status;
}
