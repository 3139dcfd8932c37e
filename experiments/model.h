// A transformer for sentence embeddings with its weights and sentences: the graph that `--ops
// model` quantizes. `minilm` is all-MiniLM-L6-v2 from its safetensors file; `seeded` has the same
// topology in small (hidden 64, 2 layers, 4 heads) and weights from a seed, so that it needs no
// file.
#ifndef MODEL_H
#define MODEL_H

#include <qg_graph_run.h>

typedef struct model model;

// `name`: "minilm" (where datasets/fetch_minilm.py leaves the file), "seeded", or the path of a
// safetensors file of the same architecture as minilm.
// QG_ERROR_IO: the weights are not there: says how to obtain them. QG_ERROR_DATA: not this model.
// QG_ERROR_ARGUMENT: another word.
qg_status model_open(const char *name, model **out);
void model_free(model *model); // NULL is fine

// What these return lives as long as the model.
const char *model_name(const model *model); // "minilm", "seeded", or the file's name without folder
// In fp32. Its output is the node "embedding", (sentences, hidden), each row of length 1. Nodes
// that mean something have names: "layer0/query", and "layer0/query/product" before the bias.
const qg_graph *model_graph(const model *model);
// Token ids and mask of the sentences: inputs "ids" and "mask".
int32_t model_feeds(const model *model, const qg_graph_feed **feeds);
int64_t model_sentences(const model *model);
// Of weights, token ids and mask: what identifies the content.
uint64_t model_digest(const model *model);

// One line for people: parameters, layers, sentences, tokens.
void model_describe(const model *model, char *text, size_t size);

#endif
