// The tables of formats, recipes and matrix units as columns. See dump_internal.h.
#include <dump_internal.h>

#include <qg_recipe_name.h>
#include <qg_unit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_SIZE = 96 };

// One value of a row, as a field's type has it.
typedef struct cell {
    int64_t i64;
    uint64_t u64;
    double f64;
    char text[CELL_SIZE];
} cell;

static void set_text(cell *out, const char *text) {
    size_t length = strlen(text);
    memcpy(out->text, text, length < CELL_SIZE ? length : CELL_SIZE - 1);
}

static const char *pick(const char *const *names, size_t count, unsigned value) {
    return value < count ? names[value] : "unknown";
}
#define PICK(value, ...)                                                                           \
    pick((const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), \
         value)

// ------------------------------------------------------------------------------------- formats

static const char *kind_text(const qg_format_info *f) {
    return f->kind == QG_KIND_INT ? "int" : "float";
}
static const char *nan_text(const qg_format_info *f) {
    return PICK(f->nan, "none", "ones", "slot");
}
static const char *overflow_text(const qg_format_info *f) {
    return PICK(f->overflow, "max", "inf", "nan");
}

// X(name, type, value of format `f`, definition)
// clang-format off: one row per field
#define FORMAT_FIELDS(X)                                                                           \
    X(kind, TEXT, kind_text(f), "float, or int: two's complement")                                 \
    X(bits, I64, f->bits, "width of a stored code")                                                \
    X(sign, I64, f->sign, "1 if it has a sign")                                                    \
    X(ebits, I64, f->ebits, "exponent bits")                                                       \
    X(mbits, I64, f->mbits, "mantissa bits")                                                       \
    X(bias, I64, f->bias, "exponent bias; int: binary digits after the point")                     \
    X(max_code, U64, f->max_code, "magnitude code of the largest finite value")                    \
    X(inf_code, U64, f->inf_code, "magnitude code of infinity, 0 if it has none")                  \
    X(nan, TEXT, nan_text(f), "none; ones: magnitudes above all others; slot: the code of -0")     \
    X(overflow, TEXT, overflow_text(f), "what overflow gives when a conversion does not saturate") \
    X(zero, I64, f->zero, "1 if it has a zero")                                                    \
    X(shift, I64, f->shift, "unused low bits of a stored code")                                    \
    X(max, F64, qg_format_max(f), "largest finite value")                                          \
    X(min_normal, F64, qg_format_min_normal(f), "smallest value with a full significand")          \
    X(min_positive, F64, qg_format_min_positive(f), "smallest positive value")
// clang-format on

#define SET_TEXT(value) set_text(out, value)
#define SET_I64(value) out->i64 = value
#define SET_U64(value) out->u64 = value
#define SET_F64(value) out->f64 = value

#define DEFINE_GETTER(name, TYPE, value, definition)                                               \
    static void get_format_##name(const qg_format_info *f, cell *out) { SET_##TYPE(value); }
FORMAT_FIELDS(DEFINE_GETTER)
#undef DEFINE_GETTER

// ------------------------------------------------------------------------------------- recipes

static const char *edge_text(unsigned edge) {
    return PICK(edge, "by rule", "one", "smallest", "largest", "nan");
}
static const char *amax_text(const qg_recipe *r) {
    return PICK(r->amax, "propagates nan", "ignores nan", "over finite");
}
static const char *structure_text(const qg_recipe *r) {
    return PICK(r->structure, "plain", "pair shift", "no shift", "residual");
}
static const char *nan_element_text(const qg_recipe *r) {
    return PICK(r->nan_element, "encoded", "max", "zero");
}
static const char *eps_on_text(const qg_recipe *r) {
    return PICK(r->eps_on, "none", "amax", "scale");
}
static const char *huge_inverse_text(const qg_recipe *r) {
    return PICK(r->huge_inverse, "flt_max", "input_max");
}

#define SET_ELEMENT(value) qg_format_name(value, out->text)
#define SET_LAYOUT(value) qg_layout_name(value, out->text)
#define SET_RULE(value) qg_rule_name(value, r->fixed_scale, out->text)
#define SET_ROUNDING(value) qg_rounding_name(value, out->text)
QG_STATIC_ASSERT((int)CELL_SIZE >= (int)QG_NAME_SIZE && (int)CELL_SIZE >= (int)QG_LAYOUT_NAME_SIZE,
                 a_cell_holds_a_name);

// X(name, type, how it is set, value of recipe `r`, definition)
// clang-format off: one row per field
#define RECIPE_FIELDS(X)                                                                           \
    X(element, TEXT, ELEMENT, r->element, "format of the elements")                                \
    X(layout, TEXT, LAYOUT, r->layout, "which elements share a scale")                             \
    X(scale_rule, TEXT, RULE, r->rule, "how a scale follows from a block")                         \
    X(scale_format, TEXT, ELEMENT, qg_rule_scale_format(r->rule), "format of the scales")          \
    X(rounding, TEXT, ROUNDING, r->conversion.rounding, "rounding of the elements")                \
    X(overflow, TEXT, TEXT, PICK(r->conversion.overflow, "saturate", "format"), "elements beyond the largest value") \
    X(nan, TEXT, TEXT, PICK(r->conversion.nan, "max", "zero"), "NaN in a format without one")      \
    X(structure, TEXT, TEXT, structure_text(r), "what is stored beyond one code and one scale")    \
    X(amax, TEXT, TEXT, amax_text(r), "which elements the largest magnitude is over")              \
    X(zero_scale, TEXT, TEXT, edge_text(r->zero_scale), "scale of a block of zeros")               \
    X(nan_scale, TEXT, TEXT, edge_text(r->nan_scale), "scale of a block whose amax is NaN")        \
    X(inf_scale, TEXT, TEXT, edge_text(r->inf_scale), "scale of a block whose amax is infinite")   \
    X(nan_element, TEXT, TEXT, nan_element_text(r), "code of a NaN in a block whose scale is a number") \
    X(eps_on, TEXT, TEXT, eps_on_text(r), "what eps bounds from below")                            \
    X(eps, F64, F64, (double)r->eps, "lower bound of the amax or of the scale")                    \
    X(huge_inverse, TEXT, TEXT, huge_inverse_text(r), "what replaces an infinite F/amax")          \
    X(block_scale_min, F64, F64, (double)r->block_scale_min, "lower bound of a two-level block scale") \
    X(margin, I64, I64, r->margin, "of rule delayed: s = F 2^-margin / amax")
// clang-format on

#define DEFINE_GETTER(name, TYPE, SETTER, value, definition)                                       \
    static void get_recipe_##name(const qg_recipe *r, cell *out) { SET_##SETTER(value); }
RECIPE_FIELDS(DEFINE_GETTER)
#undef DEFINE_GETTER

// --------------------------------------------------------------------------------------- units

// A row of the unit table, or a software unit: `row` NULL.
typedef struct unit_entry {
    int id;
    const qg_unit_row *row;
} unit_entry;

// The rows of the table, then the software units. False past the end.
static bool unit_at(size_t i, unit_entry *out) {
    size_t rows = 0;
    while (qg_unit_row_at(rows))
        rows++;
    if (i < rows) {
        const qg_unit_row *row = qg_unit_row_at(i);
        *out = (unit_entry){row->unit, row};
        return true;
    }
    for (int id = 0; id < QG_UNIT_COUNT; id++)
        if (qg_unit_is_software(id) && i-- == rows) {
            *out = (unit_entry){id, NULL};
            return true;
        }
    return false;
}

static const char *unit_listed(size_t i) {
    unit_entry entry;
    return unit_at(i, &entry) ? qg_unit_listed((size_t)entry.id) : NULL;
}

static void set_operands(const qg_unit_row *row, cell *out) {
    for (qg_format format = 0; format < QG_FORMAT_COUNT; format++)
        if (qg_unit_row_takes(row, format)) {
            size_t length = strlen(out->text);
            char name[QG_NAME_SIZE];
            qg_format_name(format, name);
            snprintf(out->text + length, CELL_SIZE - length, "%s%s", length ? " " : "", name);
        }
}

static void set_scale(const qg_unit_row *row, cell *out) {
    if (row->scale == QG_UNIT_NO_SCALE)
        set_text(out, "none");
    else
        qg_format_name((qg_format)row->scale, out->text);
}

static const char *rho_text(const qg_unit_row *r) {
    return PICK(r->rho, "none", "rz fp32", "rz e8m13", "rne fp32", "rne fp16");
}

#define SET_OPERANDS(value) set_operands(value, out)
#define SET_SCALE(value) set_scale(value, out)

// X(name, type, how it is set, value of row `r`, definition). Software units have no row: empty and
// 0 there.
// clang-format off: one row per field
#define UNIT_FIELDS(X)                                                                             \
    X(operands, TEXT, OPERANDS, r, "element formats; a and b may be any two; empty: every recipe") \
    X(accumulator, TEXT, ELEMENT, r->accumulator, "format of C and D")                             \
    X(k_least, I64, I64, r->k_least, "shortest K of the instruction")                              \
    X(k, I64, I64, r->k, "usual K of the instruction")                                             \
    X(model, TEXT, TEXT, qg_unit_model_name(r->model), "the arithmetic; empty: software")          \
    X(length, I64, I64, r->length, "products of one fused operation or pairwise sum")              \
    X(fraction, I64, I64, r->fraction, "fraction bits kept below the largest exponent")            \
    X(rho, TEXT, TEXT, rho_text(r), "conversion at the end of a fused operation")                  \
    X(floor, I64, I64, r->floor, "exponent that zero terms contribute")                            \
    X(scale, TEXT, SCALE, r, "format of the block scales")                                         \
    X(scale_block, I64, I64, r->scale_block, "elements of K that share a scale")                   \
    X(evidence, TEXT, TEXT, qg_evidence_tag(r->evidence), "how the row is known")                  \
    X(evidence_meaning, TEXT, TEXT, qg_evidence_what(r->evidence), "what the tag says")
// clang-format on

#define DEFINE_GETTER(name, TYPE, SETTER, value, definition)                                       \
    static void get_unit_##name(const qg_unit_row *r, cell *out) { SET_##SETTER(value); }
UNIT_FIELDS(DEFINE_GETTER)
#undef DEFINE_GETTER

// -------------------------------------------------------------------------------------- tables

typedef struct field_row {
    const char *name, *definition;
    qg_column_type type;
    void (*of_format)(const qg_format_info *f, cell *out); // none of them: the row's name
    void (*of_recipe)(const qg_recipe *r, cell *out);
    void (*of_unit)(const qg_unit_row *r, cell *out);
} field_row;

static const field_row format_rows[] = {
    {"name", "canonical name", QG_COLUMN_TEXT, NULL, NULL, NULL},
#define ROW(name, TYPE, value, definition)                                                         \
    {#name, definition, QG_COLUMN_##TYPE, get_format_##name, NULL, NULL},
    FORMAT_FIELDS(ROW)
#undef ROW
};

static const field_row recipe_rows[] = {
    {"name", "canonical name", QG_COLUMN_TEXT, NULL, NULL, NULL},
#define ROW(name, TYPE, SETTER, value, definition)                                                 \
    {#name, definition, QG_COLUMN_##TYPE, NULL, get_recipe_##name, NULL},
    RECIPE_FIELDS(ROW)
#undef ROW
};

static const field_row unit_rows[] = {
    {"unit", "name of the unit", QG_COLUMN_TEXT, NULL, NULL, NULL},
#define ROW(name, TYPE, SETTER, value, definition)                                                 \
    {#name, definition, QG_COLUMN_##TYPE, NULL, NULL, get_unit_##name},
    UNIT_FIELDS(ROW)
#undef ROW
};

typedef struct source {
    const char *group, *title;
    const char *(*listed)(size_t i);
    const field_row *rows;
    size_t row_count;
} source;

static const source sources[QG_DUMP_COUNT] = {
    {"formats", "number formats", qg_format_listed, format_rows,
     sizeof format_rows / sizeof format_rows[0]},
    {"recipes", "recipes", qg_recipe_listed, recipe_rows,
     sizeof recipe_rows / sizeof recipe_rows[0]},
    {"units", "matrix units", unit_listed, unit_rows, sizeof unit_rows / sizeof unit_rows[0]},
};

const char *qg_dump_group(int i) { return sources[i].group; }

bool qg_dump_is_later(int i) { return sources[i].rows == unit_rows; }

static qg_status get_cell(const field_row *field, const char *name, size_t i, cell *out) {
    memset(out, 0, sizeof *out);
    qg_status status = QG_OK;
    if (field->of_format) {
        qg_format format;
        status = qg_format_parse(name, &format);
        if (status == QG_OK) {
            qg_format_info info = qg_format_describe(format);
            field->of_format(&info, out);
        }
    } else if (field->of_recipe) {
        qg_recipe recipe;
        status = qg_recipe_find(name, &recipe);
        if (status == QG_OK)
            field->of_recipe(&recipe, out);
    } else if (field->of_unit) {
        unit_entry entry;
        if (unit_at(i, &entry) && entry.row)
            field->of_unit(entry.row, out);
    } else {
        set_text(out, name);
    }
    return status;
}

static void put_cell(qg_dump_field *field, int64_t i, const cell *from) {
    char *to = (char *)field->values + (size_t)i * field->width;
    switch (field->type) {
    case QG_COLUMN_TEXT: memcpy(to, from->text, field->width); break;
    case QG_COLUMN_F64: memcpy(to, &from->f64, sizeof from->f64); break;
    case QG_COLUMN_U64: memcpy(to, &from->u64, sizeof from->u64); break;
    default: memcpy(to, &from->i64, sizeof from->i64); break;
    }
}

// Shrinks a text field from whole cells to its longest text.
static void narrow(qg_dump_field *field, int64_t count) {
    size_t width = 1;
    char *values = field->values;
    for (int64_t i = 0; i < count; i++) {
        size_t length = strlen(values + (size_t)i * CELL_SIZE);
        width = length > width ? length : width;
    }
    for (int64_t i = 0; i < count; i++)
        memmove(values + (size_t)i * width, values + (size_t)i * CELL_SIZE, width);
    field->width = width;
}

static qg_status build_field(const source *from, const field_row *row, int64_t count,
                             qg_dump_field *out) {
    bool is_text = row->type == QG_COLUMN_TEXT;
    *out = (qg_dump_field){row->name, row->definition, row->type, is_text ? CELL_SIZE : 8, NULL};
    out->values = calloc((size_t)count + 1, out->width);
    if (!out->values)
        return qg_fail(QG_ERROR_MEMORY, "no memory for the table of %s", from->title);
    for (int64_t i = 0; i < count; i++) {
        cell value;
        qg_status status = get_cell(row, from->listed((size_t)i), (size_t)i, &value);
        if (status != QG_OK)
            return status;
        put_cell(out, i, &value);
    }
    if (is_text)
        narrow(out, count);
    return QG_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const qg_dump_field *)a)->name, ((const qg_dump_field *)b)->name);
}

qg_status qg_dump_build(int i, qg_dump *out) {
    const source *from = &sources[i];
    *out = (qg_dump){from->group, from->title, 0, NULL, from->row_count};
    while (from->listed((size_t)out->count))
        out->count++;
    out->fields = calloc(from->row_count, sizeof *out->fields);
    qg_status status =
        out->fields ? QG_OK
                    : qg_fail(QG_ERROR_MEMORY, "no memory for the table of %s", from->title);
    for (size_t row = 0; row < from->row_count && status == QG_OK; row++)
        status = build_field(from, &from->rows[row], out->count, &out->fields[row]);
    if (status != QG_OK)
        qg_dump_free(out);
    else
        qsort(out->fields, out->field_count, sizeof *out->fields, by_name);
    return status;
}

void qg_dump_free(qg_dump *dump) {
    for (size_t i = 0; dump->fields && i < dump->field_count; i++)
        free(dump->fields[i].values);
    free(dump->fields);
    *dump = (qg_dump){0};
}

// -------------------------------------------------------------------------------------- digest

void qg_dump_digest_begin(qg_digest *digest, const char *group, int64_t count) {
    qg_digest_add_text(digest, group);
    qg_digest_add_u64(digest, (uint64_t)count);
}

static void digest_value(qg_digest *digest, const qg_dump_field *field, int64_t i) {
    const char *at = (const char *)field->values + (size_t)i * field->width;
    uint64_t bits;
    double number;
    switch (field->type) {
    case QG_COLUMN_TEXT:
        qg_digest_add(digest, at, strnlen(at, field->width));
        qg_digest_add(digest, "", 1);
        break;
    case QG_COLUMN_F64:
        memcpy(&number, at, sizeof number);
        qg_digest_add_f64(digest, number);
        break;
    default:
        memcpy(&bits, at, sizeof bits);
        qg_digest_add_u64(digest, bits);
        break;
    }
}

void qg_dump_digest_field(qg_digest *digest, const qg_dump_field *field, int64_t count) {
    qg_digest_add_text(digest, field->name);
    for (int64_t i = 0; i < count; i++)
        digest_value(digest, field, i);
}

static qg_status digest_dump(qg_digest *digest, int i) {
    qg_dump dump;
    qg_status status = qg_dump_build(i, &dump);
    if (status != QG_OK)
        return status;
    qg_dump_digest_begin(digest, dump.group, dump.count);
    for (size_t f = 0; f < dump.field_count; f++)
        qg_dump_digest_field(digest, &dump.fields[f], dump.count);
    qg_dump_free(&dump);
    return QG_OK;
}

qg_status qg_dump_digest(uint64_t *out) {
    qg_digest *digest;
    qg_status status = qg_digest_create(&digest);
    for (int i = 0; i < QG_DUMP_COUNT && status == QG_OK; i++)
        status = digest_dump(digest, i);
    if (status == QG_OK)
        *out = qg_digest_value(digest);
    qg_digest_free(digest);
    return status;
}
