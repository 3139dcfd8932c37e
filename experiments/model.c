// The model: what it owns, by which name it is opened, its digest. See model.h.
#include "model_internal.h"

#include <qg_digest.h>
#include <qg_memory.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qg_status model_add_weight(model *m, const qg_tensor_type *type, void **out) {
    *out = NULL;
    model_weight *weight = malloc(sizeof *weight);
    if (!weight)
        return qg_fail(QG_ERROR_MEMORY, "no memory for a weight of the model");
    qg_status status = qg_allocate(&weight->values, qg_tensor_elements(type),
                                   qg_dtype_bytes((qg_dtype)type->dtype), "a weight of the model");
    if (status) {
        free(weight);
        return status;
    }
    weight->next = m->weights;
    m->weights = weight;
    *out = weight->values;
    return QG_OK;
}

qg_status model_add_sentences(model *m) {
    void *ids, *mask;
    int64_t count = m->sentences * m->tokens;
    qg_status status = qg_allocate(&ids, count, sizeof *m->ids, "token ids");
    if (status)
        return status;
    m->ids = ids;
    status = qg_allocate(&mask, count, sizeof *m->mask, "the mask of token ids");
    if (!status)
        m->mask = mask;
    return status;
}

qg_status model_build(model *m, const transformer_weights *weights) {
    m->feeds[0] = (qg_graph_feed){"ids", m->ids};
    m->feeds[1] = (qg_graph_feed){"mask", m->mask};
    return transformer_build(&m->shape, weights, m->sentences, m->tokens, &m->graph);
}

// ------------------------------------------------------------------------------------ open, free

static qg_status find_digest(model *m) {
    qg_digest *digest;
    qg_status status = qg_digest_create(&digest);
    if (status)
        return status;
    for (qg_node node = 0; node < qg_graph_count(m->graph); node++)
        if (qg_graph_node_op(m->graph, node) == QG_GRAPH_PARAMETER) {
            uint64_t values = qg_graph_node_digest(m->graph, node);
            const char *name = qg_graph_node_name(m->graph, node);
            qg_digest_add(digest, name, strlen(name) + 1);
            qg_digest_add(digest, &values, sizeof values);
        }
    size_t count = (size_t)(m->sentences * m->tokens);
    qg_digest_add(digest, m->ids, count * sizeof *m->ids);
    qg_digest_add(digest, m->mask, count * sizeof *m->mask);
    m->digest = qg_digest_value(digest);
    qg_digest_free(digest);
    return QG_OK;
}

static const char *without_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

qg_status model_open(const char *name, model **out) {
    *out = NULL;
    model *m = calloc(1, sizeof *m);
    if (m)
        m->name = strdup(without_folder(name));
    if (!m || !m->name) {
        free(m);
        return qg_fail(QG_ERROR_MEMORY, "no memory for the model");
    }
    qg_status status =
        strcmp(name, "seeded") == 0 ? model_open_seeded(m) : model_open_file(m, name);
    if (!status)
        status = find_digest(m);
    if (status)
        model_free(m);
    else
        *out = m;
    return status;
}

void model_free(model *m) {
    if (!m)
        return;
    qg_graph_free(m->graph);
    for (model_weight *w = m->weights, *next; w; w = next) {
        next = w->next;
        qg_release(w->values);
        free(w);
    }
    qg_release(m->ids);
    qg_release(m->mask);
    free(m->name);
    free(m);
}

// --------------------------------------------------------------------------------------- looking

const char *model_name(const model *m) { return m->name; }
const qg_graph *model_graph(const model *m) { return m->graph; }
int64_t model_sentences(const model *m) { return m->sentences; }
uint64_t model_digest(const model *m) { return m->digest; }

int32_t model_feeds(const model *m, const qg_graph_feed **feeds) {
    *feeds = m->feeds;
    return sizeof m->feeds / sizeof m->feeds[0];
}

void model_describe(const model *m, char *text, size_t size) {
    int64_t parameters = 0, tokens = 0;
    for (qg_node node = 0; node < qg_graph_count(m->graph); node++)
        if (qg_graph_node_op(m->graph, node) == QG_GRAPH_PARAMETER &&
            qg_graph_node_type(m->graph, node)->dtype == QG_DTYPE_FP32)
            parameters += qg_tensor_elements(qg_graph_node_type(m->graph, node));
    for (int64_t i = 0; i < m->sentences * m->tokens; i++)
        tokens += m->mask[i] != 0.0f;
    snprintf(text, size,
             "%s: %" PRId64 " parameters in %" PRId64 " layers, %" PRId64 " sentences, %" PRId64
             " tokens",
             m->name, parameters, m->shape.layers, m->sentences, tokens);
}
