// See import_device_file.h.
#include <import_device_file.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28, MOST_LINE = 4096, MOST_FACTS = 1000 };

static const char *const KINDS[] = {
#define KIND_NAME(ID, name) #name,
    DEVICE_ROW_TABLE(KIND_NAME)
#undef KIND_NAME
};
static const char *const VERDICTS[] = {
#define VERDICT_NAME(ID, name) name,
    DEVICE_VERDICT_TABLE(VERDICT_NAME)
#undef VERDICT_NAME
};
#define COLUMN_NAME(ID, name) #name " "
static const char *const COLUMNS[] = {
    DEVICE_BYTES_COLUMNS(COLUMN_NAME), DEVICE_CONTROL_COLUMNS(COLUMN_NAME),
    DEVICE_GEMM_COLUMNS(COLUMN_NAME), DEVICE_PROBE_COLUMNS(COLUMN_NAME),
    DEVICE_TIME_COLUMNS(COLUMN_NAME)};
#undef COLUMN_NAME
static const int FIELDS[] = {DEVICE_BYTES_FIELDS, DEVICE_CONTROL_FIELDS, DEVICE_GEMM_FIELDS,
                             DEVICE_PROBE_FIELDS, DEVICE_TIME_FIELDS};
_Static_assert((int)DEVICE_BYTES_FIELDS <= (int)DEVICE_FIELDS_MOST &&
                   (int)DEVICE_GEMM_FIELDS <= (int)DEVICE_FIELDS_MOST &&
                   (int)DEVICE_TIME_FIELDS <= (int)DEVICE_FIELDS_MOST,
               "the fields of every kind fit");

const char *device_kind_name(device_kind kind) { return KINDS[kind]; }

qg_status device_file_fail(const device_file *file, int64_t line, const char *format, ...) {
    char reason[256];
    va_list values;
    va_start(values, format);
    vsnprintf(reason, sizeof reason, format, values);
    va_end(values);
    return qg_fail(QG_ERROR_DATA, "%.200s:%lld: %s", file->path, (long long)line, reason);
}

// ------------------------------------------------------------------------------------------ bytes

static qg_status fail_io(const char *path) {
    return qg_fail(QG_ERROR_IO, "%.200s: cannot read: %s", path, strerror(errno));
}

static qg_status read_stream(FILE *stream, device_file *out) {
    size_t length = 0, capacity = 1 << 16;
    for (;;) {
        char *text = realloc(out->text, capacity + 1);
        if (!text)
            return qg_fail(QG_ERROR_MEMORY, "%.200s: no memory for it", out->path);
        out->text = text;
        length += fread(text + length, 1, capacity - length, stream);
        if (length < capacity)
            break;
        if (capacity >= MOST_BYTES)
            return qg_fail(QG_ERROR_DATA, "%.200s: too large for the file of a device check",
                           out->path);
        capacity *= 2;
    }
    if (ferror(stream))
        return fail_io(out->path);
    out->text[length] = 0;
    if (strlen(out->text) != length)
        return qg_fail(QG_ERROR_DATA, "%.200s: holds a zero byte: no text", out->path);
    return QG_OK;
}

static qg_status read_text(device_file *out) {
    FILE *stream = fopen(out->path, "rb");
    if (!stream)
        return fail_io(out->path);
    qg_status status = read_stream(stream, out);
    fclose(stream);
    return status;
}

static bool grow(void *array, int64_t count, int64_t *capacity, size_t size) {
    void *items;
    memcpy(&items, array, sizeof items);
    if (count < *capacity)
        return true;
    int64_t more = *capacity ? 2 * *capacity : 64;
    items = realloc(items, (size_t)more * size);
    if (!items)
        return false;
    memcpy(array, &items, sizeof items);
    *capacity = more;
    return true;
}

// ------------------------------------------------------------------------------------------ lines

static int find_kind(const char *word) {
    for (int i = 0; i < DEVICE_KIND_COUNT; i++)
        if (strcmp(KINDS[i], word) == 0)
            return i;
    return -1;
}

// `# columns KIND: NAME ... verdict reason`: must be what this version knows.
static qg_status take_columns(const device_file *file, int64_t line, const char *text) {
    char wanted[1024];
    size_t length = strcspn(text, ":");
    for (int i = 0; i < DEVICE_KIND_COUNT; i++) {
        if (strlen(KINDS[i]) != length || strncmp(KINDS[i], text, length) != 0)
            continue;
        snprintf(wanted, sizeof wanted, "%s: %sverdict reason", KINDS[i], COLUMNS[i]);
        if (strcmp(wanted, text) != 0)
            return device_file_fail(file, line, "the columns of '%s' are not this version's",
                                    KINDS[i]);
        return QG_OK;
    }
    return device_file_fail(file, line, "columns of a kind that does not exist: '%.40s'", text);
}

static qg_status take_fact(device_file *file, int64_t line, char *text) {
    static const char columns[] = "# columns ";
    char *colon = strstr(text, ": ");
    if (strncmp(text, columns, sizeof columns - 1) == 0)
        return take_columns(file, line, text + sizeof columns - 1);
    if (strncmp(text, "# ", 2) != 0 || !colon || colon == text + 2)
        return device_file_fail(file, line, "no `# key: value`: '%.40s'", text);
    if (!grow(&file->facts, file->fact_count, &file->fact_capacity, sizeof *file->facts))
        return qg_fail(QG_ERROR_MEMORY, "out of memory for facts");
    *colon = 0;
    if (strcmp(text + 2, "left") != 0 && device_file_fact(file, text + 2))
        return device_file_fail(file, line, "'%.40s' is said twice", text + 2);
    if (file->fact_count == MOST_FACTS)
        return device_file_fail(file, line, "more than %d facts", (int)MOST_FACTS);
    file->facts[file->fact_count++] = (device_fact){text + 2, colon + 2};
    return QG_OK;
}

// Cuts a line at its tabs; the number of fields, or one more than `most`.
static int cut_fields(char *text, const char **fields, int most) {
    int count = 0;
    for (char *at = text; at; count++) {
        char *tab = strchr(at, '\t');
        if (count < most)
            fields[count] = at;
        if (tab)
            *tab++ = 0;
        at = tab;
    }
    return count;
}

static qg_status take_row(device_file *file, int64_t line, char *text) {
    const char *fields[DEVICE_FIELDS_MOST + 3];
    int count = cut_fields(text, fields, DEVICE_FIELDS_MOST + 3), kind = find_kind(fields[0]);
    if (kind < 0)
        return device_file_fail(file, line, "no kind of row: '%.40s'", fields[0]);
    int wanted = FIELDS[kind] + 3;
    if (count != wanted)
        return device_file_fail(file, line, "a row of '%s' has %d fields, not %d", KINDS[kind],
                                wanted, count);
    int verdict = 0;
    while (verdict < DEVICE_VERDICT_COUNT && strcmp(VERDICTS[verdict], fields[wanted - 2]) != 0)
        verdict++;
    if (verdict == DEVICE_VERDICT_COUNT)
        return device_file_fail(file, line, "no verdict: '%.40s'", fields[wanted - 2]);
    if (!grow(&file->rows, file->row_count, &file->row_capacity, sizeof *file->rows))
        return qg_fail(QG_ERROR_MEMORY, "out of memory for rows");
    device_row *row = &file->rows[file->row_count++];
    *row = (device_row){.line = line,
                        .kind = (device_kind)kind,
                        .verdict = (device_verdict)verdict,
                        .reason = fields[wanted - 1]};
    for (int i = 0; i < FIELDS[kind]; i++)
        row->field[i] = fields[i + 1];
    return QG_OK;
}

static qg_status check_line(const device_file *file, int64_t line, const char *text) {
    size_t length = strlen(text);
    if (length > MOST_LINE)
        return device_file_fail(file, line, "a line of %zu bytes", length);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c != '\t' && (*c < ' ' || *c > 126))
            return device_file_fail(file, line, "a byte that is no printable ASCII: 0x%02x", *c);
    return QG_OK;
}

static qg_status take_lines(device_file *file) {
    int64_t line = 0;
    qg_status status = QG_OK;
    for (char *at = file->text; *at && status == QG_OK;) {
        char *end = strchr(at, '\n');
        line++;
        if (!end)
            return device_file_fail(file, line, "the file ends within a line");
        *end = 0;
        status = check_line(file, line, at);
        if (status == QG_OK && line == 1 && strcmp(at, DEVICE_FILE_MAGIC) != 0)
            status = device_file_fail(file, line, "not the file of a device check: no '%s'",
                                      DEVICE_FILE_MAGIC);
        else if (status == QG_OK && line > 1)
            status = *at == '#' ? take_fact(file, line, at) : take_row(file, line, at);
        at = end + 1;
    }
    return status == QG_OK && line == 0
               ? qg_fail(QG_ERROR_DATA, "%.200s: an empty file", file->path)
               : status;
}

// ----------------------------------------------------------------------------------------- whole

// `N checks, M failures, S seconds` must be what the rows say: a file that was cut between lines.
static qg_status check_result(const device_file *file) {
    const char *result = device_file_fact(file, "result");
    int64_t count[DEVICE_VERDICT_COUNT] = {0};
    char wanted[64];
    for (int64_t i = 0; i < file->row_count; i++)
        count[file->rows[i].verdict]++;
    if (!result)
        return qg_fail(QG_ERROR_DATA, "%.200s: it does not say its result", file->path);
    snprintf(wanted, sizeof wanted, "%lld checks, %lld failures, ",
             (long long)(count[DEVICE_VERDICT_PASSED] + count[DEVICE_VERDICT_FAILED]),
             (long long)count[DEVICE_VERDICT_FAILED]);
    if (strncmp(result, wanted, strlen(wanted)) != 0)
        return qg_fail(QG_ERROR_DATA, "%.200s: its rows make %snot '%.60s': was it cut?",
                       file->path, wanted, result);
    return QG_OK;
}

qg_status device_file_read(const char *path, device_file *out) {
    *out = (device_file){.path = path};
    qg_status status = read_text(out);
    if (status == QG_OK)
        status = take_lines(out);
    return status == QG_OK ? check_result(out) : status;
}

void device_file_free(device_file *file) {
    free(file->text);
    free(file->facts);
    free(file->rows);
    *file = (device_file){0};
}

const char *device_file_fact(const device_file *file, const char *key) {
    for (int64_t i = 0; i < file->fact_count; i++)
        if (strcmp(file->facts[i].key, key) == 0)
            return file->facts[i].value;
    return NULL;
}

bool device_file_is_complete(const device_file *file) {
    return !device_file_fact(file, "left") && !device_file_fact(file, "error");
}
