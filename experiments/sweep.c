// Running a plan. See qg_sweep.h: here the pieces meet: locks, parts, worker, progress, signals.
//
// The parent does no numeric work, starts no thread and opens no device: workers are forked from it.
#include <qg_sweep.h>

#include <device_probe.h>
#include <isa_choice.h>
#include <message.h>
#include <qg_clock.h>
#include <qg_locks.h>
#include <qg_parts.h>
#include <qg_progress_line.h>
#include <qg_provenance.h>
#include <qg_result_row.h>
#include <qg_signals.h>
#include <qg_worker.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_PER_PART = 16384 };
static const double FIRST_INTERVAL = 2, LONGEST_INTERVAL = 30; // seconds between parts

typedef struct sweep {
    const qg_plan *plan;
    const qg_sweep_options *options;
    qg_sweep_outcome *outcome;
    char build[QG_BUILD_IDENTITY_SIZE];
    uint64_t *ids;        // of all cases, in plan order
    const qg_case **todo; // cases that the worker runs
    int64_t todo_count;
    qg_locks *locks;
    qg_parts *parts;
    qg_worker *worker;
    int64_t run; // of the pending table
    qg_progress_line line;
    qg_progress_state progress;
    int64_t status[QG_CASE_STATUS_COUNT]; // of the rows of this run
    double start;                         // of the process's part in it
    double next_write, interval;
    bool stopped; // before its last case
    bool broken;  // an error was printed: exit_code says which kind
} sweep;

int qg_shard_of(const qg_case *c, int shards) { return (int)(c->shard_key % (uint64_t)shards); }

static bool is_own(const sweep *s, int64_t order) {
    return s->options->merge_only ||
           qg_shard_of(qg_plan_case(s->plan, order), s->options->shards) == s->options->shard - 1;
}

// Prints the detail of the failure; the first one sets the exit code.
static void report(sweep *s, qg_status status) {
    qg_progress_line_clear(&s->line);
    qg_message_error("%s", qg_detail());
    if (!s->broken)
        s->outcome->exit_code = status == QG_ERROR_ARGUMENT ? 2 : 5;
    s->broken = true;
}

__attribute__((format(printf, 2, 3))) static void note(sweep *s, const char *format, ...) {
    if (s->options->verbosity < 0)
        return;
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    qg_progress_line_clear(&s->line);
    qg_message_note("%s", text);
}

// ---- Before -------------------------------------------------------------------------------------

// Of the device that the worker uses, where the plan asked for one.
static qg_status describe_device(qg_table *table, int64_t run) {
    const device_probe *probe = device_probe_known();
    char cuda[24], driver[24], cublaslt[24] = "none";
    if (!probe || !probe->answers)
        return QG_OK;
    const qg_cuda_device *d = &probe->device;
    snprintf(cuda, sizeof cuda, "%d.%d", d->runtime / 1000, d->runtime % 1000 / 10);
    snprintf(driver, sizeof driver, "%d.%d", d->driver / 1000, d->driver % 1000 / 10);
    if (d->cublaslt > 0)
        snprintf(cublaslt, sizeof cublaslt, "%" PRId64, d->cublaslt);
    qg_status status = qg_table_set_run(table, run, "cuda", cuda);
    if (status == QG_OK)
        status = qg_table_set_run(table, run, "driver", driver);
    if (status == QG_OK)
        status = qg_table_set_run(table, run, "cublaslt", cublaslt);
    return status == QG_OK ? qg_table_set_run(table, run, "gpu", d->name) : status;
}

static qg_status describe_run(void *context, qg_table *table) {
    sweep *s = context;
    qg_status status = qg_provenance_begin(table, qg_unit_isa(), qg_isa_cap(s->options->isa),
                                           s->options->threads, &s->run);
    if (status == QG_OK)
        status = describe_device(table, s->run);
    if (status == QG_OK && s->options->command_line)
        status = qg_table_add_argv(table, s->options->command_line);
    return status;
}

static qg_status close_run(void *context, qg_table *table) {
    sweep *s = context;
    return qg_provenance_end(table, s->run);
}

static qg_status open_parts(sweep *s) {
    const qg_sweep_options *o = s->options;
    qg_status status = qg_build_identity(s->build);
    if (status != QG_OK)
        return status;
    qg_parts_options options = {.out = o->out,
                                .shard = o->shard,
                                .shards = o->shards,
                                .existing = o->existing,
                                .plan_text = qg_plan_text(s->plan),
                                .case_ids = s->ids,
                                .cases = qg_plan_count(s->plan),
                                .build = s->build,
                                .locked = s->locks != NULL,
                                .describe = describe_run,
                                .close = close_run,
                                .context = s};
    if (o->merge_only && o->existing == QG_EXISTING_OVERWRITE)
        options.existing = QG_EXISTING_RESUME;
    return qg_parts_open(&options, &s->parts);
}

// Whether every own case has its result.
static bool all_finished(const sweep *s) {
    for (int64_t i = 0; i < qg_plan_count(s->plan); i++)
        if (is_own(s, i) && !qg_parts_finished(s->parts, i))
            return false;
    return true;
}

// Without a folder for parts (a read-only place) a whole FILE can still be used.
static bool open_unlocked(sweep *s, qg_status refused) {
    char detail[512];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    if (refused == QG_ERROR_IO && s->options->existing != QG_EXISTING_OVERWRITE &&
        open_parts(s) == QG_OK && qg_parts_is_merged(s->parts) && all_finished(s))
        return true;
    report(s, qg_fail(refused, "%s", detail));
    return false;
}

// Locks and reads what is there. False after an error.
static bool open_results(sweep *s) {
    const qg_sweep_options *o = s->options;
    qg_status status = o->merge_only ? qg_locks_take_alone(o->out, &s->locks)
                                     : qg_locks_take(o->out, o->shard, o->shards, &s->locks);
    if (status != QG_OK)
        return open_unlocked(s, status);
    status = open_parts(s);
    if (status == QG_OK)
        return true;
    report(s, status);
    return false;
}

static bool list_ids(sweep *s) {
    int64_t count = qg_plan_count(s->plan);
    s->ids = malloc(((size_t)count + 1) * sizeof *s->ids);
    s->todo = malloc(((size_t)count + 1) * sizeof *s->todo);
    if (!s->ids || !s->todo) {
        report(s, qg_fail(QG_ERROR_MEMORY, "no memory for a plan of %" PRId64 " cases", count));
        return false;
    }
    for (int64_t i = 0; i < count; i++)
        s->ids[i] = qg_plan_case(s->plan, i)->id;
    return true;
}

// ---- While it runs ------------------------------------------------------------------------------

static bool is_failure(int32_t status) {
    return status == QG_CASE_FAILED || status == QG_CASE_CRASHED || status == QG_CASE_TIMEOUT;
}

static void add_row(sweep *s, const qg_case *c, const qg_case_result *result) {
    qg_table *table;
    qg_status status = qg_parts_pending(s->parts, &table);
    if (status == QG_OK)
        status = qg_result_row_add(table, s->plan, c, result, s->run);
    if (status != QG_OK) {
        report(s, status);
        return;
    }
    s->status[result->status]++;
    s->progress.done++;
}

static void add_given_row(sweep *s, const qg_case *c) {
    qg_case_result result;
    qg_case_result_clear(&result, c);
    if (c->skip)
        qg_case_result_set(&result, QG_CASE_SKIPPED, "%s", c->skip);
    else
        qg_case_result_set(&result, QG_CASE_UNAVAILABLE, "%s", c->unavailable);
    add_row(s, c, &result);
}

// Sorts the own cases: finished, given without running, to run.
static void sort_cases(sweep *s) {
    for (int64_t i = 0; i < qg_plan_count(s->plan) && !s->broken; i++) {
        const qg_case *c = qg_plan_case(s->plan, i);
        if (!is_own(s, i))
            continue;
        s->progress.total++;
        if (qg_parts_finished(s->parts, i)) {
            s->outcome->reused++;
            s->progress.done++;
        } else if (c->skip || c->unavailable) {
            add_given_row(s, c);
        } else {
            s->todo[s->todo_count++] = c;
            s->progress.cost_left += qg_case_cost(c);
        }
    }
}

static void write_part(sweep *s) {
    qg_status status = qg_parts_write(s->parts);
    if (status == QG_OK)
        return;
    report(s, status);
    note(s, "what was written before stays: the same command resumes");
}

// Writes when enough rows or enough time have come together.
static void write_when_due(sweep *s, double now) {
    bool wanted = qg_signals_take_write();
    bool late = now >= s->next_write && qg_parts_pending_rows(s->parts) > 0;
    if (s->broken || (!wanted && !late && qg_parts_pending_rows(s->parts) < ROWS_PER_PART))
        return;
    write_part(s);
    if (late)
        s->interval = s->interval * 2 < LONGEST_INTERVAL ? s->interval * 2 : LONGEST_INTERVAL;
    s->next_write = qg_clock() + s->interval;
}

static void take_result(sweep *s, const qg_case_result *result) {
    const qg_case *c = qg_plan_case(s->plan, result->order);
    add_row(s, c, result);
    s->outcome->measured++;
    s->progress.measured++;
    double cost = qg_case_cost(c);
    s->progress.cost_left -= cost;
    s->progress.cost_done += cost;
}

static int64_t failures(const sweep *s) {
    int64_t count = 0;
    for (int i = 0; i < QG_CASE_STATUS_COUNT; i++)
        count += is_failure(i) ? s->status[i] : 0;
    return count;
}

// Why no further case shall start, NULL if none.
static const char *reason_to_stop(const sweep *s, double now) {
    const qg_sweep_options *o = s->options;
    if (s->broken)
        return "";
    if (qg_signals_stop())
        return qg_signals_stop();
    if (o->max_seconds > 0 && now - s->start >= o->max_seconds)
        return "--max-seconds";
    if (o->max_failures > 0 && failures(s) >= o->max_failures)
        return "--max-failures";
    return NULL;
}

static void stop_if_asked(sweep *s, double now) {
    const char *reason = s->stopped ? NULL : reason_to_stop(s, now);
    if (!reason)
        return;
    if (reason[0])
        note(s, "stopped by %s: writing what is finished", reason);
    s->outcome->interrupted = reason[0] != 0;
    s->stopped = true;
    qg_worker_stop(s->worker);
}

static void show_progress(sweep *s, double now) {
    if (now < s->line.next)
        return;
    s->progress.status = s->status;
    s->progress.seconds = now - s->start;
    s->progress.under_way = qg_worker_under_way(s->worker, &s->progress.under_way_seconds);
    qg_progress_line_show(&s->line, &s->progress, now);
}

static void run_cases(sweep *s) {
    qg_worker_options options = {.cases = s->todo,
                                 .count = s->todo_count,
                                 .threads = s->options->threads,
                                 .case_timeout = s->options->case_timeout,
                                 .in_worker = qg_locks_in_worker,
                                 .context = s->locks};
    qg_status status = qg_worker_create(&options, &s->worker);
    if (status != QG_OK) {
        report(s, status);
        return;
    }
    s->interval = FIRST_INTERVAL;
    s->next_write = qg_clock() + s->interval;
    const qg_case_result *result;
    qg_worker_event event;
    while ((event = qg_worker_next(s->worker, 0.1, &result)) != QG_WORKER_DONE) {
        if (event == QG_WORKER_RESULT)
            take_result(s, result);
        else if (event == QG_WORKER_BROKEN)
            report(s, QG_ERROR_ENVIRONMENT);
        double now = qg_clock();
        stop_if_asked(s, now);
        write_when_due(s, now);
        show_progress(s, now);
    }
    qg_progress_line_clear(&s->line);
    qg_worker_free(s->worker);
    s->worker = NULL;
}

static void measure(sweep *s) {
    sort_cases(s);
    if (!s->broken && s->todo_count > 0) {
        if (s->outcome->reused > 0)
            note(s, "%" PRId64 " of %" PRId64 " cases are finished already and reused",
                 s->outcome->reused, s->progress.total);
        run_cases(s);
    }
}

// ---- After --------------------------------------------------------------------------------------

// Counts the own cases of the table, drops the rows of other shards unless it is the merged file.
static qg_status take_stock(sweep *s) {
    qg_sweep_outcome *o = s->outcome;
    size_t count = (size_t)qg_plan_count(s->plan);
    int64_t rows = qg_table_rows(o->table);
    bool *present = calloc(count + 1, 1), *keep = calloc((size_t)rows + 1, 1);
    if (!present || !keep) {
        free(present);
        free(keep);
        return qg_fail(QG_ERROR_MEMORY, "no memory for the results of the sweep");
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t order = qg_table_order(o->table, row);
        keep[row] = is_own(s, order);
        if (keep[row] && !present[order])
            o->status[qg_case_status_find(qg_table_text(o->table, row, QG_COLUMN_STATUS)) %
                      QG_CASE_STATUS_COUNT]++;
        present[order] = true;
    }
    for (int64_t i = 0; i < (int64_t)count; i++) {
        o->cases += is_own(s, i);
        o->missing += is_own(s, i) && !present[i];
    }
    if (!o->merged)
        qg_table_keep_rows(o->table, keep);
    free(present);
    free(keep);
    return QG_OK;
}

// The table holds every case: makes it FILE.
static void publish(sweep *s) {
    if (!qg_parts_is_merged(s->parts)) {
        qg_status status = qg_parts_publish(s->parts, s->outcome->table);
        if (status != QG_OK) {
            report(s, status);
            qg_parts_write(s->parts); // there may still be room for this
            return;
        }
    } else {
        note(s, "%s holds all %" PRId64 " cases of this plan already", s->options->out,
             qg_plan_count(s->plan));
    }
    s->outcome->merged = true;
    if (s->locks)
        qg_locks_remove_folder(s->locks);
}

// Names the shards that lack cases: " (shards 2/3 3/3)".
static void list_missing_shards(const sweep *s, char *text, size_t size) {
    int shards = qg_parts_common_split(s->parts);
    text[0] = 0;
    if (shards < 2)
        return;
    bool *lacks = calloc((size_t)shards, 1);
    bool *present = calloc((size_t)qg_plan_count(s->plan) + 1, 1);
    for (int64_t row = 0; present && row < qg_table_rows(s->outcome->table); row++)
        present[qg_table_order(s->outcome->table, row)] = true;
    for (int64_t i = 0; lacks && present && i < qg_plan_count(s->plan); i++)
        if (!present[i])
            lacks[qg_shard_of(qg_plan_case(s->plan, i), shards)] = true;
    size_t length = 0;
    for (int i = 0; lacks && i < shards && length + 32 < size; i++)
        if (lacks[i])
            length += (size_t)snprintf(text + length, size - length, "%s%d/%d",
                                       length ? " " : ", of shard ", i + 1, shards);
    free(lacks);
    free(present);
}

static void say_what_is_missing(sweep *s, int64_t missing) {
    char shards[256];
    if (s->options->merge_only) {
        list_missing_shards(s, shards, sizeof shards);
        qg_message_error("%" PRId64 " of %" PRId64
                         " cases have no result yet%s: nothing merged. The same command without "
                         "--merge runs them",
                         missing, qg_plan_count(s->plan), shards);
    } else if (s->options->shards > 1 && !s->stopped) {
        note(s, "shard %d/%d is finished; %" PRId64 " cases of other shards have no result yet",
             s->options->shard, s->options->shards, missing);
    }
}

// Collects everything and merges, if this is the last shard and nothing is missing.
static void finish(sweep *s) {
    bool alone = !s->locks || (!s->broken && qg_locks_finish(s->locks));
    if (!s->broken && !alone)
        write_part(s);
    int64_t missing;
    qg_status status = qg_parts_collect(s->parts, alone, &s->outcome->table, &missing);
    if (status != QG_OK) {
        report(s, status);
        qg_parts_write(s->parts); // what was measured is good all the same
        return;
    }
    if (missing > 0 && alone && !s->broken)
        write_part(s); // when nothing is missing, they are merged from memory
    if (missing == 0 && alone && !s->broken)
        publish(s);
    else if (!alone && !s->broken && !s->stopped)
        note(s, "shard %d/%d is finished; the last one to finish merges", s->options->shard,
             s->options->shards);
    else if (alone && !s->broken)
        say_what_is_missing(s, missing);
    status = take_stock(s);
    if (status != QG_OK)
        report(s, status);
}

static int exit_code(const sweep *s) {
    const qg_sweep_outcome *o = s->outcome;
    if (s->broken)
        return o->exit_code;
    if (o->status[QG_CASE_UNAVAILABLE] > 0)
        return 5;
    if (o->status[QG_CASE_FAILED] > 0 || o->status[QG_CASE_CRASHED] > 0)
        return 1;
    return o->missing > 0 || o->status[QG_CASE_TIMEOUT] > 0 ? 3 : 0;
}

static void release(sweep *s) {
    qg_worker_free(s->worker);
    qg_parts_free(s->parts);
    qg_locks_release(s->locks);
    free(s->ids);
    free(s->todo);
}

void qg_sweep_run(const qg_plan *plan, const qg_sweep_options *options, FILE *messages,
                  qg_sweep_outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    sweep s = {.plan = plan, .options = options, .outcome = outcome, .start = qg_clock()};
    qg_progress_line_start(&s.line, messages, options->progress, options->verbosity < 0, s.start);
    qg_signals_catch();
    if (list_ids(&s) && open_results(&s)) {
        if (!options->merge_only)
            measure(&s);
        finish(&s);
    }
    outcome->exit_code = exit_code(&s);
    release(&s);
    qg_signals_restore();
}
