// When each node of a graph is computed, and where its values lie. Private to graph/.
//
// A quantization and the scales that it finds itself are one step: what shares rounding or a search
// must be one call of a backend.
#ifndef GRAPH_PLAN_INTERNAL_H
#define GRAPH_PLAN_INTERNAL_H

#include "graph_internal.h"

typedef struct graph_place {
    bool needed;    // by an output, or everything is kept
    int32_t step;   // the node at which it is computed: itself or a partner before it
    int64_t bytes;  // of its buffer; 0: values come from elsewhere
    int64_t offset; // of the buffer, a multiple of 64
    int32_t last;   // the last step that reads it; INT32_MAX: it stays
    // Of the first of a quantization's partners, where it is computed as a whole: -1 for none.
    qg_node codes, scale, tensor_scale;
} graph_place;

typedef struct graph_plan {
    graph_place *places; // (nodes)
    int64_t bytes;       // of all buffers
    int64_t without_reuse;
    int64_t scratch; // the most that one step needs: fp16 and bf16 as binary32
} graph_plan;

// keep: every node has a buffer of its own. The graph is verified.
qg_status graph_plan_make(const qg_graph *graph, bool keep, graph_plan *out);
void graph_plan_free(graph_plan *plan);

// Room of `bytes` in scratch or among buffers.
static inline int64_t graph_plan_room(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Whether float ops take and give the values as binary32 in scratch.
static inline bool graph_is_narrow(const qg_tensor_type *type) {
    return type->dtype == QG_DTYPE_FP16 || type->dtype == QG_DTYPE_BF16;
}

// Room for that, 0 where it is not needed.
static inline int64_t graph_plan_scratch(const qg_tensor_type *type) {
    int64_t bytes = graph_is_narrow(type) ? qg_tensor_bytes(type) : 0;
    return bytes > INT64_MAX / 4 ? INT64_MAX : graph_plan_room(2 * bytes);
}

#endif
