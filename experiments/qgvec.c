// Reading and writing .qgvec. See qgvec.h.
#include <qgvec.h>

#include <qg_memory.h>
#include <qg_nearest.h>
#include <qg_recipe_name.h>
#include <qg_size.h>
#include <vector_dot.h>

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

// --------------------------------------------------------------------------------------- headers

static const char *const overflow_names[] = {"saturate", "format"};

bool qg_vector_overflow_parse(const char *text, uint8_t *out) {
    for (uint8_t i = 0; i < 2; i++)
        if (!strcmp(text, overflow_names[i])) {
            *out = i;
            return true;
        }
    return false;
}

const char *qg_vector_overflow_name(uint8_t overflow) { return overflow_names[overflow & 1]; }

// 2 digits up to 8 bits, 4 for 16, 8 for 32 and tf32, 16 for 64.
static int32_t digits_of(qg_format format) {
    qg_format_info info = qg_format_describe(format);
    return 2 * qg_format_code_bytes(&info);
}

static void add_field(qg_vector_header *h, const char *name, int32_t digits, int64_t count,
                      bool is_output) {
    h->fields[h->field_count++] = (qg_vector_field){name, digits, count, is_output, 0};
}

static qg_status complete_encode(qg_vector_header *h) {
    qg_rounding rounding = h->conversion.rounding;
    if (h->format == QG_FORMAT_E8M0 && rounding.mode != QG_ROUND_RNE &&
        rounding.mode != QG_ROUND_RNA && rounding.mode != QG_ROUND_RTZ &&
        rounding.mode != QG_ROUND_RTP)
        return qg_fail(QG_ERROR_ARGUMENT, "e8m0 is encoded with rne, rna, rtz or rtp alone");
    add_field(h, "x", 8, 1, false);
    if (qg_rounding_is_stochastic(rounding))
        add_field(h, "r", 8, 1, false);
    add_field(h, "code", digits_of(h->format), 1, true);
    return QG_OK;
}

static qg_status check_block(const qg_vector_header *h) {
    int64_t elements;
    qg_blocks blocks;
    if (h->rows < 1 || h->k < 1 || !qg_size_multiply(h->rows, h->k, &elements) ||
        elements > QG_VECTOR_ELEMENTS)
        return qg_fail(QG_ERROR_ARGUMENT, "rows and k must be at least 1 and rows * k at most %d",
                       QG_VECTOR_ELEMENTS);
    qg_status status = qg_layout_blocks(h->recipe.layout, h->rows, h->k, &blocks);
    if (status != QG_OK)
        return status;
    if (blocks.block_rows != 1 || blocks.block_columns != 1) {
        char layout[QG_LAYOUT_NAME_SIZE];
        qg_layout_name(h->recipe.layout, layout);
        return qg_fail(QG_ERROR_ARGUMENT,
                       "rows %" PRId64 " and k %" PRId64 " are more than one block of %s", h->rows,
                       h->k, layout);
    }
    return QG_OK;
}

static qg_status complete_quantize(qg_vector_header *h) {
    qg_status status = qg_recipe_check(&h->recipe);
    if (status == QG_OK)
        status = check_block(h);
    if (status != QG_OK)
        return status;
    bool stochastic = qg_rounding_is_stochastic(h->recipe.conversion.rounding);
    if (h->recipe.rule == QG_RULE_DELAYED)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "rule delayed needs an amax history, which a line does not hold");
    if (stochastic && h->recipe.rule == QG_RULE_FOUR_OVER_SIX)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "rule four_over_six with stochastic rounding is not supported");
    int64_t elements = h->rows * h->k;
    int32_t code = digits_of(h->recipe.element);
    int32_t scale = digits_of(qg_rule_scale_format(h->recipe.rule));
    bool residual = h->recipe.structure == QG_STRUCTURE_RESIDUAL;
    bool pairs = h->recipe.structure == QG_STRUCTURE_PAIR_SHIFT ||
                 h->recipe.structure == QG_STRUCTURE_NO_SHIFT;
    add_field(h, "x", 8, elements, false);
    if (stochastic)
        add_field(h, "r", 8, elements, false);
    if (qg_rule_has_tensor_scale(h->recipe.rule))
        add_field(h, "amax_tensor", 8, 1, false);
    add_field(h, residual ? "s0" : "scale", scale, pairs ? 2 : 1, true);
    if (residual)
        add_field(h, "s1", scale, 1, true);
    add_field(h, residual ? "codes0" : "codes", code, elements, true);
    if (residual)
        add_field(h, "codes1", code, elements, true);
    return QG_OK;
}

static qg_status complete_decode(qg_vector_header *h) {
    add_field(h, "code", digits_of(h->format), 1, false);
    h->fields[0].bits = qg_format_describe(h->format).bits;
    add_field(h, "x", 8, 1, true);
    return QG_OK;
}

qg_status qg_vector_header_complete(qg_vector_header *h) {
    const char *key;
    h->field_count = 0;
    switch (h->kind) {
    case QG_VECTOR_ENCODE: return complete_encode(h);
    case QG_VECTOR_DECODE: return complete_decode(h);
    case QG_VECTOR_DOT: return qg_vector_dot_complete(h, &key);
    default: return complete_quantize(h);
    }
}

static void canonical_recipe_name(const char *name, const qg_recipe *recipe,
                                  char out[QG_NAME_SIZE]) {
    if (!qg_recipe_is_preset(name)) {
        qg_format_name(recipe->element, out);
        return;
    }
    size_t i = 0;
    for (; name[i] && i < QG_NAME_SIZE - 1; i++)
        out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
    out[i] = 0;
}

qg_status qg_vector_header_recipe(qg_vector_header *h, const char *recipe, const char *rule,
                                  const char *rounding) {
    qg_status status = qg_recipe_find(recipe, &h->recipe);
    if (status != QG_OK)
        return status;
    canonical_recipe_name(recipe, &h->recipe, h->recipe_name);
    h->has_rule = rule && *rule;
    h->has_rounding = rounding && *rounding;
    if (h->has_rule) {
        int number;
        float fixed;
        status = qg_rule_parse(rule, &number, &fixed);
        if (status == QG_OK)
            status = qg_recipe_set_rule(&h->recipe, number, fixed);
    }
    if (status == QG_OK && h->has_rounding)
        status = qg_rounding_parse(rounding, &h->recipe.conversion.rounding);
    return status;
}

// ----------------------------------------------------------------------------------------- cases

qg_status qg_vector_case_create(const qg_vector_header *header, qg_vector_case *out) {
    memset(out, 0, sizeof *out);
    for (int32_t i = 0; i < header->field_count; i++) {
        void *room;
        qg_status status =
            qg_allocate(&room, header->fields[i].count, sizeof(uint64_t), "a test vector");
        out->values[i] = room;
        if (status != QG_OK) {
            qg_vector_case_free(out);
            return status;
        }
    }
    return QG_OK;
}

void qg_vector_case_free(qg_vector_case *c) {
    for (int i = 0; i < QG_VECTOR_FIELDS; i++)
        qg_release(c->values[i]);
    memset(c, 0, sizeof *c);
}

// --------------------------------------------------------------------------------------- reading

// X(ID, name, kinds): the keys with meaning. Kinds: the bits 1 << qg_vector_kind that have it.
enum { IN_ENCODE = 1, IN_DECODE = 2, IN_QUANTIZE = 4, IN_DOT = 8, IN_ALL = 15 };
#define KEY_TABLE(X)                                                                               \
    X(KIND, "kind", IN_ALL)                                                                        \
    X(FORMAT, "format", IN_ENCODE | IN_DECODE)                                                     \
    X(ROUNDING, "rounding", IN_ENCODE | IN_QUANTIZE)                                               \
    X(OVERFLOW, "overflow", IN_ENCODE)                                                             \
    X(RECIPE, "recipe", IN_QUANTIZE)                                                               \
    X(RULE, "rule", IN_QUANTIZE)                                                                   \
    X(ROWS, "rows", IN_QUANTIZE)                                                                   \
    X(K, "k", IN_QUANTIZE | IN_DOT)                                                                \
    X(UNIT, "unit", IN_DOT)                                                                        \
    X(A, "a", IN_DOT)                                                                              \
    X(B, "b", IN_DOT)                                                                              \
    X(C, "c", IN_DOT)                                                                              \
    X(D, "d", IN_DOT)                                                                              \
    X(SCALE, "scale", IN_DOT)                                                                      \
    X(SCALE_BLOCK, "scale_block", IN_DOT)
enum {
#define KEY_ENUM(ID, name, kinds) KEY_##ID,
    KEY_TABLE(KEY_ENUM)
#undef KEY_ENUM
        KEY_COUNT
};

typedef struct key_row {
    const char *name;
    int kinds;
} key_row;
static const key_row keys[KEY_COUNT] = {
#define KEY_ROW(ID, name, kinds) {name, kinds},
    KEY_TABLE(KEY_ROW)
#undef KEY_ROW
};
static const char *const free_keys[] = {"columns", "device", "origin", "comment"};
static const char *const kind_names[] = {"encode", "decode", "quantize", "dot"}; // by kind

enum { VALUE_SIZE = 64 };

// The keys of a header as they were found; line 0: absent.
typedef struct found_keys {
    char value[KEY_COUNT][VALUE_SIZE];
    int64_t line[KEY_COUNT];
} found_keys;

static bool is_listed(const char *word, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!strcmp(word, list[i]))
            return true;
    return false;
}
#define LENGTH(array)         (sizeof(array) / sizeof((array)[0]))
#define IS_LISTED(word, list) is_listed(word, list, LENGTH(list))

static const char *listed_key(size_t i) { return i < KEY_COUNT ? keys[i].name : NULL; }

// The next line without its newline: false at the end of the text.
static bool next_line(qg_vector_reader *r, const char **line, size_t *length) {
    if (r->at >= r->size)
        return false;
    const char *start = r->text + r->at, *end = memchr(start, '\n', r->size - r->at);
    *line = start;
    *length = end ? (size_t)(end - start) : r->size - r->at;
    r->at += *length + (end != NULL);
    r->line++;
    return true;
}

#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
static qg_status
bad_line(const qg_vector_reader *r, int64_t line, const char *format, ...) {
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return qg_fail(QG_ERROR_DATA, "%s:%" PRId64 ": %s", r->name, line, what);
}

// The last failure's detail with file and line before it.
static qg_status placed(const qg_vector_reader *r, int64_t line, qg_status status) {
    char what[400];
    if (status == QG_OK)
        return status;
    snprintf(what, sizeof what, "%s", qg_detail());
    qg_fail(QG_ERROR_DATA, "%s:%" PRId64 ": %s", r->name, line, what);
    return status == QG_ERROR_MEMORY ? status : QG_ERROR_DATA;
}

static qg_status check_line_end(const qg_vector_reader *r, const char *line, size_t length) {
    return length > 0 && line[length - 1] == '\r'
               ? bad_line(r, r->line, "the line ends in a carriage return; lines end in \\n alone")
               : QG_OK;
}

static bool is_text(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

static qg_status keep_key(const qg_vector_reader *r, const char *key, const char *value,
                          size_t length, found_keys *found) {
    if (IS_LISTED(key, free_keys))
        return QG_OK;
    if (length == 0)
        return bad_line(r, r->line, "key %s has no value", key);
    if (length >= VALUE_SIZE)
        return bad_line(r, r->line, "the value of %s is too long", key);
    for (int i = 0; i < KEY_COUNT; i++) {
        if (strcmp(key, keys[i].name))
            continue;
        if (found->line[i])
            return bad_line(r, r->line, "key %s again, it is in line %" PRId64 " already", key,
                            found->line[i]);
        memcpy(found->value[i], value, length);
        found->value[i][length] = 0;
        found->line[i] = r->line;
        return QG_OK;
    }
    const char *nearest = qg_nearest(key, listed_key);
    return nearest ? bad_line(r, r->line, "unknown key %s; the nearest is %s", key, nearest)
                   : bad_line(r, r->line, "unknown key %s", key);
}

// `# key: value`
static qg_status read_key(const qg_vector_reader *r, const char *line, size_t length,
                          found_keys *found) {
    char key[VALUE_SIZE];
    qg_status status = check_line_end(r, line, length);
    if (status != QG_OK)
        return status;
    if (!is_text(line, length))
        return bad_line(r, r->line, "the header holds a control character");
    const char *colon = length > 2 && line[1] == ' ' ? memchr(line, ':', length) : NULL;
    size_t key_length = colon ? (size_t)(colon - line) - 2 : 0;
    if (key_length == 0 || key_length >= VALUE_SIZE || memchr(line + 2, ' ', key_length))
        return bad_line(r, r->line, "a header line must read '# key: value'");
    memcpy(key, line + 2, key_length);
    key[key_length] = 0;
    const char *value = colon + 1, *end = line + length;
    while (value < end && *value == ' ')
        value++;
    return keep_key(r, key, value, (size_t)(end - value), found);
}

static qg_status read_keys(qg_vector_reader *r, found_keys *found) {
    const char *line;
    size_t length;
    bool there = next_line(r, &line, &length);
    if (there && check_line_end(r, line, length) != QG_OK)
        return QG_ERROR_DATA;
    if (!there || length != 9 || memcmp(line, "# qgvec 1", 9))
        return bad_line(r, 1, "the first line must be '# qgvec 1'");
    while (r->at < r->size && r->text[r->at] == '#') {
        next_line(r, &line, &length);
        qg_status status = read_key(r, line, length, found);
        if (status != QG_OK)
            return status;
    }
    return QG_OK;
}

static qg_status check_kind(const qg_vector_reader *r, const found_keys *found,
                            qg_vector_kind *out) {
    const char *kind = found->value[KEY_KIND];
    int64_t line = found->line[KEY_KIND];
    if (!line)
        return bad_line(r, r->line, "the header has no kind");
    size_t i = 0;
    while (i < LENGTH(kind_names) && strcmp(kind, kind_names[i]))
        i++;
    if (i == LENGTH(kind_names))
        return bad_line(r, line, "unknown kind %s; known are encode, decode, quantize, dot", kind);
    *out = (qg_vector_kind)i;
    for (int key = 0; key < KEY_COUNT; key++)
        if (found->line[key] && !(keys[key].kinds & 1 << *out))
            return bad_line(r, found->line[key], "unknown key %s in kind %s", keys[key].name, kind);
    return QG_OK;
}

static qg_status need(const qg_vector_reader *r, const found_keys *found, int key) {
    return found->line[key] ? QG_OK : bad_line(r, r->line, "the header has no %s", keys[key].name);
}

static qg_status read_size(const qg_vector_reader *r, const found_keys *found, int key,
                           int64_t *out) {
    const char *text = found->value[key];
    int64_t value = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || value > QG_VECTOR_ELEMENTS)
            return bad_line(r, found->line[key], "%s %s is no number from 1 to %d", keys[key].name,
                            text, QG_VECTOR_ELEMENTS);
        value = 10 * value + (*c - '0');
    }
    *out = value;
    return QG_OK;
}

static qg_status read_conversion(const qg_vector_reader *r, const found_keys *found,
                                 qg_vector_header *h) {
    qg_status status = need(r, found, KEY_FORMAT);
    if (status == QG_OK)
        status = placed(r, found->line[KEY_FORMAT],
                        qg_format_parse(found->value[KEY_FORMAT], &h->format));
    if (status != QG_OK || h->kind == QG_VECTOR_DECODE)
        return status;
    status = need(r, found, KEY_ROUNDING);
    if (status == QG_OK)
        status = need(r, found, KEY_OVERFLOW);
    if (status == QG_OK)
        status = placed(r, found->line[KEY_ROUNDING],
                        qg_rounding_parse(found->value[KEY_ROUNDING], &h->conversion.rounding));
    if (status != QG_OK)
        return status;
    return qg_vector_overflow_parse(found->value[KEY_OVERFLOW], &h->conversion.overflow)
               ? QG_OK
               : bad_line(r, found->line[KEY_OVERFLOW],
                          "overflow %s is neither saturate nor format", found->value[KEY_OVERFLOW]);
}

// Errors of rule and rounding are placed at their own lines.
static qg_status read_recipe(const qg_vector_reader *r, const found_keys *found,
                             qg_vector_header *h) {
    qg_status status = need(r, found, KEY_RECIPE);
    if (status == QG_OK)
        status = need(r, found, KEY_K);
    if (status == QG_OK)
        status = placed(r, found->line[KEY_RECIPE],
                        qg_vector_header_recipe(h, found->value[KEY_RECIPE], NULL, NULL));
    if (status == QG_OK && found->line[KEY_RULE])
        status = placed(
            r, found->line[KEY_RULE],
            qg_vector_header_recipe(h, found->value[KEY_RECIPE], found->value[KEY_RULE], NULL));
    if (status == QG_OK && found->line[KEY_ROUNDING])
        status = placed(r, found->line[KEY_ROUNDING],
                        qg_vector_header_recipe(h, found->value[KEY_RECIPE], found->value[KEY_RULE],
                                                found->value[KEY_ROUNDING]));
    h->rows = 1;
    if (status == QG_OK && found->line[KEY_ROWS])
        status = read_size(r, found, KEY_ROWS, &h->rows);
    return status == QG_OK ? read_size(r, found, KEY_K, &h->k) : status;
}

static qg_status read_format(const qg_vector_reader *r, const found_keys *found, int key,
                             qg_format *out) {
    qg_status status = need(r, found, key);
    return status == QG_OK ? placed(r, found->line[key], qg_format_parse(found->value[key], out))
                           : status;
}

static qg_status read_scale(const qg_vector_reader *r, const found_keys *found,
                            qg_vector_header *h) {
    qg_format scale;
    h->scale = QG_UNIT_NO_SCALE;
    if (!found->line[KEY_SCALE] && !found->line[KEY_SCALE_BLOCK])
        return QG_OK;
    qg_status status = read_format(r, found, KEY_SCALE, &scale);
    if (status == QG_OK)
        status = need(r, found, KEY_SCALE_BLOCK);
    if (status == QG_OK)
        status = read_size(r, found, KEY_SCALE_BLOCK, &h->scale_block);
    if (status == QG_OK)
        h->scale = (int32_t)scale;
    return status;
}

static int64_t line_of_key(const found_keys *found, const char *name) {
    for (int i = 0; i < KEY_COUNT; i++)
        if (!strcmp(keys[i].name, name))
            return found->line[i];
    return 0;
}

static qg_status read_dot(const qg_vector_reader *r, const found_keys *found, qg_vector_header *h) {
    const char *key = "kind";
    qg_format *const formats[] = {&h->a, &h->b, &h->c, &h->d};
    qg_status status = need(r, found, KEY_UNIT);
    if (status == QG_OK)
        status =
            placed(r, found->line[KEY_UNIT], qg_vector_dot_unit(found->value[KEY_UNIT], &h->unit));
    for (int i = 0; status == QG_OK && i < 4; i++)
        status = read_format(r, found, KEY_A + i, formats[i]);
    if (status == QG_OK)
        status = need(r, found, KEY_K);
    if (status == QG_OK)
        status = read_size(r, found, KEY_K, &h->k);
    if (status == QG_OK)
        status = read_scale(r, found, h);
    if (status != QG_OK)
        return status;
    status = qg_vector_dot_complete(h, &key);
    return placed(r, line_of_key(found, key), status);
}

qg_status qg_vector_reader_open(const char *name, const char *text, size_t size,
                                qg_vector_reader *out) {
    found_keys found;
    memset(&found, 0, sizeof found);
    memset(out, 0, sizeof *out);
    out->name = name;
    out->text = text;
    out->size = size;
    qg_vector_header *h = &out->header;
    qg_status status = read_keys(out, &found);
    if (status == QG_OK)
        status = check_kind(out, &found, &h->kind);
    if (status == QG_OK)
        status = h->kind == QG_VECTOR_DOT        ? read_dot(out, &found, h)
                 : h->kind == QG_VECTOR_QUANTIZE ? read_recipe(out, &found, h)
                                                 : read_conversion(out, &found, h);
    return status == QG_OK ? placed(out, out->line, qg_vector_header_complete(h)) : status;
}

// Lower and upper case; 16 for anything else.
static unsigned digit_value(char c) {
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : 16;
}

static qg_status read_field(const qg_vector_reader *r, const qg_vector_field *field,
                            const char *text, size_t length, uint64_t *values) {
    int64_t wanted = field->digits * field->count;
    if ((int64_t)length != wanted)
        return bad_line(r, r->line, "field %s has %zu characters, not %" PRId64, field->name,
                        length, wanted);
    for (int64_t i = 0; i < field->count; i++) {
        uint64_t value = 0;
        for (int32_t d = 0; d < field->digits; d++) {
            unsigned digit = digit_value(*text++);
            if (digit > 15)
                return bad_line(r, r->line,
                                "field %s holds a character that is no hexadecimal "
                                "digit",
                                field->name);
            value = value << 4 | digit;
        }
        if (field->bits > 0 && field->bits < 64 && value >> field->bits)
            return bad_line(r, r->line, "field %s: code %02" PRIx64 " has more than %d bits",
                            field->name, value, field->bits);
        values[i] = value;
    }
    return QG_OK;
}

qg_status qg_vector_reader_next(qg_vector_reader *r, qg_vector_case *c, bool *ended) {
    const char *line;
    size_t length;
    *ended = !next_line(r, &line, &length);
    if (*ended)
        return QG_OK;
    qg_status ending = check_line_end(r, line, length);
    if (ending != QG_OK)
        return ending;
    if (length == 0)
        return bad_line(r, r->line, "an empty line");
    if (line[0] == '#')
        return bad_line(r, r->line, "a header line behind the first case");
    const char *end = line + length;
    for (int32_t i = 0; i < r->header.field_count; i++) {
        const char *space = memchr(line, ' ', (size_t)(end - line));
        bool last = i == r->header.field_count - 1;
        if (!last && !space)
            return bad_line(r, r->line, "%d fields, not %d", i + 1, r->header.field_count);
        if (last && space)
            return bad_line(r, r->line, "more than %d fields", r->header.field_count);
        const char *stop = last ? end : space;
        qg_status status =
            read_field(r, &r->header.fields[i], line, (size_t)(stop - line), c->values[i]);
        if (status != QG_OK)
            return status;
        line = last ? end : space + 1;
    }
    return QG_OK;
}

// --------------------------------------------------------------------------------------- writing

static void write_columns(FILE *stream, const qg_vector_header *h) {
    fprintf(stream, "# columns:");
    for (int32_t i = 0; i < h->field_count; i++) {
        const qg_vector_field *f = &h->fields[i];
        if (f->count == 1)
            fprintf(stream, " %s", f->name);
        else
            fprintf(stream, " %s[%" PRId64 "]", f->name, f->count);
    }
    fprintf(stream, "\n");
}

static void write_format(FILE *stream, const char *key, qg_format format) {
    char name[QG_NAME_SIZE];
    qg_format_name(format, name);
    fprintf(stream, "# %s: %s\n", key, name);
}

static void write_conversion(FILE *stream, const qg_vector_header *h) {
    char name[QG_NAME_SIZE];
    write_format(stream, "format", h->format);
    if (h->kind == QG_VECTOR_DECODE)
        return;
    qg_rounding_name(h->conversion.rounding, name);
    fprintf(stream, "# rounding: %s\n# overflow: %s\n", name,
            qg_vector_overflow_name(h->conversion.overflow));
}

static void write_recipe(FILE *stream, const qg_vector_header *h) {
    char name[QG_NAME_SIZE];
    fprintf(stream, "# recipe: %s\n", h->recipe_name);
    qg_rule_name(h->recipe.rule, h->recipe.fixed_scale, name);
    if (h->has_rule)
        fprintf(stream, "# rule: %s\n", name);
    qg_rounding_name(h->recipe.conversion.rounding, name);
    if (h->has_rounding)
        fprintf(stream, "# rounding: %s\n", name);
    fprintf(stream, "# rows: %" PRId64 "\n# k: %" PRId64 "\n", h->rows, h->k);
}

static void write_dot(FILE *stream, const qg_vector_header *h) {
    fprintf(stream, "# unit: %s\n", qg_unit_listed((size_t)h->unit));
    write_format(stream, "a", h->a);
    write_format(stream, "b", h->b);
    write_format(stream, "c", h->c);
    write_format(stream, "d", h->d);
    fprintf(stream, "# k: %" PRId64 "\n", h->k);
    if (h->scale == QG_UNIT_NO_SCALE)
        return;
    write_format(stream, "scale", (qg_format)h->scale);
    fprintf(stream, "# scale_block: %" PRId64 "\n", h->scale_block);
}

void qg_vector_write_header(FILE *stream, const qg_vector_header *h, const char *origin) {
    fprintf(stream, "# qgvec 1\n# kind: %s\n", kind_names[h->kind]);
    switch (h->kind) {
    case QG_VECTOR_QUANTIZE: write_recipe(stream, h); break;
    case QG_VECTOR_DOT: write_dot(stream, h); break;
    default: write_conversion(stream, h);
    }
    write_columns(stream, h);
    if (origin)
        fprintf(stream, "# origin: %s\n", origin);
    if (h->kind == QG_VECTOR_DOT)
        fprintf(stream, "# comment: evidence of the unit's row: %s, %s\n",
                qg_evidence_tag(h->row->evidence), qg_evidence_what(h->row->evidence));
}

static char hexadecimal(uint64_t digit) { return "0123456789abcdef"[digit & 15]; }

void qg_vector_write_case(FILE *stream, const qg_vector_header *h, const qg_vector_case *c) {
    for (int32_t i = 0; i < h->field_count; i++) {
        const qg_vector_field *f = &h->fields[i];
        if (i > 0)
            putc(' ', stream);
        for (int64_t j = 0; j < f->count; j++)
            for (int32_t d = f->digits - 1; d >= 0; d--)
                putc(hexadecimal(c->values[i][j] >> (4 * d)), stream);
    }
    putc('\n', stream);
}

void qg_vector_print_field(const qg_vector_field *f, const uint64_t *values, char *text,
                           size_t size) {
    int64_t wanted = f->count * f->digits, room = (int64_t)size - 1;
    int64_t shown = wanted <= room ? wanted : room - 3;
    for (int64_t i = 0; i < shown; i++)
        text[i] = hexadecimal(values[i / f->digits] >> (4 * (f->digits - 1 - i % f->digits)));
    snprintf(text + shown, size - (size_t)shown, "%s", wanted <= room ? "" : "...");
}
