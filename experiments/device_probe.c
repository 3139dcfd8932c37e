// See device_probe.h.
//
// A CUDA context does not survive fork, and even counting devices initialises the driver: a sweep
// whose parent had done so could not use the device in the worker that it forks. So a child process
// loads the module, tells what it found through a pipe and ends; a driver that crashes or hangs does
// so there.
#include <device_probe.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 120 }; // seconds

static device_probe probe;
static bool is_known;

static _Noreturn void look(int to, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGALRM, SIG_DFL);
    alarm(LONGEST);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    device_probe found = {0};
    const qg_cuda_device *device;
    const char *reason;
    found.answers = qg_cuda_open(&device, &found.absence, &reason) != NULL;
    snprintf(found.reason, sizeof found.reason, "%s", reason);
    if (found.answers)
        found.device = *device;
    _exit(write(to, &found, sizeof found) == (ssize_t)sizeof found ? 0 : 1);
}

// Whether all of it came: it fits a pipe, so one write and one read do.
static bool receive(int from, device_probe *found) {
    ssize_t size;
    do
        size = read(from, found, sizeof *found);
    while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof *found;
}

__attribute__((format(printf, 1, 2))) static void set_failure(const char *format, ...) {
    va_list values;
    probe = (device_probe){.absence = QG_CUDA_ABSENT_FAILED};
    va_start(values, format);
    vsnprintf(probe.reason, sizeof probe.reason, format, values);
    va_end(values);
}

static void set_end(int status) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        set_failure("looking for a CUDA device took longer than %d s", LONGEST);
    else if (WIFSIGNALED(status))
        set_failure("looking for a CUDA device ended with signal %d", WTERMSIG(status));
    else
        set_failure("looking for a CUDA device ended with exit status %d", WEXITSTATUS(status));
}

static void ask(void) {
    int ends[2], status = 0;
    if (pipe(ends) != 0) {
        set_failure("cannot look for a CUDA device: %s", strerror(errno));
        return;
    }
    fflush(NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        look(ends[1], parent);
    close(ends[1]);
    bool came = child > 0 && receive(ends[0], &probe);
    close(ends[0]);
    if (child < 0) {
        set_failure("cannot look for a CUDA device: %s", strerror(errno));
        return;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!came)
        set_end(status);
}

const device_probe *device_probe_cuda(void) {
    if (!is_known)
        ask();
    is_known = true;
    return &probe;
}

const device_probe *device_probe_known(void) { return is_known ? &probe : NULL; }
