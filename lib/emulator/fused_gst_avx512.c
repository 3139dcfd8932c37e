// The F = 35 grouped fused sums of Blackwell's NVFP4 and MXFP4 units (GST-FDPA) in AVX-512.
//
// Owns their packing and tiling. A group's sum of 16 E2M1 products is an exact integer dot product
// of bytes (values doubled; A is offset by 12 to be unsigned, which -12 * sum of B undoes). Times
// both scales' significands it has at most 21 bits, so binary32 holds it exactly, also after the
// power of two that makes the quantum 1; converting that to a 64-bit integer truncates toward zero.
// Exact: the bits of qg_unit_panel_scalar.
#include <fused_panel_internal.h>

enum {
    STRIP = 16,
    TILE = 4,
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
    LEAST_EXPONENT = -85,
    TOWARD_ZERO = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC
};

// One block of K = 64 of 4 rows of A.
typedef struct a_block {
    uint32_t quad[GROUPS][QUADS][TILE]; // four bytes, doubled value + 12
    float exponent[GROUPS][TILE];       // of the scale
    float significand[GROUPS][TILE];    // of the scale, as an integer
    uint32_t nonzero[GROUPS][TILE];     // bit per element; 0 where the scale is zero
} a_block;

// One block of 16 columns of B.
typedef struct b_block {
    _Alignas(64) int8_t quad[GROUPS][QUADS][STRIP][4]; // doubled values
    _Alignas(64) int32_t start[GROUPS][STRIP];         // -12 * sum
    _Alignas(64) float exponent[GROUPS][STRIP];
    _Alignas(64) float significand[GROUPS][STRIP];
    _Alignas(64) uint32_t nonzero[GROUPS][STRIP];
} b_block;

// --------------------------------------------------------------------------------------- packing

// A block's 64 doubled values; codes beyond k are zero.
FUSED_INLINE __m512i doubled_values(const uint8_t *codes, int64_t depth) {
    const __m128i table = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    __mmask64 mask = depth >= BLOCK ? ~0ull : (1ull << depth) - 1;
    __m512i code = _mm512_and_si512(_mm512_maskz_loadu_epi8(mask, codes), _mm512_set1_epi8(15));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), code);
}

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

static void pack_b(b_block *out, const qg_fused_problem *p, int64_t column, int64_t columns,
                   int64_t block) {
    int64_t k = block * BLOCK;
    for (int j = 0; j < STRIP; j++) {
        __m512i values = _mm512_setzero_si512();
        if (j < columns)
            values = doubled_values((const uint8_t *)fused_row(&p->b, column + j) + k, p->k - k);
        uint64_t nonzero = _mm512_test_epi8_mask(values, values);
        _Alignas(64) int8_t bytes[BLOCK];
        _mm512_store_si512(bytes, values);
        for (int g = 0; g < GROUPS; g++) {
            int exponent = 0, significand = 0, sum = 0;
            if (j < columns)
                significand = scale_parts(p, &p->b, column + j, k + g * GROUP, &exponent);
            for (int i = 0; i < GROUP; i++)
                sum += bytes[g * GROUP + i];
            for (int i = 0; i < QUADS; i++)
                memcpy(out->quad[g][i][j], bytes + g * GROUP + 4 * i, 4);
            out->start[g][j] = -OFFSET * sum;
            out->exponent[g][j] = (float)exponent;
            out->significand[g][j] = (float)significand;
            out->nonzero[g][j] = (uint32_t)(significand ? nonzero >> (g * GROUP) & 0xFFFF : 0);
        }
    }
}

static void pack_a(a_block *out, const qg_fused_problem *p, int64_t row, int64_t block) {
    int64_t k = block * BLOCK;
    for (int r = 0; r < TILE; r++) {
        __m512i values = _mm512_setzero_si512();
        if (row + r < p->m)
            values = doubled_values((const uint8_t *)fused_row(&p->a, row + r) + k, p->k - k);
        uint64_t nonzero = _mm512_test_epi8_mask(values, values);
        _Alignas(64) uint32_t dwords[BLOCK / 4];
        _mm512_store_si512(dwords, _mm512_add_epi8(values, _mm512_set1_epi8(OFFSET)));
        for (int g = 0; g < GROUPS; g++) {
            int exponent = 0, significand = 0;
            if (row + r < p->m)
                significand = scale_parts(p, &p->a, row + r, k + g * GROUP, &exponent);
            for (int i = 0; i < QUADS; i++)
                out->quad[g][i][r] = dwords[g * QUADS + i];
            out->exponent[g][r] = (float)exponent;
            out->significand[g][r] = (float)significand;
            out->nonzero[g][r] = (uint32_t)(significand ? nonzero >> (g * GROUP) & 0xFFFF : 0);
        }
    }
}

// ---------------------------------------------------------------------------------------- kernel

// trunc of 16 values, added to two registers of 64-bit sums.
FUSED_INLINE void add_truncated(__m512i sum[2], __m512 value) {
    sum[0] = _mm512_add_epi64(sum[0], _mm512_cvttps_epi64(_mm512_castps512_ps256(value)));
    sum[1] = _mm512_add_epi64(sum[1], _mm512_cvttps_epi64(_mm512_extractf32x8_ps(value, 1)));
}

// sums * 2^exponent toward zero to binary32. The sums have at most 49 bits: exact in binary64.
FUSED_INLINE __m512 round_sums(const __m512i sum[2], __m512i exponent) {
    __m512i field = _mm512_add_epi32(exponent, _mm512_set1_epi32(1023));
    __m256 half[2];
    for (int i = 0; i < 2; i++) {
        __m256i narrow = i ? _mm512_extracti32x8_epi32(field, 1) : _mm512_castsi512_si256(field);
        __m512d unit = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu32_epi64(narrow), 52));
        half[i] =
            _mm512_cvt_roundpd_ps(_mm512_mul_pd(_mm512_cvtepi64_pd(sum[i]), unit), TOWARD_ZERO);
    }
    return _mm512_insertf32x8(_mm512_castps256_ps512(half[0]), half[1], 1);
}

// One fused operation on 4 rows x 16 columns. Exponents are small integers in binary32, which is
// what scalef takes.
FUSED_INLINE void fused_block(__m512 c[TILE], const a_block *a, const b_block *b) {
    __m512 emax[TILE];
    __m512i sum[TILE][2];
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++) {
        // The exponent of c; of 0 it is -inf.
        emax[r] = _mm512_max_ps(_mm512_getexp_ps(c[r]), _mm512_set1_ps(LEAST_EXPONENT));
#pragma GCC unroll 4
        for (int g = 0; g < GROUPS; g++) {
            __mmask16 counts = _mm512_test_epi32_mask(_mm512_set1_epi32((int)a->nonzero[g][r]),
                                                      _mm512_load_si512(b->nonzero[g]));
            __m512 exponent =
                _mm512_add_ps(_mm512_set1_ps(a->exponent[g][r]), _mm512_load_ps(b->exponent[g]));
            emax[r] = _mm512_mask_max_ps(emax[r], counts, emax[r], exponent);
        }
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
        __m512 shift = _mm512_sub_ps(_mm512_set1_ps(BITS), emax[r]);
        add_truncated(sum[r], _mm512_scalef_ps(c[r], shift));
    }
#pragma GCC unroll 4
    for (int g = 0; g < GROUPS; g++) {
        __m512i dot[TILE];
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++)
            dot[r] = _mm512_load_si512(b->start[g]);
#pragma GCC unroll 4
        for (int i = 0; i < QUADS; i++) {
            __m512i quad = _mm512_load_si512(b->quad[g][i]);
            // Keeps the compiler from loading it again for each of the four rows.
            __asm__("" : "+v"(quad));
#pragma GCC unroll 4
            for (int r = 0; r < TILE; r++)
                dot[r] =
                    _mm512_dpbusd_epi32(dot[r], _mm512_set1_epi32((int)a->quad[g][i][r]), quad);
        }
        __m512 base = _mm512_add_ps(_mm512_load_ps(b->exponent[g]), _mm512_set1_ps(BITS - UNIT));
#pragma GCC unroll 4
        for (int r = 0; r < TILE; r++) {
            __m512 exponent =
                _mm512_sub_ps(_mm512_add_ps(base, _mm512_set1_ps(a->exponent[g][r])), emax[r]);
            __m512 scale = _mm512_mul_ps(_mm512_set1_ps(a->significand[g][r]),
                                         _mm512_load_ps(b->significand[g]));
            __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(dot[r]), scale);
            add_truncated(sum[r], _mm512_scalef_ps(value, exponent));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < TILE; r++)
        c[r] = round_sums(sum[r], _mm512_cvtps_epi32(_mm512_sub_ps(emax[r], _mm512_set1_ps(BITS))));
}

static void tile_pass(const a_block *a, const b_block *b, int64_t blocks, const float *c_in,
                      float *d, int64_t stride, int64_t rows, int64_t columns) {
    __mmask16 mask = (__mmask16)(columns >= STRIP ? 0xFFFF : (1 << columns) - 1);
    __m512 c[TILE];
    for (int r = 0; r < TILE; r++)
        c[r] =
            c_in && r < rows ? _mm512_maskz_loadu_ps(mask, c_in + r * stride) : _mm512_setzero_ps();
    for (int64_t i = 0; i < blocks; i++)
        fused_block(c, a + i, b + i);
    for (int r = 0; r < TILE; r++)
        if (r < rows)
            _mm512_mask_storeu_ps(d + r * stride, mask, c[r]);
}

// ---------------------------------------------------------------------------------------- family

static void pack(const fused_job *job, int64_t strip, int64_t block) {
    int64_t column = strip * STRIP;
    pack_b((b_block *)job->packed + strip * job->s.panels + block, job->p, column,
           job->p->n - column, block);
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
            tile_pass(a + t * blocks, (const b_block *)job->packed + strip * blocks, blocks,
                      p->c ? p->c + at : NULL, p->d + at, p->n, p->m - row, p->n - column);
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
           p->a.scales && p->b.scales && scales && !p->promote && p->floor <= -126;
}

static int cpu_has(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}

const qg_fused_kernel qg_fused_gst_avx512 = {"gst_avx512", cpu_has, supports, workspace, run};
