// The progress line: what it says, that it fits the terminal, when it is due.
#include <qg_progress_line.h>
#include <run_suite.h>

#include <stdlib.h>
#include <string.h>

static const qg_op OP = {"error", "", true, NULL};
static int64_t status[QG_CASE_STATUS_COUNT];

static qg_progress_state state_of(const qg_case *c) {
    memset(status, 0, sizeof status);
    status[QG_CASE_RAN] = 40;
    status[QG_CASE_CRASHED] = 2;
    return (qg_progress_state){.total = 100,
                               .done = 50,
                               .measured = 42,
                               .seconds = 4.2,
                               .cost_done = 1000,
                               .cost_left = 50000,
                               .status = status,
                               .under_way = c,
                               .under_way_seconds = 3};
}

START_TEST(it_says_what_matters) {
    qg_case c = {.op = &OP,
                 .format = "mxfp8",
                 .layout = "group:32",
                 .scale_rule = "floor",
                 .data = "tensors:a.h5",
                 .tensor = "w\nq",
                 .m = 16,
                 .k = 128};
    qg_progress_state state = state_of(&c);
    char text[512];
    qg_progress_line_format(&state, 0, text, sizeof text);
    ck_assert_str_eq(text, "50/100 RAN 40 CRASHED 2 | 10/s ETA 3:30 | error mxfp8 group:32 floor "
                           "tensors:a.h5 w?q 16x128 3 s");
    state.under_way = NULL;
    state.measured = 0;
    state.cost_done = 0;
    qg_progress_line_format(&state, 0, text, sizeof text);
    ck_assert_str_eq(text, "50/100 RAN 40 CRASHED 2");
}
END_TEST

START_TEST(it_fits) {
    qg_case c = {.op = &OP,
                 .format = "mxfp8",
                 .layout = "group:32",
                 .scale_rule = "floor",
                 .data = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
                 .tensor = "",
                 .m = 16,
                 .k = 128};
    qg_progress_state state = state_of(&c);
    char whole[512], text[512];
    qg_progress_line_format(&state, 0, whole, sizeof whole);
    for (int width = 1; width < 100; width++) {
        qg_progress_line_format(&state, width, text, sizeof text);
        ck_assert_int_eq(strncmp(text, whole, strlen(text)), 0);
        int columns = 0;
        for (const char *t = text; *t; t++)
            columns += ((unsigned char)*t & 0xC0) != 0x80;
        ck_assert_int_le(columns, width);
        ck_assert(((unsigned char)whole[strlen(text)] & 0xC0) != 0x80); // not inside a character
    }
    for (size_t size = 1; size < 60; size++) { // a small buffer is no danger
        memset(text, '#', sizeof text);
        qg_progress_line_format(&state, 0, text, size);
        ck_assert_uint_lt(strlen(text), size);
        ck_assert_int_eq(text[size], '#');
    }
}
END_TEST

static size_t shown(qg_progress mode, bool quiet, double first, double last, double step) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&bytes, &size);
    qg_progress_line line;
    qg_progress_state state = state_of(NULL);
    // A memory stream is no terminal.
    qg_progress_line_start(&line, stream, mode, quiet, first);
    for (double now = first; now <= last; now += step)
        qg_progress_line_show(&line, &state, now);
    qg_progress_line_clear(&line);
    fclose(stream);
    size_t lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += bytes[i] == (mode == QG_PROGRESS_BAR ? '\r' : '\n');
    free(bytes);
    return lines;
}

START_TEST(it_comes_when_due) {
    ck_assert_uint_eq(shown(QG_PROGRESS_LINES, false, 100, 191, 0.5), 3); // every 30 s
    ck_assert_uint_eq(shown(QG_PROGRESS_AUTO, false, 100, 191, 0.5), 3);
    ck_assert_uint_eq(shown(QG_PROGRESS_AUTO, true, 100, 191, 0.5), 0);
    ck_assert_uint_eq(shown(QG_PROGRESS_NONE, false, 100, 191, 0.5), 0);
    size_t drawn = shown(QG_PROGRESS_BAR, false, 100, 101.01, 0.001); // and taken away
    ck_assert(drawn >= 9 && drawn <= 12);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {it_says_what_matters, it_fits, it_comes_when_due};
    return RUN_SUITE("progress_line", tests);
}
