// Differential check of the SIMD kernels of the fused sums; see fused_cases.h.
#include <fused_cases.h>
#include <fused_reference.h>
#include <require.h>

#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

static uint64_t state = 0x9E3779B97F4A7C15ull;

static uint32_t draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static int64_t below(int64_t limit) { return draw() % (uint32_t)limit; }

static void whole_scalar(const qg_fused_problem *p) {
    for (int64_t i = 0; i < p->m; i++)
        qg_fused_run_scalar(p, i, 0, p->n);
}

typedef struct kind {
    const char *name;
    qg_format a, b;
    int length, bits, result, floor, group;
    qg_format scale; // 0: none
    int scale_block, pairs;
} kind;

// clang-format off
#define F(name) QG_FORMAT_##name
#define NO_SCALE 0, 0, 0
#define PAIRS 0, 0, 1
static const kind kinds[] = {
    {"wgmma e4m3", F(E4M3), F(E4M3), 32, 13, QG_FUSED_RZ_E8M13, -133, 0, NO_SCALE},
    {"wgmma e5m2", F(E5M2), F(E5M2), 32, 13, QG_FUSED_RZ_E8M13, -133, 0, NO_SCALE},
    {"wgmma e4m3 e5m2", F(E4M3), F(E5M2), 32, 13, QG_FUSED_RZ_E8M13, -133, 0, NO_SCALE},
    {"ada e5m2 e4m3", F(E5M2), F(E4M3), 16, 13, QG_FUSED_RZ_E8M13, -132, 0, NO_SCALE},
    {"ada e4m3", F(E4M3), F(E4M3), 16, 13, QG_FUSED_RZ_E8M13, -132, 0, NO_SCALE},
    {"volta fp16", F(FP16), F(FP16), 4, 23, QG_FUSED_RZ_FP32, -131, 0, NO_SCALE},
    {"turing fp16", F(FP16), F(FP16), 8, 24, QG_FUSED_RZ_FP32, -132, 0, NO_SCALE},
    {"ampere tf32", F(TF32), F(TF32), 4, 24, QG_FUSED_RZ_FP32, -132, 0, NO_SCALE},
    {"ampere bf16", F(BF16), F(BF16), 8, 24, QG_FUSED_RZ_FP32, -132, 0, NO_SCALE},
    {"hopper tf32", F(TF32), F(TF32), 8, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"hopper fp16", F(FP16), F(FP16), 16, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"hopper bf16", F(BF16), F(BF16), 16, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"blackwell e4m3", F(E4M3), F(E4M3), 32, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"blackwell e5m2 e2m3", F(E5M2), F(E2M3), 32, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"blackwell e3m2 e2m1", F(E3M2), F(E2M1), 32, 25, QG_FUSED_RZ_FP32, -133, 0, NO_SCALE},
    {"mx e4m3", F(E4M3), F(E4M3), 32, 25, QG_FUSED_RZ_FP32, -133, 0, F(E8M0), 32, 0},
    {"mx e5m2 e3m2", F(E5M2), F(E3M2), 32, 25, QG_FUSED_RZ_FP32, -133, 0, F(E8M0), 32, 0},
    {"mx e2m1 e2m3", F(E2M1), F(E2M3), 32, 25, QG_FUSED_RZ_FP32, -133, 0, F(E8M0), 32, 0},
    {"pairs e4m3", F(E4M3), F(E4M3), 16, 25, QG_FUSED_RZ_FP32, -133, 0, PAIRS},
    {"pairs e5m2 e4m3", F(E5M2), F(E4M3), 16, 25, QG_FUSED_RZ_FP32, -133, 0, PAIRS},
    {"nvfp4 ue4m3", F(E2M1), F(E2M1), 64, 35, QG_FUSED_RZ_FP32, -139, 16, F(UE4M3), 16, 0},
    {"mxfp4 e8m0", F(E2M1), F(E2M1), 64, 35, QG_FUSED_RZ_FP32, -139, 16, F(E8M0), 32, 0},
    {"mxfp4 e8m0 16", F(E2M1), F(E2M1), 64, 35, QG_FUSED_RZ_FP32, -139, 16, F(E8M0), 16, 0},
};
#undef NO_SCALE
#undef PAIRS
#undef F
// clang-format on

// How a tensor is filled. RAW: any bytes. FINITE: any codes without NaN and Inf. NARROW: a few
// binades around 1. CANCEL: a value and its negative, so that sums vanish. SPARSE: mostly zeros.
// EDGE: products, scales included, about where binary32's normal range ends.
enum { RAW, FINITE, NARROW, CANCEL, SPARSE, EDGE, FILLS };

static uint32_t random_code(const qg_format_info *info, int fill) {
    uint32_t magnitude_bits = (uint32_t)(info->ebits + info->mbits);
    uint32_t sign = info->sign ? (draw() & 1) << magnitude_bits : 0, code;
    uint32_t one = (uint32_t)info->bias << info->mbits;
    switch (fill) {
    case RAW: code = draw(); return info->bits < 8 ? code & ((1u << info->bits) - 1) : code;
    case EDGE:
        if (info->ebits < 8)
            return random_code(info, FINITE);
        code = ((uint32_t)info->bias - 63 + draw() % 8) << info->mbits;
        code |= draw() % (1u << info->mbits);
        break;
    case FINITE: code = draw() % (uint32_t)(info->max_code + 1); break;
    case NARROW: code = one + (draw() % (6u << info->mbits)) - (3u << info->mbits); break;
    case CANCEL: code = one + (draw() % 3 ? 0 : draw() % (1u << info->mbits)); break;
    default: code = draw() % 8 ? 0 : draw() % (uint32_t)(info->max_code + 1); break;
    }
    if (code > info->max_code) // narrow formats: wrap into the finite codes
        code %= (uint32_t)info->max_code + 1;
    // A wide format's whole range would leave everything to the scalar path.
    if (info->ebits == 8 && (fill == FINITE || fill == SPARSE) && code)
        code = one + code % (40u << info->mbits) - (20u << info->mbits);
    return (sign | code) << info->shift | (info->shift ? draw() & 0x1FFF : 0);
}

static void fill_codes(void *out, qg_format format, int64_t count, int fill) {
    qg_format_info info = qg_format_describe(format);
    for (int64_t i = 0; i < count; i++) {
        uint32_t code = random_code(&info, fill);
        switch (qg_format_code_bytes(&info)) {
        case 1: ((uint8_t *)out)[i] = (uint8_t)code; break;
        case 2: ((uint16_t *)out)[i] = (uint16_t)code; break;
        default: ((uint32_t *)out)[i] = code;
        }
    }
}

enum { C_NONE, C_NORMAL, C_RAW, C_SMALL, C_MIXED, C_FILLS };

static void fill_c(float *out, int64_t count, int fill) {
    for (int64_t i = 0; i < count; i++) {
        int how = fill == C_MIXED ? (int)below(6) : fill;
        uint32_t bits = draw();
        if (how == C_NORMAL || how == 5)
            bits = (bits & 0x807FFFFF) | (uint32_t)(127 - 12 + below(24)) << 23;
        else if (how == C_SMALL)
            bits = (bits & 0x807FFFFF) | (uint32_t)(127 - 90 + below(50)) << 23;
        else if (how == 4)
            bits = 0;
        else if (how == 0)
            bits = 0x80000000;
        memcpy(&out[i], &bits, 4);
    }
}

// Where EDGE puts a case's E8M0 scales: about the limits of the kernels, or (0) far apart.
static int64_t edge_scale;

static uint8_t random_scale(qg_format format, int fill) {
    if (fill == RAW)
        return (uint8_t)draw();
    if (format == QG_FORMAT_E8M0)
        return (uint8_t)(fill == EDGE ? (edge_scale ? edge_scale : 65 + below(2) * 118) + below(8)
                         : fill == NARROW ? 120 + below(12)
                                          : 97 + below(60));
    return (uint8_t)(fill == SPARSE && below(4) == 0 ? 0 : below(0x7F));
}

static void require_equal(const char *kernel, const kind *kd, const qg_fused_problem *p, int fill,
                          int c_fill, const float *got, const float *want) {
    for (int64_t i = 0; i < p->m * p->n; i++) {
        uint32_t x, y;
        memcpy(&x, &got[i], 4);
        memcpy(&y, &want[i], 4);
        REQUIRE(x == y,
                "%s %s %lldx%lldx%lld fill %d c %d promote %lld threads %d at (%lld, %lld): got "
                "%08x, want %08x",
                kernel, kd->name, (long long)p->m, (long long)p->n, (long long)p->k, fill, c_fill,
                (long long)p->promote, p->threads, (long long)(i / p->n), (long long)(i % p->n), x,
                y);
    }
}

enum { KEEPING = 0x1F80, FLUSHING = 0x9FC0, MODE_BITS = 0xFFC0 };

// The mode after run() called under `mode`.
static unsigned run_under(unsigned mode, const qg_fused_kernel *kernel, const qg_fused_problem *p,
                          void *space) {
#ifdef __x86_64__
    _mm_setcsr(mode);
    kernel->run(p, space);
    mode = _mm_getcsr();
    _mm_setcsr(KEEPING);
#else
    kernel->run(p, space);
#endif
    return mode;
}

static void one_case(const kind *kd, int64_t m, int64_t n, int64_t k) {
    qg_fused_problem p = {.m = m, .n = n, .k = k};
    qg_format_info fa = qg_format_describe(kd->a), fb = qg_format_describe(kd->b);
    // Rows sometimes lie further apart than they are long.
    int64_t gap = below(3) ? 0 : below(5), bytes_a = qg_format_code_bytes(&fa);
    int64_t bytes_b = qg_format_code_bytes(&fb);
    p.a.format = kd->a, p.a.stride = (k + gap) * bytes_a;
    p.b.format = kd->b, p.b.stride = (k + gap) * bytes_b;
    p.length = kd->length, p.bits = kd->bits, p.result = kd->result, p.floor = kd->floor;
    p.group = kd->group, p.scale_format = kd->scale, p.scale_block = kd->scale_block;
    p.pairs = kd->pairs;
    p.fallback = qg_fused_run_scalar;
    int fill = (int)below(FILLS), c_fill = (int)below(C_FILLS);
    void *a = malloc((size_t)(m * p.a.stride)), *b = malloc((size_t)(n * p.b.stride));
    int64_t blocks = kd->scale ? (k + kd->scale_block - 1) / kd->scale_block : 0;
    uint8_t *sa = malloc((size_t)(m * blocks + 1)), *sb = malloc((size_t)(n * blocks + 1));
    float *c = malloc((size_t)(m * n * 4));
    float *want = malloc((size_t)(m * n * 4)), *got = malloc((size_t)(m * n * 4));
    fill_codes(a, kd->a, m * (k + gap), fill);
    fill_codes(b, kd->b, n * (k + gap), fill);
    static const int64_t edges[] = {0, 65, 70, 85, 174, 183};
    edge_scale = edges[below(6)];
    for (int64_t i = 0; i < m * blocks; i++)
        sa[i] = random_scale(kd->scale, fill);
    for (int64_t i = 0; i < n * blocks; i++)
        sb[i] = random_scale(kd->scale, fill);
    fill_c(c, m * n, c_fill);
    p.a.codes = a, p.b.codes = b, p.d = want, p.c = c_fill == C_NONE ? NULL : c;
    if (kd->scale)
        p.a.scales = sa, p.b.scales = sb, p.a.scale_stride = p.b.scale_stride = blocks;
    float *row_scale = NULL, *column_scale = NULL;
    if (below(2)) {
        // Whole fused operations; kernels whose panels have 32 elements cut intervals otherwise.
        int64_t unit = kd->length * (kd->pairs ? 2 : 1);
        static const int64_t periods[] = {32, 64, 128, 256, 384, 100, 20};
        p.promote = (periods[below(7)] + unit - 1) / unit * unit;
        int64_t segments = (k + p.promote - 1) / p.promote;
        if (below(2)) {
            row_scale = malloc((size_t)(m * segments * 4));
            column_scale = malloc((size_t)(n * segments * 4));
            fill_c(row_scale, m * segments, c_fill == C_RAW ? C_RAW : C_NORMAL);
            fill_c(column_scale, n * segments, C_NORMAL);
            p.row_scale = row_scale, p.column_scale = column_scale;
        }
    }
    whole_scalar(&p);
    p.d = got;
    for (int isa = 1; isa <= 2; isa++)
        for (p.threads = 1; p.threads <= 2; p.threads++) {
            const qg_fused_kernel *kernel = qg_fused_kernel_choose(&p, (qg_isa)isa);
            if (!kernel)
                continue;
            size_t room = kernel->workspace(&p);
            char *space = aligned_alloc(64, (room + 127) / 64 * 64);
            memset(space, 0xFF, room);
            memset(space + room, 0x5A, 64);
            memset(got, 0xEE, (size_t)(m * n * 4));
            // Callers may flush subnormals: threads set their own mode. Their rounding must be
            // nearest, as everywhere.
            unsigned mode = below(2) ? FLUSHING : KEEPING;
            unsigned after = run_under(mode, kernel, &p, space);
            REQUIRE(((after ^ mode) & MODE_BITS) == 0, "%s left MXCSR %04x", kernel->name, after);
            require_equal(kernel->name, kd, &p, fill, c_fill, got, want);
            for (int i = 0; i < 64; i++)
                REQUIRE(space[room + (size_t)i] == 0x5A, "%s wrote past its workspace",
                        kernel->name);
            free(space);
        }
    free(a), free(b), free(sa), free(sb), free(c), free(want), free(got);
    free(row_scale), free(column_scale);
}

static uint8_t hex_byte(const char *text) {
    char digits[3] = {text[0], text[1], 0};
    return (uint8_t)strtoul(digits, NULL, 16);
}

// One fused operation on hex strings, as recorded on hardware or restated in the spec.
static void directed(const char *what, const kind *kd, const char *a, const char *b,
                     uint32_t c_bits, int sa, int sb, uint32_t want) {
    uint8_t x[64] = {0}, y[64] = {0}, scale_a[4], scale_b[4];
    int count = (int)strlen(a) / 2;
    for (int i = 0; i < count; i++) {
        x[i] = hex_byte(a + 2 * i);
        y[i] = hex_byte(b + 2 * i);
    }
    memset(scale_a, sa, 4), memset(scale_b, sb, 4);
    float c, d;
    memcpy(&c, &c_bits, 4);
    qg_fused_problem p = {.m = 1, .n = 1, .k = 32, .c = &c, .d = &d};
    p.a = (qg_fused_operand){.format = kd->a, .codes = x, .stride = 32};
    p.b = (qg_fused_operand){.format = kd->b, .codes = y, .stride = 32};
    p.length = kd->length, p.bits = kd->bits;
    p.result = kd->result, p.floor = kd->floor, p.scale_format = kd->scale;
    p.scale_block = kd->scale_block, p.group = kd->group, p.pairs = kd->pairs;
    p.fallback = qg_fused_run_scalar;
    if (kd->scale)
        p.a.scales = scale_a, p.b.scales = scale_b;
    for (int isa = 0; isa <= 2; isa++) {
        const qg_fused_kernel *kernel = isa ? qg_fused_kernel_choose(&p, (qg_isa)isa) : NULL;
        if (isa && !kernel)
            continue;
        if (kernel) {
            void *space = aligned_alloc(64, (kernel->workspace(&p) + 63) / 64 * 64);
            kernel->run(&p, space);
            free(space);
        } else {
            whole_scalar(&p);
        }
        uint32_t got;
        memcpy(&got, &d, 4);
        REQUIRE(got == want, "%s, %s: got %08x, want %08x", what, kernel ? kernel->name : "scalar",
                got, want);
    }
}

void fused_directed_check(void) {
    const kind *w4 = &kinds[0], *w5 = &kinds[1], *a4 = &kinds[4], *mx = &kinds[15];
    kind a5 = *a4, mx5 = *mx;
    a5.a = a5.b = mx5.a = mx5.b = QG_FORMAT_E5M2;
    directed("H200 line 14", w4, "1bbd32bc26b12b1e3e3834b5b5aa3fb8af2bb28db638359e21ba9789ab26303e",
             "b62f3ab3b5a6b1b2b727adbac331a5bb07bc3227b238b8b0b0a628ae30bc2db1", 0, 0, 0,
             0x3FE6AC00);
    directed(
        "H200 line 1307", w5, "33b93f38b43fbd3dbd2baf21b935b7b61dba3ab6b9b83ab83bba2fbab6363cac",
        "35b432b9b43c3fbcbab823ae3dbe353d40bd3c31ba38bc3e3d3c3abab832adb3", 0, 0, 0, 0xBF4B1800);
    directed("Ada line 199", a4, "3c3a3fc035b0ac38bb2ca9b639ba3e2635a139303230b8b9b2b0b5ab96393cb2",
             "35b3ada82a28b8b93138b52dbcbababa28a734a83b25b43235b82aac14bd30b6", 0x3F4C695D, 0, 0,
             0xBFC52000);
    directed("Ada line 1544", &a5,
             "bbb839a73034bcb9362b36bd30b43a313db5a53d2bbc3c3938bc38413aadba3f",
             "b7bcc1ba3c34b72a38ad38afbabc3c3638a53934373c3235b9bac1bbb027b9a9", 0x3ECB3FC0, 0, 0,
             0xBF0D3800);
    // All terms are -0, C included: -0 stays. One +0 among them: +0.
    const kind *zeros[] = {w4, a4, mx};
    for (int i = 0; i < 3; i++) {
        const char *minus = "8080808080808080808080808080808080808080808080808080808080808080";
        const char *plus = "0000000000000000000000000000000000000000000000000000000000000000";
        directed("-0", zeros[i], minus, plus, 0x80000000, 127, 127, 0x80000000);
        directed("-0 x -0", zeros[i], minus, minus, 0x80000000, 127, 127, 0);
        directed("-0 to +0", zeros[i], minus, plus, 0, 127, 127, 0);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].group && kinds[i].scale == QG_FORMAT_E8M0)
            directed("mxfp4 overflow", &kinds[i], "02", "02", 0x7F7FFFFF, 179, 179, 0x7F800000);
    directed("mx overflow", mx, "38", "38", 0x7F7FFFFF, 179, 179, 0x7F800000);
    directed("mx no overflow", mx, "38", "38", 0x7F7FFFFE, 179, 179, 0x7F7FFFFF);
    directed("mx overflow below 0", mx, "38", "B8", 0xFF7FFFFF, 179, 179, 0xFF800000);
    directed("mx 1", mx, "384044", "384044", 0x3F000000, 127, 127, 0x41680000);
    directed("mx 2", mx, "3801", "3801", 0, 127, 127, 0x3F800020);
    directed("mx 3", mx, "540701", "5C0101", 0, 127, 127, 0x43900001);
    directed("mx 4", mx, "590701", "580101", 0, 127, 127, 0x43900000);
    directed("mx 5", &mx5, "3C08", "3C0C", 0, 127, 127, 0x3F800000);
    directed("mx 6", mx, "01", "38", 0, 0x07, 127, 0x00100000);
    directed("mx 7", mx, "81", "38", 0, 0x00, 0x6E, 0x80000000);
    directed("mx 8", mx, "82", "02", 0, 0x00, 0x6E, 0x00000000);
    directed("mx 9", mx, "38", "38", 0x4B800000, 127, 127, 0x4B800000);
    directed("mx NaN scale", mx, "38", "38", 0, 0xFF, 127, 0x7FFFFFFF);
    directed("mx NaN", mx, "7F", "38", 0, 127, 127, 0x7FFFFFFF);
    directed("mx Inf x 0", &mx5, "7C", "00", 0, 127, 127, 0x7FFFFFFF);
    directed("mx Inf - Inf", &mx5, "7C7C", "3CBC", 0, 127, 127, 0x7FFFFFFF);
    directed("mx Inf", &mx5, "7C", "3C", 0, 127, 127, 0x7F800000);
}

void fused_random_check(size_t which, int cases, int64_t most_k) {
    const kind *kd = &kinds[which];
    state = 0x9E3779B97F4A7C15ull ^ (which + 1) * 0xD1342543DE82EF95ull;
    for (int i = 0; i < cases; i++) {
        // A third small in every dimension, a third with one of them 1, the rest anything.
        int64_t m = 1 + below(67), n = 1 + below(65), k = 1 + below(most_k);
        if (i % 3 == 0)
            m = 1 + below(6), n = 1 + below(20), k = 1 + below(40);
        else if (i % 3 == 1)
            *(below(2) ? &m : &n) = 1;
        one_case(kd, m, n, k);
    }
    one_case(kd, 1, 1, 1);
    one_case(kd, 67, 65, most_k);
}

void fused_large_check(size_t which) { one_case(&kinds[which], 201, 130, 577); }

const char *fused_kind_name(size_t i) {
    return i < sizeof kinds / sizeof *kinds ? kinds[i].name : NULL;
}
