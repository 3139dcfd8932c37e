// The worker process and the ring of results. See qg_worker.h.
//
// Results are numbered from 0; `published` counts those written, `consumed` those taken. One case
// gives one result, so the case under way in a dead worker is cases[published]. Wake-ups cost more
// than cases: the parent sleeps on a futex, at most POLL seconds, and is woken only when the ring
// is half full or the last case is done. Knows nothing of files, locks or terminals.
#include <qg_worker.h>

#include <group_route.h>
#include <qg_clock.h>
#include <qg_memory.h>
#include <qg_plan.h>
#include <qg_workspace.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The ring holds what the shortest cases (7 us) can finish while the parent writes a part (16,384 rows,
// 50 ms); the parent is woken earlier, so that both work at the same time.
enum { SLOTS = 8192, WAKE_AFTER = 256, BARREN_LIMIT = 3 };
static const double POLL = 0.02;        // seconds between looks at the worker
static const double LONG_PAUSE = 1.0;   // a wait this long means that the parent was stopped
static const int64_t SMALL = 256 << 20; // cases below this many bytes are not held against memory

typedef _Atomic uint32_t counter; // 32 bits: a futex word

typedef struct ring {
    _Alignas(64) counter published; // by the worker
    counter begun;                  // cases begun: published, or one more
    _Atomic int64_t since;          // when the case under way began, in nanoseconds
    _Alignas(64) counter consumed;  // by the parent
    _Alignas(64) atomic_bool parent_sleeps;
    atomic_bool worker_sleeps;
    _Alignas(64) qg_case_result slots[SLOTS];
} ring;

struct qg_worker {
    qg_worker_options options;
    ring *ring;
    pid_t pid;  // 0: none
    bool ended; // by itself, with `end_status`: to be judged when all its results are taken
    int end_status;
    bool stopped;
    bool holding;    // the caller holds slot `consumed`
    int barren;      // workers that died in a row before they began a case
    double forgiven; // seconds of the case under way in which the parent was stopped
    uint32_t forgiven_case;
};

// True if a signal ended the wait.
static bool futex_wait(counter *word, uint32_t value, double seconds) {
    struct timespec limit = {.tv_sec = (time_t)seconds};
    limit.tv_nsec = (long)((seconds - (double)limit.tv_sec) * 1e9);
    return syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0) != 0 && errno == EINTR;
}

static void futex_wake(counter *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

// ---- In the worker ------------------------------------------------------------------------------

// Reads "MemAvailable:   123 kB"; INT64_MAX if it cannot.
static int64_t available_bytes(void) {
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return INT64_MAX;
    char line[128];
    long long kilobytes = INT64_MAX / 1024;
    while (fgets(line, sizeof line, file) && sscanf(line, "MemAvailable: %lld", &kilobytes) != 1)
        continue;
    fclose(file);
    return (int64_t)kilobytes * 1024;
}

static bool fits_in_memory(const qg_case *c, qg_workspace *workspace, qg_case_result *result) {
    int64_t bytes = qg_case_bytes(c);
    if (bytes < SMALL || bytes <= available_bytes())
        return true;
    qg_workspace_shrink(workspace); // what earlier cases left may be what is missing
    if (bytes <= available_bytes())
        return true;
    // Not a fault of the case: a resume where there is more memory runs it. What is available is not
    // said, since results must not depend on the machine.
    qg_case_result_set(result, QG_CASE_UNAVAILABLE, "needs %.1f GiB of memory at once",
                       (double)bytes / 0x1p30);
    return false;
}

static void run_case(const qg_case *c, qg_workspace *workspace, qg_case_result *result) {
    qg_case_result_clear(result, c);
    double start = qg_clock();
    if (group_route_use(c) != QG_OK)
        qg_case_result_set(result, QG_CASE_FAILED, "%s", qg_detail());
    else if (fits_in_memory(c, workspace, result))
        c->op->run(c, workspace, result);
    result->seconds = qg_clock() - start;
}

static void wait_for_slot(ring *r, uint32_t index) {
    for (;;) {
        uint32_t consumed = atomic_load(&r->consumed);
        if (index - consumed < SLOTS)
            return;
        atomic_store(&r->worker_sleeps, true);
        if (atomic_load(&r->consumed) == consumed)
            futex_wait(&r->consumed, consumed, 1);
        atomic_store(&r->worker_sleeps, false);
    }
}

static void publish(ring *r, uint32_t index, uint32_t count) {
    atomic_store(&r->published, index + 1);
    bool worth_it =
        index + 1 == count ||
        index + 1 - atomic_load_explicit(&r->consumed, memory_order_relaxed) >= WAKE_AFTER;
    if (worth_it && atomic_exchange(&r->parent_sleeps, false))
        futex_wake(&r->published);
}

// Ctrl-C and the signals of batch systems reach the whole process group: they are the parent's.
static void leave_signals_to_parent(void) {
    const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

// When memory runs out, the kernel shall take the worker: the parent holds finished results.
static void volunteer_for_oom(void) {
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t written = write(fd, "500", 3);
    (void)written; // a wish, not a need
    close(fd);
}

static _Noreturn void work(const qg_worker *worker, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    leave_signals_to_parent();
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    volunteer_for_oom();
    if (worker->options.in_worker)
        worker->options.in_worker(worker->options.context);
    qg_workspace *workspace;
    if (qg_workspace_create(worker->options.threads, &workspace) != QG_OK)
        _exit(EXIT_FAILURE);
    ring *r = worker->ring;
    uint32_t count = (uint32_t)worker->options.count;
    for (uint32_t i = atomic_load(&r->published); i < count; i++) {
        wait_for_slot(r, i);
        atomic_store_explicit(&r->since, (int64_t)(qg_clock() * 1e9), memory_order_relaxed);
        atomic_store_explicit(&r->begun, i + 1, memory_order_release);
        run_case(worker->options.cases[i], workspace, &r->slots[i % SLOTS]);
        publish(r, i, count);
    }
    _exit(EXIT_SUCCESS);
}

// ---- In the parent ------------------------------------------------------------------------------

qg_status qg_worker_create(const qg_worker_options *options, qg_worker **out) {
    *out = NULL;
    if (options->count < 0 || options->count > INT32_MAX)
        return qg_fail(QG_ERROR_ARGUMENT, "%lld cases are too many for one shard: use --shard",
                       (long long)options->count);
    void *bytes;
    qg_status status = qg_allocate(&bytes, 1, sizeof(qg_worker), "worker");
    if (status != QG_OK)
        return status;
    qg_worker *worker = bytes;
    worker->options = *options;
    void *shared =
        mmap(NULL, sizeof(ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        qg_release(worker);
        return qg_fail(QG_ERROR_MEMORY, "no shared memory for the worker: %s", strerror(errno));
    }
    worker->ring = shared;
    *out = worker;
    return QG_OK;
}

static bool start(qg_worker *worker) {
    fflush(NULL);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        qg_fail(QG_ERROR_ENVIRONMENT, "cannot start a worker process: %s", strerror(errno));
        return false;
    }
    if (pid == 0)
        work(worker, parent);
    worker->pid = pid;
    return true;
}

static const char *signal_name(int number) {
    switch (number) {
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGKILL: return "SIGKILL (perhaps out of memory)";
    case SIGSEGV: return "SIGSEGV";
    case SIGSYS: return "SIGSYS";
    case SIGTRAP: return "SIGTRAP";
    case SIGXCPU: return "SIGXCPU";
    default: return NULL;
    }
}

static void describe_end(int status, char text[64]) {
    if (!WIFSIGNALED(status))
        snprintf(text, 64, "the worker exited with status %d", WEXITSTATUS(status));
    else if (signal_name(WTERMSIG(status)))
        snprintf(text, 64, "killed by %s", signal_name(WTERMSIG(status)));
    else
        snprintf(text, 64, "killed by signal %d", WTERMSIG(status));
}

static bool has_result(const qg_worker *worker) {
    return atomic_load(&worker->ring->published) != atomic_load(&worker->ring->consumed);
}

// Stands in for the worker: gives the case under way a result. Only when no worker runs and all
// results have been taken.
static void publish_end(qg_worker *worker, qg_case_status status, const char *reason,
                        double seconds) {
    ring *r = worker->ring;
    uint32_t index = atomic_load(&r->published);
    qg_case_result *result = &r->slots[index % SLOTS];
    qg_case_result_clear(result, worker->options.cases[index]);
    qg_case_result_set(result, status, "%s", reason);
    result->seconds = seconds;
    atomic_store(&r->begun, index + 1);
    atomic_store(&r->published, index + 1);
}

static bool is_under_way(const qg_worker *worker) {
    return atomic_load(&worker->ring->begun) != atomic_load(&worker->ring->published);
}

static double seconds_under_way(const qg_worker *worker) {
    return qg_clock() - 1e-9 * (double)atomic_load(&worker->ring->since);
}

// The worker ended by itself before its time, and all its results have been taken.
static void judge_end(qg_worker *worker) {
    worker->ended = false;
    bool began = is_under_way(worker);
    worker->barren = began ? 0 : worker->barren + 1;
    if (!began && worker->barren < BARREN_LIMIT)
        return;
    char reason[64];
    describe_end(worker->end_status, reason);
    publish_end(worker, QG_CASE_CRASHED, reason, began ? seconds_under_way(worker) : 0);
}

// True if the worker is no more.
static bool wait_for_end(qg_worker *worker, int flags, int *status) {
    pid_t ended;
    *status = 0;
    do
        ended = waitpid(worker->pid, status, flags);
    while (ended < 0 && errno == EINTR);
    if (ended == 0)
        return false;
    worker->pid = 0;
    return true;
}

// Kills a worker whose case overstays. True if it did.
static bool enforce_limit(qg_worker *worker) {
    double limit = worker->options.case_timeout;
    uint32_t begun = atomic_load(&worker->ring->begun);
    if (worker->forgiven_case != begun) {
        worker->forgiven_case = begun;
        worker->forgiven = 0;
    }
    if (limit <= 0 || !is_under_way(worker))
        return false;
    if (seconds_under_way(worker) - worker->forgiven <= limit ||
        atomic_load(&worker->ring->begun) != begun)
        return false;
    int status;
    kill(worker->pid, SIGKILL);
    wait_for_end(worker, 0, &status);
    if (has_result(worker))
        return true; // it finished in the last moment
    char reason[64];
    snprintf(reason, sizeof reason, "longer than %g s", limit);
    publish_end(worker, QG_CASE_TIMEOUT, reason, seconds_under_way(worker));
    return true;
}

// Whether the next case is a node of the run in which the last one overstayed: it would, too.
static bool repeats_timeout(const qg_worker *worker) {
    uint32_t next = atomic_load(&worker->ring->published);
    if (next == 0 || worker->ring->slots[(next - 1) % SLOTS].status != QG_CASE_TIMEOUT)
        return false;
    const qg_case *last = worker->options.cases[next - 1], *c = worker->options.cases[next];
    return c->is_served && c->shard_key == last->shard_key;
}

static void publish_timeout_again(qg_worker *worker) {
    char reason[64];
    snprintf(reason, sizeof reason, "a node of the same run took longer than %g s",
             worker->options.case_timeout);
    publish_end(worker, QG_CASE_TIMEOUT, reason, 0);
}

// Sleeps until results come or `seconds` are over. True if a signal ended it.
static bool sleep_for_results(qg_worker *worker, double seconds) {
    ring *r = worker->ring;
    double start = qg_clock();
    uint32_t published = atomic_load(&r->published);
    bool interrupted = false;
    atomic_store(&r->parent_sleeps, true);
    if (atomic_load(&r->published) == atomic_load(&r->consumed))
        interrupted = futex_wait(&r->published, published, seconds);
    atomic_store(&r->parent_sleeps, false);
    double slept = qg_clock() - start;
    if (slept > seconds + LONG_PAUSE)
        worker->forgiven += slept - seconds;
    return interrupted;
}

static void release_slot(qg_worker *worker) {
    if (!worker->holding)
        return;
    ring *r = worker->ring;
    worker->holding = false;
    uint32_t consumed = atomic_load_explicit(&r->consumed, memory_order_relaxed) + 1;
    atomic_store(&r->consumed, consumed);
    if (atomic_load(&r->published) - consumed <= SLOTS / 2 && atomic_load(&r->worker_sleeps) &&
        atomic_exchange(&r->worker_sleeps, false))
        futex_wake(&r->consumed);
}

// Takes the next result if there is one.
static bool take(qg_worker *worker, const qg_case_result **result) {
    if (!has_result(worker))
        return false;
    worker->barren = 0;
    worker->holding = true;
    *result = &worker->ring->slots[atomic_load(&worker->ring->consumed) % SLOTS];
    return true;
}

// All results have been taken: looks after the worker. True if the state changed.
static bool attend(qg_worker *worker, bool *broken) {
    if (worker->ended) {
        judge_end(worker);
        return true;
    }
    if (worker->pid == 0 && repeats_timeout(worker)) {
        publish_timeout_again(worker);
        return true;
    }
    if (worker->pid == 0) {
        *broken = !start(worker);
        return !*broken;
    }
    worker->ended = wait_for_end(worker, WNOHANG, &worker->end_status);
    return worker->ended || enforce_limit(worker);
}

qg_worker_event qg_worker_next(qg_worker *worker, double seconds, const qg_case_result **result) {
    double until = qg_clock() + seconds;
    release_slot(worker);
    while (!take(worker, result)) {
        if (worker->stopped ||
            atomic_load(&worker->ring->consumed) == (uint32_t)worker->options.count) {
            qg_worker_stop(worker);
            return QG_WORKER_DONE;
        }
        bool broken = false;
        if (attend(worker, &broken))
            continue;
        if (broken)
            return QG_WORKER_BROKEN;
        double left = until - qg_clock();
        if (left <= 0 || sleep_for_results(worker, left < POLL ? left : POLL))
            return QG_WORKER_WAITING;
    }
    return QG_WORKER_RESULT;
}

const qg_case *qg_worker_under_way(const qg_worker *worker, double *seconds) {
    uint32_t published = atomic_load(&worker->ring->published);
    if (worker->pid == 0 || atomic_load(&worker->ring->begun) != published + 1)
        return NULL;
    *seconds = seconds_under_way(worker);
    return worker->options.cases[published];
}

pid_t qg_worker_pid(const qg_worker *worker) { return worker->pid; }

void qg_worker_stop(qg_worker *worker) {
    worker->stopped = true;
    if (worker->pid == 0)
        return;
    int status;
    kill(worker->pid, SIGKILL);
    wait_for_end(worker, 0, &status);
}

void qg_worker_free(qg_worker *worker) {
    if (!worker)
        return;
    qg_worker_stop(worker);
    munmap(worker->ring, sizeof(ring));
    qg_release(worker);
}
