// See figure_paper.h.
#include <figure_paper.h>

#include <message.h>
#include <plot_write.h>
#include <published.h>
#include <qg_data_dir.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SYSTEM = 5 };

// ----------------------------------------------------------------------------------------- the plan

// A plan's sections go by its figure too: those of several plans stay apart in messages.
static void copy_plan(FILE *from, FILE *to, const char *id) {
    char line[4096];
    while (fgets(line, sizeof line, from)) {
        if (line[0] == '[')
            fprintf(to, "[%s, %s", id, line + 1);
        else
            fputs(line, to);
    }
    fputc('\n', to);
}

// `id`: of the figure, or what stands for it.
static int add_plan(const char *file_name, const char *id, FILE *to) {
    char name[128], path[PATH_MAX];
    snprintf(name, sizeof name, "experiments/plans/%s", file_name);
    if (qg_data_file(name, path, sizeof path) != QG_OK) {
        qg_message_error("%s", qg_detail());
        return EXIT_SYSTEM;
    }
    FILE *file = fopen(path, "r");
    if (!file) {
        qg_message_error("%s, the plan of %s: %s", path, id, strerror(errno));
        return EXIT_SYSTEM;
    }
    copy_plan(file, to, id);
    fclose(file);
    return 0;
}

static bool came_before(const qg_figure_paper *paper, int which) {
    for (int i = 0; i < which; i++)
        if (paper->figures[i]->plan &&
            strcmp(paper->figures[i]->plan, paper->figures[which]->plan) == 0)
            return true;
    return false;
}

// *plans: how many there are.
static int write_plan(const qg_figure_paper *paper, int *plans) {
    char *text = NULL;
    size_t size = 0;
    int code = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        qg_message_error("no memory for the plan");
        return EXIT_SYSTEM;
    }
    fputs("# What the figures need, united by make_figures --paper.\n", stream);
    for (int i = 0; i < paper->figure_count && code == 0; i++)
        if (paper->figures[i]->plan && !came_before(paper, i)) {
            code = add_plan(paper->figures[i]->plan, paper->figures[i]->id, stream);
            ++*plans;
        }
    for (int i = 0; paper->published && qg_published_plan(i) && code == 0; i++, ++*plans)
        code = add_plan(qg_published_plan(i), "published", stream);
    fclose(stream);
    if (code == 0 && *plans > 0 &&
        qg_plot_replace_file(paper->folder, "paper", ".plan", text, size) != QG_OK) {
        qg_message_error("%s", qg_detail());
        code = EXIT_SYSTEM;
    }
    free(text);
    return code;
}

// ---------------------------------------------------------------------------------------- the sweep

// run_sweep beside this program.
static bool find_sweep(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + sizeof "/run_sweep" > size)
        return false;
    memcpy(slash, "/run_sweep", sizeof "/run_sweep");
    return true;
}

// Its table goes to standard error, as its progress does: this program's output are figures. It ends
// with this program, and keeps what is finished.
static void become_sweep(const qg_figure_paper *paper, const char *program, const char *plan,
                         const char *out) {
    const char *words[12];
    int count = 0;
    words[count++] = "run_sweep";
    words[count++] = "--plan";
    words[count++] = plan;
    words[count++] = "--out";
    words[count++] = out;
    if (paper->threads) {
        words[count++] = "--threads";
        words[count++] = paper->threads;
    }
    if (paper->isa) {
        words[count++] = "--isa";
        words[count++] = paper->isa;
    }
    if (paper->quiet || paper->verbose)
        words[count++] = paper->quiet ? "--quiet" : "--verbose";
    words[count] = NULL;
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(126);
    execv(program, (char *const *)words);
    _exit(127);
}

// An interrupt from the terminal reaches both: run_sweep saves what it has and ends, then so does
// this program.
static int wait_for(pid_t pid) {
    int how = 0;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigaction(SIGINT, &ignore, &before);
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &before, NULL);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static int judge(int code, const char *program, const char *out) {
    switch (code) {
    case 0: return 0;
    case 1: qg_message_warning("%s holds failures: see above", out); return 1;
    case 2:
        qg_message_error("nothing was measured; if %s is of another build or plan, remove it and "
                         "its .parts",
                         out);
        return 2;
    case 3: qg_message_error("the sweep is not complete: the same command goes on"); return 3;
    case 127: qg_message_error("%s: cannot be started", program); return EXIT_SYSTEM;
    default: qg_message_error("run_sweep ended with %d", code); return EXIT_SYSTEM;
    }
}

static int run_sweep(const qg_figure_paper *paper, const char *out) {
    char program[PATH_MAX], plan[PATH_MAX];
    if (!find_sweep(program, sizeof program)) {
        qg_message_error("run_sweep was not found beside this program");
        return EXIT_SYSTEM;
    }
    snprintf(plan, sizeof plan, "%s/paper.plan", paper->folder);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_sweep(paper, program, plan, out);
    if (pid < 0) {
        qg_message_error("cannot start a process: %s", strerror(errno));
        return EXIT_SYSTEM;
    }
    return judge(wait_for(pid), program, out);
}

int qg_figure_paper_measure(const qg_figure_paper *paper, char *path, size_t size) {
    int plans = 0, code = write_plan(paper, &plans);
    path[0] = '\0';
    if (code || plans == 0)
        return code;
    if (snprintf(path, size, "%s/paper.h5", paper->folder) >= (int)size) {
        qg_message_error("%.200s...: the path is too long", paper->folder);
        return EXIT_SYSTEM;
    }
    return run_sweep(paper, path);
}
