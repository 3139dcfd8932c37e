// run_gate: holds result files to gates and to a baseline.
//
// Owns options, messages and exit codes. What a gate is: gate.h; what formulas know: gate_names.h;
// baselines: gate_baseline.h.
#include <gate_explain.h>
#include <gate_report.h>
#include <gate_run.h>
#include <isa_choice.h>
#include <message.h>
#include <number.h>
#include <program.h>
#include <qg_data_dir.h>
#include <qg_init.h>
#include <qg_results.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_NOTHING = 4, EXIT_SYSTEM = 5 };

static const char notes[] =
    "\n"
    "Gates and their reasons: reports/gates.tsv. Without --baseline the file of reports/baselines\n"
    "with the most cases in common is used, and named. In continuous integration:\n"
    "\n"
    "  run_sweep --formats e4m3,mxfp8 --level smoke --out results.h5\n"
    "  run_gate --format junit results.h5 > gate.xml\n"
    "\n"
    "Verdicts: PASS; FAIL; XFAIL fails as a row of kind `known` says; XPASS does not although it\n"
    "says so; MISSING a case without a result; NEW in no baseline; MISTRUSTED the case's data say\n"
    "little; INCOMPARABLE the baseline means something else; AMBIGUOUS within the spread.\n"
    "\n"
    "Exit codes: 0 every verdict is good; 1 FAIL or XPASS; 2 usage error, malformed gates or\n"
    "baseline; 3 MISSING (0 with --allow-missing); 4 no gate applied; 5 a file cannot be read.\n";

typedef struct options {
    int help, usage, version, verbose, quiet;
    int perf, allow_missing, update_baseline;
    char *gates, *baseline, *format, *explain, *today, *isa, *threads;
} options;

typedef struct session {
    const options *o;
    qg_gates gates;
    qg_gate_file *files;
    const qg_table **tables;
    int file_count;
    qg_baseline *baseline;
    char baseline_path[PATH_MAX];
    qg_gate_run run;
    char today[16];
} session;

// Malformed gates and baselines are the user's to correct.
static int fail(qg_status status) {
    qg_message_error("%s", qg_detail());
    return status == QG_ERROR_DATA ? EXIT_USAGE : qg_message_exit_code(status);
}

// ------------------------------------------------------------------------------------------ options

static const struct {
    const char *name;
    void (*write)(const qg_gate_report *report);
} FORMATS[] = {
    {"text",     qg_gate_report_text    },
    {"markdown", qg_gate_report_markdown},
    {"junit",    qg_gate_report_junit   },
    {"json",     qg_gate_report_json    },
};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof FORMATS[0] };

static int find_format(const char *name) {
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (strcmp(name, FORMATS[i].name) == 0)
            return i;
    return -1;
}

static int check_today(session *s) {
    struct tm day;
    time_t now = time(NULL);
    s->run.today = s->today;
    if (!s->o->today) {
        strftime(s->today, sizeof s->today, "%Y-%m-%d", gmtime_r(&now, &day));
        return 0;
    }
    if (!qg_gate_is_day(s->o->today)) {
        qg_message_error("--today: '%s' is no day: write YYYY-MM-DD", s->o->today);
        return EXIT_USAGE;
    }
    snprintf(s->today, sizeof s->today, "%s", s->o->today);
    return 0;
}

static int check_threads(const char *threads) {
    int64_t count;
    if (!threads || (qg_number_i64(threads, &count) && count >= 1 && count <= 1024))
        return 0;
    qg_message_error("--threads: '%s' is no number from 1 to 1024", threads);
    return EXIT_USAGE;
}

static int check_options(session *s) {
    const options *o = s->o;
    if (o->verbose && o->quiet) {
        qg_message_error("--verbose and --quiet exclude each other");
        return EXIT_USAGE;
    }
    if (o->format && find_format(o->format) < 0) {
        qg_message_error("--format: '%s' is none of text, markdown, junit, json", o->format);
        return EXIT_USAGE;
    }
    if (o->explain && !qg_number_hex(o->explain, &s->run.explained)) {
        qg_message_error("--explain: '%s' is no case id: 16 hexadecimal digits, as --format json "
                         "prints them",
                         o->explain);
        return EXIT_USAGE;
    }
    if (o->explain && o->update_baseline) {
        qg_message_error("--explain and --update-baseline exclude each other");
        return EXIT_USAGE;
    }
    s->run.has_explained = o->explain != NULL;
    s->run.perf = o->perf;
    s->run.allow_missing = o->allow_missing;
    int code = check_threads(o->threads);
    return code ? code : check_today(s);
}

// -------------------------------------------------------------------------------------------- files

static int read_gates(session *s) {
    char path[PATH_MAX];
    qg_status status = QG_OK;
    if (!s->o->gates)
        status = qg_data_file("reports/gates.tsv", path, sizeof path);
    if (status == QG_OK)
        status = qg_gates_read(s->o->gates ? s->o->gates : path, &s->gates);
    s->run.gates = &s->gates;
    return status == QG_OK ? 0 : fail(status);
}

static int read_results(session *s, const char **paths) {
    while (paths && paths[s->file_count])
        s->file_count++;
    if (s->file_count == 0) {
        qg_message_error("no result file: run_gate RESULTS.h5...");
        return EXIT_USAGE;
    }
    s->files = calloc((size_t)s->file_count, sizeof *s->files);
    s->tables = calloc((size_t)s->file_count, sizeof *s->tables);
    if (!s->files || !s->tables) {
        qg_message_error("no memory for the result files");
        return EXIT_SYSTEM;
    }
    for (int i = 0; i < s->file_count; i++) {
        qg_gate_file *file = &s->files[i];
        file->path = paths[i];
        if (qg_results_read(file->path, &file->table, &file->complete, &file->verified) != QG_OK) {
            qg_message_error("%s", qg_detail());
            return EXIT_SYSTEM;
        }
        s->tables[i] = file->table;
        if (s->o->verbose)
            qg_message_note("%s: %" PRId64 " rows, %s", file->path, qg_table_rows(file->table),
                            file->complete ? "complete" : "not complete");
    }
    s->run.files = s->files;
    s->run.file_count = s->file_count;
    return 0;
}

static int read_baseline(session *s) {
    char folder[PATH_MAX];
    qg_status status;
    s->run.baseline_is_explicit = s->o->baseline != NULL;
    if (s->o->baseline) {
        snprintf(s->baseline_path, sizeof s->baseline_path, "%s", s->o->baseline);
        bool will_be_made = s->o->update_baseline && access(s->o->baseline, F_OK) != 0;
        status = will_be_made ? QG_OK : qg_baseline_read(s->o->baseline, &s->baseline);
    } else {
        status = qg_data_file("reports/baselines", folder, sizeof folder);
        if (status == QG_OK)
            status = qg_baseline_choose(folder, s->tables, s->file_count, s->baseline_path,
                                        sizeof s->baseline_path, &s->baseline);
        if (status == QG_OK && !s->o->quiet)
            qg_message_note("baseline: %s",
                            *s->baseline_path ? s->baseline_path : "none has any of these cases");
    }
    s->run.baseline = s->baseline;
    return status == QG_OK ? 0 : fail(status);
}

// ------------------------------------------------------------------------------------------ verdicts

static int report(session *s) {
    qg_gate_report r = {.run = &s->run, .baseline = s->baseline_path, .stream = stdout};
    qg_gate_summary *summaries = qg_gate_summaries(&s->run, &r.summary_count);
    if (!summaries) {
        qg_message_error("no memory for the report");
        return EXIT_SYSTEM;
    }
    r.summaries = summaries;
    FORMATS[s->o->format ? find_format(s->o->format) : 0].write(&r);
    free(summaries);
    return 0;
}

static bool has_case(const session *s, uint64_t id) {
    for (int f = 0; f < s->file_count; f++)
        for (int64_t row = 0; row < qg_table_rows(s->files[f].table); row++)
            if (qg_table_u64(s->files[f].table, row, QG_COLUMN_CASE_ID) == id)
                return true;
    return false;
}

static int judge(session *s) {
    if (s->run.has_explained && !has_case(s, s->run.explained)) {
        qg_message_error("--explain: no case %016" PRIx64 " in the files", s->run.explained);
        return EXIT_NOTHING;
    }
    qg_status status = qg_gate_run_all(&s->run);
    if (status != QG_OK)
        return fail(status);
    if (s->run.has_explained)
        qg_gate_explain(&s->run, stdout);
    else if (!s->o->quiet || s->o->format) {
        int code = report(s);
        if (code)
            return code;
    }
    int code = qg_gate_run_exit_code(&s->run);
    if (code == EXIT_NOTHING)
        qg_message_error("no gate applied to any case of the files");
    return code;
}

// ------------------------------------------------------------------------------------------ baseline

static int write_baseline(session *s, const qg_baseline *now, int64_t fewest) {
    qg_baseline_diff(s->baseline, now, stdout);
    if (fewest < QG_BASELINE_SEEDS_LEAST)
        printf("groups of fewer than %d seeds: their digests alone are kept, no metrics and no "
               "drift\n",
               QG_BASELINE_SEEDS_LEAST);
    qg_status status = qg_baseline_write(now, s->baseline_path);
    if (status != QG_OK)
        return fail(status);
    printf("wrote %s (%" PRId64 " rows)\n", s->baseline_path, qg_baseline_rows(now));
    return 0;
}

// What other gates refuse must not become what is right.
static int update_baseline(session *s) {
    qg_baseline *now;
    int64_t fewest;
    if (!*s->baseline_path) {
        qg_message_error("--update-baseline: no baseline has any of these cases: name the new one "
                         "with --baseline PATH");
        return EXIT_USAGE;
    }
    s->run.baseline = NULL;
    qg_status status = qg_gate_run_all(&s->run);
    if (status != QG_OK)
        return fail(status);
    int code = qg_gate_run_exit_code(&s->run);
    if (code == EXIT_FAILED || code == 3) {
        int failed = report(s);
        qg_message_error("%s stays as it is: the results do not pass the gates that need no "
                         "baseline",
                         s->baseline_path);
        return failed ? failed : code;
    }
    status = qg_baseline_make(s->tables, s->file_count, &now, &fewest);
    if (status != QG_OK)
        return fail(status);
    if (qg_baseline_rows(now) == 0) {
        qg_message_error("nothing for a baseline: no case of the files was measured");
        code = EXIT_NOTHING;
    } else {
        code = write_baseline(s, now, fewest);
    }
    qg_baseline_free(now);
    return code;
}

static void end(session *s) {
    qg_gate_run_free(&s->run);
    qg_baseline_free(s->baseline);
    for (int i = 0; i < s->file_count && s->files; i++)
        qg_table_free(s->files[i].table);
    free(s->files);
    free((void *)s->tables);
    qg_gates_free(&s->gates);
}

static int gate(void *context, const char **paths) {
    const options *o = context;
    session s = {.o = o};
    int code = check_options(&s);
    if (code)
        return code;
    qg_status status = qg_init();
    if (status != QG_OK)
        return fail(status);
    code = qg_isa_choose(o->isa);
    if (code == 0)
        code = read_gates(&s);
    if (code == 0)
        code = read_results(&s, paths);
    if (code == 0)
        code = read_baseline(&s);
    if (code == 0)
        code = o->update_baseline ? update_baseline(&s) : judge(&s);
    end(&s);
    return code;
}

static void print_names(void) {
    puts("\nNames in formulas, beside the numeric columns of result files:");
    for (int i = 0; qg_gate_name_definition(i); i++)
        printf("  %-18s %s\n", qg_gate_name_text(i), qg_gate_name_definition(i));
}

int main(int argc, const char **argv) {
    options o = {0};
    // clang-format off
    const struct poptOption table[] = {
        {"gates", 0, POPT_ARG_STRING, &o.gates, 0, "the gates (reports/gates.tsv)", "FILE"},
        {"baseline", 0, POPT_ARG_STRING, &o.baseline, 0,
         "what results were; its cases must be there", "FILE"},
        {"perf", 0, POPT_ARG_NONE, &o.perf, 0, "gates of kind perf, too", NULL},
        {"allow-missing", 0, POPT_ARG_NONE, &o.allow_missing, 0, "MISSING harms no exit code", NULL},
        {"format", 0, POPT_ARG_STRING, &o.format, 0, "text, markdown, junit, json (text)", "F"},
        {"update-baseline", 0, POPT_ARG_NONE, &o.update_baseline, 0,
         "write the baseline from these results, print what changes", NULL},
        {"explain", 0, POPT_ARG_STRING, &o.explain, 0,
         "all gates of a case, formulas and values", "CASE"},
        {"today", 0, POPT_ARG_STRING, &o.today, 0, "the day that expiry is held against", "DATE"},
        {"isa", 0, POPT_ARG_STRING, &o.isa, 0, "cap of the instruction set", "NAME"},
        {"threads", 0, POPT_ARG_STRING, &o.threads, 0, "at most that many (one is used)", "N"},
        {"verbose", 'v', POPT_ARG_NONE, &o.verbose, 0, "say more", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, "no text report, errors alone", NULL},
        {"version", 0, POPT_ARG_NONE, &o.version, 0, "print the version", NULL},
        {"help", 0, POPT_ARG_NONE, &o.help, 0, "print this", NULL},
        {"usage", 0, POPT_ARG_NONE, &o.usage, 0, "print the options in short", NULL},
        POPT_TABLEEND};
    // clang-format on
    const qg_program program = {.name = "run_gate",
                                .words = "[OPTION...] RESULTS.h5...",
                                .options = table,
                                .help = &o.help,
                                .usage = &o.usage,
                                .version = &o.version,
                                .notes = notes,
                                .more_help = print_names,
                                .run = gate,
                                .context = &o};
    return qg_program_run(&program, argc, argv);
}
