// What "equal" means: XXH3-64 over logical values, in plan order. See qg_results.h.
//
// The stream, numbers little endian: "quantgauge-1" and the plan, each zero-terminated; the digest
// of the dumps; the number of rows; every column that some row has a value in, as its path,
// zero-terminated, and the values (texts zero-terminated, every NaN as 7ff8000000000000); every
// row's histograms after its position; every operand as case id, name, size, bytes. A column that
// no row has a value in is left out, so that columns added later do not change old digests.
// Products of unit `native` have the order of summation of the machine's libraries: what was
// measured of them counts as missing here, status and all else as in other rows.
#include <dump_internal.h>
#include <qg_results.h>
#include <table_internal.h>

#include <qg_bits.h>
#include <qg_digest.h>

#include <stdlib.h>
#include <string.h>

void qg_digest_add_u64(qg_digest *digest, uint64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    qg_digest_add(digest, bytes, sizeof bytes);
}

void qg_digest_add_f64(qg_digest *digest, double value) {
    qg_digest_add_u64(digest, value == value ? qg_bits_of_double(value) : 0x7ff8000000000000u);
}

void qg_digest_add_text(qg_digest *digest, const char *text) {
    qg_digest_add(digest, text, strlen(text) + 1);
}

// Collects values on their way to the digest: one call per value would cost more than hashing it.
typedef struct collector {
    qg_digest *digest;
    uint32_t native; // see find_native
    unsigned char bytes[4096];
    size_t used;
} collector;

static void flush(collector *c) {
    qg_digest_add(c->digest, c->bytes, c->used);
    c->used = 0;
}

static void add_u64(collector *c, uint64_t value) {
    if (c->used + 8 > sizeof c->bytes)
        flush(c);
    unsigned char *to = c->bytes + c->used;
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> 8 * i);
    c->used += 8;
}

static void add_i64s(collector *c, const int64_t *values, int count) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ // they lie in memory as the digest takes them
    flush(c);
    qg_digest_add(c->digest, values, (size_t)count * sizeof *values);
#else
    for (int i = 0; i < count; i++)
        add_u64(c, (uint64_t)values[i]);
#endif
}

static void add_bytes(collector *c, const void *bytes, size_t size) {
    if (c->used + size > sizeof c->bytes)
        flush(c);
    if (size > sizeof c->bytes) {
        qg_digest_add(c->digest, bytes, size);
        return;
    }
    memcpy(c->bytes + c->used, bytes, size);
    c->used += size;
}

// Little endian values at `to`, a whole block at once: nothing but moving bytes.
static void put_block(unsigned char *to, const char *elements, const int64_t *rows, size_t count,
                      bool is_f64) {
    for (size_t i = 0; i < count; i++) {
        uint64_t value;
        memcpy(&value, elements + 8 * (size_t)rows[i], 8);
        bool is_nan = (value & 0x7fffffffffffffffu) > 0x7ff0000000000000u;
        value = is_f64 && is_nan ? 0x7ff8000000000000u : value;
        for (int b = 0; b < 8; b++)
            to[8 * i + (size_t)b] = (unsigned char)(value >> 8 * b);
    }
}

static const uint32_t NO_TEXT = UINT32_MAX;

// The text `native` of column unit, NO_TEXT if no row has it.
static uint32_t find_native(const qg_table *table) {
    const uint32_t *units = table->columns[QG_COLUMN_UNIT];
    if (!qg_table_column_is_set(table, QG_COLUMN_UNIT))
        return NO_TEXT;
    for (int64_t row = 0; row < qg_table_rows(table); row++)
        if (strcmp(qg_text_at(table->texts, units[row]), "native") == 0)
            return units[row];
    return NO_TEXT;
}

static bool is_measured(qg_column column) {
    const char *group = qg_column_describe(column)->group;
    return column == QG_COLUMN_OUTPUT_DIGEST || strcmp(group, "metrics") == 0 ||
           strcmp(group, "sums") == 0 || strcmp(group, "counts") == 0;
}

static uint64_t missing_bits(qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    return info->type == QG_COLUMN_F64 ? 0x7ff8000000000000u : (uint64_t)info->missing;
}

// Takes the values of native products out of a block.
static void blank_native(unsigned char *to, const qg_table *table, uint32_t native,
                         const int64_t *rows, size_t count, qg_column column) {
    const uint32_t *units = table->columns[QG_COLUMN_UNIT];
    uint64_t missing = missing_bits(column);
    for (size_t i = 0; i < count; i++)
        for (int b = 0; b < 8 && units[rows[i]] == native; b++)
            to[8 * i + (size_t)b] = (unsigned char)(missing >> 8 * b);
}

static void add_numbers(collector *c, const qg_table *table, const int64_t *rows,
                        qg_column column) {
    enum { BLOCK = sizeof c->bytes / 8 };
    bool is_f64 = qg_column_describe(column)->type == QG_COLUMN_F64;
    size_t count = (size_t)qg_table_rows(table);
    bool blanks = c->native != NO_TEXT && is_measured(column);
    for (size_t begin = 0; begin < count; begin += BLOCK) {
        size_t block = count - begin < BLOCK ? count - begin : BLOCK;
        put_block(c->bytes, table->columns[column], rows + begin, block, is_f64);
        if (blanks)
            blank_native(c->bytes, table, c->native, rows + begin, block, column);
        c->used = 8 * block;
        flush(c);
    }
}

// The column is set.
static void add_values(collector *c, const qg_table *table, const int64_t *rows,
                       qg_column column) {
    const void *elements = table->columns[column];
    int64_t count = qg_table_rows(table);
    switch (qg_column_describe(column)->type) {
    case QG_COLUMN_F64:
    case QG_COLUMN_I64:
    case QG_COLUMN_U64: add_numbers(c, table, rows, column); break;
    case QG_COLUMN_U8:
        for (int64_t i = 0; i < count; i++)
            add_bytes(c, (const uint8_t *)elements + rows[i], 1);
        break;
    case QG_COLUMN_TEXT:
        for (int64_t i = 0; i < count; i++) {
            uint32_t text = ((const uint32_t *)elements)[rows[i]];
            add_bytes(c, qg_text_at(table->texts, text), qg_text_length(table->texts, text) + 1);
        }
        break;
    }
}

static void add_column(qg_digest *digest, const qg_table *table, const int64_t *rows,
                       uint32_t native, qg_column column) {
    const qg_column_info *info = qg_column_describe(column);
    qg_digest_add(digest, info->group, strlen(info->group));
    qg_digest_add(digest, "/", 1);
    qg_digest_add_text(digest, info->name);
    collector c = {.digest = digest, .native = native};
    add_values(&c, table, rows, column);
    flush(&c);
}

static void add_histograms(qg_digest *digest, const qg_table *table, const int64_t *rows,
                           uint32_t native) {
    collector c = {.digest = digest};
    const uint32_t *units = table->columns[QG_COLUMN_UNIT];
    for (int64_t i = 0; i < qg_table_rows(table); i++) {
        const int64_t *rel, *ulp;
        if (!qg_table_histograms(table, rows[i], &rel, &ulp) ||
            (native != NO_TEXT && units[rows[i]] == native))
            continue;
        add_u64(&c, (uint64_t)i);
        add_i64s(&c, rel, QG_HIST_LOG2_BINS);
        add_i64s(&c, ulp, QG_HIST_ULP_BINS);
    }
    flush(&c);
}

static void add_operands(qg_digest *digest, const qg_table *table) {
    for (int64_t i = 0; i < table->operand_count; i++) {
        const qg_operand *operand = &table->operands[i];
        qg_digest_add_u64(digest, operand->case_id);
        qg_digest_add_text(digest, operand->name);
        qg_digest_add_u64(digest, (uint64_t)operand->size);
        qg_digest_add(digest, operand->bytes, (size_t)operand->size);
    }
}

static void add_table(qg_digest *digest, const qg_table *table, const int64_t *rows,
                      uint64_t dump_digest) {
    qg_digest_add_text(digest, "quantgauge-1");
    qg_digest_add_text(digest, qg_table_plan(table));
    qg_digest_add_u64(digest, dump_digest);
    qg_digest_add_u64(digest, (uint64_t)qg_table_rows(table));
    uint32_t native = find_native(table);
    for (int i = 0; i < QG_COLUMN_COUNT; i++)
        if (!qg_column_is_volatile((qg_column)i) && qg_table_column_is_set(table, (qg_column)i))
            add_column(digest, table, rows, native, (qg_column)i);
    add_histograms(digest, table, rows, native);
    add_operands(digest, table);
}

qg_status qg_table_content_digest_sorted(const qg_table *table, const int64_t *rows,
                                         uint64_t *out) {
    uint64_t dump_digest = table->dump_digest;
    qg_status status = table->has_dump_digest ? QG_OK : qg_dump_digest(&dump_digest);
    qg_digest *digest = NULL;
    if (status == QG_OK)
        status = qg_digest_create(&digest);
    if (status != QG_OK)
        return status;
    add_table(digest, table, rows, dump_digest);
    *out = qg_digest_value(digest);
    qg_digest_free(digest);
    return QG_OK;
}

qg_status qg_table_content_digest(const qg_table *table, uint64_t *out) {
    int64_t *rows = malloc(((size_t)qg_table_rows(table) + 1) * sizeof *rows);
    qg_status status = rows ? qg_table_sort(table, rows)
                            : qg_fail(QG_ERROR_MEMORY, "no memory for a content digest");
    if (status == QG_OK)
        status = qg_table_content_digest_sorted(table, rows, out);
    free(rows);
    return status;
}
