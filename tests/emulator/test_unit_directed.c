// Directed dot products: what recorded and random operands cannot decide. Published vectors, the
// cross-architecture signature, each parameter of each fused row, floors, specials, zeros.
// Values beyond the published ones follow from the definitions and were checked by hand.
#include <require.h>
#include <run_suite.h>
#include <slow_unit.h>

#include <qg_codec.h>
#include <qg_format_name.h>
#include <qg_unit.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 128 };

// --------------------------------------------------------------------------------- vectors as text

typedef struct vector {
    const char *unit, *a_format, *b_format, *accumulator;
    const char *a, *b; // codes, each in the digits of its format; missing elements are 0
    const char *scale, *sa, *sb;
    uint64_t c, d;
} vector;

static qg_format format_of(const char *name) {
    qg_format format = 0;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s", qg_detail());
    return format;
}

static int read_codes(const char *text, qg_format format, uint64_t *codes) {
    qg_format_info info = qg_format_describe(format);
    size_t digits = 2 * (size_t)qg_format_code_bytes(&info);
    int count = 0;
    for (; *text; text += digits) {
        char word[17] = {0};
        memcpy(word, text, digits);
        codes[count++] = strtoull(word, NULL, 16);
    }
    return count;
}

static const qg_unit_row *row_of(const char *name, const char *a, const char *b,
                                 const char *accumulator, const char *scale) {
    qg_unit unit;
    ck_assert_msg(qg_unit_parse(name, &unit) == QG_OK, "%s", qg_detail());
    const qg_unit_row *row =
        qg_unit_row_find(unit.id, format_of(a), format_of(b), format_of(accumulator),
                         scale ? (int32_t)format_of(scale) : QG_UNIT_NO_SCALE);
    ck_assert_msg(row != NULL, "%s has no row for %s x %s", name, a, b);
    return row;
}

static void check_vector(const vector *v) {
    const qg_unit_row *row = row_of(v->unit, v->a_format, v->b_format, v->accumulator, v->scale);
    uint64_t a[LONGEST] = {0}, b[LONGEST] = {0}, sa[8] = {0}, sb[8] = {0}, got = 0;
    qg_unit_dot_input in = {.a_format = format_of(v->a_format),
                            .b_format = format_of(v->b_format),
                            .a = a,
                            .b = b,
                            .sa = sa,
                            .sb = sb,
                            .scale_block = row->scale_block,
                            .c = v->c};
    int count_a = read_codes(v->a, in.a_format, a), count_b = read_codes(v->b, in.b_format, b);
    in.k = count_a > count_b ? count_a : count_b;
    if (in.k < row->k)
        in.k = row->k;
    if (v->scale) {
        read_codes(v->sa, format_of(v->scale), sa);
        read_codes(v->sb, format_of(v->scale), sb);
    }
    ck_assert_msg(qg_unit_dot(row, &in, &got) == QG_OK, "%s", qg_detail());
    ck_assert_msg(got == v->d, "%s %s x %s: a %s b %s c %" PRIx64 ": %" PRIx64 ", not %" PRIx64,
                  v->unit, v->a_format, v->b_format, v->a, v->b, v->c, got, v->d);
}

#define CHECK_ALL(list)                                                                            \
    for (size_t i_ = 0; i_ < sizeof(list) / sizeof((list)[0]); i_++)                               \
    check_vector(&(list)[i_])

#define E4M3_1                                                                                     \
    "3738aa3bb32a383e3635b82b0f293835b83703baaea63a3d9226b0afb333422d",                            \
        "31b22d29bf2fbcb91bb3b540874121aab73fb231ad9db83a3d3b9b86bcac1283"

// One vector per row.
// clang-format off
static const vector recorded[] = {
    {"hopper_wgmma", "e4m3", "e4m3", "fp32",
     "1bbd32bc26b12b1e3e3834b5b5aa3fb8af2bb28db638359e21ba9789ab26303e",
     "b62f3ab3b5a6b1b2b727adbac331a5bb07bc3227b238b8b0b0a628ae30bc2db1", NULL, NULL, NULL, 0,
     0x3FE6AC00},
    {"hopper_wgmma", "e5m2", "e5m2", "fp32",
     "33b93f38b43fbd3dbd2baf21b935b7b61dba3ab6b9b83ab83bba2fbab6363cac",
     "35b432b9b43c3fbcbab823ae3dbe353d40bd3c31ba38bc3e3d3c3abab832adb3", NULL, NULL, NULL, 0,
     0xBF4B1800},
    {"ada_mma", "e4m3", "e4m3", "fp32",
     "3c3a3fc035b0ac38bb2ca9b639ba3e2635a139303230b8b9b2b0b5ab96393cb2",
     "35b3ada82a28b8b93138b52dbcbababa28a734a83b25b43235b82aac14bd30b6", NULL, NULL, NULL,
     0x3F4C695D, 0xBFC52000},
    {"ada_mma", "e5m2", "e5m2", "fp32",
     "bbb839a73034bcb9362b36bd30b43a313db5a53d2bbc3c3938bc38413aadba3f",
     "b7bcc1ba3c34b72a38ad38afbabc3c3638a53934373c3235b9bac1bbb027b9a9", NULL, NULL, NULL,
     0x3ECB3FC0, 0xBF0D3800},
    {"hopper_wgmma", "e4m3", "e4m3", "fp32", E4M3_1, NULL, NULL, NULL, 0, 0x40727C00},
    {"blackwell_mma_fp8", "e4m3", "e4m3", "fp32", E4M3_1, NULL, NULL, NULL, 0x3F66B81C, 0x4096153C},
    {"blackwell_mma_fp8", "e4m3", "e4m3", "fp16", E4M3_1, NULL, NULL, NULL, 0x3B36, 0x44B1},
    {"hopper_mma_fp8", "e4m3", "e4m3", "fp16", E4M3_1, NULL, NULL, NULL, 0x3623, 0x442D},
    {"hopper_mma_fp8", "e4m3", "e4m3", "fp16", E4M3_1, NULL, NULL, NULL, 0x390A, 0x446C}
};

#define MX(A, B, FORMAT, SA, SB, C, D)                                                             \
    {"blackwell_mx", FORMAT, FORMAT, "fp32", A, B, "e8m0", SA, SB, C, D}
static const vector mxfp8[] = {
    MX("384044", "384044", "e4m3", "7f", "7f", 0x3F000000, 0x41680000),
    MX("3801", "3801", "e4m3", "7f", "7f", 0, 0x3F800020),
    MX("7801", "7801", "e4m3", "7f", "7f", 0, 0x47800000),
    MX("540701", "5c0101", "e4m3", "7f", "7f", 0, 0x43900001),
    MX("590701", "580101", "e4m3", "7f", "7f", 0, 0x43900000), // the same product one bit apart
    MX("3c08", "3c0c", "e5m2", "7f", "7f", 0, 0x3F800000),
    MX("01", "38", "e4m3", "07", "7f", 0, 0x00100000),
    MX("81", "38", "e4m3", "00", "6e", 0, 0x80000000),
    MX("82", "02", "e4m3", "00", "6e", 0, 0x00000000), // below the floor
    MX("38", "38", "e4m3", "7f", "7f", 0x4B800000, 0x4B800000),
    MX("38", "38", "e4m3", "ff", "7f", 0, 0x7FFFFFFF),
    MX("00", "00", "e4m3", "7f", "ff", 0, 0x7FFFFFFF), // also over zeros
    MX("7f", "38", "e4m3", "7f", "7f", 0, 0x7FFFFFFF),
    MX("7c", "00", "e5m2", "7f", "7f", 0, 0x7FFFFFFF),
    MX("7cfc", "3c3c", "e5m2", "7f", "7f", 0, 0x7FFFFFFF),
    MX("7c", "3c", "e5m2", "00", "00", 0, 0x7F800000),
    MX("38", "38", "e4m3", "fe", "fe", 0, 0x7F800000), // 2^254
    MX("b8", "38", "e4m3", "fe", "fe", 0, 0xFF800000),
    MX("00", "38", "e4m3", "fe", "fe", 0x00000001, 0x00000001), // a zero product stays zero
    // The floor, -133: 2^-149 in pieces, the last of them of 2^-158 (kept) or 2^-159 (not).
    MX("27170404", "20100404", "e4m3", "00", "6e", 0, 0x00000001),
    MX("271704040404", "201002020202", "e4m3", "00", "6e", 0, 0x00000000)
};

// Signature of Khattak and Mikaitis, Eq. 10: exact -0.875.
#define S(...) SIGNATURE(__VA_ARGS__)
#define SIGNATURE(UNIT, FORMAT, A, B, D)                                                           \
    {UNIT, FORMAT, FORMAT, "fp32", A, B, NULL, NULL, NULL, 0x4B000000, D}
#define S_FP16     "f000b800b400b000", "64003c003c003c00"
#define S_BF16     "c600bf00be80be00", "44803f803f803f80"
#define S_TF32     "c6000000bf000000be800000be000000", "448000003f8000003f8000003f800000"
#define S_E5M2     "f0b8b4b0", "643c3c3c"
#define S_BF8      "f4bcb8b4", "68404040"
#define MINUS_0875 0xBF600000
#define MINUS_075  0xBF400000
#define MINUS_05   0xBF000000
#define MINUS_0375 0xBEC00000
#define MINUS_1    0xBF800000
static const vector signatures[] = {
    S("volta_mma", "fp16", S_FP16, 0),
    S("turing_mma", "fp16", S_FP16, MINUS_05),
    S("ampere_mma", "fp16", S_FP16, MINUS_05),
    S("ampere_mma", "bf16", S_BF16, MINUS_05),
    S("ampere_mma", "tf32", S_TF32, MINUS_05),
    S("ada_mma", "fp16", S_FP16, MINUS_05),
    S("ada_mma", "bf16", S_BF16, MINUS_05),
    S("ada_mma", "tf32", S_TF32, MINUS_05),
    S("ada_mma", "e5m2", S_E5M2, 0),
    S("hopper_mma", "fp16", S_FP16, MINUS_075),
    S("hopper_mma", "bf16", S_BF16, MINUS_075),
    S("hopper_mma", "tf32", S_TF32, MINUS_075),
    S("hopper_mma_fp8", "e5m2", S_E5M2, 0),
    S("hopper_wgmma", "fp16", S_FP16, MINUS_075),
    S("hopper_wgmma", "bf16", S_BF16, MINUS_075),
    S("hopper_wgmma", "tf32", S_TF32, MINUS_075),
    S("hopper_wgmma", "e5m2", S_E5M2, 0),
    S("blackwell_mma", "fp16", S_FP16, MINUS_075),
    S("blackwell_mma", "bf16", S_BF16, MINUS_075),
    S("blackwell_mma", "tf32", S_TF32, MINUS_075),
    S("blackwell_mma_fp8", "e5m2", S_E5M2, 0),
    S("blackwell_tcgen05", "fp16", S_FP16, MINUS_075),
    S("blackwell_tcgen05", "bf16", S_BF16, MINUS_075),
    S("blackwell_tcgen05", "tf32", S_TF32, MINUS_075),
    S("blackwell_tcgen05", "e5m2", S_E5M2, MINUS_075),
    S("rtx_blackwell_mma", "e5m2", S_E5M2, MINUS_075),
    S("cdna1_mfma", "fp16", S_FP16, MINUS_0875),
    S("cdna1_mfma", "bf16", S_BF16, MINUS_0875),
    S("cdna2_mfma", "bf16", S_BF16, MINUS_0375),
    S("cdna2_mfma", "fp16", S_FP16, 0),
    S("cdna2_mfma_1k", "bf16", S_BF16, 0),
    S("cdna3_mfma", "fp16", S_FP16, MINUS_05),
    S("cdna3_mfma", "bf16", S_BF16, MINUS_05),
    S("cdna3_mfma", "e5m2fnuz", S_BF8, MINUS_1),
    {"blackwell_mx", "e5m2", "e5m2", "fp32", S_E5M2, "e8m0", "7f", "7f", 0x4B000000, MINUS_075},
    // Group 0 is 16 times -4 * 4, scaled by 2^8 and 2^7; the others by 1.
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32",
     "0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0e0a0a09",
     "06060606060606060606060606060606020101", "ue4m3", "78383838", "70303838", 0x4B000000,
     MINUS_0875},
    // A group that cancels still aligns, by its scales alone: at 2^10 it keeps 2^-25 and not 2^-26.
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32",
     "020a000000000000000000000000000002", "0202000000000000000000000000000002", "e8m0", "8472",
     "8473", 0, 0x33000000},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32",
     "020a000000000000000000000000000002", "0202000000000000000000000000000002", "e8m0", "8472",
     "8472", 0, 0x00000000},
    {"hopper_mma", "fp64", "fp64", "fp64",
     "c0c0000000000000bfe0000000000000bfd0000000000000bfc0000000000000",
     "40900000000000003ff00000000000003ff00000000000003ff0000000000000", NULL, NULL, NULL,
     0x4160000000000000, 0xBFEC000000000000}
};

#define CDNA3(FORMAT, A, B, C, D)                                                                  \
    {"cdna3_mfma", FORMAT, FORMAT, "fp32", A, B, NULL, NULL, NULL, C, D}
static const vector amd[] = {
    CDNA3("fp16", "2c0004000010", "2c0010000c00", 0xBF800000, 0xBF7EFFFF),
    CDNA3("fp16", "2c0004000010", "2c0014000c00", 0x3F800000, 0x3F808000),
    CDNA3("fp16", "8e000010", "0c000010", 0x3F800000, 0x3F7FFFFE), // T rounded down, to a tie
    CDNA3("fp16", "3c00", "3c00", 0xAB800000, 0x3F7FFFFF),
    CDNA3("fp16", "3c00", "3c00", 0x2B800000, 0x3F800000),
    CDNA3("e4m3fnuz", "40", "40", 0xB3000000, 0x3F7FFFFF),
    CDNA3("e4m3fnuz", "40", "40", 0xB2800000, 0x3F800000),
    CDNA3("e5m2fnuz", "7084", "7038", 0, 0x4B7FFFFF),
    CDNA3("e5m2fnuz", "700084", "700038", 0, 0x4B800000),
    // F: 1 - 1 + 2^-24 is kept, 2^-25 is not; the same for the two halves of GTR.
    CDNA3("fp16", "3c00bc000c00", "3c003c000c00", 0, 0x33800000),
    CDNA3("fp16", "3c00bc000c00", "3c003c000800", 0, 0x00000000),
    CDNA3("e5m2fnuz", "4000c00010", "4000400010", 0, 0x33800000),
    CDNA3("e5m2fnuz", "4000c00010", "400040000c", 0, 0x00000000),
    CDNA3("bf16", "5f80", "5f80", 0xFF800000, 0x7FFFFFFF), // 2^128 is infinite
    CDNA3("bf16", "5f80df80", "5f005f00", 0x3F800000, 0), // 2^127 - 2^127, C rounded down
    CDNA3("e4m3fnuz", "80", "40", 0, 0x7FFFFFFF),
    CDNA3("e5m2fnuz", "70", "70", 0x7F800000, 0x7F800000), // C is not dropped
    CDNA3("e5m2fnuz", "70", "70", 0x7FC00000, 0x7FFFFFFF),
    CDNA3("tf32", "3f800fff", "3f800000", 0, 0x3F800000), // operands are truncated
    CDNA3("tf32", "7f800001", "3f800000", 0, 0x7FFFFFFF), // but NaN is seen before
    CDNA3("fp16", "80000000800080008000800080008000", "3c003c003c003c003c003c003c003c00",
          0x80000000, 0x00000000),
    CDNA3("fp16",
          "80008000800080008000800080008000"
          "80008000800080008000800080008000",
          "3c003c003c003c003c003c003c003c00"
          "3c003c003c003c003c003c003c003c00",
          0x80000000, 0x80000000),
    // CDNA1: exact, one rounding; an exact zero is +0.
    {"cdna1_mfma", "fp16", "fp16", "fp32", "3c000001", "3c000001", NULL, NULL, NULL, 0x33800000,
     0x3F800001},
    {"cdna1_mfma", "fp16", "fp16", "fp32", "3c00", "3c00", NULL, NULL, NULL, 0x33800000,
     0x3F800000},
    // 2.25 and 2^-26 and -2.25 within one sum of 4 or 2 products, and in two.
    {"cdna1_mfma", "fp16", "fp16", "fp32", "3e0008000000be00", "3e00080000003e00", NULL, NULL, NULL,
     0, 0x32800000},
    {"cdna1_mfma", "fp16", "fp16", "fp32", "3e00080000000000be00", "3e000800000000003e00", NULL,
     NULL, NULL, 0, 0x00000000},
    {"cdna1_mfma", "bf16", "bf16", "fp32", "39003fc0", "39003fc0", NULL, NULL, NULL, 0xC0100000,
     0x32800000},
    {"cdna1_mfma", "bf16", "bf16", "fp32", "3fc03900bfc0", "3fc039003fc0", NULL, NULL, NULL, 0,
     0x00000000},
    {"cdna1_mfma", "bf16", "bf16", "fp32", "8000800080008000", "3f803f803f803f80", NULL, NULL, NULL,
     0x80000000, 0x00000000},
    // CDNA2: subnormals of a, b, C and of every result are flushed, C to +0.
    {"cdna2_mfma", "fp16", "fp16", "fp32", "03ff", "7bff", NULL, NULL, NULL, 0, 0x00000000},
    {"cdna2_mfma", "fp16", "fp16", "fp32", "0400", "3c00", NULL, NULL, NULL, 0, 0x38800000},
    {"cdna2_mfma", "bf16", "bf16", "fp32", "0080", "3f00", NULL, NULL, NULL, 0, 0x00000000},
    {"cdna2_mfma", "bf16", "bf16", "fp32", "0000", "0000", NULL, NULL, NULL, 0x80000001,
     0x00000000},
    {"cdna2_mfma", "bf16", "bf16", "fp32", "8001800180018001", "3f803f803f803f80", NULL, NULL, NULL,
     0x80000000, 0x00000000},
    {"cdna2_mfma", "bf16", "bf16", "fp32", "8000800080008000", "3f803f803f803f80", NULL, NULL, NULL,
     0x80000001, 0x00000000},
    {"cdna2_mfma_1k", "bf16", "bf16", "fp32", "80808080808080808080808080808080",
     "3f003f003f003f003f003f003f003f00", NULL, NULL, NULL, 0x80000000, 0x80000000},
    {"cdna2_mfma", "bf16", "bf16", "fp32", "00810080", "3f803f80", NULL, NULL, NULL, 0x80FF0000,
     0x00000000}
};

#define T32(UNIT, FORMAT, A, B, C, D)                                                              \
    {UNIT, FORMAT, FORMAT, "fp32", A, B, NULL, NULL, NULL, C, D}
#define T16(UNIT, FORMAT, A, B, C, D)                                                              \
    {UNIT, FORMAT, FORMAT, "fp16", A, B, NULL, NULL, NULL, C, D}
static const vector specials[] = {
    T32("hopper_wgmma", "e4m3", "7f", "00", 0, 0x7FFFFFFF),
    T32("hopper_wgmma", "e4m3", "00", "ff", 0, 0x7FFFFFFF),
    T32("hopper_wgmma", "e5m2", "7c", "80", 0, 0x7FFFFFFF), // Inf * 0
    T32("hopper_wgmma", "e5m2", "7cfc", "3c3c", 0, 0x7FFFFFFF), // Inf - Inf
    T32("hopper_wgmma", "e5m2", "7c7cfcfc", "3cbc3cbc", 0, 0x7FFFFFFF),
    T32("hopper_wgmma", "e5m2", "7c", "3c", 0xFF800000, 0x7FFFFFFF),
    T32("hopper_wgmma", "e5m2", "7c", "bc", 0x7F000000, 0xFF800000),
    T32("hopper_wgmma", "e4m3", "7e", "7e", 0x7F800001, 0x7FFFFFFF),
    T32("hopper_wgmma", "e4m3", "7e", "7e", 0xFF800000, 0xFF800000),
    T16("hopper_wgmma", "e5m2", "7d", "3c", 0, 0x7FFF),
    T16("hopper_wgmma", "e5m2", "fc", "3c", 0, 0xFC00),
    T16("ada_mma", "e4m3", "7e", "7e", 0, 0x7C00), // 448 * 448 overflows
    T16("hopper_mma", "fp16", "7bff", "3c00", 0x4BFF, 0x7BFF), // 65504 + 15.99: below the tie
    T16("hopper_mma", "fp16", "7bff", "3c00", 0x4C00, 0x7C00), // 65504 + 16: the tie
    T32("hopper_mma", "bf16", "7f7f", "7f7f", 0, 0x7F800000),
    T32("hopper_mma", "bf16", "7f7fff7f", "7f7f7f7f", 0x3F800000, 0x00000000), // no product clamps
    T32("hopper_mma", "bf16", "5f7f5f7f", "5f805f80", 0, 0x7F800000),
    T32("ampere_mma", "tf32", "3f801fff", "3f800000", 0, 0x3F800000), // low 13 bits are dropped
    T32("ampere_mma", "tf32", "7f800001", "3f800000", 0, 0x7FFFFFFF), // but NaN is seen before
    T32("hopper_mma_fp8", "e4m3", "7f", "38", 0, 0x7FFFFFFF),
    T32("hopper_mma_fp8", "e5m2", "7c0000", "3c0000", 0xFF800000, 0x7FFFFFFF),
    T16("hopper_mma_fp8", "e5m2", "7c0000fc", "3c00003c", 0, 0x7FFF),
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "ue4m3", "7f383838", "38383838", 0,
     0x7FFFFFFF},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "ue4m3", "38383838", "383838ff", 0,
     0x7FFFFFFF},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "ue4m3", "b8383838", "38383838", 0,
     0x3F800000},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "e8m0", "7f7f7fff", "7f7f7f7f", 0,
     0x7FFFFFFF},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "e8m0", "7f7f7f7f", "7f7f7f7f",
     0xFF800000, 0xFF800000},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32", "02", "02", "e8m0", "fe7f7f7f", "fe7f7f7f", 0,
     0x7F800000}
};

#define ALL_MINUS_ZERO                                                                             \
    "80808080808080808080808080808080"                                                             \
    "80808080808080808080808080808080"
#define ALL_ONE                                                                                    \
    "38383838383838383838383838383838"                                                             \
    "38383838383838383838383838383838"
static const vector zeros[] = {
    T32("hopper_wgmma", "e4m3", ALL_MINUS_ZERO, ALL_ONE, 0x80000000, 0x80000000),
    T32("hopper_wgmma", "e4m3", ALL_MINUS_ZERO, ALL_ONE, 0x00000000, 0x00000000),
    T32("hopper_wgmma", "e4m3", "80", "38", 0x80000000, 0x00000000),
    T32("hopper_wgmma", "e4m3", "38b8", "3838", 0x80000000, 0x00000000),
    T32("hopper_wgmma", "e4m3", ALL_MINUS_ZERO, ALL_ONE, 0x80000001, 0x80000000), // truncated
    T32("hopper_wgmma", "e4m3", "00", "00", 0x00000001, 0x00000000), // 13 bits below 2^-126
    T32("hopper_wgmma", "e4m3", "00", "00", 0x000007ff, 0x00000400),
    T32("hopper_wgmma", "e4m3", "00", "00", 0x3F8007ff, 0x3F800400),
    T32("blackwell_tcgen05", "e4m3", "00", "00", 0x00000001, 0x00000001),
    // A subnormal C has the exponent -126: quantum 2^-151, products of 2^-152 are cut.
    T32("hopper_mma", "bf16", "1a401a00", "1a001980", 0x00400000, 0x00400001),
    T32("hopper_mma", "bf16", "1a4019801980", "1a0019801980", 0x00400000, 0x00400000),
    T32("hopper_mma_fp8", "e4m3", ALL_MINUS_ZERO, ALL_ONE, 0x80000000,
        0x00000000), // t starts at +0
    T16("hopper_mma", "fp16", "0001", "0001", 0, 0x0000),
    T16("hopper_mma", "fp16", "8001", "3800", 0, 0x8000) // -2^-25: the tie goes to -0
};

// The exponent that zero terms contribute, seen in sums that reach a boundary of the result only if
// the smallest terms are kept: on the floor's quantum, and half of it.
#define F25(...)                       FLOOR25(__VA_ARGS__)
#define FLOOR25(UNIT, FORMAT, A, B, D) T32(UNIT, FORMAT, A, B, 0, D)
#define BF16_KEPT                      "1a7f18001800", "1a0018001800"
#define BF16_LOST                      "1a7f1780178017801780", "1a001800180018001800"
#define TF32_KEPT                      "1a7f00001800000018000000", "1a0000001800000018000000"
#define TF32_LOST                                                                                  \
    "1a7f000017800000178000001780000017800000", "1a00000018000000180000001800000018000000"
static const vector floors[] = {
  // FP16 results: 2^-25 is the tie between 0 and 2^-24; 2^(floor - F) lifts it, half of that not.
    T16("volta_mma", "fp16", "0c000001", "08000020", 0, 0x0001),
    T16("volta_mma", "fp16", "0c000001", "08000010", 0, 0x0000),
    T16("turing_mma", "fp16", "0c000001", "08000008", 0, 0x0001),
    T16("turing_mma", "fp16", "0c000001", "08000004", 0, 0x0000),
    T16("ampere_mma", "fp16", "0c000001", "08000008", 0, 0x0001),
    T16("ampere_mma", "fp16", "0c000001", "08000004", 0, 0x0000),
    T16("ada_mma", "fp16", "0c000001", "08000008", 0, 0x0001),
    T16("ada_mma", "fp16", "0c000001", "08000004", 0, 0x0000),
    T16("hopper_mma", "fp16", "0c000001", "08000002", 0, 0x0001),
    T16("hopper_mma", "fp16", "0c000001", "08000001", 0, 0x0000),
    T16("blackwell_mma", "fp16", "0c000001", "08000002", 0, 0x0001),
    T16("blackwell_mma", "fp16", "0c000001", "08000001", 0, 0x0000),
    T16("hopper_wgmma", "fp16", "0c000001", "08000001", 0, 0x0001),
    T16("blackwell_tcgen05", "fp16", "0c000001", "08000001", 0, 0x0001),
    // 2^-149 in pieces. F = 24, floor -132, quantum 2^-156; F = 25, floor -133, quantum 2^-158.
    T32("ampere_mma", "bf16", "1a7e1880", "1a001880", 0, 0x00000001),
    T32("ampere_mma", "bf16", "1a7e18001800", "1a0018801880", 0, 0x00000000),
    T32("ada_mma", "bf16", "1a7e1880", "1a001880", 0, 0x00000001),
    T32("ada_mma", "bf16", "1a7e18001800", "1a0018801880", 0, 0x00000000),
    T32("ampere_mma", "tf32", "1a7e000018800000", "1a00000018800000", 0, 0x00000001),
    T32("ampere_mma", "tf32", "1a7e00001800000018000000", "1a0000001880000018800000", 0,
        0x00000000),
    T32("ada_mma", "tf32", "1a7e000018800000", "1a00000018800000", 0, 0x00000001),
    T32("ada_mma", "tf32", "1a7e00001800000018000000", "1a0000001880000018800000", 0, 0x00000000),
    F25("hopper_mma", "bf16", BF16_KEPT, 1),
    F25("hopper_mma", "bf16", BF16_LOST, 0),
    F25("hopper_mma", "tf32", TF32_KEPT, 1),
    F25("hopper_mma", "tf32", TF32_LOST, 0),
    F25("hopper_wgmma", "bf16", BF16_KEPT, 1),
    F25("hopper_wgmma", "bf16", BF16_LOST, 0),
    F25("hopper_wgmma", "tf32", TF32_KEPT, 1),
    F25("hopper_wgmma", "tf32", TF32_LOST, 0),
    F25("blackwell_mma", "bf16", BF16_KEPT, 1),
    F25("blackwell_mma", "bf16", BF16_LOST, 0),
    F25("blackwell_mma", "tf32", TF32_KEPT, 1),
    F25("blackwell_mma", "tf32", TF32_LOST, 0),
    F25("blackwell_tcgen05", "bf16", BF16_KEPT, 1),
    F25("blackwell_tcgen05", "bf16", BF16_LOST, 0),
    F25("blackwell_tcgen05", "tf32", TF32_KEPT, 1),
    F25("blackwell_tcgen05", "tf32", TF32_LOST, 0),
    // F = 35, floor -139, quantum 2^-174: 2^-149 in groups; the last one of 2^-174, or of 2^-175.
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32",
     "0707070605030000000000000000000007070706050300000000000000000000"
     "0707050100000000000000000000000001000000000000000000000000000000",
     "0707070602010000000000000000000007070706020100000000000000000000"
     "0602010100000000000000000000000001000000000000000000000000000000", "e8m0", "312c2929",
     "312d2929", 0, 1},
    {"blackwell_mxf4", "e2m1", "e2m1", "fp32",
     "0707070605030000000000000000000007070706050300000000000000000000"
     "0707050300000000000000000000000001000000000000000000000000000000",
     "0707070602010000000000000000000007070706020100000000000000000000"
     "0706020100000000000000000000000001000000000000000000000000000000", "e8m0", "312c2828",
     "312d2929", 0, 0}
};
// clang-format on

START_TEST(recorded_lines) { CHECK_ALL(recorded); }
END_TEST
START_TEST(mxfp8_vectors) { CHECK_ALL(mxfp8); }
END_TEST
START_TEST(signature_of_every_architecture) { CHECK_ALL(signatures); }
END_TEST
START_TEST(amd_vectors) { CHECK_ALL(amd); }
END_TEST
START_TEST(nan_and_infinities) { CHECK_ALL(specials); }
END_TEST
START_TEST(signed_zeros_and_subnormals) { CHECK_ALL(zeros); }
END_TEST
START_TEST(floor_exponents) { CHECK_ALL(floors); }
END_TEST

// ---------------------------------------------------------------- each parameter of each fused row

// Products of one row's formats: 2.25 * 2^BIG and powers of two, placed by element.
enum { BIG = 10 };

typedef struct probe {
    const slow_unit *published; // the parameters, from a table of the tests' own
    const qg_unit_row *row;
    qg_unit_dot_input in;
    uint64_t a[LONGEST], b[LONGEST], sa[8], sb[8];
} probe;

static uint64_t encode(qg_format format, double x) {
    static const qg_conversion exact = {
        {QG_ROUND_RTZ, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    qg_format_info info = qg_format_describe(format);
    uint64_t code = qg_encode(&info, x, &exact, 0);
    ck_assert_msg(qg_decode(&info, code) == x, "%a is no value of the format", x);
    return code;
}

// An operand format whose exponents reach from -12 to 10, narrow ones paired with a wide one.
static void start_probe(probe *p, const slow_unit *published) {
    static const qg_format wide[] = {QG_FORMAT_FP16, QG_FORMAT_BF16, QG_FORMAT_TF32, QG_FORMAT_E5M2,
                                     QG_FORMAT_E5M2FNUZ};
    const char *operand = published->operands[0];
    const qg_unit_row *row =
        row_of(published->unit, operand, operand, published->accumulator, published->scale);
    *p = (probe){.published = published, .row = row};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (qg_unit_row_takes(row, wide[i]))
            p->in.a_format = p->in.b_format = wide[i];
    if (p->in.a_format == QG_FORMAT_E5M2)
        p->in.a_format = QG_FORMAT_E4M3;
    if (p->in.a_format == QG_FORMAT_E5M2FNUZ)
        p->in.a_format = QG_FORMAT_E4M3FNUZ;
    for (int i = 0; i < 8; i++)
        p->sa[i] = p->sb[i] = 127;
    p->in.a = p->a;
    p->in.b = p->b;
    p->in.sa = p->sa;
    p->in.sb = p->sb;
    p->in.scale_block = row->scale_block;
    p->in.k = 2 * published->k;
}

// Where element i of the order of summation lies: the FP16 unit takes pairs of FP8 by turns, and
// GTR-FDPA aligns even and odd elements apart (the first three are put on even places).
static int place_of(const qg_unit_row *row, int i) {
    if (row->model == QG_MODEL_GTR)
        return i < 3 ? 2 * i : i;
    if (row->model != QG_MODEL_PAIRS)
        return i;
    return i / 32 * 32 + i % 32 / 16 * 2 + i % 16 / 2 * 4 + i % 2;
}

static void put_big(probe *p, int i, double sign) {
    int place = place_of(p->row, i);
    p->a[place] = encode(p->in.a_format, sign * 0x1.8p5);
    p->b[place] = encode(p->in.b_format, 0x1.8p5);
}

// +-2^exponent, relative to BIG.
static void put_power(probe *p, int i, double sign, int exponent) {
    int place = place_of(p->row, i);
    int e = exponent + BIG, of_a = e < -6 ? -6 : e > 0 ? e / 2 : e;
    p->a[place] = encode(p->in.a_format, sign * qg_double_pow2(of_a));
    p->b[place] = encode(p->in.b_format, qg_double_pow2(e - of_a));
}

static double run_probe(probe *p) {
    uint64_t d = 0;
    qg_format_info info = qg_format_describe(p->row->accumulator);
    ck_assert_msg(qg_unit_dot(p->row, &p->in, &d) == QG_OK, "%s", qg_detail());
    return qg_decode(&info, d) * qg_double_pow2(-BIG);
}

static void expect(probe *p, double wanted, const char *what) {
    double got = run_probe(p);
    REQUIRE(got == wanted, "%s, %s: %a, not %a", qg_unit_listed(p->row->unit), what, got, wanted);
}

// The i-th row, if it aligns products one by one.
static bool probe_at(int i, probe *p) {
    const slow_unit *u = slow_unit_at(i);
    if (!strcmp(u->model, "gst") || !strcmp(u->model, "e") || !strcmp(u->model, "ftz"))
        return false;
    start_probe(p, u);
    return true;
}

static bool is_rho(const probe *p, const char *rho) { return !strcmp(p->published->rho, rho); }

// Terms of 2^(e - F) survive beside one of exponent e, terms of half that do not. 2.25 counts with
// the exponent of 1: products are not renormalised.
START_TEST(fraction_bits_of_every_row) {
    probe p;
    for (int i = 0; slow_unit_at(i); i++) {
        if (!probe_at(i, &p))
            continue;
        const slow_unit *u = p.published;
        put_big(&p, 0, 1);
        put_power(&p, 1, 1, -u->fraction);
        put_big(&p, 2, -1);
        expect(&p, qg_double_pow2(-u->fraction), "F");
        put_power(&p, 1, 1, -u->fraction - 1);
        expect(&p, 0.0, "F + 1");
        put_power(&p, 1, -1, -u->fraction - 1);
        expect(&p, 0.0, "truncation of negative terms");
    }
}
END_TEST

// 2.25 + 2^-F does not survive the conversion: it shows where a fused operation ends.
START_TEST(length_of_every_row) {
    probe p;
    for (int i = 0; slow_unit_at(i); i++) {
        if (!probe_at(i, &p))
            continue;
        const slow_unit *u = p.published;
        put_big(&p, 0, 1);
        put_power(&p, 1, 1, -u->fraction);
        put_big(&p, u->length / 2, -1);
        expect(&p, qg_double_pow2(-u->fraction), "within L");
        start_probe(&p, u);
        put_big(&p, 0, 1);
        put_power(&p, 1, 1, -u->fraction);
        put_big(&p, u->length, -1);
        // C of the FP16 unit is added after both halves; in all others it is a term of the next.
        expect(&p, 0.0, "beyond L");
    }
}
END_TEST

// 2.25 and one and a half of the last place of the result.
START_TEST(conversion_of_every_row) {
    probe p;
    for (int i = 0; slow_unit_at(i); i++) {
        if (!probe_at(i, &p))
            continue;
        p.in.k = p.published->k_least; // a further operation would cut C again
        int last = is_rho(&p, "rne16") ? -9 : is_rho(&p, "rz14") ? -12 : -22;
        double place = qg_double_pow2(last);
        bool nearest = is_rho(&p, "rne16") || is_rho(&p, "rne32");
        put_big(&p, 0, 1);
        put_power(&p, 1, 1, last);
        put_power(&p, 2, 1, last - 1);
        expect(&p, 2.25 + (nearest ? 2 * place : place), "rho");
        put_big(&p, 0, -1);
        put_power(&p, 1, -1, last);
        put_power(&p, 2, -1, last - 1);
        expect(&p, -2.25 - (nearest ? 2 * place : place), "rho, negative");
    }
}
END_TEST

// C is a term of the fused sum, but the last one of an instruction on the FP16 unit.
START_TEST(place_of_c_in_every_row) {
    probe p;
    for (int i = 0; slow_unit_at(i); i++) {
        if (!probe_at(i, &p))
            continue;
        const slow_unit *u = p.published;
        bool last = !strcmp(u->model, "pairs");
        p.in.k = u->k;
        p.in.c = encode(p.row->accumulator, -0x1p11);
        put_power(&p, 0, 1, 1);
        put_power(&p, 1, 1, 1 - u->fraction);
        double kept = qg_double_pow2(1 - u->fraction);
        expect(&p, last ? 0.0 : kept, "C");
    }
}
END_TEST

// The FP16 unit takes FP8 elements as FP16: E4M3's subnormals are aligned as normal numbers.
START_TEST(fp8_subnormals_on_the_fp16_unit) {
    probe p;
    for (int i = 0; slow_unit_at(i); i++) {
        if (!probe_at(i, &p))
            continue;
        const slow_unit *u = p.published;
        if (strcmp(u->model, "pairs"))
            continue;
        // 2^-9 * 2^15 has exponent 6, or 9 if 2^-9 were aligned as a subnormal of E4M3.
        p.a[0] = p.a[1] = p.a[4] = 1;
        p.b[0] = encode(QG_FORMAT_E5M2, 0x1p15);
        p.b[1] = encode(QG_FORMAT_E5M2, -0x1p15);
        p.b[4] = encode(QG_FORMAT_E5M2, 0x1p-10);
        expect(&p, qg_double_pow2(-19 - BIG), "a subnormal");
    }
}
END_TEST

START_TEST(odd_dot_products_are_refused) {
    uint64_t a[4] = {0}, d = 0;
    const qg_unit_row *row = row_of("blackwell_mx", "e4m3", "e4m3", "fp32", "e8m0");
    qg_unit_dot_input in = {.a_format = QG_FORMAT_E4M3,
                            .b_format = QG_FORMAT_E4M3,
                            .k = 4,
                            .a = a,
                            .b = a,
                            .scale_block = 32};
    ck_assert_int_eq(qg_unit_dot(row, &in, &d), QG_ERROR_ARGUMENT); // no scales
    in.sa = in.sb = a;
    ck_assert_int_eq(qg_unit_dot(row, &in, &d), QG_OK);
    in.scale_block = 16;
    ck_assert_int_eq(qg_unit_dot(row, &in, &d), QG_ERROR_ARGUMENT);
    in.scale_block = 64;
    in.k = 0;
    ck_assert_int_eq(qg_unit_dot(row, &in, &d), QG_ERROR_ARGUMENT);
    in.k = 4;
    in.b_format = QG_FORMAT_FP16;
    ck_assert_int_eq(qg_unit_dot(row, &in, &d), QG_ERROR_ARGUMENT);
}
END_TEST

// ------------------------------------------------------------------------------------------- names

START_TEST(names_are_read_back) {
    static const char *const names[] = {"hopper_wgmma+promote:128",
                                        "blackwell_tcgen05+promote:256+split:4",
                                        "fp32_blocked:32",
                                        "fp32_blocked:8+promote:16+split:2",
                                        "fp32_sequential+rtz",
                                        "bf16_sequential+rtn+split:3",
                                        "exact",
                                        "native"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        qg_unit unit;
        char name[QG_UNIT_NAME_SIZE];
        ck_assert_msg(qg_unit_parse(names[i], &unit) == QG_OK, "%s", qg_detail());
        qg_unit_name(&unit, name);
        ck_assert_str_eq(name, names[i]);
    }
    for (size_t i = 0; qg_unit_listed(i); i++) {
        qg_unit unit;
        if (i != QG_UNIT_FP32_BLOCKED)
            ck_assert_int_eq(qg_unit_parse(qg_unit_listed(i), &unit), QG_OK);
    }
}
END_TEST

START_TEST(odd_names_are_refused) {
    static const char *const names[] = {"",
                                        "hoper_wgmma",
                                        "hopper_wgmma+",
                                        "hopper_wgmma+promote",
                                        "hopper_wgmma+promote:0",
                                        "hopper_wgmma+promote:-1",
                                        "hopper_wgmma+promote:1x",
                                        "hopper_wgmma+promote:2+promote:2",
                                        "hopper_wgmma+split:99999999999999999999",
                                        "hopper_wgmma+rtz",
                                        "hopper_wgmma:8",
                                        "fp32_fma+rtn",
                                        "fp32_blocked",
                                        "fp32_blocked:0",
                                        "fp32_sequential+rtz+rtn",
                                        "exact+split:2",
                                        "fp64+promote:2",
                                        "native+split:2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        qg_unit unit;
        ck_assert_msg(qg_unit_parse(names[i], &unit) == QG_ERROR_ARGUMENT, "%s", names[i]);
        ck_assert(*qg_detail() != 0);
    }
    qg_unit unit;
    qg_unit_parse("hoper_wgmma", &unit);
    ck_assert(strstr(qg_detail(), "hopper_wgmma") != NULL);
}
END_TEST

int main(void) {
    const TTest *tests[] = {recorded_lines,
                            mxfp8_vectors,
                            signature_of_every_architecture,
                            amd_vectors,
                            nan_and_infinities,
                            signed_zeros_and_subnormals,
                            floor_exponents,
                            fraction_bits_of_every_row,
                            length_of_every_row,
                            conversion_of_every_row,
                            place_of_c_in_every_row,
                            fp8_subnormals_on_the_fp16_unit,
                            odd_dot_products_are_refused,
                            names_are_read_back,
                            odd_names_are_refused};
    return RUN_SUITE("unit_directed", tests);
}
