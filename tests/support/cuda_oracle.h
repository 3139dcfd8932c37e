// NVIDIA's own conversions (cuda_fp8.h, cuda_fp6.h, cuda_fp4.h as plain C, on the host) beside
// ours, one row per conversion. Only where the toolkit's headers are: QG_HAVE_CUDA_HEADERS.
#ifndef CUDA_ORACLE_H
#define CUDA_ORACLE_H

#include <qg_codec.h>

#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

// Rows: X(id, format, rounding, overflow, shape, a, b). The conversion of x from a type of CUDA's
// is ORACLE_<shape>(type, x, a, b).
#define ORACLE_FP8(from, x, saturation, kind) __nv_cvt_##from##_to_fp8(x, saturation, kind)
#define ORACLE_FP6(from, x, kind, rounding)   __nv_cvt_##from##_to_fp6(x, kind, rounding)
#define ORACLE_FP4(from, x, kind, rounding)   __nv_cvt_##from##_to_fp4(x, kind, rounding)
#define ORACLE_E8M0(from, x, saturation, rounding)                                                 \
    __nv_cvt_##from##_to_e8m0(x, saturation, rounding)

// Conversions that exist from every source type (half, bfloat16, float, double).
#define ORACLE_ELEMENTS(X)                                                                         \
    X(e4m3_sat, E4M3, RNE, SATURATE, FP8, __NV_SATFINITE, __NV_E4M3)                               \
    X(e4m3_nosat, E4M3, RNE, FORMAT, FP8, __NV_NOSAT, __NV_E4M3)                                   \
    X(e5m2_sat, E5M2, RNE, SATURATE, FP8, __NV_SATFINITE, __NV_E5M2)                               \
    X(e5m2_nosat, E5M2, RNE, FORMAT, FP8, __NV_NOSAT, __NV_E5M2)                                   \
    X(e2m3_rn, E2M3, RNE, SATURATE, FP6, __NV_E2M3, cudaRoundNearest)                              \
    X(e2m3_rz, E2M3, RTZ, SATURATE, FP6, __NV_E2M3, cudaRoundZero)                                 \
    X(e3m2_rn, E3M2, RNE, SATURATE, FP6, __NV_E3M2, cudaRoundNearest)                              \
    X(e3m2_rz, E3M2, RTZ, SATURATE, FP6, __NV_E3M2, cudaRoundZero)                                 \
    X(e2m1_rn, E2M1, RNE, SATURATE, FP4, __NV_E2M1, cudaRoundNearest)                              \
    X(e2m1_rz, E2M1, RTZ, SATURATE, FP4, __NV_E2M1, cudaRoundZero)

// E8M0: from bfloat16, float and double.
#define ORACLE_SCALES(X)                                                                           \
    X(e8m0_rz_sat, E8M0, RTZ, SATURATE, E8M0, __NV_SATFINITE, cudaRoundZero)                       \
    X(e8m0_rz_nosat, E8M0, RTZ, FORMAT, E8M0, __NV_NOSAT, cudaRoundZero)                           \
    X(e8m0_rp_sat, E8M0, RTP, SATURATE, E8M0, __NV_SATFINITE, cudaRoundPosInf)                     \
    X(e8m0_rp_nosat, E8M0, RTP, FORMAT, E8M0, __NV_NOSAT, cudaRoundPosInf)

// Ours, with the same conversion and CUDA's NaN policy.
static inline uint8_t oracle_ours(qg_format format, int mode, int overflow, double x) {
    const qg_format_info info = qg_format_describe(format);
    const qg_conversion conversion = {
        {(uint8_t)mode, 0},
        (uint8_t)overflow, QG_NAN_TO_MAX
    };
    return (uint8_t)qg_encode(&info, x, &conversion, 0);
}

#endif
