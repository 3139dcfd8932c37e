// The encoder of BERT as a graph. See transformer.h.
//
// Activations are matrices (sentences * tokens, hidden), so that all products with weights are 2-D;
// only scores and context are batched, (sentences, heads, tokens, ...). A dense layer's product is
// named "NAME/product", the sum with the bias "NAME".
#include "transformer.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { NAME_SIZE = 128, DETAIL_SIZE = 512 };

// What is being built. `status` and `detail` are of the first weight that was not found: builders
// that lack it fail, too, with details of their own, and the graph keeps those.
typedef struct builder {
    qg_graph *graph;
    const transformer_shape *shape;
    const transformer_weights *weights;
    int64_t sentences, tokens;
    qg_node mask; // (sentences, tokens)
    qg_status status;
    char detail[DETAIL_SIZE];
} builder;

#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
static const char *
put_name(char name[NAME_SIZE], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, NAME_SIZE, format, arguments);
    va_end(arguments);
    return name;
}

// ----------------------------------------------------------------------------------------- weights

static qg_node weight(builder *b, const char *name, qg_tensor_type type) {
    const void *values = NULL;
    if (b->status)
        return QG_NODE_NONE;
    b->status = b->weights->find(b->weights->context, name, &type, &values);
    if (!b->status)
        return qg_graph_parameter(b->graph, name, type, values);
    snprintf(b->detail, sizeof b->detail, "%s", qg_detail());
    return QG_NODE_NONE;
}

static qg_node vector(builder *b, const char *layer, const char *part, int64_t size) {
    char name[NAME_SIZE];
    return weight(b, put_name(name, "%s.%s", layer, part), qg_tensor(QG_DTYPE_FP32, 1, size));
}

static qg_node matrix(builder *b, const char *layer, int64_t rows, int64_t columns) {
    char name[NAME_SIZE];
    return weight(b, put_name(name, "%s.weight", layer),
                  qg_tensor(QG_DTYPE_FP32, 2, rows, columns));
}

// ------------------------------------------------------------------------------------------ pieces

static qg_node layer_norm(builder *b, const char *weights, const char *name, qg_node x) {
    qg_node gain = vector(b, weights, "weight", b->shape->hidden);
    qg_node bias = vector(b, weights, "bias", b->shape->hidden);
    qg_node out = qg_graph_layer_norm(b->graph, x, gain, bias, b->shape->eps);
    return qg_graph_name(b->graph, out, name);
}

// x (rows, inputs) times the transposed weights (outputs, inputs), plus bias.
static qg_node dense(builder *b, const char *weights, const char *name, qg_node x, int64_t inputs,
                     int64_t outputs) {
    static const int32_t SWAP[] = {1, 0};
    char product[NAME_SIZE];
    qg_node w = matrix(b, weights, outputs, inputs);
    qg_node bias = vector(b, weights, "bias", outputs);
    qg_node y = qg_graph_matmul(b->graph, x, qg_graph_transpose(b->graph, w, SWAP));
    qg_graph_name(b->graph, y, put_name(product, "%s/product", name));
    return qg_graph_name(b->graph, qg_graph_add(b->graph, y, bias), name);
}

// x + y, normalised: the end of attention and of the feed-forward part.
static qg_node add_and_norm(builder *b, const char *weights, const char *name, qg_node x,
                            qg_node y) {
    char part[NAME_SIZE], norm[NAME_SIZE];
    qg_node sum = qg_graph_add(b->graph, x, y);
    qg_graph_name(b->graph, sum, put_name(part, "%s_residual", name));
    put_name(norm, "%s.LayerNorm", weights);
    return layer_norm(b, norm, put_name(part, "%s_norm", name), sum);
}

// --------------------------------------------------------------------------------------- embedding

// Rows of the position table, at the first `tokens` numbers of position_ids: (tokens, hidden).
static qg_node positions(builder *b) {
    const transformer_shape *s = b->shape;
    const int64_t begin[] = {0, 0}, end[] = {1, b->tokens};
    qg_node ids = weight(b, "embeddings.position_ids", qg_tensor(QG_DTYPE_I64, 2, 1, s->positions));
    ids = qg_graph_slice(b->graph, ids, begin, end);
    ids = qg_graph_reshape(b->graph, ids, 1, &b->tokens);
    qg_node table = matrix(b, "embeddings.position_embeddings", s->positions, s->hidden);
    return qg_graph_gather(b->graph, table, ids);
}

// Row 0 of the type table for every token: (1, hidden).
static qg_node first_type(builder *b) {
    static const int64_t ZERO = 0;
    qg_node id = qg_graph_constant(b->graph, NULL, qg_tensor(QG_DTYPE_I64, 1, 1), &ZERO);
    qg_node table =
        matrix(b, "embeddings.token_type_embeddings", b->shape->types, b->shape->hidden);
    return qg_graph_gather(b->graph, table, id);
}

static qg_node embed(builder *b) {
    const transformer_shape *s = b->shape;
    const int64_t rows[] = {b->sentences * b->tokens, s->hidden};
    qg_node ids =
        qg_graph_input(b->graph, "ids", qg_tensor(QG_DTYPE_I64, 2, b->sentences, b->tokens));
    qg_node table = matrix(b, "embeddings.word_embeddings", s->vocabulary, s->hidden);
    qg_node x = qg_graph_gather(b->graph, table, ids);
    x = qg_graph_add(b->graph, x, positions(b));
    x = qg_graph_add(b->graph, x, first_type(b));
    x = qg_graph_reshape(b->graph, x, 2, rows);
    return layer_norm(b, "embeddings.LayerNorm", "embeddings", x);
}

// --------------------------------------------------------------------------------------- attention

// (sentences * tokens, hidden) to (sentences, heads, tokens, size of a head), or with the last two
// axes swapped.
static qg_node split_heads(builder *b, qg_node x, bool swapped) {
    static const int32_t HEADS_FIRST[] = {0, 2, 1, 3}, SWAPPED[] = {0, 2, 3, 1};
    const transformer_shape *s = b->shape;
    const int64_t split[] = {b->sentences, b->tokens, s->heads, s->hidden / s->heads};
    x = qg_graph_reshape(b->graph, x, 4, split);
    return qg_graph_transpose(b->graph, x, swapped ? SWAPPED : HEADS_FIRST);
}

static qg_node join_heads(builder *b, qg_node x) {
    static const int32_t TOKENS_FIRST[] = {0, 2, 1, 3};
    const int64_t joined[] = {b->sentences * b->tokens, b->shape->hidden};
    return qg_graph_reshape(b->graph, qg_graph_transpose(b->graph, x, TOKENS_FIRST), 2, joined);
}

// 0 for tokens and -1e4 for padding, finite in fp16, where no softmax gives weight:
// (sentences, 1, 1, tokens).
static qg_node padding(builder *b) {
    const int64_t wide[] = {b->sentences, 1, 1, b->tokens};
    qg_node x = qg_graph_reshape(b->graph, b->mask, 4, wide);
    x = qg_graph_subtract(b->graph, x, qg_graph_scalar(b->graph, 1.0f));
    x = qg_graph_multiply(b->graph, x, qg_graph_scalar(b->graph, 1e4f));
    return qg_graph_name(b->graph, x, "padding");
}

static qg_node probabilities(builder *b, const char *layer, qg_node query, qg_node key,
                             qg_node add) {
    char name[NAME_SIZE];
    qg_graph *g = b->graph;
    double size = (double)(b->shape->hidden / b->shape->heads);
    qg_node x = qg_graph_matmul(g, split_heads(b, query, false), split_heads(b, key, true));
    qg_graph_name(g, x, put_name(name, "%s/scores/product", layer));
    x = qg_graph_multiply(g, x, qg_graph_scalar(g, (float)(1.0 / sqrt(size))));
    qg_graph_name(g, x, put_name(name, "%s/scores", layer));
    x = qg_graph_add(g, x, add);
    qg_graph_name(g, x, put_name(name, "%s/masked_scores", layer));
    return qg_graph_name(g, qg_graph_softmax(g, x), put_name(name, "%s/probabilities", layer));
}

static qg_node attention(builder *b, const char *weights, const char *layer, qg_node x,
                         qg_node add) {
    static const char *const PARTS[] = {"query", "key", "value"};
    char from[NAME_SIZE], name[NAME_SIZE];
    int64_t hidden = b->shape->hidden;
    qg_node parts[3];
    for (int i = 0; i < 3; i++) {
        put_name(from, "%s.attention.self.%s", weights, PARTS[i]);
        put_name(name, "%s/%s", layer, PARTS[i]);
        parts[i] = dense(b, from, name, x, hidden, hidden);
    }
    qg_node context = probabilities(b, layer, parts[0], parts[1], add);
    context = qg_graph_matmul(b->graph, context, split_heads(b, parts[2], false));
    qg_graph_name(b->graph, context, put_name(name, "%s/context/product", layer));
    context = join_heads(b, context);
    qg_graph_name(b->graph, context, put_name(name, "%s/context", layer));
    put_name(from, "%s.attention.output.dense", weights);
    return dense(b, from, put_name(name, "%s/attention", layer), context, hidden, hidden);
}

static qg_node feed_forward(builder *b, const char *weights, const char *layer, qg_node x) {
    char from[NAME_SIZE], name[NAME_SIZE];
    const transformer_shape *s = b->shape;
    put_name(from, "%s.intermediate.dense", weights);
    put_name(name, "%s/intermediate", layer);
    x = qg_graph_gelu(b->graph, dense(b, from, name, x, s->hidden, s->ffn), false);
    qg_graph_name(b->graph, x, put_name(name, "%s/gelu", layer));
    put_name(from, "%s.output.dense", weights);
    return dense(b, from, put_name(name, "%s/output", layer), x, s->ffn, s->hidden);
}

static qg_node encoder_layer(builder *b, int64_t number, qg_node x, qg_node add) {
    char weights[NAME_SIZE / 2], layer[NAME_SIZE / 2], from[NAME_SIZE], name[NAME_SIZE];
    snprintf(weights, sizeof weights, "encoder.layer.%" PRId64, number);
    snprintf(layer, sizeof layer, "layer%" PRId64, number);
    qg_node y = attention(b, weights, layer, x, add);
    put_name(from, "%s.attention.output", weights);
    x = add_and_norm(b, from, put_name(name, "%s/attention", layer), x, y);
    y = feed_forward(b, weights, layer, x);
    put_name(from, "%s.output", weights);
    return add_and_norm(b, from, put_name(name, "%s/output", layer), x, y);
}

// ----------------------------------------------------------------------------------------- pooling

// The mean of the tokens' rows: (sentences, hidden). A sentence of padding alone gives 0.
static qg_node pool(builder *b, qg_node x) {
    static const int32_t TOKENS = 1;
    const int64_t rows[] = {b->sentences, b->tokens, b->shape->hidden};
    const int64_t wide[] = {b->sentences, b->tokens, 1};
    qg_graph *g = b->graph;
    x = qg_graph_multiply(g, qg_graph_reshape(g, x, 3, rows),
                          qg_graph_reshape(g, b->mask, 3, wide));
    x = qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, x, 1, &TOKENS, false);
    qg_node count = qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, b->mask, 1, &TOKENS, true);
    count = qg_graph_maximum(g, count, qg_graph_scalar(g, 1e-9f));
    return qg_graph_name(g, qg_graph_divide(g, x, count), "pooled");
}

// Rows of length 1.
static qg_node normalise(builder *b, qg_node x) {
    static const int32_t HIDDEN = 1;
    qg_graph *g = b->graph;
    qg_node length = qg_graph_multiply(g, x, x);
    length = qg_graph_sqrt(g, qg_graph_reduce(g, QG_GRAPH_REDUCE_SUM, length, 1, &HIDDEN, true));
    length = qg_graph_maximum(g, length, qg_graph_scalar(g, 1e-12f));
    return qg_graph_name(g, qg_graph_divide(g, x, length), "embedding");
}

static qg_status build(builder *b) {
    qg_node x = embed(b);
    b->mask =
        qg_graph_input(b->graph, "mask", qg_tensor(QG_DTYPE_FP32, 2, b->sentences, b->tokens));
    qg_node add = padding(b);
    for (int64_t layer = 0; layer < b->shape->layers && b->status == QG_OK; layer++)
        x = encoder_layer(b, layer, x, add);
    qg_graph_output(b->graph, normalise(b, pool(b, x)));
    return b->status ? qg_fail(b->status, "%s", b->detail) : qg_graph_status(b->graph);
}

// ------------------------------------------------------------------------------------------- entry

static qg_status check(const transformer_shape *s, int64_t sentences, int64_t tokens) {
    if (s->layers < 1 || s->heads < 1 || s->hidden < 1 || s->hidden % s->heads != 0)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "a transformer of %" PRId64 " layers and hidden size %" PRId64 " in %" PRId64
                       " heads is none",
                       s->layers, s->hidden, s->heads);
    if (sentences < 1 || tokens < 1 || tokens > s->positions)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "%" PRId64 " sentences of %" PRId64
                       " tokens: at least one of each, and at most %" PRId64 " tokens",
                       sentences, tokens, s->positions);
    const qg_tensor_type ids = qg_tensor(QG_DTYPE_I64, 2, sentences, tokens);
    return qg_tensor_check(&ids);
}

qg_status transformer_build(const transformer_shape *shape, const transformer_weights *weights,
                            int64_t sentences, int64_t tokens, qg_graph **out) {
    builder b = {.shape = shape, .weights = weights, .sentences = sentences, .tokens = tokens};
    *out = NULL;
    qg_status status = check(shape, sentences, tokens);
    if (!status)
        status = qg_graph_create(&b.graph);
    if (!status)
        status = build(&b);
    if (!status)
        *out = b.graph;
    else
        qg_graph_free(b.graph);
    return status;
}
