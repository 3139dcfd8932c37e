// Stage `sanitizer`: this program on small shapes under compute-sanitizer's memcheck and racecheck,
// each for a limited time.
#include <device_stage.h>

#include <qg_clock.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ERRORS_FOUND = 99, TIMED_OUT = 124, INCOMPLETE = 3, NOT_RUN = 127 };

static void run_child(const char *sanitizer, const char *tool, const char *program) {
    char code[16];
    snprintf(code, sizeof code, "%d", ERRORS_FOUND);
    int nothing = open("/dev/null", O_RDWR);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0 || dup2(nothing, 2) < 0)
        _exit(NOT_RUN);
    (void)setpgid(0, 0);
    execlp(sanitizer, sanitizer, "--tool", tool, "--error-exitcode", code, program, "--small",
           "--stages", "bytes,dequantize,multiply,gemm", (char *)NULL);
    _exit(NOT_RUN);
}

// The exit code, TIMED_OUT, or 128 and a signal.
static int wait_for(pid_t child, double seconds) {
    double end = qg_clock() + seconds;
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    int state;
    for (;;) {
        pid_t done = waitpid(child, &state, WNOHANG);
        if (done == child)
            return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
        if (done < 0 && errno != EINTR)
            return NOT_RUN;
        if (qg_clock() > end) {
            kill(-child, SIGKILL);
            kill(child, SIGKILL);
            (void)waitpid(child, &state, 0);
            return TIMED_OUT;
        }
        nanosleep(&pause, NULL);
    }
}

static void report_tool(device_check *c, const char *tool, int code) {
    char why[64];
    if (code == 0 || code == INCOMPLETE || code == ERRORS_FOUND || code == 1) {
        bool good = code == 0 || code == INCOMPLETE;
        device_report_row(c->report, DEVICE_CONTROL, tool,
                          good ? DEVICE_VERDICT_PASSED : DEVICE_VERDICT_FAILED,
                          code == ERRORS_FOUND ? "the tool found errors"
                          : code == 1          ? "checks failed under the tool"
                                               : "",
                          "%s\tall\t%d", tool, good ? 0 : code);
        return;
    }
    snprintf(why, sizeof why, code == TIMED_OUT ? "time is up" : "it could not run: exit code %d",
             code);
    device_report_left(c->report, tool, 1, why);
}

qg_status device_stage_sanitizer(device_check *c, const char *sanitizer, const char *program,
                                 double seconds) {
    static const char *const tools[] = {"memcheck", "racecheck"};
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        double limit = seconds / 2;
        if (c->deadline > 0 && c->deadline - qg_clock() < limit)
            limit = c->deadline - qg_clock();
        if (limit <= 0) {
            device_report_left(c->report, tools[i], 1, "time is up");
            continue;
        }
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            run_child(sanitizer, tools[i], program);
        if (child < 0)
            device_report_left(c->report, tools[i], 1, "no process could be made");
        else
            report_tool(c, tools[i], wait_for(child, limit));
    }
    return QG_OK;
}
