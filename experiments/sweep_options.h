// The command line of run_sweep, read and checked.
#ifndef SWEEP_OPTIONS_H
#define SWEEP_OPTIONS_H

#include <launcher.h>
#include <qg_plan_build.h>
#include <qg_sweep.h>
#include <show.h>

enum { QG_MOST_WHERE = 64, QG_MOST_RESULTS = 256 };

typedef struct qg_command {
    qg_plan_request *request;
    bool plans; // --formats or --plan was given
    bool list;
    bool show;
    qg_show_options show_options;
    bool list_names;
    const char *group_kernel;           // the value of --group-kernel, NULL: not given
    const char *learn[QG_MOST_RESULTS]; // result files of --learn-route
    int learn_count;
    const char *learn_out;     // where to, NULL: the data folder
    const char *import_device; // the file of a device check, NULL: none
    const char *where[QG_MOST_WHERE], *exclude[QG_MOST_WHERE];
    int where_count, exclude_count;
    qg_sweep_options run;
    qg_shard shard; // from --shard or the launcher
    bool version;
    const char *program; // as typed, ready for a shell
    void *owned;         // memory behind the texts
} qg_command;

// Reads the arguments. Prints what is wrong and returns the exit code, 0 if all is well. --help and
// --usage print and end the process.
int qg_command_read(int argc, const char **argv, qg_command *command);
void qg_command_free(qg_command *command);

#endif
