// Blocks of any shape, rows among them: a CTA per block. A thread keeps its first chunks between the
// amax and the codes; what a block holds beyond them is read twice, the second time from a cache.
#include <chunk.cuh>
#include <launch.h>

enum { MOST_THREADS = 512, KEPT = 4 };

// The chunks of a thread: neighbouring threads have neighbouring chunks of a line of the block.
typedef struct chunk_walk {
    int64_t line, column; // of the block
    int64_t lines, columns;
    int64_t step_lines, step_columns;
} chunk_walk;

static __device__ inline chunk_walk walk_of(qg_block_range r) {
    chunk_walk w;
    int64_t chunks;
    w.lines = r.row_end - r.row_begin;
    w.columns = r.column_end - r.column_begin;
    chunks = qg_ceil_divide(w.columns, CHUNK);
    split_index((int64_t)threadIdx.x, chunks, &w.line, &w.column);
    split_index((int64_t)blockDim.x, chunks, &w.step_lines, &w.step_columns);
    w.column *= CHUNK;
    w.step_columns *= CHUNK;
    return w;
}

static __device__ inline void advance(chunk_walk *w) {
    w->line += w->step_lines;
    w->column += w->step_columns;
    if (w->column >= w->columns) {
        w->column -= qg_round_up(w->columns, CHUNK);
        w->line++;
    }
}

// Elements of the chunk where the walk stands, 0 behind the block.
static __device__ inline int chunk_count(const chunk_walk *w) {
    if (w->line >= w->lines)
        return 0;
    return w->columns - w->column < CHUNK ? (int)(w->columns - w->column) : (int)CHUNK;
}

static __device__ inline int64_t chunk_first(const quantize_args *args, qg_block_range r,
                                             const chunk_walk *w) {
    return (r.row_begin + w->line) * args->blocks.k + r.column_begin + w->column;
}

template <int Cast>
static __device__ inline void store_walked(const quantize_args *args, const block_operand *b,
                                           qg_block_range r, const chunk_walk *w, const chunk *c) {
    int count = chunk_count(w);
    if (count > 0)
        store_chunk<Cast>(args, b, c, chunk_first(args, r, w),
                          code_address(args, r.row_begin + w->line, r.column_begin + w->column),
                          count);
}

template <int Cast>
QG_KERNEL __launch_bounds__(MOST_THREADS)
    quantize_block(const __grid_constant__ quantize_args args) {
    QG_SHARED(uint32_t, of_warps, QG_WARP_THREADS);
    QG_SHARED(block_operand, operand, 1);
    int64_t block_row, block_column;
    split_index(qg_partition_row(args.slab, blockIdx.x), args.blocks.block_columns, &block_row,
                &block_column);
    qg_block_range r = qg_block_at(&args.blocks, block_row, block_column);
    uint32_t amax = 0;

    chunk kept[KEPT];
    chunk_walk w = walk_of(r);
    QG_UNROLL for (int i = 0; i < KEPT; i++) {
        kept[i] = load_chunk(&args, chunk_first(&args, r, &w), chunk_count(&w));
        advance(&w);
    }
    QG_UNROLL for (int i = 0; i < KEPT; i++) amax = chunk_amax(&args, amax, &kept[i]);
    for (; chunk_count(&w) > 0; advance(&w)) {
        chunk c = load_chunk(&args, chunk_first(&args, r, &w), chunk_count(&w));
        amax = chunk_amax(&args, amax, &c);
    }

    amax = cta_amax(amax, of_warps);
    if (threadIdx.x == 0) {
        operand[0] = operand_of_amax<Cast>(&args, qg_float_of_bits(amax));
        store_scale(&args, block_row, block_column, operand[0].bits);
    }
    __syncthreads();

    w = walk_of(r);
    QG_UNROLL for (int i = 0; i < KEPT; i++) {
        store_walked<Cast>(&args, operand, r, &w, &kept[i]);
        advance(&w);
    }
    for (; chunk_count(&w) > 0; advance(&w)) {
        chunk c = load_chunk(&args, chunk_first(&args, r, &w), chunk_count(&w));
        store_walked<Cast>(&args, operand, r, &w, &c);
    }
}

static cudaError_t launch_slab(const quantize_args *args, unsigned grid, int threads,
                               cudaStream_t stream) {
    dim3 ctas(grid), cta((unsigned)threads);
    switch (args->cast) {
    case CAST_FUNCTION:
        return QG_LAUNCH((quantize_block<CAST_FUNCTION>), ctas, cta, 0, stream, *args);
    case CAST_E4M3:
    case CAST_E5M2: return QG_LAUNCH((quantize_block<CAST_E4M3>), ctas, cta, 0, stream, *args);
    default: return QG_LAUNCH((quantize_block<CAST_ENCODER>), ctas, cta, 0, stream, *args);
    }
}

qg_status launch_ctas(const quantize_args *args, int64_t elements, cudaStream_t stream,
                      qg_cuda_error *error) {
    quantize_args a = *args;
    int64_t blocks = a.blocks.block_rows * a.blocks.block_columns;
    int64_t threads = qg_round_up(qg_ceil_divide(elements, CHUNK * KEPT), QG_WARP_THREADS);
    int cta = threads < MOST_THREADS ? (int)threads : (int)MOST_THREADS;
    for (a.slab = 0; a.slab < qg_partition_slabs(blocks); a.slab++) {
        unsigned grid = (unsigned)qg_partition_grid_x(blocks, a.slab);
        cudaError_t code = launch_slab(&a, grid, cta, stream);
        qg_status status = kernel_status(code, "quantize_block", error);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

qg_status launch_block(const quantize_args *args, cudaStream_t stream, qg_cuda_error *error) {
    int64_t rows = args->blocks.m < args->blocks.rows ? args->blocks.m : args->blocks.rows;
    int64_t chunks = qg_ceil_divide(
        args->blocks.k < args->blocks.columns ? args->blocks.k : args->blocks.columns, CHUNK);
    return launch_ctas(args, rows * chunks * CHUNK, stream, error);
}
