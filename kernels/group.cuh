// What both kernels of 1xG groups share: their arguments, the scale of a group, and the columns
// that need more than one operation and the encoder. Where a thread's columns lie is said by
// qg_partition.h alone.
// Packed codes share bytes: the thread that has the first column of a unit writes all of it, and
// computes the codes of the others itself, so that no byte has two writers. No unit has columns of
// two groups: quantize.cu packs such tensors apart.
#ifndef GROUP_CUH
#define GROUP_CUH

#include <element.cuh>
#include <launch.h>

typedef struct group_args {
    quantize_args q;
    qg_partition partition;
    int64_t span_size;   // groups of a CTA
    int32_t loads_wide;  // every vector is whole or empty, and lies at a multiple of 16 bytes
    int32_t stores_wide; // the same of its codes, at a multiple of their bytes
    int32_t units_whole; // no unit of packed codes has columns of two threads
} group_args;

static inline int element_bytes_of(const quantize_args *q) {
    return q->input == INPUT_FP32 ? 4 : 2;
}

static inline bool is_multiple(const void *pointer, int64_t a, int64_t b, int64_t bytes) {
    return (int64_t)((uintptr_t)pointer % (uintptr_t)bytes) == 0 && a % bytes == 0 &&
           b % bytes == 0;
}

static inline group_args group_args_of(const quantize_args *q, int kernel) {
    group_args a;
    int64_t k = q->call.k, group = q->call.recipe.layout.columns;
    int bytes = element_bytes_of(q);
    a.q = *q;
    a.partition = qg_partition_of(kernel, k, group, bytes);
    a.span_size = qg_partition_span_size(&a.partition, qg_partition_grid_y(&a.partition));
    a.loads_wide = is_multiple(q->call.x, k * bytes, group * bytes, QG_LOAD_BYTES) &&
                   is_multiple(q->call.up, 0, 0, QG_LOAD_BYTES);
    int64_t store_bits = (int64_t)a.partition.vector * q->stored_bits;
    a.stores_wide = group % a.partition.vector == 0 && store_bits % 16 == 0 &&
                    is_multiple(q->call.codes, q->row_bytes, 0,
                                store_bits % 64 == 0   ? 8
                                : store_bits % 32 == 0 ? 4
                                                       : 2);
    a.units_whole = group % q->unit == 0 && a.partition.vector % q->unit == 0;
    return a;
}

// One launch per slab of rows.
static inline qg_status launch_groups(void (*kernel)(group_args), group_args *a,
                                      cudaStream_t stream, qg_cuda_error *error) {
    int64_t m = a->q.call.m, y = qg_partition_grid_y(&a->partition);
    for (int64_t slab = 0; slab < qg_partition_slabs(m); slab++) {
        a->q.slab = slab;
        dim3 grid((unsigned)qg_partition_grid_x(m, slab), (unsigned)y);
        cudaError_t code = QG_LAUNCH(kernel, grid, dim3(QG_CTA_THREADS), 0, stream, *a);
        if (code != cudaSuccess)
            return kernel_status(code, quantize_name(&a->q.call), error);
    }
    return QG_OK;
}

// ------------------------------------------------------------------------------------------ scale

// A block_operand that fits in registers: without the scale that only code_by_function reads.
typedef struct group_operand {
    uint32_t bits;
    float operand;
    uint16_t divides, by_function;
} group_operand;

static __device__ __noinline__ group_operand group_operand_by_function(const tensor_scales *s,
                                                                       float amax) {
    block_operand b;
    group_operand o;
    operand_by_function(s, amax, NULL, &b);
    o.bits = b.bits;
    o.operand = b.operand;
    o.divides = (uint16_t)b.divides;
    o.by_function = (uint16_t)b.by_function;
    return o;
}

static __device__ inline bool ordinary_operand(const tensor_scales *s, uint32_t amax_bits,
                                               group_operand *o) {
    if (s->ordinary.kind == QG_ORDINARY_NONE || !qg_is_ordinary(&s->ordinary, amax_bits))
        return false;
    o->bits = qg_ordinary_scale(&s->ordinary, amax_bits, &o->operand);
    o->divides = (uint16_t)s->ordinary.divides;
    o->by_function = 0;
    return true;
}

// Twice the same, because constants are read from the parameters at no cost only where the pointer
// is known to lead there.
template <int Cast>
static __device__ inline group_operand group_operand_of(const quantize_args *q, float amax) {
    uint32_t bits = qg_bits_of_float(amax);
    group_operand o;
    if (Cast != CAST_FUNCTION && (q->of_tensor ? ordinary_operand(q->of_tensor, bits, &o)
                                               : ordinary_operand(&q->scales, bits, &o)))
        return o;
    return group_operand_by_function(scales_of(q), amax);
}

// ------------------------------------------------------------------------------------------ codes

// By run-time type and cast. Every cast but CAST_FUNCTION gives what the encoder gives.
static __device__ __noinline__ float any_element(const quantize_args *q, int64_t i) {
    return load_element<INPUT_ANY>(q, i);
}

static __device__ __noinline__ uint64_t code_under(const quantize_args *q, const block_operand *b,
                                                   int64_t i) {
    float x = any_element(q, i);
    return q->cast == CAST_FUNCTION ? element_code<CAST_FUNCTION>(q, b, x, i)
                                    : element_code<CAST_ENCODER>(q, b, x, i);
}

// The units that begin in columns begin .. end - 1 of a group, whose amax this is.
static __device__ __noinline__ void quantize_columns(const quantize_args *q, int64_t row,
                                                     int64_t group, float amax, int64_t begin,
                                                     int64_t end) {
    int64_t row_begin = row * q->call.k;
    int64_t group_end = qg_block_at(&q->blocks, row, group).column_end;
    block_operand b;
    operand_by_function(scales_of(q), amax, NULL, &b);
    for (int64_t column = begin; column < end; column++) {
        if (column % q->unit != 0)
            continue;
        uint64_t word = 0;
        for (int j = 0; j < q->unit && column + j < group_end; j++)
            word |= code_under(q, &b, row_begin + column + j) << (j * q->stored_bits);
        store_unit(q, row, column, word);
    }
}

#endif
