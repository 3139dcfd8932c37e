// What the sweep engine costs per case: tiny cases through worker, ring, table, parts and merge,
// against the same cases run by a plain loop. The stages are also timed one by one.
#include <qg_clock.h>
#include <qg_init.h>
#include <qg_parts.h>
#include <qg_plan_build.h>
#include <qg_result_row.h>
#include <qg_sweep.h>
#include <qg_worker.h>
#include <qg_workspace.h>

#include <inttypes.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const double TARGET = 5; // microseconds per case

typedef struct duration {
    double wall, cpu; // seconds; cpu: of this process and its workers
} duration;

typedef struct stages {
    duration direct, ring, rows, part, merge, sweep;
} stages;

typedef struct bench {
    qg_plan *plan;
    int64_t count;
    char folder[64];
    qg_case_result *results; // (count), as the plain loop left them
    stages best;
} bench;

_Noreturn static void fail(const char *what) {
    fprintf(stderr, "bench_sweep_overhead: %s: %s\n", what, qg_detail());
    exit(5);
}

static void check(qg_status status, const char *what) {
    if (status != QG_OK)
        fail(what);
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

static duration now(void) {
    struct rusage self, workers;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &workers);
    return (duration){qg_clock(), seconds_of(self.ru_utime) + seconds_of(self.ru_stime) +
                                      seconds_of(workers.ru_utime) + seconds_of(workers.ru_stime)};
}

static double least(double best, double seconds) {
    return best == 0 || seconds < best ? seconds : best;
}

static void keep_least(duration *best, duration start) {
    duration end = now();
    best->wall = least(best->wall, end.wall - start.wall);
    best->cpu = least(best->cpu, end.cpu - start.cpu);
}

static void make_plan(bench *b) {
    char seeds[32];
    snprintf(seeds, sizeof seeds, "1:%" PRId64 ":1", b->count);
    const char *const options[][2] = {
        {"formats", "e4m3"      },
        {"layouts", "per_tensor"},
        {"ops",     "error"     },
        {"data",    "uniform"   },
        {"m",       "1"         },
        {"k",       "8"         },
        {"seeds",   seeds       }
    };
    qg_plan_request *request;
    check(qg_plan_request_create(&request), "plan");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        check(qg_plan_request_set(request, options[i][0], options[i][1]), "plan");
    check(qg_plan_build(request, &b->plan), "plan");
    qg_plan_request_free(request);
    b->count = qg_plan_count(b->plan);
}

static void time_direct(bench *b) {
    qg_workspace *workspace;
    check(qg_workspace_create(1, &workspace), "workspace");
    duration start = now();
    for (int64_t i = 0; i < b->count; i++) {
        const qg_case *c = qg_plan_case(b->plan, i);
        qg_case_result_clear(&b->results[i], c);
        c->op->run(c, workspace, &b->results[i]);
    }
    keep_least(&b->best.direct, start);
    qg_workspace_free(workspace);
}

static void time_ring(bench *b) {
    const qg_case **cases = malloc((size_t)b->count * sizeof *cases);
    if (!cases)
        exit(5);
    for (int64_t i = 0; i < b->count; i++)
        cases[i] = qg_plan_case(b->plan, i);
    qg_worker_options options = {.cases = cases, .count = b->count, .threads = 1};
    qg_worker *worker;
    duration start = now();
    check(qg_worker_create(&options, &worker), "worker");
    const qg_case_result *result;
    qg_worker_event event;
    while ((event = qg_worker_next(worker, 1, &result)) != QG_WORKER_DONE)
        if (event == QG_WORKER_BROKEN)
            fail("worker");
    qg_worker_free(worker);
    keep_least(&b->best.ring, start);
    free(cases);
}

static void path_in(const bench *b, const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", b->folder, name);
}

static void time_rows_parts_merge(bench *b) {
    char path[128];
    path_in(b, "part.h5", path);
    duration start = now();
    qg_table *table;
    check(qg_table_create(&table), "table");
    check(qg_table_set_plan(table, qg_plan_text(b->plan)), "table");
    for (int64_t i = 0; i < b->count; i++)
        check(qg_result_row_add(table, b->plan, qg_plan_case(b->plan, i), &b->results[i], -1),
              "row");
    keep_least(&b->best.rows, start);
    start = now();
    check(qg_results_write(path, table, QG_RESULTS_PART, false), "part");
    keep_least(&b->best.part, start);
    unlink(path);
    start = now();
    const qg_table *tables = table;
    qg_table *merged;
    check(qg_table_merge(&tables, 1, &merged), "merge");
    check(qg_results_write(path, merged, QG_RESULTS_MERGED, true), "merge");
    keep_least(&b->best.merge, start);
    unlink(path);
    qg_table_free(table);
    qg_table_free(merged);
}

static void time_sweep(bench *b) {
    char path[128];
    path_in(b, "results.h5", path);
    qg_sweep_options options = {.out = path,
                                .existing = QG_EXISTING_OVERWRITE,
                                .shard = 1,
                                .shards = 1,
                                .progress = QG_PROGRESS_NONE,
                                .verbosity = -1,
                                .threads = 1};
    qg_sweep_outcome outcome;
    duration start = now();
    qg_sweep_run(b->plan, &options, stderr, &outcome);
    keep_least(&b->best.sweep, start);
    if (!outcome.merged || outcome.measured != b->count) {
        fprintf(stderr, "bench_sweep_overhead: the sweep did not finish\n");
        exit(5);
    }
    qg_table_free(outcome.table);
    unlink(path);
}

static void print_row(const bench *b, bool tsv, const char *name, duration time,
                      const char *meaning) {
    double wall = time.wall * 1e6 / (double)b->count, cpu = time.cpu * 1e6 / (double)b->count;
    if (tsv)
        printf("%s\t%" PRId64 "\t%.3f\t%.3f\n", name, b->count, wall, cpu);
    else
        printf("%-9s %8.2f %8.2f  %s\n", name, wall, cpu, meaning);
}

static duration overhead_of(const bench *b) {
    const stages *t = &b->best;
    return (duration){t->sweep.wall - t->direct.wall, t->sweep.cpu - t->direct.cpu};
}

static bool meets(const bench *b, double seconds) {
    return seconds * 1e6 / (double)b->count <= TARGET;
}

// Both clocks: the worker and what follows it overlap, so a quiet machine shows less wall than
// processor time, and a busy one more.
static void print_verdict(const bench *b) {
    duration overhead = overhead_of(b);
    printf("at most %g us per case: wall %s, cpu %s\n", TARGET,
           meets(b, overhead.wall) ? "yes" : "no", meets(b, overhead.cpu) ? "yes" : "no");
}

static void print(const bench *b, bool tsv) {
    const stages *t = &b->best;
    if (tsv)
        printf("stage\tcases\twall_us_per_case\tcpu_us_per_case\n");
    else
        printf("%" PRId64 " cases of 8 elements, microseconds per case:\n"
               "stage         wall      cpu\n",
               b->count);
    print_row(b, tsv, "direct", t->direct, "the cases in a plain loop");
    print_row(b, tsv, "ring", t->ring, "the same in a worker, results taken from the ring");
    print_row(b, tsv, "rows", t->rows, "filling the table");
    print_row(b, tsv, "part", t->part, "writing one part");
    print_row(b, tsv, "merge", t->merge, "merging, writing compressed, verifying");
    print_row(b, tsv, "sweep", t->sweep, "everything, as run_sweep does it");
    print_row(b, tsv, "overhead", overhead_of(b), "sweep - direct");
    if (!tsv)
        print_verdict(b);
}

int main(int argc, const char **argv) {
    int cases = 50000, repetitions = 3, tsv = 0, strict = 0;
    const unsigned count = POPT_ARG_INT | POPT_ARGFLAG_SHOW_DEFAULT;
    // clang-format off
    const struct poptOption options[] = {
        {"cases", 'c', count, &cases, 0, "cases of the sweep", "N"},
        {"repetitions", 'r', count, &repetitions, 0, "the best of so many counts", "N"},
        {"tsv", 0, POPT_ARG_NONE, &tsv, 0, "print a table for programs", NULL},
        {"strict", 0, POPT_ARG_NONE, &strict, 0, "exit 1 if the wall overhead is above 5 us", NULL},
        POPT_AUTOHELP POPT_TABLEEND};
    // clang-format on
    poptContext context = poptGetContext("bench_sweep_overhead", argc, argv, options, 0);
    int rest = poptGetNextOpt(context);
    if (rest < -1 || poptPeekArg(context) || cases < 1 || repetitions < 1) {
        poptPrintUsage(context, stderr, 0);
        return 2;
    }
    poptFreeContext(context);
    check(qg_init(), "start");
    bench b = {.count = cases, .folder = "/tmp/bench_sweep_overhead.XXXXXX"};
    if (!mkdtemp(b.folder))
        return 5;
    make_plan(&b);
    b.results = calloc((size_t)b.count, sizeof *b.results);
    if (!b.results)
        return 5;
    for (int i = 0; i < repetitions; i++) {
        time_ring(&b);
        time_direct(&b);
        time_rows_parts_merge(&b);
        time_sweep(&b);
    }
    print(&b, tsv);
    rmdir(b.folder);
    qg_plan_free(b.plan);
    free(b.results);
    return strict && !meets(&b, overhead_of(&b).wall) ? 1 : 0;
}
