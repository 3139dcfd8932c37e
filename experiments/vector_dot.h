// Kind dot of .qgvec: one dot product of a matrix unit per line. The unit table's row, the fields
// of a line, and what the emulator gives. Header keys: qgvec.h.
#ifndef VECTOR_DOT_H
#define VECTOR_DOT_H

#include <qgvec.h>

// Places of the fields in a line; -1: the unit has no block scales.
typedef struct qg_vector_dot_fields {
    int a, sa, b, sb, c, d;
} qg_vector_dot_fields;

qg_vector_dot_fields qg_vector_dot_fields_of(const qg_vector_header *header);

// Reads the name of a unit that has an instruction; software units and modifiers are refused.
qg_status qg_vector_dot_unit(const char *text, int *unit);

// Finds the row of a header whose unit, formats, k and scale are set, and lists the fields.
// QG_ERROR_ARGUMENT: *key becomes the header key that does not fit.
qg_status qg_vector_dot_complete(qg_vector_header *header, const char **key);

qg_status qg_vector_dot_evaluate(const qg_vector_header *header, qg_vector_case *got);

#endif
