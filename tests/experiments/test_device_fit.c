// The search for the unit behind a product: fed with the emulator's own units it must find each, and
// its counts of survivors are those of the published table (Hopper FP8, K = 1024).
#include <device_fit.h>
#include <run_suite.h>

#include <qg_cpu.h>

#include <stdlib.h>
#include <string.h>

enum { FORMS = 2, PAIRS = 16 };

static device_signature forms[FORMS];
static float *measured[FORMS];

static void open_forms(int64_t k) {
    static const int powers[FORMS] = {8, 16};
    ck_assert_int_eq(qg_cpu_use_isa(NULL), QG_OK);
    for (int f = 0; f < FORMS; f++) {
        ck_assert_int_eq(device_signature_open(powers[f], PAIRS, k, &forms[f]), QG_OK);
        measured[f] = malloc((size_t)device_signature_outputs(&forms[f]) * sizeof(float));
        ck_assert_ptr_nonnull(measured[f]);
    }
}

static void close_forms(void) {
    for (int f = 0; f < FORMS; f++) {
        device_signature_free(&forms[f]);
        free(measured[f]);
    }
}

static void simulate(const char *unit) {
    for (int f = 0; f < FORMS; f++)
        ck_assert_int_eq(device_expect(&forms[f].product, unit, measured[f]), QG_OK);
}

static device_fit fit_of_measured(void) {
    device_fit fit;
    ck_assert_int_eq(device_fit_units(forms, FORMS, (const float *const *)measured, &fit), QG_OK);
    return fit;
}

// Rows: the first pairs; columns: the units.
static const char *const UNITS[] = {
    "hopper_wgmma",
    "hopper_wgmma+promote:64",
    "hopper_wgmma+promote:128",
    "hopper_wgmma+promote:256",
    "hopper_wgmma+split:2",
    "hopper_wgmma+promote:128+split:2",
};
enum { UNIT_COUNT = sizeof UNITS / sizeof UNITS[0] };
static const struct {
    int64_t i, j;
    double survivors[UNIT_COUNT];
} TABLE[] = {
    {0,   127,  {896, 928, 896, 896, 896, 896}},
    {0,   128,  {864, 896, 768, 864, 864, 768}},
    {0,   255,  {768, 928, 864, 768, 768, 864}},
    {0,   512,  {480, 896, 768, 512, 0, 768}  },
    {0,   1023, {0, 928, 864, 736, 480, 864}  },
    {511, 512,  {960, 928, 864, 736, 480, 864}},
};

START_TEST(survivors_are_those_of_the_published_table) {
    open_forms(DEVICE_TABLE_K);
    for (int u = 0; u < UNIT_COUNT; u++) {
        simulate(UNITS[u]);
        for (int p = 0; p < (int)(sizeof TABLE / sizeof TABLE[0]); p++) {
            ck_assert_int_eq(forms[0].pair[p].i, TABLE[p].i);
            ck_assert_int_eq(forms[0].pair[p].j, TABLE[p].j);
            ck_assert_double_eq(device_signature_survivors(&forms[0], p, measured[0]),
                                TABLE[p].survivors[u]);
        }
    }
    close_forms();
}
END_TEST

// The second form is what tells a split apart under promotion.
START_TEST(every_unit_is_found_and_no_other_explains_it) {
    open_forms(DEVICE_PROBE_LENGTH);
    static const char *const more[] = {"blackwell_tcgen05", "exact",
                                       "hopper_wgmma+promote:64+split:3"};
    for (size_t u = 0; u < UNIT_COUNT / 2 + sizeof more / sizeof more[0]; u++) {
        const char *unit = u < UNIT_COUNT / 2 ? UNITS[2 * u] : more[u - UNIT_COUNT / 2];
        simulate(unit);
        device_fit fit = fit_of_measured();
        ck_assert_str_eq(fit.unit, unit);
        ck_assert_int_eq(fit.differences, 0);
        ck_assert_msg(fit.exact == 1, "%s: %d units explain it", unit, fit.exact);
    }
    close_forms();
}
END_TEST

START_TEST(one_changed_output_is_explained_by_nothing) {
    open_forms(DEVICE_PROBE_LENGTH);
    simulate("hopper_wgmma+promote:128");
    measured[1][17] += 1;
    device_fit fit = fit_of_measured();
    ck_assert_str_eq(fit.unit, "hopper_wgmma+promote:128");
    ck_assert_int_eq(fit.differences, 1);
    ck_assert_int_eq(fit.exact, 0);
    close_forms();
}
END_TEST

START_TEST(pairs_are_in_order_and_differ) {
    device_signature s;
    ck_assert_int_eq(device_signature_open(8, DEVICE_PAIRS_MOST, DEVICE_PROBE_LENGTH, &s), QG_OK);
    for (int p = 0; p < s.pairs; p++) {
        ck_assert_int_ge(s.pair[p].i, 0);
        ck_assert_int_lt(s.pair[p].i, s.pair[p].j);
        ck_assert_int_lt(s.pair[p].j, DEVICE_PROBE_LENGTH);
        for (int q = 0; q < p; q++)
            ck_assert(s.pair[p].i != s.pair[q].i || s.pair[p].j != s.pair[q].j);
    }
    device_signature_free(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        survivors_are_those_of_the_published_table, every_unit_is_found_and_no_other_explains_it,
        one_changed_output_is_explained_by_nothing, pairs_are_in_order_and_differ};
    return RUN_SUITE("device_fit", tests);
}
