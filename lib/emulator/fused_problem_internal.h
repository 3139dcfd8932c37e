// The fused dot-product-add of NVIDIA's matrix units as a GEMM: problem, kernels, workspace.
//
// Owns the description that the SIMD kernels and the tests' scalar reference share. Knows no unit
// by name: a row of the unit table fills in length, bits, result and floor. The sums are those of
// QG_MODEL_T, _ST, _GST and _PAIRS in qg_unit.h, with promotion; the method is in
// fused_f13_avx512.c.
// Exact: every kernel writes the bits of the scalar model, whatever ISA, threads or tiling.
#ifndef FUSED_PROBLEM_INTERNAL_H
#define FUSED_PROBLEM_INTERNAL_H

#include <qg_format.h>
#include <qg_init.h>
#include <stddef.h>
#include <stdint.h>

// The one conversion at the end of a fused operation, toward zero: 24 or 14 significant bits.
enum { QG_FUSED_RZ_FP32 = 0, QG_FUSED_RZ_E8M13 = 1 };

// One operand, K last.
typedef struct qg_fused_operand {
    qg_format format;
    const void *codes; // rows `stride` bytes apart, 1, 2 or 4 bytes a code (qg_format_code_bytes)
    int64_t stride;
    const uint8_t *scales; // NULL, or rows of ceil(k / scale_block), `scale_stride` bytes apart
    int64_t scale_stride;
} qg_fused_operand;

typedef struct qg_fused_problem qg_fused_problem;

struct qg_fused_problem {
    int64_t m, n, k;
    qg_fused_operand a, b;  // (m, k), (n, k)
    int length;             // L: products of one fused operation
    int bits;               // F: fraction bits kept below the largest exponent
    int result;             // QG_FUSED_RZ_*
    int floor;              // exponent that a zero term contributes
    int group;              // 0, or G of GST-FDPA: products summed exactly under one scale
    qg_format scale_format; // E8M0 or UE4M3
    int64_t scale_block;
    int pairs;                 // 1: QG_MODEL_PAIRS, instructions of 2 L elements; C enters last
    const float *c;            // (m, n) or NULL: start from +0
    float *d;                  // (m, n); must not overlap c
    int64_t promote;           // 0, or P: every P elements of K the sum restarts and is added
    const float *row_scale;    // (m, ceil(k / P)) or NULL: main = RNE(main + sum), else
    const float *column_scale; // (n, ceil(k / P)): main = fma(RNE(row * column), sum, main)
    int threads;               // 0: all
    // Writes D[row, column .. column + count): what kernels leave out, Inf and extreme exponents.
    // Called by several threads at once.
    void (*fallback)(const qg_fused_problem *problem, int64_t row, int64_t column, int64_t count);
    const void *context; // for the fallback
};

// --------------------------------------------------------------------------------------- kernels

// One instruction set's implementation of one family. `supports` reads only the description, not
// the operands; `run` needs workspace(problem) bytes, 64-byte aligned, contents free. Threads set
// and restore their MXCSR; the fallback runs under the caller's.
typedef struct qg_fused_kernel {
    const char *name;
    int (*cpu_has)(void);
    int (*supports)(const qg_fused_problem *problem);
    size_t (*workspace)(const qg_fused_problem *problem);
    void (*run)(const qg_fused_problem *problem, void *workspace);
} qg_fused_kernel;

// Each is there if the compiler takes its flags (CMakeLists.txt): QG_HAVE_AVX2, QG_HAVE_AVX512.
extern const qg_fused_kernel qg_fused_f13_avx512; // F <= 13, E4M3 and E5M2, L 8 .. 32
extern const qg_fused_kernel qg_fused_f25_avx512; // F 23 .. 25, L 4 .. 32, E8M0 per 32 if L = 32
extern const qg_fused_kernel qg_fused_gst_avx512; // F = 35, E2M1, G = 16, L = 64
extern const qg_fused_kernel qg_fused_f13_avx2;
extern const qg_fused_kernel qg_fused_f25_avx2;
extern const qg_fused_kernel qg_fused_gst_avx2;

// The first kernel of the set that this CPU and problem allow, or NULL.
const qg_fused_kernel *qg_fused_kernel_choose(const qg_fused_problem *problem, qg_isa isa);

#endif
