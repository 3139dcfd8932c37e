// The vector types and the qualifiers of CUDA C++, for g++. Part of cuda_shim.h.
#ifndef SHIM_TYPES_H
#define SHIM_TYPES_H

#define __host__
#define __device__
#define __global__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
// Nothing, because libstdc++ writes __attribute__((__noinline__)).
#define __noinline__
#define __align__(n) __attribute__((aligned(n)))

#define SHIM_VECTORS(NAME, TYPE, ALIGN2, ALIGN4)                                                   \
    struct __align__(ALIGN2) NAME##2 {                                                             \
        TYPE x, y;                                                                                 \
    };                                                                                             \
    struct NAME##3 {                                                                               \
        TYPE x, y, z;                                                                              \
    };                                                                                             \
    struct __align__(ALIGN4) NAME##4 {                                                             \
        TYPE x, y, z, w;                                                                           \
    };                                                                                             \
    inline NAME##2 make_##NAME##2(TYPE x, TYPE y) { return {x, y}; }                               \
    inline NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) { return {x, y, z}; }                    \
    inline NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { return {x, y, z, w}; }

SHIM_VECTORS(char, signed char, 2, 4)
SHIM_VECTORS(uchar, unsigned char, 2, 4)
SHIM_VECTORS(short, short, 4, 8)
SHIM_VECTORS(ushort, unsigned short, 4, 8)
SHIM_VECTORS(int, int, 8, 16)
SHIM_VECTORS(uint, unsigned, 8, 16)
SHIM_VECTORS(longlong, long long, 16, 16)
SHIM_VECTORS(ulonglong, unsigned long long, 16, 16)
SHIM_VECTORS(float, float, 8, 16)
SHIM_VECTORS(double, double, 16, 16)

#undef SHIM_VECTORS

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

#endif
