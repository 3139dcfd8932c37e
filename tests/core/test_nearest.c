// Suggestions for unknown words.
#include <qg_nearest.h>
#include <run_suite.h>

#include <string.h>

static const char *fruit(size_t i) {
    static const char *const words[] = {"apple", "pear", "plum", "pineapple", "fig", "Peach"};
    return i < sizeof words / sizeof words[0] ? words[i] : NULL;
}

static const char *nothing(size_t i) {
    (void)i;
    return NULL;
}

START_TEST(one_edit) {
    ck_assert_str_eq(qg_nearest("appel", fruit), "apple");  // swapped
    ck_assert_str_eq(qg_nearest("aple", fruit), "apple");   // missing
    ck_assert_str_eq(qg_nearest("applle", fruit), "apple"); // extra
    ck_assert_str_eq(qg_nearest("appla", fruit), "apple");  // replaced
    ck_assert_str_eq(qg_nearest("papple", fruit), "apple");
    ck_assert_str_eq(qg_nearest("fi", fruit), "fig");
}
END_TEST

START_TEST(the_nearest_wins_then_the_first) {
    ck_assert_str_eq(qg_nearest("plum", fruit), "plum");
    ck_assert_str_eq(qg_nearest("pinapple", fruit), "pineapple");
    ck_assert_str_eq(qg_nearest("pinappel", fruit), "pineapple"); // two edits of eight
    ck_assert_str_eq(qg_nearest("peac", fruit), "pear");          // Peach is as near, but later
}
END_TEST

START_TEST(case_does_not_count) {
    ck_assert_str_eq(qg_nearest("PLUM", fruit), "plum");
    ck_assert_str_eq(qg_nearest("peACH", fruit), "Peach");
    ck_assert_str_eq(qg_nearest("PEHAR", fruit), "pear");
}
END_TEST

START_TEST(nothing_near) {
    ck_assert_ptr_null(qg_nearest("banana", fruit));
    ck_assert_ptr_null(qg_nearest("", fruit));
    ck_assert_ptr_null(qg_nearest("plxx", fruit)); // two edits of four
    ck_assert_ptr_null(qg_nearest("plum", nothing));
    char endless[5000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    ck_assert_ptr_null(qg_nearest(endless, fruit));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {one_edit, the_nearest_wins_then_the_first, case_does_not_count,
                                  nothing_near};
    return RUN_SUITE("nearest", tests);
}
