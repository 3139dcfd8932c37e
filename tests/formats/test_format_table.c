// Every row of the format table against the published tables (OCP OFP8 and MX v1.0, ml_dtypes,
// P3109 interim report v4.0), written here as data: extremes, special codes, counts of codes, and
// where RNE overflows.
#include <qg_format_name.h>
#include <run_suite.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// At the threshold itself the tie goes to the even code: `tie_stays` if that is the largest value.
typedef struct row {
    const char *name;
    int bits, code_bytes, emax;
    double max, min_normal, min_positive, threshold;
    int tie_stays, has_negative_zero;
    uint64_t max_code, overflow_code, nan_code; // NO_NAN: every code is a number
    int64_t finite, infinities, nans;           // numbers of codes, of all 2^bits
} row;

#define NO_NAN UINT64_MAX
#define T2     (0x1p127 * (2 - 0x1p-10)) // TF32's largest value

// clang-format off
static const row rows[] = {
    {"e4m3", 8, 1, 8, 448, 0x1p-6, 0x1p-9, 464, 1, 1, 0x7E, 0x7F, 0x7F, 254, 0, 2},
    {"e5m2", 8, 1, 15, 57344, 0x1p-14, 0x1p-16, 61440, 0, 1, 0x7B, 0x7C, 0x7F, 248, 2, 6},
    {"e4m3fnuz", 8, 1, 7, 240, 0x1p-7, 0x1p-10, 248, 0, 0, 0x7F, 0x80, 0x80, 255, 0, 1},
    {"e5m2fnuz", 8, 1, 15, 57344, 0x1p-15, 0x1p-17, 61440, 0, 0, 0x7F, 0x80, 0x80, 255, 0, 1},
    {"e4m3b11fnuz", 8, 1, 4, 30, 0x1p-10, 0x1p-13, 31, 0, 0, 0x7F, 0x80, 0x80, 255, 0, 1},
    {"e4m3_ieee", 8, 1, 7, 240, 0x1p-6, 0x1p-9, 248, 0, 1, 0x77, 0x78, 0x7F, 240, 2, 14},
    {"e3m4", 8, 1, 3, 15.5, 0x1p-2, 0x1p-6, 15.75, 0, 1, 0x6F, 0x70, 0x7F, 224, 2, 30},
    {"e2m3", 6, 1, 2, 7.5, 1, 0x1p-3, 7.75, 0, 1, 0x1F, 0x1F, NO_NAN, 64, 0, 0},
    {"e3m2", 6, 1, 4, 28, 0x1p-2, 0x1p-4, 30, 0, 1, 0x1F, 0x1F, NO_NAN, 64, 0, 0},
    {"e2m1", 4, 1, 2, 6, 1, 0.5, 7, 0, 1, 7, 7, NO_NAN, 16, 0, 0},
    {"e8m0", 8, 1, 127, 0x1p127, 0x1p-127, 0x1p-127, 0x1.8p127, 1, 0, 0xFE, 0xFF, 0xFF, 255, 0, 1},
    {"ue4m3", 8, 1, 8, 448, 0x1p-6, 0x1p-9, 464, 1, 0, 0x7E, 0x7F, 0x7F, 127, 0, 129},
    {"ue5m3", 8, 1, 16, 114688, 0x1p-14, 0x1p-17, 118784, 1, 0, 0xFE, 0xFF, 0xFF, 255, 0, 1},
    {"mxint8", 8, 1, 0, 1.984375, 0x1p-6, 0x1p-6, 1.9921875, 0, 0, 0x7F, 0x7F, NO_NAN, 256, 0, 0},
    {"mxint6", 6, 1, 0, 1.9375, 0x1p-4, 0x1p-4, 1.96875, 0, 0, 0x1F, 0x1F, NO_NAN, 64, 0, 0},
    {"mxint4", 4, 1, 0, 1.75, 0x1p-2, 0x1p-2, 1.875, 0, 0, 7, 7, NO_NAN, 16, 0, 0},
    {"int8", 8, 1, 6, 127, 1, 1, 127.5, 0, 0, 0x7F, 0x7F, NO_NAN, 256, 0, 0},
    {"int6", 6, 1, 4, 31, 1, 1, 31.5, 0, 0, 0x1F, 0x1F, NO_NAN, 64, 0, 0},
    {"int4", 4, 1, 2, 7, 1, 1, 7.5, 0, 0, 7, 7, NO_NAN, 16, 0, 0},
    {"int8_full", 8, 1, 6, 127, 1, 1, 127.5, 0, 0, 0x7F, 0x7F, NO_NAN, 256, 0, 0},
    {"bf16", 16, 2, 127, 0x1.FEp127, 0x1p-126, 0x1p-133, 0x1.FFp127, 0, 1, 0x7F7F, 0x7F80, 0x7FFF,
     65280, 2, 254},
    {"fp16", 16, 2, 15, 65504, 0x1p-14, 0x1p-24, 65520, 0, 1, 0x7BFF, 0x7C00, 0x7FFF,
     63488, 2, 2046},
    {"tf32", 32, 4, 127, T2, 0x1p-126, 0x1p-136, 0x1p127 * (2 - 0x1p-11), 0, 1, 0x7F7FE000,
     0x7F800000, 0x7FFFE000, 522240, 2, 2046}, // of the 2^19 that leave the unused bits 0
    {"fp32", 32, 4, 127, FLT_MAX, 0x1p-126, 0x1p-149, 0x1p127 * (2 - 0x1p-24), 0, 1, 0x7F7FFFFF,
     0x7F800000, 0x7FFFFFFF, -1, -1, -1},
    {"fp64", 64, 8, 1023, DBL_MAX, 0x1p-1022, 0x1p-1074, INFINITY, 0, 1, 0x7FEFFFFFFFFFFFFF,
     0x7FF0000000000000, 0x7FFFFFFFFFFFFFFF, -1, -1, -1},
};
// clang-format on

static uint64_t encode_as(const qg_format_info *info, double x, int overflow) {
    qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        (uint8_t)overflow, QG_NAN_TO_MAX
    };
    return qg_encode(info, x, &conversion, 0);
}

static void check_threshold(const qg_format_info *info, const row *r) {
    double below = nextafter(r->threshold, 0), above = nextafter(r->threshold, INFINITY);
    uint64_t at = r->tie_stays ? r->max_code : r->overflow_code;
    ck_assert_uint_eq(encode_as(info, r->max, QG_OVERFLOW_FORMAT), r->max_code);
    ck_assert_uint_eq(encode_as(info, below, QG_OVERFLOW_FORMAT), r->max_code);
    ck_assert_uint_eq(encode_as(info, r->threshold, QG_OVERFLOW_FORMAT), at);
    ck_assert_uint_eq(encode_as(info, above, QG_OVERFLOW_FORMAT), r->overflow_code);
    ck_assert_uint_eq(encode_as(info, INFINITY, QG_OVERFLOW_FORMAT), r->overflow_code);
    ck_assert_uint_eq(encode_as(info, r->threshold, QG_OVERFLOW_SATURATE), r->max_code);
    ck_assert_uint_eq(encode_as(info, above, QG_OVERFLOW_SATURATE), r->max_code);
    ck_assert_uint_eq(encode_as(info, INFINITY, QG_OVERFLOW_SATURATE), r->max_code);
}

static void check_counts(const qg_format_info *info, const row *r) {
    int64_t finite = 0, infinities = 0, nans = 0;
    for (uint64_t i = 0; i < 1ull << (r->bits - info->shift); i++) {
        double value = qg_decode(info, i << info->shift);
        finite += isfinite(value) != 0;
        infinities += isinf(value) != 0;
        nans += isnan(value) != 0;
        ck_assert(!isfinite(value) || info->kind == QG_KIND_INT || fabs(value) <= r->max);
    }
    ck_assert_int_eq(finite, r->finite);
    ck_assert_int_eq(infinities, r->infinities);
    ck_assert_int_eq(nans, r->nans);
}

static void check_row(const row *r) {
    qg_format format;
    ck_assert_msg(qg_format_parse(r->name, &format) == QG_OK, "%s", r->name);
    qg_format_info info = qg_format_describe(format);
    ck_assert_int_eq(info.bits, r->bits);
    ck_assert_int_eq(qg_format_code_bytes(&info), r->code_bytes);
    ck_assert_int_eq(qg_format_emax(&info), r->emax);
    ck_assert_double_eq(qg_format_max(&info), r->max);
    ck_assert_double_eq(qg_format_min_normal(&info), r->min_normal);
    ck_assert_double_eq(qg_format_min_positive(&info), r->min_positive);
    ck_assert_int_eq(qg_format_has_negative_zero(&info), r->has_negative_zero);
    ck_assert_double_eq(qg_decode(&info, r->max_code), r->max);
    check_threshold(&info, r);
    if (r->nan_code != NO_NAN) {
        ck_assert_double_nan(qg_decode(&info, r->nan_code));
        ck_assert_uint_eq(encode_as(&info, NAN, QG_OVERFLOW_FORMAT), r->nan_code);
        ck_assert_uint_eq(encode_as(&info, -(double)NAN, QG_OVERFLOW_FORMAT), r->nan_code);
    }
    if (r->finite >= 0)
        check_counts(&info, r);
}

START_TEST(published_formats) {
    ck_assert_uint_eq(sizeof rows / sizeof rows[0], 25);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_row(&rows[i]);
}
END_TEST

// The value tables of P3109. Per precision: largest value and RNE threshold of se, sf, ue, uf;
// `stays` means that the threshold itself does not overflow.
typedef struct p3109_row {
    int p, bias_signed, bias_unsigned;
    struct {
        double max, threshold;
        int stays;
    } kind[4];
} p3109_row;

// clang-format off
static const p3109_row p3109_rows[] = {
    {1, 64, 128, {{0x1p62, 3 * 0x1p61, 1}, {0x1p63, 3 * 0x1p62, 0},
                  {0x1p125, 3 * 0x1p124, 0}, {0x1p126, 3 * 0x1p125, 1}}},
    {2, 32, 64, {{0x1p31, 5 * 0x1p29, 1}, {3 * 0x1p30, 7 * 0x1p29, 0},
                 {3 * 0x1p61, 7 * 0x1p60, 0}, {0x1p63, 5 * 0x1p61, 1}}},
    {3, 16, 32, {{49152, 53248, 1}, {57344, 61440, 0},
                 {5 * 0x1p29, 11 * 0x1p28, 0}, {3 * 0x1p30, 13 * 0x1p28, 1}}},
    {4, 8, 16, {{224, 232, 1}, {240, 248, 0}, {53248, 55296, 0}, {57344, 59392, 1}}},
    {5, 4, 8, {{15, 15.25, 1}, {15.5, 15.75, 0}, {232, 236, 0}, {240, 244, 1}}},
    {6, 2, 4, {{3.875, 3.90625, 1}, {3.9375, 3.96875, 0}, {15.25, 15.375, 0}, {15.5, 15.625, 1}}},
    {7, 1, 2, {{63 / 32., 253 / 128., 1}, {127 / 64., 255 / 128., 0},
               {125 / 32., 251 / 64., 0}, {63 / 16., 253 / 64., 1}}},
};
// clang-format on

static void check_p3109(const p3109_row *p, int kind) {
    static const char *const suffixes[] = {"se", "sf", "ue", "uf"};
    static const uint8_t max_codes[] = {0x7E, 0x7F, 0xFD, 0xFE};
    static const uint8_t overflow_codes[] = {0x7F, 0x7F, 0xFE, 0xFE}; // finite domains saturate
    int is_unsigned = kind >= 2, extended = kind % 2 == 0;
    int bias = is_unsigned ? p->bias_unsigned : p->bias_signed;
    char name[QG_NAME_SIZE];
    snprintf(name, sizeof name, "binary8p%d%s", p->p, suffixes[kind]);
    int infinities = extended ? (is_unsigned ? 1 : 2) : 0;
    row r = {name,
             8,
             1,
             0,
             p->kind[kind].max,
             ldexp(1, 1 - bias),
             ldexp(1, 2 - bias - p->p),
             p->kind[kind].threshold,
             p->kind[kind].stays,
             0,
             max_codes[kind],
             overflow_codes[kind],
             is_unsigned ? 0xFF : 0x80,
             255 - infinities,
             infinities,
             1};
    frexp(r.max, &r.emax);
    r.emax--;
    check_row(&r);
}

START_TEST(p3109_formats) {
    ck_assert_uint_eq(sizeof p3109_rows / sizeof p3109_rows[0], 7);
    for (size_t i = 0; i < 7; i++)
        for (int kind = 0; kind < 4; kind++)
            check_p3109(&p3109_rows[i], kind);
}
END_TEST

// All-finite minifloats: F = (2 - 2^-m) 2^(2^e - 1 - bias), every code a number, always saturating.
START_TEST(minifloats) {
    for (int ebits = 1; ebits <= 7; ebits++)
        for (int mbits = 0; ebits + mbits <= 7; mbits++) {
            int bias = (1 << (ebits - 1)) - 1, emax = (1 << ebits) - 1 - bias;
            double step = ldexp(1, emax - mbits);
            uint64_t max_code = (1ull << (ebits + mbits)) - 1;
            char name[QG_NAME_SIZE];
            snprintf(name, sizeof name, "f%de%dm%db%d", 1 + ebits + mbits, ebits, mbits, bias);
            row r = {name,
                     1 + ebits + mbits,
                     1,
                     emax,
                     ldexp(2, emax) - step,
                     ldexp(1, 1 - bias),
                     ldexp(1, 1 - bias - mbits),
                     ldexp(2, emax) - step / 2,
                     0,
                     1,
                     max_code,
                     max_code,
                     NO_NAN,
                     2ll << (ebits + mbits),
                     0,
                     0};
            check_row(&r);
        }
}
END_TEST

START_TEST(an_unknown_id_has_no_bits) {
    ck_assert_int_eq(qg_format_describe(QG_FORMAT_COUNT).bits, 0);
    ck_assert_int_eq(qg_format_describe(UINT32_MAX >> 2).bits, 0);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {published_formats, p3109_formats, minifloats,
                                  an_unknown_id_has_no_bits};
    return RUN_SUITE("format_table", tests);
}
