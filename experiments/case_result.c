// Results of cases as plain memory: statuses by name, reasons that fit. See qg_case.h.
#include <qg_case.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const STATUS_NAMES[] = {
#define STATUS_NAME(ID, name) name,
    QG_STATUS_TABLE(STATUS_NAME)
#undef STATUS_NAME
};

const char *qg_case_status_name(qg_case_status status) { return STATUS_NAMES[status]; }

qg_case_status qg_case_status_find(const char *name) {
    int i = 0;
    while (i < QG_CASE_STATUS_COUNT && strcmp(STATUS_NAMES[i], name) != 0)
        i++;
    return (qg_case_status)i;
}

void qg_case_result_clear(qg_case_result *result, const qg_case *c) {
    memset(result, 0, sizeof *result);
    result->order = c->order;
    result->status = QG_CASE_RAN;
    result->code_mismatches = result->scale_mismatches = -1;
    for (int i = 0; i < QG_REFERENCE_MOST; i++)
        result->compared[i].spearman = result->compared[i].backward_error = NAN;
}

// Cuts a UTF-8 text that filled its buffer before a character that did not fit whole.
static void cut_at_character(char *text, size_t length) {
    size_t start = length;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0 || (unsigned char)text[start - 1] < 0xC0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (start - 1 + size > length)
        text[start - 1] = 0;
}

void qg_case_result_set(qg_case_result *result, qg_case_status status, const char *format, ...) {
    result->status = (int32_t)status;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(result->reason, sizeof result->reason, format, arguments);
    va_end(arguments);
    if (length >= (int)sizeof result->reason)
        cut_at_character(result->reason, sizeof result->reason - 1);
    for (char *c = result->reason; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}
