// The progress line: what it says, that it fits the terminal, when it is due.
#include <qg_progress_line.h>
#include <run_suite.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double elements(const qg_case *c) { return (double)c->m * (double)c->k; }

static const qg_op OP = {.name = "error", .by_default = true, .cost = elements};
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
    qg_progress_line_format(&state, 210, 0, text, sizeof text);
    ck_assert_str_eq(text, "50/100 RAN 40 CRASHED 2 | 10/s ETA 3:30 | error mxfp8 group:32 floor "
                           "tensors:a.h5 w?q 16x128 3 s");
    state.under_way = NULL;
    state.measured = 0;
    state.cost_done = 0;
    qg_progress_line_format(&state, NAN, 0, text, sizeof text);
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
    qg_progress_line_format(&state, 210, 0, whole, sizeof whole);
    for (int width = 1; width < 100; width++) {
        qg_progress_line_format(&state, 210, width, text, sizeof text);
        ck_assert_int_eq(strncmp(text, whole, strlen(text)), 0);
        int columns = 0;
        for (const char *t = text; *t; t++)
            columns += ((unsigned char)*t & 0xC0) != 0x80;
        ck_assert_int_le(columns, width);
        ck_assert(((unsigned char)whole[strlen(text)] & 0xC0) != 0x80); // not inside a character
    }
    for (size_t size = 1; size < 60; size++) { // a small buffer is no danger
        memset(text, '#', sizeof text);
        qg_progress_line_format(&state, 210, 0, text, size);
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

// Cases of equal cost that take a second each.
START_TEST(time_left_is_calm) {
    qg_progress_line line = {0};
    qg_recipe recipe = {.rule = QG_RULE_AMAX};
    qg_case c = {.op = &OP, .recipe = &recipe, .m = 1000, .k = 1000};
    double cost = qg_case_cost(&c);
    qg_progress_state state = {.total = 400, .cost_left = 400 * cost, .status = status};
    ck_assert(isnan(qg_progress_line_left(&line, &state)));
    state.under_way = &c;
    for (int tick = 1; tick < 3990; tick++) {
        state.seconds = tick / 10.0;
        state.done = state.measured = tick / 10;
        state.cost_done = (double)state.done * cost;
        state.cost_left = 400 * cost - state.cost_done;
        state.under_way_seconds = state.seconds - (double)state.done;
        qg_progress_line_learn(&line, &state);
        double left = qg_progress_line_left(&line, &state), wanted = 400 - state.seconds;
        if (state.done > 0)
            ck_assert_msg(fabs(left - wanted) < 1e-6 * 400, "%g, not %g", left, wanted);
    }
}
END_TEST

// The machine becomes twice as slow: what is left follows within a minute, without a jump.
START_TEST(time_left_follows) {
    qg_progress_line line = {0};
    qg_progress_state state = {.total = 4000, .cost_left = 4000e6, .status = status};
    double last = 0, left = 0;
    for (int second = 1; second <= 180; second++) {
        double speed = second <= 60 ? 2e6 : 1e6;
        state.seconds = second;
        state.cost_done += speed;
        state.cost_left -= speed;
        qg_progress_line_learn(&line, &state);
        last = left;
        left = qg_progress_line_left(&line, &state);
        if (second > 1)
            ck_assert_msg(left / last < 1.06 && last / left < 1.06, "%g after %g", left, last);
    }
    double true_left = state.cost_left / 1e6;
    ck_assert_msg(fabs(left / true_left - 1) < 0.02, "%g, not %g", left, true_left);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {it_says_what_matters, it_fits, it_comes_when_due,
                                  time_left_is_calm, time_left_follows};
    return RUN_SUITE("progress_line", tests);
}
