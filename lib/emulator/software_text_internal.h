// The sums of the software units over a tile, once for the instruction sets that have vectors of
// binary32: a file of one set includes it and names the function.
// Exact: each output's operations are those of unit_software.c, in its order.
#ifndef SOFTWARE_TEXT_INTERNAL_H
#define SOFTWARE_TEXT_INTERNAL_H

#include <software_tile_internal.h>
#include <vector_float_internal.h>

#define SOFTWARE_INLINE static inline __attribute__((always_inline))

enum { MOST_ROWS = 8 };

// ---------------------------------------------------------------------------------------- packing

static void pack_rows(software_tile *t) {
    for (int64_t i = 0; i < t->rows; i++) {
        const float *a = t->a_rows + i * t->a_stride;
        int64_t l = 0;
        for (; l + 8 <= t->k; l += 8)
            _mm256_storeu_ps(&t->a[i][l], vf_quiet_8(_mm256_loadu_ps(a + l)));
        for (; l < t->k; l++)
            t->a[i][l] = a[l] == a[l] ? a[l] : __builtin_nanf("");
    }
}

static void pack_block(const float *b, int64_t stride, float (*panel)[SOFTWARE_PANEL]) {
    __m256 x[8];
    for (int i = 0; i < 8; i++)
        x[i] = vf_quiet_8(_mm256_loadu_ps(b + i * stride));
    vf_transpose_8(x);
    for (int i = 0; i < 8; i++)
        _mm256_storeu_ps(panel[i], x[i]);
}

// Columns past the last are whatever was there: their sums are not read.
static void pack_columns(software_tile *t) {
    for (int64_t j = 0; j < t->columns; j += 8) {
        int64_t count = t->columns - j < 8 ? t->columns - j : 8, l = 0;
        const float *b = t->b_rows + j * t->b_stride;
        float(*panel)[SOFTWARE_PANEL] = t->b[j / SOFTWARE_PANEL];
        int64_t at = j % SOFTWARE_PANEL;
        if (count == 8)
            for (; l + 8 <= t->k; l += 8)
                pack_block(b + l, t->b_stride, (float(*)[SOFTWARE_PANEL]) & panel[l][at]);
        for (; l < t->k; l++)
            for (int64_t c = 0; c < count; c++) {
                float x = b[c * t->b_stride + l];
                panel[l][at + c] = x == x ? x : __builtin_nanf("");
            }
    }
}

// ------------------------------------------------------------------------------------------- sums

SOFTWARE_INLINE vf add_product(int kind, vf sum, vf a, vf b) {
    if (kind == SOFTWARE_FMA)
        return vf_fma(a, b, sum);
    vf product = vf_multiply(a, b);
    switch (kind) {
    case SOFTWARE_TO_ZERO: return vf_add_to_zero(sum, product);
    case SOFTWARE_DOWN: return vf_add_down(sum, product);
    case SOFTWARE_BFLOAT16: return vf_bfloat16_nearest(vf_add_to_odd(sum, product));
    case SOFTWARE_BFLOAT16_TO_ZERO: return vf_bfloat16_to_zero(vf_add_to_zero(sum, product));
    case SOFTWARE_BFLOAT16_DOWN: return vf_bfloat16_down(vf_add_down(sum, product));
    default: return vf_add(sum, product);
    }
}

// `k` elements of `rows` rows with a vector of columns.
SOFTWARE_INLINE void add_block(int kind, int rows, int64_t k, const float *a, const float *b,
                               float *part) {
    vf sum[MOST_ROWS];
    for (int r = 0; r < rows; r++)
        sum[r] = vf_load(part + r * SOFTWARE_COLUMNS);
    for (int64_t l = 0; l < k; l++) {
        vf column = vf_load(b + l * SOFTWARE_PANEL);
        for (int r = 0; r < rows; r++)
            sum[r] = add_product(kind, sum[r], vf_all(a[r * SOFTWARE_K + l]), column);
    }
    for (int r = 0; r < rows; r++)
        vf_store(part + r * SOFTWARE_COLUMNS, sum[r]);
}

// Elements from .. from + k - 1 of the block.
SOFTWARE_INLINE void add_elements(software_tile *t, int kind, int64_t from, int64_t k) {
    for (int64_t j = 0; j < t->columns; j += VF_WIDTH) {
        const float *b = &t->b[j / SOFTWARE_PANEL][from][j % SOFTWARE_PANEL];
        int64_t i = 0;
        for (; i + MOST_ROWS <= t->rows; i += MOST_ROWS)
            add_block(kind, MOST_ROWS, k, &t->a[i][from], b, &t->part[i][j]);
        for (; i < t->rows; i++)
            add_block(kind, 1, k, &t->a[i][from], b, &t->part[i][j]);
    }
}

static void end_partial_sums(software_tile *t) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t j = 0; j < t->columns; j += VF_WIDTH) {
            vf_store(&t->total[i][j], vf_add(vf_load(&t->total[i][j]), vf_load(&t->part[i][j])));
            vf_store(&t->part[i][j], vf_all(0.0f));
        }
    t->left = t->block;
}

SOFTWARE_INLINE void add_tile_as(software_tile *t, int kind) {
    for (int64_t from = 0; from < t->k;) {
        int64_t count = t->k - from < t->left ? t->k - from : t->left;
        add_elements(t, kind, from, count);
        from += count;
        t->left -= count;
        if (t->left == 0)
            end_partial_sums(t);
    }
}

static void add_tile(software_tile *t) {
    pack_rows(t);
    pack_columns(t);
    switch (t->kind) {
    case SOFTWARE_FMA: add_tile_as(t, SOFTWARE_FMA); return;
    case SOFTWARE_TO_ZERO: add_tile_as(t, SOFTWARE_TO_ZERO); return;
    case SOFTWARE_DOWN: add_tile_as(t, SOFTWARE_DOWN); return;
    case SOFTWARE_BFLOAT16: add_tile_as(t, SOFTWARE_BFLOAT16); return;
    case SOFTWARE_BFLOAT16_TO_ZERO: add_tile_as(t, SOFTWARE_BFLOAT16_TO_ZERO); return;
    case SOFTWARE_BFLOAT16_DOWN: add_tile_as(t, SOFTWARE_BFLOAT16_DOWN); return;
    default: add_tile_as(t, SOFTWARE_SEQUENTIAL); return;
    }
}

#endif
