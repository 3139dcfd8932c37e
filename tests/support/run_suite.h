// The main() of a Check test program: `return run_suite("name", tests, count)`.
#ifndef RUN_SUITE_H
#define RUN_SUITE_H

#include <check.h>
#include <stddef.h>

// Runs the tests in order, prints failures, returns 1 if any test failed. Check's own time limit is
// off: the limit is ctest's.
static inline int run_suite(const char *name, const TTest *const *tests, size_t count) {
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 0);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#define RUN_SUITE(name, tests) run_suite(name, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
