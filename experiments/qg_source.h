// Where a case's input comes from: a data law, a tensor of an open file, recorded vectors, or a
// node of a model.
#ifndef QG_SOURCE_H
#define QG_SOURCE_H

#include <qg_data.h>
#include <qg_tensor_file.h>

typedef struct qg_source {
    const char *data;     // text of the axis: "normal", "tensors:minilm.h5", "model:minilm"
    const char *tensor;   // "" for laws; of a model the node's name
    const qg_law *law;    // or NULL
    qg_tensor_file *file; // or NULL
    int64_t tensor_index;
    int64_t m, k;          // of a real tensor or a node; 0, 0 for laws
    const char *recording; // path of recorded vectors, or NULL
    struct model *model;   // model.h, or NULL
    int32_t node;          // of model_graph(model)
    uint64_t digest;       // content of a real tensor, recorded vectors, a model; 0 for laws
} qg_source;

// x: (rows, k) of operand 0 (a) or 1 (b), rounded to the input type. Operand b of a real tensor is
// `normal`. `rows` must be m of a real tensor when operand is 0.
qg_status qg_source_generate(const qg_source *source, uint64_t seed, int operand,
                             qg_format input_type, int64_t rows, int64_t k, float *x);

#endif
