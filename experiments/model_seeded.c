// The model `seeded`: weights and sentences of a small transformer from Philox words (seed SEED),
// in integers, so that any program makes the same ones.
//
// A number is u = (w / 2^8 - 2^23) / 2^23 with w a 32-bit word: in [-1, 1), exact in binary32.
// Element i of a weight takes word i of the stream FNV-1a-32(name of the weight): embeddings are u
// / 16 (small, as trained ones are, so that eps of layer norm tells), dense weights u / 4, those
// from the feed-forward part u / 8, gains 1 + u / 4 (rounded once), biases u / 8; position_ids
// count from 0. Word i of the stream FNV-1a-32("ids") makes the token of place i: 3 + floor(w
// (vocabulary - 3) / 2^32), between 1 and 2 at the ends of a sentence and 0 behind it.
#include "model_internal.h"

#include <qg_philox.h>

#include <string.h>

enum { SEED = 7, VOCABULARY = 384, POSITIONS = 32, SENTENCES = 8, TOKENS = 12 };
enum { PADDING, SENTENCE_BEGIN, SENTENCE_END, FIRST_WORD };

static const transformer_shape SHAPE = {.layers = 2,
                                        .hidden = 64,
                                        .heads = 4,
                                        .ffn = 256,
                                        .vocabulary = VOCABULARY,
                                        .positions = POSITIONS,
                                        .types = 2,
                                        .eps = 1e-12f};

static const int64_t LENGTHS[SENTENCES] = {12, 7, 3, 10, 5, 12, 9, 4};

static uint32_t stream_of(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash;
}

static void fill(const char *name, int64_t count, float offset, float scale, float *x) {
    uint32_t stream = stream_of(name);
    for (int64_t i = 0; i < count; i++) {
        int32_t word = (int32_t)(qg_philox_word(SEED, stream, (uint64_t)i) >> 8);
        x[i] = offset + (float)(word - (1 << 23)) * 0x1p-23f * scale;
    }
}

static bool ends_with(const char *name, const char *end) {
    size_t length = strlen(name), end_length = strlen(end);
    return length >= end_length && strcmp(name + length - end_length, end) == 0;
}

static void fill_by_name(const char *name, int64_t count, float *x) {
    if (ends_with(name, "LayerNorm.weight"))
        fill(name, count, 1.0f, 0.25f, x);
    else if (ends_with(name, "_embeddings.weight"))
        fill(name, count, 0.0f, 0.0625f, x);
    else if (ends_with(name, ".bias") ||
             (ends_with(name, ".output.dense.weight") && !strstr(name, "attention")))
        fill(name, count, 0.0f, 0.125f, x);
    else
        fill(name, count, 0.0f, 0.25f, x);
}

static qg_status find(void *context, const char *name, const qg_tensor_type *type,
                      const void **values) {
    void *made;
    int64_t count = qg_tensor_elements(type);
    qg_status status = model_add_weight(context, type, &made);
    if (status)
        return status;
    if (type->dtype == QG_DTYPE_FP32)
        fill_by_name(name, count, made);
    else
        for (int64_t i = 0; i < count; i++)
            ((int64_t *)made)[i] = i;
    *values = made;
    return QG_OK;
}

static int64_t token(int64_t sentence, int64_t place) {
    int64_t last = LENGTHS[sentence] - 1;
    uint64_t word = qg_philox_word(SEED, stream_of("ids"), (uint64_t)(sentence * TOKENS + place));
    if (place > last)
        return PADDING;
    if (place == 0 || place == last)
        return place ? SENTENCE_END : SENTENCE_BEGIN;
    return FIRST_WORD + (int64_t)(word * (VOCABULARY - FIRST_WORD) >> 32);
}

qg_status model_open_seeded(model *m) {
    m->shape = SHAPE;
    m->sentences = SENTENCES;
    m->tokens = TOKENS;
    qg_status status = model_add_sentences(m);
    if (status)
        return status;
    for (int64_t i = 0; i < SENTENCES * TOKENS; i++) {
        m->ids[i] = token(i / TOKENS, i % TOKENS);
        m->mask[i] = m->ids[i] == PADDING ? 0.0f : 1.0f;
    }
    const transformer_weights weights = {find, m};
    return model_build(m, &weights);
}
