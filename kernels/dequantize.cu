// Codes and scales back to values, from any recipe and storage. Codes of at most 8 bits and scales
// of one byte are looked up in tables that a CTA fills first.
#include <chunk.cuh>
#include <launch.h>
#include <qg_pack.h>

enum { THREADS = 256, MOST_CTAS = 4096, TABLE = 256 };

typedef struct dequantize_args {
    qg_cuda_dequantize call;
    qg_blocks blocks;
    qg_element element;
    int64_t row_bytes, planes_bytes;
    int32_t bits;       // of a stored code
    int32_t code_bytes; // unpacked
    int32_t scale_bytes;
} dequantize_args;

typedef struct value_tables {
    float values[TABLE], scales[TABLE];
} value_tables;

static __device__ inline void fill_tables(const dequantize_args *args, value_tables *t) {
    const qg_recipe *recipe = &args->call.recipe;
    for (uint32_t code = threadIdx.x; code < TABLE; code += blockDim.x) {
        t->values[code] = (float)qg_decode(&args->element.info, code);
        if (args->scale_bytes == 1)
            t->scales[code] = qg_scale_value(recipe, &args->element, args->call.tensor_scale, code);
    }
    __syncthreads();
}

// ------------------------------------------------------------------------------------------ codes

static __device__ inline uint64_t load_bytes(const uint8_t *at, int bytes) {
    uint64_t word = 0;
    if (bytes == 8 && is_aligned(at, 8))
        return *(const uint64_t *)at;
    if (bytes == 4 && is_aligned(at, 4))
        return *(const uint32_t *)at;
    for (int i = 0; i < bytes; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

// The values of a chunk of one plane; every one is a binary32 number.
static __device__ inline void load_values(const dequantize_args *args, const value_tables *t,
                                          int plane, int64_t row, int64_t column, int count,
                                          float *values) {
    int bits = args->bits;
    const uint8_t *at =
        args->call.codes + plane * args->planes_bytes + row * args->row_bytes + column * bits / 8;
    if (bits > 8) {
        for (int i = 0; i < count; i++)
            values[i] = (float)qg_decode(&args->element.info,
                                         load_bytes(at + i * args->code_bytes, args->code_bytes));
        return;
    }
    uint64_t word = load_bytes(at, bytes_of(count, bits));
    uint32_t mask = (1u << bits) - 1;
    QG_UNROLL for (int i = 0; i < CHUNK; i++) values[i] =
        t->values[(uint32_t)(word >> (bits * i)) & mask];
}

// ----------------------------------------------------------------------------------------- scales

static __device__ inline uint32_t load_field(const dequantize_args *args, int64_t block_row,
                                             int64_t block_column, int place, int bytes) {
    int64_t offset = qg_scale_order_offset(args->call.order, args->blocks.block_rows,
                                           args->blocks.block_columns, block_row, block_column);
    return (uint32_t)load_bytes(args->call.scales + offset * args->scale_bytes + place, bytes);
}

static __device__ inline float load_scale(const dequantize_args *args, const value_tables *t,
                                          int64_t block_row, int64_t block_column) {
    uint32_t bits = load_field(args, block_row, block_column, 0, args->scale_bytes);
    return args->scale_bytes == 1 ? t->scales[bits] : qg_float_of_bits(bits);
}

// ----------------------------------------------------------------------------------------- chunks

// A chunk may lie in several blocks.
static __device__ inline void dequantize_plain(const dequantize_args *args, const value_tables *t,
                                               int64_t row, int64_t column, int count, float *q) {
    int64_t block_row, within, block_column, last = column + count - 1;
    split_index(row, args->blocks.rows, &block_row, &within);
    split_index(column, args->blocks.columns, &block_column, &within);
    load_values(args, t, 0, row, column, count, q);
    float x = load_scale(args, t, block_row, block_column);
    if (within + (last - column) < args->blocks.columns) {
        QG_UNROLL for (int i = 0; i < CHUNK; i++) q[i] = qg_dequantized_float(q[i], x);
        return;
    }
    for (int i = 0; i < count; i++, within++) {
        if (within == args->blocks.columns) {
            within = 0;
            x = load_scale(args, t, block_row, ++block_column);
        }
        q[i] = qg_dequantized_float(q[i], x);
    }
}

// Groups have 16 elements: a chunk lies in one.
static __device__ inline void dequantize_pairs(const dequantize_args *args, const value_tables *t,
                                               int64_t row, int64_t column, int count, float *q) {
    int64_t block_column, within;
    split_index(column, args->blocks.columns, &block_column, &within);
    qg_pair_block b;
    b.amax = 0.0f;
    b.exponent = load_field(args, row, block_column, 0, 1);
    b.shifts = load_field(args, row, block_column, 1, 1);
    load_values(args, t, 0, row, column, count, q);
    for (int i = 0; i < count; i++)
        q[i] = qg_dequantized_float(q[i], qg_pair_block_scale(&b, within + i).x);
}

static __device__ inline void dequantize_residual(const dequantize_args *args,
                                                  const value_tables *t, int64_t row,
                                                  int64_t column, int count, float *q) {
    int64_t block_column, within;
    float second[CHUNK];
    split_index(column, args->blocks.columns, &block_column, &within);
    float x0 = qg_float_of_bits(load_field(args, row, block_column, 0, 4));
    float x1 = qg_float_of_bits(load_field(args, row, block_column, 4, 4));
    load_values(args, t, 0, row, column, count, q);
    load_values(args, t, 1, row, column, count, second);
    for (int i = 0; i < count; i++)
        q[i] = qg_residual_value((double)q[i], x0, (double)second[i], x1);
}

// ------------------------------------------------------------------------------------------ store

static __device__ inline void store_floats(float *at, const float *q, int count) {
    if (count == CHUNK && is_aligned(at, 16)) {
        ((float4 *)at)[0] = make_float4(q[0], q[1], q[2], q[3]);
        ((float4 *)at)[1] = make_float4(q[4], q[5], q[6], q[7]);
        return;
    }
    for (int i = 0; i < count; i++)
        at[i] = q[i];
}

static __device__ inline void store_bf16(uint16_t *at, const float *q, int count) {
    if (count == CHUNK && is_aligned(at, 16)) {
        uint32_t pairs[CHUNK / 2];
        QG_UNROLL for (int i = 0; i < CHUNK / 2; i++) pairs[i] =
            qg_bf16_of_sum(q[2 * i]) | (uint32_t)qg_bf16_of_sum(q[2 * i + 1]) << 16;
        *(uint4 *)at = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
        return;
    }
    for (int i = 0; i < count; i++)
        at[i] = qg_bf16_of_sum(q[i]);
}

// ----------------------------------------------------------------------------------------- kernel

QG_KERNEL __launch_bounds__(THREADS) dequantize(const __grid_constant__ dequantize_args args) {
    QG_SHARED(value_tables, tables, 1);
    fill_tables(&args, tables);
    int64_t k = args.blocks.k, of_row = qg_ceil_divide(k, CHUNK);
    int64_t chunks = args.blocks.m * of_row, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < chunks; i += step) {
        int64_t row, column;
        float q[CHUNK];
        split_index(i, of_row, &row, &column);
        column *= CHUNK;
        int count = k - column < CHUNK ? (int)(k - column) : (int)CHUNK;
        switch (args.call.recipe.structure) {
        case QG_STRUCTURE_PAIR_SHIFT:
        case QG_STRUCTURE_NO_SHIFT: dequantize_pairs(&args, tables, row, column, count, q); break;
        case QG_STRUCTURE_RESIDUAL:
            dequantize_residual(&args, tables, row, column, count, q);
            break;
        default: dequantize_plain(&args, tables, row, column, count, q);
        }
        if (args.call.out_type == QG_FORMAT_BF16)
            store_bf16((uint16_t *)args.call.q + row * k + column, q, count);
        else
            store_floats((float *)args.call.q + row * k + column, q, count);
    }
}

static qg_status check_dequantize(const qg_cuda_dequantize *call, qg_cuda_error *error) {
    if (call->out_type != QG_FORMAT_FP32 && call->out_type != QG_FORMAT_BF16)
        return kernel_fail(error, QG_ERROR_UNSUPPORTED, "values are fp32 or bf16");
    qg_status status = check_stored(&call->recipe, call->order, call->m, call->k, error);
    if (status == QG_OK && (!call->codes || !call->scales || !call->q))
        status = kernel_fail(error, QG_ERROR_ARGUMENT, "a buffer of the dequantization is missing");
    return status;
}

qg_status launch_dequantize(const qg_cuda_dequantize *call, cudaStream_t stream,
                            qg_cuda_error *error) {
    dequantize_args args = {};
    qg_status status = check_dequantize(call, error);
    if (status != QG_OK)
        return status;
    args.call = *call;
    args.blocks = qg_layout_apply(call->recipe.layout, call->m, call->k);
    args.element = qg_element_of(call->recipe.element);
    args.code_bytes = qg_format_code_bytes(&args.element.info);
    int bits = args.element.info.bits;
    args.bits = call->packed && (bits == 4 || bits == 6) ? bits : 8 * args.code_bytes;
    args.row_bytes = args.bits < 8 ? qg_packed_bytes(bits, call->k) : call->k * args.code_bytes;
    args.planes_bytes = args.row_bytes * call->m;
    args.scale_bytes = recipe_scale_bytes(&call->recipe);
    int64_t ctas = qg_ceil_divide(call->m * qg_ceil_divide(call->k, CHUNK), THREADS);
    unsigned grid = ctas < MOST_CTAS ? (unsigned)ctas : (unsigned)MOST_CTAS;
    return kernel_status(QG_LAUNCH(dequantize, dim3(grid), dim3(THREADS), 0, stream, args),
                         "dequantize", error);
}
