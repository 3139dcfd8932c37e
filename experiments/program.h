// What every program but run_sweep does around its work: reads options with popt, answers --help,
// --usage and --version, frees what popt allocated, and notices when standard output was lost.
#ifndef PROGRAM_H
#define PROGRAM_H

#include <popt.h>

typedef struct qg_program {
    const char *name;
    const char *words;                // of the usage line: "[OPTION...] RESULTS.h5..."
    const struct poptOption *options; // the texts of POPT_ARG_STRING are freed at the end
    const int *help, *usage, *version;
    const char *notes;       // after the options of --help
    void (*more_help)(void); // after the notes; NULL: nothing
    // The work: `words` are the arguments, NULL for none. Returns the exit code.
    int (*run)(void *context, const char **words);
    void *context;
} qg_program;

// Returns the exit code.
int qg_program_run(const qg_program *program, int argc, const char **argv);

#endif
