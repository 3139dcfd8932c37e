// What result files hold beside columns: histograms, the plan, runs, operands and dumps.
// See results_write_internal.h.
#include <dump_internal.h>
#include <results_write_internal.h>

#include <qg_bits.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------- histograms

// Positions in the file of the rows that have histograms.
typedef struct histogram_rows {
    int64_t *positions;
    int64_t count;
    int64_t first; // in the pool, if they lie there one after the other; else -1
    bool ulp;      // which of the two is gathered
} histogram_rows;

static bool list_histograms(qg_writer *w, histogram_rows *out) {
    const int64_t *histogram_of = w->table->histogram_of;
    out->positions = malloc(((size_t)w->table->rows + 1) * sizeof *out->positions);
    out->count = out->first = 0;
    if (!out->positions) {
        qg_writer_fail_memory(w);
        return false;
    }
    for (int64_t i = 0; histogram_of && i < w->table->rows; i++) {
        int64_t at = histogram_of[w->rows[i]];
        if (at < 0)
            continue;
        if (out->count == 0)
            out->first = at;
        else if (at != out->first + out->count)
            out->first = -1;
        out->positions[out->count++] = i;
    }
    return true;
}

static void gather_histograms(const qg_writer *w, const void *context, int64_t begin, int64_t count,
                              char *buffer) {
    const histogram_rows *h = context;
    size_t bins = h->ulp ? QG_HIST_ULP_BINS : QG_HIST_LOG2_BINS;
    for (int64_t i = 0; i < count; i++) {
        const int64_t *rel = NULL, *ulp = NULL;
        qg_table_histograms(w->table, w->rows[h->positions[begin + i]], &rel, &ulp);
        memcpy(buffer + (size_t)i * bins * 8, h->ulp ? ulp : rel, bins * 8);
    }
}

static void write_edges(qg_writer *w, hid_t group) {
    double rel[QG_HIST_LOG2_BINS + 1], ulp[QG_HIST_ULP_BINS + 1];
    for (int i = 0; i <= QG_HIST_LOG2_BINS; i++)
        rel[i] = qg_double_pow2(QG_HIST_LOG2_MIN + i);
    for (int i = 0; i <= QG_HIST_ULP_BINS; i++)
        ulp[i] = i == 0 ? 0.0 : qg_double_pow2(i - 1);
    ulp[QG_HIST_ULP_BINS] = (double)INFINITY;
    qg_dataset d = {.name = "rel_edges", .rows = QG_HIST_LOG2_BINS + 1, .type = H5T_NATIVE_DOUBLE};
    d.long_name = "edges of the bins of |e/x|";
    d.definition = "bin i is [edge i, edge i + 1); the first and the last hold all beyond, too";
    d.values = (const char *)rel;
    qg_writer_dataset(w, group, &d);
    d.name = "ulp_edges";
    d.rows = QG_HIST_ULP_BINS + 1;
    d.long_name = "edges of the bins of |e| in ulps";
    d.definition = "bin i is [edge i, edge i + 1)";
    d.values = (const char *)ulp;
    qg_writer_dataset(w, group, &d);
}

void qg_writer_histograms(qg_writer *w) {
    histogram_rows h = {0};
    if (w->failed || !list_histograms(w, &h))
        return;
    hid_t group = qg_writer_create_group(w, w->file, "hist");
    qg_dataset row = {.name = "row", .rows = h.count, .type = H5T_NATIVE_INT64};
    row.long_name = "row of the columns that a histogram belongs to";
    row.values = (const char *)h.positions;
    qg_writer_dataset(w, group, &row);
    qg_dataset d = {.name = "rel", .rows = h.count, .columns = QG_HIST_LOG2_BINS};
    d.type = H5T_NATIVE_INT64;
    d.long_name = "histogram of |e/x| over x != 0, e != 0";
    d.gather = gather_histograms;
    d.values = h.count && h.first >= 0 ? (const char *)(w->table->histograms->rel + h.first) : NULL;
    d.context = &h;
    qg_writer_dataset(w, group, &d);
    h.ulp = true;
    d.values = h.count && h.first >= 0 ? (const char *)(w->table->histograms->ulp + h.first) : NULL;
    d.name = "ulp";
    d.columns = QG_HIST_ULP_BINS;
    d.long_name = "histogram of |e| in ulps of x";
    qg_writer_dataset(w, group, &d);
    write_edges(w, group);
    qg_writer_close_group(group);
    free(h.positions);
}

// -------------------------------------------------------------------- plan, runs, operands, dumps

static void write_argv(qg_writer *w, hid_t group) {
    const qg_table *t = w->table;
    size_t width = 1;
    for (int64_t i = 0; i < t->argv_count; i++)
        width = strlen(t->argv[i]) > width ? strlen(t->argv[i]) : width;
    char *lines = calloc((size_t)t->argv_count + 1, width);
    qg_dataset d = {.name = "argv", .rows = t->argv_count, .type = qg_hdf5_text_type(width)};
    if (lines && qg_writer_good(w, d.type)) {
        for (int64_t i = 0; i < t->argv_count; i++)
            memcpy(lines + (size_t)i * width, t->argv[i], strlen(t->argv[i]));
        d.values = lines;
        qg_writer_dataset(w, group, &d);
    }
    if (!lines)
        qg_writer_fail_memory(w);
    if (d.type >= 0)
        H5Tclose(d.type);
    free(lines);
}

static void write_text(qg_writer *w, hid_t group, const char *name, const char *text) {
    size_t length = strlen(text);
    hid_t type = qg_hdf5_text_type(length ? length : 1);
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    qg_writer_good(w, properties < 0 ? -1 : H5Pset_obj_track_times(properties, false));
    hid_t target = qg_writer_good(w, type)
                       ? H5Dcreate2(group, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT)
                       : -1;
    if (qg_writer_good(w, target)) {
        qg_writer_good(w, H5Dwrite(target, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text));
        H5Dclose(target);
    }
    if (type >= 0)
        H5Tclose(type);
    H5Pclose(properties);
    H5Sclose(space);
}

// Places of the rows in the plan, where cases are missing: elsewhere they follow from the case ids.
static void write_gaps(qg_writer *w, hid_t group) {
    int64_t rows = w->table->rows;
    int64_t *order = malloc(((size_t)rows + 1) * sizeof *order);
    bool known = false, differs = false;
    if (!order) {
        qg_writer_fail_memory(w);
        return;
    }
    qg_table_derive_order(w->table, w->rows, order);
    for (int64_t i = 0; i < rows; i++) {
        int64_t own = w->table->order[w->rows[i]];
        known = known || own >= 0;
        differs = differs || own != order[i];
    }
    if (known && differs) {
        qg_dataset d = {.name = "order", .rows = rows, .type = H5T_NATIVE_INT64};
        d.gather = qg_writer_gather_order;
        d.long_name = "position of each row's case in the plan";
        qg_writer_dataset(w, group, &d);
    }
    free(order);
}

void qg_writer_plan(qg_writer *w) {
    hid_t group = qg_writer_create_group(w, w->file, "plan");
    if (w->failed)
        return;
    write_text(w, group, "text", qg_table_plan(w->table));
    write_argv(w, group);
    if (w->merged)
        write_gaps(w, group);
    qg_writer_close_group(group);
}

void qg_writer_runs(qg_writer *w) {
    hid_t group = qg_writer_create_group(w, w->file, "runs");
    for (int64_t r = 0; r < w->table->run_count && !w->failed; r++) {
        const qg_run *run = &w->table->runs[r];
        char name[24];
        snprintf(name, sizeof name, "%" PRId64, r);
        hid_t child = qg_writer_create_group(w, group, name);
        for (int64_t i = 0; i < run->count && !w->failed; i++)
            qg_writer_text_attribute(w, child, run->keys[i], run->values[i]);
        qg_writer_close_group(child);
    }
    qg_writer_close_group(group);
}

static void write_operand(qg_writer *w, hid_t parent, const qg_operand *operand) {
    char name[QG_RESULTS_DIGEST_SIZE];
    snprintf(name, sizeof name, "%016" PRIx64, operand->case_id);
    htri_t exists = H5Lexists(parent, name, H5P_DEFAULT);
    if (!qg_writer_good(w, exists))
        return;
    hid_t group =
        exists ? H5Gopen2(parent, name, H5P_DEFAULT) : qg_writer_create_group(w, parent, name);
    if (!qg_writer_good(w, group))
        return;
    qg_dataset d = {.name = operand->name, .rows = operand->size, .type = H5T_NATIVE_UINT8};
    d.values = (const char *)operand->bytes;
    qg_writer_dataset(w, group, &d);
    qg_writer_close_group(group);
}

void qg_writer_operands(qg_writer *w) {
    hid_t group = qg_writer_create_group(w, w->file, "operands");
    for (int64_t i = 0; i < w->table->operand_count && !w->failed; i++)
        write_operand(w, group, &w->table->operands[i]);
    qg_writer_close_group(group);
}

static void write_dump_field(qg_writer *w, hid_t group, const qg_dump_field *field, int64_t count) {
    bool is_text = field->type == QG_COLUMN_TEXT;
    qg_dataset d = {.name = field->name, .rows = count, .definition = field->definition};
    d.type = is_text ? qg_hdf5_text_type(field->width) : qg_hdf5_number_type(field->type);
    if (!qg_writer_good(w, d.type))
        return;
    d.values = field->values;
    qg_writer_dataset(w, group, &d);
    if (is_text)
        H5Tclose(d.type);
}

void qg_writer_dump(qg_writer *w, int i) {
    qg_dump dump;
    qg_status status = qg_dump_build(i, &dump);
    if (status != QG_OK) {
        qg_writer_fail(w, status);
        return;
    }
    hid_t group = qg_writer_create_group(w, w->file, dump.group);
    for (size_t f = 0; f < dump.field_count && !w->failed; f++)
        write_dump_field(w, group, &dump.fields[f], dump.count);
    qg_writer_close_group(group);
    qg_dump_free(&dump);
}
