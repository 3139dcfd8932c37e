// The code of qg_exact_product, once for all instruction sets: a file of one set includes it and
// names the functions. Exact: the same operations in the same order for every width.
#ifndef EXACT_PRODUCT_TEXT_INTERNAL_H
#define EXACT_PRODUCT_TEXT_INTERNAL_H

#include <exact_product_internal.h>
#include <qg_bits.h>
#include <vector_double_internal.h>
#if defined(__AVX2__) && defined(__FMA__)
#include <vector_float_internal.h>
#endif

#include <math.h>

#define EXACT_INLINE static inline __attribute__((always_inline))

// ---------------------------------------------------------------------------------------- packing

static void pack_column(const float *b, int64_t from, int64_t k, double (*panel)[EXACT_PANEL],
                        int64_t at) {
    for (int64_t l = from; l < k; l++)
        panel[l][at] = b[l];
}

#ifdef VECTOR_FLOAT_INTERNAL_H
// 8 elements of each of 8 columns.
static void pack_square(const float *b, int64_t stride, double (*panel)[EXACT_PANEL]) {
    __m256 x[8];
    for (int i = 0; i < 8; i++)
        x[i] = _mm256_loadu_ps(b + i * stride);
    vf_transpose_8(x);
    for (int i = 0; i < 8; i++) {
        _mm256_storeu_pd(panel[i], _mm256_cvtps_pd(_mm256_castps256_ps128(x[i])));
        _mm256_storeu_pd(panel[i] + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x[i], 1)));
    }
}
enum { SQUARE = 8 };
#else
static void pack_square(const float *b, int64_t stride, double (*panel)[EXACT_PANEL]) {
    (void)b, (void)stride, (void)panel;
}
enum { SQUARE = EXACT_K + 1 }; // none
#endif

static void pack_tile(exact_tile *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t l = 0; l < t->k; l++)
            t->a[i][l] = t->a_rows[i * t->stride + l];
    for (int64_t j = 0; j < t->columns; j += EXACT_PANEL) {
        double(*panel)[EXACT_PANEL] = t->b[j / EXACT_PANEL];
        const float *b = t->b_rows + j * t->stride;
        int64_t count = t->columns - j < EXACT_PANEL ? t->columns - j : EXACT_PANEL, l = 0;
        if (count == EXACT_PANEL)
            for (; l + SQUARE <= t->k; l += SQUARE)
                pack_square(b + l, t->stride, panel + l);
        for (int64_t c = 0; c < count; c++)
            pack_column(b + c * t->stride, l, t->k, panel, c);
    }
}

// ------------------------------------------------------------------------------------------- sums

enum { MOST_ROWS = 8, COMPENSATED_ROWS = 4 };

// s += x y, returning what the addition lost: Knuth's TwoSum. Products of binary32 numbers are
// exact in binary64, so a fused multiply-add rounds what an addition would. Additions written as
// fused with 1 are for processors whose adders are the scarcer unit.
EXACT_INLINE vd add_product(vd *s, vd x, vd y) {
    vd sum = vd_fma(x, y, *s);
    vd part = vd_subtract(sum, *s);
    vd rest = vd_fnma(part, vd_all(1.0), sum);
    vd lost_s = vd_subtract(*s, rest), lost_product = vd_fms(x, y, part);
    *s = sum;
    return vd_add(lost_s, lost_product);
}

// *high + *low += x.
EXACT_INLINE void add_low(double *high, double *low, vd x) {
    vd h = vd_load(high);
    vd sum = vd_add(h, x), part = vd_subtract(sum, h), rest = vd_subtract(sum, part);
    vd lost = vd_add(vd_subtract(h, rest), vd_subtract(x, part));
    vd_store(high, sum);
    vd_store(low, vd_add(vd_load(low), lost));
}

typedef struct exact_place {
    const double *a, *b; // the first element; rows EXACT_K apart, panels EXACT_PANEL
    double *sum, *low, *lowest, *magnitude;
} exact_place;

// `steps` products of each of `rows` rows with a vector of columns.
EXACT_INLINE void add_chunk(const exact_place *at, int64_t from, int steps, int rows,
                            int with_magnitude, vd *sum, vd *magnitude) {
    vd lost[COMPENSATED_ROWS];
    for (int r = 0; r < rows; r++)
        lost[r] = vd_all(0.0);
    for (int i = 0; i < steps; i++) {
        vd b = vd_load(at->b + (from + i) * EXACT_PANEL), size = vd_abs(b);
        for (int r = 0; r < rows; r++) {
            vd a = vd_all(at->a[r * EXACT_K + from + i]);
            vd error = add_product(&sum[r], a, b);
            lost[r] = i == 0 ? error : vd_add(lost[r], error);
            if (with_magnitude)
                magnitude[r] = vd_fma(vd_abs(a), size, magnitude[r]);
        }
    }
    for (int r = 0; r < rows; r++)
        add_low(at->low + r * EXACT_COLUMNS, at->lowest + r * EXACT_COLUMNS, lost[r]);
}

EXACT_INLINE void add_plain(const exact_place *at, int64_t k, int rows, vd *sum) {
    for (int64_t l = 0; l < k; l++) {
        vd b = vd_load(at->b + l * EXACT_PANEL);
        for (int r = 0; r < rows; r++)
            sum[r] = vd_fma(vd_all(at->a[r * EXACT_K + l]), b, sum[r]);
    }
}

EXACT_INLINE void add_chunks(const exact_place *at, int64_t k, int rows, int with_magnitude,
                             vd *sum, vd *magnitude) {
    int64_t from = 0;
    for (; from + EXACT_CHUNK <= k; from += EXACT_CHUNK)
        add_chunk(at, from, EXACT_CHUNK, rows, with_magnitude, sum, magnitude);
    if (from < k)
        add_chunk(at, from, (int)(k - from), rows, with_magnitude, sum, magnitude);
}

EXACT_INLINE void add_block(const exact_place *at, int64_t k, int rows, int mode) {
    vd sum[MOST_ROWS], magnitude[MOST_ROWS];
    for (int r = 0; r < rows; r++) {
        sum[r] = vd_load(at->sum + r * EXACT_COLUMNS);
        magnitude[r] = vd_load(at->magnitude + r * EXACT_COLUMNS);
    }
    if (mode == EXACT_PLAIN || mode == EXACT_BLOCKED)
        add_plain(at, k, rows, sum);
    else
        add_chunks(at, k, rows, mode == EXACT_WITH_MAGNITUDE, sum, magnitude);
    for (int r = 0; r < rows; r++) {
        if (mode == EXACT_BLOCKED) {
            vd low = vd_load(at->low + r * EXACT_COLUMNS);
            vd_store(at->low + r * EXACT_COLUMNS, vd_add(low, sum[r]));
            sum[r] = vd_all(0.0);
        }
        vd_store(at->sum + r * EXACT_COLUMNS, sum[r]);
        vd_store(at->magnitude + r * EXACT_COLUMNS, magnitude[r]);
    }
}

EXACT_INLINE void add_tile_as(exact_tile *t, int mode) {
    const int rows = mode < EXACT_DOUBLE ? MOST_ROWS : COMPENSATED_ROWS;
    for (int64_t j = 0; j < t->columns; j += VD_WIDTH)
        for (int64_t i = 0; i < t->rows;) {
            exact_place at = {t->a[i],          &t->b[j / EXACT_PANEL][0][j % EXACT_PANEL],
                              &t->sum[i][j],    &t->low[i][j],
                              &t->lowest[i][j], &t->magnitude[i][j]};
            if (i + rows <= t->rows) {
                add_block(&at, t->k, rows, mode);
                i += rows;
            } else {
                add_block(&at, t->k, 1, mode);
                i++;
            }
        }
}

EXACT_INLINE void add_tile(exact_tile *t) {
    pack_tile(t);
    switch (t->mode) {
    case EXACT_PLAIN: add_tile_as(t, EXACT_PLAIN); return;
    case EXACT_BLOCKED: add_tile_as(t, EXACT_BLOCKED); return;
    case EXACT_DOUBLE: add_tile_as(t, EXACT_DOUBLE); return;
    default: add_tile_as(t, EXACT_WITH_MAGNITUDE); return;
    }
}

// ----------------------------------------------------------------------------------------- ranges

// The least exponent of a last bit that is set, plus 277, of elements that are not zero; integers
// alone, so that compilers find vectors.
static int32_t least_place(int64_t k, const float *x) {
    int32_t least = 4096;
    for (int64_t l = 0; l < k; l++) {
        int32_t magnitude = (int32_t)(qg_bits_of_float(x[l]) & 0x7fffffffu);
        int32_t normal = magnitude > 0x7fffff, zero = magnitude == 0;
        int32_t significand = (magnitude & 0x7fffff) | normal << 23;
        int32_t last = significand & -significand;
        int32_t place = (int32_t)(qg_bits_of_float((float)last) >> 23); // 127 and its logarithm
        place += (magnitude >> 23) + 1 - normal + (zero << 12);
        least = place < least ? place : least;
    }
    return least;
}

enum { LANES = 8 };

static double sum_of_squares(int64_t k, const float *x) {
    double part[LANES] = {0}, sum = 0.0;
    int64_t l = 0;
    for (; l + LANES <= k; l += LANES)
        for (int c = 0; c < LANES; c++)
            part[c] = part[c] + (double)x[l + c] * (double)x[l + c];
    for (; l < k; l++)
        sum = sum + (double)x[l] * (double)x[l];
    for (int c = 0; c < LANES; c++)
        sum = sum + part[c];
    return sum;
}

static exact_range range_of(int64_t k, const float *x) {
    int32_t place = least_place(k, x);
    exact_range range = {place < 4096 ? qg_double_pow2(place - 277) : INFINITY,
                         sqrt(sum_of_squares(k, x)) * (1 + 0x1p-20)};
    return range;
}

#endif
