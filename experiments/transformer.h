// The encoder of BERT for sentence embeddings as a graph: gathers for word, position and type,
// layer norm, scaled and masked softmax, gelu in its erf form, masked mean pooling, length 1.
#ifndef TRANSFORMER_H
#define TRANSFORMER_H

#include <qg_graph.h>

typedef struct transformer_shape {
    int64_t layers, hidden, heads, ffn;
    int64_t vocabulary, positions, types;
    float eps; // of layer norm
} transformer_shape;

// Values of a weight by its name in the safetensors file
// ("encoder.layer.0.attention.self.query.weight") and its type; they must outlive the graph.
// Weights of dense layers are (outputs, inputs).
typedef struct transformer_weights {
    qg_status (*find)(void *context, const char *name, const qg_tensor_type *type,
                      const void **values);
    void *context;
} transformer_weights;

// Inputs of the graph: "ids" i64 (sentences, tokens) and "mask" fp32 (sentences, tokens): 1 for
// tokens, 0 for padding. QG_ERROR_ARGUMENT: a shape that is none, no sentence, more tokens than
// positions. QG_ERROR_OVERFLOW. The status of a weight that was not found.
qg_status transformer_build(const transformer_shape *shape, const transformer_weights *weights,
                            int64_t sentences, int64_t tokens, qg_graph **out);

#endif
