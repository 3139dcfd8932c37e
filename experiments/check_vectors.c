// check_vectors: verifies .qgvec files with the emulator, and generates them.
// Owns options, messages and exit codes; the format is qgvec.h's, the operands vector_operands.h's.
#include <file_replace_internal.h>
#include <isa_choice.h>
#include <message.h>
#include <program.h>
#include <qg_init.h>
#include <qg_version.h>
#include <qgvec.h>
#include <vector_operands.h>
#include <vector_request.h>
#include <vector_run.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_MISMATCH = 1, EXIT_USAGE = 2, EXIT_NOTHING = 4, EXIT_SYSTEM = 5 };

static const char notes[] =
    "\n"
    "check_vectors verify FILE...\n"
    "  runs every line of the files through the emulator; - is standard input. All\n"
    "  files are read before the first line is run.\n"
    "check_vectors generate (--unit U | --encode F | --decode F | --quantize RECIPE)\n"
    "  writes vectors: level 1 crosses tables of interesting operands, level 2 draws\n"
    "  random ones.\n"
    "Fields are hexadecimal. Of --encode, --decode and --quantize, x is binary32, NaN is\n"
    "7fffffff; the amax_tensor of two-level recipes is given, not computed. Rule\n"
    "delayed, and rule four_over_six with stochastic rounding, are not supported.\n"
    "A line of --unit is one dot product, d = c + a . b, of the unit's instruction,\n"
    "chained over k; what is not given comes from the first row of the unit table\n"
    "that fits. The header tells how well that row is known.\n"
    "\n"
    "Exit codes: 0 every line matches, or the file is written; 1 a mismatch; 2 usage\n"
    "error or a malformed file, nothing was run; 4 there was no line to check; 5 a file\n"
    "cannot be read or written, or the environment is unsuitable.\n";

typedef struct options {
    int help, usage, version, verbose, quiet;
    char *isa, *threads;
    char *level, *count, *seed, *out;
    qg_vector_request request;
} options;

// ----------------------------------------------------------------------------------------- verify

enum { SHOWN_MISMATCHES = 10, MISMATCH_SIZE = 2048 };

typedef struct tally {
    int64_t lines, mismatches;       // of all files
    int64_t file_lines, file_faults; // of the one under way
    bool quiet;
} tally;

// The fields that differ, and the inputs; of long ones the beginning.
static void show_mismatch(const qg_vector_line *line) {
    char text[MISMATCH_SIZE];
    qg_vector_describe_mismatch(line, true, QG_VECTOR_DIGITS_MOST, text, sizeof text);
    printf("%s:%" PRId64 ":%s\n", line->reader->name, line->reader->line, text);
}

static void take_line(void *context, const qg_vector_line *line) {
    tally *sum = context;
    sum->file_lines++;
    if (line->matches)
        return;
    sum->file_faults++;
    if (sum->mismatches + sum->file_faults <= SHOWN_MISMATCHES)
        show_mismatch(line);
}

static qg_status verify_file(const char *path, const qg_vector_text *file, tally *sum) {
    sum->file_lines = sum->file_faults = 0;
    qg_status status = qg_vector_run(path, file, take_line, sum);
    if (status != QG_OK)
        return status;
    sum->lines += sum->file_lines;
    sum->mismatches += sum->file_faults;
    if (!sum->quiet || sum->file_faults > 0)
        printf("%s: %" PRId64 " matches, %" PRId64 " mismatches\n", path,
               sum->file_lines - sum->file_faults, sum->file_faults);
    return QG_OK;
}

// Every file's faults, before anything runs. 2 goes before 5.
static int check_files(const char **paths, int count, qg_vector_text *files) {
    int worst = 0;
    for (int i = 0; i < count; i++) {
        qg_status status = qg_vector_text_read(paths[i], paths[i], &files[i]);
        if (status == QG_OK)
            status = qg_vector_check(paths[i], &files[i]);
        if (status == QG_OK)
            continue;
        qg_message_error("%s", qg_detail());
        int code = qg_message_exit_code(status);
        if (worst != EXIT_USAGE)
            worst = code;
    }
    return worst;
}

static int verdict(const tally *sum) {
    printf("%" PRId64 " lines, %" PRId64 " mismatches\n", sum->lines, sum->mismatches);
    if (fflush(stdout) != 0) {
        qg_message_error("standard output: %s", strerror(errno));
        return EXIT_SYSTEM;
    }
    if (sum->mismatches > 0)
        return EXIT_MISMATCH;
    if (sum->lines == 0) {
        qg_message_error("there was no line to check");
        return EXIT_NOTHING;
    }
    return 0;
}

static int verify(const char **paths, int count, bool quiet) {
    tally sum = {.quiet = quiet};
    qg_vector_text *files = calloc((size_t)count, sizeof *files);
    int code = files ? check_files(paths, count, files) : EXIT_SYSTEM;
    for (int i = 0; code == 0 && i < count; i++) {
        qg_status status = verify_file(paths[i], &files[i], &sum);
        if (status != QG_OK) {
            qg_message_error("%s", qg_detail());
            code = qg_message_exit_code(status);
        }
    }
    for (int i = 0; files && i < count; i++)
        qg_vector_text_free(&files[i]);
    free(files);
    return code ? code : verdict(&sum);
}

// --------------------------------------------------------------------------------------- generate

static qg_status read_levels(const options *o, bool levels[3]) {
    const char *text = o->level ? o->level : "1";
    levels[1] = !strcmp(text, "1") || !strcmp(text, "1,2") || !strcmp(text, "2,1");
    levels[2] = !strcmp(text, "2") || !strcmp(text, "1,2") || !strcmp(text, "2,1");
    if (!levels[1] && !levels[2])
        return qg_fail(QG_ERROR_ARGUMENT, "--level %s: write 1, 2 or 1,2", text);
    if (!levels[2] && (o->count || o->seed))
        return qg_fail(QG_ERROR_ARGUMENT, "--count and --seed belong to --level 2 or 1,2");
    return QG_OK;
}

// A stream that becomes PATH when it is whole; standard output where PATH is NULL.
typedef struct output {
    FILE *stream;
    bool is_file;
    qg_replacement replacement;
} output;

static qg_status output_open(const char *path, output *out) {
    *out = (output){.stream = stdout, .is_file = path != NULL};
    if (!path)
        return QG_OK;
    qg_status status = qg_replacement_begin(path, &out->replacement);
    if (status != QG_OK)
        return status;
    const char *temporary = out->replacement.temporary;
    out->stream = fopen(temporary, "wbxe");
    if (out->stream)
        return QG_OK;
    status = qg_fail(QG_ERROR_IO, "%s: cannot write: %s", temporary, strerror(errno));
    qg_replacement_end(&out->replacement, 1);
    return status;
}

static qg_status output_close(output *out, qg_status status) {
    bool failed = ferror(out->stream) || fflush(out->stream) != 0;
    int why = errno;
    if (out->is_file && fclose(out->stream) != 0 && !failed) {
        failed = true;
        why = errno;
    }
    if (status == QG_OK && failed)
        status =
            qg_fail(QG_ERROR_IO, "%s: cannot write: %s",
                    out->is_file ? out->replacement.temporary : "standard output", strerror(why));
    if (!out->is_file)
        return status;
    if (status == QG_OK)
        status = qg_replacement_commit(&out->replacement);
    qg_replacement_end(&out->replacement, status == QG_OK);
    return status;
}

typedef struct writing {
    FILE *stream;
    const qg_vector_header *h;
    qg_vector_case computed;
    int64_t lines;
} writing;

static qg_status write_vector(void *context, qg_vector_case *c) {
    writing *w = context;
    qg_status status = qg_vector_evaluate(w->h, c, &w->computed);
    if (status == QG_OK)
        qg_vector_write_case(w->stream, w->h, &w->computed);
    w->lines++;
    if (status == QG_OK && ferror(w->stream))
        return qg_fail(QG_ERROR_IO, "cannot write: %s", strerror(errno));
    return status;
}

static qg_status write_vectors(const qg_vector_header *h, const bool levels[3], uint64_t seed,
                               uint64_t count, writing *w) {
    char origin[96] = "check_vectors generate, quantgauge " QG_VERSION;
    size_t length = strlen(origin);
    snprintf(origin + length, sizeof origin - length, ", level %s",
             !levels[2]  ? "1"
             : levels[1] ? "1,2"
                         : "2");
    length = strlen(origin);
    if (levels[2])
        snprintf(origin + length, sizeof origin - length, ", seed %" PRIu64, seed);
    qg_vector_write_header(w->stream, h, origin);
    qg_status status = QG_OK;
    if (levels[1])
        status = qg_vector_operands_level1(h, write_vector, w);
    if (status == QG_OK && levels[2])
        status = qg_vector_operands_level2(h, seed, (int64_t)count, write_vector, w);
    return status;
}

static qg_status generate_to(const options *o, const qg_vector_header *h, const bool levels[3],
                             uint64_t seed, uint64_t count) {
    output out;
    writing w = {.h = h};
    qg_status status = qg_vector_case_create(h, &w.computed);
    if (status != QG_OK)
        return status;
    status = output_open(o->out, &out);
    if (status == QG_OK) {
        w.stream = out.stream;
        status = output_close(&out, write_vectors(h, levels, seed, count, &w));
    }
    qg_vector_case_free(&w.computed);
    if (status == QG_OK && o->verbose)
        qg_message_note("%" PRId64 " vectors", w.lines);
    return status;
}

static int generate(const options *o) {
    qg_vector_header h;
    bool levels[3];
    uint64_t seed = 1, count = 1000;
    qg_status status = qg_vector_request_header(&o->request, &h);
    if (status == QG_OK)
        status = read_levels(o, levels);
    if (status == QG_OK)
        status = qg_vector_request_number("count", o->count, 1, INT64_MAX, &count);
    if (status == QG_OK)
        status = qg_vector_request_number("seed", o->seed, 0, UINT64_MAX, &seed);
    if (status == QG_OK)
        status = generate_to(o, &h, levels, seed, count);
    if (status == QG_OK)
        return 0;
    qg_message_error("%s", qg_detail());
    return qg_message_exit_code(status);
}

// ---------------------------------------------------------------------------------------- options

static qg_status check_common(const options *o) {
    enum { MOST_THREADS = 1024 };
    uint64_t threads = 0;
    if (o->verbose && o->quiet)
        return qg_fail(QG_ERROR_ARGUMENT, "--verbose and --quiet exclude each other");
    return qg_vector_request_number("threads", o->threads, 1, MOST_THREADS, &threads);
}

static int run(void *context, const char **words) {
    const options *o = context;
    int count = 0;
    while (words && words[count])
        count++;
    qg_status status = check_common(o);
    if (status == QG_OK)
        status = qg_init();
    if (status != QG_OK) {
        qg_message_error("%s", qg_detail());
        return qg_message_exit_code(status);
    }
    int code = qg_isa_choose(o->isa);
    if (code)
        return code;
    if (count > 0 && !strcmp(words[0], "generate")) {
        if (count == 1)
            return generate(o);
        qg_message_error("generate takes no file, but %s is given; --out names it", words[1]);
        return EXIT_USAGE;
    }
    if (count > 0 && !strcmp(words[0], "verify")) {
        static const qg_vector_request nothing;
        if (o->out || o->level || o->count || o->seed ||
            memcmp(&o->request, &nothing, sizeof nothing)) {
            qg_message_error("verify takes files and common options alone");
            return EXIT_USAGE;
        }
        if (count > 1)
            return verify(words + 1, count - 1, o->quiet);
        qg_message_error("verify needs at least one file");
        return EXIT_USAGE;
    }
    if (count > 0)
        qg_message_error("unknown command %s; known are verify, generate", words[0]);
    else
        qg_message_error("needs a command: verify or generate; --help tells more");
    return EXIT_USAGE;
}

int main(int argc, const char **argv) {
    options o = {0};
    qg_vector_request *r = &o.request;
    // clang-format off
    const struct poptOption table[] = {
        {"encode", 0, POPT_ARG_STRING, &r->encode, 0, "conversions of binary32 to a format", "F"},
        {"decode", 0, POPT_ARG_STRING, &r->decode, 0, "the values of a format's codes", "F"},
        {"quantize", 0, POPT_ARG_STRING, &r->quantize, 0, "groups or blocks of a recipe", "RECIPE"},
        {"unit", 0, POPT_ARG_STRING, &r->unit, 0, "dot products of a matrix unit", "U"},
        {"rule", 0, POPT_ARG_STRING, &r->rule, 0, "scale rule (the recipe's)", "R"},
        {"rounding", 0, POPT_ARG_STRING, &r->rounding, 0, "rounding mode (rne; the recipe's)", "R"},
        {"overflow", 0, POPT_ARG_STRING, &r->overflow, 0,
         "saturate or format, with --encode (saturate)", "MODE"},
        {"k", 0, POPT_ARG_STRING, &r->k, 0,
         "elements of a row (the group, of others 32; of --unit its instruction's)", "K"},
        {"rows", 0, POPT_ARG_STRING, &r->rows, 0, "rows of a block (1; of block layouts 4)", "N"},
        {"a-format", 0, POPT_ARG_STRING, &r->a_format, 0, "of --unit: format of a", "F"},
        {"b-format", 0, POPT_ARG_STRING, &r->b_format, 0, "of --unit: of b (as a)", "F"},
        {"out-format", 0, POPT_ARG_STRING, &r->out_format, 0, "of --unit: of c and d", "F"},
        {"scale", 0, POPT_ARG_STRING, &r->scale, 0,
         "of block-scaled units: format of the scales and elements that share one", "FORMAT:BLOCK"},
        {"level", 0, POPT_ARG_STRING, &o.level, 0, "1, 2 or 1,2 (1)", "L"},
        {"count", 0, POPT_ARG_STRING, &o.count, 0, "random vectors of level 2 (1000)", "N"},
        {"seed", 0, POPT_ARG_STRING, &o.seed, 0, "seed of level 2 (1)", "S"},
        {"out", 0, POPT_ARG_STRING, &o.out, 0, "the file to write (standard output)", "FILE"},
        {"isa", 0, POPT_ARG_STRING, &o.isa, 0,
         "scalar, avx2 or avx512: checked alone, vectors are scalar code's", "NAME"},
        {"threads", 0, POPT_ARG_STRING, &o.threads, 0,
         "checked alone, vectors take one thread", "N"},
        {"verbose", 'v', POPT_ARG_NONE, &o.verbose, 0, "say how many vectors were written", NULL},
        {"quiet", 'q', POPT_ARG_NONE, &o.quiet, 0, "no lines for files that match", NULL},
        {"version", 0, POPT_ARG_NONE, &o.version, 0, "print the version", NULL},
        {"help", 0, POPT_ARG_NONE, &o.help, 0, "print this", NULL},
        {"usage", 0, POPT_ARG_NONE, &o.usage, 0, "print the options in short", NULL},
        POPT_TABLEEND};
    // clang-format on
    const qg_program program = {.name = "check_vectors",
                                .words = "verify FILE... | generate [OPTION...]",
                                .options = table,
                                .help = &o.help,
                                .usage = &o.usage,
                                .version = &o.version,
                                .notes = notes,
                                .run = run,
                                .context = &o};
    return qg_program_run(&program, argc, argv);
}
