// Lines of text that no graph may have, and the detail that each must get.
#ifndef REFUSED_LINE_H
#define REFUSED_LINE_H

#include "every_op.h"

#include <qg_memory.h>

#include <stdio.h>

// The node "bad" after its '='. message: a part of the detail after "line N: node 'bad' (op): ".
typedef struct refused_line {
    const char *line, *message;
} refused_line;

static inline int lines_of(const char *text) {
    int lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

// The text is refused with a detail that begins with `prefix` and has `message` in it.
static inline void check_text_refused(const char *text, const char *prefix, const char *message) {
    qg_graph *graph = NULL;
    qg_status status = qg_graph_read(text, strlen(text), &graph);
    REQUIRE(status == QG_ERROR_DATA && !graph, "%.1500s\nis a graph (status %d): %s", text, status,
            qg_detail());
    REQUIRE(strncmp(qg_detail(), prefix, strlen(prefix)) == 0, "%.1500s\n'%s' does not begin '%s'",
            text, qg_detail(), prefix);
    REQUIRE(strstr(qg_detail() + strlen(prefix), message), "%.1500s\n'%s' lacks '%s'", text,
            qg_detail(), message);
}

// sources: whole lines before it.
static inline void check_refused(const char *sources, const refused_line *refused) {
    char text[4096], prefix[128];
    int op = (int)strspn(refused->line, "abcdefghijklmnopqrstuvwxyz_");
    snprintf(text, sizeof text, "qg_graph 1\n%sbad = %s\noutput bad\n", sources, refused->line);
    snprintf(prefix, sizeof prefix, "line %d: node 'bad' (%.*s): ", lines_of(sources) + 2, op,
             refused->line);
    check_text_refused(text, prefix, refused->message);
}

static inline void check_all_refused(const char *sources, const refused_line *rows, size_t count) {
    for (size_t i = 0; i < count; i++)
        check_refused(sources, &rows[i]);
}

// Of a test whose source lines are SOURCES.
#define ARE_REFUSED(rows) check_all_refused(SOURCES, rows, sizeof(rows) / sizeof((rows)[0]))

// The node is taken.
static inline void check_taken(const char *sources, const char *line) {
    char text[4096];
    qg_graph *graph;
    snprintf(text, sizeof text, "qg_graph 1\n%sgood = %s\noutput good\n", sources, line);
    REQUIRE(qg_graph_read(text, strlen(text), &graph) == QG_OK, "%.1500s\n%s", text, qg_detail());
    qg_graph_free(graph);
}

// --------------------------------------------------------------------------------- wrong types

// An extent one more or one less, an axis more or less, another dtype.
enum {
    RANK_SLIPS = 2 * QG_RANK_MOST,
    DTYPE_SLIPS = RANK_SLIPS + 4,
    TYPE_SLIPS = DTYPE_SLIPS + QG_DTYPE_COUNT
};

static inline bool type_slip_is_rank(int slip) { return slip >= RANK_SLIPS && slip < DTYPE_SLIPS; }
static inline bool type_slip_is_dtype(int slip) { return slip >= DTYPE_SLIPS; }

static inline void insert_axis(qg_tensor_type *type, int32_t at) {
    for (int32_t i = type->rank++; i > at; i--)
        type->shape[i] = type->shape[i - 1];
    type->shape[at] = 1;
}

static inline void drop_axis(qg_tensor_type *type, int32_t at) {
    type->rank--;
    for (int32_t i = at; i < type->rank; i++)
        type->shape[i] = type->shape[i + 1];
    type->shape[type->rank] = 0;
}

static inline bool slip_extent(qg_tensor_type *type, int32_t axis, int64_t by) {
    if (axis >= type->rank || type->shape[axis] + by < 1)
        return false;
    type->shape[axis] += by;
    return true;
}

static inline bool slip_rank(qg_tensor_type *type, bool inserts, bool is_last) {
    if (type->rank == (inserts ? QG_RANK_MOST : 0))
        return false;
    if (inserts)
        insert_axis(type, is_last ? type->rank : 0);
    else
        drop_axis(type, is_last ? type->rank - 1 : 0);
    return true;
}

static inline bool slip_dtype(qg_tensor_type *type, int32_t dtype) {
    bool differs = dtype != type->dtype;
    type->dtype = dtype;
    return differs;
}

// false: this slip cannot happen to the type.
static inline bool slip_type(qg_tensor_type *type, int slip) {
    if (type_slip_is_dtype(slip))
        return slip_dtype(type, slip - DTYPE_SLIPS);
    if (type_slip_is_rank(slip))
        return slip_rank(type, slip < RANK_SLIPS + 2, slip % 2);
    return slip_extent(type, slip / 2, slip % 2 ? -1 : 1);
}

#endif
