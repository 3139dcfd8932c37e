// `--list-names`: what the lists of a sweep may hold.
#ifndef NAME_LIST_H
#define NAME_LIST_H

#include <stdio.h>

// At most 80 columns. qg_init comes first.
void qg_name_list(FILE *stream);

// What a scale rule does, in a few words; "" for one without.
const char *qg_rule_summary(int rule);

#endif
