// Runs .qgvec texts through the emulator, line by line: what check_vectors verify and operation
// `vectors` share. Prints nothing.
#ifndef VECTOR_RUN_H
#define VECTOR_RUN_H

#include <qgvec.h>

typedef struct qg_vector_text {
    char *text; // freed by qg_vector_text_free
    size_t size;
} qg_vector_text;

// Reads a whole file; path "-" is standard input. `name` stands for it in messages. What is no
// regular file, as a FIFO that nobody writes, is refused, but for /dev/stdin and /dev/fd/N.
// QG_ERROR_IO, QG_ERROR_MEMORY.
qg_status qg_vector_text_read(const char *path, const char *name, qg_vector_text *out);
void qg_vector_text_free(qg_vector_text *text);

// One line, run: `wanted` is what it says, `got` what the emulator gives.
typedef struct qg_vector_line {
    const qg_vector_reader *reader; // its header, and the line's number
    const qg_vector_case *wanted, *got;
    bool matches;
} qg_vector_line;

typedef void (*qg_vector_line_sink)(void *context, const qg_vector_line *line);

// Runs every line of a text and gives it to the sink. The reader's errors, those of the emulator,
// QG_ERROR_MEMORY: the lines before have been given to the sink then.
qg_status qg_vector_run(const char *name, const qg_vector_text *text, qg_vector_line_sink sink,
                        void *context);

// Reads a text to its end without running it.
qg_status qg_vector_check(const char *name, const qg_vector_text *text);

// Whether the i-th field of a line is as wanted.
bool qg_vector_field_matches(const qg_vector_line *line, int32_t i);

// " d wanted 40727c00 got 40727c04": the fields that differ, and the inputs before them if asked
// for; of long fields the first `digits` (QG_VECTOR_DIGITS_MOST at most). Cut where it does not fit
// `size`.
enum { QG_VECTOR_DIGITS_MOST = 80 };
void qg_vector_describe_mismatch(const qg_vector_line *line, bool with_inputs, size_t digits,
                                 char *text, size_t size);

#endif
