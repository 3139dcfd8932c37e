// A tile of a reference product over a block of K: what the driver packs and a kernel sums.
// See qg_exact_product.h.
#ifndef EXACT_PRODUCT_INTERNAL_H
#define EXACT_PRODUCT_INTERNAL_H

#include <qg_init.h>
#include <qg_status.h>
#include <stdint.h>

enum {
    EXACT_ROWS = 64,
    EXACT_COLUMNS = 32,
    EXACT_PANEL = 8, // columns that lie side by side
    // Products whose errors are added in plain binary64. With S the sum of all magnitudes and
    // u = 2^-53 an error is at most u S, and the i-th addition of them errs by i u^2 S at most,
    // the first not at all: 20 u^2 S for 6 products, below the 24 u^2 S of the contract.
    EXACT_CHUNK = 6,
    EXACT_K = 64 * EXACT_CHUNK
};

// How a tile is summed. EXACT_PLAIN: in binary64 alone, RNE; sum is all there is. EXACT_BLOCKED: so
// within EXACT_K elements of K, and the sums of those from `low`; low is all there is.
enum { EXACT_PLAIN, EXACT_BLOCKED, EXACT_DOUBLE, EXACT_WITH_MAGNITUDE, EXACT_DONE };

// A sum is sum + low + lowest to k u^2 S 10/3 (and terms in u^3).
typedef struct exact_tile {
    int mode;
    int64_t row, column;          // of the output, where it starts
    int64_t rows, columns, k;     // k: EXACT_K, or less in the last block
    const float *a_rows, *b_rows; // the block, rows `stride` apart
    int64_t stride;
    double a[EXACT_ROWS][EXACT_K];
    double b[EXACT_COLUMNS / EXACT_PANEL][EXACT_K][EXACT_PANEL];
    double sum[EXACT_ROWS][EXACT_COLUMNS];
    double low[EXACT_ROWS][EXACT_COLUMNS];
    double lowest[EXACT_ROWS][EXACT_COLUMNS];
    double magnitude[EXACT_ROWS][EXACT_COLUMNS];
} exact_tile;

// Packs the block and adds its products to the sums, in ascending order for each.
typedef void (*exact_kernel)(exact_tile *tile);
void qg_exact_kernel_scalar(exact_tile *tile);
void qg_exact_kernel_avx2(exact_tile *tile);
void qg_exact_kernel_avx512(exact_tile *tile);

// The finite elements of a row that are not zero are multiples of `unit`, a power of two, infinite
// if there is none. norm: at least the root of the sum of all squares, if k < 2^32.
typedef struct exact_range {
    double unit, norm;
} exact_range;

typedef exact_range (*exact_range_of)(int64_t k, const float *x);
exact_range qg_exact_range_scalar(int64_t k, const float *x);
exact_range qg_exact_range_avx2(int64_t k, const float *x);
exact_range qg_exact_range_avx512(int64_t k, const float *x);
exact_range_of qg_exact_range(void); // of the chosen instruction set

// The sum of an output of a tile that is not plain, to the bound of qg_exact_product; NaN, not
// canonical, when a term is NaN or infinite.
double qg_exact_tile_sum(const exact_tile *tile, int64_t i, int64_t j);

// A product as tiles: sums start from bias (or NULL), and finish takes them. It returns EXACT_DONE,
// or the mode in which it wants the tile again.
typedef struct exact_job {
    int64_t m, n, k;
    const float *a, *b, *bias;
    int threads;
    int (*mode)(const struct exact_job *job, const exact_tile *tile);
    int (*finish)(const struct exact_job *job, const exact_tile *tile);
    const void *context;
} exact_job;

qg_status qg_exact_tiles(const exact_job *job);

#endif
