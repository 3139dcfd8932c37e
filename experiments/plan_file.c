// Plan files: `[name]` opens a section, lines are `option value`, `#` opens a comment at the start
// of a line or after a space; `\#` there is a literal #. Lines before the first section make one of
// their own.
#include <plan_internal.h>
#include <text_lines.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    qg_plan_request *request;
    const char *path;
    int64_t line;
    int64_t section; // index of the one that is open, -1: none
    int64_t first;   // index of the file's first
} reader;

enum { ORIGIN_SIZE = 400 };

static void describe(const reader *r, const char *what, char origin[ORIGIN_SIZE]) {
    snprintf(origin, ORIGIN_SIZE, "%.300s:%lld%s%.60s", r->path, (long long)r->line,
             *what ? ": " : "", what);
}

static char *without_comment(char *line) {
    for (char *c = line; *c; c++) {
        bool opens = c == line || isspace((unsigned char)c[-1]);
        if (opens && *c == '#') {
            *c = 0;
            break;
        }
        if (opens && *c == '\\' && c[1] == '#')
            memmove(c, c + 1, strlen(c));
    }
    while (isspace((unsigned char)*line))
        line++;
    size_t length = strlen(line);
    while (length && isspace((unsigned char)line[length - 1]))
        line[--length] = 0;
    return line;
}

static qg_status open_section(reader *r, const char *name) {
    char origin[ORIGIN_SIZE];
    qg_section *section;
    describe(r, name, origin);
    qg_status status = qg_request_add_section(r->request, origin, &section);
    r->section = r->request->count - 1;
    return status;
}

static qg_status read_heading(reader *r, const char *line) {
    size_t length = strlen(line);
    char origin[ORIGIN_SIZE];
    if (length >= 3 && line[length - 1] == ']' && !strpbrk(line + 1, "[") &&
        strchr(line, ']') == line + length - 1)
        return open_section(r, line);
    describe(r, "", origin);
    return qg_fail(QG_ERROR_ARGUMENT, "%s: '%.60s' is no section: write [name]", origin, line);
}

// As on the command line, a flag alone means 1.
static const char *value_of(const char *option, const char *value) {
    int axis = qg_axis_of_option(option);
    bool flag = axis >= 0 && !qg_axis_describe((qg_axis)axis)->argument;
    return flag && !*value ? "1" : value;
}

static qg_status read_line(reader *r, char *line) {
    char origin[ORIGIN_SIZE];
    line = without_comment(line);
    if (!*line)
        return QG_OK;
    if (*line == '[')
        return read_heading(r, line);
    if (r->section < 0) {
        qg_status status = open_section(r, "");
        if (status)
            return status;
    }
    char *option = strncmp(line, "--", 2) == 0 ? line + 2 : line;
    char *value = option + strcspn(option, " \t");
    if (*value)
        *value++ = 0;
    value += strspn(value, " \t");
    char *equals = strchr(option, '=');
    if (equals || *value == '=') {
        size_t length = equals ? (size_t)(equals - option) : strlen(option);
        describe(r, "", origin);
        return qg_fail(QG_ERROR_ARGUMENT,
                       "%s: there is no = between option and value: write '%.*s %s'", origin,
                       length < 40 ? (int)length : 40, option,
                       equals && equals[1] ? "VALUE" : value + strspn(value, "= \t"));
    }
    describe(r, option, origin);
    return qg_section_set(&r->request->sections[r->section], option, value_of(option, value),
                          origin);
}

qg_status qg_plan_request_file(qg_plan_request *request, const char *path) {
    reader r = {request, path, 0, -1, request->count};
    qg_text_lines lines;
    qg_status status = qg_text_lines_open(path, &lines);
    if (status)
        return status;
    for (char *line; !status && (line = qg_text_lines_next(&lines));) {
        r.line++;
        status = read_line(&r, line);
    }
    qg_text_lines_close(&lines);
    request->has_files = true;
    if (!status && request->count == r.first)
        return qg_fail(QG_ERROR_ARGUMENT, "the plan '%.300s' has no section", path);
    return status;
}
