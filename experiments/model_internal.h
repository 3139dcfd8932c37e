// What the files of the model share: one kind of weights each, and the model that owns them.
// Private to model*.c.
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "model.h"
#include "transformer.h"

// Values of one weight, owned by the model.
typedef struct model_weight {
    void *values;
    struct model_weight *next;
} model_weight;

struct model {
    char *name;
    transformer_shape shape;
    int64_t sentences, tokens; // the longest sentence's, with the marks of its ends
    int64_t *ids;              // (sentences, tokens)
    float *mask;               // (sentences, tokens)
    model_weight *weights;
    qg_graph *graph;
    qg_graph_feed feeds[2];
    uint64_t digest;
};

// Room for a weight, freed with the model. NULL in *out on failure.
qg_status model_add_weight(model *m, const qg_tensor_type *type, void **out);
// Room for ids and mask of m->sentences and m->tokens.
qg_status model_add_sentences(model *m);
// The graph from the shape, with all weights.
qg_status model_build(model *m, const transformer_weights *weights);

// Each fills an empty model but for its name and digest.
qg_status model_open_seeded(model *m);
qg_status model_open_file(model *m, const char *name);

#endif
