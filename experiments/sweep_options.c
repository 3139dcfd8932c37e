// The command line of run_sweep: one table, one function that takes values. See sweep_options.h.
// Options of operations and backends that do not exist yet are not here.
#include <sweep_options.h>

#include <message.h>
#include <number.h>
#include <qg_axis.h>
#include <qg_backend_list.h>
#include <qg_nearest.h>

#include <math.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

// Codes of popt: the axes from 1 on, then these.
enum {
    FIRST_AXIS = 1,
    LEVEL = 100,
    PLAN,
    WHERE,
    EXCLUDE,
    LIST,
    LIST_NAMES,
    REPRO,
    OUT,
    RESUME,
    OVERWRITE,
    REUSE,
    SHARD,
    MERGE,
    MAX_SECONDS,
    CASE_TIMEOUT,
    MAX_FAILURES,
    PROGRESS,
    THREADS,
    ISA,
    GROUP_KERNEL,
    LEARN_ROUTE,
    SHOW,
    IMPORT_DEVICE,
    COLUMNS,
    FORMAT,
    VERBOSE,
    QUIET,
    VERSION,
    CODE_COUNT
};

enum { MOST_THREADS = 1024, MOST_VALUES = 4096 };

// What popt gave, and which options were there.
typedef struct state {
    poptContext context;
    qg_command *command;
    bool given[CODE_COUNT];
    const char *axis_given;    // an option of a sweep that was there, NULL: none
    char *values[MOST_VALUES]; // freed at the end
    int value_count;
    const char **stuffed; // words of --repro
    char program[4096], command_line[65536];
} state;

// clang-format off
#define VALUE(name, code, text, argument) {name, 0, POPT_ARG_STRING, NULL, code, text, argument}
#define FLAG(name, letter, code, text) {name, letter, POPT_ARG_NONE, NULL, code, text, NULL}

static struct poptOption plan_options[] = {
#define AXIS_OPTION(ID, column, option, standard, argument, summary)                               \
    VALUE(option, FIRST_AXIS + QG_AXIS_##ID, summary, argument),
#define NO_OPTION(ID, column)
    QG_AXIS_TABLE(AXIS_OPTION, NO_OPTION)
#undef AXIS_OPTION
#undef NO_OPTION
    VALUE("level", LEVEL,
          "the default grid of m, n and k: smoke (seconds), default (about a minute), "
          "paper (minutes; m * k up to 2^24, m * n * k of products up to 2^31)",
          "NAME"),
    VALUE("plan", PLAN,
          "a plan file: [name] opens a section, lines are `option value`, # opens a comment; lines "
          "before the first section make one of their own; sections are united. List options of "
          "the command line replace those of every section; its --where and --exclude join the "
          "section's",
          "FILE"),
    VALUE("where", WHERE,
          "only cases for which it holds: column, one of = != < <= > >=, value or "
          "glob; & joins, repeated options or",
          "E"),
    VALUE("exclude", EXCLUDE, "no cases for which it holds", "E"),
    FLAG("list", 0, LIST, "print the plan, one line per case, and an estimate; run nothing"),
    FLAG("list-names", 0, LIST_NAMES,
         "print the names of formats, recipes, rules, units, roundings, data laws, layouts; run "
         "nothing"),
    VALUE("repro", REPRO, "take the arguments in LINE, from a result's column repro", "LINE"),
    POPT_TABLEEND};

static struct poptOption run_options[] = {
    VALUE("out", OUT, "the result file (default: results.h5)", "FILE"),
    FLAG("resume", 0, RESUME, "reuse finished cases of the same build and plan (the default)"),
    FLAG("overwrite", 0, OVERWRITE, "drop what is in the result file and start again"),
    FLAG("reuse", 0, REUSE, "reuse finished cases of another build or plan"),
    VALUE("shard", SHARD,
          "run a part of the sweep, by hash of the case (default: from MPI or "
          "Slurm; 1/1: everything)",
          "I/N"),
    FLAG("merge", 0, MERGE, "only merge the shards that are finished"),
    VALUE("max-seconds", MAX_SECONDS, "stop after that time", "S"),
    VALUE("case-timeout", CASE_TIMEOUT, "give a case up after that time", "S"),
    VALUE("max-failures", MAX_FAILURES, "stop after that many failed cases", "N"),
    VALUE("progress", PROGRESS, "auto, bar, lines, none", "NAME"),
    VALUE("threads", THREADS, "threads to use (default: all)", "N"),
    VALUE("isa", ISA,
          "use no more than these instructions: scalar, avx2, avx512 (default: "
          "QG_ISA, else what the processor has)",
          "NAME"),
    VALUE("group-kernel", GROUP_KERNEL,
          "of backend cuda, which kernel quantizes groups: auto (a learned route, else a floor on "
          "the number of CTAs), shared, hopper (default: QG_GROUP_KERNEL, else auto)",
          "NAME"),
    POPT_TABLEEND};

static struct poptOption show_options[] = {
    VALUE("show", SHOW,
          "print a result file; --where and --exclude select rows, by any column", "FILE"),
    VALUE("import-device", IMPORT_DEVICE,
          "turn the file of scripts/device_check.sh --out into the result file --out; run nothing",
          "FILE"),
    VALUE("columns", COLUMNS,
          "columns to print; globs over names (*_db, * for all) or group/name (counts/*)", "L"),
    VALUE("format", FORMAT, "text, tsv, json, markdown", "NAME"),
    VALUE("learn-route", LEARN_ROUTE,
          "learn where which kernel of groups is the faster one, from result files (more may follow) "
          "with throughput of backend cuda by both (--group-kernel), into --out or "
          "reports/device/GPU.route.tsv in the data folder, where sweeps on that GPU find it",
          "RESULTS.h5"),
    POPT_TABLEEND};

static struct poptOption common_options[] = {
    FLAG("verbose", 'v', VERBOSE, "say more"),
    FLAG("quiet", 'q', QUIET, "say nothing but errors"),
    FLAG("version", 0, VERSION, "print the version and end"),
    POPT_TABLEEND};

#define GROUP(table, title) {NULL, 0, POPT_ARG_INCLUDE_TABLE, table, 0, title, NULL}
static struct poptOption options[] = {
    GROUP(plan_options, "What to sweep (L: a,b,c; lo:hi:step; lo:hi:*2; @file; globs over names):"),
    GROUP(run_options, "How to run it:"),
    GROUP(show_options, "Results:"),
    GROUP(common_options, "Common options:"),
    POPT_AUTOHELP POPT_TABLEEND};
// clang-format on

// ------------------------------------------------------------------------------------------- help

static const char *op_word(size_t i) {
    const qg_op *op = qg_op_listed(i);
    return op ? op->name : NULL;
}

static void join(char *text, size_t size, const char *(*listed)(size_t)) {
    size_t length = strlen(text);
    for (size_t i = 0; listed(i) && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : "", listed(i));
}

static const char *standard_op(size_t i) {
    for (size_t j = 0; qg_op_listed(j); j++)
        if (qg_op_listed(j)->by_default && i-- == 0)
            return qg_op_listed(j)->name;
    return NULL;
}

// Names the operations and backends that exist; axes without an argument become flags.
static void complete_options(void) {
    static char ops[300], backends[200] = "who performs them: ";
    static bool done;
    if (done)
        return;
    done = true;
    join(ops, sizeof ops, op_word);
    strncat(ops, " (default: ", sizeof ops - strlen(ops) - 1);
    join(ops, sizeof ops, standard_op);
    strncat(ops, ")", sizeof ops - strlen(ops) - 1);
    join(backends, sizeof backends, qg_backend_named);
    strncat(backends, " (default: all that answer)", sizeof backends - strlen(backends) - 1);
    for (struct poptOption *o = plan_options; o->longName; o++) {
        if (o->val == FIRST_AXIS + QG_AXIS_OP)
            o->descrip = ops;
        if (o->val == FIRST_AXIS + QG_AXIS_BACKEND)
            o->descrip = backends;
        if (o->val < FIRST_AXIS + QG_AXIS_COUNT && !o->argDescrip)
            o->argInfo = POPT_ARG_NONE;
    }
}

// ----------------------------------------------------------------------------------------- values

static int fail(const char *option, qg_status status) {
    qg_message_error("%s%s%s", option, *option ? ": " : "", qg_detail());
    return qg_message_exit_code(status);
}

static int wrong_value(const char *option, const char *value, const char *wanted) {
    qg_message_error("%s: '%.60s' is no %s", option, value, wanted);
    return 2;
}

static int take_seconds(const char *option, const char *value, double *out) {
    if (!qg_number_f64(value, out) || !isfinite(*out) || *out <= 0)
        return wrong_value(option, value, "time in seconds above 0");
    return 0;
}

static int take_threads(const char *value, int *out) {
    uint64_t threads;
    if (!qg_number_u64(value, &threads) || threads < 1 || threads > MOST_THREADS)
        return wrong_value("--threads", value, "number of threads from 1 to 1024");
    *out = (int)threads;
    return 0;
}

static int take_failures(const char *value, int64_t *out) {
    if (!qg_number_i64(value, out) || *out < 1)
        return wrong_value("--max-failures", value, "whole number from 1");
    return 0;
}

static int take_progress(const char *value, qg_progress *out) {
    static const char *const names[] = {"auto", "bar", "lines", "none"};
    static const qg_progress kinds[] = {QG_PROGRESS_AUTO, QG_PROGRESS_BAR, QG_PROGRESS_LINES,
                                        QG_PROGRESS_NONE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], value) == 0) {
            *out = kinds[i];
            return 0;
        }
    return wrong_value("--progress", value, "kind of progress: auto, bar, lines, none");
}

static int take_axis(state *s, qg_axis axis, const char *value) {
    s->axis_given = qg_axis_describe(axis)->option;
    s->command->plans |= axis == QG_AXIS_FORMAT;
    qg_status status = qg_plan_request_set(s->command->request, qg_axis_describe(axis)->option,
                                           value ? value : "1");
    return status ? fail("", status) : 0;
}

static int take_plan_option(state *s, const char *option, const char *value) {
    s->axis_given = option;
    qg_status status = qg_plan_request_set(s->command->request, option, value);
    return status ? fail("", status) : 0;
}

static int take_plan(state *s, const char *path) {
    s->axis_given = "plan";
    s->command->plans = true;
    qg_status status = qg_plan_request_file(s->command->request, path);
    return status ? fail("", status) : 0; // the detail names the file
}

// Kept until it is known whose columns they name: a plan's or a file's.
static int take_expression(const char *option, const char *value, const char **kept, int *count) {
    if (*count == QG_MOST_WHERE) {
        qg_message_error("%s: more than %d expressions", option, QG_MOST_WHERE);
        return 2;
    }
    kept[(*count)++] = value;
    return 0;
}

// Whether every quote of a line is closed: popt takes an open one as closed at the end.
static bool quotes_are_closed(const char *line) {
    char open = 0;
    for (; *line; line++) {
        if (*line == '\\' && open != '\'' && line[1])
            line++;
        else if (open ? *line == open : *line == '"' || *line == '\'')
            open = open ? 0 : *line;
    }
    return !open;
}

// Puts the words of LINE where the option stood. A leading program name is dropped.
static int take_repro(state *s, const char *line) {
    int argc, first = 0;
    if (s->stuffed) {
        qg_message_error("--repro: given twice");
        return 2;
    }
    if (!quotes_are_closed(line) || poptParseArgvString(line, &argc, &s->stuffed) != 0 ||
        argc == 0) {
        s->stuffed = NULL;
        qg_message_error("--repro: '%.60s' is no line of arguments", line);
        return 2;
    }
    const char *name =
        strrchr(s->stuffed[0], '/') ? strrchr(s->stuffed[0], '/') + 1 : s->stuffed[0];
    if (strcmp(name, "run_sweep") == 0)
        first = 1;
    for (int i = first; i < argc; i++)
        if (strncmp(s->stuffed[i], "--repro", 7) == 0) {
            qg_message_error("--repro: a line cannot hold another");
            return 2;
        }
    if (s->stuffed[first])
        poptStuffArgs(s->context, s->stuffed + first);
    return 0;
}

static int take_results(state *s, const char *path) {
    qg_command *c = s->command;
    if (c->learn_count == QG_MOST_RESULTS) {
        qg_message_error("--learn-route: more than %d result files", QG_MOST_RESULTS);
        return 2;
    }
    c->learn[c->learn_count++] = path;
    return 0;
}

static int take_format(state *s, const char *value) {
    s->command->show_options.format = value;
    if (qg_show_knows_format(value))
        return 0;
    return wrong_value("--format", value, "format: text, tsv, json, markdown");
}

static int take_shard(state *s, const char *value) {
    qg_status status = qg_shard_parse(value, &s->command->shard);
    return status ? fail("--shard", status) : 0;
}

static int take(state *s, int code, const char *value) {
    qg_command *c = s->command;
    s->given[code] = true;
    if (code >= FIRST_AXIS && code < FIRST_AXIS + QG_AXIS_COUNT)
        return take_axis(s, (qg_axis)(code - FIRST_AXIS), value);
    switch (code) {
    case LEVEL: return take_plan_option(s, "level", value);
    case PLAN: return take_plan(s, value);
    case WHERE: return take_expression("--where", value, c->where, &c->where_count);
    case EXCLUDE: return take_expression("--exclude", value, c->exclude, &c->exclude_count);
    case LIST: c->list = true; return 0;
    case LIST_NAMES: c->list_names = true; return 0;
    case REPRO: return take_repro(s, value);
    case OUT: c->run.out = value; return 0;
    case OVERWRITE: c->run.existing = QG_EXISTING_OVERWRITE; return 0;
    case REUSE: c->run.existing = QG_EXISTING_REUSE; return 0;
    case SHARD: return take_shard(s, value);
    case MERGE: c->run.merge_only = true; return 0;
    case MAX_SECONDS: return take_seconds("--max-seconds", value, &c->run.max_seconds);
    case CASE_TIMEOUT: return take_seconds("--case-timeout", value, &c->run.case_timeout);
    case MAX_FAILURES: return take_failures(value, &c->run.max_failures);
    case PROGRESS: return take_progress(value, &c->run.progress);
    case THREADS: return take_threads(value, &c->run.threads);
    case ISA: c->run.isa = value; return 0;
    case GROUP_KERNEL: c->group_kernel = value; return 0;
    case LEARN_ROUTE: return take_results(s, value);
    case SHOW:
        c->show = true;
        c->show_options.path = value;
        return 0;
    case IMPORT_DEVICE: c->import_device = value; return 0;
    case COLUMNS: c->show_options.columns = value; return 0;
    case FORMAT: return take_format(s, value);
    case VERBOSE: c->run.verbosity = 1; return 0;
    case QUIET: c->run.verbosity = -1; return 0;
    case VERSION: c->version = true; return 0;
    default: return 0;
    }
}

// ----------------------------------------------------------------------------------------- checks

static int excluded(const char *first, const char *second) {
    qg_message_error("%s and %s exclude each other", first, second);
    return 2;
}

static int check_pairs(const state *s) {
    static const struct {
        int first, second;
        const char *first_name, *second_name;
    } pairs[] = {
        {RESUME,      OVERWRITE,     "--resume",      "--overwrite"    },
        {RESUME,      REUSE,         "--resume",      "--reuse"        },
        {OVERWRITE,   REUSE,         "--overwrite",   "--reuse"        },
        {VERBOSE,     QUIET,         "-v",            "-q"             },
        {LIST,        MERGE,         "--list",        "--merge"        },
        {LIST,        LIST_NAMES,    "--list",        "--list-names"   },
        {SHOW,        LIST_NAMES,    "--show",        "--list-names"   },
        {SHOW,        LIST,          "--show",        "--list"         },
        {SHOW,        MERGE,         "--show",        "--merge"        },
        {SHARD,       MERGE,         "--shard",       "--merge"        },
        {OVERWRITE,   MERGE,         "--overwrite",   "--merge"        },
        {LEARN_ROUTE, SHOW,          "--learn-route", "--show"         },
        {LEARN_ROUTE, LIST,          "--learn-route", "--list"         },
        {LEARN_ROUTE, LIST_NAMES,    "--learn-route", "--list-names"   },
        {LEARN_ROUTE, MERGE,         "--learn-route", "--merge"        },
        {LEARN_ROUTE, IMPORT_DEVICE, "--learn-route", "--import-device"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (s->given[pairs[i].first] && s->given[pairs[i].second])
            return excluded(pairs[i].first_name, pairs[i].second_name);
    return 0;
}

static int check_show(const state *s) {
    const qg_command *c = s->command;
    if (!c->show && (s->given[COLUMNS] || s->given[FORMAT])) {
        qg_message_error("%s needs --show FILE", s->given[COLUMNS] ? "--columns" : "--format");
        return 2;
    }
    if (c->import_device && (c->show || s->axis_given)) {
        qg_message_error("--import-device takes a file as it is, without --%s",
                         c->show ? "show" : s->axis_given);
        return 2;
    }
    if (c->show && s->axis_given) {
        qg_message_error("--show prints a file that is there: --%s is an option of a sweep; rows "
                         "are selected by --where and --exclude",
                         s->axis_given);
        return 2;
    }
    return 0;
}

static int check_learning(const state *s) {
    const qg_command *c = s->command;
    const char *given = s->axis_given      ? s->axis_given
                        : c->where_count   ? "where"
                        : c->exclude_count ? "exclude"
                                           : NULL;
    if (!c->learn_count || !given)
        return 0;
    qg_message_error("--learn-route reads files that are there: --%s is an option of a sweep",
                     given);
    return 2;
}

// The expressions are a plan's, unless a file is shown.
static int give_expressions(state *s) {
    const qg_command *c = s->command;
    int code = 0;
    for (int i = 0; i < c->where_count && !c->show && !code; i++)
        code = take_plan_option(s, "where", c->where[i]);
    for (int i = 0; i < c->exclude_count && !c->show && !code; i++)
        code = take_plan_option(s, "exclude", c->exclude[i]);
    return code;
}

static int find_shard(const state *s) {
    qg_command *c = s->command;
    if (c->show || c->run.merge_only || s->given[SHARD])
        return 0;
    qg_status status = qg_launcher_shard(&c->shard);
    return status ? fail("", status) : 0;
}

static int check(state *s) {
    qg_command *c = s->command;
    int code = check_pairs(s);
    if (!code)
        code = check_show(s);
    if (!code)
        code = check_learning(s);
    if (!code && !c->show && !c->import_device && !c->learn_count && !c->plans && !c->list_names) {
        qg_message_error("--formats is required, e.g. --formats e4m3,mxfp8 (--list-names lists "
                         "names, --help options)");
        return 2;
    }
    if (!code && !*c->run.out) {
        qg_message_error("--out: the file's name is empty");
        return 2;
    }
    if (!code)
        code = give_expressions(s);
    return code ? code : find_shard(s);
}

// ---------------------------------------------------------------------------------------- reading

static const char *option_word(size_t i) {
    const struct poptOption *const tables[] = {plan_options, run_options, show_options,
                                               common_options};
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
        for (const struct poptOption *o = tables[t]; o->longName; o++)
            if (i-- == 0)
                return o->longName;
    return NULL;
}

static int bad_option(state *s, int error) {
    const char *option = poptBadOption(s->context, 0);
    char name[64];
    if (error == POPT_ERROR_BADOPT && strncmp(option, "--", 2) == 0) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(option + 2, "="), option + 2);
        const char *nearest = qg_nearest(name, option_word);
        qg_message_error("unknown option '--%s'%s%s; --help lists all", name,
                         nearest ? "; the nearest is --" : "", nearest ? nearest : "");
    } else if (error == POPT_ERROR_BADOPT) {
        qg_message_error("unknown option '%.40s'; --help lists all", option);
    } else if (error == POPT_ERROR_NOARG) {
        qg_message_error("%.40s needs a value", option);
    } else {
        qg_message_error("%.60s: %s", option, poptStrerror(error));
    }
    return 2;
}

static int read_options(state *s) {
    int code;
    while ((code = poptGetNextOpt(s->context)) > 0) {
        char *value = poptGetOptArg(s->context);
        if (s->value_count == MOST_VALUES) {
            free(value);
            qg_message_error("more than %d options", MOST_VALUES);
            return 2;
        }
        s->values[s->value_count++] = value;
        int result = take(s, code, value);
        if (result)
            return result;
    }
    if (code < -1)
        return bad_option(s, code);
    for (const char *more; s->command->learn_count && (more = poptGetArg(s->context)) != NULL;) {
        int result = take_results(s, more);
        if (result)
            return result;
    }
    const char *rest = poptPeekArg(s->context);
    if (rest) {
        qg_message_error("unexpected argument '%.60s'; --help lists all options", rest);
        return 2;
    }
    return 0;
}

static void join_words(int argc, const char **argv, state *s) {
    for (int i = 0; i < argc; i++)
        if (!qg_shell_append(s->command_line, sizeof s->command_line, argv[i])) {
            memcpy(s->command_line + sizeof s->command_line - 4, "...", 4);
            break;
        }
    if (argc < 1 || !qg_shell_append(s->program, sizeof s->program, argv[0]))
        snprintf(s->program, sizeof s->program, "run_sweep");
}

int qg_command_read(int argc, const char **argv, qg_command *command) {
    *command = (qg_command){
        .shard = {1,     1, NULL},
          .run = {.out = "results.h5"}
    };
    state *s = calloc(1, sizeof *s);
    qg_status status =
        s ? qg_plan_request_create(&command->request) : qg_fail(QG_ERROR_MEMORY, "out of memory");
    command->owned = s;
    if (status)
        return fail("", status);
    complete_options();
    join_words(argc, argv, s);
    s->command = command;
    s->context = poptGetContext("run_sweep", argc, argv, options, 0);
    poptSetOtherOptionHelp(s->context, "--formats L [OPTION...]");
    int code = read_options(s);
    if (!code && !command->version)
        code = check(s);
    if (s->given[OUT])
        command->learn_out = command->run.out;
    command->program = s->program;
    command->run.command_line = s->command_line;
    command->run.shard = command->shard.shard;
    command->run.shards = command->shard.shards;
    command->show_options.where = command->where;
    command->show_options.where_count = command->where_count;
    command->show_options.exclude = command->exclude;
    command->show_options.exclude_count = command->exclude_count;
    return code;
}

void qg_command_free(qg_command *command) {
    state *s = command->owned;
    qg_plan_request_free(command->request);
    if (!s)
        return;
    for (int i = 0; i < s->value_count; i++)
        free(s->values[i]);
    free(s->stuffed);
    poptFreeContext(s->context);
    free(s);
}
