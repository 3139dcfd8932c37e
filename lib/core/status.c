// Status texts and the per-thread detail line. See qg_status.h.
#include <qg_status.h>

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char detail[512];

const char *qg_status_text(qg_status status) {
    switch (status) {
    case QG_OK: return "ok";
    case QG_ERROR_ARGUMENT: return "invalid argument";
    case QG_ERROR_OVERFLOW: return "size overflow";
    case QG_ERROR_MEMORY: return "out of memory";
    case QG_ERROR_UNSUPPORTED: return "unsupported";
    case QG_ERROR_IO: return "input or output failed";
    case QG_ERROR_DATA: return "malformed data";
    case QG_ERROR_ENVIRONMENT: return "unsuitable environment";
    }
    return "unknown status";
}

const char *qg_detail(void) { return detail; }

qg_status qg_fail(qg_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    return status;
}
