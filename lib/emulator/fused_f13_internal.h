// The F = 13 fused sums: what their kernels share before the register tiles, for a kernel file that
// has defined TILE and STRIP, the rows and columns of a register tile. The method is in
// fused_f13_avx512.c, the end in fused_f13_run_internal.h.
#ifndef FUSED_F13_INTERNAL_H
#define FUSED_F13_INTERNAL_H

#include <fused_panel_internal.h>

enum {
    PANEL = 32,     // elements of K that are decoded at a time
    SUBS_MAX = 4,   // fused operations of a panel
    ROWS_MAX = 192, // rows of A that are decoded at a time ...
    PANELS_MAX = 8, // ... and panels of K: together at most 384 KiB of L2
    // Exponent bytes: e + 96 for both operands, 0 for zeros. A sum with a zero is at most 111,
    // below 164, the least of two nonzero numbers; less 65 the sums are binary32 exponent fields.
    EXPONENT_BIAS = 96,
    SUM_TO_FIELD = 2 * EXPONENT_BIAS - 127,
    // Where the maximum starts: a block of zeros keeps a quantum far above C_ZERO, below any c.
    SUM_LEAST = SUM_TO_FIELD + 30,
    KEPT_BITS = (int)0xFFFFFC00, // 14 significant bits
    STICKY = 1,
    C_ZERO = 0x00800000 // an initial sum of 0, 2^-126: floors to 0
};

// A decoded element of A: a tile's values and their exponent bytes, each repeated four times.
typedef struct a_element {
    float value[TILE];
    uint32_t exponent[TILE];
} a_element;

typedef struct a_signs {
    uint32_t word[SUBS_MAX][TILE];
} a_signs;

// A decoded panel of B in L1; the kernel file says which column a byte of an exponent row belongs to.
typedef struct b_panel {
    _Alignas(64) float value[PANEL][STRIP];
    _Alignas(64) uint8_t exponent[PANEL][STRIP];
} b_panel;

// A packed panel of B: codes in the byte order of b_panel's exponents, sign words per column, of
// which only PANEL / L are used.
typedef struct b_packed {
    _Alignas(64) uint8_t code[PANEL][STRIP];
    _Alignas(64) uint32_t sign[SUBS_MAX][STRIP];
} b_packed;

#endif
