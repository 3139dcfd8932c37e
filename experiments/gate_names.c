// Names of formulas, worked out for one row at a time and kept until another row is asked for.
// Operands, units and laws are few: they are found again in lists. See gate_names.h.
#include <gate_names.h>

#include <gate_backward.h>
#include <gate_theory.h>
#include <qg_format_name.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 512 };

struct qg_gate_names {
    qg_gate_theory *theory;
    qg_gate_operand **operands;
    int operand_count;
    qg_gate_unit *units;
    int unit_count;
    // The row that the rest is of.
    const qg_table *table;
    int64_t row;
    const qg_gate_operand *a, *b; // NULL: none
    bool has_accumulator, has_theory;
    qg_gate_accumulator accumulator;
    qg_gate_expectation theory_of_row;
};

static const struct {
    const char *name, *definition;
} NAMES[] = {
#define NAME(ID, name, definition) {name, definition},
    QG_GATE_NAME_TABLE(NAME)
#undef NAME
};

qg_status qg_gate_names_create(qg_gate_names **out) {
    *out = calloc(1, sizeof **out);
    if (*out && qg_gate_theory_create(&(*out)->theory) == QG_OK)
        return QG_OK;
    qg_gate_names_free(*out);
    *out = NULL;
    return qg_fail(QG_ERROR_MEMORY, "no memory for the names of formulas");
}

void qg_gate_names_free(qg_gate_names *names) {
    if (!names)
        return;
    for (int i = 0; i < names->operand_count; i++) {
        free(names->operands[i]->key);
        free(names->operands[i]);
    }
    for (int i = 0; i < names->unit_count; i++)
        free(names->units[i].name);
    free(names->operands);
    free(names->units);
    qg_gate_theory_free(names->theory);
    free(names);
}

// ------------------------------------------------------------------------------------- what a name is

static bool is_number(qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    return info->type == QG_COLUMN_F64 || info->type == QG_COLUMN_I64 ||
           info->type == QG_COLUMN_U8 || column == QG_COLUMN_SEED;
}

int qg_gate_name_find(const char *name) {
    for (int i = 0; i < QG_GATE_NAME_COUNT; i++)
        if (strcmp(name, NAMES[i].name) == 0)
            return i;
    int column = qg_column_find(name);
    return column >= 0 && is_number((qg_column)column) ? QG_GATE_NAME_COUNT + column : -1;
}

const char *qg_gate_name_text(int name) {
    return name < QG_GATE_NAME_COUNT
               ? NAMES[name].name
               : qg_column_describe((qg_column)(name - QG_GATE_NAME_COUNT))->name;
}

const char *qg_gate_name_definition(int name) {
    return name >= 0 && name < QG_GATE_NAME_COUNT ? NAMES[name].definition : NULL;
}

double qg_gate_column(const qg_table *table, int64_t row, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    switch (info->type) {
    case QG_COLUMN_F64: return qg_table_f64(table, row, column);
    case QG_COLUMN_I64: {
        int64_t value = qg_table_i64(table, row, column);
        return value == info->missing && value < 0 ? (double)NAN : (double)value;
    }
    case QG_COLUMN_U64: return (double)qg_table_u64(table, row, column);
    case QG_COLUMN_U8: return qg_table_u8(table, row, column);
    default: return (double)NAN;
    }
}

// ------------------------------------------------------------------------------------ the row's parts

static const char *text_of(const qg_gate_names *n, qg_column column) {
    return qg_table_text(n->table, n->row, column);
}

static double number_of(const qg_gate_names *n, qg_column column) {
    return qg_gate_column(n->table, n->row, column);
}

static const qg_gate_operand *add_operand(qg_gate_names *n, const char *key, const char *format,
                                          const char *layout, const char *rule,
                                          const char *rounding) {
    qg_gate_operand **items =
        realloc(n->operands, (size_t)(n->operand_count + 1) * sizeof(qg_gate_operand *));
    qg_gate_operand *operand = calloc(1, sizeof *operand);
    if (items)
        n->operands = items;
    if (operand)
        operand->key = strdup(key);
    if (!items || !operand || !operand->key) {
        free(operand);
        return NULL;
    }
    qg_gate_operand_read(format, layout, rule, rounding, operand);
    items[n->operand_count++] = operand;
    return operand;
}

static const qg_gate_operand *find_operand(qg_gate_names *n, qg_column format, qg_column layout,
                                           qg_column rule) {
    char key[KEY_SIZE];
    const char *f = text_of(n, format), *l = text_of(n, layout), *r = text_of(n, rule);
    const char *rounding = text_of(n, QG_COLUMN_ROUNDING);
    if (!*f || !*l || !*r)
        return NULL;
    snprintf(key, sizeof key, "%.120s|%.60s|%.60s|%.60s", f, l, r, rounding);
    for (int i = 0; i < n->operand_count; i++)
        if (strcmp(n->operands[i]->key, key) == 0)
            return n->operands[i];
    return add_operand(n, key, f, l, r, rounding);
}

static const qg_gate_unit *find_unit(qg_gate_names *n) {
    const char *name = text_of(n, QG_COLUMN_UNIT);
    for (int i = 0; i < n->unit_count; i++)
        if (strcmp(n->units[i].name, name) == 0)
            return &n->units[i];
    qg_gate_unit *items = realloc(n->units, (size_t)(n->unit_count + 1) * sizeof *items);
    if (!items)
        return NULL;
    n->units = items;
    items[n->unit_count] = (qg_gate_unit){.name = strdup(name)};
    if (!items[n->unit_count].name)
        return NULL;
    qg_gate_unit_read(name, &items[n->unit_count]);
    return &items[n->unit_count++];
}

static void turn_to(qg_gate_names *n, const qg_table *table, int64_t row) {
    if (n->table == table && n->row == row)
        return;
    n->table = table;
    n->row = row;
    n->has_accumulator = n->has_theory = false;
    n->a = find_operand(n, QG_COLUMN_FORMAT, QG_COLUMN_LAYOUT, QG_COLUMN_SCALE_RULE);
    n->b = find_operand(n, QG_COLUMN_FORMAT_B, QG_COLUMN_LAYOUT_B, QG_COLUMN_SCALE_RULE_B);
    n->a = n->a && n->a->known ? n->a : NULL;
    n->b = n->b && n->b->known ? n->b : NULL;
}

// ----------------------------------------------------------------------------------------- products

static qg_format out_type_of(const qg_gate_names *n) {
    qg_format type;
    return qg_format_parse(text_of(n, QG_COLUMN_OUT_TYPE), &type) == QG_OK ? type : QG_FORMAT_FP32;
}

static const qg_gate_accumulator *accumulator_of(qg_gate_names *n) {
    if (n->has_accumulator)
        return &n->accumulator;
    n->has_accumulator = true;
    n->accumulator = (qg_gate_accumulator){(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    const qg_gate_unit *unit = find_unit(n);
    if (unit && n->a && n->b)
        n->accumulator = qg_gate_accumulator_of(
            unit, n->a, n->b, qg_table_i64(n->table, n->row, QG_COLUMN_K), out_type_of(n));
    return &n->accumulator;
}

static bool is_product(const qg_gate_names *n) { return *text_of(n, QG_COLUMN_UNIT) != '\0'; }

static double backward_bound(qg_gate_names *n) {
    return strcmp(text_of(n, QG_COLUMN_REFERENCE), "quantized") == 0 ? accumulator_of(n)->bound
                                                                     : (double)NAN;
}

// Of binary32 and BF16 accumulators that add one product at a time, to nearest.
static double frobenius_law(qg_gate_names *n) {
    const char *unit = text_of(n, QG_COLUMN_UNIT);
    double u = strcmp(unit, "fp32_sequential") == 0   ? 0x1p-24
               : strcmp(unit, "bf16_sequential") == 0 ? 0x1p-8
                                                      : (double)NAN;
    if (strcmp(text_of(n, QG_COLUMN_REFERENCE), "quantized") != 0 ||
        out_type_of(n) != QG_FORMAT_FP32 || qg_table_u8(n->table, n->row, QG_COLUMN_HAS_BIAS) ||
        !qg_gate_theory_has_density(n->theory, text_of(n, QG_COLUMN_DATA)))
        return (double)NAN;
    return 0.4247 * u * sqrt(number_of(n, QG_COLUMN_K) / 2);
}

// ------------------------------------------------------------------------------------------- theory

static qg_gate_expectation expect_product(qg_gate_names *n) {
    qg_gate_expectation unknown = {0};
    if (strcmp(text_of(n, QG_COLUMN_UNIT), "exact") != 0 || !n->b ||
        strcmp(text_of(n, QG_COLUMN_REFERENCE), "source") != 0 ||
        out_type_of(n) != QG_FORMAT_FP32 || qg_table_u8(n->table, n->row, QG_COLUMN_HAS_BIAS))
        return unknown;
    int64_t rows = qg_table_i64(n->table, n->row, QG_COLUMN_M);
    int64_t columns = qg_table_i64(n->table, n->row, QG_COLUMN_N);
    int64_t k = qg_table_i64(n->table, n->row, QG_COLUMN_K);
    const char *law = text_of(n, QG_COLUMN_DATA);
    qg_gate_expectation a = qg_gate_theory_tensor(n->theory, n->a, law, rows, k, (double)NAN);
    qg_gate_expectation b = qg_gate_theory_tensor(n->theory, n->b, law, columns, k, (double)NAN);
    return qg_gate_theory_product(&a, &b, rows, columns, k);
}

static const qg_gate_expectation *theory_of(qg_gate_names *n) {
    if (n->has_theory)
        return &n->theory_of_row;
    n->has_theory = true;
    n->theory_of_row = (qg_gate_expectation){0};
    // Inputs of fewer digits meet the ties and cells of the elements elsewhere than a density does.
    if (!n->a || strcmp(text_of(n, QG_COLUMN_INPUT_TYPE), "fp32") != 0)
        return &n->theory_of_row;
    if (is_product(n))
        n->theory_of_row = expect_product(n);
    else
        n->theory_of_row = qg_gate_theory_tensor(n->theory, n->a, text_of(n, QG_COLUMN_DATA),
                                                 qg_table_i64(n->table, n->row, QG_COLUMN_M),
                                                 qg_table_i64(n->table, n->row, QG_COLUMN_K),
                                                 number_of(n, QG_COLUMN_SUM_MAX_ABS_X));
    return &n->theory_of_row;
}

static double theory_value(qg_gate_names *n, int name) {
    const qg_gate_expectation *t = theory_of(n);
    bool of_tensor = t->known && !is_product(n);
    switch (name) {
    case QG_GATE_NAME_QSNR_THEORY_DB: return t->known ? -10 * log10(t->noise) : (double)NAN;
    case QG_GATE_NAME_QSNR_SE_DB: return t->known ? t->se_db : (double)NAN;
    case QG_GATE_NAME_SHRINKAGE_THEORY: return of_tensor ? t->shrinkage : (double)NAN;
    case QG_GATE_NAME_BELOW_THEORY: return of_tensor ? t->below : (double)NAN;
    default: return of_tensor ? t->above : (double)NAN;
    }
}

// -------------------------------------------------------------------------------------- hard bounds

// Below this the bounds of recipes (eps) and of binary32 take part.
static bool is_ordinary(const qg_gate_names *n) {
    return number_of(n, QG_COLUMN_SUM_MAX_ABS_X) > 1e-6 && !is_product(n);
}

// An element is off by u |x| at most, or by half the least step times X; X <= scale * amax of its
// block, whose square is at most the block's sum of squares, and at most that of the tensor's.
static double qsnr_least(const qg_gate_names *n) {
    const qg_gate_operand *a = n->a;
    double xx = number_of(n, QG_COLUMN_SUM_XX), amax = number_of(n, QG_COLUMN_SUM_MAX_ABS_X);
    double count = number_of(n, QG_COLUMN_COUNT_N);
    if (!a || isnan(a->scale) || !is_ordinary(n))
        return (double)NAN;
    qg_blocks blocks =
        qg_layout_apply(a->recipe.layout, qg_table_i64(n->table, n->row, QG_COLUMN_M),
                        qg_table_i64(n->table, n->row, QG_COLUMN_K));
    bool nearest = a->recipe.conversion.rounding.mode == QG_ROUND_RNE ||
                   a->recipe.conversion.rounding.mode == QG_ROUND_RNA;
    double off = (nearest ? 0.5 : 1) * a->least * a->scale;
    double relative = fmax(a->unit, a->excess);
    double squares = fmin((double)blocks.rows * (double)blocks.columns, count * amax * amax / xx);
    return -10 * log10(relative * relative + squares * off * off);
}

static double scale_unit(const qg_gate_operand *o) {
    if (!o)
        return (double)NAN;
    qg_format format = qg_rule_scale_format(o->recipe.rule);
    return format == QG_FORMAT_E8M0 ? 0 : format == QG_FORMAT_UE4M3 ? 0x1p-4 : 0x1p-24;
}

static double failed(const qg_gate_names *n) {
    const char *status = text_of(n, QG_COLUMN_STATUS);
    return strcmp(status, "FAILED") == 0 || strcmp(status, "CRASHED") == 0;
}

static double operand_value(const qg_gate_names *n, int name) {
    const qg_gate_operand *a = n->a, *b = n->b;
    double none = (double)NAN;
    switch (name) {
    case QG_GATE_NAME_LARGEST: return a ? a->largest : none;
    case QG_GATE_NAME_LEAST: return a ? a->least : none;
    case QG_GATE_NAME_U: return a ? a->unit : none;
    case QG_GATE_NAME_SCALE_U: return scale_unit(a);
    case QG_GATE_NAME_LARGEST_B: return b ? b->largest : none;
    case QG_GATE_NAME_LEAST_B: return b ? b->least : none;
    case QG_GATE_NAME_U_B: return b ? b->unit : none;
    case QG_GATE_NAME_SCALE_U_B: return scale_unit(b);
    case QG_GATE_NAME_SATURATES: return a ? a->saturates : none;
    case QG_GATE_NAME_WORST_ABS: return a && is_ordinary(n) ? a->worst : none;
    default: return none;
    }
}

double qg_gate_name_value(const void *context, int name) {
    const qg_gate_case *c = context;
    qg_gate_names *n = c->names;
    if (name >= QG_GATE_NAME_COUNT)
        return qg_gate_column(c->table, c->row, (qg_column)(name - QG_GATE_NAME_COUNT));
    turn_to(n, c->table, c->row);
    switch (name) {
    case QG_GATE_NAME_ELEMENTS: return number_of(n, QG_COLUMN_COUNT_N);
    case QG_GATE_NAME_FAILED: return failed(n);
    case QG_GATE_NAME_QSNR_LEAST_DB: return qsnr_least(n);
    case QG_GATE_NAME_OUT_U:
        return is_product(n) ? qg_gate_output_unit(out_type_of(n)) : (double)NAN;
    case QG_GATE_NAME_ACC_U: return accumulator_of(n)->unit;
    case QG_GATE_NAME_ACC_TERMS: return accumulator_of(n)->terms;
    case QG_GATE_NAME_ACC_STEPS: return accumulator_of(n)->steps;
    case QG_GATE_NAME_BACKWARD_BOUND: return backward_bound(n);
    case QG_GATE_NAME_SYMMETRIC:
        return qg_gate_theory_has_density(n->theory, text_of(n, QG_COLUMN_DATA)) ? 1 : (double)NAN;
    case QG_GATE_NAME_FROBENIUS_LAW: return frobenius_law(n);
    case QG_GATE_NAME_QSNR_THEORY_DB:
    case QG_GATE_NAME_QSNR_SE_DB:
    case QG_GATE_NAME_SHRINKAGE_THEORY:
    case QG_GATE_NAME_BELOW_THEORY:
    case QG_GATE_NAME_ABOVE_THEORY: return theory_value(n, name);
    case QG_GATE_NAME_BASELINE: return c->baseline;
    case QG_GATE_NAME_SPREAD: return c->spread;
    case QG_GATE_NAME_SEEDS: return c->seeds;
    default: return operand_value(n, name);
    }
}
