// Kernels that test the shim, right and wrong ones: launches from C.
#ifndef SHIM_KERNELS_H
#define SHIM_KERNELS_H

#include <stdint.h>

#include "shim_api.h"

// X(name): t is the thread's number in its CTA.
#define SHIM_KERNELS(X)                                                                            \
    X(rotate)             /* through shared memory: out[t] = in[t + 1 mod n] */                    \
    X(rotate_unguarded)   /* the same with its barrier missing */                                  \
    X(warp_overtakes)     /* shuffles between a read and a write that need a barrier */            \
    X(warp_waits)         /* the same with the barrier */                                          \
    X(maximum)            /* out[CTA]: of 128 shared floats, of which in[CTA] were written */      \
    X(many_arrays)        /* out[4 t]: where four shared arrays lie */                             \
    X(half_barrier)       /* a barrier for half of the threads */                                  \
    X(two_barriers)       /* a barrier of its own for each half */                                 \
    X(barrier_or_shuffle) /* lane 5 waits at a barrier, the others at a shuffle */                 \
    X(lane_ended)         /* a shuffle that names a lane that ended */                             \
    X(other_kind)         /* half a warp shuffles, the other half votes */                         \
    X(other_mask)         /* lanes that name different masks */                                    \
    X(not_in_mask)        /* a lane that its own mask lacks */                                     \
    X(outside_mask)       /* a lane that reads one outside of the mask */                          \
    X(odd_width)          /* a shuffle of width 12 */                                              \
    X(half_warps)         /* each half of a warp shuffles under a mask of its own: right */        \
    X(past_dynamic)       /* writes the byte behind dynamic shared memory */                       \
    X(past_static)        /* writes behind a shared array */                                       \
    X(write_at)           /* out[(int)in[0]] = 1, a float's worth of bytes */                      \
    X(much_static)        /* more shared arrays than nvcc allows */                                \
    X(shuffles)           /* out: all kinds, widths and operands, see test_shim.c */               \
    X(votes)              /* out: ballots, votes and reductions under the mask in[0] */            \
    X(atomics)            /* out[0..7]: of all threads */                                          \
    X(floats)             /* out: shuffled floats, doubles and 64-bit integers */                  \
    X(indices)            /* out[number in the grid]: number composed of all indices */            \
    X(mark)               /* out[blockIdx.x]++ */                                                  \
    X(add)                /* out[t] += in[t] */                                                    \
    X(intrinsics)         /* out: of in[0], in[1] */                                               \
    X(copies)             /* threads change their parameters: out[t] */                            \
    X(deep)               /* recursion over 16 KB of stack */                                      \
    X(many)               /* in[0] barriers and shuffles, for the time of a switch */

#define SHIM_KERNEL_ENUM(name) SHIM_KERNEL_##name,
enum shim_kernel { SHIM_KERNELS(SHIM_KERNEL_ENUM) SHIM_KERNEL_COUNT };

#ifdef __cplusplus
extern "C" {
#endif

struct shim_size {
    uint32_t x, y, z;
};

// Launches a kernel(out, in).
cudaError_t shim_launch(enum shim_kernel kernel, struct shim_size grid, struct shim_size block,
                        size_t shared_bytes, cudaStream_t stream, uint32_t *out,
                        const uint32_t *in);

// Lets a kernel have that much dynamic shared memory.
cudaError_t shim_allow_shared(enum shim_kernel kernel, int bytes);

#ifdef __cplusplus
}
#endif

#endif
