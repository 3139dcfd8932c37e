// A child process that does the work of a library which foreign files can crash: it sends its
// answer through a pipe, and its death is an error like any other. Knows nothing of HDF5.
#include <child_process_internal.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

bool qg_child_send(int to, const void *data, size_t size) {
    const char *from = data;
    while (size > 0) {
        ssize_t sent = write(to, from, size);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        from += sent;
        size -= (size_t)sent;
    }
    return true;
}

// Faults end the child at once, silently, whatever handlers the program has; so does an endless
// loop. A library has no business calling exit, which would also flush the parent's buffers twice.
static void be_child(qg_child_work work, void *context, int to, unsigned cpu_seconds) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGPIPE};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        signal(faults[i], SIG_DFL);
    struct rlimit none = {0, 0}, cpu = {cpu_seconds, cpu_seconds};
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &cpu);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
    work(context, to);
    for (;;)
        raise(SIGKILL);
}

qg_status qg_child_start(qg_child_work work, void *context, unsigned cpu_seconds, qg_child *out) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return qg_fail(QG_ERROR_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        be_child(work, context, ends[1], cpu_seconds);
    }
    int why = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return qg_fail(QG_ERROR_IO, "cannot start a process: %s", strerror(why));
    }
    out->pid = pid;
    out->from = ends[0];
    return QG_OK;
}

bool qg_child_take(const qg_child *child, void *out, size_t size) {
    char *to = out;
    while (size > 0) {
        ssize_t got = read(child->from, to, size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        to += got;
        size -= (size_t)got;
    }
    return true;
}

void qg_child_end(const qg_child *child) {
    close(child->from);
    kill(child->pid, SIGKILL);
    while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
    }
}
