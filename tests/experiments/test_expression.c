// Expressions of --where and --exclude.
#include <expression.h>
#include <run_suite.h>

#include <math.h>
#include <string.h>

// One row with a column of each type.
typedef struct row {
    const char *format, *tensor;
    int64_t m;
    uint64_t seed, case_id;
    double qsnr_db;
} row;

static qg_cell cell_of(const void *context, qg_column column) {
    const row *r = context;
    qg_cell cell = {0};
    switch (column) {
    case QG_COLUMN_FORMAT: cell.text = r->format; break;
    case QG_COLUMN_TENSOR: cell.text = r->tensor; break;
    case QG_COLUMN_M: cell.i64 = r->m; break;
    case QG_COLUMN_SEED: cell.u64 = r->seed; break;
    case QG_COLUMN_CASE_ID: cell.u64 = r->case_id; break;
    case QG_COLUMN_METRIC_QSNR_DB: cell.f64 = r->qsnr_db; break;
    default: ck_abort_msg("column %d", (int)column);
    }
    return cell;
}

static int columns(size_t i) {
    static const qg_column known[] = {QG_COLUMN_FORMAT,  QG_COLUMN_TENSOR,
                                      QG_COLUMN_M,       QG_COLUMN_SEED,
                                      QG_COLUMN_CASE_ID, QG_COLUMN_METRIC_QSNR_DB};
    return i < sizeof known / sizeof known[0] ? (int)known[i] : -1;
}

static const row ROW = {"mxfp8", "a&b", 128, UINT64_MAX, 0x00ff00ff00ff00ff, 30.5};

static bool holds_for(const row *r, const char *text) {
    qg_expression *e;
    ck_assert_msg(qg_expression_parse(text, columns, &e) == QG_OK, "%s: %s", text, qg_detail());
    bool result = qg_expression_holds(e, cell_of, r);
    qg_expression_free(e);
    return result;
}

static bool holds(const char *text) { return holds_for(&ROW, text); }

START_TEST(texts) {
    ck_assert(holds("format=mxfp8"));
    ck_assert(holds("format==mxfp8"));
    ck_assert(!holds("format=mxfp"));
    ck_assert(holds("format!=e4m3"));
    ck_assert(holds("format=mx*"));
    ck_assert(!holds("format!=mx*"));
    ck_assert(holds(" format = mx?p[48] "));
    ck_assert(!holds("format="));
    ck_assert(holds("tensor=a\\&b"));
}
END_TEST

START_TEST(brackets_of_a_name_are_no_glob_when_equal) {
    row r = ROW;
    r.tensor = "w[0]";
    ck_assert(holds_for(&r, "tensor=w[0]"));
    r.tensor = "";
    ck_assert(holds_for(&r, "tensor="));
}
END_TEST

START_TEST(numbers) {
    ck_assert(holds("m=128") && holds("m>=128") && holds("m<=128") && holds("m>127"));
    ck_assert(holds("m<129") && holds("m!=127") && holds("m>-5"));
    ck_assert(!holds("m<128") && !holds("m>128") && !holds("m!=128"));
    ck_assert(holds("seed=18446744073709551615") && !holds("seed<1") && holds("seed>1"));
    ck_assert(holds("case_id=00ff00ff00ff00ff") && holds("case_id=0xff00ff00ff00ff"));
    ck_assert(holds("case_id=71777214294589695")); // the same in decimal
    ck_assert(holds("qsnr_db>30") && holds("qsnr_db=3.05e1") && !holds("qsnr_db>=31"));
    ck_assert(holds("qsnr_db<inf"));
}
END_TEST

START_TEST(missing_numbers) {
    row r = ROW;
    r.qsnr_db = NAN;
    ck_assert(holds_for(&r, "qsnr_db=nan") && !holds_for(&r, "qsnr_db!=nan"));
    ck_assert(!holds_for(&r, "qsnr_db<30") && !holds_for(&r, "qsnr_db>=30"));
    ck_assert(holds("qsnr_db!=nan") && !holds("qsnr_db=nan") && !holds("qsnr_db<nan"));
}
END_TEST

START_TEST(joined) {
    ck_assert(holds("format=mx*&m>100"));
    ck_assert(!holds("format=mx*&m>200"));
    ck_assert(holds("m>1 & m<1000 & seed>0"));
}
END_TEST

START_TEST(several_or) {
    qg_expressions several = {0};
    ck_assert(!qg_expressions_any(&several, cell_of, &ROW));
    ck_assert_int_eq(qg_expressions_add(&several, "m=1", columns), QG_OK);
    ck_assert(!qg_expressions_any(&several, cell_of, &ROW));
    ck_assert_int_eq(qg_expressions_add(&several, "m=128", columns), QG_OK);
    ck_assert(qg_expressions_any(&several, cell_of, &ROW));
    ck_assert_int_eq(qg_expressions_add(&several, "m=", columns), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(several.count, 2);
    qg_expressions_free(&several);
}
END_TEST

static void check_text(const char *given, const char *canonical) {
    qg_expression *e;
    ck_assert_msg(qg_expression_parse(given, columns, &e) == QG_OK, "%s: %s", given, qg_detail());
    ck_assert_str_eq(qg_expression_text(e), canonical);
    qg_expression_free(e);
}

START_TEST(canonical_texts) {
    check_text(" m >= 3 & format == mx* ", "m>=3&format=mx*");
    check_text("tensor=a\\&b&m=1", "tensor=a\\&b&m=1");
    check_text("metrics/qsnr_db>1", "qsnr_db>1");
    check_text("tensor=", "tensor=");
}
END_TEST

START_TEST(refused) {
    const char *const wrong[][2] = {
        {"",           "no comparison"     },
        {"m",          "no comparison"     },
        {"=3",         "no comparison"     },
        {"m=1&",       "no comparison"     },
        {"&m=1",       "no comparison"     },
        {"m 1",        "no comparison"     },
        {"m~1",        "no comparison"     },
        {"m=",         "nothing"           },
        {"m=x",        "no whole number"   },
        {"m=1.5",      "no whole number"   },
        {"m>>1",       "no whole number"   },
        {"seed=-1",    "no whole number"   },
        {"format<a",   "= and !="          },
        {"format>=a",  "= and !="          },
        {"qsnr_db=x",  "no number"         },
        {"formt=a",    "nearest is format" },
        {"qsnr=1",     "nearest is qsnr_db"},
        {"k=1",        "unknown column"    },
        {"zzzz=1",     "column 'zzzz'"     },
        {"case_id=zz", "no whole number"   },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        qg_expression *e;
        ck_assert_msg(qg_expression_parse(wrong[i][0], columns, &e) == QG_ERROR_ARGUMENT, "%s",
                      wrong[i][0]);
        ck_assert_ptr_null(e);
        ck_assert_msg(strstr(qg_detail(), wrong[i][1]) != NULL, "%s: %s", wrong[i][0], qg_detail());
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {texts,           brackets_of_a_name_are_no_glob_when_equal,
                                  numbers,         missing_numbers,
                                  joined,          several_or,
                                  canonical_texts, refused};
    return RUN_SUITE("expression", tests);
}
