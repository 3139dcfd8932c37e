// The choice between the kernels of groups: order of reasons, floor, lever, route, log. Tests of the
// statements M6, M7, M8 and M12 of the activation quantizer begin with m06_, m07_, m08_, m12_.
#include <published_quantizer.h>
#include <qg_kernel_choice.h>
#include <qg_log.h>
#include <require.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = QG_GROUP_KERNEL_SHARED, HOPPER = QG_GROUP_KERNEL_HOPPER };

static qg_kernel_request both(int64_t m, int64_t k, int64_t sm_count) {
    return (qg_kernel_request){.twin_present = true,
                               .shared_present = true,
                               .m = m,
                               .k = k,
                               .group = 128,
                               .element_bytes = 2,
                               .sm_count = sm_count};
}

static void check_choice(const qg_kernel_request *r, int kernel, qg_kernel_reject reject) {
    qg_kernel_choice c = qg_kernel_choose(r);
    REQUIRE(c.kernel == kernel && c.reject == reject,
            "m %" PRId64 " k %" PRId64 " SMs %" PRId64 ": kernel %d, '%s'", r->m, r->k, r->sm_count,
            c.kernel, qg_kernel_reject_name(c.reject));
    if (kernel < 0) {
        ck_assert(c.grid_x == 0 && c.grid_y == 0 && c.slabs == 0);
        return;
    }
    // Never the grid of one with the handle of the other.
    qg_partition p = qg_partition_of(kernel, r->k, r->group, r->element_bytes);
    ck_assert_int_eq(c.partition.lanes, p.lanes);
    ck_assert_int_eq(c.partition.held, p.held);
    ck_assert_int_eq(c.partition.vector, p.vector);
    ck_assert_int_eq(c.partition.groups, p.groups);
    ck_assert_int_eq(c.partition.steps, p.steps);
    ck_assert_int_eq(c.grid_x, qg_partition_grid_x(r->m, 0));
    ck_assert_int_eq(c.grid_y, qg_partition_grid_y(&p));
    ck_assert_int_eq(c.slabs, qg_partition_slabs(r->m));
}

// ------------------------------------------------------------------------------ the order, the pick

START_TEST(m06_order_of_reasons) {
    qg_kernel_request r = both(1, 128, 132); // too few CTAs as well
    r.lever = QG_LEVER_SHARED;               // and not requested
    r.twin_present = r.shared_present = false;
    check_choice(&r, -1, QG_REJECT_NONE_PRESENT);
    r.shared_present = true;
    check_choice(&r, SHARED, QG_REJECT_KERNEL_ABSENT);
    r.twin_present = true;
    check_choice(&r, SHARED, QG_REJECT_NOT_REQUESTED);
    r.lever = QG_LEVER_AUTO;
    check_choice(&r, SHARED, QG_REJECT_TOO_FEW_CTAS);
    r.m = 264;
    check_choice(&r, HOPPER, QG_REJECT_NONE);
}
END_TEST

// What a route says comes after the lever, and in place of the floor.
START_TEST(m06_route_in_the_order) {
    static const qg_route_row rows[] = {
        {128, 1,   HOPPER, 1.5, 10},
        {128, 100, SHARED, 1.2, 10}
    };
    qg_route route = {rows, 2}, empty = {NULL, 0};
    qg_kernel_request r = both(1, 128, 132);
    r.route = &route;
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r.m = 4096;
    check_choice(&r, SHARED, QG_REJECT_MEASURED_SLOWER);
    r.lever = QG_LEVER_SHARED;
    check_choice(&r, SHARED, QG_REJECT_NOT_REQUESTED);
    r.lever = QG_LEVER_HOPPER;
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r.lever = QG_LEVER_AUTO;
    r.twin_present = false;
    check_choice(&r, SHARED, QG_REJECT_KERNEL_ABSENT);
    r.twin_present = true;
    r.shared_present = false;
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r.shared_present = true;
    r.route = &empty; // nothing was measured: the floor
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r.m = 1;
    check_choice(&r, SHARED, QG_REJECT_TOO_FEW_CTAS);
}
END_TEST

START_TEST(m06_twin_alone_runs_everywhere) {
    static const int64_t rows[] = {1, 16, 4576};
    for (int lever = QG_LEVER_AUTO; lever <= QG_LEVER_HOPPER; lever++)
        for (size_t i = 0; i < 3; i++) {
            qg_kernel_request r = both(rows[i], 5120, 132);
            r.shared_present = false;
            r.lever = (qg_kernel_lever)lever;
            check_choice(&r, HOPPER, QG_REJECT_NONE);
        }
}
END_TEST

// The least m that the twin takes, of several devices. L is not always a multiple of 8.
START_TEST(m06_floor_table) {
    static const struct {
        int64_t k, y, least[4]; // of 78, 114, 132, 148 SMs
    } table[] = {
        {1024,  1,  {156, 228, 264, 296}},
        {4096,  4,  {39, 57, 66, 74}    },
        {5120,  5,  {32, 46, 53, 60}    },
        {6144,  6,  {26, 38, 44, 50}    },
        {7168,  7,  {23, 33, 38, 43}    },
        {17408, 17, {10, 14, 16, 18}    },
        {1152,  2,  {78, 114, 132, 148} },
        {127,   1,  {156, 228, 264, 296}},
        {1,     1,  {156, 228, 264, 296}},
    };
    static const int64_t sms[] = {78, 114, 132, 148};
    for (size_t t = 0; t < sizeof table / sizeof *table; t++)
        for (int s = 0; s < 4; s++) {
            qg_kernel_request at = both(table[t].least[s], table[t].k, sms[s]), below = at;
            below.m--;
            check_choice(&at, HOPPER, QG_REJECT_NONE);
            check_choice(&below, SHARED, QG_REJECT_TOO_FEW_CTAS);
            ck_assert_int_eq(qg_kernel_choose(&at).grid_y, table[t].y);
        }
}
END_TEST

START_TEST(m06_floor_follows_the_sm_count) {
    static const struct {
        int64_t sms, least;
    } table[] = {
        {132,        264       },
        {148,        296       },
        {1,          2         },
        {0,          2         },
        {-5,         2         },
        {2147483647, 4294967294},
        {INT64_MIN,  2         },
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        qg_kernel_request at = both(table[t].least, 128, table[t].sms), below = at;
        below.m--;
        check_choice(&at, HOPPER, QG_REJECT_NONE);
        check_choice(&below, SHARED, QG_REJECT_TOO_FEW_CTAS);
    }
}
END_TEST

// Twice the CTAs of binary32: a group takes 32 lanes, a CTA holds 4.
START_TEST(m06_floor_counts_the_tiles_of_the_element) {
    qg_kernel_request at = both(27, 5120, 132), below;
    at.element_bytes = 4; // 10 tiles
    below = at;
    below.m--;
    check_choice(&at, HOPPER, QG_REJECT_NONE);
    check_choice(&below, SHARED, QG_REJECT_TOO_FEW_CTAS);
    at = both(66, 4096, 132);
    at.group = 32; // 128 groups of 4 lanes: 4 tiles of 32
    below = at;
    below.m--;
    check_choice(&at, HOPPER, QG_REJECT_NONE);
    check_choice(&below, SHARED, QG_REJECT_TOO_FEW_CTAS);
}
END_TEST

START_TEST(m06_products_saturate) {
    qg_kernel_request r = both(INT64_MAX, INT64_MAX, 132);
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r = both(INT64_MAX / 2, 1024 * 3, 132);
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r = both(1000, 1024, INT64_MAX);
    check_choice(&r, SHARED, QG_REJECT_TOO_FEW_CTAS);
    r = both(1, 1, INT64_MAX / 2 + 1);
    check_choice(&r, SHARED, QG_REJECT_TOO_FEW_CTAS);
}
END_TEST

START_TEST(m06_same_request_same_choice) {
    qg_kernel_request r = both(53, 5120, 132);
    qg_kernel_choice first = qg_kernel_choose(&r);
    for (int i = 0; i < 100; i++) {
        qg_kernel_request other = both(i, 128 * i + 1, 148);
        other.m = i + 1;
        qg_kernel_choose(&other);
        qg_kernel_choice again = qg_kernel_choose(&r);
        ck_assert_int_eq(again.kernel, first.kernel);
        ck_assert_int_eq(again.reject, first.reject);
        ck_assert_int_eq(again.grid_x, first.grid_x);
        ck_assert_int_eq(again.grid_y, first.grid_y);
    }
}
END_TEST

START_TEST(m06_names) {
    static const char *const names[] = {
        "", "none_present", "kernel_absent", "not_requested", "measured_slower", "too_few_ctas"};
    ck_assert_int_eq(sizeof names / sizeof *names, QG_REJECT_COUNT);
    for (int i = 0; i < QG_REJECT_COUNT; i++)
        ck_assert_str_eq(qg_kernel_reject_name((qg_kernel_reject)i), names[i]);
    ck_assert_str_eq(qg_kernel_reject_name(QG_REJECT_COUNT), "");
    ck_assert_str_eq(qg_group_kernel_name(SHARED), "shared");
    ck_assert_str_eq(qg_group_kernel_name(HOPPER), "hopper");
    ck_assert_str_eq(qg_group_kernel_name(-1), "");
    ck_assert_str_eq(qg_group_kernel_name(QG_GROUP_KERNEL_COUNT), "");
}
END_TEST

// ------------------------------------------------------------------------------------------- grids

START_TEST(m07_rows_on_grid_x_in_slabs) {
    qg_kernel_request r = both(2147483647, 5120, 132);
    qg_kernel_choice c = qg_kernel_choose(&r);
    ck_assert_int_eq(c.grid_x, 2147483647);
    ck_assert_int_eq(c.grid_y, 5);
    ck_assert_int_eq(c.slabs, 1);
    r.m++;
    c = qg_kernel_choose(&r);
    ck_assert_int_eq(c.grid_x, 2147483647);
    ck_assert_int_eq(c.slabs, 2);
    r = both(3, INT64_C(128) * 1000000, 132);
    r.lever = QG_LEVER_SHARED;
    ck_assert_int_eq(qg_kernel_choose(&r).grid_y, 65535);
}
END_TEST

// ------------------------------------------------------------------------------------------- lever

START_TEST(m08_lever_words) {
    qg_kernel_lever lever = QG_LEVER_HOPPER;
    ck_assert_int_eq(qg_kernel_lever_parse("auto", &lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_AUTO);
    ck_assert_int_eq(qg_kernel_lever_parse("shared", &lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_SHARED);
    ck_assert_int_eq(qg_kernel_lever_parse("hopper", &lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_HOPPER);
    static const char *const wrong[] = {"", "Auto", "twin", "hopper ", "1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(qg_kernel_lever_parse(wrong[i], &lever), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(qg_kernel_lever_parse(NULL, &lever), QG_ERROR_ARGUMENT);
    ck_assert_int_eq(lever, QG_LEVER_HOPPER);
}
END_TEST

START_TEST(m08_lever_of_the_environment) {
    qg_kernel_lever lever = QG_LEVER_HOPPER;
    unsetenv("QG_GROUP_KERNEL");
    ck_assert_int_eq(qg_kernel_lever_of_environment(&lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_AUTO);
    setenv("QG_GROUP_KERNEL", "", 1);
    lever = QG_LEVER_HOPPER;
    ck_assert_int_eq(qg_kernel_lever_of_environment(&lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_AUTO);
    setenv("QG_GROUP_KERNEL", "shared", 1);
    ck_assert_int_eq(qg_kernel_lever_of_environment(&lever), QG_OK);
    ck_assert_int_eq(lever, QG_LEVER_SHARED);
    setenv("QG_GROUP_KERNEL", "yes", 1);
    ck_assert_int_eq(qg_kernel_lever_of_environment(&lever), QG_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(qg_detail(), "QG_GROUP_KERNEL"));
    ck_assert_ptr_nonnull(strstr(qg_detail(), "yes"));
}
END_TEST

START_TEST(m08_lever_hopper_passes_over_the_floor) {
    qg_kernel_request r = both(1, 128, 132);
    r.lever = QG_LEVER_HOPPER;
    check_choice(&r, HOPPER, QG_REJECT_NONE);
    r.twin_present = false;
    check_choice(&r, SHARED, QG_REJECT_KERNEL_ABSENT);
}
END_TEST

// --------------------------------------------------------------------------------------------- log

static char lines[16][200];
static int line_count;

static void keep_line(void *context, const char *line) {
    (void)context;
    ck_assert_int_lt(line_count, 16);
    snprintf(lines[line_count++], sizeof lines[0], "%s", line);
}

static void log_of(qg_kernel_request r) {
    qg_kernel_choice c = qg_kernel_choose(&r);
    qg_kernel_choice_log(&c);
}

// One process: every slot fills once.
START_TEST(m08_one_log_line_per_branch) {
    static const qg_route_row row = {1, 1, SHARED, 2, 3};
    qg_route route = {&row, 1};
    qg_log_set(keep_line, NULL);
    qg_kernel_request unrequested = both(4576, 5120, 132), r;
    unrequested.lever = QG_LEVER_SHARED;
    log_of(unrequested);
    ck_assert_int_eq(line_count, 0);
    for (int i = 0; i < 3; i++) { // decode steps, then a prefill
        log_of(both(1, 5120, 132));
        log_of(both(2, 5120, 132));
    }
    ck_assert_int_eq(line_count, 1);
    ck_assert_ptr_nonnull(strstr(lines[0], "too_few_ctas"));
    ck_assert_ptr_nonnull(strstr(lines[0], "shared"));
    for (int i = 0; i < 3; i++)
        log_of(both(4576, 5120, 132));
    ck_assert_int_eq(line_count, 2);
    ck_assert_ptr_nonnull(strstr(lines[1], "hopper"));
    for (int i = 0; i < 2; i++) {
        r = both(4576, 5120, 132);
        r.twin_present = false;
        log_of(r);
        r.shared_present = false;
        log_of(r);
        r = both(4576, 5120, 132);
        r.route = &route;
        log_of(r);
        log_of(unrequested);
    }
    ck_assert_int_eq(line_count, 5);
    ck_assert_ptr_nonnull(strstr(lines[2], "kernel_absent"));
    ck_assert_ptr_nonnull(strstr(lines[3], "none_present"));
    ck_assert_ptr_nonnull(strstr(lines[4], "measured_slower"));
    qg_log_set(NULL, NULL);
}
END_TEST

// ------------------------------------------------------------------------------------------- route

START_TEST(route_takes_the_row_at_or_below) {
    static const qg_route_row rows[] = {
        {1024, 8,   SHARED, 1.1, 9},
        {1024, 300, HOPPER, 2.0, 9},
        {5120, 1,   SHARED, 1.2, 9},
        {5120, 53,  HOPPER, 3.0, 9},
        {5120, 900, SHARED, 1.1, 9},
    };
    qg_route route = {rows, 5}, one = {rows, 1}, empty = {rows, 0};
    static const struct {
        int64_t m, k;
        int kernel;
    } wanted[] = {
        {1,         1,         SHARED},
        {299,       1,         SHARED},
        {300,       1,         HOPPER}, // the least k stands for those below it
        {7,         1024,      SHARED},
        {8,         1024,      SHARED},
        {300,       1024,      HOPPER},
        {300,       5119,      HOPPER},
        {52,        5120,      SHARED},
        {53,        5120,      HOPPER},
        {899,       5121,      HOPPER},
        {900,       5120,      SHARED},
        {INT64_MAX, INT64_MAX, SHARED},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        REQUIRE(qg_route_kernel(&route, wanted[i].m, wanted[i].k) == wanted[i].kernel,
                "m %" PRId64 " k %" PRId64, wanted[i].m, wanted[i].k);
    ck_assert_int_eq(qg_route_kernel(&one, 1, 1), SHARED);
    ck_assert_int_eq(qg_route_kernel(&one, 9999, 9999), SHARED);
    ck_assert_int_eq(qg_route_kernel(&empty, 1, 1), -1);
    ck_assert_int_eq(qg_route_kernel(NULL, 1, 1), -1);
}
END_TEST

// ------------------------------------------------------------------------------- published points

START_TEST(m12_floor_routes_the_published_points_to_the_faster_kernel) {
    for (int i = 0; i < PUBLISHED_POINTS; i++) {
        const published_point *p = &PUBLISHED[i];
        qg_kernel_request r = both(p->m, p->k, 132);
        ck_assert(p->least > 1 || p->most < 1);
        check_choice(&r, p->least > 1 ? HOPPER : SHARED,
                     p->least > 1 ? QG_REJECT_NONE : QG_REJECT_TOO_FEW_CTAS);
    }
}
END_TEST

int main(void) {
    const TTest *const tests[] = {m06_order_of_reasons,
                                  m06_route_in_the_order,
                                  m06_twin_alone_runs_everywhere,
                                  m06_floor_table,
                                  m06_floor_follows_the_sm_count,
                                  m06_floor_counts_the_tiles_of_the_element,
                                  m06_products_saturate,
                                  m06_same_request_same_choice,
                                  m06_names,
                                  m07_rows_on_grid_x_in_slabs,
                                  m08_lever_words,
                                  m08_lever_of_the_environment,
                                  m08_lever_hopper_passes_over_the_floor,
                                  m08_one_log_line_per_branch,
                                  route_takes_the_row_at_or_below,
                                  m12_floor_routes_the_published_points_to_the_faster_kernel};
    return RUN_SUITE("kernel_choice", tests);
}
