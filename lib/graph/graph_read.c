// Text to graphs. The text is foreign: whatever it says, what is made of it verifies, or there is
// one line that names the line and the node. The form: qg_graph_text.h; what prints it:
// graph_print.c.
#include "graph_internal.h"
#include "text_internal.h"

#include <qg_graph_text.h>
#include <qg_nearest.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MOST = 1 << 16, DIGEST_DIGITS = 16 };

// A node as its line tells it. given: what of GRAPH_HAS_* its line has.
typedef struct told_node {
    char name[GRAPH_NAME_MOST + 1];
    qg_graph_op op;
    qg_node inputs[GRAPH_INPUTS_MOST];
    int32_t input_count;
    qg_tensor_type type;
    qg_attributes attributes;
    unsigned given;
    uint64_t digest;
    graph_values *values;
} told_node;

// ------------------------------------------------------------------------------------ inputs, type

static qg_status unexpected(text_line *line, const char *wanted) {
    if (text_is_empty(line))
        return qg_fail(QG_ERROR_DATA, "%s is missing at the end of the line", wanted);
    text_word rest = {line->at, (size_t)(line->end - line->at)};
    const char *tab = memchr(rest.at, '\t', rest.size); // which no detail has
    rest.size = tab ? (size_t)(tab - rest.at) : rest.size;
    return qg_fail(QG_ERROR_DATA, "%s is missing before '%.*s'", wanted, TEXT_SHOWN(rest));
}

// Sets QG_ERROR_DATA for a word that is not listed, with the nearest that is.
static qg_status unknown(const char *what, text_word word, const char *(*listed)(size_t)) {
    char text[64] = "";
    if (word.size < sizeof text)
        text_copy(word, what, text, sizeof text);
    const char *nearest = qg_nearest(text, listed);
    if (nearest)
        return qg_fail(QG_ERROR_DATA, "unknown %s '%s'; the nearest is %s", what, text, nearest);
    return qg_fail(QG_ERROR_DATA, "unknown %s '%.*s'", what, TEXT_SHOWN(word));
}

static const char *op_listed(size_t i) {
    return i < QG_GRAPH_OP_COUNT ? qg_graph_op_describe((qg_graph_op)i)->name : NULL;
}

static const char *dtype_listed(size_t i) {
    return i < QG_DTYPE_COUNT ? qg_dtype_name((qg_dtype)i) : NULL;
}

// The place of the word in a list, -1 if it is not there.
static int find_listed(text_word word, const char *(*listed)(size_t)) {
    for (int i = 0; listed((size_t)i); i++)
        if (text_equals(word, listed((size_t)i)))
            return i;
    return -1;
}

static qg_status read_op(text_line *line, told_node *node) {
    text_word word = text_take_word(line);
    if (word.size == 0)
        return unexpected(line, "an op");
    int op = find_listed(word, op_listed);
    if (op < 0)
        return unknown("op", word, op_listed);
    node->op = (qg_graph_op)op;
    return QG_OK;
}

// The node that the next word names. what: "input".
static qg_status read_name(text_line *line, const qg_graph *graph, const char *what, qg_node *out) {
    char name[GRAPH_NAME_MOST + 1];
    text_word word = text_take_word(line);
    if (word.size == 0)
        return unexpected(line, what);
    qg_status status = text_copy(word, what, name, sizeof name);
    if (status)
        return status;
    *out = qg_graph_find(graph, name);
    if (*out == QG_NODE_NONE)
        return qg_fail(QG_ERROR_DATA, "%s '%.100s' is no node before it", what, name);
    return QG_OK;
}

static qg_status read_input(text_line *line, const qg_graph *graph, told_node *node) {
    qg_node input;
    qg_status status = read_name(line, graph, "input", &input);
    if (status)
        return status;
    if (node->input_count == GRAPH_INPUTS_MOST)
        return qg_fail(QG_ERROR_DATA, "more than %d inputs", GRAPH_INPUTS_MOST);
    node->inputs[node->input_count++] = input;
    return QG_OK;
}

static qg_status read_inputs(text_line *line, const qg_graph *graph, told_node *node) {
    if (!text_take(line, '('))
        return QG_OK;
    do {
        qg_status status = read_input(line, graph, node);
        if (status)
            return status;
    } while (text_take(line, ','));
    return text_take(line, ')') ? QG_OK : unexpected(line, "')'");
}

// Integers between commas, or none at all. At most QG_RANK_MOST.
static qg_status read_integers(text_line *line, int64_t *out, int32_t *count) {
    qg_status status = QG_OK;
    text_line before = *line;
    text_word word = text_take_word(line);
    *count = 0;
    if (word.size == 0 || !(*word.at == '-' || (*word.at >= '0' && *word.at <= '9'))) {
        *line = before;
        return QG_OK;
    }
    for (;; word = text_take_word(line)) {
        if (*count == QG_RANK_MOST)
            return qg_fail(QG_ERROR_DATA, "more than %d integers", QG_RANK_MOST);
        status = text_integer(word, &out[(*count)++]);
        if (status || !text_take(line, ','))
            return status;
    }
}

static qg_status read_type(text_line *line, qg_tensor_type *type) {
    text_word word = text_take_word(line);
    if (word.size == 0)
        return unexpected(line, "a type");
    type->dtype = find_listed(word, dtype_listed);
    if (type->dtype < 0)
        return unknown("dtype", word, dtype_listed);
    if (!text_take(line, '['))
        return unexpected(line, "'['");
    qg_status status = read_integers(line, type->shape, &type->rank);
    if (!status && !text_take(line, ']'))
        status = unexpected(line, "']'");
    return status ? status : qg_tensor_check(type);
}

// -------------------------------------------------------------------------------------- attributes

static qg_status read_axes(text_line *line, told_node *node) {
    int64_t axes[QG_RANK_MOST];
    qg_status status = read_integers(line, axes, &node->attributes.axis_count);
    for (int32_t i = 0; i < node->attributes.axis_count && !status; i++) {
        if (axes[i] < 0 || axes[i] >= QG_RANK_MOST)
            return qg_fail(QG_ERROR_DATA, "axis %" PRId64 " is none", axes[i]);
        node->attributes.axes[i] = (int32_t)axes[i];
    }
    return status;
}

static qg_status read_places(text_line *line, const told_node *node, int64_t *places) {
    int32_t count;
    qg_status status = read_integers(line, places, &count);
    if (!status && count != node->type.rank)
        return qg_fail(QG_ERROR_DATA, "%" PRId32 " places of a tensor of rank %" PRId32, count,
                       node->type.rank);
    return status;
}

static qg_status read_begin(text_line *line, told_node *node) {
    return read_places(line, node, node->attributes.begin);
}

static qg_status read_end(text_line *line, told_node *node) {
    return read_places(line, node, node->attributes.end);
}

static qg_status read_flag(text_line *line, bool *out) {
    text_word word = text_take_word(line);
    *out = text_equals(word, "1");
    if (*out || text_equals(word, "0"))
        return QG_OK;
    return qg_fail(QG_ERROR_DATA, "'%.*s' is neither 0 nor 1", TEXT_SHOWN(word));
}

static qg_status read_keepdims(text_line *line, told_node *node) {
    return read_flag(line, &node->attributes.keepdims);
}

static qg_status read_tanh_form(text_line *line, told_node *node) {
    return read_flag(line, &node->attributes.tanh_form);
}

static qg_status read_eps(text_line *line, told_node *node) {
    return text_float(text_take_word(line), &node->attributes.eps);
}

static qg_status read_seed(text_line *line, told_node *node) {
    return text_unsigned(text_take_word(line), &node->attributes.seed);
}

static qg_status read_recipe(text_line *line, told_node *node) {
    return text_copy(text_take_word(line), "the recipe", node->attributes.recipe,
                     QG_RECIPE_TEXT_SIZE);
}

static qg_status read_recipe_b(text_line *line, told_node *node) {
    return text_copy(text_take_word(line), "the recipe", node->attributes.recipe_b,
                     QG_RECIPE_TEXT_SIZE);
}

static qg_status read_digest(text_line *line, told_node *node) {
    if (node->values)
        return qg_fail(QG_ERROR_DATA, "a constant that is written out has no digest");
    qg_status status = text_hexadecimal(text_take_word(line), DIGEST_DIGITS, &node->digest);
    if (!status && node->digest == 0)
        return qg_fail(QG_ERROR_DATA, "0 is no digest: leave it out where it is unknown");
    return status;
}

static const struct {
    const char *key;
    unsigned has;
    bool has_default;
    qg_status (*read)(text_line *line, told_node *node);
} KEYS[] = {
    {"axes",      GRAPH_HAS_AXES,      false, read_axes     },
    {"begin",     GRAPH_HAS_BEGIN,     false, read_begin    },
    {"end",       GRAPH_HAS_END,       false, read_end      },
    {"keepdims",  GRAPH_HAS_KEEPDIMS,  true,  read_keepdims },
    {"tanh_form", GRAPH_HAS_TANH_FORM, true,  read_tanh_form},
    {"eps",       GRAPH_HAS_EPS,       false, read_eps      },
    {"seed",      GRAPH_HAS_SEED,      true,  read_seed     },
    {"recipe",    GRAPH_HAS_RECIPE,    false, read_recipe   },
    {"recipe_b",  GRAPH_HAS_RECIPE_B,  false, read_recipe_b },
    {"digest",    GRAPH_HAS_VALUES,    true,  read_digest   }
};

enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0] };

static const char *key_listed(size_t i) { return i < KEY_COUNT ? KEYS[i].key : NULL; }

static qg_status read_attribute(text_line *line, text_word word, told_node *node) {
    int key = find_listed(word, key_listed);
    if (key < 0)
        return unknown("attribute", word, key_listed);
    if (!(graph_traits_of(node->op)->has & KEYS[key].has))
        return qg_fail(QG_ERROR_DATA, "it has no attribute %s", KEYS[key].key);
    if (node->given & KEYS[key].has)
        return qg_fail(QG_ERROR_DATA, "attribute %s is there twice", KEYS[key].key);
    node->given |= KEYS[key].has;
    return KEYS[key].read(line, node);
}

// -------------------------------------------------------------------------------------- constants

static bool is_written_out(const told_node *node) {
    return node->op == QG_GRAPH_CONSTANT &&
           qg_tensor_elements(&node->type) <= QG_GRAPH_TEXT_CONSTANT_MOST;
}

static void put_element(unsigned char *to, int bytes, uint64_t bits) {
    uint8_t one = (uint8_t)bits;
    uint16_t two = (uint16_t)bits;
    uint32_t four = (uint32_t)bits;
    const void *from = bytes == 1   ? (const void *)&one
                       : bytes == 2 ? (const void *)&two
                       : bytes == 4 ? (const void *)&four
                                    : (const void *)&bits;
    memcpy(to, from, (size_t)bytes);
}

static qg_status read_elements(text_line *line, told_node *node) {
    unsigned char elements[8 * QG_GRAPH_TEXT_CONSTANT_MOST];
    int bytes = qg_dtype_bytes((qg_dtype)node->type.dtype);
    int64_t count = qg_tensor_elements(&node->type);
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        if (i > 0 && !text_take(line, ','))
            return qg_fail(QG_ERROR_DATA, "%" PRId64 " elements, not %" PRId64, i, count);
        text_word word = text_take_word(line);
        if (word.size == 0)
            return unexpected(line, "an element of the constant");
        qg_status status = text_hexadecimal(word, 2 * bytes, &bits);
        if (status)
            return status;
        put_element(elements + i * bytes, bytes, bits);
    }
    if (text_take(line, ','))
        return qg_fail(QG_ERROR_DATA, "more than %" PRId64 " elements", count);
    node->values = graph_values_copy(elements, count * bytes);
    return node->values ? QG_OK : QG_ERROR_MEMORY;
}

// ------------------------------------------------------------------------------------------- nodes

static qg_status check_given(const told_node *node) {
    unsigned missing = graph_traits_of(node->op)->has & ~node->given;
    for (int i = 0; i < KEY_COUNT; i++)
        if (missing & KEYS[i].has && !KEYS[i].has_default)
            return qg_fail(QG_ERROR_DATA, "attribute %s is missing", KEYS[i].key);
    if (node->op == QG_GRAPH_CONSTANT && missing & GRAPH_HAS_VALUES && !node->values)
        return qg_fail(QG_ERROR_DATA, "a constant of more than %d elements has a digest",
                       QG_GRAPH_TEXT_CONSTANT_MOST);
    return QG_OK;
}

static qg_status read_attributes(text_line *line, told_node *node) {
    qg_status status = is_written_out(node) ? read_elements(line, node) : QG_OK;
    while (!status && !text_is_empty(line)) {
        text_word word = text_take_word(line);
        if (word.size == 0 || !text_take(line, '='))
            return unexpected(line, word.size ? "'='" : "an attribute");
        status = read_attribute(line, word, node);
    }
    return status ? status : check_given(node);
}

static void attributes_of_type(told_node *node) {
    unsigned has = graph_traits_of(node->op)->has;
    if (has & (GRAPH_HAS_TYPE | GRAPH_HAS_SHAPE | GRAPH_HAS_DTYPE))
        node->attributes.type = node->type;
}

// After the op. The details name no node.
static qg_status read_told(text_line *line, qg_graph *graph, told_node *node) {
    qg_status status = graph_check_name(graph, node->name);
    if (!status)
        status = read_inputs(line, graph, node);
    if (!status)
        status = read_type(line, &node->type);
    if (!status)
        status = read_attributes(line, node);
    attributes_of_type(node);
    return status;
}

static qg_status append_told(qg_graph *graph, const told_node *node) {
    qg_node place = graph_append(graph, node->op, node->name, &node->type, node->input_count,
                                 node->inputs, &node->attributes, node->values, node->digest);
    return place == QG_NODE_NONE ? qg_graph_status(graph) : graph_verify_node(graph, place);
}

// What is known before the op is.
static qg_status at_name(const char *name, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status, "node '%s': %s", name, detail);
}

// `word`: its name, which is followed by '='.
static qg_status read_node(text_line *line, text_word word, qg_graph *graph) {
    told_node node = {.values = NULL};
    qg_status status = text_copy(word, "the name", node.name, sizeof node.name);
    if (status)
        return status;
    status = read_op(line, &node);
    if (status)
        return at_name(node.name, status);
    status = graph_at_node(node.name, node.op, read_told(line, graph, &node));
    if (!status)
        status = append_told(graph, &node);
    graph_values_drop(node.values);
    return status;
}

// ------------------------------------------------------------------------------------------- lines

static qg_status read_output(text_line *line, qg_graph *graph) {
    qg_node node;
    qg_status status = read_name(line, graph, "output", &node);
    if (status)
        return status;
    if (!text_is_empty(line))
        return unexpected(line, "the end of the line");
    qg_graph_output(graph, node);
    return qg_graph_status(graph);
}

static qg_status read_header(text_line *line) {
    if (text_equals(text_take_word(line), "qg_graph") && text_equals(text_take_word(line), "1") &&
        text_is_empty(line))
        return QG_OK;
    return qg_fail(QG_ERROR_DATA, "this is no graph of version 1: it begins with 'qg_graph 1'");
}

static qg_status read_statement(text_line *line, qg_graph *graph) {
    text_word word = text_take_word(line);
    if (word.size == 0)
        return unexpected(line, "the name of a node");
    if (text_take(line, '='))
        return read_node(line, word, graph);
    if (text_equals(word, "output"))
        return read_output(line, graph);
    return unexpected(line, "'='");
}

// Cuts the comment off and refuses what is no text.
static qg_status check_line(text_line *line) {
    const char *hash = memchr(line->at, '#', (size_t)(line->end - line->at));
    if (line->end - line->at > LINE_MOST)
        return qg_fail(QG_ERROR_DATA, "the line is longer than %d bytes", LINE_MOST);
    if (memchr(line->at, 0, (size_t)(line->end - line->at)))
        return qg_fail(QG_ERROR_DATA, "a zero byte is no text");
    line->end = hash ? hash : line->end;
    for (const char *c = line->at; c < line->end; c++)
        if ((*c < ' ' || *c > '~') && *c != '\t')
            return qg_fail(QG_ERROR_DATA, "byte 0x%02x is none of a graph's text",
                           (unsigned)(unsigned char)*c);
    return QG_OK;
}

static qg_status at_line(int64_t number, qg_status status) {
    char detail[GRAPH_DETAIL_SIZE];
    snprintf(detail, sizeof detail, "%s", qg_detail());
    return qg_fail(status == QG_ERROR_MEMORY ? status : QG_ERROR_DATA, "line %" PRId64 ": %s",
                   number, detail);
}

// Takes the next line of the text, without its end.
static text_line next_line(text_line *text) {
    text_line line = *text;
    const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
    text->at = end ? end + 1 : text->end;
    line.end = end ? end : text->end;
    if (line.end > line.at && line.end[-1] == '\r')
        line.end--;
    return line;
}

static qg_status read_lines(text_line text, qg_graph *graph) {
    bool has_header = false;
    int64_t number = 0;
    while (text.at < text.end) {
        text_line line = next_line(&text);
        qg_status status = check_line(&line);
        number++;
        if (!status && text_is_empty(&line))
            continue;
        if (!status)
            status = has_header ? read_statement(&line, graph) : read_header(&line);
        if (status)
            return at_line(number, status);
        has_header = true;
    }
    return has_header ? QG_OK : qg_fail(QG_ERROR_DATA, "an empty text is no graph");
}

qg_status qg_graph_read(const char *text, size_t size, qg_graph **out) {
    qg_graph *graph;
    *out = NULL;
    qg_status status = qg_graph_create(&graph);
    if (status)
        return status;
    status = size ? read_lines((text_line){text, text + size}, graph)
                  : qg_fail(QG_ERROR_DATA, "an empty text is no graph");
    if (!status && qg_graph_verify(graph) != QG_OK)
        status = QG_ERROR_DATA;
    if (status)
        qg_graph_free(graph);
    else
        *out = graph;
    return status;
}
