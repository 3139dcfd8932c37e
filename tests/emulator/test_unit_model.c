// Every row of the unit table against an independent model (support/slow_unit.c): random codes,
// scales and C, 10^5 cases in all. The same at 10^6 per row: test_unit_model_exhaustive.c.
#include <unit_model_check.h>

START_TEST(every_row_of_the_table_is_modelled) {
    for (size_t i = 0; qg_unit_row_at(i); i++) {
        if (qg_unit_row_at(i)->model == QG_MODEL_FMA)
            continue;
        int found = 0;
        for (int j = 0; slow_unit_at(j); j++)
            found += unit_row_of(slow_unit_at(j)) == qg_unit_row_at(i);
        ck_assert_msg(found == 1, "%s, row %d", qg_unit_listed(qg_unit_row_at(i)->unit), (int)i);
    }
}
END_TEST

START_TEST(random_cases_of_every_row) {
    for (int i = 0; slow_unit_at(i); i++)
        compare_unit(slow_unit_at(i), 2000, (uint64_t)i);
}
END_TEST

int main(void) {
    const TTest *tests[] = {every_row_of_the_table_is_modelled, random_cases_of_every_row};
    return RUN_SUITE("unit_model", tests);
}
