// The F = 23 .. 25 fused sums: what their kernels share before the register tiles, for a kernel file
// that has defined TILE and STRIP, the rows and columns of a register tile, and its `vector`. The
// method is in fused_f25_avx512.c, the end in fused_f25_run_internal.h.
#ifndef FUSED_F25_INTERNAL_H
#define FUSED_F25_INTERNAL_H

#include <fused_panel_internal.h>

enum {
    PANEL = 32,
    SUBS_MAX = 8,
    ROWS_MAX = 192,
    PANELS_MAX = 4,
    // Exponent words: 16 * (e + 512) for A, 16 * (e + 511) for B, 0 for zeros: a sum is a binary64
    // exponent field shifted left by 4, at most 384 below any other if an operand is zero.
    A_BIAS = 512,
    B_BIAS = 511,
    FIELD_SHIFT = 4,
    // With scales: below every running sum in a block's units (2^-380), above what zero products
    // could reach through the quantum (2^-985).
    SCALED_LEAST_FIELD = 500
};

static const int64_t EXPONENT_FIELD = 0x7FF0000000000000, HALF_BIT = 0x0008000000000000;
static const int64_t KEPT_BITS = -(1ll << 29); // 24 significant bits
static const int64_t STICKY = 1;
static const int64_t C_ZERO = 0x0010000000000000; // an initial sum of 0, 2^-1022: floors to 0

typedef struct a_element {
    double value[TILE];
    uint32_t exponent[TILE]; // the word twice
} a_element;

typedef struct a_side {
    uint32_t sign[SUBS_MAX][TILE];
    double factor[TILE]; // 2^(previous block's scale - this block's)
} a_side;

// The kernel file says which column a word of an exponent row belongs to.
typedef struct b_panel {
    _Alignas(64) double value[PANEL][STRIP];
    _Alignas(64) uint16_t exponent[PANEL][STRIP];
} b_panel;

// Values as binary32 (every format's codes are), k-major; the kernel file says which column a sign
// word belongs to.
typedef struct b_packed {
    _Alignas(64) float value[PANEL][STRIP];
    _Alignas(64) uint32_t sign[SUBS_MAX][STRIP];
    _Alignas(64) double factor[STRIP];
} b_packed;

// What a pass over a panel does with the running sums: keeps them in binary64; the same, in units of
// the block's scales; starts at zero and adds its sum to binary32 (QG_MODEL_PAIRS).
enum { PLAIN, SCALED, PAIRS };

// Decodes a panel of B and runs the problem's pass: of fused_f25_run_internal.h.
static void multiply(const fused_job *job, const void *a, const void *side, int64_t tiles,
                     const void *packed, void *b, void *sums);

static double power_of_two(int exponent) {
    union {
        uint64_t bits;
        double value;
    } u = {.bits = (uint64_t)(1023 + exponent) << 52};
    return u.value;
}

// A scale code's exponent; NaN codes are left to the scalar path.
static int scale_exponent(const qg_fused_operand *x, int64_t row, int64_t panel) {
    return x->scales[row * x->scale_stride + panel] - 127;
}

static double unit_change(const qg_fused_operand *x, int64_t row, int64_t panel) {
    int before = panel ? scale_exponent(x, row, panel - 1) : 0;
    return power_of_two(before - scale_exponent(x, row, panel));
}

#endif
