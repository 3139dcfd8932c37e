// Names of formats and rounding modes: printing, reading, refusing with a suggestion.
#include <qg_format_name.h>
#include <run_suite.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void check_reads_as(const char *word, const char *canonical) {
    qg_format format;
    char name[QG_NAME_SIZE], upper[QG_NAME_SIZE];
    ck_assert_msg(qg_format_parse(word, &format) == QG_OK, "%s: %s", word, qg_detail());
    qg_format_name(format, name);
    ck_assert_msg(strcmp(name, canonical) == 0, "%s is printed %s, not %s", word, name, canonical);
    for (size_t i = 0; i <= strlen(word); i++)
        upper[i] = (char)toupper((unsigned char)word[i]);
    qg_format again;
    ck_assert_int_eq(qg_format_parse(upper, &again), QG_OK);
    ck_assert_uint_eq(again, format);
    ck_assert_int_eq(qg_format_parse(name, &again), QG_OK);
    ck_assert_uint_eq(again, format);
}

static void check_refused(const char *word, const char *detail) {
    qg_format format = 12345;
    ck_assert_msg(qg_format_parse(word, &format) == QG_ERROR_ARGUMENT, "%s was accepted", word);
    ck_assert_uint_eq(format, 12345);
    ck_assert_msg(strcmp(qg_detail(), detail) == 0, "%s: detail is '%s', not '%s'", word,
                  qg_detail(), detail);
}

START_TEST(every_row_reads_back) {
    size_t count = 0;
    for (; qg_format_listed(count); count++) {
        qg_format format;
        ck_assert_int_eq(qg_format_parse(qg_format_listed(count), &format), QG_OK);
        ck_assert_uint_eq(format, count);
        check_reads_as(qg_format_listed(count), qg_format_listed(count));
    }
    ck_assert_uint_eq(count, QG_FORMAT_COUNT);
    ck_assert_uint_eq(count, 25 + 28);
}
END_TEST

START_TEST(the_documented_names_exist) {
    static const char *const names[] = {"e4m3",      "e5m2",  "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz",
                                        "e4m3_ieee", "e3m4",  "e2m3",     "e3m2",     "e2m1",
                                        "e8m0",      "ue4m3", "ue5m3",    "mxint8",   "mxint6",
                                        "mxint4",    "int8",  "int6",     "int4",     "int8_full",
                                        "bf16",      "fp16",  "tf32",     "fp32",     "fp64"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        check_reads_as(names[i], names[i]);
    for (int p = 1; p <= 7; p++)
        for (int kind = 0; kind < 4; kind++) {
            char name[QG_NAME_SIZE];
            snprintf(name, sizeof name, "binary8p%d%s", p,
                     (const char *const[]){"se", "sf", "ue", "uf"}[kind]);
            check_reads_as(name, name);
        }
}
END_TEST

START_TEST(aliases) {
    static const char *const pairs[][2] = {
        {"f16",                "fp16"       },
        {"half",               "fp16"       },
        {"float16",            "fp16"       },
        {"f32",                "fp32"       },
        {"float",              "fp32"       },
        {"float32",            "fp32"       },
        {"f64",                "fp64"       },
        {"double",             "fp64"       },
        {"float64",            "fp64"       },
        {"bfloat16",           "bf16"       },
        {"e4m3fn",             "e4m3"       },
        {"float8_e4m3fn",      "e4m3"       },
        {"f8e4m3fn",           "e4m3"       },
        {"fp8_e4m3",           "e4m3"       },
        {"float8_e4m3",        "e4m3_ieee"  },
        {"float8_e5m2",        "e5m2"       },
        {"fp8_e5m2",           "e5m2"       },
        {"float8_e4m3fnuz",    "e4m3fnuz"   },
        {"f8e4m3fnuz",         "e4m3fnuz"   },
        {"float8_e5m2fnuz",    "e5m2fnuz"   },
        {"f8e5m2fnuz",         "e5m2fnuz"   },
        {"float8_e4m3b11fnuz", "e4m3b11fnuz"},
        {"float8_e3m4",        "e3m4"       },
        {"float8_e8m0fnu",     "e8m0"       },
        {"f8e8m0fnu",          "e8m0"       },
        {"ue8m0",              "e8m0"       },
        {"float6_e2m3fn",      "e2m3"       },
        {"fp6_e2m3",           "e2m3"       },
        {"float6_e3m2fn",      "e3m2"       },
        {"fp6_e3m2",           "e3m2"       },
        {"float4_e2m1fn",      "e2m1"       },
        {"fp4_e2m1",           "e2m1"       },
        {"f8e4m3",             "e4m3"       }, // five minifloat names mean the hardware format
        {"f8e5m2",             "e5m2"       },
        {"f6e2m3",             "e2m3"       },
        {"f6e3m2",             "e3m2"       },
        {"f4e2m1",             "e2m1"       },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_reads_as(pairs[i][0], pairs[i][1]);
}
END_TEST

START_TEST(minifloats_print_their_bias_only_where_needed) {
    static const char *const pairs[][2] = {
        {"f8e4m3b7",    "f8e4m3b7"   },
        {"f8e5m2b15",   "f8e5m2b15"  },
        {"f6e2m3b1",    "f6e2m3b1"   },
        {"f6e3m2b3",    "f6e3m2b3"   },
        {"f4e2m1b1",    "f4e2m1b1"   },
        {"f8e4m3b8",    "f8e4m3b8"   },
        {"f8e3m4",      "f8e3m4"     },
        {"f8e3m4b3",    "f8e3m4"     },
        {"f8e2m5b1",    "f8e2m5"     },
        {"f8e1m6b0",    "f8e1m6"     },
        {"f8e1m6b-0",   "f8e1m6"     },
        {"f8e4m3b-5",   "f8e4m3b-5"  },
        {"f8e4m3b-112", "f8e4m3b-112"},
        {"f2e1m0b150",  "f2e1m0b150" }
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_reads_as(pairs[i][0], pairs[i][1]);
    qg_format twin, hardware;
    qg_format_parse("f8e4m3b7", &twin);
    qg_format_parse("f8e4m3", &hardware);
    ck_assert_uint_ne(twin, hardware);
    qg_format_info info = qg_format_describe(twin);
    ck_assert_double_eq(qg_format_max(&info), 480.0);
}
END_TEST

START_TEST(every_split_and_every_bias) {
    int count = 0;
    for (int bits = 2; bits <= 8; bits++)
        for (int ebits = 1; ebits < bits; ebits++, count++)
            for (int bias = -160; bias <= 260; bias++) {
                int mbits = bits - 1 - ebits;
                char name[QG_NAME_SIZE], printed[QG_NAME_SIZE];
                snprintf(name, sizeof name, "f%de%dm%db%d", bits, ebits, mbits, bias);
                qg_format format = qg_format_minifloat(ebits, mbits, bias), read;
                qg_format_info info = qg_format_describe(format);
                int representable =
                    qg_format_max(&info) < 0x1p128 && qg_format_min_positive(&info) >= 0x1p-149;
                ck_assert_int_eq(qg_format_parse(name, &read) == QG_OK, representable);
                if (!representable)
                    continue;
                ck_assert_uint_eq(read, format);
                qg_format_name(format, printed);
                ck_assert_int_eq(qg_format_parse(printed, &read), QG_OK);
                ck_assert_uint_eq(read, format);
            }
    ck_assert_int_eq(count, 28);
}
END_TEST

START_TEST(refusals_say_why) {
    check_refused("e4m4", "unknown format 'e4m4'; the nearest is e4m3");
    check_refused("bfloat61", "unknown format 'bfloat61'; the nearest is bf16");
    check_refused("float8_e4m3nf", "unknown format 'float8_e4m3nf'; the nearest is e4m3");
    check_refused("INT9", "unknown format 'INT9'; the nearest is int8");
    check_refused("posit", "unknown format 'posit'");
    check_refused("", "unknown format ''");
    check_refused("f8e4m4", "format 'f8e4m4': a sign, 4 exponent and 4 mantissa bits are 9 bits, "
                            "not 8");
    check_refused("F8E4M4", "format 'F8E4M4': a sign, 4 exponent and 4 mantissa bits are 9 bits, "
                            "not 8");
    check_refused("f8e0m7", "format 'f8e0m7': a minifloat needs an exponent bit");
    check_refused("f16e5m10", "format 'f16e5m10': a minifloat has at most 8 bits");
    check_refused("f9e8m0", "format 'f9e8m0': a minifloat has at most 8 bits");
    check_refused("f8e4m3b-113", "format 'f8e4m3b-113': bias -113 gives values that binary32 "
                                 "cannot hold; it must be in -112 .. 147");
    check_refused("f8e4m3b148", "format 'f8e4m3b148': bias 148 gives values that binary32 cannot "
                                "hold; it must be in -112 .. 147");
    check_refused("f9999e9999m9999b9999", "format 'f9999e9999m9999b9999': a sign, 9999 exponent "
                                          "and 9999 mantissa bits are 19999 bits, not 9999");
}
END_TEST

START_TEST(malformed_words_are_unknown) {
    static const char *const words[] = {
        "f8e4m3b",
        "f8e4m3b-",
        "f8e4m3b+7",
        "f8e4m3b7x",
        "f8e4m3b--7",
        "f8e4m3 ",
        " e4m3",
        "f8e4",
        "f8",
        "f8em3",
        "f8e-4m3",
        "fe4m3b7",
        "f8m3e4",
        "8e4m3",
        "e4m3\n",
        "f8e4m3b7b7",
        "binary8p0se",
        "binary8p8se",
        "binary8p3",
        "mxfp8",
        "f8e4m3b99999999999999999999",
        "f99999999999e4m3",
        "an_endless_name_that_is_longer_than_any_name_that_there_is_in_the_table"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        qg_format format;
        ck_assert_msg(qg_format_parse(words[i], &format) == QG_ERROR_ARGUMENT, "'%s'", words[i]);
        ck_assert_ptr_eq(strstr(qg_detail(), "unknown format"), qg_detail());
    }
    char name[QG_NAME_SIZE];
    qg_format_name(QG_FORMAT_COUNT, name);
    ck_assert_str_eq(name, "unknown");
}
END_TEST

// A long name whose first 47 characters are a name must not be taken for it.
START_TEST(long_words_are_not_cut_to_a_name) {
    char word[200];
    memset(word, '0', sizeof word);
    memcpy(word, "f8e4m3b", 7);
    word[sizeof word - 1] = 0;
    qg_format format;
    ck_assert_int_eq(qg_format_parse(word, &format), QG_ERROR_ARGUMENT);
}
END_TEST

static void check_rounding(const char *word, int mode, int bits, const char *printed) {
    qg_rounding rounding;
    char name[QG_NAME_SIZE];
    ck_assert_msg(qg_rounding_parse(word, &rounding) == QG_OK, "%s: %s", word, qg_detail());
    ck_assert_int_eq(rounding.mode, mode);
    ck_assert_int_eq(rounding.bits, bits);
    qg_rounding_name(rounding, name);
    ck_assert_str_eq(name, printed);
}

START_TEST(rounding_modes) {
    check_rounding("rne", QG_ROUND_RNE, 0, "rne");
    check_rounding("rna", QG_ROUND_RNA, 0, "rna");
    check_rounding("rtz", QG_ROUND_RTZ, 0, "rtz");
    check_rounding("rtp", QG_ROUND_RTP, 0, "rtp");
    check_rounding("rtn", QG_ROUND_RTN, 0, "rtn");
    check_rounding("RTO", QG_ROUND_RTO, 0, "rto");
    check_rounding("stochastic", QG_ROUND_STOCHASTIC_A, 16, "stochastic:A:16");
    check_rounding("stochastic:A", QG_ROUND_STOCHASTIC_A, 16, "stochastic:A:16");
    check_rounding("stochastic:b", QG_ROUND_STOCHASTIC_B, 16, "stochastic:B:16");
    check_rounding("Stochastic:C:1", QG_ROUND_STOCHASTIC_C, 1, "stochastic:C:1");
    check_rounding("stochastic:A:32", QG_ROUND_STOCHASTIC_A, 32, "stochastic:A:32");
    for (size_t i = 0; qg_rounding_listed(i); i++) {
        qg_rounding rounding;
        ck_assert_int_eq(qg_rounding_parse(qg_rounding_listed(i), &rounding), QG_OK);
        ck_assert_uint_eq(rounding.mode, i);
        ck_assert_uint_lt(i, 7);
    }
    char name[QG_NAME_SIZE];
    qg_rounding_name((qg_rounding){QG_ROUND_COUNT, 0}, name);
    ck_assert_str_eq(name, "unknown");
}
END_TEST

START_TEST(rounding_refusals_say_why) {
    static const char *const stochastic[] = {
        "stochastic:",   "stochastic:D",     "stochastic:A:", "stochastic:A:0",  "stochastic:A:33",
        "stochastic:16", "stochastic:A:16:", "stochastic:AB", "stochastic:A:-1", "stochastic:A:x"};
    qg_rounding rounding;
    for (size_t i = 0; i < sizeof stochastic / sizeof stochastic[0]; i++) {
        ck_assert_msg(qg_rounding_parse(stochastic[i], &rounding) == QG_ERROR_ARGUMENT, "%s",
                      stochastic[i]);
        ck_assert_ptr_nonnull(strstr(qg_detail(), "stochastic[:A|B|C[:BITS]]"));
    }
    ck_assert_int_eq(qg_rounding_parse("rnw", &rounding), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "unknown rounding 'rnw'; the nearest is rne");
    ck_assert_int_eq(qg_rounding_parse("stochastik", &rounding), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "unknown rounding 'stochastik'; the nearest is stochastic");
    ck_assert_int_eq(qg_rounding_parse("upwards", &rounding), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "unknown rounding 'upwards'");
    ck_assert_int_eq(qg_rounding_parse("", &rounding), QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {every_row_reads_back,
                                  the_documented_names_exist,
                                  aliases,
                                  minifloats_print_their_bias_only_where_needed,
                                  every_split_and_every_bias,
                                  refusals_say_why,
                                  malformed_words_are_unknown,
                                  long_words_are_not_cut_to_a_name,
                                  rounding_modes,
                                  rounding_refusals_say_why};
    return RUN_SUITE("format_name", tests);
}
