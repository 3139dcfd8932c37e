// The unit table: names, rows, modifiers. See qg_unit.h and qg_unit_table.h.
#include <qg_unit.h>

#include <qg_format.h>
#include <qg_nearest.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit_entry {
    const char *name, *what;
} unit_entry;

static const unit_entry units[QG_UNIT_COUNT] = {
#define UNIT_ENTRY(ID, name, what) {name, what},
    QG_UNIT_TABLE(UNIT_ENTRY)
#undef UNIT_ENTRY
};

static const unit_entry evidence[QG_EVIDENCE_COUNT] = {
#define EVIDENCE_ENTRY(ID, tag, what) {tag, what},
    QG_UNIT_EVIDENCE_TABLE(EVIDENCE_ENTRY)
#undef EVIDENCE_ENTRY
};

// Shorthands of the row table.
enum { SCALE_NONE = QG_UNIT_NO_SCALE, SCALE_E8M0 = QG_FORMAT_E8M0, SCALE_UE4M3 = QG_FORMAT_UE4M3 };

static const qg_unit_row rows[] = {
#define UNIT_ROW(UNIT, OPERANDS, ACC, K_LEAST, K, MODEL, L, F, RHO, FLOOR, SCALE, BLOCK, EVIDENCE) \
    {QG_UNIT_##UNIT,                                                                               \
     QG_OPERANDS_##OPERANDS,                                                                       \
     QG_FORMAT_##ACC,                                                                              \
     K_LEAST,                                                                                      \
     K,                                                                                            \
     QG_MODEL_##MODEL,                                                                             \
     L,                                                                                            \
     F,                                                                                            \
     QG_RHO_##RHO,                                                                                 \
     FLOOR,                                                                                        \
     SCALE_##SCALE,                                                                                \
     BLOCK,                                                                                        \
     QG_EVIDENCE_##EVIDENCE},
    QG_UNIT_ROW_TABLE(UNIT_ROW)
#undef UNIT_ROW
};

enum { ROWS = sizeof rows / sizeof rows[0] };

// ------------------------------------------------------------------------------------------ lookup

const char *qg_unit_listed(size_t i) { return i < QG_UNIT_COUNT ? units[i].name : NULL; }
const char *qg_unit_what(int id) { return units[id].what; }
const char *qg_evidence_tag(int id) { return evidence[id].name; }
const char *qg_evidence_what(int id) { return evidence[id].what; }

bool qg_unit_is_software(int id) { return id >= QG_UNIT_EXACT && id < QG_UNIT_NATIVE; }

const char *qg_unit_model_name(int id) {
    static const char *const names[QG_MODEL_COUNT] = {"T-FDPA",       "ST-FDPA", "GST-FDPA",
                                                      "FP8 as FP16",  "FMA",     "E-FDPA",
                                                      "FTZ pairwise", "TR-FDPA", "GTR-FDPA"};
    return names[id];
}

const qg_unit_row *qg_unit_row_at(size_t i) { return i < ROWS ? &rows[i] : NULL; }

bool qg_unit_row_takes(const qg_unit_row *row, qg_format element) {
    switch (row->operands) {
#define OPERANDS_CASE(SET, ...)                                                                    \
    case QG_OPERANDS_##SET: {                                                                      \
        static const qg_format set[] = {__VA_ARGS__};                                              \
        for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)                                    \
            if (set[i] == element)                                                                 \
                return true;                                                                       \
        return false;                                                                              \
    }
        QG_UNIT_OPERANDS_TABLE(OPERANDS_CASE)
#undef OPERANDS_CASE
    default: return false;
    }
}

const qg_unit_row *qg_unit_row_find(int unit, qg_format a, qg_format b, qg_format accumulator,
                                    int32_t scale) {
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].unit == unit && rows[i].accumulator == accumulator && rows[i].scale == scale &&
            qg_unit_row_takes(&rows[i], a) && qg_unit_row_takes(&rows[i], b))
            return &rows[i];
    return NULL;
}

// ------------------------------------------------------------------------------------------- names

void qg_unit_name(const qg_unit *unit, char name[QG_UNIT_NAME_SIZE]) {
    int at = snprintf(name, QG_UNIT_NAME_SIZE, "%s", units[unit->id].name);
    if (unit->block > 0)
        at += snprintf(name + at, QG_UNIT_NAME_SIZE - (size_t)at, ":%d", unit->block);
    if (unit->rounding != QG_ROUND_RNE)
        at += snprintf(name + at, QG_UNIT_NAME_SIZE - (size_t)at,
                       unit->rounding == QG_ROUND_RTZ ? "+rtz" : "+rtn");
    if (unit->promote > 0)
        at += snprintf(name + at, QG_UNIT_NAME_SIZE - (size_t)at, "+promote:%lld",
                       (long long)unit->promote);
    if (unit->split > 0)
        snprintf(name + at, QG_UNIT_NAME_SIZE - (size_t)at, "+split:%lld", (long long)unit->split);
}

// A decimal number from 1 to most, the whole of text.
static bool parse_count(const char *text, int64_t most, int64_t *out) {
    int64_t value = 0;
    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = 10 * value + (*text - '0');
        if (value > most)
            return false;
    }
    *out = value;
    return *text == 0 && value >= 1;
}

static qg_status unknown_unit(const char *name) {
    const char *nearest = qg_nearest(name, qg_unit_listed);
    return nearest ? qg_fail(QG_ERROR_ARGUMENT, "unknown unit %s; the nearest is %s", name, nearest)
                   : qg_fail(QG_ERROR_ARGUMENT, "unknown unit %s", name);
}

enum { MOST_BLOCK = 1 << 20 };
static const int64_t most_count = (int64_t)1 << 40;

// "hopper_wgmma", "fp32_blocked:32"
static qg_status parse_base(char *word, qg_unit *out) {
    char *argument = strchr(word, ':');
    if (argument)
        *argument++ = 0;
    for (uint8_t id = 0; id < QG_UNIT_COUNT; id++) {
        if (strcmp(word, units[id].name))
            continue;
        int64_t block = 0;
        out->id = id;
        if (id != QG_UNIT_FP32_BLOCKED && argument)
            return qg_fail(QG_ERROR_ARGUMENT, "unit %s takes no number", word);
        if (id == QG_UNIT_FP32_BLOCKED && (!argument || !parse_count(argument, MOST_BLOCK, &block)))
            return qg_fail(QG_ERROR_ARGUMENT, "fp32_blocked:N needs N, from 1 to %d", MOST_BLOCK);
        out->block = (int32_t)block;
        return QG_OK;
    }
    return unknown_unit(word);
}

static qg_status parse_rounding(const char *word, qg_unit *unit) {
    if (unit->id != QG_UNIT_FP32_SEQUENTIAL && unit->id != QG_UNIT_BF16_SEQUENTIAL)
        return qg_fail(QG_ERROR_ARGUMENT, "+%s is for fp32_sequential and bf16_sequential", word);
    if (unit->rounding != QG_ROUND_RNE)
        return qg_fail(QG_ERROR_ARGUMENT, "two roundings for %s", units[unit->id].name);
    unit->rounding = word[2] == 'z' ? QG_ROUND_RTZ : QG_ROUND_RTN;
    return QG_OK;
}

static bool has_partial_sums(int id) {
    return id != QG_UNIT_EXACT && id != QG_UNIT_FP64 && id != QG_UNIT_NATIVE;
}

static qg_status parse_count_modifier(const char *word, qg_unit *unit) {
    bool promotes = !strncmp(word, "promote:", 8);
    int64_t *field = promotes ? &unit->promote : &unit->split;
    if (!has_partial_sums(unit->id))
        return qg_fail(QG_ERROR_ARGUMENT, "+%s: unit %s has no partial sums", word,
                       units[unit->id].name);
    if (*field != 0)
        return qg_fail(QG_ERROR_ARGUMENT, "+%s: given twice", word);
    if (!parse_count(strchr(word, ':') + 1, most_count, field))
        return qg_fail(QG_ERROR_ARGUMENT, "+%s: N must be a number from 1 to 2^40", word);
    return QG_OK;
}

static qg_status parse_modifier(const char *word, qg_unit *unit) {
    if (!strcmp(word, "rtz") || !strcmp(word, "rtn"))
        return parse_rounding(word, unit);
    if (!strncmp(word, "promote:", 8) || !strncmp(word, "split:", 6))
        return parse_count_modifier(word, unit);
    return qg_fail(QG_ERROR_ARGUMENT, "%s%s; there are +promote:N, +split:N, +rtz and +rtn",
                   *word ? "unknown modifier +" : "a modifier is missing after +", word);
}

qg_status qg_unit_parse(const char *text, qg_unit *out) {
    char copy[QG_UNIT_NAME_SIZE];
    if (strlen(text) >= sizeof copy)
        return qg_fail(QG_ERROR_ARGUMENT, "a unit's name has at most %d characters",
                       QG_UNIT_NAME_SIZE - 1);
    strcpy(copy, text);
    qg_unit unit = {.rounding = QG_ROUND_RNE};
    char *next = strchr(copy, '+');
    if (next)
        *next++ = 0;
    if (!*copy)
        return qg_fail(QG_ERROR_ARGUMENT, "'%s' names no unit%s", text,
                       next ? ": modifiers follow one" : "");
    qg_status status = parse_base(copy, &unit);
    while (status == QG_OK && next) {
        char *word = next;
        next = strchr(word, '+');
        if (next)
            *next++ = 0;
        status = parse_modifier(word, &unit);
    }
    if (status == QG_OK)
        *out = unit;
    return status;
}
