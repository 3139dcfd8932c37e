// .npy versions 1.0 to 3.0: one array of little-endian floating-point numbers in C order.
// Source: numpy/lib/format.py. The header is a Python dictionary; only what numpy writes is read.
#include "tensor_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_HEADER = 1 << 20, LARGEST_RANK = 32, WORD_SIZE = 32 };

// A cursor over the header's text, which ends in a zero byte.
typedef struct cursor {
    const char *at;
} cursor;

typedef struct npy_header {
    char descr[WORD_SIZE];
    bool fortran_order;
    int64_t shape[LARGEST_RANK];
    int64_t rank;
} npy_header;

static void skip_blanks(cursor *c) {
    while (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r')
        c->at++;
}

static bool take(cursor *c, const char *token) {
    skip_blanks(c);
    size_t length = strlen(token);
    if (strncmp(c->at, token, length) != 0)
        return false;
    c->at += length;
    return true;
}

// A quoted word without escapes.
static bool take_word(cursor *c, char word[WORD_SIZE]) {
    skip_blanks(c);
    char quote = *c->at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(c->at + 1, quote);
    size_t length = end ? (size_t)(end - c->at - 1) : 0;
    if (!end || length >= WORD_SIZE || memchr(c->at + 1, '\\', length))
        return false;
    memcpy(word, c->at + 1, length);
    word[length] = 0;
    c->at = end + 1;
    return true;
}

static bool take_size(cursor *c, int64_t *out) {
    skip_blanks(c);
    if (*c->at < '0' || *c->at > '9' || (*c->at == '0' && c->at[1] >= '0' && c->at[1] <= '9'))
        return false;
    int64_t value = 0;
    for (; *c->at >= '0' && *c->at <= '9'; c->at++) {
        int digit = *c->at - '0';
        if (value > (INT64_MAX - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *out = value;
    return true;
}

// (), (5,), (2, 3), (2, 3,)
static bool take_shape(cursor *c, npy_header *header) {
    if (!take(c, "("))
        return false;
    bool comma = true;
    while (!take(c, ")")) {
        if (!comma || header->rank == LARGEST_RANK || !take_size(c, &header->shape[header->rank]))
            return false;
        header->rank++;
        comma = take(c, ",");
    }
    return header->rank != 1 || comma;
}

static const char *take_value(cursor *c, const char *key, unsigned *seen, npy_header *header) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(key, keys[i]))
            continue;
        if (*seen & 1u << i)
            return "names a key twice";
        *seen |= 1u << i;
        if (i == 0)
            return take_word(c, header->descr) ? NULL : "has a \"descr\" that is not one type";
        if (i == 2)
            return take_shape(c, header) ? NULL
                                         : "has a \"shape\" that is no tuple of sizes below 2^63";
        header->fortran_order = take(c, "True");
        return header->fortran_order || take(c, "False") ? NULL
                                                         : "has no True or False \"fortran_order\"";
    }
    return "has a key other than descr, fortran_order and shape";
}

// NULL, or what is wrong.
static const char *parse_header(const char *text, npy_header *header) {
    cursor c = {text};
    unsigned seen = 0;
    if (!take(&c, "{"))
        return "does not start with {";
    for (bool comma = true; !take(&c, "}"); comma = take(&c, ",")) {
        char key[WORD_SIZE];
        if (!comma || !take_word(&c, key) || !take(&c, ":"))
            return "is no dictionary";
        const char *wrong = take_value(&c, key, &seen, header);
        if (wrong)
            return wrong;
    }
    skip_blanks(&c);
    if (*c.at)
        return "goes on behind the dictionary";
    return seen == 7 ? NULL : "lacks one of descr, fortran_order and shape";
}

// Bytes before the header's text, and the length of the text.
static qg_status read_prefix(const qg_tensor_file *file, int64_t *prefix, int64_t *length) {
    uint8_t head[12];
    if (file->size < 12)
        return qg_fail(QG_ERROR_DATA, "%s: %" PRId64 " bytes are too few for a .npy file",
                       file->path, file->size);
    qg_status status = tensor_read_bytes(file, 0, head, 12);
    if (status != QG_OK)
        return status;
    if (memcmp(head, "\x93NUMPY", 6))
        return qg_fail(QG_ERROR_DATA, "%s: does not start as a .npy file does", file->path);
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return qg_fail(QG_ERROR_UNSUPPORTED, "%s: .npy version %d.%d; 1.0, 2.0 and 3.0 are known",
                       file->path, head[6], head[7]);
    *prefix = head[6] == 1 ? 10 : 12;
    *length = head[8] | head[9] << 8;
    if (head[6] > 1)
        *length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
    if (*length > LARGEST_HEADER || *length > file->size - *prefix)
        return qg_fail(QG_ERROR_DATA,
                       "%s: claims a header of %" PRId64 " bytes; %" PRId64
                       " follow and %d are allowed",
                       file->path, *length, file->size - *prefix, LARGEST_HEADER);
    return QG_OK;
}

static qg_status read_header(const qg_tensor_file *file, int64_t prefix, int64_t length,
                             npy_header *header) {
    char *text = malloc((size_t)length + 1);
    if (!text)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a header of %" PRId64 " bytes", length);
    qg_status status = tensor_read_bytes(file, prefix, text, length);
    text[length] = 0;
    if (status == QG_OK) {
        const char *wrong =
            strlen(text) == (size_t)length ? parse_header(text, header) : "contains a zero byte";
        if (wrong)
            status = qg_fail(QG_ERROR_DATA, "%s: the header %s", file->path, wrong);
    }
    free(text);
    return status;
}

static qg_status unsupported(const qg_tensor_file *file, const char *what) {
    return qg_fail(QG_ERROR_UNSUPPORTED, "%s: %s", file->path, what);
}

static qg_status find_type(const qg_tensor_file *file, const char *descr, tensor_type *out) {
    char text[TENSOR_TEXT_SIZE];
    *out = !strcmp(descr, "<f8")   ? TENSOR_F64
           : !strcmp(descr, "<f4") ? TENSOR_F32
           : !strcmp(descr, "<f2") ? TENSOR_F16
                                   : TENSOR_OTHER;
    if (*out != TENSOR_OTHER)
        return QG_OK;
    if (!strcmp(descr, "|V2"))
        return unsupported(file, "its type |V2 says only \"2 bytes\" (numpy stores bfloat16 so); "
                                 "save it as float32");
    if (!strncmp(descr, ">f", 2))
        return unsupported(file, "its numbers are big-endian; save it as little-endian float32");
    return qg_fail(QG_ERROR_UNSUPPORTED, "%s: its type %s is none of <f2, <f4, <f8", file->path,
                   tensor_text(descr, text));
}

static qg_status check_supported(const qg_tensor_file *file, const npy_header *header) {
    if (header->rank == 0)
        return unsupported(file, "its shape is (): a single number is no matrix");
    if (header->fortran_order && header->rank >= 2)
        return unsupported(file, "it is in Fortran order; save it in C order");
    for (int64_t i = 0; i < header->rank; i++)
        if (header->shape[i] == 0)
            return unsupported(file, "it has no elements");
    return QG_OK;
}

qg_status tensor_list_npy(qg_tensor_file *file) {
    int64_t prefix = 0, length = 0, elements;
    npy_header header = {0};
    tensor_type type = TENSOR_OTHER;
    qg_status status = read_prefix(file, &prefix, &length);
    if (status == QG_OK)
        status = read_header(file, prefix, length, &header);
    if (status == QG_OK)
        status = find_type(file, header.descr, &type);
    if (status == QG_OK)
        status = check_supported(file, &header);
    if (status != QG_OK)
        return status;
    if (tensor_elements(header.shape, header.rank, 64, &elements) != QG_OK)
        return qg_fail(QG_ERROR_DATA, "%s: its shape overflows", file->path);
    int64_t wanted = elements * tensor_type_size(type), there = file->size - prefix - length;
    if (wanted != there)
        return qg_fail(QG_ERROR_DATA,
                       "%s: %" PRId64 " elements of %s are %" PRId64 " bytes, but %" PRId64
                       " follow the header",
                       file->path, elements, header.descr, wanted, there);
    tensor_entry *entry;
    status = tensor_add(file, file->base, header.descr, &entry);
    if (status != QG_OK)
        return status;
    return tensor_place(entry, type, header.shape, header.rank, prefix + length);
}
