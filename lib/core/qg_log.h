// The library's only voice: a callback, silent by default.
#ifndef QG_LOG_H
#define QG_LOG_H

#include <qg_hd.h>

QG_EXTERN_C_BEGIN

typedef void (*qg_log_function)(void *context, const char *line);

// Installs the callback for the whole process; NULL makes the library silent again.
// Set it before threads start.
void qg_log_set(qg_log_function function, void *context);

#ifdef __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void qg_log_write(const char *format, ...);

QG_EXTERN_C_END

#endif
