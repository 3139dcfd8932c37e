// The whole table of published results, computed in place: which are reproduced and which differ.
#include <published.h>
#include <run_suite.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Known to differ, each with its cause in the table.
static const char *const DIFFERENT[] = {
    "crossover crest factor, NVINT4 and NVFP4, rho 1 of their text",
    "average QSNR of MXINT8; ours on Gaussian data",
    "average QSNR of NVINT4; ours on Gaussian data",
    "QSNR of MX9 over FP8 E4M3",
};

static bool is_known(const char *item) {
    for (size_t i = 0; i < sizeof DIFFERENT / sizeof DIFFERENT[0]; i++)
        if (strcmp(item, DIFFERENT[i]) == 0)
            return true;
    return false;
}

START_TEST(verdicts_are_the_known_ones) {
    qg_figure_input none = {NULL, 0};
    qg_published_result *results;
    int count, differ = 0, reproduced = 0;
    ck_assert_msg(qg_published_results(&none, true, &results, &count) == QG_OK, "%s", qg_detail());
    for (int i = 0; i < count; i++) {
        const qg_published_result *r = &results[i];
        printf("%-40s %-60s %-16s %-48s %-14s %-10s %s\n", r->paper, r->item, r->theirs, r->ours,
               r->difference, qg_published_verdict_name(r->verdict), r->note);
        ck_assert(r->paper[0] && r->item[0] && r->theirs[0] && r->note[0]);
        ck_assert_msg(strlen(r->note) < sizeof r->note - 1, "cut: %s", r->note);
        ck_assert_msg(strlen(r->ours) < sizeof r->ours - 1, "cut: %s", r->ours);
        if (r->verdict == QG_PUBLISHED_NO_DATA)
            continue;
        ck_assert_msg((r->verdict == QG_PUBLISHED_DIFFERS) == is_known(r->item), "%s: %s, %s",
                      r->item, r->ours, qg_published_verdict_name(r->verdict));
        differ += r->verdict == QG_PUBLISHED_DIFFERS;
        reproduced += r->verdict == QG_PUBLISHED_REPRODUCED;
    }
    ck_assert_int_eq(differ, 4);
    ck_assert_int_eq(reproduced, 25);
    free(results);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {verdicts_are_the_known_ones};
    return RUN_SUITE("published_all", tests);
}
