// From a call to the kernel that performs it: checks, constants, choice by layout and recipe.
#include <launch.h>
#include <qg_pack.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qg_status kernel_fail(qg_cuda_error *error, qg_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}

qg_status kernel_status(cudaError_t code, const char *what, qg_cuda_error *error) {
    if (code == cudaSuccess)
        return QG_OK;
    return kernel_fail(error,
                       code == cudaErrorMemoryAllocation ? QG_ERROR_MEMORY : QG_ERROR_ENVIRONMENT,
                       "%s: %s", what, cudaGetErrorString(code));
}

// -------------------------------------------------------------------------------------- constants

// One binary32 operation and the branch-free encoder give the specification's code if v is rounded
// to nearest even and what overflows, number or infinity, gives one code: binary32's own underflow
// and overflow are then invisible.
static bool encoder_serves(const qg_recipe *recipe, const qg_format_info *info,
                           const qg_encoder32 *e) {
    return recipe->conversion.rounding.mode == QG_ROUND_RNE && qg_encoder32_takes(info) &&
           e->overflow[0] == e->infinity[0] && e->overflow[1] == e->infinity[1];
}

// The cvt instructions saturate.
static int cast_of(const qg_recipe *recipe) {
    if (recipe->conversion.overflow != QG_OVERFLOW_SATURATE)
        return CAST_ENCODER;
    switch (recipe->element) {
    case QG_FORMAT_E4M3: return CAST_E4M3;
    case QG_FORMAT_E5M2: return CAST_E5M2;
    case QG_FORMAT_E2M1: return CAST_E2M1;
    case QG_FORMAT_E2M3: return CAST_E2M3;
    case QG_FORMAT_E3M2: return CAST_E3M2;
    default: return CAST_ENCODER;
    }
}

static bool has_two_fields(const qg_recipe *recipe) {
    return recipe->structure != QG_STRUCTURE_PLAIN;
}

static int scale_bytes_of(const qg_recipe *recipe) {
    switch (recipe->structure) {
    case QG_STRUCTURE_PLAIN: return qg_rule_scale_format(recipe->rule) == QG_FORMAT_FP32 ? 4 : 1;
    case QG_STRUCTURE_RESIDUAL: return 8;
    default: return 2;
    }
}

static int64_t row_bytes_of(const qg_cuda_quantize *call, const qg_format_info *info) {
    if (call->packed && (info->bits == 4 || info->bits == 6))
        return qg_packed_bytes(info->bits, call->k);
    return call->k * qg_format_code_bytes(info);
}

qg_status quantize_args_of(const qg_cuda_quantize *call, quantize_args *args,
                           qg_cuda_error *error) {
    const qg_recipe *recipe = &call->recipe;
    qg_format_info info = qg_format_describe(recipe->element);
    memset(args, 0, sizeof *args);
    if (call->m < 1 || call->k < 1)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "m and k must be at least 1");
    args->call = *call;
    args->blocks = qg_layout_apply(recipe->layout, call->m, call->k);
    args->row_bytes = row_bytes_of(call, &info);
    args->planes_bytes = args->row_bytes * call->m;
    args->input = call->input_type == QG_FORMAT_BF16   ? INPUT_BF16
                  : call->input_type == QG_FORMAT_FP16 ? INPUT_FP16
                                                       : INPUT_FP32;
    args->bits = info.bits;
    args->code_bytes = qg_format_code_bytes(&info);
    args->scale_bytes = scale_bytes_of(recipe);
    args->is_stochastic = qg_rounding_is_stochastic(recipe->conversion.rounding);
    args->scales.scaler = qg_scaler_of(recipe, call->input_type, call->history_amax);
    args->scales.ordinary = qg_ordinary_scales_of(&args->scales.scaler);
    if (qg_rule_has_tensor_scale(recipe->rule))
        args->of_tensor = (const tensor_scales *)((char *)call->scratch + QG_LOAD_BYTES);
    if (qg_encoder32_takes(&info)) {
        args->encoder = qg_element_encoder(recipe, &info);
        if (encoder_serves(recipe, &info, &args->encoder))
            args->cast = cast_of(recipe);
    }
    return QG_OK;
}

// --------------------------------------------------------------------------------------- dispatch

static bool reads_elements(const qg_recipe *recipe) {
    return recipe->rule == QG_RULE_BEST || recipe->rule == QG_RULE_FOUR_OVER_SIX;
}

typedef qg_status (*launcher)(const quantize_args *, cudaStream_t, qg_cuda_error *);

typedef struct kernel_choice {
    const char *name;
    launcher launch;
} kernel_choice;

static kernel_choice choose(const qg_cuda_quantize *call) {
    static const kernel_choice structure = {"structure", launch_structure},
                               hopper = {"group_hopper", launch_group_hopper},
                               shared = {"group_shared", launch_group_shared},
                               row = {"row", launch_row}, block = {"block", launch_block},
                               tensor = {"tensor", launch_tensor};
    if (has_two_fields(&call->recipe) || reads_elements(&call->recipe))
        return structure;
    switch (call->recipe.layout.kind) {
    case QG_LAYOUT_GROUP: return call->kernel == QG_GROUP_KERNEL_HOPPER ? hopper : shared;
    case QG_LAYOUT_PER_ROW: return row;
    case QG_LAYOUT_BLOCK: return block;
    default: return tensor;
    }
}

const char *quantize_name(const qg_cuda_quantize *call) { return choose(call).name; }

// The bits of the tensor's amax, in 16 bytes; the scales of two-level rules; binary32 elements for
// rules that look at them.
int64_t quantize_scratch(const qg_cuda_quantize *call) {
    int64_t bytes = QG_LOAD_BYTES + qg_round_up((int64_t)sizeof(tensor_scales), QG_LOAD_BYTES);
    if (reads_elements(&call->recipe) && (call->input_type != QG_FORMAT_FP32 || call->up))
        bytes += call->m * call->k * (int64_t)sizeof(float);
    return bytes;
}

static qg_status clear_padding(const quantize_args *args, cudaStream_t stream,
                               qg_cuda_error *error) {
    if (args->call.order.kind == QG_ORDER_ROW_MAJOR)
        return QG_OK;
    int64_t size =
        qg_scale_order_size(args->call.order, args->blocks.block_rows, args->blocks.block_columns);
    return kernel_status(
        cudaMemsetAsync(args->call.scales, 0, (size_t)(size * args->scale_bytes), stream),
        "padding of scales", error);
}

qg_status launch_quantize(const qg_cuda_quantize *call, cudaStream_t stream, qg_cuda_error *error) {
    quantize_args args;
    qg_status status = quantize_args_of(call, &args, error);
    if (status == QG_OK)
        status = clear_padding(&args, stream, error);
    if (status == QG_OK && args.of_tensor)
        status = launch_tensor_scales(&args, stream, error);
    if (status == QG_OK)
        status = choose(call).launch(&args, stream, error);
    return status;
}
