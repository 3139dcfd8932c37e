// Suggestions for unknown names, and hints where nothing is near.
#include <near_words.h>
#include <run_suite.h>

#include <string.h>

static const char *word(size_t i) {
    static const char *const words[] = {"scale_rule", "scale_format", "scale_rule_b", "m",
                                        "qsnr_db",    "mse",          "status"};
    return i < sizeof words / sizeof words[0] ? words[i] : NULL;
}

static const char *none(size_t i) {
    (void)i;
    return NULL;
}

START_TEST(near) {
    static const char *const cases[][2] = {
        {"scale_rul",   "scale_rule, scale_rule_b"              }, // a beginning of several
        {"scale",       "scale_rule, scale_format, scale_rule_b"}, //
        {"scale_rulee", "scale_rule"                            }, // one edit
        {"STATUZ",      "status"                                }, //
        {"qsnr",        "qsnr_db"                               }, // a beginning of one
        {"rule",        "scale_rule, scale_rule_b"              }, // a part
        {"my_status",   "status"                                }, // holds one
        {"zzzz",        ""                                      },
        {"",            ""                                      },
        {"[%s]",        ""                                      },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        bool found = qg_near_words(cases[i][0], word, text, sizeof text);
        ck_assert_str_eq(text, cases[i][1]);
        ck_assert_int_eq(found, cases[i][1][0] != 0);
        ck_assert(!qg_near_words(cases[i][0], none, text, sizeof text));
    }
    char small[8] = "#######";
    ck_assert(qg_near_words("scale", word, small, sizeof small)); // cut, not overrun
    ck_assert_uint_lt(strlen(small), sizeof small);
}
END_TEST

START_TEST(messages) {
    ck_assert_int_eq(qg_near_unknown("column", "rule", word), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(),
                     "unknown column 'rule'; the nearest are scale_rule, scale_rule_b");
    ck_assert_int_eq(qg_near_hint(QG_ERROR_ARGUMENT, "ask"), QG_ERROR_ARGUMENT);
    ck_assert_ptr_null(strstr(qg_detail(), "ask")); // something is near
    qg_near_unknown("column", "zzzz", word);
    ck_assert_int_eq(qg_near_hint(QG_ERROR_ARGUMENT, "ask"), QG_ERROR_ARGUMENT);
    ck_assert_str_eq(qg_detail(), "unknown column 'zzzz'; ask");
    qg_fail(QG_ERROR_ARGUMENT, "no number");
    qg_near_hint(QG_ERROR_ARGUMENT, "ask");
    ck_assert_str_eq(qg_detail(), "no number");
    ck_assert_int_eq(qg_near_hint(QG_OK, "ask"), QG_OK);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {near, messages};
    return RUN_SUITE("near_words", tests);
}
