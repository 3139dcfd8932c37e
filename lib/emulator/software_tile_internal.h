// A tile of a product of a software unit in binary32 or bfloat16 over a block of K: what the driver
// asks of the code of an instruction set. See unit_software.c, the specification.
#ifndef SOFTWARE_TILE_INTERNAL_H
#define SOFTWARE_TILE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

enum { SOFTWARE_ROWS = 64, SOFTWARE_COLUMNS = 64, SOFTWARE_PANEL = 16, SOFTWARE_K = 256 };

// How an element is added to a sum.
enum {
    SOFTWARE_SEQUENTIAL, // product and sum to nearest
    SOFTWARE_FMA,
    SOFTWARE_TO_ZERO,
    SOFTWARE_DOWN,
    SOFTWARE_BFLOAT16,
    SOFTWARE_BFLOAT16_TO_ZERO,
    SOFTWARE_BFLOAT16_DOWN,
    SOFTWARE_KIND_COUNT
};

typedef struct software_tile {
    int kind;
    int64_t rows, columns, k; // k: SOFTWARE_K, or less in the last block
    int64_t left;             // of the partial sum's block of K (fp32_blocked:N), else more than k
    int64_t block;            // N
    const float *a_rows, *b_rows; // the block, rows a_stride and b_stride apart
    int64_t a_stride, b_stride;
    float a[SOFTWARE_ROWS][SOFTWARE_K];
    float b[SOFTWARE_COLUMNS / SOFTWARE_PANEL][SOFTWARE_K][SOFTWARE_PANEL];
    float part[SOFTWARE_ROWS][SOFTWARE_COLUMNS];  // partial sums
    float total[SOFTWARE_ROWS][SOFTWARE_COLUMNS]; // of the partial sums that ended
} software_tile;

// Packs the block and adds it to the partial sums; those that end go to `total`. NaNs are quiet in
// the sums, and not canonical.
typedef void (*software_kernel)(software_tile *tile);
void qg_software_kernel_avx2(software_tile *tile);
void qg_software_kernel_avx512(software_tile *tile);

#endif
