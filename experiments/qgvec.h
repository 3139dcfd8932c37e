// .qgvec files: text, one test vector per line. Header lines `# key: value`, the first `# qgvec 1`,
// then per line hexadecimal fields separated by one space; arrays without separators, element 0
// first. Reading is strict: what is odd is an error that names file and line.
// Knows nothing of programs and options. Document: README, "check_vectors".
#ifndef QGVEC_H
#define QGVEC_H

#include <qg_format_name.h>
#include <qg_recipe.h>
#include <qg_status.h>
#include <qg_unit.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum qg_vector_kind {
    QG_VECTOR_ENCODE,   // x [r] code
    QG_VECTOR_DECODE,   // code x
    QG_VECTOR_QUANTIZE, // x [r] [amax_tensor] scale codes, or x [r] s0 s1 codes0 codes1
    QG_VECTOR_DOT       // a [sa] b [sb] c d
} qg_vector_kind;

enum {
    QG_VECTOR_FIELDS = 6,        // at most
    QG_VECTOR_ELEMENTS = 1 << 20 // rows * k at most
};

typedef struct qg_vector_field {
    const char *name;
    int32_t digits; // per element
    int64_t count;  // elements
    bool is_output; // what the emulator computes; the others are its inputs
    int32_t bits;   // of an input code at most; 0: as many as the digits hold
} qg_vector_field;

// What a header says, checked and complete.
typedef struct qg_vector_header {
    qg_vector_kind kind;
    qg_format format;               // encode, decode
    qg_conversion conversion;       // encode
    char recipe_name[QG_NAME_SIZE]; // quantize: canonical
    qg_recipe recipe;
    bool has_rule, has_rounding; // whether they were given (and are written again)
    int64_t rows, k;             // quantize; of dot k alone
    int unit;                    // dot: QG_UNIT_*, without modifiers
    qg_format a, b, c, d;        // dot
    int32_t scale;               // dot: format of the block scales, or QG_UNIT_NO_SCALE
    int64_t scale_block;         // dot: elements of K that share one
    const qg_unit_row *row;      // dot: set by completing
    int32_t field_count;
    qg_vector_field fields[QG_VECTOR_FIELDS];
} qg_vector_header;

// The values of one line, per field one number per element.
typedef struct qg_vector_case {
    uint64_t *values[QG_VECTOR_FIELDS];
} qg_vector_case;

// Completes a header whose kind and what belongs to it (format, conversion; recipe, rows, k; unit,
// formats, k, scale, scale_block) are set: checks that they fit together and lists the fields.
// QG_ERROR_ARGUMENT with what is wrong.
qg_status qg_vector_header_complete(qg_vector_header *header);

// Finds the recipe, rule ("" or NULL: the recipe's) and rounding (likewise) of a quantize header.
qg_status qg_vector_header_recipe(qg_vector_header *header, const char *recipe, const char *rule,
                                  const char *rounding);

// "saturate", "format"; false if the word is another.
bool qg_vector_overflow_parse(const char *text, uint8_t *out);
const char *qg_vector_overflow_name(uint8_t overflow);

qg_status qg_vector_case_create(const qg_vector_header *header, qg_vector_case *out);
void qg_vector_case_free(qg_vector_case *c);

// ------------------------------------------------------------------------------------- reading

typedef struct qg_vector_reader {
    const char *name; // of the file, for messages
    const char *text;
    size_t size, at;
    int64_t line; // of the last line read, from 1
    qg_vector_header header;
} qg_vector_reader;

// Reads the header of a text in memory, which must outlive the reader. Errors are QG_ERROR_DATA, in
// the manner of "FILE:LINE: what".
qg_status qg_vector_reader_open(const char *name, const char *text, size_t size,
                                qg_vector_reader *out);

// Reads the next line into c. At the end of the file *ended becomes true and c stays as it is.
qg_status qg_vector_reader_next(qg_vector_reader *reader, qg_vector_case *c, bool *ended);

// ------------------------------------------------------------------------------------- writing

// Errors of the stream are left for ferror.
void qg_vector_write_header(FILE *stream, const qg_vector_header *header, const char *origin);
void qg_vector_write_case(FILE *stream, const qg_vector_header *header, const qg_vector_case *c);

// Writes the digits of one field, with a terminating zero, if they fit `size`; "..." ends a text
// that does not.
void qg_vector_print_field(const qg_vector_field *field, const uint64_t *values, char *text,
                           size_t size);

// ---------------------------------------------------------------------------------- evaluating

// Computes the output fields of `wanted` from its input fields into `got`, with the emulator; input
// fields are copied. Both belong to the header.
qg_status qg_vector_evaluate(const qg_vector_header *header, const qg_vector_case *wanted,
                             qg_vector_case *got);

#endif
