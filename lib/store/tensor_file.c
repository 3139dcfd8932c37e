// Tensor files: opening, the sorted list, reading and digests. See qg_tensor_file.h.
// Which bytes are a tensor's is decided by one reader per kind of file (tensor_*.c).
#include "tensor_reader.h"

#include <qg_bits.h>
#include <qg_digest.h>
#include <qg_memory.h>
#include <qg_size.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct type_row {
    tensor_type type;
    int64_t size;
    const char *name, *format_name, *long_name;
} type_row;

static const type_row types[] = {
    {TENSOR_F64,  8, "f64",  "fp64", "float64" },
    {TENSOR_F32,  4, "f32",  "fp32", "float32" },
    {TENSOR_F16,  2, "f16",  "fp16", "float16" },
    {TENSOR_BF16, 2, "bf16", "bf16", "bfloat16"},
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

int64_t tensor_type_size(tensor_type type) {
    if (type == TENSOR_I64)
        return 8;
    for (int i = 0; i < TYPE_COUNT; i++)
        if (types[i].type == type)
            return types[i].size;
    return 0;
}

const char *tensor_type_name(tensor_type type) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (types[i].type == type)
            return types[i].name;
    return "other";
}

tensor_type tensor_type_parse(const char *name) {
    for (int i = 0; i < TYPE_COUNT; i++)
        if (!strcasecmp(name, types[i].name) || !strcasecmp(name, types[i].format_name) ||
            !strcasecmp(name, types[i].long_name))
            return types[i].type;
    return TENSOR_OTHER;
}

const char *tensor_text(const char *text, char out[TENSOR_TEXT_SIZE]) {
    size_t length = 0;
    for (; text[length] && length < TENSOR_TEXT_SIZE - 1; length++) {
        unsigned char c = (unsigned char)text[length];
        out[length] = c < 0x20 || c == 0x7f ? '?' : (char)c;
    }
    out[length] = 0;
    if (text[length])
        memcpy(out + length - 3, "...", 3);
    return out;
}

// ------------------------------------------------------------------------------- the list

static qg_status no_memory(void) {
    return qg_fail(QG_ERROR_MEMORY, "no memory for the list of tensors");
}

qg_status tensor_add(qg_tensor_file *file, const char *name, const char *dtype,
                     tensor_entry **out) {
    if (file->count == file->room) {
        int64_t room = file->room ? 2 * file->room : 16;
        tensor_entry *entries = realloc(file->entries, (size_t)room * sizeof *entries);
        if (!entries)
            return no_memory();
        file->entries = entries;
        file->room = room;
    }
    tensor_entry *entry = &file->entries[file->count++];
    memset(entry, 0, sizeof *entry);
    entry->name = strdup(name);
    entry->dtype = strdup(dtype);
    *out = entry;
    return entry->name && entry->dtype ? QG_OK : no_memory();
}

qg_status tensor_skip(tensor_entry *entry, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    free(entry->skipped);
    entry->skipped = strdup(text);
    return entry->skipped ? QG_OK : no_memory();
}

qg_status tensor_elements(const int64_t *shape, int64_t rank, int64_t bits, int64_t *out) {
    int64_t product = 1, unused;
    bool empty = false;
    for (int64_t i = 0; i < rank; i++) {
        empty = empty || shape[i] == 0;
        if (!qg_size_multiply(product, shape[i] ? shape[i] : 1, &product))
            return qg_fail(QG_ERROR_OVERFLOW, "its shape has more than 2^63 - 1 elements");
    }
    if (!qg_size_multiply(product, bits, &unused))
        return qg_fail(QG_ERROR_OVERFLOW, "its shape has %" PRId64 " elements: too many bytes",
                       product);
    *out = empty ? 0 : product;
    return QG_OK;
}

qg_status tensor_place(tensor_entry *entry, tensor_type type, const int64_t *shape, int64_t rank,
                       int64_t offset) {
    int64_t elements;
    qg_status status = tensor_elements(shape, rank, 64, &elements);
    if (status != QG_OK)
        return status;
    if (rank == 0)
        return tensor_skip(entry, "a single number is no matrix");
    if (elements == 0)
        return tensor_skip(entry, "it has no elements");
    entry->type = type;
    entry->offset = offset;
    entry->k = shape[rank - 1];
    entry->m = elements / entry->k;
    if (type == TENSOR_I64)
        return QG_OK;
    free(entry->dtype);
    entry->dtype = strdup(tensor_type_name(type));
    return entry->dtype ? QG_OK : no_memory();
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const tensor_entry *)a)->name, ((const tensor_entry *)b)->name);
}

// ------------------------------------------------------------------------------- opening

// Non-blocking, so that a pipe is refused instead of waited for.
static qg_status open_regular(qg_tensor_file *file) {
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file->fd < 0)
        return qg_fail(QG_ERROR_IO, "%s: cannot open: %s", file->path, strerror(errno));
    struct stat about;
    if (fstat(file->fd, &about) != 0)
        return qg_fail(QG_ERROR_IO, "%s: cannot stat: %s", file->path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return qg_fail(QG_ERROR_IO, "%s: not a regular file", file->path);
    file->size = about.st_size;
    return QG_OK;
}

static bool has_suffix(const char *path, const char *suffix) {
    size_t length = strlen(path), suffix_length = strlen(suffix);
    return length > suffix_length && !strcasecmp(path + length - suffix_length, suffix);
}

static qg_status list_tensors(qg_tensor_file *file) {
    if (has_suffix(file->base, ".safetensors"))
        return tensor_list_safetensors(file);
    if (has_suffix(file->base, ".npy"))
        return tensor_list_npy(file);
    if (has_suffix(file->base, ".h5") || has_suffix(file->base, ".hdf5"))
        return tensor_list_hdf5(file);
    return tensor_list_raw(file);
}

qg_status qg_tensor_file_open(const char *path, qg_tensor_file **out) {
    *out = NULL;
    qg_tensor_file *file = calloc(1, sizeof *file);
    if (!file)
        return no_memory();
    file->fd = -1;
    file->path = strdup(path);
    qg_status status = file->path ? QG_OK : no_memory();
    if (status == QG_OK) {
        const char *slash = strrchr(file->path, '/');
        file->base = slash ? slash + 1 : file->path;
        status = open_regular(file);
    }
    if (status == QG_OK)
        status = list_tensors(file);
    if (status != QG_OK) {
        qg_tensor_file_close(file);
        return status;
    }
    if (file->count > 1)
        qsort(file->entries, (size_t)file->count, sizeof file->entries[0], by_name);
    *out = file;
    return QG_OK;
}

void qg_tensor_file_close(qg_tensor_file *file) {
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    for (int64_t i = 0; i < file->count; i++) {
        free(file->entries[i].name);
        free(file->entries[i].dtype);
        free(file->entries[i].skipped);
    }
    free(file->entries);
    free(file->path);
    free(file);
}

const char *qg_tensor_file_name(const qg_tensor_file *file) { return file->base; }

int64_t qg_tensor_file_count(const qg_tensor_file *file) { return file->count; }

qg_tensor_info qg_tensor_file_info(const qg_tensor_file *file, int64_t index) {
    const tensor_entry *entry = &file->entries[index];
    qg_tensor_info info = {entry->name, entry->dtype, entry->m, entry->k, entry->skipped};
    return info;
}

static int name_order(const void *name, const void *entry) {
    return strcmp(name, ((const tensor_entry *)entry)->name);
}

int64_t qg_tensor_file_find(const qg_tensor_file *file, const char *name) {
    if (file->count == 0)
        return -1;
    const tensor_entry *found =
        bsearch(name, file->entries, (size_t)file->count, sizeof file->entries[0], name_order);
    return found ? found - file->entries : -1;
}

// ------------------------------------------------------------------------------- reading

qg_status tensor_read_bytes(const qg_tensor_file *file, int64_t offset, void *out, int64_t size) {
    uint8_t *to = out;
    while (size > 0) {
        size_t wanted = size > 1 << 30 ? (size_t)1 << 30 : (size_t)size;
        ssize_t got = pread(file->fd, to, wanted, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return qg_fail(QG_ERROR_IO, "%s: cannot read at byte %" PRId64 ": %s", file->path,
                           offset, strerror(errno));
        if (got == 0)
            return qg_fail(QG_ERROR_IO,
                           "%s: the file ends at byte %" PRId64 ": it shrank since it was opened",
                           file->path, offset);
        to += got;
        offset += got;
        size -= got;
    }
    return QG_OK;
}

static uint64_t little_endian(const uint8_t *raw, int size) {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; i--)
        value = value << 8 | raw[i];
    return value;
}

static float from_f64(uint64_t bits) {
    if ((bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull)
        return qg_float_of_bits((uint32_t)(bits >> 32 & 0x80000000u) | 0x7fc00000u);
    double x = qg_double_of_bits(bits);
    // The cast of a larger magnitude is undefined in C; IEEE rounds it to infinity.
    if (x >= 0x1.ffffffp127)
        return qg_float_of_bits(0x7f800000u);
    if (x <= -0x1.ffffffp127)
        return qg_float_of_bits(0xff800000u);
    return (float)x;
}

static float from_f16(uint32_t bits) {
    uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ffu;
    if (exponent == 31)
        return qg_float_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0)
        return qg_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return qg_float_of_bits(sign | qg_bits_of_float(magnitude));
}

void tensor_widen(tensor_type type, const uint8_t *raw, int64_t count, float *x) {
    switch (type) {
    case TENSOR_F64:
        for (int64_t i = 0; i < count; i++)
            x[i] = from_f64(little_endian(raw + 8 * i, 8));
        break;
    case TENSOR_F32:
        for (int64_t i = 0; i < count; i++)
            x[i] = qg_float_of_bits((uint32_t)little_endian(raw + 4 * i, 4));
        break;
    case TENSOR_F16:
        for (int64_t i = 0; i < count; i++)
            x[i] = from_f16((uint32_t)little_endian(raw + 2 * i, 2));
        break;
    case TENSOR_BF16:
        for (int64_t i = 0; i < count; i++)
            x[i] = qg_float_of_bits((uint32_t)little_endian(raw + 2 * i, 2) << 16);
        break;
    case TENSOR_I64:
    case TENSOR_OTHER: break;
    }
}

void tensor_take(tensor_type type, const uint8_t *raw, int64_t first, int64_t count, void *x) {
    if (type != TENSOR_I64) {
        tensor_widen(type, raw, count, (float *)x + first);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        ((int64_t *)x)[first + i] = (int64_t)little_endian(raw + 8 * i, 8);
}

// In slices, so that a large tensor needs no second copy. x: as tensor_take fills it.
static qg_status read_stored(const qg_tensor_file *file, const tensor_entry *entry, void *x) {
    enum { SLICE = 8192 };
    uint8_t raw[SLICE * 8];
    int64_t size = tensor_type_size(entry->type), elements = entry->m * entry->k;
    for (int64_t first = 0; first < elements; first += SLICE) {
        int64_t count = elements - first < SLICE ? elements - first : SLICE;
        qg_status status = tensor_read_bytes(file, entry->offset + first * size, raw, count * size);
        if (status != QG_OK)
            return status;
        tensor_take(entry->type, raw, first, count, x);
    }
    return QG_OK;
}

static qg_status read_any(qg_tensor_file *file, const tensor_entry *entry, void *x) {
    return file->is_hdf5 ? tensor_read_hdf5(file, entry, x) : read_stored(file, entry, x);
}

static qg_status check_index(const qg_tensor_file *file, int64_t index) {
    if (index < 0 || index >= file->count)
        return qg_fail(QG_ERROR_ARGUMENT, "%s: has %" PRId64 " tensors, no number %" PRId64,
                       file->path, file->count, index);
    return QG_OK;
}

static qg_status check_readable(const qg_tensor_file *file, int64_t index) {
    char name[TENSOR_TEXT_SIZE];
    qg_status status = check_index(file, index);
    if (status != QG_OK)
        return status;
    const tensor_entry *entry = &file->entries[index];
    if (entry->skipped)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s: tensor \"%s\" cannot be read: %s", file->path,
                       tensor_text(entry->name, name), entry->skipped);
    return QG_OK;
}

qg_status qg_tensor_file_read(qg_tensor_file *file, int64_t index, float *x) {
    qg_status status = check_readable(file, index);
    if (status != QG_OK)
        return status;
    return read_any(file, &file->entries[index], x);
}

qg_status qg_tensor_file_read_i64(qg_tensor_file *file, int64_t index, int64_t *x) {
    char name[TENSOR_TEXT_SIZE];
    qg_status status = check_index(file, index);
    if (status != QG_OK)
        return status;
    const tensor_entry *entry = &file->entries[index];
    if (entry->type != TENSOR_I64)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s: tensor \"%s\" (%s) has no 64-bit integers",
                       file->path, tensor_text(entry->name, name), entry->dtype);
    return read_any(file, entry, x);
}

static void digest_values(qg_digest *digest, const float *x, int64_t count) {
    enum { SLICE = 1024 };
    uint8_t bytes[4 * SLICE];
    for (int64_t first = 0; first < count; first += SLICE) {
        int64_t slice = count - first < SLICE ? count - first : SLICE;
        for (int64_t i = 0; i < slice; i++) {
            uint32_t bits = qg_bits_of_float(x[first + i]);
            for (int b = 0; b < 4; b++)
                bytes[4 * i + b] = (uint8_t)(bits >> (8 * b));
        }
        qg_digest_add(digest, bytes, (size_t)(4 * slice));
    }
}

qg_status qg_tensor_file_digest(qg_tensor_file *file, int64_t index, uint64_t *out) {
    qg_status status = check_readable(file, index);
    if (status != QG_OK)
        return status;
    int64_t count = file->entries[index].m * file->entries[index].k;
    void *x = NULL;
    qg_digest *digest = NULL;
    status = qg_allocate(&x, count, sizeof(float), "a tensor");
    if (status == QG_OK)
        status = qg_tensor_file_read(file, index, x);
    if (status == QG_OK)
        status = qg_digest_create(&digest);
    if (status == QG_OK) {
        digest_values(digest, x, count);
        *out = qg_digest_value(digest);
    }
    qg_digest_free(digest);
    qg_release(x);
    return status;
}
