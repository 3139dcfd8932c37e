// The header of a .qgvec file from words as users type them: what check_vectors generate is asked
// for.
#ifndef VECTOR_REQUEST_H
#define VECTOR_REQUEST_H

#include <qgvec.h>

// The options by name, NULL where absent.
typedef struct qg_vector_request {
    char *encode, *decode, *quantize, *unit; // the kind: one of them
    char *rule, *rounding, *overflow, *k, *rows;
    char *a_format, *b_format, *out_format, *scale;
} qg_vector_request;

// QG_ERROR_ARGUMENT, with the option in the message: not one kind, an option of another kind, an
// unknown name, parts that do not fit together.
qg_status qg_vector_request_header(const qg_vector_request *request, qg_vector_header *header);

// Reads a number into *out, which stays as it is where text is NULL.
qg_status qg_vector_request_number(const char *option, const char *text, uint64_t lowest,
                                   uint64_t highest, uint64_t *out);

#endif
