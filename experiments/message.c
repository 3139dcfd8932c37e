// One-line messages. See message.h.
#include <message.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program = "quantgauge";

void qg_message_program(const char *name) { program = name; }

bool qg_message_colours(FILE *stream) {
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if ((no_color && *no_color) || !term || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(stream)) == 1;
}

static void print_line(const char *colour, const char *kind, const char *format, va_list values) {
    char text[1024];
    vsnprintf(text, sizeof text, format, values);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    bool coloured = qg_message_colours(stderr);
    fprintf(stderr, "%s%s: %s%s%s\n", coloured ? colour : "", program, kind,
            coloured ? "\033[0m" : "", text);
}

void qg_message_error(const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_line("\033[1;31m", "", format, values);
    va_end(values);
}

void qg_message_warning(const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_line("\033[1;33m", "warning: ", format, values);
    va_end(values);
}

void qg_message_note(const char *format, ...) {
    va_list values;
    va_start(values, format);
    print_line("\033[1m", "", format, values);
    va_end(values);
}

int qg_message_exit_code(qg_status status) {
    switch (status) {
    case QG_OK: return 0;
    case QG_ERROR_IO:
    case QG_ERROR_MEMORY:
    case QG_ERROR_ENVIRONMENT: return 5;
    default: return 2;
    }
}
