// Routes: learning them from times, and their text.
#include <published_quantizer.h>
#include <require.h>
#include <route_learn.h>
#include <route_text.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = QG_GROUP_KERNEL_SHARED, HOPPER = QG_GROUP_KERNEL_HOPPER };

static route_point point(int64_t k, int64_t m, double shared, double hopper, double mad) {
    return (route_point){
        .k = k, .m = m, .median_s = {shared, hopper},
                .mad_s = {mad,    mad   },
                .samples = {5,      7     }
    };
}

// ---------------------------------------------------------------------------------------- learning

START_TEST(m12_learned_route_sends_the_published_points_to_the_faster_kernel) {
    route_point points[PUBLISHED_POINTS];
    qg_route_row rows[PUBLISHED_POINTS];
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < PUBLISHED_POINTS; i++) {
            const published_point *p = &PUBLISHED[i];
            points[i] = point(p->k, p->m, side ? p->most : p->least, 1, 0.001);
        }
        qg_route route = {rows, route_learn(points, PUBLISHED_POINTS, rows)};
        for (int i = 0; i < PUBLISHED_POINTS; i++) {
            const published_point *p = &PUBLISHED[i];
            qg_kernel_request r = {.twin_present = true,
                                   .shared_present = true,
                                   .m = p->m,
                                   .k = p->k,
                                   .group = 128,
                                   .element_bytes = 2,
                                   .sm_count = 132,
                                   .route = &route};
            ck_assert_int_eq(qg_kernel_choose(&r).kernel, p->least > 1 ? HOPPER : SHARED);
        }
    }
}
END_TEST

// At every point the route's kernel is the faster one, or within the spread of it.
START_TEST(route_is_within_the_spread_at_every_point) {
    enum { KS = 12, MS = 14, ALL = KS * MS };
    static route_point points[ALL];
    static qg_route_row rows[ALL];
    uint32_t state = 1;
    for (int trial = 0; trial < 300; trial++) {
        for (int i = 0; i < ALL; i++) {
            double t[2];
            for (int kernel = 0; kernel < 2; kernel++) {
                state = state * 1664525u + 1013904223u;
                t[kernel] = 1 + (double)(state >> 24) / 256;
            }
            points[i] = point(32 + i / MS, 1 + i % MS, t[0], t[1], 0.05 * (trial % 8));
        }
        size_t count = route_learn(points, ALL, rows);
        qg_route route = {rows, count};
        REQUIRE(count >= 1 && count <= ALL, "%zu rows", count);
        for (size_t i = 1; i < count; i++)
            REQUIRE(rows[i].k_from > rows[i - 1].k_from || (rows[i].k_from == rows[i - 1].k_from &&
                                                            rows[i].m_from > rows[i - 1].m_from),
                    "row %zu", i);
        for (int i = 0; i < ALL; i++) {
            const route_point *p = &points[i];
            int kernel = qg_route_kernel(&route, p->m, p->k);
            double loss = p->median_s[kernel] - p->median_s[!kernel];
            REQUIRE(loss <= p->mad_s[0] + p->mad_s[1], "trial %d point %d loses %g", trial, i,
                    loss);
        }
    }
}
END_TEST

static void check_rows(const route_point *points, size_t count, const char *wanted) {
    qg_route_row rows[16];
    char text[400] = "";
    size_t made = route_learn(points, count, rows), length = 0;
    for (size_t i = 0; i < made; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%" PRId64 "/%" PRId64 ":%s ",
                             rows[i].k_from, rows[i].m_from, qg_group_kernel_name(rows[i].kernel));
    ck_assert_str_eq(text, wanted);
}

START_TEST(ties_keep_the_neighbours_kernel) {
    // below: the first decided above
    route_point leading[] = {point(128, 1, 1, 1.01, 0.1), point(128, 2, 2, 1, 0.1)};
    check_rows(leading, 2, "128/1:hopper ");
    // between: that of the smaller m
    route_point between[] = {point(128, 1, 1, 2, 0.1), point(128, 2, 1.1, 1, 0.1),
                             point(128, 3, 2, 1, 0.1)};
    check_rows(between, 3, "128/1:shared 128/3:hopper ");
    // a whole k: that of the k before, m by m
    route_point whole[] = {point(128, 1, 1, 2, 0.1), point(128, 5, 2, 1, 0.1),
                           point(256, 4, 1, 1, 0.1), point(256, 6, 1, 1, 0.1)};
    check_rows(whole, 4, "128/1:shared 128/5:hopper 256/4:shared 256/6:hopper ");
    // everything: the smaller median
    route_point all[] = {point(128, 1, 1, 1.01, 0.1), point(128, 2, 1.01, 1, 0.1)};
    check_rows(all, 2, "128/1:shared 128/2:hopper ");
    // exactly the spread is a tie; without a spread every difference counts
    route_point edge[] = {point(128, 1, 1, 3, 0.5), point(128, 2, 2, 1, 0.5),
                          point(128, 3, 2.25, 1, 0.5)};
    check_rows(edge, 3, "128/1:shared 128/3:hopper ");
    route_point sharp[] = {point(128, 1, 1, 1, 0), point(128, 2, 1.0001, 1, 0)};
    check_rows(sharp, 2, "128/1:hopper ");
    check_rows(sharp, 0, "");
}
END_TEST

START_TEST(ratio_and_samples_are_of_the_rows_point) {
    route_point points[] = {point(128, 1, 1, 2, 0), point(128, 2, 3, 1, 0)};
    qg_route_row rows[2];
    ck_assert_uint_eq(route_learn(points, 2, rows), 2);
    ck_assert(rows[0].ratio == 2 && rows[1].ratio == 3);
    ck_assert(rows[0].samples == 12 && rows[1].samples == 12);
}
END_TEST

// ------------------------------------------------------------------------------------------- text

#define HEADER "gpu\trecipe\tinput\tk_from\tm_from\tkernel\tratio\tsamples\n"
#define ROW    "H100\tmxfp8\tbf16\t"

static qg_status parse(const char *text, route_list *list) {
    return route_text_parse("f.tsv", text, strlen(text), list);
}

START_TEST(text_is_read_and_written) {
    static const char text[] = HEADER "A\te4m3 group:128 amax\tfp32\t1\t1\tshared\t1.25\t10\n" ROW
                                      "128\t1\tshared\t1.5\t20\n" ROW "128\t64\thopper\t3\t20\n" ROW
                                      "9223372036854775807\t9223372036854775807\thopper\t1\t1\n";
    route_list list = {0};
    ck_assert_msg(parse(text, &list) == QG_OK, "%s", qg_detail());
    ck_assert_int_eq(list.count, 4);
    ck_assert_str_eq(list.items[0].recipe, "e4m3 group:128 amax");
    ck_assert_int_eq(list.items[3].row.m_from, INT64_MAX);
    char *printed;
    size_t size;
    FILE *stream = open_memstream(&printed, &size);
    ck_assert(route_text_print(&list, stream));
    fclose(stream);
    ck_assert_str_eq(printed, text);
    free(printed);
    qg_route_row *rows;
    size_t count;
    ck_assert_int_eq(route_pick(&list, "H100", "mxfp8", "bf16", &rows, &count), QG_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(rows[1].m_from, 64);
    free(rows);
    ck_assert_int_eq(route_pick(&list, "H100", "mxfp8", "fp16", &rows, &count), QG_OK);
    ck_assert(count == 0 && !rows);
    route_list_free(&list);
}
END_TEST

START_TEST(comments_and_the_last_line) {
    route_list list = {0};
    ck_assert_int_eq(
        parse("# measured on a Monday\n" HEADER "\n# a\n" ROW "1\t1\tshared\t1\t1", &list), QG_OK);
    ck_assert_int_eq(list.count, 1);
    route_list_free(&list);
}
END_TEST

START_TEST(what_is_wrong_is_named_by_line) {
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"",                                                           "f.tsv: no header"                               },
        {"# nothing\n",                                                "no header"                                      },
        {"gpu\trecipe\n",                                              "f.tsv:1: the header"                            },
        {ROW "1\t1\tshared\t1\t1\n",                                   "f.tsv:1: the header"                            },
        {HEADER ROW "1\t1\tshared\t1\n",                               "f.tsv:2: a row has 8 fields"                    },
        {HEADER ROW "1\t1\tshared\t1\t1\t1\n",                         "f.tsv:2: a row has 8 fields"                    },
        {HEADER ROW "0\t1\tshared\t1\t1\n",                            "f.tsv:2: k_from is a number from 1, not '0'"    },
        {HEADER ROW "1\tx\tshared\t1\t1\n",                            "f.tsv:2: m_from is a number from 1, not 'x'"    },
        {HEADER ROW "1\t-1\tshared\t1\t1\n",                           "f.tsv:2: m_from"                                },
        {HEADER ROW "1\t9223372036854775808\tshared\t1\t1\n",          "f.tsv:2: m_from"                                },
        {HEADER ROW "1\t1\ttwin\t1\t1\n",                              "f.tsv:2: kernel is shared or hopper, not 'twin'"},
        {HEADER ROW "1\t1\tshared\tnan\t1\n",                          "f.tsv:2: no ratio"                              },
        {HEADER ROW "1\t1\tshared\t0\t1\n",                            "f.tsv:2: no ratio"                              },
        {HEADER ROW "1\t1\tshared\t1\t\n",                             "f.tsv:2: samples"                               },
        {HEADER ROW "1\t1\tshared\t1\t1 \n",                           "f.tsv:2: samples"                               },
        {HEADER "\tmxfp8\tbf16\t1\t1\tshared\t1\t1\n",                 "f.tsv:2: no name of a GPU"                      },
        {HEADER "H\t\tbf16\t1\t1\tshared\t1\t1\n",                     "f.tsv:2: no recipe"                             },
        {HEADER "H\tmxfp8\tbfloat16bfloat16\t1\t1\tshared\t1\t1\n",    "f.tsv:2: no input type"                         },
        {HEADER ROW "1\t2\tshared\t1\t1\n" ROW "1\t2\thopper\t1\t1\n", "f.tsv:3: rows ascend"                           },
        {HEADER ROW "2\t1\tshared\t1\t1\n" ROW "1\t2\thopper\t1\t1\n", "f.tsv:3: rows ascend"                           },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        route_list list = {0};
        ck_assert_msg(parse(wrong[i].text, &list) == QG_ERROR_DATA, "%s", wrong[i].text);
        ck_assert_msg(strstr(qg_detail(), wrong[i].part) != NULL, "'%s' lacks '%s'", qg_detail(),
                      wrong[i].part);
        ck_assert_ptr_null(strchr(qg_detail(), '\n'));
        ck_assert_int_eq(list.count, 0);
        route_list_free(&list);
    }
    route_list list = {0};
    static const char zero[] = HEADER ROW "1\t1\tshared\t1\t1\0\n";
    ck_assert_int_eq(route_text_parse("f.tsv", zero, sizeof zero, &list), QG_ERROR_DATA);
    route_list_free(&list);
}
END_TEST

// Cut anywhere: read or refused, never more.
START_TEST(any_cut_is_harmless) {
    static const char text[] = HEADER ROW "1\t1\tshared\t1.5\t12\n" ROW "1\t20\thopper\t2\t12\n";
    for (size_t size = 0; size < sizeof text; size++) {
        char *cut = malloc(size ? size : 1);
        memcpy(cut, text, size);
        route_list list = {0};
        qg_status status = route_text_parse("f", cut, size, &list);
        REQUIRE(status == QG_OK || status == QG_ERROR_DATA, "%zu", size);
        route_list_free(&list);
        free(cut);
    }
}
END_TEST

START_TEST(recipes_by_name_or_by_parts) {
    char name[ROUTE_RECIPE_SIZE];
    route_recipe("metrale_act128", "group:128", "amax", "rne", name);
    ck_assert_str_eq(name, "metrale_act128");
    route_recipe("mxfp8", "group:32", "floor", "rne", name);
    ck_assert_str_eq(name, "mxfp8");
    route_recipe("mxfp8", "group:32", "rceil", "rne", name);
    ck_assert_str_eq(name, "mxfp8 group:32 rceil");
    route_recipe("mxfp8", "group:64", "floor", "rne", name);
    ck_assert_str_eq(name, "mxfp8 group:64 floor");
    route_recipe("mxfp8", "group:32", "floor", "stochastic", name);
    ck_assert_str_eq(name, "mxfp8 group:32 floor stochastic");
    route_recipe("e4m3", "per_tensor", "amax", "rne", name);
    ck_assert_str_eq(name, "e4m3 per_tensor amax");
}
END_TEST

int main(void) {
    const TTest *const tests[] = {m12_learned_route_sends_the_published_points_to_the_faster_kernel,
                                  route_is_within_the_spread_at_every_point,
                                  ties_keep_the_neighbours_kernel,
                                  ratio_and_samples_are_of_the_rows_point,
                                  text_is_read_and_written,
                                  comments_and_the_last_line,
                                  what_is_wrong_is_named_by_line,
                                  any_cut_is_harmless,
                                  recipes_by_name_or_by_parts};
    return RUN_SUITE("route", tests);
}
