// A binary32 product whose every output is one chain of fma over ascending k from +0: the
// arithmetic of unit fp32_fma. Where cuBLASLt takes no product, this one multiplies.
// A CTA owns a tile of outputs, a thread four by four of it. Zeros that fill a tile up are never
// multiplied: a chain that has underflowed to -0 would lose its sign to one.
#include <chunk.cuh>
#include <launch.h>
#include <qg_size.h>

enum { THREADS = 256, TILE = 64, DEPTH = 16, OWN = 4, ACROSS = TILE / OWN };

// A slice of both operands, k first, so that a thread reads its rows as one vector.
typedef struct slices {
    float a[DEPTH][TILE], b[DEPTH][TILE];
} slices;

// Rows row .. row + 63 of an operand, columns column .. column + 15. What lies outside is not read
// and its place holds 0.
static __device__ inline void load_slice(const float *x, int64_t rows, int64_t k, int64_t row,
                                         int64_t column, float (*slice)[TILE]) {
    int own = (int)threadIdx.x / (DEPTH / OWN), from = (int)threadIdx.x % (DEPTH / OWN) * OWN;
    const float *at = x + (row + own) * k + column + from;
    float v[OWN];
    if (row + own < rows && k - column - from >= OWN && is_aligned(at, 16)) {
        float4 whole = *(const float4 *)at;
        v[0] = whole.x, v[1] = whole.y, v[2] = whole.z, v[3] = whole.w;
    } else {
        QG_UNROLL for (int i = 0; i < OWN; i++) v[i] =
            row + own < rows && column + from + i < k ? at[i] : 0.0f;
    }
    QG_UNROLL for (int i = 0; i < OWN; i++) slice[from + i][own] = v[i];
}

static __device__ inline void multiply_step(const slices *s, int l, int down, int across,
                                            float (*acc)[OWN]) {
    float a[OWN], b[OWN];
    QG_UNROLL for (int i = 0; i < OWN; i++) {
        a[i] = s->a[l][down + i];
        b[i] = s->b[l][across + i];
    }
    QG_UNROLL for (int i = 0; i < OWN; i++) QG_UNROLL for (int j = 0; j < OWN; j++) acc[i][j] =
        __fmaf_rn(a[i], b[j], acc[i][j]);
}

static __device__ inline void store_output(const qg_cuda_multiply *p, int64_t row, int64_t column,
                                           float acc) {
    int64_t at = row * p->n + column;
    float sum = p->bias ? acc + p->bias[column] : acc;
    if (p->out_type == QG_FORMAT_FP32)
        ((float *)p->out)[at] = qg_canonical_sum(sum);
    else
        ((uint16_t *)p->out)[at] =
            p->out_type == QG_FORMAT_BF16 ? qg_bf16_of_sum(sum) : qg_fp16_of_sum(sum);
}

static __device__ inline void multiply_tile(const qg_cuda_multiply *p, slices *s, int64_t row,
                                            int64_t column) {
    int down = (int)threadIdx.x / ACROSS * OWN, across = (int)threadIdx.x % ACROSS * OWN;
    float acc[OWN][OWN] = {};
    for (int64_t l = 0; l < p->k; l += DEPTH) {
        load_slice(p->a, p->m, p->k, row, l, s->a);
        load_slice(p->b, p->n, p->k, column, l, s->b);
        __syncthreads();
        if (p->k - l >= DEPTH) {
            QG_UNROLL for (int i = 0; i < DEPTH; i++) multiply_step(s, i, down, across, acc);
        } else {
            for (int i = 0; i < (int)(p->k - l); i++)
                multiply_step(s, i, down, across, acc);
        }
        __syncthreads();
    }
    QG_UNROLL for (int i = 0; i < OWN; i++)
        QG_UNROLL for (int j = 0; j < OWN;
                       j++) if (row + down + i < p->m && column + across + j < p->n)
            store_output(p, row + down + i, column + across + j, acc[i][j]);
}

QG_KERNEL __launch_bounds__(THREADS) multiply(const __grid_constant__ qg_cuda_multiply p) {
    QG_SHARED(slices, s, 1);
    int64_t tile_columns = qg_ceil_divide(p.n, TILE);
    int64_t tiles = qg_ceil_divide(p.m, TILE) * tile_columns;
    for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
        int64_t tile_row, tile_column;
        split_index(i, tile_columns, &tile_row, &tile_column);
        multiply_tile(&p, s, tile_row * TILE, tile_column * TILE);
    }
}

static qg_status check_multiply(const qg_cuda_multiply *p, qg_cuda_error *error) {
    int64_t bytes;
    if (p->m < 1 || p->n < 1 || p->k < 1)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "m, n and k must be at least 1");
    if (!p->a || !p->b || !p->out)
        return kernel_fail(error, QG_ERROR_ARGUMENT, "a buffer of the product is missing");
    if (p->out_type != QG_FORMAT_FP32 && p->out_type != QG_FORMAT_BF16 &&
        p->out_type != QG_FORMAT_FP16)
        return kernel_fail(error, QG_ERROR_UNSUPPORTED, "products are fp32, bf16 or fp16");
    if (!qg_size_multiply(p->m, p->n, &bytes) || !qg_size_multiply(bytes, 4, &bytes) ||
        !qg_size_multiply(p->m, p->k, &bytes) || !qg_size_multiply(bytes, 4, &bytes) ||
        !qg_size_multiply(p->n, p->k, &bytes) || !qg_size_multiply(bytes, 4, &bytes))
        return kernel_fail(error, QG_ERROR_OVERFLOW, "a matrix exceeds 2^63 - 1 bytes");
    return QG_OK;
}

qg_status launch_multiply(const qg_cuda_multiply *p, cudaStream_t stream, qg_cuda_error *error) {
    qg_status status = check_multiply(p, error);
    if (status != QG_OK)
        return status;
    int64_t tiles = qg_ceil_divide(p->m, TILE) * qg_ceil_divide(p->n, TILE);
    unsigned grid = tiles < QG_GRID_X_MOST ? (unsigned)tiles : (unsigned)QG_GRID_X_MOST;
    return kernel_status(QG_LAUNCH(multiply, dim3(grid), dim3(THREADS), 0, stream, *p), "multiply",
                         error);
}
