// One-line messages of a program to standard error: `run_sweep: ...`. NO_COLOR is honoured.
#ifndef MESSAGE_H
#define MESSAGE_H

#include <qg_status.h>
#include <stdbool.h>
#include <stdio.h>

// The name that opens every line. Call once, with a text that lives as long as the program.
void qg_message_program(const char *name);

// Whether a stream takes colours: a terminal, NO_COLOR unset or empty, TERM not dumb.
bool qg_message_colours(FILE *stream);

// Control characters of the text are printed as `?`: a message stays one line.
__attribute__((format(printf, 1, 2))) void qg_message_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void qg_message_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void qg_message_note(const char *format, ...);

// The exit code of a status: 5 for the system's faults, 2 for the user's, 0 for QG_OK.
int qg_message_exit_code(qg_status status);

#endif
