// Quantize, encode and dequantize of a graph, handed to a backend. See run_internal.h.
// A node's tensor is the matrix of qg_tensor_matrix; its codes and scales are the backend's buffers
// as they are: row-major, unpacked, unpadded. Knows no format and no rule. Products:
// run_scaled_product.c.
#include "run_parts_internal.h"

#include <qg_emulator.h>
#include <qg_memory.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>

static const qg_storage LOGICAL = {0};

static qg_format input_type_of(const qg_tensor_type *type) {
    return type->dtype == QG_DTYPE_BF16   ? QG_FORMAT_BF16
           : type->dtype == QG_DTYPE_FP16 ? QG_FORMAT_FP16
                                          : QG_FORMAT_FP32;
}

static qg_quantize_options options_of(const run_scaled *s, const graph_node *node,
                                      const qg_tensor_type *x) {
    return (qg_quantize_options){.input_type = input_type_of(x),
                                 .seed = s->seed + node->attributes.seed,
                                 .stream = QG_STREAM_ROUNDING,
                                 .threads = s->threads};
}

// Room where the caller wants none.
static qg_status find_room(void *wanted, int64_t bytes, const char *what, void **own) {
    *own = NULL;
    return wanted ? QG_OK : qg_allocate(own, bytes, 1, what);
}

qg_status run_quantize(const run_scaled *s, const graph_node *node, const run_input *x, void *codes,
                       void *scale, float *tensor_scale, const char **impl) {
    qg_recipe recipe;
    qg_shape shape;
    int64_t rows, k;
    qg_status status = qg_recipe_parse(node->attributes.recipe, &recipe);
    qg_tensor_matrix(x->type, &rows, &k);
    if (!status)
        status = qg_shape_of(&recipe, rows, k, &shape);
    if (status)
        return status;
    void *own_codes = NULL, *own_scale = NULL;
    float own_tensor;
    status = find_room(codes, shape.codes_size, "codes that no node reads", &own_codes);
    if (!status)
        status = find_room(scale, shape.scales_size, "scales that no node reads", &own_scale);
    qg_quantize_options options = options_of(s, node, x->type);
    if (!status)
        status = s->backend->quantize(&recipe, &options, &LOGICAL, rows, k, x->values,
                                      codes ? codes : own_codes, scale ? scale : own_scale,
                                      tensor_scale ? tensor_scale : &own_tensor, impl);
    qg_release(own_codes);
    qg_release(own_scale);
    return status;
}

static qg_status widen(const run_scaled *s, const run_input *x, void **out) {
    qg_status status =
        qg_allocate(out, qg_tensor_elements(x->type), sizeof(float), "widened elements");
    return status ? status : run_widen(x->type, x->values, s->threads, *out);
}

qg_status run_encode(const run_scaled *s, const graph_node *node, const run_input *in, void *codes,
                     const char **impl) {
    qg_recipe recipe;
    int64_t rows, k;
    void *wide = NULL;
    qg_status status = qg_recipe_parse(node->attributes.recipe, &recipe);
    qg_tensor_matrix(in[0].type, &rows, &k);
    if (!status && in[0].type->dtype != QG_DTYPE_FP32)
        status = widen(s, &in[0], &wide);
    qg_quantize_options options = options_of(s, node, in[0].type);
    float tensor = node->input_count > 2 ? *(const float *)in[2].values : 1.0f;
    *impl = "emulator";
    if (!status)
        status = qg_emulator_encode(&recipe, &options, rows, k, wide ? wide : in[0].values,
                                    in[1].values, tensor, codes);
    qg_release(wide);
    return status;
}

qg_status run_dequantize(const run_scaled *s, const graph_node *node, const run_input *in,
                         float *out, const char **impl) {
    qg_recipe recipe;
    int64_t rows, k;
    qg_status status = qg_recipe_parse(node->attributes.recipe, &recipe);
    if (status)
        return status;
    qg_tensor_matrix(&node->type, &rows, &k);
    float tensor = node->input_count > 2 ? *(const float *)in[2].values : 1.0f;
    return s->backend->dequantize(&recipe, &LOGICAL, rows, k, in[0].values, in[1].values, tensor,
                                  s->threads, out, impl);
}
