// What the kernels of the fused sums share: the scan for what they leave to the scalar path, the
// plan of a product, the loops over threads, chunks of rows and K, the promotion, the patch.
//
// Included by each kernel file, so that its loops are compiled for that file's instruction set. A
// kernel file owns formats, packing, decoding and register tiles: a fused_family.
// Left to the scalar path: Inf codes; products or sums that binary32's normal range may not hold; C
// that is NaN, Inf, -0, or too small or large for the kernel. Conservative: an element flagged in
// vain costs time, never a bit. Results do not depend on threads or chunks: every element of D is
// one chain over K in ascending order.
#ifndef FUSED_PANEL_INTERNAL_H
#define FUSED_PANEL_INTERNAL_H

#include <fused_problem_internal.h>

#include <immintrin.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#define FUSED_INLINE static inline __attribute__((always_inline))

enum {
    FUSED_MXCSR_NEAREST = 0x1F80, // exceptions masked, subnormals kept
    FUSED_MXCSR_TOWARD_ZERO = 0x7F80,
    FUSED_CANONICAL_NAN = 0x7FFFFFFF,
    FUSED_NO_ELEMENT = 16000
};

static inline int64_t fused_round_up(int64_t value, int64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static inline int64_t fused_least(int64_t x, int64_t y) { return x < y ? x : y; }

static inline const void *fused_row(const qg_fused_operand *x, int64_t row) {
    return (const uint8_t *)x->codes + row * x->stride;
}

// The 32 codes of an instruction of QG_MODEL_PAIRS in the order of its two fused operations: those
// with bit 1 of k clear, then the others.
FUSED_INLINE __m256i fused_pair_order(__m256i codes) {
    const __m256i even_words_first = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(codes, even_words_first), 0xD8);
}

// The signs of one of a panel's fused operations, of 32 elements' signs.
static inline uint32_t fused_sub_signs(uint32_t word, int s, int length) {
    return length == 32 ? word : word >> (s * length) & ((1u << length) - 1);
}

// Of each dword, by nibble table: AVX2 has no instruction for it.
FUSED_INLINE __m256i fused_population_count(__m256i x) {
    const __m256i table = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1,
                                           2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i counts =
        _mm256_add_epi8(_mm256_shuffle_epi8(table, _mm256_and_si256(x, low)),
                        _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(x, 4), low)));
    counts = _mm256_maddubs_epi16(counts, _mm256_set1_epi8(1));
    return _mm256_madd_epi16(counts, _mm256_set1_epi16(1));
}

// What every kernel of the instruction set is compiled for; some need more.
static inline int fused_cpu_has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
}

static inline int fused_cpu_has_avx512(void) {
    return fused_cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

// ------------------------------------------------------------------------------------------ scan

enum { FUSED_ORDINARY, FUSED_HAS_INF, FUSED_HAS_NAN };

// One row of A or of B: the weight of the lowest bit that any nonzero element can have, the
// largest exponent, both with scales, and its worst special.
typedef struct fused_line {
    int16_t lowest, highest;
    int16_t special;
} fused_line;

// What the kernel can take. C must be +0 or c_least <= |C| < c_limit (binary32 words).
typedef struct fused_limits {
    int lowest;  // sum of two lines' lowest at least this
    int highest; // sum of two lines' highest at most this
    uint32_t c_least, c_limit;
} fused_limits;

// The largest magnitude and the smallest nonzero one (as magnitude - 1, so that zero wraps to the
// largest unsigned value) of `count` codes.
#define FUSED_EXTREMES(NAME, TYPE)                                                                 \
    static inline void NAME(const TYPE *codes, int64_t count, TYPE mask, int shift,                \
                            uint64_t *most, uint64_t *least) {                                     \
        TYPE high = 0, low = (TYPE)-1;                                                             \
        for (int64_t i = 0; i < count; i++) {                                                      \
            TYPE magnitude = (TYPE)((TYPE)(codes[i] & mask) >> shift);                             \
            TYPE below = (TYPE)(magnitude - 1);                                                    \
            high = magnitude > high ? magnitude : high;                                            \
            low = below < low ? below : low;                                                       \
        }                                                                                          \
        *most = high, *least = low == (TYPE)-1 ? UINT64_MAX : low;                                 \
    }
FUSED_EXTREMES(fused_extremes8, uint8_t)
FUSED_EXTREMES(fused_extremes16, uint16_t)
FUSED_EXTREMES(fused_extremes32, uint32_t)
#undef FUSED_EXTREMES

static inline void fused_worsen(fused_line *line, int special) {
    line->special = special > line->special ? (int16_t)special : line->special;
}

// Extends `line` by a run of codes under one scale exponent.
static inline void fused_scan_run(fused_line *line, const qg_format_info *info, const void *codes,
                                  int64_t at, int64_t count, int scale) {
    uint64_t most, least;
    uint64_t mask = ((1ull << (info->ebits + info->mbits)) - 1) << info->shift;
    switch (qg_format_code_bytes(info)) {
    case 1:
        fused_extremes8((const uint8_t *)codes + at, count, (uint8_t)mask, 0, &most, &least);
        break;
    case 2:
        fused_extremes16((const uint16_t *)codes + at, count, (uint16_t)mask, 0, &most, &least);
        break;
    default:
        // A NaN whose payload lies in the bits that truncation drops reads as Inf here, which the
        // scalar path sorts out.
        fused_extremes32((const uint32_t *)codes + at, count, (uint32_t)mask, info->shift, &most,
                         &least);
    }
    if (most > info->max_code)
        fused_worsen(line, info->inf_code != QG_NO_INF && most == info->inf_code ? FUSED_HAS_INF
                                                                                 : FUSED_HAS_NAN);
    if (least == UINT64_MAX)
        return; // all zero: its scale does not matter
    uint64_t field_low = (least + 1) >> info->mbits, field_high = most >> info->mbits;
    int lowest = (int)(field_low ? field_low : 1) - info->bias - info->mbits + scale;
    int highest = (int)(field_high ? field_high : 1) - info->bias + scale;
    line->lowest = lowest < line->lowest ? (int16_t)lowest : line->lowest;
    line->highest = highest > line->highest ? (int16_t)highest : line->highest;
}

static inline fused_line fused_scan_line(const qg_fused_problem *p, const qg_format_info *info,
                                         const qg_fused_operand *x, int64_t row) {
    fused_line line = {FUSED_NO_ELEMENT, -FUSED_NO_ELEMENT, FUSED_ORDINARY};
    const void *codes = fused_row(x, row);
    if (!x->scales) {
        fused_scan_run(&line, info, codes, 0, p->k, 0);
        return line;
    }
    for (int64_t at = 0; at < p->k; at += p->scale_block) {
        uint8_t code = x->scales[row * x->scale_stride + at / p->scale_block];
        int exponent = 0; // UE4M3: the limits of its kernel allow for any finite scale
        if (p->scale_format == QG_FORMAT_E8M0) {
            fused_worsen(&line, code == 0xFF ? FUSED_HAS_NAN : FUSED_ORDINARY);
            exponent = code - 127;
        } else {
            fused_worsen(&line, (code & 0x7F) == 0x7F ? FUSED_HAS_NAN : FUSED_ORDINARY);
        }
        fused_scan_run(&line, info, codes, at, fused_least(p->k - at, p->scale_block), exponent);
    }
    return line;
}

static inline int fused_c_outside(uint32_t bits, const fused_limits *limits) {
    uint32_t magnitude = bits & 0x7FFFFFFF;
    return bits != 0 && magnitude - limits->c_least >= limits->c_limit - limits->c_least;
}

// Whether any of a row's elements of C is outside.
static inline int fused_scan_c(const float *c, int64_t count, const fused_limits *limits) {
    uint32_t outside = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        outside |= (uint32_t)fused_c_outside(bits, limits);
    }
    return outside != 0;
}

// ------------------------------------------------------------------------------------------ plan

typedef struct fused_job fused_job;

// What a kernel file brings. Sizes in bytes; a row tile is `tile` rows, a strip `strip` columns, a
// panel `panel` elements of K. The callbacks are called under `mxcsr`, except finish (nearest).
typedef struct fused_family {
    int64_t tile, strip, panel;
    int64_t rows_max, panels_max; // of A, decoded at a time: what L2 holds
    int64_t packed_size;          // a packed panel of a strip
    int64_t b_size;               // a decoded one
    int64_t a_size, side_size;    // a decoded panel of a row tile, and what goes with it
    int64_t sum_size;             // a running sum
    unsigned mxcsr;
    void (*pack)(const fused_job *job, int64_t strip, int64_t panel);
    void (*decode_a)(const fused_job *job, void *a, void *side, int64_t row, int64_t panel);
    // Sums of tiles x strip, row-major, from C or (NULL) 0. C is (rows, columns) of it.
    void (*start)(void *sums, const float *c, int64_t stride, int64_t rows, int64_t columns,
                  int64_t padded_rows);
    void (*multiply)(const fused_job *job, const void *a, const void *side, int64_t tiles,
                     const void *packed, void *b, void *sums);
    // The sums as binary32, in place: rows `strip` elements apart. `panel` was the last.
    void (*finish)(const fused_job *job, void *sums, int64_t row, int64_t rows, int64_t column,
                   int64_t columns, int64_t panel);
} fused_family;

typedef struct fused_plan {
    int threads;
    int64_t tiles, strips, panels;     // of the whole problem
    int64_t segment_panels;            // of an interval of promotion, whose last may be short
    int64_t chunk_tiles, chunk_panels; // of A, decoded at a time
    int64_t packed_bytes, lines_bytes, a_bytes, side_bytes, sums_bytes, thread_bytes;
} fused_plan;

struct fused_job {
    const qg_fused_problem *p;
    const fused_family *family;
    fused_plan s;
    qg_format_info fa, fb;
    char *packed;
    fused_line *rows, *columns;
    const void *constants; // the kernel file's own
};

enum { FUSED_PAGE = 4096, FUSED_LINE = 64 };

static inline fused_plan fused_plan_of(const fused_family *f, const qg_fused_problem *p) {
    fused_plan s = {.threads = 1};
    s.tiles = (p->m + f->tile - 1) / f->tile;
    s.strips = (p->n + f->strip - 1) / f->strip;
    int64_t segment = p->promote ? p->promote : p->k;
    s.segment_panels = (segment + f->panel - 1) / f->panel;
    s.panels = p->k / segment * s.segment_panels + (p->k % segment + f->panel - 1) / f->panel;
#ifdef _OPENMP
    s.threads = p->threads > 0 ? p->threads : omp_get_max_threads();
#endif
    s.threads = (int)fused_least(s.threads, s.tiles > 0 ? s.tiles : 1);
    int64_t share = (s.tiles + s.threads - 1) / s.threads;
    int64_t chunks = (share * f->tile + f->rows_max - 1) / f->rows_max;
    s.chunk_tiles = chunks > 0 ? (share + chunks - 1) / chunks : 0;
    s.chunk_panels = fused_least(f->panels_max, s.panels);
    s.packed_bytes = s.strips * s.panels * f->packed_size;
    s.lines_bytes = (p->m + p->n) * (int64_t)sizeof(fused_line);
    // One tile more than needed: kernels look one sub-block ahead.
    s.a_bytes = fused_round_up((s.chunk_tiles * s.chunk_panels + 1) * f->a_size, FUSED_LINE);
    s.side_bytes = fused_round_up(s.chunk_tiles * s.chunk_panels * f->side_size, FUSED_LINE);
    s.sums_bytes = s.strips * s.chunk_tiles * f->tile * f->strip * f->sum_size;
    s.thread_bytes =
        fused_round_up(f->b_size + s.a_bytes + s.sums_bytes + s.side_bytes + FUSED_LINE,
                       FUSED_PAGE) +
        FUSED_LINE;
    return s;
}

static inline size_t fused_workspace(const fused_family *f, const qg_fused_problem *p) {
    fused_plan s = fused_plan_of(f, p);
    return (size_t)(s.packed_bytes + fused_round_up(s.lines_bytes, FUSED_LINE) +
                    s.threads * s.thread_bytes);
}

// The elements of K that a panel covers; those of the panel beyond `depth` count as zeros.
typedef struct fused_span {
    int64_t k, depth;
} fused_span;

static inline fused_span fused_span_of(const fused_job *job, int64_t panel) {
    const qg_fused_problem *p = job->p;
    int64_t segment = panel / job->s.segment_panels, length = p->promote ? p->promote : p->k;
    int64_t k = segment * length + panel % job->s.segment_panels * job->family->panel;
    return (fused_span){k, fused_least(p->k, (segment + 1) * length) - k};
}

// ------------------------------------------------------------------------------------- promotion

enum { FUSED_LANES = 16, FUSED_STRIP_MAX = 64 };

// One promotion step of 16 elements: main + sum or fma(scale, sum, main), canonical NaN. In
// intrinsics, since gcc 12 leaves the plain loop scalar.
FUSED_INLINE void fused_promote(float *out, const float *main_sum, const float *sums,
                                const float *column_scale, float row_scale, int scaled) {
#ifdef __AVX512F__
    __m512 x = _mm512_loadu_ps(main_sum), y = _mm512_loadu_ps(sums);
    __m512 scale = _mm512_mul_ps(_mm512_set1_ps(row_scale), _mm512_loadu_ps(column_scale));
    x = scaled ? _mm512_fmadd_ps(scale, y, x) : _mm512_add_ps(x, y);
    __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(FUSED_CANONICAL_NAN));
    __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    _mm512_storeu_ps(out, _mm512_mask_mov_ps(x, is_nan, nan));
#else
    for (int i = 0; i < FUSED_LANES; i += 8) {
        __m256 x = _mm256_loadu_ps(main_sum + i), y = _mm256_loadu_ps(sums + i);
        __m256 scale = _mm256_mul_ps(_mm256_set1_ps(row_scale), _mm256_loadu_ps(column_scale + i));
        x = scaled ? _mm256_fmadd_ps(scale, y, x) : _mm256_add_ps(x, y);
        __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(FUSED_CANONICAL_NAN));
        _mm256_storeu_ps(out + i, _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
    }
#endif
}

// D = the sums, or one promotion step.
static __attribute__((noinline)) void fused_fold(const fused_job *job, const float *sums,
                                                 int64_t row, int64_t rows, int64_t column,
                                                 int64_t columns, int64_t segment) {
    const qg_fused_problem *p = job->p;
    int64_t segments = p->promote ? (p->k + p->promote - 1) / p->promote : 1;
    const float *main_sum = segment == 0 ? p->c : p->d;
    int scaled = p->promote && p->row_scale;
    float column_scale[FUSED_STRIP_MAX] = {0}, zero[FUSED_LANES] = {0};
    for (int64_t j = 0; scaled && j < columns; j++)
        column_scale[j] = p->column_scale[(column + j) * segments + segment];
    for (int64_t r = 0; r < rows; r++, sums += job->family->strip) {
        int64_t at = (row + r) * p->n + column;
        if (!p->promote) {
            memcpy(p->d + at, sums, (size_t)columns * sizeof *sums);
            continue;
        }
        float row_scale = scaled ? p->row_scale[(row + r) * segments + segment] : 1;
        for (int64_t j = 0; j < columns; j += FUSED_LANES) {
            const float *from = main_sum ? main_sum + at + j : zero;
            if (columns - j >= FUSED_LANES) {
                fused_promote(p->d + at + j, from, sums + j, column_scale + j, row_scale, scaled);
            } else {
                float some[FUSED_LANES] = {0}, out[FUSED_LANES];
                memcpy(some, from, (size_t)(columns - j) * sizeof *some);
                fused_promote(out, some, sums + j, column_scale + j, row_scale, scaled);
                memcpy(p->d + at + j, out, (size_t)(columns - j) * sizeof *out);
            }
        }
    }
}

// ---------------------------------------------------------------------------------------- driver

// A chunk of row tiles x all columns x all of K.
static inline void fused_run_chunk(const fused_job *job, char *room, int64_t tile0, int64_t tiles) {
    const qg_fused_problem *p = job->p;
    const fused_plan *s = &job->s;
    const fused_family *f = job->family;
    char *a = room + f->b_size;
    // The sums start a line later, clear of B's and A's sets in L1.
    char *all_sums = a + s->a_bytes + FUSED_LINE;
    char *sides = all_sums + s->sums_bytes;
    int64_t row = tile0 * f->tile, rows = fused_least(p->m - row, tiles * f->tile);
    int64_t segment_panels = s->segment_panels;
    for (int64_t panel = 0; panel < s->panels;) {
        int64_t segment = panel / segment_panels;
        int64_t segment_end = fused_least((segment + 1) * segment_panels, s->panels);
        int64_t panels = fused_least(s->chunk_panels, segment_end - panel);
        int starts = panel == segment * segment_panels, ends = panel + panels == segment_end;
        for (int64_t i = 0; i < panels * tiles; i++)
            f->decode_a(job, a + i * f->a_size, sides + i * f->side_size, row + i % tiles * f->tile,
                        panel + i / tiles);
        for (int64_t strip = 0; strip < s->strips; strip++) {
            int64_t column = strip * f->strip, columns = fused_least(p->n - column, f->strip);
            // A segment within one chunk of K needs no sums from elsewhere: all strips use the
            // first one's room, which stays in cache.
            char *sums = all_sums;
            if (!(starts && ends))
                sums += strip * tiles * f->tile * f->strip * f->sum_size;
            _mm_setcsr(f->mxcsr);
            if (starts)
                f->start(sums, p->c && !p->promote ? p->c + row * p->n + column : NULL, p->n, rows,
                         columns, tiles * f->tile);
            for (int64_t i = 0; i < panels; i++)
                f->multiply(job, a + i * tiles * f->a_size, sides + i * tiles * f->side_size, tiles,
                            job->packed + (strip * s->panels + panel + i) * f->packed_size, room,
                            sums);
            _mm_setcsr(FUSED_MXCSR_NEAREST);
            if (ends) {
                f->finish(job, sums, row, rows, column, columns, segment_end - 1);
                fused_fold(job, (const float *)sums, row, rows, column, columns, segment);
            }
        }
        panel += panels;
    }
}

typedef void (*fused_chunk_fn)(const fused_job *job, char *room, int64_t tile, int64_t tiles);

// One thread's share: its strips of B to pack, then its rows.
static inline void fused_run_thread(const fused_job *job, fused_chunk_fn chunk, char *room,
                                    int index, int threads) {
    const qg_fused_problem *p = job->p;
    const fused_plan *s = &job->s;
    const fused_family *f = job->family;
    unsigned saved = _mm_getcsr();
    _mm_setcsr(FUSED_MXCSR_NEAREST);
    for (int64_t strip = s->strips * index / threads; strip < s->strips * (index + 1) / threads;
         strip++) {
        for (int64_t panel = 0; panel < s->panels; panel++)
            f->pack(job, strip, panel);
        for (int64_t j = strip * f->strip; j < fused_least((strip + 1) * f->strip, p->n); j++)
            job->columns[j] = fused_scan_line(p, &job->fb, &p->b, j);
    }
    int64_t first = s->tiles * index / threads, end = s->tiles * (index + 1) / threads;
    for (int64_t i = first * f->tile; i < fused_least(end * f->tile, p->m); i++)
        job->rows[i] = fused_scan_line(p, &job->fa, &p->a, i);
#ifdef _OPENMP
#pragma omp barrier
#endif
    for (int64_t tile = first; tile < end; tile += s->chunk_tiles)
        chunk(job, room, tile, fused_least(s->chunk_tiles, end - tile));
    _mm_setcsr(saved);
}

// Recomputes what the kernel could not take in row i, in runs of neighbours.
static inline void fused_patch_row(const fused_job *job, const fused_limits *limits, int64_t i,
                                   const float *c) {
    const qg_fused_problem *p = job->p;
    fused_line row = job->rows[i];
    int64_t run = 0; // length of the run of affected elements that ends before j
    for (int64_t j = 0; j <= p->n; j++) {
        int nan = 0, affected = 0;
        if (j < p->n) {
            fused_line column = job->columns[j];
            uint32_t bits = 0;
            if (c)
                memcpy(&bits, &c[j], sizeof bits);
            nan = row.special == FUSED_HAS_NAN || column.special == FUSED_HAS_NAN;
            affected = !nan && (row.special || column.special || fused_c_outside(bits, limits) ||
                                row.lowest + column.lowest < limits->lowest ||
                                row.highest + column.highest > limits->highest);
        }
        if (affected) {
            run++;
            continue;
        }
        if (run)
            p->fallback(p, i, j - run, run);
        run = 0;
        if (nan) {
            uint32_t bits = FUSED_CANONICAL_NAN; // a NaN anywhere reaches the end of the chain
            memcpy(&p->d[i * p->n + j], &bits, sizeof bits);
        }
    }
}

static inline void fused_patch(const fused_job *job, const fused_limits *limits) {
    const qg_fused_problem *p = job->p;
    int special = 0, lowest = FUSED_NO_ELEMENT, highest = -FUSED_NO_ELEMENT;
    for (int64_t j = 0; j < p->n; j++) {
        special |= job->columns[j].special;
        lowest = job->columns[j].lowest < lowest ? job->columns[j].lowest : lowest;
        highest = job->columns[j].highest > highest ? job->columns[j].highest : highest;
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 4) num_threads(job->s.threads) if (job->s.threads > 1)
#endif
    for (int64_t i = 0; i < p->m; i++) {
        fused_line row = job->rows[i];
        const float *c = p->c && !p->promote ? p->c + i * p->n : NULL;
        if (special || row.special || row.lowest + lowest < limits->lowest ||
            row.highest + highest > limits->highest || (c && fused_scan_c(c, p->n, limits)))
            fused_patch_row(job, limits, i, c);
    }
}

// A whole product. `constants` is handed to the callbacks.
static inline void fused_run(const fused_family *f, fused_chunk_fn chunk, const void *constants,
                             const fused_limits *limits, const qg_fused_problem *p,
                             void *workspace) {
    if (p->m == 0 || p->n == 0)
        return;
    fused_job job = {.p = p, .family = f, .s = fused_plan_of(f, p), .constants = constants};
    job.fa = qg_format_describe(p->a.format);
    job.fb = qg_format_describe(p->b.format);
    job.packed = workspace;
    job.rows = (fused_line *)(job.packed + job.s.packed_bytes);
    job.columns = job.rows + p->m;
    char *rooms = job.packed + job.s.packed_bytes + fused_round_up(job.s.lines_bytes, FUSED_LINE);
#ifdef _OPENMP
#pragma omp parallel num_threads(job.s.threads) if (job.s.threads > 1)
    {
        int index = omp_get_thread_num();
        fused_run_thread(&job, chunk, rooms + index * job.s.thread_bytes, index,
                         omp_get_num_threads());
    }
#else
    fused_run_thread(&job, chunk, rooms, 0, 1);
#endif
    fused_patch(&job, limits);
}

#endif
