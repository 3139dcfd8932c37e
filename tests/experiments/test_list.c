// Lists of names and numbers, and numbers as users type them.
#include <list.h>
#include <number.h>
#include <run_suite.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_items(const char *text, int64_t count, const char *const *items) {
    qg_list list = {0};
    ck_assert_msg(qg_list_split(text, &list) == QG_OK, "%s: %s", text, qg_detail());
    ck_assert_int_eq(list.count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_str_eq(list.items[i], items[i]);
    qg_list_free(&list);
}

static void check_refused(const char *text, qg_status expected, const char *part) {
    qg_list list = {0};
    ck_assert_int_eq(qg_list_split(text, &list), expected);
    ck_assert_msg(strstr(qg_detail(), part) != NULL, "'%s' lacks '%s'", qg_detail(), part);
    qg_list_free(&list);
}

START_TEST(items) {
    check_items("a", 1, (const char *const[]){"a"});
    check_items("a,b,c", 3, (const char *const[]){"a", "b", "c"});
    check_items(" a , b ", 2, (const char *const[]){"a", "b"});
    check_items("a\\,b,c", 2, (const char *const[]){"a,b", "c"});
    check_items("a\\b,\\*", 2, (const char *const[]){"a\\b", "\\*"}); // other backslashes stay
    check_items("a\\\\,b", 1, (const char *const[]){"a\\,b"});
    check_refused("", QG_ERROR_ARGUMENT, "empty");
    check_refused("  ", QG_ERROR_ARGUMENT, "empty");
    check_refused("a,,b", QG_ERROR_ARGUMENT, "a,,b");
    check_refused("a,", QG_ERROR_ARGUMENT, "empty item");
    check_refused(",a", QG_ERROR_ARGUMENT, "empty item");
}
END_TEST

START_TEST(escaped_items_are_read_back) {
    const char *const words[] = {"a", "a,b", ",", "a\\", "a\\,b", "x y", "a,b,c,"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char text[64];
        qg_list_escape(words[i], text, sizeof text);
        check_items(text, 1, &words[i]);
    }
}
END_TEST

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(files) {
    char path[] = "/tmp/quantgauge-list-XXXXXX", text[64];
    int handle = mkstemp(path);
    ck_assert_int_ge(handle, 0);
    close(handle);
    snprintf(text, sizeof text, "x,@%s,y", path);
    write_file(path, "# names\na\n\n  b,c\n");
    check_items(text, 5, (const char *const[]){"x", "a", "b", "c", "y"});
    write_file(path, "a\nb"); // no line end
    check_items(text, 4, (const char *const[]){"x", "a", "b", "y"});
    write_file(path, "# nothing\n");
    check_refused(text, QG_ERROR_ARGUMENT, "no item");
    write_file(path, "@other\n");
    check_refused(text, QG_ERROR_ARGUMENT, "cannot name another");
    unlink(path);
    check_refused(text, QG_ERROR_IO, path);
    check_refused("@", QG_ERROR_IO, "cannot open");
}
END_TEST

static const char *word(size_t i) {
    static const char *const words[] = {"mxfp4", "mxfp8", "nvfp4"};
    return i < 3 ? words[i] : NULL;
}

START_TEST(globs) {
    qg_list list = {0};
    int64_t matched;
    ck_assert(qg_list_is_glob("mxfp*") && qg_list_is_glob("?x") && qg_list_is_glob("[mn]x"));
    ck_assert(!qg_list_is_glob("mxfp8"));
    ck_assert_int_eq(qg_list_match("mxfp*", word, &list, &matched), QG_OK);
    ck_assert_int_eq(matched, 2);
    ck_assert_str_eq(list.items[1], "mxfp8");
    ck_assert_int_eq(qg_list_match("?vfp[4]", word, &list, &matched), QG_OK);
    ck_assert_int_eq(matched, 1);
    ck_assert_int_eq(qg_list_match("z*", word, &list, &matched), QG_OK);
    ck_assert_int_eq(matched, 0);
    ck_assert_int_eq(list.count, 3);
    qg_list_free(&list);
}
END_TEST

// Reads a list of numbers from 1 to 2^63 - 1 (from 0 if the text is of seeds).
static qg_status numbers_of(const char *text, uint64_t lowest, uint64_t highest, qg_numbers *out) {
    qg_list list = {0};
    qg_status status = qg_list_split(text, &list);
    if (!status)
        status = qg_numbers_read(&list, lowest, highest, out);
    qg_list_free(&list);
    return status;
}

static void check_numbers(const char *text, int64_t count, const uint64_t *values) {
    qg_numbers read = {0};
    ck_assert_msg(numbers_of(text, 1, INT64_MAX, &read) == QG_OK, "%s: %s", text, qg_detail());
    ck_assert_int_eq(read.count, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_uint_eq(read.values[i], values[i]);
    qg_numbers_free(&read);
}

START_TEST(numbers) {
    check_numbers("7", 1, (const uint64_t[]){7});
    check_numbers("3,1,2", 3, (const uint64_t[]){3, 1, 2});
    check_numbers("3,1,3,1", 2, (const uint64_t[]){3, 1});       // each once, in order
    check_numbers("1:10:3", 4, (const uint64_t[]){1, 4, 7, 10}); // hi when hit
    check_numbers("1:9:3", 3, (const uint64_t[]){1, 4, 7});
    check_numbers("5:5:1", 1, (const uint64_t[]){5});
    check_numbers("1:16:*2", 5, (const uint64_t[]){1, 2, 4, 8, 16});
    check_numbers("3:30:*3,4", 4, (const uint64_t[]){3, 9, 27, 4});
    check_numbers("9223372036854775807", 1, (const uint64_t[]){INT64_MAX});
    check_numbers("9223372036854775800:9223372036854775807:5", 2,
                  (const uint64_t[]){9223372036854775800u, 9223372036854775805u});
    check_numbers("4611686018427387904:9223372036854775807:*2", 1,
                  (const uint64_t[]){4611686018427387904u});
}
END_TEST

START_TEST(seeds_take_all_64_bits) {
    qg_numbers seeds = {0};
    ck_assert_int_eq(numbers_of("0,18446744073709551615", 0, UINT64_MAX, &seeds), QG_OK);
    ck_assert_uint_eq(seeds.values[1], UINT64_MAX);
    qg_numbers_free(&seeds);
    ck_assert_int_eq(
        numbers_of("18446744073709551614:18446744073709551615:1", 0, UINT64_MAX, &seeds), QG_OK);
    ck_assert_int_eq(seeds.count, 2);
    qg_numbers_free(&seeds);
    ck_assert_int_eq(numbers_of("18446744073709551616", 0, UINT64_MAX, &seeds), QG_ERROR_ARGUMENT);
    qg_numbers_free(&seeds);
}
END_TEST

START_TEST(refused_numbers) {
    const char *const texts[] = {"0",
                                 "-1",
                                 "+1",
                                 "1.5",
                                 "1e3",
                                 "x",
                                 "0x10",
                                 "1 2",
                                 "1:2",
                                 "1:2:",
                                 ":2:1",
                                 "1:x:1",
                                 "2:1:1",
                                 "1:9:0",
                                 "1:9:*1",
                                 "1:9:*0",
                                 "0:9:1",
                                 "1:9:-1",
                                 "1:9:*",
                                 "1:9:2:3",
                                 "1::1",
                                 "1:9:**2",
                                 "1:2097153:1",
                                 "9223372036854775808",
                                 "1:9223372036854775808:*2"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        qg_numbers out = {0};
        ck_assert_msg(numbers_of(texts[i], 1, INT64_MAX, &out) == QG_ERROR_ARGUMENT, "%s",
                      texts[i]);
        ck_assert_ptr_null(strchr(qg_detail(), '\n'));
        qg_numbers_free(&out);
    }
    qg_numbers out = {0};
    ck_assert_int_eq(numbers_of("0:9:*2", 0, UINT64_MAX, &out), QG_ERROR_ARGUMENT);
    qg_numbers_free(&out);
}
END_TEST

START_TEST(numbers_are_the_whole_text) {
    uint64_t u;
    int64_t i;
    double f;
    ck_assert(qg_number_u64("18446744073709551615", &u) && u == UINT64_MAX);
    ck_assert(!qg_number_u64("18446744073709551616", &u) && !qg_number_u64("", &u));
    ck_assert(!qg_number_u64(" 1", &u) && !qg_number_u64("1 ", &u) && !qg_number_u64("-1", &u));
    ck_assert(qg_number_i64("-9223372036854775807", &i) && i == -INT64_MAX);
    ck_assert(!qg_number_i64("9223372036854775808", &i) && !qg_number_i64("--1", &i));
    ck_assert(qg_number_f64("1e-3", &f) && f == 1e-3);
    ck_assert(qg_number_f64("0x1p-3", &f) && f == 0.125);
    ck_assert(!qg_number_f64("", &f) && !qg_number_f64("1x", &f) && !qg_number_f64(" 1", &f));
    ck_assert(qg_number_hex("00000000000000ff", &u) && u == 255);
    ck_assert(qg_number_hex("0xFF", &u) && u == 255);
    ck_assert(!qg_number_hex("ff", &u) && !qg_number_hex("0x", &u) &&
              !qg_number_hex("00000000000000fg", &u) && !qg_number_hex("0x00000000000000ff0", &u));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        items,   escaped_items_are_read_back, files,           globs,
        numbers, seeds_take_all_64_bits,      refused_numbers, numbers_are_the_whole_text};
    return RUN_SUITE("list", tests);
}
