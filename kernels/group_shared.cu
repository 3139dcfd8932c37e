// The shared kernel of 1xG groups: a CTA of 128 threads holds one group at a time, a thread one
// element at a time, the amax goes through shared memory. Elements are read twice.
// Source: Metrale's FP8 activation quantizer, generalised. Exact: the emulator's bytes.
#include <group.cuh>

enum { CTA_WARPS = QG_CTA_THREADS / QG_WARP_THREADS };

// Of the group, in all threads, which must all come here.
static __device__ inline float amax_of_group(const group_args *a, int64_t row, int64_t group) {
    QG_SHARED(float, of_warp, CTA_WARPS);
    const quantize_args *q = &a->q;
    int thread = (int)threadIdx.x, policy = q->call.recipe.amax;
    float amax = 0.0f;
    for (int64_t step = 0; step < a->partition.steps; step++) {
        qg_span c = qg_partition_columns(&a->partition, group, thread, step);
        if (c.begin < c.end)
            amax =
                qg_amax_step(policy, amax, load_element<INPUT_ANY>(q, row * q->call.k + c.begin));
    }
    for (int d = QG_WARP_THREADS / 2; d > 0; d /= 2)
        amax = qg_amax_step(policy, amax, __shfl_xor_sync(0xffffffffu, amax, d));
    if (thread % QG_WARP_THREADS == 0)
        of_warp[thread / QG_WARP_THREADS] = amax;
    __syncthreads();
    for (int warp = 0; warp < CTA_WARPS; warp++)
        amax = qg_amax_step(policy, amax, of_warp[warp]);
    __syncthreads(); // the next group's are written to the same place
    return amax;
}

template <int Cast>
static __device__ inline void quantize_group(const group_args *a, int64_t row, int64_t group) {
    const quantize_args *q = &a->q;
    int thread = (int)threadIdx.x;
    float amax = amax_of_group(a, row, group);
    group_operand o = group_operand_of<Cast>(q, amax);
    if (qg_partition_lane(&a->partition, thread) == 0)
        store_scale(q, row, group, o.bits);
    for (int64_t step = 0; step < a->partition.steps; step++) {
        qg_span c = qg_partition_columns(&a->partition, group, thread, step);
        if (c.begin == c.end)
            return;
        if (Cast == CAST_FUNCTION || o.by_function || q->unit > 1) {
            quantize_columns(q, row, group, amax, c.begin, c.end);
            continue;
        }
        float x = load_element<INPUT_ANY>(q, row * q->call.k + c.begin);
        float v = o.divides ? x / o.operand : x * o.operand;
        q->call.codes[row * q->row_bytes + c.begin] = (uint8_t)code_of_value<Cast>(q, v);
    }
}

template <int Cast> QG_KERNEL group_shared(const __grid_constant__ group_args a) {
    int64_t row = qg_partition_row(a.q.slab, blockIdx.x);
    qg_span span = qg_partition_span_at(&a.partition, a.span_size, blockIdx.y);
    for (int64_t first = span.begin; first < span.end; first += a.partition.held)
        quantize_group<Cast>(&a, row, qg_partition_group(&a.partition, first, (int)threadIdx.x));
}

// Other casts go by the encoder.
qg_status launch_group_shared(const quantize_args *args, cudaStream_t stream,
                              qg_cuda_error *error) {
    group_args a = group_args_of(args, QG_GROUP_KERNEL_SHARED);
    return launch_groups(args->cast == CAST_FUNCTION ? group_shared<CAST_FUNCTION>
                         : args->cast == CAST_E4M3   ? group_shared<CAST_E4M3>
                                                     : group_shared<CAST_ENCODER>,
                         &a, stream, error);
}
