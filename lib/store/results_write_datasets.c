// Attributes, groups and datasets as result files have them, and the failure that stops writing.
// Knows nothing of tables. See results_write_internal.h.
#include <results_write_internal.h>

#include <stdlib.h>
#include <string.h>

enum { SLAB_BYTES = 1 << 18 };

bool qg_writer_good(qg_writer *w, int64_t result) {
    if (result < 0 && !w->failed) {
        qg_hdf5_reason(w->reason);
        w->failed = true;
    }
    return !w->failed;
}

void qg_writer_fail(qg_writer *w, qg_status status) {
    if (!w->failed)
        w->status = status;
    w->failed = true;
}

void qg_writer_fail_memory(qg_writer *w) {
    if (!w->failed)
        qg_writer_fail(w, qg_fail(QG_ERROR_MEMORY, "no memory to write results"));
}

// ---------------------------------------------------------------------------------- attributes

void qg_writer_attribute(qg_writer *w, hid_t object, const char *name, hid_t type,
                         const void *value) {
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    if (qg_writer_good(w, attribute)) {
        qg_writer_good(w, H5Awrite(attribute, type, value));
        H5Aclose(attribute);
    }
    H5Sclose(space);
}

// Variable-length, so that h5py gives a str and not bytes.
void qg_writer_text_attribute(qg_writer *w, hid_t object, const char *name, const char *text) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (qg_writer_good(w, type) && qg_writer_good(w, H5Tset_size(type, H5T_VARIABLE)) &&
        qg_writer_good(w, H5Tset_cset(type, H5T_CSET_UTF8)))
        qg_writer_attribute(w, object, name, type, &text);
    if (type >= 0)
        H5Tclose(type);
}

// ------------------------------------------------------------------------------------ datasets

static bool is_chunked(const qg_writer *w, const qg_dataset *d) { return w->merged && d->rows > 0; }

static hid_t create_properties(qg_writer *w, const qg_dataset *d, hsize_t slab) {
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    if (!qg_writer_good(w, properties))
        return properties;
    qg_writer_good(w, H5Pset_obj_track_times(properties, false));
    qg_writer_good(
        w, H5Pset_attr_phase_change(properties, 64, 48)); // no separate heap for a few attributes
    if (d->fill)
        qg_writer_good(w, H5Pset_fill_value(properties, d->type, d->fill));
    if (is_chunked(w, d)) {
        hsize_t chunk[2] = {slab, (hsize_t)d->columns};
        qg_writer_good(w, H5Pset_chunk(properties, d->columns ? 2 : 1, chunk));
        if (H5Tget_size(d->type) > 1)
            qg_writer_good(w, H5Pset_shuffle(properties));
        qg_writer_good(w, H5Pset_deflate(properties, 1));
    }
    return properties;
}

static void write_slab(qg_writer *w, const qg_dataset *d, hid_t target, hid_t space, hsize_t begin,
                       hsize_t count, const char *bytes) {
    hsize_t start[2] = {begin, 0}, extent[2] = {count, (hsize_t)d->columns};
    hid_t memory = H5Screate_simple(d->columns ? 2 : 1, extent, NULL);
    if (qg_writer_good(w, memory) &&
        qg_writer_good(w, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL)))
        qg_writer_good(w, H5Dwrite(target, d->type, memory, space, H5P_DEFAULT, bytes));
    if (memory >= 0)
        H5Sclose(memory);
}

// A chunk past HDF5's filters, which would pack it to the same elements in more time.
static void write_chunk(qg_writer *w, const qg_dataset *d, hid_t target, hsize_t begin,
                        hsize_t slab, const char *bytes) {
    hsize_t start[2] = {begin, 0};
    size_t count = (size_t)slab * (d->columns ? (size_t)d->columns : 1), size;
    const void *packed;
    qg_status status = qg_chunk_pack(w->packer, bytes, count, H5Tget_size(d->type), &packed, &size);
    if (status != QG_OK)
        qg_writer_fail(w, status);
    else
        qg_writer_good(w, H5Dwrite_chunk(target, H5P_DEFAULT, 0, start, size, packed));
}

// packs: the bytes are the file's, so that chunks can be packed here.
static void write_slabs(qg_writer *w, const qg_dataset *d, hid_t target, hid_t space, hsize_t slab,
                        size_t row_size, bool packs) {
    char *buffer = malloc((size_t)slab * row_size);
    if (!buffer) {
        qg_writer_fail_memory(w);
        return;
    }
    hsize_t rows = (hsize_t)d->rows;
    for (hsize_t begin = 0; begin < rows && !w->failed; begin += slab) {
        hsize_t count = rows - begin < slab ? rows - begin : slab;
        const char *bytes = d->values ? d->values + begin * row_size : buffer;
        if (!d->values)
            d->gather(w, d->context, (int64_t)begin, (int64_t)count, buffer);
        if (packs && count < slab) { // the last chunk is whole, too
            if (d->values)
                memcpy(buffer, bytes, (size_t)count * row_size);
            memset(buffer + count * row_size, 0, (size_t)(slab - count) * row_size);
            bytes = buffer;
        }
        if (packs)
            write_chunk(w, d, target, begin, slab, bytes);
        else
            write_slab(w, d, target, space, begin, count, bytes);
    }
    free(buffer);
}

static void write_elements(qg_writer *w, const qg_dataset *d, hid_t target, hid_t type, hid_t space,
                           hsize_t slab, size_t row_size) {
    if (is_chunked(w, d))
        write_slabs(w, d, target, space, slab, row_size, H5Tequal(d->type, type) > 0);
    else if (d->values)
        qg_writer_good(w, H5Dwrite(target, d->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, d->values));
    else
        write_slabs(w, d, target, space, slab, row_size, false);
}

static void put_documentation(qg_writer *w, hid_t target, const qg_dataset *d) {
    if (d->units)
        qg_writer_text_attribute(w, target, "units", d->units);
    if (d->long_name)
        qg_writer_text_attribute(w, target, "long_name", d->long_name);
    if (d->definition)
        qg_writer_text_attribute(w, target, "definition", d->definition);
    if (d->better)
        qg_writer_text_attribute(w, target, "better", d->better);
}

static hid_t file_type_of(hid_t type) {
    hid_t copy = H5Tcopy(type);
    if (copy >= 0 && H5Tget_class(type) != H5T_STRING)
        H5Tset_order(copy, H5T_ORDER_LE);
    return copy;
}

void qg_writer_dataset(qg_writer *w, hid_t group, const qg_dataset *d) {
    if (w->failed)
        return;
    size_t row_size = H5Tget_size(d->type) * (d->columns ? (size_t)d->columns : 1);
    hsize_t slab = row_size < SLAB_BYTES ? SLAB_BYTES / row_size : 1;
    slab = d->rows > 0 && slab > (hsize_t)d->rows ? (hsize_t)d->rows : slab;
    hsize_t dims[2] = {(hsize_t)d->rows, (hsize_t)d->columns};
    hid_t space = H5Screate_simple(d->columns ? 2 : 1, dims, NULL);
    hid_t properties = create_properties(w, d, slab);
    hid_t type = file_type_of(d->type);
    hid_t target =
        w->failed ? -1
                  : H5Dcreate2(group, d->name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (qg_writer_good(w, target)) {
        if (d->rows > 0 && (d->values || d->gather))
            write_elements(w, d, target, type, space, slab, row_size);
        put_documentation(w, target, d);
        qg_writer_good(w, H5Dclose(target));
    }
    H5Tclose(type);
    H5Pclose(properties);
    H5Sclose(space);
}

hid_t qg_writer_create_group(qg_writer *w, hid_t parent, const char *name) {
    if (w->failed)
        return -1;
    hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    qg_writer_good(w, H5Pset_obj_track_times(properties, false));
    qg_writer_good(w, H5Pset_link_phase_change(properties, 256, 128));
    qg_writer_good(w, H5Pset_attr_phase_change(properties, 64, 48));
    hid_t group = H5Gcreate2(parent, name, H5P_DEFAULT, properties, H5P_DEFAULT);
    H5Pclose(properties);
    qg_writer_good(w, group);
    return group;
}

void qg_writer_close_group(hid_t group) {
    if (group >= 0)
        H5Gclose(group);
}
