// Deterministic mutations of printed graphs: whatever a text says, the reader answers with one
// line, or with a graph that verifies and whose text is read as the same text.
#ifndef GRAPH_TEXT_FUZZ_H
#define GRAPH_TEXT_FUZZ_H

#include "every_op.h"

#include <qg_memory.h>
#include <qg_philox.h>

#include <stdio.h>
#include <stdlib.h>

enum { FUZZ_TEXT_SIZE = 1 << 15, FUZZ_SEEDS_MOST = 256, FUZZ_WORDS_MOST = 2048 };

typedef struct fuzz_text {
    char bytes[FUZZ_TEXT_SIZE];
    size_t size;
} fuzz_text;

typedef struct fuzz_source {
    uint64_t seed, next;
    fuzz_text *texts; // (count): the graphs that mutations start from
    int count;
} fuzz_source;

static inline size_t fuzz_below(fuzz_source *source, size_t limit) {
    return (size_t)qg_philox_word(source->seed, QG_STREAM_STRUCTURE, source->next++) % limit;
}

// ------------------------------------------------------------------------------------------- seeds

static inline void fuzz_need(const qg_graph *g, qg_node node, bool *needed) {
    const qg_node *inputs;
    int32_t count = qg_graph_node_inputs(g, node, &inputs);
    needed[node] = true;
    for (int32_t i = 0; i < count; i++)
        fuzz_need(g, inputs[i], needed);
}

static inline void fuzz_append(fuzz_text *text, const char *bytes, size_t size) {
    REQUIRE(text->size + size <= FUZZ_TEXT_SIZE, "no room for a seed");
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

// The lines of a node and of all that it needs, and the node as an output.
static inline void fuzz_part(const qg_graph *g, const char *printed, qg_node node, fuzz_text *out) {
    bool needed[FUZZ_SEEDS_MOST] = {false};
    char output[300];
    out->size = 0;
    fuzz_need(g, node, needed);
    fuzz_append(out, printed, strlen("qg_graph 1\n"));
    printed += strlen("qg_graph 1\n");
    for (qg_node i = 0; i <= node; i++) {
        const char *end = strchr(printed, '\n') + 1;
        if (needed[i])
            fuzz_append(out, printed, (size_t)(end - printed));
        printed = end;
    }
    snprintf(output, sizeof output, "output %s\n", qg_graph_node_name(g, node));
    fuzz_append(out, output, strlen(output));
}

// A graph of every op, and for each of its nodes the part that it needs.
static inline void fuzz_open(fuzz_source *source) {
    qg_graph *g = every_op_graph();
    char *printed;
    size_t size;
    ck_assert_int_eq(qg_graph_print(g, &printed, &size), QG_OK);
    ck_assert_int_lt(qg_graph_count(g), FUZZ_SEEDS_MOST);
    source->count = qg_graph_count(g) + 1;
    source->texts = calloc((size_t)source->count, sizeof *source->texts);
    ck_assert_ptr_nonnull(source->texts);
    for (qg_node i = 0; i < qg_graph_count(g); i++)
        fuzz_part(g, printed, i, &source->texts[i]);
    fuzz_append(&source->texts[source->count - 1], printed, size);
    qg_release(printed);
    qg_graph_free(g);
}

static inline void fuzz_close(fuzz_source *source) { free(source->texts); }

// --------------------------------------------------------------------------------------- mutations

typedef struct fuzz_span {
    size_t at, size;
} fuzz_span;

static inline void fuzz_replace(fuzz_text *text, fuzz_span span, const char *bytes, size_t size) {
    char copy[512];
    if (size > sizeof copy || text->size - span.size + size > FUZZ_TEXT_SIZE)
        return;
    memcpy(copy, bytes, size); // which may lie in the text
    memmove(text->bytes + span.at + size, text->bytes + span.at + span.size,
            text->size - span.at - span.size);
    memcpy(text->bytes + span.at, copy, size);
    text->size += size - span.size;
}

static inline bool fuzz_is_of_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           strchr("_./:+-", c) != NULL;
}

// The stretch around a random place whose bytes are of words, or are no end of a line.
static inline fuzz_span fuzz_word(fuzz_source *source, const fuzz_text *text) {
    size_t at = fuzz_below(source, text->size), end = at;
    while (at > 0 && text->bytes[at - 1] && fuzz_is_of_word(text->bytes[at - 1]))
        at--;
    while (end < text->size && text->bytes[end] && fuzz_is_of_word(text->bytes[end]))
        end++;
    return (fuzz_span){at, end - at};
}

static inline fuzz_span fuzz_line(fuzz_source *source, const fuzz_text *text) {
    size_t at = fuzz_below(source, text->size), end = at;
    while (at > 0 && text->bytes[at - 1] != '\n')
        at--;
    while (end < text->size && text->bytes[end] != '\n')
        end++;
    return (fuzz_span){at, end + (end < text->size) - at};
}

static inline fuzz_span fuzz_stretch(fuzz_source *source, const fuzz_text *text) {
    size_t at = fuzz_below(source, text->size), size = 1 + fuzz_below(source, 24);
    return (fuzz_span){at, size > text->size - at ? text->size - at : size};
}

static inline void fuzz_put_word(fuzz_source *source, fuzz_text *text) {
    static const char *const words[] = {"9223372036854775807",
                                        "9223372036854775808",
                                        "-9223372036854775808",
                                        "18446744073709551616",
                                        "4294967296",
                                        "2147483647",
                                        "1073741824",
                                        "-1",
                                        "0",
                                        "1",
                                        "00",
                                        "64",
                                        "1e400",
                                        "0x1p-149",
                                        "nan",
                                        "inf",
                                        "-0",
                                        "",
                                        "fp32",
                                        "fp16",
                                        "i64",
                                        "u8",
                                        "output",
                                        "qg_graph",
                                        "mxfp8/group:0",
                                        "mx9",
                                        "rlx_mxfp4x2",
                                        "bf16",
                                        "e4m3/block:1048576x1048576",
                                        "nvfp4",
                                        "te_delayed_e4m3",
                                        "e2m1//fixed:0x1p+127",
                                        "axes",
                                        "begin",
                                        "eps",
                                        "digest"};
    enum { WORDS = sizeof words / sizeof words[0] };
    size_t word = fuzz_below(source, WORDS + QG_GRAPH_OP_COUNT);
    const char *put =
        word < WORDS ? words[word] : qg_graph_op_describe((qg_graph_op)(word - WORDS))->name;
    fuzz_replace(text, fuzz_word(source, text), put, strlen(put));
}

static inline void fuzz_swap(fuzz_text *text, fuzz_span a, fuzz_span b) {
    char copy[512];
    fuzz_span first = a.at < b.at ? a : b, second = a.at < b.at ? b : a;
    if (first.at + first.size > second.at || second.size > sizeof copy)
        return;
    memcpy(copy, text->bytes + second.at, second.size);
    fuzz_replace(text, second, text->bytes + first.at, first.size);
    fuzz_replace(text, first, copy, second.size);
}

static inline void fuzz_put_byte(fuzz_source *source, fuzz_text *text) {
    static const char bytes[] = "0123456789abcdef,,==()[]##\n\n \t\r/:._-+xp\0\x1b\xc3\x7f";
    char byte = bytes[fuzz_below(source, sizeof bytes)];
    fuzz_span at = {fuzz_below(source, text->size), fuzz_below(source, 2)};
    fuzz_replace(text, at, &byte, 1);
}

static inline void fuzz_put_digit(fuzz_source *source, fuzz_text *text) {
    for (int tries = 0; tries < 50; tries++) {
        size_t at = fuzz_below(source, text->size);
        if (text->bytes[at] >= '0' && text->bytes[at] <= '9') {
            text->bytes[at] = (char)('0' + fuzz_below(source, 10));
            return;
        }
    }
}

// Blanks and comments where they do not matter, most of the time.
static inline void fuzz_put_blank(fuzz_source *source, fuzz_text *text) {
    static const char *const blanks[] = {" ", "\t", "  \t ", "#", " # a comment, = ( [ \xc3\xa9"};
    size_t kind = fuzz_below(source, 5);
    fuzz_span near = kind < 3 ? fuzz_word(source, text) : fuzz_line(source, text);
    size_t end = near.at + near.size;
    if (kind >= 3 && end > near.at && text->bytes[end - 1] == '\n')
        end--;
    fuzz_replace(text, (fuzz_span){end, 0}, blanks[kind], strlen(blanks[kind]));
}

// A stretch, word or line of another seed in the place of one of this.
static inline void fuzz_splice(fuzz_source *source, fuzz_text *text) {
    const fuzz_text *other = &source->texts[fuzz_below(source, (size_t)source->count)];
    fuzz_span (*const spans[])(fuzz_source *, const fuzz_text *) = {fuzz_word, fuzz_line,
                                                                    fuzz_stretch};
    size_t kind = fuzz_below(source, 3);
    fuzz_span from = spans[kind](source, other), to = spans[kind](source, text);
    if (fuzz_below(source, 2))
        to.size = 0;
    fuzz_replace(text, to, other->bytes + from.at, from.size);
}

static inline void fuzz_mutate_once(fuzz_source *source, fuzz_text *text) {
    if (text->size == 0)
        return;
    fuzz_span span;
    switch (fuzz_below(source, 15)) {
    case 0:
        text->bytes[fuzz_below(source, text->size)] ^= (char)(1 << fuzz_below(source, 7));
        return;
    case 1: text->size = fuzz_below(source, text->size); return;
    case 2: fuzz_replace(text, fuzz_stretch(source, text), "", 0); return;
    case 3: fuzz_replace(text, fuzz_line(source, text), "", 0); return;
    case 4: fuzz_replace(text, fuzz_word(source, text), "", 0); return;
    case 5: fuzz_swap(text, fuzz_word(source, text), fuzz_word(source, text)); return;
    case 6: fuzz_swap(text, fuzz_line(source, text), fuzz_line(source, text)); return;
    case 7: // twice
        span = fuzz_below(source, 2) ? fuzz_line(source, text) : fuzz_stretch(source, text);
        fuzz_replace(text, (fuzz_span){span.at, 0}, text->bytes + span.at, span.size);
        return;
    case 8: fuzz_splice(source, text); return;
    case 9: fuzz_put_byte(source, text); return;
    case 10:
    case 11: fuzz_put_digit(source, text); return;
    case 12: fuzz_put_blank(source, text); return;
    default: fuzz_put_word(source, text);
    }
}

// ------------------------------------------------------------------------------------------ checks

static inline void fuzz_check_refusal(const fuzz_text *text, qg_status status, const qg_graph *g) {
    const char *detail = qg_detail();
    bool is_good = status == QG_ERROR_DATA && !g && strlen(detail) > 10;
    for (const char *c = detail; *c; c++)
        is_good = is_good && *c >= ' ' && *c <= '~';
    REQUIRE(is_good, "%.*s\nstatus %d: '%s'", (int)text->size, text->bytes, status, detail);
}

// Prints what was read, reads and prints it again.
static inline void fuzz_check_graph(const fuzz_text *text, const qg_graph *g) {
    char *first, *second;
    size_t size, size_again;
    qg_graph *again;
    REQUIRE(qg_graph_verify(g) == QG_OK && qg_graph_print(g, &first, &size) == QG_OK &&
                qg_graph_read(first, size, &again) == QG_OK &&
                qg_graph_print(again, &second, &size_again) == QG_OK,
            "%.*s\n%s", (int)text->size, text->bytes, qg_detail());
    REQUIRE(size == size_again && memcmp(first, second, size) == 0, "%s\nand\n%s", first, second);
    qg_graph_free(again);
    qg_release(first);
    qg_release(second);
}

// Reads a copy that ends where the text does. Whether it is a graph.
static inline bool fuzz_check(const fuzz_text *text) {
    char *exact = malloc(text->size ? text->size : 1);
    qg_graph *g = NULL;
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, text->bytes, text->size);
    qg_status status = qg_graph_read(exact, text->size, &g);
    free(exact);
    if (status == QG_OK)
        fuzz_check_graph(text, g);
    else
        fuzz_check_refusal(text, status, g);
    qg_graph_free(g);
    return status == QG_OK;
}

static inline void fuzz_graphs(uint64_t seed, int64_t rounds) {
    fuzz_source source = {.seed = seed};
    static fuzz_text text;
    int64_t graphs = 0;
    fuzz_open(&source);
    for (int i = 0; i < source.count; i++)
        REQUIRE(fuzz_check(&source.texts[i]), "a seed itself: %s", qg_detail());
    for (int64_t round = 0; round < rounds; round++) {
        source.seed = seed + (uint64_t)round;
        source.next = 0;
        size_t from = fuzz_below(&source, 64) ? fuzz_below(&source, (size_t)source.count - 1)
                                              : (size_t)source.count - 1;
        text.size = source.texts[from].size;
        memcpy(text.bytes, source.texts[from].bytes, text.size);
        for (size_t i = 0, times = 1 + fuzz_below(&source, 3); i < times; i++)
            fuzz_mutate_once(&source, &text);
        graphs += fuzz_check(&text);
    }
    printf("%lld mutations, %lld of them graphs\n", (long long)rounds, (long long)graphs);
    ck_assert_int_gt(graphs, rounds / 40); // some mutations are harmless, most are not
    ck_assert_int_lt(graphs, rounds / 2);
    fuzz_close(&source);
}

#endif
