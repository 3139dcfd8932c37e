// Data laws: names, values against their definitions, tiling, statistics, golden digests.
#include <qg_data.h>

#include <check.h>
#include <law_internal.h>
#include <math.h> // INFINITY
#include <qg_codec.h>
#include <qg_digest.h>
#include <qg_elementary.h>
#include <qg_philox.h>
#include <require.h>
#include <run_suite.h>
#include <stdlib.h>
#include <string.h>

#include "student_values.h"

static qg_law *law_of(const char *text) {
    qg_law *law;
    ck_assert_msg(qg_law_parse(text, &law) == QG_OK, "%s: %s", text, qg_detail());
    return law;
}

static float *generate(const char *text, uint64_t seed, int operand, int64_t rows, int64_t k) {
    float *x = malloc(sizeof *x * (size_t)(rows * k));
    qg_law *law = law_of(text);
    qg_law_generate(law, seed, operand, k, 0, rows, x);
    qg_law_free(law);
    return x;
}

// ------------------------------------------------------------------------------------------- names

START_TEST(names_are_canonical) {
    static const char *const cases[][2] = {
        {"normal",                "normal"                              },
        {"laplace:abs",           "laplace:abs"                         },
        {"uniform",               "uniform:1.7320508075688772"          },
        {"uniform:1.0",           "uniform:1"                           },
        {"uniform:1:abs",         "uniform:1:abs"                       },
        {"uniform:abs",           "uniform:1.7320508075688772:abs"      },
        {"student_t:5",           "student_t:5"                         },
        {"student_t:30.50",       "student_t:30.5"                      },
        {"lognormal:.25",         "lognormal:0.25"                      },
        {"outliers:1e1",          "outliers:10"                         },
        {"outliers:1e22",         "outliers:1e+22"                      },
        {"crest:4",               "crest:4:32"                          },
        {"crest:4:64",            "crest:4:64"                          },
        {"normal:sigma=2",        "normal:sigma=2"                      },
        {"normal:sigma=1",        "normal"                              },
        {"normal:sigma=0.02:abs", "normal:abs:sigma=0.02"               },
        {"crest:4:sigma=3",       "crest:4:32:sigma=3"                  },
        {"uniform:sigma=0.1",     "uniform:1.7320508075688772:sigma=0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qg_law *law = law_of(cases[i][0]);
        ck_assert_str_eq(qg_law_name(law), cases[i][1]);
        qg_law *again = law_of(qg_law_name(law)); // the canonical name is its own
        ck_assert_str_eq(qg_law_name(again), cases[i][1]);
        qg_law_free(law);
        qg_law_free(again);
    }
    ck_assert_str_eq(qg_law_listed(0), "normal");
    ck_assert_str_eq(qg_law_listed(6), "crest:K[:G]");
    ck_assert_ptr_null(qg_law_listed(7));
    qg_law_free(NULL);
}
END_TEST

START_TEST(malformed_laws_are_refused_with_a_reason) {
    static const char *const cases[][2] = {
        {"",                       "unknown law \"\""                             },
        {"gauss",                  "unknown law \"gauss\": normal, laplace"       },
        {"normel",                 "did you mean normal?"                         },
        {"student-t:5",            "did you mean student_t?"                      },
        {"Normal",                 "did you mean normal?"                         },
        {"normal ",                "unknown law"                                  },
        {"normal:",                "out of place"                                 },
        {"normal:1",               "out of place"                                 },
        {"normal:abs:abs",         "out of place"                                 },
        {"normal:sigma=1:sigma=2", "out of place"                                 },
        {"normal:sigma=",          "out of place"                                 },
        {"normal:sigma=0",         "not a positive"                               },
        {"normal:sigma=-1",        "not a positive"                               },
        {"normal:sigma=inf",       "not a positive"                               },
        {"normal:sigma=1x",        "not a positive"                               },
        {"normal:sigma=1e999",     "not a positive"                               },
        {"uniform:0",              "not a positive"                               },
        {"uniform:-1",             "not a positive"                               },
        {"uniform: 1",             "not a positive"                               },
        {"uniform:0x1",            "not a positive"                               },
        {"uniform:nan",            "not a positive"                               },
        {"uniform:1:2",            "out of place"                                 },
        {"student_t",              "needs a parameter: student_t:NU"              },
        {"student_t:abs",          "needs a parameter"                            },
        {"student_t:0",            "not a positive"                               },
        {"lognormal:sigma=1",      "needs a parameter"                            },
        {"outliers:",              "not a positive"                               },
        {"crest",                  "needs a parameter"                            },
        {"crest:6",                "needs blocks of more than 36 elements, not 32"},
        {"crest:8:64",             "needs blocks of more than 64"                 },
        {"crest:2:4.5",            "not a whole number"                           },
        {"crest:2:32:1",           "out of place"                                 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qg_law *law;
        ck_assert_msg(qg_law_parse(cases[i][0], &law) == QG_ERROR_ARGUMENT, "%s", cases[i][0]);
        ck_assert_ptr_null(law);
        ck_assert_msg(strstr(qg_detail(), cases[i][1]) != NULL, "\"%s\": %s", cases[i][0],
                      qg_detail());
        ck_assert_ptr_null(strchr(qg_detail(), '\n'));
    }
}
END_TEST

START_TEST(density_is_known_only_where_theory_applies) {
    static const struct {
        const char *text;
        qg_density density;
        double sigma;
    } cases[] = {
        {"normal",          QG_DENSITY_NORMAL,  1},
        {"normal:sigma=2",  QG_DENSITY_NORMAL,  2},
        {"laplace:sigma=3", QG_DENSITY_LAPLACE, 3},
        {"uniform",         QG_DENSITY_UNIFORM, 1},
        {"uniform:sigma=4", QG_DENSITY_UNIFORM, 4},
        {"normal:abs",      QG_DENSITY_NONE,    0},
        {"student_t:5",     QG_DENSITY_NONE,    0},
        {"outliers:10",     QG_DENSITY_NONE,    0},
        {"crest:4",         QG_DENSITY_NONE,    0},
        {"lognormal:1",     QG_DENSITY_NONE,    0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qg_law *law = law_of(cases[i].text);
        double sigma = 0;
        ck_assert_int_eq(qg_law_density(law, &sigma), cases[i].density);
        ck_assert(cases[i].density == QG_DENSITY_NONE || sigma == cases[i].sigma);
        qg_law_free(law);
    }
    double sigma;
    qg_law *law = law_of("uniform:6:sigma=0.5"); // A sigma / sqrt 3
    ck_assert_int_eq(qg_law_density(law, &sigma), QG_DENSITY_UNIFORM);
    ck_assert(fabs(sigma - sqrt(3)) < 1e-15);
    qg_law_free(law);
}
END_TEST

// ------------------------------------------------------- values against the definition, one by one

enum { ROWS = 9, K = 1031 }; // K is prime: rows start at every place of a Philox quad

static double probability(uint64_t seed, uint32_t stream, int64_t index) {
    return (qg_philox_word(seed, stream, (uint64_t)index) + 0.5) * 0x1p-32;
}

static double z_of(uint64_t seed, int64_t index) {
    return qg_normal_quantile(probability(seed, 0, index));
}

static void require_same(const char *text, const float *x, int64_t i, double value) {
    REQUIRE(qg_bits_of_float(x[i]) == qg_bits_of_float((float)value),
            "%s, element %lld: %a, not %a", text, (long long)i, (double)x[i], value);
}

START_TEST(independent_elements_follow_their_definition) {
    const uint64_t seed = 0x123456789abcdefull;
    float *normal = generate("normal", seed, 0, ROWS, K);
    float *scaled = generate("normal:sigma=0.3:abs", seed, 0, ROWS, K);
    float *laplace = generate("laplace", seed, 0, ROWS, K);
    float *uniform = generate("uniform", seed, 0, ROWS, K);
    float *lognormal = generate("lognormal:0.7", seed, 0, ROWS, K);
    float *other = generate("normal", seed, 1, ROWS, K);
    for (int64_t i = 0; i < ROWS * K; i++) {
        double p = probability(seed, 0, i), z = qg_normal_quantile(p);
        require_same("normal", normal, i, z);
        require_same("normal:sigma=0.3:abs", scaled, i, 0.3 * fabs(z));
        require_same("laplace", laplace, i,
                     p < 0.5 ? 0.70710678118654757 * qg_log(2 * p)
                             : -0.70710678118654757 * qg_log(2 * (1 - p)));
        require_same("uniform", uniform, i, 1.7320508075688772 * (2 * p - 1));
        int negative = qg_philox_word(seed, 1, (uint64_t)i) >> 31 == 1;
        require_same("lognormal:0.7", lognormal, i, (negative ? -1 : 1) * qg_exp(0.7 * z));
        require_same("normal of b", other, i, qg_normal_quantile(probability(seed, 4, i)));
    }
    free(normal), free(scaled), free(laplace), free(uniform), free(lognormal), free(other);
}
END_TEST

START_TEST(student_t_matches_reference_values) {
    t_knot *knots = malloc(sizeof *knots * T_KNOTS);
    double nu = 0;
    for (size_t i = 0; i < sizeof student_values / sizeof *student_values; i++) {
        student_value v = student_values[i];
        if (v.nu != nu)
            student_tabulate(nu = v.nu, knots);
        double t = v.z * qg_exp(student_log_ratio(knots, v.z));
        ck_assert_msg(fabs(t / v.t - 1) < 1e-10, "nu %g, z %g: %.17g, not %.17g", v.nu, v.z, t,
                      v.t);
    }
    free(knots);
}
END_TEST

START_TEST(student_t_has_closed_forms_for_1_and_2) {
    const double pi = 3.14159265358979323846;
    float *cauchy = generate("student_t:1", 5, 0, ROWS, K);
    float *two = generate("student_t:2", 5, 0, ROWS, K);
    for (int64_t i = 0; i < ROWS * K; i++) {
        double p = probability(5, 0, i), q = p - 0.5;
        REQUIRE(fabs(cauchy[i] / tan(pi * q) - 1) < 1e-6, "Cauchy, element %lld", (long long)i);
        REQUIRE(fabs(two[i] / (q * sqrt(2 / (p * (1 - p)))) - 1) < 1e-6, "nu = 2, element %lld",
                (long long)i);
    }
    free(cauchy), free(two);
}
END_TEST

START_TEST(student_t_takes_any_nu) {
    static const char *const texts[] = {"student_t:0.01", "student_t:0.3", "student_t:1e6",
                                        "student_t:1e200"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float *x = generate(texts[i], 5, 0, ROWS, K);
        for (int64_t j = 0; j < ROWS * K; j++) {
            double z = z_of(5, j);
            REQUIRE(x[j] == x[j] && (x[j] < 0) == (z < 0), "%s", texts[i]);
            REQUIRE(i < 2 || fabs(x[j] / z - 1) < 1e-4, "%s is nearly normal", texts[i]);
        }
        free(x);
    }
}
END_TEST

START_TEST(outliers_scale_the_columns_that_stream_1_selects) {
    for (uint64_t seed = 0; seed < 40; seed++) {
        enum { WIDTH = 70 }; // P(no column selected) = 0.58: both cases occur
        float *x = generate("outliers:16", seed, 0, ROWS, WIDTH);
        int64_t smallest = 0, selected = 0;
        for (int64_t c = 0; c < WIDTH; c++) {
            uint32_t word = qg_philox_word(seed, 1, (uint64_t)c);
            selected += word < 1u << 25;
            if (word < qg_philox_word(seed, 1, (uint64_t)smallest))
                smallest = c;
        }
        for (int64_t i = 0; i < ROWS * WIDTH; i++) {
            int64_t c = i % WIDTH;
            int outlier =
                selected ? qg_philox_word(seed, 1, (uint64_t)c) < 1u << 25 : c == smallest;
            require_same("outliers:16", x, i, outlier ? 16 * z_of(seed, i) : z_of(seed, i));
        }
        free(x);
    }
}
END_TEST

// The definition of crest, block by block, written without batches.
static void check_crest(const char *text, double crest, int64_t g, int64_t k) {
    const uint64_t seed = 77;
    float *x = generate(text, seed, 0, ROWS, k);
    int64_t blocks = (k + g - 1) / g;
    for (int64_t b = 0; b < ROWS * blocks; b++) {
        int64_t first = b / blocks * k + b % blocks * g;
        int64_t size = b % blocks == blocks - 1 ? k - (blocks - 1) * g : g, place = -1;
        double sum = 0, peak = INFINITY;
        if (crest * crest < (double)size) {
            place =
                (int64_t)((uint64_t)qg_philox_word(seed, 1, (uint64_t)b) * (uint64_t)size >> 32);
            for (int64_t i = 0; i < size; i++)
                sum += i == place ? 0 : z_of(seed, first + i) * z_of(seed, first + i);
            peak = crest * sqrt(sum / ((double)size - crest * crest));
        }
        for (int64_t i = 0; i < size; i++) {
            double z = z_of(seed, first + i);
            double value = i == place || fabs(z) > peak ? copysign(peak, z) : z;
            require_same(text, x, first + i, value);
        }
    }
    free(x);
}

START_TEST(crest_blocks_follow_their_definition) {
    check_crest("crest:4", 4, 32, 320);
    check_crest("crest:1.1", 1.1, 32, 320);       // most others are clipped
    check_crest("crest:3:24", 3, 24, 24 * 5 + 7); // ragged: 7 elements cannot reach 3
    check_crest("crest:3:24", 3, 24, 24 * 5 + 17);
    check_crest("crest:20:1030", 20, 1030, 2 * 1030); // blocks larger than a batch
}
END_TEST

START_TEST(crest_factor_is_reached) {
    enum { WIDTH = 1024 };
    float *x = generate("crest:5", 3, 0, ROWS, WIDTH); // 5 is beyond every natural crest of 32
    for (int64_t b = 0; b < ROWS * WIDTH / 32; b++) {
        double sum = 0, peak = 0;
        for (int64_t i = b * 32; i < b * 32 + 32; i++) {
            sum += (double)x[i] * x[i];
            peak = fabs((double)x[i]) > peak ? fabs((double)x[i]) : peak;
        }
        ck_assert_double_eq_tol(peak / sqrt(sum / 32), 5, 1e-5);
    }
    free(x);
}
END_TEST

START_TEST(uniform_magnitudes_stay_below_the_end) {
    qg_law *law = law_of("uniform:1:abs");
    ck_assert(law->largest == qg_float_of_bits(0x3f7fffff));
    qg_law_free(law);
    law = law_of("uniform:3:abs:sigma=0.1"); // 3 * 0.1 in binary64 lies between two binary32
    double end = 3 * 0.1;
    ck_assert(law->largest < end && nextafterf(law->largest, 1) >= end);
    enum { COUNT = 1 << 16 };
    float *x = malloc(sizeof *x * COUNT);
    int at_end = 0;
    law->largest = 0.25f; // the clamp itself, where many elements meet it
    qg_law_generate(law, 1, 0, COUNT, 0, 1, x);
    for (int i = 0; i < COUNT; i++) {
        REQUIRE(x[i] >= 0 && x[i] <= 0.25f, "%a", (double)x[i]);
        at_end += x[i] == 0.25f;
    }
    ck_assert_int_gt(at_end, COUNT / 8);
    free(x);
    qg_law_free(law);
}
END_TEST

// ------------------------------------------------------------------------------ tiling and digests

static const char *const all_laws[] = {"normal",        "laplace:sigma=0.5", "uniform",
                                       "uniform:1:abs", "student_t:3",       "lognormal:1",
                                       "outliers:10",   "crest:4",           "crest:4.5:24:abs"};

START_TEST(tiles_in_any_order_are_the_whole) {
    for (size_t l = 0; l < sizeof all_laws / sizeof *all_laws; l++) {
        float *whole = generate(all_laws[l], 9, 0, ROWS, K),
              *tile = malloc(sizeof *tile * ROWS * K);
        qg_law *law = law_of(all_laws[l]);
        for (int64_t first = ROWS - 1; first >= 0; first -= 2) { // rows 7-8, 5-6, ..., 0
            int64_t start = first > 0 ? first - 1 : 0;
            qg_law_generate(law, 9, 0, K, start, first - start + 1, tile + start * K);
        }
        ck_assert_msg(memcmp(whole, tile, sizeof *tile * ROWS * K) == 0, "%s", all_laws[l]);
        qg_law_free(law);
        free(whole), free(tile);
    }
}
END_TEST

// XXH3-64 of the binary32 values, row-major little endian. Reviewed as a diff: a change
// here changes the inputs of every experiment.
static const struct {
    const char *law;
    uint64_t seed;
    int operand;
    int64_t m, k;
    uint64_t digest;
} golden[] = {
#include "law_digests.h"
};

START_TEST(digests_are_the_committed_ones) {
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        float *x =
            generate(golden[i].law, golden[i].seed, golden[i].operand, golden[i].m, golden[i].k);
        uint64_t digest = qg_digest_bytes(x, sizeof *x * (size_t)(golden[i].m * golden[i].k));
        ck_assert_msg(digest == golden[i].digest, "{\"%s\", %llu, %d, %lld, %lld, 0x%016llx},",
                      golden[i].law, (unsigned long long)golden[i].seed, golden[i].operand,
                      (long long)golden[i].m, (long long)golden[i].k, (unsigned long long)digest);
        free(x);
    }
}
END_TEST

// -------------------------------------------------------------------------------------- statistics

enum { SAMPLES = 1 << 20 };

typedef struct moments {
    double mean, variance, fourth;
} moments;

static moments moments_of(const float *x) {
    moments m = {0, 0, 0};
    for (int i = 0; i < SAMPLES; i++) {
        double square = (double)x[i] * x[i];
        m.mean += x[i];
        m.variance += square;
        m.fourth += square * square;
    }
    m.mean /= SAMPLES, m.variance /= SAMPLES, m.fourth /= SAMPLES;
    return m;
}

// 5 standard errors: of the mean sqrt(var / n), of the variance sqrt((fourth - var^2) / n), of a
// share sqrt(p (1 - p) / n).
START_TEST(moments_and_quantiles_are_those_of_the_law) {
    static const struct {
        const char *law;
        double variance, fourth; // fourth central moment
        double quartile, far;    // P(x < quartile) = 0.25, P(x < far) = 0.001
    } cases[] = {
        {"normal",         1,           3,            -0.6744897502, -3.0902323062},
        {"normal:sigma=3", 9,           243,          -2.0234692506, -9.2706969185},
        {"laplace",        1,           6,            -0.4901290717, -4.3943915288},
        {"uniform",        1,           1.8,          -0.8660254038, -1.7285867060},
        {"uniform:2",      4.0 / 3,     16.0 / 5,     -1,            -1.996       },
        {"student_t:5",    5.0 / 3,     25,           -0.7266868438, -5.8934295314},
        {"student_t:30.5", 30.5 / 28.5, 3.6952995697, -0.6826187688, -3.3799509515},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        float *x = generate(cases[c].law, 2024, 0, 1, SAMPLES);
        moments m = moments_of(x);
        double v = cases[c].variance, below_quartile = 0, below_far = 0;
        for (int i = 0; i < SAMPLES; i++) {
            below_quartile += x[i] < cases[c].quartile;
            below_far += x[i] < cases[c].far;
        }
        free(x);
        ck_assert_double_eq_tol(m.mean, 0, 5 * sqrt(v / SAMPLES));
        ck_assert_double_eq_tol(m.variance, v, 5 * sqrt((cases[c].fourth - v * v) / SAMPLES));
        ck_assert_double_eq_tol(below_quartile / SAMPLES, 0.25, 5 * sqrt(0.1875 / SAMPLES));
        ck_assert_double_eq_tol(below_far / SAMPLES, 0.001, 5 * sqrt(0.000999 / SAMPLES));
    }
}
END_TEST

START_TEST(structured_laws_have_their_moments) {
    float *x = generate("lognormal:0.5", 11, 0, 1, SAMPLES);
    moments m = moments_of(x);
    double v = exp(2 * 0.25), fourth = exp(8 * 0.25); // E e^{2 S z}, E e^{4 S z}
    ck_assert_double_eq_tol(m.mean, 0, 5 * sqrt(v / SAMPLES));
    ck_assert_double_eq_tol(m.variance, v, 5 * sqrt((fourth - v * v) / SAMPLES));
    free(x);
    x = generate("normal:abs", 11, 0, 1, SAMPLES); // mean sqrt(2/pi), variance 1 - 2/pi
    m = moments_of(x);
    ck_assert_double_eq_tol(m.mean, 0.79788456080286536, 5 * sqrt(0.36338 / SAMPLES));
    ck_assert_double_eq_tol(m.variance, 1, 5 * sqrt(2.0 / SAMPLES));
    free(x);
    x = generate("outliers:100", 12, 0, 1, SAMPLES); // one row: every element its own column
    double large = 0;
    for (int i = 0; i < SAMPLES; i++)
        large += fabs((double)x[i]) > 10; // P(|100 z| > 10) = 0.920344
    ck_assert_double_eq_tol(large / SAMPLES, 0.920344 / 128, 5 * sqrt(0.0072 / SAMPLES));
    free(x);
    float *a = generate("normal", 11, 0, 1, SAMPLES), *b = generate("normal", 11, 1, 1, SAMPLES);
    double product = 0;
    for (int i = 0; i < SAMPLES; i++)
        product += (double)a[i] * b[i]; // operands are independent
    ck_assert_double_eq_tol(product / SAMPLES, 0, 5 / sqrt(SAMPLES));
    free(a), free(b);
}
END_TEST

// ------------------------------------------------------------------------------------- input types

static void check_input_type(qg_format type) {
    qg_format_info info = qg_format_describe(type);
    qg_conversion conversion = {
        {QG_ROUND_RNE, 0},
        QG_OVERFLOW_FORMAT, QG_NAN_TO_MAX
    };
    for (uint64_t i = 0; i < 1u << 20; i++) {
        // every exponent and sign, ties and their neighbours, and random fractions
        uint32_t word = (uint32_t)i * 4099u + (i & 3 ? 0 : qg_philox_word(1, 0, i) & 4095u);
        float x = qg_float_of_bits(word);
        double want = qg_decode(&info, qg_encode(&info, x, &conversion, 0));
        float got = x;
        REQUIRE(qg_input_round(type, 1, &got) == QG_OK, "refused");
        REQUIRE(want == want ? got == (float)want && !signbit(got) == !signbit(want) : got != got,
                "%a gives %a, not %a", (double)x, (double)got, want);
    }
}

START_TEST(input_types_round_to_nearest_even) {
    check_input_type(QG_FORMAT_BF16);
    check_input_type(QG_FORMAT_FP16);
    static const float edges[][3] = {
  // x, bf16, fp16
        {65519.0f,        65536.0f,      65504.0f },
        {65520.0f,        65536.0f,      INFINITY },
        {-1e9f,           -998244352.0f, -INFINITY},
        {0x1p-25f,        0x1p-25f,      0        },
        {0x1.8p-25f,      0x1.8p-25f,    0x1p-24f },
        {0x1.01p0f,       0x1p0f,        0x1.01p0f},
        {0x1.03p0f,       0x1.04p0f,     0x1.03p0f},
        {INFINITY,        INFINITY,      INFINITY },
        {0x1.fffffep127f, INFINITY,      INFINITY },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        float bf16 = edges[i][0], fp16 = edges[i][0], fp32 = edges[i][0];
        ck_assert(qg_input_round(QG_FORMAT_BF16, 1, &bf16) == QG_OK && bf16 == edges[i][1]);
        ck_assert(qg_input_round(QG_FORMAT_FP16, 1, &fp16) == QG_OK && fp16 == edges[i][2]);
        ck_assert(qg_input_round(QG_FORMAT_FP32, 1, &fp32) == QG_OK && fp32 == edges[i][0]);
    }
    ck_assert(qg_input_round(QG_FORMAT_E4M3, 0, NULL) == QG_ERROR_ARGUMENT);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        names_are_canonical,
        malformed_laws_are_refused_with_a_reason,
        density_is_known_only_where_theory_applies,
        independent_elements_follow_their_definition,
        student_t_matches_reference_values,
        student_t_has_closed_forms_for_1_and_2,
        student_t_takes_any_nu,
        outliers_scale_the_columns_that_stream_1_selects,
        crest_blocks_follow_their_definition,
        crest_factor_is_reached,
        uniform_magnitudes_stay_below_the_end,
        tiles_in_any_order_are_the_whole,
        digests_are_the_committed_ones,
        moments_and_quantiles_are_those_of_the_law,
        structured_laws_have_their_moments,
        input_types_round_to_nearest_even,
    };
    return RUN_SUITE("laws", tests);
}
