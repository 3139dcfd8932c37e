// .safetensors: u64 little-endian length of the header, the header (JSON), the buffer.
// Source: huggingface/safetensors, README "Format" and src/tensor.rs: the header starts with {, has
// at most 100 MB and no duplicate keys; offsets count from the end of the header; the tensors cover
// the buffer without overlap and without holes.
#include "tensor_reader.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { PREFIX = 8, LARGEST_HEADER = 100000000, LARGEST_RANK = 64 };

typedef struct dtype_row {
    const char *name;
    tensor_type type;
    int bits;
} dtype_row;

static const dtype_row dtypes[] = {
    {"F64",         TENSOR_F64,   64},
    {"F32",         TENSOR_F32,   32},
    {"F16",         TENSOR_F16,   16},
    {"BF16",        TENSOR_BF16,  16},
    {"BOOL",        TENSOR_OTHER, 8 },
    {"U8",          TENSOR_OTHER, 8 },
    {"I8",          TENSOR_OTHER, 8 },
    {"U16",         TENSOR_OTHER, 16},
    {"I16",         TENSOR_OTHER, 16},
    {"U32",         TENSOR_OTHER, 32},
    {"I32",         TENSOR_OTHER, 32},
    {"U64",         TENSOR_OTHER, 64},
    {"I64",         TENSOR_I64,   64},
    {"C64",         TENSOR_OTHER, 64},
    {"F8_E4M3",     TENSOR_OTHER, 8 },
    {"F8_E5M2",     TENSOR_OTHER, 8 },
    {"F8_E8M0",     TENSOR_OTHER, 8 },
    {"F8_E4M3FNUZ", TENSOR_OTHER, 8 },
    {"F8_E5M2FNUZ", TENSOR_OTHER, 8 },
    {"F6_E2M3",     TENSOR_OTHER, 6 },
    {"F6_E3M2",     TENSOR_OTHER, 6 },
    {"F4",          TENSOR_OTHER, 4 },
};

static const dtype_row *find_dtype(const char *name) {
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (!strcmp(name, dtypes[i].name))
            return &dtypes[i];
    return NULL;
}

// The stretch of the buffer that a tensor claims.
typedef struct stretch {
    int64_t begin, end;
    const char *name; // owned by the JSON document
} stretch;

// What is being read: the file and the places of its parts.
typedef struct reading {
    qg_tensor_file *file;
    int64_t buffer, buffer_size; // the buffer's place in the file
    stretch *stretches;
    int64_t count;
} reading;

static qg_status malformed(const reading *r, const char *name, const char *what) {
    char text[TENSOR_TEXT_SIZE];
    return qg_fail(QG_ERROR_DATA, "%s: tensor \"%s\": %s", r->file->path, tensor_text(name, text),
                   what);
}

// A non-negative integer of the header. jansson has refused those beyond 2^63 - 1.
static bool take_size(const json_t *value, int64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = json_integer_value(value);
    return true;
}

static qg_status read_shape(const reading *r, const char *name, const json_t *array,
                            int64_t shape[LARGEST_RANK], int64_t *rank) {
    if (!json_is_array(array))
        return malformed(r, name, "has no \"shape\" array");
    if (json_array_size(array) > LARGEST_RANK)
        return malformed(r, name, "has a shape of more than 64 dimensions");
    *rank = (int64_t)json_array_size(array);
    for (int64_t i = 0; i < *rank; i++)
        if (!take_size(json_array_get(array, (size_t)i), &shape[i]))
            return malformed(r, name, "has a shape that is not non-negative integers");
    return QG_OK;
}

static qg_status read_offsets(const reading *r, const char *name, const json_t *array, stretch *s) {
    s->name = name;
    if (!json_is_array(array) || json_array_size(array) != 2 ||
        !take_size(json_array_get(array, 0), &s->begin) ||
        !take_size(json_array_get(array, 1), &s->end))
        return malformed(r, name, "has no \"data_offsets\" of two non-negative integers");
    if (s->begin > s->end || s->end > r->buffer_size) {
        char text[TENSOR_TEXT_SIZE];
        return qg_fail(QG_ERROR_DATA,
                       "%s: tensor \"%s\": data_offsets [%" PRId64 ", %" PRId64
                       "] are no range within the buffer of %" PRId64 " bytes",
                       r->file->path, tensor_text(name, text), s->begin, s->end, r->buffer_size);
    }
    return QG_OK;
}

// The stretch must be as long as dtype and shape say.
static qg_status check_length(const reading *r, const stretch *s, const dtype_row *dtype,
                              const int64_t *shape, int64_t rank) {
    int64_t elements;
    if (tensor_elements(shape, rank, dtype->bits, &elements) != QG_OK)
        return malformed(r, s->name, "its shape has more than 2^63 - 1 bits");
    int64_t bits = elements * dtype->bits;
    if (bits % 8 == 0 && bits / 8 == s->end - s->begin)
        return QG_OK;
    char text[TENSOR_TEXT_SIZE];
    return qg_fail(QG_ERROR_DATA,
                   "%s: tensor \"%s\": data_offsets [%" PRId64 ", %" PRId64 "] are %" PRId64
                   " bytes, but %" PRId64 " elements of %s are %" PRId64,
                   r->file->path, tensor_text(s->name, text), s->begin, s->end, s->end - s->begin,
                   elements, dtype->name, bits / 8 + (bits % 8 != 0));
}

static qg_status read_tensor(reading *r, const char *name, const json_t *tensor) {
    char text[TENSOR_TEXT_SIZE], word[TENSOR_TEXT_SIZE];
    if (!json_is_object(tensor))
        return malformed(r, name, "is no JSON object");
    if (json_object_size(tensor) > 3)
        return malformed(r, name, "has keys beyond dtype, shape and data_offsets");
    const char *dtype_name = json_string_value(json_object_get(tensor, "dtype"));
    if (!dtype_name)
        return malformed(r, name, "has no \"dtype\"");
    int64_t shape[LARGEST_RANK], rank = 0;
    qg_status status = read_shape(r, name, json_object_get(tensor, "shape"), shape, &rank);
    stretch *s = &r->stretches[r->count];
    if (status == QG_OK)
        status = read_offsets(r, name, json_object_get(tensor, "data_offsets"), s);
    if (status != QG_OK)
        return status;
    r->count++;
    tensor_entry *entry;
    status = tensor_add(r->file, name, tensor_text(dtype_name, word), &entry);
    if (status != QG_OK)
        return status;
    const dtype_row *dtype = find_dtype(dtype_name);
    if (!dtype)
        return tensor_skip(entry, "%s is not a known type", word);
    status = check_length(r, s, dtype, shape, rank);
    if (status != QG_OK)
        return status;
    if (dtype->type != TENSOR_OTHER)
        status = tensor_place(entry, dtype->type, shape, rank, r->buffer + s->begin);
    if (status == QG_ERROR_OVERFLOW)
        return qg_fail(QG_ERROR_DATA, "%s: tensor \"%s\": its shape overflows", r->file->path,
                       tensor_text(name, text));
    if (status != QG_OK || (dtype->type != TENSOR_OTHER && dtype->type != TENSOR_I64))
        return status;
    return tensor_skip(
        entry, dtype->name[0] == 'F' ? "%s is quantized already" : "%s is no floating-point type",
        word);
}

static int by_begin(const void *a, const void *b) {
    const stretch *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static qg_status check_cover(reading *r) {
    char text[TENSOR_TEXT_SIZE];
    if (r->count > 1)
        qsort(r->stretches, (size_t)r->count, sizeof r->stretches[0], by_begin);
    int64_t end = 0;
    for (int64_t i = 0; i < r->count; i++) {
        const stretch *s = &r->stretches[i];
        if (s->begin != end)
            return qg_fail(QG_ERROR_DATA,
                           "%s: tensor \"%s\": data_offsets [%" PRId64 ", %" PRId64 "] %s %" PRId64,
                           r->file->path, tensor_text(s->name, text), s->begin, s->end,
                           s->begin < end ? "overlap the tensor that ends at"
                                          : "leave a hole behind byte",
                           end);
        end = s->end;
    }
    if (end != r->buffer_size)
        return qg_fail(QG_ERROR_DATA,
                       "%s: the tensors end at byte %" PRId64 " of a buffer of %" PRId64,
                       r->file->path, end, r->buffer_size);
    return QG_OK;
}

static qg_status check_metadata(const reading *r, const json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return qg_fail(QG_ERROR_DATA, "%s: __metadata__ is no JSON object", r->file->path);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) if (
        !json_is_string(value)) return qg_fail(QG_ERROR_DATA,
                                               "%s: __metadata__ holds more than strings",
                                               r->file->path);
    return QG_OK;
}

static qg_status read_header(reading *r, json_t *header) {
    if (!json_is_object(header))
        return qg_fail(QG_ERROR_DATA, "%s: the header is no JSON object", r->file->path);
    r->stretches = calloc(json_object_size(header) + 1, sizeof *r->stretches);
    if (!r->stretches)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the list of tensors");
    const char *name;
    json_t *value;
    json_object_foreach(header, name, value) {
        qg_status status =
            strcmp(name, "__metadata__") ? read_tensor(r, name, value) : check_metadata(r, value);
        if (status != QG_OK)
            return status;
    }
    return check_cover(r);
}

static qg_status read_length(const qg_tensor_file *file, int64_t *out) {
    uint8_t prefix[PREFIX];
    if (file->size < PREFIX)
        return qg_fail(QG_ERROR_DATA, "%s: %" PRId64 " bytes are too few for a safetensors file",
                       file->path, file->size);
    qg_status status = tensor_read_bytes(file, 0, prefix, PREFIX);
    if (status != QG_OK)
        return status;
    uint64_t length = 0;
    for (int i = PREFIX - 1; i >= 0; i--)
        length = length << 8 | prefix[i];
    if (length > LARGEST_HEADER)
        return qg_fail(QG_ERROR_DATA,
                       "%s: its first 8 bytes claim a header of %" PRIu64
                       " bytes: the format allows %d",
                       file->path, length, LARGEST_HEADER);
    if (length > (uint64_t)(file->size - PREFIX))
        return qg_fail(QG_ERROR_DATA,
                       "%s: its first 8 bytes claim a header of %" PRIu64
                       " bytes, but only %" PRId64 " follow",
                       file->path, length, file->size - PREFIX);
    *out = (int64_t)length;
    return QG_OK;
}

qg_status tensor_list_safetensors(qg_tensor_file *file) {
    int64_t length = 0;
    qg_status status = read_length(file, &length);
    if (status != QG_OK)
        return status;
    char *text = malloc((size_t)length + 1);
    if (!text)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a header of %" PRId64 " bytes", length);
    status = tensor_read_bytes(file, PREFIX, text, length);
    json_t *header = NULL;
    if (status == QG_OK && (length == 0 || text[0] != '{'))
        status = qg_fail(QG_ERROR_DATA, "%s: the header does not start with {", file->path);
    if (status == QG_OK) {
        json_error_t error;
        header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
        char reason[TENSOR_TEXT_SIZE];
        if (!header)
            status = qg_fail(QG_ERROR_DATA, "%s: the header is not valid JSON at byte %d: %s",
                             file->path, error.position, tensor_text(error.text, reason));
    }
    free(text);
    reading r = {file, PREFIX + length, file->size - PREFIX - length, NULL, 0};
    if (status == QG_OK)
        status = read_header(&r, header);
    free(r.stretches);
    json_decref(header);
    return status;
}
