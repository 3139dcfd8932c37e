// The instruction set that a program's fast variants use: --isa, else QG_ISA, else the best.
#ifndef ISA_CHOICE_H
#define ISA_CHOICE_H

// What was asked for: the value of --isa (or NULL), else QG_ISA, NULL if that is unset or empty.
const char *qg_isa_cap(const char *option);

// Installs it, before threads and workers start. 0, or the exit code after one line to standard
// error: 2 an unknown name, 5 what this processor or this build lacks. It is not lowered silently.
int qg_isa_choose(const char *option);

#endif
