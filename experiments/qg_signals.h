// The signals of a sweep: stop (SIGINT, SIGTERM, SIGHUP), write what is finished (SIGUSR1).
#ifndef QG_SIGNALS_H
#define QG_SIGNALS_H

#include <stdbool.h>

// For the start of a program: SIGUSR1 does nothing before and after its sweep, where its default
// would end a program that is still reading its plan; a file beyond the limit of its size is a write
// that fails (SIGXFSZ).
void qg_signals_begin(void);

// From now on the signals are only noted; SIGCHLD ends waits. One sweep of a process at a time.
void qg_signals_catch(void);
// What the process did with them before.
void qg_signals_restore(void);

// The signal that asked to stop, by name; NULL if none did.
const char *qg_signals_stop(void);
// Whether SIGUSR1 arrived since the last call.
bool qg_signals_take_write(void);

#endif
