// The partition of groups among CTAs and of elements among lanes, enumerated: every group and every
// element exactly once, for any grid, group size and element size. Tests of the statements M4, M5 and
// M7 of the activation quantizer that the kernels generalise begin with m04_, m05_, m07_.
#include <qg_partition.h>
#include <require.h>
#include <run_suite.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHARED = QG_GROUP_KERNEL_SHARED, HOPPER = QG_GROUP_KERNEL_HOPPER, BF16 = 2, FP32 = 4 };

// ------------------------------------------------------------------------------------------ spans

// Spans follow one another without gap or overlap, none longer than ceil(groups / grid_y).
static void check_spans(const qg_partition *p, int64_t grid_y) {
    int64_t next = 0, most = (p->groups + grid_y - 1) / grid_y;
    for (int64_t y = 0; y < grid_y; y++) {
        qg_span s = qg_partition_span(p, grid_y, y);
        REQUIRE(s.begin == next && s.begin <= s.end && s.end - s.begin <= most,
                "groups %" PRId64 " grid y %" PRId64 ": CTA %" PRId64 " has [%" PRId64 ", %" PRId64
                ")",
                p->groups, grid_y, y, s.begin, s.end);
        next = s.end;
    }
    REQUIRE(next == p->groups, "groups %" PRId64 " grid y %" PRId64 ": %" PRId64 " covered",
            p->groups, grid_y, next);
}

START_TEST(m04_any_grid_y_partitions_groups) {
    int64_t checked = 0;
    for (int64_t groups = 1; groups <= 512; groups++)
        for (int64_t y = 1; y <= groups + 3; y++) {
            qg_partition p = qg_partition_of(HOPPER, groups * 128, 128, BF16);
            check_spans(&p, y);
            checked++;
        }
    ck_assert_int_eq(checked, 132864);
}
END_TEST

// The shapes of the published tests, with the grids that a launcher might choose.
START_TEST(m04_published_shapes_with_any_launcher) {
    static const int64_t columns[] = {5120, 6144, 17408};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        qg_partition p = qg_partition_of(HOPPER, columns[i], 128, BF16);
        int64_t grids[] = {1, 2, 3, 5, 7, 8, 17, p.groups - 1, p.groups, qg_partition_grid_y(&p)};
        ck_assert_int_eq(p.groups, columns[i] / 128);
        for (size_t g = 0; g < sizeof grids / sizeof *grids; g++)
            check_spans(&p, grids[g]);
    }
}
END_TEST

START_TEST(m04_ragged_grid_gives_five_and_four) {
    qg_partition p = qg_partition_of(HOPPER, 1152, 128, BF16);
    ck_assert_int_eq(p.groups, 9);
    ck_assert_int_eq(qg_partition_grid_y(&p), 2);
    ck_assert_int_eq(qg_partition_span(&p, 2, 0).end - qg_partition_span(&p, 2, 0).begin, 5);
    ck_assert_int_eq(qg_partition_span(&p, 2, 1).end - qg_partition_span(&p, 2, 1).begin, 4);
}
END_TEST

// More groups than a grid has rows of CTAs: a CTA strides.
START_TEST(m04_groups_beyond_the_grid) {
    static const int64_t groups[] = {65534,  65535,  65536,   65537,  131069,
                                     131070, 131071, 1000003, 5000000};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
            qg_partition p = qg_partition_of(kernel, groups[i] * 16, 16, BF16);
            int64_t y = qg_partition_grid_y(&p), tiles = (groups[i] + p.held - 1) / p.held;
            ck_assert_int_eq(y, tiles < 65535 ? tiles : 65535);
            check_spans(&p, y);
        }
}
END_TEST

// ------------------------------------------------------------------------------------------ lanes

typedef struct tally {
    int64_t k;
    uint8_t *elements;    // times covered
    int64_t inert, most;  // threads without an element; most elements of a thread
    int64_t least_of_all; // least elements of a thread, inert ones included
} tally;

static int64_t cover(tally *t, qg_span s, int thread) {
    for (int64_t i = s.begin; i < s.end; i++) {
        REQUIRE(i >= 0 && i < t->k, "thread %d: element %" PRId64 " of %" PRId64, thread, i, t->k);
        t->elements[i]++;
    }
    return s.end > s.begin ? s.end - s.begin : 0;
}

static void walk_cta(const qg_partition *p, qg_span span, tally *t) {
    for (int thread = 0; thread < 128; thread++) {
        int64_t own = 0;
        for (int64_t first = span.begin; first < span.end; first += p->held) {
            int64_t group = qg_partition_group(p, first, thread);
            REQUIRE(group >= first && group < first + p->held, "thread %d: group", thread);
            for (int64_t step = 0; group < span.end && step < p->steps; step++)
                own += cover(t, qg_partition_columns(p, group, thread, step), thread);
        }
        t->inert += own == 0;
        t->most = own > t->most ? own : t->most;
        t->least_of_all = own < t->least_of_all ? own : t->least_of_all;
    }
}

static tally walk(const qg_partition *p, int64_t grid_y) {
    tally t = {.k = p->k, .elements = calloc((size_t)p->k, 1), .least_of_all = INT64_MAX};
    ck_assert_ptr_nonnull(t.elements);
    for (int64_t y = 0; y < grid_y; y++)
        walk_cta(p, qg_partition_span(p, grid_y, y), &t);
    return t;
}

static tally check_cover(const qg_partition *p, int64_t grid_y) {
    tally t = walk(p, grid_y);
    for (int64_t i = 0; i < p->k; i++)
        REQUIRE(t.elements[i] == 1,
                "k %" PRId64 " group %" PRId64 " lanes %d vector %d grid y %" PRId64
                ": element %" PRId64 " is covered %d times",
                p->k, p->group, p->lanes, p->vector, grid_y, i, t.elements[i]);
    free(t.elements);
    t.elements = NULL;
    return t;
}

START_TEST(m05_full_tile_is_1024_elements_8_per_thread) {
    qg_partition p = qg_partition_of(HOPPER, 1024, 128, BF16);
    ck_assert_int_eq(p.lanes, 16);
    ck_assert_int_eq(p.vector, 8);
    ck_assert_int_eq(p.held, 8);
    ck_assert_int_eq(p.steps, 1);
    ck_assert_int_eq(qg_partition_grid_y(&p), 1);
    tally t = check_cover(&p, 1);
    ck_assert_int_eq(t.inert, 0);
    ck_assert_int_eq(t.most, 8);
    ck_assert_int_eq(t.least_of_all, 8);
}
END_TEST

START_TEST(m05_partial_tiles_leave_128_less_16_span_inert) {
    for (int64_t span = 1; span <= 7; span++) {
        qg_partition p = qg_partition_of(HOPPER, span * 128, 128, BF16);
        tally t = check_cover(&p, 1);
        ck_assert_int_eq(t.inert, 128 - 16 * span);
        ck_assert_int_eq(t.most, 8);
    }
}
END_TEST

// Lanes of a group are one aligned piece of a warp, so that it reduces among them alone; the loads
// of a lane are aligned in the group, and whole but at its end.
static void check_lanes(const qg_partition *p) {
    ck_assert_int_eq(p->lanes * p->held, 128);
    ck_assert_int_eq(p->lanes & (p->lanes - 1), 0);
    ck_assert(p->lanes * p->vector * p->steps >= p->group);
    ck_assert(p->lanes * p->vector * (p->steps - 1) < p->group);
    for (int thread = 0; thread < 128; thread++) {
        int64_t group = qg_partition_group(p, 0, thread);
        ck_assert_int_eq(group, thread / p->lanes);
        for (int64_t step = 0; step < p->steps && group < p->groups; step++) {
            qg_span s = qg_partition_columns(p, group, thread, step);
            int64_t begin = group * p->group;
            int64_t end = begin + p->group < p->k ? begin + p->group : p->k;
            ck_assert(s.begin >= begin && s.end <= end && s.begin <= s.end);
            if (s.begin < s.end)
                ck_assert_int_eq((s.begin - begin) % p->vector, 0);
            if (s.begin < s.end && s.end < end)
                ck_assert_int_eq(s.end - s.begin, p->vector);
        }
    }
}

static const int64_t GROUPS[] = {1, 3, 16, 32, 100, 128, 200, 1000, 5000};
enum { GROUP_SIZES = sizeof GROUPS / sizeof *GROUPS };

START_TEST(m05_lanes_of_any_group_and_element_size) {
    static const int lanes_bf16[GROUP_SIZES] = {1, 1, 2, 4, 16, 16, 32, 32, 32};
    static const int lanes_fp32[GROUP_SIZES] = {1, 1, 4, 8, 32, 32, 32, 32, 32};
    for (int g = 0; g < GROUP_SIZES; g++)
        for (int bytes = BF16; bytes <= FP32; bytes += 2) {
            int64_t group = GROUPS[g];
            qg_partition shared = qg_partition_of(SHARED, 3 * group + 1, group, bytes);
            qg_partition twin = qg_partition_of(HOPPER, 3 * group + 1, group, bytes);
            ck_assert_int_eq(shared.lanes, 128);
            ck_assert_int_eq(shared.held, 1);
            ck_assert_int_eq(shared.vector, 1);
            ck_assert_int_eq(shared.steps, (group + 127) / 128);
            ck_assert_int_eq(twin.vector * bytes, 16);
            ck_assert_int_eq(twin.lanes, (bytes == BF16 ? lanes_bf16 : lanes_fp32)[g]);
            check_lanes(&shared);
            check_lanes(&twin);
        }
}
END_TEST

// A group that a warp holds at once is read in one step.
START_TEST(m05_one_step_up_to_what_a_warp_holds) {
    for (int bytes = BF16; bytes <= FP32; bytes += 2)
        for (int64_t group = 1; group <= 1100; group++) {
            int64_t warp = 32 * (16 / bytes), steps = (group + warp - 1) / warp;
            qg_partition p = qg_partition_of(HOPPER, 5 * group, group, bytes);
            ck_assert_int_eq(p.steps, steps);
            if (p.lanes > 1) // and no more lanes than that takes
                ck_assert(p.lanes / 2 * p.vector < group);
        }
}
END_TEST

// Row lengths around what a group, a vector and a tile hold.
START_TEST(m05_every_element_once_at_any_length) {
    for (int g = 0; g < GROUP_SIZES; g++)
        for (int bytes = BF16; bytes <= FP32; bytes += 2)
            for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
                int64_t group = GROUPS[g];
                int64_t tile = group * qg_partition_of(kernel, 1, group, bytes).held;
                int64_t lengths[] = {1,         2,        group / 2,    group - 1, group,
                                     group + 1, tile - 1, tile,         tile + 1,  tile + group + 1,
                                     2 * tile,  3 * tile, 3 * tile - 1, 9 * group, 11 * group - 3};
                for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                    if (lengths[i] < 1)
                        continue;
                    qg_partition p = qg_partition_of(kernel, lengths[i], group, bytes);
                    int64_t y = qg_partition_grid_y(&p);
                    check_cover(&p, y);
                    check_cover(&p, 1);
                    check_cover(&p, y + 2);
                    if (p.groups > 1)
                        check_cover(&p, p.groups - 1);
                }
            }
}
END_TEST

START_TEST(m05_every_row_length_up_to_two_tiles) {
    for (int64_t k = 1; k <= 2050; k++)
        for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++)
            for (int bytes = BF16; bytes <= FP32; bytes += 2) {
                qg_partition p = qg_partition_of(kernel, k, 128, bytes);
                check_cover(&p, qg_partition_grid_y(&p));
            }
}
END_TEST

START_TEST(m05_elements_once_where_ctas_stride) {
    for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
        qg_partition p = qg_partition_of(kernel, 70001, 1, FP32);
        check_cover(&p, qg_partition_grid_y(&p));
        p = qg_partition_of(kernel, 200003, 3, BF16);
        check_cover(&p, qg_partition_grid_y(&p));
    }
}
END_TEST

// ------------------------------------------------------------------------------------------- grid

START_TEST(m07_grid_y_within_its_limit) {
    static const int64_t columns[] = {1, 127, 128, 8388480, 8388481, INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        for (int g = 0; g < GROUP_SIZES; g++)
            for (int kernel = 0; kernel < QG_GROUP_KERNEL_COUNT; kernel++) {
                qg_partition p = qg_partition_of(kernel, columns[i], GROUPS[g], BF16);
                int64_t y = qg_partition_grid_y(&p);
                ck_assert(y >= 1 && y <= 65535);
                ck_assert(y <= p.groups);
            }
}
END_TEST

START_TEST(m07_shared_grid_is_the_groups_and_the_twin_an_eighth) {
    static const int64_t columns[] = {5120, 6144, 17408};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        qg_partition shared = qg_partition_of(SHARED, columns[i], 128, BF16);
        qg_partition twin = qg_partition_of(HOPPER, columns[i], 128, BF16);
        int64_t groups = columns[i] / 128;
        ck_assert_int_eq(qg_partition_grid_y(&shared), groups);
        ck_assert_int_eq(qg_partition_grid_y(&twin), (groups + 7) / 8);
        ck_assert(qg_partition_grid_y(&twin) < qg_partition_grid_y(&shared));
    }
    for (int64_t k = 1; k < 128; k++) { // below one group
        qg_partition twin = qg_partition_of(HOPPER, k, 128, BF16);
        qg_partition shared = qg_partition_of(SHARED, k, 128, BF16);
        ck_assert_int_eq(qg_partition_grid_y(&twin), 1);
        ck_assert_int_eq(qg_partition_grid_y(&shared), 1);
    }
}
END_TEST

// Rows are those of the slabs, one after another.
static void check_rows(int64_t m) {
    int64_t slabs = qg_partition_slabs(m), next = 0;
    for (int64_t slab = 0; slab < slabs; slab++) {
        int64_t x = qg_partition_grid_x(m, slab);
        ck_assert(x >= 1 && x <= 2147483647);
        ck_assert_int_eq(qg_partition_row(slab, 0), next);
        ck_assert_int_eq(qg_partition_row(slab, x - 1), next + x - 1);
        next += x;
    }
    ck_assert_int_eq(next, m);
}

START_TEST(m07_slabs_of_rows_follow_one_another) {
    const int64_t most = 2147483647;
    static const int64_t small[] = {1, 2, 53, 65535, 65536, 65537, 262141};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        ck_assert_int_eq(qg_partition_slabs(small[i]), 1);
        ck_assert_int_eq(qg_partition_grid_x(small[i], 0), small[i]);
        check_rows(small[i]);
    }
    for (int64_t slabs = 1; slabs <= 5; slabs++)
        for (int64_t off = -2; off <= 2; off++)
            check_rows(slabs * most + off);
    ck_assert_int_eq(qg_partition_slabs(most), 1);
    ck_assert_int_eq(qg_partition_slabs(most + 1), 2);
    ck_assert_int_eq(qg_partition_grid_x(most + 1, 1), 1);
    ck_assert_int_eq(qg_partition_row(1, 0), most);
    check_rows(INT64_C(1) << 42);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {m04_any_grid_y_partitions_groups,
                                  m04_published_shapes_with_any_launcher,
                                  m04_ragged_grid_gives_five_and_four,
                                  m04_groups_beyond_the_grid,
                                  m05_full_tile_is_1024_elements_8_per_thread,
                                  m05_partial_tiles_leave_128_less_16_span_inert,
                                  m05_lanes_of_any_group_and_element_size,
                                  m05_one_step_up_to_what_a_warp_holds,
                                  m05_every_element_once_at_any_length,
                                  m05_every_row_length_up_to_two_tiles,
                                  m05_elements_once_where_ctas_stride,
                                  m07_grid_y_within_its_limit,
                                  m07_shared_grid_is_the_groups_and_the_twin_an_eighth,
                                  m07_slabs_of_rows_follow_one_another};
    return RUN_SUITE("partition", tests);
}
