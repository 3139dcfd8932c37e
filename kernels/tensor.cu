// One scale for the whole tensor: the amax into scratch, the scale from it, then the codes.
#include <chunk.cuh>
#include <launch.h>

// CTAs stride over the tensor: a few waves on any device, so that what a CTA does once costs little.
enum { THREADS = 256, MOST_CTAS = 2048, AT_ONCE = 2 };

static unsigned grid_of(int64_t chunks) {
    int64_t ctas = qg_ceil_divide(chunks, THREADS * AT_ONCE);
    return ctas < MOST_CTAS ? (unsigned)ctas : (unsigned)MOST_CTAS;
}

static __device__ inline int64_t first_chunk(void) {
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ inline int64_t all_threads(void) { return (int64_t)gridDim.x * blockDim.x; }

static __device__ inline int count_within(int64_t column, int64_t length) {
    return column >= length ? 0 : length - column < CHUNK ? (int)(length - column) : (int)CHUNK;
}

// No amax decides it.
QG_HD bool scale_is_constant(const quantize_args *args) {
    return args->call.recipe.rule == QG_RULE_FIXED || args->call.recipe.rule == QG_RULE_DELAYED;
}

// ------------------------------------------------------------------------------------------- amax

// *bits: 0 before.
QG_KERNEL __launch_bounds__(THREADS)
    amax_of_tensor(const __grid_constant__ quantize_args args, uint32_t *bits) {
    QG_SHARED(uint32_t, of_warps, QG_WARP_THREADS);
    int64_t elements = args.blocks.m * args.blocks.k, step = all_threads() * CHUNK;
    uint32_t amax = 0;
    for (int64_t i = first_chunk() * CHUNK; i < elements; i += AT_ONCE * step) {
        chunk c[AT_ONCE];
        QG_UNROLL for (int j = 0; j < AT_ONCE; j++) c[j] =
            load_chunk(&args, i + j * step, count_within(i + j * step, elements));
        QG_UNROLL for (int j = 0; j < AT_ONCE; j++) amax = chunk_amax(&args, amax, &c[j]);
    }
    amax = cta_amax(amax, of_warps);
    if (threadIdx.x == 0)
        atomicMax(bits, amax);
}

qg_status launch_tensor_amax(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error) {
    uint32_t *bits = (uint32_t *)args->call.scratch;
    unsigned grid = grid_of(qg_ceil_divide(args->blocks.m * args->blocks.k, CHUNK));
    qg_status status =
        kernel_status(cudaMemsetAsync(bits, 0, QG_LOAD_BYTES, stream), "amax", error);
    if (status != QG_OK)
        return status;
    cudaError_t code = QG_LAUNCH(amax_of_tensor, dim3(grid), dim3(THREADS), 0, stream, *args, bits);
    return kernel_status(code, "amax_of_tensor", error);
}

// ------------------------------------------------------------------------------------------ scale

// One thread. The operand lies in scratch where two-level rules have their scales: those have groups.
QG_KERNEL scale_of_tensor(const __grid_constant__ quantize_args args, block_operand *operand) {
    float amax = scale_is_constant(&args) ? 0.0f : *(const float *)args.call.scratch;
    if (args.cast == CAST_FUNCTION)
        *operand = operand_of_amax<CAST_FUNCTION>(&args, amax);
    else
        *operand = operand_of_amax<CAST_ENCODER>(&args, amax);
    store_scale(&args, 0, 0, operand->bits);
}

// ------------------------------------------------------------------------------------------ codes

// The tensor as lines without padding within: one, unless packed rows end within a byte.
typedef struct tensor_lines {
    int64_t lines, length;
} tensor_lines;

static tensor_lines lines_of(const quantize_args *args) {
    int64_t m = args->blocks.m, k = args->blocks.k;
    tensor_lines rows = {m, k}, whole = {1, m * k};
    return args->row_bytes * 8 == k * args->stored_bits ? whole : rows;
}

typedef struct tensor_place {
    int64_t line, column;
    int count;
} tensor_place;

// The i-th chunk.
static __device__ inline tensor_place place_of(tensor_lines t, int64_t i) {
    tensor_place p;
    split_index(i, qg_ceil_divide(t.length, CHUNK), &p.line, &p.column);
    p.column *= CHUNK;
    p.count = count_within(p.column, t.length);
    return p;
}

// Chunks are walked from the last one: the end of the tensor may still be in a cache.
template <int Cast>
QG_KERNEL __launch_bounds__(THREADS) quantize_tensor(const __grid_constant__ quantize_args args,
                                                     tensor_lines t, const block_operand *operand) {
    int64_t chunks = t.lines * qg_ceil_divide(t.length, CHUNK), step = all_threads();
    for (int64_t i = chunks - 1 - first_chunk(); i >= 0; i -= AT_ONCE * step) {
        chunk c[AT_ONCE];
        tensor_place p[AT_ONCE];
        QG_UNROLL for (int j = 0; j < AT_ONCE; j++) {
            tensor_place none = {0, 0, 0};
            p[j] = i >= j * step ? place_of(t, i - j * step) : none;
            c[j] = load_chunk(&args, p[j].line * t.length + p[j].column, p[j].count);
        }
        QG_UNROLL for (int j = 0; j < AT_ONCE; j++) if (p[j].count > 0)
            store_chunk<Cast>(&args, operand, &c[j], p[j].line * t.length + p[j].column,
                              code_address(&args, p[j].line, p[j].column), p[j].count);
    }
}

static cudaError_t launch_codes(const quantize_args *args, const block_operand *operand,
                                cudaStream_t stream) {
    tensor_lines t = lines_of(args);
    dim3 grid(grid_of(t.lines * qg_ceil_divide(t.length, CHUNK))), cta(THREADS);
    switch (args->cast) {
    case CAST_FUNCTION:
        return QG_LAUNCH((quantize_tensor<CAST_FUNCTION>), grid, cta, 0, stream, *args, t, operand);
    case CAST_E4M3:
    case CAST_E5M2:
        return QG_LAUNCH((quantize_tensor<CAST_E4M3>), grid, cta, 0, stream, *args, t, operand);
    default:
        return QG_LAUNCH((quantize_tensor<CAST_ENCODER>), grid, cta, 0, stream, *args, t, operand);
    }
}

qg_status launch_tensor(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error) {
    block_operand *operand = (block_operand *)((char *)args->call.scratch + QG_LOAD_BYTES);
    qg_status status = QG_OK;
    if (!scale_is_constant(args))
        status = launch_tensor_amax(args, stream, error);
    if (status == QG_OK)
        status =
            kernel_status(QG_LAUNCH(scale_of_tensor, dim3(1), dim3(1), 0, stream, *args, operand),
                          "scale_of_tensor", error);
    if (status == QG_OK)
        status = kernel_status(launch_codes(args, operand, stream), "quantize_tensor", error);
    return status;
}

static_assert(sizeof(block_operand) <= sizeof(tensor_scales), "scratch holds the operand");
