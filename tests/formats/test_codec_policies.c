// Policies and traps of conversion, one directed case each: overflow modes, NaN policies, P3109's
// projection, E8M0's rows, double rounding, and faults that other libraries had.
// Sources: P3109 interim report v4.0, 4.7.4 to 4.7.6; CUDA 13.0 headers (E8M0); the threads named.
#include <qg_format_name.h>
#include <run_suite.h>

#include <float.h>
#include <math.h>

enum { SAT = QG_OVERFLOW_SATURATE, FMT = QG_OVERFLOW_FORMAT };
enum {
    RNE = QG_ROUND_RNE,
    RNA = QG_ROUND_RNA,
    RTZ = QG_ROUND_RTZ,
    RTP = QG_ROUND_RTP,
    RTN = QG_ROUND_RTN,
    RTO = QG_ROUND_RTO
};

static qg_format_info describe(const char *name) {
    qg_format format;
    ck_assert_msg(qg_format_parse(name, &format) == QG_OK, "%s: %s", name, qg_detail());
    return qg_format_describe(format);
}

static uint64_t encode(const char *name, double x, int mode, int overflow) {
    qg_format_info info = describe(name);
    qg_conversion conversion = {
        {(uint8_t)mode, 8},
        (uint8_t)overflow, QG_NAN_TO_MAX
    };
    return qg_encode(&info, x, &conversion, 0xffffffff);
}

static double decode(const char *name, uint64_t code) {
    qg_format_info info = describe(name);
    return qg_decode(&info, code);
}

typedef struct modes_row {
    double x;
    uint8_t rne, rna, rtz, rtp, rtn, rto, stochastic;
} modes_row;

static void check_modes(const char *name, int overflow, const modes_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const modes_row *r = &rows[i];
        const uint8_t want[] = {r->rne, r->rna, r->rtz, r->rtp, r->rtn, r->rto, r->stochastic};
        for (int mode = 0; mode < 7; mode++) {
            uint64_t got = encode(name, r->x, mode, overflow);
            ck_assert_msg(got == want[mode], "%s of %a in mode %d: %02x, not %02x", name, r->x,
                          mode, (unsigned)got, want[mode]);
        }
    }
}

#define CHECK_MODES(name, overflow, rows)                                                          \
    check_modes(name, overflow, rows, sizeof(rows) / sizeof((rows)[0]))

// ----------------------------------------------------------------------- overflow by rounding mode

START_TEST(overflow_in_every_mode) {
    const modes_row e4m3[] = {
        {500,       0x7F, 0x7F, 0x7E, 0x7F, 0x7E, 0x7E, 0x7F},
        {-500,      0xFF, 0xFF, 0xFE, 0xFE, 0xFF, 0xFE, 0xFF},
        {449,       0x7E, 0x7E, 0x7E, 0x7F, 0x7E, 0x7E, 0x7F}, // rounds past the largest value
        {-449,      0xFE, 0xFE, 0xFE, 0xFE, 0xFF, 0xFE, 0xFF},
        {464,       0x7E, 0x7F, 0x7E, 0x7F, 0x7E, 0x7E, 0x7F},
        {1e300,     0x7F, 0x7F, 0x7E, 0x7F, 0x7E, 0x7E, 0x7F},
        {INFINITY,  0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F},
        {-INFINITY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    };
    const modes_row e5m2[] = {
        {1e300,     0x7C, 0x7C, 0x7B, 0x7C, 0x7B, 0x7B, 0x7C},
        {-1e300,    0xFC, 0xFC, 0xFB, 0xFB, 0xFC, 0xFB, 0xFC},
        {57345,     0x7B, 0x7B, 0x7B, 0x7C, 0x7B, 0x7B, 0x7B}, // 1/8192: below 8 bits of A
        {61440,     0x7C, 0x7C, 0x7B, 0x7C, 0x7B, 0x7B, 0x7C},
        {-INFINITY, 0xFC, 0xFC, 0xFC, 0xFC, 0xFC, 0xFC, 0xFC},
    };
    const modes_row fnuz[] = {
        {1000,      0x80, 0x80, 0x7F, 0x80, 0x7F, 0x7F, 0x80},
        {-1000,     0x80, 0x80, 0xFF, 0xFF, 0x80, 0xFF, 0x80},
        {-INFINITY, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
    };
    CHECK_MODES("e4m3", FMT, e4m3);
    CHECK_MODES("e5m2", FMT, e5m2);
    CHECK_MODES("e4m3fnuz", FMT, fnuz);
}
END_TEST

START_TEST(saturation_in_every_mode) {
    for (int mode = 0; mode < QG_ROUND_COUNT; mode++) {
        static const double above[] = {464.5, 500, 1e300, INFINITY};
        for (size_t i = 0; i < 4; i++) {
            ck_assert_uint_eq(encode("e4m3", above[i], mode, SAT), 0x7E);
            ck_assert_uint_eq(encode("e4m3", -above[i], mode, SAT), 0xFE);
            for (int overflow = 0; overflow < 2; overflow++) { // no infinity, no NaN: always
                ck_assert_uint_eq(encode("e2m1", above[i], mode, overflow), 7);
                ck_assert_uint_eq(encode("e3m2", -above[i], mode, overflow), 0x3F);
                ck_assert_uint_eq(encode("mxint8", -above[i], mode, overflow), 0x81);
                ck_assert_uint_eq(encode("int8_full", -above[i], mode, overflow), 0x80);
                ck_assert_uint_eq(encode("f8e4m3b7", 2 * above[i], mode, overflow), 0x7F);
            }
        }
    }
}
END_TEST

START_TEST(nan_policies) {
    static const struct {
        const char *name;
        uint64_t to_max, to_zero;
    } rows[] = {
        {"e2m1",      0x07,   0x08  },
        {"e2m3",      0x1F,   0x20  },
        {"e3m2",      0x1F,   0x20  },
        {"mxint8",    0x7F,   0x00  },
        {"int4",      0x07,   0x00  },
        {"int8_full", 0x7F,   0x00  },
        {"f8e4m3b7",  0x7F,   0x80  },
        {"e4m3",      0x7F,   0x7F  },
        {"e5m2",      0x7F,   0x7F  },
        {"e4m3fnuz",  0x80,   0x80  },
        {"e8m0",      0xFF,   0xFF  },
        {"ue4m3",     0x7F,   0x7F  },
        {"bf16",      0x7FFF, 0x7FFF},
        {"fp16",      0x7FFF, 0x7FFF}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int mode = 0; mode < QG_ROUND_COUNT; mode++)
            for (int overflow = 0; overflow < 2; overflow++)
                for (int negative = 0; negative < 2; negative++) {
                    qg_format_info info = describe(rows[i].name);
                    double x = negative ? -(double)NAN : (double)NAN;
                    qg_conversion c = {
                        {(uint8_t)mode, 8},
                        (uint8_t)overflow, QG_NAN_TO_MAX
                    };
                    ck_assert_uint_eq(qg_encode(&info, x, &c, 0), rows[i].to_max);
                    c.nan = QG_NAN_TO_ZERO;
                    ck_assert_uint_eq(qg_encode(&info, x, &c, 0), rows[i].to_zero);
                }
}
END_TEST

START_TEST(zeros_keep_their_sign_where_there_is_one) {
    static const struct {
        const char *name;
        uint64_t minus_zero;
    } rows[] = {
        {"e4m3",        0x80      },
        {"e5m2",        0x80      },
        {"e2m1",        8         },
        {"e2m3",        0x20      },
        {"e4m3fnuz",    0         },
        {"int8",        0         },
        {"binary8p3se", 0         },
        {"binary8p3ue", 0         },
        {"ue4m3",       0         },
        {"e8m0",        0         },
        {"bf16",        0x8000    },
        {"tf32",        0x80000000}
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(encode(rows[i].name, -0.0, RNE, SAT), rows[i].minus_zero);
        ck_assert_uint_eq(encode(rows[i].name, 0.0, RTN, FMT), 0);
    }
    ck_assert_uint_eq(encode("e4m3", -0x1p-10, RNE, SAT), 0x80); // underflow keeps the sign
    ck_assert_uint_eq(encode("e4m3", -1e-300, RTZ, SAT), 0x80);
    ck_assert_uint_eq(encode("e4m3", 0x1p-10, RNE, SAT), 0x00);
    ck_assert_uint_eq(encode("e4m3", 0x1.000002p-10, RNE, SAT), 0x01);
}
END_TEST

// ------------------------------------------------------------------------------------- P3109

START_TEST(p3109_without_saturation) {
    const modes_row se[] = {
        {1e30,      0x7F, 0x7F, 0x7E, 0x7F, 0x7E, 0x7F, 0x7F}, // to odd: infinity is odd
        {-1e30,     0xFF, 0xFF, 0xFE, 0xFE, 0xFF, 0xFF, 0xFF},
        {53248,     0x7E, 0x7F, 0x7E, 0x7F, 0x7E, 0x7F, 0x7F},
        {INFINITY,  0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F},
        {-INFINITY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    };
    const modes_row sf[] = {
        {1e30,      0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F},
        {-INFINITY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    };
    const modes_row ue[] = {
        {1e30,      0xFE, 0xFE, 0xFD, 0xFE, 0xFD, 0xFD, 0xFE},
        {INFINITY,  0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE},
        {-1,        0xFF, 0xFF, 0x00, 0x00, 0xFF, 0xFF, 0xFF},
        {-1e30,     0xFF, 0xFF, 0x00, 0x00, 0xFF, 0xFF, 0xFF},
        {-1e-30,    0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0x00}, // rounds to zero: not negative
        {-INFINITY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    };
    const modes_row uf[] = {
        {1e30,      0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE},
        {INFINITY,  0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE, 0xFE},
        {-1,        0xFF, 0xFF, 0x00, 0x00, 0xFF, 0xFF, 0xFF},
        {-1e-30,    0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0x00},
        {-INFINITY, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    };
    CHECK_MODES("binary8p3se", FMT, se);
    CHECK_MODES("binary8p3sf", FMT, sf);
    CHECK_MODES("binary8p3ue", FMT, ue);
    CHECK_MODES("binary8p3uf", FMT, uf);
}
END_TEST

START_TEST(p3109_saturating) {
    static const char *const names[] = {"binary8p3se", "binary8p3sf", "binary8p3ue", "binary8p3uf"};
    static const uint64_t largest[] = {0x7E, 0x7F, 0xFD, 0xFE}, smallest[] = {0xFE, 0xFF, 0, 0};
    for (int i = 0; i < 4; i++)
        for (int mode = 0; mode < QG_ROUND_COUNT; mode++) {
            ck_assert_uint_eq(encode(names[i], 1e30, mode, SAT), largest[i]);
            ck_assert_uint_eq(encode(names[i], INFINITY, mode, SAT), largest[i]);
            ck_assert_uint_eq(encode(names[i], -1e30, mode, SAT), smallest[i]);
            ck_assert_uint_eq(encode(names[i], -INFINITY, mode, SAT), smallest[i]);
        }
}
END_TEST

// With one bit of precision, ties go to the even code, that is to every other power of two.
START_TEST(parity_of_one_bit_formats) {
    ck_assert_double_eq(decode("binary8p1uf", encode("binary8p1uf", 1.5, RNE, SAT)), 1);
    ck_assert_double_eq(decode("binary8p1uf", encode("binary8p1uf", 3, RNE, SAT)), 4);
    ck_assert_double_eq(decode("e8m0", encode("e8m0", 1.5, RNE, SAT)), 2);
    ck_assert_double_eq(decode("e8m0", encode("e8m0", 3, RNE, SAT)), 2);
    ck_assert_double_eq(decode("e8m0", encode("e8m0", 3, RNA, SAT)), 4);
    ck_assert_uint_eq(encode("binary8p1uf", 0x1p-128, RNE, SAT), 0); // tie of 0 and 2^-127
    ck_assert_uint_eq(encode("binary8p1uf", 0x1p-128, RNA, SAT), 1);
}
END_TEST

// -------------------------------------------------------------------------------------- E8M0

typedef struct e8m0_row {
    double x;
    uint8_t rz_sat, rz, rp_sat, rp;
} e8m0_row;

START_TEST(e8m0_rows_of_cuda) {
    static const e8m0_row rows[] = {
        {0.0,             0x00, 0x00, 0x00, 0x00},
        {-0.0,            0x00, 0x00, 0x00, 0x00},
        {1.0,             0x7F, 0x7F, 0x7F, 0x7F},
        {-1.0,            0x7F, 0x7F, 0x7F, 0x7F}, // the magnitude is taken
        {1.5,             0x7F, 0x7F, 0x80, 0x80},
        {-3.0,            0x80, 0x80, 0x81, 0x81},
        {1 + 0x1p-52,     0x7F, 0x7F, 0x80, 0x80},
        {0x1p127,         0xFE, 0xFE, 0xFE, 0xFE},
        {0x1.000002p127,  0xFE, 0xFE, 0xFE, 0xFF},
        {-0x1.8p127,      0xFE, 0xFE, 0xFE, 0xFF},
        {FLT_MAX,         0xFE, 0xFE, 0xFE, 0xFF},
        {INFINITY,        0xFE, 0xFF, 0xFE, 0xFF},
        {-INFINITY,       0xFE, 0xFF, 0xFE, 0xFF},
        {NAN,             0xFF, 0xFF, 0xFF, 0xFF},
        {0x1p-149,        0x00, 0x00, 0x00, 0x00},
        {0x1p-130,        0x00, 0x00, 0x00, 0x00}, // not NaN's code, gfloat#62
        {0x1.fffffp-128,  0x00, 0x00, 0x00, 0x00},
        {0x1p-127,        0x00, 0x00, 0x00, 0x00}, // bits 00400000
        {0x1.000002p-127, 0x00, 0x00, 0x01, 0x01}, // 00400001, openvino#34165
        {0x1.8p-127,      0x00, 0x00, 0x01, 0x01},
        {0x1p-126,        0x01, 0x01, 0x01, 0x01},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const e8m0_row *r = &rows[i];
        ck_assert_uint_eq(encode("e8m0", r->x, RTZ, SAT), r->rz_sat);
        ck_assert_uint_eq(encode("e8m0", r->x, RTZ, FMT), r->rz);
        ck_assert_uint_eq(encode("e8m0", r->x, RTP, SAT), r->rp_sat);
        ck_assert_uint_eq(encode("e8m0", r->x, RTP, FMT), r->rp);
    }
}
END_TEST

START_TEST(e8m0_to_nearest) {
    ck_assert_uint_eq(encode("e8m0", 0x1.8p-127, RNE, SAT), 0x00); // tie, code 0 is even
    ck_assert_uint_eq(encode("e8m0", 0x1.8p-127, RNA, SAT), 0x01);
    ck_assert_uint_eq(encode("e8m0", 0x1.7ffffep-127, RNA, SAT), 0x00);
    ck_assert_uint_eq(encode("e8m0", 0x1.800002p-127, RNE, SAT), 0x01);
    ck_assert_uint_eq(encode("e8m0", 0x1.8p127, RNE, FMT), 0xFE); // tie, code FE is even
    ck_assert_uint_eq(encode("e8m0", 0x1.8p127, RNA, FMT), 0xFF);
    ck_assert_uint_eq(encode("e8m0", 0x1.800002p127, RNE, FMT), 0xFF);
    ck_assert_uint_eq(encode("e8m0", 0x1.800002p127, RNE, SAT), 0xFE);
    ck_assert_uint_eq(encode("e8m0", 0x1p-1074, RNA, SAT), 0x00);
}
END_TEST

// NaN must stay NaN when widened (llvm-project#214919).
START_TEST(e8m0_nan_stays_nan) {
    static const char *const wide[] = {"fp16", "bf16", "fp32", "fp64"};
    static const uint64_t nans[] = {0x7FFF, 0x7FFF, 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF};
    for (int i = 0; i < 4; i++)
        for (int overflow = 0; overflow < 2; overflow++)
            ck_assert_uint_eq(encode(wide[i], decode("e8m0", 0xFF), RNE, overflow), nans[i]);
    ck_assert_uint_eq(qg_bits_of_double(decode("e8m0", 0xFF)), 0x7ff8000000000000);
}
END_TEST

// ----------------------------------------------------------------------------- double rounding

static double through(const char *format, double x) {
    return decode(format, encode(format, x, RNE, FMT));
}

START_TEST(one_rounding_not_two) {
    static const struct {
        const char *middle, *format;
        double x;
        uint8_t direct, twice;
    } rows[] = {
        {"fp16", "e4m3", 0x1.000002p-10,   0x01, 0x00},
        {"bf16", "e4m3", 0x1.000002p-10,   0x01, 0x00},
        {"fp16", "e5m2", 0x1.000002p-17,   0x01, 0x00},
        {"bf16", "e5m2", 0x1.000002p-17,   0x01, 0x00},
        {"fp16", "e2m1", 0x1.000002p-2,    0x01, 0x00},
        {"fp16", "e4m3", 1.0625 + 0x1p-23, 0x39, 0x38},
        {"fp32", "e4m3", 1.0625 + 0x1p-40, 0x39, 0x38},
        {"fp32", "e4m3", 464 + 1e-12,      0x7F, 0x7E},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(encode(rows[i].format, rows[i].x, RNE, FMT), rows[i].direct);
        double middle = through(rows[i].middle, rows[i].x);
        ck_assert_uint_eq(encode(rows[i].format, middle, RNE, FMT), rows[i].twice);
    }
}
END_TEST

// To odd in between makes two roundings safe: the second one sees that the first was inexact.
START_TEST(to_odd_between_two_roundings) {
    ck_assert_uint_eq(
        encode("e4m3", decode("fp16", encode("fp16", 1.0625 + 0x1p-23, RTO, FMT)), RNE, FMT), 0x39);
    ck_assert_uint_eq(
        encode("e4m3", decode("fp32", encode("fp32", 464 + 1e-12, RTO, FMT)), RNE, FMT), 0x7F);
}
END_TEST

// ------------------------------------------------------------------- faults of other libraries

START_TEST(saturation_is_on_every_path) { // pytorch#178817
    ck_assert_uint_eq(encode("e4m3", 465, RNE, SAT), 0x7E);
    ck_assert_uint_eq(encode("e4m3", 465, RNE, FMT), 0x7F);
    ck_assert_uint_eq(encode("e4m3", 500, RNE, SAT), 0x7E);
    ck_assert_uint_eq(encode("e4m3", 500, RNE, FMT), 0x7F);
    ck_assert_uint_eq(encode("e4m3", 464, RNE, FMT), 0x7E);
}
END_TEST

START_TEST(round_then_clamp) { // stillwater-sc/universal#1302
    ck_assert_uint_eq(encode("e5m2", 58000, RNE, SAT), 0x7B);
    ck_assert_uint_eq(encode("e5m2", 58000, RNE, FMT), 0x7B);
    ck_assert_uint_eq(encode("e5m2", nextafter(61440, 0), RNE, FMT), 0x7B);
    ck_assert_uint_eq(encode("e5m2", INFINITY, RNE, SAT), 0x7B);
    ck_assert_uint_eq(encode("e5m2", -INFINITY, RNE, SAT), 0xFB);
    ck_assert_uint_eq(encode("e5m2", INFINITY, RNE, FMT), 0x7C);
    ck_assert_uint_eq(encode("e5m2", -INFINITY, RNE, FMT), 0xFC);
}
END_TEST

START_TEST(the_top_binade_is_used) { // sglang#40581
    ck_assert_uint_eq(encode("e4m3", 256, RNE, SAT), 0x78);
    ck_assert_uint_eq(encode("e4m3", 288, RNE, SAT), 0x79);
    ck_assert_uint_eq(encode("e4m3", 300, RNE, SAT), 0x79);
    ck_assert_uint_eq(encode("e4m3", 1.0625, RNE, SAT), 0x38);
    ck_assert_uint_eq(encode("e4m3fnuz", 128, RNE, SAT), 0x78);
    ck_assert_uint_eq(encode("e4m3fnuz", 150, RNE, SAT), 0x79);
    ck_assert_uint_eq(encode("e4m3fnuz", 240, RNE, SAT), 0x7F);
}
END_TEST

START_TEST(fnuz_has_one_zero_and_one_nan) { // onnx#5764, triton#10745
    static const char *const names[] = {"e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "binary8p4se",
                                        "binary8p4sf"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ck_assert_uint_eq(encode(names[i], -1e-8, RNE, SAT), 0x00);
        ck_assert_uint_eq(encode(names[i], -1e-8, RNE, FMT), 0x00);
        ck_assert_uint_eq(encode(names[i], -0.0, RNE, FMT), 0x00);
        ck_assert_uint_eq(encode(names[i], -1e-8, RTN, SAT), 0x81);
        ck_assert_double_nan(decode(names[i], 0x80));
        ck_assert_uint_eq(qg_bits_of_double(decode(names[i], 0)), 0);
    }
}
END_TEST

START_TEST(ue5m3_has_a_top_binade) { // cutlass#3602
    for (uint64_t code = 0xF8; code <= 0xFE; code++)
        ck_assert_double_eq(decode("ue5m3", code), 65536 * (1 + (double)(code - 0xF8) / 8));
    ck_assert_double_nan(decode("ue5m3", 0xFF));
    ck_assert_uint_eq(encode("ue5m3", 114688, RNE, SAT), 0xFE);
}
END_TEST

START_TEST(subnormals_round_once_with_sticky) { // tt-metal#51971
    ck_assert_uint_eq(encode("e2m1", 0.25, RNE, SAT), 0);
    ck_assert_uint_eq(encode("e2m1", 0.25000006, RNE, SAT), 1);
    ck_assert_uint_eq(encode("e2m1", 0.75, RNE, SAT), 2);
    ck_assert_uint_eq(encode("e2m1", nextafter(0.75, 0), RNE, SAT), 1);
    for (int i = 0; i < 8; i++) { // E4M3 subnormals: ties between i and i + 1
        double tie = (i + 0.5) * 0x1p-9;
        ck_assert_uint_eq(encode("e4m3", tie, RNE, SAT), (uint64_t)(i + i % 2));
        ck_assert_uint_eq(encode("e4m3", nextafter(tie, 0), RNE, SAT), (uint64_t)i);
        ck_assert_uint_eq(encode("e4m3", nextafter(tie, 1), RNE, SAT), (uint64_t)i + 1);
    }
}
END_TEST

// Far below the smallest value only a sticky bit is left of the input; directed modes see it.
START_TEST(the_smallest_inputs) {
    static const double inputs[] = {0x1p-10, 0x1p-60, 0x1p-75, 0x1p-140, 0x1p-300, 0x1p-1074};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        ck_assert_uint_eq(encode("e4m3", inputs[i], RTP, SAT), 0x01);
        ck_assert_uint_eq(encode("e4m3", -inputs[i], RTN, SAT), 0x81);
        ck_assert_uint_eq(encode("e4m3", -inputs[i], RTP, SAT), 0x80);
        ck_assert_uint_eq(encode("e4m3", inputs[i], RTO, SAT), 0x01);
        ck_assert_uint_eq(encode("int8", -inputs[i], RTN, SAT), 0xFF);
        ck_assert_uint_eq(encode("ue4m3", -inputs[i], RTN, FMT), 0x7F);
        ck_assert_uint_eq(encode("ue4m3", -inputs[i], RTN, SAT), 0x00);
    }
}
END_TEST

// The lowest code of two's complement is decoded, and produced by int8_full alone.
START_TEST(integers) {
    ck_assert_double_eq(decode("int8", 0x80), -128);
    ck_assert_double_eq(decode("mxint8", 0x80), -2);
    ck_assert_double_eq(decode("mxint8", 0x81), -1.984375);
    ck_assert_double_eq(decode("mxint6", 0x20), -2);
    ck_assert_double_eq(decode("mxint4", 0x08), -2);
    ck_assert_double_eq(decode("int4", 0x0F), -1);
    ck_assert_uint_eq(encode("int8", -128, RNE, SAT), 0x81);
    ck_assert_uint_eq(encode("int8", -127.5, RNE, SAT), 0x81);
    ck_assert_uint_eq(encode("int8_full", -127.5, RNE, SAT), 0x80);
    ck_assert_uint_eq(encode("int8_full", -128, RTZ, SAT), 0x80);
    ck_assert_uint_eq(encode("int8_full", 127.5, RNE, SAT), 0x7F);
    ck_assert_uint_eq(encode("int8_full", -1e18, RNE, SAT), 0x80);
    ck_assert_uint_eq(encode("mxint4", -0.625, RNE, SAT), 0x0E); // tie of -0.5 and -0.75
    ck_assert_uint_eq(encode("int4", -2.5, RNA, SAT), 0x0D);
    ck_assert_uint_eq(encode("int4", -2.5, RTP, SAT), 0x0E);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {overflow_in_every_mode,
                                  saturation_in_every_mode,
                                  nan_policies,
                                  zeros_keep_their_sign_where_there_is_one,
                                  p3109_without_saturation,
                                  p3109_saturating,
                                  parity_of_one_bit_formats,
                                  e8m0_rows_of_cuda,
                                  e8m0_to_nearest,
                                  e8m0_nan_stays_nan,
                                  one_rounding_not_two,
                                  to_odd_between_two_roundings,
                                  saturation_is_on_every_path,
                                  round_then_clamp,
                                  the_top_binade_is_used,
                                  fnuz_has_one_zero_and_one_nan,
                                  ue5m3_has_a_top_binade,
                                  subnormals_round_once_with_sticky,
                                  the_smallest_inputs,
                                  integers};
    return RUN_SUITE("codec_policies", tests);
}
