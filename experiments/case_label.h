// Labels of buffers: texts that say everything that their content depends on. See
// qg_workspace_label.
#ifndef CASE_LABEL_H
#define CASE_LABEL_H

#include <qg_workspace.h>

// A label under construction. `length` is what the whole text needs.
typedef struct case_label {
    size_t length;
    char text[QG_LABEL_SIZE];
} case_label;

__attribute__((format(printf, 2, 3))) void case_label_append(case_label *label, const char *format,
                                                             ...);

// Data, seed, input type and k. By content: a plan's pointers may be those of another plan, later.
void case_label_source(case_label *label, const qg_case *c);

// Format, layout, rule and rounding of operand 0 (a) or 1 (b).
void case_label_recipe(case_label *label, const qg_case *c, int operand);

// "", which is never found, where only a part of the text fits: others may begin like it.
void case_label_finish(const case_label *label, char out[QG_LABEL_SIZE]);

#endif
