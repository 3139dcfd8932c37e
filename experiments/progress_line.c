// The progress line. See qg_progress_line.h. Knows the terminal; must not know files or processes.
#include <qg_progress_line.h>

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double BAR_INTERVAL = 0.1, LINE_INTERVAL = 30;
static const double MEMORY = 30; // seconds after which a rate counts 1/e

static void append(char *text, size_t size, const char *format, ...) {
    size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, size - length, format, values);
    va_end(values);
}

static void append_duration(char *text, size_t size, double seconds) {
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        append(text, size, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
    else
        append(text, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

static void append_statuses(char *text, size_t size, const int64_t *status) {
    for (int i = 0; i < QG_CASE_STATUS_COUNT; i++)
        if (status[i] > 0)
            append(text, size, " %s %" PRId64, qg_case_status_name((qg_case_status)i), status[i]);
}

static void append_case(char *text, size_t size, const qg_case *c, double seconds) {
    append(text, size, " | %s", c->op->name);
    const char *const words[] = {c->format, c->layout, c->scale_rule, c->unit, c->data, c->tensor};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i] && *words[i])
            append(text, size, " %s", words[i]);
    if (c->n)
        append(text, size, " %" PRId64 "x%" PRId64 "x%" PRId64, c->m, c->n, c->k);
    else if (c->m)
        append(text, size, " %" PRId64 "x%" PRId64, c->m, c->k);
    if (seconds >= 1)
        append(text, size, " %.0f s", seconds);
}

// Ends the text after `width` characters, never inside one; no control characters.
static void cut(char *text, int width) {
    int columns = 0;
    for (char *c = text; *c; c++) {
        bool begins = ((unsigned char)*c & 0xC0) != 0x80;
        if (begins && width > 0 && columns == width) {
            *c = 0;
            return;
        }
        columns += begins;
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    }
}

// ----------------------------------------------------------------------------------- time left

// A guess that fades: without it the first small cases would say nothing about large ones.
static const double GUESS_COST = 1e6, GUESS_SECONDS = 0.1;

static void remember(qg_progress_line *line, double cases, double cost, double seconds) {
    double kept = exp(-seconds / MEMORY);
    line->recent_cases = kept * line->recent_cases + cases;
    line->recent_cost = kept * line->recent_cost + cost;
    line->recent_seconds = kept * line->recent_seconds + seconds;
    line->nn += cases * cases / seconds;
    line->nc += cases * cost / seconds;
    line->cc += cost * cost / seconds;
    line->nt += cases;
    line->ct += cost;
}

void qg_progress_line_learn(qg_progress_line *line, const qg_progress_state *state) {
    double ended = state->seconds - (state->under_way ? state->under_way_seconds : 0);
    double cases = (double)state->measured - line->seen_cases;
    double cost = state->cost_done - line->seen_cost, seconds = ended - line->seen_seconds;
    if (cost <= 0 || seconds <= 0)
        return;
    remember(line, cases, cost, seconds);
    line->seen_cases = (double)state->measured;
    line->seen_cost = state->cost_done;
    line->seen_seconds = ended;
}

// Least squares: seconds per case and per unit of cost, neither below 0.
static void fit(const qg_progress_line *line, double *per_case, double *per_cost) {
    double cc = line->cc + GUESS_COST * GUESS_COST / GUESS_SECONDS, ct = line->ct + GUESS_COST;
    double determinant = line->nn * cc - line->nc * line->nc;
    *per_case = 0;
    *per_cost = ct / cc;
    if (determinant <= 1e-9 * line->nn * cc)
        return;
    double a = (line->nt * cc - ct * line->nc) / determinant;
    double b = (ct * line->nn - line->nt * line->nc) / determinant;
    if (a > 0 && b > 0) {
        *per_case = a;
        *per_cost = b;
    }
}

double qg_progress_line_left(const qg_progress_line *line, const qg_progress_state *state) {
    double a, b, spent = 0;
    if (line->recent_cost <= 0)
        return NAN;
    fit(line, &a, &b);
    double slower = line->recent_seconds / (a * line->recent_cases + b * line->recent_cost);
    double cases = (double)(state->total - state->done);
    if (state->under_way) // at most what the case was thought to take
        spent = fmin(state->under_way_seconds, slower * (a + b * qg_case_cost(state->under_way)));
    return fmax(slower * (a * cases + b * state->cost_left) - spent, 0);
}

// ---------------------------------------------------------------------------------------- text

void qg_progress_line_format(const qg_progress_state *state, double left, int width, char *text,
                             size_t size) {
    text[0] = 0;
    append(text, size, "%" PRId64 "/%" PRId64, state->done, state->total);
    append_statuses(text, size, state->status);
    if (state->measured > 0 && state->seconds > 0) {
        double rate = (double)state->measured / state->seconds;
        append(text, size, rate < 10 ? " | %.1f/s" : " | %.0f/s", rate);
        if (!isnan(left)) {
            append(text, size, " ETA ");
            append_duration(text, size, left);
        }
    }
    if (state->under_way)
        append_case(text, size, state->under_way, state->under_way_seconds);
    cut(text, width);
}

void qg_progress_line_start(qg_progress_line *line, FILE *stream, qg_progress mode, bool quiet,
                            double now) {
    const char *term = getenv("TERM");
    bool terminal = isatty(fileno(stream)) == 1 && term && strcmp(term, "dumb") != 0;
    if (mode == QG_PROGRESS_AUTO)
        mode = quiet ? QG_PROGRESS_NONE : terminal ? QG_PROGRESS_BAR : QG_PROGRESS_LINES;
    *line = (qg_progress_line){.stream = stream, .mode = mode};
    line->next = now + (mode == QG_PROGRESS_BAR ? BAR_INTERVAL : LINE_INTERVAL);
}

static int terminal_width(FILE *stream) {
    struct winsize size;
    if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return 79;
    return size.ws_col - 1; // a full line would wrap on some terminals
}

void qg_progress_line_show(qg_progress_line *line, const qg_progress_state *state, double now) {
    if (line->mode == QG_PROGRESS_NONE || now < line->next)
        return;
    char text[1024];
    bool bar = line->mode == QG_PROGRESS_BAR;
    qg_progress_line_learn(line, state);
    qg_progress_line_format(state, qg_progress_line_left(line, state),
                            bar ? terminal_width(line->stream) : 0, text, sizeof text);
    fprintf(line->stream, bar ? "\r%s\033[K" : "%s\n", text);
    fflush(line->stream);
    line->drawn = bar;
    line->next = now + (bar ? BAR_INTERVAL : LINE_INTERVAL);
}

void qg_progress_line_clear(qg_progress_line *line) {
    if (!line->drawn)
        return;
    fprintf(line->stream, "\r\033[K");
    fflush(line->stream);
    line->drawn = false;
}
