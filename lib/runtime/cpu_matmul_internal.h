// Products on the CPU: operands as panels read them, and the two ways to multiply panels.
#ifndef CPU_MATMUL_INTERNAL_H
#define CPU_MATMUL_INTERNAL_H

#include <cpu_matmul_kernels_internal.h>
#include <qg_block_scale.h>
#include <qg_emulator.h>
#include <qg_unit.h>

// ----------------------------------------------------------------------------------------- operand

// Where the scales of an operand of BF16 panels enter.
enum {
    MATMUL_IN_EPILOGUE, // per_tensor, per_row
    MATMUL_IN_PARTS,    // binary32 scales of groups and blocks: with each partial product along k
    MATMUL_IN_ELEMENTS // E8M0 and UE4M3 scales of groups and blocks; a tensor scale in the epilogue
};

// Non-zero numbers: multiples of 2^low, magnitudes below 2^high.
typedef struct matmul_range {
    int low, high;
} matmul_range;

typedef struct matmul_view {
    const qg_matmul_operand *in;
    qg_element element;
    qg_shape shape;
    int place;             // MATMUL_IN_*
    bool is_narrow;        // BF16 panels hold its elements exactly
    float tensor_factor;   // of MATMUL_IN_ELEMENTS
    matmul_range elements; // of what panels hold, if is_narrow
    matmul_range factors;  // of what enters outside of them
    matmul_table table;    // of codes of at most 8 bits
    float scales[256];     // of scale bytes, where scale_bytes is 1
} matmul_view;

// QG_ERROR_ARGUMENT: a NULL pointer; errors of qg_shape_of.
qg_status qg_matmul_view_of(const qg_matmul_operand *in, int64_t rows, int64_t k, matmul_view *v);

// Fills in is_narrow and the ranges: reads all scales, and codes of blocks with tiny scales.
void qg_matmul_view_scan(matmul_view *v);

// What multiplies the elements of a row of a BF16 panel: at element `column` of k for
// MATMUL_IN_PARTS.
float qg_matmul_factor(const matmul_view *v, int64_t row, int64_t column);

// Rows of a panel, `stride` elements apart: `length` elements from column `begin` on.
void qg_matmul_narrow_rows(const matmul_view *v, const matmul_kernels *kernels, int64_t row,
                           int64_t rows, int64_t begin, int64_t length, uint16_t *out,
                           int64_t stride);
// The dequantized values, as qg_emulator_dequantize gives them.
void qg_matmul_wide_row(const matmul_view *v, int64_t row, int64_t begin, int64_t length,
                        float *out);

// ---------------------------------------------------------------------------------- BF16, by oneDN

// A product of panels: c (rows, columns) = or += a (rows, length) b^T, all dense; b interleaved in
// strips (length / 2, MATMUL_STRIP, 2). Rows: a multiple of 16 up to 128; columns: of 64 up to 256;
// length: of 32 up to 2048, beyond which another part of k is cheaper than a panel out of cache.
enum { BF16_ROWS = 128, BF16_COLUMNS = 256, BF16_LENGTH = 2048 };

typedef struct matmul_bf16_shape {
    int64_t rows, columns, length;
    bool adds;
} matmul_bf16_shape;

typedef struct matmul_bf16 matmul_bf16;               // shared by threads
typedef struct matmul_bf16_thread matmul_bf16_thread; // of one thread

// Whether this build and this processor multiply BF16. QG_ISA and qg_cpu_use_isa do not matter: the
// library chooses its own instructions.
bool qg_matmul_bf16_answers(void);
qg_status qg_matmul_bf16_open(matmul_bf16 **out);
void qg_matmul_bf16_close(matmul_bf16 *x);
// Makes shapes ready; not thread-safe. Anything but QG_OK: use FP32 panels.
qg_status qg_matmul_bf16_prepare(matmul_bf16 *x, matmul_bf16_shape shape);
qg_status qg_matmul_bf16_enter(matmul_bf16 *x, matmul_bf16_thread **out);
void qg_matmul_bf16_leave(matmul_bf16_thread *t);
qg_status qg_matmul_bf16_run(matmul_bf16_thread *t, matmul_bf16_shape shape, const uint16_t *a,
                             const uint16_t *b, float *c);

// --------------------------------------------------------------------- FP32, by OpenBLAS or a loop

enum { FP32_ROWS = 256, FP32_COLUMNS = 512, FP32_LENGTH = 512 };

const char *qg_matmul_fp32_name(void); // "openblas fp32", "loop fp32"

// OpenBLAS uses one thread between enter and leave, which returns to what was: a setting of the
// process, so other users of the library should wait. Ours are OpenMP's threads.
int qg_matmul_fp32_enter(void);
void qg_matmul_fp32_leave(int saved);

// c (rows, columns) = or += a (rows, length) b (columns, length)^T, all dense.
void qg_matmul_fp32_run(int64_t rows, int64_t columns, int64_t length, bool adds, const float *a,
                        const float *b, float *c);

// What is used while tests look at one path: 0 everything, or these bits.
enum { MATMUL_WITHOUT_BF16 = 1, MATMUL_SCALAR_KERNELS = 2, MATMUL_WITHOUT_OPENBLAS = 4 };
extern int qg_matmul_test_paths;

#endif
