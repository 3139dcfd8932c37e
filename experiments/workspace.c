// Buffers and inputs of a worker. See qg_workspace.h.
//
// Knows how inputs are made equal (source, seed, operand, type, shape); must not know any op.
#include <qg_workspace.h>

#include <qg_codec.h>
#include <qg_cpu.h>
#include <qg_memory.h>
#include <qg_philox.h>
#include <qg_size.h>

#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

// Below this many elements starting threads costs more than it saves.
enum { ELEMENTS_PER_THREAD = 16384 };

typedef struct room {
    void *bytes;
    int64_t size;
    char label[QG_LABEL_SIZE]; // "": none
} room;

// What an input depends on.
typedef struct input_key {
    const qg_source *source;
    uint64_t seed;
    qg_format type;
    int64_t rows, k;
} input_key;

typedef struct cached_input {
    bool valid;
    input_key key;
    qg_input input;
    bool has_raw;
    bool has_history;
    float history[QG_HISTORY_LENGTH];
} cached_input;

typedef struct kept_object {
    void *object; // NULL: none
    void (*release)(void *object);
    char label[QG_LABEL_SIZE];
} kept_object;

struct qg_workspace {
    int threads;
    room rooms[QG_BUFFER_COUNT];
    kept_object kept[QG_KEPT_COUNT];
    cached_input inputs[2];
    qg_digest *digest;
};

qg_status qg_workspace_create(int threads, qg_workspace **out) {
    *out = NULL;
    void *bytes;
    qg_status status = qg_allocate(&bytes, 1, sizeof(qg_workspace), "workspace");
    if (status != QG_OK)
        return status;
    qg_workspace *workspace = bytes;
    status = qg_digest_create(&workspace->digest);
    if (status != QG_OK) {
        qg_workspace_free(workspace);
        return status;
    }
#ifdef _OPENMP
    workspace->threads = threads > 0 ? threads : omp_get_max_threads();
    omp_set_num_threads(workspace->threads);
#else
    (void)threads;
    workspace->threads = 1;
#endif
    *out = workspace;
    return QG_OK;
}

void qg_workspace_free(qg_workspace *workspace) {
    if (!workspace)
        return;
    qg_workspace_shrink(workspace);
    qg_release(workspace->rooms[QG_BUFFER_MODEL_NODES].bytes);
    qg_digest_free(workspace->digest);
    qg_release(workspace);
}

int qg_workspace_threads(const qg_workspace *workspace, int64_t elements) {
    int64_t useful = elements / ELEMENTS_PER_THREAD;
    if (useful < 1)
        return 1;
    return useful < workspace->threads ? (int)useful : workspace->threads;
}

qg_status qg_workspace_room(qg_workspace *workspace, qg_buffer buffer, int64_t count, int64_t size,
                            void **out) {
    *out = NULL;
    int64_t bytes;
    if (!qg_size_multiply(count, size, &bytes))
        return qg_fail(QG_ERROR_OVERFLOW, "%lld elements of %lld bytes overflow", (long long)count,
                       (long long)size);
    room *r = &workspace->rooms[buffer];
    r->label[0] = 0;
    if (!r->bytes || r->size < bytes) {
        qg_release(r->bytes); // first: the old and the new one may not fit together
        r->bytes = NULL;
        r->size = 0;
        if (buffer == QG_BUFFER_INPUT_A || buffer == QG_BUFFER_INPUT_B)
            workspace->inputs[buffer == QG_BUFFER_INPUT_B].valid = false;
        qg_status status = qg_allocate(&r->bytes, bytes, 1, "buffer of a case");
        if (status != QG_OK)
            return status;
        r->size = bytes;
    }
    *out = r->bytes;
    return QG_OK;
}

static void set_label(char to[QG_LABEL_SIZE], const char *label) {
    size_t length = strlen(label);
    if (length < QG_LABEL_SIZE)
        memcpy(to, label, length + 1);
    else
        to[0] = 0;
}

static bool has_label(const char *own, const char *label) {
    return label[0] && strcmp(own, label) == 0;
}

void qg_workspace_label(qg_workspace *workspace, qg_buffer buffer, const char *label) {
    set_label(workspace->rooms[buffer].label, label);
}

void *qg_workspace_find(qg_workspace *workspace, qg_buffer buffer, const char *label) {
    const room *r = &workspace->rooms[buffer];
    return has_label(r->label, label) ? r->bytes : NULL;
}

void qg_workspace_keep(qg_workspace *workspace, qg_kept kept, void *object,
                       void (*release)(void *object), const char *label) {
    kept_object *k = &workspace->kept[kept];
    if (k->object)
        k->release(k->object);
    k->object = object;
    k->release = release;
    set_label(k->label, label);
}

void *qg_workspace_kept(const qg_workspace *workspace, qg_kept kept, const char *label) {
    const kept_object *k = &workspace->kept[kept];
    return has_label(k->label, label) ? k->object : NULL;
}

void qg_workspace_shrink(qg_workspace *workspace) {
    for (int i = 0; i < QG_KEPT_COUNT; i++)
        qg_workspace_keep(workspace, (qg_kept)i, NULL, NULL, "");
    for (int i = 0; i < QG_BUFFER_COUNT; i++) {
        room *r = &workspace->rooms[i];
        if (i == QG_BUFFER_MODEL_NODES)
            continue;
        qg_release(r->bytes);
        r->bytes = NULL;
        r->size = 0;
        r->label[0] = 0;
    }
    workspace->inputs[0].valid = workspace->inputs[1].valid = false;
}

qg_digest *qg_workspace_digest(qg_workspace *workspace) {
    qg_digest_reset(workspace->digest);
    return workspace->digest;
}

static float amax_of(const float *x, int64_t count) {
    float amax = 0;
    for (int64_t i = 0; i < count; i++) {
        float a = qg_float_abs(x[i]);
        amax = a > amax ? a : amax;
    }
    return amax;
}

static bool same_key(const input_key *a, const input_key *b) {
    return a->source == b->source && a->seed == b->seed && a->type == b->type &&
           a->rows == b->rows && a->k == b->k;
}

static input_key key_of(const qg_case *c, int operand) {
    return (input_key){c->source, c->seed, c->input_type, operand == 0 ? c->m : c->n, c->k};
}

static qg_status make_input(qg_workspace *workspace, const input_key *key, int operand,
                            cached_input *cached) {
    cached->valid = false;
    int64_t count;
    if (!qg_size_multiply(key->rows, key->k, &count))
        return qg_fail(QG_ERROR_OVERFLOW, "a tensor of %lld x %lld elements overflows",
                       (long long)key->rows, (long long)key->k);
    void *x;
    qg_status status = qg_workspace_room(
        workspace, operand == 0 ? QG_BUFFER_INPUT_A : QG_BUFFER_INPUT_B, count, sizeof(float), &x);
    if (status != QG_OK)
        return status;
    status = qg_source_generate(key->source, key->seed, operand, key->type, key->rows, key->k, x);
    if (status != QG_OK)
        return status;
    cached->key = *key;
    cached->input.x = x;
    cached->input.digest = qg_digest_bytes(x, (size_t)count * sizeof(float));
    cached->input.amax = amax_of(x, count);
    cached->has_raw = cached->has_history = false;
    cached->valid = true;
    return QG_OK;
}

qg_status qg_workspace_input(qg_workspace *workspace, const qg_case *c, int operand,
                             qg_input *out) {
    cached_input *cached = &workspace->inputs[operand];
    input_key key = key_of(c, operand);
    if (!cached->valid || !same_key(&cached->key, &key)) {
        qg_status status = make_input(workspace, &key, operand, cached);
        if (status != QG_OK)
            return status;
    }
    *out = cached->input;
    return QG_OK;
}

// Exact: the data were rounded to bf16, where a NaN keeps a payload bit among the upper 16.
static void narrow_to_bf16(int64_t count, const float *x, uint16_t *raw) {
    for (int64_t i = 0; i < count; i++)
        raw[i] = (uint16_t)(qg_bits_of_float(x[i]) >> 16);
}

static void narrow_to_fp16(int64_t count, const float *x, int threads, uint16_t *raw) {
    const qg_format_info info = qg_format_describe(QG_FORMAT_FP16);
    const qg_conversion exact = {.rounding = {.mode = QG_ROUND_RNE},
                                 .overflow = QG_OVERFLOW_FORMAT};
    (void)threads; // without OpenMP
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < count; i++)
        raw[i] = (uint16_t)qg_encode(&info, (double)x[i], &exact, 0);
}

qg_status qg_workspace_raw(qg_workspace *workspace, const qg_case *c, int operand,
                           const void **out) {
    qg_input input;
    qg_status status = qg_workspace_input(workspace, c, operand, &input);
    *out = input.x;
    if (status != QG_OK || c->input_type == QG_FORMAT_FP32)
        return status;
    cached_input *cached = &workspace->inputs[operand];
    qg_buffer buffer = operand ? QG_BUFFER_RAW_B : QG_BUFFER_RAW_A;
    int64_t count = cached->key.rows * cached->key.k;
    void *raw = workspace->rooms[buffer].bytes;
    if (!cached->has_raw)
        status = qg_workspace_room(workspace, buffer, count, sizeof(uint16_t), &raw);
    if (status == QG_OK && !cached->has_raw && c->input_type == QG_FORMAT_BF16)
        narrow_to_bf16(count, input.x, raw);
    else if (status == QG_OK && !cached->has_raw)
        narrow_to_fp16(count, input.x, qg_workspace_threads(workspace, count), raw);
    cached->has_raw = status == QG_OK;
    *out = raw;
    return status;
}

// Fills the history of a law from the seeds before.
static qg_status make_history(qg_workspace *workspace, int operand, cached_input *cached) {
    const input_key *key = &cached->key;
    int64_t count = key->rows * key->k;
    void *x;
    qg_status status = qg_workspace_room(workspace, QG_BUFFER_OUTPUT, count, sizeof(float), &x);
    for (uint64_t i = 0; status == QG_OK && i < QG_HISTORY_LENGTH; i++) {
        uint64_t seed = key->seed - QG_HISTORY_LENGTH + i;
        status = qg_source_generate(key->source, seed, operand, key->type, key->rows, key->k, x);
        if (status == QG_OK)
            cached->history[i] = amax_of(x, count);
    }
    return status;
}

qg_status qg_workspace_history(qg_workspace *workspace, const qg_case *c, int operand,
                               float history[QG_HISTORY_LENGTH]) {
    qg_input input;
    qg_status status = qg_workspace_input(workspace, c, operand, &input);
    if (status != QG_OK)
        return status;
    cached_input *cached = &workspace->inputs[operand];
    if (!cached->has_history) {
        if (c->source->file && operand == 0)
            for (int i = 0; i < QG_HISTORY_LENGTH; i++)
                cached->history[i] = input.amax;
        else
            status = make_history(workspace, operand, cached);
        if (status != QG_OK)
            return status;
        cached->has_history = true;
    }
    memcpy(history, cached->history, sizeof cached->history);
    return QG_OK;
}

// ---------------------------------------------------------------------------------- quantization

static const qg_recipe *recipe_of(const qg_case *c, int operand) {
    return operand ? c->recipe_b : c->recipe;
}

qg_status qg_workspace_quantizing(qg_workspace *workspace, const qg_case *c, int operand,
                                  qg_quantizing *out) {
    int64_t rows = operand ? c->n : c->m, count;
    if (!qg_size_multiply(rows, c->k, &count))
        count = INT64_MAX; // the input will fail
    out->options =
        (qg_quantize_options){.input_type = c->input_type,
                              .seed = c->seed,
                              .stream = QG_STREAM_ROUNDING + (operand ? QG_STREAM_OPERAND_B : 0),
                              .threads = qg_workspace_threads(workspace, count)};
    if (recipe_of(c, operand)->rule != QG_RULE_DELAYED)
        return QG_OK;
    out->options.amax_history = out->history;
    out->options.history_length = QG_HISTORY_LENGTH;
    return qg_workspace_history(workspace, c, operand, out->history);
}

qg_status qg_workspace_quantize(qg_workspace *workspace, const qg_case *c, int operand,
                                uint8_t *codes, uint8_t *scales, float *tensor_scale,
                                const char **impl) {
    qg_quantizing q;
    const void *raw;
    qg_status status = qg_workspace_quantizing(workspace, c, operand, &q);
    if (status == QG_OK)
        status = qg_workspace_raw(workspace, c, operand, &raw);
    if (status != QG_OK)
        return status;
    return qg_cpu_quantize(recipe_of(c, operand), &q.options, NULL, operand ? c->n : c->m, c->k,
                           raw, codes, scales, tensor_scale, impl);
}
