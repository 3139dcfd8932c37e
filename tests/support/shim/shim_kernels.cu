// Kernels that test the shim: see shim_kernels.h.
#include <cuda_shim.h>

#include "shim_kernels.h"

static __device__ unsigned thread_number() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

template <bool guarded> static __device__ void rotated(uint32_t *out, const uint32_t *in) {
    QG_SHARED(uint32_t, s, 1024);
    unsigned t = threadIdx.x, n = blockDim.x;
    s[t] = in[t];
    if (guarded)
        __syncthreads();
    out[t] = s[(t + 1) % n];
}

QG_KERNEL rotate(uint32_t *out, const uint32_t *in) { rotated<true>(out, in); }
QG_KERNEL rotate_unguarded(uint32_t *out, const uint32_t *in) { rotated<false>(out, in); }

// Every thread reads its neighbour in the next warp, then overwrites its own place.
template <bool guarded> static __device__ void overtaken(uint32_t *out, const uint32_t *in) {
    QG_SHARED(uint32_t, s, 1024);
    unsigned t = threadIdx.x, n = blockDim.x;
    s[t] = in[t];
    __syncthreads();
    unsigned v = s[(t + 32) % n];
    v += __shfl_xor_sync(0xffffffffu, 0u, 1);
    if (guarded)
        __syncthreads();
    s[t] = 0;
    out[t] = v;
}

QG_KERNEL warp_overtakes(uint32_t *out, const uint32_t *in) { overtaken<false>(out, in); }
QG_KERNEL warp_waits(uint32_t *out, const uint32_t *in) { overtaken<true>(out, in); }

QG_KERNEL maximum(uint32_t *out, const uint32_t *in) {
    QG_SHARED(float, s, 128);
    if (threadIdx.x < in[blockIdx.x])
        s[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    float v = 0;
    for (float a : s)
        v = a > v ? a : v;
    out[blockIdx.x] = __float_as_uint(v);
}

static __device__ unsigned char *array_of_function() {
    QG_SHARED(unsigned char, odd, 7);
    return &odd[0];
}

QG_KERNEL many_arrays(uint32_t *out, const uint32_t *) {
    QG_DYNAMIC_SHARED(uint4, dynamic);
    QG_SHARED(unsigned char, odd, 7);
    QG_SHARED(double2, wide, 3);
    uintptr_t base = reinterpret_cast<uintptr_t>(dynamic);
    unsigned *place = out + 4 * threadIdx.x;
    place[0] = static_cast<unsigned>(base % 1024);
    place[1] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(&odd[0]) - base);
    place[2] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(&wide[0]) - base);
    place[3] = static_cast<unsigned>(reinterpret_cast<uintptr_t>(array_of_function()) - base);
}

QG_KERNEL half_barrier(uint32_t *out, const uint32_t *) {
    if (threadIdx.x < blockDim.x / 2)
        __syncthreads();
    out[threadIdx.x] = 1;
}

QG_KERNEL two_barriers(uint32_t *out, const uint32_t *) {
    if (threadIdx.x < blockDim.x / 2)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

QG_KERNEL barrier_or_shuffle(uint32_t *out, const uint32_t *) {
    if (threadIdx.x == 5)
        __syncthreads();
    out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
}

QG_KERNEL lane_ended(uint32_t *out, const uint32_t *) {
    if (threadIdx.x == 9)
        return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
}

QG_KERNEL other_kind(uint32_t *out, const uint32_t *) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0);
    else
        out[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}

QG_KERNEL other_mask(uint32_t *out, const uint32_t *) {
    unsigned mask = threadIdx.x < 16 ? 0xffffffffu : 0xffff8000u;
    out[threadIdx.x] = __shfl_xor_sync(mask, threadIdx.x, 1);
}

QG_KERNEL not_in_mask(uint32_t *out, const uint32_t *) {
    out[threadIdx.x] = __shfl_sync(0xfffffff7u, threadIdx.x, 0);
}

QG_KERNEL outside_mask(uint32_t *out, const uint32_t *) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, threadIdx.x, 16);
}

QG_KERNEL odd_width(uint32_t *out, const uint32_t *) {
    out[threadIdx.x] = __shfl_sync(0xffffffffu, threadIdx.x, 0, 12);
}

QG_KERNEL half_warps(uint32_t *out, const uint32_t *) {
    unsigned t = threadIdx.x;
    unsigned v = t;
    if (t % 32 < 16) {
        v += __shfl_xor_sync(0x0000ffffu, v, 1);
        v += __shfl_xor_sync(0x0000ffffu, v, 2);
    } else {
        v += __shfl_xor_sync(0xffff0000u, v, 1);
    }
    __syncwarp();
    out[t] = v;
}

QG_KERNEL past_dynamic(uint32_t *out, const uint32_t *in) {
    QG_DYNAMIC_SHARED(unsigned char, bytes);
    for (unsigned i = threadIdx.x; i <= in[0]; i += blockDim.x)
        bytes[i] = 1;
    out[threadIdx.x] = 1;
}

QG_KERNEL past_static(uint32_t *out, const uint32_t *in) {
    QG_SHARED(uint32_t, small, 5);
    QG_SHARED(uint32_t, other, 5);
    if (threadIdx.x == 0) {
        uint32_t *behind = small + in[0];
        *behind = 1;
    }
    other[threadIdx.x % 5] = 0;
    out[threadIdx.x] = 1;
}

QG_KERNEL write_at(uint32_t *out, const uint32_t *in) { out[static_cast<int>(in[0])] = 1; }

QG_KERNEL much_static(uint32_t *out, const uint32_t *) {
    QG_SHARED(uint32_t, first, 8000);
    QG_SHARED(uint32_t, second, 8000);
    first[0] = second[0] = out[0];
}

template <int width> static __device__ uint32_t *shuffle_all(uint32_t *out, unsigned lane) {
    for (unsigned b = 0; b < 40; b++, out += 128) {
        unsigned v = 100 + lane;
        int index = static_cast<int>(b);
        out[lane] = __shfl_sync(0xffffffffu, v, index, width);
        out[32 + lane] = __shfl_up_sync(0xffffffffu, v, b, width);
        out[64 + lane] = __shfl_down_sync(0xffffffffu, v, b, width);
        out[96 + lane] = __shfl_xor_sync(0xffffffffu, v, index, width);
    }
    return out;
}

QG_KERNEL shuffles(uint32_t *out, const uint32_t *) {
    unsigned lane = threadIdx.x;
    out = shuffle_all<1>(out, lane);
    out = shuffle_all<2>(out, lane);
    out = shuffle_all<4>(out, lane);
    out = shuffle_all<8>(out, lane);
    out = shuffle_all<16>(out, lane);
    shuffle_all<32>(out, lane);
}

QG_KERNEL votes(uint32_t *out, const uint32_t *in) {
    unsigned lane = threadIdx.x, mask = in[0], v = in[1 + lane];
    if (!(mask >> lane & 1))
        return;
    out += 10 * lane;
    out[0] = __ballot_sync(mask, static_cast<int>(v & 2));
    out[1] = static_cast<uint32_t>(__any_sync(mask, v == in[0]));
    out[2] = static_cast<uint32_t>(__all_sync(mask, v != in[0]));
    out[3] = __reduce_add_sync(mask, v);
    out[4] = __reduce_min_sync(mask, v);
    out[5] = __reduce_max_sync(mask, v);
    out[6] = __reduce_and_sync(mask, v);
    out[7] = __reduce_or_sync(mask, v);
    out[8] = __reduce_xor_sync(mask, v);
    out[9] = static_cast<uint32_t>(__popc(__activemask()));
}

QG_KERNEL atomics(uint32_t *out, const uint32_t *) {
    unsigned t = thread_number();
    atomicAdd(&out[0], t);
    atomicMax(&out[1], t);
    atomicMax(reinterpret_cast<int *>(&out[2]), -5 - static_cast<int>(t));
    atomicOr(&out[3], 1u << t % 32);
    atomicAdd(reinterpret_cast<unsigned long long *>(&out[4]), 0x100000000ull + t);
    atomicAdd(reinterpret_cast<float *>(&out[6]), 0.5f);
    atomicCAS(&out[7], t, t + 1);
}

QG_KERNEL floats(uint32_t *out, const uint32_t *) {
    unsigned t = threadIdx.x;
    int next = static_cast<int>(t + 1) % 32;
    out += 4 * t;
    out[0] = __float_as_uint(__shfl_sync(0xffffffffu, -0.5f * static_cast<float>(t), next));
    out[1] = static_cast<uint32_t>(__shfl_sync(0xffffffffu, -static_cast<int>(t), next));
    out[2] = static_cast<uint32_t>(__shfl_sync(0xffffffffu, 3.0 * t, next));
    out[3] = static_cast<uint32_t>(
        __shfl_sync(0xffffffffu, static_cast<unsigned long long>(t) << 40, next) >> 40);
}

QG_KERNEL indices(uint32_t *out, const uint32_t *) {
    unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned size = blockDim.x * blockDim.y * blockDim.z;
    out[cta * size + thread_number()] =
        blockIdx.x + 10 * (blockIdx.y + 10 * (blockIdx.z + 10 * (threadIdx.x + 10 * threadIdx.y))) +
        100000 * threadIdx.z;
}

QG_KERNEL mark(uint32_t *out, const uint32_t *) {
    if (threadIdx.x == 0)
        out[blockIdx.x]++;
}

QG_KERNEL add(uint32_t *out, const uint32_t *in) { out[threadIdx.x] += in[threadIdx.x]; }

QG_KERNEL intrinsics(uint32_t *out, const uint32_t *in) {
    float a = __uint_as_float(in[0]), b = __uint_as_float(in[1]);
    out[0] = __float_as_uint(__fmaf_rn(a, b, -1.0f));
    out[1] = __float_as_uint(__fadd_rn(__fmul_rn(a, b), -1.0f));
    out[2] = __float_as_uint(__fdiv_rn(a, b));
    out[3] = static_cast<uint32_t>(__clz(static_cast<int>(in[0])));
    out[4] = static_cast<uint32_t>(__ffs(static_cast<int>(in[0])));
    out[5] = static_cast<uint32_t>(__clz(0) + __ffs(0));
    out[6] = __byte_perm(0x83020100u, 0x07060504u, 0xb374u);
    out[7] = __umulhi(in[0], in[1]);
    out[8] = __ldg(&in[1]);
    out[9] = __funnelshift_r(0x11223344u, 0x55667788u, 8);
}

struct Args {
    uint32_t *out;
    uint32_t value, padding[30];
};

QG_KERNEL changes_args(Args args, uint32_t other) {
    args.value++, other++;
    __syncthreads();
    args.out[threadIdx.x] = args.value + other;
}

QG_KERNEL copies(uint32_t *out, const uint32_t *in) {
    const uint32_t *mine = in;
    out += threadIdx.x, in += threadIdx.x;
    __syncthreads();
    *out = static_cast<uint32_t>(in - mine);
}

static __device__ uint32_t descend(volatile uint32_t depth) {
    volatile uint32_t room[256];
    room[depth % 256] = depth;
    __syncthreads();
    return depth == 0 ? 0 : 1 + descend(depth - 1) + room[depth % 256] - depth;
}

QG_KERNEL deep(uint32_t *out, const uint32_t *) { out[threadIdx.x] = descend(16); }

QG_KERNEL many(uint32_t *out, const uint32_t *in) {
    uint32_t v = threadIdx.x;
    for (uint32_t i = 0; i < in[0]; i++) {
        v = __shfl_xor_sync(0xffffffffu, v, 1);
        __syncthreads();
    }
    out[threadIdx.x] = v;
}

cudaError_t shim_launch(shim_kernel kernel, shim_size grid, shim_size block, size_t shared_bytes,
                        cudaStream_t stream, uint32_t *out, const uint32_t *in) {
    dim3 g(grid.x, grid.y, grid.z), b(block.x, block.y, block.z);
    if (kernel == SHIM_KERNEL_copies) {
        Args args = {out, 40, {}};
        cudaError_t error = QG_LAUNCH(changes_args, g, b, shared_bytes, stream, args, 2u);
        out += b.x;
        args.value = 1000; // the launch, recorded or not, has its own
        if (error != cudaSuccess)
            return error;
    }
#define SHIM_KERNEL_LAUNCH(name)                                                                   \
    case SHIM_KERNEL_##name: return QG_LAUNCH(name, g, b, shared_bytes, stream, out, in);
    switch (kernel) {
        SHIM_KERNELS(SHIM_KERNEL_LAUNCH)
    default: return cudaErrorInvalidDeviceFunction;
    }
}

cudaError_t shim_allow_shared(shim_kernel kernel, int bytes) {
#define SHIM_KERNEL_ALLOW(name)                                                                    \
    case SHIM_KERNEL_##name:                                                                       \
        return cudaFuncSetAttribute(name, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    switch (kernel) {
        SHIM_KERNELS(SHIM_KERNEL_ALLOW)
    default: return cudaErrorInvalidDeviceFunction;
    }
}
