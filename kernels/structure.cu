// Blocks that need more than their amax: pair shifts, two planes (qg_block_structure.h), and rules
// that look at every element (best, four_over_six). Codes are never packed here: launch_quantize
// does that after. Short rows: a thread per block. Other blocks: a CTA, whose first thread finds the
// scale from binary32 elements, in scratch where x is of another type.
#include <chunk.cuh>
#include <launch.h>

enum { THREADS = 128, BLOCK_THREADS = 256 };

// Out of line, for small code.
static __device__ __noinline__ void store_code(const quantize_args *args, const qg_block_scale *s,
                                               const qg_block_elements *b, int64_t offset) {
    const qg_scaler *scaler = &scales_of(args)->scaler;
    uint64_t code = qg_element_code(scaler, s, qg_scaled_value(s, b->x[offset]),
                                    qg_element_word(scaler, b, 0, offset));
    int64_t i = (int64_t)b->index + offset;
    store_bytes(args->call.codes + i * args->code_bytes, code, args->code_bytes);
}

static __device__ __noinline__ void scale_by_elements(const qg_scaler *scaler, float amax,
                                                      const qg_block_elements *b,
                                                      qg_block_scale *scale) {
    // No other rule comes here: the compiler then leaves them out.
    if (scaler->recipe.rule != QG_RULE_BEST && scaler->recipe.rule != QG_RULE_FOUR_OVER_SIX)
        __builtin_unreachable();
    *scale = qg_block_scale_of(scaler, amax, b);
}

// ------------------------------------------------------------------------------------- short rows

static __device__ inline void quantize_pairs(const quantize_args *args, int64_t block,
                                             const qg_block_elements *b) {
    qg_pair_block pairs = qg_pair_block_of(&scales_of(args)->scaler, b->x, b->columns);
    store_bytes(args->call.scales + 2 * block, qg_pair_block_field(&pairs), 2);
    for (int64_t i = 0; i < b->columns; i++) {
        qg_block_scale scale = qg_pair_block_scale(&pairs, i);
        store_code(args, &scale, b, i);
    }
}

static __device__ inline void quantize_residual(const quantize_args *args, int64_t block,
                                                const qg_block_elements *b) {
    qg_residual_block planes;
    qg_scaler scaler = scales_of(args)->scaler;
    // The only rule that two planes have (check_recipe): the compiler then leaves the others out.
    scaler.recipe.rule = QG_RULE_AMAX;
    scaler.scale_format = QG_FORMAT_FP32;
    qg_residual_block_of(&scaler, b, &planes);
    for (int plane = 0; plane < 2; plane++) {
        uint8_t *codes = args->call.codes + plane * args->planes_bytes;
        store_bytes(args->call.scales + 8 * block + 4 * plane, planes.scale[plane].bits, 4);
        for (int64_t i = 0; i < b->columns; i++)
            store_bytes(codes + ((int64_t)b->index + i) * args->code_bytes, planes.codes[plane][i],
                        args->code_bytes);
    }
}

static __device__ inline void quantize_plain(const quantize_args *args, int64_t block_row,
                                             int64_t block_column, const qg_block_elements *b) {
    const qg_scaler *scaler = &scales_of(args)->scaler;
    qg_block_scale scale;
    scale_by_elements(scaler, qg_row_amax(scaler->recipe.amax, b->x, b->columns), b, &scale);
    store_scale(args, block_row, block_column, scale.bits);
    for (int64_t i = 0; i < b->columns; i++)
        store_code(args, &scale, b, i);
}

static __device__ void quantize_short_row(const quantize_args *args, int64_t block) {
    int64_t block_row, block_column;
    split_index(block, args->blocks.block_columns, &block_row, &block_column);
    qg_block_range r = qg_block_at(&args->blocks, block_row, block_column);
    int64_t first = r.row_begin * args->blocks.k + r.column_begin;
    float x[QG_STRUCTURE_LONGEST];
    qg_block_elements b;
    b.x = x;
    b.rows = 1;
    b.columns = b.stride = r.column_end - r.column_begin;
    b.index = (uint64_t)first;
    b.seed = args->call.seed;
    b.stream = args->call.stream;
    for (int64_t i = 0; i < b.columns; i++)
        x[i] = any_element(args, first + i);
    switch (args->call.recipe.structure) {
    case QG_STRUCTURE_PAIR_SHIFT:
    case QG_STRUCTURE_NO_SHIFT: quantize_pairs(args, block, &b); break;
    case QG_STRUCTURE_RESIDUAL: quantize_residual(args, block, &b); break;
    default: quantize_plain(args, block_row, block_column, &b);
    }
}

QG_KERNEL __launch_bounds__(THREADS)
    quantize_short_rows(const __grid_constant__ quantize_args args) {
    int64_t blocks = args.blocks.block_rows * args.blocks.block_columns;
    int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < blocks; i += step)
        quantize_short_row(&args, i);
}

// ----------------------------------------------------------------------------------- other blocks

QG_KERNEL __launch_bounds__(BLOCK_THREADS)
    widen_elements(const __grid_constant__ quantize_args args) {
    int64_t elements = args.blocks.m * args.blocks.k, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step)
        args.wide[i] = any_element(&args, i);
}

static __device__ inline qg_block_elements elements_of(const quantize_args *args,
                                                       qg_block_range r) {
    int64_t first = r.row_begin * args->blocks.k + r.column_begin;
    qg_block_elements b;
    b.x = (args->wide ? args->wide : (const float *)args->call.x) + first;
    b.rows = r.row_end - r.row_begin;
    b.columns = r.column_end - r.column_begin;
    b.stride = args->blocks.k;
    b.index = (uint64_t)first;
    b.seed = args->call.seed;
    b.stream = args->call.stream;
    return b;
}

// The i-th element of a block from its first.
static __device__ inline int64_t offset_in(const qg_block_elements *b, int64_t i) {
    int64_t row, column;
    split_index(i, b->columns, &row, &column);
    return row * b->stride + column;
}

QG_KERNEL __launch_bounds__(BLOCK_THREADS)
    quantize_by_elements(const __grid_constant__ quantize_args args) {
    QG_SHARED(uint32_t, of_warps, QG_WARP_THREADS);
    QG_SHARED(qg_block_scale, scale, 1);
    const qg_scaler *scaler = &scales_of(&args)->scaler;
    int64_t block_row, block_column;
    split_index(qg_partition_row(args.slab, blockIdx.x), args.blocks.block_columns, &block_row,
                &block_column);
    qg_block_elements b = elements_of(&args, qg_block_at(&args.blocks, block_row, block_column));
    int64_t count = b.rows * b.columns;
    float amax = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        amax = qg_amax_step(scaler->recipe.amax, amax, b.x[offset_in(&b, i)]);
    amax = qg_float_of_bits(cta_amax(qg_bits_of_float(amax), of_warps));
    if (threadIdx.x == 0) {
        scale_by_elements(scaler, amax, &b, scale);
        store_scale(&args, block_row, block_column, scale[0].bits);
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
        store_code(&args, scale, &b, offset_in(&b, i));
}

// --------------------------------------------------------------------------------------- launches

static unsigned strided_grid(int64_t count, int threads) {
    int64_t ctas = qg_ceil_divide(count, threads);
    return ctas < QG_GRID_X_MOST ? (unsigned)ctas : (unsigned)QG_GRID_X_MOST;
}

static cudaError_t launch_short_rows(const quantize_args *args, cudaStream_t stream) {
    unsigned grid = strided_grid(args->blocks.block_rows * args->blocks.block_columns, THREADS);
    return QG_LAUNCH(quantize_short_rows, dim3(grid), dim3(THREADS), 0, stream, *args);
}

static cudaError_t launch_widen(const quantize_args *args, cudaStream_t stream) {
    unsigned grid = strided_grid(args->blocks.m * args->blocks.k, BLOCK_THREADS);
    return QG_LAUNCH(widen_elements, dim3(grid), dim3(BLOCK_THREADS), 0, stream, *args);
}

qg_status launch_structure(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error) {
    quantize_args a = *args;
    if (blocks_are_short(&a.blocks))
        return kernel_status(launch_short_rows(&a, stream), "quantize_short_rows", error);
    qg_status status = QG_OK;
    if (a.wide)
        status = kernel_status(launch_widen(&a, stream), "widen_elements", error);
    int64_t blocks = a.blocks.block_rows * a.blocks.block_columns;
    for (a.slab = 0; a.slab < qg_partition_slabs(blocks) && status == QG_OK; a.slab++) {
        unsigned grid = (unsigned)qg_partition_grid_x(blocks, a.slab);
        status = kernel_status(
            QG_LAUNCH(quantize_by_elements, dim3(grid), dim3(BLOCK_THREADS), 0, stream, a),
            "quantize_by_elements", error);
    }
    return status;
}
