// HDF5: every data set of an IEEE or bfloat16 type, or of 64-bit integers, by its path without the
// leading slash.
// Soft and external links are not followed, nor data that lie in other files. The HDF5 library is
// asked in a child process, because it leaves its buffers on some damaged files (1.10.8, seen by
// AddressSanitizer); it converts byte order only: numbers are widened by our own code.
#include "tensor_reader.h"
#include <child_process_internal.h>

#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_RANK = 32, // H5S_MAX_RANK
    // A data set may claim far more elements than a file holds (they are its fill value). Beyond
    // this size the claim must be backed by stored bytes.
    UNBACKED_BYTES = 64 << 20,
    LARGEST_RATIO = 4096
};

static herr_t take_first(unsigned n, const H5E_error2_t *error, void *data) {
    if (n == 0 && error->desc)
        tensor_text(error->desc, data);
    return 0;
}

// The innermost of HDF5's own reasons for the failure just seen.
static const char *hdf5_reason(char text[TENSOR_TEXT_SIZE]) {
    strcpy(text, "no reason given");
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, text);
    return text;
}

static qg_status dataset_failed(const qg_tensor_file *file, const char *name, const char *what) {
    char text[TENSOR_TEXT_SIZE], reason[TENSOR_TEXT_SIZE];
    return qg_fail(QG_ERROR_DATA, "%s: data set \"%s\": cannot read its %s: %s", file->path,
                   tensor_text(name, text), what, hdf5_reason(reason));
}

// ------------------------------------------------------------------------------------ types

// The layout of a binary interchange format, as H5Tget_fields gives it.
typedef struct float_layout {
    tensor_type type;
    size_t size, exponent_at, exponent_bits, mantissa_bits, bias;
} float_layout;

static const float_layout layouts[] = {
    {TENSOR_F64,  8, 52, 11, 52, 1023},
    {TENSOR_F32,  4, 23, 8,  23, 127 },
    {TENSOR_F16,  2, 10, 5,  10, 15  },
    {TENSOR_BF16, 2, 7,  8,  7,  127 },
};

static bool is_i64(hid_t type) {
    H5T_order_t order = H5Tget_order(type);
    return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == 8 &&
           H5Tget_sign(type) == H5T_SGN_2 && H5Tget_precision(type) == 64 &&
           (order == H5T_ORDER_LE || order == H5T_ORDER_BE);
}

static tensor_type type_of(hid_t type) {
    size_t sign, exponent_at, exponent_bits, mantissa_at, mantissa_bits;
    if (is_i64(type))
        return TENSOR_I64;
    if (H5Tget_class(type) != H5T_FLOAT || H5Tget_norm(type) != H5T_NORM_IMPLIED ||
        H5Tget_fields(type, &sign, &exponent_at, &exponent_bits, &mantissa_at, &mantissa_bits) < 0)
        return TENSOR_OTHER;
    H5T_order_t order = H5Tget_order(type);
    size_t size = H5Tget_size(type);
    if ((order != H5T_ORDER_LE && order != H5T_ORDER_BE) || H5Tget_offset(type) != 0 ||
        H5Tget_precision(type) != 8 * size || sign != 8 * size - 1 || mantissa_at != 0)
        return TENSOR_OTHER;
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const float_layout *l = &layouts[i];
        if (l->size == size && l->exponent_at == exponent_at && l->exponent_bits == exponent_bits &&
            l->mantissa_bits == mantissa_bits && l->bias == H5Tget_ebias(type))
            return l->type;
    }
    return TENSOR_OTHER;
}

static const char *class_name(H5T_class_t class) {
    switch (class) {
    case H5T_INTEGER: return "integer";
    case H5T_FLOAT: return "float";
    case H5T_STRING: return "string";
    case H5T_COMPOUND: return "compound";
    case H5T_ENUM: return "enum";
    case H5T_ARRAY: return "array";
    case H5T_VLEN: return "variable length";
    case H5T_REFERENCE: return "reference";
    default: return "other";
    }
}

// ------------------------------------------------------------------------------------ listing

static bool lies_elsewhere(hid_t dataset) {
    hid_t creation = H5Dget_create_plist(dataset);
    if (creation < 0)
        return true;
    bool elsewhere = H5Pget_layout(creation) == H5D_VIRTUAL || H5Pget_external_count(creation) != 0;
    H5Pclose(creation);
    return elsewhere;
}

static qg_status place_dataset(const qg_tensor_file *file, hid_t dataset, hid_t space,
                               tensor_type type, tensor_entry *entry) {
    char name[TENSOR_TEXT_SIZE];
    hsize_t dimensions[LARGEST_RANK];
    int64_t shape[LARGEST_RANK], elements;
    if (H5Sget_simple_extent_type(space) == H5S_NULL)
        return tensor_skip(entry, "it has no elements");
    int rank = H5Sget_simple_extent_dims(space, dimensions, NULL);
    if (rank < 0 || rank > LARGEST_RANK)
        return dataset_failed(file, entry->name, "shape");
    for (int i = 0; i < rank; i++) {
        if (dimensions[i] > INT64_MAX)
            return qg_fail(QG_ERROR_DATA, "%s: data set \"%s\": its shape overflows", file->path,
                           tensor_text(entry->name, name));
        shape[i] = (int64_t)dimensions[i];
    }
    if (tensor_elements(shape, rank, 64, &elements) != QG_OK)
        return qg_fail(QG_ERROR_DATA, "%s: data set \"%s\": its shape overflows", file->path,
                       tensor_text(entry->name, name));
    int64_t bytes = elements * tensor_type_size(type);
    unsigned long long stored = H5Dget_storage_size(dataset);
    if (stored > (unsigned long long)file->size)
        return qg_fail(QG_ERROR_DATA,
                       "%s: data set \"%s\": claims %llu stored bytes in a file of %" PRId64,
                       file->path, tensor_text(entry->name, name), stored, file->size);
    if (bytes > UNBACKED_BYTES && (unsigned long long)(bytes / LARGEST_RATIO) > stored)
        return tensor_skip(entry, "%" PRId64 " bytes of values are backed by %llu stored ones",
                           bytes, stored);
    return tensor_place(entry, type, shape, rank, 0);
}

// What is no data to quantize: with a shape where its values could be read as indices.
static qg_status skip_dataset(const qg_tensor_file *file, hid_t dataset, hid_t space, hid_t type_id,
                              tensor_entry *entry) {
    bool indices = type_of(type_id) == TENSOR_I64 && !lies_elsewhere(dataset);
    qg_status status = indices ? place_dataset(file, dataset, space, TENSOR_I64, entry) : QG_OK;
    if (status != QG_OK && status != QG_ERROR_DATA)
        return status;
    return tensor_skip(entry, "%s of %zu bytes is none of f64, f32, f16, bf16", entry->dtype,
                       H5Tget_size(type_id));
}

static qg_status list_dataset(qg_tensor_file *file, const char *name, hid_t dataset) {
    hid_t type_id = H5Dget_type(dataset), space = H5Dget_space(dataset);
    qg_status status = QG_OK;
    if (type_id < 0)
        status = dataset_failed(file, name, "type");
    else if (space < 0)
        status = dataset_failed(file, name, "shape");
    tensor_entry *entry = NULL;
    tensor_type type = status == QG_OK ? type_of(type_id) : TENSOR_OTHER;
    if (status == QG_OK)
        status = tensor_add(file, name, class_name(H5Tget_class(type_id)), &entry);
    if (status == QG_OK) {
        if (type == TENSOR_OTHER || type == TENSOR_I64)
            status = skip_dataset(file, dataset, space, type_id, entry);
        else if (lies_elsewhere(dataset))
            status = tensor_skip(entry, "its data lie in other files");
        else
            status = place_dataset(file, dataset, space, type, entry);
    }
    if (space >= 0)
        H5Sclose(space);
    if (type_id >= 0)
        H5Tclose(type_id);
    return status;
}

#if H5_VERSION_GE(1, 12, 0)
typedef H5O_info2_t object_info;
#define VISIT_OBJECTS H5Ovisit3
#else
typedef H5O_info_t object_info;
#define VISIT_OBJECTS H5Ovisit2
#endif

typedef struct visit {
    qg_tensor_file *file;
    qg_status status;
} visit;

static herr_t visit_object(hid_t root, const char *name, const object_info *info, void *data) {
    visit *v = data;
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT);
    if (dataset < 0) {
        v->status = dataset_failed(v->file, name, "header");
        return 1;
    }
    v->status = list_dataset(v->file, name, dataset);
    H5Dclose(dataset);
    return v->status == QG_OK ? 0 : 1;
}

static qg_status open_hdf5(const qg_tensor_file *file, hid_t *out) {
    char reason[TENSOR_TEXT_SIZE];
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *out = H5Fopen(file->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    return *out >= 0 ? QG_OK
                     : qg_fail(QG_ERROR_DATA, "%s: cannot be opened as HDF5: %s", file->path,
                               hdf5_reason(reason));
}

static qg_status visit_all(qg_tensor_file *file) {
    char reason[TENSOR_TEXT_SIZE];
    hid_t hdf5;
    qg_status status = open_hdf5(file, &hdf5);
    if (status != QG_OK)
        return status;
    visit v = {file, QG_OK};
    herr_t ended =
        VISIT_OBJECTS(hdf5, H5_INDEX_NAME, H5_ITER_INC, visit_object, &v, H5O_INFO_BASIC);
    if (v.status == QG_OK && ended < 0)
        return qg_fail(QG_ERROR_DATA, "%s: cannot list its objects: %s", file->path,
                       hdf5_reason(reason));
    return v.status;
}

// ------------------------------------------------------------------------------------ reading

// The type as stored, but little endian.
static hid_t memory_type(hid_t dataset) {
    hid_t stored = H5Dget_type(dataset);
    if (stored < 0)
        return -1;
    hid_t memory = H5Tcopy(stored);
    H5Tclose(stored);
    if (memory >= 0 && H5Tset_order(memory, H5T_ORDER_LE) < 0) {
        H5Tclose(memory);
        return -1;
    }
    return memory;
}

static qg_status read_values(const qg_tensor_file *file, const tensor_entry *entry, hid_t dataset,
                             uint8_t *raw) {
    hid_t type = memory_type(dataset), space = H5Dget_space(dataset);
    if (type < 0 || type_of(type) != entry->type)
        return dataset_failed(file, entry->name, "type");
    if (space < 0 || H5Sget_simple_extent_npoints(space) != entry->m * entry->k)
        return dataset_failed(file, entry->name, "shape");
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw) < 0)
        return dataset_failed(file, entry->name, "values");
    return QG_OK;
}

static qg_status open_and_read(const qg_tensor_file *file, const tensor_entry *entry,
                               uint8_t *raw) {
    hid_t hdf5;
    qg_status status = open_hdf5(file, &hdf5);
    if (status != QG_OK)
        return status;
    hid_t dataset = H5Dopen2(hdf5, entry->name, H5P_DEFAULT);
    return dataset < 0 ? dataset_failed(file, entry->name, "header")
                       : read_values(file, entry, dataset, raw);
}

// ------------------------------------------------------------------------------------ the child
// What it sends: a status, its detail; then, if all went well, records or values. The handles that
// it leaves open end with it.

enum { DETAIL_SIZE = 512, LARGEST_NAME = 1 << 16 };

static bool send_status(int to, qg_status status) {
    char detail[DETAIL_SIZE] = "";
    int32_t number = (int32_t)status;
    if (status != QG_OK)
        snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_child_send(to, &number, sizeof number) && qg_child_send(to, detail, sizeof detail);
}

// The child's status, or that it died.
static qg_status take_status(const qg_tensor_file *file, const qg_child *child) {
    char detail[DETAIL_SIZE];
    int32_t number;
    if (!qg_child_take(child, &number, sizeof number) ||
        !qg_child_take(child, detail, sizeof detail))
        return qg_fail(QG_ERROR_DATA, "%s: is damaged: the HDF5 library crashed on it", file->path);
    detail[DETAIL_SIZE - 1] = 0;
    return number == QG_OK ? QG_OK : qg_fail((qg_status)number, "%s", detail);
}

static bool send_text(int to, const char *text) {
    int64_t size = text ? (int64_t)strlen(text) : -1;
    return qg_child_send(to, &size, sizeof size) &&
           (size <= 0 || qg_child_send(to, text, (size_t)size));
}

static void list_in_child(void *context, int to) {
    qg_tensor_file *file = context;
    if (!send_status(to, visit_all(file)))
        return;
    qg_child_send(to, &file->count, sizeof file->count);
    for (int64_t i = 0; i < file->count; i++) {
        const tensor_entry *entry = &file->entries[i];
        if (!send_text(to, entry->name) || !send_text(to, entry->dtype) ||
            !send_text(to, entry->skipped) || !qg_child_send(to, &entry->m, sizeof entry->m) ||
            !qg_child_send(to, &entry->k, sizeof entry->k) ||
            !qg_child_send(to, &entry->type, sizeof entry->type))
            return;
    }
}

// A text of at most LARGEST_NAME bytes; *text stays NULL for an absent one.
static bool take_text(const qg_child *child, char **text) {
    int64_t size;
    *text = NULL;
    if (!qg_child_take(child, &size, sizeof size) || size > LARGEST_NAME)
        return false;
    if (size < 0)
        return true;
    *text = calloc((size_t)size + 1, 1);
    return *text && qg_child_take(child, *text, (size_t)size);
}

// The child's memory may have been damaged before it answered: its words are checked again.
static bool take_entry(const qg_child *child, qg_tensor_file *file) {
    char *name = NULL, *dtype = NULL, *skipped = NULL;
    tensor_entry *entry;
    tensor_type type = TENSOR_OTHER;
    int64_t shape[2], bytes;
    bool taken =
        take_text(child, &name) && take_text(child, &dtype) && take_text(child, &skipped) && name &&
        dtype && qg_child_take(child, shape, sizeof shape) &&
        qg_child_take(child, &type, sizeof type) && tensor_add(file, name, dtype, &entry) == QG_OK;
    if (taken && (!skipped || type == TENSOR_I64)) // indices are never read as data
        taken = (skipped || type != TENSOR_I64) && shape[0] > 0 && shape[1] > 0 &&
                tensor_type_size(type) > 0 && tensor_elements(shape, 2, 64, &bytes) == QG_OK &&
                tensor_place(entry, type, shape, 2, 0) == QG_OK;
    if (taken && skipped)
        taken = tensor_skip(entry, "%s", skipped) == QG_OK;
    free(name);
    free(dtype);
    free(skipped);
    return taken;
}

qg_status tensor_list_hdf5(qg_tensor_file *file) {
    enum { CPU_SECONDS = 60 };
    qg_child child;
    int64_t count;
    file->is_hdf5 = true;
    qg_status status = qg_child_start(list_in_child, file, CPU_SECONDS, &child);
    if (status != QG_OK)
        return status;
    status = take_status(file, &child);
    bool whole = status == QG_OK && qg_child_take(&child, &count, sizeof count);
    for (int64_t i = 0; whole && i < count; i++)
        whole = take_entry(&child, file);
    qg_child_end(&child);
    if (status == QG_OK && !whole)
        status = qg_fail(QG_ERROR_DATA, "%s: is damaged: the HDF5 library lost its way in it",
                         file->path);
    return status;
}

typedef struct reading {
    qg_tensor_file *file;
    const tensor_entry *entry;
} reading;

static void read_in_child(void *context, int to) {
    const reading *r = context;
    size_t size = (size_t)(r->entry->m * r->entry->k * tensor_type_size(r->entry->type));
    uint8_t *raw = malloc(size);
    qg_status status =
        raw ? open_and_read(r->file, r->entry, raw)
            : qg_fail(QG_ERROR_MEMORY, "%s: no memory for %zu bytes", r->file->path, size);
    if (send_status(to, status) && status == QG_OK)
        qg_child_send(to, raw, size);
    free(raw);
}

qg_status tensor_read_hdf5(qg_tensor_file *file, const tensor_entry *entry, void *x) {
    enum { SLICE = 8192, CPU_SECONDS = 3600 };
    uint8_t raw[SLICE * 8];
    reading r = {file, entry};
    qg_child child;
    qg_status status = qg_child_start(read_in_child, &r, CPU_SECONDS, &child);
    if (status != QG_OK)
        return status;
    status = take_status(file, &child);
    int64_t elements = entry->m * entry->k, size = tensor_type_size(entry->type);
    for (int64_t first = 0; status == QG_OK && first < elements; first += SLICE) {
        int64_t count = elements - first < SLICE ? elements - first : SLICE;
        if (qg_child_take(&child, raw, (size_t)(count * size)))
            tensor_take(entry->type, raw, first, count, x);
        else
            status = qg_fail(QG_ERROR_DATA, "%s: the values of \"%s\" end early", file->path,
                             entry->name);
    }
    qg_child_end(&child);
    return status;
}
