// Every row of the unit table against an independent model: 10^6 random cases per row.
// ctest-labels: exhaustive
// ctest-timeout: 3600
#include <unit_model_check.h>

START_TEST(random_cases_of_every_row) {
    for (int i = 0; slow_unit_at(i); i++)
        compare_unit(slow_unit_at(i), 1000000, 0x1000 + (uint64_t)i);
}
END_TEST

int main(void) {
    const TTest *tests[] = {random_cases_of_every_row};
    return RUN_SUITE("unit_model_exhaustive", tests);
}
