// make_figures: draws the figures of a paper from result files.
//
// Owns options, messages and exit codes. What a figure is: figure.h; how it is drawn: plot_write.h.
#include <figure_draw.h>
#include <figure_paper.h>
#include <isa_choice.h>
#include <list.h>
#include <message.h>
#include <near_words.h>
#include <number.h>
#include <program.h>
#include <qg_init.h>
#include <qg_plan_build.h>
#include <qg_results.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_INCOMPLETE = 3, EXIT_NOTHING = 4, EXIT_SYSTEM = 5 };
enum { MOST_FIGURES = 64, MOST_THREADS = 4096 };

static const char notes[] =
    "\n"
    "For every figure DIR gets a .tsv (its data), a .gp (draws it again), the pictures, and\n"
    "index.html and report.md for all of them. A figure whose data the files lack is listed\n"
    "with the command that measures it; F1 and F2 need no file. --paper measures what the\n"
    "figures need first, in minutes; the same command again goes on where it was stopped.\n"
    "\n"
    "Exit codes: 0 drawn; 1 drawn, but measurements of --paper failed; 2 usage error; 3 with\n"
    "--strict a figure lacks data, or --paper was interrupted; 4 nothing was drawn; 5 a file\n"
    "cannot be read or written, or gnuplot failed.\n";

typedef struct options {
    int help, usage, version, verbose, quiet, list, strict, paper;
    char *figure, *out, *term, *isa, *threads;
    const char *program; // as it was called
} options;

typedef struct session {
    const options *options;
    const char **files; // those given, then that of --paper
    int file_count;
    char paper_file[PATH_MAX], sweep[PATH_MAX];
    qg_table **tables;
    uint64_t *digests;
    const qg_figure *figures[MOST_FIGURES]; // selected
    int figure_count;
    qg_figure_state states[MOST_FIGURES];
    qg_figure_request request;
} session;

// ---------------------------------------------------------------------------------------- figures

// Ids and names, in turn: the words that --figure knows.
static const char *listed_word(size_t i) {
    const qg_figure *figure = qg_figure_listed((int)(i / 2));
    return !figure ? NULL : i % 2 ? figure->name : figure->id;
}

static bool is_named(const qg_figure *figure, const char *word) {
    return strcasecmp(word, figure->id) == 0 || strcasecmp(word, figure->name) == 0;
}

static qg_status check_word(const char *item) {
    qg_list matched = {0};
    int64_t count = 0;
    if (qg_list_is_glob(item)) {
        qg_status status = qg_list_match(item, listed_word, &matched, &count);
        qg_list_free(&matched);
        return status != QG_OK || count > 0
                   ? status
                   : qg_fail(QG_ERROR_ARGUMENT, "'%s' matches no figure", item);
    }
    for (int i = 0; qg_figure_listed(i); i++)
        if (is_named(qg_figure_listed(i), item))
            return QG_OK;
    return qg_near_hint(qg_near_unknown("figure", item, listed_word), "--list names them");
}

static bool is_chosen(const qg_figure *figure, const qg_list *words) {
    for (int64_t i = 0; i < words->count; i++) {
        qg_list matched = {0};
        int64_t count;
        if (is_named(figure, words->items[i]))
            return true;
        if (!qg_list_is_glob(words->items[i]) ||
            qg_list_match(words->items[i], listed_word, &matched, &count) != QG_OK)
            continue;
        bool found = false;
        for (int64_t j = 0; j < matched.count; j++)
            found |= is_named(figure, matched.items[j]);
        qg_list_free(&matched);
        if (found)
            return true;
    }
    return false;
}

static int choose_figures(session *s) {
    qg_list words = {0};
    const char *list = s->options->figure;
    qg_status status = list ? qg_list_split(list, &words) : QG_OK;
    for (int64_t i = 0; status == QG_OK && i < words.count; i++)
        status = check_word(words.items[i]);
    for (int i = 0; status == QG_OK && qg_figure_listed(i) && s->figure_count < MOST_FIGURES; i++)
        if (!list || is_chosen(qg_figure_listed(i), &words))
            s->figures[s->figure_count++] = qg_figure_listed(i);
    qg_list_free(&words);
    if (status == QG_OK)
        return 0;
    qg_message_error("--figure: %s", qg_detail());
    return qg_message_exit_code(status);
}

// ------------------------------------------------------------------------------------------ options

static int read_terms(session *s) {
    qg_list words = {0};
    qg_status status = qg_list_split(s->options->term ? s->options->term : "svg,png,pdf", &words);
    for (int64_t i = 0; status == QG_OK && i < words.count; i++) {
        const char *word = words.items[i];
        bool *chosen = !strcasecmp(word, "svg")   ? &s->request.svg
                       : !strcasecmp(word, "png") ? &s->request.png
                       : !strcasecmp(word, "pdf") ? &s->request.pdf
                                                  : NULL;
        if (chosen)
            *chosen = true;
        else
            status = qg_fail(QG_ERROR_ARGUMENT, "'%s' is none of svg, png, pdf", word);
    }
    qg_list_free(&words);
    if (status == QG_OK)
        return 0;
    qg_message_error("--term: %s", qg_detail());
    return qg_message_exit_code(status);
}

static int check_options(const options *o) {
    uint64_t threads;
    if (o->verbose && o->quiet) {
        qg_message_error("--verbose and --quiet exclude each other");
        return EXIT_USAGE;
    }
    if (o->list && o->paper) {
        qg_message_error("--list and --paper exclude each other");
        return EXIT_USAGE;
    }
    if (o->threads &&
        (!qg_number_u64(o->threads, &threads) || threads < 1 || threads > MOST_THREADS)) {
        qg_message_error("--threads: '%s' is no number from 1 to %d", o->threads, MOST_THREADS);
        return EXIT_USAGE;
    }
    return qg_isa_choose(o->isa);
}

// run_sweep as this program was called, for commands to copy.
static void name_sweep(session *s, const char *program) {
    char path[PATH_MAX];
    const char *slash = strrchr(program, '/');
    snprintf(path, sizeof path, "%.*srun_sweep", slash ? (int)(slash + 1 - program) : 0, program);
    if (!qg_shell_append(s->sweep, sizeof s->sweep, path))
        snprintf(s->sweep, sizeof s->sweep, "run_sweep");
    s->request.sweep = s->sweep;
}

// Before anything is measured: a folder that cannot be filled is known at once.
static int make_folder(const char *path) {
    struct stat about;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        qg_message_error("%s: cannot be made: %s", path, strerror(errno));
        return EXIT_SYSTEM;
    }
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        qg_message_error("%s: is no folder: --out names another", path);
        return EXIT_SYSTEM;
    }
    if (access(path, W_OK | X_OK) != 0) {
        qg_message_error("%s: cannot be written to: %s", path, strerror(errno));
        return EXIT_SYSTEM;
    }
    return 0;
}

static int read_files(session *s) {
    s->tables = calloc((size_t)s->file_count + 1, sizeof *s->tables);
    s->digests = calloc((size_t)s->file_count + 1, sizeof *s->digests);
    for (int i = 0; s->tables && s->digests && i < s->file_count; i++) {
        bool complete = true, verified = true;
        qg_status status = qg_results_read(s->files[i], &s->tables[i], &complete, &verified);
        if (status == QG_OK)
            status = qg_table_content_digest(s->tables[i], &s->digests[i]);
        if (status != QG_OK) {
            qg_message_error("%s", qg_detail());
            return EXIT_SYSTEM;
        }
        if (!verified)
            qg_message_warning("%s: its content digest does not match: it was changed",
                               s->files[i]);
        if (!complete)
            qg_message_warning("%s: the sweep is not complete", s->files[i]);
    }
    s->request.input = (qg_figure_input){(const qg_table *const *)s->tables, s->file_count};
    s->request.files = s->files;
    s->request.file_count = s->file_count;
    s->request.digests = s->digests;
    return s->tables && s->digests ? 0 : EXIT_SYSTEM;
}

// ------------------------------------------------------------------------------------------- list

static int print_list(session *s) {
    int code = read_files(s);
    for (int i = 0; code == 0 && i < s->figure_count; i++) {
        const qg_figure *f = s->figures[i];
        qg_figure_state *state = &s->states[i];
        if (qg_figure_check(f, &s->request, state) != QG_OK) {
            qg_message_error("%s: %s", f->id, qg_detail());
            return EXIT_SYSTEM;
        }
        bool can = state->outcome == QG_FIGURE_DRAWN;
        printf("%-4s %-22s %s\n", f->id, f->name, f->title);
        if (!can)
            printf("     lacks data: %s\n", state->note);
        if (!can && state->command[0])
            printf("     %s\n", state->command);
    }
    return code;
}

// ----------------------------------------------------------------------------------------- drawing

static void say(const session *s, const qg_figure_state *state, const qg_figure_times *times) {
    if (s->options->quiet || state->outcome == QG_FIGURE_FAILED)
        return;
    printf("%-4s %-22s ", state->figure->id, state->figure->name);
    if (state->outcome == QG_FIGURE_DRAWN)
        printf("%s/%s", s->request.folder, state->stem);
    else
        printf("lacks data: %s%s%s", state->note, state->command[0] ? "\n       " : "",
               state->command);
    if (s->options->verbose)
        printf("  (%.1f ms, gnuplot %.1f ms)", 1e3 * times->build, 1e3 * times->draw);
    putchar('\n');
    fflush(stdout);
}

// One figure that fails does not keep the others from being drawn.
static int draw_all(session *s) {
    int code = 0;
    for (int i = 0; i < s->figure_count; i++) {
        qg_figure_times times;
        if (qg_figure_draw(s->figures[i], &s->request, &s->states[i], &times) != QG_OK) {
            qg_message_error("%s: %s", s->figures[i]->id, qg_detail());
            code = EXIT_SYSTEM;
        }
        say(s, &s->states[i], &times);
    }
    return code;
}

static int count_of(const session *s, qg_figure_outcome outcome) {
    int count = 0;
    for (int i = 0; i < s->figure_count; i++)
        count += s->states[i].outcome == outcome;
    return count;
}

static int write_report(session *s) {
    qg_published_result *published = NULL;
    int published_count = 0;
    qg_status status = QG_OK;
    if (!s->options->figure) // a report of some figures holds those alone
        status = qg_published_results(&s->request.input, true, &published, &published_count);
    if (status == QG_OK) {
        qg_figure_report report = {.folder = s->request.folder,
                                   .files = s->files,
                                   .digests = s->digests,
                                   .file_count = s->file_count,
                                   .input = &s->request.input,
                                   .states = s->states,
                                   .state_count = s->figure_count,
                                   .published = published,
                                   .published_count = published_count,
                                   .svg = s->request.svg,
                                   .png = s->request.png};
        status = qg_figure_report_write(&report);
        free(published);
    }
    if (status == QG_OK)
        return 0;
    qg_message_error("%s", qg_detail());
    return EXIT_SYSTEM;
}

static int verdict(const session *s) {
    int drawn = count_of(s, QG_FIGURE_DRAWN), lacking = count_of(s, QG_FIGURE_LACKS_DATA);
    if (!s->options->quiet)
        printf("%d figures drawn, %d lack data; %s/index.html\n", drawn, lacking,
               s->request.folder);
    if (drawn == 0) {
        qg_message_error("no figure could be drawn");
        return EXIT_NOTHING;
    }
    if (s->options->strict && lacking > 0) {
        qg_message_error("--strict: %d of %d figures lack data", lacking, s->figure_count);
        return EXIT_INCOMPLETE;
    }
    return 0;
}

// 1: measured with failures, which does not keep the figures from being drawn.
static int measure(session *s) {
    const options *o = s->options;
    qg_figure_paper paper = {.folder = s->request.folder,
                             .figures = s->figures,
                             .figure_count = s->figure_count,
                             .threads = o->threads,
                             .isa = o->isa,
                             .published = !o->figure,
                             .quiet = o->quiet,
                             .verbose = o->verbose};
    int code = qg_figure_paper_measure(&paper, s->paper_file, sizeof s->paper_file);
    if ((code == 0 || code == EXIT_FAILED) && s->paper_file[0])
        s->files[s->file_count++] = s->paper_file;
    return code;
}

static int draw(session *s) {
    int measured = 0, code = make_folder(s->request.folder);
    if (code == 0 && s->options->paper)
        measured = measure(s);
    if (code == 0 && measured != EXIT_FAILED)
        code = measured;
    if (code == 0)
        code = read_files(s);
    if (code)
        return code;
    code = draw_all(s);
    int report = write_report(s);
    code = code ? code : report;
    code = code ? code : measured;
    int last = verdict(s);
    return code ? code : last;
}

static int run(void *context, const char **words) {
    const options *o = context;
    static session s;
    s.options = o;
    s.request.folder = o->out ? o->out : "figures";
    name_sweep(&s, o->program);
    int code = check_options(o);
    code = code ? code : choose_figures(&s);
    code = code ? code : read_terms(&s);
    if (code)
        return code;
    qg_status status = qg_init();
    if (status != QG_OK) {
        qg_message_error("%s", qg_detail());
        return qg_message_exit_code(status);
    }
    while (words && words[s.file_count])
        s.file_count++;
    s.files = calloc((size_t)s.file_count + 2, sizeof *s.files);
    if (!s.files)
        return EXIT_SYSTEM;
    for (int i = 0; i < s.file_count; i++)
        s.files[i] = words[i];
    code = o->list ? print_list(&s) : draw(&s);
    for (int i = 0; s.tables && i < s.file_count; i++)
        qg_table_free(s.tables[i]);
    free(s.tables);
    free(s.digests);
    free(s.files);
    return code;
}

int main(int argc, const char **argv) {
    options o = {.program = argc > 0 ? argv[0] : "make_figures"};
    // clang-format off
    const struct poptOption table[] = {
        {"figure", 0, POPT_ARG_STRING, &o.figure, 0, "ids, names or globs: these alone (all)", "L"},
        {"list", 0, POPT_ARG_NONE, &o.list, 0, "the figures, and whether the files hold their data",
         NULL},
        {"out", 0, POPT_ARG_STRING, &o.out, 0, "the folder to fill (figures)", "DIR"},
        {"term", 0, POPT_ARG_STRING, &o.term, 0, "svg, png, pdf (all)", "L"},
        {"strict", 0, POPT_ARG_NONE, &o.strict, 0, "exit 3 if a figure lacks data", NULL},
        {"paper", 0, POPT_ARG_NONE, &o.paper, 0,
         "measure first what the figures need, into DIR/paper.h5", NULL},
        {"isa", 0, POPT_ARG_STRING, &o.isa, 0, "scalar, avx2 or avx512, of --paper (the best)", "NAME"},
        {"threads", 0, POPT_ARG_STRING, &o.threads, 0, "of --paper (all)", "N"},
        {"verbose", 'v', POPT_ARG_NONE, &o.verbose, 0, "say how long each figure took", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, "errors alone", NULL},
        {"version", 0, POPT_ARG_NONE, &o.version, 0, "print the version", NULL},
        {"help", 0, POPT_ARG_NONE, &o.help, 0, "print this", NULL},
        {"usage", 0, POPT_ARG_NONE, &o.usage, 0, "print the options in short", NULL},
        POPT_TABLEEND};
    // clang-format on
    const qg_program program = {.name = "make_figures",
                                .words = "[OPTION...] RESULTS.h5...",
                                .options = table,
                                .help = &o.help,
                                .usage = &o.usage,
                                .version = &o.version,
                                .notes = notes,
                                .run = run,
                                .context = &o};
    return qg_program_run(&program, argc, argv);
}
