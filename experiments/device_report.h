// What a device check found: rows and facts for the file, tallies for standard output.
//
// Rows are kept in memory and written at the end, whole or not at all (a file beside, renamed).
// Running out of memory is remembered and fails the writing.
#ifndef DEVICE_REPORT_H
#define DEVICE_REPORT_H

#include <device_rows.h>
#include <qg_status.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct device_report device_report;

qg_status device_report_create(device_report **out);
void device_report_free(device_report *report); // NULL is fine

// A fact of the file's head. Control characters become spaces, here and in rows.
__attribute__((format(printf, 3, 4))) void device_report_fact(device_report *report,
                                                              const char *key, const char *format,
                                                              ...);

// A row: its fields, separated by tabs, by `format`. `label`: the line of standard output that
// counts it; `reason`: "" where there is none.
__attribute__((format(printf, 6, 7))) void device_report_row(device_report *report,
                                                             device_kind kind, const char *label,
                                                             device_verdict verdict,
                                                             const char *reason, const char *format,
                                                             ...);

// Remembers `count` checks of a stage that were not made, and why.
void device_report_left(device_report *report, const char *what, int64_t count, const char *why);

// A line of standard output, printed with the tallies of the rows of its kind.
__attribute__((format(printf, 3, 4))) void device_report_note(device_report *report,
                                                              device_kind kind, const char *format,
                                                              ...);

// Prints what was found of one kind since the last call: a line per label, notes, failures (the
// first few).
void device_report_print(device_report *report, device_kind kind, const char *title, FILE *stream);
// What was left, and the last line.
void device_report_finish(device_report *report, double seconds, FILE *stream);

int64_t device_report_checks(const device_report *report); // PASSED and FAILED rows
int64_t device_report_failures(const device_report *report);
bool device_report_is_complete(const device_report *report); // nothing was left

// Whether a file can be made there: before the checks, for their time is not to be lost.
qg_status device_report_can_write(const char *path);
qg_status device_report_write(const device_report *report, const char *path);

#endif
