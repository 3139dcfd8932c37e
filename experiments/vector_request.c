// The header of a .qgvec file from words. See vector_request.h.
#include <vector_request.h>

#include <number.h>
#include <vector_dot.h>

#include <inttypes.h>
#include <string.h>

enum { OF_ENCODE = 1, OF_DECODE = 2, OF_QUANTIZE = 4, OF_UNIT = 8 };

qg_status qg_vector_request_number(const char *option, const char *text, uint64_t lowest,
                                   uint64_t highest, uint64_t *out) {
    uint64_t value;
    if (!text)
        return QG_OK;
    if (!qg_number_u64(text, &value) || value < lowest || value > highest)
        return qg_fail(QG_ERROR_ARGUMENT, "--%s %s: no number from %" PRIu64 " to %" PRIu64, option,
                       text, lowest, highest);
    *out = value;
    return QG_OK;
}

// The option before the detail of a failure, and where all names are behind one of unknown names.
static qg_status named(const char *option, qg_status status) {
    char what[400];
    if (status == QG_OK)
        return status;
    snprintf(what, sizeof what, "%s", qg_detail());
    bool lists = !strncmp(what, "unknown ", 8) && strncmp(what, "unknown unit", 12);
    return qg_fail(status, "--%s: %s%s", option, what,
                   lists ? "; run_sweep --list-names lists all" : "");
}

static qg_status read_format(const char *option, const char *text, qg_format *out) {
    return text ? named(option, qg_format_parse(text, out)) : QG_OK;
}

// ------------------------------------------------------------------------------ options and kinds

static int count_kinds(const qg_vector_request *r) {
    return !!r->encode + !!r->decode + !!r->quantize + !!r->unit;
}

// Refuses options that do not belong to the kind.
static qg_status check_options(const qg_vector_request *r) {
    const struct {
        const char *option, *value;
        int kinds;
    } rows[] = {
        {"rule",       r->rule,       OF_QUANTIZE            },
        {"rounding",   r->rounding,   OF_ENCODE | OF_QUANTIZE},
        {"overflow",   r->overflow,   OF_ENCODE              },
        {"k",          r->k,          OF_QUANTIZE | OF_UNIT  },
        {"rows",       r->rows,       OF_QUANTIZE            },
        {"a-format",   r->a_format,   OF_UNIT                },
        {"b-format",   r->b_format,   OF_UNIT                },
        {"out-format", r->out_format, OF_UNIT                },
        {"scale",      r->scale,      OF_UNIT                },
    };
    int kind = r->encode ? OF_ENCODE : r->decode ? OF_DECODE : r->quantize ? OF_QUANTIZE : OF_UNIT;
    const char *name = r->encode     ? "encode"
                       : r->decode   ? "decode"
                       : r->quantize ? "quantize"
                                     : "unit";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].value || rows[i].kinds & kind)
            continue;
        return rows[i].kinds == OF_UNIT
                   ? qg_fail(QG_ERROR_ARGUMENT, "--%s belongs to --unit", rows[i].option)
                   : qg_fail(QG_ERROR_ARGUMENT, "--%s does not belong to --%s", rows[i].option,
                             name);
    }
    return QG_OK;
}

// ---------------------------------------------------------------------------- encode and quantize

static qg_status encode_header(const qg_vector_request *r, qg_vector_header *h) {
    h->kind = QG_VECTOR_ENCODE;
    qg_status status = read_format("encode", r->encode, &h->format);
    if (status == QG_OK && r->rounding)
        status = named("rounding", qg_rounding_parse(r->rounding, &h->conversion.rounding));
    if (status == QG_OK && r->overflow &&
        !qg_vector_overflow_parse(r->overflow, &h->conversion.overflow))
        status = qg_fail(QG_ERROR_ARGUMENT, "--overflow %s: write saturate or format", r->overflow);
    return status;
}

static qg_status decode_header(const qg_vector_request *r, qg_vector_header *h) {
    h->kind = QG_VECTOR_DECODE;
    return read_format("decode", r->decode, &h->format);
}

static qg_status read_recipe(const qg_vector_request *r, qg_vector_header *h) {
    h->kind = QG_VECTOR_QUANTIZE;
    qg_status status = named("quantize", qg_vector_header_recipe(h, r->quantize, NULL, NULL));
    if (status == QG_OK && r->rule)
        status = named("rule", qg_vector_header_recipe(h, r->quantize, r->rule, NULL));
    if (status == QG_OK && r->rounding)
        status = named("rounding", qg_vector_header_recipe(h, r->quantize, r->rule, r->rounding));
    return status;
}

// Default sizes: a whole group; of a block at most 4 rows and 32 columns; else one row of 32.
static qg_status quantize_header(const qg_vector_request *r, qg_vector_header *h) {
    qg_status status = read_recipe(r, h);
    if (status != QG_OK)
        return status;
    qg_layout layout = h->recipe.layout;
    uint64_t rows = 1, k = 32;
    if (layout.kind == QG_LAYOUT_GROUP)
        k = (uint64_t)layout.columns;
    if (layout.kind == QG_LAYOUT_BLOCK) {
        rows = layout.rows < 4 ? (uint64_t)layout.rows : 4;
        k = layout.columns < 32 ? (uint64_t)layout.columns : 32;
    }
    status = qg_vector_request_number("rows", r->rows, 1, QG_VECTOR_ELEMENTS, &rows);
    if (status == QG_OK)
        status = qg_vector_request_number("k", r->k, 1, QG_VECTOR_ELEMENTS, &k);
    h->rows = (int64_t)rows;
    h->k = (int64_t)k;
    return status;
}

// --------------------------------------------------------------------------------------------- dot

// "e8m0:32"
static qg_status read_scale(const char *text, qg_vector_header *h) {
    char name[QG_NAME_SIZE];
    uint64_t block = 0;
    qg_format format;
    const char *colon = text ? strchr(text, ':') : NULL;
    h->scale = QG_UNIT_NO_SCALE;
    if (!text)
        return QG_OK;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof name)
        return qg_fail(QG_ERROR_ARGUMENT, "--scale %s: write FORMAT:BLOCK, such as e8m0:32", text);
    memcpy(name, text, (size_t)(colon - text));
    name[colon - text] = 0;
    qg_status status = read_format("scale", name, &format);
    if (status == QG_OK &&
        (!qg_number_u64(colon + 1, &block) || block < 1 || block > QG_VECTOR_ELEMENTS))
        status = qg_fail(QG_ERROR_ARGUMENT, "--scale %s: BLOCK is no number from 1 to %d", text,
                         QG_VECTOR_ELEMENTS);
    if (status == QG_OK)
        h->scale = (int32_t)format;
    h->scale_block = (int64_t)block;
    return status;
}

// The unit's first row that fits the options that are given; its first one where none does.
static const qg_unit_row *first_row(const qg_vector_request *r, const qg_vector_header *h) {
    const qg_unit_row *row, *first = NULL;
    for (size_t i = 0; (row = qg_unit_row_at(i)) != NULL; i++) {
        if (row->unit != h->unit)
            continue;
        first = first ? first : row;
        if ((!r->a_format || qg_unit_row_takes(row, h->a)) &&
            (!r->b_format || qg_unit_row_takes(row, h->b)) &&
            (!r->out_format || row->accumulator == h->c) && (!r->scale || row->scale == h->scale))
            return row;
    }
    return first;
}

static qg_format first_element(const qg_unit_row *row) {
    qg_format format = 0;
    while (format < QG_FORMAT_COUNT && !qg_unit_row_takes(row, format))
        format++;
    return format;
}

static void fill_from_row(const qg_vector_request *r, const qg_unit_row *row, qg_vector_header *h) {
    if (!r->a_format)
        h->a = r->b_format ? h->b : first_element(row);
    if (!r->b_format)
        h->b = h->a;
    if (!r->out_format)
        h->c = row->accumulator;
    h->d = h->c;
    if (!r->scale) {
        h->scale = row->scale;
        h->scale_block = row->scale_block;
    }
}

static qg_status dot_header(const qg_vector_request *r, qg_vector_header *h) {
    h->kind = QG_VECTOR_DOT;
    qg_status status = named("unit", qg_vector_dot_unit(r->unit, &h->unit));
    if (status == QG_OK)
        status = read_format("a-format", r->a_format, &h->a);
    if (status == QG_OK)
        status = read_format("b-format", r->b_format, &h->b);
    if (status == QG_OK)
        status = read_format("out-format", r->out_format, &h->c);
    if (status == QG_OK)
        status = read_scale(r->scale, h);
    if (status != QG_OK)
        return status;
    const qg_unit_row *row = first_row(r, h);
    uint64_t k = (uint64_t)row->k;
    fill_from_row(r, row, h);
    status = qg_vector_request_number("k", r->k, 1, QG_VECTOR_ELEMENTS, &k);
    h->k = (int64_t)k;
    return status;
}

// ------------------------------------------------------------------------------------- the header

qg_status qg_vector_request_header(const qg_vector_request *r, qg_vector_header *h) {
    memset(h, 0, sizeof *h);
    if (count_kinds(r) != 1)
        return qg_fail(QG_ERROR_ARGUMENT,
                       "generate needs one of --unit U, --encode F, --decode F, --quantize RECIPE");
    qg_status status = check_options(r);
    if (status != QG_OK)
        return status;
    status = r->encode     ? encode_header(r, h)
             : r->decode   ? decode_header(r, h)
             : r->quantize ? quantize_header(r, h)
                           : dot_header(r, h);
    return status == QG_OK ? qg_vector_header_complete(h) : status;
}
