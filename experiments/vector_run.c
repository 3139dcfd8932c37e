// Running .qgvec texts. See vector_run.h.
#include <vector_run.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ------------------------------------------------------------------------------------------ files

static qg_status read_stream(FILE *stream, const char *name, qg_vector_text *out) {
    size_t room = 1 << 16;
    out->text = malloc(room);
    while (out->text) {
        out->size += fread(out->text + out->size, 1, room - out->size, stream);
        if (out->size < room)
            break;
        char *text = room <= SIZE_MAX / 2 ? realloc(out->text, 2 * room) : NULL;
        if (!text)
            free(out->text);
        out->text = text;
        room *= 2;
    }
    if (!out->text)
        return qg_fail(QG_ERROR_MEMORY, "%s: no memory for its text", name);
    if (ferror(stream))
        return qg_fail(QG_ERROR_IO, "%s: cannot read: %s", name, strerror(errno));
    return QG_OK;
}

// What a shell hands over open, as /dev/stdin or <(command): a pipe there has its writer.
static bool is_handed_over(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strncmp(path, folders[i], strlen(folders[i])) == 0)
            return true;
    return strcmp(path, "/dev/stdin") == 0;
}

// Not waiting for the writer of a FIFO, nor for a device. A folder says what it is when it is read.
static qg_status open_file(const char *path, const char *name, FILE **out) {
    struct stat file;
    int waiting = is_handed_over(path) ? 0 : O_NONBLOCK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | waiting);
    if (fd >= 0 && waiting && fstat(fd, &file) == 0 && !S_ISREG(file.st_mode) &&
        !S_ISDIR(file.st_mode)) {
        close(fd);
        return qg_fail(QG_ERROR_IO, "%s: cannot read: it is no regular file", name);
    }
    *out = fd < 0 ? NULL : fdopen(fd, "rb");
    if (*out)
        return QG_OK;
    qg_status status = qg_fail(QG_ERROR_IO, "%s: cannot open: %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

qg_status qg_vector_text_read(const char *path, const char *name, qg_vector_text *out) {
    *out = (qg_vector_text){NULL, 0};
    if (!strcmp(path, "-"))
        return read_stream(stdin, name, out);
    FILE *stream;
    qg_status status = open_file(path, name, &stream);
    if (status != QG_OK)
        return status;
    status = read_stream(stream, name, out);
    fclose(stream);
    return status;
}

void qg_vector_text_free(qg_vector_text *text) {
    free(text->text);
    *text = (qg_vector_text){NULL, 0};
}

// ------------------------------------------------------------------------------------------ lines

qg_status qg_vector_check(const char *name, const qg_vector_text *text) {
    qg_vector_reader reader;
    qg_vector_case c;
    bool ended = false;
    qg_status status = qg_vector_reader_open(name, text->text, text->size, &reader);
    if (status != QG_OK)
        return status;
    status = qg_vector_case_create(&reader.header, &c);
    while (status == QG_OK && !ended)
        status = qg_vector_reader_next(&reader, &c, &ended);
    qg_vector_case_free(&c);
    return status;
}

bool qg_vector_field_matches(const qg_vector_line *line, int32_t i) {
    size_t count = (size_t)line->reader->header.fields[i].count;
    return memcmp(line->wanted->values[i], line->got->values[i], count * sizeof(uint64_t)) == 0;
}

static bool all_match(const qg_vector_line *line) {
    for (int32_t i = 0; i < line->reader->header.field_count; i++)
        if (!qg_vector_field_matches(line, i))
            return false;
    return true;
}

static qg_status run_lines(qg_vector_reader *reader, qg_vector_case *wanted, qg_vector_case *got,
                           qg_vector_line_sink sink, void *context) {
    qg_vector_line line = {reader, wanted, got, false};
    for (;;) {
        bool ended;
        qg_status status = qg_vector_reader_next(reader, wanted, &ended);
        if (status == QG_OK && !ended)
            status = qg_vector_evaluate(&reader->header, wanted, got);
        if (status != QG_OK || ended)
            return status;
        line.matches = all_match(&line);
        sink(context, &line);
    }
}

qg_status qg_vector_run(const char *name, const qg_vector_text *text, qg_vector_line_sink sink,
                        void *context) {
    qg_vector_reader reader;
    qg_vector_case wanted = {{NULL}}, got = {{NULL}};
    qg_status status = qg_vector_reader_open(name, text->text, text->size, &reader);
    if (status == QG_OK)
        status = qg_vector_case_create(&reader.header, &wanted);
    if (status == QG_OK)
        status = qg_vector_case_create(&reader.header, &got);
    if (status == QG_OK)
        status = run_lines(&reader, &wanted, &got, sink, context);
    qg_vector_case_free(&wanted);
    qg_vector_case_free(&got);
    return status;
}

// ------------------------------------------------------------------------------------- mismatches

typedef struct piece {
    char *text;
    size_t size, length;
} piece;

__attribute__((format(printf, 2, 3))) static void add(piece *p, const char *format, ...) {
    va_list values;
    va_start(values, format);
    int length = vsnprintf(p->text + p->length, p->size - p->length, format, values);
    va_end(values);
    size_t room = p->size - p->length - 1;
    p->length += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room;
}

static void add_output(piece *p, const qg_vector_line *line, int32_t i, size_t digits) {
    const qg_vector_field *f = &line->reader->header.fields[i];
    const uint64_t *wanted = line->wanted->values[i], *got = line->got->values[i];
    char text[QG_VECTOR_DIGITS_MOST + 1];
    int64_t first = 0; // the element that differs
    while (wanted[first] == got[first])
        first++;
    qg_vector_print_field(f, wanted, text, digits + 1);
    add(p, " %s wanted %s", f->name, text);
    qg_vector_print_field(f, got, text, digits + 1);
    add(p, " got %s", text);
    if (f->count > 1)
        add(p, " (element %" PRId64 ": %0*" PRIx64 ", %0*" PRIx64 ")", first, f->digits,
            wanted[first], f->digits, got[first]);
}

void qg_vector_describe_mismatch(const qg_vector_line *line, bool with_inputs, size_t digits,
                                 char *text, size_t size) {
    piece p = {text, size, 0};
    text[0] = 0;
    for (int32_t i = 0; i < line->reader->header.field_count; i++) {
        const qg_vector_field *f = &line->reader->header.fields[i];
        if (f->is_output && !qg_vector_field_matches(line, i)) {
            add_output(&p, line, i, digits);
        } else if (!f->is_output && with_inputs) {
            char input[QG_VECTOR_DIGITS_MOST + 1];
            qg_vector_print_field(f, line->wanted->values[i], input, digits + 1);
            add(&p, " %s %s", f->name, input);
        }
    }
}
