// Graphs as text, for tests and bug reports: one line per node, read back as the same graph.
//
//     qg_graph 1
//     x = input fp32[4,64]
//     w = parameter fp32[64,16] digest=0123456789abcdef
//     c = constant fp32[2] 3f800000,40000000
//     t = transpose(w) fp32[16,64] axes=1,0
//     s = scaled_quant_scale(x) u8[4,2] recipe=mxfp8
//     q = scaled_quantize(x,s) u8[4,64] recipe=mxfp8
//     output q
// Constants of at most 64 elements are written out, each element in hexadecimal with all digits of
// its dtype; larger ones and parameters by digest: qg_graph_bind brings their values. `#` comments.
#ifndef QG_GRAPH_TEXT_H
#define QG_GRAPH_TEXT_H

#include <qg_graph.h>

QG_EXTERN_C_BEGIN

enum { QG_GRAPH_TEXT_CONSTANT_MOST = 64 };

// *out: zero-terminated, freed by qg_release; *size (may be NULL) without the zero. The status of a
// graph that failed.
qg_status qg_graph_print(const qg_graph *graph, char **out, size_t *size);

// Attributes, of the ops that have them: axes=1,0 begin=0,2 end=4,3 keepdims=1 tanh_form=1
// eps=0x1p-40 (or decimal) seed=7 recipe=mxfp8 recipe_b=mxfp4 digest=0123456789abcdef. keepdims,
// tanh_form, seed (0) and the digest of a parameter (unknown) may be left out. The type says what
// reshape, cast and scaled products have of one. A line has at most 65536 bytes, ASCII before `#`.
// QG_ERROR_DATA: malformed, or a graph that qg_graph_verify refuses; the detail names line and
// node.
qg_status qg_graph_read(const char *text, size_t size, qg_graph **out);

QG_EXTERN_C_END

#endif
