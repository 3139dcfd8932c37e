// What a sweep shows while it runs: one line that is redrawn on a terminal, or a line now and then.
#ifndef QG_PROGRESS_LINE_H
#define QG_PROGRESS_LINE_H

#include <qg_sweep.h>

// What there is to show. Pointers are the caller's.
typedef struct qg_progress_state {
    int64_t total, done;         // cases of the shard; done includes those found finished
    int64_t measured;            // run now: they make the rate
    double cost_left, cost_done; // of qg_case_cost, of this run: they make the time left
    double seconds;              // of this run
    const int64_t *status;       // [QG_CASE_STATUS_COUNT]
    const qg_case *under_way;    // or NULL
    double under_way_seconds;
} qg_progress_state;

typedef struct qg_progress_line {
    FILE *stream;
    qg_progress mode; // BAR, LINES or NONE
    double next;      // when it is due
    bool drawn;       // a bar stands in the current line of the terminal
    // Of the time left: time = cases * a + cost * b, fitted to the whole run (sums of products over
    // seconds), times how much slower the last half minute was than that.
    double nn, nc, cc, nt, ct;
    double recent_cases, recent_cost, recent_seconds; // what is long past counts less
    double seen_cases, seen_cost, seen_seconds;       // of the state seen last
} qg_progress_line;

// Resolves AUTO: a bar on a terminal, lines elsewhere; nothing when quiet.
void qg_progress_line_start(qg_progress_line *line, FILE *stream, qg_progress mode, bool quiet,
                            double now);
// Shows the state if it is due: a bar 10 times a second, a line every 30 s.
void qg_progress_line_show(qg_progress_line *line, const qg_progress_state *state, double now);
// Takes the bar away, so that a message can be printed.
void qg_progress_line_clear(qg_progress_line *line);

// Takes the state's cases, cost and time into the line's rate. The time of the case under way does
// not count before it is done, so that the rate does not sink while a long case runs.
void qg_progress_line_learn(qg_progress_line *line, const qg_progress_state *state);
// Seconds left by that rate, NaN before any case is done.
double qg_progress_line_left(const qg_progress_line *line, const qg_progress_state *state);

// The text of the line, cut to `width` columns (0: not cut); `left` as above.
void qg_progress_line_format(const qg_progress_state *state, double left, int width, char *text,
                             size_t size);

#endif
