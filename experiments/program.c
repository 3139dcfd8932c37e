// See program.h.
#include <program.h>

#include <message.h>
#include <qg_version.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, EXIT_SYSTEM = 5 };

static void print_help(const qg_program *p, poptContext context) {
    poptPrintHelp(context, stdout, 0);
    fputs(p->notes, stdout);
    if (p->more_help)
        p->more_help();
}

static int dispatch(const qg_program *p, poptContext context) {
    int got = poptGetNextOpt(context);
    if (got < -1) {
        qg_message_error("%s: %s", poptBadOption(context, 0), poptStrerror(got));
        return EXIT_USAGE;
    }
    if (*p->help)
        print_help(p, context);
    else if (*p->usage)
        poptPrintUsage(context, stdout, 0);
    else if (*p->version)
        printf("%s (quantgauge) %s\n", p->name, QG_VERSION);
    else
        return p->run(p->context, poptGetArgs(context));
    return 0;
}

static void free_options(const struct poptOption *table) {
    for (const struct poptOption *row = table; row->longName; row++)
        if ((row->argInfo & POPT_ARG_MASK) == POPT_ARG_STRING)
            free(*(char **)row->arg);
}

int qg_program_run(const qg_program *program, int argc, const char **argv) {
    qg_message_program(program->name);
    poptContext context = poptGetContext(program->name, argc, argv, program->options, 0);
    poptSetOtherOptionHelp(context, program->words);
    int code = dispatch(program, context);
    poptFreeContext(context);
    free_options(program->options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        qg_message_error("cannot write to standard output: %s", strerror(errno));
        code = code == EXIT_USAGE ? code : EXIT_SYSTEM;
    }
    return code;
}
