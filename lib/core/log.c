// The log callback. See qg_log.h.
#include <qg_log.h>

#include <stdarg.h>
#include <stdio.h>

static qg_log_function log_function;
static void *log_context;

void qg_log_set(qg_log_function function, void *context) {
    log_function = function;
    log_context = context;
}

void qg_log_write(const char *format, ...) {
    if (!log_function)
        return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log_function(log_context, line);
}
