// From a call to the kernel that performs it: checks, constants, choice by layout and recipe.
#include <launch.h>
#include <qg_pack.h>
#include <qg_size.h>

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

static bool reads_elements(const qg_recipe *recipe) {
    return recipe->rule == QG_RULE_BEST || recipe->rule == QG_RULE_FOUR_OVER_SIX;
}

static int planes_of(const qg_recipe *recipe) {
    return recipe->structure == QG_STRUCTURE_RESIDUAL ? 2 : 1;
}

int recipe_scale_bytes(const qg_recipe *recipe) {
    switch (recipe->structure) {
    case QG_STRUCTURE_PLAIN: return qg_rule_scale_format(recipe->rule) == QG_FORMAT_FP32 ? 4 : 1;
    case QG_STRUCTURE_RESIDUAL: return 8;
    default: return 2;
    }
}

static bool packs(const qg_cuda_quantize *call, const qg_format_info *info) {
    return call->packed && (info->bits == 4 || info->bits == 6);
}

static int64_t row_bytes_of(const qg_cuda_quantize *call, const qg_format_info *info) {
    if (packs(call, info))
        return qg_packed_bytes(info->bits, call->k);
    return call->k * qg_format_code_bytes(info);
}

// Blocks that begin within a packed unit share bytes with their neighbours, and structure.cu packs
// nothing: codes then go to scratch, and from there to where they belong.
static bool packs_apart(const qg_cuda_quantize *call) {
    qg_format_info info = qg_format_describe(call->recipe.element);
    if (!packs(call, &info))
        return false;
    if (has_two_fields(&call->recipe) || reads_elements(&call->recipe))
        return true;
    qg_blocks blocks = qg_layout_apply(call->recipe.layout, call->m, call->k);
    return blocks.block_columns > 1 && blocks.columns % (info.bits == 4 ? 2 : 4) != 0;
}

// Rules that look at every element of a long block read binary32.
static bool widens(const qg_cuda_quantize *call) {
    qg_blocks blocks = qg_layout_apply(call->recipe.layout, call->m, call->k);
    return reads_elements(&call->recipe) && !blocks_are_short(&blocks) &&
           (call->input_type != QG_FORMAT_FP32 || call->up);
}

// Scratch: the bits of the tensor's amax, in 16 bytes; the scales of two-level rules; widened
// elements; unpacked codes. Offsets: only the last depends on whether the call packs.
typedef struct scratch_plan {
    int64_t scales, wide, codes, bytes;
} scratch_plan;

static scratch_plan plan_scratch(const qg_cuda_quantize *call) {
    scratch_plan p;
    p.scales = QG_LOAD_BYTES;
    p.wide = p.scales + qg_round_up((int64_t)sizeof(tensor_scales), QG_LOAD_BYTES);
    p.codes = p.wide;
    if (widens(call))
        p.codes += qg_round_up(call->m * call->k * (int64_t)sizeof(float), QG_LOAD_BYTES);
    p.bytes = p.codes;
    if (packs_apart(call))
        p.bytes += planes_of(&call->recipe) * call->m * call->k;
    return p;
}

// ----------------------------------------------------------------------------------------- checks

// Every size below 2^63: of elements, stored or not, and of scales with their padding.
static bool sizes_fit(const qg_cuda_quantize *call) {
    enum { MOST_PADDING = 512, MOST_BYTES = 16 }; // of an element in all buffers together
    int64_t elements, bytes, rows, columns;
    qg_blocks blocks = qg_layout_apply(call->recipe.layout, call->m, call->k);
    int64_t padding = call->order.kind == QG_ORDER_K_MAJOR ? call->order.padding : 0;
    return qg_size_multiply(call->m, call->k, &elements) &&
           qg_size_multiply(elements, MOST_BYTES, &bytes) &&
           qg_size_add(bytes, (int64_t)sizeof(tensor_scales) + MOST_PADDING, &bytes) &&
           qg_size_add(blocks.block_rows, padding + MOST_PADDING, &rows) &&
           qg_size_add(blocks.block_columns, MOST_PADDING, &columns) &&
           qg_size_multiply(rows, columns, &bytes) && qg_size_multiply(bytes, 8, &bytes);
}

static qg_status check_recipe(const qg_recipe *recipe, qg_cuda_error *error) {
    qg_format_info info = qg_format_describe(recipe->element);
    qg_layout layout = recipe->layout;
    if (info.bits == 0 || info.bits > 32 || !info.zero)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "no element format: number %u",
                           (unsigned)recipe->element);
    if (recipe->rule >= QG_RULE_COUNT || recipe->structure > QG_STRUCTURE_RESIDUAL)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "no such rule or structure: %d, %d",
                           recipe->rule, recipe->structure);
    bool has_columns = layout.kind == QG_LAYOUT_GROUP || layout.kind == QG_LAYOUT_BLOCK;
    if (layout.kind < QG_LAYOUT_PER_TENSOR || layout.kind > QG_LAYOUT_BLOCK ||
        (has_columns && layout.columns < 1) || (layout.kind == QG_LAYOUT_BLOCK && layout.rows < 1))
        return kernel_fail(error, QG_ERROR_ARGUMENT, "no such layout");
    if (has_two_fields(recipe) &&
        recipe->rule != (planes_of(recipe) == 2 ? (int)QG_RULE_AMAX : (int)QG_RULE_FLOOR))
        return kernel_fail(error, QG_ERROR_UNSUPPORTED,
                           "two planes take no rule but amax, pair shifts none but floor");
    if (has_two_fields(recipe) &&
        (layout.kind != QG_LAYOUT_GROUP || layout.columns > QG_STRUCTURE_LONGEST))
        return kernel_fail(error, QG_ERROR_UNSUPPORTED,
                           "pair shifts and two planes need groups of at most %d",
                           (int)QG_STRUCTURE_LONGEST);
    return QG_OK;
}

static qg_status check_order(const qg_recipe *recipe, qg_scale_order order, qg_cuda_error *error) {
    if (order.kind < QG_ORDER_ROW_MAJOR || order.kind > QG_ORDER_BLOCK128_PADDED)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "scale order number %d does not exist",
                           (int)order.kind);
    if (order.kind == QG_ORDER_K_MAJOR && order.padding < 1)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "k_major scales need a padding of at least 1");
    if (order.kind != QG_ORDER_ROW_MAJOR && has_two_fields(recipe))
        return kernel_fail(error, QG_ERROR_UNSUPPORTED,
                           "scales of recipes with pair shifts or two planes are row_major only");
    return QG_OK;
}

qg_status check_stored(const qg_recipe *recipe, qg_scale_order order, int64_t m, int64_t k,
                       qg_cuda_error *error) {
    if (m < 1 || k < 1)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "m and k must be at least 1");
    qg_status status = check_recipe(recipe, error);
    if (status == QG_OK)
        status = check_order(recipe, order, error);
    qg_cuda_quantize sizes = {};
    sizes.recipe = *recipe;
    sizes.order = order;
    sizes.m = m;
    sizes.k = k;
    if (status == QG_OK && !sizes_fit(&sizes))
        status = kernel_fail(error, QG_ERROR_OVERFLOW, "%lld x %lld exceeds 2^63 - 1 bytes",
                             (long long)m, (long long)k);
    return status;
}

static qg_status check_call(const qg_cuda_quantize *call, qg_cuda_error *error) {
    if (call->input_type != QG_FORMAT_FP32 && call->input_type != QG_FORMAT_BF16 &&
        call->input_type != QG_FORMAT_FP16)
        return kernel_fail(error, QG_ERROR_UNSUPPORTED,
                           "the input type must be fp32, bf16 or fp16");
    return check_stored(&call->recipe, call->order, call->m, call->k, error);
}

static qg_status check_buffers(const qg_cuda_quantize *call, qg_cuda_error *error) {
    bool two_level = qg_rule_has_tensor_scale(call->recipe.rule);
    if (!call->x || !call->codes || !call->scales || !call->scratch ||
        (two_level && !call->tensor_scale))
        return kernel_fail(error, QG_ERROR_ARGUMENT, "a buffer of the quantization is missing");
    if ((uintptr_t)call->scratch % QG_LOAD_BYTES != 0)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "scratch is not aligned to 16 bytes");
    return QG_OK;
}

// -------------------------------------------------------------------------------------- arguments

static void set_units(const qg_cuda_quantize *call, const qg_format_info *info,
                      quantize_args *args) {
    bool is_packed = packs(call, info);
    args->unit = !is_packed ? 1 : args->bits == 4 ? 2 : 4;
    args->stored_bits = is_packed ? args->bits : 8 * args->code_bytes;
    args->unit_bytes = args->unit * args->stored_bits / 8;
}

static void set_scale_steps(quantize_args *args) {
    qg_scale_order order = args->call.order;
    int64_t rows = args->blocks.block_rows, columns = args->blocks.block_columns;
    args->scales_in_tiles = order.kind == QG_ORDER_TILE128X4 || order.kind == QG_ORDER_TILE8X4;
    args->scale_row_step = qg_scale_order_offset(order, rows, columns, 1, 0);
    args->scale_column_step = qg_scale_order_offset(order, rows, columns, 0, 1);
}

qg_status quantize_args_of(const qg_cuda_quantize *call, quantize_args *args,
                           qg_cuda_error *error) {
    const qg_recipe *recipe = &call->recipe;
    qg_format_info info = qg_format_describe(recipe->element);
    memset(args, 0, sizeof *args);
    qg_status status = check_call(call, error);
    if (status != QG_OK)
        return status;
    args->call = *call;
    args->blocks = qg_layout_apply(recipe->layout, call->m, call->k);
    args->row_bytes = row_bytes_of(call, &info);
    args->planes_bytes = args->row_bytes * call->m;
    args->input = call->input_type == QG_FORMAT_BF16   ? INPUT_BF16
                  : call->input_type == QG_FORMAT_FP16 ? INPUT_FP16
                                                       : INPUT_FP32;
    args->bits = info.bits;
    args->code_bytes = qg_format_code_bytes(&info);
    args->scale_bytes = recipe_scale_bytes(recipe);
    args->is_stochastic = qg_rounding_is_stochastic(recipe->conversion.rounding);
    args->scales.scaler = qg_scaler_of(recipe, scaler_input(call), call->history_amax);
    args->scales.ordinary = qg_ordinary_scales_of(&args->scales.scaler);
    set_units(call, &info, args);
    set_scale_steps(args);
    scratch_plan plan = plan_scratch(call);
    if (qg_rule_has_tensor_scale(recipe->rule))
        args->of_tensor = (const tensor_scales *)((char *)call->scratch + plan.scales);
    if (widens(call))
        args->wide = (float *)((char *)call->scratch + plan.wide);
    if (qg_encoder32_takes(&info)) {
        args->encoder = qg_element_encoder(recipe, &info);
        if (encoder_serves(recipe, &info, &args->encoder))
            args->cast = cast_of(recipe);
    }
    return QG_OK;
}

// --------------------------------------------------------------------------------------- dispatch

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

// 0 for a call that launch_quantize refuses.
int64_t quantize_scratch(const qg_cuda_quantize *call) {
    qg_cuda_error error;
    return check_call(call, &error) == QG_OK ? plan_scratch(call).bytes : 0;
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

static qg_status launch_unpacked(const qg_cuda_quantize *call, cudaStream_t stream,
                                 qg_cuda_error *error) {
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

qg_status launch_quantize(const qg_cuda_quantize *call, cudaStream_t stream, qg_cuda_error *error) {
    qg_status status = check_call(call, error);
    if (status == QG_OK)
        status = check_buffers(call, error);
    if (status != QG_OK || !packs_apart(call))
        return status == QG_OK ? launch_unpacked(call, stream, error) : status;
    qg_cuda_quantize unpacked = *call;
    unpacked.codes = (uint8_t *)call->scratch + plan_scratch(call).codes;
    unpacked.packed = 0;
    status = launch_unpacked(&unpacked, stream, error);
    if (status != QG_OK)
        return status;
    return launch_pack(qg_format_describe(call->recipe.element).bits,
                       planes_of(&call->recipe) * call->m, call->k, unpacked.codes, call->codes,
                       stream, error);
}
