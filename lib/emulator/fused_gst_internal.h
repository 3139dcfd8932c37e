// The F = 35 grouped fused sums of Blackwell's NVFP4 and MXFP4 units (GST-FDPA): what their kernels
// share, for a kernel file that has defined TILE and STRIP, the rows and columns of a register tile.
//
// Owns packing, chunks and limits; the kernel file owns tile_pass. A group's sum of 16 E2M1 products
// is an exact integer dot product of bytes (values doubled; A is offset by 12 to be unsigned, which
// -12 * sum of B undoes). Times both scales' significands it has at most 21 bits, so binary32 holds
// it exactly; in units of the quantum it is then truncated to an integer below 2^49.
// Exact: the bits of qg_unit_panel_scalar.
#ifndef FUSED_GST_INTERNAL_H
#define FUSED_GST_INTERNAL_H

#include <fused_panel_internal.h>

enum {
    GROUP = 16,
    GROUPS = 4,
    BLOCK = GROUP * GROUPS, // L
    QUADS = GROUP / 4,      // dwords of a group's bytes
    OFFSET = 12,            // the largest doubled value
    ROWS_MAX = 64,          // of A, packed at a time over all of K
    BITS = 35,
    // Significands of UE4M3 scales are integers over 2^3, products of doubled values over 2^2.
    UNIT = 8,
    // Where the largest exponent starts: below every nonzero term (fused_limits), and with
    // 2^(35 - E) still finite in binary32.
    LEAST_EXPONENT = -85
};

// One block of K = 64 of a tile's rows of A. Exponents are small integers.
typedef struct a_block {
    uint32_t quad[GROUPS][QUADS][TILE]; // four bytes, doubled value + 12
    float exponent[GROUPS][TILE];       // of the scale
    float significand[GROUPS][TILE];    // of the scale, as an integer
    uint32_t nonzero[GROUPS][TILE];     // bit per element; 0 where the scale is zero
} a_block;

// One block of a strip of B.
typedef struct b_block {
    _Alignas(64) int8_t quad[GROUPS][QUADS][STRIP][4]; // doubled values
    _Alignas(64) int32_t start[GROUPS][STRIP];         // -12 * sum
    _Alignas(64) float exponent[GROUPS][STRIP];
    _Alignas(64) float significand[GROUPS][STRIP];
    _Alignas(64) uint32_t nonzero[GROUPS][STRIP];
} b_block;

// d (rows, columns) of a tile, rows `stride` apart, from c_in (NULL: 0) over `blocks` blocks.
static void tile_pass(const a_block *a, const b_block *b, int64_t blocks, const float *c_in,
                      float *d, int64_t stride, int64_t rows, int64_t columns);

// --------------------------------------------------------------------------------------- packing

// One operand's line in a block: doubled values, which are nonzero, and its groups' scales.
typedef struct line_block {
    _Alignas(32) int8_t value[BLOCK]; // codes beyond k are zero
    uint32_t nonzero[GROUPS];
    int exponent[GROUPS], significand[GROUPS];
} line_block;

// The scale of a group as significand (an integer over 2^3) and exponent. NaN scales and the
// sign bit of UE4M3 are dealt with elsewhere and ignored.
static int scale_parts(const qg_fused_problem *p, const qg_fused_operand *x, int64_t row, int64_t k,
                       int *exponent) {
    *exponent = 0;
    if (k >= p->k)
        return 0;
    uint8_t code = x->scales[row * x->scale_stride + k / p->scale_block];
    if (p->scale_format == QG_FORMAT_E8M0) {
        *exponent = code - 127;
        return 8;
    }
    int field = code >> 3 & 15;
    *exponent = (field ? field : 1) - 7;
    return (code & 7) | (field != 0) << 3;
}

static line_block load_line(const qg_fused_problem *p, const qg_fused_operand *x, int64_t row,
                            int64_t k) {
    line_block line;
    const __m256i doubled = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12));
    memset(line.value, 0, sizeof line.value);
    memcpy(line.value, (const uint8_t *)fused_row(x, row) + k,
           (size_t)fused_least(p->k - k, BLOCK));
    for (int half = 0; half < 2; half++) {
        __m256i *at = (void *)(line.value + 32 * half);
        __m256i code = _mm256_and_si256(_mm256_load_si256(at), _mm256_set1_epi8(15));
        __m256i value = _mm256_shuffle_epi8(doubled, code);
        _mm256_store_si256(at, value);
        uint32_t zero =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(value, _mm256_setzero_si256()));
        line.nonzero[2 * half] = ~zero & 0xFFFF;
        line.nonzero[2 * half + 1] = ~zero >> 16;
    }
    for (int g = 0; g < GROUPS; g++) {
        line.significand[g] = scale_parts(p, x, row, k + g * GROUP, &line.exponent[g]);
        if (!line.significand[g])
            line.nonzero[g] = 0;
    }
    return line;
}

static void pack_b(b_block *out, const qg_fused_problem *p, int64_t column, int64_t columns,
                   int64_t block) {
    memset(out, 0, sizeof *out);
    for (int j = 0; j < fused_least(columns, STRIP); j++) {
        line_block line = load_line(p, &p->b, column + j, block * BLOCK);
        for (int g = 0; g < GROUPS; g++) {
            int sum = 0;
            for (int i = 0; i < GROUP; i++)
                sum += line.value[g * GROUP + i];
            for (int i = 0; i < QUADS; i++)
                memcpy(out->quad[g][i][j], line.value + g * GROUP + 4 * i, 4);
            out->start[g][j] = -OFFSET * sum;
            out->exponent[g][j] = (float)line.exponent[g];
            out->significand[g][j] = (float)line.significand[g];
            out->nonzero[g][j] = line.nonzero[g];
        }
    }
}

static void pack_a(a_block *out, const qg_fused_problem *p, int64_t row, int64_t block) {
    memset(out, 0, sizeof *out);
    for (int r = 0; r < fused_least(p->m - row, TILE); r++) {
        line_block line = load_line(p, &p->a, row + r, block * BLOCK);
        for (int i = 0; i < BLOCK; i++)
            line.value[i] = (int8_t)(line.value[i] + OFFSET);
        for (int g = 0; g < GROUPS; g++) {
            for (int i = 0; i < QUADS; i++)
                memcpy(&out->quad[g][i][r], line.value + g * GROUP + 4 * i, 4);
            out->exponent[g][r] = (float)line.exponent[g];
            out->significand[g][r] = (float)line.significand[g];
            out->nonzero[g][r] = line.nonzero[g];
        }
    }
}

// ---------------------------------------------------------------------------------------- family

static void pack(const fused_job *job, int64_t strip, int64_t block) {
    int64_t column = strip * STRIP;
    pack_b((b_block *)job->packed + strip * job->s.panels + block, job->p, column,
           job->p->n - column, block);
}

static void promoted_pass(const fused_job *job, const a_block *a, const b_block *b, int64_t row,
                          int64_t column) {
    const qg_fused_problem *p = job->p;
    int64_t rows = fused_least(p->m - row, TILE), columns = fused_least(p->n - column, STRIP);
    int64_t step = job->s.segment_panels;
    // fused_fold reads whole vectors.
    float sums[TILE * STRIP + FUSED_LANES] = {0};
    for (int64_t from = 0; from < job->s.panels; from += step) {
        int64_t blocks = fused_least(job->s.panels - from, step);
        tile_pass(a + from, b + from, blocks, NULL, sums, STRIP, TILE, STRIP);
        fused_fold(job, sums, row, rows, column, columns, from / step);
    }
}

// The running sums of a tile stay in registers over all of K: a chunk has its own loop.
static void run_chunk(const fused_job *job, char *room, int64_t tile, int64_t tiles) {
    const qg_fused_problem *p = job->p;
    int64_t blocks = job->s.panels;
    a_block *a = (a_block *)room;
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t i = 0; i < blocks; i++)
            pack_a(a + t * blocks + i, p, (tile + t) * TILE, i);
    for (int64_t strip = 0; strip < job->s.strips; strip++)
        for (int64_t t = 0; t < tiles; t++) {
            int64_t row = (tile + t) * TILE, column = strip * STRIP;
            int64_t at = row * p->n + column;
            const b_block *b = (const b_block *)job->packed + strip * blocks;
            if (p->promote)
                promoted_pass(job, a + t * blocks, b, row, column);
            else
                tile_pass(a + t * blocks, b, blocks, p->c ? p->c + at : NULL, p->d + at, p->n,
                          p->m - row, p->n - column);
        }
}

// A is packed, and its sums are in registers: no room for decoded B or sums.
static const fused_family family = {.tile = TILE,
                                    .strip = STRIP,
                                    .panel = BLOCK,
                                    .rows_max = ROWS_MAX,
                                    .panels_max = INT64_MAX,
                                    .packed_size = sizeof(b_block),
                                    .a_size = sizeof(a_block),
                                    .mxcsr = FUSED_MXCSR_NEAREST,
                                    .pack = pack};

static size_t workspace(const qg_fused_problem *p) { return fused_workspace(&family, p); }

static void run(const qg_fused_problem *p, void *space) {
    // Nonzero sums are multiples of 2^-80 at least, so above LEAST_EXPONENT.
    int log2_k = 64 - __builtin_clzll((unsigned long long)p->k);
    fused_limits limits = {-80, 126 - 3 - log2_k, (127 - 55) << 23, (127 + 100) << 23};
    fused_run(&family, run_chunk, NULL, &limits, p, space);
}

static int supports(const qg_fused_problem *p) {
    int scales = p->scale_format == QG_FORMAT_E8M0
                     ? p->scale_block == GROUP || p->scale_block == 2 * GROUP
                     : p->scale_format == QG_FORMAT_UE4M3 && p->scale_block == GROUP;
    return p->a.format == QG_FORMAT_E2M1 && p->b.format == QG_FORMAT_E2M1 && p->group == GROUP &&
           p->length == BLOCK && p->bits == BITS && p->result == QG_FUSED_RZ_FP32 && p->k > 0 &&
           p->a.scales && p->b.scales && scales && !p->pairs && p->promote % BLOCK == 0 &&
           p->floor <= -126;
}

#endif
