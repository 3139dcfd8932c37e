// The F = 13 fused sums: the end of a kernel file, after its
//     tiles_pass, pack_panel, decode_b, decode_a_tile, start_sums, finish_sums
//     vector: of its start values; start_base: what they are made of, for F
//     decoders: make_decoders of the formats of A and B
//     MXCSR: the rounding that tiles_pass needs
#ifndef FUSED_F13_RUN_INTERNAL_H
#define FUSED_F13_RUN_INTERNAL_H

#include <fused_f13_internal.h>

#define TILES_PASS(L)                                                                              \
    static __attribute__((noinline)) void tiles_pass_##L(                                          \
        const a_element *a, const a_signs *signs, int64_t tiles, const b_panel *b,                 \
        const b_packed *packed, float *sums, vector base) {                                        \
        tiles_pass(a, signs, tiles, b, packed, sums, L, base);                                     \
    }
TILES_PASS(32)
TILES_PASS(16)
TILES_PASS(8)
#undef TILES_PASS

// ---------------------------------------------------------------------------------------- family

typedef struct constants {
    decoders of;
    vector base;
} constants;

static void pack(const fused_job *job, int64_t strip, int64_t panel) {
    const qg_fused_problem *p = job->p;
    int64_t column = strip * STRIP;
    fused_span span = fused_span_of(job, panel);
    pack_panel((b_packed *)job->packed + strip * job->s.panels + panel,
               (const uint8_t *)fused_row(&p->b, column) + span.k, p->b.stride, p->n - column,
               span.depth, p->length);
}

static void decode_a(const fused_job *job, void *a, void *side, int64_t row, int64_t panel) {
    const qg_fused_problem *p = job->p;
    const constants *x = job->constants;
    fused_span span = fused_span_of(job, panel);
    decode_a_tile(a, side, (const uint8_t *)fused_row(&p->a, row) + span.k, p->a.stride, p->m - row,
                  span.depth, p->length, &x->of);
}

static void multiply(const fused_job *job, const void *a, const void *side, int64_t tiles,
                     const void *packed, void *b, void *sums) {
    const constants *x = job->constants;
    decode_b(b, packed, &x->of);
    switch (job->p->length) {
    case 8: tiles_pass_8(a, side, tiles, b, packed, sums, x->base); break;
    case 16: tiles_pass_16(a, side, tiles, b, packed, sums, x->base); break;
    default: tiles_pass_32(a, side, tiles, b, packed, sums, x->base);
    }
}

static const fused_family family = {.tile = TILE,
                                    .strip = STRIP,
                                    .panel = PANEL,
                                    .rows_max = ROWS_MAX,
                                    .panels_max = PANELS_MAX,
                                    .packed_size = sizeof(b_packed),
                                    .b_size = sizeof(b_panel),
                                    .a_size = PANEL * sizeof(a_element),
                                    .side_size = sizeof(a_signs),
                                    .sum_size = sizeof(float),
                                    .mxcsr = MXCSR,
                                    .pack = pack,
                                    .decode_a = decode_a,
                                    .start = start_sums,
                                    .multiply = multiply,
                                    .finish = finish_sums};

static size_t workspace(const qg_fused_problem *p) { return fused_workspace(&family, p); }

static void run(const qg_fused_problem *p, void *space) {
    qg_format_info fa = qg_format_describe(p->a.format), fb = qg_format_describe(p->b.format);
    constants x = {make_decoders(&fa, &fb), start_base(p->bits)};
    // The largest |C| keeps the start value's exponent field below that of Inf; the least keeps
    // every partial sum above what a zero operand leaves in the exponent pass, 2^(111 - 192).
    fused_limits limits = {-FUSED_NO_ELEMENT, FUSED_NO_ELEMENT, (127 - 60) << 23,
                           (127 + 100) << 23};
    fused_run(&family, fused_run_chunk, &x, &limits, p, space);
}

static int is_fp8(qg_format format) { return format == QG_FORMAT_E4M3 || format == QG_FORMAT_E5M2; }

static int supports(const qg_fused_problem *p) {
    return is_fp8(p->a.format) && is_fp8(p->b.format) && p->bits == 13 && p->k > 0 &&
           p->result == QG_FUSED_RZ_E8M13 && !p->group && !p->a.scales && !p->b.scales &&
           p->floor <= -100 && (p->length == 32 || p->length == 16 || p->length == 8) &&
           !p->pairs && p->promote % p->length == 0;
}

#endif
