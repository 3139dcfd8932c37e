// Raw little-endian numbers, described by a sidecar PATH.json: {"dtype": "bf16", "shape": [m, k]}.
#include "tensor_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_SIDECAR = 1 << 16, LARGEST_RANK = 64 };

static qg_status malformed(const char *sidecar, const char *what) {
    return qg_fail(QG_ERROR_DATA, "%s: %s", sidecar, what);
}

// The sidecar's text; its size is bounded before anything is allocated.
static qg_status read_text(const qg_tensor_file *file, const char *sidecar, char **text,
                           size_t *length) {
    struct stat about;
    int fd = open(sidecar, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return qg_fail(QG_ERROR_IO,
                       "%s: is no .safetensors, .npy, .h5 or .hdf5, and a raw file needs its "
                       "sidecar %s.json, which is missing",
                       file->path, file->base);
    if (fd < 0)
        return qg_fail(QG_ERROR_IO, "%s: cannot open: %s", sidecar, strerror(errno));
    qg_status status = QG_OK;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        status = qg_fail(QG_ERROR_IO, "%s: not a regular file", sidecar);
    else if (about.st_size > LARGEST_SIDECAR)
        status = malformed(sidecar, "more than 65536 bytes are no sidecar");
    if (status == QG_OK) {
        qg_tensor_file view = {.path = (char *)(uintptr_t)sidecar, .fd = fd};
        *length = (size_t)about.st_size;
        *text = malloc(*length + 1);
        status = *text ? tensor_read_bytes(&view, 0, *text, (int64_t)*length)
                       : qg_fail(QG_ERROR_MEMORY, "no memory for a sidecar");
    }
    close(fd);
    return status;
}

static qg_status parse_shape(const char *sidecar, const json_t *array, int64_t *shape,
                             int64_t *rank) {
    if (!json_is_array(array) || json_array_size(array) == 0 ||
        json_array_size(array) > LARGEST_RANK)
        return malformed(sidecar, "\"shape\" is no array of 1 to 64 sizes");
    *rank = (int64_t)json_array_size(array);
    for (int64_t i = 0; i < *rank; i++) {
        const json_t *size = json_array_get(array, (size_t)i);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return malformed(sidecar, "\"shape\" holds something that is no positive integer");
        shape[i] = json_integer_value(size);
    }
    return QG_OK;
}

static qg_status parse_sidecar(const char *sidecar, const json_t *json, tensor_type *type,
                               int64_t *shape, int64_t *rank) {
    char text[TENSOR_TEXT_SIZE];
    if (!json_is_object(json))
        return malformed(sidecar, "is no JSON object");
    const char *dtype = json_string_value(json_object_get(json, "dtype"));
    if (!dtype)
        return malformed(sidecar, "has no \"dtype\"");
    if (json_object_size(json) > 2)
        return malformed(sidecar, "has keys beyond \"dtype\" and \"shape\"");
    *type = tensor_type_parse(dtype);
    if (*type == TENSOR_OTHER)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s: \"dtype\" %s is none of f64, f32, f16, bf16",
                       sidecar, tensor_text(dtype, text));
    return parse_shape(sidecar, json_object_get(json, "shape"), shape, rank);
}

static qg_status read_sidecar(const qg_tensor_file *file, tensor_type *type, int64_t *shape,
                              int64_t *rank) {
    size_t room = strlen(file->path) + sizeof ".json", length = 0;
    char *sidecar = malloc(room), *text = NULL;
    if (!sidecar)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a file name");
    snprintf(sidecar, room, "%s.json", file->path);
    qg_status status = read_text(file, sidecar, &text, &length);
    if (status == QG_OK) {
        json_error_t error;
        char reason[TENSOR_TEXT_SIZE];
        json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
        status = json ? parse_sidecar(sidecar, json, type, shape, rank)
                      : qg_fail(QG_ERROR_DATA, "%s: not valid JSON in line %d: %s", sidecar,
                                error.line, tensor_text(error.text, reason));
        json_decref(json);
    }
    free(text);
    free(sidecar);
    return status;
}

qg_status tensor_list_raw(qg_tensor_file *file) {
    tensor_type type = TENSOR_OTHER;
    int64_t shape[LARGEST_RANK], rank = 0, elements;
    qg_status status = read_sidecar(file, &type, shape, &rank);
    if (status != QG_OK)
        return status;
    if (tensor_elements(shape, rank, 64, &elements) != QG_OK)
        return qg_fail(QG_ERROR_DATA, "%s: the shape in its sidecar overflows", file->path);
    int64_t wanted = elements * tensor_type_size(type);
    if (wanted != file->size)
        return qg_fail(QG_ERROR_DATA,
                       "%s: its sidecar says %" PRId64 " elements of %s: %" PRId64
                       " bytes, but it has %" PRId64,
                       file->path, elements, tensor_type_name(type), wanted, file->size);
    tensor_entry *entry;
    status = tensor_add(file, file->base, tensor_type_name(type), &entry);
    return status == QG_OK ? tensor_place(entry, type, shape, rank, 0) : status;
}
