// .qgvec: every error of the reader, writing and reading back, known answers, and the lines that
// bring their own random words and tensor amax against the emulator's tensor interface.
#include <qgvec.h>
#include <vector_operands.h>

#include <qg_emulator.h>
#include <qg_philox.h>
#include <qg_recipe_name.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------- the reader

// Reads all of a text: the first failure's status.
static qg_status read_all(const char *text, size_t size, int64_t *lines) {
    qg_vector_reader reader;
    qg_vector_case c;
    bool ended = false;
    *lines = 0;
    qg_status status = qg_vector_reader_open("t.qgvec", text, size, &reader);
    if (status != QG_OK)
        return status;
    status = qg_vector_case_create(&reader.header, &c);
    while (status == QG_OK && !ended) {
        status = qg_vector_reader_next(&reader, &c, &ended);
        *lines += status == QG_OK && !ended;
    }
    qg_vector_case_free(&c);
    return status;
}

#define ENCODE "# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: rne\n# overflow: saturate\n"
#define DECODE "# qgvec 1\n# kind: decode\n# format: e2m1\n"
#define DOT_FORMATS(UNIT, A, B, C, D)                                                              \
    "# qgvec 1\n# kind: dot\n# unit: " UNIT "\n# a: " A "\n# b: " B "\n# c: " C "\n# d: " D "\n"
#define ADA DOT_FORMATS("ada_mma", "fp16", "fp16", "fp32", "fp32")
#define DOT DOT_FORMATS("turing_mma", "fp16", "f16", "fp32", "f32") "# k: 2\n"
#define SCALED DOT_FORMATS("blackwell_mxf4", "e2m1", "e2m1", "fp32", "fp32") "# k: 17\n"
#define MX "# scale: e8m0\n# scale_block: 16\n"
#define ONES "0202020202020202020202020202020202"
#define SCALED_LINE ONES " 7f80 " ONES " 7f7f 00000000 41900000\n"
#define QUANTIZE "# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 2\n"

START_TEST(well_formed) {
    static const struct {
        const char *text;
        int64_t lines;
    } cases[] = {
        {ENCODE, 0},
        {ENCODE "3f800000 38\n", 1},
        {ENCODE "3F800000 38\nff800000 fe", 2}, // capitals; no newline at the end
        {DECODE "0f c0c00000\n", 1},
        {"# qgvec 1\n# comment: any: thing\n# comment: again\n# device:\n# kind: decode\n"
         "# format: fp64\n0000000000000000 00000000\n", 1},
        {"# qgvec 1\n# format: tf32\n# kind: decode\n3f800000 3f800000\n", 1},
        {"# qgvec 1\n# kind: decode\n# format: bf16\n3f80 3f800000\n", 1},
        {"# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: stochastic:B:8\n"
         "# overflow: format\n3f800000 00000000 38\n", 1},
        {QUANTIZE "3f80000040000000 78 7077\n", 1},
        {QUANTIZE "# rule: rceil\n# rounding: rtz\n# rows: 1\n3f80000040000000 78 7077\n", 1},
        {QUANTIZE "# rounding: stochastic\n3f80000040000000 0000000000000000 78 7077\n", 1},
        {"# qgvec 1\n# kind: quantize\n# recipe: nvfp4\n# k: 1\n3f800000 3f800000 7e 07\n", 1},
        {"# qgvec 1\n# kind: quantize\n# recipe: mx9\n# k: 1\n3f800000 7f00 40\n", 1},
        {"# qgvec 1\n# kind: quantize\n# recipe: rlx_mxfp4x2\n# k: 1\n"
         "3f800000 3e2aaaab 00000001 07 00\n", 1},
        {"# qgvec 1\n# kind: quantize\n# recipe: deepseek_w128x128\n# rows: 2\n# k: 1\n"
         "3f80000000000000 3b124925 7e00\n", 1},
        {"# qgvec 1\n# kind: quantize\n# recipe: bf16\n# k: 1\n3f800000 3f800000 3f80\n", 1},
        {DOT "3c003c00 3c004000 3f800000 40800000\n", 1},
        {SCALED MX SCALED_LINE, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t lines;
        qg_status status = read_all(cases[i].text, strlen(cases[i].text), &lines);
        ck_assert_msg(status == QG_OK, "%d: %s", (int)i, qg_detail());
        ck_assert_int_eq(lines, cases[i].lines);
    }
}
END_TEST

typedef struct bad_text {
    const char *text, *words;
} bad_text;

static void expect_refused(const bad_text *bad) {
    int64_t lines;
    qg_status status = read_all(bad->text, strlen(bad->text), &lines);
    const char *detail = qg_detail();
    ck_assert_msg(status == QG_ERROR_DATA, "status %d for %s", status, bad->text);
    ck_assert_msg(strncmp(detail, "t.qgvec:", 8) == 0 && strstr(detail, bad->words),
                  "\"%s\" does not say \"%s\"", detail, bad->words);
    ck_assert_msg(strpbrk(detail, "\n\r") == NULL, "more than one line: %s", detail);
}

START_TEST(malformed) {
    static const bad_text cases[] = {
        {"", ":1: the first line must be '# qgvec 1'"},
        {"\n", ":1: the first line"},
        {"# qgvec 2\n", ":1: the first line"},
        {"# qgvec 1 \n", ":1: the first line"},
        {"#qgvec 1\n", ":1: the first line"},
        {"# kind: decode\n# qgvec 1\n", ":1: the first line"},
        {"# qgvec 1\n", ":1: the header has no kind"},
        {"# qgvec 1\n# format: e4m3\n", ":2: the header has no kind"},
        {"# qgvec 1\n# kind: rotate\n", ":2: unknown kind rotate"},
        {"# qgvec 1\n# kind:\n", ":2: key kind has no value"},
        {"# qgvec 1\n# kind: decode\n# kind: decode\n", ":3: key kind again"},
        {"# qgvec 1\n# kind decode\n", ":2: a header line must read"},
        {"# qgvec 1\n#kind: decode\n", ":2: a header line must read"},
        {"# qgvec 1\n# a b: decode\n", ":2: a header line must read"},
        {"# qgvec 1\n# : decode\n", ":2: a header line must read"},
        {"# qgvec 1\n#\n", ":2: a header line must read"},
        {"# qgvec 1\n# kind: decode\r\n", ":2: the line ends in a carriage return"},
        {"# qgvec 1\r\n# kind: decode\r\n", ":1: the line ends in a carriage return"},
        {ENCODE "3f800000 38\n\r\n", ":7: the line ends in a carriage return"},
        {"# qgvec 1\n# comment: \x1b[1m\n", ":2: the header holds a control character"},
        {"# qgvec 1\n# kinds: decode\n", ":2: unknown key kinds; the nearest is kind"},
        {"# qgvec 1\n# colour: red\n", ":2: unknown key colour"},
        {DECODE "# rounding: rne\n", ":4: unknown key rounding in kind decode"},
        {DECODE "# unit: exact\n", ":4: unknown key unit in kind decode"},
        {ENCODE "# k: 3\n", ":6: unknown key k in kind encode"},
        {QUANTIZE "# overflow: format\n", ":5: unknown key overflow in kind quantize"},
        {QUANTIZE "# format: e4m3\n", ":5: unknown key format in kind quantize"},
        {"# qgvec 1\n# kind: decode\n", ":2: the header has no format"},
        {"# qgvec 1\n# kind: decode\n# format: e9m9\n", ":3: unknown"},
        {"# qgvec 1\n# kind: encode\n# format: e4m3\n# overflow: format\n", "has no rounding"},
        {"# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: rne\n", "has no overflow"},
        {"# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: up\n# overflow: format\n", ":4: "},
        {"# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: rne\n# overflow: wrap\n",
         ":5: overflow wrap"},
        {"# qgvec 1\n# kind: encode\n# format: e8m0\n# rounding: rtn\n# overflow: format\n",
         "e8m0 is encoded with"},
        {"# qgvec 1\n# kind: quantize\n# k: 2\n", "has no recipe"},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n", "has no k"},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp9\n# k: 2\n", ":3: unknown"},
        {QUANTIZE "# rule: ceiling\n", ":5: unknown scale rule"},
        {QUANTIZE "# rule: two_level\n# rounding: up\n", ":6: "},
        {"# qgvec 1\n# kind: quantize\n# recipe: e4m3\n# k: 2\n# rule: two_level\n", ":5: "},
        {"# qgvec 1\n# kind: quantize\n# recipe: mx9\n# k: 2\n# rule: rceil\n", ":5: "},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 33\n", "more than one block"},
        {QUANTIZE "# rows: 2\n", "more than one block"},
        {QUANTIZE "# rows: 0\n", "at least 1"},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 0\n", "at least 1"},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: -1\n", ":4: k -1 is no number"},
        {"# qgvec 1\n# kind: quantize\n# recipe: mxfp8\n# k: 0x2\n", ":4: k 0x2 is no number"},
        {"# qgvec 1\n# kind: quantize\n# recipe: e4m3\n# k: 9223372036854775808\n", ":4: k 92"},
        {"# qgvec 1\n# kind: quantize\n# recipe: e4m3\n# k: 1048576\n# rows: 2\n", "at most"},
        {"# qgvec 1\n# kind: quantize\n# recipe: te_delayed_e4m3\n# k: 2\n", "amax history"},
        {ENCODE "3f800000\n", ":6: 1 fields, not 2"},
        {ENCODE "3f800000 38 00\n", ":6: more than 2 fields"},
        {ENCODE "3f800000 38 \n", ":6: more than 2 fields"},
        {ENCODE " 3f800000 38\n", ":6: field x has 0 characters"},
        {ENCODE "3f800000  38\n", ":6: more than 2 fields"},
        {ENCODE "3f800000\t38\n", ":6: 1 fields"},
        {ENCODE "3f800000 3\n", ":6: field code has 1 characters, not 2"},
        {ENCODE "3f800000 038\n", ":6: field code has 3 characters, not 2"},
        {ENCODE "3f80000 38\n", ":6: field x has 7 characters, not 8"},
        {ENCODE "3f800000 3g\n", ":6: field code holds a character"},
        {ENCODE "0x800000 38\n", ":6: field x holds a character"},
        {ENCODE "3f800000 38\r\n", ":6: the line ends in a carriage return"},
        {ENCODE "3f800000\r 38\n", ":6: field x has 9 characters"},
        {ENCODE "\n", ":6: an empty line"},
        {ENCODE "3f800000 38\n\n", ":7: an empty line"},
        {ENCODE "3f800000 38\n# comment: late\n", ":7: a header line behind"},
        {DECODE "1f c0c00000\n", ":4: field code: code 1f has more than 4 bits"},
        {QUANTIZE "3f80000040000000 78 70\n", ":5: field codes has 2 characters, not 4"},
        {QUANTIZE "3f800000 78 7077\n", ":5: field x has 8 characters, not 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_refused(&cases[i]);
    int64_t lines;
    ck_assert_int_eq(read_all("# qgvec 1\n# kind: decode\n# format: e4\0m3\n", 41, &lines),
                     QG_ERROR_DATA); // a zero byte
}
END_TEST

// clang-format off
static const bad_text bad_dots[] = {
    {"# qgvec 1\n# kind: dot\n", ":2: the header has no unit"},
    {"# qgvec 1\n# kind: dot\n# unit: exact\n", ":3: unit exact has no instruction"},
    {"# qgvec 1\n# kind: dot\n# unit: native\n", ":3: unit native has no instruction"},
    {"# qgvec 1\n# kind: dot\n# unit: hoper_mma\n", ":3: unknown unit hoper_mma; the nearest is"},
    {"# qgvec 1\n# kind: dot\n# unit: spin\n", ":3: unknown unit spin; known are volta_mma, "},
    {"# qgvec 1\n# kind: dot\n# unit: hopper_wgmma+split:2\n",
     ":3: unit hopper_wgmma+split:2 has modifiers"},
    {"# qgvec 1\n# kind: dot\n# unit: hopper_wgmma+x\n", ":3: unknown modifier +x"},
    {"# qgvec 1\n# kind: dot\n# unit: ada_mma\n", ":3: the header has no a"},
    {"# qgvec 1\n# kind: dot\n# unit: ada_mma\n# a: fp16\n# b: e9m9\n", ":5: unknown format"},
    {ADA, ":7: the header has no k"},
    {ADA "# k: 0\n", ":8: k must be from 1 to 1048576"},
    {ADA "# k: 1048577\n", ":8: k must be from 1 to 1048576"},
    {ADA "# k: x\n", ":8: k x is no number"},
    {DOT_FORMATS("ada_mma", "e2m1", "e2m1", "fp32", "fp32") "# k: 1\n",
     ":4: unit ada_mma does not take e2m1; it takes e4m3, e5m2, bf16, fp16, tf32, fp64"},
    {DOT_FORMATS("ada_mma", "fp16", "bf16", "fp32", "fp32") "# k: 1\n",
     ":5: unit ada_mma does not multiply fp16 by bf16; it takes fp16"},
    {DOT_FORMATS("ada_mma", "fp16", "fp16", "bf16", "bf16") "# k: 1\n",
     ":6: unit ada_mma does not accumulate fp16 times fp16 in bf16, but in fp32, fp16"},
    {DOT_FORMATS("ada_mma", "fp16", "fp16", "fp32", "fp16") "# k: 1\n",
     ":7: d is fp16, but the accumulator of unit ada_mma is fp32"},
    {DOT MX, ":9: unit turing_mma has no block scales"},
    {DOT "# scale_block: 16\n", ":9: the header has no scale"},
    {DOT "# rounding: rne\n", ":9: unknown key rounding in kind dot"},
    {DOT "# k: 2\n", ":9: key k again"},
    {SCALED, ":3: unit blackwell_mxf4 needs block scales: e8m0, ue4m3"},
    {SCALED "# scale: e8m0\n", ":9: the header has no scale_block"},
    {SCALED "# scale: e5m2\n# scale_block: 16\n",
     ":9: unit blackwell_mxf4 takes no scales of e5m2; it takes e8m0, ue4m3"},
    {SCALED "# scale: e8m0\n# scale_block: 24\n", ":10: scale_block must be a multiple of 16"},
    {SCALED "# scale: e8m0\n# scale_block: 0\n", ":10: scale_block must be a multiple of 16"},
    {DOT "3c003c00 3c004000 3f800000\n", ":9: 3 fields, not 4"},
    {DOT "3c003c00 3c004000 3f800000 40800000 00\n", ":9: more than 4 fields"},
    {DOT "3c003c00 3c0040 3f800000 40800000\n", ":9: field b has 6 characters, not 8"},
    {DOT "3c003c00 3c004000 3f80 40800000\n", ":9: field c has 4 characters, not 8"},
    {DOT "3c003c0g 3c004000 3f800000 40800000\n", ":9: field a holds a character"},
    {SCALED MX "12" SCALED_LINE, ":11: field a has 36 characters, not 34"},
    {SCALED MX ONES " 7f " ONES " 7f7f 00000000 41900000\n",
     ":11: field sa has 2 characters, not 4"},
    {DOT_FORMATS("blackwell_mx", "e2m3", "e2m1", "fp32", "fp32")
     "# k: 1\n# scale: e8m0\n# scale_block: 32\n3f 7f 10 7f 00000000 00000000\n",
     ":11: field b: code 10 has more than 4 bits"},
};
// clang-format on

START_TEST(malformed_dot) {
    for (size_t i = 0; i < sizeof bad_dots / sizeof bad_dots[0]; i++)
        expect_refused(&bad_dots[i]);
}
END_TEST

// --------------------------------------------------------------------------------- known answers

// Evaluates the one line of a text and compares it with itself.
static void expect_holds(const char *text) {
    qg_vector_reader reader;
    qg_vector_case wanted, got;
    bool ended;
    ck_assert_msg(qg_vector_reader_open("t", text, strlen(text), &reader) == QG_OK, "%s",
                  qg_detail());
    const qg_vector_header *h = &reader.header;
    ck_assert_int_eq(qg_vector_case_create(h, &wanted), QG_OK);
    ck_assert_int_eq(qg_vector_case_create(h, &got), QG_OK);
    for (;;) { // Check writes to a file for every assertion that holds: none in the loops
        if (qg_vector_reader_next(&reader, &wanted, &ended) != QG_OK)
            ck_abort_msg("%s", qg_detail());
        if (ended)
            break;
        if (qg_vector_evaluate(h, &wanted, &got) != QG_OK)
            ck_abort_msg("%s", qg_detail());
        for (int f = 0; f < h->field_count; f++)
            for (int64_t i = 0; i < h->fields[f].count; i++)
                if (wanted.values[f][i] != got.values[f][i])
                    ck_abort_msg("%.2000s\nline %d, %s[%d]: wanted %llx, got %llx", text,
                                 (int)reader.line, h->fields[f].name, (int)i,
                                 (unsigned long long)wanted.values[f][i],
                                 (unsigned long long)got.values[f][i]);
    }
    qg_vector_case_free(&wanted);
    qg_vector_case_free(&got);
}

// Worked out by hand from the formats' and recipes' definitions.
START_TEST(known_answers) {
    static const char *const texts[] = {
        // 464 is the tie between 448 and what would be 480; -2^-10 underflows to -0.
        ENCODE "43e80000 7e\n43e80001 7e\n7f800000 7e\nff800000 fe\n7fc00000 7f\nffc00000 7f\n"
               "ba800000 80\n3a800001 01\n",
        "# qgvec 1\n# kind: encode\n# format: e4m3\n# rounding: rne\n# overflow: format\n"
        "43e80000 7e\n43e80001 7f\n7f800000 7f\nff800000 ff\nc3fa0000 ff\n",
        // A quarter of the way: variant A rounds up for the upper quarter of the words.
        "# qgvec 1\n# kind: encode\n# format: e2m1\n# rounding: stochastic:A:8\n"
        "# overflow: saturate\n40100000 bfffffff 04\n40100000 c0000000 05\n",
        DECODE "00 00000000\n08 80000000\n01 3f000000\n07 40c00000\n0f c0c00000\n",
        "# qgvec 1\n# kind: decode\n# format: e4m3\n7f 7fffffff\nff 7fffffff\n7e 43e00000\n",
        "# qgvec 1\n# kind: decode\n# format: fp64\n47efffffefffffff 7f7fffff\n"
        "47effffff0000000 7f800000\nfff0000000000000 ff800000\n7ff0000000000001 7fffffff\n",
        // amax 2: e = 1 - 8 = -7, byte 120; 1 / 2^-7 = 128 -> 70, 2 / 2^-7 = 256 -> 78.
        QUANTIZE "3f80000040000000 78 7078\n0000000080000000 00 0080\n7fc000003f800000 ff 7f7f\n",
        QUANTIZE "# rule: rceil\n40000000c0000000 78 78f8\n43e0000043e00001 80 7676\n",
        // TE: s_enc = 2688 / 6 = 448, amax 6: code(6 * 448 / 6) = 448 = 7e, factor 1.
        "# qgvec 1\n# kind: quantize\n# recipe: nvfp4\n# k: 2\n40c000003f800000 40c00000 7e 0702\n",
        // E = 0; the first pair has shift 0: 64 and 32 of 2^6; the second has 1: 32 of 2^7.
        "# qgvec 1\n# kind: quantize\n# recipe: mx9\n# k: 4\n"
        "3f8000003f0000003e800000be800000 7f02 402020a0\n",
        "# qgvec 1\n# kind: quantize\n# recipe: rlx_mxfp4x2\n# k: 1\n40c00000 3f800000 3f800000 07 "
        "00\n",
        // 1 * 1 + 1 * 2 + 1; Inf - Inf; 1 + 2^-24 is cut to 1. Element 16 has scale 2.
        DOT "3c003c00 3c004000 3f800000 40800000\n7c003c00 3c00fc00 00000000 7fffffff\n"
            "3c000001 3c003c00 00000000 3f800000\n",
        SCALED MX SCALED_LINE,
        "# qgvec 1\n# kind: quantize\n# recipe: e4m3\n# k: 1\n# rule: fixed:2\n40000000 40000000 "
        "38\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_holds(texts[i]);
}
END_TEST

// ------------------------------------------------------------------------ writing, reading back

typedef struct collected {
    FILE *stream;
    const qg_vector_header *h;
    qg_vector_case got;
    int64_t lines;
} collected;

static qg_status collect(void *context, qg_vector_case *c) {
    collected *out = context;
    qg_status status = qg_vector_evaluate(out->h, c, &out->got);
    qg_vector_write_case(out->stream, out->h, &out->got);
    out->lines++;
    return status;
}

// Generates, reads back and evaluates again.
static int64_t round_trip(const qg_vector_header *h, bool level1, int64_t count) {
    char *text = NULL;
    size_t size = 0;
    collected out = {open_memstream(&text, &size), h, {{NULL}}, 0};
    ck_assert_ptr_nonnull(out.stream);
    ck_assert_int_eq(qg_vector_case_create(h, &out.got), QG_OK);
    qg_vector_write_header(out.stream, h, "a test");
    if (level1)
        ck_assert_int_eq(qg_vector_operands_level1(h, collect, &out), QG_OK);
    if (count)
        ck_assert_int_eq(qg_vector_operands_level2(h, 7, count, collect, &out), QG_OK);
    ck_assert_int_eq(fclose(out.stream), 0);
    qg_vector_case_free(&out.got);
    int64_t lines;
    qg_status status = read_all(text, size, &lines);
    ck_assert_msg(status == QG_OK, "%s", qg_detail());
    ck_assert_int_eq(lines, out.lines);
    expect_holds(text);
    free(text);
    return lines;
}

static const char *const roundings[] = {"rne", "rna", "rtz", "rtp", "rtn", "rto",
                                        "stochastic:A:16", "stochastic:B:3", "stochastic:C:32"};
enum { ROUNDINGS = sizeof roundings / sizeof roundings[0] };

static void encode_every_way(const char *name) {
    for (int i = 0; i < ROUNDINGS; i++)
        for (uint8_t overflow = 0; overflow < 2; overflow++) {
            qg_vector_header h = {.kind = QG_VECTOR_ENCODE};
            ck_assert_int_eq(qg_format_parse(name, &h.format), QG_OK);
            ck_assert_int_eq(qg_rounding_parse(roundings[i], &h.conversion.rounding), QG_OK);
            h.conversion.overflow = overflow;
            if (qg_vector_header_complete(&h) != QG_OK) {
                ck_assert_str_eq(name, "e8m0");
                continue;
            }
            int64_t lines = round_trip(&h, i == 0 || i == 6, 100);
            ck_assert_int_ge(lines, i == 0 || i == 6 ? 150 : 100);
        }
}

START_TEST(every_format_and_rounding) {
    static const char *const minifloats[] = {"f8e4m3b7", "f4e3m0", "f3e1m1b-2"};
    for (size_t i = 0; qg_format_listed(i); i++)
        encode_every_way(qg_format_listed(i));
    for (size_t i = 0; i < 3; i++)
        encode_every_way(minifloats[i]);
}
END_TEST

START_TEST(every_format_decodes) {
    for (size_t i = 0; qg_format_listed(i); i++) {
        qg_vector_header h = {.kind = QG_VECTOR_DECODE};
        ck_assert_int_eq(qg_format_parse(qg_format_listed(i), &h.format), QG_OK);
        ck_assert_int_eq(qg_vector_header_complete(&h), QG_OK);
        round_trip(&h, true, 50);
    }
}
END_TEST

// A header of a recipe with rows and k of a whole group, or of 2 x 3.
static bool recipe_header(const char *recipe, const char *rule, const char *rounding,
                          qg_vector_header *h) {
    memset(h, 0, sizeof *h);
    h->kind = QG_VECTOR_QUANTIZE;
    if (qg_vector_header_recipe(h, recipe, rule, rounding) != QG_OK)
        return false;
    bool group = h->recipe.layout.kind == QG_LAYOUT_GROUP;
    h->rows = group ? 1 : 2;
    h->k = group ? h->recipe.layout.columns : 3;
    return qg_vector_header_complete(h) == QG_OK;
}

START_TEST(every_recipe) {
    qg_vector_header h;
    int refused = 0;
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int r = -1; r < ROUNDINGS; r += 3) {
            if (!recipe_header(qg_recipe_listed(i), NULL, r < 0 ? NULL : roundings[r], &h)) {
                refused++;
                continue;
            }
            ck_assert_int_gt(round_trip(&h, r < 0, 20), 0);
            if (h.recipe.layout.kind == QG_LAYOUT_GROUP) { // ragged
                h.k = 3;
                ck_assert_int_eq(qg_vector_header_complete(&h), QG_OK);
                round_trip(&h, r < 0, 20);
            }
        }
    ck_assert_int_eq(refused, 2 * 4 + 1); // delayed; four_over_six with stochastic rounding
}
END_TEST

START_TEST(every_rule) {
    static const char *const recipes[] = {"e4m3", "mxfp4", "nvfp4", "mxint8"};
    qg_vector_header h;
    int done = 0;
    for (size_t i = 0; qg_rule_listed(i); i++) {
        const char *rule = qg_rule_listed(i);
        for (size_t j = 0; j < sizeof recipes / sizeof recipes[0]; j++) {
            if (!recipe_header(recipes[j], strcmp(rule, "fixed") ? rule : "fixed:0x1.8p-3",
                               NULL, &h))
                continue;
            round_trip(&h, true, 20);
            done++;
        }
    }
    ck_assert_int_eq(done, 4 * 20 - 4 - 4); // e4m3 takes no ue4m3 rule; nobody takes delayed
}
END_TEST

// A header of a row with formats a and b, over the length of the instruction.
static qg_vector_header dot_header(const qg_unit_row *row, qg_format a, qg_format b) {
    qg_vector_header h = {.kind = QG_VECTOR_DOT,
                          .unit = row->unit,
                          .a = a,
                          .b = b,
                          .c = row->accumulator,
                          .d = row->accumulator,
                          .k = row->k,
                          .scale = row->scale,
                          .scale_block = row->scale_block};
    ck_assert_msg(qg_vector_header_complete(&h) == QG_OK, "%s", qg_detail());
    ck_assert_ptr_eq(h.row, row);
    return h;
}

// Every row with every pair of its formats: level 1 of those with the first format, which also
// takes other lengths and scale blocks.
START_TEST(every_unit_and_pair) {
    const qg_unit_row *row;
    int pairs = 0;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++) {
        qg_format first = QG_FORMAT_COUNT;
        for (qg_format a = 0; a < QG_FORMAT_COUNT; a++)
            for (qg_format b = 0; b < QG_FORMAT_COUNT; b++) {
                if (!qg_unit_row_takes(row, a) || !qg_unit_row_takes(row, b))
                    continue;
                first = first == QG_FORMAT_COUNT ? a : first;
                qg_vector_header h = dot_header(row, a, b);
                bool level1 = a == first || b == first;
                ck_assert_int_ge(round_trip(&h, level1, 60), level1 ? 500 : 60);
                pairs++;
                for (int64_t k = 1; a == first && b == first && k < 3 * row->k; k += row->k - 1) {
                    h.k = k;
                    h.scale_block = 2 * row->scale_block;
                    ck_assert_int_eq(qg_vector_header_complete(&h), QG_OK);
                    round_trip(&h, k == 1, 60);
                }
            }
    }
    ck_assert_int_gt(pairs, 150);
}
END_TEST

// Level 1 holds what it promises: NaN, infinities, zeros and numbers among the results of a unit.
typedef struct found_results {
    const qg_vector_header *h;
    qg_vector_case got;
    int nans, infinities, zeros, numbers;
} found_results;

static qg_status look(void *context, qg_vector_case *c) {
    found_results *f = context;
    qg_status status = qg_vector_evaluate(f->h, c, &f->got);
    uint64_t magnitude = f->got.values[f->h->field_count - 1][0] & 0x7fffffffu;
    f->nans += magnitude > 0x7f800000u;
    f->infinities += magnitude == 0x7f800000u;
    f->zeros += magnitude == 0;
    f->numbers += magnitude > 0 && magnitude < 0x7f800000u;
    return status;
}

START_TEST(level_1_of_dot_reaches_everything) {
    for (int scaled = 0; scaled < 2; scaled++) {
        int unit = scaled ? QG_UNIT_BLACKWELL_MX : QG_UNIT_HOPPER_WGMMA;
        const qg_unit_row *row =
            qg_unit_row_find(unit, QG_FORMAT_E5M2, QG_FORMAT_E4M3, QG_FORMAT_FP32,
                             scaled ? QG_FORMAT_E8M0 : QG_UNIT_NO_SCALE);
        qg_vector_header h = dot_header(row, QG_FORMAT_E5M2, QG_FORMAT_E4M3);
        found_results f = {.h = &h};
        ck_assert_int_eq(qg_vector_case_create(&h, &f.got), QG_OK);
        ck_assert_int_eq(qg_vector_operands_level1(&h, look, &f), QG_OK);
        ck_assert_int_gt(f.nans, 100);
        ck_assert_int_gt(f.infinities, 100);
        ck_assert_int_gt(f.zeros, 30);
        ck_assert_int_gt(f.numbers, 1000);
        qg_vector_case_free(&f.got);
    }
}
END_TEST

// ------------------------------------------------------------------- against the tensor interface

// The words of Philox and the block's own amax: what qg_emulator_quantize uses for a tensor that is
// one block.
static void fill_block(const qg_vector_header *h, uint64_t seed, uint32_t round, float *x,
                       qg_vector_case *c) {
    int64_t n = h->rows * h->k;
    float amax = 0.0f;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = qg_philox_word(seed, QG_STREAM_DATA, (uint64_t)(round * n + i));
        uint32_t exponent = 120 + word % 12;
        x[i] = qg_float_of_bits((word & 0x80000000u) | exponent << 23 | (word >> 8 & 0x7fffffu));
        if (round % 8 == 7 && i == round % n)
            x[i] = qg_float_of_bits(round % 16 == 7 ? 0x7fc00000u : 0u);
        c->values[0][i] = qg_bits_of_float(x[i]);
        if (qg_float_abs(x[i]) > amax)
            amax = qg_float_abs(x[i]);
    }
    for (int f = 1; f < h->field_count; f++)
        for (int64_t i = 0; i < h->fields[f].count && !h->fields[f].is_output; i++)
            c->values[f][i] = strcmp(h->fields[f].name, "r")
                                  ? qg_bits_of_float(amax)
                                  : qg_philox_word(seed, QG_STREAM_ROUNDING, (uint64_t)i);
}

static void check_against_tensor(const qg_vector_header *h, uint64_t seed, uint32_t round) {
    static float x[4096];
    static uint8_t codes[8192];
    uint8_t scales[8];
    float tensor;
    qg_shape shape;
    qg_vector_case c;
    ck_assert_int_le(h->rows * h->k, 4096);
    ck_assert_int_eq(qg_vector_case_create(h, &c), QG_OK);
    fill_block(h, seed, round, x, &c);
    ck_assert_int_eq(qg_vector_evaluate(h, &c, &c), QG_OK);
    qg_quantize_options options = {.input_type = QG_FORMAT_FP32,
                                   .seed = seed,
                                   .stream = QG_STREAM_ROUNDING,
                                   .threads = 1};
    ck_assert_int_eq(qg_shape_of(&h->recipe, h->rows, h->k, &shape), QG_OK);
    ck_assert_int_eq(qg_emulator_quantize(&h->recipe, &options, h->rows, h->k, x, codes, scales,
                                          &tensor, NULL), QG_OK);
    const uint8_t *code = codes, *scale = scales;
    for (int f = 0; f < h->field_count; f++) {
        const qg_vector_field *field = &h->fields[f];
        if (!field->is_output)
            continue;
        const uint8_t **from = strncmp(field->name, "code", 4) ? &scale : &code;
        for (int64_t i = 0; i < field->count; i++)
            for (int b = 0; b < field->digits / 2; b++)
                if (*(*from)++ != (uint8_t)(c.values[f][i] >> (8 * b)))
                    ck_abort_msg("%s: %s[%d], round %u", h->recipe_name, field->name, (int)i,
                                 round);
    }
    qg_vector_case_free(&c);
}

START_TEST(agrees_with_the_tensor_interface) {
    qg_vector_header h;
    for (size_t i = 0; qg_recipe_listed(i); i++)
        for (int r = 0; r < ROUNDINGS; r++)
            if (recipe_header(qg_recipe_listed(i), NULL, roundings[r], &h))
                for (uint32_t round = 0; round < 32; round++)
                    check_against_tensor(&h, 99, round);
}
END_TEST

START_TEST(fields_are_printed) {
    const uint64_t values[3] = {0x1, 0xab, 0xff};
    qg_vector_field f = {"codes", 2, 3, true, 0};
    char text[7], narrow[6];
    qg_vector_print_field(&f, values, text, sizeof text);
    ck_assert_str_eq(text, "01abff");
    qg_vector_print_field(&f, values, narrow, sizeof narrow);
    ck_assert_str_eq(narrow, "01...");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {well_formed,
                                  malformed,
                                  malformed_dot,
                                  known_answers,
                                  every_format_and_rounding,
                                  every_format_decodes,
                                  every_recipe,
                                  every_rule,
                                  every_unit_and_pair,
                                  level_1_of_dot_reaches_everything,
                                  agrees_with_the_tensor_interface,
                                  fields_are_printed};
    return RUN_SUITE("qgvec", tests);
}
