// The F = 23 .. 25 fused sums: the end of a kernel file, after its
//     tiles_pass, pack_panel, decode_b, decode_a_tile, start_sums, finish_sums
//     start_base: what start values are made of, for F; words: a vector of 16-bit words
//     MXCSR: the rounding that tiles_pass needs
//     multiply_pairs: multiply and the addition to binary32; PAIRS_ROOM: bytes that it needs
#ifndef FUSED_F25_RUN_INTERNAL_H
#define FUSED_F25_RUN_INTERNAL_H

#include <fused_f25_internal.h>

#define TILES_PASS(NAME, L, MODE)                                                                  \
    static __attribute__((noinline)) void NAME(                                                    \
        const a_element *a, const a_side *side, int64_t tiles, const b_panel *b,                   \
        const b_packed *packed, void *sums, vector base, vector least_words) {                     \
        tiles_pass(a, side, tiles, b, packed, sums, L, MODE, base, least_words);                   \
    }
TILES_PASS(tiles_pass_32_scaled, 32, SCALED)
TILES_PASS(tiles_pass_32, 32, PLAIN)
TILES_PASS(tiles_pass_16_pairs, 16, PAIRS)
TILES_PASS(tiles_pass_16, 16, PLAIN)
TILES_PASS(tiles_pass_8, 8, PLAIN)
TILES_PASS(tiles_pass_4, 4, PLAIN)
#undef TILES_PASS

typedef void (*tiles_pass_fn)(const a_element *, const a_side *, int64_t, const b_panel *,
                              const b_packed *, void *, vector, vector);

// The running sums of QG_MODEL_PAIRS are binary32.
static void start_pairs(void *out, const float *c, int64_t stride, int64_t rows, int64_t columns,
                        int64_t padded_rows) {
    float *sums = out;
    memset(sums, 0, (size_t)(padded_rows * STRIP) * sizeof *sums);
    for (int64_t r = 0; c && r < rows; r++)
        memcpy(sums + r * STRIP, c + r * stride,
               (size_t)fused_least(columns, STRIP) * sizeof *sums);
}

static void finish_pairs(const fused_job *job, void *sums, int64_t row, int64_t rows,
                         int64_t column, int64_t columns, int64_t panel) {
    (void)job, (void)sums, (void)row, (void)rows, (void)column, (void)columns, (void)panel;
}

// ---------------------------------------------------------------------------------------- family

typedef struct constants {
    tiles_pass_fn pass;
    vector base, least_words;
} constants;

static void pack(const fused_job *job, int64_t strip, int64_t panel) {
    int64_t column = strip * STRIP;
    pack_panel((b_packed *)job->packed + strip * job->s.panels + panel, job, column,
               job->p->n - column, panel);
}

static void decode_a(const fused_job *job, void *a, void *side, int64_t row, int64_t panel) {
    decode_a_tile(a, side, job, row, panel);
}

static void multiply(const fused_job *job, const void *a, const void *side, int64_t tiles,
                     const void *packed, void *b, void *sums) {
    const constants *x = job->constants;
    decode_b(b, packed, 1 - job->fb.bias);
    x->pass(a, side, tiles, b, packed, sums, x->base, x->least_words);
}

static const fused_family family = {.tile = TILE,
                                    .strip = STRIP,
                                    .panel = PANEL,
                                    .rows_max = ROWS_MAX,
                                    .panels_max = PANELS_MAX,
                                    .packed_size = sizeof(b_packed),
                                    .b_size = sizeof(b_panel),
                                    .a_size = PANEL * sizeof(a_element),
                                    .side_size = sizeof(a_side),
                                    .sum_size = sizeof(double),
                                    .mxcsr = MXCSR,
                                    .pack = pack,
                                    .decode_a = decode_a,
                                    .start = start_sums,
                                    .multiply = multiply,
                                    .finish = finish_sums};

static const fused_family pairs_family = {.tile = TILE,
                                          .strip = STRIP,
                                          .panel = PANEL,
                                          .rows_max = ROWS_MAX,
                                          .panels_max = PANELS_MAX,
                                          .packed_size = sizeof(b_packed),
                                          .b_size = PAIRS_ROOM,
                                          .a_size = PANEL * sizeof(a_element),
                                          .side_size = sizeof(a_side),
                                          .sum_size = sizeof(float),
                                          .mxcsr = MXCSR,
                                          .pack = pack,
                                          .decode_a = decode_a,
                                          .start = start_pairs,
                                          .multiply = multiply_pairs,
                                          .finish = finish_pairs};

static const fused_family *family_of(const qg_fused_problem *p) {
    return p->pairs ? &pairs_family : &family;
}

static size_t workspace(const qg_fused_problem *p) { return fused_workspace(family_of(p), p); }

static tiles_pass_fn choose_pass(const qg_fused_problem *p) {
    if (p->a.scales)
        return tiles_pass_32_scaled;
    if (p->pairs)
        return tiles_pass_16_pairs;
    switch (p->length) {
    case 4: return tiles_pass_4;
    case 8: return tiles_pass_8;
    case 16: return tiles_pass_16;
    default: return tiles_pass_32;
    }
}

static void run(const qg_fused_problem *p, void *space) {
    int field = p->a.scales ? SCALED_LEAST_FIELD : 1023 + p->floor;
    constants x = {choose_pass(p), start_base(p->bits), words((uint16_t)(field << FIELD_SHIFT))};
    // Every running sum is a multiple of the least lowest bit of a product and of C: at 2^-126 or
    // more no result is subnormal. The sum of all products and |C| stays below 2^127.
    int log2_k = 64 - __builtin_clzll((unsigned long long)p->k);
    fused_limits limits = {-126, 126 - 3 - log2_k, (127 - 100) << 23, (127 + 100) << 23};
    fused_run(family_of(p), fused_run_chunk, &x, &limits, p, space);
}

static int fits(qg_format format) {
    qg_format_info info = qg_format_describe(format);
    return info.kind == QG_KIND_FLOAT && info.sign && info.zero && info.nan != QG_NAN_SLOT &&
           info.mbits <= 10 && info.ebits <= 8 && info.ebits >= 2 && info.bits > 1 &&
           (info.bits <= 8
                ? info.mbits <= 3
                : format == QG_FORMAT_FP16 || format == QG_FORMAT_BF16 || format == QG_FORMAT_TF32);
}

static int supports(const qg_fused_problem *p) {
    int lengths = p->length == 4 || p->length == 8 || p->length == 16 || p->length == 32;
    int unscaled =
        !p->a.scales && !p->b.scales && !p->pairs && lengths && p->promote % p->length == 0;
    // A panel is then an instruction, of bytes.
    int pairs = p->pairs && !p->a.scales && !p->b.scales && 2 * p->length == PANEL &&
                p->promote % PANEL == 0 && qg_format_describe(p->a.format).bits == 8 &&
                qg_format_describe(p->b.format).bits == 8;
    int scaled = p->a.scales && p->b.scales && p->scale_format == QG_FORMAT_E8M0 &&
                 p->scale_block == PANEL && p->length == PANEL && p->bits == 25 && !p->pairs &&
                 p->promote % PANEL == 0 && qg_format_describe(p->a.format).bits <= 8 &&
                 qg_format_describe(p->b.format).bits <= 8;
    return fits(p->a.format) && fits(p->b.format) && p->bits >= 23 && p->bits <= 25 && p->k > 0 &&
           p->result == QG_FUSED_RZ_FP32 && !p->group && p->floor >= -140 && p->floor <= -126 &&
           (unscaled || scaled || pairs);
}

#endif
